//! What a cause or a flag means, what leads to it, and what can be done: for `gistmill explain` and the book.

use serde::Serialize;

use super::verdict::{Cause, Dimension};

/// What is known about one word that a dataset uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// As it is in the dataset.
    pub name: String,
    /// `cause`, `flag`, `rule`, `witness cause`, `target cause`, `pair cause`, `pair flag` or `submission flag`.
    pub kind: &'static str,
    /// In a sentence's part, without a capital letter and a full stop.
    pub meaning: String,
    /// What leads to it, in sentences.
    pub origin: String,
    /// What can be done, in sentences.
    pub remedy: String,
}

impl Explanation {
    /// An explanation of a cause; every cause has one, because the compiler asks for it.
    pub fn of_cause(cause: &Cause) -> Self {
        let (origin, remedy) = match cause {
            Cause::DependsOn(dimension) => of_dimension(*dimension),
            Cause::Rule(_) => (
                "A rule with the action `drop` matches the group. The evidence has the rule's reason.",
                "Put a rule with the same id, or a `keep` with `causes = [\"rule:<id>\"]`, into the folder `filters` beside \
                 the configuration, where the rule is wrong about your repository.",
            ),
            plain => of_plain(plain),
        };
        Explanation {
            name: cause.to_string(),
            kind: "cause",
            meaning: cause.meaning(),
            origin: origin.to_owned(),
            remedy: remedy.to_owned(),
        }
    }

    /// Explanations of all causes, in the order of the contract; `rule:<id>` is that of rules.
    pub fn causes() -> Vec<Self> {
        let dimensions = Dimension::ALL.into_iter().map(Cause::DependsOn);
        let all = Cause::named().chain(dimensions).chain([Cause::Rule("<id>".to_owned())]);
        all.map(|cause| Explanation::of_cause(&cause)).collect()
    }
}

/// What leads to a cause without a parameter, and what can be done.
fn of_plain(cause: &Cause) -> (&'static str, &'static str) {
    match cause {
        Cause::CollectionError => (
            "Importing the test file, or a conftest above it, raises; or the group cannot be collected by its entry command \
             alone, or then has other cases; or its name has control characters.",
            "Read the evidence. Where a module is missing, declare what has it (`requirements`, `extras` or `groups` of the \
             repository); where files are not meant to be collected, name those that are with `tests`.",
        ),
        Cause::UnsupportedItem => (
            "pytest collects something that is not a Python test function: a doctest, or an item that a plugin makes of \
             another kind of file.",
            "Nothing: a task is one test function.",
        ),
        Cause::Fails => (
            "A case fails in its body in every attempt in the base world.",
            "Run the command of the evidence. Often an environment variable (`env`), a dependency (`requirements`), another \
             interpreter (`python`) or a file outside of the tree is missing. With `partial_groups = true` in `[screen]` a \
             group whose other cases pass is kept.",
        ),
        Cause::Errors => (
            "Set-up or tear-down of a case raises in every attempt in the base world: a fixture fails.",
            "As with `fails`. Fixtures that start servers, databases or containers find none in the sandbox.",
        ),
        Cause::Skipped => (
            "Every case is skipped in every attempt: for want of an optional dependency, of a platform, of an option.",
            "Where the skip's reason names a dependency, add the extra, group or requirement that has it.",
        ),
        Cause::XFails => (
            "No case passes, because all are marked as expected to fail and do.",
            "Nothing: there is no passing behaviour to reproduce.",
        ),
        Cause::TimesOut => (
            "A case or the group runs over its limit: always, or at times with the same result otherwise. Or its cases pass, \
             and the process of the entry command never ends: a thread or a child process keeps it.",
            "Raise `case_timeout` or `group_timeout` in `[screen]`. A test that waits for something which never comes in the \
             sandbox stays out.",
        ),
        Cause::Crashes => (
            "The interpreter dies: by a signal, by `os._exit`, or because a limit on memory ended it. It was seen three times, \
             each time while the group ran alone. Or its cases pass, and the process of the entry command then leaves with \
             another exit code than pytest gives for that.",
            "Read the evidence. Where it names a limit, raise `memory` or `processes` in `[limits]`.",
        ),
        Cause::NeedsNetwork => (
            "The test fails, and tried to reach an address outside of the loopback, which no sandbox gives it. The evidence \
             has host and port.",
            "Nothing in gistmill: what answers may answer differently tomorrow. A test that talks to a recorded or local \
             server is kept.",
        ),
        Cause::NondeterministicOutcome => (
            "Two attempts in one and the same world end differently: chance, a race, a limit of time, another order of threads.",
            "Seed what is drawn by chance, wait for events and not for time. `gistmill replay GROUP --world base --times 20` \
             shows how often it differs.",
        ),
        Cause::NondeterministicOutput => (
            "Outcomes agree in one and the same world, but the type of an exception or what is printed does not: random \
             numbers, object addresses in an unusual form, the order of threads.",
            "Where output does not matter, `compare = \"exception\"` or `\"outcome\"` in `[screen]` keeps such tests with the \
             flag `output-differs`; a `keep` rule with `causes = [\"nondeterministic-output\"]` keeps single ones. A project \
             that prints the random seed of each run often takes it from a variable, which `env` sets: `env = { \
             SKLEARN_SEED = \"0\" }` for scikit-learn.",
        ),
        Cause::WaitsForInput => (
            "A command asks for input (`input()`, a prompt), gets none, and fails.",
            "Give it what a person would type: `stdin` or `stdin_file` in its [[repo.entry]].",
        ),
        Cause::NeedsTerminal => (
            "A command fails, and asked for a terminal before: curses, a password, the size of the screen.",
            "Nothing: no attempt has a terminal.",
        ),
        Cause::RunsForever => (
            "A command does not end within `case_timeout` in any attempt: a server, a loop that waits.",
            "Nothing for a server. What only takes long may have more time: `case_timeout` in [screen].",
        ),
        Cause::ExitsWith => (
            "A command leaves with the same unexpected status in every attempt; a status other than 0 has to be asked for.",
            "Where the failure is what is to be shown, write `exit = <status>` into its [[repo.entry]].",
        ),
        Cause::DependsOnProgramName => (
            "A command shows something else when the same code is run from a file `concise.py` in the root of the tree: \
             it prints its own name (`usage: …`), or looks for files beside itself.",
            "Nothing: a submission has that name and that place.",
        ),
        Cause::PrintsHelpOnly => (
            "What a command prints is what the same program, or the same subcommand, prints for --help or --version.",
            "Nothing: a help text is not a task.",
        ),
        Cause::DoesNotReach => (
            "Tests from outside (`tests_from`) are each written for one file of the repository, and no function of that file is called.",
            "Read the test: what it needs may be stubbed in it, or it belongs to another file.",
        ),
        Cause::NoRepositoryCode => (
            "The test passes, and no Python function of the repository outside of its tests is called. Calls into compiled \
             code are not counted.",
            "Nothing: there is nothing to gistify. Where test helpers are the product, a `keep` rule with `causes = \
             [\"no-repository-code\"]` says so.",
        ),
        // Both have parameters, and texts of their own.
        Cause::DependsOn(_) | Cause::Rule(_) => ("", ""),
    }
}

