//! The pinned trees: `trees/<owner>__<name>.tar.zst`, the files that a Dockerfile of the dataset puts at `/testbed`.
//!
//! The bytes of an archive depend on the tree alone: entries are in the order of their paths, owned by nobody, executable or
//! not, and carry the time of the pin.

use std::io::{Read, Write};
use std::path::Path;

use super::Dataset;
use super::assemble::Assembled;
use super::table::AGAIN;
use crate::beneath::{Entry, Folder, Kind};
use crate::error::{Error, Result};
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

/// Writes the tree of every repository.
///
/// # Errors
/// IO errors with the path.
pub fn write(folder: &Path, assembled: &Assembled<'_>) -> Result<()> {
    fs_err::create_dir_all(folder.join(FOLDER))?;
    for repository in &assembled.repositories {
        let pinned = &repository.record.pinned;
        let path = folder.join(place(&pinned.slug));
        let file = fs_err::File::create(&path)?;
        let failed =
            |error: std::io::Error| Error::from(error).at(format!("cannot write {}", path.display()));
        let mut packer = zstd::Encoder::new(file, LEVEL).map_err(failed)?;
        packer.include_checksum(true).map_err(failed)?;
        pack(pinned, &mut packer)?;
        packer.finish().map_err(failed)?.sync_all()?;
    }
    Ok(())
}

/// The files of a tree as an archive.
fn pack(pinned: &Pinned, out: impl Write) -> Result<()> {
    let tree = Folder::open(&pinned.tree)?;
    let seconds = Moment::parse(&pinned.pinned_at).map_or(0, Moment::seconds).max(0);
    let failed =
        |error: std::io::Error| Error::from(error).at(format!("cannot archive the tree of {}", pinned.slug));
    let mut archive = tar::Builder::new(out);
    for entry in tree.walk()? {
        let mut header = header(&entry, u64::try_from(seconds).unwrap_or_default());
        match &entry.kind {
            Kind::File => {
                let file = tree.open_file(&entry.path)?;
                archive.append_data(&mut header, &entry.path, file).map_err(failed)?;
            }
            Kind::Folder => {
                archive.append_data(&mut header, &entry.path, std::io::empty()).map_err(failed)?;
            }
            Kind::Link(target) => {
                archive.append_link(&mut header, &entry.path, target).map_err(failed)?;
            }
            Kind::Other => {
                let path = entry.path.display();
                return Err(Error::repository(format!("{path} of {} is no file", pinned.slug)));
            }
        }
    }
    archive.finish().map_err(failed)
}

/// Largest Python file that is read from an archive, in bytes; larger ones are left out.
const LARGEST_SOURCE: u64 = 2 << 20;
/// Bytes of an archive that are unpacked at most: it may come from anywhere.
const LARGEST_TREE: u64 = 1 << 30;
/// Bytes of Python files that are read of one archive at most.
const MOST_SOURCE: u64 = 256 << 20;

/// The Python files of a repository's pinned tree, path and text, in the order of the archive; none where the dataset has
/// no tree of it.
///
/// # Errors
/// Usage errors: the archive is missing, or is not as gistmill writes it.
pub(crate) fn python_files(dataset: &Dataset, slug: &str) -> Result<Option<Vec<(String, String)>>> {
    let Some(place) = dataset.manifest.trees.get(slug) else { return Ok(None) };
    let file = Folder::open(&dataset.directory)?.open_file(Path::new(place))?;
    unpacked(file).map(Some).map_err(|error| {
        Error::usage(format!("cannot read {}", dataset.directory.join(place).display()))
            .with_source(error)
            .with_hint(AGAIN)
    })
}

fn unpacked(archive: impl Read) -> std::io::Result<Vec<(String, String)>> {
    let mut archive = tar::Archive::new(zstd::Decoder::new(archive)?.take(LARGEST_TREE));
    let (mut files, mut left) = (Vec::new(), MOST_SOURCE);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let Some(path) = entry.path()?.to_str().map(str::to_owned) else { continue };
        let is_source = entry.header().entry_type().is_file() && path.ends_with(".py");
        if !is_source || entry.size() > LARGEST_SOURCE {
            continue;
        }
        let Some(rest) = left.checked_sub(entry.size()) else { break };
        left = rest;
        let mut bytes = Vec::new();
        entry.by_ref().take(LARGEST_SOURCE).read_to_end(&mut bytes)?;
        files.push((path, String::from_utf8_lossy(&bytes).into_owned()));
    }
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
    fn python_files_are_read_from_an_archive_and_a_damaged_one_is_an_error() {
        let tree = tree(&["a.py", "b.txt", "c/d.py"], 0o644);
        let bytes = zstd::encode_all(packed(tree.path()).as_slice(), LEVEL).unwrap();
        let paths: Vec<_> = unpacked(bytes.as_slice()).unwrap().into_iter().map(|one| one.0).collect();
        assert_eq!(paths, ["a.py", "c/d.py"]);
        assert!(unpacked(&bytes[..bytes.len() / 2]).is_err());
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
