//! Whole datasets of made-up repositories, written, read back and held against the contract.

mod growth;

use std::path::Path;
use std::process::Command;

use polars::prelude::*;
use serde_json::Value;

use super::*;
use crate::packed::Packed;
use crate::record::evidence::GroupEvidence;
use crate::testing::made_up::MadeUp;

fn written(made_up: &MadeUp) -> (tempfile::TempDir, PathBuf, Summary) {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("made-up/2026.11");
    let summary = crate::testing::write(&directory, &made_up.input()).unwrap();
    (folder, directory, summary)
}

fn read(directory: &Path, table: &str) -> DataFrame {
    let file = fs_err::File::open(directory.join(format!("{table}.parquet"))).unwrap();
    ParquetReader::new(file.into_file()).finish().unwrap()
}

fn manifest(directory: &Path) -> Value {
    serde_json::from_slice(&fs_err::read(directory.join("manifest.json")).unwrap()).unwrap()
}

/// Changes every group of a repository.
fn change(repository: &mut Contribution, change: impl Fn(&mut GroupEvidence)) {
    let groups = repository.evidence.groups.iter().map(|group| {
        let mut group = group?;
        change(&mut group);
        Ok(group)
    });
    repository.evidence.groups = Packed::of(groups.collect::<Vec<_>>()).unwrap();
}

#[test]
fn reproducible_files_are_the_same_bytes_whatever_the_order_of_repositories_and_the_durations() {
    let one = MadeUp::new(&[40, 25, 9]);
    let mut other = MadeUp::new(&[40, 25, 9]);
    other.repositories.reverse();
    for repository in &mut other.repositories {
        change(repository, |group| group.attempts.iter_mut().for_each(|attempt| attempt.duration_ms += 7.0));
    }
    let (_one, first, _) = written(&one);
    let (_other, second, _) = written(&other);
    for name in manifest(&first)["reproducible"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        assert_eq!(
            fs_err::read(first.join(name)).unwrap(),
            fs_err::read(second.join(name)).unwrap(),
            "{name}"
        );
    }
    assert_eq!(manifest(&first)["reproducible"].as_array().unwrap().len(), 4 + 2 * one.subsets.len() + 2 * 3);
}

#[test]
fn an_instance_can_be_used_by_itself() {
    let made_up = MadeUp::new(&[30]);
    let (_folder, directory, _) = written(&made_up);
    let dataset = Dataset::open(&directory).unwrap();
    let instances = dataset.instances().unwrap();
    let cases = dataset.table("cases", &[]).unwrap();
    let (ids, outcomes) = (cases.whole_texts("case_id").unwrap(), cases.whole_texts("outcome").unwrap());
    for one in &instances {
        assert!(
            one.prompt.contains(&one.entry_command) && one.prompt.contains("concise.py"),
            "{}",
            one.prompt
        );
        assert_eq!(
            one.test_source.as_deref(),
            Some(format!("    def {}(self): pass", one.test_function).as_str())
        );
        assert!(one.test_line_start > Some(2) && one.test_line_start == one.test_line_end);
        assert_eq!((one.repo.as_str(), one.base_commit.as_ref()), (one.slug.as_str(), Some(&one.commit)));
        assert_eq!(
            (one.version.as_str(), one.created_at.as_str()),
            (&one.commit[..12], "2026-11-01T00:00:00Z")
        );
        assert!(one.pass_to_pass.is_empty() && one.fail_to_pass.len() == one.case_ids.len());
        for ((case, expected), name) in one.case_ids.iter().zip(&one.expected).zip(&one.fail_to_pass) {
            let expected: Value = serde_json::from_str(expected).unwrap();
            let row = ids.iter().position(|id| id == case).unwrap();
            assert_eq!(
                (&expected["case_id"], &expected["outcome"]),
                (&Value::from(case.as_str()), &Value::from(outcomes[row]))
            );
            assert_eq!(expected["stdout"], "said\n");
            assert_eq!(*name, case.replace(&one.test_file, "concise.py"));
        }
    }
    let prompt = dataset.manifest.prompt.as_ref().unwrap();
    assert_eq!(crate::record::id::sha256_hex(prompt.template.as_bytes()), prompt.template_sha256);
}

