//! What families that have tables of their own write in the same way.

use std::fmt::Write as _;
use std::path::Path;

use super::assemble::Assembled;
use super::dictionary::Entry;
use super::manifest::{Manifest, SubsetSummary};
use super::schema::InstanceRow;
use super::{DatasetInput, subsets, write};
use crate::beneath::Folder;
use crate::error::Result;
use crate::record::instance::Contribution;

/// What was found out about each repository, in the order of those that are assembled.
pub(super) fn contributions<'a>(dataset: &DatasetInput<'a>) -> Vec<&'a Contribution> {
    let mut contributions: Vec<&Contribution> = dataset.repositories.iter().collect();
    contributions.sort_by_key(|one| &one.evidence.pinned.slug);
    contributions
}

/// Writes the instances and their subsets, and counts them.
///
/// # Errors
/// IO errors with the path; rows that cannot be encoded, which is a bug.
pub(super) fn write_instances<R: InstanceRow>(
    folder: &Path,
    dataset: &DatasetInput<'_>,
    assembled: &mut Assembled<'_>,
    rows: &[R],
) -> Result<()> {
    write::instances(&Folder::open(folder)?, "instances", rows.iter().cloned().map(Ok))?;
    subsets::write(&folder.join(subsets::FOLDER), dataset.subsets, rows)?;
    for repository in &mut assembled.repositories {
        for row in rows.iter().filter(|row| row.head().slug == repository.record.pinned.slug) {
            repository.sums.counts.publish(row.rating().0);
        }
    }
    Ok(())
}

/// What the manifest says of the instances, and how many rows the other tables have.
pub(super) fn describe<R: InstanceRow>(
    manifest: &mut Manifest,
    dataset: &DatasetInput<'_>,
    rows: &[R],
    tables: &[(&str, usize)],
) {
    let summaries = dataset.subsets.iter().map(|subset| SubsetSummary::new(subset, rows));
    manifest.subsets = summaries.map(|one| (one.definition.name.clone(), one)).collect();
    let counts = tables.iter().copied().chain([("instances", rows.len())]);
    manifest.counts.rows.extend(counts.map(|(table, rows)| (table.to_owned(), rows)));
    manifest.prompt = None;
}

/// For a card the tables that have rows, as loaders read it, and what their columns mean.
pub(super) fn card_parts<'a>(
    manifest: &Manifest,
    tables: impl IntoIterator<Item = &'a str>,
    dictionary: &[(&str, &[Entry])],
) -> (String, String) {
    let (mut configs, mut columns) = (String::new(), String::new());
    for table in tables {
        if manifest.counts.rows.get(table).is_some_and(|rows| *rows > 0) {
            let _ = writeln!(
                configs,
                "- config_name: {table}\n  data_files:\n  - split: test\n    path: {table}.parquet"
            );
        }
    }
    for (table, entries) in dictionary {
        let _ = writeln!(columns, "\n## `{table}`\n\n| column | meaning |\n| --- | --- |");
        for (name, meaning) in *entries {
            let _ = writeln!(columns, "| `{name}` | {meaning} |");
        }
    }
    (configs, columns)
}
