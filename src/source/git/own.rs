//! A local repository stays in its own folder. What lies in `.git` came with the repository and is hostile like the rest
//! of it: it may name a work tree, objects, references or settings anywhere on the machine, and libgit2 would follow.

use std::ffi::OsStr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryOpenFlags};
use walkdir::WalkDir;

use super::explain;
use crate::error::{Error, Result};

/// How to take such a repository nevertheless.
const WAY_OUT: &str = "clone it anew (git clone --no-local) and name the clone";

/// Opens the repository of exactly this folder, bare or not; none when there is none. Its work tree is the folder,
/// whatever its settings say.
///
/// # Errors
/// The repository's: it cannot be opened, or leads out of its folder.
pub(crate) fn open(folder: &Path) -> Result<Option<Repository>> {
    super::prepare();
    let refuse =
        |error: &git2::Error| explain(&format!("cannot open the repository of {}", folder.display()), error);
    look_before(folder)?;
    let repository = match Repository::open_ext(folder, RepositoryOpenFlags::NO_SEARCH, [] as [&str; 0]) {
        Ok(repository) => repository,
        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(None),
        Err(error) => return Err(refuse(&error)),
    };
    look_inside(folder, &repository)?;
    if repository.workdir().is_some() {
        repository.set_workdir(folder, false).map_err(|error| refuse(&error))?;
    }
    Ok(Some(repository))
}

