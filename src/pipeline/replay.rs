//! One group once more, in any world, without leaving a trace in the journal.

use crate::config::Repo;
use crate::error::{Error, Result};
use crate::record::collected::Group;
use crate::record::outcome::Attempt;
use crate::record::world::World;
use crate::runner::protocol::TraceMode;
use crate::screen::pool::Event;
use crate::screen::world::WorldSetting;
use crate::screen::{attempt_of, contention, node_id, not_collected, tasks};

use super::Pipeline;
use super::prepare::{Preparation, Prepared};

/// A repository whose groups can be run again.
pub struct Replay<'a> {
    pipeline: &'a Pipeline<'a>,
    prepared: Prepared,
}

impl<'a> Replay<'a> {
    /// Prepares a repository as a build does; what lies in the cache is used.
    ///
    /// # Errors
    /// Those of the stages up to `collect`.
    pub fn prepare(pipeline: &'a Pipeline<'a>, repo: &'a Repo) -> Result<Self> {
        Ok(Replay { pipeline, prepared: Preparation { pipeline, repo }.run()? })
    }

    /// A repository that is prepared already.
    pub fn of(pipeline: &'a Pipeline<'a>, prepared: Prepared) -> Self {
        Replay { pipeline, prepared }
    }

    /// What its groups run in.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The group of that ID.
    pub fn exact(&self, id: &str) -> Option<&Group> {
        self.prepared.collected.groups.iter().find(|group| group.group_id == id)
    }

    /// Groups whose ID contains the text.
    pub fn find(&self, text: &str) -> Vec<&Group> {
        let groups = &self.prepared.collected.groups;
        groups.iter().filter(|group| group.group_id.contains(text)).collect()
    }

    /// Runs the group `times` times in a world.
    ///
    /// # Errors
    /// A world that this machine does not cover; the harness's trouble; an interruption.
    pub fn run(&self, group: &Group, world: &World, times: u32) -> Result<Vec<Attempt>> {
        let Prepared { built, collected, conditions, setting, folder, .. } = &self.prepared;
        if let World::Only(dimensions) = world
            && let Some(reason) = dimensions.iter().find_map(|one| conditions.not_covered.get(one))
        {
            return Err(Error::machine(format!("this machine cannot make the world `{world}`: {reason}")));
        }
        let index = collected.groups.iter().position(|one| one.group_id == group.group_id);
        let index = index.ok_or_else(|| Error::internal(format!("{} is not collected", group.group_id)))?;
        let place = WorldSetting::new(world, conditions, setting, &built.env, folder)?;
        let options = built.quiet_options();
        let pool = self.pipeline.pool(&self.prepared, &place, &options);
        let wanted = [(index, times)];
        let durations = std::collections::BTreeMap::new();
        let tasks = tasks(&collected.groups, &wanted, &durations, 0, TraceMode::Off, 1);
        let _contention = place.loaded.then(contention::start).transpose()?;
        let name = world.to_string();
        let mut made = Vec::new();
        pool.run(tasks, |event| {
            let mut attempt = match event {
                Event::Attempt { done, items, .. } => {
                    let ids = |index: i64| node_id(&items, index);
                    attempt_of(group, &done, ids, &place.normalizer, (&name, 0))
                }
                Event::Unavailable { text, .. } => not_collected(group, &text, &place.normalizer, (&name, 0)),
                Event::Broken(error) => return Err(error),
            };
            attempt.number = u32::try_from(made.len()).unwrap_or(u32::MAX);
            made.push(attempt);
            Ok(())
        })?;
        Ok(made)
    }
}
