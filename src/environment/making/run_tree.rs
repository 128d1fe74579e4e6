//! The tree that tests run in: the pinned files, what building them added, one commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::inputs::{self, Inputs};
use crate::beneath::Folder;
use crate::environment::declared::members::Member;
use crate::environment::declared::project::BuildSystem;
use crate::environment::plan::failure::{Failure, StepError, StepResult};
use crate::environment::plan::lock::Lock;
use crate::environment::steps::building::{Build, Source};
use crate::environment::steps::install::Installer;
use crate::environment::steps::own_wheel::Pinned as PinnedFiles;
use crate::environment::steps::precedence::{Importable, Listing, is_installed};
use crate::environment::steps::tree;
use crate::environment::steps::wheel::Wheel;
use crate::error::{Error, Result};
use crate::record::source::Pinned;

/// So many paths stand in a note.
const NAMED: usize = 20;

/// A run tree, and what came of building it.
pub(in crate::environment) struct RunTree {
    /// The distribution of the project at the root; none where there is none.
    pub wheel: Option<Wheel>,
    /// Why that project could not be built.
    pub failure: Option<Failure>,
    /// Those of the members that could be built.
    pub members: Vec<(Member, Wheel)>,
    /// What the wheels were built with.
    pub lock: Lock,
    /// The compiler of their Rust code.
    pub rust: Option<String>,
    /// What the build added to the tree.
    pub added: Vec<PathBuf>,
    /// Modules among it, with the names by which they can be imported.
    pub modules: Vec<(PathBuf, Vec<PathBuf>)>,
    /// Lines of the exclude file.
    pub excluded: Vec<String>,
}

impl RunTree {
    /// Builds the pinned tree and its members, and makes the one that tests run in. A member that cannot be built is left
    /// out with a note; the project at the root is left out as well, and its failure is kept.
    ///
    /// # Errors
    /// What no other build could do better about, and an answer of the root's build that no build gives.
    pub(in crate::environment) fn make(
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
        let importable = Importable::of(before.keys());
        let mut site = Builds {
            inputs,
            installer,
            variables,
            tree,
            before: &before,
            importable: &importable,
            added: Vec::new(),
            rust: None,
        };
        let (mut wheel, mut failure, mut lock) = (None, None, Lock::default());
        let mut members = members.to_vec();
        let mut with = Vec::new();
        if let Some(system) = &inputs.project.build {
            (inputs.progress)("building the tree");
            let mut built = site.build("", system, &[], notes);
            if let Err(StepError::Recoverable(trouble)) = &built {
                // What it is built with may be another project of the tree.
                let builders = trouble.unknown.iter().filter_map(|name| inputs::builder(inputs, name));
                let builders: Vec<Member> = builders.collect();
                for builder in &builders {
                    with.extend(site.member(builder, notes)?);
                }
                if !with.is_empty() {
                    members.retain(|one| builders.iter().all(|builder| builder.folder != one.folder));
                    let wheels: Vec<Wheel> = with.iter().map(|(_, (wheel, _))| wheel.clone()).collect();
                    built = site.build("", system, &wheels, notes);
                }
            }
            match built {
                Ok((own, with)) => {
                    let words =
                        "the build backend makes no editable wheels; the source root is put on the path";
                    notes.extend((own.method == "path").then(|| words.to_owned()));
                    (wheel, lock) = (Some(own), with);
                }
                Err(StepError::Fatal(error)) => return Err(error),
                Err(StepError::Recoverable(refused)) if refused.is_refused => {
                    return Err(refused.into_error());
                }
                Err(StepError::Recoverable(trouble)) => failure = Some(trouble),
            }
        } else {
            notes.push("the tree is not an installable project; its root is put on the path".to_owned());
        }
        for member in &members {
            with.extend(site.member(member, notes)?);
        }
        let mut made = Vec::new();
        for (member, (wheel, with)) in with {
            lock = lock.and(&with);
            made.push((Member { name: Some(wheel.name.clone()), ..member }, wheel));
        }
        let (added, rust) = (site.added, site.rust);
        let mut excluded: Vec<String> = tree::EXCLUDED.map(str::to_owned).into();
        let lines = tree::excluded(added.iter().map(PathBuf::as_path), &before);
        excluded.extend(lines.into_iter().filter(|line| !line.ends_with(".egg-info/")));
        let seconds = tree::seconds(&pinned.pinned_at)
            .ok_or_else(|| Error::internal(format!("`{}` is not an RFC 3339 time", pinned.pinned_at)))?;
        tree::commit(tree, &before, seconds, &excluded)?;
        let named =
            |path: &PathBuf| (path.clone(), importable.imported_as(path, tree.join(path).is_symlink()));
        let modules = added.iter().map(named);
        let modules = modules.filter(|(_, names)| !names.is_empty()).collect();
        Ok(RunTree { wheel, failure, members: made, lock, rust, added, modules, excluded })
    }

