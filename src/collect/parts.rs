//! Which files of a whole collection are collected again, apart from the rest.
//!
//! The entry command names one file, and pytest configures itself from the folders above that file. Collecting the whole
//! tree at once configures it for the root alone, and imports the files of all projects in one process, where folders of
//! tests that bear the same name get into each other's way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use crate::beneath::{Folder, Kind};
use crate::error::Result;
use crate::runner::protocol::{CollectError, CollectErrorKind, Discovered};

/// Larger files configure nothing that a person wrote.
const LARGEST_FILE: u64 = 1 << 20;
/// More parts than these are left as the whole collection found them.
const MOST: usize = 200;
/// Files that declare a project.
const PROJECT: [&str; 3] = ["pyproject.toml", "setup.cfg", "setup.py"];
/// Files that configure pytest by being there.
const ALWAYS: [&str; 4] = ["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"];
/// Files that configure pytest where they have one of the sections.
const SECTIONS: [(&str, &[&str]); 3] = [
    ("pyproject.toml", &["[tool.pytest.ini_options]", "[tool.pytest]"]),
    ("tox.ini", &["[pytest]"]),
    ("setup.cfg", &["[tool:pytest]"]),
];
/// The exception of a module whose name another file has taken before.
const TAKEN: &str = "ImportPathMismatchError";
/// What pytest says of `pytest_plugins` in a conftest that is below the folder where it was started.
const NOT_AT_THE_TOP: &str = "Defining 'pytest_plugins' in a non-top-level conftest";

/// The files of each part, in the order of their folders.
pub(super) fn apart(tree: &Folder, found: &Discovered) -> Vec<Vec<String>> {
    let mut parts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut folders = Folders { tree, configure: BTreeMap::new() };
    for item in &found.items {
        if let Some(folder) = folders.configuring(&item.file) {
            parts.entry(folder).or_default().insert(item.file.clone());
        }
    }
    for error in found.errors.iter().filter(|error| error.kind == CollectErrorKind::Error) {
        if found.at_fault.iter().any(|one| one.place == error.file) || !error.file.ends_with(".py") {
            continue;
        }
        let folder = folders.configuring(&error.file).or_else(|| project(tree, &error.file));
        let folder = folder.or_else(|| is_of_others(tree, error).then(|| split(&error.file).0.to_owned()));
        if let Some(folder) = folder {
            parts.entry(folder).or_default().insert(error.file.clone());
        }
    }
    parts.into_values().take(MOST).map(|files| files.into_iter().collect()).collect()
}

/// Whether what went wrong may come of files that were collected before: another module, package or helper of a name that
/// this file means its own by, or a conftest that is not at the top when all is collected.
fn is_of_others(tree: &Folder, error: &CollectError) -> bool {
    let is_taken = error.exception.as_deref().is_some_and(|name| name.ends_with(TAKEN));
    if is_taken || error.text.contains(NOT_AT_THE_TOP) {
        return true;
    }
    let from =
        || error.text.split_once("cannot import name '")?.1.split_once("' from '")?.1.split('\'').next();
    let Some(module) = error.missing_module.as_deref().or_else(from) else { return false };
    let top = module.split('.').next().unwrap_or(module);
    let mut folder = split(&error.file).0;
    while !folder.is_empty() {
        let (above, name) = split(folder);
        let beside = Path::new(folder).join(format!("{top}.py"));
        if name == top
            || tree.has_file(&beside)
            || tree.has_file(&Path::new(folder).join(top).join("__init__.py"))
        {
            return true;
        }
        folder = above;
    }
    false
}

/// Files in which projects say how their tests are run.
const SCRIPTS: [&str; 8] = [
    "pyproject.toml",
    "hatch.toml",
    "tox.ini",
    "tox.toml",
    "setup.cfg",
    "Makefile",
    "noxfile.py",
    ".travis.yml",
];

/// Files of tests by the names that unittest and Django look for: those of a pattern that the tree gives `unittest discover`,
/// else `test*.py`. Where they are called `tests.py`, say, pytest looks for none of them by itself, but takes each that it is
/// given.
///
/// # Errors
/// A tree that cannot be read.
pub(super) fn named_for_unittest(tree: &Folder) -> Result<Vec<String>> {
    let files = tree.walk()?.into_iter().filter(|entry| entry.kind == Kind::File);
    let paths: Vec<String> = files.filter_map(|entry| entry.path.to_str().map(str::to_owned)).collect();
    let texts = SCRIPTS.iter().filter_map(|name| tree.read_through_links(Path::new(name), LARGEST_FILE).ok());
    let texts: Vec<String> = texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect();
    let patterns: BTreeSet<String> = texts.iter().flat_map(|text| patterns(text)).collect();
    let of = |pattern: &str| -> Vec<String> {
        let Some(pattern) = glob(pattern) else { return Vec::new() };
        paths.iter().filter(|path| is_named(path, &pattern)).take(MOST).cloned().collect()
    };
    let declared: BTreeSet<String> = patterns.iter().flat_map(|pattern| of(pattern)).collect();
    Ok(if declared.is_empty() { of("test*.py") } else { declared.into_iter().take(MOST).collect() })
}

