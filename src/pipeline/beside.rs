//! What stages of one repository do at the same time.

use super::prepare::Prepared;
use crate::error::Result;
use crate::ledger::Ledger;
use crate::progress::Progress;
use crate::record::trace::{is_test_path, test_roots};
use crate::trace::{ToTrace, Traces};

/// One traced attempt of each of some groups.
pub(super) struct Tracing<'a> {
    pub title: String,
    pub progress: &'a Progress,
    pub prepared: &'a Prepared,
    pub wanted: ToTrace,
}

impl Tracing<'_> {
    pub(super) fn run(&self, traces: &mut Traces) -> Result<()> {
        if self.wanted.groups.is_empty() {
            return Ok(());
        }
        let stage = self.progress.stage(&self.title, self.wanted.groups.len() as u64);
        let Prepared { collected, lab, .. } = self.prepared;
        let roots = test_roots(collected.groups.iter().map(|group| group.file.as_str()));
        let base = lab.base();
        let pool = lab.busy_pool(&collected.groups, &base);
        traces.measure(&self.wanted, &pool, |path| is_test_path(path, &roots), || stage.step())
    }
}

/// What is done beside others, with its name.
pub(super) type Other<'a> = (&'a str, Box<dyn FnOnce() -> Result<()> + Send + 'a>);

/// Does all of these at the same time, `own` in this thread; what the others take longer are steps of the ledger, by name.
/// All come to their end, whatever others did.
pub(super) fn beside<'a>(
    ledger: &Ledger,
    others: impl IntoIterator<Item = Other<'a>>,
    own: impl FnOnce() -> Result<()>,
) -> Result<()> {
    std::thread::scope(|scope| {
        let others: Vec<_> = others.into_iter().map(|(name, other)| (name, scope.spawn(other))).collect();
        let mut result = own();
        for (name, other) in others {
            let _rest =
                (!other.is_finished()).then(|| ledger.begin(&format!("{name}, when all else was done")));
            let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let (Err(_), Err(error)) = (&result, &other) {
                tracing::warn!("beside another failure: {error}");
            }
            result = result.and(other);
        }
        result
    })
}
