//! Files of the host that a repository asks for: none is read that is not in the repository itself.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gistmill::config::SourceSpec;
use gistmill::error::Fault;
use sha1::{Digest, Sha1};

use super::git::modules;
use super::local::copy_git;
use super::sample::{Desk, Everything, FILE, SUBMODULE, Sample, files, git_spec, holds, path_spec};

const SECRET: &str = "gh_p4ssw0rd";

/// A folder of the host with a file and a repository, and a commit of that repository.
fn victim(desk: &Desk) -> (PathBuf, String) {
    let home = desk.path("victim");
    let sample = Sample::with_work_tree(&home.join("repo"));
    let commit = sample.commit(&[(FILE, b"secret.txt", SECRET.as_bytes())]);
    sample.check_out();
    std::fs::write(home.join("secret.txt"), SECRET).unwrap();
    (home, commit)
}

#[track_caller]
fn refused(desk: &Desk, source: SourceSpec, why: &str) {
    let error = desk.pin_with(source, &Everything).unwrap_err();
    assert_eq!(error.fault(), Fault::Repository, "{error}");
    assert!(error.to_string().contains(why), "{error}");
    assert!(!holds(desk.cache.root(), SECRET));
}

#[test]
fn a_submodule_of_a_local_repository_names_nothing_of_the_host() {
    let desk = Desk::new();
    let (home, commit) = victim(&desk);
    let repo = home.join("repo").display().to_string();
    for (number, url) in [
        repo.clone(),
        format!("{repo}/.git"),
        format!("file://{repo}"),
        format!("FILE://localhost{repo}"),
        "../victim/repo".to_owned(),
        "./../victim/repo".to_owned(),
        "../../victim/repo".to_owned(),
        "victim/repo".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        let path = desk.path(&format!("outer{number}"));
        let outer = Sample::with_work_tree(&path);
        let text = modules("lib", &url);
        let own =
            outer.commit(&[(FILE, b".gitmodules", text.as_bytes()), (SUBMODULE, b"lib", commit.as_bytes())]);
        let why = "names a host path";
        refused(&desk, git_spec(&outer.url(), &own), why);
        refused(&desk, git_spec(&format!("file://{}", path.display()), &own), why);
        refused(&desk, path_spec(&path, Some(&own), false), why);
        // What it says that it was cloned from is its own word, too.
        for origin in [format!("{}/x", desk.path("").display()), format!("file://{}/x", home.display())] {
            let _ = outer.repository.remote_delete("origin");
            outer.repository.remote("origin", &origin).unwrap();
            refused(&desk, path_spec(&path, Some(&own), false), why);
        }
    }
}

#[test]
fn a_submodule_in_the_clone_is_taken_and_its_own_name_nothing_of_the_host() {
    let desk = Desk::new();
    let (home, secret) = victim(&desk);
    let (deep, middle) =
        (Sample::with_work_tree(&desk.path("deep")), Sample::with_work_tree(&desk.path("middle")));
    let deep_commit = deep.commit(&[(FILE, b"deep.py", b"")]);
    let commit_of = |url: &str, commit: &str| {
        let text = modules("deep", url);
        middle.commit(&[(FILE, b".gitmodules", text.as_bytes()), (SUBMODULE, b"deep", commit.as_bytes())])
    };
    let good = commit_of("../deep", &deep_commit);
    let bad = commit_of(home.join("repo").to_str().unwrap(), &secret);
    let path = desk.path("outer");
    let outer = Sample::with_work_tree(&path);
    // Most clones know where they came from.
    outer.repository.remote("origin", "https://unreachable.invalid/outer").unwrap();
    let text = modules("lib", "../middle");
    let commit = |inner: &str| {
        outer.commit(&[(FILE, b".gitmodules", text.as_bytes()), (SUBMODULE, b"lib", inner.as_bytes())])
    };
    let (good, bad) = (commit(&good), commit(&bad));
    copy_git(&desk.path("middle/.git"), &path.join(".git/modules/m"));
    copy_git(&desk.path("deep/.git"), &path.join(".git/modules/m/modules/m"));
    let pinned = desk.pin(path_spec(&path, Some(&good), false)).unwrap();
    assert_eq!(files(&pinned.tree), [".gitmodules", "lib/.gitmodules", "lib/deep/deep.py"]);
    refused(&desk, path_spec(&path, Some(&bad), false), "names a host path");
    // Nor is a clone anywhere else taken for one of its own.
    std::fs::remove_dir_all(path.join(".git/modules/m")).unwrap();
    symlink(home.join("repo/.git"), path.join(".git/modules/m")).unwrap();
    refused(&desk, path_spec(&path, Some(&good), false), "symbolic link");
}

