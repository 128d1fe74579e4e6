//! What `tox` and `nox` would install to run the tests. Pure; nothing of a noxfile is ever run.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use toml::{Table, Value};

use super::declarations::Files;
use super::ini::Ini;
use super::pyproject::{strings, text, tool};
use super::requirements_files::{Lines, include, pattern, read_file};
use crate::requirement::{normalize, parse};

/// What an automation file installs, and the groups of the tree that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Automation {
    pub place: String,
    pub lines: Lines,
    pub groups: Vec<String>,
}

/// Everything that `tox.ini`, `[tool.tox]` and `noxfile.py` declare for tests.
pub fn read(files: &Files, pyproject: &Table, setup_cfg: &Ini) -> Vec<Automation> {
    let mut found = Vec::new();
    if let Some(text) = files.get("tox.ini") {
        found.push(ini_environments(&Ini::parse(text), "testenv", "tox.ini", files));
    }
    found.push(ini_environments(setup_cfg, "tox:testenv", "setup.cfg", files));
    if let Some(tox) = tool(pyproject, "tox") {
        if let Some(legacy) = text(tox.get("legacy_tox_ini")) {
            found.push(ini_environments(
                &Ini::parse(&legacy),
                "testenv",
                "[tool.tox] in pyproject.toml",
                files,
            ));
        }
        found.push(toml_environment(tox, files));
    }
    if let Some(text) = files.get("noxfile.py") {
        found.push(nox_sessions(text, files));
    }
    found.retain(|automation| !automation.lines.is_empty() || !automation.groups.is_empty());
    found
}

fn ini_environments(ini: &Ini, base: &str, file: &str, files: &Files) -> Automation {
    let mut automation = Automation { place: format!("[{base}] in {file}"), ..Automation::default() };
    // What a reference stands for is taken once, however many references lead to it.
    let mut seen = BTreeSet::new();
    for section in ini.sections().filter(|section| is_test_section(section, base)) {
        for line in ini.lines(section, "deps") {
            push_ini(ini, section, &line, files, &mut automation.lines, &mut seen);
        }
        let list = |key: &str| ini.get(section, key).unwrap_or_default().split([',', '\n']).map(str::trim);
        let plain = |name: &&str| !name.is_empty() && !name.contains(['{', ':']);
        automation.lines.own_extras.extend(list("extras").filter(plain).map(normalize));
        automation.groups.extend(list("dependency_groups").filter(plain).map(normalize));
    }
    automation
}

/// `[testenv]` itself, and `[testenv:test…]`.
fn is_test_section(section: &str, base: &str) -> bool {
    section == base
        || section
            .strip_prefix(base)
            .and_then(|rest| rest.strip_prefix(':'))
            .is_some_and(|name| name.starts_with("test"))
}

fn push_ini(
    ini: &Ini,
    section: &str,
    line: &str,
    files: &Files,
    into: &mut Lines,
    seen: &mut BTreeSet<(String, String)>,
) {
    static REFERENCE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\{\[([^\]]+)\]([\w-]+)\}$"));
    static FACTOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[!\w.,{}-]+:\s+(.*)$"));
    if let Some(reference) = REFERENCE.captures(line) {
        let (section, key) = (&reference[1], reference[2].replace('-', "_"));
        if seen.insert((section.to_owned(), key.clone())) {
            for line in ini.lines(section, &key) {
                push_ini(ini, section, &line, files, into, seen);
            }
        }
    } else if let Some(conditional) = FACTOR.captures(line) {
        let what = parse(&conditional[1]).map_or("an entry".to_owned(), |one| format!("`{}`", one.name));
        into.left_out.push(format!("{what} in [{section}], which only some factors install"));
    } else {
        push(&line.replace("{toxinidir}/", "").replace("{tox_root}/", ""), files, into);
    }
}

/// Adds a requirement, or a requirement file of the tree.
fn push(line: &str, files: &Files, into: &mut Lines) {
    if line.contains('{') {
        into.left_out.push("an entry with a substitution".to_owned());
    } else if let Some((constraint, path)) = include(line) {
        let path = path.strip_prefix("./").unwrap_or(path);
        let mut lines = read_file(path, &|path| files.get(path).map(str::to_owned));
        if constraint {
            lines.constraints.append(&mut lines.requirements);
        }
        into.extend(lines);
    } else {
        into.push(line);
    }
}

fn toml_environment(tox: &Table, files: &Files) -> Automation {
    let mut automation =
        Automation { place: "[tool.tox.env_run_base] in pyproject.toml".to_owned(), ..Automation::default() };
    if let Some(base) = tox.get("env_run_base").and_then(Value::as_table) {
        for line in strings(base.get("deps")) {
            push(&line, files, &mut automation.lines);
        }
        automation.lines.own_extras =
            strings(base.get("extras")).iter().map(|name| normalize(name)).collect();
        automation.groups =
            strings(base.get("dependency_groups")).iter().map(|name| normalize(name)).collect();
    }
    automation
}

