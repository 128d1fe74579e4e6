//! What one repository cannot do to others: faults of a source are its own, and nothing is without end.

use std::path::Path;

use gistmill::error::Fault;
use git2::{ObjectType, Oid, Signature, Time};

use super::sample::{Desk, FILE, Sample, files, git_spec, path_spec};

#[track_caller]
fn refused(desk: &Desk, sample: &Sample, commit: &str, why: &str) {
    let error = desk.pin(git_spec(&sample.url(), commit)).unwrap_err();
    assert_eq!(error.fault(), Fault::Repository, "{error}");
    assert!(error.to_string().contains(why), "{error}");
}

/// A commit of a tree whose bytes are given.
fn commit_of_bytes(sample: &Sample, tree: &[u8]) -> String {
    let repository = &sample.repository;
    let tree = repository.odb().unwrap().write(ObjectType::Tree, tree).unwrap();
    commit_of(sample, tree)
}

fn commit_of(sample: &Sample, tree: Oid) -> String {
    let who = Signature::new("A", "a@example.org", &Time::new(0, 0)).unwrap();
    let text = format!(
        "tree {tree}\nauthor {} <a@example.org> 0 +0000\ncommitter A <a@example.org> 0 +0000\n\nm\n",
        who.name().unwrap()
    );
    sample.repository.odb().unwrap().write(ObjectType::Commit, text.as_bytes()).unwrap().to_string()
}

fn entry(mode: &str, name: &str, id: Oid) -> Vec<u8> {
    [format!("{mode} {name}\0").as_bytes(), id.as_bytes()].concat()
}

#[test]
fn a_tree_that_no_folder_can_hold_is_its_own_fault() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("demo.git"));
    let blob = sample.repository.blob(b"x").unwrap();
    let inner =
        sample.repository.odb().unwrap().write(ObjectType::Tree, &entry("100644", "x", blob)).unwrap();
    let long = entry("100644", &"n".repeat(300), blob);
    refused(&desk, &sample, &commit_of_bytes(&sample, &long), "too long");
    let twice = [entry("100644", "a", blob), entry("100755", "a", blob)].concat();
    refused(&desk, &sample, &commit_of_bytes(&sample, &twice), "exists");
    let both = [entry("100644", "a", blob), entry("40000", "a", inner)].concat();
    refused(&desk, &sample, &commit_of_bytes(&sample, &both), "both a file and a directory");
    for name in ["..", ".git", ".GIT", "."] {
        let bytes = entry("100644", name, blob);
        let error = desk.pin(git_spec(&sample.url(), &commit_of_bytes(&sample, &bytes))).unwrap_err();
        assert_eq!(error.fault(), Fault::Repository, "{name}: {error}");
    }
}

#[test]
fn folders_within_each_other_come_to_an_end() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("demo.git"));
    let objects = sample.repository.odb().unwrap();
    let mut tree = entry("100644", "x", sample.repository.blob(b"x").unwrap());
    for _ in 0..3000 {
        tree = entry("40000", "d", objects.write(ObjectType::Tree, &tree).unwrap());
    }
    refused(&desk, &sample, &commit_of_bytes(&sample, &tree), "folders within each other");
}

#[test]
fn a_repository_that_cannot_be_read_around_a_folder_does_not_fail_it() {
    let borrows =
        |git: &Path| std::fs::write(git.join("objects/info/alternates"), "/nowhere/objects\n").unwrap();
    let pipe = |git: &Path| {
        std::fs::remove_file(git.join("HEAD")).unwrap();
        nix::unistd::mkfifo(&git.join("HEAD"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    };
    let link = |git: &Path| {
        std::fs::rename(git, git.with_file_name("elsewhere")).unwrap();
        std::os::unix::fs::symlink("/proc/self/root", git).unwrap();
    };
    let traps: [&dyn Fn(&Path); 3] = [&borrows, &pipe, &link];
    for trap in traps {
        let desk = Desk::new();
        let around = Sample::with_work_tree(&desk.path("shared"));
        around.commit(&[(FILE, b"mine/a.py", b"committed")]);
        around.check_out();
        std::fs::create_dir_all(desk.path("shared/.git/objects/info")).unwrap();
        trap(&desk.path("shared/.git"));
        let mine = desk.path("shared/mine");
        let pinned = desk.pin(path_spec(&mine, None, false)).unwrap();
        assert_eq!(files(&pinned.tree), ["a.py"]);
        assert_eq!(pinned.notes, ["a git repository around the folder cannot be read, and does not count"]);
        // Its own repository has to be readable.
        assert!(desk.pin(path_spec(&desk.path("shared"), None, true)).is_err());
        // The one further up is looked for.
        let outer = Sample::with_work_tree(&desk.path(""));
        let commit = outer.commit(&[(FILE, b"shared/mine/a.py", b"committed")]);
        let mut index = outer.repository.index().unwrap();
        index.read_tree(&outer.repository.head().unwrap().peel_to_tree().unwrap()).unwrap();
        index.write().unwrap();
        assert_eq!(desk.pin(path_spec(&mine, Some(&commit), false)).unwrap().commit, commit);
    }
}
