use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crate::backend::{Backend, Finished, Isolation, Job, Mount, Network, Places, Process};
use crate::config::{self, BackendKind, SourceSpec};
use crate::environment::python::Interpreter;
use crate::environment::{GateReport, Tools, build};
use crate::error::{Error, Fault, Result};
use crate::record::environment::{Built, RungResult};
use crate::record::id::RepoSlug;
use crate::record::source::{Origin, Pinned};
use crate::store::Cache;

/// Plays uv, venv and the build hooks; keeps every job.
struct Scripted {
    places: Places,
    isolation: Isolation,
    jobs: Mutex<Vec<Job>>,
    /// What uv prints instead of resolving an input that holds the first text.
    refusal: Option<(&'static str, &'static str)>,
}

impl Scripted {
    fn new(refusal: Option<(&'static str, &'static str)>) -> Self {
        let place = |text: &str| PathBuf::from(text);
        Scripted {
            places: Places {
                root: place("/testbed"),
                venv: place("/opt/venv"),
                home: place("/home/x"),
                tmp: place("/tmp"),
                runner: place("/opt/runner"),
                scratch: place("/run/scratch"),
            },
            isolation: Isolation { kind: "namespaces".to_owned(), missing: Vec::new() },
            jobs: Mutex::default(),
            refusal,
        }
    }

    fn count(&self) -> usize {
        self.jobs.lock().unwrap().len()
    }
}

fn host(job: &Job, wanted: &str) -> Option<PathBuf> {
    job.mounts.iter().find_map(|mount| match mount {
        Mount::ReadOnly { host, inside } | Mount::Writable { host, inside }
            if inside == Path::new(wanted) =>
        {
            Some(host.clone())
        }
        _ => None,
    })
}

