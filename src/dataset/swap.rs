//! Replacing a dataset directory as a whole.
//!
//! The new dataset is written to `.<version>.writing` beside its place. Where nothing is there yet, one rename puts it
//! in place; where an older dataset is, one rename *exchanges* the two, so at any moment the place holds the whole old
//! or the whole new dataset. What gistmill did not write (a `.git`, notes) is carried over before the old one is
//! removed: only entries that a dataset consists of are ever deleted. A writer that dies leaves `.<version>.writing`
//! behind; the next one starts by emptying it, again of known entries only.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Everything that a dataset directory consists of.
pub const ENTRIES: [&str; 11] = [
    "instances.parquet",
    "instances.jsonl",
    "groups.parquet",
    "cases.parquet",
    "attempts.parquet",
    "traces.parquet",
    "manifest.json",
    "report.html",
    "README.md",
    "environments",
    "subsets",
];

/// A directory that is being filled beside its final place.
#[derive(Debug)]
pub struct Staging {
    staging: PathBuf,
    target: PathBuf,
}

impl Staging {
    /// An empty directory beside `target`.
    ///
    /// # Errors
    /// When `target` is something else than a directory, or on IO errors.
    pub fn beside(target: &Path) -> Result<Self> {
        let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(Error::usage(format!("{} cannot hold a dataset", target.display())));
        };
        if target.exists() && !target.is_dir() {
            return Err(Error::usage(format!("{} is there and is not a directory", target.display()))
                .with_hint("move it away, or choose another place with --output"));
        }
        fs_err::create_dir_all(folder)?;
        let staging = folder.join(format!(".{}.writing", name.to_string_lossy()));
        remove_entries(&staging)?;
        fs_err::create_dir_all(&staging)?;
        Ok(Staging { staging, target: target.to_owned() })
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// Puts the new dataset in place.
    ///
    /// # Errors
    /// IO errors with the path; the target then holds the old dataset or the new one.
    pub fn swap_in(self) -> Result<()> {
        sync(&self.staging)?;
        if !self.target.exists() {
            fs_err::rename(&self.staging, &self.target)?;
            return self.sync_folder();
        }
        exchange(&self.staging, &self.target)?;
        self.sync_folder()?;
        remove_entries(&self.staging)?;
        carry_over(&self.staging, &self.target)?;
        Ok(fs_err::remove_dir(&self.staging)?)
    }

    fn sync_folder(&self) -> Result<()> {
        self.target.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or(Ok(()), sync)
    }
}

fn sync(folder: &Path) -> Result<()> {
    Ok(fs_err::File::open(folder)?.sync_all()?)
}

/// Exchanges two directories in one step; where the file system cannot, in two steps with nothing in place between
/// them.
fn exchange(staging: &Path, target: &Path) -> Result<()> {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    if renameat2(AT_FDCWD, staging, AT_FDCWD, target, RenameFlags::RENAME_EXCHANGE).is_ok() {
        return Ok(());
    }
    let aside = staging.with_extension("old");
    fs_err::rename(target, &aside)?;
    fs_err::rename(staging, target)?;
    Ok(fs_err::rename(&aside, staging)?)
}

fn remove_entries(folder: &Path) -> Result<()> {
    for name in ENTRIES {
        let path = folder.join(name);
        let removed = if path.is_dir() { fs_err::remove_dir_all(&path) } else { fs_err::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Moves what is left in the old directory into the new one.
fn carry_over(old: &Path, new: &Path) -> Result<()> {
    for entry in fs_err::read_dir(old)? {
        let entry = entry?;
        let target = new.join(entry.file_name());
        if !target.exists() {
            fs_err::rename(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(target: &Path, text: &str) {
        let staging = Staging::beside(target).unwrap();
        fs_err::write(staging.path().join("README.md"), text).unwrap();
        fs_err::create_dir(staging.path().join("environments")).unwrap();
        staging.swap_in().unwrap();
    }

    #[test]
    fn a_second_dataset_replaces_the_first_and_what_others_put_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("name/2026.11");
        put(&target, "one");
        fs_err::write(target.join("report.html"), "old page").unwrap();
        fs_err::create_dir(target.join(".git")).unwrap();
        put(&target, "two");
        assert_eq!(fs_err::read_to_string(target.join("README.md")).unwrap(), "two");
        assert!(target.join(".git").is_dir(), "not ours, so it is carried over");
        assert!(!target.join("report.html").exists(), "ours, so it goes with the old dataset");
        let beside = fs_err::read_dir(target.parent().unwrap()).unwrap().count();
        assert_eq!(beside, 1, "nothing is left beside");
    }

    #[test]
    fn an_unfinished_write_leaves_the_old_dataset_and_the_next_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("2026.11");
        put(&target, "one");
        let staging = Staging::beside(&target).unwrap();
        fs_err::write(staging.path().join("report.html"), "half").unwrap();
        drop(staging);
        assert_eq!(fs_err::read_to_string(target.join("README.md")).unwrap(), "one");
        put(&target, "two");
        assert!(!target.join("report.html").exists());
    }

    #[test]
    fn a_file_in_the_way_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("2026.11");
        fs_err::write(&target, "mine").unwrap();
        assert!(Staging::beside(&target).is_err());
        assert_eq!(fs_err::read_to_string(&target).unwrap(), "mine");
    }
}
