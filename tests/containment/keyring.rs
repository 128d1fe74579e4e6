//! A session keyring with a secret, for the caller of gistmill.

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;

/// The name of the key.
const NAME: &std::ffi::CStr = c"gistmill-test";
const JOIN_SESSION_KEYRING: libc::c_long = 1;
const SESSION: libc::c_long = -3;

/// Why no key can be given to anybody here; none when it can.
pub fn obstacle() -> Option<String> {
    // SAFETY: asks for the number of the session's keyring, and gives no memory to the kernel.
    let answer = unsafe { libc::syscall(libc::SYS_keyctl, 0, SESSION, 0) };
    (answer < 0).then(|| format!("this machine has no keyrings: {}", std::io::Error::last_os_error()))
}

/// Has a command start in a session of its own whose keyring holds a secret, where the machine has keyrings.
pub fn give(command: &mut Command, secret: &str) {
    let secret = secret.as_bytes().to_vec();
    if obstacle().is_some() {
        return;
    }
    let start = move || {
        // SAFETY: system calls only, between fork and exec; the memory outlives them.
        let joined = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<u8>()) };
        // SAFETY: as above.
        let added = unsafe {
            libc::syscall(
                libc::SYS_add_key,
                c"user".as_ptr(),
                NAME.as_ptr(),
                secret.as_ptr(),
                secret.len(),
                SESSION,
            )
        };
        if joined < 0 || added < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(start) };
}
