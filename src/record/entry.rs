//! What is run to see a behaviour: the one writer of a command line, and entries, whose command is not pytest's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::Name;
use super::spelling::spelling;
use crate::text::{command, glob, shell_quote};

/// A pytest test function, with whatever cases it has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// From the root of the tree.
    pub file: String,
    /// Class chain from the outside in.
    pub classes: Vec<String>,
    /// Empty for a file that cannot be collected.
    pub function: String,
}

impl GroupKey {
    /// `file::Class::function`; the file alone where there is no function.
    pub fn group_id(&self) -> String {
        let function = Some(&self.function).filter(|function| !function.is_empty());
        self.classes.iter().chain(function).fold(self.file.clone(), |id, part| format!("{id}::{part}"))
    }
}

/// A command whose behaviour a task is about, run in the root of the tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum EntryCommand {
    /// `python -m pytest NODE`, the ID of a group or of a file.
    Pytest { node: String },
    /// `python PATH ARGUMENTS`.
    Script { path: String, arguments: Vec<String> },
    /// `python -m NAME ARGUMENTS`.
    Module { name: String, arguments: Vec<String> },
    /// `NAME ARGUMENTS`, a script that the installed project declares.
    Console { name: String, arguments: Vec<String> },
    /// `python -c TEXT ARGUMENTS`.
    Code { text: String, arguments: Vec<String> },
}

impl EntryCommand {
    /// Program and arguments; no shell has a part in it.
    pub fn words(&self) -> Vec<String> {
        let python = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (mut words, arguments) = match self {
            EntryCommand::Pytest { node } => return python(&["python", "-m", "pytest", node]),
            EntryCommand::Script { path, arguments } => (python(&["python", path]), arguments),
            EntryCommand::Module { name, arguments } => (python(&["python", "-m", name]), arguments),
            EntryCommand::Console { name, arguments } => (vec![name.clone()], arguments),
            EntryCommand::Code { text, arguments } => (python(&["python", "-c", text]), arguments),
        };
        words.extend(arguments.iter().cloned());
        words
    }

    /// What pytest is to run; none for a command that is not pytest's.
    pub fn node(&self) -> Option<&str> {
        match self {
            EntryCommand::Pytest { node } => Some(node),
            EntryCommand::Script { .. }
            | EntryCommand::Module { .. }
            | EntryCommand::Console { .. }
            | EntryCommand::Code { .. } => None,
        }
    }

