//! Where a tree declares requirements, from the most to the least specific about tests. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::conda;
use super::declarations::Files;
use super::members::{Member, named};
use super::pipfile;
use super::project::Project;
use super::requirements_files::{Lines, read_file};
use super::tox;
use crate::config;
use crate::error::{Error, Result};
use crate::requirement::is_file_name;
use crate::requirement::{normalize, parse};

/// One place that declares requirements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::environment) struct Source {
    /// What it adds, e.g. `group tests`.
    pub name: String,
    /// Which file says so.
    pub reason: String,
    pub extras: Vec<String>,
    pub lines: Lines,
}

/// A source that is installed when tests ask for something that it has.
#[derive(Debug, Clone)]
pub(in crate::environment) struct Optional {
    pub source: Source,
    /// All requirements, those of its extras included.
    pub requirements: Vec<String>,
    /// Normalized names of what they ask for.
    pub distributions: BTreeSet<String>,
}

impl Optional {
    /// Finds out what it has, once its extras are known to be the tree's.
    pub(in crate::environment) fn find_distributions(&mut self, project: &Project) {
        let of_extras = self.source.extras.iter().filter_map(|extra| project.extras.get(extra)).flatten();
        self.requirements = self.source.lines.requirements.iter().chain(of_extras).cloned().collect();
        let names = self.requirements.iter().filter_map(|text| parse(text));
        self.distributions = names
            .map(|one| normalize(one.name.as_ref()))
            .filter(|name| {
                !project.own_distributions.contains_key(name) && project.name.as_ref() != Some(name)
            })
            .collect();
    }
}

/// The extras, groups and requirements files of a tree that are none of its `sources`.
pub(in crate::environment) fn optional(
    files: &Files,
    project: &Project,
    sources: &[Source],
) -> Vec<Optional> {
    let is_new = |name: &str| !sources.iter().any(|source| source.name.split(" + ").any(|part| part == name));
    let extras = project.extras.keys().map(|name| extra_source(name));
    let groups = project.groups.iter().map(|(name, group)| group_source(name, &group.place, &group.lines));
    let lists = files.paths().filter(|path| is_requirement_list(path) && !path.contains("constraint"));
    let lists = lists.map(|path| Source {
        name: path.to_owned(),
        reason: path.to_owned(),
        extras: Vec::new(),
        lines: read_file(path, &|path| files.get(path).map(str::to_owned)),
    });
    extras
        .chain(groups)
        .chain(lists)
        .filter(|source| is_new(&source.name))
        .map(|source| Optional { source, requirements: Vec::new(), distributions: BTreeSet::new() })
        .collect()
}

/// Whether a file is one that lists requirements by its ending; those that include it or are included are among them.
fn is_requirement_list(path: &str) -> bool {
    matches!(path.rsplit_once('.'), Some((_, "txt" | "in")))
}

