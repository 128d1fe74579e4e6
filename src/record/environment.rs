//! A built environment: interpreter, locked dependencies, installed tree.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A plan of what to install that was tried, with its reason and result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TriedPlan {
    /// What it installs, e.g. `. + group tests`.
    pub name: String,
    /// Why: which file said so.
    pub reason: String,
    /// Requirements handed to the resolver, as written.
    pub requirements: Vec<String>,
    pub result: PlanResult,
}

/// How a plan ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum PlanResult {
    /// Resolved, installed, and pytest collects.
    Chosen { collected: usize, collection_errors: usize },
    /// Installed, but collection shows that something is missing.
    Insufficient { collected: usize, collection_errors: usize, missing_modules: Vec<String> },
    /// Could not be resolved or installed; the lines that matter.
    Failed { stage: String, output: String },
}

/// A plugin that is switched off in every run because it would distribute, reorder, retry or benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchedOff {
    pub plugin: String,
    pub version: Option<String>,
    pub options: Vec<String>,
    pub reason: String,
}

/// A distribution of those that everybody knows, installed because collection could not do without it and nothing
/// declares it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Guess {
    /// As a requirement, e.g. `PyYAML`.
    pub distribution: String,
    /// What asked for it: `import yaml`, an option of pytest, a required plugin.
    pub wanted: String,
}

impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for `{}`", self.distribution, self.wanted)
    }
}

/// What collection could not find, and nothing declares in a way that is acted upon.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Undeclared {
    /// Worded as in [`Guess::wanted`].
    pub wanted: String,
    /// The folder of the tree (empty for its root) that has the module, where one does.
    pub place: Option<String>,
}

impl fmt::Display for Undeclared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_deref() {
            None => write!(f, "`{}`", self.wanted),
            Some("") => write!(f, "`{}` (in the root of the tree)", self.wanted),
            Some(place) => write!(f, "`{}` (in {place} of the tree)", self.wanted),
        }
    }
}

/// A container image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Virtual environment on the host; inside the sandbox it is at [`crate::backend::Places::venv`].
    pub venv: PathBuf,
    /// The tree with byte code and one orphan commit, on the host.
    pub tree: PathBuf,
    /// Directory with `requirements.lock`, `recipe.json`, `Dockerfile` for the dataset.
    pub recipe_dir: PathBuf,
    pub lock_sha256: String,
    /// Published as `rungs`.
    #[serde(rename = "rungs")]
    pub plans: Vec<TriedPlan>,
    pub switched_off: Vec<SwitchedOff>,
    /// Extra variables from the config and the tree.
    pub env: std::collections::BTreeMap<String, String>,
    /// Arguments of the collection: the config's `tests`, or none (the repository's own testpaths).
    pub tests: Vec<String>,
    pub notes: Vec<String>,
    /// What was installed without anybody's declaring it.
    #[serde(default)]
    pub guesses: Vec<Guess>,
    /// What the tests miss.
    #[serde(default)]
    pub undeclared: Vec<Undeclared>,
    /// The run of the tests in it, by the number that whoever ran them gave it; none where it was built before.
    #[serde(skip)]
    pub trial: Option<usize>,
}

/// More of a kind are counted instead of named.
const NAMED: usize = 20;

/// What is installed by guess, in words; none when nothing is.
pub fn guessed(guesses: &[Guess]) -> Option<String> {
    (!guesses.is_empty()).then(|| format!("guessed: {}; nothing declares it", listed(guesses)))
}

/// What the tests miss, in words with the way out: what nothing provides, then what the tree has somewhere.
pub fn missed(undeclared: &[Undeclared]) -> Vec<String> {
    let (own, foreign): (Vec<_>, Vec<_>) = undeclared.iter().partition(|one| one.place.is_some());
    let mut lines = Vec::new();
    if !foreign.is_empty() {
        lines.push(format!(
            "the tests ask for {}, which nothing declares: name what has it in `requirements = [\"…\"]` of this \
             repository, with all else that its tests need (groups, extras and requirements of the configuration \
             replace what the tree declares)",
            listed(&foreign)
        ));
    }
    if !own.is_empty() {
        lines.push(format!(
            "the tests ask for {}: the project that has it cannot be installed, and what the tree has is never asked \
             of an index; name its folder in `requirements = [\"./folder\"]`, or the tests that do without it in `tests = [\"…\"]` of this repository",
            listed(&own)
        ));
    }
    lines
}

fn listed<T: fmt::Display>(all: &[T]) -> String {
    let named: Vec<String> = all.iter().take(NAMED).map(T::to_string).collect();
    let more = all.len().saturating_sub(NAMED);
    if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") }
}

/// What a user should know of what was guessed, and of what nothing declares, a line each.
pub fn warnings(guesses: &[Guess], undeclared: &[Undeclared]) -> Vec<String> {
    guessed(guesses).into_iter().chain(missed(undeclared)).collect()
}

impl Built {
    /// Major and minor version of its Python.
    pub fn python_version(&self) -> (u32, u32) {
        let mut parts = self.python.split('.').map(|part| part.parse().unwrap_or_default());
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
    }

    /// What a user should know about how the environment came to be, a line each.
    pub fn warnings(&self) -> Vec<String> {
        warnings(&self.guesses, &self.undeclared)
    }

    /// Options for `PYTEST_ADDOPTS` that keep the switched-off plugins quiet.
    pub fn quiet_options(&self) -> Vec<String> {
        self.switched_off.iter().flat_map(|plugin| plugin.options.iter().cloned()).collect()
    }
}
