//! One worker: it walks its runner through directories and files, makes attempts, and does with trouble what
//! [`retry`](crate::attempt::retry) decides.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use super::admission::Member;
use super::file::{OpenFile, Opened};
use super::parking::{Kind, Parked};
use super::queue::{DirectoryKey, Idle, Run, Taken, Task, Work};
use super::{Event, NOT_RUN, Pass, Pool};
use crate::attempt::retry::{AfterGroup, AfterImport, AfterRunner, Trouble};
use crate::error::{Error, Fault, Result};
use crate::record::outcome::{Outcome, TimeScope};
use crate::runner::protocol::{Answer, Manner, ProcessExit, Reached, Request, SIGKILL};
use crate::runner::report::{CaseReport, GroupDone};
use crate::runner::{Ran, Runner, milliseconds};

/// What is left of a task is not worth being shared when it takes less than twice as long.
const WORTH_SHARING: Duration = Duration::from_millis(200);

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
    number: usize,
    shared: &'a Work,
    member: &'a Member<'a>,
    events: SyncSender<Event>,
    runner: Option<Runner>,
    /// The number of the runner, or of the last one.
    runner_number: u64,
    /// Texts that the runner has judged.
    served: u32,
    /// What is open in the runner.
    directory: Option<DirectoryKey>,
    /// The file of the tree that is open below it.
    file: Option<(String, OpenFile)>,
    /// The pass that the runner serves.
    pass: Option<usize>,
    /// Whether the runner runs entries, not tests.
    runs_entries: bool,
    doing: Doing,
    pace: Pace,
    /// What is known of a text that is judged: told once its processes are gone.
    held: Option<Vec<Event>>,
}

