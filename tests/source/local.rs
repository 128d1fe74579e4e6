//! `path` sources.

use std::path::Path;

use gistmill::record::source::Origin;

use super::sample::{Desk, FILE, LINK, SUBMODULE, Sample, files, path_spec};

/// A clone with a work tree as it was committed.
fn clean(desk: &Desk) -> (Sample, String, std::path::PathBuf) {
    let path = desk.path("private");
    let sample = Sample::with_work_tree(&path);
    let commit = sample.commit(&[
        (FILE, b"a.py", b"1"),
        (FILE, b"pkg/b.py", b"2"),
        (LINK, b"link", b"a.py"),
        (FILE, b".gitignore", b"*.log\n"),
    ]);
    sample.check_out();
    (sample, commit, path)
}

fn origin(uncommitted_changes: bool) -> Origin {
    Origin::Path { name: "private".to_owned(), uncommitted_changes }
}

#[test]
fn a_clean_clone_gives_its_commit_and_only_its_name() {
    let desk = Desk::new();
    let (_sample, commit, path) = clean(&desk);
    std::fs::write(path.join("debug.log"), "ignored").unwrap();
    let pinned = desk.pin(path_spec(&path, None, false)).unwrap();
    assert_eq!((&pinned.commit, &pinned.origin), (&commit, &origin(false)));
    assert_eq!(files(&pinned.tree), [".gitignore", "a.py", "link", "pkg/b.py"]);
    let record = std::fs::read_to_string(pinned.tree.with_file_name("pinned.json")).unwrap();
    assert!(!record.contains(path.to_str().unwrap()));
    assert_eq!(desk.pin(path_spec(&path, None, true)).unwrap(), pinned, "allowed, but there are none");
    assert_eq!(desk.pin(path_spec(&path.join("../private"), Some(&commit), false)).unwrap(), pinned);
}

#[test]
fn uncommitted_changes_are_refused_with_their_names() {
    let desk = Desk::new();
    let (_sample, commit, path) = clean(&desk);
    desk.pin(path_spec(&path, None, false)).unwrap();
    std::fs::write(path.join("a.py"), "changed").unwrap();
    std::fs::write(path.join("pkg/new.py"), "").unwrap();
    let error = desk.pin(path_spec(&path, None, false)).unwrap_err();
    assert!(error.to_string().ends_with("has uncommitted changes: `a.py`, `pkg/new.py`"), "{error}");
    assert!(error.hint().unwrap().contains("allow_uncommitted = true"));
    let pinned = desk.pin(path_spec(&path, Some(&commit), false)).unwrap();
    assert_eq!(std::fs::read(pinned.tree.join("a.py")).unwrap(), b"1", "a commit is a commit");
}

/// Configuration, schema, rules and output of gistmill in a folder, beside what belongs to it.
fn own_files(desk: &mut Desk, path: &Path) {
    for (name, text) in [
        ("repos.toml", "config"),
        ("repos.schema.json", "{}"),
        ("filters/mine.toml", "rules"),
        ("output/d/1/instances.jsonl", "answers"),
    ] {
        let place = path.join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    }
    desk.apart = ["repos.toml", "repos.schema.json", "filters", "output"].map(|name| path.join(name)).into();
}

#[test]
fn what_is_gistmills_own_in_a_clone_is_not_a_change_and_not_taken() {
    let mut desk = Desk::new();
    let (_sample, commit, path) = clean(&desk);
    let before = desk.pin(path_spec(&path, None, false)).unwrap();
    own_files(&mut desk, &path);
    let pinned = desk.pin(path_spec(&path, None, false)).unwrap();
    assert_eq!((&pinned.commit, &pinned), (&commit, &before), "nothing has changed");
    std::fs::write(path.join("new.py"), "").unwrap();
    let taken = desk.pin(path_spec(&path, None, true)).unwrap();
    assert_eq!(files(&taken.tree), [".gitignore", "a.py", "link", "new.py", "pkg/b.py"]);
    desk.apart.clear();
    let error = desk.pin(path_spec(&path, None, false)).unwrap_err();
    assert!(error.to_string().contains("repos.toml"), "it is a change where it is somebody else's: {error}");
}

