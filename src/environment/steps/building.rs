//! Wheels made of source: of the tree itself, of source distributions, of commits that a requirement names. Build hooks are
//! foreign code: each runs offline, in folders of its own, and what it leaves is checked before it is used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::asked::Asked;
use super::install::{Installer, Target};
use super::own_wheel;
use super::rust::Rust;
use super::step::{OUT, Step};
use super::taken::{answer, take_wheel};
use super::wheel::Wheel;
use crate::backend::Mount;
use crate::beneath::Folder;
use crate::environment::declared::crates::{self, LARGEST_TEXT};
use crate::environment::declared::project::BuildSystem;
use crate::environment::plan::failure::{StepError, StepResult};
use crate::environment::plan::lock::Lock;
use crate::environment::plan::recipe::Wanted;
use crate::error::Result;

/// The script that calls build hooks.
pub(in crate::environment) const HOOKS: &str = include_str!("hooks.py");
/// The build environment, as hooks see it.
const BUILD: &str = "/opt/build";
/// Where a source distribution is unpacked.
pub(in crate::environment) const SOURCE: &str = "/opt/source";
const HOOK_LIMIT: Duration = Duration::from_hours(1);

/// What hooks may write to the build environment, and to a tree that nobody reads afterwards.
const LAYER: u64 = 1 << 30;

/// What compiles Python: a module that it made is what the project has in place of the source beside it.
const COMPILERS: [&str; 4] = ["cython", "mypy", "nuitka", "pythran"];

/// What is built.
#[derive(Debug, Clone, Copy)]
pub(in crate::environment) enum Source<'a> {
    /// The pinned tree, or a project in a folder of it, editable.
    Tree {
        pinned: &'a Path,
        /// Empty for the project at the root.
        folder: &'a str,
        files: own_wheel::Pinned<'a>,
    },
    /// A folder of source that stays where it is.
    Folder(&'a Path),
    Archive {
        file: &'a Path,
        filename: &'a str,
        /// Its texts that say what is compiled from Rust, by path.
        texts: &'a BTreeMap<String, String>,
    },
}

impl Source<'_> {
    fn words(&self) -> &str {
        match self {
            Source::Tree { folder: "", .. } => "the tree",
            Source::Tree { folder, .. } => folder,
            Source::Folder(_) => "a requirement's source",
            Source::Archive { .. } => "a source distribution",
        }
    }

    /// The crates that building it needs; none where it compiles no Rust.
    fn locked(&self, system: &BuildSystem) -> Result<Option<crates::Locked>> {
        let (root, folder) = match *self {
            Source::Archive { texts, .. } => {
                return Ok(crates::locked("", system, &|path| texts.get(path).cloned()));
            }
            Source::Tree { pinned, folder, .. } => (pinned, folder),
            Source::Folder(folder) => (folder, ""),
        };
        let root = Folder::open(root)?;
        let read = |path: &str| {
            let bytes = root.read_through_links(Path::new(path), LARGEST_TEXT).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(crates::locked(folder, system, &read))
    }
}

/// What came of a build.
#[derive(Debug)]
pub(in crate::environment) struct Built {
    pub wheel: Wheel,
    pub lock: Lock,
    /// What a person should know of it.
    pub notes: Vec<String>,
    /// The compiler of its Rust code.
    pub rust: Option<String>,
    /// Whether Python is compiled.
    pub compiles: bool,
    /// The tree as the hooks left it: hostile. It goes with the step.
    pub left: Option<(Step, PathBuf)>,
}

#[derive(Debug, Deserialize)]
struct Required {
    requires: Vec<String>,
}

/// One build: the installer that its requirements come from, and where its wheel is kept.
pub(in crate::environment) struct Build<'a> {
    pub installer: &'a Installer,
    pub source: Source<'a>,
    pub system: &'a BuildSystem,
    /// Distributions of the tree that it is built with.
    pub own: &'a [Wheel],
    /// Variables for the hooks, e.g. a version that git would have told.
    pub variables: &'a BTreeMap<String, String>,
}

