//! The manifest of what is about to be written. Pure but for what [`Private`] asks.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::assemble::{Assembled, Repository};
use super::counts::{self, Counts};
use super::manifest::{
    AllCounts, DimensionWords, EnvironmentSummary, FlakeBound, HardSubset, Manifest, Normalized, Prompt,
    SourceSummary, SubsetSummary, Tiers, Tool, Worlds,
};
use super::private::Private;
use super::rated::{Rate, Rated};
use super::{DatasetInput, FORMAT_VERSION};
use crate::attempt::capabilities::Capabilities;
use crate::attempt::{normalize, world};
use crate::error::Result;
use crate::family::gistify::prompt::Template;
use crate::family::tier::{AXES, flake_bound, top, top_size};
use crate::record::host::HostFacts;
use crate::record::id::{Name, RepoSlug};
use crate::record::instance::Axis;
use crate::record::limits::TierBounds;
use crate::record::prompt::PromptSettings;
use crate::record::rule::RuleUse;
use crate::subset::Subset;

pub(crate) const REPRODUCIBLE: [&str; 4] =
    ["instances.parquet", "instances.jsonl", "cases.parquet", "traces.parquet"];

/// Everything but the hashes of the files.
///
/// # Errors
/// Never for records of gistmill: what is hidden in a text leaves it a text.
pub(super) fn manifest(dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> Result<Manifest> {
    let repositories = assembled.counts();
    let total = counts::total(repositories.values());
    let private = Private::of_all(dataset.repositories.iter().map(|one| &one.evidence));
    let mut failed = dataset.failed.to_vec();
    failed.sort_by(|a, b| a.slug.cmp(&b.slug));
    Ok(Manifest {
        format_version: FORMAT_VERSION,
        tool: Tool { name: "gistmill".to_owned(), version: dataset.tool_version.to_owned() },
        family: dataset.config.dataset.family,
        name: dataset.config.dataset.name.clone(),
        version: dataset.config.dataset.version.clone(),
        counts: AllCounts { rows: rows(assembled, &total), total, repositories },
        flake_bound: bound(dataset, assembled),
        tiers: tiers(&dataset.config.tier),
        prompt: Some(prompt(dataset.config.prompt)?),
        trees: trees(dataset, assembled),
        hard_subset: hard_subset(&assembled.instances, dataset.config.dataset.hard_per_axis),
        subsets: subsets(dataset, assembled),
        parity: by_slug(assembled, &private, |one| one.record.parity.clone())?,
        rules: Some(rules(dataset)),
        failed: private.hide_in(&failed)?,
        isolation: dataset.isolation.clone(),
        machine: host(assembled),
        worlds: worlds(dataset.capabilities),
        normalized: normalized(assembled),
        sources: by_slug(assembled, &private, source)?,
        environments: by_slug(assembled, &private, environment)?,
        config: dataset.public_config.clone(),
        spent: dataset.spent.clone(),
        reproducible: reproducible(dataset, assembled),
        varies: varies(),
        files: BTreeMap::new(),
        hidden: BTreeMap::new(),
    })
}

/// The bounds of the tiers in words and numbers.
pub(crate) fn tiers(bounds: &TierBounds) -> Tiers {
    Tiers {
        medium_from: bounds.medium,
        hard_from: bounds.hard,
        rank: "share of instances below, in percent".to_owned(),
    }
}

/// The machine of the first repository, with the interpreters of all.
fn host(assembled: &Assembled<'_>) -> HostFacts {
    let mut all = assembled.repositories.iter().map(|one| one.record.host.clone());
    let mut first = all.next().unwrap_or_default();
    for one in all {
        first.interpreters.extend(one.interpreters);
        first.engines.extend(one.engines);
    }
    first
}

fn by_slug<T: Serialize + DeserializeOwned>(
    assembled: &Assembled<'_>,
    private: &Private,
    value: impl Fn(&Repository<'_>) -> T,
) -> Result<BTreeMap<RepoSlug, T>> {
    let one = |one: &Repository<'_>| Ok((one.record.pinned.slug.clone(), private.hide_in(&value(one))?));
    assembled.repositories.iter().map(one).collect()
}

fn worlds(capabilities: &Capabilities) -> Worlds {
    let words = |(dimension, [base, other]): (&str, [String; 2])| {
        (dimension.to_owned(), DimensionWords { base, other })
    };
    Worlds {
        dimensions: world::describe(capabilities).into_iter().map(words).collect(),
        not_covered: capabilities.not_covered.clone(),
    }
}

fn normalized(assembled: &Assembled<'_>) -> BTreeMap<String, Normalized> {
    let kind = |(kind, what): (&str, &str)| (kind.to_owned(), Normalized { what: what.to_owned(), count: 0 });
    let mut normalized: BTreeMap<String, Normalized> = normalize::kinds().map(kind).collect();
    for (kind, count) in assembled.repositories.iter().flat_map(|one| &one.sums.replaced) {
        if let Some(one) = normalized.get_mut(kind) {
            one.count += count;
        }
    }
    normalized
}

fn subsets(dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> BTreeMap<Name, SubsetSummary> {
    let summaries = super::subset_summaries(dataset, &assembled.instances);
    summaries.into_iter().map(|one| (one.definition.name.clone(), one)).collect()
}

/// How prompts of these settings are made.
pub(crate) fn prompt(settings: PromptSettings) -> Result<Prompt> {
    let template = Template::built_in()?;
    Ok(Prompt { settings, template: template.text().to_owned(), template_sha256: template.sha256() })
}

fn trees(dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> BTreeMap<RepoSlug, String> {
    let slugs = assembled.repositories.iter().map(|one| &one.record.pinned.slug);
    let slugs = slugs.filter(|_| dataset.passes_code_on);
    slugs.map(|slug| (slug.clone(), super::trees::place(slug))).collect()
}

fn lists(dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> Vec<String> {
    let repositories = assembled.repositories.iter().filter(|_| dataset.passes_code_on);
    repositories.map(|one| super::trees::list_place(&one.record.pinned.slug)).collect()
}

fn reproducible(dataset: &DatasetInput<'_>, assembled: &Assembled<'_>) -> Vec<String> {
    let of_subset = |subset: &Subset| {
        ["parquet", "jsonl"].map(|ending| format!("{}/{}.{ending}", super::subsets::FOLDER, subset.name))
    };
    let tables = REPRODUCIBLE.map(str::to_owned).into_iter();
    tables
        .chain(dataset.subsets.iter().flat_map(of_subset))
        .chain(trees(dataset, assembled).into_values())
        .chain(lists(dataset, assembled))
        .collect()
}

fn varies() -> BTreeMap<String, String> {
    let varies = [
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
        ("report.html", "follows these tables"),
        ("manifest.json", "isolation, spent, the hashes of the files above"),
    ];
    varies.map(|(file, why)| (file.to_owned(), why.to_owned())).into()
}

fn rows(assembled: &Assembled<'_>, total: &Counts) -> BTreeMap<String, usize> {
    let rows = [
        ("instances", assembled.instances.len()),
        ("groups", total.groups),
        ("cases", total.cases),
        ("attempts", total.attempts),
        ("traces", assembled.repositories.iter().map(|one| one.sums.called).sum()),
    ];
    rows.map(|(table, rows)| (table.to_owned(), rows)).into()
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
    flake_bounds(dataset.config.screen.attempts, &assembled.instances)
}

/// What so many attempts, and those of the instances, say.
pub(crate) fn flake_bounds(required: u32, instances: &[Rated]) -> FlakeBound {
    FlakeBound {
        required_attempts: required,
        required_bound: flake_bound(required),
        worst: instances.iter().map(|one| one.flake_bound).max_by(f64::total_cmp),
        confidence: 0.95,
    }
}

/// The top subset of instances that are rated, of which so many are asked for on each axis.
pub(crate) fn hard_subset(instances: &[Rated], asked: u32) -> HardSubset {
    let per_axis = top_size(asked, instances.len());
    let set: Vec<_> = instances.iter().map(|one| (&one.instance_id, one.difficulty())).collect();
    let ids = |axis: Axis| {
        let hardest = top(&set, axis, per_axis);
        (axis.as_str().to_owned(), hardest.into_iter().map(|at| set[at].0.to_string()).collect())
    };
    let mut repositories: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for instance in instances.iter().filter(|one| !one.hard_axes.is_empty()) {
        let members = repositories.entry(instance.slug.to_string()).or_default();
        for name in instance.hard_axes.iter().map(|axis| axis.as_str()).chain(["union"]) {
            *members.entry(name.to_owned()).or_default() += 1;
        }
    }
    let size = instances.iter().filter(|one| !one.hard_axes.is_empty()).count();
    HardSubset {
        per_axis: u32::try_from(per_axis).unwrap_or(u32::MAX),
        size,
        axes: AXES.into_iter().map(ids).collect(),
        repositories,
    }
}

fn source(repository: &Repository<'_>) -> SourceSummary {
    let pinned = &repository.record.pinned;
    SourceSummary {
        origin: pinned.origin.clone(),
        source: pinned.origin.describe(),
        commit: pinned.commit.clone(),
        pinned_at: pinned.pinned_at.clone(),
        tree_sha256: pinned.tree_sha256.clone(),
        license: pinned.license.clone(),
        license_source: pinned.license_source.clone(),
        notes: pinned.notes.clone(),
        tag: pinned.tag.clone(),
    }
}

fn environment(repository: &Repository<'_>) -> EnvironmentSummary {
    let (built, collected) = (&repository.record.built, &repository.record.collected);
    EnvironmentSummary {
        directory: format!("environments/{}", repository.record.pinned.slug.file_name()),
        python: built.python.clone(),
        python_reason: built.python_reason.clone(),
        pytest: collected.pytest.clone(),
        lock_sha256: built.lock_sha256.clone(),
        key: built.key.clone(),
        backend: repository.record.backend.clone(),
        image: repository.record.image.clone(),
        rungs: built.plans.clone(),
        switched_off: built.switched_off.clone(),
        variables: built.env.keys().cloned().collect(),
        tests: built.tests.clone(),
        guesses: built.guesses.clone(),
        undeclared: built.undeclared.clone(),
        notes: built.notes.iter().chain(&collected.notes).cloned().collect(),
    }
}
