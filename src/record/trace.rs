//! What a traced attempt saw.

use serde::{Deserialize, Serialize};

/// More calls than any attempt can make, and a number that every reader of the dataset keeps exactly.
pub const MOST_CALLS: u64 = 1 << 53;
/// Longest path of a file in a trace, in bytes.
const LONGEST_PATH: usize = 4096;

/// Calls into one function (one code object) of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCalls {
    /// File relative to the root of the tree.
    pub file: String,
    /// Qualified name, as the interpreter gives it.
    pub function: String,
    /// First line of the definition, 1-based.
    pub line: u32,
    pub calls: u64,
    /// Place in the order of first calls, 0-based.
    pub order: u32,
    /// Executed lines, sorted; none where the interpreter does not know.
    pub lines: Option<Vec<u32>>,
    /// Functions of the tree that called it, directly or through code outside the tree: their places in the order of first
    /// calls, sorted. None where only a table was read that does not have them.
    pub callers: Option<Vec<u32>>,
}

impl FunctionCalls {
    /// Whether it was called while the cases ran.
    pub fn is_called(&self) -> bool {
        self.calls > 0
    }
}

/// What the calls of a traced run add up to. Kept apart from the calls themselves, which are many.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Calls into the tree: the first difficulty axis.
    pub trace_length: u64,
    /// Calls into the tree outside the tests.
    pub package_calls: u64,
    /// Files of the tree with at least one call, sorted: the second difficulty axis counts them.
    pub files: Vec<String>,
    pub unique_functions: u32,
    /// Number of executed lines, each file and line once; none where the interpreter does not know.
    pub executed_lines: Option<u64>,
}

/// Whether a tracer can have written these: in the order of their first calls, in files of the tree, called by each other,
/// not more calls than there can be.
///
/// # Errors
/// What it cannot have written, in words.
pub fn check_calls(functions: &[FunctionCalls]) -> Result<(), String> {
    let mut calls = 0_u64;
    for (order, function) in functions.iter().enumerate() {
        check_path(&function.file)?;
        if u32::try_from(order) != Ok(function.order) {
            return Err(format!("function {order} is number {} in the order of first calls", function.order));
        }
        let callers = function.callers.as_deref().unwrap_or_default();
        if callers.last().is_some_and(|last| *last as usize >= functions.len())
            || !callers.is_sorted_by(|one, next| one < next)
        {
            return Err(format!(
                "function {order} is called by {callers:?}, of {} functions",
                functions.len()
            ));
        }
        calls = calls.saturating_add(function.calls);
        if calls > MOST_CALLS {
            return Err(format!("{calls} calls"));
        }
    }
    Ok(())
}

/// A module or class body that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedBody {
    /// Path in the tree.
    pub file: String,
    /// `<module>`, or the qualified name of the class.
    pub name: String,
    /// First line, 1-based.
    pub line: u32,
    /// Its lines that ran, sorted; none where the interpreter does not show them.
    pub lines: Option<Vec<u32>>,
}

/// Whether bodies can be what the tracer wrote.
///
/// # Errors
/// What it cannot have written, in words.
pub fn check_bodies(bodies: &[ExecutedBody]) -> Result<(), String> {
    bodies.iter().try_for_each(|body| check_path(&body.file))
}

/// Whether a text is the path of a file in the tree: relative, without steps up or aside.
///
/// # Errors
/// Why it is not one, in words.
pub fn check_path(path: &str) -> Result<(), String> {
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    if path.len() <= LONGEST_PATH && !path.contains('\0') && path.split('/').all(plain) {
        return Ok(());
    }
    let shown: String = path.chars().take(100).collect();
    Err(format!("{shown:?} is not a path in the tree"))
}

impl Totals {
    /// Adds up; `is_test` recognises test files by their path.
    pub fn of(functions: &[FunctionCalls], is_test: impl Fn(&str) -> bool) -> Self {
        let called = || functions.iter().filter(|function| function.is_called());
        let mut files: Vec<String> = called().map(|function| function.file.clone()).collect();
        files.sort();
        files.dedup();
        let outside = called().filter(|function| !is_test(&function.file));
        Totals {
            trace_length: called().map(|function| function.calls).fold(0, u64::saturating_add),
            package_calls: outside.map(|function| function.calls).fold(0, u64::saturating_add),
            files,
            unique_functions: u32::try_from(called().count()).unwrap_or(u32::MAX),
            executed_lines: executed_lines(functions),
        }
    }
}

