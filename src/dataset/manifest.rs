//! `manifest.json`: what the dataset is, what it was made from and under which conditions, and a hash per file. It is
//! read by the types that wrote it; what older datasets do not have is empty.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::trees;
use crate::backend::Isolation;
use crate::error::{Error, Result};
use crate::record::environment::{Guess, ImageName, SwitchedOff, TriedPlan, Undeclared};
use crate::record::evidence::Parity;
use crate::record::family::Family;
use crate::record::host::HostFacts;
use crate::record::id::{Name, RepoSlug};
use crate::record::instance::FailedRepository;
use crate::record::prompt::PromptSettings;
use crate::record::rule::RuleUse;
use crate::record::source::{Origin, TagSearch};
use crate::record::spent::Spent;
use crate::record::verdict::Dimension;
use crate::store::{sha256_of_file, write_json};
use crate::subset::{Member, Subset};

/// The folder of what submissions must not know.
pub(super) const HIDDEN: &str = "hidden";
/// The file's name.
pub const FILE: &str = "manifest.json";

/// The manifest, in the order of its keys.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    pub format_version: u32,
    #[serde(default)]
    pub tool: Tool,
    /// The kind of its tasks.
    #[serde(default)]
    pub family: Family,
    pub name: Name,
    pub version: Name,
    pub counts: AllCounts,
    #[serde(default)]
    pub flake_bound: FlakeBound,
    #[serde(default)]
    pub tiers: Tiers,
    /// How the column `prompt` came to be. None in datasets of format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Prompt>,
    /// Where the pinned tree of each repository is, by slug; none where code is not passed on.
    #[serde(default)]
    pub trees: BTreeMap<RepoSlug, String>,
    #[serde(default)]
    pub hard_subset: HardSubset,
    /// By name; their rows are in `subsets/<name>.parquet`.
    #[serde(default)]
    pub subsets: BTreeMap<Name, SubsetSummary>,
    /// By slug.
    #[serde(default)]
    pub parity: BTreeMap<RepoSlug, Parity>,
    /// By id: how often each rule matched a group that could be collected, and how often it decided a verdict. None in a
    /// dataset that was written before rules were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<BTreeMap<String, RuleUse>>,
    #[serde(default)]
    pub failed: Vec<FailedRepository>,
    #[serde(default)]
    pub isolation: Isolation,
    /// The machine that built.
    #[serde(default)]
    pub machine: HostFacts,
    /// What differs between the worlds that groups were run in, and what could not be varied.
    #[serde(default)]
    pub worlds: Worlds,
    /// By kind: what normalization replaces in output, and how often it did in what the groups' cases showed first.
    #[serde(default)]
    pub normalized: BTreeMap<String, Normalized>,
    /// By slug.
    pub sources: BTreeMap<RepoSlug, SourceSummary>,
    /// By slug.
    #[serde(default)]
    pub environments: BTreeMap<RepoSlug, EnvironmentSummary>,
    /// The configuration as published.
    #[serde(default)]
    pub config: serde_json::Value,
    /// What this build has cost, step by step, up to the writing of these files: it differs between builds. A build that
    /// reuses what an earlier one did pays for the rest alone.
    #[serde(default)]
    pub spent: Vec<Spent>,
    /// Files whose bytes are the same in every build of the same inputs.
    #[serde(default)]
    pub reproducible: Vec<String>,
    /// What makes the other files differ between builds.
    #[serde(default)]
    pub varies: BTreeMap<String, String>,
    /// SHA-256 of every file but this one, and of what is in `hidden/`.
    pub files: BTreeMap<String, String>,
    /// SHA-256 of what is in `hidden/`, also where it was left out. Empty in older datasets.
    #[serde(default)]
    pub hidden: BTreeMap<String, String>,
}

/// The program that wrote the dataset.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    pub name: String,
    pub version: String,
}

/// The funnel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AllCounts {
    pub total: Counts,
    /// By slug.
    pub repositories: BTreeMap<RepoSlug, Counts>,
    /// Rows of each table.
    #[serde(default)]
    pub rows: BTreeMap<String, usize>,
}

/// What the attempts say about the failure rate of a published instance.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlakeBound {
    /// Agreeing attempts that the config asks for.
    pub required_attempts: u32,
    /// The bound that so many attempts give.
    pub required_bound: f64,
    /// The largest bound of a published instance; none without instances.
    pub worst: Option<f64>,
    pub confidence: f64,
}

/// Percentile ranks from which an instance is medium or hard.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tiers {
    pub hard_from: f64,
    pub medium_from: f64,
    pub rank: String,
}

/// The top subset per axis and repository. Its key and its columns are called after the paper's Gistify-hard.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct HardSubset {
    /// Instances that each axis gives: what the configuration asks for, but at most a fifth of all.
    pub per_axis: u32,
    pub size: usize,
    /// Instance ids by axis, hardest first.
    pub axes: BTreeMap<String, Vec<String>>,
    /// By slug: members per axis, and of the union.
    pub repositories: BTreeMap<String, BTreeMap<String, usize>>,
}

