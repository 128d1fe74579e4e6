//! `git` sources.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use gistmill::config::SourceSpec;
use gistmill::error::Fault;
use gistmill::record::id::CommitSha;
use gistmill::record::source::{NearestTag, Origin, Pinned, TagSearch};
use gistmill::source::{resolve_reference, verify};

use git2::Oid;

use super::sample::{
    Desk, EXECUTABLE, Everything, FILE, HELPER_LOGIN, LINK, SUBMODULE, Sample, WHEN, files, git_spec,
    helper_calls, holds, keep_login,
};
use super::server::Server;

#[test]
fn tree_has_the_exact_bytes_modes_links_and_times_of_the_commit() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("demo.git"));
    let commit = sample.commit(&[
        (FILE, b".gitattributes", b"* text=auto eol=crlf\nsecret.py export-ignore\n"),
        (FILE, b"secret.py", b"a\nb\r\n"),
        (EXECUTABLE, b"bin/run", b"#!"),
        (LINK, b"bin/alias", b"run"),
        (LINK, b"out", b"../elsewhere"),
        (FILE, b"\xff.py", b""),
        (FILE, b"big.bin", b"version https://git-lfs.example/spec/v1\noid sha256:0\n"),
    ]);
    let pinned = desk.pin(git_spec(&sample.url(), &commit)).unwrap();
    let read = |name: &str| std::fs::read(pinned.tree.join(name)).unwrap();
    let mode = |name: &str| std::fs::metadata(pinned.tree.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(read("secret.py"), b"a\nb\r\n");
    assert_eq!((mode("bin/run"), mode("secret.py"), mode("bin")), (0o755, 0o644, 0o755));
    assert_eq!(std::fs::read_link(pinned.tree.join("bin/alias")).unwrap(), Path::new("run"));
    assert!(pinned.tree.join(std::ffi::OsStr::from_bytes(b"\xff.py")).is_file());
    for name in ["bin", "bin/alias", "secret.py", ""] {
        let metadata = std::fs::symlink_metadata(pinned.tree.join(name)).unwrap();
        assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (WHEN, 0), "{name}");
    }
    assert_eq!(
        (pinned.commit.as_str(), pinned.pinned_at.as_str()),
        (commit.as_str(), "2024-01-02T03:04:05Z")
    );
    let start = ["symlink `out` leaves the tree", "Git LFS pointers instead of content: `big.bin`"];
    assert_eq!(pinned.notes, start);
    verify(&pinned).unwrap();
}

#[test]
fn the_hash_depends_on_the_content_only_and_verify_sees_a_change() {
    let desk = Desk::new();
    let first = Sample::bare(&desk.path("first.git"));
    let second = Sample::bare(&desk.path("second.git"));
    let one = first.commit(&[(FILE, b"a.py", b"1")]);
    second.commit(&[(FILE, b"b.py", b"0")]);
    let two = second.commit(&[(FILE, b"a.py", b"1")]);
    let first = desk.pin(git_spec(&first.url(), &one)).unwrap();
    let second = desk.pin(git_spec(&second.url(), &two)).unwrap();
    assert_ne!(first.tree, second.tree);
    assert_eq!(first.tree_sha256, second.tree_sha256);
    std::fs::write(first.tree.join("a.py"), "2").unwrap();
    let error = verify(&first).unwrap_err();
    assert!(error.detail().unwrap().contains(&first.tree_sha256));
    verify(&second).unwrap();
}

#[test]
fn a_folder_of_a_repository_can_be_the_tree() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("mono.git"));
    let commit = sample.commit(&[(FILE, b"root.py", b""), (FILE, b"packages/a/a.py", b"")]);
    let spec = |folder: &str| {
        let SourceSpec::Git { url, commit, submodules, anonymous, .. } = git_spec(&sample.url(), &commit)
        else {
            panic!("is git")
        };
        SourceSpec::Git { url, commit, submodules, subdirectory: Some(folder.to_owned()), anonymous }
    };
    let whole = desk.pin(git_spec(&sample.url(), &commit)).unwrap();
    let part = desk.pin(spec("packages/a")).unwrap();
    assert_eq!(files(&part.tree), ["a.py"]);
    assert_ne!(part.tree, whole.tree);
    assert!(part.origin.describe().ends_with("#subdirectory=packages/a"), "{:?}", part.origin);
    let error = desk.pin(spec("packages/b")).unwrap_err();
    assert!(error.to_string().contains("has no folder `packages/b`"), "{error}");
}

