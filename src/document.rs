//! A TOML file read with its lines: all problems of the file at once, each with its line.
//!
//! `repos.toml` and the rule files are read through this room. It knows TOML, types and known keys; what a value
//! means is for its callers to say.

pub(crate) mod section;
pub(crate) mod suggest;
pub(crate) mod units;

use std::path::Path;

use toml::Spanned;
use toml::de::DeTable;

use crate::error::{Error, Result};
use crate::redact::redact;

/// How many problems are shown at once.
const SHOWN: usize = 20;

/// Something wrong in a file, with the way out where one is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
    pub message: String,
    pub hint: Option<String>,
}

impl Problem {
    /// `place:LINE: message`, and the hint indented below it.
    pub fn render(&self, place: &str) -> String {
        let mut text = format!("{place}:{}: {}", self.line, self.message);
        if let Some(hint) = &self.hint {
            text.push_str("\n  hint: ");
            text.push_str(&hint.trim_end().replace('\n', "\n    ").replace("    \n", "\n"));
        }
        text
    }
}

/// Why a problem was found: after a syntax error some of the others are only its echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Syntax,
    /// A key that a section lacks; reported at the section.
    MissingKey,
    /// A section that the file lacks.
    MissingSection,
    Value,
}

/// The problems of one file, as they are found.
#[derive(Debug)]
pub(crate) struct Problems<'t> {
    text: &'t str,
    /// Byte offset at which each line starts.
    starts: Vec<usize>,
    found: Vec<(Kind, Problem)>,
    /// Line and message of the last syntax error, reported or not.
    last_syntax: Option<(usize, String)>,
}

impl<'t> Problems<'t> {
    /// No problem found yet in this text.
    pub(crate) fn new(text: &'t str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Problems {
            text,
            starts: std::iter::once(0).chain(newlines).collect(),
            found: Vec::new(),
            last_syntax: None,
        }
    }

    /// A value (or key) that cannot be used; `at` is its byte offset.
    pub(crate) fn add(&mut self, at: usize, message: impl Into<String>, hint: Option<String>) {
        self.push(Kind::Value, at, message.into(), hint);
    }

    /// A key that the section at `at` lacks.
    pub(crate) fn missing_key(&mut self, at: usize, message: impl Into<String>, hint: impl Into<String>) {
        self.push(Kind::MissingKey, at, message.into(), Some(hint.into()));
    }

    /// A section that the file lacks.
    pub(crate) fn missing_section(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.push(Kind::MissingSection, 0, message.into(), Some(hint.into()));
    }

    /// The 1-based line of a byte offset.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// All problems in the order of the file, echoes of syntax errors left out.
    pub(crate) fn into_sorted(self) -> Vec<Problem> {
        let broken: Vec<usize> = self.lines_of(Kind::Syntax);
        let kept = self.found.iter().filter(|(kind, problem)| !self.is_echo(*kind, problem.line, &broken));
        let mut problems: Vec<Problem> = kept.map(|(_, problem)| problem.clone()).collect();
        problems.sort();
        problems.dedup();
        problems
    }

    /// A syntax error, unless it is the echo of one before: on the same line, or the same on the line above.
    fn add_syntax(&mut self, at: usize, message: String) {
        let line = self.line(at);
        let is_echo = self
            .last_syntax
            .as_ref()
            .is_some_and(|(last, said)| line == *last || (line == last + 1 && *said == message));
        self.last_syntax = Some((line, message.clone()));
        if !is_echo {
            self.push(Kind::Syntax, at, message, None);
        }
    }

    /// The one way in; also the last chance to keep a credential out of what is printed.
    fn push(&mut self, kind: Kind, at: usize, message: String, hint: Option<String>) {
        let (message, hint) = (redact(&message), hint.map(|hint| redact(&hint)));
        let line = self.line(at);
        let before = self.text.get(self.starts[line - 1]..at).unwrap_or_default();
        let column = before.chars().count() + 1;
        self.found.push((kind, Problem { line, column, message, hint }));
    }

    fn lines_of(&self, kind: Kind) -> Vec<usize> {
        self.found.iter().filter(|(other, _)| *other == kind).map(|(_, problem)| problem.line).collect()
    }

    fn is_echo(&self, kind: Kind, line: usize, broken: &[usize]) -> bool {
        match kind {
            Kind::Syntax => false,
            Kind::Value => broken.contains(&line),
            Kind::MissingKey => {
                let end = self.next_header(line);
                broken.iter().any(|broken| (line..end).contains(broken))
            }
            Kind::MissingSection => !broken.is_empty(),
        }
    }

    /// The line of the next section after this one; past the end when there is none.
    fn next_header(&self, line: usize) -> usize {
        (line + 1..=self.starts.len()).find(|next| self.is_header(*next)).unwrap_or(usize::MAX)
    }

    fn is_header(&self, line: usize) -> bool {
        let line = self.starts.get(line - 1).and_then(|start| self.text.get(*start..)).unwrap_or_default();
        line.trim_start_matches([' ', '\t']).starts_with('[')
    }
}

