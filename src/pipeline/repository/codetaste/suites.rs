//! The suite on both trees of a pair, and the bounds that it sets.

use std::collections::BTreeSet;

use super::OrDropped;
use crate::error::{Error, Result};
use crate::family::codetaste::suite::{Bounds, NotEnough, gate_by};
use crate::record::codetaste::{Dropped, PairCause, PairTree, Settings, SuiteRun};
use crate::record::outcome::Outcome;
use crate::record::patch::Patch;
use crate::referee::codetaste::suite::{SuiteLab, Suites, WholeRun};

/// What the suite showed.
pub(super) struct Measured {
    pub(super) bounds: Bounds,
    pub(super) runs: Vec<SuiteRun>,
    whole: Vec<WholeRun>,
}

impl Measured {
    /// Runs the suite on both trees; the first cause where that is not enough.
    ///
    /// # Errors
    /// IO errors and an interruption.
    pub(super) fn of(
        place: SuiteLab<'_>,
        golden: &Patch,
        settings: &Settings,
        (suites, step): (&mut Suites, &mut dyn FnMut()),
    ) -> Result<OrDropped<Measured>> {
        let (mut runs, mut whole) = (Vec::new(), Vec::new());
        for (tree, patch) in [(PairTree::Base, &Patch::default()), (PairTree::Golden, golden)] {
            let made = suites.of_bounds(place, patch, settings.runs)?;
            step();
            for (number, run) in (0..).zip(&made) {
                if run.is_lost {
                    let why = run.why.clone().unwrap_or_default();
                    return Err(Error::harness("the suite could not be run here").with_detail(why));
                }
                // A script has all of the time for itself.
                let jobs = if place.is_scripted() { 1 } else { place.lab.jobs() };
                if let Some(dropped) = refused(tree, run, settings, jobs) {
                    return Ok(Err(dropped));
                }
                runs.push(SuiteRun { tree, number, counts: run.counts, duration_ms: run.duration_ms });
            }
            whole.extend(made);
        }
        if let Some(dropped) = changed(place, golden)? {
            return Ok(Err(dropped));
        }
        let bounds = Bounds::of(runs.iter().map(|run| run.counts));
        let none = Dropped { cause: PairCause::SuiteCrashes, evidence: "no run gave counts".to_owned() };
        Ok(bounds.map(|bounds| Measured { bounds, runs, whole }).ok_or(none))
    }

    /// Whether a case passes in every run of both trees.
    pub(super) fn passes_always(&self, case: &str) -> bool {
        self.whole.iter().all(|run| run.passes(case))
    }

    /// Cases that fail in every run of both trees.
    pub(super) fn failing(&self) -> BTreeSet<String> {
        let fails = |run: &WholeRun, case: &str| {
            matches!(run.outcomes.get(case), Some(Outcome::Failed | Outcome::Error))
        };
        let cases = self.whole.first().into_iter().flat_map(|run| run.outcomes.keys());
        cases.filter(|case| self.whole.iter().all(|run| fails(run, case))).cloned().collect()
    }

    /// Whether no run of golden fails more than the worst of the base.
    pub(super) fn golden_fails_no_more(&self) -> bool {
        let most = |tree: PairTree| {
            let runs = self.runs.iter().filter(|run| run.tree == tree);
            runs.filter_map(|run| Some(run.counts?.failed)).max().unwrap_or_default()
        };
        most(PairTree::Golden) <= most(PairTree::Base)
    }

    /// `flaky-suite` where runs of one tree differ.
    pub(super) fn flags(&self) -> Vec<String> {
        let differs = self
            .runs
            .iter()
            .zip(self.runs.iter().skip(1))
            .any(|(one, next)| one.tree == next.tree && one.counts != next.counts);
        differs.then(|| "flaky-suite".to_owned()).into_iter().collect()
    }
}

