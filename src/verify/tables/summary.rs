//! The manifest, the card and the locks against what a build would write.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::groups::Groups;
use super::{Compared, is_older, read};
use crate::dataset::counts::Counts;
use crate::dataset::manifest::SubsetSummary;
use crate::dataset::manifest::{FILE, Manifest};
use crate::dataset::rated::{Rate, all_of, rate};
use crate::dataset::{Dataset, card, counts, describe, subsets, trees};
use crate::error::{Error, Result};
use crate::record::id::sha256_hex;
use crate::record::instance::Instance;
use crate::record::limits::TierBounds;
use crate::record::prompt::PromptSettings;
use crate::subset::{FORMER_TOP, Member, Subset, TOP};

/// Largest card that is read, in bytes.
const LARGEST_CARD: u64 = 64 << 20;

/// Holds the manifest and what describes the dataset against its rows.
pub(super) fn compare(
    found: &mut Compared,
    (dataset, groups): (&Dataset, &Groups),
    instances: &[Instance],
) -> Result<()> {
    let manifest = &dataset.manifest;
    counted(found, manifest, groups, instances)?;
    settings(found, dataset, instances)?;
    places(found, dataset)?;
    card(found, dataset, instances)
}

pub(super) fn value(of: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(of)
        .map_err(|error| Error::internal("cannot encode what is compared").with_source(error))
}

/// Names each place of two values that differs.
pub(super) fn differing(found: &mut Compared, key: &str, said: &Value, expected: &Value) {
    match (said, expected) {
        (Value::Object(said), Value::Object(expected)) => {
            let keys: BTreeSet<&String> = said.keys().chain(expected.keys()).collect();
            for one in keys {
                let [said, expected] = [said, expected].map(|of| of.get(one).unwrap_or(&Value::Null));
                differing(found, &format!("{key}.{one}"), said, expected);
            }
        }
        _ if said == expected => {}
        _ => found.differs(FILE, "", key, (said, expected)),
    }
}

/// Sets tiers and hard axes as the manifest says that they are set.
pub(super) fn rate_again(rows: &mut [impl Rate], manifest: &Manifest) {
    let bounds = TierBounds { medium: manifest.tiers.medium_from, hard: manifest.tiers.hard_from };
    rate(rows, &bounds, hard_per_axis(manifest));
}

/// How many instances each axis of the top subset is asked for.
fn hard_per_axis(manifest: &Manifest) -> u32 {
    let asked = manifest.config["dataset"]["hard_per_axis"].as_u64();
    asked.and_then(|asked| u32::try_from(asked).ok()).unwrap_or(manifest.hard_subset.per_axis)
}

fn counted(found: &mut Compared, manifest: &Manifest, groups: &Groups, instances: &[Instance]) -> Result<()> {
    let mut expected = groups.counts(instances);
    let mut said: BTreeMap<String, Counts> = BTreeMap::new();
    for (slug, counts) in &manifest.counts.repositories {
        let of_groups = expected.entry(slug.to_string()).or_default();
        of_groups.deselected = counts.deselected;
        said.insert(slug.to_string(), counts.clone());
    }
    differing(found, "counts.repositories", &value(&said)?, &value(&expected)?);
    let total = counts::total(expected.values());
    differing(found, "counts.total", &value(&manifest.counts.total)?, &value(&total)?);
    let functions: u64 = groups.traces.values().map(|totals| u64::from(totals.unique_functions)).sum();
    let rows = json!({
        "instances": instances.len(),
        "groups": total.groups,
        "cases": total.cases,
        "attempts": total.attempts,
        "traces": functions,
    });
    if !manifest.counts.rows.is_empty() {
        differing(found, "counts.rows", &value(&manifest.counts.rows)?, &rows);
    }
    compare_subsets(found, manifest, instances)?;
    for (name, summary) in &manifest.subsets {
        let is_top = name.as_str() == TOP || name.as_str() == FORMER_TOP;
        let top = Subset { name: name.clone(), ..Subset::top() };
        if is_top && summary.definition != top {
            let key = format!("subsets.{name}.definition");
            differing(found, &key, &value(&summary.definition)?, &value(&top)?);
        }
    }
    Ok(())
}

/// Holds what the manifest says of each subset against its members.
pub(super) fn compare_subsets(
    found: &mut Compared,
    manifest: &Manifest,
    instances: &[impl Member],
) -> Result<()> {
    for (name, summary) in &manifest.subsets {
        let expected = SubsetSummary::new(&summary.definition, instances);
        differing(found, &format!("subsets.{name}"), &value(summary)?, &value(&expected)?);
    }
    Ok(())
}

/// Holds the files that the manifest says are made again to the byte against those that are, some of them of a family alone.
pub(super) fn reproducible(
    found: &mut Compared,
    dataset: &Dataset,
    of_family: impl IntoIterator<Item = String>,
) -> Result<()> {
    let manifest = &dataset.manifest;
    let names = manifest.subsets.keys();
    let of_subsets = names
        .flat_map(|name| ["parquet", "jsonl"].map(|ending| format!("{}/{name}.{ending}", subsets::FOLDER)));
    let of_trees = manifest.trees.keys().flat_map(|slug| [trees::place(slug), trees::list_place(slug)]);
    let tables = describe::REPRODUCIBLE.map(str::to_owned).into_iter().chain(of_family);
    let expected: BTreeSet<String> = tables.chain(of_subsets).chain(of_trees).collect();
    let said: BTreeSet<String> = manifest.reproducible.iter().cloned().collect();
    if !is_older(dataset) && said != expected {
        found.differs(FILE, "", "reproducible", (&value(&said)?, &value(&expected)?));
    }
    Ok(())
}

