//! A dataset directory as a [`Version`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{GroupOf, RepositoryOf, Version};
use crate::dataset::query::pairs::{FoundPair, Refactoring};
use crate::dataset::query::targets::FoundTarget;
use crate::dataset::recube::RecubeInstance;
use crate::dataset::{Dataset, query, subsets};
use crate::error::Result;
use crate::record::family::Unit;
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::recube::InstanceCase;

/// Measurements that are compared: columns of `groups`.
const MEASURES: [&str; 6] =
    ["trace_length", "trace_length_package", "unique_files", "unique_functions", "executed_lines", "n_cases"];

/// What is compared: a dataset, or a subset of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DatasetPath {
    directory: PathBuf,
    subset: Option<String>,
}

impl DatasetPath {
    /// `<dataset>`, `<dataset>/instances.parquet` or `<dataset>/subsets/<name>.parquet`, also with `.jsonl`.
    pub(super) fn of(path: &Path) -> Self {
        let whole = || DatasetPath { directory: path.to_owned(), subset: None };
        let ending = path.extension().and_then(|ending| ending.to_str());
        if !matches!(ending, Some("parquet" | "jsonl")) {
            return whole();
        }
        // A file that is named without a folder is in the current one.
        let above = |path: &Path| match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Some(PathBuf::from(".")),
            other => other.map(Path::to_owned),
        };
        let (Some(folder), Some(name)) = (above(path), path.file_stem().and_then(|name| name.to_str()))
        else {
            return whole();
        };
        if name == "instances" {
            return DatasetPath { directory: folder, subset: None };
        }
        match (folder.file_name().is_some_and(|name| name == subsets::FOLDER), above(&folder)) {
            (true, Some(directory)) => DatasetPath { directory, subset: Some(name.to_owned()) },
            _ => whole(),
        }
    }
}

/// Reads what is compared.
///
/// # Errors
/// When the directory is not a dataset of this format, or has no such subset.
pub(super) fn version(place: &DatasetPath) -> Result<Version> {
    let dataset = Dataset::open_any(&place.directory)?;
    let manifest = &dataset.manifest;
    let mut repositories: BTreeMap<String, RepositoryOf> = manifest
        .sources
        .iter()
        .map(|(slug, source)| {
            (slug.to_string(), RepositoryOf { commit: source.commit.clone(), groups: BTreeMap::new() })
        })
        .collect();
    let members = place.subset.as_deref().map(|name| dataset.members(name)).transpose()?;
    let rows = match manifest.family.unit() {
        Unit::Group => groups(&dataset)?,
        Unit::File => targets(&dataset)?,
        Unit::Pair => pairs(&dataset)?,
    };
    for Row { slug, id, instance, mut group } in rows {
        if let Some(members) = &members {
            group.published &= members.contains(&instance);
        }
        repositories.entry(slug).or_default().groups.insert(id, group);
    }
    let golden = match manifest.family.unit() {
        Unit::Group => golden(&dataset)?,
        Unit::File | Unit::Pair => Vec::new(),
    };
    for (slug, id, case, hash) in golden {
        if let Some(group) = repositories.get_mut(&slug).and_then(|one| one.groups.get_mut(&id)) {
            group.golden.insert(case, hash);
        }
    }
    let name = match &place.subset {
        Some(subset) => format!("{}/{subset}", manifest.name),
        None => manifest.name.to_string(),
    };
    Ok(Version {
        family: manifest.family,
        name,
        version: manifest.version.to_string(),
        repositories,
        failed: manifest.failed.iter().map(|one| (one.slug.to_string(), one.message.clone())).collect(),
    })
}

/// A group in its place.
struct Row {
    slug: String,
    id: String,
    /// Empty where the dataset does not say it.
    instance: String,
    group: GroupOf,
}

