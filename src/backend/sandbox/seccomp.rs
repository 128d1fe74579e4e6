//! The filter of system calls for whatever runs in a sandbox: parts of the kernel that namespaces do not cover and that
//! no test has a need of. What is for the machine's administrator alone the kernel refuses by itself.
//!
//! Written by hand rather than with a crate: those that are small end a process that makes a call of another
//! architecture, and let the x32 interface through.

use nix::errno::Errno;
use nix::libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD,
    BPF_RET, BPF_W, EACCES, EAFNOSUPPORT, EINVAL, ENOSYS, EPERM, F_SETLEASE, SECCOMP_RET_ALLOW,
    SECCOMP_RET_ERRNO, sock_filter, sock_fprog,
};

use crate::record::spelling::spelling;

spelling! {
    /// A processor that a filter can be made for, as `uname` and Rust spell it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Architecture, ALL {
        X86_64 "x86_64",
        Aarch64 "aarch64",
    }
}

impl Architecture {
    /// The one of this program.
    fn own() -> Option<Self> {
        Architecture::ALL.into_iter().find(|one| one.as_str() == std::env::consts::ARCH)
    }

    /// `AUDIT_ARCH_…` of the kernel's interface.
    fn mark(self) -> u32 {
        match self {
            Architecture::X86_64 => 0xc000_003e,
            Architecture::Aarch64 => 0xc000_00b7,
        }
    }
}

/// Which sockets may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    /// Those that a network namespace covers; others (`AF_VSOCK` leads to the host of a virtual machine) are unknown.
    Covered,
    /// Unix ones: stands in for a network namespace.
    Unix,
}

impl Sockets {
    fn families(self) -> &'static [i32] {
        match self {
            // Programs list their own addresses over netlink.
            Sockets::Covered => &[AF_UNIX, AF_INET, AF_INET6, AF_NETLINK],
            Sockets::Unix => &[AF_UNIX],
        }
    }

    fn refusal(self) -> i32 {
        match self {
            Sockets::Covered => EAFNOSUPPORT,
            Sockets::Unix => EACCES,
        }
    }
}

