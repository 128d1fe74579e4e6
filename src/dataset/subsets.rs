//! Named subsets beside the tables: `subsets/<name>.parquet` and `.jsonl`, rows of `instances`.

use std::path::Path;

use super::write;
use crate::error::Result;
use crate::record::instance::Instance;
use crate::subset::Subset;

/// The folder of a dataset that holds them.
pub const FOLDER: &str = "subsets";

/// Writes the members of each subset into `folder`, with all of their columns as `whole` gives them.
///
/// # Errors
/// IO errors with the path.
pub fn write(
    folder: &Path,
    subsets: &[Subset],
    (instances, whole): (&[Instance], &dyn Fn(usize) -> Result<Instance>),
) -> Result<()> {
    fs_err::create_dir_all(folder)?;
    for subset in subsets {
        write::instances(folder, &subset.name, subset.members(instances).into_iter().map(whole))?;
    }
    Ok(())
}
