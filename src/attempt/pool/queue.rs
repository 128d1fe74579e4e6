//! Attempts that wait to be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::COST_OF_A_RUNNER_MS;
use crate::attempt::retry::Trouble;
use crate::record::entry::ENTRIES;
use crate::runner::protocol::{Manner, TraceMode};

/// Attempts of groups of one file, to be made by one file process.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub file: String,
    /// What the file says, where it is not what the tree has.
    pub(super) text: Option<Arc<str>>,
    /// Index of its pass.
    pub pass: usize,
    pub trace: TraceMode,
    pub runs: Vec<Run>,
    /// Of a group whose plain run has a case that fails, what is still to be made in other manners is left out.
    pub plain_decides: bool,
    /// What its runs take.
    pub cost_ms: f64,
    /// What opening the file takes.
    pub opening_ms: f64,
    /// Whether some of its groups were never run: they may take long.
    pub is_new: bool,
    /// Runners that must not make it, by number.
    pub apart_from: Vec<u64>,
    /// After so many attempts that were over their limit the others are not made, and end as if they were, too; no
    /// number: without bound.
    pub patience: Option<u32>,
    /// Attempts that were over their limit.
    pub(super) late: u32,
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

/// What opening a file of few cases takes, in milliseconds of a processor.
const OPENING_MS: f64 = 50.0;

/// A pass, a directory and what is counted in it: what a runner has open.
pub(super) type DirectoryKey = (usize, TraceMode, String);

impl Task {
    /// A task without runs.
    pub fn new(file: &str, pass: usize, trace: TraceMode) -> Self {
        let (file, trouble) = (file.to_owned(), Trouble::default());
        Task {
            file,
            text: None,
            pass,
            trace,
            runs: Vec::new(),
            plain_decides: false,
            cost_ms: 0.0,
            opening_ms: OPENING_MS,
            is_new: false,
            apart_from: Vec::new(),
            patience: None,
            late: 0,
            trouble,
        }
    }

    /// The task with a text in the place of the file: it is judged by what it does.
    #[must_use]
    pub fn judging(self, text: Arc<str>) -> Self {
        Task { text: Some(text), trouble: Trouble::of_judged(), ..self }
    }

    /// Whether it makes attempts of entries.
    pub(super) fn is_of_entries(&self) -> bool {
        self.file == ENTRIES
    }

    /// What the file says, where it is not what the tree has.
    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Whether it runs a text that is judged: whatever happens while it does is that text's own.
    pub(super) fn is_judged(&self) -> bool {
        self.text.is_some()
    }

    /// Whether a runner of that number, which serves that pass, may make it; one that is not started has no number.
    fn suits(&self, pass: Option<usize>, runner: Option<u64>) -> bool {
        pass == Some(self.pass) && runner.is_none_or(|runner| !self.apart_from.contains(&runner))
    }

    /// A run of it by itself.
    pub(super) fn alone(&self, run: Run, trouble: Trouble) -> Self {
        Task { runs: vec![run], cost_ms: 0.0, trouble, ..self.clone() }
    }

    /// Attempts that it is to make.
    pub(super) fn attempts(&self) -> u32 {
        self.runs.iter().map(|run| run.repeat).sum()
    }

    /// Leaves out what is still to be made of a run's group in other manners.
    pub(super) fn drop_other_manners(&mut self, run: Run) {
        self.runs.retain(|other| other.group != run.group || other.manner == run.manner);
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
        Task { runs, trouble: self.trouble.none(), ..self.clone() }
    }

    /// Whether the others of it are not worth waiting for.
    pub(super) fn is_given_up(&self) -> bool {
        self.patience.is_some_and(|most| self.late >= most)
    }

    pub(super) fn place(&self) -> DirectoryKey {
        let directory = self.file.rsplit_once('/').map_or("", |(directory, _)| directory);
        (self.pass, self.trace, directory.to_owned())
    }
}

/// Tasks that wait, by directory: a worker stays in its directory while there is work.
#[derive(Debug, Default)]
pub(super) struct Queue {
    by_place: BTreeMap<DirectoryKey, Waiting>,
}

