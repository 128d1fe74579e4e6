//! What the files of a repository must not make gistmill read, quote or ask for.

use crate::builds::{elsewhere, hooks};
use crate::caller::Caller;

pub fn links_of_a_tree_publish_nothing_of_the_host(caller: Caller) {
    let built = hooks(caller);
    built.assert_tells_nothing_of(&[&built.place.mark_behind_links()]);
    for name in ["links", "links_in_git"] {
        if built.failure(name).is_none() {
            built.assert_groups(name, &[("tests/test_plain.py::test_value", "kept")]);
        }
    }
    built.assert_neighbour_is_complete();
}

pub fn a_requirements_file_that_is_not_there_is_no_package(caller: Caller) {
    let built = hooks(caller);
    let failure = built.failure("confused").expect("a file that is missing is no environment");
    let shown = format!("{failure}{}", built.ended().stderr);
    assert!(!shown.contains("requirements-txt"), "the index was asked for a file: {shown}");
    assert!(shown.contains("requirements.txt"), "{shown}");
}

pub fn a_work_tree_that_lies_elsewhere_is_not_looked_at(caller: Caller) {
    let built = elsewhere(caller);
    built.assert_tells_nothing_of(&[&built.place.mark]);
    let ended = built.ended();
    assert!(matches!(ended.code(), Some(0 | 1)), "one repository stops the build: {ended:?}");
    // The neighbour, which comes last, was pinned: its files are in the cache.
    let sources = built.place.path().join("cache/sources");
    assert!(!crate::evidence::files_with(&[sources], &["class Tally"]).is_empty(), "{ended:?}");
}
