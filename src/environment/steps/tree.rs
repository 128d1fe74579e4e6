//! The run tree: a copy of the pinned tree with one orphan commit, no remote, and a clean status.

use std::collections::BTreeSet;
use std::fs::FileTimes;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use git2::{ErrorClass, Repository, RepositoryInitOptions, Signature, Time};
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use super::precedence::{Importable, Listing};
use crate::beneath::{Entry, Folder, Kind};
use crate::error::{Error, Result};
use crate::record::id::sha256_hex;
use crate::record::moment::Moment;
use crate::terminal::is_obeyed;

/// Copies a tree: contents, modes, modification times, symbolic links. Hard links would share what tests change.
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
    set_time(&fs_err::File::open(target)?, fs_err::metadata(source)?.modified()?)
}

fn set_time(file: &fs_err::File, modified: SystemTime) -> Result<()> {
    let times = FileTimes::new().set_modified(modified).set_accessed(modified);
    file.file()
        .set_times(times)
        .map_err(|error| Error::from(error).at(format!("cannot date {}", file.path().display())))
}

fn walk_error(root: &Path, error: walkdir::Error) -> Error {
    let place = error.path().unwrap_or(root).display().to_string();
    Error::machine(format!("cannot read {place}")).with_source(error)
}

/// Lists the files of a tree, `.git` left out.
pub fn list(root: &Path) -> Result<Listing> {
    let mut found = Listing::new();
    for entry in WalkDir::new(root).into_iter().filter_entry(|entry| entry.file_name() != ".git") {
        let entry = entry.map_err(|error| walk_error(root, error))?;
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_owned();
        if entry.file_type().is_symlink() {
            let target = fs_err::read_link(entry.path())?;
            found.insert(relative, link_text(&target));
        } else if entry.file_type().is_file() {
            found.insert(relative, sha256_hex(&fs_err::read(entry.path())?));
        }
    }
    Ok(found)
}

fn link_text(target: &Path) -> String {
    format!("-> {}", target.display())
}

/// What a build left in its copy of the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Files and links that the pinned tree does not have.
    pub added: Vec<Entry>,
    /// Files of the pinned tree that were changed or removed.
    pub altered: Vec<PathBuf>,
    /// What is not taken over: pipes and devices, what is where the pinned tree has a file or a link, and what an import or
    /// pytest would find before something else.
    pub refused: Vec<PathBuf>,
}

/// What a build may add to its tree, in bytes.
const MOST_ADDED: u64 = 8 << 30;

/// Compares a tree that foreign code wrote to with the pinned listing, and with what can be imported from it. A build that
/// `compiles` Python may leave compiled modules beside pinned sources.
///
/// # Errors
/// When the tree cannot be read, or holds more than a tree does.
pub fn left(tree: &Folder, pinned: &Listing, importable: &Importable, compiles: bool) -> Result<Left> {
    let mut left = Left::default();
    let mut unchanged = BTreeSet::new();
    let entries = tree.walk()?;
    let bytes = entries.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
    if bytes > MOST_ADDED {
        return Err(Error::repository(format!(
            "the build left a tree of more than {} GiB",
            MOST_ADDED >> 30
        )));
    }
    let precedes =
        |entry: &Entry| importable.is_preceded_by(&entry.path, matches!(entry.kind, Kind::Link(_)), compiles);
    for entry in entries {
        let now = match &entry.kind {
            Kind::Folder => continue,
            Kind::Link(target) => Some(link_text(target)),
            Kind::File => Some(hash_of(tree, &entry.path)?),
            Kind::Other => None,
        };
        match pinned.get(&entry.path) {
            Some(before) if now.as_ref() == Some(before) => drop(unchanged.insert(entry.path)),
            Some(_) => {}
            None if is_the_drivers(&entry.path) => {}
            None if now.is_some() && fits(&entry.path, pinned) && !precedes(&entry) => left.added.push(entry),
            None => left.refused.push(entry.path),
        }
    }
    left.altered = pinned.keys().filter(|path| !unchanged.contains(*path)).cloned().collect();
    Ok(left)
}