#[test]
fn ends_of_lines_and_encodings_are_those_of_a_checkout_and_no_filter_runs() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("mono.git"));
    let attributes =
        b"*.csv text eol=crlf\n*.bin filter=evil\n*.vtt working-tree-encoding=UTF-16LE export-subst\n";
    let commit = sample.commit(&[
        (FILE, b".gitattributes", attributes),
        (FILE, b"packages/a/.gitattributes", b"plain.csv -text\n"),
        (FILE, b"packages/a/data.csv", b"a,b\n1,2\n"),
        (FILE, b"packages/a/plain.csv", b"a\n"),
        (FILE, b"packages/a/x.bin", b"$Format:%H$\n"),
        (FILE, b"packages/a/x.vtt", b"ab"),
    ]);
    let whole = git_spec(&sample.url(), &commit);
    let SourceSpec::Git { url, commit, submodules, anonymous, .. } = whole.clone() else { panic!("is git") };
    let folder = Some("packages/a".to_owned());
    let part = SourceSpec::Git { url, commit, submodules, subdirectory: folder, anonymous };
    for (spec, inside) in [(whole, "packages/a"), (part, "")] {
        let pinned = desk.pin(spec).unwrap();
        let read = |name: &str| std::fs::read(pinned.tree.join(inside).join(name)).unwrap();
        assert_eq!(read("data.csv"), b"a,b\r\n1,2\r\n");
        assert_eq!(read("plain.csv"), b"a\n");
        assert_eq!(read("x.bin"), b"$Format:%H$\n");
        assert_eq!(read("x.vtt"), b"a\0b\0");
        verify(&pinned).unwrap();
    }
}

#[test]
fn submodules_are_followed_by_relative_address_and_into_each_other() {
    let desk = Desk::new();
    let inner = Sample::bare(&desk.path("served/inner.git"));
    let middle = Sample::bare(&desk.path("served/middle.git"));
    let outer = Sample::bare(&desk.path("served/outer.git"));
    let server = Server::git(&desk.path("served"), None);
    let pinned = inner.commit(&[(FILE, b"inner.py", b"old")]);
    inner.commit(&[(FILE, b"inner.py", b"new")]);
    let middle_commit = middle.commit(&[
        (FILE, b".gitmodules", modules("deep", "../inner.git").as_bytes()),
        (SUBMODULE, b"deep", pinned.as_bytes()),
        (FILE, b"middle.py", b""),
    ]);
    let outer_commit = outer.commit(&[
        (FILE, b".gitmodules", modules("lib/middle", &server.url("middle.git")).as_bytes()),
        (SUBMODULE, b"lib/middle", middle_commit.as_bytes()),
    ]);
    let found = desk.pin_with(git_spec(&server.url("outer.git/"), &outer_commit), &Everything).unwrap();
    assert_eq!(
        files(&found.tree),
        [".gitmodules", "lib/middle/.gitmodules", "lib/middle/deep/inner.py", "lib/middle/middle.py"]
    );
    assert_eq!(std::fs::read(found.tree.join("lib/middle/deep/inner.py")).unwrap(), b"old");
    let commit = CommitSha::new(&outer_commit).unwrap();
    let (url, subdirectory, anonymous) = (outer.url(), None, false);
    let without =
        desk.pin(SourceSpec::Git { url, commit, submodules: false, subdirectory, anonymous }).unwrap();
    assert_eq!(files(&without.tree), [".gitmodules"]);
    assert_eq!(without.notes, ["submodule `lib/middle` left out (submodules = false)"]);
}

/// A `.gitmodules` with one submodule.
pub fn modules(path: &str, url: &str) -> String {
    format!("[submodule \"m\"]\n\tpath = {path}\n\turl = {url}\n")
}

#[test]
fn a_submodule_without_an_address_is_an_empty_folder() {
    let desk = Desk::new();
    let outer = Sample::bare(&desk.path("outer.git"));
    let gone = "0123456789012345678901234567890123456789";
    let modules = b"[submodule \"m\"]\n\tpath = other\n\turl = ../gone.git\n".as_slice();
    let without = outer.commit(&[(FILE, b"a.py", b""), (SUBMODULE, b"stray", gone.as_bytes())]);
    let unnamed = outer.commit(&[(FILE, b".gitmodules", modules), (SUBMODULE, b"stray", gone.as_bytes())]);
    for commit in [without, unnamed] {
        let pinned = desk.pin(git_spec(&outer.url(), &commit)).unwrap();
        assert!(std::fs::read_dir(pinned.tree.join("stray")).unwrap().next().is_none());
        assert_eq!(pinned.notes, ["submodule `stray` is empty: .gitmodules has no address for it"]);
    }
}

