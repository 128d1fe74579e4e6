//! Whether a run showed what the original showed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

use super::modules::Modules;
use crate::record::outcome::{CaseResult, Compare, Exit, Outcome};

/// A path to a Python file, with the line that may follow it.
static FILE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"([^\s"'`()\[\]{},;:=|*?]+\.py)(?:(?:", line |:)\d+)?"#));
/// A dotted name, or a single one.
static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"));

/// The file and module that a submission is.
const SUBMISSION: &str = "concise";

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant")
}

/// What stands for the place of code, so that code may move: applied to what was expected and to what was seen.
#[derive(Debug, Clone)]
pub struct Masks<'a> {
    pub modules: &'a Modules,
    /// Python files of the tree, from its root.
    pub files: &'a BTreeSet<String>,
    /// The module of the original test, as its file is imported.
    pub test_module: &'a str,
}

impl Masks<'_> {
    /// An output, normalized before, without places of code: `<file>` and `<module>` instead.
    pub fn output(&self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let files = FILE.replace_all(text, |found: &Captures<'_>| {
            if self.is_file(&found[1]) { "<file>".to_owned() } else { found[0].to_owned() }
        });
        self.names(&files)
    }

    /// The full name of an exception without the module of a class of the repository.
    pub fn exception<'n>(&self, name: &'n str) -> &'n str {
        let own =
            [SUBMISSION, self.test_module].into_iter().filter(|module| starts_with_module(name, module));
        let cut = own.map(str::len).chain(self.modules.longest_prefix(name)).max();
        cut.and_then(|cut| name.get(cut + 1..)).unwrap_or(name)
    }

    fn is_file(&self, path: &str) -> bool {
        let path = path.strip_prefix("<root>/").unwrap_or(path);
        let path = path.strip_prefix("./").unwrap_or(path);
        path.strip_suffix(".py") == Some(SUBMISSION) || self.files.contains(path)
    }

    fn names(&self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        let mut at = 0;
        for found in NAME.find_iter(text) {
            let before = text[..found.start()].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '\\')) {
                continue;
            }
            if let Some(length) = self.masked(found.as_str()) {
                result.push_str(&text[at..found.start()]);
                result.push_str("<module>");
                at = found.start() + length;
            }
        }
        result.push_str(&text[at..]);
        result
    }

    /// How much of a name is masked. A single word could be anything, unless it can only be the test's module.
    fn masked(&self, name: &str) -> Option<usize> {
        let special =
            [SUBMISSION, self.test_module].into_iter().filter(|module| starts_with_module(name, module));
        let own =
            self.modules.longest_prefix(name).filter(|length| *length < name.len() || name.contains('.'));
        special.map(str::len).chain(own).max()
    }
}

fn starts_with_module(name: &str, module: &str) -> bool {
    !module.is_empty()
        && name.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Why a run is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunDifference {
    /// The process did not come to its end.
    Crash,
    Timeout,
    /// No case ran.
    CollectionError,
    OtherCases,
    /// Outcomes that the original does not have.
    Failed,
    Error,
    Skipped,
    Xfailed,
    Xpassed,
    /// It passes where the original does not.
    Passed,
    OtherException,
    OtherOutput,
    /// A command ends with another status.
    OtherStatus,
    /// A command changes other files, or leaves something else in them.
    OtherFiles,
}

/// How one case compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedCase {
    /// The part of the node ID after the file.
    pub case: String,
    /// None where it agrees.
    pub difference: Option<RunDifference>,
    /// What was expected and what was seen, masked, where they differ.
    pub expected: String,
    pub seen: String,
}

/// How a run compares with the golden observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The first difference, in the order of [`RunDifference`]'s meaning: process, cases, outcomes, exceptions, output.
    pub difference: Option<RunDifference>,
    /// Golden cases in their order, then others.
    pub cases: Vec<ComparedCase>,
    /// Golden cases.
    pub n_cases: u32,
    /// Golden cases that passed.
    pub passed_cases: u32,
    pub agreeing_cases: u32,
    /// Whether any case ran.
    pub ran: bool,
    /// Cases whose output agrees only because places of code are masked.
    pub masked: u32,
}

