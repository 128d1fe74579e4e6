//! A repository pinned to exact content.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::RepoSlug;

/// Where a tree comes from, without credentials: safe to print and to publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// A tag among the ancestors of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NearestTag {
    pub name: String,
    /// Commits since the tag, as `git describe` counts them.
    pub distance: u64,
}

/// What is known of the nearest tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TagSearch {
    /// Nothing asks for it.
    #[default]
    NotNeeded,
    /// None is near enough, or none names a version.
    NotFound,
    Found(NearestTag),
}

impl TagSearch {
    /// Whether it was never looked for.
    pub fn is_not_needed(&self) -> bool {
        *self == TagSearch::NotNeeded
    }

    /// The tag.
    pub fn found(&self) -> Option<&NearestTag> {
        match self {
            TagSearch::Found(tag) => Some(tag),
            TagSearch::NotNeeded | TagSearch::NotFound => None,
        }
    }
}

/// A repository whose content is fixed and is in the cache.
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
    /// The nearest tag, looked for where the tree's build would ask git for its version.
    #[serde(default, skip_serializing_if = "TagSearch::is_not_needed")]
    pub tag: TagSearch,
    /// What a person should know (submodule left out, symlink that leaves the tree …).
    pub notes: Vec<String>,
}
