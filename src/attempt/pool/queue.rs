//! Attempts that wait to be made.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::attempt::retry::Trouble;
use crate::runner::protocol::{Manner, TraceMode};

/// Attempts of groups of one file, to be made by one file process.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub file: String,
    /// What the file says, where it is not what the tree has.
    pub text: Option<Arc<str>>,
    /// Index of its pass.
    pub pass: usize,
    pub trace: TraceMode,
    pub runs: Vec<Run>,
    /// Of a group whose plain run has a case that fails, what is still to be made in other manners is left out.
    pub plain_decides: bool,
    pub cost_ms: f64,
    pub(super) trouble: Trouble,
}

/// Attempts of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Index of the group.
    pub group: usize,
    pub repeat: u32,
    pub manner: Manner,
}

impl Run {
    /// As its directory asks for.
    pub fn new(group: usize, repeat: u32) -> Self {
        Run { group, repeat, manner: Manner::default() }
    }
}

/// A pass, a directory and what is counted in it: what a runner has open.
pub(super) type Place = (usize, TraceMode, String);

impl Task {
    /// A task without runs.
    pub fn new(file: &str, pass: usize, trace: TraceMode) -> Self {
        let (file, trouble) = (file.to_owned(), Trouble::default());
        Task { file, text: None, pass, trace, runs: Vec::new(), plain_decides: false, cost_ms: 0.0, trouble }
    }

    /// A run of it by itself.
    pub(super) fn alone(&self, run: Run, trouble: Trouble) -> Self {
        Task { runs: vec![run], cost_ms: 0.0, trouble, ..self.clone() }
    }

    /// Attempts that it is to make.
    pub(super) fn attempts(&self) -> u32 {
        self.runs.iter().map(|run| run.repeat).sum()
    }

    /// Takes every second of its runs out, as a task of their own; of a single one half of its attempts.
    pub(super) fn halve(&mut self) -> Self {
        let runs: Vec<Run> = if let [only] = &mut self.runs[..] {
            let half = Run { repeat: only.repeat / 2, ..*only };
            only.repeat -= half.repeat;
            vec![half]
        } else {
            let mut at = 0;
            let is_second = |_: &mut Run| {
                at += 1;
                at % 2 == 0
            };
            self.runs.extract_if(.., is_second).collect()
        };
        self.cost_ms /= 2.0;
        Task { runs, trouble: Trouble::default(), ..self.clone() }
    }

    pub(super) fn place(&self) -> Place {
        let directory = self.file.rsplit_once('/').map_or("", |(directory, _)| directory);
        (self.pass, self.trace, directory.to_owned())
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

    fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }
}

/// The queue as workers share it: who finds it empty waits for a part of what others still have to do.
#[derive(Debug, Default)]
pub(super) struct Work {
    desk: Mutex<Desk>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Desk {
    queue: Queue,
    /// Workers that have a task, and may put something back.
    working: usize,
    /// Workers that have none and could do some.
    waiting: usize,
}

/// A task that is being worked at; dropped when nothing of it is left.
pub(super) struct Taken<'a>(&'a Work);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.desk().working -= 1;
        self.0.changed.notify_all();
    }
}

/// Longest wait of a worker before it looks again whether there is something to do.
const PATIENCE: Duration = Duration::from_millis(50);

impl Work {
    /// All that is to be done.
    pub(super) fn new(tasks: Vec<Task>) -> Self {
        let work = Work::default();
        for task in tasks {
            work.push(task);
        }
        work
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task.
    pub(super) fn push(&self, task: Task) {
        self.desk().queue.push(task);
        self.changed.notify_one();
    }

    /// Forgets all that waits.
    pub(super) fn clear(&self) {
        self.desk().queue.clear();
        self.changed.notify_all();
    }

    /// The next task for a worker that is at `here`; waits while others may still give something away, and while the
    /// worker is not `wanted`. None when all is done.
    pub(super) fn take(&self, here: Option<&Place>, wanted: impl Fn() -> bool) -> Option<(Task, Taken<'_>)> {
        let mut desk = self.desk();
        loop {
            if crate::interrupt::requested() || (desk.queue.is_empty() && desk.working == 0) {
                return None;
            }
            let is_wanted = wanted();
            if is_wanted && let Some(task) = desk.queue.pop(here) {
                desk.working += 1;
                return Some((task, Taken(self)));
            }
            desk.waiting += usize::from(is_wanted);
            desk = self.changed.wait_timeout(desk, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
            desk.waiting -= usize::from(is_wanted);
        }
    }

    /// Whether somebody waits who would find nothing to do.
    pub(super) fn is_wanted(&self) -> bool {
        let desk = self.desk();
        desk.waiting > 0 && desk.queue.is_empty()
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
        let here = (0, TraceMode::Off, "a".to_owned());
        let order: Vec<String> =
            std::iter::from_fn(|| queue.pop(Some(&here)).map(|task| task.file)).collect();
        assert_eq!(order, ["a/y.py", "a/x.py", "b/z.py"]);
    }

    #[test]
    fn half_of_a_task_is_half_of_its_groups_or_of_the_attempts_of_its_only_one() {
        let repeats = |task: &Task| task.runs.iter().map(|run| (run.group, run.repeat)).collect::<Vec<_>>();
        let mut task = Task { cost_ms: 8.0, ..Task::new("x.py", 0, TraceMode::Off) };
        task.runs.extend([Run::new(0, 5), Run::new(1, 2)]);
        let other = task.halve();
        assert_eq!((repeats(&other), repeats(&task), task.cost_ms), (vec![(1, 2)], vec![(0, 5)], 4.0));
        let other = task.halve();
        assert_eq!((repeats(&other), repeats(&task), task.attempts()), (vec![(0, 2)], vec![(0, 3)], 3));
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
