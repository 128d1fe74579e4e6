//! `[recube]`, and what of other sections goes with that family alone.

use std::path::Path;

use super::{Field, Problems};
use crate::config::OutsideTests;
use crate::config::raw::{Raw, RawRecube, RawRepo, RawScope};
use crate::record::family::{Family, Unit};
use crate::record::recube::{Bounds, GivenTests, Scope};
use crate::record::trace::check_path;
use crate::redact::quote;
use crate::subset::Measure;

/// What is asked of targets.
pub(super) fn bounds(raw: &RawRecube<'_>, problems: &mut Problems<'_>) -> Bounds {
    let RawRecube { max_groups: most, min_groups: least, .. } = raw;
    let is_refused = most.is_refused || least.is_refused;
    if !is_refused && (1..least.value).contains(&most.value) {
        let message = format!("max_groups ({}) is below min_groups ({})", most.value, least.value);
        let at = most.at.or(least.at).unwrap_or_default();
        problems.add(at, message, Some("0 sets no limit".to_owned()));
    }
    raw.clone().into()
}

/// Refuses what goes with another family alone.
pub(super) fn fits(raw: &Raw<'_>, family: Family, problems: &mut Problems<'_>) {
    let ranges = raw.subsets.iter().flat_map(|subset| &subset.ranges);
    for (_, range) in ranges.filter(|(measure, _)| !measure.is_of(family)) {
        let known = Measure::ALL.into_iter().filter(|measure| measure.is_of(family));
        let names: Vec<&str> = known.map(Measure::as_str).collect();
        let message = format!("instances of the family {} do not have this measurement", family.as_str());
        problems.add(range.at, message, Some(format!("they have {}", names.join(", "))));
    }
    if family != Family::Recube {
        let section = raw.recube_at.map(|at| (at, "[recube]"));
        let keys = section.into_iter().chain(raw.repos.iter().flat_map(own_keys));
        refuse_of(Family::Recube, keys, problems);
    }
    if family != Family::Codetaste {
        let pairs = raw.pairs.iter().map(|pair| (pair.at, "[[pair]]"));
        let section = raw.codetaste_at.map(|at| (at, "[codetaste]"));
        refuse_of(Family::Codetaste, section.into_iter().chain(pairs), problems);
    }
    let solution = match family.unit() {
        Unit::Group => return,
        Unit::File => "the original file is the solution",
        Unit::Pair => "the golden patch is the solution",
    };
    let name = family.as_str();
    for repo in &raw.repos {
        for at in repo.entry.iter().map(|entry| entry.at).chain(repo.entries.at) {
            let message = format!("the family {name} has no entries: its tasks are about tests");
            problems.add(at, message, Some("leave `entries` and [[repo.entry]] out".to_owned()));
        }
    }
    if let (Some(at), true) = (raw.witness.make.at, raw.witness.make.value) {
        let message = format!("the family {name} has no witnesses: {solution}");
        problems.add(at, message, Some("leave [witness] out".to_owned()));
    }
    if let Some(at) = raw.mutation_at {
        let hint = match family {
            Family::Recube => "`mutants` in [recube] does this",
            _ => "leave [mutation] out",
        };
        problems.add(at, format!("[mutation] does not go with the family {name}"), Some(hint.to_owned()));
    }
    if let (Family::Codetaste, Some(at)) = (family, raw.dataset.per_repo.at) {
        let message =
            "`per_repo` does not go with the family codetaste: every pair that passes is an instance";
        problems.add(at, message.to_owned(), Some("leave it out, and name fewer pairs".to_owned()));
    }
}

/// What of a repository goes with this family alone.
fn own_keys(repo: &RawRepo<'_>) -> Vec<(usize, &'static str)> {
    let targets = repo.target.iter().map(|target| (target.at, "[[repo.target]]"));
    let scopes = repo.scope.iter().map(|scope| (scope.at, "[[repo.scope]]"));
    let keys = [
        (repo.tests_from.at(), "`tests_from`"),
        (repo.tests_at.at, "`tests_at`"),
        (repo.large.at, "`large`"),
    ];
    let keys = keys.into_iter().filter_map(|(at, name)| Some((at?, name)));
    targets.chain(scopes).chain(keys).collect()
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
    for target in &raw.target {
        let Field::Given(text) = &target.file else {
            if !target.file.is_present() {
                let message = "missing key `file` in [[repo.target]]".to_owned();
                problems.add(target.at, message, Some("add file = \"src/package/module.py\"".to_owned()));
            }
            continue;
        };
        let is_inside = check_path(text.value).is_ok() && text.value.ends_with(".py");
        if !is_inside {
            let message = format!("{} is not the path of a Python file in the tree", quote(text.value));
            problems.add(text.at, message, Some("write it from the root of the tree, with `/`".to_owned()));
        } else if files.iter().any(|known| known == text.value) {
            problems.add(text.at, format!("target {} is named twice", quote(text.value)), None);
        } else {
            files.push(text.value.to_owned());
        }
    }
    files
}

/// The parts of `[[repo.scope]]`.
pub(super) fn scopes(raw: &RawRepo<'_>, problems: &mut Problems<'_>) -> Vec<Scope> {
    let mut scopes: Vec<Scope> = Vec::new();
    for RawScope { at, name, paths } in &raw.scope {
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
            let message = format!("{} is not the name of a scope", quote(name.value));
            problems.add(name.at, message, Some("write letters, digits, `.`, `_` or `-`".to_owned()));
        } else if scopes.iter().any(|known| known.name == name.value) {
            let message = format!("scope {} is named twice", quote(name.value));
            problems.add(name.at, message, None);
        }
        scopes.push(Scope { name: name.value.to_owned(), paths: paths.value.clone() });
    }
    scopes
}

/// Tests that are not the repository's own. What the folder has is read later.
pub(super) fn outside(raw: &RawRepo<'_>, base: &Path, problems: &mut Problems<'_>) -> Option<OutsideTests> {
    let place = raw.tests_at.value;
    if check_path(place).is_err() {
        let message = format!("{} is not a folder in the tree", quote(place));
        let hint = "write it from the root of the tree, with `/`".to_owned();
        problems.add(raw.tests_at.at.unwrap_or_default(), message, Some(hint));
        return None;
    }
    let Field::Given(folder) = &raw.tests_from else {
        if let Some(at) = raw.tests_at.at {
            problems.add(at, "`tests_at` goes with `tests_from` alone".to_owned(), None);
        }
        return None;
    };
    if let Field::Given(tests) = &raw.own.tests {
        let message = "`tests` does not go with `tests_from`: nothing else is collected".to_owned();
        problems.add(tests.at, message, Some("leave one of them out".to_owned()));
    }
    let path = base.join(folder.value);
    if folder.value.is_empty() || !path.is_dir() {
        let message = format!("tests_from {} is not a folder", quote(folder.value));
        problems.add(folder.at, message, Some("relative paths start at the configuration file".to_owned()));
        return None;
    }
    Some(OutsideTests { folder: path, at: place.to_owned(), given: GivenTests::default() })
}
