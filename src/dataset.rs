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
//!   trees/<owner>__<name>.tar.zst         the files of the pinned tree
//!   trees/<owner>__<name>.sha256          their hashes, for `sha256sum --check`
//!   subsets/<name>.parquet .jsonl          named subsets, rows of `instances`
//!   witnesses/<instance>.py                machine-made solutions, where they were asked for
//!   hidden/variants.jsonl                  edited tests that show what is not the original, unless they are left out
//!   README.md report.html manifest.json
//!   images.json                            where images were pushed to: written later, and no part of the dataset
//! ```
//!
//! [`stage`] makes the whole directory beside its place and swaps it in with one rename, so a reader finds the old
//! dataset or the new one, never a mixture, whatever happens to the writer ([`swap`]). What may differ between two
//! builds of the same inputs (durations, excerpts of logs) never enters a file that is listed as reproducible.

pub mod assemble;
pub mod card;
pub mod codetaste;
pub mod counts;
pub(crate) mod describe;
pub mod dictionary;
pub(crate) mod hidden;
pub(crate) mod images;
pub(crate) mod json_schema;
pub mod manifest;
mod opened;
mod own;
pub mod private;
pub mod query;
pub(crate) mod rated;
pub mod recube;
pub mod rows;
pub mod schema;
pub mod subsets;
pub mod swap;
pub mod table;
pub mod trees;
pub mod witnesses;
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
use crate::record::codetaste::PairRow;
use crate::record::family::Unit;
use crate::record::id::{RepoSlug, sha256_hex};
use crate::record::instance::{Contribution, FailedRepository};
use crate::record::rule::RuleUse;
use crate::record::spent::Spent;
use crate::subset::Subset;

pub use opened::Dataset;

use assemble::Assembled;
use counts::Counts;
use rated::Rated;

/// Version of the directory's layout and columns; raised when a reader of the old one would misread the new one.
pub const FORMAT_VERSION: u32 = 2;

/// All that goes into a dataset.
#[derive(Debug, Clone)]
pub struct DatasetInput<'a> {
    pub config: &'a Config,
    /// The configuration as published: without credentials and host paths.
    pub public_config: serde_json::Value,
    pub repositories: &'a [Contribution],
    /// Every pair of commits of the configuration, in the family `codetaste`.
    pub pairs: &'a [PairRow],
    pub failed: &'a [FailedRepository],
    pub isolation: &'a Isolation,
    /// What the machine could vary.
    pub capabilities: &'a Capabilities,
    pub tool_version: &'a str,
    /// Named subsets to write.
    pub subsets: &'a [Subset],
    /// The rules in force by id, none of them used yet.
    pub rules: BTreeMap<String, RuleUse>,
    /// Whether the dataset holds code of the repositories: their trees, and the sources of the tests.
    pub passes_code_on: bool,
    /// Whether it holds what submissions must not know.
    pub with_hidden: bool,
    /// What the build has cost so far, step by step.
    pub spent: Vec<Spent>,
}

/// What was written, for the closing table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    pub directory: PathBuf,
    pub total: Counts,
    /// By slug.
    pub repositories: BTreeMap<RepoSlug, Counts>,
    /// Slugs of repositories that could not be finished.
    pub failed: Vec<String>,
    pub subsets: Vec<manifest::SubsetSummary>,
}

/// A dataset that is written beside its place, all but the page and the manifest.
#[derive(Debug)]
pub struct Staged {
    staging: swap::Staging,
    summary: Summary,
    /// What it holds, as a reader opens it.
    pub dataset: Dataset,
}

/// Writes the dataset that is to replace what is in `directory`.
///
/// Two writers of one directory must not run at once: whoever calls this holds the dataset's lock.
///
/// # Errors
/// When the records contradict the contract (a published group without a trace, one group twice), or on IO errors.
pub fn stage(directory: &Path, dataset: &DatasetInput<'_>) -> Result<Staged> {
    let mut assembled = Assembled::new(dataset)?;
    let staging = swap::Staging::beside(directory)?;
    let folder = staging.path().to_owned();
    let first = write::tables(&folder, &assembled, dataset.subsets)?;
    let made = assembled.repositories.iter().flat_map(|one| one.witnesses.clone()).collect();
    witnesses::files(&folder, &made)?;
    write::environments(&folder, &assembled)?;
    if dataset.passes_code_on {
        trees::write(&folder, &assembled)?;
    }
    let own = match dataset.config.dataset.family.unit() {
        Unit::Group => None,
        Unit::File => {
            let rows = recube::tables(&folder, dataset, &mut assembled)?;
            let mut manifest = describe::manifest(dataset, &assembled)?;
            recube::describe(&mut manifest, dataset, &rows);
            recube::card(&folder, &manifest, &rows)?;
            Some(manifest)
        }
        Unit::Pair => {
            let rows = codetaste::tables(&folder, dataset, &mut assembled)?;
            let mut manifest = describe::manifest(dataset, &assembled)?;
            codetaste::describe(&mut manifest, dataset, &rows);
            codetaste::hidden(&folder, dataset, &mut manifest)?;
            codetaste::card(&folder, &manifest, &rows)?;
            Some(manifest)
        }
    };
    if let Some(manifest) = own {
        let subsets = manifest.subsets.values().cloned().collect();
        let summary = Summary { subsets, ..summary(directory, dataset, &assembled) };
        return Ok(Staged { staging, summary, dataset: Dataset { directory: folder, manifest } });
    }
    let mut manifest = describe::manifest(dataset, &assembled)?;
    let variants = hidden::text(dataset.config.dataset.seed, &assembled)?;
    manifest.hidden.insert(hidden::FILE.to_owned(), sha256_hex(variants.as_bytes()));
    if dataset.with_hidden {
        hidden::write(&folder, &variants)?;
    }
    write::text(&folder.join(card::FILE), &card::render(&manifest, &assembled.instances, first.as_ref())?)?;
    let summary = summary(directory, dataset, &assembled);
    Ok(Staged { staging, summary, dataset: Dataset { directory: folder, manifest } })
}

impl Staged {
    /// Hashes all files, writes the manifest and swaps the directory in.
    ///
    /// # Errors
    /// IO errors; the directory is then as it was.
    pub fn finish(mut self) -> Result<Summary> {
        self.dataset.manifest.add_files(self.staging.path())?;
        self.keep_what_was_spent();
        self.dataset.manifest.save(self.staging.path())?;
        self.staging.swap_in()?;
        Ok(self.summary)
    }

    /// A build that finds everything as it was says what it cost when it was made.
    fn keep_what_was_spent(&mut self) {
        // One that cannot be read is replaced.
        let Ok(Some(former)) = Dataset::find(&self.summary.directory) else { return };
        let again =
            manifest::Manifest { spent: former.manifest.spent.clone(), ..self.dataset.manifest.clone() };
        if serde_json::to_value(&again).ok() == serde_json::to_value(&former.manifest).ok() {
            self.dataset.manifest = again;
        }
    }
}

/// The subsets of the dataset, counted.
fn subset_summaries(dataset: &DatasetInput<'_>, instances: &[Rated]) -> Vec<manifest::SubsetSummary> {
    dataset.subsets.iter().map(|subset| manifest::SubsetSummary::new(subset, instances)).collect()
}

fn summary(directory: &Path, dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> Summary {
    let repositories = assembled.counts();
    Summary {
        directory: directory.to_owned(),
        total: counts::total(repositories.values()),
        repositories,
        failed: dataset.failed.iter().map(|failed| failed.slug.to_string()).collect(),
        subsets: subset_summaries(dataset, &assembled.instances),
    }
}
