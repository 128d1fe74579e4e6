//! Attempts → verdict. Pure: the order in which attempts were made does not matter.

use crate::record::collected::Group;
use crate::record::outcome::{Attempt, CaseResult, Exit, Outcome, TimeScope};
use crate::record::verdict::{Cause, Evidence, Verdict};

/// Longest excerpt in an evidence, in characters.
const EXCERPT: usize = 4000;

/// Judges a group by its attempts in the base world.
///
/// A group whose cases disagree follows its worst case, unless `partial` groups are allowed.
pub fn judge(group: &Group, attempts: &[Attempt], partial: bool) -> Verdict {
    let Some(first) = attempts.first() else {
        return dropped(group, Cause::CollectionError, "no attempt could be made", &[], String::new());
    };
    if let Some(other) = attempts.iter().find(|attempt| attempt.outcome_hash() != first.outcome_hash()) {
        return outcomes_differ(group, first, other);
    }
    if let Some(verdict) = unfinished(group, first, attempts) {
        return verdict;
    }
    let fails = first.cases.iter().any(|case| matches!(case.outcome, Outcome::Failed | Outcome::Error));
    if (partial || !fails) && first.cases.len() < group.cases.len() {
        let summary =
            format!("run by itself, {} of the group's {} cases run", first.cases.len(), group.cases.len());
        return dropped(group, Cause::CollectionError, &summary, &[first], first.raw_output.clone());
    }
    if let Some(verdict) = not_passing(group, first, attempts, partial) {
        return verdict;
    }
    match attempts.iter().find(|attempt| attempt.observation_hash() != first.observation_hash()) {
        Some(other) => outputs_differ(group, first, other),
        None => Verdict::Kept,
    }
}

/// The verdict of a group that calls nothing of the repository outside its tests.
pub fn no_repository_code(group: &Group, calls_in_tests: u64) -> Verdict {
    let summary = format!(
        "passes, but runs no function of the repository outside the tests ({calls_in_tests} calls into test code)"
    );
    dropped(group, Cause::NoRepositoryCode, &summary, &[], String::new())
}

/// The verdict of a group whose literal entry command shows other outcomes than the fork tree.
pub fn cold_differs(group: &Group, fork: &Attempt, cold: &Attempt) -> Verdict {
    let summary = "a cold run of the literal entry command shows other outcomes than the fork tree";
    let excerpt = format!("fork tree: {}\ncold: {}\n{}", describe(fork), describe(cold), cold.raw_output);
    dropped(group, Cause::NondeterministicOutcome, summary, &[fork, cold], excerpt)
}

fn unfinished(group: &Group, first: &Attempt, attempts: &[Attempt]) -> Option<Verdict> {
    let seen: Vec<&Attempt> = attempts.iter().collect();
    let (cause, summary) = match &first.exit {
        Exit::Finished => return None,
        Exit::TimedOut { scope, case } => {
            let limit = match scope {
                TimeScope::Case => "a case's time limit",
                TimeScope::Group => "the group's time limit",
            };
            let place = case.as_ref().map(|case| format!(" in {case}")).unwrap_or_default();
            (Cause::TimesOut, format!("over {limit}{place} in every attempt"))
        }
        Exit::Exited { code } => {
            (Cause::Crashes, format!("the process left with exit code {code} before the test was over"))
        }
        Exit::Signaled { signal } => (Cause::Crashes, format!("the process was killed by signal {signal}")),
    };
    Some(dropped(group, cause, &summary, &seen, first.raw_output.clone()))
}

fn not_passing(group: &Group, first: &Attempt, attempts: &[Attempt], partial: bool) -> Option<Verdict> {
    let seen: Vec<&Attempt> = attempts.iter().collect();
    let passes = first.cases.iter().any(|case| matches!(case.outcome, Outcome::Passed | Outcome::XPassed));
    let worst = first.cases.iter().max_by_key(|case| case.outcome)?;
    let message =
        format!("{}: {}\n{}", worst.case_id, worst.exception.as_deref().unwrap_or(""), worst.message);
    let count = |outcome| first.cases.iter().filter(|case| case.outcome == outcome).count();
    let total = first.cases.len();
    let (cause, summary) = match worst.outcome {
        Outcome::Failed | Outcome::Error if partial && passes => return None,
        Outcome::Failed | Outcome::Error if !first.connections.is_empty() => {
            let places = first.connections.join(", ");
            (Cause::NeedsNetwork, format!("fails offline after an attempt to reach {places}"))
        }
        Outcome::Failed => {
            (Cause::Fails, format!("{} of {total} cases fail in every attempt", count(Outcome::Failed)))
        }
        Outcome::Error => (
            Cause::Errors,
            format!(
                "{} of {total} cases error in set-up or tear-down in every attempt",
                count(Outcome::Error)
            ),
        ),
        _ if passes => return None,
        Outcome::XFailed => (Cause::XFails, "no case passes: expected to fail".to_owned()),
        _ => (Cause::Skipped, format!("all {total} cases are skipped")),
    };
    Some(dropped(group, cause, &summary, &seen, message))
}

