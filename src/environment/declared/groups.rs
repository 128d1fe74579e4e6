//! Dependency groups of `pyproject.toml`: PEP 735, and the tables that tools had before it. Pure.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::pyproject::{Group, strings, text, tool};
use super::requirements_files::Lines;
use crate::requirement::normalize;

/// All groups by normalized name. The standard table wins over a tool's group of the same name.
pub fn read(pyproject: &Table) -> BTreeMap<String, Group> {
    let mut groups = BTreeMap::new();
    if let Some(table) = pyproject.get("dependency-groups").and_then(Value::as_table) {
        for name in table.keys() {
            let mut lines = Lines::default();
            resolve(table, name, &mut Vec::new(), &mut lines);
            let place = format!("[dependency-groups] {name} in pyproject.toml");
            groups.insert(normalize(name), Group { place, lines });
        }
    }
    let mut add = |name: &str, place: String, lines: Lines| {
        groups.entry(normalize(name)).or_insert(Group { place, lines });
    };
    if let Some(uv) = tool(pyproject, "uv") {
        let list = strings(uv.get("dev-dependencies"));
        if !list.is_empty() {
            add("dev", "[tool.uv] dev-dependencies in pyproject.toml".to_owned(), lines(&list));
        }
    }
    if let Some(pdm) = table_at(tool(pyproject, "pdm"), "dev-dependencies") {
        for (name, list) in pdm {
            let place = format!("[tool.pdm.dev-dependencies] {name} in pyproject.toml");
            add(name, place, lines(&strings(Some(list))));
        }
    }
    if let Some(envs) = table_at(tool(pyproject, "hatch"), "envs") {
        for (name, env) in envs {
            let mut found = lines(&strings(env.get("dependencies")));
            found.extend(lines(&strings(env.get("extra-dependencies"))));
            found.own_extras.extend(strings(env.get("features")).iter().map(|extra| normalize(extra)));
            if !found.is_empty() {
                // What hatch calls its default environment is what others call dev.
                let group = if name == "default" { "dev" } else { name };
                add(group, format!("[tool.hatch.envs.{name}] in pyproject.toml"), found);
            }
        }
    }
    if let Some(poetry) = tool(pyproject, "poetry") {
        if let Some(named) = poetry.get("group").and_then(Value::as_table) {
            for (name, group) in named {
                if let Some(table) = group.get("dependencies").and_then(Value::as_table) {
                    let place = format!("[tool.poetry.group.{name}] in pyproject.toml");
                    add(name, place, poetry_lines(table));
                }
            }
        }
        if let Some(table) = poetry.get("dev-dependencies").and_then(Value::as_table) {
            add("dev", "[tool.poetry.dev-dependencies] in pyproject.toml".to_owned(), poetry_lines(table));
        }
    }
    groups
}

fn table_at<'a>(table: Option<&'a Table>, key: &str) -> Option<&'a Table> {
    table?.get(key)?.as_table()
}

fn lines(list: &[String]) -> Lines {
    let mut lines = Lines::default();
    for entry in list {
        lines.push(entry);
    }
    lines
}

/// Follows `{include-group = …}`; a cycle ends where it closes.
fn resolve(table: &Table, name: &str, path: &mut Vec<String>, into: &mut Lines) {
    let wanted = normalize(name);
    if path.contains(&wanted) {
        into.left_out.push(format!("group {name}, which includes itself"));
        return;
    }
    let Some((_, list)) = table.iter().find(|(key, _)| normalize(key) == wanted) else {
        into.left_out.push(format!("group {name}, which does not exist"));
        return;
    };
    path.push(wanted);
    for entry in list.as_array().into_iter().flatten() {
        if let Some(requirement) = entry.as_str() {
            into.push(requirement);
        } else if let Some(include) = text(entry.get("include-group")) {
            resolve(table, &include, path, into);
        }
    }
    path.pop();
}

/// A poetry dependency table as PEP 508 requirements, without those that only extras bring.
pub fn poetry_lines(table: &Table) -> Lines {
    let mut lines = Lines::default();
    for (name, value) in table {
        if name == "python" || value.get("optional").and_then(Value::as_bool) == Some(true) {
            continue;
        }
        match poetry_requirement(name, value) {
            Some(requirement) => lines.push(&requirement),
            None => {
                lines.left_out.push(format!("{name}, which poetry takes in several variants"));
            }
        }
    }
    lines
}

