//! Versions in the names of tags, and whether a tree's build would ask git for one. Pure but for reading three files.

use std::path::Path;

use pep440_rs::Version;

use crate::beneath::Folder;
use crate::error::Result;

/// Build requirements that read the version from version control.
pub const READERS: [&str; 12] = [
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

/// Where a build says what it needs, and bytes that are read of each.
const DECLARATIONS: [&str; 3] = ["pyproject.toml", "setup.py", "setup.cfg"];
const LARGEST: u64 = 1 << 20;

/// Whether the tree may ask for its version: one of its declarations has the name of a reader in it. Saying yes too often
/// costs a look at the tags and nothing else.
///
/// # Errors
/// When the tree cannot be opened.
pub fn may_be_asked_for(tree: &Path) -> Result<bool> {
    let tree = Folder::open(tree)?;
    let texts = DECLARATIONS.iter().filter_map(|name| tree.read(Path::new(name), LARGEST).ok());
    Ok(texts.into_iter().any(|bytes| {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase().replace('_', "-");
        text.contains("use-scm-version") || READERS.iter().any(|reader| text.contains(reader))
    }))
}

/// `1.2.3` out of `v1.2.3`, `package-1.2.3`, `py3-v1.2.3` or `releases/1.2.3`.
pub fn of_tag(tag: &str) -> Option<Version> {
    let digit = |c: char| c.is_ascii_digit();
    let first = tag.find(digit)?;
    let starts_a_version = |at: &usize| {
        *at == first || {
            let before = tag[..*at].strip_suffix(['v', 'V']).unwrap_or(&tag[..*at]);
            before.ends_with(['-', '/'])
        }
    };
    let starts = tag.match_indices(digit).map(|(at, _)| at).filter(starts_a_version);
    starts.into_iter().find_map(|at| tag[at..].trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_name_versions_with_and_without_words_before_them() {
        for (tag, version) in [
            ("v1.2.3", "1.2.3"),
            ("V2", "2"),
            ("package-1.2.3", "1.2.3"),
            ("py3-v1.2", "1.2"),
            ("releases/24.1.0", "24.1.0"),
            ("8.4.0.dev0", "8.4.0.dev0"),
            ("1.0-rc.1", "1.0rc1"),
        ] {
            assert_eq!(of_tag(tag).map(|version| version.to_string()).as_deref(), Some(version), "{tag}");
        }
        for tag in ["latest", "REL_1_2_3", "build-x1y", "", "é"] {
            assert_eq!(of_tag(tag), None, "{tag}");
        }
    }

    #[test]
    fn only_trees_that_name_a_reader_are_looked_at_further() {
        let folder = tempfile::tempdir().unwrap();
        let asks = |name: &str, text: &str| {
            fs_err::write(folder.path().join(name), text).unwrap();
            let asks = may_be_asked_for(folder.path()).unwrap();
            fs_err::remove_file(folder.path().join(name)).unwrap();
            asks
        };
        assert!(asks("pyproject.toml", "[build-system]\nrequires = ['Setuptools_SCM>=8']\n"));
        assert!(asks("setup.py", "setup(use_scm_version=True)"));
        assert!(asks("setup.cfg", "[options]\nsetup_requires = pbr\n"));
        assert!(!asks("pyproject.toml", "[build-system]\nrequires = ['flit_core']\n"));
        assert!(!asks("README", "setuptools-scm"));
    }
}
