//! The run tree: a copy of the pinned tree with one orphan commit, no remote, and a clean status.

use std::collections::BTreeMap;
use std::fs::FileTimes;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryInitOptions, Signature, Time};
use walkdir::WalkDir;

use crate::error::{Error, Result};
use crate::record::id::sha256_hex;
use crate::record::moment::Moment;
use crate::terminal::is_obeyed;

/// Files of the tree (relative, sorted) with the hash of their content, or their target when they are links.
pub type Listing = BTreeMap<PathBuf, String>;

/// Copies a tree: contents, modes, modification times, symbolic links. Hard links would share what tests change.
///
/// # Errors
/// IO errors with action and path.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs_err::create_dir_all(to)?;
    let mut folders = Vec::new();
    for entry in WalkDir::new(from).sort_by_file_name() {
        let entry = entry.map_err(|error| walk_error(from, error))?;
        let relative = entry.path().strip_prefix(from).unwrap_or(entry.path());
        let target = to.join(relative);
        let kind = entry.file_type();
        if kind.is_dir() {
            fs_err::create_dir_all(&target)?;
            folders.push((entry.path().to_owned(), target));
        } else if kind.is_symlink() {
            let link = fs_err::read_link(entry.path())?;
            symlink(&link, &target)
                .map_err(|error| Error::from(error).at(format!("cannot link {}", target.display())))?;
        } else if kind.is_file() {
            fs_err::copy(entry.path(), &target)?;
            same_time(entry.path(), &target)?;
        }
    }
    for (source, target) in folders.iter().rev() {
        let mode = fs_err::metadata(source)?.permissions().mode();
        fs_err::set_permissions(target, std::fs::Permissions::from_mode(mode | 0o700))?;
        same_time(source, target)?;
    }
    Ok(())
}

fn same_time(source: &Path, target: &Path) -> Result<()> {
    let modified = fs_err::metadata(source)?.modified()?;
    let times = FileTimes::new().set_modified(modified).set_accessed(modified);
    let file = fs_err::File::open(target)?;
    file.file()
        .set_times(times)
        .map_err(|error| Error::from(error).at(format!("cannot date {}", target.display())))
}

fn walk_error(root: &Path, error: walkdir::Error) -> Error {
    let place = error.path().unwrap_or(root).display().to_string();
    Error::machine(format!("cannot read {place}")).with_source(error)
}

/// Lists the files of a tree, `.git` left out.
///
/// # Errors
/// IO errors with action and path.
pub fn list(root: &Path) -> Result<Listing> {
    let mut found = Listing::new();
    for entry in WalkDir::new(root).into_iter().filter_entry(|entry| entry.file_name() != ".git") {
        let entry = entry.map_err(|error| walk_error(root, error))?;
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_owned();
        if entry.file_type().is_symlink() {
            let target = fs_err::read_link(entry.path())?;
            found.insert(relative, format!("-> {}", target.display()));
        } else if entry.file_type().is_file() {
            found.insert(relative, sha256_hex(&fs_err::read(entry.path())?));
        }
    }
    Ok(found)
}

/// What building changed in a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// New files and folders as lines of an exclude file, outermost folders first.
    pub added: Vec<String>,
    /// Files of the pinned tree that were changed or removed.
    pub altered: Vec<PathBuf>,
}

/// Compares two listings. Pure.
pub fn changes(before: &Listing, after: &Listing) -> Changes {
    let known_folder = |folder: &Path| before.keys().any(|path| path.starts_with(folder));
    let mut added: Vec<String> = Vec::new();
    for path in after.keys().filter(|path| !before.contains_key(*path)) {
        // The outermost folder that the pinned tree does not have stands for everything in it.
        let mut folders: Vec<&Path> =
            path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()).collect();
        folders.reverse();
        let new = folders.into_iter().find(|folder| !known_folder(folder));
        let line = match new {
            Some(folder) => format!("/{}/", escape(folder)),
            None => format!("/{}", escape(path)),
        };
        if added.last() != Some(&line) {
            added.push(line);
        }
    }
    added.dedup();
    let altered =
        before.iter().filter(|(path, hash)| after.get(*path) != Some(hash)).map(|(path, _)| path.clone());
    Changes { added, altered: altered.collect() }
}

/// A path as an exclude pattern takes it literally. No pattern can name a newline, and no control character should
/// stand in a file that people read: `?` stands for each byte of them, and for bytes that are no UTF-8.
fn escape(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_obeyed(c) {
                text.extend(std::iter::repeat_n('?', c.len_utf8()));
                continue;
            }
            if matches!(c, '*' | '?' | '[' | '\\' | '!' | '#' | ' ') {
                text.push('\\');
            }
            text.push(c);
        }
        text.extend(std::iter::repeat_n('?', chunk.invalid().len()));
    }
    text
}

/// Puts files back as the pinned tree has them.
///
/// # Errors
/// IO errors with action and path.
pub fn restore(pinned: &Path, tree: &Path, paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        let (source, target) = (pinned.join(path), tree.join(path));
        if target.symlink_metadata().is_ok() {
            fs_err::remove_file(&target)?;
        }
        if let Some(folder) = target.parent() {
            fs_err::create_dir_all(folder)?;
        }
        if source.is_symlink() {
            let link = fs_err::read_link(&source)?;
            symlink(&link, &target)
                .map_err(|error| Error::from(error).at(format!("cannot link {}", target.display())))?;
        } else {
            fs_err::copy(&source, &target)?;
            same_time(&source, &target)?;
        }
    }
    Ok(())
}

