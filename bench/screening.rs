//! What the whole screening costs: as a multiple of one base pass over the same suite, and against cold runs.
//!
//! `cargo bench --profile dev --bench all -- screening [CONFIG]` takes the first repository of the config (without one,
//! bench/flask.toml), forgets all attempts and traces, and measures in one run, with as many workers everywhere: a pass
//! of every group in the base world; the screening until every verdict of the worlds is there; the rest until the
//! dataset (traces, the attempts of what is published, cold runs); and cold runs of a sample, from which ten cold runs
//! of every group are estimated.

use std::time::Instant;

use gistmill::pipeline::Stage;
use gistmill::runner::protocol::TraceMode;

use crate::common::{AnyError, Subject, cold, fork, milliseconds, sample};

/// Repetitions of the whole comparison.
const REPETITIONS: usize = 3;
/// Cold runs in each repetition.
const COLD_SAMPLE: usize = 30;
/// Cold runs of every group that the screening is held against.
const COLD_RUNS: f64 = 10.0;

pub fn main() -> Result<(), AnyError> {
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut subject = Subject::from_arguments(jobs)?;
    println!("{jobs} workers, {} attempts for what is published", subject.config.screen.attempts);
    println!(
        "{:>4} {:>10} {:>10} {:>10} {:>12} {:>12} {:>14} {:>14}",
        "", "base s", "worlds s", "rest s", "cold ms", "all/base", "10 cold s", "10 cold/all"
    );
    for repetition in 1..=REPETITIONS {
        let prepared = subject.prepare()?;
        let groups = prepared.collected.groups.len() as f64;
        // Files into the page cache.
        fork(&prepared, TraceMode::Off)?;
        let base = fork(&prepared, TraceMode::Off)? * groups / 1000.0;
        let cold_ms = cold(&prepared, &sample(&prepared.collected.groups, COLD_SAMPLE))?;
        let cold = cold_ms * groups * COLD_RUNS / 1000.0;
        // What it holds is a lock on the attempts.
        drop(prepared);
        fs_err::remove_dir_all(subject.cache.root().join("screens"))?;
        let worlds = stage(&mut subject, Stage::Screen)?;
        let rest = stage(&mut subject, Stage::Dataset)?;
        let all = worlds + rest;
        println!(
            "{repetition:>4} {base:>10.1} {worlds:>10.1} {rest:>10.1} {cold_ms:>12.1} {:>12.1} {cold:>14.1} {:>14.1}",
            all / base,
            cold / all
        );
    }
    Ok(())
}

/// Seconds until the end of a stage; what earlier stages left is used.
fn stage(subject: &mut Subject, until: Stage) -> Result<f64, AnyError> {
    subject.request.until = until;
    let started = Instant::now();
    let built = subject.pipeline().run()?;
    if let Some(failed) = built.failed.first() {
        return Err(format!("{}: {}", failed.slug, failed.message).into());
    }
    Ok(milliseconds(started) / 1000.0)
}
