//! What the referee costs: milliseconds for each of 1,000 submissions (plain run, traced run and the run with a failure
//! together), and the ratio to the three cold runs that a plain script would make of each: one after the other, and with as
//! many workers as the referee has.
//!
//! `cargo bench --profile dev --bench all -- score [CONFIG]` builds the dataset of a config (without one, bench/flask.toml)
//! with its witnesses, and makes the submissions of them, seeded: unchanged but for a comment, with a line left out, with
//! a number changed. All sides are measured in one run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::common::{AnyError, Subject, cold, folder, milliseconds, sample};
use gistmill::config::SourceSpec;

const SUBMISSIONS: usize = 1000;
const COLD_SAMPLE: usize = 30;
const SEED: u64 = 20_261_123;

pub fn main() -> Result<(), AnyError> {
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut subject = Subject::from_arguments(jobs)?;
    subject.pipeline().run()?;
    let dataset = &subject.config.dataset;
    let place = folder().join("output").join(&dataset.name).join(&dataset.version);
    gistmill(&subject, "witness", &place, &[])?;
    let work = tempfile::tempdir()?;
    let runs = submissions(&place, work.path())?;
    // The environment is there, and files are in the page cache.
    gistmill(&subject, "score", &place, &[work.path().join("warm")])?;
    let started = Instant::now();
    gistmill(&subject, "score", &place, &runs)?;
    let each = milliseconds(started) / SUBMISSIONS as f64;
    println!(
        "{:>12} {:>14} {:>10} {:>10} {:>13}",
        "submissions", "score ms each", "cold jobs", "cold ms", "3 cold/score"
    );
    for workers in std::collections::BTreeSet::from([1, jobs]) {
        subject.request.jobs = workers;
        let prepared = subject.prepare()?;
        let cold_ms = cold(&prepared, &sample(&prepared.collected.groups, COLD_SAMPLE))?;
        let ratio = 3.0 * cold_ms / each;
        println!("{SUBMISSIONS:>12} {each:>14.1} {workers:>10} {cold_ms:>10.1} {ratio:>13.1}");
    }
    Ok(())
}

/// Runs a command on the dataset.
fn gistmill(subject: &Subject, command: &str, dataset: &Path, more: &[PathBuf]) -> Result<(), AnyError> {
    let mut gistmill = Command::new(env!("CARGO_BIN_EXE_gistmill"));
    gistmill.arg(command).arg("--cache-dir").arg(subject.cache.root()).arg(dataset).args(more);
    for repo in &subject.config.repos {
        match &repo.source {
            SourceSpec::Git { url, .. } => gistmill.arg("--source").arg(format!("{}={url}", repo.slug)),
            SourceSpec::Path { path, .. } => {
                gistmill.arg("--source").arg(format!("{}={}", repo.slug, path.display()))
            }
            SourceSpec::Pypi { .. } | SourceSpec::Archive { .. } => &mut gistmill,
        };
    }
    if command == "score" {
        gistmill.arg("--output").arg(folder().join("scores"));
    }
    let ended = gistmill.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if ended.success() { Ok(()) } else { Err(format!("gistmill {command} ends with {ended}").into()) }
}

/// Writes the submissions, in runs of one for each instance that has a witness; one more run to warm up.
fn submissions(dataset: &Path, work: &Path) -> Result<Vec<PathBuf>, AnyError> {
    let mut witnesses = Vec::new();
    for entry in fs_err::read_dir(dataset.join("witnesses"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "py") {
            let id = path.file_stem().ok_or("a witness without a name")?.to_owned();
            witnesses.push((id, fs_err::read_to_string(&path)?));
        }
    }
    witnesses.sort();
    if witnesses.is_empty() {
        return Err("no instance has a witness".into());
    }
    // Other comments in each benchmark, so that nothing is known from the one before.
    let tag = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut runs: Vec<PathBuf> = Vec::new();
    for number in 0..=SUBMISSIONS {
        let (id, text) = &witnesses[number % witnesses.len()];
        let run = match number {
            SUBMISSIONS => work.join("warm"),
            _ => work.join(format!("run{:03}", number / witnesses.len())),
        };
        let place = run.join(id);
        fs_err::create_dir_all(&place)?;
        fs_err::write(place.join("concise.py"), format!("{}# {tag} {number}\n", variant(text, &mut random)))?;
        if number < SUBMISSIONS && runs.last() != Some(&run) {
            runs.push(run);
        }
    }
    Ok(runs)
}

fn variant(text: &str, random: &mut fastrand::Rng) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let without = random.usize(0..lines.len().max(1));
    match random.u8(0..10) {
        0..=5 => format!("{text}\n"),
        6..=8 => {
            let kept = lines.iter().enumerate().filter(|(at, _)| *at != without);
            let kept: Vec<&str> = kept.map(|(_, line)| *line).collect();
            format!("{}\n", kept.join("\n"))
        }
        _ => format!("{}\n", text.replacen('1', "2", 1)),
    }
}
