//! Removing folders that foreign code wrote to.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, Result};

/// Removes a folder that foreign code wrote to: its links are not followed, its folders may be closed to their owner, and
/// nested deeper than a path is long or than a process has descriptors.
pub(crate) fn discard(folder: &Path) -> Result<()> {
    let mut number = 0_u64;
    let mut waiting = vec![folder.to_owned()];
    while let Some(current) = waiting.pop() {
        fs_err::set_permissions(&current, std::fs::Permissions::from_mode(0o700))?;
        for entry in fs_err::read_dir(&current)? {
            let entry = entry?;
            let is_folder =
                entry.file_type().map_err(|error| Error::from(error).at(current.display()))?.is_dir();
            if !is_folder {
                fs_err::remove_file(entry.path())?;
            } else if current == folder {
                waiting.push(entry.path());
            } else {
                // Beside the outermost ones, so that every path stays short. A folder that its owner may not write to
                // cannot be moved.
                fs_err::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o700))?;
                let target = loop {
                    number += 1;
                    let target = folder.join(format!("discarded-{number}"));
                    if target.symlink_metadata().is_err() {
                        break target;
                    }
                };
                fs_err::rename(entry.path(), &target)?;
                waiting.push(target);
            }
        }
        if current != folder {
            fs_err::remove_dir(&current)?;
        }
    }
    fs_err::remove_dir(folder)?;
    Ok(())
}
