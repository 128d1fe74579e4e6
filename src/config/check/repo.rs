//! One `[[repo]]`, and what must hold between several.

use std::collections::BTreeMap;

use super::checker::Checker;
use super::{docker, entries, pin, recipe, recube};
use crate::config::Repo;
use crate::config::raw::RawRepo;
use crate::document::Problems;
use crate::document::section::{Field, Located};
use crate::record::id::RepoSlug;
use crate::redact::quote;

/// Checks every repository; those that cannot be used are left out.
pub(super) fn all(raws: &[RawRepo<'_>], checker: &mut Checker<'_, '_>) -> Vec<Repo> {
    let repos = raws.iter().filter_map(|raw| one(raw, checker)).collect();
    refuse_duplicates(raws, checker.problems);
    repos
}

pub(super) fn one(raw: &RawRepo<'_>, checker: &mut Checker<'_, '_>) -> Option<Repo> {
    let slug = slug(raw, checker.problems);
    let source = pin::source(raw, checker);
    let base = checker.base;
    let problems = &mut *checker.problems;
    let repo = Repo {
        slug: slug.clone().unwrap_or_else(placeholder),
        source: source?,
        python: recipe::python(&raw.own.python, problems),
        groups: recipe::names("dependency group", &raw.own.groups, problems),
        extras: recipe::names("extra", &raw.own.extras, problems),
        requirements: recipe::requirements(&raw.own.requirements, problems),
        tests: recipe::tests(&raw.own.tests, entries::may_be(raw), problems),
        env: recipe::env(&raw.own.env, problems),
        backend: raw.own.backend.value,
        exclude_newer: recipe::exclude_newer(&raw.own.exclude_newer, problems),
        base: docker::base(&raw.own.base, problems),
        system_packages: docker::packages(&raw.own.system_packages, problems),
        domain: raw.domain.clone().given().map(|text| text.value.to_owned()),
        targets: recube::targets(raw, problems),
        scopes: recube::scopes(raw, problems),
        large: raw.large.value,
        outside: recube::outside(raw, base, problems),
        pair: None,
        entries: entries::of(raw, problems),
        is_scripted: false,
        locked: None,
    };
    docker::fits(raw, &repo, problems);
    slug.map(|_| repo)
}

fn placeholder() -> RepoSlug {
    RepoSlug::new("owner/name").expect("a constant slug")
}

fn slug(raw: &RawRepo<'_>, problems: &mut Problems<'_>) -> Option<RepoSlug> {
    match &raw.slug {
        Field::Refused => None,
        Field::Missing => {
            let example = guess(raw).unwrap_or_else(|| "owner/name".to_owned());
            problems.missing_key(
                raw.at,
                "missing key `slug` in [[repo]]",
                format!("add slug = \"{example}\""),
            );
            None
        }
        Field::Given(text) => RepoSlug::new(text.value).ok().or_else(|| {
            let message = format!("{} is not a slug", quote(text.value));
            let hint = "write `owner/name` with letters, digits, `.`, `_` or `-`".to_owned();
            problems.add(text.at, message, Some(hint));
            None
        }),
    }
}

/// The slug that a git URL suggests.
fn guess(raw: &RawRepo<'_>) -> Option<String> {
    let url = raw.git.clone().given()?.value;
    let mut segments = url.trim_end_matches('/').trim_end_matches(".git").rsplit(['/', ':']);
    let (name, owner) = (segments.next()?, segments.next()?);
    RepoSlug::new(&format!("{owner}/{name}")).ok().map(|slug| slug.to_string())
}

/// Two slugs that would share a directory are one too many.
pub(super) fn refuse_duplicates(raws: &[RawRepo<'_>], problems: &mut Problems<'_>) {
    let mut seen: BTreeMap<String, Located<&str>> = BTreeMap::new();
    for text in raws.iter().filter_map(|raw| raw.slug.clone().given()) {
        let Ok(slug) = RepoSlug::new(text.value) else { continue };
        let name = slug.file_name().to_lowercase();
        let Some(first) = seen.get(&name) else {
            seen.insert(name, text);
            continue;
        };
        let line = problems.line(first.at);
        let message = if first.value == text.value {
            format!("slug {} is configured twice, first in line {line}", quote(text.value))
        } else {
            format!(
                "slugs {} and {} (line {line}) would share the directory `{}`",
                quote(text.value),
                quote(first.value),
                slug.file_name()
            )
        };
        problems.add(text.at, message, Some("give each repository a slug of its own".to_owned()));
    }
}
