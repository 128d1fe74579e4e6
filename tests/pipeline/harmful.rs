//! `gistmill score`: what one submission does to the processes above and beside it is no other submission's.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::common::Bench;

/// What stands before the test in a submission that does harm; without the harm it is wrong as well.
const HARMFUL: [(&str, &str); 15] = [
    ("answers_for_others", include_str!("harmful/answers_for_others.py")),
    ("answers_of_another_kind", include_str!("harmful/answers_of_another_kind.py")),
    ("breaks_the_report", include_str!("harmful/breaks_the_report.py")),
    ("breaks_the_runner", include_str!("harmful/breaks_the_runner.py")),
    ("exits", include_str!("harmful/exits.py")),
    ("fills_its_layers", include_str!("harmful/fills_its_layers.py")),
    ("floods_its_answer", include_str!("harmful/floods_its_answer.py")),
    ("goes_to_the_background", include_str!("harmful/goes_to_the_background.py")),
    ("makes_many_processes", include_str!("harmful/makes_many_processes.py")),
    ("never_ends_its_answer", include_str!("harmful/never_ends_its_answer.py")),
    ("reads_requests", include_str!("harmful/reads_requests.py")),
    ("stops_everybody", include_str!("harmful/stops_everybody.py")),
    ("unmounts", include_str!("harmful/unmounts.py")),
    ("writes_memory", include_str!("harmful/writes_memory.py")),
    ("wrong_and_nothing_else", ""),
];
const UNPRIVILEGED: &str = include_str!("harmful/honest_without_privileges.py");

/// A test without the code that it is of: it fails.
const WRONG: &str = "\n\nimport pytest\n\n\n@pytest.fixture\ndef tally():\n    return None\n\n\nclass TestTwice:\n    \
                     def test_adds_up(self, tally):\n        tally.add(\"x\")\n        assert tally.add(\"x\") == 2\n";

/// The functions of the instances, and what their cases come to in every submission but the harmful one.
fn instances(bench: &Bench) -> BTreeMap<String, String> {
    let word = |value: &Value| value.as_str().expect("is text").to_owned();
    let of = |row: &Value| (word(&row["test_function"]), word(&row["instance_id"]));
    bench.dataset().instances().iter().map(of).collect()
}

/// The code of the tree and its tests: right for every instance.
fn honest(tree: &Path) -> String {
    let read = |name: &str| std::fs::read_to_string(tree.join(name)).expect("the tree has it");
    let tests = read("tests/test_tally.py").replace("from tally import Tally, total\n", "");
    format!("{}\n\n{tests}", read("tally.py"))
}

fn hand_in(bench: &Bench, run: &str, id: &str, text: &str) {
    let folder = bench.path().join("runs").join(run).join(id);
    std::fs::create_dir_all(&folder).expect("can be made");
    std::fs::write(folder.join("concise.py"), text).expect("can be written");
}

/// Rows of a run by instance.
fn rows(bench: &Bench, run: &str) -> BTreeMap<String, Value> {
    let place = bench.path().join("scores/trees/1").join(run).join("scores.jsonl");
    let text = std::fs::read_to_string(place).expect("is written");
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("is JSON"));
    rows.map(|row| (row["instance_id"].as_str().expect("has an ID").to_owned(), row)).collect()
}

/// Scores every harmful submission with honest ones for all other tests beside it, all in one portion.
fn score_beside(jobs: &str) {
    let bench = Bench::after_a_build();
    let tree = bench.path().join("trees/small_and_good");
    let instances = instances(&bench);
    assert!(instances.len() >= 3, "{instances:?}");
    let target = &instances["test_adds_up"];
    let good = honest(&tree);
    let mut runs: Vec<&str> = HARMFUL.iter().map(|(name, _)| *name).collect();
    for (name, harm) in HARMFUL {
        for id in instances.values().filter(|id| *id != target) {
            hand_in(&bench, name, id, &format!("{good}\n# beside {name}\n"));
        }
        hand_in(&bench, name, target, &format!("{harm}{WRONG}"));
    }
    runs.push("unprivileged");
    for id in instances.values() {
        hand_in(&bench, "unprivileged", id, &format!("{UNPRIVILEGED}\n\n{good}"));
    }
    let source = format!("trees/small_and_good={}", tree.display());
    let places: Vec<String> = runs.iter().map(|run| format!("runs/{run}")).collect();
    let mut arguments =
        vec!["score", "output/trees/1", "--source", &source, "--timeout", "5", "--jobs", jobs];
    // What they do is forbidden, and would not be run.
    arguments.extend(["--allow", "reaches-test-tools"]);
    arguments.extend(places.iter().map(String::as_str));
    let mut before: Vec<BTreeMap<String, Value>> = Vec::new();
    for time in ["first", "again"] {
        bench.run(&arguments).with_code(0);
        for run in &runs {
            for (id, row) in rows(&bench, run) {
                let is_right = *run == "unprivileged" || id != *target;
                assert_eq!(row["fidelity"], is_right, "{time}, {run}, {jobs} jobs: {row}");
            }
        }
        let all: Vec<BTreeMap<String, Value>> = runs.iter().map(|run| rows(&bench, run)).collect();
        assert!(before.is_empty() || before == all, "{time}: what is known is what was found");
        before = all;
    }
}

#[test]
fn submissions_beside_a_harmful_one_are_judged_as_without_it() {
    score_beside("1");
}

#[test]
fn submissions_beside_a_harmful_one_are_judged_as_without_it_by_two_at_once() {
    score_beside("2");
}
