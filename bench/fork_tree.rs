//! What an isolated attempt costs: in the fork tree, cold, and traced, side by side in one run on one core.
//!
//! `cargo bench --profile dev --bench fork_tree [-- CONFIG]` builds the environment of the config's first repository (without one,
//! bench/flask.toml) and repeats, in turn: every group once in the fork tree; a sample of the same groups cold, with byte
//! code cached; every group traced. It prints milliseconds per attempt, collection included, and the ratios of each
//! repetition with their median: machines are noisy, ratios measured side by side are not.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use gistmill::backend::local::LocalBackend;
use gistmill::config;
use gistmill::environment::Tools;
use gistmill::pipeline::prepare::{Preparation, Prepared};
use gistmill::pipeline::{Pipeline, Request, Stage};
use gistmill::progress::Progress;
use gistmill::record::collected::Group;
use gistmill::record::id::sha256_hex;
use gistmill::rules::RuleSet;
use gistmill::runner::protocol::TraceMode;
use gistmill::screen::cold::Cold;
use gistmill::screen::pool::Event;
use gistmill::screen::tasks;
use gistmill::store::Cache;

/// Repetitions of the whole comparison.
const REPETITIONS: usize = 5;
/// Cold runs in each repetition.
const COLD_SAMPLE: usize = 12;

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let named = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = match named {
        Some(path) => config::load(Path::new(&path), &|_, _| None)?,
        None => config::load(&root.join("bench/flask.toml"), &|_, _| None)?,
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
    let cache = Cache::open(&folder.join("cache"))?;
    let backend = LocalBackend::new(Path::new(env!("CARGO_BIN_EXE_gistmill")))?;
    let request = Request {
        output: folder.join("output"),
        only: Vec::new(),
        until: Stage::Dataset,
        jobs: 1,
        subsets: Vec::new(),
    };
    let pipeline = Pipeline {
        config: &config,
        public_config: config::to_public_json(&config),
        rules: &RuleSet::shipped(),
        cache: &cache,
        backend: &backend,
        tools: &Tools::find(&cache)?,
        progress: &Progress::for_terminal(),
        request: &request,
    };
    let repo = config.repos.first().ok_or("the config has no repository")?;
    let prepared = Preparation { pipeline: &pipeline, repo }.run()?;
    let core = pin_to_one_core()?;
    println!(
        "{} at {}: {} cases in {} groups, Python {}, pytest {}, core {core}",
        repo.slug,
        &prepared.pinned.commit[..12.min(prepared.pinned.commit.len())],
        prepared.collected.node_ids.len(),
        prepared.collected.groups.len(),
        prepared.built.python,
        prepared.collected.pytest,
    );
    compare(&pipeline, &prepared)
}

fn compare(pipeline: &Pipeline<'_>, prepared: &Prepared) -> Result<(), AnyError> {
    let sample = sample(&prepared.collected.groups);
    println!(
        "{:>4} {:>10} {:>10} {:>10} {:>12} {:>14}",
        "", "fork ms", "cold ms", "traced ms", "cold/fork", "traced/fork"
    );
    // Once without counting: files into the page cache.
    fork(pipeline, prepared, TraceMode::Off)?;
    let mut ratios = [Vec::new(), Vec::new()];
    for repetition in 1..=REPETITIONS {
        let fork_ms = fork(pipeline, prepared, TraceMode::Off)?;
        let cold_ms = cold(pipeline, prepared, &sample)?;
        let traced_ms = fork(pipeline, prepared, TraceMode::Tree)?;
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

/// Milliseconds per attempt when every group is run once: interpreters, conftests and files included.
fn fork(pipeline: &Pipeline<'_>, prepared: &Prepared, trace: TraceMode) -> Result<f64, AnyError> {
    let options = prepared.built.quiet_options();
    let pool = pipeline.pool(prepared, &options);
    let wanted: Vec<(usize, u32)> = (0..pool.groups.len()).map(|group| (group, 1)).collect();
    let tasks = tasks(pool.groups, &wanted, &BTreeMap::new(), 0, trace, 1);
    let (started, mut done) = (Instant::now(), 0);
    pool.run(tasks, |event| {
        if let Event::Broken(error) = event {
            Err(error)
        } else {
            done += 1;
            Ok(())
        }
    })?;
    Ok(milliseconds(started) / f64::from(done))
}

/// Milliseconds per cold run of the literal entry command.
fn cold(pipeline: &Pipeline<'_>, prepared: &Prepared, sample: &[(usize, &Group)]) -> Result<f64, AnyError> {
    let options = prepared.built.quiet_options();
    let cold = Cold {
        backend: pipeline.backend,
        setting: &prepared.setting,
        options: &options,
        group_timeout: pipeline.config.screen.group_timeout,
        jobs: 1,
        ends: &|_| true,
    };
    let started = Instant::now();
    cold.run(sample, |_, _| Ok(()))?;
    Ok(milliseconds(started) / sample.len() as f64)
}

/// The same groups every time, spread over the suite by hash.
fn sample(groups: &[Group]) -> Vec<(usize, &Group)> {
    let mut sample: Vec<(usize, &Group)> = groups.iter().enumerate().collect();
    sample.sort_by_key(|(_, group)| sha256_hex(group.group_id.as_bytes()));
    sample.truncate(COLD_SAMPLE);
    sample
}

fn milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
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
