//! The checked configuration: holding a [`Config`] is proof that every value in it makes sense.
//!
//! [`load`] reads `repos.toml`, collects *all* problems with their lines ([`raw`] and [`check`]) and only then gives a
//! value. Nothing in here touches the network: resolving a branch name is a function the caller hands in.

mod check;
mod kind;
pub mod public;
pub(crate) mod published;
mod raw;
mod schema;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

pub use crate::document::Problem;
use crate::document::{self, Problems};
use crate::error::{Error, Result};
use crate::record::codetaste::{Scripts, Settings};
use crate::record::entry::Entry;
use crate::record::family::Family;
use crate::record::id::{CommitSha, Name, RepoSlug, sha256_hex};
use crate::record::limits::Timeouts;
pub use crate::record::limits::{BackendKind, Limits, TierBounds};
use crate::record::moment::Cutoff;
use crate::record::outcome::Compare;
use crate::record::prompt::PromptSettings;
use crate::record::recube::{Bounds, GivenTests, Scope};
use crate::record::source::Pinned;
use crate::record::spelling::spelling;
use crate::subset::{FORMER_TOP, Subset, TOP};
pub use check::is_host_and_port;
pub(crate) use check::owned_variable;
pub use public::to_public_json;
pub(crate) use schema::schema;

/// The configuration that works without one: the repository's own `repos.toml`, built in.
pub const DEFAULT: &str = include_str!("../repos.toml");

/// Finds the full hash that a branch, a tag or a short hash means now: `(url or folder, reference)`.
pub type Resolve<'r> = dyn Fn(&str, &str) -> Option<String> + 'r;

/// A whole `repos.toml`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    pub dataset: Dataset,
    pub screen: Screen,
    pub witness: Witness,
    pub mutation: Mutation,
    /// What is asked of targets, in the family of that name.
    pub recube: Bounds,
    /// What is asked of pairs of commits, in the family of that name.
    pub codetaste: Settings,
    pub tier: TierBounds,
    pub prompt: PromptSettings,
    pub limits: Limits,
    pub docker: Docker,
    pub repos: Vec<Repo>,
    /// Named subsets, by name; `top` is built in and not among them.
    pub subsets: Vec<Subset>,
    /// Files and folders of gistmill's own, absolute: configuration, its schema, rules, output. What of them is in a local
    /// folder is not part of its tree.
    #[serde(skip)]
    pub apart: Vec<PathBuf>,
}

/// `[dataset]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dataset {
    /// The kind of its tasks.
    pub family: Family,
    pub name: Name,
    pub version: Name,
    pub seed: u64,
    /// At most this many instances per repository; 0 keeps all.
    pub per_repo: u32,
    /// K of the hard subset.
    pub hard_per_axis: u32,
    /// Whether instances are published that cannot be solved without breaking a rule.
    pub sample_unsolvable: bool,
    /// Only tests, or commands of these kinds; none: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
}

impl Dataset {
    /// Where a build that writes below `output` puts it.
    pub(crate) fn directory(&self, output: &Path) -> PathBuf {
        output.join(&self.name).join(&self.version)
    }
}

/// `[screen]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Screen {
    /// Agreeing attempts that a published instance needs; at least 2.
    pub attempts: u32,
    /// Cold runs of the literal entry command for each published instance; at least 1.
    pub cold_runs: u32,
    /// Further groups of each repository, passing or not, that are run cold once: how well does the fork tree agree?
    pub parity_groups: u32,
    pub case_timeout: Duration,
    pub group_timeout: Duration,
    /// Whether a group with some failing cases may be kept.
    pub partial_groups: bool,
    /// How much of what attempts, and solutions, show must agree.
    pub compare: Compare,
}

impl Screen {
    /// How long an attempt may take in the base world.
    pub fn timeouts(&self) -> Timeouts {
        Timeouts { case: self.case_timeout, group: self.group_timeout }
    }
}

/// `[witness]`: machine-made solutions of the published instances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// Whether they are made.
    pub make: bool,
    /// Whether only instances that have one are published.
    pub required: bool,
}

/// `[mutation]`: how strong the tests of the published instances are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mutation {
    /// Mutants of the code that an instance runs, at most; 0 makes none.
    pub mutants: u32,
    /// Share of them that its cases notice: instances with less, or that cannot be measured, are not published.
    pub min_score: f64,
}

