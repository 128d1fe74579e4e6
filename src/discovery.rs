//! Commands of a tree that a person would run, found by reading: documents, tests, folders of examples, modules and scripts.
//! Nothing is run: a bad guess costs an attempt, and is a row with a cause.

mod declared;
mod documents;
mod invoked;
mod line;
mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::beneath::{Folder, Kind};
use crate::error::Result;
use crate::python_source::commands::commands;
use crate::python_source::decoded;
use crate::record::entry::{Entry, EntryCommand, Origin, Source, Stdin, name_of};
use crate::record::id::Name;
use crate::record::trace::{check_path, is_test_path, test_roots};
use crate::terminal::is_obeyed;
use declared::Script;
use invoked::{Programs, main_script};
use line::{Known, No, Typed};
use samples::Samples;

/// Largest file that is read, in bytes, and of all files together.
const LARGEST: u64 = 1 << 20;
const ALL: u64 = 256 << 20;
/// Most candidates and rejects that are kept.
const MOST: usize = 2000;
/// Most commands of documents and tests that have the same program and first word.
const MOST_ALIKE: usize = 6;
/// The status with which programs say that they do not understand their words: nothing that a person wants to see.
const USAGE: u8 = 2;
/// Folders of programs to run as they are.
const EXAMPLES: [&str; 7] = ["example", "examples", "script", "scripts", "benchmark", "benchmarks", "demo"];
/// Folders that hold what is not the project's own.
const FOREIGN: [&str; 9] =
    ["node_modules", "vendor", "_vendor", "third_party", "site-packages", ".git", ".tox", ".venv", "venv"];

/// What was found in a tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Discovered {
    /// In the order of trust; names are unique.
    pub(crate) candidates: Vec<Entry>,
    pub(crate) rejects: Vec<Reject>,
}

/// A line that looks like a command, and cannot be an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reject {
    pub(crate) line: String,
    pub(crate) reason: String,
    pub(crate) origin: Origin,
}

/// Looks for commands. `installed` are the scripts of an environment where there is one.
///
/// # Errors
/// The tree cannot be walked.
pub(crate) fn discover(tree: &Folder, installed: Option<&BTreeSet<String>>) -> Result<Discovered> {
    let files = Files::of(tree)?;
    let mut scripts: BTreeMap<String, Script> = BTreeMap::new();
    for name in ["pyproject.toml", "setup.cfg", "setup.py"] {
        let text = files.text(name).unwrap_or_default();
        for (name, script) in declared::scripts(name, &text) {
            scripts.entry(name).or_insert(script);
        }
    }
    scripts.retain(|name, _| installed.is_none_or(|installed| installed.contains(name)));
    let known = Known {
        scripts: scripts.keys().cloned().collect(),
        modules: files.modules(),
        paths: files.paths.clone(),
        tests: files.readable.keys().filter(|path| files.is_test(path)).cloned().collect(),
        samples: Samples::new(files.readable.iter().map(|(path, size)| (path.as_str(), *size))),
    };
    let mut found = Finder {
        known,
        scripts,
        seen: BTreeSet::new(),
        names: BTreeSet::new(),
        alike: BTreeMap::new(),
        found: Discovered::default(),
    };
    found.documents(&files);
    found.tests(&files);
    found.examples(&files);
    found.programs(&files);
    Ok(found.found)
}

/// The files of a tree, read in bounds.
struct Files<'a> {
    tree: &'a Folder,
    paths: BTreeSet<String>,
    /// Regular files that are small enough to be read, with their sizes.
    readable: BTreeMap<String, u64>,
    /// Folders of tests.
    tests: Vec<String>,
}

impl<'a> Files<'a> {
    fn of(tree: &'a Folder) -> Result<Self> {
        let (mut paths, mut readable, mut bytes) = (BTreeSet::new(), BTreeMap::new(), 0);
        for entry in tree.walk()? {
            let Some(path) = entry.path.to_str().filter(|path| check_path(path).is_ok()) else { continue };
            if path.chars().any(is_obeyed) || path.split('/').any(|part| FOREIGN.contains(&part)) {
                continue;
            }
            if matches!(entry.kind, Kind::File) && entry.size <= LARGEST && bytes + entry.size <= ALL {
                bytes += entry.size;
                readable.insert(path.to_owned(), entry.size);
            }
            paths.insert(path.to_owned());
        }
        let named = readable.keys().filter(|path| path.ends_with(".py") && is_test_path(path, &[]));
        let tests = test_roots(named.map(String::as_str));
        Ok(Files { tree, paths, readable, tests })
    }

