//! Instances against what the dataset says of them: attempts in the fork tree, cold runs, and the trace.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::attempt::cold;
use crate::attempt::lab::{Made, Wanted};
use crate::error::Result;
use crate::pipeline::prepare::Prepared;
use crate::record::instance::{Expected, Instance};
use crate::record::outcome::{Attempt, CaseResult};
use crate::record::trace::{Traced, is_test_path, test_roots};
use crate::referee::gistify::agreement::normalized_again;
use crate::score::{Masks, Modules, compare};
use crate::store::scratch;
use crate::trace::{ToTrace, Traces, Which};

/// Differences that are reported of an instance.
const MOST_DIFFERENCES: usize = 5;

/// What was found of one instance.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Verified {
    pub(crate) instance_id: String,
    /// The group; of a masked file its path.
    pub(crate) group_id: String,
    /// Attempts in the fork tree.
    pub(crate) attempts: u32,
    pub(crate) agreeing: u32,
    /// Cold runs of the literal entry command.
    pub(crate) cold_runs: u32,
    pub(crate) cold_agreeing: u32,
    /// Attempts that showed the same as the first.
    pub(crate) alike: u32,
    /// What differs from the golden observation, at first sight.
    pub(crate) differences: Vec<String>,
    /// What of the trace differs from what is recorded; nothing where the dataset says that it varies.
    pub(crate) trace: Vec<String>,
    /// Where two tables of the dataset do not say the same of it.
    pub(crate) tables: Vec<String>,
}

impl Verified {
    /// Whether everything is as the dataset says.
    pub(crate) fn agrees(&self) -> bool {
        self.attempts == self.agreeing
            && self.cold_runs == self.cold_agreeing
            && self.trace.is_empty()
            && self.tables.is_empty()
            && self.attempts > 0
    }

    /// Whether all attempts showed the same.
    pub(crate) fn is_steady(&self) -> bool {
        self.alike == self.attempts
    }

    pub(super) fn differs(&mut self, text: String) {
        if self.differences.len() < MOST_DIFFERENCES && !self.differences.contains(&text) {
            self.differences.push(text);
        }
    }
}

/// How often instances are run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) attempts: u32,
    pub(crate) cold_runs: u32,
}

/// Runs instances of one repository; `step` is called after each of the runs.
///
/// # Errors
/// IO errors, an interruption, and the harness's when it stays broken.
pub(crate) fn verify(
    prepared: &Prepared,
    instances: &[(&Instance, &[CaseResult])],
    times: Times,
    step: &dyn Fn(),
) -> Result<Vec<Verified>> {
    let groups = &prepared.collected.groups;
    let mut found: Vec<Verified> = Vec::new();
    // Index of the group → index of the instance.
    let mut place: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, (instance, golden)) in instances.iter().enumerate() {
        let mut one = Verified {
            instance_id: instance.instance_id.to_string(),
            group_id: instance.group_id.clone(),
            tables: contradictions(&instance.expected, golden),
            ..Verified::default()
        };
        match groups.iter().position(|group| group.group_id == instance.group_id) {
            Some(group) => drop(place.insert(group, at)),
            None => one.differs("pytest does not collect it".to_owned()),
        }
        found.push(one);
    }
    let first = in_the_fork_tree(prepared, instances, (times.attempts, &place), &mut found, step)?;
    for _ in 0..times.cold_runs {
        let wanted: Vec<_> = first.keys().map(|group| (*group, &groups[*group])).collect();
        let ends = |group: usize| {
            first.get(&group).is_some_and(|attempt| attempt.exit == crate::record::outcome::Exit::Finished)
        };
        prepared.lab.cold(&wanted, &ends, |group, attempt| {
            let at = place[&group];
            let golden = Attempt { cases: instances[at].1.to_vec(), ..first[&group].clone() };
            found[at].cold_runs += 1;
            if cold::agrees(&golden, &attempt, prepared.lab.compare) {
                found[at].cold_agreeing += 1;
            } else {
                found[at].differs(format!("run cold: {}", crate::screen::verdict::describe(&attempt)));
            }
            step();
            Ok(())
        })?;
    }
    let wanted: Vec<usize> = first.keys().copied().collect();
    let traced = traces(prepared, &wanted, &first, step)?;
    for (group, at) in &place {
        let Some(traced) = traced.get(&groups[*group].group_id) else { continue };
        found[*at].trace = differing(instances[*at].0, traced);
    }
    Ok(found)
}

/// The first attempt of each group.
fn in_the_fork_tree(
    prepared: &Prepared,
    instances: &[(&Instance, &[CaseResult])],
    (attempts, place): (u32, &BTreeMap<usize, usize>),
    found: &mut [Verified],
    step: &dyn Fn(),
) -> Result<BTreeMap<usize, Attempt>> {
    let wanted: Vec<(usize, u32)> = place.keys().map(|group| (*group, attempts)).collect();
    let (world, durations) = (prepared.lab.base(), BTreeMap::new());
    let wanted = Wanted { world: &world, round: 0, groups: &wanted, durations: &durations, patience: None };
    let mut first: BTreeMap<usize, Attempt> = BTreeMap::new();
    let nothing = (Modules::default(), BTreeSet::new());
    // As it was written: nothing has moved.
    let masks = Masks { modules: &nothing.0, files: &nothing.1, test_module: "\0" };
    let compared = prepared.lab.compare;
    prepared.lab.make(&prepared.collected.groups, &[wanted], |_, group, made| {
        let (Made::Attempt(attempt) | Made::Unavailable { attempt, .. }) = made;
        let at = place[&group];
        let golden = normalized_again(instances[at].1, &world.normalizer);
        let comparison = compare(&golden, &attempt.exit, &attempt.cases, &masks, compared);
        let one = &mut found[at];
        one.attempts += 1;
        one.agreeing += u32::from(comparison.agrees());
        for case in comparison.cases.iter().filter(|case| case.difference.is_some()) {
            one.differs(format!("{}: expected {}, seen {}", case.case, case.expected, case.seen));
        }
        if !comparison.ran {
            one.differs(crate::screen::verdict::describe(&attempt));
        }
        let first = first.entry(group).or_insert_with(|| attempt.clone());
        one.alike += u32::from(first.observation_hash() == attempt.observation_hash());
        step();
        Ok(())
    })?;
    Ok(first)
}

