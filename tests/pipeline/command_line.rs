//! What the command line says and how it ends.

use serde_json::Value;

use super::verdicts::built;
use crate::common::{Bench, SMALL, SMALL_SETTINGS};

/// Five mistakes, each with the line that it is on.
const FIVE_MISTAKES: &str = r#"[dataset]
name = "bad"
version = "1"
sed = 3

[screen]
attempts = 1
case_timeout = "soon"

[[repo]]
slug = "no slash"
git = "https://example.org/a/b"
commit = "main"
"#;
const LINES: [usize; 5] = [4, 7, 8, 11, 13];

/// Line numbers of the problems that a text lists, as `repos.toml:<line>:`.
fn lines_named(text: &str) -> Vec<usize> {
    let places = text.match_indices("repos.toml:").map(|(at, found)| &text[at + found.len()..]);
    places.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).collect()
}

#[test]
fn all_mistakes_of_a_config_are_reported_at_once_with_their_lines() {
    let bench = Bench::new();
    bench.write_config(FIVE_MISTAKES);
    let ended = bench.build(&[]).with_code(2);
    assert_eq!(lines_named(&ended.stderr), LINES, "{}", ended.stderr);
    for part in ["`sed`", "`seed`", "`soon`", "no slash", "full"] {
        assert!(ended.stderr.contains(part), "`{part}` is not in\n{}", ended.stderr);
    }
    assert_eq!(ended.stdout, "");
    assert!(!bench.path().join("output").exists(), "a bad config leaves nothing behind");
}

#[test]
fn check_reports_config_and_machine_problems_together() {
    let bench = Bench::new();
    bench.write_config(FIVE_MISTAKES);
    let ended = bench.run(&["check", "repos.toml"]).with_code(2);
    assert_eq!(lines_named(&ended.stdout), LINES, "{}", ended.stdout);
    assert!(ended.stdout.contains("sandbox: namespaces"), "{}", ended.stdout);
    let good = |what: &str| ended.stdout.lines().any(|line| line.starts_with(&format!("ok      {what}: ")));
    assert!(good("sandbox") && good("cache") && good("pythons") && good("rules"), "{}", ended.stdout);
}

/// Makes a directory a repository whose files are not committed.
fn dirty_repository(directory: &std::path::Path) {
    let ended = std::process::Command::new("git").args(["init", "--quiet"]).current_dir(directory).status();
    assert!(ended.expect("git is there").success());
}

#[test]
fn check_knows_what_a_local_tree_declares_and_explains_its_environment() {
    let bench = Bench::new();
    bench.configure("", &["workspace", "only_requirements"]);
    let config = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
    let wrong =
        config.replace("path = \"trees/workspace\"", "path = \"trees/workspace\"\nextras = [\"tset\"]");
    bench.write_config(&wrong);
    let ended = bench.run(&["check", "repos.toml"]).with_code(1);
    assert!(
        ended.stdout.contains("problem trees/workspace: the tree has no extra `tset`"),
        "{}",
        ended.stdout
    );
    dirty_repository(&bench.path().join("trees/workspace"));
    let ended = bench.run(&["check", "repos.toml"]).with_code(1);
    for words in ["has uncommitted changes", "the tree has no extra `tset`"] {
        assert!(ended.stdout.contains(words), "`{words}` is not in\n{}", ended.stdout);
    }
    std::fs::remove_dir_all(bench.path().join("trees/workspace/.git")).expect("was made");
    bench.write_config(&config);
    std::fs::write(bench.path().join("trees/workspace/.env"), "TOKEN=x\n").expect("can be written");
    let ended = bench.run(&["check", "repos.toml", "--explain"]).with_code(0);
    assert!(ended.stderr.contains("trees/workspace: named like secrets"), "{}", ended.stderr);
    assert!(ended.stderr.contains("`.env`") && !ended.stderr.contains("TOKEN"), "{}", ended.stderr);
    for line in [
        "packages/beta is installed, too: a member of the workspace",
        "1. . + requirements.txt + pytest",
        "     requirements.txt is what the tree runs with",
    ] {
        assert!(ended.stdout.contains(line), "`{line}` is not in\n{}", ended.stdout);
    }
    let ended = bench.run(&["check", "repos.toml", "--explain", "--format", "json"]).with_code(0);
    let json: Value = serde_json::from_str(&ended.stdout).expect("is JSON");
    assert_eq!(json["explained"]["trees/only_requirements"]["rungs"][0]["requirements"][1], "itsdangerous");
    assert!(!bench.path().join("cache/environments").join("built.json").exists());
}

