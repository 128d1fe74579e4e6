//! A repository pinned to exact content.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::id::RepoSlug;

/// Where a tree comes from, without credentials: safe to print and to publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Origin {
    /// A git repository; `url` has no user or password.
    Git { url: String },
    /// A local directory; only its last path segment is published.
    Path { name: String, uncommitted_changes: bool },
    /// A source distribution of the package index in use.
    Pypi { project: String, version: String, sha256: String },
}

impl Origin {
    /// One line for tables: the URL, `path:name` or `pypi:name==version`.
    pub fn describe(&self) -> String {
        match self {
            Origin::Git { url } => url.clone(),
            Origin::Path { name, .. } => format!("path:{name}"),
            Origin::Pypi { project, version, .. } => format!("pypi:{project}=={version}"),
        }
    }
}

/// A repository whose content is fixed and lies in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    pub slug: RepoSlug,
    pub origin: Origin,
    /// The pin as published: a full commit hash, or `sha256:<hex>` where there is no commit.
    pub commit: String,
    /// RFC 3339 time of the commit or upload (UTC, seconds): nothing newer is installed.
    pub pinned_at: String,
    /// Directory with exactly the files of the tree (submodules included, `.git` not).
    pub tree: PathBuf,
    /// SHA-256 over the sorted list of relative path, kind/mode and content hash.
    pub tree_sha256: String,
    /// SPDX expression, or none when unsure.
    pub license: Option<String>,
    /// Where the license was read: `pyproject.toml`, `PKG-INFO`, `LICENSE.txt` …
    pub license_source: Option<String>,
    /// What a person should know (submodule left out, symlink that leaves the tree …).
    pub notes: Vec<String>,
}
