//! Witnesses: made for a dataset that is there, and in a build.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::common::{Bench, SMALL};

/// A test that cannot be solved: it asks where the code lies.
const ASKS_FOR_ITS_PLACE: &str = "\
import tally


def test_lies_in_tally():
    assert tally.Tally() and tally.__file__.endswith('tally.py')
";

/// A test that takes either side of a branch by chance.
/// Coins that are tossed: all of three runs agree about ten of them once in a million times.
const COINS: usize = 10;
const TOSSES: &str = "\
import random

from coins import heads


def test_tosses():
    assert 0 <= heads([random.random() for _ in range(10)]) <= 10
";

/// A function with two lines for each coin, of which one runs.
fn heads() -> String {
    let coin = |number| {
        format!(
            "    if tosses[{number}] < 0.5:\n        found += 1\n    else:\n        tosses[{number}] = 0\n"
        )
    };
    let coins: Vec<String> = (0..COINS).map(coin).collect();
    format!("def heads(tosses):\n    found = 0\n{}    return found\n", coins.concat())
}

/// A test that leaves a module behind whose import ends the process; in the original it was never imported.
const LEAVES_A_MODULE: &str = "\
import sys
import types

import tally


def test_leaves_a_module():
    sys.modules['ends_all'] = types.ModuleType('ends_all')
    assert tally.Tally()
";
const ENDS_ALL: &str = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n";

/// A ZIP archive of one file that is not compressed. Its checksum is left out: Python does not look at it.
fn archive_of(name: &str, content: &str) -> Vec<u8> {
    let short = |number: usize| u16::try_from(number).expect("is small").to_le_bytes();
    let long = |number: usize| u32::try_from(number).expect("is small").to_le_bytes();
    let about =
        [&[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0], &long(content.len())[..], &long(content.len())];
    let about = [&about.concat(), &short(name.len())[..], &[0, 0]].concat();
    let file = [b"PK\x03\x04", &about[..], name.as_bytes(), content.as_bytes()].concat();
    let listed = [b"PK\x01\x02\x14\0", &about[..], &[0; 14], name.as_bytes()].concat();
    let end =
        [&b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..], &long(listed.len()), &long(file.len()), &[0, 0]].concat();
    [file, listed, end].concat()
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("is a folder").flatten();
    let named = entries.filter(|entry| entry.path().is_file()).map(|entry| {
        (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("is readable"))
    });
    named.collect()
}

fn rows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("is written");
    text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
}

#[test]
fn a_dataset_gets_witnesses_that_the_referee_accepts_and_keeps_the_rest() {
    let bench = Bench::after_a_build();
    let source = format!("trees/{SMALL}={}", bench.path().join("trees").join(SMALL).display());
    let place = bench.path().join("output/trees/1");
    let before = files(&place);
    bench.run(&["witness", "output/trees/1", "--source", &source]).with_code(0);
    let after = files(&place);
    for name in ["groups.parquet", "cases.parquet", "attempts.parquet", "traces.parquet"] {
        assert!(before[name] == after[name], "{name} differs");
    }
    // The card shows the first instance, which has a witness now.
    let card = |files: &BTreeMap<String, Vec<u8>>| String::from_utf8_lossy(&files["README.md"]).into_owned();
    let made = r#""witness": "made""#;
    assert!(!card(&before).contains(made) && card(&after).contains(made));
    let manifest: Value = serde_json::from_slice(&after["manifest.json"]).expect("is JSON");
    let witnesses = files(&place.join("witnesses"));
    let instances = rows(&place.join("instances.jsonl"));
    assert_eq!(instances.len(), 3);
    for instance in &instances {
        let id = instance["instance_id"].as_str().expect("has an id");
        let text = String::from_utf8(witnesses[&format!("{id}.py")].clone()).expect("is text");
        assert!(text.contains("class Tally:") && !text.contains("import tally"), "{text}");
        assert_eq!(text.contains("def total("), instance["test_function"] != "test_adds_up", "{text}");
        assert_eq!(instance["witness"], "made");
        assert_eq!(instance["witness_line_existence"], 1.0, "{text}");
        let lines = text.lines().filter(|line| !line.is_empty()).count();
        assert_eq!(instance["witness_lines"], lines);
        assert_eq!(manifest["files"][format!("witnesses/{id}.py")], instance["witness_sha256"]);
        let folder = bench.path().join("gold").join(id);
        std::fs::create_dir_all(&folder).expect("can be made");
        std::fs::write(folder.join("concise.py"), &text).expect("can be written");
    }
    assert!(witnesses["causes.jsonl"].is_empty());
    bench.run(&["score", "output/trees/1", "gold", "--source", &source]).with_code(0);
    for row in rows(&bench.path().join("scores/trees/1/gold/scores.jsonl")) {
        assert_eq!((&row["fidelity"], &row["injection"]), (&Value::Bool(true), &"equal".into()), "{row}");
    }
    bench.run(&["witness", "output/trees/1", "--source", &source]).with_code(0);
    assert_eq!(files(&place.join("witnesses")), witnesses, "the second time nothing is made anew");
    std::fs::remove_dir_all(bench.cache().join("screens")).expect("is there");
    bench.run(&["witness", "output/trees/1", "--source", &source, "--jobs", "1"]).with_code(0);
    assert_eq!(files(&place.join("witnesses")), witnesses, "what is made anew is the same");
}

