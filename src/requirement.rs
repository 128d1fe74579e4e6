//! Single requirements as PEP 508 writes them. Pure.

use std::str::FromStr;
use std::sync::LazyLock;

use pep508_rs::{Requirement, VerbatimUrl, VersionOrUrl};
use regex::Regex;

/// The requirement that a text is; none when it is something else.
pub fn parse(text: &str) -> Option<Requirement<VerbatimUrl>> {
    check(text).ok()
}

/// The requirement that a text is, or why it is not one.
///
/// # Errors
/// In words, on one line.
pub(crate) fn check(text: &str) -> Result<Requirement<VerbatimUrl>, String> {
    let text = text.trim();
    refuse(text)?;
    Requirement::from_str(text)
        .map_err(|error| error.message.to_string().lines().next().unwrap_or_default().to_owned())
}

/// The name of a project or an extra as PEP 503 compares it: lower case, each run of `-`, `_` and `.` a single `-`.
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

/// What is not even handed to the parser: it would put variables of the user's environment into a URL, and it takes for
/// granted that names end as they should and that every character is one byte.
fn refuse(text: &str) -> Result<(), String> {
    static NAMES: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\s*([A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\]?)?").expect("a constant pattern")
    });
    let is_name = |name: &str| {
        let ends = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
        ends(name.chars().next()) && ends(name.chars().next_back())
    };
    if text.contains("${") {
        return Err("it names an environment variable".to_owned());
    }
    if let Some(character) = text.chars().find(|c| !c.is_ascii()) {
        return Err(format!("{character:?} is not allowed in a requirement (a URL has it percent-encoded)"));
    }
    let Some(found) = NAMES.captures(text) else { return Ok(()) };
    let extras = found.get(2).map(|extras| extras.as_str()).unwrap_or_default();
    // A path may start with a dot: the parser says so itself.
    let is_path = text.starts_with('.');
    let separates = |c: char| c == ',' || c.is_whitespace();
    if (is_path || is_name(&found[1])) && extras.split(separates).all(is_name) {
        Ok(())
    } else {
        Err("a name starts and ends with a letter or a digit".to_owned())
    }
}

/// Whether it is taken from a file of this machine instead of an index or a host.
pub(crate) fn is_local(requirement: &Requirement<VerbatimUrl>) -> bool {
    matches!(&requirement.version_or_url, Some(VersionOrUrl::Url(url)) if url.scheme() == "file")
}

/// Whether a text that asks for requirements names a file that lists them: recognised by its ending, or by a slash outside of
/// a URL.
pub(crate) fn is_file_name(text: &str) -> bool {
    let ending = text.rsplit('.').next().unwrap_or_default();
    !text.contains('@')
        && (matches!(ending, "txt" | "in" | "toml" | "cfg" | "lock") || text.contains('/'))
        && !text.starts_with('-')
}

/// Whether this is a name of a project, extra or group.
pub(crate) fn is_name(text: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_edge)
        && text.ends_with(is_edge)
        && text.chars().all(|c| is_edge(c) || matches!(c, '.' | '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_end_as_they_should_are_refused() {
        for text in [
            "n_ @ https://host/x",
            "na_>=1",
            "s. ; python_version > '3'",
            "-x",
            "a[b_]",
            "a[b,-c]>=1",
            "a [ b. ]",
            "a[b- and more",
            "a ; sys_platform == 'linux'\u{fffd}# comment",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
        for text in ["a", "a_b.c-d>=1", "a[b,c_d] ; extra == 'x'", " a @ https://host/x_ "] {
            assert!(check(text).is_ok(), "{text}: {:?}", check(text));
        }
    }

    #[test]
    fn variables_of_the_environment_are_never_put_into_a_requirement() {
        let error = check("a @ https://host/${HOME}/a.whl").unwrap_err();
        assert!(error.contains("environment variable"), "{error}");
    }
}
