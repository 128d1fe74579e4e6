//! Contention for the processor: busy processes beside the attempts, while a loaded world runs.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::error::{Error, Result};

/// Hidden subcommand of this program that keeps a core busy until its stdin closes.
pub const COMMAND: &str = "__busy";

/// Busy processes; dropping it ends them.
#[derive(Debug)]
pub struct Contention {
    busy: Vec<Child>,
}

/// Starts two busy processes for each core, so that an attempt gets at most half of one, however many run at once. Each
/// is in a session of its own: processes of one session share one share of the processor.
///
/// # Errors
/// When this program cannot be started again.
pub fn start() -> Result<Contention> {
    let count = 2 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let program =
        std::env::current_exe().map_err(|error| Error::from(error).at("cannot find this program"))?;
    let mut contention = Contention { busy: Vec::new() };
    for _ in 0..count {
        let mut command = Command::new(&program);
        command.arg(COMMAND).env_clear().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: between fork and exec only one system call is made.
        unsafe {
            command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(Into::into));
        }
        let child = command.spawn().map_err(|error| Error::from(error).at("cannot start a busy process"))?;
        contention.busy.push(child);
    }
    Ok(contention)
}

impl Drop for Contention {
    fn drop(&mut self) {
        for child in &mut self.busy {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the hidden subcommand does: busy until whoever started it is gone.
pub fn busy() {
    std::thread::spawn(|| {
        let mut number = 0_u64;
        loop {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    });
    let mut nothing = [0];
    let _ = std::io::stdin().read(&mut nothing);
}