#[test]
fn a_submodule_that_cannot_be_had_is_named() {
    let desk = Desk::new();
    let outer = Sample::bare(&desk.path("outer.git"));
    let gone = "0123456789012345678901234567890123456789";
    let server = Server::git(&desk.path("served"), None);
    let modules = modules("lib/m", &server.url("gone.git"));
    let commit =
        outer.commit(&[(FILE, b".gitmodules", modules.as_bytes()), (SUBMODULE, b"lib/m", gone.as_bytes())]);
    let error = desk.pin_with(git_spec(&outer.url(), &commit), &Everything).unwrap_err();
    assert!(error.to_string().starts_with(&format!("submodule `lib/m` at {gone}: cannot fetch")), "{error}");
    assert!(error.to_string().contains("gone.git"), "{error}");
    assert!(error.hint().unwrap().contains("submodules = false"));
    assert_eq!(files(&desk.cache.dir("sources").unwrap()), [""; 0], "nothing half is left");
}

#[test]
fn a_missing_commit_and_a_tag_object_are_explained() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("demo.git"));
    let commit = sample.commit(&[(FILE, b"a.py", b"")]);
    let tag = sample.tag("v1", &commit);
    let missing = "1".repeat(40);
    let error = desk.pin(git_spec(&sample.url(), &missing)).unwrap_err();
    assert!(error.to_string().contains(&missing) && error.to_string().contains("demo.git"), "{error}");
    assert!(error.hint().unwrap().contains("force-pushed"));
    let error = desk.pin(git_spec(&sample.url(), &tag)).unwrap_err();
    assert_eq!(error.fault(), Fault::Usage);
    assert!(error.hint().unwrap().contains(&commit));
    let error = desk.pin(git_spec("file:///nowhere/at/all", &commit)).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

#[test]
fn what_a_killed_build_left_is_made_anew() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("demo.git"));
    let commit = sample.commit(&[(FILE, b"a.py", b"1")]);
    let spec = || git_spec(&sample.url(), &commit);
    let pinned = desk.pin(spec()).unwrap();
    let record = pinned.tree.with_file_name("pinned.json");
    for damage in ["", "{\"half\":"] {
        std::fs::write(pinned.tree.join("stray.py"), "").unwrap();
        std::fs::write(&record, damage).unwrap();
        if damage.is_empty() {
            std::fs::remove_file(&record).unwrap();
            assert_eq!(desk.pin(spec()).unwrap(), pinned);
            assert_eq!(files(&pinned.tree), ["a.py"]);
        } else {
            assert_eq!(desk.pin(spec()).unwrap(), pinned, "a damaged record counts as none");
        }
    }
}

#[test]
fn a_server_that_hands_out_commits_sends_only_the_pinned_one() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("served/demo.git"));
    let old = sample.commit(&[(FILE, b"a.py", b"oldest")]);
    let pinned_commit = sample.commit(&[(FILE, b"a.py", b"pinned")]);
    sample.commit(&[(FILE, b"a.py", b"newest")]);
    sample.repository.config().unwrap().set_bool("uploadpack.allowAnySHA1InWant", true).unwrap();
    let server = Server::git(&desk.path("served"), None);
    let pinned = desk.pin(git_spec(&server.url("demo.git"), &pinned_commit)).unwrap();
    assert_eq!(std::fs::read(pinned.tree.join("a.py")).unwrap(), b"pinned");
    let mut objects = 0;
    fetched(&desk)
        .odb()
        .unwrap()
        .foreach(|_| {
            objects += 1;
            true
        })
        .unwrap();
    assert_eq!(objects, 3, "one commit, one tree, one file");

    let connections = server.connections();
    assert_eq!(desk.pin(git_spec(&server.url("demo.git"), &pinned_commit)).unwrap(), pinned);
    assert_eq!(server.connections(), connections, "the second time nothing is asked");

    desk.pin(git_spec(&server.url("demo.git"), &old)).unwrap();
    let error = desk.pin(git_spec(&server.url("demo.git"), &"2".repeat(40))).unwrap_err();
    assert!(error.to_string().contains("has no commit 2222"), "{error}");
}

