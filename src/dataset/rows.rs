//! Rows of the tables, borrowed from the records. Pure. What a column is called and holds is in [`super::schema`].

use std::collections::BTreeMap;

use super::assemble::{Assembled, Repository, called};
use super::private::Private;
use crate::record::collected::Case;
use crate::record::duration::median;
use crate::record::evidence::{AttemptFacts, GroupEvidence};
use crate::record::instance::Instance;
use crate::record::outcome::{CaseResult, Method};
use crate::record::trace::{FunctionCalls, Traced};
use crate::record::verdict::{Evidence, Verdict};
use crate::record::world::World;

/// A row of `groups`.
#[derive(Debug)]
pub struct GroupRow<'a> {
    pub record: &'a GroupEvidence,
    pub instance: Option<&'a Instance>,
    pub cause: Option<String>,
    pub flags: Vec<String>,
    /// JSON text; none when kept.
    pub evidence: Option<String>,
    pub test_class: Option<String>,
    pub worlds: Vec<String>,
    pub files: Option<Vec<String>>,
    /// Median over the finished base attempts of the fork tree.
    pub duration_ms: Option<f64>,
    /// Median over the finished cold runs.
    pub cold_ms: Option<f64>,
}

impl<'a> GroupRow<'a> {
    fn new(record: &'a GroupEvidence, assembled: &'a Assembled<'_>, private: &Private) -> Self {
        GroupRow {
            record,
            instance: assembled.instance_of(record),
            cause: record.verdict.cause().map(ToString::to_string),
            flags: record.flags(),
            evidence: evidence(&record.verdict, private),
            test_class: super::assemble::test_class(record),
            worlds: super::assemble::worlds(&record.attempts),
            files: record.traced.as_ref().map(|traced| traced.totals.files.clone()),
            duration_ms: median_duration(&record.attempts, Method::Fork),
            cold_ms: median_duration(&record.attempts, Method::Cold),
        }
    }

    /// A measurement of the trace, where one was taken.
    pub fn traced<T>(&self, measure: impl Fn(&'a Traced) -> T) -> Option<T> {
        self.record.traced.as_ref().map(measure)
    }
}

fn evidence(verdict: &Verdict, private: &Private) -> Option<String> {
    let Verdict::Dropped { evidence, .. } = verdict else { return None };
    let public = Evidence {
        summary: private.hide(&evidence.summary),
        seen: evidence.seen.clone(),
        excerpt: private.hide(&evidence.excerpt),
        command: private.hide(&evidence.command),
    };
    serde_json::to_string(&public).ok()
}

fn median_duration(attempts: &[AttemptFacts], method: Method) -> Option<f64> {
    let counts = |attempt: &&AttemptFacts| {
        attempt.world == World::Base && attempt.method == method && attempt.finished
    };
    let durations: Vec<f64> = attempts.iter().filter(counts).map(|attempt| attempt.duration_ms).collect();
    median(&durations)
}

/// A row of `cases`. Outcome and exception are those that every base attempt showed; output is given for kept groups
/// only, where repeated attempts vouch for it.
#[derive(Debug)]
pub struct CaseRow<'a> {
    pub record: &'a GroupEvidence,
    pub case: &'a Case,
    pub instance: Option<&'a Instance>,
    pub golden: Option<&'a CaseResult>,
}

impl<'a> CaseRow<'a> {
    /// Golden output of the case, when its group is kept.
    pub fn output(&self, stream: impl Fn(&'a CaseResult) -> &'a str) -> Option<&'a str> {
        self.golden.filter(|_| self.record.verdict.is_kept()).map(stream)
    }
}

/// A row of `attempts`.
#[derive(Debug)]
pub struct AttemptRow<'a> {
    pub record: &'a GroupEvidence,
    pub attempt: &'a AttemptFacts,
    pub world: String,
}

/// A row of `traces`.
#[derive(Debug)]
pub struct TraceRow<'a> {
    pub instance: &'a Instance,
    pub function: &'a FunctionCalls,
}

/// Rows of `groups`.
pub fn groups<'a>(assembled: &'a Assembled<'_>) -> impl Iterator<Item = GroupRow<'a>> {
    assembled.repositories.iter().flat_map(move |repository: &'a Repository<'_>| {
        let private = Private::of_repository(repository.record);
        repository.groups.iter().map(move |group| GroupRow::new(group, assembled, &private))
    })
}

/// Rows of `cases`.
pub fn cases<'a>(assembled: &'a Assembled<'_>) -> impl Iterator<Item = CaseRow<'a>> {
    all_groups(assembled).flat_map(move |record| {
        let golden: BTreeMap<&str, &CaseResult> =
            record.golden.iter().map(|result| (result.case_id.as_str(), result)).collect();
        let instance = assembled.instance_of(record);
        record.group.cases.iter().map(move |case| CaseRow {
            record,
            case,
            instance,
            golden: golden.get(case.case_id.as_str()).copied(),
        })
    })
}

/// Rows of `attempts`.
pub fn attempts<'a>(assembled: &'a Assembled<'_>) -> impl Iterator<Item = AttemptRow<'a>> {
    let row = |record: &'a GroupEvidence, attempt: &'a AttemptFacts| AttemptRow {
        record,
        attempt,
        world: attempt.world.to_string(),
    };
    all_groups(assembled).flat_map(move |record| record.attempts.iter().map(move |one| row(record, one)))
}

/// Rows of `traces`.
pub fn traces<'a>(assembled: &'a Assembled<'_>) -> impl Iterator<Item = TraceRow<'a>> {
    all_groups(assembled).flat_map(move |record| {
        let traced = assembled.instance_of(record).zip(record.traced.as_ref());
        traced.into_iter().flat_map(|(instance, traced)| {
            let mut functions: Vec<_> = called(traced).collect();
            functions.sort_by_key(|function| function.order);
            functions.into_iter().map(move |function| TraceRow { instance, function })
        })
    })
}

fn all_groups<'a>(assembled: &'a Assembled<'_>) -> impl Iterator<Item = &'a GroupEvidence> {
    assembled.repositories.iter().flat_map(|repository| repository.groups.iter().copied())
}
