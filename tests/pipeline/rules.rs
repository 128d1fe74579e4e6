//! Rules of the user: what they do to verdicts, and what is told about them.

use serde_json::{Value, json};

use crate::common::Bench;
use crate::common::dataset::{text, texts};

const OWN: &str = r#"
[[rule]]
id = "starts-empty"
reason = "Nothing is added."
action = "drop"
[rule.match]
name = "^test_starts_empty$"

[[rule]]
id = "prints"
reason = "Prints what it counts."
action = "flag"
[rule.match]
calls = ["print"]
node = ["For"]

[[rule]]
id = "makes-a-tally"
reason = "By way of the fixture."
action = "flag"
[rule.match]
calls = ["tally.Tally"]

[[rule]]
id = "wrong-on-purpose"
reason = "A failing test is wanted here."
action = "keep"
causes = ["fails", "rule:never"]
[rule.match]
name = "test_is_wrong"

[[rule]]
id = "wrong-cause"
reason = "Does not name why the test is dropped."
action = "keep"
causes = ["errors"]
[rule.match]
name = "test_is_wrong"

[[rule]]
id = "never"
reason = "Nothing in here is asynchronous."
action = "drop"
[rule.match]
node = "AsyncFunctionDef"
"#;

fn bench_with(rules: &str) -> Bench {
    let bench = Bench::after_a_build();
    std::fs::remove_dir_all(bench.path().join("output")).expect("can be removed");
    let folder = bench.path().join("filters");
    std::fs::create_dir_all(&folder).expect("can be made");
    std::fs::write(folder.join("own.toml"), rules).expect("can be written");
    bench
}

#[test]
fn rules_drop_keep_and_flag_and_the_dataset_says_so() {
    let bench = bench_with(OWN);
    let ended = bench.run(&["build"]).with_code(0);
    assert!(ended.stderr.contains("config: ./repos.toml, because none was named"), "{}", ended.stderr);
    assert!(ended.stderr.contains("rules: built in, and those of ./filters"), "{}", ended.stderr);
    let dataset = bench.dataset();
    let group = |name: &str| dataset.group(&format!("tests/test_tally.py::{name}"));

    let dropped = group("test_starts_empty");
    assert_eq!((&dropped["kept"], &dropped["cause"]), (&json!(false), &json!("rule:starts-empty")));
    assert!(text(&dropped["evidence"]).contains("Nothing is added."), "{dropped:#}");
    assert_eq!(
        texts(&group("test_counts_each_name")["flags"]),
        ["prints", "makes-a-tally", "no-other-input"]
    );
    assert_eq!(texts(&group("TestTwice::test_adds_up")["flags"]), ["makes-a-tally"]);
    let kept = group("test_is_wrong");
    assert_eq!((&kept["kept"], &kept["cause"]), (&json!(true), &Value::Null));
    assert_eq!(texts(&kept["flags"]), ["makes-a-tally", "kept-by:wrong-on-purpose", "no-other-input"]);
    // What a rule keeps is published like the rest, with what it showed.
    let published: Vec<String> =
        dataset.instances().iter().map(|row| text(&row["test_function"]).to_owned()).collect();
    assert_eq!(published, ["test_adds_up", "test_counts_each_name", "test_is_wrong"]);
    let cases = dataset.rows("cases");
    let wrong = cases.iter().find(|row| row["group_id"] == kept["group_id"]).expect("has a case");
    assert_eq!(
        (&wrong["outcome"], &wrong["exception"]),
        (&json!("failed"), &json!("builtins.AssertionError"))
    );

    let manifest = dataset.manifest();
    let rules = &manifest["rules"];
    assert_eq!(rules["starts-empty"], json!({ "action": "drop", "matched": 1, "decided": 1 }));
    assert_eq!(rules["prints"], json!({ "action": "flag", "matched": 1, "decided": 0 }));
    assert_eq!(rules["makes-a-tally"], json!({ "action": "flag", "matched": 4, "decided": 0 }));
    assert_eq!(rules["wrong-on-purpose"], json!({ "action": "keep", "matched": 1, "decided": 1 }));
    assert_eq!(rules["wrong-cause"], json!({ "action": "keep", "matched": 1, "decided": 0 }));
    assert_eq!(rules["never"], json!({ "action": "drop", "matched": 0, "decided": 0 }));
    assert_eq!(rules["sleeps"], json!({ "action": "flag", "matched": 0, "decided": 0 }));
    let files = &manifest["config"]["rules"]["files"];
    assert_eq!(files["filters/own.toml"], gistmill::record::id::sha256_hex(OWN.as_bytes()));
    assert_eq!(text(&files["built-in/time.toml"]).len(), 64);

    // Without the rules the verdicts are those that were measured.
    std::fs::create_dir(bench.path().join("mine")).expect("can be made");
    std::fs::rename(bench.path().join("filters/own.toml"), bench.path().join("mine/own.toml"))
        .expect("can be moved");
    bench.build(&[]).with_code(0);
    let dataset = bench.dataset();
    assert_eq!(dataset.group("tests/test_tally.py::test_starts_empty")["kept"], true);
    assert_eq!(dataset.group("tests/test_tally.py::test_is_wrong")["cause"], "fails");
}

#[test]
fn bad_rules_are_refused_by_build_and_reported_by_check_beside_a_bad_config() {
    let bench = bench_with(
        "[[rule]]\nid = 'a'\nreason = 'r'\naction = 'flag'\n[rule.match]\nnode = 'Lamda'\ncals = 'x'\n",
    );
    let ended = bench.run(&["build"]).with_code(2);
    for part in ["own.toml:6: node `Lamda`", "did you mean `Lambda`?", "own.toml:7: unknown key `cals`"] {
        assert!(ended.stderr.contains(part), "`{part}` is not in\n{}", ended.stderr);
    }
    bench.write_config("[dataset]\nname = 1\n");
    let said = bench.run(&["check"]).with_code(2).stdout;
    for part in ["own.toml:6: node `Lamda`", "own.toml:7: unknown key `cals`", "repos.toml:2: `name`"] {
        assert!(said.contains(part), "`{part}` is not in\n{said}");
    }
    bench.run(&["check", "--rules", "nowhere"]).with_code(2);
}

#[test]
fn without_a_config_here_the_built_in_one_is_used_and_that_is_said() {
    let bench = Bench::new();
    let ended = bench.run(&["build", "--only", "trees/unknown"]).with_code(2);
    assert!(ended.stderr.contains("config: the built-in one, because none was named"), "{}", ended.stderr);
    assert!(ended.stderr.contains("it has pallets/flask"), "{}", ended.stderr);
    bench.configure("", &["small_and_good"]);
    let ended = bench.run(&["build", "--only", "trees/unknown"]).with_code(2);
    assert!(ended.stderr.contains("config: ./repos.toml, because none was named"), "{}", ended.stderr);
    assert!(ended.stderr.contains("it has trees/small_and_good"), "{}", ended.stderr);
    let said = bench.run(&["check"]).with_code(0).stdout;
    assert!(said.contains("config: 1 repository (./repos.toml, because none was named)"), "{said}");
}
