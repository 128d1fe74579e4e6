//! The mounts of a plan. Foreign code may have written in what they show, so no link is ever followed on the way to a
//! source or to a mount point.
//!
//! The driver looks a source up once and notes which file or folder it is. The sandbox opens the same path below the
//! host's root without following links, takes nothing but that very file or folder, and mounts it by the handle.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, SFlag, fstat, mkdirat};
use serde::{Deserialize, Serialize};

use super::bind::{NEW, OLD, set_attributes};
use super::{Step, because, because_io};
use crate::backend::Mount;
use crate::backend::shown::{LIBRARIES, PACKAGES, WHEELS};
use crate::beneath::open_beneath;
use crate::error::{Error, Result};

/// A mount whose source, if it has one, was looked up by the driver: the host's path has no link in it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Planned {
    mount: Mount,
    source: Option<Identity>,
}

/// Which file or folder of the machine something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(handle: impl AsFd) -> nix::Result<Self> {
        let status = fstat(handle)?;
        Ok(Identity { device: status.st_dev, inode: status.st_ino })
    }
}

/// Looks the sources of mounts up.
///
/// # Errors
/// The harness's, for a source that is not there or is a link.
pub(crate) fn planned(mounts: &[Mount]) -> Result<Vec<Planned>> {
    let planned = |mount: &Mount| {
        let mut mount = mount.clone();
        let source = match &mut mount {
            Mount::ReadOnly { host, .. }
            | Mount::Writable { host, .. }
            | Mount::Scratch { host, .. }
            | Mount::Overlay { host, .. } => {
                let (path, identity) = look_up(host)?;
                *host = path;
                Some(identity)
            }
            Mount::Tmpfs { .. } | Mount::NoPackages { .. } => None,
        };
        Ok(Planned { mount, source })
    };
    mounts.iter().map(planned).collect()
}

/// The path of a mount's source without any link in it. Links in what leads to it are the user's and followed; itself
/// it must not be one, for foreign code may have written in its folder.
///
/// # Errors
/// The harness's, for a source that is not there or is a link.
pub(crate) fn source(host: &Path) -> Result<PathBuf> {
    look_up(host).map(|(path, _)| path)
}

fn look_up(host: &Path) -> Result<(PathBuf, Identity)> {
    let refused = |words: String| {
        Error::harness("the sandbox could not be set up").with_detail(format!("{}: {words}", host.display()))
    };
    let path = match (host.parent(), host.file_name()) {
        (Some(parent), Some(name)) => {
            parent.canonicalize().map_err(|error| refused(error.to_string()))?.join(name)
        }
        _ => host.canonicalize().map_err(|error| refused(error.to_string()))?,
    };
    let identity = open_below(Path::new("/"), &path)
        .and_then(Identity::of)
        .map_err(|errno| refused(in_words(errno).to_owned()))?;
    Ok((path, identity))
}

fn in_words(errno: Errno) -> &'static str {
    match errno {
        Errno::ELOOP => "a symbolic link, and what is mounted must not be one",
        other => other.desc(),
    }
}

/// A handle of an absolute path as it is below another root, by which nothing can be read or written.
fn open_below(root: &Path, path: &Path) -> nix::Result<OwnedFd> {
    let root = open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let relative = path.strip_prefix("/").unwrap_or(path);
    let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
    // Without a link at its end: `O_PATH` would open the link itself.
    let handle = open_beneath(root.as_fd(), relative, OFlag::O_PATH)?;
    if kind(&handle)? == SFlag::S_IFLNK { Err(Errno::ELOOP) } else { Ok(handle) }
}

fn kind(handle: impl AsFd) -> nix::Result<SFlag> {
    Ok(SFlag::from_bits_truncate(fstat(handle)?.st_mode) & SFlag::S_IFMT)
}

/// Makes the mounts of a plan in the new root, one after the other.
pub(super) fn show(mounts: &[Planned]) -> Step {
    for (number, planned) in mounts.iter().enumerate() {
        apply(number, planned)?;
    }
    Ok(())
}

fn apply(number: usize, planned: &Planned) -> Step {
    match &planned.mount {
        Mount::ReadOnly { host, inside } => bind(&open_source(host, planned.source)?, inside, true),
        Mount::Writable { host, inside } | Mount::Scratch { host, inside } => {
            bind(&open_source(host, planned.source)?, inside, false)
        }
        Mount::Overlay { host, inside, bytes } => {
            overlay(number, &open_source(host, planned.source)?, inside, *bytes)
        }
        Mount::Tmpfs { inside, bytes } => {
            let stage = stage(number, "memory")?;
            mount_memory(&stage, &format!("size={bytes},mode=1777"))?;
            move_to(inside, &stage)
        }
        Mount::NoPackages { prefix } => {
            for (at, folder) in folders_of_packages(Path::new(NEW), prefix).into_iter().enumerate() {
                let stage = stage(number, &format!("empty-{at}"))?;
                mount_memory(&stage, "size=4k,mode=555")?;
                super::bind::make_read_only(&stage)?;
                move_to(&folder, &stage)?;
            }
            Ok(())
        }
    }
}

