//! The steps of one environment: resolving, installing, calling build hooks; each step one job in the sandbox, with folders
//! of its own.
//!
//! The rule that every step keeps: nothing that runs code of a repository or of a dependency reaches a network or a login,
//! and what such code leaves is read as hostile ([`Step::out`]). uv runs nothing foreign: it builds nothing, and installs
//! only into virtual environments that are empty. It reaches the package index through the driver's [`Door`] alone.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::direct::{Direct, Site};
use super::own_wheel;
use super::step::{OUT, Step};
use super::taken::refused;
use super::tooling::Tooling;
use super::uv::{self, Compile};
use super::wheel::{Builder, Wheel};
use crate::backend::{Finished, Mount};
use crate::environment::plan::failure::{Failure, StepError, StepResult};
use crate::environment::plan::lock::Lock;
use crate::environment::plan::recipe::Wanted;
use crate::error::Error;
use crate::index::{self, Door};
use crate::requirement::{normalize, parse};

// Where things lie inside, beside the places of the backend.
const UV: &str = "/opt/uv/uv";
const UV_CACHE: &str = "/opt/uv/cache";

const RESOLVE_LIMIT: Duration = Duration::from_hours(2);
const INSTALL_LIMIT: Duration = Duration::from_hours(1);
const SHORT_LIMIT: Duration = Duration::from_mins(10);

/// Resolves and installs; one for the tree, and one for each source distribution while it is built.
pub struct Installer {
    pub tooling: Tooling,
    door: Arc<Door>,
    builder: Arc<dyn Builder>,
    direct: Direct,
}

/// Where an environment is made, on the host and inside.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub host: &'a Path,
    pub inside: &'a Path,
    /// A folder to put on the path.
    pub path: Option<&'a Path>,
}

impl Installer {
    /// One whose source distributions a builder turns into wheels.
    pub(in crate::environment) fn new(tooling: Tooling, builder: Arc<dyn Builder>) -> Self {
        Installer::of_dependency(tooling, builder, Vec::new())
    }

    /// One for what is needed to build source distributions, each for the one before.
    pub(in crate::environment) fn of_dependency(
        tooling: Tooling,
        builder: Arc<dyn Builder>,
        chain: Vec<String>,
    ) -> Self {
        let (index, wheels) = (Arc::clone(&tooling.index), Arc::clone(&builder));
        let door = Door::new(index, Some(tooling.exclude_newer.timestamp()), tooling.refused.clone(), wheels)
            .within(chain);
        Installer { tooling, door: Arc::new(door), builder, direct: Direct::default() }
    }

    /// What a person should know of what the index gave.
    pub fn notes(&self) -> Vec<String> {
        let undated: BTreeSet<String> = self.door.asked().undated.into_iter().map(|(name, _)| name).collect();
        if undated.is_empty() {
            return Vec::new();
        }
        let names: Vec<String> = undated.into_iter().collect();
        vec![format!(
            "the index says of no upload time for {}: `exclude_newer` does not bind them",
            names.join(", ")
        )]
    }

    /// Resolves and locks.
    pub fn resolve(&self, stage: &str, wanted: &Wanted, own: &[Wheel]) -> StepResult<Lock> {
        let step = self.tooling.step()?;
        let site = Site { tooling: &self.tooling, door: &self.door, builder: &*self.builder };
        let (requirements, extras) = own_extras(wanted, own);
        let about: Vec<(&str, &str, Vec<String>)> = own
            .iter()
            .zip(&extras)
            .map(|(own, extras)| (own.name.as_str(), own.metadata.as_str(), extras.clone()))
            .collect();
        let local = self.direct.localize(site, &requirements, &about)?;
        let (mut input, mut overrides) = (local.requirements, Vec::from_iter(local.overrides));
        for (own, extras) in own.iter().zip(&extras) {
            let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
            let place = step.give_file(&own.filename, &own.file)?;
            let tree = format!("{}{extras} @ file://{place}", own.name);
            // What depends on the tree's distribution gets the tree, whatever version it asks for.
            overrides.push(tree.clone());
            input.push(tree);
        }
        let overrides = Some(overrides.join("\n") + "\n").filter(|text| text.len() > 1);
        let overrides = overrides.map(|text| step.give("overrides.txt", &text)).transpose()?;
        let input = step.give("input.in", &(input.join("\n") + "\n"))?;
        let constraints = step.give("constraints.txt", &(wanted.constraints.join("\n") + "\n"))?;
        let compile = Compile {
            python: &self.tooling.python.executable,
            input: &input,
            constraints: Some(constraints.as_str()).filter(|_| !wanted.constraints.is_empty()),
            overrides: overrides.as_deref(),
            output: &format!("{OUT}/output.lock"),
            without: own.iter().map(|own| own.name.as_str()).collect(),
        };
        self.uv(stage, &step, uv::compile_arguments(&compile), Vec::new(), RESOLVE_LIMIT)?;
        let text = step.out()?.read(Path::new("output.lock"), LARGEST_LOCK)?;
        let lock = Lock::parse(&String::from_utf8_lossy(&text));
        let held = lock.held_to(&wanted.hashes).map_err(|output| {
            StepError::Recoverable(Failure {
                stage: stage.to_owned(),
                output,
                hint: "a hash in a requirement of the tree is not of a file of the index; where the index is a mirror \
                       that has others, name the distribution in `requirements`",
                unknown: Vec::new(),
                is_refused: false,
            })
        })?;
        Ok(self.direct.published(&held))
    }

