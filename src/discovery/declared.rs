//! The scripts that a tree declares: `[project.scripts]`, Poetry, `setup.cfg`, `setup.py`. Pure.

use std::collections::BTreeMap;

use crate::python_source::commands::commands;

/// A script that a project declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    /// `module:object`.
    pub(super) target: String,
    pub(super) file: String,
    /// 1-based.
    pub(super) line: u32,
}

impl Script {
    /// The object that it calls, by its name.
    pub(super) fn object(&self) -> &str {
        self.target.rsplit([':', '.']).next().unwrap_or(&self.target)
    }
}

/// The scripts that one of the files declares, by name; what is named twice keeps the first.
pub(super) fn scripts(file: &str, text: &str) -> BTreeMap<String, Script> {
    let found = match file.rsplit('/').next().unwrap_or(file) {
        "pyproject.toml" => of_pyproject(text),
        "setup.cfg" => of_setup_cfg(text),
        "setup.py" => {
            commands(text).scripts.into_iter().filter_map(|(line, text)| entry(line, &text)).collect()
        }
        _ => Vec::new(),
    };
    let mut scripts = BTreeMap::new();
    for (name, target, line) in found {
        scripts.entry(name).or_insert(Script { target, file: file.to_owned(), line });
    }
    scripts
}

/// The name of the project that a `pyproject.toml` declares.
pub(super) fn project(pyproject: &str) -> Option<String> {
    let document = pyproject.parse::<toml::Table>().ok()?;
    let poetry = document.get("tool").and_then(|tool| tool.get("poetry"));
    let name = |table: &toml::Value| table.get("name")?.as_str().map(str::to_owned);
    document.get("project").and_then(name).or_else(|| poetry.and_then(name))
}

type DeclaredScript = (String, String, u32);

fn entry(line: u32, text: &str) -> Option<DeclaredScript> {
    let (name, target) = text.split_once('=')?;
    let target = target.split('[').next().unwrap_or(target).trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = name.trim();
    (!name.is_empty() && name.chars().all(plain)).then(|| (name.to_owned(), target.to_owned(), line))
}

fn of_pyproject(text: &str) -> Vec<DeclaredScript> {
    let Ok(document) = text.parse::<toml::Table>() else { return Vec::new() };
    let tables = [document.get("project"), document.get("tool").and_then(|tool| tool.get("poetry"))];
    let scripts = tables.into_iter().flatten().filter_map(|table| table.get("scripts")?.as_table());
    let target = |value: &toml::Value| match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Table(table) => {
            table.get("reference").or(table.get("callable")).and_then(|text| text.as_str()).map(str::to_owned)
        }
        _ => None,
    };
    let line = |name: &str| {
        let is_key = |line: &str| {
            let key = line.trim_start().trim_start_matches(['"', '\'']);
            key.strip_prefix(name)
                .is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with('='))
        };
        let at = text.lines().position(is_key).map_or(1, |at| at + 1);
        u32::try_from(at).unwrap_or(1)
    };
    let found = scripts.flatten().filter_map(|(name, value)| {
        let text = format!("{name}={}", target(value)?);
        entry(line(name), &text)
    });
    found.collect()
}

fn of_setup_cfg(text: &str) -> Vec<DeclaredScript> {
    let (mut section, mut in_scripts, mut found) = (String::new(), false, Vec::new());
    for (at, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            (section, in_scripts) = (name.trim().to_owned(), false);
        } else if section == "options.entry_points" {
            if !line.starts_with([' ', '\t']) {
                in_scripts = trimmed.split('=').next().is_some_and(|key| key.trim() == "console_scripts");
            } else if in_scripts {
                found.extend(entry(at, trimmed));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<(String, String, u32)> {
        scripts(file, text).into_iter().map(|(name, one)| (name, one.object().to_owned(), one.line)).collect()
    }

    #[test]
    fn each_way_to_declare_scripts_is_read_with_its_line() {
        let one = |name: &str, object: &str, line| (name.to_owned(), object.to_owned(), line);
        let text = "[project]\nname = 'x'\n[project.scripts]\nshop = \"shop.cli:main\"\n\"shop-admin\" = \"shop.admin:cli.run\"\n";
        assert_eq!(found("pyproject.toml", text), [one("shop", "main", 4), one("shop-admin", "run", 5)]);
        let text = "[tool.poetry.scripts]\nshop = {reference = 'shop:main', type = 'console'}\n";
        assert_eq!(found("pyproject.toml", text), [one("shop", "main", 2)]);
        let text = "[options.entry_points]\nconsole_scripts =\n    shop = shop:main [extra]\n    b=b:c\nother =\n    x = y:z\n";
        assert_eq!(found("setup.cfg", text), [one("b", "c", 4), one("shop", "main", 3)]);
        let text = "setup(entry_points={'console_scripts': ['shop = shop:main']})\n";
        assert_eq!(found("setup.py", text), [one("shop", "main", 1)]);
        assert!(found("pyproject.toml", "[[[").is_empty() && found("x.toml", "").is_empty());
    }
}
