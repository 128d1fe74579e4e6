//! One environment from start to end: the tree's wheel, the plans that are tried, the chosen one, the record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use regex::Regex;

use super::dockerfile::{self, Image};
use super::inputs::{Inputs, member_at, place_of, source_root};
use super::record::{self, Recipe};
use super::run_tree::RunTree;
use super::trials::{Chosen, Site, Trials};
use crate::config;
use crate::environment::declared::declarations::Files;
use crate::environment::declared::members::Member;
use crate::environment::declared::project::Project;
use crate::environment::declared::requirements_files::pattern;
use crate::environment::declared::version;
use crate::environment::plan::failure::Failure;
use crate::environment::plan::lock::Lock;
use crate::environment::plan::missing;
use crate::environment::plan::recipe::Fallbacks;
use crate::environment::steps;
use crate::environment::steps::install::Installer;
use crate::environment::steps::tooling::Tooling;
use crate::environment::steps::wheel::Wheel;
use crate::environment::{GateReport, STAGE_VERSION, Tools};
use crate::error::{Error, Fault, Result};
use crate::record::environment::{Built, Undeclared, missed};
use crate::record::id::hash_parts;
use crate::record::moment::Moment;
use crate::record::source::Pinned;
use crate::redact::Hosts;
use crate::requirement::{normalize, parse};

/// So often members are looked for: what one of them imports may be another one's.
const MEMBER_ROUNDS: usize = 4;

/// What the compiler of Rust is called in a recipe.
const RUSTC: &str = "rustc";

/// The version that a build is told where no tag says better.
const UNKNOWN_VERSION: &str = "0.0.0+pinned";

/// Builds everything in `folder` and marks it done. The `members` are those that the tree declares.
///
/// # Errors
/// The repository's, when nothing can be built or installed.
pub(in crate::environment) fn construct(
    mut inputs: Inputs<'_>,
    mut members: Vec<Member>,
    mut notes: Vec<String>,
    folder: &Path,
) -> Result<Built> {
    let (exclude_newer, note) = newest(&inputs)?;
    notes.extend(note);
    let installer = steps::source_distributions::installer(tooling(&inputs, folder, exclude_newer)?);
    (inputs.progress)(&format!("Python {}: {}", inputs.choice.interpreter.version, inputs.choice.reason));
    let build_variables = told_version(&inputs, &members, &mut notes);
    let places =
        Places { venv: folder.join("venv"), tree: folder.join("tree"), root: source_root(&inputs, "") };
    let mut rounds = 0;
    let mut unbuilt = None;
    let mut last_good: Option<Vec<Member>> = None;
    let tried = loop {
        let tried = Tried::with(&mut inputs, &installer, &members, &places, &build_variables)
            .map_err(|error| first(unbuilt.as_ref(), error))?;
        rounds += 1;
        unbuilt = unbuilt.or_else(|| tried.made.failure.clone());
        let is_good = tried.trials.best().is_ok();
        if let Some(before) = last_good.take().filter(|_| !is_good) {
            notes.extend(left_out(&members, &before));
            (members, rounds) = (before, MEMBER_ROUNDS);
            crate::store::discard(&places.tree)?;
            continue;
        }
        let other = other_members(&inputs, &members, &tried.trials).filter(|_| rounds < MEMBER_ROUNDS);
        let Some(other) = other else { break tried };
        let before = std::mem::replace(&mut members, other);
        last_good = is_good.then_some(before);
        crate::store::discard(&places.tree)?;
    };
    notes.extend(tried.notes.iter().cloned());
    let Tried { made, own, fallbacks, trials, .. } = &tried;
    let site = places.site(&inputs, &installer, own, made);
    let chosen = trials.best().map_err(|error| first(unbuilt.as_ref(), error))?;
    if let Some(failure) = unbuilt {
        notes.push(do_without(failure, chosen.report)?);
    }
    let undeclared =
        undeclared(chosen.report, &inputs.files, &mut notes).map_err(|error| trials.explain(error))?;
    trials.install(&site, &chosen)?;

    notes.extend(fallbacks.left_out(chosen.plan));
    notes.extend(installer.notes());
    notes.extend(made.yielded(&site.tree));
    let finished = Finished { site: &site, made, trials, chosen: &chosen };
    let recipe = finished.recipe(build_variables, notes);
    let locks = (chosen.lock, &made.lock);
    record::write(&folder.join("recipe"), &recipe, locks, &dockerfile::render(&finished.image(&recipe)))?;
    made.check(inputs.pinned, &site.tree)?;
    let built = finished.built(folder, recipe, undeclared);
    clean_up(folder)?;
    crate::environment::finish(folder, &built)?;
    Ok(built)
}

