//! What a conftest must not change while its tests are collected, or for any process after it.

use crate::builds::runs;
use crate::caller::Caller;

pub fn a_conftest_adds_no_test(caller: Caller) {
    let built = runs(caller);
    built.assert_groups(
        "gate",
        &[
            ("tests/test_gate.py::test_says_what_the_source_says", "kept"),
            ("tests/test_gate.py::test_environment_is_as_installed", "kept"),
        ],
    );
}

pub fn a_conftest_changes_no_source_and_no_byte_code(caller: Caller) {
    let said = runs(caller).stdout("gate", "tests/test_gate.py::test_says_what_the_source_says");
    assert_eq!(said.trim(), "plain pinned hashed pinned lazy pinned");
}

pub fn a_conftest_changes_no_environment(caller: Caller) {
    let said = runs(caller).stdout("gate", "tests/test_gate.py::test_environment_is_as_installed");
    assert_eq!(said.trim(), "site clean iniconfig clean");
}

pub fn a_conftest_leaves_nothing_on_the_disk(caller: Caller) {
    let built = runs(caller);
    built.place.assert_victims_untouched();
    assert_eq!(built.failure("gate"), None);
    let sources = built.place.path().join("cache/sources");
    let found =
        crate::evidence::files_with(&built.place.written(), &["POISON OF THE CONFTEST", "run-by-git"]);
    // The conftest itself says so, wherever its tree is kept, and so does its byte code.
    let of_conftest = |path: &std::path::Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("conftest."))
    };
    let objects = |path: &std::path::Path| path.components().any(|one| one.as_os_str() == "objects");
    let left: Vec<_> = found
        .iter()
        .filter(|path| !of_conftest(path) && !objects(path) && !path.starts_with(&sources))
        .collect();
    assert!(left.is_empty(), "what the conftest wrote is in {left:#?}");
}

pub fn no_setting_of_git_survives_the_gate(caller: Caller) {
    let built = runs(caller);
    assert_eq!(built.failure("gate"), None);
    let found = crate::evidence::files_with(&[built.place.path().join("cache")], &["fsmonitor"]);
    let settings: Vec<_> = found.iter().filter(|path| path.ends_with(".git/config")).collect();
    assert!(settings.is_empty(), "{settings:#?}");
    built.place.assert_victims_untouched();
}
