//! What to install: declarations in, plans out, each with its reason, to be tried one after the other. Pure, and the
//! same for every repository.
//!
//! Sources of requirements are ordered from the most to the least specific about tests. The first plan takes the
//! first source; each further one adds the next, without those that could not be installed; then come other extras, groups
//! and files of the tree that have what collection, or a run of the tests, misses; at last the distributions that everybody
//! knows to have it. The same set is never proposed twice.

use std::collections::{BTreeMap, BTreeSet};

use pep508_rs::VersionOrUrl;

use super::asked;
use super::failure::Failure;
use super::lock::Lock;
use crate::config;
use crate::environment::GateReport;
use crate::environment::declared::declarations::Files;
use crate::environment::declared::members::Member;
use crate::environment::declared::project::Project;
use crate::environment::declared::requirements_files::Hashes;
use crate::environment::declared::sources::{
    Optional, Source, configured, declared, distribution, optional, own_to_extras,
};
use crate::error::Result;
use crate::record::environment::{Guess, PlanResult};
use crate::requirement::{normalize, parse};

/// What a resolution is made of.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub requirements: Vec<String>,
    pub constraints: Vec<String>,
    /// What both of them must be.
    pub hashes: Hashes,
    /// Extras of the first of the tree's own distributions.
    pub extras: Vec<String>,
}

/// A set of requirements to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallPlan {
    pub name: String,
    pub reason: String,
    /// Extras of the tree.
    pub extras: BTreeSet<String>,
    pub requirements: BTreeSet<String>,
    pub constraints: BTreeSet<String>,
    /// What distributions must be, whichever source says it.
    pub hashes: Hashes,
    parts: Parts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Parts {
    sources: BTreeSet<usize>,
    optional: BTreeMap<usize, Share>,
    missing: BTreeSet<Guess>,
    /// Distributions that the sources name and nobody gives.
    without: BTreeSet<String>,
}

/// How much of a source that is installed on demand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Share {
    Whole,
    /// Its requirements for these distributions alone: the whole cannot be installed.
    Of(BTreeSet<String>),
}

impl InstallPlan {
    /// The requirements as written for the record: the tree first, constraints last.
    pub fn written(&self) -> Vec<String> {
        let extras: Vec<&str> = self.extras.iter().map(String::as_str).collect();
        let tree = if extras.is_empty() { ".".to_owned() } else { format!(".[{}]", extras.join(",")) };
        let constraints = self.constraints.iter().map(|constraint| format!("-c {constraint}"));
        let all = std::iter::once(tree).chain(self.requirements.iter().cloned()).chain(constraints);
        all.map(|text| crate::redact::publish(&text)).collect()
    }

    /// What of it nobody declares.
    pub fn guesses(&self) -> Vec<Guess> {
        self.parts
            .missing
            .iter()
            .filter(|guess| self.requirements.contains(&guess.distribution))
            .cloned()
            .collect()
    }

    /// Adds to the reason what came of it.
    pub(in crate::environment) fn tell(&mut self, words: &str) {
        self.reason = format!("{}: {words}", self.reason);
    }

    fn same_set(&self, other: &InstallPlan) -> bool {
        self.extras == other.extras
            && self.requirements == other.requirements
            && self.constraints == other.constraints
    }
}

/// What came of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a repository has a few of them")]
pub enum Outcome {
    /// Not resolved or not installed.
    Failed(Failure),
    /// Collected; `missing` is what to add ([`super::missing::find`]).
    Collected { lock: Lock, report: GateReport, missing: BTreeSet<Guess> },
}

impl Outcome {
    /// Names of what collecting could not do without.
    fn asked(&self) -> Vec<String> {
        match self {
            Outcome::Failed(_) => Vec::new(),
            Outcome::Collected { report, lock, .. } => {
                let of_collection = GateReport { complaints: Vec::new(), ..report.clone() };
                asked::find(&of_collection).into_keys().filter(|name| !lock.has(name)).collect()
            }
        }
    }

    /// As it is published.
    pub fn published(&self, is_chosen: bool) -> PlanResult {
        match self {
            Outcome::Failed(failure) => {
                PlanResult::Failed { stage: failure.stage.clone(), output: failure.output.clone() }
            }
            Outcome::Collected { report, .. } if is_chosen => PlanResult::Chosen {
                collected: report.collected,
                collection_errors: report.collection_errors,
            },
            Outcome::Collected { report, .. } => PlanResult::Insufficient {
                collected: report.collected,
                collection_errors: report.collection_errors + usize::from(report.failure.is_some()),
                missing_modules: report.missing_modules.clone(),
            },
        }
    }
}

