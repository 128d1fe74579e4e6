//! What a dataset of one size takes to be written: `bench/dataset.rs` reads it.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::dataset::assemble::Assembled;
use crate::report;
use crate::testing::made_up::MadeUp;

const REPOSITORIES: usize = 4;

/// Prints instances, seconds for tiers, for writing (page included) and for the page alone, then MiB: the process
/// before writing, at its peak, the dataset, the page.
#[test]
#[ignore = "a measurement, which bench/dataset.rs makes with a number of groups in GISTMILL_BENCH_GROUPS"]
fn one_size_is_written() {
    let size = std::env::var("GISTMILL_BENCH_GROUPS").expect("GISTMILL_BENCH_GROUPS is the number of groups");
    let size: usize = size.parse().expect("GISTMILL_BENCH_GROUPS is a number");
    let made_up = MadeUp::new(&[size / REPOSITORIES; REPOSITORIES]);
    let input = made_up.input();
    let before = memory("VmRSS:");
    let started = Instant::now();
    let instances = Assembled::new(&input).unwrap().instances.len();
    let tiers = started.elapsed().as_secs_f64();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("dataset");
    let started = Instant::now();
    crate::testing::write(&directory, &input).unwrap();
    let write = started.elapsed().as_secs_f64();
    let started = Instant::now();
    report::render(&directory).unwrap();
    let page = started.elapsed().as_secs_f64();
    let peak = memory("VmHWM:");
    let page_size = mebibytes(fs::metadata(directory.join("report.html")).unwrap().len());
    assert!(instances > 0 && peak >= before);
    println!(
        "measured: {instances} {tiers} {write} {page} {before} {peak} {} {page_size}",
        bytes_below(&directory)
    );
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn bytes_below(folder: &Path) -> f64 {
    let sizes =
        walkdir::WalkDir::new(folder).into_iter().map(|entry| entry.unwrap().metadata().unwrap().len());
    mebibytes(sizes.sum())
}

/// A line of this process's status, in MiB.
fn memory(name: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kibibytes / 1024.0
}
