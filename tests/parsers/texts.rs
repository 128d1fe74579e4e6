//! What users write: configurations, rules, identifiers, durations; and Python source.

use std::path::Path;

use gistmill::config;
use gistmill::python_source::SourceFile;
use gistmill::record::collected::{Case, Group};
use gistmill::record::id::{CommitSha, InstanceId, RepoSlug};
use gistmill::redact;
use gistmill::refresh::{self, Newest};
use gistmill::rules::RuleSet;
use gistmill::text::shell_quote;
use proptest::prelude::*;

use super::{fuzz, text};

const CONFIG: &str = r#"[dataset]
name = "a"
version = "1"
seed = 3
[screen]
attempts = 4
case_timeout = "1h30m"
[limits]
memory = "3GiB"
[tier]
hard = 80.5
[subset.short]
trace_length = { min = 5, max = 7.5 }
repos = ["a/b"]
[[repo]]
slug = "a/b"
git = "https://me:pw@host/a/b"
commit = "2ac89889f4cc330eabd50f295dcef02828522c69"
env = { A = "1", TOKEN = "x" }
exclude_newer = 2026-01-01T00:00:00Z
[[repo]]
slug = "c/d"
pypi = "flask==3.1.3"
sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"#;
const TOML: &[&str] = &[
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
    "\\",
    "\\u",
    "\\U0010ffff",
    "\r\n",
    "\u{feff}",
    "\0",
    "1",
    "-1",
    "1e999",
    "0x",
    "inf",
    "nan",
    "9223372036854775808",
    "true",
    "2026-13-01",
    "é",
    "repo",
    "[[repo]]\n",
    "[dataset]\n",
    "slug = ",
    "a.b.c.",
    "[subset.x]\n",
    "[[rule]]\n",
    "[rule.match]\n",
    "env = {",
];
const RULE: &str = "[[rule]]\nid = \"a\"\nreason = \"b\"\naction = \"keep\"\ncauses = [\"fails\"]\n[rule.match]\n\
                    path = \"tests/**\"\nname = \"^a(b|c)*$\"\ncalls = [\"requests.*\"]\nmin_cases = 3\nmax_duration = \"2s\"\n";

#[test]
fn configurations() {
    fuzz(text(&[CONFIG, config::DEFAULT, include_str!("../../examples/gistify.toml")], TOML), |text| {
        let lines = text.split('\n').count();
        for problem in config::parse(text, Path::new("/nonexistent"), &|_, _| None).err().unwrap_or_default()
        {
            assert!((1..=lines).contains(&problem.line), "{problem:?}");
        }
    });
}

#[test]
fn rules() {
    fuzz(
        text(
            &[RULE, include_str!("../../filters/time.toml"), include_str!("../../filters/processes.toml")],
            TOML,
        ),
        |text| {
            let _ = RuleSet::parse(&[("a.toml", text), ("b.toml", RULE)]);
        },
    );
}

struct Nothing;

impl Newest for Nothing {
    fn head(&self, _: &str, _: Option<&str>) -> gistmill::error::Result<String> {
        Ok("0".repeat(40))
    }

    fn release(&self, _: &str) -> gistmill::error::Result<(String, String)> {
        Ok(("2.0".into(), "0".repeat(64)))
    }
}

#[test]
fn configurations_that_are_refreshed() {
    fuzz(text(&[CONFIG, config::DEFAULT], TOML), |text| {
        if let Ok(refreshed) = refresh::refresh(text, &Nothing, &[], Some("2")) {
            let readable = |text: &str| text.parse::<toml::Table>().is_ok();
            assert!(!readable(text) || readable(&refreshed.text), "{}", refreshed.text);
        }
    });
}

const IDS: &[&str] = &[
    "/", "::", ":", "[", "]", ".", "..", "~", "@", "%", "$", "`", "'", "\"", " ", "\n", "\0", "\\", "-",
    "--", "_", "a", "Z", "0", "é", "\u{202e}", "😀", "https://", "git@", "ssh://", "?token=", "user:pw@",
    "file:///", "<root>", "C:",
];