/// Lines that every exclude file has.
pub const EXCLUDED: [&str; 3] = ["__pycache__/", "*.egg-info/", ".pytest_cache/"];

/// Makes the tree a git repository with one commit of exactly these files, whatever its ignore files say.
///
/// # Errors
/// When git refuses; the message says what.
pub fn commit(tree: &Path, files: &Listing, seconds: i64, excluded: &[String]) -> Result<()> {
    let trouble = |error: git2::Error| Error::harness("cannot commit the run tree").with_source(error);
    let mut options = RepositoryInitOptions::new();
    options.external_template(false).initial_head("main").mkpath(false);
    let repository = Repository::init_opts(tree, &options).map_err(trouble)?;
    let info = tree.join(".git/info");
    fs_err::create_dir_all(&info)?;
    fs_err::write(info.join("exclude"), excluded.join("\n") + "\n")?;
    let mut index = repository.index().map_err(trouble)?;
    for path in files.keys() {
        index.add_path(path).map_err(trouble)?;
    }
    index.write().map_err(trouble)?;
    let written = index.write_tree().and_then(|id| repository.find_tree(id)).map_err(trouble)?;
    let author = Signature::new("tree", "tree@localhost", &Time::new(seconds, 0)).map_err(trouble)?;
    repository.commit(Some("HEAD"), &author, &author, "Pinned tree", &written, &[]).map_err(trouble)?;
    Ok(())
}

/// Seconds since the epoch of an RFC 3339 time; none when it is no such time.
pub fn seconds(time: &str) -> Option<i64> {
    Moment::parse(time).map(Moment::seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_build_added_is_named_by_its_outermost_folder() {
        let listing = |paths: &[(&str, &str)]| -> Listing {
            paths.iter().map(|(path, hash)| (PathBuf::from(path), (*hash).to_owned())).collect()
        };
        let before = listing(&[("src/a.py", "1"), ("setup.py", "2")]);
        let after = listing(&[
            ("src/a.py", "9"),
            ("setup.py", "2"),
            ("build/x/y", "3"),
            ("build/z", "3"),
            ("src/_v*.py", "4"),
        ]);
        let changes = changes(&before, &after);
        assert_eq!(changes.added, ["/build/", "/src/_v\\*.py"]);
        assert_eq!(changes.altered, [PathBuf::from("src/a.py")]);
    }

    #[test]
    fn no_name_adds_a_line_to_the_exclude_file_and_each_is_still_excluded() {
        let scratch = tempfile::tempdir().unwrap();
        let before = list(scratch.path()).unwrap();
        let names: [&[u8]; 6] =
            [b"a\n*", b"b\r", b"c\x1b[2J", b"d\xc2\x9be", b"f\xff", "g\u{202e}".as_bytes()];
        for name in names {
            fs_err::write(scratch.path().join(std::ffi::OsStr::from_bytes(name)), "").unwrap();
        }
        let added = changes(&before, &list(scratch.path()).unwrap()).added;
        assert_eq!(added, ["/a?\\*", "/b?", "/c?\\[2J", "/d??e", "/f?", "/g???"]);
        commit(scratch.path(), &before, 0, &added).unwrap();
        let repository = Repository::open(scratch.path()).unwrap();
        let statuses = repository.statuses(None).unwrap();
        assert!(statuses.iter().all(|entry| entry.status().is_ignored()), "all names match their line");
    }

    #[test]
    fn the_run_tree_is_one_clean_orphan_commit_that_is_the_same_each_time() {
        let scratch = tempfile::tempdir().unwrap();
        let pinned = scratch.path().join("pinned");
        fs_err::create_dir_all(pinned.join("pkg")).unwrap();
        fs_err::write(pinned.join("pkg/[a] b.py"), "x = 1\n").unwrap();
        fs_err::write(pinned.join("ignored.log"), "kept\n").unwrap();
        fs_err::write(pinned.join(".gitignore"), "*.log\n").unwrap();
        symlink("pkg/nowhere", pinned.join("link")).unwrap();
        let head = |name: &str| {
            let tree = scratch.path().join(name);
            copy(&pinned, &tree).unwrap();
            let files = list(&tree).unwrap();
            assert_eq!(files, list(&pinned).unwrap());
            fs_err::create_dir_all(tree.join("x.egg-info")).unwrap();
            fs_err::write(tree.join("x.egg-info/new"), "").unwrap();
            commit(&tree, &files, 1_700_000_000, &EXCLUDED.map(str::to_owned)).unwrap();
            let repository = Repository::open(&tree).unwrap();
            assert!(repository.statuses(None).unwrap().iter().all(|entry| entry.status().is_ignored()));
            assert_eq!(repository.index().unwrap().len(), 4);
            repository.head().unwrap().peel_to_commit().unwrap().id()
        };
        assert_eq!(head("one"), head("two"));
    }
}
