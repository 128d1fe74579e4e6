//! Local directories, with or without git. Nothing here writes to the directory, and nothing of its path but the last
//! segment is published.

mod changes;
mod made;

use std::path::{Path, PathBuf};

use git2::Repository;
use walkdir::{DirEntry, WalkDir};

use self::changes::Change;
use super::git::{Part, own, tags};
use super::location::Location;
use super::tree::{self, Entry, few};
use super::{Content, Context, Request, time};
use crate::beneath::Folder;
use crate::error::{Error, Fault, Result};
use crate::interrupt;
use crate::record::id::{CommitSha, RepoSlug};
use crate::record::source::{Origin, Pinned, TagSearch};

/// Directories that tools leave behind; a directory with `pyvenv.cfg` in it is one too.
const JUNK: [&str; 15] = [
    ".git",
    ".hg",
    ".svn",
    ".bzr",
    ".venv",
    ".tox",
    ".nox",
    ".eggs",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".ipynb_checkpoints",
    "node_modules",
];

/// Pins a `path` source.
pub(super) fn pin(
    context: &Context<'_>,
    slug: &RepoSlug,
    (path, apart): (&Path, &[PathBuf]),
    commit: Option<&CommitSha>,
    allow_uncommitted: bool,
) -> Result<Pinned> {
    let directory = fs_err::canonicalize(path).map_err(|error| of_repository(error.into()))?;
    if !directory.is_dir() {
        return Err(Error::repository(format!("{} is not a directory", directory.display())));
    }
    let mut apart = Apart::within(&directory, apart)?;
    let mut passed_over = false;
    let Some(clone) = LocalClone::find(&directory, &mut passed_over)? else {
        return match commit {
            Some(commit) => {
                Err(Error::repository(format!("{} is not a git repository", directory.display()))
                    .with_hint(format!("leave out `commit = \"{commit}\"` to take the files as they are")))
            }
            None => pin_files(context, slug, (&directory, &apart), passed_over),
        };
    };
    let head = match commit {
        Some(commit) => return pin_commit(context, slug, (clone, &apart), commit.as_str()),
        None => clone.head()?,
    };
    let mut changes = clone.changes()?;
    let folder = Folder::open(&directory).map_err(of_repository)?;
    let new = changes.iter().filter(|one| one.is_new).map(|one| one.path.as_path());
    let made = made::by_gistmill(&folder, new);
    apart.paths.extend(made.into_iter().filter(|path| !clone.has_committed(head.as_deref(), path)));
    changes.retain(|one| !apart.has(&one.path));
    let changes: Vec<String> = changes.iter().map(|one| one.path.display().to_string()).collect();
    match head {
        Some(head) if changes.is_empty() => pin_commit(context, slug, (clone, &apart), &head),
        head if allow_uncommitted => pin_work_tree(context, slug, (&clone, &apart), head, &changes),
        Some(_) => Err(uncommitted(&directory, &changes)),
        None => Err(uncommitted(&directory, &changes).at("there is no commit yet")),
    }
}

/// See [`super::came_from`].
pub(super) fn came_from(directory: &Path) -> Option<(String, bool)> {
    let clone = LocalClone::find(&directory.canonicalize().ok()?, &mut false).ok()??;
    match clone.location() {
        Location::Remote(remote) => Some((remote.shown(), clone.below.as_os_str().is_empty())),
        Location::Local(_) => None,
    }
}

/// See [`super::is_shown_by_git`].
pub(super) fn shows(directory: &Path, path: &Path) -> bool {
    let Ok(directory) = directory.canonicalize() else { return false };
    let Ok(Some(clone)) = LocalClone::find(&directory, &mut false) else { return false };
    let inside = path.strip_prefix(&directory).ok().map(|inside| clone.below.join(inside));
    // A folder that is not there yet is ignored by a pattern for folders only where it ends with a slash.
    inside.is_some_and(|inside| {
        ![inside.clone(), inside.join("")]
            .iter()
            .any(|path| clone.repository.is_path_ignored(path).unwrap_or(false))
    })
}