/// How prompts were made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    #[serde(flatten)]
    pub settings: PromptSettings,
    /// The text with its slots.
    pub template: String,
    pub template_sha256: String,
}

/// What the worlds are like.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Worlds {
    pub dimensions: BTreeMap<String, DimensionWords>,
    /// Dimensions that could not be varied, and why.
    pub not_covered: BTreeMap<Dimension, String>,
}

/// A dimension in words: in the base world, and where it differs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DimensionWords {
    pub base: String,
    pub other: String,
}

/// What normalization replaces in output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Normalized {
    /// What is replaced, in words or as an example of a line.
    pub what: String,
    pub count: u64,
}

/// Where a repository comes from.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SourceSummary {
    pub commit: String,
    #[serde(default)]
    pub license: Option<String>,
    #[serde(default)]
    pub license_source: Option<String>,
    #[serde(default)]
    pub notes: Vec<String>,
    pub origin: Origin,
    #[serde(default)]
    pub pinned_at: String,
    #[serde(default)]
    pub source: String,
    #[serde(default)]
    pub tree_sha256: String,
    /// The nearest tag, where the build asks for its version.
    #[serde(default, skip_serializing_if = "TagSearch::is_not_needed")]
    pub tag: TagSearch,
}

/// What a repository's tests run in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentSummary {
    pub backend: String,
    /// Its folder in the dataset.
    pub directory: String,
    #[serde(default)]
    pub guesses: Vec<Guess>,
    #[serde(default)]
    pub image: Option<ImageName>,
    pub key: String,
    pub lock_sha256: String,
    #[serde(default)]
    pub notes: Vec<String>,
    pub pytest: String,
    pub python: String,
    #[serde(default)]
    pub python_reason: String,
    #[serde(default)]
    pub rungs: Vec<TriedPlan>,
    #[serde(default)]
    pub switched_off: Vec<SwitchedOff>,
    #[serde(default)]
    pub tests: Vec<String>,
    #[serde(default)]
    pub undeclared: Vec<Undeclared>,
    /// Names of extra variables only: their values may be secrets.
    #[serde(default)]
    pub variables: Vec<String>,
}

impl Manifest {
    /// Whether what becomes part of a path is what a build would write there; the text says what is not.
    pub(super) fn check(&self) -> std::result::Result<(), String> {
        for (name, subset) in &self.subsets {
            if subset.definition.name != *name {
                return Err(format!("the subset `{name}` is defined as `{}`", subset.definition.name));
            }
        }
        for (slug, place) in &self.trees {
            if *place != trees::place(slug) {
                return Err(format!("the tree of {slug} is said to be at {place:?}"));
            }
        }
        for (slug, environment) in &self.environments {
            if environment.directory != format!("environments/{}", slug.file_name()) {
                return Err(format!(
                    "the environment of {slug} is said to be at {:?}",
                    environment.directory
                ));
            }
        }
        Ok(())
    }

    /// Hashes what is in the directory.
    ///
    /// # Errors
    /// IO errors with the path.
    pub fn add_files(&mut self, folder: &Path) -> Result<()> {
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(is_ours) {
            let entry = entry.map_err(|error| {
                Error::machine(format!("cannot read {}", folder.display())).with_source(error)
            })?;
            if entry.file_type().is_file() && entry.file_name() != FILE {
                let name = entry.path().strip_prefix(folder).unwrap_or(entry.path());
                let hash = sha256_of_file(entry.path())?;
                let is_hidden = name.starts_with(HIDDEN);
                let files = if is_hidden { &mut self.hidden } else { &mut self.files };
                files.insert(name.to_string_lossy().into_owned(), hash);
            }
        }
        Ok(())
    }

    /// Writes `manifest.json`.
    ///
    /// # Errors
    /// IO errors with the path.
    pub fn save(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join(FILE), self)
    }
}

fn is_ours(entry: &walkdir::DirEntry) -> bool {
    entry.depth() != 1 || super::swap::ENTRIES.iter().any(|name| entry.file_name() == *name)
}

/// A subset as the manifest describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubsetSummary {
    pub definition: Subset,
    pub size: usize,
    /// Members by slug.
    pub repositories: BTreeMap<RepoSlug, usize>,
    /// Members by tier.
    pub tiers: BTreeMap<String, usize>,
}

impl SubsetSummary {
    /// Counts the members.
    pub(crate) fn new<M: Member>(subset: &Subset, instances: &[M]) -> Self {
        let members = subset.members(instances);
        let mut summary = SubsetSummary {
            definition: subset.clone(),
            size: members.len(),
            repositories: BTreeMap::new(),
            tiers: BTreeMap::new(),
        };
        for instance in members.into_iter().map(|at| &instances[at]) {
            *summary.repositories.entry(instance.slug().clone()).or_default() += 1;
            *summary.tiers.entry(instance.tier().as_str().to_owned()).or_default() += 1;
        }
        summary
    }
}
