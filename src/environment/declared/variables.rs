//! Environment variables that a tree's own automation gives to its tests: tox's `set_env`, hatch's `env-vars`, and the
//! settings that the script of a Django project names which runs its tests. Pure.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use toml::{Table, Value};

use super::declarations::Files;
use super::ini::Ini;
use super::project::Project;
use super::pyproject::{text, tool};
use super::requirements_files::pattern;
use crate::config;

/// Variables of tools that do something else than run tests.
const OF_TOOLS: [&str; 6] = ["COVERAGE_", "LD_", "NOX_", "PIP_", "TOX_", "UV_"];
/// More variables, or longer values, are nobody's.
const MOST: usize = 100;
const LONGEST: usize = 4096;

/// What a tree sets, and what a person should know of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    pub values: BTreeMap<String, String>,
    pub notes: Vec<String>,
}

/// Reads what the tree's automation sets. What depends on a factor or a substitution, and what the worlds of the screen
/// set, is left out with a note.
pub fn read(files: &Files, project: &Project) -> Variables {
    let mut found = Variables::default();
    if let Some(tox) = files.get("tox.ini") {
        found.add_ini(&Ini::parse(tox), "testenv", "[testenv] in tox.ini");
    }
    found.add_ini(&project.setup_cfg, "tox:testenv", "[tox:testenv] in setup.cfg");
    if let Some(tox) = tool(&project.pyproject, "tox") {
        if let Some(legacy) = text(tox.get("legacy_tox_ini")) {
            found.add_ini(&Ini::parse(&legacy), "testenv", "[tool.tox] in pyproject.toml");
        }
        let base = tox.get("env_run_base").and_then(|base| base.get("set_env"));
        found.add_table(base, "[tool.tox.env_run_base] in pyproject.toml");
    }
    let hatch =
        tool(&project.pyproject, "hatch").and_then(|hatch| hatch.get("envs")).and_then(Value::as_table);
    for name in ["hatch-test", "test", "tests", "default"] {
        let variables = hatch.and_then(|envs| envs.get(name)).and_then(|env| env.get("env-vars"));
        found.add_table(variables, &format!("[tool.hatch.envs.{name}] in pyproject.toml"));
    }
    if let Some((settings, script)) = django_settings(files) {
        found.add(SETTINGS, settings, script);
    }
    found
}

const SETTINGS: &str = "DJANGO_SETTINGS_MODULE";

/// Scripts that run the tests of a Django project.
const SCRIPTS: [&str; 2] = ["manage.py", "runtests.py"];

/// The settings that such a script names, and the script, where nothing tells them to pytest: whoever uses pytest-django has
/// said in his own way how Django is set up.
fn django_settings(files: &Files) -> Option<(&str, &'static str)> {
    static NAMED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"["']DJANGO_SETTINGS_MODULE["']\s*[,\]]\s*=?\s*["']([\w.]+)["']"#));
    let tells = |path: &str| {
        let text = files.get(path).unwrap_or_default();
        !SCRIPTS.contains(&path)
            && [SETTINGS, "pytest-django", "pytest_django"].iter().any(|word| text.contains(word))
    };
    if files.paths().any(tells) {
        return None;
    }
    SCRIPTS
        .into_iter()
        .find_map(|script| Some((NAMED.captures(files.get(script)?)?.get(1)?.as_str(), script)))
}

impl Variables {
    fn add_ini(&mut self, ini: &Ini, section: &str, place: &str) {
        static FACTOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[!\w.,{}-]+:\s+"));
        for line in ["setenv", "set_env"].into_iter().flat_map(|key| ini.lines(section, key)) {
            match line.split_once('=') {
                Some((name, value)) if !FACTOR.is_match(&line) => self.add(name.trim(), value.trim(), place),
                _ => self.note(format!(
                    "{place} sets variables under a condition or from elsewhere, which is left out"
                )),
            }
        }
    }

    fn add_table(&mut self, table: Option<&Value>, place: &str) {
        let table: Option<&Table> = table.and_then(Value::as_table);
        for (name, value) in table.into_iter().flatten() {
            match value {
                Value::String(value) => self.add(name, value, place),
                _ => self.note(format!("{place} sets variables from elsewhere, which is left out")),
            }
        }
    }

