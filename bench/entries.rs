//! An attempt of a command against a cold run of the literal command, for the commands of each repository of a config.
//!
//! `cargo bench --profile dev --bench all -- entries [CONFIG]` (by default bench/entries.toml). Attempts and cold runs are measured
//! alternately, on one core, so that what else the machine does weighs on both; what is printed are medians of rounds, with the
//! ratio of each round's pair. An attempt is one of those that a published instance has by default; its interpreter is started
//! once for all of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gistmill::attempt::pool::Event;
use gistmill::attempt::tasks;
use gistmill::pipeline::prepare::{Preparation, Prepared};
use gistmill::record::collected::Group;
use gistmill::runner::protocol::TraceMode;

use crate::common::{AnyError, Subject, cold, folder, milliseconds};

/// Pairs of measurements.
const ROUNDS: usize = 5;
/// Attempts of each command in one measurement: as many as a published instance needs.
const ATTEMPTS: u32 = 10;

pub fn main() -> Result<(), AnyError> {
    let named = crate::arguments().into_iter().find(|argument| !argument.starts_with("--"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = named.map_or_else(|| root.join("bench/entries.toml"), PathBuf::from);
    let subject = Subject::open(&config, &folder().join("cache"), 1)?;
    print(
        &["repository", "commands", "attempt, ms", "cold, ms", "ratio", "least", "most"].map(str::to_owned),
    );
    for repo in &subject.config.repos {
        let prepared = Preparation::new(&subject.pipeline(), repo).run()?;
        let commands: Vec<(usize, &Group)> = prepared.collected.groups.iter().enumerate().collect();
        attempts(&prepared)?;
        let mut pairs = Vec::new();
        for _ in 0..ROUNDS {
            pairs.push((attempts(&prepared)?, cold(&prepared, &commands)?));
        }
        let ratios: Vec<f64> = pairs.iter().map(|(attempt, cold)| cold / attempt).collect();
        let text = |number: f64| format!("{number:.1}");
        print(&[
            repo.slug.to_string(),
            commands.len().to_string(),
            text(median(pairs.iter().map(|pair| pair.0).collect())),
            text(median(pairs.iter().map(|pair| pair.1).collect())),
            text(median(ratios.clone())),
            text(ratios.iter().copied().fold(f64::INFINITY, f64::min)),
            text(ratios.iter().copied().fold(0.0, f64::max)),
        ]);
    }
    Ok(())
}

/// A line of the table, as soon as it is known.
fn print([repository, rest @ ..]: &[String; 7]) {
    println!("{repository:<28}{}", rest.each_ref().map(|cell| format!("{cell:>13}")).concat());
}

/// Milliseconds per attempt, the start of the interpreter that they are forks of included.
fn attempts(prepared: &Prepared) -> Result<f64, AnyError> {
    let world = prepared.lab.base();
    let pool = prepared.lab.pool(&prepared.collected.groups, &world);
    let wanted: Vec<(usize, u32)> = (0..pool.groups.len()).map(|group| (group, ATTEMPTS)).collect();
    let tasks = tasks(pool.groups, &wanted, &BTreeMap::new(), 0, TraceMode::Off, pool.expected());
    let (started, mut done) = (Instant::now(), 0);
    pool.run(tasks, |event| match event {
        Event::Broken(error) | Event::Lost { error, .. } => Err(error),
        _ => {
            done += 1;
            Ok(())
        }
    })?;
    Ok(milliseconds(started) / f64::from(done))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
