//! What a door needs to turn a source distribution into a wheel.

use std::path::PathBuf;

/// A source distribution that was downloaded and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sdist {
    /// Normalized.
    pub name: String,
    pub version: String,
    /// As the index calls it; what lies at `path` has no name of its own.
    pub filename: String,
    pub sha256: String,
    /// In the store of downloaded files: never written to.
    pub path: PathBuf,
    /// What is being built right now, each as `name==version`: this one last, and what needs it before. The door of
    /// what this one needs to be built gets it, see [`super::Door::within`].
    pub building: Vec<String>,
}

/// A wheel that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WheelFile {
    pub path: PathBuf,
    pub sha256: String,
    /// The `METADATA` file in it.
    pub metadata: Vec<u8>,
}

/// Builds source distributions: offline, in a sandbox.
pub(crate) trait Wheels: Send + Sync + std::fmt::Debug {
    /// Builds the wheel of one source distribution. Called once for each one that a door is asked for.
    ///
    /// # Errors
    /// Why it cannot be built, in words for the user.
    fn wheel(&self, sdist: &Sdist) -> Result<WheelFile, String>;
}
