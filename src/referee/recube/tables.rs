//! What a run of submissions leaves: a row for each submission, a row for each case, and rates.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::judge::Judged;
use crate::dataset::recube::RecubeInstance;
use crate::dataset::schema::{ColumnOf, borrowed, number, real, text, texts};
use crate::dataset::write::table;
use crate::error::Result;
use crate::family::recube::score::{
    Class, Quarter, Rates, Scored, ScoredCase, Summary, coverage, kendall, quartiles, score,
};
use crate::record::outcome::Outcome;
use crate::record::recube::Kind;
use crate::referee::scored::{counted, line_of, spelled, write_scores};
use crate::score::{Ratio, spearman, wilson};
use crate::store::write_json;

/// A judged submission with what it is of.
pub(crate) struct Row<'a> {
    pub(crate) instance: &'a RecubeInstance,
    /// What its author says about it.
    pub(crate) meta: &'a Value,
    pub(crate) has_folder: bool,
    pub(crate) judged: Judged,
    /// Its part by how often the instances are solved in the base run; none without one.
    pub(crate) quarter: Option<Quarter>,
    /// Calling files that the agent viewed; none without a trajectory.
    pub(crate) viewed: Option<Vec<String>>,
}

impl Row<'_> {
    fn scored(&self) -> Scored {
        let Judged { class, cases, .. } = &self.judged;
        Scored { class: *class, has_folder: self.has_folder, cases: cases.clone() }
    }

    /// The share of its cases that passed; none of what was lost, and where no case judges.
    pub(crate) fn pass_rate(&self) -> Option<f64> {
        let (passed, all) = self.scored().passed(|_| true);
        (self.judged.class != Class::Lost && all > 0).then(|| f64::from(passed) / f64::from(all))
    }

    /// The share of the calling files that were viewed; none without a trajectory, and where nothing calls.
    fn coverage(&self) -> Option<f64> {
        let viewed: Vec<&str> = self.viewed.as_ref()?.iter().map(String::as_str).collect();
        let callers: Vec<&str> = self.instance.callers.iter().map(String::as_str).collect();
        coverage(&viewed, &callers)
    }
}

/// A row of `scores`.
#[derive(Debug, Clone, Serialize)]
struct ScoreRow {
    instance_id: String,
    slug: String,
    target: String,
    tier: &'static str,
    class: String,
    detail: Option<String>,
    flags: Vec<String>,
    left_masked: Vec<String>,
    passed: u64,
    total: u64,
    passed_external: u64,
    total_external: u64,
    passed_internal: u64,
    total_internal: u64,
    cost: Option<f64>,
    turns: Option<u64>,
    quarter: Option<&'static str>,
    viewed_callers: Option<Vec<String>>,
    caller_coverage: Option<f64>,
}

impl ScoreRow {
    fn of(row: &Row<'_>) -> Self {
        let scored = row.scored();
        let passed = |counts: &dyn Fn(&ScoredCase) -> bool| {
            let (passed, total) = scored.passed(counts);
            (u64::from(passed), u64::from(total))
        };
        let ((passed_all, total), (passed_external, total_external)) =
            (passed(&|_| true), passed(&|case| case.kind == Kind::External));
        ScoreRow {
            instance_id: row.instance.head.instance_id.to_string(),
            slug: row.instance.head.slug.to_string(),
            target: row.instance.target.clone(),
            tier: row.instance.tier.as_str(),
            class: spelled(&row.judged.class).unwrap_or_default(),
            detail: row.judged.detail.clone(),
            flags: row.judged.flags.clone(),
            left_masked: row.judged.left_masked.clone(),
            passed: passed_all,
            total,
            passed_external,
            total_external,
            passed_internal: passed_all - passed_external,
            total_internal: total - total_external,
            cost: row.meta["cost"].as_f64(),
            turns: row.meta["turns"].as_u64(),
            quarter: row.quarter.map(Quarter::as_str),
            viewed_callers: row.viewed.clone(),
            caller_coverage: row.coverage(),
        }
    }
}

