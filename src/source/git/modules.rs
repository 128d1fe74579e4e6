//! Submodules: what `.gitmodules` says about one, and where its objects may be found.

use std::path::{Component, Path};

use git2::{Config, Oid, Repository};

use super::super::location::Location;
use super::{Part, find_commit};
use crate::error::{Error, Result};
use crate::redact::redact;

/// One entry of `.gitmodules`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Module {
    pub name: String,
    /// As written: may hold credentials, may be relative.
    pub url: String,
}

/// The submodule that `.gitmodules` of a commit has for a path; none where it gives no address.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn find(repository: &Repository, commit: &str, path: &Path) -> Result<Option<Module>> {
    let location = Location::Local(repository.path().to_owned());
    let tree = find_commit(repository, &location, commit)?.tree().ok();
    let entry = tree.and_then(|tree| tree.get_name(".gitmodules").map(|entry| entry.id()));
    let Some(text) = entry.and_then(|id| repository.find_blob(id).ok()) else { return Ok(None) };
    let mut modules = parse(text.content())?.into_iter();
    Ok(modules.find(|(module_path, _)| Path::new(module_path) == path).map(|(_, module)| module))
}

/// All submodules of a `.gitmodules` file with their paths. Git's own reader decides, so quoting and comments are
/// right.
fn parse(text: &[u8]) -> Result<Vec<(String, Module)>> {
    let unreadable = |error: git2::Error| {
        Error::repository(format!("cannot read .gitmodules: {}", redact(error.message())))
    };
    if super::own::includes(text) {
        return Err(Error::repository(".gitmodules includes other files"));
    }
    let file = crate::store::scratch_file()?;
    fs_err::write(file.path(), text)?;
    let config = Config::open(file.path()).map_err(unreadable)?;
    let mut modules = Vec::new();
    let mut paths = config.entries(Some(r"^submodule\..*\.path$")).map_err(unreadable)?;
    while let Some(entry) = paths.next() {
        let entry = entry.map_err(unreadable)?;
        let (Ok(key), Ok(path)) = (entry.name(), entry.value()) else { continue };
        let name = key.trim_start_matches("submodule.").trim_end_matches(".path").to_owned();
        if let Ok(url) = config.get_string(&format!("submodule.{name}.url")) {
            modules.push((path.trim_end_matches('/').to_owned(), Module { name, url }));
        }
    }
    Ok(modules)
}

/// The clone of a submodule that lies inside the clone which has it, when it has the commit.
pub(super) fn open_beside(part: &Part, module: &Module, commit: Oid) -> Option<Repository> {
    let is_plain = Path::new(&module.name).components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || module.name.is_empty() || !part.is_clone {
        return None;
    }
    let modules = part.repository.path().join("modules").canonicalize().ok()?;
    let place = modules.join(&module.name).canonicalize().ok().filter(|place| place.starts_with(&modules))?;
    let inside = super::own::open(&place).ok()??;
    let has_commit = inside.find_commit(commit).is_ok();
    has_commit.then_some(inside)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn modules_are_read_as_git_reads_them() {
        let text = b"[submodule \"a b\"]\n\tpath = lib/a ; comment\n\turl = \"../a.git\"\n[submodule \"c\"]\n\tpath = c\n";
        let found = parse(text).unwrap();
        let module = Module { name: "a b".to_owned(), url: "../a.git".to_owned() };
        assert_eq!(found, [("lib/a".to_owned(), module)], "an entry without address is none");
    }

    proptest! {
        #![proptest_config(crate::source::same_in_every_run())]

        #[test]
        fn any_text_is_read_or_refused(parts in prop::collection::vec(
            prop::sample::select(vec![
                "[submodule \"a\"]\n", "[submodule \"", "\"]\n", "path = b\n", "url = ../c\n", "url", "=", "\\", "\"", "\n", "\0",
                "[include]\npath = ", ".gitmodules", "#", "\t", "[", "]", ".", "\u{e9}", "path = ../../x\n",
            ]),
            0..24,
        )) {
            for (path, module) in parse(parts.concat().as_bytes()).unwrap_or_default() {
                prop_assert!(!path.contains('\n') && !module.url.contains('\n'));
            }
        }
    }
}
