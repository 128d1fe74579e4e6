//! Makes the attempts that decisions ask for and writes them down.

#[cfg(test)]
mod tests;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::attribution::CONFIRMING_ROUND;
use super::considered::Depth;
use super::decide::{Explain, Known, ScreenPolicy, Unavailable};
use super::ruling::RuledVerdict;
use super::{FIRST_ROUNDS, History, golden, verdict};
use crate::attempt::cold;
use crate::attempt::lab::{Lab, Made, Wanted};
use crate::attempt::world::WorldSetting;
use crate::error::Result;
use crate::progress::Progress;
use crate::python_source::sources::Sources;
use crate::record::collected::{Collected, Group};
use crate::record::evidence::{AttemptFacts, GroupEvidence, OnTrial, Parity, ParityDifference};
use crate::record::flag::STARTS_THREADS;
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::outcome::{Attempt, Exit, Method};
use crate::record::trace::Traced;
use crate::record::verdict::{Dimension, Verdict};
use crate::record::world::World;
use crate::store::journal::{self, Journal};

/// Journals of a screening.
const ATTEMPTS: &str = "attempts";
const UNAVAILABLE: &str = "unavailable";
/// How many clues an evidence has at most.
const MOST_CLUES: usize = 8;

/// What is screened.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub slug: &'a RepoSlug,
    pub lab: &'a Lab,
    pub collected: &'a Collected,
    pub progress: &'a Progress,
    /// Attempts of the first round that were made before, by index of the group.
    pub tried: &'a BTreeMap<usize, Attempt>,
    /// What `gistmill replay` needs to find the build's configuration again.
    pub replay_options: &'a str,
}

/// Attempts that are missing: how many of which groups in one round of a world.
struct Part {
    world: WorldSetting,
    round: u32,
    groups: Vec<(usize, u32)>,
}

/// What is screened, and what was found so far.
pub(crate) struct Screening<'a> {
    subject: Subject<'a>,
    policy: ScreenPolicy,
    history: History,
    /// By group and round.
    unavailable: BTreeMap<(usize, u32), Unavailable>,
    unavailable_journal: Journal,
    /// The test files.
    pub sources: Sources,
}

