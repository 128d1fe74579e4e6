//! A dataset of masked files, from the tree to the score.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::common::Bench;
use crate::common::dataset::Dataset;

const CONFIG: &str = "[dataset]\nfamily = \"recube\"\nname = \"trees\"\nversion = \"1\"\n[screen]\nattempts = 2\n\
                      [recube]\nmin_groups = 2\n[[repo]]\nslug = \"trees/keeps_values\"\npath = \"trees/keeps_values\"\n";

#[test]
fn a_file_is_masked_and_what_is_handed_in_for_it_is_judged() {
    let bench = Bench::new();
    let tree = bench.tree("keeps_values");
    bench.write_config(CONFIG);
    bench.build(&[]).with_code(0);
    let dataset = bench.dataset();
    let instances = dataset.instances();
    let [instance] = &instances[..] else { panic!("{instances:?}") };
    assert_eq!((&instance["family"], &instance["target"]), (&"recube".into(), &"pkg/core.py".into()));
    assert_eq!((&instance["masked_functions"], &instance["imports_removed"]), (&6.into(), &3.into()));
    let targets = dataset.rows("targets");
    let cause = |file: &str| {
        targets.iter().find(|row| row["target"] == file).unwrap_or_else(|| panic!("{file}"))["cause"].clone()
    };
    assert_eq!((cause("pkg/core.py"), cause("pkg/api.py")), (Value::Null, "few-functions".into()));
    let cases = dataset.rows("instance_cases");
    let of = |name: &str, key: &str| {
        cases.iter().find(|row| row["case_id"] == format!("tests/test_all.py::{name}")).unwrap()[key].clone()
    };
    assert_eq!(of("test_total", "reason"), "other-file-calls");
    assert_eq!(of("test_private", "kind"), "internal");
    assert_eq!(of("test_swallows", "left_out"), "imports-kept", "it needs no body");

    let (id, masked) = (instance["instance_id"].as_str().unwrap(), instance["masked"].as_str().unwrap());
    let original = std::fs::read_to_string(tree.join("pkg/core.py")).unwrap();
    let less = original.replace("if not key:", "if False:");
    let submissions = [
        ("original", original.clone(), "ran", true),
        ("mask", masked.to_owned(), "not-collected", false),
        ("less", less.clone(), "ran", false),
        ("odd", "def (\n".to_owned(), "not-readable", false),
        (
            "neutral",
            format!("{less}\nimport _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"),
            "violation",
            false,
        ),
        ("leaves", format!("import os\nos._exit(0)\n{original}"), "not-collected", false),
    ];
    let mut arguments =
        vec!["score".to_owned(), "output/trees/1".to_owned(), "--timeout".to_owned(), "20".to_owned()];
    arguments.push(format!("--source=trees/keeps_values={}", tree.display()));
    for (name, text, ..) in &submissions {
        let folder = bench.path().join("runs").join(name).join(id);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("target.py"), text).unwrap();
        arguments.push(format!("runs/{name}"));
    }
    bench.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).with_code(0);
    // A judge that stays says the same, to the byte.
    let asks = submissions.iter().map(|(name, text, ..)| {
        json!({ "id": name, "instance_id": id, "submission": text, "evidence": true }).to_string() + "\n"
    });
    let mut served = answers(&bench, &arguments[1..5], &asks.collect::<String>());
    for (name, _, class, is_solved) in submissions {
        let folder = bench.path().join("scores/trees/1").join(name);
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
        let answer = served.remove(name).unwrap_or_else(|| panic!("no answer for {name}"));
        assert!(answer.contains(&format!("\"score\":{}", read("scores.jsonl").trim_end())), "{answer}");
        let row: Value = serde_json::from_str(&read("scores.jsonl")).unwrap();
        assert_eq!(
            (&row["class"], row["passed"] == row["total"]),
            (&class.into(), is_solved),
            "{name}: {row}"
        );
        let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
        assert_eq!(summary["all"]["spr"], if is_solved { 100.0 } else { 0.0 }, "{name}");
    }
    let listed = bench.run(&["list", "output/trees/1"]).with_code(0).stdout;
    assert!(listed.contains("published  trees/keeps_values pkg/core.py"), "{listed}");
    let shown = bench.run(&["show", "core.py", "--dataset", "output/trees/1"]).with_code(0).stdout;
    assert!(shown.contains("left out by imports-kept: tests/test_all.py::test_swallows"), "{shown}");
    let source = format!("--source=trees/keeps_values={}", tree.display());
    let verified = bench.run(&["verify", "output/trees/1", &source]).with_code(0).stdout;
    assert!(verified.contains("as recorded: 1 of 1"), "{verified}");
}

