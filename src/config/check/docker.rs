//! `[docker]`, and the keys of a repository that only that backend understands.

use crate::config::raw::{RawDocker, RawRepo};
use crate::config::{BASE_IMAGE, BackendKind, Docker, Repo};
use crate::document::Problems;
use crate::document::section::{Field, Located};
use crate::redact::quote;

/// Checks the section; a container gets what it wants of memory and processors unless the config says otherwise.
pub(super) fn check(raw: &RawDocker<'_>, problems: &mut Problems<'_>) -> Docker {
    Docker {
        base: base(&raw.base, problems).unwrap_or_else(|| BASE_IMAGE.to_owned()),
        memory: raw.memory.value,
        milli_cpus: raw.cpus.value,
        disk_budget: raw.disk_budget.value,
    }
}

/// The name of an image, with a tag or, better, a digest.
pub(super) fn base(field: &Field<&str>, problems: &mut Problems<'_>) -> Option<String> {
    let Field::Given(text) = field else { return None };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let ends = |c: char| c.is_ascii_alphanumeric();
    if text.value.starts_with(ends) && text.value.ends_with(ends) && text.value.chars().all(allowed) {
        return Some(text.value.to_owned());
    }
    let message = format!("base {} is not the name of an image", quote(text.value));
    problems.add(text.at, message, Some("write it as python:3.12-slim@sha256:…".to_owned()));
    None
}

/// Names of packages of the distribution, each perhaps with `=version`.
pub(super) fn packages(field: &Field<Vec<Located<&str>>>, problems: &mut Problems<'_>) -> Vec<String> {
    let Field::Given(list) = field else { return Vec::new() };
    let mut names = Vec::new();
    for text in &list.value {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "+-.:~=".contains(c);
        if text.value.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.value.chars().all(allowed) {
            names.push(text.value.to_owned());
        } else {
            let message = format!("{} is not a package of a distribution", quote(text.value));
            problems.add(
                text.at,
                message,
                Some("write names as apt-get takes them, such as libxml2-dev".to_owned()),
            );
        }
    }
    names.sort();
    names.dedup();
    names
}

/// What another backend would silently ignore is refused.
pub(super) fn fits(raw: &RawRepo<'_>, repo: &Repo, problems: &mut Problems<'_>) {
    if repo.backend == BackendKind::Docker {
        return;
    }
    let keys = [("base", raw.own.base.at()), ("system_packages", raw.own.system_packages.at())];
    for (key, at) in keys.into_iter().filter_map(|(key, at)| Some((key, at?))) {
        let hint = "add backend = \"docker\" to this repository, or leave it out".to_owned();
        problems.add(at, format!("`{key}` needs the Docker backend"), Some(hint));
    }
}
