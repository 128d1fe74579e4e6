//! The tables of `CodeTaste`: pairs of commits, runs of their suites, and, hidden, what judges.

mod hidden;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::assemble::{Assembled, Repository, head};
use super::dictionary::Entry;
use super::manifest::Manifest;
use super::opened::Dataset;
use super::rated::{Rate, rate};
use super::schema::{ColumnOf, InstanceRow, borrowed, number, properties, real, text, texts, with_head};
use super::write::{table, text as write_text};
use super::{DatasetInput, own};
use crate::error::{Error, Result};
use crate::family::codetaste::score::Side;
use crate::family::codetaste::submission::authors_id;
use crate::family::tier::Difficulty;
use crate::record::codetaste::{Counts, PYTEST, PairRow, PublishedPair, SuiteRun, suite_of};
use crate::record::id::{CommitSha, InstanceId, RepoSlug, sha256_hex};
use crate::record::instance::{Axis, Contribution, Head, Tier};

pub(crate) use hidden::{HiddenPair, write as hidden};

/// Tables of this family alone.
const TABLES: [&str; 2] = ["pairs", "suite_runs"];

/// A row of `instances`, in the order of the columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CodetasteInstance {
    #[serde(flatten)]
    pub head: Head,
    pub golden_commit: String,
    /// What the authors' own files call it.
    pub authors_id: String,
    /// None where scripts run the suite.
    pub language: Option<String>,
    /// Which descriptions it has: `instructed`, `open`.
    pub tracks: Vec<String>,
    pub description_chars: Option<u64>,
    pub open_chars: Option<u64>,
    pub description_sha256: Option<String>,
    pub open_sha256: Option<String>,
    pub runs: u64,
    pub tests_base: u64,
    pub tests_golden: u64,
    pub p_min: u64,
    pub f_max: u64,
    pub n_must_pass: u64,
    pub n_additive: u64,
    pub n_reductive: u64,
    /// Who made the patterns: `given`, `mined`.
    pub patterns_by: String,
    pub golden_prec: Option<f64>,
    pub golden_prec_plus: Option<f64>,
    pub golden_prec_minus: Option<f64>,
    pub files_changed: u64,
    pub lines_added: u64,
    pub lines_removed: u64,
    pub files_created: u64,
    pub files_deleted: u64,
    pub files_moved: u64,
    pub gzip_ratio: Option<f64>,
    pub lock_from: String,
    /// What runs the suite.
    #[serde(default = "pytest")]
    pub suite: String,
    pub tier: Tier,
    pub hard_axes: Vec<String>,
    pub environment: String,
    pub lock_sha256: String,
    pub image: Option<String>,
    pub image_id: Option<String>,
    pub flags: Vec<String>,
}

/// What ran the suites of datasets that do not say it.
fn pytest() -> String {
    PYTEST.to_owned()
}

