//! `[subset.<name>]`.

use super::{flag, whole, whole32};
use crate::config::Repo;
use crate::config::raw::{RawRange, RawSubset, Texts};
use crate::document::section::Field;
use crate::document::{Problems, suggest};
use crate::record::entry::KINDS;
use crate::record::id::{Name, RepoSlug};
use crate::record::instance::Tier;
use crate::redact::quote;
use crate::subset::{FORMER_TOP, Measure, Range, Subset, TOP};

const TIERS: [(&str, Tier); 3] = [("easy", Tier::Easy), ("medium", Tier::Medium), ("hard", Tier::Hard)];
/// The tables of a dataset: a reader asks for a subset as it asks for a table.
const TABLES: [&str; 9] = [
    "instances",
    "groups",
    "cases",
    "attempts",
    "traces",
    "targets",
    "instance_cases",
    "pairs",
    "suite_runs",
];

/// Checks every subset, and gives them by name.
pub(super) fn all(raws: &[RawSubset<'_>], repos: &[Repo], problems: &mut Problems<'_>) -> Vec<Subset> {
    let known: Vec<&str> = repos.iter().map(|repo| repo.slug.as_str()).collect();
    let mut subsets: Vec<Subset> = raws.iter().map(|raw| one(raw, &known, problems)).collect();
    subsets.sort_by(|a, b| a.name.cmp(&b.name));
    subsets
}

fn one(raw: &RawSubset<'_>, known: &[&str], problems: &mut Problems<'_>) -> Subset {
    Subset {
        name: name(raw, problems),
        repos: repos(&raw.repos, known, problems),
        tiers: tiers(&raw.tiers, problems),
        kinds: kinds(&raw.kinds, problems),
        top: if raw.top.is_present() { given(&raw.top) } else { given(&raw.hard) },
        ranges: raw.ranges.iter().filter_map(|raw| range(raw, problems)).collect(),
        per_repo: whole32("per_repo", &raw.per_repo, 0, 0, problems),
        size: whole32("size", &raw.size, 0, 0, problems),
        seed: whole("seed", &raw.seed, 0, 0..=u64::MAX, problems),
    }
}

fn given(field: &Field<bool>) -> Option<bool> {
    field.is_present().then(|| flag(field, true))
}

/// A name; one that cannot be used is among the problems.
fn name(raw: &RawSubset<'_>, problems: &mut Problems<'_>) -> Name {
    let (name, at) = (raw.name.value, raw.name.at);
    let shown = quote(name);
    if name == TOP || name == FORMER_TOP {
        let hint = "every dataset has it: `hard_per_axis` in [dataset] sets its size; name yours otherwise";
        problems.add(at, format!("subset {shown} is built in"), Some(hint.to_owned()));
    } else if TABLES.contains(&name) {
        problems.add(
            at,
            format!("subset {shown} has the name of a table"),
            Some("choose another".to_owned()),
        );
    } else if let Ok(name) = Name::new(name) {
        return name;
    } else {
        let hint = "use letters, digits, `.`, `_` and `-`, a letter or digit first".to_owned();
        problems.add(at, format!("subset {shown} is not safe as a file name"), Some(hint));
    }
    Name::fixed(TOP)
}

fn repos(field: &Texts<'_>, known: &[&str], problems: &mut Problems<'_>) -> Option<Vec<RepoSlug>> {
    let Field::Given(list) = field else { return None };
    let mut slugs = Vec::new();
    for text in &list.value {
        match RepoSlug::new(text.value) {
            Ok(slug) if known.contains(&text.value) => slugs.push(slug),
            _ => {
                let message = format!("no [[repo]] has the slug {}", quote(text.value));
                problems.add(text.at, message, Some(suggest::hint(text.value, known)));
            }
        }
    }
    Some(slugs)
}

fn tiers(field: &Texts<'_>, problems: &mut Problems<'_>) -> Option<Vec<Tier>> {
    let Field::Given(list) = field else { return None };
    let mut tiers = Vec::new();
    for text in &list.value {
        if let Some((_, tier)) = TIERS.iter().find(|(name, _)| *name == text.value) {
            tiers.push(*tier);
        } else {
            let hint = suggest::hint(text.value, &TIERS.map(|(name, _)| name));
            problems.add(text.at, format!("unknown tier {}", quote(text.value)), Some(hint));
        }
    }
    Some(tiers)
}

/// Kinds of what is run: tests, and commands.
pub(super) fn kinds(field: &Texts<'_>, problems: &mut Problems<'_>) -> Option<Vec<String>> {
    let Field::Given(list) = field else { return None };
    for text in &list.value {
        if !KINDS.contains(&text.value) {
            let hint = suggest::hint(text.value, &KINDS);
            problems.add(text.at, format!("unknown kind {}", quote(text.value)), Some(hint));
        }
    }
    if list.value.is_empty() {
        let hint = format!("name some of {}, or leave it out for all", KINDS.join(", "));
        problems.add(list.at, "`kinds` names no kind: nothing would be left".to_owned(), Some(hint));
    }
    Some(list.value.iter().map(|text| text.value.to_owned()).collect())
}

fn range(raw: &RawRange, problems: &mut Problems<'_>) -> Option<(Measure, Range)> {
    let bound = |field: &Field<f64>| field.clone().given().map(|number| number.value);
    let (min, max) = (bound(&raw.min), bound(&raw.max));
    if !raw.min.is_present() && !raw.max.is_present() {
        problems.add(
            raw.at,
            "a range needs `min`, `max` or both",
            Some("write { min = 10, max = 99 }".to_owned()),
        );
        return None;
    }
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        problems.add(raw.at, "`min` is above `max`: nothing is in this range", None);
    }
    Some((raw.measure, Range { min, max }))
}
