//! `[recube]`, and what of other sections goes with that family alone.

use std::path::Path;

use super::{Field, Located, Problems, flag, whole32};
use crate::config::OutsideTests;
use crate::config::raw::{Raw, RawRecube, RawRepo};
use crate::record::family::{Family, Unit};
use crate::record::recube::{Bounds, GivenTests, Scope};
use crate::subset::Measure;

/// What is asked of targets.
pub(super) fn bounds(raw: &RawRecube<'_>, problems: &mut Problems<'_>) -> Bounds {
    let default = Bounds::default();
    let bounds = Bounds {
        min_groups: whole32("min_groups", &raw.min_groups, default.min_groups, 1, problems),
        max_groups: whole32("max_groups", &raw.max_groups, default.max_groups, 0, problems),
        min_functions: whole32("min_functions", &raw.min_functions, default.min_functions, 1, problems),
        min_exercised: share("min_exercised", &raw.min_exercised, default.min_exercised, problems),
        max_target_tokens: whole32(
            "max_target_tokens",
            &raw.max_target_tokens,
            default.max_target_tokens,
            1,
            problems,
        ),
        require_noticed: flag(&raw.require_noticed, default.require_noticed),
        large: flag(&raw.large, default.large),
        mutants: whole32("mutants", &raw.mutants, default.mutants, 0, problems),
        context_exclude: match &raw.context_exclude {
            Field::Given(list) => globs("context_exclude", list, problems),
            Field::Missing | Field::Refused => default.context_exclude,
        },
    };
    let place = raw.max_groups.clone().given().or(raw.min_groups.clone().given());
    if let Some(Located { at, .. }) = place.filter(|_| (1..bounds.min_groups).contains(&bounds.max_groups)) {
        let message =
            format!("max_groups ({}) is below min_groups ({})", bounds.max_groups, bounds.min_groups);
        problems.add(at, message, Some("0 sets no limit".to_owned()));
    }
    bounds
}

pub(super) fn share(key: &str, field: &Field<f64>, default: f64, problems: &mut Problems<'_>) -> f64 {
    match *field {
        Field::Given(Located { value, .. }) if (0.0..=1.0).contains(&value) => value,
        Field::Given(Located { value, at }) => {
            problems.add(at, format!("`{key}` must be a share from 0 to 1, not {value}"), None);
            default
        }
        Field::Missing | Field::Refused => default,
    }
}

/// Refuses what goes with another family alone.
pub(super) fn fits(raw: &Raw<'_>, family: Family, problems: &mut Problems<'_>) {
    let ranges = raw.subsets.iter().flat_map(|subset| &subset.ranges);
    for range in ranges.filter(|range| !range.measure.is_of(family)) {
        let known = Measure::ALL.iter().filter(|(measure, _)| measure.is_of(family));
        let names: Vec<&str> = known.map(|(_, name)| *name).collect();
        let message = format!("instances of the family {} do not have this measurement", family.as_str());
        problems.add(range.at, message, Some(format!("they have {}", names.join(", "))));
    }
    if family != Family::Recube {
        let section = raw.recube.at.map(|at| (at, "[recube]"));
        let keys = section.into_iter().chain(raw.repos.iter().flat_map(own_keys));
        refuse_of(Family::Recube, keys, problems);
    }
    if family != Family::Codetaste {
        let pairs = raw.pairs.iter().map(|pair| (pair.at, "[[pair]]"));
        let section = raw.codetaste.at.map(|at| (at, "[codetaste]"));
        refuse_of(Family::Codetaste, section.into_iter().chain(pairs), problems);
    }
    let solution = match family.unit() {
        Unit::Group => return,
        Unit::File => "the original file is the solution",
        Unit::Pair => "the golden patch is the solution",
    };
    let name = family.as_str();
    for repo in &raw.repos {
        let mode = repo.entries.clone().given().map(|text| text.at);
        for at in repo.entry.iter().map(|entry| entry.at).chain(mode) {
            let message = format!("the family {name} has no entries: its tasks are about tests");
            problems.add(at, message, Some("leave `entries` and [[repo.entry]] out".to_owned()));
        }
    }
    if let Field::Given(make) = &raw.witness.make
        && make.value
    {
        let message = format!("the family {name} has no witnesses: {solution}");
        problems.add(make.at, message, Some("leave [witness] out".to_owned()));
    }
    if let (Family::Codetaste, Field::Given(most)) = (family, &raw.dataset.per_repo) {
        let message =
            "`per_repo` does not go with the family codetaste: every pair that passes is an instance";
        problems.add(most.at, message.to_owned(), Some("leave it out, and name fewer pairs".to_owned()));
    }
}

/// What of a repository goes with this family alone.
fn own_keys(repo: &RawRepo<'_>) -> Vec<(usize, &'static str)> {
    let targets = repo.targets.iter().map(|(at, _)| (*at, "[[repo.target]]"));
    let scopes = repo.scopes.iter().map(|(at, ..)| (*at, "[[repo.scope]]"));
    let at = |field: &Field<&str>| field.clone().given().map(|text| text.at);
    let texts = [("`tests_from`", at(&repo.tests_from)), ("`tests_at`", at(&repo.tests_at))];
    let texts = texts.into_iter().filter_map(|(name, at)| Some((at?, name)));
    let large = repo.large.clone().given().map(|flag| (flag.at, "`large`"));
    targets.chain(scopes).chain(texts).chain(large).collect()
}

