//! The inside of the local sandbox: what `gistmill __sandbox` does between being started and running a job.
//!
//! The driver starts this program again with a hidden subcommand, so nothing but the kernel is needed. The steps:
//! read the [`Plan`] from stdin, enter new namespaces as an ordinary user, fork an `init` (process 1 of its process
//! namespace), build a root of its own out of read-only pieces of the system, drop every privilege, run the command,
//! and end everything as soon as the command ends or the driver goes away (the other end of stdin closes).
//!
//! This code runs in a process of one thread. It never returns to the caller of [`enter`].

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid};
use serde::{Deserialize, Serialize};

use super::{JobLimits, Mount, Network};

/// Exit code of a sandbox that could not be set up; stderr then starts with [`TROUBLE`].
pub const SETUP_FAILED: i32 = 125;
/// Marks a message of the sandbox itself.
pub const TROUBLE: &str = "gistmill sandbox: ";
/// User and group inside.
const INSIDE_ID: u32 = 1000;
/// Name of the user inside.
pub const USER: &str = "gistmill";

/// A job as the sandbox sees it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    pub mounts: Vec<Mount>,
    pub network: Network,
    pub may_mount: bool,
    pub limits: JobLimits,
    pub channel: bool,
}

type Step<T = ()> = Result<T, String>;

fn because<T>(what: impl std::fmt::Display, result: nix::Result<T>) -> Step<T> {
    result.map_err(|errno| format!("{what}: {errno}"))
}

fn because_io<T>(what: impl std::fmt::Display, result: std::io::Result<T>) -> Step<T> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// Runs the plan that waits on stdin and exits with the command's code (128 + signal when it was killed).
pub fn enter() -> ! {
    let code = match outside() {
        Ok(code) => code,
        Err(trouble) => {
            eprintln!("{TROUBLE}{trouble}");
            SETUP_FAILED
        }
    };
    std::process::exit(code);
}

/// The part outside the process namespace: enters the namespaces and waits for `init`.
fn outside() -> Step<i32> {
    let plan = read_plan()?;
    enter_namespaces(plan.network)?;
    // SAFETY: this process has one thread, so the child may go on using everything after the fork.
    match because("fork", unsafe { fork() })? {
        ForkResult::Child => {
            let code = match init(&plan) {
                Ok(code) => code,
                Err(trouble) => {
                    eprintln!("{TROUBLE}{trouble}");
                    SETUP_FAILED
                }
            };
            std::process::exit(code)
        }
        ForkResult::Parent { child } => loop {
            match waitpid(child, None) {
                Ok(WaitStatus::Exited(_, code)) => return Ok(code),
                Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(128 + signal as i32),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(format!("waiting for the sandbox: {errno}")),
            }
        },
    }
}

fn read_plan() -> Step<Plan> {
    // `Stdin` buffers, so read through the descriptor: later bytes belong to the command.
    let descriptor = because_io("stdin", std::io::stdin().as_fd().try_clone_to_owned())?;
    let mut stdin = std::fs::File::from(descriptor);
    let mut length = [0_u8; 4];
    because_io("reading the plan", stdin.read_exact(&mut length))?;
    let mut text = vec![0_u8; u32::from_be_bytes(length) as usize];
    because_io("reading the plan", stdin.read_exact(&mut text))?;
    serde_json::from_slice(&text).map_err(|error| format!("the plan: {error}"))
}

