//! The columns of each table: name, type and where the value comes from.
//!
//! Counts are signed 64-bit integers, so that readers may subtract them; durations are milliseconds; list columns are
//! lists of their type also where every list is empty.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use polars::prelude::*;
use serde_json::{Map, Value, json};

use super::dictionary::Entry;
use super::rows::{AttemptRow, CaseRow, GroupRow, TraceRow};
use crate::record::entry::PYTEST;
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::{Axis, Head, Instance, Tier};
use crate::record::trace::Traced;
use crate::subset::{Measure, Member};

/// A row of `instances`, in whichever family.
pub(crate) trait InstanceRow: Clone + serde::Serialize {
    /// The columns of its table.
    fn columns() -> Vec<ColumnOf<Self>>;
    fn head(&self) -> &Head;
    /// Its tier, and whether it is among the hardest on an axis.
    fn rating(&self) -> (Tier, bool);
    /// Whether it is about a test, or a command of which kind.
    fn entry_kind(&self) -> &str {
        PYTEST
    }
}

impl InstanceRow for Instance {
    fn columns() -> Vec<ColumnOf<Self>> {
        instances()
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn rating(&self) -> (Tier, bool) {
        (self.tier, !self.hard_axes.is_empty())
    }

    fn entry_kind(&self) -> &str {
        &self.kind
    }
}

impl<R: InstanceRow> Member for R {
    fn instance_id(&self) -> &InstanceId {
        &self.head().instance_id
    }

    fn slug(&self) -> &RepoSlug {
        &self.head().slug
    }

    fn tier(&self) -> Tier {
        self.rating().0
    }

    fn kind(&self) -> &str {
        self.entry_kind()
    }

    fn is_top(&self) -> bool {
        self.rating().1
    }

    fn measured(&self, measure: Measure) -> Option<f64> {
        R::columns().iter().find(|column| column.name == measure.as_str())?.amount(self)
    }

    fn measurements(&self) -> BTreeMap<Measure, f64> {
        let columns = R::columns();
        let of = |measure: Measure| columns.iter().find(|column| column.name == measure.as_str());
        Measure::ALL.into_iter().filter_map(|one| Some((one, of(one)?.amount(self)?))).collect()
    }
}

/// A column of a table whose rows are `R`.
#[derive(Debug)]
pub struct ColumnOf<R> {
    pub name: &'static str,
    cells: Cells<R>,
}

#[derive(Debug)]
enum Cells<R> {
    Text(fn(&R) -> Option<&str>),
    Number(fn(&R) -> Option<u64>),
    Real(fn(&R) -> Option<f64>),
    Flag(fn(&R) -> Option<bool>),
    Texts(fn(&R) -> Option<Vec<&str>>),
    Numbers(fn(&R) -> Option<&[u32]>),
}

/// Turns rows into a data frame.
///
/// # Errors
/// When polars refuses the columns, which is a bug.
pub fn frame<R, B: Borrow<R>>(columns: &[ColumnOf<R>], rows: &[B]) -> PolarsResult<DataFrame> {
    DataFrame::new(rows.len(), columns.iter().map(|column| column.series(rows).into_column()).collect())
}

/// Each column with its type, null among it, and what it means.
pub(super) fn properties<R>(columns: &[ColumnOf<R>], entries: &[Entry]) -> Map<String, Value> {
    let of = |(column, (_, meaning)): (&ColumnOf<R>, &Entry)| {
        let mut cell = column.json_type();
        cell["description"] = (*meaning).into();
        (column.name.to_owned(), cell)
    };
    columns.iter().zip(entries).map(of).collect()
}

/// The names of columns with their types as they are read.
pub(crate) fn kinds<R>(columns: &[ColumnOf<R>]) -> PolarsResult<Vec<(&'static str, DataType)>> {
    let empty = frame::<R, R>(columns, &[])?;
    Ok(columns
        .iter()
        .map(|one| one.name)
        .zip(empty.columns().iter().map(|one| one.dtype().clone()))
        .collect())
}

impl<R> ColumnOf<R> {
    /// The JSON schema of its cells, each of which may be null.
    pub(crate) fn json_type(&self) -> Value {
        match self.cells {
            Cells::Text(_) => json!({ "type": ["string", "null"] }),
            Cells::Real(_) => json!({ "type": ["number", "null"] }),
            Cells::Flag(_) => json!({ "type": ["boolean", "null"] }),
            Cells::Number(_) => json!({ "type": ["integer", "null"] }),
            Cells::Texts(_) => json!({ "type": ["array", "null"], "items": { "type": "string" } }),
            Cells::Numbers(_) => json!({ "type": ["array", "null"], "items": { "type": "integer" } }),
        }
    }

