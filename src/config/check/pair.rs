//! `[codetaste]` and `[[pair]]`: pairs of commits, each with what its repository has and what it sets itself.

use std::collections::BTreeMap;
use std::path::Path;

use super::checker::Checker;
use super::{Field, Problems, pin, repo, scripts};
use crate::config::raw::{Keys, Raw, RawPair, RawRepo};
use crate::config::{Golden, Pair, Repo};
use crate::document::section::Located;
use crate::document::{self, suggest};
use crate::error::{Error, Result};
use crate::record::id::{CommitSha, RepoSlug};
use crate::redact::quote;

/// Digits of the base in the slug of a pair.
const DIGITS: usize = 8;
/// Longest description, in bytes.
const LONGEST: usize = 64 << 10;
/// Longest patch, in bytes.
const LONGEST_PATCH: u64 = 64 << 20;
/// Takes the place of a commit until both are known.
const NO_COMMIT: &str = "0000000000000000000000000000000000000000";

/// Each pair as the repository at its base, with a slug of its own; those that cannot be used are left out.
pub(super) fn all(raw: &Raw<'_>, checker: &mut Checker<'_, '_>) -> Vec<Repo> {
    repo::refuse_duplicates(&raw.repos, checker.problems);
    let mut used = vec![false; raw.repos.len()];
    let mut pairs = Vec::new();
    for pair in &raw.pairs {
        let at = of_repo(pair, &raw.repos, checker.problems);
        if let Some(at) = at {
            used[at] = true;
        }
        pairs.push((pair, at.and_then(|at| one(pair, (&raw.repos[at], &raw.docker.base), checker))));
    }
    for (repo, _) in raw.repos.iter().zip(used).filter(|(_, used)| !used) {
        let hint = "add [[pair]] with its slug as `repo`, or leave it out; `gistmill commits` finds pairs";
        checker.problems.add(repo.at, "no [[pair]] is of this [[repo]]".to_owned(), Some(hint.to_owned()));
    }
    for repo in &raw.repos {
        let keys = [("commit", &repo.commit), ("branch", &repo.branch), ("pypi", &repo.pypi)];
        for (key, at) in keys.iter().filter_map(|(key, field)| Some((*key, field.at()?))) {
            let hint = match key {
                "pypi" => "a pair needs history: name a clone with `git` or `path`",
                _ => "leave it out: each [[pair]] has its own",
            };
            let message = format!("`{key}` does not go with a [[repo]] of the family codetaste");
            checker.problems.add(at, message, Some(hint.to_owned()));
        }
    }
    refuse_twins(&pairs, checker.problems);
    pairs.into_iter().filter_map(|(_, repo)| repo).collect()
}

/// The place of the repository of a pair.
fn of_repo(pair: &RawPair<'_>, repos: &[RawRepo<'_>], problems: &mut Problems<'_>) -> Option<usize> {
    let known: Vec<&str> = repos.iter().filter_map(|repo| Some(repo.slug.clone().given()?.value)).collect();
    match &pair.repo {
        Field::Refused => None,
        Field::Missing => {
            let example = known.first().copied().unwrap_or("owner/name");
            let hint = format!("add repo = \"{example}\", the slug of its [[repo]]");
            problems.missing_key(pair.at, "missing key `repo` in [[pair]]", hint);
            None
        }
        Field::Given(text) => {
            let is_it =
                |repo: &RawRepo<'_>| repo.slug.clone().given().is_some_and(|slug| slug.value == text.value);
            let at = repos.iter().position(is_it);
            if at.is_none() {
                let message = format!("no [[repo]] has the slug {}", quote(text.value));
                problems.add(text.at, message, Some(suggest::hint(text.value, &known)));
            }
            at
        }
    }
}

