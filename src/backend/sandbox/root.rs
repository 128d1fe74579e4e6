//! The file systems that a sandbox sees: pieces of the system, read-only; a small `/etc` and `/dev`; the mounts of the
//! plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::bind::{NEW, OLD, bind};
use super::{INSIDE_ID, Plan, Step, USER, because, because_io, kernel, mounts};
use crate::backend::shown::DEVICES;

/// Pieces of the system that are shown read-only.
const SYSTEM: [&str; 9] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu"];
/// Pieces of `/etc` that are shown: what programs need to work, and nothing that could hold a secret.
const ETC: [&str; 27] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "timezone",
    "mime.types",
    "protocols",
    "services",
    "alternatives",
    "fonts",
    "gai.conf",
    "host.conf",
    "locale.conf",
    "locale.alias",
    "os-release",
    "debian_version",
    "terminfo",
    "magic",
    "magic.mime",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates",
    "pki",
    "crypto-policies",
    "rpc",
    "networks",
    "ethertypes",
];
/// Builds the root of the sandbox and moves into it.
pub(super) fn build(plan: &Plan) -> Step {
    let none: Option<&str> = None;
    because("private mounts", mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))?;
    let base = "/proc";
    because(
        "base",
        mount(Some("tmpfs"), base, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=755")),
    )?;
    because("base", nix::unistd::chdir(base))?;
    for name in ["old", "new"] {
        because_io(name, std::fs::create_dir(name))?;
    }
    because("pivot", nix::unistd::pivot_root(".", "old"))?;
    because("root", nix::unistd::chdir("/"))?;
    because(
        "new root",
        mount(Some("tmpfs"), NEW, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=755")),
    )?;
    for name in SYSTEM {
        show_system(name)?;
    }
    kernel::show_sys(Path::new(OLD), Path::new(NEW))?;
    fill_etc(plan)?;
    fill_dev()?;
    because_io("proc", std::fs::create_dir(format!("{NEW}/proc")))?;
    because(
        "mounting /proc",
        mount(
            Some("proc"),
            format!("{NEW}/proc").as_str(),
            Some("proc"),
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
            none,
        ),
    )?;
    for name in ["tmp", "run", "var/tmp", "var/lib", "home"] {
        because_io(name, std::fs::create_dir_all(format!("{NEW}/{name}")))?;
    }
    because_io("run/lock", std::fs::create_dir_all(format!("{NEW}/run/lock")))?;
    mounts::show(&plan.mounts)?;
    because("pivot", nix::unistd::chdir(NEW))?;
    because("pivot", nix::unistd::pivot_root(".", "."))?;
    because("detaching the old root", umount2(".", MntFlags::MNT_DETACH))?;
    because("root", nix::unistd::chdir("/"))?;
    because(
        "read-only root",
        mount(
            none,
            "/",
            none,
            MsFlags::MS_REMOUNT
                | MsFlags::MS_BIND
                | MsFlags::MS_RDONLY
                | MsFlags::MS_NOSUID
                | MsFlags::MS_NODEV,
            none,
        ),
    )
}

fn show_system(name: &str) -> Step {
    let (host, inside) = (format!("{OLD}/{name}"), format!("{NEW}/{name}"));
    let Ok(metadata) = std::fs::symlink_metadata(&host) else { return Ok(()) };
    if metadata.is_symlink() {
        let target = because_io(&host, std::fs::read_link(&host))?;
        return because_io(&inside, std::os::unix::fs::symlink(target, &inside));
    }
    bind(Path::new(&host), Path::new(&inside), true)
}

/// The user inside, as the job's environment names it: name and home directory.
fn identity(env: &BTreeMap<String, String>) -> (String, String) {
    let plain = |text: &&String| !text.is_empty() && !text.contains([':', '\n']);
    let user = env.get("USER").filter(plain).map_or(USER, String::as_str);
    let home = env.get("HOME").filter(plain).cloned().unwrap_or_else(|| format!("/home/{user}"));
    (user.to_owned(), home)
}

fn fill_etc(plan: &Plan) -> Step {
    let (user, home) = identity(&plan.env);
    let etc = format!("{NEW}/etc");
    because_io("etc", std::fs::create_dir(&etc))?;
    for name in ETC {
        let host = PathBuf::from(format!("{OLD}/etc/{name}"));
        if let Ok(resolved) = resolve_in_old(&host) {
            bind(&resolved, Path::new(&format!("{etc}/{name}")), true)?;
        }
    }
    let files = [
        (
            "passwd",
            format!(
                "root:x:0:0:root:/root:/bin/sh\n{user}:x:{INSIDE_ID}:{INSIDE_ID}:{user}:{home}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
            ),
        ),
        ("group", format!("root:x:0:\n{user}:x:{INSIDE_ID}:\nnogroup:x:65534:\n")),
        ("hosts", format!("127.0.0.1 localhost {USER}\n::1 localhost\n")),
        ("hostname", format!("{USER}\n")),
        ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
        ("machine-id", format!("{}\n", "0".repeat(32))),
        ("resolv.conf", String::new()),
    ];
    for (name, text) in files {
        because_io(name, std::fs::write(format!("{etc}/{name}"), text))?;
    }
    Ok(())
}

/// Follows symlinks as the host would, below the old root.
fn resolve_in_old(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..16 {
        if !std::fs::symlink_metadata(&path)?.is_symlink() {
            return Ok(path);
        }
        let target = std::fs::read_link(&path)?;
        path = match target.strip_prefix("/") {
            Ok(relative) => Path::new(OLD).join(relative),
            Err(_) => path.parent().unwrap_or(Path::new(OLD)).join(target),
        };
    }
    Err(std::io::Error::other("too many symbolic links"))
}

fn fill_dev() -> Step {
    let dev = format!("{NEW}/dev");
    because_io("dev", std::fs::create_dir(&dev))?;
    for name in DEVICES {
        bind(Path::new(&format!("{OLD}/dev/{name}")), Path::new(&format!("{dev}/{name}")), false)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        because_io(name, std::os::unix::fs::symlink(target, format!("{dev}/{name}")))?;
    }
    for name in ["pts", "shm"] {
        because_io(name, std::fs::create_dir(format!("{dev}/{name}")))?;
    }
    because(
        "devpts",
        mount(
            Some("devpts"),
            format!("{dev}/pts").as_str(),
            Some("devpts"),
            MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC,
            Some("newinstance,ptmxmode=0666,mode=620"),
        ),
    )
}
