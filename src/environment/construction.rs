//! One environment from start to end: the tree's wheel, the ladder, the chosen rung, the record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::dockerfile::Image;
use super::install::{Failure, TreeWheel, Trouble, Wanted, Workshop};
use super::lock::Lock;
use super::missing;
use super::project::{Files, Project};
use super::python::Choice;
use super::recipe::{Ladder, Outcome, Plan};
use super::record::{self, Recipe};
use super::requirements_files::normalize;
use super::{Candidate, GateReport, STAGE_VERSION, Tools, tree, version};
use crate::backend::Backend;
use crate::config;
use crate::error::{Error, Result};
use crate::record::environment::{Built, Rung, RungResult, Undeclared, missed};
use crate::record::id::hash_parts;
use crate::record::source::Pinned;

/// What construction starts from.
pub struct Inputs<'a> {
    pub pinned: &'a Pinned,
    pub repo: &'a config::Repo,
    pub files: Files,
    pub project: Project,
    pub choice: Choice,
    pub backend: &'a dyn Backend,
    pub tools: &'a Tools,
    pub gate: &'a dyn Fn(&Candidate<'_>) -> Result<GateReport>,
    pub progress: &'a dyn Fn(&str),
}

/// A rung that was installed and collected.
struct Collected {
    number: usize,
    lock: Lock,
    report: GateReport,
}

/// The ladder's history and its best rung.
struct Climb {
    tried: Vec<(Plan, Outcome)>,
    rungs: Vec<Rung>,
    collected: Vec<Collected>,
    /// What the virtual environment holds now.
    installed: Option<Lock>,
    first_failure: Option<Failure>,
}

/// What building a tree tells about its project: its name, and the extras that it has.
fn name_as_built(project: &mut Project, own: &TreeWheel) {
    project.own_distributions.insert(own.name.clone(), "the root of the tree".to_owned());
    project.name = Some(own.name.clone());
    for extra in &own.extras {
        project.extras.entry(normalize(extra)).or_default();
    }
}

