//! Why does a group differ in other worlds? Attempts → the next attempts to make, or a conclusion. Pure: the same
//! attempts always lead to the same step, so a build that was stopped goes on where it was.
//!
//! A group that passed in the base world runs once where everything differs. Agreement there settles every dimension at
//! once. A difference must repeat; then each dimension is tried alone, and, where none explains it, dimensions are put
//! back one by one until no smaller set is left. The set that explains it is confirmed against the base world. A
//! difference that does not repeat is the test's own randomness and is never blamed on a dimension.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::outcome::{Attempt, Compare, Method};
use crate::record::verdict::Dimension;
use crate::record::world::World;

/// Attempts that must agree before a difference counts as repeatable.
const REPEATS: usize = 2;
/// Attempts in the world that explains a difference, all alike, and further ones in the base world.
pub(crate) const CONFIRMATIONS: usize = 3;
/// Further hash seeds for what is to be published: a set of two comes out in the same order under two seeds half of the
/// time, under six once in 32.
pub(crate) const SEEDS: u32 = 4;
/// Round of the base world's further attempts.
pub(crate) const CONFIRMING_ROUND: u32 = 4;

/// Dimensions in the order in which they are tried: the likeliest first.
const ORDER: [Dimension; 10] = [
    Dimension::TestFileLocation,
    Dimension::WorkingDirectory,
    Dimension::Home,
    Dimension::Clock,
    Dimension::HashSeed,
    Dimension::CheckoutPath,
    Dimension::Terminal,
    Dimension::TimeZone,
    Dimension::Locale,
    Dimension::Load,
];

/// What follows from the attempts so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step<'a> {
    /// It shows the same where everything differs.
    Agrees,
    /// So many more attempts in these worlds are needed.
    Run(BTreeMap<World, u32>),
    /// Two attempts in one and the same world differ, or a difference was seen that no smaller world repeats.
    Unsteady(&'a Attempt, &'a Attempt),
    /// It differs when exactly these dimensions do: an attempt in the base world, and one in the world that shows it.
    DependsOn { dimensions: BTreeSet<Dimension>, base: &'a Attempt, other: &'a Attempt },
}

/// Attempts in the fork tree of one group, by world.
#[derive(Debug, Default)]
pub(crate) struct AttemptsByWorld<'a> {
    by_world: BTreeMap<World, Vec<&'a Attempt>>,
    compare: Compare,
}

impl<'a> AttemptsByWorld<'a> {
    /// Sorts attempts by world; cold runs are left out. They differ where what `compare` names does.
    pub(crate) fn new(attempts: impl IntoIterator<Item = &'a Attempt>, compare: Compare) -> Self {
        let mut by_world: BTreeMap<World, Vec<&'a Attempt>> = BTreeMap::new();
        for attempt in attempts.into_iter().filter(|attempt| attempt.method == Method::Fork) {
            by_world.entry(attempt.world.clone()).or_default().push(attempt);
        }
        AttemptsByWorld { by_world, compare }
    }

    fn of(&self, world: &World) -> &[&'a Attempt] {
        self.by_world.get(world).map_or(&[], Vec::as_slice)
    }
}

/// The next step for a group whose attempts in the base world agree and pass. With `seeds`, a group that agrees where
/// everything differs goes through so many further hash seeds.
pub(crate) fn next<'a>(seen: &AttemptsByWorld<'a>, covered: &BTreeSet<Dimension>, seeds: u32) -> Step<'a> {
    match search(seen, covered, seeds) {
        Ok(step) | Err(step) => step,
    }
}

