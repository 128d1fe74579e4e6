//! Attempts → verdict. Pure: the order in which attempts were made does not matter.

use std::collections::BTreeSet;
use std::fmt::Write;

use similar::TextDiff;

use super::command;
use crate::record::collected::Group;
use crate::record::outcome::{Attempt, CaseResult, Compare, Exit, FileChange, Outcome, TimeScope};
use crate::record::verdict::{Cause, Dimension, Evidence, Verdict};
use crate::record::world::World;

/// Longest excerpt in an evidence, in characters.
const EXCERPT: usize = 4000;
/// Signals that stop a process.
const STOPS: [i32; 4] = [nix::libc::SIGSTOP, nix::libc::SIGTSTP, nix::libc::SIGTTIN, nix::libc::SIGTTOU];
/// Longest line of a rendered observation, in characters.
const LINE: usize = 400;

/// Judges a group by its attempts in the base world.
///
/// A group whose cases disagree follows its worst case, unless `partial` groups are allowed. Attempts agree where what
/// `compare` names does.
pub(crate) fn judge(group: &Group, attempts: &[&Attempt], partial: bool, compare: Compare) -> Verdict {
    let Some(first) = attempts.first().copied() else {
        return dropped(group, Cause::CollectionError, "no attempt could be made", &[], String::new());
    };
    if let Some(verdict) = over_the_limit(group, attempts) {
        return verdict;
    }
    let (outcome, observation) = (first.outcome_hash(), first.shown(compare));
    if let Some(other) = attempts.iter().find(|attempt| attempt.outcome_hash() != outcome) {
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
    let told = match &group.entry {
        Some(entry) => command::trouble(entry, first)
            .map(|(cause, summary)| dropped(group, cause, &summary, attempts, command::excerpt(first))),
        None => not_passing(group, first, attempts, partial),
    };
    if let Some(verdict) = told {
        return verdict;
    }
    match attempts.iter().find(|attempt| attempt.shown(compare) != observation) {
        Some(other) => outputs_differ(group, first, other),
        None => Verdict::Kept,
    }
}

/// The verdict of a group that passes in the base world, where two attempts in one world differ, or a difference was
/// seen once and never again. `replay` is the command that runs it again.
pub(crate) fn unsteady(group: &Group, first: &Attempt, other: &Attempt, replay: String) -> Verdict {
    let mut verdict = if let Some(verdict) = over_the_limit(group, &[first, other]) {
        verdict
    } else if first.outcome_hash() == other.outcome_hash() {
        outputs_differ(group, first, other)
    } else {
        outcomes_differ(group, first, other)
    };
    if let Verdict::Dropped { evidence, .. } = &mut verdict {
        evidence.command = replay;
    }
    verdict
}

/// The verdict of a group that shows something else exactly when `dimensions` differ; `clues` say what it uses,
/// `replay` is the command that shows it again.
///
/// The cause is the first of several dimensions; all of them are in the evidence.
pub(crate) fn depends(
    group: &Group,
    dimensions: &BTreeSet<Dimension>,
    (base, other): (&Attempt, &Attempt),
    clues: &[String],
    replay: String,
) -> Verdict {
    let Some(first) = dimensions.first() else {
        return unsteady(group, base, other, replay);
    };
    let names: Vec<&str> = dimensions.iter().map(|dimension| dimension.as_str()).collect();
    let what = if base.outcome_hash() == other.outcome_hash() {
        "what it shows differs".to_owned()
    } else {
        format!("{}, but {}", describe(base), describe(other))
    };
    let when = match names.as_slice() {
        [one] => format!("when only the {} differs", one.replace('-', " ")),
        several => format!("only when {} differ together", several.join(" and ").replace('-', " ")),
    };
    let mut excerpt = observation_diff(base, other);
    if !clues.is_empty() {
        excerpt = format!("what the test uses:\n  {}\n\n{excerpt}", clues.join("\n  "));
    }
    let (cause, when) = match (&group.entry, first) {
        (Some(_), Dimension::TestFileLocation) => {
            (Cause::DependsOnProgramName, "when it is run from the file of a submission".to_owned())
        }
        _ => (Cause::DependsOn(*first), when),
    };
    let mut verdict = dropped(group, cause, &format!("{what} {when}"), &[base, other], excerpt);
    if let Verdict::Dropped { evidence, .. } = &mut verdict {
        evidence.command = replay;
    }
    verdict
}

/// The verdict of a group from outside that calls no function of the target that it is for.
pub(crate) fn does_not_reach(group: &Group, target: &str) -> Verdict {
    dropped(
        group,
        Cause::DoesNotReach,
        &format!("passes, but calls no function of {target}"),
        &[],
        String::new(),
    )
}

/// The verdict of a group that calls nothing of the repository outside its tests.
pub(crate) fn no_repository_code(group: &Group, calls_in_tests: u64) -> Verdict {
    let summary = if group.entry.is_some() {
        "calls no Python function of the repository".to_owned()
    } else {
        format!(
            "passes, but runs no Python function of the repository outside the tests ({calls_in_tests} calls into test code)"
        )
    };
    dropped(group, Cause::NoRepositoryCode, &summary, &[], String::new())
}

/// The verdict of a group whose literal entry command shows other outcomes than the fork tree, or ends otherwise.
pub(crate) fn cold_differs(group: &Group, fork: &Attempt, cold: &Attempt) -> Verdict {
    let is_same = |case: &CaseResult| {
        matches!(case.outcome, Outcome::Passed | Outcome::XPassed | Outcome::Skipped | Outcome::XFailed)
    };
    let passes = if !cold.cases.is_empty() && cold.cases.iter().all(is_same) {
        "its cases pass, but the process of the literal entry command"
    } else {
        "passes in the fork tree, but the process of the literal entry command"
    };
    let (cause, summary) = match &cold.exit {
        Exit::TimedOut { .. } => (Cause::TimesOut, format!("{passes} does not end within its limit")),
        Exit::Exited { code } => (Cause::Crashes, format!("{passes} leaves with exit code {code}")),
        Exit::Signaled { signal } => (Cause::Crashes, format!("{passes} is killed by signal {signal}")),
        Exit::Finished | Exit::NotCollected | Exit::Unusable => (
            Cause::NondeterministicOutcome,
            "a cold run of the literal entry command shows other outcomes than the fork tree".to_owned(),
        ),
    };
    let excerpt = format!("fork tree: {}\ncold: {}\n{}", describe(fork), describe(cold), cold.raw_output);
    dropped(group, cause, &summary, &[fork, cold], excerpt)
}

/// The verdict of a group that goes over its limit, always or at times, and else shows one and the same: how far it
/// comes until then is the machine's affair.
fn over_the_limit(group: &Group, attempts: &[&Attempt]) -> Option<Verdict> {
    let (late, finished): (Vec<&Attempt>, Vec<&Attempt>) =
        attempts.iter().copied().partition(|attempt| matches!(attempt.exit, Exit::TimedOut { .. }));
    let Exit::TimedOut { scope, case } = &late.first()?.exit else { return None };
    let same = |attempt: &&Attempt| {
        attempt.exit == Exit::Finished && attempt.outcome_hash() == finished[0].outcome_hash()
    };
    if !finished.iter().all(same) {
        return None;
    }
    let limit = match scope {
        TimeScope::Case => "a case's time limit",
        TimeScope::Group => "the group's time limit",
    };
    let place = case.as_ref().map(|case| format!(" in {case}")).unwrap_or_default();
    let often = if finished.is_empty() {
        "every attempt".to_owned()
    } else {
        format!("{} of {} attempts", late.len(), attempts.len())
    };
    let summary = format!("over {limit}{place} in {often}");
    let cause = command::over_the_limit(group, late.len(), attempts.len());
    Some(dropped(group, cause, &summary, attempts, late[0].raw_output.clone()))
}

fn unfinished(group: &Group, first: &Attempt, seen: &[&Attempt]) -> Option<Verdict> {
    let (cause, summary) = match &first.exit {
        // Attempts that are over the limit were seen before.
        Exit::Finished | Exit::TimedOut { .. } => return None,
        Exit::Exited { code } => {
            (Cause::Crashes, format!("the process left with exit code {code} before the test was over"))
        }
        Exit::Signaled { signal } if STOPS.contains(signal) => {
            (Cause::Crashes, format!("a process that the test runs in was stopped by signal {signal}"))
        }
        Exit::Signaled { signal } => (Cause::Crashes, format!("the process was killed by signal {signal}")),
        Exit::Unusable => (Cause::Crashes, "what the test leaves of its report cannot be used".to_owned()),
        Exit::NotCollected => {
            (Cause::CollectionError, "cannot be run when its file is collected alone".to_owned())
        }
    };
    Some(dropped(group, cause, &summary, seen, first.raw_output.clone()))
}

fn not_passing(group: &Group, first: &Attempt, seen: &[&Attempt], partial: bool) -> Option<Verdict> {
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
    Some(dropped(group, cause, &summary, seen, message))
}

fn outcomes_differ(group: &Group, first: &Attempt, other: &Attempt) -> Verdict {
    let summary = format!("outcomes differ between attempts in {}", places(first, other));
    let excerpt = observation_diff(first, other);
    dropped(group, Cause::NondeterministicOutcome, &summary, &[first, other], excerpt)
}

fn outputs_differ(group: &Group, first: &Attempt, other: &Attempt) -> Verdict {
    let summary = format!(
        "outcomes agree, but what the test shows differs between attempts in {}",
        places(first, other)
    );
    let excerpt = observation_diff(first, other);
    dropped(group, Cause::NondeterministicOutput, &summary, &[first, other], excerpt)
}

fn places(first: &Attempt, other: &Attempt) -> String {
    if first.world == other.world {
        place(first)
    } else {
        format!("{} and in {}, and not repeatably", place(first), place(other))
    }
}

fn place(attempt: &Attempt) -> String {
    match &attempt.world {
        World::Base => "the base world".to_owned(),
        other => format!("the world `{other}`"),
    }
}

/// A unified diff of two observations.
pub(crate) fn observation_diff(first: &Attempt, other: &Attempt) -> String {
    let (left, right) = (render(first), render(other));
    let diff = TextDiff::from_lines(&left, &right)
        .unified_diff()
        .context_radius(3)
        .header(&name(first), &name(other))
        .to_string();
    clip_lines(&diff)
}

/// Cuts long lines; a changed one so that what it does not share with its counterpart can be seen.
fn clip_lines(diff: &str) -> String {
    let lines: Vec<&str> = diff.lines().collect();
    let shown = lines.iter().map(|line| {
        let other = if line.starts_with('-') { '+' } else { '-' };
        let shared =
            |with: &&str| line[1..].chars().zip(with[1..].chars()).take_while(|(a, b)| a == b).count();
        let shared = match line.chars().next() {
            Some('-' | '+') if line.chars().count() > LINE => {
                lines.iter().filter(|with| with.starts_with(other)).map(shared).max().unwrap_or(0)
            }
            _ => 0,
        };
        if shared < LINE / 2 {
            return clip(line, LINE);
        }
        let rest: String = line.chars().skip(1 + shared - LINE / 4).collect();
        format!("{}    …{}", &line[..1], clip(&rest, LINE))
    });
    shown.collect::<Vec<String>>().join("\n")
}

/// What an attempt showed, as text for people.
pub(crate) fn render(attempt: &Attempt) -> String {
    let mut text = String::new();
    for case in &attempt.cases {
        let _ = writeln!(text, "{}: {}", case.case_id, case.outcome.as_str());
        let exception = case.exception.as_deref().unwrap_or_default();
        for (title, block) in [
            ("  exception", exception),
            ("  message", &case.message),
            ("  stdout", &case.stdout),
            ("  stderr", &case.stderr),
        ] {
            indent(&mut text, title, block);
        }
        if let Some(command) = &case.command {
            let _ = writeln!(text, "  status {}", command.status);
            let files: Vec<String> = command.files.iter().map(FileChange::line).collect();
            indent(&mut text, "  files", &files.join("\n"));
        }
    }
    indent(&mut text, "output outside capture", &attempt.raw_output);
    if attempt.exit != Exit::Finished {
        let _ = writeln!(text, "{}", describe(attempt));
    }
    text
}

fn indent(text: &mut String, title: &str, block: &str) {
    if !block.is_empty() {
        let _ = writeln!(text, "{title}");
        for line in block.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
}

/// `3 passed, 1 failed`, or how the process ended.
pub(crate) fn describe(attempt: &Attempt) -> String {
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
        Exit::TimedOut { case: Some(case), .. } => parts.push(format!("over its time limit in {case}")),
        Exit::TimedOut { case: None, .. } => parts.push("over its time limit".into()),
        Exit::NotCollected => parts.push("its file cannot be collected".into()),
        Exit::Unusable => parts.push("its report cannot be used".into()),
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
        command: group.command().line(),
    };
    Verdict::Dropped { cause, evidence }
}

/// The verdict of a file or item that never became runnable cases.
pub(crate) fn uncollected(row: &crate::record::collected::Uncollected) -> Verdict {
    let summary = match &row.cause {
        Cause::CollectionError => "pytest cannot collect this file",
        Cause::Skipped => "the whole file skips itself when it is collected",
        Cause::TimesOut => "importing this file goes over the time limit",
        _ => "not a Python test function",
    };
    dropped(&row.group, row.cause.clone(), summary, &[], row.text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::Method;
    use crate::testing;

    fn group() -> Group {
        Group { cases: Vec::new(), ..testing::attempts::group() }
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
            command: None,
        };
        Attempt {
            group_id: "t.py::test_a".into(),
            world: World::Base,
            number,
            method: Method::Fork,
            round: number,
            exit: Exit::Finished,
            cases: outcomes.iter().enumerate().map(case).collect(),
            connections: Vec::new(),
            leftover: 0,
            raw_output: String::new(),
            duration_ms: 1.0,
            processor_ms: 0.0,
            memory_bytes: None,
            noted_at: 0,
        }
    }

    fn judged(group: &Group, attempts: &[Attempt], partial: bool) -> Verdict {
        judge(group, &attempts.iter().collect::<Vec<_>>(), partial, Compare::Output)
    }

    fn cause(attempts: &[Attempt]) -> Option<String> {
        judged(&group(), attempts, false).cause().map(ToString::to_string)
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
        assert_eq!(judged(&group, &attempts, false).cause(), Some(&Cause::CollectionError));
        assert_eq!(judged(&group, &[attempt(0, &[], "")], false).cause(), Some(&Cause::CollectionError));
    }

    #[test]
    fn partial_groups_are_kept_only_when_allowed() {
        let attempts = [attempt(0, &[Outcome::Passed, Outcome::Failed], "")];
        assert!(!judged(&group(), &attempts, false).is_kept());
        assert!(judged(&group(), &attempts, true).is_kept());
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
    fn a_group_that_is_at_times_over_its_limit_times_out() {
        use Outcome::{Failed, Passed};
        let late = |number, seen: &[Outcome]| Attempt {
            exit: Exit::TimedOut { scope: TimeScope::Group, case: None },
            ..attempt(number, seen, "")
        };
        let once = [attempt(0, &[Passed, Passed], ""), late(1, &[Passed])];
        let Verdict::Dropped { cause, evidence } = judged(&group(), &once, false) else { panic!("dropped") };
        assert_eq!(cause, Cause::TimesOut);
        assert_eq!(evidence.summary, "over the group's time limit in 1 of 2 attempts");
        assert_eq!(
            self::cause(&[late(0, &[Passed]), late(1, &[Passed, Passed])]).as_deref(),
            Some("times-out")
        );
        let otherwise = [attempt(0, &[Passed], ""), attempt(1, &[Failed], ""), late(2, &[])];
        assert_eq!(self::cause(&otherwise).as_deref(), Some("nondeterministic-outcome"));
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
    fn a_difference_far_along_a_long_line_is_in_the_evidence() {
        let long = |end: &str| format!("{}{end}{}", "x".repeat(1000), "y".repeat(1000));
        let (a, b) =
            (attempt(0, &[Outcome::Passed], &long("left")), attempt(1, &[Outcome::Passed], &long("right")));
        let diff = observation_diff(&a, &b);
        assert!(diff.contains("xleft") && diff.contains("xright"), "{diff}");
        assert!(diff.lines().all(|line| line.chars().count() < 2 * LINE), "{diff}");
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
        let Verdict::Dropped { cause, evidence } = judged(&group(), &[crashed], false) else {
            panic!("kept")
        };
        assert_eq!(cause, Cause::Crashes);
        assert!(evidence.summary.contains("signal 11"), "{}", evidence.summary);
    }
}
