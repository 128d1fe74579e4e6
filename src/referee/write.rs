//! What a run of the referee leaves: tables, evidence and a summary.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::scored::{Scored, line_of, spelled, write_scores};
use crate::dataset::schema::{ColumnOf, flag, number, real, text, texts};
use crate::dataset::write::table;
use crate::error::Result;
use crate::family::gistify::{Existence, Line, LineRun, Summary, summarize, summarize_by, weighted_baseline};
use crate::record::instance::{Axis, Instance};
use crate::score::{ComparedCase, Mean, Ratio};
use crate::store::write_json;

/// A row of `scores`.
#[derive(Debug, Clone, Serialize)]
struct ScoreRow {
    instance_id: String,
    slug: String,
    tier: String,
    hard_axes: Vec<String>,
    trace_length: u64,
    unique_files: u64,
    run: String,
    framework: Option<String>,
    model: Option<String>,
    setting: Option<String>,
    fidelity: Option<bool>,
    behaves: Option<bool>,
    class: Option<String>,
    detail: Option<String>,
    violations: Vec<String>,
    injection: Option<String>,
    attempts: u64,
    agreeing_attempts: u64,
    n_cases: u64,
    passed_cases: Option<u64>,
    agreeing_cases: Option<u64>,
    line_execution: Option<f64>,
    line_execution_statements: Option<f64>,
    line_existence: Option<f64>,
    line_existence_control: Option<f64>,
    trace_recall: Option<f64>,
    test_f1: Option<f64>,
    units: Option<u64>,
    units_executed: Option<u64>,
    units_existing: Option<u64>,
    lines: u64,
    steps: Option<u64>,
    hit_step_limit: Option<bool>,
    flags: Vec<&'static str>,
}

impl ScoreRow {
    fn new(scored: &Scored<'_>) -> Self {
        let Scored { instance, judged, run, .. } = scored;
        let (row, verdict) = (&judged.row, &judged.verdict);
        let rate = |ratio: Option<Ratio>| ratio.and_then(Ratio::rate);
        let part = |ratio: Option<Ratio>| ratio.map(|ratio| u64::from(ratio.part));
        let comparison = judged.comparison.as_ref();
        ScoreRow {
            instance_id: instance.instance_id.to_string(),
            slug: instance.slug.to_string(),
            tier: instance.tier.as_str().to_owned(),
            hard_axes: instance.hard_axes.iter().map(|axis: &Axis| axis.as_str().to_owned()).collect(),
            trace_length: instance.trace_length,
            unique_files: u64::from(instance.unique_files),
            run: (*run).to_owned(),
            framework: scored.said("framework").as_str().map(str::to_owned),
            model: scored.said("model").as_str().map(str::to_owned),
            setting: Some(scored.said("setting")).filter(|it| !it.is_null()).map(ToString::to_string),
            fidelity: verdict.fidelity,
            behaves: verdict.behaves,
            class: verdict.class.as_ref().and_then(spelled),
            detail: match &judged.lost {
                Some(_) => Some("lost".to_owned()),
                None => verdict.detail.as_ref().and_then(spelled),
            },
            violations: verdict.violations.iter().filter_map(spelled).collect(),
            injection: judged.injection.as_ref().and_then(spelled),
            attempts: judged.attempts.0.into(),
            agreeing_attempts: judged.attempts.1.into(),
            n_cases: u64::from(instance.n_cases),
            passed_cases: comparison.map(|one| u64::from(one.passed_cases)),
            agreeing_cases: comparison.map(|one| u64::from(one.agreeing_cases)),
            line_execution: rate(row.execution),
            line_execution_statements: rate(row.execution_statements),
            line_existence: rate(row.existence),
            line_existence_control: rate(row.existence_control),
            trace_recall: rate(row.trace_recall),
            test_f1: row.test_f1,
            units: row.existence.map(|ratio| u64::from(ratio.whole)),
            units_executed: part(row.execution),
            units_existing: part(row.existence),
            lines: judged.lines as u64,
            steps: scored.said("steps").as_u64(),
            hit_step_limit: scored.said("hit_step_limit").as_bool(),
            flags: scored.flags(),
        }
    }
}

