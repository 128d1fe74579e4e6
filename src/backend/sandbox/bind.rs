//! Pieces of the host that are shown inside, and the attributes of mounts.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

use super::{Step, because, because_io};

/// Where the host's root lies while this one is built.
pub(super) const OLD: &str = "/old";
/// Where this root lies until it is moved into.
pub(super) const NEW: &str = "/new";

/// Binds `host` (with what is mounted below it) to `inside`, making the target first. For pieces of the system alone:
/// both paths are looked up, and links followed.
pub(super) fn bind(host: &Path, inside: &Path, read_only: bool) -> Step {
    let metadata = because_io(host.display(), std::fs::metadata(host))?;
    if metadata.is_dir() {
        because_io(inside.display(), std::fs::create_dir_all(inside))?;
    } else if !inside.exists() {
        if let Some(parent) = inside.parent() {
            because_io(parent.display(), std::fs::create_dir_all(parent))?;
        }
        because_io(inside.display(), std::fs::File::create(inside))?;
    }
    let none: Option<&str> = None;
    because(
        format!("showing {}", inside.display()),
        mount(Some(host), inside, none, MsFlags::MS_BIND | MsFlags::MS_REC, none),
    )?;
    if read_only { make_read_only(inside) } else { Ok(()) }
}

/// The mount and everything below it becomes read-only, without set-user-ID programs.
pub(super) fn make_read_only(path: &Path) -> Step {
    let text = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
    let attributes = nix::libc::MOUNT_ATTR_RDONLY | nix::libc::MOUNT_ATTR_NOSUID;
    let done = set_attributes(nix::fcntl::AT_FDCWD, &text, 0, attributes);
    because(format!("making {} read-only", path.display()), done)
}

/// `mount_setattr(2)`, for a mount by path or handle and all that is mounted below it: adds these attributes.
pub(super) fn set_attributes(
    folder: BorrowedFd<'_>,
    path: &CStr,
    flags: i32,
    attributes: u64,
) -> nix::Result<()> {
    let attributes =
        nix::libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: path and attributes are valid for the call, and the size is that of the structure.
    let result = unsafe {
        nix::libc::syscall(
            nix::libc::SYS_mount_setattr,
            folder.as_raw_fd(),
            path.as_ptr(),
            nix::libc::AT_RECURSIVE | flags,
            &raw const attributes,
            std::mem::size_of::<nix::libc::mount_attr>(),
        )
    };
    Errno::result(result).map(drop)
}
