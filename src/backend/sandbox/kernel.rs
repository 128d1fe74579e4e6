//! What a sandbox sees of the kernel below `/proc` and `/sys`: what programs need to learn about processors and memory,
//! nothing that tells machines apart, and nothing that could be changed. To the kernel, a process that root started
//! outside owns these files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

use super::bind::bind;
use super::{Step, because, because_io};

/// Below `/proc`: what tells about the machine and the kernel's memory, and reads as empty.
const MASKED: [&str; 16] = [
    "cmdline",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "modules",
    "sched_debug",
    "slabinfo",
    "timer_list",
    "vmallocinfo",
];
/// Folders below `/sys` that are shown: the number and kind of processors, and how memory is laid out.
const SHOWN: [&str; 3] = ["devices/system/cpu", "devices/system/node", "kernel/mm/transparent_hugepage"];

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
    for name in SHOWN {
        let host = old.join("sys").join(name);
        if host.exists() {
            bind(&host, &target.join(name), true)?;
        }
    }
    let none: Option<&str> = None;
    let read_only = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    because("sys", mount(none, &target, none, read_only, none))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a list in the program that makes the sandbox in a container.
    fn in_containers(name: &str) -> Vec<String> {
        let text = include_str!("../docker/inside.py");
        let start = format!("\n{name} = (");
        let (_, list) = text.split_once(&start).expect("the list is there");
        let (list, _) = list.split_once(')').expect("the list ends");
        let words = list.split(',').map(|word| word.trim().trim_matches('"').to_owned());
        words.filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn containers_show_the_same_of_the_kernel() {
        assert_eq!(in_containers("MASKED"), MASKED);
        assert_eq!(in_containers("SHOWN_OF_SYS"), SHOWN);
        assert_eq!(in_containers("DEVICES"), crate::backend::sandbox::root::DEVICES);
    }
}
