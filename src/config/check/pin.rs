//! Where a repository comes from, pinned to exact content.

use std::path::PathBuf;
use std::str::FromStr;

use pep440_rs::Version;

use super::checker::Checker;
use super::{recipe, url};
use crate::config::SourceSpec;
use crate::config::raw::RawRepo;
use crate::document::Problems;
use crate::document::section::{Field, Located};
use crate::record::id::CommitSha;
use crate::redact::{quote, redact};

const SHA256_HEX: usize = 64;
const EXAMPLE: &str = "write git = \"https://…\", path = \"…\" or pypi = \"name==version\"";

/// The one source of a repository, with what belongs to it and nothing else.
pub(super) fn source(raw: &RawRepo<'_>, checker: &mut Checker<'_, '_>) -> Option<SourceSpec> {
    let given: Vec<(&str, &Field<&str>)> = [("git", &raw.git), ("path", &raw.path), ("pypi", &raw.pypi)]
        .into_iter()
        .filter(|(_, field)| field.is_present())
        .collect();
    match given.as_slice() {
        [] => {
            checker.problems.missing_key(raw.at, "[[repo]] has no source: `git`, `path` or `pypi`", EXAMPLE);
            None
        }
        [("git", text)] => git(raw, text, checker),
        [("path", text)] => path(raw, text, checker),
        [(_, text)] => pypi(raw, text, checker.problems),
        several => {
            let names: Vec<String> = several.iter().map(|(name, _)| format!("`{name}`")).collect();
            let at = several.iter().filter_map(|(_, field)| field.at()).max();
            let message = format!("[[repo]] has {} sources, {}", several.len(), names.join(" and "));
            checker.problems.add(at.unwrap_or(raw.at), message, Some("keep one of them".to_owned()));
            None
        }
    }
}

fn git(raw: &RawRepo<'_>, text: &Field<&str>, checker: &mut Checker<'_, '_>) -> Option<SourceSpec> {
    refuse("sha256", raw.sha256.at(), "pypi", checker.problems);
    refuse("allow_uncommitted", raw.allow_uncommitted.at, "path", checker.problems);
    let text = text.clone().given();
    if let Some(text) = text {
        url::check(text, checker.problems);
    }
    if let Field::Given(branch) = &raw.branch
        && !is_branch(branch.value)
    {
        let hint =
            Some("write its name, such as \"main\", or leave it out for the default branch".to_owned());
        let message = format!("branch {} is not the name of a branch", quote(branch.value));
        checker.problems.add(branch.at, message, hint);
    }
    let commit = match &raw.commit {
        Field::Missing => {
            let hint =
                text.map_or_else(|| "add the full hash".to_owned(), |text| how_to_find(text.value, "HEAD"));
            checker.problems.missing_key(
                raw.at,
                "missing key `commit` in [[repo]]: `git` needs a full hash",
                hint,
            );
            None
        }
        Field::Refused => None,
        Field::Given(commit) => full_hash("commit", *commit, text.map(|text| text.value), checker),
    };
    Some(SourceSpec::Git {
        url: text?.value.to_owned(),
        commit: commit?,
        submodules: raw.submodules.value,
        subdirectory: subdirectory(&raw.own.subdirectory, checker.problems),
        anonymous: false,
    })
}

/// A folder of the repository, from its root.
fn subdirectory(field: &Field<&str>, problems: &mut Problems<'_>) -> Option<String> {
    let Field::Given(text) = field else { return None };
    let plain = text.value.trim_start_matches("./").trim_end_matches('/');
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
    if plain.starts_with('/') || !plain.split('/').all(is_part) {
        let message = format!("subdirectory {} is not a folder of the repository", quote(text.value));
        let hint = "write its path from the root of the repository, such as \"packages/core\"".to_owned();
        problems.add(text.at, message, Some(hint));
        return None;
    }
    Some(plain.to_owned())
}

