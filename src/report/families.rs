//! Causes by family: what one colour of the page stands for.

use serde::Serialize;

use crate::record::spelling::spelling;
use crate::record::verdict::Cause;

spelling! {
    /// A family of causes, in the order in which the page lists them. The spelling is that of its addresses and classes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub(super) enum Family, ALL {
        Environment "environment",
        Nondeterministic "nondeterministic",
        NotRunnable "not-runnable",
        NoCode "no-code",
        Rule "rule",
        /// Causes of a later version.
        Other "other",
    }
}

impl Family {
    /// The family of a cause as the dataset spells it.
    pub(super) fn of(cause: &str) -> Self {
        let Ok(cause) = Cause::try_from(cause.to_owned()) else { return Family::Other };
        match cause {
            Cause::DependsOn(_)
            | Cause::DependsOnProgramName
            | Cause::NeedsNetwork
            | Cause::NeedsTerminal => Family::Environment,
            Cause::NondeterministicOutcome | Cause::NondeterministicOutput => Family::Nondeterministic,
            Cause::CollectionError
            | Cause::UnsupportedItem
            | Cause::Fails
            | Cause::Errors
            | Cause::Skipped
            | Cause::XFails
            | Cause::TimesOut
            | Cause::Crashes
            | Cause::WaitsForInput
            | Cause::RunsForever
            | Cause::ExitsWith => Family::NotRunnable,
            Cause::NoRepositoryCode | Cause::DoesNotReach | Cause::PrintsHelpOnly => Family::NoCode,
            Cause::Rule(_) => Family::Rule,
        }
    }

    /// For people.
    pub(super) fn label(self) -> &'static str {
        match self {
            Family::Environment => "depends on the environment",
            Family::Nondeterministic => "nondeterministic",
            Family::NotRunnable => "does not run or pass",
            Family::NoCode => "runs no repository code",
            Family::Rule => "dropped by a rule",
            Family::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_family_and_an_unknown_one_is_other() {
        for cause in Cause::named() {
            assert_ne!(Family::of(&cause.to_string()), Family::Other, "{cause}");
        }
        assert_eq!(Family::of("depends-on-clock"), Family::Environment);
        assert_eq!(Family::of("rule:slow-tests"), Family::Rule);
        assert_eq!(Family::of("of-a-later-version"), Family::Other);
    }

    #[test]
    fn a_name_is_spelled_as_it_is_encoded() {
        for family in Family::ALL {
            assert_eq!(serde_json::to_value(family).unwrap(), family.as_str());
        }
    }
}
