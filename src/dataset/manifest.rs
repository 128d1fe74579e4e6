//! `manifest.json`: what the dataset is, what it was made from and under which capabilities, and a hash per file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::assemble::{Assembled, Repository, difficulty};
use super::counts::{self, Counts};
use super::private::Private;
use super::subsets::Described;
use super::{DatasetInput, FORMAT_VERSION};
use crate::attempt::capabilities::Capabilities;
use crate::attempt::world;
use crate::backend::Isolation;
use crate::error::{Error, Result};
use crate::family::tier::{AXES, flake_bound, top};
use crate::record::id::sha256_hex;
use crate::record::instance::Axis;
use crate::record::rule::RuleUse;
use crate::store::write_json;
use crate::subset::Subset;

/// The manifest, in the order of its keys.
#[derive(Debug, Clone, Serialize)]
pub struct Manifest {
    pub format_version: u32,
    pub tool: Tool,
    pub name: String,
    pub version: String,
    pub counts: AllCounts,
    pub flake_bound: FlakeBound,
    pub tiers: Value,
    pub hard_subset: HardSubset,
    /// By name; their rows are in `subsets/<name>.parquet`.
    pub subsets: BTreeMap<String, Described>,
    /// By slug.
    pub parity: BTreeMap<String, Value>,
    /// By id: how often each rule matched a group that could be collected, and how often it decided a verdict.
    pub rules: BTreeMap<String, RuleUse>,
    pub failed: Value,
    pub isolation: Isolation,
    /// What differs between the worlds that groups were run in, and what could not be varied.
    pub worlds: Value,
    /// By slug.
    pub sources: BTreeMap<String, Value>,
    /// By slug.
    pub environments: BTreeMap<String, Value>,
    pub config: Value,
    /// Files whose bytes are the same in every build of the same inputs.
    pub reproducible: Vec<String>,
    /// What makes the other files differ between builds.
    pub varies: BTreeMap<&'static str, &'static str>,
    /// SHA-256 of every file but this one.
    pub files: BTreeMap<String, String>,
}

/// The program that wrote the dataset.
#[derive(Debug, Clone, Serialize)]
pub struct Tool {
    pub name: &'static str,
    pub version: String,
}

/// The funnel.
#[derive(Debug, Clone, Serialize)]
pub struct AllCounts {
    pub total: Counts,
    /// By slug.
    pub repositories: BTreeMap<String, Counts>,
    /// Rows of each table.
    pub rows: BTreeMap<&'static str, usize>,
}

/// What the attempts say about the failure rate of a published instance.
#[derive(Debug, Clone, Serialize)]
pub struct FlakeBound {
    /// Agreeing attempts that the config asks for.
    pub required_attempts: u32,
    /// The bound that so many attempts give.
    pub required_bound: f64,
    /// The largest bound of a published instance; none without instances.
    pub worst: Option<f64>,
    pub confidence: f64,
}

/// The hard subset per axis and repository.
#[derive(Debug, Clone, Serialize)]
pub struct HardSubset {
    pub per_axis: u32,
    pub size: usize,
    /// Instance ids by axis, hardest first.
    pub axes: BTreeMap<&'static str, Vec<String>>,
    /// By slug: members per axis, and of the union.
    pub repositories: BTreeMap<String, BTreeMap<&'static str, usize>>,
}

const REPRODUCIBLE: [&str; 4] = ["instances.parquet", "instances.jsonl", "cases.parquet", "traces.parquet"];

impl Manifest {
    /// Everything but the hashes of the files.
    pub fn new(dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> Self {
        let repositories = counts::per_repository(assembled);
        let total = counts::total(repositories.values());
        let private = Private::of_all(dataset.repositories.iter().map(|one| &one.evidence));
        let by_slug = |value: fn(&Repository<'_>) -> Value| {
            let slug = |one: &Repository<'_>| one.record.pinned.slug.to_string();
            assembled.repositories.iter().map(|one| (slug(one), private.hide_all(value(one)))).collect()
        };
        let bounds = &dataset.config.tier;
        let mut failed = dataset.failed.to_vec();
        failed.sort_by(|a, b| a.slug.cmp(&b.slug));
        Manifest {
            format_version: FORMAT_VERSION,
            tool: Tool { name: "gistmill", version: dataset.tool_version.to_owned() },
            name: dataset.config.dataset.name.clone(),
            version: dataset.config.dataset.version.clone(),
            counts: AllCounts { rows: rows(assembled, &total), total, repositories },
            flake_bound: bound(dataset, assembled),
            tiers: json!({ "medium_from": bounds.medium, "hard_from": bounds.hard, "rank": "mid-rank in percent" }),
            hard_subset: hard_subset(dataset, assembled),
            subsets: subsets(dataset, assembled),
            parity: by_slug(|one| json!(one.record.parity)),
            rules: rules(dataset),
            failed: private.hide_all(json!(failed)),
            isolation: dataset.isolation.clone(),
            worlds: worlds(dataset.capabilities),
            sources: by_slug(source),
            environments: by_slug(environment),
            config: dataset.public_config.clone(),
            reproducible: reproducible(dataset),
            varies: varies(),
            files: BTreeMap::new(),
        }
    }

    /// Hashes what lies in the directory; the page adds itself when it is rendered.
    ///
    /// # Errors
    /// IO errors with the path.
    pub fn add_files(&mut self, folder: &Path) -> Result<()> {
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(is_ours) {
            let entry = entry.map_err(|error| {
                Error::machine(format!("cannot read {}", folder.display())).with_source(error)
            })?;
            if entry.file_type().is_file() {
                let name = entry.path().strip_prefix(folder).unwrap_or(entry.path());
                let hash = sha256_hex(&fs_err::read(entry.path())?);
                self.files.insert(name.to_string_lossy().into_owned(), hash);
            }
        }
        Ok(())
    }

    /// Writes `manifest.json`.
    ///
    /// # Errors
    /// IO errors with the path.
    pub fn save(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join("manifest.json"), self)
    }
}

