//! From a line that a document shows to a command that can be an entry, or the reason why it cannot. Pure but for what the
//! tree has, which is asked for.

use std::collections::BTreeSet;

use super::samples::{Samples, is_hidden_code};
use crate::record::entry::{EntryCommand, Stdin};
use crate::text::command::{Token, is_assignment, tokens};

/// Parts of words that somebody has to fill in.
const PLACEHOLDERS: [&str; 8] = ["<", "…", "...", "YOUR", "your-", "your_", "example.com", "path/to"];
/// Options after which a program only says what it is.
const ABOUT: [&str; 4] = ["--help", "-h", "--version", "-V"];
/// Words in the place of what somebody has to name.
const NAMES: [&str; 10] =
    ["FILE", "FILES", "FILENAME", "PATH", "DIR", "DIRECTORY", "COMMAND", "OPTIONS", "NAME", "SRC"];

/// What the tree has.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Names of console scripts.
    pub(super) scripts: BTreeSet<String>,
    /// Names of modules and packages that can be imported, of the top level.
    pub(super) modules: BTreeSet<String>,
    /// All paths.
    pub(super) paths: BTreeSet<String>,
    /// Files of tests.
    pub(super) tests: BTreeSet<String>,
    /// What is in the place of files that the tree does not have.
    pub(super) samples: Samples,
}

/// Why a line is not a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum No {
    /// It is about something else: not worth a word.
    Other,
    Reason(String),
}

fn no<T>(reason: impl Into<String>) -> Result<T, No> {
    Err(No::Reason(reason.into()))
}

/// A command as somebody types it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Typed {
    pub(super) command: EntryCommand,
    pub(super) stdin: Option<Stdin>,
    /// The status with which it ends.
    pub(super) exit: u8,
}

impl From<EntryCommand> for Typed {
    fn from(command: EntryCommand) -> Self {
        Typed { command, stdin: None, exit: 0 }
    }
}

/// Reads a line of a document.
pub(super) fn read(line: &str, known: &Known) -> Result<Typed, No> {
    let is_ours = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        known.scripts.contains(first) || matches!(first, "python" | "python3")
    };
    // What `echo` and `cat` say is typed to the command behind them.
    let is_piped = || {
        let behind = line.split_once('|').map(|(_, behind)| behind);
        ["echo ", "cat "].iter().any(|said| line.starts_with(said)) && behind.is_some_and(is_ours)
    };
    if !is_ours(line) && !is_piped() {
        return Err(No::Other);
    }
    if let Some(sign) = PLACEHOLDERS.into_iter().find(|sign| line.contains(sign)) {
        // `<` alone leads a file to standard input.
        if sign != "<" || !line.contains("< ") || line.contains('>') {
            return no(format!("`{sign}` has to be filled in"));
        }
        if PLACEHOLDERS[1..].iter().any(|sign| line.contains(sign)) {
            return no("a part has to be filled in");
        }
    }
    if line.contains("://") {
        return no("it names an address");
    }
    let (words, stdin) = words(line)?;
    if let Some(word) = words.iter().find(|word| is_placeholder(word)) {
        return no(format!("`{word}` has to be filled in"));
    }
    if words.first().is_some_and(|word| is_assignment(word)) {
        return no("it sets a variable");
    }
    let command = EntryCommand::of_words(&words).map_err(No::Reason)?;
    let command = fitted(command, known)?;
    let stdin = match stdin {
        Some(Stdin::File(file)) if !known.paths.contains(&file) => {
            match known.samples.named(&file).or_else(|| known.samples.like(&file, &[])) {
                Some(sample) => Some(Stdin::File(sample.to_owned())),
                None => return no(format!("the tree has no {file}")),
            }
        }
        other => other,
    };
    Ok(Typed { stdin, ..command.into() })
}

