//! `gistmill score` on a dataset that was just built.

use std::path::Path;

use serde_json::Value;

use crate::common::Bench;

/// A submission for `TestTwice::test_adds_up`, in words, and its class and detail; none where it is right.
pub(super) type Kind = (&'static str, Option<(&'static str, Option<&'static str>)>);

pub(super) const KINDS: [Kind; 14] = [
    ("good", None),
    ("wrong", Some(("pytest-runtime-error", Some("failed")))),
    ("missing", Some(("missing-test-function", None))),
    ("syntax", Some(("pytest-runtime-error", Some("syntax-error")))),
    ("binary", Some(("pytest-runtime-error", Some("syntax-error")))),
    ("imports", Some(("import-error", Some("import-statement")))),
    ("asks", Some(("import-error", Some("import-attempt")))),
    ("fakes", Some(("violation", Some("registers-repository-module")))),
    ("neutralizes", Some(("violation", Some("reaches-test-tools")))),
    ("raises", Some(("pytest-runtime-error", Some("collection-error")))),
    ("hangs", Some(("pytest-runtime-error", Some("collection-error")))),
    ("kills", Some(("pytest-runtime-error", Some("collection-error")))),
    ("child", Some(("pytest-runtime-error", Some("collection-error")))),
    ("listing", None),
];

pub(super) fn submission(kind: &str, tree: &Path) -> Vec<u8> {
    let read = |name: &str| std::fs::read_to_string(tree.join(name)).expect("the tree has it");
    let test = read("tests/test_tally.py").replace("from tally import Tally, total\n", "");
    let code = read("tally.py");
    let good = format!("{code}\n\n{test}");
    let text = match kind {
        "good" => good,
        "wrong" => good.replace("+ 1", "+ 2"),
        "missing" => code,
        "syntax" => format!("{good}\ndef f(:\n"),
        "binary" => return b"\xff\x00".to_vec(),
        "imports" => format!("try:\n    import tally\nexcept ImportError:\n    pass\n{good}"),
        "asks" => format!("try:\n    __import__('tal' + 'ly')\nexcept ImportError:\n    pass\n{good}"),
        "fakes" => format!("import sys, types\nsys.modules['tally'] = types.ModuleType('tally')\n{good}"),
        "neutralizes" => {
            format!("import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n{good}")
        }
        "raises" => format!("raise RuntimeError('no')\n{good}"),
        // It waits for its own end, which follows that of its parent: otherwise it might be asked to run before.
        "kills" => format!("import os, time\nos.kill(-1, 9)\ntime.sleep(60)\n{good}"),
        "child" => format!(
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import tally'], check=True)\n{good}"
        ),
        "listing" => format!("import sys\nsys.path.insert(0, 'src')\n{good}"),
        "hangs" => format!("while True:\n    pass\n{good}"),
        other => panic!("{other} is not a kind"),
    };
    text.into_bytes()
}

/// Makes a run of each kind, with a submission for one instance; gives its ID.
pub(super) fn hand_in(bench: &Bench, kinds: &[&str]) -> String {
    let instances = bench.dataset().instances();
    let wanted = instances.iter().find(|one| one["test_function"] == "test_adds_up").expect("is published");
    let id = wanted["instance_id"].as_str().expect("has an id");
    for kind in kinds {
        let folder = bench.path().join("runs").join(kind).join(id);
        std::fs::create_dir_all(&folder).expect("can be made");
        let text = submission(kind, &bench.path().join("trees/small_and_good"));
        std::fs::write(folder.join("concise.py"), text).expect("can be written");
    }
    id.to_owned()
}

#[test]
fn submissions_get_their_class_and_the_same_again() {
    let bench = Bench::after_a_build();
    let tree = bench.path().join("trees/small_and_good");
    let instances = bench.dataset().instances();
    let id = hand_in(&bench, &KINDS.map(|(kind, _)| kind));
    for (kind, execution) in [("good", "none"), ("wrong", "bash")] {
        let run =
            serde_json::json!({ "model": "m", "framework": "f", "setting": { "execution": execution } });
        std::fs::write(bench.path().join("runs").join(kind).join("run.json"), run.to_string())
            .expect("can be written");
    }
    let runs: Vec<String> = KINDS.iter().map(|(kind, _)| format!("runs/{kind}")).collect();
    let source = format!("trees/small_and_good={}", tree.display());
    let mut arguments = vec!["score", "output/trees/1", "--source", &source, "--timeout", "10"];
    arguments.extend(runs.iter().map(String::as_str));
    let first = bench.run(&arguments).with_code(0);
    // The cache has the environment of the build: none is made for the lock of the dataset.
    assert!(!first.stderr.contains("building the tree"), "{}", first.stderr);
    let replayed = ["replay", &id, "--dataset", "output/trees/1", "--source", &source, "--world", "base"];
    let replayed = bench.run(&replayed).with_code(0);
    assert!(replayed.stdout.contains("as in the base world"), "{}", replayed.stdout);
    assert!(!replayed.stderr.contains("building the tree"), "{}", replayed.stderr);
    let code = "import os, sys; print(os.getcwd()); open('mark', 'w'); sys.exit(7)";
    let shell = ["shell", "output/trees/1", "-i", &id, "--source", &source, "--", "python", "-c", code];
    let entered = bench.run(&shell).with_code(7);
    assert_eq!(entered.stdout, "/testbed\n", "{}", entered.stderr);
    assert!(!tree.join("mark").exists());
    let scores = |kind: &str| {
        std::fs::read(bench.path().join("scores/trees/1").join(kind).join("scores.jsonl"))
            .expect("is written")
    };
    for (kind, failure) in KINDS {
        let text = String::from_utf8(scores(kind)).expect("is text");
        let rows: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
        assert_eq!(rows.len(), instances.len());
        for row in &rows {
            if row["instance_id"] != id {
                assert_eq!(row["class"], "file-creation-failure", "{kind}: {row}");
                continue;
            }
            let (class, detail) = failure.map_or((None, None), |(class, detail)| (Some(class), detail));
            assert_eq!(row["fidelity"], failure.is_none(), "{kind}: {row}");
            assert_eq!((row["class"].as_str(), row["detail"].as_str()), (class, detail), "{kind}: {row}");
        }
    }
    let good: Value = String::from_utf8(scores("good"))
        .expect("is text")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("is JSON"))
        .find(|row| row["instance_id"] == id)
        .expect("has a row");
    assert_eq!(good["line_existence"], 1.0, "every line is the repository's");
    assert_eq!(good["test_f1"], 1.0);
    let executed = good["line_execution"].as_f64().expect("was traced");
    assert!(executed > 0.3 && executed < 1.0, "other tests of the file were not run: {executed}");
    let place = bench.path().join("scores/trees/1");
    let tables: Value =
        serde_json::from_slice(&std::fs::read(place.join("tables.json")).expect("is written"))
            .expect("is JSON");
    let table = |id: &str| {
        let all = tables.as_array().expect("is a list");
        all.iter().find(|table| table["id"] == id).unwrap_or_else(|| panic!("{id} is missing")).clone()
    };
    for id in ["main", "parts", "classes", "settings", "tests", "difficulty"] {
        assert_ne!(table(id)["rows"][0], Value::Null, "{id}");
    }
    let between = table("compared")["rows"].as_array().expect("is a list").clone();
    let fidelity = |row: &&Value| row[2]["text"] == "fidelity" && row[3]["rate"] != 0.0;
    let differs = between.iter().find(fidelity).expect("two runs differ");
    assert!(differs[5]["value"].is_f64() && differs[6]["value"].as_f64() >= differs[5]["value"].as_f64());
    let pair = table("execution")["rows"][0].clone();
    let n = instances.len();
    assert_eq!(
        (&pair[1]["text"], &pair[2]["n"], &pair[4]["value"]),
        (&"m".into(), &n.into(), &1.0.into()),
        "{pair}"
    );
    let page = std::fs::read_to_string(place.join("report.html")).expect("is written");
    assert!(
        page.contains("os.kill(-1, 9)") && !page.contains("{details}"),
        "every submission is on the page"
    );
    let before: Vec<Vec<u8>> = KINDS.iter().map(|(kind, _)| scores(kind)).collect();
    bench.run(&arguments).with_code(0);
    assert_eq!(before, KINDS.iter().map(|(kind, _)| scores(kind)).collect::<Vec<_>>());
    // What is allowed is run, and judged by what it does.
    let refused =
        ["score", "output/trees/1", "--source", &source, "--allow", "reaches-test-tools", "runs/neutralizes"];
    let said = bench.run(&refused).with_code(2).stderr;
    assert!(said.contains("has the scores of other settings") && said.contains("--replace"), "{said}");
    let allowed =
        ["score", "output/trees/1", "--source", &source, "--replace", "--allow", "reaches-test-tools"];
    bench.run(&[&allowed[..], &["runs/neutralizes"]].concat()).with_code(0);
    let text = String::from_utf8(scores("neutralizes")).expect("is text");
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("is JSON"));
    let row = rows.into_iter().find(|row| row["instance_id"] == id).expect("has a row");
    assert_eq!((&row["fidelity"], &row["detail"]), (&false.into(), &"not-the-original".into()), "{row}");
    assert_eq!(row["violations"], serde_json::json!(["reaches-test-tools", "not-the-original"]));
}