    /// The cell of a row as JSON, as [`super::table::Table::value`] reads it.
    pub(crate) fn value(&self, row: &R) -> Value {
        match self.cells {
            Cells::Text(cell) => cell(row).into(),
            Cells::Real(cell) => cell(row).map_or(Value::Null, super::table::real),
            Cells::Flag(cell) => cell(row).into(),
            Cells::Number(cell) => cell(row).map(|number| i64::try_from(number).unwrap_or(i64::MAX)).into(),
            Cells::Texts(cell) => cell(row).into(),
            Cells::Numbers(cell) => cell(row).map(<[u32]>::to_vec).into(),
        }
    }

    /// The cell of a row as a number; of a list, how many it has.
    fn amount(&self, row: &R) -> Option<f64> {
        match self.cells {
            Cells::Number(cell) => cell(row).map(|number| number as f64),
            Cells::Real(cell) => cell(row),
            Cells::Texts(cell) => cell(row).map(|texts| texts.len() as f64),
            Cells::Text(_) | Cells::Flag(_) | Cells::Numbers(_) => None,
        }
    }

    fn series<B: Borrow<R>>(&self, rows: &[B]) -> Series {
        let (length, rows) = (rows.len(), rows.iter().map(Borrow::borrow));
        let name = PlSmallStr::from_static(self.name);
        match self.cells {
            Cells::Text(cell) => Series::new(name, rows.map(cell).collect::<Vec<_>>()),
            Cells::Real(cell) => Series::new(name, rows.map(cell).collect::<Vec<_>>()),
            Cells::Flag(cell) => Series::new(name, rows.map(cell).collect::<Vec<_>>()),
            Cells::Number(cell) => {
                let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
                Series::new(name, rows.map(|row| cell(row).map(signed)).collect::<Vec<_>>())
            }
            Cells::Texts(cell) => text_lists(name, rows.map(cell), length),
            Cells::Numbers(cell) => number_lists(name, rows.map(cell), length),
        }
    }
}

fn text_lists<'a>(
    name: PlSmallStr,
    cells: impl Iterator<Item = Option<Vec<&'a str>>>,
    rows: usize,
) -> Series {
    let mut builder = ListStringChunkedBuilder::new(name, rows, rows);
    for cell in cells {
        match cell {
            Some(texts) => builder.append_values_iter(texts.into_iter()),
            None => builder.append_null(),
        }
    }
    builder.finish().into_series()
}

fn number_lists<'a>(name: PlSmallStr, cells: impl Iterator<Item = Option<&'a [u32]>>, rows: usize) -> Series {
    let mut builder = ListPrimitiveChunkedBuilder::<Int64Type>::new(name, rows, rows, DataType::Int64);
    for cell in cells {
        match cell {
            Some(numbers) => builder.append_values_iter(numbers.iter().copied().map(i64::from)),
            None => builder.append_null(),
        }
    }
    builder.finish().into_series()
}

pub(crate) fn text<R>(name: &'static str, cell: fn(&R) -> Option<&str>) -> ColumnOf<R> {
    ColumnOf { name, cells: Cells::Text(cell) }
}

pub(crate) fn number<R>(name: &'static str, cell: fn(&R) -> Option<u64>) -> ColumnOf<R> {
    ColumnOf { name, cells: Cells::Number(cell) }
}

pub(crate) fn real<R>(name: &'static str, cell: fn(&R) -> Option<f64>) -> ColumnOf<R> {
    ColumnOf { name, cells: Cells::Real(cell) }
}

pub(crate) fn flag<R>(name: &'static str, cell: fn(&R) -> Option<bool>) -> ColumnOf<R> {
    ColumnOf { name, cells: Cells::Flag(cell) }
}