/// The ordered sources of a tree.
#[derive(Debug, Clone, Default)]
pub struct Fallbacks {
    sources: Vec<Source>,
    /// What is installed when tests ask for it: other extras, groups and requirements files.
    optional: Vec<Optional>,
    /// The config decides: there is one plan.
    fixed: bool,
}

/// At most so many plans add what tests ask for.
const ASKED_ROUNDS: usize = 6;

/// So often a source is tried without what could not be had of it.
const WITHOUT_ROUNDS: usize = 4;

/// At most so many plans add what collection misses: each can only uncover the next missing module.
const MISSING_ROUNDS: usize = 4;

impl Fallbacks {
    /// The plans that a tree declares, or the single one of the config.
    ///
    /// # Errors
    /// A group, extra or file of the config that the tree does not have.
    pub fn new(files: &Files, project: &Project, repo: &config::Repo, members: &[Member]) -> Result<Self> {
        let mut fallbacks = if repo.groups.is_some() || repo.extras.is_some() || repo.requirements.is_some() {
            let sources = vec![configured(files, project, repo, members)?];
            Fallbacks { sources, optional: Vec::new(), fixed: true }
        } else {
            let sources = declared(files, project, members);
            let optional = optional(files, project, &sources);
            Fallbacks { sources, optional, fixed: false }
        };
        for one in &mut fallbacks.optional {
            own_to_extras(&mut one.source, project, members);
            one.find_distributions(project);
        }
        fallbacks.optional.retain(|one| !one.distributions.is_empty());
        for source in &mut fallbacks.sources {
            own_to_extras(source, project, members);
        }
        let fixed = fallbacks.fixed;
        fallbacks
            .sources
            .retain(|source| fixed || !source.lines.requirements.is_empty() || !source.extras.is_empty());
        Ok(fallbacks)
    }

    /// What the sources of a plan name but nothing installs.
    pub fn left_out(&self, plan: &InstallPlan) -> Vec<String> {
        let sources = plan.parts.sources.iter().filter_map(|number| self.sources.get(*number));
        let left_out = |source: &Source| {
            let name = source.name.clone();
            source.lines.left_out.clone().into_iter().map(move |what| format!("{name}: left out {what}"))
        };
        let without = plan.parts.without.iter().map(|name| format!("left out {name}, which cannot be had"));
        sources.flat_map(left_out).chain(without).collect()
    }

    /// The next plan to try after these; none when one was good or nothing is left.
    pub fn next(&self, tried: &[(InstallPlan, Outcome)]) -> Option<InstallPlan> {
        let good =
            |outcome: &Outcome| matches!(outcome, Outcome::Collected { report, .. } if report.is_good());
        if tried.iter().any(|(_, outcome)| good(outcome)) || (self.fixed && !tried.is_empty()) {
            return None;
        }
        let fresh = |plan: &InstallPlan| !tried.iter().any(|(earlier, _)| earlier.same_set(plan));
        let banned = banned(tried);
        let mut parts = Parts { optional: installable(tried), ..Parts::default() };
        for number in 0..self.sources.len() {
            if banned.contains(&number) {
                let Some(names) = self.out_of_reach(number, tried) else { continue };
                parts.without.extend(names);
            }
            parts.sources.insert(number);
            let plan = self.plan(parts.clone());
            let covered = tried.iter().any(|(earlier, _)| {
                earlier.parts.sources.contains(&number) && earlier.parts.without.is_superset(&parts.without)
            });
            if fresh(&plan) && !covered {
                return Some(plan);
            }
        }
        let bare = self.plan(Parts { missing: BTreeSet::new(), ..parts.clone() });
        if fresh(&bare) {
            return Some(bare);
        }
        let asked: BTreeSet<String> = tried.iter().flat_map(|(_, outcome)| outcome.asked()).collect();
        if let Some(plan) = self.with_declared(&parts, &asked, tried) {
            return Some(plan);
        }
        self.with_missing(parts, tried).filter(fresh)
    }

    /// What a source that could not be installed is tried without: what it takes from an address, and what the index does not
    /// have. None when that was tried, or there is nothing of that kind.
    fn out_of_reach(&self, number: usize, tried: &[(InstallPlan, Outcome)]) -> Option<BTreeSet<String>> {
        let failed = tried.iter().filter(|(plan, _)| plan.parts.sources.last() == Some(&number));
        let failed: Vec<(&InstallPlan, &Failure)> = failed
            .filter_map(|(plan, outcome)| match outcome {
                Outcome::Failed(failure) => Some((plan, failure)),
                Outcome::Collected { .. } => None,
            })
            .collect();
        let unknown: BTreeSet<String> = failed
            .iter()
            .flat_map(|(_, failure)| failure.unknown.iter().map(|name| normalize(name)))
            .collect();
        let requirements = self.sources[number].lines.requirements.iter().filter_map(|text| parse(text));
        let names: BTreeSet<String> = requirements
            .filter_map(|one| {
                let name = normalize(one.name.as_ref());
                let is_address = matches!(one.version_or_url, Some(VersionOrUrl::Url(_)));
                (is_address || unknown.contains(&name)).then_some(name)
            })
            .collect();
        let is_new = failed.iter().all(|(plan, _)| !plan.parts.without.is_superset(&names));
        (!names.is_empty() && is_new && failed.len() < WITHOUT_ROUNDS).then_some(names)
    }

