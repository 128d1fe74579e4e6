//! `[rule.match]`: patterns and bounds, compiled.

use std::time::Duration;

use super::matching::{Bounds, Kinds, Match, Pattern, Patterns};
use crate::document::section::{Field, Located, Section};
use crate::document::{Problems, suggest, units};
use crate::python_source;
use crate::record::entry::KINDS;
use crate::redact::quote;

/// Everything that a rule can ask for.
pub(super) const KEYS: [&str; 20] = [
    "path",
    "name",
    "marker",
    "fixture",
    "source",
    "calls",
    "uses",
    "node",
    "repository",
    "min_cases",
    "max_cases",
    "min_duration",
    "max_duration",
    "min_trace_length",
    "max_trace_length",
    "min_unique_files",
    "max_unique_files",
    "kind",
    "command",
    "origin",
];

/// Reads the conditions of a rule; those that cannot be used are among the problems.
pub(super) fn read(section: &Section<'_>, problems: &mut Problems<'_>) -> Match {
    Match {
        path: patterns(section, "path", Pattern::glob, problems),
        name: patterns(section, "name", Pattern::regex, problems),
        marker: patterns(section, "marker", Pattern::glob, problems),
        fixture: patterns(section, "fixture", Pattern::glob, problems),
        source: patterns(section, "source", Pattern::regex, problems),
        calls: patterns(section, "calls", Pattern::dotted, problems),
        uses: patterns(section, "uses", Pattern::dotted, problems),
        node: kinds(section, problems),
        repository: patterns(section, "repository", Pattern::glob, problems),
        cases: counts(section, "cases", problems),
        duration: durations(section, problems),
        trace_length: counts(section, "trace_length", problems),
        unique_files: counts(section, "unique_files", problems),
        kind: patterns(section, "kind", of_kinds, problems),
        command: patterns(section, "command", Pattern::regex, problems),
        origin: patterns(section, "origin", Pattern::glob, problems),
    }
}

/// A string or a list of strings; an empty list is among the problems.
fn texts<'a>(section: &Section<'a>, key: &str, problems: &mut Problems<'_>) -> Vec<Located<&'a str>> {
    let Field::Given(list) = section.text_or_texts(key, problems) else { return Vec::new() };
    if list.value.is_empty() {
        problems.add(list.at, format!("`{key}` is empty"), Some("leave it out to match all".to_owned()));
    }
    list.value
}

fn kinds(section: &Section<'_>, problems: &mut Problems<'_>) -> Kinds {
    let mut kinds = Vec::new();
    for text in texts(section, "node", problems) {
        if python_source::is_kind(text.value) {
            kinds.push(text.value.to_owned());
        } else {
            let message = format!("node {} is not a kind of node in Python's `ast`", quote(text.value));
            let hint = match suggest::nearest(text.value, &python_source::KINDS) {
                Some(kind) => format!("did you mean `{kind}`?"),
                None => "write the name of a class, as `python -m ast` prints it".to_owned(),
            };
            problems.add(text.at, message, Some(hint));
        }
    }
    Kinds(kinds)
}

fn patterns(
    section: &Section<'_>,
    key: &str,
    compile: fn(&str) -> Result<Pattern, String>,
    problems: &mut Problems<'_>,
) -> Patterns {
    let mut patterns = Vec::new();
    for text in texts(section, key, problems) {
        match compile(text.value) {
            _ if text.value.is_empty() => {
                problems.add(text.at, format!("`{key}` has an empty pattern"), None);
            }
            Ok(pattern) => patterns.push(pattern),
            Err(problem) => {
                problems.add(
                    text.at,
                    format!("{key} {} does not compile: {problem}", quote(text.value)),
                    None,
                );
            }
        }
    }
    Patterns(patterns)
}

/// One of the kinds of entries.
fn of_kinds(text: &str) -> Result<Pattern, String> {
    if KINDS.contains(&text) { Pattern::glob(text) } else { Err(suggest::hint(text, &KINDS)) }
}

fn counts(section: &Section<'_>, what: &str, problems: &mut Problems<'_>) -> Bounds<u64> {
    let mut read = |side: &str| {
        let key = format!("{side}_{what}");
        let located = section.integer(&key, problems).given()?;
        let number = u64::try_from(located.value).ok();
        if number.is_none() {
            let problem = if located.value < 0 {
                "must not be negative".to_owned()
            } else {
                format!("must be at most {}", u64::MAX)
            };
            problems.add(located.at, format!("`{key}` {problem}"), None);
        }
        number.map(|value| Located { value, at: located.at })
    };
    let (min, max) = (read("min"), read("max"));
    bounds(what, min, max, problems)
}

fn durations(section: &Section<'_>, problems: &mut Problems<'_>) -> Bounds<Duration> {
    let mut read = |key: &str| {
        let text = section.duration(key, problems).given()?;
        match units::parse_duration(text.value) {
            Ok(value) => Some(Located { value, at: text.at }),
            Err(problem) => {
                let hint = Some(units::DURATION_EXAMPLES.to_owned());
                problems.add(text.at, format!("{key} {} {problem}", quote(text.value)), hint);
                None
            }
        }
    };
    let (min, max) = (read("min_duration"), read("max_duration"));
    bounds("duration", min, max, problems)
}

fn bounds<T: PartialOrd>(
    what: &str,
    min: Option<Located<T>>,
    max: Option<Located<T>>,
    problems: &mut Problems<'_>,
) -> Bounds<T> {
    if let (Some(min), Some(max)) = (&min, &max)
        && min.value > max.value
    {
        problems.add(max.at, format!("max_{what} is below min_{what}, so nothing matches"), None);
    }
    Bounds { min: min.map(|located| located.value), max: max.map(|located| located.value) }
}
