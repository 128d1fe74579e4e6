//! Screening: repeated isolated attempts of every group, kept in a journal, and the verdicts that follow from them.
//!
//! A *round* is a set of attempts made by interpreters of their own: attempts of different rounds share neither
//! imports, nor addresses, nor random state. The first two rounds give every group one attempt each; the others deepen
//! the groups that are to be published.

pub(crate) mod attribution;
pub(crate) mod command;
pub(crate) mod considered;
pub(crate) mod decide;
#[cfg(test)]
mod entry_tests;
pub(crate) mod golden;
mod history;
pub(crate) mod ruling;
mod screening;
pub(crate) mod verdict;

pub(crate) use history::History;
pub(crate) use screening::{Screening, Subject};

/// Rounds that every group goes through.
pub(crate) const FIRST_ROUNDS: [u32; 2] = [0, 1];
/// Rounds that deepen a group which is to be published.
const DEEP_ROUNDS: [u32; 2] = [2, 3];

/// How many attempts of a round a group needs when it is to have `attempts` in all. Pure.
pub(crate) fn attempts_of_round(round: u32, attempts: u32) -> u32 {
    let rest = attempts.saturating_sub(2);
    match round {
        0 | 1 => 1,
        2 => rest.div_ceil(2),
        3 => rest / 2,
        _ => 0,
    }
}

/// All rounds of a group with `attempts` attempts.
pub(crate) fn rounds(attempts: u32) -> impl Iterator<Item = (u32, u32)> {
    let all = FIRST_ROUNDS.into_iter().chain(DEEP_ROUNDS);
    all.map(move |round| (round, attempts_of_round(round, attempts))).filter(|(_, count)| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_add_up_to_the_attempts_asked_for() {
        for attempts in [2, 3, 10, 11, 170] {
            assert_eq!(rounds(attempts).map(|(_, count)| count).sum::<u32>(), attempts);
        }
    }
}
