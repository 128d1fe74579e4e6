//! Which crates a build that compiles Rust needs: what the `Cargo.lock` of its source pins. Pure.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use toml::{Table, Value};

use super::project::BuildSystem;
use super::pyproject::{strings, text, tool};
use super::requirements_files::{folder_of, join, pattern};
use crate::redact::redact;
use crate::requirement::normalize;

/// Bytes of a `Cargo.toml` or `Cargo.lock` that are read at most; large workspaces have locks of some 500 kB.
pub(in crate::environment) const LARGEST_TEXT: u64 = 4 << 20;
/// More crates are fetched for no build, and no more manifests looked at.
const MOST_CRATES: usize = 5_000;
const MOST_MANIFESTS: usize = 50;

/// The sources that stand for crates.io in a lock.
const CRATES_IO: [&str; 2] =
    ["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];

/// A crate of crates.io. Name, version and hash are such as can stand in a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::environment) struct Crate {
    pub name: String,
    pub version: String,
    pub sha256: String,
}

impl std::fmt::Display for Crate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.name, self.version)
    }
}

/// What the locks of a source say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::environment) struct Locked {
    /// Paths of the locks, from the root of the source.
    pub locks: BTreeSet<String>,
    pub crates: BTreeSet<Crate>,
    /// What cannot be fetched, in words, each with its reason.
    pub left_out: BTreeSet<String>,
}

/// Gives the text of a file of the source by its path from the root; none where there is none.
pub(in crate::environment) type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a project in `folder` of a source needs; none where nothing of it is compiled from Rust. Without a lock there are
/// no `locks`.
pub(in crate::environment) fn locked(folder: &str, system: &BuildSystem, read: Read<'_>) -> Option<Locked> {
    let own = |name: &str| join(&format!("{folder}/_"), name).and_then(|path| read(&path));
    let (pyproject, setup) = (own("pyproject.toml"), own("setup.py"));
    if !compiles_rust(system, setup.as_deref()) {
        return None;
    }
    let pyproject: Table = pyproject.and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut found = Locked::default();
    for manifest in manifests(&pyproject, setup.as_deref()).into_iter().take(MOST_MANIFESTS) {
        let manifest = join(&format!("{folder}/_"), &manifest);
        let lock = manifest.and_then(|manifest| join(&workspace_of(&manifest, read)?, "Cargo.lock"));
        let Some(lock) = lock.filter(|lock| !found.locks.contains(lock)) else { continue };
        if let Some(text) = read(&lock) {
            found.add(&lock, &text);
        }
    }
    Some(found)
}

fn compiles_rust(system: &BuildSystem, setup: Option<&str>) -> bool {
    let says = |text: &str| {
        let text = normalize(text);
        text.starts_with("maturin") || text.contains("rust")
    };
    let in_setup = |setup: &str| setup.contains("setuptools_rust") || setup.contains("RustExtension");
    says(&system.backend) || system.requires.iter().any(|one| says(one)) || setup.is_some_and(in_setup)
}

/// Where the manifests of the crates may be that are compiled, from the folder of the project.
fn manifests(pyproject: &Table, setup: Option<&str>) -> Vec<String> {
    static LITERAL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"["']([^"'\n]*\bCargo\.toml)["']"#));
    let mut found = Vec::new();
    found.extend(tool(pyproject, "maturin").and_then(|maturin| text(maturin.get("manifest-path"))));
    let setuptools = tool(pyproject, "setuptools-rust");
    for key in ["ext-modules", "bins"] {
        let list = setuptools.and_then(|table| table.get(key)?.as_array());
        found.extend(list.into_iter().flatten().filter_map(|entry| text(entry.get("path"))));
    }
    found.extend(LITERAL.captures_iter(setup.unwrap_or_default()).map(|literal| literal[1].to_owned()));
    // Where maturin and setuptools-rust look of their own accord.
    found.extend(["Cargo.toml", "rust/Cargo.toml"].map(str::to_owned));
    found
}

