//! The figures of speed in one table: an attempt against a cold run, a whole build against an older gistmill, how busy
//! processors are until the last tenth, a build with nothing changed, and 170 attempts of what is published.
//!
//! `GISTMILL_OLDER=/path/to/gistmill cargo bench --profile dev --bench all -- speed [CONFIG]` (by default bench/flask.toml).
//! Both programs build in caches of their own, made for this and removed afterwards, one after the other, so many times
//! as `GISTMILL_ROUNDS` says (1). Without an older program that line is left out. Processor time is that of all processes
//! that have ended; programs before `spent` was in the manifest killed theirs, and have none.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gistmill::runner::protocol::TraceMode;

use crate::common::{AnyError, Subject, cold, folder, fork, sample};

/// Runs of the comparison of an attempt with a cold run.
const RUNS: usize = 5;
/// Cold runs in each.
const COLD_SAMPLE: usize = 25;
/// Attempts that the literature asks for.
const ATTEMPTS: u32 = 170;
/// Time between two looks at the processors.
const LOOK: Duration = Duration::from_millis(200);

pub fn main() -> Result<(), AnyError> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let named = crate::arguments().into_iter().find(|argument| !argument.starts_with("--"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = named.map_or_else(|| root.join("bench/flask.toml"), PathBuf::from);
    let mut rows = vec![("what".to_owned(), "now".to_owned(), "before".to_owned(), "ratio".to_owned())];
    let (attempt, cold) = attempt_against_cold(processors)?;
    rows.push(row("attempt, and cold run, ms", attempt, Some(cold)));
    let rounds: usize = std::env::var("GISTMILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let older = std::env::var_os("GISTMILL_OLDER").map(PathBuf::from);
    let own = Path::new(env!("CARGO_BIN_EXE_gistmill"));
    std::fs::create_dir_all(folder())?;
    for round in 0..rounds.max(1) {
        let scratch = tempfile::tempdir_in(folder())?;
        let before = older.as_deref().map(|older| build(older, &config, &scratch.path().join("older")));
        let before = before.transpose()?;
        let now = build(own, &config, &scratch.path().join("own"))?;
        rows.push(row(&format!("build {round}, s"), now.seconds, before.as_ref().map(|one| one.seconds)));
        let use_of = |built: &Built| 100.0 * built.busy_until_last_tenth / processors as f64;
        rows.push(row(
            "processors in use until the last tenth, %",
            use_of(&now),
            before.as_ref().map(use_of),
        ));
        let again = build(own, &config, &scratch.path().join("own"))?;
        rows.push(row("the same with nothing changed, s", again.seconds, None));
        let more = scratch.path().join("more.toml");
        std::fs::write(&more, with_attempts(&std::fs::read_to_string(&config)?))?;
        let deepened = build(own, &more, &scratch.path().join("own"))?;
        rows.push(row(&format!("{ATTEMPTS} attempts of what is published, s"), deepened.seconds, None));
    }
    for (what, now, before, ratio) in rows {
        println!("{what:<45} {now:>10} {before:>10} {ratio:>8}");
    }
    Ok(())
}

fn row(what: &str, now: f64, before: Option<f64>) -> (String, String, String, String) {
    let text = |number: f64| format!("{number:.2}");
    let ratio = before.map(|before| text(before / now)).unwrap_or_default();
    (what.to_owned(), text(now), before.map(text).unwrap_or_default(), ratio)
}

/// The configuration with more attempts.
fn with_attempts(config: &str) -> String {
    format!("{config}\n[screen]\nattempts = {ATTEMPTS}\n")
}

/// Medians of milliseconds per attempt and per cold run, measured alternately.
fn attempt_against_cold(jobs: usize) -> Result<(f64, f64), AnyError> {
    let subject = Subject::from_arguments(jobs)?;
    let prepared = subject.prepare()?;
    let some = sample(&prepared.collected.groups, COLD_SAMPLE);
    fork(&prepared, TraceMode::Off)?;
    let (mut attempts, mut colds) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        attempts.push(fork(&prepared, TraceMode::Off)?);
        colds.push(cold(&prepared, &some)?);
    }
    Ok((median(attempts), median(colds)))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What a build took.
struct Built {
    seconds: f64,
    /// Processors of the machine in use on average, until nine tenths of the time were over.
    busy_until_last_tenth: f64,
}

fn build(program: &Path, config: &Path, place: &Path) -> Result<Built, AnyError> {
    let started = Instant::now();
    let mut child = Command::new(program)
        .arg("build")
        .arg(config)
        .arg("--cache-dir")
        .arg(place.join("cache"))
        .arg("--output")
        .arg(place.join("output"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut looks = vec![(0.0, busy_seconds()?)];
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(LOOK);
        looks.push((started.elapsed().as_secs_f64(), busy_seconds()?));
    };
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("{}: {status}", program.display()).into());
    }
    let (first, last) = (looks[0], looks.iter().rev().find(|(at, _)| *at <= 0.9 * seconds));
    let busy = last.filter(|(at, _)| *at > 0.0).map_or(0.0, |(at, busy)| (busy - first.1) / at);
    Ok(Built { seconds, busy_until_last_tenth: busy })
}

/// Seconds that the processors of this machine, together, did something, since it started.
fn busy_seconds() -> Result<f64, AnyError> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().ok_or("no line")?;
    let ticks: Vec<f64> = line.split_whitespace().skip(1).map(str::parse).collect::<Result<_, _>>()?;
    let idle: f64 = ticks.iter().skip(3).take(2).sum();
    let ticks_of_a_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?.unwrap_or(100) as f64;
    Ok((ticks.iter().take(8).sum::<f64>() - idle) / ticks_of_a_second)
}