fn refuse_of<'n>(
    family: Family,
    sections: impl Iterator<Item = (usize, &'n str)>,
    problems: &mut Problems<'_>,
) {
    let name = family.as_str();
    for (at, section) in sections {
        let hint = format!("set family = \"{name}\" in [dataset], or leave it out");
        problems.add(at, format!("{section} goes with the family {name} alone"), Some(hint));
    }
}

/// The files of `[[repo.target]]`.
pub(super) fn targets(raw: &RawRepo<'_>, problems: &mut Problems<'_>) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for (at, file) in &raw.targets {
        let Field::Given(text) = file else {
            if matches!(file, Field::Missing) {
                let message = "missing key `file` in [[repo.target]]".to_owned();
                problems.add(*at, message, Some("add file = \"src/package/module.py\"".to_owned()));
            }
            continue;
        };
        let is_inside = crate::record::trace::check_path(text.value).is_ok() && text.value.ends_with(".py");
        if !is_inside {
            let message =
                format!("{} is not the path of a Python file in the tree", crate::redact::quote(text.value));
            problems.add(text.at, message, Some("write it from the root of the tree, with `/`".to_owned()));
        } else if files.iter().any(|known| known == text.value) {
            problems.add(
                text.at,
                format!("target {} is named twice", crate::redact::quote(text.value)),
                None,
            );
        } else {
            files.push(text.value.to_owned());
        }
    }
    files
}

/// The parts of `[[repo.scope]]`.
pub(super) fn scopes(raw: &RawRepo<'_>, problems: &mut Problems<'_>) -> Vec<Scope> {
    let mut scopes: Vec<Scope> = Vec::new();
    for (at, name, paths) in &raw.scopes {
        for (key, is_missing) in [("name", !name.is_present()), ("paths", !paths.is_present())] {
            if is_missing {
                let message = format!("missing key `{key}` in [[repo.scope]]");
                let hint = "add name = \"json\" and paths = [\"src/package/json/**\"]".to_owned();
                problems.add(*at, message, Some(hint));
            }
        }
        let (Field::Given(name), Field::Given(paths)) = (name, paths) else { continue };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.value.is_empty() || !name.value.chars().all(is_name) {
            let message = format!("{} is not the name of a scope", crate::redact::quote(name.value));
            problems.add(name.at, message, Some("write letters, digits, `.`, `_` or `-`".to_owned()));
        } else if scopes.iter().any(|known| known.name == name.value) {
            let message = format!("scope {} is named twice", crate::redact::quote(name.value));
            problems.add(name.at, message, None);
        }
        scopes.push(Scope { name: name.value.to_owned(), paths: globs("paths", paths, problems) });
    }
    scopes
}

/// Tests that are not the repository's own. What the folder has is read later.
pub(super) fn outside(raw: &RawRepo<'_>, base: &Path, problems: &mut Problems<'_>) -> Option<OutsideTests> {
    let at = match &raw.tests_at {
        Field::Given(text) if crate::record::trace::check_path(text.value).is_err() => {
            let message = format!("{} is not a folder in the tree", crate::redact::quote(text.value));
            problems.add(text.at, message, Some("write it from the root of the tree, with `/`".to_owned()));
            return None;
        }
        Field::Given(text) => text.value.to_owned(),
        Field::Missing | Field::Refused => "tests".to_owned(),
    };
    let Field::Given(folder) = &raw.tests_from else {
        if let Field::Given(text) = &raw.tests_at {
            problems.add(text.at, "`tests_at` goes with `tests_from` alone".to_owned(), None);
        }
        return None;
    };
    if let Field::Given(tests) = &raw.tests {
        let message = "`tests` does not go with `tests_from`: nothing else is collected".to_owned();
        problems.add(tests.at, message, Some("leave one of them out".to_owned()));
    }
    let path = base.join(folder.value);
    if folder.value.is_empty() || !path.is_dir() {
        let message = format!("tests_from {} is not a folder", crate::redact::quote(folder.value));
        problems.add(folder.at, message, Some("relative paths start at the configuration file".to_owned()));
        return None;
    }
    Some(OutsideTests { folder: path, at, given: GivenTests::default() })
}

/// Globs of paths in the tree.
fn globs(key: &str, list: &Located<Vec<Located<&str>>>, problems: &mut Problems<'_>) -> Vec<String> {
    for text in &list.value {
        if crate::record::trace::check_path(&text.value.replace(['*', '?'], "x")).is_err() {
            let shown = crate::redact::quote(text.value);
            let message = format!("`{key}` names {shown}, which no path inside the tree fits");
            problems.add(text.at, message, Some("write it from the root of the tree, with `/`".to_owned()));
        }
    }
    list.value.iter().map(|text| text.value.to_owned()).collect()
}
