//! Pairs of commits of a dataset: those that are instances, and those that fell.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Answer, Found, nearest_names};
use crate::dataset::Dataset;
use crate::dataset::codetaste::{CodetasteInstance, HiddenPair};
use crate::error::Result;
use crate::family::codetaste::view::files;
use crate::record::codetaste::{PatternRow, RUN_TESTS, Side, SuiteRun};
use crate::text::count;

/// A pair, with what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FoundPair {
    pub(crate) slug: String,
    pub(crate) repo: String,
    pub(crate) base_commit: String,
    pub(crate) golden_commit: String,
    /// None of one that fell.
    pub(crate) instance_id: Option<String>,
    pub(crate) cause: Option<String>,
    pub(crate) evidence: Option<String>,
    #[serde(flatten)]
    pub(crate) published: Option<Refactoring>,
}

/// A pair that is an instance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Refactoring {
    #[serde(skip)]
    pub(crate) row: CodetasteInstance,
    pub(crate) tier: &'static str,
    pub(crate) flags: Vec<String>,
    pub(crate) runs: Vec<SuiteRun>,
    pub(crate) p_min: u64,
    pub(crate) f_max: u64,
    pub(crate) n_must_pass: u64,
    pub(crate) n_additive: u64,
    pub(crate) n_reductive: u64,
    pub(crate) patterns_by: String,
    pub(crate) golden_prec: Option<f64>,
    pub(crate) lines_added: u64,
    pub(crate) lines_removed: u64,
    pub(crate) lock_from: String,
    /// What runs the tests.
    pub(crate) suite: String,
    /// None where what is hidden was left out of the dataset.
    pub(crate) hidden: Option<Hidden>,
}

/// What agents must not know of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Hidden {
    pub(crate) patterns: Vec<PatternRow>,
    /// None where the dataset came without code.
    pub(crate) golden_files: Option<Vec<ChangedFile>>,
    pub(crate) description: Option<String>,
    pub(crate) open_description: Option<String>,
    /// Cases that fail on both trees.
    pub(crate) failing: usize,
}

/// A file that the golden patch changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ChangedFile {
    pub(crate) path: String,
    /// Of one that moved.
    pub(crate) from: Option<String>,
    pub(crate) status: &'static str,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

impl Hidden {
    fn of(pair: &HiddenPair) -> Self {
        let changed = |patch: &Vec<u8>| -> Vec<ChangedFile> {
            let all = files(patch).into_iter();
            all.map(|file| ChangedFile {
                path: file.path().to_owned(),
                status: file.status(),
                from: file.old.clone().filter(|_| file.status() == "moved"),
                added: file.added,
                removed: file.removed,
            })
            .collect()
        };
        Hidden {
            patterns: pair.patterns.clone(),
            golden_files: pair.golden_patch.as_ref().map(changed),
            description: pair.description.clone(),
            open_description: pair.open_description.clone(),
            failing: pair.failing.len(),
        }
    }
}

/// Every pair of a dataset, in its order.
///
/// # Errors
/// Usage errors: its tables are not as gistmill writes them.
pub(crate) fn all(dataset: &Dataset) -> Result<Vec<FoundPair>> {
    let (hidden, mut runs) = (dataset.hidden_pairs_if_there()?, dataset.suite_runs()?);
    let mut instances: BTreeMap<String, CodetasteInstance> = dataset
        .codetaste_instances()?
        .into_iter()
        .map(|one| (one.head.instance_id.to_string(), one))
        .collect();
    let table = dataset.table("pairs", &[])?;
    let text = |name: &str| table.whole_texts(name);
    let (ids, slugs, repos) = (text("instance_id")?, text("slug")?, text("repo")?);
    let (bases, goldens) = (text("base_commit")?, text("golden_commit")?);
    let (causes, evidence) = (table.texts("cause")?, table.texts("evidence")?);
    let row = |at: usize| {
        let instance = instances.remove(ids[at]);
        FoundPair {
            slug: slugs[at].to_owned(),
            repo: repos[at].to_owned(),
            base_commit: bases[at].to_owned(),
            golden_commit: goldens[at].to_owned(),
            instance_id: instance.as_ref().map(|one| one.head.instance_id.to_string()),
            cause: causes[at].map(str::to_owned),
            evidence: evidence[at].map(str::to_owned),
            published: instance.map(|row| Refactoring {
                tier: row.tier.as_str(),
                flags: row.flags.clone(),
                runs: runs.remove(ids[at]).unwrap_or_default(),
                p_min: row.p_min,
                f_max: row.f_max,
                n_must_pass: row.n_must_pass,
                n_additive: row.n_additive,
                n_reductive: row.n_reductive,
                patterns_by: row.patterns_by.clone(),
                golden_prec: row.golden_prec,
                lines_added: row.lines_added,
                lines_removed: row.lines_removed,
                lock_from: row.lock_from.clone(),
                suite: row.suite.clone(),
                hidden: hidden.as_ref().and_then(|all| all.get(ids[at])).map(Hidden::of),
                row,
            }),
        }
    };
    Ok((0..table.rows()).map(row).collect())
}