/// Where an environment is made: its virtual environment and its tree on the host, and where the packages of the project
/// at the root lie, as seen inside.
struct Places {
    venv: PathBuf,
    tree: PathBuf,
    root: PathBuf,
}

impl Places {
    fn site<'a>(
        &'a self,
        inputs: &'a Inputs<'a>,
        installer: &'a Installer,
        own: &'a [Wheel],
        made: &'a RunTree,
    ) -> Site<'a> {
        Site {
            inputs,
            installer,
            own,
            has_root: made.wheel.is_some(),
            source_root: &self.root,
            venv: self.venv.clone(),
            tree: self.tree.clone(),
            modules: &made.modules,
        }
    }
}

/// A tree with some members, and the plans that were tried for it.
struct Tried {
    made: RunTree,
    /// The wheels of the tree: that of its root first.
    own: Vec<Wheel>,
    fallbacks: Fallbacks,
    trials: Trials,
    /// What building it tells.
    notes: Vec<String>,
}

impl Tried {
    /// Builds the tree with these members, and tries its plans.
    fn with(
        inputs: &mut Inputs<'_>,
        installer: &Installer,
        members: &[Member],
        places: &Places,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let mut notes = Vec::new();
        let made = RunTree::make(inputs, installer, members, &places.tree, variables, &mut notes)?;
        match &made.wheel {
            Some(own) => name_as_built(&mut inputs.project, own),
            // From now on it is what a tree without a project at its root is.
            None => inputs.project.build = None,
        }
        let installed: Vec<Member> = made.members.iter().map(|(member, _)| member.clone()).collect();
        let fallbacks = Fallbacks::new(&inputs.files, &inputs.project, inputs.repo, &installed)?;
        let own: Vec<Wheel> =
            made.wheel.iter().chain(made.members.iter().map(|(_, wheel)| wheel)).cloned().collect();
        let trials = Trials::run(&places.site(inputs, installer, &own, &made), &fallbacks)?;
        Ok(Tried { made, own, fallbacks, trials, notes })
    }
}

/// An environment whose files lie where they belong.
struct Finished<'a> {
    site: &'a Site<'a>,
    made: &'a RunTree,
    trials: &'a Trials,
    chosen: &'a Chosen<'a>,
}

impl Finished<'_> {
    fn recipe(&self, build_variables: BTreeMap<String, String>, notes: Vec<String>) -> Recipe {
        let inputs = self.site.inputs;
        let tooling = &self.site.installer.tooling;
        let base_image = inputs.tools.base_image.as_ref();
        Recipe {
            slug: inputs.pinned.slug.to_string(),
            commit: inputs.pinned.commit.clone(),
            python: inputs.choice.interpreter.version.clone(),
            python_reason: inputs.choice.reason.clone(),
            exclude_newer: tooling.exclude_newer.to_string(),
            chosen: self.chosen.plan.name.clone(),
            requirements: self.chosen.plan.written(),
            tree_installed: self.made.wheel.as_ref().map_or("none", |own| own.method.as_str()).to_owned(),
            members: self.member_folders(),
            build_variables,
            env: record::published(&inputs.env),
            lock_sha256: self.chosen.lock.sha256(),
            switched_off: self.chosen.report.switched_off.clone(),
            plans: self.trials.published(self.chosen),
            notes,
            base: base_image.map(|image| image.name.clone()),
            system_packages: base_image.map(|image| image.packages.clone()).unwrap_or_default(),
            made_with: self.made_with(),
        }
    }

    fn made_with(&self) -> BTreeMap<String, String> {
        let uv = ("uv".to_owned(), self.site.installer.tooling.uv.version.clone());
        let rust = self.made.rust.iter().map(|version| (RUSTC.to_owned(), version.clone()));
        std::iter::once(uv).chain(rust).collect()
    }

    fn member_folders(&self) -> Vec<String> {
        self.made.members.iter().map(|(member, _)| member.folder.clone()).collect()
    }

    fn image<'b>(&'b self, recipe: &'b Recipe) -> Image<'b> {
        let pinned = self.site.inputs.pinned;
        Image {
            title: format!("{} at {}", pinned.slug, pinned.commit),
            python: &recipe.python,
            committed_at: &pinned.pinned_at,
            excluded: &self.made.excluded,
            installs_project: self.made.wheel.is_some(),
            members: self.member_folders(),
            source_root: self.site.source_root.to_str().unwrap_or_default(),
            build_variables: &recipe.build_variables,
            has_direct: !self.chosen.lock.direct().is_empty(),
            base: recipe.base.as_deref(),
            compiles_rust: self.made.rust.is_some(),
            packages: &recipe.system_packages,
        }
    }

    fn built(&self, folder: &Path, recipe: Recipe, undeclared: Vec<Undeclared>) -> Built {
        let inputs = self.site.inputs;
        Built {
            key: built_key(&recipe, inputs.pinned, inputs.repo, &self.made.lock, inputs.tools),
            python: recipe.python,
            python_reason: recipe.python_reason,
            python_prefix: inputs.choice.interpreter.prefix.clone(),
            venv: folder.join("venv"),
            tree: folder.join("tree"),
            recipe_dir: folder.join("recipe"),
            lock_sha256: recipe.lock_sha256,
            plans: recipe.plans,
            switched_off: recipe.switched_off,
            env: inputs.env.clone(),
            tests: inputs.repo.tests.clone().unwrap_or_default(),
            notes: recipe.notes,
            guesses: self.chosen.plan.guesses(),
            undeclared,
            trial: self.chosen.report.trial,
        }
    }
}