    /// The plans that are tried when none is good and nothing is asked for.
    pub(in crate::environment) fn all(&self) -> Vec<InstallPlan> {
        let mut tried: Vec<(InstallPlan, Outcome)> = Vec::new();
        while let Some(plan) = self.next(&tried) {
            let report = GateReport { collection_errors: 1, ..GateReport::default() };
            let outcome = Outcome::Collected { lock: Lock::default(), report, missing: BTreeSet::new() };
            tried.push((plan, outcome));
        }
        tried.into_iter().map(|(plan, _)| plan).collect()
    }

    /// Names of what is installed when tests ask for it.
    pub(in crate::environment) fn on_demand(&self) -> Vec<String> {
        self.optional.iter().map(|one| one.source.name.clone()).collect()
    }

    /// Whether there is anything that tests could ask for.
    pub(in crate::environment) fn has_optional(&self) -> bool {
        !self.optional.is_empty()
    }

    /// A plan with what it has, and what the tree declares somewhere of what is `asked` for.
    pub(in crate::environment) fn beyond(
        &self,
        plan: &InstallPlan,
        asked: &BTreeSet<String>,
        tried: &[(InstallPlan, Outcome)],
    ) -> Option<InstallPlan> {
        self.with_declared(&plan.parts, asked, tried)
    }

    /// Distributions of what is installed on demand that may be what is asked for: of a name that one has, that one, else
    /// those that may have a module of that name.
    fn meant(&self, asked: &BTreeSet<String>) -> BTreeSet<String> {
        let all: BTreeSet<&String> = self.optional.iter().flat_map(|one| &one.distributions).collect();
        asked.iter().flat_map(|name| asked::meant(name, &all)).cloned().collect()
    }

    fn with_declared(
        &self,
        parts: &Parts,
        asked: &BTreeSet<String>,
        tried: &[(InstallPlan, Outcome)],
    ) -> Option<InstallPlan> {
        let rounds = tried.iter().filter(|(plan, _)| !plan.parts.optional.is_empty()).count();
        if rounds >= ASKED_ROUNDS {
            return None;
        }
        let mut more = parts.clone();
        let has = |parts: &Parts, name: &String| {
            parts.optional.iter().any(|(number, share)| match share {
                Share::Whole => self.optional[*number].distributions.contains(name),
                Share::Of(names) => names.contains(name),
            })
        };
        for name in &self.meant(asked) {
            let declaring =
                self.optional.iter().enumerate().filter(|(_, one)| one.distributions.contains(name));
            // The smallest says most exactly what it is for.
            let Some((number, _)) = declaring.min_by_key(|(_, one)| one.distributions.len()) else {
                continue;
            };
            if has(&more, name) {
                continue;
            }
            let failed = |share: &Share| {
                tried.iter().any(|(plan, outcome)| {
                    matches!(outcome, Outcome::Failed(_)) && plan.parts.optional.get(&number) == Some(share)
                })
            };
            let mut alone = match more.optional.get(&number) {
                Some(Share::Of(names)) => names.clone(),
                _ => BTreeSet::new(),
            };
            alone.insert(name.clone());
            let shares = [Share::Whole, Share::Of(alone)];
            if let Some(share) = shares.into_iter().find(|share| !failed(share)) {
                more.optional.insert(number, share);
            }
        }
        let plan = self.plan(more);
        let is_known = tried.iter().any(|(earlier, _)| earlier.same_set(&plan));
        (plan.parts.optional != parts.optional && !is_known).then_some(plan)
    }

