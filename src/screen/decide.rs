//! From the attempts of a group to its verdict, and to the attempts that it still needs. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::attribution::{self, AttemptsByWorld, CONFIRMATIONS, CONFIRMING_ROUND, Step};
use super::considered::{Depth, base_attempts, considered};
use super::verdict;
use crate::attempt::cold;
use crate::record::collected::Group;
use crate::record::outcome::{Attempt, Compare, Method};
use crate::record::verdict::{Cause, Dimension, Evidence, Verdict};
use crate::record::world::World;
use crate::text::tail;

/// What the configuration asks for, and what the machine can vary.
#[derive(Debug, Clone)]
pub(crate) struct ScreenPolicy {
    /// Attempts of what is to be published.
    pub attempts: u32,
    pub cold_runs: u32,
    /// Whether a group with some failing cases may be kept.
    pub partial: bool,
    /// How much of what attempts show must agree.
    pub compare: Compare,
    /// Dimensions that the machine can vary.
    pub covered: BTreeSet<Dimension>,
}

/// A group that could not be run when its file was collected alone.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Unavailable {
    pub group_id: String,
    /// Round in which it was seen.
    pub round: u32,
    pub text: String,
}

/// What is known about a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub group: &'a Group,
    pub attempts: &'a [Attempt],
    pub unavailable: Option<&'a Unavailable>,
}

/// What evidence says beside what was seen.
pub(crate) trait Explain {
    /// The command that runs a group again in the world of an attempt.
    fn replay(&self, group: &Group, attempt: &Attempt, times: u32) -> String;

    /// What in the source of a test looks as if it depended on these dimensions.
    fn clues(&self, group: &Group, dimensions: &BTreeSet<Dimension>) -> Vec<String>;
}

impl ScreenPolicy {
    /// The attempts that count.
    pub(crate) fn considered<'a>(&self, made: &'a [Attempt], depth: Depth) -> Vec<&'a Attempt> {
        considered(made, depth, self.attempts, self.cold_runs)
    }

    fn judge(&self, group: &Group, attempts: &[&Attempt]) -> Verdict {
        verdict::judge(group, attempts, self.partial, self.compare)
    }

    /// The attempts that a group still needs, how many in each of which worlds: one that passes in the base world goes through
    /// others, one that fails is made to show that it always does.
    pub(crate) fn next_step(&self, known: Known<'_>, depth: Depth) -> Option<BTreeMap<World, u32>> {
        self.step_after(known, self.considered(known.attempts, depth), depth)
    }

    /// The further hash seeds that are still to be made of a group that is kept after the first rounds, whatever further
    /// rounds show: they are made at the same time.
    pub(crate) fn further_seeds(&self, known: Known<'_>) -> BTreeMap<World, u32> {
        let first = self.considered(known.attempts, Depth::First);
        let mut wanted = self.step_after(known, first, Depth::All).unwrap_or_default();
        let is_made = |world: &World| known.attempts.iter().any(|attempt| attempt.world == *world);
        wanted.retain(|world, _| matches!(world, World::Seed(_)) && !is_made(world));
        wanted
    }

    fn step_after(
        &self,
        known: Known<'_>,
        made: Vec<&Attempt>,
        depth: Depth,
    ) -> Option<BTreeMap<World, u32>> {
        // Of a build that was stopped while the base world confirmed, all of that is made before it counts.
        let confirms = |attempt: &&&Attempt| attempt.is_base() && attempt.round == CONFIRMING_ROUND;
        let is_confirmed = made.iter().filter(confirms).count() >= CONFIRMATIONS;
        let mut base = base_attempts(&made);
        base.retain(|attempt| is_confirmed || attempt.round != CONFIRMING_ROUND);
        if known.unavailable.is_some() {
            return None;
        }
        let verdict = self.judge(known.group, &base);
        if !verdict.is_kept() {
            // Two attempts that fail may be a coin's.
            let may_be_chance =
                matches!(verdict.cause(), Some(Cause::Fails | Cause::Errors | Cause::ExitsWith))
                    && !is_confirmed;
            return may_be_chance.then(|| {
                let confirming = made.iter().filter(confirms).count();
                BTreeMap::from([(World::Base, (CONFIRMATIONS - confirming) as u32)])
            });
        }
        match attribution::next(&AttemptsByWorld::new(made, self.compare), &self.covered, depth.seeds()) {
            Step::Run(wanted) => Some(wanted),
            Step::Agrees | Step::Unsteady(..) | Step::DependsOn { .. } => None,
        }
    }

    /// The verdict after the attempts so far.
    pub(crate) fn decide(&self, known: Known<'_>, depth: Depth, explain: &impl Explain) -> Verdict {
        let Known { group, .. } = known;
        let made = self.considered(known.attempts, depth);
        let fork = base_attempts(&made);
        if let Some(row) = known.unavailable.filter(|row| depth.includes(row.round)) {
            return unavailable(group, row, fork.is_empty());
        }
        let verdict = self.judge(group, &fork);
        if !verdict.is_kept() {
            return shown_again(verdict, group, fork.first().copied(), explain);
        }
        let by_world = AttemptsByWorld::new(made.iter().copied(), self.compare);
        match attribution::next(&by_world, &self.covered, depth.seeds()) {
            Step::Unsteady(one, other) => {
                return verdict::unsteady(group, one, other, explain.replay(group, one, AGAIN));
            }
            Step::DependsOn { dimensions, base, other } => {
                let clues = explain.clues(group, &dimensions);
                let replay = explain.replay(group, other, 1);
                return verdict::depends(group, &dimensions, (base, other), &clues, replay);
            }
            // What is still to be run was not asked for: this group's attempts in the base world decide.
            Step::Agrees | Step::Run(_) => {}
        }
        let differs = |attempt: &&&Attempt| {
            attempt.method == Method::Cold && !cold::agrees(fork[0], attempt, self.compare)
        };
        match made.iter().find(differs) {
            Some(cold) if depth == Depth::All => verdict::cold_differs(group, fork[0], cold),
            _ => verdict,
        }
    }
}

