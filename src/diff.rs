//! Two versions of a dataset side by side: what came, what went and why, what changed. The comparison is pure; reading
//! the two directories is [`read`]'s.
//!
//! A test is the same in both versions when slug and group id are. One that is gone under its name and there under
//! another one, with the same code, has moved: the hash of the code that a group runs ([`crate::python_source::definitions`]) knows neither
//! files nor lines.

mod read;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::record::family::Family;

/// A version as far as it is compared.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(
    clippy::struct_field_names,
    reason = "a dataset has a name and a version, and this is one of two versions"
)]
pub(crate) struct Version {
    pub family: Family,
    pub name: String,
    pub version: String,
    /// By slug.
    pub repositories: BTreeMap<String, RepositoryOf>,
    /// Repositories that could not be finished, with the reason.
    pub failed: BTreeMap<String, String>,
}

/// One repository of a version.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RepositoryOf {
    pub commit: String,
    /// By group id.
    pub groups: BTreeMap<String, GroupOf>,
}

/// One group of a version; in a dataset of masked files one file that could be masked.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct GroupOf {
    pub published: bool,
    /// None when kept.
    pub cause: Option<String>,
    /// The evidence in a sentence.
    pub summary: Option<String>,
    pub code: Option<String>,
    /// Trace length, calls outside the tests, files, functions, lines: null where not measured.
    pub measures: BTreeMap<&'static str, Option<i64>>,
    pub trace_stable: Option<bool>,
    pub tier: Option<String>,
    pub hard_axes: Vec<String>,
    /// Per case, a hash of its golden outcome, exception and output.
    pub golden: BTreeMap<String, String>,
}

/// The difference between two versions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Diff {
    /// What both are made of.
    pub family: Family,
    /// `name version`.
    pub from: String,
    pub to: String,
    pub total: Totals,
    /// By slug.
    pub repositories: BTreeMap<String, RepositoryDiff>,
}

/// Numbers of instances and groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub added: usize,
    pub removed: usize,
    pub moved: usize,
    pub changed: usize,
    pub unchanged: usize,
    pub groups: Groups,
}

/// Groups of a repository, published or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Groups {
    pub only_before: usize,
    pub only_after: usize,
    /// In both, and the code that they run is the same.
    pub same_code: usize,
    pub other_code: usize,
    /// In both, but at least one of them was never traced.
    pub unknown_code: usize,
}

/// The difference of one repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct RepositoryDiff {
    /// Pin before and after; none where the repository is not in that version.
    pub commits: [Option<String>; 2],
    pub groups: Groups,
    pub added: Vec<Came>,
    pub removed: Vec<Went>,
    pub moved: Vec<Moved>,
    pub changed: Vec<Changed>,
    /// Instances of both versions with the same trace, tier and golden observation.
    pub unchanged: usize,
}

/// An instance of the new version only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Came {
    pub group_id: String,
    /// `new`, `not in the sample`, or the cause for which it was dropped before.
    pub was: String,
}

/// An instance of the old version only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Went {
    pub group_id: String,
    /// `gone`, `not in the sample`, `repository not in this version`, `repository failed`, or the cause.
    pub cause: String,
    /// What a person can check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// An instance that has another name now and runs the same code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Moved {
    pub from: String,
    pub to: String,
}

/// An instance of both versions that is not the same in both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Changed {
    pub group_id: String,
    /// Whether the code that it runs is the same; none where that is not known.
    pub same_code: Option<bool>,
    /// Measurements of the trace that differ, before and after.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub trace: BTreeMap<&'static str, [Option<i64>; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<[String; 2]>,
    /// Axes of the hard subset, before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hard_axes: Option<[Vec<String>; 2]>,
    #[serde(skip_serializing_if = "Golden::is_empty")]
    pub golden: Golden,
}

/// Cases whose golden observation is not the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Golden {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
}

