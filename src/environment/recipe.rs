//! What to install: declarations in, plans out, each with its reason, to be tried one after the other. Pure, and the
//! same for every repository.
//!
//! Sources of requirements are ordered from the most to the least specific about tests. The first plan takes the
//! first source; each further one adds the next, without those that could not be installed; at last come the
//! distributions whose absence collection reported. The same set is never proposed twice.

use std::collections::{BTreeMap, BTreeSet};

use super::GateReport;
use super::install::Failure;
use super::lock::Lock;
use super::project::{Files, Project};
use super::requirements_files::{Lines, normalize, parse, read_file};
use super::tox;
use crate::config;
use crate::error::{Error, Result};
use crate::record::environment::{Guess, PlanResult};
use crate::requirement::is_file_name;

/// One place that declares requirements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What it adds, e.g. `group tests`.
    pub name: String,
    /// Which file says so.
    pub reason: String,
    pub extras: Vec<String>,
    pub lines: Lines,
}

/// A set of requirements to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallPlan {
    pub name: String,
    pub reason: String,
    /// Extras of the tree.
    pub extras: BTreeSet<String>,
    pub requirements: BTreeSet<String>,
    pub constraints: BTreeSet<String>,
    parts: Parts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Parts {
    sources: BTreeSet<usize>,
    missing: BTreeSet<Guess>,
}

impl InstallPlan {
    /// The requirements as written for the record: the tree first, constraints last.
    pub fn written(&self) -> Vec<String> {
        let extras: Vec<&str> = self.extras.iter().map(String::as_str).collect();
        let tree = if extras.is_empty() { ".".to_owned() } else { format!(".[{}]", extras.join(",")) };
        let constraints = self.constraints.iter().map(|constraint| format!("-c {constraint}"));
        let all = std::iter::once(tree).chain(self.requirements.iter().cloned()).chain(constraints);
        all.map(|text| crate::redact::publish(&text)).collect()
    }

    /// What of it nobody declares.
    pub fn guesses(&self) -> Vec<Guess> {
        self.parts
            .missing
            .iter()
            .filter(|guess| self.requirements.contains(&guess.distribution))
            .cloned()
            .collect()
    }

    fn same_set(&self, other: &InstallPlan) -> bool {
        self.extras == other.extras
            && self.requirements == other.requirements
            && self.constraints == other.constraints
    }
}

/// What came of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Not resolved or not installed.
    Failed(Failure),
    /// Collected; `missing` is what to add ([`super::missing::find`]).
    Collected { lock: Lock, report: GateReport, missing: BTreeSet<Guess> },
}

impl Outcome {
    /// As it is published.
    pub fn published(&self, is_chosen: bool) -> PlanResult {
        match self {
            Outcome::Failed(failure) => {
                PlanResult::Failed { stage: failure.stage.clone(), output: failure.output.clone() }
            }
            Outcome::Collected { report, .. } if is_chosen => PlanResult::Chosen {
                collected: report.collected,
                collection_errors: report.collection_errors,
            },
            Outcome::Collected { report, .. } => PlanResult::Insufficient {
                collected: report.collected,
                collection_errors: report.collection_errors + usize::from(report.failure.is_some()),
                missing_modules: report.missing_modules.clone(),
            },
        }
    }
}

/// The ordered sources of a tree.
#[derive(Debug, Clone, Default)]
pub struct Fallbacks {
    sources: Vec<Source>,
    /// The config decides: there is one plan.
    fixed: bool,
}

/// At most so many plans add what collection misses: each can only uncover the next missing module.
const MISSING_ROUNDS: usize = 4;

impl Fallbacks {
    /// The plans that a tree declares, or the single one of the config.
    ///
    /// # Errors
    /// A group, extra or file of the config that the tree does not have.
    pub fn new(files: &Files, project: &Project, repo: &config::Repo) -> Result<Self> {
        let mut fallbacks = if repo.groups.is_some() || repo.extras.is_some() || repo.requirements.is_some() {
            Fallbacks { sources: vec![configured(files, project, repo)?], fixed: true }
        } else {
            Fallbacks { sources: declared(files, project), fixed: false }
        };
        for source in &mut fallbacks.sources {
            own_to_extras(source, project);
        }
        let fixed = fallbacks.fixed;
        fallbacks
            .sources
            .retain(|source| fixed || !source.lines.requirements.is_empty() || !source.extras.is_empty());
        Ok(fallbacks)
    }

