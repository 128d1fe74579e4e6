//! Real environments of small trees, built in the real sandbox from the real package index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gistmill::backend::local::LocalBackend;
use gistmill::backend::{Backend, Finished, Job, Mount};
use gistmill::config::{BackendKind, Repo, SourceSpec};
use gistmill::environment::{self, Candidate, GateReport, Tools};
use gistmill::error::{Fault, Result};
use gistmill::record::environment::Built;
use gistmill::record::id::{RepoSlug, hash_parts};
use gistmill::record::source::{NearestTag, Origin, Pinned, TagSearch};
use gistmill::store::Cache;

const PINNED_AT: &str = "2026-01-02T03:04:05Z";

struct Bench {
    scratch: tempfile::TempDir,
    cache: Cache,
    backend: Arc<dyn Backend>,
    tools: Tools,
}

impl Bench {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let cache = Cache::open(&scratch.path().join("cache")).unwrap();
        let backend = Arc::new(LocalBackend::new(Path::new(env!("CARGO_BIN_EXE_gistmill"))).unwrap());
        let tools = Tools::find(&cache).unwrap();
        Bench { scratch, cache, backend, tools }
    }

    fn build(&self, files: &[(&str, &str)]) -> Result<Built> {
        let text: Vec<&str> = files.iter().flat_map(|(name, text)| [*name, *text]).collect();
        let hash = hash_parts(&text);
        let tree = self.scratch.path().join(&hash);
        for (name, text) in files {
            let path = tree.join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let slug = RepoSlug::new("o/a").unwrap();
        let pinned = Pinned {
            slug: slug.clone(),
            origin: Origin::Path { name: "a".into(), uncommitted_changes: false },
            commit: "c".repeat(40),
            pinned_at: PINNED_AT.into(),
            tree,
            tree_sha256: hash,
            license: None,
            license_source: None,
            tag: TagSearch::Found(NearestTag { name: "v4.5".into(), distance: 0 }),
            notes: Vec::new(),
        };
        let repo = Repo {
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
            domain: None,
            targets: Vec::new(),
            scopes: Vec::new(),
            large: false,
            outside: None,
            pair: None,
            entries: gistmill::config::Entries::default(),
            is_scripted: false,
            locked: None,
        };
        let gate = |candidate: &Candidate<'_>| {
            let finished = self.run(
                candidate.venv,
                candidate.tree,
                candidate.python_prefix,
                &["-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"],
            );
            let missing = finished.stdout.split("No module named '").skip(1);
            Ok(GateReport {
                collected: finished.stdout.matches("::").count(),
                collection_errors: usize::from(!finished.success()),
                missing_modules: missing
                    .filter_map(|rest| rest.split('\'').next().map(str::to_owned))
                    .collect(),
                ..GateReport::default()
            })
        };
        environment::build(&pinned, &repo, &self.cache, &self.backend, &self.tools, &gate, &|_| {})
    }

    fn run(&self, venv: &Path, tree: &Path, prefix: &Path, arguments: &[&str]) -> Finished {
        let places = self.backend.places();
        let read_only =
            |host: &Path, inside: &Path| Mount::ReadOnly { host: host.into(), inside: inside.into() };
        let mut argv = vec![places.venv.join("bin/python").to_string_lossy().into_owned()];
        argv.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let mut mounts = vec![
            Mount::Tmpfs { inside: places.tmp.clone(), bytes: 1 << 24 },
            read_only(venv, &places.venv),
            read_only(tree, &places.root),
        ];
        if prefix != Path::new("/usr") {
            mounts.push(read_only(prefix, prefix));
        }
        let job = Job { cwd: places.root.clone(), mounts, ..Job::small(argv) };
        self.backend.run(&job, Duration::from_mins(5)).unwrap()
    }

    /// What a Python expression prints in a built environment.
    fn ask(&self, built: &Built, expression: &str) -> String {
        let code = format!("import a, importlib.metadata, sys; print({expression})");
        let finished = self.run(&built.venv, &built.tree, &built.python_prefix, &["-c", &code]);
        assert!(finished.success(), "{finished:?}");
        finished.stdout.trim().to_owned()
    }
}

fn byte_code(root: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(root).into_iter().map(|entry| entry.unwrap().into_path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "pyc")).collect()
}

/// A `setup.py` that tells on stderr what it can reach, with a version from git and a missing test dependency.
const SETUP: &str = "import os, socket, sys\nfrom setuptools import setup\n\
    assert not os.path.exists(os.environ['HOME'] + '/.ssh'), 'home'\n\
    assert not any('INDEX' in name or 'PROXY' in name.upper() for name in os.environ), 'environment'\n\
    s = socket.socket(); s.settimeout(3)\n\
    try:\n    s.connect(('1.1.1.1', 53))\nexcept OSError:\n    pass\nelse:\n    raise SystemExit('network')\n\
    setup(name='a', py_modules=['a'], install_requires=['six'], use_scm_version=True)\n";
