//! One build of `trees/every_verdict`, held against its labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

use crate::common::dataset::{Dataset, number, text, texts};
use crate::common::labels::{KEPT, Label, Labels};
use crate::common::{Bench, Ended};

/// Agreeing attempts of what is published:
/// in the base world, where everything differs, under further hash seeds, and cold.
const ATTEMPTS: u64 = 3 + 1 + 4 + 1;
/// K of the top subset.
const HARD_PER_AXIS: usize = 3;

const SETTINGS: &str = r#"per_repo = 0
hard_per_axis = 3

[screen]
attempts = 3
parity_groups = 100
case_timeout = "15s"
group_timeout = "60s"
"#;

pub struct Built {
    pub bench: Bench,
    pub ended: Ended,
}

impl Built {
    pub fn dataset(&self) -> Dataset {
        self.bench.dataset()
    }
}

/// The build that these tests look at.
#[track_caller]
pub fn built() -> &'static Built {
    static BUILT: LazyLock<Built> = LazyLock::new(|| {
        let bench = Bench::new();
        bench.configure(SETTINGS, &["every_verdict"]);
        let ended = bench.build(&[]);
        Built { bench, ended }
    });
    let Ended { status, stdout, stderr } = &BUILT.ended;
    assert!(status.success(), "{stdout}\n{stderr}");
    &BUILT
}

static LABELS: LazyLock<Labels> = LazyLock::new(|| Labels::read("every_verdict"));

/// Cases of all groups.
fn n_cases() -> usize {
    LABELS.iter().map(|(group, label)| label.case_ids(group).len()).sum()
}

fn kept() -> impl Iterator<Item = (&'static str, &'static Label)> {
    LABELS.iter().filter(|(_, label)| label.is_kept())
}

#[test]
fn what_another_build_could_see_otherwise_is_no_golden_observation() {
    let nondeterministic = LABELS.iter().filter(|(_, one)| one.expected().starts_with("nondeterministic-"));
    let nondeterministic: BTreeSet<&str> = nondeterministic.map(|(group, _)| group).collect();
    let rows = built().dataset().rows("cases");
    let (of_those, others): (Vec<&Value>, Vec<&Value>) =
        rows.iter().partition(|row| nondeterministic.contains(text(&row["group_id"])));
    assert!(of_those.len() >= nondeterministic.len(), "{of_those:#?}");
    for row in of_those {
        assert!(row["outcome"].is_null() && row["stdout"].is_null(), "{row}");
    }
    assert!(others.iter().any(|row| row["outcome"] == "failed"), "what always fails is told");
}

#[test]
fn every_group_has_the_verdict_that_it_is_labelled_with() {
    let rows = built().dataset().rows("groups");
    let verdict = |row: &Value| if row["kept"] == true { KEPT } else { text(&row["cause"]) }.to_owned();
    let found: BTreeMap<String, String> =
        rows.iter().map(|row| (text(&row["group_id"]).to_owned(), verdict(row))).collect();
    let wrong = LABELS.disagreements(&found, true);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(rows.len(), found.len(), "a group stands twice");
}

#[test]
fn case_ids_arrive_whole_and_in_the_order_of_pytest() {
    let rows = built().dataset().rows("cases");
    for (group, label) in LABELS.iter() {
        let of_group = rows.iter().filter(|row| row["group_id"] == group);
        let found: Vec<&str> = of_group.map(|row| text(&row["case_id"])).collect();
        assert_eq!(found, label.case_ids(group), "{group}");
    }
    assert_eq!(rows.len(), n_cases());
}

#[test]
fn a_parameter_that_is_a_machine_path_is_flagged() {
    let flagged: Vec<String> = built()
        .dataset()
        .rows("groups")
        .iter()
        .filter(|row| texts(&row["flags"]).contains(&"machine-path-in-id"))
        .map(|row| text(&row["group_id"]).to_owned())
        .collect();
    assert_eq!(flagged, ["tests/test_ids.py::test_machine_path"]);
}

#[test]
fn every_dropped_group_has_evidence_that_names_what_happened() {
    let dataset = built().dataset();
    for (group, label) in LABELS.iter().filter(|(_, label)| !label.is_kept()) {
        let row = dataset.group(group);
        let evidence: Value = serde_json::from_str(text(&row["evidence"])).expect("evidence is JSON");
        let shown = format!("{} {} {}", evidence["summary"], evidence["seen"], evidence["excerpt"]);
        assert!(!label.evidence.is_empty(), "{group}: nothing is asked of its evidence");
        for part in &label.evidence {
            assert!(shown.contains(part), "{group}: `{part}` is not in {evidence:#}");
        }
        let command = text(&evidence["command"]);
        if evidence["seen"].is_null() {
            assert_eq!(command, format!("python -m pytest {group}"));
        } else {
            let replay = format!("gistmill replay {group} --world base ");
            assert!(command.starts_with(&replay), "what attempts show is shown by attempts: {command}");
        }
    }
}