    /// What the sources of a plan name but nothing installs.
    pub fn left_out(&self, plan: &InstallPlan) -> Vec<String> {
        let sources = plan.parts.sources.iter().filter_map(|number| self.sources.get(*number));
        let left_out = |source: &Source| {
            let name = source.name.clone();
            source.lines.left_out.clone().into_iter().map(move |what| format!("{name}: left out {what}"))
        };
        sources.flat_map(left_out).collect()
    }

    /// The next plan to try after these; none when one was good or nothing is left.
    pub fn next(&self, tried: &[(InstallPlan, Outcome)]) -> Option<InstallPlan> {
        let good =
            |outcome: &Outcome| matches!(outcome, Outcome::Collected { report, .. } if report.is_good());
        if tried.iter().any(|(_, outcome)| good(outcome)) || (self.fixed && !tried.is_empty()) {
            return None;
        }
        let fresh = |plan: &InstallPlan| !tried.iter().any(|(earlier, _)| earlier.same_set(plan));
        let banned = banned(tried);
        let mut parts = Parts::default();
        for number in 0..self.sources.len() {
            if banned.contains(&number) {
                continue;
            }
            parts.sources.insert(number);
            let plan = self.plan(parts.clone());
            let covered = tried.iter().any(|(earlier, _)| earlier.parts.sources.contains(&number));
            if fresh(&plan) && !covered {
                return Some(plan);
            }
        }
        let bare = self.plan(Parts { sources: parts.sources.clone(), missing: BTreeSet::new() });
        if fresh(&bare) {
            return Some(bare);
        }
        self.with_missing(parts, tried).filter(fresh)
    }

    fn with_missing(&self, mut parts: Parts, tried: &[(InstallPlan, Outcome)]) -> Option<InstallPlan> {
        let rounds = tried.iter().filter(|(plan, _)| !plan.parts.missing.is_empty()).count();
        if rounds >= MISSING_ROUNDS {
            return None;
        }
        let mut unknown: BTreeSet<String> = BTreeSet::new();
        for (plan, outcome) in tried {
            match outcome {
                Outcome::Collected { missing, .. } => parts.missing.extend(missing.iter().cloned()),
                // A failure that names no culprit: all the guesses of that plan are under suspicion.
                Outcome::Failed(failure) if failure.unknown.is_empty() => {
                    unknown.extend(
                        plan.parts.missing.iter().filter_map(|guess| distribution(&guess.distribution)),
                    );
                }
                Outcome::Failed(failure) => {
                    unknown.extend(failure.unknown.iter().map(|name| normalize(name)));
                }
            }
        }
        parts.missing.retain(|guess| {
            let name = parse(&guess.distribution).map(|one| normalize(one.name.as_ref()));
            name.is_some_and(|name| !unknown.contains(&name))
        });
        (!parts.missing.is_empty()).then(|| self.plan(parts))
    }

    fn plan(&self, parts: Parts) -> InstallPlan {
        let chosen: Vec<&Source> = parts.sources.iter().map(|number| &self.sources[*number]).collect();
        let mut names: Vec<String> = vec![".".to_owned()];
        let mut reasons: Vec<String> = Vec::new();
        for source in &chosen {
            names.push(source.name.clone());
            reasons.push(source.reason.clone());
        }
        if !parts.missing.is_empty() {
            let distributions: BTreeSet<&str> =
                parts.missing.iter().map(|guess| guess.distribution.as_str()).collect();
            names.push(distributions.into_iter().collect::<Vec<_>>().join(" + "));
            reasons.push("what collection could not do without".to_owned());
        }
        if chosen.is_empty() {
            reasons.insert(0, "nothing declares test requirements".to_owned());
        }
        let mut requirements: BTreeSet<String> =
            chosen.iter().flat_map(|source| source.lines.requirements.iter().cloned()).collect();
        let already: BTreeSet<String> = requirements.iter().filter_map(|text| distribution(text)).collect();
        let guessed = parts.missing.iter().map(|guess| guess.distribution.clone());
        requirements
            .extend(guessed.filter(|text| distribution(text).is_none_or(|name| !already.contains(&name))));
        if !requirements.iter().any(|text| distribution(text).as_deref() == Some("pytest")) {
            requirements.insert("pytest".to_owned());
            names.push("pytest".to_owned());
        }
        InstallPlan {
            name: names.join(" + "),
            reason: reasons.join("; "),
            extras: chosen.iter().flat_map(|source| source.extras.iter().cloned()).collect(),
            requirements,
            constraints: chosen.iter().flat_map(|source| source.lines.constraints.iter().cloned()).collect(),
            parts,
        }
    }
}

