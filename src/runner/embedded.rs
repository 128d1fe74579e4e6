//! The Python files that travel inside the binary.

use std::path::PathBuf;

use crate::error::Result;
use crate::record::id::{hash_parts, sha256_hex};
use crate::store::{self, Cache};

macro_rules! python_files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("python/gistmill_runner/", $name)))),*]
    };
}

/// What runs tests.
const FILES: &[(&str, &str)] = python_files![
    "__init__.py",
    "__main__.py",
    "again.py",
    "apart.py",
    "between.py",
    "children.py",
    "collect.py",
    "command.py",
    "descriptors.py",
    "discovery.py",
    "disruptive.py",
    "entries.py",
    "execution.py",
    "failing.py",
    "followed.py",
    "following/sitecustomize.py",
    "group_run.py",
    "interpreter.py",
    "isolate.py",
    "keeper.py",
    "late.py",
    "network.py",
    "old_pytest.py",
    "phases.py",
    "probe.py",
    "protocol.py",
    "pytest_settings.txt",
    "reseed.py",
    "server.py",
    "shared.py",
    "stages.py",
    "tracer.py",
    "tree_files.py",
    "tree_state.py",
    "warm.py",
    "watch.py",
];

/// What makes witnesses, and runs nothing.
const GENERATOR: &[(&str, &str)] = python_files![
    "witness/__init__.py",
    "witness/closure.py",
    "witness/effects.py",
    "witness/module.py",
    "witness/naming.py",
    "witness/narrowing.py",
    "witness/plan.py",
    "witness/planned.py",
    "witness/program.py",
    "witness/references.py",
    "witness/rendering.py",
    "witness/repair.py",
    "witness/scopes.py",
    "witness/search.py",
    "witness/serving.py",
    "witness/source.py",
];

/// SHA-256 over what runs tests: part of every key that depends on what the runner does.
pub fn version_hash() -> String {
    hash_of(FILES.iter())
}

/// SHA-256 over all embedded files: part of every key that depends on the generator of witnesses.
pub fn generator_hash() -> String {
    hash_of(all())
}

fn all() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    FILES.iter().chain(GENERATOR)
}

fn hash_of(files: impl Iterator<Item = &'static (&'static str, &'static str)>) -> String {
    let parts: Vec<&str> = files.flat_map(|(name, text)| [*name, *text]).collect();
    hash_parts(&parts)
}

/// Writes the embedded files into the cache, once per version; gives the directory that holds the package.
pub fn unpack(cache: &Cache) -> Result<PathBuf> {
    let folder = cache.dir("runner")?.join(&generator_hash()[..16]);
    let package = folder.join("gistmill_runner");
    for (name, text) in all() {
        let path = package.join(name);
        let same = fs_err::read(&path).is_ok_and(|found| sha256_hex(&found) == sha256_hex(text.as_bytes()));
        if !same {
            if path.symlink_metadata().is_ok() {
                store::set_aside(&path)?;
            }
            fs_err::create_dir_all(path.parent().unwrap_or(&package))?;
            store::write_atomic(&path, text.as_bytes())?;
        }
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_python_file_travels_inside_the_binary() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/runner/python/gistmill_runner");
        let files =
            walkdir::WalkDir::new(&folder).into_iter().map(|entry| entry.expect("readable").into_path());
        let relative = |path: PathBuf| Some(path.strip_prefix(&folder).ok()?.to_str()?.to_owned());
        let mut found: Vec<String> = files
            .filter_map(relative)
            .filter(|name| name.ends_with(".py") || name.ends_with(".txt"))
            .collect();
        found.sort();
        let embedded: Vec<&str> = all().map(|(name, _)| *name).collect();
        assert_eq!(found, embedded);
    }

    #[test]
    fn the_runner_and_the_referee_know_the_same_settings_files_of_pytest() {
        let text = all().find_map(|(name, text)| (*name == "pytest_settings.txt").then_some(*text));
        let names: Vec<&str> = text.expect("it travels along").split_whitespace().collect();
        assert_eq!(names, crate::record::task::pytest_settings().collect::<Vec<_>>());
        assert!(names.contains(&".pytest.toml") && names.contains(&"pytest.toml"));
        let reader = all().find_map(|(name, text)| (*name == "execution.py").then_some(*text));
        assert!(reader.expect("it travels along").contains("\"pytest_settings.txt\""));
    }
}