/// A file name in the root of the workspace of a crate, as [`join`] takes it: the lock lies beside it. None where there is
/// no such manifest.
fn workspace_of(manifest: &str, read: Read<'_>) -> Option<String> {
    let table = |path: &str| read(path)?.parse::<Table>().ok();
    let own = table(manifest)?;
    if own.contains_key("workspace") {
        return Some(manifest.to_owned());
    }
    let named = own.get("package").and_then(|package| text(package.get("workspace")));
    if let Some(named) = named {
        return join(manifest, &format!("{named}/Cargo.toml"));
    }
    let folder = manifest.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut above = folder;
    while !above.is_empty() {
        above = above.rsplit_once('/').map_or("", |(above, _)| above);
        let root = join(&format!("{above}/_"), "Cargo.toml")?;
        let workspace = table(&root).and_then(|table| table.get("workspace").cloned());
        if workspace.is_some_and(|workspace| !excludes(&workspace, above, folder)) {
            return Some(root);
        }
    }
    Some(manifest.to_owned())
}

fn excludes(workspace: &Value, root: &str, folder: &str) -> bool {
    let excluded = strings(workspace.get("exclude")).into_iter().filter_map(|path| folder_of(root, &path));
    excluded
        .into_iter()
        .any(|path| folder.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

impl Locked {
    /// Adds what a lock says.
    fn add(&mut self, path: &str, lock: &str) {
        self.locks.insert(path.to_owned());
        let table = match lock.parse::<Table>() {
            Ok(table) => table,
            Err(error) => {
                self.left_out.insert(format!("all of {path}, which cannot be read: {}", error.message()));
                return;
            }
        };
        let packages = table.get("package").and_then(Value::as_array);
        for package in packages.into_iter().flatten().filter_map(Value::as_table) {
            // What has no source lies in the tree.
            let Some(source) = text(package.get("source")) else { continue };
            match pinned(package, &source, &table) {
                Ok(_) if self.crates.len() >= MOST_CRATES => {
                    self.left_out.insert(format!("what follows {MOST_CRATES} others in {path}"));
                    return;
                }
                Ok(one) if self.contradicts(&one) => {
                    self.left_out.insert(format!("{one}, which has two hashes"));
                }
                Ok(one) => drop(self.crates.insert(one)),
                Err(reason) => drop(self.left_out.insert(reason)),
            }
        }
    }

    fn contradicts(&self, one: &Crate) -> bool {
        let same = |other: &&Crate| (&other.name, &other.version) == (&one.name, &one.version);
        self.crates.iter().find(same).is_some_and(|other| other.sha256 != one.sha256)
    }

    /// The paths of the locks, as a sentence has them.
    pub(in crate::environment) fn words(&self) -> String {
        self.locks.iter().cloned().collect::<Vec<_>>().join(", ")
    }
}

/// The crate that an entry of a lock pins, or why none is fetched for it.
fn pinned(package: &Table, source: &str, lock: &Table) -> Result<Crate, String> {
    let (name, version) = (text(package.get("name")), text(package.get("version")));
    let (name, version) = (name.unwrap_or_default(), version.unwrap_or_default());
    if !is_name(&name) || !is_version(&version) {
        return Err(format!("{name:?} {version:?}, which no crate can be called"));
    }
    if !CRATES_IO.contains(&source) {
        return Err(format!("{name} {version}, which is not from crates.io ({})", redact(source)));
    }
    // The first form of locks had the hashes in a table of their own.
    let apart = || lock.get("metadata")?.get(format!("checksum {name} {version} ({source})"));
    let sha256 = text(package.get("checksum").or_else(apart)).unwrap_or_default();
    if !is_sha256(&sha256) {
        return Err(format!("{name} {version}, which has no SHA-256 in the lock"));
    }
    Ok(Crate { name, version, sha256 })
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Three numbers, and nothing that could be taken for more than a part of a file name. No two crates have one `name-version`:
/// a name has no dot.
fn is_version(text: &str) -> bool {
    let mut numbers = text.splitn(3, '.').map(|part| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0, digits == part.len())
    });
    let is_number = |part: Option<(bool, bool)>| part == Some((true, true));
    text.len() <= 100
        && is_number(numbers.next())
        && is_number(numbers.next())
        && numbers.next().is_some_and(|(starts_with_digit, _)| starts_with_digit)
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-".contains(&byte))
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
#[path = "crates_tests.rs"]
mod tests;
