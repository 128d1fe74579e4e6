//! What a submission shows under the variants of its test.

use serde::{Deserialize, Serialize};

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
    pub(super) fn order(variants: &[Variant], text: &str) -> Vec<Option<usize>> {
        let known = serde_json::to_string(variants).unwrap_or_default();
        let mut order: Vec<Option<usize>> = (0..variants.len()).map(Some).chain([None]).collect();
        order.sort_by_cached_key(|which| hash_parts(&[&known, text, &format!("{which:?}")]));
        order
    }

    /// Whether a run of a variant shows something else than the repository does.
    pub(super) fn differs(variant: &Variant, attempt: &Attempt, masks: &Masks<'_>, held_to: Compare) -> bool {
        difference(variant, attempt, masks, held_to).is_some()
    }

    /// Takes note of a run of a variant.
    pub(super) fn note(
        &mut self,
        (place, variant): (usize, &Variant),
        attempt: &Attempt,
        masks: &Masks<'_>,
        held_to: Compare,
    ) {
        if let Some((case, expected, seen)) = difference(variant, attempt, masks, held_to) {
            let (kind, line) = (variant.kind, variant.line);
            self.differing.push(Differing { variant: place, kind, line, case, expected, seen });
        }
    }
}

/// The first case that differs, with what was expected and what was seen.
fn difference(
    variant: &Variant,
    attempt: &Attempt,
    masks: &Masks<'_>,
    held_to: Compare,
) -> Option<(String, String, String)> {
    let golden = variant.golden();
    let compared = compare(&golden, &attempt.exit, &attempt.cases, masks, held_to);
    if let Some(one) = compared.cases.iter().find(|one| one.difference.is_some()) {
        return Some((one.case.clone(), one.expected.clone(), one.seen.clone()));
    }
    if !compared.agrees() {
        let seen = format!("{:?}", attempt.exit);
        return Some((String::new(), "finished".to_owned(), seen));
    }
    let name =
        |case: &str| case.split_once("::").map_or_else(|| case.to_owned(), |(_, name)| name.to_owned());
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::record::outcome::{CaseResult, Exit, Outcome};
    use crate::record::variant::VariantCase;
    use crate::record::world::World;
    use crate::score::Modules;
    use crate::testing::attempts::attempt;

    fn variant(outcome: Outcome, exception: Option<&str>, message: Option<&str>) -> Variant {
        let (exception, message) = (exception.map(str::to_owned), message.map(str::to_owned));
        let cases = vec![VariantCase { case: "T::test_a[1]".to_owned(), outcome, exception, message }];
        Variant {
            kind: VariantKind::RaiseAt,
            line: 7,
            source: String::new(),
            cases,
            variation: None,
            refutes_constant: false,
        }
    }

    fn run(case: &str, outcome: Outcome, exception: Option<&str>, message: &str) -> Attempt {
        let case = CaseResult {
            case_id: case.to_owned(),
            outcome,
            exception: exception.map(str::to_owned),
            stdout: "printed".to_owned(),
            stderr: String::new(),
            message: message.to_owned(),
            replaced: BTreeMap::new(),
            duration_ms: 1.0,
            command: None,
        };
        let made = attempt(&World::Base, crate::record::outcome::Method::Fork, 0, outcome, "");
        Attempt { cases: vec![case], exit: Exit::Finished, ..made }
    }

    fn differs(variant: &Variant, attempt: &Attempt) -> Option<(String, String)> {
        let modules: Modules = ["tiny"].into_iter().collect();
        let masks = Masks { modules: &modules, files: &BTreeSet::new(), test_module: "test_a" };
        let mut seen = OnVariants::new(vec![None, Some(3)]);
        seen.note((3, variant), attempt, &masks, Compare::Exception);
        let first = seen.differing.first()?;
        assert_eq!((first.variant, first.kind, first.line), (3, VariantKind::RaiseAt, 7));
        Some((first.expected.clone(), first.seen.clone()))
    }

    #[test]
    fn outcome_exception_and_what_the_edit_says_have_to_be_those_of_the_repository() {
        let name = "concise.py::T::test_a[1]";
        let golden = variant(Outcome::Failed, Some("tiny.Error"), Some("not here, 7"));
        let says = "def test_a():\nE   concise.Error: not here, 7";
        assert_eq!(differs(&golden, &run(name, Outcome::Failed, Some("concise.Error"), says)), None);
        let passes = differs(&golden, &run(name, Outcome::Passed, None, "")).unwrap();
        assert_eq!(passes, ("failed".to_owned(), "passed".to_owned()));
        let other = differs(&golden, &run(name, Outcome::Failed, Some("builtins.NameError"), says)).unwrap();
        assert_eq!(other, ("Error".to_owned(), "builtins.NameError".to_owned()));
        let silent =
            differs(&golden, &run(name, Outcome::Failed, Some("concise.Error"), "E   concise.Error"))
                .unwrap();
        assert_eq!(silent, ("not here, 7".to_owned(), "E   concise.Error".to_owned()));
        assert!(
            differs(&golden, &run("concise.py::T::test_a[2]", Outcome::Failed, Some("tiny.Error"), says))
                .is_some()
        );
        let died = Attempt {
            exit: Exit::Exited { code: 0 },
            ..run(name, Outcome::Failed, Some("tiny.Error"), says)
        };
        assert!(differs(&golden, &died).is_some());
        let silent = variant(Outcome::Passed, None, None);
        assert_eq!(differs(&silent, &run(name, Outcome::Passed, None, "")), None);
        assert!(differs(&silent, &run(name, Outcome::Failed, Some("builtins.AssertionError"), "")).is_some());
    }

    #[test]
    fn the_order_is_of_the_variants_and_the_text_and_has_the_test_as_it_is() {
        let all: Vec<Variant> =
            (0..8).map(|at| variant(Outcome::Passed, None, Some(&at.to_string()))).collect();
        let order = OnVariants::order(&all, "text");
        assert_eq!(order, OnVariants::order(&all, "text"));
        let distinct: BTreeSet<_> = order.iter().collect();
        assert!(distinct.len() == 9 && distinct.contains(&None), "{order:?}");
        let places = |text: &str| OnVariants::order(&all, text).iter().position(Option::is_none);
        let first: BTreeSet<_> = (0..40).map(|at| places(&at.to_string())).collect();
        assert!(first.len() > 4, "it is not always at the same place: {first:?}");
    }
}
