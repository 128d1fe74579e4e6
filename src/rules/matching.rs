//! Whether a rule matches a group: pure predicates over facts that others found.

use std::time::Duration;

use regex::Regex;
use serde::{Serialize, Serializer};

use crate::python_source::Code;
use crate::record::collected::Group;
use crate::record::entry::{Entry, PYTEST};
use crate::text::glob;

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
    /// The test function and what it uses in its file, where they are found.
    pub code: Option<&'a Code<'a>>,
    pub cases: usize,
    pub duration: Option<Duration>,
    pub trace_length: Option<u64>,
    pub unique_files: Option<u64>,
    /// The command, where it is not a test.
    pub entry: Option<&'a Entry>,
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
            entry: group.entry.as_ref(),
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
    /// When it is too large, or has what other globs know and these do not.
    pub fn glob(text: &str) -> Result<Self, String> {
        if let Some(odd) = text.chars().find(|c| matches!(c, '[' | ']' | '{' | '}')) {
            return Err(format!("`{odd}` has no meaning here, only `*`, `**` and `?` have"));
        }
        let regex = Regex::new(&glob::pattern(text)).map_err(|_| "the pattern is too large".to_owned())?;
        Ok(Pattern { text: text.to_owned(), regex })
    }

    /// Whether a text has it.
    pub fn fits(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl Pattern {
    /// A glob over a dotted name: `*` is any text, dots included, `?` one character.
    ///
    /// # Errors
    /// When it is too large, or no name can fit it.
    pub fn dotted(text: &str) -> Result<Self, String> {
        if let Some(odd) = text.chars().find(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '*' | '?'))
        {
            return Err(format!("no dotted name has `{odd}` in it"));
        }
        let pieces = text.split_inclusive(['*', '?']).map(|piece| match piece.strip_suffix('*') {
            Some(start) => format!("{}.*", regex::escape(start)),
            None => match piece.strip_suffix('?') {
                Some(start) => format!("{}.", regex::escape(start)),
                None => regex::escape(piece),
            },
        });
        let regex = Regex::new(&format!("(?s)^{}$", pieces.collect::<String>()))
            .map_err(|_| "the pattern is too large".to_owned())?;
        Ok(Pattern { text: text.to_owned(), regex })
    }
}

/// Alternatives; an empty list asks for nothing.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Patterns(pub Vec<Pattern>);

impl Patterns {
    fn admit(&self, text: Option<&str>) -> bool {
        self.0.is_empty()
            || text.is_some_and(|text| self.0.iter().any(|pattern| pattern.regex.is_match(text)))
    }

    fn admit_one_of<'t>(&self, mut texts: impl Iterator<Item = &'t str>) -> bool {
        self.0.is_empty() || texts.any(|text| self.admit(Some(text)))
    }
}

/// Kinds of syntax nodes by CPython's names; an empty list asks for nothing.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Kinds(pub Vec<String>);

impl Kinds {
    fn admit(&self, code: Option<&Code<'_>>) -> bool {
        self.0.is_empty() || code.is_some_and(|code| self.0.iter().any(|kind| code.has_node(kind)))
    }
}

/// Inclusive bounds; without any they ask for nothing.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Bounds<T> {
    pub min: Option<T>,
    pub max: Option<T>,
}

