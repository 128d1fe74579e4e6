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
        for variant in value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice) {
            match poetry_requirement(name, variant) {
                Some(requirement) => lines.push(&requirement),
                None => lines.left_out.push(format!("{name}, whose version only poetry knows")),
            }
        }
    }
    lines
}

/// One variant of an entry of such a table; none where it has a version that PEP 440 cannot say.
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
    let python = text(table.get("python")).and_then(|version| python_marker(&version));
    let platform = text(table.get("platform")).map(|name| match name.strip_prefix("!=") {
        Some(other) => format!("sys_platform != '{}'", other.trim()),
        None => format!("sys_platform == '{}'", name.trim_start_matches('=').trim()),
    });
    let given = text(table.get("markers"));
    let markers: Vec<String> = [given, python, platform].into_iter().flatten().collect();
    match markers.as_slice() {
        [] => {}
        [one] => requirement = format!("{requirement} ; {one}"),
        several => requirement = format!("{requirement} ; ({})", several.join(") and (")),
    }
    Some(requirement)
}

/// The marker that a dependency's key `python` stands for; none where it holds for all.
fn python_marker(version: &str) -> Option<String> {
    let either = version.split('|').map(str::trim).filter(|part| !part.is_empty());
    let alternatives: Vec<String> = either.map(python_versions).collect::<Option<_>>()?;
    (!alternatives.is_empty()).then(|| alternatives.join(" or "))
}

fn python_versions(version: &str) -> Option<String> {
    let standard = poetry_version(version)?;
    let parts = standard.split(',').filter(|part| !part.is_empty()).map(|part| {
        let at = part.find(|c: char| c.is_ascii_digit())?;
        let (operator, number) = part.split_at(at);
        let number = number.trim_end_matches(".*");
        let what = if number.matches('.').count() > 1 { "python_full_version" } else { "python_version" };
        Some(format!("{what} {operator} '{number}'"))
    });
    let parts: Vec<String> = parts.collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// Poetry's version syntax (`^1.2`, `~1.2`, `1.2`, `*`) as PEP 440. Of alternatives (`||`), the last one, which has the newest.
pub fn poetry_version(version: &str) -> Option<String> {
    let version = version.rsplit('|').next().unwrap_or(version);
    let mut parts: Vec<String> = Vec::new();
    for part in version.split([',', ' ']).filter(|part| !part.is_empty()) {
        match parts.last_mut() {
            // `>= 1.2` is one part, `>=1.2 <2` are two.
            Some(last) if !last.contains(|c: char| c.is_ascii_digit() || c == '*') => last.push_str(part),
            _ => parts.push(part.to_owned()),
        }
    }
    let parts: Option<Vec<String>> =
        parts.iter().filter(|part| *part != "*").map(|part| one_version(part)).collect();
    Some(parts?.join(","))
}

fn one_version(version: &str) -> Option<String> {
    let bounded = |rest: &str, caret: bool| {
        let rest = rest.trim();
        // What comes after the numbers (`1.2b1`, `1.2.*`, `1.2.x`) has no part in the upper bound.
        let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
        let numbers: Vec<u64> =
            rest.trim_start_matches('v').split('.').map_while(|number| digits(number).parse().ok()).collect();
        let rest = rest.trim_start_matches('v').trim_end_matches(".*").trim_end_matches(".x");
        if numbers.is_empty() {
            return None;
        }
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
        Some(format!("=={}", version.replace(".x", ".*")))
    } else if let Some(rest) = version.strip_prefix('=').filter(|rest| !rest.starts_with('=')) {
        Some(format!("=={}", rest.trim()))
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
            (">= 1.0 < 2", ">=1.0,<2"),
            ("= 1.4", "==1.4"),
            ("^1.2b1", ">=1.2b1,<2"),
            ("^3.x", ">=3,<4"),
            ("1.x", "==1.*"),
            ("^1 || ^2", ">=2,<3"),
        ] {
            assert_eq!(poetry_version(poetry).as_deref(), Some(standard), "{poetry}");
        }
        assert_eq!(poetry_version("^new"), None);
    }

    #[test]
    fn platforms_pythons_and_variants_of_poetry_become_markers() {
        let found = groups(
            "[tool.poetry.group.test.dependencies]\n\
             a = {version = '^0.8', python = '<3.7'}\n\
             b = {version = '>=300', platform = 'win32', markers = \"os_name == 'nt'\"}\n\
             c = [{version = '1.0', python = '~2.7'}, {version = '^2.0', python = '^3.8'}]\n\
             d = {version = '*', python = '<3.7 || >=3.9', platform = '!=darwin'}\n",
        );
        assert_eq!(
            found["test"].lines.requirements,
            [
                "a>=0.8,<0.9 ; python_version < '3.7'",
                "b>=300 ; (os_name == 'nt') and (sys_platform == 'win32')",
                "c==1.0 ; python_version >= '2.7' and python_version < '2.8'",
                "c>=2.0,<3 ; python_version >= '3.8' and python_version < '4'",
                "d ; (python_version < '3.7' or python_version >= '3.9') and (sys_platform != 'darwin')",
            ]
        );
        assert_eq!(found["test"].lines.left_out, [""; 0]);
    }
}