#[test]
fn submissions_for_another_dataset_are_refused_all_at_once() {
    let bench = Bench::after_a_build();
    std::fs::write(bench.path().join("preds.json"), "{\"a__b-1\": \"x\", \"a__b-2\": \"y\"}")
        .expect("can be written");
    let ended = bench.run(&["score", "output/trees/1", "preds.json"]).with_code(2);
    assert!(ended.stderr.contains("the dataset has no instance a__b-1, a__b-2"), "{}", ended.stderr);
}

#[test]
fn originals_have_fidelity_and_a_dataset_is_what_it_says() {
    let bench = Bench::after_a_build();
    // The dataset is all that whoever gets it has.
    std::fs::remove_dir_all(bench.path().join("trees")).expect("is there");
    let checked = bench.run(&["score", "--self-check", "output/trees/1"]).with_code(0);
    let instances = bench.dataset().instances().len();
    let told = format!("{instances} of {instances} originals have fidelity 1");
    assert!(checked.stdout.contains(&told), "{}", checked.stdout);
    let verified = bench.run(&["verify", "output/trees/1", "--attempts", "2"]).with_code(0);
    for part in ["fork tree", "cold", "trace"] {
        assert!(
            verified.stdout.contains(&format!("{part} {instances} of {instances}")),
            "{}",
            verified.stdout
        );
    }
    let text = std::fs::read_to_string(bench.path().join("verification.json")).expect("is written");
    let written: Value = serde_json::from_str(&text).expect("is JSON");
    assert_eq!(written["files"], Value::Array(Vec::new()));
    assert_eq!(written["repositories"][0]["instances"][0]["agreeing"], 2);
}

#[test]
fn a_changed_dataset_is_not_verified() {
    let bench = Bench::after_a_build();
    let dataset = bench.path().join("output/trees/1");
    let source = format!("trees/small_and_good={}", bench.path().join("trees/small_and_good").display());
    let card = std::fs::read_to_string(dataset.join("README.md")).expect("is there");
    std::fs::write(dataset.join("README.md"), format!("{card}\n")).expect("can be written");
    let instances = std::fs::read_to_string(dataset.join("instances.jsonl")).expect("is there");
    let number = instances.find("\"trace_length\":").expect("has a trace") + "\"trace_length\":".len();
    let changed = format!("{}9{}", &instances[..number], &instances[number..]);
    std::fs::write(dataset.join("instances.jsonl"), changed).expect("can be written");
    let arguments = ["verify", "output/trees/1", "--source", &source, "--cold-runs", "0"];
    let ended = bench.run(&arguments).with_code(1);
    for part in [
        "README.md is not what the manifest says",
        "instances.jsonl is not what the manifest says",
        "the tables of the dataset contradict each other",
        "trace_length: recorded 9",
        "README.md, line ",
        "instances.parquet, ",
        "not verified: cold runs of the entry commands: --cold-runs 0",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
}