#[test]
fn code_that_may_not_be_passed_on_stays_out() {
    let made_up = MadeUp::new(&[30]);
    let folder = tempfile::tempdir().unwrap();
    let input = DatasetInput { passes_code_on: false, ..made_up.input() };
    crate::testing::write(&folder.path().join("d"), &input).unwrap();
    let dataset = Dataset::open(&folder.path().join("d")).unwrap();
    assert!(!dataset.directory.join("trees").exists() && dataset.manifest.trees.is_empty());
    assert!(dataset.instances().unwrap().iter().all(|one| one.test_source.is_none()));
    let (_folder, whole, _) = written(&made_up);
    let whole = Dataset::open(&whole).unwrap();
    assert_eq!(whole.manifest.trees["made/up0"], "trees/made__up0.tar.zst");
    for file in ["trees/made__up0.tar.zst", "trees/made__up0.sha256"] {
        assert!(whole.manifest.files.contains_key(file), "{file}");
    }
}

#[test]
fn the_manifest_sums_how_rules_were_used_and_lists_those_that_were_not() {
    let (_folder, directory, _) = written(&MadeUp::new(&[12, 5]));
    let expected = serde_json::json!({
        "drops": { "action": "drop", "matched": 17, "decided": 2 },
        "never": { "action": "drop", "matched": 0, "decided": 0 },
    });
    assert_eq!(manifest(&directory)["rules"], expected);
}

#[test]
fn writing_again_over_a_dataset_gives_the_same_directory() {
    let made_up = MadeUp::new(&[12]);
    let (_folder, directory, _) = written(&made_up);
    let before = manifest(&directory);
    crate::testing::write(&directory, &made_up.input()).unwrap();
    assert_eq!(before, manifest(&directory));
}

