//! What a group's attempts agree on. Pure.

use super::FIRST_ROUNDS;
use crate::attempt::cold;
use crate::record::duration::median;
use crate::record::flag::{EXCEPTION_DIFFERS, OUTPUT_DIFFERS};
use crate::record::outcome::{Attempt, CaseResult, Compare, Method};
use crate::record::verdict::{Cause, Verdict};

/// Attempts in the fork tree that showed what the first one showed, as far as it is compared, and cold runs that agree
/// with it.
pub(crate) fn agreeing(attempts: &[&Attempt], compare: Compare) -> u32 {
    let Some(first) = attempts.iter().find(|attempt| attempt.method == Method::Fork) else { return 0 };
    let hash = first.shown(compare);
    let agrees = |attempt: &&&Attempt| match attempt.method {
        Method::Fork => attempt.shown(compare) == hash,
        Method::Cold => cold::agrees(first, attempt, compare),
    };
    attempts.iter().filter(agrees).count().try_into().unwrap_or(u32::MAX)
}

/// What every attempt in the fork tree showed; empty when they differ, and where another build could see something
/// else. What is not compared is kept only as far as attempts in all worlds agree on it.
pub(crate) fn golden(verdict: &Verdict, attempts: &[&Attempt], compare: Compare) -> Vec<CaseResult> {
    if let Some(Cause::NondeterministicOutcome | Cause::NondeterministicOutput) = verdict.cause() {
        return Vec::new();
    }
    let mut fork = attempts.iter().filter(|attempt| attempt.is_reference());
    let Some(first) = fork.next() else { return Vec::new() };
    let hash = first.shown(compare);
    if !fork.all(|attempt| attempt.shown(compare) == hash) {
        return Vec::new();
    }
    let mut cases = first.cases.clone();
    for case in cases.iter_mut().filter(|_| compare != Compare::Output) {
        let seen: Vec<&CaseResult> = cases_called(&case.case_id, attempts).collect();
        if compare == Compare::Outcome && seen.iter().any(|one| one.exception != case.exception) {
            case.exception = None;
        }
        if seen.iter().any(|one| one.stdout != case.stdout) {
            case.stdout.clear();
        }
        if seen.iter().any(|one| one.stderr != case.stderr) {
            case.stderr.clear();
        }
    }
    cases
}

fn cases_called<'a>(id: &str, attempts: &[&'a Attempt]) -> impl Iterator<Item = &'a CaseResult> {
    let fork = attempts.iter().filter(|attempt| attempt.method == Method::Fork);
    fork.flat_map(|attempt| &attempt.cases).filter(move |case| case.case_id == id)
}

/// Flags that say on what the attempts of a kept group do not agree, whatever was compared.
pub(crate) fn disagreements(attempts: &[&Attempt]) -> impl Iterator<Item = &'static str> {
    let fork: Vec<&Attempt> =
        attempts.iter().copied().filter(|attempt| attempt.method == Method::Fork).collect();
    let differ = |compare: Compare| {
        fork.first().is_some_and(|first| fork.iter().any(|one| one.shown(compare) != first.shown(compare)))
    };
    let exceptions = differ(Compare::Exception);
    // Other exceptions are flagged already; what is printed is looked at beside them.
    let printed = |attempt: &Attempt| {
        let mut attempt = attempt.clone();
        attempt.cases.iter_mut().for_each(|case| case.exception = None);
        attempt.observation_hash()
    };
    let outputs = differ(Compare::Output)
        && fork.first().is_some_and(|first| fork.iter().any(|one| printed(one) != printed(first)));
    [(exceptions, EXCEPTION_DIFFERS), (outputs, OUTPUT_DIFFERS)]
        .into_iter()
        .filter_map(|(differs, flag)| differs.then_some(flag))
}

