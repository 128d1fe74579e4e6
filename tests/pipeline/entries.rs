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

fn configured(bench: &Bench, more: &str) {
    bench.configure(SETTINGS, &[TREE]);
    let file = bench.path().join("repos.toml");
    let mut config = std::fs::read_to_string(&file).unwrap() + "tests = []\n" + more;
    for (name, command, keys, _) in ENTRIES {
        let command = command.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(config, "[[repo.entry]]\nname = \"{name}\"\ncommand = \"{command}\"\n{keys}");
    }
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
