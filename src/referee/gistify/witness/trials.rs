//! Trials: a text is run where a submission runs, in a runner that stays, with what the original imports imported before.

use std::collections::BTreeMap;

use crate::attempt::lab::Lab;
use crate::attempt::world::WorldSetting;
use crate::attempt::{attempt_of, node_id, not_collected};
use crate::error::{Error, Fault, Result};
use crate::record::collected::Group;
use crate::record::entry::Entry;
use crate::record::execution::ExecutedFile;
use crate::record::outcome::Attempt;
use crate::record::world::World;
use crate::referee::gistify::ground::Ground;
use crate::runner::protocol::{Answer, FileReady, ImportAttempt, ItemKind, Manner, Request, TraceMode};
use crate::runner::report::GroupDone;
use crate::runner::{Ran, Runner, milliseconds};

/// How often a trial is made again in a fresh runner when the harness breaks.
const RETRIES: u32 = 2;

/// What one text showed.
pub(super) struct Tried {
    pub(super) attempt: Attempt,
    /// What pytest says where nothing was collected.
    pub(super) text: String,
    pub(super) imports: Vec<ImportAttempt>,
    pub(super) ran: Option<ExecutedFile>,
}

/// A place to try texts in.
pub(super) struct Trials<'a> {
    lab: &'a Lab,
    world: WorldSetting,
    file: &'a str,
    runner: Option<Runner>,
    preload: Vec<String>,
    /// False once a runner has ended by importing these.
    imports_ahead: bool,
    /// What opening a directory names: the file of a test, or the name that all commands share.
    place: String,
}

impl<'a> Trials<'a> {
    pub(super) fn new(lab: &'a Lab, ground: &'a Ground, file: &'a str) -> Self {
        let world = WorldSetting::base(&ground.setting);
        let place = file.to_owned();
        Trials { lab, world, file, runner: None, preload: Vec::new(), imports_ahead: true, place }
    }

    /// Makes ready for texts that import these modules.
    ///
    /// # Errors
    /// An interruption.
    pub(super) fn prepare(&mut self, preload: &[String], group: &Group) -> Result<()> {
        let entries: Vec<Entry> = group.entry.iter().cloned().collect();
        if entries != self.world.setting.world.entries {
            // A runner knows its commands from the beginning.
            self.runner = None;
            self.world.setting.world.entries = entries;
            group.file.clone_into(&mut self.place);
        }
        if self.preload == preload {
            return Ok(());
        }
        preload.clone_into(&mut self.preload);
        self.imports_ahead = true;
        if let Some(runner) = self.runner.as_mut()
            && runner.close().and_then(|()| open(runner, self.lab, &self.place, preload)).is_err()
        {
            self.runner = None;
            crate::interrupt::check()?;
        }
        Ok(())
    }

    /// Runs a text. One that ends the runner each time has failed.
    ///
    /// # Errors
    /// An interruption, and the harness's when no runner opens.
    pub(super) fn run(&mut self, group: &Group, text: &str) -> Result<Tried> {
        let mut broke = 0;
        loop {
            let opened = self.opened();
            let did_open = opened.is_ok();
            match opened.and_then(|runner| self.once(runner, group, text)) {
                Err(error) if error.fault() == Fault::Harness && broke < RETRIES => {
                    tracing::warn!("a trial is made again: {error}");
                    broke += 1;
                }
                Err(error) if error.fault() == Fault::Harness && did_open => {
                    return Ok(self.not_collected(group, error.to_string(), Vec::new()));
                }
                other => return other,
            }
        }
    }

