//! What a job asked of its door, and what became of it: facts for whoever explains a failed installation.

use std::collections::{BTreeMap, BTreeSet};

/// What was asked of one door so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Projects whose pages were handed out, with the number of the index.
    pub projects: BTreeSet<(String, usize)>,
    /// Wheels that were handed out.
    pub files: BTreeSet<Served>,
    /// Projects that belong to the tree, with the place that says so.
    pub refused: BTreeMap<String, String>,
    /// Projects that an index does not have, with the number of the index.
    pub missing: BTreeSet<(String, usize)>,
    /// Projects with files that no upload time is known of, with the number of the index: the moment that nothing may
    /// be newer than binds none of those files.
    pub undated: BTreeSet<(String, usize)>,
    /// Trouble with an index or one of its files, in words that hold no address.
    pub trouble: BTreeSet<String>,
    /// Source distributions that no wheel could be built of, `name==version`, and why.
    pub failed: BTreeMap<String, String>,
    /// Source distributions whose wheels were built.
    pub built: BTreeSet<Built>,
}

/// A wheel that was handed out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Served {
    /// Normalized.
    pub name: String,
    pub version: String,
    pub filename: String,
    /// The number of the index, from 0 in the user's order.
    pub index: usize,
    /// Of what was handed out.
    pub sha256: String,
    /// Whether the index says when it was uploaded.
    pub is_dated: bool,
}

/// A source distribution and the wheel that was built of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Built {
    /// Normalized.
    pub name: String,
    pub version: String,
    /// Of the source distribution, which is what an index and a lock know.
    pub sdist_sha256: String,
    /// Of the wheel, which is what is installed.
    pub wheel_sha256: String,
}

#[cfg(test)]
impl Asked {
    /// Projects that were asked for and that no index has.
    pub(crate) fn unknown(&self) -> BTreeSet<&str> {
        let has = |name: &str| self.projects.iter().any(|(project, _)| project == name);
        self.missing.iter().map(|(project, _)| project.as_str()).filter(|name| !has(name)).collect()
    }

    /// Whether an index could not be asked, so that a failure says nothing about what was asked for.
    pub(crate) fn is_troubled(&self) -> bool {
        !self.trouble.is_empty()
    }
}
