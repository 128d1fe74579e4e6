//! What the build backend of a repository must not reach or change.

use crate::builds::{ENDLESS, HARMLESS, REFUSED, answers, endless_answers, hooks};
use crate::caller::Caller;
use crate::evidence::Built;

/// What a backend tried, as it wrote it down itself; nothing is judged before it is clear that it did.
#[track_caller]
fn tried(built: &Built, what: &str) -> String {
    let leaves =
        ["links", "reading", "a folder", "a git", "the host"].iter().any(|word| what.starts_with(word));
    let name = if leaves { "backend" } else { "changes" };
    let report = built.stdout(name, "tests/test_attacks.py::test_report");
    let line = report.lines().find(|line| line.starts_with(&format!("tried {what}: ")));
    line.unwrap_or_else(|| panic!("the backend did not try {what}:\n{report}")).to_owned()
}

pub fn links_in_place_of_folders_of_a_job_lead_nowhere(caller: Caller) {
    let built = hooks(caller);
    built.place.assert_untouched("home");
    tried(&built, "links for folders of jobs");
    tried(&built, "reading through the home");
    built.assert_tells_nothing_of(&[&built.place.mark]);
}

pub fn a_folder_of_the_tree_that_became_a_link_is_not_followed(caller: Caller) {
    let built = hooks(caller);
    built.place.assert_untouched("dir");
    assert!(tried(&built, "a folder of the tree").ends_with(": linked"));
}

pub fn files_that_the_driver_writes_are_not_followed(caller: Caller) {
    let built = hooks(caller);
    built.place.assert_untouched("overwritten.txt");
    tried(&built, "links for folders of jobs");
}

pub fn a_git_folder_of_the_build_is_not_used(caller: Caller) {
    let built = hooks(caller);
    built.place.assert_untouched("exclude_target");
    built.place.assert_untouched("objects");
    built.place.assert_untouched("run-by-git");
    assert!(tried(&built, "a git folder").ends_with(": made"));
    let made = crate::evidence::files_with(&built.place.written(), &["run-by-git"]);
    let left: Vec<_> =
        made.iter().filter(|path| path.components().any(|one| one.as_os_str() == ".git")).collect();
    assert!(left.is_empty(), "hooks and settings of the build are in {left:#?}");
}

pub fn the_host_is_out_of_sight_of_the_backend(caller: Caller) {
    let built = hooks(caller);
    let saw = tried(&built, "the host in sight");
    assert!(saw.ends_with("saw []"), "{saw}");
}

pub fn hard_links_to_files_of_the_host_are_refused(caller: Caller) {
    let built = hooks(caller);
    let said = tried(&built, "hard links");
    assert!(said.ends_with(": refused"), "{said}");
}

pub fn what_is_published_is_what_the_pinned_source_says(caller: Caller) {
    let built = hooks(caller);
    for what in ["byte code", "source", "a process that stays"] {
        tried(&built, what);
    }
    let said = built.stdout("changes", "tests/test_attacks.py::test_says_what_the_source_says");
    assert_eq!(said.trim(), "plain pinned hashed pinned changed pinned");
}

pub fn nothing_of_a_build_is_found_before_what_is_pinned_or_installed(caller: Caller) {
    let built = hooks(caller);
    assert!(tried(&built, "modules").ends_with(": planted"));
    let said = built.stdout("changes", "tests/test_attacks.py::test_finds_what_is_pinned_and_installed");
    assert_eq!(said.trim(), "one pinned poisoned []");
}

pub fn what_a_build_generates_is_used(caller: Caller) {
    let built = hooks(caller);
    assert!(tried(&built, "generated sources").ends_with(": generated"));
    let said = built.stdout("changes", "tests/test_attacks.py::test_finds_what_was_generated");
    assert_eq!(said.trim(), "version made by the build");
}

pub fn a_process_of_a_hook_ends_with_it(caller: Caller) {
    let built = hooks(caller);
    assert!(tried(&built, "a process that stays").ends_with(": started"));
    built.assert_nothing_stays();
}

pub fn the_neighbour_of_a_hostile_backend_is_complete(caller: Caller) {
    let built = hooks(caller);
    // `confused` names a file that is not there; nothing else fails.
    built.assert_code(1);
    built.assert_neighbour_is_complete();
    assert_eq!((built.failure("backend"), built.failure("changes")), (None, None));
}

pub fn a_file_name_adds_no_line_to_the_recipe(caller: Caller) {
    let built = hooks(caller);
    assert!(tried(&built, "names").ends_with(": made"));
    let folder = built.place.output().join("environments");
    let recipes: Vec<_> = walkdir::WalkDir::new(folder)
        .into_iter()
        .filter_map(|entry| Some(entry.ok()?.into_path()))
        .filter(|path| path.ends_with("Dockerfile") && path.to_string_lossy().contains("trees__changes"))
        .collect();
    assert_eq!(recipes.len(), 1, "{recipes:?}");
    let text = std::fs::read_to_string(&recipes[0]).expect("is text");
    assert!(!text.lines().any(|line| line.starts_with("RUN") && line.contains("injected")), "{text}");
    let controls = crate::evidence::controls(&text);
    assert!(controls.is_empty(), "{controls:?} in {text}");
}

pub fn answers_that_are_no_answers_end_their_repository_alone(caller: Caller) {
    let built = answers(caller);
    built.place.assert_victims_untouched();
    built.assert_tells_nothing_of(&[&built.place.mark]);
    built.assert_code(1);
    for mode in REFUSED {
        built.assert_failed(mode);
    }
    built.assert_neighbour_is_complete();
}

pub fn wheels_that_reach_beyond_the_environment_do_no_harm(caller: Caller) {
    let built = answers(caller);
    built.place.assert_victims_untouched();
    built.assert_code(1);
    for mode in HARMLESS {
        // Either refused, or as pinned.
        if built.failure(mode).is_none() {
            let said = built.stdout(mode, "tests/test_plain.py::test_value");
            assert_eq!(said.trim(), "pinned", "{mode}");
        }
    }
    let ended = built.ended();
    for shown in [&ended.stdout, &ended.stderr] {
        assert!(crate::evidence::controls(shown).is_empty(), "{shown:?}");
    }
}

pub fn no_requirement_is_smuggled_in_by_an_answer(caller: Caller) {
    let built = answers(caller);
    built.assert_code(1);
    for mode in REFUSED.iter().chain(&HARMLESS) {
        let lock = built
            .place
            .output()
            .join("environments")
            .join(format!("trees__{mode}"))
            .join("requirements.lock");
        let text = std::fs::read_to_string(lock).unwrap_or_default();
        assert!(!text.contains("iniconfig==1.0 "), "{mode}: {text}");
    }
}

pub fn answers_without_end_end_their_repository_alone(caller: Caller) {
    let built = endless_answers(caller);
    built.place.assert_victims_untouched();
    built.assert_code(1);
    for mode in ENDLESS {
        built.assert_failed(mode);
    }
    built.assert_neighbour_is_complete();
}