/// Tasks of one place, the next one last.
#[derive(Debug, Default)]
struct Waiting {
    tasks: Vec<Task>,
    /// What all of them take, with opening their files.
    cost_ms: f64,
    /// How many of them have groups that were never run.
    new: usize,
}

/// A worker that looks for something to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Idle<'a> {
    pub(super) number: usize,
    /// The pass that its runner serves, where it has one.
    pub(super) pass: Option<usize>,
    /// And the number of that runner.
    pub(super) runner: Option<u64>,
    /// What the runner has open.
    pub(super) place: Option<&'a DirectoryKey>,
    /// And the file below it.
    pub(super) file: Option<&'a str>,
}

impl Queue {
    /// Adds a task.
    pub(super) fn push(&mut self, task: Task) {
        let Waiting { tasks, cost_ms, new } = self.by_place.entry(task.place()).or_default();
        *cost_ms += task.cost_ms + task.opening_ms;
        *new += usize::from(task.is_new);
        let order = |task: &Task| (task.is_new, task.cost_ms);
        let position = tasks.partition_point(|other| order(other) <= order(&task));
        tasks.insert(position, task);
    }

    /// The next task of the place where the worker is, else of the place with most work left among those of its pass,
    /// else among those of the passes for which starting another runner `is_worth` it, by pass and milliseconds that wait
    /// there: without bound where groups wait that were never run, and the worker has no runner. Of a place, groups that
    /// were never run come first, then those of the file that is open, then what takes long.
    pub(super) fn pop(&mut self, worker: Idle<'_>, is_worth: impl Fn(usize, f64) -> bool) -> Option<Task> {
        let most = |of_pass: &dyn Fn(usize) -> bool| {
            let places = self.by_place.iter().filter(|((pass, ..), _)| of_pass(*pass));
            places.max_by(|(_, a), (_, b)| a.cost_ms.total_cmp(&b.cost_ms)).map(|(place, _)| place.clone())
        };
        let worth = || {
            let mut waits: BTreeMap<usize, f64> = BTreeMap::new();
            for ((pass, ..), waiting) in &self.by_place {
                let is_new = worker.pass.is_none() && waiting.new > 0;
                *waits.entry(*pass).or_default() += if is_new { f64::INFINITY } else { waiting.cost_ms };
            }
            let worth: BTreeSet<usize> =
                waits.into_iter().filter(|(pass, ms)| is_worth(*pass, *ms)).map(|(pass, _)| pass).collect();
            most(&|pass| worth.contains(&pass))
        };
        let own = worker.place.filter(|place| self.by_place.contains_key(*place)).cloned();
        let of_pass = || worker.pass.and_then(|own| most(&|pass| pass == own));
        let place = own.or_else(of_pass).or_else(worth)?;
        let Waiting { tasks, cost_ms, new } = self.by_place.get_mut(&place)?;
        let is_new = tasks.last()?.is_new;
        let is_open = |task: &Task| task.is_new == is_new && Some(task.file.as_str()) == worker.file;
        let task = tasks.remove(tasks.iter().rposition(is_open).unwrap_or(tasks.len() - 1));
        *cost_ms -= task.cost_ms + task.opening_ms;
        *new -= usize::from(task.is_new);
        if tasks.is_empty() {
            self.by_place.remove(&place);
        }
        Some(task)
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
    /// Tasks that some runners must not make. They are few.
    apart: Vec<Task>,
    /// Who works at a pass, and may put something back.
    working: BTreeMap<usize, AtIt>,
    /// The pass and the runner of each worker that is at work, by number; no runner where it starts one.
    serving: BTreeMap<usize, (usize, Option<u64>)>,
    /// Runners so far.
    runners: u64,
    /// Workers that have nothing to do and could do some, by number.
    waiting: BTreeMap<usize, Waits>,
    /// What was told, and may still ask for more.
    unanswered: usize,
    /// Nobody wants anything any more.
    is_abandoned: bool,
}

/// A worker that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waits {
    /// The pass that its runner serves.
    pass: Option<usize>,
    runner: Option<u64>,
    /// There is something for it, which it has not taken yet.
    is_called: bool,
}