/// A tree that the set-up of scripts changes.
fn changed(place: SuiteLab<'_>, golden: &Patch) -> Result<Option<Dropped>> {
    if !place.is_scripted() {
        return Ok(None);
    }
    for (tree, patch) in [(PairTree::Base, &Patch::default()), (PairTree::Golden, golden)] {
        if let Some(changes) = Suites::changes_tree(place, patch)? {
            let evidence = format!("on {}, after set-up git sees\n{changes}", tree.as_str());
            return Ok(Some(Dropped { cause: PairCause::ChangesTree, evidence }));
        }
    }
    Ok(None)
}

/// Why a run is not enough.
fn refused(tree: PairTree, run: &WholeRun, settings: &Settings, jobs: usize) -> Option<Dropped> {
    let tree = tree.as_str();
    let most = settings.suite_timeout.as_secs_f64() * jobs as f64;
    let late = || Dropped {
        cause: PairCause::SuiteTooLong,
        // How long it took differs from build to build.
        evidence: format!("a run on {tree} takes more than {most:.0} s"),
    };
    if run.is_late {
        return Some(late());
    }
    if let Some(why) = gate_by(run.counts, settings.min_tests, settings.min_pass_rate) {
        let (cause, evidence) = match (why, run.counts) {
            (NotEnough::FewTests, Some(counts)) => {
                let least = settings.min_tests;
                (PairCause::FewTests, format!("{} tests on {tree}, fewer than {least}", counts.total))
            }
            (NotEnough::FewPassing, Some(counts)) => {
                (PairCause::FewPassing, format!("{} of {} tests pass on {tree}", counts.passed, counts.total))
            }
            _ => {
                let why = run.why.as_deref().unwrap_or("no counts");
                (PairCause::SuiteCrashes, format!("on {tree}: {why}"))
            }
        };
        return Some(Dropped { cause, evidence });
    }
    (run.duration_ms / 1000.0 > most).then(late)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::family::codetaste::suite::Counts;

    fn run(passed: i64, total: i64, seconds: f64) -> WholeRun {
        let counts = Some(Counts { passed, failed: total - passed, skipped: 0, total });
        WholeRun { counts, duration_ms: seconds * 1000.0, ..WholeRun::default() }
    }

    #[test]
    fn a_run_that_is_not_enough_has_the_first_cause_that_holds() {
        let settings = Settings { suite_timeout: Duration::from_secs(10), ..Settings::default() };
        let cause = |run: &WholeRun| refused(PairTree::Base, run, &settings, 2).map(|dropped| dropped.cause);
        assert_eq!(cause(&WholeRun::default()), Some(PairCause::SuiteCrashes));
        assert_eq!(cause(&run(9, 9, 1.0)), Some(PairCause::FewTests));
        assert_eq!(cause(&run(2, 10, 1.0)), Some(PairCause::FewPassing));
        assert_eq!(cause(&run(3, 10, 20.1)), Some(PairCause::SuiteTooLong));
        assert_eq!(cause(&run(3, 10, 20.0)), None);
    }

    #[test]
    fn cases_are_always_passing_or_failing_on_both_trees_and_runs_that_differ_are_flagged() {
        let whole = |outcomes: [Outcome; 2]| {
            let names = ["a", "b"].map(str::to_owned);
            WholeRun { outcomes: names.into_iter().zip(outcomes).collect(), ..run(1, 2, 1.0) }
        };
        let of = |whole: Vec<WholeRun>| {
            let runs = whole.iter().zip(0..).map(|(run, number)| SuiteRun {
                tree: PairTree::Base,
                number,
                counts: run.counts,
                duration_ms: 0.0,
            });
            Measured { bounds: Bounds { passed: 1, failed: 1 }, runs: runs.collect(), whole }
        };
        let steady =
            of(vec![whole([Outcome::Passed, Outcome::Failed]), whole([Outcome::Passed, Outcome::Error])]);
        assert!(steady.passes_always("a") && !steady.passes_always("b") && !steady.passes_always("c"));
        assert_eq!(steady.failing(), BTreeSet::from(["b".to_owned()]));
        assert_eq!(steady.flags(), Vec::<String>::new());
        let other = of(vec![whole([Outcome::Passed, Outcome::Failed]), run(2, 2, 1.0)]);
        assert_eq!(other.flags(), ["flaky-suite"]);
    }
}