pub(crate) fn texts<R>(name: &'static str, cell: fn(&R) -> Option<Vec<&str>>) -> ColumnOf<R> {
    ColumnOf { name, cells: Cells::Texts(cell) }
}

pub(crate) fn numbers<R>(name: &'static str, cell: fn(&R) -> Option<&[u32]>) -> ColumnOf<R> {
    ColumnOf { name, cells: Cells::Numbers(cell) }
}

pub(crate) fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

fn axes(hard_axes: &[Axis]) -> Vec<&'static str> {
    hard_axes.iter().map(|axis: &Axis| axis.as_str()).collect()
}

/// The columns of `instances` of a family: those that every family has, then its own.
pub(crate) fn with_head<R: InstanceRow>(own: Vec<ColumnOf<R>>) -> Vec<ColumnOf<R>> {
    let mut columns = vec![
        text("instance_id", |row: &R| Some(row.head().instance_id.as_str())),
        text("family", |row| Some(row.head().family.as_str())),
        text("slug", |row| Some(row.head().slug.as_str())),
        text("repo", |row| Some(&row.head().repo)),
        text("commit", |row| Some(&row.head().commit)),
        text("base_commit", |row| row.head().base_commit.as_deref()),
        text("version", |row| Some(&row.head().version)),
        text("created_at", |row| Some(&row.head().created_at)),
        text("source", |row| Some(&row.head().source)),
        text("license", |row| row.head().license.as_deref()),
        text("python", |row| Some(&row.head().python)),
    ];
    columns.extend(own);
    columns
}

/// Columns of `instances`; the keys of `instances.jsonl` are the fields of [`Instance`] in the same order.
pub fn instances() -> Vec<ColumnOf<Instance>> {
    with_head(vec![
        text("group_id", |row| Some(&row.group_id)),
        text("test_file", |row| Some(&row.test_file)),
        text("test_class", |row| row.test_class.as_deref()),
        text("test_function", |row| Some(&row.test_function)),
        text("test_source", |row| row.test_source.as_deref()),
        number("test_line_start", |row| row.test_line_start.map(u64::from)),
        number("test_line_end", |row| row.test_line_end.map(u64::from)),
        text("entry_command", |row| Some(&row.entry_command)),
        text("prompt", |row| Some(&row.prompt)),
        texts("case_ids", |row| Some(borrowed(&row.case_ids))),
        texts("expected", |row| Some(borrowed(&row.expected))),
        texts("FAIL_TO_PASS", |row| Some(borrowed(&row.fail_to_pass))),
        texts("PASS_TO_PASS", |row| Some(borrowed(&row.pass_to_pass))),
        number("n_cases", |row| Some(row.n_cases.into())),
        number("trace_length", |row| Some(row.trace_length)),
        number("trace_length_package", |row| Some(row.trace_length_package)),
        number("trace_length_total", |row| Some(row.trace_length_total)),
        number("child_calls", |row| Some(row.child_calls)),
        number("unique_files", |row| Some(row.unique_files.into())),
        number("unique_functions", |row| Some(row.unique_functions.into())),
        number("executed_lines", |row| row.executed_lines),
        number("import_calls", |row| Some(row.import_calls)),
        texts("import_files", |row| Some(borrowed(&row.import_files))),
        texts("files", |row| Some(borrowed(&row.files))),
        flag("trace_stable", |row| Some(row.trace_stable)),
        text("tier", |row| Some(row.tier.as_str())),
        texts("hard_axes", |row| Some(axes(&row.hard_axes))),
        number("attempts", |row| Some(row.attempts.into())),
        real("flake_bound", |row| Some(row.flake_bound)),
        texts("worlds", |row| Some(borrowed(&row.worlds))),
        real("duration_ms", |row| row.duration_ms),
        text("environment", |row| Some(&row.environment)),
        text("lock_sha256", |row| Some(&row.lock_sha256)),
        text("image", |row| row.image.as_deref()),
        text("image_id", |row| row.image_id.as_deref()),
        text("code_sha256", |row| row.code_sha256.as_deref()),
        texts("flags", |row| Some(borrowed(&row.flags))),
        texts("data_files", |row| Some(borrowed(&row.data_files))),
        text("test_defined_in", |row| row.test_defined_in.as_deref()),
        number("variants", |row| row.variants.map(u64::from)),
        text("kind", |row| Some(&row.kind)),
        texts("argv", |row| row.argv.as_deref().map(borrowed)),
        text("stdin", |row| row.stdin.as_deref()),
        text("stdin_file", |row| row.stdin_file.as_deref()),
        text("cwd", |row| row.cwd.as_deref()),
        texts("env", |row| row.env.as_deref().map(borrowed)),
        texts("watched_files", |row| row.watched_files.as_deref().map(borrowed)),
        text("origin", |row| row.origin.as_deref()),
        text("witness", |row| row.witness.witness.as_deref()),
        text("witness_sha256", |row| row.witness.witness_sha256.as_deref()),
        number("witness_lines", |row| row.witness.witness_lines),
        number("witness_units", |row| row.witness.witness_units),
        number("witness_files", |row| row.witness.witness_files),
        real("witness_line_execution", |row| row.witness.witness_line_execution),
        real("witness_line_existence", |row| row.witness.witness_line_existence),
        number("mutants", |row| row.strength.mutants.map(u64::from)),
        real("mutation_score", |row| row.strength.mutation_score),
        real("needed_statements", |row| row.strength.needed_statements),
        texts("surviving_mutants", |row| row.strength.surviving_mutants.as_deref().map(borrowed)),
    ])
}

