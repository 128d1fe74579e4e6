//! Witnesses: for an instance a program makes a submission that the referee accepts. It proves that the instance can be
//! solved, and bounds how small a solution is.
//!
//! The generator ([`generator`]) proposes texts from what the original ran ([`trace`]); it reads files and runs nothing.
//! Each text is tried where a submission runs ([`trials`]). The driver alone judges: what was found is a witness when the
//! referee gives it fidelity three times, once under load ([`confirm`]). What has none says why ([`cause`]).

pub(crate) mod cause;
mod confirm;
mod generator;
pub(crate) mod kept;
mod search;
mod trace;
mod trials;

use serde::{Deserialize, Serialize};

use crate::attempt::lab::Lab;
use crate::error::Result;
use crate::record::collected::Group;
use crate::record::id::hash_parts;
use crate::referee::gistify::evaluate::Referee;
use crate::referee::gistify::ground::Ground;
use crate::referee::gistify::original::Original;
use cause::{Cause, NotMade};
use search::{Searched, Searcher};

/// Raised when the same instance may get another witness for a reason that lies in the driver.
const MAKER: &str = "witness-3";

/// A witness that the referee accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) text: String,
    /// Lines that are not blank.
    pub(crate) lines: u64,
    /// Logical lines, as line existence counts them.
    pub(crate) units: u64,
    /// Files of the tree that its lines come from, sorted.
    pub(crate) files: Vec<String>,
    pub(crate) line_execution: Option<f64>,
    pub(crate) line_existence: Option<f64>,
    /// How much of what did not run it keeps.
    pub(crate) level: String,
}

/// What came of one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Witnessed {
    pub(crate) result: std::result::Result<Made, NotMade>,
    /// Texts that were tried.
    pub(crate) trials: u32,
    /// Variants of the instance that the witness does not pass, by their place.
    #[serde(default)]
    pub(crate) dropped_variants: Vec<usize>,
}

impl Witnessed {
    /// None for this cause, without a search.
    fn without(cause: Cause, evidence: &str) -> Self {
        Witnessed { result: Err(NotMade::new(cause, evidence)), trials: 0, dropped_variants: Vec::new() }
    }
}

/// Makes witnesses for instances of one repository.
pub(crate) struct Maker<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) ground: &'a Ground,
    /// Judges what was found.
    pub(crate) referee: &'a Referee<'a>,
}

impl Maker<'_> {
    /// What decides about a witness: the same key, the same witness.
    pub(crate) fn key(&self, original: &Original<'_>) -> String {
        let judged = self.referee.key(original, None);
        hash_parts(&[MAKER, &crate::runner::generator_hash(), &judged])
    }

    /// Makes the witnesses of these instances; `step` is called as each search ends.
    ///
    /// # Errors
    /// IO errors, an interruption, and the harness's when it stays broken.
    pub(crate) fn make(
        &self,
        originals: &[&Original<'_>],
        step: &(dyn Fn() + Sync),
    ) -> Result<Vec<Witnessed>> {
        let groups: Vec<Group> = originals.iter().map(|original| original.group()).collect();
        let traced = trace::traces(self.lab, &groups, originals, self.ground)?;
        let searcher = Searcher { lab: self.lab, ground: self.ground, file: self.referee.policy.file };
        let searched: Vec<Searched> = searcher.all(originals, &traced, step)?;
        confirm::confirmed(self.referee, originals, searched)
    }
}
