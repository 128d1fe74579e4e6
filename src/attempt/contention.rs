//! Contention for the processor while a loaded world runs. Attempts that run side by side contend with each other; where
//! too few of them compute, busy processes do.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Hidden subcommand of this program that keeps a core busy, or not, as its stdin says, until that closes.
pub const COMMAND: &str = "__busy";

/// Busy processes for each core.
const FOR_EACH_CORE: usize = 2;
/// What a busy process reads.
const BUSY: u8 = b'b';
const REST: u8 = b'r';

/// Found also where an upgrade has put another file in its place meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Busy processes; dropping it ends them.
#[derive(Debug)]
pub struct Contention {
    processes: Vec<Child>,
    busy: AtomicUsize,
}

/// Starts two busy processes for each core, so that an attempt gets at most half of one, however many run at once. Each
/// is in a session of its own: processes of one session share one share of the processor.
///
/// # Errors
/// When this program cannot be started again.
pub fn start() -> Result<Contention> {
    let count = FOR_EACH_CORE * std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut contention = Contention { processes: Vec::new(), busy: AtomicUsize::new(count) };
    for _ in 0..count {
        let mut command = Command::new(THIS_PROGRAM);
        command.arg(COMMAND).env_clear().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: between fork and exec only one system call is made.
        unsafe {
            command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(Into::into));
        }
        let child = command.spawn().map_err(|error| Error::from(error).at("cannot start a busy process"))?;
        contention.processes.push(child);
    }
    Ok(contention)
}

impl Contention {
    /// So many threads contend that nobody gets more than a third of a core while `jobs` of them and these compute:
    /// `computing` threads do already, busy processes are the rest.
    pub fn beside(&self, jobs: usize, computing: usize) {
        let busy = (jobs + self.processes.len()).saturating_sub(computing).min(self.processes.len());
        let before = self.busy.swap(busy, Ordering::Relaxed);
        for (number, process) in self.processes.iter().enumerate() {
            let (was, is) = (number < before, number < busy);
            if let (true, Some(mut stdin)) = (was != is, process.stdin.as_ref()) {
                // One that is gone is busy no more.
                let _ = stdin.write_all(&[if is { BUSY } else { REST }]);
            }
        }
    }

    /// How many processes are busy.
    pub fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }
}

impl Drop for Contention {
    fn drop(&mut self) {
        for child in &mut self.processes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the hidden subcommand does: busy from the start, then as it is told, until whoever started it is gone.
pub fn busy() {
    static RESTS: AtomicBool = AtomicBool::new(false);
    let worker = std::thread::spawn(|| {
        let mut number = 0_u64;
        loop {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            while RESTS.load(Ordering::Relaxed) {
                std::thread::park();
            }
        }
    });
    let mut word = [0];
    while std::io::stdin().read_exact(&mut word).is_ok() {
        RESTS.store(word == [REST], Ordering::Relaxed);
        worker.thread().unpark();
    }
}
