//! What was typed becomes a [`Config`]: ranges, units and what must hold between keys. Pure but for one question to
//! the file system (does a `path` exist) and one that the caller answers (what does a branch mean).

mod checker;
mod docker;
mod entries;
mod pair;
mod pin;
mod prompt;
mod recipe;
mod recube;
mod repo;
mod scripts;
mod subset;
mod url;

pub(crate) use recipe::owned_by_worlds as owned_variable;
pub use url::is_host_and_port;

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use super::raw::{Raw, RawDataset, RawLimits, RawScreen, RawTier, RawWitness, Text};
use super::{Config, Dataset, Limits, MINIMAL, Resolve, Screen, TierBounds, Witness};
use crate::document::section::{Bytes, Field, Located};
use crate::document::{Problems, suggest, units};
use crate::record::family::{Family, Unit};
use crate::record::id::Name;
use crate::record::outcome::Compare;
use crate::redact::quote;

const MINUTE: Duration = Duration::from_mins(1);
const MEBIBYTE: u64 = 1 << 20;
/// Fewest processes and threads with which a test can be run at all.
const LEAST_PROCESSES: u64 = 16;

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
    let dataset = dataset(&raw.dataset, problems);
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
        codetaste: pair::settings(&raw.codetaste, problems),
        witness: witness(&raw.witness, problems),
        tier: tier(&raw.tier, problems),
        prompt: prompt::check(&raw.prompt, problems),
        limits: limits(&raw.limits, problems),
        docker: docker::check(&raw.docker, problems),
        repos,
        subsets,
        apart: Vec::new(),
    }
}

fn dataset(raw: &RawDataset<'_>, problems: &mut Problems<'_>) -> Dataset {
    let family = family(&raw.family, problems);
    let per_repo = match family.unit() {
        Unit::Group => 25,
        Unit::File => 10,
        Unit::Pair => 0,
    };
    Dataset {
        family,
        name: segment("name", "gistify", raw.at, &raw.name, problems),
        version: segment("version", "2026.11", raw.at, &raw.version, problems),
        seed: whole("seed", &raw.seed, 0, 0..=u64::MAX, problems),
        per_repo: whole32("per_repo", &raw.per_repo, per_repo, 0, problems),
        hard_per_axis: whole32("hard_per_axis", &raw.hard_per_axis, 30, 1, problems),
        sample_unsolvable: flag(&raw.sample_unsolvable, false),
        kinds: subset::kinds(&raw.kinds, problems),
    }
}

fn family(field: &Text<'_>, problems: &mut Problems<'_>) -> Family {
    let Field::Given(text) = field else { return Family::default() };
    let known = Family::ALL.into_iter().find(|family| family.as_str() == text.value);
    known.unwrap_or_else(|| {
        let message = format!("unknown family {}", quote(text.value));
        problems.add(text.at, message, Some(suggest::hint(text.value, &Family::ALL.map(Family::as_str))));
        Family::default()
    })
}

/// A required text that is safe as one path segment.
fn segment(
    key: &str,
    example: &str,
    section: Option<usize>,
    field: &Text<'_>,
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
    let case_timeout = duration("case_timeout", &raw.case_timeout, MINUTE, problems);
    let group_timeout = duration("group_timeout", &raw.group_timeout, 5 * MINUTE, problems);
    if let (Some(case), Some(group)) = (case_timeout, group_timeout) {
        timeouts_agree(raw, case, group, problems);
    }
    Screen {
        attempts: whole32("attempts", &raw.attempts, 10, 2, problems),
        cold_runs: whole32("cold_runs", &raw.cold_runs, 1, 1, problems),
        parity_groups: whole32("parity_groups", &raw.parity_groups, 0, 0, problems),
        case_timeout: case_timeout.unwrap_or(MINUTE),
        group_timeout: group_timeout.unwrap_or(5 * MINUTE),
        partial_groups: flag(&raw.partial_groups, false),
        compare: compare(&raw.compare, family, problems),
    }
}

fn witness(raw: &RawWitness, problems: &mut Problems<'_>) -> Witness {
    let (make, required) = (flag(&raw.make, false), flag(&raw.required, false));
    if let (Field::Given(given), true, false) = (&raw.required, required, make) {
        let message = "required asks for witnesses that are not made".to_owned();
        problems.add(given.at, message, Some("add make = true to [witness]".to_owned()));
    }
    Witness { make, required }
}

fn compare(field: &Field<&str>, family: Family, problems: &mut Problems<'_>) -> Compare {
    let default = match family.unit() {
        Unit::Group => Compare::default(),
        Unit::File | Unit::Pair => Compare::Outcome,
    };
    let Field::Given(text) = field else { return default };
    let known = Compare::ALL.into_iter().find(|compare| compare.as_str() == text.value);
    known.unwrap_or_else(|| {
        let message = format!("nothing is compared by {}", quote(text.value));
        problems.add(text.at, message, Some(suggest::hint(text.value, &Compare::ALL.map(Compare::as_str))));
        Compare::default()
    })
}

