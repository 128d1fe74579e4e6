//! One environment from start to end: the tree's wheel, the ladder, the chosen rung, the record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::building::{Build, Source, Wheel};
use super::dockerfile::Image;
use super::install::{Failure, Target, Tooling, Trouble, Wanted, Workshop};
use super::lock::Lock;
use super::missing;
use super::project::{Files, Project};
use super::python::Choice;
use super::recipe::{Ladder, Outcome, Plan};
use super::record::{self, Recipe};
use super::requirements_files::normalize;
use super::uv::Secrets;
use super::{Candidate, GateReport, STAGE_VERSION, Tools, byte_code, step, tree, version};
use crate::backend::Backend;
use crate::beneath::Folder;
use crate::config;
use crate::error::{Error, Result};
use crate::record::environment::{Built, Rung, RungResult, Undeclared, missed};
use crate::record::id::hash_parts;
use crate::record::moment::Moment;
use crate::record::source::Pinned;

/// What construction starts from.
pub struct Inputs<'a> {
    pub pinned: &'a Pinned,
    pub repo: &'a config::Repo,
    pub files: Files,
    pub project: Project,
    pub choice: Choice,
    pub backend: &'a Arc<dyn Backend>,
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
    /// Whether what it holds has byte code.
    is_compiled: bool,
    first_failure: Option<Failure>,
}

/// What building a tree tells about its project: its name, and the extras that it has.
fn name_as_built(project: &mut Project, own: &Wheel) {
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
    let build_variables = build_variables.unwrap_or_default();
    let workshop = Workshop::new(tooling(&inputs, folder)?);
    (inputs.progress)(&format!("Python {}: {}", inputs.choice.interpreter.version, inputs.choice.reason));
    let place = Place { workshop: &workshop, source_root: source_root(&inputs), folder };
    let (own, excluded) = place.make_tree(&inputs, &build_variables, &mut notes)?;
    if let Some(own) = &own.wheel {
        name_as_built(&mut inputs.project, own);
    }

    let climb = place.climb(&inputs, own.wheel.as_ref())?;
    let Some(best) = best(&climb.collected) else {
        return Err(climb
            .first_failure
            .map_or_else(|| Error::internal("the ladder has no rung"), Failure::into_error));
    };
    let (plan, _) = &climb.tried[best.number];
    let undeclared = undeclared(&best.report, &inputs.files, &mut notes)?;
    let is_installed = climb.installed.as_ref() == Some(&best.lock);
    if !is_installed {
        place.install(own.wheel.as_ref(), &best.lock)?;
    }
    place.finish_byte_code(&inputs, &best.report.files, is_installed && climb.is_compiled)?;

    let mut rungs = climb.rungs;
    rungs[best.number].result = RungResult::Chosen {
        collected: best.report.collected,
        collection_errors: best.report.collection_errors,
    };
    notes.extend(left_out(&inputs, &rungs));
    notes.extend(workshop.notes());
    let foundation = inputs.tools.foundation.as_ref();
    let recipe = Recipe {
        slug: pinned.slug.to_string(),
        commit: pinned.commit.clone(),
        python: inputs.choice.interpreter.version.clone(),
        python_reason: inputs.choice.reason.clone(),
        exclude_newer: workshop.tooling.exclude_newer.to_string(),
        chosen: plan.name.clone(),
        requirements: plan.written(),
        tree_installed: own.wheel.as_ref().map_or("none", |own| own.method.as_str()).to_owned(),
        build_variables,
        env: published(&repo.env),
        lock_sha256: best.lock.sha256(),
        switched_off: best.report.switched_off.clone(),
        rungs,
        notes,
        base: foundation.map(|foundation| foundation.name.clone()),
        system_packages: foundation.map(|foundation| foundation.packages.clone()).unwrap_or_default(),
        made_with: [("uv".to_owned(), workshop.tooling.uv.version.clone())].into(),
    };
    let image = Image {
        title: format!("{} at {}", pinned.slug, pinned.commit),
        python: &recipe.python,
        committed_at: &pinned.pinned_at,
        excluded: &excluded,
        installs_project: own.wheel.is_some(),
        source_root: &place.source_root.to_string_lossy(),
        build_variables: &recipe.build_variables,
        has_direct: !best.lock.direct().is_empty(),
        base: recipe.base.as_deref(),
        packages: &recipe.system_packages,
    };
    record::write(&folder.join("recipe"), &recipe, &best.lock, &own.lock, &image)?;
    place.check(pinned, &own.added)?;
    let built = Built {
        key: built_key(&recipe, pinned, repo, &own.lock, inputs.tools),
        python: recipe.python,
        python_reason: recipe.python_reason,
        python_prefix: inputs.choice.interpreter.prefix.clone(),
        venv: folder.join("venv"),
        tree: folder.join("tree"),
        recipe_dir: folder.join("recipe"),
        lock_sha256: recipe.lock_sha256,
        rungs: recipe.rungs,
        switched_off: recipe.switched_off,
        env: repo.env.clone(),
        tests: repo.tests.clone().unwrap_or_default(),
        notes: recipe.notes,
        guesses: plan.guesses(),
        undeclared,
    };
    place.clean_up()?;
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

/// What every step of the environment shares.
fn tooling(inputs: &Inputs<'_>, folder: &Path) -> Result<Tooling> {
    let tools = inputs.tools;
    Ok(Tooling {
        backend: Arc::clone(inputs.backend),
        uv: tools.uv()?,
        python: inputs.choice.interpreter.clone(),
        index: tools.index()?,
        exclude_newer: exclude_newer(inputs.pinned, inputs.repo)?,
        refused: inputs.project.own_distributions.clone(),
        secrets: Secrets::of(&tools.variables),
        folder: folder.to_owned(),
        wheels: tools.cache.dir("wheels")?,
        foundation: tools.foundation.as_ref().map(|foundation| foundation.id.clone()),
        cache: tools.cache.clone(),
    })
}

/// The tree's own wheel, what it was built with, and what the build added to the tree.
struct Own {
    wheel: Option<Wheel>,
    lock: Lock,
    added: Vec<PathBuf>,
}

/// Where the environment is put together.
struct Place<'a> {
    workshop: &'a Workshop,
    /// Where the tree's packages lie, as seen inside.
    source_root: PathBuf,
    folder: &'a Path,
}

