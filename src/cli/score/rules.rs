//! By what the instances of a dataset are judged, as far as its hidden part is at hand.

use crate::cli::restored::Restored;
use crate::error::{Error, Result};
use crate::record::flag::CONSTANT;
use crate::record::instance::Instance;
use crate::referee::write::Rules;
use crate::terminal;
use crate::text::count;

/// What shows that a submission is not the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Edited texts of the test, or other input of the command.
    Variants,
    /// A failure that is planted in the test, alone.
    PlantedFailure,
    /// The command's own run, alone: no other input shows something else.
    OwnRun,
    /// Nothing that is at hand.
    Nothing,
}

impl By {
    fn of(is_test: bool, flags: &[String], has_variants: bool) -> Self {
        match (has_variants, is_test) {
            (true, _) => By::Variants,
            (false, true) => By::PlantedFailure,
            (false, false) if flags.iter().any(|flag| flag == CONSTANT) => By::OwnRun,
            (false, false) => By::Nothing,
        }
    }
}

/// By which rules instances are judged; says where it is not by all of them, and leaves out what cannot be judged.
///
/// # Errors
/// Usage errors: nothing is left, or a command of a dataset that does not say all of it.
pub(in crate::cli) fn rules(restored: &mut Restored) -> Result<Rules> {
    refuse_outdated(&restored.instances)?;
    let all = restored.instances.len();
    let by =
        |restored: &Restored, one: &Instance| By::of(one.is_test(), &one.flags, restored.has_variants(one));
    let is_hidden = restored
        .instances
        .iter()
        .any(|one| one.variants.is_some_and(|variants| variants > 0) && !restored.has_variants(one));
    let (why, hint) = if is_hidden {
        ("hidden/ is missing", "name the folder `hidden` of the dataset's build with --hidden")
    } else {
        ("the dataset has no variants of them", "build the dataset again with this gistmill")
    };
    restored.retain(|restored, one| by(restored, one) != By::Nothing);
    let left_out = all - restored.instances.len();
    if left_out > 0 {
        let words = format!(
            "{left_out} of {} left out: a command cannot be judged without other input, and {why}",
            count(all, "instance")
        );
        if left_out == all {
            return Err(Error::usage(words).with_hint(hint));
        }
        terminal::warn_with_hint(&words, hint);
    }
    let number = |wanted| restored.instances.iter().filter(|one| by(restored, one) == wanted).count();
    let rules = Rules {
        variants: number(By::Variants),
        planted_failure: number(By::PlantedFailure),
        own_run: number(By::OwnRun),
    };
    if rules.planted_failure > 0 {
        terminal::warn(&format!(
            "{} of {} judged by the old rules, under which a planted failure alone shows what is not the original: {why}\n  \
             hint: {hint}",
            rules.planted_failure,
            count(all, "instance")
        ));
    }
    if rules.own_run > 0 {
        terminal::warn(&format!(
            "{} of {} judged by the command's own run alone, where a recorded answer is right: no other input shows something \
             else (flag {CONSTANT})",
            rules.own_run,
            count(all, "instance")
        ));
    }
    Ok(rules)
}

/// Refuses commands of which the dataset does not say all.
///
/// # Errors
/// A usage error that names the first.
pub(super) fn refuse_outdated(instances: &[Instance]) -> Result<()> {
    let all = || instances.iter().try_for_each(Instance::check_command);
    all().map_err(|why| Error::usage(why).with_hint("build the dataset again with this gistmill"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_other_input_is_judged_only_where_there_can_be_none() {
        let constant = [CONSTANT.to_owned()];
        assert_eq!(By::of(true, &[], true), By::Variants);
        assert_eq!(By::of(false, &constant, true), By::Variants);
        assert_eq!(By::of(true, &[], false), By::PlantedFailure);
        assert_eq!(By::of(false, &constant, false), By::OwnRun);
        assert_eq!(By::of(false, &["reads-tree-data".to_owned()], false), By::Nothing);
    }
}
