//! Overrides of what would be inferred: interpreter, dependencies, tests and environment variables.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use toml::value::Datetime;

use crate::document::Problems;
use crate::document::section::{Field, Located};
use crate::record::moment::Cutoff;
use crate::redact::{quote, redact};
pub(super) use crate::requirement::is_name;
use crate::requirement::{is_file_name, is_local};

/// The oldest interpreter that the embedded runner works on.
const OLDEST_MINOR: u32 = 8;

/// Bytes of one variable, with its name, `=` and the end: what Linux takes.
const LONGEST_VARIABLE: usize = 128 << 10;
/// Bytes of all of them: what Linux takes at least, with room for those of the worlds and for arguments.
const LONGEST_VARIABLES: usize = 1 << 20;

/// Variables that a configuration may not set, each with the reason.
const OWNED: [(&[&str], &str); 10] = [
    (&["PYTHONHASHSEED"], "the worlds of the screen set the hash seed"),
    (&["TZ"], "the worlds of the screen set the time zone"),
    (&["LANG", "LANGUAGE"], "the worlds of the screen set the locale"),
    (&["HOME", "USER", "LOGNAME", "USERNAME"], "the worlds of the screen set home directory and user"),
    (&["TMPDIR", "TEMP", "TMP"], "every attempt has a temporary directory of its own"),
    (&["COLUMNS", "LINES", "TERM"], "the worlds of the screen set the terminal"),
    (&["PWD", "OLDPWD"], "the worlds of the screen set the working directory"),
    (&["PATH", "PYTHONHOME", "VIRTUAL_ENV"], "the environment decides which interpreter runs"),
    (
        &["PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"],
        "the entry command would not show it; put options into the repository's pytest configuration",
    ),
    (&["LD_PRELOAD"], "it puts code into every process that the manifest does not know of"),
];
const OWNED_PREFIXES: [(&str, &str); 3] = [
    ("LC_", "the worlds of the screen set the locale"),
    ("XDG_", "the worlds of the screen set the home directory"),
    ("GISTMILL_", "names with this prefix are for gistmill itself"),
];

/// `3.12` or `3.12.1`.
pub(super) fn python(field: &Field<&str>, problems: &mut Problems<'_>) -> Option<String> {
    let Field::Given(text) = field else { return None };
    let numbers: Option<Vec<u32>> = text.value.split('.').map(plain_number).collect();
    let message = match numbers.as_deref() {
        Some([3, minor, ..]) if *minor < OLDEST_MINOR => "is too old: the runner needs 3.8 or newer",
        Some([3, _] | [3, _, _]) => return Some(text.value.to_owned()),
        Some([2, ..]) => "is too old: the runner needs 3.8 or newer",
        _ => "is not a version of Python",
    };
    let hint = "write it like \"3.12\" or \"3.12.1\", or leave it out to have it inferred".to_owned();
    problems.add(text.at, format!("python {} {message}", quote(text.value)), Some(hint));
    None
}

