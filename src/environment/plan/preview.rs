//! What a tree says of its environment, before anything is built or installed: the one reading that a build starts from,
//! and its ladder for people.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::python::{self, Choice, Interpreter};
use super::recipe::Fallbacks;
use crate::config;
use crate::environment::declared::declarations::Files;
use crate::environment::declared::members::{self, Member};
use crate::environment::declared::project::Project;
use crate::environment::declared::pyproject::strings;
use crate::environment::declared::variables::{self, Variables};
use crate::environment::declared::{own, sources};
use crate::error::{Error, Result};
use crate::record::moment::Moment;

/// Everything that is known of a tree before it is built.
#[derive(Debug)]
pub(in crate::environment) struct Known {
    pub files: Files,
    pub project: Project,
    pub members: Vec<Member>,
    pub variables: Variables,
}

impl Known {
    /// Reads the declarations of a tree.
    ///
    /// # Errors
    /// Those of [`Files::read`] and [`Project::parse`].
    pub(in crate::environment) fn of(tree: &Path, repo: &config::Repo) -> Result<Self> {
        let mut files = Files::read(tree)?;
        for entry in repo.requirements.iter().flatten() {
            files.load_with_includes(tree, entry.trim_start_matches("./"))?;
        }
        let mut project = Project::parse(&files)?;
        project.own_distributions =
            own::distributions(&files, &project, repo.requirements.as_deref().unwrap_or_default());
        let lines = sources::all_lines(&files, &project, repo);
        let members = members::declared(&files, &project, lines.iter());
        for member in &members {
            let place = format!("{}/pyproject.toml", member.folder);
            own::add_local(&member.project.pyproject, &place, &mut project.own_distributions);
            let name = member.name.iter().map(|name| (name.clone(), place.clone()));
            project.own_distributions.extend(name);
        }
        members::allow_python_of(&members, &mut project);
        let variables = variables::read(&files, &project);
        Ok(Known { files, project, members, variables })
    }

    /// The interpreter for it.
    ///
    /// # Errors
    /// See [`python::choose`].
    pub(in crate::environment) fn python(
        &self,
        repo: &config::Repo,
        newest: Moment,
        machine: &[Interpreter],
    ) -> Result<Choice> {
        python::choose(repo.python.as_deref(), &self.project, newest, machine)
    }
}

/// The ladder of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Full version.
    pub python: String,
    pub python_reason: String,
    /// The build backend of the project at the root; none where there is none.
    pub backend: Option<String>,
    /// Folders of the projects that are installed as well, and why.
    pub members: BTreeMap<String, String>,
    /// Names of the variables that the tree sets for its tests.
    pub variables: Vec<String>,
    /// The rungs, in the order in which they are tried until one is good.
    pub rungs: Vec<Rung>,
    /// What is added when tests ask for something that it has.
    pub on_demand: Vec<String>,
    pub notes: Vec<String>,
}

/// One set of requirements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rung {
    pub name: String,
    pub reason: String,
    pub requirements: Vec<String>,
}

/// What would be tried for a tree where nothing newer than `newest` is installed. Extras that only building the tree tells
/// are not known to it.
///
/// # Errors
/// A configuration that asks for what the tree does not have; declarations that cannot be read; no interpreter.
pub fn preview(tree: &Path, repo: &config::Repo, newest: Moment, machine: &[Interpreter]) -> Result<Preview> {
    let mut known = Known::of(tree, repo)?;
    if has_computed_extras(&known) {
        for extra in repo.extras.iter().flatten() {
            known.project.extras.entry(crate::requirement::normalize(extra)).or_default();
        }
    }
    has_tests(tree, repo)?;
    let choice = known.python(repo, newest, machine)?;
    let fallbacks = Fallbacks::new(&known.files, &known.project, repo, &known.members)?;
    let plans = fallbacks.all();
    let rung = |plan: &super::recipe::InstallPlan| Rung {
        name: plan.name.clone(),
        reason: plan.reason.clone(),
        requirements: plan.written(),
    };
    Ok(Preview {
        python: choice.interpreter.version,
        python_reason: choice.reason,
        backend: known.project.build.as_ref().map(|build| build.backend.clone()),
        members: known.members.iter().map(|one| (one.folder.clone(), one.reason.clone())).collect(),
        variables: known.variables.values.into_keys().collect(),
        rungs: plans.iter().map(rung).collect(),
        on_demand: fallbacks.on_demand(),
        notes: known.variables.notes,
    })
}

