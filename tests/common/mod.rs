//! What the end-to-end tests share: a scrubbed gistmill on copies of the trees below `tests/trees/`, and a reader of
//! what it wrote.
//!
//! All tests of one build of the program share its environments (`Bench::new`), so that each is built once; attempts
//! are never shared. `Bench::with_empty_cache` shares nothing.

pub mod dataset;
pub mod hostile;
pub mod labels;
pub mod processes;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use dataset::Dataset;
use nix::sys::signal::{SigHandler, Signal, signal};

/// The program under test.
pub const GISTMILL: &str = env!("CARGO_BIN_EXE_gistmill");
/// Nothing that a test starts takes longer, however busy the machine is.
const LONGEST: Duration = Duration::from_mins(30);
/// When the trees were last changed, as far as the tests are concerned: 15 January 2026.
const TREE_AGE: Duration = Duration::from_hours(491_232);
/// A bench of a test process that was killed, or that kept one to its end, is removed after this time.
const LEFT_BEHIND: Duration = Duration::from_hours(6);
/// Parts of a cache that name all their inputs, so that tests can share them; attempts (`screens`) are not among them.
const SHARED: [&str; 9] =
    ["sources", "git", "environments", "runner", "tools", "index", "wheels", "locales", "clock"];

/// The shared cache of this build of the program; those of earlier builds are removed, and benches that were left behind.
static SHARED_CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
    let built =
        std::fs::metadata(GISTMILL).and_then(|metadata| metadata.modified()).expect("gistmill is built");
    let stamp = built.duration_since(SystemTime::UNIX_EPOCH).expect("built after 1970").as_nanos();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let cache = folder.join(format!("cache-{stamp}"));
    for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let old = || {
            let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
            age.is_ok_and(|age| age.is_ok_and(|age| age > LEFT_BEHIND))
        };
        if name.starts_with("cache-") && entry.path() != cache || name.starts_with("bench-") && old() {
            // Another test process may be at the same: what is left is removed the next time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    for part in SHARED {
        std::fs::create_dir_all(cache.join(part)).expect("the shared cache can be made");
    }
    cache
});

/// The settings and the tree of [`Bench::after_a_build`].
pub const SMALL_SETTINGS: &str = "[screen]\nattempts = 2";
pub const SMALL: &str = "small_and_good";

/// What [`Bench::after_a_build`] gives copies of.
static BUILT: LazyLock<(Bench, Ended)> = LazyLock::new(|| {
    let bench = Bench::with_downloads_only();
    bench.configure(SMALL_SETTINGS, &[SMALL]);
    let ended = bench.build(&[]).with_code(0);
    (bench, ended)
});

/// A place of its own for one test: its trees, configuration, cache and output.
pub struct Bench {
    folder: tempfile::TempDir,
}

const SMALL_TESTS_STAY: &str = "\
[[rule]]
id = \"trivial-trace\"
reason = \"There is little to gather.\"
action = \"flag\"
match = { max_trace_length = 2 }
";

impl Bench {
    /// A bench that shares environments with the others.
    pub fn new() -> Self {
        let bench = Bench::with_empty_cache();
        for part in SHARED {
            let target = SHARED_CACHE.join(part);
            std::os::unix::fs::symlink(target, bench.cache().join(part)).expect("a link can be made");
        }
        bench
    }

    /// A bench that shares what was downloaded, and nothing that was made of it.
    pub fn with_downloads_only() -> Self {
        let bench = Bench::with_empty_cache();
        std::os::unix::fs::symlink(SHARED_CACHE.join("index"), bench.cache().join("index"))
            .expect("a link can be made");
        bench
    }

    /// A bench whose cache is empty.
    pub fn with_empty_cache() -> Self {
        Bench::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// The same in another folder.
    pub fn below(folder: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(folder);
        let bench = Bench { folder: folder.expect("a folder can be made") };
        std::fs::create_dir(bench.cache()).expect("a cache can be made");
        bench
    }

    /// A bench of its own in which [`SMALL`] was built with [`SMALL_SETTINGS`]: for tests of what comes afterwards.
    pub fn after_a_build() -> Self {
        let bench = Bench::with_empty_cache();
        let mut copy = Command::new("cp");
        let copied = copy.arg("-a").arg(BUILT.0.path().join(".")).arg(bench.path()).status();
        assert!(copied.expect("cp starts").success());
        bench
    }

    /// How the build of [`Bench::after_a_build`] ended.
    pub fn first_build() -> &'static Ended {
        &BUILT.1
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }

    /// Copies a tree; its files get a fixed time, because it decides what may be installed.
    pub fn tree(&self, name: &str) -> PathBuf {
        let target = self.path().join("trees").join(name);
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees").join(name), &target);
        target
    }

    /// Copies trees and writes a configuration with one repository `trees/<name>` for each, in this order.
    pub fn configure(&self, settings: &str, trees: &[&str]) {
        let repository = |name: &&str| {
            self.tree(name);
            format!("\n[[repo]]\nslug = \"trees/{name}\"\npath = \"trees/{name}\"\n")
        };
        let repositories: String = trees.iter().map(repository).collect();
        // Mutants take time, and have tests of their own.
        let mutation = if settings.contains("family =") { "" } else { "[mutation]\nmutants = 0\n" };
        self.write_config(&format!(
            "[dataset]\nname = \"trees\"\nversion = \"1\"\n{settings}\n{mutation}{repositories}"
        ));
    }

