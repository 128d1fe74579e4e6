//! Workers: each has one runner at a time and walks it through directories and files, taking tasks from a shared queue.
//!
//! Workers send [`Event`]s; the caller's thread alone owns the results. What they do about trouble is decided in
//! [`retry`](super::retry).

mod admission;
mod file;
mod parking;
mod queue;
#[cfg(test)]
mod tests;
mod worker;

pub use admission::Admission;
pub(crate) use file::IMPORT_OVER_LIMIT;
pub use parking::Parking;
pub use queue::{Run, Task};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use super::contention::Contention;
use super::normalize::Normalizer;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::interrupt::Waiting;
use crate::record::collected::Group;
use crate::record::limits::Timeouts;
use crate::runner::Setting;
use crate::runner::protocol::{Item, Manner, Reached};
use crate::runner::report::{GroupDone, ImportTrace};
use admission::{CONTENDING_FOR_EACH, Member};
use queue::Work;
use worker::Worker;

/// What is said of a group that was given up ([`Task::patience`]).
pub const NOT_RUN: &str = "not run: other tests of its file were over their limit";

/// Attempts to make for each runner, where it is not known how long they take.
const ATTEMPTS_OF_A_RUNNER: usize = 4;
/// What starting one more runner and opening a file takes, in milliseconds of a processor.
const COST_OF_A_RUNNER_MS: f64 = 800.0;

/// What a worker tells the owner of the results.
#[derive(Debug)]
pub enum Event {
    /// One attempt ended. `items` are those of the file, to name cases by index.
    Attempt {
        group: usize,
        pass: usize,
        /// The number of the runner that made it.
        runner: u64,
        manner: Manner,
        done: Box<GroupDone>,
        items: Arc<Vec<Item>>,
        import: Option<Arc<ImportTrace>>,
        /// What its file reached for while it was imported.
        reached: Arc<Reached>,
    },
    /// The group cannot be run when its file is collected alone: so many attempts were not made.
    Unavailable {
        group: usize,
        pass: usize,
        runner: u64,
        manner: Manner,
        attempts: u32,
        text: String,
        reached: Arc<Reached>,
    },
    /// The machine, or the harness, lost a run of a text that is judged.
    Lost { group: usize, error: Error },
    /// The harness could not be made to work, or a stop was asked for.
    Broken(Error),
}

/// What all workers share.
pub struct Pool<'a> {
    pub backend: &'a dyn Backend,
    /// Tasks name theirs by index.
    pub passes: Vec<Pass<'a>>,
    pub groups: &'a [Group],
    pub options: &'a [String],
    pub crowd: Crowd<'a>,
    pub terms: Terms<'a>,
}

/// On which terms a pool works, beside others of the same lab.
#[derive(Debug, Clone, Default)]
pub struct Terms<'a> {
    /// Where runners that judge texts come from, and go when nothing is left for them; without it they end.
    pub parking: Option<&'a Parking>,
    /// Workers at most.
    pub workers: Option<usize>,
    /// Who waits for what is made. Where they do no longer, it ends as by an interruption.
    pub waiting: Option<Waiting>,
}

/// Conditions of attempts. Those of different passes share no runner, even where their conditions are the same.
#[derive(Clone, Copy)]
pub struct Pass<'a> {
    pub setting: &'a Setting,
    pub normalizer: &'a Normalizer,
    pub timeouts: Timeouts,
    /// Modules that directories import ahead of the files that need them.
    pub preload: &'a [String],
    /// What files of the tree say in its directories, by path.
    pub texts: Option<&'a BTreeMap<String, String>>,
}

/// How many attempts are under way at once.
#[derive(Debug, Clone, Copy)]
pub enum Crowd<'a> {
    /// As many as may compute.
    Exact(usize),
    /// More while processors are idle; pools that work at the same time share it.
    Idle(&'a Admission<'a>),
    /// So many more than may compute that they contend for the processors, with busy processes in the place of those that
    /// wait.
    Contending(usize, &'a Contention),
}

