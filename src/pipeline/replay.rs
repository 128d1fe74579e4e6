//! One group once more, in any world, without leaving a trace in the journal.

use std::collections::BTreeMap;

use crate::attempt::lab::{Lab, Made, Wanted};
use crate::attempt::overlay::History;
use crate::config::Repo;
use crate::error::{Error, Result};
use crate::family::recube::exchanged;
use crate::record::collected::Group;
use crate::record::outcome::{Attempt, Compare};
use crate::record::world::World;
use crate::referee::recube::Ground;
use crate::store::{Cache, discard};

use super::Pipeline;
use super::prepare::{Preparation, Prepared};

/// A repository whose groups can be run again.
pub struct Replay {
    prepared: Prepared,
    compare: Compare,
}

impl Replay {
    /// Prepares a repository as a build does; what is in the cache is used, beside others that write no attempts either.
    ///
    /// # Errors
    /// Those of the stages up to `collect`.
    pub fn prepare(pipeline: &Pipeline<'_>, repo: &Repo) -> Result<Self> {
        Ok(Self::of(Preparation::new(pipeline, repo).beside_others().run()?, pipeline))
    }

    /// A repository that is prepared already.
    pub fn of(prepared: Prepared, pipeline: &Pipeline<'_>) -> Self {
        Replay { prepared, compare: pipeline.config.screen.compare }
    }

    /// Whether two attempts agree.
    pub fn agree(&self, one: &Attempt, other: &Attempt) -> bool {
        one.shown(self.compare) == other.shown(self.compare)
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
        self.run_in(&self.prepared.lab, group, world, times)
    }

    /// Runs the group `times` times in a world, with the mask in the place of a file and without history, as the gates of the
    /// family `recube` do.
    ///
    /// # Errors
    /// A usage error: the file cannot be masked. Those of [`Replay::run`].
    pub fn run_masked(
        &self,
        cache: &Cache,
        target: &str,
        group: &Group,
        (world, times): (&World, u32),
    ) -> Result<Vec<Attempt>> {
        let ground = Ground::of(&self.prepared.lab, target)?;
        let patch = exchanged(target, ground.masked.text.as_bytes(), &ground.byte_code)
            .map_err(|_| Error::usage(format!("{target} is not a file of the tree")))?;
        let lab = self.prepared.lab.with(cache, &patch, History::Hidden)?;
        let made = self.run_in(&lab, group, world, times);
        if let Some(folder) = lab.built.tree.parent() {
            discard(folder)?;
        }
        made
    }

    fn run_in(&self, lab: &Lab, group: &Group, world: &World, times: u32) -> Result<Vec<Attempt>> {
        let collected = &self.prepared.collected;
        if let World::Only(dimensions) = world
            && let Some(reason) = dimensions.iter().find_map(|one| lab.capabilities.not_covered.get(one))
        {
            return Err(Error::machine(format!("this machine cannot make the world `{world}`: {reason}")));
        }
        let index = collected.groups.iter().position(|one| one.group_id == group.group_id);
        let index = index.ok_or_else(|| Error::internal(format!("{} is not collected", group.group_id)))?;
        let setting = lab.world(world)?;
        let durations = BTreeMap::new();
        // Rounds as in a build, where every second one differs from the others (docs/worlds.md).
        let rounds = [[(index, times.div_ceil(2))], [(index, times / 2)]];
        let of_round = |round: usize| Wanted {
            world: &setting,
            round: round as u32,
            groups: &rounds[round],
            durations: &durations,
            patience: None,
        };
        let wanted: Vec<Wanted<'_>> =
            (0..rounds.len()).filter(|at| rounds[*at][0].1 > 0).map(of_round).collect();
        let mut made = Vec::new();
        lab.make(&collected.groups, &wanted, |_, _, one| {
            let (Made::Attempt(attempt) | Made::Unavailable { attempt, .. }) = one;
            let number = u32::try_from(made.len()).unwrap_or(u32::MAX);
            made.push(Attempt { number, ..attempt });
            Ok(())
        })?;
        Ok(made)
    }
}
