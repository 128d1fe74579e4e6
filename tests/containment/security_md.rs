//! SECURITY.md names a test for each promise: each of them is there.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

use crate::TESTS;

/// `file::name` as SECURITY.md writes it.
fn named(text: &str) -> Vec<(String, String)> {
    let pattern = Regex::new(r"`((?:tests|src)/[\w/.]+\.rs)::(\w+)`").expect("is a pattern");
    pattern.captures_iter(text).map(|found| (found[1].to_owned(), found[2].to_owned())).collect()
}

/// What is wrong with the tests that a text names.
fn wrong(root: &Path, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, name) in named(text) {
        let source = std::fs::read_to_string(root.join(&file)).unwrap_or_default();
        if !source.contains(&format!("fn {name}(")) {
            wrong.push(format!("{file} has no test {name}"));
        }
        let module = Path::new(&file).file_stem().expect("has a name").to_string_lossy().into_owned();
        let registered = TESTS.iter().any(|test| test.module == module && test.name == name);
        if file.starts_with("tests/containment/") && !registered {
            wrong.push(format!("{file}::{name} is not run"));
        }
    }
    wrong
}

pub fn every_test_that_security_md_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("SECURITY.md")).expect("is there");
    assert!(named(&text).len() > 20, "SECURITY.md names no tests");
    let wrong_ones = wrong(root, &text);
    assert!(wrong_ones.is_empty(), "{wrong_ones:#?}");
    // The check itself finds what is not there.
    assert_eq!(wrong(root, "`tests/containment/build.rs::no_such_test`").len(), 2);
}

pub fn every_attack_stands_in_security_md() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("SECURITY.md")).expect("is there");
    let named: BTreeSet<String> = named(&text).into_iter().map(|(_, name)| name).collect();
    let missing: Vec<_> = TESTS.iter().map(|test| test.name).filter(|name| !named.contains(*name)).collect();
    assert!(missing.is_empty(), "promises without a line: {missing:#?}");
}

pub fn every_attack_is_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/containment");
    let pattern = Regex::new(r"(?m)^pub fn (\w+)\(caller: Caller\)( \{|$)").expect("is a pattern");
    for module in ["build", "command_line", "declarations", "gate", "index", "names", "run"] {
        let source = std::fs::read_to_string(folder.join(format!("{module}.rs"))).expect("is there");
        for found in pattern.captures_iter(&source) {
            let runs = TESTS.iter().any(|test| test.module == module && test.name == &found[1]);
            assert!(runs, "{module}::{} is not run", &found[1]);
        }
    }
}