    /// The note of what was added and is not in the tree any more: see [`yield_to_installed`].
    pub(in crate::environment) fn yielded(&self, tree: &Path) -> Option<String> {
        let is_gone = |path: &&PathBuf| tree.join(path).symlink_metadata().is_err();
        let gone: Vec<PathBuf> = self.added.iter().filter(is_gone).cloned().collect();
        let words = "which has the name of an installed distribution, and is taken out again";
        (!gone.is_empty()).then(|| format!("the build added {}, {words}", names(&gone)))
    }

    /// The tree must be the pinned one, with what the build added and nothing else.
    ///
    /// # Errors
    /// The harness's, when it is not.
    pub(in crate::environment) fn check(&self, pinned: &Pinned, tree: &Path) -> Result<()> {
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

/// The builds of one tree.
struct Builds<'a> {
    inputs: &'a Inputs<'a>,
    installer: &'a Installer,
    variables: &'a BTreeMap<String, String>,
    /// The tree that tests run in, and what it was before them.
    tree: &'a Path,
    before: &'a Listing,
    /// What can be imported from the pinned one.
    importable: &'a Importable,
    /// What they added to it.
    added: Vec<PathBuf>,
    /// The compiler of their Rust code.
    rust: Option<String>,
}

impl Builds<'_> {
    /// The project in a folder, `own` distributions of the tree at hand, with what it was built with.
    fn build(
        &mut self,
        folder: &str,
        system: &BuildSystem,
        own: &[Wheel],
        notes: &mut Vec<String>,
    ) -> StepResult<(Wheel, Lock)> {
        let source_root = inputs::source_root(self.inputs, folder);
        let files =
            PinnedFiles { listing: self.before, importable: self.importable, source_root: &source_root };
        let source = Source::Tree { pinned: &self.inputs.pinned.tree, folder, files };
        let Builds { installer, variables, .. } = *self;
        let built = Build { installer, source, system, own, variables }.run()?;
        if let Some((_step, left)) = &built.left {
            let folder = Folder::open(left)?;
            let left = tree::left(&folder, self.before, self.importable, built.compiles)?;
            self.take_over(&folder, left, notes)?;
        }
        notes.extend(built.notes);
        self.rust = built.rust.or(self.rust.take());
        Ok((built.wheel, built.lock))
    }

    /// A project below the root; none, with a note, where it cannot be built.
    fn member(
        &mut self,
        member: &Member,
        notes: &mut Vec<String>,
    ) -> Result<Option<(Member, (Wheel, Lock))>> {
        let Some(system) = &member.project.build else { return Ok(None) };
        (self.inputs.progress)(&format!("building {}", member.folder));
        match self.build(&member.folder, system, &[], notes) {
            Ok(built) => {
                notes.push(format!("{} is installed, too: {}", member.folder, member.reason));
                Ok(Some((member.clone(), built)))
            }
            Err(StepError::Fatal(error)) => Err(error),
            Err(StepError::Recoverable(failure)) => {
                let words = crate::text::last_line(&failure.output);
                notes.push(format!("{} cannot be built and is left out: {words}", member.folder));
                Ok(None)
            }
        }
    }

    /// Copies what a build added to its tree into the one that tests run in, beside what others added.
    fn take_over(&mut self, from: &Folder, mut left: tree::Left, notes: &mut Vec<String>) -> Result<()> {
        // What another build has left is neither replaced nor followed.
        left.added.retain(|entry| {
            !self.added.iter().any(|path| path.starts_with(&entry.path) || entry.path.starts_with(path))
        });
        if !left.altered.is_empty() {
            notes.push(format!("the build changed {}; the tests see them as pinned", names(&left.altered)));
        }
        if !left.refused.is_empty() {
            notes.push(format!("the build left {}, which was not taken over", names(&left.refused)));
        }
        tree::add(from, &left.added, self.tree)?;
        let paths: Vec<PathBuf> = left.added.into_iter().map(|entry| entry.path).collect();
        if !paths.is_empty() {
            notes.push(format!("the build added {}", names(&paths)));
        }
        self.added.extend(paths);
        Ok(())
    }
}

/// Removes what a build added from a tree where an import would find it before what is installed.
///
/// # Errors
/// IO errors.
pub(in crate::environment) fn yield_to_installed(
    modules: &[(PathBuf, Vec<PathBuf>)],
    tree: &Path,
    venv: &Path,
) -> Result<()> {
    let versions = fs_err::read_dir(venv.join("lib")).into_iter().flatten().flatten();
    let sites: Vec<PathBuf> = versions.map(|version| version.path().join("site-packages")).collect();
    for (path, names) in modules {
        let is_found = names.iter().any(|name| sites.iter().any(|site| is_installed(site, name)));
        if is_found && tree.join(path).symlink_metadata().is_ok() {
            fs_err::remove_file(tree.join(path))?;
        }
    }
    Ok(())
}

fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    let more = paths.len().saturating_sub(NAMED);
    names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}