/// Folders below a prefix with packages for its interpreters, as paths inside; links are passed over, for what they lead to
/// lies elsewhere. `root` is where the inside lies.
fn folders_of_packages(root: &Path, prefix: &Path) -> Vec<PathBuf> {
    let outside = |inside: &Path| root.join(inside.strip_prefix("/").unwrap_or(inside));
    let is_folder = |inside: &Path| {
        let top = outside(prefix);
        let mut way = outside(inside)
            .ancestors()
            .take_while(|folder| *folder != top)
            .map(Path::to_owned)
            .collect::<Vec<_>>();
        way.reverse();
        way.iter().all(|folder| folder.symlink_metadata().is_ok_and(|found| found.is_dir()))
    };
    let mut found: Vec<PathBuf> = WHEELS.map(|name| prefix.join(name)).to_vec();
    for library in LIBRARIES.map(|name| prefix.join(name)).into_iter().filter(|library| is_folder(library)) {
        let entries = std::fs::read_dir(outside(&library)).into_iter().flatten().flatten();
        let of_python = entries.map(|entry| entry.file_name()).filter(|name| {
            let name = name.as_encoded_bytes();
            name.starts_with(b"python") || name.starts_with(b"pypy")
        });
        found.extend(of_python.flat_map(|name| PACKAGES.map(|folder| library.join(&name).join(folder))));
    }
    found.retain(|folder| is_folder(folder));
    found.sort();
    found
}

/// The very file or folder that the driver found.
fn open_source(host: &Path, identity: Option<Identity>) -> Step<OwnedFd> {
    let handle = open_below(Path::new(OLD), host)
        .map_err(|errno| format!("{}: {}", host.display(), in_words(errno)))?;
    if identity == Some(because(host.display(), Identity::of(&handle))?) {
        return Ok(handle);
    }
    Err(format!("{}: something else has been put there", host.display()))
}

fn bind(source: &OwnedFd, inside: &Path, read_only: bool) -> Step {
    let tree = copy_of_mount(source, inside)?;
    restrict(&tree, inside, read_only)?;
    let is_folder = because(inside.display(), kind(source))? == SFlag::S_IFDIR;
    attach(&tree, inside, is_folder)
}

/// Shows a folder writable, with all writes kept in so much memory and gone with the sandbox.
fn overlay(number: usize, source: &OwnedFd, inside: &Path, bytes: u64) -> Step {
    let (lower, layers, merged) =
        (stage(number, "lower")?, stage(number, "layers")?, stage(number, "merged")?);
    let handle = because(lower.display(), open_below(Path::new("/"), &lower))?;
    move_mount(&copy_of_mount(source, inside)?, handle.as_fd(), inside)?;
    mount_memory(&layers, &format!("size={bytes}"))?;
    for name in ["upper", "work"] {
        because_io(name, std::fs::create_dir(layers.join(name)))?;
    }
    let options = format!(
        "lowerdir={},upperdir={layers}/upper,workdir={layers}/work,userxattr",
        lower.display(),
        layers = layers.display()
    );
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    because(
        format!("overlay at {}", inside.display()),
        mount(Some("overlay"), &merged, Some("overlay"), flags, Some(options.as_str())),
    )?;
    move_to(inside, &merged)
}

/// A folder where a mount is put together, outside the new root.
fn stage(number: usize, name: &str) -> Step<PathBuf> {
    let stage = PathBuf::from(format!("/stage-{number}-{name}"));
    because_io(stage.display(), std::fs::create_dir(&stage))?;
    Ok(stage)
}

fn mount_memory(at: &Path, options: &str) -> Step {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    because(at.display(), mount(Some("tmpfs"), at, Some("tmpfs"), flags, Some(options)))
}

/// Moves the mount of a folder outside the new root to its place.
fn move_to(inside: &Path, stage: &Path) -> Step {
    let handle = because(stage.display(), open_below(Path::new("/"), stage))?;
    attach(&handle, inside, true)
}

fn attach(mount: &OwnedFd, inside: &Path, is_folder: bool) -> Step {
    let point = mount_point(inside, is_folder)
        .map_err(|errno| format!("the mount point {}: {}", inside.display(), in_words(errno)))?;
    move_mount(mount, point.as_fd(), inside)
}

