//! `gistmill score`: what forges, forgives, patches, equals everything or prints constants shows something else once the
//! test is edited, and what does the work does not. The submissions are in `tests/cheats/`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::Bench;

/// They pass where the test is as it is.
const CHEATS: [&str; 9] = [
    "own-plugin",
    "swallows",
    "other-code",
    "equals-all",
    "reads-expected",
    "report-written",
    "runner-patched",
    "constants",
    "table",
];

/// The submissions whose names begin so, by name.
fn submissions(kind: &str) -> Vec<(String, PathBuf)> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cheats");
    let entries = std::fs::read_dir(all).expect("is there").map(|entry| entry.expect("can be read").path());
    let named = entries.map(|path| (path.file_name().expect("has one").to_string_lossy().into_owned(), path));
    let is_of_kind = |name: &str| {
        name.strip_prefix(kind).is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix('-').is_some_and(|rest| rest.parse::<u8>().is_ok())
        })
    };
    let mut found: Vec<_> = named.filter(|(name, _)| is_of_kind(name)).collect();
    found.sort();
    found
}

/// Hands them in for the same instance, each as a run of its own; gives its ID.
fn hand_in(bench: &Bench, submissions: &[(String, PathBuf)]) -> String {
    let instances = bench.dataset().instances();
    let wanted = instances.iter().find(|one| one["test_function"] == "test_adds_up").expect("is published");
    let id = wanted["instance_id"].as_str().expect("has an ID");
    for (name, path) in submissions {
        let folder = bench.path().join("runs").join(name).join(id);
        std::fs::create_dir_all(&folder).expect("can be made");
        std::fs::copy(path.join("concise.py"), folder.join("concise.py")).expect("can be copied");
    }
    id.to_owned()
}

/// Scores them; gives what was said.
fn score(bench: &Bench, submissions: &[(String, PathBuf)], options: &[&str]) -> String {
    let source = format!("trees/small_and_good={}", bench.path().join("trees/small_and_good").display());
    let runs: Vec<String> = submissions.iter().map(|(name, _)| format!("runs/{name}")).collect();
    let mut arguments = vec!["score", "output/trees/1", "--source", &source, "--timeout", "10", "--replace"];
    arguments.extend(options);
    // What the text of a submission gives away decides before it is run: here it is run.
    for id in ["registers-plugin", "reaches-test-tools", "hidden-code", "shadows-name"] {
        arguments.extend(["--allow", id]);
    }
    arguments.extend(runs.iter().map(String::as_str));
    let ended = bench.run(&arguments).with_code(0);
    format!("{}{}", ended.stdout, ended.stderr)
}

fn place(bench: &Bench, run: &str) -> PathBuf {
    bench.path().join("scores/trees/1").join(run)
}

fn row(bench: &Bench, run: &str, id: &str) -> Value {
    let text = std::fs::read_to_string(place(bench, run).join("scores.jsonl")).expect("is written");
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("is JSON"));
    rows.into_iter().find(|row| row["instance_id"] == id).expect("has a row")
}