impl Backend for Scripted {
    fn places(&self) -> &Places {
        &self.places
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn start(&self, _: &Job) -> Result<Box<dyn Process>> {
        Err(Error::internal("nothing is started here"))
    }

    fn run(&self, job: &Job, _: Duration) -> Result<Finished> {
        self.jobs.lock().unwrap().push(job.clone());
        let work = host(job, "/opt/work").unwrap();
        let has = |word: &str| job.argv.iter().any(|argument| argument == word);
        let mut finished =
            Finished { code: Some(0), timed_out: false, stdout: String::new(), stderr: String::new() };
        if has("compile") {
            let input = fs_err::read_to_string(work.join("input.in")).unwrap();
            if let Some((_, words)) = self.refusal.filter(|(text, _)| input.contains(text)) {
                finished.code = Some(1);
                words.clone_into(&mut finished.stderr);
                return Ok(finished);
            }
            let lines = input.lines().filter(|line| !line.contains(" @ file:") && !line.is_empty());
            let lock: String = lines.map(|line| [line, "==1 --hash=sha256:aa\n"].concat()).collect();
            fs_err::write(work.join("output.lock"), lock).unwrap();
        } else if has("venv") {
            let inside = job.argv.last().unwrap();
            fs_err::create_dir_all(host(job, inside).unwrap().join("lib/python3.12/site-packages")).unwrap();
        } else if has("requires") {
            fs_err::write(work.join("answer.json"), r#"{"requires": ["wheel"]}"#).unwrap();
        } else if has("build") {
            let tree = host(job, "/testbed").unwrap();
            fs_err::write(tree.join("generated.py"), "").unwrap();
            fs_err::write(tree.join("pkg.py"), "changed").unwrap();
            let answer = r#"{"method": "editable", "wheel": "a-1-py3-none-any.whl", "name": "A", "version": "1", "extras": []}"#;
            fs_err::write(work.join("answer.json"), answer).unwrap();
        }
        Ok(finished)
    }
}

struct Bench {
    _scratch: tempfile::TempDir,
    cache: Cache,
    tools: Tools,
    pinned: Pinned,
    repo: config::Repo,
}

const PYPROJECT: &str = "[build-system]\nrequires = ['backend']\nbuild-backend = 'backend'\n[project]\nname = 'a'\n\
    [dependency-groups]\ntest = ['first']\ndev = ['second']\n";

fn bench(files: &[(&str, &str)]) -> Bench {
    let scratch = tempfile::tempdir().unwrap();
    let cache = Cache::open(&scratch.path().join("cache")).unwrap();
    let tree = scratch.path().join("pinned");
    fs_err::create_dir_all(&tree).unwrap();
    for (name, text) in files {
        fs_err::write(tree.join(name), text).unwrap();
    }
    let python = Interpreter {
        executable: "/opt/python/bin/python3.12".into(),
        version: "3.12.1".to_owned(),
        prefix: "/opt/python".into(),
        implementation: "cpython".to_owned(),
        free_threaded: false,
    };
    let tools = Tools::scripted(&cache, vec![python]);
    let slug = RepoSlug::new("o/a").unwrap();
    let pinned = Pinned {
        slug: slug.clone(),
        origin: Origin::Path { name: "a".to_owned(), uncommitted_changes: false },
        commit: "c".repeat(40),
        pinned_at: "2026-01-02T03:04:05Z".to_owned(),
        tree,
        tree_sha256: "t".to_owned(),
        license: None,
        license_source: None,
        notes: Vec::new(),
    };
    let repo = config::Repo {
        slug,
        source: SourceSpec::Path { path: "a".into(), commit: None, allow_uncommitted: false },
        python: None,
        groups: None,
        extras: None,
        requirements: None,
        tests: None,
        env: BTreeMap::new(),
        backend: BackendKind::Local,
        exclude_newer: None,
        base: None,
        system_packages: Vec::new(),
    };
    Bench { _scratch: scratch, cache, tools, pinned, repo }
}

impl Bench {
    /// Builds; the gate answers with these reports, the last one again and again.
    fn build(&self, backend: &Scripted, reports: &[GateReport]) -> Result<Built> {
        let number = RefCell::new(0);
        let gate = |_: &crate::environment::Candidate<'_>| {
            let at = number.replace_with(|number| *number + 1);
            Ok(reports[at.min(reports.len() - 1)].clone())
        };
        build(&self.pinned, &self.repo, &self.cache, backend, &self.tools, &gate, &|_| {})
    }
}

fn report(collected: usize, collection_errors: usize) -> GateReport {
    GateReport { collected, collection_errors, ..GateReport::default() }
}

#[test]
fn what_runs_code_of_the_tree_has_no_network_and_what_has_network_sees_no_tree() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "x = 1\n")]);
    let backend = Scripted::new(None);
    bench.build(&backend, &[report(1, 1), report(2, 0)]).unwrap();
    let jobs = backend.jobs.lock().unwrap();
    assert!(jobs.iter().any(|job| job.network == Network::Host));
    for job in jobs.iter() {
        let sees_tree = host(job, "/testbed").is_some();
        let has_secret = job.env.values().any(|value| value.contains("secret"));
        assert!(!(sees_tree && job.network == Network::Host), "{:?}", job.argv);
        assert_eq!(has_secret, job.network == Network::Host, "{:?}", job.argv);
    }
}

#[test]
fn the_build_leaves_a_clean_tree_and_nothing_of_the_index() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "x = 1\n")]);
    let built = bench.build(&Scripted::new(None), &[report(2, 0)]).unwrap();
    assert_eq!(fs_err::read_to_string(built.tree.join("pkg.py")).unwrap(), "x = 1\n");
    assert!(built.tree.join("generated.py").exists());
    let repository = git2::Repository::open(&built.tree).unwrap();
    assert!(repository.statuses(None).unwrap().iter().all(|entry| entry.status().is_ignored()));
    assert!(built.notes.iter().any(|note| note.contains("the build changed pkg.py")));
    for entry in fs_err::read_dir(&built.recipe_dir).unwrap() {
        let text = fs_err::read_to_string(entry.unwrap().path()).unwrap();
        let cache = bench.cache.root().to_string_lossy().into_owned();
        assert!(
            !text.contains("index.example") && !text.contains("secret") && !text.contains(&cache),
            "{text}"
        );
    }
    assert!(!built.venv.parent().unwrap().join("work").exists());
}

#[test]
fn a_rebuild_with_nothing_changed_runs_no_job() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "")]);
    let built = bench.build(&Scripted::new(None), &[report(2, 0)]).unwrap();
    let again = Scripted::new(None);
    assert_eq!(bench.build(&again, &[report(0, 9)]).unwrap(), built);
    assert_eq!(again.count(), 0);
    // Not marked done: an interrupted build starts over and comes to the same.
    fs_err::remove_file(built.venv.parent().unwrap().join("built.json")).unwrap();
    assert_eq!(bench.build(&again, &[report(2, 0)]).unwrap(), built);
    assert!(again.count() > 0);
}

