//! What a run showed beside what the original showed, in words that are kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::attempt::normalize::Normalizer;
use crate::family::gistify::Sabotage;
use crate::record::outcome::{Attempt, CaseResult, Outcome};
use crate::score::{ComparedCase, Comparison};
use crate::text::tail;

/// Cases whose messages are kept, and lines of each.
const MOST_CASES: usize = 3;
const MESSAGE_LINES: usize = 20;
/// Characters of what a case was to show, and showed, that are kept.
const LONGEST_TEXT: usize = 4000;

/// What the first cases that differ were to show, what they showed, and what they say.
pub(super) fn messages(comparison: &Comparison, attempt: &Attempt) -> Vec<String> {
    let different = comparison.cases.iter().filter(|case| case.difference.is_some()).take(MOST_CASES);
    let text = |case: &ComparedCase| {
        let seen = attempt.cases.iter().find(|seen| seen.case_id.ends_with(&case.case));
        let message = seen.map_or("", |seen| seen.message.as_str());
        let (expected, seen) = (cut(&case.expected), cut(&case.seen));
        format!("{}: expected {expected}, seen {seen}\n{}", case.case, tail(message, MESSAGE_LINES))
    };
    let told: Vec<String> = different.map(text).collect();
    if told.is_empty() && !comparison.agrees() {
        vec![tail(&attempt.raw_output, MESSAGE_LINES)]
    } else {
        told
    }
}

/// Texts of a comparison as they are kept.
pub(super) fn shortened(mut comparison: Comparison) -> Comparison {
    for case in &mut comparison.cases {
        case.expected = cut(&case.expected);
        case.seen = cut(&case.seen);
    }
    comparison
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// What became of cases that passed when their test must fail.
pub(super) fn sabotage_of(golden: &[CaseResult], seen: &[CaseResult]) -> Sabotage {
    let passes: BTreeSet<&str> = seen.iter().filter_map(passed).collect();
    if golden.iter().filter_map(passed).any(|case| passes.contains(case)) {
        Sabotage::Survives
    } else {
        Sabotage::Fails
    }
}

/// The case's name behind its file, if it passed.
fn passed(case: &CaseResult) -> Option<&str> {
    (case.outcome == Outcome::Passed)
        .then(|| case.case_id.split_once("::").map_or(&*case.case_id, |(_, name)| name))
}

/// What the original showed, as it would be written down today: the dataset may come from a gistmill that normalized
/// less.
pub(crate) fn normalized_again(golden: &[CaseResult], normalizer: &Normalizer) -> Vec<CaseResult> {
    let again = |text: &str| normalizer.output(text, &[], &mut BTreeMap::new());
    let case = |case: &CaseResult| CaseResult {
        stdout: again(&case.stdout),
        stderr: again(&case.stderr),
        ..case.clone()
    };
    golden.iter().map(case).collect()
}
