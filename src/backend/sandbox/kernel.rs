//! What a sandbox sees of the kernel below `/proc` and `/sys`: what programs need to learn about processors and memory,
//! nothing that tells machines apart, and nothing that could be changed. To the kernel, a process that root started
//! outside owns these files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

use super::bind::bind;
use super::{Step, because, because_io};
use crate::backend::shown::{MASKED, SHOWN_OF_SYS};

/// Folders below `/proc`, but for those of processes, and whatever can be written there become read-only.
pub(super) fn protect_settings() -> Step {
    for entry in because_io("/proc", std::fs::read_dir("/proc"))? {
        let entry = because_io("/proc", entry)?;
        let of_a_process = entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        // What goes away while it is looked at is a process.
        let Some(metadata) = entry.metadata().ok().filter(|_| !of_a_process) else { continue };
        if metadata.is_dir() || metadata.is_file() && metadata.permissions().mode() & 0o222 != 0 {
            bind(&entry.path(), &entry.path(), true)?;
        }
    }
    Ok(())
}

/// What is for the machine's administrator reads as empty.
pub(super) fn mask() -> Step {
    let none: Option<&str> = None;
    for path in MASKED.map(|name| Path::new("/proc").join(name)) {
        match mount(Some("/dev/null"), &path, none, MsFlags::MS_BIND, none) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => return Err(format!("masking {}: {errno}", path.display())),
        }
    }
    Ok(())
}

/// A `/sys` below `new` with a few folders of the one below `old`.
pub(super) fn show_sys(old: &Path, new: &Path) -> Step {
    let target = new.join("sys");
    because_io("sys", std::fs::create_dir(&target))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    because("sys", mount(Some("tmpfs"), &target, Some("tmpfs"), flags, Some("size=64k,mode=755")))?;
    for name in SHOWN_OF_SYS {
        let host = old.join("sys").join(name);
        if host.exists() {
            bind(&host, &target.join(name), true)?;
        }
    }
    let none: Option<&str> = None;
    let read_only = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    because("sys", mount(none, &target, none, read_only, none))
}
