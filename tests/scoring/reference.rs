//! The metrics against an independent reference, on submissions that are made at random from a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use gistmill::family::gistify;
use gistmill::family::gistify::{Corpus, Injection, NotInjected, TestName};
use gistmill::score::{File, Modules, Ratio};
use libtest_mimic::{Failed, Trial};
use serde::Deserialize;

use crate::{agree, needing};

const PYTHON: &str = "GISTMILL_TEST_PYTHON";
/// Differences that are shown before the rest is counted only.
const SHOWN: usize = 5;

#[derive(Deserialize)]
struct Made {
    modules: Vec<String>,
    files: BTreeMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    events: BTreeSet<u32>,
    test: Option<String>,
    file: Option<String>,
    /// None where the text is no Python.
    expected: Option<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    existence: (u32, u32),
    control: (u32, u32),
    execution: (u32, u32),
    statements: (u32, u32),
    f1: Option<f64>,
    injection: Option<String>,
    evaluated: Option<String>,
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for seed in 1..=8 {
        trials.push(needing(PYTHON, &format!("reference: files made up from seed {seed}"), move |python| {
            compare(&python, "--made", 40, seed)
        }));
    }
    for tree in ["every_verdict", "labelled", "hostile", "small_and_good"] {
        trials.push(needing(PYTHON, &format!("reference: functions of tests/trees/{tree}"), move |python| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees").join(tree);
            compare(&python, &folder.to_string_lossy(), 15, 1)
        }));
    }
    trials.extend(checkouts());
    trials
}

/// One trial for each checkout.
fn checkouts() -> Vec<Trial> {
    let folders = std::env::var_os("GISTMILL_TEST_CHECKOUTS").map(std::fs::read_dir);
    let Some(Ok(folders)) = folders else {
        return vec![needing(
            "GISTMILL_TEST_CHECKOUTS",
            "reference: functions of real repositories",
            |folder| Err(format!("{folder} cannot be read").into()),
        )];
    };
    let count = std::env::var("GISTMILL_TEST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(100);
    let folders = folders.filter_map(Result::ok).map(|folder| folder.path()).filter(|folder| folder.is_dir());
    let trial = |folder: std::path::PathBuf| {
        let folder = folder.to_string_lossy().into_owned();
        needing(PYTHON, &format!("reference: {count} files made of {folder}"), move |python| {
            compare(&python, &folder, count, 1)
        })
    };
    folders.map(trial).collect()
}

fn compare(python: &str, source: &str, count: usize, seed: u64) -> Result<(), Failed> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scoring/compare.py");
    let script = std::env::var_os("GISTMILL_TEST_COMPARE").map_or(script, Into::into);
    let output =
        Command::new(python).arg(script).arg(source).args([count.to_string(), seed.to_string()]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let made: Made = serde_json::from_slice(&output.stdout)?;
    agree("submissions", made.cases.len(), count)?;
    let modules: Modules = made.modules.iter().cloned().collect();
    let files: Vec<_> = made.files.iter().map(|(path, text)| File { path, text }).collect();
    let corpus = Corpus::of(&files, modules.clone());
    let differences: Vec<String> = made
        .cases
        .iter()
        .enumerate()
        .filter_map(|(number, case)| {
            let difference = check(case, &made, &corpus, &modules).err()?;
            Some(format!("submission {number}: {}\n{}", difference.message().unwrap_or_default(), case.text))
        })
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    let shown = differences.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n-----\n");
    Err(format!("{} of {count} differ\n{shown}", differences.len()).into())
}

fn check(case: &Case, made: &Made, corpus: &Corpus, modules: &Modules) -> Result<(), Failed> {
    let existence = corpus.line_existence(&case.text);
    let Some(expected) = &case.expected else { return agree("can be read", existence.is_ok(), false) };
    let existence = existence.map_err(|why| format!("cannot be read: {why:?}"))?;
    let ratio = |(part, whole)| Ratio { part, whole };
    agree("existence", existence.rate, ratio(expected.existence))?;
    agree("existence, all control flow", existence.with_control_flow, ratio(expected.control))?;
    let execution = gistify::line_execution(&case.text, &case.events).map_err(|why| format!("{why:?}"))?;
    agree("execution", execution.rate, ratio(expected.execution))?;
    agree("execution of statements", execution.statements, ratio(expected.statements))?;
    let (Some(test), Some(path)) = (&case.test, &case.file) else { return Ok(()) };
    let Ok(test) = test.parse::<TestName>();
    let original = File { path, text: &made.files[path] };
    let overlap =
        gistify::test_overlap(&case.text, original, &test, modules).map_err(|why| format!("{why:?}"))?;
    agree("F1", overlap.map(|it| format!("{:.9}", it.f1())), expected.f1.map(|f1| format!("{f1:.9}")))?;
    let (how, text) = match gistify::inject(&case.text, original, &test, modules) {
        Ok(evaluated) => match evaluated.injection {
            Injection::Equal => ("equal", Some(evaluated.text)),
            Injection::Replaced => ("replaced", Some(evaluated.text)),
            Injection::None => ("none", None),
        },
        Err(NotInjected::Missing) => ("missing", None),
        Err(NotInjected::Unparsable { .. }) => ("unparsable", None),
        Err(NotInjected::Original { .. }) => ("original", None),
    };
    agree("injection", Some(how), expected.injection.as_deref())?;
    agree("evaluated text", text.as_deref(), expected.evaluated.as_deref())
}