    /// Makes a virtual environment that holds exactly what a lock says, and the wheels of the tree.
    pub fn install(&self, stage: &str, lock: &Lock, own: &[Wheel], target: Target<'_>) -> StepResult<()> {
        loop {
            let built = self.door.asked().built;
            let result = self.install_once(stage, lock, &built, own, target);
            // The hash of a wheel that is built when uv asks for it is not in the list: now it is known.
            let more = self.door.asked().built.len() > built.len();
            match result {
                Err(StepError::Recoverable(_)) if more => {}
                result => return result,
            }
        }
    }

    fn install_once(
        &self,
        stage: &str,
        lock: &Lock,
        built: &BTreeSet<index::Built>,
        own: &[Wheel],
        target: Target<'_>,
    ) -> StepResult<()> {
        self.create_venv(target)?;
        let step = self.tooling.step()?;
        let mut list = self.list(lock, built);
        for own in own {
            let place = step.give_file(&own.filename, &own.file)?;
            let _ = writeln!(list, "{} @ file://{place} --hash=sha256:{}", own.name, own.sha256);
        }
        if list.is_empty() {
            return Ok(());
        }
        let list = step.give("sync.lock", &list)?;
        let venv = Mount::Writable { host: target.host.to_owned(), inside: target.inside.to_owned() };
        let arguments = uv::sync_arguments(target.inside, &list);
        self.uv(stage, &step, arguments, vec![venv], INSTALL_LIMIT)?;
        match own_wheel::shadowing(target.host, own) {
            None => Ok(()),
            Some(name) => {
                let words = "is in the wheel of the tree, and in a distribution that it depends on";
                Err(refused(stage, &format!("{} {words}", name.display())))
            }
        }
    }

    /// The lock as uv installs it: with the hashes of wheels that were built here, and from the door what lies at no index.
    fn list(&self, lock: &Lock, built: &BTreeSet<index::Built>) -> String {
        let mut list = String::new();
        for entry in lock.entries() {
            let (requirement, mut hashes) = match self.direct.wheel(&entry.requirement) {
                Some((local, sha256)) => (local, vec![format!("sha256:{sha256}")]),
                None => (entry.requirement.clone(), entry.hashes.clone()),
            };
            let is_it = |one: &&index::Built| entry.requirement == format!("{}=={}", one.name, one.version);
            hashes.extend(built.iter().filter(is_it).map(|one| format!("sha256:{}", one.wheel_sha256)));
            list.push_str(&requirement);
            for hash in hashes {
                list.push_str(" --hash=");
                list.push_str(&hash);
            }
            list.push('\n');
        }
        list
    }