fn hash_of(tree: &Folder, path: &Path) -> Result<String> {
    let mut hasher = Sha256::new();
    each_part(tree, path, |part| {
        hasher.update(part);
        Ok(())
    })?;
    Ok(hex::encode(hasher.finalize()))
}

/// Reads a file in parts, for as long as nobody interrupts.
fn each_part(tree: &Folder, path: &Path, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let (mut file, mut buffer) = (tree.open_file(path)?, vec![0; 1 << 16]);
    loop {
        crate::interrupt::check()?;
        let length = file.read(&mut buffer).map_err(|error| Error::from(error).at(path.display()))?;
        if length == 0 {
            return Ok(());
        }
        take(&buffer[..length])?;
    }
}

/// Byte code and version control are made by the driver alone.
fn is_the_drivers(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) || is_byte_code(path)
}

/// Whether a path is one of byte code.
pub fn is_byte_code(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "__pycache__")
        || path.extension().is_some_and(|extension| extension == "pyc")
}

/// Whether the pinned tree has nothing but folders, or nothing at all, on the way to a path and at it.
fn fits(path: &Path, pinned: &Listing) -> bool {
    let is_folder = pinned.range(path.join("")..).next().is_some_and(|(next, _)| next.starts_with(path));
    !is_folder && path.ancestors().skip(1).all(|folder| !pinned.contains_key(folder))
}

/// Copies what a build added into a tree that has the pinned files and nothing else.
pub fn add(from: &Folder, added: &[Entry], tree: &Path) -> Result<()> {
    for entry in added {
        let target = tree.join(&entry.path);
        if let Some(folder) = target.parent() {
            fs_err::create_dir_all(folder)?;
        }
        if let Kind::Link(link) = &entry.kind {
            symlink(link, &target)
                .map_err(|error| Error::from(error).at(format!("cannot link {}", target.display())))?;
            continue;
        }
        let mut file = fs_err::OpenOptions::new().write(true).create_new(true).open(&target)?;
        each_part(from, &entry.path, |part| Ok(std::io::Write::write_all(&mut file, part)?))?;
        let mode = if entry.mode & 0o100 == 0 { 0o644 } else { 0o755 };
        fs_err::set_permissions(&target, std::fs::Permissions::from_mode(mode))?;
        set_time(&file, entry.modified)?;
    }
    Ok(())
}

