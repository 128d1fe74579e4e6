//! What is known about the groups of one repository while they are screened: attempts, traces, and the verdicts that
//! follow.

use std::collections::{BTreeMap, BTreeSet};

use crate::collect;
use crate::error::Result;
use crate::record::collected::{Group, shell_quote};
use crate::record::instance::{Parity, ParityDifference};
use crate::record::outcome::{Attempt, Method};
use crate::record::trace::test_roots;
use crate::record::verdict::{Cause, Dimension, Evidence, Verdict};
use crate::record::world::{self, World};
use crate::screen::attribution::{self, CONFIRMING_ROUND, Seen, Step};
use crate::screen::journal::Journal;
use crate::screen::world::WorldSetting;
use crate::screen::{FIRST_ROUNDS, Screened, cold, verdict};
use crate::trace::Traces;

use super::Pipeline;
use super::prepare::Prepared;
use super::sources::Sources;

/// How many clues an evidence has at most.
const MOST_CLUES: usize = 8;

/// A file or group that could not be run when its file was collected alone.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct Unavailable {
    pub(super) group_id: String,
    /// Round in which it was seen.
    pub(super) round: u32,
    pub(super) text: String,
}

/// What screening works on and what it found so far.
pub(super) struct Bench<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) options: Vec<String>,
    pub(super) roots: Vec<String>,
    pub(super) screened: Screened,
    pub(super) unavailable: BTreeMap<usize, Unavailable>,
    pub(super) unavailable_journal: Journal,
    pub(super) traces: Traces,
    pub(super) sources: Sources,
    /// Attempts and cold runs that the config asks for.
    pub(super) attempts: u32,
    pub(super) cold_runs: u32,
    /// Whether a group with some failing cases may be kept.
    partial: bool,
    /// The base world.
    pub(super) base: WorldSetting,
    /// What a command needs to find the build's configuration again.
    pub(super) replay_options: String,
}

/// Which attempts a verdict looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The first rounds only: what every group has, so that the sample does not depend on what was chosen before.
    First,
    All,
}

impl Depth {
    /// Further hash seeds that a group goes through.
    fn seeds(self) -> u32 {
        match self {
            Depth::First => 0,
            Depth::All => attribution::SEEDS,
        }
    }
}

impl<'a> Bench<'a> {
    pub(super) fn open(prepared: &'a Prepared, pipeline: &Pipeline<'_>) -> Result<Self> {
        let screen = &pipeline.config.screen;
        let config = pipeline.config_name.map(|name| format!(" --config {}", shell_quote(name)));
        let replay_options = format!(" --only {}{}", prepared.pinned.slug, config.unwrap_or_default());
        let Prepared { built, collected, folder, .. } = prepared;
        let screened = Screened::open(&folder.join("attempts"), &collected.groups)?;
        let (unavailable_journal, rows) = Journal::open::<Unavailable>(&folder.join("unavailable"))?;
        let place =
            |row: &Unavailable| collected.groups.iter().position(|group| group.group_id == row.group_id);
        let unavailable = rows.into_iter().filter_map(|row| Some((place(&row)?, row))).collect();
        let files = collected.groups.iter().map(|group| group.file.as_str());
        Ok(Bench {
            prepared,
            options: built.quiet_options(),
            roots: test_roots(files),
            screened,
            unavailable,
            unavailable_journal,
            traces: Traces::open(&folder.join("traces"))?,
            sources: Sources::of(&prepared.setting.tree),
            attempts: screen.attempts,
            cold_runs: screen.cold_runs,
            partial: screen.partial_groups,
            base: WorldSetting::base(&prepared.setting),
            replay_options,
        })
    }

    /// The attempts that the config asks for, whatever else the journal holds from a build that asked for more.
    pub(super) fn considered(&self, index: usize, depth: Depth) -> Vec<&Attempt> {
        let mut seen: BTreeMap<(Method, u32), u32> = BTreeMap::new();
        let wanted = |attempt: &&Attempt| {
            if attempt.world.starts_with(world::SEED) {
                return depth == Depth::All;
            }
            // What an attribution asked for follows from the attempts themselves.
            if !attempt.is_base() || attempt.round == CONFIRMING_ROUND {
                return true;
            }
            let made = seen.entry((attempt.method, attempt.round)).or_default();
            *made += 1;
            match attempt.method {
                Method::Fork => {
                    (depth == Depth::All || FIRST_ROUNDS.contains(&attempt.round))
                        && *made <= crate::screen::attempts_of_round(attempt.round, self.attempts)
                }
                Method::Cold => depth == Depth::All && *made <= self.cold_runs,
            }
        };
        self.screened.of(index).iter().filter(wanted).collect()
    }

