//! The tables and the manifest of a dataset that somebody else made.

use std::path::Path;

use gistmill::dataset::{Dataset, schema, write};
use gistmill::record::instance::Instance;
use proptest::prelude::*;

use super::{bytes, fuzz};

/// One that can be read.
const MANIFEST: &str = r#"{"format_version": 2, "name": "d", "version": "1", "sources": {}, "files": {}, "counts": {"repositories": {},
    "total": {"cases": 0, "groups": 0, "kept": 0, "published": 0, "dropped": {}, "deselected": 0, "attempts": 0, "tiers": {}}}}"#;

const TOKENS: &[&str] = &[
    "PAR1",
    "\u{15}\u{4}",
    "\0\0\0\0",
    "\u{15}\u{0}\u{15}",
    "&\u{8}",
    "L\u{15}",
    "\u{19}\u{1c}",
    "(\u{b5}/",
    "slug",
    "schema",
    "element",
    "\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}",
    "\u{1}",
    "list",
];

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "null",
    "true",
    "-1",
    "1e400",
    "18446744073709551616",
    "../../x",
    "\"counts\"",
    "\"subsets\"",
    "\"name\"",
    "\"rows\"",
    "\0",
    "é",
];

fn instance(at: usize) -> Instance {
    let text = format!(
        r#"{{"instance_id": "a__b.t-{at:016}", "slug": "a/b", "commit": "c", "source": "s", "license": null, "python": "3.12",
        "group_id": "t.py::t{at}", "test_file": "t.py", "test_class": null, "test_function": "t{at}", "entry_command": "e",
        "case_ids": ["t.py::t{at}"], "n_cases": 1, "trace_length": {at}, "trace_length_package": 1, "trace_length_total": 1,
        "child_calls": 0, "unique_files": 1, "unique_functions": 1, "executed_lines": 3, "import_calls": 0,
        "import_files": ["a.py"], "files": ["a.py"], "trace_stable": true, "tier": "easy", "hard_axes": [], "attempts": 3,
        "flake_bound": 0.5, "worlds": ["base"], "duration_ms": null, "environment": "e", "lock_sha256": "0"}}"#
    );
    serde_json::from_str(&text).expect("is an instance")
}

fn table(rows: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    write::table(folder.path(), "instances", schema::instances(), (0..rows).map(instance))
        .expect("can be written");
    std::fs::read(folder.path().join("instances.parquet")).expect("is there")
}

/// Reads everything that a table can be asked for.
fn read(folder: &Path) {
    let Ok(dataset) = Dataset::open(folder) else { return };
    let part = dataset.table_part("instances", &["slug", "case_ids"], (1, 2));
    drop(part);
    let Ok(table) = dataset.table("instances", &[]) else { return };
    for column in schema::instances() {
        let name = column.name;
        drop((table.texts(name), table.numbers(name), table.reals(name), table.flags(name)));
        drop((table.lists(name), table.number_lists(name)));
    }
}

#[test]
fn tables_of_a_dataset() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("manifest.json"), MANIFEST).expect("can be written");
    fuzz(bytes(vec![table(0), table(3), table(5_000)], TOKENS), |bytes| {
        std::fs::write(folder.path().join("instances.parquet"), bytes).expect("can be written");
        read(folder.path());
    });
}

/// Bytes of the footer alone, where all that is claimed of sizes, places and types is.
#[test]
fn footers_of_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("manifest.json"), MANIFEST).expect("can be written");
    let whole = table(40);
    let length =
        u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().expect("four bytes")) as usize;
    let start = whole.len() - 8 - length;
    let change = (0..length, any::<u8>());
    fuzz(prop::collection::vec(change, 1..4), |changes| {
        let mut bytes = whole.clone();
        for (at, byte) in changes {
            bytes[start + at] = *byte;
        }
        std::fs::write(folder.path().join("instances.parquet"), bytes).expect("can be written");
        read(folder.path());
    });
}

#[test]
fn manifests_and_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = serde_json::to_vec(&instance(1)).expect("can be written");
    fuzz((bytes(vec![MANIFEST.into()], WORDS), bytes(vec![line], WORDS)), |(manifest, lines)| {
        for manifest in [manifest.as_slice(), MANIFEST.as_bytes()] {
            std::fs::write(folder.path().join("manifest.json"), manifest).expect("can be written");
            std::fs::write(folder.path().join("instances.jsonl"), lines).expect("can be written");
            drop(Dataset::open(folder.path()).and_then(|dataset| dataset.instances()));
        }
    });
}
