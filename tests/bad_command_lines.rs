//! What users read when a command line is wrong: fifty of them, each with its exit code, held against a snapshot. What lies
//! in files and folders is wrong in `bad_inputs.rs`.
//!
//! `INSTA_UPDATE=always cargo test --test all bad_command_lines` writes the snapshot anew; read the difference.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Arguments between blanks; quotes hold words together.
const LINES: &str = include_str!("bad_command_lines/lines.txt");

/// Words of a line, as a shell takes them apart.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    let mut is_word = false;
    for c in line.chars() {
        match c {
            '\'' => (quoted, is_word) = (!quoted, true),
            ' ' if !quoted => {
                if is_word {
                    words.push(String::new());
                }
                is_word = false;
            }
            c => {
                words.last_mut().expect("has one").push(c);
                is_word = true;
            }
        }
    }
    if !is_word {
        words.pop();
    }
    words
}

/// Exit code, and what is said on both streams; places of the machine replaced.
fn run(here: &Path, line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gistmill"));
    command.args(words(line)).current_dir(here).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", here.join("home"));
    let output = command.output().expect("gistmill starts");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("is UTF-8");
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!said.contains("panicked"), "{line}: {said}");
    let code = output.status.code().unwrap_or_else(|| panic!("{line}: {:?}", output.status));
    let said = said.replace(&here.display().to_string(), "<here>");
    format!("$ gistmill {line}\n{said}exit code {code}\n\n")
}

#[test]
fn every_bad_command_line_has_its_message_and_exit_code() {
    let bench = tempfile::tempdir().expect("a folder");
    let here = std::fs::canonicalize(bench.path()).expect("is there");
    std::fs::write(here.join("file.parquet"), "x").expect("can be written");
    let lines: Vec<&str> = LINES.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() >= 50, "{} lines", lines.len());
    let mut shown = String::new();
    for line in lines {
        let said = run(&here, line);
        assert!(!said.ends_with("exit code 0\n\n"), "nothing is wrong with it:\n{said}");
        let _ = write!(shown, "{said}");
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("bad_command_lines", shown);
    });
}
