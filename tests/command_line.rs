//! What all commands have in common: closed pipes, volume, logs; and the commands that need no dataset.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn gistmill(here: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gistmill"));
    command.args(arguments).current_dir(here).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", here);
    command
}

fn here() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[track_caller]
fn ended(mut command: Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().expect("gistmill starts");
    let text = |bytes| String::from_utf8(bytes).expect("is UTF-8");
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(status.success(), "{status}: {stdout}{stderr}");
    (stdout, stderr)
}

#[test]
fn a_reader_that_has_seen_enough_ends_nothing_with_noise() {
    let here = here();
    for arguments in
        [&["--help"][..], &["build", "--help"], &["explain"], &["completions", "bash"], &["schema", "config"]]
    {
        let mut command = gistmill(here.path(), arguments);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("gistmill starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{arguments:?}: {} {said}", output.status);
    }
}

/// What is printed in a pipe, where the environment says something else than the option.
fn printed(here: &Path, arguments: &[&str], variable: &str) -> String {
    let output = gistmill(here, arguments).env(variable, "1").output().expect("gistmill starts");
    let text = |bytes| String::from_utf8(bytes).expect("is UTF-8");
    text(output.stdout) + &text(output.stderr)
}

#[test]
fn colours_are_there_as_the_option_says_whatever_the_environment_does() {
    let here = here();
    // An answer on stdout, an error on stderr, an error of the command line, and help.
    for line in ["explain fails", "show x", "biuld", "help build"] {
        let words: Vec<&str> = line.split(' ').collect();
        let coloured = |color: &[&str], variable: &str| {
            let text = printed(here.path(), &[color, &words].concat(), variable);
            assert!(!text.is_empty(), "{line}");
            text.contains('\u{1b}')
        };
        assert!(coloured(&["--color", "always"], "NO_COLOR"), "{line}");
        assert!(!coloured(&["--color=never"], "CLICOLOR_FORCE"), "{line}");
        assert!(!coloured(&["--color", "auto"], "NO_COLOR"), "{line}");
        assert!(coloured(&[], "CLICOLOR_FORCE"), "{line}");
    }
}

#[test]
fn a_log_is_written_where_it_is_asked_for_and_shown_to_who_wants_every_line() {
    let here = here();
    let log = || std::fs::read_to_string(here.path().join("a.log")).unwrap_or_default();
    let (_, quiet) = ended(gistmill(here.path(), &["cache", "size", "--log", "a.log", "--quiet"]));
    assert_eq!(quiet, "");
    assert_eq!(log().lines().count(), 1, "{}", log());
    assert!(log().contains(" INFO gistmill "), "{}", log());
    let (_, loud) = ended(gistmill(here.path(), &["cache", "size", "--log", "a.log", "-v"]));
    assert!(loud.contains(" INFO gistmill "), "{loud}");
    assert_eq!(log().lines().count(), 2, "it goes on at the end of the file: {}", log());
    let (_, plain) = ended(gistmill(here.path(), &["cache", "size"]));
    assert_eq!(plain, "", "whoever asks for nothing gets the answer alone");
}

#[test]
fn a_log_that_cannot_be_written_is_named() {
    let here = here();
    let output =
        gistmill(here.path(), &["explain", "--log", "no/such/a.log"]).output().expect("gistmill starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no/such/a.log"), "{said}");
}

/// The cache as the first command that needs it makes it.
fn made(home: &Path, cache: &Path) {
    ended(gistmill(home, &["cache", "size"]));
    assert!(cache.join("CACHEDIR.TAG").exists());
}

#[test]
fn the_cache_says_where_it_is_without_being_made_and_prunes_what_is_old() {
    let here = here();
    let (place, _) = ended(gistmill(here.path(), &["cache", "dir"]));
    let cache = here.path().join(".cache/gistmill");
    assert_eq!(place.trim_end(), cache.display().to_string());
    assert!(!cache.exists());
    let entry = cache.join("sources/abc");
    made(here.path(), &cache);
    std::fs::create_dir_all(entry.join("tree")).expect("can be made");
    std::fs::write(entry.join("tree/a.py"), "x = 1\n").expect("can be written");
    let (would, _) = ended(gistmill(here.path(), &["cache", "prune", "--all", "--dry-run"]));
    assert!(would.contains("would remove") && would.contains("sources/abc") && entry.exists(), "{would}");
    let (kept, _) = ended(gistmill(here.path(), &["cache", "prune"]));
    assert!(kept.contains("removed 0 entries") && entry.exists(), "it is new: {kept}");
    let (removed, _) = ended(gistmill(here.path(), &["cache", "prune", "--all"]));
    assert!(removed.contains("removed 1 entry") && !entry.exists(), "{removed}");
}

#[test]
fn a_cache_is_not_pruned_while_somebody_works_with_it() {
    let here = here();
    let cache = here.path().join(".cache/gistmill");
    made(here.path(), &cache);
    std::fs::create_dir_all(cache.join("sources/abc")).expect("can be made");
    let lock = std::fs::File::create(cache.join(".in-use")).expect("can be made");
    lock.try_lock_shared().expect("nobody has it");
    let output = gistmill(here.path(), &["cache", "prune", "--all"]).output().expect("gistmill starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("another gistmill works with the cache") && cache.join("sources/abc").exists(),
        "{said}"
    );
    drop(lock);
    ended(gistmill(here.path(), &["cache", "prune", "--all"]));
    assert!(!cache.join("sources/abc").exists());
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let here = here();
    ended(gistmill(here.path(), &["man", "--output", "pages"]));
    for name in ["gistmill", "gistmill-build", "gistmill-cache-prune"] {
        let page = std::fs::read_to_string(here.path().join(format!("pages/{name}.1"))).expect("is written");
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
    }
}

/// A cache with a uv in it that says that it ran.
fn with_planted_uv(here: &Path) -> std::path::PathBuf {
    let cache = here.join("cache");
    let folder = cache.join("tools/uv/bin");
    std::fs::create_dir_all(&folder).expect("can be made");
    let script = format!("#!/bin/sh\ntouch '{}'\necho uv 9.9.9\n", here.join("ran").display());
    std::fs::write(folder.join("uv"), script).expect("can be written");
    for path in ["", "tools", "tools/uv", "tools/uv/bin", "tools/uv/bin/uv"] {
        set_mode(&cache.join(path), 0o755);
    }
    cache
}

fn set_mode(path: &Path, mode: u32) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("can be set");
}

#[test]
fn nothing_of_a_cache_that_others_may_write_to_is_run() {
    for (part, mode) in [
        ("", 0o777),
        ("", 0o775),
        ("tools", 0o777),
        ("tools/uv", 0o757),
        ("tools/uv/bin", 0o777),
        ("tools/uv/bin/uv", 0o777),
    ] {
        let here = here();
        let cache = with_planted_uv(here.path());
        set_mode(&cache.join(part), mode);
        let place = cache.to_str().expect("is text");
        for command in [&["check"][..], &["build"]] {
            let mut command = gistmill(here.path(), &[&["--cache-dir", place], command].concat());
            let output = command.env("PATH", "/usr/bin:/bin").output().expect("gistmill starts");
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            let said = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains("can be written to by others") && said.contains("chmod -R go-w"), "{said}");
            assert!(!here.path().join("ran").exists(), "{part} {mode:o}: the planted uv ran");
        }
    }
}

#[test]
fn a_cache_is_closed_to_others() {
    let here = here();
    ended(gistmill(here.path(), &["cache", "size"]));
    let metadata = std::fs::metadata(here.path().join(".cache/gistmill")).expect("was made");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777, 0o700);
}