#[test]
fn a_server_that_refuses_single_commits_is_asked_for_everything() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("served/demo.git"));
    let old = sample.commit(&[(FILE, b"a.py", b"old")]);
    let new = sample.commit(&[(FILE, b"a.py", b"new")]);
    let server = Server::git(&desk.path("served"), None);
    let pinned = desk.pin(git_spec(&server.url("demo.git"), &old)).unwrap();
    assert_eq!(std::fs::read(pinned.tree.join("a.py")).unwrap(), b"old");
    assert!(desk.said.borrow().iter().any(|text| text.contains("fetching all branches and tags")));
    let connections = server.connections();
    desk.pin(git_spec(&server.url("demo.git"), &new)).unwrap();
    assert_eq!(server.connections(), connections, "another pin of what was fetched needs no network");
    let later = sample.commit(&[(FILE, b"a.py", b"later")]);
    desk.pin(git_spec(&server.url("demo.git"), &later)).unwrap();
    let error = desk.pin(git_spec(&server.url("demo.git"), &"2".repeat(40))).unwrap_err();
    assert!(error.to_string().contains("has no commit 2222"), "{error}");
}

#[test]
fn credentials_work_and_are_nowhere_to_be_found_afterwards() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("served/demo.git"));
    let commit = sample.commit(&[(FILE, b"demo.py", b"")]);
    let server = Server::git(&desk.path("served"), Some("me:s3cr3t@x"));
    let url = server.url_with("me:s3cr3t%40x", "demo.git?access_token=t0k3n");
    let pinned = desk.pin(git_spec(&url, &commit)).unwrap();
    assert_eq!(pinned.origin, Origin::Git { url: server.url("demo.git") });
    let url = server.url_with("me:s3cr3t%40x", "demo.git");
    let pinned = desk.pin(git_spec(&url, &commit)).unwrap();
    assert_eq!(files(&pinned.tree), ["demo.py"]);
    assert_eq!(pinned.origin, Origin::Git { url: server.url("demo.git") });
    assert_eq!(resolve_reference(&url, "main").unwrap().as_deref(), Some(commit.as_str()));
    assert_eq!(
        desk.pin(git_spec(&server.url("demo.git"), &commit)).unwrap(),
        pinned,
        "the key has no login in it"
    );

    let other = Sample::bare(&desk.path("served/other.git")).commit(&[(FILE, b"a.py", b"")]);
    let wrong = server.url_with("me:wr0ng", "other.git");
    let error = desk.pin(git_spec(&wrong, &other)).unwrap_err();
    assert!(error.hint().unwrap().contains("credential helper"), "{error:?}");
    let reference_error = resolve_reference(&wrong, "main").unwrap_err();
    let shown = format!("{error:?} {reference_error:?} {:?} {pinned:?}", desk.said.borrow());
    for secret in ["s3cr3t", "wr0ng", "t0k3n", "helper-secret"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
        assert!(!holds(desk.cache.root(), secret), "{secret} is in the cache");
    }
}

#[test]
fn a_credential_helper_is_asked_when_the_address_has_no_login() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("served/demo.git"));
    let commit = sample.commit(&[(FILE, b"a.py", b"")]);
    let server = Server::git(&desk.path("served"), Some(HELPER_LOGIN));
    keep_login(server.port);
    desk.pin(git_spec(&server.named("demo.git"), &commit)).unwrap();
    assert!(helper_calls().contains(&Some(format!("localhost:{}", server.port))));
    assert!(!holds(desk.cache.root(), "helper-secret"));
}

#[test]
fn a_token_as_the_only_user_is_tried_after_the_helper() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("served/demo.git"));
    let commit = sample.commit(&[(FILE, b"a.py", b"")]);
    let server = Server::git(&desk.path("served"), Some("t0k3n:"));
    desk.pin(git_spec(&server.url_with("t0k3n", "demo.git"), &commit)).unwrap();
    assert!(!holds(desk.cache.root(), "t0k3n"));
}

#[test]
fn branches_tags_and_short_hashes_stand_for_a_full_one() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("served/demo.git"));
    let old = sample.commit(&[(FILE, b"a.py", b"old")]);
    let hidden = sample.commit(&[(FILE, b"a.py", b"hidden")]);
    let new = sample.commit(&[(FILE, b"a.py", b"new")]);
    let tag = sample.tag("v1", &old);
    let is_old = |url: &str, text: &str| resolve_reference(url, text).unwrap() == Some(old.clone());
    let local = desk.path("served/demo.git").display().to_string();
    for url in [sample.url(), local] {
        assert_eq!(resolve_reference(&url, "main").unwrap(), Some(new.clone()));
        assert!(is_old(&url, "v1") && is_old(&url, &old[..8]) && is_old(&url, &tag[..12]));
        assert_eq!(resolve_reference(&url, "nothing").unwrap(), None);
        let tree = sample.repository.head().unwrap().peel_to_tree().unwrap().id().to_string();
        assert_eq!(resolve_reference(&url, &tree[..12]).unwrap(), None, "a tree is no commit");
    }
    let server = Server::git(&desk.path("served"), None);
    let url = server.url("demo.git");
    assert_eq!(resolve_reference(&url, "main").unwrap(), Some(new.clone()));
    assert_eq!(resolve_reference(&url, &new[..8]).unwrap(), Some(new.clone()));
    assert_eq!(resolve_reference(&url, "HEAD").unwrap(), Some(new));
    assert!(is_old(&url, "v1") && is_old(&url, "refs/tags/v1"));
    assert_eq!(resolve_reference(&url, &hidden[..8]).unwrap(), None, "not advertised");
}