impl Comparison {
    /// Whether the run showed what the original showed.
    pub fn agrees(&self) -> bool {
        self.difference.is_none()
    }
}

/// Compares a run with what the original showed, as far as `held_to` says.
pub fn compare(
    golden: &[CaseResult],
    exit: &Exit,
    seen: &[CaseResult],
    masks: &Masks<'_>,
    held_to: Compare,
) -> Comparison {
    let mut left: BTreeMap<&str, Vec<&CaseResult>> = BTreeMap::new();
    for case in seen.iter().rev() {
        left.entry(after_file(&case.case_id)).or_default().push(case);
    }
    let (mut cases, mut passed, mut masked) = (Vec::new(), 0, 0);
    for expected in golden {
        let name = after_file(&expected.case_id);
        let Some(seen) = left.get_mut(name).and_then(Vec::pop) else {
            cases.push(other_case(name, expected.outcome.as_str(), "missing"));
            continue;
        };
        passed += u32::from(seen.outcome == Outcome::Passed);
        let compared = case(name, expected, seen, masks, held_to);
        let same =
            held_to < Compare::Output || (&expected.stdout, &expected.stderr) == (&seen.stdout, &seen.stderr);
        masked += u32::from(compared.difference.is_none() && !same);
        cases.push(compared);
    }
    for (name, more) in left {
        cases.extend(more.iter().rev().map(|seen| other_case(name, "missing", seen.outcome.as_str())));
    }
    let agreeing = cases.iter().filter(|case| case.difference.is_none()).count() as u32;
    Comparison {
        difference: of_process(exit, seen.is_empty() && !golden.is_empty()).or(first(&cases)),
        n_cases: golden.len() as u32,
        passed_cases: passed,
        agreeing_cases: agreeing,
        ran: !seen.is_empty(),
        masked,
        cases,
    }
}

fn after_file(case: &str) -> &str {
    case.split_once("::").map_or(case, |(_, name)| name)
}

fn of_process(exit: &Exit, is_empty: bool) -> Option<RunDifference> {
    match exit {
        Exit::Exited { .. } | Exit::Signaled { .. } | Exit::Unusable => Some(RunDifference::Crash),
        Exit::TimedOut { .. } => Some(RunDifference::Timeout),
        Exit::NotCollected => Some(RunDifference::CollectionError),
        Exit::Finished => is_empty.then_some(RunDifference::CollectionError),
    }
}

/// The first case of the property that comes first.
fn first(cases: &[ComparedCase]) -> Option<RunDifference> {
    cases.iter().filter_map(|case| case.difference).min_by_key(|difference| rank(*difference))
}

fn rank(difference: RunDifference) -> u8 {
    match difference {
        RunDifference::Crash | RunDifference::Timeout | RunDifference::CollectionError => 0,
        RunDifference::OtherCases => 1,
        RunDifference::Failed
        | RunDifference::Error
        | RunDifference::Skipped
        | RunDifference::Xfailed
        | RunDifference::Xpassed
        | RunDifference::Passed
        | RunDifference::OtherStatus => 2,
        RunDifference::OtherException => 3,
        RunDifference::OtherOutput => 4,
        RunDifference::OtherFiles => 5,
    }
}

fn other_case(case: &str, expected: &str, seen: &str) -> ComparedCase {
    ComparedCase {
        case: case.to_owned(),
        difference: Some(RunDifference::OtherCases),
        expected: expected.to_owned(),
        seen: seen.to_owned(),
    }
}

