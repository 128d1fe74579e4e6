//! What a work tree holds beyond its commit, and which files belong to it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{IndexEntry, Oid, Repository, Status, StatusOptions};

use super::super::git::own;
use super::super::tree::{self, Entry};
use crate::beneath::{self, Folder};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::redact::redact;

const GITLINK: u32 = 0o160_000;

/// An error of libgit2 about a local directory.
pub(super) fn failed(directory: &Path, error: &git2::Error) -> Error {
    Error::repository(format!(
        "cannot read the repository {}: {}",
        directory.display(),
        redact(error.message())
    ))
}

/// The path of an index entry, which need not be UTF-8.
pub(super) fn entry_path(entry: &IndexEntry) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&entry.path))
}

/// A path whose state differs from the commit.
pub(super) struct Change {
    pub path: PathBuf,
    /// Whether the commit does not have it.
    pub is_new: bool,
}

/// What differs from the commit below a directory of the repository; paths are relative to it.
///
/// # Errors
/// When the work tree or the index cannot be read.
pub(super) fn changes(repository: &Repository, below: &Path) -> Result<Vec<Change>> {
    let inside = |(path, status): (PathBuf, Status)| {
        let path = path.strip_prefix(below).ok()?.to_owned();
        Some(Change { path, is_new: status.intersects(Status::WT_NEW | Status::INDEX_NEW) })
    };
    Ok(statuses(repository)?.into_iter().filter_map(inside).collect())
}

/// When a commit was made, in seconds since 1970.
///
/// # Errors
/// When there is no such commit.
pub(super) fn commit_time(repository: &Repository, commit: &str) -> Result<i64> {
    let commit = Oid::from_str(commit).and_then(|id| repository.find_commit(id));
    commit.map(|commit| commit.time().seconds()).map_err(|error| failed(repository.path(), &error))
}

fn statuses(repository: &Repository) -> Result<Vec<(PathBuf, Status)>> {
    if repository.is_bare() {
        return Ok(Vec::new());
    }
    let root = root(repository)?;
    own::look_over(&root)?;
    let folder = Folder::open(&root)?;
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).include_ignored(false);
    // libgit2 looks into submodules by itself, so they are looked at first.
    for (path, mode) in indexed(repository, &root)? {
        if mode != GITLINK {
            continue;
        }
        match folder.look(&path)?.map(|found| found.kind) {
            Some(beneath::Kind::Folder) => drop(own::open(&root.join(&path))?),
            // It would follow a link.
            _ => drop(options.exclude_submodules(true)),
        }
    }
    let statuses =
        repository.statuses(Some(&mut options)).map_err(|error| failed(repository.path(), &error))?;
    let path = |entry: &git2::StatusEntry<'_>| PathBuf::from(OsStr::from_bytes(entry.path_bytes()));
    Ok(statuses.iter().map(|entry| (path(&entry), entry.status())).collect())
}

/// Paths of the index with their modes. The index came with the repository, and may say anything.
///
/// # Errors
/// The repository's: it cannot be read, or has a path that git would not write.
fn indexed(repository: &Repository, root: &Path) -> Result<Vec<(PathBuf, u32)>> {
    let index = repository.index().map_err(|error| failed(root, &error))?;
    let entries = index.iter().map(|entry| (entry_path(&entry), entry.mode));
    let plain = entries.map(|(path, mode)| match tree::checked(&path) {
        Ok(_) => Ok((path, mode)),
        Err(_) => Err(Error::repository(format!(
            "the git index of {} has `{}`, which is not a place in its work tree",
            root.display(),
            path.display()
        ))
        .with_hint("clone the repository anew, and name the clone")),
    });
    plain.collect()
}

/// The files of a work tree below a directory of the repository, with notes about what is left out: tracked files, also
/// of submodules, and untracked ones that are not ignored. Only what is in the work tree itself counts: nothing that a
/// link leads to.
///
/// # Errors
/// When the work tree or the index cannot be read.
pub(super) fn work_tree(repository: &Repository, below: &Path) -> Result<(Vec<Entry>, Vec<String>)> {
    let mut files = BTreeSet::new();
    let mut notes = Vec::new();
    list(repository, Path::new(""), &mut files, &mut notes)?;
    let directory = root(repository)?.join(below);
    let folder = Folder::open(&directory)?;
    let (mut entries, mut bounds) = (Vec::new(), tree::Bounds::TREE);
    for path in files.iter().filter_map(|path| path.strip_prefix(below).ok()) {
        interrupt::check()?;
        entries.extend(tree::look(&folder, path, &mut bounds)?);
    }
    tree::sort(&mut entries);
    Ok((entries, notes))
}

/// The clone of a submodule, where it is checked out: in a folder of the work tree, not behind a link.
fn inner(folder: &Folder, root: &Path, path: &Path) -> Result<Option<Repository>> {
    match folder.look(path)?.map(|found| found.kind) {
        Some(beneath::Kind::Folder) => own::open(&root.join(path)),
        _ => Ok(None),
    }
}

fn root(repository: &Repository) -> Result<PathBuf> {
    let root = repository.workdir().ok_or_else(|| Error::internal("a bare repository has no work tree"))?;
    Ok(root.to_owned())
}

fn list(
    repository: &Repository,
    prefix: &Path,
    files: &mut BTreeSet<PathBuf>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let root = root(repository)?;
    let folder = Folder::open(&root)?;
    for (path, mode) in indexed(repository, &root)? {
        if mode == GITLINK {
            match inner(&folder, &root, &path)? {
                Some(inner) => list(&inner, &prefix.join(&path), files, notes)?,
                None => {
                    notes.push(format!("submodule `{}` is not checked out", prefix.join(&path).display()));
                }
            }
        } else {
            files.insert(prefix.join(path));
        }
    }
    for (path, status) in statuses(repository)? {
        if !status.contains(Status::WT_NEW) {
            continue;
        }
        if path.as_os_str().as_bytes().ends_with(b"/") {
            notes.push(format!("`{}` left out: a repository of its own", prefix.join(path).display()));
        } else {
            files.insert(prefix.join(path));
        }
    }
    Ok(())
}
