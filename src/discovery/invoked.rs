//! From a call in a test to the command that a person would type for it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::declared::Script;
use super::samples::{Samples, is_hidden_code};
use crate::python_source::commands::{Argument, Invocation, Program};
use crate::record::entry::EntryCommand;

/// The programs of a tree, and what they know.
pub(super) struct Programs<'a> {
    pub(super) scripts: &'a BTreeMap<String, Script>,
    /// The script that has the name of the project, or the only one.
    pub(super) main: Option<String>,
    /// Options and subcommands that the code declares.
    pub(super) vocabulary: &'a BTreeSet<String>,
    /// What the tree has.
    pub(super) paths: &'a BTreeSet<String>,
    pub(super) samples: &'a Samples,
}

impl Programs<'_> {
    /// The command that an invocation is; none where it is not known to be one of the tree's programs.
    pub(super) fn command_of(&self, one: &Invocation) -> Option<EntryCommand> {
        let arguments: Vec<String> = one.arguments.iter().map(|word| self.word(word)).collect();
        match &one.program {
            Program::Interpreter => {
                let words: Vec<String> = std::iter::once("python".to_owned()).chain(arguments).collect();
                EntryCommand::of_words(&words).ok()
            }
            Program::Named(name) => self.named(name, arguments),
            Program::Object(object) => {
                let mut called = self.scripts.iter().filter(|(_, script)| script.object() == object);
                match (called.next(), called.next()) {
                    (Some((name, _)), None) => self.named(name, arguments),
                    (Some(_), Some(_)) if self.main().is_some_and(|main| main.object() == object) => {
                        self.named(self.main.as_deref()?, arguments)
                    }
                    _ => self.of_main(arguments),
                }
            }
            Program::Helper => self.of_main(arguments),
        }
    }

    fn main(&self) -> Option<&Script> {
        self.scripts.get(self.main.as_deref()?)
    }

    /// A word as somebody would type it: a file that the tree has by its path, another one by its name.
    fn word(&self, word: &Argument) -> String {
        match word {
            Argument::Text(text) => text.clone(),
            Argument::File(path) => {
                let name = path.rsplit('/').next().unwrap_or(path);
                self.samples.named(path).unwrap_or(name).to_owned()
            }
        }
    }

    fn named(&self, name: &str, mut arguments: Vec<String>) -> Option<EntryCommand> {
        if arguments.first().is_some_and(|first| first == name) {
            arguments.remove(0);
        }
        let name = self.scripts.contains_key(name).then(|| name.to_owned())?;
        Some(EntryCommand::Console { name, arguments })
    }

    /// The main program with arguments that it knows.
    fn of_main(&self, mut arguments: Vec<String>) -> Option<EntryCommand> {
        if let Some(first) = arguments.first().filter(|first| self.scripts.contains_key(*first)).cloned() {
            arguments.remove(0);
            return self.named(&first, arguments);
        }
        let first = arguments.first()?;
        let is_path = self.paths.contains(first.trim_end_matches('/')) && !is_hidden_code(first);
        let is_known = self.knows(first) || is_path && arguments.iter().any(|word| self.knows(word));
        let main = self.main.as_deref().filter(|_| is_known)?;
        self.named(main, arguments)
    }

    /// Whether a word is an option, or a subcommand, that the code declares.
    fn knows(&self, word: &str) -> bool {
        let option = word.split('=').next().unwrap_or(word);
        let short = word.get(..2).filter(|_| !word.starts_with("--"));
        [Some(option), short].into_iter().flatten().any(|word| self.vocabulary.contains(word))
    }
}

/// The script that is meant where none is named.
pub(super) fn main_script(scripts: &BTreeMap<String, Script>, project: Option<&str>) -> Option<String> {
    let plain = |name: &str| name.to_lowercase().replace(['_', '.'], "-");
    let project = project.map(plain);
    let named = scripts.keys().find(|name| Some(plain(name)) == project);
    let targets: BTreeSet<&str> = scripts.values().map(|script| script.target.as_str()).collect();
    named.or_else(|| scripts.keys().next().filter(|_| targets.len() == 1)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(target: &str) -> Script {
        Script { target: target.to_owned(), file: "pyproject.toml".to_owned(), line: 1 }
    }

    #[test]
    fn the_main_script_is_the_projects_or_the_only_one() {
        let of = |named: &[(&str, &str)]| -> BTreeMap<String, Script> {
            named.iter().map(|(name, target)| ((*name).to_owned(), script(target))).collect()
        };
        let two = of(&[("shop", "shop:main"), ("shopd", "shop:serve")]);
        assert_eq!(main_script(&two, Some("Shop")).as_deref(), Some("shop"));
        assert_eq!(main_script(&two, Some("other")), None);
        assert_eq!(main_script(&of(&[("s", "a:b"), ("s3", "a:b")]), None).as_deref(), Some("s"));
        assert_eq!(main_script(&of(&[]), Some("shop")), None);
    }

    #[test]
    fn calls_become_the_commands_of_programs_that_know_their_words() {
        let scripts: BTreeMap<String, Script> =
            [("shop".to_owned(), script("shop.cli:cli")), ("shopd".to_owned(), script("shop.serve:cli"))]
                .into();
        let vocabulary: BTreeSet<String> = ["buy", "--json", "-l"].map(str::to_owned).into();
        let samples = Samples::new([("tests/in.csv", 3)].into_iter());
        let programs = Programs {
            scripts: &scripts,
            main: Some("shop".to_owned()),
            vocabulary: &vocabulary,
            paths: &["tests/in.csv", "tests"].map(str::to_owned).into(),
            samples: &samples,
        };
        let read = |program: Program, words: &[&str]| {
            let arguments = words.iter().map(|word| match word.strip_prefix("FILE:") {
                Some(path) => Argument::File(path.to_owned()),
                None => Argument::Text((*word).to_owned()),
            });
            let one =
                Invocation { line: 1, program, arguments: arguments.collect(), input: None, exit: None };
            programs.command_of(&one).map(|command| command.line())
        };
        let object = || Program::Object("cli".to_owned());
        assert_eq!(read(object(), &["anything"]).as_deref(), Some("shop anything"));
        assert_eq!(read(Program::Object("main".to_owned()), &["anything"]), None);
        assert_eq!(
            read(Program::Object("main".to_owned()), &["buy", "tea"]).as_deref(),
            Some("shop buy tea")
        );
        assert_eq!(
            read(Program::Helper, &["--json=x", "FILE:in.csv"]).as_deref(),
            Some("shop --json=x tests/in.csv")
        );
        assert_eq!(read(Program::Helper, &["-lpy", "FILE:a/out.db"]).as_deref(), Some("shop -lpy out.db"));
        assert_eq!(read(Program::Helper, &["shopd", "x"]).as_deref(), Some("shopd x"));
        assert_eq!(read(Program::Helper, &["--other"]), None);
        assert_eq!(read(Program::Helper, &["tests/", "-l"]).as_deref(), Some("shop tests/ -l"));
        assert_eq!(read(Program::Helper, &["tests/", "other"]), None);
        assert_eq!(read(Program::Named("ls".to_owned()), &["-l"]), None);
        assert_eq!(read(Program::Named("shopd".to_owned()), &["-l"]).as_deref(), Some("shopd -l"));
        assert_eq!(read(Program::Interpreter, &["-m", "shop"]).as_deref(), Some("python -m shop"));
    }
}