    fn with_missing(&self, mut parts: Parts, tried: &[(InstallPlan, Outcome)]) -> Option<InstallPlan> {
        let rounds = tried.iter().filter(|(plan, _)| !plan.parts.missing.is_empty()).count();
        if rounds >= MISSING_ROUNDS {
            return None;
        }
        let mut unknown: BTreeSet<String> = BTreeSet::new();
        for (plan, outcome) in tried {
            match outcome {
                Outcome::Collected { missing, .. } => parts.missing.extend(missing.iter().cloned()),
                // A failure that names no culprit: all the guesses of that plan are under suspicion.
                Outcome::Failed(failure) if failure.unknown.is_empty() => {
                    unknown.extend(
                        plan.parts.missing.iter().filter_map(|guess| distribution(&guess.distribution)),
                    );
                }
                Outcome::Failed(failure) => {
                    unknown.extend(failure.unknown.iter().map(|name| normalize(name)));
                }
            }
        }
        parts.missing.retain(|guess| {
            let name = parse(&guess.distribution).map(|one| normalize(one.name.as_ref()));
            name.is_some_and(|name| !unknown.contains(&name))
        });
        (!parts.missing.is_empty()).then(|| self.plan(parts))
    }

    fn plan(&self, parts: Parts) -> InstallPlan {
        let chosen: Vec<&Source> = parts.sources.iter().map(|number| &self.sources[*number]).collect();
        let mut names: Vec<String> = vec![".".to_owned()];
        let mut reasons: Vec<String> = Vec::new();
        for source in &chosen {
            names.push(source.name.clone());
            reasons.push(source.reason.clone());
        }
        let asked: Vec<Source> =
            parts.optional.iter().map(|(number, share)| self.optional[*number].part(share)).collect();
        for source in &asked {
            names.push(source.name.clone());
            reasons.push(format!("{}, which tests ask for", source.reason));
        }
        let chosen: Vec<&Source> = chosen.into_iter().chain(&asked).collect();
        if !parts.missing.is_empty() {
            let distributions: BTreeSet<&str> =
                parts.missing.iter().map(|guess| guess.distribution.as_str()).collect();
            names.push(distributions.into_iter().collect::<Vec<_>>().join(" + "));
            reasons.push("what collection could not do without".to_owned());
        }
        if chosen.is_empty() {
            reasons.insert(0, "nothing declares test requirements".to_owned());
        }
        let mut requirements: BTreeSet<String> =
            chosen.iter().flat_map(|source| source.lines.requirements.iter().cloned()).collect();
        requirements.retain(|text| {
            parse(text).is_none_or(|one| !parts.without.contains(&normalize(one.name.as_ref())))
        });
        let already: BTreeSet<String> = requirements.iter().filter_map(|text| distribution(text)).collect();
        let guessed = parts.missing.iter().map(|guess| guess.distribution.clone());
        requirements
            .extend(guessed.filter(|text| distribution(text).is_none_or(|name| !already.contains(&name))));
        if !requirements.iter().any(|text| distribution(text).as_deref() == Some("pytest")) {
            requirements.insert("pytest".to_owned());
            names.push("pytest".to_owned());
        }
        // Also of what is left out: another way to the same distribution does not lead around its hash.
        let every = self.sources.iter().chain(self.optional.iter().map(|one| &one.source));
        let mut hashes = Hashes::new();
        for (text, named) in every.flat_map(|source| &source.lines.hashes) {
            hashes.entry(text.clone()).or_default().extend(named.iter().cloned());
        }
        InstallPlan {
            name: names.join(" + "),
            reason: reasons.join("; "),
            extras: chosen.iter().flat_map(|source| source.extras.iter().cloned()).collect(),
            requirements,
            constraints: chosen.iter().flat_map(|source| source.lines.constraints.iter().cloned()).collect(),
            hashes,
            parts,
        }
    }
}

impl Optional {
    /// As much of it as a plan takes.
    fn part(&self, share: &Share) -> Source {
        let Share::Of(names) = share else { return self.source.clone() };
        let named: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut source = self.source.clone();
        source.name = format!("{} of {}", named.join(", "), source.name);
        source.extras.clear();
        source.lines.constraints.clear();
        let wanted = |text: &String| distribution(text).is_some_and(|name| names.contains(&name));
        source.lines.requirements = self.requirements.iter().filter(|text| wanted(text)).cloned().collect();
        source
    }
}

/// What was installed on demand, and could be.
fn installable(tried: &[(InstallPlan, Outcome)]) -> BTreeMap<usize, Share> {
    let collected = tried.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Collected { .. }));
    collected.flat_map(|(plan, _)| plan.parts.optional.clone()).collect()
}

/// Sources whose addition to a plan made it fail.
fn banned(tried: &[(InstallPlan, Outcome)]) -> BTreeSet<usize> {
    let failed = tried
        .iter()
        .filter(|(plan, outcome)| matches!(outcome, Outcome::Failed(_)) && plan.parts.missing.is_empty())
        .filter(|(plan, _)| plan.parts.optional.is_empty());
    failed.filter_map(|(plan, _)| plan.parts.sources.iter().next_back().copied()).collect()
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;