/// The failure of the project at the root, where there is one: what follows from it is not the first thing to tell.
fn first(unbuilt: Option<&Failure>, error: Error) -> Error {
    match unbuilt {
        Some(failure) if error.fault() == Fault::Repository => failure.clone().into_error(),
        _ => error,
    }
}

/// The note of a project at the root that cannot be built, and that most files of tests do without.
///
/// # Errors
/// That failure, where they do not: then it is what has to be mended.
fn do_without(failure: Failure, report: &GateReport) -> Result<String> {
    if report.files.len() <= report.collection_errors {
        return Err(failure.into_error());
    }
    Ok(format!(
        "the project at the root cannot be built: what it declares is installed, and its code is put on the path: {}",
        crate::text::last_line(&failure.output)
    ))
}

/// Variables that tell the builds the tree's version, where one of them would ask git.
fn told_version(
    inputs: &Inputs<'_>,
    members: &[Member],
    notes: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let pinned = inputs.pinned;
    let history =
        version::History { tag: pinned.tag.found(), commit: &pinned.commit, unknown: UNKNOWN_VERSION };
    let of_member =
        |member: &Member| version::pretend(&inputs.files.below(&member.folder), &member.project, history);
    let told = version::pretend(&inputs.files, &inputs.project, history)
        .or_else(|| members.iter().find_map(of_member));
    let Some((variables, note)) = told else { return BTreeMap::new() };
    notes.push(note);
    variables
}

/// What building a tree tells about its project: its name, and the extras that it has.
fn name_as_built(project: &mut Project, own: &Wheel) {
    project.own_distributions.insert(own.name.clone(), "the root of the tree".to_owned());
    project.name = Some(own.name.clone());
    for extra in &own.extras {
        project.extras.entry(normalize(extra)).or_default();
    }
    // What a `setup.py` computes stands in no declaration that is read.
    for (extra, requirement) in required_by_extras(&own.metadata) {
        if let Some(list) = project.extras.get_mut(&extra).filter(|list| !list.contains(&requirement)) {
            list.push(requirement);
        }
    }
}