/// Opens the place of a mount in the new root, making what is missing. What lies there may be foreign already.
fn mount_point(inside: &Path, is_folder: bool) -> nix::Result<OwnedFd> {
    let mut handle = open(NEW, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut parts = inside.components().filter(|part| *part != Component::RootDir).peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Err(Errno::EINVAL) };
        let name = Path::new(name);
        let found = match open_beneath(handle.as_fd(), name, OFlag::O_PATH) {
            Err(Errno::ENOENT) => {
                make(handle.as_fd(), name, is_folder || parts.peek().is_some())?;
                open_beneath(handle.as_fd(), name, OFlag::O_PATH)
            }
            found => found,
        };
        handle = found?;
        if kind(&handle)? == SFlag::S_IFLNK {
            return Err(Errno::ELOOP);
        }
    }
    Ok(handle)
}

fn make(folder: BorrowedFd<'_>, name: &Path, is_folder: bool) -> nix::Result<()> {
    if is_folder {
        return mkdirat(folder, name, Mode::from_bits_truncate(0o755));
    }
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(folder, name, flags, Mode::from_bits_truncate(0o644)).map(drop)
}

/// Paths of the calls below: empty, for they go by handles alone.
const BY_HANDLE: &CStr = c"";
const OPEN_TREE_CLONE: u32 = 1;
const OPEN_TREE_CLOEXEC: u32 = libc::O_CLOEXEC as u32;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 0x4;
const MOVE_MOUNT_T_EMPTY_PATH: u32 = 0x40;

/// `open_tree(2)`: a copy of a mount, from a folder or file of it on, with what is mounted below.
fn copy_of_mount(source: &OwnedFd, inside: &Path) -> Step<OwnedFd> {
    let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (libc::AT_RECURSIVE | libc::AT_EMPTY_PATH) as u32;
    // SAFETY: the path is valid for the call.
    let result = unsafe { libc::syscall(libc::SYS_open_tree, source.as_raw_fd(), BY_HANDLE.as_ptr(), flags) };
    let descriptor = because(format!("showing {}", inside.display()), Errno::result(result))?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// `move_mount(2)`.
fn move_mount(mount: &OwnedFd, point: BorrowedFd<'_>, inside: &Path) -> Step {
    // SAFETY: both paths are valid for the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            BY_HANDLE.as_ptr(),
            point.as_raw_fd(),
            BY_HANDLE.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH,
        )
    };
    because(format!("mounting {}", inside.display()), Errno::result(result)).map(drop)
}

/// The copy of a mount and everything below it lends no rights and has no devices, and is read-only where nobody may
/// write.
fn restrict(mount: &OwnedFd, inside: &Path, read_only: bool) -> Step {
    let always = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    let attributes = if read_only { always | libc::MOUNT_ATTR_RDONLY } else { always };
    because(
        format!("restricting {}", inside.display()),
        set_attributes(mount.as_fd(), BY_HANDLE, libc::AT_EMPTY_PATH, attributes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_every_interpreter_are_found_and_no_standard_library() {
        let root = tempfile::tempdir().unwrap();
        let made = |path: &str| fs_err::create_dir_all(root.path().join(path)).unwrap();
        for path in [
            "usr/lib/python3/dist-packages/requests",
            "usr/lib/python3.11/ensurepip/_bundled",
            "usr/lib/python3.11/json",
            "usr/lib64/python3.9/site-packages",
            "usr/lib/pypy3/site-packages",
            "usr/lib/perl5/site-packages",
            "usr/share/python-wheels",
            "usr/local/lib/python3.12/site-packages",
            "elsewhere/python3.1/site-packages",
        ] {
            made(path);
        }
        std::os::unix::fs::symlink("/elsewhere", root.path().join("usr/lib32")).unwrap();
        std::os::unix::fs::symlink("/elsewhere/python3.1", root.path().join("usr/lib/python3.1")).unwrap();
        let found = |prefix: &str| folders_of_packages(root.path(), Path::new(prefix));
        let expected = [
            "/usr/lib/pypy3/site-packages",
            "/usr/lib/python3.11/ensurepip/_bundled",
            "/usr/lib/python3/dist-packages",
            "/usr/lib64/python3.9/site-packages",
            "/usr/share/python-wheels",
        ];
        let mut expected = expected.map(PathBuf::from).to_vec();
        expected.sort();
        assert_eq!(found("/usr"), expected);
        assert_eq!(found("/usr/local"), [PathBuf::from("/usr/local/lib/python3.12/site-packages")]);
        assert!(found("/not/there").is_empty());
    }
}