impl InstanceRow for CodetasteInstance {
    fn columns() -> Vec<ColumnOf<Self>> {
        instances()
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn rating(&self) -> (Tier, bool) {
        (self.tier, !self.hard_axes.is_empty())
    }
}

/// The columns of `instances`.
pub fn instances() -> Vec<ColumnOf<CodetasteInstance>> {
    with_head(vec![
        text("golden_commit", |row| Some(&row.golden_commit)),
        text("authors_id", |row| Some(&row.authors_id)),
        text("language", |row| row.language.as_deref()),
        texts("tracks", |row| Some(borrowed(&row.tracks))),
        number("description_chars", |row| row.description_chars),
        number("open_chars", |row| row.open_chars),
        text("description_sha256", |row| row.description_sha256.as_deref()),
        text("open_sha256", |row| row.open_sha256.as_deref()),
        number("runs", |row| Some(row.runs)),
        number("tests_base", |row| Some(row.tests_base)),
        number("tests_golden", |row| Some(row.tests_golden)),
        number("p_min", |row| Some(row.p_min)),
        number("f_max", |row| Some(row.f_max)),
        number("n_must_pass", |row| Some(row.n_must_pass)),
        number("n_additive", |row| Some(row.n_additive)),
        number("n_reductive", |row| Some(row.n_reductive)),
        text("patterns_by", |row| Some(&row.patterns_by)),
        real("golden_prec", |row| row.golden_prec),
        real("golden_prec_plus", |row| row.golden_prec_plus),
        real("golden_prec_minus", |row| row.golden_prec_minus),
        number("files_changed", |row| Some(row.files_changed)),
        number("lines_added", |row| Some(row.lines_added)),
        number("lines_removed", |row| Some(row.lines_removed)),
        number("files_created", |row| Some(row.files_created)),
        number("files_deleted", |row| Some(row.files_deleted)),
        number("files_moved", |row| Some(row.files_moved)),
        real("gzip_ratio", |row| row.gzip_ratio),
        text("lock_from", |row| Some(&row.lock_from)),
        text("suite", |row| Some(&row.suite)),
        text("tier", |row| Some(row.tier.as_str())),
        texts("hard_axes", |row| Some(borrowed(&row.hard_axes))),
        text("environment", |row| Some(&row.environment)),
        text("lock_sha256", |row| Some(&row.lock_sha256)),
        text("image", |row| row.image.as_deref()),
        text("image_id", |row| row.image_id.as_deref()),
        texts("flags", |row| Some(borrowed(&row.flags))),
    ])
}

fn pairs<'a>() -> Vec<ColumnOf<&'a PairRow>> {
    vec![
        text("instance_id", |row| Some(row.instance_id.as_str())),
        text("slug", |row| Some(row.slug.as_str())),
        text("repo", |row| Some(row.repo.as_str())),
        text("base_commit", |row| Some(&row.base)),
        text("golden_commit", |row| Some(&row.golden)),
        text("cause", |row| row.dropped.as_ref().map(|dropped| dropped.cause.as_str())),
        text("evidence", |row| row.dropped.as_ref().map(|dropped| dropped.evidence.as_str())),
    ]
}

/// A run with the instance that it is of.
struct RunOf<'a> {
    id: &'a InstanceId,
    run: &'a SuiteRun,
}

fn plain(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}

fn suite_runs<'a>() -> Vec<ColumnOf<RunOf<'a>>> {
    vec![
        text("instance_id", |of| Some(of.id.as_str())),
        text("tree", |of| Some(of.run.tree.as_str())),
        number("run", |of| Some(of.run.number.into())),
        number("passed", |of| Some(plain(of.run.counts?.passed))),
        number("failed", |of| Some(plain(of.run.counts?.failed))),
        number("skipped", |of| Some(plain(of.run.counts?.skipped))),
        number("total", |of| Some(plain(of.run.counts?.total))),
        real("duration_ms", |of| Some(of.run.duration_ms)),
    ]
}

/// What every column means; a test holds it against the columns that are written.
pub const DICTIONARY: [(&str, &[Entry]); 3] =
    [("instances", INSTANCES), ("pairs", PAIRS), ("suite_runs", SUITE_RUNS)];

/// Columns of a table with their types and meanings, as of [`super::json_schema`].
pub(super) fn properties_of(table: &str) -> Option<Map<String, Value>> {
    Some(match table {
        "instances" => properties(&instances(), INSTANCES),
        "pairs" => properties(&pairs(), PAIRS),
        "suite_runs" => properties(&suite_runs(), SUITE_RUNS),
        _ => return None,
    })
}

