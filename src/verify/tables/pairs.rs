//! What a dataset of pairs of commits says in several places, held against each other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::derived::head_of;
use super::groups;
use super::summary::{compare_subsets, differing, rate_again, value};
use super::{Compared, cells_differ, read, row_of, rows};
use crate::dataset::Dataset;
use crate::dataset::codetaste::{CodetasteInstance, HiddenPair};
use crate::error::Result;
use crate::family::codetaste::diff::changed;
use crate::family::codetaste::submission::authors_id;
use crate::family::codetaste::suite::Bounds;
use crate::family::codetaste::view;
use crate::record::codetaste::{PairCause, PairTree, Side, SuiteRun, suite_of};
use crate::record::id::{InstanceId, RepoSlug, sha256_hex};

const INSTANCES: &str = "instances.jsonl";
const PAIRS: &str = "pairs.parquet";
const RUNS: &str = "suite_runs.parquet";
const HIDDEN: &str = "hidden";

/// By instance ID.
type Runs = BTreeMap<String, Vec<SuiteRun>>;
type AllHidden = BTreeMap<String, HiddenPair>;

/// Holds all of a dataset against itself.
pub(super) fn compare(dataset: &Dataset) -> Result<Compared> {
    let mut found = Compared::default();
    let Some(instances) = rows(&mut found, dataset, dataset.codetaste_instances())? else { return Ok(found) };
    let groups = groups::read(&mut found, dataset)?;
    groups.compare(&mut found, &dataset.manifest, (&[], &BTreeSet::new()))?;
    let runs = read(&mut found, RUNS, dataset.suite_runs())?;
    let hidden = read(&mut found, HIDDEN, dataset.hidden_pairs_if_there())?.flatten();
    derived(&mut found, dataset, (&instances, runs.as_ref(), hidden.as_ref()))?;
    let pairs = pairs(&mut found, dataset, &instances);
    read(&mut found, PAIRS, pairs)?;
    let rows = [
        ("instances", instances.len()),
        ("suite_runs", runs.iter().flat_map(BTreeMap::values).map(Vec::len).sum()),
    ];
    summary(&mut found, dataset, &instances, &rows)?;
    if hidden.is_none() {
        found.is_not_verified(
            "hidden/: it was left out, so neither patterns, golden patches nor cases that must pass were held against anything"
                .to_owned(),
        );
    }
    not_looked_at(&mut found);
    Ok(found)
}

fn not_looked_at(found: &mut Compared) {
    for what in [
        "groups.parquet: why groups were dropped, and what was measured of them",
        "attempts.parquet: outcomes, observations and durations",
        "suite_runs.parquet: counts and durations of each run, but for the bounds that they set",
        "pairs.parquet: evidence",
        "instances: files_created, files_deleted, files_moved, gzip_ratio, lock_from, flags; golden_prec but for what a run shows",
        "report.html and hidden/report.html: the pages, which `gistmill report` makes anew",
        "environments/: Dockerfiles, what was built with, and other files beside requirements.lock",
        "README.md: its text",
        "manifest.json: sources, but for the hashes of the trees; environments, but for requirements.lock; parity, rules, failed, \
         isolation, machine, worlds, normalized, spent, varies, notes",
    ] {
        found.is_not_verified(what.to_owned());
    }
}

