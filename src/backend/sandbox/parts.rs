//! Parts of the sandbox that a machine may refuse, and what stands in for them.
//!
//! Without user, mount and process namespaces there is no sandbox. The parts here can be done without: what is missing
//! then is said, recorded, and refused by `--isolation strict`.

use nix::errno::Errno;
use nix::sched::CloneFlags;
use serde::{Deserialize, Serialize};

/// A part that can be done without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// A network namespace; in its place a filter of system calls lets no process make a socket but for Unix ones.
    Network,
    /// A namespace for System V shared memory, semaphores and message queues.
    Ipc,
    /// A namespace for the host's name.
    HostName,
    /// An inner user namespace, which keeps what was mounted before from being changed.
    LockedMounts,
}

impl Part {
    pub const ALL: [Part; 4] = [Part::Network, Part::Ipc, Part::HostName, Part::LockedMounts];

    /// The one spelling of this part.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Network => "network",
            Part::Ipc => "ipc",
            Part::HostName => "host-name",
            Part::LockedMounts => "locked-mounts",
        }
    }

    /// What is missing without it, in words.
    pub fn missing(self) -> &'static str {
        match self {
            Part::Network => {
                "a network namespace: no test can make a socket of the Internet, so those that need the loopback fail as well"
            }
            Part::Ipc => "a namespace of its own for System V shared memory and message queues",
            Part::HostName => "a host name of its own",
            Part::LockedMounts => {
                "locked mounts: code that is run while test files are imported could change what the sandbox mounts"
            }
        }
    }

    /// The flag that asks the kernel for it, together with the other namespaces.
    pub(super) fn flag(self) -> CloneFlags {
        match self {
            Part::Network => CloneFlags::CLONE_NEWNET,
            Part::Ipc => CloneFlags::CLONE_NEWIPC,
            Part::HostName => CloneFlags::CLONE_NEWUTS,
            Part::LockedMounts => CloneFlags::empty(),
        }
    }
}

// Offsets in `struct seccomp_data`, and values of the kernel's interface that libc does not name.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// Its lower half: both architectures are little-endian.
const FIRST_ARGUMENT: u32 = 16;
#[cfg(target_arch = "x86_64")]
const OWN_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OWN_ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OWN_ARCHITECTURE: u32 = 0;
/// Numbers from here on are those of the x32 interface, another way into the same calls.
const X32: u32 = 0x4000_0000;

/// From now on this process and all that it starts can make Unix sockets only, and no other way around through
/// `io_uring`. Where the kernel can, abstract Unix sockets of the machine are out of reach as well. Needs
/// `no_new_privs`.
///
/// # Errors
/// When the kernel refuses the filter.
pub(super) fn deny_sockets() -> std::io::Result<()> {
    use nix::libc::{
        AF_UNIX, BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, EACCES, ENOSYS,
        SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SYS_io_uring_setup, SYS_socket, sock_filter, sock_fprog,
    };
    let line = |code: u32, k: u32, jt: u8, jf: u8| sock_filter { code: code as u16, jt, jf, k };
    let load = |offset: u32| line(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
    let when = |test: u32, value: u32, jt: u8, jf: u8| line(BPF_JMP | test | BPF_K, value, jt, jf);
    let answer = |value: u32| line(BPF_RET | BPF_K, value, 0, 0);
    let refuse = |errno: i32| answer(SECCOMP_RET_ERRNO | errno as u32);
    let mut program = [
        load(ARCHITECTURE),
        when(BPF_JEQ, OWN_ARCHITECTURE, 0, 5),
        load(NUMBER),
        when(BPF_JGE, X32, 3, 0),
        when(BPF_JEQ, SYS_socket as u32, 3, 0),
        when(BPF_JEQ, SYS_io_uring_setup as u32, 1, 0),
        answer(SECCOMP_RET_ALLOW),
        refuse(ENOSYS),
        load(FIRST_ARGUMENT),
        when(BPF_JEQ, AF_UNIX as u32, 0, 1),
        answer(SECCOMP_RET_ALLOW),
        refuse(EACCES),
    ];
    let filter = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: `filter` and the program that it points to are valid for the call; the kernel copies them.
    let result = unsafe {
        nix::libc::prctl(
            nix::libc::PR_SET_SECCOMP,
            nix::libc::SECCOMP_MODE_FILTER,
            std::ptr::from_ref(&filter),
            0,
            0,
        )
    };
    Errno::result(result)?;
    scope_abstract_sockets();
    Ok(())
}

/// Landlock's scope for abstract Unix sockets, which lie in the network namespace; kernels before 6.12 have none.
fn scope_abstract_sockets() {
    #[repr(C)]
    struct Ruleset {
        handled_access_fs: u64,
        handled_access_net: u64,
        scoped: u64,
    }
    const CREATE_RULESET: nix::libc::c_long = 444;
    const RESTRICT_SELF: nix::libc::c_long = 446;
    const ABSTRACT_UNIX_SOCKET: u64 = 1;
    let ruleset = Ruleset { handled_access_fs: 0, handled_access_net: 0, scoped: ABSTRACT_UNIX_SOCKET };
    // SAFETY: the ruleset is valid for the call and the size is its own; the descriptor that comes of it is used and
    // closed here alone.
    unsafe {
        let descriptor =
            nix::libc::syscall(CREATE_RULESET, &raw const ruleset, std::mem::size_of::<Ruleset>(), 0_u32);
        if descriptor >= 0 {
            nix::libc::syscall(RESTRICT_SELF, descriptor, 0_u32);
            nix::libc::close(descriptor as i32);
        }
    }
}