#[test]
fn identifiers_and_quotes() {
    let samples =
        ["pallets/flask", "2ac89889f4cc330eabd50f295dcef02828522c69", "tests/test_a.py::TestB::test_c[x-1]"];
    fuzz(text(&samples, IDS), |text| {
        if let Ok(slug) = RepoSlug::new(text) {
            assert_eq!(slug.as_str(), text);
            let name = slug.file_name();
            assert!(!name.contains(['/', '\0']) && !name.starts_with('.'), "{name}");
            assert_eq!(InstanceId::derive(&slug, "0", text), InstanceId::derive(&slug, "0", text));
        }
        if let Ok(commit) = CommitSha::new(text) {
            assert!(commit.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
        let quoted = redact::quote(text);
        assert!(quoted.chars().count() < 1200 && !quoted.chars().any(char::is_control), "{quoted}");
        let _ = (redact::publish(text), redact::publish_git_url(text), redact::is_secret_name(text));
        for around in ["", " "] {
            let planted = format!("{text}{around}https://user:pl4nted@host/x{around}{text}");
            for shown in [redact::redact(&planted), redact::publish(&planted)] {
                assert!(!shown.contains("pl4nted"), "{shown}");
            }
        }
    });
}

#[test]
fn a_shell_reads_back_what_was_quoted() {
    let word = prop::collection::vec(prop::sample::select(IDS), 0..12)
        .prop_map(|parts| parts.concat().replace('\0', ""));
    fuzz(prop::collection::vec(word, 8), |words| {
        let quoted: Vec<String> = words.iter().map(|word| shell_quote(word)).collect();
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", &format!("printf '%s\\0' {}", quoted.join(" "))])
            .output()
            .expect("a shell");
        let expected = words.iter().flat_map(|word| [word.as_str(), "\0"]).collect::<String>();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    });
}

const PYTHON: &str = r#"
import os, socket as s
from pathlib import Path
from . import local

@pytest.fixture(autouse=True, params=[1, 2])
def place(tmp_path):
    with open(tmp_path / f"{os.getpid()!r:>{10}}") as file:
        yield file

class TestA(Base, metaclass=M):
    LIMIT: int = 3
    def setup_method(self): self.x = s.socket()
    @pytest.mark.parametrize("a", [x for x in range(3) if x])
    async def test_b(self, a, /, *b, c=lambda q: q, **d):
        match a:
            case {"k": [1, *rest], **more} if rest: return await self.x.connect(("h", 1))
            case Path() | None: pass
        try: assert a is not b
        except* ValueError as error: raise
        type X[T] = list[T]
"#;
const PYTHON_TOKENS: &[&str] = &[
    "def ",
    "class ",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    ".",
    "\n",
    "\n    ",
    "\t",
    "\\\n",
    "f\"{",
    "}\"",
    "'''",
    "\"",
    "#",
    "lambda ",
    "async ",
    "await ",
    "yield ",
    "import ",
    "from . import *\n",
    "@",
    "=",
    ":=",
    "->",
    "**",
    "not ",
    "if ",
    "else:",
    "match x:\n",
    "case _:\n",
    "try:\n",
    "except*",
    "with ",
    "global x\n",
    "nonlocal y\n",
    "del ",
    "x",
    "é",
    "\u{0}",
    "0x",
    "1_",
    "...",
    "~",
    "-",
    "return ",
    "a.b.c(",
    "pytest.fixture",
    "\u{feff}",
    "\r",
    "\u{c}",
];

#[test]
fn python_source() {
    let group = Group {
        group_id: "tests/test_a.py::TestA::test_b".into(),
        file: "tests/test_a.py".into(),
        classes: vec!["TestA".into()],
        function: "test_b".into(),
        cases: vec![Case { case_id: "x".into(), parameters: None, line: Some(9) }],
        markers: Vec::new(),
        fixtures: vec!["place".into()],
        flags: Vec::new(),
        entry: None,
    };
    fuzz(text(&[PYTHON, include_str!("../trees/hostile/tests/test_places.py")], PYTHON_TOKENS), |text| {
        let Some(file) = SourceFile::parse("tests/test_a.py", text) else { return };
        for dimension in gistmill::record::verdict::Dimension::ALL {
            let _ = file.clues(dimension, &group, "tests.test_a", "tests/test_a.py");
        }
        let Some(code) = file.code(&group) else { return };
        assert!(code.source().contains("test_b"));
        let _ = (
            code.lines(),
            code.calls().count(),
            code.uses().count(),
            code.places(),
            code.has_node("AsyncWith"),
        );
    });
}
