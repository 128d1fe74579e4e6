//! One worker: it walks its runner through directories and files, makes attempts, and does with trouble what
//! [`retry`](crate::attempt::retry) decides.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use super::file::{OpenFile, Opened};
use super::queue::{Place, Queue, Run, Task};
use super::{Event, Pool};
use crate::attempt::retry::{AfterGroup, AfterImport, AfterRunner, Trouble};
use crate::error::{Error, Fault, Result};
use crate::runner::protocol::{Answer, ProcessExit, Reached, Request, SIGKILL};
use crate::runner::report::GroupDone;
use crate::runner::{Ran, Runner, milliseconds};

/// The owner of the results does not listen any more.
struct Abandoned;

/// Why a worker does not go on with its task.
enum Stop {
    Abandoned,
    Broken(Error),
}

impl From<Abandoned> for Stop {
    fn from(_: Abandoned) -> Self {
        Stop::Abandoned
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Broken(error)
    }
}

pub(super) struct Worker<'a> {
    pool: &'a Pool<'a>,
    queue: &'a Mutex<Queue>,
    events: SyncSender<Event>,
    runner: Option<Runner>,
    /// What is open in the runner.
    directory: Option<Place>,
    /// The round that the runner serves.
    round: Option<u32>,
    doing: Doing,
}

/// What the runner was last asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Nothing,
    /// To import a file, or its conftests.
    Importing,
    /// To make attempts.
    Running,
}

impl<'a> Worker<'a> {
    /// A worker without a runner.
    pub(super) fn new(pool: &'a Pool<'a>, queue: &'a Mutex<Queue>, events: SyncSender<Event>) -> Self {
        Worker { pool, queue, events, runner: None, directory: None, round: None, doing: Doing::Nothing }
    }

