//! How many flaky groups screening finds, against what arithmetic says.
//!
//! `cargo bench --profile dev --bench all -- flake_detection [GROUPS]` makes a tree of `GROUPS` (200) groups for each of
//! several failure rates, whose outcomes the system draws anew in every attempt, and as many that never fail; builds it
//! with the default number of attempts and every group deepened; and prints what became of them.
//!
//! With n attempts that all have to agree, a group that fails at rate p is dropped with probability 1 − (1 − p)ⁿ. A
//! group that fails in the first two attempts is dropped as one that fails and gets no more, so it is found to be flaky
//! with probability 1 − p² − (1 − p)ⁿ; if all n attempts were made whatever the first ones show, that would be 1 − pⁿ −
//! (1 − p)ⁿ. What is dropped with a cause of its own (`depends-on-…`) although only chance is at work is counted apart:
//! it is dropped rightly, under a wrong name.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use dataset::{Dataset, number, text};
use serde_json::Value;

#[path = "../tests/common/dataset.rs"]
#[allow(dead_code, reason = "only tables are read here")]
mod dataset;

type AnyError = Box<dyn std::error::Error>;

/// Failures in a thousand attempts.
const RATES: [u32; 3] = [20, 100, 500];
/// Groups of each rate.
const GROUPS: usize = 200;
/// Groups that never fail: none may be dropped, and they get all attempts.
const STEADY: u32 = 0;

const PROJECT: &str = r#"[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "dice"
version = "1"
license = { text = "MIT" }

[project.optional-dependencies]
test = ["pytest>=7"]

[tool.setuptools]
py-modules = ["dice"]
"#;

const PACKAGE: &str = r#""""Dice that the system throws."""

import os


def falls_through(per_mille):
    """Whether something happens that does so this often in a thousand times."""
    return int.from_bytes(os.urandom(8), "big") % 1000 < per_mille
"#;

pub fn main() -> Result<(), AnyError> {
    let groups = crate::arguments().into_iter().find_map(|argument| argument.parse().ok()).unwrap_or(GROUPS);
    let folder = tempfile::Builder::new().prefix("flakes-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    write_tree(&folder.path().join("dice"), groups)?;
    std::fs::write(
        folder.path().join("repos.toml"),
        "[dataset]\nname = \"flakes\"\nversion = \"1\"\nper_repo = 0\n\n[[repo]]\nslug = \"trees/dice\"\npath = \"dice\"\n",
    )?;
    build(folder.path())?;
    let dataset = Dataset::at(&folder.path().join("output/flakes/1"));
    print(&dataset.rows("groups"))
}

fn write_tree(tree: &Path, groups: usize) -> Result<(), AnyError> {
    std::fs::create_dir_all(tree.join("tests"))?;
    std::fs::write(tree.join("pyproject.toml"), PROJECT)?;
    std::fs::write(tree.join("dice.py"), PACKAGE)?;
    for rate in RATES.into_iter().chain([STEADY]) {
        let mut tests = String::from("from dice import falls_through\n");
        for group in 0..groups {
            write!(tests, "\n\ndef test_{group}():\n    assert not falls_through({rate})\n")?;
        }
        std::fs::write(tree.join(format!("tests/test_{rate}.py")), tests)?;
    }
    Ok(())
}

/// Builds with what all other benchmarks have cached.
fn build(folder: &Path) -> Result<(), AnyError> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench/cache");
    let output = Command::new(env!("CARGO_BIN_EXE_gistmill"))
        .args(["build", "repos.toml"])
        .env("GISTMILL_CACHE_DIR", cache)
        .current_dir(folder)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}

/// What became of the groups of one rate.
#[derive(Debug, Default)]
struct Fates {
    groups: u32,
    flaky: u32,
    fails: u32,
    misnamed: u32,
    /// Dropped for any other reason.
    other: u32,
}

impl Fates {
    fn of(rows: &[Value], rate: u32) -> Self {
        let mut fates = Fates::default();
        let file = format!("tests/test_{rate}.py::");
        for row in rows.iter().filter(|row| text(&row["group_id"]).starts_with(&file)) {
            fates.groups += 1;
            match row["cause"].as_str() {
                None => {}
                Some(cause) if cause.starts_with("nondeterministic-") => fates.flaky += 1,
                Some("fails") => fates.fails += 1,
                Some(cause) if cause.starts_with("depends-on-") => fates.misnamed += 1,
                Some(_) => fates.other += 1,
            }
        }
        fates
    }

    fn dropped(&self) -> u32 {
        self.flaky + self.fails + self.misnamed + self.other
    }
}

fn print(rows: &[Value]) -> Result<(), AnyError> {
    let steady = format!("tests/test_{STEADY}.py::");
    let full = rows.iter().filter(|row| text(&row["group_id"]).starts_with(&steady) && row["kept"] == true);
    let attempts = full.map(|row| number(&row["attempts"])).max().ok_or("every steady group is dropped")?;
    let n = i32::try_from(attempts)?;
    println!("a group that is kept has {n} attempts");
    println!(
        "{:>6} {:>7} {:>8} {:>16} {:>7} {:>15} {:>15} {:>7} {:>11} {:>6}",
        "p",
        "groups",
        "dropped",
        "expected",
        "flaky",
        "expected",
        "without stops",
        "fails",
        "depends-on",
        "other"
    );
    for rate in RATES.into_iter().chain([STEADY]) {
        let (p, fates) = (f64::from(rate) / 1000.0, Fates::of(rows, rate));
        let all_pass = (1.0 - p).powi(n);
        println!(
            "{p:>6.3} {:>7} {:>8} {:>16} {:>7} {:>15} {:>15} {:>7} {:>11} {:>6}",
            fates.groups,
            fates.dropped(),
            binomial(fates.groups, 1.0 - all_pass),
            fates.flaky,
            binomial(fates.groups, 1.0 - p * p - all_pass),
            binomial(fates.groups, 1.0 - p.powi(n) - all_pass),
            fates.fails,
            fates.misnamed,
            fates.other,
        );
    }
    Ok(())
}

/// Mean and standard deviation of how many of some groups something happens to.
fn binomial(groups: u32, probability: f64) -> String {
    let mean = f64::from(groups) * probability;
    format!("{mean:.1} ± {:.1}", (mean * (1.0 - probability)).max(0.0).sqrt())
}
