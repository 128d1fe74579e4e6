//! Attempts that wait to be made.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attempt::retry::Trouble;
use crate::runner::protocol::TraceMode;

/// Attempts of groups of one file, to be made by one file process.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub file: String,
    /// What the file says, where it is not what the tree has.
    pub text: Option<Arc<str>>,
    pub round: u32,
    pub trace: TraceMode,
    pub runs: Vec<Run>,
    pub cost_ms: f64,
    pub(super) trouble: Trouble,
}

/// Attempts of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Index of the group.
    pub group: usize,
    pub repeat: u32,
}

/// A directory and what is counted in it: what a runner has open.
pub(super) type Place = (TraceMode, String);

impl Task {
    /// A task without runs.
    pub fn new(file: &str, round: u32, trace: TraceMode) -> Self {
        let (file, trouble) = (file.to_owned(), Trouble::default());
        Task { file, text: None, round, trace, runs: Vec::new(), cost_ms: 0.0, trouble }
    }

    /// A run of it by itself.
    pub(super) fn alone(&self, run: Run, trouble: Trouble) -> Self {
        Task {
            runs: vec![run],
            trouble,
            text: self.text.clone(),
            ..Task::new(&self.file, self.round, self.trace)
        }
    }

    pub(super) fn place(&self) -> Place {
        let directory = self.file.rsplit_once('/').map_or("", |(directory, _)| directory);
        (self.trace, directory.to_owned())
    }
}

/// Tasks that wait, by directory: a worker stays in its directory while there is work.
#[derive(Debug, Default)]
pub(super) struct Queue {
    by_place: BTreeMap<Place, Vec<Task>>,
}

impl Queue {
    /// Adds a task.
    pub(super) fn push(&mut self, task: Task) {
        let tasks = self.by_place.entry(task.place()).or_default();
        let position = tasks.partition_point(|other| other.cost_ms <= task.cost_ms);
        tasks.insert(position, task);
    }

    /// The longest task of the place where the worker is, else of the place with most work left.
    pub(super) fn pop(&mut self, here: Option<&Place>) -> Option<Task> {
        let most = || {
            let work = |tasks: &Vec<Task>| tasks.iter().map(|task| task.cost_ms).sum::<f64>();
            self.by_place
                .iter()
                .max_by(|(_, a), (_, b)| work(a).total_cmp(&work(b)))
                .map(|(place, _)| place.clone())
        };
        let place = here.filter(|place| self.by_place.contains_key(*place)).cloned().or_else(most)?;
        let tasks = self.by_place.get_mut(&place)?;
        let task = tasks.pop();
        if tasks.is_empty() {
            self.by_place.remove(&place);
        }
        task
    }

    /// Forgets all that waits.
    pub(super) fn clear(&mut self) {
        self.by_place.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_stays_in_its_directory_and_takes_the_longest_task_first() {
        let mut queue = Queue::default();
        for (file, cost_ms) in [("a/x.py", 5.0), ("a/y.py", 9.0), ("b/z.py", 100.0)] {
            queue.push(Task { cost_ms, ..Task::new(file, 0, TraceMode::Off) });
        }
        let here = (TraceMode::Off, "a".to_owned());
        let order: Vec<String> =
            std::iter::from_fn(|| queue.pop(Some(&here)).map(|task| task.file)).collect();
        assert_eq!(order, ["a/y.py", "a/x.py", "b/z.py"]);
    }

    #[test]
    fn without_a_directory_the_place_with_most_work_comes_first() {
        let mut queue = Queue::default();
        for (file, cost_ms) in [("a/x.py", 5.0), ("a/y.py", 6.0), ("b/z.py", 10.0)] {
            queue.push(Task { cost_ms, ..Task::new(file, 0, TraceMode::Off) });
        }
        assert_eq!(queue.pop(None).map(|task| task.file).as_deref(), Some("a/y.py"));
    }
}
