//! The version of a tree whose build would ask git for it. The run tree has no history, so it is told. Pure.

use std::collections::BTreeMap;

use super::project::{Files, Project};
use super::requirements_files::{normalize, parse};

/// Build requirements that read the version from version control.
const READERS: [&str; 12] = [
    "setuptools-scm",
    "hatch-vcs",
    "vcs-versioning",
    "setuptools-git-versioning",
    "versioningit",
    "flit-scm",
    "poetry-dynamic-versioning",
    "uv-dynamic-versioning",
    "pdm-backend",
    "dunamai",
    "pbr",
    "setuptools-git",
];

/// What [`crate::record::source::Pinned::notes`] says when the source stage knows the nearest tag.
pub const TAG_NOTE: &str = "nearest tag: ";

/// Variables that tell the build its version, and where the version is from; none when nothing would ask.
pub fn pretend(
    files: &Files,
    project: &Project,
    notes: &[String],
) -> Option<(BTreeMap<String, String>, String)> {
    let requires = project.build.iter().flat_map(|build| &build.requires);
    let asks = requires
        .filter_map(|text| parse(text))
        .any(|requirement| READERS.contains(&normalize(requirement.name.as_ref()).as_str()))
        || files.get("setup.py").is_some_and(|text| text.contains("use_scm_version") || text.contains("pbr"));
    if !asks {
        return None;
    }
    let tag = notes.iter().find_map(|note| note.strip_prefix(TAG_NOTE)).and_then(version_of_tag);
    let (version, origin) = match (&project.version, tag) {
        (Some(version), _) => (version.clone(), "the metadata of the tree"),
        (None, Some(version)) => (version, "the nearest tag"),
        (None, None) => ("0.0.0+pinned".to_owned(), "nothing: the tree names no version and no tag is known"),
    };
    let mut variables = BTreeMap::new();
    for name in [
        "SETUPTOOLS_SCM_PRETEND_VERSION",
        "VCS_VERSIONING_PRETEND_VERSION",
        "PBR_VERSION",
        "PDM_BUILD_SCM_VERSION",
        "POETRY_DYNAMIC_VERSIONING_BYPASS",
        "UV_DYNAMIC_VERSIONING_BYPASS",
    ] {
        variables.insert(name.to_owned(), version.clone());
    }
    Some((variables, format!("the build is told version {version}, from {origin}")))
}

/// The version of a git reference that looks like a tag of one; branches and commits have digits, too.
pub fn of_reference(reference: &str) -> Option<String> {
    version_of_tag(reference).filter(|_| reference.contains('.'))
}

/// `1.2.3` out of `v1.2.3` or `package-1.2.3`.
fn version_of_tag(tag: &str) -> Option<String> {
    let start = tag.find(|c: char| c.is_ascii_digit())?;
    let version = tag[start..].trim();
    version.parse::<pep440_rs::Version>().ok().map(|version| version.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pyproject: &str, notes: &[&str]) -> Option<String> {
        let files = Files::from_texts([("pyproject.toml", pyproject)]);
        let project = Project::parse(&files).unwrap();
        let notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
        pretend(&files, &project, &notes)
            .map(|(variables, _)| variables["SETUPTOOLS_SCM_PRETEND_VERSION"].clone())
    }

    #[test]
    fn only_builds_that_ask_git_are_told() {
        let asks = "[build-system]\nrequires = ['setuptools', 'setuptools_scm[toml]>=6']\nbuild-backend = 'setuptools.build_meta'\n";
        assert_eq!(told(asks, &["nearest tag: pkg-v1.4"]).as_deref(), Some("1.4"));
        assert_eq!(told(asks, &["nearest tag: latest"]).as_deref(), Some("0.0.0+pinned"));
        assert_eq!(told(&asks.replace("setuptools_scm[toml]>=6", "wheel"), &["nearest tag: 1"]), None);
    }

    #[test]
    fn only_references_that_look_like_tags_have_a_version() {
        assert_eq!(of_reference("v1.2.3").as_deref(), Some("1.2.3"));
        assert_eq!(of_reference("pkg-1.0rc1").as_deref(), Some("1.0rc1"));
        for reference in ["main", "e1234567", "feature2", "HEAD"] {
            assert_eq!(of_reference(reference), None, "{reference}");
        }
    }
}
