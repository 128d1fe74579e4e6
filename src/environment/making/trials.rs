//! Trying the plans of a tree: each is resolved, installed and collected, until one is good or there is no other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::inputs::Inputs;
use super::run_tree::yield_to_installed;
use crate::environment::declared::survey::Survey;
use crate::environment::plan::asked;
use crate::environment::plan::failure::{Failure, StepError};
use crate::environment::plan::lock::Lock;
use crate::environment::plan::missing;
use crate::environment::plan::recipe::Wanted;
use crate::environment::plan::recipe::{Fallbacks, InstallPlan, Outcome};
use crate::environment::steps::byte_code;
use crate::environment::steps::install::{Installer, Target};
use crate::environment::steps::wheel::Wheel;
use crate::environment::{Candidate, GateReport, Wish};
use crate::error::{Error, Result};
use crate::record::environment::{TriedPlan, Undeclared};
use crate::requirement::normalize;

/// So often tests are run to see what they ask for.
const RUNS: usize = 4;

/// Where plans are tried.
pub(in crate::environment) struct Site<'a> {
    pub inputs: &'a Inputs<'a>,
    pub installer: &'a Installer,
    /// The tree's own distributions, that of its root first where `has_root`.
    pub own: &'a [Wheel],
    pub has_root: bool,
    /// Where the tree's packages lie, as seen inside.
    pub source_root: &'a Path,
    pub venv: PathBuf,
    pub tree: PathBuf,
    /// Modules that building the tree added to it, with the names by which they can be imported.
    pub modules: &'a [(PathBuf, Vec<PathBuf>)],
}

/// What was tried so far.
#[derive(Default)]
pub(in crate::environment) struct Trials {
    tried: Vec<(InstallPlan, Outcome)>,
    /// What the virtual environment holds now.
    installed: Option<Lock>,
    /// Whether what it holds has byte code.
    is_compiled: bool,
    first_failure: Option<Failure>,
    /// The plan in which most tests pass, where that was found out.
    preferred: Option<usize>,
}

/// The plan that the environment is made of.
pub(in crate::environment) struct Chosen<'a> {
    pub number: usize,
    pub plan: &'a InstallPlan,
    pub lock: &'a Lock,
    pub report: &'a GateReport,
}

impl Trials {
    /// Tries plans until one is good or there is no other.
    ///
    /// # Errors
    /// What no other plan could do better about, and an interruption.
    pub(in crate::environment) fn run(site: &Site<'_>, fallbacks: &Fallbacks) -> Result<Self> {
        let mut trials = Trials::default();
        while let Some(plan) = fallbacks.next(&trials.tried) {
            crate::interrupt::check()?;
            (site.inputs.progress)(&format!("resolving {}", plan.name));
            let outcome = match trials.try_plan(site, &plan) {
                Ok((lock, report)) => {
                    let missing = missing::find(&report, &site.inputs.files.survey).guesses;
                    Outcome::Collected { lock, report, missing }
                }
                Err(StepError::Fatal(error)) => return Err(error),
                Err(StepError::Recoverable(failure)) => {
                    trials.first_failure.get_or_insert_with(|| failure.clone());
                    Outcome::Failed(failure)
                }
            };
            trials.tried.push((plan, outcome));
            if site.inputs.repo.locked.is_some() {
                return Ok(trials);
            }
        }
        if fallbacks.has_optional() {
            trials.go_on(site, fallbacks)?;
        }
        Ok(trials)
    }