/// One entry of such a table; none where it has several variants, or a version that PEP 440 cannot say.
pub fn poetry_requirement(name: &str, value: &Value) -> Option<String> {
    if let Some(version) = value.as_str() {
        return Some(format!("{name}{}", poetry_version(version)?));
    }
    let table = value.as_table()?;
    let extras = strings(table.get("extras"));
    let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
    if let Some(path) = text(table.get("path")) {
        // A folder of the tree, never a name that an index could be asked for.
        return Some(format!("./{path}{extras}"));
    }
    let mut requirement = if let Some(url) = text(table.get("git")) {
        let revision = ["rev", "tag", "branch"].iter().find_map(|key| text(table.get(*key)));
        format!("{name}{extras} @ git+{url}{}", revision.map(|at| format!("@{at}")).unwrap_or_default())
    } else {
        format!("{name}{extras}{}", poetry_version(&text(table.get("version"))?)?)
    };
    if let Some(markers) = text(table.get("markers")) {
        requirement = format!("{requirement} ; {markers}");
    }
    Some(requirement)
}

/// Poetry's version syntax (`^1.2`, `~1.2`, `1.2`, `*`) as PEP 440; none for alternatives (`||`).
pub fn poetry_version(version: &str) -> Option<String> {
    if version.contains('|') {
        return None;
    }
    let parts: Option<Vec<String>> = version
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty() && *part != "*")
        .map(one_version)
        .collect();
    Some(parts?.join(","))
}

fn one_version(version: &str) -> Option<String> {
    let bounded = |rest: &str, caret: bool| {
        let rest = rest.trim();
        let numbers: Option<Vec<u64>> = rest.split('.').map(|number| number.parse().ok()).collect();
        let numbers = numbers?;
        // A caret keeps the first number that is not zero; a tilde keeps the second where there is one.
        let keep = if caret {
            numbers.iter().position(|number| *number != 0).unwrap_or(numbers.len() - 1)
        } else {
            usize::from(numbers.len() > 1)
        };
        let mut upper: Vec<String> = numbers[..keep].iter().map(u64::to_string).collect();
        upper.push((numbers[keep] + 1).to_string());
        Some(format!(">={rest},<{}", upper.join(".")))
    };
    if let Some(rest) = version.strip_prefix('^') {
        bounded(rest, true)
    } else if let Some(rest) = version.strip_prefix('~').filter(|rest| !rest.starts_with('=')) {
        bounded(rest, false)
    } else if version.starts_with(|c: char| c.is_ascii_digit()) {
        Some(format!("=={version}"))
    } else {
        Some(version.replace(' ', ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(text: &str) -> BTreeMap<String, Group> {
        read(&text.parse().unwrap())
    }

    #[test]
    fn included_groups_are_resolved_and_cycles_end() {
        let found = groups(
            "[dependency-groups]\nTest = ['pytest', {include-group = 'min_x'}]\nmin-x = ['six', {include-group = 'test'}]\n",
        );
        assert_eq!(found["test"].lines.requirements, ["pytest", "six"]);
        assert_eq!(found["test"].lines.left_out.len(), 1);
    }

    #[test]
    fn groups_of_every_tool_are_read() {
        let found = groups(
            "[tool.pdm.dev-dependencies]\ntest = ['a', '-e file:///x']\n[tool.uv]\ndev-dependencies = ['b']\n\
             [tool.hatch.envs.tests]\nextra-dependencies = ['c']\nfeatures = ['Web_x']\n\
             [tool.poetry.group.qa.dependencies]\nd = '^1.2.3'\ne = {version = '*', extras = ['f'], markers = \"os_name == 'nt'\"}\n\
             g = {path = '../g'}\nh = {path = './libs/h', extras = ['i']}\n",
        );
        assert_eq!(found["test"].lines.requirements, ["a"]);
        assert_eq!(found["dev"].lines.requirements, ["b"]);
        assert_eq!(found["tests"].lines.own_extras, ["web-x"]);
        assert_eq!(found["qa"].lines.requirements, ["d>=1.2.3,<2", "e[f] ; os_name == 'nt'"]);
        assert_eq!(
            (found["qa"].lines.left_out.len(), found["qa"].lines.local[0].folder.as_str()),
            (1, "libs/h")
        );
    }

    #[test]
    fn poetry_versions_become_standard_ones() {
        for (poetry, standard) in [
            ("^0.2.3", ">=0.2.3,<0.3"),
            ("^3.8", ">=3.8,<4"),
            ("~1.2", ">=1.2,<1.3"),
            ("~1", ">=1,<2"),
            ("1.0", "==1.0"),
            (">=1, <2", ">=1,<2"),
            ("*", ""),
        ] {
            assert_eq!(poetry_version(poetry).as_deref(), Some(standard), "{poetry}");
        }
        assert_eq!(poetry_version("^1 || ^2"), None);
    }
}