/// String literals of `session.install(…)` in the sessions whose names speak of tests.
fn nox_sessions(noxfile: &str, files: &Files) -> Automation {
    static SESSION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^def\s+(\w+)\s*\("));
    static INSTALL: LazyLock<Regex> = LazyLock::new(|| pattern(r"session\.install\(([^()]*)\)"));
    static LITERAL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?:^|[\s,(])["']([^"']+)["']"#));
    let mut automation = Automation { place: "noxfile.py".to_owned(), ..Automation::default() };
    let starts: Vec<(usize, String)> = SESSION
        .captures_iter(noxfile)
        .map(|found| (found.get(0).map_or(0, |whole| whole.start()), found[1].to_owned()))
        .collect();
    for (number, (start, name)) in starts.iter().enumerate() {
        if !(name.contains("test") || name.contains("unit")) {
            continue;
        }
        let end = starts.get(number + 1).map_or(noxfile.len(), |(end, _)| *end);
        for call in INSTALL.captures_iter(&noxfile[*start..end]) {
            let mut flag = None;
            for literal in LITERAL.captures_iter(&call[1]) {
                let literal = &literal[1];
                match flag.take() {
                    Some("-r" | "--requirement") => {
                        push(&format!("-r {literal}"), files, &mut automation.lines);
                    }
                    Some("-c" | "--constraint") => {
                        push(&format!("-c {literal}"), files, &mut automation.lines);
                    }
                    Some("--group") => automation.groups.push(normalize(literal)),
                    _ if literal.starts_with('-') => flag = known_flag(literal),
                    _ => push(literal, files, &mut automation.lines),
                }
            }
        }
    }
    automation
}

/// Flags that take the next literal with them.
fn known_flag(literal: &str) -> Option<&'static str> {
    ["-r", "--requirement", "-c", "--constraint", "--group"].into_iter().find(|flag| *flag == literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tox_environments_for_tests_are_read() {
        let tox = "[tox]\nenvlist = py\n[base]\ndeps =\n  six\n[testenv]\nextras = Web_x, {other}\ndependency-groups = tests\n\
                   deps =\n  {[base]deps}\n  -r{toxinidir}/dev.txt\n  py38: old\n  pytest>=7\n[testenv:docs]\ndeps = sphinx\n";
        let files = Files::from_texts([("tox.ini", tox), ("dev.txt", "mock\n")]);
        let found = read(&files, &Table::new(), &Ini::default());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].lines.requirements, ["six", "mock", "pytest>=7"]);
        assert_eq!(found[0].lines.own_extras, ["web-x"]);
        assert_eq!(found[0].groups, ["tests"]);
        assert_eq!(found[0].lines.left_out.len(), 1);
    }

    #[test]
    fn references_that_lead_in_circles_or_many_times_to_one_place_are_taken_once() {
        let many = "  {[a]deps}\n".repeat(300);
        let tox = format!("[testenv]\ndeps =\n{many}  {{[testenv]deps}}\n[a]\ndeps =\n{many}  six\n");
        let found = read(&Files::from_texts([("tox.ini", tox.as_str())]), &Table::new(), &Ini::default());
        assert_eq!(found[0].lines.requirements, ["six"]);
    }

    #[test]
    fn literal_installs_of_test_sessions_are_read() {
        let nox = "@nox.session\ndef lint(session):\n    session.install('ruff')\n\
                   @nox.session\ndef tests(session):\n    session.install('-e', '.[async]', \"pytest\")\n\
                   \x20   session.install(\n        '-r', 'dev.txt', f'x{y}', '--group', 'Tests')\n";
        let files = Files::from_texts([("noxfile.py", nox), ("dev.txt", "mock\n")]);
        let found = read(&files, &Table::new(), &Ini::default());
        assert_eq!(found[0].lines.requirements, ["pytest", "mock"]);
        assert_eq!(found[0].lines.own_extras, ["async"]);
        assert_eq!(found[0].groups, ["tests"]);
    }

    #[test]
    fn tox_tables_of_pyproject_are_read() {
        let pyproject: Table =
            "[tool.tox.env_run_base]\ndeps = ['a']\ndependency_groups = ['tests']\n[tool.ruff]\n"
                .parse()
                .unwrap();
        let found = read(&Files::default(), &pyproject, &Ini::default());
        assert_eq!(found[0].lines.requirements, ["a"]);
        assert_eq!(found[0].groups, ["tests"]);
    }
}