/// Holds each instance against what its other tables come to.
fn derived(
    found: &mut Compared,
    dataset: &Dataset,
    (instances, runs, hidden): (&[CodetasteInstance], Option<&Runs>, Option<&AllHidden>),
) -> Result<()> {
    let manifest = &dataset.manifest;
    let mut expected = instances.to_vec();
    for one in &mut expected {
        let id = one.head.instance_id.to_string();
        let repo = one.head.repo.clone();
        let environment = head_of(found, manifest, &mut one.head);
        if let Some(environment) = environment {
            one.lock_sha256.clone_from(&environment.lock_sha256);
        }
        one.environment = format!("environments/{}", one.head.slug.file_name());
        one.head.repo = repo;
        if let Ok(repo) = RepoSlug::new(&one.head.repo) {
            let (owner, name) = repo.as_str().split_once('/').unwrap_or_default();
            one.authors_id = authors_id(owner, name, &one.head.commit);
            one.head.instance_id = InstanceId::of_pair(&repo, &one.head.commit, &one.golden_commit);
        }
        if let Some(runs) = runs {
            of_runs(found, one, runs.get(&id).map(Vec::as_slice).unwrap_or_default());
        }
        if let Some(hidden) = hidden {
            match hidden.get(&id) {
                Some(hidden) => of_hidden(one, hidden),
                None => found.wrong(HIDDEN, &id, "has nothing of it"),
            }
        }
    }
    rate_again(&mut expected, manifest);
    for (said, expected) in instances.iter().zip(&expected) {
        let id = said.head.instance_id.as_str();
        found.rows_differ(INSTANCES, id, &row_of(said)?, &row_of(expected)?);
    }
    for id in hidden.into_iter().flat_map(BTreeMap::keys) {
        if !instances.iter().any(|one| one.head.instance_id.as_str() == id) {
            found.wrong(HIDDEN, id, "the dataset has no such instance");
        }
    }
    Ok(())
}

/// What the runs of an instance say of it.
fn of_runs(found: &mut Compared, one: &mut CodetasteInstance, runs: &[SuiteRun]) {
    let id = one.head.instance_id.to_string();
    let Some(bounds) = Bounds::of(runs.iter().map(|run| run.counts)) else {
        found.wrong(RUNS, &id, "has no run with counts of it");
        return;
    };
    let plain = |count: i64| u64::try_from(count).unwrap_or_default();
    let total = |tree: PairTree| {
        let first = runs.iter().find(|run| run.tree == tree && run.counts.is_some());
        first.and_then(|run| run.counts).map_or(0, |counts| plain(counts.total))
    };
    (one.p_min, one.f_max) = (plain(bounds.passed), plain(bounds.failed));
    (one.tests_base, one.tests_golden) = (total(PairTree::Base), total(PairTree::Golden));
    one.runs = runs.iter().map(|run| u64::from(run.number) + 1).max().unwrap_or_default();
}

/// What is hidden of an instance says of it.
fn of_hidden(one: &mut CodetasteInstance, hidden: &HiddenPair) {
    let of_side = |side: Side| hidden.patterns.iter().filter(|row| row.side == side).count() as u64;
    (one.n_additive, one.n_reductive) = (of_side(Side::Additive), of_side(Side::Reductive));
    one.n_must_pass = hidden.must_pass.len() as u64;
    suite_of(&hidden.scripts).clone_into(&mut one.suite);
    one.language = hidden.scripts.is_empty().then(|| "python".to_owned());
    let texts = [("instructed", &hidden.description), ("open", &hidden.open_description)];
    one.tracks =
        texts.iter().filter(|(_, text)| text.is_some()).map(|(name, _)| (*name).to_owned()).collect();
    let chars = |text: &Option<String>| text.as_ref().map(|text| text.chars().count() as u64);
    let sha256 = |text: &Option<String>| text.as_ref().map(|text| sha256_hex(text.as_bytes()));
    (one.description_chars, one.open_chars) = (chars(&hidden.description), chars(&hidden.open_description));
    (one.description_sha256, one.open_sha256) =
        (sha256(&hidden.description), sha256(&hidden.open_description));
    if let Some(patch) = &hidden.golden_patch {
        let lines = changed(patch);
        (one.lines_added, one.lines_removed) = (lines.added.count(), lines.removed.count());
        one.files_changed = view::files(patch).len() as u64;
    }
}

