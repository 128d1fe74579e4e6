//! Whether the user asked to stop (Ctrl-C or SIGTERM). Set once, read everywhere that waits.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Catches Ctrl-C and SIGTERM for the rest of this process; a second one ends it at once.
///
/// # Errors
/// When the signal handler cannot be installed.
pub(crate) fn listen() -> Result<()> {
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
