//! The shifted wall clock in real CPython processes: every interpreter of this machine, and at least `python3`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use gistmill::backend::clock;

const PROBE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clock/probe.py");
const PROBE_SOURCE: &str = include_str!("clock/probe.py");
const LIMIT: Duration = Duration::from_mins(5);
/// The first Python that the tests are written for.
const OLDEST: (u32, u32) = (3, 8);

/// Interpreters by version: those of pyenv and `python3`. Only a whole CPython counts.
fn interpreters() -> BTreeMap<(u32, u32), PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let versions = std::fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten().flatten();
    let mut found = BTreeMap::new();
    for python in versions.map(|entry| entry.path().join("bin/python")).chain(["python3".into()]) {
        let program = "import sys, ctypes, multiprocessing, asyncio; assert sys.implementation.name == 'cpython'; \
                       print('%d %d %s' % (sys.version_info[:2] + (sys.executable,)))";
        let Ok(output) = Command::new(&python).args(["-c", program]).output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = text.trim().splitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (Some(major), Some(minor)) = (number(), number()) else { continue };
        if (major, minor) >= OLDEST {
            found.insert((major, minor), words.next().expect("a path").into());
        }
    }
    assert!(!found.is_empty(), "these tests need python3, version 3.8 or later, in PATH");
    found
}

/// The newest interpreter.
fn python() -> PathBuf {
    interpreters().into_values().next_back().expect("never empty")
}

/// A folder with the library, the time at which the run starts, and a file from before.
struct Run {
    folder: tempfile::TempDir,
    start: SystemTime,
    variables: Vec<(String, String)>,
    shift: i64,
}

const OLD_FILE: &str = "old.txt";

impl Run {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let library = folder.path().join(clock::FILE_NAME);
        std::fs::write(&library, clock::library().expect("this machine has one"))
            .expect("the library is written");
        let start = SystemTime::now();
        let old = std::fs::File::create(folder.path().join(OLD_FILE)).expect("a file");
        old.set_modified(start - Duration::new(61, 7)).expect("its time is set");
        let variables = clock::variables(&library, start);
        let shift = i64::try_from(clock::SHIFT.as_secs()).expect("small");
        Run { folder, start, variables, shift }
    }

    /// With another shift than the usual one; 0 leaves the variable out.
    fn shifted_by(seconds: i64) -> Self {
        let mut run = Run::new();
        run.variables.retain(|(name, _)| name != "GISTMILL_CLOCK_SHIFT");
        if seconds != 0 {
            run.variables.push(("GISTMILL_CLOCK_SHIFT".into(), seconds.to_string()));
        }
        Run { shift: seconds, ..run }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// stdout and stderr of a command in the shifted clock; it must succeed within [`LIMIT`].
    fn output(&self, program: &Path, arguments: &[&str]) -> (String, String) {
        let modified = self.path(OLD_FILE).metadata().and_then(|data| data.modified()).expect("it is there");
        let modified = modified.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).envs(self.variables.iter().cloned());
        command.env("EXPECTED_SHIFT", self.shift.to_string()).env("OLD_FILE", self.path(OLD_FILE));
        command.env_remove("PYTHONDONTWRITEBYTECODE").env_remove("PYTHONPYCACHEPREFIX");
        command.env("OLD_MTIME_NS", modified.as_nanos().to_string()).env("TMPDIR", self.folder.path());
        let (success, stdout, stderr) = within_limit(command);
        assert!(success, "{} {arguments:?}\n{stdout}\n{stderr}", program.display());
        (stdout, stderr)
    }

    /// Runs a section of the probe: every check of it must hold.
    fn section(&self, python: &Path, section: &str) -> String {
        let (stdout, stderr) = self.output(python, &[PROBE, section]);
        let held = stdout.lines().filter(|line| line.starts_with("ok ")).count();
        let checks = PROBE_SOURCE.matches(&format!("@check(\"{section}\")")).count();
        assert!(checks > 0 && held == checks, "{}: {held} of {checks}\n{stdout}\n{stderr}", python.display());
        stdout
    }
}

fn within_limit(mut command: Command) -> (bool, String, String) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let read = |mut stream: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).expect("readable");
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let (stdout, stderr) = (read(Box::new(stdout)), read(Box::new(stderr)));
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().expect("killed");
            panic!("{command:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    (status.success(), stdout.join().expect("text"), stderr.join().expect("text"))
}

/// One section in the shifted clock, in every interpreter.
fn everywhere(section: &str) {
    let run = Run::new();
    for python in interpreters().values() {
        run.section(python, section);
    }
}

#[test]
fn the_wall_clock_is_shifted_and_no_other() {
    everywhere("clocks");
}

#[test]
fn waits_take_as_long_as_ever() {
    everywhere("waits");
}

#[test]
fn deadlines_of_the_shifted_clock_are_met() {
    everywhere("deadlines");
}