#[test]
fn all_kept_groups_are_published_when_there_is_no_limit() {
    let instances = built().dataset().instances();
    let found: Vec<&str> = instances.iter().map(|row| text(&row["group_id"])).collect();
    let mut expected: Vec<&str> = kept().map(|(group, _)| group).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn instances_say_what_runs_where_and_how_often_it_agreed() {
    let dataset = built().dataset();
    let lock = dataset.bytes("environments/trees__every_verdict/requirements.lock");
    let lock_hash = gistmill::record::id::sha256_hex(&lock);
    let manifest = dataset.manifest();
    for row in dataset.instances() {
        let group = text(&row["group_id"]);
        let label = kept().find(|(known, _)| *known == group).expect("is labelled").1;
        let case_ids = label.case_ids(group);
        assert_eq!(row["slug"], "trees/every_verdict");
        assert_eq!(row["source"], "path:every_verdict");
        assert_eq!(row["license"], "MIT");
        assert_eq!(row["entry_command"], format!("python -m pytest {group}"));
        assert_eq!(texts(&row["case_ids"]), case_ids);
        assert_eq!(number(&row["n_cases"]) as usize, case_ids.len());
        assert_eq!(row["test_file"], group.split("::").next().expect("has a file"));
        assert_eq!(row["test_function"], group.rsplit("::").next().expect("has a function"));
        assert_eq!(number(&row["attempts"]), ATTEMPTS, "{group}");
        let bound = row["flake_bound"].as_f64().expect("a number");
        assert!((bound - (1.0 - 0.05_f64.powf(1.0 / ATTEMPTS as f64))).abs() < 1e-12, "{bound}");
        let worlds = ["base", "everything", "hash-seed-1", "hash-seed-2", "hash-seed-3", "hash-seed-4"];
        assert_eq!(texts(&row["worlds"]), worlds);
        assert_eq!(row["trace_stable"], true, "{group}");
        assert_eq!(row["duration_ms"], Value::Null);
        assert_eq!(row["environment"], "environments/trees__every_verdict");
        assert_eq!(row["lock_sha256"], lock_hash);
        assert_eq!(row["python"], manifest["environments"]["trees/every_verdict"]["python"]);
    }
    let class = |group: &str| {
        let found = dataset.instances().into_iter().find(|row| row["group_id"] == group);
        found.expect("is published")["test_class"].clone()
    };
    assert_eq!(
        class("tests/test_scopes.py::TestOuter::TestInner::test_in_two_classes"),
        "TestOuter::TestInner"
    );
    assert_eq!(class("tests/test_ends.py::test_before"), Value::Null);
}

#[test]
fn calls_are_those_that_a_person_counts() {
    let dataset = built().dataset();
    let (instances, traces) = (dataset.instances(), dataset.rows("traces"));
    let counted: Vec<_> = LABELS.iter().filter(|(_, label)| !label.calls.is_empty()).collect();
    assert_eq!(counted.len(), 13);
    for (group, label) in counted {
        let split = |(place, count): (&'static String, &u64)| {
            let (file, function) = place.split_once("::").expect("a file and a function");
            (file, function, *count)
        };
        let calls: Vec<(&str, &str, u64)> = label.calls.iter().map(split).collect();
        let instance = instances.iter().find(|row| row["group_id"] == group).expect("is published");
        let of_instance = traces.iter().filter(|row| row["instance_id"] == instance["instance_id"]);
        let found: BTreeSet<_> = of_instance
            .map(|row| (text(&row["file"]), text(&row["function"]), number(&row["calls"])))
            .collect();
        assert_eq!(found, calls.iter().copied().collect(), "{group}");
        let total: u64 = calls.iter().map(|(.., count)| count).sum();
        let package: u64 =
            calls.iter().filter(|(file, ..)| file.starts_with("pantry/")).map(|(.., count)| count).sum();
        let files: BTreeSet<&str> = calls.iter().map(|(file, ..)| *file).collect();
        assert_eq!(number(&instance["trace_length"]), total, "{group}");
        assert_eq!(number(&instance["trace_length_package"]), package, "{group}");
        assert!(number(&instance["trace_length_total"]) >= total, "{group}");
        assert_eq!(number(&instance["unique_functions"]) as usize, calls.len(), "{group}");
        assert_eq!(texts(&instance["files"]), files.iter().copied().collect::<Vec<_>>(), "{group}");
        assert_eq!(number(&instance["unique_files"]) as usize, files.len(), "{group}");
    }
}

#[test]
fn calls_are_in_the_order_in_which_functions_were_first_called() {
    let dataset = built().dataset();
    let instance = dataset.group("tests/test_counts.py::test_methods")["instance_id"].clone();
    let rows = dataset.rows("traces");
    let mut of_instance: Vec<&Value> = rows.iter().filter(|row| row["instance_id"] == instance).collect();
    of_instance.sort_by_key(|row| number(&row["order"]));
    let functions: Vec<&str> = of_instance.iter().map(|row| text(&row["function"])).collect();
    assert_eq!(functions, ["test_methods", "Square.__init__", "Square.area", "area"]);
}

#[test]
fn importing_is_counted_apart_from_running() {
    let dataset = built().dataset();
    let row = dataset.group("tests/nested/test_nested.py::test_two_conftests");
    let expected = [
        "pantry/__init__.py",
        "pantry/shapes.py",
        "pantry/words.py",
        "tests/conftest.py",
        "tests/nested/__init__.py",
        "tests/nested/conftest.py",
        "tests/nested/helper.py",
        "tests/nested/test_nested.py",
    ];
    assert_eq!(texts(&row["import_files"]), expected);
    assert_eq!(number(&row["import_calls"]), 0, "no function is called while these modules are imported");
}

#[test]
fn golden_output_is_that_of_the_entry_command_with_machine_details_replaced() {
    let rows = built().dataset().rows("cases");
    let printed: Vec<(String, &String)> = LABELS
        .iter()
        .flat_map(|(group, label)| {
            label.stdout.iter().map(move |(end, text)| (format!("{group}{end}"), text))
        })
        .collect();
    assert_eq!(printed.len(), 11);
    for (case, printed) in printed {
        let row = rows.iter().find(|row| row["case_id"] == case).expect("the case is there");
        assert_eq!(row["stdout"], *printed, "{case}");
    }
}

#[test]
fn golden_outcomes_are_given_case_by_case() {
    let rows = built().dataset().rows("cases");
    let group = "tests/test_outcomes.py::test_passes_beside_skipped_and_expected_failures";
    let of_group = rows.iter().filter(|row| row["group_id"] == group);
    let found: Vec<(&str, Option<&str>)> =
        of_group.map(|row| (text(&row["outcome"]), row["exception"].as_str())).collect();
    assert_eq!(found, [("passed", None), ("skipped", None), ("xfailed", Some("builtins.AssertionError"))]);
}

#[test]
fn every_attempt_is_a_row() {
    let rows = built().dataset().rows("attempts");
    for (group, label) in LABELS.iter() {
        let of_group: Vec<&Value> = rows.iter().filter(|row| row["group_id"] == group).collect();
        let (fork, cold): (Vec<&Value>, Vec<&Value>) =
            of_group.iter().partition(|row| row["method"] == "fork");
        let expected = match label.expected() {
            KEPT => (3 + 1 + 4, 1),
            // It passes everywhere; only its trace tells.
            "no-repository-code" => (2 + 1, 1),
            // What fails twice may be chance.
            "fails" | "errors" => (2 + 3, 1),
            _ if label.is_attempted(group) => (2, 1),
            _ => (0, 0),
        };
        assert_eq!((fork.len(), cold.len()), expected, "{group}");
        let mut numbers: Vec<u64> = of_group.iter().map(|row| number(&row["number"])).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..of_group.len() as u64).collect::<Vec<_>>(), "{group}");
        let rounds: BTreeSet<u64> = fork.iter().map(|row| number(&row["round"])).collect();
        assert!(fork.is_empty() || rounds.len() >= 2, "{group}: one interpreter made all attempts");
    }
}

