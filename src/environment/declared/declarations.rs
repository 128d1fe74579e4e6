//! The files of a tree that declare dependencies. [`Files::read`] is the only IO; everything after it works on texts, so
//! each kind of declaration is tested without a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::requirements_files::{includes, pattern};
use super::survey::{self, DECLARATIONS, Survey};
use crate::beneath::Folder;
use crate::error::{Fault, Result};

/// Larger files declare nothing that a person wrote.
const LARGEST_FILE: u64 = 1 << 20;

/// Projects below the root that are looked at, and bytes of all declarations together.
const MOST_PROJECTS: usize = 2_000;
const MOST_BYTES: usize = 64 << 20;

/// Where environments of conda are.
const ENVIRONMENTS: [&str; 14] = [
    "",
    ".ci",
    ".github",
    "ci",
    "conda",
    "continuous_integration",
    "continuous_integration/environments",
    "dev",
    "devtools",
    "devtools/conda-envs",
    "envs",
    "environments",
    "requirements",
    "tests",
];
/// Requirements files that tox and nox name.
const MOST_NAMED: usize = 50;
/// The texts that may declare something, by path relative to the tree.
#[derive(Debug, Clone, Default)]
pub struct Files {
    texts: BTreeMap<String, String>,
    /// What can be imported from the tree, and the projects below its root.
    pub survey: Survey,
}

impl Files {
    /// Reads the declaring files of a tree, the requirement files that they include, and the declarations of projects
    /// below its root.
    ///
    /// # Errors
    /// IO errors; files that are too large, no regular files or no UTF-8 are left out, and so is what a link leads to
    /// outside of the tree.
    pub fn read(tree: &Path) -> Result<Self> {
        let mut files = Files { survey: survey::survey(tree)?, ..Files::default() };
        for name in [
            "pyproject.toml",
            "setup.cfg",
            "setup.py",
            "tox.ini",
            "tox.toml",
            "Pipfile",
            "pytest.ini",
            "hatch.toml",
            "noxfile.py",
            "manage.py",
            "runtests.py",
            "PKG-INFO",
        ] {
            files.load(tree, name)?;
        }
        for folder in ["", "requirements", "tests", "test", "ci"] {
            for name in entries(&tree.join(folder))? {
                let stem = name.rsplit_once('.');
                let is_list = stem.is_some_and(|(_, extension)| matches!(extension, "txt" | "in"));
                if is_list
                    && (folder == "requirements"
                        || name.contains("requirement")
                        || name.contains("constraint"))
                {
                    let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                    files.load(tree, &path)?;
                }
            }
        }
        for folder in ENVIRONMENTS {
            for name in entries(&tree.join(folder))?.iter().filter(|name| is_environment(name)) {
                let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                files.load(tree, &path)?;
            }
        }
        for path in files.named() {
            files.load(tree, &path)?;
        }
        let queue = files.texts.keys().cloned().collect();
        files.load_includes(tree, queue)?;
        files.load_projects(tree)?;
        Ok(files)
    }

