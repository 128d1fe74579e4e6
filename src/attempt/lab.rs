//! A built tree and where its tests run: all that it takes to make attempts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::capabilities::Capabilities;
use super::pool::{Admission, Crowd, Event, Pass, Pool, Run, Task, Terms};
use super::world::WorldSetting;
use super::{attempt_of, cold, contention, node_id, not_collected, tasks};
use crate::backend::Backend;
use crate::error::Result;
use crate::record::collected::Group;
use crate::record::environment::Built;
use crate::record::limits::Timeouts;
use crate::record::outcome::{Attempt, Compare};
use crate::record::world::World;
use crate::runner::Setting;
use crate::runner::protocol::{Manner, TraceMode};

/// A built tree and where its tests run.
#[derive(Clone)]
pub struct Lab {
    pub backend: Arc<dyn Backend>,
    pub built: Built,
    /// The base world.
    pub setting: Setting,
    /// What the machine can vary.
    pub capabilities: Capabilities,
    /// Takes what worlds have to write.
    pub folder: PathBuf,
    /// Options of pytest that keep switched-off plugins quiet.
    pub options: Vec<String>,
    /// In the base world.
    pub timeouts: Timeouts,
    /// How many attempts are under way at once.
    pub admission: Arc<Admission<'static>>,
    /// How much of what was shown must agree.
    pub compare: Compare,
}

/// Attempts of one round that are wanted in a world.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub world: &'a WorldSetting,
    pub round: u32,
    /// Groups by index, and how many attempts of each. May be empty where later ones may ask for some.
    pub groups: &'a [(usize, u32)],
    /// Known milliseconds per attempt, by group.
    pub durations: &'a BTreeMap<usize, f64>,
    /// [`Task::patience`] of each file.
    pub patience: Option<u32>,
}

impl Wanted<'_> {
    /// In every second round of the base world what other threads print comes late: no world promises that it does not.
    fn manner(&self) -> Manner {
        Manner { late_writes: self.world.world == World::Base && self.round % 2 == 1, ..Manner::default() }
    }
}

/// What came of a wanted attempt.
pub enum Made {
    Attempt(Attempt),
    /// The group cannot be run when its file is collected alone; these attempts of it are not made.
    Unavailable {
        attempts: u32,
        /// What pytest says.
        text: String,
        /// An attempt that says so: its exit is that the test was not collected.
        attempt: Attempt,
    },
}

impl Made {
    /// How many attempts that settles.
    pub fn attempts(&self) -> u32 {
        match self {
            Made::Attempt(_) => 1,
            Made::Unavailable { attempts, .. } => *attempts,
        }
    }
}

impl Lab {
    /// Attempts that may compute at the same time.
    pub fn jobs(&self) -> usize {
        self.admission.jobs()
    }

    /// The reference conditions.
    pub fn base(&self) -> WorldSetting {
        WorldSetting::base(&self.setting)
    }

    /// A world on this machine.
    ///
    /// # Errors
    /// What has to be written for it cannot be.
    pub fn world(&self, world: &World) -> Result<WorldSetting> {
        WorldSetting::new(world, &self.capabilities, &self.setting, &self.built.env, &self.folder)
    }

    fn pass<'a>(&'a self, world: &'a WorldSetting) -> Pass<'a> {
        let timeouts = world.timeouts(self.timeouts);
        Pass { setting: &world.setting, normalizer: &world.normalizer, timeouts, preload: &[], texts: None }
    }