fn scores() -> Vec<ColumnOf<ScoreRow>> {
    vec![
        text("instance_id", |row| Some(&row.instance_id)),
        text("slug", |row| Some(&row.slug)),
        text("target", |row| Some(&row.target)),
        text("tier", |row| Some(row.tier)),
        text("class", |row| Some(&row.class)),
        text("detail", |row| row.detail.as_deref()),
        texts("flags", |row| Some(borrowed(&row.flags))),
        texts("left_masked", |row| Some(borrowed(&row.left_masked))),
        number("passed", |row| Some(row.passed)),
        number("total", |row| Some(row.total)),
        number("passed_external", |row| Some(row.passed_external)),
        number("total_external", |row| Some(row.total_external)),
        number("passed_internal", |row| Some(row.passed_internal)),
        number("total_internal", |row| Some(row.total_internal)),
        real("cost", |row| row.cost),
        number("turns", |row| row.turns),
        text("quarter", |row| row.quarter),
        texts("viewed_callers", |row| row.viewed_callers.as_deref().map(borrowed)),
        real("caller_coverage", |row| row.caller_coverage),
    ]
}

struct CaseRow<'a> {
    instance: &'a RecubeInstance,
    case: &'a ScoredCase,
}

fn cases<'a>() -> Vec<ColumnOf<CaseRow<'a>>> {
    vec![
        text("instance_id", |row| Some(row.instance.head.instance_id.as_str())),
        text("case_id", |row| Some(&row.case.id)),
        text("kind", |row| Some(row.case.kind.as_str())),
        text("entry", |row| Some(row.case.way.as_str())),
        text("outcome", |row| row.case.outcome.map(Outcome::as_str)),
    ]
}

/// What a run comes to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Report {
    pub(crate) run: String,
    /// What the run says of itself.
    pub(crate) meta: Value,
    #[serde(flatten)]
    pub(crate) rates: Summary,
    /// Wilson's 95 % interval of the share of instances all of whose cases passed, in percent.
    pub(crate) spr_interval: Option<(f64, f64)>,
    /// Submissions by class.
    pub(crate) classes: BTreeMap<String, u32>,
    pub(crate) flags: BTreeMap<String, u32>,
    /// Rates over all cases, by domain; by repository where a repository has none.
    pub(crate) by_domain: BTreeMap<String, Rates>,
    pub(crate) by_tier: BTreeMap<String, Rates>,
    /// Rates and coverage of each part, by how often the instances are solved in the base run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) by_quarter: BTreeMap<Quarter, Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) coverage: Option<Coverage>,
}

/// A part of the instances.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Part {
    #[serde(flatten)]
    pub(crate) rates: Rates,
    /// The mean coverage of those of which it is known.
    pub(crate) coverage: Option<f64>,
}

/// How many of the calling files agents viewed, and whether that goes with what passed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Coverage {
    /// Instances with calling files and a trajectory.
    pub(crate) n: usize,
    pub(crate) mean: f64,
    /// Instances with a pass rate between 0 and 1: the correlations are over these.
    pub(crate) correlated: usize,
    pub(crate) kendall: Option<f64>,
    pub(crate) spearman: Option<f64>,
}

impl Coverage {
    /// None where no coverage is known.
    fn of(rows: &[Row<'_>]) -> Option<Self> {
        let known: Vec<f64> = rows.iter().filter_map(Row::coverage).collect();
        let pairs: Vec<(f64, f64)> = rows
            .iter()
            .filter_map(|row| Some((row.coverage()?, row.pass_rate()?)))
            .filter(|(_, rate)| *rate > 0.0 && *rate < 1.0)
            .collect();
        Some(Coverage {
            n: known.len(),
            mean: mean(&known)?,
            correlated: pairs.len(),
            kendall: kendall(&pairs),
            spearman: spearman(&pairs).map(|found| found.r),
        })
    }
}

fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// The parts of instances by their pass rates in a run.
pub(crate) fn parts(rows: &[Row<'_>]) -> BTreeMap<String, Quarter> {
    let ids: Vec<(String, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.instance.head.instance_id.to_string(), row.pass_rate()?)))
        .collect();
    let rates: Vec<(&str, f64)> = ids.iter().map(|(id, rate)| (id.as_str(), *rate)).collect();
    quartiles(&rates).into_iter().map(|(id, quarter)| (id.to_owned(), quarter)).collect()
}

