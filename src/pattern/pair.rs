//! A pair of trees of one clone.

use std::collections::BTreeMap;
use std::path::Path;

use git2::{ObjectType, Repository};

use crate::beneath::{Folder, Kind};
use crate::error::{Error, Result};
use crate::family::codetaste::diff::{Changed, is_ignored};
use crate::family::codetaste::funnel::is_python;
use crate::history;
use crate::interrupt;
use crate::record::patch::Patch;
use crate::redact::quote;
use crate::source;

/// Larger files are refused, not passed over: what is not looked through would hide work.
const LARGEST: usize = 64 << 20;
/// What a tree may come to: Python in bytes, files and folders, folders within each other.
const MOST_BYTES: usize = 2 << 30;
const MOST_ENTRIES: usize = 1_000_000;
const DEEPEST: usize = 128;

/// Two commits of a clone.
pub(crate) struct Pair {
    repository: Repository,
    pub base: String,
    pub golden: String,
}

/// Which files of a tree are looked through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reach {
    #[default]
    Python,
    All,
}

/// The files of a tree that are looked through: regular ones that are not below a folder of what is built or installed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    /// Python.
    pub files: BTreeMap<String, String>,
    /// All others, where they are looked through.
    pub others: BTreeMap<String, String>,
    pub reach: Reach,
}

impl Tree {
    /// That of a folder.
    ///
    /// # Errors
    /// What cannot be read, and files that are too large.
    pub(crate) fn of_folder(folder: &Folder, reach: Reach) -> Result<Self> {
        let (mut tree, mut bytes) = (Tree { reach, ..Tree::default() }, 0);
        for entry in folder.walk()? {
            let Some(path) = entry.path.to_str() else { continue };
            if entry.kind != Kind::File || !tree.reach.takes(path) || path.starts_with(".git/") {
                continue;
            }
            let content = folder.read(&entry.path, LARGEST as u64)?;
            bytes += content.len();
            if bytes > MOST_BYTES {
                return Err(Error::repository("the tree has more than 2 GiB to look through"));
            }
            tree.put(path, text_of(&content));
        }
        Ok(tree)
    }

    /// The tree with a patch laid over it.
    #[must_use]
    pub(crate) fn with(&self, patch: &Patch) -> Self {
        let mut tree = self.clone();
        for (path, bytes) in patch.files().filter(|(path, _)| self.reach.takes(path)) {
            match bytes {
                Some(bytes) => tree.put(path, text_of(bytes)),
                None => drop(tree.kind_of(path).remove(path)),
            }
        }
        tree
    }

    /// Whether it has no file.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.others.is_empty()
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).or_else(|| self.others.get(path)).map(String::as_str)
    }

    fn put(&mut self, path: &str, text: String) {
        self.kind_of(path).insert(path.to_owned(), text);
    }

    fn kind_of(&mut self, path: &str) -> &mut BTreeMap<String, String> {
        if is_python(path) { &mut self.files } else { &mut self.others }
    }

    /// What a patch puts where no other file is looked through: below folders of what is built or installed.
    pub(crate) fn aside(patch: &Patch, reach: Reach) -> Self {
        let mut tree = Tree { reach, ..Tree::default() };
        for (path, bytes) in patch.files().filter(|(path, _)| reach.is_of(path) && is_ignored(path)) {
            if let Some(bytes) = bytes {
                tree.put(path, text_of(bytes));
            }
        }
        tree
    }
}

impl Reach {
    fn is_of(self, path: &str) -> bool {
        self == Reach::All || is_python(path)
    }

    fn takes(self, path: &str) -> bool {
        self.is_of(path) && !is_ignored(path)
    }
}

impl Pair {
    /// `CLONE@GOLDEN` or `CLONE@BASE..GOLDEN` with full hashes; the base is the first parent where none is named.
    ///
    /// # Errors
    /// Usage errors: no such form, a short hash or the name of a branch, a commit that the clone does not have.
    pub(crate) fn open(text: &str) -> Result<Self> {
        let (clone, commits) = text.rsplit_once('@').ok_or_else(|| {
            Error::usage(format!("{text} is not a pair"))
                .with_hint("CLONE@GOLDEN or CLONE@BASE..GOLDEN, with full hashes")
        })?;
        let repository = source::open_clone(Path::new(clone))?;
        let (base, golden) = match commits.split_once("..") {
            Some((base, golden)) => {
                (Some(full(&repository, clone, base)?), full(&repository, clone, golden)?)
            }
            None => (None, full(&repository, clone, commits)?),
        };
        let parent = || {
            let parent = repository.find_commit(golden).and_then(|commit| commit.parent_id(0));
            parent.map_err(|_| {
                Error::usage(format!("{golden} has no parent")).with_hint("name the base: CLONE@BASE..GOLDEN")
            })
        };
        let base = base.map_or_else(parent, Ok)?;
        if base == golden {
            return Err(Error::usage(format!("base and golden are both {golden}"))
                .with_hint("a pair is two commits, CLONE@BASE..GOLDEN"));
        }
        Ok(Pair { base: base.to_string(), golden: golden.to_string(), repository })
    }