    fn is_test(&self, path: &str) -> bool {
        path.ends_with(".py") && is_test_path(path, &self.tests)
    }

    /// The text of a file; none where it is not text.
    fn text(&self, path: &str) -> Option<String> {
        let bytes = self.tree.read(Path::new(path), LARGEST).ok()?;
        if path.ends_with(".py") { Some(decoded(&bytes)) } else { String::from_utf8(bytes).ok() }
    }

    /// Options and subcommands that the code declares, tests aside.
    fn vocabulary(&self) -> BTreeSet<String> {
        let code = self.readable.keys().filter(|path| path.ends_with(".py") && !self.is_test(path));
        code.flat_map(|path| commands(&self.text(path).unwrap_or_default()).vocabulary).collect()
    }

    /// Names that can be imported: files and folders with Python files of the root and of `src/`.
    fn modules(&self) -> BTreeSet<String> {
        let python = self.paths.iter().filter(|path| path.ends_with(".py"));
        let below = python.map(|path| path.strip_prefix("src/").unwrap_or(path));
        below
            .filter_map(|path| path.split('/').next())
            .map(|name| name.trim_end_matches(".py").to_owned())
            .collect()
    }
}

struct Finder {
    known: Known,
    scripts: BTreeMap<String, Script>,
    seen: BTreeSet<(EntryCommand, Option<String>)>,
    names: BTreeSet<String>,
    /// How many have the same program and first word.
    alike: BTreeMap<(String, String), usize>,
    found: Discovered,
}

impl Finder {
    /// README files of the root, then documentation.
    fn documents(&mut self, files: &Files<'_>) {
        let is_document = |path: &&String| {
            let lower = path.to_lowercase();
            [".md", ".rst", ".markdown", ".txt"].iter().any(|end| lower.ends_with(end)) || lower == "readme"
        };
        let of = |path: &str| {
            let lower = path.to_lowercase();
            let is_readme = lower.rsplit('/').next().is_some_and(|name| name.starts_with("readme"));
            match lower.split('/').next() {
                _ if is_readme && !lower.contains('/') => Some(Source::Readme),
                Some("docs" | "doc" | "documentation") => Some(Source::Docs),
                _ => None,
            }
        };
        let documents = files.readable.keys().filter(is_document);
        let mut documents: Vec<(Source, &String)> =
            documents.filter_map(|path| Some((of(path)?, path))).collect();
        documents.sort();
        for (source, path) in documents {
            let text = files.text(path).unwrap_or_default();
            for line in documents::lines(&text) {
                let origin = Origin { source, file: Some(path.clone()), line: Some(line.at) };
                match line::read(&line.text, &self.known) {
                    Ok(typed) => self.add_alike(typed, origin),
                    Err(No::Reason(reason)) => self.reject(&line.text, reason, origin),
                    Err(No::Other) => {}
                }
            }
        }
    }

    /// The arguments that tests pass to programs.
    fn tests(&mut self, files: &Files<'_>) {
        let (scripts, samples) = (self.scripts.clone(), self.known.samples.clone());
        let main = main_script(
            &scripts,
            declared::project(&files.text("pyproject.toml").unwrap_or_default()).as_deref(),
        );
        let vocabulary = files.vocabulary();
        let paths = self.known.paths.clone();
        let programs =
            Programs { scripts: &scripts, main, vocabulary: &vocabulary, paths: &paths, samples: &samples };
        for path in files.readable.keys().filter(|path| files.is_test(path)) {
            let text = files.text(path).unwrap_or_default();
            for one in commands(&text).invocations {
                let origin = Origin { source: Source::Test, file: Some(path.clone()), line: Some(one.line) };
                let Some(command) = programs.command_of(&one) else { continue };
                let line = command.line();
                let is_untold = one.input.is_none() && command.arguments().iter().any(|word| word == "-");
                match line::fitted(command, &self.known) {
                    Ok(_) if is_untold => {
                        self.reject(&line, "the call does not say what `-` reads".to_owned(), origin);
                    }
                    Ok(command) => {
                        let exit = one.exit.filter(|status| *status != USAGE).unwrap_or_default();
                        self.add_alike(Typed { command, stdin: one.input.map(Stdin::Text), exit }, origin);
                    }
                    Err(No::Reason(reason)) => self.reject(&line, reason, origin),
                    Err(No::Other) => {}
                }
            }
        }
    }