fn uncommitted(directory: &Path, changes: &[String]) -> Error {
    Error::repository(format!("{} has uncommitted changes: {}", directory.display(), few(changes)))
        .with_hint("commit or stash them, or take them as they are with `allow_uncommitted = true`")
}

/// What of a folder is gistmill's own (configuration, schema, rules, output, datasets, scores and exports): no part of its
/// tree.
struct Apart {
    /// Relative to the folder.
    paths: Vec<PathBuf>,
}

impl Apart {
    /// Of these absolute paths those that are in a folder.
    fn within(directory: &Path, paths: &[PathBuf]) -> Result<Self> {
        let inside = paths.iter().filter_map(|path| path.strip_prefix(directory).ok());
        let paths: Vec<PathBuf> = inside.map(Path::to_owned).collect();
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(Error::usage(format!("{} is both a repository and the output", directory.display()))
                .with_hint("name another folder with --output"));
        }
        Ok(Apart { paths })
    }

    fn has(&self, path: &Path) -> bool {
        self.paths.iter().any(|apart| path.starts_with(apart))
    }

    /// Those that a commit has, so that others change no key of the cache.
    fn committed(&self, clone: &LocalClone, commit: &str) -> Vec<PathBuf> {
        let tree = git2::Oid::from_str(commit).and_then(|id| clone.repository.find_commit(id)?.tree());
        let Ok(tree) = tree else { return Vec::new() };
        let is_there = |path: &&PathBuf| tree.get_path(&clone.below.join(path)).is_ok();
        self.paths.iter().filter(is_there).cloned().collect()
    }
}

