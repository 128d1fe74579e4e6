//! What a view of one instance shows, read by the script when the first one is opened: the test's source, its cases, the
//! numbers, the calls.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde_json::{Value, json};

use super::Tables;
use crate::dataset::table::Table;
use crate::error::Result;
use crate::page::Dictionary;
use crate::record::trace::{is_test_path, test_roots};

// Columns of `cases` that the page shows.
const CASE_COLUMNS: &[&str] = &["case_id", "instance_id", "outcome", "exception", "stdout", "stderr"];

/// Functions of traces that the page holds in all; the traces of further instances are in `traces.parquet` only.
const MOST_TRACE_ROWS: usize = 250_000;
/// Cases of an instance that the page holds; all are in `cases.parquet`.
const MOST_CASES: usize = 100;
/// Characters of a case's output, or of an exception.
const MOST_OUTPUT: usize = 600;
/// Characters of a test's source.
const MOST_SOURCE: usize = 20_000;

/// Details of all instances, in the order of the table.
pub(super) fn details(tables: &Tables) -> Result<Value> {
    let table = &tables.instances;
    let rates = |column: &str| -> Result<Vec<Option<f64>>> {
        let rounded = |rate: f64| (rate * 10_000.0).round() / 10_000.0;
        Ok(table.if_there(column, Table::reals)?.into_iter().map(|one| one.map(rounded)).collect())
    };
    let sources = table
        .if_there("test_source", Table::texts)?
        .into_iter()
        .map(|one| one.map(|text| cut(text, MOST_SOURCE)));
    Ok(json!({
        "command": commands(table)?,
        "source": sources.collect::<Vec<_>>(),
        "first": table.if_there("test_line_start", Table::numbers)?,
        "package": table.whole_numbers("trace_length_package")?,
        "total": table.whole_numbers("trace_length_total")?,
        "functions": table.whole_numbers("unique_functions")?,
        "lines": table.numbers("executed_lines")?,
        "imports": table.whole_numbers("import_calls")?,
        "attempts": table.whole_numbers("attempts")?,
        "bound": rates("flake_bound")?,
        "stable": table.flags("trace_stable")?,
        "witness": table.if_there("witness", Table::texts)?,
        "witness_lines": table.if_there("witness_lines", Table::numbers)?,
        "witness_existence": rates("witness_line_existence")?,
        "witness_execution": rates("witness_line_execution")?,
        "mutants": table.if_there("mutants", Table::numbers)?,
        "mutation_score": rates("mutation_score")?,
        "needed": rates("needed_statements")?,
        "surviving": table.lists_if_there("surviving_mutants")?,
        "cases": cases(tables)?,
        "trace": traces(tables)?,
    }))
}

/// The entry commands over a dictionary, in which a NUL stands for the group: most differ in nothing else.
fn commands(instances: &Table) -> Result<Value> {
    let mut texts = Dictionary::default();
    let pairs = instances.whole_texts("entry_command")?.into_iter().zip(instances.whole_texts("group_id")?);
    let of: Vec<usize> =
        pairs.map(|(command, group)| texts.place(command.replacen(group, "\0", 1))).collect();
    Ok(json!({ "texts": texts, "of": of }))
}

/// The first characters of a text, and a sign where there are more.
fn cut(text: &str, most: usize) -> String {
    text.char_indices().nth(most).map_or_else(|| text.to_owned(), |(at, _)| format!("{} …", &text[..at]))
}

/// `[name, outcome, exception, stdout, stderr]` of each case, where the name is what follows the test's and what is missing at
/// the end is null; and by the place of an instance how many more it has.
fn cases(tables: &Tables) -> Result<Value> {
    let table = tables.dataset.table("cases", CASE_COLUMNS)?;
    let (ids, outcomes) = (table.whole_texts("case_id")?, table.texts("outcome")?);
    let (exceptions, stdout, stderr) =
        (table.texts("exception")?, table.texts("stdout")?, table.texts("stderr")?);
    let mut of: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, instance) in table.texts("instance_id")?.into_iter().enumerate() {
        of.entry(instance.unwrap_or_default()).or_default().push(at);
    }
    let (instances, groups) =
        (tables.instances.whole_texts("instance_id")?, tables.instances.whole_texts("group_id")?);
    let short = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(|text| cut(text, MOST_OUTPUT));
    let mut more: BTreeMap<usize, usize> = BTreeMap::new();
    let list = |(place, (instance, group)): (usize, (&str, &str))| {
        let rows = of.get(instance).map(Vec::as_slice).unwrap_or_default();
        let case = |at: &usize| {
            let name = ids[*at].strip_prefix(group).unwrap_or(ids[*at]);
            let mut case = vec![Some(name.to_owned()), outcomes[*at].map(str::to_owned)];
            case.extend([&exceptions, &stdout, &stderr].map(|column| short(column[*at])));
            let known = case.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            case.truncate(known);
            case
        };
        if rows.len() > MOST_CASES {
            more.insert(place, rows.len() - MOST_CASES);
        }
        rows.iter().take(MOST_CASES).map(case).collect::<Vec<_>>()
    };
    let lists: Vec<_> = instances.into_iter().zip(groups).enumerate().map(list).collect();
    Ok(json!({ "of": lists, "more": more }))
}