    /// Programs in folders of examples, without arguments.
    fn examples(&mut self, files: &Files<'_>) {
        let is_example = |path: &&String| {
            let mut folders: Vec<&str> = path.split('/').collect();
            folders.pop();
            path.ends_with(".py")
                && folders.iter().any(|folder| EXAMPLES.contains(folder) || folder.starts_with("demo"))
        };
        for path in files.readable.keys().filter(is_example) {
            let is_one = path.split('/').next().is_some_and(|folder| folder.starts_with("example"));
            let found = commands(&files.text(path).unwrap_or_default());
            // An example that prints as soon as it is run needs no main guard.
            let prints = found.prints.filter(|_| is_one && !files.is_test(path));
            let Some(line) = found.main_guard.or(prints) else { continue };
            let source = if is_one { Source::Example } else { Source::MainGuard };
            let origin = Origin { source, file: Some(path.clone()), line: Some(line) };
            self.add(EntryCommand::Script { path: path.clone(), arguments: Vec::new() }.into(), origin);
        }
    }

    /// Packages that can be run, and console scripts, without arguments.
    fn programs(&mut self, files: &Files<'_>) {
        for path in files.readable.keys() {
            let inside = path.strip_prefix("src/").unwrap_or(path);
            let Some(package) = inside.strip_suffix("/__main__.py").filter(|_| !files.is_test(path)) else {
                continue;
            };
            let words = ["python".to_owned(), "-m".to_owned(), package.replace('/', ".")];
            let origin = Origin { source: Source::MainGuard, file: Some(path.clone()), line: Some(1) };
            if let Ok(command) = EntryCommand::of_words(&words) {
                self.add(command.into(), origin);
            }
        }
        for (name, script) in self.scripts.clone() {
            let origin =
                Origin { source: Source::ConsoleScript, file: Some(script.file), line: Some(script.line) };
            self.add(EntryCommand::Console { name, arguments: Vec::new() }.into(), origin);
        }
    }

    /// Adds a candidate, unless there are enough that have the same program and first word.
    fn add_alike(&mut self, typed: Typed, origin: Origin) {
        let first = typed.command.arguments().first().map_or("", String::as_str);
        // Of files the ending counts, of options the name.
        let first = first.split('=').next().unwrap_or(first);
        let first = first.rsplit_once('.').map_or(first, |(_, ending)| ending).to_owned();
        let kind = (typed.command.program().to_owned(), first);
        if self.alike.get(&kind).is_none_or(|so_far| *so_far < MOST_ALIKE) && self.add(typed, origin) {
            *self.alike.entry(kind).or_default() += 1;
        }
    }

    /// Adds a candidate. Says whether it is a new one.
    fn add(&mut self, Typed { command, stdin, exit }: Typed, origin: Origin) -> bool {
        let typed = stdin.as_ref().map(|stdin| format!("{stdin:?}"));
        if self.found.candidates.len() >= MOST || !self.seen.insert((command.clone(), typed)) {
            return false;
        }
        if command.words().iter().any(|word| word.chars().any(is_obeyed)) {
            self.reject("", "it has control characters".to_owned(), origin);
            return false;
        }
        let plain = name_of(&command);
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let mut names = std::iter::once(plain.to_string()).chain(numbered);
        let name = names.find(|name| !self.names.contains(name)).and_then(|name| Name::new(&name).ok());
        let Some(name) = name else { return false };
        self.names.insert(name.to_string());
        self.found.candidates.push(Entry {
            name,
            command,
            stdin,
            env: BTreeMap::new(),
            cwd: String::new(),
            exit,
            files: Vec::new(),
            origin,
            given: BTreeMap::new(),
            help: Vec::new(),
        });
        true
    }