impl Report {
    pub(crate) fn new(run: &str, meta: &Value, rows: &[Row<'_>]) -> Self {
        let scored: Vec<Scored> = rows.iter().map(Row::scored).collect();
        let rates = score(&scored);
        let solved = rates.all.spr.map(|spr| (spr * f64::from(rates.all.n) / 100.0).round() as u32);
        let interval = solved.and_then(|part| wilson(Ratio { part, whole: rates.all.n }));
        let (classes, flags) = counted(
            rows.iter()
                .map(|row| (spelled(&row.judged.class).unwrap_or_default(), row.judged.flags.as_slice())),
        );
        let by = |key: &dyn Fn(&RecubeInstance) -> String| {
            let mut parts: BTreeMap<String, Vec<Scored>> = BTreeMap::new();
            for (row, scored) in rows.iter().zip(&scored) {
                parts.entry(key(row.instance)).or_default().push(scored.clone());
            }
            parts.into_iter().map(|(key, part)| (key, score(&part).all)).collect()
        };
        let mut quarters: BTreeMap<Quarter, (Vec<Scored>, Vec<f64>)> = BTreeMap::new();
        for (row, scored) in rows.iter().zip(&scored) {
            let Some(quarter) = row.quarter else { continue };
            let part = quarters.entry(quarter).or_default();
            part.0.push(scored.clone());
            part.1.extend(row.coverage());
        }
        let part = |(scored, covered): (Vec<Scored>, Vec<f64>)| Part {
            rates: score(&scored).all,
            coverage: mean(&covered),
        };
        Report {
            by_quarter: quarters.into_iter().map(|(quarter, rows)| (quarter, part(rows))).collect(),
            coverage: Coverage::of(rows),
            run: run.to_owned(),
            meta: meta.clone(),
            spr_interval: interval.map(|(low, high)| (100.0 * low, 100.0 * high)),
            rates,
            classes,
            flags,
            by_domain: by(&|one| one.domain.clone().unwrap_or_else(|| one.head.slug.to_string())),
            by_tier: by(&|one| one.tier.as_str().to_owned()),
        }
    }
}

/// The line of `scores.jsonl` of a submission, without its end.
///
/// # Errors
/// A row that cannot be encoded, which is a bug.
pub(crate) fn line(row: &Row<'_>) -> Result<String> {
    line_of(&ScoreRow::of(row))
}

/// What a judgement follows from: its cases, as in the table `cases`.
pub(crate) fn evidence(judged: &Judged) -> Value {
    let of_case = |case: &ScoredCase| {
        json!({
            "case_id": case.id,
            "kind": case.kind.as_str(),
            "entry": case.way.as_str(),
            "outcome": case.outcome.map(Outcome::as_str),
        })
    };
    json!({ "cases": judged.cases.iter().map(of_case).collect::<Vec<_>>() })
}

/// Writes the tables of a run.
///
/// # Errors
/// IO errors with the path; rows that cannot be encoded, which is a bug.
pub(crate) fn write(folder: &Path, report: &Report, rows: &[Row<'_>]) -> Result<()> {
    write_scores(folder, scores(), rows.iter().map(ScoreRow::of).collect())?;
    let each = rows.iter().flat_map(|row| {
        let instance = row.instance;
        row.judged.cases.iter().map(move |case| CaseRow { instance, case })
    });
    table(folder, "cases", cases(), each)?;
    write_json(&folder.join("summary.json"), report)
}
