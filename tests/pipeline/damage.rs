//! Artifacts in the cache with other bytes than gistmill wrote: recognised, kept aside, made again.

use std::path::{Path, PathBuf};

use super::determinism::assert_same;
use crate::common::Bench;
use crate::common::dataset::Dataset;

/// One artifact of every kind: a pattern of path segments below the cache, where `*` is the first of all in order, and
/// what is set aside when it is damaged: so many segments of it. What a hash of files protects has a byte flipped, since
/// its size stays; of JSON, a part is cut off (`tests/parsers` damages that everywhere).
const KINDS: [(&str, usize, Damage); 12] = [
    ("sources/*/pinned.json", 2, Damage::Cut),
    ("sources/*/tree/tally.py", 2, Damage::Flip),
    ("environments/*/built.json", 2, Damage::Cut),
    ("environments/*/contents.json", 2, Damage::Cut),
    ("environments/*/venv/pyvenv.cfg", 2, Damage::Flip),
    ("environments/*/tree/tally.py", 2, Damage::Flip),
    ("environments/*/recipe/requirements.lock", 2, Damage::Flip),
    ("screens/*/collected.json", 3, Damage::Cut),
    ("screens/*/traces/*.json.gz", 4, Damage::Flip),
    ("runner/*/gistmill_runner/stages.py", 4, Damage::Flip),
    ("clock/*/libgistmill_clock.so", 3, Damage::Flip),
    ("tools/interpreters.json", 2, Damage::Cut),
];
/// Journals: a flipped byte is damage, while a cut is what a kill leaves.
const JOURNALS: [&str; 2] = ["screens/*/attempts", "screens/*/traces/totals"];

/// Paths of the cache that fit a pattern.
fn find(cache: &Path, pattern: &str) -> PathBuf {
    pattern.split('/').fold(cache.to_owned(), |folder, segment| {
        let Some(end) = segment.strip_prefix('*') else { return folder.join(segment) };
        let entries =
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut names: Vec<PathBuf> = entries
            .map(|entry| entry.expect("can be listed").path())
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.ends_with(end) && !name.contains(".damaged-") && !name.starts_with('.')
            })
            .filter(|path| !end.is_empty() || path.is_dir())
            .collect();
        names.sort();
        names.into_iter().next().unwrap_or_else(|| panic!("nothing fits {pattern} in {}", folder.display()))
    })
}

/// How many were set aside of what the first `segments` of a pattern stand for.
fn aside(cache: &Path, pattern: &str, segments: usize) -> usize {
    let parts: Vec<&str> = pattern.split('/').take(segments).collect();
    let folder = find(cache, &parts[..segments - 1].join("/"));
    let end = parts[segments - 1].trim_start_matches('*');
    let entries = std::fs::read_dir(folder).expect("can be listed").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(&format!("{end}.damaged-"))).count()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Flip,
    Cut,
}

fn damage(path: &Path, how: Damage) {
    let mut bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let middle = bytes.len() / 2;
    match how {
        Damage::Flip => bytes[middle] ^= 0x04,
        Damage::Cut => bytes.truncate(middle),
    }
    std::fs::write(path, bytes).expect("can be written");
}

fn build(bench: &Bench) -> String {
    bench.build(&[]).with_code(0).stderr
}

#[test]
fn every_kind_of_artifact_that_is_damaged_is_recognised_set_aside_and_made_again() {
    let bench = Bench::after_a_build();
    let first = bench.path().join("first");
    std::fs::rename(bench.path().join("output"), &first).expect("can be moved");
    let first = Dataset::at(&first.join("trees/1"));
    let cache = bench.cache();
    let mut left = KINDS.to_vec();
    // What lies in one folder is damaged in turns, everything else at once.
    while !left.is_empty() {
        let mut turn: Vec<(&str, usize, Damage)> = Vec::new();
        left.retain(|(pattern, segments, how)| {
            let place = |pattern: &str, segments: usize| {
                pattern.split('/').take(segments).collect::<Vec<_>>().join("/")
            };
            let taken =
                turn.iter().any(|(other, count, _)| place(other, *count) == place(pattern, *segments));
            if !taken {
                turn.push((pattern, *segments, *how));
            }
            taken
        });
        let before: Vec<usize> =
            turn.iter().map(|(pattern, segments, _)| aside(&cache, pattern, *segments)).collect();
        for (pattern, _, how) in &turn {
            damage(&find(&cache, pattern), *how);
        }
        let said = build(&bench);
        for ((pattern, segments, how), before) in turn.iter().zip(before) {
            assert_eq!(aside(&cache, pattern, *segments), before + 1, "{pattern}, {how:?}:\n{said}");
        }
        assert!(said.contains(" is damaged: set aside as "), "{said}");
        assert_same(&first, &bench.dataset());
    }
}

#[test]
fn damaged_journals_are_kept_aside_and_their_attempts_made_again() {
    let bench = Bench::after_a_build();
    let attempts = bench.dataset().rows("attempts").len();
    let first = bench.path().join("first");
    std::fs::rename(bench.path().join("output"), &first).expect("can be moved");
    let first = Dataset::at(&first.join("trees/1"));
    for how in [Damage::Flip, Damage::Cut] {
        for journal in JOURNALS {
            damage(&find(&bench.cache(), journal), how);
        }
        let said = build(&bench);
        for journal in JOURNALS {
            let segments = journal.split('/').count();
            assert_eq!(
                aside(&bench.cache(), journal, segments),
                1,
                "a cut is no damage: {journal}, {how:?}\n{said}"
            );
        }
        assert_same(&first, &bench.dataset());
        assert_eq!(bench.dataset().rows("attempts").len(), attempts);
    }
}

#[test]
fn a_damaged_dataset_is_named_and_replaced() {
    let bench = Bench::after_a_build();
    let folder = bench.dataset().folder;
    let manifest = || {
        let mut manifest = bench.dataset().manifest();
        // What it cost is as damaged as the manifest.
        manifest.as_object_mut().expect("an object").remove("spent");
        manifest
    };
    let before = manifest();
    for name in ["manifest.json", "groups.parquet", "instances.parquet", "cases.parquet"] {
        for how in [Damage::Flip, Damage::Cut] {
            damage(&folder.join(name), how);
            let place = folder.display().to_string();
            for arguments in
                [&["report", &place][..], &["show", "tally", "--dataset", &place], &["diff", &place, &place]]
            {
                let ended = bench.run(arguments);
                let known = [Some(0), Some(2), Some(3)].contains(&ended.code());
                assert!(known && !ended.stderr.contains("panicked"), "{arguments:?}: {ended:?}");
                if ended.code() != Some(0) {
                    assert!(ended.stderr.contains(name), "{name}, {how:?}, {arguments:?}: {}", ended.stderr);
                }
            }
            bench.build(&[]).with_code(0);
            assert_eq!(manifest(), before, "{name}, {how:?}");
        }
    }
}