/// What each group calls, by id.
fn traces(
    prepared: &Prepared,
    wanted: &[usize],
    first: &BTreeMap<usize, Attempt>,
    step: &dyn Fn(),
) -> Result<BTreeMap<String, Traced>> {
    let groups = &prepared.collected.groups;
    let folder = scratch()?;
    let mut traces = Traces::open(folder.path())?;
    let roots = test_roots(groups.iter().map(|group| group.file.as_str()));
    let base = prepared.lab.base();
    let untraced = |group: &usize| (*group, first.get(group).map(Attempt::outcome_hash));
    let wanted_once = ToTrace {
        which: Which::First,
        groups: wanted.iter().map(untraced).collect(),
        durations: BTreeMap::new(),
    };
    let pool = prepared.lab.busy_pool(groups, &base);
    traces.measure(&wanted_once, &pool, |path| is_test_path(path, &roots), step)?;
    let ids = wanted.iter().map(|group| groups[*group].group_id.as_str());
    Ok(ids.filter_map(|id| Some((id.to_owned(), traces.totals(id)?.clone()))).collect())
}

/// Recorded numbers that are others now.
fn differing(instance: &Instance, traced: &Traced) -> Vec<String> {
    if !instance.trace_stable {
        return Vec::new();
    }
    let totals = &traced.totals;
    let numbers = [
        ("trace_length", instance.trace_length, totals.trace_length),
        ("trace_length_package", instance.trace_length_package, totals.package_calls),
        ("unique_functions", instance.unique_functions.into(), totals.unique_functions.into()),
    ];
    let mut told: Vec<String> = numbers
        .into_iter()
        .filter(|(_, recorded, seen)| recorded != seen)
        .map(|(name, recorded, seen)| format!("{name}: recorded {recorded}, seen {seen}"))
        .collect();
    if instance.files != totals.files {
        told.push(format!("files: recorded {}, seen {}", instance.files.join(", "), totals.files.join(", ")));
    }
    if instance.executed_lines != totals.executed_lines {
        told.push(format!(
            "executed_lines: recorded {:?}, seen {:?}",
            instance.executed_lines, totals.executed_lines
        ));
    }
    if instance.code_sha256.as_ref().is_some_and(|hash| *hash != traced.code_sha256) {
        told.push("code_sha256: the definitions that run are others".to_owned());
    }
    told
}

/// Cases of which the column `expected` says something else than `cases`, which are what a run is compared with. Older
/// datasets have no such column.
fn contradictions(expected: &[String], golden: &[CaseResult]) -> Vec<String> {
    let agrees = |case: &Expected| {
        let shown = golden.iter().find(|shown| shown.case_id == case.case_id);
        case.outcome == shown.map(|shown| shown.outcome)
            && case.exception == shown.and_then(|shown| shown.exception.clone())
            && case.stdout.as_ref() == shown.map(|shown| &shown.stdout)
            && case.stderr.as_ref() == shown.map(|shown| &shown.stderr)
    };
    let told = expected.iter().filter_map(|text| match serde_json::from_str::<Expected>(text) {
        Ok(case) if agrees(&case) => None,
        Ok(case) => Some(format!("`expected` of {} is not what cases.parquet has", case.case_id)),
        Err(error) => Some(format!("`expected` cannot be read: {error}")),
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::Outcome;

    #[test]
    fn tables_that_contradict_each_other_are_told_by_case() {
        let golden: CaseResult = serde_json::from_str(
            r#"{"case_id": "t::a", "outcome": "passed", "stdout": "x", "duration_ms": 1.0}"#,
        )
        .unwrap();
        let expected = |outcome, stdout: &str| {
            let expected = Expected {
                case_id: "t::a".into(),
                outcome,
                exception: None,
                stdout: Some(stdout.to_owned()),
                stderr: Some(String::new()),
                command: None,
            };
            serde_json::to_string(&expected).unwrap()
        };
        let told = |text: String| contradictions(&[text], std::slice::from_ref(&golden));
        assert!(told(expected(Some(Outcome::Passed), "x")).is_empty());
        let other = ["`expected` of t::a is not what cases.parquet has"];
        assert_eq!(told(expected(Some(Outcome::Failed), "x")), other);
        assert_eq!(told(expected(Some(Outcome::Passed), "y")), other);
        assert!(told("{".to_owned())[0].starts_with("`expected` cannot be read"));
        assert!(contradictions(&[], std::slice::from_ref(&golden)).is_empty());
    }
}