impl<'a> Screening<'a> {
    /// Reads back from `folder` what an earlier build left.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub(crate) fn open(subject: Subject<'a>, policy: ScreenPolicy, folder: &Path) -> Result<Self> {
        let groups = &subject.collected.groups;
        let history = History::open(&folder.join(ATTEMPTS), groups)?;
        let (unavailable_journal, rows) = Journal::open::<Unavailable>(&folder.join(UNAVAILABLE))?;
        let index = |row: &Unavailable| groups.iter().position(|group| group.group_id == row.group_id);
        let unavailable = rows.into_iter().filter_map(|row| Some(((index(&row)?, row.round), row))).collect();
        let sources = Sources::of(&subject.lab.setting.tree);
        Ok(Screening { subject, policy, history, unavailable, unavailable_journal, sources })
    }

    fn groups(&self) -> &'a [Group] {
        &self.subject.collected.groups
    }

    /// Indices of all groups.
    pub(crate) fn all(&self) -> Vec<usize> {
        (0..self.groups().len()).collect()
    }

    /// All attempts so far.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Whether a group could not be run when its file was collected alone.
    pub(crate) fn is_unavailable(&self, group: usize) -> bool {
        first_unavailable(&self.unavailable, group).is_some()
    }

    /// Whether a group has attempts that only what is to be published gets.
    pub(crate) fn is_deepened(&self, group: usize) -> bool {
        let first =
            |attempt: &Attempt| FIRST_ROUNDS.contains(&attempt.round) || attempt.round == CONFIRMING_ROUND;
        let is_deep = |attempt: &Attempt| {
            matches!(attempt.world, World::Seed(_)) || attempt.is_reference() && !first(attempt)
        };
        self.history.of(group).iter().any(is_deep)
    }

    /// How many attempts were made in all, and how many could not be made.
    pub(crate) fn made(&self) -> usize {
        self.all().into_iter().map(|group| self.history.of(group).len()).sum::<usize>()
            + self.unavailable.len()
    }

    /// One attempt of every one of these groups in each of the first rounds.
    ///
    /// # Errors
    /// Those of [`Lab::make`].
    pub(crate) fn first_rounds(&mut self, groups: &[usize]) -> Result<()> {
        for (group, attempt) in self.subject.tried {
            if groups.binary_search(group).is_ok() && self.history.of(*group).is_empty() {
                self.history.record(*group, attempt.clone())?;
            }
        }
        let parts = self.missing(groups, FIRST_ROUNDS.map(|round| (round, 1)));
        self.make("screen", &parts, None)
    }

    /// What every group gets: the first rounds, and what passes goes through the other worlds.
    ///
    /// # Errors
    /// Those of [`Lab::make`].
    pub(crate) fn first_of_all(&mut self) -> Result<()> {
        let groups = self.all();
        self.first_rounds(&groups)?;
        self.other_worlds(&groups, Depth::First)
    }

    /// Takes over the attempts that another screening of the same groups left in `folder`, of groups that have none here.
    /// Gives how many.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub(crate) fn take_over(&mut self, folder: &Path) -> Result<usize> {
        let groups = self.groups();
        for row in journal::read::<Unavailable>(&folder.join(UNAVAILABLE))? {
            let index = groups.iter().position(|group| group.group_id == row.group_id);
            let Some(index) = index else { continue };
            if let Entry::Vacant(place) = self.unavailable.entry((index, row.round)) {
                self.unavailable_journal.append(&row)?;
                place.insert(row);
            }
        }
        self.unavailable_journal.sync()?;
        self.history.take_over(&folder.join(ATTEMPTS))
    }

    /// All attempts that what is to be published needs, and the worlds but those under load.
    ///
    /// # Errors
    /// Those of [`Lab::make`].
    pub(crate) fn deepen(&mut self, groups: &[usize]) -> Result<()> {
        let mut parts = self.missing(groups, super::rounds(self.policy.attempts));
        parts.extend(self.parts(groups, |known| self.policy.further_seeds(known))?);
        self.make("attempts", &parts, None)?;
        self.idle_worlds(groups, Depth::All)
    }

    /// What passes in the base world runs where everything differs; what differs there, until the cause has a name.
    ///
    /// # Errors
    /// Those of [`Lab::make`].
    pub(crate) fn other_worlds(&mut self, groups: &[usize], depth: Depth) -> Result<()> {
        let mut open = self.undecided(groups, depth);
        while !open.is_empty() {
            self.loaded_worlds(&open, depth)?;
            self.idle_worlds(&open, depth)?;
            open = self.undecided(&open, depth);
        }
        Ok(())
    }

    /// Those of these groups that some world is still to be made for.
    pub(crate) fn undecided(&self, groups: &[usize], depth: Depth) -> Vec<usize> {
        let is_open = |index: &usize| self.policy.next_step(self.known(*index), depth).is_some();
        groups.iter().copied().filter(is_open).collect()
    }

    /// Makes what is wanted in worlds under load, one by one: load is all that a machine under load has to do.
    ///
    /// # Errors
    /// Those of [`Lab::make`].
    pub(crate) fn loaded_worlds(&mut self, groups: &[usize], depth: Depth) -> Result<()> {
        while let Some(part) = self.wanted(groups, depth)?.into_iter().find(|part| part.world.loaded) {
            self.worlds(vec![part], depth)?;
        }
        Ok(())
    }

    /// Makes what is wanted in the other worlds, all that is known to be wanted at once, and what it turns out to want in
    /// worlds that differ in one dimension. Other attempts may be made meanwhile.
    ///
    /// # Errors
    /// Those of [`Lab::make`].
    pub(crate) fn idle_worlds(&mut self, groups: &[usize], depth: Depth) -> Result<()> {
        loop {
            let mut parts = self.wanted(groups, depth)?;
            parts.retain(|part| !part.world.loaded);
            if parts.is_empty() {
                return Ok(());
            }
            let likely = self.policy.covered.iter().map(|dimension| World::one(*dimension));
            for world in likely.chain([World::Base]) {
                if parts.iter().all(|part| part.world.world != world) {
                    parts.push(self.part(world, Vec::new())?);
                }
            }
            parts.retain(|part| !part.world.loaded);
            self.worlds(parts, depth)?;
        }
    }

    /// What the next decisions about these groups want.
    fn wanted(&self, groups: &[usize], depth: Depth) -> Result<Vec<Part>> {
        self.parts(groups, |known| self.policy.next_step(known, depth).unwrap_or_default())
    }

    /// What each of these groups wants, by world.
    fn parts(
        &self,
        groups: &[usize],
        wants: impl Fn(Known<'_>) -> BTreeMap<World, u32>,
    ) -> Result<Vec<Part>> {
        let mut wanted: BTreeMap<World, Vec<(usize, u32)>> = BTreeMap::new();
        for index in groups {
            for (world, missing) in wants(self.known(*index)) {
                wanted.entry(world).or_default().push((*index, missing));
            }
        }
        wanted.into_iter().map(|(world, groups)| self.part(world, groups)).collect()
    }

    fn part(&self, world: World, groups: Vec<(usize, u32)>) -> Result<Part> {
        let round = if world == World::Base { CONFIRMING_ROUND } else { 0 };
        Ok(Part { world: self.subject.lab.world(&world)?, round, groups })
    }

    fn worlds(&mut self, parts: Vec<Part>, depth: Depth) -> Result<()> {
        let wanted = parts.iter().filter(|part| !part.groups.is_empty());
        let names: Vec<String> = wanted.map(|part| part.world.world.to_string()).collect();
        let what = if names.len() == 1 { "world" } else { "worlds" };
        self.make(&format!("{what} {}", names.join(", ")), &parts, Some(depth))
    }

    /// The attempts of these rounds in the base world that are still missing.
    fn missing(&self, groups: &[usize], rounds: impl IntoIterator<Item = (u32, u32)>) -> Vec<Part> {
        let of_round = |(round, count): (u32, u32)| {
            let missing = |group: &usize| {
                let made = self.history.count(*group, Method::Fork, round);
                (!self.unavailable.contains_key(&(*group, round)) && made < count)
                    .then(|| (*group, count - made))
            };
            let groups: Vec<(usize, u32)> = groups.iter().filter_map(missing).collect();
            (!groups.is_empty()).then(|| Part { world: self.subject.lab.base(), round, groups })
        };
        rounds.into_iter().filter_map(of_round).collect()
    }

    /// Makes attempts and records them. With a depth, a group of which all that was asked for is made goes on with its next
    /// step at once, where these are the worlds of that step.
    fn make<'b>(&mut self, name: &str, parts: &'b [Part], goes_on: Option<Depth>) -> Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        let counts = parts.iter().flat_map(|part| &part.groups).map(|(_, count)| u64::from(*count));
        let stage = self.subject.progress.stage(&self.title(name), counts.sum());
        let durations = self.history.durations();
        let (lab, all) = (self.subject.lab, self.groups());
        let of_part = |Part { world, round, groups }: &'b Part| Wanted {
            world,
            round: *round,
            groups,
            durations: &durations,
            patience: None,
        };
        let wanted: Vec<Wanted<'_>> = parts.iter().map(of_part).collect();
        let mut left: BTreeMap<usize, u32> = BTreeMap::new();
        for (group, count) in parts.iter().flat_map(|part| &part.groups) {
            *left.entry(*group).or_default() += count;
        }
        let Screening { policy, history, unavailable, unavailable_journal, .. } = self;
        let result = lab.make_on(all, &wanted, |part, group, made| {
            let Part { world, round, .. } = &parts[part];
            let left = left.entry(group).or_default();
            *left -= made.attempts().min(*left);
            match made {
                Made::Attempt(attempt) => {
                    history.record(group, attempt)?;
                    stage.step();
                }
                Made::Unavailable { attempts, attempt, .. } if world.world != World::Base => {
                    for _ in 0..attempts {
                        history.record(group, attempt.clone())?;
                        stage.step();
                    }
                }
                Made::Unavailable { text, .. } => {
                    if let Entry::Vacant(place) = unavailable.entry((group, *round)) {
                        let row = Unavailable { group_id: all[group].group_id.clone(), round: *round, text };
                        unavailable_journal.append(&row)?;
                        place.insert(row);
                    }
                    stage.step();
                }
            }
            let unavailable = first_unavailable(unavailable, group);
            let known = Known { group: &all[group], attempts: history.of(group), unavailable };
            let next = goes_on.filter(|_| *left == 0).and_then(|depth| policy.next_step(known, depth));
            let place = |(world, count): (World, u32)| {
                parts.iter().position(|part| part.world.world == world).map(|at| (at, count))
            };
            let Some(more) = next.and_then(|next| next.into_iter().map(place).collect::<Option<Vec<_>>>())
            else {
                return Ok(Vec::new());
            };
            *left = more.iter().map(|(_, count)| count).sum();
            stage.more(u64::from(*left));
            Ok(more)
        });
        history.sync()?;
        unavailable_journal.sync()?;
        result
    }

    /// Cold runs of the literal entry command that are still missing of `runs` each.
    ///
    /// # Errors
    /// Those of [`Lab::cold`].
    pub(crate) fn cold(&mut self, groups: &[usize], runs: u32) -> Result<()> {
        for run in 1..=runs {
            let (all, lab) = (self.groups(), self.subject.lab);
            let missing: Vec<(usize, &Group)> = groups
                .iter()
                .filter(|group| self.history.count(**group, Method::Cold, 0) < run)
                .map(|group| (*group, &all[*group]))
                .collect();
            if missing.is_empty() {
                continue;
            }
            let stage = self.subject.progress.stage(&self.title("cold runs"), missing.len() as u64);
            let ends: Vec<bool> =
                (0..all.len()).map(|group| comes_to_its_end(self.history.of(group))).collect();
            let history = &mut self.history;
            let result = lab.cold(&missing, &|group| ends[group], |group, attempt| {
                stage.step();
                history.record(group, attempt)
            });
            self.history.sync()?;
            result?;
        }
        Ok(())
    }

    /// Cold runs that publishing asks for.
    ///
    /// # Errors
    /// Those of [`Lab::cold`].
    pub(crate) fn confirm(&mut self, groups: &[usize]) -> Result<()> {
        self.cold(groups, self.policy.cold_runs)
    }

    /// The verdict of every group, in the order of collection.
    pub(crate) fn verdicts(&self, depth: Depth) -> Vec<Verdict> {
        self.all().into_iter().map(|index| self.verdict(index, depth)).collect()
    }

    /// The verdict of one group.
    pub(crate) fn verdict(&self, index: usize, depth: Depth) -> Verdict {
        self.policy.decide(self.known(index), depth, self)
    }

    fn known(&self, index: usize) -> Known<'_> {
        Known {
            group: &self.groups()[index],
            attempts: self.history.of(index),
            unavailable: first_unavailable(&self.unavailable, index),
        }
    }

    /// What is proved about a group.
    pub(crate) fn evidence(
        &self,
        index: usize,
        depth: Depth,
        ruled: &RuledVerdict,
        (instance_id, traced): (InstanceId, Option<Traced>),
    ) -> GroupEvidence {
        let considered = self.policy.considered(self.history.of(index), depth);
        let mut group = self.groups()[index].clone();
        group.flags.extend(ruled.flags());
        if traced.as_ref().is_some_and(Traced::starts_threads) {
            group.flags.push(STARTS_THREADS.to_owned());
        }
        if ruled.verdict.is_kept() {
            group.flags.extend(golden::disagreements(&considered).map(str::to_owned));
        }
        GroupEvidence {
            slug: self.subject.slug.clone(),
            instance_id,
            agreeing: match (ruled.verdict.is_kept(), ruled.kept_by.is_empty()) {
                (false, _) => 0,
                (true, true) => considered.len().try_into().unwrap_or(u32::MAX),
                (true, false) => golden::agreeing(&considered, self.policy.compare),
            },
            trace_length_package: traced.as_ref().map(|traced| traced.totals.package_calls),
            traced,
            golden: golden::golden(&ruled.verdict, &considered, self.policy.compare),
            attempts: AttemptFacts::of(self.history.of(index)),
            verdict: ruled.verdict.clone(),
            group,
            on_trial: OnTrial::default(),
        }
    }

    /// How the fork tree and cold runs agree.
    pub(crate) fn parity(&self) -> Parity {
        let mut parity = Parity::default();
        for (index, group) in self.groups().iter().enumerate() {
            let made = self.history.of(index);
            let fork = made.iter().find(|attempt| attempt.is_reference());
            let mut colds = made.iter().filter(|attempt| attempt.method == Method::Cold).peekable();
            let (Some(fork), Some(_)) = (fork, colds.peek()) else { continue };
            parity.compared += 1;
            if let Some(cold) = colds.find(|cold| !cold::agrees(fork, cold, self.policy.compare)) {
                parity.differing.push(ParityDifference {
                    group_id: group.group_id.clone(),
                    fork: verdict::describe(fork),
                    cold: verdict::describe(cold),
                });
            }
        }
        parity
    }

    fn title(&self, what: &str) -> String {
        format!("{} {what}", self.subject.slug)
    }
}