/// Removes a file or a folder that was exported a moment ago.
fn take_away(path: &Path) -> Result<()> {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(fs_err::remove_dir_all(path)?),
        Ok(_) => Ok(fs_err::remove_file(path)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A directory that is, or is in, a clone.
struct LocalClone {
    repository: Repository,
    directory: PathBuf,
    /// The directory's place in the repository; empty for its root.
    below: PathBuf,
}

impl LocalClone {
    /// The repository that a directory belongs to. One that merely lies around it (the directory is ignored there, or
    /// not known to it at all) does not count, nor one around it that cannot be read: then something is `passed_over`.
    fn find(directory: &Path, passed_over: &mut bool) -> Result<Option<Self>> {
        for root in directory.ancestors() {
            let repository = match own::open(root) {
                Ok(Some(repository)) => repository,
                Ok(None) => continue,
                Err(error)
                    if root != directory && matches!(error.fault(), Fault::Repository | Fault::Machine) =>
                {
                    tracing::warn!("passed over: {error}");
                    *passed_over = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let below = directory.strip_prefix(root).unwrap_or(Path::new("")).to_owned();
            let is_its = root == directory || (!repository.is_bare() && is_known(&repository, &below));
            return Ok(is_its.then(|| LocalClone { repository, directory: directory.to_owned(), below }));
        }
        Ok(None)
    }

    /// The commit that is checked out; `None` before the first one.
    fn head(&self) -> Result<Option<String>> {
        match self.repository.head() {
            Ok(head) => head
                .peel_to_commit()
                .map(|commit| Some(commit.id().to_string()))
                .map_err(|error| changes::failed(&self.directory, &error)),
            Err(error) if error.code() == git2::ErrorCode::UnbornBranch => Ok(None),
            Err(error) => Err(changes::failed(&self.directory, &error)),
        }
    }

    /// Whether the commit that is checked out has a path below the directory.
    fn has_committed(&self, head: Option<&str>, path: &Path) -> bool {
        let tree =
            head.map(|head| git2::Oid::from_str(head).and_then(|id| self.repository.find_commit(id)?.tree()));
        matches!(tree, Some(Ok(tree)) if tree.get_path(&self.below.join(path)).is_ok())
    }

    fn changes(&self) -> Result<Vec<Change>> {
        changes::changes(&self.repository, &self.below)
    }

    /// Relative addresses of submodules start at the remote that the clone came from.
    fn location(&self) -> Location {
        let origin = self.repository.find_remote("origin").ok();
        let url = origin.and_then(|origin| origin.url().ok().map(str::to_owned));
        let root = self.repository.workdir().unwrap_or(self.repository.path()).to_owned();
        match url.and_then(|url| Location::parse(&url).ok()) {
            Some(Location::Local(path)) => Location::Local(root.join(path)),
            Some(remote) => remote,
            None => Location::Local(root),
        }
    }
}

fn is_known(repository: &Repository, below: &Path) -> bool {
    let in_index = || {
        repository
            .index()
            .is_ok_and(|index| index.iter().any(|entry| changes::entry_path(&entry).starts_with(below)))
    };
    !repository.is_path_ignored(below).unwrap_or(true) && in_index()
}

fn origin(directory: &Path, uncommitted_changes: bool) -> Origin {
    let name = directory.file_name().unwrap_or(directory.as_os_str());
    Origin::Path { name: name.to_string_lossy().into_owned(), uncommitted_changes }
}

fn pin_commit(
    context: &Context<'_>,
    slug: &RepoSlug,
    (clone, apart): (LocalClone, &Apart),
    commit: &str,
) -> Result<Pinned> {
    let below = clone.below.to_string_lossy().into_owned();
    let committed = apart.committed(&clone, commit);
    let mut key = vec![commit.to_owned(), below.clone()];
    key.extend(committed.iter().map(|path| path.to_string_lossy().into_owned()));
    let request = Request { origin: origin(&clone.directory, false), key };
    let location = clone.location();
    let directory = clone.directory;
    let part = Part {
        location,
        repository: clone.repository,
        commit: commit.to_owned(),
        below: clone.below,
        is_clone: true,
    };
    let pinned = context.find_or_make(slug, request, |target| {
        let mut written = part
            .export(context, target, true)
            .map_err(|error| error.at(format!("cannot take {commit} from {}", directory.display())))?;
        for path in &committed {
            take_away(&target.join(path))?;
            written.notes.push(format!("`{}` left out: it is gistmill's own", path.display()));
        }
        if !below.is_empty() {
            written.notes.push(format!("only the directory `{below}` of the repository"));
        }
        Ok(written)
    })?;
    super::with_tag(pinned, || tags::of_local(&part.repository, commit))
}

/// The work tree as it is: tracked files, and untracked ones that are not ignored.
fn pin_work_tree(
    context: &Context<'_>,
    slug: &RepoSlug,
    (clone, apart): (&LocalClone, &Apart),
    head: Option<String>,
    changes: &[String],
) -> Result<Pinned> {
    let (mut entries, mut notes) =
        changes::work_tree(&clone.repository, &clone.below).map_err(of_repository)?;
    entries.retain(|entry| !apart.has(&entry.path));
    let folder = Folder::open(&clone.directory).map_err(of_repository)?;
    let mut pinned_at = match &head {
        Some(head) => changes::commit_time(&clone.repository, head)?,
        None => newest(&folder, &entries)?,
    };
    for change in changes {
        // A deleted file has no time.
        let found = folder.look(Path::new(change)).ok().flatten();
        pinned_at = pinned_at.max(found.map_or(pinned_at, |found| time::seconds(found.modified)));
    }
    notes.push(format!("uncommitted changes: {}", few(changes)));
    let directory = clone.directory.as_path();
    let files = Files { directory, folder, entries, notes, pinned_at, commit: head.clone() };
    let pinned = files.pin(context, slug, true)?;
    super::with_tag(pinned, || match &head {
        Some(head) => tags::of_local(&clone.repository, head),
        None => Ok(TagSearch::NotFound),
    })
}

/// A directory without git: everything but what tools left behind.
fn pin_files(
    context: &Context<'_>,
    slug: &RepoSlug,
    (directory, apart): (&Path, &Apart),
    passed_over: bool,
) -> Result<Pinned> {
    let folder = Folder::open(directory).map_err(of_repository)?;
    let (mut entries, mut notes) = plain_entries(directory, &folder, apart)?;
    let files = entries.iter().map(|entry| entry.path.as_path());
    let made = Apart { paths: made::by_gistmill(&folder, files) };
    entries.retain(|entry| !made.has(&entry.path));
    notes
        .extend(made.paths.iter().map(|path| format!("`{}` left out: it is gistmill's own", path.display())));
    if passed_over {
        notes.push("a git repository around the folder cannot be read, and does not count".to_owned());
    }
    if entries.is_empty() {
        return Err(Error::repository(format!("{} has no files", directory.display())));
    }
    let pinned_at = newest(&folder, &entries)?;
    Files { directory, folder, entries, notes, pinned_at, commit: None }.pin(context, slug, false)
}

/// Files that are pinned by their content.
struct Files<'a> {
    directory: &'a Path,
    /// The directory, in which no link is followed.
    folder: Folder,
    entries: Vec<Entry>,
    notes: Vec<String>,
    pinned_at: i64,
    /// `None` where only the content can tell.
    commit: Option<String>,
}

impl Files<'_> {
    fn pin(self, context: &Context<'_>, slug: &RepoSlug, uncommitted_changes: bool) -> Result<Pinned> {
        let hash = tree::hash_beneath(&self.folder, &self.entries).map_err(of_repository)?;
        let commit = self.commit.unwrap_or_else(|| format!("sha256:{hash}"));
        let request = Request {
            origin: origin(self.directory, uncommitted_changes),
            key: vec![commit.clone(), hash.clone(), self.pinned_at.to_string()],
        };
        context.find_or_make(slug, request, |target| {
            tree::copy(&self.folder, &self.entries, target)?;
            if tree::hash(target)? != hash {
                let message = format!("{} changed while it was copied", self.directory.display());
                return Err(Error::repository(message).with_hint("run the same command again"));
            }
            Ok(Content { commit, pinned_at: self.pinned_at, notes: self.notes })
        })
    }
}

fn plain_entries(directory: &Path, folder: &Folder, apart: &Apart) -> Result<(Vec<Entry>, Vec<String>)> {
    let (mut entries, mut notes, mut bounds) = (Vec::new(), Vec::new(), tree::Bounds::TREE);
    for found in WalkDir::new(directory).min_depth(1).into_iter().filter_entry(|entry| !is_junk(entry)) {
        let found = found.map_err(|error| Error::repository(format!("cannot list a directory: {error}")))?;
        let path = found.path().strip_prefix(directory).unwrap_or(found.path()).to_owned();
        if found.file_type().is_dir()
            || found.path().extension().is_some_and(|suffix| suffix == "pyc")
            || apart.has(&path)
        {
            continue;
        }
        interrupt::check()?;
        match tree::look(folder, &path, &mut bounds).map_err(of_repository)? {
            Some(entry) => entries.push(entry),
            None => notes.push(format!("`{}` left out: not a regular file", path.display())),
        }
    }
    tree::sort(&mut entries);
    Ok((entries, notes))
}

fn is_junk(entry: &DirEntry) -> bool {
    if !entry.file_type().is_dir() {
        return entry.file_name() == ".git";
    }
    JUNK.iter().any(|junk| entry.file_name() == *junk) || entry.path().join("pyvenv.cfg").exists()
}

fn newest(folder: &Folder, entries: &[Entry]) -> Result<i64> {
    let mut newest = None;
    for entry in entries {
        let found = folder.look(&entry.path).map_err(of_repository)?;
        newest = newest.max(found.map(|found| time::seconds(found.modified)));
    }
    Ok(newest.unwrap_or(0))
}

/// What cannot be read in the folder of a repository is that repository's trouble: the others go on.
fn of_repository(error: Error) -> Error {
    if error.fault() == Fault::Machine { error.blame(Fault::Repository) } else { error }
}