impl Build<'_> {
    /// Makes the build environment and the wheel.
    pub(in crate::environment) fn run(&self) -> StepResult<Built> {
        let rust = Rust::prepare(&self.installer.tooling, self.source.locked(self.system)?)?;
        let mut asked = Asked::default();
        loop {
            match self.run_with(&rust, &asked) {
                Err(StepError::Recoverable(failure))
                    if asked.add(
                        &self.system.backend,
                        |module| self.has(module),
                        || self.declares(),
                        &failure.output,
                    ) => {}
                Ok(mut built) => {
                    built.notes.extend(asked.notes());
                    return Ok(built);
                }
                Err(trouble) => return Err(rust.explain(trouble)),
            }
        }
    }

    /// Whether a module of this name is at the root of what is built.
    fn has(&self, module: &str) -> bool {
        let (Source::Tree { pinned: root, folder, .. }, false) = (&self.source, module.contains('.')) else {
            return false;
        };
        Folder::open(root).is_ok_and(|root| {
            root.has_file(&Path::new(folder).join(format!("{module}.py")))
                || root.has_file(&Path::new(folder).join(module).join("__init__.py"))
        })
    }

    /// Texts in which what is built says what it needs.
    fn declares(&self) -> Vec<String> {
        let Source::Tree { pinned, folder, .. } = self.source else { return Vec::new() };
        let Ok(root) = Folder::open(pinned) else { return Vec::new() };
        let names = ["setup.py", "setup.cfg", "pyproject.toml", "requirements.txt"];
        let read = |name: &&str| root.read_through_links(&Path::new(folder).join(name), LARGEST_TEXT).ok();
        names.iter().filter_map(read).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
    }

    fn run_with(&self, rust: &Rust, asked: &Asked) -> StepResult<Built> {
        let place = self.installer.tooling.step()?;
        let venv = place.folder("build")?;
        let mut wanted = Wanted { requirements: self.system.requires.clone(), ..Wanted::default() };
        wanted.requirements.extend(asked.requirements.iter().cloned());
        let mut lock = self.install(&wanted, &venv)?;
        let stage = format!("asking {} for its build requirements", self.source.words());
        let step = self.installer.tooling.step()?;
        self.hook(&stage, ("requires", asked), &venv, (&step, rust))?;
        let required: Required = answer(&step, &stage)?;
        if !required.requires.is_empty() {
            wanted.requirements.extend(required.requires);
            lock = self.install(&wanted, &venv)?;
        }
        let stage = format!("building {}", self.source.words());
        let step = self.installer.tooling.step()?;
        let left = self.hook(&stage, ("build", asked), &venv, (&step, rust))?;
        let wheel = take_wheel(&step, &self.installer.tooling.folder.join("wheels"), &stage)?;
        let (mut notes, rust) = (rust.notes(), rust.version().map(str::to_owned));
        let compiles = COMPILERS.iter().any(|name| lock.has(name));
        let (wheel, note) = match self.source {
            Source::Tree { files, .. } => {
                own_wheel::look_over(&self.installer.tooling, wheel, &venv, files, compiles)?
            }
            _ => (wheel, None),
        };
        notes.extend(note);
        Ok(Built { wheel, lock, notes, rust, compiles, left: left.map(|tree| (step, tree)) })
    }

    fn install(&self, wanted: &Wanted, venv: &Path) -> StepResult<Lock> {
        let lock = if wanted.requirements.is_empty() {
            Lock::default()
        } else {
            self.installer.resolve("resolving the build requirements", wanted, self.own)?
        };
        let target = Target { host: venv, inside: Path::new(BUILD), path: None };
        self.installer.install("installing the build requirements", &lock, self.own, target)?;
        Ok(lock)
    }

    /// Calls one hook. Gives the tree that it may have written to, where somebody reads it afterwards.
    fn hook(
        &self,
        stage: &str,
        (action, asked): (&str, &Asked),
        venv: &Path,
        (step, rust): (&Step, &Rust),
    ) -> StepResult<Option<PathBuf>> {
        let tooling = &self.installer.tooling;
        let places = tooling.backend.places();
        let editable = matches!(self.source, Source::Tree { .. });
        let root = if editable { places.root.clone() } else { PathBuf::from(SOURCE) };
        let mut project = root.clone();
        let mut mounts = vec![Mount::Overlay { host: venv.to_owned(), inside: BUILD.into(), bytes: LAYER }];
        let (mut archive, mut left, mut source_root) = (None, None, PathBuf::new());
        match self.source {
            Source::Tree { pinned, folder, files } => {
                files.source_root.clone_into(&mut source_root);
                project.push(folder);
                if action == "build" {
                    let host = step.folder("tree")?;
                    super::tree::copy(pinned, &host)?;
                    mounts.push(Mount::Writable { host: host.clone(), inside: root.clone() });
                    left = Some(host);
                } else {
                    mounts.push(Mount::Overlay {
                        host: pinned.to_owned(),
                        inside: root.clone(),
                        bytes: LAYER,
                    });
                }
            }
            Source::Folder(folder) => {
                mounts.push(Mount::Overlay { host: folder.to_owned(), inside: root.clone(), bytes: LAYER });
            }
            Source::Archive { file, filename, .. } => {
                archive = Some(step.give_file(filename, file)?);
                mounts.push(Mount::Scratch { host: step.folder("source")?, inside: root.clone() });
            }
        }
        let script = step.give("hooks.py", HOOKS)?;
        let spec = serde_json::json!({
            "root": project,
            "backend": asked.backend(&self.system.backend),
            "backend_path": self.system.backend_path,
            "source_root": source_root,
            "editable": editable,
            "archive": archive,
        });
        let spec = step.give("spec.json", &spec.to_string())?;
        let python = format!("{BUILD}/bin/python");
        let argv = [&python, &script, action, &spec, OUT].map(str::to_owned).into();
        let mut job = tooling.job(argv, step, mounts);
        job.cwd = project;
        let path = job.env.entry("PATH".to_owned()).or_default();
        *path = format!("{BUILD}/bin:{path}");
        rust.add_to(&mut job, step)?;
        job.env.extend(self.variables.clone());
        tooling.run(stage, &job, HOOK_LIMIT)?;
        Ok(left)
    }
}