fn groups(dataset: &Dataset) -> Result<Vec<Row>> {
    let table = dataset.table("groups", &[])?;
    let (slugs, ids) = (table.whole_texts("slug")?, table.whole_texts("group_id")?);
    // Datasets of the first releases lack some columns.
    let absent = |_| vec![None; table.rows()];
    let instances = table.texts("instance_id").unwrap_or_else(absent);
    let (published, causes) = (table.flags("published")?, table.texts("cause")?);
    let (evidence, tiers) = (table.texts("evidence")?, table.texts("tier")?);
    let (hard_axes, stable) = (table.lists("hard_axes")?, table.flags("trace_stable")?);
    let codes = table.texts("code_sha256").unwrap_or_else(absent);
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
        let instance = instances[at].unwrap_or_default().to_owned();
        Row { slug: slugs[at].to_owned(), id: ids[at].to_owned(), instance, group }
    };
    Ok((0..table.rows()).map(row).collect())
}

/// Files that are masked, or could have been. Their observation is which cases judge.
fn targets(dataset: &Dataset) -> Result<Vec<Row>> {
    let instances: BTreeMap<String, RecubeInstance> =
        dataset.recube_instances()?.into_iter().map(|one| (one.head.instance_id.to_string(), one)).collect();
    let mut golden: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (id, cases) in dataset.recube_cases()? {
        let told = |case: InstanceCase| {
            let told = hash_parts(&[case.kind.as_str(), case.left_out.as_deref().unwrap_or_default()]);
            (case.case_id, told)
        };
        golden.insert(id, cases.into_iter().map(told).collect());
    }
    let row = |found: FoundTarget| {
        let id = found.instance_id.clone().unwrap_or_default();
        let instance = instances.get(&id);
        let noticed = instance.and_then(|one| i64::try_from(one.noticed_functions).ok());
        let group = GroupOf {
            published: instance.is_some(),
            code: instance.map(|one| one.original_sha256.clone()),
            measures: [
                ("target_statements", Some(found.target_statements)),
                ("masked_functions", Some(found.masked_functions)),
                ("called_functions", Some(found.called_functions)),
                ("noticed_functions", noticed),
                ("reached_by", Some(found.reached_by)),
                ("caller_files", Some(found.caller_files)),
            ]
            .into(),
            trace_stable: None,
            tier: instance.map(|one| one.tier.as_str().to_owned()),
            hard_axes: instance.map(|one| one.hard_axes.clone()).unwrap_or_default(),
            golden: golden.get(&id).cloned().unwrap_or_default(),
            cause: found.cause,
            summary: found.evidence,
        };
        Row { slug: found.slug, id: found.target, instance: id, group }
    };
    Ok(query::targets::all(dataset)?.into_iter().map(row).collect())
}