/// The words of a line, and what is led to its standard input. What its output is led to is left away: it says the same.
fn words(line: &str) -> Result<(Vec<String>, Option<Stdin>), No> {
    let (mut words, mut stdin) = (Vec::new(), None);
    let mut rest = tokens(line).map_err(No::Reason)?.into_iter();
    while let Some(token) = rest.next() {
        match token {
            Token::Word(word) => words.push(word),
            Token::Operator(operator) if operator == "<" && stdin.is_none() => match rest.next() {
                Some(Token::Word(file)) => stdin = Some(Stdin::File(file)),
                _ => return no("`<` without a file"),
            },
            Token::Operator(operator) if operator == "|" && stdin.is_none() && is_said(&words) => {
                stdin = Some(said(&std::mem::take(&mut words))?);
            }
            // The commands behind it get what this one says; none of them may be followed by another line.
            Token::Operator(operator) if operator == "|" => {
                if rest.any(|token| matches!(token, Token::Operator(operator) if divides(&operator))) {
                    return no("more than one command");
                }
                break;
            }
            Token::Operator(operator) if operator == ">" => {
                let file = rest.next();
                if !matches!(file, Some(Token::Word(_))) || rest.len() > 0 {
                    return no("`>` is for a shell");
                }
            }
            Token::Operator(operator) if divides(&operator) => {
                return no(format!("more than one command: `{operator}`"));
            }
            Token::Operator(operator) => return no(format!("`{operator}` is for a shell")),
        }
    }
    Ok((words, stdin))
}

/// Whether another command begins behind an operator.
fn divides(operator: &str) -> bool {
    matches!(operator, "&&" | "||" | ";")
}

fn is_said(words: &[String]) -> bool {
    matches!(words.first().map(String::as_str), Some("echo" | "cat"))
}

/// What `echo` or `cat` prints.
fn said(words: &[String]) -> Result<Stdin, No> {
    match words {
        [program, text @ ..] if program == "echo" => {
            let text = text.join(" ");
            // Shells do not agree on these.
            let is_plain = !text.starts_with('-') && !text.contains('\\');
            if is_plain { Ok(Stdin::Text(text + "\n")) } else { no("`echo` with an option or a backslash") }
        }
        [_, file] if !file.starts_with('-') => Ok(Stdin::File(file.clone())),
        _ => no("`cat` of other than one file"),
    }
}

/// Whether a word as a whole is in the place of something.
fn is_placeholder(word: &str) -> bool {
    let inside = word.trim_end_matches("...");
    let inside = [('{', '}'), ('[', ']')]
        .into_iter()
        .find_map(|(open, close)| inside.strip_prefix(open)?.strip_suffix(close));
    NAMES.contains(&word)
        || inside.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '))
        })
}

/// The command, if it is one of the repository's. A file that it names and the tree does not have becomes one that the tree
/// has, with the same ending; where none has that, it may be what the command writes.
pub(super) fn fitted(command: EntryCommand, known: &Known) -> Result<EntryCommand, No> {
    belongs(&command, known)?;
    let mut arguments = command.arguments().to_vec();
    if let Some(option) = arguments.iter().find(|word| ABOUT.contains(&word.as_str())) {
        return no(format!("{option} prints help or a version"));
    }
    for at in 0..arguments.len() {
        let word = &arguments[at];
        let is_there = word.starts_with('-') || !is_file_name(word) || known.paths.contains(trimmed(word));
        // What follows an option may be what the command writes.
        if is_there || at > 0 && arguments[at - 1].starts_with('-') {
            continue;
        }
        let is_elsewhere = word.starts_with(['/', '~']) || word.starts_with("../");
        let sample = known.samples.named(trimmed(word)).or_else(|| known.samples.like(word, &arguments));
        match sample.filter(|_| !is_elsewhere) {
            Some(sample) => sample.clone_into(&mut arguments[at]),
            None if is_elsewhere || word.contains('/') || is_hidden_code(word) => {
                return no(format!("the tree has no {word}"));
            }
            None => {}
        }
    }
    Ok(command.with_arguments(arguments))
}

/// Whether the program of a command is one of the repository's.
fn belongs(command: &EntryCommand, known: &Known) -> Result<(), No> {
    match command {
        EntryCommand::Script { path, .. } if !known.paths.contains(path) => {
            return no(format!("the tree has no {path}"));
        }
        EntryCommand::Script { path, .. } if known.tests.contains(path) => {
            return no(format!("{path} is a file of tests, which are groups"));
        }
        EntryCommand::Script { path, .. } if matches!(path.as_str(), "setup.py" | "manage.py") => {
            return no(format!("{path} builds or manages the project"));
        }
        EntryCommand::Module { name, .. }
            if !known.modules.contains(name.split('.').next().unwrap_or_default()) =>
        {
            return no(format!("{name} is not a module of the repository"));
        }
        EntryCommand::Code { .. } => return no("`python -c` is an entry only where it is configured"),
        EntryCommand::Script { .. }
        | EntryCommand::Module { .. }
        | EntryCommand::Console { .. }
        | EntryCommand::Pytest { .. } => {}
    }
    Ok(())
}

