//! The workshop of one environment: resolving, making virtual environments, calling build hooks; each step one job
//! in the sandbox.
//!
//! The rule that every step keeps: a job that reaches the network sees nothing of the repository, and a job that runs
//! code of the repository reaches no network.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::lock::Lock;
use super::project::BuildSystem;
use super::python::Interpreter;
use super::tools::Tools;
use super::uv::{self, Compile, Secrets, Settings, Uv};
use crate::backend::again;
use crate::backend::{Backend, Finished, Job, JobLimits, Mount, Network};
use crate::error::{Error, Result};

/// The script that calls a tree's build hooks.
const HOOKS: &str = include_str!("hooks.py");

// Where things lie inside, beside the places of the backend.
const UV: &str = "/opt/uv/uv";
const UV_CACHE: &str = "/opt/uv/cache";
const WORK: &str = "/opt/work";
const BUILD: &str = "/opt/build";
const CERTIFICATES: &str = "/opt/certificates";

const RESOLVE_LIMIT: Duration = Duration::from_mins(15);
const INSTALL_LIMIT: Duration = Duration::from_hours(1);
const HOOK_LIMIT: Duration = Duration::from_hours(1);
const SHORT_LIMIT: Duration = Duration::from_mins(10);

/// Why a step did not work: this rung's trouble, or everybody's.
#[derive(Debug)]
pub enum Trouble {
    /// Another rung may do better.
    Step(Failure),
    /// No rung can do better.
    Stop(Error),
}

/// A step that failed, and the lines that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub stage: String,
    pub output: String,
    pub hint: &'static str,
    /// Distributions that the index does not have.
    pub unknown: Vec<String>,
}

impl Failure {
    /// As the error of the repository.
    pub fn into_error(self) -> Error {
        Error::repository(format!("the environment cannot be built: {} failed", self.stage))
            .with_detail(self.output)
            .with_hint(self.hint)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Stop(error)
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Trouble::Stop(error.into())
    }
}

type Attempt<T> = Result<T, Trouble>;

/// The wheel that stands for the tree, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TreeWheel {
    /// `editable`: the backend's own; `path`: metadata of the backend and one path file.
    pub method: String,
    /// File name below the work folder's `wheel/`.
    pub wheel: String,
    pub name: String,
    pub version: String,
    pub extras: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Required {
    requires: Vec<String>,
}

/// What a resolution is made of.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub requirements: Vec<String>,
    pub constraints: Vec<String>,
    /// Extras of the tree's own distribution.
    pub extras: Vec<String>,
}

/// Everything that the steps share.
pub struct Workshop<'a> {
    pub backend: &'a dyn Backend,
    pub tools: &'a Tools,
    pub uv: Uv,
    pub python: &'a Interpreter,
    /// The environment's folder on the host; `venv/`, `tree/` and `work/` lie in it.
    pub folder: PathBuf,
    pub exclude_newer: String,
    /// Variables for the build hooks, e.g. a version that git would have told.
    pub build_variables: BTreeMap<String, String>,
}