fn plain_number(text: &str) -> Option<u32> {
    let is_plain = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Names of extras or dependency groups.
pub(super) fn names(
    what: &str,
    field: &Field<Vec<Located<&str>>>,
    problems: &mut Problems<'_>,
) -> Option<Vec<String>> {
    let Field::Given(list) = field else { return None };
    let mut seen = BTreeSet::new();
    for text in &list.value {
        if !is_name(text.value) {
            let hint = "use letters, digits, `.`, `_` and `-`, a letter or digit first and last".to_owned();
            problems.add(text.at, format!("{what} {} is not a valid name", quote(text.value)), Some(hint));
        } else if !seen.insert(normal_name(text.value)) {
            problems.add(text.at, format!("{what} {} is listed twice", quote(text.value)), None);
        }
    }
    Some(owned(&list.value))
}

/// The one spelling of a name: lower case, runs of separators as one `-`.
pub(super) fn normal_name(name: &str) -> String {
    let parts: Vec<&str> = name.split(['.', '_', '-']).filter(|part| !part.is_empty()).collect();
    parts.join("-").to_ascii_lowercase()
}

/// Requirements, or requirement files of the tree.
pub(super) fn requirements(
    field: &Field<Vec<Located<&str>>>,
    problems: &mut Problems<'_>,
) -> Option<Vec<String>> {
    let Field::Given(list) = field else { return None };
    for text in &list.value {
        let checked = if is_file_name(text.value) { tree_path(text.value) } else { requirement(text.value) };
        if let Err((problem, hint)) = checked {
            problems.add(text.at, format!("requirement {} {problem}", quote(text.value)), Some(hint));
        }
    }
    Some(owned(&list.value))
}

fn requirement(text: &str) -> Result<(), (String, String)> {
    if let Some(file) = text.strip_prefix("-r ").or_else(|| text.strip_prefix("--requirement ")) {
        return Err(("is an option of pip".to_owned(), format!("write the file alone: \"{}\"", file.trim())));
    }
    if text.starts_with('-') {
        return Err(("is an option of pip".to_owned(), "list requirements or files of the tree".to_owned()));
    }
    if text.starts_with('.') {
        let hint = "the tree is installed anyway; name its extras in extras = […]".to_owned();
        return Err(("is the tree itself".to_owned(), hint));
    }
    match crate::requirement::check(text) {
        Ok(found) if is_local(&found) => {
            let hint =
                "no host path but the tree itself is installed; name a distribution, or a URL".to_owned();
            Err(("is a host path".to_owned(), hint))
        }
        Ok(_) => Ok(()),
        Err(reason) => {
            let reason = redact(&reason);
            let hint = "write it like \"numpy>=1.24\", or name a file of the tree".to_owned();
            Err((format!("is neither a requirement nor a file of the tree: {reason}"), hint))
        }
    }
}

/// What pytest is asked to collect; nothing where a repository has entries, and its tests are left out.
pub(super) fn tests(
    field: &Field<Vec<Located<&str>>>,
    has_entries: bool,
    problems: &mut Problems<'_>,
) -> Option<Vec<String>> {
    let Field::Given(list) = field else { return None };
    if list.value.is_empty() && !has_entries {
        let hint = "leave `tests` out to use the repository's own test paths, or name entries".to_owned();
        problems.add(list.at, "`tests` is empty, so nothing would be collected", Some(hint));
    }
    for text in &list.value {
        let file = text.value.split("::").next().unwrap_or_default();
        if let Err((problem, hint)) = tree_path(file) {
            problems.add(text.at, format!("test path {} {problem}", quote(text.value)), Some(hint));
        }
    }
    Some(owned(&list.value))
}

/// A path that cannot leave the tree.
fn tree_path(text: &str) -> Result<(), (String, String)> {
    let problem = if text.is_empty() {
        "is empty"
    } else if text.starts_with('-') {
        "is an option, not a path"
    } else if text.starts_with('@') {
        "is not a path: pytest reads options from a file that is named like this"
    } else if text.starts_with(['/', '~']) || text.contains('\\') {
        "is not relative to the root of the tree"
    } else if text.split('/').any(|part| part == "..") {
        "leaves the tree"
    } else {
        return Ok(());
    };
    Err((problem.to_owned(), "write a path inside the tree, like \"tests\"".to_owned()))
}

/// Environment variables of the tests.
pub(super) fn env(
    field: &Field<Vec<(Located<&str>, Located<&str>)>>,
    problems: &mut Problems<'_>,
) -> BTreeMap<String, String> {
    let Field::Given(pairs) = field else { return BTreeMap::new() };
    for (name, value) in &pairs.value {
        if !is_variable(name.value) {
            let hint = "use letters, digits and `_`, no digit first".to_owned();
            problems.add(name.at, format!("{} is not the name of a variable", quote(name.value)), Some(hint));
        } else if let Some(reason) = owned_by_worlds(name.value) {
            problems.add(name.at, format!("`{}` cannot be set here: {reason}", name.value), None);
        }
        if value.value.contains('\0') {
            problems.add(value.at, format!("the value of {} has a NUL character", quote(name.value)), None);
        }
    }
    fits_a_process(pairs, problems);
    pairs.value.iter().map(|(name, value)| (name.value.to_owned(), value.value.to_owned())).collect()
}

/// The kernel starts no process with more than this in one variable, or in all of them.
fn fits_a_process(pairs: &Located<Vec<(Located<&str>, Located<&str>)>>, problems: &mut Problems<'_>) {
    let length = |(name, value): &(Located<&str>, Located<&str>)| name.value.len() + value.value.len() + 2;
    let hint = || Some("put long texts into a file of the tree".to_owned());
    for pair in pairs.value.iter().filter(|pair| length(pair) > LONGEST_VARIABLE) {
        let name = quote(pair.0.value);
        let message = format!("{name} has {} bytes, the most is {LONGEST_VARIABLE}", length(pair));
        problems.add(pair.1.at, message, hint());
    }
    let all: usize = pairs.value.iter().map(length).sum();
    if all > LONGEST_VARIABLES {
        let message = format!("`env` has {all} bytes in all, the most is {LONGEST_VARIABLES}");
        problems.add(pairs.at, message, hint());
    }
}

fn is_variable(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// Why a variable is not the configuration's to set.
pub(crate) fn owned_by_worlds(name: &str) -> Option<&'static str> {
    let exact = OWNED.iter().find(|(names, _)| names.contains(&name)).map(|(_, reason)| *reason);
    exact.or_else(|| {
        OWNED_PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, reason)| *reason)
    })
}

/// An RFC 3339 date or time.
pub(super) fn exclude_newer(field: &Field<String>, problems: &mut Problems<'_>) -> Option<Cutoff> {
    let Field::Given(text) = field else { return None };
    if let Some(cutoff) = Cutoff::parse(&text.value) {
        return Some(cutoff);
    }
    let is_instant = Datetime::from_str(&text.value)
        .is_ok_and(|time| time.date.is_some() && time.time.is_some() == time.offset.is_some());
    let problem = if is_instant {
        "is out of range: the last day is 9999-12-30"
    } else {
        "is not a date, nor a time with offset"
    };
    let hint = "write it like \"2026-11-21\" or \"2026-11-21T12:00:00Z\"".to_owned();
    problems.add(text.at, format!("exclude_newer {} {problem}", quote(&text.value)), Some(hint));
    None
}

fn owned(list: &[Located<&str>]) -> Vec<String> {
    list.iter().map(|text| text.value.to_owned()).collect()
}
