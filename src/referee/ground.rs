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
use crate::source;
use crate::store::{Cache, Found, find_sealed, set_aside, write_sealed};

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
            Files::None => CONFIGURATION.contains(&path),
            Files::Whole => true,
        }
    }
}

/// Files in which pytest looks for its configuration.
pub(super) const CONFIGURATION: [&str; 6] =
    ["pytest.ini", ".pytest.ini", "pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg"];

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
        Ok(Code::among(lab, &files_of(&Folder::open(&lab.built.tree)?)?))
    }

    fn among(lab: &Lab, entries: &[String]) -> Self {
        let sources: BTreeSet<String> =
            entries.iter().filter(|path| path.ends_with(".py")).cloned().collect();
        let installed = Installed { venv: &lab.built.venv, prefix: &lab.built.python_prefix };
        Code { modules: module_names(&sources, |top| installed.has(top)).into_iter().collect(), sources }
    }

    /// The modules that all others are below.
    pub(crate) fn packages(&self) -> Vec<String> {
        self.modules.roots().cloned().collect()
    }

    /// The text of one of its files; none where there is no such file, or it cannot be read.
    pub(crate) fn text(&self, tree: &Folder, path: &str) -> Option<String> {
        let bytes = self.sources.contains(path).then(|| tree.read(Path::new(path), LARGEST_SOURCE))?;
        Some(String::from_utf8_lossy(&bytes.ok()?).into_owned())
    }
}

/// The files of a tree, from its root; those whose names are no text aside.
fn files_of(tree: &Folder) -> Result<Vec<String>> {
    let files = tree.walk()?.into_iter().filter(|entry| entry.kind == Kind::File);
    let own = files.filter(|entry| !entry.path.starts_with(".git"));
    Ok(own.filter_map(|entry| entry.path.to_str().map(str::to_owned)).collect())
}

/// What the submissions for one repository are judged on.
pub(crate) struct Ground {
    pub(crate) code: Code,
    pub(crate) corpus: Corpus,
    /// Where submissions run.
    pub(crate) setting: Setting,
    /// Names the tree that they run in.
    pub(crate) key: String,
}

impl Ground {
    /// Reads the tree of a lab, and makes the one without its code in the cache.
    ///
    /// # Errors
    /// IO errors, and a tree that cannot be read.
    pub(crate) fn new(lab: &Lab, cache: &Cache, files: Files, submission: &str) -> Result<Self> {
        let tree = Folder::open(&lab.built.tree)?;
        let entries = files_of(&tree)?;
        let code = Code::among(lab, &entries);
        let texts = code.sources.iter().map(|path| (path, code.text(&tree, path).unwrap_or_default()));
        let texts: Vec<(&String, String)> = texts.collect();
        let of_text = texts.iter().map(|(path, text)| File { path: path.as_str(), text });
        let corpus = Corpus::of(&of_text.collect::<Vec<_>>(), code.modules.clone());
        let key = hash_parts(&["masked-3", &lab.built.key, files.as_str(), submission]);
        let masked = Masked { tree: &tree, entries: &entries, files, submission };
        let mut setting = Setting { tree: masked.made(cache, &key)?, ..lab.setting.clone() };
        setting.world.watched = code.packages();
        setting.world.hidden = files != Files::Whole;
        Ok(Ground { code, corpus, setting, key })
    }
}

/// What a package whose code is hidden says to whoever imports it: a folder without it would be a package all the same.
const HIDDEN: &str = "raise ModuleNotFoundError(f\"No module named {__name__!r}\", name=__name__)\n";

/// A tree as a submission sees it.
struct Masked<'a> {
    tree: &'a Folder,
    /// Its files.
    entries: &'a [String],
    files: Files,
    submission: &'a str,
}

impl Masked<'_> {
    /// Makes it in the cache, once.
    fn made(&self, cache: &Cache, key: &str) -> Result<PathBuf> {
        let folder = cache.dir("masked")?.join(&key[..32]);
        let (done, made) = (folder.join("done"), folder.join("tree"));
        let is_whole = |hash: String| source::content_hash(&made).is_ok_and(|found| found == hash);
        match find_sealed::<String>(&done)? {
            Found::Whole(hash) if is_whole(hash.clone()) => {
                crate::store::mark_used(&folder);
                return Ok(made);
            }
            Found::Missing if folder.exists() => fs_err::remove_dir_all(&folder)?,
            Found::Missing => {}
            Found::Whole(_) | Found::Damaged => drop(set_aside(&folder)?),
        }
        fs_err::create_dir_all(&made)?;
        let write = |path: &str, bytes: &[u8]| -> Result<()> {
            let target = made.join(path);
            if let Some(parent) = target.parent() {
                fs_err::create_dir_all(parent)?;
            }
            fs_err::write(&target, bytes).map_err(Into::into)
        };
        for path in self.entries.iter().filter(|path| self.files.shows(path)) {
            write(path, &self.tree.read(Path::new(path), LARGEST_DATA)?)?;
        }
        if self.files != Files::Whole {
            for folder in folders_of_code(self.entries).filter(|folder| made.join(folder).is_dir()) {
                write(&format!("{folder}/__init__.py"), HIDDEN.as_bytes())?;
            }
        }
        // The place that every submission takes.
        write(self.submission, b"")?;
        write_sealed(&done, &source::content_hash(&made)?)?;
        Ok(made)
    }
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

/// The modules of a tree by its Python files alone, where no environment is at hand.
pub(crate) fn modules_of(sources: &BTreeSet<String>) -> Modules {
    module_names(sources, |_| false).into_iter().collect()
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

    #[test]
    fn a_tree_without_code_in_which_something_changed_is_set_aside_and_made_again() {
        let (folder, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let cache = Cache::open(folder.path()).unwrap();
        fs_err::write(tree.path().join("data.txt"), "data").unwrap();
        let opened = Folder::open(tree.path()).unwrap();
        let entries = files_of(&opened).unwrap();
        let masked =
            Masked { tree: &opened, entries: &entries, files: Files::Data, submission: "concise.py" };
        let key = "k".repeat(64);
        let made = masked.made(&cache, &key).unwrap();
        assert_eq!(masked.made(&cache, &key).unwrap(), made);
        let changes: [&dyn Fn(); 4] = [
            &|| fs_err::write(made.join("data.txt"), "other").unwrap(),
            &|| fs_err::write(made.join("conftest.py"), "").unwrap(),
            &|| fs_err::remove_file(made.join("data.txt")).unwrap(),
            &|| fs_err::write(made.parent().unwrap().join("done"), "").unwrap(),
        ];
        for (at, change) in changes.into_iter().enumerate() {
            change();
            assert_eq!(masked.made(&cache, &key).unwrap(), made);
            assert_eq!(fs_err::read_to_string(made.join("data.txt")).unwrap(), "data");
            assert!(!made.join("conftest.py").exists());
            let aside = fs_err::read_dir(folder.path().join("masked")).unwrap().count();
            assert_eq!(aside, at + 2, "what was changed is kept aside");
        }
    }

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