/// `Err` is a step that ends the search early.
fn search<'a>(
    seen: &AttemptsByWorld<'a>,
    covered: &BTreeSet<Dimension>,
    seeds: u32,
) -> Result<Step<'a>, Step<'a>> {
    let base = *seen.of(&World::Base).first().ok_or(Step::Agrees)?;
    let reference = base.shown(seen.compare);
    let differs = |attempt: &Attempt| attempt.shown(seen.compare) != reference;
    if !differs(first(seen, &World::Everything)?) {
        let missing = (1..=seeds).map(World::Seed).filter(|world| seen.of(world).is_empty());
        let missing: BTreeMap<World, u32> = missing.map(|world| (world, 1)).collect();
        if !missing.is_empty() {
            return Ok(Step::Run(missing));
        }
        for world in (1..=seeds).map(World::Seed) {
            if differs(first(seen, &world)?) {
                // By now the base world has all the attempts that publishing asks for.
                let other = repeatable(seen, &world, CONFIRMATIONS)?;
                repeatable(seen, &World::Base, 1)?;
                let dimensions = [Dimension::HashSeed].into();
                return Ok(Step::DependsOn { dimensions, base, other });
            }
        }
        return Ok(Step::Agrees);
    }
    repeatable(seen, &World::Everything, REPEATS)?;
    let order: Vec<Dimension> = ORDER.into_iter().filter(|dimension| covered.contains(dimension)).collect();
    // Whatever the cause is, the base world has to confirm it: that may take as long as the world that is tried first.
    let likeliest = order.first().map(|dimension| (World::one(*dimension), 1));
    run_missing(seen, likeliest.into_iter().chain([(World::Base, CONFIRMATIONS)]))?;
    for dimension in &order {
        if differs(first(seen, &World::one(*dimension))?) {
            return confirmed(seen, base, &World::one(*dimension), [*dimension].into());
        }
    }
    // What differs by chance has one more occasion to show that before so many worlds are tried.
    repeatable(seen, &World::Everything, CONFIRMATIONS)?;
    let mut smallest: BTreeSet<Dimension> = covered.clone();
    for dimension in &order {
        let mut without = smallest.clone();
        without.remove(dimension);
        if !without.is_empty() && differs(first(seen, &World::of(without.clone()))?) {
            smallest = without;
        }
    }
    // Where nothing could be left out, the world in which everything differs is the one that was seen to differ.
    let world = if smallest == *covered { World::Everything } else { World::of(smallest.clone()) };
    confirmed(seen, base, &world, smallest)
}

/// The first attempt in a world, or the step that makes it.
fn first<'a>(seen: &AttemptsByWorld<'a>, world: &World) -> Result<&'a Attempt, Step<'a>> {
    let none = || Step::Run([(world.clone(), 1)].into());
    seen.of(world).first().copied().ok_or_else(none)
}

/// Makes sure that `times` attempts in a world agree. They are all made before that is looked at: a build that was stopped
/// between them makes what any other one makes.
fn repeatable<'a>(seen: &AttemptsByWorld<'a>, world: &World, times: usize) -> Result<&'a Attempt, Step<'a>> {
    let one = first(seen, world)?;
    let attempts = seen.of(world);
    if attempts.len() < times {
        return Err(Step::Run([(world.clone(), missing(times, attempts.len()))].into()));
    }
    let hash = one.shown(seen.compare);
    match attempts.iter().find(|attempt| attempt.shown(seen.compare) != hash) {
        Some(other) => Err(Step::Unsteady(one, other)),
        None => Ok(one),
    }
}

/// The step that makes what is missing of so many attempts in each of these worlds; of the base world those that confirm count.
fn run_missing<'a>(
    seen: &AttemptsByWorld<'a>,
    wanted: impl IntoIterator<Item = (World, usize)>,
) -> Result<(), Step<'a>> {
    let counts = |attempt: &&&Attempt| !attempt.is_base() || attempt.round == CONFIRMING_ROUND;
    let lacks = |(world, wanted): (World, usize)| {
        let made = seen.of(&world).iter().filter(counts).count();
        (made < wanted).then(|| (world, missing(wanted, made)))
    };
    let wanted: BTreeMap<World, u32> = wanted.into_iter().filter_map(lacks).collect();
    if wanted.is_empty() { Ok(()) } else { Err(Step::Run(wanted)) }
}