    /// The one spelling of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            EntryCommand::Pytest { .. } => PYTEST,
            EntryCommand::Script { .. } => "script",
            EntryCommand::Module { .. } => "module",
            EntryCommand::Console { .. } => "console",
            EntryCommand::Code { .. } => "code",
        }
    }

    /// What is run, without its arguments: a node, path, name or text.
    pub fn program(&self) -> &str {
        match self {
            EntryCommand::Pytest { node } => node,
            EntryCommand::Script { path, .. } => path,
            EntryCommand::Module { name, .. } | EntryCommand::Console { name, .. } => name,
            EntryCommand::Code { text, .. } => text,
        }
    }

    /// The words after the program.
    pub fn arguments(&self) -> &[String] {
        match self {
            EntryCommand::Pytest { .. } => &[],
            EntryCommand::Script { arguments, .. }
            | EntryCommand::Module { arguments, .. }
            | EntryCommand::Console { arguments, .. }
            | EntryCommand::Code { arguments, .. } => arguments,
        }
    }

    /// The same program with other arguments.
    #[must_use]
    pub fn with_arguments(&self, arguments: Vec<String>) -> Self {
        match self.clone() {
            EntryCommand::Pytest { node } => EntryCommand::Pytest { node },
            EntryCommand::Script { path, .. } => EntryCommand::Script { path, arguments },
            EntryCommand::Module { name, .. } => EntryCommand::Module { name, arguments },
            EntryCommand::Console { name, .. } => EntryCommand::Console { name, arguments },
            EntryCommand::Code { text, .. } => EntryCommand::Code { text, arguments },
        }
    }

    /// Reads the words of a command: `python PATH …`, `python -m NAME …`, `python -c TEXT …` or `NAME …`.
    ///
    /// # Errors
    /// Why it is not a command of one of these kinds, in words.
    pub fn of_words(words: &[String]) -> Result<Self, String> {
        let [first, rest @ ..] = words else { return Err("it is empty".to_owned()) };
        let owned = |words: &[String]| words.to_vec();
        if !matches!(first.as_str(), "python" | "python3") {
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            if !first.chars().all(plain) || first.is_empty() || first.starts_with(['-', '.']) {
                return Err(format!("{first:?} is neither `python` nor the name of a script"));
            }
            return Ok(EntryCommand::Console { name: first.clone(), arguments: owned(rest) });
        }
        match rest {
            [] => Err("`python` alone waits for input".to_owned()),
            [option, text, rest @ ..] if option == "-c" => {
                Ok(EntryCommand::Code { text: text.clone(), arguments: owned(rest) })
            }
            [option, name, rest @ ..] if option == "-m" => {
                let is_name = name
                    .split('.')
                    .all(|part| part.chars().all(|c| c.is_alphanumeric() || c == '_') && !part.is_empty());
                if !is_name {
                    return Err(format!("{name:?} is not the name of a module"));
                }
                if name == "pytest" {
                    return Err("tests are groups, not entries".to_owned());
                }
                Ok(EntryCommand::Module { name: name.clone(), arguments: owned(rest) })
            }
            [option, ..] if option.starts_with('-') => {
                Err(format!("options of the interpreter other than -m and -c are not taken: {option:?}"))
            }
            [path, rest @ ..] => {
                let path = path.strip_prefix("./").unwrap_or(path);
                super::trace::check_path(path)?;
                Ok(EntryCommand::Script { path: path.to_owned(), arguments: owned(rest) })
            }
        }
    }

    /// Reads a line as one plain command.
    ///
    /// # Errors
    /// What only a shell could do, and why it is not a command, in words.
    pub fn of_line(line: &str) -> Result<Self, String> {
        EntryCommand::of_words(&command::words(line)?)
    }

    /// As a line for a POSIX shell; words are quoted where it needs that.
    pub fn line(&self) -> String {
        self.words().iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" ")
    }
}

/// The command that runs these tests; the whole suite without any.
pub fn pytest_line(nodes: &[&str]) -> String {
    ["python", "-m", "pytest"].iter().chain(nodes).map(|word| shell_quote(word)).collect::<Vec<_>>().join(" ")
}

/// The kind of what is not an entry.
pub const PYTEST: &str = "pytest";
/// All kinds, that of tests first.
pub const KINDS: [&str; 5] = [PYTEST, "script", "module", "console", "code"];
/// The text before the name in the id of an entry; the file of its group.
pub const ENTRIES: &str = "entry";

/// A command of a repository that is not a test, with all that its run depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Unique in its repository.
    pub name: Name,
    pub command: EntryCommand,
    /// What standard input has; none: it is empty.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stdin: Option<Stdin>,
    /// Further environment variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub env: BTreeMap<String, String>,
    /// The folder of the tree that it runs in; empty for the root.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub cwd: String,
    /// The exit status that is expected.
    #[serde(default)]
    pub exit: u8,
    /// Globs of the files whose changes count; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<String>,
    pub origin: Origin,
    /// Files of the tree that say something else while it runs, by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub given: BTreeMap<String, String>,
    /// What the same program prints where it is asked for help or its version, as SHA-256 of each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub help: Vec<String>,
}

impl Entry {
    /// The id of its group.
    pub fn id(&self) -> String {
        format!("{ENTRIES}::{}", self.name)
    }

    /// Regular expressions of the paths whose changes count; empty for all.
    pub fn watched(&self) -> Vec<String> {
        self.files.iter().map(|text| glob::pattern(text)).collect()
    }

