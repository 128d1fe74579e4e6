//! Pairs of commits of a dataset as tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{Wanted, environment, image_named, of_tasks, options};
use crate::dataset::codetaste::{CodetasteInstance, HiddenPair};
use crate::dataset::{Dataset, trees};
use crate::error::{Error, OrWhy, Result};
use crate::export::{Collection, Environment};
use crate::family::WORKDIR;
use crate::family::codetaste::diff::IGNORED_PARTS;
use crate::family::codetaste::leaks::{leaks, words};
use crate::family::codetaste::prompt::{Mode, Track, steps};
use crate::family::codetaste::suite::{RUN, SET_UP};
use crate::family::codetaste::view;
use crate::record::codetaste::SuiteRun;
use crate::record::entry::pytest_line;
use crate::record::family::Family;
use crate::record::id::RepoSlug;
use crate::record::outcome::Outcome;
use crate::record::patch::Patch;
use crate::record::task::{
    Demand, JudgedCase, JudgedPattern, JudgedSuite, Judging, Measured, Reward, Step, Task,
};

/// A whole run may take so many times what the slowest one took, and at least so long.
const TIMES: f64 = 4.0;
const SHORTEST: Duration = Duration::from_mins(10);
const LONGEST: Duration = Duration::from_hours(6);
/// What each test file may take besides: the judge starts an interpreter for it, which the runs of the build forked.
const EACH_FILE: Duration = Duration::from_secs(15);
/// Shorter lines, and shorter names of patterns, say nothing.
const SHORTEST_LINE: usize = 20;
const SHORTEST_ID: usize = 8;

/// Which texts agents get.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    pub(crate) track: Track,
    pub(crate) mode: Mode,
    /// Whether an open description may have words that only the golden patch adds.
    pub(crate) allow_leak: bool,
}

/// Refactorings of a dataset as tasks.
///
/// # Errors
/// Usage errors: the dataset is damaged, has no instance, came without code or without what is hidden; a pair has no such
/// description, or patterns that a judge in a container cannot read.
pub(crate) fn collection(
    dataset: &Dataset,
    instances: &[CodetasteInstance],
    (wanted, told): (&Wanted<'_>, Told),
) -> Result<Collection> {
    if instances.is_empty() {
        return Err(Error::usage(format!("{} has no instance", dataset.directory.display())));
    }
    let (folder, images) = (dataset.folder()?, dataset.images()?);
    let (hidden, runs) = (dataset.hidden_pairs(wanted.hidden)?, dataset.suite_runs()?);
    let mut environments: BTreeMap<RepoSlug, Environment> = BTreeMap::new();
    let (mut tasks, mut problems) = (Vec::new(), Vec::new());
    for one in instances {
        let (slug, id) = (&one.head.slug, one.head.instance_id.as_str());
        if !environments.contains_key(slug) {
            let image = image_named(dataset, &one.head, one.image.as_deref())?;
            environments
                .insert(slug.clone(), environment(dataset, (&folder, &images), (slug, image), wanted)?);
        }
        let Some(hidden) = hidden.get(id) else {
            return Err(Error::usage(format!("hidden/ has nothing of {id}")));
        };
        let refactoring = Refactoring {
            dataset,
            instance: one,
            hidden,
            runs: runs.get(id).map(Vec::as_slice).unwrap_or_default(),
            variables: &environments[slug].variables,
            has_gold: !wanted.settings.without_solutions,
        };
        match refactoring.task(told)? {
            Ok(task) => tasks.push(task),
            Err(problem) => problems.push(format!("{id}: {problem}")),
        }
    }
    if !problems.is_empty() {
        return Err(Error::usage("these pairs cannot be exported so")
            .with_detail(problems.join("\n"))
            .with_hint(
                "name others with --instance, or another --track; `gistmill score` judges all of them",
            ));
    }
    Ok(of_tasks(dataset, tasks, environments, wanted))
}

/// A pair with all that is known of it.
struct Refactoring<'a> {
    dataset: &'a Dataset,
    instance: &'a CodetasteInstance,
    hidden: &'a HiddenPair,
    runs: &'a [SuiteRun],
    variables: &'a BTreeMap<String, String>,
    has_gold: bool,
}

