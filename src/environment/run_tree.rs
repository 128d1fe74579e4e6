//! The tree that tests run in: the pinned files, what building them added, one commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::building::{Build, Source, Wheel};
use super::construction::Inputs;
use super::install::Installer;
use super::lock::Lock;
use super::tree;
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::record::source::Pinned;

/// So many paths stand in a note.
const NAMED: usize = 20;

/// A run tree, and what came of building it.
pub(super) struct RunTree {
    /// The tree's own distribution; none where it is not a project.
    pub wheel: Option<Wheel>,
    /// What the wheel was built with.
    pub lock: Lock,
    /// What the build added to the tree.
    pub added: Vec<PathBuf>,
    /// Lines of the exclude file.
    pub excluded: Vec<String>,
}

impl RunTree {
    /// Builds the pinned tree and makes the one that tests run in.
    ///
    /// # Errors
    /// The repository's, when its build fails.
    pub(super) fn make(
        inputs: &Inputs<'_>,
        installer: &Installer,
        source_root: &Path,
        tree: &Path,
        variables: &BTreeMap<String, String>,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let pinned = inputs.pinned;
        tree::copy(&pinned.tree, tree)?;
        let before = tree::list(tree)?;
        let (mut wheel, mut lock, mut added) = (None, Lock::default(), Vec::new());
        if let Some(system) = &inputs.project.build {
            (inputs.progress)("building the tree");
            let source = Source::Tree { pinned: &pinned.tree, source_root };
            let built = Build { installer, source, system, variables }.run()?;
            if let Some((_step, left)) = &built.left {
                added = take_over(left, &before, tree, notes)?;
            }
            if built.wheel.method == "path" {
                notes.push(
                    "the build backend makes no editable wheels; the source root is put on the path"
                        .to_owned(),
                );
            }
            (wheel, lock) = (Some(built.wheel), built.lock);
        } else {
            notes.push("the tree is no installable project; its root is put on the path".to_owned());
        }
        let mut excluded: Vec<String> = tree::EXCLUDED.map(str::to_owned).into();
        let lines = tree::excluded(added.iter().map(PathBuf::as_path), &before);
        excluded.extend(lines.into_iter().filter(|line| !line.ends_with(".egg-info/")));
        let seconds = tree::seconds(&pinned.pinned_at)
            .ok_or_else(|| Error::internal(format!("`{}` is not an RFC 3339 time", pinned.pinned_at)))?;
        tree::commit(tree, &before, seconds, &excluded)?;
        Ok(RunTree { wheel, lock, added, excluded })
    }

    /// The tree must be the pinned one, with what the build added and nothing else.
    ///
    /// # Errors
    /// The harness's, when it is not.
    pub(super) fn check(&self, pinned: &Pinned, tree: &Path) -> Result<()> {
        let mut expected = tree::list(&pinned.tree)?;
        let found = tree::list(tree)?;
        let mut differ: Vec<&PathBuf> = found
            .iter()
            .filter(|(path, hash)| expected.remove(*path).as_ref() != Some(*hash))
            .map(|(path, _)| path)
            .filter(|path| !self.added.contains(path) && !tree::is_byte_code(path))
            .collect();
        differ.extend(expected.keys());
        match differ.first() {
            None => Ok(()),
            Some(path) => Err(Error::harness(format!(
                "the tree is no longer what was pinned: {} is not as it should be",
                path.display()
            ))),
        }
    }
}

/// Copies what a build added to its tree into the one that tests run in; gives the paths.
fn take_over(
    left: &Path,
    pinned: &tree::Listing,
    tree: &Path,
    notes: &mut Vec<String>,
) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(left)?;
    let left = tree::left(&folder, pinned)?;
    let names = |paths: &[PathBuf]| {
        let names: Vec<String> = paths.iter().take(NAMED).map(|path| path.display().to_string()).collect();
        let more = paths.len().saturating_sub(NAMED);
        names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
    };
    if !left.altered.is_empty() {
        notes.push(format!("the build changed {}; the tests see them as pinned", names(&left.altered)));
    }
    if !left.refused.is_empty() {
        notes.push(format!("the build left {}, which was not taken over", names(&left.refused)));
    }
    tree::add(&folder, &left.added, tree)?;
    let added: Vec<PathBuf> = left.added.into_iter().map(|entry| entry.path).collect();
    if !added.is_empty() {
        notes.push(format!("the build added {}", names(&added)));
    }
    Ok(added)
}
