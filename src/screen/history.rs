//! The attempts of a repository's groups, kept in a journal.

use std::collections::BTreeMap;

use super::FIRST_ROUNDS;
use super::attribution::CONFIRMING_ROUND;
use crate::error::Result;
use crate::record::collected::Group;
use crate::record::outcome::{Attempt, Method};
use crate::record::world::World;
use crate::store::journal::{self, Journal};

/// All attempts of the groups of one repository, by group, appended to a journal as they come.
#[derive(Debug)]
pub(crate) struct History {
    journal: Journal,
    attempts: Vec<Vec<Attempt>>,
    places: BTreeMap<String, usize>,
}

impl History {
    /// Opens the journal and reads back what an earlier build left.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub(crate) fn open(path: &std::path::Path, groups: &[Group]) -> Result<Self> {
        let (journal, earlier) = Journal::open::<Attempt>(path)?;
        tracing::info!("{} attempts of earlier runs are reused", earlier.len());
        let places =
            groups.iter().enumerate().map(|(index, group)| (group.group_id.clone(), index)).collect();
        let mut history = History { journal, attempts: vec![Vec::new(); groups.len()], places };
        for attempt in earlier {
            if let Some(place) = history.places.get(&attempt.group_id) {
                insert(&mut history.attempts[*place], attempt);
            }
        }
        Ok(history)
    }

    /// Keeps an attempt.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub(crate) fn record(&mut self, group: usize, mut attempt: Attempt) -> Result<()> {
        attempt.note(jiff::Timestamp::now().as_millisecond());
        self.journal.append(&attempt)?;
        insert(&mut self.attempts[group], attempt);
        Ok(())
    }

    /// Takes over the attempts of another journal, of groups that have none here but those that were taken over before. Gives
    /// how many.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub(crate) fn take_over(&mut self, path: &std::path::Path) -> Result<usize> {
        let mut theirs: BTreeMap<usize, Vec<Attempt>> = BTreeMap::new();
        for attempt in journal::read::<Attempt>(path)? {
            if let Some(place) = self.places.get(&attempt.group_id) {
                insert(theirs.entry(*place).or_default(), attempt);
            }
        }
        let mut taken = 0;
        for (place, mut attempts) in theirs {
            let here = &self.attempts[place];
            if !attempts.starts_with(here) {
                continue;
            }
            for attempt in attempts.drain(here.len()..).collect::<Vec<_>>() {
                self.record(place, attempt)?;
                taken += 1;
            }
        }
        self.sync()?;
        Ok(taken)
    }

    /// All attempts of a group, in the order of [`rank`].
    pub(crate) fn of(&self, group: usize) -> &[Attempt] {
        &self.attempts[group]
    }

    /// How many attempts of a round and method a group has in the base world.
    pub(crate) fn count(&self, group: usize, method: Method, round: u32) -> u32 {
        let made = self.attempts[group].iter().filter(|attempt| attempt.is_base());
        let count = made.filter(|attempt| attempt.method == method && attempt.round == round).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Mean duration of the attempts in the fork tree, in the base world, in milliseconds.
    pub(crate) fn durations(&self) -> BTreeMap<usize, f64> {
        let mean = |attempts: &Vec<Attempt>| {
            let times: Vec<f64> = attempts
                .iter()
                .filter(|attempt| attempt.is_reference())
                .map(|attempt| attempt.duration_ms)
                .collect();
            (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
        };
        self.attempts
            .iter()
            .enumerate()
            .filter_map(|(index, attempts)| Some((index, mean(attempts)?)))
            .collect()
    }

    /// Makes sure that everything appended so far is on the disk.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.journal.sync()
    }
}

/// Puts an attempt in its place, and numbers it: what is made at the same time ends in the order of chance.
fn insert(attempts: &mut Vec<Attempt>, attempt: Attempt) {
    let at = attempts.partition_point(|other| rank(other) <= rank(&attempt));
    attempts.insert(at, attempt);
    for (number, attempt) in attempts.iter_mut().enumerate().skip(at) {
        attempt.number = u32::try_from(number).unwrap_or(u32::MAX);
    }
}

/// Where an attempt is among those of its group: the first rounds, other worlds, what confirms them in the base world,
/// further rounds, hash seeds, cold runs; rounds and seeds by number, worlds in the order in which they were asked for.
fn rank(attempt: &Attempt) -> (u32, u32) {
    match (attempt.method, &attempt.world, attempt.round) {
        (Method::Fork, World::Base, CONFIRMING_ROUND) => (2, 0),
        (Method::Fork, World::Base, round) if FIRST_ROUNDS.contains(&round) => (0, round),
        (Method::Fork, World::Base, round) => (3, round),
        (Method::Fork, World::Seed(seed), _) => (4, *seed),
        (Method::Fork, World::Everything | World::Only(_), _) => (1, 0),
        (Method::Cold, ..) => (5, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::verdict::Dimension;
    use crate::testing::attempts::Table;

    #[test]
    fn attempts_stand_in_an_order_that_does_not_depend_on_which_ended_first() {
        let asked = Table::new()
            .base(0, "a")
            .base(1, "b")
            .world(&World::Everything, "c")
            .world(&World::one(Dimension::Home), "c")
            .base(CONFIRMING_ROUND, "d")
            .base(2, "e")
            .base(2, "f")
            .base(3, "g")
            .world(&World::Seed(1), "h")
            .world(&World::Seed(2), "i")
            .world(&World::Seed(3), "j")
            .cold("k")
            .made();
        let mut made = Vec::new();
        for at in [1, 0, 2, 4, 3, 9, 7, 11, 5, 10, 6, 8] {
            insert(&mut made, Attempt { number: 99, ..asked[at].clone() });
        }
        assert_eq!(made, asked);
    }
}