/// How often a group is run again whose attempts in one world differ.
const AGAIN: u32 = 10;

/// A verdict of the base world, with the command that makes such attempts again: outside of it the machine is another one.
fn shown_again(
    mut verdict: Verdict,
    group: &Group,
    first: Option<&Attempt>,
    explain: &impl Explain,
) -> Verdict {
    if let (Verdict::Dropped { cause, evidence }, Some(first)) = (&mut verdict, first) {
        let differs = matches!(cause, Cause::NondeterministicOutcome | Cause::NondeterministicOutput);
        evidence.command = explain.replay(group, first, if differs { AGAIN } else { 1 });
    }
    verdict
}

fn unavailable(group: &Group, row: &Unavailable, never_ran: bool) -> Verdict {
    let (cause, summary) = if never_ran {
        (Cause::CollectionError, "cannot be run when its file is collected alone")
    } else {
        (Cause::NondeterministicOutcome, "its file could be collected in one attempt and not in another")
    };
    let evidence = Evidence {
        summary: summary.to_owned(),
        seen: Vec::new(),
        excerpt: tail(&row.text, 40),
        command: group.command().line(),
    };
    Verdict::Dropped { cause, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::{Exit, TimeScope};
    use crate::screen::attribution::SEEDS;
    use crate::testing::attempts::{Table, group};

    struct Plain;

    impl Explain for Plain {
        fn replay(&self, _: &Group, attempt: &Attempt, times: u32) -> String {
            format!("replay {} times {times}", attempt.world)
        }

        fn clues(&self, _: &Group, dimensions: &BTreeSet<Dimension>) -> Vec<String> {
            dimensions.iter().map(|one| format!("clue of {}", one.as_str())).collect()
        }
    }

    fn policy(covered: &[Dimension]) -> ScreenPolicy {
        ScreenPolicy {
            attempts: 4,
            cold_runs: 1,
            partial: false,
            compare: Compare::Output,
            covered: covered.iter().copied().collect(),
        }
    }

    #[test]
    fn what_confirms_in_the_base_world_counts_once_all_of_it_was_made() {
        let (policy, group) = (policy(&[Dimension::Home]), group());
        let home = World::one(Dimension::Home);
        let differs = || {
            let rounds = Table::new().base(0, "a").base(1, "a");
            rounds.world(&World::Everything, "b").world(&World::Everything, "b")
        };
        let wanted = |made: &[Attempt]| {
            let known = Known { group: &group, attempts: made, unavailable: None };
            policy.next_step(known, Depth::First)
        };
        let stopped = differs().base(CONFIRMING_ROUND, "c");
        assert_eq!(wanted(&stopped.made()), Some([(World::Base, 2), (home, 1)].into()));
        let whole = (0..CONFIRMATIONS).fold(differs(), |table, _| table.base(CONFIRMING_ROUND, "c"));
        assert_eq!(wanted(&whole.made()), None, "its output wavers");
    }

    fn cause(policy: &ScreenPolicy, made: &[Attempt], depth: Depth) -> Option<String> {
        let group = group();
        let known = Known { group: &group, attempts: made, unavailable: None };
        policy.decide(known, depth, &Plain).cause().map(ToString::to_string)
    }

    /// Prints another time wherever the clock differs, as often as an attribution asks.
    fn clock_shows(mut table: Table, everything: &World, clock: &World) -> Table {
        for _ in 0..10 {
            table = table.world(everything, "t").world(clock, "t").base(CONFIRMING_ROUND, "a");
        }
        table
    }

    #[test]
    fn a_build_that_was_stopped_makes_the_seeds_that_were_made_beside_rounds_which_disagree() {
        let policy = policy(&[Dimension::HashSeed]);
        let group = group();
        let seeds = |made: &[Attempt]| {
            let known = Known { group: &group, attempts: made, unavailable: None };
            policy.further_seeds(known).into_keys().map(|world| world.to_string()).collect::<Vec<_>>()
        };
        let first = || Table::new().base(0, "a").base(1, "a").world(&World::Everything, "a");
        let all: Vec<String> = (1..=SEEDS).map(|seed| World::Seed(seed).to_string()).collect();
        assert_eq!(seeds(&first().made()), all);
        let disagree = || first().base(2, "a").base(3, "b").world(&World::Seed(2), "c");
        let known = Known { group: &group, attempts: &disagree().made(), unavailable: None };
        assert_eq!(policy.next_step(known, Depth::All), None, "nothing more is needed for its verdict");
        let others: Vec<String> = [1, 3, 4].map(|seed| World::Seed(seed).to_string()).into();
        assert_eq!(seeds(&disagree().made()), others);
        let made = (1..=SEEDS).fold(first(), |table, seed| table.world(&World::Seed(seed), "a"));
        assert_eq!(seeds(&made.made()), [""; 0]);
        assert_eq!(seeds(&Table::new().failing(0).failing(1).made()), [""; 0]);
    }

    /// Attempts in words → verdict after the first rounds, and after all.
    #[test]
    fn verdicts_follow_from_tables_of_attempts() {
        let clock = World::one(Dimension::Clock);
        let everything = World::Everything;
        let steady = || Table::new().base(0, "a").base(1, "a");
        let late = "nondeterministic-output";
        let never = Exit::TimedOut { scope: TimeScope::Group, case: None };
        type Row<'a> = (&'a str, Vec<Attempt>, Option<&'a str>, Option<&'a str>);
        let rows: Vec<Row<'_>> = vec![
            ("nothing was made", Vec::new(), Some("collection-error"), Some("collection-error")),
            ("steady", steady().base(2, "a").base(3, "a").cold("a").made(), None, None),
            ("fails", Table::new().failing(0).failing(1).made(), Some("fails"), Some("fails")),
            (
                "fails once",
                Table::new().base(0, "a").failing(1).made(),
                Some("nondeterministic-outcome"),
                Some("nondeterministic-outcome"),
            ),
            (
                "says something else once",
                Table::new().base(0, "a").base(1, "b").made(),
                Some(late),
                Some(late),
            ),
            ("says something else late", steady().base(2, "b").made(), None, Some(late)),
            (
                "a cold run fails",
                steady().base(2, "a").base(3, "a").cold_failing().made(),
                None,
                Some("nondeterministic-outcome"),
            ),
            (
                "leaves with another exit code when all is over",
                steady().base(2, "a").base(3, "a").cold_ending(Exit::Exited { code: 3 }).made(),
                None,
                Some("crashes"),
            ),
            (
                "is killed when all is over",
                steady().base(2, "a").base(3, "a").cold_ending(Exit::Signaled { signal: 9 }).made(),
                None,
                Some("crashes"),
            ),
            (
                "a thread never ends",
                steady().base(2, "a").base(3, "a").cold_ending(never).made(),
                None,
                Some("times-out"),
            ),
            (
                "the clock shows, again and again",
                clock_shows(steady(), &everything, &clock).made(),
                Some("depends-on-clock"),
                Some("depends-on-clock"),
            ),
        ];
        let policy = policy(&[Dimension::Clock]);
        for (name, made, first, all) in rows {
            assert_eq!(cause(&policy, &made, Depth::First).as_deref(), first, "{name}, first rounds");
            assert_eq!(cause(&policy, &made, Depth::All).as_deref(), all, "{name}, all");
        }
    }

    #[test]
    fn output_that_is_not_compared_drops_nothing() {
        let outcomes_only = ScreenPolicy { compare: Compare::Outcome, ..policy(&[Dimension::Clock]) };
        let wavering = Table::new().base(0, "a").base(1, "b").base(2, "c").base(3, "d").cold("a");
        let made = wavering.clone().world(&World::Everything, "e").made();
        assert_eq!(cause(&outcomes_only, &made, Depth::All), None);
        assert_eq!(
            cause(&policy(&[Dimension::Clock]), &made, Depth::All).as_deref(),
            Some("nondeterministic-output")
        );
        let failing = Table::new().base(0, "a").failing(1).made();
        assert_eq!(
            cause(&outcomes_only, &failing, Depth::All).as_deref(),
            Some("nondeterministic-outcome"),
            "outcomes are always compared"
        );
    }

    #[test]
    fn evidence_tells_how_to_see_it_again() {
        let made = Table::new().base(0, "a").base(1, "a").base(2, "b").made();
        let group = group();
        let known = Known { group: &group, attempts: &made, unavailable: None };
        let Verdict::Dropped { evidence, .. } = policy(&[]).decide(known, Depth::All, &Plain) else {
            panic!("is dropped")
        };
        assert!(
            evidence.command.contains(&group.command().line()) || evidence.command.contains("replay base")
        );
    }

    #[test]
    fn what_cannot_be_collected_alone_is_out_and_says_whether_it_ever_ran() {
        let row = |round| Unavailable { group_id: group().group_id, round, text: "boom".to_owned() };
        let decide = |made: &[Attempt], row: &Unavailable, depth| {
            let group = group();
            let known = Known { group: &group, attempts: made, unavailable: Some(row) };
            policy(&[]).decide(known, depth, &Plain).cause().map(ToString::to_string)
        };
        let made = Table::new().base(0, "a").base(1, "a").made();
        assert_eq!(decide(&[], &row(0), Depth::First).as_deref(), Some("collection-error"));
        assert_eq!(decide(&made, &row(1), Depth::First).as_deref(), Some("nondeterministic-outcome"));
        assert_eq!(decide(&made, &row(2), Depth::First), None, "seen in a later round");
        assert_eq!(decide(&made, &row(2), Depth::All).as_deref(), Some("nondeterministic-outcome"));
    }

    #[test]
    fn what_fails_twice_has_to_fail_again_to_be_out_for_it() {
        let failing = || Table::new().failing(0).failing(1);
        let next = |made: &[Attempt]| {
            let group = group();
            policy(&[Dimension::Clock])
                .next_step(Known { group: &group, attempts: made, unavailable: None }, Depth::First)
        };
        assert_eq!(next(&failing().failing(CONFIRMING_ROUND).made()), Some([(World::Base, 2)].into()));
        let again = (0..CONFIRMATIONS).fold(failing(), |table, _| table.failing(CONFIRMING_ROUND)).made();
        assert_eq!(next(&again), None);
        assert_eq!(cause(&policy(&[]), &again, Depth::First).as_deref(), Some("fails"));
        let by_chance = failing().base(CONFIRMING_ROUND, "a").made();
        assert_eq!(
            cause(&policy(&[]), &by_chance, Depth::First).as_deref(),
            Some("nondeterministic-outcome")
        );
    }

    #[test]
    fn other_worlds_are_asked_for_only_where_the_base_world_passes() {
        let next = |made: &[Attempt], unavailable: Option<&Unavailable>, depth| {
            let group = group();
            policy(&[Dimension::Clock]).next_step(Known { group: &group, attempts: made, unavailable }, depth)
        };
        let steady = Table::new().base(0, "a").base(1, "a");
        let row = Unavailable { group_id: group().group_id, round: 0, text: String::new() };
        assert_eq!(next(&[], None, Depth::First), None, "nothing ran");
        let again = Some([(World::Base, CONFIRMATIONS as u32)].into());
        assert_eq!(next(&Table::new().failing(0).failing(1).made(), None, Depth::First), again, "fails");
        let made = steady.clone().made();
        assert_eq!(next(&made, Some(&row), Depth::First), None, "cannot be collected alone");
        assert_eq!(next(&made, None, Depth::First), Some([(World::Everything, 1)].into()));
        let agrees = steady.clone().world(&World::Everything, "a").made();
        assert_eq!(next(&agrees, None, Depth::First), None, "all agree");
        let mut seeds: BTreeMap<World, u32> = (1..=SEEDS).map(|seed| (World::Seed(seed), 1)).collect();
        let wanted = Some(seeds.clone());
        assert_eq!(next(&agrees, None, Depth::All), wanted, "what is published goes through further seeds");
        seeds.remove(&World::Seed(2));
        let known = steady.world(&World::Everything, "a").world(&World::Seed(2), "b").made();
        let wanted = Some(seeds);
        assert_eq!(next(&known, None, Depth::All), wanted, "those that are missing, even where one differs");
    }
}