const INSTANCES: &[Entry] = &[
    ("instance_id", "`<owner>__<name>.<base>-<digits>`: a function of repository, base and golden commit"),
    ("family", "`codetaste`"),
    (
        "slug",
        "the pair's own name, by which manifest, trees and environments have it: its repository's with the first digits of the base",
    ),
    ("repo", "the repository, `owner/name`"),
    ("commit", "the base: the commit that an agent starts from"),
    ("base_commit", "the same"),
    ("version", "the first digits of the base"),
    ("created_at", "time of the base (RFC 3339)"),
    ("source", "where the repository comes from"),
    ("license", "SPDX expression of the repository's license; null when unsure"),
    ("python", "version of the interpreter"),
    ("golden_commit", "the commit that is the refactoring, or `sha256:` of its patch: not for agents"),
    ("authors_id", "`<owner>__<name>-<base>`, as the authors' files call it"),
    ("language", "`python`"),
    ("tracks", "descriptions that there are: `instructed`, `open`"),
    ("description_chars", "characters of the instructed description; null without one"),
    ("open_chars", "characters of the open one"),
    ("description_sha256", "SHA-256 of the instructed description"),
    ("open_sha256", "SHA-256 of the open one"),
    ("runs", "whole runs of the suite on each tree"),
    ("tests_base", "tests of the base, as its first run counts them"),
    ("tests_golden", "those of the golden tree"),
    ("p_min", "the fewest tests that passed in any run of either tree"),
    ("f_max", "the most that failed"),
    ("n_must_pass", "cases that pass in every run of both trees, of groups that screening keeps"),
    ("n_additive", "patterns that match the golden tree alone"),
    ("n_reductive", "patterns that match the base alone"),
    ("patterns_by", "`given` by the configuration, or `mined` by a program"),
    ("golden_prec", "share of the lines that the golden patch changes which patterns match"),
    ("golden_prec_plus", "of the lines that it adds; null where it adds none"),
    ("golden_prec_minus", "of the lines that it removes; null where it removes none"),
    ("files_changed", "files that the golden patch changes; one that moved is one"),
    ("lines_added", "lines that it adds, without those below folders of what is built or installed"),
    ("lines_removed", "lines that it removes"),
    ("files_created", "files that it creates"),
    ("files_deleted", "files that it deletes"),
    ("files_moved", "files that it moves, with half of their content at least"),
    ("gzip_ratio", "the compressed diff without context by its size"),
    ("lock_from", "whose declarations the environment is locked by: `base`, `golden`, `both`"),
    (
        "suite",
        "what runs the tests: `pytest`, or `run_tests`, a script of the configuration in an image of its own; then `language` is null, `python` the image's, the lock empty, and no case has a name",
    ),
    ("tier", "`easy`, `medium` or `hard`, by rank within this dataset"),
    ("hard_axes", "axes on which the instance is among the hardest: `lines`, `files`"),
    ("environment", "folder with the lock and the Dockerfile"),
    ("lock_sha256", "SHA-256 of the lock"),
    ("image", "tag of the container image of the environment, which has the base; null where none was made"),
    ("image_id", "the image's id"),
    (
        "flags",
        "`tests-only`: all code that the golden patch changes is tests; `flaky-suite`: runs of one tree differ; `open-description-leaks`: the open description has words that only the golden patch adds",
    ),
];
const PAIRS: &[Entry] = &[
    ("instance_id", "the instance that it is, or would be"),
    ("slug", "the pair's own name"),
    ("repo", "the repository"),
    ("base_commit", "the commit before"),
    ("golden_commit", "the refactoring"),
    ("cause", "the first cause why it is not an instance; null of an instance"),
    ("evidence", "what proves the cause, in words"),
];
const SUITE_RUNS: &[Entry] = &[
    ("instance_id", "the instance"),
    ("tree", "`base` or `golden`"),
    ("run", "number of the run, from 0"),
    ("passed", "cases that passed"),
    (
        "failed",
        "cases that failed or had an error, those of groups that crashed or were late, and files that cannot be collected",
    ),
    ("skipped", "cases that were skipped or failed as expected"),
    ("total", "all of them"),
    ("duration_ms", "what all groups together took"),
];

/// Names of the axes, in the order of [`crate::family::tier::AXES`].
fn axis_name(axis: Axis) -> &'static str {
    match axis {
        Axis::TraceLength => "lines",
        Axis::UniqueFiles => "files",
    }
}

/// The instances of a dataset, by slug.
fn rows<'a>(
    dataset: &DatasetInput<'_>,
    repositories: impl Iterator<Item = (&'a Repository<'a>, &'a Contribution)>,
) -> Vec<CodetasteInstance> {
    let of = |(repository, contribution): (&Repository<'_>, &Contribution)| {
        Some(instance(repository, contribution.codetaste.as_ref()?))
    };
    let mut rows: Vec<CodetasteInstance> = repositories.filter_map(of).collect();
    rate(&mut rows, &dataset.config.tier, dataset.config.dataset.hard_per_axis);
    rows
}

impl Rate for CodetasteInstance {
    fn difficulty(&self) -> Difficulty {
        Difficulty { trace_length: self.lines_added + self.lines_removed, unique_files: self.files_changed }
    }

    fn set(&mut self, tier: Tier, hard_axes: Vec<Axis>) {
        self.tier = tier;
        self.hard_axes = hard_axes.into_iter().map(|axis| axis_name(axis).to_owned()).collect();
    }
}

