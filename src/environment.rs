//! A pinned tree becomes an environment: interpreter, locked dependencies, the tree installed so that its code runs
//! from where it lies.
//!
//! ```text
//! <cache>/environments/<key of inputs>/
//!   venv/         the virtual environment; inside the sandbox at the backend's place for it
//!   tree/         the run tree: one orphan commit, byte code compiled
//!   recipe/       requirements.lock, build-requirements.lock, build-constraints.txt, recipe.json, Dockerfile
//!   steps/, uv/, wheels/  what only the steps need; gone when done
//!   contents.json hash over venv/, tree/ and recipe/
//!   built.json    written last: done means marked done
//! ```
//!
//! Four floors, each of which knows those before it: [`declared`] reads what a tree says of itself, [`plan`] decides what
//! is tried, [`steps`] resolve, install and build, [`making`] puts one environment together. Collection is a function that
//! the caller hands in ([`GateReport`]), so this stage knows nothing of pytest but its name.

pub mod declared;
mod making;
pub mod plan;
pub mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

pub use plan::preview::{Preview, preview};
pub use steps::tools::Tools;

use crate::backend::Backend;
use crate::config;
use crate::error::{Error, Fault, Result};
use crate::record::environment::{Built, Guess, SwitchedOff};
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::moment::{Cutoff, Moment};
use crate::record::source::{NearestTag, Pinned};
use crate::store::{self, Cache, Lock, Sealed};

/// Changes whenever the same inputs may give another environment.
const STAGE_VERSION: &str = "12";

/// An installed plan, ready to be collected by the gate.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Prefix of the base interpreter on the host.
    pub python_prefix: &'a Path,
    /// Virtual environment on the host.
    pub venv: &'a Path,
    /// Run tree on the host.
    pub tree: &'a Path,
    /// Extra variables from the config and the tree.
    pub env: &'a BTreeMap<String, String>,
    /// Arguments of the collection; none means the repository's own.
    pub tests: &'a [String],
    pub wish: Wish,
}

/// What the gate is to do with a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Collect,
    /// Run the tests once, too.
    CollectAndRun,
    /// Run the tests that it collected before, under this number, once.
    Run(usize),
}

/// What a test that did not pass, or a file that skips itself, said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// A group, or a file.
    pub who: String,
    pub text: String,
    /// Whether these are the words of a skip.
    pub is_skip: bool,
}

/// What collecting a candidate showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateReport {
    pub collected: usize,
    pub collection_errors: usize,
    /// Import names that collection could not find.
    pub missing_modules: Vec<String>,
    /// What errors of collection mean without naming it ([`plan::missing::implied`]).
    pub implied: BTreeSet<Guess>,
    /// The minor version of Python that took away what the tree imports.
    pub removed: Option<u64>,
    /// pytest could not even start (usage error, broken conftest): its words.
    pub failure: Option<String>,
    /// Files of the tree that have tests.
    pub files: Vec<String>,
    /// Plugins that every run must switch off.
    pub switched_off: Vec<SwitchedOff>,
    /// What files that skip themselves said, and, where tests were run, what did not pass.
    pub complaints: Vec<Complaint>,
    /// Groups that pass, where tests were run.
    pub passing: BTreeSet<String>,
    /// Groups that took longer than a trial waits, or were not run because of such: how they end is not known.
    pub late: BTreeSet<String>,
    /// The number that the gate gave to the collection.
    pub collection: Option<usize>,
    /// That number, where tests were run.
    pub trial: Option<usize>,
}

impl GateReport {
    /// Whether nothing was missing.
    pub fn is_good(&self) -> bool {
        self.failure.is_none() && self.collection_errors == 0
    }

    /// Order of quality: more cases first, then fewer errors.
    fn quality(&self) -> (usize, std::cmp::Reverse<usize>, bool) {
        (self.collected, std::cmp::Reverse(self.collection_errors), self.failure.is_none())
    }
}

/// The newest upload that may be installed for a tree: what the configuration says, else the moment of the pin.
///
/// # Errors
/// A pin without a time.
pub fn newest(pinned: &Pinned, repo: &config::Repo) -> Result<Moment> {
    let moment = repo.exclude_newer.as_ref().map(Cutoff::moment).or_else(|| Moment::parse(&pinned.pinned_at));
    moment.ok_or_else(|| Error::internal(format!("`{}` is not an RFC 3339 time", pinned.pinned_at)))
}

