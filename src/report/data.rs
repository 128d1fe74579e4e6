//! The data that is embedded for the script: columns of arrays over small dictionaries, to keep the page small.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Tables;
use crate::dataset::table::Table;
use crate::error::{Error, Result};

/// Columns of `groups` that the page shows.
pub(super) const GROUP_COLUMNS: &[&str] = &[
    "slug",
    "group_id",
    "instance_id",
    "kept",
    "published",
    "cause",
    "flags",
    "evidence",
    "n_cases",
    "attempts",
    "trace_length",
    "unique_files",
    "duration_ms",
    "tier",
];

/// Columns of `traces` that the page shows.
pub(super) const TRACE_COLUMNS: &[&str] = &["instance_id", "file", "function", "line", "calls"];

/// Functions of traces that the page holds in all; the traces of further instances are in `traces.parquet` only.
const MOST_TRACE_ROWS: usize = 250_000;

/// Characters of an excerpt that the page holds; the whole is in `groups.parquet`.
const MOST_EXCERPT: usize = 3_000;

/// Texts that occur often, each once.
#[derive(Debug, Default)]
struct Dictionary<'a> {
    texts: Vec<&'a str>,
    places: HashMap<&'a str, usize>,
}

impl<'a> Dictionary<'a> {
    fn place(&mut self, text: &'a str) -> usize {
        *self.places.entry(text).or_insert_with(|| {
            self.texts.push(text);
            self.texts.len() - 1
        })
    }
}

/// Everything that the script reads.
pub(super) fn embedded(tables: &Tables) -> Result<Value> {
    Ok(json!({ "groups": groups(&tables.groups)?, "instances": instances(tables)? }))
}

fn groups(table: &Table) -> Result<Value> {
    let (mut slugs, mut causes) = (Dictionary::default(), Dictionary::default());
    let (kept, published) = (table.flags("kept")?, table.flags("published")?);
    let state = |(kept, published)| {
        if published {
            "published"
        } else if kept {
            "kept"
        } else {
            "dropped"
        }
    };
    let slug: Vec<_> = table.whole_texts("slug")?.into_iter().map(|one| slugs.place(one)).collect();
    let cause: Vec<_> =
        table.texts("cause")?.into_iter().map(|one| one.map(|one| causes.place(one))).collect();
    let evidence: Vec<_> = table.texts("evidence")?.into_iter().map(|one| one.map(public_evidence)).collect();
    let durations =
        table.reals("duration_ms")?.into_iter().map(|one| one.map(|ms| (ms * 10.0).round() / 10.0));
    Ok(json!({
        "slugs": slugs.texts,
        "causes": causes.texts,
        "slug": slug,
        "id": table.whole_texts("group_id")?,
        "instance": table.texts("instance_id")?,
        "state": kept.into_iter().zip(published).map(state).collect::<Vec<_>>(),
        "cause": cause,
        "cases": table.whole_numbers("n_cases")?,
        "attempts": table.whole_numbers("attempts")?,
        "length": table.numbers("trace_length")?,
        "files": table.numbers("unique_files")?,
        "ms": durations.collect::<Vec<_>>(),
        "tier": table.texts("tier")?,
        "flags": table.lists("flags")?,
        "evidence": evidence,
    }))
}

/// The evidence as a value, its excerpt cut to what fits a page.
fn public_evidence(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap_or_else(|_| json!({ "summary": text }));
    if let Some(Value::String(excerpt)) = value.get_mut("excerpt")
        && let Some((at, _)) = excerpt.char_indices().nth(MOST_EXCERPT)
    {
        excerpt.truncate(at);
        excerpt.push_str(
            "
… cut here; the whole is in groups.parquet",
        );
    }
    value
}

