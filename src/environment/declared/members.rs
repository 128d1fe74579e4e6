//! The projects of a tree that are installed beside the one at its root: members of its workspace, what its declarations
//! take from a folder of the tree, and, where the root is no project, the projects below it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::declarations::Files;
use super::own::{Workspace, declared_in, is_aside};
use super::project::Project;
use super::pyproject::{text, tool};
use super::requirements_files::{Lines, folder_of};
use crate::requirement::normalize;

/// More projects are not installed together.
const MOST: usize = 60;

/// A project below the root.
#[derive(Debug, Clone)]
pub struct Member {
    /// From the root of the tree.
    pub folder: String,
    /// Normalized; none where only building it tells.
    pub name: Option<String>,
    pub reason: String,
    /// What it declares.
    pub project: Project,
}

impl Member {
    /// The project in a folder; none when there is none that can be installed, or what declares it is broken.
    pub fn read(files: &Files, folder: &str, reason: &str) -> Option<Member> {
        let project = Project::parse(&files.below(folder)).ok()?;
        project.build.as_ref()?;
        let name = project.name.clone().or_else(|| declared_in(files, folder).name.map(|(name, _)| name));
        Some(Member { folder: folder.to_owned(), name, reason: reason.to_owned(), project })
    }
}

/// The members that a tree declares, by folder. `lines` are all the requirements that may be installed.
pub fn declared<'a>(files: &Files, project: &Project, lines: impl Iterator<Item = &'a Lines>) -> Vec<Member> {
    let mut folders: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |folder: String, reason: String| {
        folders.entry(folder).or_insert(reason);
    };
    let workspace = Workspace::of(&project.pyproject);
    for folder in files.survey.projects.iter().filter(|folder| workspace.has(folder)) {
        add(folder.clone(), "a member of the workspace".to_owned());
    }
    for folder in lines.flat_map(|lines| &lines.local).map(|local| local.folder.clone()) {
        add(folder, "requirements name its folder".to_owned());
    }
    // What a member takes from a path is one as well.
    let mut queue = vec![(String::new(), project.pyproject.clone())];
    let mut seen = BTreeSet::new();
    while let Some((folder, pyproject)) = queue.pop() {
        for path in paths(&pyproject, &folder) {
            if seen.insert(path.clone()) && seen.len() <= MOST {
                queue.push((path.clone(), declared_in(files, &path).pyproject));
                let place = if folder.is_empty() { String::new() } else { format!("{folder}/") };
                add(path, format!("{place}pyproject.toml takes it from its folder"));
            }
        }
    }
    if project.build.is_none() {
        let plain = files.survey.projects.iter().filter(|folder| !is_aside(folder));
        for folder in plain.filter(|folder| !workspace.excludes(folder)) {
            add(folder.clone(), "the root of the tree is not a project, and this is one".to_owned());
        }
    }
    let read = |(folder, reason): (&String, &String)| Member::read(files, folder, reason);
    folders.iter().filter_map(read).take(MOST).collect()
}

/// Where the root says nothing of interpreters, its members do.
pub fn allow_python_of(members: &[Member], project: &mut Project) {
    if project.requires_python.is_none() {
        let all: BTreeSet<&str> =
            members.iter().filter_map(|member| member.project.requires_python.as_deref()).collect();
        let all = all.into_iter().map(|one| one.trim().trim_matches(',')).collect::<Vec<&str>>().join(",");
        project.requires_python = Some(all).filter(|all| !all.is_empty());
    }
    if project.classifiers.is_empty() && project.build.is_none() {
        let mut lists =
            members.iter().map(|member| &member.project.classifiers).filter(|list| !list.is_empty());
        if let Some(first) = lists.next().cloned() {
            let in_all: Vec<&Vec<String>> = lists.collect();
            project.classifiers =
                first.into_iter().filter(|one| in_all.iter().all(|list| list.contains(one))).collect();
        }
    }
}

/// The folder of the innermost project that a place of the tree lies in.
pub fn around<'a>(files: &'a Files, place: &str) -> Option<&'a str> {
    let within = |folder: &&String| {
        place == folder.as_str()
            || place.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
    };
    files.survey.projects.iter().filter(within).max_by_key(|folder| folder.len()).map(String::as_str)
}

/// Folders of the tree that a `pyproject.toml` in `folder` takes distributions from.
fn paths(pyproject: &Table, folder: &str) -> BTreeSet<String> {
    let tables = super::own::tables_of_places(pyproject).into_iter();
    let entries = tables.flat_map(Table::values).flat_map(|value| match value {
        Value::Array(list) => list.iter().collect(),
        value => vec![value],
    });
    let mut found: BTreeSet<String> =
        entries.filter_map(|value| folder_of(folder, &text(value.get("path"))?)).collect();
    let mut requirements = Vec::new();
    pyproject.values().for_each(|value| add_texts(value, &mut requirements));
    // `name @ {root:uri}/folder`, as hatch writes it.
    let of_root = requirements.iter().filter_map(|text| {
        let place = text.split_once("{root:uri}/")?.1;
        folder_of(folder, place.split([' ', ';', '#']).next()?)
    });
    found.extend(of_root);
    let hatch = tool(pyproject, "hatch").and_then(|hatch| hatch.get("envs")).and_then(Value::as_table);
    let members =
        hatch.into_iter().flatten().filter_map(|(_, env)| env.get("workspace")?.get("members")?.as_array());
    let plain = |value: &Value| {
        let path = text(Some(value)).or_else(|| text(value.get("path")))?;
        folder_of(folder, &path).filter(|path| !path.contains(['*', '?', '[']))
    };
    found.extend(members.flatten().filter_map(plain));
    found
}

