//! Where a tree declares requirements, from the most to the least specific about tests. Pure.

use std::collections::BTreeMap;

use super::declarations::Files;
use super::project::Project;
use super::requirements_files::{Lines, normalize, parse, read_file};
use super::tox;
use crate::config;
use crate::error::{Error, Result};
use crate::requirement::is_file_name;

/// One place that declares requirements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// What it adds, e.g. `group tests`.
    pub name: String,
    /// Which file says so.
    pub reason: String,
    pub extras: Vec<String>,
    pub lines: Lines,
}

/// The normalized distribution that a requirement names unconditionally.
pub(super) fn distribution(text: &str) -> Option<String> {
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

/// What the tree itself declares, in the order in which it is tried.
pub(super) fn declared(files: &Files, project: &Project) -> Vec<Source> {
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
pub(super) fn own_to_extras(source: &mut Source, project: &Project) {
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

/// What the configuration asks for.
///
/// # Errors
/// A group, extra or file that the tree does not have.
pub(super) fn configured(files: &Files, project: &Project, repo: &config::Repo) -> Result<Source> {
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