/// Reads a file that a user wrote.
///
/// # Errors
/// Usage errors: the file is missing or unreadable, or not UTF-8 (with the line).
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let unreadable = |error: std::io::Error| Error::usage(error.to_string()).with_source(error);
    // Reading a pipe would wait for whoever writes to it.
    let is_special = |metadata: std::fs::Metadata| !metadata.is_file() && !metadata.is_dir();
    if fs_err::metadata(path).is_ok_and(is_special) {
        return Err(Error::usage(format!("{} is not a regular file", path.display()))
            .with_hint("write its content to a file, and name that"));
    }
    let bytes = fs_err::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        Error::usage(format!("{}:{line}: this is not UTF-8 text", path.display()))
            .with_hint("save the file as UTF-8")
    })
}

/// The problems of a file, one below the other.
pub(crate) fn render(place: &str, problems: &[Problem]) -> String {
    first_ones(problems.iter().map(|problem| problem.render(place)).collect())
}

/// As many problems as a person reads at once, and how many there are beyond them.
pub(crate) fn first_ones(mut rendered: Vec<String>) -> String {
    let more = rendered.len().saturating_sub(SHOWN);
    rendered.truncate(SHOWN);
    if more > 0 {
        rendered.push(format!("… and {more} more"));
    }
    rendered.join("\n")
}

/// Parses a text, keeping what can be kept after syntax errors.
pub(crate) fn parse<'t>(text: &'t str, problems: &mut Problems<'t>) -> Spanned<DeTable<'t>> {
    if let Ok(table) = DeTable::parse(text) {
        return table;
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let near = text.get(span.clone()).unwrap_or_default();
        problems.add_syntax(span.start.min(text.len()), syntax_message(error.message(), near));
    }
    table
}

fn syntax_message(message: &str, near: &str) -> String {
    match message {
        quoted if quoted.starts_with("string values must be quoted") => match near.trim() {
            "" => "a value is missing".to_owned(),
            _ => "this is not TOML: strings must be between quotation marks".to_owned(),
        },
        "duplicate key" if !near.is_empty() => format!("{} is given twice", crate::redact::quote(near)),
        _ => format!("this is not TOML: {}", message.trim_end_matches(", expected nothing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(text: &str) -> Vec<Problem> {
        let mut problems = Problems::new(text);
        parse(text, &mut problems);
        problems.into_sorted()
    }

    #[test]
    fn every_syntax_error_has_its_line() {
        let lines: Vec<usize> =
            problems_of("a = 1\nb = \nc = 3\nd = \"x\ne = 5\n").iter().map(|p| p.line).collect();
        assert_eq!(lines, [2, 4]);
    }

    #[test]
    fn a_repeated_key_is_named() {
        assert_eq!(problems_of("a = 1\na = 2\n")[0].message, "`a` is given twice");
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let text = "é = 1\nüü = 2";
        let mut problems = Problems::new(text);
        problems.add(text.find('2').unwrap(), "here", None);
        let problem = &problems.into_sorted()[0];
        assert_eq!((problem.line, problem.column), (2, 6));
    }

    #[test]
    fn a_missing_key_of_a_broken_section_is_an_echo() {
        let text = "[a]\nx = \n[b]\n";
        let mut problems = Problems::new(text);
        parse(text, &mut problems);
        problems.missing_key(0, "a lacks x", "");
        problems.missing_key(text.find("[b]").unwrap(), "b lacks x", "");
        let messages: Vec<String> = problems.into_sorted().into_iter().map(|p| p.message).collect();
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[1], "b lacks x");
    }
}
