//! Requirement lines as they stand in files: which are requirements, which mean the tree itself, which are left out.
//!
//! Pure. Index options, credentials and paths never leave this file: a recipe names no host of an index, and nothing
//! of the tree but the tree itself is installed.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use pep508_rs::VersionOrUrl;
use regex::Regex;

pub use crate::requirement::parse;

/// What a list of requirement lines amounts to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    pub requirements: Vec<String>,
    pub constraints: Vec<String>,
    /// Extras of the tree itself (`-e .[tests]`).
    pub own_extras: Vec<String>,
    /// What was left out, and why, in words.
    pub left_out: Vec<String>,
}

impl Lines {
    /// Whether there is nothing to install.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty() && self.constraints.is_empty() && self.own_extras.is_empty()
    }

    /// Adds one requirement, as pip would read it on a command line or in a file.
    pub fn push(&mut self, text: &str) {
        match classify(text) {
            Entry::Requirement(requirement) => self.requirements.push(requirement),
            Entry::Own(extras) => self.own_extras.extend(extras),
            Entry::LeftOut(reason) => self.left_out.push(reason),
            Entry::Nothing => {}
        }
    }

    /// Adds everything of another list.
    pub fn extend(&mut self, other: Lines) {
        self.requirements.extend(other.requirements);
        self.constraints.extend(other.constraints);
        self.own_extras.extend(other.own_extras);
        self.left_out.extend(other.left_out);
    }
}

enum Entry {
    Requirement(String),
    Own(Vec<String>),
    LeftOut(String),
    Nothing,
}

/// A distribution or extra name as PEP 503 compares it.
pub fn normalize(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for c in name.trim().chars() {
        let c = if matches!(c, '_' | '.') { '-' } else { c.to_ascii_lowercase() };
        if !(c == '-' && normal.ends_with('-')) {
            normal.push(c);
        }
    }
    normal
}

