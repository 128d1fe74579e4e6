//! Writing a dataset of made-up groups: tiers, tables and page, and how time and memory grow with the number of groups.
//!
//! `cargo bench --profile dev --bench all --features made-up -- dataset [GROUPS…]` (by default 10,000 and 100,000). Each
//! size is measured in a process of its own, so that peak memory is that size's alone.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use gistmill::dataset::assemble::Assembled;
use gistmill::pipeline::publish;
use gistmill::report;
use gistmill::testing::made_up::MadeUp;

type AnyError = Box<dyn std::error::Error>;

const SIZES: [usize; 2] = [10_000, 100_000];
const REPOSITORIES: usize = 4;
/// The argument by which the process measures one size.
const ONE: &str = "--one";

pub fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = crate::arguments();
    let numbers: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    if arguments.iter().any(|argument| argument == ONE) {
        return measure(*numbers.first().ok_or("a number is missing")?);
    }
    let sizes = if numbers.is_empty() { SIZES.to_vec() } else { numbers };
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>10}",
        "groups",
        "instances",
        "tiers s",
        "write s",
        "page s",
        "input MiB",
        "peak MiB",
        "dataset MiB",
        "page MiB"
    );
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for size in sizes {
        let output =
            Command::new(std::env::current_exe()?).args(["dataset", ONE, &size.to_string()]).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let text = String::from_utf8(output.stdout)?;
        let row: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        println!(
            "{size:>8} {:>10} {:>10.2} {:>10.2} {:>10.2} {:>10.0} {:>10.0} {:>12.1} {:>10.1}",
            row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
        );
        rows.push([vec![size as f64], row].concat());
    }
    if let [first, .., last] = rows.as_slice() {
        let growth: Vec<String> = first.iter().zip(last).map(|(a, b)| format!("{:.1}", b / a)).collect();
        println!(
            "growth (groups, instances, tiers, write, page, input, peak, dataset, page): {}",
            growth.join(" ")
        );
    }
    Ok(())
}

/// Prints instances, seconds for tiers, for writing (page included) and for the page alone, then MiB: the process
/// before writing, at its peak, the dataset, the page.
fn measure(size: usize) -> Result<(), AnyError> {
    let made_up = MadeUp::new(&[size / REPOSITORIES; REPOSITORIES]);
    let input = made_up.input();
    let before = memory("VmRSS:")?;
    let started = Instant::now();
    let instances = Assembled::new(&input)?.instances.len();
    let tiers = started.elapsed().as_secs_f64();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let directory = folder.path().join("dataset");
    let started = Instant::now();
    publish(&directory, &input)?;
    let write = started.elapsed().as_secs_f64();
    let started = Instant::now();
    report::render(&directory)?;
    let page = started.elapsed().as_secs_f64();
    let peak = memory("VmHWM:")?;
    let page_size = mebibytes(std::fs::metadata(directory.join("report.html"))?.len());
    println!("{instances} {tiers} {write} {page} {before} {peak} {} {page_size}", bytes_below(&directory)?);
    Ok(())
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn bytes_below(folder: &Path) -> Result<f64, AnyError> {
    let mut sum = 0;
    for entry in walkdir::WalkDir::new(folder) {
        sum += entry?.metadata()?.len();
    }
    Ok(mebibytes(sum))
}

/// A line of this process's status, in MiB.
fn memory(name: &str) -> Result<f64, AnyError> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes / 1024.0)
}