fn instance(repository: &Repository<'_>, pair: &PublishedPair) -> CodetasteInstance {
    let record = repository.record;
    let head = head(repository.family, record, pair.row.instance_id.clone());
    let (owner, name) = pair.row.repo.as_str().split_once('/').unwrap_or_default();
    let texts = [("instructed", &pair.description), ("open", &pair.open_description)];
    let sha256 = |text: &Option<String>| text.as_ref().map(|text| sha256_hex(text.as_bytes()));
    let chars = |text: &Option<String>| text.as_ref().map(|text| text.chars().count() as u64);
    let of_side = |side: Side| pair.patterns.iter().filter(|row| row.side == side).count() as u64;
    let tests = |tree| {
        let run = pair.runs.iter().find(|run| run.tree == tree && run.counts.is_some());
        run.and_then(|run| run.counts).map_or(0, |counts| plain(counts.total))
    };
    let is_given = pair.patterns.iter().any(|row| row.given);
    let runs = pair.runs.iter().map(|run| u64::from(run.number) + 1).max();
    CodetasteInstance {
        environment: format!("environments/{}", head.slug.file_name()),
        authors_id: authors_id(owner, name, &pair.row.base),
        head: Head { repo: pair.row.repo.to_string(), ..head },
        golden_commit: pair.row.golden.clone(),
        language: pair.scripts.is_empty().then(|| "python".to_owned()),
        tracks: texts.iter().filter(|(_, text)| text.is_some()).map(|(name, _)| (*name).to_owned()).collect(),
        description_chars: chars(&pair.description),
        open_chars: chars(&pair.open_description),
        description_sha256: sha256(&pair.description),
        open_sha256: sha256(&pair.open_description),
        runs: runs.unwrap_or_default(),
        tests_base: tests(crate::record::codetaste::PairTree::Base),
        tests_golden: tests(crate::record::codetaste::PairTree::Golden),
        p_min: plain(pair.bounds.passed),
        f_max: plain(pair.bounds.failed),
        n_must_pass: pair.must_pass.len() as u64,
        n_additive: of_side(Side::Additive),
        n_reductive: of_side(Side::Reductive),
        patterns_by: if is_given { "given" } else { "mined" }.to_owned(),
        golden_prec: pair.precision[0],
        golden_prec_plus: pair.precision[1],
        golden_prec_minus: pair.precision[2],
        files_changed: pair.shape.files,
        lines_added: pair.shape.lines_added,
        lines_removed: pair.shape.lines_removed,
        files_created: pair.shape.created,
        files_deleted: pair.shape.deleted,
        files_moved: pair.shape.moved,
        gzip_ratio: pair.shape.gzip_ratio,
        lock_from: pair.lock_from.as_str().to_owned(),
        suite: suite_of(&pair.scripts).to_owned(),
        tier: Tier::Easy,
        hard_axes: Vec::new(),
        lock_sha256: record.built.lock_sha256.clone(),
        image: record.image.as_ref().map(|image| image.tag.clone()),
        image_id: record.image.as_ref().map(|image| image.id.clone()),
        flags: pair.flags.clone(),
    }
}

/// Writes the tables of this family, without what is hidden.
///
/// # Errors
/// IO errors with the path; rows that cannot be encoded, which is a bug.
pub(super) fn tables(
    folder: &Path,
    dataset: &DatasetInput<'_>,
    assembled: &mut Assembled<'_>,
) -> Result<Vec<CodetasteInstance>> {
    let contributions = own::contributions(dataset);
    let rows = rows(dataset, assembled.repositories.iter().zip(contributions.iter().copied()));
    own::write_instances(folder, dataset, assembled, &rows)?;
    let mut all: Vec<&PairRow> = dataset.pairs.iter().collect();
    all.sort_by(|one, other| one.slug.cmp(&other.slug));
    table(folder, "pairs", pairs(), all)?;
    let published: Vec<&PublishedPair> =
        contributions.iter().filter_map(|one| one.codetaste.as_ref()).collect();
    let runs = published
        .iter()
        .flat_map(|pair| pair.runs.iter().map(move |run| RunOf { id: &pair.row.instance_id, run }));
    table(folder, "suite_runs", suite_runs(), runs)?;
    Ok(rows)
}

/// What the manifest says of these tables in place of Gistify's.
pub(super) fn describe(manifest: &mut Manifest, dataset: &DatasetInput<'_>, rows: &[CodetasteInstance]) {
    let published = || dataset.repositories.iter().filter_map(|one| one.codetaste.as_ref());
    let tables =
        [("pairs", dataset.pairs.len()), ("suite_runs", published().map(|pair| pair.runs.len()).sum())];
    manifest.counts.rows.remove("traces");
    own::describe(manifest, dataset, rows, &tables);
    manifest.flake_bound.worst = None;
    // Bounds follow from runs, and the evidence of a cause may quote a log.
    manifest.reproducible.retain(|file| file != "traces.parquet" && !file.starts_with("instances."));
}