    /// Runs the tests with the best plan, and adds what the tree declares of what they ask for, as long as more pass.
    fn go_on(&mut self, site: &Site<'_>, fallbacks: &Fallbacks) -> Result<()> {
        let Ok(best) = self.best() else { return Ok(()) };
        let (mut number, lock) = (best.number, best.lock.clone());
        let mut asked = asked::find(best.report);
        let mut wish = best.report.collection.map_or(Wish::CollectAndRun, Wish::Run);
        if best.report.collected == 0 {
            return Ok(());
        }
        if self.installed.as_ref() != Some(&lock) {
            self.installed = None;
            site.install(&lock)?;
            (self.installed, self.is_compiled) = (Some(lock), false);
            wish = Wish::CollectAndRun;
        }
        (site.inputs.progress)("running the tests once");
        let mut report = site.ask(wish)?;
        if let Outcome::Collected { report: collected, .. } = &mut self.tried[number].1 {
            // What runs without byte code may say more.
            collected.trial = report.trial.filter(|_| self.is_compiled);
        }
        asked.extend(asked::find(&report));
        for _ in 0..RUNS {
            crate::interrupt::check()?;
            let (plan, Outcome::Collected { lock, .. }) = &self.tried[number] else { return Ok(()) };
            let names: BTreeSet<String> = asked.keys().filter(|name| !lock.has(name)).cloned().collect();
            let Some(plan) = fallbacks.beyond(plan, &names, &self.tried) else { return Ok(()) };
            (site.inputs.progress)(&format!("resolving {}", plan.name));
            let (outcome, seen) = match self.try_plan_and_run(site, &plan) {
                Ok((lock, seen)) => {
                    let missing = missing::find(&seen, &site.inputs.files.survey).guesses;
                    (Outcome::Collected { lock, report: seen.clone(), missing }, Some(seen))
                }
                Err(StepError::Fatal(error)) => return Err(error),
                Err(StepError::Recoverable(failure)) => (Outcome::Failed(failure), None),
            };
            self.tried.push((plan, outcome));
            let Some(seen) = seen else { continue };
            let (gained, lost) = (gained(&seen, &report), gained(&report, &seen));
            let words = format!("of the groups that pass {gained} are new, and {lost} of before do not");
            let latest = self.tried.len() - 1;
            self.tried[latest].0.tell(&words);
            if gained <= lost {
                return Ok(());
            }
            number = latest;
            self.preferred = Some(number);
            asked = asked::find(&seen);
            report = seen;
        }
        Ok(())
    }

    /// Tries a plan as [`Trials::try_plan`] does, and runs the tests in it.
    fn try_plan_and_run(
        &mut self,
        site: &Site<'_>,
        plan: &InstallPlan,
    ) -> Result<(Lock, GateReport), StepError> {
        let lock = Trials::resolve(site, plan)?;
        (site.inputs.progress)(&format!("installing {} distributions", lock.len()));
        self.installed = None;
        site.install(&lock)?;
        (self.installed, self.is_compiled) = (Some(lock.clone()), false);
        (site.inputs.progress)("running the tests once");
        let report = GateReport { trial: None, ..site.ask(Wish::CollectAndRun)? };
        Ok((lock, report))
    }

    /// Resolves, installs and collects one plan. What resolves to an earlier lock is not collected again.
    fn try_plan(&mut self, site: &Site<'_>, plan: &InstallPlan) -> Result<(Lock, GateReport), StepError> {
        let lock = Trials::resolve(site, plan)?;
        if let Some(report) = self.collected().find_map(|one| (*one.lock == lock).then(|| one.report.clone()))
        {
            return Ok((lock, report));
        }
        (site.inputs.progress)(&format!("installing {} distributions", lock.len()));
        let is_first = self.collected().next().is_none();
        self.installed = None;
        site.install(&lock)?;
        self.installed = Some(lock.clone());
        // Collecting imports much of it. The first plan that can be installed is mostly the one that is chosen; after
        // that it is compiled once, at the end.
        self.is_compiled = is_first;
        if is_first {
            site.compile()?;
            site.rewrite(&byte_code::likely_tests(&site.tree)?)?;
        }
        (site.inputs.progress)("collecting");
        let report = site.ask(Wish::Collect)?;
        Ok((lock, report))
    }

    fn resolve(site: &Site<'_>, plan: &InstallPlan) -> Result<Lock, StepError> {
        let project = &site.inputs.project;
        let mut requirements: Vec<String> = plan.requirements.iter().cloned().collect();
        let mut extras: Vec<String> = plan.extras.iter().cloned().collect();
        if !site.has_root {
            extras.clear();
            requirements.extend(project.dependencies.iter().cloned());
            for extra in &plan.extras {
                requirements.extend(project.extras.get(extra).into_iter().flatten().cloned());
            }
        }
        let constraints = plan.constraints.iter().cloned().collect();
        let wanted = Wanted { requirements, constraints, hashes: plan.hashes.clone(), extras };
        match &site.inputs.repo.locked {
            Some(locked) => Ok(Lock::parse(&locked.text)),
            None => site.installer.resolve(&format!("resolving {}", plan.name), &wanted, site.own),
        }
    }

    /// What the best plan could not find, and what no plan could install because no index is asked for it.
    pub(in crate::environment) fn lacking(&self, survey: &Survey) -> (Vec<Undeclared>, Vec<String>) {
        let undeclared = self.best().map(|best| missing::undeclared(best.report, survey)).unwrap_or_default();
        let failures = self.tried.iter().filter_map(|(_, outcome)| match outcome {
            Outcome::Failed(failure) => Some(&failure.unknown),
            Outcome::Collected { .. } => None,
        });
        (undeclared, failures.flatten().map(|name| normalize(name)).collect())
    }