/// Pairs whose instance ID, name, commit or repository is `query`; when there is none, those whose name or ID contains it.
///
/// # Errors
/// Usage errors: the tables are not as gistmill writes them.
pub(crate) fn find(dataset: &Dataset, query: &str) -> Result<Answer<FoundPair>> {
    let all = all(dataset)?;
    let of = |fits: &dyn Fn(&str) -> bool, with_repo: bool| -> Vec<FoundPair> {
        let names = |one: &FoundPair| {
            let plain = [Some(&one.slug), Some(&one.base_commit), Some(&one.golden_commit)];
            let more = [one.instance_id.as_ref(), Some(&one.repo).filter(|_| with_repo)];
            plain.into_iter().chain(more).flatten().any(|name| fits(name))
        };
        all.iter().filter(|one| names(one)).cloned().collect()
    };
    let mut found = of(&|name| name == query, true);
    if found.is_empty() {
        found = of(&|name| name.contains(query), false);
    }
    let names = all.iter().map(|one| (one.slug.as_str(), '/'));
    let nearest = if found.is_empty() { nearest_names(names, query) } else { Vec::new() };
    Ok(Answer { found, nearest })
}

impl Found for FoundPair {
    fn slug(&self) -> &str {
        &self.slug
    }

    fn name(&self) -> &str {
        &self.golden_commit
    }

    fn instance_id(&self) -> Option<&str> {
        self.instance_id.as_deref()
    }

    fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    fn flags(&self) -> &[String] {
        self.published.as_ref().map(|one| one.flags.as_slice()).unwrap_or_default()
    }

    fn tier(&self) -> Option<&str> {
        self.published.as_ref().map(|one| one.tier)
    }

    /// Its row says nothing of it.
    fn remaining_state(&self) -> &'static str {
        "damaged"
    }

    fn is_of(&self, slug: &str) -> bool {
        self.slug == slug || self.repo == slug
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{} {} → {}", self.repo, self.base_commit, self.golden_commit)];
        lines.push(match (&self.cause, &self.instance_id) {
            (Some(cause), _) => format!("  out: {cause}"),
            (None, Some(id)) => format!("  in: published as {id}"),
            (None, None) => {
                "  damaged: neither an instance nor dropped; gistmill verify DATASET names what else is"
                    .to_owned()
            }
        });
        let evidence = self.evidence.iter().flat_map(|evidence| evidence.lines());
        lines.extend(evidence.map(|line| format!("  {line}")));
        lines.extend(self.published.iter().flat_map(Refactoring::lines));
        lines
    }
}

/// A share in percent, or a dash.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

impl Refactoring {
    fn lines(&self) -> Vec<String> {
        let (row, many) = (&self.row, |number: u64, what: &str| count(number as usize, what));
        let mut lines = vec![
            format!(
                "  golden patch: {} (new {}, deleted {}, moved {}), {} lines added, {} removed",
                many(row.files_changed, "file"),
                row.files_created,
                row.files_deleted,
                row.files_moved,
                self.lines_added,
                self.lines_removed
            ),
            format!(
                "  PASS: at least {} pass and at most {} fail, of {} tests on base and {} on golden",
                self.p_min, self.f_max, row.tests_base, row.tests_golden
            ),
            if self.suite == RUN_TESTS {
                "  run_tests runs the suite: no case has a name".to_owned()
            } else {
                format!("  {} must pass; lock of {}", many(self.n_must_pass, "case"), self.lock_from)
            },
            format!(
                "  patterns ({}): {} additive, {} reductive; golden PREC {} (added {}, removed {})",
                self.patterns_by,
                self.n_additive,
                self.n_reductive,
                percent(self.golden_prec),
                percent(row.golden_prec_plus),
                percent(row.golden_prec_minus)
            ),
            format!("  tier: {}; tracks: {}", self.tier, list(&row.tracks, "none")),
        ];
        if !self.flags.is_empty() {
            lines.push(format!("  flags: {}", self.flags.join(", ")));
        }
        lines.extend(self.runs.iter().map(|run| {
            let counts = run.counts.map_or_else(
                || "no counts".to_owned(),
                |counts| {
                    format!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped)
                },
            );
            format!("  run {} of {}: {counts}", run.number, run.tree.as_str())
        }));
        match &self.hidden {
            Some(hidden) => lines.extend(hidden.lines()),
            None => lines.push("  what is hidden from agents was left out of the dataset".to_owned()),
        }
        lines
    }
}

