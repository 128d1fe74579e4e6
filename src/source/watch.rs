//! Whoever waits for a server waits as long as it sends a byte now and then, and hears nothing else meanwhile. So that is
//! done on a thread of its own, which is left behind when the user asks to stop or the server takes too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::interrupt;

const TICK: Duration = Duration::from_millis(100);

/// How long an exchange with a server may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub total: Duration,
    /// Without anything that comes.
    pub silence: Duration,
}

impl Patience {
    pub(super) const FETCH: Patience =
        Patience { total: Duration::from_hours(2), silence: Duration::from_mins(5) };
    /// For the list of branches and tags.
    pub(super) const LIST: Patience =
        Patience { total: Duration::from_mins(10), silence: Duration::from_mins(10) };
    /// For one file.
    pub(super) const FILE: Patience =
        Patience { total: Duration::from_hours(1), silence: Duration::from_mins(2) };
}

#[derive(Debug)]
enum Sign {
    Alive,
    Says(String),
}

/// How the thread tells that something comes, and learns that nobody waits any more.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    signs: Sender<Sign>,
    is_over: Arc<AtomicBool>,
}

impl Watch {
    /// Something came. Gives whether more is wanted.
    pub(super) fn goes_on(&self) -> bool {
        // Nobody listens any more once it is over.
        let _ = self.signs.send(Sign::Alive);
        !self.is_over.load(Ordering::Relaxed) && !interrupt::requested()
    }

    /// Becomes true when nobody waits any more.
    pub(super) fn over(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_over)
    }

    pub(super) fn say(&self, text: String) {
        let _ = self.signs.send(Sign::Says(text));
    }
}

/// What `work` gives. It owns all that it works with, for it may go on alone for a while.
///
/// # Errors
/// An interruption; the repository's, when it takes longer than `patience`.
pub(super) fn wait<T: Send + 'static>(
    patience: Patience,
    say: &dyn Fn(&str),
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> Result<T> {
    let (signs, received) = channel();
    let is_over = Arc::new(AtomicBool::new(false));
    let watch = Watch { signs, is_over: Arc::clone(&is_over) };
    let thread = std::thread::Builder::new().name("source".to_owned()).spawn(move || work(&watch));
    let thread = thread.map_err(|error| Error::machine("cannot start a thread").with_source(error))?;
    let start = Instant::now();
    let mut last = start;
    loop {
        match received.recv_timeout(TICK) {
            Ok(sign) => {
                last = Instant::now();
                if let Sign::Says(text) = sign {
                    say(&text);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return thread
                    .join()
                    .map_err(|_| Error::internal("the thread that waits for a server panicked"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let is_slow = start.elapsed() > patience.total || last.elapsed() > patience.silence;
        if is_slow || interrupt::requested() {
            is_over.store(true, Ordering::Relaxed);
            interrupt::check()?;
            return Err(Error::repository("the server takes too long")
                .with_hint("run the same command again, or name another place of the repository"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    #[test]
    fn what_comes_to_its_end_is_given_and_said() {
        let said = std::cell::RefCell::new(Vec::new());
        let done = wait(Patience::LIST, &|text| said.borrow_mut().push(text.to_owned()), |watch| {
            watch.say("one".to_owned());
            watch.goes_on()
        });
        assert!(done.unwrap());
        assert_eq!(*said.borrow(), ["one"]);
    }

    #[test]
    fn a_server_that_is_silent_and_one_that_drips_for_ever_are_left() {
        let short = Duration::from_millis(300);
        for (patience, drips) in [
            (Patience { total: HOUR, silence: short }, false),
            (Patience { total: short, silence: HOUR }, true),
        ] {
            let start = Instant::now();
            let (ended, end) = channel();
            let error = wait(patience, &|_| {}, move |watch| {
                while !drips || watch.goes_on() {
                    std::thread::sleep(Duration::from_millis(10));
                    if watch.is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
                let _ = ended.send(());
            });
            assert!(error.unwrap_err().to_string().contains("takes too long"));
            assert!(start.elapsed() < Duration::from_secs(20));
            end.recv_timeout(Duration::from_secs(20)).expect("the thread learns of it");
        }
    }
}