fn outcomes_differ(group: &Group, first: &Attempt, other: &Attempt) -> Verdict {
    let excerpt = format!(
        "{}: {}\n{}: {}\n{}",
        name(first),
        describe(first),
        name(other),
        describe(other),
        first_difference(first, other)
    );
    dropped(
        group,
        Cause::NondeterministicOutcome,
        "outcomes differ between attempts in the base world",
        &[first, other],
        excerpt,
    )
}

fn outputs_differ(group: &Group, first: &Attempt, other: &Attempt) -> Verdict {
    dropped(
        group,
        Cause::NondeterministicOutput,
        "outcomes agree, but what the test shows differs between attempts in the base world",
        &[first, other],
        first_difference(first, other),
    )
}

/// The first line in which two attempts differ, case by case.
fn first_difference(first: &Attempt, other: &Attempt) -> String {
    for (a, b) in first.cases.iter().zip(&other.cases) {
        if a.outcome != b.outcome {
            let message = if a.message.is_empty() { &b.message } else { &a.message };
            return format!("{}: {} / {}\n{message}", a.case_id, a.outcome.as_str(), b.outcome.as_str());
        }
        if a.exception != b.exception {
            return format!("{}: exception {:?} / {:?}", a.case_id, a.exception, b.exception);
        }
        for (stream, left, right) in [("stdout", &a.stdout, &b.stdout), ("stderr", &a.stderr, &b.stderr)] {
            if left != right {
                return format!("{}: {stream}\n{}", a.case_id, line_difference(left, right));
            }
        }
    }
    if first.raw_output == other.raw_output {
        format!("{} cases / {} cases", first.cases.len(), other.cases.len())
    } else {
        format!("output outside capture\n{}", line_difference(&first.raw_output, &other.raw_output))
    }
}

fn line_difference(left: &str, right: &str) -> String {
    let (mut a, mut b) = (left.lines(), right.lines());
    for number in 1.. {
        match (a.next(), b.next()) {
            (None, None) => break,
            (left, right) if left == right => {}
            (left, right) => {
                let show = |line: Option<&str>| line.map_or("(nothing)".to_owned(), |line| clip(line, 400));
                return format!("line {number}\n- {}\n+ {}", show(left), show(right));
            }
        }
    }
    "line ends differ".to_owned()
}

/// `3 passed, 1 failed`, or how the process ended.
pub fn describe(attempt: &Attempt) -> String {
    let mut counts: Vec<(Outcome, usize)> = Vec::new();
    for CaseResult { outcome, .. } in &attempt.cases {
        match counts.iter_mut().find(|(known, _)| known == outcome) {
            Some((_, count)) => *count += 1,
            None => counts.push((*outcome, 1)),
        }
    }
    let mut parts: Vec<String> =
        counts.iter().map(|(outcome, count)| format!("{count} {}", outcome.as_str())).collect();
    match &attempt.exit {
        Exit::Finished => {}
        Exit::Exited { code } => parts.push(format!("left with exit code {code}")),
        Exit::Signaled { signal } => parts.push(format!("killed by signal {signal}")),
        Exit::TimedOut { .. } => parts.push("over its time limit".into()),
    }
    parts.join(", ")
}

fn name(attempt: &Attempt) -> String {
    format!("{}#{}", attempt.world, attempt.number)
}

