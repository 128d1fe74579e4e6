//! What checking a repository needs.

use std::path::Path;

use crate::config::Resolve;
use crate::document::Problems;

/// What checking a repository needs.
pub(super) struct Checker<'c, 't> {
    /// Folder of the configuration file.
    pub base: &'c Path,
    pub resolve: &'c Resolve<'c>,
    pub problems: &'c mut Problems<'t>,
}
