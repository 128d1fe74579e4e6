//! Which files of a build an import or pytest would find before what is pinned, or before what Python comes with. Pure, but
//! for [`is_installed`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::record::task::pytest_settings;

/// Files of a tree (relative, sorted) with the hash of their content, or their target when they are links.
pub type Listing = BTreeMap<PathBuf, String>;

/// Modules that come with CPython 3.8 to 3.14.
static STANDARD_LIBRARY: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| include_str!("standard_library.txt").split_whitespace().collect());
/// What Python or pytest loads by its name alone.
const LOADED: [&str; 3] = ["conftest", "sitecustomize", "usercustomize"];
/// Folders that are put on the path even where somebody left an `__init__.py` in them.
const SOURCE_ROOTS: [&str; 6] = ["src", "lib", "python", "test", "tests", "testing"];
const INIT: &str = "__init__";

/// What can be imported from a pinned tree, whichever of its folders are on the path.
#[derive(Debug, Default)]
pub struct Importable {
    /// Files of modules, without what comes after their name.
    modules: BTreeSet<PathBuf>,
    folders: BTreeSet<PathBuf>,
    /// Folders with a module at any depth that is not a test.
    with_modules: BTreeSet<PathBuf>,
    /// Import names, with `/` for each dot, from whatever may be on the path.
    names: BTreeSet<PathBuf>,
    /// Import names of what has no ending, and may be a link to a package: all that is below is found there.
    links: BTreeSet<PathBuf>,
}

/// The module that a file is by its name, without what comes after it, and whether it is compiled.
fn module(path: &Path) -> Option<(PathBuf, bool)> {
    let name = path.file_name()?.to_str()?;
    let (stem, rest) = name.split_once('.')?;
    let is_compiled = match rest.rsplit('.').next() {
        _ if stem.is_empty() => return None,
        Some("so") => true,
        Some("py") if rest == "py" => false,
        _ => return None,
    };
    Some((path.with_file_name(stem), is_compiled))
}