/// Builds everything in `folder` and marks it done.
pub fn construct(mut inputs: Inputs<'_>, folder: &Path) -> Result<Built> {
    let (pinned, repo) = (inputs.pinned, inputs.repo);
    let mut notes = Vec::new();
    let told = version::pretend(&inputs.files, &inputs.project, &pinned.notes);
    let build_variables = told.map(|(variables, note)| {
        notes.push(note);
        variables
    });
    let workshop = Workshop {
        backend: inputs.backend,
        tools: inputs.tools,
        uv: inputs.tools.uv()?,
        python: &inputs.choice.interpreter,
        folder: folder.to_owned(),
        exclude_newer: exclude_newer(pinned, repo)?,
        build_variables: build_variables.unwrap_or_default(),
    };
    workshop.prepare()?;
    (inputs.progress)(&format!("Python {}: {}", inputs.choice.interpreter.version, inputs.choice.reason));

    let run_tree = folder.join("tree");
    tree::copy(&pinned.tree, &run_tree)?;
    let before = tree::list(&run_tree)?;
    let source_root = source_root(&inputs);
    let (own, build_lock) = build_tree(&workshop, &inputs, &source_root, &mut notes)?;
    if let Some(own) = &own {
        name_as_built(&mut inputs.project, own);
    }
    let excluded = settle_tree(pinned, &run_tree, &before, &mut notes)?;
    let foundation = workshop.tools.foundation.as_ref();

    let climb = climb(&workshop, &inputs, own.as_ref(), &source_root)?;
    let Some(best) = best(&climb.collected) else {
        return Err(climb
            .first_failure
            .map_or_else(|| Error::internal("the ladder has no rung"), Failure::into_error));
    };
    let (plan, _) = &climb.tried[best.number];
    let undeclared = undeclared(&best.report, &inputs.files, &mut notes)?;
    if climb.installed.as_ref() != Some(&best.lock) {
        install(&workshop, own.as_ref(), &best.lock, &source_root).map_err(into_error)?;
    }
    (inputs.progress)("compiling byte code");
    workshop.compile_bytecode().map_err(into_error)?;

    let mut rungs = climb.rungs;
    rungs[best.number].result = RungResult::Chosen {
        collected: best.report.collected,
        collection_errors: best.report.collection_errors,
    };
    notes.extend(left_out(&inputs, &rungs));
    let lock_sha256 = best.lock.sha256();
    let recipe = Recipe {
        slug: pinned.slug.to_string(),
        commit: pinned.commit.clone(),
        python: inputs.choice.interpreter.version.clone(),
        python_reason: inputs.choice.reason.clone(),
        exclude_newer: workshop.exclude_newer.clone(),
        chosen: plan.name.clone(),
        requirements: plan.written(),
        tree_installed: own.as_ref().map_or("none", |own| own.method.as_str()).to_owned(),
        build_variables: workshop.build_variables.clone(),
        env: published(&repo.env),
        lock_sha256: lock_sha256.clone(),
        switched_off: best.report.switched_off.clone(),
        rungs: rungs.clone(),
        notes: notes.clone(),
        base: foundation.map(|foundation| foundation.name.clone()),
        system_packages: foundation.map(|foundation| foundation.packages.clone()).unwrap_or_default(),
        made_with: [("uv".to_owned(), workshop.uv.version.clone())].into(),
    };
    let image = Image {
        title: format!("{} at {}", pinned.slug, pinned.commit),
        python: &recipe.python,
        committed_at: &pinned.pinned_at,
        excluded: &excluded,
        installs_project: own.is_some(),
        source_root: &source_root.to_string_lossy(),
        build_variables: &workshop.build_variables,
        has_direct: !best.lock.direct().is_empty(),
        base: recipe.base.as_deref(),
        packages: &recipe.system_packages,
    };
    record::write(&folder.join("recipe"), &recipe, &best.lock, &build_lock, &image)?;
    let built = Built {
        key: built_key(&recipe, pinned, repo, &build_lock, workshop.tools),
        python: recipe.python.clone(),
        python_reason: recipe.python_reason.clone(),
        python_prefix: inputs.choice.interpreter.prefix.clone(),
        venv: folder.join("venv"),
        tree: run_tree,
        recipe_dir: folder.join("recipe"),
        lock_sha256,
        rungs,
        switched_off: recipe.switched_off.clone(),
        env: repo.env.clone(),
        tests: repo.tests.clone().unwrap_or_default(),
        notes,
        guesses: plan.guesses(),
        undeclared,
    };
    workshop.clean_up()?;
    super::finish(folder, &built)?;
    Ok(built)
}

/// What the chosen rung still misses, with its notes.
fn undeclared(report: &GateReport, files: &Files, notes: &mut Vec<String>) -> Result<Vec<Undeclared>> {
    let undeclared = missing::undeclared(report, &files.survey);
    if report.collected == 0 {
        missing::refuse(&undeclared)?;
    }
    notes.extend(missed(&undeclared));
    notes.extend(files.survey.is_cut.then(|| missing::CUT.to_owned()));
    let words = report.failure.as_deref().map(last_line);
    notes.extend(words.map(|words| format!("pytest did not start in the chosen rung: {words}")));
    Ok(undeclared)
}