/// Traces over dictionaries of functions (`[file, name, line]`), files (`[path, whether of the tests]`) and executed lines.
#[derive(Debug, Default)]
struct Traces<'a> {
    files: Dictionary<(&'a str, bool)>,
    functions: Dictionary<(usize, &'a str, i64)>,
    /// `[distance from the end of the run before, length − 1, …]`, from the function's line on.
    lines: Dictionary<Vec<i64>>,
    /// Rows of the instance's own list, one after the other.
    callers: Dictionary<Vec<i64>>,
}

/// The traces of the instances, the hardest first, until the page is full.
fn traces(tables: &Tables) -> Result<Value> {
    let table = tables.dataset.table("traces", &[])?;
    let ids = tables.instances.whole_texts("instance_id")?;
    let slugs = tables.instances.whole_texts("slug")?;
    let roots = roots(&tables.groups)?;
    let owners = table.whole_texts("instance_id")?;
    let spans = spans(&owners);
    let (files, names) = (table.whole_texts("file")?, table.whole_texts("function")?);
    let (lines, calls) = (table.whole_numbers("line")?, table.whole_numbers("calls")?);
    let (executed, callers) = (table.number_lists("lines")?, table.if_there("callers", Table::number_lists)?);
    let mut traces = Traces::default();
    let mut of: Vec<Option<Vec<i64>>> = vec![None; ids.len()];
    let mut left = MOST_TRACE_ROWS;
    for at in hardest_first(&tables.instances)? {
        let span = spans.get(ids[at]).cloned().unwrap_or_default();
        let Some(rest) = left.checked_sub(span.len()) else { break };
        left = rest;
        let own = roots.get(slugs[at]).map(Vec::as_slice).unwrap_or_default();
        let row = |row: usize| {
            let file = traces.files.place((files[row], is_test_path(files[row], own)));
            let function = traces.functions.number((file, names[row], lines[row]));
            let ran = executed[row].as_deref().map(|ran| traces.lines.number(runs(lines[row], ran)));
            let callers = callers[row].clone().map(|callers| traces.callers.number(callers));
            [function, calls[row], ran.unwrap_or(-1), callers.unwrap_or(-1)]
        };
        of[at] = Some(span.flat_map(row).collect());
    }
    Ok(json!({
        "files": traces.files.values, "functions": traces.functions.values,
        "lines": traces.lines.values, "callers": traces.callers.values, "of": of,
    }))
}

fn hardest_first(instances: &Table) -> Result<Vec<usize>> {
    let hard = instances.lists("hard_axes")?;
    let (first, then): (Vec<usize>, Vec<usize>) = (0..instances.rows()).partition(|at| !hard[*at].is_empty());
    Ok(first.into_iter().chain(then).collect())
}

/// The test roots of each repository, by slug.
fn roots(groups: &Table) -> Result<BTreeMap<&str, Vec<String>>> {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (slug, file) in groups.whole_texts("slug")?.into_iter().zip(groups.whole_texts("test_file")?) {
        files.entry(slug).or_default().push(file);
    }
    Ok(files.into_iter().map(|(slug, files)| (slug, test_roots(files))).collect())
}

/// Runs of neighbouring numbers, from a first line on: how far behind the one before a run begins, and how many follow its
/// first number.
fn runs(first: i64, lines: &[i64]) -> Vec<i64> {
    let mut runs = Vec::new();
    let mut last = first;
    for chunk in lines.chunk_by(|one, next| next.checked_sub(*one) == Some(1)) {
        let end = chunk[chunk.len() - 1];
        runs.extend([chunk[0].saturating_sub(last), end - chunk[0]]);
        last = end;
    }
    runs
}

/// The rows of each instance: they lie together.
fn spans<'a>(owners: &[&'a str]) -> HashMap<&'a str, Range<usize>> {
    let mut spans = HashMap::new();
    let mut start = 0;
    for rows in owners.chunk_by(|a, b| a == b) {
        spans.insert(rows[0], start..start + rows.len());
        start += rows.len();
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_distances_and_lengths() {
        assert_eq!(runs(10, &[12, 13, 14, 20]), [2, 2, 6, 0]);
        assert_eq!(runs(5, &[]), [0_i64; 0]);
        assert_eq!(runs(i64::MAX, &[i64::MIN, i64::MAX]).len(), 4, "nothing overflows");
    }

    #[test]
    fn long_output_is_cut_at_a_character() {
        assert_eq!(cut("ééé", 2), "éé …");
        assert_eq!(cut("éé", 2), "éé");
    }
}
