//! How a rule was used in a build.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule in numbers: groups that could be collected, each counted once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleUse {
    /// `flag`, `drop` or `keep`.
    pub action: String,
    /// Groups for which all of its conditions held.
    pub matched: u64,
    /// Groups whose verdict is what it is because of this rule. A rule that flags decides none.
    pub decided: u64,
}

impl RuleUse {
    /// A rule that was not used yet.
    pub fn unused(action: &str) -> Self {
        RuleUse { action: action.to_owned(), matched: 0, decided: 0 }
    }
}
