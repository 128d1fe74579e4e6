//! What the submissions for one repository are judged on: its modules and lines, and a tree without its code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::attempt::lab::Lab;
use crate::attempt::overlay::History;
use crate::backend::retry;
use crate::beneath::{Entry, Folder, Kind};
use crate::error::{Error, Fault, Result};
use crate::family::gistify::Corpus;
use crate::python_source::{decoded, imported};
use crate::record::patch::Patch;
use crate::record::task::{CODE_ENDINGS, pytest_settings};
use crate::runner::{Runner, Setting};
use crate::score::{File, Modules};
use crate::store::Cache;

/// Largest Python file that is read, in bytes.
const LARGEST_SOURCE: u64 = 8 << 20;
/// Which files of the repository a submission sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Files {
    /// All but code: configuration, templates, certificates.
    Data,
    /// Configuration of pytest only.
    None,
    /// All of them. The file still has to stand alone.
    Whole,
}

impl Files {
    /// The one spelling.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Files::Data => "data",
            Files::None => "none",
            Files::Whole => "whole",
        }
    }

    fn shows(self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        match self {
            Files::Data => !CODE_ENDINGS.contains(&ending.as_str()),
            Files::None => pytest_settings().any(|name| name == path),
            Files::Whole => true,
        }
    }
}

/// The Python code of a tree.
pub(crate) struct Code {
    pub(crate) modules: Modules,
    /// Its files.
    pub(crate) sources: BTreeSet<String>,
}

impl Code {
    /// That of a lab.
    ///
    /// # Errors
    /// IO errors.
    pub(crate) fn of(lab: &Lab) -> Result<Self> {
        Ok(Code::among(lab, &files_of(&Folder::open(&lab.built.tree)?.walk()?)))
    }

    fn among(lab: &Lab, entries: &[String]) -> Self {
        let sources: BTreeSet<String> =
            entries.iter().filter(|path| path.ends_with(".py")).cloned().collect();
        let installed = Installed { venv: &lab.built.venv, prefix: &lab.built.python_prefix };
        Code { modules: Modules::of_files(&sources, |top| installed.has(top)), sources }
    }

    /// The modules that all others are below.
    pub(crate) fn packages(&self) -> Vec<String> {
        self.modules.roots().cloned().collect()
    }

    /// The text of one of its files; none where there is no such file, or it cannot be read.
    pub(crate) fn text(&self, tree: &Folder, path: &str) -> Option<String> {
        let bytes = self.sources.contains(path).then(|| tree.read(Path::new(path), LARGEST_SOURCE))?;
        Some(decoded(&bytes.ok()?))
    }
}

/// The files of a tree, from its root; those whose names are not text aside.
fn files_of(entries: &[Entry]) -> Vec<String> {
    let files = entries.iter().filter(|entry| entry.kind == Kind::File);
    let own = files.filter(|entry| !entry.path.starts_with(".git"));
    own.filter_map(|entry| entry.path.to_str().map(str::to_owned)).collect()
}

/// What the submissions for one repository are judged on.
pub(crate) struct Ground {
    pub(crate) code: Code,
    pub(crate) corpus: Corpus,
    /// Where submissions run.
    pub(crate) setting: Setting,
    /// Names the tree that they run in.
    pub(crate) key: String,
    /// Modules of other projects that the repository imports.
    others: Vec<String>,
    /// How often what is right was wrong with them imported ahead.
    hindered: AtomicUsize,
}

/// So often modules that are imported ahead may be at fault.
const MOST_HINDERED: usize = 3;
/// Modules that are imported ahead at most.
const MOST_AHEAD: usize = 100;

impl Ground {
    /// Reads the tree of a lab, and makes the one without its code in the cache.
    ///
    /// # Errors
    /// IO errors, and a tree that cannot be read.
    pub(crate) fn new(lab: &Lab, cache: &Cache, files: Files, submission: &'static str) -> Result<Self> {
        let tree = Folder::open(&lab.built.tree)?;
        let entries = tree.walk()?;
        let names = files_of(&entries);
        let code = Code::among(lab, &names);
        let texts = code.sources.iter().map(|path| (path, code.text(&tree, path).unwrap_or_default()));
        let texts: Vec<(&String, String)> = texts.collect();
        let of_text = texts.iter().map(|(path, text)| File { path: path.as_str(), text });
        let installed = Installed { venv: &lab.built.venv, prefix: &lab.built.python_prefix };
        let others = others(&texts, &code.modules, |top| installed.is_of_another_project(top));
        let corpus = Corpus::of(&of_text.collect::<Vec<_>>(), code.modules.clone());
        let masked = lab.with(cache, &mask(&entries, &names, files, submission)?, History::Hidden)?;
        let (mut setting, key) = (masked.setting, masked.built.key);
        setting.world.watched = code.packages();
        setting.world.hidden = files != Files::Whole;
        setting.world.submission = Some(submission.to_owned());
        Ok(Ground { code, corpus, setting, key, others, hindered: AtomicUsize::new(0) })
    }