/// Pairs of commits. Their observation is what judges: bounds of PASS, cases that must pass, patterns with their matches.
fn pairs(dataset: &Dataset) -> Result<Vec<Row>> {
    let hidden = dataset.hidden_pairs_if_there()?.unwrap_or_default();
    let row = |found: FoundPair| {
        let id = found.instance_id.clone().unwrap_or_default();
        let number = |value: u64| i64::try_from(value).ok();
        let one = found.published.as_ref();
        let of = |value: &dyn Fn(&Refactoring) -> u64| one.and_then(|one| number(value(one)));
        let mut golden = BTreeMap::new();
        if let Some(hidden) = hidden.get(&id) {
            golden.extend(hidden.must_pass.iter().map(|case| (case.clone(), "must-pass".to_owned())));
            golden.extend(hidden.patterns.iter().map(|pattern| {
                let told =
                    [pattern.base, pattern.golden, pattern.lines, pattern.files].map(|n| n.to_string());
                (format!("pattern {}", pattern.id), hash_parts(&told))
            }));
        }
        let group = GroupOf {
            published: one.is_some(),
            cause: found.cause.clone(),
            summary: found.evidence.clone(),
            code: hidden.get(&id).and_then(|one| one.golden_patch.as_deref()).map(sha256_hex),
            measures: [
                ("p_min", of(&|one| one.p_min)),
                ("f_max", of(&|one| one.f_max)),
                ("n_must_pass", of(&|one| one.n_must_pass)),
                ("n_additive", of(&|one| one.n_additive)),
                ("n_reductive", of(&|one| one.n_reductive)),
            ]
            .into(),
            trace_stable: None,
            tier: one.map(|one| one.tier.to_owned()),
            hard_axes: one.map(|one| one.row.hard_axes.clone()).unwrap_or_default(),
            golden,
        };
        Row { slug: found.slug, id: found.golden_commit, instance: id, group }
    };
    Ok(query::pairs::all(dataset)?.into_iter().map(row).collect())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::made_up::MadeUp;

    #[test]
    fn a_file_of_a_dataset_leads_to_its_directory() {
        for (path, directory, subset) in [
            ("a/1", "a/1", None),
            ("a/1/instances.parquet", "a/1", None),
            ("instances.jsonl", ".", None),
            ("a/1/subsets/top.parquet", "a/1", Some("top")),
            ("subsets/top.jsonl", ".", Some("top")),
            ("top.parquet", "top.parquet", None),
        ] {
            let expected = DatasetPath { directory: directory.into(), subset: subset.map(str::to_owned) };
            assert_eq!(DatasetPath::of(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn masked_files_are_compared_by_their_cases_and_bodies_and_not_with_tests() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new, other) = (folder.path().join("1"), folder.path().join("2"), folder.path().join("3"));
        let mut made_up = MadeUp::masked(&[12, 12]);
        crate::testing::write(&old, &made_up.input()).unwrap();
        for (at, one) in made_up.repositories.iter_mut().enumerate() {
            let recube = one.recube.as_mut().unwrap();
            if at == 0 {
                recube.published[0].noticed_functions = 1;
                recube.published[0].cases[0].left_out = Some("masked".to_owned());
            } else {
                recube.published.clear();
                recube.targets[1].published = false;
                recube.targets[1].cause = Some(crate::record::recube::TargetCause::MaskSurvives);
            }
        }
        crate::testing::write(&new, &made_up.input()).unwrap();
        let diff = crate::diff::places(&old, &new).unwrap();
        let (total, text) = (&diff.total, diff.to_string());
        assert_eq!((total.removed, total.changed, total.unchanged), (1, 1, 0));
        for words in [
            "files: 0 new, 0 gone, 1 masked in both with the same text, 0 with another, 1 not masked in both",
            "- src/made/core.py  (mask-survives)",
            "~ src/made/core.py  noticed_functions 2 → 1, cases: 1 other golden observation",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(crate::diff::places(&old, &old).unwrap().total.unchanged, 2);
        crate::testing::write(&other, &MadeUp::new(&[5]).input()).unwrap();
        let error = crate::diff::places(&other, &old).unwrap_err();
        assert!(error.to_string().contains("gistify cannot be compared"), "{error}");
    }

    #[test]
    fn pairs_are_compared_by_what_judges_them() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("1"), folder.path().join("2"));
        let mut made_up = MadeUp::pairs(&[12, 12]);
        crate::testing::write(&old, &made_up.input()).unwrap();
        let one = made_up.repositories[0].codetaste.as_mut().unwrap();
        one.bounds.passed = 19;
        one.must_pass.pop_first();
        one.patterns[0].golden = 3;
        crate::testing::write(&new, &made_up.input()).unwrap();
        let diff = crate::diff::places(&old, &new).unwrap();
        let text = diff.to_string();
        assert_eq!((diff.total.changed, diff.total.unchanged), (1, 1), "{text}");
        assert!(text.contains("pairs: 0 new, 0 gone, 1 with the same golden patch"), "{text}");
        for words in ["p_min 20 → 19", "cases: 1 gone", "cases: 1 other golden observation"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn a_subset_is_compared_as_if_nothing_else_were_published() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("1");
        crate::testing::write(&directory, &MadeUp::new(&[40]).input()).unwrap();
        let dataset = Dataset::open(&directory).unwrap();
        let name = dataset.manifest.subsets.keys().next().expect("a dataset has subsets").clone();
        let members = dataset.members(name.as_str()).unwrap().len();
        let whole = dataset.instances().unwrap().len();
        let path = directory.join(format!("subsets/{name}.parquet"));
        let diff = crate::diff::places(&directory, &path).unwrap();
        assert_eq!(
            (diff.total.unchanged, diff.total.removed, diff.total.added),
            (members, whole - members, 0)
        );
        assert!(diff.to.contains(&format!("/{name} ")), "{}", diff.to);
        assert!(crate::diff::places(&directory, &directory.join("subsets/no.parquet")).is_err());
    }
}
