//! Named subsets beside the tables: `subsets/<name>.parquet` and `.jsonl`, rows of `instances`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::write;
use crate::beneath::Folder;
use crate::error::Result;
use crate::record::id::RepoSlug;
use crate::record::instance::Instance;
use crate::subset::Subset;

/// The folder of a dataset that holds them.
pub const FOLDER: &str = "subsets";

/// A subset as the manifest describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubsetSummary {
    pub definition: Subset,
    pub size: usize,
    /// Members by slug.
    pub repositories: BTreeMap<RepoSlug, usize>,
    /// Members by tier.
    pub tiers: BTreeMap<String, usize>,
}

impl SubsetSummary {
    /// Counts the members.
    pub fn new(subset: &Subset, instances: &[Instance]) -> Self {
        let members = subset.members(instances);
        let mut summary = SubsetSummary {
            definition: subset.clone(),
            size: members.len(),
            repositories: BTreeMap::new(),
            tiers: BTreeMap::new(),
        };
        for instance in members.into_iter().map(|at| &instances[at]) {
            *summary.repositories.entry(instance.slug.clone()).or_default() += 1;
            *summary.tiers.entry(instance.tier.as_str().to_owned()).or_default() += 1;
        }
        summary
    }
}

/// Writes the members of each subset into new files of `folder`, with all of their columns as `whole` gives them.
///
/// # Errors
/// IO errors with the path.
pub fn write(
    folder: &Path,
    subsets: &[Subset],
    (instances, whole): (&[Instance], &dyn Fn(usize) -> Result<Instance>),
) -> Result<()> {
    fs_err::create_dir_all(folder)?;
    let folder = Folder::open(folder)?;
    for subset in subsets {
        write::instances(&folder, subset.name.as_str(), subset.members(instances).into_iter().map(whole))?;
    }
    Ok(())
}

/// Removes what an earlier [`write`] of these subsets left in a folder.
///
/// # Errors
/// IO errors with the path.
pub fn remove(folder: &Path, subsets: &[Subset]) -> Result<()> {
    fs_err::create_dir_all(folder)?;
    let folder = Folder::named(folder)?;
    for (subset, ending) in subsets.iter().flat_map(|one| [(one, "parquet"), (one, "jsonl")]) {
        folder.remove(Path::new(&format!("{}.{ending}", subset.name)))?;
    }
    Ok(())
}
