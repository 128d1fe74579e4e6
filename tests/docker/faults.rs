//! What breaks in the middle, and what comes out all the same.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use crate::common::dataset::text;
use crate::common::{Bench, Running};
use crate::docker;

const SETTINGS: &str = "[screen]\nattempts = 2";
const TREE: &str = "slow_enough_to_interrupt";
/// What two builds must agree in, to the last byte.
const SAME: [&str; 4] = ["instances.jsonl", "instances.parquet", "cases.parquet", "traces.parquet"];

fn bench(of_docker: &str) -> Bench {
    let bench = Bench::new();
    crate::in_containers(&bench, SETTINGS, of_docker, &[TREE]);
    bench
}

fn files(bench: &Bench) -> BTreeMap<&'static str, Vec<u8>> {
    SAME.iter().map(|name| (*name, bench.dataset().bytes(name))).collect()
}

/// What a build that nothing disturbs gives.
static UNDISTURBED: LazyLock<BTreeMap<&'static str, Vec<u8>>> = LazyLock::new(|| {
    let bench = bench("");
    bench.build(&[]).with_code(0);
    assert_eq!(bench.dataset().instances().len(), 9);
    files(&bench)
});

#[track_caller]
fn assert_undisturbed(bench: &Bench) {
    for (name, bytes) in files(bench) {
        assert!(bytes == UNDISTURBED[name], "{name} differs");
    }
    assert_eq!(docker(&["ps", "--all", "--quiet", "--filter", "label=gistmill"]), "");
}

fn running() -> Vec<String> {
    let ids = docker(&["ps", "--quiet", "--filter", "label=gistmill=test"]);
    ids.lines().map(str::to_owned).collect()
}

/// Whatever the command says: what it is about may have ended by itself in the meantime.
fn try_docker(arguments: &[&str]) -> bool {
    Command::new("docker").args(arguments).output().expect("docker is on PATH").status.success()
}

/// Does something to the containers that have been at work for a moment, again until it did to one.
#[track_caller]
fn strike(build: &mut Running, act: impl Fn(&str) -> bool) {
    while build.is_alive() {
        let ids = running();
        std::thread::sleep(Duration::from_millis(300));
        if ids.iter().filter(|id| act(id)).count() > 0 {
            return;
        }
    }
    panic!("the build ended before a container was at work");
}

/// Events of gistmill's containers since then.
fn events(name: &str, since: SystemTime) -> String {
    let seconds = |time: SystemTime| {
        time.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs().to_string()
    };
    let (since, until) = (seconds(since), seconds(SystemTime::now() + Duration::from_secs(1)));
    let filter = format!("event={name}");
    docker(&[
        "events",
        "--since",
        &since,
        "--until",
        &until,
        "--filter",
        &filter,
        "--filter",
        "label=gistmill",
    ])
}

pub fn a_killed_container_changes_nothing() {
    let _ = &*UNDISTURBED;
    let bench = bench("");
    let mut build = Running::start(bench.gistmill(&["build", "repos.toml"]));
    for stage in ["screen (", "trace", "cold runs"] {
        build.wait_for(stage);
        strike(&mut build, |id| try_docker(&["kill", id]));
    }
    build.wait().with_code(0);
    assert_undisturbed(&bench);
}

/// Fills the memory that a container may use, from outside: nothing of the engine's can be run inside, where its own
/// root is gone. The kernel is to end the container's first process, and with it the container. False when it ended
/// before.
fn fill(id: &str) -> bool {
    let inspect = Command::new("docker").args(["inspect", "--format", "{{.State.Pid}}", id]).output();
    let pid = String::from_utf8_lossy(&inspect.expect("docker is on PATH").stdout).trim().to_owned();
    let Some(group) = memory_group(&pid) else { return false };
    if std::fs::write(format!("/proc/{pid}/oom_score_adj"), "1000").is_err() {
        return false;
    }
    let hog = "import sys, time; sys.stdin.read(1); held = bytearray(b'x') * (600 << 20); time.sleep(5)";
    let mut hog =
        Command::new("python3").args(["-c", hog]).stdin(Stdio::piped()).spawn().expect("python3 is on PATH");
    let joined = std::fs::write(group, hog.id().to_string()).is_ok();
    if joined {
        hog.stdin.take().expect("stdin is a pipe").write_all(b"1").expect("it reads");
    } else {
        hog.kill().expect("it runs");
    }
    hog.wait().expect("it ends");
    joined
}

/// The file that takes processes into the group which bounds this one's memory.
fn memory_group(pid: &str) -> Option<PathBuf> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let of =
        |kind: &str| groups.lines().find_map(|line| line.split_once(kind).map(|(_, path)| path.to_owned()));
    // Version 1 has a tree for each kind, version 2 one for all.
    let path = match of(":memory:") {
        Some(path) => format!("/sys/fs/cgroup/memory{path}/cgroup.procs"),
        None => format!("/sys/fs/cgroup{}/cgroup.procs", of("0::")?),
    };
    Some(PathBuf::from(path))
}