fn executed_lines(functions: &[FunctionCalls]) -> Option<u64> {
    let mut seen = std::collections::BTreeSet::new();
    for function in functions {
        seen.extend(function.lines.as_ref()?.iter().map(|line| (function.file.as_str(), *line)));
    }
    Some(seen.len() as u64)
}

/// The traced run of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    pub group_id: String,
    pub totals: Totals,
    /// Functions of the tree called while the cases ran, in order of first call. Empty where only the totals are
    /// needed (groups that are not published).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionCalls>,
    /// Calls into the tree in child interpreters that could be followed, their imports included; not part of the
    /// totals.
    pub child_calls: u64,
    /// Calls into the tree while the test file and its conftests were imported.
    pub import_calls: u64,
    /// Files of the tree whose module body ran then, sorted.
    pub import_files: Vec<String>,
    /// Whether the group started threads, as far as this attempt shows it: see [`Traced::starts_threads`].
    pub(crate) threads_seen: bool,
    /// What is wrong with the trace itself: that tracing changes the outcome, or why what was reported was refused.
    pub(crate) troubles: Vec<String>,
    /// Whether the traced attempt came to its end, with nothing lost: only then do the numbers mean anything.
    pub complete: bool,
    /// What a second traced attempt showed. None before one was made: only what is to be published has one.
    pub second: Option<SecondTrace>,
    /// Hash of the code that ran, the test's own included: see [`crate::python_source::definitions`].
    pub code_sha256: String,
}

/// The trouble of a traced attempt that shows other outcomes than the untraced ones.
pub(crate) const OTHER_OUTCOME: &str = "(tracing changes the outcome)";

/// What the second traced attempt of a group adds: it sees all code, not the tree's alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondTrace {
    /// Calls in all code, the tree's included.
    pub total_calls: u64,
    /// Functions on which the traced attempts disagree, `file::function`.
    pub differing: Vec<String>,
    /// What is wrong with the trace itself, as in the first.
    pub troubles: Vec<String>,
    /// Whether the group started threads.
    pub starts_threads: bool,
    /// Whether it came to its end, with nothing lost.
    pub complete: bool,
}

impl Traced {
    /// Whether a second traced attempt agreed, call for call, and tracing did not change the outcome. None where there
    /// was no second one.
    pub fn stable(&self) -> Option<bool> {
        let second = self.second.as_ref()?;
        Some(self.complete && second.complete && self.unstable_functions().next().is_none())
    }

    /// Whether the first traced attempt showed other outcomes than the untraced ones: then it ran something else, by chance or
    /// because it was traced, and says nothing about them.
    pub(crate) fn has_other_outcome(&self) -> bool {
        self.troubles.iter().any(|trouble| trouble == OTHER_OUTCOME)
    }

    /// Whether the group started threads: then how much is called can depend on the scheduler.
    pub fn starts_threads(&self) -> bool {
        self.threads_seen || self.second.as_ref().is_some_and(|second| second.starts_threads)
    }

    /// Functions on which the traced attempts disagree, `file::function`, and what is wrong with the traces themselves.
    pub fn unstable_functions(&self) -> impl Iterator<Item = &str> {
        let (differing, troubles) =
            self.second.as_ref().map(|second| (&second.differing, &second.troubles)).unzip();
        let all = differing.into_iter().flatten().chain(&self.troubles).chain(troubles.into_iter().flatten());
        all.map(String::as_str)
    }

    /// Whether all traced attempts came to their end, with nothing lost.
    pub fn is_whole(&self) -> bool {
        self.complete && self.second.as_ref().is_none_or(|second| second.complete)
    }
}

/// Whether a file of the tree belongs to the tests: by its name (`test_*.py`, `*_test.py`, `conftest.py`), or because
/// it is below one of the `test_roots` (helpers and data of the tests).
pub fn is_test_path(path: &str, test_roots: &[String]) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let by_name = name == "conftest.py"
        || name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"));
    by_name
        || test_roots
            .iter()
            .any(|root| path.strip_prefix(root.as_str()).is_some_and(|rest| rest.starts_with('/')))
}

