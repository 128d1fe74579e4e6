//! What the user's own surroundings must not break: variables, folders and links whose names are no text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use crate::builds::quiet;
use crate::caller::{Caller, Place, finish};
use crate::common::Ended;

const ODD: &[u8] = b"n\xff";

#[track_caller]
fn ended(command: Command) -> Ended {
    finish(command, Duration::from_mins(4)).expect("ends within its limit")
}

/// No panic, and where it is refused, a way out.
#[track_caller]
fn answered(ended: &Ended) {
    assert!(matches!(ended.code(), Some(0..=3)), "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(ended.code() == Some(0) || said.contains("hint: "), "no way out: {ended:?}");
}

pub fn a_variable_that_is_no_text_is_passed_over(caller: Caller) {
    let place = quiet(caller);
    let mut command = place.gistmill(&["check", "repos.toml"]);
    command.env("LATIN", OsStr::from_bytes(b"caf\xe9")).env(OsStr::from_bytes(b"UV_\xff"), "x");
    let found = ended(command);
    assert_eq!(found.code(), Some(0), "{found:?}");
}

pub fn a_working_folder_whose_name_is_no_text_is_answered(caller: Caller) {
    let place = quiet(caller);
    let folder = place.path().join("home").join(OsStr::from_bytes(ODD));
    std::fs::create_dir(&folder).expect("the file system takes any name");
    std::fs::copy(place.path().join("repos.toml"), folder.join("repos.toml")).expect("can be copied");
    let mut command = place.gistmill(&["check", "repos.toml"]);
    command.current_dir(&folder).env("PWD", &folder);
    answered(&ended(command));
}

pub fn a_cache_whose_name_is_no_text_is_answered(caller: Caller) {
    let place = quiet(caller);
    let folder = place.path().join("home").join(OsStr::from_bytes(ODD));
    let mut command = place.gistmill(&["build", "repos.toml"]);
    command.arg("--cache-dir").arg(&folder).env_remove("GISTMILL_CACHE_DIR");
    answered(&ended(command));
}

/// A dataset folder that is a link to one with a file of the user's in it.
fn linked(place: &Place) {
    let folder = place.path().join("output/trees");
    std::fs::rename(folder.join("1"), folder.join("real")).expect("was written");
    std::fs::write(folder.join("real/mine.txt"), "mine").expect("can be written");
    symlink("real", folder.join("1")).expect("can be linked");
}

pub fn a_dataset_folder_that_is_a_link_stays_one(caller: Caller) {
    let place = quiet(caller);
    let first = ended(place.gistmill(&["build", "repos.toml"]));
    assert_eq!(first.code(), Some(0), "{first:?}");
    linked(&place);
    let folder = place.path().join("output/trees");
    for _ in 0..2 {
        let found = ended(place.gistmill(&["build", "repos.toml"]));
        answered(&found);
        let is_link = std::fs::read_link(folder.join("1")).is_ok_and(|target| target.as_os_str() == "real");
        assert!(is_link, "{found:?}");
        let manifest = folder.join("real/manifest.json");
        let mine = std::fs::read_to_string(folder.join("real/mine.txt"));
        assert!(manifest.is_file() && mine.is_ok_and(|text| text == "mine"), "{found:?}");
        let mut names: Vec<_> = std::fs::read_dir(&folder)
            .expect("is there")
            .flatten()
            .map(|entry| entry.file_name().into_string().expect("is text"))
            .filter(|name| !name.ends_with(".lock"))
            .collect();
        names.sort();
        assert_eq!(names, ["1", "real"], "{found:?}");
    }
}