fn path(raw: &RawRepo<'_>, text: &Field<&str>, checker: &mut Checker<'_, '_>) -> Option<SourceSpec> {
    refuse("sha256", raw.sha256.at(), "pypi", checker.problems);
    refuse("submodules", raw.submodules.at, "git", checker.problems);
    refuse("subdirectory", raw.own.subdirectory.at(), "git", checker.problems);
    refuse("branch", raw.branch.at(), "git", checker.problems);
    let text = text.clone().given()?;
    let path = folder(text, checker);
    let place = path.as_ref().map(|path| path.display().to_string());
    let commit = match &raw.commit {
        Field::Missing => None,
        Field::Refused => return None,
        Field::Given(commit) => Some(full_hash("commit", *commit, place.as_deref(), checker)?),
    };
    Some(SourceSpec::Path { path: path?, commit, allow_uncommitted: raw.allow_uncommitted.value })
}

/// What git takes for one, as far as the characters show.
fn is_branch(name: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c);
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.split('/').all(is_part)
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.chars().any(is_odd)
}

/// Whether these are not files of anybody, but what the kernel shows as such.
fn is_of_kernel(path: &std::path::Path) -> bool {
    use nix::sys::statfs::{PROC_SUPER_MAGIC, SYSFS_MAGIC, statfs};
    statfs(path).is_ok_and(|found| [PROC_SUPER_MAGIC, SYSFS_MAGIC].contains(&found.filesystem_type()))
}

/// An existing folder; relative ones start at the configuration file.
fn folder(text: Located<&str>, checker: &mut Checker<'_, '_>) -> Option<PathBuf> {
    let path = checker.base.join(text.value);
    if let (true, Ok(path)) = (path.is_dir() && !text.value.is_empty(), fs_err::canonicalize(&path)) {
        if is_of_kernel(&path) {
            let message =
                format!("path {} is a view into the kernel, not a folder of files", quote(text.value));
            checker.problems.add(text.at, message, Some("name a folder with a repository".to_owned()));
            return None;
        }
        return Some(path);
    }
    let shown = quote(text.value);
    let (message, hint) = match text.value {
        "" => ("path is empty".to_owned(), None),
        value if value.contains("://") => {
            (format!("path {shown} is a URL"), Some(format!("write git = \"{}\"", redact(value))))
        }
        value if value.starts_with('~') => (
            format!("path {shown} is not expanded"),
            Some("write it out, or relative to this file".to_owned()),
        ),
        _ if path.exists() => (format!("path {shown} is not a folder"), None),
        _ => {
            let absolute = std::path::absolute(&path).unwrap_or(path);
            let hint = "relative paths start at the folder of this file".to_owned();
            (format!("path {shown} does not exist: there is no {}", absolute.display()), Some(hint))
        }
    };
    checker.problems.add(text.at, message, hint);
    None
}

/// A full lower-case hash; anything else is refused with the hash that it means now.
pub(super) fn full_hash(
    key: &str,
    commit: Located<&str>,
    place: Option<&str>,
    checker: &mut Checker<'_, '_>,
) -> Option<CommitSha> {
    if let Ok(sha) = CommitSha::new(commit.value) {
        return Some(sha);
    }
    let shown = quote(commit.value);
    let lower = commit.value.to_ascii_lowercase();
    if CommitSha::new(&lower).is_ok() {
        let message = format!("{key} {shown} has upper-case letters");
        checker.problems.add(commit.at, message, Some(format!("write {key} = \"{lower}\"")));
        return None;
    }
    let is_reference = !commit.value.trim().is_empty() && !commit.value.chars().any(char::is_whitespace);
    let now = place.filter(|_| is_reference).and_then(|place| (checker.resolve)(place, commit.value));
    if let Some(now) = now.and_then(|now| CommitSha::new(&now).ok()) {
        let message = format!("{key} {shown} is not a full hash; it means {now} now");
        checker.problems.add(commit.at, message, Some(format!("write {key} = \"{now}\"")));
    } else {
        let hint = place.map(|place| how_to_find(place, commit.value));
        let message = format!("{key} {shown} is not a full hash, and what it means could not be found");
        checker.problems.add(commit.at, message, hint);
    }
    None
}