impl Refactoring<'_> {
    /// As a task, or why it cannot be one.
    fn task(&self, told: Told) -> Result<OrWhy<Task>> {
        let (one, hidden) = (self.instance, self.hidden);
        let description = match told.track {
            Track::Instructed => hidden.description.as_deref(),
            Track::Open => hidden.open_description.as_deref(),
        };
        let Some(description) = description else {
            return Ok(Err(format!("it has no description of the track {}", told.track.as_str())));
        };
        let Some(golden) = hidden.golden_patch.as_deref() else {
            return Ok(Err("the dataset came without its golden patch".to_owned()));
        };
        let patterns = patterns(hidden);
        if patterns.is_empty() {
            return Ok(Err(
                "no pattern of it is machine-made: a judge in a container reads no others".to_owned()
            ));
        }
        let Some(base) = self.base()? else {
            return Ok(Err("the dataset does not have the code of the base".to_owned()));
        };
        if told.track == Track::Open && !told.allow_leak {
            let leaked = leaked(description, &base, golden);
            if !leaked.is_empty() {
                return Ok(Err(format!(
                    "its open description has words that only the golden patch adds: {} (--allow-leak exports it all the same)",
                    leaked.into_iter().collect::<Vec<_>>().join(", ")
                )));
            }
        }
        let steps = steps(told.mode, WORKDIR, description, hidden.description.as_deref())
            .map_err(|error| error.at(one.head.instance_id.to_string()))?;
        let suite = JudgedSuite {
            tests: self.tests(),
            scripts: hidden.scripts.clone(),
            run: format!("{SET_UP}{RUN}"),
            bounds: crate::record::codetaste::Bounds {
                passed: i64::try_from(one.p_min).unwrap_or(i64::MAX),
                failed: i64::try_from(one.f_max).unwrap_or(i64::MAX),
            },
            patterns,
            ignored: &IGNORED_PARTS,
            golden: self.has_gold.then(|| golden.to_vec()),
            steps,
            secrets: secrets(&base, golden, hidden),
            may_tell: told.allow_leak,
        };
        Ok(Ok(self.with(suite)))
    }

    fn with(&self, suite: JudgedSuite) -> Task {
        let head = &self.instance.head;
        let slowest = self.runs.iter().map(|run| run.duration_ms).fold(0.0, f64::max) / 1000.0;
        let files: BTreeSet<&str> = self
            .hidden
            .must_pass
            .iter()
            .chain(&self.hidden.failing)
            .filter_map(|case| case.split("::").next())
            .collect();
        let starts = EACH_FILE.saturating_mul(u32::try_from(files.len()).unwrap_or(u32::MAX));
        let limit = Duration::try_from_secs_f64(slowest * TIMES)
            .unwrap_or(LONGEST)
            .max(SHORTEST)
            .saturating_add(starts);
        let judged = self.hidden.must_pass.iter();
        let instruction = |step: &Step| step.text.clone();
        Task {
            id: head.instance_id.clone(),
            family: Family::Codetaste.as_str(),
            slug: head.slug.clone(),
            commit: head.commit.clone(),
            version: head.version.clone(),
            created_at: head.created_at.clone(),
            title: format!("a refactoring of {}", head.repo),
            tier: self.instance.tier.as_str(),
            license: head.license.clone(),
            image: self.instance.image.clone(),
            workdir: WORKDIR.to_owned(),
            instruction: suite.steps.first().map(instruction).unwrap_or_default(),
            mask: Patch::default(),
            gold: None,
            command: pytest_line(&[]),
            files: Vec::new(),
            measured: Measured {
                demand: Demand {
                    slowest: Duration::try_from_secs_f64(slowest).ok().filter(|slowest| !slowest.is_zero()),
                    memory: None,
                },
                attempts: u32::try_from(self.runs.len()).unwrap_or(u32::MAX),
                flake_bound: 0.0,
                worlds: Vec::new(),
            },
            one_shot: Vec::new(),
            judging: Judging {
                given: Vec::new(),
                submission: Family::Codetaste.submission().to_owned(),
                hidden: &[],
                before: Patch::default(),
                run: Vec::new(),
                originals: Vec::new(),
                code: Vec::new(),
                expect: judged
                    .map(|case| JudgedCase { name: case.clone(), outcome: Outcome::Passed })
                    .collect(),
                is_exact: false,
                reward: Reward::Share,
                options: options(self.dataset, &head.slug),
                variables: self.variables.clone(),
                limit: limit.min(LONGEST),
                suite: Some(suite),
            },
        }
    }

    /// What is handed to pytest.
    fn tests(&self) -> Vec<String> {
        let repos = self.dataset.manifest.config["repos"].as_array().into_iter().flatten();
        let own = repos.filter(|repo| repo["slug"] == self.instance.head.slug.as_str());
        let tests = own.filter_map(|repo| repo["tests"].as_array()).flatten();
        tests.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The lines of the base; none where the dataset does not have its tree.
    fn base(&self) -> Result<Option<BTreeSet<String>>> {
        let slug = &self.instance.head.slug;
        if !self.dataset.folder()?.has_file(Path::new(&trees::place(slug))) {
            return Ok(None);
        }
        let texts = trees::texts(self.dataset, slug.as_str(), |_| true)?;
        let lines = texts
            .into_iter()
            .flatten()
            .flat_map(|(_, text)| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>());
        Ok(Some(lines.collect()))
    }
}

