//! Figures of a judge that stays, in the text form that Prometheus reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use super::wire::{Answer, Kind};

/// Upper bounds of what answers took, in seconds.
const BOUNDS: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

#[derive(Debug, Default)]
pub(super) struct Figures(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    by_status: BTreeMap<&'static str, u64>,
    known: u64,
    /// Judgements that took no longer than each bound.
    within: [u64; BOUNDS.len()],
    judged: u64,
    seconds: f64,
}

impl Figures {
    /// Counts an answer.
    pub(super) fn answered(&self, answer: &Answer) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.by_status.entry(answer.kind.status()).or_default() += 1;
        if let Kind::Judged { known, .. } = answer.kind {
            let seconds = answer.took.as_secs_f64();
            counts.known += u64::from(known);
            counts.judged += 1;
            counts.seconds += seconds;
            for (count, bound) in counts.within.iter_mut().zip(BOUNDS) {
                *count += u64::from(seconds <= bound);
            }
        }
    }

    /// The text; `more` are gauges with what they mean.
    pub(super) fn text(
        &self,
        (waiting, running, clients): (usize, usize, usize),
        more: &[(&str, &str, f64)],
    ) -> String {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(text, "# HELP gistmill_{name} {help}\n# TYPE gistmill_{name} {kind}");
        };
        head(&mut text, "answers_total", "counter", "Answers to submissions, by their status");
        for (status, count) in &counts.by_status {
            let _ = writeln!(text, "gistmill_answers_total{{status=\"{status}\"}} {count}");
        }
        head(&mut text, "known_total", "counter", "Judgements of what was judged before");
        let _ = writeln!(text, "gistmill_known_total {}", counts.known);
        head(&mut text, "judgement_seconds", "histogram", "Seconds from a request to its judgement");
        for (count, bound) in counts.within.iter().zip(BOUNDS) {
            let _ = writeln!(text, "gistmill_judgement_seconds_bucket{{le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(text, "gistmill_judgement_seconds_bucket{{le=\"+Inf\"}} {}", counts.judged);
        let _ = writeln!(text, "gistmill_judgement_seconds_sum {}", counts.seconds);
        let _ = writeln!(text, "gistmill_judgement_seconds_count {}", counts.judged);
        let own = [
            ("waiting", "Submissions that wait", waiting as f64),
            ("running", "Submissions that are judged now", running as f64),
            ("clients_waiting", "Clients with submissions that wait", clients as f64),
        ];
        for (name, help, value) in own.iter().chain(more) {
            head(&mut text, name, "gauge", help);
            let _ = writeln!(text, "gistmill_{name} {value}");
        }
        text
    }
}