/// The test roots of a repository: for each collected test file its outermost folder that is named like one for tests
/// (`test`, `tests`, `unit_tests`, `tests_slow` …), sorted. A test file beside package code (`package/test_a.py`) has
/// none, so that the package is not taken for a test.
pub fn test_roots<'a>(test_files: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut roots: Vec<String> = test_files.into_iter().filter_map(outermost_test_folder).collect();
    roots.sort();
    roots.dedup();
    roots
}

fn outermost_test_folder(file: &str) -> Option<String> {
    let folders: Vec<&str> = file.split('/').collect();
    let folders = &folders[..folders.len() - 1];
    let at = folders.iter().position(|folder| is_test_folder(folder))?;
    Some(folders[..=at].join("/"))
}

fn is_test_folder(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(['_', '-']).any(|word| matches!(word, "test" | "tests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(file: &str, function: &str, calls: u64, lines: Option<Vec<u32>>) -> FunctionCalls {
        FunctionCalls {
            file: file.into(),
            function: function.into(),
            line: 1,
            calls,
            order: 0,
            lines,
            callers: None,
        }
    }

    #[test]
    fn measures_add_up_and_count_each_file_and_line_once() {
        let functions = vec![
            call("src/a.py", "f", 3, Some(vec![2, 3])),
            call("src/a.py", "g", 1, Some(vec![3, 5])),
            call("tests/test_a.py", "test_f", 1, Some(vec![2])),
            call("src/b.py", "never", 0, Some(vec![])),
        ];
        let roots = test_roots(["tests/test_a.py"]);
        let totals = Totals::of(&functions, |path| is_test_path(path, &roots));
        assert_eq!((totals.trace_length, totals.package_calls, totals.unique_functions), (5, 4, 3));
        assert_eq!(totals.files, ["src/a.py", "tests/test_a.py"]);
        assert_eq!(totals.executed_lines, Some(4));
        let mut blind = functions;
        blind[0].lines = None;
        assert_eq!(Totals::of(&blind, |_| false).executed_lines, None);
    }

    #[test]
    fn numbers_that_cannot_be_do_not_wrap() {
        let functions = [call("a.py", "f", u64::MAX, None), call("b.py", "g", u64::MAX, None)];
        assert_eq!(Totals::of(&functions, |_| false).package_calls, u64::MAX);
        assert!(check_calls(&functions).is_err());
        let body = ExecutedBody { file: "../a.py".into(), name: "<module>".into(), line: 1, lines: None };
        assert!(check_bodies(&[body]).is_err());
    }

    #[test]
    fn callers_are_functions_of_the_trace() {
        let called_by = |callers: &[u32]| {
            let mut functions = [call("a.py", "f", 1, None), call("b.py", "g", 1, None)];
            functions[1].order = 1;
            functions[0].callers = Some(callers.to_vec());
            check_calls(&functions)
        };
        for callers in [vec![], vec![0], vec![1], vec![0, 1]] {
            assert_eq!(called_by(&callers), Ok(()));
        }
        for callers in [vec![2], vec![u32::MAX], vec![1, 0], vec![0, 0], vec![7, 1]] {
            assert!(called_by(&callers).is_err(), "{callers:?}");
        }
    }

    #[test]
    fn tests_are_told_by_name_or_root() {
        let roots = test_roots([
            "tests/unit/test_a.py",
            "package/sub/tests/test_b.py",
            "package/test_c.py",
            "test_d.py",
        ]);
        assert_eq!(roots, ["package/sub/tests", "tests"]);
        for path in [
            "tests/helpers.py",
            "tests/unit/data/x.py",
            "package/sub/tests/common.py",
            "test_d.py",
            "conftest.py",
        ] {
            assert!(is_test_path(path, &roots), "{path}");
        }
        for path in
            ["package/testing.py", "package/sub/core.py", "testsuite/x.py", "package/latest.py", "setup.py"]
        {
            assert!(!is_test_path(path, &roots), "{path}");
        }
    }

    #[test]
    fn folders_are_test_folders_by_whole_words() {
        for name in ["test", "tests", "unit_tests", "tests_slow", "Tests", "integration-test"] {
            assert!(is_test_folder(name), "{name}");
        }
        for name in ["testing", "latest", "contest", "testdata"] {
            assert!(!is_test_folder(name), "{name}");
        }
    }
}