/// Builds the environment of a tree, or finds the one that an earlier run built. Where nothing can be collected because the
/// chosen Python does not have any more what the tree imports, on the best of the older ones.
///
/// # Errors
/// No interpreter fits, or no plan could be installed: the repository's trouble, with stage, output and
/// hint. Missing tools are the machine's.
pub fn build(
    pinned: &Pinned,
    repo: &config::Repo,
    cache: &Cache,
    backend: &Arc<dyn Backend>,
    tools: &Tools,
    gate: &dyn Fn(&Candidate<'_>) -> Result<GateReport>,
    progress: &dyn Fn(&str),
) -> Result<Built> {
    let seen = std::cell::Cell::new((0, None));
    let noting = |candidate: &Candidate<'_>| {
        let report = gate(candidate)?;
        let (collected, removed) = seen.get();
        seen.set((report.collected.max(collected), report.removed.or(removed)));
        Ok(report)
    };
    let place = (cache, backend);
    let built = build_on((pinned, repo), (&tools.interpreters, None), place, tools, &noting, progress);
    let is_settled = built.as_ref().is_err_and(|error| error.fault() != Fault::Repository);
    let (0, Some(removed), None, false) = (seen.get().0, seen.get().1, &repo.python, is_settled) else {
        return built;
    };
    let older: Vec<_> =
        tools.interpreters.iter().filter(|python| python.minor_number() < removed).cloned().collect();
    let why = format!("what the tree imports is not part of Python 3.{removed} any more");
    let again = build_on((pinned, repo), (&older, Some(&why)), place, tools, &noting, progress);
    match again {
        Err(error) if error.fault() != Fault::Repository => Err(error),
        again if seen.get().0 > 0 => again,
        _ => built,
    }
}

/// Builds a tree on one of these interpreters, which is chosen for this reason.
fn build_on(
    (pinned, repo): (&Pinned, &config::Repo),
    (interpreters, why): (&[plan::python::Interpreter], Option<&str>),
    (cache, backend): (&Cache, &Arc<dyn Backend>),
    tools: &Tools,
    gate: &dyn Fn(&Candidate<'_>) -> Result<GateReport>,
    progress: &dyn Fn(&str),
) -> Result<Built> {
    let known = plan::preview::Known::of(&pinned.tree, repo)?;
    let mut choice = known.python(repo, newest(pinned, repo)?, interpreters)?;
    choice.reason.extend(why.map(|why| format!("; {why}")));
    let plan::preview::Known { files, project, members, variables } = known;
    let tag =
        pinned.tag.found().filter(|_| project.version.is_none() && declared::version::asks(&files, &project));
    // What an image compiles with is part of the image.
    let compiles_rust = files.survey.has_cargo_lock && tools.base_image.is_none();
    let rust = compiles_rust.then(|| tools.toolchains.key());
    // What the configuration sets wins.
    let env: BTreeMap<String, String> = variables.values.into_iter().chain(repo.env.clone()).collect();
    let environments = cache.dir("environments")?;
    let key_of = |repo: &config::Repo| input_key(pinned, (tag, rust), repo, &choice.interpreter, tools);
    if let Some(locked) = &repo.locked {
        let resolved = config::Repo { python: locked.asked_python.clone(), locked: None, ..repo.clone() };
        let folder = environments.join(&key_of(&resolved)[..32]);
        if let Some(built) = of_the_build(&folder, locked, &choice.interpreter.version, &env)? {
            tracing::info!("{}: the environment of its build is reused", repo.slug);
            return Ok(built);
        }
    }
    let key = key_of(repo);
    once(&environments, &key, (repo, &env), progress, |folder| {
        let inputs = making::inputs::Inputs {
            pinned,
            repo,
            env: env.clone(),
            files,
            project,
            choice,
            backend,
            tools,
            gate,
            progress,
        };
        making::construction::construct(inputs, members, variables.notes, folder)
    })
}

/// The tree of an environment that an image has, which nothing is installed into.
///
/// # Errors
/// The machine's: no image, or one without Python; IO errors.
pub fn in_image(
    pinned: &Pinned,
    repo: &config::Repo,
    (cache, tools): (&Cache, &Tools),
    progress: &dyn Fn(&str),
) -> Result<Built> {
    let image =
        tools.base_image.as_ref().ok_or_else(|| Error::internal("scripts run a suite outside an image"))?;
    let bare = making::bare::Bare { pinned, repo, tools, image };
    let key = bare.key(STAGE_VERSION);
    once(&cache.dir("environments")?, &key, (repo, &repo.env), progress, |folder| {
        let built = bare.make(&key, folder)?;
        finish(folder, &built)?;
        Ok(built)
    })
}

/// What an earlier run finished under this key, or what is made now.
fn once(
    environments: &Path,
    key: &str,
    (repo, env): (&config::Repo, &BTreeMap<String, String>),
    progress: &dyn Fn(&str),
    make: impl FnOnce(&Path) -> Result<Built>,
) -> Result<Built> {
    let folder = environments.join(&key[..32]);
    // Two runs of gistmill never build one environment at the same time.
    let _lock = Lock::wait(&environments.join(format!("{}.lock", &key[..32])), || {
        progress("another build makes the same environment; waiting for it");
    })?;
    if let Some(built) = finished(&folder, env)? {
        store::mark_used(&folder);
        tracing::info!("{}: environment {} is reused", repo.slug, &key[..32]);
        return Ok(built);
    }
    if folder.exists() {
        // Begun and never finished.
        store::discard(&folder)?;
    }
    // Closed to other users of the machine: what a build writes there it could mark to run as who builds.
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .map_err(|error| Error::from(error).at(format!("cannot make {}", folder.display())))?;
    make(&folder)
}

/// Everything that decides what is built, but for what the package index says.
fn input_key(
    pinned: &Pinned,
    (tag, rust): (Option<&NearestTag>, Option<&str>),
    repo: &config::Repo,
    python: &plan::python::Interpreter,
    tools: &Tools,
) -> String {
    let asked = serde_json::json!([
        repo.python,
        repo.groups,
        repo.extras,
        repo.requirements,
        repo.tests,
        repo.env,
        repo.exclude_newer,
    ]);
    let key = hash_parts(&[
        "environment",
        STAGE_VERSION,
        &pinned.tree_sha256,
        &pinned.pinned_at,
        &pinned.commit,
        &python.version,
        &python.prefix.to_string_lossy(),
        &asked.to_string(),
    ]);
    // Only where there is one, so that what needs none keeps its key.
    let key = match tag {
        Some(tag) => hash_parts(&[&key, "tag", &tag.name, &tag.distance.to_string()]),
        None => key,
    };
    let key = match rust {
        Some(version) => hash_parts(&[&key, "rustc", version]),
        None => key,
    };
    let key = match &repo.locked {
        Some(locked) => hash_parts(&[&key, "locked", &locked.text]),
        None => key,
    };
    match &tools.base_image {
        Some(base_image) => hash_parts(&[&key, &base_image.id]),
        None => key,
    }
}

/// The environment that the build of a dataset left here, where it is the one that the dataset locks.
fn of_the_build(
    folder: &Path,
    locked: &config::Locked,
    python: &str,
    env: &BTreeMap<String, String>,
) -> Result<Option<Built>> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let _lock = Lock::wait(&folder.with_extension("lock"), || {})?;
    let built = finished(folder, env)?
        .filter(|built| built.lock_sha256 == sha256_hex(locked.text.as_bytes()) && built.python == python);
    if built.is_some() {
        store::mark_used(folder);
    }
    Ok(built)
}