fn instances(tables: &Tables) -> Result<Value> {
    let table = &tables.instances;
    let ids = table.whole_texts("instance_id")?;
    let hard = table.lists("hard_axes")?;
    let order: Vec<usize> = {
        let is_hard = |at: &usize| !hard[*at].is_empty();
        let (first, then): (Vec<usize>, Vec<usize>) = (0..ids.len()).partition(is_hard);
        first.into_iter().chain(then).collect()
    };
    let traces = traces(&tables.traces, &ids, &order)?;
    Ok(json!({
        "id": ids,
        "slug": table.whole_texts("slug")?,
        "group": table.whole_texts("group_id")?,
        "command": table.whole_texts("entry_command")?,
        "tier": table.whole_texts("tier")?,
        "hard": hard,
        "cases": table.whole_numbers("n_cases")?,
        "length": table.whole_numbers("trace_length")?,
        "package": table.whole_numbers("trace_length_package")?,
        "total": table.whole_numbers("trace_length_total")?,
        "files": table.whole_numbers("unique_files")?,
        "functions": table.whole_numbers("unique_functions")?,
        "lines": table.numbers("executed_lines")?,
        "imports": table.whole_numbers("import_calls")?,
        "attempts": table.whole_numbers("attempts")?,
        "bound": table.reals("flake_bound")?,
        "worlds": table.lists("worlds")?,
        "stable": table.flags("trace_stable")?,
        "trace": { "functions": traces.functions, "files": traces.files.texts, "of": traces.of },
    }))
}

/// Traces over dictionaries of functions (`[file, name, line]`) and files.
#[derive(Debug, Default)]
struct Traces<'a> {
    functions: Vec<Value>,
    files: Dictionary<'a>,
    places: HashMap<(&'a str, &'a str, i64), usize>,
    /// Per instance `[function, calls, …]` in the order of first call; none where the page is full.
    of: Vec<Option<Vec<i64>>>,
}

impl<'a> Traces<'a> {
    fn place(&mut self, file: &'a str, name: &'a str, line: i64) -> i64 {
        let Traces { functions, files, places, .. } = self;
        let place = *places.entry((file, name, line)).or_insert_with(|| {
            functions.push(json!([files.place(file), name, line]));
            functions.len() - 1
        });
        i64::try_from(place).unwrap_or(i64::MAX)
    }
}

/// The traces of the instances, which take their share in the given order until the page is full.
fn traces<'a>(table: &'a Table, ids: &[&str], order: &[usize]) -> Result<Traces<'a>> {
    let spans = spans(&table.whole_texts("instance_id")?);
    let (files, names) = (table.whole_texts("file")?, table.whole_texts("function")?);
    let (lines, calls) = (table.whole_numbers("line")?, table.whole_numbers("calls")?);
    let mut traces = Traces { of: vec![None; ids.len()], ..Traces::default() };
    let mut left = MOST_TRACE_ROWS;
    for at in order {
        let span = spans.get(ids[*at]).cloned().unwrap_or_default();
        let Some(rest) = left.checked_sub(span.len()) else { break };
        left = rest;
        let mut pair = |row: usize| [traces.place(files[row], names[row], lines[row]), calls[row]];
        let trace = span.flat_map(&mut pair).collect();
        traces.of[*at] = Some(trace);
    }
    Ok(traces)
}

/// The rows of each instance: they lie together.
fn spans(owners: &[&str]) -> HashMap<String, std::ops::Range<usize>> {
    let mut spans: HashMap<String, std::ops::Range<usize>> = HashMap::new();
    let mut start = 0;
    for rows in owners.chunk_by(|a, b| a == b) {
        spans.insert(rows[0].to_owned(), start..start + rows.len());
        start += rows.len();
    }
    spans
}

/// JSON that cannot end a script element or be taken for markup.
pub(super) fn script_safe(value: &Value) -> Result<String> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::internal("cannot encode the data of the page").with_source(error))?;
    let mut safe = String::with_capacity(text.len() + text.len() / 50);
    for c in text.chars() {
        match c {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            plain => safe.push(plain),
        }
    }
    Ok(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_json_reads_back_and_holds_no_markup() {
        let value = json!({ "a": "</script><!-- & \u{2028} é", "b": [1, null] });
        let text = script_safe(&value).unwrap();
        assert!(!text.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_long_excerpt_is_cut_at_a_character() {
        let long = json!({ "summary": "s", "excerpt": "é".repeat(MOST_EXCERPT + 1) }).to_string();
        let excerpt = public_evidence(&long)["excerpt"].as_str().unwrap().to_owned();
        assert!(excerpt.ends_with("groups.parquet") && excerpt.starts_with('é'));
        assert_eq!(excerpt.matches('é').count(), MOST_EXCERPT);
    }
}
