//! What opening a directory or a file in a runner comes to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Event, Run};
use crate::attempt::item_at;
use crate::attempt::normalize::Normalizer;
use crate::error::Result;
use crate::record::collected::Group;
use crate::record::entry::GroupKey;
use crate::runner::Runner;
use crate::runner::protocol::{Answer, CollectError, FileReady, Item, ItemKind, Reached};
use crate::runner::report::{GroupDone, ImportTrace};

/// How the text of what cannot be run begins where importing took too long, and not what it showed.
pub(crate) const IMPORT_OVER_LIMIT: &str = "importing goes over the time limit";

/// What opening a directory or file came to.
pub(super) enum Opened<T> {
    Ready(T),
    /// pytest says why it cannot.
    Refused(String),
    /// The process ended, or did not come to an end, while it imported the repository's code.
    Ended(String),
}

impl<T> Opened<T> {
    /// The repository's own trouble behind an answer that is no "ready"; anything else is the harness's.
    pub(super) fn refused(runner: &Runner, answer: Answer) -> Result<Self> {
        Ok(match answer {
            Answer::Failed { stage, error } => Opened::Refused(format!("{stage}: {}", error.text)),
            Answer::Died { level, exit, .. } => {
                Opened::Ended(format!("importing ends the {level} process: {exit:?}"))
            }
            Answer::TimedOut { level, .. } => Opened::Ended(format!("{IMPORT_OVER_LIMIT} ({level})")),
            Answer::Broken { level, traceback } => {
                Opened::Ended(format!("the {level} process failed while it imported:\n{traceback}"))
            }
            Answer::Unreadable { reason } => Opened::Ended(reason),
            other => return Err(runner.unexpected(&other)),
        })
    }
}

/// A file process that is open.
pub(super) struct OpenFile {
    /// What opening it took, with its directory where that was not open.
    pub(super) opening: Duration,
    items: Arc<Vec<Item>>,
    by_key: BTreeMap<GroupKey, Vec<usize>>,
    errors: Vec<CollectError>,
    import: Option<Arc<ImportTrace>>,
    reached: Arc<Reached>,
}

impl OpenFile {
    /// What pytest collected in it, and how long that took.
    pub(super) fn new(ready: FileReady, opening: Duration) -> Self {
        let mut by_key: BTreeMap<GroupKey, Vec<usize>> = BTreeMap::new();
        for item in ready.items.iter().filter(|item| item.kind == ItemKind::Function) {
            by_key.entry(item.key()).or_default().push(item.index);
        }
        OpenFile {
            opening,
            items: Arc::new(ready.items),
            by_key,
            errors: ready.errors,
            import: ready.import.map(Arc::new),
            reached: Arc::new(Reached { imports: ready.import_attempts, opened: ready.opened }),
        }
    }

    /// Items of the group's cases; none when a case is missing. The file may hold more (what a hook deselects). All items
    /// of its function where the group names no case.
    pub(super) fn items_of(&self, group: &Group, normalizer: &Normalizer) -> Option<Vec<usize>> {
        let wanted: BTreeSet<&str> = group.cases.iter().map(|case| case.case_id.as_str()).collect();
        let all = self.by_key.get(&group.key())?;
        if wanted.is_empty() {
            return Some(all.clone());
        }
        let items: Vec<usize> = all
            .iter()
            .copied()
            .filter(|index| {
                let item = item_at(&self.items, *index);
                item.is_some_and(|item| wanted.contains(normalizer.id(&item.node_id).0.as_str()))
            })
            .collect();
        (items.len() == group.cases.len()).then_some(items)
    }

    /// That a group is missing, with what pytest says about the file.
    pub(super) fn unavailable(&self, run: Run, (pass, runner): (usize, u64)) -> Event {
        let missing = "the group is not collected, or has other cases, when its file is collected alone";
        let errors = self.errors.iter().map(|error| error.text.as_str());
        let text = std::iter::once(missing).chain(errors).collect::<Vec<_>>().join("\n\n");
        let Run { group, repeat: attempts, manner } = run;
        let reached = Arc::clone(&self.reached);
        Event::Unavailable { group, pass, runner, manner, attempts, text, reached }
    }

    /// An attempt that was made in it.
    pub(super) fn attempt(&self, run: Run, (pass, runner): (usize, u64), done: GroupDone) -> Event {
        let (items, import) = (Arc::clone(&self.items), self.import.clone());
        let (reached, done) = (Arc::clone(&self.reached), Box::new(done));
        Event::Attempt { group: run.group, pass, runner, manner: run.manner, done, items, import, reached }
    }
}
