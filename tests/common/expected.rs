//! What the groups of `trees/every_verdict` are labelled with: verdict, cases, and for some the calls counted by hand.

/// A group of the tree and its verdict.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    pub group: &'static str,
    /// None: kept.
    pub cause: Option<&'static str>,
    pub cases: Cases,
    /// What the evidence says, among other things.
    pub evidence: &'static [&'static str],
}

/// The cases of a group, in pytest's order.
#[derive(Debug, Clone, Copy)]
pub enum Cases {
    /// A file that never became a case.
    None,
    /// One case, named like the group.
    One,
    /// One for each parameter ID.
    Each(&'static [&'static str]),
    /// One for each number below.
    Below(u32),
}

impl Expected {
    const fn each(self, parameters: &'static [&'static str]) -> Self {
        Expected { cases: Cases::Each(parameters), ..self }
    }

    const fn below(self, end: u32) -> Self {
        Expected { cases: Cases::Below(end), ..self }
    }

    const fn without_cases(self) -> Self {
        Expected { cases: Cases::None, ..self }
    }

    pub fn is_kept(&self) -> bool {
        self.cause.is_none()
    }

    /// Whether it can be run at all.
    pub fn is_attempted(&self) -> bool {
        self.cause != Some("unsupported-item") && !matches!(self.cases, Cases::None)
    }

    /// `kept`, or the cause.
    pub fn verdict(&self) -> &'static str {
        self.cause.unwrap_or("kept")
    }

    pub fn case_ids(&self) -> Vec<String> {
        let named = |parameters: &dyn std::fmt::Display| format!("{}[{parameters}]", self.group);
        match self.cases {
            Cases::None => Vec::new(),
            Cases::One => vec![self.group.to_owned()],
            Cases::Each(parameters) => parameters.iter().map(|one| named(one)).collect(),
            Cases::Below(end) => (0..end).map(|one| named(&one)).collect(),
        }
    }
}

const fn kept(group: &'static str) -> Expected {
    Expected { group, cause: None, cases: Cases::One, evidence: &[] }
}

const fn dropped(group: &'static str, cause: &'static str, evidence: &'static [&'static str]) -> Expected {
    Expected { group, cause: Some(cause), cases: Cases::One, evidence }
}

/// Parameter IDs that other tools have stumbled over.
const ODD_IDS: [&str; 11] = [
    "a b",
    "[x]",
    "a::b",
    "two\nlines",
    "naïve ☕",
    "",
    "a/b.py",
    "-k",
    "'quoted' \"twice\"",
    concat!(
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ),
    "back\\slash",
];