impl<T: PartialOrd + Copy> Bounds<T> {
    /// Whether a bound is set.
    pub(super) fn is_set(&self) -> bool {
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
pub(super) struct Match {
    pub path: Patterns,
    pub name: Patterns,
    pub marker: Patterns,
    pub fixture: Patterns,
    pub source: Patterns,
    pub calls: Patterns,
    pub uses: Patterns,
    pub node: Kinds,
    pub repository: Patterns,
    pub cases: Bounds<u64>,
    pub duration: Bounds<Duration>,
    pub trace_length: Bounds<u64>,
    pub unique_files: Bounds<u64>,
    pub kind: Patterns,
    pub command: Patterns,
    pub origin: Patterns,
}

impl Match {
    /// Whether all conditions hold.
    pub(super) fn holds(&self, subject: &Subject<'_>) -> bool {
        self.path.admit(Some(subject.path))
            && self.name.admit(Some(subject.name))
            && self.repository.admit(Some(subject.repository))
            && self.marker.admit_one_of(subject.markers.iter().map(String::as_str))
            && self.fixture.admit_one_of(subject.fixtures.iter().map(String::as_str))
            && self.cases.admit(Some(subject.cases as u64))
            && self.duration.admit(subject.duration)
            && self.trace_length.admit(subject.trace_length)
            && self.unique_files.admit(subject.unique_files)
            && self.kind.admit(Some(subject.entry.map_or(PYTEST, |entry| entry.command.kind())))
            && self.command.admit(subject.entry.map(|entry| entry.command.line()).as_deref())
            && self.origin.admit(subject.entry.map(|entry| entry.origin.source.as_str()))
            && self.source.admit(subject.code.map(Code::source))
            && self.node.admit(subject.code)
            && self.calls.admit_one_of(subject.code.into_iter().flat_map(Code::calls))
            && self.uses.admit_one_of(subject.code.into_iter().flat_map(Code::uses))
    }

    /// Whether it asks for what only the test's source text can show.
    pub(super) fn reads_code(&self) -> bool {
        let patterns = [&self.source, &self.calls, &self.uses];
        !self.node.0.is_empty() || patterns.iter().any(|patterns| !patterns.0.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::python_source::SourceFile;
    use crate::testing::attempts::group_of;

    fn group(function: &str) -> Group {
        Group { cases: Vec::new(), ..group_of("tests/test_a.py", function) }
    }

    /// Whether conditions hold for `test` in this text.
    fn holds(conditions: &Match, text: &str) -> bool {
        let file = SourceFile::parse("tests/test_a.py", text).unwrap();
        let group = group("test");
        let code = file.code(&group).unwrap();
        conditions.holds(&Subject { code: Some(&code), ..Subject::of("a/b", &group) })
    }

    #[test]
    fn a_rule_on_commands_is_about_commands() {
        let text = |text: &str| Patterns(vec![Pattern::regex(text).unwrap()]);
        let entry = Group::of_entry(crate::testing::attempts::entry("shop export --json out.json"));
        let (command, test) = (Subject::of("a/b", &entry), group("test"));
        let test = Subject::of("a/b", &test);
        for (conditions, of_command, of_test) in [
            (Match { kind: text("^console$"), ..Match::default() }, true, false),
            (Match { kind: text("^pytest$"), ..Match::default() }, false, true),
            (Match { command: text("^shop .*--json"), ..Match::default() }, true, false),
            (Match { origin: text("^readme$"), ..Match::default() }, false, false),
            (Match { origin: text("^configured$"), ..Match::default() }, true, false),
            (Match::default(), true, true),
        ] {
            assert_eq!(
                (conditions.holds(&command), conditions.holds(&test)),
                (of_command, of_test),
                "{conditions:?}"
            );
        }
    }

    fn dotted(patterns: &[&str]) -> Patterns {
        Patterns(patterns.iter().map(|text| Pattern::dotted(text).unwrap()).collect())
    }

    fn glob(glob: &str, text: &str) -> bool {
        Patterns(vec![Pattern::glob(glob).unwrap()]).admit(Some(text))
    }

    #[test]
    fn globs_stop_at_slashes_unless_doubled() {
        assert!(["[", "a[!", "{a,b}"].iter().all(|odd| Pattern::glob(odd).is_err()));
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
    fn dotted_globs_go_across_dots_and_dots_are_dots() {
        let fits = |pattern: &str, name: &str| dotted(&[pattern]).admit(Some(name));
        assert!(fits("requests.*", "requests.get") && fits("requests.*", "requests.sessions.Session.get"));
        assert!(fits("*.connect", ".sock.connect") && fits("os.get?id", "os.getuid"));
        assert!(!fits("requests.*", "requests") && !fits("requests.*", "requestsXget"));
        assert!(!fits("open", "io.open") && !fits("open", "opens"));
        assert!(Pattern::dotted("a b").is_err() && Pattern::dotted("requests.get(").is_err());
    }

    #[test]
    fn calls_uses_and_nodes_look_at_what_the_test_uses_in_its_file() {
        let text =
            "import requests as r\nimport sys\ndef help(): r.get('x')\ndef test():\n    help(); sys.argv\n";
        let calls = Match { calls: dotted(&["socket.*", "requests.*"]), ..Match::default() };
        assert!(holds(&calls, text));
        assert!(!holds(&calls, "import requests\ndef help(): requests.get()\ndef test(): pass\n"));
        assert!(holds(&Match { uses: dotted(&["sys.argv"]), ..Match::default() }, text));
        assert!(!holds(&Match { uses: dotted(&["requests.get"]), ..Match::default() }, text));
        let lambda = Match { node: Kinds(vec!["Lambda".into(), "Global".into()]), ..Match::default() };
        assert!(holds(&lambda, "def test(): return lambda: 1\n") && !holds(&lambda, text));
    }

    #[test]
    fn conditions_on_code_do_not_hold_where_there_is_none() {
        let all = [
            Match { calls: dotted(&["*"]), ..Match::default() },
            Match { uses: dotted(&["*"]), ..Match::default() },
            Match { node: Kinds(vec!["Call".into()]), ..Match::default() },
            Match { source: Patterns(vec![Pattern::regex("").unwrap()]), ..Match::default() },
        ];
        assert!(all.iter().all(|one| one.reads_code() && !one.holds(&Subject::default())));
        assert!(!Match::default().reads_code() && Match::default().holds(&Subject::default()));
    }

    #[test]
    fn all_conditions_must_hold() {
        let pattern = |text: &str| Patterns(vec![Pattern::regex(text).unwrap()]);
        let both = Match { name: pattern("t$"), source: pattern("sleep"), ..Match::default() };
        assert!(holds(&both, "def test():\n    sleep()\n"));
        assert!(!holds(&both, "def test():\n    pass\n"));
        assert!(!holds(&Match { name: pattern("c$"), ..both }, "def test():\n    sleep()\n"));
    }

    #[test]
    fn the_name_of_a_group_has_its_classes() {
        let group = Group { group_id: "tests/test_a.py::TestA::test_b".into(), ..group("test_b") };
        assert_eq!(Subject::of("a/b", &group).name, "TestA::test_b");
    }
}