    /// The first place that sets a variable decides.
    fn add(&mut self, name: &str, value: &str, place: &str) {
        let mut letters = name.chars();
        let is_name = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name || self.values.contains_key(name) || self.values.len() >= MOST {
            return;
        }
        let is_plain =
            value.len() <= LONGEST && !value.chars().any(|c| matches!(c, '{' | '}') || c.is_control());
        if let Some(reason) = config::owned_variable(name) {
            self.note(format!("{place} sets {name}, which is left out: {reason}"));
        } else if OF_TOOLS.iter().any(|prefix| name.starts_with(prefix)) || !is_plain {
            self.note(format!("{place} sets {name}, which is left out"));
        } else {
            self.values.insert(name.to_owned(), value.to_owned());
            self.note(format!("{place} sets {name} for the tests"));
        }
    }

    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) && self.notes.len() < MOST {
            self.notes.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[(&str, &str)]) -> Variables {
        let files = Files::from_texts(texts.iter().copied());
        read(&files, &Project::parse(&files).unwrap())
    }

    #[test]
    fn what_tox_and_hatch_set_for_tests_is_read() {
        let tox = "[testenv]\nsetenv =\n  MODE = test\n  DJANGO_SETTINGS_MODULE=site.settings\n[testenv:docs]\nsetenv = DOCS=1\n";
        let pyproject = "[tool.tox.env_run_base]\nset_env = {FROM_TOML = 'x', MODE = 'other'}\n\
                         [tool.hatch.envs.test.env-vars]\nHATCHED = 'y'\n";
        let found = found(&[("tox.ini", tox), ("pyproject.toml", pyproject)]);
        let pairs: Vec<(&str, &str)> =
            found.values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("DJANGO_SETTINGS_MODULE", "site.settings"),
                ("FROM_TOML", "x"),
                ("HATCHED", "y"),
                ("MODE", "test")
            ]
        );
        assert!(found.notes.contains(&"[testenv] in tox.ini sets MODE for the tests".to_owned()));
    }

    #[test]
    fn a_site_that_says_nothing_of_pytest_has_the_settings_of_its_manage_py() {
        let manage = "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')\n";
        let settings = |texts: &[(&str, &str)]| found(texts).values.get(SETTINGS).cloned();
        assert_eq!(settings(&[("manage.py", manage)]).as_deref(), Some("shop.settings"));
        let assigned = "os.environ[\"DJANGO_SETTINGS_MODULE\"] = \"shop.test\"\n";
        assert_eq!(settings(&[("manage.py", assigned)]).as_deref(), Some("shop.test"));
        assert_eq!(settings(&[("runtests.py", assigned)]).as_deref(), Some("shop.test"));
        assert_eq!(settings(&[("manage.py", manage), ("requirements.txt", "pytest-django\n")]), None);
        let told = "[pytest]\nDJANGO_SETTINGS_MODULE = shop.test\n";
        assert_eq!(settings(&[("manage.py", manage), ("pytest.ini", told)]), None);
        assert_eq!(settings(&[("manage.py", "import sys\n")]), None);
    }

    #[test]
    fn what_the_worlds_set_and_what_is_not_plain_is_left_out_and_said() {
        let tox = "[testenv]\nset_env =\n  PYTHONHASHSEED = 0\n  TZ=UTC\n  COVERAGE_FILE=x\n  A = {toxinidir}/x\n  \
                   py38: B = 1\n  file|env.txt\n  LD_PRELOAD=/x.so\n  C-D=1\n";
        let found = found(&[("tox.ini", tox)]);
        assert_eq!(found.values, BTreeMap::new());
        for word in
            ["PYTHONHASHSEED", "the time zone", "COVERAGE_FILE", " A,", "under a condition", "LD_PRELOAD"]
        {
            assert!(found.notes.iter().any(|note| note.contains(word)), "{word}: {:?}", found.notes);
        }
    }
}
