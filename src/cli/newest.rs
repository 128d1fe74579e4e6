//! Which dataset a command is about when none is named.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, Result};

/// The folder below which a build writes when nothing else is asked for.
const OUTPUT: &str = "output";

/// A dataset, by its place or as an option.
#[derive(Debug, clap::Args)]
pub(super) struct DatasetArguments {
    /// The dataset directory, `output/<name>/<version>`; by default the newest below `output/`
    #[arg(value_name = "DATASET")]
    place: Option<PathBuf>,
    /// The same as an option
    #[arg(long, value_name = "DIR", conflicts_with = "place")]
    dataset: Option<PathBuf>,
}

impl DatasetArguments {
    /// The directory that was named, else the newest.
    ///
    /// # Errors
    /// A usage error when none was named and none was built here.
    pub(super) fn directory(&self) -> Result<PathBuf> {
        chosen(self.place.as_ref().or(self.dataset.as_ref()))
    }
}

/// The directory that was named, else the newest below `output/`.
///
/// # Errors
/// A usage error when none was named and none was built here.
pub(super) fn chosen(named: Option<&PathBuf>) -> Result<PathBuf> {
    match named {
        Some(directory) => Ok(directory.clone()),
        None => newest_first(Path::new(OUTPUT)).into_iter().next().ok_or_else(|| {
            Error::usage(format!("there is no dataset below {OUTPUT}/"))
                .with_hint("build one with `gistmill build`, or name its directory")
        }),
    }
}

/// Where a build writes a version when nothing else is asked for.
pub(super) fn default_place(name: &str, version: &str) -> PathBuf {
    Path::new(OUTPUT).join(name).join(version)
}

/// Whether a dataset that was written just now is found without being named.
pub(super) fn is_default(directory: &Path) -> bool {
    let real = |path: &Path| fs_err::canonicalize(path).ok();
    real(directory)
        .is_some_and(|directory| real(Path::new(OUTPUT)).is_some_and(|output| directory.starts_with(output)))
}

/// The newest dataset, and the one before it of the same name.
///
/// # Errors
/// A usage error when there are none to compare.
pub(super) fn newest_two() -> Result<[PathBuf; 2]> {
    two_of(newest_first(Path::new(OUTPUT))).ok_or_else(|| {
        Error::usage(format!("there are no two versions of a dataset below {OUTPUT}/"))
            .with_hint("name both: gistmill diff OLD NEW")
    })
}

fn two_of(all: Vec<PathBuf>) -> Option<[PathBuf; 2]> {
    let mut all = all.into_iter();
    let newest = all.next()?;
    let before = all.find(|one| one.parent() == newest.parent())?;
    Some([before, newest])
}

/// Datasets below a folder, `<name>/<version>/`, by the time at which their manifests were written.
fn newest_first(output: &Path) -> Vec<PathBuf> {
    let manifests = walkdir::WalkDir::new(output).min_depth(3).max_depth(3).into_iter().flatten();
    let mut found: Vec<(SystemTime, PathBuf)> = manifests
        .filter(|entry| entry.file_name() == "manifest.json")
        .filter_map(|entry| {
            Some((entry.metadata().ok()?.modified().ok()?, entry.path().parent()?.to_owned()))
        })
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, directory)| directory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_newest_is_the_one_that_was_written_last_whatever_its_name() {
        let output = tempfile::tempdir().unwrap();
        for (age, place) in [(30, "a/2"), (10, "a/1"), (20, "b/9")] {
            let folder = output.path().join(place);
            fs_err::create_dir_all(&folder).unwrap();
            let file = std::fs::File::create(folder.join("manifest.json")).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        fs_err::create_dir_all(output.path().join("a/3")).unwrap();
        let found = newest_first(output.path());
        let places = |all: &[PathBuf]| -> Vec<String> {
            all.iter().map(|one| one.strip_prefix(output.path()).unwrap().display().to_string()).collect()
        };
        assert_eq!(places(&found), ["a/1", "b/9", "a/2"]);
        assert_eq!(places(&two_of(found).unwrap()), ["a/2", "a/1"], "the older one first, of one name");
    }
}
