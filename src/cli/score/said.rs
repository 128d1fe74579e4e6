//! What `gistmill score` says of a run: one line of numbers, and, where few were handed in, a line for each. Pure.

use std::path::Path;

use crate::family::gistify::{Summary, summarize};
use crate::record::flag::NO_OTHER_INPUT;
use crate::referee::scored::{ENTERS_FEW_FUNCTIONS, Scored, spelled};
use crate::referee::write::Report;
use crate::score::{Mean, Ratio};
use crate::terminal;
use crate::text::count;

/// Submissions of a run up to which each has a line.
const FEW: usize = 20;

/// The lines of a run whose tables are in `folder`. Instances that `is_absent` says have no submission count in the numbers
/// where `all` do; the tables have them in any case.
pub(super) fn lines(
    (report, folder): (&Report, &Path),
    scored: &[Scored<'_>],
    is_absent: &dyn Fn(&str) -> bool,
    all: bool,
) -> Vec<String> {
    let present: Vec<&Scored<'_>> =
        scored.iter().filter(|one| !is_absent(one.instance.instance_id.as_str())).collect();
    let (summary, absent) = match (report.absent, all) {
        (0, _) => (report.all.clone(), String::new()),
        (absent, true) => (report.all.clone(), format!("; absent {absent}")),
        (absent, false) => (
            summarize(present.iter().map(|one| &one.judged.row)),
            format!(
                "; {absent} of {} instances have no submission and are left out here (--all counts them as failures)",
                scored.len()
            ),
        ),
    };
    let mut lines = vec![headline(&report.run, &summary) + &absent];
    if report.right_without_other_input > 0 {
        let right = present.iter().filter(|one| one.judged.verdict.fidelity == Some(true)).count();
        let few = match report.enters_few_functions {
            0 => String::new(),
            few => format!(
                "; {few} of these {} at most half of the functions that it calls (flag {ENTERS_FEW_FUNCTIONS})",
                if few == 1 { "runs" } else { "run" }
            ),
        };
        lines.push(format!(
            "  {} of {} may be a constant: no other input of the test shows something else (flag {NO_OTHER_INPUT}){few}",
            report.right_without_other_input,
            count(right, "right answer"),
        ));
    }
    if present.len() <= FEW {
        lines.extend(present.iter().map(|one| format!("  {}", of_one(one))));
        if present.iter().any(|one| one.judged.verdict.fidelity != Some(true)) {
            lines.push(format!("  why: {}", folder.join("evidence").join("<instance>.json").display()));
        }
    }
    lines.iter().map(|line| terminal::one_line(line).into_owned()).collect()
}

fn headline(run: &str, all: &Summary) -> String {
    let percent = |mean: Mean| {
        mean.mean.map_or_else(|| "-".to_owned(), |rate| format!("{:.1} % (n = {})", 100.0 * rate, mean.n))
    };
    let classes = all.classes.iter().filter(|class| class.n > 0);
    let classes: Vec<String> =
        classes.filter_map(|class| Some(format!("{} {}", spelled(&class.class)?, class.n))).collect();
    let failures =
        if classes.is_empty() { String::new() } else { format!("; failures: {}", classes.join(", ")) };
    let lost = if all.lost > 0 { format!("; lost {}", all.lost) } else { String::new() };
    format!(
        "{run}: fidelity {}, line execution {}, line existence {}, test F1 {}{failures}{lost}",
        percent(all.fidelity),
        percent(all.line_execution),
        percent(all.line_existence),
        percent(all.test_f1)
    )
}

/// The outcome of one submission, with its rates.
fn of_one(one: &Scored<'_>) -> String {
    let (verdict, row) = (&one.judged.verdict, &one.judged.row);
    let outcome = match verdict.fidelity {
        Some(true) => [&["right"][..], &one.flags()].concat().join(", "),
        None => "lost".to_owned(),
        Some(false) => {
            let words = [verdict.class.as_ref().and_then(spelled), verdict.detail.as_ref().and_then(spelled)];
            let violations = verdict.violations.iter().filter_map(spelled);
            let mut said: Vec<String> = words.into_iter().flatten().collect();
            // The first is the detail already.
            let others: Vec<String> = violations.filter(|one| !said.contains(one)).collect();
            said.extend(others);
            said.join(", ")
        }
    };
    let percent = |ratio: Option<Ratio>| {
        ratio.and_then(Ratio::rate).map_or_else(|| "-".to_owned(), |rate| format!("{:.0} %", 100.0 * rate))
    };
    format!(
        "{}: {outcome}; line execution {}, line existence {}, test F1 {}",
        one.instance.instance_id,
        percent(row.execution),
        percent(row.existence),
        row.test_f1.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}"))
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::family::gistify::{Detail, ErrorClass, Verdict, Violation};
    use crate::referee::gistify::judged::Judged;
    use crate::referee::write::Rules;
    use crate::testing::made_up::MadeUp;

    #[test]
    fn what_was_not_handed_in_is_left_out_and_few_submissions_have_a_line_each() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("made-up");
        crate::testing::write(&directory, &MadeUp::new(&[12]).input()).unwrap();
        let instances = crate::dataset::Dataset::open(&directory).unwrap().instances().unwrap();
        let nothing = Value::Null;
        let scored: Vec<Scored<'_>> = instances
            .iter()
            .enumerate()
            .map(|(at, instance)| {
                let judged = if at == 0 { right() } else { Judged::empty(None) };
                Scored { instance, run: "one", meta: &nothing, run_meta: &nothing, troubles: &[], judged }
            })
            .collect();
        let rules = Rules { variants: scored.len(), planted_failure: 0, own_run: 0 };
        let all: Vec<&Scored<'_>> = scored.iter().collect();
        let report = Report::new("one", &nothing, (scored.len() - 1, rules), &all);
        let first = instances[0].instance_id.as_str();
        let said = |all| lines((&report, Path::new("scores/one")), &scored, &|id| id != first, all);
        let some = said(false);
        assert_eq!(some.len(), 3, "{some:?}");
        assert!(some[0].starts_with("one: fidelity 100.0 % (n = 1), "), "{some:?}");
        let words = format!("; {} of {} instances have no submission", scored.len() - 1, scored.len());
        assert!(some[0].contains(&words), "{some:?}");
        assert!(some[1].starts_with("  1 of 1 right answer may be a constant: "), "{some:?}");
        assert_eq!(some[2], format!("  {first}: right; line execution 75 %, line existence -, test F1 1.00"));
        let whole = said(true);
        assert!(whole[0].contains(&format!("; absent {}", scored.len() - 1)), "{whole:?}");
        assert!(!whole[0].contains("left out"), "{whole:?}");
    }

    #[test]
    fn right_answers_that_may_be_constants_are_counted_where_a_constant_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("made-up");
        crate::testing::write(&directory, &MadeUp::new(&[12]).input()).unwrap();
        let mut instances = crate::dataset::Dataset::open(&directory).unwrap().instances().unwrap();
        instances.truncate(3);
        for (at, one) in instances.iter_mut().enumerate() {
            one.flags = if at == 2 { Vec::new() } else { vec![NO_OTHER_INPUT.to_owned()] };
        }
        let nothing = Value::Null;
        let of = |(at, instance)| {
            let mut judged = right();
            judged.row.trace_recall = Some(Ratio { part: 1 + u32::from(at == 0), whole: 2 });
            Scored { instance, run: "one", meta: &nothing, run_meta: &nothing, troubles: &[], judged }
        };
        let scored: Vec<Scored<'_>> = instances.iter().enumerate().map(of).collect();
        let flags: Vec<_> = scored.iter().map(Scored::flags).collect();
        assert_eq!(
            flags,
            [vec![], vec![ENTERS_FEW_FUNCTIONS], vec![]],
            "half is few; variants tell the third"
        );
        let rules = Rules { variants: 3, planted_failure: 0, own_run: 0 };
        let all: Vec<&Scored<'_>> = scored.iter().collect();
        let report = Report::new("one", &nothing, (0, rules), &all);
        let said = lines((&report, Path::new("scores/one")), &scored, &|_| false, false);
        assert!(
            said[1].starts_with("  2 of 3 right answers may be a constant: ")
                && said[1].contains("; 1 of these runs at most"),
            "{said:?}"
        );
        assert!(said[3].contains(": right, enters-few-functions; "), "{said:?}");
    }

    #[test]
    fn a_violation_is_said_once() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("made-up");
        crate::testing::write(&directory, &MadeUp::new(&[12]).input()).unwrap();
        let instances = crate::dataset::Dataset::open(&directory).unwrap().instances().unwrap();
        let nothing = Value::Null;
        let mut judged = right();
        judged.verdict = Verdict {
            fidelity: Some(false),
            behaves: None,
            class: Some(ErrorClass::Violation),
            detail: Some(Detail::HiddenCode),
            violations: vec![Violation::HiddenCode, Violation::ShadowsName],
        };
        let run_meta = &nothing;
        let one =
            Scored { instance: &instances[0], run: "one", meta: &nothing, run_meta, troubles: &[], judged };
        let said = of_one(&one);
        assert!(said.contains(": violation, hidden-code, shadows-name; "), "{said}");
        assert!(crate::referee::write::evidence_of(&one).get("output").is_none(), "nothing was printed");
        let mut one = one;
        one.judged.output = "said".to_owned();
        assert_eq!(crate::referee::write::evidence_of(&one)["output"], "said");
    }

    fn right() -> Judged {
        let mut judged = Judged::empty(Some(b"x = 1"));
        judged.verdict.fidelity = Some(true);
        judged.row.fidelity = Some(true);
        judged.row.execution = Some(Ratio { part: 3, whole: 4 });
        judged.row.existence = None;
        judged.row.test_f1 = Some(1.0);
        judged
    }
}