fn missing(wanted: usize, made: usize) -> u32 {
    u32::try_from(wanted.saturating_sub(made)).unwrap_or(u32::MAX)
}

fn confirmed<'a>(
    seen: &AttemptsByWorld<'a>,
    base: &'a Attempt,
    world: &World,
    dimensions: BTreeSet<Dimension>,
) -> Result<Step<'a>, Step<'a>> {
    run_missing(seen, [(world.clone(), CONFIRMATIONS), (World::Base, CONFIRMATIONS)])?;
    let other = repeatable(seen, world, CONFIRMATIONS)?;
    if other.shown(seen.compare) == base.shown(seen.compare) {
        return Err(Step::Unsteady(first(seen, &World::Everything)?, other));
    }
    repeatable(seen, &World::Base, 1)?;
    Ok(Step::DependsOn { dimensions, base, other })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::Exit;

    fn attempt(world: &World, round: u32, shown: &str) -> Attempt {
        Attempt {
            group_id: "t.py::test_a".into(),
            world: world.clone(),
            number: 0,
            method: Method::Fork,
            round,
            exit: Exit::Finished,
            cases: Vec::new(),
            connections: Vec::new(),
            leftover: 0,
            raw_output: shown.to_owned(),
            duration_ms: 1.0,
            processor_ms: 0.0,
            memory_bytes: None,
            noted_at: 0,
        }
    }

    fn all() -> BTreeSet<Dimension> {
        Dimension::ALL.into_iter().collect()
    }

    /// Follows the steps of a test that shows what `shows` says of a world and the number of the attempt there.
    fn follow(shows: impl Fn(&BTreeSet<Dimension>, usize) -> String) -> (String, usize) {
        follow_deep(0, |_, different, number| shows(different, number))
    }

    /// Follows the steps with so many further hash seeds; `shows` sees the world itself, too.
    fn follow_deep(
        seeds: u32,
        shows: impl Fn(&World, &BTreeSet<Dimension>, usize) -> String,
    ) -> (String, usize) {
        let shows =
            |different: &BTreeSet<Dimension>, number: usize, world: &World| shows(world, different, number);
        let mut made = vec![
            attempt(&World::Base, 0, &shows(&BTreeSet::new(), 0, &World::Base)),
            attempt(&World::Base, 1, &shows(&BTreeSet::new(), 1, &World::Base)),
        ];
        for _ in 0..100 {
            let wanted = match next(&AttemptsByWorld::new(&made, Compare::Output), &all(), seeds) {
                Step::Run(wanted) => wanted,
                Step::Agrees => return ("agrees".into(), made.len()),
                Step::Unsteady(..) => return ("unsteady".into(), made.len()),
                Step::DependsOn { dimensions, .. } => return (World::of(dimensions).to_string(), made.len()),
            };
            for (world, missing) in wanted {
                let missing = missing as usize;
                let different = match &world {
                    World::Base => BTreeSet::new(),
                    World::Everything => all(),
                    World::Only(dimensions) => dimensions.clone(),
                    World::Seed(_) => [Dimension::HashSeed].into(),
                };
                let round = if world == World::Base { CONFIRMING_ROUND } else { 0 };
                let before = made
                    .iter()
                    .filter(|one| one.world == world && (world != World::Base || one.round == round))
                    .count();
                assert!(missing > 0, "a step asks for what is there: {world}");
                for number in before..before + missing {
                    let number = if world == World::Base { number + 2 } else { number };
                    made.push(attempt(&world, round, &shows(&different, number, &world)));
                }
            }
        }
        panic!("no end");
    }

    #[test]
    fn a_test_that_shows_the_same_everywhere_costs_one_attempt() {
        assert_eq!(follow(|_, _| "same".into()), ("agrees".into(), 3));
    }

    #[test]
    fn every_single_dimension_is_found() {
        for dimension in Dimension::ALL {
            let found = follow(|different, _| different.contains(&dimension).to_string());
            assert_eq!(found.0, dimension.as_str());
        }
    }

    #[test]
    fn a_further_hash_seed_finds_what_the_first_one_missed() {
        let found = follow_deep(4, |world, _, _| (*world == World::Seed(3)).to_string());
        let made = "2 of the base world, 1 of each other, 2 more of the seed";
        assert_eq!(found, ("hash-seed".into(), 9), "{made}");
        assert_eq!(follow_deep(4, |_, _, _| "same".into()), ("agrees".into(), 7));
    }

    #[test]
    fn a_pair_that_only_matters_together_is_named_as_a_pair() {
        for (one, two) in [(Dimension::Locale, Dimension::TimeZone), (Dimension::Home, Dimension::Load)] {
            let found =
                follow(|different, _| (different.contains(&one) && different.contains(&two)).to_string());
            assert_eq!(found.0, World::of([one, two].into()).to_string());
        }
    }

    #[test]
    fn a_test_that_needs_everything_to_differ_is_named_with_all_dimensions() {
        let found = follow(|different, _| (different.len() == Dimension::ALL.len()).to_string());
        assert_eq!(found.0, World::of(all()).to_string());
    }

    #[test]
    fn a_difference_that_does_not_repeat_is_blamed_on_nothing() {
        let flaky = follow(|different, number| (different.len() == 10 && number == 0).to_string());
        assert_eq!(flaky.0, "unsteady");
        let early = follow(|different, number| (different.len() == 10 && number < 2).to_string());
        assert_eq!(early.0, "unsteady");
        let later = follow(|different, number| {
            (different.len() == 10 || different.contains(&Dimension::Home) && number < 2).to_string()
        });
        assert_eq!(later.0, "unsteady");
    }

    #[test]
    fn a_base_world_that_wavers_during_confirmation_is_unsteady() {
        let found = follow(|different, number| {
            (different.contains(&Dimension::Home) || different.is_empty() && number == 3).to_string()
        });
        assert_eq!(found.0, "unsteady");
    }

    #[test]
    fn what_the_machine_does_not_cover_is_not_tried() {
        let covered: BTreeSet<Dimension> = [Dimension::HashSeed].into();
        let made = vec![
            attempt(&World::Base, 0, "a"),
            attempt(&World::Everything, 0, "b"),
            attempt(&World::Everything, 1, "b"),
        ];
        let step = next(&AttemptsByWorld::new(&made, Compare::Output), &covered, 0);
        assert_eq!(step, Step::Run([(World::one(Dimension::HashSeed), 1), (World::Base, 3)].into()));
    }

    #[test]
    fn the_base_world_confirms_while_the_likeliest_world_is_tried() {
        let home = World::one(Dimension::Home);
        let mut made = vec![attempt(&World::Base, 0, "a"), attempt(&World::Base, 1, "a")];
        made.extend((0..2).map(|_| attempt(&World::Everything, 0, "b")));
        let covered: BTreeSet<Dimension> = [Dimension::Home].into();
        let next = |made: &[Attempt]| match next(&AttemptsByWorld::new(made, Compare::Output), &covered, 0) {
            Step::Run(wanted) => {
                wanted.into_iter().map(|(world, missing)| (world.to_string(), missing)).collect()
            }
            other => vec![(format!("{other:?}"), 0)],
        };
        assert_eq!(next(&made), [("base".to_owned(), 3), ("home".to_owned(), 1)]);
        made.extend((0..2).map(|_| attempt(&World::Base, CONFIRMING_ROUND, "a")));
        assert_eq!(next(&made), [("base".to_owned(), 1), ("home".to_owned(), 1)], "a build that was stopped");
        made.push(attempt(&home, 0, "b"));
        assert_eq!(next(&made), [("base".to_owned(), 1)], "whatever is known already");
        made.push(attempt(&World::Base, CONFIRMING_ROUND, "a"));
        assert_eq!(next(&made), [("home".to_owned(), 2)]);
    }
}