fn first_unavailable(all: &BTreeMap<(usize, u32), Unavailable>, group: usize) -> Option<&Unavailable> {
    all.range((group, 0)..=(group, u32::MAX)).next().map(|(_, row)| row)
}

/// Whether all attempts in the base world of the fork tree came to their end.
fn comes_to_its_end(attempts: &[Attempt]) -> bool {
    let mut fork = attempts.iter().filter(|attempt| attempt.is_reference());
    fork.all(|attempt| attempt.exit == Exit::Finished)
}

impl Explain for Screening<'_> {
    fn replay(&self, group: &Group, attempt: &Attempt, times: u32) -> String {
        let times = if times > 1 { format!(" --times {times}") } else { String::new() };
        let group = crate::text::shell_quote(&group.group_id);
        format!("gistmill replay {group} --world {}{times}{}", attempt.world, self.subject.replay_options)
    }

    fn clues(&self, group: &Group, dimensions: &BTreeSet<Dimension>) -> Vec<String> {
        let Some(file) = self.sources.get(&group.file) else { return Vec::new() };
        let module = group.file.trim_end_matches(".py").replace('/', ".");
        let clues = dimensions.iter().flat_map(|one| file.clues(*one, group, &module, &group.file));
        clues.take(MOST_CLUES).map(|clue| clue.to_string()).collect()
    }
}