impl Golden {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// Compares two datasets, or subsets of them: directories, or files of directories as [`read::DatasetPath`] knows them.
///
/// # Errors
/// When one of them is not a dataset of this format.
pub(crate) fn places(before: &Path, after: &Path) -> Result<Diff> {
    let read = |path: &Path| read::version(&read::DatasetPath::of(path));
    let (before, after) = (read(before)?, read(after)?);
    if before.family != after.family {
        return Err(Error::usage(format!(
            "a dataset of the family {} cannot be compared with one of the family {}",
            before.family.as_str(),
            after.family.as_str()
        ))
        .with_hint("name two datasets of one family"));
    }
    Ok(compare(&before, &after))
}

/// Compares two versions.
pub(crate) fn compare(before: &Version, after: &Version) -> Diff {
    let slugs: BTreeSet<&String> = before.repositories.keys().chain(after.repositories.keys()).collect();
    let repositories: BTreeMap<String, RepositoryDiff> =
        slugs.into_iter().map(|slug| (slug.clone(), repository(before, after, slug))).collect();
    let shown = |version: &Version| format!("{} {}", version.name, version.version);
    Diff {
        family: after.family,
        from: shown(before),
        to: shown(after),
        total: total(&repositories),
        repositories,
    }
}

fn total(repositories: &BTreeMap<String, RepositoryDiff>) -> Totals {
    let mut total = Totals::default();
    for one in repositories.values() {
        total.added += one.added.len();
        total.removed += one.removed.len();
        total.moved += one.moved.len();
        total.changed += one.changed.len();
        total.unchanged += one.unchanged;
        total.groups.only_before += one.groups.only_before;
        total.groups.only_after += one.groups.only_after;
        total.groups.same_code += one.groups.same_code;
        total.groups.other_code += one.groups.other_code;
        total.groups.unknown_code += one.groups.unknown_code;
    }
    total
}

fn repository(before: &Version, after: &Version, slug: &str) -> RepositoryDiff {
    let none = RepositoryOf::default();
    let (old, new) = (before.repositories.get(slug), after.repositories.get(slug));
    let mut diff = RepositoryDiff {
        commits: [old, new].map(|one| one.map(|one| one.commit.clone())),
        ..RepositoryDiff::default()
    };
    let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
    diff.groups = groups(old, new);
    diff.moved = moved(old, new);
    let from: BTreeSet<&str> = diff.moved.iter().map(|one| one.from.as_str()).collect();
    let to: BTreeSet<&str> = diff.moved.iter().map(|one| one.to.as_str()).collect();
    for (id, group) in old.groups.iter().filter(|(id, one)| one.published && !from.contains(id.as_str())) {
        match new.groups.get(id) {
            Some(other) if other.published => match changed(id, group, other) {
                Some(change) => diff.changed.push(change),
                None => diff.unchanged += 1,
            },
            other => diff.removed.push(went(after, slug, id, other)),
        }
    }
    let came = |(id, group): (&String, &GroupOf)| {
        let earlier = old.groups.get(id);
        let is_new =
            group.published && !to.contains(id.as_str()) && !earlier.is_some_and(|one| one.published);
        is_new.then(|| Came { group_id: id.clone(), was: earlier.map_or("new".to_owned(), why_not) })
    };
    diff.added = new.groups.iter().filter_map(came).collect();
    diff
}

fn groups(old: &RepositoryOf, new: &RepositoryOf) -> Groups {
    let mut groups = Groups {
        only_after: new.groups.keys().filter(|id| !old.groups.contains_key(*id)).count(),
        ..Groups::default()
    };
    for (id, group) in &old.groups {
        match new.groups.get(id).map(|other| same_code(group, other)) {
            None => groups.only_before += 1,
            Some(None) => groups.unknown_code += 1,
            Some(Some(true)) => groups.same_code += 1,
            Some(Some(false)) => groups.other_code += 1,
        }
    }
    groups
}

fn same_code(a: &GroupOf, b: &GroupOf) -> Option<bool> {
    Some(a.code.as_ref()? == b.code.as_ref()?)
}

/// Instances that are gone under their name, each with the one new name under which the same code is published.
fn moved(old: &RepositoryOf, new: &RepositoryOf) -> Vec<Moved> {
    let lost = by_code(old, new);
    let found = by_code(new, old);
    let pair = |(code, from): (&str, Vec<&str>)| match (from.as_slice(), found.get(code).map(Vec::as_slice)) {
        ([from], Some([to])) => Some(Moved { from: (*from).to_owned(), to: (*to).to_owned() }),
        _ => None,
    };
    let mut moved: Vec<Moved> = lost.into_iter().filter_map(pair).collect();
    moved.sort_by(|a, b| a.from.cmp(&b.from));
    moved
}

/// Published groups whose name the other version does not have, by code.
fn by_code<'a>(one: &'a RepositoryOf, other: &RepositoryOf) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut by_code: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, group) in one.groups.iter().filter(|(id, one)| one.published && !other.groups.contains_key(*id))
    {
        if let Some(code) = &group.code {
            by_code.entry(code).or_default().push(id);
        }
    }
    by_code
}

fn why_not(group: &GroupOf) -> String {
    group.cause.clone().unwrap_or_else(|| "not in the sample".to_owned())
}