#[test]
fn init_writes_a_configuration_that_check_takes_and_replaces_none() {
    let bench = Bench::new();
    bench.tree("sets_variables");
    bench.run(&["init", "trees/sets_variables"]).with_code(0);
    let text = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
    assert!(text.contains("slug = \"local/sets_variables\""), "{text}");
    assert!(text.starts_with("#:schema ./repos.schema.json\n"), "{text}");
    let schema = std::fs::read_to_string(bench.path().join("repos.schema.json")).expect("is beside it");
    let schema: Value = serde_json::from_str(&schema).expect("is JSON");
    assert_eq!(schema["title"], "gistmill: repos.toml");
    assert!(text.contains("#   [testenv] in tox.ini sets MODE for the tests"), "{text}");
    bench.run(&["check", "repos.toml"]).with_code(0);
    let again = bench.run(&["init", "trees/sets_variables"]).with_code(2);
    assert!(again.stderr.contains("repos.toml already exists"), "{}", again.stderr);
    std::fs::create_dir(bench.path().join("elsewhere")).expect("can be made");
    bench.run(&["init", "trees/sets_variables", "--output", "elsewhere/repos.toml"]).with_code(0);
    bench.run(&["check", "elsewhere/repos.toml"]).with_code(0);
    let nowhere = bench.run(&["init", "no/such/folder", "--output", "other.toml"]).with_code(2);
    assert!(nowhere.stderr.contains("neither a directory nor the URL"), "{}", nowhere.stderr);
}

