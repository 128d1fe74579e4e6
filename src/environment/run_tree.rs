//! The tree that tests run in: the pinned files, what building them added, one commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::building::{Build, Source, Wheel};
use super::construction::Inputs;
use super::install::{Attempt, Installer, StepError};
use super::lock::Lock;
use super::members::Member;
use super::project::BuildSystem;
use super::tree;
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::record::source::Pinned;

/// So many paths stand in a note.
const NAMED: usize = 20;

/// A run tree, and what came of building it.
pub(super) struct RunTree {
    /// The distribution of the project at the root; none where there is none.
    pub wheel: Option<Wheel>,
    /// Those of the members that could be built.
    pub members: Vec<(Member, Wheel)>,
    /// What the wheels were built with.
    pub lock: Lock,
    /// What the build added to the tree.
    pub added: Vec<PathBuf>,
    /// Lines of the exclude file.
    pub excluded: Vec<String>,
}

impl RunTree {
    /// Builds the pinned tree and its members, and makes the one that tests run in. A member that cannot be built is left
    /// out with a note.
    ///
    /// # Errors
    /// The repository's, when the build of the project at its root fails.
    pub(super) fn make(
        inputs: &Inputs<'_>,
        installer: &Installer,
        members: &[Member],
        tree: &Path,
        variables: &BTreeMap<String, String>,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let pinned = inputs.pinned;
        tree::copy(&pinned.tree, tree)?;
        let before = tree::list(tree)?;
        let (mut wheel, mut lock, mut added) = (None, Lock::default(), Vec::new());
        let mut build = |folder: &str, system: &BuildSystem, notes: &mut Vec<String>| -> Attempt<_> {
            let source_root = super::construction::source_root(inputs, folder);
            let source = Source::Tree { pinned: &pinned.tree, folder, source_root: &source_root };
            let built = Build { installer, source, system, variables }.run()?;
            if let Some((_step, left)) = &built.left {
                take_over(left, &before, tree, &mut added, notes)?;
            }
            Ok((built.wheel, built.lock))
        };
        if let Some(system) = &inputs.project.build {
            (inputs.progress)("building the tree");
            let built = build("", system, notes)?;
            if built.0.method == "path" {
                notes.push(
                    "the build backend makes no editable wheels; the source root is put on the path"
                        .to_owned(),
                );
            }
            (wheel, lock) = (Some(built.0), built.1);
        } else {
            notes.push("the tree is no installable project; its root is put on the path".to_owned());
        }
        let mut made = Vec::new();
        for member in members {
            let Some(system) = &member.project.build else { continue };
            (inputs.progress)(&format!("building {}", member.folder));
            match build(&member.folder, system, notes) {
                Ok((wheel, with)) => {
                    notes.push(format!("{} is installed, too: {}", member.folder, member.reason));
                    lock = lock.and(&with);
                    made.push((Member { name: Some(wheel.name.clone()), ..member.clone() }, wheel));
                }
                Err(StepError::Fatal(error)) => return Err(error),
                Err(StepError::Recoverable(failure)) => {
                    let words = crate::text::last_line(&failure.output);
                    notes.push(format!("{} cannot be built and is left out: {words}", member.folder));
                }
            }
        }
        let mut excluded: Vec<String> = tree::EXCLUDED.map(str::to_owned).into();
        let lines = tree::excluded(added.iter().map(PathBuf::as_path), &before);
        excluded.extend(lines.into_iter().filter(|line| !line.ends_with(".egg-info/")));
        let seconds = tree::seconds(&pinned.pinned_at)
            .ok_or_else(|| Error::internal(format!("`{}` is not an RFC 3339 time", pinned.pinned_at)))?;
        tree::commit(tree, &before, seconds, &excluded)?;
        Ok(RunTree { wheel, members: made, lock, added, excluded })
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

/// Copies what a build added to its tree into the one that tests run in, beside what others `added`.
fn take_over(
    left: &Path,
    pinned: &tree::Listing,
    tree: &Path,
    added: &mut Vec<PathBuf>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let folder = Folder::open(left)?;
    let mut left = tree::left(&folder, pinned)?;
    // What another build has left is neither replaced nor followed.
    left.added.retain(|entry| {
        !added.iter().any(|path| path.starts_with(&entry.path) || entry.path.starts_with(path))
    });
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
    let paths: Vec<PathBuf> = left.added.into_iter().map(|entry| entry.path).collect();
    if !paths.is_empty() {
        notes.push(format!("the build added {}", names(&paths)));
    }
    added.extend(paths);
    Ok(())
}
