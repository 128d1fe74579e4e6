//! Trees of files: how they are listed, hashed and written. A tree holds regular files (executable or not) and symbolic
//! links; directories count only through what is in them. Names are bytes: they need not be UTF-8.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use rayon::prelude::*;
use walkdir::WalkDir;

use super::location::normalized;
use crate::beneath::archive::{LARGEST, MOST_ENTRIES};
use crate::beneath::{self, Folder};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::record::id::{hash_parts, sha256_hex};
use crate::store::{sha256_of, sha256_of_file};

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Executable,
    Link,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Executable => "executable",
            Kind::Link => "link",
        }
    }

    /// A regular file's kind by its permission bits.
    pub(super) fn of_mode(mode: u32) -> Kind {
        if mode & 0o100 == 0 { Kind::File } else { Kind::Executable }
    }
}

/// One file or link of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Relative to the tree's root.
    pub path: PathBuf,
    pub kind: Kind,
}

/// All files and links below a directory, sorted by the bytes of their paths.
///
/// # Errors
/// When a directory cannot be read, and when something is neither file, link nor directory.
pub(super) fn entries(root: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for found in WalkDir::new(root).min_depth(1) {
        let found = found.map_err(|error| Error::machine(format!("cannot list a tree: {error}")))?;
        if found.file_type().is_dir() {
            continue;
        }
        let path = found.path().strip_prefix(root).unwrap_or(found.path()).to_owned();
        let kind = kind(found.path())?
            .ok_or_else(|| Error::repository(format!("{} is not a regular file", found.path().display())))?;
        entries.push(Entry { path, kind });
    }
    sort(&mut entries);
    Ok(entries)
}

/// Sorts entries by the bytes of their paths.
pub(super) fn sort(entries: &mut [Entry]) {
    entries.sort_unstable_by(|a, b| a.path.as_os_str().as_bytes().cmp(b.path.as_os_str().as_bytes()));
}

/// What lies at a path; `None` for directories, pipes, sockets and devices.
///
/// # Errors
/// When there is nothing, or it cannot be looked at.
pub(super) fn kind(path: &Path) -> Result<Option<Kind>> {
    let metadata = fs_err::symlink_metadata(path)?;
    Ok(if metadata.is_symlink() {
        Some(Kind::Link)
    } else if metadata.is_file() {
        Some(Kind::of_mode(metadata.permissions().mode()))
    } else {
        None
    })
}

/// The content hash of everything below a directory.
///
/// # Errors
/// See [`entries`] and [`hash_entries`].
pub(super) fn hash(root: &Path) -> Result<String> {
    hash_entries(root, &entries(root)?)
}

/// The content hash over sorted entries: path, kind and SHA-256 of the content (of the target, for a link).
///
/// # Errors
/// When an entry cannot be read.
pub(super) fn hash_entries(root: &Path, entries: &[Entry]) -> Result<String> {
    hash_of(entries, &|entry| content_hash(&root.join(&entry.path), entry.kind))
}

/// The content hash over sorted entries of a folder that nobody vouches for.
///
/// # Errors
/// When an entry is not there any more, or not as it was found.
pub(super) fn hash_beneath(folder: &Folder, entries: &[Entry]) -> Result<String> {
    hash_of(entries, &|entry| match entry.kind {
        Kind::Link => Ok(sha256_hex(link_beneath(folder, &entry.path)?.as_os_str().as_bytes())),
        Kind::File | Kind::Executable => {
            let at = |error: std::io::Error| Error::from(error).at(entry.path.display());
            sha256_of(&mut file_beneath(folder, &entry.path)?).map_err(at)
        }
    })
}

fn hash_of(entries: &[Entry], content: &(dyn Fn(&Entry) -> Result<String> + Sync)) -> Result<String> {
    let one = |entry: &Entry| interrupt::check().and_then(|()| content(entry));
    let contents: Vec<String> = entries.par_iter().map(one).collect::<Result<_>>()?;
    let parts: Vec<&[u8]> = entries
        .iter()
        .zip(&contents)
        .flat_map(|(entry, content)| {
            [entry.path.as_os_str().as_bytes(), entry.kind.name().as_bytes(), content.as_bytes()]
        })
        .collect();
    Ok(hash_parts(&parts))
}