    fn collected(&self) -> impl Iterator<Item = Chosen<'_>> {
        self.tried.iter().enumerate().filter_map(|(number, (plan, outcome))| match outcome {
            Outcome::Collected { lock, report, .. } => Some(Chosen { number, plan, lock, report }),
            Outcome::Failed(_) => None,
        })
    }

    /// The plan in which most tests pass, where that was found out; else the one that collects most with the fewest
    /// errors; the earlier one when they are alike.
    ///
    /// # Errors
    /// The first failure, when nothing could be installed.
    pub(in crate::environment) fn best(&self) -> Result<Chosen<'_>> {
        if let Some(preferred) = self.preferred {
            let mut all = self.collected();
            return all
                .find(|one| one.number == preferred)
                .ok_or_else(|| Error::internal("no plan is chosen"));
        }
        let mut best: Option<Chosen<'_>> = None;
        for one in self.collected() {
            if best.as_ref().is_none_or(|best| one.report.quality() > best.report.quality()) {
                best = Some(one);
            }
        }
        best.ok_or_else(|| match &self.first_failure {
            Some(failure) => failure.clone().into_error(),
            None => Error::internal("there is no plan to try"),
        })
    }

    /// An error of the chosen plan, with the first failure of those that are not: what they would have installed may be what
    /// it lacks.
    pub(in crate::environment) fn explain(&self, error: Error) -> Error {
        match &self.first_failure {
            Some(failure) => error.with_detail(format!("{} failed: {}", failure.stage, failure.output)),
            None => error,
        }
    }

    /// Installs the chosen plan, where something else was installed after it, with byte code.
    ///
    /// # Errors
    /// Those of the installation.
    pub(in crate::environment) fn install(&self, site: &Site<'_>, chosen: &Chosen<'_>) -> Result<()> {
        let is_installed = self.installed.as_ref() == Some(chosen.lock);
        if !is_installed {
            site.install(chosen.lock)?;
        }
        let mut files = chosen.report.files.clone();
        if is_installed && self.is_compiled {
            let done = byte_code::likely_tests(&site.tree)?;
            files.retain(|file| !done.contains(file));
        } else {
            // Another plan may have had another pytest.
            byte_code::forget_tests(&site.tree)?;
            site.compile()?;
        }
        if files.is_empty() {
            return Ok(());
        }
        site.rewrite(&files)
    }

    /// All plans as they are published.
    pub(in crate::environment) fn published(&self, chosen: &Chosen<'_>) -> Vec<TriedPlan> {
        let tried = self.tried.iter().enumerate();
        tried
            .map(|(number, (plan, outcome))| TriedPlan {
                name: plan.name.clone(),
                reason: plan.reason.clone(),
                requirements: plan.written(),
                result: outcome.published(number == chosen.number),
            })
            .collect()
    }
}

impl Site<'_> {
    fn install(&self, lock: &Lock) -> Result<(), StepError> {
        let target = Target {
            host: &self.venv,
            inside: &self.installer.tooling.backend.places().venv,
            path: (!self.has_root).then_some(self.source_root),
        };
        self.installer.install("installing the dependencies", lock, self.own, target)?;
        Ok(yield_to_installed(self.modules, &self.tree, &self.venv)?)
    }

    fn compile(&self) -> Result<(), StepError> {
        (self.inputs.progress)("compiling byte code");
        byte_code::compile(&self.installer.tooling, &self.venv, &self.tree)
    }

    /// Compiles test files as pytest rewrites them.
    fn rewrite(&self, files: &[String]) -> Result<()> {
        byte_code::rewrite(&self.installer.tooling, &self.venv, &self.tree, files)
    }

    /// Has the gate look at what is installed.
    fn ask(&self, wish: Wish) -> Result<GateReport> {
        let inputs = self.inputs;
        (inputs.gate)(&Candidate {
            python_prefix: &inputs.choice.interpreter.prefix,
            venv: &self.venv,
            tree: &self.tree,
            env: &inputs.env,
            tests: inputs.repo.tests.as_deref().unwrap_or_default(),
            wish,
        })
    }
}

/// How many groups pass in one environment that came to another end in the other one. What was late there on a busy machine
/// says nothing.
fn gained(one: &GateReport, other: &GateReport) -> usize {
    one.passing.difference(&other.passing).filter(|group| !other.late.contains(*group)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_in_one_environment_is_no_reason_against_it() {
        let report = |passing: &[&str], late: &[&str]| GateReport {
            passing: passing.iter().map(|one| (*one).to_owned()).collect(),
            late: late.iter().map(|one| (*one).to_owned()).collect(),
            ..GateReport::default()
        };
        let (before, after) = (report(&["a", "b", "c"], &["d"]), report(&["a", "d", "e"], &["b"]));
        assert_eq!((gained(&after, &before), gained(&before, &after)), (1, 1));
    }
}
