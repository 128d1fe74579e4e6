//! What users read when a configuration is wrong: every message with its line, held against a snapshot.
//!
//! `INSTA_UPDATE=always cargo test --test bad_configs` writes the snapshot anew; read the difference.

use std::fmt::Write as _;
use std::path::Path;

use gistmill::config::{self, Problem};
use gistmill::rules::RuleSet;

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

/// Reads a text as configuration and as rules; only a panic is a failure, and problems must lie within the text.
fn read_both(text: &str) {
    let lines = text.split('\n').count();
    for problem in parse(text, Path::new("/nonexistent")).err().unwrap_or_default() {
        assert!((1..=lines).contains(&problem.line), "{problem:?} in {text:?}");
    }
    let _ = RuleSet::parse(&[("a.toml", text)]);
}

/// Files that are right, and all the wrong ones.
fn samples() -> Vec<String> {
    let files =
        [config::DEFAULT, include_str!("../examples/gistify.toml"), include_str!("../filters/time.toml")];
    files.iter().map(|text| (*text).to_owned()).chain(configs().into_iter().map(|(_, text)| text)).collect()
}

#[test]
fn truncated_files_never_panic() {
    for text in samples() {
        for (end, _) in text.char_indices() {
            read_both(&text[..end]);
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..3_000 {
        let length = random.usize(..120);
        let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        read_both(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn random_tokens_never_panic() {
    let tokens = [
        "[",
        "]",
        "[[",
        "]]",
        "\n",
        "=",
        "\"",
        "'",
        "'''",
        "\"\"\"",
        "{",
        "}",
        ",",
        ".",
        "#",
        " ",
        "repo",
        "dataset",
        "screen",
        "rule",
        "match",
        "slug",
        "env",
        "name",
        "a/b",
        "1",
        "-1",
        "1e9",
        "0x",
        "true",
        "\\",
        "é",
        "2026-01-01",
        "\r\n",
        "[[repo]]\n",
        "[[rule]]\n",
        "repo = ",
        "name = ",
    ];
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..20_000 {
        let length = random.usize(..30);
        let text: String = (0..length).map(|_| tokens[random.usize(..tokens.len())]).collect();
        read_both(&text);
    }
}

#[test]
fn files_with_a_changed_line_or_byte_never_panic() {
    let mut random = fastrand::Rng::with_seed(3);
    for text in samples() {
        for _ in 0..200 {
            let mut bytes = text.clone().into_bytes();
            if bytes.is_empty() {
                continue;
            }
            let at = random.usize(..bytes.len());
            match random.usize(..3) {
                0 => bytes[at] = random.u8(..),
                1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
            read_both(&String::from_utf8_lossy(&bytes));
            let mut lines: Vec<&str> = text.lines().collect();
            let (from, to) = (random.usize(..lines.len()), random.usize(..lines.len()));
            lines.swap(from, to);
            read_both(&lines.join("\n"));
        }
    }
}