impl Pool<'_> {
    /// What a runner for a task starts with.
    fn setting(&self, task: &Task) -> Cow<'_, Setting> {
        let setting = self.passes[task.pass].setting;
        if !task.is_of_entries() {
            return Cow::Borrowed(setting);
        }
        let mut setting = setting.clone();
        // The same command may be wanted for several texts.
        let by_name =
            self.groups.iter().filter_map(|group| group.entry.as_ref()).map(|entry| (&entry.name, entry));
        setting.world.entries = by_name.collect::<BTreeMap<_, _>>().into_values().cloned().collect();
        Cow::Owned(setting)
    }

    /// Attempts that are probably going to be under way at the same time.
    pub fn expected(&self) -> usize {
        match self.crowd {
            Crowd::Idle(admission) => admission.expected(),
            Crowd::Exact(jobs) => jobs,
            Crowd::Contending(jobs, _) => jobs * CONTENDING_FOR_EACH,
        }
    }

    /// Makes all attempts of the tasks; `each` sees every event on the caller's thread.
    ///
    /// # Errors
    /// The first error of `each`, an interruption, or the harness's when it stays broken.
    pub fn run(&self, tasks: Vec<Task>, mut each: impl FnMut(Event) -> Result<()>) -> Result<()> {
        self.run_on(tasks, |event| each(event).map(|()| Vec::new()))
    }

    /// Makes all attempts of the tasks, and of those that `each` gives when it sees an event; the runners that were started
    /// make them.
    ///
    /// # Errors
    /// Those of [`Pool::run`].
    pub fn run_on(&self, tasks: Vec<Task>, mut each: impl FnMut(Event) -> Result<Vec<Task>>) -> Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        let own;
        let admission = match self.crowd {
            Crowd::Idle(shared) => shared,
            Crowd::Exact(jobs) => {
                own = Admission::exact(jobs);
                &own
            }
            Crowd::Contending(jobs, contention) => {
                own = Admission::contending(jobs, contention);
                &own
            }
        };
        let member = admission.join(self.passes.len());
        let workers = workers(&tasks, &member).min(self.terms.workers.unwrap_or(usize::MAX)).max(1);
        let work = Work::new(tasks);
        let (sender, events) = sync_channel::<Event>(256);
        std::thread::scope(|scope| {
            let abandoned = Abandoned(&work);
            for number in 0..workers {
                let (sender, shared) = (sender.clone(), (&work, &member));
                scope.spawn(move || Worker::new(self, number, shared, sender).work());
            }
            drop(sender);
            let result = drain(&events, (admission, &work), &mut each);
            // Where that is an error, workers stop at the next send: nobody listens any more.
            drop((abandoned, events));
            result
        })
    }
}

/// Nothing is left to do once this is dropped, also by a panic.
struct Abandoned<'a>(&'a Work);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// How many workers are worth their runners: with `n` of them, all attempts take `cost / n`, and the runners `n` times
/// what one costs the processors.
fn workers(tasks: &[Task], member: &Member<'_>) -> usize {
    let attempts = tasks.iter().map(|task| task.attempts() as usize).sum::<usize>();
    let cost_ms: f64 = tasks.iter().map(|task| task.cost_ms + task.opening_ms).sum();
    let worth = if tasks.iter().any(|task| task.is_new) {
        attempts / ATTEMPTS_OF_A_RUNNER
    } else {
        let runners = cost_ms / COST_OF_A_RUNNER_MS;
        (runners * member.admission.jobs() as f64).sqrt().ceil() as usize
    };
    worth.clamp(member.least(), member.admission.most().max(member.least()))
}

fn drain(
    events: &Receiver<Event>,
    (admission, work): (&Admission<'_>, &Work),
    each: &mut impl FnMut(Event) -> Result<Vec<Task>>,
) -> Result<()> {
    loop {
        admission.look();
        match events.recv_timeout(Duration::from_millis(100)) {
            Ok(Event::Broken(error)) => return Err(error),
            Ok(event) => work.answered(each(event)?),
            Err(RecvTimeoutError::Timeout) => crate::interrupt::check()?,
            // Workers also end when a stop was asked for.
            Err(RecvTimeoutError::Disconnected) => return crate::interrupt::check(),
        }
    }
}