fn leads_out(folder: &Path, why: &str) -> Error {
    Error::repository(format!("the git repository of {} leads out of its folder: {why}", folder.display()))
        .with_hint(WAY_OUT)
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// What must hold before libgit2 reads a byte: it would wait for ever at a pipe.
fn look_before(folder: &Path) -> Result<()> {
    let dot_git = folder.join(".git");
    let Ok(kind) = dot_git.symlink_metadata().map(|metadata| metadata.file_type()) else {
        // A bare repository is its folder; any other folder is none.
        return if folder.join("HEAD").symlink_metadata().is_ok() && folder.join("objects").is_dir() {
            look_through(folder, folder)
        } else {
            Ok(())
        };
    };
    if kind.is_dir() {
        return look_through(folder, &dot_git);
    }
    if kind.is_symlink() && !dot_git.canonicalize().is_ok_and(|place| place.starts_with(folder)) {
        return Err(leads_out(folder, "`.git` is a symbolic link"));
    }
    if kind.is_file() {
        let text = String::from_utf8_lossy(&fs_err::read(&dot_git)?).into_owned();
        let Some(place) = text.trim_end().strip_prefix("gitdir: ") else { return Ok(()) };
        let place = folder.join(place);
        if !knows(&place, folder) {
            return Err(leads_out(folder, "`.git` names a repository that does not know of this folder"));
        }
        return look_through(folder, &place);
    }
    if kind.is_symlink() {
        look_through(folder, &dot_git)
    } else {
        Err(leads_out(folder, "`.git` is a special file"))
    }
}

/// Whether a git directory says itself that its work tree is this folder, as those of work trees and submodules do.
fn knows(place: &Path, folder: &Path) -> bool {
    let of_work_tree = fs_err::read_to_string(place.join("gitdir"))
        .is_ok_and(|text| same(&place.join(text.trim_end()), &folder.join(".git")));
    let of_submodule = || {
        let config = place.join("config");
        let read = config.is_file() && !file_includes(&config);
        let config = read.then(|| git2::Config::open(&config).ok()).flatten();
        let named = config.and_then(|config| config.get_path("core.worktree").ok());
        named.is_some_and(|named| same(&place.join(named), folder))
    };
    of_work_tree || of_submodule()
}

/// Whether settings name further files of settings. Told by the text, for reading them would follow.
pub(crate) fn includes(settings: &[u8]) -> bool {
    let text = String::from_utf8_lossy(settings);
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    text.to_ascii_lowercase().contains("[include")
}

fn file_includes(config: &Path) -> bool {
    fs_err::read(config).is_ok_and(|settings| includes(&settings))
}

/// A git directory without links that lead out of it, pipes, devices, borrowed objects and further settings.
fn look_through(folder: &Path, place: &Path) -> Result<()> {
    let root = fs_err::canonicalize(place)
        .map_err(|error| Error::from(error).blame(crate::error::Fault::Repository))?;
    for entry in WalkDir::new(&root).min_depth(1) {
        let entry = entry.map_err(|error| leads_out(folder, &format!("`.git` cannot be read ({error})")))?;
        let kind = entry.file_type();
        let shown = || entry.path().strip_prefix(&root).unwrap_or(entry.path()).display().to_string();
        if kind.is_symlink() && !entry.path().canonicalize().is_ok_and(|place| place.starts_with(&root)) {
            return Err(leads_out(folder, &format!("`{}` in `.git` is a symbolic link", shown())));
        }
        if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() {
            return Err(leads_out(folder, &format!("`{}` in `.git` is a special file", shown())));
        }
        let is_config = ["config", "config.worktree"].map(OsStr::new).contains(&entry.file_name());
        if is_config && kind.is_file() && file_includes(entry.path()) {
            return Err(leads_out(folder, &format!("`{}` in `.git` includes other files", shown())));
        }
    }
    Ok(())
}

/// What libgit2 says that it uses: everything lies in the git directory, or in that of the clone that a work tree
/// belongs to.
fn look_inside(folder: &Path, repository: &Repository) -> Result<()> {
    let (place, common) =
        (fs_err::canonicalize(repository.path())?, fs_err::canonicalize(repository.commondir())?);
    let in_worktrees = place.parent().is_some_and(|parent| same(parent, &common.join("worktrees")));
    if place != common && !(in_worktrees && knows(&place, folder)) {
        return Err(leads_out(folder, "`commondir` in `.git`"));
    }
    if place != common {
        look_through(folder, &common)?;
    }
    let alternates = common.join("objects/info/alternates");
    if fs_err::read(&alternates).is_ok_and(|text| !text.trim_ascii().is_empty()) {
        return Err(leads_out(folder, "it borrows objects (objects/info/alternates)")
            .with_hint("make it whole with `git repack -a -d`, then remove .git/objects/info/alternates"));
    }
    let config = repository.config().map_err(|error| explain("cannot read its settings", &error))?;
    let Ok(own) = config.open_level(git2::ConfigLevel::Local) else { return Ok(()) };
    for key in ["core.excludesfile", "core.attributesfile"] {
        let named: Option<PathBuf> = own.get_path(key).ok();
        let inside = |place: PathBuf| place.starts_with(folder) && place.is_file();
        if named.is_some_and(|named| folder.join(named).canonicalize().is_ok_and(|place| !inside(place))) {
            return Err(leads_out(folder, &format!("its setting `{key}`")));
        }
    }
    Ok(())
}

/// Files of a work tree that libgit2 reads as settings: it would wait for ever at a pipe.
///
/// # Errors
/// The repository's, when one is no regular file.
pub(crate) fn look_over(folder: &Path) -> Result<()> {
    let names = [".gitignore", ".gitattributes", ".gitmodules"].map(OsStr::new);
    let entries = WalkDir::new(folder).into_iter().filter_entry(|entry| entry.file_name() != ".git");
    for entry in entries.flatten().filter(|entry| names.contains(&entry.file_name())) {
        let is_special = |metadata: std::fs::Metadata| !metadata.is_file() && !metadata.is_dir();
        if fs_err::metadata(entry.path()).is_ok_and(is_special) {
            let shown = entry.path().strip_prefix(folder).unwrap_or(entry.path()).display();
            return Err(Error::repository(format!(
                "`{shown}` of {} is not a regular file",
                folder.display()
            )));
        }
    }
    Ok(())
}
