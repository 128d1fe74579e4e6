//! `gistmill schema`: what editors check configurations and rule files with, and what readers of a dataset can rely on.

use clap::builder::PossibleValuesParser;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::config;
use crate::dataset::json_schema::of_row;
use crate::dataset::manifest::Manifest;
use crate::error::{Error, Result};
use crate::record::family::{Family, Unit};
use crate::referee::{codetaste, recube, write};
use crate::rules;
use crate::subset::TABLES;
use crate::terminal;
use crate::verify::Verification;

/// Files that are one JSON object.
const SINGLE: [&str; 3] = ["manifest", "summary", "verification"];

#[derive(Debug, clap::Args)]
pub(super) struct SchemaArguments {
    /// What it describes: `config` (repos.toml), `rules` (rule files), `manifest` (of a dataset), `summary` (of a run that was
    /// scored), `verification` (what `verify` writes), or a row of a table of a dataset
    #[arg(value_parser = PossibleValuesParser::new(["config", "rules"].into_iter().chain(SINGLE).chain(TABLES)))]
    kind: String,
    /// The family of the dataset whose table or summary it is
    #[arg(long, value_parser = PossibleValuesParser::new(Family::ALL.map(Family::as_str)), default_value = Family::Gistify.as_str())]
    family: String,
}

/// Prints a JSON schema.
pub(super) fn run(asked: &SchemaArguments) -> Result<u8> {
    let family = Family::ALL.into_iter().find(|one| one.as_str() == asked.family).unwrap_or_default();
    let text = match asked.kind.as_str() {
        "config" => format!("{:#}", config::schema()),
        "rules" => rules::SCHEMA.trim_end_matches('\n').to_owned(),
        "manifest" => format!("{:#}", of::<Manifest>()),
        "verification" => format!("{:#}", of::<Verification>()),
        "summary" => format!("{:#}", summary(family)),
        table => format!("{:#}", of_row(family, table).ok_or_else(|| no_table(family, table))?),
    };
    terminal::say(&text);
    Ok(0)
}

/// What `summary.json` of a scored run has.
fn summary(family: Family) -> Value {
    match family.unit() {
        Unit::Group => of::<write::Report>(),
        Unit::File => of::<recube::tables::Report>(),
        Unit::Pair => of::<codetaste::tables::Report>(),
    }
}

/// The schema of what a type is written as, of the draft that all of them are of. Further keys are allowed: a new one makes no new format.
fn of<T: JsonSchema>() -> Value {
    SchemaSettings::draft07().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}