fn list(words: &[String], none: &str) -> String {
    if words.is_empty() { none.to_owned() } else { words.join(", ") }
}

impl Hidden {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("  fail on both trees: {}", count(self.failing, "case"))];
        for file in self.golden_files.iter().flatten() {
            let from = file.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
            lines.push(format!("  {:8} +{} -{}  {}{from}", file.status, file.added, file.removed, file.path));
        }
        if self.golden_files.is_none() {
            lines.push("  the dataset came without code, so without the golden patch".to_owned());
        }
        for side in [Side::Additive, Side::Reductive] {
            for one in self.patterns.iter().filter(|one| one.side == side) {
                lines.push(format!(
                    "  {:9}  {}  {} on base, {} on golden, {} of {}",
                    side.as_str(),
                    one.id,
                    one.base,
                    one.golden,
                    count(one.lines as usize, "line"),
                    count(one.files as usize, "file")
                ));
            }
        }
        let texts = [("description", &self.description), ("open description", &self.open_description)];
        for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
            lines.push(format!("  {name}:"));
            lines.extend(text.lines().map(|line| format!("    {line}")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::made_up::MadeUp;

    #[test]
    fn a_pair_is_found_by_each_of_its_names_and_says_how_it_is_judged() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("1");
        crate::testing::write(&directory, &MadeUp::pairs(&[12]).input()).unwrap();
        let dataset = Dataset::open_any(&directory).unwrap();
        let all = all(&dataset).unwrap();
        let verdicts: Vec<_> = all.iter().map(|one| (one.repo.as_str(), one.verdict())).collect();
        let expected = [("made/fallen", "few-patterns"), ("made/up0", "published")];
        assert_eq!(verdicts, expected.map(|(repo, verdict)| (repo, verdict.into())));
        let one = &all[1];
        let id = one.instance_id.clone().unwrap();
        for query in ["made/up0", &one.slug, &id, &one.base_commit, "up0-2ac"] {
            assert_eq!(find(&dataset, query).unwrap().found, std::slice::from_ref(one), "{query}");
        }
        let both = find(&dataset, &one.golden_commit).unwrap().found;
        assert_eq!(both.len(), 2, "both have the same golden commit");
        assert_eq!(find(&dataset, "made/up0-2ac89888").unwrap().nearest, std::slice::from_ref(&one.slug));
        let said = one.describe();
        for words in [
            "published as made__up0.2ac89889-",
            "golden patch: 1 file (new 0, deleted 0, moved 0), 2 lines added, 2 removed",
            "PASS: at least 20 pass and at most 1 fail, of 23 tests on base",
            "patterns (mined): 1 additive, 1 reductive; golden PREC 75.0 %",
            "run 1 of golden: 20 passed, 1 failed, 2 skipped",
            "  changed  +2 -2  src/made/core.py",
            "  reductive  def-old-name  1 on base, 0 on golden, 1 line of 1 file",
            "    Give `old_name` a better name.",
            "flags: flaky-suite",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(all[0].describe().contains("out: few-patterns\n  3 patterns are taken"));
        let neither = FoundPair { instance_id: None, published: None, ..one.clone() };
        assert_eq!((neither.state(), neither.verdict().as_ref()), ("damaged", "damaged"));
        assert!(neither.describe().contains("damaged: neither an instance nor dropped"));
    }

    #[test]
    fn what_is_hidden_may_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let (made_up, directory) = (MadeUp::pairs(&[12]), folder.path().join("1"));
        let input = crate::dataset::DatasetInput { with_hidden: false, ..made_up.input() };
        crate::testing::write(&directory, &input).unwrap();
        let all = all(&Dataset::open_any(&directory).unwrap()).unwrap();
        let said = all[1].describe();
        assert!(said.contains("left out of the dataset") && !said.contains("def-old-name"), "{said}");
    }
}
