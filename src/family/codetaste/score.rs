//! The numbers of a submission, and their means.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::diff::Changed;
use super::lines::Lines;
use super::suite::{Bounds, Counts};
use crate::score::Ratio;

/// How many matches each pattern has on a tree.
pub type MatchCounts = BTreeMap<String, u64>;

pub use crate::record::codetaste::Side;

impl Side {
    /// What counts of matches make of a pattern.
    pub fn of(base: u64, golden: u64) -> Option<Self> {
        match (base, golden) {
            (0, 1..) => Some(Side::Additive),
            (1.., 0) => Some(Side::Reductive),
            _ => None,
        }
    }
}

/// How many patterns of each side a tree satisfies. A side without patterns has no rate and no weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Following {
    pub additive: Ratio,
    pub reductive: Ratio,
}

impl Following {
    /// Of the matches that additive and reductive patterns have on a tree.
    pub fn of(additive: &MatchCounts, reductive: &MatchCounts) -> Self {
        let ratio = |counts: &MatchCounts, satisfied: fn(u64) -> bool| {
            counts.values().fold(Ratio::default(), |ratio, count| ratio.with(satisfied(*count)))
        };
        Following {
            additive: ratio(additive, |count| count > 0),
            reductive: ratio(reductive, |count| count == 0),
        }
    }

    /// IFR: of all patterns.
    pub fn all(self) -> Ratio {
        sum(self.additive, self.reductive)
    }
}

fn sum(one: Ratio, other: Ratio) -> Ratio {
    Ratio { part: one.part + other.part, whole: one.whole + other.whole }
}

/// How far each pattern is satisfied, as a mean: by the matches on the submission's tree against those of additive patterns
/// on the golden tree and of reductive ones on the base. None without patterns.
pub fn graded(
    additive: &MatchCounts,
    reductive: &MatchCounts,
    golden: &MatchCounts,
    base: &MatchCounts,
) -> Option<f64> {
    let part = |count: u64, of: &MatchCounts, pattern: &str| {
        let whole = of.get(pattern).copied().unwrap_or_default().max(1);
        (count as f64 / whole as f64).min(1.0)
    };
    let additive = additive.iter().map(|(pattern, count)| part(*count, golden, pattern));
    let reductive = reductive.iter().map(|(pattern, count)| 1.0 - part(*count, base, pattern));
    crate::score::Mean::of(additive.chain(reductive)).mean
}

/// How many of the lines that a patch changes are matched: added ones on the submission's tree, removed ones on the base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precision {
    pub added: Ratio,
    pub removed: Ratio,
}

impl Precision {
    pub fn of(changed: &Changed, reductive_on_base: &Lines, additive_on_submission: &Lines) -> Self {
        let ratio = |lines: &Lines, matched: &Lines| Ratio {
            part: u32::try_from(lines.common(matched)).unwrap_or(u32::MAX),
            whole: u32::try_from(lines.count()).unwrap_or(u32::MAX),
        };
        Precision {
            added: ratio(&changed.added, additive_on_submission),
            removed: ratio(&changed.removed, reductive_on_base),
        }
    }

    /// PREC: of all changed lines.
    pub fn all(self) -> Ratio {
        sum(self.added, self.removed)
    }

    /// Of all changed lines, of those added, of those removed; none where nothing changed.
    pub fn rates(self) -> [Option<f64>; 3] {
        [self.all(), self.added, self.removed].map(Ratio::rate)
    }
}

/// A rate of lines: nothing added, or nothing removed, is 0.
fn rate_of_lines(ratio: Ratio) -> f64 {
    ratio.rate().unwrap_or_default()
}

/// The harmonic mean of precision and following where the suite passes, else 0.
pub fn f1(passed: Option<bool>, precision: f64, following: f64) -> Option<f64> {
    let sum = precision + following;
    Some(if passed? && sum > 0.0 { 2.0 * precision * following / sum } else { 0.0 })
}

/// What is measured of a submission.
#[derive(Debug, Clone)]
pub struct Measured<'a> {
    pub bounds: Option<Bounds>,
    pub counts: Option<Counts>,
    /// Matches on the submission's tree.
    pub additive: &'a MatchCounts,
    pub reductive: &'a MatchCounts,
    /// What the patch changes; none where it could not be applied.
    pub changed: Option<&'a Changed>,
    pub additive_on_submission: &'a Lines,
    pub reductive_on_base: &'a Lines,
}