/// Dimension → what it is in the base world and in the others; and the dimensions that stay as they are.
fn worlds(capabilities: &Capabilities) -> Value {
    json!({
        "dimensions": world::describe(capabilities)
            .into_iter()
            .map(|(dimension, [base, other])| (dimension.to_owned(), json!({"base": base, "other": other})))
            .collect::<serde_json::Map<_, _>>(),
        "not_covered": capabilities.not_covered,
    })
}

fn subsets(dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> BTreeMap<String, Described> {
    let described = super::described(dataset, &assembled.instances);
    described.into_iter().map(|one| (one.definition.name.clone(), one)).collect()
}

fn reproducible(dataset: &DatasetInput<'_>) -> Vec<String> {
    let of_subset = |subset: &Subset| {
        ["parquet", "jsonl"].map(|ending| format!("{}/{}.{ending}", super::subsets::FOLDER, subset.name))
    };
    REPRODUCIBLE.map(str::to_owned).into_iter().chain(dataset.subsets.iter().flat_map(of_subset)).collect()
}

fn is_ours(entry: &walkdir::DirEntry) -> bool {
    entry.depth() != 1 || super::swap::ENTRIES.iter().any(|name| entry.file_name() == *name)
}

fn varies() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([
        ("groups.parquet", "duration_ms, cold_ms, and log excerpts in evidence"),
        (
            "attempts.parquet",
            "duration_ms, and the observations of groups that are dropped for nondeterminism",
        ),
        (
            "instances.*",
            "nothing (duration_ms is null in every row) but counts of calls where trace_stable is false, or where the group \
             in groups.parquet has the flag starts-threads",
        ),
        ("traces.parquet", "the same counts, of the same instances"),
        ("report.html", "follows groups.parquet"),
        ("manifest.json", "isolation, the hashes of the files above"),
    ])
}

fn rows(assembled: &Assembled<'_>, total: &Counts) -> BTreeMap<&'static str, usize> {
    BTreeMap::from([
        ("instances", assembled.instances.len()),
        ("groups", total.groups),
        ("cases", total.cases),
        ("attempts", total.attempts),
        ("traces", super::rows::traces(assembled).len()),
    ])
}

/// Sums over the repositories.
fn rules(dataset: &DatasetInput<'_>) -> BTreeMap<String, RuleUse> {
    let mut rules = dataset.rules.clone();
    for (id, one) in dataset.repositories.iter().flat_map(|repository| &repository.evidence.rules) {
        let sum = rules.entry(id.clone()).or_insert_with(|| RuleUse::unused(&one.action));
        sum.matched += one.matched;
        sum.decided += one.decided;
    }
    rules
}

fn bound(dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> FlakeBound {
    let required = dataset.config.screen.attempts;
    FlakeBound {
        required_attempts: required,
        required_bound: flake_bound(required),
        worst: assembled.instances.iter().map(|one| one.flake_bound).max_by(f64::total_cmp),
        confidence: 0.95,
    }
}

fn hard_subset(dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> HardSubset {
    let per_axis = dataset.config.dataset.hard_per_axis;
    let set: Vec<_> = assembled.instances.iter().map(|one| (&one.instance_id, difficulty(one))).collect();
    let ids = |axis: Axis| {
        let hardest = top(&set, axis, per_axis as usize);
        (axis.as_str(), hardest.into_iter().map(|at| set[at].0.to_string()).collect())
    };
    let mut repositories: BTreeMap<String, BTreeMap<&'static str, usize>> = BTreeMap::new();
    for instance in assembled.instances.iter().filter(|one| !one.hard_axes.is_empty()) {
        let members = repositories.entry(instance.slug.to_string()).or_default();
        for name in instance.hard_axes.iter().map(|axis| axis.as_str()).chain(["union"]) {
            *members.entry(name).or_default() += 1;
        }
    }
    let size = assembled.instances.iter().filter(|one| !one.hard_axes.is_empty()).count();
    HardSubset { per_axis, size, axes: AXES.into_iter().map(ids).collect(), repositories }
}

fn source(repository: &Repository<'_>) -> Value {
    let pinned = &repository.record.pinned;
    json!({
        "origin": pinned.origin,
        "source": pinned.origin.describe(),
        "commit": pinned.commit,
        "pinned_at": pinned.pinned_at,
        "tree_sha256": pinned.tree_sha256,
        "license": pinned.license,
        "license_source": pinned.license_source,
        "notes": pinned.notes,
    })
}

/// Names of extra variables only: their values may be secrets.
fn environment(repository: &Repository<'_>) -> Value {
    let (built, collected) = (&repository.record.built, &repository.record.collected);
    json!({
        "directory": format!("environments/{}", repository.record.pinned.slug.file_name()),
        "python": built.python,
        "python_reason": built.python_reason,
        "pytest": collected.pytest,
        "lock_sha256": built.lock_sha256,
        "key": built.key,
        "backend": repository.record.backend,
        "image": repository.record.image,
        "rungs": built.plans,
        "switched_off": built.switched_off,
        "variables": built.env.keys().collect::<Vec<_>>(),
        "tests": built.tests,
        "guesses": built.guesses,
        "undeclared": built.undeclared,
        "notes": built.notes.iter().chain(&collected.notes).collect::<Vec<_>>(),
    })
}
