//! What the submissions for one repository are judged on: its modules and lines, and a tree without its code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::attempt::lab::Lab;
use crate::beneath::{Folder, Kind};
use crate::error::Result;
use crate::record::id::hash_parts;
use crate::record::task::CODE_ENDINGS;
use crate::runner::Setting;
use crate::score::{Corpus, File, Modules};
use crate::store::{Cache, write_atomic};

/// Largest Python file that is read, in bytes.
const LARGEST_SOURCE: u64 = 8 << 20;
/// Largest file that is taken over into the tree of a submission, in bytes.
const LARGEST_DATA: u64 = 1 << 30;
/// Which files of the repository a submission sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Files {
    /// All but code: configuration, templates, certificates.
    Data,
    /// Configuration of pytest only.
    None,
}

impl Files {
    /// The one spelling.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Files::Data => "data",
            Files::None => "none",
        }
    }

    fn shows(self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        match self {
            Files::Data => !CODE_ENDINGS.contains(&ending.as_str()),
            Files::None => CONFIGURATION.contains(&path),
        }
    }
}

/// Files in which pytest looks for its configuration.
const CONFIGURATION: [&str; 6] =
    ["pytest.ini", ".pytest.ini", "pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg"];

/// What the submissions for one repository are judged on.
pub(crate) struct Ground {
    pub(crate) modules: Modules,
    pub(crate) corpus: Corpus,
    /// Python files of the tree.
    pub(crate) sources: BTreeSet<String>,
    /// Where submissions run.
    pub(crate) setting: Setting,
}

impl Ground {
    /// Reads the tree of a lab, and makes the one without its code in the cache.
    ///
    /// # Errors
    /// IO errors, and a tree that cannot be read.
    pub(crate) fn new(lab: &Lab, cache: &Cache, files: Files, submission: &str) -> Result<Self> {
        let tree = Folder::open(&lab.built.tree)?;
        let entries: Vec<String> = tree
            .walk()?
            .into_iter()
            .filter(|entry| entry.kind == Kind::File && !entry.path.starts_with(".git"))
            .filter_map(|entry| entry.path.to_str().map(str::to_owned))
            .collect();
        let sources: BTreeSet<String> =
            entries.iter().filter(|path| path.ends_with(".py")).cloned().collect();
        let installed = Installed { venv: &lab.built.venv, prefix: &lab.built.python_prefix };
        let names = module_names(&sources, |top| installed.has(top));
        let modules: Modules = names.iter().map(String::as_str).collect();
        let watched: BTreeSet<&str> = names.iter().filter_map(|name| name.split('.').next()).collect();
        let mut texts = Vec::new();
        for path in &sources {
            let bytes = tree.read(Path::new(path), LARGEST_SOURCE).unwrap_or_default();
            texts.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
        let of_text = texts.iter().map(|(path, text)| File { path: path.as_str(), text });
        let corpus = Corpus::of(&of_text.collect::<Vec<_>>(), modules.clone());
        let shown: Vec<&String> = entries.iter().filter(|path| files.shows(path)).collect();
        let masked = masked_tree(&tree, &shown, cache, (&lab.built.key, files), submission)?;
        let mut setting = Setting { tree: masked, ..lab.setting.clone() };
        setting.world.watched = watched.into_iter().map(str::to_owned).collect();
        Ok(Ground { modules, corpus, sources, setting })
    }
}

/// The tree without code, made once in the cache.
fn masked_tree(
    tree: &Folder,
    shown: &[&String],
    cache: &Cache,
    (key, files): (&str, Files),
    submission: &str,
) -> Result<PathBuf> {
    let name = hash_parts(&["masked-1", key, files.as_str()]);
    let folder = cache.dir("masked")?.join(&name[..32]);
    let done = folder.join("done");
    let made = folder.join("tree");
    if done.exists() {
        return Ok(made);
    }
    if folder.exists() {
        fs_err::remove_dir_all(&folder)?;
    }
    fs_err::create_dir_all(&made)?;
    for path in shown {
        let target = made.join(path);
        if let Some(parent) = target.parent() {
            fs_err::create_dir_all(parent)?;
        }
        fs_err::write(&target, tree.read(Path::new(path), LARGEST_DATA)?)?;
    }
    // The place that every submission takes.
    fs_err::write(made.join(submission), "")?;
    write_atomic(&done, b"")?;
    Ok(made)
}

/// Modules that are there without the repository.
struct Installed<'a> {
    venv: &'a Path,
    prefix: &'a Path,
}

impl Installed<'_> {
    /// Whether the environment or the standard library has a module of this name.
    fn has(&self, top: &str) -> bool {
        let below = |root: &Path| -> Vec<PathBuf> {
            let entries = fs_err::read_dir(root.join("lib")).into_iter().flatten().flatten();
            let pythons = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
            pythons.map(|entry| entry.path()).collect()
        };
        let site = below(self.venv).into_iter().map(|folder| folder.join("site-packages"));
        let standard = below(self.prefix).into_iter().flat_map(|folder| [folder.join("lib-dynload"), folder]);
        let mut places = site.chain(standard);
        places.any(|place| place.join(top).is_dir() || place.join(format!("{top}.py")).is_file())
    }
}

/// The dotted names by which files can be imported: from the root, from `src`, and from the folder that pytest puts on the
/// path for a test file, the first one above it that is no package.
fn module_names(sources: &BTreeSet<String>, is_installed: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut known: std::collections::BTreeMap<String, bool> = std::collections::BTreeMap::new();
    let mut add = |path: &str| {
        let dotted = path.trim_end_matches(".py").replace('/', ".");
        let dotted = dotted.strip_suffix(".__init__").unwrap_or(&dotted).to_owned();
        let is_name = |part: &str| {
            !part.is_empty()
                && !part.starts_with(|first: char| first.is_ascii_digit())
                && part.chars().all(|one| one == '_' || one.is_alphanumeric())
        };
        if dotted == "__init__" || !dotted.split('.').all(is_name) {
            return;
        }
        let top = dotted.split('.').next().unwrap_or_default().to_owned();
        let elsewhere = *known.entry(top.clone()).or_insert_with(|| is_installed(&top));
        if !elsewhere {
            let ends = dotted.match_indices('.').map(|(at, _)| at).chain([dotted.len()]);
            names.extend(ends.map(|end| dotted[..end].to_owned()));
        }
    };
    for path in sources {
        add(path);
        if let Some(rest) = path.strip_prefix("src/") {
            add(rest);
        }
        let mut base = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        while !base.is_empty() && sources.contains(&format!("{base}/__init__.py")) {
            base = base.rsplit_once('/').map_or("", |(above, _)| above);
        }
        if let Some(rest) = path.strip_prefix(base).and_then(|rest| rest.strip_prefix('/')) {
            add(rest);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        let sources = paths.iter().map(|path| (*path).to_owned()).collect();
        module_names(&sources, |top| top == "setup").into_iter().collect()
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
    fn code_is_hidden_and_data_is_not() {
        for path in ["a.py", "x/conftest.py", "m.so", "n.IPYNB", "w.whl", "x.tar.gz", "src/y.pyx"] {
            assert!(!Files::Data.shows(path), "{path}");
        }
        for path in ["pyproject.toml", "templates/a.html", "cert.pem", "Makefile"] {
            assert!(Files::Data.shows(path), "{path}");
        }
        assert!(
            Files::None.shows("tox.ini") && !Files::None.shows("sub/tox.ini") && !Files::None.shows("a.txt")
        );
    }
}