/// Datasets, scores and exports of runs with other outputs.
const MADE: [(&str, &str); 7] = [
    ("old/d/1/manifest.json", r#"{"format_version": 2, "tool": {"name": "gistmill", "version": "0.1.0"}}"#),
    ("old/d/1/instances.jsonl", "answers"),
    ("old/d/.1.lock", ""),
    ("old/d/.2.writing/instances.jsonl", "answers"),
    ("scores/d/1/tables.json", r#"[{"id": "main", "title": "t", "note": "n", "columns": [], "rows": []}]"#),
    ("scores/d/1/run/cases.parquet", "answers"),
    (
        "run/export.json",
        r#"{"dataset": "d", "version": "1", "harnesses": ["prompts"], "judged_by": "pytest"}"#,
    ),
];

#[test]
fn what_gistmill_left_in_a_folder_is_no_change_and_not_taken() {
    let desk = Desk::new();
    let (_sample, commit, path) = clean(&desk);
    let leave = |path: &std::path::Path| {
        for (name, text) in MADE.iter().chain(&[("pkg/manifest.json", r#"{"tool": {"name": "another"}}"#)]) {
            std::fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
            std::fs::write(path.join(name), text).unwrap();
        }
    };
    leave(&path);
    let error = desk.pin(path_spec(&path, None, false)).unwrap_err().to_string();
    assert!(error.ends_with("has uncommitted changes: `pkg/manifest.json`"), "{error}");
    let taken = desk.pin(path_spec(&path, None, true)).unwrap();
    assert_eq!(files(&taken.tree), [".gitignore", "a.py", "link", "pkg/b.py", "pkg/manifest.json"]);
    // Of a folder that a commit has nothing is taken away.
    std::fs::write(path.join("pkg/manifest.json"), MADE[0].1).unwrap();
    let taken = desk.pin(path_spec(&path, None, true)).unwrap();
    assert_eq!(files(&taken.tree), [".gitignore", "a.py", "link", "pkg/b.py", "pkg/manifest.json"]);
    std::fs::remove_file(path.join("pkg/manifest.json")).unwrap();
    assert_eq!(desk.pin(path_spec(&path, None, false)).unwrap().commit, commit);
    let plain = desk.path("plain");
    std::fs::create_dir_all(&plain).unwrap();
    std::fs::write(plain.join("a.py"), "1").unwrap();
    leave(&plain);
    assert_eq!(files(&desk.pin(path_spec(&plain, None, false)).unwrap().tree), ["a.py", "pkg/manifest.json"]);
}

#[test]
fn what_is_gistmills_own_in_a_folder_or_a_commit_is_left_out() {
    let mut desk = Desk::new();
    let plain = desk.path("plain");
    std::fs::create_dir_all(&plain).unwrap();
    std::fs::write(plain.join("a.py"), "1").unwrap();
    let before = desk.pin(path_spec(&plain, None, false)).unwrap();
    own_files(&mut desk, &plain);
    let pinned = desk.pin(path_spec(&plain, None, false)).unwrap();
    assert_eq!((files(&pinned.tree), &pinned.commit), (vec!["a.py".to_owned()], &before.commit));
    let path = desk.path("committed");
    let sample = Sample::with_work_tree(&path);
    sample.commit(&[
        (FILE, b"a.py", b"1"),
        (FILE, b"repos.toml", b"config"),
        (FILE, b"output/x", b"answers"),
    ]);
    sample.check_out();
    desk.apart = ["repos.toml", "output"].map(|name| path.join(name)).into();
    let pinned = desk.pin(path_spec(&path, None, false)).unwrap();
    assert_eq!(files(&pinned.tree), ["a.py"]);
    assert!(pinned.notes.iter().any(|note| note.contains("`repos.toml` left out")), "{:?}", pinned.notes);
    desk.apart = vec![path.clone()];
    let error = desk.pin(path_spec(&path, None, false)).unwrap_err();
    assert!(error.to_string().contains("both a repository and the output"), "{error}");
}

#[test]
fn uncommitted_changes_are_taken_when_allowed() {
    let desk = Desk::new();
    let (_sample, commit, path) = clean(&desk);
    let before = desk.pin(path_spec(&path, None, true)).unwrap();
    std::fs::write(path.join("a.py"), "changed").unwrap();
    std::fs::write(path.join("debug.log"), "ignored").unwrap();
    std::fs::create_dir(path.join("new")).unwrap();
    std::fs::write(path.join("new/c.py"), "").unwrap();
    std::fs::remove_file(path.join("link")).unwrap();
    let pinned = desk.pin(path_spec(&path, None, true)).unwrap();
    assert_eq!((&pinned.commit, &pinned.origin), (&commit, &origin(true)));
    assert_eq!(files(&pinned.tree), [".gitignore", "a.py", "new/c.py", "pkg/b.py"]);
    assert_eq!(std::fs::read(pinned.tree.join("a.py")).unwrap(), b"changed");
    assert_ne!(pinned.tree_sha256, before.tree_sha256);
    assert!(pinned.pinned_at > before.pinned_at, "as new as the newest change");
    assert_eq!(pinned.notes, ["uncommitted changes: `a.py`, `link`, `new/c.py`"]);
    assert_eq!(desk.pin(path_spec(&path, None, true)).unwrap(), pinned);
    std::fs::write(path.join("a.py"), "again").unwrap();
    assert_ne!(desk.pin(path_spec(&path, None, true)).unwrap().tree, pinned.tree);
}

#[test]
fn a_clone_without_commits_needs_permission() {
    let desk = Desk::new();
    let path = desk.path("private");
    Sample::with_work_tree(&path);
    std::fs::write(path.join("a.py"), "1").unwrap();
    let error = desk.pin(path_spec(&path, None, false)).unwrap_err();
    assert!(error.to_string().contains("no commit yet"), "{error}");
    let pinned = desk.pin(path_spec(&path, None, true)).unwrap();
    assert_eq!(pinned.commit, format!("sha256:{}", pinned.tree_sha256));
}

#[test]
fn a_directory_without_git_is_taken_without_junk() {
    let desk = Desk::new();
    let path = desk.path("plain");
    for (name, content) in [
        ("a.py", "1"),
        ("__pycache__/a.pyc", ""),
        ("pkg/stray.pyc", ""),
        ("pkg/b.py", ""),
        (".venv/lib/x.py", ""),
        ("myenv/pyvenv.cfg", ""),
        ("myenv/lib/x.py", ""),
        (".github/x.yml", ""),
    ] {
        std::fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
        std::fs::write(path.join(name), content).unwrap();
    }
    let pinned = desk.pin(path_spec(&path, None, false)).unwrap();
    assert_eq!(files(&pinned.tree), [".github/x.yml", "a.py", "pkg/b.py"]);
    assert_eq!(pinned.commit, format!("sha256:{}", pinned.tree_sha256));
    assert_eq!(desk.pin(path_spec(&path, None, false)).unwrap(), pinned);
    let error = desk.pin(path_spec(&path, Some(&"1".repeat(40)), false)).unwrap_err();
    assert!(error.to_string().contains("is not a git repository"), "{error}");
    let error = desk.pin(path_spec(&desk.path("nowhere"), None, false)).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    std::fs::create_dir(desk.path("empty")).unwrap();
    assert!(desk.pin(path_spec(&desk.path("empty"), None, false)).is_err());
}

#[test]
fn a_directory_inside_a_clone_gives_its_part_of_the_commit() {
    let desk = Desk::new();
    let (_sample, commit, path) = clean(&desk);
    std::fs::write(path.join("a.py"), "changed, but elsewhere").unwrap();
    let pinned = desk.pin(path_spec(&path.join("pkg"), None, false)).unwrap();
    assert_eq!((files(&pinned.tree), &pinned.commit), (vec!["b.py".to_owned()], &commit));
    assert_eq!(pinned.notes, ["only the directory `pkg` of the repository"]);
    std::fs::write(path.join("pkg/b.py"), "changed").unwrap();
    let error = desk.pin(path_spec(&path.join("pkg"), None, false)).unwrap_err();
    assert!(error.to_string().ends_with("`b.py`"), "{error}");
    let pinned = desk.pin(path_spec(&path.join("pkg"), None, true)).unwrap();
    assert_eq!(std::fs::read(pinned.tree.join("b.py")).unwrap(), b"changed");

    let ignored = path.join("scratch.log");
    std::fs::create_dir(&ignored).unwrap();
    std::fs::write(ignored.join("x.py"), "").unwrap();
    let pinned = desk.pin(path_spec(&ignored, None, false)).unwrap();
    assert!(pinned.commit.starts_with("sha256:"), "what the clone around ignores is no part of it");
}

#[test]
fn a_bare_repository_gives_its_head() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("private"));
    let commit = sample.commit(&[(FILE, b"a.py", b"1")]);
    let pinned = desk.pin(path_spec(&desk.path("private"), None, false)).unwrap();
    assert_eq!((files(&pinned.tree), pinned.commit), (vec!["a.py".to_owned()], commit));
}

#[test]
fn submodules_come_from_the_clone_itself() {
    let desk = Desk::new();
    let inner = Sample::with_work_tree(&desk.path("inner"));
    let inner_commit = inner.commit(&[(FILE, b"inner.py", b"")]);
    let path = desk.path("private");
    let outer = Sample::with_work_tree(&path);
    let modules = b"[submodule \"m\"]\n\tpath = lib/m\n\turl = https://unreachable.invalid/m.git\n";
    let commit =
        outer.commit(&[(FILE, b".gitmodules", modules), (SUBMODULE, b"lib/m", inner_commit.as_bytes())]);
    copy_git(&desk.path("inner/.git"), &path.join(".git/modules/m"));
    let pinned = desk.pin(path_spec(&path, Some(&commit), false)).unwrap();
    assert_eq!(files(&pinned.tree), [".gitmodules", "lib/m/inner.py"]);
}

pub fn copy_git(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A clone next to a private one whose files must stay unread.
fn beside_a_private_one(desk: &Desk) -> (std::path::PathBuf, std::path::PathBuf) {
    let (_sample, _, path) = clean(desk);
    let other = desk.path("other");
    let sample = Sample::with_work_tree(&other);
    sample.commit(&[(FILE, b"secret.txt", b"secret")]);
    sample.check_out();
    (path, other)
}

/// Pins with and without leave to take what is not committed: both fail for this repository alone, and name nothing of
/// the other one.
fn refused(desk: &Desk, path: &Path, why: &str) {
    for allowed in [false, true] {
        let error = desk.pin(path_spec(path, None, allowed)).unwrap_err();
        assert_eq!(error.fault(), gistmill::error::Fault::Repository, "{error}");
        assert!(
            error.to_string().contains("leads out of its folder") && error.to_string().contains(why),
            "{error}"
        );
        assert!(error.hint().is_some() && !error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn the_work_tree_is_the_folder_whatever_its_settings_say() {
    let desk = Desk::new();
    let (path, other) = beside_a_private_one(&desk);
    let config = path.join(".git/config");
    let before = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{before}[core]\n\tworktree = {}\n", other.display())).unwrap();
    let pinned = desk.pin(path_spec(&path, None, true)).unwrap();
    assert_eq!(files(&pinned.tree), [".gitignore", "a.py", "link", "pkg/b.py"]);
    std::fs::write(path.join("new.py"), "").unwrap();
    let error = desk.pin(path_spec(&path, None, false)).unwrap_err();
    assert!(error.to_string().ends_with("has uncommitted changes: `new.py`"), "{error}");
}

/// What is changed in the first clone, to lead to the second.
type Trap<'a> = &'a dyn Fn(&Path, &Path);

#[test]
fn a_git_directory_that_leads_elsewhere_is_refused() {
    let alternates = |path: &Path, other: &Path| {
        let place = path.join(".git/objects/info");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("alternates"), format!("{}/.git/objects\n", other.display())).unwrap();
    };
    let common = |path: &Path, other: &Path| {
        std::fs::write(path.join(".git/commondir"), other.join(".git").to_str().unwrap()).unwrap();
    };
    let included = |path: &Path, other: &Path| {
        let text = format!("[core]\n\tbare = false\n[ INCLUDE ]\n\tpath = {}/secret.txt\n", other.display());
        std::fs::write(path.join(".git/config"), text).unwrap();
    };
    let ignores = |path: &Path, other: &Path| {
        let text = format!("[core]\n\tbare = false\n\texcludesFile = {}/secret.txt\n", other.display());
        std::fs::write(path.join(".git/config"), text).unwrap();
    };
    let linked = |path: &Path, other: &Path| {
        std::fs::remove_dir_all(path.join(".git")).unwrap();
        std::os::unix::fs::symlink(other.join(".git"), path.join(".git")).unwrap();
    };
    let inside = |path: &Path, other: &Path| {
        std::fs::remove_dir_all(path.join(".git/objects")).unwrap();
        std::os::unix::fs::symlink(other.join(".git/objects"), path.join(".git/objects")).unwrap();
    };
    let named = |path: &Path, other: &Path| {
        std::fs::remove_dir_all(path.join(".git")).unwrap();
        std::fs::write(path.join(".git"), format!("gitdir: {}/.git\n", other.display())).unwrap();
    };
    let piped = |path: &Path, _: &Path| {
        std::fs::remove_file(path.join(".git/index")).ok();
        nix::unistd::mkfifo(&path.join(".git/index"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    };
    let traps: [(&str, Trap); 8] = [
        ("borrows objects", &alternates),
        ("commondir", &common),
        ("includes other files", &included),
        ("core.excludesfile", &ignores),
        ("`.git` is a symbolic link", &linked),
        ("`objects` in `.git` is a symbolic link", &inside),
        ("does not know of this folder", &named),
        ("`index` in `.git` is a special file", &piped),
    ];
    for (why, set) in traps {
        let desk = Desk::new();
        let (path, other) = beside_a_private_one(&desk);
        set(&path, &other);
        refused(&desk, &path, why);
    }
}

#[test]
fn work_trees_that_their_clone_knows_of_are_taken() {
    let desk = Desk::new();
    let (_sample, commit, path) = clean(&desk);
    let tree = desk.path("work tree");
    git2::Repository::open(&path).unwrap().worktree("one", &tree, None).unwrap();
    let pinned = desk.pin(path_spec(&tree, None, false)).unwrap();
    assert_eq!(pinned.commit, commit);
    // Moved away, it is a folder that names somebody else's clone.
    let moved = desk.path("moved");
    std::fs::rename(&tree, &moved).unwrap();
    refused(&desk, &moved, "does not know of this folder");
}

#[test]
fn a_pipe_in_the_place_of_settings_does_not_hang() {
    let desk = Desk::new();
    let (_sample, _, path) = clean(&desk);
    for name in [".gitignore", "pkg/.gitattributes"] {
        let place = path.join(name);
        std::fs::remove_file(&place).ok();
        nix::unistd::mkfifo(&place, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = desk.pin(path_spec(&path, None, true)).unwrap_err();
        assert!(error.to_string().contains("is not a regular file"), "{error}");
        std::fs::remove_file(&place).unwrap();
    }
}
