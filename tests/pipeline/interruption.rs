//! Builds that are stopped, gently or not, and builds that meet.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

use gistmill::backend::clock;
use nix::sys::signal::Signal;

use super::determinism::assert_same;
use crate::common::dataset::Dataset;
use crate::common::processes::Descendants;
use crate::common::{Bench, Ended, Running};

pub const TREE: &str = "slow_enough_to_interrupt";
pub const SETTINGS: &str = "[screen]\nattempts = 3";
/// Busy processes of other tests may leave little of the processor for an end.
const LONGEST_END: Duration = Duration::from_mins(1);

fn slow_bench() -> Bench {
    let bench = Bench::new();
    bench.configure(SETTINGS, &[TREE]);
    bench
}

/// What a build of the slow bench comes to when nothing disturbs it.
pub fn undisturbed() -> Dataset {
    static BUILT: LazyLock<Bench> = LazyLock::new(|| {
        let bench = slow_bench();
        bench.build(&[]).with_code(0);
        bench
    });
    BUILT.dataset()
}

fn start(bench: &Bench, output: &str) -> Running {
    Running::start(bench.gistmill(&["build", "repos.toml", "--output", output]))
}

#[test]
fn builds_that_are_killed_go_on_and_come_to_what_an_undisturbed_one_comes_to() {
    let disturbed = slow_bench();
    // The same seed kills at the same moments, as far as the machine is the same.
    let mut random = fastrand::Rng::with_seed(20_261_121);
    let mut kills = 0;
    for stage in ["screen (", "world everything", "trace (", "attempts (", "cold runs"] {
        let mut build = start(&disturbed, "output");
        build.wait_for(stage);
        std::thread::sleep(Duration::from_millis(random.u64(0..700)));
        // The moment may be one between two sandboxes: the kill waits for the next.
        let descendants = loop {
            let found = Descendants::of(build.id());
            if found.sandboxes() > 0 || !build.is_alive() {
                break found;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        if build.is_alive() {
            build.signal(Signal::SIGKILL);
            kills += 1;
        }
        let ended = build.wait();
        descendants.assert_end_within(LONGEST_END);
        assert!(
            !disturbed.dataset().folder.exists() || ended.code() == Some(0),
            "half a dataset was written"
        );
    }
    assert!(kills >= 3, "{kills} kills hit a build");
    disturbed.build(&[]).with_code(0);
    assert_same(&undisturbed(), &disturbed.dataset());
    assert_eq!(disturbed.dataset().rows("attempts").len(), undisturbed().rows("attempts").len());
}

#[test]
#[cfg_attr(not(clock_library), ignore = "needs the clock library, which this architecture does not have")]
fn a_clock_that_jumps_years_ahead_and_back_between_builds_changes_nothing() {
    let library = clock::library().expect("this machine has a clock library");
    let disturbed = slow_bench();
    let path = disturbed.path().join(clock::FILE_NAME);
    std::fs::write(&path, library).expect("can be written");
    let ahead = || {
        let mut command = disturbed.gistmill(&["build", "repos.toml"]);
        command.envs(clock::variables(&path, SystemTime::now()));
        command
    };
    let now = disturbed.gistmill(&["build", "repos.toml"]);
    for (command, stage) in [(ahead(), "world everything"), (now, "trace (")] {
        let mut build = Running::start(command);
        build.wait_for(stage);
        let descendants = Descendants::of(build.id());
        build.signal(Signal::SIGKILL);
        build.wait();
        descendants.assert_end_within(LONGEST_END);
    }
    Running::start(ahead()).wait().with_code(0);
    assert_same(&undisturbed(), &disturbed.dataset());
}

#[test]
fn ctrl_c_ends_a_try_at_once() {
    let bench = Bench::new();
    bench.tree(TREE);
    let mut running = Running::start(bench.gistmill(&["try", &format!("trees/{TREE}")]));
    running.wait_for("groups once");
    std::thread::sleep(Duration::from_millis(300));
    let descendants = Descendants::of(running.id());
    running.signal(Signal::SIGINT);
    let ended = running.wait_at_most(LONGEST_END).with_code(130);
    assert!(!ended.stdout.contains("run once"), "{}", ended.stdout);
    descendants.assert_end_within(LONGEST_END);
}

#[test]
fn ctrl_c_ends_a_build_at_once_and_the_next_one_goes_on() {
    let bench = slow_bench();
    for stage in ["screen (", "cold runs"] {
        let mut build = start(&bench, "output");
        build.wait_for(stage);
        std::thread::sleep(Duration::from_millis(300));
        let descendants = Descendants::of(build.id());
        build.signal(Signal::SIGINT);
        // At once on a machine with nothing else to do: it does not wait for its sandboxes, which it would do for longer.
        let Ended { stderr, .. } = build.wait_at_most(LONGEST_END).with_code(130);
        assert!(stderr.contains("run the same command again"), "{stderr}");
        descendants.assert_end_within(LONGEST_END);
    }
    bench.build(&[]).with_code(0);
    assert_eq!(bench.dataset().instances().len(), 9);
}

#[test]
fn a_second_build_in_the_same_output_directory_is_refused_and_the_first_goes_on() {
    let bench = slow_bench();
    let mut first = start(&bench, "output");
    first.wait_for("screen (");
    let second = bench.build(&[]).with_code(2);
    assert!(second.stderr.contains("another build is writing output/trees/1"), "{}", second.stderr);
    assert!(second.stderr.contains("hint: wait for it"), "{}", second.stderr);
    first.wait().with_code(0);
    assert_eq!(bench.dataset().instances().len(), 9);
}

#[test]
fn builds_that_share_a_cache_share_attempts_and_lose_none() {
    let bench = slow_bench();
    let builds = ["one", "two"].map(|output| start(&bench, output));
    let [one, two] = builds.map(|build| build.wait().with_code(0));
    assert_eq!(one.stdout.replace("one/", "two/"), two.stdout);
    let dataset = |name: &str| Dataset::at(&bench.path().join(name).join("trees/1"));
    assert_same(&dataset("one"), &dataset("two"));
    let third = bench.run(&["build", "repos.toml", "--output", "three"]).with_code(0);
    assert!(!third.stderr.contains("screen ("), "attempts were lost:\n{}", third.stderr);
    assert_eq!(dataset("three").rows("attempts"), dataset("two").rows("attempts"));
}

/// A server that has a page of one source distribution, and for everything else begins to answer at most. Gives its port,
/// and says when something else was asked.
fn stalling(begins: bool) -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let (asked, told) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let read = if begins { stream.read(&mut bytes).unwrap_or_default() } else { 0 };
            if String::from_utf8_lossy(&bytes[..read]).starts_with("GET /simple/") {
                let file = format!(
                    "{{\"filename\": \"demo-1.0.tar.gz\", \"url\": \"/demo-1.0.tar.gz\", \
                      \"hashes\": {{\"sha256\": \"{}\"}}}}",
                    "0".repeat(64)
                );
                let page = format!(
                    "{{\"meta\": {{\"api-version\": \"1.0\"}}, \"name\": \"demo\", \"files\": [{file}]}}"
                );
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.pypi.simple.v1+json\r\nConnection: close";
                let _ = stream
                    .write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n{page}", page.len()).as_bytes());
                continue;
            }
            if begins {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nsome bytes");
            }
            kept.push(stream);
            let _ = asked.send(());
        }
    });
    (port, told)
}