fn no_table(family: Family, table: &str) -> Error {
    let own: Vec<&str> = TABLES.into_iter().filter(|table| of_row(family, table).is_some()).collect();
    Error::usage(format!("datasets of the family {} have no table {table}", family.as_str()))
        .with_hint(format!("they have {}", own.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    const REPO: &str = "[[repo]]\nslug = 'a/b'\npath = '.'\n";
    const DATASET: &str = "[dataset]\nname = 'd'\nversion = '1'\n";
    const RULE: &str = "[[rule]]\nid = 'a-b'\nreason = 'r'\n";

    /// What a validator that knows nothing of gistmill says of files, in their order: none when it finds nothing wrong.
    fn judged(schema: &str, files: &[PathBuf]) -> Vec<Option<String>> {
        let python = std::env::var_os("GISTMILL_TEST_PYTHON").expect("GISTMILL_TEST_PYTHON names a Python");
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("schema.json");
        fs_err::write(&place, schema).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema/validate.py");
        let output = std::process::Command::new(python).arg(script).arg(place).args(files).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn written(folder: &Path, texts: &[String]) -> Vec<PathBuf> {
        let place = |(number, text): (usize, &String)| {
            let path = folder.join(format!("{number}.toml"));
            fs_err::write(&path, text).unwrap();
            path
        };
        texts.iter().enumerate().map(place).collect()
    }

    #[test]
    #[ignore = "needs in GISTMILL_TEST_PYTHON a Python with jsonschema"]
    fn a_validator_takes_what_gistmill_takes() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().unwrap();
        let all = format!(
            "{DATASET}seed = 3\n[screen]\ncase_timeout = '1m30s'\n[limits]\nmemory = '1.5 GiB'\nprocesses = 99\n\
             [docker]\ncpus = 0.5\n{REPO}env = {{ A = 'b' }}\nextras = []\nexclude_newer = 2026-01-01\n\
             [subset.x]\ntrace_length = {{ max = 2.5 }}\ntiers = ['hard']\n"
        );
        let parsed = config::parse(&all, root, &|_, _| None);
        assert!(parsed.is_ok(), "gistmill takes it: {:?}", parsed.err());
        let mut files = written(folder.path(), &[all]);
        files.extend(["repos.toml", "examples/gistify.toml"].map(|name| root.join(name)));
        assert_eq!(judged(&config::schema().to_string(), &files), vec![None; 3]);
        let filters = rules::rule_files(&root.join("filters")).unwrap();
        assert_eq!(judged(rules::SCHEMA, &filters), vec![None; filters.len()]);
    }

    #[test]
    #[ignore = "needs in GISTMILL_TEST_PYTHON a Python with jsonschema"]
    fn a_validator_takes_manifests_and_refuses_what_cannot_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("dataset");
        crate::dataset::stage(&made, &crate::testing::made_up::MadeUp::new(&[30]).input())
            .unwrap()
            .finish()
            .unwrap();
        let manifest: Value =
            serde_json::from_slice(&fs_err::read(made.join("manifest.json")).unwrap()).unwrap();
        let with = |name: &str, pointer: &str, value: Value| {
            let mut other = manifest.clone();
            *other.pointer_mut(pointer).unwrap() = value;
            let path = folder.path().join(format!("{name}.json"));
            fs_err::write(&path, other.to_string()).unwrap();
            path
        };
        let files = [
            with("same", "/format_version", manifest["format_version"].clone()),
            with("counts", "/counts/total/groups", "many".into()),
            with("files", "/files", Value::Null),
            with("version", "/format_version", 1.5.into()),
        ];
        let said = judged(&of::<Manifest>().to_string(), &files);
        assert_eq!(
            said.iter().map(Option::is_some).collect::<Vec<_>>(),
            [false, true, true, true],
            "{said:?}"
        );
    }

    #[test]
    fn summaries_of_all_families_have_schemas_whose_keys_say_what_they_are() {
        for family in Family::ALL {
            let schema = summary(family);
            let keys = schema["properties"].as_object().unwrap();
            assert!(keys.len() > 5, "{family:?}: {schema}");
        }
    }

    #[test]
    #[ignore = "needs in GISTMILL_TEST_PYTHON a Python with jsonschema"]
    fn a_validator_refuses_what_gistmill_refuses() {
        let folder = tempfile::tempdir().unwrap();
        let bad: Vec<String> = [
            format!("{DATASET}sed = 3\n{REPO}"),
            format!("{DATASET}seed = -1\n{REPO}"),
            format!("{DATASET}[screen]\nattempts = 1\n{REPO}"),
            format!("{DATASET}[screen]\ncase_timeout = 60\n{REPO}"),
            format!("{DATASET}[screen]\ncompare = 'nothing'\n{REPO}"),
            format!("{DATASET}[limits]\noutput = '4 gigs'\n{REPO}"),
            format!("{DATASET}[limits]\nprocesses = 9\n{REPO}"),
            format!("{DATASET}{REPO}git = 'https://h/a'\n"),
            format!("{DATASET}[[repo]]\nslug = 'a/b'\ngit = 'https://h/a'\ncommit = 'main'\n"),
            format!("{DATASET}{REPO}extras = 'test'\n"),
            format!("{DATASET}{REPO}[subset.top]\nsize = 3\n"),
            format!("{DATASET}{REPO}[subset.x]\ntrace = {{ min = 1 }}\n"),
            DATASET.to_owned(),
            REPO.to_owned(),
        ]
        .to_vec();
        for text in &bad {
            assert!(
                config::parse(text, Path::new("."), &|_, _| None).is_err(),
                "gistmill refuses it: {text}"
            );
        }
        let said = judged(&config::schema().to_string(), &written(folder.path(), &bad));
        let taken: Vec<&String> =
            bad.iter().zip(&said).filter(|(_, said)| said.is_none()).map(|(text, _)| text).collect();
        assert!(taken.is_empty(), "{taken:#?}");
        let bad: Vec<String> = [
            "action = 'keep'\nmatch = { name = 'x' }",
            "action = 'flag'\nmatch = {}",
            "action = 'flag'",
            "action = 'flag'\ncauses = ['fails']\nmatch = { name = 'x' }",
            "action = 'keep'\ncauses = ['fail']\nmatch = { name = 'x' }",
            "action = 'flag'\nmatch = { max_duration = 5 }",
        ]
        .map(|rest| format!("{RULE}{rest}\n"))
        .to_vec();
        for text in &bad {
            assert!(
                crate::rules::RuleSet::parse(&[("a.toml", text)]).is_err(),
                "gistmill refuses it: {text}"
            );
        }
        let said = judged(rules::SCHEMA, &written(folder.path(), &bad));
        assert!(said.iter().all(Option::is_some), "{said:?}");
    }
}