/// A system call and its numbers, in the order of [`Architecture::ALL`].
type Call = (&'static str, [u32; 2]);

/// As if the kernel were built without them; programs that could use them know what to do then. Keyrings are shared
/// between attempts, and with whoever starts gistmill. `clone3` hides its flags from a filter, and libraries fall back to
/// `clone`.
const UNKNOWN: [Call; 15] = [
    ("add_key", [248, 217]),
    ("request_key", [249, 218]),
    ("keyctl", [250, 219]),
    ("io_uring_setup", [425, 425]),
    ("io_uring_enter", [426, 426]),
    ("io_uring_register", [427, 427]),
    ("open_tree", [428, 428]),
    ("move_mount", [429, 429]),
    ("fsopen", [430, 430]),
    ("fsconfig", [431, 431]),
    ("fsmount", [432, 432]),
    ("fspick", [433, 433]),
    ("clone3", [435, 435]),
    ("mount_setattr", [442, 442]),
    ("open_tree_attr", [467, 467]),
];

/// Refused as to anybody without privileges on a cautious machine. Among them is what reaches into other processes of
/// the same user: their memory, their registers, their descriptors.
const REFUSED: [Call; 15] = [
    ("bpf", [321, 280]),
    ("fanotify_init", [300, 262]),
    ("kcmp", [312, 272]),
    ("open_by_handle_at", [304, 265]),
    ("perf_event_open", [298, 241]),
    ("pidfd_getfd", [438, 438]),
    ("pivot_root", [155, 41]),
    ("process_vm_readv", [310, 270]),
    ("process_vm_writev", [311, 271]),
    ("ptrace", [101, 117]),
    ("quotactl", [179, 60]),
    ("quotactl_fd", [443, 443]),
    ("setns", [308, 268]),
    ("syslog", [103, 116]),
    ("userfaultfd", [323, 282]),
];

const MAKES_SOCKETS: [Call; 2] = [("socket", [41, 198]), ("socketpair", [53, 199])];
/// Their first argument holds flags, among them those for new namespaces.
const MAKES_NAMESPACES: [Call; 2] = [("clone", [56, 220]), ("unshare", [272, 97])];
/// `CLONE_NEWCGROUP`, `NEWUTS`, `NEWIPC`, `NEWUSER`, `NEWPID` and `NEWNET`. A user namespace would bring every
/// capability back; the runner makes mount namespaces.
const NAMESPACES: u32 = 0x7e00_0000;

/// Its second argument says what is done. Who has a lease on a file makes whoever opens it wait, on the host and in other
/// jobs: files are shared, and read-only mounts do not forbid it. Some file systems have none.
const CHANGES_DESCRIPTORS: [Call; 1] = [("fcntl", [72, 25])];

/// Its first argument is a process (0: its own), its third one points to new limits. Limits pass on to what a process
/// forks, and the kernel asks for the same user alone: those of any may be read, and only its own be set.
const SETS_LIMITS: [Call; 1] = [("prlimit64", [302, 261])];

/// Its second argument is whose order at the disk is set (0: its own). How processors are shared the keeper watches
/// (`keeper.py`): that can be asked for cheaply, and programs set it of themselves by their number.
const ORDERS_DISKS: [Call; 1] = [("ioprio_set", [251, 30])];

// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const MARK: u32 = 4;
/// Its lower half, which is all that the kernel reads of these: both architectures are little-endian.
const FIRST_ARGUMENT: u32 = 16;
const SECOND_ARGUMENT: u32 = 24;
const THIRD_ARGUMENT: u32 = 32;
/// A pointer has an upper half, too.
const THIRD_ARGUMENT_ABOVE: u32 = 36;
/// Numbers from here on are those of the x32 interface, another way into the same calls.
const X32: u32 = 0x4000_0000;

fn line(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

fn load(offset: u32) -> sock_filter {
    line(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0)
}

/// Goes on with the next line when the test holds, else skips so many.
fn unless_skip(test: u32, value: u32, lines: u8) -> sock_filter {
    line(BPF_JMP | test | BPF_K, value, 0, lines)
}

fn allow() -> sock_filter {
    line(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0)
}

fn refuse(errno: i32) -> sock_filter {
    line(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | errno as u32, 0, 0)
}

/// The filter as the kernel takes it.
fn program(architecture: Architecture, sockets: Sockets) -> Vec<sock_filter> {
    let number = |call: &Call| call.1[architecture as usize];
    let mut lines = vec![
        load(MARK),
        line(BPF_JMP | BPF_JEQ | BPF_K, architecture.mark(), 1, 0),
        refuse(ENOSYS),
        load(NUMBER),
        unless_skip(BPF_JGE, X32, 1),
        refuse(ENOSYS),
    ];
    let unknown = UNKNOWN.iter().map(|call| (call, ENOSYS));
    for (call, errno) in unknown.chain(REFUSED.iter().map(|call| (call, EPERM))) {
        lines.extend([unless_skip(BPF_JEQ, number(call), 1), refuse(errno)]);
    }
    let mut by_family = vec![load(FIRST_ARGUMENT)];
    for family in sockets.families() {
        by_family.extend([unless_skip(BPF_JEQ, *family as u32, 1), allow()]);
    }
    by_family.push(refuse(sockets.refusal()));
    let by_flags = vec![load(FIRST_ARGUMENT), unless_skip(BPF_JSET, NAMESPACES, 1), refuse(EPERM), allow()];
    let by_wish =
        vec![load(SECOND_ARGUMENT), unless_skip(BPF_JEQ, F_SETLEASE as u32, 1), refuse(EINVAL), allow()];
    let by_process = vec![
        load(FIRST_ARGUMENT),
        unless_skip(BPF_JEQ, 0, 1),
        allow(),
        load(THIRD_ARGUMENT),
        unless_skip(BPF_JEQ, 0, 3),
        load(THIRD_ARGUMENT_ABOVE),
        unless_skip(BPF_JEQ, 0, 1),
        allow(),
        refuse(EPERM),
    ];
    let by_owner = vec![load(SECOND_ARGUMENT), unless_skip(BPF_JEQ, 0, 1), allow(), refuse(EPERM)];
    let bodies: [(&[Call], Vec<sock_filter>); 5] = [
        (&MAKES_SOCKETS, by_family),
        (&MAKES_NAMESPACES, by_flags),
        (&CHANGES_DESCRIPTORS, by_wish),
        (&SETS_LIMITS, by_process),
        (&ORDERS_DISKS, by_owner),
    ];
    for (calls, body) in bodies {
        for call in calls {
            lines.push(unless_skip(BPF_JEQ, number(call), body.len() as u8));
            lines.extend_from_slice(&body);
        }
    }
    lines.push(allow());
    lines
}

/// The filter as bytes, for a program on a machine of that architecture: `struct sock_filter` after another.
pub fn encoded(architecture: Architecture, sockets: Sockets) -> Vec<u8> {
    let bytes = |line: sock_filter| {
        let [code, more] = line.code.to_le_bytes();
        let [a, b, c, d] = line.k.to_le_bytes();
        [code, more, line.jt, line.jf, a, b, c, d]
    };
    program(architecture, sockets).into_iter().flat_map(bytes).collect()
}

/// From now on this process and all that it starts are held to the filter. Needs `no_new_privs`.
///
/// # Errors
/// When the kernel has no filters, or none is known for this architecture.
pub(super) fn install(sockets: Sockets) -> std::io::Result<()> {
    const SET_MODE_FILTER: u32 = 1;
    /// Without it some kernels slow down all that runs under a filter.
    const SPECULATION_AS_BEFORE: u32 = 4;
    let architecture = Architecture::own().ok_or(Errno::ENOSYS)?;
    let mut lines = program(architecture, sockets);
    let filter = sock_fprog { len: lines.len() as u16, filter: lines.as_mut_ptr() };
    // SAFETY: `filter` and the lines that it points to are valid for the call; the kernel copies them.
    let result = unsafe {
        nix::libc::syscall(
            nix::libc::SYS_seccomp,
            SET_MODE_FILTER,
            SPECULATION_AS_BEFORE,
            std::ptr::from_ref(&filter),
        )
    };
    Errno::result(result)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers to a call whose arguments are all the same: 0 to let through, else the error.
    fn answer(lines: &[sock_filter], mark: u32, number: u32, argument: u32) -> i32 {
        answer_to(lines, (mark, number), [argument, argument, argument, 0])
    }

    /// What it answers to a call with these: the lower halves of the first three arguments, the upper one of the third.
    fn answer_to(lines: &[sock_filter], (mark, number): (u32, u32), arguments: [u32; 4]) -> i32 {
        let (mut place, mut value) = (0, 0_u32);
        loop {
            let line = lines[place];
            place += 1;
            let jump = |holds: bool| usize::from(if holds { line.jt } else { line.jf });
            match u32::from(line.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    value = match line.k {
                        NUMBER => number,
                        MARK => mark,
                        FIRST_ARGUMENT => arguments[0],
                        SECOND_ARGUMENT => arguments[1],
                        THIRD_ARGUMENT => arguments[2],
                        THIRD_ARGUMENT_ABOVE => arguments[3],
                        other => panic!("offset {other}"),
                    }
                }
                code if code == BPF_JMP | BPF_JEQ | BPF_K => place += jump(value == line.k),
                code if code == BPF_JMP | BPF_JGE | BPF_K => place += jump(value >= line.k),
                code if code == BPF_JMP | BPF_JSET | BPF_K => place += jump(value & line.k != 0),
                code if code == BPF_RET | BPF_K => {
                    return if line.k == SECCOMP_RET_ALLOW { 0 } else { (line.k & 0xffff).cast_signed() };
                }
                code => panic!("code {code}"),
            }
        }
    }

    fn ask(architecture: Architecture, sockets: Sockets, call: &Call, argument: u32) -> i32 {
        let number = call.1[architecture as usize];
        answer(&program(architecture, sockets), architecture.mark(), number, argument)
    }

    #[test]
    fn what_is_on_the_lists_is_refused_and_everything_else_let_through() {
        for architecture in Architecture::ALL {
            // With the argument below, which names another process, limits and orders are set.
            let listed: Vec<u32> = UNKNOWN
                .iter()
                .chain(&REFUSED)
                .chain(&SETS_LIMITS)
                .chain(&ORDERS_DISKS)
                .map(|call| call.1[architecture as usize])
                .collect();
            let lines = program(architecture, Sockets::Covered);
            let refused = |number: &u32| answer(&lines, architecture.mark(), *number, AF_UNIX as u32) != 0;
            let mut found: Vec<u32> = (0..1000).filter(refused).collect();
            found.sort_by_key(|number| listed.iter().position(|one| one == number));
            assert_eq!(found, listed, "{architecture:?}");
            for call in &UNKNOWN {
                assert_eq!(ask(architecture, Sockets::Covered, call, 0), ENOSYS, "{}", call.0);
            }
            for call in &REFUSED {
                assert_eq!(ask(architecture, Sockets::Covered, call, 0), EPERM, "{}", call.0);
            }
        }
    }

    #[test]
    fn sockets_go_by_their_family() {
        use nix::libc::{AF_ALG, AF_BLUETOOTH, AF_CAN, AF_PACKET, AF_VSOCK};
        for architecture in Architecture::ALL {
            for call in &MAKES_SOCKETS {
                for family in [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] {
                    assert_eq!(ask(architecture, Sockets::Covered, call, family as u32), 0, "{family}");
                }
                for family in [0, AF_ALG, AF_BLUETOOTH, AF_CAN, AF_PACKET, AF_VSOCK, 1000] {
                    let found = ask(architecture, Sockets::Covered, call, family as u32);
                    assert_eq!(found, EAFNOSUPPORT, "{family}");
                }
                assert_eq!(ask(architecture, Sockets::Unix, call, AF_UNIX as u32), 0);
                assert_eq!(ask(architecture, Sockets::Unix, call, AF_INET as u32), EACCES);
            }
        }
    }

    #[test]
    fn processes_and_mount_namespaces_are_made_and_no_others() {
        use nix::libc::{CLONE_NEWNS, CLONE_NEWUSER, CLONE_THREAD, CLONE_VM, SIGCHLD};
        for architecture in Architecture::ALL {
            for call in &MAKES_NAMESPACES {
                for flags in [SIGCHLD, CLONE_VM | CLONE_THREAD, CLONE_NEWNS] {
                    assert_eq!(ask(architecture, Sockets::Covered, call, flags as u32), 0, "{flags:x}");
                }
                for flags in [CLONE_NEWUSER, CLONE_NEWUSER | CLONE_NEWNS, nix::libc::CLONE_NEWNET | SIGCHLD] {
                    assert_eq!(ask(architecture, Sockets::Covered, call, flags as u32), EPERM, "{flags:x}");
                }
            }
        }
    }

    #[test]
    fn descriptors_are_changed_and_no_file_is_leased() {
        use nix::libc::{F_DUPFD_CLOEXEC, F_SETFL, F_SETLK};
        for architecture in Architecture::ALL {
            for call in &CHANGES_DESCRIPTORS {
                for wish in [F_DUPFD_CLOEXEC, F_SETFL, F_SETLK] {
                    assert_eq!(ask(architecture, Sockets::Covered, call, wish as u32), 0, "{wish}");
                }
                assert_eq!(ask(architecture, Sockets::Covered, call, F_SETLEASE as u32), EINVAL);
            }
        }
    }

    #[test]
    fn limits_are_read_of_all_processes_and_set_of_its_own() {
        for architecture in Architecture::ALL {
            let lines = program(architecture, Sockets::Covered);
            let call = (architecture.mark(), SETS_LIMITS[0].1[architecture as usize]);
            for (arguments, expected) in [
                ([0, 7, 1, 0], 0),
                ([0, 7, 0, 1], 0),
                ([12, 7, 0, 0], 0),
                ([12, 7, 1, 0], EPERM),
                ([12, 7, 0, 1], EPERM),
                ([1, 7, u32::MAX, u32::MAX], EPERM),
            ] {
                assert_eq!(answer_to(&lines, call, arguments), expected, "{arguments:?}");
            }
        }
    }

    #[test]
    fn other_ways_into_the_kernel_are_closed() {
        let lines = program(Architecture::X86_64, Sockets::Covered);
        let (i386, x32_write) = (0x4000_0003, X32 + 1);
        assert_eq!(answer(&lines, i386, 1, 0), ENOSYS);
        assert_eq!(answer(&lines, Architecture::X86_64.mark(), x32_write, 0), ENOSYS);
    }

    #[test]
    fn numbers_are_those_of_the_c_library() {
        use nix::libc as c;
        let known: [(&str, c::c_long); 36] = [
            ("add_key", c::SYS_add_key),
            ("request_key", c::SYS_request_key),
            ("keyctl", c::SYS_keyctl),
            ("io_uring_setup", c::SYS_io_uring_setup),
            ("io_uring_enter", c::SYS_io_uring_enter),
            ("io_uring_register", c::SYS_io_uring_register),
            ("open_tree", c::SYS_open_tree),
            ("move_mount", c::SYS_move_mount),
            ("fsopen", c::SYS_fsopen),
            ("fsconfig", c::SYS_fsconfig),
            ("fsmount", c::SYS_fsmount),
            ("fspick", c::SYS_fspick),
            ("clone3", c::SYS_clone3),
            ("mount_setattr", c::SYS_mount_setattr),
            ("bpf", c::SYS_bpf),
            ("fanotify_init", c::SYS_fanotify_init),
            ("kcmp", c::SYS_kcmp),
            ("open_by_handle_at", c::SYS_open_by_handle_at),
            ("perf_event_open", c::SYS_perf_event_open),
            ("pidfd_getfd", c::SYS_pidfd_getfd),
            ("pivot_root", c::SYS_pivot_root),
            ("process_vm_readv", c::SYS_process_vm_readv),
            ("process_vm_writev", c::SYS_process_vm_writev),
            ("ptrace", c::SYS_ptrace),
            ("quotactl", c::SYS_quotactl),
            ("quotactl_fd", c::SYS_quotactl_fd),
            ("setns", c::SYS_setns),
            ("syslog", c::SYS_syslog),
            ("userfaultfd", c::SYS_userfaultfd),
            ("socket", c::SYS_socket),
            ("socketpair", c::SYS_socketpair),
            ("clone", c::SYS_clone),
            ("unshare", c::SYS_unshare),
            ("fcntl", c::SYS_fcntl),
            ("prlimit64", c::SYS_prlimit64),
            ("ioprio_set", c::SYS_ioprio_set),
        ];
        let own = Architecture::own().expect("tests run on a known architecture") as usize;
        let calls = UNKNOWN.iter().chain(&REFUSED).chain(&MAKES_SOCKETS).chain(&MAKES_NAMESPACES);
        let calls = calls.chain(&CHANGES_DESCRIPTORS).chain(&SETS_LIMITS).chain(&ORDERS_DISKS);
        for (name, numbers) in calls.filter(|call| call.0 != "open_tree_attr") {
            let found = known.iter().find(|one| one.0 == *name).map(|one| one.1);
            assert_eq!(found, Some(c::c_long::from(numbers[own])), "{name}");
        }
    }
}
