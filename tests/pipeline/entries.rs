//! A repository without any tests whose commands become instances.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::common::Bench;
use crate::common::dataset::text;

const TREE: &str = "commands_alone";
const SETTINGS: &str = "[screen]\nattempts = 2\ncase_timeout = \"5s\"\n";
/// Name, command, further keys, and what becomes of it.
const ENTRIES: [(&str, &str, &str, &str); 17] = [
    ("tables", "shop tables", "", "kept"),
    ("report", "python tools/report.py data/in.txt", "", "kept"),
    ("export", "shop export --json out.json", "", "kept"),
    ("stats", "shop stats", "stdin_file = \"data/in.txt\"", "kept"),
    ("answered", "shop init", "stdin = \"Ada\\n\"", "kept"),
    ("below", "python -m shop buy tea milk", "cwd = \"data\"", "kept"),
    ("code", "python -c 'from shop.stock import total; print(total([\"tea\"]))'", "", "kept"),
    ("print", "python -c 'print(1)'", "", "no-repository-code"),
    ("help", "shop --help", "", "prints-help-only"),
    ("usage", "shop", "", "exits-with"),
    ("usage-expected", "shop", "exit = 2", "depends-on-terminal"),
    ("unknown", "shop buy beer", "", "exits-with"),
    ("serve", "shop serve", "", "runs-forever"),
    ("init", "shop init", "", "waits-for-input"),
    ("now", "shop now", "", "nondeterministic-output"),
    ("names", "shop names", "", "depends-on-hash-seed"),
    ("whoami", "python -m shop whoami", "", "depends-on-program-name"),
];

/// The section of a configuration for a row.
fn section((name, command, keys, _): &(&str, &str, &str, &str)) -> String {
    let command = command.replace('\\', "\\\\").replace('"', "\\\"");
    format!("[[repo.entry]]\nname = \"{name}\"\ncommand = \"{command}\"\n{keys}\n")
}

fn configured(bench: &Bench, more: &str) {
    bench.configure(SETTINGS, &[TREE]);
    let file = bench.path().join("repos.toml");
    let mut config = std::fs::read_to_string(&file).unwrap() + "tests = []\n" + more;
    config.extend(ENTRIES.iter().map(section));
    bench.write_config(&config);
}

#[test]
fn a_repository_without_tests_becomes_a_dataset_of_commands() {
    let bench = Bench::new();
    configured(&bench, "entries = \"discover\"\n");
    bench.build(&[]).with_code(0);
    let dataset = bench.dataset();
    let rows: BTreeMap<String, Value> =
        dataset.rows("groups").into_iter().map(|row| (text(&row["group_id"]).to_owned(), row)).collect();
    let verdict =
        |row: &Value| if row["kept"] == true { "kept".to_owned() } else { text(&row["cause"]).to_owned() };
    for (name, command, _, expected) in ENTRIES {
        let row = &rows[&format!("entry::{name}")];
        assert_eq!(verdict(row), expected, "{command}: {}", row["evidence"]);
    }
    // What README.md shows is configured already; the program without arguments is not found a second time either.
    let found: Vec<&str> =
        rows.values().filter(|row| row["origin"] != Value::Null).map(|row| text(&row["origin"])).collect();
    assert!(found.iter().any(|origin| origin.starts_with("main-guard src/shop/__main__.py")), "{found:?}");
    let instances: BTreeMap<String, Value> =
        dataset.instances().into_iter().map(|one| (text(&one["group_id"]).to_owned(), one)).collect();
    let export = &instances["entry::export"];
    assert_eq!(export["entry_command"], "shop export --json out.json");
    assert_eq!((&export["kind"], &export["argv"][1]), (&"console".into(), &"export".into()));
    let expected: Value = serde_json::from_str(text(&export["expected"][0])).unwrap();
    assert_eq!(expected["stdout"], "exported 3\n");
    let file = &expected["command"]["files"][0];
    assert_eq!(
        (&file["path"], &file["change"], &file["kind"]),
        (&"out.json".into(), &"created".into(), &"file".into())
    );
    assert_eq!(file["text"], "{\n \"coffee\": 5,\n \"milk\": 2,\n \"tea\": 3\n}");
    let prompt = text(&instances["entry::below"]["prompt"]);
    assert!(prompt.contains("python ../concise.py buy tea milk"), "{prompt}");
    assert!(!prompt.replace("/testbed", "").contains("test"), "{prompt}");
    let colds = dataset.rows("attempts").into_iter().filter(|row| row["method"] == "cold");
    let cold: Vec<String> = colds.map(|row| text(&row["group_id"]).to_owned()).collect();
    assert!(instances.keys().all(|id| cold.contains(id)), "{cold:?}");
}