/// A clone whose files are committed and checked out.
fn clone(desk: &Desk, names: &[&str]) -> (Sample, PathBuf) {
    let path = desk.path("private");
    let sample = Sample::with_work_tree(&path);
    let list: Vec<_> = names.iter().map(|name| (FILE, name.as_bytes(), b"mine".as_slice())).collect();
    sample.commit(&list);
    sample.check_out();
    (sample, path)
}

/// Pins the work tree; gives its files. Nothing of the host is among them, nor in what was said.
#[track_caller]
fn pinned(desk: &Desk, path: &Path) -> Vec<String> {
    let pinned = desk.pin(path_spec(path, None, true)).unwrap();
    assert!(!holds(desk.cache.root(), SECRET), "{:?}", files(&pinned.tree));
    assert!(!format!("{pinned:?}").contains(SECRET));
    files(&pinned.tree)
}

#[test]
fn a_folder_of_the_index_that_became_a_link_has_no_files() {
    for excluded in ["/lib\n/src/deep\n", ""] {
        let desk = Desk::new();
        let (home, _) = victim(&desk);
        let (_sample, path) = clone(&desk, &["a.py", "lib/secret.txt", "src/deep/secret.txt", "src/b.py"]);
        for folder in ["lib", "src/deep"] {
            std::fs::remove_dir_all(path.join(folder)).unwrap();
            symlink(&home, path.join(folder)).unwrap();
        }
        std::fs::write(path.join(".git/info/exclude"), excluded).unwrap();
        let links: &[&str] = if excluded.is_empty() { &["lib", "src/deep"] } else { &[] };
        let mut expected = [&["a.py", "src/b.py"], links].concat();
        expected.sort_unstable();
        assert_eq!(pinned(&desk, &path), expected, "{excluded:?}");
    }
}

#[test]
fn a_submodule_of_the_index_that_is_a_link_is_not_looked_into() {
    let desk = Desk::new();
    let (home, commit) = victim(&desk);
    let (sample, path) = clone(&desk, &["a.py"]);
    sample.commit(&[
        (FILE, b"a.py", b"mine"),
        (SUBMODULE, b"repo", commit.as_bytes()),
        (SUBMODULE, b"way/repo", commit.as_bytes()),
    ]);
    sample.check_out();
    for folder in ["repo", "way"] {
        std::fs::remove_dir_all(path.join(folder)).unwrap();
    }
    symlink(home.join("repo"), path.join("repo")).unwrap();
    symlink(&home, path.join("way")).unwrap();
    std::fs::write(path.join(".git/info/exclude"), "/repo\n/way\n").unwrap();
    assert_eq!(pinned(&desk, &path), ["a.py"]);
}

/// Changes a path in the index, which has no other, to one that git would not write.
fn forge(path: &Path, written: &str, forged: &str) {
    assert_eq!(written.len(), forged.len());
    let index = path.join(".git/index");
    let mut bytes = std::fs::read(&index).unwrap();
    let at = bytes.windows(written.len()).position(|window| window == written.as_bytes()).unwrap();
    bytes[at..at + forged.len()].copy_from_slice(forged.as_bytes());
    // Up to the end of the entry, without what follows: one of the extensions has the name as well.
    bytes.truncate(12 + (62 + forged.len() + 8) / 8 * 8);
    let sum = Sha1::digest(&bytes);
    bytes.extend(&sum[..]);
    std::fs::write(index, bytes).unwrap();
}

#[test]
fn an_index_that_names_places_elsewhere_is_refused() {
    let place = |home: &Path| home.join("secret.txt").display().to_string();
    let forgeries: [&dyn Fn(&Path) -> String; 4] = [
        &|home| place(home),
        &|_| "../victim/secret.txt".to_owned(),
        &|_| "aa/../../victim/secret.txt".to_owned(),
        &|_| ".git/config".to_owned(),
    ];
    for forged in forgeries {
        let desk = Desk::new();
        let (home, _) = victim(&desk);
        let forged = forged(&home);
        let written: String =
            forged.chars().enumerate().map(|(at, c)| if at == 0 || c == '.' { 'x' } else { c }).collect();
        let (sample, path) = clone(&desk, &[&written]);
        let mut index = sample.repository.index().unwrap();
        index.read_tree(&sample.repository.head().unwrap().peel_to_tree().unwrap()).unwrap();
        index.write().unwrap();
        forge(&path, &written, &forged);
        for allowed in [false, true] {
            let error = desk.pin(path_spec(&path, None, allowed)).unwrap_err();
            assert_eq!(error.fault(), Fault::Repository, "{forged}: {error}");
            assert!(!holds(desk.cache.root(), SECRET), "{forged}: {error}");
        }
    }
}
