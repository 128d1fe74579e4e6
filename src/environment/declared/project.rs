//! What a tree says about itself: its declarations, parsed. Pure. Which declarations become what is [`crate::environment::plan::recipe`]'s
//! business.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use toml::{Table, Value};

use super::declarations::Files;
use super::groups::{poetry_lines, poetry_requirement, poetry_version};
use super::ini::Ini;
use super::pyproject::{Group, strings, text, tool};
use super::requirements_files::pattern;
use crate::error::{Error, Result};
use crate::requirement::normalize;

/// How the tree is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSystem {
    pub requires: Vec<String>,
    pub backend: String,
    pub backend_path: Vec<String>,
}

/// What the tree declares about itself.
#[derive(Debug, Clone, Default)]
pub struct Project {
    /// Normalized distribution name.
    pub name: Option<String>,
    /// The static version, or the one of `PKG-INFO`.
    pub version: Option<String>,
    pub requires_python: Option<String>,
    /// Minor versions of the classifiers, e.g. `3.12`.
    pub classifiers: Vec<String>,
    /// Static runtime dependencies, for when the build backend cannot be asked.
    pub dependencies: Vec<String>,
    /// Extras by normalized name.
    pub extras: BTreeMap<String, Vec<String>>,
    /// PEP 735 groups (and their forerunners in tools) by normalized name, includes resolved.
    pub groups: BTreeMap<String, Group>,
    /// Normalized names that no index is asked for, and the file that declares each: see [`super::own`].
    pub own_distributions: BTreeMap<String, String>,
    /// None when the tree is no installable project.
    pub build: Option<BuildSystem>,
    pub pyproject: Table,
    pub setup_cfg: Ini,
}

impl Project {
    /// Parses what the files say.
    ///
    /// # Errors
    /// A `pyproject.toml` that is no TOML.
    pub fn parse(files: &Files) -> Result<Self> {
        let pyproject: Table = match files.get("pyproject.toml") {
            Some(text) => text.parse().map_err(|error: toml::de::Error| {
                let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
                let line = before.matches('\n').count() + 1;
                Error::repository(format!("pyproject.toml:{line} cannot be read: {}", error.message()))
            })?,
            None => Table::new(),
        };
        let pyproject = with_hatch(pyproject, files.get("hatch.toml").unwrap_or_default());
        let setup_cfg = Ini::parse(files.get("setup.cfg").unwrap_or_default());
        let mut project = Project { pyproject, setup_cfg, ..Project::default() };
        project.read_standard();
        project.read_setup_cfg();
        project.read_poetry();
        project.read_setup_py(files.get("setup.py").unwrap_or_default());
        project.read_metadata(files.get("PKG-INFO").unwrap_or_default());
        project.groups = super::groups::read(&project.pyproject);
        project.build = project.build_system(files);
        project.name = project.name.map(|name| normalize(&name));
        Ok(project)
    }

    fn read_standard(&mut self) {
        let Some(table) = self.pyproject.get("project").and_then(Value::as_table) else { return };
        self.name = text(table.get("name"));
        self.version = text(table.get("version"));
        self.requires_python = text(table.get("requires-python"));
        self.classifiers = minor_versions(&strings(table.get("classifiers")));
        self.dependencies = strings(table.get("dependencies"));
        if let Some(extras) = table.get("optional-dependencies").and_then(Value::as_table) {
            self.extras = extras.iter().map(|(name, list)| (normalize(name), strings(Some(list)))).collect();
        }
    }

    fn read_setup_cfg(&mut self) {
        let ini = &self.setup_cfg;
        let version = ini.get("metadata", "version").filter(|text| !text.contains(':'));
        self.name = self.name.take().or_else(|| ini.get("metadata", "name").map(str::to_owned));
        self.version = self.version.take().or_else(|| version.map(str::to_owned));
        let python = ini.get("options", "python_requires").map(str::to_owned);
        self.requires_python = self.requires_python.take().or(python);
        if self.classifiers.is_empty() {
            self.classifiers = minor_versions(&ini.lines("metadata", "classifiers"));
        }
        if self.dependencies.is_empty() {
            self.dependencies = ini.lines("options", "install_requires");
        }
        for key in ini.keys("options.extras_require") {
            let list = ini.lines("options.extras_require", &key);
            self.extras.entry(normalize(&key)).or_insert(list);
        }
    }

    fn read_poetry(&mut self) {
        let Some(poetry) = tool(&self.pyproject, "poetry") else { return };
        self.name = self.name.take().or_else(|| text(poetry.get("name")));
        self.version = self.version.take().or_else(|| text(poetry.get("version")));
        let dependencies = poetry.get("dependencies").and_then(Value::as_table);
        if let Some(table) = dependencies {
            let python = || text(table.get("python")).and_then(|text| poetry_version(&text));
            self.requires_python = self.requires_python.take().or_else(python);
            if self.dependencies.is_empty() {
                self.dependencies = poetry_lines(table).requirements;
            }
        }
        if let Some(extras) = poetry.get("extras").and_then(Value::as_table) {
            for (name, list) in extras {
                let brings = strings(Some(list))
                    .into_iter()
                    .filter_map(|wanted| poetry_requirement(&wanted, dependencies?.get(&wanted)?));
                self.extras.entry(normalize(name)).or_insert_with(|| brings.collect());
            }
        }
    }

