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

/// Factors that an environment for tests has.
const FACTORS: [&str; 7] = ["py", "py3", "test", "tests", "pytest", "unit", "unittest"];

/// Factors of environments that run no tests, or with what is older or newer than what people use.
const ASIDE: [&str; 34] = [
    "docs",
    "doc",
    "lint",
    "linters",
    "flake8",
    "style",
    "format",
    "mypy",
    "typing",
    "type",
    "types",
    "pylint",
    "black",
    "isort",
    "ruff",
    "build",
    "clean",
    "report",
    "packaging",
    "pre",
    "checkqa",
    "manifest",
    "dev",
    "devdeps",
    "latest",
    "main",
    "master",
    "nightly",
    "oldest",
    "oldestdeps",
    "min",
    "mindeps",
    "minimal",
    "lowest",
];
/// What an automation file installs, and the groups of the tree that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Automation {
    pub place: String,
    pub lines: Lines,
    pub groups: Vec<String>,
}

/// Everything that `tox.ini`, `tox.toml`, `[tool.tox]` and `noxfile.py` declare for tests.
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
        found.push(toml_environment(tox, "[tool.tox.env_run_base] in pyproject.toml", files));
    }
    if let Some(tox) = files.get("tox.toml").and_then(|text| text.parse().ok()) {
        found.push(toml_environment(&tox, "tox.toml", files));
    }
    if let Some(text) = files.get("noxfile.py") {
        found.push(nox_sessions(text, files));
    }
    found.retain(|automation| !automation.lines.is_empty() || !automation.groups.is_empty());
    found
}

fn ini_environments(ini: &Ini, base: &str, file: &str, files: &Files) -> Automation {
    let mut automation = Automation { place: format!("[{base}] in {file}"), ..Automation::default() };
    let factors = factors_of_tests(ini);
    // What a reference stands for is taken once, however many references lead to it.
    let mut seen = BTreeSet::new();
    for section in ini.sections().filter(|section| is_test_section(section, base)) {
        for line in ini.lines(section, "deps") {
            let place = IniLine { ini, section, factors: &factors };
            push_ini(&place, &line, files, &mut automation.lines, &mut seen);
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

/// Factors of the environment of `envlist` that is taken: the last of those that run tests with what was released, as far as
/// their names say (they have an interpreter, or begin with a factor of tests); those that choose an interpreter aside.
fn factors_of_tests(ini: &Ini) -> BTreeSet<String> {
    static INTERPRETER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:py|pypy|python)?[\d.]*$"));
    let list = ["envlist", "env_list"].iter().find_map(|key| ini.get("tox", key)).unwrap_or_default();
    let names = separated(list).into_iter().flat_map(|entry| braces(&entry));
    let names: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
    let is_of_tests = |name: &&String| {
        let first = name.split('-').next().unwrap_or_default();
        let runs = !first.is_empty() && INTERPRETER.is_match(first) || FACTORS.contains(&first);
        runs && !name.contains(['{', '[', '/']) && !name.split('-').any(|one| ASIDE.contains(&one))
    };
    let last = names.iter().rfind(is_of_tests);
    let factors = last.into_iter().flat_map(|name| name.split('-'));
    factors.filter(|one| !INTERPRETER.is_match(one)).map(str::to_owned).collect()
}

/// The entries of a list by commas and lines; commas in braces separate none.
fn separated(list: &str) -> Vec<String> {
    let (mut entries, mut depth) = (vec![String::new()], 0_usize);
    for letter in list.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (letter, entries.last_mut()) {
            (',' | '\n', _) if depth == 0 => entries.push(String::new()),
            (letter, Some(entry)) => entry.push(letter),
            (_, None) => {}
        }
    }
    entries
}

/// Where a line of a list is.
#[derive(Clone, Copy)]
struct IniLine<'a> {
    ini: &'a Ini,
    section: &'a str,
    /// Of the environment that is taken, beside [`FACTORS`].
    factors: &'a BTreeSet<String>,
}

fn push_ini(
    place: &IniLine<'_>,
    line: &str,
    files: &Files,
    into: &mut Lines,
    seen: &mut BTreeSet<(String, String)>,
) {
    static REFERENCE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\{\[([^\]]+)\]([\w-]+)\}$"));
    static FACTOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"^([!\w.,{}-]+):\s+(.*)$"));
    if let Some(reference) = REFERENCE.captures(line) {
        let (section, key) = (&reference[1], reference[2].replace('-', "_"));
        if seen.insert((section.to_owned(), key.clone())) {
            for line in place.ini.lines(section, &key) {
                push_ini(&IniLine { section, ..*place }, &line, files, into, seen);
            }
        }
    } else if let Some(conditional) = FACTOR.captures(line) {
        if holds(&conditional[1], place) {
            push_ini(place, &conditional[2], files, into, seen);
            return;
        }
        let what = parse(&conditional[2]).map_or("an entry".to_owned(), |one| format!("`{}`", one.name));
        into.left_out.push(format!("{what} in [{}], which only some factors install", place.section));
    } else {
        push(&line.replace("{toxinidir}/", "").replace("{tox_root}/", ""), files, into);
    }
}