    /// The command that runs a submission for it, a file in the root of the tree: with the same arguments, in the same folder.
    pub fn submitted(&self, file: &str) -> EntryCommand {
        let up = self.cwd.split('/').filter(|part| !part.is_empty()).map(|_| "../");
        let path = up.collect::<String>() + file;
        EntryCommand::Script { path, arguments: self.command.arguments().to_vec() }
    }
}

/// Longest name that is made, in characters.
const LONGEST_NAME: usize = 60;

/// A name that a command suggests: the program's, and the words that are not options.
pub fn name_of(command: &EntryCommand) -> Name {
    let program = match command {
        EntryCommand::Script { path, .. } => path.rsplit('/').next().unwrap_or(path).trim_end_matches(".py"),
        EntryCommand::Code { .. } => "code",
        EntryCommand::Pytest { .. } | EntryCommand::Module { .. } | EntryCommand::Console { .. } => {
            command.program()
        }
    };
    let mut name = String::new();
    for word in std::iter::once(program).chain(command.arguments().iter().map(String::as_str)) {
        let plain: String = word
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' })
            .collect();
        let plain = plain.trim_matches(['-', '.']);
        if plain.is_empty() || name.len() + plain.len() >= LONGEST_NAME {
            continue;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(plain);
    }
    Name::new(name.trim_start_matches(['_', '.', '-'])).unwrap_or_else(|_| Name::fixed("entry"))
}

/// Where standard input comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdin {
    Text(String),
    /// A file of the tree.
    File(String),
}

spelling! {
    /// What names an entry.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Source {
        Configured "configured",
        Readme "readme",
        Docs "docs",
        /// The arguments that a test passes to a runner.
        Test "test",
        Example "example",
        MainGuard "main-guard",
        ConsoleScript "console-script",
    }
}

/// Where an entry was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub source: Source,
    /// The file of the tree that names it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// 1-based.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.source.as_str())?;
        if let Some(file) = &self.file {
            write!(formatter, " {file}")?;
        }
        self.line.map_or(Ok(()), |line| write!(formatter, ":{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_the_kind_that_it_is() {
        let read = |line: &str| EntryCommand::of_line(line).map(|command| (command.kind(), command.line()));
        for (line, kind, written) in [
            ("python tools/x.py a", "script", "python tools/x.py a"),
            ("python3 ./x.py", "script", "python x.py"),
            ("python -m shop.cli 'a b'", "module", "python -m shop.cli 'a b'"),
            ("shop export", "console", "shop export"),
            ("python -c 'print(1)'", "code", "python -c 'print(1)'"),
        ] {
            assert_eq!(read(line), Ok((kind, written.to_owned())), "{line}");
        }
        for line in [
            "",
            "python",
            "python -m pytest",
            "python -m a-b",
            "python -O x.py",
            "python /x.py",
            "python ../x.py",
            "./shop",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn every_kind_has_its_line() {
        let key = |classes: &[&str], function: &str| GroupKey {
            file: "tests/test_a b.py".to_owned(),
            classes: classes.iter().map(|class| (*class).to_owned()).collect(),
            function: function.to_owned(),
        };
        let pytest = |key: GroupKey| EntryCommand::Pytest { node: key.group_id() };
        let arguments = vec!["a".to_owned(), "it's".to_owned()];
        let lines = [
            (pytest(key(&["TestB"], "test_c")), "python -m pytest 'tests/test_a b.py::TestB::test_c'"),
            (pytest(key(&[], "")), "python -m pytest 'tests/test_a b.py'"),
            (
                EntryCommand::Script { path: "tools/x.py".to_owned(), arguments: arguments.clone() },
                "python tools/x.py a 'it'\\''s'",
            ),
            (
                EntryCommand::Module { name: "shop".to_owned(), arguments: arguments.clone() },
                "python -m shop a 'it'\\''s'",
            ),
            (EntryCommand::Console { name: "shop".to_owned(), arguments: Vec::new() }, "shop"),
            (EntryCommand::Console { name: "shop".to_owned(), arguments }, "shop a 'it'\\''s'"),
        ];
        for (command, line) in lines {
            assert_eq!(command.line(), line);
        }
    }
}
