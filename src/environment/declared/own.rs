//! The distributions that belong to the tree. No index is asked for them: whoever registers such a name there would
//! get code into the environment in place of the tree's own.
//!
//! Always the tree's own are its root project, the members of its workspace, what its declarations take from a local
//! path, and every project declared below the root. But folders of tests, examples, documentation and vendored code
//! (and the like) often hold a stand-in that bears the name of a real distribution, such as a test's project called
//! `requests`. A name of such a project is the tree's own only when nothing declares it as a requirement, and when it
//! is none of the names that everybody knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use toml::{Table, Value};

use super::declarations::Files;
use super::ini::Ini;
use super::known_names;
use super::project::{Project, setup_py_name};
use super::pyproject::{strings, text, tool};
use super::requirements_files::{is_of_conda, pattern, read_file};
use super::survey::DECLARATIONS;
use super::tox;
use crate::requirement::is_name;
use crate::requirement::{normalize, parse};
use crate::rules::Pattern;

/// More patterns of a workspace are not looked at.
const MOST_PATTERNS: usize = 200;

/// Normalized names of the tree's own distributions, and the file that declares each. `asked` are the requirements of
/// the configuration.
pub fn distributions(files: &Files, project: &Project, asked: &[String]) -> BTreeMap<String, String> {
    let workspace = Workspace::of(&project.pyproject);
    let mut own = BTreeMap::new();
    let mut stand_ins = Vec::new();
    if let Some(name) = &project.name {
        own.insert(name.clone(), root_place(files));
    }
    add_local(&project.pyproject, "pyproject.toml", &mut own);
    for path in requirement_lists(files) {
        for name in files.get(path).unwrap_or_default().lines().filter_map(local_requirement) {
            own.entry(name).or_insert_with(|| path.to_owned());
        }
    }
    for folder in &files.survey.projects {
        let found = declared_in(files, folder);
        if is_aside(folder) && !workspace.has(folder) {
            stand_ins.extend(found.name);
            continue;
        }
        if let Some((name, place)) = found.name {
            own.entry(name).or_insert(place);
        }
        add_local(&found.pyproject, &format!("{folder}/pyproject.toml"), &mut own);
    }
    if !stand_ins.is_empty() {
        let wanted = requirements(files, project, asked);
        for (name, place) in stand_ins {
            if !wanted.contains(&name) && !known_names::is_known(&name) {
                own.entry(name).or_insert(place);
            }
        }
    }
    own
}

fn root_place(files: &Files) -> String {
    let all = DECLARATIONS.into_iter().chain(["PKG-INFO"]);
    all.into_iter().find(|name| files.get(name).is_some()).unwrap_or("pyproject.toml").to_owned()
}

/// Whether a folder is, or lies in, one that usually holds what is no part of the project.
pub(in crate::environment) fn is_aside(folder: &str) -> bool {
    const ASIDE: [&str; 31] = [
        "bench",
        "benchmark",
        "benchmarks",
        "contrib",
        "data",
        "demo",
        "demos",
        "deps",
        "doc",
        "docs",
        "example",
        "examples",
        "extern",
        "external",
        "fixture",
        "fixtures",
        "sample",
        "samples",
        "submodules",
        "subprojects",
        "template",
        "templates",
        "test",
        "testdata",
        "testing",
        "tests",
        "third_party",
        "third-party",
        "thirdparty",
        "tutorial",
        "tutorials",
    ];
    folder.split('/').any(|part| {
        let part = part.to_ascii_lowercase();
        let plain = part.trim_start_matches('_');
        // `vendored-meson`, `test_data`, `example_project`.
        let begins = ["vendor", "test_", "test-", "tests_", "tests-", "example_", "example-"];
        ASIDE.contains(&plain) || begins.iter().any(|begin| plain.starts_with(begin))
    })
}

/// What uv takes as members of one workspace.
pub(in crate::environment) struct Workspace {
    members: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

impl Workspace {
    pub(in crate::environment) fn of(pyproject: &Table) -> Self {
        let table = tool(pyproject, "uv").and_then(|uv| uv.get("workspace")).and_then(Value::as_table);
        let patterns = |key: &str| -> Vec<Pattern> {
            let list = strings(table.and_then(|table| table.get(key)));
            let plain = |text: &String| text.trim_start_matches("./").trim_end_matches('/').to_owned();
            let compiled = list.iter().take(MOST_PATTERNS).map(|text| Pattern::glob(&plain(text)));
            compiled.filter_map(Result::ok).collect()
        };
        Workspace { members: patterns("members"), exclude: patterns("exclude") }
    }

    pub(in crate::environment) fn has(&self, folder: &str) -> bool {
        self.members.iter().any(|pattern| pattern.fits(folder)) && !self.excludes(folder)
    }

