//! Reading a folder in which foreign code may have written: no link is ever followed, nothing outside the folder is
//! reached, nothing but regular files is opened, and all that is read is bounded.

pub(crate) mod archive;
mod write;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

use crate::error::{Error, Result};

/// Bounds of [`Folder::walk`].
const WALK: Bounds = Bounds { entries: 1_000_000, depth: 128, name_bytes: 256 << 20 };
/// How often a look-up is tried again that met a rename.
const TRIES: u32 = 64;

/// A folder whose content nobody vouches for.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

/// What is in a [`Folder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the folder.
    pub path: PathBuf,
    pub kind: Kind,
    /// Permission bits, with those for set-user-ID, set-group-ID and sticky.
    pub mode: u32,
    /// Bytes.
    pub size: u64,
    pub modified: SystemTime,
}

/// What an [`Entry`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    /// A symbolic link, and where it points.
    Link(PathBuf),
    /// A pipe, a socket or a device.
    Other,
}

/// What becomes of symbolic links on the way to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Links {
    Refused,
    /// Followed, but never out of the folder.
    Within,
}

/// How much a walk takes in.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    entries: usize,
    /// Names in one path.
    depth: usize,
    /// Bytes of all paths and targets of links together.
    name_bytes: usize,
}

fn is_not_found(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| source.kind() == std::io::ErrorKind::NotFound)
}

impl Folder {
    /// Opens a folder that the user named: it may be a link itself.
    ///
    /// # Errors
    /// When it cannot be opened or is not a folder.
    pub fn named(path: &Path) -> Result<Self> {
        let real = fs_err::canonicalize(path)?;
        Ok(Folder { path: path.to_owned(), ..Folder::open(&real)? })
    }

