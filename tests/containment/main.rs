//! Attacks on gistmill and on the machine around it: each does what an attacker would do, and must fail to do harm.
//!
//! Every attack runs as root and as an ordinary user, and where containers change anything, in them as well. Few builds
//! hold many attacks; a test judges one promise by what a build left. What cannot run here is reported as ignored, by
//! name: a test process that is an ordinary user's runs the user's half only, and without `GISTMILL_TEST_DOCKER` no
//! container is started; with `all` every attack is made in containers, else only the quick ones.

mod build;
mod builds;
mod caller;
mod command_line;
#[allow(dead_code, reason = "shared with the pipeline tests, which use all of it")]
#[path = "../common/mod.rs"]
mod common;
mod declarations;
mod evidence;
mod gate;
mod index;
mod keyring;
mod names;
mod run;
mod security_md;

use caller::Caller;
use libtest_mimic::{Arguments, Failed, Trial};

/// A promise, and the callers for whom it is tried.
pub struct Test {
    pub module: &'static str,
    pub name: &'static str,
    run: fn(Caller),
    callers: &'static [Caller],
    /// Why it cannot run on this machine; none when it can.
    obstacle: fn() -> Option<String>,
}

fn nothing() -> Option<String> {
    None
}

const ON_THE_HOST: &[Caller] = &[Caller::Root, Caller::User];

macro_rules! tests {
    ($($module:ident, $callers:expr, $obstacle:path: $($name:ident)+;)+) => {
        &[$($(Test {
            module: stringify!($module),
            name: stringify!($name),
            run: $module::$name,
            callers: $callers,
            obstacle: $obstacle,
        },)+)+]
    };
}

pub const TESTS: &[Test] = tests! {
    build, &Caller::ALL, nothing:
        links_in_place_of_folders_of_a_job_lead_nowhere
        a_folder_of_the_tree_that_became_a_link_is_not_followed
        files_that_the_driver_writes_are_not_followed
        a_git_folder_of_the_build_is_not_used
        the_host_is_out_of_sight_of_the_backend
        hard_links_to_files_of_the_host_are_refused
        what_is_published_is_what_the_pinned_source_says
        nothing_of_a_build_is_found_before_what_is_pinned_or_installed
        what_a_build_generates_is_used
        a_process_of_a_hook_ends_with_it
        the_neighbour_of_a_hostile_backend_is_complete
        a_file_name_adds_no_line_to_the_recipe
        answers_that_are_no_answers_end_their_repository_alone
        wheels_that_reach_beyond_the_environment_do_no_harm
        no_requirement_is_smuggled_in_by_an_answer
        answers_without_end_end_their_repository_alone;
    declarations, &Caller::ALL, nothing:
        links_of_a_tree_publish_nothing_of_the_host
        a_requirements_file_that_is_not_there_is_no_package;
    declarations, ON_THE_HOST, nothing:
        a_work_tree_that_lies_elsewhere_is_not_looked_at;
    index, &Caller::ALL, index::no_pypiserver:
        a_private_index_gives_wheels
        a_private_index_gives_source_distributions
        the_login_of_an_index_is_found_nowhere;
    index, &Caller::ALL, nothing:
        a_source_distribution_sees_no_login_and_no_network
        a_source_distribution_reaches_no_file_of_the_host
        a_dependency_changes_nothing_that_another_repository_installs
        a_dependency_leaves_nothing_in_the_cache
        a_wheel_of_another_project_is_refused
        a_requirement_gets_the_file_whose_hash_it_names_or_none
        wheels_that_are_no_files_are_refused;
    gate, &Caller::ALL, nothing:
        a_conftest_adds_no_test
        a_conftest_changes_no_source_and_no_byte_code
        a_conftest_changes_no_environment
        a_conftest_leaves_nothing_on_the_disk
        no_setting_of_git_survives_the_gate;
    run, &Caller::ALL, keyring::obstacle:
        keyrings_of_the_caller_are_closed
        no_key_of_an_attempt_is_there_in_the_next;
    run, &Caller::ALL, nothing:
        memory_is_bounded_or_said_not_to_be
        sockets_that_leave_the_network_namespace_are_refused
        no_new_namespace_is_made
        no_ring_of_system_calls_is_made
        no_file_is_leased
        no_limit_of_another_process_is_set
        tests_have_no_capabilities
        a_conftest_reaches_no_other_process
        a_test_reaches_no_other_process
        what_the_machine_has_installed_is_out_of_sight
        no_path_of_the_host_is_published
        no_device_is_made_and_nothing_mounted
        settings_of_the_kernel_are_closed
        processes_and_files_of_the_host_are_out_of_sight
        nothing_of_an_attempt_is_there_in_the_next
        a_stopped_parent_costs_one_test
        a_forged_report_costs_one_test
        names_that_are_no_text_cost_no_repository
        a_forged_trace_reads_no_file_of_the_host
        a_forged_number_of_calls_stops_nothing
        the_neighbour_of_hostile_tests_is_complete;
    names, &Caller::ALL, nothing:
        a_build_prints_no_control_characters
        showing_evidence_prints_no_control_characters
        the_card_holds_no_markup_of_a_repository
        the_page_holds_no_markup_of_a_repository
        a_name_with_a_new_line_is_one_row
        a_conftest_that_raises_costs_its_repository_alone;
    command_line, ON_THE_HOST, nothing:
        a_variable_that_is_no_text_is_passed_over
        a_working_folder_whose_name_is_no_text_is_answered
        a_cache_whose_name_is_no_text_is_answered
        a_dataset_folder_that_is_a_link_stays_one;
};

/// Why a test of this module cannot be started by this caller here; none when it can. Builds in containers take minutes: all
/// of them are run where all are asked for.
fn missing(caller: Caller, module: &str) -> Option<String> {
    match caller {
        Caller::Root => (!nix::unistd::geteuid().is_root()).then(|| "only root starts it as root".to_owned()),
        Caller::User => None,
        Caller::Docker => match std::env::var("GISTMILL_TEST_DOCKER").as_deref() {
            Ok("all") => None,
            Ok(_) if module == "declarations" => None,
            _ => Some("GISTMILL_TEST_DOCKER=all runs it in containers".to_owned()),
        },
    }
}

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for caller in Caller::ALL {
        for test in TESTS.iter().filter(|test| test.callers.contains(&caller)) {
            let name = format!("{}::{}::{}", test.module, test.name, caller.name());
            let obstacle = missing(caller, test.module).or_else(test.obstacle);
            if let Some(obstacle) = &obstacle {
                eprintln!("{name} is skipped: {obstacle}");
            }
            let run = test.run;
            let ignored = obstacle.is_some();
            let body = move || {
                if let Some(obstacle) = obstacle {
                    return Err(Failed::from(obstacle));
                }
                run(caller);
                Ok(())
            };
            trials.push(Trial::test(name, body).with_ignored_flag(ignored));
        }
    }
    trials
}

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = trials();
    let of_the_text: [(&str, fn()); 4] = [
        ("every_promise_names_a_test_that_is_run", security_md::every_promise_names_a_test_that_is_run),
        ("a_promise_without_a_test_is_found", security_md::a_promise_without_a_test_is_found),
        ("every_attack_stands_in_security_md", security_md::every_attack_stands_in_security_md),
        ("every_attack_is_run", security_md::every_attack_is_run),
    ];
    trials.extend(of_the_text.into_iter().map(|(name, test)| {
        Trial::test(format!("security_md::{name}"), move || {
            test();
            Ok(())
        })
    }));
    let ended = libtest_mimic::run(&arguments, trials);
    caller::clean_up();
    ended.exit();
}