/// The requirements of a wheel that one extra brings: the extra, normalized, and the name.
fn required_by_extras(metadata: &str) -> Vec<(String, String)> {
    static EXTRA: LazyLock<Regex> = LazyLock::new(|| pattern(r#"extra\s*==\s*["']([\w.-]+)["']"#));
    let head = metadata.split("\n\n").next().unwrap_or_default();
    let lines = head.lines().filter_map(|line| line.strip_prefix("Requires-Dist:"));
    let found = lines.filter_map(|line| {
        let extra = normalize(&EXTRA.captures(line)?[1]);
        let name = parse(line.split(';').next()?.trim())?.name;
        Some((extra, name.to_string()))
    });
    found.collect()
}

/// What the chosen plan still misses, with its notes.
fn undeclared(report: &GateReport, files: &Files, notes: &mut Vec<String>) -> Result<Vec<Undeclared>> {
    let undeclared = missing::undeclared(report, &files.survey);
    if report.collected == 0 {
        missing::refuse(&undeclared)?;
    }
    notes.extend(missed(&undeclared));
    notes.extend(files.survey.is_cut.then(|| missing::CUT.to_owned()));
    let words = report.failure.as_deref().map(crate::text::last_line);
    notes.extend(words.map(|words| format!("pytest did not start with the chosen plan: {words}")));
    Ok(undeclared)
}

/// The newest upload that may be installed, with a note where it is newer than the pin: on an interpreter that the tree has
/// not seen, because the machine has no older one, nothing of its time may work.
fn newest(inputs: &Inputs<'_>) -> Result<(Moment, Option<String>)> {
    let Inputs { pinned, repo, choice, .. } = inputs;
    let newest = crate::environment::newest(pinned, repo)?;
    let later = choice.interpreter.usable_from().filter(|from| from.seconds() > newest.seconds());
    let is_asked_for = repo.exclude_newer.is_some() || repo.python.is_some();
    Ok(match later.filter(|_| !is_asked_for) {
        Some(later) => {
            let python = choice.interpreter.minor();
            let note = format!(
                "Python {python} came out after the pin: what was uploaded before {later} may be installed"
            );
            (later, Some(note))
        }
        None => (newest, None),
    })
}

/// What every step of the environment shares.
fn tooling(inputs: &Inputs<'_>, folder: &Path, exclude_newer: Moment) -> Result<Tooling> {
    let tools = inputs.tools;
    Ok(Tooling {
        backend: Arc::clone(inputs.backend),
        uv: tools.uv()?,
        python: inputs.choice.interpreter.clone(),
        index: tools.index()?,
        exclude_newer,
        refused: inputs.project.own_distributions.clone(),
        hosts: Hosts::of(&tools.variables),
        folder: folder.to_owned(),
        wheels: tools.cache.dir("wheels")?,
        base_image: tools.base_image.as_ref().map(|base_image| base_image.id.clone()),
        cache: tools.cache.clone(),
        toolchains: tools.toolchains.clone(),
    })
}

/// Removes what only the steps needed.
fn clean_up(folder: &Path) -> Result<()> {
    for name in ["steps", "wheels", "uv"] {
        let folder = folder.join(name);
        if folder.symlink_metadata().is_ok() {
            crate::store::discard(&folder)?;
        }
    }
    Ok(())
}

/// The members for another round: with those that the tests miss, or none where nothing can be installed with them.
fn other_members(inputs: &Inputs<'_>, members: &[Member], trials: &Trials) -> Option<Vec<Member>> {
    let (undeclared, unknown) = trials.lacking(&inputs.files.survey);
    let places = undeclared.iter().filter_map(|one| Some((one.place.clone()?, one.wanted.clone())));
    let declared = unknown.iter().filter_map(|name| Some((place_of(inputs, name)?, name.clone())));
    let mut more: Vec<Member> = members.to_vec();
    for (place, wanted) in places.chain(declared) {
        let member = member_at(inputs, &place, &format!("the tests need `{wanted}`"));
        let is_new = |one: &Member| more.iter().all(|member| member.folder != one.folder);
        let member = member.filter(is_new);
        more.extend(member);
    }
    if more.len() > members.len() {
        return Some(more);
    }
    (trials.best().is_err() && !members.is_empty()).then(Vec::new)
}

/// The note of members that were looked for and with which nothing can be installed.
fn left_out(members: &[Member], before: &[Member]) -> Option<String> {
    let is_new = |member: &&Member| before.iter().all(|one| one.folder != member.folder);
    let folders: Vec<&str> = members.iter().filter(is_new).map(|member| member.folder.as_str()).collect();
    (!folders.is_empty()).then(|| {
        format!("left out {}, which the tests need: nothing can be installed with it", folders.join(", "))
    })
}

/// Content address: the same key means the same environment, whichever plans were tried before.
fn built_key(
    recipe: &Recipe,
    pinned: &Pinned,
    repo: &config::Repo,
    build_lock: &Lock,
    tools: &Tools,
) -> String {
    let rest = serde_json::json!([
        recipe.tree_installed,
        recipe.members,
        recipe.build_variables,
        recipe.env,
        recipe.switched_off,
        repo.tests,
    ]);
    let key = hash_parts(&[
        "built",
        STAGE_VERSION,
        &recipe.python,
        &recipe.lock_sha256,
        &build_lock.sha256(),
        &pinned.tree_sha256,
        &rest.to_string(),
    ]);
    // Only where there is one, so that what compiles no Rust keeps its key.
    let key = match recipe.made_with.get(RUSTC) {
        Some(version) => hash_parts(&[&key, RUSTC, version]),
        None => key,
    };
    match &tools.base_image {
        Some(base_image) => hash_parts(&[&key, &base_image.id]),
        None => key,
    }
}

#[cfg(test)]
#[path = "construction_tests.rs"]
mod tests;