/// Where the history of a repository is, as references are looked up there.
pub(super) fn place(raw: &RawRepo<'_>, base: &std::path::Path) -> Option<String> {
    if let Some(url) = raw.git.clone().given() {
        return Some(url.value.to_owned());
    }
    let path = raw.path.clone().given()?;
    Some(fs_err::canonicalize(base.join(path.value)).ok()?.display().to_string())
}

/// The command that shows a full hash.
fn how_to_find(place: &str, reference: &str) -> String {
    let looks_like_hash = reference.len() >= 4 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
    let word = |text: &str| crate::text::shell_quote(&redact(text));
    if looks_like_hash {
        format!("in a clone of it, see: git rev-parse {}", word(reference))
    } else {
        format!("see: git ls-remote {} {}", word(place), word(reference))
    }
}

fn pypi(raw: &RawRepo<'_>, text: &Field<&str>, problems: &mut Problems<'_>) -> Option<SourceSpec> {
    refuse("submodules", raw.submodules.at, "git", problems);
    refuse("branch", raw.branch.at(), "git", problems);
    refuse("allow_uncommitted", raw.allow_uncommitted.at, "path", problems);
    refuse("subdirectory", raw.own.subdirectory.at(), "git", problems);
    if let Field::Given(commit) = &raw.commit {
        let hint = "`sha256` pins what `pypi` names; remove `commit`, or use `git` instead".to_owned();
        problems.add(commit.at, "`commit` does not go with `pypi`", Some(hint));
    }
    let text = text.clone().given();
    let release = text.and_then(|text| release(text, problems));
    let sha256 = match &raw.sha256 {
        Field::Refused => None,
        Field::Missing => {
            let name = release
                .as_ref()
                .map_or("name==version".to_owned(), |(name, version)| format!("{name}=={version}"));
            let hint = format!(
                "the hash of the sdist is in the output of: echo '{name}' | uv pip compile - --no-deps --no-header --format pylock.toml"
            );
            problems.missing_key(raw.at, "missing key `sha256` in [[repo]]: `pypi` needs it", hint);
            None
        }
        Field::Given(sha256) => digest(*sha256, problems),
    };
    let (project, version) = release?;
    Some(SourceSpec::Pypi { project, version, sha256: sha256? })
}

/// `name==version`, the name normalized.
fn release(text: Located<&str>, problems: &mut Problems<'_>) -> Option<(String, String)> {
    let shown = quote(text.value);
    let Some((name, version)) =
        text.value.split_once("==").map(|(name, version)| (name.trim(), version.trim()))
    else {
        let hint = Some("write pypi = \"name==version\"".to_owned());
        problems.add(text.at, format!("pypi {shown} does not say which version"), hint);
        return None;
    };
    let message = if name.contains('[') {
        (format!("pypi {shown} has extras"), "list them in extras = […] instead")
    } else if !recipe::is_name(name) {
        (format!("pypi {shown} has no valid project name"), "write pypi = \"name==version\"")
    } else if Version::from_str(version).is_err() {
        (format!("pypi {shown} has no exact version"), "write one version, as in \"flask==3.1.3\"")
    } else {
        return Some((recipe::normal_name(name), version.to_owned()));
    };
    problems.add(text.at, message.0, Some(message.1.to_owned()));
    None
}

fn digest(text: Located<&str>, problems: &mut Problems<'_>) -> Option<String> {
    let is_digest = |text: &str| text.len() == SHA256_HEX && CommitSha::new(text).is_ok();
    if is_digest(text.value) {
        return Some(text.value.to_owned());
    }
    let bare =
        text.value.trim().trim_start_matches("sha256:").trim_start_matches("sha256=").to_ascii_lowercase();
    let hint = is_digest(&bare).then(|| format!("write sha256 = \"{bare}\""));
    problems.add(
        text.at,
        format!("sha256 {} is not {SHA256_HEX} lower-case hex digits", quote(text.value)),
        hint,
    );
    None
}

/// A key that goes with another kind of source only.
fn refuse(key: &str, at: Option<usize>, with: &str, problems: &mut Problems<'_>) {
    if let Some(at) = at {
        let hint = Some(format!("remove `{key}`, which goes with `{with}`"));
        problems.add(at, format!("`{key}` does not go with this source"), hint);
    }
}