/// Every group of the tree.
pub const EVERY_VERDICT: [Expected; 65] = [
    // Causes, one by one.
    dropped("tests/test_cannot_be_collected.py", "collection-error", &["this module cannot be imported"])
        .without_cases(),
    dropped("tests/test_prose.txt::test_prose.txt", "unsupported-item", &["DoctestItem"]),
    dropped("tests/test_skips_itself.py", "skipped", &["the whole file"]).without_cases(),
    dropped("tests/test_outcomes.py::test_fails", "fails", &["AssertionError", "assert 4 == 5"]),
    dropped(
        "tests/test_outcomes.py::test_fails_in_one_case_of_three",
        "fails",
        &["1 of 3 cases", "three[2]"],
    )
    .each(&["1", "2", "3"]),
    dropped("tests/test_outcomes.py::test_errors_in_set_up", "errors", &["LookupError", "no set-up"]),
    dropped("tests/test_outcomes.py::test_errors_in_tear_down", "errors", &["LookupError", "no tear-down"]),
    dropped("tests/test_scopes.py::test_opens_a_door", "errors", &["LookupError", "the door is stuck"]),
    dropped("tests/test_outcomes.py::test_is_skipped", "skipped", &["not today"]),
    dropped("tests/test_outcomes.py::test_is_expected_to_fail", "xfails", &["expected to fail", "known"]),
    dropped("tests/test_ends.py::test_hangs", "times-out", &["limit", "test_hangs"]),
    dropped("tests/test_ends.py::test_leaves_with_an_exit_code", "crashes", &["exit code 3"]),
    dropped("tests/test_ends.py::test_reads_address_zero", "crashes", &["signal 11", "Segmentation fault"]),
    dropped("tests/test_ends.py::test_aborts", "crashes", &["signal 6", "Aborted"]),
    dropped("tests/test_network.py::test_needs_the_network", "needs-network", &["192.0.2.1:80"]),
    dropped(
        "tests/test_differs.py::test_tosses_coins",
        "nondeterministic-outcome",
        &["base#0", "base#1", "passed"],
    )
    .below(40),
    dropped(
        "tests/test_differs.py::test_prints_a_random_number",
        "nondeterministic-output",
        &["stdout", "@@ -1"],
    ),
    dropped("tests/test_differs.py::test_prints_a_uuid", "nondeterministic-output", &["stdout", "@@ -1"]),
    dropped("tests/test_differs.py::test_prints_the_time", "nondeterministic-output", &["stdout", "@@ -1"]),
    dropped(
        "tests/test_differs.py::test_prints_to_stderr_what_the_system_drew",
        "nondeterministic-output",
        &["stderr", "@@ -1"],
    ),
    dropped(
        "tests/test_differs.py::test_raises_one_of_two_exceptions",
        "nondeterministic-output",
        &["exception", "Odd", "Even"],
    )
    .below(41),
    dropped(
        "tests/test_outcomes.py::test_calls_only_the_standard_library",
        "no-repository-code",
        &["no Python function of the repository"],
    ),
    // Neighbours of the above.
    kept("tests/test_ends.py::test_before"),
    kept("tests/test_ends.py::test_after"),
    kept("tests/test_outcomes.py::test_passes_against_expectation"),
    kept("tests/test_outcomes.py::test_passes_beside_skipped_and_expected_failures").each(&["1", "2", "3"]),
    kept("tests/test_network.py::test_copes_without_the_network"),
    kept("tests/test_network.py::test_serves_itself_over_the_loopback"),
    kept("tests/test_differs.py::test_seeds_its_randomness"),
    // Clean, however suspicious they look.
    kept("tests/test_looks_suspicious.py::test_prints_an_address"),
    kept("tests/test_looks_suspicious.py::test_prints_its_process"),
    kept("tests/test_looks_suspicious.py::test_prints_the_temporary_directory"),
    kept("tests/test_looks_suspicious.py::test_prints_the_checkout"),
    kept("tests/test_looks_suspicious.py::test_changes_the_environment"),
    kept("tests/test_looks_suspicious.py::test_sees_no_changed_environment"),
    kept("tests/test_looks_suspicious.py::test_moves_away"),
    kept("tests/test_looks_suspicious.py::test_writes_into_the_checkout"),
    kept("tests/test_looks_suspicious.py::test_finds_nothing_left_in_the_checkout"),
    kept("tests/test_looks_suspicious.py::test_joins_its_threads"),
    kept("tests/test_looks_suspicious.py::test_starts_python"),
    kept("tests/test_looks_suspicious.py::test_leaves_a_daemon_behind"),
    kept("tests/test_looks_suspicious.py::test_warns"),
    kept("tests/test_looks_suspicious.py::test_reads_package_data"),
    kept("tests/test_looks_suspicious.py::test_writes_bytes_that_are_no_text"),
    kept("tests/test_scopes.py::test_uses_the_shelf").each(&["1", "2"]),
    kept("tests/test_scopes.py::test_uses_a_fresh_shelf"),
    kept("tests/test_scopes.py::test_fills").each(&["tin", "jar"]),
    kept("tests/test_scopes.py::test_empties").each(&["tin", "jar"]),
    kept("tests/test_scopes.py::TestOuter::TestInner::test_in_two_classes").each(&["1", "2"]),
    kept("tests/test_scopes.py::Unit::test_of_unittest"),
    kept("tests/test_ids.py::test_odd_ids").each(&ODD_IDS),
    kept("tests/test_ids.py::test_machine_path").each(&["<root>/shelf"]),
    kept("tests/nested/test_nested.py::test_two_conftests"),
    kept("tests/nested/test_nested.py::test_relative_import"),
    // Calls are counted.
    kept("tests/test_counts.py::test_one_call"),
    kept("tests/test_counts.py::test_three_cases").each(&["1", "2", "3"]),
    kept("tests/test_counts.py::test_recursion"),
    kept("tests/test_counts.py::test_generator"),
    kept("tests/test_counts.py::test_generator_that_never_runs"),
    kept("tests/test_counts.py::test_methods"),
    kept("tests/test_counts.py::test_function_in_a_function"),
    kept("tests/test_counts.py::test_threads"),
    kept("tests/test_counts.py::test_fixture"),
    kept("tests/test_counts.py::test_fixtures_of_wider_scope").each(&["1", "2"]),
    kept("tests/test_counts.py::test_coroutine"),
];

/// Calls of a group, function by function, as a person counts them: (file, function, calls).
pub type Calls = &'static [(&'static str, &'static str, u64)];

const SHAPES: &str = "pantry/shapes.py";
const COUNTS: &str = "tests/test_counts.py";
const FIXTURES: &str = "tests/conftest.py";