    /// A runner that is open. Where it ends by what it imports ahead, nothing is imported ahead.
    fn opened(&mut self) -> Result<Runner> {
        if let Some(runner) = self.runner.take() {
            return Ok(runner);
        }
        if self.imports_ahead {
            let mut runner = Runner::start(&*self.lab.backend, &self.world.setting)?;
            match open(&mut runner, self.lab, &self.place, &self.preload) {
                Ok(()) => return Ok(runner),
                Err(error) if error.fault() == Fault::Harness => {
                    tracing::warn!("nothing is imported ahead of trials: {error}");
                    self.imports_ahead = false;
                }
                Err(error) => return Err(error),
            }
        }
        let mut runner = Runner::start(&*self.lab.backend, &self.world.setting)?;
        open(&mut runner, self.lab, &self.place, &[])?;
        Ok(runner)
    }

    fn once(&mut self, mut runner: Runner, group: &Group, text: &str) -> Result<Tried> {
        let limit = self.lab.timeouts.group;
        let (file, text) = (self.place.clone(), Some(text.to_owned()));
        let request = Request::OpenFile { file, text, timeout_ms: milliseconds(limit) };
        match runner.ask(&request, limit)? {
            Answer::FileReady(ready) => {
                let (tried, whole) = self.run_group(&mut runner, group, *ready)?;
                if whole {
                    runner.close()?;
                    self.runner = Some(runner);
                }
                Ok(tried)
            }
            // The file process is gone; the directory below it goes on.
            Answer::Failed { error, .. } => {
                self.runner = Some(runner);
                Ok(self.not_collected(group, error.text, Vec::new()))
            }
            other => {
                let ended =
                    matches!(other, Answer::Died { .. } | Answer::TimedOut { .. } | Answer::Broken { .. });
                self.runner = ended.then_some(runner);
                Ok(self.not_collected(group, format!("{other:?}"), Vec::new()))
            }
        }
    }

    fn not_collected(&self, group: &Group, text: String, imports: Vec<ImportAttempt>) -> Tried {
        let attempt = not_collected(group, &text, &self.world.normalizer, (&World::Base, 0));
        Tried { attempt, text, imports, ran: None }
    }

    /// Runs the group in the open file; false where the file process is gone.
    fn run_group(&self, runner: &mut Runner, group: &Group, ready: FileReady) -> Result<(Tried, bool)> {
        let key = group.key();
        let of_group = ready.items.iter().filter(|item| item.kind == ItemKind::Function && item.key() == key);
        let items: Vec<usize> = of_group.map(|item| item.index).collect();
        if items.is_empty() {
            let texts: Vec<&str> = ready.errors.iter().map(|error| error.text.as_str()).collect();
            let text = format!("the test is not collected\n{}", texts.join("\n\n"));
            return Ok((self.not_collected(group, text, ready.import_attempts), true));
        }
        let mut done: Option<GroupDone> = None;
        let ran = runner.run_group(&items, (1, Manner::default()), self.lab.timeouts, |one| {
            done = Some(one);
            Ok(())
        })?;
        let Some(mut done) = done else {
            let Ran::Broke { exit, text, .. } = ran else {
                return Err(Error::harness("a trial was not reported"));
            };
            return Ok((
                self.not_collected(group, format!("{exit:?}: {text}"), ready.import_attempts),
                false,
            ));
        };
        let ran = done.execution.take().and_then(|mut execution| execution.files.remove(self.file));
        let imports = ready.import_attempts.into_iter().chain(done.reached.imports.drain(..)).collect();
        let name = |index: i64| node_id(&ready.items, index);
        let attempt = attempt_of(group, &done, name, &self.world.normalizer, (&World::Base, 0));
        Ok((Tried { attempt, text: String::new(), imports, ran }, true))
    }
}

fn open(runner: &mut Runner, lab: &Lab, file: &str, preload: &[String]) -> Result<()> {
    let limit = lab.timeouts.group;
    let request = Request::OpenDirectory {
        file: file.to_owned(),
        options: lab.options.clone(),
        trace: TraceMode::Lines,
        preload: preload.to_vec(),
        texts: BTreeMap::new(),
        timeout_ms: milliseconds(limit),
    };
    match runner.ask(&request, limit)? {
        Answer::DirectoryReady {} => Ok(()),
        other => Err(Error::harness(format!("trials cannot begin: {other:?}"))),
    }
}
