//! What the script reads at once: the two long tables, as columns of arrays over small dictionaries; and, read when they are
//! asked for, the evidence, attempts and files of groups.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Tables;
use super::families::Family;
use crate::dataset::manifest::Manifest;
use crate::dataset::table::Table;
use crate::error::Result;
use crate::page::Dictionary;

/// Columns of `groups` that more than one part of the page shows, and those of the evidence alone.
pub(super) const GROUP_COLUMNS: &[&str] = &[
    "slug",
    "group_id",
    "kept",
    "published",
    "cause",
    "flags",
    "test_file",
    "n_cases",
    "attempts",
    "trace_length",
    "unique_files",
    "duration_ms",
];
const EVIDENCE_COLUMNS: &[&str] = &["evidence", "files"];

/// Columns of `attempts` that the page shows.
const ATTEMPT_COLUMNS: &[&str] = &["slug", "group_id", "world", "method", "outcome", "exit", "observation"];

/// Characters of an excerpt that the page holds; the whole is in `groups.parquet`.
const MOST_EXCERPT: usize = 3_000;
/// Attempts of a group that the page shows.
const MOST_ATTEMPTS: usize = 200;

/// The names of a group's states, by number.
pub(super) const STATES: [&str; 3] = ["published", "kept", "dropped"];

/// The columns of both long tables.
pub(super) fn columns(manifest: &Manifest, tables: &Tables) -> Result<Value> {
    let mut slugs = Dictionary::default();
    let instances = instances(tables, &mut slugs)?;
    let groups = groups(tables, &mut slugs)?;
    Ok(json!({
        "dataset": { "name": manifest.name, "version": manifest.version },
        "slugs": slugs.values,
        "groups": groups,
        "instances": instances,
    }))
}

fn groups<'a>(tables: &'a Tables, slugs: &mut Dictionary<&'a str>) -> Result<Value> {
    let table = &tables.groups;
    let mut causes = Dictionary::default();
    let (kept, published) = (table.flags("kept")?, table.flags("published")?);
    let state = |(kept, published): (bool, bool)| if published { 0 } else { 1 + usize::from(!kept) };
    let (slug, id) = (table.whole_texts("slug")?, table.whole_texts("group_id")?);
    let cause = table.texts("cause")?.into_iter().map(|one| one.map(|one| causes.place(one)));
    let cause: Vec<_> = cause.collect();
    let durations =
        table.reals("duration_ms")?.into_iter().map(|one| one.map(|ms| (ms * 10.0).round() / 10.0));
    let families: Vec<&str> = causes.values.iter().map(|cause| Family::of(cause).name()).collect();
    Ok(json!({
        "states": STATES,
        "causes": causes.values,
        "families": families,
        "slug": slug.iter().map(|one| slugs.place(one)).collect::<Vec<_>>(),
        "id": id,
        "state": kept.into_iter().zip(published).map(state).collect::<Vec<_>>(),
        "cause": cause,
        "cases": table.whole_numbers("n_cases")?,
        "attempts": table.whole_numbers("attempts")?,
        "length": table.numbers("trace_length")?,
        "files": table.numbers("unique_files")?,
        "ms": durations.collect::<Vec<_>>(),
        "flags": table.lists("flags")?,
    }))
}

fn instances<'a>(tables: &'a Tables, slugs: &mut Dictionary<&'a str>) -> Result<Value> {
    let table = &tables.instances;
    let groups = tables.group_places()?;
    let (slug, group) = (table.whole_texts("slug")?, table.whole_texts("group_id")?);
    let place = slug.iter().copied().zip(group).map(|key| groups.get(&key).copied());
    Ok(json!({
        "id": table.whole_texts("instance_id")?,
        "slug": slug.iter().map(|one| slugs.place(one)).collect::<Vec<_>>(),
        "place": place.collect::<Vec<_>>(),
        "tier": table.whole_texts("tier")?,
        "hard": table.lists("hard_axes")?,
        "cases": table.whole_numbers("n_cases")?,
        "length": table.whole_numbers("trace_length")?,
        "files": table.whole_numbers("unique_files")?,
        "flags": table.lists_if_there("flags")?,
    }))
}

/// Evidence, attempts and files of the groups, in the order of the table.
pub(super) fn evidence(tables: &Tables) -> Result<Value> {
    let table = Table::read(&tables.directory, "groups", EVIDENCE_COLUMNS)?;
    let evidence: Vec<_> = table.texts("evidence")?.into_iter().map(|one| one.map(public_evidence)).collect();
    let files = table.lists("files")?;
    let mut names = Dictionary::default();
    let mut sets = Dictionary::default();
    let set: Vec<usize> = files
        .iter()
        .map(|files| sets.place(files.iter().map(|file| names.place(file.as_str())).collect::<Vec<_>>()))
        .collect();
    Ok(json!({
        "evidence": evidence,
        "files": { "names": names.values, "sets": sets.values, "of": set },
        "attempts": attempts(tables)?,
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

/// Strips of attempts over worlds, each different one once: `[world, method, outcome, observation, …]`.
fn attempts(tables: &Tables) -> Result<Value> {
    let table = Table::read(&tables.directory, "attempts", ATTEMPT_COLUMNS)?;
    let (mut worlds, mut methods, mut outcomes) =
        (Dictionary::default(), Dictionary::default(), Dictionary::default());
    let (slug, group) = (table.whole_texts("slug")?, table.whole_texts("group_id")?);
    let (world, method) = (table.whole_texts("world")?, table.whole_texts("method")?);
    let (outcome, exit) = (table.texts("outcome")?, table.whole_texts("exit")?);
    let observation = table.texts("observation")?;
    let mut of_group: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for at in 0..table.rows() {
        of_group.entry((slug[at], group[at])).or_default().push(at);
    }
    let mut strips = Dictionary::default();
    let mut strip = |rows: &[usize]| {
        // What two attempts showed can be compared where both are of one method.
        let mut seen = Dictionary::default();
        let attempt = |at: &usize| {
            [
                worlds.place(world[*at]),
                methods.place(method[*at]),
                outcomes.place(outcome[*at].unwrap_or(exit[*at])),
                seen.place((method[*at], observation[*at])),
            ]
        };
        strips.place(rows.iter().take(MOST_ATTEMPTS).flat_map(attempt).collect::<Vec<_>>())
    };
    let keys = tables.groups.whole_texts("slug")?.into_iter().zip(tables.groups.whole_texts("group_id")?);
    let of: Vec<Option<usize>> = keys.map(|key| of_group.get(&key).map(|rows| strip(rows))).collect();
    Ok(json!({
        "worlds": worlds.values, "methods": methods.values, "outcomes": outcomes.values,
        "strips": strips.values, "of": of,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_excerpt_is_cut_at_a_character() {
        let long = json!({ "summary": "s", "excerpt": "é".repeat(MOST_EXCERPT + 1) }).to_string();
        let excerpt = public_evidence(&long)["excerpt"].as_str().unwrap().to_owned();
        assert!(excerpt.ends_with("groups.parquet") && excerpt.starts_with('é'));
        assert_eq!(excerpt.matches('é').count(), MOST_EXCERPT);
    }

    #[test]
    fn what_is_no_evidence_is_shown_as_it_is() {
        assert_eq!(public_evidence("{broken"), json!({ "summary": "{broken" }));
    }
}
