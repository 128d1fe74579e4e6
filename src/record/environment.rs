//! A built environment: interpreter, locked dependencies, installed tree.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One attempt of the ladder at making an environment, with its reason and result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// What this rung installs, e.g. `. + group tests`.
    pub name: String,
    /// Why: which file said so.
    pub reason: String,
    /// Requirements handed to the resolver, as written.
    pub requirements: Vec<String>,
    pub result: RungResult,
}

/// How a rung ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum RungResult {
    /// Resolved, installed, and pytest collects.
    Chosen { collected: usize, collection_errors: usize },
    /// Installed, but collection shows that something is missing.
    Insufficient { collected: usize, collection_errors: usize, missing_modules: Vec<String> },
    /// Could not be resolved or installed; the lines that matter.
    Failed { stage: String, output: String },
}

/// A plugin that is switched off in every run because it would distribute, reorder, retry or benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchedOff {
    pub plugin: String,
    pub version: Option<String>,
    pub options: Vec<String>,
    pub reason: String,
}

/// A container image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageName {
    /// `repository:tag`.
    pub tag: String,
    /// As the engine names it: `sha256:…`.
    pub id: String,
}

/// An environment that is ready to run tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Built {
    /// Content address over interpreter, lock, tree and recipe.
    pub key: String,
    /// Full interpreter version, e.g. `3.12.1`.
    pub python: String,
    /// Why this interpreter.
    pub python_reason: String,
    /// Prefix of the base interpreter on the host, e.g. `/usr` or a pyenv version folder.
    pub python_prefix: PathBuf,
    /// Virtual environment on the host; inside the sandbox it lies at [`crate::backend::Places::venv`].
    pub venv: PathBuf,
    /// The tree with byte code and one orphan commit, on the host.
    pub tree: PathBuf,
    /// Directory with `requirements.lock`, `recipe.json`, `Dockerfile` for the dataset.
    pub recipe_dir: PathBuf,
    pub lock_sha256: String,
    pub rungs: Vec<Rung>,
    pub switched_off: Vec<SwitchedOff>,
    /// Extra variables from the config.
    pub env: std::collections::BTreeMap<String, String>,
    /// Arguments of the collection: the config's `tests`, or none (the repository's own testpaths).
    pub tests: Vec<String>,
    pub notes: Vec<String>,
}

impl Built {
    /// Options for `PYTEST_ADDOPTS` that keep the switched-off plugins quiet.
    pub fn quiet_options(&self) -> Vec<String> {
        self.switched_off.iter().flat_map(|plugin| plugin.options.iter().cloned()).collect()
    }
}