    pub(in crate::environment) fn excludes(&self, folder: &str) -> bool {
        self.exclude.iter().any(|pattern| pattern.fits(folder))
    }
}

/// What the files of one folder declare.
pub(in crate::environment) struct Declared {
    /// Normalized, with the file that says so.
    pub(in crate::environment) name: Option<(String, String)>,
    pub(in crate::environment) pyproject: Table,
}

/// Reads a project below the root. What is broken says nothing.
pub(in crate::environment) fn declared_in(files: &Files, folder: &str) -> Declared {
    let get = |file: &str| files.get(&format!("{folder}/{file}")).unwrap_or_default();
    let pyproject: Table = get("pyproject.toml").parse().unwrap_or_default();
    let standard = pyproject.get("project").and_then(Value::as_table);
    let table = |table: Option<&Table>| text(table.and_then(|table| table.get("name")));
    let names = [
        table(standard).or_else(|| table(tool(&pyproject, "poetry"))),
        Ini::parse(get("setup.cfg")).get("metadata", "name").map(str::to_owned),
        setup_py_name(get("setup.py")),
    ];
    let name = DECLARATIONS.into_iter().zip(names).find_map(|(file, name)| {
        let name = name.filter(|name| is_name(name))?;
        Some((normalize(&name), format!("{folder}/{file}")))
    });
    Declared { name, pyproject }
}

/// The tables of a `pyproject.toml` in which uv and Poetry say where distributions are.
pub(in crate::environment) fn tables_of_places(pyproject: &Table) -> Vec<&Table> {
    let poetry = tool(pyproject, "poetry");
    let groups = poetry.and_then(|poetry| poetry.get("group")).and_then(Value::as_table);
    let tables = [
        tool(pyproject, "uv").and_then(|uv| uv.get("sources")),
        poetry.and_then(|poetry| poetry.get("dependencies")),
        poetry.and_then(|poetry| poetry.get("dev-dependencies")),
    ];
    let of_groups = groups.into_iter().flatten().filter_map(|(_, group)| group.get("dependencies"));
    tables.into_iter().flatten().chain(of_groups).filter_map(Value::as_table).collect()
}

/// Adds the names that a `pyproject.toml` takes from its workspace or from a path.
pub(in crate::environment) fn add_local(pyproject: &Table, place: &str, into: &mut BTreeMap<String, String>) {
    let mut names = BTreeSet::new();
    for (name, value) in tables_of_places(pyproject).into_iter().flatten() {
        if is_local(value) {
            names.insert(normalize(name));
        }
    }
    for value in pyproject.values() {
        add_local_requirements(value, &mut names);
    }
    for name in names {
        into.entry(name).or_insert_with(|| place.to_owned());
    }
}

/// `{workspace = true}` or `{path = "…"}`, or a list with such a table.
fn is_local(value: &Value) -> bool {
    match value {
        Value::Table(table) => {
            table.get("path").is_some_and(Value::is_str)
                || table.get("workspace") == Some(&Value::Boolean(true))
        }
        Value::Array(list) => list.iter().any(is_local),
        _ => false,
    }
}

fn add_local_requirements(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => into.extend(local_requirement(text)),
        Value::Array(list) => list.iter().for_each(|value| add_local_requirements(value, into)),
        Value::Table(table) => table.values().for_each(|value| add_local_requirements(value, into)),
        _ => {}
    }
}

/// The distribution that a requirement takes from a local path: `b @ file:…`, `b @ {root:uri}/b`, `file:…#egg=b`. Not one that
/// conda built somewhere else.
fn local_requirement(text: &str) -> Option<String> {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*@\s*(?:file:|\{root|\.{0,2}/)")
    });
    static EGG: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^\s*(?:-e\s*|--editable[ =]\s*)?file:[^#]*#(?:.*&)?egg=([A-Za-z0-9._-]+)")
    });
    let found = NAMED.captures(text).or_else(|| EGG.captures(text)).filter(|_| !is_of_conda(text))?;
    Some(normalize(&found[1]))
}

fn requirement_lists(files: &Files) -> impl Iterator<Item = &str> {
    files.paths().filter(|path| path.ends_with(".txt") || path.ends_with(".in"))
}

/// Normalized names of everything that the root's declarations and the configuration require.
fn requirements(files: &Files, project: &Project, asked: &[String]) -> BTreeSet<String> {
    static LITERAL: LazyLock<Regex> = LazyLock::new(|| pattern(r#""([^"\n]{1,200})"|'([^'\n]{1,200})'"#));
    let mut texts: Vec<String> = asked.to_vec();
    texts.extend(project.dependencies.iter().cloned());
    texts.extend(project.extras.values().flatten().cloned());
    texts.extend(project.build.iter().flat_map(|build| build.requires.iter().cloned()));
    for group in project.groups.values() {
        texts.extend(group.lines.requirements.iter().cloned());
    }
    for key in ["install_requires", "setup_requires", "tests_require"] {
        texts.extend(project.setup_cfg.lines("options", key));
    }
    for path in requirement_lists(files) {
        let lines = read_file(path, &|path| files.get(path).map(str::to_owned));
        texts.extend(lines.requirements.into_iter().chain(lines.constraints));
    }
    for automation in tox::read(files, &project.pyproject, &project.setup_cfg) {
        texts.extend(automation.lines.requirements);
    }
    let setup = files.get("setup.py").unwrap_or_default();
    let literals = LITERAL.captures_iter(setup).filter_map(|found| found.get(1).or(found.get(2)));
    texts.extend(literals.map(|literal| literal.as_str().to_owned()));
    let metadata = files.get("PKG-INFO").unwrap_or_default().lines();
    texts.extend(metadata.filter_map(|line| line.strip_prefix("Requires-Dist: ")).map(str::to_owned));
    let mut names: BTreeSet<String> =
        texts.iter().filter_map(|text| parse(text)).map(|one| normalize(one.name.as_ref())).collect();
    let poetry = tool(&project.pyproject, "poetry").and_then(|poetry| poetry.get("dependencies"));
    names.extend(poetry.and_then(Value::as_table).into_iter().flatten().map(|(name, _)| normalize(name)));
    names
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;