/// Lines that a patch adds.
fn added(golden: &[u8]) -> Vec<String> {
    let files = view::files(golden).into_iter();
    let lines = files.flat_map(|file| file.lines);
    lines.filter(|line| line.old.is_none()).map(|line| line.text.trim().to_owned()).collect()
}

/// What no agent may see.
fn secrets(base: &BTreeSet<String>, golden: &[u8], hidden: &HiddenPair) -> Vec<String> {
    let lines = added(golden)
        .into_iter()
        .filter(|line| line.chars().count() >= SHORTEST_LINE && !base.contains(line));
    let ids = hidden.patterns.iter().map(|row| row.id.clone()).filter(|id| id.len() >= SHORTEST_ID);
    let all: BTreeSet<String> = lines.chain(ids).collect();
    all.into_iter().collect()
}

fn leaked(description: &str, base: &BTreeSet<String>, golden: &[u8]) -> BTreeSet<String> {
    let known: BTreeSet<String> = base.iter().flat_map(|line| words(line)).map(str::to_lowercase).collect();
    let added = added(golden);
    leaks(description, known.iter().map(String::as_str), added.iter().flat_map(|line| words(line)))
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// The machine-made patterns that judge, by what their documents say of them.
fn patterns(hidden: &HiddenPair) -> Vec<JudgedPattern> {
    let documents = hidden.pattern_files.iter().flat_map(|(_, text)| text.split("\n---\n"));
    let documents = documents.filter_map(|text| serde_json::from_str::<Value>(text.trim()).ok());
    let mut found = Vec::new();
    for document in documents {
        let (id, feature) = (document["id"].as_str(), document["metadata"]["feature"].as_str());
        let (Some(id), Some((kind, name))) = (id, feature.and_then(|text| text.split_once(' '))) else {
            continue;
        };
        if let Some(row) = hidden.patterns.iter().find(|row| row.id == id) {
            found.push(JudgedPattern {
                id: id.to_owned(),
                side: row.side,
                kind: kind.to_owned(),
                name: name.to_owned(),
                only: paths(&document["files"]),
                but: paths(&document["ignores"]),
            });
        }
    }
    found
}

/// Paths of globs that match nothing else.
fn paths(globs: &Value) -> Vec<String> {
    let globs = globs.as_array().into_iter().flatten().filter_map(Value::as_str);
    let plain = |glob: &str| {
        let mut path = String::new();
        let mut rest = glob.chars();
        while let Some(c) = rest.next() {
            if c != '[' {
                path.push(c);
                continue;
            }
            path.extend(rest.next());
            rest.next();
        }
        path
    };
    globs.filter(|glob| !glob.starts_with("./")).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn globs_are_read_back_as_the_paths_that_they_are_of() {
        let globs = json!(["./a[[]1[]].py", "a[[]1[]].py", "b/c.py"]);
        assert_eq!(paths(&globs), ["a[1].py", "b/c.py"]);
        assert!(paths(&Value::Null).is_empty());
    }

    #[test]
    fn secrets_are_lines_that_only_the_patch_has_and_names_of_patterns() {
        let patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1,4 @@\n-x\n+short = 1\n\
                     +    known_everywhere = compute(1)\n+    entirely_new_name = compute(2)\n+\n";
        let base = BTreeSet::from(["known_everywhere = compute(1)".to_owned()]);
        let found = secrets(&base, patch.as_bytes(), &HiddenPair::default());
        assert_eq!(found, ["entirely_new_name = compute(2)"]);
        let told = |text: &str| leaked(text, &base, patch.as_bytes());
        assert_eq!(told("use entirely_new_name instead"), ["entirely_new_name".to_owned()].into());
        assert!(told("compute it once").is_empty());
    }
}
