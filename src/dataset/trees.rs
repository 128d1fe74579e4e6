//! The pinned trees: `trees/<owner>__<name>.tar.zst`, the files that a Dockerfile of the dataset puts at `/testbed`, and beside
//! each its list of files as `sha256sum` writes and checks it.
//!
//! The bytes of an archive depend on the tree alone: entries are in the order of their paths, owned by nobody, executable or
//! not, and carry the time of the pin.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Dataset;
use super::assemble::Assembled;
use crate::beneath::archive::each;
use crate::beneath::{Entry, Folder, Kind};
use crate::error::{Error, Result};
use crate::python_source::decoded;
use crate::record::id::RepoSlug;
use crate::record::moment::Moment;
use crate::record::source::Pinned;

/// The folder of a dataset that holds them.
pub const FOLDER: &str = "trees";
/// Source code of some ten megabytes takes a second, and is within a tenth of the smallest that there is.
const LEVEL: i32 = 12;

/// The place of a repository's tree in a dataset.
pub fn place(slug: &RepoSlug) -> String {
    format!("{FOLDER}/{}.tar.zst", slug.file_name())
}

/// The place of the list of its files.
pub fn list_place(slug: &RepoSlug) -> String {
    format!("{FOLDER}/{}.sha256", slug.file_name())
}

/// The line of a file in a list.
pub fn line(path: &Path, sha256: &str) -> Vec<u8> {
    let name = path.as_os_str().as_bytes();
    let needs_escape = |byte: &u8| matches!(byte, b'\\' | b'\n' | b'\r');
    let mut line = Vec::new();
    if name.iter().any(needs_escape) {
        line.push(b'\\');
    }
    line.extend_from_slice(sha256.as_bytes());
    line.extend_from_slice(b"  ");
    for byte in name {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            other => line.push(*other),
        }
    }
    line.push(b'\n');
    line
}

/// The name in a line of a list, as it is written there.
pub fn name_in(line: &[u8]) -> &[u8] {
    let start = line.windows(2).position(|two| two == b"  ").map_or(0, |at| at + 2);
    line[start..].strip_suffix(b"\n").unwrap_or(&line[start..])
}

/// A reader that hashes what is read through it.
struct Hashing<R> {
    inner: R,
    hasher: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}

/// Writes the tree of every repository.
///
/// # Errors
/// IO errors with the path.
pub fn write(folder: &Path, assembled: &Assembled<'_>) -> Result<()> {
    let folder = Folder::open(folder)?;
    folder.make_folder(Path::new(FOLDER))?;
    for repository in &assembled.repositories {
        let pinned = &repository.record.pinned;
        let file = folder.create_new(Path::new(&place(&pinned.slug)))?;
        let path = file.path().to_owned();
        let failed =
            |error: std::io::Error| Error::from(error).at(format!("cannot write {}", path.display()));
        let mut packer = zstd::Encoder::new(file, LEVEL).map_err(failed)?;
        packer.include_checksum(true).map_err(failed)?;
        let list = pack(pinned, &mut packer)?;
        packer.finish().map_err(failed)?.sync_all()?;
        folder.create_new(Path::new(&list_place(&pinned.slug)))?.write_all(&list)?;
    }
    Ok(())
}

/// The files of a tree as an archive; gives their list.
fn pack(pinned: &Pinned, out: impl Write) -> Result<Vec<u8>> {
    let tree = Folder::open(&pinned.tree)?;
    let seconds = Moment::parse(&pinned.pinned_at).map_or(0, Moment::seconds).max(0);
    let failed =
        |error: std::io::Error| Error::from(error).at(format!("cannot archive the tree of {}", pinned.slug));
    let mut archive = tar::Builder::new(out);
    let mut list = Vec::new();
    for entry in tree.walk()? {
        let mut header = header(&entry, u64::try_from(seconds).unwrap_or_default());
        match &entry.kind {
            Kind::File => {
                let mut file = Hashing { inner: tree.open_file(&entry.path)?, hasher: Sha256::new() };
                archive.append_data(&mut header, &entry.path, &mut file).map_err(failed)?;
                list.extend(line(&entry.path, &hex::encode(file.hasher.finalize())));
            }
            Kind::Folder => {
                archive.append_data(&mut header, &entry.path, std::io::empty()).map_err(failed)?;
            }
            Kind::Link(target) => {
                archive.append_link(&mut header, &entry.path, target).map_err(failed)?;
            }
            Kind::Other => {
                let path = entry.path.display();
                return Err(Error::repository(format!("{path} of {} is not a file", pinned.slug)));
            }
        }
    }
    archive.finish().map_err(failed)?;
    Ok(list)
}

