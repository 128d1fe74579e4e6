//! A dataset directory as a [`Version`].

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{GroupOf, RepositoryOf, Version};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::record::id::hash_parts;

/// Measurements that are compared: columns of `groups`.
const MEASURES: [&str; 6] =
    ["trace_length", "trace_length_package", "unique_files", "unique_functions", "executed_lines", "n_cases"];

/// Reads what is compared.
///
/// # Errors
/// When the directory is no dataset of this format.
pub(super) fn version(directory: &Path) -> Result<Version> {
    let dataset = Dataset::open(directory)?;
    let manifest = &dataset.manifest;
    let mut repositories: BTreeMap<String, RepositoryOf> = manifest
        .sources
        .iter()
        .map(|(slug, source)| {
            (slug.clone(), RepositoryOf { commit: source.commit.clone(), groups: BTreeMap::new() })
        })
        .collect();
    for (slug, id, group) in groups(&dataset)? {
        repositories.entry(slug).or_default().groups.insert(id, group);
    }
    for (slug, id, case, hash) in golden(&dataset)? {
        if let Some(group) = repositories.get_mut(&slug).and_then(|one| one.groups.get_mut(&id)) {
            group.golden.insert(case, hash);
        }
    }
    Ok(Version {
        name: manifest.name.clone(),
        version: manifest.version.clone(),
        repositories,
        failed: manifest.failed.iter().map(|one| (one.slug.to_string(), one.message.clone())).collect(),
    })
}

fn groups(dataset: &Dataset) -> Result<Vec<(String, String, GroupOf)>> {
    let table = dataset.table("groups", &[])?;
    let (slugs, ids) = (table.whole_texts("slug")?, table.whole_texts("group_id")?);
    let (published, causes) = (table.flags("published")?, table.texts("cause")?);
    let (evidence, tiers) = (table.texts("evidence")?, table.texts("tier")?);
    let (hard_axes, stable) = (table.lists("hard_axes")?, table.flags("trace_stable")?);
    // Datasets of the first releases have no such column.
    let codes = table.texts("code_sha256").unwrap_or_else(|_| vec![None; table.rows()]);
    let measures: Vec<_> = MEASURES
        .into_iter()
        .map(|name| Ok((name, table.numbers(name)?)))
        .collect::<Result<Vec<(&'static str, _)>>>()?;
    let row = |at: usize| {
        let group = GroupOf {
            published: published[at],
            cause: causes[at].filter(|cause| !cause.is_empty()).map(str::to_owned),
            summary: evidence[at].and_then(summary),
            code: codes[at].map(str::to_owned),
            measures: measures.iter().map(|(name, values)| (*name, values[at])).collect(),
            trace_stable: Some(stable[at]),
            tier: tiers[at].map(str::to_owned),
            hard_axes: hard_axes[at].clone(),
            golden: BTreeMap::new(),
        };
        (slugs[at].to_owned(), ids[at].to_owned(), group)
    };
    Ok((0..table.rows()).map(row).collect())
}

fn summary(evidence: &str) -> Option<String> {
    let value: Value = serde_json::from_str(evidence).ok()?;
    Some(value["summary"].as_str()?.to_owned())
}

/// Slug, group, case and the hash of what it showed, for the cases of instances.
fn golden(dataset: &Dataset) -> Result<Vec<(String, String, String, String)>> {
    let table = dataset.table("cases", &[])?;
    let (slugs, ids, cases) =
        (table.whole_texts("slug")?, table.whole_texts("group_id")?, table.whole_texts("case_id")?);
    let instances = table.texts("instance_id")?;
    let seen: Vec<Vec<Option<&str>>> = ["outcome", "exception", "stdout", "stderr"]
        .into_iter()
        .map(|name| table.texts(name))
        .collect::<Result<_>>()?;
    let row = |at: usize| {
        let parts: Vec<String> =
            seen.iter().map(|column| column[at].map_or("-".to_owned(), |text| format!("+{text}"))).collect();
        (slugs[at].to_owned(), ids[at].to_owned(), cases[at].to_owned(), hash_parts(&parts))
    };
    Ok((0..table.rows()).filter(|at| instances[*at].is_some()).map(row).collect())
}
