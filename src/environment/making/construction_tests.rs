use std::cell::RefCell;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::backend::{Backend, Finished, Isolation, Job, Mount, Places, Process};
use crate::config;
use crate::environment::plan::python::Interpreter;
use crate::environment::steps::toolchain::Toolchains;
use crate::environment::{GateReport, Tools, build};
use crate::error::{Error, Fault, Result};
use crate::record::environment::{Built, PlanResult};
use crate::record::id::RepoSlug;
use crate::record::source::{Origin, Pinned};
use crate::store::Cache;
use crate::testing::made_up;

/// Plays uv, venv and the build hooks; keeps every job.
struct Scripted {
    places: Places,
    isolation: Isolation,
    jobs: Mutex<Vec<Job>>,
    /// What uv prints instead of resolving an input that holds the first text.
    refusal: Option<(&'static str, &'static str)>,
    /// What the build hook does, with the folder for what comes of it and the tree.
    build: Hook,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Scripted")
    }
}

const ANSWER: &str = r#"{"method": "editable", "wheel": "a-1-py3-none-any.whl", "name": "A", "version": "1", "extras": [], "metadata": ""}"#;

/// What a build hook does in the folder for what comes of it, and in the tree.
type Hook = fn(&Path, &Path);

/// A build that leaves what builds leave.
fn well_behaved(out: &Path, tree: &Path) {
    fs_err::write(tree.join("generated.py"), "").unwrap();
    fs_err::write(tree.join("pkg.py"), "changed").unwrap();
    fs_err::write(out.join("a-1-py3-none-any.whl"), "wheel").unwrap();
    fs_err::write(out.join("answer.json"), ANSWER).unwrap();
}

impl Scripted {
    fn new(refusal: Option<(&'static str, &'static str)>) -> Arc<Self> {
        Arc::new(Scripted::with(refusal))
    }

    fn with(refusal: Option<(&'static str, &'static str)>) -> Self {
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
            build: well_behaved,
        }
    }

    fn count(&self) -> usize {
        self.jobs.lock().unwrap().len()
    }
}

fn host(job: &Job, wanted: &str) -> Option<PathBuf> {
    job.mounts.iter().find_map(|mount| match mount {
        Mount::ReadOnly { host, inside }
        | Mount::Writable { host, inside }
        | Mount::Overlay { host, inside, .. }
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
        let (given, out) = (host(job, "/opt/in").unwrap(), host(job, "/opt/out").unwrap());
        let has = |word: &str| job.argv.iter().any(|argument| argument == word);
        let mut finished =
            Finished { code: Some(0), timed_out: false, stdout: String::new(), stderr: String::new() };
        if has("compile") {
            let input = fs_err::read_to_string(given.join("input.in")).unwrap();
            if let Some((_, words)) = self.refusal.filter(|(text, _)| input.contains(text)) {
                finished.code = Some(1);
                words.clone_into(&mut finished.stderr);
                return Ok(finished);
            }
            let lines = input.lines().filter(|line| !line.contains(" @ file:") && !line.is_empty());
            let lock: String = lines.map(|line| [line, "==1 --hash=sha256:aa\n"].concat()).collect();
            fs_err::write(out.join("output.lock"), lock).unwrap();
        } else if has("venv") {
            let inside = job.argv.last().unwrap();
            fs_err::create_dir_all(host(job, inside).unwrap().join("lib/python3.12/site-packages")).unwrap();
        } else if has("requires") {
            fs_err::write(out.join("answer.json"), r#"{"requires": ["wheel"]}"#).unwrap();
        } else if has("/opt/in/own_wheel.py") {
            fs_err::write(out.join("answer.json"), r#"{"why": null}"#).unwrap();
        } else if has("build") {
            (self.build)(&out, &host(job, "/testbed").unwrap());
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
        origin: Origin::Path { name: "a".to_owned(), uncommitted_changes: false },
        tree,
        ..made_up::pinned(&slug, &"c".repeat(40))
    };
    let repo = made_up::repo(slug);
    Bench { _scratch: scratch, cache, tools, pinned, repo }
}

impl Bench {
    /// Builds; the gate answers with these reports, the last one again and again.
    fn build(&self, backend: &Arc<Scripted>, reports: &[GateReport]) -> Result<Built> {
        let number = RefCell::new(0);
        let gate = |_: &crate::environment::Candidate<'_>| {
            let at = number.replace_with(|number| *number + 1);
            Ok(reports[at.min(reports.len() - 1)].clone())
        };
        let backend = Arc::clone(backend) as Arc<dyn Backend>;
        build(&self.pinned, &self.repo, &self.cache, &backend, &self.tools, &gate, &|_| {})
    }
}

fn report(collected: usize, collection_errors: usize) -> GateReport {
    GateReport { collected, collection_errors, ..GateReport::default() }
}

/// The folders of the host that a job may write to, and those that it reads.
fn folders(job: &Job) -> Vec<PathBuf> {
    let host = |mount: &Mount| match mount {
        Mount::ReadOnly { host, .. }
        | Mount::Writable { host, .. }
        | Mount::Scratch { host, .. }
        | Mount::Overlay { host, .. } => Some(host.clone()),
        Mount::Tmpfs { .. } | Mount::NoPackages { .. } => None,
    };
    job.mounts.iter().filter_map(host).collect()
}

#[test]
fn no_job_has_a_network_or_a_login_and_only_uv_reaches_the_door() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "x = 1\n")]);
    let backend = Scripted::new(None);
    bench.build(&backend, &[report(1, 1), report(2, 0)]).unwrap();
    let jobs = backend.jobs.lock().unwrap();
    assert!(jobs.iter().any(|job| job.service.is_some()));
    for job in jobs.iter() {
        assert!(!job.env.values().chain(&job.argv).any(|value| value.contains("secret")), "{:?}", job.argv);
        assert_eq!(job.service.is_some(), job.argv[0] == "/opt/uv/uv", "{:?}", job.argv);
        let sees_tree = host(job, "/testbed").is_some();
        assert!(!(sees_tree && job.service.is_some()), "{:?}", job.argv);
    }
}