fn content_hash(path: &Path, kind: Kind) -> Result<String> {
    if kind == Kind::Link {
        return Ok(sha256_hex(fs_err::read_link(path)?.as_os_str().as_bytes()));
    }
    sha256_of_file(path)
}

/// A relative path of plain parts only: no root, no `..`, no `.git` at any level.
///
/// # Errors
/// When the path has another part.
pub(super) fn checked(path: &Path) -> Result<&Path> {
    let is_plain = |component: Component<'_>| match component {
        Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        _ => false,
    };
    if path.components().next().is_some() && path.components().all(is_plain) {
        return Ok(path);
    }
    Err(Error::repository(format!(
        "refused to write `{}`: it would not stay inside the tree",
        path.display()
    )))
}

/// Makes a directory of a tree and those above it. Nothing is written through a link.
///
/// # Errors
/// When a part of the path is something else already.
pub(super) fn make_directory(root: &Path, path: &Path) -> Result<()> {
    let mut directory = root.to_owned();
    for component in path.components() {
        directory.push(component);
        match fs_err::symlink_metadata(&directory) {
            Ok(metadata) if metadata.is_dir() => continue,
            Ok(_) => {
                return Err(Error::repository(format!("{} is both a file and a directory", path.display())));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        fs_err::create_dir(&directory)?;
        fs_err::set_permissions(&directory, PermissionsExt::from_mode(0o755))?;
    }
    Ok(())
}

/// Writes a new regular file of a tree; its directory must be there.
///
/// # Errors
/// When something of that name is there, and IO errors.
pub(super) fn write_file(path: &Path, content: &mut dyn Read, kind: Kind) -> Result<()> {
    let mode = if kind == Kind::Executable { 0o755 } else { 0o644 };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let mut file = fs_err::OpenOptions::from_options(options).open(path)?;
    std::io::copy(content, &mut file)
        .and_then(|_| file.flush())
        .map_err(|error| Error::from(error).at(format!("cannot write {}", path.display())))?;
    file.set_permissions(PermissionsExt::from_mode(mode))?;
    Ok(())
}

/// Writes a new symbolic link of a tree.
///
/// # Errors
/// When something of that name is there, and IO errors.
pub(super) fn write_link(path: &Path, target: &Path) -> Result<()> {
    Ok(fs_err::os::unix::fs::symlink(target, path)?)
}

/// Writes a file with these bytes into a tree.
///
/// # Errors
/// IO errors; a part of the path is something else already.
pub(super) fn write(root: &Path, path: &Path, mut bytes: &[u8], executable: bool) -> Result<()> {
    if let Some(parent) = checked(path)?.parent() {
        make_directory(root, parent)?;
    }
    let kind = if executable { Kind::Executable } else { Kind::File };
    write_file(&root.join(path), &mut bytes, kind)
}

/// Copies entries of a folder that nobody vouches for into a new one.
pub(super) fn copy(from: &Folder, entries: &[Entry], to: &Path) -> Result<()> {
    for entry in entries {
        interrupt::check()?;
        if let Some(parent) = checked(&entry.path)?.parent() {
            make_directory(to, parent)?;
        }
        let target = to.join(&entry.path);
        match entry.kind {
            Kind::Link => write_link(&target, &link_beneath(from, &entry.path)?)?,
            kind => write_file(&target, &mut file_beneath(from, &entry.path)?, kind)?,
        }
    }
    Ok(())
}

/// What is at a place of a folder that nobody vouches for, as an entry of a tree; none for everything that is none.
///
/// # Errors
/// When it cannot be looked at.
pub(super) fn look(folder: &Folder, path: &Path, bounds: &mut Bounds) -> Result<Option<Entry>> {
    let Some(found) = folder.look(path)? else { return Ok(None) };
    let kind = match found.kind {
        beneath::Kind::File => Kind::of_mode(found.mode),
        beneath::Kind::Link(_) => Kind::Link,
        beneath::Kind::Folder | beneath::Kind::Other => return Ok(None),
    };
    bounds.add(path, found.size)?;
    Ok(Some(Entry { path: path.to_owned(), kind }))
}

fn file_beneath(folder: &Folder, path: &Path) -> Result<impl Read + use<>> {
    // Files of some file systems have no size, and no end.
    Ok(folder.open_file(path)?.take(LARGEST))
}

fn link_beneath(folder: &Folder, path: &Path) -> Result<PathBuf> {
    match folder.look(path)?.map(|found| found.kind) {
        Some(beneath::Kind::Link(target)) => Ok(target),
        _ => Err(Error::repository(format!("`{}` is not the link any more that it was", path.display()))),
    }
}

fn too_much(what: String) -> Error {
    Error::repository(format!("the tree has more than {what}"))
}

/// What a tree may come to: as much as an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// What is left of them.
    pub bytes: u64,
    pub entries: usize,
    /// Names in one path.
    pub depth: usize,
}

impl Bounds {
    pub(super) const TREE: Bounds = Bounds { bytes: LARGEST, entries: MOST_ENTRIES, depth: 128 };

    /// Counts a file, a link or a folder.
    ///
    /// # Errors
    /// The repository's, when that is more than a tree may come to.
    pub(super) fn add(&mut self, path: &Path, bytes: u64) -> Result<()> {
        self.entries =
            self.entries.checked_sub(1).ok_or_else(|| too_much("a million files and folders".to_owned()))?;
        if path.components().count() > self.depth {
            return Err(too_much(format!("{} folders within each other", self.depth)));
        }
        self.spend(bytes)
    }

    /// Counts the content of a file.
    ///
    /// # Errors
    /// Those of [`Bounds::add`].
    pub(super) fn spend(&mut self, bytes: u64) -> Result<()> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| too_much("16 GiB of files".to_owned()))?;
        Ok(())
    }
}

