//! Where the time of a build went, for people.

use std::fmt::Write as _;

use crate::record::spent::{Spent, total};
use crate::terminal::Text;

/// Steps that took less than this share of all are one line.
const TOLD: f64 = 0.01;

/// Seconds of a build of which nothing needs to be said.
const SHORTEST: f64 = 1.0;

/// The dearest steps first, the small ones in one line, and how busy `processors` were.
pub(super) fn summary(steps: &[Spent], processors: usize) -> Text {
    let mut text = Text::default();
    let (seconds, processor_seconds) = total(steps);
    if seconds < SHORTEST {
        return text;
    }
    let busy = 100.0 * processor_seconds / (seconds * processors.max(1) as f64);
    let _ = writeln!(
        text,
        "time: {seconds:.1} s, {processor_seconds:.1} s of processors ({busy:.0} % of {processors} in use)"
    );
    let mut sorted: Vec<&Spent> = steps.iter().collect();
    sorted.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.step.cmp(&b.step)));
    let (told, small): (Vec<&Spent>, Vec<&Spent>) =
        sorted.into_iter().partition(|one| one.beside || one.seconds >= TOLD * seconds);
    let small_ones = Spent {
        step: format!("{} smaller steps", small.len()),
        count: 0,
        beside: false,
        seconds: small.iter().map(|one| one.seconds).sum(),
        processor_seconds: small.iter().map(|one| one.processor_seconds).sum(),
    };
    let rest = (!small.is_empty()).then_some(&small_ones);
    for one in told.into_iter().chain(rest) {
        let count = if one.count > 0 { format!(", {}", one.count) } else { String::new() };
        let beside = if one.beside { ", beside others" } else { "" };
        text.line(&format!(
            "  {:>8.1} s  {:>8.1} s of processors  {}{count}{beside}",
            one.seconds, one.processor_seconds, one.step
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_add_up_to_the_whole() {
        let step = |step: &str, seconds, processor_seconds| Spent {
            step: step.to_owned(),
            count: 3,
            seconds,
            beside: false,
            processor_seconds,
        };
        let steps = [step("a", 0.5, 0.25), step("b screen", 99.0, 98.0), step("c", 0.5, 0.75)];
        let text = summary(&steps, 2);
        let lines: Vec<&str> = text.as_str().lines().collect();
        assert_eq!(
            lines,
            [
                "time: 100.0 s, 99.0 s of processors (50 % of 2 in use)",
                "      99.0 s      98.0 s of processors  b screen, 3",
                "       1.0 s       1.0 s of processors  2 smaller steps",
            ]
        );
    }

    #[test]
    fn a_run_without_steps_says_nothing() {
        assert_eq!(summary(&[], 2).as_str(), "");
    }
}
