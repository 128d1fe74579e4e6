//! What prompts show of a repository: its README, the dependencies that are installed for it, and its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;

use super::Tree;
use crate::beneath::{Folder, Kind};
use crate::error::Result;
use crate::family::recube::pack::{Dependency, pack};
use crate::text::glob;

/// Largest file that is shown, in bytes.
const LARGEST: u64 = 1 << 20;
const READMES: [&str; 3] = ["README.md", "README.rst", "README.txt"];

/// The parts of a context, but for the mask.
pub(super) struct Context {
    /// The README first, then other Markdown.
    readme: Vec<(String, String)>,
    dependencies: Vec<Installed>,
    /// By path.
    files: BTreeMap<String, String>,
}

/// An installed distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Installed {
    name: String,
    version: String,
    summary: String,
    description: String,
    /// Names of what it needs without extras.
    requires: BTreeSet<String>,
    /// Whether it is the project itself, or one beside it.
    is_own: bool,
}

impl Context {
    /// Reads a tree, and what is installed beside it; files that fit one of the globs in `excluded` are left out.
    ///
    /// # Errors
    /// A folder cannot be walked through.
    pub(super) fn read(tree: &Tree, (folder, venv): (&Folder, &Path), excluded: &[String]) -> Result<Self> {
        let text = |path: &str| {
            let bytes = folder.read(Path::new(path), LARGEST).ok()?;
            String::from_utf8(bytes).ok()
        };
        let globs: Vec<Regex> =
            excluded.iter().filter_map(|glob| Regex::new(&glob::pattern(glob)).ok()).collect();
        let is_shown = |path: &&String| !globs.iter().any(|glob| glob.is_match(path));
        let is_prose = |path: &&String| {
            path.ends_with(".md") && !crate::record::trace::is_test_path(path, &tree.test_roots)
        };
        let first = READMES.iter().find(|name| tree.paths.iter().any(|path| path == *name));
        let others = tree.paths.iter().filter(is_shown).filter(is_prose).map(String::as_str);
        let names = first.copied().into_iter().chain(others.filter(|path| Some(path) != first));
        let readme = names.filter_map(|path| Some((path.to_owned(), text(path)?))).collect();
        let code = tree.texts.keys().filter(is_shown).map(String::as_str);
        let settings = tree.paths.iter().filter(is_shown).map(String::as_str).filter(|path| is_setting(path));
        let files = code.chain(settings).filter_map(|path| Some((path.to_owned(), text(path)?))).collect();
        Ok(Context { readme, dependencies: dependencies(installed(venv)?), files })
    }

    /// The text with a mask in the place of the target; `hidden` files are not in it.
    pub(super) fn of(&self, target: &str, masked: &str, hidden: &[String]) -> String {
        let is_seen = |path: &str| !hidden.iter().any(|one| one == path);
        let files = self.files.iter().filter(|(path, _)| *path != target && is_seen(path));
        let mut files: Vec<(&str, &str)> =
            files.map(|(path, text)| (path.as_str(), text.as_str())).chain([(target, masked)]).collect();
        files.sort_unstable();
        let readme = self.readme.iter().filter(|(path, _)| is_seen(path));
        let readme: Vec<(&str, &str)> = readme.map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let dependency = |one| {
            let Installed { name, version, summary, description, .. }: &Installed = one;
            Dependency { name, version, summary, description }
        };
        let dependencies: Vec<Dependency<'_>> = self.dependencies.iter().map(dependency).collect();
        pack(&readme, &dependencies, &files)
    }
}

/// Whether a file of the root says how the project is built and run.
fn is_setting(path: &str) -> bool {
    let endings = [".yml", ".yaml", ".sh", ".toml", ".cfg"];
    !path.contains('/')
        && (path.starts_with("Dockerfile") || endings.iter().any(|ending| path.ends_with(ending)))
}

/// What is installed, by its metadata.
fn installed(venv: &Path) -> Result<Vec<Installed>> {
    let folder = Folder::open(venv)?;
    let mut found = Vec::new();
    for entry in folder.walk()?.into_iter().filter(|entry| entry.kind == Kind::File) {
        if !entry.path.ends_with("METADATA") || !entry.path.to_string_lossy().contains(".dist-info/") {
            continue;
        }
        let Ok(bytes) = folder.read(&entry.path, LARGEST) else { continue };
        let address = entry.path.with_file_name("direct_url.json");
        let address = folder.read(&address, LARGEST).unwrap_or_default();
        let is_own = String::from_utf8_lossy(&address).contains("\"file://");
        found.extend(parsed(&String::from_utf8_lossy(&bytes), is_own));
    }
    Ok(found)
}

