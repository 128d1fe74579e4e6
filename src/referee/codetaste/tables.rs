//! What a run of patches leaves: a row for each, a row for each pattern, and means.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::judge::{Class, Judged};
use crate::dataset::codetaste::CodetasteInstance;
use crate::dataset::schema::{ColumnOf, borrowed, flag, number, real, text, texts};
use crate::dataset::write::table;
use crate::error::Result;
use crate::family::codetaste::score::{Average, Numbers, Side};
use crate::record::codetaste::PatternRow;
use crate::referee::scored::{counted, spelled, write_scores};
use crate::store::write_json;

/// A judged patch with what it is of.
pub(crate) struct Row<'a> {
    pub(crate) instance: &'a CodetasteInstance,
    pub(crate) patterns: &'a [PatternRow],
    /// What its author says about it.
    pub(crate) meta: &'a Value,
    pub(crate) judged: Judged,
}

/// A row of `scores`.
#[derive(Debug, Clone, Serialize)]
struct ScoreRow {
    instance_id: String,
    slug: String,
    repo: String,
    tier: &'static str,
    class: String,
    detail: Option<String>,
    pass: Option<bool>,
    pass_set: Option<bool>,
    ifr: Option<f64>,
    ifr_plus: Option<f64>,
    ifr_minus: Option<f64>,
    ifr_graded: Option<f64>,
    alignment: Option<f64>,
    alignment_plus: Option<f64>,
    alignment_minus: Option<f64>,
    prec: Option<f64>,
    prec_plus: Option<f64>,
    prec_minus: Option<f64>,
    strict: Option<bool>,
    f1: Option<f64>,
    lines_added: Option<u64>,
    lines_removed: Option<u64>,
    files_changed: u64,
    passed: Option<u64>,
    failed: Option<u64>,
    skipped: Option<u64>,
    tests_collected: Option<u64>,
    p_min: u64,
    f_max: u64,
    must_pass_missing: u64,
    flags: Vec<String>,
    finish_reason: Option<String>,
    cost: Option<f64>,
    duration_ms: f64,
}

impl ScoreRow {
    fn of(row: &Row<'_>) -> Self {
        let (judged, head) = (&row.judged, &row.instance.head);
        let number = |of: fn(&Numbers) -> Option<f64>| judged.numbers.as_ref().and_then(of);
        let counted = |count: Option<i64>| count.map(|count| u64::try_from(count).unwrap_or_default());
        let counts = judged.counts;
        ScoreRow {
            instance_id: head.instance_id.to_string(),
            slug: head.slug.to_string(),
            repo: head.repo.clone(),
            tier: row.instance.tier.as_str(),
            class: spelled(&judged.class).unwrap_or_default(),
            detail: judged.detail.clone(),
            pass: judged.numbers.and_then(|numbers| numbers.pass),
            pass_set: judged.pass_set,
            ifr: number(|numbers| numbers.ifr),
            ifr_plus: number(|numbers| numbers.ifr_plus),
            ifr_minus: number(|numbers| numbers.ifr_minus),
            ifr_graded: judged.graded,
            alignment: number(|numbers| numbers.alignment),
            alignment_plus: number(|numbers| numbers.alignment_plus),
            alignment_minus: number(|numbers| numbers.alignment_minus),
            prec: number(|numbers| Some(numbers.prec)),
            prec_plus: number(|numbers| Some(numbers.prec_plus)),
            prec_minus: number(|numbers| Some(numbers.prec_minus)),
            strict: judged.numbers.and_then(|numbers| numbers.strict),
            f1: number(|numbers| numbers.f1),
            lines_added: judged.numbers.map(|numbers| numbers.lines_added),
            lines_removed: judged.numbers.map(|numbers| numbers.lines_removed),
            files_changed: judged.files_changed,
            passed: counted(counts.map(|counts| counts.passed)),
            failed: counted(counts.map(|counts| counts.failed)),
            skipped: counted(counts.map(|counts| counts.skipped)),
            tests_collected: counted(counts.map(|counts| counts.total)),
            p_min: row.instance.p_min,
            f_max: row.instance.f_max,
            must_pass_missing: judged.missing.len() as u64,
            flags: judged.flags.clone(),
            finish_reason: row.meta["finish_reason"].as_str().map(str::to_owned),
            // Below 0 is unknown.
            cost: row.meta["cost"].as_f64().filter(|cost| *cost >= 0.0),
            duration_ms: judged.duration_ms,
        }
    }
}

fn scores() -> Vec<ColumnOf<ScoreRow>> {
    vec![
        text("instance_id", |row| Some(&row.instance_id)),
        text("slug", |row| Some(&row.slug)),
        text("repo", |row| Some(&row.repo)),
        text("tier", |row| Some(row.tier)),
        text("class", |row| Some(&row.class)),
        text("detail", |row| row.detail.as_deref()),
        flag("pass", |row| row.pass),
        flag("pass_set", |row| row.pass_set),
        real("ifr", |row| row.ifr),
        real("ifr_plus", |row| row.ifr_plus),
        real("ifr_minus", |row| row.ifr_minus),
        real("ifr_graded", |row| row.ifr_graded),
        real("alignment", |row| row.alignment),
        real("alignment_plus", |row| row.alignment_plus),
        real("alignment_minus", |row| row.alignment_minus),
        real("prec", |row| row.prec),
        real("prec_plus", |row| row.prec_plus),
        real("prec_minus", |row| row.prec_minus),
        flag("strict", |row| row.strict),
        real("f1", |row| row.f1),
        number("lines_added", |row| row.lines_added),
        number("lines_removed", |row| row.lines_removed),
        number("files_changed", |row| Some(row.files_changed)),
        number("passed", |row| row.passed),
        number("failed", |row| row.failed),
        number("skipped", |row| row.skipped),
        number("tests_collected", |row| row.tests_collected),
        number("p_min", |row| Some(row.p_min)),
        number("f_max", |row| Some(row.f_max)),
        number("must_pass_missing", |row| Some(row.must_pass_missing)),
        texts("flags", |row| Some(borrowed(&row.flags))),
        text("finish_reason", |row| row.finish_reason.as_deref()),
        real("cost", |row| row.cost),
        real("duration_ms", |row| Some(row.duration_ms)),
    ]
}

