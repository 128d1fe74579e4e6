//! Kept, or dropped with one cause and its evidence.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spelling::spelling;

/// Every cause without a parameter, in the order of the contract: variant, spelling, meaning.
macro_rules! causes {
    ($($variant:ident $name:literal $meaning:literal;)+) => {
        /// Why a group is dropped. The spelling is the contract's.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub enum Cause {
            $(#[doc = $meaning] $variant,)+
            /// It differs only when this dimension does.
            DependsOn(Dimension),
            /// Dropped by the rule with this id.
            Rule(String),
        }

        impl Cause {
            const NAMED: &[(Cause, &str)] = &[$((Cause::$variant, $name),)+];

            /// What it means, in words.
            pub fn meaning(&self) -> String {
                match self {
                    $(Cause::$variant => $meaning.to_owned(),)+
                    Cause::DependsOn(dimension) => {
                        format!("differs only when the {} does", dimension.as_str().replace('-', " "))
                    }
                    Cause::Rule(id) => format!("dropped by the rule {id}"),
                }
            }
        }

        impl fmt::Display for Cause {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Cause::$variant => formatter.write_str($name),)+
                    Cause::DependsOn(dimension) => write!(formatter, "depends-on-{}", dimension.as_str()),
                    Cause::Rule(id) => write!(formatter, "rule:{id}"),
                }
            }
        }
    };
}

causes! {
    CollectionError "collection-error" "the file cannot be collected";
    UnsupportedItem "unsupported-item" "not a Python test function";
    Fails "fails" "fails in a test body in every base attempt";
    Errors "errors" "errors in set-up or tear-down in every base attempt";
    Skipped "skipped" "no case passes: all are skipped";
    XFails "xfails" "no case passes: all are expected to fail";
    TimesOut "times-out" "runs over its time limit";
    Crashes "crashes" "the process dies";
    NeedsNetwork "needs-network" "fails offline because of a connection outside the loopback";
    NondeterministicOutcome "nondeterministic-outcome" "outcomes differ between attempts in one world";
    NondeterministicOutput "nondeterministic-output"
        "exception type or output differs between attempts in one world";
    NoRepositoryCode "no-repository-code" "runs no Python function of the repository outside the tests";
    DoesNotReach "does-not-reach" "does not call the file whose tests it is among (`tests_from`)";
    WaitsForInput "waits-for-input" "a command that asks for input which it does not get";
    NeedsTerminal "needs-terminal" "a command that fails without a terminal";
    RunsForever "runs-forever" "a command that does not come to its end in any attempt";
    ExitsWith "exits-with" "a command that leaves with another status than the one that is expected";
    DependsOnProgramName "depends-on-program-name"
        "a command that shows something else when it is run from the file of a submission";
    PrintsHelpOnly "prints-help-only" "a command that prints its help or its version and nothing else";
}

spelling! {
    /// A dimension of a world that a test can depend on.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Dimension, ALL {
        HashSeed "hash-seed",
        TimeZone "time-zone",
        Locale "locale",
        Clock "clock",
        Home "home",
        Terminal "terminal",
        Load "load",
        CheckoutPath "checkout-path",
        WorkingDirectory "working-directory",
        TestFileLocation "test-file-location",
    }
}

impl Cause {
    /// Every cause without a parameter, in the order of the contract.
    pub fn named() -> impl Iterator<Item = Cause> {
        Cause::NAMED.iter().map(|(cause, _)| cause.clone())
    }
}

impl From<Cause> for String {
    fn from(cause: Cause) -> String {
        cause.to_string()
    }
}

impl TryFrom<String> for Cause {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        if let Some((cause, _)) = Cause::NAMED.iter().find(|(_, name)| *name == text) {
            return Ok(cause.clone());
        }
        if let Some(name) = text.strip_prefix("depends-on-")
            && let Some(dimension) = Dimension::ALL.into_iter().find(|dimension| dimension.as_str() == name)
        {
            return Ok(Cause::DependsOn(dimension));
        }
        match text.strip_prefix("rule:") {
            Some(id) if !id.is_empty() => Ok(Cause::Rule(id.to_owned())),
            _ => Err(format!("unknown cause `{text}`")),
        }
    }
}

/// What a person can check: a sentence, where it was seen, and how to see it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// One sentence that says what happened.
    pub summary: String,
    /// Worlds in which it was seen, with the attempt number: `base#0`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
    /// The log or the difference that shows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
    /// A command that shows it again: a replay, for the folder of the configuration, where gistmill's attempts show it; else
    /// the entry command, for the root of the tree.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

/// Kept, or dropped with one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Verdict {
    Kept,
    Dropped { cause: Cause, evidence: Evidence },
}

impl Verdict {
    /// Whether the group may become an instance.
    pub fn is_kept(&self) -> bool {
        matches!(self, Verdict::Kept)
    }

    /// The cause, when dropped.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Verdict::Kept => None,
            Verdict::Dropped { cause, .. } => Some(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_read_back_as_it_is_written() {
        let named = Cause::NAMED.iter().map(|(cause, _)| cause.clone());
        let all = named
            .chain(Dimension::ALL.into_iter().map(Cause::DependsOn))
            .chain([Cause::Rule("slow-tests".into())]);
        for cause in all {
            assert_eq!(Cause::try_from(cause.to_string()), Ok(cause));
        }
    }

    #[test]
    fn unknown_cause_is_refused() {
        for text in ["", "rule:", "depends-on-weather", "flaky"] {
            assert!(Cause::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