/// Lines of an exclude file that name what was added: the outermost folder that the pinned tree does not have stands for
/// everything in it. Pure.
pub fn excluded<'a>(added: impl Iterator<Item = &'a Path>, pinned: &Listing) -> Vec<String> {
    let known_folder = |folder: &Path| {
        pinned.range(folder.join("")..).next().is_some_and(|(next, _)| next.starts_with(folder))
    };
    let mut lines: Vec<String> = Vec::new();
    for path in added {
        let mut folders: Vec<&Path> =
            path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()).collect();
        folders.reverse();
        let new = folders.into_iter().find(|folder| !known_folder(folder));
        let line = match new {
            Some(folder) => format!("/{}/", escape(folder)),
            None => format!("/{}", escape(path)),
        };
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines.dedup();
    lines
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
        // The tree decides its names; git has none for some of them, such as `.gitmodules` as a link.
        index.add_path(path).map_err(|error| match error.class() {
            ErrorClass::Index => {
                Error::repository(format!("git takes no file of the name {}", path.display()))
                    .with_source(error)
            }
            _ => trouble(error),
        })?;
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

    fn listing(paths: &[(&str, &str)]) -> Listing {
        paths.iter().map(|(path, hash)| (PathBuf::from(path), (*hash).to_owned())).collect()
    }

    #[test]
    fn what_a_build_added_is_named_by_its_outermost_folder() {
        let pinned = listing(&[("src-x/b", "3"), ("src/a.py", "1"), ("setup.py", "2")]);
        let added = ["build/x/y", "build/z", "src/_v*.py"].map(Path::new);
        assert_eq!(excluded(added.into_iter(), &pinned), ["/build/", "/src/_v\\*.py"]);
    }

    #[test]
    fn what_a_build_left_never_takes_the_place_of_the_pinned_tree() {
        let scratch = tempfile::tempdir().unwrap();
        let victim = scratch.path().join("victim");
        fs_err::create_dir(&victim).unwrap();
        fs_err::write(victim.join("keys"), "mine").unwrap();
        let pinned = scratch.path().join("pinned");
        for folder in ["pkg", "data"] {
            fs_err::create_dir_all(pinned.join(folder)).unwrap();
        }
        fs_err::write(pinned.join("pkg/keys"), "theirs").unwrap();
        fs_err::write(pinned.join("data/a"), "a").unwrap();
        fs_err::write(pinned.join("mod.py"), "").unwrap();
        symlink(&victim, pinned.join("out")).unwrap();
        let before = list(&pinned).unwrap();

        let built = scratch.path().join("built");
        copy(&pinned, &built).unwrap();
        // A folder becomes a link, a link a folder, a file a folder; version control and byte code are brought along.
        fs_err::remove_dir_all(built.join("pkg")).unwrap();
        symlink(&victim, built.join("pkg")).unwrap();
        fs_err::remove_file(built.join("out")).unwrap();
        fs_err::create_dir(built.join("out")).unwrap();
        fs_err::write(built.join("out/planted"), "").unwrap();
        fs_err::remove_file(built.join("data/a")).unwrap();
        fs_err::create_dir(built.join("data/a")).unwrap();
        fs_err::write(built.join("data/a/b"), "").unwrap();
        fs_err::create_dir_all(built.join("new/__pycache__")).unwrap();
        fs_err::create_dir_all(built.join("new/.git/hooks")).unwrap();
        fs_err::write(built.join("new/__pycache__/x.pyc"), "").unwrap();
        fs_err::write(built.join("new/.git/hooks/pre-commit"), "").unwrap();
        fs_err::write(built.join("new/ext.so"), "code").unwrap();
        symlink(&victim, built.join("new/link")).unwrap();
        // What Python or pytest would take instead of the pinned.
        fs_err::create_dir_all(built.join("mod")).unwrap();
        fs_err::write(built.join("mod/__init__.py"), "").unwrap();
        fs_err::write(built.join("data/conftest.py"), "").unwrap();

        let folder = Folder::open(&built).unwrap();
        let left = left(&folder, &before, &Importable::of(before.keys()), false).unwrap();
        let names: Vec<&Path> = left.added.iter().map(|entry| entry.path.as_path()).collect();
        assert_eq!(names, [Path::new("new/ext.so"), Path::new("new/link")]);
        assert_eq!(left.altered, ["data/a", "out", "pkg/keys"].map(PathBuf::from));
        let refused = ["data/a/b", "data/conftest.py", "mod/__init__.py", "out/planted", "pkg"];
        assert_eq!(left.refused, refused.map(PathBuf::from));

        let tree = scratch.path().join("tree");
        copy(&pinned, &tree).unwrap();
        add(&folder, &left.added, &tree).unwrap();
        assert_eq!(fs_err::read_to_string(tree.join("pkg/keys")).unwrap(), "theirs");
        assert_eq!(fs_err::read_to_string(tree.join("new/ext.so")).unwrap(), "code");
        assert_eq!(fs_err::read_to_string(victim.join("keys")).unwrap(), "mine");
        assert_eq!(fs_err::read_dir(&victim).unwrap().count(), 1);
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
        let after = list(scratch.path()).unwrap();
        let added = excluded(after.keys().map(PathBuf::as_path), &before);
        assert_eq!(added, ["/a?\\*", "/b?", "/c?\\[2J", "/d??e", "/f?", "/g???"]);
        commit(scratch.path(), &before, 0, &added).unwrap();
        let repository = Repository::open(scratch.path()).unwrap();
        let statuses = repository.statuses(None).unwrap();
        assert!(statuses.iter().all(|entry| entry.status().is_ignored()), "all names match their line");
    }

    #[test]
    fn a_name_that_git_has_no_place_for_is_the_repositorys_fault() {
        let scratch = tempfile::tempdir().unwrap();
        symlink("elsewhere", scratch.path().join(".gitmodules")).unwrap();
        let files = list(scratch.path()).unwrap();
        let error = commit(scratch.path(), &files, 0, &[]).unwrap_err();
        assert_eq!(error.fault(), crate::error::Fault::Repository);
        assert!(error.to_string().contains(".gitmodules"), "{error}");
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
