//! What was typed becomes a [`Config`]: ranges, units and what must hold between keys. Pure but for one question to
//! the file system (does a `path` exist) and one that the caller answers (what does a branch mean).

mod checker;
mod docker;
mod entries;
mod pair;
mod pin;
mod recipe;
mod recube;
mod repo;
mod scripts;
mod subset;
mod url;

pub(crate) use recipe::owned_by_worlds as owned_variable;
pub use url::is_host_and_port;

use std::path::Path;
use std::time::Duration;

use super::raw::{Raw, RawLimits, RawMutation, RawScreen, RawTier, RawWitness};
use super::{
    BackendKind, Config, Dataset, Limits, MINIMAL, Mutation, Repo, Resolve, Screen, TierBounds, Witness,
};
use crate::document::section::Field;
use crate::document::{Problems, units};
use crate::record::family::{Family, Unit};
use crate::record::id::Name;
use crate::record::outcome::Compare;
use crate::redact::quote;

/// Fewest processes and threads with which a test can be run at all.
pub(super) const LEAST_PROCESSES: u64 = 16;

/// Checks everything; what cannot be used is among the problems, and the value returned is then not to be used.
pub(super) fn config(
    raw: &Raw<'_>,
    base: &Path,
    resolve: &Resolve<'_>,
    problems: &mut Problems<'_>,
) -> Config {
    if !raw.has_dataset && !raw.has_repos {
        problems.missing_section("there is nothing to build in here", format!("start with\n{MINIMAL}"));
    } else if !raw.has_repos {
        problems.missing_section(
            "no repository is configured",
            format!("add a section `[[repo]]`, as in\n{MINIMAL}"),
        );
    } else if !raw.has_dataset {
        problems.missing_section("missing section [dataset]", "add `[dataset]` with `name` and `version`");
    }
    let dataset = dataset(raw, problems);
    let mut checker = checker::Checker { base, resolve, problems: &mut *problems };
    let repos = match dataset.family.unit() {
        Unit::Group | Unit::File => repo::all(&raw.repos, &mut checker),
        Unit::Pair => pair::all(raw, &mut checker),
    };
    let subsets = subset::all(&raw.subsets, &repos, problems);
    recube::fits(raw, dataset.family, problems);
    Config {
        screen: screen(&raw.screen, dataset.family, problems),
        dataset,
        recube: recube::bounds(&raw.recube, problems),
        codetaste: raw.codetaste.clone().into(),
        witness: witness(&raw.witness, &repos, problems),
        mutation: mutation(&raw.mutation, problems),
        tier: tier(&raw.tier, problems),
        prompt: raw.prompt.clone().into(),
        limits: limits(&raw.limits, problems),
        docker: docker::check(&raw.docker, problems),
        repos,
        subsets,
        apart: Vec::new(),
    }
}

fn dataset(raw: &Raw<'_>, problems: &mut Problems<'_>) -> Dataset {
    let (at, raw) = (raw.dataset_at, &raw.dataset);
    let family = raw.family.value;
    let per_repo = match family.unit() {
        Unit::File if raw.per_repo.at.is_none() => 10,
        Unit::Pair => 0,
        Unit::Group | Unit::File => raw.per_repo.value,
    };
    Dataset {
        family,
        name: segment("name", "gistify", at, &raw.name, problems),
        version: segment("version", "2026.11", at, &raw.version, problems),
        seed: raw.seed.value,
        per_repo,
        hard_per_axis: raw.hard_per_axis.value,
        sample_unsolvable: raw.sample_unsolvable.value,
        kinds: subset::kinds(&raw.kinds, problems),
    }
}