fn enter_namespaces(network: Network) -> Step {
    let (user, group) = (geteuid(), getegid());
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    if network == Network::Off {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    because("entering new namespaces", unshare(flags))?;
    because_io("setgroups", std::fs::write("/proc/self/setgroups", "deny"))?;
    because_io("uid_map", std::fs::write("/proc/self/uid_map", format!("{INSIDE_ID} {user} 1")))?;
    because_io("gid_map", std::fs::write("/proc/self/gid_map", format!("{INSIDE_ID} {group} 1")))?;
    because("hostname", nix::unistd::sethostname(USER))?;
    if network == Network::Off {
        loopback_up()?;
    }
    Ok(())
}

/// Brings the loopback interface of a new network namespace up.
fn loopback_up() -> Step {
    let socket = because(
        "socket",
        nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Inet,
            nix::sys::socket::SockType::Datagram,
            nix::sys::socket::SockFlag::SOCK_CLOEXEC,
            None,
        ),
    )?;
    // SAFETY: `ifreq` is plain data for which all zeroes is valid.
    let mut request: nix::libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = nix::libc::c_char::from_ne_bytes([b'l']);
    request.ifr_name[1] = nix::libc::c_char::from_ne_bytes([b'o']);
    request.ifr_ifru.ifru_flags = (nix::libc::IFF_UP | nix::libc::IFF_RUNNING) as i16;
    // SAFETY: the descriptor is open and `request` is a valid `ifreq` that outlives the call.
    let result = unsafe {
        nix::libc::ioctl(
            std::os::fd::AsRawFd::as_raw_fd(&socket),
            nix::libc::SIOCSIFFLAGS,
            std::ptr::from_mut(&mut request),
        )
    };
    because("bringing the loopback up", Errno::result(result)).map(drop)
}

/// Process 1 of the sandbox: builds the root, runs the command, reaps, ends all.
fn init(plan: &Plan) -> Step<i32> {
    because("parent-death signal", nix::sys::prctl::set_pdeathsig(Some(Signal::SIGKILL)))?;
    // First of all, while no other descriptor is open that could be 3 or 4.
    if plan.channel {
        hand_over_channel()?;
    }
    build_root(plan)?;
    start_process_ids_high();
    protect_kernel_settings()?;
    let lifeline = because_io("stdin", std::io::stdin().as_fd().try_clone_to_owned())?;
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    because("blocking SIGCHLD", children.thread_block())?;
    let reaper =
        because("signalfd", SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK))?;
    let payload = start_payload(plan)?;
    supervise(lifeline.as_fd(), &reaper, payload)
}

/// Process IDs begin far above the small numbers that tests print, so that an ID in their output can be told from a
/// count. Where the kernel does not allow it, IDs stay small and are not recognised.
fn start_process_ids_high() {
    let highest =
        std::fs::read_to_string("/proc/sys/kernel/pid_max").ok().and_then(|text| text.trim().parse().ok());
    let start = highest.unwrap_or(32_768_u32) / 3 * 2;
    let _ = std::fs::write("/proc/sys/kernel/ns_last_pid", start.to_string());
}

/// Files of `/proc` that change the machine become read-only: to the kernel, a process that root started outside owns them.
fn protect_kernel_settings() -> Step {
    for name in ["sys", "irq", "bus", "fs", "sysrq-trigger"] {
        let path = PathBuf::from(format!("/proc/{name}"));
        if path.exists() {
            bind(&path, &path, true)?;
        }
    }
    Ok(())
}

fn supervise(lifeline: BorrowedFd<'_>, reaper: &SignalFd, payload: Pid) -> Step<i32> {
    loop {
        loop {
            match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == payload => return Ok(code),
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == payload => return Ok(128 + signal as i32),
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => break,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(format!("waiting for the command: {errno}")),
            }
        }
        let mut watched =
            [PollFd::new(lifeline, PollFlags::empty()), PollFd::new(reaper.as_fd(), PollFlags::POLLIN)];
        match poll(&mut watched, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(format!("waiting: {errno}")),
        }
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        if watched[0].revents().is_some_and(|events| events.intersects(gone)) {
            let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
            return Ok(128 + Signal::SIGKILL as i32);
        }
        while let Ok(Some(_)) = reaper.read_signal() {}
    }
}