/// What leads to a dependence on a dimension, and what can be done.
fn of_dimension(dimension: Dimension) -> (&'static str, &'static str) {
    match dimension {
        Dimension::HashSeed => (
            "The order of a set or of hashes is part of what the test shows.",
            "Sort what is compared or printed.",
        ),
        Dimension::TimeZone => (
            "Local times are formatted, parsed or compared, and the zone is not said.",
            "Name the zone in the test, or set `TZ` there.",
        ),
        Dimension::Locale => (
            "Numbers, dates, messages or encodings follow the locale of the environment.",
            "Set the locale in the test, and name encodings when files are opened.",
        ),
        Dimension::Clock => (
            "The test compares with the present: a date has passed, a certificate or a token has run out.",
            "Freeze the time, or count from the present instead of from a fixed date.",
        ),
        Dimension::Home => (
            "The test reads or prints what is in the home directory, the user or the temporary directory.",
            "Point the test at a directory of its own (`tmp_path`, `monkeypatch.setenv(\"HOME\", …)`).",
        ),
        Dimension::Terminal => (
            "Output is wrapped or coloured by the width and kind of the terminal.",
            "Set `COLUMNS`, `TERM` or the width in the test.",
        ),
        Dimension::Load => (
            "The result hangs on how fast the machine is: waits, time limits, order of threads under contention.",
            "Wait for events and not for time.",
        ),
        Dimension::CheckoutPath => (
            "The path of the checkout is part of what the test shows, in a form that is not masked, or decides what it does.",
            "Compare paths relative to the root of the repository.",
        ),
        Dimension::WorkingDirectory => (
            "Files are opened relative to the current directory.",
            "Start paths at `Path(__file__)` or at a fixture. An agent runs its solution in the root of the tree.",
        ),
        Dimension::TestFileLocation => (
            "The test asks for its own file, module or package (`__file__`, `__name__`, files beside it, relative imports). \
             Gistify runs the solution as `./concise.py` in the root of the tree, where all of this is different.",
            "A `keep` rule with `causes = [\"depends-on-test-file-location\"]` keeps such tests where another evaluation \
             leaves them in their place.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_says_what_leads_to_it_and_what_can_be_done() {
        let causes = Explanation::causes();
        assert_eq!(causes.len(), Cause::named().count() + Dimension::ALL.len() + 1);
        for one in causes {
            for text in [&one.origin, &one.remedy] {
                assert!(text.ends_with('.') && text.len() > 20 && !text.contains("  "), "{one:?}");
            }
            assert!(!one.meaning.is_empty() && !one.meaning.contains('|'), "{one:?}");
        }
    }
}
