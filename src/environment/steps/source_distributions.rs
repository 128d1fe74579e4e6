//! Wheels of source distributions, and of the commits that requirements name: built when they are asked for, those of source
//! distributions kept in the cache.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::building::{Build, HOOKS, SOURCE, Source};
use super::install::Installer;
use super::step::{OUT, Step};
use super::taken::answer;
use super::tooling::Tooling;
use super::wheel::{Builder, Wheel};
use crate::backend::Mount;
use crate::beneath::Folder;
use crate::environment::declared::declarations::Files;
use crate::environment::declared::project::{BuildSystem, Project};
use crate::environment::plan::failure::StepResult;
use crate::error::{Error, Result};
use crate::index::{Sdist, WheelFile, Wheels};
use crate::record::id::hash_parts;
use crate::store;

const SHORT_LIMIT: Duration = Duration::from_mins(10);

/// What a source distribution says of its build.
#[derive(Debug, Deserialize)]
struct Declared {
    pyproject: Option<String>,
    cargo: BTreeMap<String, String>,
}

/// Builds wheels of source distributions when the door is asked for them.
pub(in crate::environment) struct Building {
    tooling: Tooling,
}

impl std::fmt::Debug for Building {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Building").field("folder", &self.tooling.folder).finish_non_exhaustive()
    }
}

/// A wheel in the cache.
#[derive(Debug, Serialize, Deserialize)]
struct CachedWheel {
    sha256: String,
    metadata: String,
    /// The compiler of its Rust code.
    #[serde(default)]
    rust: Option<String>,
}

/// What installs for the tree itself.
pub(in crate::environment) fn installer(tooling: Tooling) -> Installer {
    Installer::new(tooling.clone(), Arc::new(Building::new(tooling)))
}

impl Building {
    fn new(tooling: Tooling) -> Self {
        Building { tooling }
    }

    /// What installs the requirements of a build, each for the one before. What belongs to the tree can be among them: a
    /// tree that is a build tool.
    fn installer(&self, chain: Vec<String>) -> Installer {
        let tooling = Tooling { refused: BTreeMap::new(), ..self.tooling.clone() };
        Installer::of_dependency(tooling.clone(), Arc::new(Building::new(tooling)), chain)
    }

    fn find_kept(&self, place: &Path) -> Result<Option<WheelFile>> {
        let path = place.join("wheel");
        let store::Sealed::Whole(kept) = store::find_sealed::<CachedWheel>(&place.join("wheel.json"))? else {
            return Ok(None);
        };
        // What an image compiles with is part of the image, which the place names.
        let is_of_this_compiler =
            |rust: &String| self.tooling.base_image.is_some() || *rust == self.tooling.toolchains.key();
        let sha256 = fs_err::read(&path).map(|bytes| crate::record::id::sha256_hex(&bytes));
        let whole = sha256.is_ok_and(|sha256| sha256 == kept.sha256)
            && kept.rust.as_ref().is_none_or(is_of_this_compiler);
        if whole {
            store::mark_used(place);
            tracing::info!("wheel {} is reused", place.display());
        }
        Ok(whole.then(|| WheelFile { path, sha256: kept.sha256, metadata: kept.metadata.into_bytes() }))
    }

    /// What the source distribution says of its build; unpacked where it can do no harm.
    fn declared(&self, step: &Step, filename: &str, file: &Path) -> StepResult<Declared> {
        let stage = "unpacking a source distribution";
        let tooling = &self.tooling;
        let script = step.give("hooks.py", HOOKS)?;
        let archive = step.give_file(filename, file)?;
        let spec =
            step.give("spec.json", &serde_json::json!({"root": SOURCE, "archive": archive}).to_string())?;
        let python = tooling.python.executable.to_string_lossy().into_owned();
        let argv = [&python, "-I", "-S", &script, "declares", &spec, OUT].map(str::to_owned).into();
        let mounts = vec![Mount::Scratch { host: step.folder("source")?, inside: SOURCE.into() }];
        tooling.run(stage, &tooling.job(argv, step, mounts), SHORT_LIMIT)?;
        answer(step, stage)
    }
}

