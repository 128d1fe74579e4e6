//! Unpacks what a job in a container left. The archive is hostile: it makes files, folders and links in one folder, and
//! nothing else anywhere.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, fchmod, fstatat, futimens, mkdirat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{linkat, symlinkat};
use tar::{Archive, Entry, EntryType};

use crate::beneath::open_beneath;

/// Entries of an archive.
const MOST_ENTRIES: usize = 1_000_000;
/// Bytes of a header that holds a long name.
const LONGEST_NAME: u64 = 64 << 10;
/// Permissions; never the bits that lend rights.
const PERMISSIONS: u32 = 0o777;

/// Unpacks into a folder that is empty and nobody else's.
///
/// # Errors
/// Those of the disk, and words for an archive that holds anything but files, folders and links below the folder.
pub(super) fn unpack(archive: impl Read, into: &Path) -> Result<()> {
    unpack_within(archive, into, MOST_ENTRIES)
}

fn unpack_within(archive: impl Read, into: &Path, most: usize) -> Result<()> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut target = Target { root: open(into, flags, Mode::empty())?, folders: Vec::new() };
    let mut archive = Archive::new(archive);
    let (mut name, mut link) = (None, None);
    // Raw: a name that stands in an entry of its own is read here, no further than a name goes.
    for (number, entry) in archive.entries()?.raw(true).enumerate() {
        if number >= most {
            return Err(Error::other(format!("it has more than {most} entries")));
        }
        let mut entry = entry?;
        match entry.header().entry_type() {
            EntryType::GNULongName => name = Some(long_name(&mut entry)?),
            EntryType::GNULongLink => link = Some(long_name(&mut entry)?),
            EntryType::XHeader => extended(&mut entry, &mut name, &mut link)?,
            EntryType::XGlobalHeader => {}
            _ => {
                let path = name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
                let link = link.take().or_else(|| entry.link_name_bytes().map(std::borrow::Cow::into_owned));
                let path = PathBuf::from(std::ffi::OsStr::from_bytes(&path));
                target
                    .make(&mut entry, &path, link.as_deref())
                    .map_err(|error| Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            }
        }
    }
    target.finish()
}