#[test]
fn processes_that_a_test_leaves_behind_are_counted_and_ended() {
    let rows = built().dataset().rows("attempts");
    for row in rows.iter().filter(|row| row["method"] == "fork") {
        let leaves = row["group_id"] == "tests/test_looks_suspicious.py::test_leaves_a_daemon_behind";
        assert_eq!(number(&row["leftover"]), u64::from(leaves), "{row}");
    }
    let survives = std::fs::read_dir("/proc").expect("/proc is there").flatten().any(|entry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|text| text == b"sleep\x0086421\x00")
    });
    assert!(!survives, "the daemon of a test survives the build");
}

#[test]
fn attempts_to_reach_the_network_are_noted_whatever_came_of_them() {
    let rows = built().dataset().rows("attempts");
    for row in rows.iter().filter(|row| row["method"] == "fork") {
        let group = text(&row["group_id"]);
        let reaches =
            group.ends_with("test_needs_the_network") || group.ends_with("test_copes_without_the_network");
        let expected: &[&str] = if reaches { &["192.0.2.1:80"] } else { &[] };
        assert_eq!(texts(&row["connections"]), expected, "{group}");
    }
}

#[test]
fn the_fork_tree_agrees_with_cold_runs_of_the_entry_command_whatever_the_verdict() {
    let parity = built().dataset().manifest()["parity"]["trees/every_verdict"].clone();
    let attempted = LABELS.iter().filter(|(group, label)| label.is_attempted(group)).count();
    assert_eq!(number(&parity["compared"]) as usize, attempted);
    let differing = parity["differing"].as_array().expect("a list");
    let groups: Vec<&str> = differing.iter().map(|row| text(&row["group_id"])).collect();
    assert_eq!(groups, ["tests/test_differs.py::test_tosses_coins"], "{parity:#}");
}