/// A tree that compiles Rust and pins no crate but its own: nothing is downloaded for it.
const RUST: [(&str, &str); 3] = [
    (
        "pyproject.toml",
        "[build-system]\nrequires = ['maturin']\nbuild-backend = 'maturin'\n[project]\nname = 'a'\n",
    ),
    ("Cargo.toml", "[package]\nname = 'a'\nversion = '1.0.0'\n"),
    ("Cargo.lock", "version = 4\n[[package]]\nname = 'a'\nversion = '1.0.0'\n"),
];

#[test]
fn a_build_that_compiles_rust_has_a_home_for_cargo_and_its_compiler_in_its_key() {
    let mut bench = bench(&RUST);
    let backend = Scripted::new(None);
    let mut build_with = |version| {
        bench.tools.toolchains = Toolchains::scripted(version);
        let before = backend.count();
        let built = bench.build(&backend, &[report(1, 0)]).unwrap();
        (built, backend.count() - before)
    };
    let (old, jobs) = build_with(Some("rustc 1.85.0"));
    let hooks = |job: &&Job| job.argv[0] == "/opt/build/bin/python";
    assert!(backend.jobs.lock().unwrap().iter().filter(hooks).all(|job| {
        job.env["CARGO_HOME"] == "/opt/cargo"
            && job.env["CARGO_NET_OFFLINE"] == "true"
            && host(job, "/opt/cargo").is_some()
    }));
    assert!(backend.jobs.lock().unwrap().iter().any(|job| hooks(&job)) && jobs > 0);
    let note = "0 crates of Cargo.lock fetched and checked by its hashes; built with rustc 1.85.0";
    assert!(old.notes.iter().any(|one| one == note), "{:?}", old.notes);
    let recipe = fs_err::read_to_string(old.recipe_dir.join("recipe.json")).unwrap();
    assert!(recipe.contains(r#""rustc": "rustc 1.85.0""#), "{recipe}");
    assert_eq!(build_with(Some("rustc 1.85.0")), (old.clone(), 0));
    let (new, jobs) = build_with(Some("rustc 1.95.0"));
    assert!(new.key != old.key && new.tree != old.tree && jobs > 0);
    // Without a compiler nothing of it is shown, and the build has to know what to do.
    let before = backend.count();
    let (none, _) = build_with(None);
    assert!(none.key != old.key && none.tree != old.tree);
    assert!(backend.jobs.lock().unwrap()[before..].iter().all(|job| !job.env.contains_key("CARGO_HOME")));
}

#[test]
fn what_foreign_code_may_write_no_other_job_sees() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "x = 1\n")]);
    let backend = Scripted::new(None);
    bench.build(&backend, &[report(2, 0)]).unwrap();
    let jobs = backend.jobs.lock().unwrap();
    let hooks = jobs.iter().enumerate().filter(|(_, job)| job.argv[0] == "/opt/build/bin/python");
    for (number, hook) in hooks {
        let writable = hook.mounts.iter().filter_map(|mount| match mount {
            Mount::Writable { host, .. } | Mount::Scratch { host, .. } => Some(host),
            _ => None,
        });
        for written in writable {
            for (other, job) in jobs.iter().enumerate().filter(|(other, _)| *other != number) {
                let seen =
                    folders(job).iter().any(|seen| seen.starts_with(written) || written.starts_with(seen));
                assert!(!seen, "job {other} sees {} of job {number}", written.display());
            }
        }
    }
}

