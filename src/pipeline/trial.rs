//! One run of a repository's tests in a candidate environment: which groups pass, and what the others say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use super::once::spread;
use crate::attempt::pool::{Event, Pool};
use crate::attempt::tasks;
use crate::attempt::world::WorldSetting;
use crate::backend::Backend;
use crate::collect::group;
use crate::environment::{Complaint, GateReport};
use crate::error::Result;
use crate::record::outcome::Outcome;
use crate::runner::Setting;
use crate::runner::protocol::{Discovered, TraceMode};

/// Of more groups, so many are run, evenly spread: what is missing is missed by many.
const MOST: usize = 300;
/// Groups of more cases are run where there are no others.
const MOST_CASES: usize = 100;
/// Longest that a group may take here.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs the groups that were found, each once, and adds what they showed.
///
/// # Errors
/// The harness's trouble, and an interruption.
pub(super) fn run(
    backend: &dyn Backend,
    setting: &Setting,
    found: &Discovered,
    (limits, jobs): ((Duration, Duration), usize),
    report: &mut GateReport,
) -> Result<()> {
    let world = WorldSetting::base(setting);
    let (groups, _) = group::group(&found.items, &world.normalizer);
    let wanted = some(&groups.iter().map(|group| group.cases.len()).collect::<Vec<_>>());
    let options: Vec<String> = found.switched_off.iter().flat_map(|plugin| plugin.options.clone()).collect();
    let learned = AtomicUsize::default();
    let pool = Pool {
        backend,
        setting: &world.setting,
        groups: &groups,
        options: &options,
        normalizer: &world.normalizer,
        timeouts: (limits.0.min(LIMIT), limits.1.min(LIMIT)),
        jobs,
        learned: Some(&learned),
    };
    let (mut passing, mut complaints) = (BTreeSet::new(), Vec::new());
    let tasks = tasks(&groups, &wanted, &BTreeMap::new(), 0, TraceMode::Off, jobs);
    pool.run(tasks, |event| {
        match event {
            Event::Attempt { group, done, .. } => {
                let who = &groups[group].group_id;
                let bad = |outcome| matches!(outcome, Outcome::Failed | Outcome::Error);
                let passes = done.cases.iter().any(|case| case.outcome == Outcome::Passed);
                if passes && !done.cases.iter().any(|case| bad(case.outcome)) {
                    passing.insert(who.clone());
                }
                complaints.extend(done.cases.iter().filter_map(|case| {
                    let is_skip = case.outcome == Outcome::Skipped;
                    let text = case.message.clone().filter(|_| is_skip || bad(case.outcome))?;
                    Some(Complaint { who: who.clone(), text, is_skip })
                }));
            }
            Event::Unavailable { group, text, .. } => {
                complaints.push(Complaint { who: groups[group].group_id.clone(), text, is_skip: false });
            }
            Event::Broken(error) => return Err(error),
        }
        Ok(())
    })?;
    report.passing = passing;
    report.complaints.extend(complaints);
    Ok(())
}

/// Indices of the groups to run, each once, of groups with so many cases.
fn some(cases: &[usize]) -> Vec<(usize, u32)> {
    let small: Vec<usize> = (0..cases.len()).filter(|at| cases[*at] <= MOST_CASES).collect();
    let from = if small.is_empty() { (0..cases.len()).collect() } else { small };
    spread(from.len(), MOST).map(|at| (from[at], 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_groups_small_ones_from_all_over_are_run() {
        assert_eq!(some(&[1, 101, 100]), [(0, 1), (2, 1)]);
        assert_eq!(some(&[200, 300]), [(0, 1), (1, 1)]);
        let many = some(&vec![1; 3 * MOST]);
        assert_eq!((many.len(), many[0], many[MOST - 1]), (MOST, (0, 1), (3 * MOST - 3, 1)));
        assert!(some(&[]).is_empty());
    }
}
