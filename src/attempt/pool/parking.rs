//! Runners that wait for the next text that is judged: who comes needs not start one.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::queue::DirectoryKey;
use crate::runner::{Runner, Setting};

/// Texts that a runner may have judged when it is kept.
const MOST_SERVED: u32 = 500;

/// Keeps runners between pools, each with its directory open, or with nothing open.
#[derive(Debug, Default)]
pub struct Parking {
    most: usize,
    places: Mutex<Vec<Parked>>,
}

/// A runner that does nothing.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) runner: Runner,
    pub(super) kind: Kind,
    /// Texts that it has judged.
    pub(super) served: u32,
}

/// What runners have in common of which one can take the place of another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kind {
    pub(super) setting: Setting,
    pub(super) preload: Vec<String>,
    pub(super) options: Vec<String>,
    /// What is open in it; nothing where its pools replace files.
    pub(super) place: Option<DirectoryKey>,
}

impl Parking {
    /// Keeps so many runners at most.
    pub fn new(most: usize) -> Self {
        Parking { most, places: Mutex::default() }
    }

    /// How many are kept now.
    pub fn len(&self) -> usize {
        self.places().len()
    }

    /// Whether none is kept now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn places(&self) -> MutexGuard<'_, Vec<Parked>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a runner; the one that has waited longest goes where there are too many.
    pub(super) fn keep(&self, parked: Parked) {
        if self.most == 0 || parked.served >= MOST_SERVED {
            return;
        }
        let mut places = self.places();
        let gone = (places.len() >= self.most).then(|| places.remove(0));
        places.push(parked);
        drop(places);
        drop(gone);
    }

    /// Lets runners go that work in a tree.
    pub fn leave(&self, tree: &Path) {
        let gone: Vec<Parked> = self.places().extract_if(.., |one| one.kind.setting.tree == tree).collect();
        drop(gone);
    }

    /// A runner of this kind, the one that was used last. Those that have ended meanwhile are let go.
    pub(super) fn take(&self, kind: &Kind) -> Option<Parked> {
        loop {
            let mut places = self.places();
            let at = places.iter().rposition(|one| one.kind == *kind)?;
            let parked = places.remove(at);
            drop(places);
            if parked.runner.is_idle() {
                return Some(parked);
            }
        }
    }
}