/// What a hostile build hook may leave in place of a wheel, an answer and the tree.
#[test]
fn what_a_build_leaves_is_never_followed() {
    let cases: [(&str, Hook); 6] = [
        ("the answer is a link", |out, _| symlink("/etc/hostname", out.join("answer.json")).unwrap()),
        ("the wheel is a link", |out, _| {
            symlink("/etc/hostname", out.join("a-1-py3-none-any.whl")).unwrap();
            fs_err::write(out.join("answer.json"), ANSWER).unwrap();
        }),
        ("the wheel lies elsewhere", |out, _| {
            fs_err::write(out.join("answer.json"), ANSWER.replace("a-1-py3", "../../../x-1-py3")).unwrap();
        }),
        ("the wheel is a folder", |out, _| {
            fs_err::create_dir(out.join("a-1-py3-none-any.whl")).unwrap();
            fs_err::write(out.join("answer.json"), ANSWER).unwrap();
        }),
        ("the name is a requirement", |out, _| {
            fs_err::write(out.join("a-1-py3-none-any.whl"), "").unwrap();
            fs_err::write(out.join("answer.json"), ANSWER.replace(r#""A""#, r#""b\n--index-url x""#))
                .unwrap();
        }),
        ("the answer is a gigabyte", |out, _| {
            fs_err::File::create(out.join("answer.json")).unwrap().file().set_len(1 << 30).unwrap();
        }),
    ];
    for (what, build) in cases {
        let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "")]);
        let backend = Arc::new(Scripted { build, ..Scripted::with(None) });
        let error = bench.build(&backend, &[report(2, 0)]).unwrap_err();
        assert_eq!(error.fault(), Fault::Repository, "{what}: {error}");
        assert!(error.to_string().contains("building the tree"), "{what}: {error}");
    }
}

#[test]
fn a_folder_that_a_build_made_a_link_is_as_pinned_in_the_run_tree() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "x = 1\n")]);
    let build: Hook = |out, tree| {
        well_behaved(out, tree);
        fs_err::remove_file(tree.join("pkg.py")).unwrap();
        symlink("/etc", tree.join("pkg.py")).unwrap();
        fs_err::create_dir_all(tree.join(".git/info")).unwrap();
        symlink("/etc/hostname", tree.join(".git/info/exclude")).unwrap();
    };
    let backend = Arc::new(Scripted { build, ..Scripted::with(None) });
    let built = bench.build(&backend, &[report(2, 0)]).unwrap();
    assert_eq!(fs_err::read_to_string(built.tree.join("pkg.py")).unwrap(), "x = 1\n");
    assert!(built.tree.join(".git/info/exclude").symlink_metadata().unwrap().is_file());
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
    assert!(!built.venv.parent().unwrap().join("steps").exists());
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
fn the_best_plan_is_chosen_and_installed_when_none_is_good() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "")]);
    let built = bench.build(&Scripted::new(None), &[report(5, 1), report(4, 1)]).unwrap();
    assert_eq!(built.plans[0].result, PlanResult::Chosen { collected: 5, collection_errors: 1 });
    assert!(matches!(built.plans[1].result, PlanResult::Insufficient { collected: 4, .. }));
    let lock = fs_err::read_to_string(built.recipe_dir.join("requirements.lock")).unwrap();
    assert!(lock.contains("first==1") && !lock.contains("second"), "{lock}");
}

#[test]
fn a_plan_that_cannot_be_resolved_is_recorded_and_the_next_one_tried() {
    let bench = bench(&[("pyproject.toml", PYPROJECT), ("pkg.py", "")]);
    let backend =
        Scripted::new(Some(("first", "No solution found: see https://me:secret@index.example/simple")));
    let built = bench.build(&backend, &[report(2, 0)]).unwrap();
    assert!(
        matches!(&built.plans[0].result, PlanResult::Failed { output, .. } if output.contains("<index>"))
    );
    assert!(matches!(built.plans[1].result, PlanResult::Chosen { .. }));
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