fn start_payload(plan: &Plan) -> Step<Pid> {
    let (program, arguments) = plan.argv.split_first().ok_or("the plan has no command")?;
    for (resource, limit) in [
        (Resource::RLIMIT_AS, plan.limits.memory),
        (Resource::RLIMIT_NPROC, plan.limits.processes),
        (Resource::RLIMIT_FSIZE, plan.limits.file_size),
    ] {
        if limit > 0 {
            because(format!("limit {resource:?}"), setrlimit(resource, limit, limit))?;
        }
    }
    because("limit on core files", setrlimit(Resource::RLIMIT_CORE, 0, 0))?;
    let may_mount = plan.may_mount;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&plan.env).current_dir(&plan.cwd).stdin(Stdio::null());
    // SAFETY: between fork and exec only system calls are made; this process has one thread.
    unsafe {
        command.pre_exec(move || {
            SigSet::empty().thread_set_mask()?;
            nix::unistd::setsid()?;
            lock_mounts()?;
            drop_privileges(may_mount)
        });
    }
    let child = because_io(format!("starting {program}"), command.spawn())?;
    Ok(Pid::from_raw(child.id().cast_signed()))
}

/// A second, inner user and mount namespace: what was mounted so far cannot be changed or uncovered from within it, not even
/// with the right to mount.
fn lock_mounts() -> std::io::Result<()> {
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    for name in ["uid_map", "gid_map"] {
        std::fs::write(format!("/proc/self/{name}"), format!("{INSIDE_ID} {INSIDE_ID} 1"))?;
    }
    Ok(())
}

/// Requests arrive on stdin and answers leave on stdout: moves them to descriptors 3 and 4, where the command looks for
/// them; whatever it prints goes to stderr.
fn hand_over_channel() -> Step {
    // SAFETY: descriptors 0 to 4 are this process's own, and nothing else in it owns 3 or 4 for longer than this call.
    unsafe {
        for (from, to) in [(0, 3), (1, 4), (2, 1)] {
            because("moving the channel", Errno::result(nix::libc::dup2(from, to)))?;
        }
    }
    Ok(())
}

