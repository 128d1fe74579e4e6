//! What repositories declare: pyproject.toml, setup.cfg, tox.ini, requirements, locks.

use std::collections::BTreeMap;

use gistmill::environment::GateReport;
use gistmill::environment::declared::declarations::Files;
use gistmill::environment::declared::groups;
use gistmill::environment::declared::ini::Ini;
use gistmill::environment::declared::project::Project;
use gistmill::environment::declared::survey::Survey;
use gistmill::environment::declared::{own, requirements_files, tox};
use gistmill::environment::plan::failure::Failure;
use gistmill::environment::plan::lock::Lock;
use gistmill::environment::plan::missing;
use gistmill::environment::plan::python::{self, Interpreter};
use gistmill::environment::plan::recipe::{Fallbacks, Outcome};
use gistmill::record::moment::Moment;
use gistmill::requirement;
use proptest::prelude::*;

use super::{fuzz, text};

const PYPROJECT: &str = r#"[build-system]
requires = ["setuptools>=64", "wheel"]
build-backend = "setuptools.build_meta"
backend-path = ["."]
[project]
name = "demo"
dynamic = ["version"]
requires-python = ">=3.8,<4"
dependencies = ["requests[socks]>=2 ; python_version > '3.6'", "x @ git+https://host/x@abc"]
classifiers = ["Programming Language :: Python :: 3.11"]
[project.optional-dependencies]
test = ["pytest>=7", "demo[extra]"]
extra = []
[dependency-groups]
dev = ["ruff", {include-group = "tests"}]
tests = ["pytest", {include-group = "dev"}]
[tool.poetry.dependencies]
python = "^3.9"
a = { version = "~1.2", optional = true, extras = ["b"] }
[tool.poetry.group.test.dependencies]
pytest = "*"
[tool.hatch.envs.test]
dependencies = ["pytest"]
[tool.pdm.dev-dependencies]
test = ["-e file:///x", "pytest"]
[tool.tox]
legacy_tox_ini = """
[testenv]
deps = pytest
"""
[tool.setuptools_scm]
version_file = "x.py"
"#;
const SETUP_CFG: &str = "[metadata]\nname = demo\n[options]\npython_requires = >=3.8\ninstall_requires =\n    a>=1\n    b; python_version<'3'\n\
                         [options.extras_require]\ntest = pytest\n    c\n[options.packages.find]\nwhere = src\n[tool:pytest]\ntestpaths = tests\n";
const TOX: &str = "[tox]\nenvlist = py{38,39}-{a,b}\n[testenv]\ndeps =\n    -r requirements.txt\n    -ctests/c.txt\n    py38: x\n    {[base]deps}\n\
                   extras = test\ncommands = pytest {posargs}\n[base]\ndeps = {[testenv]deps}\n[testenv:lint]\ndeps = ruff\n";
const REQUIREMENTS: &str = "-r other.txt\n-c constraints.txt\n--index-url https://me:pw@host/simple\nflask==3.0 --hash=sha256:00\n\
                            -e .[test]\n-e git+ssh://git@host/x.git@abc#egg=x&subdirectory=y\n./local\nhttps://host/a-1.0-py3-none-any.whl\n\
                            a[b,c]>=1,!=2 ; sys_platform == 'linux' # comment\nname \\\n  >= 3\n";
const LOCK: &str = "attrs==23.1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nx @ git+https://host/x@0123\n    # via y\n";
const TOKENS: &[&str] = &[
    "[",
    "]",
    "{",
    "}",
    "{[",
    "]}",
    "(",
    ")",
    "\n",
    "\n    ",
    "\n\t",
    "\r\n",
    "=",
    ":",
    ";",
    ",",
    ".",
    "#",
    " ",
    "\\",
    "\\\n",
    "\"",
    "'",
    "\"\"\"",
    "%",
    "%(",
    ")s",
    "$",
    "@",
    "^",
    "~",
    ">=",
    "==",
    "!=",
    "<",
    "===",
    "*",
    "-r ",
    "-c",
    "-e ",
    "--hash=",
    "git+https://",
    "file:",
    "../",
    "/",
    "\0",
    "é",
    "\u{feff}",
    "[testenv]\n",
    "[project]\n",
    "[tool.poetry]\n",
    "include-group",
    "python_version",
    " and ",
    " or ",
    "requirements.txt",
    "a[b]",
    "1.0",
    "9999999999999999999999",
    "1e5",
    "{posargs}",
    "{toxinidir}",
    "py{38,39}",
    "extras = ",
    "deps = ",
];

fn machine() -> Vec<Interpreter> {
    let interpreter = |version: &str| Interpreter {
        executable: "/usr/bin/python3".into(),
        version: version.into(),
        prefix: "/usr".into(),
        implementation: "cpython".into(),
        free_threaded: false,
    };
    ["3.12.1", "3.8.20"].map(interpreter).into()
}

