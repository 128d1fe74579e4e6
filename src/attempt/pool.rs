//! Workers: each has one runner at a time and walks it through directories and files, taking tasks from a shared queue.
//!
//! Workers send [`Event`]s; the caller's thread alone owns the results. Trouble of the harness is retried with a fresh
//! runner, then task by task alone, and only then given up as an error of the repository.
//!
//! A kill (SIGKILL) may come from the kernel or from a person as well as from the test, so it is believed only when it
//! repeats: an attempt that was killed is made again, and so is one during which everything around it was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::normalize::Normalizer;
use crate::backend::{Backend, retry};
use crate::error::{Error, Fault, Result};
use crate::record::collected::{Group, GroupKey};
use crate::runner::protocol::{
    Answer, CollectError, FileReady, Item, ItemKind, ProcessExit, Request, SIGKILL, TraceMode,
};
use crate::runner::report::{GroupDone, ImportTrace};
use crate::runner::{Ran, Runner, Setting, milliseconds};

/// How often a task is tried with a fresh runner, and an attempt that was killed is made.
const TRIES: u32 = retry::TRIES;

/// Attempts of groups of one file, to be made by one file process.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub file: String,
    pub round: u32,
    pub trace: TraceMode,
    pub runs: Vec<Run>,
    pub cost_ms: f64,
    /// How often in a row it ended with the harness's trouble, without an attempt made.
    tries: u32,
    /// How often the runner was killed while the last run of this task was made.
    kills: u32,
    /// How often importing ended the process or took too long.
    ended: u32,
    /// How often its only run was killed, took the process above it down, or left a report that cannot be used.
    fallen: u32,
}

/// Attempts of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Index of the group.
    pub group: usize,
    pub repeat: u32,
}

impl Task {
    /// A task without runs.
    pub fn new(file: &str, round: u32, trace: TraceMode) -> Self {
        Task {
            file: file.to_owned(),
            round,
            trace,
            runs: Vec::new(),
            cost_ms: 0.0,
            tries: 0,
            kills: 0,
            ended: 0,
            fallen: 0,
        }
    }

    /// The same run by itself.
    fn alone(&self, run: Run) -> Self {
        let mut alone = Task::new(&self.file, self.round, self.trace);
        alone.runs.push(run);
        alone
    }

    fn directory(&self) -> &str {
        self.file.rsplit_once('/').map_or("", |(directory, _)| directory)
    }
}

/// What a worker tells the owner of the results.
#[derive(Debug)]
pub enum Event {
    /// One attempt ended. `items` are those of the file, to name cases by index.
    Attempt {
        group: usize,
        round: u32,
        done: Box<GroupDone>,
        items: Arc<Vec<Item>>,
        import: Option<Arc<ImportTrace>>,
    },
    /// The group cannot be run when its file is collected alone.
    Unavailable { group: usize, round: u32, text: String },
    /// The harness could not be made to work.
    Broken(Error),
}

/// What all workers share.
pub struct Pool<'a> {
    pub backend: &'a dyn Backend,
    pub setting: &'a Setting,
    pub groups: &'a [Group],
    pub options: &'a [String],
    pub normalizer: &'a Normalizer,
    /// Limits of a case and of a group.
    pub timeouts: (Duration, Duration),
    pub jobs: usize,
}

/// Tasks that wait, by directory: a worker stays in its directory while there is work.
#[derive(Debug, Default)]
struct Queue {
    by_place: BTreeMap<(TraceMode, String), Vec<Task>>,
}

impl Queue {
    fn push(&mut self, task: Task) {
        let place = (task.trace, task.directory().to_owned());
        let tasks = self.by_place.entry(place).or_default();
        let position = tasks.partition_point(|other| other.cost_ms <= task.cost_ms);
        tasks.insert(position, task);
    }

    /// The longest task of the place where the worker is, else of the place with most work left.
    fn pop(&mut self, here: Option<&(TraceMode, String)>) -> Option<Task> {
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
}

impl Pool<'_> {
    /// Makes all attempts of the tasks; `each` sees every event on the caller's thread.
    ///
    /// # Errors
    /// The first error of `each`, an interruption, or the harness's when it stays broken.
    pub fn run(&self, tasks: Vec<Task>, mut each: impl FnMut(Event) -> Result<()>) -> Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        let workers = self.jobs.clamp(1, tasks.len());
        let mut queue = Queue::default();
        for task in tasks {
            queue.push(task);
        }
        let queue = Mutex::new(queue);
        let (sender, events) = sync_channel::<Event>(256);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let (sender, queue) = (sender.clone(), &queue);
                scope.spawn(move || Worker::new(self, queue, sender).work());
            }
            drop(sender);
            let result = drain(&events, &mut each);
            if result.is_err() {
                // Workers stop at the next send: nobody listens any more, and nothing is left to do.
                queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).by_place.clear();
                drop(events);
            }
            result
        })
    }
}

