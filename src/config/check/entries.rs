//! `entries` and `[[repo.entry]]`: commands whose behaviour becomes a task.

use std::collections::BTreeMap;

use super::recipe;
use crate::config::raw::{RawEntry, RawRepo};
use crate::config::{Entries, EntriesMode};
use crate::document::Problems;
use crate::document::section::{Field, Located};
use crate::record::entry::{Entry, EntryCommand, Origin, Source, Stdin, name_of};
use crate::record::id::Name;
use crate::record::trace::check_path;
use crate::redact::{publish, quote};

/// Longest text of standard input, in bytes.
const LONGEST_STDIN: usize = 1 << 20;

/// Whether the repository may have entries: then its tests may be left out.
pub(super) fn may_be(raw: &RawRepo<'_>) -> bool {
    match raw.entries.value {
        EntriesMode::None => false,
        EntriesMode::Configured => !raw.entry.is_empty(),
        EntriesMode::Discover => true,
    }
}

/// The entries of a repository.
pub(super) fn of(raw: &RawRepo<'_>, problems: &mut Problems<'_>) -> Entries {
    let mut configured: Vec<Entry> = Vec::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for one in &raw.entry {
        let Some(entry) = entry(one, problems) else { continue };
        let at = one.name.at().unwrap_or(one.at);
        if let Some(first) = lines.get(entry.name.as_str()) {
            let message =
                format!("entry {} is named twice, first in line {first}", quote(entry.name.as_str()));
            problems.add(at, message, Some("give each entry a `name` of its own".to_owned()));
            continue;
        }
        lines.insert(entry.name.to_string(), problems.line(at));
        configured.push(entry);
    }
    Entries { mode: raw.entries.value, configured }
}

/// One entry, where all of it can be used. Every problem is named.
fn entry(raw: &RawEntry<'_>, problems: &mut Problems<'_>) -> Option<Entry> {
    let command = command(raw, problems);
    let (name, stdin) = (name(raw, command.as_ref(), problems), stdin(raw, problems));
    let (cwd, files) = (folder(raw, problems), globs(raw, problems));
    let env = recipe::env(&raw.env, problems);
    if let Some(name) = env.keys().find(|name| name.starts_with("PYTHON")) {
        let hint = "set it in `env` of the [[repo]], which the interpreter gets at its start".to_owned();
        problems.add(raw.at, format!("`{name}` of [[repo.entry]] is read when Python starts"), Some(hint));
    }
    let line = u32::try_from(problems.line(raw.at)).ok();
    let origin = Origin { source: Source::Configured, file: None, line };
    Some(Entry {
        name: name?,
        command: command?,
        stdin,
        env,
        cwd,
        exit: raw.exit.value,
        files,
        origin,
        given: BTreeMap::new(),
        help: Vec::new(),
    })
}

fn command(raw: &RawEntry<'_>, problems: &mut Problems<'_>) -> Option<EntryCommand> {
    match &raw.command {
        Field::Refused => None,
        Field::Missing => {
            let hint = "add command = \"python path/to/script.py arguments\"";
            problems.missing_key(raw.at, "missing key `command` in [[repo.entry]]", hint);
            None
        }
        Field::Given(text) => match EntryCommand::of_line(text.value) {
            Ok(command) => {
                if publish(text.value) != text.value {
                    let message =
                        format!("command {} has an address that is not published whole", quote(text.value));
                    let hint =
                        "whoever gets the dataset could not run it: put the address into a file of the tree";
                    problems.add(text.at, message, Some(hint.to_owned()));
                } else if EntryCommand::of_line(&command.line()).as_ref() != Ok(&command) {
                    let message = "the command is too long once it is quoted".to_owned();
                    problems.add(
                        text.at,
                        message,
                        Some("put a part of it into a file of the tree".to_owned()),
                    );
                }
                Some(command)
            }
            Err(reason) => {
                let message = format!("command {} cannot be an entry: {reason}", quote(text.value));
                let hint = "write one plain command: quote what a shell would expand, give input with `stdin` or \
                            `stdin_file`; files that it writes are seen anyway";
                problems.add(text.at, message, Some(hint.to_owned()));
                None
            }
        },
    }
}

/// The name that is given, or one that the command suggests.
fn name(raw: &RawEntry<'_>, command: Option<&EntryCommand>, problems: &mut Problems<'_>) -> Option<Name> {
    let Field::Given(text) = &raw.name else { return command.map(name_of) };
    Name::new(text.value).map_err(|error| problems.add(text.at, error.to_string(), None)).ok()
}

fn stdin(raw: &RawEntry<'_>, problems: &mut Problems<'_>) -> Option<Stdin> {
    if let (Field::Given(_), Field::Given(file)) = (&raw.stdin, &raw.stdin_file) {
        let hint = Some("keep one of them".to_owned());
        problems.add(file.at, "[[repo.entry]] has `stdin` and `stdin_file`", hint);
        return None;
    }
    if let Field::Given(text) = &raw.stdin {
        if text.value.len() > LONGEST_STDIN {
            let message = format!("`stdin` has {} bytes, the most is {LONGEST_STDIN}", text.value.len());
            problems.add(text.at, message, Some("put it into a file of the tree: `stdin_file`".to_owned()));
        }
        if publish(text.value) != text.value {
            let hint = "put it into a file of the tree: `stdin_file`".to_owned();
            problems.add(text.at, "`stdin` has an address that is not published whole", Some(hint));
        }
        return Some(Stdin::Text(text.value.to_owned()));
    }
    let Field::Given(file) = &raw.stdin_file else { return None };
    inside("stdin_file", file, problems);
    Some(Stdin::File(file.value.to_owned()))
}

/// Says that a path is not one of the tree.
fn inside(key: &str, path: &Located<&str>, problems: &mut Problems<'_>) {
    if check_path(path.value).is_err() {
        let message = format!("{key} {} is not a path inside the tree", quote(path.value));
        problems.add(path.at, message, Some("write it from the root of the tree, with `/`".to_owned()));
    }
}

fn folder(raw: &RawEntry<'_>, problems: &mut Problems<'_>) -> String {
    let Field::Given(text) = &raw.cwd else { return String::new() };
    if text.value == "." {
        return String::new();
    }
    inside("cwd", text, problems);
    text.value.to_owned()
}

fn globs(raw: &RawEntry<'_>, problems: &mut Problems<'_>) -> Vec<String> {
    let Field::Given(list) = &raw.files else { return Vec::new() };
    if list.value.is_empty() {
        let hint = "leave `files` out to have all files count".to_owned();
        problems.add(list.at, "`files` is empty", Some(hint));
    }
    for text in &list.value {
        let path = text.value.replace(['*', '?'], "x");
        if check_path(&path).is_err() {
            let message = format!("`files` names {}, which no path inside the tree fits", quote(text.value));
            problems.add(text.at, message, Some("write it from the root of the tree, with `/`".to_owned()));
        } else if let Some(odd) = text.value.chars().find(|c| matches!(c, '[' | ']' | '{' | '}')) {
            let message = format!("`{odd}` has no meaning in `files`, only `*`, `**` and `?` have");
            problems.add(text.at, message, None);
        }
    }
    list.value.iter().map(|text| text.value.to_owned()).collect()
}