/// Gives everything below a directory, and itself, one modification time.
pub(super) fn set_times(root: &Path, seconds: i64) -> Result<()> {
    let moment = TimeSpec::new(seconds, 0);
    for found in WalkDir::new(root).contents_first(true) {
        let found = found.map_err(|error| Error::machine(format!("cannot list a tree: {error}")))?;
        utimensat(nix::fcntl::AT_FDCWD, found.path(), &moment, &moment, UtimensatFlags::NoFollowSymlink)
            .map_err(|error| Error::from(std::io::Error::from(error)).at(found.path().display()))?;
    }
    Ok(())
}

/// Whether a link of a tree, with this target, leads out of the tree. Absolute targets always do.
pub(super) fn leaves(root: &Path, link: &Path, target: &Path) -> bool {
    let lexical = normalized(&link.parent().unwrap_or(Path::new("")).join(target));
    if target.is_absolute() || lexical.starts_with("..") {
        return true;
    }
    match (root.join(link).canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(root)) => !real.starts_with(root),
        _ => false,
    }
}

/// What a person should know about the files of a tree.
///
/// # Errors
/// When an entry cannot be read.
pub(super) fn notes(root: &Path, entries: &[Entry]) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let mut pointers = Vec::new();
    for entry in entries {
        let path = root.join(&entry.path);
        if entry.kind == Kind::Link {
            let target = fs_err::read_link(&path)?;
            if leaves(root, &entry.path, &target) {
                notes.push(format!("symlink `{}` leaves the tree", entry.path.display()));
            }
        } else if is_lfs_pointer(&path)? {
            pointers.push(entry.path.display().to_string());
        }
    }
    if !pointers.is_empty() {
        notes.push(format!("Git LFS pointers instead of content: {}", few(&pointers)));
    }
    Ok(notes)
}

/// The first few names of a list, and how many there are beyond.
pub(super) fn few(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        _ => shown,
    }
}