    /// Modules that may be imported ahead of a submission that is known to agree without that.
    pub(super) fn ahead(&self) -> &[String] {
        if self.hindered.load(Ordering::Relaxed) >= MOST_HINDERED { &[] } else { &self.others }
    }

    /// Something was right, and was not with modules imported ahead. From some of these on, none are.
    pub(super) fn was_hindered(&self) {
        self.hindered.fetch_add(1, Ordering::Relaxed);
    }
}

/// Why pytest cannot run where the code of the repository is hidden: it imports it itself. None where it runs.
///
/// # Errors
/// IO errors, a tree that cannot be read, and the harness's.
pub(crate) fn needed_by_pytest(lab: &Lab, cache: &Cache, submission: &str) -> Result<Option<String>> {
    let entries = Folder::open(&lab.built.tree)?.walk()?;
    let mask = mask(&entries, &files_of(&entries), Files::Data, submission)?;
    refused(lab, &lab.with(cache, &mask, History::Hidden)?.setting)
}

/// Why pytest cannot run in a setting, each time that it is tried. None where it runs.
///
/// # Errors
/// The harness's when it stays broken, and an interruption.
pub(super) fn refused(lab: &Lab, setting: &Setting) -> Result<Option<String>> {
    let start = || match Runner::start(&*lab.backend, setting) {
        Ok(_) => Ok(None),
        Err(error) if error.fault() == Fault::Repository => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    };
    retry::until(start, Option::is_none, retry::nothing)
}

/// Modules of other projects that packages of the repository import; its tests, documents and scripts do not count.
fn others(
    texts: &[(&String, String)],
    modules: &Modules,
    is_of_another_project: impl Fn(&str) -> bool,
) -> Vec<String> {
    let has_package = |folder: &str| texts.iter().any(|(path, _)| **path == format!("{folder}/__init__.py"));
    let is_package = |path: &str| path.rsplit_once('/').is_some_and(|(folder, _)| has_package(folder));
    let of_packages = texts.iter().filter(|(path, _)| {
        let is_aside = |part: &str| ["test", "doc", "example"].iter().any(|word| part.starts_with(word));
        !path.split('/').any(is_aside) && is_package(path)
    });
    let names: BTreeSet<String> = of_packages.flat_map(|(_, text)| imported(text)).collect();
    let of_others = names.into_iter().filter(|name| {
        let top = name.split('.').next().unwrap_or_default();
        !modules.owns(name) && !modules.owns(top) && is_of_another_project(top)
    });
    of_others.take(MOST_AHEAD).collect()
}

/// What a package whose code is hidden says to whoever imports it: a folder without it would be a package all the same.
const HIDDEN: &str = "raise ModuleNotFoundError(f\"No module named {__name__!r}\", name=__name__)\n";

/// What is laid over a tree for a submission: code is hidden, and the place that every submission takes is empty.
fn mask(entries: &[Entry], sources: &[String], files: Files, submission: &str) -> Result<Patch> {
    let refused = |_| Error::internal("a file of a tree has a path that is not one of a tree's own files");
    let mut patch = Patch::default();
    let of_tree = entries.iter().filter(|entry| !entry.path.starts_with(".git"));
    let named = of_tree.filter_map(|entry| Some((entry.path.to_str()?, &entry.kind)));
    let mut shown = BTreeSet::new();
    for (path, kind) in named.filter(|_| files != Files::Whole) {
        if *kind == Kind::File && files.shows(path) {
            shown.extend(path.match_indices('/').map(|(at, _)| &path[..at]));
        } else if *kind != Kind::Folder {
            patch.hide(path).map_err(refused)?;
        }
    }
    for folder in folders_of_code(sources).filter(|folder| shown.contains(folder)) {
        patch.put(&format!("{folder}/__init__.py"), HIDDEN.as_bytes().to_vec()).map_err(refused)?;
    }
    patch.put(submission, Vec::new()).map_err(refused)?;
    Ok(patch)
}

