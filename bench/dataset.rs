//! Writing a dataset of made-up groups: tiers, tables and page, and how time and memory grow with the number of groups.
//!
//! `cargo bench --profile dev --bench all -- dataset [GROUPS…]` (by default 10,000 and 100,000). The groups are those of the
//! library's own tests, and a test that is ignored measures one size, in a process of its own, so that peak memory is that
//! size's alone.

use std::process::Command;

use crate::common::AnyError;

const SIZES: [usize; 2] = [10_000, 100_000];
/// The test that measures one size, and how it is told which.
const TEST: &str = "dataset::tests::growth::one_size_is_written";
const SIZE: &str = "GISTMILL_BENCH_GROUPS";

pub fn main() -> Result<(), AnyError> {
    let numbers: Vec<usize> =
        crate::arguments().iter().filter_map(|argument| argument.parse().ok()).collect();
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
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--quiet", "--lib"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        cargo.args(["--", "--ignored", "--exact", "--nocapture", TEST]).env(SIZE, size.to_string());
        let output = cargo.output()?;
        let text = String::from_utf8(output.stdout)?;
        let Some(line) = text.lines().find_map(|line| line.split_once("measured: ")) else {
            return Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)).into());
        };
        let row: Vec<f64> = line.1.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
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