/// Groups whose calls are counted by hand.
pub const CALLS: [(&str, Calls); 13] = [
    ("tests/test_counts.py::test_one_call", &[(COUNTS, "test_one_call", 1), (SHAPES, "area", 1)]),
    // Once for each case.
    ("tests/test_counts.py::test_three_cases", &[(COUNTS, "test_three_cases", 3), (SHAPES, "area", 3)]),
    ("tests/test_counts.py::test_recursion", &[(COUNTS, "test_recursion", 1), (SHAPES, "factorial", 5)]),
    // A generator counts once, when its body first runs …
    ("tests/test_counts.py::test_generator", &[(COUNTS, "test_generator", 1), (SHAPES, "steps", 1)]),
    // … and not at all when it never does.
    (
        "tests/test_counts.py::test_generator_that_never_runs",
        &[(COUNTS, "test_generator_that_never_runs", 1), (SHAPES, "area", 1)],
    ),
    (
        "tests/test_counts.py::test_coroutine",
        &[(COUNTS, "test_coroutine", 1), (COUNTS, "test_coroutine.<locals>.measure", 1), (SHAPES, "area", 2)],
    ),
    (
        "tests/test_counts.py::test_methods",
        &[
            (COUNTS, "test_methods", 1),
            (SHAPES, "Square.__init__", 1),
            (SHAPES, "Square.area", 1),
            (SHAPES, "area", 1),
        ],
    ),
    (
        "tests/test_counts.py::test_function_in_a_function",
        &[
            (COUNTS, "test_function_in_a_function", 1),
            (COUNTS, "test_function_in_a_function.<locals>.local", 1),
            (COUNTS, "test_function_in_a_function.<locals>.local.<locals>.<lambda>", 1),
            (SHAPES, "area", 1),
        ],
    ),
    // Two threads with three calls each.
    ("tests/test_counts.py::test_threads", &[(COUNTS, "test_threads", 1), (SHAPES, "factorial", 6)]),
    // Set-up and tear-down of a fixture are one generator.
    (
        "tests/test_counts.py::test_fixture",
        &[(FIXTURES, "unit", 1), (SHAPES, "area", 1), (COUNTS, "test_fixture", 1)],
    ),
    // A fixture of the module and one of the session, once each, for two cases.
    (
        "tests/test_counts.py::test_fixtures_of_wider_scope",
        &[
            (FIXTURES, "cellar", 1),
            (SHAPES, "area", 3),
            (FIXTURES, "shelf", 1),
            (COUNTS, "test_fixtures_of_wider_scope", 2),
        ],
    ),
    // The fixture of the inner conftest wraps the outer one of the same name.
    (
        "tests/nested/test_nested.py::test_two_conftests",
        &[
            (FIXTURES, "unit", 1),
            (SHAPES, "area", 2),
            ("tests/nested/conftest.py", "unit", 1),
            ("tests/nested/test_nested.py", "test_two_conftests", 1),
        ],
    ),
    // A fixture of two parameters is set up twice.
    (
        "tests/test_scopes.py::test_fills",
        &[(FIXTURES, "container", 2), ("tests/test_scopes.py", "test_fills", 2), (SHAPES, "area", 2)],
    ),
];

/// Output of cases in the groups whose fixtures print: (case, stdout).
pub const PRINTED: [(&str, &str); 11] = [
    ("tests/test_scopes.py::test_uses_the_shelf[1]", "cellar opens\nshelf up\nshelf holds 2 1\n"),
    // Fixtures of wider scope go with the last case of the group, as under the entry command.
    ("tests/test_scopes.py::test_uses_the_shelf[2]", "shelf holds 3 4\nshelf down\ncellar closes\n"),
    ("tests/test_scopes.py::test_uses_a_fresh_shelf", "cellar opens\nshelf up\nshelf down\ncellar closes\n"),
    ("tests/test_scopes.py::test_fills[tin]", "takes the tin\nfills the tin 2\n"),
    (
        "tests/test_scopes.py::test_fills[jar]",
        "puts back the tin\ntakes the jar\nfills the jar 2\nputs back the jar\n",
    ),
    ("tests/test_looks_suspicious.py::test_prints_its_process", "process <pid>\n"),
    (
        "tests/test_looks_suspicious.py::test_prints_an_address",
        "<pantry.shapes.Square object at 0x…> <object object at 0x…>\n",
    ),
    (
        "tests/test_looks_suspicious.py::test_prints_the_temporary_directory",
        "<tmp>/pytest-of-<user>/pytest-0/test_prints_the_temporary_dire0\n",
    ),
    ("tests/test_looks_suspicious.py::test_prints_the_checkout", "<root> __init__.py\n"),
    ("tests/test_looks_suspicious.py::test_writes_bytes_that_are_no_text", "\u{fffd}\u{fffd} raw\n"),
    ("tests/test_differs.py::test_seeds_its_randomness", "0.32383276483316237\n"),
];