/// All numbers of a submission. Rates are from 0 to 1, and none where nothing is counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Numbers {
    pub pass: Option<bool>,
    pub ifr: Option<f64>,
    pub ifr_plus: Option<f64>,
    pub ifr_minus: Option<f64>,
    pub alignment: Option<f64>,
    pub alignment_plus: Option<f64>,
    pub alignment_minus: Option<f64>,
    pub prec: f64,
    pub prec_plus: f64,
    pub prec_minus: f64,
    pub f1: Option<f64>,
    pub strict: Option<bool>,
    pub lines_added: u64,
    pub lines_removed: u64,
    pub lines: u64,
}

impl Measured<'_> {
    pub fn numbers(&self) -> Numbers {
        let nothing = Changed::default();
        let counts = self.counts.filter(|_| self.changed.is_some());
        let pass = self.bounds.map(|bounds| bounds.pass(counts));
        let following = Following::of(self.additive, self.reductive);
        let changed = self.changed.unwrap_or(&nothing);
        let precision = Precision::of(changed, self.reductive_on_base, self.additive_on_submission);
        let aligned = |ratio: Ratio| Some(if pass? { ratio.rate()? } else { ratio.rate()? * 0.0 });
        let (prec, all) = (rate_of_lines(precision.all()), following.all());
        let (lines_added, lines_removed) = (changed.added.count(), changed.removed.count());
        Numbers {
            pass,
            ifr: all.rate(),
            ifr_plus: following.additive.rate(),
            ifr_minus: following.reductive.rate(),
            alignment: aligned(all),
            alignment_plus: aligned(following.additive),
            alignment_minus: aligned(following.reductive),
            prec,
            prec_plus: rate_of_lines(precision.added),
            prec_minus: rate_of_lines(precision.removed),
            f1: all.rate().and_then(|ifr| f1(pass, prec, ifr)),
            strict: pass.map(|pass| pass && all.whole > 0 && all.part == all.whole),
            lines_added,
            lines_removed,
            lines: lines_added + lines_removed,
        }
    }
}

/// A mean with the half width of its 95 % interval by Student's t.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Average {
    pub n: u32,
    /// None of nothing.
    pub mean: Option<f64>,
    /// 0 of one value.
    pub plus_minus: Option<f64>,
}

impl Average {
    /// Of the values that are known.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let values: Vec<f64> = values.into_iter().flatten().collect();
        let n = values.len() as f64;
        if values.is_empty() {
            return Average::default();
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let quantile = StudentsT::new(0.0, 1.0, n - 1.0).map(|student| student.inverse_cdf(0.975));
        let plus_minus = quantile.map_or(0.0, |quantile| (squares / (n - 1.0)).sqrt() / n.sqrt() * quantile);
        Average { n: values.len() as u32, mean: Some(mean), plus_minus: Some(plus_minus) }
    }
}

/// Dollars of all phases. What is below 0 is unknown and left out; none where all are.
pub fn cost(phases: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    phases.into_iter().flatten().filter(|one| *one >= 0.0).reduce(|sum, one| sum + one)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values: tables of Student's t.
    #[test]
    fn intervals_are_those_of_students_t() {
        for (n, quantile) in
            [(2, 12.706_204_736), (3, 4.302_652_730), (11, 2.228_138_852), (101, 1.983_971_519)]
        {
            let values = (0..n).map(|at| Some(f64::from(at)));
            let found = Average::of(values).plus_minus.unwrap();
            let n = f64::from(n);
            // The variance of 0 … n − 1.
            let expected = (n * (n + 1.0) / 12.0).sqrt() / n.sqrt() * quantile;
            assert!((found - expected).abs() < 1e-6 * expected, "{n}: {found} {expected}");
        }
    }

    #[test]
    fn a_pattern_that_the_golden_tree_lacks_divides_by_nothing() {
        let counts = |count: u64| MatchCounts::from([("a".to_owned(), count)]);
        assert_eq!(graded(&counts(3), &MatchCounts::new(), &counts(0), &MatchCounts::new()), Some(1.0));
    }
}