/// Rank in percent, the slow way: a value beats the smaller ones, and none of those that equal it.
fn rank(value: u64, all: &[u64]) -> f64 {
    let beaten = all.iter().filter(|other| **other < value).count();
    100.0 * beaten as f64 / all.len() as f64
}

#[test]
fn tiers_follow_from_the_higher_rank_of_the_two_axes() {
    let instances = built().dataset().instances();
    let axis = |name: &str| -> Vec<u64> { instances.iter().map(|row| number(&row[name])).collect() };
    let (lengths, files) = (axis("trace_length"), axis("unique_files"));
    let mut seen = BTreeSet::new();
    for (at, row) in instances.iter().enumerate() {
        let rank = rank(lengths[at], &lengths).max(rank(files[at], &files));
        let expected = if rank >= 80.0 {
            "hard"
        } else if rank >= 50.0 {
            "medium"
        } else {
            "easy"
        };
        assert_eq!(row["tier"], expected, "{} of rank {rank}", row["group_id"]);
        seen.insert(expected);
    }
    assert_eq!(seen.len(), 3, "the tree has instances of every tier");
}

#[test]
fn the_top_subset_is_the_union_of_the_hardest_on_each_axis() {
    let instances = built().dataset().instances();
    for axis in ["trace_length", "unique_files"] {
        let mut order: Vec<(u64, &str)> =
            instances.iter().map(|row| (number(&row[axis]), text(&row["instance_id"]))).collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        let expected: BTreeSet<&str> = order.iter().take(HARD_PER_AXIS).map(|(_, id)| *id).collect();
        let marked = instances.iter().filter(|row| texts(&row["hard_axes"]).contains(&axis));
        assert_eq!(marked.map(|row| text(&row["instance_id"])).collect::<BTreeSet<_>>(), expected, "{axis}");
    }
}

#[test]
fn the_manifest_counts_and_hashes_what_lies_beside_it() {
    let dataset = built().dataset();
    let manifest = dataset.manifest();
    let files = manifest["files"].as_object().expect("files are listed");
    for name in ["instances.jsonl", "instances.parquet", "groups.parquet", "cases.parquet", "README.md"] {
        assert!(files.contains_key(name), "{name} is not listed");
    }
    for (name, hash) in files {
        assert_eq!(*hash, gistmill::record::id::sha256_hex(&dataset.bytes(name)), "{name}");
    }
    for table in ["instances", "groups", "cases", "attempts", "traces"] {
        assert_eq!(number(&manifest["counts"]["rows"][table]) as usize, dataset.rows(table).len(), "{table}");
    }
    assert_eq!(manifest["isolation"]["kind"], "namespaces");
    assert_eq!(manifest["failed"], serde_json::json!([]));
}

#[test]
fn nothing_of_this_machine_stands_in_the_dataset() {
    let built = built();
    let dataset = built.dataset();
    let folder = built.bench.path().to_string_lossy().into_owned();
    let home = std::env::var("HOME").expect("HOME is set");
    for name in dataset.manifest()["files"].as_object().expect("files are listed").keys() {
        let bytes = dataset.bytes(name);
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(&folder), "{name} names the folder of the build");
        assert!(!text.contains(&format!("{home}/")), "{name} names the user's home");
    }
}

#[test]
fn the_closing_table_adds_up() {
    let table = &built().ended.stdout;
    let line = table
        .lines()
        .find(|line| line.starts_with("trees/every_verdict "))
        .expect("a line for the repository");
    let numbers: Vec<usize> = line.split_whitespace().filter_map(|word| word.parse().ok()).take(4).collect();
    assert_eq!(numbers, [n_cases(), LABELS.iter().count(), kept().count(), kept().count()], "{table}");
    let causes = "nondeterministic-output 5, crashes 3, errors 3, fails 2, 8 more";
    assert!(line.ends_with(causes), "{line}");
}

#[test]
#[ignore = "needs ../shared/check_contract.py, and in GISTMILL_TEST_PYTHON a Python with polars"]
fn the_dataset_obeys_the_contract() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/check_contract.py");
    assert!(script.is_file(), "{} is missing", script.display());
    let python = std::env::var_os("GISTMILL_TEST_PYTHON").expect("GISTMILL_TEST_PYTHON names a Python");
    let folder = built().dataset().folder;
    let output = Command::new(python).arg(script).arg(&folder).output().expect("the checker starts");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("contract holds"), "{said}");
}