    /// Requirements files that what runs tests names, wherever they are.
    fn named(&self) -> Vec<String> {
        static INCLUDED: LazyLock<Regex> = LazyLock::new(|| {
            pattern(r"(?:-r|-c|--requirement|--constraint)[=\s]*(?:\{(?:toxinidir|tox_root)\}/)?([\w./-]+)")
        });
        static LITERAL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"["']([\w./-]+\.(?:txt|in))["']"#));
        let tox = ["tox.ini", "setup.cfg", "tox.toml", "pyproject.toml"].map(|name| (name, &INCLUDED));
        let places = tox.into_iter().chain([("noxfile.py", &LITERAL)]);
        let texts = places.filter_map(|(name, named)| Some((self.get(name)?, named)));
        let paths = texts.flat_map(|(text, named)| named.captures_iter(text));
        let found: BTreeSet<String> = paths.map(|path| path[1].trim_start_matches("./").to_owned()).collect();
        found.into_iter().filter(|path| !self.texts.contains_key(path)).take(MOST_NAMED).collect()
    }

    /// The declarations of projects below the root.
    fn load_projects(&mut self, tree: &Path) -> Result<()> {
        self.survey.is_cut |= self.survey.projects.len() > MOST_PROJECTS;
        let folders: Vec<String> = self.survey.projects.iter().take(MOST_PROJECTS).cloned().collect();
        for folder in folders {
            if self.texts.values().map(String::len).sum::<usize>() > MOST_BYTES {
                self.survey.is_cut = true;
                break;
            }
            for name in DECLARATIONS {
                self.load(tree, &format!("{folder}/{name}"))?;
            }
        }
        Ok(())
    }

    /// Files from texts, for tests and for callers that have them.
    pub fn from_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let texts: BTreeMap<String, String> =
            texts.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
        let survey = survey::of_paths(texts.keys().map(String::as_str));
        Files { texts, survey }
    }

    /// The files of a project below the root, as if its folder were the root. What can be imported is not among it.
    #[must_use]
    pub fn below(&self, folder: &str) -> Self {
        let inside = self.texts.iter().filter_map(|(path, text)| {
            let path = path.strip_prefix(folder)?.strip_prefix('/')?;
            Some((path.to_owned(), text.clone()))
        });
        Files { texts: inside.collect(), survey: Survey::default() }
    }

    /// Loads one more file of the tree, if it is one; says whether it was.
    ///
    /// # Errors
    /// The machine's trouble with reading.
    pub fn load(&mut self, tree: &Path, path: &str) -> Result<bool> {
        let bytes = match Folder::open(tree)?.read_through_links(Path::new(path), LARGEST_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.fault() == Fault::Repository => return Ok(false),
            Err(error) => return Err(error),
        };
        if let Some(text) = decoded(path, bytes) {
            self.texts.insert(path.to_owned(), text.trim_start_matches('\u{feff}').to_owned());
            return Ok(true);
        }
        Ok(false)
    }

    /// Loads one more requirements file and what it includes.
    ///
    /// # Errors
    /// IO errors other than "not found".
    pub fn load_with_includes(&mut self, tree: &Path, path: &str) -> Result<()> {
        if self.load(tree, path)? {
            self.load_includes(tree, vec![path.to_owned()])?;
        }
        Ok(())
    }

    fn load_includes(&mut self, tree: &Path, mut queue: Vec<String>) -> Result<()> {
        while let Some(path) = queue.pop() {
            let text = self.texts.get(&path).cloned().unwrap_or_default();
            for target in includes(&path, &text) {
                if !self.texts.contains_key(&target) && self.load(tree, &target)? {
                    queue.push(target);
                }
            }
        }
        Ok(())
    }

    /// The text of a file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// All paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().map(String::as_str)
    }
}

/// Whether a file of this name declares an environment of conda.
pub(super) fn is_environment(name: &str) -> bool {
    let stem = name.strip_suffix(".yml").or_else(|| name.strip_suffix(".yaml"));
    stem.is_some_and(|stem| stem.contains("environment") || stem == "env" || stem.starts_with("env-"))
}

/// The text of a file: UTF-8, UTF-16 where it begins with a mark of that, as shells of Windows write lists, else Latin-1: what
/// declares something is ASCII in all that older files are written in. TOML is UTF-8 or nothing.
fn decoded(path: &str, bytes: Vec<u8>) -> Option<String> {
    let units = |unit: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).collect::<Result<String, _>>().ok()
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) if path.ends_with(".toml") || path == "Pipfile" || error.as_bytes().contains(&0) => {
                None
            }
            Err(error) => Some(error.as_bytes().iter().map(|byte| char::from(*byte)).collect()),
        },
    }
}