/// The environment that an earlier run finished here, file for file; a damaged one is set aside. Its paths are those of
/// today's cache, and its variables those of the configuration, which may be secrets, and of the tree.
fn finished(folder: &Path, env: &BTreeMap<String, String>) -> Result<Option<Built>> {
    let built: Built = match store::find_sealed(&folder.join(BUILT))? {
        Sealed::Missing => return Ok(None),
        Sealed::Whole(built) if is_whole(folder)? => built,
        Sealed::Whole(_) | Sealed::Damaged => {
            store::set_aside(folder)?;
            return Ok(None);
        }
    };
    Ok(Some(Built {
        venv: folder.join("venv"),
        tree: folder.join("tree"),
        recipe_dir: folder.join("recipe"),
        env: env.clone(),
        ..built
    }))
}

const BUILT: &str = "built.json";
const CONTENTS: &str = "contents.json";
/// What an environment consists of.
const PARTS: [&str; 3] = ["venv", "tree", "recipe"];

/// Marks an environment as done: the hash of all its files, then the record.
fn finish(folder: &Path, built: &Built) -> Result<()> {
    store::write_sealed(&folder.join(CONTENTS), &contents(folder)?)?;
    store::write_sealed(&folder.join(BUILT), &Built { env: BTreeMap::new(), ..built.clone() })
}

/// Whether an environment is still what it was when it was built or found. Where it is not, what failed in it says nothing
/// about the repository.
///
/// # Errors
/// The machine's, when it is not; an interruption.
pub fn require_whole(built: &Built, cache: &Cache) -> Result<()> {
    let folder = built.tree.parent().unwrap_or(&built.tree);
    if is_whole(folder)? { Ok(()) } else { Err(cache.changed(folder)) }
}

/// Whether every file is what it was when the environment was finished. What cannot be read is not.
///
/// # Errors
/// An interruption, which says nothing about the files.
fn is_whole(folder: &Path) -> Result<bool> {
    let recorded = store::find_sealed::<String>(&folder.join(CONTENTS));
    let found = contents(folder);
    crate::interrupt::check()?;
    Ok(matches!((recorded, found), (Ok(Sealed::Whole(recorded)), Ok(found)) if recorded == found))
}

fn contents(folder: &Path) -> Result<String> {
    let hashes: Vec<String> =
        PARTS.iter().map(|part| crate::source::content_hash(&folder.join(part))).collect::<Result<_>>()?;
    Ok(hash_parts(&hashes))
}