/// All strings in a document that was parsed, so that it is not deeper than its parser allows.
fn add_texts<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(list) => list.iter().for_each(|value| add_texts(value, into)),
        Value::Table(table) => table.values().for_each(|value| add_texts(value, into)),
        _ => {}
    }
}

/// The member with this normalized name.
pub fn named<'a>(members: &'a [Member], name: &str) -> Option<&'a Member> {
    members.iter().find(|member| member.name.as_deref().map(normalize).as_deref() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "[project]\nname = 'Pkg_A'\n";
    const B: &str = "[project]\nname = 'pkg-b'\n";

    fn found(texts: &[(&str, &str)]) -> Vec<(String, String)> {
        let files = Files::from_texts(texts.iter().copied());
        let project = Project::parse(&files).unwrap();
        let mut lines = Lines::default();
        lines.push("-e ./extra/c[x]");
        let members = declared(&files, &project, std::iter::once(&lines));
        members.into_iter().map(|member| (member.folder, member.name.unwrap_or_default())).collect()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(folder, name)| ((*folder).to_owned(), (*name).to_owned())).collect()
    }

    #[test]
    fn members_of_a_workspace_are_installed_and_what_is_excluded_is_not() {
        let root = "[project]\nname = 'root'\n[tool.uv.workspace]\nmembers = ['packages/*']\nexclude = ['packages/b']\n";
        let texts =
            [("pyproject.toml", root), ("packages/a/pyproject.toml", A), ("packages/b/pyproject.toml", B)];
        assert_eq!(found(&texts), owned(&[("packages/a", "pkg-a")]));
        let virtual_root = "[tool.uv.workspace]\nmembers = ['packages/*']\nexclude = ['packages/b']\n";
        let texts = [("pyproject.toml", virtual_root), texts[1], texts[2]];
        assert_eq!(found(&texts), owned(&[("packages/a", "pkg-a")]));
    }

    #[test]
    fn what_declarations_take_from_a_folder_is_installed_with_what_that_takes() {
        let root = "[tool.poetry]\nname = 'root'\n[build-system]\nrequires = ['poetry-core']\nbuild-backend = 'poetry.core.masonry.api'\n\
                    [tool.poetry.group.dev.dependencies]\npkg-a = {path = './libs/a', develop = true}\n";
        let a = "[project]\nname = 'pkg-a'\ndependencies = ['pkg-b @ {root:uri}/../b']\n";
        let texts = [
            ("pyproject.toml", root),
            ("libs/a/pyproject.toml", a),
            ("libs/b/pyproject.toml", B),
            ("extra/c/setup.py", "setup(name='c')"),
            ("extra/d/setup.py", "setup(name='d')"),
        ];
        assert_eq!(found(&texts), owned(&[("extra/c", "c"), ("libs/a", "pkg-a"), ("libs/b", "pkg-b")]));
    }

    #[test]
    fn without_a_project_at_the_root_those_below_it_are_installed_but_not_samples() {
        let texts = [
            ("one/pyproject.toml", A),
            ("two/setup.py", "setup(name='two')"),
            ("tests/data/three/pyproject.toml", B),
            ("four/pyproject.toml", "[tool.ruff]\n"),
        ];
        assert_eq!(found(&texts), owned(&[("one", "pkg-a"), ("two", "two")]));
    }

    #[test]
    fn paths_that_leave_the_tree_are_nobodys() {
        let root = "[project]\nname = 'root'\n[tool.uv.sources]\na = {path = '../a'}\nb = {path = '/etc'}\n";
        assert_eq!(found(&[("pyproject.toml", root)]), []);
    }

    #[test]
    fn interpreters_are_those_that_all_members_allow_where_the_root_says_nothing() {
        let a = "[project]\nname = 'a'\nrequires-python = '>=3.9'\n";
        let b = "[project]\nname = 'b'\nrequires-python = '<3.13'\n";
        let files = Files::from_texts([("a/pyproject.toml", a), ("b/pyproject.toml", b)]);
        let mut project = Project::parse(&files).unwrap();
        let members = declared(&files, &project, std::iter::empty());
        allow_python_of(&members, &mut project);
        assert_eq!(project.requires_python.as_deref(), Some("<3.13,>=3.9"));
    }

    #[test]
    fn a_place_lies_in_its_innermost_project() {
        let files = Files::from_texts([("a/pyproject.toml", A), ("a/b/pyproject.toml", B)]);
        assert_eq!(around(&files, "a/b/src"), Some("a/b"));
        assert_eq!(around(&files, "a/bc"), Some("a"));
        assert_eq!(around(&files, "c"), None);
    }
}