/// Folders below the root with Python files in them, or further below.
fn folders_of_code(entries: &[String]) -> impl Iterator<Item = &str> {
    let sources = entries.iter().filter(|path| path.ends_with(".py"));
    let above = |path: &'_ String| path.match_indices('/').map(|(at, _)| at).collect::<Vec<_>>();
    let folders = sources.flat_map(move |path| above(path).into_iter().map(move |at| &path[..at]));
    folders.collect::<BTreeSet<&str>>().into_iter()
}

/// Modules that are there without the repository.
struct Installed<'a> {
    venv: &'a Path,
    prefix: &'a Path,
}

impl Installed<'_> {
    /// Whether the environment has a module of this name, of its own.
    fn is_of_another_project(&self, top: &str) -> bool {
        Self::pythons(self.venv).into_iter().any(|folder| has(&folder.join("site-packages"), top))
    }

    fn pythons(root: &Path) -> Vec<PathBuf> {
        let entries = fs_err::read_dir(root.join("lib")).into_iter().flatten().flatten();
        let pythons = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
        pythons.map(|entry| entry.path()).collect()
    }

    /// Whether the environment or the standard library has a module of this name.
    fn has(&self, top: &str) -> bool {
        let standard = Self::pythons(self.prefix).into_iter();
        let mut standard = standard.flat_map(|folder| [folder.join("lib-dynload"), folder]);
        self.is_of_another_project(top) || standard.any(|place| has(&place, top))
    }
}

fn has(place: &Path, top: &str) -> bool {
    place.join(top).is_dir() || place.join(format!("{top}.py")).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        let sources = paths.iter().map(|path| (*path).to_owned()).collect();
        Modules::of_files(&sources, |top| top == "setup").names().cloned().collect()
    }

    #[test]
    fn a_file_is_known_by_every_name_that_it_can_be_imported_by() {
        let found =
            names(&["src/tiny/__init__.py", "src/tiny/core.py", "tests/test_a.py", "setup.py", "a-b.py"]);
        for name in ["tiny", "tiny.core", "tests", "tests.test_a", "test_a"] {
            assert!(found.iter().any(|known| known == name), "{name} of {found:?}");
        }
        assert!(!found.iter().any(|name| name == "setup" || name.contains('-')), "{found:?}");
    }

    #[test]
    fn a_package_of_tests_is_imported_from_above_it() {
        let found = names(&["tests/__init__.py", "tests/unit/__init__.py", "tests/unit/test_a.py"]);
        assert_eq!(found, ["tests", "tests.unit", "tests.unit.test_a"]);
    }

    #[test]
    fn modules_of_other_projects_are_those_that_packages_import() {
        let texts = [
            ("src/tiny/__init__.py", "import os, werkzeug.routing\nfrom tiny.core import x\n"),
            ("src/tiny/core.py", "from jinja2 import Environment\nimport missing\n"),
            ("tests/__init__.py", "import trustme\n"),
            ("setup.py", "import setuptools\n"),
        ];
        let paths: Vec<String> = texts.iter().map(|(path, _)| (*path).to_owned()).collect();
        let texts: Vec<(&String, String)> =
            paths.iter().zip(texts).map(|(path, (_, text))| (path, text.to_owned())).collect();
        let modules: Modules = ["tiny", "tiny.core"].into_iter().collect();
        let installed = ["werkzeug", "jinja2", "trustme", "setuptools"];
        assert_eq!(others(&texts, &modules, |top| installed.contains(&top)), ["jinja2", "werkzeug.routing"]);
    }

    #[test]
    fn code_is_hidden_and_data_is_not() {
        for path in ["a.py", "x/conftest.py", "m.so", "n.IPYNB", "w.whl", "x.tar.gz", "src/y.pyx"] {
            assert!(!Files::Data.shows(path), "{path}");
        }
        for path in ["pyproject.toml", "templates/a.html", "cert.pem", "Makefile"] {
            assert!(Files::Data.shows(path), "{path}");
        }
        for path in [".pytest.toml", "pytest.toml", ".pytest.ini"] {
            assert!(Files::None.shows(path), "{path}");
        }
        assert!(
            Files::None.shows("tox.ini") && !Files::None.shows("sub/tox.ini") && !Files::None.shows("a.txt")
        );
    }
}
