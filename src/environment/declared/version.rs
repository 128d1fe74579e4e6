//! The version of a tree whose build would ask git for it. The run tree has no history, so it is told. Pure.

use std::collections::BTreeMap;

use super::declarations::Files;
use super::project::Project;
use crate::record::source::NearestTag;
use crate::requirement::{normalize, parse};
use crate::source::version::{READERS, of_tag};

/// Variables in which builds look for their version before they ask git.
const VARIABLES: [&str; 6] = [
    "SETUPTOOLS_SCM_PRETEND_VERSION",
    "VCS_VERSIONING_PRETEND_VERSION",
    "PBR_VERSION",
    "PDM_BUILD_SCM_VERSION",
    "POETRY_DYNAMIC_VERSIONING_BYPASS",
    "UV_DYNAMIC_VERSIONING_BYPASS",
];

/// Characters of a commit in a version, as git abbreviates it.
const ABBREVIATED: usize = 7;

/// What is known of a tree's history.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    pub tag: Option<&'a NearestTag>,
    pub commit: &'a str,
    /// The version where no tag is known.
    pub unknown: &'a str,
}

/// Variables that tell the build its version, and where the version is from; none when nothing would ask.
pub fn pretend(
    files: &Files,
    project: &Project,
    history: History<'_>,
) -> Option<(BTreeMap<String, String>, String)> {
    if !asks(files, project) {
        return None;
    }
    let tagged = || Some((history.tag?, version_since(history.tag?, history.commit, has_local(files))?));
    let (version, origin) = match (&project.version, tagged()) {
        (Some(version), _) => (version.clone(), "the metadata of the tree".to_owned()),
        (None, Some((tag, version))) => {
            (version, format!("the tag `{}` and {} commits since", tag.name, tag.distance))
        }
        (None, None) => {
            (history.unknown.to_owned(), "nothing: the tree names no version and no tag is known".to_owned())
        }
    };
    let variables = VARIABLES.map(|name| (name.to_owned(), version.clone()));
    Some((variables.into(), format!("the build is given version {version}, from {origin}")))
}

/// Whether the build would ask git for its version.
pub fn asks(files: &Files, project: &Project) -> bool {
    let requires = project.build.iter().flat_map(|build| &build.requires);
    requires
        .filter_map(|text| parse(text))
        .any(|requirement| READERS.contains(&normalize(requirement.name.as_ref()).as_str()))
        || files.get("setup.py").is_some_and(|text| text.contains("use_scm_version") || text.contains("pbr"))
}

/// Whether versions between two tags name their commit: they do unless the tree says otherwise.
fn has_local(files: &Files) -> bool {
    let texts = ["pyproject.toml", "setup.py", "setup.cfg"].into_iter().filter_map(|name| files.get(name));
    !texts.into_iter().any(|text| text.contains("no-local-version"))
}

/// The version of a commit after a tag, as setuptools-scm and those like it count: on the way to the next release.
fn version_since(tag: &NearestTag, commit: &str, has_local: bool) -> Option<String> {
    let version = of_tag(&tag.name)?.to_string();
    if tag.distance == 0 {
        return Some(version);
    }
    let public = version.split('+').next().unwrap_or_default();
    let next = if let Some((next, _)) = public.split_once(".dev") {
        next.to_owned()
    } else {
        let start = public.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        format!("{}{}", &public[..start], public[start..].parse::<u64>().ok()?.checked_add(1)?)
    };
    let local = format!("+g{}", commit.get(..ABBREVIATED).unwrap_or(commit));
    Some(format!("{next}.dev{}{}", tag.distance, if has_local { &local } else { "" }))
}

/// The tag that a git reference looks like; branches and commits have digits, too.
pub fn of_reference(reference: &str) -> Option<NearestTag> {
    let is_tag = reference.contains('.') && of_tag(reference).is_some();
    is_tag.then(|| NearestTag { name: reference.to_owned(), distance: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789012345678901234567890123456789";
    const ASKS: &str = "[build-system]\nrequires = ['setuptools', 'setuptools_scm[toml]>=6']\nbuild-backend = 'setuptools.build_meta'\n";

    fn tag(name: &str, distance: u64) -> NearestTag {
        NearestTag { name: name.to_owned(), distance }
    }

    fn told(pyproject: &str, tag: Option<&NearestTag>) -> Option<String> {
        let files = Files::from_texts([("pyproject.toml", pyproject)]);
        let project = Project::parse(&files).unwrap();
        let (variables, _) =
            pretend(&files, &project, History { tag, commit: COMMIT, unknown: "0.0.0+pinned" })?;
        Some(variables["SETUPTOOLS_SCM_PRETEND_VERSION"].clone())
    }

    #[test]
    fn only_builds_that_ask_git_are_told() {
        assert_eq!(told(ASKS, Some(&tag("pkg-v1.4", 0))).as_deref(), Some("1.4"));
        assert_eq!(told(ASKS, Some(&tag("latest", 0))).as_deref(), Some("0.0.0+pinned"));
        assert_eq!(told(ASKS, None).as_deref(), Some("0.0.0+pinned"));
        let asks_nothing = ASKS.replace("setuptools_scm[toml]>=6", "wheel");
        assert_eq!(told(&asks_nothing, Some(&tag("1", 0))), None);
        let names_it = format!("{ASKS}[project]\nname = 'a'\nversion = '7'\n");
        assert_eq!(told(&names_it, Some(&tag("v1.4", 0))).as_deref(), Some("7"));
    }

    #[test]
    fn commits_after_a_tag_are_on_the_way_to_the_next_release() {
        for (name, version) in [
            ("v1.4", "1.5.dev3+g0123456"),
            ("1.9.9", "1.9.10.dev3+g0123456"),
            ("2.0rc1", "2.0rc2.dev3+g0123456"),
            ("8.4.0.dev0", "8.4.0.dev3+g0123456"),
            ("1.0.post1", "1.0.post2.dev3+g0123456"),
            ("1.0+local", "1.1.dev3+g0123456"),
        ] {
            assert_eq!(told(ASKS, Some(&tag(name, 3))).as_deref(), Some(version), "{name}");
        }
        let without = format!("{ASKS}[tool.setuptools_scm]\nlocal_scheme = 'no-local-version'\n");
        assert_eq!(told(&without, Some(&tag("v1.4", 3))).as_deref(), Some("1.5.dev3"));
    }

    #[test]
    fn only_references_that_look_like_tags_are_taken_for_one() {
        for reference in ["v1.2.3", "pkg-1.0rc1"] {
            assert_eq!(of_reference(reference), Some(tag(reference, 0)));
        }
        for reference in ["main", "e1234567", "feature2", "HEAD"] {
            assert_eq!(of_reference(reference), None, "{reference}");
        }
    }
}
