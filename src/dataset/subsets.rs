//! Named subsets beside the tables: `subsets/<name>.parquet` and `.jsonl`, rows of `instances`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::schema;
use super::write::{json_lines, table, text};
use crate::dataset::table::AGAIN;
use crate::error::{Error, Result};
use crate::record::instance::Instance;
use crate::subset::Subset;

/// The folder of a dataset that holds them.
pub const FOLDER: &str = "subsets";

/// A subset as the manifest describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Described {
    pub definition: Subset,
    pub size: usize,
    /// Members by slug.
    pub repositories: BTreeMap<String, usize>,
    /// Members by tier.
    pub tiers: BTreeMap<String, usize>,
}

impl Described {
    /// Counts the members.
    pub fn new(subset: &Subset, instances: &[Instance]) -> Self {
        let members = subset.members(instances);
        let mut described = Described {
            definition: subset.clone(),
            size: members.len(),
            repositories: BTreeMap::new(),
            tiers: BTreeMap::new(),
        };
        for instance in members.into_iter().map(|at| &instances[at]) {
            *described.repositories.entry(instance.slug.to_string()).or_default() += 1;
            *described.tiers.entry(instance.tier.as_str().to_owned()).or_default() += 1;
        }
        described
    }
}

/// Writes the members of each subset into `folder`.
///
/// # Errors
/// IO errors with the path.
pub fn write(folder: &Path, subsets: &[Subset], instances: &[Instance]) -> Result<()> {
    fs_err::create_dir_all(folder)?;
    for subset in subsets {
        let members: Vec<Instance> =
            subset.members(instances).into_iter().map(|at| instances[at].clone()).collect();
        table(folder, &subset.name, &schema::instances(), &members)?;
        text(&folder.join(format!("{}.jsonl", subset.name)), &json_lines(&members)?)?;
    }
    Ok(())
}

/// The instances of a dataset that was written before.
///
/// # Errors
/// When the directory is no dataset of this format, and IO errors.
pub fn read_instances(directory: &Path) -> Result<Vec<Instance>> {
    crate::report::manifest(directory)?;
    let path = directory.join("instances.jsonl");
    let lines = fs_err::read_to_string(&path).map_err(|error| Error::from(error).with_hint(AGAIN))?;
    let instance = |(number, line)| {
        serde_json::from_str(line).map_err(|error| {
            Error::usage(format!("{}:{} is not what gistmill wrote", path.display(), number + 1))
                .with_source(error)
                .with_hint(AGAIN)
        })
    };
    lines.lines().enumerate().map(instance).collect()
}
