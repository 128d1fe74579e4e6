//! One walk over a tree: what can be imported from somewhere in it, and where in it projects are declared.
//!
//! Any folder may be put on the path, by a workspace member, a test's configuration, an environment variable. So
//! everything that is importable from any folder counts as the tree's own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use walkdir::{DirEntry, WalkDir};

use crate::error::{Error, Result};

/// The files that declare a project, the one that decides about its name first.
pub const DECLARATIONS: [&str; 3] = ["pyproject.toml", "setup.cfg", "setup.py"];

/// What a walk found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Import names and the folder (relative, empty for the root) that each can be imported from, the first by path.
    pub modules: BTreeMap<String, String>,
    /// Folders below the root that have a file of [`DECLARATIONS`], sorted.
    pub projects: BTreeSet<String>,
    /// Whether the tree has a `src/` folder with packages or modules.
    pub src_layout: bool,
    /// Whether it pins crates for Rust code somewhere.
    pub has_cargo_lock: bool,
    /// The tree is larger or deeper than what is looked at: there may be more of everything.
    pub is_cut: bool,
}

/// How much of a tree is looked at.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    entries: usize,
    depth: usize,
}

const BOUNDS: Bounds = Bounds { entries: 1_000_000, depth: 40 };

/// Looks through a tree. Links are not followed; hidden folders, virtual environments and caches are left out.
///
/// # Errors
/// A folder that cannot be read.
pub fn survey(tree: &Path) -> Result<Survey> {
    survey_within(tree, BOUNDS)
}

fn survey_within(tree: &Path, bounds: Bounds) -> Result<Survey> {
    let mut paths = Vec::new();
    let mut is_cut = false;
    let walk = WalkDir::new(tree).max_depth(bounds.depth).sort_by_file_name();
    for (number, entry) in walk.into_iter().filter_entry(is_of_interest).enumerate() {
        let entry = entry.map_err(|error| {
            Error::machine(format!("cannot look through {}", tree.display())).with_source(error)
        })?;
        is_cut |= number >= bounds.entries || (entry.depth() >= bounds.depth && entry.file_type().is_dir());
        if number >= bounds.entries {
            break;
        }
        let relative = entry.path().strip_prefix(tree).unwrap_or(entry.path());
        if let Some(path) = relative.to_str().filter(|_| entry.file_type().is_file()) {
            paths.push(path.to_owned());
        }
    }
    Ok(Survey { is_cut, ..of_paths(paths.iter().map(String::as_str)) })
}

fn is_of_interest(entry: &DirEntry) -> bool {
    let name = entry.file_name().as_encoded_bytes();
    let is_left_out = || {
        name.starts_with(b".")
            || matches!(name, b"__pycache__" | b"node_modules")
            || entry.path().join("pyvenv.cfg").symlink_metadata().is_ok()
    };
    entry.depth() == 0 || !entry.file_type().is_dir() || !is_left_out()
}

