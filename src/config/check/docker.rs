//! `[docker]`, and the keys of a repository that only that backend understands.

use super::size;
use crate::config::raw::{RawDocker, RawRepo, Text, Texts};
use crate::config::{BASE_IMAGE, BackendKind, Docker, Repo};
use crate::document::Problems;
use crate::document::section::{Field, Located};
use crate::redact::quote;

const MEBIBYTE: u64 = 1 << 20;
/// Most processors that can be meant.
const MOST_CPUS: f64 = 4096.0;

/// Checks the section; a container gets what it wants of memory and processors unless the config says otherwise.
pub(super) fn check(raw: &RawDocker<'_>, problems: &mut Problems<'_>) -> Docker {
    Docker {
        base: base(&raw.base, problems).unwrap_or_else(|| BASE_IMAGE.to_owned()),
        memory: size("memory", &raw.memory, 0, 64 * MEBIBYTE, problems),
        milli_cpus: cpus(&raw.cpus, problems),
        disk_budget: size("disk_budget", &raw.disk_budget, 20 << 30, MEBIBYTE, problems),
    }
}

fn cpus(field: &Field<f64>, problems: &mut Problems<'_>) -> u64 {
    match *field {
        Field::Given(Located { value, .. }) if value == 0.0 || (0.01..=MOST_CPUS).contains(&value) => {
            (value * 1000.0).round() as u64
        }
        Field::Given(Located { value, at }) => {
            let hint = "write a number such as 2 or 0.5; 0 sets no limit".to_owned();
            problems.add(at, format!("`cpus` must be from 0.01 to {MOST_CPUS}, not {value}"), Some(hint));
            0
        }
        Field::Missing | Field::Refused => 0,
    }
}

/// The name of an image, with a tag or, better, a digest.
pub(super) fn base(field: &Text<'_>, problems: &mut Problems<'_>) -> Option<String> {
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
pub(super) fn packages(field: &Texts<'_>, problems: &mut Problems<'_>) -> Vec<String> {
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
    let base = raw.base.clone().given().map(|text| ("base", text.at));
    let packages = raw.system_packages.clone().given().map(|list| ("system_packages", list.at));
    for (key, at) in base.into_iter().chain(packages) {
        let hint = "add backend = \"docker\" to this repository, or leave it out".to_owned();
        problems.add(at, format!("`{key}` needs the Docker backend"), Some(hint));
    }
}
