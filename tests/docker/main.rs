//! The Docker backend against a real engine. Where none answers, each test is reported as ignored, by name; with
//! `GISTMILL_TEST_DOCKER=1` that is a failure. The tests that take minutes run with `GISTMILL_TEST_DOCKER=all` only,
//! and are reported as ignored otherwise. `GISTMILL_TEST_BASE` names an image with Python 3 that the engine has.

#[allow(dead_code, reason = "shared with the pipeline tests, which use all of it")]
#[path = "../common/mod.rs"]
mod common;
mod engine;
mod faults;
mod images;
mod registry;
mod scripts;
mod service;
mod verdicts;

use gistmill::backend::docker::{Engine, image};
use libtest_mimic::{Arguments, Failed, Trial};

/// The base that tests use unless they are told another.
const BASE: &str = "gistmill-test-base:latest";

/// The image that tests build on.
pub fn base() -> String {
    std::env::var("GISTMILL_TEST_BASE").unwrap_or_else(|_| BASE.to_owned())
}

/// Why the tests cannot run here; none when they can.
fn obstacle() -> Option<String> {
    let engine = match Engine::connect(None) {
        Ok(engine) => engine,
        Err(error) => return Some(error.to_string()),
    };
    match image::exists(&engine, &base()) {
        Ok(true) => None,
        Ok(false) => Some(format!("the engine has no image {}", base())),
        Err(error) => Some(error.to_string()),
    }
}

/// A test, and why it does not run here although an engine answers.
type Test = (&'static str, fn(), Option<String>);

/// Why a test that takes minutes does not run; none when all were asked for.
fn takes_minutes() -> Option<String> {
    let all = std::env::var("GISTMILL_TEST_DOCKER").is_ok_and(|asked| asked == "all");
    (!all).then(|| "it takes minutes, GISTMILL_TEST_DOCKER=all runs it".to_owned())
}

fn with_engine() -> Vec<Test> {
    let long = takes_minutes();
    let own = faults::no_engine_of_its_own().or_else(|| long.clone());
    vec![
        ("parity_finds_no_difference_in_a_tree_without_one", verdicts::parity_finds_no_difference, None),
        ("an_image_keeps_the_contract", images::an_image_keeps_the_contract, None),
        ("a_killed_container_changes_nothing", faults::a_killed_container_changes_nothing, long.clone()),
        ("a_job_talks_to_the_service", service::a_job_talks_to_the_service_at_its_loopback, None),
        ("nothing_is_sent_through_a_link", service::nothing_is_sent_or_mounted_through_a_link, None),
        ("what_is_too_large_is_not_sent_back", service::what_is_too_large_is_not_sent_back, None),
        ("scripts_run_the_suite_of_a_pair", scripts::scripts_run_the_suite_of_a_pair, long.clone()),
        ("a_base_that_is_not_there_is_named", engine::a_base_that_is_not_there_is_named, None),
        (
            "both_backends_give_the_same_verdicts",
            verdicts::both_backends_give_the_same_verdicts,
            long.clone(),
        ),
        (
            "hostile_tests_get_their_verdicts_and_touch_nothing_else",
            verdicts::hostile_tests_are_contained,
            long.clone(),
        ),
        (
            "pushed_images_are_checked",
            registry::pushed_images_are_checked,
            registry::no_registry().or_else(|| long.clone()),
        ),
        ("an_image_has_nothing_of_the_host", images::an_image_has_nothing_of_the_host, long.clone()),
        (
            "a_saved_image_is_loaded_with_the_same_id",
            images::a_saved_image_is_loaded_with_the_same_id,
            long.clone(),
        ),
        (
            "a_container_out_of_memory_changes_nothing",
            faults::a_container_out_of_memory_changes_nothing,
            faults::no_way_into_groups().or_else(|| long.clone()),
        ),
        (
            "an_image_that_is_removed_is_made_again",
            faults::an_image_that_is_removed_is_made_again,
            long.clone(),
        ),
        (
            "a_budget_that_is_exceeded_evicts_and_changes_nothing",
            faults::a_budget_that_is_exceeded_evicts_and_changes_nothing,
            long.clone(),
        ),
        (
            "a_test_that_takes_all_memory_is_a_crash_of_that_test_alone",
            faults::a_test_that_takes_all_memory_is_a_crash_of_that_test_alone,
            long,
        ),
        (
            "an_engine_that_is_killed_and_started_again_changes_nothing",
            faults::an_engine_that_is_killed_and_started_again_changes_nothing,
            own.clone(),
        ),
        ("a_full_disk_of_the_engine_is_named", faults::a_full_disk_of_the_engine_is_named, own),
    ]
}

fn main() {
    let mut arguments = Arguments::from_args();
    // They share an engine, and some of them take its images away.
    arguments.test_threads = Some(1);
    let missing = obstacle();
    let demanded = std::env::var_os("GISTMILL_TEST_DOCKER").is_some();
    let mut trials = Vec::new();
    for (name, test, own) in with_engine() {
        let ignored = own.is_some() || missing.is_some() && !demanded;
        let obstacle = missing.clone().or(own);
        if let Some(obstacle) = obstacle.as_ref().filter(|_| ignored) {
            eprintln!("{name} is skipped: {obstacle}");
        }
        let run = move || {
            if let Some(obstacle) = obstacle {
                return Err(Failed::from(obstacle));
            }
            test();
            Ok(())
        };
        trials.push(Trial::test(name, run).with_ignored_flag(ignored));
    }
    let anywhere: [(&str, fn()); 2] = [
        ("without_an_engine_the_way_out_is_told", engine::without_an_engine_the_way_out_is_told),
        ("an_engine_that_is_too_old_is_refused", engine::an_engine_that_is_too_old_is_refused),
    ];
    trials.extend(anywhere.into_iter().map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    }));
    let conclusion = libtest_mimic::run(&arguments, trials);
    images::clean_up();
    conclusion.exit();
}

/// Has the repositories of a bench run in containers of the test base, with further lines for `[docker]`.
pub fn in_containers(bench: &common::Bench, settings: &str, of_docker: &str, trees: &[&str]) {
    let base = base();
    bench.configure(&format!("{settings}\n[docker]\nbase = \"{base}\"\n{of_docker}"), trees);
    let path = bench.path().join("repos.toml");
    let text = std::fs::read_to_string(&path).expect("was written");
    bench.write_config(&text.replace("\npath = \"trees/", "\nbackend = \"docker\"\npath = \"trees/"));
}

/// Runs the engine's command line; gives what it prints.
#[track_caller]
pub fn docker(arguments: &[&str]) -> String {
    let output = std::process::Command::new("docker").args(arguments).output().expect("docker is on PATH");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "docker {arguments:?}: {stdout}{stderr}");
    stdout.trim().to_owned()
}
