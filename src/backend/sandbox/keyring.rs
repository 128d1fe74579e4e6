//! The kernel's keyrings: whoever starts gistmill may keep logins there (Kerberos, encrypted folders).

use nix::errno::Errno;

use super::{Part, Plan, Step};

/// Enters a new, empty session keyring: from now on this process, and all that it starts, no longer hold the keys of who
/// started it.
///
/// # Errors
/// When the kernel refuses it and no filter keeps the job from asking for keys.
pub(super) fn leave(plan: &Plan) -> Step {
    const JOIN_SESSION_KEYRING: nix::libc::c_long = 1;
    // SAFETY: the kernel reads the name of the keyring alone, and none is given.
    let joined =
        unsafe { nix::libc::syscall(nix::libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<u8>()) };
    match Errno::result(joined) {
        // A kernel without keyrings, or a container that refuses them: then the job gets none either.
        Ok(_) | Err(Errno::ENOSYS | Errno::EPERM) => Ok(()),
        // The filter is enough, and keys are counted: many sandboxes may come to the limit of a user.
        Err(_) if plan.has(Part::SystemCalls) => Ok(()),
        Err(errno) => Err(format!("a session keyring of its own: {errno}")),
    }
}
