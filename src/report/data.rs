//! What the script reads at once: the two long tables, as columns of arrays over small dictionaries; and, read when they are
//! asked for, the evidence, attempts and files of groups.

use serde_json::{Value, json};

use super::Tables;
use super::families::Family;
use super::sets::difficulty;
use crate::dataset::manifest::Manifest;
use crate::dataset::table::{AGAIN, Table};
use crate::error::{Error, Result};
use crate::page::Dictionary;
use crate::record::flag;

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
    "cold_ms",
];
const EVIDENCE_COLUMNS: &[&str] = &["evidence", "files"];

/// Columns of `attempts` that the page shows.
const ATTEMPT_COLUMNS: &[&str] = &["slug", "group_id", "world", "method", "outcome", "exit", "observation"];

/// Characters of an excerpt that the page holds; the whole is in `groups.parquet`.
const MOST_EXCERPT: usize = 3_000;
/// Attempts of a group that the page shows.
const MOST_ATTEMPTS: usize = 200;
/// Attempts that are read at once.
const PART: usize = 32_768;
/// Numbers that stand for an attempt.
const NUMBERS: usize = 4;

/// The names of a group's states, by number.
pub(super) const STATES: [&str; 4] = ["published", "kept", "unsolvable", "dropped"];

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

/// The state of each group, as a place in [`STATES`].
pub(super) fn states(groups: &Table) -> Result<Vec<usize>> {
    let (kept, published) = (groups.flags("kept")?, groups.flags("published")?);
    let state = |((kept, published), flags): ((bool, bool), &Vec<String>)| match (kept, published) {
        (_, true) => 0,
        (true, false) => 1 + usize::from(flag::barrier(flags).is_some()),
        (false, false) => 3,
    };
    Ok(kept.into_iter().zip(published).zip(groups.lists("flags")?.iter()).map(state).collect())
}

fn groups<'a>(tables: &'a Tables, slugs: &mut Dictionary<&'a str>) -> Result<Value> {
    let table = &tables.groups;
    let mut causes = Dictionary::default();
    let (slug, id) = (table.whole_texts("slug")?, table.whole_texts("group_id")?);
    let cause = table.texts("cause")?.into_iter().map(|one| one.map(|one| causes.place(one)));
    let cause: Vec<_> = cause.collect();
    let durations =
        table.reals("duration_ms")?.into_iter().map(|one| one.map(|ms| (ms * 10.0).round() / 10.0));
    let families: Vec<&str> = causes.values.iter().map(|cause| Family::of(cause).as_str()).collect();
    Ok(json!({
        "states": STATES,
        "causes": causes.values,
        "families": families,
        "slug": slug.iter().map(|one| slugs.place(one)).collect::<Vec<_>>(),
        "id": id,
        "state": states(table)?,
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
        "difficulty": difficulty(table)?,
        "hard": table.lists("hard_axes")?,
        "cases": table.whole_numbers("n_cases")?,
        "length": table.whole_numbers("trace_length")?,
        "files": table.whole_numbers("unique_files")?,
        "flags": table.lists_if_there("flags")?,
    }))
}

/// Evidence, attempts and files of the groups, in the order of the table.
pub(super) fn evidence(tables: &Tables) -> Result<Value> {
    let table = tables.dataset.table("groups", EVIDENCE_COLUMNS)?;
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
        "attempts": attempts(tables, PART)?,
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

/// Strips of attempts over worlds, each different one once: `[world, method, outcome, observation, …]`. There are many
/// attempts: no more than `part` are in memory.
fn attempts(tables: &Tables, part: usize) -> Result<Value> {
    let places = tables.group_places()?;
    let (mut worlds, mut methods, mut outcomes) =
        (Dictionary::default(), Dictionary::default(), Dictionary::default());
    let mut strips = Dictionary::default();
    let mut of: Vec<Option<usize>> = vec![None; tables.groups.rows()];
    // The group whose attempts are read, by its place: they stand together.
    let mut current: Option<usize> = None;
    let (mut strip, mut seen) = (Vec::new(), Dictionary::default());
    let mut from = 0;
    while let Some(table) = tables.dataset.table_part("attempts", ATTEMPT_COLUMNS, (from, part))? {
        from += table.rows();
        let (slug, group) = (table.whole_texts("slug")?, table.whole_texts("group_id")?);
        let (world, method) = (table.whole_texts("world")?, table.whole_texts("method")?);
        let (outcome, exit) = (table.texts("outcome")?, table.whole_texts("exit")?);
        let observation = table.texts("observation")?;
        for at in 0..table.rows() {
            let Some(place) = places.get(&(slug[at], group[at])).copied() else { continue };
            if current != Some(place) {
                if let Some(before) = current.replace(place) {
                    of[before] = Some(strips.place(std::mem::take(&mut strip)));
                }
                if of[place].is_some() {
                    let group = group[at];
                    return Err(Error::usage(format!("attempts.parquet: those of {group} are not together"))
                        .with_hint(AGAIN));
                }
                seen = Dictionary::default();
            }
            if strip.len() == MOST_ATTEMPTS * NUMBERS {
                continue;
            }
            // What two attempts showed can be compared where both are of one method.
            let shown = (method[at].to_owned(), observation[at].map(str::to_owned));
            strip.extend::<[usize; NUMBERS]>([
                worlds.place(world[at].to_owned()),
                methods.place(method[at].to_owned()),
                outcomes.place(outcome[at].unwrap_or(exit[at]).to_owned()),
                seen.place(shown),
            ]);
        }
    }
    if let Some(last) = current {
        of[last] = Some(strips.place(strip));
    }
    Ok(json!({
        "worlds": worlds.values, "methods": methods.values, "outcomes": outcomes.values,
        "strips": strips.values, "of": of,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Dataset, schema, write};
    use crate::testing::made_up::MadeUp;

    #[test]
    fn attempts_are_the_same_in_whatever_parts_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("2026.11");
        crate::testing::write(&directory, &MadeUp::new(&[40, 9]).input()).unwrap();
        let tables = Tables::read(&Dataset::open(&directory).unwrap()).unwrap();
        let rows = tables.dataset.table("attempts", &["slug"]).unwrap().rows();
        let whole = attempts(&tables, rows).unwrap();
        let shown = whole["of"].as_array().unwrap().iter().filter(|one| one.is_u64()).count();
        assert_eq!(shown, 49, "all but the two files that cannot be collected: {whole}");
        assert!(whole["strips"].as_array().unwrap().len() > 1, "{whole}");
        for part in [1, 7, 12, rows - 1] {
            assert_eq!(attempts(&tables, part).unwrap(), whole, "{part}");
        }
    }

    #[test]
    fn attempts_of_a_group_that_do_not_stand_together_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("2026.11");
        crate::testing::write(&directory, &MadeUp::new(&[5]).input()).unwrap();
        let mut tables = Tables::read(&Dataset::open(&directory).unwrap()).unwrap();
        tables.dataset.manifest.counts.rows.clear();
        let groups = tables.groups.whole_texts("group_id").unwrap();
        let row = |at: usize| groups[at].to_owned();
        let columns = ATTEMPT_COLUMNS.iter().map(|&name| match name {
            "slug" => schema::text(name, |_: &String| Some("made/up0")),
            "group_id" => schema::text(name, |row: &String| Some(row.as_str())),
            _ => schema::text(name, |_: &String| Some("base")),
        });
        write::table(&directory, "attempts", columns.collect(), [row(0), row(1), row(0)]).unwrap();
        let said = attempts(&tables, PART).unwrap_err().to_string();
        assert!(said.contains(groups[0]) && said.contains("are not together"), "{said}");
    }

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