fn went(after: &Version, slug: &str, id: &str, now: Option<&GroupOf>) -> Went {
    let (cause, evidence) = match now {
        Some(group) => (why_not(group), group.summary.clone()),
        None if after.repositories.contains_key(slug) => ("gone".to_owned(), None),
        None => match after.failed.get(slug) {
            Some(reason) => ("repository failed".to_owned(), Some(reason.clone())),
            None => ("repository not in this version".to_owned(), None),
        },
    };
    Went { group_id: id.to_owned(), cause, evidence }
}

/// None when trace, tier and golden observation are the same.
fn changed(id: &str, old: &GroupOf, new: &GroupOf) -> Option<Changed> {
    let names: BTreeSet<&'static str> = old.measures.keys().chain(new.measures.keys()).copied().collect();
    let value = |group: &GroupOf, name: &str| group.measures.get(name).copied().flatten();
    let trace = names
        .into_iter()
        .map(|name| (name, [value(old, name), value(new, name)]))
        .filter(|(_, [a, b])| a != b)
        .collect();
    let tier = |group: &GroupOf| group.tier.clone().unwrap_or_default();
    let changed = Changed {
        group_id: id.to_owned(),
        same_code: same_code(old, new),
        trace,
        tier: (old.tier != new.tier).then(|| [tier(old), tier(new)]),
        hard_axes: (old.hard_axes != new.hard_axes).then(|| [old.hard_axes.clone(), new.hard_axes.clone()]),
        golden: golden(old, new),
    };
    let same = changed.trace.is_empty()
        && changed.tier.is_none()
        && changed.hard_axes.is_none()
        && changed.golden.is_empty();
    (!same).then_some(changed)
}