impl Builder for Building {
    /// The wheel of a source distribution: the one that an earlier build made with the same interpreter, of the same day of
    /// the same indexes, or a new one.
    fn of_archive(&self, sdist: &Sdist) -> Result<WheelFile> {
        let tooling = &self.tooling;
        let key = hash_parts(&[
            "wheel-2",
            HOOKS,
            &sdist.sha256,
            &tooling.python.version,
            &tooling.python.prefix.to_string_lossy(),
            &tooling.exclude_newer.to_string(),
            // What it is built with comes from there.
            &tooling.index.key(),
            tooling.base_image.as_deref().unwrap_or_default(),
        ]);
        let place = tooling.wheels.join(&key[..32]);
        if let Some(kept) = self.find_kept(&place)? {
            return Ok(kept);
        }
        let step = tooling.step()?;
        let declared = self.declared(&step, &sdist.filename, &sdist.path)?;
        let system = build_system(declared.pyproject.as_deref())?;
        let installer = self.installer(sdist.building.clone());
        let source = Source::Archive { file: &sdist.path, filename: &sdist.filename, texts: &declared.cargo };
        let variables = BTreeMap::new();
        let built = Build { installer: &installer, source, system: &system, own: &[], variables: &variables }
            .run()?;
        for note in &built.notes {
            tracing::info!("{}: {note}", sdist.filename);
        }
        keep(&place, &built.wheel, built.rust)
    }

    /// The wheel of a folder of source; the variables are for its hooks.
    fn of_folder(&self, name: &str, folder: &Path, variables: &BTreeMap<String, String>) -> Result<Wheel> {
        let pyproject = Folder::open(folder)?.read(Path::new("pyproject.toml"), 1 << 20).ok();
        let text = pyproject.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let system = build_system(text.as_deref())?;
        let installer = self.installer(vec![name.to_owned()]);
        let source = Source::Folder(folder);
        Ok(Build { installer: &installer, source, system: &system, own: &[], variables }.run()?.wheel)
    }
}

impl Wheels for Building {
    fn wheel(&self, sdist: &Sdist) -> Result<WheelFile, String> {
        self.of_archive(sdist).map_err(|error| {
            let detail = error.detail().map(|detail| format!("\n{detail}")).unwrap_or_default();
            format!("{error}{detail}")
        })
    }
}

/// What builds a source distribution: what it says, else what PEP 517 says of those that say nothing.
fn build_system(pyproject: Option<&str>) -> Result<BuildSystem> {
    let files = Files::from_texts([("setup.py", ""), ("pyproject.toml", pyproject.unwrap_or_default())]);
    let build = Project::parse(&files)?.build;
    build.ok_or_else(|| Error::internal("a tree with a setup.py has no build system"))
}

fn keep(place: &Path, wheel: &Wheel, rust: Option<String>) -> Result<WheelFile> {
    fs_err::create_dir_all(place)?;
    store::write_atomic(&place.join("wheel"), &fs_err::read(&wheel.file)?)?;
    let kept = CachedWheel { sha256: wheel.sha256.clone(), metadata: wheel.metadata.clone(), rust };
    store::write_sealed(&place.join("wheel.json"), &kept)?;
    Ok(WheelFile { path: place.join("wheel"), sha256: kept.sha256, metadata: kept.metadata.into_bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_distribution_that_says_nothing_is_built_as_ever() {
        let system = build_system(None).unwrap();
        assert_eq!(system.backend, "setuptools.build_meta:__legacy__");
        let said = build_system(Some("[build-system]\nrequires = ['x']\nbuild-backend = 'x.y'\n")).unwrap();
        assert_eq!((said.requires, said.backend.as_str()), (vec!["x".to_owned()], "x.y"));
    }
}