/// Everything that is derived from the files of a tree.
fn derive(files: &Files) {
    let Ok(project) = Project::parse(files) else { return };
    let newest = Moment::parse_end("2026-11-01").expect("a day");
    let _ = python::choose(None, &project, newest, &machine());
    for (name, place) in own::distributions(files, &project, &[]) {
        assert_eq!(name, requirement::normalize(&name), "{place}");
    }
    let text = "[dataset]\nname = \"d\"\nversion = \"1\"\n[[repo]]\nslug = \"a/b\"\npath = \"/\"\n";
    let config = gistmill::config::parse(text, std::path::Path::new("/"), &|_, _| None).expect("is right");
    let Ok(fallbacks) = Fallbacks::new(files, &project, &config.repos[0], &[]) else { return };
    let mut tried = Vec::new();
    while let Some(plan) = fallbacks.next(&tried) {
        let _ = plan.written();
        let unknown = plan.requirements.iter().take(1).cloned().collect();
        let failure =
            Failure { stage: String::new(), output: String::new(), hint: "", unknown, is_refused: false };
        tried.push((plan, Outcome::Failed(failure)));
        assert!(tried.len() < 500, "there is always another plan: {:?}", tried.last());
    }
}

#[test]
fn pyproject_files() {
    fuzz(text(&[PYPROJECT], TOKENS), |text| {
        derive(&Files::from_texts([("pyproject.toml", text.as_str()), ("requirements.txt", REQUIREMENTS)]));
        if let Ok(table) = text.parse::<toml::Table>() {
            let _ = groups::read(&table);
        }
    });
}

#[test]
fn setup_cfg_and_tox_files() {
    fuzz((text(&[SETUP_CFG], TOKENS), text(&[TOX, SETUP_CFG], TOKENS)), |(setup, ini)| {
        let files = Files::from_texts([
            ("setup.cfg", setup.as_str()),
            ("tox.ini", ini.as_str()),
            ("setup.py", ini.as_str()),
            ("noxfile.py", setup.as_str()),
        ]);
        derive(&files);
        let parsed = Ini::parse(ini);
        for section in parsed.sections() {
            for key in parsed.keys(section) {
                let _ = (parsed.get(section, &key), parsed.lines(section, &key));
            }
        }
        let _ = tox::read(&files, &toml::Table::new(), &Ini::parse(setup));
        let report = GateReport { failure: Some(setup.clone()), ..GateReport::default() };
        let _ = missing::find(&report, &files.survey);
    });
}

#[test]
fn requirement_files_that_include_each_other() {
    let one = || text(&[REQUIREMENTS, "-r requirements.txt\n-r sub/a.txt\n"], TOKENS);
    fuzz((one(), one(), one()), |(a, b, c)| {
        let texts = [("requirements.txt", a), ("other.txt", b), ("sub/a.txt", c)];
        let texts: BTreeMap<&str, &String> = texts.into_iter().collect();
        let lines = requirements_files::read_file("requirements.txt", &|path| {
            texts.get(path).map(|text| (*text).clone())
        });
        for line in lines.requirements.iter().chain(&lines.constraints) {
            assert!(!line.contains("pw@"), "a login in {line}");
        }
        derive(&Files::from_texts(texts.into_iter().map(|(path, text)| (path, text.as_str()))));
    });
}

#[test]
fn single_requirements_and_names() {
    fuzz(
        text(&["a[b,c]>=1,!=2 ; sys_platform == 'linux'", "x @ git+ssh://git@host/x@abc"], TOKENS),
        |text| {
            let _ = (
                requirement::parse(text),
                requirements_files::include(text),
                requirements_files::includes("a/b.txt", text),
            );
            let name = requirement::normalize(text);
            assert_eq!(requirement::normalize(&name), name);
            let report = GateReport {
                missing_modules: vec![text.clone()],
                failure: Some(format!("Missing required plugins: {text}")),
                ..GateReport::default()
            };
            let _ = (missing::find(&report, &Survey::default()), groups::poetry_version(text));
        },
    );
}

#[test]
fn locks() {
    fuzz(text(&[LOCK, REQUIREMENTS], TOKENS), |text| {
        let lock = Lock::parse(text);
        let _ = (
            lock.text(),
            lock.entries().len(),
            lock.direct(),
            lock.constraints(),
            lock.sha256(),
            lock.has("attrs"),
        );
        assert_eq!(Lock::parse(&lock.text()).len(), lock.len(), "{:?}", lock.text());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_that_are_alike_to_an_index_are_alike(name in "[A-Za-z0-9][A-Za-z0-9._-]{0,20}") {
        let other = name.replace(['_', '.'], "-").to_uppercase();
        prop_assert_eq!(requirement::normalize(&name), requirement::normalize(&other));
    }
}