/// What the task at hand has taken so far.
#[derive(Debug, Clone, Copy)]
struct Pace {
    opened: Instant,
    made: u32,
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

fn tell((events, shared): (&SyncSender<Event>, &Work), event: Event) -> Result<(), Abandoned> {
    shared.told();
    events.send(event).map_err(|_| Abandoned)
}

impl<'a> Worker<'a> {
    /// A worker without a runner.
    pub(super) fn new(
        pool: &'a Pool<'a>,
        number: usize,
        (shared, member): (&'a Work, &'a Member<'a>),
        events: SyncSender<Event>,
    ) -> Self {
        let pace = Pace { opened: Instant::now(), made: 0 };
        Worker {
            pool,
            number,
            shared,
            member,
            events,
            runner: None,
            runner_number: 0,
            served: 0,
            directory: None,
            file: None,
            pass: None,
            runs_entries: false,
            doing: Doing::Nothing,
            pace,
            held: None,
        }
    }

    /// Works until nothing is left to do, or nobody listens.
    pub(super) fn work(mut self) {
        if self.make_all() {
            self.park();
        }
    }

    /// Has the runner wait for the next pool, if all that it did was to judge texts for tests. One for commands knows those of
    /// its pool alone.
    fn park(&mut self) {
        let Some(pass) = self.pass.filter(|_| !self.runs_entries) else { return };
        let (file, mut place) = (self.file.take(), self.directory.take());
        if self.pool.passes[pass].texts.is_some() {
            self.served += 1;
            // The next texts are others: nothing that saw these is kept.
            for _ in 0..(usize::from(file.is_some()) + usize::from(place.take().is_some())) {
                self.close();
            }
        } else if self.served == 0 || file.is_some() || place.is_none() {
            return;
        }
        let (Some(parking), Some(mut runner)) = (self.pool.terms.parking, self.runner.take()) else { return };
        runner.serve(None);
        parking.keep(Parked { runner, kind: self.kind(pass, place), served: self.served });
    }

    fn kind(&self, pass: usize, place: Option<DirectoryKey>) -> Kind {
        let Pass { setting, preload, .. } = self.pool.passes[pass];
        Kind {
            setting: setting.clone(),
            preload: preload.to_vec(),
            options: self.pool.options.to_vec(),
            place: place.map(|(_, trace, folder)| (0, trace, folder)),
        }
    }

    /// A runner that waits with what a task needs open. What met trouble before gets none.
    fn take_parked(&mut self, task: &Task) -> bool {
        let has_texts = self.pool.passes[task.pass].texts.is_some();
        let is_of_test = (task.is_judged() || has_texts) && !task.is_of_entries();
        if !is_of_test || task.trouble.wants_a_fresh_runner() || self.runner.is_some() {
            return false;
        }
        let Some(parking) = self.pool.terms.parking else { return false };
        let place = (!has_texts).then(|| task.place());
        let Some(mut parked) = parking.take(&self.kind(task.pass, place.clone())) else { return false };
        parked.runner.serve(self.pool.terms.waiting.clone());
        self.member.admission.runner(parked.runner.host_process());
        self.runner_number = self.shared.next_runner();
        (self.runner, self.served) = (Some(parked.runner), parked.served);
        self.directory = place;
        !has_texts
    }

    /// Takes tasks and does them; false where it ends in the middle of one.
    fn make_all(&mut self) -> bool {
        let (member, number) = (self.member, self.number);
        let wanted = || member.wants(number);
        let processors = || member.processors();
        let mut had = None;
        loop {
            let pass = self.pass.filter(|_| self.runner.is_some());
            let file = self.file.as_ref().map(|(name, _)| name.as_str());
            let runner = self.runner.as_ref().map(|_| self.runner_number);
            let idle = Idle { number, pass, runner, place: self.directory.as_ref(), file };
            let next = self.shared.take(idle, had.take(), wanted, processors);
            let Some((mut task, mut taken)) = next else { return true };
            let _working = member.working();
            self.doing = Doing::Nothing;
            let made = if task.is_judged() {
                self.judge(&mut task, &mut taken)
            } else {
                self.execute(&mut task, &mut taken)
            };
            let result = match made {
                Ok(()) => Ok(()),
                Err(Stop::Abandoned) => Err(Abandoned),
                Err(Stop::Broken(error)) => self.broken(task, error),
            };
            if result.is_err() {
                return false;
            }
            had = Some(taken);
        }
    }

    fn tell(&mut self, event: Event) -> Result<(), Abandoned> {
        match &mut self.held {
            Some(held) => {
                held.push(event);
                Ok(())
            }
            None => tell((&self.events, self.shared), event),
        }
    }

    /// Runs a text that is judged. Nothing of it is told before its processes are gone, and the runner is as it was.
    fn judge(&mut self, task: &mut Task, taken: &mut Taken<'_>) -> Result<(), Stop> {
        let runs = task.runs.clone();
        self.held = Some(Vec::new());
        let made = self.execute(task, taken);
        let held = self.held.take().unwrap_or_default();
        if let Err(Stop::Broken(error)) = made {
            // All of it is made again; the run at which it broke comes first.
            let last = task.runs.last().map(|run| (run.group, run.manner));
            task.runs = runs;
            task.runs.sort_by_key(|run| Some((run.group, run.manner)) == last);
            return Err(Stop::Broken(error));
        }
        made?;
        for event in held {
            self.tell(event)?;
        }
        Ok(())
    }

    fn forget_runner(&mut self) {
        self.runner = None;
        self.directory = None;
        self.file = None;
    }

    /// The runner broke, or did not start.
    fn broken(&mut self, mut task: Task, error: Error) -> Result<(), Abandoned> {
        let asked = self.doing != Doing::Nothing;
        let signal = self.runner.as_mut().filter(|_| asked).and_then(Runner::ended_by);
        let failed = self.runner.as_ref().is_some_and(Runner::has_failed);
        self.forget_runner();
        // Perhaps for want of memory.
        self.member.admission.calm_down();
        if error.fault() == Fault::Interrupted {
            self.tell(Event::Broken(error))?;
            return Err(Abandoned);
        }
        let harness = error.fault() == Fault::Harness;
        if harness && asked && !failed && task.is_judged() {
            return self.judged_broke(&mut task, &error, signal);
        }
        if harness && signal.is_some() && self.doing == Doing::Importing {
            tracing::warn!("a runner was killed while it imported {}: {error}", task.file);
            let text = "every process in reach was killed or stopped while it was imported, three times";
            let ended = self.import_ended(&mut task, text);
            return self.after(ended);
        }
        let after = task.trouble.runner_broke(harness, signal.is_some(), task.runs.len());
        tracing::warn!("a runner broke with {} groups left ({after:?}): {error}", task.runs.len());
        match after {
            AfterRunner::Done => {}
            AfterRunner::Again => self.shared.push(task),
            AfterRunner::OneByOne => {
                for run in &task.runs {
                    self.shared.push(task.alone(*run, task.trouble.none()));
                }
            }
            AfterRunner::Believe => {
                let text = "every process in reach was killed or stopped while it ran, three times";
                let exit = ProcessExit::Signaled { signal: signal.unwrap_or(SIGKILL) };
                for run in &task.runs {
                    self.tell_ended(&task, *run, &exit, text)?;
                }
            }
            AfterRunner::GiveUp if harness && task.is_judged() => {
                for run in &task.runs {
                    let lost =
                        Error::harness(error.to_string()).with_detail(error.detail().unwrap_or_default());
                    self.tell(Event::Lost { group: run.group, error: lost })?;
                }
            }
            AfterRunner::GiveUp => {
                let ids = task.runs.iter().map(|run| self.pool.groups[run.group].group_id.as_str());
                let places = ids.collect::<Vec<_>>().join(", ");
                self.tell(Event::Broken(error.at(places)))?;
                return Err(Abandoned);
            }
        }
        Ok(())
    }

    fn after(&mut self, step: Result<(), Stop>) -> Result<(), Abandoned> {
        match step {
            Err(Stop::Abandoned) => Err(Abandoned),
            Err(Stop::Broken(error)) => self.tell(Event::Broken(error)).and(Err(Abandoned)),
            Ok(()) => Ok(()),
        }
    }

    /// The runner broke while it was asked for a text that is judged: its doing, whatever it looks like.
    fn judged_broke(&mut self, task: &mut Task, error: &Error, signal: Option<i32>) -> Result<(), Abandoned> {
        tracing::warn!("a runner broke while it judged a text for {}: {error}", task.file);
        let detail = error.detail().unwrap_or_default();
        let text = format!("the runner broke, twice, each time in a fresh one: {error}\n{detail}");
        let step = if self.doing == Doing::Importing {
            self.import_ended(task, &text)
        } else {
            let exit = signal.map_or(ProcessExit::Unusable, |signal| ProcessExit::Signaled { signal });
            self.group_broke(task, 0, &exit, &text)
        };
        self.after(step)
    }

    /// Runs the task; runs that are done are removed from it, so that a retry goes on where it stopped.
    fn execute(&mut self, task: &mut Task, taken: &mut Taken<'_>) -> Result<(), Stop> {
        if task.trouble.wants_a_fresh_runner() {
            self.forget_runner();
        }
        let is_another = self.pass != Some(task.pass) || self.runs_entries != task.is_of_entries();
        if is_another || task.apart_from.contains(&self.runner_number) {
            self.forget_runner();
            (self.pass, self.runs_entries) = (Some(task.pass), task.is_of_entries());
        }
        let file = match self.open(task)? {
            Opened::Ready(file) => file,
            Opened::Refused(text) => return self.refuse(task, &text),
            Opened::Ended(text) => return self.import_ended(task, &text),
        };
        self.pace = Pace { opened: Instant::now(), made: 0 };
        task.trouble.opened();
        loop {
            self.share(task, taken, file.opening);
            if task.is_given_up() {
                self.give_up(task)?;
            }
            let Some(run) = task.runs.last().copied() else { break };
            let Some(_permit) = self.member.admission.enter() else { return Err(Stop::Abandoned) };
            if !self.run(&file, task, run)? {
                return Ok(());
            }
        }
        // The next task may be of the same file.
        if task.is_judged() {
            self.doing = Doing::Importing;
            self.runner.as_mut().map_or(Ok(()), Runner::close)?;
            self.doing = Doing::Nothing;
        } else {
            self.file = Some((task.file.clone(), file));
        }
        Ok(())
    }

    /// Opens the task's file, if it is not open. What met trouble before is not run where others were.
    fn open(&mut self, task: &Task) -> Result<Opened<OpenFile>, Stop> {
        let is_there = self.directory.as_ref() == Some(&task.place()) && !task.is_judged();
        match self.file.take() {
            Some((name, file)) if is_there && name == task.file && task.trouble == Trouble::default() => {
                return Ok(Opened::Ready(file));
            }
            Some(_) => self.close(),
            None => {}
        }
        let Some(_permit) = self.member.admission.enter_to_open() else { return Err(Stop::Abandoned) };
        let started = Instant::now();
        match self.open_directory(task)? {
            Opened::Ready(()) => self.open_file(task, started),
            Opened::Refused(text) => Ok(Opened::Refused(text)),
            Opened::Ended(text) => Ok(Opened::Ended(text)),
        }
    }

    /// Closes what was opened last in the runner. One that cannot is replaced: what it did is done.
    fn close(&mut self) {
        if let Some(Err(error)) = self.runner.as_mut().map(Runner::close) {
            tracing::warn!("a runner is replaced: {error}");
            self.forget_runner();
        }
    }

    /// Gives half of what is left to somebody who has nothing to do, where that takes longer than opening the file again.
    fn share(&mut self, task: &mut Task, taken: &mut Taken<'_>, opening: Duration) {
        if task.is_judged() || !task.apart_from.is_empty() {
            return; // one import is one's own; who waits may be one that must not make it
        }
        let attempts = task.attempts();
        if self.pace.made > 0 {
            let each = self.pace.opened.elapsed().as_secs_f64() * 1000.0 / f64::from(self.pace.made);
            task.cost_ms = each * f64::from(attempts);
        }
        let start = self.shared.is_wanted(taken, task.cost_ms, || self.member.processors());
        let opening_ms = opening.max(WORTH_SHARING).as_secs_f64() * 1000.0;
        if attempts >= 2 && start.is_some_and(|start_ms| task.cost_ms / 2.0 > opening_ms.max(start_ms)) {
            self.shared.push(task.halve());
        }
    }

    fn refuse(&mut self, task: &mut Task, text: &str) -> Result<(), Stop> {
        for run in task.runs.drain(..) {
            let Run { group, repeat: attempts, manner } = run;
            let (pass, text, reached) = (task.pass, text.to_owned(), Arc::default());
            let runner = self.runner_number;
            self.tell(Event::Unavailable { group, pass, runner, manner, attempts, text, reached })?;
        }
        Ok(())
    }

    /// Its file hangs: the attempts that are left are not made.
    fn give_up(&mut self, task: &mut Task) -> Result<(), Stop> {
        let exit = ProcessExit::TimedOut { scope: TimeScope::Group, index: None };
        for run in std::mem::take(&mut task.runs) {
            self.tell_ended(task, run, &exit, NOT_RUN)?;
        }
        Ok(())
    }

    fn import_ended(&mut self, task: &mut Task, text: &str) -> Result<(), Stop> {
        self.forget_runner();
        self.member.admission.calm_down();
        match task.trouble.import_ended() {
            AfterImport::Again => {
                self.shared.push(task.clone());
                Ok(())
            }
            AfterImport::Refuse => self.refuse(task, text),
        }
    }

    fn open_directory(&mut self, task: &Task) -> Result<Opened<()>, Stop> {
        let place = task.place();
        let is_open = self.directory.as_ref() == Some(&place) && self.runner.is_some();
        if is_open || self.take_parked(task) {
            return Ok(Opened::Ready(()));
        }
        if self.directory.take().is_some() {
            self.close();
        }
        let runner = match &mut self.runner {
            Some(runner) => runner,
            empty => {
                let setting = self.pool.setting(task);
                let runner = empty.insert(Runner::start(self.pool.backend, &setting)?);
                runner.serve(self.pool.terms.waiting.clone());
                self.served = 0;
                self.member.admission.runner(runner.host_process());
                self.runner_number = self.shared.next_runner();
                runner
            }
        };
        let limit = self.pool.passes[task.pass].timeouts.group;
        let request = Request::OpenDirectory {
            file: task.file.clone(),
            options: self.pool.options.to_vec(),
            trace: task.trace,
            preload: self.pool.passes[task.pass].preload.to_vec(),
            texts: self.pool.passes[task.pass].texts.cloned().unwrap_or_default(),
            timeout_ms: milliseconds(limit),
        };
        // A text that is judged has no part in this.
        self.doing = if task.is_judged() { Doing::Nothing } else { Doing::Importing };
        match runner.ask(&request, limit)? {
            Answer::DirectoryReady {} => {
                self.directory = Some(place);
                Ok(Opened::Ready(()))
            }
            other => Opened::refused(runner, other).map_err(Into::into),
        }
    }

    fn open_file(&mut self, task: &Task, started: Instant) -> Result<Opened<OpenFile>, Stop> {
        let limit = self.pool.passes[task.pass].timeouts.group;
        let Some(runner) = self.runner.as_mut() else {
            return Err(Error::internal("no runner is open").into());
        };
        let request = Request::OpenFile {
            file: task.file.clone(),
            text: task.text().map(str::to_owned),
            timeout_ms: milliseconds(limit),
        };
        self.doing = Doing::Importing;
        self.served += u32::from(task.is_judged());
        match runner.ask(&request, limit)? {
            Answer::FileReady(ready) => Ok(Opened::Ready(OpenFile::new(*ready, started.elapsed()))),
            other => Opened::refused(runner, other).map_err(Into::into),
        }
    }

    /// Makes the attempts of one group. False when the file process is gone (what is left went back into the queue).
    fn run(&mut self, file: &OpenFile, task: &mut Task, run: Run) -> Result<bool, Stop> {
        let Pass { normalizer, timeouts, .. } = self.pool.passes[task.pass];
        let Some(items) = file.items_of(&self.pool.groups[run.group], normalizer) else {
            task.runs.pop();
            self.tell(file.unavailable(run, (task.pass, self.runner_number)))?;
            return Ok(true);
        };
        let Some(runner) = self.runner.as_mut() else {
            return Err(Error::internal("no runner is open").into());
        };
        let (listener, mut abandoned, mut made, mut killed) = ((&self.events, self.shared), false, 0, 0);
        let mut held = self.held.take();
        let mut goes_on = true;
        let (mut started, mut late, mut over) = (Instant::now(), 0, 0);
        self.doing = Doing::Running;
        let number = self.runner_number;
        let ran = runner.run_group(&items, (run.repeat, run.manner), timeouts, |done| {
            let start = std::mem::replace(&mut started, Instant::now());
            if matches!(done.exit, ProcessExit::TimedOut { .. }) && self.member.admission.was_crowded(start) {
                self.member.admission.calm_down();
                late += 1;
                return Ok(());
            }
            if !task.trouble.counts(&done.exit) {
                if self.member.admission.was_crowded(start) {
                    self.member.admission.calm_down();
                }
                killed += 1;
                return Ok(());
            }
            made += 1;
            over += u32::from(matches!(done.exit, ProcessExit::TimedOut { .. }));
            let fails = |case: &CaseReport| matches!(case.outcome, Outcome::Failed | Outcome::Error);
            let decides = task.plain_decides && run.manner == Manner::PLAIN;
            goes_on = done.exit == ProcessExit::Finished && !(decides && done.cases.iter().any(fails));
            let event = file.attempt(run, (task.pass, number), done);
            match &mut held {
                Some(held) => held.push(event),
                None => abandoned = tell(listener, event).is_err(),
            }
            if abandoned { Err(Error::interrupted()) } else { Ok(()) }
        });
        self.held = held;
        task.trouble.made(made);
        task.late += over;
        if let Some(last) = task.runs.last_mut() {
            last.repeat -= made;
            if last.repeat == 0 {
                task.runs.pop();
                if !goes_on {
                    // What does not come to its end is not made to do so in other manners.
                    task.drop_other_manners(run);
                }
            }
        }
        if abandoned {
            return Err(Stop::Abandoned);
        }
        let ran = ran?;
        self.doing = Doing::Nothing;
        self.pace.made += made.max(1);
        if let Ran::Broke { exit, text, .. } = ran {
            self.member.admission.calm_down();
            self.group_broke(task, made, &exit, &text)?;
            return Ok(false);
        }
        Ok(self.make_again(task, run, (killed, late)))
    }

    /// What was killed, or late while others kept the processors busy, is made again. False where somebody else may do that.
    fn make_again(&mut self, task: &mut Task, run: Run, (killed, late): (u32, u32)) -> bool {
        let Some(trouble) = task.trouble.attempts_killed(killed) else { return true };
        if task.is_judged() {
            self.forget_runner();
            task.trouble = trouble;
            self.shared.push(task.clone());
            return false;
        }
        task.runs.pop();
        self.shared.push(task.alone(Run { repeat: killed + late, ..run }, trouble));
        true
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
        if task.is_judged() {
            return self.judged_run_broke(task, exit, text);
        }
        let Some(guilty) = task.runs.pop() else { return Ok(()) };
        let step = task.trouble.group_broke(made);
        if !task.runs.is_empty() {
            self.shared.push(task.clone());
        }
        match step {
            AfterGroup::Alone(trouble) => self.shared.push(task.alone(guilty, trouble)),
            AfterGroup::Believe => {
                let text = format!("{text}\n(three times in a row, in a fresh runner each time)");
                self.tell_ended(task, guilty, exit, &text)?;
            }
        }
        Ok(())
    }

    /// The last run of a text that is judged broke: it is made once more before any other of that text.
    fn judged_run_broke(&mut self, task: &mut Task, exit: &ProcessExit, text: &str) -> Result<(), Stop> {
        match task.trouble.group_broke(0) {
            AfterGroup::Alone(trouble) => task.trouble = trouble,
            AfterGroup::Believe => {
                let Some(guilty) = task.runs.pop() else { return Ok(()) };
                let text = format!("{text}\n(twice in a row, in a fresh runner each time)");
                self.tell_ended(task, guilty, exit, &text)?;
                task.drop_other_manners(guilty);
                task.trouble = task.trouble.none();
            }
        }
        if !task.runs.is_empty() {
            self.shared.push(task.clone());
        }
        Ok(())
    }

    /// The attempts of a group that takes others down with it.
    fn tell_ended(&mut self, task: &Task, run: Run, exit: &ProcessExit, text: &str) -> Result<(), Abandoned> {
        let done = GroupDone {
            cases: Vec::new(),
            exit: exit.clone(),
            leftover: 0,
            connections: Vec::new(),
            raw_output: text.to_owned(),
            pytest_error: None,
            duration_ms: 0.0,
            processor_ms: 0.0,
            memory_bytes: None,
            trace: None,
            reached: Reached::default(),
            execution: None,
        };
        for _ in 0..run.repeat {
            self.tell(Event::Attempt {
                group: run.group,
                pass: task.pass,
                runner: self.runner_number,
                manner: run.manner,
                done: Box::new(done.clone()),
                items: Arc::default(),
                import: None,
                reached: Arc::default(),
            })?;
        }
        Ok(())
    }
}