    pub fn write_config(&self, text: &str) {
        // The tests of the trees are as small as what they show; as tasks they would be dropped.
        let rules = self.path().join("filters");
        std::fs::create_dir_all(&rules).expect("a folder can be made");
        std::fs::write(rules.join("trivial.toml"), SMALL_TESTS_STAY).expect("a rule can be written");
        std::fs::write(self.path().join("repos.toml"), text).expect("the configuration can be written");
    }

    /// gistmill in this bench's folder, with nothing of the caller's environment but how to reach programs and the
    /// package index.
    pub fn gistmill(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(GISTMILL);
        command.args(arguments).current_dir(self.path()).env_clear();
        command.envs(std::env::vars().filter(|(name, _)| is_needed(name)));
        command.env("GISTMILL_CACHE_DIR", self.cache()).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        Running::start(self.gistmill(arguments)).wait()
    }

    /// Builds `repos.toml` into `output/`.
    pub fn build(&self, arguments: &[&str]) -> Ended {
        self.run(&[&["build", "repos.toml"], arguments].concat())
    }

    /// The dataset that [`Bench::build`] writes.
    pub fn dataset(&self) -> Dataset {
        Dataset::at(&self.path().join("output/trees/1"))
    }
}

/// Variables that say where programs lie and how to reach the package index.
fn is_needed(name: &str) -> bool {
    let upper = name.to_uppercase();
    matches!(
        upper.as_str(),
        "PATH"
            | "HOME"
            | "DOCKER_HOST"
            | "PYENV_ROOT"
            | "RUSTUP_HOME"
            | "XDG_DATA_HOME"
            | "CURL_CA_BUNDLE"
            | "REQUESTS_CA_BUNDLE"
    ) || upper.ends_with("_PROXY")
        || ["PIP_", "UV_", "SSL_CERT_"].iter().any(|prefix| upper.starts_with(prefix))
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder can be made");
    for entry in
        std::fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())).flatten()
    {
        let target = to.join(entry.file_name());
        if entry.path().is_symlink() {
            let leads = std::fs::read_link(entry.path()).expect("a link can be read");
            std::os::unix::fs::symlink(leads, &target).expect("a link can be made");
        } else if entry.path().is_dir() {
            if entry.file_name() != "__pycache__" {
                copy(&entry.path(), &target);
            }
        } else {
            std::fs::copy(entry.path(), &target).expect("a file can be copied");
            date(&target);
        }
    }
}

/// Gives a file of a tree the time that all of them have.
pub fn date(path: &Path) {
    let file = std::fs::File::options().append(true).open(path).expect("the file can be opened");
    file.set_modified(SystemTime::UNIX_EPOCH + TREE_AGE).expect("the time can be set");
}

/// A program that ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The same, once it is clear that it ended with this code.
    #[track_caller]
    pub fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// A program at work. It is killed when this is dropped.
pub struct Running {
    child: Child,
    stdout: Stream,
    stderr: Stream,
}

struct Stream {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Stream {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                sink.lock().expect("not poisoned").extend_from_slice(&buffer[..length]);
            }
        });
        Stream { text, reader: Some(reader) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().expect("not poisoned")).into_owned()
    }
}

impl Running {
    /// Starts it as a terminal does: a Ctrl-C or a hang-up that the caller of the tests ignores, as jobs in the background and
    /// `nohup` do, is not ignored here.
    pub fn start(mut command: Command) -> Self {
        use std::os::unix::process::CommandExt;
        let by_default = || {
            // SAFETY: what a signal does may be set between fork and exec; no handler is a function.
            let set = |name| unsafe { signal(name, SigHandler::SigDfl) }.map(drop);
            [Signal::SIGINT, Signal::SIGHUP].into_iter().try_for_each(set).map_err(Into::into)
        };
        // SAFETY: the closure sets what signals do, and nothing else.
        unsafe { command.pre_exec(by_default) };
        let mut child = command.spawn().expect("gistmill starts");
        let stdout = Stream::of(child.stdout.take().expect("stdout is a pipe"));
        let stderr = Stream::of(child.stderr.take().expect("stderr is a pipe"));
        Running { child, stdout, stderr }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended yet.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("can be waited for").is_none()
    }

    /// Waits until `text` appears on stderr.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + LONGEST;
        while !self.stderr.so_far().contains(text) {
            let ended = self.child.try_wait().expect("can be waited for");
            let shown = self.stderr.so_far();
            assert!(ended.is_none() || shown.contains(text), "ended before `{text}` appeared:\n{shown}");
            assert!(Instant::now() < deadline, "`{text}` does not appear:\n{shown}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let id = nix::unistd::Pid::from_raw(i32::try_from(self.id()).expect("a process id"));
        nix::sys::signal::kill(id, signal).expect("the process takes signals");
    }

    #[track_caller]
    pub fn wait(self) -> Ended {
        self.wait_at_most(LONGEST)
    }

    #[track_caller]
    pub fn wait_at_most(mut self, limit: Duration) -> Ended {
        let deadline = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("can be waited for") {
                break status;
            }
            assert!(Instant::now() < deadline, "does not end:\n{}", self.stderr.so_far());
            std::thread::sleep(Duration::from_millis(5));
        };
        for stream in [&mut self.stdout, &mut self.stderr] {
            if let Some(reader) = stream.reader.take() {
                reader.join().expect("the reader ends");
            }
        }
        Ended { status, stdout: self.stdout.so_far(), stderr: self.stderr.so_far() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