fn long_name(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>> {
    if entry.size() > LONGEST_NAME {
        return Err(Error::other("a name in it is too long"));
    }
    let mut name = Vec::new();
    entry.read_to_end(&mut name)?;
    while name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}

/// What an extended header says of names. One that says how long the next entry is would have it read in two ways.
fn extended(
    entry: &mut Entry<'_, impl Read>,
    name: &mut Option<Vec<u8>>,
    link: &mut Option<Vec<u8>>,
) -> Result<()> {
    let text = long_name(entry)?;
    for extension in tar::PaxExtensions::new(&text) {
        let extension = extension?;
        match extension.key_bytes() {
            b"path" => *name = Some(extension.value_bytes().to_vec()),
            b"linkpath" => *link = Some(extension.value_bytes().to_vec()),
            key if key == b"size" || key.starts_with(b"GNU.sparse") => {
                return Err(Error::other("an extended header in it changes a size"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where the entries go.
struct Target {
    root: OwnedFd,
    /// What becomes of folders once everything lies in them.
    folders: Vec<(PathBuf, u32, TimeSpec)>,
}

impl Target {
    fn make(&mut self, entry: &mut Entry<'_, impl Read>, path: &Path, link: Option<&[u8]>) -> Result<()> {
        let Some((parent, name)) = self.place(path)? else { return Ok(()) };
        let header = entry.header();
        let mode = header.mode()? & PERMISSIONS;
        let time = TimeSpec::new(i64::try_from(header.mtime().unwrap_or_default()).unwrap_or_default(), 0);
        let link = || link.ok_or_else(|| Error::other("a link without a target"));
        match header.entry_type() {
            EntryType::Regular | EntryType::Continuous => make_file(parent.as_fd(), name, entry, mode, time),
            EntryType::Directory => {
                mkdirat(&parent, name, Mode::S_IRWXU)?;
                self.folders.push((path.to_owned(), mode, time));
                Ok(())
            }
            EntryType::Symlink => {
                symlinkat(std::ffi::OsStr::from_bytes(link()?), &parent, name)?;
                let flags = UtimensatFlags::NoFollowSymlink;
                Ok(utimensat(&parent, name, &time, &time, flags)?)
            }
            EntryType::Link => {
                let existing = Path::new(std::ffi::OsStr::from_bytes(link()?));
                self.link(existing, parent.as_fd(), name)
            }
            _ => Err(Error::other("neither a file nor a folder nor a link")),
        }
    }

    /// Folder and name of an entry; none for the folder that everything lies in.
    fn place<'p>(&self, path: &'p Path) -> Result<Option<(OwnedFd, &'p Path)>> {
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(Error::other("a path that leads out"));
        }
        let Some(name) = path.file_name() else { return Ok(None) };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
        let parent = open_beneath(self.root.as_fd(), parent.unwrap_or(Path::new(".")), flags)?;
        Ok(Some((parent, Path::new(name))))
    }

    /// A second name of a file that was unpacked already, or of a link, which is not followed.
    fn link(&self, existing: &Path, parent: BorrowedFd<'_>, name: &Path) -> Result<()> {
        let Some((folder, old)) = self.place(existing)? else {
            return Err(Error::other("a link to no file"));
        };
        let status = fstatat(&folder, old, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        if !matches!(
            SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT,
            SFlag::S_IFREG | SFlag::S_IFLNK
        ) {
            return Err(Error::other("a hard link to something that is not a file"));
        }
        Ok(linkat(&folder, old, parent, name, AtFlags::empty())?)
    }

    /// The innermost folders come first: theirs may be the last that may be entered.
    fn finish(self) -> Result<()> {
        for (path, mode, time) in self.folders.iter().rev() {
            let folder = open_beneath(self.root.as_fd(), path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
            futimens(&folder, time, time)?;
            fchmod(&folder, Mode::from_bits_truncate(*mode))?;
        }
        Ok(())
    }
}

fn make_file(
    parent: BorrowedFd<'_>,
    name: &Path,
    from: &mut impl Read,
    mode: u32,
    time: TimeSpec,
) -> Result<()> {
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(parent, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    std::io::copy(from, &mut file)?;
    fchmod(&file, Mode::from_bits_truncate(mode))?;
    Ok(futimens(&file, &time, &time)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use tar::{Builder, Header};

    struct Packed(Builder<Vec<u8>>);

    impl Packed {
        fn new() -> Self {
            Packed(Builder::new(Vec::new()))
        }

        /// An entry whose names are written as they are.
        fn with(mut self, kind: EntryType, path: &str, link: &str, data: &[u8]) -> Self {
            let mut header = Header::new_gnu();
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_link_name_literal(link).unwrap();
            header.set_entry_type(kind);
            header.set_mode(0o6755);
            header.set_mtime(1_000_000_000);
            header.set_size(data.len() as u64);
            header.set_cksum();
            self.0.append(&header, data).unwrap();
            self
        }

        fn file(self, path: &str) -> Self {
            self.with(EntryType::Regular, path, "", b"data")
        }

        fn folder(self, path: &str) -> Self {
            self.with(EntryType::Directory, path, "", b"")
        }

        fn link(self, path: &str, to: &str) -> Self {
            self.with(EntryType::Symlink, path, to, b"")
        }

        fn unpack(self, into: &Path) -> Result<()> {
            unpack_within(self.0.into_inner().unwrap().as_slice(), into, 100)
        }
    }

    /// `into` beside `victim`, which has `secret`.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["victim", "into"] {
            std::fs::create_dir(temp.path().join(folder)).unwrap();
        }
        std::fs::write(temp.path().join("victim/secret"), "secret").unwrap();
        let into = temp.path().join("into");
        (temp, into)
    }

    #[test]
    fn files_folders_and_links_come_back_without_bits_that_lend_rights() {
        let (_temp, into) = place();
        let long = format!("0/{}", "n".repeat(200));
        let mut packed =
            Packed::new().folder("./").folder("0/").file("0/file").link("0/link", "../../victim");
        packed = packed.with(EntryType::Link, "0/second", "0/file", b"").with(
            EntryType::Link,
            "0/third",
            "0/link",
            b"",
        );
        let mut header = Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(1);
        packed.0.append_data(&mut header, &long, b"x".as_slice()).unwrap();
        packed.unpack(&into).unwrap();
        let metadata = std::fs::metadata(into.join("0/file")).unwrap();
        assert_eq!((metadata.permissions().mode() & 0o7777, metadata.mtime()), (0o755, 1_000_000_000));
        assert_eq!(metadata.ino(), std::fs::metadata(into.join("0/second")).unwrap().ino());
        assert_eq!(std::fs::read_link(into.join("0/link")).unwrap(), Path::new("../../victim"));
        assert_eq!(std::fs::read_link(into.join("0/third")).unwrap(), Path::new("../../victim"));
        let folder = std::fs::metadata(into.join("0")).unwrap();
        assert_eq!((folder.permissions().mode() & 0o7777, folder.mtime()), (0o755, 1_000_000_000));
        assert_eq!(std::fs::read(into.join(long)).unwrap(), b"x");
    }

    #[test]
    fn nothing_leads_out_and_nothing_but_files_is_made() {
        let (temp, into) = place();
        let victim = temp.path().join("victim");
        let absolute = victim.join("made").display().to_string();
        let start = || Packed::new().folder("0").file("0/file").link("0/way", "../../victim");
        let cases = [
            start().file("../victim/made"),
            start().file(&absolute),
            start().file("0/../../victim/made"),
            start().file("0/way/made"),
            start().folder("0/way/made"),
            start().link("0/way/made", "x"),
            start().file("0/way"),
            start().folder("0/way"),
            start().with(EntryType::Link, "0/second", "../victim/secret", b""),
            start().with(EntryType::Link, "0/second", "0/way/secret", b""),
            start().with(EntryType::Link, "0/second", "0", b""),
            start().with(EntryType::Link, "0/way/made", "0/file", b""),
            start().with(EntryType::Char, "0/device", "", b""),
            start().with(EntryType::Block, "0/device", "", b""),
            start().with(EntryType::Fifo, "0/pipe", "", b""),
            start().with(EntryType::GNUSparse, "0/sparse", "", b""),
            start().with(EntryType::XHeader, "x", "", b"30 path=../victim/made-by-pax\n").file("0/a"),
            start().with(EntryType::XHeader, "x", "", b"12 size=100\n").file("0/a"),
            start().with(EntryType::GNULongName, "x", "", b"../victim/made\0").file("0/a"),
            start().with(EntryType::GNULongName, "x", "", &vec![b'n'; 1 << 20]).file("0/a"),
        ];
        for (number, case) in cases.into_iter().enumerate() {
            std::fs::remove_dir_all(&into).unwrap();
            std::fs::create_dir(&into).unwrap();
            assert!(case.unpack(&into).is_err(), "case {number}");
            let left: Vec<_> = std::fs::read_dir(&victim).unwrap().flatten().collect();
            assert_eq!(left.len(), 1, "case {number}: {left:?}");
            assert_eq!(std::fs::metadata(victim.join("secret")).unwrap().nlink(), 1, "case {number}");
        }
    }

    #[test]
    fn the_number_of_entries_is_bounded_and_a_torn_archive_is_an_error() {
        let (_temp, into) = place();
        let many = (0..101).fold(Packed::new(), |packed, number| packed.file(&number.to_string()));
        assert!(many.unpack(&into).unwrap_err().to_string().contains("100 entries"));
        let whole = Packed::new().file("file").0.into_inner().unwrap();
        assert!(unpack(&whole[..514], &tempfile::tempdir().unwrap().keep()).is_err());
    }
}
