//! Which files of a tree an agent viewed, by the commands of its shell.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

/// Programs that say nothing of what is in a file that they name.
const NOT_VIEWING: [&str; 14] =
    ["ls", "find", "wc", "test", "[", "mkdir", "touch", "cd", "echo", "rm", "git", "du", "stat", "tree"];

/// Files of the tree that commands name as words, or that Python in them opens; `workdir` is where the tree is and where each
/// command starts.
pub fn viewed<'f>(commands: &[&str], files: &BTreeSet<&'f str>, workdir: &str) -> BTreeSet<&'f str> {
    static OPENED: LazyLock<Regex> = LazyLock::new(|| {
        let call = r"(?:get_file_content\s*\([^,()]*(?:\(\))?,|open\(|Path\()";
        Regex::new(&format!(r#"{call}\s*[frb]*['"]([^'"]+)['"]"#)).expect("a constant pattern")
    });
    let mut found = BTreeSet::new();
    for command in commands {
        let mut place = workdir.to_owned();
        for opened in OPENED.captures_iter(command) {
            found.extend(named(&opened[1], &place, files, workdir));
        }
        let command = without_documents(command);
        for simple in command.split(['|', ';', '\n']).flat_map(|part| part.split("&&")) {
            let words = words(simple);
            let is_variable = |word: &&String| {
                word.split_once('=')
                    .is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
            };
            let words = &words[words.iter().take_while(is_variable).count()..];
            let Some((program, arguments)) = words.split_first() else { continue };
            if let ("cd", Some(folder)) = (&**program, arguments.first()) {
                place = absolute(folder, &place);
            }
            if NOT_VIEWING.contains(&&**program) {
                continue;
            }
            for (before, word) in words.iter().zip(arguments) {
                if !matches!(&**before, ">" | ">>") && !word.starts_with(['>', '-']) {
                    found.extend(named(word, &place, files, workdir));
                }
            }
        }
    }
    found
}

/// The files that a word names, by itself or as a glob.
fn named<'f>(word: &str, place: &str, files: &BTreeSet<&'f str>, workdir: &str) -> Vec<&'f str> {
    let path = absolute(word, place);
    let Some(inside) = path.strip_prefix(workdir).and_then(|rest| rest.strip_prefix('/')) else {
        return Vec::new();
    };
    if !inside.contains(['*', '?']) {
        return files.get(inside).copied().into_iter().collect();
    }
    let pattern = regex::escape(inside).replace(r"\*", "[^/]*").replace(r"\?", "[^/]");
    let Ok(pattern) = Regex::new(&format!(r"\A{pattern}\z")) else { return Vec::new() };
    files.iter().copied().filter(|file| pattern.is_match(file)).collect()
}

/// A path as one from the root, without steps up or aside.
fn absolute(path: &str, place: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{place}/{path}") };
    let mut parts = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// A command without the texts that it hands to programs (`<<EOF`).
fn without_documents(command: &str) -> String {
    static OPENER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"<<-?\s*['"]?(\w+)['"]?"#).expect("a constant pattern"));
    let mut lines = command.split('\n');
    let mut kept = Vec::new();
    while let Some(line) = lines.next() {
        let Some(opener) = OPENER.captures(line) else {
            kept.push(line.to_owned());
            continue;
        };
        kept.push(OPENER.replace(line, "").into_owned());
        let mut rest = lines.clone();
        if rest.any(|end| end.trim() == &opener[1]) {
            lines = rest;
        }
    }
    kept.join("\n")
}

/// The words of a simple command, without its comment. What is not closed ends with the command.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, '#') if word.is_none() => break,
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