    /// Works until nothing is left to do, or nobody listens.
    pub(super) fn work(mut self) {
        while !crate::interrupt::requested() {
            let task = self.queue().pop(self.directory.as_ref());
            let Some(mut task) = task else { return };
            self.doing = Doing::Nothing;
            let result = match self.execute(&mut task) {
                Ok(()) => Ok(()),
                Err(Stop::Abandoned) => Err(Abandoned),
                Err(Stop::Broken(error)) => self.broken(task, error),
            };
            if result.is_err() {
                return;
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

    /// The runner broke, or did not start.
    fn broken(&mut self, mut task: Task, error: Error) -> Result<(), Abandoned> {
        let asked = self.doing != Doing::Nothing;
        let signal = self.runner.as_mut().filter(|_| asked).and_then(Runner::ended_by);
        self.forget_runner();
        if error.fault() == Fault::Interrupted {
            self.tell(Event::Broken(error))?;
            return Err(Abandoned);
        }
        let harness = error.fault() == Fault::Harness;
        if harness && signal.is_some() && self.doing == Doing::Importing {
            tracing::warn!("a runner was killed while it imported {}: {error}", task.file);
            let text = "every process in reach was killed or stopped while it was imported, three times";
            return match self.import_ended(&mut task, text) {
                Err(Stop::Abandoned) => Err(Abandoned),
                Err(Stop::Broken(error)) => self.tell(Event::Broken(error)).and(Err(Abandoned)),
                Ok(()) => Ok(()),
            };
        }
        let after = task.trouble.runner_broke(harness, signal.is_some(), task.runs.len());
        tracing::warn!("a runner broke with {} groups left ({after:?}): {error}", task.runs.len());
        match after {
            AfterRunner::Done => {}
            AfterRunner::Again => self.queue().push(task),
            AfterRunner::OneByOne => {
                for run in &task.runs {
                    self.queue().push(task.alone(*run, Trouble::default()));
                }
            }
            AfterRunner::Believe => {
                let text = "every process in reach was killed or stopped while it ran, three times";
                let exit = ProcessExit::Signaled { signal: signal.unwrap_or(SIGKILL) };
                for run in &task.runs {
                    self.tell_ended(&task, *run, &exit, text)?;
                }
            }
            AfterRunner::GiveUp => {
                let ids = task.runs.iter().map(|run| self.pool.groups[run.group].group_id.as_str());
                let places = ids.collect::<Vec<_>>().join(", ");
                self.tell(Event::Broken(error.at(places)))?;
            }
        }
        Ok(())
    }

    /// Runs the task; runs that are done are removed from it, so that a retry goes on where it stopped.
    fn execute(&mut self, task: &mut Task) -> Result<(), Stop> {
        if self.round != Some(task.round) {
            self.forget_runner();
            self.round = Some(task.round);
        }
        match self.open_directory(task)? {
            Opened::Ready(()) => {}
            Opened::Refused(text) => return self.refuse(task, &text),
            Opened::Ended(text) => return self.import_ended(task, &text),
        }
        let file = match self.open_file(task)? {
            Opened::Ready(file) => file,
            Opened::Refused(text) => return self.refuse(task, &text),
            Opened::Ended(text) => return self.import_ended(task, &text),
        };
        task.trouble.opened();
        while let Some(run) = task.runs.last().copied() {
            if crate::interrupt::requested() {
                return Err(Stop::Abandoned);
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

    fn refuse(&self, task: &mut Task, text: &str) -> Result<(), Stop> {
        for run in task.runs.drain(..) {
            let text = text.to_owned();
            let reached = Arc::default();
            self.tell(Event::Unavailable { group: run.group, round: task.round, text, reached })?;
        }
        Ok(())
    }

    fn import_ended(&mut self, task: &mut Task, text: &str) -> Result<(), Stop> {
        self.forget_runner();
        match task.trouble.import_ended() {
            AfterImport::Again => {
                self.queue().push(task.clone());
                Ok(())
            }
            AfterImport::Refuse => self.refuse(task, text),
        }
    }

    fn open_directory(&mut self, task: &Task) -> Result<Opened<()>, Stop> {
        let place = task.place();
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
            preload: Vec::new(),
            timeout_ms: milliseconds(limit),
        };
        self.doing = Doing::Importing;
        match runner.ask(&request, limit)? {
            Answer::DirectoryReady {} => {
                self.directory = Some(place);
                Ok(Opened::Ready(()))
            }
            other => Opened::refused(runner, other).map_err(Into::into),
        }
    }

    fn open_file(&mut self, task: &Task) -> Result<Opened<OpenFile>, Stop> {
        let limit = self.pool.timeouts.1;
        let Some(runner) = self.runner.as_mut() else {
            return Err(Error::internal("no runner is open").into());
        };
        let request = Request::OpenFile {
            file: task.file.clone(),
            text: task.text.as_deref().map(str::to_owned),
            timeout_ms: milliseconds(limit),
        };
        self.doing = Doing::Importing;
        match runner.ask(&request, limit)? {
            Answer::FileReady(ready) => Ok(Opened::Ready(OpenFile::new(*ready))),
            other => Opened::refused(runner, other).map_err(Into::into),
        }
    }

    /// Makes the attempts of one group. False when the file process is gone (what is left went back into the queue).
    fn run(&mut self, file: &OpenFile, task: &mut Task, run: Run) -> Result<bool, Stop> {
        let Some(items) = file.items_of(&self.pool.groups[run.group], self.pool.normalizer) else {
            task.runs.pop();
            self.tell(file.unavailable(run.group, task.round))?;
            return Ok(true);
        };
        let Some(runner) = self.runner.as_mut() else {
            return Err(Error::internal("no runner is open").into());
        };
        let (events, mut abandoned, mut made, mut killed) = (&self.events, false, 0, 0);
        self.doing = Doing::Running;
        let ran = runner.run_group(&items, run.repeat, self.pool.timeouts, |done| {
            if !task.trouble.counts(&done.exit) {
                killed += 1;
                return Ok(());
            }
            made += 1;
            abandoned = events.send(file.attempt(run.group, task.round, done)).is_err();
            if abandoned { Err(Error::interrupted()) } else { Ok(()) }
        });
        task.trouble.made(made);
        if let Some(last) = task.runs.last_mut() {
            last.repeat -= made;
            if last.repeat == 0 {
                task.runs.pop();
            }
        }
        if abandoned {
            return Err(Stop::Abandoned);
        }
        let ran = ran?;
        self.doing = Doing::Nothing;
        if let Ran::Broke { exit, text, .. } = ran {
            self.group_broke(task, made, &exit, &text)?;
            return Ok(false);
        }
        if let Some(trouble) = task.trouble.attempts_killed(killed) {
            task.runs.pop();
            self.queue().push(task.alone(Run { repeat: killed, ..run }, trouble));
        }
        Ok(true)
    }

    /// The group took the process above it down, or left a report that cannot be used. Others of the task go on.
    fn group_broke(
        &mut self,
        task: &mut Task,
        made: u32,
        exit: &ProcessExit,
        text: &str,
    ) -> Result<(), Stop> {
        self.forget_runner();
        let Some(guilty) = task.runs.pop() else { return Ok(()) };
        let step = task.trouble.group_broke(made);
        if !task.runs.is_empty() {
            self.queue().push(task.clone());
        }
        match step {
            AfterGroup::Alone(trouble) => self.queue().push(task.alone(guilty, trouble)),
            AfterGroup::Believe => {
                let text = format!("{text}\n(three times in a row, in a fresh runner each time)");
                self.tell_ended(task, guilty, exit, &text)?;
            }
        }
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
            processor_ms: 0.0,
            trace: None,
            reached: Reached::default(),
            execution: None,
        };
        for _ in 0..run.repeat {
            self.tell(Event::Attempt {
                group: run.group,
                round: task.round,
                done: Box::new(done.clone()),
                items: Arc::default(),
                import: None,
                reached: Arc::default(),
            })?;
        }
        Ok(())
    }
}