impl Workshop<'_> {
    /// Makes the folders of the steps.
    ///
    /// # Errors
    /// IO errors.
    pub fn prepare(&self) -> Result<()> {
        for name in ["venv", "work", "work/tmp", "work/build", "work/wheel", "work/home"] {
            fs_err::create_dir_all(self.folder.join(name))?;
        }
        fs_err::write(self.work("hooks.py"), HOOKS)?;
        Ok(())
    }

    /// Removes what only the steps needed.
    ///
    /// # Errors
    /// IO errors.
    pub fn clean_up(&self) -> Result<()> {
        fs_err::remove_dir_all(self.folder.join("work"))?;
        Ok(())
    }

    fn work(&self, name: &str) -> PathBuf {
        self.folder.join("work").join(name)
    }

    /// Resolves and locks.
    pub fn resolve(&self, stage: &str, wanted: &Wanted, own: Option<&TreeWheel>) -> Attempt<Lock> {
        let mut input = wanted.requirements.clone();
        let mut overrides = None;
        if let Some(own) = own {
            let extras = if wanted.extras.is_empty() {
                String::new()
            } else {
                format!("[{}]", wanted.extras.join(","))
            };
            let tree = format!("{}{extras} @ file://{WORK}/wheel/{}", own.name, own.wheel);
            // What depends on the tree's distribution gets the tree, whatever version it asks for.
            fs_err::write(self.work("overrides.txt"), format!("{tree}\n"))?;
            overrides = Some(format!("{WORK}/overrides.txt"));
            input.push(tree);
        }
        fs_err::write(self.work("input.in"), input.join("\n") + "\n")?;
        fs_err::write(self.work("constraints.txt"), wanted.constraints.join("\n") + "\n")?;
        let output = self.work("output.lock");
        if output.exists() {
            fs_err::remove_file(&output)?;
        }
        let (input, constraints) = (format!("{WORK}/input.in"), format!("{WORK}/constraints.txt"));
        let compile = Compile {
            python: &self.python.executable,
            input: &input,
            constraints: Some(&constraints).filter(|_| !wanted.constraints.is_empty()).map(String::as_str),
            overrides: overrides.as_deref(),
            output: &format!("{WORK}/output.lock"),
            exclude_newer: &self.exclude_newer,
            without: own.map(|own| own.name.as_str()),
        };
        let job = self.uv_job(uv::compile_arguments(&compile), Network::Host, Vec::new());
        self.run(stage, &job, RESOLVE_LIMIT)?;
        Ok(Lock::parse(&fs_err::read_to_string(&output)?))
    }

    /// Makes an empty virtual environment on the host folder that the job sees as `inside`.
    pub fn create_venv(&self, host: &Path, inside: &Path) -> Attempt<()> {
        if host.exists() {
            fs_err::remove_dir_all(host)?;
        }
        fs_err::create_dir_all(host)?;
        let python = self.python.executable.to_string_lossy().into_owned();
        let argv = vec![
            python,
            "-I".into(),
            "-m".into(),
            "venv".into(),
            "--without-pip".into(),
            inside.to_string_lossy().into(),
        ];
        let mounts = vec![Mount::Writable { host: host.to_owned(), inside: inside.to_owned() }];
        self.run("creating the virtual environment", &self.job(argv, Network::Off, mounts), SHORT_LIMIT)
            .map(drop)
    }

    /// Makes a virtual environment hold exactly what a lock says.
    pub fn sync(&self, stage: &str, lock: &Lock, host: &Path, inside: &Path) -> Attempt<()> {
        let venv = || vec![Mount::Writable { host: host.to_owned(), inside: inside.to_owned() }];
        let (hashed, direct) = (lock.hashed(), lock.direct());
        if !hashed.is_empty() {
            fs_err::write(self.work("sync.lock"), hashed)?;
            let arguments = uv::sync_arguments(inside, &format!("{WORK}/sync.lock"), &self.exclude_newer);
            self.run(stage, &self.uv_job(arguments, Network::Host, venv()), INSTALL_LIMIT)?;
        }
        if !direct.is_empty() {
            fs_err::write(self.work("direct.lock"), direct)?;
            let file = format!("{WORK}/direct.lock");
            let arguments = uv::install_arguments(
                inside,
                &["--exclude-newer", &self.exclude_newer, "--requirements", &file],
            );
            self.run(stage, &self.uv_job(arguments, Network::Host, venv()), INSTALL_LIMIT)?;
        }
        Ok(())
    }

    /// Makes the build environment of the tree and the wheel that stands for it. Gives the build lock too.
    pub fn build_tree(&self, build: &BuildSystem, source_root: &Path) -> Attempt<(TreeWheel, Lock)> {
        let host = self.work("build");
        self.create_venv(&host, Path::new(BUILD))?;
        let mut wanted = Wanted { requirements: build.requires.clone(), ..Wanted::default() };
        let mut lock = self.build_requirements(&wanted)?;
        let spec = serde_json::json!({
            "backend": build.backend,
            "backend_path": build.backend_path,
            "root": self.backend.places().root,
            "source_root": source_root,
            "out": format!("{WORK}/wheel"),
        });
        fs_err::write(self.work("spec.json"), spec.to_string())?;
        let required: Required = self.hook("asking the tree for its build requirements", "requires")?;
        if !required.requires.is_empty() {
            wanted.requirements.extend(required.requires);
            lock = self.build_requirements(&wanted)?;
        }
        Ok((self.hook("building the tree", "build")?, lock))
    }

    fn build_requirements(&self, wanted: &Wanted) -> Attempt<Lock> {
        if wanted.requirements.is_empty() {
            return Ok(Lock::default());
        }
        let lock = self.resolve("resolving the build requirements", wanted, None)?;
        self.sync("installing the build requirements", &lock, &self.work("build"), Path::new(BUILD))?;
        Ok(lock)
    }

    fn hook<T: serde::de::DeserializeOwned>(&self, stage: &str, action: &str) -> Attempt<T> {
        let answer = self.work("answer.json");
        if answer.exists() {
            fs_err::remove_file(&answer)?;
        }
        let argv = [&format!("{BUILD}/bin/python"), &format!("{WORK}/hooks.py"), action];
        let files = [format!("{WORK}/spec.json"), format!("{WORK}/answer.json")];
        let argv = argv.into_iter().map(str::to_owned).chain(files).collect();
        let root = &self.backend.places().root;
        let mounts = vec![
            Mount::Writable { host: self.work("build"), inside: BUILD.into() },
            Mount::Writable { host: self.folder.join("tree"), inside: root.clone() },
        ];
        let mut job = self.job(argv, Network::Off, mounts);
        job.cwd.clone_from(root);
        job.env.insert("PATH".to_owned(), format!("{BUILD}/bin:{SYSTEM_PATH}"));
        job.env.extend(self.build_variables.clone());
        self.run(stage, &job, HOOK_LIMIT)?;
        let text = fs_err::read(&answer)?;
        serde_json::from_slice(&text).map_err(|error| {
            Error::harness(format!("{stage}: the answer cannot be read")).with_source(error).into()
        })
    }

    /// Installs the wheel of the tree, offline and without dependencies.
    pub fn install_wheel(&self, own: &TreeWheel) -> Attempt<()> {
        let inside = &self.backend.places().venv;
        let wheel = format!("{WORK}/wheel/{}", own.wheel);
        let arguments = uv::install_arguments(inside, &["--offline", "--no-index", "--no-cache", &wheel]);
        let mounts = vec![Mount::Writable { host: self.folder.join("venv"), inside: inside.clone() }];
        self.run("installing the tree", &self.uv_job(arguments, Network::Off, mounts), INSTALL_LIMIT)
            .map(drop)
    }

    /// Compiles byte code of environment and tree, under the paths that runs see. Files that do not compile are the
    /// tests' business.
    pub fn compile_bytecode(&self) -> Attempt<()> {
        let places = self.backend.places();
        let python = places.venv.join("bin/python").to_string_lossy().into_owned();
        let mut argv: Vec<String> =
            [&python, "-I", "-m", "compileall", "-qq", "-j", "0"].map(str::to_owned).into();
        argv.extend(
            [places.venv.join("lib"), places.root.clone()].map(|path| path.to_string_lossy().into_owned()),
        );
        let mounts = vec![
            Mount::Writable { host: self.folder.join("venv"), inside: places.venv.clone() },
            Mount::Writable { host: self.folder.join("tree"), inside: places.root.clone() },
        ];
        let mut job = self.job(argv, Network::Off, mounts);
        job.env.remove("PYTHONDONTWRITEBYTECODE");
        let finished = again::run(self.backend, &job, SHORT_LIMIT)?;
        if finished.timed_out {
            return Err(Error::harness("compiling byte code took too long").into());
        }
        // Exit code 1 means that some file does not compile; a traceback means that compiling itself broke.
        if finished.stderr.contains("Traceback (most recent call last)") {
            let detail = uv::tail(&finished.stderr, &Secrets::default());
            return Err(Error::harness("compiling byte code broke off").with_detail(detail).into());
        }
        Ok(())
    }

    fn uv_job(&self, arguments: Vec<String>, network: Network, mut mounts: Vec<Mount>) -> Job {
        mounts.push(Mount::ReadOnly { host: self.uv.executable.clone(), inside: UV.into() });
        mounts.push(Mount::Writable { host: self.tools.uv_cache.clone(), inside: UV_CACHE.into() });
        let argv = std::iter::once(UV.to_owned()).chain(arguments).collect();
        let mut job = self.job(argv, network, mounts);
        for (name, value) in [
            ("UV_CACHE_DIR", UV_CACHE),
            // A copy keeps the environment whole when the cache is cleaned.
            ("UV_LINK_MODE", "copy"),
            ("UV_NO_CONFIG", "1"),
            ("UV_NO_PROGRESS", "1"),
            ("UV_PYTHON_DOWNLOADS", "never"),
        ] {
            job.env.insert(name.to_owned(), value.to_owned());
        }
        if network == Network::Host {
            let variables = &self.tools.variables;
            let (named, files) = if self.backend.shows_host_system() {
                let place = |file: PathBuf| (file.canonicalize().unwrap_or_else(|_| file.clone()), file);
                (variables.clone(), uv::certificate_files(variables).into_iter().map(place).collect())
            } else {
                uv::carried(variables, Path::new(CERTIFICATES))
            };
            let settings = Settings::of(&named);
            job.env.extend(settings.variables);
            if !settings.file.is_empty() {
                configure(&mut job, settings.file);
            }
            job.mounts.extend(files.into_iter().map(|(host, inside)| Mount::ReadOnly { host, inside }));
        }
        job
    }

    /// A job that sees the interpreter, a home and temporary folder of its own, and these mounts.
    fn job(&self, argv: Vec<String>, network: Network, more: Vec<Mount>) -> Job {
        let places = self.backend.places();
        let mut mounts = vec![
            Mount::Writable { host: self.work("tmp"), inside: places.tmp.clone() },
            Mount::Writable { host: self.work("home"), inside: places.home.clone() },
            Mount::Tmpfs { inside: "/dev/shm".into(), bytes: SHARED_MEMORY },
            Mount::Writable { host: self.folder.join("work"), inside: WORK.into() },
        ];
        if self.python.prefix != Path::new("/usr") {
            mounts.push(Mount::ReadOnly {
                host: self.python.prefix.clone(),
                inside: self.python.prefix.clone(),
            });
        }
        mounts.extend(more);
        let env = [
            ("HOME", places.home.to_string_lossy().into_owned()),
            ("TMPDIR", places.tmp.to_string_lossy().into_owned()),
            ("PATH", SYSTEM_PATH.to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("NO_COLOR", "1".to_owned()),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ];
        Job {
            argv,
            env: env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            cwd: WORK.into(),
            mounts,
            network,
            may_mount: false,
            limits: JobLimits::default(),
            channel: false,
            service: None,
        }
    }

    /// A full disk is nobody's but the machine's: no other rung would do better.
    fn disk_trouble(&self, stage: &str, text: &str) -> Option<Error> {
        let full = text.contains("No space left on device") || text.contains("Disk quota exceeded");
        full.then(|| {
            if !self.backend.shows_host_system() {
                return Error::machine(format!("{stage}: the engine's disk is full")).with_hint(
                    "free space there (`gistmill clean`, `docker system prune`) and run the same command again",
                );
            }
            Error::machine(format!("{stage}: the disk that holds {} is full", self.folder.display()))
                .with_hint("free some disk space, or name another place with --cache-dir, and run the same command again")
        })
    }

    fn run(&self, stage: &str, job: &Job, limit: Duration) -> Attempt<Finished> {
        let finished = again::run(self.backend, job, limit)?;
        if finished.success() {
            return Ok(finished);
        }
        let text = format!("{}\n{}", finished.stdout, finished.stderr);
        let mut output = uv::tail(&text, &Secrets::of(&self.tools.variables));
        if finished.timed_out {
            output = format!("{output}\ntook longer than {} minutes", limit.as_secs() / 60);
        }
        if let Some(trouble) = self.disk_trouble(stage, &text) {
            return Err(Trouble::Stop(trouble.with_detail(output)));
        }
        let hint = if job.network == Network::Host { uv::hint(&text) } else { HOOK_HINT };
        let failure =
            Failure { stage: stage.to_owned(), output, hint, unknown: uv::unknown_distributions(&text) };
        if job.network == Network::Host && uv::is_network_trouble(&text) {
            return Err(Trouble::Stop(failure.into_error()));
        }
        Err(Trouble::Step(failure))
    }
}

/// Has uv read a configuration that is never on a disk, nor in an argument, nor in a variable that uv would expand.
fn configure(job: &mut Job, file: String) {
    let script = format!(
        "umask 077; printf %s \"${HANDED_OVER}\" > {UV_CONFIG} && unset {HANDED_OVER} && exec \"$@\""
    );
    let argv = std::mem::take(&mut job.argv);
    job.argv = ["/bin/sh", "-c", &script, "sh"].map(str::to_owned).into_iter().chain(argv).collect();
    job.env.remove("UV_NO_CONFIG");
    job.env.insert("UV_CONFIG_FILE".to_owned(), UV_CONFIG.to_owned());
    job.env.insert(HANDED_OVER.to_owned(), file);
}

/// In the shared memory of the job, which goes with it.
const UV_CONFIG: &str = "/dev/shm/uv.toml";
/// The variable that carries the configuration into the sandbox.
const HANDED_OVER: &str = "uv_configuration";

/// Builds and the byte-code compiler use semaphores, which lie in shared memory.
const SHARED_MEMORY: u64 = 256 << 20;
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const HOOK_HINT: &str =
    "the tree's own build failed offline in the sandbox; see its output, and try another `python`";