fn one<'a>(
    pair: &RawPair<'a>,
    (of, docker_base): (&RawRepo<'a>, &Field<&'a str>),
    checker: &mut Checker<'_, '_>,
) -> Option<Repo> {
    let no_commit = Field::Given(Located { value: NO_COMMIT, at: pair.at });
    let own = pair.own.or(&of.own);
    let merged = RawRepo { commit: no_commit, branch: Field::Missing, own, ..of.clone() };
    let repo = if of.pypi.is_present() { None } else { repo::one(&merged, checker) };
    let place = pin::place(of, checker.base);
    let golden = golden(pair, place.as_deref(), checker);
    let base = base(pair, golden.as_ref(), place.as_deref(), checker);
    let texts = Texts::of(pair, checker);
    let scripted = repo.map(|repo| scripts::of(pair, repo, docker_base, checker));
    let ((scripts, repo), golden, base) = (scripted?, golden?, base?);
    let slug = slug_of(&repo.slug, &base, pair, checker.problems)?;
    let Texts { description, open_description, patterns } = texts;
    let source = repo.source.at(&base);
    let own = Pair { repo: repo.slug, base, golden, description, open_description, patterns, scripts };
    Some(Repo { slug, source, pair: Some(Box::new(own)), ..repo })
}

/// The refactoring: a commit, or a patch in a file.
fn golden(pair: &RawPair<'_>, place: Option<&str>, checker: &mut Checker<'_, '_>) -> Option<Golden> {
    match (&pair.golden, &pair.patch) {
        (Field::Refused, _) | (_, Field::Refused) => None,
        (Field::Given(text), Field::Missing) => {
            pin::full_hash("golden", *text, place, checker).map(Golden::Commit)
        }
        (Field::Missing, Field::Given(file)) => {
            let path = checker.base.join(file.value);
            let text =
                patch_of(&path).map_err(|error| checker.problems.add(file.at, error.to_string(), None));
            text.ok().map(Golden::Patch)
        }
        (Field::Given(_), Field::Given(file)) => {
            let message = "[[pair]] has both `golden` and `patch`".to_owned();
            checker.problems.add(file.at, message, Some("keep one of them".to_owned()));
            None
        }
        (Field::Missing, Field::Missing) => {
            let hint = "add golden = \"<full commit hash>\": the commit that is the refactoring; or patch = \"<file>\"";
            checker.problems.missing_key(pair.at, "missing key `golden` in [[pair]]", hint);
            None
        }
    }
}

/// The text of a patch.
fn patch_of(path: &Path) -> Result<Vec<u8>> {
    let shown = path.display();
    let metadata = fs_err::metadata(path)?;
    if !metadata.is_file() {
        return Err(Error::usage(format!("{shown} is not a regular file")));
    }
    if metadata.len() > LONGEST_PATCH {
        return Err(Error::usage(format!("{shown} has more than 64 MiB")));
    }
    let text = fs_err::read(path)?;
    if text.trim_ascii().is_empty() {
        return Err(Error::usage(format!("the patch {shown} is empty")));
    }
    Ok(text)
}

/// The commit that an agent starts from: the first parent where none is named.
fn base(
    pair: &RawPair<'_>,
    golden: Option<&Golden>,
    place: Option<&str>,
    checker: &mut Checker<'_, '_>,
) -> Option<CommitSha> {
    let base = match &pair.commit {
        Field::Given(text) => pin::full_hash("commit", *text, place, checker)?,
        Field::Refused => return None,
        Field::Missing => {
            let Golden::Commit(golden) = golden? else {
                let message = "missing key `commit` in [[pair]]: a patch does not say what it is for";
                let hint = "add commit = \"<full hash>\": the commit that the patch applies to";
                checker.problems.missing_key(pair.at, message, hint);
                return None;
            };
            let parent = place.and_then(|place| (checker.resolve)(place, &format!("{golden}^")));
            let Some(parent) = parent.and_then(|parent| CommitSha::new(&parent).ok()) else {
                let hint = format!("add commit = \"<full hash>\"; in a clone, see: git rev-parse {golden}^");
                let message =
                    "missing key `commit` in [[pair]]: the first parent of its golden commit is not at hand";
                checker.problems.missing_key(pair.at, message, hint);
                return None;
            };
            parent
        }
    };
    if matches!(golden, Some(Golden::Commit(golden)) if *golden == base) {
        let at = pair.commit.at().unwrap_or(pair.at);
        let hint = "a pair is two commits: leave `commit` out for the first parent of `golden`".to_owned();
        checker.problems.add(at, "`commit` and `golden` are the same commit".to_owned(), Some(hint));
        return None;
    }
    Some(base)
}