    /// The attempts that a group which passes in the base world still needs: world and number.
    pub(super) fn next_step(&self, index: usize, depth: Depth) -> Option<(World, u32)> {
        let made = self.considered(index, depth);
        let group = &self.prepared.collected.groups[index];
        if self.unavailable.contains_key(&index)
            || !verdict::judge(group, &base_attempts(&made), self.partial).is_kept()
        {
            return None;
        }
        match attribution::next(&Seen::new(made), &self.prepared.conditions.covered, depth.seeds()) {
            Step::Run { world, missing } => Some((world, missing)),
            _ => None,
        }
    }

    /// The command that runs a group again in the world of an attempt.
    fn replay(&self, group: &Group, attempt: &Attempt, times: u32) -> String {
        let times = if times > 1 { format!(" --times {times}") } else { String::new() };
        let group = shell_quote(&group.group_id);
        format!("gistmill replay {group} --world {}{times}{}", attempt.world, self.replay_options)
    }

    /// What in the source of a test looks as if it depended on these dimensions.
    fn clues(&self, group: &Group, dimensions: &BTreeSet<Dimension>) -> Vec<String> {
        let Some(file) = self.sources.get(&group.file) else { return Vec::new() };
        let module = group.file.trim_end_matches(".py").replace('/', ".");
        let clues = dimensions.iter().flat_map(|one| file.clues(*one, group, &module, &group.file));
        clues.take(MOST_CLUES).map(|clue| clue.to_string()).collect()
    }

    pub(super) fn world(&self, world: &World) -> Result<WorldSetting> {
        let Prepared { built, conditions, setting, folder, .. } = self.prepared;
        WorldSetting::new(world, conditions, setting, &built.env, folder)
    }

    /// How many attempts were made in all, and how many could not be made.
    pub(super) fn made(&self) -> usize {
        let attempts = (0..self.prepared.collected.groups.len()).map(|group| self.screened.of(group).len());
        attempts.sum::<usize>() + self.unavailable.len()
    }

    pub(super) fn verdicts(&self, depth: Depth) -> Vec<Verdict> {
        (0..self.prepared.collected.groups.len()).map(|index| self.verdict(index, depth)).collect()
    }

    pub(super) fn verdict(&self, index: usize, depth: Depth) -> Verdict {
        let group = &self.prepared.collected.groups[index];
        let first_only = |round: u32| depth == Depth::All || FIRST_ROUNDS.contains(&round);
        let made = self.considered(index, depth);
        let fork = base_attempts(&made);
        if let Some(row) = self.unavailable.get(&index).filter(|row| first_only(row.round)) {
            let (cause, summary) = if fork.is_empty() {
                (Cause::CollectionError, "cannot be run when its file is collected alone")
            } else {
                (
                    Cause::NondeterministicOutcome,
                    "its file could be collected in one attempt and not in another",
                )
            };
            let evidence = Evidence {
                summary: summary.to_owned(),
                seen: Vec::new(),
                excerpt: collect::tail(&row.text, 40),
                command: group.entry_command(),
            };
            return Verdict::Dropped { cause, evidence };
        }
        let verdict = verdict::judge(group, &fork, self.partial);
        if !verdict.is_kept() {
            return verdict;
        }
        match attribution::next(
            &Seen::new(made.iter().copied()),
            &self.prepared.conditions.covered,
            depth.seeds(),
        ) {
            Step::Unsteady(one, other) => {
                return verdict::unsteady(group, one, other, self.replay(group, one, 10));
            }
            Step::DependsOn { dimensions, base, other } => {
                let clues = self.clues(group, &dimensions);
                return verdict::depends(
                    group,
                    &dimensions,
                    (base, other),
                    &clues,
                    self.replay(group, other, 1),
                );
            }
            // What is still to be run was not asked for: this group's attempts in the base world decide.
            Step::Agrees | Step::Run { .. } => {}
        }
        let differs = |attempt: &&&Attempt| attempt.method == Method::Cold && !cold::agrees(fork[0], attempt);
        match made.iter().find(differs) {
            Some(cold) if depth == Depth::All => verdict::cold_differs(group, fork[0], cold),
            _ => verdict,
        }
    }
}

/// Attempts in the fork tree, in the base world.
fn base_attempts<'a>(made: &[&'a Attempt]) -> Vec<&'a Attempt> {
    let base = made.iter().filter(|attempt| attempt.method == Method::Fork && attempt.is_base());
    base.copied().collect()
}

pub(super) fn parity(bench: &Bench<'_>) -> Parity {
    let mut parity = Parity::default();
    for (index, group) in bench.prepared.collected.groups.iter().enumerate() {
        let made = bench.screened.of(index);
        let fork = made.iter().find(|attempt| attempt.method == Method::Fork && attempt.is_base());
        let mut colds = made.iter().filter(|attempt| attempt.method == Method::Cold).peekable();
        let (Some(fork), Some(_)) = (fork, colds.peek()) else { continue };
        parity.compared += 1;
        if let Some(cold) = colds.find(|cold| !cold::agrees(fork, cold)) {
            parity.differing.push(ParityDifference {
                group_id: group.group_id.clone(),
                fork: verdict::describe(fork),
                cold: verdict::describe(cold),
            });
        }
    }
    parity
}
