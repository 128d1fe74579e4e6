//! The rules by which a submission is scored: what is counted, what is the same, what is an error. Pure: texts and
//! facts in, judgements out.
//!
//! Whatever is given as a text may be hostile: it is bounded before it is parsed, and what cannot be read is told with
//! its reason ([`Unreadable`]). `docs/scoring.md` explains every rule.

mod agreement;
mod average;
mod compare;
mod execution;
mod existence;
mod findings;
mod inject;
mod keys;
mod locate;
mod modules;
mod reaches;
mod recall;
mod statistics;
mod strict;
mod test_lines;
mod text;
mod tree;
mod units;
mod variants;
mod verdict;
mod words;

use serde::{Deserialize, Serialize};

pub use agreement::{
    Agreement, AnnotatorAgreement, Choice, ComparedChoice, Criterion, agreements, cohen_kappa,
};
pub use average::{
    Cases, ClassShare, Mean, Row, Submitted, Summary, mean_of_means, summarize, summarize_by,
    weighted_baseline, wilson,
};
pub use compare::{ComparedCase, Comparison, Masks, RunDifference, compare};
pub use execution::{ExecutedLine, Execution, LineExecution, line_execution};
pub use existence::{Corpus, Existence, Line, LineExistence, Place};
pub use findings::{Effect, Finding, FindingKind, Scenery, findings};
pub use inject::{
    Evaluated, Injection, NotInjected, Replacement, first_line, inject, inject_inherited, sabotage,
};
pub use locate::TestName;
pub use modules::Modules;
pub use reaches::{Reach, ReachKind, reaches};
pub use recall::{TracedFunction, trace_recall};
pub use statistics::{Bin, Correlation, mcnemar, pearson, pearson_of_deciles, quartiles, spearman};
pub use strict::{Against, strict_findings};
pub use test_lines::{Overlap, test_overlap};
pub use text::{LONGEST, Unreadable, text_of};
pub use units::{LineKind, LineType};
pub use variants::{Proposal, failing, in_file, variants};
pub use verdict::{Detail, ErrorClass, Facts, Run, Sabotage, Verdict, Violation, judge};

/// A file of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'a> {
    /// From the root of the tree, with `/`.
    pub path: &'a str,
    pub text: &'a str,
}

/// How many of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ratio {
    pub part: u32,
    pub whole: u32,
}

impl Ratio {
    /// From 0 to 1. None of nothing.
    pub fn rate(self) -> Option<f64> {
        (self.whole > 0).then(|| f64::from(self.part) / f64::from(self.whole))
    }

    fn with(self, counts: bool) -> Self {
        Ratio { part: self.part + u32::from(counts), whole: self.whole + 1 }
    }
}

#[cfg(test)]
mod tests;
