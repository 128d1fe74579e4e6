//! The rules by which a submission is scored: what is counted, what is the same, what is an error. Pure: texts and
//! facts in, judgements out.
//!
//! Whatever is given as a text may be hostile: it is bounded before it is parsed, and what cannot be read is told with
//! its reason ([`Unreadable`]). `docs/scoring.md` explains every rule.

pub(crate) mod compare;
pub(crate) mod modules;
pub(crate) mod mutants;
pub(crate) mod paired;
pub(crate) mod statistics;
pub(crate) mod text;
pub(crate) mod tree;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use compare::{ComparedCase, Comparison, Masks, RunDifference, compare};
pub use modules::Modules;
pub use statistics::{
    Bin, Correlation, Mean, mcnemar, mean_of_means, pearson, pearson_of_deciles, quartiles, spearman, wilson,
};
pub use text::{LONGEST, Unreadable, text_of};

/// A file of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'a> {
    /// From the root of the tree, with `/`.
    pub path: &'a str,
    pub text: &'a str,
}

/// How many of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    pub part: u32,
    pub whole: u32,
}

impl Ratio {
    /// From 0 to 1. None of nothing.
    pub fn rate(self) -> Option<f64> {
        (self.whole > 0).then(|| f64::from(self.part) / f64::from(self.whole))
    }

    pub(crate) fn with(self, counts: bool) -> Self {
        Ratio { part: self.part + u32::from(counts), whole: self.whole + 1 }
    }
}