#[test]
fn a_configuration_that_init_writes_names_the_repository_as_its_remote_does() {
    let bench = Bench::new();
    let tree = bench.tree("sets_variables");
    let git = |arguments: &[&str]| {
        let ended = std::process::Command::new("git").args(arguments).current_dir(&tree).status();
        assert!(ended.expect("git is there").success());
    };
    git(&["init", "--quiet"]);
    git(&["remote", "add", "origin", "https://ann:secret@git.example.org/acme/shop.git"]);
    // What is not committed is told, and the configuration is there all the same.
    let ended = bench.run(&["init", "trees/sets_variables"]).with_code(1);
    assert!(ended.stderr.contains("uncommitted changes"), "{}", ended.stderr);
    let text = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
    assert!(text.contains("name = \"shop\"") && text.contains("slug = \"acme/shop\""), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn try_runs_the_groups_once_says_why_and_writes_nothing() {
    let bench = Bench::new();
    bench.tree(SMALL);
    let place = format!("trees/{SMALL}");
    let ended = bench.run(&["try", &place]).with_code(0);
    for part in [
        "local/small_and_good\n",
        "  installed: . + pytest (",
        "  collected: 6 cases in 4 groups\n",
        "run once in the base world: 4 groups\n  passes  3  75.0 %\n  fails   1  25.0 %\n",
        "  fails  1  AssertionError: assert 1 == 2\n            tests/test_tally.py::test_is_wrong\n",
        "next: gistmill init trees/small_and_good, then gistmill build",
    ] {
        assert!(ended.stdout.contains(part), "`{part}` is not in\n{}", ended.stdout);
    }
    let some = bench.run(&["try", &place, "--limit", "2", "--format", "json"]).with_code(0);
    let json: Value = serde_json::from_str(&some.stdout).expect("one JSON object");
    assert_eq!((&json["groups"], &json["tried"]), (&4.into(), &2.into()), "{json:#}");
    assert_eq!(json["verdicts"]["passes"], 2, "the first and the third: {json:#}");
    assert_eq!(json["slug"], "local/small_and_good");
    for name in ["repos.toml", "output"] {
        assert!(!bench.path().join(name).exists(), "{name}");
    }
}

#[test]
fn try_takes_what_is_not_committed_and_refuses_what_has_no_tests() {
    let bench = Bench::new();
    dirty_repository(&bench.tree(SMALL));
    let ended = bench.run(&["try", &format!("trees/{SMALL}"), "--limit", "1"]).with_code(0);
    assert!(ended.stdout.contains("run once in the base world: 1 of 4 groups"), "{}", ended.stdout);
    bench.tree("without_tests");
    let ended = bench.run(&["try", "trees/without_tests"]).with_code(1);
    assert!(ended.stderr.contains("error: local/without_tests: "), "{}", ended.stderr);
    let nowhere = bench.run(&["try", "no/such/folder"]).with_code(2);
    assert!(nowhere.stderr.contains("neither a directory nor the URL"), "{}", nowhere.stderr);
}

#[test]
fn check_names_every_repository_that_asks_for_what_the_machine_lacks() {
    let bench = Bench::new();
    bench.configure("", &["small_and_good", "without_tests"]);
    let config = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
    let asking = config.replace("path = ", "python = \"3.99\"\npath = ");
    bench.write_config(&asking);
    let ended = bench.run(&["check", "repos.toml"]).with_code(1);
    let problems: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("problem ")).collect();
    assert_eq!(problems.len(), 2, "{}", ended.stdout);
    assert!(problems.iter().all(|line| line.contains("python 3.99 is not on this machine")), "{problems:?}");
    let json: Value = serde_json::from_str(&bench.run(&["check", "repos.toml", "--format", "json"]).stdout)
        .expect("one JSON object");
    let bad = json["findings"].as_array().expect("a list").iter().filter(|row| row["ok"] == false);
    assert_eq!(bad.count(), 2);
}

#[test]
fn an_unknown_repository_in_only_is_refused_with_the_known_ones() {
    let bench = Bench::new();
    bench.configure("", &["small_and_good"]);
    let ended = bench.build(&["--only", "trees/unknown"]).with_code(2);
    assert!(ended.stderr.contains("trees/unknown"), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: it has trees/small_and_good"), "{}", ended.stderr);
    bench.build(&["--only", "no slash"]).with_code(2);
}

#[test]
fn a_build_of_some_repositories_does_not_replace_a_dataset_that_holds_others() {
    let bench = Bench::after_a_build();
    bench.configure(SMALL_SETTINGS, &[SMALL, "without_tests"]);
    bench.build(&["--only", "trees/small_and_good"]).with_code(0);
    let ended = bench.build(&["--only", "trees/without_tests"]).with_code(2);
    assert!(ended.stderr.contains("also holds trees/small_and_good"), "{}", ended.stderr);
    assert_eq!(bench.dataset().instances().len(), 3);
    assert_eq!(bench.dataset().manifest()["config"]["rules"]["sha256"].as_str().map(str::len), Some(64));
}

#[test]
fn a_config_that_is_not_there_is_named() {
    let bench = Bench::new();
    let ended = bench.build(&[]);
    assert_eq!(ended.code(), Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("repos.toml"), "{}", ended.stderr);
}

/// That a dataset comes of it in the end, and the same one, is seen in `src/pipeline/tests.rs`.
#[test]
fn stages_are_run_up_to_the_one_that_is_asked_for_and_the_next_build_goes_on() {
    let bench = Bench::new();
    bench.configure("[screen]\nattempts = 2", &["small_and_good", "without_tests"]);
    let until = |stage: &str| bench.build(&["--only", "trees/small_and_good", "--until", stage]).with_code(0);
    let marks = ["environment: ", "pytest collects", "screen (", "trace (", "cold runs"];
    let stages = ["source", "environment", "collect", "screen", "trace"];
    let mut seen = Vec::new();
    for stage in stages {
        let ended = until(stage);
        seen.extend(marks.iter().filter(|mark| ended.stderr.contains(**mark)).copied());
        assert!(
            ended.stdout.contains("trees/small_and_good: done up to the stage that was asked for"),
            "{}",
            ended.stdout
        );
        let found = ended.stdout.contains("\n  collected: ");
        assert_eq!(found, stages.iter().skip(2).any(|later| *later == stage), "{stage}: {}", ended.stdout);
        assert!(!bench.dataset().folder.exists(), "`--until {stage}` wrote a dataset");
    }
    let marks_once: Vec<&str> = marks[1..4].to_vec();
    let stages_seen: Vec<&str> = seen.into_iter().filter(|mark| *mark != "environment: ").collect();
    assert_eq!(stages_seen, marks_once, "each stage is done once, in its turn");
    bench.build(&["--until", "nonsense"]).with_code(2);
}

#[test]
fn json_output_is_one_object_and_messages_go_to_stderr() {
    let bench = Bench::after_a_build();
    bench.configure(SMALL_SETTINGS, &[SMALL, "needs_a_python_that_is_not_there"]);
    let ended = bench.build(&["--format", "json"]).with_code(1);
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
    let json: Value = serde_json::from_str(&ended.stdout).expect("one JSON object");
    assert_eq!(json["failed"][0]["slug"], "trees/needs_a_python_that_is_not_there");
    assert_eq!(json["failed"][0]["stage"], "environment");
    assert_eq!(json["parity"]["trees/small_and_good"]["compared"], 3);
    assert!(json["summary"].is_object(), "{json:#}");
    assert!(ended.stderr.contains("trees/small_and_good collect"), "{}", ended.stderr);
}

#[test]
fn output_that_is_no_terminal_has_no_escape_codes() {
    let bench = Bench::new();
    bench.configure("[screen]\nattempts = 2", &["needs_a_python_that_is_not_there"]);
    for variable in [None, Some(("NO_COLOR", "1")), Some(("CLICOLOR", "0"))] {
        for arguments in [&["build", "repos.toml"][..], &["check", "repos.toml"], &["show", "x"], &["--help"]]
        {
            let mut command = bench.gistmill(arguments);
            command.envs(variable);
            let ended = crate::common::Running::start(command).wait();
            let all = ended.stdout + &ended.stderr;
            assert!(!all.contains('\u{1b}'), "{arguments:?} {variable:?}:\n{all}");
            assert!(!all.is_empty());
        }
    }
    let built = built();
    assert!(!built.ended.stderr.contains('\u{1b}') && !built.ended.stdout.contains('\u{1b}'));
}

fn show(arguments: &[&str]) -> crate::common::Ended {
    built().bench.run(&[&["show", "--dataset", "output/trees/1"], arguments].concat())
}

#[test]
fn show_finds_a_test_by_a_part_of_its_name_and_gives_cause_and_evidence() {
    let ended = show(&["reads_address_zero"]).with_code(0);
    let said = &ended.stdout;
    assert!(said.starts_with("trees/every_verdict tests/test_ends.py::test_reads_address_zero\n"), "{said}");
    for part in [
        "out: crashes",
        "killed by signal 11",
        "seen in base#0, base#1",
        "Segmentation fault",
        "see it again: gistmill replay tests/test_ends.py::test_reads_address_zero --world base",
        "without gistmill: python -m pytest tests/test_ends.py::test_reads_address_zero",
    ] {
        assert!(said.contains(part), "`{part}` is not in\n{said}");
    }
}

#[test]
fn show_finds_an_instance_by_its_id_and_by_its_exact_test() {
    let group = "tests/test_counts.py::test_methods";
    let instances = built().dataset().instances();
    let instance = instances.iter().find(|row| row["group_id"] == group).expect("is published");
    let id = instance["instance_id"].as_str().expect("a text");
    let by_id = show(&[id]).with_code(0);
    assert!(by_id.stdout.contains(&format!("in: published as {id}")), "{}", by_id.stdout);
    assert!(by_id.stdout.contains("trace length 4, 2 files"), "{}", by_id.stdout);
    assert_eq!(show(&[group]).with_code(0).stdout, by_id.stdout);
    // An exact name does not bring its longer neighbours along.
    let exact = show(&["tests/test_counts.py::test_generator", "--format", "json"]).with_code(0);
    let json: Value = serde_json::from_str(&exact.stdout).expect("one JSON object");
    assert_eq!(json["groups"].as_array().map(Vec::len), Some(1), "{json:#}");
}

#[test]
fn show_lists_verdicts_when_many_tests_match_and_says_when_none_does() {
    let many = show(&["tests/"]).with_code(0);
    assert!(many.stdout.lines().count() >= 60, "{}", many.stdout);
    assert!(many.stdout.lines().any(|line| line.contains("times-out") && line.contains("test_hangs")));
    let none = show(&["no_such_test"]).with_code(2);
    assert!(none.stderr.contains("no test that matches `no_such_test`"), "{}", none.stderr);
}

#[test]
fn report_renders_the_page_again_without_changing_the_data() {
    let built = built();
    let copy = built.bench.path().join("copy");
    let mut command = std::process::Command::new("cp");
    let copied = command.arg("-r").arg(&built.dataset().folder).arg(&copy).status().expect("cp starts");
    assert!(copied.success());
    std::fs::remove_file(copy.join("report.html")).expect("the page was there");
    built.bench.run(&["report", "copy"]).with_code(0);
    let again = crate::common::dataset::Dataset::at(&copy);
    assert!(again.bytes("report.html") == built.dataset().bytes("report.html"), "the page differs");
    super::determinism::assert_same(&again, &built.dataset());
}

#[test]
fn a_directory_that_is_no_dataset_is_named() {
    let bench = Bench::new();
    for arguments in [&["report", "nowhere"][..], &["show", "x", "--dataset", "nowhere"]] {
        let ended = bench.run(arguments);
        assert_eq!(ended.code(), Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("nowhere"), "{}", ended.stderr);
    }
}

#[test]
fn named_subsets_come_with_a_build_and_out_of_a_dataset_that_is_there() {
    let bench = Bench::after_a_build();
    bench.configure(
        "[screen]\nattempts = 2\n[subset.long]\ntrace_length = { min = 5 }\n[subset.one]\nsize = 1",
        &["small_and_good"],
    );
    let refused = bench.build(&["--subset", "lnog"]).with_code(2);
    assert!(refused.stderr.contains("did you mean `long`?"), "{}", refused.stderr);
    let ended = bench.build(&[]).with_code(0);
    assert!(ended.stdout.contains("subset one: 1 instance: trees/small_and_good 1\n"), "{}", ended.stdout);
    let dataset = bench.dataset();
    let lengths: Vec<u64> =
        dataset.instances().iter().map(|row| row["trace_length"].as_u64().expect("a number")).collect();
    let long = lengths.iter().filter(|length| **length >= 5).count();
    assert!((1..lengths.len()).contains(&long), "the condition divides {lengths:?}");
    assert_eq!(dataset.rows("subsets/long").len(), long);
    assert_eq!(dataset.manifest()["subsets"]["long"]["size"], long);
    let top = dataset.rows("subsets/top").len();
    assert!((1..=2).contains(&top), "one of three by each axis, not {top}");

    bench.build(&["--subset", "top"]).with_code(0);
    assert!(!dataset.folder.join("subsets/long.parquet").exists(), "only what was asked for");
    let before = dataset.bytes("manifest.json");
    let cut = ["subset", "output/trees/1", "--config", "repos.toml", "--subset", "long", "--format", "json"];
    let ended = bench.run(&cut).with_code(0);
    let json: Value = serde_json::from_str(&ended.stdout).expect("one JSON object");
    assert_eq!(json["subsets"][0]["size"], long, "{json:#}");
    let text = std::fs::read_to_string(bench.path().join("subsets/long.jsonl")).expect("is written");
    assert_eq!(text.lines().count(), long);
    assert_eq!(before, dataset.bytes("manifest.json"), "the dataset is left alone");
}