/// A group holds its cases, so its limit cannot be the shorter one.
fn timeouts_agree(raw: &RawScreen<'_>, case: Duration, group: Duration, problems: &mut Problems<'_>) {
    if group >= case {
        return;
    }
    let (case, group) = (units::format_duration(case), units::format_duration(group));
    let message = format!("group_timeout ({group}) is shorter than case_timeout ({case})");
    match (&raw.group_timeout, &raw.case_timeout) {
        (Field::Given(text), Field::Given(_)) => problems.add(text.at, message, None),
        (Field::Given(text), _) => {
            problems.add(
                text.at,
                message,
                Some(format!("also set case_timeout, which is {case} when left out")),
            );
        }
        (_, Field::Given(text)) => {
            problems.add(
                text.at,
                message,
                Some(format!("also set group_timeout, which is {group} when left out")),
            );
        }
        _ => {}
    }
}

fn tier(raw: &RawTier, problems: &mut Problems<'_>) -> TierBounds {
    let medium = percentile("medium", &raw.medium, 50.0, problems);
    let hard = percentile("hard", &raw.hard, 80.0, problems);
    let place = raw.hard.clone().given().or(raw.medium.clone().given());
    if let (Some(medium), Some(hard), Some(place)) = (medium, hard, place)
        && medium > hard
    {
        let message = format!("tier bound hard ({hard}) is below medium ({medium})");
        problems.add(place.at, message, Some("keep 0 ≤ medium ≤ hard ≤ 100".to_owned()));
    }
    TierBounds { medium: medium.unwrap_or_default(), hard: hard.unwrap_or_default() }
}

fn percentile(key: &str, field: &Field<f64>, default: f64, problems: &mut Problems<'_>) -> Option<f64> {
    match *field {
        Field::Missing => Some(default),
        Field::Refused => None,
        Field::Given(Located { value, .. }) if (0.0..=100.0).contains(&value) => Some(value),
        Field::Given(Located { value, at }) => {
            problems.add(at, format!("`{key}` must be a percentile from 0 to 100, not {value}"), None);
            None
        }
    }
}

/// Defaults: memory is left to the machine (an address-space limit breaks numeric libraries that reserve much and
/// use little); 1024 processes and threads stop a fork bomb and leave room for thread pools.
fn limits(raw: &RawLimits<'_>, problems: &mut Problems<'_>) -> Limits {
    Limits {
        memory: size("memory", &raw.memory, 0, 64 * MEBIBYTE, problems),
        processes: processes(&raw.processes, problems),
        file_size: size("file_size", &raw.file_size, 1024 * MEBIBYTE, 64 << 10, problems),
        output: size("output", &raw.output, MEBIBYTE, 1 << 10, problems),
    }
}

/// The fork tree itself has a process for each of its levels, and interpreters start helpers.
fn processes(field: &Field<i128>, problems: &mut Problems<'_>) -> u64 {
    let number = whole("processes", field, 1024, 0..=u64::from(u32::MAX), problems);
    if let (Field::Given(Located { at, .. }), 1..LEAST_PROCESSES) = (field, number) {
        let message = format!(
            "`processes` must be at least {LEAST_PROCESSES}, not {number}: running a test takes some"
        );
        problems.add(*at, message, Some("0 sets no limit".to_owned()));
    }
    number
}

/// A size; a positive one below `least` is taken for a forgotten unit.
fn size(key: &str, field: &Field<Bytes<'_>>, default: u64, least: u64, problems: &mut Problems<'_>) -> u64 {
    let Field::Given(Located { value, at }) = *field else { return default };
    let bytes = match value {
        Bytes::Number(number) => u64::try_from(number).map_err(|_| format!("`{key}` must not be {number}")),
        Bytes::Text(text) => {
            units::parse_size(text).map_err(|problem| format!("{key} {} {problem}", quote(text)))
        }
    };
    match bytes {
        Ok(bytes) if bytes == 0 || bytes >= least => return bytes,
        Ok(bytes) => {
            let message =
                format!("`{key}` of {bytes} bytes is too small, the least is {}", units::format_size(least));
            problems.add(at, message, Some(format!("{}; 0 sets no limit", units::SIZE_EXAMPLES)));
        }
        Err(message) => problems.add(at, message, Some(units::SIZE_EXAMPLES.to_owned())),
    }
    default
}

fn duration(key: &str, field: &Text<'_>, default: Duration, problems: &mut Problems<'_>) -> Option<Duration> {
    let text = match field {
        Field::Missing => return Some(default),
        Field::Refused => return None,
        Field::Given(text) => text,
    };
    match units::parse_duration(text.value) {
        Ok(duration) => Some(duration),
        Err(problem) => {
            let message = format!("{key} {} {problem}", quote(text.value));
            problems.add(text.at, message, Some(units::DURATION_EXAMPLES.to_owned()));
            None
        }
    }
}

fn flag(field: &Field<bool>, default: bool) -> bool {
    match field {
        Field::Given(flag) => flag.value,
        Field::Missing | Field::Refused => default,
    }
}

fn whole32(key: &str, field: &Field<i128>, default: u32, least: u64, problems: &mut Problems<'_>) -> u32 {
    let number = whole(key, field, default.into(), least..=u64::from(u32::MAX), problems);
    u32::try_from(number).unwrap_or(default)
}

fn whole(
    key: &str,
    field: &Field<i128>,
    default: u64,
    range: RangeInclusive<u64>,
    problems: &mut Problems<'_>,
) -> u64 {
    let Field::Given(Located { value, at }) = *field else { return default };
    match u64::try_from(value) {
        Ok(number) if range.contains(&number) => return number,
        _ if value < i128::from(*range.start()) => {
            problems.add(at, format!("`{key}` must be at least {}, not {value}", range.start()), None);
        }
        _ => problems.add(at, format!("`{key}` must be at most {}", range.end()), None),
    }
    default
}
