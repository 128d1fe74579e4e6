//! What an isolated attempt costs: in the fork tree, cold, and traced, side by side in one run on one core.
//!
//! `cargo bench --profile dev --bench all -- fork_tree [CONFIG]` builds the environment of the config's first repository
//! (without one, bench/flask.toml) and repeats, in turn: every group once in the fork tree; a sample of the same groups
//! cold, with byte code cached; every group traced. It prints milliseconds per attempt, collection included, and the
//! ratios of each repetition with their median: machines are noisy, ratios measured side by side are not.

use gistmill::pipeline::prepare::Prepared;
use gistmill::runner::protocol::TraceMode;

use crate::common::{AnyError, Subject, cold, fork, sample};

/// Repetitions of the whole comparison.
const REPETITIONS: usize = 5;
/// Cold runs in each repetition.
const COLD_SAMPLE: usize = 12;

pub fn main() -> Result<(), AnyError> {
    let subject = Subject::from_arguments(1)?;
    let prepared = subject.prepare()?;
    println!("core {}", pin_to_one_core()?);
    compare(&prepared)
}

fn compare(prepared: &Prepared) -> Result<(), AnyError> {
    let sample = sample(&prepared.collected.groups, COLD_SAMPLE);
    println!(
        "{:>4} {:>10} {:>10} {:>10} {:>12} {:>14}",
        "", "fork ms", "cold ms", "traced ms", "cold/fork", "traced/fork"
    );
    // Once without counting: files into the page cache.
    fork(prepared, TraceMode::Off)?;
    let mut ratios = [Vec::new(), Vec::new()];
    for repetition in 1..=REPETITIONS {
        let fork_ms = fork(prepared, TraceMode::Off)?;
        let cold_ms = cold(prepared, &sample)?;
        let traced_ms = fork(prepared, TraceMode::Tree)?;
        let (speed, tracing) = (cold_ms / fork_ms, traced_ms / fork_ms);
        println!(
            "{repetition:>4} {fork_ms:>10.2} {cold_ms:>10.1} {traced_ms:>10.2} {speed:>12.1} {tracing:>14.2}"
        );
        ratios[0].push(speed);
        ratios[1].push(tracing);
    }
    let [speed, tracing] = ratios.map(median);
    println!("median: cold/fork {speed:.1}, traced/untraced {tracing:.2}");
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// This process and all that it starts stay on the last core.
fn pin_to_one_core() -> Result<usize, AnyError> {
    let me = nix::unistd::Pid::from_raw(0);
    let allowed = nix::sched::sched_getaffinity(me)?;
    let core = (0..nix::sched::CpuSet::count()).rev().find(|core| allowed.is_set(*core).unwrap_or(false));
    let core = core.ok_or("no core is allowed")?;
    let mut one = nix::sched::CpuSet::new();
    one.set(core)?;
    nix::sched::sched_setaffinity(me, &one)?;
    Ok(core)
}
