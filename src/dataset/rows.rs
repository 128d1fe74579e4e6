//! Rows of the tables, which share the records. Pure. What a column is called and holds is in [`super::schema`].

use std::collections::BTreeMap;
use std::rc::Rc;

use super::private::Private;
use super::rated::Rated;
use crate::record::collected::Case;
use crate::record::duration::median;
use crate::record::evidence::{AttemptFacts, GroupEvidence};
use crate::record::outcome::{CaseResult, Method};
use crate::record::trace::{FunctionCalls, Traced};
use crate::record::variant::Variant;
use crate::record::verdict::{Evidence, Verdict};
use crate::record::world::World;

/// A row of `groups`.
#[derive(Debug)]
pub struct GroupRow<'a> {
    pub record: Rc<GroupEvidence>,
    pub instance: Option<&'a Rated>,
    /// Whether it is an instance, or judges one.
    pub is_used: bool,
    pub cause: Option<String>,
    pub flags: Vec<String>,
    /// JSON text; none when kept.
    pub evidence: Option<String>,
    pub test_class: Option<String>,
    pub worlds: Vec<String>,
    /// Median over the finished base attempts of the fork tree.
    pub duration_ms: Option<f64>,
    /// Median over the finished cold runs.
    pub cold_ms: Option<f64>,
    /// `pytest`, or the kind of a command.
    pub kind: &'static str,
    /// Program and arguments of a command.
    pub argv: Option<Vec<String>>,
    /// What names a command.
    pub origin: Option<String>,
}

impl<'a> GroupRow<'a> {
    /// The row of a group; what its evidence says of `private` places is hidden. `variants` are those it has, as far as is
    /// known.
    pub fn new(
        record: &Rc<GroupEvidence>,
        (instance, is_used): (Option<&'a Rated>, bool),
        variants: Option<&[Variant]>,
        private: &Private,
    ) -> Self {
        GroupRow {
            record: Rc::clone(record),
            instance,
            is_used,
            cause: record.verdict.cause().map(ToString::to_string),
            flags: instance.map_or_else(|| super::assemble::flags(record, variants), |one| one.flags.clone()),
            evidence: evidence(&record.verdict, private),
            test_class: super::assemble::test_class(record),
            worlds: super::assemble::worlds(&record.attempts),
            duration_ms: median_duration(&record.attempts, Method::Fork),
            cold_ms: median_duration(&record.attempts, Method::Cold),
            kind: record.group.command().kind(),
            argv: record.group.entry.as_ref().map(|entry| entry.command.words()),
            origin: record.group.entry.as_ref().map(|entry| entry.origin.to_string()),
        }
    }

    /// A measurement of the trace, where one was taken.
    pub fn traced<'r, T>(&'r self, measure: impl Fn(&'r Traced) -> T) -> Option<T> {
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
    pub record: Rc<GroupEvidence>,
    pub instance: Option<&'a Rated>,
    case: usize,
    golden: Option<usize>,
    /// JSON text of what a kept command showed beside its output.
    pub command: Option<String>,
}

impl CaseRow<'_> {
    pub fn case(&self) -> &Case {
        &self.record.group.cases[self.case]
    }

    pub fn golden(&self) -> Option<&CaseResult> {
        self.golden.map(|at| &self.record.golden[at])
    }

    /// Golden output of the case, when its group is kept.
    pub fn output(&self, stream: impl Fn(&CaseResult) -> &str) -> Option<&str> {
        self.golden().filter(|_| self.record.verdict.is_kept()).map(stream)
    }
}

/// A row of `attempts`.
#[derive(Debug)]
pub struct AttemptRow {
    pub record: Rc<GroupEvidence>,
    pub world: String,
    attempt: usize,
}

impl AttemptRow {
    pub fn attempt(&self) -> &AttemptFacts {
        &self.record.attempts[self.attempt]
    }
}

/// A row of `traces`.
#[derive(Debug)]
pub struct TraceRow<'a> {
    pub instance: &'a Rated,
    pub function: FunctionCalls,
}

/// Rows of `cases` of one group.
pub fn cases<'a>(
    record: &Rc<GroupEvidence>,
    instance: Option<&'a Rated>,
) -> impl Iterator<Item = CaseRow<'a>> {
    let results = record.golden.iter().enumerate();
    let golden: BTreeMap<&str, usize> = results.map(|(at, result)| (result.case_id.as_str(), at)).collect();
    let row = |(case, of_case): (usize, &Case)| {
        let golden = golden.get(of_case.case_id.as_str()).copied();
        let command = golden.and_then(|at| record.golden[at].command.as_ref());
        let command = command.filter(|_| record.verdict.is_kept());
        CaseRow {
            record: Rc::clone(record),
            instance,
            case,
            golden,
            command: command.and_then(|command| serde_json::to_string(command).ok()),
        }
    };
    record.group.cases.iter().enumerate().map(row).collect::<Vec<_>>().into_iter()
}

/// Rows of `attempts` of one group.
pub fn attempts(record: &Rc<GroupEvidence>) -> impl Iterator<Item = AttemptRow> {
    record.attempts.iter().enumerate().map(|(attempt, made)| AttemptRow {
        record: Rc::clone(record),
        world: made.world.to_string(),
        attempt,
    })
}

/// Rows of `traces` of one group, whose trace names these functions: none where it is not published.
pub fn traces(
    mut functions: Vec<FunctionCalls>,
    instance: Option<&Rated>,
) -> impl Iterator<Item = TraceRow<'_>> {
    functions.retain(FunctionCalls::is_called);
    functions.sort_by_key(|function| function.order);
    let row = |instance| functions.into_iter().map(move |function| TraceRow { instance, function });
    instance.map(row).into_iter().flatten()
}
