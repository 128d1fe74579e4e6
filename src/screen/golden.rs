//! What a group's attempts agree on. Pure.

use super::FIRST_ROUNDS;
use crate::attempt::cold;
use crate::record::duration::median;
use crate::record::outcome::{Attempt, CaseResult, Method};
use crate::record::verdict::{Cause, Verdict};

/// Attempts in the fork tree that showed what the first one showed, and cold runs that agree with it.
pub(crate) fn agreeing(attempts: &[&Attempt]) -> u32 {
    let Some(first) = attempts.iter().find(|attempt| attempt.method == Method::Fork) else { return 0 };
    let hash = first.observation_hash();
    let agrees = |attempt: &&&Attempt| match attempt.method {
        Method::Fork => attempt.observation_hash() == hash,
        Method::Cold => cold::agrees(first, attempt),
    };
    attempts.iter().filter(agrees).count().try_into().unwrap_or(u32::MAX)
}

/// What every attempt in the fork tree showed; empty when they differ, and where another build could see something
/// else.
pub(crate) fn golden(verdict: &Verdict, attempts: &[&Attempt]) -> Vec<CaseResult> {
    if let Some(Cause::NondeterministicOutcome | Cause::NondeterministicOutput) = verdict.cause() {
        return Vec::new();
    }
    let mut fork = attempts.iter().filter(|attempt| attempt.method == Method::Fork && attempt.is_base());
    let Some(first) = fork.next() else { return Vec::new() };
    let hash = first.observation_hash();
    if fork.all(|attempt| attempt.observation_hash() == hash) { first.cases.clone() } else { Vec::new() }
}

/// Median duration of the first rounds in the base world, in milliseconds: what every group has.
pub(crate) fn duration_ms(attempts: &[Attempt]) -> Option<f64> {
    let counts = |attempt: &&Attempt| {
        attempt.method == Method::Fork && attempt.is_base() && FIRST_ROUNDS.contains(&attempt.round)
    };
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
            let cases = golden(verdict, &made.iter().collect::<Vec<_>>());
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
        let count = |made: &[Attempt]| agreeing(&made.iter().collect::<Vec<_>>());
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&Table::new().base(0, "a").base(1, "b").base(2, "a").made()), 2);
        assert_eq!(count(&Table::new().base(0, "a").cold("a").cold_failing().made()), 2);
        assert_eq!(count(&Table::new().cold("a").made()), 0, "nothing to compare with");
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