/// Median duration of the first rounds in the base world, in milliseconds: what every group has.
pub(crate) fn duration_ms(attempts: &[Attempt]) -> Option<f64> {
    let counts = |attempt: &&Attempt| attempt.is_reference() && FIRST_ROUNDS.contains(&attempt.round);
    let durations: Vec<f64> = attempts.iter().filter(counts).map(|attempt| attempt.duration_ms).collect();
    median(&durations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::Outcome;
    use crate::record::verdict::Evidence;
    use crate::record::world::World;
    use crate::testing::attempts::Table;

    fn dropped(cause: Cause) -> Verdict {
        let evidence = Evidence {
            summary: String::new(),
            seen: Vec::new(),
            excerpt: String::new(),
            command: String::new(),
        };
        Verdict::Dropped { cause, evidence }
    }

    #[test]
    fn golden_is_what_all_base_attempts_show() {
        let golden = |verdict: &Verdict, made: &[Attempt]| {
            let cases = golden(verdict, &made.iter().collect::<Vec<_>>(), Compare::Output);
            cases.first().map(|case| (case.outcome, case.stdout.clone()))
        };
        let steady = Table::new().base(0, "a").world(&World::Everything, "b").base(1, "a").cold("z").made();
        let shown = Some((Outcome::Passed, "a".to_owned()));
        assert_eq!(golden(&Verdict::Kept, &steady), shown);
        assert_eq!(golden(&dropped(Cause::Fails), &steady), shown, "a failing group shows something as well");
        assert_eq!(golden(&dropped(Cause::NondeterministicOutput), &steady), None);
        assert_eq!(golden(&Verdict::Kept, &Table::new().base(0, "a").base(1, "b").made()), None);
        assert_eq!(golden(&Verdict::Kept, &[]), None);
    }

    #[test]
    fn agreeing_attempts_show_the_same_and_cold_ones_have_the_same_outcomes() {
        let count = |made: &[Attempt]| agreeing(&made.iter().collect::<Vec<_>>(), Compare::Output);
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&Table::new().base(0, "a").base(1, "b").base(2, "a").made()), 2);
        assert_eq!(count(&Table::new().base(0, "a").cold("a").cold_failing().made()), 2);
        assert_eq!(count(&Table::new().cold("a").made()), 0, "nothing to compare with");
    }

    #[test]
    fn what_is_not_compared_is_golden_only_where_all_worlds_agree_on_it() {
        let made =
            |other: &str| Table::new().base(0, "a").base(1, "a").world(&World::Everything, other).made();
        let seen = |made: &[Attempt], compare| {
            let made: Vec<&Attempt> = made.iter().collect();
            let flags: Vec<&str> = disagreements(&made).collect();
            (golden(&Verdict::Kept, &made, compare)[0].stdout.clone(), flags, agreeing(&made, compare))
        };
        assert_eq!(seen(&made("a"), Compare::Outcome), ("a".to_owned(), vec![], 3));
        assert_eq!(seen(&made("b"), Compare::Outcome), (String::new(), vec![OUTPUT_DIFFERS], 3));
        assert_eq!(seen(&made("b"), Compare::Exception), (String::new(), vec![OUTPUT_DIFFERS], 3));
    }

    #[test]
    fn another_exception_is_flagged_and_is_golden_only_where_it_is_compared() {
        let mut made = Table::new().base(0, "a").base(1, "a").made();
        for (attempt, name) in made.iter_mut().zip(["KeyError", "IndexError"]) {
            attempt.cases[0].outcome = Outcome::XFailed;
            attempt.cases[0].exception = Some(name.to_owned());
        }
        let made: Vec<&Attempt> = made.iter().collect();
        assert_eq!(disagreements(&made).collect::<Vec<_>>(), [EXCEPTION_DIFFERS]);
        assert_eq!(golden(&Verdict::Kept, &made, Compare::Outcome)[0].exception, None);
        assert_eq!(golden(&Verdict::Kept, &made, Compare::Exception), []);
    }

    #[test]
    fn durations_of_the_first_rounds_count() {
        let mut made = Table::new().base(0, "a").base(1, "a").base(2, "a").cold("a").made();
        for (attempt, duration) in made.iter_mut().zip([10.0, 20.0, 500.0, 900.0]) {
            attempt.duration_ms = duration;
        }
        assert_eq!(duration_ms(&made), Some(15.0));
        assert_eq!(duration_ms(&[]), None);
    }
}
