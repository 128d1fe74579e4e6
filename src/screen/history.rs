//! The attempts of a repository's groups, kept in a journal.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::record::collected::Group;
use crate::record::outcome::{Attempt, Method};
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
                history.attempts[*place].push(attempt);
            }
        }
        Ok(history)
    }

    /// Appends an attempt; its number becomes the next one of its group.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub(crate) fn record(&mut self, group: usize, mut attempt: Attempt) -> Result<()> {
        if attempt.noted_at == 0 {
            attempt.noted_at = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
        }
        attempt.number = u32::try_from(self.attempts[group].len()).unwrap_or(u32::MAX);
        self.journal.append(&attempt)?;
        self.attempts[group].push(attempt);
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
                theirs.entry(*place).or_default().push(attempt);
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

    /// All attempts of a group, in the order in which they were made.
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
                .filter(|attempt| attempt.method == Method::Fork && attempt.is_base())
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
