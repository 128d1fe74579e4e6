//! What a test must not reach, keep or spoil.

use crate::builds::{forged_traces, runs, unruly};
use crate::caller::Caller;
use crate::evidence::Built;

const MACHINE: &str = "tests/test_machine.py::";

/// What a test of the machine printed, once it ran to its end and was published.
#[track_caller]
fn said(built: &Built, test: &str) -> String {
    built.stdout("running", &format!("{MACHINE}{test}")).trim().to_owned()
}

pub fn keyrings_of_the_caller_are_closed(caller: Caller) {
    let built = runs(caller);
    let found = said(&built, "test_keyrings");
    assert_eq!(found, "keys []");
    built.assert_tells_nothing_of(&[&built.place.mark_in_keyring()]);
}

pub fn no_key_of_an_attempt_is_there_in_the_next(caller: Caller) {
    let built = runs(caller);
    assert_eq!(built.groups("running")[&format!("{MACHINE}test_leaves_a_key")], "kept");
    let found = said(&built, "test_keyrings");
    assert!(!found.contains("left-by-an-attempt"), "{found}");
}

pub fn memory_is_bounded_or_said_not_to_be(caller: Caller) {
    let built = runs(caller);
    let missing = built.dataset().manifest()["isolation"]["missing"].to_string();
    let verdict = built.groups("running")[&format!("{MACHINE}test_memory_files")].clone();
    let held = verdict == "kept" && said(&built, "test_memory_files").contains("HELD");
    assert!(
        !held || missing.contains("memory"),
        "a gibibyte was held under 768 MiB, and {missing} does not say so"
    );
}

pub fn sockets_that_leave_the_network_namespace_are_refused(caller: Caller) {
    let found = said(&runs(caller), "test_socket_families");
    assert_eq!(found, "");
}

pub fn no_new_namespace_is_made(caller: Caller) {
    let found = said(&runs(caller), "test_namespaces");
    assert_eq!(found, "");
}

pub fn no_ring_of_system_calls_is_made(caller: Caller) {
    let found = said(&runs(caller), "test_io_uring");
    assert_eq!(found, "");
}

pub fn no_file_is_leased(caller: Caller) {
    let found = said(&runs(caller), "test_leases");
    assert_eq!(found, "");
}

pub fn no_limit_of_another_process_is_set(caller: Caller) {
    let found = said(&runs(caller), "test_limits_of_others");
    assert_eq!(found, "");
}

pub fn tests_have_no_capabilities(caller: Caller) {
    let found = said(&runs(caller), "test_capabilities");
    assert_eq!(found, "");
}

pub fn no_device_is_made_and_nothing_mounted(caller: Caller) {
    let found = said(&runs(caller), "test_mounts_and_devices");
    assert_eq!(found, "");
}

pub fn settings_of_the_kernel_are_closed(caller: Caller) {
    let found = said(&runs(caller), "test_settings_of_the_kernel");
    assert_eq!(found, "");
}

pub fn processes_and_files_of_the_host_are_out_of_sight(caller: Caller) {
    let built = runs(caller);
    assert_eq!(said(&built, "test_the_host_in_sight"), "SAW []");
    built.assert_tells_nothing_of(&[&built.place.mark]);
    built.place.assert_victims_untouched();
}

pub fn nothing_of_an_attempt_is_there_in_the_next(caller: Caller) {
    let built = runs(caller);
    assert_eq!(built.groups("running")[&format!("{MACHINE}test_leaves_what_it_can")], "kept");
    assert_eq!(said(&built, "test_looks_for_what_is_left"), "");
}

/// The verdicts of a file's tests without those that may be anything.
#[track_caller]
fn kept(built: &Built, name: &str, tests: &[&str]) {
    assert_eq!(built.failure(name), None, "one test took its whole repository");
    let groups = built.groups(name);
    for test in tests {
        assert_eq!(groups.get(*test).map(String::as_str), Some("kept"), "{test}: {groups:#?}");
    }
}

