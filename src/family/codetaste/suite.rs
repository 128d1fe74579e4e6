//! Whole runs of a suite: their counts, the bounds that they set, and what passes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::record::spelling::spelling;

pub use crate::record::codetaste::{Bounds, Counts};

/// Lines of stdout in which counts are looked for, from its end.
const LOOK_BACK: usize = 10;
/// What bash does before scripts run a suite, which are in `/scripts`.
pub const SET_UP: &str = "\
if [ -e /scripts/setup_system.sh ]; then
    bash /scripts/setup_system.sh >&2 || { echo 'setup_system.sh failed' >&2; exit 1; }
fi
if [ -e /scripts/setup_shell.sh ]; then . /scripts/setup_shell.sh; fi
";
/// What runs it then.
pub const RUN: &str = "exec /scripts/run_tests\n";

/// The counts of the last line that has them; none where no line does.
pub fn counts_of(stdout: &str) -> Option<Counts> {
    stdout.trim().rsplit('\n').take(LOOK_BACK).find_map(|line| {
        let said: Value = serde_json::from_str(line.trim()).ok()?;
        let said = said.as_object()?;
        let number = |key: &str| said.get(key)?.as_i64();
        let skipped = if said.contains_key("skipped") { number("skipped")? } else { 0 };
        Some(Counts {
            passed: number("passed")?,
            failed: number("failed")?,
            skipped,
            total: number("total")?,
        })
    })
}

spelling! {
    /// Why counts cannot be.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Nonsense {
        Negative "negative",
        MoreThanTotal "more-than-total",
    }
}

impl Counts {
    /// Why these counts cannot be; none where they can.
    pub fn nonsense(self) -> Option<Nonsense> {
        if [self.passed, self.failed, self.skipped, self.total].iter().any(|count| *count < 0) {
            Some(Nonsense::Negative)
        } else if i128::from(self.passed) + i128::from(self.failed) > i128::from(self.total) {
            Some(Nonsense::MoreThanTotal)
        } else {
            None
        }
    }
}

spelling! {
    /// Why the suite of a tree is not enough.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum NotEnough {
        SuiteCrashes "suite-crashes",
        FewTests "few-tests",
        FewPassing "few-passing",
    }
}

/// Why a run of a tree's suite is not enough by the paper's bounds; none where it is.
pub fn gate(counts: Option<Counts>) -> Option<NotEnough> {
    gate_by(counts, 10, 0.3)
}

/// Why a run is not enough where so many tests, and so large a share of passing ones, are asked for.
pub fn gate_by(counts: Option<Counts>, min_tests: u32, min_pass_rate: f64) -> Option<NotEnough> {
    let Some(counts) = counts else { return Some(NotEnough::SuiteCrashes) };
    if counts.total < i64::from(min_tests) {
        return Some(NotEnough::FewTests);
    }
    let rate = counts.passed as f64 / counts.total as f64;
    (rate < min_pass_rate).then_some(NotEnough::FewPassing)
}

impl Bounds {
    /// Those of the runs that gave counts; none where none did. A lost run is not a run of no tests.
    pub fn of(runs: impl IntoIterator<Item = Option<Counts>>) -> Option<Self> {
        runs.into_iter().flatten().map(|run| Bounds { passed: run.passed, failed: run.failed }).reduce(
            |one, other| Bounds {
                passed: one.passed.min(other.passed),
                failed: one.failed.max(other.failed),
            },
        )
    }

    /// PASS: whether a run is within the bounds. One without counts is not.
    pub fn pass(self, counts: Option<Counts>) -> bool {
        counts.is_some_and(|run| run.passed >= self.passed && run.failed <= self.failed)
    }
}

/// PASS by names: whether each case that must pass did.
pub fn set_passes(outcomes: &BTreeMap<String, String>, must_pass: &BTreeSet<String>) -> bool {
    must_pass.iter().all(|case| outcomes.get(case).is_some_and(|outcome| outcome == "passed"))
}
