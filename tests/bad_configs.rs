//! What users read when a configuration is wrong: every message with its line, held against a snapshot.
//!
//! `INSTA_UPDATE=always cargo test --test all bad_configs` writes the snapshot anew; read the difference.

use std::fmt::Write as _;
use std::path::Path;

use gistmill::config::{self, Problem};

const HASH: &str = "2ac89889f4cc330eabd50f295dcef02828522c69";

/// Texts between `=== title` lines. `@repo` stands for the keys of a repository that is right, `@file` for a file that
/// is right up to there.
const CONFIGS: &str = include_str!("bad_configs/configs.txt");

const FILE: &str = "[dataset]\nname = \"d\"\nversion = \"1\"\n";
const REPO: &str = "[[repo]]\nslug = \"a/b\"\ngit = \"https://host/a/b\"\n\
                    commit = \"2ac89889f4cc330eabd50f295dcef02828522c69\"\n";

/// `main` has a commit, nothing else does.
fn resolve(_place: &str, reference: &str) -> Option<String> {
    (reference == "main").then(|| HASH.to_owned())
}

fn parse(text: &str, base: &Path) -> Result<config::Config, Vec<Problem>> {
    config::parse(text, base, &resolve)
}

fn configs() -> Vec<(&'static str, String)> {
    let chunks = CONFIGS.split("=== ").skip(1);
    let split = |chunk: &'static str| chunk.split_once('\n').expect("a title and a text");
    let expand = |text: &str| text.replace("@file\n", FILE).replace("@repo\n", REPO);
    chunks
        .map(split)
        .map(|(title, text)| (title, expand(text).trim_end_matches('\n').to_owned() + "\n"))
        .collect()
}

#[test]
fn every_mistake_has_its_message_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("repos.toml");
    fs_err::write(folder.path().join("a-file"), "").unwrap();
    for path in ["plain/run_tests", "empty/setup_shell.sh", "linked/run_tests"] {
        fs_err::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
        fs_err::write(folder.path().join(path), "").unwrap();
    }
    fs_err::os::unix::fs::symlink("/etc/passwd", folder.path().join("linked/more")).unwrap();
    fs_err::os::unix::fs::symlink("plain", folder.path().join("way")).unwrap();
    let configs = configs();
    assert!(configs.len() >= 25);
    let mut shown = String::new();
    for (title, text) in &configs {
        fs_err::write(&path, text).unwrap();
        let message = match config::load(&path, &resolve) {
            Ok(_) => panic!("{title}: accepted"),
            Err(error) => error.to_string(),
        };
        let message = message.replace(folder.path().to_str().unwrap(), "<base>");
        let message = message.replace("<base>/repos.toml:", "repos.toml:");
        let _ = write!(shown, "=== {title}\n{}\n{message}\n\n", numbered(text));
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("bad_configs", shown);
    });
}

fn numbered(text: &str) -> String {
    let lines = text.lines().enumerate();
    lines.fold(String::new(), |shown, (number, line)| format!("{shown}{:>4} | {line}\n", number + 1))
}

#[test]
fn five_mistakes_are_five_messages_on_five_lines() {
    let text = "\
[dataset]
name = \"gistify\"
version = \"2026.11\"
sed = 1

[screen]
attempts = 1
case_timeout = \"60\"

[[repo]]
slug = \"pallets/flask\"
git = \"http://host/pallets/flask\"
commit = \"main\"
";
    let problems = parse(text, Path::new("/")).unwrap_err();
    let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [4, 7, 8, 12, 13]);
}

#[test]
fn problems_are_in_the_order_of_the_file() {
    for (title, text) in configs() {
        let problems = parse(&text, Path::new("/")).unwrap_err();
        let places: Vec<(usize, usize)> = problems.iter().map(|p| (p.line, p.column)).collect();
        assert!(places.is_sorted(), "{title}: {places:?}");
        let lines = text.lines().count().max(1);
        assert!(places.iter().all(|(line, _)| (1..=lines + 1).contains(line)), "{title}: {places:?}");
    }
}