/// The normalized distribution that a requirement names unconditionally.
pub(in crate::environment) fn distribution(text: &str) -> Option<String> {
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

/// What the tree itself declares, in the order in which it is tried; `members` are installed with it.
pub(in crate::environment) fn declared(files: &Files, project: &Project, members: &[Member]) -> Vec<Source> {
    let mut sources = Vec::new();
    for wanted in [Kind::Tests, Kind::PartlyTests, Kind::Development] {
        for (name, group) in project.groups.iter().filter(|(name, _)| kind(name) == Some(wanted)) {
            sources.push((wanted, group_source(name, &group.place, &group.lines)));
        }
        for name in project.extras.keys().filter(|name| kind(name) == Some(wanted)) {
            sources.push((wanted, extra_source(name)));
        }
        sources.extend(of_members(members, wanted).map(|source| (wanted, source)));
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
    let mut merged: Vec<Source> = runtime_list(files, project).into_iter().chain(merge(sources)).collect();
    merged.extend(requirement_files(files));
    let automations = tox::read(files, &project.pyproject, &project.setup_cfg).into_iter();
    let automations = automations.chain(pipfile::read(files)).chain(conda::read(files));
    merged.extend(automations.map(|automation| automation_source(automation, project)));
    merged.retain(|source| !source.lines.is_empty() || !source.extras.is_empty());
    merged
}

/// What a tree that is no project runs with.
fn runtime_list(files: &Files, project: &Project) -> Option<Source> {
    if project.build.is_some() {
        return None;
    }
    let names =
        ["requirements.txt", "requirements.in", "requirements/base.txt", "requirements/requirements.txt"];
    let path = names.into_iter().find(|path| files.get(path).is_some())?;
    Some(Source {
        name: path.to_owned(),
        reason: format!("{path} is what the tree runs with"),
        extras: Vec::new(),
        lines: read_file(path, &|path| files.get(path).map(str::to_owned)),
    })
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

/// What members declare of one kind, as one source.
fn of_members(members: &[Member], wanted: Kind) -> Option<Source> {
    let (mut lines, mut named, mut places) = (Lines::default(), BTreeSet::new(), Vec::new());
    for member in members {
        let Some(own) = &member.name else { continue };
        let project = &member.project;
        let groups = project.groups.iter().filter(|(name, _)| kind(name) == Some(wanted));
        let mut extras: BTreeSet<String> =
            project.extras.keys().filter(|name| kind(name) == Some(wanted)).cloned().collect();
        let before = lines.clone();
        for (name, group) in groups {
            lines.extend(group.lines.clone());
            named.insert(format!("group {name}"));
        }
        named.extend(extras.iter().map(|name| format!("extra {name}")));
        extras.extend(std::mem::take(&mut lines.own_extras));
        lines.requirements.extend(with_extras(own, &extras));
        if lines != before {
            places.push(member.folder.as_str());
        }
    }
    let names: Vec<String> = named.into_iter().collect();
    let of = match places.as_slice() {
        [one] => (*one).to_owned(),
        several => format!("{} members", several.len()),
    };
    (!lines.is_empty()).then(|| Source {
        name: format!("{} of {of}", names.join(", ")),
        reason: format!("{} of {}", names.join(", "), places.join(", ")),
        extras: Vec::new(),
        lines,
    })
}

/// A requirement of a distribution for its extras alone; none without extras.
fn with_extras(name: &str, extras: &BTreeSet<String>) -> Option<String> {
    let extras: Vec<&str> = extras.iter().map(String::as_str).collect();
    (!extras.is_empty()).then(|| format!("{name}[{}]", extras.join(",")))
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

/// Turns `.[extra]` and `itself[extra]` into extras of the tree, keeps only extras that it has, and of the members that are
/// installed with it what asks for extras. Leaves out the other distributions that are the tree's own.
pub(in crate::environment) fn own_to_extras(source: &mut Source, project: &Project, members: &[Member]) {
    source.extras.append(&mut source.lines.own_extras);
    let mut extras = Vec::new();
    let Lines { requirements, constraints, left_out, local, .. } = &mut source.lines;
    let mut of_members: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in std::mem::take(local) {
        match members.iter().find(|member| member.folder == one.folder).and_then(|member| member.name.clone())
        {
            Some(name) => of_members.entry(name).or_default().extend(one.extras),
            None => left_out.push(format!("{}, which is not a project that can be installed", one.folder)),
        }
    }
    requirements.retain(|text| {
        let Some(requirement) = parse(text) else { return true };
        let name = normalize(requirement.name.as_ref());
        if project.name.as_ref() == Some(&name) {
            extras.extend(requirement.extras.iter().map(|extra| normalize(extra.as_ref())));
            return false;
        }
        if named(members, &name).is_some() {
            let wanted = requirement.extras.iter().map(|extra| normalize(extra.as_ref()));
            of_members.entry(name).or_default().extend(wanted);
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
    requirements.extend(of_members.iter().filter_map(|(name, extras)| with_extras(name, extras)));
    source.extras.extend(extras);
    source.extras.retain(|extra| project.extras.contains_key(extra));
    source.extras.sort();
    source.extras.dedup();
}

/// All requirements that a tree declares or the configuration asks for, whatever comes of them: they may name folders.
pub(in crate::environment) fn all_lines(files: &Files, project: &Project, repo: &config::Repo) -> Vec<Lines> {
    let mut asked = Lines::default();
    for entry in repo.requirements.iter().flatten() {
        match files.get(entry.trim_start_matches("./")) {
            Some(_) => asked.extend(read_file(entry.trim_start_matches("./"), &|path| {
                files.get(path).map(str::to_owned)
            })),
            None => asked.push(entry),
        }
    }
    let declared = declared(files, project, &[]).into_iter().map(|source| source.lines);
    declared.chain([asked]).collect()
}

/// What the configuration asks for.
///
/// # Errors
/// A group, extra or file that the tree does not have.
pub(in crate::environment) fn configured(
    files: &Files,
    project: &Project,
    repo: &config::Repo,
    members: &[Member],
) -> Result<Source> {
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
        if members.iter().any(|member| is_folder(entry, &member.folder)) {
            source.lines.push(entry);
        } else if files.get(path).is_some() {
            source.lines.extend(read_file(path, &|path| files.get(path).map(str::to_owned)));
        } else {
            source.lines.extend(asked(entry, project)?);
        }
    }
    Ok(source)
}

/// Whether an entry of the configuration names this folder of the tree.
fn is_folder(entry: &str, folder: &str) -> bool {
    let mut lines = Lines::default();
    lines.push(entry);
    lines.local.iter().any(|local| local.folder == folder)
}

/// A requirement of the configuration: what cannot be installed is an error, not a note.
fn asked(entry: &str, project: &Project) -> Result<Lines> {
    let shown = crate::redact::publish(entry);
    if is_file_name(entry) {
        return Err(Error::repository(format!(
            "{shown} is neither a file of the tree nor the folder of a project in it"
        ))
        .with_hint(
            "name a text file, or a folder with a pyproject.toml or setup.py, by its path relative to the root of the tree; \
             a link must not leave the tree",
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
        .with_hint("no index is asked for what the tree has; name its folder instead: `./packages/name`"));
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