/// The module that a file or a link is by its name: the link may lead to a folder, which may be a package.
fn module_or_link(path: &Path, is_link: bool) -> Option<(PathBuf, bool)> {
    module(path).or_else(|| is_link.then(|| (path.to_owned(), false)))
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn has_no_ending(path: &Path) -> bool {
    path.file_name().is_some_and(|name| !name.as_encoded_bytes().contains(&b'.'))
}

/// Files that pytest loads.
fn is_test(path: &Path) -> bool {
    let name = name_of(path);
    name == "conftest.py" || name.starts_with("test_") || name.ends_with("_test.py")
}

/// Whether Python or pytest reads a file wherever it is: settings, start-up files, what says which plugins exist.
fn is_read_by_name(path: &Path) -> bool {
    // In whatever letters: `importlib.metadata` makes no difference.
    let has_metadata = |part: &str| {
        let part = part.to_ascii_lowercase();
        part.ends_with(".egg-info") || part.ends_with(".dist-info") || part == "egg-info"
    };
    let mut parts = path.components().filter_map(|part| part.as_os_str().to_str());
    let name = name_of(path);
    pytest_settings().any(|one| one == name)
        || name.ends_with(".pth")
        || parts
            .any(|part| has_metadata(part) || LOADED.contains(&part.split('.').next().unwrap_or_default()))
}

impl Importable {
    /// Of a pinned tree by the paths of its files.
    pub fn of<'a>(pinned: impl Iterator<Item = &'a PathBuf> + Clone) -> Self {
        let mut found = Importable::default();
        for path in pinned.clone() {
            found.folders.extend(path.ancestors().skip(1).map(Path::to_owned));
            let Some((module, _)) = module(path) else { continue };
            if !is_test(path) {
                found.with_modules.extend(path.ancestors().skip(1).map(Path::to_owned));
            }
            found.modules.insert(module);
        }
        for path in pinned {
            let Some((module, _)) = module(path) else {
                let links: Vec<PathBuf> = found.names(path).filter(|_| has_no_ending(path)).collect();
                found.links.extend(links);
                continue;
            };
            let mut names: Vec<PathBuf> = found.names(imported_as(&module)).collect();
            if is_test(path) {
                // Tests import each other, but a folder of tests is seldom named where it is not in the root.
                found.names.extend(names);
                names = vec![imported_as(&module).to_owned()];
            }
            let prefixes = names.iter().flat_map(|name| name.ancestors().map(Path::to_owned));
            found.names.extend(prefixes.filter(|name| !name.as_os_str().is_empty()));
        }
        found
    }

    /// Names by which something of the tree can be imported.
    pub fn all_names(&self) -> impl Iterator<Item = &Path> {
        self.names.iter().chain(&self.links).map(PathBuf::as_path)
    }

    fn is_package(&self, folder: &Path) -> bool {
        self.modules.contains(&folder.join(INIT))
    }

    /// The names by which a module can be imported: from each pinned folder above it that may be on the path.
    fn names<'a>(&'a self, module: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        module.ancestors().skip(1).filter_map(move |folder| {
            let is_root = folder.as_os_str().is_empty() || SOURCE_ROOTS.contains(&name_of(folder));
            let is_on_path = self.folders.contains(folder) || folder.as_os_str().is_empty();
            let is_found = is_on_path && (is_root || !self.is_package(folder));
            is_found.then(|| module.strip_prefix(folder).unwrap_or(module).to_owned())
        })
    }

    /// Whether a file or a link that a build added would be found before something else. Where the build `compiles`
    /// Python, a compiled module may be beside the pinned source of its name.
    pub fn is_preceded_by(&self, path: &Path, is_link: bool, compiles: bool) -> bool {
        if is_read_by_name(path) || path.ancestors().skip(1).any(|folder| self.modules.contains(folder)) {
            return true;
        }
        let Some((module, is_compiled)) = module_or_link(path, is_link) else { return false };
        if self.modules.contains(&module) {
            return !(is_compiled && compiles);
        }
        let is_new = module.parent().is_some_and(|folder| !self.folders.contains(folder));
        if name_of(&module) == INIT && !is_new {
            return true;
        }
        if self.folders.contains(&module) && (!is_compiled || self.with_modules.contains(&module)) {
            return true;
        }
        self.names_of_added(imported_as(&module)).iter().any(|name| {
            self.names.contains(name)
                || name.ancestors().any(|name| self.links.contains(name))
                || name.to_str().is_some_and(|name| STANDARD_LIBRARY.contains(name))
        })
    }

    /// The names by which a module that a build added can be imported, where no pinned package is on the way: what is in
    /// one is found through it alone.
    fn names_of_added(&self, module: &Path) -> Vec<PathBuf> {
        let within = |name: &PathBuf| {
            let depth = module.components().count() - name.components().count();
            let start: PathBuf = module.components().take(depth).collect();
            let between = name.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty());
            between.map(|part| start.join(part)).all(|folder| !self.is_package(&folder))
        };
        self.names(module).filter(within).collect()
    }

    /// The names by which an added file or link can be imported; none where it is not a module.
    pub fn imported_as(&self, path: &Path, is_link: bool) -> Vec<PathBuf> {
        let module = module_or_link(path, is_link);
        module.map(|(module, _)| self.names_of_added(imported_as(&module))).unwrap_or_default()
    }
}

/// The path that is imported: a package by its folder.
fn imported_as(module: &Path) -> &Path {
    match module.parent() {
        Some(folder) if name_of(module) == INIT => folder,
        _ => module,
    }
}

/// Whether an import of a name finds something in a folder of installed distributions that what a tree has of this name
/// would be found before.
pub fn is_installed(site: &Path, name: &Path) -> bool {
    let mut folder = site.to_owned();
    let mut parts = name.components().peekable();
    while let Some(part) = parts.next() {
        let place = folder.join(part);
        if parts.peek().is_none() {
            return place.is_dir() || has_module(&folder, name_of(Path::new(&part)));
        }
        // A package is found before a folder that is none, wherever that is.
        if !place.is_dir() || has_module(&place, INIT) {
            return false;
        }
        folder = place;
    }
    false
}

