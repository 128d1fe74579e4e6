//! What agents are asked for a refactoring, in each mode.

use crate::error::{Error, Result};
use crate::record::spelling::spelling;
use crate::record::task::Step;

spelling! {
    /// Which description an agent gets.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
    pub enum Track {
        /// Title, summary and reasons, as in an issue
        #[default]
        Instructed "instructed",
        /// One sentence
        Open "open",
    }
}

spelling! {
    /// How an agent goes about it.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
    pub enum Mode {
        /// In one go
        #[default]
        Direct "direct",
        /// One agent writes a plan, and another carries it out
        Plan "plan",
        /// One agent writes five plans, a judge of yours chooses, and another agent carries the one out
        Multiplan "multiplan",
    }
}

/// Where a plan is written, and how many a judge chooses from.
pub const PLAN: &str = "/output/refactoring_plan.md";
pub const PLANS: &str = "/output/refactoring_plans";
pub const PLAN_COUNT: usize = 5;

const DIRECT: &str = "\
# Refactor this repository

The folder `{workdir}` is a git repository with one commit. Change it as described, so that it behaves as before:

{description}

- Do all of it: the code, whatever uses it, and the tests and documentation that name what changes.
- Tests that pass now pass afterwards. Where a test uses something that gets another name or another place, change the test with it;
  do not make it check less.
- Leave nothing of the old structure behind for compatibility, unless the description asks for it.
- What counts is the state of the files in `{workdir}` when you are done. Nothing has to be committed.
";

const PLANNING: &str = "\
# Plan a refactoring of this repository

The folder `{workdir}` is a git repository with one commit. Somebody else will change it as described:

{description}

Read the code, and write a plan for them to `{plan_path}`. They get your plan alone. Say which files change and how, what gets which
name and place, what becomes of the tests, and how to see that behaviour stays as it is. Change nothing in `{workdir}`.
";

const PLANNING_SEVERAL: &str = "\
# Plan a refactoring of this repository in several ways

The folder `{workdir}` is a git repository with one commit. Somebody else will change it as described:

{description}

Read the code, and write exactly {plan_count} plans that differ in what they do, not in words: to `{plan_path}/refactoring_plan0.md` up to
`{plan_path}/refactoring_plan{last_plan}.md`. One of them is chosen, and whoever carries it out gets that plan alone. Each says which files change
and how, what gets which name and place, what becomes of the tests, and how to see that behaviour stays as it is. Change nothing in
`{workdir}`.
";

const CARRYING_OUT: &str = "\
# Refactor this repository

The folder `{workdir}` is a git repository with one commit. `{plan_path}` is a plan for changing it. Read it, and carry it out, so that the
repository behaves as before.

- Do all of it: the code, whatever uses it, and the tests and documentation that name what changes.
- Tests that pass now pass afterwards; do not make them check less.
- What counts is the state of the files in `{workdir}` when you are done. Nothing has to be committed.
";

const CHOOSING: &str = "\
# Choose a plan

A repository is to be refactored as described:

{description}

Below are {plan_count} plans, numbered from 0 to {last_plan}. Choose the one that, carried out, comes nearest to the description: in what changes, in names
and places, and in leaving behaviour as it is.

<!-- put the plans here, each after its number -->

Give reasons in a few sentences, and end with one line: `SELECTED: n`.
";

/// The texts of a mode. The judge of plans gets the instructed description, whatever the track.
///
/// # Errors
/// A usage error where a judge is asked for and its description is missing.
pub fn steps(mode: Mode, workdir: &str, description: &str, instructed: Option<&str>) -> Result<Vec<Step>> {
    let filled = |template: &str, description: &str, plan: &str| {
        let slots = [
            ("workdir", workdir.to_owned()),
            ("description", description.trim().to_owned()),
            ("plan_path", plan.to_owned()),
            ("plan_count", PLAN_COUNT.to_string()),
            ("last_plan", (PLAN_COUNT - 1).to_string()),
        ];
        let slots: Vec<(&str, &str)> = slots.iter().map(|(name, text)| (*name, text.as_str())).collect();
        crate::text::filled(template, &slots)
    };
    let step = |name, text| Step { name, text, is_judge: false };
    let carry_out = || step("carry-out", filled(CARRYING_OUT, "", PLAN));
    Ok(match mode {
        Mode::Direct => vec![step("direct", filled(DIRECT, description, ""))],
        Mode::Plan => vec![step("plan", filled(PLANNING, description, PLAN)), carry_out()],
        Mode::Multiplan => {
            let instructed = instructed.ok_or_else(|| {
                Error::usage("the judge of plans needs the instructed description")
                    .with_hint("add a description.md, or use --mode plan")
            })?;
            let choose = filled(CHOOSING, instructed, PLANS);
            vec![
                step("plans", filled(PLANNING_SEVERAL, description, PLANS)),
                Step { name: "judge", text: choose, is_judge: true },
                carry_out(),
            ]
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_has_its_texts_and_no_slot_is_left() {
        let of = |mode| steps(mode, "/testbed", "Rename `{workdir}`.\n", Some("Whole {text}.")).unwrap();
        let names = |mode| of(mode).iter().map(|step| step.name).collect::<Vec<_>>();
        assert_eq!(names(Mode::Direct), ["direct"]);
        assert_eq!(names(Mode::Plan), ["plan", "carry-out"]);
        assert_eq!(names(Mode::Multiplan), ["plans", "judge", "carry-out"]);
        assert!(of(Mode::Direct)[0].text.contains("\nRename `{workdir}`.\n"), "a description has no slots");
        assert!(of(Mode::Plan)[0].text.contains(PLAN) && of(Mode::Plan)[1].text.contains(PLAN));
        let several = of(Mode::Multiplan);
        assert!(several[0].text.contains("exactly 5") && several[0].text.contains("refactoring_plan4.md"));
        assert!(several[1].is_judge && several[1].text.contains("Whole {text}.\n"));
        assert!(several[1].text.contains("SELECTED: n") && !several[0].text.contains("Whole"));
        assert!(steps(Mode::Multiplan, "/testbed", "x", None).is_err());
    }
}