/// Drops every capability, but for the right to mount in this namespace when asked; no new privileges from here on.
fn drop_privileges(may_mount: bool) -> std::io::Result<()> {
    /// `CAP_SYS_ADMIN` to mount, `CAP_DAC_OVERRIDE` because overlayfs makes a work directory that nobody may enter.
    const FOR_MOUNTING: [u32; 2] = [21, 1];
    const LAST: u32 = 63;
    let kept: &[u32] = if may_mount { &FOR_MOUNTING } else { &[] };
    let keep = kept.iter().fold(0_u64, |bits, capability| bits | 1 << capability);
    let prctl = |option: i32, a: u64, b: u64| -> nix::Result<i32> {
        // SAFETY: `prctl` with these options reads its arguments as plain numbers.
        Errno::result(unsafe { nix::libc::prctl(option, a, b, 0, 0) })
    };
    for capability in 0..=LAST {
        if keep & (1 << capability) == 0 {
            match prctl(nix::libc::PR_CAPBSET_DROP, u64::from(capability), 0) {
                Ok(_) | Err(Errno::EINVAL) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    set_capabilities(keep)?;
    for capability in kept {
        prctl(nix::libc::PR_CAP_AMBIENT, nix::libc::PR_CAP_AMBIENT_RAISE as u64, u64::from(*capability))?;
    }
    prctl(nix::libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
    Ok(())
}

/// `capset`: effective, permitted and inheritable sets become `keep`.
fn set_capabilities(keep: u64) -> std::io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let half = |bits: u64| Data { effective: bits as u32, permitted: bits as u32, inheritable: bits as u32 };
    let header = Header { version: VERSION_3, pid: 0 };
    let data = [half(keep & 0xffff_ffff), half(keep >> 32)];
    // SAFETY: header and data have the layout of the kernel's version 3 interface and outlive the call.
    Errno::result(unsafe { nix::libc::syscall(nix::libc::SYS_capset, &raw const header, data.as_ptr()) })?;
    Ok(())
}

// ---- the root ----------------------------------------------------------------------------------------------------

/// Pieces of the system that are shown read-only.
const SYSTEM: [&str; 10] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu", "sys"];
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
/// Device nodes that are shown.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const OLD: &str = "/old";
const NEW: &str = "/new";

fn build_root(plan: &Plan) -> Step {
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
    for entry in &plan.mounts {
        apply(entry)?;
    }
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
    let network = plan.network;
    let (user, home) = identity(&plan.env);
    let etc = format!("{NEW}/etc");
    because_io("etc", std::fs::create_dir(&etc))?;
    for name in ETC {
        let host = PathBuf::from(format!("{OLD}/etc/{name}"));
        if let Ok(resolved) = resolve_in_old(&host) {
            bind(&resolved, Path::new(&format!("{etc}/{name}")), true)?;
        }
    }
    let mut files = vec![
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
    ];
    let resolver = match network {
        Network::Off => String::new(),
        Network::Host => std::fs::read_to_string(format!("{OLD}/etc/resolv.conf")).unwrap_or_default(),
    };
    files.push(("resolv.conf", resolver));
    if network == Network::Host
        && let Ok(hosts) = std::fs::read_to_string(format!("{OLD}/etc/hosts"))
    {
        files.push(("hosts", hosts));
    }
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

fn apply(entry: &Mount) -> Step {
    let old = |host: &Path| Path::new(OLD).join(host.strip_prefix("/").unwrap_or(host));
    let new = |inside: &Path| Path::new(NEW).join(inside.strip_prefix("/").unwrap_or(inside));
    match entry {
        Mount::ReadOnly { host, inside } => bind(&old(host), &new(inside), true),
        Mount::Writable { host, inside } => bind(&old(host), &new(inside), false),
        Mount::Overlay { host, inside } => overlay(&old(host), &new(inside)),
        Mount::Tmpfs { inside, bytes } => {
            let target = new(inside);
            because_io(target.display(), std::fs::create_dir_all(&target))?;
            let options = format!("size={bytes},mode=1777");
            because(
                inside.display(),
                mount(
                    Some("tmpfs"),
                    &target,
                    Some("tmpfs"),
                    MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
                    Some(options.as_str()),
                ),
            )
        }
    }
}

/// Shows `host` at `inside`, writable, with all writes kept in memory and gone with the sandbox.
fn overlay(host: &Path, inside: &Path) -> Step {
    let layers = format!("/layers{}", inside.display().to_string().replace('/', "-"));
    because_io(&layers, std::fs::create_dir(&layers))?;
    let none: Option<&str> = None;
    because(
        &layers,
        mount(Some("tmpfs"), layers.as_str(), Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, none),
    )?;
    for name in ["upper", "work"] {
        because_io(name, std::fs::create_dir(format!("{layers}/{name}")))?;
    }
    because_io(inside.display(), std::fs::create_dir_all(inside))?;
    let escaped = host.display().to_string().replace('\\', "\\\\").replace(',', "\\,").replace(':', "\\:");
    let options = format!("lowerdir={escaped},upperdir={layers}/upper,workdir={layers}/work,userxattr");
    because(
        format!("overlay at {}", inside.display()),
        mount(
            Some("overlay"),
            inside,
            Some("overlay"),
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
            Some(options.as_str()),
        ),
    )
}

/// Binds `host` (with what is mounted below it) to `inside`, making the target first.
fn bind(host: &Path, inside: &Path, read_only: bool) -> Step {
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

/// `mount_setattr(2)`: the mount and everything below it becomes read-only, without set-user-ID programs.
fn make_read_only(path: &Path) -> Step {
    let text = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
    let attributes = nix::libc::mount_attr {
        attr_set: nix::libc::MOUNT_ATTR_RDONLY | nix::libc::MOUNT_ATTR_NOSUID,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: path and attributes are valid for the call, and the size is that of the structure.
    let result = unsafe {
        nix::libc::syscall(
            nix::libc::SYS_mount_setattr,
            nix::libc::AT_FDCWD,
            text.as_ptr(),
            nix::libc::AT_RECURSIVE,
            &raw const attributes,
            std::mem::size_of::<nix::libc::mount_attr>(),
        )
    };
    because(format!("making {} read-only", path.display()), Errno::result(result)).map(drop)
}