#[test]
fn a_server_that_says_nothing_more_keeps_no_build_from_stopping() {
    let zero = "0".repeat(64);
    let pypi = format!("pypi = \"demo==1.0\"\nsha256 = \"{zero}\"\n");
    for (begins, source) in [
        (
            false,
            "git = \"https://127.0.0.1:PORT/x.git\"\ncommit = \"0123456789012345678901234567890123456789\"\n",
        ),
        // The index, then the file.
        (false, pypi.as_str()),
        (true, pypi.as_str()),
    ] {
        let (port, told) = stalling(begins);
        let bench = Bench::with_empty_cache();
        let source = source.replace("PORT", &port.to_string());
        bench.write_config(&format!(
            "[dataset]\nname = \"trees\"\nversion = \"1\"\n[[repo]]\nslug = \"a/b\"\n{source}"
        ));
        let mut command = bench.gistmill(&["build", "repos.toml"]);
        for name in ["PIP_INDEX_URL", "UV_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX"] {
            command.env_remove(name);
        }
        command.env("UV_DEFAULT_INDEX", format!("http://127.0.0.1:{port}/simple"));
        let build = Running::start(command);
        told.recv_timeout(Duration::from_mins(2)).expect("it is asked");
        std::thread::sleep(Duration::from_millis(500));
        build.signal(Signal::SIGINT);
        build.wait_at_most(Duration::from_secs(20)).with_code(130);
    }
}

/// A build whose caller ignores these signals, as `nohup` does with SIGHUP.
fn ignoring(bench: &Bench, signals: &str) -> Running {
    let gistmill = bench.gistmill(&["build", "repos.toml"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("trap '' {signals}; exec \"$0\" \"$@\""), crate::common::GISTMILL]);
    command.args(gistmill.get_args()).current_dir(bench.path()).env_clear();
    command.envs(gistmill.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    Running::start(command)
}

#[test]
fn signals_that_were_ignored_stay_ignored_and_others_end_a_build() {
    let bench = slow_bench();
    let mut build = ignoring(&bench, "HUP INT");
    build.wait_for("screen (");
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGHUP] {
        build.signal(signal);
        std::thread::sleep(Duration::from_millis(200));
        assert!(build.is_alive(), "{signal} ends it");
    }
    build.signal(Signal::SIGTERM);
    build.wait_at_most(LONGEST_END).with_code(130);
    let mut build = start(&bench, "output");
    build.wait_for("screen (");
    build.signal(Signal::SIGHUP);
    build.wait_at_most(LONGEST_END).with_code(130);
    // A hang-up under `nohup` changes nothing of what is built.
    let mut build = ignoring(&bench, "HUP");
    build.wait_for("screen (");
    build.signal(Signal::SIGHUP);
    build.wait().with_code(0);
    assert_eq!(bench.dataset().instances().len(), 9);
}

#[test]
fn a_cache_that_is_removed_while_it_is_used_is_named_and_nothing_is_written() {
    let bench = Bench::with_downloads_only();
    bench.configure(SETTINGS, &[TREE]);
    bench.build(&[]).with_code(0);
    let dataset = || std::fs::read(bench.path().join("output/trees/1/manifest.json")).expect("is there");
    let before = dataset();
    for part in ["environments", ""] {
        std::fs::remove_dir_all(bench.cache().join("screens")).expect("was there");
        let mut build = start(&bench, "output");
        build.wait_for("screen (");
        let mut remove = std::process::Command::new("rm");
        remove.arg("-rf").arg(bench.cache().join(part)).status().expect("rm starts");
        let ended = build.wait().with_code(3);
        let place = format!("the cache {} was removed or changed while", bench.cache().display());
        assert!(ended.stderr.contains(&place), "{}", ended.stderr);
        assert!(!ended.stderr.contains("add pytest"), "{}", ended.stderr);
        assert!(dataset() == before, "the dataset was written anew");
    }
}