fn score_columns() -> Vec<ColumnOf<ScoreRow>> {
    vec![
        text("instance_id", |row| Some(&row.instance_id)),
        text("slug", |row| Some(&row.slug)),
        text("tier", |row| Some(&row.tier)),
        texts("hard_axes", |row| Some(row.hard_axes.iter().map(String::as_str).collect())),
        number("trace_length", |row| Some(row.trace_length)),
        number("unique_files", |row| Some(row.unique_files)),
        text("run", |row| Some(&row.run)),
        text("framework", |row| row.framework.as_deref()),
        text("model", |row| row.model.as_deref()),
        text("setting", |row| row.setting.as_deref()),
        flag("fidelity", |row| row.fidelity),
        flag("behaves", |row| row.behaves),
        text("class", |row| row.class.as_deref()),
        text("detail", |row| row.detail.as_deref()),
        texts("violations", |row| Some(row.violations.iter().map(String::as_str).collect())),
        text("injection", |row| row.injection.as_deref()),
        number("attempts", |row| Some(row.attempts)),
        number("agreeing_attempts", |row| Some(row.agreeing_attempts)),
        number("n_cases", |row| Some(row.n_cases)),
        number("passed_cases", |row| row.passed_cases),
        number("agreeing_cases", |row| row.agreeing_cases),
        real("line_execution", |row| row.line_execution),
        real("line_execution_statements", |row| row.line_execution_statements),
        real("line_existence", |row| row.line_existence),
        real("line_existence_control", |row| row.line_existence_control),
        real("trace_recall", |row| row.trace_recall),
        real("test_f1", |row| row.test_f1),
        number("units", |row| row.units),
        number("units_executed", |row| row.units_executed),
        number("units_existing", |row| row.units_existing),
        number("lines", |row| Some(row.lines)),
        number("steps", |row| row.steps),
        flag("hit_step_limit", |row| row.hit_step_limit),
        texts("flags", |row| Some(row.flags.clone())),
    ]
}

/// A row of `cases`.
struct CaseRow<'a> {
    scored: &'a Scored<'a>,
    case: &'a ComparedCase,
    difference: Option<String>,
}

fn case_columns<'a>() -> Vec<ColumnOf<CaseRow<'a>>> {
    vec![
        text("instance_id", |row| Some(row.scored.instance.instance_id.as_str())),
        text("run", |row| Some(row.scored.run)),
        text("case", |row| Some(&row.case.case)),
        flag("agrees", |row| Some(row.case.difference.is_none())),
        text("difference", |row| row.difference.as_deref()),
        text("expected", |row| Some(row.case.expected.as_str()).filter(|text| !text.is_empty())),
        text("seen", |row| Some(row.case.seen.as_str()).filter(|text| !text.is_empty())),
    ]
}

/// A row of `lines`.
struct LineRow<'a> {
    scored: &'a Scored<'a>,
    line: &'a Line,
    kind: String,
    exists: Option<bool>,
    executed: Option<bool>,
    place: Option<(&'a str, u32)>,
}

fn line_columns<'a>() -> Vec<ColumnOf<LineRow<'a>>> {
    vec![
        text("instance_id", |row| Some(row.scored.instance.instance_id.as_str())),
        text("run", |row| Some(row.scored.run)),
        number("first", |row| Some(row.line.first.into())),
        number("last", |row| Some(row.line.last.into())),
        text("type", |row| Some(&row.kind)),
        texts("block", |row| Some(row.line.block.iter().map(String::as_str).collect())),
        flag("exists", |row| row.exists),
        flag("executed", |row| row.executed),
        text("file", |row| row.place.map(|(file, _)| file)),
        number("line", |row| row.place.map(|(_, line)| line.into())),
    ]
}

fn line_row<'a>(scored: &'a Scored<'a>, line: &'a Line, executed: Option<LineRun>) -> LineRow<'a> {
    let executed = match executed {
        Some(LineRun::Executed) => Some(true),
        Some(LineRun::Missed) => Some(false),
        Some(LineRun::NotCounted) | None => None,
    };
    let (exists, place) = match &line.existence {
        Existence::NotCounted => (None, None),
        Existence::Missing => (Some(false), None),
        Existence::Found { place } => (Some(true), Some((place.file.as_str(), place.line))),
    };
    LineRow { scored, line, kind: spelled(&line.line_type).unwrap_or_default(), exists, executed, place }
}

/// Instances by what tells that a submission is not the original.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct Rules {
    /// Edited texts of the test.
    pub(crate) variants: usize,
    /// A failure that is planted, alone.
    pub(crate) planted_failure: usize,
    /// The own run of a command that shows the same whatever it is given, alone.
    pub(crate) own_run: usize,
}

