//! Named subsets beside the tables: `subsets/<name>.parquet` and `.jsonl`, rows of `instances`.

use std::path::Path;

use super::schema::InstanceRow;
use super::write;
use crate::beneath::Folder;
use crate::error::Result;
use crate::subset::Subset;

/// The folder of a dataset that holds them.
pub const FOLDER: &str = write::SUBSETS;

/// Writes the members of each subset into new files of `folder`, with all of their columns.
///
/// # Errors
/// IO errors with the path.
pub(crate) fn write<R: InstanceRow>(folder: &Path, subsets: &[Subset], instances: &[R]) -> Result<()> {
    fs_err::create_dir_all(folder)?;
    let folder = Folder::open(folder)?;
    for subset in subsets {
        let members = subset.members(instances).into_iter().map(|at| Ok(instances[at].clone()));
        write::instances(&folder, subset.name.as_str(), members)?;
    }
    Ok(())
}

/// Removes what an earlier [`write()`] of these subsets left in a folder.
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