    /// Workers in a world.
    pub fn pool<'a>(&'a self, groups: &'a [Group], world: &'a WorldSetting) -> Pool<'a> {
        Pool {
            backend: &*self.backend,
            passes: vec![self.pass(world)],
            groups,
            options: &self.options,
            crowd: Crowd::Exact(self.jobs()),
            terms: Terms::default(),
        }
    }

    /// Workers in a world; more of them than may compute while processors are idle, where load is not what is tested.
    pub fn busy_pool<'a>(&'a self, groups: &'a [Group], world: &'a WorldSetting) -> Pool<'a> {
        let pool = self.pool(groups, world);
        if world.loaded { pool } else { Pool { crowd: Crowd::Idle(&self.admission), ..pool } }
    }

    /// Makes the attempts of all of these at once; `each` gets the index of what was wanted, that of the group, and what came
    /// of it, on the caller's thread. What is wanted in worlds under load has to be wanted without any others.
    ///
    /// # Errors
    /// The first error of `each`, an interruption, or the harness's when it stays broken.
    pub fn make(
        &self,
        groups: &[Group],
        wanted: &[Wanted<'_>],
        mut each: impl FnMut(usize, usize, Made) -> Result<()>,
    ) -> Result<()> {
        self.make_on(groups, wanted, |pass, group, made| each(pass, group, made).map(|()| Vec::new()))
    }

    /// Makes attempts, and those that `each` asks for when it sees one: it gives how many of that group are to be made as
    /// well, each by the index of what was wanted. Except in the base world, other interpreters make them than those that
    /// made attempts of the group there before.
    ///
    /// # Errors
    /// Those of [`Lab::make`].
    pub fn make_on(
        &self,
        groups: &[Group],
        wanted: &[Wanted<'_>],
        mut each: impl FnMut(usize, usize, Made) -> Result<Vec<(usize, u32)>>,
    ) -> Result<()> {
        let Some(first) = wanted.first() else { return Ok(()) };
        debug_assert!(wanted.iter().all(|one| one.world.loaded == first.world.loaded));
        let contention = first.world.loaded.then(contention::start).transpose()?;
        let mut pool = self.busy_pool(groups, first.world);
        if let Some(contention) = &contention {
            pool.crowd = Crowd::Contending(self.jobs(), contention);
        }
        pool.passes = wanted.iter().map(|one| self.pass(one.world)).collect();
        let of_pass = |(pass, one): (usize, &Wanted<'_>)| {
            let mut tasks = tasks(groups, one.groups, one.durations, pass, TraceMode::Off, pool.expected());
            for task in &mut tasks {
                task.patience = one.patience;
                for run in &mut task.runs {
                    run.manner = one.manner();
                }
            }
            tasks
        };
        let tasks = wanted.iter().enumerate().flat_map(of_pass).collect();
        let further = |group: usize, made: Option<&Vec<u64>>, (pass, attempts): (usize, u32)| {
            let mut task = Task::new(&groups[group].file, pass, TraceMode::Off);
            task.runs.push(Run { manner: wanted[pass].manner(), ..Run::new(group, attempts) });
            task.cost_ms =
                wanted[pass].durations.get(&group).copied().unwrap_or_default() * f64::from(attempts);
            task.apart_from = made.cloned().unwrap_or_default();
            task
        };
        let mut made_by: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
        let mut each = |pass: usize, group: usize, made, runner: u64| -> Result<Vec<Task>> {
            if wanted[pass].world.world != World::Base {
                made_by.entry((pass, group)).or_default().push(runner);
            }
            let more = each(pass, group, made)?.into_iter();
            Ok(more.map(|more| further(group, made_by.get(&(more.0, group)), more)).collect())
        };
        pool.run_on(tasks, |event| match event {
            Event::Attempt { pass, group, runner, done, items, .. } => {
                let Wanted { world, round, .. } = wanted[pass];
                let name = |index: i64| node_id(&items, index);
                let place = (&world.world, round);
                let attempt = attempt_of(&groups[group], &done, name, &world.normalizer, place);
                each(pass, group, Made::Attempt(attempt), runner)
            }
            Event::Unavailable { pass, group, runner, attempts, text, .. } => {
                let Wanted { world, round, .. } = wanted[pass];
                let place = (&world.world, round);
                let attempt = not_collected(&groups[group], &text, &world.normalizer, place);
                each(pass, group, Made::Unavailable { attempts, text, attempt }, runner)
            }
            Event::Broken(error) | Event::Lost { error, .. } => Err(error),
        })
    }

    /// Cold runs of the literal entry command, one of each group; `ends` tells which groups come to their end in the
    /// fork tree.
    ///
    /// # Errors
    /// The first error of `each`, an interruption, or the harness's.
    pub fn cold(
        &self,
        groups: &[(usize, &Group)],
        ends: &(dyn Fn(usize) -> bool + Sync),
        each: impl FnMut(usize, Attempt) -> Result<()>,
    ) -> Result<()> {
        let cold = cold::Cold {
            backend: &*self.backend,
            setting: &self.setting,
            options: &self.options,
            group_timeout: self.timeouts.group,
            jobs: self.jobs(),
            ends,
        };
        cold.run(groups, each)
    }
}