    /// Literals only: a `setup.py` is never run to be read.
    fn read_setup_py(&mut self, setup: &str) {
        static PYTHON: LazyLock<Regex> =
            LazyLock::new(|| pattern(r#"python_requires\s*=\s*["']([^"']+)["']"#));
        static CLASSIFIER: LazyLock<Regex> =
            LazyLock::new(|| pattern(r#"["'](Programming Language :: Python :: [\d.]+)["']"#));
        let first = |regex: &Regex| regex.captures(setup).map(|found| found[1].to_owned());
        self.name = self.name.take().or_else(|| setup_py_name(setup));
        self.requires_python = self.requires_python.take().or_else(|| first(&PYTHON));
        if self.classifiers.is_empty() {
            let found: Vec<String> =
                CLASSIFIER.captures_iter(setup).map(|found| found[1].to_owned()).collect();
            self.classifiers = minor_versions(&found);
        }
    }

    /// `PKG-INFO` of an sdist: what the author's own build said.
    fn read_metadata(&mut self, metadata: &str) {
        let header = metadata.split("\n\n").next().unwrap_or_default();
        let field = |name: &str| {
            let value = header.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.map(|value| value.trim().to_owned())
        };
        self.name = self.name.take().or_else(|| field("Name"));
        self.version = self.version.take().or_else(|| field("Version"));
        self.requires_python = self.requires_python.take().or_else(|| field("Requires-Python"));
        for line in header.lines() {
            if let Some(extra) = line.strip_prefix("Provides-Extra: ") {
                self.extras.entry(normalize(extra)).or_default();
            }
        }
    }

    /// Whether the tool that the tree is managed with is told that there is nothing to build, only dependencies.
    fn is_virtual(&self) -> bool {
        const SAYS: [(&str, &str, bool); 4] = [
            ("uv", "package", false),
            ("poetry", "package-mode", false),
            ("pdm", "distribution", false),
            ("rye", "virtual", true),
        ];
        SAYS.iter().any(|(name, key, value)| {
            tool(&self.pyproject, name).and_then(|table| table.get(*key)?.as_bool()) == Some(*value)
        })
    }

    fn build_system(&self, files: &Files) -> Option<BuildSystem> {
        if self.is_virtual() {
            return None;
        }
        let table = self.pyproject.get("build-system").and_then(Value::as_table);
        let has_setup = files.get("setup.py").is_some() || self.setup_cfg.has("metadata");
        if let Some(table) = table {
            let backend = text(table.get("build-backend"));
            if backend.is_none() && !has_setup && !self.pyproject.contains_key("project") {
                return None;
            }
            return Some(BuildSystem {
                requires: strings(table.get("requires")),
                backend: backend.unwrap_or_else(|| LEGACY_BACKEND.to_owned()),
                backend_path: strings(table.get("backend-path")),
            });
        }
        (has_setup || self.pyproject.contains_key("project")).then(|| BuildSystem {
            requires: vec!["setuptools".to_owned(), "wheel".to_owned()],
            backend: LEGACY_BACKEND.to_owned(),
            backend_path: Vec::new(),
        })
    }
}

/// The document with `hatch.toml`, which is `[tool.hatch]` in a file of its own, and stands before it.
fn with_hatch(mut pyproject: Table, hatch: &str) -> Table {
    let Some(hatch) = hatch.parse::<Table>().ok().filter(|hatch| !hatch.is_empty()) else { return pyproject };
    let tools = pyproject.entry("tool").or_insert_with(|| Value::Table(Table::new()));
    if let Some(tools) = tools.as_table_mut() {
        let whole = tools.entry("hatch").or_insert_with(|| Value::Table(Table::new()));
        if let Some(whole) = whole.as_table_mut() {
            whole.extend(hatch);
        }
    }
    pyproject
}

/// The name that a `setup.py` gives to `setup()`: a literal, or a variable that is one.
pub fn setup_py_name(setup: &str) -> Option<String> {
    static GIVEN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r#"(?m)(?:^\s+|\bsetup\(\s*|,\s*)name\s*=\s*(?:["']([\w.-]+)["']|([A-Za-z_]\w*))"#)
    });
    static VARIABLE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"(?m)^([A-Za-z_]\w*)\s*=\s*["']([\w.-]+)["']"#));
    let given = GIVEN.captures(setup)?;
    if let Some(literal) = given.get(1) {
        return Some(literal.as_str().to_owned());
    }
    let variable = &given[2];
    VARIABLE.captures_iter(setup).find(|found| &found[1] == variable).map(|found| found[2].to_owned())
}

/// The backend of PEP 517 for trees that name none.
const LEGACY_BACKEND: &str = "setuptools.build_meta:__legacy__";

/// `3.12` out of `Programming Language :: Python :: 3.12`.
fn minor_versions(classifiers: &[String]) -> Vec<String> {
    let version = |text: &String| {
        let version = text.strip_prefix("Programming Language :: Python :: ")?.trim();
        let minor = version.strip_prefix("3.")?;
        minor.chars().all(|c| c.is_ascii_digit()).then(|| version.to_owned())
    };
    classifiers.iter().filter_map(version).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(texts: &[(&str, &str)]) -> Project {
        Project::parse(&Files::from_texts(texts.iter().copied())).unwrap()
    }

    #[test]
    fn the_name_in_setup_py_may_stand_in_a_variable() {
        assert_eq!(setup_py_name("setup(name='a')").as_deref(), Some("a"));
        assert_eq!(
            setup_py_name("N = \"b\"\nsetup(\n    version=V,\n    name = N,\n)").as_deref(),
            Some("b")
        );
        assert_eq!(setup_py_name("setup(version='1', name=find())"), None);
        assert_eq!(setup_py_name("rename='x'\nfilename = 'y'"), None);
    }

    #[test]
    fn standard_metadata_is_read() {
        let text = "[project]\nname = 'A_b'\nrequires-python = '>=3.9'\nclassifiers = ['Programming Language :: Python :: 3', \
                    'Programming Language :: Python :: 3.10']\n[project.optional-dependencies]\nX_y = ['z']\n";
        let project = project(&[("pyproject.toml", text)]);
        assert_eq!(project.name.as_deref(), Some("a-b"));
        assert_eq!(project.classifiers, ["3.10"]);
        assert_eq!(project.extras["x-y"], ["z"]);
        assert_eq!(project.build.unwrap().backend, LEGACY_BACKEND);
    }

    #[test]
    fn hatch_may_have_a_file_of_its_own() {
        let envs =
            "[envs.hatch-test]\nextra-dependencies = ['pytest-mock']\n[envs.hatch-test.env-vars]\nA = 'b'\n";
        let text = "[project]\nname = 'a'\n[tool.hatch.envs.hatch-test]\nextra-dependencies = ['other']\n";
        let project = project(&[("hatch.toml", envs), ("pyproject.toml", text)]);
        assert_eq!(project.groups["hatch-test"].lines.requirements, ["pytest-mock"]);
        assert!(with_hatch(Table::new(), "no TOML [").is_empty());
    }

    #[test]
    fn what_its_tool_says_is_no_package_is_not_built() {
        let build =
            |rest: &str| project(&[("pyproject.toml", &format!("[project]\nname = 'a'\n{rest}"))]).build;
        for text in [
            "[tool.uv]\npackage = false\n",
            "[tool.poetry]\npackage-mode = false\n[build-system]\nrequires = ['poetry-core']\n",
            "[tool.pdm]\ndistribution = false\n",
            "[tool.rye]\nvirtual = true\n",
        ] {
            assert_eq!(build(text), None, "{text}");
        }
        assert!(build("[tool.uv]\npackage = true\n").is_some());
        assert!(build("[tool.uv]\nmanaged = false\n").is_some());
    }

    #[test]
    fn what_poetry_requires_is_read_without_what_only_extras_bring() {
        let text = "[tool.poetry.dependencies]\npython = '^3.9'\nsix = '^1.16'\nrich = {version = '*', optional = true}\n\
                    uvicorn = {version = '0.30.1', extras = ['standard'], markers = \"os_name == 'posix'\"}\n\
                    [tool.poetry.extras]\ncolours = ['rich', 'missing']\n";
        let project = project(&[("pyproject.toml", text)]);
        assert_eq!(project.dependencies, ["six>=1.16,<2", "uvicorn[standard]==0.30.1 ; os_name == 'posix'"]);
        assert_eq!(project.requires_python.as_deref(), Some(">=3.9,<4"));
        assert_eq!(project.extras["colours"], ["rich"]);
    }

    #[test]
    fn setup_cfg_and_setup_py_are_read_without_running_anything() {
        let cfg = "[metadata]\nname = old\n[options]\ninstall_requires =\n    a>1 ; python_version < '3'\n    b\n\
                   [options.extras_require]\ntests =\n  pytest # runner\n";
        let project = project(&[("setup.cfg", cfg), ("setup.py", "setup(python_requires='>=3.7, <4')")]);
        assert_eq!(project.dependencies, ["a>1 ; python_version < '3'", "b"]);
        assert_eq!(project.extras["tests"], ["pytest"]);
        assert_eq!(project.requires_python.as_deref(), Some(">=3.7, <4"));
        assert!(project.build.is_some());
    }

    #[test]
    fn tool_configuration_alone_is_no_project() {
        assert!(project(&[("pyproject.toml", "[tool.ruff]\nline-length = 80\n")]).build.is_none());
        assert!(project(&[("setup.cfg", "[flake8]\nx = 1\n")]).build.is_none());
    }

    #[test]
    fn broken_toml_is_the_repositorys_trouble() {
        let files = Files::from_texts([("pyproject.toml", "[project\n")]);
        assert_eq!(Project::parse(&files).unwrap_err().fault(), crate::error::Fault::Repository);
    }
}