/// The numbers of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Report {
    pub(crate) run: String,
    pub(crate) meta: Value,
    pub(crate) rules: Rules,
    /// Instances without a submission; they count as failures.
    pub(crate) absent: usize,
    /// Those that are right where a constant would be as well: the instance has `no-other-input`.
    pub(crate) right_without_other_input: usize,
    /// Of these, those that run little: flag `enters-few-functions`.
    pub(crate) enters_few_functions: usize,
    pub(crate) all: Summary,
    pub(crate) repositories: BTreeMap<String, Summary>,
    pub(crate) tiers: BTreeMap<String, Summary>,
    /// The hard subset, and what would be expected if it were no harder than its repositories.
    pub(crate) hard: Option<Summary>,
    pub(crate) hard_baseline: Option<f64>,
}

impl Report {
    /// Sums up one run.
    pub(crate) fn new(
        run: &str,
        meta: &Value,
        (absent, rules): (usize, Rules),
        scored: &[&Scored<'_>],
    ) -> Self {
        let rows = || scored.iter().map(|one| &one.judged.row);
        let by = |key: fn(&Instance) -> String| {
            summarize_by(scored.iter().map(|one| (key(one.instance), &one.judged.row)))
        };
        let repositories = by(|instance| instance.slug.to_string());
        let hard: Vec<&&Scored<'_>> =
            scored.iter().filter(|one| !one.instance.hard_axes.is_empty()).collect();
        let mut sizes: BTreeMap<String, u32> = BTreeMap::new();
        for one in &hard {
            *sizes.entry(one.instance.slug.to_string()).or_default() += 1;
        }
        let whole: BTreeMap<String, Mean> =
            repositories.iter().map(|(slug, summary)| (slug.clone(), summary.fidelity)).collect();
        Report {
            run: run.to_owned(),
            meta: meta.clone(),
            rules,
            absent,
            right_without_other_input: scored.iter().filter(|one| one.is_right_without_other_input()).count(),
            enters_few_functions: scored.iter().filter(|one| !one.flags().is_empty()).count(),
            all: summarize(rows()),
            tiers: by(|instance| instance.tier.as_str().to_owned()),
            hard: (!hard.is_empty()).then(|| summarize(hard.iter().map(|one| &one.judged.row))),
            hard_baseline: weighted_baseline(&sizes, &whole),
            repositories,
        }
    }
}

/// The line of a submission in `scores.jsonl`, without its end.
///
/// # Errors
/// Never for what the referee made: it is a text.
pub(crate) fn line(scored: &Scored<'_>) -> Result<String> {
    line_of(&ScoreRow::new(scored))
}

/// What is known of a submission beside its row.
pub(crate) fn evidence_of(one: &Scored<'_>) -> Value {
    let judged = &one.judged;
    let mut evidence = json!({
        "instance_id": one.instance.instance_id,
        "run": one.run,
        "meta": one.meta,
        "verdict": judged.verdict,
        "injection": judged.injection,
        "replacement": judged.replacement,
        "unreadable": judged.unreadable,
        "troubles": one.troubles,
        "sha256": judged.sha256,
        "evaluated_sha256": judged.evaluated_sha256,
        "findings": judged.findings,
        "import_attempts": judged.import_attempts,
        "sabotage": judged.sabotage,
        "variants": judged.variants,
        "untraced": judged.untraced,
        "executed": judged.executed,
        "lost": judged.lost,
    });
    if !judged.output.is_empty() {
        evidence["output"] = Value::from(judged.output.as_str());
    }
    evidence
}

/// Writes tables, evidence and summary of one run into a folder.
///
/// # Errors
/// IO errors with the path.
pub(crate) fn run(folder: &Path, report: &Report, scored: &[Scored<'_>]) -> Result<()> {
    write_scores(folder, score_columns(), scored.iter().map(ScoreRow::new).collect())?;
    let cases = scored
        .iter()
        .flat_map(|one| {
            one.judged.comparison.iter().flat_map(move |all| all.cases.iter().map(move |case| (one, case)))
        })
        .map(|(scored, case)| CaseRow {
            scored,
            case,
            difference: case.difference.as_ref().and_then(spelled),
        });
    table(folder, "cases", case_columns(), cases)?;
    let units = scored.iter().flat_map(|one| {
        let executed = one.judged.executed_by_line();
        let lines = one.judged.submitted_lines().iter();
        lines.map(move |line| line_row(one, line, executed.get(&line.first).copied()))
    });
    table(folder, "lines", line_columns(), units)?;
    let evidence = folder.join("evidence");
    fs_err::create_dir_all(&evidence)?;
    for one in scored {
        write_json(&evidence.join(format!("{}.json", one.instance.instance_id)), &evidence_of(one))?;
    }
    write_json(&folder.join("summary.json"), report)
}
