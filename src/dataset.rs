//! The dataset as other programs read it: tables, manifest, environments, card and page in one directory.
//!
//! ```text
//! output/<name>/<version>/
//!   instances.parquet instances.jsonl     same rows, same order: by slug, then group id
//!   groups.parquet                        every group with its verdict, by slug, then group id
//!   cases.parquet                         in the order of the entry command within a group
//!   attempts.parquet                      by number within a group
//!   traces.parquet                        by first call within an instance
//!   environments/<owner>__<name>/         what the environment was built from
//!   subsets/<name>.parquet .jsonl          named subsets, rows of `instances`
//!   README.md report.html manifest.json
//! ```
//!
//! [`write()`] makes the whole directory beside its place and swaps it in with one rename, so a reader finds the old
//! dataset or the new one, never a mixture, whatever happens to the writer ([`swap`]). What may differ between two
//! builds of the same inputs (durations, excerpts of logs) never enters a file that is listed as reproducible.

pub mod assemble;
pub mod card;
pub mod counts;
pub mod manifest;
pub mod private;
pub mod query;
pub mod rows;
pub mod schema;
pub mod subsets;
pub mod swap;
pub(crate) mod table;
pub mod write;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::attempt::capabilities::Capabilities;
use crate::backend::Isolation;
use crate::config::Config;
use crate::error::Result;
use crate::record::instance::{Contribution, FailedRepository, Instance};
use crate::record::rule::RuleUse;
use crate::subset::Subset;

use assemble::Assembled;
use counts::Counts;

/// Version of the directory's layout and columns; raised when a reader of the old one would misread the new one.
pub const FORMAT_VERSION: u32 = 1;

/// All that goes into a dataset.
#[derive(Debug, Clone)]
pub struct DatasetInput<'a> {
    pub config: &'a Config,
    /// The configuration as published: without credentials and host paths.
    pub public_config: serde_json::Value,
    pub repositories: &'a [Contribution],
    pub failed: &'a [FailedRepository],
    pub isolation: &'a Isolation,
    /// What the machine could vary.
    pub capabilities: &'a Capabilities,
    pub tool_version: &'a str,
    /// Named subsets to write.
    pub subsets: &'a [Subset],
    /// The rules in force by id, none of them used yet.
    pub rules: BTreeMap<String, RuleUse>,
}

/// What was written, for the closing table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    pub directory: PathBuf,
    pub total: Counts,
    /// By slug.
    pub repositories: BTreeMap<String, Counts>,
    /// Slugs of repositories that could not be finished.
    pub failed: Vec<String>,
    pub subsets: Vec<subsets::Described>,
}

/// Writes the dataset into `directory`, replacing an older one there.
///
/// Two writers of one directory must not run at once: whoever calls this holds the dataset's lock.
///
/// # Errors
/// When the records contradict the contract (a published group without a trace, one group twice), or on IO errors;
/// the directory is then as it was.
pub fn write(directory: &Path, dataset: &DatasetInput<'_>) -> Result<Summary> {
    let assembled = Assembled::new(dataset)?;
    let staging = swap::Staging::beside(directory)?;
    write::tables(staging.path(), &assembled)?;
    write::environments(staging.path(), &assembled)?;
    subsets::write(&staging.path().join(subsets::FOLDER), dataset.subsets, &assembled.instances)?;
    let mut manifest = manifest::Manifest::new(dataset, &assembled);
    write::text(&staging.path().join("README.md"), &card::render(&manifest, &assembled)?)?;
    manifest.add_files(staging.path())?;
    manifest.save(staging.path())?;
    crate::report::render(staging.path())?;
    staging.swap_in()?;
    Ok(summary(directory, dataset, &assembled))
}

/// The subsets of the dataset, counted.
fn described(dataset: &DatasetInput<'_>, instances: &[Instance]) -> Vec<subsets::Described> {
    dataset.subsets.iter().map(|subset| subsets::Described::new(subset, instances)).collect()
}

fn summary(directory: &Path, dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> Summary {
    let repositories = counts::per_repository(assembled);
    Summary {
        directory: directory.to_owned(),
        total: counts::total(repositories.values()),
        repositories,
        failed: dataset.failed.iter().map(|failed| failed.slug.to_string()).collect(),
        subsets: described(dataset, &assembled.instances),
    }
}
