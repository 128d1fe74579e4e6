//! Parts of the sandbox that a machine may refuse, and what stands in for them.
//!
//! Without user, mount and process namespaces there is no sandbox. The parts here can be done without: what is missing
//! then is said, recorded, and refused by `--isolation strict`.

use nix::sched::CloneFlags;
use serde::{Deserialize, Serialize};

use crate::record::spelling::spelling;

spelling! {
    /// A part that can be done without.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Part, ALL {
        /// A network namespace; in its place a filter of system calls lets no process make a socket but for Unix ones.
        Network "network",
        /// A namespace for System V shared memory, semaphores and message queues.
        Ipc "ipc",
        /// A namespace for the host's name.
        HostName "host-name",
        /// An inner user namespace, which keeps what was mounted before from being changed.
        LockedMounts "locked-mounts",
        /// A filter of system calls that tests have no need of.
        SystemCalls "system-calls",
        /// A namespace for the names of control groups.
        ControlGroups "control-groups",
    }
}

impl Part {
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
            Part::SystemCalls => {
                "a filter of system calls: tests reach more of the kernel, among it new user namespaces, and sockets \
                 that lead to the host of a virtual machine"
            }
            Part::ControlGroups => "names of control groups of its own: tests see the machine's",
        }
    }

    /// The flag that asks the kernel for it, together with the other namespaces.
    pub(super) fn flag(self) -> CloneFlags {
        match self {
            Part::Network => CloneFlags::CLONE_NEWNET,
            Part::Ipc => CloneFlags::CLONE_NEWIPC,
            Part::HostName => CloneFlags::CLONE_NEWUTS,
            Part::ControlGroups => CloneFlags::CLONE_NEWCGROUP,
            Part::LockedMounts | Part::SystemCalls => CloneFlags::empty(),
        }
    }
}

/// Landlock's scope for abstract Unix sockets, which lie in the network namespace; kernels before 6.12 have none.
pub(super) fn scope_abstract_sockets() {
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