fn case(
    name: &str,
    golden: &CaseResult,
    seen: &CaseResult,
    masks: &Masks<'_>,
    held_to: Compare,
) -> ComparedCase {
    let differs = |difference, expected: &str, seen: &str| ComparedCase {
        case: name.to_owned(),
        difference: Some(difference),
        expected: expected.to_owned(),
        seen: seen.to_owned(),
    };
    if golden.outcome != seen.outcome {
        let difference = match seen.outcome {
            Outcome::Passed => RunDifference::Passed,
            Outcome::Skipped => RunDifference::Skipped,
            Outcome::XFailed => RunDifference::Xfailed,
            Outcome::XPassed => RunDifference::Xpassed,
            Outcome::Failed => RunDifference::Failed,
            Outcome::Error => RunDifference::Error,
        };
        return differs(difference, golden.outcome.as_str(), seen.outcome.as_str());
    }
    let status =
        |case: &CaseResult| case.command.as_ref().map_or_else(String::new, |it| it.status.to_string());
    if status(golden) != status(seen) {
        return differs(RunDifference::OtherStatus, &status(golden), &status(seen));
    }
    let exception =
        |case: &CaseResult| case.exception.as_deref().map(|name| masks.exception(name).to_owned());
    let (expected, found) = (exception(golden), exception(seen));
    if held_to >= Compare::Exception && expected != found {
        let (expected, found) = (expected.unwrap_or_default(), found.unwrap_or_default());
        return differs(RunDifference::OtherException, &expected, &found);
    }
    for (expected, found) in [(&golden.stdout, &seen.stdout), (&golden.stderr, &seen.stderr)] {
        if held_to >= Compare::Output && expected != found {
            let (expected, found) = (masks.output(expected), masks.output(found));
            if expected != found {
                return differs(RunDifference::OtherOutput, &expected, &found);
            }
        }
    }
    if held_to >= Compare::Output
        && let Some((expected, found)) = other_files(golden, seen, masks)
    {
        return differs(RunDifference::OtherFiles, &expected, &found);
    }
    ComparedCase { case: name.to_owned(), difference: None, expected: String::new(), seen: String::new() }
}