/// Whether a condition on factors (`a-!b,c`: commas are "or", dashes "and") holds in an environment that runs tests with
/// Python 3: its own factors do, and all that are excluded.
fn holds(condition: &str, place: &IniLine<'_>) -> bool {
    let own = place.section.rsplit(':').next().unwrap_or_default();
    let is_factor = |factor: &str| {
        FACTORS.contains(&factor) || place.factors.contains(factor) || own.split('-').any(|one| one == factor)
    };
    let is_met = |factor: &str| match factor.strip_prefix('!') {
        Some(excluded) => !is_factor(excluded),
        None => is_factor(factor),
    };
    braces(condition).iter().any(|one| one.split('-').all(is_met))
}

/// The alternatives of a condition, or of an entry of `envlist`, those in braces spread; none where they are too many.
fn braces(condition: &str) -> Vec<String> {
    const MOST: usize = 1000;
    let mut found = separated(condition);
    while let Some(at) = found.iter().position(|one| one.contains('{')) {
        let one = found.remove(at);
        let spread = one.split_once('{').and_then(|(before, rest)| {
            let (inner, after) = rest.split_once('}')?;
            Some(inner.split(',').map(|part| format!("{before}{}{after}", part.trim())).collect::<Vec<_>>())
        });
        found.splice(at..at, spread.unwrap_or_default());
        if found.len() > MOST {
            return Vec::new();
        }
    }
    found
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

/// The base of all environments, and those whose names speak of tests.
fn toml_environment(tox: &Table, place: &str, files: &Files) -> Automation {
    let mut automation = Automation { place: place.to_owned(), ..Automation::default() };
    let named = tox.get("env").and_then(Value::as_table).into_iter().flatten();
    let of_tests = named.filter(|(name, _)| name.split('-').any(|factor| FACTORS[2..].contains(&factor)));
    for table in tox.get("env_run_base").into_iter().chain(of_tests.map(|(_, table)| table)) {
        for line in strings(table.get("deps")) {
            push(&line.replace("{tox_root}/", ""), files, &mut automation.lines);
        }
        let names = |key: &str| strings(table.get(key)).into_iter().map(|name| normalize(&name));
        automation.lines.own_extras.extend(names("extras"));
        automation.groups.extend(names("dependency_groups"));
    }
    automation
}

/// String literals, and lists of them that have a name in the file, of `session.install(…)` in the sessions that run tests or
/// whose names speak of them.
fn nox_sessions(noxfile: &str, files: &Files) -> Automation {
    static SESSION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^def\s+(\w+)\s*\("));
    static INSTALL: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\w+\.install\(([^()]*)\)"));
    static RUNS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"\.run(?:_always)?\(\s*(?:["']python["'],\s*["']-m["'],\s*)?["'](?:pytest|py\.test|unittest)["']"#,
        )
    });
    static NAMED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"name\s*=\s*["'][^"']*(?:test|unit)[^"']*["']"#));
    static LITERAL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?:^|[\s,(])["']([^"']+)["']"#));
    let mut automation = Automation { place: "noxfile.py".to_owned(), ..Automation::default() };
    let starts: Vec<(usize, String)> = SESSION
        .captures_iter(noxfile)
        .map(|found| (found.get(0).map_or(0, |whole| whole.start()), found[1].to_owned()))
        .collect();
    for (number, (start, name)) in starts.iter().enumerate() {
        let end = starts.get(number + 1).map_or(noxfile.len(), |(end, _)| *end);
        let body = &noxfile[*start..end];
        let before = noxfile[..*start].rsplit("\n\n").next().unwrap_or_default();
        let is_named = name.contains("test") || name.contains("unit") || NAMED.is_match(before);
        if !is_named && !RUNS.is_match(body) {
            continue;
        }
        for call in INSTALL.captures_iter(body) {
            let mut flag = None;
            let arguments = with_constants(&call[1], noxfile);
            for literal in LITERAL.captures_iter(&arguments) {
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

/// Arguments with the values of constants of the file in the place of their names.
fn with_constants(arguments: &str, file: &str) -> String {
    static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*\*?\s*([A-Za-z_]\w*)\s*$"));
    let value_of = |argument: &str| -> Option<String> {
        let name = NAME.captures(argument)?;
        let constant = Regex::new(&format!(
            r#"(?m)^{}\s*(?::[^=\n]+)?=\s*(?:[\[(]([^\])]*)[\])]|(["'][^"']*["']))"#,
            &name[1]
        ));
        let value = constant.ok()?.captures(file)?;
        value.get(1).or_else(|| value.get(2)).map(|value| value.as_str().to_owned())
    };
    let values =
        arguments.split(',').map(|argument| value_of(argument).unwrap_or_else(|| argument.to_owned()));
    values.collect::<Vec<_>>().join(",")
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
    fn factors_are_read_as_tox_reads_them() {
        for (condition, section, expected) in [
            ("!lint", "testenv", true),
            ("!lint-!docs", "testenv", true),
            ("lint", "testenv", false),
            ("py3", "testenv", true),
            ("py27,py3", "testenv", true),
            ("!py-extra", "testenv", false),
            ("{py,pypy}", "testenv", true),
            ("{lint,docs}", "testenv", false),
            ("slow", "testenv:test-slow", true),
            ("!slow", "testenv:test-slow", false),
            ("{py,x}-{a,b}", "testenv", false),
            ("{py,x}-{a,tests}", "testenv", true),
        ] {
            let place = IniLine { ini: &Ini::default(), section, factors: &BTreeSet::new() };
            assert_eq!(holds(condition, &place), expected, "{condition} in {section}");
        }
        let tox = "[testenv]\ndeps =\n  !lint: pytest\n  !lint: -r{toxinidir}/dev.txt\n  lint: ruff\n";
        let files = Files::from_texts([("tox.ini", tox), ("dev.txt", "mock\n")]);
        let found = read(&files, &Table::new(), &Ini::default());
        assert_eq!(found[0].lines.requirements, ["pytest", "mock"]);
        assert_eq!(found[0].lines.left_out.len(), 1);
    }

    #[test]
    fn factors_are_those_of_the_last_environment_that_runs_tests() {
        for (list, expected) in [
            ("py{39,312}-{old,new}, docs", &["new"][..]),
            ("\npy39-django{32,42}\npy312-django{42,52}-{sqlite,postgres}\nlint", &["django52", "postgres"]),
            ("py3, 3.12, pypy3", &[]),
            ("docs, mypy", &[]),
            ("py{39,312}, release", &[]),
            ("py{310,311}-test{,-oldestdeps,-devdeps}{,-cov}", &["cov", "test"]),
            ("unit-fast, codestyle", &["fast", "unit"]),
            ("{a,b}{c,d}{e,f", &[]),
        ] {
            let ini = Ini::parse(&format!("[tox]\nenvlist = {}\n", list.replace('\n', "\n  ")));
            assert_eq!(factors_of_tests(&ini).iter().collect::<Vec<_>>(), expected, "{list}");
        }
        let tox = "[tox]\nenvlist = py{39,312}-{old,new}, docs\n[base]\ndeps =\n  pytest\n[testenv]\ndeps =\n  {[base]deps}\n  \
                   old: zict<3\n  new: zict>=2,<4\n  docs: sphinx\n";
        let found = read(&Files::from_texts([("tox.ini", tox)]), &Table::new(), &Ini::default());
        assert_eq!(found[0].lines.requirements, ["pytest", "zict>=2,<4"]);
        let many = format!("[tox]\nenvlist = {}\n", "{a,b,c,d,e,f,g,h,i,j}-".repeat(9));
        assert!(factors_of_tests(&Ini::parse(&many)).is_empty());
    }

    #[test]
    fn tables_of_tox_toml_are_read() {
        let text = "env_list = ['3.12', 'lint']\n[env_run_base]\ndeps = ['a']\n[env.tests-slow]\ndeps = ['b', '-r {tox_root}/dev.txt']\n\
                    dependency_groups = ['Tests']\n[env.lint]\ndeps = ['ruff']\n";
        let files = Files::from_texts([("tox.toml", text), ("dev.txt", "mock\n")]);
        let found = read(&files, &Table::new(), &Ini::default());
        assert_eq!(found[0].lines.requirements, ["a", "b", "mock"]);
        assert_eq!(found[0].groups, ["tests"]);
    }

    #[test]
    fn sessions_of_nox_by_other_names_and_with_constants_are_read() {
        let nox = "import nox\n\nDEPS = [\n    'zict',\n    \"mock\",\n]\nRUNNER = 'pytest'\n\n\
                   @nox.session(name=\"tests-3\")\ndef suite(session):\n    session.install(*DEPS, RUNNER)\n\n\
                   @nox.session\ndef check(s):\n    s.install('six')\n    s.run('python', '-m', 'pytest')\n\n\
                   @nox.session\ndef lint(session):\n    session.install('ruff')\n";
        let found = read(&Files::from_texts([("noxfile.py", nox)]), &Table::new(), &Ini::default());
        assert_eq!(found[0].lines.requirements, ["zict", "mock", "pytest", "six"]);
        let nox = "LIST = 'ci/list.txt'\n\n@nox.session()\ndef checks(session):\n    session.install('-r', LIST)\n    \
                   session.run('pytest', *session.posargs)\n";
        let files = Files::from_texts([("noxfile.py", nox), ("ci/list.txt", "mock\n")]);
        assert_eq!(read(&files, &Table::new(), &Ini::default())[0].lines.requirements, ["mock"]);
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