/// Who works at a pass.
#[derive(Debug, Clone, Copy, Default)]
struct AtIt {
    workers: usize,
    /// What their tasks still take, as far as is known.
    cost_ms: f64,
}

/// A task that is being worked at; dropped when nothing of it is left.
pub(super) struct Taken<'a> {
    work: &'a Work,
    worker: usize,
    pass: usize,
    cost_ms: f64,
    is_back: bool,
}

impl Taken<'_> {
    fn give_back(&mut self, desk: &mut Desk) {
        if let Some(at_it) = desk.working.get_mut(&self.pass) {
            at_it.workers -= 1;
            at_it.cost_ms -= self.cost_ms;
        }
        desk.serving.remove(&self.worker);
        self.is_back = true;
        self.work.changed.notify_all();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.is_back {
            self.give_back(&mut self.work.desk());
        }
    }
}

/// Longest wait of a worker before it looks again whether there is something to do.
const PATIENCE: Duration = Duration::from_millis(50);

/// What there is for the runners of a pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Processors {
    pub(super) number: f64,
    /// So many runners are started in any case.
    pub(super) runners: usize,
}

/// Whether one more runner takes away more time from `at_it` that are at work than starting it costs: with `n` of them,
/// what is left takes `cost / n`. Pure.
fn another_is_worth(at_it: usize, cost_ms: f64, processors: Processors) -> bool {
    let gain_ms = cost_ms / (at_it * (at_it + 1)) as f64;
    at_it < processors.runners || gain_ms > COST_OF_A_RUNNER_MS / processors.number
}

impl Desk {
    /// A runner is started by nobody while one that serves waits, nor in the place of another one while a worker without
    /// any waits.
    fn take(&mut self, worker: Idle<'_>, processors: Processors) -> Option<Task> {
        let is_open =
            |task: &Task| Some(&task.place()) == worker.place && Some(task.file.as_str()) == worker.file;
        self.take_apart(|task| task.suits(worker.pass, worker.runner) && is_open(task))
            .or_else(|| self.queue.pop(worker, |_, _| false))
            .or_else(|| self.take_apart(|task| task.suits(worker.pass, worker.runner)))
            .or_else(|| self.take_with_a_new_runner(worker, processors))
    }

    fn take_apart(&mut self, which: impl Fn(&Task) -> bool) -> Option<Task> {
        let at = self.apart.iter().position(which)?;
        Some(self.apart.swap_remove(at))
    }

    fn take_with_a_new_runner(&mut self, worker: Idle<'_>, processors: Processors) -> Option<Task> {
        let Desk { queue, apart, working, waiting, serving, .. } = self;
        let waits = |pass: Option<usize>| waiting.values().any(|other| other.pass == pass);
        if worker.pass.is_some() && waits(None) {
            return None;
        }
        let is_worth = |pass: usize, waits_ms: f64| {
            let at_it = working.get(&pass).copied().unwrap_or_default();
            !waits(Some(pass)) && another_is_worth(at_it.workers, waits_ms + at_it.cost_ms, processors)
        };
        let popped = queue.pop(worker, is_worth);
        let is_left = |task: &Task| {
            let others = waiting.values().map(|other| (other.pass, other.runner));
            let mut all = others.chain(serving.values().map(|(pass, runner)| (Some(*pass), *runner)));
            !all.any(|(pass, runner)| task.suits(pass, runner))
        };
        popped.or_else(|| apart.iter().position(is_left).map(|at| apart.swap_remove(at)))
    }