/// Largest file that is handed on as it is, in bytes.
const LARGEST_DATA: u64 = 64 << 20;
/// Largest Python file that is read from an archive, in bytes; larger ones are left out.
const LARGEST_SOURCE: u64 = 2 << 20;
/// Bytes of Python files that are read of one archive at most.
const MOST_SOURCE: u64 = 256 << 20;

/// The Python files of a repository's pinned tree, path and text, in the order of the archive; none where the dataset has
/// no tree of it.
///
/// # Errors
/// Usage errors: the archive is missing, or is not as gistmill writes it.
pub(crate) fn python_files(dataset: &Dataset, slug: &str) -> Result<Option<Vec<(String, String)>>> {
    texts(dataset, slug, |path| path.ends_with(".py"))
}

/// The files that are `wanted` of a repository's pinned tree, as for Python files.
///
/// # Errors
/// Those of [`python_files`].
pub(crate) fn texts(
    dataset: &Dataset,
    slug: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<Option<Vec<(String, String)>>> {
    let Some((file, name)) = archive(dataset, slug)? else { return Ok(None) };
    unpacked(file, &name, wanted).map(Some)
}

/// Files by path, in the order of the archive.
type Contents = Vec<(String, Vec<u8>)>;

/// The bytes of files that are `wanted` of a repository's pinned tree; links and what is too large are left out.
///
/// # Errors
/// Those of [`python_files`].
pub(crate) fn bytes(
    dataset: &Dataset,
    slug: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<Option<Contents>> {
    let Some((file, name)) = archive(dataset, slug)? else { return Ok(None) };
    unpacked_bytes(file, &name, (wanted, LARGEST_DATA)).map(Some)
}

/// The archive of a tree, opened, with its path. None where code was not passed on.
fn archive(dataset: &Dataset, slug: &str) -> Result<Option<(File, String)>> {
    let Some(place) = dataset.manifest.trees.get(slug) else { return Ok(None) };
    let file = dataset.folder()?.open_file(Path::new(place)).map_err(|error| {
        error.with_hint("the dataset came without the repository's code: copy it again, with `trees/`")
    })?;
    Ok(Some((file, dataset.directory.join(place).display().to_string())))
}

fn unpacked(archive: impl Read, name: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, String)>> {
    let files = unpacked_bytes(archive, name, (wanted, LARGEST_SOURCE))?;
    Ok(files.into_iter().map(|(path, bytes)| (path, decoded(&bytes))).collect())
}

fn unpacked_bytes(
    archive: impl Read,
    name: &str,
    (wanted, largest): (impl Fn(&str) -> bool, u64),
) -> Result<Contents> {
    let (mut files, mut left) = (Vec::new(), MOST_SOURCE);
    each(archive, name, |member, content| {
        let Some(path) = member.path.to_str().filter(|path| wanted(path)) else { return Ok(()) };
        if *member.kind == Kind::File && member.size <= largest && member.size <= left {
            left -= member.size;
            let mut bytes = Vec::new();
            content.take(largest).read_to_end(&mut bytes)?;
            files.push((path.to_owned(), bytes));
        }
        Ok(())
    })?;
    Ok(files)
}

fn header(entry: &Entry, seconds: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    let (kind, mode, size) = match entry.kind {
        Kind::Folder => (tar::EntryType::Directory, 0o755, 0),
        Kind::Link(_) => (tar::EntryType::Symlink, 0o777, 0),
        Kind::File | Kind::Other if entry.mode & 0o111 != 0 => (tar::EntryType::Regular, 0o755, entry.size),
        Kind::File | Kind::Other => (tar::EntryType::Regular, 0o644, entry.size),
    };
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(seconds);
    header.set_uid(0);
    header.set_gid(0);
    header
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::testing::made_up;

    fn packed(folder: &Path) -> Vec<u8> {
        let slug = RepoSlug::new("a/b").unwrap();
        let pinned = Pinned { tree: folder.to_owned(), ..made_up::pinned(&slug, "c0") };
        let mut bytes = Vec::new();
        pack(&pinned, &mut bytes).unwrap();
        bytes
    }

    fn tree(order: &[&str], mode: u32) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in order {
            let path = folder.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(&path, name).unwrap();
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink("a.py", folder.path().join("link")).unwrap();
        folder
    }

    #[test]
    fn the_same_files_are_the_same_bytes_whenever_and_however_they_were_written() {
        let long = format!("{}/x.py", ["folder"; 30].join("/"));
        let names = ["a.py", "src/b.py", "src/é.py", long.as_str()];
        let mut backwards = names;
        backwards.reverse();
        let (one, other) = (tree(&names, 0o644), tree(&backwards, 0o600));
        let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(7);
        std::fs::File::open(other.path().join("a.py")).unwrap().set_modified(past).unwrap();
        assert_eq!(packed(one.path()), packed(other.path()));
        assert_ne!(packed(one.path()), packed(tree(&names, 0o755).path()), "executable is another tree");
    }

    #[test]
    fn sha256sum_checks_the_list() {
        let folder = tree(&["a.py", "src/b c.py", "new\nline", "back\\slash"], 0o644);
        let slug = RepoSlug::new("a/b").unwrap();
        let pinned = Pinned { tree: folder.path().to_owned(), ..made_up::pinned(&slug, "c0") };
        let list = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(list.path(), pack(&pinned, std::io::sink()).unwrap()).unwrap();
        let check = || {
            let mut command = std::process::Command::new("sha256sum");
            command.args(["--check", "--strict"]).arg(list.path()).current_dir(folder.path());
            let output = command.output().unwrap();
            (output.status.success(), String::from_utf8(output.stdout).unwrap())
        };
        let (agrees, said) = check();
        assert!(agrees && said.lines().count() == 4, "{said}");
        fs_err::write(folder.path().join("back\\slash"), "other").unwrap();
        assert!(!check().0);
    }

    #[test]
    fn python_files_are_read_from_an_archive_and_a_damaged_one_is_an_error() {
        let tree = tree(&["a.py", "b.txt", "c/d.py"], 0o644);
        let bytes = zstd::encode_all(packed(tree.path()).as_slice(), LEVEL).unwrap();
        let paths: Vec<_> = unpacked(bytes.as_slice(), "a", |path| path.ends_with(".py"))
            .unwrap()
            .into_iter()
            .map(|one| one.0)
            .collect();
        assert_eq!(paths, ["a.py", "c/d.py"]);
        assert!(unpacked(&bytes[..bytes.len() / 2], "a", |_| true).is_err());
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let (from, to) = (tree(&["a.py", "src/b.py"], 0o755), tempfile::tempdir().unwrap());
        tar::Archive::new(&packed(from.path())[..]).unpack(to.path()).unwrap();
        assert_eq!(fs_err::read_to_string(to.path().join("src/b.py")).unwrap(), "src/b.py");
        assert_eq!(fs_err::read_link(to.path().join("link")).unwrap(), Path::new("a.py"));
        let metadata = fs_err::metadata(to.path().join("a.py")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o755);
        let modified = metadata.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(modified.as_secs(), Moment::parse("2026-11-01T00:00:00Z").unwrap().seconds() as u64);
    }
}