/// A distribution by the text of its metadata; none without a name.
fn parsed(text: &str, is_own: bool) -> Option<Installed> {
    let text = text.replace("\r\n", "\n");
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let fields = || head.split('\n').filter_map(|line| line.split_once(": "));
    let field = |name: &str| fields().find(|(key, _)| *key == name).map(|(_, value)| value.trim().to_owned());
    let requires = fields().filter(|(key, value)| *key == "Requires-Dist" && !value.contains("extra =="));
    let requires = requires.map(|(_, value)| {
        let end = value.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c))).unwrap_or(value.len());
        plain(&value[..end])
    });
    Some(Installed {
        name: field("Name")?,
        version: field("Version").unwrap_or_default(),
        summary: field("Summary").unwrap_or_default(),
        description: body.to_owned(),
        requires: requires.collect(),
        is_own,
    })
}

/// A name as indexes compare it.
fn plain(name: &str) -> String {
    let parts: Vec<&str> = name.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect();
    parts.join("-").to_lowercase()
}

/// What the project needs to run, by name; all that is installed where the project is not.
fn dependencies(installed: Vec<Installed>) -> Vec<Installed> {
    let own: BTreeSet<String> =
        installed.iter().filter(|one| one.is_own).flat_map(|one| one.requires.clone()).collect();
    let is_known = installed.iter().any(|one| one.is_own);
    let is_wanted = |one: &Installed| !one.is_own && (!is_known || own.contains(&plain(&one.name)));
    let mut wanted: Vec<Installed> = installed.into_iter().filter(is_wanted).collect();
    wanted.sort_by_cached_key(|one| plain(&one.name));
    wanted.dedup_by_key(|one| plain(&one.name));
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_has_what_the_project_needs_and_the_mask() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        write("tree/README.md", "# Mine\n");
        write("tree/docs/a.md", "apart");
        write("tree/tox.ini", "apart");
        write("tree/pyproject.toml", "[project]\n");
        write("tree/pkg/a.py", "original = 1\n");
        write("tree/pkg/copy.py", "original = 1\n");
        write("tree/pkg/b.py", "b = 2\n");
        let site = "venv/lib/python3.12/site-packages";
        write(
            &format!("{site}/mine-1.dist-info/METADATA"),
            "Name: mine\nRequires-Dist: Some_Dep>=1\nRequires-Dist: x; extra == \"y\"\n\n",
        );
        write(&format!("{site}/mine-1.dist-info/direct_url.json"), "{\"url\": \"file:///testbed\"}");
        write(
            &format!("{site}/some_dep-2.dist-info/METADATA"),
            "Name: some-dep\nVersion: 2\nSummary: It helps\n\nHow it helps.\n",
        );
        write(&format!("{site}/other-3.dist-info/METADATA"), "Name: other\nVersion: 3\n\n");
        let paths =
            ["README.md", "docs/a.md", "pkg/a.py", "pkg/b.py", "pkg/copy.py", "pyproject.toml", "tox.ini"];
        let folder = Folder::open(&home.path().join("tree")).unwrap();
        let tree = Tree {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            texts: paths
                .iter()
                .filter(|path| path.ends_with(".py"))
                .map(|path| ((*path).to_owned(), Vec::new()))
                .collect(),
            test_roots: vec!["tests".to_owned()],
        };
        let context =
            Context::read(&tree, (&folder, &home.path().join("venv")), &["docs/**".to_owned()]).unwrap();
        let text = context.of("pkg/a.py", "masked = 1\n", &["pkg/copy.py".to_owned()]);
        let expected = "<readme>\n## README.md\n\n# Mine\n\n</readme>\n\n<dependencies>\n## some-dep\nVersion: ==2\nIt helps\n\nHow it helps.\n\n\
                        </dependencies>\n\n<implementations>\n## pkg/a.py\n\n```python\nmasked = 1\n```\n\n## pkg/b.py\n\n```python\nb = 2\n```\n\n\
                        ## pyproject.toml\n\n```toml\n[project]\n```\n\n</implementations>\n";
        assert_eq!(text, expected);
    }
}
