//! SECURITY.md names tests for each promise: each of them is there, and is run.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

use crate::TESTS;

/// `file::name` as SECURITY.md writes it.
fn named(text: &str) -> Vec<(String, String)> {
    let pattern = Regex::new(r"`((?:tests|src)/[\w/.]+\.(?:rs|py))::(\w+)`").expect("is a pattern");
    pattern.captures_iter(text).map(|found| (found[1].to_owned(), found[2].to_owned())).collect()
}

/// Whether a file is compiled: the root of a target, or a module that a file beside or above it names.
fn is_compiled(root: &Path, file: &Path) -> bool {
    let stem = file.file_stem().expect("has a name").to_string_lossy().into_owned();
    let folder = file.parent().expect("is in a folder");
    if folder == Path::new("tests") || stem == "main" {
        return true;
    }
    let named =
        Regex::new(&format!(r#"(?m)^\s*(pub(\(.+\))? )?mod {stem};|^\s*#\[path = ".*\b{stem}\.rs"\]"#));
    let named = named.expect("is a pattern");
    let above = [root.join(folder), root.join(folder.parent().expect("is below the root"))];
    let files = above.iter().flat_map(|folder| std::fs::read_dir(folder).expect("can be listed").flatten());
    let mut texts = files.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    texts.any(|text| named.is_match(&text))
}

/// Whether a text has a test of that name which is run.
fn has_test(text: &str, name: &str) -> bool {
    let pattern = format!(r"(?m)^\s*#\[(tokio::)?test\]\n(\s*(#\[.*|//.*)\n)*\s*(async )?fn {name}\(");
    Regex::new(&pattern).expect("is a pattern").is_match(text)
}

/// What is wrong with the tests that a text names.
fn wrong(root: &Path, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, name) in named(text) {
        let source = std::fs::read_to_string(root.join(&file)).unwrap_or_default();
        let path = Path::new(&file);
        let module = path.file_stem().expect("has a name").to_string_lossy().into_owned();
        let is_run = if file.ends_with(".py") {
            // pytest finds them by their names.
            module.starts_with("test_")
                && source.contains(&format!("\ndef {name}("))
                && name.starts_with("test_")
        } else if file.starts_with("tests/containment/") {
            TESTS.iter().any(|test| test.module == module && test.name == name)
        } else {
            // Where tests depend on the machine, a list of their own starts them.
            let list = std::fs::read_to_string(root.join(path).with_file_name("main.rs")).unwrap_or_default();
            (has_test(&source, &name) && is_compiled(root, path))
                || list.contains(&format!(" {module}::{name}"))
        };
        if !is_run {
            wrong.push(format!("{file} has no test {name} that is run"));
        }
    }
    wrong
}

/// The promises of a table, with what shows each.
fn promises(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 4, "who, trust, promise, tests: {row}");
        (cells[2].to_owned(), cells[3].to_owned())
    })
    .collect()
}

/// Promises that no test shows: without one, or with something else than tests in their place.
fn unshown(text: &str) -> Vec<String> {
    let is_shown = |tests: &str| {
        let names = tests.split(", ").filter(|one| named(one).len() == 1).count();
        names > 0 && names == tests.split(", ").count()
    };
    promises(text).into_iter().filter(|(_, tests)| !is_shown(tests)).map(|(promise, _)| promise).collect()
}

pub fn every_promise_names_a_test_that_is_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("SECURITY.md")).expect("is there");
    assert!(promises(&text).len() > 30, "SECURITY.md promises little");
    assert_eq!(unshown(&text), [""; 0]);
    assert_eq!(wrong(root, &text), [""; 0]);
}

/// The checks find what is not there.
pub fn a_promise_without_a_test_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let row =
        |tests: &str| format!("| who | with | promised | by |\n|---|---|---|---|\n| a | b | c | {tests} |\n");
    for tests in ["", "-", "by reading", "`tests/kernel.rs`", "`tests/kernel.rs::x` and more, `y`"] {
        assert_eq!(unshown(&row(tests)), ["c"], "{tests}");
    }
    assert_eq!(unshown(&row("`tests/kernel.rs::x`, `src/a/b.rs::y`")), [""; 0]);
    for name in [
        "tests/containment/build.rs::x",
        "tests/source/git.rs::x",
        "tests/source/none.rs::x",
        "src/runner/python/tests/test_hostile.py::test_x",
    ] {
        assert_eq!(wrong(root, &format!("`{name}`")).len(), 1, "{name}");
    }
    // A function beside tests, and one that is commented out.
    assert!(!has_test("fn helper() {}\n#[test]\nfn a() {}\n//#[test]\n//fn b() {}\n", "helper"));
    assert!(
        !has_test("//#[test]\n//fn b() {}\n", "b") && has_test("#[test]\n#[ignore = \"x\"]\nfn b() {}", "b")
    );
    assert!(!is_compiled(root, Path::new("tests/source/none.rs")));
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