/// Columns of `groups`: `attempts` counts all attempts made, `agreeing` those that vouch for a kept group; the
/// measurements are null where no trace was taken.
pub fn groups<'a>() -> Vec<ColumnOf<GroupRow<'a>>> {
    vec![
        text("slug", |row| Some(row.record.slug.as_str())),
        text("group_id", |row| Some(&row.record.group.group_id)),
        text("instance_id", |row| Some(row.record.instance_id.as_str())),
        flag("kept", |row| Some(row.record.verdict.is_kept())),
        flag("published", |row| Some(row.is_used)),
        text("cause", |row| row.cause.as_deref()),
        texts("flags", |row| Some(borrowed(&row.flags))),
        text("evidence", |row| row.evidence.as_deref()),
        text("test_file", |row| Some(&row.record.group.file)),
        text("test_class", |row| row.test_class.as_deref()),
        text("test_function", |row| Some(&row.record.group.function)),
        texts("markers", |row| Some(borrowed(&row.record.group.markers))),
        texts("fixtures", |row| Some(borrowed(&row.record.group.fixtures))),
        number("n_cases", |row| Some(row.record.group.cases.len() as u64)),
        number("attempts", |row| Some(row.record.attempts.len() as u64)),
        number("agreeing", |row| Some(row.record.agreeing.into())),
        texts("worlds", |row| Some(borrowed(&row.worlds))),
        number("trace_length", |row| row.traced(|traced| traced.totals.trace_length)),
        number("trace_length_package", |row| row.record.trace_length_package),
        number("trace_length_total", |row| {
            row.traced(|traced| Some(traced.second.as_ref()?.total_calls)).flatten()
        }),
        number("child_calls", |row| row.traced(|traced| traced.child_calls)),
        number("unique_files", |row| row.traced(|traced| traced.totals.files.len() as u64)),
        number("unique_functions", |row| row.traced(|traced| u64::from(traced.totals.unique_functions))),
        number("executed_lines", |row| row.traced(|traced| traced.totals.executed_lines).flatten()),
        number("import_calls", |row| row.traced(|traced| traced.import_calls)),
        texts("import_files", |row| row.traced(|traced| borrowed(&traced.import_files))),
        texts("files", |row| row.traced(|traced| borrowed(&traced.totals.files))),
        flag("trace_stable", |row| row.traced(Traced::stable).flatten()),
        texts("unstable_functions", |row| row.traced(|traced| traced.unstable_functions().collect())),
        text("code_sha256", |row| row.record.traced.as_ref().map(|traced| traced.code_sha256.as_str())),
        text("tier", |row| row.instance.map(|instance| instance.tier.as_str())),
        texts("hard_axes", |row| row.instance.map(|instance| axes(&instance.hard_axes))),
        real("duration_ms", |row| row.duration_ms),
        real("cold_ms", |row| row.cold_ms),
        text("kind", |row| Some(row.kind)),
        texts("argv", |row| row.argv.as_deref().map(borrowed)),
        text("origin", |row| row.origin.as_deref()),
    ]
}

