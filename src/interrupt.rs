//! Whether the user asked to stop (Ctrl-C, SIGTERM or SIGHUP). Set once, read everywhere that waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nix::sys::signal::{SigHandler, Signal};

use crate::error::{Error, Result};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// What asks to stop.
const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Catches Ctrl-C, SIGTERM and SIGHUP for the rest of this process; a second one ends it at once. One that was ignored when
/// this process started stays ignored: that is how `nohup` and shells keep work in the background alive.
///
/// # Errors
/// When the signal handler cannot be installed.
pub(crate) fn listen() -> Result<()> {
    let ignored = ignored();
    catch()?;
    for signal in ignored {
        set(signal, SigHandler::SigIgn)?;
    }
    Ok(())
}

/// Those of [`SIGNALS`] that this process ignores.
fn ignored() -> Vec<Signal> {
    // `SigIgn:` and a mask in hexadecimal digits, with one bit for each signal from the first on.
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    SIGNALS.into_iter().filter(|signal| mask >> (*signal as u32 - 1) & 1 == 1).collect()
}

/// Lets signals that ask to stop do what they do by default, whatever was inherited: for what runs in a sandbox.
///
/// # Errors
/// The kernel's.
pub(crate) fn by_default() -> Result<()> {
    SIGNALS.into_iter().try_for_each(|signal| set(signal, SigHandler::SigDfl))
}

fn set(signal: Signal, handler: SigHandler) -> Result<()> {
    // SAFETY: neither of the two handlers that are set here is a function.
    unsafe { nix::sys::signal::signal(signal, handler) }
        .map(drop)
        .map_err(|error| Error::internal(format!("cannot set what {signal} does")).with_source(error))
}

fn catch() -> Result<()> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })
    .map_err(|error| Error::internal("cannot listen for Ctrl-C").with_source(error))
}

/// Whether a stop was asked for.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// An [`Error::interrupted`] once a stop was asked for; call it between steps.
///
/// # Errors
/// When a stop was asked for.
pub(crate) fn check() -> Result<()> {
    if requested() { Err(Error::interrupted()) } else { Ok(()) }
}

/// Somebody who waits for a piece of work: until a moment, or until they leave.
#[derive(Debug, Clone)]
pub struct Waiting {
    until: Instant,
    has_left: Arc<AtomicBool>,
}

impl Waiting {
    /// Waits until then.
    pub(crate) fn until(moment: Instant) -> Self {
        Waiting { until: moment, has_left: Arc::default() }
    }

    /// Whoever waits, for something else until then; leaves all of it at once.
    pub(crate) fn also_until(&self, moment: Instant) -> Self {
        Waiting { until: moment, has_left: Arc::clone(&self.has_left) }
    }

    /// Nobody waits any more.
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Ordering::SeqCst);
    }

    /// Whether they left before the moment came.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::SeqCst)
    }

    /// Whether what is made is of no use any more.
    pub(crate) fn is_over(&self) -> bool {
        self.has_left() || Instant::now() >= self.until
    }
}