/// `[docker]`: what repositories with `backend = "docker"` run in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Docker {
    /// Base image, by digest.
    pub base: String,
    /// Bytes of memory of one container, swap included; 0 = unlimited.
    pub memory: u64,
    /// Processors of one container, in thousandths; 0 = unlimited.
    pub milli_cpus: u64,
    /// Bytes that the layers of images may take; 0 = unlimited.
    pub disk_budget: u64,
}

/// The base image where the config names none: the official slim Python 3.12 image, for all its platforms.
pub const BASE_IMAGE: &str =
    "python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea";

/// One `[[repo]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repo {
    pub slug: RepoSlug,
    pub source: SourceSpec,
    /// Interpreter request, `3.12` or `3.12.1`; inferred when left out.
    pub python: Option<String>,
    /// PEP 735 dependency groups; inferred when left out, `[]` means none.
    pub groups: Option<Vec<String>>,
    pub extras: Option<Vec<String>>,
    /// Extra requirements (PEP 508), or requirement files of the tree (`-r`-less paths).
    pub requirements: Option<Vec<String>>,
    /// Arguments of the collection; the repository's own testpaths when left out.
    pub tests: Option<Vec<String>>,
    pub env: BTreeMap<String, String>,
    pub backend: BackendKind,
    /// RFC 3339 time or date that replaces the commit's as the newest upload to install.
    pub exclude_newer: Option<Cutoff>,
    /// Base image in place of the one in `[docker]`.
    pub base: Option<String>,
    /// Packages of the distribution that the base gets.
    pub system_packages: Vec<String>,
    /// What it is about, for a table by domain.
    pub domain: Option<String>,
    /// The only targets, by path, where there are any.
    pub targets: Vec<String>,
    /// Parts of the tree that are shown; none for all of it.
    pub scopes: Vec<Scope>,
    /// Whether its instances are of the large set.
    pub large: bool,
    /// Tests in the place of its own.
    pub outside: Option<OutsideTests>,
    /// Which commands are entries.
    pub entries: Entries,
    /// The pair of commits of which this is the base, in the family `codetaste`.
    #[serde(skip)]
    pub pair: Option<Box<Pair>>,
    /// Whether scripts run its suite in an image that holds its environment: nothing of Python is made then.
    #[serde(skip)]
    pub is_scripted: bool,
    /// What to install, where nothing is to be resolved: that of a dataset.
    #[serde(skip)]
    pub locked: Option<Locked>,
}

/// The environment of a dataset, which is made once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locked {
    /// Its lock file.
    pub text: String,
    /// What the configuration of its build says of the interpreter. `python` beside it names the one that was taken.
    pub asked_python: Option<String>,
}

/// One `[[pair]]`: what it has beside the repository at its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The repository; the pair has a slug of its own.
    pub repo: RepoSlug,
    pub base: CommitSha,
    pub golden: Golden,
    pub description: Option<String>,
    pub open_description: Option<String>,
    /// Files with patterns: name and text.
    pub patterns: Vec<(String, String)>,
    /// What runs the suite in the place of pytest.
    pub scripts: Scripts,
}

/// The refactoring of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Golden {
    Commit(CommitSha),
    /// A unified diff of git's, onto the base.
    Patch(Vec<u8>),
}

impl Golden {
    /// The commit's hash, or that of the patch's text: `sha256:<hex>`.
    pub fn name(&self) -> String {
        match self {
            Golden::Commit(commit) => commit.to_string(),
            Golden::Patch(text) => format!("sha256:{}", sha256_hex(text)),
        }
    }
}

/// Which commands of a repository are entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Entries {
    pub mode: EntriesMode,
    /// `[[repo.entry]]`
    pub configured: Vec<Entry>,
}

impl Entries {
    /// The configured ones that are asked for.
    pub fn asked(&self) -> &[Entry] {
        if self.mode == EntriesMode::None { &[] } else { &self.configured }
    }

    /// Whether there may be any.
    pub fn are_wanted(&self) -> bool {
        self.mode == EntriesMode::Discover || !self.asked().is_empty()
    }
}

spelling! {
    /// Where entries come from.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum EntriesMode, ALL {
        None "none",
        #[default]
        Configured "configured",
        /// These, and what is found in the tree.
        Discover "discover",
    }
}