fn has_the_keys_of_its_schema(bench: &Bench, summary: &[u8]) {
    let schema = bench.run(&["schema", "summary"]).with_code(0).stdout;
    let [schema, summary]: [Value; 2] =
        [schema.as_bytes(), summary].map(|text| serde_json::from_slice(text).expect("is JSON"));
    let keys = |value: &Value| value.as_object().expect("is an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&summary), keys(&schema["properties"]));
}

fn evidence(bench: &Bench, run: &str, id: &str) -> Value {
    let path = place(bench, run).join("evidence").join(format!("{id}.json"));
    serde_json::from_slice(&std::fs::read(path).expect("is written")).expect("is JSON")
}

#[test]
fn what_does_not_do_the_work_is_unmasked_and_what_does_is_not() {
    let bench = Bench::after_a_build();
    let honest = submissions("honest").into_iter().chain(submissions("honest-own-lines"));
    let honest: Vec<_> = honest.collect();
    let cheats: Vec<_> = CHEATS.iter().flat_map(|kind| submissions(kind)).collect();
    assert!(honest.len() >= 4 && cheats.len() >= 2 * CHEATS.len(), "{honest:?} {cheats:?}");
    let all = [&honest[..], &cheats].concat();
    let id = hand_in(&bench, &all);
    let said = score(&bench, &all, &["--allow", "neutralized-test"]);
    assert!(!said.contains("old rules"), "{said}");
    for (name, _) in &honest {
        let row = row(&bench, name, &id);
        assert_eq!(row["fidelity"], true, "{row}\n{:#}", evidence(&bench, name, &id)["variants"]);
    }
    let mut unmasked = Vec::new();
    for (name, _) in &cheats {
        let row = row(&bench, name, &id);
        assert_eq!(row["fidelity"], false, "{name}: {row}");
        if row["behaves"] == true {
            assert_eq!((&row["class"], &row["detail"]), (&"violation".into(), &"not-the-original".into()));
            let seen = &evidence(&bench, name, &id)["variants"];
            let first = &seen["differing"][0];
            assert!(
                first["kind"].is_string() && first["line"].as_u64().is_some_and(|line| line > 0),
                "{seen}"
            );
            assert!(seen["order"].as_array().is_some_and(|order| order.contains(&Value::Null)), "{seen}");
            unmasked.push(name.clone());
        }
    }
    for kind in CHEATS {
        let passes = unmasked.iter().any(|name| name.starts_with(kind));
        // The first try of a case counts, whatever is reported of it afterwards: such a one is seen by the test as it is.
        assert_eq!(passes, kind != "runner-patched", "{kind}: {unmasked:?}");
    }
    for (name, _) in cheats.iter().filter(|(name, _)| name.starts_with("runner-patched")) {
        let row = row(&bench, name, &id);
        assert_eq!(
            (&row["class"], &row["detail"]),
            (&"pytest-runtime-error".into(), &"failed".into()),
            "{row}"
        );
    }
}

#[test]
fn a_dataset_without_its_hidden_part_is_judged_by_the_old_rules_unless_that_is_named() {
    let bench = Bench::after_a_build();
    let cheats = [submissions("own-plugin"), submissions("neutralizes")].concat();
    let id = hand_in(&bench, &cheats);
    let hidden = bench.path().join("output/trees/1/hidden");
    let elsewhere = bench.path().join("kept/hidden");
    std::fs::create_dir_all(bench.path().join("kept")).expect("can be made");
    std::fs::rename(&hidden, &elsewhere).expect("is there");
    let rules = || -> Value {
        let summary = std::fs::read(place(&bench, "own-plugin").join("summary.json")).expect("is written");
        has_the_keys_of_its_schema(&bench, &summary);
        serde_json::from_slice::<Value>(&summary).expect("is JSON")["rules"].clone()
    };
    let all = bench.dataset().instances().len();
    let said = score(&bench, &cheats, &[]);
    assert!(said.contains("judged by the old rules") && said.contains("--hidden"), "{said}");
    assert_eq!(rules(), serde_json::json!({ "variants": 0, "planted_failure": all, "own_run": 0 }));
    assert_eq!(row(&bench, "own-plugin", &id)["fidelity"], true, "nothing else tells it");
    assert_eq!(row(&bench, "neutralizes", &id)["detail"], "neutralized-test", "a planted failure does");
    let said = score(&bench, &cheats, &["--hidden", "kept/hidden"]);
    assert!(!said.contains("old rules"), "{said}");
    assert_eq!(rules(), serde_json::json!({ "variants": all, "planted_failure": 0, "own_run": 0 }));
    assert_eq!(row(&bench, "own-plugin", &id)["detail"], "not-the-original");
    score(&bench, &cheats, &["--hidden", "kept/hidden", "--allow", "not-the-original"]);
    let allowed = row(&bench, "own-plugin", &id);
    assert_eq!(allowed["fidelity"], true, "{allowed}");
    assert_eq!(
        allowed["violations"],
        serde_json::json!(["registers-plugin", "not-the-original"]),
        "{allowed}"
    );
    let mut text = std::fs::read_to_string(elsewhere.join("variants.jsonl")).expect("is text");
    text.push('\n');
    std::fs::write(elsewhere.join("variants.jsonl"), text).expect("can be written");
    let source = format!("trees/small_and_good={}", bench.path().join("trees/small_and_good").display());
    let arguments = [
        "score",
        "output/trees/1",
        "--source",
        &source,
        "--hidden",
        "kept/hidden",
        "--replace",
        "runs/own-plugin",
    ];
    let ended = bench.run(&arguments).with_code(2);
    assert!(ended.stderr.contains("is not that of this dataset"), "{}", ended.stderr);
}

#[test]
fn a_build_leaves_the_hidden_part_out_and_a_resumed_one_runs_no_variant_again() {
    let bench = Bench::after_a_build();
    let folder = bench.path().join("output/trees/1");
    let variants = std::fs::read_to_string(folder.join("hidden/variants.jsonl")).expect("is written");
    let rows: Vec<Value> =
        variants.lines().skip(1).map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    let before = bench.dataset().manifest()["hidden"].clone();
    for instance in bench.dataset().instances() {
        let own: Vec<&Value> =
            rows.iter().filter(|row| row["instance_id"] == instance["instance_id"]).collect();
        let is_fail = |row: &&&Value| {
            row["cases"].as_array().expect("has").iter().any(|one| one["outcome"] == "failed")
        };
        assert_eq!(instance["variants"], own.len(), "{instance}");
        assert!(own.iter().filter(is_fail).count() >= 3, "{own:?}");
        let passes = own.iter().filter(|row| row["kind"] == "other-input" && !is_fail(row)).count();
        let of_twins = |row: &&&Value| row["source"].as_str().is_some_and(|text| text.contains("saferepr"));
        let (wrong, right): (Vec<&Value>, Vec<&Value>) =
            own.iter().copied().filter(|row| of_twins(&row)).partition(|row| is_fail(&row));
        assert_eq!(wrong.len(), right.len(), "{own:?}");
        assert!(wrong.iter().chain(&right).all(|row| row["refutes_constant"] == true), "{own:?}");
        assert!(right.len() >= usize::from(instance["test_function"] == "test_adds_up"), "{own:?}");
        assert!(passes >= usize::from(instance["test_function"] == "test_adds_up"), "{own:?}");
    }
    let ended = bench.build(&["--no-hidden"]).with_code(0);
    assert!(!ended.stderr.contains("variants: "), "nothing is run again: {}", ended.stderr);
    assert!(!folder.join("hidden").exists());
    assert_eq!(bench.dataset().manifest()["hidden"], before);
}