impl Place<'_> {
    /// Builds the tree, and makes the one that tests run in: the pinned files, what the build added, one commit. Gives the
    /// lines of the exclude file too.
    fn make_tree(
        &self,
        inputs: &Inputs<'_>,
        variables: &BTreeMap<String, String>,
        notes: &mut Vec<String>,
    ) -> Result<(Own, Vec<String>)> {
        let pinned = inputs.pinned;
        let tree = self.folder.join("tree");
        tree::copy(&pinned.tree, &tree)?;
        let before = tree::list(&tree)?;
        let mut own = Own { wheel: None, lock: Lock::default(), added: Vec::new() };
        if let Some(system) = &inputs.project.build {
            (inputs.progress)("building the tree");
            let source = Source::Tree { pinned: &pinned.tree, source_root: &self.source_root };
            let built = Build { workshop: self.workshop, source, system, variables }.run()?;
            if let Some((_step, left)) = &built.left {
                own.added = take_over(left, &before, &tree, notes)?;
            }
            if built.wheel.method == "path" {
                notes.push(
                    "the build backend makes no editable wheels; the source root is put on the path"
                        .to_owned(),
                );
            }
            (own.wheel, own.lock) = (Some(built.wheel), built.lock);
        } else {
            notes.push("the tree is no installable project; its root is put on the path".to_owned());
        }
        let mut excluded: Vec<String> = tree::EXCLUDED.map(str::to_owned).into();
        let added = tree::excluded(own.added.iter().map(PathBuf::as_path), &before);
        excluded.extend(added.into_iter().filter(|line| !line.ends_with(".egg-info/")));
        let seconds = tree::seconds(&pinned.pinned_at)
            .ok_or_else(|| Error::internal(format!("`{}` is no RFC 3339 time", pinned.pinned_at)))?;
        tree::commit(&tree, &before, seconds, &excluded)?;
        Ok((own, excluded))
    }

    /// Climbs until a rung is good or the ladder ends.
    fn climb(&self, inputs: &Inputs<'_>, own: Option<&Wheel>) -> Result<Climb> {
        let ladder = Ladder::new(&inputs.files, &inputs.project, inputs.repo)?;
        let mut climb = Climb {
            tried: Vec::new(),
            rungs: Vec::new(),
            collected: Vec::new(),
            installed: None,
            is_compiled: false,
            first_failure: None,
        };
        while let Some(plan) = ladder.next(&climb.tried) {
            crate::interrupt::check()?;
            (inputs.progress)(&format!("resolving {}", plan.name));
            let (outcome, result) = match self.try_plan(inputs, own, &plan, &mut climb) {
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
        &self,
        inputs: &Inputs<'_>,
        own: Option<&Wheel>,
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
        let lock = self.workshop.resolve(&format!("resolving {}", plan.name), &wanted, own)?;
        if let Some(same) = climb.collected.iter().find(|earlier| earlier.lock == lock) {
            return Ok((lock, same.report.clone()));
        }
        (inputs.progress)(&format!("installing {} distributions", lock.len()));
        let is_first = climb.collected.is_empty();
        climb.installed = None;
        self.install(own, &lock)?;
        climb.installed = Some(lock.clone());
        // Collecting imports much of it. The first rung that can be installed is mostly the one that is chosen; after
        // that it is compiled once, at the end.
        climb.is_compiled = is_first;
        if is_first {
            self.compile(inputs)?;
            self.rewrite(&byte_code::likely_tests(&self.folder.join("tree"))?)?;
        }
        (inputs.progress)("collecting");
        let report = (inputs.gate)(&Candidate {
            python: &inputs.choice.interpreter.version,
            python_prefix: &inputs.choice.interpreter.prefix,
            venv: &self.folder.join("venv"),
            tree: &self.folder.join("tree"),
            env: &inputs.repo.env,
            tests: inputs.repo.tests.as_deref().unwrap_or_default(),
        })?;
        Ok((lock, report))
    }

    fn install(&self, own: Option<&Wheel>, lock: &Lock) -> Result<(), Trouble> {
        let target = Target {
            host: &self.folder.join("venv"),
            inside: &self.workshop.tooling.backend.places().venv,
            path: own.is_none().then_some(self.source_root.as_path()),
        };
        self.workshop.install("installing the dependencies", lock, own, target)
    }

    /// What has no byte code yet; `is_begun` when that of the chosen rung was compiled before it was collected.
    fn finish_byte_code(&self, inputs: &Inputs<'_>, files: &[String], is_begun: bool) -> Result<()> {
        let tree = self.folder.join("tree");
        let mut files = files.to_vec();
        if is_begun {
            let done = byte_code::likely_tests(&tree)?;
            files.retain(|file| !done.contains(file));
            if files.is_empty() {
                return Ok(());
            }
        } else {
            // Another rung may have had another pytest.
            byte_code::forget_tests(&tree)?;
            self.compile(inputs)?;
        }
        self.rewrite(&files)
    }

    /// Compiles byte code of the environment and of the tree.
    fn compile(&self, inputs: &Inputs<'_>) -> Result<(), Trouble> {
        (inputs.progress)("compiling byte code");
        byte_code::compile(&self.workshop.tooling, &self.folder.join("venv"), &self.folder.join("tree"))
    }

    /// Compiles test files as pytest rewrites them.
    fn rewrite(&self, files: &[String]) -> Result<()> {
        let (venv, tree) = (self.folder.join("venv"), self.folder.join("tree"));
        byte_code::rewrite(&self.workshop.tooling, &venv, &tree, files)
    }

    /// The tree must be the pinned one, with what the build added and nothing else.
    fn check(&self, pinned: &Pinned, added: &[PathBuf]) -> Result<()> {
        let mut expected = tree::list(&pinned.tree)?;
        let found = tree::list(&self.folder.join("tree"))?;
        let mut differ: Vec<&PathBuf> = found
            .iter()
            .filter(|(path, hash)| expected.remove(*path).as_ref() != Some(*hash))
            .map(|(path, _)| path)
            .filter(|path| !added.contains(path) && !tree::is_byte_code(path))
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

    /// Removes what only the steps needed.
    fn clean_up(&self) -> Result<()> {
        for name in ["steps", "wheels", "uv"] {
            let folder = self.folder.join(name);
            if folder.symlink_metadata().is_ok() {
                step::discard(&folder)?;
            }
        }
        Ok(())
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

/// So many paths stand in a note.
const NAMED: usize = 20;

/// Variables of the config as a recipe may show them.
fn published(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    config::public::env(env).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
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

/// The last line that says something.
fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Where the tree's packages lie, as seen inside.
fn source_root(inputs: &Inputs<'_>) -> PathBuf {
    let root = &inputs.backend.places().root;
    if inputs.files.survey.src_layout { root.join("src") } else { root.clone() }
}

/// The newest upload to install: a date means its end.
fn exclude_newer(pinned: &Pinned, repo: &config::Repo) -> Result<Moment> {
    let text = repo.exclude_newer.as_deref().unwrap_or(&pinned.pinned_at);
    Moment::parse_end(text)
        .ok_or_else(|| Error::repository(format!("`{text}` is not a date and not an RFC 3339 time")))
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
