//! Repositories that cannot be finished: each says why, the others are complete.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::Bench;
use crate::common::dataset::{text, texts};

/// Tree, stage in which it fails, what its message or detail says, what its hint says.
const BAD: [(&str, &str, &str, &str); 4] = [
    ("cannot_be_installed", "environment", "packaging>=20 and packaging<19", "set `python`"),
    ("without_tests", "collect", "pytest finds no tests", "tests = [\"…\"]"),
    ("conftest_raises", "collect", "this conftest is broken", "--collect-only"),
    ("needs_a_python_that_is_not_there", "environment", "requires-python >=3.99", "set `python`"),
];

#[test]
fn bad_repositories_are_rows_with_stage_and_hint_and_the_good_one_is_complete() {
    let bench = Bench::new();
    let trees: Vec<&str> = BAD.iter().map(|(tree, ..)| *tree).collect();
    bench.configure("[screen]\nattempts = 2", &[&trees[..2], &["small_and_good"], &trees[2..]].concat());
    let ended = bench.build(&[]).with_code(1);
    let failed = bench.dataset().manifest()["failed"].as_array().expect("a list").clone();
    assert_eq!(failed.len(), BAD.len(), "{failed:#?}");
    for (tree, stage, said, hint) in BAD {
        let row = failed.iter().find(|row| row["slug"] == format!("trees/{tree}")).expect("is listed");
        assert_eq!(row["stage"], stage, "{row:#}");
        let words = format!("{}\n{}", text(&row["message"]), row["detail"].as_str().unwrap_or_default());
        assert!(words.contains(said), "`{said}` is not in {row:#}");
        assert!(text(&row["hint"]).contains(hint), "`{hint}` is not in {row:#}");
        let start = format!("failed trees/{tree} ({stage}): ");
        let mut lines = ended.stdout.lines().skip_while(|line| !line.starts_with(&start));
        assert!(lines.next().is_some_and(|line| line.contains(text(&row["message"]))), "{}", ended.stdout);
        let own: Vec<&str> = lines.take_while(|line| line.starts_with("    ")).collect();
        assert!(own.iter().any(|line| line.contains(hint)), "{}", ended.stdout);
    }
    let good: Vec<(String, bool)> = bench
        .dataset()
        .rows("groups")
        .iter()
        .map(|row| (text(&row["group_id"]).to_owned(), row["kept"] == true))
        .collect();
    let name = |name: &str| format!("tests/test_tally.py::{name}");
    let expected = [
        (name("TestTwice::test_adds_up"), true),
        (name("test_counts_each_name"), true),
        (name("test_is_wrong"), false),
        (name("test_starts_empty"), true),
    ];
    assert_eq!(good, expected);
    assert_eq!(bench.dataset().instances().len(), 3);
}

#[test]
fn a_repository_that_failed_is_tried_again_and_then_complete() {
    let bench = Bench::new();
    bench.configure("[screen]\nattempts = 2", &["conftest_raises"]);
    bench.build(&[]).with_code(1);
    let conftest = bench.path().join("trees/conftest_raises/tests/conftest.py");
    std::fs::write(conftest, "from answers import answer\n").expect("can be written");
    let package = bench.path().join("trees/conftest_raises");
    std::fs::write(package.join("answers.py"), "def answer():\n    return 42\n").expect("can be written");
    let test = "from answers import answer\n\n\ndef test_answer():\n    assert answer() == 42\n";
    std::fs::write(package.join("tests/test_any.py"), test).expect("can be written");
    bench.build(&["--format", "json"]).with_code(0);
    assert_eq!(bench.dataset().manifest()["failed"], serde_json::json!([]));
    let groups = bench.dataset().rows("groups");
    let kept: Vec<&Value> = groups.iter().filter(|row| row["kept"] == true).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(texts(&kept[0]["files"]), ["answers.py", "tests/test_any.py"]);
}

#[test]
fn nothing_is_written_of_repositories_that_all_failed_and_what_was_there_stays() {
    let bench = Bench::new();
    bench.configure("", &["needs_a_python_that_is_not_there"]);
    let ended = bench.build(&[]).with_code(1);
    assert!(ended.stdout.contains("requires-python >=3.99"), "{}", ended.stdout);
    assert!(ended.stdout.contains("no dataset is written"), "{}", ended.stdout);
    assert!(!bench.dataset().folder.join("manifest.json").exists());
}

#[test]
fn of_a_repository_that_pytest_needs_itself_commands_alone_are_published() {
    let bench = Bench::new();
    let configure = |settings: &str| {
        bench.configure(settings, &["needed_by_pytest"]);
        let config = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
        let entry =
            "[[repo.entry]]\nname = \"count\"\ncommand = \"python -m iniconfig '[one]' a=1 b=2 '[two]'\"\n";
        bench.write_config(&(config + entry));
        bench.build(&[]).with_code(0);
    };
    let instances = || -> BTreeMap<String, Value> {
        let rows = bench.dataset().instances().into_iter();
        rows.map(|row| (text(&row["test_function"]).to_owned(), row)).collect()
    };
    configure("[screen]\nattempts = 2");
    assert_eq!(instances().keys().collect::<Vec<_>>(), ["count"]);
    let row = bench.dataset().group("tests/test_sections.py::test_a_section_has_its_values");
    assert_eq!(row["kept"], true, "{row:#}");
    assert!(texts(&row["flags"]).contains(&"dependency-imports-repository"), "{row:#}");

    configure("sample_unsolvable = true\n[screen]\nattempts = 2\n[witness]\nmake = true");
    let published = instances();
    assert_eq!(published.len(), 3);
    for (name, one) in published {
        let is_test = name != "count";
        assert_eq!(texts(&one["flags"]).contains(&"dependency-imports-repository"), is_test, "{one:#}");
        assert_eq!(one["witness"], if is_test { "none-agrees" } else { "made" }, "{one:#}");
    }
}

#[test]
fn a_release_stays_as_it_was_unless_it_is_to_be_replaced() {
    let bench = Bench::after_a_build();
    let before = bench.dataset().bytes("manifest.json");
    let tree = bench.path().join("trees/small_and_good");
    let aside = bench.path().join("aside");
    std::fs::rename(&tree, &aside).expect("can be moved");
    let ended = bench.build(&[]);
    assert!(ended.code() != Some(0), "{ended:?}");
    assert_eq!(bench.dataset().bytes("manifest.json"), before, "{ended:?}");
    std::fs::rename(&aside, &tree).expect("can be moved back");
    std::fs::write(tree.join("notes.txt"), "one more file\n").expect("can be written");
    let ended = bench.build(&[]).with_code(2);
    assert!(ended.stderr.contains("was made of") && ended.stderr.contains("--replace"), "{ended:?}");
    assert_eq!(bench.dataset().bytes("manifest.json"), before);
    bench.build(&["--replace"]).with_code(0);
    assert_eq!(bench.dataset().instances().len(), 3);
    assert_ne!(bench.dataset().bytes("manifest.json"), before);
}
