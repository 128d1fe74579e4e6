//! What a submission shows under the variants of its test.

use serde::{Deserialize, Serialize};

use super::evaluate::Original;
use crate::record::id::hash_parts;
use crate::record::outcome::{Attempt, Compare};
use crate::record::variant::{Variant, VariantKind};
use crate::score::{Masks, compare};

/// The runs of one submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OnVariants {
    /// Places of the variants in the order in which they were run; none is the test as it is.
    pub(crate) order: Vec<Option<usize>>,
    /// By their place.
    pub(crate) differing: Vec<Differing>,
}

/// A variant that does not show what it shows in the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Differing {
    /// Its place among those of the instance.
    pub(crate) variant: usize,
    pub(crate) kind: VariantKind,
    /// Line of the original's file.
    pub(crate) line: u32,
    /// The first case that differs.
    pub(crate) case: String,
    pub(crate) expected: String,
    pub(crate) seen: String,
}

impl OnVariants {
    /// Runs in an order, with nothing seen yet.
    pub(super) fn new(order: Vec<Option<usize>>) -> Self {
        OnVariants { order, differing: Vec::new() }
    }

    /// The order in which a text is run: who does not know the variants does not know it, and the same text has the same.
    pub(super) fn order(original: &Original<'_>, text: &str) -> Vec<Option<usize>> {
        let known = serde_json::to_string(original.variants).unwrap_or_default();
        let mut order: Vec<Option<usize>> = (0..original.variants.len()).map(Some).chain([None]).collect();
        order.sort_by_cached_key(|which| hash_parts(&[&known, text, &format!("{which:?}")]));
        order
    }

    /// Takes note of a run of a variant.
    pub(super) fn note(&mut self, (place, variant): (usize, &Variant), attempt: &Attempt, masks: &Masks<'_>) {
        if let Some((case, expected, seen)) = difference(variant, attempt, masks) {
            let (kind, line) = (variant.kind, variant.line);
            self.differing.push(Differing { variant: place, kind, line, case, expected, seen });
        }
    }
}

/// The first case that differs, with what was expected and what was seen.
fn difference(variant: &Variant, attempt: &Attempt, masks: &Masks<'_>) -> Option<(String, String, String)> {
    let golden = variant.golden();
    let compared = compare(&golden, &attempt.exit, &attempt.cases, masks, Compare::Exception);
    if let Some(one) = compared.cases.iter().find(|one| one.difference.is_some()) {
        return Some((one.case.clone(), one.expected.clone(), one.seen.clone()));
    }
    if !compared.agrees() {
        let seen = format!("{:?}", attempt.exit);
        return Some((String::new(), "finished".to_owned(), seen));
    }
    let name = |case: &str| case.split_once("::").map_or_else(|| case.to_owned(), |(_, name)| name.to_owned());
    for case in &variant.cases {
        let Some(message) = &case.message else { continue };
        let seen = attempt.cases.iter().filter(|seen| name(&seen.case_id) == case.case);
        if let Some(seen) = seen.into_iter().find(|seen| !seen.message.contains(message)) {
            let last = seen.message.lines().next_back().unwrap_or_default();
            return Some((case.case.clone(), message.clone(), last.to_owned()));
        }
    }
    None
}