/// Columns of `cases`: `instance_id` only where the group is published; the golden observation is null where the base
/// attempts of a dropped group differ, its output for every dropped group.
pub fn cases<'a>() -> Vec<ColumnOf<CaseRow<'a>>> {
    vec![
        text("case_id", |row| Some(&row.case().case_id)),
        text("slug", |row| Some(row.record.slug.as_str())),
        text("group_id", |row| Some(&row.record.group.group_id)),
        text("instance_id", |row| row.instance.map(|instance| instance.instance_id.as_str())),
        text("parameters", |row| row.case().parameters.as_deref()),
        number("line", |row| row.case().line.map(u64::from)),
        text("outcome", |row| row.golden().map(|golden| golden.outcome.as_str())),
        text("exception", |row| row.golden().and_then(|golden| golden.exception.as_deref())),
        text("stdout", |row| row.output(|golden| &golden.stdout)),
        text("stderr", |row| row.output(|golden| &golden.stderr)),
        text("command", |row| row.command.as_deref()),
    ]
}

/// Columns of `attempts`.
pub fn attempts() -> Vec<ColumnOf<AttemptRow>> {
    vec![
        text("slug", |row| Some(row.record.slug.as_str())),
        text("group_id", |row| Some(&row.record.group.group_id)),
        text("world", |row| Some(&row.world)),
        number("number", |row| Some(row.attempt().number.into())),
        text("method", |row| Some(method(row))),
        number("round", |row| Some(row.attempt().round.into())),
        text("outcome", |row| Some(&row.attempt().outcome)),
        text("exit", |row| Some(&row.attempt().exit)),
        text("observation", |row| Some(&row.attempt().observation)),
        number("leftover", |row| Some(row.attempt().leftover.into())),
        texts("connections", |row| Some(borrowed(&row.attempt().connections))),
        real("duration_ms", |row| Some(row.attempt().duration_ms)),
        number("memory_bytes", |row| row.attempt().memory_bytes),
    ]
}

fn method(row: &AttemptRow) -> &'static str {
    match row.attempt().method {
        crate::record::outcome::Method::Fork => "fork",
        crate::record::outcome::Method::Cold => "cold",
    }
}

/// Columns of `traces`: `order` is the place in the order of first calls, `lines` are the executed lines,
/// `callers` places in that order.
pub fn traces<'a>() -> Vec<ColumnOf<TraceRow<'a>>> {
    vec![
        text("instance_id", |row| Some(row.instance.instance_id.as_str())),
        text("file", |row| Some(&row.function.file)),
        text("function", |row| Some(&row.function.function)),
        number("line", |row| Some(row.function.line.into())),
        number("calls", |row| Some(row.function.calls)),
        number("order", |row| Some(row.function.order.into())),
        numbers("lines", |row| row.function.lines.as_deref()),
        numbers("callers", |row| row.function.callers.as_deref()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::codetaste::CodetasteInstance;
    use crate::dataset::recube::RecubeInstance;
    use crate::record::family::Family;

    #[test]
    fn a_family_has_the_measurements_that_are_columns_of_its_instances() {
        fn has<R: InstanceRow>(measure: Measure) -> bool {
            let columns = R::columns();
            let column = columns.iter().find(|one| one.name == measure.as_str());
            column
                .is_some_and(|one| !matches!(one.cells, Cells::Text(_) | Cells::Flag(_) | Cells::Numbers(_)))
        }
        for measure in Measure::ALL {
            let found =
                [has::<Instance>, has::<RecubeInstance>, has::<CodetasteInstance>].map(|has| has(measure));
            let expected = Family::ALL.map(|family| measure.is_of(family));
            assert_eq!(found, expected, "{}", measure.as_str());
        }
    }
}