    fn reject(&mut self, line: &str, reason: String, origin: Origin) {
        if self.found.rejects.len() < MOST {
            self.found.rejects.push(Reject { line: line.to_owned(), reason, origin });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Discovered {
        let scratch = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = scratch.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        discover(&Folder::open(scratch.path()).unwrap(), None).unwrap()
    }

    const PROJECT: &str = "[project]\nname = \"shop\"\n[project.scripts]\nshop = \"shop.cli:main\"\n";

    #[test]
    fn a_labelled_tree_gives_what_its_labels_say() {
        let tree = [
            ("pyproject.toml", PROJECT),
            (
                "README.md",
                "```bash\npip install shop\nshop tables\nshop a && shop b\nshop get <name>\nshop --help\n```\n",
            ),
            (
                "docs/use.rst",
                ".. code-block:: console\n\n   $ shop tables\n   tea\n   $ shop stats < data/in.txt\n",
            ),
            ("docs/python.md", "```python\nshop nothing\n```\n"),
            ("data/in.txt", "tea\n"),
            ("src/shop/__init__.py", ""),
            ("src/shop/__main__.py", "main()\n"),
            ("src/shop/cli.py", "def main(): pass\nif __name__ == '__main__':\n    main()\n"),
            (
                "tests/test_cli.py",
                "def test():\n    main(['buy', 'tea'])\n    runner.invoke(main, ['init'], input='Ada')\n    main(['read', 'missing.py'])\n    main(['sum', '-'])\n    other(['x'])\n",
            ),
            ("examples/one.py", "if __name__ == '__main__':\n    print(1)\n"),
            ("examples/part.py", "x = 1\n"),
            ("scripts/report.py", "x = 1\nif __name__ == '__main__': print(x)\n"),
            ("vendor/examples/foreign.py", "if __name__ == '__main__': pass\n"),
        ];
        let found = found(&tree);
        let candidates: Vec<String> = found
            .candidates
            .iter()
            .map(|one| format!("{} | {} | {}", one.name, one.command.line(), one.origin))
            .collect();
        assert_eq!(
            candidates,
            [
                "shop-tables | shop tables | readme README.md:3",
                "shop-stats | shop stats | docs docs/use.rst:5",
                "shop-buy-tea | shop buy tea | test tests/test_cli.py:2",
                "shop-init | shop init | test tests/test_cli.py:3",
                "one | python examples/one.py | example examples/one.py:1",
                "report | python scripts/report.py | main-guard scripts/report.py:2",
                "shop | python -m shop | main-guard src/shop/__main__.py:1",
                "shop-2 | shop | console-script pyproject.toml:4",
            ]
        );
        assert_eq!(found.candidates[1].stdin, Some(Stdin::File("data/in.txt".to_owned())));
        assert_eq!(found.candidates[3].stdin, Some(Stdin::Text("Ada".to_owned())));
        let rejects: Vec<String> = found
            .rejects
            .iter()
            .map(|one| format!("{} | {} | {}", one.line, one.reason, one.origin))
            .collect();
        assert_eq!(
            rejects,
            [
                "shop a && shop b | more than one command: `&&` | readme README.md:4",
                "shop get <name> | `<` has to be filled in | readme README.md:5",
                "shop --help | --help prints help or a version | readme README.md:6",
                "shop read missing.py | the tree has no missing.py | test tests/test_cli.py:4",
                "shop sum - | the call does not say what `-` reads | test tests/test_cli.py:5",
            ]
        );
    }

    #[test]
    fn a_tree_without_commands_has_none_and_hostile_files_are_left_out() {
        let long = "(".repeat(100_000);
        let tree = [
            ("README.md", "# x\n"),
            ("examples/deep.py", long.as_str()),
            ("setup.cfg", "[[["),
            ("pyproject.toml", "[[["),
        ];
        let found = found(&tree);
        assert!(found.candidates.is_empty() && found.rejects.is_empty());
    }
}
