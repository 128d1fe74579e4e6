//! Which attempts decide about a group. Pure.

use std::collections::BTreeMap;

use super::attribution::{CONFIRMING_ROUND, SEEDS};
use super::{FIRST_ROUNDS, attempts_of_round};
use crate::record::outcome::{Attempt, Method};
use crate::record::world::World;

/// Which attempts a verdict looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The first rounds only: what every group has, so that the sample does not depend on what was chosen before.
    First,
    All,
}

impl Depth {
    /// Further hash seeds that a group goes through.
    pub(crate) fn seeds(self) -> u32 {
        match self {
            Depth::First => 0,
            Depth::All => SEEDS,
        }
    }

    /// Whether what was seen in this round counts.
    pub(crate) fn includes(self, round: u32) -> bool {
        self == Depth::All || FIRST_ROUNDS.contains(&round)
    }
}

/// Those of a group's attempts that count when `attempts` and `cold_runs` are asked for, whatever else the journal holds
/// from a build that asked for more.
pub(crate) fn considered(made: &[Attempt], depth: Depth, attempts: u32, cold_runs: u32) -> Vec<&Attempt> {
    let mut seen: BTreeMap<(Method, u32), u32> = BTreeMap::new();
    let counts = |attempt: &&Attempt| {
        if matches!(attempt.world, World::Seed(_)) {
            return depth == Depth::All;
        }
        // What an attribution asked for follows from the attempts themselves.
        if !attempt.is_base() || attempt.round == CONFIRMING_ROUND {
            return true;
        }
        let number = seen.entry((attempt.method, attempt.round)).or_default();
        *number += 1;
        match attempt.method {
            Method::Fork => {
                depth.includes(attempt.round) && *number <= attempts_of_round(attempt.round, attempts)
            }
            Method::Cold => depth == Depth::All && *number <= cold_runs,
        }
    };
    made.iter().filter(counts).collect()
}

/// Attempts in the fork tree, in the base world.
pub(crate) fn base_attempts<'a>(made: &[&'a Attempt]) -> Vec<&'a Attempt> {
    let base = made.iter().filter(|attempt| attempt.is_reference());
    base.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::verdict::Dimension;
    use crate::testing::attempts::Table;

    fn numbers(made: &[Attempt], depth: Depth, attempts: u32, cold_runs: u32) -> Vec<u32> {
        considered(made, depth, attempts, cold_runs).iter().map(|attempt| attempt.number).collect()
    }

    #[test]
    fn the_first_rounds_are_what_every_group_has() {
        let made =
            Table::new().base(0, "a").base(1, "a").base(2, "a").base(2, "b").base(3, "a").cold("a").made();
        assert_eq!(numbers(&made, Depth::First, 5, 1), [0, 1]);
        assert_eq!(numbers(&made, Depth::All, 5, 1), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn attempts_of_a_build_that_asked_for_more_do_not_count() {
        let made = Table::new()
            .base(0, "a")
            .base(0, "b")
            .base(1, "a")
            .base(2, "b")
            .base(3, "b")
            .cold("a")
            .cold("b")
            .made();
        assert_eq!(numbers(&made, Depth::All, 2, 1), [0, 2, 5], "two attempts: rounds 0 and 1, one each");
        assert_eq!(numbers(&made, Depth::All, 3, 0), [0, 2, 3], "three attempts: one of round 2");
        assert_eq!(numbers(&made, Depth::All, 4, 2), [0, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn other_worlds_always_count_and_further_seeds_with_all_only() {
        let clock = World::one(Dimension::Clock);
        let made = Table::new()
            .base(0, "a")
            .world(&World::Everything, "b")
            .world(&clock, "b")
            .world(&World::Seed(1), "a")
            .base(CONFIRMING_ROUND, "a")
            .made();
        assert_eq!(numbers(&made, Depth::First, 2, 1), [0, 1, 2, 4]);
        assert_eq!(numbers(&made, Depth::All, 2, 1), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn base_attempts_are_those_of_the_fork_tree_in_the_base_world() {
        let made = Table::new().base(0, "a").cold("a").world(&World::Everything, "a").base(1, "a").made();
        let all: Vec<&Attempt> = made.iter().collect();
        let base: Vec<u32> = base_attempts(&all).iter().map(|attempt| attempt.number).collect();
        assert_eq!(base, [0, 3]);
    }
}
