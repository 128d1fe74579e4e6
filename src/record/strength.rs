//! What a dataset says of the strength of a test.

use serde::{Deserialize, Serialize};

/// Mutants of an instance, and what its cases notice: the columns of `instances`. All are empty where it was not measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Strength {
    /// Mutants of the code that its cases run.
    pub mutants: Option<u32>,
    /// Share of them after which a case does not pass, from 0 to 1.
    pub mutation_score: Option<f64>,
    /// Of the statements that were taken away: the share without which a case does not pass, from 0 to 1.
    pub needed_statements: Option<f64>,
    /// Mutants after which all cases pass: file, line and change.
    pub surviving_mutants: Option<Vec<String>>,
}