fn trimmed(word: &str) -> &str {
    word.trim_start_matches("./").trim_end_matches('/')
}

/// Whether a word looks like the path of a file.
fn is_file_name(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let has_ending = name.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.starts_with(|first: char| first.is_ascii_alphabetic())
            && ending.chars().all(|c| c.is_ascii_alphanumeric())
    });
    let plain = word.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '~'));
    plain && (has_ending || word.contains('/') || word.starts_with('~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Known {
            scripts: set(&["shop"]),
            modules: set(&["shop", "tools"]),
            paths: set(&[
                "data/in.txt",
                "data",
                "tools/report.py",
                "setup.py",
                "data/in.csv",
                "tests/test_a.py",
            ]),
            tests: set(&["tests/test_a.py"]),
            samples: Samples::new([("data/in.txt", 4), ("data/in.csv", 4)].into_iter()),
        }
    }

    #[test]
    fn what_a_person_would_run_is_a_candidate() {
        for (line, command, stdin) in [
            ("shop tables", "shop tables", None),
            ("shop export --json out.json  # writes", "shop export --json out.json", None),
            ("shop stats < data/in.txt", "shop stats", Some("data/in.txt")),
            ("python tools/report.py data/in.txt", "python tools/report.py data/in.txt", None),
            ("python3 -m shop buy tea", "python -m shop buy tea", None),
            ("shop list ./data/", "shop list ./data/", None),
            ("shop buy 1.5 v2", "shop buy 1.5 v2", None),
            ("shop read missing.csv", "shop read data/in.csv", None),
            ("shop read here/missing.csv more.csv", "shop read data/in.csv more.csv", None),
            ("shop fill new.db", "shop fill new.db", None),
            ("shop < missing.csv", "shop", Some("data/in.csv")),
            ("cat missing.csv | shop stats -", "shop stats -", Some("data/in.csv")),
            ("shop list --json | python -m json.tool | sort", "shop list --json", None),
            ("shop list > out.txt", "shop list", None),
        ] {
            let stdin = stdin.map(|file: &str| Stdin::File(file.to_owned()));
            let found = read(line, &known()).map(|typed| (typed.command.line(), typed.stdin));
            assert_eq!(found, Ok((command.to_owned(), stdin)), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_run_has_its_reason() {
        for (line, reason) in [
            ("shop a && shop b", "more than one command: `&&`"),
            ("shop a | sort && shop b", "more than one command"),
            ("shop a > out.txt 2> err.txt", "`>` is for a shell"),
            ("shop a 2> out.txt", "`2>` is for a shell"),
            ("echo -n a | shop b", "`echo` with an option or a backslash"),
            ("cat a b | shop c", "`cat` of other than one file"),
            ("shop get <name>", "`<` has to be filled in"),
            ("shop get ...", "`...` has to be filled in"),
            ("shop get YOUR_NAME", "`YOUR` has to be filled in"),
            ("shop get https://a.b/c", "it names an address"),
            ("shop --help", "--help prints help or a version"),
            ("shop read missing.py", "the tree has no missing.py"),
            ("shop read /far/missing.csv", "the tree has no /far/missing.csv"),
            ("shop read missing/", "the tree has no missing/"),
            ("shop < missing.db", "the tree has no missing.db"),
            ("shop read {source_file}", "`{source_file}` has to be filled in"),
            ("shop read FILE", "`FILE` has to be filled in"),
            ("shop *.txt", "`*` is a glob, which is for a shell to expand"),
            ("python -m pip install shop", "pip is not a module of the repository"),
            ("python -m pytest", "tests are groups, not entries"),
            ("python setup.py install", "setup.py builds or manages the project"),
            ("python other.py", "the tree has no other.py"),
            ("python tests/test_a.py", "tests/test_a.py is a file of tests, which are groups"),
            ("python -c 'import shop'", "`python -c` is an entry only where it is configured"),
            ("python", "`python` alone waits for input"),
        ] {
            assert_eq!(read(line, &known()), Err(No::Reason(reason.to_owned())), "{line}");
        }
        let typed = read("echo '[1, 2]' x | shop sum -", &known()).unwrap();
        assert_eq!(typed.stdin, Some(Stdin::Text("[1, 2] x\n".to_owned())));
        for line in ["pip install shop", "cd shop", "", "FOO=1 shop a", "shopping list", "echo a | sort"] {
            assert_eq!(read(line, &known()), Err(No::Other), "{line}");
        }
    }
}
