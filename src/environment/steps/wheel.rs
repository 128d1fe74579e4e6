//! A wheel that was built here, and who builds one while something is installed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::index::{Sdist, WheelFile, Wheels};

/// A wheel that was built here, in a file of the driver's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wheel {
    /// `editable`: the backend's own; `path`: metadata of the backend and one path file; `wheel`: not of the tree.
    pub method: String,
    pub filename: String,
    pub file: PathBuf,
    pub sha256: String,
    /// Normalized.
    pub name: String,
    pub version: String,
    pub extras: Vec<String>,
    pub metadata: String,
}

/// Builds wheels of what an installation comes across. Building installs what it builds with, which may come across more:
/// that is why the installer is given its builder.
pub(in crate::environment) trait Builder: Wheels {
    /// The wheel of a source distribution.
    ///
    /// # Errors
    /// The build failed, or IO errors.
    fn of_archive(&self, sdist: &Sdist) -> Result<WheelFile>;

    /// The wheel of a folder of source; the variables are for its hooks.
    ///
    /// # Errors
    /// The build failed, or IO errors.
    fn of_folder(&self, name: &str, folder: &Path, variables: &BTreeMap<String, String>) -> Result<Wheel>;
}