pub fn a_stopped_parent_costs_one_test(caller: Caller) {
    let built = unruly(caller);
    kept(
        &built,
        "unruly",
        &[
            "tests/test_before.py::test_before",
            "tests/test_parent.py::test_beside_it",
            "tests/test_zz_after.py::test_zz_after",
        ],
    );
    let verdict = built.groups("unruly")["tests/test_parent.py::test_stops_its_parent"].clone();
    assert!(["crashes", "times-out"].contains(&verdict.as_str()), "{verdict}");
}

pub fn a_forged_report_costs_one_test(caller: Caller) {
    let built = unruly(caller);
    kept(&built, "unruly", &["tests/test_reports.py::test_beside_them"]);
    let groups = built.groups("unruly");
    for test in ["test_report_is_no_record", "test_report_has_another_shape"] {
        assert_eq!(groups[&format!("tests/test_reports.py::{test}")], "crashes", "{test}");
    }
    // What is written after the scribbling may be whole.
    let scribbled = groups["tests/test_reports.py::test_report_is_scribbled_over"].as_str();
    assert!(["crashes", "kept"].contains(&scribbled), "{scribbled}");
    assert!(
        groups.contains_key("tests/test_reports.py::test_report_has_numbers_that_overflow"),
        "{groups:#?}"
    );
}

pub fn names_that_are_no_text_cost_no_repository(caller: Caller) {
    let built = unruly(caller);
    kept(
        &built,
        "unruly",
        &["tests/test_functions.py::test_beside_it", "tests/test_names_of_files.py::test_beside_it"],
    );
    let groups = built.groups("unruly");
    for test in [
        "tests/test_functions.py::test_calls_a_function_with_a_lone_surrogate",
        "tests/test_names_of_files.py::test_calls_into_a_file_whose_name_is_no_text",
    ] {
        // A test that opens the file beside it depends on where it lies.
        let verdicts = ["kept", "crashes", "depends-on-test-file-location"];
        assert!(verdicts.contains(&groups[test].as_str()), "{test}: {groups:#?}");
    }
}

pub fn a_forged_trace_reads_no_file_of_the_host(caller: Caller) {
    let built = forged_traces(caller);
    built.assert_code(0);
    kept(&built, "forged", &["tests/test_trace.py::test_beside_them"]);
    built.assert_neighbour_is_complete();
    for row in built.dataset().rows("traces") {
        let file = crate::common::dataset::text(&row["file"]);
        assert!(!file.starts_with('/') && !file.contains(".."), "{row}");
    }
    built.assert_tells_nothing_of(&[&built.place.mark]);
}

pub fn a_forged_number_of_calls_stops_nothing(caller: Caller) {
    let built = forged_traces(caller);
    built.assert_code(0);
    kept(&built, "forged", &["tests/test_trace.py::test_beside_them"]);
    assert!(built.groups("forged").contains_key("tests/test_trace.py::test_counts_more_than_fits"));
}

pub fn the_neighbour_of_hostile_tests_is_complete(caller: Caller) {
    for built in [runs(caller), unruly(caller)] {
        built.assert_neighbour_is_complete();
        built.place.assert_victims_untouched();
    }
}

pub fn a_conftest_reaches_no_other_process(caller: Caller) {
    let built = runs(caller);
    assert_eq!(built.stdout("running", "others/test_conftest.py::test_what_the_conftest_reached").trim(), "");
}

pub fn a_test_reaches_no_other_process(caller: Caller) {
    let built = runs(caller);
    assert_eq!(built.stdout("running", "others/test_conftest.py::test_what_a_test_reaches").trim(), "");
}

pub fn what_the_machine_has_installed_is_out_of_sight(caller: Caller) {
    let built = runs(caller);
    assert_eq!(said(&built, "test_what_is_installed_on_the_machine"), "");
    let works = format!("{MACHINE}test_interpreters_of_the_machine_still_work");
    assert_eq!(built.groups("running")[&works], "kept");
}

pub fn no_path_of_the_host_is_published(caller: Caller) {
    let built = runs(caller);
    let text = said(&built, "test_names_of_the_host");
    assert!(text.contains("<mount> /opt/venv"), "{text}");
    let place = built.place.path().display().to_string();
    assert!(!text.contains(place.trim_start_matches('/')), "{place} in {text}");
    assert!(!text.contains("/target/"), "the place of the program in {text}");
}