/// Whether the tree has the files and folders that `tests` names. Among options of pytest nothing is taken for a path.
fn has_tests(tree: &Path, repo: &config::Repo) -> Result<()> {
    let named = repo.tests.as_deref().unwrap_or_default();
    if named.iter().any(|argument| argument.starts_with('-')) {
        return Ok(());
    }
    let path = |argument: &String| argument.split("::").next().unwrap_or_default().to_owned();
    let is_missing =
        |path: &String| Path::new(path).is_absolute() || tree.join(path).symlink_metadata().is_err();
    let missing: Vec<String> = named.iter().map(path).filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::repository(format!("the tree has no {}", missing.join(", ")))
        .with_hint("`tests` names files and folders relative to the root of the tree"))
}

/// Whether only building the tree tells its extras.
fn has_computed_extras(known: &Known) -> bool {
    let project = known.project.pyproject.get("project");
    let is_dynamic = strings(project.and_then(|project| project.get("dynamic")))
        .iter()
        .any(|key| key == "optional-dependencies");
    is_dynamic || known.files.get("setup.py").is_some_and(|text| text.contains("extras_require"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = tree.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        tree
    }

    fn today() -> Moment {
        Moment::parse_end("2026-11-01").unwrap()
    }

    fn python() -> Interpreter {
        Interpreter {
            executable: "/opt/python/bin/python3.12".into(),
            version: "3.12.1".to_owned(),
            prefix: "/opt/python".into(),
            implementation: "cpython".to_owned(),
            free_threaded: false,
        }
    }

    fn repo(extras: &[&str]) -> config::Repo {
        let text = "[dataset]\nname = 'd'\nversion = '1'\n[[repo]]\nslug = 'a/b'\npath = '/'\n";
        let mut repo = config::parse(text, Path::new("/"), &|_, _| None).unwrap().repos.remove(0);
        if !extras.is_empty() {
            repo.extras = Some(extras.iter().map(|name| (*name).to_owned()).collect());
        }
        repo
    }

    const PYPROJECT: &str = "[project]\nname = 'pkg'\n[project.optional-dependencies]\nstats = ['scipy']\n\
                             [dependency-groups]\ntest = ['pytest']\ndev = ['ruff']\n";

    #[test]
    fn the_ladder_is_told_without_installing_anything() {
        let tree = tree(&[
            ("pyproject.toml", PYPROJECT),
            ("tox.ini", "[testenv]\nsetenv = MODE=x\n"),
            ("libs/a/setup.py", "setup(name='a')"),
            ("requirements-test.txt", "-e ./libs/a\n"),
        ]);
        let preview = preview(tree.path(), &repo(&[]), today(), &[python()]).unwrap();
        let names: Vec<&str> = preview.rungs.iter().map(|rung| rung.name.as_str()).collect();
        assert_eq!(names, [". + group test", ". + group test + group dev"]);
        assert_eq!(preview.on_demand, ["extra stats"]);
        assert_eq!(preview.variables, ["MODE"]);
        assert_eq!(preview.members.keys().collect::<Vec<_>>(), ["libs/a"]);
        assert_eq!(preview.backend.as_deref(), Some("setuptools.build_meta:__legacy__"));
    }

    #[test]
    fn tests_that_the_tree_does_not_have_are_an_error_but_among_options() {
        let tree = tree(&[("pyproject.toml", PYPROJECT), ("tests/test_a.py", "")]);
        let told = |tests: &[&str]| {
            let tests = Some(tests.iter().map(|name| (*name).to_owned()).collect());
            preview(tree.path(), &config::Repo { tests, ..repo(&[]) }, today(), &[python()])
                .map_err(|error| error.to_string())
        };
        for fine in [&["tests", "tests/test_a.py::test_x"][..], &["--pyargs", "pkg.tests"]] {
            assert!(told(fine).is_ok(), "{fine:?}");
        }
        assert_eq!(told(&["tests", "test/unit"]).unwrap_err(), "the tree has no test/unit");
        assert_eq!(
            told(&["/etc/passwd"]).unwrap_err(),
            "the tree has no /etc/passwd",
            "the host's is none of it"
        );
    }

    #[test]
    fn an_extra_that_the_tree_does_not_have_is_an_error_unless_only_building_tells() {
        let wrong = tree(&[("pyproject.toml", PYPROJECT)]);
        let error = preview(wrong.path(), &repo(&["tset"]), today(), &[python()]).unwrap_err();
        assert!(error.to_string().contains("no extra `tset`"), "{error}");
        let computed = tree(&[("setup.py", "setup(name='x', extras_require=extras())")]);
        assert!(preview(computed.path(), &repo(&["tset"]), today(), &[python()]).is_ok());
    }
}