#[test]
fn the_best_rung_is_chosen_and_installed_when_none_is_good() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "")]);
    let built = bench.build(&Scripted::new(None), &[report(5, 1), report(4, 1)]).unwrap();
    assert_eq!(built.rungs[0].result, RungResult::Chosen { collected: 5, collection_errors: 1 });
    assert!(matches!(built.rungs[1].result, RungResult::Insufficient { collected: 4, .. }));
    let lock = fs_err::read_to_string(built.recipe_dir.join("requirements.lock")).unwrap();
    assert!(lock.contains("first==1") && !lock.contains("second"), "{lock}");
}

#[test]
fn a_rung_that_cannot_be_resolved_is_recorded_and_the_next_one_tried() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "")]);
    let backend =
        Scripted::new(Some(("first", "No solution found: see https://me:secret@index.example/simple")));
    let built = bench.build(&backend, &[report(2, 0)]).unwrap();
    assert!(
        matches!(&built.rungs[0].result, RungResult::Failed { output, .. } if output.contains("<index>"))
    );
    assert!(matches!(built.rungs[1].result, RungResult::Chosen { .. }));
}

#[test]
fn when_nothing_can_be_installed_the_error_has_stage_output_and_hint() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "")]);
    let error =
        bench.build(&Scripted::new(Some(("pytest", "No solution found"))), &[report(2, 0)]).unwrap_err();
    assert_eq!(error.fault(), Fault::Repository);
    assert!(error.to_string().contains("resolving . + group test"), "{error}");
    assert!(error.detail().unwrap().contains("No solution found") && error.hint().is_some());
}

#[test]
fn network_trouble_ends_the_build_at_once() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "")]);
    let backend =
        Scripted::new(Some(("backend", "error sending request for url (https://index.example/simple)")));
    let error = bench.build(&backend, &[report(2, 0)]).unwrap_err();
    assert!(error.hint().unwrap().contains("network"));
    assert_eq!(backend.count(), 2);
}

#[test]
fn a_tree_that_is_no_project_is_put_on_the_path() {
    let bench = bench(&[("pkg.py", "")]);
    let backend = Scripted::new(None);
    let built = bench.build(&backend, &[report(2, 0)]).unwrap();
    let site = built.venv.join("lib/python3.12/site-packages/tree.pth");
    assert_eq!(fs_err::read_to_string(site).unwrap(), "/testbed\n");
    assert!(
        !backend.jobs.lock().unwrap().iter().any(|job| job.argv.iter().any(|argument| argument == "build"))
    );
}

#[test]
fn what_is_guessed_and_what_is_missing_is_recorded() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "")]);
    let missing = |names: &[&str]| GateReport {
        missing_modules: names.iter().map(|name| (*name).to_owned()).collect(),
        ..report(2, 1)
    };
    let all = missing(&["yaml", "acme_internal", "pkg"]);
    let reports = [all.clone(), all, GateReport { collected: 3, ..missing(&["acme_internal", "pkg"]) }];
    let backend = Scripted::new(None);
    let built = bench.build(&backend, &reports).unwrap();
    let guesses: Vec<String> = built.guesses.iter().map(ToString::to_string).collect();
    assert_eq!(guesses, ["PyYAML for `import yaml`"]);
    let undeclared: Vec<&str> = built.undeclared.iter().map(|one| one.wanted.as_str()).collect();
    assert_eq!(undeclared, ["import acme_internal", "import pkg"]);
    assert!(built.notes.iter().any(|note| note.contains("`import acme_internal`, which nothing declares")));
    assert!(built.notes.iter().any(|note| note.contains("`import pkg` (in the root of the tree)")));
    let lock = fs_err::read_to_string(built.recipe_dir.join("requirements.lock")).unwrap().to_lowercase();
    assert!(lock.contains("pyyaml==1") && !lock.contains("acme") && !lock.contains("pkg"), "{lock}");
}

#[test]
fn when_nothing_can_be_collected_the_error_says_what_is_missing() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "")]);
    let nothing = GateReport { missing_modules: vec!["acme_internal".to_owned()], ..report(0, 1) };
    let error = bench.build(&Scripted::new(None), &[nothing]).unwrap_err();
    assert_eq!(error.fault(), Fault::Repository);
    assert!(error.hint().unwrap().contains("`import acme_internal`, which nothing declares"), "{error:?}");
}