    fn create_venv(&self, target: Target<'_>) -> StepResult<()> {
        if target.host.symlink_metadata().is_ok() {
            crate::store::discard(target.host)?;
        }
        fs_err::create_dir_all(target.host)?;
        let tooling = &self.tooling;
        let python = tooling.python.executable.to_string_lossy().into_owned();
        let inside = target.inside.to_string_lossy().into_owned();
        let mut argv: Vec<String> = [&python, "-I", "-m", "venv", "--without-pip"].map(str::to_owned).into();
        argv.push(inside);
        let step = tooling.step()?;
        let venv = Mount::Writable { host: target.host.to_owned(), inside: target.inside.to_owned() };
        let job = tooling.job(argv, &step, vec![venv]);
        tooling.run("creating the virtual environment", &job, SHORT_LIMIT)?;
        if let Some(path) = target.path {
            // Nothing foreign has written here yet.
            let site = format!("lib/python{}/site-packages/tree.pth", tooling.python.minor());
            fs_err::write(target.host.join(site), format!("{}\n", path.display()))?;
        }
        Ok(())
    }

    /// Runs uv, which reaches the door and nothing else.
    fn uv(
        &self,
        stage: &str,
        step: &Step,
        arguments: Vec<String>,
        mut mounts: Vec<Mount>,
        limit: Duration,
    ) -> StepResult<Finished> {
        let tooling = &self.tooling;
        let cache = tooling.folder.join("uv");
        fs_err::create_dir_all(&cache)?;
        mounts.push(Mount::ReadOnly { host: tooling.uv.executable.clone(), inside: UV.into() });
        mounts.push(Mount::Scratch { host: cache, inside: UV_CACHE.into() });
        let argv = std::iter::once(UV.to_owned()).chain(arguments).collect();
        let configuration = step.give("uv.toml", &self.door.configuration())?;
        let mut job = tooling.job(argv, step, mounts);
        for (name, value) in [
            ("UV_CACHE_DIR", UV_CACHE),
            ("UV_CONFIG_FILE", &configuration),
            ("UV_LINK_MODE", "copy"),
            ("UV_NO_PROGRESS", "1"),
            ("UV_PYTHON_DOWNLOADS", "never"),
        ] {
            job.env.insert(name.to_owned(), value.to_owned());
        }
        job.env.extend(Door::variables());
        job.service = Some(Arc::clone(&self.door) as Arc<dyn crate::backend::Service>);
        tooling.run(stage, &job, limit).map_err(|trouble| self.explain(trouble))
    }

    /// Why uv failed, as far as the door knows better.
    fn explain(&self, trouble: StepError) -> StepError {
        let StepError::Recoverable(mut failure) = trouble else { return trouble };
        let asked = self.door.asked();
        if let Some(upstream) = asked.trouble.first() {
            if let Some(full) = self.tooling.disk_trouble(&failure.stage, upstream, false) {
                return StepError::Fatal(full);
            }
            let error = Error::machine(format!(
                "the environment cannot be built: {}: the package index cannot be used",
                failure.stage
            ));
            return StepError::Fatal(error.with_detail(self.tooling.hosts.redact(upstream)).with_hint(
                "check the network, proxy, login and certificate settings, then run the same command again",
            ));
        }
        if let Some((what, words)) = asked.failed.iter().next() {
            failure.output = format!("{what} cannot be built:\n{words}\n{}", failure.output);
            failure.hint = uv::BUILD_HINT;
        }
        let unknown: BTreeSet<&String> = failure.unknown.iter().collect();
        for (name, place) in &asked.refused {
            if unknown.contains(name) {
                let _ = write!(
                    failure.output,
                    "\n{name} belongs to the tree ({place}), so no index was asked for it"
                );
            }
        }
        StepError::Recoverable(failure)
    }
}

/// The requirements that do not name the tree's own distributions, and the extras of each of those.
fn own_extras(wanted: &Wanted, own: &[Wheel]) -> (Vec<String>, Vec<Vec<String>>) {
    let mut extras: Vec<Vec<String>> = vec![Vec::new(); own.len()];
    if let Some(first) = extras.first_mut() {
        first.clone_from(&wanted.extras);
    }
    let mut requirements = Vec::new();
    for text in &wanted.requirements {
        let parsed = parse(text);
        let name = parsed.as_ref().map(|one| normalize(one.name.as_ref()));
        match (parsed, own.iter().position(|own| Some(&own.name) == name.as_ref())) {
            (Some(one), Some(at)) => {
                extras[at].extend(one.extras.iter().map(|extra| normalize(extra.as_ref())));
            }
            _ => requirements.push(text.clone()),
        }
    }
    (requirements, extras)
}

/// Larger locks are nobody's.
const LARGEST_LOCK: u64 = 64 << 20;
