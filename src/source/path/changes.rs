//! What a work tree holds beyond its commit, and which files belong to it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{IndexEntry, Oid, Repository, Status, StatusOptions};

use super::super::git::own;
use super::super::tree::{self, Entry};
use crate::error::{Error, Result};
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

/// Paths below a directory of the repository, relative to it, whose state differs from the commit.
///
/// # Errors
/// When the work tree or the index cannot be read.
pub(super) fn changes(repository: &Repository, below: &Path) -> Result<Vec<String>> {
    let found = statuses(repository)?;
    let inside = found.iter().filter_map(|(path, _)| path.strip_prefix(below).ok());
    Ok(inside.map(|path| path.display().to_string()).collect())
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
    // libgit2 looks into submodules by itself, so they are looked at first.
    let index = repository.index().map_err(|error| failed(&root, &error))?;
    for entry in index.iter().filter(|entry| entry.mode == GITLINK) {
        inner(&root.join(entry_path(&entry)))?;
    }
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).include_ignored(false);
    let statuses =
        repository.statuses(Some(&mut options)).map_err(|error| failed(repository.path(), &error))?;
    let path = |entry: &git2::StatusEntry<'_>| PathBuf::from(OsStr::from_bytes(entry.path_bytes()));
    Ok(statuses.iter().map(|entry| (path(&entry), entry.status())).collect())
}

/// The files of a work tree below a directory of the repository, with notes about what is left out: tracked files, also
/// of submodules, and untracked ones that are not ignored.
///
/// # Errors
/// When the work tree or the index cannot be read.
pub(super) fn work_tree(repository: &Repository, below: &Path) -> Result<(Vec<Entry>, Vec<String>)> {
    let mut files = BTreeSet::new();
    let mut notes = Vec::new();
    list(repository, Path::new(""), &mut files, &mut notes)?;
    let root = root(repository)?;
    let mut entries = Vec::new();
    for path in files.iter().filter_map(|path| path.strip_prefix(below).ok()) {
        if let Some(kind) = tree::kind(&root.join(below).join(path))? {
            entries.push(Entry { path: path.to_owned(), kind });
        }
    }
    tree::sort(&mut entries);
    Ok((entries, notes))
}

/// The clone of a submodule, where it is checked out.
fn inner(folder: &Path) -> Result<Option<Repository>> {
    match folder.canonicalize() {
        Ok(folder) => own::open(&folder),
        Err(_) => Ok(None),
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
    let index = repository.index().map_err(|error| failed(&root, &error))?;
    for entry in index.iter() {
        let path = entry_path(&entry);
        if entry.mode == GITLINK {
            match inner(&root.join(&path))? {
                Some(inner) => list(&inner, &prefix.join(&path), files, notes)?,
                None => {
                    notes.push(format!("submodule `{}` is not checked out", prefix.join(&path).display()));
                }
            }
        } else if root.join(&path).symlink_metadata().is_ok() {
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