pub fn a_container_out_of_memory_changes_nothing() {
    let _ = &*UNDISTURBED;
    let bench = bench("memory = \"512MiB\"\n");
    let started = SystemTime::now();
    let mut build = Running::start(bench.gistmill(&["build", "repos.toml"]));
    for stage in ["screen (", "trace", "cold runs"] {
        build.wait_for(stage);
        let filled = RefCell::new(Vec::new());
        strike(&mut build, |id| {
            fill(id) && {
                filled.borrow_mut().push(id.to_owned());
                true
            }
        });
        let deadline = Instant::now() + Duration::from_mins(2);
        loop {
            let (ran_out, died) = (events("oom", started), events("die", started));
            let ended = |id: &String| ran_out.contains(id.as_str()) && died.contains(id.as_str());
            if filled.borrow().iter().any(ended) {
                break;
            }
            assert!(Instant::now() < deadline, "{stage}: {filled:?}\n{ran_out}\n{died}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    build.wait().with_code(0);
    assert_undisturbed(&bench);
}

pub fn an_image_that_is_removed_is_made_again() {
    let _ = &*UNDISTURBED;
    let bench = bench("");
    let mut build = Running::start(bench.gistmill(&["build", "repos.toml"]));
    build.wait_for("world everything");
    let tag = docker(&["images", "--filter", "label=gistmill=image", "--format", "{{.Repository}}:{{.Tag}}"]);
    let tag = tag.lines().find(|tag| tag.contains(TREE)).expect("it was made").to_owned();
    docker(&["rmi", "--force", "--no-prune", &tag]);
    build.wait().with_code(0);
    assert_undisturbed(&bench);
    // Between two builds as well.
    assert_eq!(text(&bench.dataset().instances()[0]["image"]), tag);
    docker(&["rmi", "--force", &tag]);
    bench.build(&[]).with_code(0);
    assert_undisturbed(&bench);
}

pub fn a_budget_that_is_exceeded_evicts_and_changes_nothing() {
    let _ = &*UNDISTURBED;
    let bench = Bench::new();
    crate::in_containers(&bench, SETTINGS, "disk_budget = \"1MiB\"\n", &["small_and_good", TREE]);
    // Both images are there, and there is room for neither.
    bench.build(&["--until", "collect", "--only", "trees/small_and_good"]).with_code(0);
    let ended = bench.build(&["--only", &format!("trees/{TREE}")]).with_code(0);
    assert!(ended.stderr.contains("removed the image gistmill/trees__small_and_good"), "{}", ended.stderr);
    let listed = bench.run(&["image", "list"]).with_code(0);
    assert!(!listed.stdout.contains("small_and_good"), "{}", listed.stdout);
    assert!(listed.stdout.contains(TREE), "{}", listed.stdout);
    assert_undisturbed(&bench);
}

pub fn a_test_that_takes_all_memory_is_a_crash_of_that_test_alone() {
    let bench = Bench::new();
    crate::in_containers(&bench, SETTINGS, "memory = \"256MiB\"\n", &["small_and_good"]);
    let greedy = bench.path().join("trees/small_and_good/tests/test_greedy.py");
    std::fs::write(&greedy, "def test_takes_all():\n    assert len(bytearray(b'x') * (1 << 30)) > 0\n")
        .expect("can be written");
    crate::common::date(&greedy);
    bench.build(&[]).with_code(0);
    let row = bench.dataset().group("tests/test_greedy.py::test_takes_all");
    assert_eq!(row["cause"], "crashes", "{row:#}");
    assert_eq!(bench.dataset().instances().len(), 3);
}

/// Why the memory of containers cannot be filled from here; none when it can.
pub fn no_way_into_groups() -> Option<String> {
    (!nix::unistd::geteuid().is_root())
        .then(|| "only root fills the memory of a container from outside".to_owned())
}

/// Why no engine of a test's own can be started here; none when it can.
pub fn no_engine_of_its_own() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("an engine that may be killed is started by root only".to_owned());
    }
    let found = Command::new("dockerd").arg("--version").output().is_ok_and(|output| output.status.success());
    (!found).then(|| "dockerd is not on PATH".to_owned())
}

/// An engine that nobody else uses, so that it can be killed.
struct OwnEngine {
    daemon: Child,
    folder: tempfile::TempDir,
}

impl OwnEngine {
    /// Starts one that has the base; with a disk of its own when a size is given.
    fn start(disk: Option<&str>) -> Self {
        let folder = tempfile::Builder::new().prefix("engine-").tempdir().expect("a folder can be made");
        if let Some(size) = disk {
            let options = Some(format!("size={size}"));
            nix::mount::mount(
                Some("tmpfs"),
                folder.path(),
                Some("tmpfs"),
                nix::mount::MsFlags::empty(),
                options.as_deref(),
            )
            .expect("root mounts a disk");
        }
        let engine = OwnEngine { daemon: daemon(folder.path()), folder };
        engine.await_answer();
        let mut save = Command::new("docker")
            .args(["save", &crate::base()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("docker");
        let base = save.stdout.take().expect("stdout is a pipe");
        let mut load = Command::new("docker");
        load.args(["--host", &engine.address(), "load"]).stdin(base).stdout(Stdio::null());
        assert!(load.status().expect("docker is on PATH").success(), "the base cannot be loaded");
        assert!(save.wait().expect("docker ends").success(), "the base cannot be saved");
        engine
    }

    fn address(&self) -> String {
        format!("unix://{}/docker.sock", self.folder.path().display())
    }

    #[track_caller]
    fn await_answer(&self) {
        let deadline = Instant::now() + Duration::from_mins(2);
        while !try_docker(&["--host", &self.address(), "version"]) {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "the engine does not answer:\n{log}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// `kill -9`, and a start after a moment.
    fn kill_and_start_again(&mut self) {
        self.daemon.kill().expect("it runs");
        self.daemon.wait().expect("it ends");
        // Its containerd dies with it. Where nobody takes in the dead, its number seems to be alive.
        let _ = std::fs::remove_file(self.folder.path().join("exec/containerd/containerd.pid"));
        std::thread::sleep(Duration::from_secs(1));
        self.daemon = daemon(self.folder.path());
        self.await_answer();
    }
}

fn daemon(folder: &Path) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log")).expect("a log");
    let place = |name: &str| folder.join(name).display().to_string();
    Command::new("dockerd")
        .args(["--data-root", &place("data"), "--exec-root", &place("exec"), "--pidfile", &place("pid")])
        .args(["--host", &format!("unix://{}", place("docker.sock"))])
        .args(["--bridge", "none", "--iptables=false", "--ip-masq=false"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("dockerd is on PATH")
}

impl Drop for OwnEngine {
    /// Asked to end, it takes down what it has mounted.
    fn drop(&mut self) {
        let id = nix::unistd::Pid::from_raw(self.daemon.id().cast_signed());
        let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM);
        let _ = self.daemon.wait();
        // After a failure something may be left.
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        let own = self.folder.path().display().to_string();
        for place in
            mounts.lines().filter_map(|line| line.split(' ').nth(1)).filter(|one| one.starts_with(&own))
        {
            let _ = nix::mount::umount2(place, nix::mount::MntFlags::MNT_DETACH);
        }
    }
}

pub fn an_engine_that_is_killed_and_started_again_changes_nothing() {
    let _ = &*UNDISTURBED;
    let mut engine = OwnEngine::start(None);
    let bench = bench("");
    let mut command = bench.gistmill(&["build", "repos.toml"]);
    command.env("DOCKER_HOST", engine.address());
    let mut build = Running::start(command);
    for stage in ["making the image", "world everything"] {
        build.wait_for(stage);
        std::thread::sleep(Duration::from_millis(700));
        engine.kill_and_start_again();
    }
    build.wait().with_code(0);
    assert_undisturbed(&bench);
    let left = docker(&["--host", &engine.address(), "ps", "--all", "--quiet", "--filter", "label=gistmill"]);
    assert_eq!(left, "");
}

/// Half of a container's needs fit on the disk, and more of them each time.
pub fn a_full_disk_of_the_engine_is_named() {
    let _ = &*UNDISTURBED;
    let engine = OwnEngine::start(Some("1200m"));
    // The environment is made as well.
    let bench = Bench::with_downloads_only();
    crate::in_containers(&bench, SETTINGS, "", &[TREE]);
    let build = || {
        let mut command = bench.gistmill(&["build", "repos.toml"]);
        command.env("DOCKER_HOST", engine.address());
        Running::start(command).wait()
    };
    let filler = engine.folder.path().join("filler");
    for left in [2, 25, 45] {
        let free = nix::sys::statvfs::statvfs(engine.folder.path()).expect("it is mounted");
        let held = std::fs::metadata(&filler).map_or(0, |filler| filler.len());
        let available = held + free.blocks_available() * free.fragment_size();
        let zeros = std::io::copy(
            &mut std::io::repeat(0).take(available - (left << 20)),
            &mut std::fs::File::create(&filler).expect("a file can be made"),
        );
        zeros.expect("there is room for them");
        let ended = build().with_code(3);
        assert!(ended.stderr.contains("the engine's disk is full"), "{left} MiB: {}", ended.stderr);
        assert!(ended.stderr.contains("hint: free space there"), "{left} MiB: {}", ended.stderr);
        let containers =
            docker(&["--host", &engine.address(), "ps", "--all", "--quiet", "--filter", "label=gistmill"]);
        assert_eq!(containers, "", "{left} MiB");
    }
    std::fs::remove_file(&filler).expect("it is there");
    build().with_code(0);
    assert_undisturbed(&bench);
}
