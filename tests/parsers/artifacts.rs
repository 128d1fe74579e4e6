//! What lies in a cache and may have been damaged, or written by somebody else.

use std::collections::BTreeMap;

use gistmill::record::collected::{Case, Collected, Group};
use gistmill::record::environment::Built;
use gistmill::record::id::RepoSlug;
use gistmill::record::outcome::{Attempt, CaseResult, Exit, Method, Outcome};
use gistmill::record::source::{Origin, Pinned, TagSearch};
use gistmill::record::trace::Traced;
use gistmill::store;
use gistmill::store::journal::Journal;
use gistmill::trace::Traces;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{bytes, fuzz};

const TOKENS: &[&str] = &[
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
    "\n",
    " ",
    "\0",
    "sha256",
    "content",
    "é",
    "0123456789abcdef ",
    "NaN",
    "{\"a\":",
];

fn pinned() -> Pinned {
    Pinned {
        slug: RepoSlug::new("a/b").expect("a slug"),
        origin: Origin::Git { url: "https://host/a".into() },
        commit: "0".repeat(40),
        pinned_at: "2026-01-01T00:00:00Z".into(),
        tree: "/x".into(),
        tree_sha256: "0".repeat(64),
        license: None,
        license_source: None,
        tag: TagSearch::default(),
        notes: vec!["n".into()],
    }
}

fn built() -> Built {
    Built {
        key: "k".into(),
        python: "3.12.1".into(),
        python_reason: "r".into(),
        python_prefix: "/usr".into(),
        venv: "/v".into(),
        tree: "/t".into(),
        recipe_dir: "/r".into(),
        lock_sha256: "0".into(),
        plans: Vec::new(),
        switched_off: Vec::new(),
        env: BTreeMap::new(),
        tests: vec!["tests".into()],
        notes: Vec::new(),
        guesses: Vec::new(),
        undeclared: Vec::new(),
        trial: None,
    }
}

fn collected() -> Collected {
    let case = Case { case_id: "t.py::a[é]".into(), parameters: Some("é".into()), line: Some(3) };
    let group = Group {
        group_id: "t.py::a".into(),
        file: "t.py".into(),
        classes: Vec::new(),
        function: "a".into(),
        cases: vec![case],
        markers: Vec::new(),
        fixtures: Vec::new(),
        flags: Vec::new(),
        entry: None,
    };
    Collected {
        pytest: "8.4.2".into(),
        node_ids: vec!["t.py::a[é]".into()],
        groups: vec![group],
        uncollected: Vec::new(),
        deselected: 0,
        notes: Vec::new(),
    }
}

fn attempt(number: u32) -> Attempt {
    Attempt {
        group_id: "t.py::a".into(),
        world: gistmill::record::world::World::Base,
        number,
        method: Method::Fork,
        round: 0,
        exit: Exit::Signaled { signal: 11 },
        cases: vec![CaseResult {
            case_id: "t.py::a".into(),
            outcome: Outcome::Passed,
            exception: None,
            stdout: "x\n".into(),
            stderr: String::new(),
            message: String::new(),
            replaced: BTreeMap::new(),
            duration_ms: 0.1,
            command: None,
        }],
        connections: Vec::new(),
        leftover: 0,
        raw_output: String::new(),
        duration_ms: 1.5,
        processor_ms: 0.0,
        memory_bytes: None,
        noted_at: 0,
    }
}

/// Whatever the bytes are, what comes out is what was put in, or nothing.
fn sealed<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let sample = store::seal(value).expect("can be sealed");
    fuzz(bytes(vec![sample], TOKENS), |bytes| {
        if let Some(found) = store::unseal::<T>(bytes) {
            assert_eq!(&found, value);
        }
    });
}

#[test]
fn pinned_json() {
    sealed(&pinned());
}

#[test]
fn built_json() {
    sealed(&built());
}

#[test]
fn collected_json() {
    sealed(&collected());
}

/// A journal of five entries as it lies on the disk.
fn journal() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let (mut journal, _) = Journal::open::<Attempt>(&path).expect("opens");
    for number in 0..5 {
        journal.append(&attempt(number)).expect("appends");
    }
    journal.sync().expect("syncs");
    std::fs::read(path).expect("can be read")
}

#[test]
fn journals() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    fuzz(bytes(vec![journal()], TOKENS), |bytes| {
        for entry in std::fs::read_dir(folder.path()).expect("can be listed").flatten() {
            std::fs::remove_file(entry.path()).expect("can be removed");
        }
        std::fs::write(&path, bytes).expect("can be written");
        let (mut journal, entries) = Journal::open::<Attempt>(&path).expect("opens");
        for entry in &entries {
            assert_eq!(entry, &attempt(entry.number), "an entry that was never written");
        }
        journal.append(&attempt(7)).expect("appends");
        drop(journal);
        let (_, again) = Journal::open::<Attempt>(&path).expect("opens");
        assert_eq!(again.len(), entries.len() + 1);
    });
}

#[test]
fn totals_and_calls_of_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = serde_json::json!({
        "group_id": "t.py::a", "totals": {"trace_length": 1, "package_calls": 1, "files": ["a.py"], "unique_functions": 1, "executed_lines": null},
        "import_calls": 0, "import_files": [], "threads_seen": false, "troubles": [], "complete": true, "code_sha256": "0",
        "second": {"total_calls": 1, "differing": [], "troubles": [], "starts_threads": false, "complete": true}
    });
    let path = folder.path().join("totals");
    let (mut journal, _) = Journal::open::<Traced>(&path).expect("opens");
    journal.append(&line).expect("appends");
    let sample = std::fs::read(&path).expect("can be read");
    let calls =
        folder.path().join(format!("{}.json.gz", &gistmill::record::id::hash_parts(&["t.py::a"])[..24]));
    let compressed = {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"{\"sha256\":\"0\",\"content\":{}}").expect("compresses");
        encoder.finish().expect("compresses")
    };
    fuzz((bytes(vec![sample], TOKENS), bytes(vec![compressed], TOKENS)), |(totals, gz)| {
        for entry in std::fs::read_dir(folder.path()).expect("can be listed").flatten() {
            std::fs::remove_file(entry.path()).expect("can be removed");
        }
        std::fs::write(&path, totals).expect("can be written");
        std::fs::write(&calls, gz).expect("can be written");
        let mut traces = Traces::open(folder.path()).expect("opens");
        let forgotten = traces.forget_damaged(["t.py::a"].into_iter()).expect("reads");
        assert!(forgotten || traces.totals("t.py::a").is_none(), "calls that nobody wrote count as a trace");
    });
}

#[test]
fn tables_of_a_dataset() {
    let folder = tempfile::tempdir().expect("a folder");
    let samples: Vec<Vec<u8>> = vec![b"PAR1\x15\x04PAR1".to_vec(), vec![0; 64]];
    fuzz(bytes(samples, TOKENS), |bytes| {
        std::fs::write(folder.path().join("manifest.json"), bytes).expect("can be written");
        std::fs::write(folder.path().join("groups.parquet"), bytes).expect("can be written");
        assert!(gistmill::report::render(folder.path()).is_err(), "that is no dataset");
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sealing_and_unsealing_is_nothing(value in prop::collection::btree_map(".*", prop::collection::vec(".*", 0..4), 0..6)) {
        let bytes = store::seal(&value).expect("can be sealed");
        prop_assert_eq!(store::unseal::<BTreeMap<String, Vec<String>>>(&bytes), Some(value));
    }
}
