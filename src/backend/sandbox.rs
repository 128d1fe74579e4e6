//! The inside of the local sandbox: what `gistmill __sandbox` does between being started and running a job.
//!
//! The driver starts this program again with a hidden subcommand, so nothing but the kernel is needed. The steps:
//! read the [`Plan`] from stdin, enter new namespaces as an ordinary user, fork an `init` (process 1 of its process
//! namespace), build a root of its own out of read-only pieces of the system, drop every privilege, run the command,
//! and end everything as soon as the command ends or the driver goes away (the other end of stdin closes).
//!
//! This code runs in a process of one thread. It never returns to the caller of [`enter`].

#![cfg_attr(
    not(test),
    expect(
        clippy::disallowed_methods,
        reason = "paths are those of a root that is being built; each step has words of its own"
    )
)]

mod bind;
mod kernel;
mod keyring;
pub(super) mod mounts;
mod parts;
mod root;
pub mod seccomp;

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid};
use serde::{Deserialize, Serialize};

use super::{JobLimits, SERVICE_PORT, service};

pub use parts::Part;
use seccomp::Sockets;

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
    pub mounts: Vec<mounts::Planned>,
    pub may_mount: bool,
    pub limits: JobLimits,
    pub channel: bool,
    /// The descriptor of the socket that takes the listening socket of a service to the driver.
    pub service: Option<RawFd>,
    /// Parts that this machine refuses.
    pub without: Vec<Part>,
}