/// Writes the card.
///
/// # Errors
/// IO errors with the path.
pub(super) fn card(folder: &Path, manifest: &Manifest, rows: &[CodetasteInstance]) -> Result<()> {
    let (name, version) = (&manifest.name, &manifest.version);
    let tables = ["instances", "groups", "cases", "attempts"].into_iter().chain(TABLES);
    let (configs, columns) = own::card_parts(manifest, tables, &DICTIONARY);
    let is_python = rows.iter().any(|row| row.suite == PYTEST);
    let python = if is_python { "- python\n- pytest\n" } else { "" };
    let card = format!(
        "---\npretty_name: {name} {version}\ntags:\n- codetaste\n- code\n- refactoring\n{python}configs:\n{configs}---\n\n\
         # {name} {version}\n\n{} CodeTaste instances. An instance is a repository at the commit before a refactoring of its own \
         history: the task is to do the refactoring. The whole suite judges whether behaviour survived, patterns of code whether the \
         refactoring was done; `gistmill score <this directory> <folder of patches>` runs both. Patterns, the golden patch and the names of \
         the cases that must pass are in `hidden/`, which is not for agents. The check of open descriptions finds names, not ideas.\n{columns}",
        rows.len()
    );
    write_text(&folder.join(super::card::FILE), &card)
}

impl Dataset {
    /// The instances of a dataset of this family.
    ///
    /// # Errors
    /// The file is missing, or is not as gistmill writes it.
    pub(crate) fn codetaste_instances(&self) -> Result<Vec<CodetasteInstance>> {
        let instances: Vec<CodetasteInstance> = self.lines("instances")?;
        for one in &instances {
            let is_hash = |hash: &str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_patch = one.golden_commit.strip_prefix("sha256:").is_some_and(is_hash);
            let is_wrong = RepoSlug::new(&one.head.repo).is_err()
                || CommitSha::new(&one.head.commit).is_err()
                || !is_patch && CommitSha::new(&one.golden_commit).is_err();
            if is_wrong {
                let id = &one.head.instance_id;
                return Err(Error::usage(format!("instances.jsonl, {id}: repository or commit is not one"))
                    .with_hint("the dataset is damaged; copy it again"));
            }
        }
        Ok(instances)
    }

    /// The runs that set the bounds of each instance.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub(crate) fn suite_runs(&self) -> Result<BTreeMap<String, Vec<SuiteRun>>> {
        let columns = ["instance_id", "tree", "run", "passed", "failed", "skipped", "total", "duration_ms"];
        let table = self.table("suite_runs", &columns)?;
        let (ids, trees) = (table.whole_texts("instance_id")?, table.whole_texts("tree")?);
        let number = |column: &str| table.numbers(column);
        let (passed, failed, skipped, total) =
            (number("passed")?, number("failed")?, number("skipped")?, number("total")?);
        let (numbers, durations) = (table.whole_numbers("run")?, table.reals("duration_ms")?);
        let mut runs: BTreeMap<String, Vec<SuiteRun>> = BTreeMap::new();
        for at in 0..table.rows() {
            let tree = serde_json::from_value(trees[at].into()).map_err(|error| {
                Error::usage(format!("suite_runs.parquet: {} is not a tree", trees[at])).with_source(error)
            })?;
            let counts = || {
                let (passed, failed, skipped) = (passed[at]?, failed[at]?, skipped[at]?);
                Some(Counts { passed, failed, skipped, total: total[at]? })
            };
            runs.entry(ids[at].to_owned()).or_default().push(SuiteRun {
                tree,
                number: u32::try_from(numbers[at]).unwrap_or_default(),
                counts: counts(),
                duration_ms: durations[at].unwrap_or_default(),
            });
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::kinds;
    use super::*;

    #[test]
    fn the_dictionary_has_the_columns_that_are_written() {
        let names = |table: &str| -> Vec<&str> {
            let entries = DICTIONARY.iter().find(|(name, _)| *name == table).unwrap().1;
            entries.iter().map(|(name, _)| *name).collect()
        };
        fn written<R>(columns: &[ColumnOf<R>]) -> Vec<&'static str> {
            kinds(columns).unwrap().into_iter().map(|(name, _)| name).collect()
        }
        assert_eq!(names("instances"), written(&instances()));
        assert_eq!(names("pairs"), written(&pairs()));
        assert_eq!(names("suite_runs"), written(&suite_runs()));
    }
}