    /// Base and golden tree.
    ///
    /// # Errors
    /// What cannot be read, and a file that is too large.
    pub(crate) fn trees(&self, reach: Reach) -> Result<(Tree, Tree)> {
        source::bounded(|| Ok((self.tree(&self.base, reach)?, self.tree(&self.golden, reach)?)))
    }

    /// The lines that the golden patch changes.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) fn changed(&self) -> Result<Changed> {
        history::changed(&self.repository, &self.base, &self.golden)
    }

    fn tree(&self, commit: &str, reach: Reach) -> Result<Tree> {
        let unreadable = |error: git2::Error| {
            Error::repository(format!("the tree of {commit} cannot be read"))
                .with_detail(error.message().to_owned())
        };
        let id = git2::Oid::from_str(commit).map_err(unreadable)?;
        let root = self.repository.find_commit(id).and_then(|commit| commit.tree()).map_err(unreadable)?;
        let too_much = |what: &str| {
            Error::repository(format!("the tree of {commit} has more than {what}"))
                .with_hint("name another pair")
        };
        let (mut entries, mut left) = (Vec::new(), vec![(String::new(), root)]);
        let mut looked_at = 0;
        while let Some((folder, tree)) = left.pop() {
            interrupt::check()?;
            for entry in &tree {
                looked_at += 1;
                if looked_at > MOST_ENTRIES {
                    return Err(too_much("a million files and folders"));
                }
                let path = format!("{folder}{}", String::from_utf8_lossy(entry.name_bytes()));
                if entry.kind() == Some(ObjectType::Tree) {
                    if folder.matches('/').count() >= DEEPEST {
                        return Err(too_much("128 folders within each other"));
                    }
                    let inner = self.repository.find_tree(entry.id()).map_err(unreadable)?;
                    left.push((path + "/", inner));
                    continue;
                }
                let is_regular =
                    entry.kind() == Some(ObjectType::Blob) && entry.filemode() & 0o170_000 == 0o100_000;
                if is_regular && reach.takes(&path) {
                    entries.push((path, entry.id()));
                }
            }
        }
        let (mut tree, mut bytes) = (Tree { reach, ..Tree::default() }, 0);
        for (path, id) in entries {
            let blob = self.repository.find_blob(id).map_err(unreadable)?;
            if blob.size() > LARGEST {
                return Err(Error::repository(format!("{path} of {commit} is larger than 64 MiB"))
                    .with_hint("name another pair"));
            }
            bytes += blob.size();
            if bytes > MOST_BYTES {
                return Err(too_much("2 GiB to look through"));
            }
            tree.put(&path, text_of(blob.content()));
        }
        Ok(tree)
    }
}

/// Text of any bytes, line for line.
fn text_of(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes)
        .map_or_else(|_| bytes.iter().map(|byte| char::from(*byte)).collect(), str::to_owned)
}

fn full(repository: &Repository, clone: &str, hash: &str) -> Result<git2::Oid> {
    let is_full = hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = git2::Oid::from_str(hash).ok().filter(|_| is_full);
    match id {
        Some(id) if repository.find_commit(id).is_ok() => Ok(id),
        Some(_) => Err(Error::usage(format!("{clone} has no commit {hash}"))
            .with_hint("`git fetch --unshallow` in it fetches what a shallow clone lacks")),
        None => {
            let meant = repository.revparse_single(hash).and_then(|object| object.peel_to_commit());
            let refused = Error::usage(format!("{} is not a full hash", quote(hash)));
            Err(match meant {
                Ok(commit) => refused.with_hint(format!("it means {} now", commit.id())),
                Err(_) => refused.with_hint("a full hash has 40 digits"),
            })
        }
    }
}
