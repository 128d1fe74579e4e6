//! Environments of conda that a tree declares, as requirements that an index of Python may have. Pure.

use super::declarations::{Files, is_environment};
use super::requirements_files::Lines;
use super::tox::Automation;
use crate::requirement::parse;

/// What conda installs and no index of Python has.
const ALIEN: [&str; 10] = [
    "python",
    "pip",
    "nodejs",
    "compilers",
    "c-compiler",
    "cxx-compiler",
    "fortran-compiler",
    "make",
    "pkg-config",
    "git",
];

/// What the environments declare: those named for tests first, none that are named for documentation.
pub(super) fn read(files: &Files) -> Vec<Automation> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let mut paths: Vec<&str> =
        files.paths().filter(|path| is_environment(&name(path)) && !name(path).contains("doc")).collect();
    paths.sort_by_key(|path| !name(path).contains("test"));
    let of_file = |path: &str| Automation {
        place: path.to_owned(),
        lines: dependencies(files.get(path).unwrap_or_default()),
        ..Automation::default()
    };
    paths.into_iter().map(of_file).collect()
}

/// The entries of `dependencies`, and of `pip` in them. Anchors and flow mappings are not read.
fn dependencies(text: &str) -> Lines {
    let mut lines = Lines::default();
    let mut pip_indent: Option<usize> = None;
    let mut is_inside = false;
    for line in text.lines() {
        let plain = line.split(" #").next().unwrap_or(line).trim_end();
        let indent = plain.len() - plain.trim_start().len();
        let Some(entry) =
            plain.trim_start().strip_prefix("- ").or_else(|| plain.trim_start().strip_prefix("-\t"))
        else {
            if !plain.is_empty() && !plain.trim_start().starts_with('#') && indent == 0 {
                is_inside = plain.starts_with("dependencies:");
                pip_indent = None;
            }
            continue;
        };
        let entry = entry.trim().trim_matches(['"', '\'']);
        if !is_inside {
            continue;
        }
        if pip_indent.is_some_and(|pip| indent <= pip) {
            pip_indent = None;
        }
        if entry == "pip:" {
            pip_indent = Some(indent);
        } else if pip_indent.is_some() {
            lines.push(entry);
        } else if let Some(requirement) = requirement(entry) {
            lines.push(&requirement);
        }
    }
    lines
}

/// `channel::name=1.0=build`, `name >=1,<2` and `name 1.0` as PEP 508.
fn requirement(entry: &str) -> Option<String> {
    let entry = entry.rsplit("::").next().unwrap_or(entry);
    let end = entry
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(entry.len());
    let (name, version) = entry.split_at(end);
    if name.is_empty() || ALIEN.contains(&name) {
        return None;
    }
    let version = version.trim().split(' ').next().unwrap_or_default();
    let requirement = match version.strip_prefix('=').filter(|rest| !rest.starts_with('=')) {
        Some(rest) => match rest.split_once('=') {
            Some((exact, _)) => format!("{name}=={exact}"),
            None => format!("{name}=={}.*", rest.trim_end_matches(".*")),
        },
        None if version.starts_with(|c: char| c.is_ascii_digit()) => format!("{name}=={version}"),
        None => format!("{name}{version}"),
    };
    Some(if parse(&requirement).is_some() { requirement } else { name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_environment_has_for_tests_is_read() {
        let text = "name: x\nchannels:\n  - conda-forge\ndependencies:\n  - python >=3.9\n  - conda-forge::pytest # runs\n  \
                    - heapdict=1.0\n  - numpy=1.20=py39_0\n  - \"six>=1,<2\"\n  - attrs 23.1\n  - pip\n  - pip:\n    - zict==3.0.0\n  \
                    - mock\nvariables:\n  - X\n";
        let files = Files::from_texts([
            ("ci/environment-test.yaml", text),
            ("environment.yml", "dependencies:\n- six\n"),
            ("docs-environment.yml", "dependencies:\n- sphinx\n"),
        ]);
        let found = read(&files);
        let places: Vec<&str> = found.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["ci/environment-test.yaml", "environment.yml"]);
        assert_eq!(
            found[0].lines.requirements,
            ["pytest", "heapdict==1.0.*", "numpy==1.20", "six>=1,<2", "attrs==23.1", "zict==3.0.0", "mock"]
        );
        assert_eq!(found[1].lines.requirements, ["six"]);
    }
}