fn settings(found: &mut Compared, dataset: &Dataset, instances: &[Instance]) -> Result<()> {
    let (manifest, config) = (&dataset.manifest, &dataset.manifest.config);
    let parsed = |section: &str| config.get(section).cloned().unwrap_or_default();
    for (key, said) in [("name", &manifest.name), ("version", &manifest.version)] {
        if let Some(configured) = config["dataset"][key].as_str().filter(|one| *one != said.as_str()) {
            found.differs(FILE, "", key, (&said.as_str().into(), &configured.into()));
        }
    }
    let bound = |key: &str| config["tier"][key].as_f64();
    match bound("medium").zip(bound("hard")).map(|(medium, hard)| TierBounds { medium, hard }) {
        Some(bounds) => {
            differing(found, "tiers", &value(&manifest.tiers)?, &value(&describe::tiers(&bounds))?);
        }
        None => found.is_not_verified(
            "manifest.json: the bounds of the tiers, which its config does not say".to_owned(),
        ),
    }
    let attempts = config["screen"]["attempts"].as_u64().and_then(|one| u32::try_from(one).ok());
    let attempts = attempts.unwrap_or(manifest.flake_bound.required_attempts);
    let bound = describe::flake_bounds(attempts, &all_of(instances));
    differing(found, "flake_bound", &value(&manifest.flake_bound)?, &value(&bound)?);
    let hard = describe::hard_subset(&all_of(instances), hard_per_axis(manifest));
    differing(found, "hard_subset", &value(&manifest.hard_subset)?, &value(&hard)?);
    let Some(prompt) = &manifest.prompt else {
        found.is_not_verified("manifest.json: how prompts were made, which it does not say".to_owned());
        return Ok(());
    };
    let settings: Option<PromptSettings> = serde_json::from_value(parsed("prompt")).ok();
    let expected = describe::prompt(settings.unwrap_or(prompt.settings))?;
    if !is_older(dataset) || prompt.template == expected.template {
        differing(found, "prompt", &value(prompt)?, &value(&expected)?);
    }
    Ok(())
}

/// Files that are named, and locks.
fn places(found: &mut Compared, dataset: &Dataset) -> Result<()> {
    let manifest = &dataset.manifest;
    reproducible(found, dataset, [])?;
    for slug in manifest.environments.keys() {
        let place = format!("environments/{}/requirements.lock", slug.file_name());
        let Some(lock) = read(found, &place, dataset.lock(slug))? else { continue };
        let (said, hash) = (&manifest.environments[slug].lock_sha256, sha256_hex(lock.as_bytes()));
        if *said != hash {
            let key = format!("environments.{slug}.lock_sha256");
            found.differs(FILE, "", &key, (&said.as_str().into(), &hash.into()));
        }
    }
    for slug in manifest.sources.keys().chain(manifest.environments.keys()).chain(manifest.trees.keys()) {
        if !manifest.counts.repositories.contains_key(slug) {
            found.wrong(FILE, slug.as_str(), "is a repository that `counts` does not have");
        }
    }
    Ok(())
}

/// The front matter is what loaders read, and is the same in every version.
fn card(found: &mut Compared, dataset: &Dataset, instances: &[Instance]) -> Result<()> {
    let Some(said) = card_text(found, dataset)? else { return Ok(()) };
    let expected = card::render(&dataset.manifest, &all_of(instances), instances.first())?;
    let (front, body) = parts(&expected);
    let (said_front, said_body) = parts(&said);
    lines(found, "front matter", said_front, front);
    if is_older(dataset) {
        found.is_not_verified(format!("{}: the text below the front matter", card::FILE));
    } else {
        lines(found, "text", said_body, body);
    }
    Ok(())
}

/// The text of the card; none where it cannot be read, which is found.
pub(super) fn card_text(found: &mut Compared, dataset: &Dataset) -> Result<Option<String>> {
    let bytes = read(found, card::FILE, dataset.folder()?.read(Path::new(card::FILE), LARGEST_CARD))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn parts(card: &str) -> (&str, &str) {
    let end = card.strip_prefix("---\n").and_then(|rest| rest.find("\n---\n"));
    card.split_at(end.map_or(0, |end| end + "---\n\n---\n".len()))
}

/// Names the first line that differs.
pub(super) fn lines(found: &mut Compared, part: &str, said: &str, expected: &str) {
    if said == expected {
        return;
    }
    let both = said.lines().zip(expected.lines());
    let at = both.take_while(|(said, expected)| said == expected).count();
    let line = |text: &str| Value::from(text.lines().nth(at).unwrap_or("the end"));
    found.differs(card::FILE, &format!("line {} of it", at + 1), part, (&line(said), &line(expected)));
}