fn drain(events: &Receiver<Event>, each: &mut impl FnMut(Event) -> Result<()>) -> Result<()> {
    loop {
        match events.recv_timeout(Duration::from_millis(100)) {
            Ok(Event::Broken(error)) => return Err(error),
            Ok(event) => each(event)?,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => crate::interrupt::check()?,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// The owner of the results does not listen any more.
struct Abandoned;

enum Trouble {
    Abandoned,
    Harness(Error),
}

impl From<Abandoned> for Trouble {
    fn from(_: Abandoned) -> Self {
        Trouble::Abandoned
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Harness(error)
    }
}

struct Worker<'a> {
    pool: &'a Pool<'a>,
    queue: &'a Mutex<Queue>,
    events: SyncSender<Event>,
    runner: Option<Runner>,
    /// Directory that is open in the runner, and how many rounds this runner has served.
    directory: Option<(TraceMode, String)>,
    round: Option<u32>,
    /// Whether attempts are being made right now.
    running: bool,
}

/// A file process that is open.
struct OpenFile {
    items: Arc<Vec<Item>>,
    by_key: BTreeMap<GroupKey, Vec<usize>>,
    errors: Vec<CollectError>,
    import: Option<Arc<ImportTrace>>,
}

/// What opening a directory or file came to.
enum Opened<T> {
    Ready(T),
    /// pytest says why it cannot.
    Refused(String),
    /// The process ended, or did not come to an end, while it imported the repository's code.
    Ended(String),
}

impl<'a> Worker<'a> {
    fn new(pool: &'a Pool<'a>, queue: &'a Mutex<Queue>, events: SyncSender<Event>) -> Self {
        Worker { pool, queue, events, runner: None, directory: None, round: None, running: false }
    }

    fn work(mut self) {
        while !crate::interrupt::requested() {
            let task = self.queue().pop(self.directory.as_ref());
            let Some(mut task) = task else { return };
            self.running = false;
            match self.execute(&mut task) {
                Ok(()) => {}
                Err(Trouble::Abandoned) => return,
                Err(Trouble::Harness(error)) => {
                    let signal = self.runner.as_mut().filter(|_| self.running).and_then(Runner::ended_by);
                    task.kills += u32::from(signal.is_some());
                    self.forget_runner();
                    if self.give_back(task, error, signal).is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'a, Queue> {
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn tell(&self, event: Event) -> Result<(), Abandoned> {
        self.events.send(event).map_err(|_| Abandoned)
    }

    fn forget_runner(&mut self) {
        self.runner = None;
        self.directory = None;
    }

    /// Tries again, then one group at a time, then gives up. `signal` ended the runner while its last run was made.
    fn give_back(&self, mut task: Task, error: Error, signal: Option<i32>) -> Result<(), Abandoned> {
        if error.fault() == Fault::Interrupted {
            return Err(Abandoned);
        }
        task.tries += 1;
        if task.runs.is_empty() {
            return Ok(());
        }
        if error.fault() == Fault::Harness && task.tries < TRIES {
            self.queue().push(task);
            return Ok(());
        }
        if error.fault() == Fault::Harness && task.runs.len() > 1 {
            for run in &task.runs {
                self.queue().push(task.alone(*run));
            }
            return Ok(());
        }
        if let ([run], Fault::Harness, TRIES..) = (task.runs.as_slice(), error.fault(), task.kills) {
            let text = "every process in reach was killed or stopped while it ran, three times";
            let exit = ProcessExit::Signaled { signal: signal.unwrap_or(SIGKILL) };
            return self.tell_ended(&task, *run, &exit, text);
        }
        let places: Vec<&str> =
            task.runs.iter().map(|run| self.pool.groups[run.group].group_id.as_str()).collect();
        self.tell(Event::Broken(error.at(places.join(", "))))
    }

    /// Runs the task; runs that are done are removed from it, so that a retry goes on where it stopped.
    fn execute(&mut self, task: &mut Task) -> Result<(), Trouble> {
        if self.round != Some(task.round) {
            self.forget_runner();
            self.round = Some(task.round);
        }
        match self.open_directory(task)? {
            Opened::Ready(()) => {}
            Opened::Refused(text) => return self.refuse(task, &text),
            Opened::Ended(text) => return self.ended(task, &text),
        }
        let file = match self.open_file(task)? {
            Opened::Ready(file) => file,
            Opened::Refused(text) => return self.refuse(task, &text),
            Opened::Ended(text) => return self.ended(task, &text),
        };
        task.ended = 0;
        while let Some(run) = task.runs.last().copied() {
            if crate::interrupt::requested() {
                return Err(Trouble::Abandoned);
            }
            if !self.run(&file, task, run)? {
                return Ok(());
            }
        }
        if let Some(runner) = self.runner.as_mut() {
            runner.close()?;
        }
        Ok(())
    }

    fn refuse(&self, task: &mut Task, text: &str) -> Result<(), Trouble> {
        for run in task.runs.drain(..) {
            self.tell(Event::Unavailable { group: run.group, round: task.round, text: text.to_owned() })?;
        }
        Ok(())
    }

    /// Importing ended the process or took too long: load and memory pressure do that as well, so it is tried again
    /// with a fresh runner before it is believed.
    fn ended(&mut self, task: &mut Task, text: &str) -> Result<(), Trouble> {
        self.forget_runner();
        if task.ended + 1 >= TRIES {
            return self.refuse(task, text);
        }
        self.queue().push(Task { ended: task.ended + 1, ..task.clone() });
        task.runs.clear();
        Ok(())
    }

    fn open_directory(&mut self, task: &Task) -> Result<Opened<()>, Trouble> {
        let place = (task.trace, task.directory().to_owned());
        if self.directory.as_ref() == Some(&place) && self.runner.is_some() {
            return Ok(Opened::Ready(()));
        }
        if self.directory.take().is_some()
            && let Some(runner) = self.runner.as_mut()
        {
            runner.close()?;
        }
        let runner = match &mut self.runner {
            Some(runner) => runner,
            empty => empty.insert(Runner::start(self.pool.backend, self.pool.setting)?),
        };
        let limit = self.pool.timeouts.1;
        let request = Request::OpenDirectory {
            file: task.file.clone(),
            options: self.pool.options.to_vec(),
            trace: task.trace,
            timeout_ms: milliseconds(limit),
        };
        match runner.ask(&request, limit)? {
            Answer::DirectoryReady {} => {
                self.directory = Some(place);
                Ok(Opened::Ready(()))
            }
            other => refused(runner, other).map_err(Into::into),
        }
    }

    fn open_file(&mut self, task: &Task) -> Result<Opened<OpenFile>, Trouble> {
        let limit = self.pool.timeouts.1;
        let Some(runner) = self.runner.as_mut() else {
            return Err(Error::internal("no runner is open").into());
        };
        let request = Request::OpenFile { file: task.file.clone(), timeout_ms: milliseconds(limit) };
        match runner.ask(&request, limit)? {
            Answer::FileReady(ready) => Ok(Opened::Ready(OpenFile::new(*ready))),
            other => refused(runner, other).map_err(Into::into),
        }
    }

    /// Makes the attempts of one group. False when the file process is gone (the task went back into the queue).
    fn run(&mut self, file: &OpenFile, task: &mut Task, run: Run) -> Result<bool, Trouble> {
        let group = &self.pool.groups[run.group];
        let Some(items) = file.items_of(group, self.pool.normalizer) else {
            task.runs.pop();
            let mut text =
                "the group is not collected, or has other cases, when its file is collected alone".to_owned();
            for error in &file.errors {
                text.push_str("\n\n");
                text.push_str(&error.text);
            }
            self.tell(Event::Unavailable { group: run.group, round: task.round, text })?;
            return Ok(true);
        };
        let Some(runner) = self.runner.as_mut() else {
            return Err(Error::internal("no runner is open").into());
        };
        let (events, mut abandoned, mut made, mut killed) = (&self.events, false, 0, 0);
        let believed = task.fallen + 1 >= TRIES;
        self.running = true;
        let ran = runner.run_group(&items, run.repeat, self.pool.timeouts, |done| {
            if !believed && done.exit == (ProcessExit::Signaled { signal: SIGKILL }) {
                killed += 1;
                return Ok(());
            }
            made += 1;
            let event = Event::Attempt {
                group: run.group,
                round: task.round,
                done: Box::new(done),
                items: Arc::clone(&file.items),
                import: file.import.clone(),
            };
            abandoned = events.send(event).is_err();
            if abandoned { Err(Error::interrupted()) } else { Ok(()) }
        });
        if made > 0 {
            (task.tries, task.kills) = (0, 0);
        }
        if let Some(last) = task.runs.last_mut() {
            last.repeat -= made;
            if last.repeat == 0 {
                task.runs.pop();
            }
        }
        if abandoned {
            return Err(Trouble::Abandoned);
        }
        let ran = ran?;
        self.running = false;
        match ran {
            Ran::All if killed > 0 => {
                task.runs.pop();
                task.kills = 0;
                let again = Task { fallen: task.fallen + 1, ..task.alone(Run { repeat: killed, ..run }) };
                self.queue().push(again);
                Ok(true)
            }
            Ran::All => Ok(true),
            Ran::Broke { exit, text, .. } => {
                if made > 0 {
                    task.fallen = 0;
                }
                self.broke(task, &exit, &text)?;
                Ok(false)
            }
        }
    }

    /// The group took the process above it down, or left a report that cannot be used. Others of the task go on; the
    /// group is tried alone, then judged.
    fn broke(&mut self, task: &mut Task, exit: &ProcessExit, text: &str) -> Result<(), Trouble> {
        self.forget_runner();
        let Some(guilty) = task.runs.pop() else { return Ok(()) };
        if !task.runs.is_empty() {
            self.queue().push(Task { tries: 0, kills: 0, ..task.clone() });
        }
        if task.fallen + 1 < TRIES {
            self.queue().push(Task { fallen: task.fallen + 1, ..task.alone(guilty) });
        } else {
            let text = format!("{text}\n(three times in a row, in a fresh runner each time)");
            self.tell_ended(task, guilty, exit, &text)?;
        }
        task.runs.clear();
        Ok(())
    }

    /// The attempts of a group that takes others down with it.
    fn tell_ended(&self, task: &Task, run: Run, exit: &ProcessExit, text: &str) -> Result<(), Abandoned> {
        let done = GroupDone {
            cases: Vec::new(),
            exit: exit.clone(),
            leftover: 0,
            connections: Vec::new(),
            raw_output: text.to_owned(),
            pytest_error: None,
            duration_ms: 0.0,
            trace: None,
        };
        for _ in 0..run.repeat {
            self.tell(Event::Attempt {
                group: run.group,
                round: task.round,
                done: Box::new(done.clone()),
                items: Arc::default(),
                import: None,
            })?;
        }
        Ok(())
    }
}

/// The repository's own trouble behind an answer that is no "ready"; anything else is the harness's.
fn refused<T>(runner: &Runner, answer: Answer) -> Result<Opened<T>> {
    Ok(match answer {
        Answer::Failed { stage, error } => Opened::Refused(format!("{stage}: {}", error.text)),
        Answer::Died { level, exit, .. } => {
            Opened::Ended(format!("importing ends the {level} process: {exit:?}"))
        }
        Answer::TimedOut { level, .. } => {
            Opened::Ended(format!("importing goes over the time limit ({level})"))
        }
        Answer::Unreadable { reason } => Opened::Ended(reason),
        other => return Err(runner.unexpected(&other)),
    })
}

impl OpenFile {
    fn new(ready: FileReady) -> Self {
        let mut by_key: BTreeMap<GroupKey, Vec<usize>> = BTreeMap::new();
        for item in ready.items.iter().filter(|item| item.kind == ItemKind::Function) {
            by_key.entry(item.key()).or_default().push(item.index);
        }
        OpenFile {
            items: Arc::new(ready.items),
            by_key,
            errors: ready.errors,
            import: ready.import.map(Arc::new),
        }
    }

    /// Items of the group's cases; none when a case is missing. The file may hold more (what a hook deselects).
    fn items_of(&self, group: &Group, normalizer: &Normalizer) -> Option<Vec<usize>> {
        let wanted: BTreeSet<&str> = group.cases.iter().map(|case| case.case_id.as_str()).collect();
        let items: Vec<usize> = self
            .by_key
            .get(&GroupKey::of_group(group))?
            .iter()
            .copied()
            .filter(|index| {
                let item = self.items.iter().find(|item| item.index == *index);
                item.is_some_and(|item| wanted.contains(normalizer.id(&item.node_id).0.as_str()))
            })
            .collect();
        (items.len() == group.cases.len()).then_some(items)
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