/// A required text that is safe as one path segment.
fn segment(
    key: &str,
    example: &str,
    section: Option<usize>,
    field: &Field<&str>,
    problems: &mut Problems<'_>,
) -> Name {
    match (field, section) {
        (Field::Given(text), _) => {
            let name = Name::new(text.value);
            if name.is_err() {
                let message = format!("{key} {} is not safe as a directory name", quote(text.value));
                let hint = format!(
                    "use letters, digits, `.`, `_` and `-`, a letter or digit first, at most {}",
                    Name::LONGEST
                );
                problems.add(text.at, message, Some(hint));
            }
            name.unwrap_or_else(|_| Name::fixed("unnamed"))
        }
        (Field::Missing, Some(at)) => {
            problems.missing_key(
                at,
                format!("missing key `{key}` in [dataset]"),
                format!("add {key} = \"{example}\""),
            );
            Name::fixed("unnamed")
        }
        _ => Name::fixed("unnamed"),
    }
}

fn screen(raw: &RawScreen<'_>, family: Family, problems: &mut Problems<'_>) -> Screen {
    timeouts_agree(raw, problems);
    let screen = Screen::from(raw.clone());
    let is_said = raw.compare.at.is_some() || family.unit() == Unit::Group;
    Screen { compare: if is_said { screen.compare } else { Compare::Outcome }, ..screen }
}

/// A group holds its cases, so its limit cannot be the shorter one.
fn timeouts_agree(raw: &RawScreen<'_>, problems: &mut Problems<'_>) {
    let RawScreen { case_timeout: case, group_timeout: group, .. } = raw;
    if group.value >= case.value || case.is_refused || group.is_refused {
        return;
    }
    let other = match (group.at, case.at) {
        (Some(_), None) => Some(("case_timeout", case)),
        (None, Some(_)) => Some(("group_timeout", group)),
        _ => None,
    };
    let written = |timeout: Duration| units::format_duration(timeout);
    let message = format!(
        "group_timeout ({}) is shorter than case_timeout ({})",
        written(group.value),
        written(case.value)
    );
    let hint = other.map(|(key, it)| format!("also set {key}, which is {} when left out", written(it.value)));
    problems.add(group.at.or(case.at).unwrap_or_default(), message, hint);
}

fn witness(raw: &RawWitness<'_>, repos: &[Repo], problems: &mut Problems<'_>) -> Witness {
    let witness = Witness::from(raw.clone());
    let contained = repos.iter().find(|repo| repo.backend == BackendKind::Docker);
    if let (Some(at), true, Some(repo)) = (raw.make.at, witness.make, contained) {
        let message = format!("{} runs in containers, where no witnesses are made", repo.slug);
        problems.add(at, message, Some("leave [witness] out, or use backend = \"local\"".to_owned()));
    }
    if let (Some(at), true, false) = (raw.required.at, witness.required, witness.make) {
        let message = "required asks for witnesses that are not made".to_owned();
        problems.add(at, message, Some("add make = true to [witness]".to_owned()));
    }
    witness
}

fn mutation(raw: &RawMutation<'_>, problems: &mut Problems<'_>) -> Mutation {
    let mutation = Mutation::from(raw.clone());
    if let (Some(at), true, 0) = (raw.min_score.at, mutation.min_score > 0.0, mutation.mutants) {
        let message = "min_score asks for mutants that are not made".to_owned();
        problems.add(at, message, Some("leave `mutants = 0` out of [mutation]".to_owned()));
    }
    mutation
}

fn tier(raw: &RawTier<'_>, problems: &mut Problems<'_>) -> TierBounds {
    let RawTier { medium, hard } = raw;
    if !medium.is_refused && !hard.is_refused && medium.value > hard.value {
        let message = format!("tier bound hard ({}) is below medium ({})", hard.value, medium.value);
        let at = hard.at.or(medium.at).unwrap_or_default();
        problems.add(at, message, Some("keep 0 ≤ medium ≤ hard ≤ 100".to_owned()));
    }
    raw.clone().into()
}

/// The fork tree itself has a process for each of its levels, and interpreters start helpers.
fn limits(raw: &RawLimits<'_>, problems: &mut Problems<'_>) -> Limits {
    if let (Some(at), number @ 1..LEAST_PROCESSES) = (raw.processes.at, raw.processes.value) {
        let message = format!(
            "`processes` must be at least {LEAST_PROCESSES}, not {number}: running a test takes some"
        );
        problems.add(at, message, Some("0 sets no limit".to_owned()));
    }
    raw.clone().into()
}