/// Sources whose addition to a plan made it fail.
fn banned(tried: &[(InstallPlan, Outcome)]) -> BTreeSet<usize> {
    let failed = tried
        .iter()
        .filter(|(plan, outcome)| matches!(outcome, Outcome::Failed(_)) && plan.parts.missing.is_empty());
    failed.filter_map(|(plan, _)| plan.parts.sources.iter().next_back().copied()).collect()
}

/// The normalized distribution that a requirement names unconditionally.
fn distribution(text: &str) -> Option<String> {
    let requirement = parse(text)?;
    requirement.marker.is_true().then(|| normalize(requirement.name.as_ref()))
}

/// How specific a group's or extra's name is about tests; smaller is more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Tests,
    PartlyTests,
    Development,
}

fn kind(name: &str) -> Option<Kind> {
    let name = normalize(name);
    match name.as_str() {
        "test" | "tests" | "testing" | "pytest" | "unittest" => Some(Kind::Tests),
        "dev" | "devel" | "develop" | "development" | "dev-dependencies" => Some(Kind::Development),
        name if name.split('-').any(|word| matches!(word, "test" | "tests" | "testing" | "unittests")) => {
            Some(Kind::PartlyTests)
        }
        _ => None,
    }
}

fn declared(files: &Files, project: &Project) -> Vec<Source> {
    let mut sources = Vec::new();
    for wanted in [Kind::Tests, Kind::PartlyTests, Kind::Development] {
        for (name, group) in project.groups.iter().filter(|(name, _)| kind(name) == Some(wanted)) {
            sources.push((wanted, group_source(name, &group.place, &group.lines)));
        }
        for name in project.extras.keys().filter(|name| kind(name) == Some(wanted)) {
            sources.push((wanted, extra_source(name)));
        }
        if wanted == Kind::Tests {
            let mut lines = Lines::default();
            for line in project.setup_cfg.lines("options", "tests_require") {
                lines.push(&line);
            }
            let reason = "[options] tests_require in setup.cfg".to_owned();
            sources.push((
                wanted,
                Source { name: "tests_require".to_owned(), reason, extras: Vec::new(), lines },
            ));
        }
    }
    let mut merged = merge(sources);
    merged.extend(requirement_files(files));
    let automations = tox::read(files, &project.pyproject, &project.setup_cfg);
    merged.extend(automations.into_iter().map(|automation| automation_source(automation, project)));
    merged.retain(|source| !source.lines.is_empty() || !source.extras.is_empty());
    merged
}

/// Sources of one kind make one step: who declares `group test` and `extra test` means both.
fn merge(sources: Vec<(Kind, Source)>) -> Vec<Source> {
    let mut merged: BTreeMap<Kind, Source> = BTreeMap::new();
    for (kind, source) in sources {
        if source.lines.is_empty() && source.extras.is_empty() {
            continue;
        }
        match merged.get_mut(&kind) {
            None => {
                merged.insert(kind, source);
            }
            Some(whole) => {
                whole.name = format!("{} + {}", whole.name, source.name);
                whole.reason = format!("{}; {}", whole.reason, source.reason);
                whole.extras.extend(source.extras);
                whole.lines.extend(source.lines);
            }
        }
    }
    merged.into_values().collect()
}

fn group_source(name: &str, place: &str, lines: &Lines) -> Source {
    Source {
        name: format!("group {name}"),
        reason: place.to_owned(),
        extras: Vec::new(),
        lines: lines.clone(),
    }
}

fn extra_source(name: &str) -> Source {
    let reason = format!("extra {name} of the project");
    Source { name: format!("extra {name}"), reason, extras: vec![name.to_owned()], lines: Lines::default() }
}

fn automation_source(automation: tox::Automation, project: &Project) -> Source {
    let mut lines = automation.lines;
    for name in &automation.groups {
        if let Some(group) = project.groups.get(name) {
            lines.extend(group.lines.clone());
        }
    }
    let name = automation.place.clone();
    Source {
        name,
        reason: format!("{} installs them to run tests", automation.place),
        extras: Vec::new(),
        lines,
    }
}

