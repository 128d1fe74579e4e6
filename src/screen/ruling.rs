//! What rules and traces make of verdicts. Pure.

use std::collections::BTreeMap;

use super::verdict;
use crate::record::collected::Group;
use crate::record::flag::KEPT_BY;
use crate::record::rule::RuleUse;
use crate::record::trace::{Totals, Traced};
use crate::record::verdict::{Cause, Evidence, Verdict};
use crate::rules::{Applied, Decision};

/// A verdict after the rules, and what they did.
#[derive(Debug)]
pub(crate) struct RuledVerdict {
    pub verdict: Verdict,
    applied: Applied,
    /// The rule that dropped it.
    dropped_by: Option<String>,
    /// The rules without which it would be dropped.
    pub kept_by: Vec<String>,
}

impl RuledVerdict {
    /// What the rules make of what was measured.
    pub(crate) fn of(group: &Group, measured: Verdict, applied: Applied) -> Self {
        let (verdict, dropped_by, kept_by) = match applied.decide(measured.cause()) {
            Decision::Unchanged => (measured, None, Vec::new()),
            Decision::Keep { by } => (Verdict::Kept, None, by),
            Decision::Drop { id, reason } => {
                let command = group.command().line();
                let evidence =
                    Evidence { summary: reason, seen: Vec::new(), excerpt: String::new(), command };
                (Verdict::Dropped { cause: Cause::Rule(id.clone()), evidence }, Some(id), Vec::new())
            }
        };
        RuledVerdict { verdict, applied, dropped_by, kept_by }
    }

    /// Ids of the rules that flag it, and `kept-by:<id>` for those that keep it.
    pub(crate) fn flags(&self) -> impl Iterator<Item = String> {
        let kept_by = self.kept_by.iter().map(|id| format!("{KEPT_BY}{id}"));
        self.applied.flags.iter().cloned().chain(kept_by)
    }
}

/// A verdict after its trace, of a group that was written for one file: what does not reach it is out.
pub(crate) fn after_trace_of(
    group: &Group,
    target: &str,
    verdict: Verdict,
    traced: Option<&Traced>,
) -> Verdict {
    let totals = whole_totals(traced).filter(|_| verdict.is_kept());
    match totals {
        Some(totals) if !totals.files.iter().any(|file| file == target) => {
            verdict::does_not_reach(group, target)
        }
        _ => verdict,
    }
}

/// A verdict after its trace: what passes without running the repository's own code is out. What could not be measured
/// to its end, or ended otherwise than without a tracer, decides nothing.
pub(crate) fn after_trace(group: &Group, verdict: Verdict, traced: Option<&Traced>) -> Verdict {
    match traced {
        Some(traced)
            if verdict.is_kept()
                && traced.complete
                && !traced.has_other_outcome()
                && traced.totals.package_calls == 0 =>
        {
            verdict::no_repository_code(group, traced.totals.trace_length)
        }
        _ => verdict,
    }
}

/// The numbers of a trace that rules may go by: none where it did not come to its end, or ended otherwise than without a
/// tracer.
pub(crate) fn whole_totals(traced: Option<&Traced>) -> Option<&Totals> {
    traced.filter(|traced| traced.complete && !traced.has_other_outcome()).map(|traced| &traced.totals)
}

/// How often each rule matched and decided.
pub(crate) fn rule_use(
    mut rules: BTreeMap<String, RuleUse>,
    ruled: &[RuledVerdict],
) -> BTreeMap<String, RuleUse> {
    for one in ruled {
        for id in &one.applied.matched {
            rules.entry(id.clone()).and_modify(|rule| rule.matched += 1);
        }
        for id in one.dropped_by.iter().chain(&one.kept_by) {
            rules.entry(id.clone()).and_modify(|rule| rule.decided += 1);
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::trace::OTHER_OUTCOME;
    use crate::rules::{RuleSet, Subject};
    use crate::testing::attempts::group;

    const RULES: &str = "\
[[rule]]\nid = 'no-a'\nreason = 'because'\naction = 'drop'\nmatch = {name = 'test_a'}\n
[[rule]]\nid = 'look'\nreason = 'r'\naction = 'flag'\nmatch = {name = 'test_a'}\n
[[rule]]\nid = 'other'\nreason = 'r'\naction = 'drop'\nmatch = {name = 'test_b'}\n";

    fn traced(package_calls: u64, complete: bool) -> Traced {
        let totals = Totals { package_calls, trace_length: package_calls + 3, ..Totals::default() };
        Traced { totals, complete, ..Traced::default() }
    }

    #[test]
    fn passing_without_code_of_the_repository_is_out_when_the_trace_came_to_its_end() {
        let cause = |traced: Option<&Traced>| {
            after_trace(&group(), Verdict::Kept, traced).cause().map(ToString::to_string)
        };
        assert_eq!(cause(None), None);
        assert_eq!(cause(Some(&traced(5, true))), None);
        assert_eq!(cause(Some(&traced(0, false))), None);
        assert_eq!(cause(Some(&traced(0, true))).as_deref(), Some("no-repository-code"));
        let other = Traced { troubles: vec![OTHER_OUTCOME.to_owned()], ..traced(0, true) };
        assert_eq!(cause(Some(&other)), None, "it failed before it called anything");
        assert!(whole_totals(Some(&other)).is_none() && whole_totals(Some(&traced(0, true))).is_some());
        let failed = verdict::no_repository_code(&group(), 0);
        assert_eq!(after_trace(&group(), failed.clone(), Some(&traced(5, true))), failed);
    }

    #[test]
    fn a_group_that_was_written_for_a_file_has_to_call_it() {
        let mut reaches = traced(5, true);
        reaches.totals.files = vec!["pkg/a.py".to_owned()];
        let cause = |target: &str, traced: &Traced| {
            let verdict = after_trace_of(&group(), target, Verdict::Kept, Some(traced));
            verdict.cause().map(ToString::to_string)
        };
        assert_eq!(cause("pkg/a.py", &reaches), None);
        assert_eq!(cause("pkg/b.py", &reaches).as_deref(), Some("does-not-reach"));
        assert_eq!(cause("pkg/b.py", &traced(5, false)), None, "its trace did not come to its end");
        let failed = verdict::no_repository_code(&group(), 0);
        assert_eq!(after_trace_of(&group(), "pkg/b.py", failed.clone(), Some(&reaches)), failed);
    }

    #[test]
    fn rules_decide_flag_and_are_counted() {
        let rules = RuleSet::parse(&[("a.toml", RULES)]).unwrap();
        let applied = rules.apply(&Subject::of("made/up", &group()));
        let ruled = RuledVerdict::of(&group(), Verdict::Kept, applied);
        assert_eq!(ruled.verdict.cause().map(ToString::to_string).as_deref(), Some("rule:no-a"));
        assert_eq!(ruled.flags().collect::<Vec<_>>(), ["look"]);
        let used = rule_use(rules.unused(), &[ruled]);
        let counts = |id: &str| (used[id].matched, used[id].decided);
        assert_eq!([counts("no-a"), counts("look"), counts("other")], [(1, 1), (1, 0), (0, 0)]);
    }
}