#[test]
fn json_lines_and_parquet_have_the_same_columns_rows_and_order() {
    let (_folder, directory, _) = written(&MadeUp::new(&[30, 10]));
    let frame = read(&directory, "instances");
    let lines = fs_err::read_to_string(directory.join("instances.jsonl")).unwrap();
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), frame.height());
    let names: Vec<&str> = schema::instances().iter().map(|column| column.name).collect();
    let places: Vec<_> = names.iter().map(|name| lines.find(&format!("\"{name}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "keys of the first line stand in the order of the columns");
    let ids: Vec<_> =
        frame.column("instance_id").unwrap().str().unwrap().iter().map(Option::unwrap).collect();
    assert!(rows.iter().map(|row| row["instance_id"].as_str().unwrap()).eq(ids));
}

#[test]
fn list_columns_are_lists_of_text_also_when_there_is_no_instance() {
    let mut made_up = MadeUp::new(&[8]);
    made_up.repositories[0].published.clear();
    let (_folder, directory, summary) = written(&made_up);
    assert_eq!(summary.total.published, 0);
    let frame = read(&directory, "instances");
    for name in ["case_ids", "files", "hard_axes", "worlds", "import_files"] {
        let dtype = frame.column(name).unwrap().dtype().clone();
        assert_eq!(dtype, DataType::List(Box::new(DataType::String)), "{name}");
    }
    assert_eq!(frame.column("duration_ms").unwrap().dtype(), &DataType::Float64);
}

#[test]
fn summary_counts_every_group_once_with_the_uncollected_ones() {
    let (_folder, directory, summary) = written(&MadeUp::new(&[20, 5]));
    let total = &summary.total;
    assert_eq!(total.groups, 20 + 5 + 2, "one file of each repository cannot be collected");
    assert_eq!(total.groups, total.kept + total.dropped.values().sum::<usize>());
    assert_eq!(total.dropped["collection-error"], 2);
    assert_eq!(read(&directory, "groups").height(), total.groups);
    assert_eq!(read(&directory, "cases").height(), total.cases);
    assert_eq!(manifest(&directory)["counts"]["total"], serde_json::to_value(total).unwrap());
}

#[test]
fn no_host_path_and_no_secret_is_published() {
    let (_folder, directory, _) = written(&MadeUp::new(&[20]));
    for entry in walkdir::WalkDir::new(&directory) {
        let entry = entry.unwrap();
        let packed = entry.path().extension().is_some_and(|name| name == "parquet" || name == "zst");
        if entry.file_type().is_file() && !packed {
            let text = fs_err::read_to_string(entry.path()).unwrap();
            assert!(!text.contains("/somewhere/private"), "{}", entry.path().display());
            assert!(!text.contains("hush-hush"), "{}", entry.path().display());
        }
    }
    let frame = read(&directory, "groups");
    let evidence = frame.column("evidence").unwrap().str().unwrap();
    assert!(evidence.iter().flatten().all(|text| !text.contains("/somewhere/private")));
    let environments = manifest(&directory)["environments"].to_string();
    assert!(environments.contains("error in <venv>/lib/python3.12"), "{environments}");
}

#[test]
fn golden_output_is_published_for_kept_groups_only() {
    let (_folder, directory, _) = written(&MadeUp::new(&[40]));
    let cases = read(&directory, "cases");
    let [outcome, stdout, instance] =
        ["outcome", "stdout", "instance_id"].map(|name| cases.column(name).unwrap());
    assert!(
        outcome.null_count() < stdout.null_count(),
        "an agreed failure keeps its outcome, not its output"
    );
    assert!(stdout.null_count() < instance.null_count(), "kept, but not published");
    assert!(outcome.null_count() > 0, "where attempts differ there is nothing golden");
}

#[test]
fn records_that_contradict_the_contract_are_refused_and_the_old_dataset_stays() {
    let mut made_up = MadeUp::new(&[12]);
    let (_folder, directory, _) = written(&made_up);
    let before = manifest(&directory);
    let repository = &mut made_up.repositories[0];
    let published = repository.published.first().unwrap().clone();
    change(repository, |group| {
        if group.instance_id == published {
            group.traced = None;
        }
    });
    let error = crate::testing::write(&directory, &made_up.input()).unwrap_err();
    assert!(error.to_string().contains("published without a trace"), "{error}");
    assert_eq!(before, manifest(&directory));
}

/// The Python that a variable names; a test that asks for it fails where the variable is not set.
fn python(variable: &str) -> std::ffi::OsString {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names a Python"))
}

#[test]
#[ignore = "needs ../shared/check_contract.py, and in GISTMILL_TEST_PYTHON a Python with polars"]
fn the_contract_checker_finds_nothing_broken() {
    let checker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/check_contract.py");
    assert!(checker.is_file(), "{} is missing", checker.display());
    let (_folder, directory, _) = written(&MadeUp::new(&[60, 30, 1]));
    let output = Command::new(python("GISTMILL_TEST_PYTHON")).arg(&checker).arg(&directory).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs in GISTMILL_TEST_PYTHON a Python with datasets"]
fn hugging_face_datasets_loads_every_config_offline() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/card/load_dataset.py");
    let (_folder, directory, summary) = written(&MadeUp::new(&[60, 30, 1]));
    let output = Command::new(python("GISTMILL_TEST_PYTHON")).arg(&script).arg(&directory).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let rows: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(rows["instances"], summary.total.published);
    assert_eq!(rows["groups"], summary.total.groups);
    assert_eq!(rows["few-short"], 7);
    assert!(rows["top"].as_u64().unwrap() >= 5);
}

#[test]
#[ignore = "needs Pythons with pandas, pyarrow, polars, duckdb and datasets: new ones in GISTMILL_TEST_PYTHON, those of two years ago in GISTMILL_TEST_OLD_PYTHON"]
fn every_library_reads_every_file() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/card/readers.py");
    let (_folder, directory, summary) = written(&MadeUp::new(&[60, 30, 1]));
    for variable in ["GISTMILL_TEST_PYTHON", "GISTMILL_TEST_OLD_PYTHON"] {
        let output = Command::new(python(variable)).arg(&script).arg(&directory).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{variable}: {said}{}", String::from_utf8_lossy(&output.stderr));
        let read: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        assert_eq!(read["rows"]["instances.parquet"], summary.total.published);
        assert_eq!(read["rows"].as_object().unwrap().len(), 5 + summary.subsets.len(), "{said}");
    }
}

#[test]
fn columns_are_plain_text_and_lists_for_readers_that_know_parquet_alone() {
    let (_folder, directory, _) = written(&MadeUp::new(&[12]));
    let bytes = fs_err::read(directory.join("instances.parquet")).unwrap();
    let names_arrow_types = bytes.windows(12).any(|part| part == b"ARROW:schema");
    assert!(!names_arrow_types, "the types of one writer's memory are no part of the file");
}