/// Requirement files whose names speak of tests, then those that speak of development.
fn requirement_files(files: &Files) -> Vec<Source> {
    let mut tests = Vec::new();
    let mut development = Vec::new();
    for path in files.paths() {
        let Some((stem, "txt" | "in")) = path.rsplit_once('.') else { continue };
        let stem = stem.to_lowercase();
        let words: Vec<&str> = stem.split(|c: char| !c.is_alphanumeric()).collect();
        let is_list = words.iter().any(|word| matches!(*word, "requirements" | "requirement" | "reqs"));
        let pinned_twin =
            path.strip_suffix(".txt").is_some_and(|stem| files.get(&format!("{stem}.in")).is_some());
        if !is_list || pinned_twin || words.contains(&"docs") {
            continue;
        }
        let list = if words.iter().any(|word| matches!(*word, "test" | "tests" | "testing")) {
            &mut tests
        } else if words.iter().any(|word| matches!(*word, "dev" | "devel" | "develop" | "development")) {
            &mut development
        } else {
            continue;
        };
        let lines = read_file(path, &|path| files.get(path).map(str::to_owned));
        let reason = format!("{path} is named for it");
        list.push(Source { name: path.to_owned(), reason, extras: Vec::new(), lines });
    }
    tests.extend(development);
    tests
}

/// Turns `.[extra]` and `itself[extra]` into extras of the tree, keeps only extras that it has, and leaves out the other
/// distributions that are the tree's own.
fn own_to_extras(source: &mut Source, project: &Project) {
    source.extras.append(&mut source.lines.own_extras);
    let mut extras = Vec::new();
    let Lines { requirements, constraints, left_out, .. } = &mut source.lines;
    requirements.retain(|text| {
        let Some(requirement) = parse(text) else { return true };
        let name = normalize(requirement.name.as_ref());
        if project.name.as_ref() == Some(&name) {
            extras.extend(requirement.extras.iter().map(|extra| normalize(extra.as_ref())));
            return false;
        }
        let place = project.own_distributions.get(&name);
        left_out.extend(place.map(|place| format!("{name}, which is the tree's own ({place})")));
        place.is_none()
    });
    let is_own = |text: &String| {
        parse(text).is_some_and(|one| project.own_distributions.contains_key(&normalize(one.name.as_ref())))
    };
    constraints.retain(|text| !is_own(text));
    source.extras.extend(extras);
    source.extras.retain(|extra| project.extras.contains_key(extra));
    source.extras.sort();
    source.extras.dedup();
}

fn configured(files: &Files, project: &Project, repo: &config::Repo) -> Result<Source> {
    let mut source = Source {
        name: "config".to_owned(),
        reason: "groups, extras and requirements of the configuration".to_owned(),
        extras: Vec::new(),
        lines: Lines::default(),
    };
    for name in repo.groups.iter().flatten() {
        let group = project.groups.get(&normalize(name));
        let group = group.ok_or_else(|| unknown("dependency group", name, project.groups.keys()))?;
        source.lines.extend(group.lines.clone());
    }
    for name in repo.extras.iter().flatten() {
        if !project.extras.contains_key(&normalize(name)) {
            return Err(unknown("extra", name, project.extras.keys()));
        }
        source.extras.push(normalize(name));
    }
    for entry in repo.requirements.iter().flatten() {
        let path = entry.trim_start_matches("./");
        if files.get(path).is_some() {
            source.lines.extend(read_file(path, &|path| files.get(path).map(str::to_owned)));
        } else {
            source.lines.extend(asked(entry, project)?);
        }
    }
    Ok(source)
}

/// A requirement of the configuration: what cannot be installed is an error, not a note.
fn asked(entry: &str, project: &Project) -> Result<Lines> {
    let shown = crate::redact::publish(entry);
    if is_file_name(entry) {
        return Err(Error::repository(format!("{shown} is not a file of the tree")).with_hint(
            "name a text file by its path relative to the root of the tree; a link must not leave the tree",
        ));
    }
    let mut lines = Lines::default();
    lines.push(entry);
    if let Some(reason) = lines.left_out.first() {
        return Err(Error::repository(format!("requirement `{shown}` cannot be installed: it is {reason}"))
            .with_hint("write `name>=1`, or a path relative to the root of the tree"));
    }
    let own = parse(entry).and_then(|one| project.own_distributions.get(&normalize(one.name.as_ref())));
    let is_root = |one: &str| project.name.as_deref() == Some(one);
    if let Some(place) = own.filter(|_| !distribution(entry).is_some_and(|name| is_root(&name))) {
        return Err(Error::repository(format!(
            "requirement `{shown}` is the tree's own: {place} declares it"
        ))
        .with_hint("no index is asked for what the tree has; only the project at its root is installed"));
    }
    Ok(lines)
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a String>) -> Error {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let hint = if known.is_empty() {
        "the tree declares none".to_owned()
    } else {
        format!("known: {}", known.join(", "))
    };
    Error::repository(format!("the tree has no {what} `{name}`")).with_hint(hint)
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;
