//! A judge that stays: requests over HTTP, or as JSON lines over standard input, become jobs that wait in a fair queue; the
//! answers go back as they come. What judges is given; nothing here knows how.
//!
//! A request is hostile: its size is bounded before any of it is parsed, it names an instance and never a file, and what is
//! wrong with it is the answer to it alone.

mod desk;
mod fair;
mod figures;
mod http;
mod stdio;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::interrupt::Waiting;

use desk::Desk;

/// Longest line or body that is read, in bytes; a submission in it cannot be longer.
pub(crate) const LARGEST_REQUEST: usize = 16 << 20;

/// What is judged, and how much of it at once.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) dataset: String,
    pub(crate) version: String,
    /// What instances are called.
    pub(crate) instances: std::collections::BTreeSet<String>,
    /// Submissions that are judged at the same time.
    pub(crate) slots: usize,
    /// Submissions that may wait.
    pub(crate) queue: usize,
    /// What a request may take where it says nothing.
    pub(crate) deadline: Duration,
    /// Whether requests may come from other machines, under whatever name this one has there.
    pub(crate) is_public: bool,
}

/// A submission to judge.
#[derive(Debug, Clone)]
pub(crate) struct Submitted {
    pub(crate) instance: String,
    pub(crate) text: String,
    /// Whether the evidence is wanted beside the row.
    pub(crate) evidence: bool,
    pub(crate) waiting: Waiting,
    /// How many others are judged at the same time.
    pub(crate) others: usize,
}

/// What the referee says: JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// The row of `scores.jsonl`.
    pub(crate) row: String,
    pub(crate) evidence: Option<String>,
    /// Whether the machine lost it, so that the row says nothing.
    pub(crate) lost: Option<String>,
    /// Whether it was known already.
    pub(crate) known: bool,
}

/// Judges one submission.
pub(crate) type Judge<'a> = dyn Fn(&Submitted) -> Result<Judgement> + Sync + 'a;

/// Further lines of figures.
pub(crate) type MoreFigures = dyn Fn() -> Vec<(&'static str, &'static str, f64)> + Send + Sync;

/// Where requests come from.
pub(crate) enum Door {
    /// HTTP at this address; called with the one that it became.
    Http(SocketAddr, Box<dyn FnOnce(SocketAddr) + Send>),
    Stdio,
}

/// Answers requests until a stop is asked for, or the input ends.
///
/// # Errors
/// The machine's: the address cannot be used.
pub(crate) fn serve(settings: Settings, door: Door, judge: &Judge<'_>, more: Box<MoreFigures>) -> Result<()> {
    let mut desk = Desk::new(settings, more);
    desk.has_one_client = matches!(door, Door::Stdio);
    let desk = Arc::new(desk);
    std::thread::scope(|scope| {
        for _ in 0..desk.settings.slots {
            scope.spawn(|| desk.work(judge));
        }
        scope.spawn(|| desk.watch());
        let ended = match door {
            Door::Http(address, ready) => http::serve(&desk, address, ready),
            Door::Stdio => stdio::serve(&desk),
        };
        desk.close();
        ended
    })
}

#[cfg(test)]
mod tests;
