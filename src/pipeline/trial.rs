//! One run of a repository's tests in a candidate environment: which groups pass, and what the others say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::attempt::pool::{Crowd, Event, Pass, Pool};
use crate::attempt::tasks;
use crate::attempt::world::WorldSetting;
use crate::backend::Backend;
use crate::collect::group;
use crate::environment::{Complaint, GateReport};
use crate::error::Result;
use crate::record::id::hash_parts;
use crate::record::outcome::Outcome;
use crate::runner::Setting;
use crate::runner::protocol::{Discovered, TraceMode};

/// Of more groups, so many are run: what is missing is missed by many.
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
    let wanted =
        some(&groups.iter().map(|group| (group.group_id.as_str(), group.cases.len())).collect::<Vec<_>>());
    let options: Vec<String> = found.switched_off.iter().flat_map(|plugin| plugin.options.clone()).collect();
    let learned = AtomicUsize::default();
    let pool = Pool {
        backend,
        passes: vec![Pass {
            setting: &world.setting,
            normalizer: &world.normalizer,
            timeouts: (limits.0.min(LIMIT), limits.1.min(LIMIT)),
        }],
        groups: &groups,
        options: &options,
        jobs,
        crowd: Crowd::Idle(&learned),
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

/// Indices of the groups to run, each once, of groups with such an ID and so many cases. Of many, those whose hashes come
/// first, so that two plans that find almost the same groups try almost the same.
fn some(groups: &[(&str, usize)]) -> Vec<(usize, u32)> {
    let small: Vec<usize> = (0..groups.len()).filter(|at| groups[*at].1 <= MOST_CASES).collect();
    let mut from = if small.is_empty() { (0..groups.len()).collect() } else { small };
    if from.len() > MOST {
        from.sort_by_cached_key(|at| hash_parts(&[groups[*at].0]));
        from.truncate(MOST);
        from.sort_unstable();
    }
    from.into_iter().map(|at| (at, 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_few_groups_the_small_ones_are_run() {
        assert_eq!(some(&[("a", 1), ("b", 101), ("c", 100)]), [(0, 1), (2, 1)]);
        assert_eq!(some(&[("a", 200), ("b", 300)]), [(0, 1), (1, 1)]);
        assert!(some(&[]).is_empty());
    }

    #[test]
    fn of_many_groups_the_same_are_run_when_there_is_one_more() {
        let ids: Vec<String> = (0..3 * MOST).map(|at| format!("test_a.py::test_{at}")).collect();
        let named = |first: usize| {
            let groups: Vec<(&str, usize)> = ids[first..].iter().map(|id| (id.as_str(), 1)).collect();
            some(&groups).into_iter().map(|(at, _)| ids[first + at].clone()).collect::<BTreeSet<_>>()
        };
        let (all, but_one) = (named(0), named(1));
        assert_eq!((all.len(), but_one.len()), (MOST, MOST));
        assert!(all.intersection(&but_one).count() >= MOST - 1);
    }
}
