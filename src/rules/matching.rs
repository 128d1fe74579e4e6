//! Whether a rule matches a group: pure predicates over facts that others found.

use std::time::Duration;

use regex::Regex;
use serde::{Serialize, Serializer};

use crate::record::collected::Group;

/// Facts about a group, as far as they are known when rules are applied.
#[derive(Debug, Clone, Default)]
pub struct Subject<'a> {
    /// Slug of the repository.
    pub repository: &'a str,
    /// Test file, relative to the root of the tree.
    pub path: &'a str,
    /// `Class::function`, or the function alone.
    pub name: &'a str,
    pub markers: &'a [String],
    pub fixtures: &'a [String],
    /// Source lines of the test function.
    pub source: Option<&'a str>,
    pub cases: usize,
    pub duration: Option<Duration>,
    pub trace_length: Option<u64>,
    pub unique_files: Option<u64>,
}

impl<'a> Subject<'a> {
    /// What collecting knows of a group. The name is what follows the file in the group's id.
    pub fn of(repository: &'a str, group: &'a Group) -> Self {
        let name = group.group_id.strip_prefix(group.file.as_str()).unwrap_or_default();
        Subject {
            repository,
            path: &group.file,
            name: name.trim_start_matches("::"),
            markers: &group.markers,
            fixtures: &group.fixtures,
            cases: group.cases.len(),
            ..Subject::default()
        }
    }
}

/// A compiled pattern that remembers how it was written.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// A regular expression, found anywhere.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn regex(text: &str) -> Result<Self, String> {
        let regex = Regex::new(text).map_err(|error| {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        })?;
        Ok(Pattern { text: text.to_owned(), regex })
    }

    /// A glob over the whole text: `*` and `?` stay within a path segment, `**` does not.
    ///
    /// # Errors
    /// When it is too large.
    pub fn glob(text: &str) -> Result<Self, String> {
        let regex = Regex::new(&translate(text)).map_err(|_| "the pattern is too large".to_owned())?;
        Ok(Pattern { text: text.to_owned(), regex })
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

fn translate(glob: &str) -> String {
    let mut regex = String::from("(?s)^");
    let mut rest = glob;
    while let Some(character) = rest.chars().next() {
        let (piece, length) = if rest.starts_with("**/") {
            ("(?:.*/)?".to_owned(), 3)
        } else if rest.starts_with("**") {
            (".*".to_owned(), 2)
        } else if character == '*' {
            ("[^/]*".to_owned(), 1)
        } else if character == '?' {
            ("[^/]".to_owned(), 1)
        } else {
            (regex::escape(&rest[..character.len_utf8()]), character.len_utf8())
        };
        regex.push_str(&piece);
        rest = &rest[length..];
    }
    regex.push('$');
    regex
}

/// Alternatives; an empty list asks for nothing.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Patterns(pub Vec<Pattern>);

impl Patterns {
    fn admit(&self, text: Option<&str>) -> bool {
        self.0.is_empty()
            || text.is_some_and(|text| self.0.iter().any(|pattern| pattern.regex.is_match(text)))
    }

    fn admit_one_of(&self, texts: &[String]) -> bool {
        self.0.is_empty() || texts.iter().any(|text| self.admit(Some(text)))
    }
}

/// Inclusive bounds; without any they ask for nothing.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Bounds<T> {
    pub min: Option<T>,
    pub max: Option<T>,
}

impl<T: PartialOrd + Copy> Bounds<T> {
    /// Whether a bound is set.
    pub fn is_set(&self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    fn admit(&self, value: Option<T>) -> bool {
        if !self.is_set() {
            return true;
        }
        value.is_some_and(|value| {
            self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
        })
    }
}

/// The conditions of a rule.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Match {
    pub path: Patterns,
    pub name: Patterns,
    pub marker: Patterns,
    pub fixture: Patterns,
    pub source: Patterns,
    pub repository: Patterns,
    pub cases: Bounds<u64>,
    pub duration: Bounds<Duration>,
    pub trace_length: Bounds<u64>,
    pub unique_files: Bounds<u64>,
}

impl Match {
    /// Whether all conditions hold.
    pub fn holds(&self, subject: &Subject<'_>) -> bool {
        self.path.admit(Some(subject.path))
            && self.name.admit(Some(subject.name))
            && self.repository.admit(Some(subject.repository))
            && self.marker.admit_one_of(subject.markers)
            && self.fixture.admit_one_of(subject.fixtures)
            && self.cases.admit(Some(subject.cases as u64))
            && self.duration.admit(subject.duration)
            && self.trace_length.admit(subject.trace_length)
            && self.unique_files.admit(subject.unique_files)
            && self.source.admit(subject.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(glob: &str, text: &str) -> bool {
        Patterns(vec![Pattern::glob(glob).unwrap()]).admit(Some(text))
    }

    #[test]
    fn globs_stop_at_slashes_unless_doubled() {
        assert!(glob("tests/*.py", "tests/test_a.py"));
        assert!(!glob("tests/*.py", "tests/unit/test_a.py"));
        assert!(glob("tests/**/*.py", "tests/unit/deep/test_a.py"));
        assert!(glob("tests/**/*.py", "tests/test_a.py"));
        assert!(glob("tests/**", "tests/a/b"));
        assert!(glob("test_?.py", "test_é.py"));
        assert!(!glob("test.py", "testxpy"));
        assert!(!glob("a.py", "b/a.py"));
    }

    #[test]
    fn a_bound_on_something_not_measured_does_not_hold() {
        let bounds = Bounds { min: Some(3), max: Some(5) };
        let held: Vec<bool> = [None, Some(2), Some(3), Some(5), Some(6)].map(|v| bounds.admit(v)).to_vec();
        assert_eq!(held, [false, false, true, true, false]);
        assert!(Bounds::<u64>::default().admit(None));
    }

    #[test]
    fn all_conditions_must_hold() {
        let pattern = |text: &str| Patterns(vec![Pattern::regex(text).unwrap()]);
        let both = Match { name: pattern("b$"), source: pattern("sleep"), ..Match::default() };
        let subject = Subject { name: "test_b", ..Subject::default() };
        assert!(!both.holds(&subject));
        assert!(both.holds(&Subject { source: Some("sleep()"), ..subject.clone() }));
        assert!(!both.holds(&Subject { source: Some("sleep()"), name: "test_c", ..subject }));
    }

    #[test]
    fn the_name_of_a_group_has_its_classes() {
        let group = Group {
            group_id: "tests/test_a.py::TestA::test_b".into(),
            file: "tests/test_a.py".into(),
            classes: vec!["TestA".into()],
            function: "test_b".into(),
            cases: Vec::new(),
            markers: Vec::new(),
            fixtures: Vec::new(),
            flags: Vec::new(),
        };
        assert_eq!(Subject::of("a/b", &group).name, "TestA::test_b");
    }
}
