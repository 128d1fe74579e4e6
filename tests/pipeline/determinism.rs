//! Two builds from the same inputs, and one build done twice.

use std::path::{Path, PathBuf};

use crate::common::Bench;
use crate::common::dataset::Dataset;

/// Files that the contract wants to be byte-identical.
pub const REPRODUCIBLE: [&str; 4] =
    ["instances.jsonl", "instances.parquet", "cases.parquet", "traces.parquet"];

/// Both datasets have the same bytes where the contract asks for it.
#[track_caller]
pub fn assert_same(one: &Dataset, other: &Dataset) {
    for name in REPRODUCIBLE {
        let (one, other) = (one.bytes(name), other.bytes(name));
        assert!(one == other, "{name} differs: {}", first_difference(&one, &other));
    }
}

/// The first lines that differ.
fn first_difference(one: &[u8], other: &[u8]) -> String {
    let (one, other) = (String::from_utf8_lossy(one), String::from_utf8_lossy(other));
    let pair = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    pair.map_or_else(|| "one is longer".to_owned(), |(one, other)| format!("\n{one}\n{other}"))
}

/// Fast and varied: parameters, odd names, fixtures of every scope; half of what is kept gets published.
const SETTINGS: &str = "per_repo = 8\nseed = 7\n\n[screen]\nattempts = 3";
const TESTS: &str =
    r#"tests = ["tests/test_ids.py", "tests/test_scopes.py", "tests/test_counts.py", "tests/nested"]"#;

fn build_from_nothing(jobs: &str) -> Bench {
    let bench = Bench::with_empty_cache();
    bench.configure(SETTINGS, &["every_verdict"]);
    let config = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
    bench.write_config(&format!("{config}{TESTS}\n"));
    bench.build(&["--jobs", jobs]).with_code(0);
    bench
}

#[test]
fn builds_from_empty_caches_are_byte_identical_whatever_the_number_of_jobs() {
    let (one, three) = std::thread::scope(|scope| {
        let one = scope.spawn(|| build_from_nothing("1"));
        let three = scope.spawn(|| build_from_nothing("3"));
        (one.join().expect("builds"), three.join().expect("builds"))
    });
    assert_eq!(one.dataset().instances().len(), 8);
    assert_same(&one.dataset(), &three.dataset());
}

/// Every file below a folder with its content.
fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter();
    let files =
        entries.map(|entry| entry.expect("can be listed")).filter(|entry| entry.file_type().is_file());
    files.map(|entry| (entry.path().to_owned(), std::fs::read(entry.path()).expect("can be read"))).collect()
}

#[test]
fn a_rebuild_changes_nothing_and_runs_nothing() {
    let bench = Bench::after_a_build();
    let attempts = snapshot(&bench.cache().join("screens"));
    let output = snapshot(&bench.path().join("output"));
    let (first, second) = (Bench::first_build(), bench.build(&[]).with_code(0));
    assert_eq!(second.stdout, first.stdout);
    assert!(snapshot(&bench.cache().join("screens")) == attempts, "the rebuild made attempts");
    assert!(snapshot(&bench.path().join("output")) == output, "the rebuild changed the dataset");
    for stage in ["screen (", "trace (", "cold runs", "pytest collects"] {
        assert!(first.stderr.contains(stage), "the first build shows no `{stage}`:\n{}", first.stderr);
        assert!(!second.stderr.contains(stage), "the rebuild shows `{stage}`:\n{}", second.stderr);
    }
}

#[test]
fn more_attempts_keep_those_that_were_made() {
    let bench = Bench::after_a_build();
    // Further rounds stand before hash seeds and cold runs.
    let rows = || {
        let mut rows = bench.dataset().rows("attempts");
        for row in &mut rows {
            row.as_object_mut().unwrap().remove("number").unwrap();
        }
        rows
    };
    let earlier = rows();
    bench.configure("[screen]\nattempts = 5", &["small_and_good"]);
    bench.build(&[]).with_code(0);
    let later = rows();
    assert!(later.len() > earlier.len());
    for attempt in &earlier {
        assert!(later.contains(attempt), "an attempt is gone: {attempt}");
    }
}
