//! What a dataset says of the witness of an instance.

use serde::{Deserialize, Serialize};

/// What `witness` says where there is one.
pub const MADE: &str = "made";

/// The columns of an instance about its witness; all are empty where none was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WitnessColumns {
    /// `made`, or the cause why there is none.
    pub witness: Option<String>,
    /// SHA-256 of its file.
    pub witness_sha256: Option<String>,
    /// Lines that are not blank.
    pub witness_lines: Option<u64>,
    /// Logical lines, as line existence counts them.
    pub witness_units: Option<u64>,
    /// Files of the tree that its lines come from.
    pub witness_files: Option<u64>,
    pub witness_line_execution: Option<f64>,
    pub witness_line_existence: Option<f64>,
}

impl WitnessColumns {
    /// Whether there is a witness.
    pub fn is_made(&self) -> bool {
        self.witness.as_deref() == Some(MADE)
    }
}

/// What is known of the witness of one instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Witness {
    pub columns: WitnessColumns,
    /// The file; none where there is none.
    pub text: Option<String>,
    /// Why there is none.
    pub evidence: Option<String>,
    /// Variants of the instance that it does not pass, by their place.
    pub dropped_variants: Vec<usize>,
}