/// A pattern on the tree that a patch makes.
struct MatchRow<'a> {
    instance: &'a CodetasteInstance,
    pattern: &'a PatternRow,
    matches: u64,
}

fn patterns<'a>() -> Vec<ColumnOf<MatchRow<'a>>> {
    vec![
        text("instance_id", |row| Some(row.instance.head.instance_id.as_str())),
        text("pattern_id", |row| Some(&row.pattern.id)),
        text("side", |row| Some(row.pattern.side.as_str())),
        number("m", |row| Some(row.matches)),
        flag("satisfied", |row| Some((row.matches > 0) == (row.pattern.side == Side::Additive))),
    ]
}

/// Means over instances, in percent but for lines and dollars.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Means {
    pub(crate) pass: Average,
    pub(crate) pass_set: Average,
    pub(crate) ifr: Average,
    pub(crate) ifr_plus: Average,
    pub(crate) ifr_minus: Average,
    pub(crate) ifr_graded: Average,
    pub(crate) alignment: Average,
    pub(crate) alignment_plus: Average,
    pub(crate) alignment_minus: Average,
    pub(crate) prec: Average,
    pub(crate) prec_plus: Average,
    pub(crate) prec_minus: Average,
    pub(crate) strict: Average,
    pub(crate) f1: Average,
    pub(crate) lines: Average,
    pub(crate) cost: Average,
}

impl Means {
    fn of<'a>(rows: impl IntoIterator<Item = &'a ScoreRow>) -> Self {
        let rows: Vec<&ScoreRow> = rows.into_iter().collect();
        let of = |value: fn(&ScoreRow) -> Option<f64>| Average::of(rows.iter().map(|row| value(row)));
        let percent = |value: fn(&ScoreRow) -> Option<f64>| {
            Average::of(rows.iter().map(|row| value(row).map(|value| 100.0 * value)))
        };
        Means {
            pass: percent(|row| row.pass.map(one)),
            pass_set: percent(|row| row.pass_set.map(one)),
            ifr: percent(|row| row.ifr),
            ifr_plus: percent(|row| row.ifr_plus),
            ifr_minus: percent(|row| row.ifr_minus),
            ifr_graded: percent(|row| row.ifr_graded),
            alignment: percent(|row| row.alignment),
            alignment_plus: percent(|row| row.alignment_plus),
            alignment_minus: percent(|row| row.alignment_minus),
            prec: percent(|row| row.prec),
            prec_plus: percent(|row| row.prec_plus),
            prec_minus: percent(|row| row.prec_minus),
            strict: percent(|row| row.strict.map(one)),
            f1: percent(|row| row.f1),
            lines: of(|row| Some((row.lines_added? + row.lines_removed?) as f64)),
            cost: of(|row| row.cost),
        }
    }
}

fn one(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

/// What a run comes to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Report {
    pub(crate) run: String,
    /// What the run says of itself.
    pub(crate) meta: Value,
    pub(crate) instances: usize,
    /// Instances without a patch, which are left out.
    pub(crate) absent: usize,
    pub(crate) lost: usize,
    pub(crate) all: Means,
    pub(crate) by_repo: BTreeMap<String, Means>,
    pub(crate) by_tier: BTreeMap<String, Means>,
    pub(crate) classes: BTreeMap<String, u32>,
    pub(crate) flags: BTreeMap<String, u32>,
}

impl Report {
    pub(crate) fn new(run: &str, meta: &Value, rows: &[Row<'_>]) -> Self {
        let scored: Vec<ScoreRow> = rows.iter().map(ScoreRow::of).collect();
        let (classes, flags) = counted(scored.iter().map(|row| (row.class.clone(), row.flags.as_slice())));
        let by = |key: &dyn Fn(&ScoreRow) -> String| {
            let mut parts: BTreeMap<String, Vec<&ScoreRow>> = BTreeMap::new();
            for row in &scored {
                parts.entry(key(row)).or_default().push(row);
            }
            parts.into_iter().map(|(key, part)| (key, Means::of(part))).collect()
        };
        let count = |class: Class| rows.iter().filter(|row| row.judged.class == class).count();
        Report {
            run: run.to_owned(),
            meta: meta.clone(),
            instances: rows.len(),
            absent: count(Class::NoSubmission),
            lost: count(Class::Lost),
            all: Means::of(&scored),
            by_repo: by(&|row| row.repo.clone()),
            by_tier: by(&|row| row.tier.to_owned()),
            classes,
            flags,
        }
    }
}

/// Writes the tables of a run.
///
/// # Errors
/// IO errors with the path; rows that cannot be encoded, which is a bug.
pub(crate) fn write(folder: &Path, report: &Report, rows: &[Row<'_>]) -> Result<()> {
    write_scores(folder, scores(), rows.iter().map(ScoreRow::of).collect())?;
    let each = rows.iter().flat_map(|row| {
        let measured = row.patterns.iter().filter(|_| row.judged.numbers.is_some());
        measured.map(|pattern| MatchRow {
            instance: row.instance,
            pattern,
            matches: row.judged.matches.get(&pattern.id).copied().unwrap_or_default(),
        })
    });
    table(folder, "patterns", patterns(), each)?;
    write_json(&folder.join("summary.json"), report)
}
