//! What the steps of a build cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One step, all the times that it was taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Repository (or what is done for all of them) and what was done.
    pub step: String,
    /// Attempts, cold runs or the like that were made; 0 where nothing is counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: u64,
    /// Wall time in seconds, without that of steps inside it.
    pub seconds: f64,
    /// Whether it was done beside other steps: its time is not part of the whole then, and its processor time is in theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// Processor time in seconds, of gistmill and of all processes that ended meanwhile.
    pub processor_seconds: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Wall and processor seconds of all steps that follow one another.
pub fn total(steps: &[Spent]) -> (f64, f64) {
    let wall = steps.iter().filter(|one| !one.beside).map(|one| one.seconds).sum();
    (wall, steps.iter().map(|one| one.processor_seconds).sum())
}