/// The first files that a command left otherwise, in their order.
fn other_files(golden: &CaseResult, seen: &CaseResult, masks: &Masks<'_>) -> Option<(String, String)> {
    let lines = |case: &CaseResult| -> Vec<String> {
        let files = case.command.iter().flat_map(|command| &command.files);
        files.map(|file| masks.output(&file.line())).collect()
    };
    let (expected, found) = (lines(golden), lines(seen));
    let at = (0..expected.len().max(found.len())).find(|at| expected.get(*at) != found.get(*at))?;
    let shown = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "no such change".to_owned());
    Some((shown(&expected), shown(&found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_masks<T>(read: impl FnOnce(&Masks<'_>) -> T) -> T {
        let modules: Modules = ["tiny", "tiny.core", "tests", "tests.test_box"].into_iter().collect();
        let files = BTreeSet::from(["tiny/core.py".to_owned(), "tests/test_box.py".to_owned()]);
        read(&Masks { modules: &modules, files: &files, test_module: "test_box" })
    }

    fn result(case: &str, outcome: Outcome, exception: Option<&str>, stdout: &str) -> CaseResult {
        CaseResult {
            case_id: case.to_owned(),
            outcome,
            exception: exception.map(str::to_owned),
            stdout: stdout.to_owned(),
            stderr: String::new(),
            message: String::new(),
            replaced: BTreeMap::new(),
            duration_ms: 0.0,
            command: None,
        }
    }

    fn difference(golden: &[CaseResult], exit: &Exit, seen: &[CaseResult]) -> Option<RunDifference> {
        with_masks(|masks| compare(golden, exit, seen, masks, Compare::Output)).difference
    }

    #[test]
    fn a_solution_is_held_to_what_the_setting_names() {
        let golden = [result("t.py::t", Outcome::XFailed, Some("KeyError"), "a")];
        let seen = |outcome, exception: &str, stdout: &str| {
            let seen = [result("concise.py::t", outcome, Some(exception), stdout)];
            Compare::ALL.map(|held_to| {
                with_masks(|masks| compare(&golden, &Exit::Finished, &seen, masks, held_to)).difference
            })
        };
        use RunDifference::{OtherException, OtherOutput, Passed};
        assert_eq!(seen(Outcome::XFailed, "KeyError", "b"), [None, None, Some(OtherOutput)]);
        assert_eq!(
            seen(Outcome::XFailed, "ValueError", "a"),
            [None, Some(OtherException), Some(OtherException)]
        );
        assert_eq!(seen(Outcome::Passed, "KeyError", "a"), [Some(Passed); 3]);
    }

    #[test]
    fn places_of_code_are_masked_alike() {
        with_masks(|masks| {
            for (original, moved) in [
                ("<tiny.core.Box object at 0x…>", "<concise.Box object at 0x…>"),
                ("<root>/tiny/core.py:12: UserWarning: x", "<root>/concise.py:40: UserWarning: x"),
                ("WARNING:tiny.core:full", "WARNING:concise:full"),
                ("File \"<root>/tests/test_box.py\", line 3, in f", "File \"concise.py\", line 31, in f"),
                ("test_box.Error, tests.test_box.f", "concise.Error, concise.f"),
            ] {
                assert_eq!(masks.output(original), masks.output(moved));
                assert_ne!(original, masks.output(original));
            }
            for kept in [
                "tiny is small",
                "a.tiny.core",
                "/x/tiny.core",
                "tinyness.core",
                "concisely",
                "<root>/other.py:3",
                "x.py",
            ] {
                assert_eq!(masks.output(kept), kept);
            }
            assert_eq!(masks.output("see tiny.core."), "see <module>.");
        });
    }

    #[test]
    fn exceptions_of_the_repository_lose_their_module() {
        with_masks(|masks| {
            for (name, masked) in [
                ("tiny.core.Full", "Full"),
                ("concise.Full", "Full"),
                ("tiny.core.Box.Full", "Box.Full"),
                ("test_box.Own", "Own"),
                ("ValueError", "ValueError"),
                ("json.decoder.JSONDecodeError", "json.decoder.JSONDecodeError"),
            ] {
                assert_eq!(masks.exception(name), masked);
            }
        });
    }

    #[test]
    fn the_first_difference_is_told() {
        let golden = [
            result("tests/t.py::a", Outcome::Passed, None, "1\n"),
            result("tests/t.py::b[x::y]", Outcome::Passed, None, ""),
        ];
        let alike = [
            result("concise.py::b[x::y]", Outcome::Passed, None, ""),
            result("concise.py::a", Outcome::Passed, None, "1\n"),
        ];
        assert_eq!(difference(&golden, &Exit::Finished, &alike), None);
        assert_eq!(difference(&golden, &Exit::Finished, &[]), Some(RunDifference::CollectionError));
        assert_eq!(difference(&golden, &Exit::Exited { code: 0 }, &[]), Some(RunDifference::Crash));
        let timed_out = Exit::TimedOut { scope: crate::record::outcome::TimeScope::Group, case: None };
        assert_eq!(difference(&golden, &timed_out, &alike), Some(RunDifference::Timeout));
        assert_eq!(difference(&golden, &Exit::Finished, &alike[..1]), Some(RunDifference::OtherCases));
        let mut other = alike.clone();
        other[1].stdout = "2\n".to_owned();
        assert_eq!(difference(&golden, &Exit::Finished, &other), Some(RunDifference::OtherOutput));
        other[0] = result("concise.py::b[x::y]", Outcome::Error, Some("E"), "");
        assert_eq!(difference(&golden, &Exit::Finished, &other), Some(RunDifference::Error));
        let failed = |exception| [result("t.py::a", Outcome::Failed, Some(exception), "")];
        let compared = difference(&failed("tiny.core.Full"), &Exit::Finished, &failed("ValueError"));
        assert_eq!(compared, Some(RunDifference::OtherException));
        assert_eq!(difference(&failed("tiny.core.Full"), &Exit::Finished, &failed("concise.Full")), None);
    }

    #[test]
    fn cases_are_counted() {
        let golden = [
            result("t.py::a", Outcome::Passed, None, "tiny.core"),
            result("t.py::b", Outcome::Passed, None, ""),
        ];
        let seen = [
            result("concise.py::a", Outcome::Passed, None, "concise"),
            result("concise.py::b", Outcome::Failed, None, ""),
        ];
        let all = with_masks(|masks| compare(&golden, &Exit::Finished, &seen, masks, Compare::Output));
        assert_eq!(
            (all.n_cases, all.passed_cases, all.agreeing_cases, all.masked, all.ran),
            (2, 1, 1, 1, true)
        );
        assert_eq!(all.difference, Some(RunDifference::Failed));
    }
}