/// What commands in a text give `unittest discover` as the pattern of its files.
fn patterns(text: &str) -> Vec<String> {
    #[expect(clippy::expect_used, reason = "a literal, which a test compiles")]
    static GIVEN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"\bunittest\b[^\n]*?\s(?:-p|--pattern)[ =]*["'\\]*([\w*?.\-]+)"#).expect("a pattern")
    });
    GIVEN.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

/// A pattern of `*` and `?`.
fn glob(pattern: &str) -> Option<Regex> {
    let pattern = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
    Regex::new(&format!("^{pattern}$")).ok()
}

/// Whether a path is a Python file of such a name, and not in a folder that holds something else.
fn is_named(path: &str, pattern: &Regex) -> bool {
    let (folder, name) = split(path);
    let is_aside = |part: &str| part.starts_with('.') || matches!(part, "node_modules" | "site-packages");
    name.ends_with(".py") && pattern.is_match(name) && !folder.split('/').any(is_aside)
}

/// Puts what collecting these files by themselves showed in the place of what was found before.
pub(super) fn put(found: &mut Discovered, files: &[String], part: Discovered) {
    let again: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    found.items.retain(|item| !again.contains(item.file.as_str()));
    found.errors.retain(|error| !again.contains(error.file.as_str()));
    found.items.extend(part.items.into_iter().filter(|item| again.contains(item.file.as_str())));
    found.errors.extend(part.errors);
    found
        .at_fault
        .extend(part.at_fault.into_iter().filter(|one| !found.at_fault.contains(one)).collect::<Vec<_>>());
    found.deselected += part.deselected;
    for plugin in part.switched_off {
        if !found.switched_off.iter().any(|known| known.plugin == plugin.plugin) {
            found.switched_off.push(plugin);
        }
    }
}

/// That pytest cannot collect these files by themselves.
pub(super) fn refused(files: &[String], text: &str) -> Discovered {
    let error = |file: &String| CollectError {
        node_id: file.clone(),
        file: file.clone(),
        kind: CollectErrorKind::Error,
        exception: None,
        text: text.to_owned(),
        missing_module: None,
    };
    Discovered {
        items: Vec::new(),
        errors: files.iter().map(error).collect(),
        deselected: 0,
        at_fault: Vec::new(),
        switched_off: Vec::new(),
    }
}

/// What is known of the folders of a tree.
struct Folders<'a> {
    tree: &'a Folder,
    /// Whether a folder configures pytest.
    configure: BTreeMap<String, bool>,
}

impl Folders<'_> {
    /// The folder below the root that configures pytest for a file.
    fn configuring(&mut self, file: &str) -> Option<String> {
        let mut folder = split(file).0;
        while !folder.is_empty() {
            if !self.configure.contains_key(folder) {
                let configures = configures(self.tree, folder);
                self.configure.insert(folder.to_owned(), configures);
            }
            if self.configure[folder] {
                return Some(folder.to_owned());
            }
            folder = split(folder).0;
        }
        None
    }
}

fn configures(tree: &Folder, folder: &str) -> bool {
    let path = |name: &str| Path::new(folder).join(name);
    ALWAYS.iter().any(|name| tree.has_file(&path(name)))
        || SECTIONS.iter().any(|(name, sections)| {
            let text = tree.read_through_links(&path(name), LARGEST_FILE).unwrap_or_default();
            String::from_utf8_lossy(&text).lines().any(|line| sections.contains(&line.trim()))
        })
}