/// What the paths of a tree's files say. Pure.
pub fn of_paths<'a>(paths: impl IntoIterator<Item = &'a str> + Clone) -> Survey {
    let mut survey = Survey::default();
    let mut packages = BTreeSet::new();
    for path in paths.clone() {
        let (folder, name) = split(path);
        if DECLARATIONS.contains(&name) && !folder.is_empty() {
            survey.projects.insert(folder.to_owned());
        }
        survey.has_cargo_lock |= name == "Cargo.lock";
        if module_of(name) == Some("__init__") {
            packages.insert(folder);
        }
    }
    // What is inside a package is imported through it, unless the folder is the root of sources all the same.
    let is_root = |folder: &str| {
        !packages.contains(folder) || is_source_root(folder) || survey.projects.contains(folder)
    };
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    for path in paths {
        let (folder, name) = split(path);
        let Some(module) = module_of(name).filter(|_| !is_test(name)) else { continue };
        survey.src_layout |= folder == "src" || (split(folder).0 == "src" && !folder.is_empty());
        let mut add = |parent: &str, name: &str| {
            if is_root(parent) && name != "__init__" {
                modules.entry(name.to_owned()).or_insert_with(|| parent.to_owned());
            }
        };
        add(folder, module);
        let mut below = folder;
        while !below.is_empty() {
            let (parent, name) = split(below);
            add(parent, name);
            below = parent;
        }
    }
    survey.modules = modules;
    survey
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Folders that are put on the path even where somebody left an `__init__.py` in them.
fn is_source_root(folder: &str) -> bool {
    matches!(split(folder).1, "" | "src" | "lib" | "python")
}

/// The module that a file is, by its name.
fn module_of(name: &str) -> Option<&str> {
    let (stem, rest) = name.split_once('.')?;
    let ending = rest.rsplit('.').next().unwrap_or(rest);
    (!stem.is_empty() && matches!(ending, "py" | "pyx" | "so" | "pyd")).then_some(stem)
}

/// Files that only pytest loads: a folder `yaml/` of tests is no module `yaml`.
fn is_test(name: &str) -> bool {
    name == "conftest.py" || name.starts_with("test_") || name.ends_with("_test.py")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(paths: &[&str]) -> Vec<(String, String)> {
        of_paths(paths.iter().copied()).modules.into_iter().collect()
    }

    fn names(paths: &[&str]) -> Vec<String> {
        modules(paths).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn packages_and_modules_count_at_any_depth() {
        let found = modules(&["a.py", "packages/x/src/toolz/__init__.py", "packages/x/src/toolz/yaml.py"]);
        let expected = [
            ("a", ""),
            ("packages", ""),
            ("src", "packages/x"),
            ("toolz", "packages/x/src"),
            ("x", "packages"),
        ];
        assert_eq!(found, expected.map(|(name, place)| (name.to_owned(), place.to_owned())));
        assert_eq!(
            names(&["native/_fast.cpython-312-x86_64-linux-gnu.so", "native/slow.pyx"]),
            ["_fast", "native", "slow"]
        );
    }

    #[test]
    fn what_is_inside_a_package_is_imported_through_it() {
        assert_eq!(
            names(&["pkg/__init__.py", "pkg/compat/__init__.py", "pkg/compat/six.py", "pkg/yaml.py"]),
            ["pkg"]
        );
        // A folder without __init__.py inside a package may be on the path.
        assert_eq!(names(&["pkg/__init__.py", "pkg/bundled/six.py"]), ["pkg", "six"]);
    }

    #[test]
    fn roots_of_sources_stay_roots_with_an_init_file() {
        assert_eq!(names(&["__init__.py", "six.py"]), ["six"]);
        assert_eq!(names(&["src/__init__.py", "src/six.py"]), ["six", "src"]);
        let nested = ["sub/__init__.py", "sub/setup.py", "sub/six.py"];
        assert_eq!(names(&nested), ["setup", "six", "sub"]);
    }

    #[test]
    fn tests_alone_make_no_module_of_their_folder() {
        assert!(
            names(&["tests/yaml/test_a.py", "tests/numpy/conftest.py", "tests/numpy/a_test.py"]).is_empty()
        );
        assert_eq!(names(&["tests/yaml/test_a.py", "tests/yaml/helper.py"]), ["helper", "tests", "yaml"]);
    }

    #[test]
    fn projects_below_the_root_and_the_layout_are_noted() {
        let survey = of_paths(["pyproject.toml", "src/a/__init__.py", "libs/b/setup.py", "libs/b/setup.cfg"]);
        assert_eq!(survey.projects.iter().collect::<Vec<_>>(), ["libs/b"]);
        assert!(survey.src_layout && !of_paths(["a/b/c.py", "src/x/y/z.py"]).src_layout);
    }

    #[test]
    fn hidden_folders_environments_links_and_depth_are_respected() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = tree.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "").unwrap();
        };
        for path in [".hidden/six.py", "env/pyvenv.cfg", "env/lib/yaml.py", "a/one.py", "a/b/c/deep.py"] {
            write(path);
        }
        std::os::unix::fs::symlink("/", tree.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", tree.path().join("linked.py")).unwrap();
        let found = |bounds| survey_within(tree.path(), bounds).unwrap();
        let all = found(BOUNDS);
        assert_eq!(all.modules.keys().collect::<Vec<_>>(), ["a", "b", "c", "deep", "one"]);
        assert!(!all.is_cut);
        let shallow = found(Bounds { depth: 2, ..BOUNDS });
        assert!(
            shallow.is_cut && shallow.modules.contains_key("one") && !shallow.modules.contains_key("deep")
        );
        assert!(found(Bounds { entries: 3, ..BOUNDS }).is_cut);
    }
}