    /// Opens a folder. Links on the way to it are followed, but it must not be one itself.
    ///
    /// # Errors
    /// When it cannot be opened or is not a folder.
    pub fn open(path: &Path) -> Result<Self> {
        // A slash at the end would have a link followed.
        let path: PathBuf = path.components().collect();
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match nix::fcntl::open(&path, flags, Mode::empty()) {
            Ok(handle) => Ok(Folder { handle, path }),
            Err(errno) => Err(refused(&path, errno)),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content of a regular file of at most so many bytes.
    ///
    /// # Errors
    /// When `relative` leads out of the folder or through a link, names anything but a regular file, or names one that is
    /// larger. Where there is nothing, the error's source is an IO error of the kind `NotFound`.
    pub fn read(&self, relative: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
        self.read_whole(self.open_file(relative)?, relative, limit_bytes)
    }

    /// The content of a regular file of at most so many bytes; none where there is nothing.
    ///
    /// # Errors
    /// Those of [`Folder::read`].
    pub fn read_if_there(&self, relative: &Path, limit_bytes: u64) -> Result<Option<Vec<u8>>> {
        match self.read(relative, limit_bytes) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The content of a regular file, as [`Folder::read`] gives it; links are followed as long as they stay in the folder.
    ///
    /// # Errors
    /// Those of [`Folder::read`], for links only when they lead out of the folder.
    pub fn read_through_links(&self, relative: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
        let file = self.regular_file(relative, Links::Within)?;
        self.read_whole(file, relative, limit_bytes)
    }

    fn read_whole(&self, file: File, relative: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.take(limit_bytes.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| Error::from(error).at(format!("cannot read {}", self.name(relative))))?;
        if bytes.len() as u64 > limit_bytes {
            return Err(Error::repository(format!(
                "{} has more than the {limit_bytes} bytes that are read of it",
                self.name(relative)
            )));
        }
        Ok(bytes)
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// Those of [`Folder::read`], but for the size.
    pub fn open_file(&self, relative: &Path) -> Result<File> {
        self.regular_file(relative, Links::Refused)
    }

    /// Whether a regular file exists, where links are followed as long as they stay in the folder.
    pub fn has_file(&self, relative: &Path) -> bool {
        self.regular_file(relative, Links::Within).is_ok()
    }

    fn regular_file(&self, relative: &Path, links: Links) -> Result<File> {
        // A pipe that nobody writes to must not make the driver wait.
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = self.handle_of(relative, flags, links)?;
        let status = fstat(&file).map_err(|errno| refused(&self.name_of(relative), errno))?;
        if kind_bits(&status) == SFlag::S_IFREG {
            return Ok(File::from(file));
        }
        Err(Error::repository(format!("{} is not a regular file", self.name(relative))))
    }

    /// What is at a place of the folder; none where nothing is, or where a link is on the way.
    ///
    /// # Errors
    /// When `relative` leads out of the folder, and when it cannot be looked at.
    pub fn look(&self, relative: &Path) -> Result<Option<Entry>> {
        let handle = match self.try_handle(relative, OFlag::O_PATH, Links::Refused)? {
            Ok(handle) => handle,
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(None),
            Err(errno) => return Err(refused(&self.name_of(relative), errno)),
        };
        let trouble = |errno| refused(&self.name_of(relative), errno);
        let status = fstat(&handle).map_err(trouble)?;
        let kind = match kind_bits(&status) {
            SFlag::S_IFREG => Kind::File,
            SFlag::S_IFDIR => Kind::Folder,
            SFlag::S_IFLNK => Kind::Link(readlinkat(&handle, Path::new("")).map_err(trouble)?.into()),
            _ => Kind::Other,
        };
        Ok(Some(entry(relative.to_owned(), kind, &status)))
    }

    /// Everything in the folder, at any depth, sorted by path.
    ///
    /// # Errors
    /// When a folder in it cannot be read, and when there is more than a tree of files has.
    pub fn walk(&self) -> Result<Vec<Entry>> {
        self.walk_within(WALK)
    }

    fn walk_within(&self, bounds: Bounds) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut folders = vec![PathBuf::new()];
        let mut name_bytes = 0;
        while let Some(folder) = folders.pop() {
            for entry in self.list(&folder, entries.len(), bounds)? {
                name_bytes += entry.path.as_os_str().len();
                if let Kind::Link(target) = &entry.kind {
                    name_bytes += target.as_os_str().len();
                }
                if entry.kind == Kind::Folder {
                    folders.push(entry.path.clone());
                }
                entries.push(entry);
            }
            if name_bytes > bounds.name_bytes {
                return Err(self.too_much(&format!("{} bytes of names", bounds.name_bytes)));
            }
            if folders.last().is_some_and(|folder| folder.components().count() >= bounds.depth) {
                return Err(self.too_much(&format!("{} folders within each other", bounds.depth)));
            }
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(entries)
    }

    /// What is in one folder of the folder, beside so many entries of others.
    fn list(&self, folder: &Path, others: usize, bounds: Bounds) -> Result<Vec<Entry>> {
        let trouble = |name: &Path, errno| refused(&self.name_of(&folder.join(name)), errno);
        let handle = self.handle_of(folder, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Refused)?;
        let mut listing = Dir::from_fd(handle).map_err(|errno| trouble(Path::new(""), errno))?;
        let mut names = Vec::new();
        for entry in listing.iter() {
            let entry = entry.map_err(|errno| trouble(Path::new(""), errno))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if others + names.len() == bounds.entries {
                return Err(self.too_much(&format!("{} files", bounds.entries)));
            }
            let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name);
            names.push(PathBuf::from(name));
        }
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            let status = fstatat(&listing, &name, AtFlags::AT_SYMLINK_NOFOLLOW)
                .map_err(|errno| trouble(&name, errno))?;
            let kind = match kind_bits(&status) {
                SFlag::S_IFREG => Kind::File,
                SFlag::S_IFDIR => Kind::Folder,
                SFlag::S_IFLNK => {
                    Kind::Link(readlinkat(&listing, &name).map_err(|errno| trouble(&name, errno))?.into())
                }
                _ => Kind::Other,
            };
            entries.push(entry(folder.join(name), kind, &status));
        }
        Ok(entries)
    }

    /// Names in the folder itself that are UTF-8, sorted.
    ///
    /// # Errors
    /// Those of [`Folder::walk`].
    pub fn names(&self) -> Result<Vec<String>> {
        let entries = self.list(Path::new(""), 0, WALK)?;
        let mut names: Vec<String> =
            entries.into_iter().filter_map(|entry| entry.path.into_os_string().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn handle_of(&self, relative: &Path, flags: OFlag, links: Links) -> Result<OwnedFd> {
        self.try_handle(relative, flags, links)?.map_err(|errno| refused(&self.name_of(relative), errno))
    }

    fn try_handle(&self, relative: &Path, flags: OFlag, links: Links) -> Result<nix::Result<OwnedFd>> {
        let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !relative.components().all(plain) {
            return Err(Error::repository(format!(
                "`{}` leads out of {}",
                relative.display(),
                self.path.display()
            )));
        }
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        Ok(look_up(self.handle.as_fd(), relative, flags, links))
    }

    fn name_of(&self, relative: &Path) -> PathBuf {
        self.path.join(relative)
    }

    fn name(&self, relative: &Path) -> String {
        self.name_of(relative).display().to_string()
    }

    fn too_much(&self, what: &str) -> Error {
        Error::repository(format!("{} has more than {what}", self.path.display()))
    }
}

/// Opens what is below a folder without following any link on the way.
///
/// # Errors
/// `ELOOP` for a link, `EXDEV` for a way out, and those of every look-up.
pub(crate) fn open_beneath(
    folder: std::os::fd::BorrowedFd<'_>,
    relative: &Path,
    flags: OFlag,
) -> nix::Result<OwnedFd> {
    look_up(folder, relative, flags, Links::Refused)
}

fn look_up(
    folder: std::os::fd::BorrowedFd<'_>,
    relative: &Path,
    mut flags: OFlag,
    links: Links,
) -> nix::Result<OwnedFd> {
    let mut resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    if links == Links::Refused {
        resolve |= ResolveFlag::RESOLVE_NO_SYMLINKS;
        flags |= OFlag::O_NOFOLLOW;
    }
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(resolve);
    for _ in 1..TRIES {
        match openat2(folder, relative, how) {
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            other => return other,
        }
    }
    openat2(folder, relative, how)
}

fn entry(path: PathBuf, kind: Kind, status: &FileStat) -> Entry {
    Entry {
        path,
        kind,
        mode: status.st_mode & 0o7777,
        size: u64::try_from(status.st_size).unwrap_or_default(),
        modified: modified(status),
    }
}

fn kind_bits(status: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT
}

fn modified(status: &FileStat) -> SystemTime {
    let nanoseconds = Duration::from_nanos(u64::try_from(status.st_mtime_nsec).unwrap_or_default());
    let seconds = Duration::from_secs(status.st_mtime.unsigned_abs());
    let whole = if status.st_mtime < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(seconds)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(seconds)
    };
    whole.and_then(|whole| whole.checked_add(nanoseconds)).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn refused(path: &Path, errno: Errno) -> Error {
    let what = match errno {
        Errno::ELOOP => "is a symbolic link or below one, and no link is followed there",
        Errno::EXDEV => "is outside the folder that is read",
        Errno::ENXIO => "is not a regular file",
        Errno::ENOTDIR => "is not a folder, or is below something that is not a folder",
        _ => "cannot be opened",
    };
    let message = format!("{} {what}", path.display());
    let source = std::io::Error::from(errno);
    match errno {
        Errno::ENOSPC | Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::EIO | Errno::ENOSYS => {
            Error::machine(message)
        }
        _ => Error::repository(message),
    }
    .with_source(source)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::error::Fault;

    /// `outside/secret` beside `folder`, which has `file` and `sub/deep`.
    fn place() -> (tempfile::TempDir, Folder) {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["outside", "folder", "folder/sub"] {
            std::fs::create_dir(temp.path().join(folder)).unwrap();
        }
        for (file, text) in
            [("outside/secret", "secret"), ("folder/file", "text"), ("folder/sub/deep", "deep")]
        {
            std::fs::write(temp.path().join(file), text).unwrap();
        }
        let folder = Folder::open(&temp.path().join("folder")).unwrap();
        (temp, folder)
    }

    fn refusal(folder: &Folder, relative: &str) -> String {
        let error = folder.read(Path::new(relative), 100).unwrap_err();
        assert_eq!(error.fault(), Fault::Repository, "{error}");
        error.to_string()
    }

    #[test]
    fn what_lies_in_the_folder_is_read() {
        let (_temp, folder) = place();
        assert_eq!(folder.read(Path::new("file"), 4).unwrap(), b"text");
        assert_eq!(folder.read(Path::new("./sub/deep"), 100).unwrap(), b"deep");
    }

    #[test]
    fn no_link_is_followed_on_the_way_or_at_its_end() {
        let (temp, folder) = place();
        let inside = temp.path().join("folder");
        symlink(temp.path().join("outside"), inside.join("way")).unwrap();
        symlink("../outside/secret", inside.join("end")).unwrap();
        symlink("file", inside.join("harmless")).unwrap();
        symlink("/proc/self/root", inside.join("magic")).unwrap();
        for relative in ["way/secret", "end", "harmless", "magic/etc/passwd"] {
            let words = refusal(&folder, relative);
            assert!(words.contains("symbolic link") && words.contains(relative), "{words}");
        }
    }

    #[test]
    fn links_that_are_followed_stay_in_the_folder() {
        let (temp, folder) = place();
        let inside = temp.path().join("folder");
        let outside = temp.path().join("outside");
        symlink("sub", inside.join("within")).unwrap();
        symlink("../file", inside.join("sub/up")).unwrap();
        assert_eq!(folder.read_through_links(Path::new("within/deep"), 100).unwrap(), b"deep");
        assert_eq!(folder.read_through_links(Path::new("within/up"), 100).unwrap(), b"text");
        symlink(&outside, inside.join("way")).unwrap();
        symlink("../outside/secret", inside.join("end")).unwrap();
        symlink(inside.join("file"), inside.join("absolute")).unwrap();
        symlink("/proc/self/root", inside.join("magic")).unwrap();
        symlink("circle", inside.join("circle")).unwrap();
        for relative in ["way/secret", "end", "absolute", "magic/etc/passwd", "circle", "../outside/secret"] {
            assert!(folder.read_through_links(Path::new(relative), 100).is_err(), "{relative}");
        }
        assert!(folder.has_file(Path::new("within/deep")));
        assert!(!folder.has_file(Path::new("way/secret")) && !folder.has_file(Path::new("nothing")));
        let words = folder.read_through_links(Path::new("within/deep"), 3).unwrap_err().to_string();
        assert!(words.contains("more than the 3 bytes"), "{words}");
    }

    #[test]
    fn a_folder_that_is_a_link_is_not_opened() {
        let (temp, _folder) = place();
        symlink("outside", temp.path().join("link")).unwrap();
        for name in ["link", "link/", "outside/secret", "nothing"] {
            assert!(Folder::open(&temp.path().join(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn no_path_leads_out() {
        let (temp, folder) = place();
        let absolute = temp.path().join("outside/secret");
        for relative in
            ["../outside/secret", "sub/../../outside/secret", "sub/../file", absolute.to_str().unwrap()]
        {
            let words = refusal(&folder, relative);
            assert!(words.contains("leads out"), "{words}");
        }
    }

    #[test]
    fn only_regular_files_are_read_and_nothing_waits() {
        let (temp, folder) = place();
        let inside = temp.path().join("folder");
        nix::unistd::mkfifo(&inside.join("pipe"), Mode::from_bits_truncate(0o600)).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(inside.join("socket")).unwrap();
        for relative in ["pipe", "socket", "sub", "."] {
            let words = refusal(&folder, relative);
            assert!(words.contains("not a regular file"), "{words}");
        }
        let devices = Folder::open(Path::new("/dev")).unwrap();
        assert!(refusal(&devices, "zero").contains("not a regular file"));
    }

    #[test]
    fn no_more_is_read_than_may_be() {
        let (temp, folder) = place();
        let huge = File::create(temp.path().join("folder/huge")).unwrap();
        huge.set_len(1 << 40).unwrap();
        let words = refusal(&folder, "huge");
        assert!(words.contains("more than the 100 bytes"), "{words}");
    }

    #[test]
    fn what_is_not_there_can_be_told_from_what_is_refused() {
        let (_temp, folder) = place();
        let kind = |relative: &str| {
            let error = folder.read(Path::new(relative), 100).unwrap_err();
            let source = std::error::Error::source(&error)?.downcast_ref::<std::io::Error>()?;
            Some(source.kind())
        };
        assert_eq!(kind("nothing"), Some(std::io::ErrorKind::NotFound));
        assert_eq!(kind("file/below"), Some(std::io::ErrorKind::NotADirectory));
    }

    #[test]
    fn what_is_at_a_place_is_told_and_nothing_behind_a_link() {
        let (temp, folder) = place();
        let inside = temp.path().join("folder");
        symlink(temp.path().join("outside"), inside.join("way")).unwrap();
        nix::unistd::mkfifo(&inside.join("pipe"), Mode::from_bits_truncate(0o600)).unwrap();
        let kind = |relative: &str| folder.look(Path::new(relative)).unwrap().map(|entry| entry.kind);
        assert_eq!(kind("sub"), Some(Kind::Folder));
        assert_eq!(kind("way"), Some(Kind::Link(temp.path().join("outside"))));
        assert_eq!(kind("pipe"), Some(Kind::Other));
        let deep = folder.look(Path::new("sub/deep")).unwrap().unwrap();
        assert_eq!((deep.kind, deep.size, deep.path), (Kind::File, 4, PathBuf::from("sub/deep")));
        for relative in ["way/secret", "way/.", "nothing", "file/below"] {
            assert_eq!(kind(relative), None, "{relative}");
        }
        for relative in ["../outside/secret", "/etc/passwd", "sub/../file"] {
            assert!(folder.look(Path::new(relative)).is_err(), "{relative}");
        }
    }

    #[test]
    fn a_walk_names_everything_and_follows_nothing() {
        let (temp, folder) = place();
        let inside = temp.path().join("folder");
        symlink("..", inside.join("up")).unwrap();
        symlink(temp.path().join("outside"), inside.join("sub/way")).unwrap();
        nix::unistd::mkfifo(&inside.join("pipe"), Mode::from_bits_truncate(0o600)).unwrap();
        let odd = OsStr::from_bytes(b"n\xff\n");
        std::fs::write(inside.join(odd), "12345").unwrap();
        std::fs::set_permissions(inside.join(odd), std::fs::Permissions::from_mode(0o4711)).unwrap();
        let time = SystemTime::UNIX_EPOCH - Duration::from_millis(1500);
        File::options().write(true).open(inside.join(odd)).unwrap().set_modified(time).unwrap();
        let entries = folder.walk().unwrap();
        let seen: Vec<(&Path, &Kind)> =
            entries.iter().map(|entry| (entry.path.as_path(), &entry.kind)).collect();
        let way = Kind::Link(temp.path().join("outside"));
        assert_eq!(
            seen,
            [
                (Path::new("file"), &Kind::File),
                (Path::new(odd), &Kind::File),
                (Path::new("pipe"), &Kind::Other),
                (Path::new("sub"), &Kind::Folder),
                (Path::new("sub/deep"), &Kind::File),
                (Path::new("sub/way"), &way),
                (Path::new("up"), &Kind::Link("..".into())),
            ]
        );
        let odd = &entries[1];
        assert_eq!((odd.mode, odd.size, odd.modified), (0o4711, 5, time));
        assert_eq!(folder.read(&odd.path, 5).unwrap(), b"12345");
    }

    #[test]
    fn a_walk_is_bounded() {
        let (temp, folder) = place();
        let bounds = Bounds { entries: 4, depth: 3, name_bytes: 40 };
        assert_eq!(folder.walk_within(bounds).unwrap().len(), 3);
        let words = |bounds| folder.walk_within(bounds).unwrap_err().to_string();
        assert!(words(Bounds { entries: 2, ..bounds }).contains("more than 2 files"));
        assert!(words(Bounds { name_bytes: 10, ..bounds }).contains("bytes of names"));
        std::fs::create_dir_all(temp.path().join("folder/sub/a/b")).unwrap();
        let more = Bounds { entries: 100, ..bounds };
        assert!(words(more).contains("3 folders within each other"));
    }
}