/// What a server that is started for these requests answers, by their ids.
fn answers(bench: &Bench, arguments: &[String], asks: &str) -> BTreeMap<String, String> {
    let mut words = vec!["serve", "--stdio"];
    words.extend(arguments.iter().map(String::as_str));
    let mut server = bench.gistmill(&words);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let mut input = server.stdin.take().unwrap();
    input.write_all(asks.as_bytes()).expect("is taken");
    let output = BufReader::new(server.stdout.take().unwrap());
    let lines: Vec<String> =
        output.lines().take(1 + asks.lines().count()).map(|line| line.expect("is text")).collect();
    drop(input);
    assert_eq!(server.wait().expect("ends").code(), Some(0));
    let of_line = |line: &String| {
        let answer: Value = serde_json::from_str(line).expect("is JSON");
        (answer["id"].as_str().expect("is ours").to_owned(), line.clone())
    };
    lines[1..].iter().map(of_line).collect()
}

/// What the benchmark's authors publish, made up: two repositories, one whose tests have nothing beside them, and a large one of the
/// first two.
fn published(at: &Path) {
    let write = |path: &str, text: &str| {
        let path = at.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let alpha = "from __future__ import annotations\nimport operator\n\n\ndef add(a, b):\n    \"\"\"Sum.\"\"\"\n    return operator.add(a, b)\n\n\n\
                 def less(a, b):\n    return operator.sub(a, b)\n\n\ndef _twice(a):\n    return add(a, a)\n";
    let user = "from alpha.core import add\n\n\ndef three(a):\n    return add(add(a, a), a)\n\n\ndef four(a):\n    return a * 4\n";
    let beta = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import os\n\n\ndef title(text):\n    \"\"\"Title.\n\n```\nx\n```\n\"\"\"\n    \
                return text.title()\n\n\ndef shout(text):\n    return text.upper()\n";
    let files = |files: &[(&str, &str)]| {
        let shown = files.iter().map(|(path, text)| format!("## {path}\n\n```python\n{text}```\n\n"));
        let shown: String = shown.collect();
        format!(
            "<readme>\n## README.md\n\n# Made up\n\n</readme>\n\n<dependencies>\n<dependencies>\n</dependencies>\n</dependencies>\n\n\
             <implementations>\n{shown}</implementations>\n"
        )
    };
    let (one, two) = ([("alpha/core.py", alpha), ("alpha/user.py", user)], [("beta/text.py", beta)]);
    write("prompts/1.txt", &files(&one));
    write("prompts/2.txt", &files(&two));
    write(
        "prompts/3.txt",
        &files(&[("gamma.py", "def one():\n    return 1\n\n\ndef two():\n    return 2\n")]),
    );
    write("prompts/55.txt", &files(&[one[0], one[1], two[0]]));
    write(
        "tests/1/core_checks_test.py",
        "import pytest\nfrom alpha import core, user\n\n\n@pytest.mark.parametrize('a', [1, 2])\ndef test_add(a):\n    assert core.add(a, 1) == a + 1\n\n\n\
         def test_less():\n    assert core.less(3, 1) == 2\n\n\ndef test_user():\n    assert user.three(2) == 6\n\n\ndef test_twice():\n    assert core._twice(2) == 4\n\n\n\
         def test_four():\n    assert user.four(2) == 8\n\n\ndef test_nothing():\n    assert True\n",
    );
    write("tests/1/alpha_gone_test.py", "def test_gone():\n    assert True\n");
    let metadata = json!({ "instances": [
        { "file": "alpha/core.py", "test_file": "core_checks_test.py" },
        { "file": "alpha/gone.py", "test_file": "alpha_gone_test.py" },
    ] });
    write("tests/1/test_metadata.json", &metadata.to_string());
    let kinds = json!({ "files": { "alpha/core.py": { "test_classifications": {
        "test_add": "external", "test_less": "internal", "test_never": "external",
    } } } });
    write("test_classifications/1.json", &kinds.to_string());
    write(
        "tests/2/beta_text_test.py",
        "from beta import text\n\n\ndef test_title(word):\n    assert text.title(word) == 'A'\n\n\ndef test_shout():\n    assert text.shout('a') == 'A'\n",
    );
    write("tests/2/conftest.py", "import pytest\n\n\n@pytest.fixture\ndef word():\n    return 'a'\n");
    write(
        "tests/3/gamma_test.py",
        "import gamma\n\n\ndef test_one():\n    assert gamma.one() == 1\n\n\ndef test_two():\n    assert gamma.two() == 2\n",
    );
    let listed = json!([
        { "repo_id": 1, "repo_url": "https://example.org/ann/alpha.git", "selected_files": ["alpha/core.py"] },
        { "repo_id": 2, "selected_files": ["beta/text.py"] },
        { "repo_id": "3", "selected_files": ["gamma.py"] },
        { "repo_id": 55, "source_repo_ids": { "1": ["alpha/core.py"], "2": ["beta/text.py"] }, "is_large_scale": true },
    ]);
    write("target.json", &listed.to_string());
}

#[test]
fn published_data_become_repositories_that_are_built_and_scored() {
    let bench = Bench::new();
    published(&bench.path().join("data"));
    bench.run(&["import", "recube", "data", "--output", "imported"]).with_code(0);
    let config = bench.path().join("imported/repos.toml");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str("[screen]\nattempts = 2\n");
    std::fs::write(&config, text).unwrap();
    let built = bench.run(&["build", "imported/repos.toml"]).with_code(0);
    assert!(built.stderr.contains("classifies 1 test function that no file of it has"), "{}", built.stderr);
    let place = "output/recube-imported/1";
    let dataset = Dataset::at(&bench.path().join(place));
    let instances = dataset.instances();
    let shown: Vec<(&str, &str, bool)> = instances
        .iter()
        .map(|one| (one["slug"].as_str().unwrap(), one["target"].as_str().unwrap(), one["large"] == true))
        .collect();
    assert_eq!(
        shown,
        [
            ("ann/alpha-1", "alpha/core.py", false),
            ("recube/2", "beta/text.py", false),
            ("recube/3", "gamma.py", false),
            ("recube/55", "alpha/core.py", true),
            ("recube/55", "beta/text.py", true),
        ]
    );
    assert_eq!(instances[1]["published_leak"], "fence");
    let cases = dataset.rows("instance_cases");
    let of = |name: &str| {
        let row = cases.iter().find(|row| {
            row["instance_id"] == instances[0]["instance_id"]
                && row["case_id"].as_str().unwrap().ends_with(name)
        });
        row.map(|row| (row["kind"].as_str().unwrap().to_owned(), row["reason"].as_str().unwrap().to_owned()))
    };
    let pair = |kind: &str, reason: &str| Some((kind.to_owned(), reason.to_owned()));
    assert_eq!(of("::test_add[1]"), pair("external", "given"));
    assert_eq!(of("::test_less"), pair("internal", "given"));
    assert_eq!(of("::test_twice"), pair("internal", "test-calls-private"));
    let groups = dataset.rows("groups");
    let cause = |name: &str| {
        groups
            .iter()
            .find(|row| row["group_id"].as_str().unwrap().ends_with(name))
            .map(|row| row["cause"].clone())
    };
    assert_eq!(cause("::test_nothing"), Some("no-repository-code".into()));
    assert_eq!(cause("::test_four"), Some("does-not-reach".into()));
    assert_eq!(cause("::test_gone"), None, "its file is not among the selected ones");

    // The authors' folders of outputs: one answer is the original, one is wrong, and there is none of others.
    let answer = |path: &str, text: &str| {
        let path = bench.path().join("outputs/agent/model").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let original = std::fs::read_to_string(bench.path().join("imported/1/alpha/core.py")).unwrap();
    answer("1/alpha_core.py", &original);
    answer("3/gamma.py", "def one():\n    return 1\n\n\ndef two():\n    return 3\n");
    bench.run(&["score", place, "outputs/agent/model"]).with_code(0);
    let rows =
        std::fs::read_to_string(bench.path().join("scores/recube-imported/1/model/scores.jsonl")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rates: Vec<(&str, u64, u64)> = rows
        .iter()
        .map(|row| {
            (row["class"].as_str().unwrap(), row["passed"].as_u64().unwrap(), row["total"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(
        rates,
        [("ran", 5, 5), ("no-file", 0, 2), ("ran", 1, 2), ("no-file", 0, 5), ("no-file", 0, 2)]
    );
    bench.run(&["verify", place]).with_code(0);
}