fn golden(old: &GroupOf, new: &GroupOf) -> Golden {
    let missing = |a: &GroupOf, b: &GroupOf| {
        a.golden.keys().filter(|case| !b.golden.contains_key(*case)).cloned().collect()
    };
    let differs = |(case, seen): &(&String, &String)| new.golden.get(*case).is_some_and(|now| now != *seen);
    Golden {
        added: missing(new, old),
        removed: missing(old, new),
        changed: old.golden.iter().filter(differs).map(|(case, _)| case.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(code: &str, length: i64) -> GroupOf {
        GroupOf {
            published: true,
            code: Some(code.to_owned()),
            measures: [("trace_length", Some(length)), ("unique_files", Some(2))].into(),
            trace_stable: Some(true),
            tier: Some("easy".to_owned()),
            golden: [("case".to_owned(), "seen".to_owned())].into(),
            ..GroupOf::default()
        }
    }

    fn dropped(cause: &str) -> GroupOf {
        GroupOf {
            published: false,
            cause: Some(cause.to_owned()),
            summary: Some("it does".to_owned()),
            ..GroupOf::default()
        }
    }

    fn version(groups: &[(&str, GroupOf)]) -> Version {
        let groups = groups.iter().map(|(id, group)| ((*id).to_owned(), group.clone())).collect();
        let repository = RepositoryOf { commit: "c".to_owned(), groups };
        Version { repositories: [("a/b".to_owned(), repository)].into(), ..Version::default() }
    }

    fn diff(before: &[(&str, GroupOf)], after: &[(&str, GroupOf)]) -> RepositoryDiff {
        compare(&version(before), &version(after)).repositories.remove("a/b").unwrap()
    }

    #[test]
    fn a_version_does_not_differ_from_itself() {
        let one = version(&[("t", group("x", 3)), ("u", dropped("fails"))]);
        let diff = compare(&one, &one);
        assert_eq!((diff.total.unchanged, diff.total.groups.same_code), (1, 1));
        assert_eq!(diff.total.groups.unknown_code, 1, "never traced");
        let empty = Totals { unchanged: 1, groups: diff.total.groups.clone(), ..Totals::default() };
        assert_eq!(diff.total, empty);
    }

    #[test]
    fn what_came_says_what_it_was_and_what_went_says_why() {
        let kept = GroupOf { published: false, ..group("k", 1) };
        let diff = diff(
            &[
                ("fixed", dropped("fails")),
                ("sampled", kept.clone()),
                ("broken", group("b", 1)),
                ("gone", group("g", 1)),
                ("unlucky", group("u", 1)),
            ],
            &[
                ("fixed", group("f", 1)),
                ("sampled", group("k", 1)),
                ("broken", dropped("times-out")),
                ("fresh", group("n", 1)),
                ("unlucky", kept),
            ],
        );
        let came: Vec<_> = diff.added.iter().map(|one| (one.group_id.as_str(), one.was.as_str())).collect();
        assert_eq!(came, [("fixed", "fails"), ("fresh", "new"), ("sampled", "not in the sample")]);
        let went: Vec<_> =
            diff.removed.iter().map(|one| (one.group_id.as_str(), one.cause.as_str())).collect();
        assert_eq!(went, [("broken", "times-out"), ("gone", "gone"), ("unlucky", "not in the sample")]);
        assert_eq!(diff.removed[0].evidence.as_deref(), Some("it does"));
        assert_eq!((diff.groups.only_before, diff.groups.only_after), (1, 1));
    }

    #[test]
    fn the_same_code_under_another_name_has_moved_unless_that_is_ambiguous() {
        let moved = diff(&[("old.py::t", group("x", 1))], &[("new.py::t", group("x", 1))]);
        assert_eq!(moved.moved, [Moved { from: "old.py::t".to_owned(), to: "new.py::t".to_owned() }]);
        assert!(moved.added.is_empty() && moved.removed.is_empty());
        let twins = diff(&[("a", group("x", 1))], &[("b", group("x", 1)), ("c", group("x", 1))]);
        assert_eq!((twins.moved.len(), twins.removed.len(), twins.added.len()), (0, 1, 2));
    }

    #[test]
    fn trace_tier_and_golden_changes_are_told_apart() {
        let mut other = group("y", 5);
        other.tier = Some("hard".to_owned());
        other.hard_axes = vec!["trace_length".to_owned()];
        other.golden = [("case".to_owned(), "other".to_owned()), ("more".to_owned(), "x".to_owned())].into();
        let changed = diff(&[("t", group("x", 3))], &[("t", other)]).changed.remove(0);
        assert_eq!(changed.trace, [("trace_length", [Some(3), Some(5)])].into());
        assert_eq!(changed.tier, Some(["easy".to_owned(), "hard".to_owned()]));
        assert_eq!(changed.hard_axes.unwrap()[1], ["trace_length"]);
        assert_eq!(
            (changed.golden.added, changed.golden.changed),
            (vec!["more".to_owned()], vec!["case".to_owned()])
        );
        assert_eq!(changed.same_code, Some(false));
    }

    #[test]
    fn other_code_with_the_same_observation_is_no_changed_instance() {
        let diff = diff(&[("t", group("x", 3))], &[("t", group("y", 3))]);
        assert_eq!((diff.unchanged, diff.groups.other_code), (1, 1));
    }

    #[test]
    fn a_repository_that_is_not_there_any_more_takes_its_instances_along() {
        let before = version(&[("t", group("x", 3))]);
        let mut after = Version::default();
        let cause = |after: &Version| compare(&before, after).repositories["a/b"].removed[0].cause.clone();
        assert_eq!(cause(&after), "repository not in this version");
        after.failed.insert("a/b".to_owned(), "no interpreter".to_owned());
        assert_eq!(cause(&after), "repository failed");
    }

    #[test]
    fn swapping_the_versions_swaps_added_and_removed() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..100 {
            let mut side = || -> Vec<(String, GroupOf)> {
                let one = |number: usize, random: &mut fastrand::Rng| {
                    let made = match random.u8(0..4) {
                        0 => dropped("fails"),
                        1 => GroupOf { published: false, ..group("k", 1) },
                        _ => group(&random.u8(0..20).to_string(), random.i64(1..3)),
                    };
                    (format!("t{number}"), made)
                };
                let all: Vec<_> = (0..12).map(|number| one(number, &mut random)).collect();
                all.into_iter().filter(|_| random.bool()).collect()
            };
            let (a, b) = (side(), side());
            let borrow = |side: &[(String, GroupOf)]| {
                version(&side.iter().map(|(id, group)| (id.as_str(), group.clone())).collect::<Vec<_>>())
            };
            let (there, back) = (compare(&borrow(&a), &borrow(&b)), compare(&borrow(&b), &borrow(&a)));
            assert_eq!((there.total.added, there.total.removed), (back.total.removed, back.total.added));
            assert_eq!((there.total.moved, there.total.changed), (back.total.moved, back.total.changed));
            let published = |side: &[(String, GroupOf)]| side.iter().filter(|(_, one)| one.published).count();
            let both = there.total.moved + there.total.changed + there.total.unchanged;
            assert_eq!(both + there.total.removed, published(&a));
            assert_eq!(both + there.total.added, published(&b));
        }
    }
}