/// Variables of the config as a recipe may show them.
fn published(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    config::public::env(env).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The tree's wheel in its build environment; none for a tree that is no project.
fn build_tree(
    workshop: &Workshop<'_>,
    inputs: &Inputs<'_>,
    source_root: &Path,
    notes: &mut Vec<String>,
) -> Result<(Option<TreeWheel>, Lock)> {
    let Some(build) = &inputs.project.build else {
        notes.push("the tree is no installable project; its root is put on the path".to_owned());
        return Ok((None, Lock::default()));
    };
    (inputs.progress)("building the tree");
    let (mut wheel, lock) = workshop.build_tree(build, source_root).map_err(into_error)?;
    wheel.name = normalize(&wheel.name);
    if wheel.method == "path" {
        notes.push(
            "the build backend makes no editable wheels; the source root is put on the path".to_owned(),
        );
    }
    Ok((Some(wheel), lock))
}

/// Puts back what the build changed and makes the one commit. Gives the lines of the exclude file.
fn settle_tree(
    pinned: &Pinned,
    run_tree: &Path,
    before: &tree::Listing,
    notes: &mut Vec<String>,
) -> Result<Vec<String>> {
    let changes = tree::changes(before, &tree::list(run_tree)?);
    if !changes.altered.is_empty() {
        let names: Vec<String> = changes.altered.iter().map(|path| path.display().to_string()).collect();
        notes.push(format!("the build changed {}; put back as pinned", names.join(", ")));
        tree::restore(&pinned.tree, run_tree, &changes.altered)?;
    }
    let mut excluded: Vec<String> = tree::EXCLUDED.map(str::to_owned).into();
    excluded.extend(changes.added.into_iter().filter(|line| !line.ends_with(".egg-info/")));
    let seconds = tree::seconds(&pinned.pinned_at)
        .ok_or_else(|| Error::internal(format!("`{}` is no RFC 3339 time", pinned.pinned_at)))?;
    tree::commit(run_tree, before, seconds, &excluded)?;
    Ok(excluded)
}

/// Climbs until a rung is good or the ladder ends.
fn climb(
    workshop: &Workshop<'_>,
    inputs: &Inputs<'_>,
    own: Option<&TreeWheel>,
    source_root: &Path,
) -> Result<Climb> {
    let ladder = Ladder::new(&inputs.files, &inputs.project, inputs.repo)?;
    let mut climb = Climb {
        tried: Vec::new(),
        rungs: Vec::new(),
        collected: Vec::new(),
        installed: None,
        first_failure: None,
    };
    workshop.create_venv(&workshop.folder.join("venv"), &inputs.backend.places().venv).map_err(into_error)?;
    while let Some(plan) = ladder.next(&climb.tried) {
        crate::interrupt::check()?;
        (inputs.progress)(&format!("resolving {}", plan.name));
        let (outcome, result) = match try_plan(workshop, inputs, own, source_root, &plan, &mut climb) {
            Ok((lock, report)) => {
                let good = report.is_good();
                let missing = missing::find(&report, &inputs.files.survey).guesses;
                let result = RungResult::Insufficient {
                    collected: report.collected,
                    collection_errors: report.collection_errors + usize::from(report.failure.is_some()),
                    missing_modules: report.missing_modules.clone(),
                };
                climb.collected.push(Collected { number: climb.tried.len(), lock, report });
                (Outcome::Collected { good, missing }, result)
            }
            Err(Trouble::Stop(error)) => return Err(error),
            Err(Trouble::Step(failure)) => {
                climb.first_failure.get_or_insert_with(|| failure.clone());
                let outcome = Outcome::Failed { unknown: failure.unknown };
                (outcome, RungResult::Failed { stage: failure.stage, output: failure.output })
            }
        };
        let (name, reason) = (plan.name.clone(), plan.reason.clone());
        climb.rungs.push(Rung { name, reason, requirements: plan.written(), result });
        climb.tried.push((plan, outcome));
    }
    Ok(climb)
}

/// Resolves, installs and collects one plan. What resolves to an earlier lock is not collected again.
fn try_plan(
    workshop: &Workshop<'_>,
    inputs: &Inputs<'_>,
    own: Option<&TreeWheel>,
    source_root: &Path,
    plan: &Plan,
    climb: &mut Climb,
) -> Result<(Lock, GateReport), Trouble> {
    let mut requirements: Vec<String> = plan.requirements.iter().cloned().collect();
    if own.is_none() {
        requirements.extend(inputs.project.dependencies.iter().cloned());
        for extra in &plan.extras {
            requirements.extend(inputs.project.extras.get(extra).into_iter().flatten().cloned());
        }
    }
    let wanted = Wanted {
        requirements,
        constraints: plan.constraints.iter().cloned().collect(),
        extras: plan.extras.iter().cloned().collect(),
    };
    let lock = workshop.resolve(&format!("resolving {}", plan.name), &wanted, own)?;
    if let Some(same) = climb.collected.iter().find(|earlier| earlier.lock == lock) {
        return Ok((lock, same.report.clone()));
    }
    (inputs.progress)(&format!("installing {} distributions", lock.len()));
    climb.installed = None;
    install(workshop, own, &lock, source_root)?;
    climb.installed = Some(lock.clone());
    (inputs.progress)("collecting");
    let report = (inputs.gate)(&Candidate {
        python: &inputs.choice.interpreter.version,
        python_prefix: &inputs.choice.interpreter.prefix,
        venv: &workshop.folder.join("venv"),
        tree: &workshop.folder.join("tree"),
        env: &inputs.repo.env,
        tests: inputs.repo.tests.as_deref().unwrap_or_default(),
    })?;
    Ok((lock, report))
}

fn install(
    workshop: &Workshop<'_>,
    own: Option<&TreeWheel>,
    lock: &Lock,
    source_root: &Path,
) -> Result<(), Trouble> {
    let venv = workshop.folder.join("venv");
    workshop.sync("installing the dependencies", lock, &venv, &workshop.backend.places().venv)?;
    if let Some(own) = own {
        workshop.install_wheel(own)
    } else {
        let site = venv.join(format!("lib/python{}/site-packages/tree.pth", workshop.python.minor()));
        fs_err::write(site, format!("{}\n", source_root.display()))?;
        Ok(())
    }
}

/// The rung that collects most with the fewest errors; the earlier one when they are alike.
fn best(collected: &[Collected]) -> Option<&Collected> {
    let mut best: Option<&Collected> = None;
    for candidate in collected {
        if best.is_none_or(|best| candidate.report.quality() > best.report.quality()) {
            best = Some(candidate);
        }
    }
    best
}

fn into_error(trouble: Trouble) -> Error {
    match trouble {
        Trouble::Step(failure) => failure.into_error(),
        Trouble::Stop(error) => error,
    }
}

/// The last line that says something.
fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Where the tree's packages lie, as seen inside.
fn source_root(inputs: &Inputs<'_>) -> PathBuf {
    let root = &inputs.backend.places().root;
    if inputs.files.survey.src_layout { root.join("src") } else { root.clone() }
}

/// The newest upload to install, as a full RFC 3339 time: a date means its end.
fn exclude_newer(pinned: &Pinned, repo: &config::Repo) -> Result<String> {
    let text = repo.exclude_newer.as_deref().unwrap_or(&pinned.pinned_at);
    let full = if text.len() == 10 { format!("{text}T23:59:59Z") } else { text.replace(' ', "T") };
    match tree::seconds(&full) {
        Some(_) => Ok(full),
        None => Err(Error::repository(format!("`{text}` is no date and no RFC 3339 time"))),
    }
}

/// What the chosen rung's sources name but nothing installs.
fn left_out(inputs: &Inputs<'_>, rungs: &[Rung]) -> Vec<String> {
    let Ok(ladder) = Ladder::new(&inputs.files, &inputs.project, inputs.repo) else { return Vec::new() };
    let chosen = rungs.iter().find(|rung| matches!(rung.result, RungResult::Chosen { .. }));
    let used =
        ladder.sources().iter().filter(|source| chosen.is_some_and(|rung| rung.name.contains(&source.name)));
    used.flat_map(|source| {
        source.lines.left_out.iter().map(|what| format!("{}: left out {what}", source.name))
    })
    .collect()
}

/// Content address: the same key means the same environment, however the ladder got there.
fn built_key(
    recipe: &Recipe,
    pinned: &Pinned,
    repo: &config::Repo,
    build_lock: &Lock,
    tools: &Tools,
) -> String {
    let rest = serde_json::json!([
        recipe.tree_installed,
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
    match &tools.foundation {
        Some(foundation) => hash_parts(&[&key, &foundation.id]),
        None => key,
    }
}

#[cfg(test)]
#[path = "construction_tests.rs"]
mod tests;
