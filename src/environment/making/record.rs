//! `recipe.json`: what was decided and why, for people who must defend it. Holds no path of the machine and no host.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::config;
use crate::environment::plan::lock::Lock;
use crate::error::Result;
use crate::record::environment::{SwitchedOff, TriedPlan};
use crate::store::{write_atomic, write_json};

/// The recipe of one environment.
#[derive(Debug, Clone, Serialize)]
pub(in crate::environment) struct Recipe {
    pub slug: String,
    pub commit: String,
    pub python: String,
    pub python_reason: String,
    /// Nothing uploaded after this was installed.
    pub exclude_newer: String,
    /// The chosen plan.
    pub chosen: String,
    pub requirements: Vec<String>,
    /// `editable`, `path`, or `none` for a tree that is no project.
    pub tree_installed: String,
    /// Folders of the projects that are installed beside the one at the root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    pub build_variables: BTreeMap<String, String>,
    pub env: BTreeMap<String, String>,
    pub lock_sha256: String,
    pub switched_off: Vec<SwitchedOff>,
    #[serde(rename = "rungs")]
    pub plans: Vec<TriedPlan>,
    pub notes: Vec<String>,
    /// The image that it stands on, where it was built in a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Packages of the distribution that the image got.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub system_packages: Vec<String>,
    /// Versions of the tools that made it; only a compiler's is part of the key.
    pub made_with: BTreeMap<String, String>,
}

/// Variables of the config as a recipe may show them.
pub(in crate::environment) fn published(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    config::public::env(env).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Writes the recipe's folder.
pub(in crate::environment) fn write(
    folder: &Path,
    recipe: &Recipe,
    (lock, build_lock): (&Lock, &Lock),
    dockerfile: &str,
) -> Result<()> {
    fs_err::create_dir_all(folder)?;
    write_atomic(&folder.join("requirements.lock"), lock.text().as_bytes())?;
    write_atomic(&folder.join("build-requirements.lock"), build_lock.text().as_bytes())?;
    write_atomic(&folder.join("build-constraints.txt"), build_lock.constraints().as_bytes())?;
    write_atomic(&folder.join("Dockerfile"), dockerfile.as_bytes())?;
    write_json(&folder.join("recipe.json"), recipe)
}