fn is_lfs_pointer(path: &Path) -> Result<bool> {
    const LARGEST: u64 = 1024;
    const START: &[u8] = b"version https://git-lfs.";
    if fs_err::symlink_metadata(path)?.len() > LARGEST {
        return Ok(false);
    }
    Ok(fs_err::read(path)?.starts_with(START))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// Path, content or target, kind.
    type Sample<'a> = (&'a [u8], &'a [u8], Kind);

    fn tree(files: &[Sample<'_>]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, content, kind) in files {
            let path = Path::new(OsStr::from_bytes(name));
            make_directory(root.path(), path.parent().unwrap()).unwrap();
            let full = root.path().join(path);
            match kind {
                Kind::Link => write_link(&full, Path::new(OsStr::from_bytes(content))).unwrap(),
                kind => write_file(&full, &mut &content[..], *kind).unwrap(),
            }
        }
        root
    }

    #[test]
    fn hash_ignores_order_times_and_empty_directories() {
        let first = tree(&[(b"a", b"1", Kind::File), (b"d/b", b"2", Kind::Executable)]);
        let second = tree(&[(b"d/b", b"2", Kind::Executable), (b"a", b"1", Kind::File)]);
        fs_err::create_dir(second.path().join("empty")).unwrap();
        set_times(second.path(), 1_000_000).unwrap();
        assert_eq!(hash(first.path()).unwrap(), hash(second.path()).unwrap());
    }

    #[test]
    fn hash_sees_names_kinds_and_contents() {
        let variants: [&[Sample<'_>]; 5] = [
            &[(b"a", b"1", Kind::File)],
            &[(b"b", b"1", Kind::File)],
            &[(b"a", b"2", Kind::File)],
            &[(b"a", b"1", Kind::Executable)],
            &[(b"a", b"1", Kind::Link)],
        ];
        let hashes: std::collections::BTreeSet<_> =
            variants.iter().map(|files| hash(tree(files).path()).unwrap()).collect();
        assert_eq!(hashes.len(), variants.len());
    }

    #[test]
    fn names_that_are_not_utf8_are_listed_and_hashed() {
        let root = tree(&[(b"\xff\xfe.py", b"1", Kind::File), (b"a", b"1", Kind::File)]);
        let listed = entries(root.path()).unwrap();
        assert_eq!(listed[1].path.as_os_str().as_bytes(), b"\xff\xfe.py");
        assert_eq!(hash(root.path()).unwrap().len(), 64);
    }

    #[test]
    fn a_pipe_is_refused_by_name() {
        let root = tree(&[]);
        nix::unistd::mkfifo(&root.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(entries(root.path()).unwrap_err().to_string().contains("pipe"));
    }

    #[test]
    fn links_that_leave_the_tree_are_noted_and_others_are_not() {
        let root = tree(&[
            (b"in", b"d/../file", Kind::Link),
            (b"d/up", b"../file", Kind::Link),
            (b"d/out", b"../../x", Kind::Link),
            (b"abs", b"/etc/hostname", Kind::Link),
            (b"hop", b"d/root/..", Kind::Link),
            (b"d/root", b"..", Kind::Link),
            (b"file", b"", Kind::File),
        ]);
        let notes = notes(root.path(), &entries(root.path()).unwrap()).unwrap();
        assert_eq!(
            notes,
            ["abs", "d/out", "hop"].map(|name| format!("symlink `{name}` leaves the tree")),
            "`hop` leaves it through another link"
        );
    }

    #[test]
    fn nothing_is_written_through_a_link_or_over_a_file() {
        let root = tree(&[(b"link", b"/tmp", Kind::Link), (b"file", b"", Kind::File)]);
        assert!(make_directory(root.path(), Path::new("link/x")).is_err());
        assert!(write_file(&root.path().join("file"), &mut &b""[..], Kind::File).is_err());
        assert!(write_file(&root.path().join("link"), &mut &b""[..], Kind::File).is_err());
    }

    #[test]
    fn a_tree_comes_to_its_bounds_and_no_further() {
        let bounds = Bounds { bytes: 10, entries: 2, depth: 3 };
        let added = |parts: &[(&str, u64)]| {
            let mut bounds = bounds;
            parts.iter().try_for_each(|(path, bytes)| bounds.add(Path::new(path), *bytes))
        };
        added(&[("a", 4), ("a/b/c", 6)]).unwrap();
        for (parts, words) in [
            (&[("a", 4), ("b", 7)][..], "16 GiB"),
            (&[("a", 0), ("b", 0), ("c", 0)][..], "a million"),
            (&[("a/b/c/d", 0)][..], "folders within each other"),
        ] {
            let error = added(parts).unwrap_err();
            assert_eq!(error.fault(), crate::error::Fault::Repository);
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn unsafe_paths_are_refused() {
        for bad in ["/x", "../x", "a/../x", ".git/config", "a/.GIT/x", ""] {
            assert!(checked(Path::new(bad)).is_err(), "{bad}");
        }
        assert!(checked(Path::new("a/b.py")).is_ok());
    }
}