#[test]
fn a_build_publishes_only_what_has_a_witness_where_that_is_required() {
    let bench = Bench::new();
    bench.configure("[screen]\nattempts = 2\n[witness]\nmake = true", &[SMALL]);
    let test = bench.path().join("trees").join(SMALL).join("tests/test_place.py");
    std::fs::write(test, ASKS_FOR_ITS_PLACE).expect("can be written");
    bench.build(&[]).with_code(0);
    let place = bench.path().join("output/trees/1");
    let causes = |place: &Path| rows(&place.join("witnesses/causes.jsonl"));
    let known = |place: &Path| {
        let of = rows(&place.join("instances.jsonl"));
        let pair = |row: &Value| (row["test_function"].to_string(), row["witness"].to_string());
        of.iter().map(pair).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(known(&place)["\"test_lies_in_tally\""], "\"none-agrees\"");
    assert!(causes(&place)[0]["evidence"].as_str().is_some_and(|text| text.contains("tally.py")));
    let config = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
    bench.write_config(&config.replace("make = true", "make = true\nrequired = true"));
    bench.build(&[]).with_code(0);
    let published = known(&place);
    assert_eq!(published.len(), 3, "{published:?}");
    assert!(published.values().all(|witness| witness == "\"made\""), "{published:?}");
    assert_eq!(causes(&place)[0]["witness"], "none-agrees", "why it is not published can still be read");
    bench.write_config(&config.replace("make = true", "required = true"));
    let refused = bench.build(&[]).with_code(2);
    assert!(refused.stderr.contains("required asks for witnesses that are not made"), "{}", refused.stderr);
}

#[test]
fn a_witness_has_every_line_that_runs_by_chance() {
    let bench = Bench::new();
    bench.configure("[screen]\nattempts = 2\n[witness]\nmake = true", &[SMALL]);
    let tree = bench.path().join("trees").join(SMALL);
    std::fs::write(tree.join("coins.py"), heads()).expect("can be written");
    std::fs::write(tree.join("tests/test_coins.py"), TOSSES).expect("can be written");
    bench.build(&[]).with_code(0);
    let place = bench.path().join("output/trees/1");
    let instances = rows(&place.join("instances.jsonl"));
    let tosses = instances.iter().find(|row| row["test_function"] == "test_tosses").expect("is published");
    assert_eq!(tosses["witness"], "made");
    let id = tosses["instance_id"].as_str().expect("has an id");
    let text = std::fs::read_to_string(place.join(format!("witnesses/{id}.py"))).expect("is written");
    assert!(text.contains(&heads()), "{text}");
}

#[test]
fn a_module_that_ends_what_imports_it_ahead_stops_no_other_search() {
    let bench = Bench::new();
    bench.configure("[screen]\nattempts = 2\n[witness]\nmake = true", &[SMALL]);
    let tree = bench.path().join("trees").join(SMALL);
    std::fs::write(tree.join("tests/test_leaves.py"), LEAVES_A_MODULE).expect("can be written");
    // No name of an archive: it stays where submissions are tried.
    std::fs::write(tree.join("parts.dat"), archive_of("ends_all.py", ENDS_ALL)).expect("can be written");
    std::fs::write(tree.join("pytest.ini"), "[pytest]\npythonpath = parts.dat\n").expect("can be written");
    bench.build(&[]).with_code(0);
    let instances = rows(&bench.path().join("output/trees/1/instances.jsonl"));
    assert_eq!(instances.len(), 4);
    for instance in &instances {
        assert_eq!(instance["witness"], "made", "{instance}");
    }
}
