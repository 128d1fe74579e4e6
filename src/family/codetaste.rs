//! `CodeTaste`: a refactoring of a repository's own history is described, and done again by an agent.
//!
//! What it is scored by, as pure functions: texts and counts in, numbers out (docs/codetaste.md).

pub mod cheats;
pub mod diff;
pub mod funnel;
pub mod leaks;
pub mod lines;
pub mod matches;
pub mod message;
pub mod prompt;
pub mod registered;
pub mod score;
pub mod submission;
pub mod suite;
pub mod view;
pub mod weakened;

/// The file that an agent hands in, by its name in the authors' layout.
pub const SUBMISSION: &str = "prediction.diff";

#[cfg(test)]
mod tests;
