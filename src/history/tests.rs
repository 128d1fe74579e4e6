//! Made-up histories, from commits to causes.

use std::collections::BTreeMap;

use git2::{Commit, FileMode, Repository, Signature, Time, TreeBuilder};

use super::*;

type Files = BTreeMap<String, String>;

struct Made {
    folder: tempfile::TempDir,
    repository: Repository,
}

impl Made {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path()).unwrap();
        Made { folder, repository }
    }

    fn commit(&self, message: &str, files: &Files, parents: &[Oid], at: i64) -> Oid {
        let mut tree: TreeBuilder<'_> = self.repository.treebuilder(None).unwrap();
        for (name, text) in files {
            let blob = self.repository.blob(text.as_bytes()).unwrap();
            tree.insert(name, blob, FileMode::Blob.into()).unwrap();
        }
        let tree = self.repository.find_tree(tree.write().unwrap()).unwrap();
        let parents: Vec<Commit<'_>> =
            parents.iter().map(|id| self.repository.find_commit(*id).unwrap()).collect();
        let who = Signature::new("a", "a@b", &Time::new(at, 0)).unwrap();
        let id = self
            .repository
            .commit(None, &who, &who, message, &tree, &parents.iter().collect::<Vec<_>>())
            .unwrap();
        self.repository.reference("refs/heads/main", id, true, "").unwrap();
        self.repository.set_head("refs/heads/main").unwrap();
        id
    }

    fn search(&self, asked: &Asked) -> Vec<(String, String)> {
        let clone = ClonePlace { slug: RepoSlug::new("a/b").unwrap(), path: self.folder.path().to_owned() };
        let rows = search(&[clone], asked, &lists(None).unwrap(), None).unwrap();
        let cause = |row: &Row| row.cause.map_or_else(|| "kept".to_owned(), |cause| cause.to_string());
        rows.iter().map(|row| (row.subject.clone(), cause(row))).collect()
    }
}

fn files(count: usize, text: &str) -> Files {
    (0..count).map(|at| (format!("m{at}.py"), format!("# {at}\n{text}\n"))).collect()
}

fn asked() -> Asked {
    let limits = Limits { min_files: 3, min_code_files: 2, ..Limits::default() };
    Asked { limits, merges: true, ..Asked::default() }
}

fn named(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
}

#[test]
fn a_merge_is_a_candidate_in_the_place_of_what_it_merges() {
    let made = Made::new();
    let root = made.commit("First", &files(4, "a"), &[], 1);
    let inner = made.commit("Rename inner", &files(4, "b"), &[root], 2);
    let other = made.commit("Refactor and fix", &files(4, "c"), &[root], 3);
    let merge = made.commit("Refactor by a merge", &files(4, "b"), &[other, inner], 4);
    made.commit("Rename one", &files(3, "b"), &[merge], 5);
    assert_eq!(
        made.search(&asked()),
        named(&[
            ("Refactor by a merge", "kept"),
            ("Rename one", "few-files"),
            ("Refactor and fix", "strong-negative"),
            ("Rename inner", "inside-merge"),
            ("First", "no-parent"),
        ])
    );
    let alone = Asked { merges: false, since: Some(2), until: Some(5), ..asked() };
    let found = made.search(&alone);
    assert_eq!(found, named(&[("Rename inner", "kept"), ("Refactor and fix", "strong-negative")]));
}

#[test]
fn numbers_are_those_of_the_diff_to_the_first_parent() {
    let made = Made::new();
    let long = |at: usize| {
        let lines: Vec<String> = (0..20).map(|line| format!("line {at} {line}\n")).collect();
        lines.concat()
    };
    let mut before = files(2, "x");
    before.insert("old.py".to_owned(), long(1));
    before.insert("gone.txt".to_owned(), long(2));
    let root = made.commit("First", &before, &[], 1);
    let mut after = before.clone();
    let moved = after.remove("old.py").unwrap();
    after.insert("test_new.py".to_owned(), moved.replace("line 1 3\n", "line one three\n"));
    after.remove("gone.txt");
    after.insert("made.md".to_owned(), "a\nb\n".to_owned());
    after.insert("m0.py".to_owned(), "# 0\ny\n".to_owned());
    made.commit("Refactor: move it", &after, &[root], 2);
    let clone = ClonePlace { slug: RepoSlug::new("a/b").unwrap(), path: made.folder.path().to_owned() };
    let rows = search(&[clone], &asked(), &lists(None).unwrap(), None).unwrap();
    let row = &rows[0];
    assert_eq!((row.cause, row.base.as_deref()), (None, Some(root.to_string().as_str())));
    let shape = &row.shape;
    assert_eq!((shape.files, shape.code_files, shape.python_files, shape.test_files), (4, 2, 2, 1));
    let expected =
        Changes { lines_added: 4, lines_removed: 22, created: 1, deleted: 1, modified: 1, moved: 1 };
    assert_eq!(row.changes, Some(expected));
    let ratio = row.gzip_ratio.unwrap();
    assert!((0.1..0.9).contains(&ratio), "{ratio}");
}

#[test]
fn a_shallow_clone_is_refused_with_the_way_out() {
    let made = Made::new();
    let id = made.commit("First", &files(1, "a"), &[], 1);
    std::fs::write(made.folder.path().join("shallow"), format!("{id}\n")).unwrap();
    let error = open(made.folder.path()).err().expect("is shallow");
    assert!(error.to_string().contains("is a shallow clone"), "{error}");
    assert!(error.hint().unwrap().contains("--unshallow"));
}