fn clip(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn dropped(group: &Group, cause: Cause, summary: &str, seen: &[&Attempt], excerpt: String) -> Verdict {
    let evidence = Evidence {
        summary: summary.to_owned(),
        seen: seen.iter().map(|attempt| name(attempt)).collect(),
        excerpt: clip(excerpt.trim_end(), EXCERPT),
        command: group.entry_command(),
    };
    Verdict::Dropped { cause, evidence }
}

/// The verdict of a file or item that never became runnable cases.
pub fn uncollected(row: &crate::record::collected::Uncollected) -> Verdict {
    let summary = match &row.cause {
        Cause::CollectionError => "pytest cannot collect this file",
        Cause::Skipped => "the whole file skips itself when it is collected",
        _ => "not a Python test function",
    };
    dropped(&row.group, row.cause.clone(), summary, &[], row.text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::Method;

    fn group() -> Group {
        Group {
            group_id: "t.py::test_a".into(),
            file: "t.py".into(),
            classes: Vec::new(),
            function: "test_a".into(),
            cases: Vec::new(),
            markers: Vec::new(),
            fixtures: Vec::new(),
            flags: Vec::new(),
        }
    }

    fn attempt(number: u32, outcomes: &[Outcome], stdout: &str) -> Attempt {
        let case = |(index, outcome): (usize, &Outcome)| CaseResult {
            case_id: format!("t.py::test_a[{index}]"),
            outcome: *outcome,
            exception: None,
            stdout: stdout.to_owned(),
            stderr: String::new(),
            message: "assert False".into(),
            replaced: std::collections::BTreeMap::new(),
            duration_ms: 1.0,
        };
        Attempt {
            group_id: "t.py::test_a".into(),
            world: "base".into(),
            number,
            method: Method::Fork,
            round: number,
            exit: Exit::Finished,
            cases: outcomes.iter().enumerate().map(case).collect(),
            connections: Vec::new(),
            leftover: 0,
            raw_output: String::new(),
            duration_ms: 1.0,
        }
    }

    fn cause(attempts: &[Attempt]) -> Option<String> {
        judge(&group(), attempts, false).cause().map(ToString::to_string)
    }

    #[test]
    fn agreeing_passes_are_kept_and_so_is_a_group_with_a_skipped_case() {
        use Outcome::{Passed, Skipped, XFailed};
        for outcomes in [&[Passed][..], &[Passed, Skipped], &[XFailed, Passed]] {
            assert_eq!(cause(&[attempt(0, outcomes, "a"), attempt(1, outcomes, "a")]), None);
        }
    }

    #[test]
    fn the_worst_case_names_the_cause() {
        use Outcome::{Error, Failed, Passed, Skipped, XFailed};
        for (outcomes, expected) in [
            (&[Passed, Failed][..], "fails"),
            (&[Failed, Error], "errors"),
            (&[Skipped, Skipped], "skipped"),
            (&[Skipped, XFailed], "xfails"),
        ] {
            assert_eq!(
                cause(&[attempt(0, outcomes, ""), attempt(1, outcomes, "")]).as_deref(),
                Some(expected)
            );
        }
    }

    #[test]
    fn a_group_that_does_not_run_all_of_its_cases_is_not_kept() {
        let mut group = group();
        group.cases = vec![
            crate::record::collected::Case {
                case_id: "t.py::test_a[0]".into(),
                parameters: None,
                line: None
            };
            2
        ];
        let attempts = [attempt(0, &[Outcome::Passed], ""), attempt(1, &[Outcome::Passed], "")];
        assert_eq!(judge(&group, &attempts, false).cause(), Some(&Cause::CollectionError));
        assert_eq!(judge(&group, &[attempt(0, &[], "")], false).cause(), Some(&Cause::CollectionError));
    }

    #[test]
    fn partial_groups_are_kept_only_when_allowed() {
        let attempts = [attempt(0, &[Outcome::Passed, Outcome::Failed], "")];
        assert!(!judge(&group(), &attempts, false).is_kept());
        assert!(judge(&group(), &attempts, true).is_kept());
    }

    #[test]
    fn differing_outcomes_and_differing_output_have_their_own_causes() {
        let pass = attempt(0, &[Outcome::Passed], "a");
        assert_eq!(
            cause(&[pass.clone(), attempt(1, &[Outcome::Failed], "a")]).as_deref(),
            Some("nondeterministic-outcome")
        );
        assert_eq!(
            cause(&[pass, attempt(1, &[Outcome::Passed], "b")]).as_deref(),
            Some("nondeterministic-output")
        );
    }

    #[test]
    fn the_verdict_ignores_the_order_of_attempts() {
        let attempts = [
            attempt(0, &[Outcome::Passed], "a"),
            attempt(1, &[Outcome::Passed], "b"),
            attempt(2, &[Outcome::Passed], "a"),
        ];
        let orders = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]];
        for order in orders {
            let permuted = order.map(|index: usize| attempts[index].clone());
            assert_eq!(cause(&permuted).as_deref(), Some("nondeterministic-output"));
        }
    }

    #[test]
    fn a_failure_after_an_outward_connection_needs_the_network() {
        let mut failed = attempt(0, &[Outcome::Failed], "");
        failed.connections.push("example.org:80".into());
        assert_eq!(cause(&[failed]).as_deref(), Some("needs-network"));
        let mut passed = attempt(0, &[Outcome::Passed], "");
        passed.connections.push("example.org:80".into());
        assert_eq!(cause(&[passed]), None);
    }

    #[test]
    fn crashes_and_time_outs_carry_their_facts() {
        let mut crashed = attempt(0, &[], "");
        crashed.exit = Exit::Signaled { signal: 11 };
        let Verdict::Dropped { cause, evidence } = judge(&group(), &[crashed], false) else { panic!("kept") };
        assert_eq!(cause, Cause::Crashes);
        assert!(evidence.summary.contains("signal 11"), "{}", evidence.summary);
    }
}