fn has_module(folder: &Path, name: &str) -> bool {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let mut modules = entries.filter_map(|entry| Some(module(Path::new(&entry.file_name()))?.0));
    modules.any(|module| module == Path::new(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn importable(paths: &[&str]) -> Importable {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        Importable::of(paths.iter())
    }

    const PINNED: [&str; 16] = [
        "pkg/__init__.py",
        "pkg/plain.py",
        "pkg/_fast.pyx",
        "pkg/data/table.csv",
        "pkg/proto/a.proto",
        "nspkg/one.py",
        "ext/ext.c",
        "src/inner/__init__.py",
        "src/inner/sub/mod.py",
        "src/space/a.py",
        "tools/build.py",
        "tests/test_a.py",
        "tests/helper.py",
        "tests/yaml/test_b.py",
        "top.py",
        "docs/conf.py",
    ];

    fn refused<'a>(paths: &[&'a str], compiles: bool) -> Vec<&'a str> {
        let pinned = importable(&PINNED);
        let is_refused = |path: &&&str| pinned.is_preceded_by(Path::new(path), false, compiles);
        paths.iter().filter(is_refused).copied().collect()
    }

    #[track_caller]
    fn all_refused(paths: &[&str]) {
        assert_eq!(refused(paths, false), paths);
        // A compiler of Python makes a difference beside a pinned source alone.
        assert_eq!(refused(paths, true), paths);
    }

    #[test]
    fn what_real_builds_add_is_taken_over() {
        let added = [
            // Versions, generated sources, compiled modules.
            "pkg/_version.py",
            "src/inner/_version.py",
            "_version.py",
            "version.py",
            "pkg/proto/a_pb2.py",
            "pkg/proto/types_pb2_grpc.py",
            "pkg/generated/__init__.py",
            "pkg/generated/types.py",
            "protos/__init__.py",
            "protos/a_pb2.py",
            "pkg/types.py",
            "pkg/_fast.cpython-312-x86_64-linux-gnu.so",
            "pkg/_fast.c",
            "src/inner/_native.abi3.so",
            "ext.cpython-312-x86_64-linux-gnu.so",
            "3b1f__mypyc.cpython-312-x86_64-linux-gnu.so",
            // Folders of builds, with copies of what is pinned.
            "build/cp312/_fast.cpython-312-x86_64-linux-gnu.so",
            "build/lib/pkg/__init__.py",
            "build/lib/pkg/plain.py",
            "build/lib/top.py",
            "build/__editable__.pkg-1-py3-none-any/pkg/__init__.py",
            "target/release/libfast.so",
            "yaml.py",
            "report.txt",
            "pkg/data/more.csv",
        ];
        assert_eq!(refused(&added, false), [""; 0]);
    }

    #[test]
    fn settings_and_what_is_loaded_by_name_are_refused_anywhere() {
        for name in pytest_settings() {
            all_refused(&[name, &format!("tests/{name}"), &format!("new/{name}")]);
        }
        all_refused(&[
            "conftest.py",
            "new/conftest.py",
            "sitecustomize.py",
            "sitecustomize/__init__.py",
            "usercustomize.cpython-312-x86_64-linux-gnu.so",
            "src/x.pth",
            "evil.egg-info/entry_points.txt",
            "evil.EGG-INFO/entry_points.txt",
            "src/evil-1.Dist-Info/entry_points.txt",
            "evil.egg/EGG-INFO/entry_points.txt",
            "src/evil-1.dist-info/entry_points.txt",
        ]);
    }

    #[test]
    fn nothing_becomes_a_module_beside_a_pinned_one_of_its_name() {
        all_refused(&[
            "nspkg.py",
            "nspkg.cpython-312-x86_64-linux-gnu.so",
            "nspkg/__init__.py",
            "nspkg/__init__.abi3.so",
            "tests/__init__.py",
            "pkg/data/__init__.py",
            "pkg/data.py",
            "src/inner/sub.py",
            "src/inner/sub.so",
            "src/inner/sub/__init__.py",
            "top/__init__.py",
            "top/other.py",
            "pkg/plain/__init__.py",
            "ext.py",
        ]);
    }

    #[test]
    fn nothing_is_found_before_what_is_pinned_elsewhere() {
        all_refused(&[
            "inner/__init__.py",
            "inner.py",
            "space/__init__.py",
            "space/a.py",
            "tests/top.py",
            "tests/pkg/__init__.py",
            "src/helper.py",
            "build.py",
            "build/__init__.py",
        ]);
    }

    #[test]
    fn nothing_is_found_before_a_pinned_test() {
        all_refused(&[
            "tests/yaml/test_a.py",
            "src/test_a.py",
            "nspkg/test_a/__init__.py",
            "src/tests/__init__.py",
            "src/tests/yaml/test_b.py",
        ]);
    }

    #[test]
    fn a_folder_of_tests_that_is_a_package_is_on_the_path_as_well() {
        let pinned = importable(&["tests/__init__.py", "tests/helper.py", "tests/test_a.py", "top.py"]);
        for path in ["tests/colorsys.py", "tests/top.py", "helper.py"] {
            assert!(pinned.is_preceded_by(Path::new(path), false, false), "{path}");
        }
    }

    #[test]
    fn nothing_is_found_before_a_link_to_a_package() {
        let pinned = importable(&["linked", "LICENSE", "vendor/linked-1/mod.py", "tests/test_a.py"]);
        for path in ["linked.py", "tests/linked/__init__.py", "tests/linked/mod.py", "tests/linked.so"] {
            assert!(pinned.is_preceded_by(Path::new(path), false, false), "{path}");
        }
        for path in ["vendor/linked-1/_version.py", "docs/license.py"] {
            assert!(!pinned.is_preceded_by(Path::new(path), false, false), "{path}");
        }
    }

    #[test]
    fn nothing_is_found_before_the_standard_library() {
        all_refused(&[
            "colorsys.py",
            "colorsys/__init__.py",
            "src/json.py",
            "src/json/__init__.py",
            "tests/colorsys.py",
            "nspkg/colorsys.so",
            "docs/distutils.py",
            "compression/__init__.py",
        ]);
    }

    #[test]
    fn links_are_taken_for_packages() {
        let pinned = importable(&PINNED);
        for link in ["colorsys", "inner", "src/pkg", "tests/top"] {
            assert!(pinned.is_preceded_by(Path::new(link), true, false), "{link}");
        }
        for link in ["libs", "build/lib64", "pkg/latest", "pkg/libfast.so.1"] {
            assert!(!pinned.is_preceded_by(Path::new(link), true, false), "{link}");
        }
    }

    #[test]
    fn a_compiled_module_is_beside_its_pinned_source_where_python_is_compiled() {
        let compiled = ["pkg/plain.cpython-312-x86_64-linux-gnu.so", "pkg/__init__.abi3.so", "top.so"];
        assert_eq!(refused(&compiled, false), compiled);
        assert_eq!(refused(&compiled, true), [""; 0]);
    }

    #[test]
    fn installed_distributions_are_found_before_what_a_build_added() {
        let site = tempfile::tempdir().unwrap();
        for path in
            ["six.py", "_cffi.abi3.so", "yaml/__init__.py", "google/api/__init__.py", "x-1.dist-info/RECORD"]
        {
            let path = site.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "").unwrap();
        }
        let pinned = importable(&PINNED);
        let found = |path: &str| {
            let names = pinned.imported_as(Path::new(path), path == "yaml");
            names.iter().any(|name| is_installed(site.path(), name))
        };
        for path in [
            "six.py",
            "yaml",
            "_cffi.py",
            "yaml/__init__.py",
            "tests/six/__init__.py",
            "google/api.py",
            "google/__init__.py",
        ] {
            assert!(found(path), "{path}");
        }
        for path in ["yaml/deeper.py", "google/own.py", "pkg/six.py", "x.py", "report.txt"] {
            assert!(!found(path), "{path}");
        }
    }
}