#[test]
fn file_times_agree_with_the_clock() {
    everywhere("files");
}

#[test]
fn forks_and_children_have_the_same_clock() {
    everywhere("processes");
}

#[test]
fn the_same_with_a_clock_that_is_behind() {
    let run = Run::shifted_by(-i64::try_from(clock::SHIFT.as_secs()).expect("small"));
    for section in ["clocks", "waits", "deadlines", "files", "processes"] {
        run.section(&python(), section);
    }
}

#[test]
fn without_a_shift_nothing_changes() {
    let run = Run::shifted_by(0);
    for section in ["clocks", "waits", "deadlines", "files", "processes"] {
        run.section(&python(), section);
    }
    let run = Run { variables: Vec::new(), ..Run::shifted_by(0) };
    for section in ["clocks", "files"] {
        run.section(&python(), section);
    }
    for nonsense in ["", "soon", "0", "12x"] {
        let mut run = Run::shifted_by(0);
        run.variables.push(("GISTMILL_CLOCK_SHIFT".into(), nonsense.into()));
        run.section(&python(), "clocks");
    }
}

#[test]
fn python_itself_says_so_seen_from_outside() {
    let run = Run::new();
    let program = "import time, datetime; print(time.time(), datetime.datetime.now().timestamp())";
    let outside = |moment: SystemTime| {
        moment.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs_f64() + run.shift as f64
    };
    let before = outside(SystemTime::now());
    let (stdout, _) = run.output(&python(), &["-c", program]);
    let after = outside(SystemTime::now());
    let told: Vec<f64> = stdout.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    assert!(
        told.len() == 2 && told.iter().all(|time| (before..=after).contains(time)),
        "{before} {told:?} {after}"
    );
}

#[test]
fn without_a_start_the_process_itself_is_the_start() {
    let mut run = Run::new();
    run.variables.retain(|(name, _)| name != "GISTMILL_CLOCK_START");
    let program = "import os, time; open('new', 'w').close(); print(time.time() - os.stat('new').st_mtime)";
    let (stdout, _) = run.output(&python(), &["-c", program]);
    let age: f64 = stdout.trim().parse().expect("a number");
    assert!((-0.02..60.0).contains(&age), "{age}");
    std::thread::sleep(Duration::from_millis(50));
    let (stdout, _) = run.output(&python(), &["-c", "import os; print(os.stat('new').st_mtime_ns)"]);
    let modified = run.path("new").metadata().and_then(|data| data.modified()).expect("it is there");
    let modified = modified.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_nanos();
    assert_eq!(stdout.trim(), modified.to_string(), "a file from before the process keeps its time");
}

#[test]
fn byte_code_from_before_is_used_and_that_of_the_run_too() {
    for python in interpreters().values() {
        let run = Run::new();
        let source = run.path("earlier.py");
        std::fs::write(&source, "value = 1\n").expect("written");
        let modified = run.start - Duration::from_hours(1);
        std::fs::File::options()
            .append(true)
            .open(&source)
            .and_then(|file| file.set_modified(modified))
            .expect("set");
        let mut plain = Command::new(python);
        plain.args(["-c", "import earlier"]).current_dir(run.folder.path());
        plain.env_remove("PYTHONDONTWRITEBYTECODE").env_remove("PYTHONPYCACHEPREFIX");
        assert!(within_limit(plain).0, "{}", python.display());
        let cached = only_file_in(&run.path("__pycache__"));
        let before = std::fs::metadata(&cached).and_then(|data| data.modified()).expect("it is there");

        let program = "open('later.py', 'w').write('value = 2\\n'); import earlier, later";
        run.output(python, &["-c", program]);
        let (_, messages) = run.output(python, &["-v", "-c", "import earlier, later"]);
        for name in ["earlier", "later"] {
            let hit = messages
                .lines()
                .any(|line| line.contains("matches") && line.ends_with(&format!("{name}.py")));
            assert!(hit, "{} compiled {name} again\n{messages}", python.display());
        }
        let after = std::fs::metadata(&cached).and_then(|data| data.modified()).expect("it is there");
        assert_eq!(before, after, "{}", python.display());
    }
}

fn only_file_in(folder: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn reading_the_clock_stays_cheap() {
    let run = Run::new();
    let nanos = |run: &Run| -> f64 {
        let told = run.section(&python(), "cost");
        println!("{:?}: {told}", run.variables);
        let word =
            told.split_whitespace().find_map(|word| word.strip_prefix("time=")).expect("a figure").to_owned();
        word.parse().expect("a number")
    };
    let plain = Run { variables: Vec::new(), ..Run::shifted_by(0) };
    // No system call: those take several times as long. A neighbour on the machine may disturb one of the two, but not
    // always.
    assert!((0..5).any(|_| nanos(&run) < 3.0 * nanos(&plain) + 50.0), "reading the clock has become dear");
}