/// Tests that somebody wrote for a repository and keeps beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutsideTests {
    #[serde(skip)]
    pub folder: PathBuf,
    /// Where in the tree they are put.
    pub at: String,
    /// What the folder has; empty until it is read.
    #[serde(skip)]
    pub given: GivenTests,
}

/// Where a repository comes from, as configured (`url` may hold credentials: never print it, see
/// [`crate::record::source::Origin`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum SourceSpec {
    Git {
        #[serde(skip)]
        url: String,
        commit: CommitSha,
        submodules: bool,
        /// The folder of the repository that is the tree; none for all of it.
        subdirectory: Option<String>,
        /// Whether a dataset names it, not the user: then it has to be public, and gets no login of the user's.
        #[serde(skip)]
        anonymous: bool,
    },
    Path {
        path: PathBuf,
        commit: Option<CommitSha>,
        allow_uncommitted: bool,
    },
    Pypi {
        project: String,
        version: String,
        sha256: String,
    },
    /// The archive in an existing dataset, with what the dataset says of it; no configuration names one.
    Archive {
        file: PathBuf,
        pinned: Box<Pinned>,
    },
}

impl SourceSpec {
    /// The same repository at another commit.
    #[must_use]
    pub fn at(&self, other: &CommitSha) -> Self {
        let mut source = self.clone();
        match &mut source {
            SourceSpec::Git { commit, .. } => *commit = other.clone(),
            SourceSpec::Path { commit, .. } => *commit = Some(other.clone()),
            SourceSpec::Pypi { .. } | SourceSpec::Archive { .. } => {}
        }
        source
    }
}

/// Checks a text; `base` is the folder that relative paths start from.
///
/// # Errors
/// All problems of the text, in the order of its lines.
pub fn parse(text: &str, base: &Path, resolve: &Resolve<'_>) -> Result<Config, Vec<Problem>> {
    let mut problems = Problems::new(text);
    let table = document::parse(text, &mut problems);
    let raw = raw::read(table.get_ref(), &mut problems);
    let config = check::config(&raw, base, resolve, &mut problems);
    let problems = problems.into_sorted();
    if problems.is_empty() { Ok(config) } else { Err(problems) }
}

/// Reads and checks a file.
///
/// # Errors
/// When it cannot be read, and one usage error that lists all of its problems.
pub fn load(path: &Path, resolve: &Resolve<'_>) -> Result<Config> {
    let place = path.display().to_string();
    let text = document::read_text(path).map_err(|error| {
        if path.is_dir() {
            error.with_hint("name the file with the configuration in it")
        } else if path.exists() {
            error
        } else {
            error.with_hint(format!(
                "run gistmill without a file for the built-in one, or start with\n{MINIMAL}"
            ))
        }
    })?;
    let base = std::path::absolute(path)?.parent().map(Path::to_path_buf).unwrap_or_default();
    parse(&text, &base, resolve).map_err(|problems| Error::usage(document::render(&place, &problems)))
}

/// The subsets of these names, `top` first; all of them when none is named.
///
/// # Errors
/// A usage error when there is no such subset, with the nearest name.
pub fn named_subsets(configured: &[Subset], names: &[String]) -> Result<Vec<Subset>> {
    let all: Vec<Subset> = std::iter::once(Subset::top()).chain(configured.iter().cloned()).collect();
    let known: Vec<&str> = all.iter().map(|subset| subset.name.as_str()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let hint = if name == FORMER_TOP {
            format!("it is called `{TOP}`; `hard` is a tier: --tier hard")
        } else {
            document::suggest::hint(name, &known)
        };
        return Err(
            Error::usage(format!("there is no subset {}", crate::redact::quote(name))).with_hint(hint)
        );
    }
    Ok(all
        .into_iter()
        .filter(|subset| names.is_empty() || names.iter().any(|name| *name == subset.name.as_str()))
        .collect())
}

/// The shortest configuration that does something.
pub(crate) const MINIMAL: &str = r#"[dataset]
name = "mine"
version = "1"

[[repo]]
slug = "owner/name"
git = "https://host/owner/name"
commit = "<full commit hash>"
"#;

#[cfg(test)]
mod tests;