impl Plan {
    fn has(&self, part: Part) -> bool {
        !self.without.contains(&part)
    }
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
    crate::interrupt::by_default().map_err(|error| error.to_string())?;
    let plan = read_plan()?;
    close_inherited(plan.service)?;
    // The kernel holds no process of root's to its limit on processes: they are counted here.
    let counting = (geteuid().is_root() && plan.limits.processes > 0).then(Counting::begin);
    keyring::leave(&plan)?;
    enter_namespaces(&plan)?;
    if let Some(descriptor) = plan.service {
        hand_over_service(descriptor)?;
    }
    // SAFETY: this process has one thread, so the child may go on using everything after the fork.
    match because("fork", unsafe { fork() })? {
        ForkResult::Child => {
            let code = match init(&plan, counting) {
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

/// Closes what the driver had open by mistake, such as pipes of whoever started it: nothing of the job is to hold it.
fn close_inherited(kept: Option<RawFd>) -> Step {
    let close = |first: u32, last: u32| {
        // SAFETY: nothing in this process owns a descriptor above 2 but the one that is kept.
        let result = unsafe { nix::libc::syscall(nix::libc::SYS_close_range, first, last, 0) };
        because("closing what was inherited", Errno::result(result)).map(drop)
    };
    let Some(kept) = kept.and_then(|kept| u32::try_from(kept).ok()).filter(|kept| *kept > 2) else {
        return close(3, u32::MAX);
    };
    if kept > 3 {
        close(3, kept - 1)?;
    }
    close(kept + 1, u32::MAX)
}

fn enter_namespaces(plan: &Plan) -> Step {
    let (user, group) = (geteuid(), getegid());
    let mut flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    for part in Part::ALL {
        if plan.has(part) {
            flags |= part.flag();
        }
    }
    because("entering new namespaces", unshare(flags))?;
    because_io("setgroups", std::fs::write("/proc/self/setgroups", "deny"))?;
    because_io("uid_map", std::fs::write("/proc/self/uid_map", format!("{INSIDE_ID} {user} 1")))?;
    because_io("gid_map", std::fs::write("/proc/self/gid_map", format!("{INSIDE_ID} {group} 1")))?;
    if plan.has(Part::HostName) {
        because("hostname", nix::unistd::sethostname(USER))?;
    }
    if flags.contains(CloneFlags::CLONE_NEWNET) {
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

/// Listens at the loopback of the new network namespace and hands the listening socket to the driver. Neither it nor the
/// socket that it goes through is left open here for the command.
fn hand_over_service(descriptor: RawFd) -> Step {
    // SAFETY: the driver left this descriptor open for this purpose alone, and nothing else here owns it.
    let driver = unsafe { UnixStream::from_raw_fd(descriptor) };
    let address = (Ipv4Addr::LOCALHOST, SERVICE_PORT);
    let listener = because_io("listening for the service", TcpListener::bind(address))?;
    because("handing over the service", service::hand_over(&driver, &listener))
}

/// Process 1 of the sandbox: builds the root, runs the command, reaps, ends all.
fn init(plan: &Plan, counting: Option<Counting>) -> Step<i32> {
    because("parent-death signal", nix::sys::prctl::set_pdeathsig(Some(Signal::SIGKILL)))?;
    // Whoever may write to what is this process's must not reach the user's session: the kernel shares out processors by it.
    because("a session", nix::unistd::setsid())?;
    // First of all, while no other descriptor is open that could be 3 or 4.
    if plan.channel {
        hand_over_channel()?;
    }
    root::build(plan)?;
    start_process_ids_high();
    kernel::protect_settings()?;
    kernel::mask()?;
    let lifeline = because_io("stdin", std::io::stdin().as_fd().try_clone_to_owned())?;
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    because("blocking SIGCHLD", children.thread_block())?;
    let reaper =
        because("signalfd", SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK))?;
    let payload = start_payload(plan, counting)?;
    let most = counting.map(|_| plan.limits.processes);
    supervise(lifeline.as_fd(), &reaper, payload, most)
}

/// Half of all memory is added to what a process of the job seems to hold when the kernel chooses one to end; the runner
/// gives its tests more.
const EXPENDABLE: &str = "500";
/// Time between two counts of the processes, in milliseconds.
const COUNT_EVERY: u16 = 100;

/// That this process counts those of the job.
#[derive(Clone, Copy)]
struct Counting {
    /// The priority of everybody else.
    priority: i32,
}

impl Counting {
    /// What this process is urged on by: a job that makes processes without end keeps all processors busy.
    const URGENCY: i32 = 10;

    /// Makes this process come before those that it counts, where that is allowed.
    fn begin() -> Self {
        // SAFETY: both calls take and give plain numbers.
        let priority = unsafe { nix::libc::getpriority(nix::libc::PRIO_PROCESS, 0) };
        Counting { priority }.set(priority - Counting::URGENCY)
    }

    /// For a process of the job: takes the priority that it would have.
    fn let_go(self) {
        self.set(self.priority);
    }

    fn set(self, priority: i32) -> Self {
        // SAFETY: the call takes plain numbers. Where it is refused, all have the same priority.
        unsafe { nix::libc::setpriority(nix::libc::PRIO_PROCESS, 0, priority) };
        self
    }
}

fn processes() -> u64 {
    let number = |name: std::ffi::OsString| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter(|entry| number(entry.file_name())).count() as u64
}

/// Process IDs begin far above the small numbers that tests print, so that an ID in their output can be told from a
/// count. Where the kernel does not allow it, IDs stay small and are not recognised.
fn start_process_ids_high() {
    let highest =
        std::fs::read_to_string("/proc/sys/kernel/pid_max").ok().and_then(|text| text.trim().parse().ok());
    let start = highest.unwrap_or(32_768_u32) / 3 * 2;
    let _ = std::fs::write("/proc/sys/kernel/ns_last_pid", start.to_string());
}

fn supervise(lifeline: BorrowedFd<'_>, reaper: &SignalFd, payload: Pid, most: Option<u64>) -> Step<i32> {
    let pause = most.map_or(PollTimeout::NONE, |_| PollTimeout::from(COUNT_EVERY));
    let killed = || {
        let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        // The kernel would end them as well, but what they used would be known to nobody.
        while !matches!(waitpid(None::<Pid>, None), Err(Errno::ECHILD)) {}
        128 + Signal::SIGKILL as i32
    };
    loop {
        loop {
            match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == payload => return Ok(code),
                // Nobody would let it go on.
                Ok(WaitStatus::Stopped(pid, _)) if pid == payload => {
                    killed();
                    return Ok(128 + Signal::SIGSTOP as i32);
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == payload => return Ok(128 + signal as i32),
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => break,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(format!("waiting for the command: {errno}")),
            }
        }
        let mut watched =
            [PollFd::new(lifeline, PollFlags::empty()), PollFd::new(reaper.as_fd(), PollFlags::POLLIN)];
        match poll(&mut watched, pause) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(format!("waiting: {errno}")),
        }
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        if watched[0].revents().is_some_and(|events| events.intersects(gone)) {
            return Ok(killed());
        }
        if let Some(most) = most.filter(|most| processes() > *most) {
            eprintln!("more than {most} processes: all were ended");
            return Ok(killed());
        }
        while let Ok(Some(_)) = reaper.read_signal() {}
    }
}

fn start_payload(plan: &Plan, counting: Option<Counting>) -> Step<Pid> {
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
    let lock = plan.has(Part::LockedMounts);
    let closed = !plan.has(Part::Network);
    let sockets = if closed { Sockets::Unix } else { Sockets::Covered };
    let filtered = closed || plan.has(Part::SystemCalls);
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&plan.env).current_dir(&plan.cwd).stdin(Stdio::null());
    // SAFETY: between fork and exec only system calls are made; this process has one thread.
    unsafe {
        command.pre_exec(move || {
            SigSet::empty().thread_set_mask()?;
            if let Some(counting) = counting {
                counting.let_go();
            }
            // When memory runs out, what is the user's own comes last, and the sandbox itself.
            let _ = std::fs::write("/proc/self/oom_score_adj", EXPENDABLE);
            nix::unistd::setsid()?;
            if lock {
                lock_mounts()?;
            }
            drop_privileges(may_mount)?;
            if filtered {
                seccomp::install(sockets)?;
            }
            if closed {
                parts::scope_abstract_sockets();
            }
            Ok(())
        });
    }
    let child = because_io(format!("starting {program}"), command.spawn())?;
    Ok(Pid::from_raw(child.id().cast_signed()))
}

/// A second, inner user and mount namespace: what was mounted so far cannot be changed or uncovered from within it, not
/// even with the right to mount.
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