    /// Whether nothing is left to do, nor can come.
    fn is_done(&self) -> bool {
        let nothing_comes = self.unanswered == 0 && self.working.values().all(|at_it| at_it.workers == 0);
        self.is_abandoned || (self.queue.is_empty() && self.apart.is_empty() && nothing_comes)
    }
}

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

    /// Adds a task. One of those that wait is called: one whose runner may make it, if there is one.
    pub(super) fn push(&self, task: Task) {
        let mut desk = self.desk();
        let idle = desk.waiting.values_mut().filter(|waits| !waits.is_called);
        if let Some(waits) = idle.max_by_key(|waits| task.suits(waits.pass, waits.runner)) {
            waits.is_called = true;
        }
        if task.apart_from.is_empty() {
            desk.queue.push(task);
        } else {
            desk.apart.push(task);
        }
        drop(desk);
        self.changed.notify_all();
    }

    /// The number of a runner that starts.
    pub(super) fn next_runner(&self) -> u64 {
        let mut desk = self.desk();
        desk.runners += 1;
        desk.runners
    }

    /// Something is told that may ask for more.
    pub(super) fn told(&self) {
        self.desk().unanswered += 1;
    }

    /// What was told asks for this.
    pub(super) fn answered(&self, more: Vec<Task>) {
        for task in more {
            self.push(task);
        }
        let mut desk = self.desk();
        desk.unanswered -= 1;
        if desk.is_done() {
            self.changed.notify_all();
        }
    }

    /// Nothing is to be done any more.
    pub(super) fn abandon(&self) {
        self.desk().is_abandoned = true;
        self.changed.notify_all();
    }

    /// The next task for a worker; waits while others may still give something away, and while the worker is not
    /// `wanted`. Where it needs another runner, that has to be worth it for so many `processors`. None when all is done.
    ///
    /// The task that it had is given back in the same moment: nobody finds that its runner serves nothing before the worker
    /// itself has looked for more.
    pub(super) fn take(
        &self,
        worker: Idle<'_>,
        had: Option<Taken<'_>>,
        wanted: impl Fn() -> bool,
        processors: impl Fn() -> Processors,
    ) -> Option<(Task, Taken<'_>)> {
        let mut desk = self.desk();
        if let Some(mut had) = had {
            had.give_back(&mut desk);
        }
        loop {
            if crate::interrupt::requested() || desk.is_done() {
                return None;
            }
            if wanted() {
                if let Some(task) = desk.take(worker, processors()) {
                    let at_it = desk.working.entry(task.pass).or_default();
                    at_it.workers += 1;
                    at_it.cost_ms += task.cost_ms;
                    let (number, pass, cost_ms) = (worker.number, task.pass, task.cost_ms);
                    let runner = worker.runner.filter(|_| task.suits(worker.pass, worker.runner));
                    desk.serving.insert(number, (pass, runner));
                    return Some((task, Taken { work: self, worker: number, pass, cost_ms, is_back: false }));
                }
                let Idle { pass, runner, .. } = worker;
                desk.waiting.insert(worker.number, Waits { pass, runner, is_called: false });
            }
            desk = self.changed.wait_timeout(desk, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
            desk.waiting.remove(&worker.number);
        }
    }

    /// How many milliseconds somebody who waits would take to begin with half of a task that still takes so many milliseconds; none
    /// where nobody would take it.
    pub(super) fn is_wanted(
        &self,
        taken: &mut Taken<'_>,
        left_ms: f64,
        processors: impl Fn() -> Processors,
    ) -> Option<f64> {
        let mut desk = self.desk();
        if let Some(at_it) = desk.working.get_mut(&taken.pass) {
            at_it.cost_ms += left_ms - taken.cost_ms;
            taken.cost_ms = left_ms;
        }
        let mut idle = desk.waiting.values().filter(|waits| !waits.is_called).peekable();
        idle.peek()?;
        if idle.any(|waits| waits.pass == Some(taken.pass)) {
            return Some(0.0);
        }
        let at_it = desk.working.get(&taken.pass).copied().unwrap_or_default();
        let is_worth = another_is_worth(at_it.workers, at_it.cost_ms, processors());
        is_worth.then_some(COST_OF_A_RUNNER_MS)
    }
}

#[cfg(test)]
mod tests;