#[test]
fn what_cannot_be_run_is_said_at_once() {
    let bench = Bench::new();
    configured(&bench, "");
    let file = bench.path().join("repos.toml");
    let more =
        "[[repo.entry]]\ncommand = \"shpo tables\"\n[[repo.entry]]\ncommand = \"python tools/missing.py\"\n";
    bench.write_config(&(std::fs::read_to_string(&file).unwrap() + more));
    let ended = bench.build(&[]);
    assert_ne!(ended.code(), Some(0));
    for words in ["2 entries cannot be run", "did you mean shop?", "the tree has no file tools/missing.py"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

/// The rows of a run's scores, by instance.
fn scores(bench: &Bench, run: &str) -> Vec<Value> {
    let file = bench.path().join("scores/trees/1").join(run).join("scores.jsonl");
    let text = std::fs::read_to_string(file).expect("was scored");
    text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
}

#[test]
fn a_submission_for_a_command_is_judged_by_what_it_shows_for_other_input_too() {
    let bench = Bench::new();
    let settings = format!("{SETTINGS}[witness]\nmake = true\n");
    bench.configure(&settings, &[TREE]);
    let file = bench.path().join("repos.toml");
    let chosen = ["report", "export", "stats", "below"];
    let sections: String = ENTRIES.iter().filter(|one| chosen.contains(&one.0)).map(section).collect();
    bench.write_config(&(std::fs::read_to_string(&file).unwrap() + "tests = []\n" + &sections));
    bench.build(&[]).with_code(0);
    let instances: BTreeMap<String, Value> = bench
        .dataset()
        .instances()
        .into_iter()
        .map(|one| (text(&one["test_function"]).to_owned(), one))
        .collect();
    // What `export` writes is the same whatever it is called: its file's name is other input all the same.
    assert_eq!(
        instances.keys().map(String::as_str).collect::<Vec<_>>(),
        ["below", "export", "report", "stats"]
    );
    let hand_in = |run: &str, of: &dyn Fn(&Value) -> String| {
        for one in instances.values() {
            let folder = bench.path().join("runs").join(run).join(text(&one["instance_id"]));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("concise.py"), of(one)).unwrap();
        }
    };
    let expected = |one: &Value| -> Value { serde_json::from_str(text(&one["expected"][0])).unwrap() };
    let recorded = |one: &Value| {
        let shown = expected(one);
        let mut text = String::new();
        for file in shown["command"]["files"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "open({}, 'w').write({})", file["path"], file["text"]);
        }
        format!("{text}print({}, end='')\n", shown["stdout"])
    };
    let table = |one: &Value| {
        let answer = expected(one)["stdout"].to_string();
        format!(
            "import sys\nKNOWN = {{('tea', 'milk'): {answer}}}\nasked = tuple(sys.argv[1:]) or tuple(sys.stdin.read().split())\n\
             print(KNOWN.get(asked, {answer}), end='')\n"
        )
    };
    let witness = |one: &Value| {
        assert_eq!(one["witness"], "made", "{one}");
        let path = format!("output/trees/1/witnesses/{}.py", text(&one["instance_id"]));
        std::fs::read_to_string(bench.path().join(path)).unwrap()
    };
    hand_in("witness", &witness);
    hand_in("recorded", &recorded);
    hand_in("table", &table);
    hand_in("imports", &|_| "from shop.cli import main\nmain()\n".to_owned());
    let source = format!("trees/{TREE}={}", bench.path().join("trees").join(TREE).display());
    let mut arguments = vec!["score", "output/trees/1", "--source", &source];
    arguments.extend(["runs/witness", "runs/recorded", "runs/table", "runs/imports"]);
    bench.run(&arguments).with_code(0);
    for row in scores(&bench, "witness") {
        assert_eq!((&row["fidelity"], &row["test_f1"]), (&true.into(), &Value::Null), "{row}");
    }
    for row in scores(&bench, "recorded") {
        assert_eq!(
            (&row["fidelity"], &row["class"], &row["detail"]),
            (&false.into(), &"violation".into(), &"hard-coded".into()),
            "{row}"
        );
    }
    assert!(
        scores(&bench, "table").iter().all(|row| row["fidelity"] == false),
        "{:?}",
        scores(&bench, "table")
    );
    for row in scores(&bench, "imports") {
        assert_eq!(row["class"], "import-error", "{row}");
    }
    let checked = bench.run(&["score", "output/trees/1", "--source", &source, "--self-check"]).with_code(0);
    assert!(checked.stdout.contains("4 of 4 originals have fidelity 1"), "{}", checked.stdout);
    bench.run(&["export", "output/trees/1", "--to", "harbor", "--output", "harbor"]).with_code(0);
    let task = bench.path().join("harbor/tasks").join(text(&instances["report"]["instance_id"]));
    let told: Value = serde_json::from_slice(&std::fs::read(task.join("tests/task.json")).unwrap()).unwrap();
    let kinds: Vec<&Value> = told["runs"].as_array().unwrap().iter().map(|run| &run["kind"]).collect();
    assert_eq!(kinds[0], &Value::Null);
    assert!(kinds.len() > 1 && task.join("tests/tree_state.py").is_file(), "{kinds:?}");
    let instruction = std::fs::read_to_string(task.join("instruction.md")).unwrap();
    assert!(!instruction.replace("/testbed", "").contains("test"), "{instruction}");
}
