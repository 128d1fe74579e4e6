//! What a witness costs: CPU seconds and trials per instance.
//!
//! `cargo bench --profile dev --bench all -- witness [CONFIG]` builds the dataset of a config (without one,
//! bench/flask.toml), forgets all witnesses and makes them, one instance at a time. Processes of a sandbox are not all
//! waited for, so their times are read from `/proc` while they live; the busy ones of the loaded run are left out.
//!
//! Printed are the mean of everything, and the median of what a search takes until the next one ends. Originals are traced
//! and witnesses judged for many instances together: that is in the mean alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{AnyError, Subject, folder, milliseconds};

/// How often processes are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// What the busy processes of a loaded run are started with.
const BUSY: &str = "__busy";
/// What the log says at the end of each search.
const SEARCHED: &str = ": searched with ";

pub fn main() -> Result<(), AnyError> {
    let subject = Subject::from_arguments(1)?;
    subject.pipeline().run()?;
    let dataset = &subject.config.dataset;
    let place = folder().join("output").join(&dataset.name).join(&dataset.version);
    forget(subject.cache.root())?;
    let log = folder().join("witness.log");
    let _ = fs_err::remove_file(&log);
    let started = Instant::now();
    let mut making = Command::new(env!("CARGO_BIN_EXE_gistmill"))
        .args(["witness", "--jobs", "1", "--cache-dir"])
        .arg(subject.cache.root())
        .arg(&place)
        .arg("--log")
        .arg(&log)
        .stdout(Stdio::null())
        .spawn()?;
    // By process: what it and all that it has waited for have used.
    let mut used: BTreeMap<u32, u64> = BTreeMap::new();
    let own = making.id();
    let mut at_ends: Vec<u64> = Vec::new();
    while making.try_wait()?.is_none() {
        let driver = ticks(own, false).unwrap_or_default();
        used.entry(own).and_modify(|most| *most = driver.max(*most)).or_insert(driver);
        for child in children(own).into_iter().filter(|child| !is_busy(*child)) {
            let now = family(child);
            used.entry(child).and_modify(|most| *most = now.max(*most)).or_insert(now);
        }
        let ended = fs_err::read_to_string(&log).unwrap_or_default().matches(SEARCHED).count();
        at_ends.resize(ended.max(at_ends.len()), used.values().sum());
        std::thread::sleep(LOOK);
    }
    let seconds = used.values().sum::<u64>() as f64 / ticks_per_second();
    let mut searches: Vec<u64> = at_ends.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    searches.sort_unstable();
    let search = searches.get(searches.len() / 2).copied().unwrap_or_default() as f64 / ticks_per_second();
    let mut trials = trials(subject.cache.root())?;
    trials.sort_unstable();
    let count = trials.len().max(1) as f64;
    println!(
        "{:>10} {:>14} {:>20} {:>14} {:>14} {:>14}",
        "instances", "CPU s each", "search CPU s median", "wall s each", "trials median", "trials most"
    );
    println!(
        "{:>10} {:>14.2} {:>20.2} {:>14.2} {:>14} {:>14}",
        trials.len(),
        seconds / count,
        search,
        milliseconds(started) / 1000.0 / count,
        trials.get(trials.len() / 2).copied().unwrap_or_default(),
        trials.last().copied().unwrap_or_default()
    );
    Ok(())
}

/// The journals of witnesses in a cache.
fn journals(cache: &Path) -> Result<Vec<std::path::PathBuf>, AnyError> {
    let labs = fs_err::read_dir(cache.join("screens"))?.flatten();
    Ok(labs.map(|lab| lab.path().join("witnesses")).filter(|journal| journal.is_file()).collect())
}

fn forget(cache: &Path) -> Result<(), AnyError> {
    for journal in journals(cache)? {
        fs_err::remove_file(journal)?;
    }
    Ok(())
}

/// Trials of every instance.
fn trials(cache: &Path) -> Result<Vec<u64>, AnyError> {
    let mut all = Vec::new();
    for journal in journals(cache)? {
        for line in fs_err::read_to_string(journal)?.lines() {
            let row: serde_json::Value =
                serde_json::from_str(line.split_once(' ').map_or("", |(_, row)| row))?;
            all.extend(row["witnessed"]["trials"].as_u64());
        }
    }
    Ok(all)
}

/// Clock ticks of a process itself, or also of what it has waited for; none where it has ended.
fn ticks(process: u32, with_ended: bool) -> Option<u64> {
    let text = fs_err::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let counted = fields.get(11..if with_ended { 15 } else { 13 })?;
    Some(counted.iter().filter_map(|field| field.parse::<u64>().ok()).sum())
}

fn children(process: u32) -> Vec<u32> {
    let tasks = fs_err::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| fs_err::read_to_string(task.path().join("children")).ok());
    texts
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn is_busy(process: u32) -> bool {
    fs_err::read(format!("/proc/{process}/cmdline"))
        .is_ok_and(|line| line.split(|byte| *byte == 0).any(|argument| argument == BUSY.as_bytes()))
}

/// Ticks of a process and everything below it.
fn family(process: u32) -> u64 {
    let (mut sum, mut left) = (0, vec![process]);
    while let Some(one) = left.pop() {
        sum += ticks(one, true).unwrap_or_default();
        left.extend(children(one));
    }
    sum
}

fn ticks_per_second() -> f64 {
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    ticks.ok().flatten().unwrap_or(100) as f64
}