/// The nearest folder below the root that declares a project.
fn project(tree: &Folder, file: &str) -> Option<String> {
    let mut folder = split(file).0;
    while !folder.is_empty() {
        if PROJECT.iter().any(|name| tree.has_file(&Path::new(folder).join(name))) {
            return Some(folder.to_owned());
        }
        folder = split(folder).0;
    }
    None
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::protocol::{Item, ItemKind};

    #[test]
    fn what_unittest_looks_for_is_found_but_not_in_folders_that_are_aside() {
        let scratch = tempfile::tempdir().unwrap();
        for path in [
            "tests.py",
            "app/test_a.py",
            "app/tests.txt",
            "app/atest.py",
            ".git/test_x.py",
            "node_modules/a/tests.py",
        ] {
            let path = scratch.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "").unwrap();
        }
        let tree = Folder::open(scratch.path()).unwrap();
        assert_eq!(named_for_unittest(&tree).unwrap(), ["app/test_a.py", "tests.py"]);
    }

    fn item(file: &str) -> Item {
        Item {
            defined_in: None,
            index: 0,
            node_id: format!("{file}::test_a"),
            file: file.to_owned(),
            classes: Vec::new(),
            function: "test_a".to_owned(),
            parameters: None,
            kind: ItemKind::Function,
            markers: Vec::new(),
            fixtures: Vec::new(),
            line: None,
        }
    }

    fn found(items: &[&str], errors: &[(&str, &str)]) -> Discovered {
        let errors = errors.iter().map(|(file, exception)| CollectError {
            exception: Some((*exception).to_owned()),
            ..refused(&[(*file).to_owned()], "boom").errors.remove(0)
        });
        Discovered {
            items: items.iter().map(|file| item(file)).collect(),
            errors: errors.collect(),
            ..refused(&[], "")
        }
    }

    fn parts(files: &[(&str, &str)], found: &Discovered) -> Vec<Vec<String>> {
        let tree = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = tree.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        apart(&Folder::open(tree.path()).unwrap(), found)
    }

    #[test]
    fn files_below_a_configuration_of_their_own_are_a_part() {
        let files = [
            ("pyproject.toml", "[tool.pytest.ini_options]\n"),
            ("a/pyproject.toml", "[project]\nname = 'a'\n"),
            ("b/pyproject.toml", "[tool.pytest.ini_options]\n"),
            ("b/deep/pytest.ini", ""),
            ("c/setup.cfg", "[tool:pytest]\n"),
            ("d/tox.ini", "[tox]\n"),
        ];
        let all =
            ["test_0.py", "a/test_a.py", "b/t/test_b.py", "b/deep/test_d.py", "c/test_c.py", "d/test_d.py"];
        assert_eq!(
            parts(&files, &found(&all, &[])),
            [["b/t/test_b.py"], ["b/deep/test_d.py"], ["c/test_c.py"]]
        );
    }

    #[test]
    fn errors_below_a_project_and_names_that_are_taken_are_looked_at_again() {
        let files = [("a/pyproject.toml", ""), ("setup.py", "")];
        let errors = [
            ("a/tests/test_a.py", "builtins.ImportError"),
            ("tests/x/test_a.py", "_pytest.pathlib.ImportPathMismatchError"),
            ("tests/y/test_a.py", "builtins.ImportError"),
        ];
        assert_eq!(parts(&files, &found(&[], &errors)), [["a/tests/test_a.py"], ["tests/x/test_a.py"]]);
    }

    #[test]
    fn files_whose_own_names_another_has_taken_are_looked_at_again() {
        let files = [
            ("a/tests/__init__.py", ""),
            ("b/tests/__init__.py", ""),
            ("c/helpers.py", ""),
            ("c/deep/test_c.py", ""),
            ("d/test_d.py", ""),
        ];
        let clash = |file: &str, missing: Option<&str>, text: &str| CollectError {
            missing_module: missing.map(str::to_owned),
            text: text.to_owned(),
            ..refused(&[file.to_owned()], "").errors.remove(0)
        };
        let mut all = found(&[], &[]);
        all.errors = vec![
            clash("b/tests/test_b.py", Some("tests.test_b"), ""),
            clash(
                "c/deep/test_c.py",
                None,
                "E ImportError: cannot import name 'x' from 'helpers' (/a/helpers.py)",
            ),
            clash("d/test_d.py", Some("numpy"), ""),
            clash("d/test_e.py", None, "cannot import name 'x' from 'numpy' (/n/__init__.py)"),
            clash("e/test_f.py", None, &format!("{NOT_AT_THE_TOP} is no longer supported")),
        ];
        assert_eq!(parts(&files, &all), [["b/tests/test_b.py"], ["c/deep/test_c.py"], ["e/test_f.py"]]);
    }

    #[test]
    fn what_a_part_shows_takes_the_place_of_what_was_found() {
        let mut whole = found(&["a/test_a.py", "test_0.py"], &[("a/test_b.py", "E"), ("test_1.py", "E")]);
        let files = ["a/test_a.py".to_owned(), "a/test_b.py".to_owned()];
        put(&mut whole, &files, found(&["a/test_b.py"], &[("a/test_a.py", "F")]));
        let items: Vec<&str> = whole.items.iter().map(|item| item.file.as_str()).collect();
        let errors: Vec<&str> = whole.errors.iter().map(|error| error.file.as_str()).collect();
        assert_eq!((items, errors), (vec!["test_0.py", "a/test_b.py"], vec!["test_1.py", "a/test_a.py"]));
    }

    #[test]
    fn files_of_unittest_bear_the_names_that_its_command_gives() {
        let hatch = "test = 'python -m unittest discover -p \"*tests.py\" docs -t .'";
        let escaped = r#"test = "unittest discover -s lib --pattern=\"check_?.py\"""#;
        assert_eq!(patterns(hatch), ["*tests.py"]);
        assert_eq!(patterns(escaped), ["check_?.py"]);
        assert_eq!(patterns("pytest -p no:cacheprovider\nunittest\n -p x"), [] as [&str; 0]);
        let scratch = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = scratch.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        for path in ["docs/base_tests.py", "docs/tests.txt", ".tox/a_tests.py", "tests.py", "test_x.py"] {
            put(path, "");
        }
        let found = || named_for_unittest(&Folder::open(scratch.path()).unwrap()).unwrap();
        assert_eq!(found(), ["test_x.py", "tests.py"]);
        put("pyproject.toml", hatch);
        assert_eq!(found(), ["docs/base_tests.py", "tests.py"]);
        put("pyproject.toml", escaped);
        assert_eq!(found(), ["test_x.py", "tests.py"], "a pattern that no file has");
    }
}