fn entries(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() || folder.is_symlink() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_other_encodings_are_read() {
        let tree = tempfile::tempdir().unwrap();
        let list = "pytest\nzict==3.0.0 # f\u{fc}r\n";
        let utf_16 = |unit: fn(u16) -> [u8; 2]| list.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
        let latin: Vec<u8> = list.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        for (name, bytes) in [
            ("requirements-a.txt", latin.clone()),
            ("requirements-b.txt", [vec![0xff, 0xfe], utf_16(u16::to_le_bytes)].concat()),
            ("requirements-c.txt", [vec![0xfe, 0xff], utf_16(u16::to_be_bytes)].concat()),
            ("requirements-d.txt", [b"\xef\xbb\xbf".to_vec(), list.as_bytes().to_vec()].concat()),
            ("tox.toml", latin),
            ("requirements-e.txt", b"\xff\x00binary".to_vec()),
        ] {
            fs_err::write(tree.path().join(name), bytes).unwrap();
        }
        let files = Files::read(tree.path()).unwrap();
        assert_eq!(files.paths().count(), 4);
        assert!(files.paths().all(|path| files.get(path) == Some(list)), "{files:?}");
    }

    #[test]
    fn lists_that_tox_and_nox_name_are_read_wherever_they_are() {
        let tree = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("tox.ini", "[testenv]\ndeps =\n  -r{toxinidir}/.ci/test.txt\n  -c ./deep/pins\n# LICENSE.txt\n"),
            ("noxfile.py", "LIST = 'ci/more.in'\n"),
            ("pyproject.toml", "license-files = ['LICENSE.txt']\n"),
            (".ci/test.txt", "mock\n"),
            ("deep/pins", "mock<5\n"),
            ("ci/more.in", "six\n"),
            ("LICENSE.txt", "words\n"),
        ] {
            let path = tree.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let files = Files::read(tree.path()).unwrap();
        let lists: Vec<&str> =
            files.paths().filter(|path| !path.contains("tox") && !path.contains(".py")).collect();
        assert_eq!(lists, [".ci/test.txt", "ci/more.in", "deep/pins", "pyproject.toml"]);
    }

    #[test]
    fn files_are_read_beneath_the_tree_alone() {
        let outside = tempfile::tempdir().unwrap();
        fs_err::write(outside.path().join("netrc"), "machine host password hunter2\n").unwrap();
        fs_err::write(outside.path().join("pyproject.toml"), "[project]\nname = 'outside'\n").unwrap();
        let tree = tempfile::tempdir().unwrap();
        let link =
            |target: &Path, name: &str| std::os::unix::fs::symlink(target, tree.path().join(name)).unwrap();
        link(outside.path(), "lib");
        link(&outside.path().join("pyproject.toml"), "pyproject.toml");
        link(Path::new("real"), "inside");
        fs_err::create_dir(tree.path().join("real")).unwrap();
        fs_err::write(tree.path().join("real/base.txt"), "six\n").unwrap();
        let list = "-r lib/netrc\n-r inside/base.txt\n-r ../netrc\npytest\n";
        fs_err::write(tree.path().join("requirements-test.txt"), list).unwrap();
        let mut files = Files::read(tree.path()).unwrap();
        assert_eq!(files.paths().collect::<Vec<_>>(), ["inside/base.txt", "requirements-test.txt"]);
        assert!(!files.load(tree.path(), "lib/netrc").unwrap());
        let big = fs_err::File::create(tree.path().join("setup.cfg")).unwrap();
        big.file().set_len(LARGEST_FILE + 1).unwrap();
        assert!(!files.load(tree.path(), "setup.cfg").unwrap());
        let lines = super::super::requirements_files::read_file("requirements-test.txt", &|path| {
            files.get(path).map(str::to_owned)
        });
        assert_eq!(lines.requirements, ["six", "pytest"]);
        assert!(!format!("{files:?} {lines:?}").contains("hunter2"));
    }
}
