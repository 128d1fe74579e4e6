//! Names of projects and files, as the packaging standards write them. Pure.

use std::str::FromStr;

use pep440_rs::Version;

use crate::requirement::normalize;

/// Endings of source distributions, the best first when a version has several.
const SDIST_ENDINGS: [&str; 8] = [".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tar"];

/// Tags of the wheel that stands for a source distribution. uv prefers every wheel of the index that it can use, also
/// one for any platform from some version of Python 3 on: it takes `py30` for the last choice.
const ANY_TAGS: &str = "py30-none-any";

/// Whether a text is a normalized name.
pub(super) fn is_normalized(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 200
        && name.starts_with(is_plain)
        && name.ends_with(is_plain)
        && name.chars().all(|c| is_plain(c) || c == '-')
        && !name.contains("--")
}

/// Whether a file name can stand in an address and on a disk as it is: no separator, nothing hidden, nothing to escape.
pub(super) fn is_safe(filename: &str) -> bool {
    (1..=250).contains(&filename.len())
        && !filename.starts_with('.')
        && filename.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+!".contains(&byte))
}

/// What a file of a project is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Wheel {
        is_for_any: bool,
        is_for_three: bool,
    },
    /// The rank of its ending: 0 is the best one.
    Sdist {
        rank: usize,
    },
}

/// Version and kind of a file; none when it is neither a wheel nor a source distribution of that project.
pub(super) fn parse(filename: &str, project: &str) -> Option<(Version, Kind)> {
    match filename.strip_suffix(".whl") {
        Some(stem) => wheel(stem, project),
        None => sdist(filename, project),
    }
}

fn wheel(stem: &str, project: &str) -> Option<(Version, Kind)> {
    let parts: Vec<&str> = stem.split('-').collect();
    let (name, version, [python, abi, platform]) = match parts[..] {
        [name, version, python, abi, platform] | [name, version, _, python, abi, platform] => {
            (name, version, [python, abi, platform])
        }
        _ => return None,
    };
    let version = Version::from_str(version).ok()?;
    let has = |tags: &str, tag: &str| tags.split('.').any(|one| one == tag);
    let is_any = has(abi, "none") && has(platform, "any");
    let kind = Kind::Wheel {
        is_for_any: is_any && (has(python, "py3") || has(python, "py30")),
        is_for_three: python.split('.').any(|tag| tag.starts_with("py3") || tag.starts_with("cp3")),
    };
    (normalize(name) == project).then_some((version, kind))
}

/// The name of a source distribution may hold what separates it from the version, so the project's name says where the
/// version starts.
fn sdist(filename: &str, project: &str) -> Option<(Version, Kind)> {
    let (rank, stem) = SDIST_ENDINGS
        .iter()
        .enumerate()
        .find_map(|(rank, ending)| filename.strip_suffix(ending).map(|stem| (rank, stem)))?;
    let name = stem.get(..project.len()).filter(|name| normalize(name) == project)?;
    let version = stem[name.len()..].strip_prefix('-')?;
    Some((Version::from_str(version).ok()?, Kind::Sdist { rank }))
}

/// The name of the wheel that stands for a source distribution.
pub(super) fn stand_in(project: &str, version: &Version) -> String {
    format!("{}-{version}-{ANY_TAGS}.whl", project.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(filename: &str, project: &str) -> Option<String> {
        parse(filename, project).map(|(version, _)| version.to_string())
    }

    #[test]
    fn names_are_normalized() {
        for (name, expected) in [("Foo.-_Bar", "foo-bar"), ("zope.interface", "zope-interface"), ("a", "a")] {
            assert_eq!(normalize(name), expected);
            assert!(is_normalized(expected));
        }
        for name in ["", "-a", "a-", "a--b", "A", "a/b", "..", "a b"] {
            assert!(!is_normalized(name), "{name}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_not_safe() {
        assert!(is_safe("foo-1.0+local.1-py3-none-any.whl") && is_safe("foo-1!2.0.tar.gz"));
        for name in ["", ".hidden", "..", "a/b", "a\\b", "a b", "a\nb", "a?b", "a%2fb", "ä", &"a".repeat(251)]
        {
            assert!(!is_safe(name), "{name}");
        }
    }

    #[test]
    fn source_distributions_with_old_names_are_understood() {
        assert_eq!(version("zope.interface-5.4.0.tar.gz", "zope-interface").as_deref(), Some("5.4.0"));
        assert_eq!(version("Foo_Bar-1.0-1.zip", "foo-bar").as_deref(), Some("1.0.post1"));
        assert_eq!(version("foo-2013.09.tar.bz2", "foo").as_deref(), Some("2013.9"));
        for (filename, project) in [
            ("foo-bar-1.0.tar.gz", "foo"),
            ("foo-1.0.exe", "foo"),
            ("foo-1.0-py3.9.egg", "foo"),
            ("foo1.0.tar.gz", "foo"),
            ("fo", "foo"),
            ("föö-1.0.tar.gz", "foo"),
            ("foo-latest.tar.gz", "foo"),
        ] {
            assert_eq!(version(filename, project), None, "{filename}");
        }
    }

    #[test]
    fn wheels_for_any_python_three_are_told_apart() {
        let kind = |filename: &str| parse(filename, "foo-bar").map(|(_, kind)| kind);
        let wheel = |is_for_any, is_for_three| Some(Kind::Wheel { is_for_any, is_for_three });
        assert_eq!(kind("foo_bar-1-py2.py3-none-any.whl"), wheel(true, true));
        assert_eq!(kind("foo_bar-1-2build-py3-none-any.whl"), wheel(true, true));
        assert_eq!(kind("foo_bar-1-py2-none-any.whl"), wheel(false, false));
        // Not for every Python 3.
        assert_eq!(kind("foo_bar-1-py38-none-any.whl"), wheel(false, true));
        assert_eq!(kind("foo_bar-1-py3-none-manylinux2014_x86_64.whl"), wheel(false, true));
        assert_eq!(kind("foo_bar-1-cp312-cp312-win_amd64.whl"), wheel(false, true));
        assert_eq!(kind("other-1-py3-none-any.whl"), None);
        assert_eq!(kind("foo_bar-1.whl"), None);
    }

    #[test]
    fn a_stand_in_is_a_wheel_of_its_project() {
        let (version, _) = parse("Foo.Bar-01.0-1.tar.gz", "foo-bar").expect("a source distribution");
        let name = stand_in("foo-bar", &version);
        assert_eq!(name, "foo_bar-1.0.post1-py30-none-any.whl");
        assert_eq!(
            parse(&name, "foo-bar"),
            Some((version, Kind::Wheel { is_for_any: true, is_for_three: true }))
        );
    }
}