/// Every instance is a pair without a cause, and no other pair is.
fn pairs(found: &mut Compared, dataset: &Dataset, instances: &[CodetasteInstance]) -> Result<()> {
    let table = dataset.table("pairs", &[])?;
    let ids = table.whole_texts("instance_id")?;
    let causes = table.texts("cause")?;
    let mut missing: BTreeMap<&str, &CodetasteInstance> =
        instances.iter().map(|one| (one.head.instance_id.as_str(), one)).collect();
    for at in 0..table.rows() {
        let cause = causes[at].map(str::to_owned);
        let instance = missing.remove(ids[at]);
        match (instance, &cause) {
            (Some(one), _) => {
                let expected = json!({
                    "slug": one.head.slug, "repo": one.head.repo, "base_commit": one.head.commit,
                    "golden_commit": one.golden_commit, "cause": Value::Null, "evidence": Value::Null,
                });
                cells_differ(found, (PAIRS, &table, at), ids[at], &expected);
            }
            (None, None) => found.wrong(PAIRS, ids[at], "has no cause, and is not an instance"),
            (None, Some(cause)) if !PairCause::ALL.iter().any(|one| one.as_str() == cause) => {
                found.wrong(PAIRS, ids[at], &format!("{cause} is not a cause"));
            }
            (None, Some(_)) => {}
        }
    }
    for id in missing.keys() {
        found.wrong(PAIRS, id, "is an instance, and not in this table");
    }
    differing(
        found,
        "counts.rows.pairs",
        &value(&dataset.manifest.counts.rows.get("pairs"))?,
        &value(&table.rows())?,
    );
    Ok(())
}

/// The manifest against what the rows come to.
fn summary(
    found: &mut Compared,
    dataset: &Dataset,
    instances: &[CodetasteInstance],
    rows: &[(&str, usize)],
) -> Result<()> {
    let manifest = &dataset.manifest;
    for (table, expected) in rows {
        let said = manifest.counts.rows.get(*table).copied();
        differing(found, &format!("counts.rows.{table}"), &value(&said)?, &value(expected)?);
    }
    compare_subsets(found, manifest, instances)?;
    let mut published: BTreeMap<&str, u64> = BTreeMap::new();
    for one in instances {
        *published.entry(one.head.slug.as_str()).or_default() += 1;
    }
    for (slug, counts) in &manifest.counts.repositories {
        let expected = published.get(slug.as_str()).copied().unwrap_or_default();
        let key = format!("counts.repositories.{slug}.published");
        differing(found, &key, &value(&counts.published)?, &value(&expected)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::testing::made_up::MadeUp;

    fn written(change: impl Fn(&mut MadeUp)) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("1");
        let mut made_up = MadeUp::pairs(&[12, 5]);
        change(&mut made_up);
        made_up.write(&directory);
        (folder, directory)
    }

    fn found(directory: &std::path::Path) -> Vec<(String, String, String)> {
        let compared = super::super::compare(&Dataset::open_any(directory).unwrap()).unwrap();
        compared.differences.into_iter().map(|one| (one.file, one.column, one.said)).collect()
    }

    #[test]
    fn a_dataset_as_it_was_written_agrees_with_itself() {
        let (_folder, directory) = written(|_| {});
        assert_eq!(found(&directory), []);
    }

    #[test]
    fn a_bound_that_no_run_sets_and_lines_that_the_patch_does_not_change_are_named() {
        let (_folder, directory) = written(|made_up| {
            let one = made_up.repositories[0].codetaste.as_mut().unwrap();
            one.bounds.passed = 3;
            one.shape.lines_added = 9;
        });
        let columns: BTreeSet<String> = found(&directory).into_iter().map(|one| one.1).collect();
        assert_eq!(
            columns,
            ["lines_added", "p_min", "tier"].map(str::to_owned).into(),
            "tiers follow from lines"
        );
    }

    #[test]
    fn a_pair_without_a_cause_that_is_no_instance_is_named() {
        let (_folder, directory) = written(|made_up| {
            made_up.pairs.last_mut().unwrap().dropped = None;
        });
        let said: Vec<String> = found(&directory).into_iter().map(|one| one.2).collect();
        assert_eq!(said, ["has no cause, and is not an instance"]);
    }
}