#[test]
fn a_server_that_is_not_there_is_named_with_a_hint() {
    let desk = Desk::new();
    Sample::bare(&desk.path("x.git"));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/demo.git", listener.local_addr().unwrap().port());
    drop(listener);
    let error = desk.pin(git_spec(&url, &"3".repeat(40))).unwrap_err();
    assert!(error.to_string().contains(&url), "{error}");
    assert!(error.hint().is_some(), "{error:?}");
}

/// The one repository that was fetched into the cache.
fn fetched(desk: &Desk) -> git2::Repository {
    let folder = desk.cache.dir("git").unwrap();
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut names = names;
    let path = names.find(|path| path.is_dir()).unwrap();
    git2::Repository::open_bare(path).unwrap()
}

/// A tree whose build asks git for its version.
const ASKS: &[u8] = b"[build-system]\nrequires = [\"setuptools-scm\"]\n";

fn found(name: &str, distance: u64) -> TagSearch {
    TagSearch::Found(NearestTag { name: name.to_owned(), distance })
}

#[test]
fn the_nearest_tag_of_a_remote_is_found_with_as_little_history_as_it_takes() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("served/demo.git"));
    let commits: Vec<String> = (0..80)
        .map(|number| sample.commit(&[(FILE, b"pyproject.toml", ASKS), (FILE, b"n", &[number])]))
        .collect();
    sample.repository.config().unwrap().set_bool("uploadpack.allowAnySHA1InWant", true).unwrap();
    let server = Server::git(&desk.path("served"), None);
    let url = server.url("demo.git");
    let pin = |number: usize| desk.pin(git_spec(&url, &commits[number])).unwrap();
    assert_eq!(pin(79).tag, TagSearch::NotFound, "there is no tag at all");
    assert!(fetched(&desk).is_shallow());

    sample.tag("v1.0", &commits[2]);
    sample.tag("v2.0", &commits[74]);
    assert_eq!(pin(74).tag, found("v2.0", 0));
    let has = |number: usize| fetched(&desk).find_commit(Oid::from_str(&commits[number]).unwrap()).is_ok();
    assert!(!has(73), "a tag of the commit itself needs no history");
    assert_eq!(pin(78).tag, found("v2.0", 4));
    assert!(has(60) && !has(5), "so much history as was needed");
    assert_eq!(pin(73).tag, found("v1.0", 71));

    let connections = server.connections();
    assert_eq!(pin(73).tag, found("v1.0", 71));
    assert_eq!(server.connections(), connections, "what is known is not asked for again");
}

#[test]
fn tags_are_looked_for_only_where_the_build_asks_and_older_records_learn_of_them() {
    let desk = Desk::new();
    let sample = Sample::bare(&desk.path("demo.git"));
    let plain = sample.commit(&[(FILE, b"pyproject.toml", b"[build-system]\nrequires = ['flit_core']\n")]);
    sample.tag("v1.0", &plain);
    let asks = sample.commit(&[(FILE, b"pyproject.toml", ASKS)]);
    let pinned = desk.pin(git_spec(&sample.url(), &plain)).unwrap();
    assert_eq!(pinned.tag, TagSearch::NotNeeded);
    let record =
        |pinned: &Pinned| std::fs::read_to_string(pinned.tree.with_file_name("pinned.json")).unwrap();
    assert!(!record(&pinned).contains("\"tag\""), "records of other trees stay as they were");

    let pinned = desk.pin(git_spec(&sample.url(), &asks)).unwrap();
    assert_eq!(pinned.tag, found("v1.0", 1));
    let old = Pinned { tag: TagSearch::NotNeeded, ..pinned.clone() };
    std::fs::write(pinned.tree.with_file_name("pinned.json"), gistmill::store::seal(&old).unwrap()).unwrap();
    assert_eq!(desk.pin(git_spec(&sample.url(), &asks)).unwrap(), pinned);
    assert!(record(&pinned).contains("v1.0"));
}