fn classify(text: &str) -> Entry {
    static EGG: LazyLock<Regex> = LazyLock::new(|| pattern(r"[#&]egg=([A-Za-z0-9._-]+)"));
    let text = text.trim();
    let text = text.strip_prefix("-e ").or_else(|| text.strip_prefix("--editable ")).unwrap_or(text).trim();
    let text = text.strip_prefix("--editable=").unwrap_or(text).trim();
    let text = text.split(" --").next().unwrap_or(text).trim();
    if text.is_empty() {
        return Entry::Nothing;
    }
    if let Some(extras) = own(text) {
        return Entry::Own(extras);
    }
    if text.starts_with('-') {
        let option = text.split(['=', ' ']).next().unwrap_or("-");
        return Entry::LeftOut(format!("option {option}"));
    }
    if text.contains("://") && !text.contains(" @ ") {
        return match EGG.captures(text) {
            Some(egg) => classify(&format!("{} @ {}", &egg[1], text.split('#').next().unwrap_or(text))),
            None => Entry::LeftOut("a URL without a name".to_owned()),
        };
    }
    let Some(requirement) = parse(text) else {
        return if text.contains("${") {
            Entry::LeftOut("a requirement that names a variable of the environment".to_owned())
        } else if text.starts_with(['.', '/']) || text.contains('/') {
            Entry::LeftOut("a local path".to_owned())
        } else {
            Entry::LeftOut(format!(
                "`{}`, which is not a requirement",
                text.chars().take(60).collect::<String>()
            ))
        };
    };
    match &requirement.version_or_url {
        Some(VersionOrUrl::Url(url)) if url.scheme() == "file" => {
            Entry::LeftOut(format!("{} from a local path", requirement.name))
        }
        Some(VersionOrUrl::Url(url)) if has_credentials(url.username(), url.password()) => {
            Entry::LeftOut(format!("{} from a URL with credentials", requirement.name))
        }
        _ => Entry::Requirement(text.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// `git@host` is a user name that everybody shares; anything else may be a secret.
fn has_credentials(user: &str, password: Option<&str>) -> bool {
    password.is_some() || !(user.is_empty() || user == "git")
}

/// The extras, when the text means the tree itself: `.`, `./`, `.[a,b]`.
fn own(text: &str) -> Option<Vec<String>> {
    let rest = text.strip_prefix('.')?;
    let rest = rest.strip_prefix('/').unwrap_or(rest).trim();
    if rest.is_empty() {
        return Some(Vec::new());
    }
    let inner = rest.strip_prefix('[')?.strip_suffix(']')?;
    Some(inner.split(',').map(normalize).filter(|extra| !extra.is_empty()).collect())
}

/// Reads a requirements file and what it includes; `read` gives the text of a file of the tree by its relative path.
pub fn read_file(path: &str, read: &dyn Fn(&str) -> Option<String>) -> Lines {
    let mut lines = Lines::default();
    let mut seen = BTreeSet::new();
    read_into(path, read, false, &mut seen, &mut lines);
    lines
}

fn read_into(
    path: &str,
    read: &dyn Fn(&str) -> Option<String>,
    as_constraint: bool,
    seen: &mut BTreeSet<(String, bool)>,
    into: &mut Lines,
) {
    if !seen.insert((path.to_owned(), as_constraint)) {
        return;
    }
    let Some(text) = read(path) else {
        into.left_out.push(format!("{path}, which is not in the tree"));
        return;
    };
    for line in logical_lines(&text) {
        if let Some((constraint, target)) = include(&line) {
            match join(path, target) {
                Some(target) => read_into(&target, read, as_constraint || constraint, seen, into),
                None => into.left_out.push("an include that is no file of the tree".to_owned()),
            }
        } else if as_constraint {
            match classify(&line) {
                Entry::Requirement(requirement) => into.constraints.push(requirement),
                Entry::LeftOut(reason) => into.left_out.push(reason),
                Entry::Own(_) | Entry::Nothing => {}
            }
        } else {
            into.push(&line);
        }
    }
}

/// Files that a requirements file includes, relative to the tree.
pub fn includes(path: &str, text: &str) -> Vec<String> {
    logical_lines(text)
        .iter()
        .filter_map(|line| include(line))
        .filter_map(|(_, target)| join(path, target))
        .collect()
}

/// `-r file` or `-c file` (true), in any of the spellings of pip.
pub fn include(line: &str) -> Option<(bool, &str)> {
    for (flag, constraint) in [("--requirement", false), ("--constraint", true), ("-r", false), ("-c", true)]
    {
        if let Some(rest) = line.strip_prefix(flag) {
            let target = rest.trim_start_matches(['=', ' ', '\t']).trim();
            if !target.is_empty() && (flag.len() == 2 || rest.starts_with(['=', ' ', '\t'])) {
                return Some((constraint, target));
            }
        }
    }
    None
}

/// A path relative to a file of the tree; none when it leaves the tree or is a URL.
fn join(file: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Lines without comments, continuations joined.
fn logical_lines(text: &str) -> Vec<String> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    joined
        .lines()
        .map(|line| {
            let end = line
                .char_indices()
                .find(|(at, c)| *c == '#' && (*at == 0 || line[..*at].ends_with([' ', '\t'])))
                .map_or(line.len(), |(at, _)| at);
            line[..end].trim().to_owned()
        })
        .filter(|line| !line.is_empty())
        .collect()
}

/// A regular expression that is known to be valid.
pub(super) fn pattern(text: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "every caller passes a literal, and a test compiles each")]
    Regex::new(text).expect("a valid literal pattern")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
        move |path| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
    }

    #[test]
    fn nested_files_constraints_and_the_tree_itself_are_told_apart() {
        let read = tree(&[
            (
                "requirements/test.txt",
                "-r base.in\n-c ../constraints.txt\npytest>=7 # runner\n-e .[async, Web_x]\n",
            ),
            ("requirements/base.in", "attrs \\\n  >=20\n-r test.txt\n"),
            ("constraints.txt", "idna<4\n"),
        ]);
        let lines = read_file("requirements/test.txt", &read);
        assert_eq!(lines.requirements, ["attrs >=20", "pytest>=7"]);
        assert_eq!(lines.constraints, ["idna<4"]);
        assert_eq!(lines.own_extras, ["async", "web-x"]);
        assert!(lines.left_out.is_empty());
    }

    #[test]
    fn hosts_credentials_paths_and_hashes_do_not_get_through() {
        let read = tree(&[(
            "r.txt",
            "--extra-index-url https://me:secret@index.example/simple\n./vendored\nx @ file:///etc/x\n\
             y @ https://me:secret@host.example/y.whl\nz==1 --hash=sha256:00\ngit+https://h.example/a/w#egg=w\n",
        )]);
        let lines = read_file("r.txt", &read);
        assert_eq!(lines.requirements, ["z==1", "w @ git+https://h.example/a/w"]);
        assert_eq!(lines.left_out.len(), 4);
        assert!(!format!("{:?}", lines.left_out).contains("example"));
    }

    #[test]
    fn a_file_that_includes_itself_or_leaves_the_tree_ends() {
        let read = tree(&[("r.txt", "-r r.txt\n-r ../../etc/passwd\n-r gone.txt\nx\n")]);
        let lines = read_file("r.txt", &read);
        assert_eq!(lines.requirements, ["x"]);
        assert_eq!(lines.left_out.len(), 2);
    }

    #[test]
    fn names_are_compared_as_the_index_does() {
        assert_eq!(normalize("Foo_.Bar"), "foo-bar");
    }
}