const SCM: &str = "[build-system]\nrequires = ['setuptools>=64', 'setuptools_scm']\nbuild-backend = 'setuptools.build_meta'\n";
const TEST: &str = "import a, six, iniconfig, yaml\ndef test_a():\n    assert a.X == 1\n";

#[test]
fn a_tree_runs_from_where_it_lies_with_what_collection_missed_and_nothing_newer_than_the_pin() {
    let bench = Bench::new();
    let files = [("pyproject.toml", SCM), ("setup.py", SETUP), ("a.py", "X = 1\n"), ("test_a.py", TEST)];
    let built = bench.build(&files).unwrap();
    assert_eq!(built.plans.len(), 2, "{:?}", built.plans);
    assert!(built.plans[1].requirements.contains(&"PyYAML".to_owned()));
    assert_eq!(bench.ask(&built, "a.__file__"), "/testbed/a.py");
    assert_eq!(bench.ask(&built, "importlib.metadata.version('a')"), "4.5");
    assert_eq!(bench.ask(&built, "a.__cached__ and sys.prefix"), "/opt/venv");
    let recipe = fs_err::read_to_string(built.recipe_dir.join("recipe.json")).unwrap();
    assert!(
        recipe.contains(r#""tree_installed": "editable""#),
        "the finder of setuptools is taken: {recipe}"
    );
    assert!(byte_code(&built.tree).iter().any(|path| path.to_string_lossy().contains("__pycache__/a.")));
    assert!(byte_code(&built.venv).len() > 100);
    let lock = fs_err::read_to_string(built.recipe_dir.join("requirements.lock")).unwrap();
    assert!(lock.contains("pytest==9.0.2 "), "the newest on the day of the pin: {lock}");
    let repository = git2::Repository::open(&built.tree).unwrap();
    assert!(repository.statuses(None).unwrap().iter().all(|entry| entry.status().is_ignored()));

    assert_eq!(bench.build(&files).unwrap(), built);

    let elsewhere = Bench::new();
    let again = elsewhere.build(&files).unwrap();
    assert_eq!((again.key, again.lock_sha256), (built.key, built.lock_sha256));
}

/// A backend in the tree itself that knows nothing of editable installs.
const OLD_BACKEND: &str = "import os\ndef prepare_metadata_for_build_wheel(folder, settings=None):\n\
    \x20   os.mkdir(folder + '/a-1.dist-info')\n\
    \x20   open(folder + '/a-1.dist-info/METADATA', 'w').write('Metadata-Version: 2.1\\nName: a\\nVersion: 1\\nRequires-Dist: six\\n')\n\
    \x20   return 'a-1.dist-info'\ndef build_wheel(folder, settings=None, metadata=None):\n    raise SystemExit('never')\n";

#[test]
fn a_backend_without_editable_wheels_puts_the_source_root_on_the_path() {
    let bench = Bench::new();
    let pyproject = "[build-system]\nrequires = []\nbuild-backend = 'old'\nbackend-path = ['tools']\n";
    let test = "import a, six\ndef test_a():\n    pass\n";
    let files = [
        ("pyproject.toml", pyproject),
        ("tools/old.py", OLD_BACKEND),
        ("src/a/__init__.py", ""),
        ("tests/test_a.py", test),
    ];
    let built = bench.build(&files).unwrap();
    assert_eq!(bench.ask(&built, "a.__file__"), "/testbed/src/a/__init__.py");
    assert_eq!(bench.ask(&built, "importlib.metadata.version('a')"), "1");
    assert!(built.notes.iter().any(|note| note.contains("no editable wheels")));
}

#[test]
fn install_errors_say_the_stage_and_what_the_build_printed() {
    let bench = Bench::new();
    let broken =
        bench.build(&[("setup.py", "raise SystemExit('no compiler today')\n"), ("a.py", "")]).unwrap_err();
    assert_eq!(broken.fault(), Fault::Repository);
    assert!(broken.detail().unwrap().contains("no compiler today"), "{:?}", broken.detail());
    let unknown = "[dependency-groups]\ntest = ['no-such-distribution-of-gistmill-tests']\n";
    let built = bench.build(&[("pyproject.toml", unknown), ("test_b.py", "def test_b(): pass\n")]).unwrap();
    assert!(format!("{:?}", built.plans[0].result).contains("no-such-distribution"), "{:?}", built.plans);
    assert_eq!(built.plans[1].requirements, [".", "pytest"]);
}