/// The slug of a pair: that of its repository with the first digits of the base.
fn slug_of(
    repo: &RepoSlug,
    base: &CommitSha,
    pair: &RawPair<'_>,
    problems: &mut Problems<'_>,
) -> Option<RepoSlug> {
    let slug = RepoSlug::new(&format!("{repo}-{}", &base.as_str()[..DIGITS]));
    if slug.is_err() {
        problems.add(pair.at, format!("the slug {} is too long for a pair", quote(repo.as_str())), None);
    }
    slug.ok()
}

fn refuse_twins(pairs: &[(&RawPair<'_>, Option<Repo>)], problems: &mut Problems<'_>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (pair, repo) in pairs.iter().filter_map(|(pair, repo)| Some((pair, repo.as_ref()?))) {
        let name = repo.slug.file_name().to_lowercase();
        if let Some(first) = seen.get(&name) {
            let message = format!(
                "two pairs have the base {}: the other one is in line {}",
                repo.slug,
                problems.line(*first)
            );
            problems.add(pair.at, message, Some("keep one of them".to_owned()));
        } else {
            seen.insert(name, pair.at);
        }
    }
}

/// The texts that belong to a pair.
#[derive(Default)]
struct Texts {
    description: Option<String>,
    open_description: Option<String>,
    patterns: Vec<(String, String)>,
}

impl Texts {
    fn of(pair: &RawPair<'_>, checker: &mut Checker<'_, '_>) -> Self {
        let mut texts = Texts::default();
        if let Field::Given(text) = &pair.description {
            texts.description = described(text.value.to_owned(), text.at, checker.problems);
        }
        if let Field::Given(folder) = &pair.descriptions {
            if pair.description.is_present() {
                let message = "[[pair]] has both `description` and `descriptions`".to_owned();
                checker.problems.add(folder.at, message, Some("keep one of them".to_owned()));
            }
            let mut read = |name: &str| {
                let file = checker.base.join(folder.value).join(name);
                let text = file.exists().then(|| read(&file, folder.at, checker.problems)).flatten();
                text.and_then(|text| described(text, folder.at, checker.problems))
            };
            let (instructed, open) = (read("description.md"), read("open_description.md"));
            let is_missing = !checker.base.join(folder.value).is_dir();
            if is_missing || instructed.is_none() && open.is_none() {
                let message = format!("{} has no descriptions", quote(folder.value));
                let hint = "put description.md into it, or open_description.md with one sentence".to_owned();
                checker.problems.add(folder.at, message, Some(hint));
            }
            (texts.description, texts.open_description) = (texts.description.or(instructed), open);
        }
        for file in pair.patterns.clone().given().into_iter().flat_map(|files| files.value) {
            let text = read(&checker.base.join(file.value), file.at, checker.problems);
            texts.patterns.extend(text.map(|text| (file.value.to_owned(), text)));
        }
        texts
    }
}

fn read(file: &Path, at: usize, problems: &mut Problems<'_>) -> Option<String> {
    document::read_text(file).map_err(|error| problems.add(at, error.to_string(), None)).ok()
}

fn described(text: String, at: usize, problems: &mut Problems<'_>) -> Option<String> {
    let why = if text.trim().is_empty() {
        "is empty"
    } else if text.len() > LONGEST {
        "has more than 64 KiB"
    } else {
        return Some(text);
    };
    problems.add(at, format!("the description {why}"), None);
    None
}
