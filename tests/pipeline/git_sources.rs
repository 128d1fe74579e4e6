//! Repositories by `git = "file://…"`.

use std::path::{Path, PathBuf};

use git2::{IndexAddOption, Oid, Repository, Signature, Time};

use super::determinism::assert_same;
use crate::common::Bench;
use crate::common::dataset::texts;

/// Makes a repository of a tree's files: one commit on `main`, then one more that breaks everything.
fn commit_twice(tree: &Path) -> (Oid, Oid) {
    let repository = Repository::init(tree).expect("a repository can be made");
    repository.set_head("refs/heads/main").expect("the branch can be named");
    let first = commit(&repository, "First");
    repository
        .tag_lightweight("v1", &repository.find_object(first, None).expect("is there"), false)
        .expect("a tag");
    std::fs::write(tree.join("tally.py"), "raise RuntimeError\n").expect("can be written");
    (first, commit(&repository, "Second"))
}

fn commit(repository: &Repository, message: &str) -> Oid {
    let mut index = repository.index().expect("has an index");
    index.add_all(["*"], IndexAddOption::DEFAULT, None).expect("files can be added");
    index.write().expect("the index can be written");
    let tree = repository.find_tree(index.write_tree().expect("a tree")).expect("is there");
    let person = Signature::new("A", "a@example.org", &Time::new(1_768_435_200, 0)).expect("a signature");
    let parents: Vec<_> =
        repository.head().ok().and_then(|head| head.peel_to_commit().ok()).into_iter().collect();
    let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
    repository.commit(Some("HEAD"), &person, &person, message, &tree, &parents).expect("a commit")
}

fn configure(bench: &Bench, repository: &Path, commit: &str) {
    bench.write_config(&format!(
        "[dataset]\nname = \"trees\"\nversion = \"1\"\n[screen]\nattempts = 2\n[mutation]\nmutants = 0\n[[repo]]\nslug = \"trees/small_and_good\"\n\
         git = \"file://{}\"\ncommit = \"{commit}\"\n",
        repository.display()
    ));
}

fn bench() -> (Bench, PathBuf, Oid, Oid) {
    let bench = Bench::new();
    let tree = bench.tree("small_and_good");
    let (first, second) = commit_twice(&tree);
    (bench, tree, first, second)
}

#[test]
fn the_pinned_commit_is_built_and_needs_its_origin_only_once() {
    let (bench, tree, first, _) = bench();
    configure(&bench, &tree, &first.to_string());
    bench.build(&[]).with_code(0);
    let instances = bench.dataset().instances();
    assert_eq!(instances.len(), 3, "the second commit's broken module was not taken");
    for row in &instances {
        assert_eq!(row["commit"], first.to_string());
        assert_eq!(row["source"], "file:///…/small_and_good", "folders of this machine are private");
        assert!(texts(&row["files"]).contains(&"tally.py"));
    }
    let output = bench.path().join("output");
    std::fs::rename(&output, bench.path().join("earlier")).expect("can be moved");
    std::fs::rename(&tree, bench.path().join("elsewhere")).expect("can be moved");
    bench.build(&[]).with_code(0);
    assert_same(
        &bench.dataset(),
        &crate::common::dataset::Dataset::at(&bench.path().join("earlier/trees/1")),
    );
}

#[test]
fn another_commit_of_the_same_repository_is_another_tree() {
    let (bench, tree, _, second) = bench();
    configure(&bench, &tree, &second.to_string());
    bench.build(&[]).with_code(0);
    let groups = bench.dataset().rows("groups");
    let found: Vec<_> = groups.iter().map(|row| (row["group_id"].as_str(), row["cause"].as_str())).collect();
    assert_eq!(found, [(Some("tests/test_tally.py"), Some("collection-error"))]);
}

#[test]
fn a_branch_a_tag_and_a_short_hash_are_refused_with_the_full_hash() {
    let (bench, tree, first, second) = bench();
    for (written, meant) in [("main", second), ("v1", first), (&first.to_string()[..12], first)] {
        configure(&bench, &tree, written);
        let ended = bench.build(&[]).with_code(2);
        assert!(ended.stderr.contains(&meant.to_string()), "`{written}`:\n{}", ended.stderr);
    }
}

#[test]
fn a_commit_that_is_not_there_fails_in_the_source_stage() {
    let (bench, tree, ..) = bench();
    configure(&bench, &tree, &"0123456789".repeat(4));
    let ended = bench.build(&[]).with_code(1);
    assert!(ended.stdout.contains("failed trees/small_and_good (source): "), "{}", ended.stdout);
}

#[test]
fn uncommitted_changes_are_refused_unless_the_config_allows_them() {
    let (bench, tree, first, _) = bench();
    let repository = Repository::open(&tree).expect("opens");
    repository
        .reset(&repository.find_object(first, None).expect("is there"), git2::ResetType::Hard, None)
        .expect("resets");
    let text = std::fs::read_to_string(tree.join("tally.py")).expect("is there");
    std::fs::write(tree.join("tally.py"), format!("{text}\n\nUNSAVED = True\n")).expect("can be written");
    bench.write_config(
        "[dataset]\nname = \"trees\"\nversion = \"1\"\n[screen]\nattempts = 2\n[mutation]\nmutants = 0\n[[repo]]\nslug = \"trees/small_and_good\"\n\
         path = \"trees/small_and_good\"\n",
    );
    let refused = bench.build(&[]).with_code(1);
    assert!(refused.stdout.contains("uncommitted changes: `tally.py`"), "{}", refused.stdout);
    assert!(refused.stdout.contains("allow_uncommitted = true"), "{}", refused.stdout);
    let config = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
    bench.write_config(&format!("{config}allow_uncommitted = true\n"));
    bench.build(&[]).with_code(0);
    let source = bench.dataset().manifest()["sources"]["trees/small_and_good"].clone();
    assert!(source.to_string().contains("uncommitted"), "{source:#}");
    assert_eq!(bench.dataset().instances().len(), 3);
}
