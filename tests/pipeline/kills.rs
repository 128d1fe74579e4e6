//! `kill -9` of anything at any moment: the driver, a sandbox, a runner, a process that runs a test. Builds are started
//! again until one comes to its end, which must be the end of an undisturbed one.
//!
//! `GISTMILL_TEST_KILLS` says how many kills there are (4 by default), `GISTMILL_TEST_SEED` what they hit and when.

use std::time::{Duration, Instant};

use fastrand::Rng;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::determinism::assert_same;
use super::interruption::{SETTINGS, TREE, undisturbed};
use crate::common::processes::Descendants;
use crate::common::{Bench, Ended, Running};

/// Kills of one build; then it may come to its end.
const KILLS_OF_ONE_BUILD: u32 = 6;
/// Longest time between two kills.
const PAUSE: Duration = Duration::from_millis(1500);

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

fn bench(shared: bool) -> Bench {
    let bench = if shared { Bench::new() } else { Bench::with_downloads_only() };
    bench.configure(SETTINGS, &[TREE]);
    bench
}

/// What was hit.
#[derive(Debug, Default)]
struct Hits {
    driver: u32,
    others: u32,
}

/// Kills the driver or something below it. Gives whether it was the driver; none when the build has ended by itself.
fn strike(build: &Running, random: &mut Rng) -> Option<bool> {
    let mut below = Descendants::of(build.id()).below(build.id());
    below.retain(|id| !belongs_to_a_test(*id));
    let driver = below.is_empty() || random.u32(0..3) == 0;
    let victim = if driver { build.id() } else { below[random.usize(0..below.len())] };
    // Something that has ended meanwhile cannot be killed any more.
    kill(Pid::from_raw(i32::try_from(victim).expect("a process id")), Signal::SIGKILL).ok()?;
    Some(driver)
}

/// Whether a test of the tree started it. The test asserts that it lives, and is right to fail when it does not.
fn belongs_to_a_test(id: u32) -> bool {
    std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep\0"))
}

/// One build after the other until one ends by itself, with so many kills in all.
fn build_with_kills(bench: &Bench, kills: u32, random: &mut Rng, hits: &mut Hits) -> Ended {
    let mut left = kills;
    loop {
        let mut build = Running::start(bench.gistmill(&["build", "repos.toml"]));
        let driver_died = loop {
            if left == 0 {
                break false;
            }
            std::thread::sleep(random_pause(random));
            if !build.is_alive() {
                break false;
            }
            let descendants = Descendants::of(build.id());
            match strike(&build, random) {
                Some(true) => {
                    (hits.driver, left) = (hits.driver + 1, left - 1);
                    // Busy processes of other tests may leave little of the processor for an end.
                    descendants.assert_end_within(Duration::from_mins(1));
                    break true;
                }
                Some(false) => (hits.others, left) = (hits.others + 1, left - 1),
                None => {}
            }
        };
        let ended = build.wait();
        if driver_died || left > 0 && ended.code() == Some(0) {
            if ended.code() == Some(0) {
                // It was faster than the kills: what it did is thrown away, so that there is something to disturb.
                forget_attempts(bench);
            }
            continue;
        }
        if ended.code() == Some(0) {
            return ended;
        }
        // Three kills in a row look like trouble that stays: it is reported as such, and the next build goes on.
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        let told = ended.stdout.contains("killed")
            || ended.stdout.contains("the runner")
            || ended.stdout.contains("sandbox");
        assert!(told, "{ended:?}");
        assert!(left < kills, "nothing was killed, and yet: {ended:?}");
    }
}

fn random_pause(random: &mut Rng) -> Duration {
    PAUSE.mul_f64(random.f64().powi(2))
}

fn forget_attempts(bench: &Bench) {
    for part in ["screens", "../output"] {
        let folder = bench.cache().join(part);
        if folder.exists() {
            std::fs::remove_dir_all(folder).expect("can be removed");
        }
    }
}

#[test]
fn a_build_comes_to_the_same_end_whatever_is_killed() {
    let kills = u32::try_from(number("GISTMILL_TEST_KILLS", 4)).expect("a small number");
    let seed = number("GISTMILL_TEST_SEED", 20_261_122);
    let mut random = Rng::with_seed(seed);
    let verdicts = undisturbed().rows("groups").len();
    let (mut left, mut hits, mut builds) = (kills, Hits::default(), 0);
    let started = Instant::now();
    while left > 0 {
        let now = left.min(KILLS_OF_ONE_BUILD);
        // Every second build makes its environment as well.
        let disturbed = bench(builds % 2 == 1);
        let ended = build_with_kills(&disturbed, now, &mut random, &mut hits);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        let groups = disturbed.dataset().rows("groups");
        assert_eq!(groups.len(), verdicts);
        let dropped: Vec<_> = groups.iter().filter(|row| row["kept"] != true).collect();
        assert!(dropped.is_empty(), "{dropped:#?}\n{}", ended.stderr);
        assert_same(&undisturbed(), &disturbed.dataset());
        (left, builds) = (left - now, builds + 1);
    }
    println!("seed {seed}: {hits:?} in {builds} builds, {:?}", started.elapsed());
}
