//! What is run to see a behaviour: the one writer of a command line.

use crate::text::shell_quote;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryCommand {
    /// `python -m pytest NODE`, the ID of a group or of a file.
    Pytest { node: String },
    /// `python PATH ARGUMENTS`.
    Script { path: String, arguments: Vec<String> },
    /// `python -m NAME ARGUMENTS`.
    Module { name: String, arguments: Vec<String> },
    /// `NAME ARGUMENTS`, a script that the installed project declares.
    Console { name: String, arguments: Vec<String> },
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
        };
        words.extend(arguments.iter().cloned());
        words
    }

    /// What pytest is to run; none for a command that is not pytest's.
    pub fn node(&self) -> Option<&str> {
        match self {
            EntryCommand::Pytest { node } => Some(node),
            EntryCommand::Script { .. } | EntryCommand::Module { .. } | EntryCommand::Console { .. } => None,
        }
    }

    /// As a line for a POSIX shell; words are quoted where it needs that.
    pub fn line(&self) -> String {
        self.words().iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (EntryCommand::Console { name: "shop".to_owned(), arguments }, "shop a 'it'\\''s'"),
        ];
        for (command, line) in lines {
            assert_eq!(command.line(), line);
        }
    }
}
