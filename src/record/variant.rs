//! Edited texts of an original test, or other input of a command, with what the original repository shows under each of
//! them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::entry::{Entry, Stdin};
use super::outcome::{CaseResult, Outcome};
use super::spelling::spelling;

/// Raised when variants mean something else to whoever judges by them.
pub const RULES: &str = "variants-1";

spelling! {
    /// How a test is edited.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum VariantKind {
        /// An assertion asks for the contrary.
        NegatedAssert "negated-assert",
        /// A value that is asked for is another one.
        OtherExpected "other-expected",
        /// Another exception is asked for.
        OtherRaises "other-raises",
        /// The test raises an exception by itself.
        RaiseAt "raise-at",
        /// A value that is handed over is another one, here or wherever the test has it.
        OtherInput "other-input",
        /// The same test in other words.
        Rephrased "rephrased",
        /// An argument of a command is another one.
        OtherArgument "other-argument",
        /// The standard input of a command is another one.
        OtherStdin "other-stdin",
        /// A file that a command reads says something else.
        OtherFile "other-file",
    }
}

/// An edited test, or other input of a command, and what every run of it in the original repository showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    pub kind: VariantKind,
    /// Line of the test's file at which it is edited, 1-based.
    pub line: u32,
    /// What takes the place of the lines of the test's definition, decorators included.
    pub source: String,
    /// By case, in the order in which they ran.
    pub cases: Vec<VariantCase>,
    /// Of a command, what it is given; then there is no text of a test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<Variation>,
    /// Of a test: whether an answer that does not depend on what the test hands over is wrong here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refutes_constant: bool,
}

/// Other input of a command, with what the repository shows for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variation {
    #[serde(flatten)]
    pub given: Given,
    /// Its one case.
    pub shows: CaseResult,
}

/// All that a command is given and that may be something else.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Given {
    pub arguments: Vec<String>,
    /// What standard input has; none where that is not another text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Files of the tree that say something else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl Given {
    /// A command with this input in the place of its own.
    #[must_use]
    pub fn to(&self, entry: &Entry) -> Entry {
        Entry {
            command: entry.command.with_arguments(self.arguments.clone()),
            stdin: self.stdin.clone().map(Stdin::Text).or_else(|| entry.stdin.clone()),
            given: self.files.clone(),
            ..entry.clone()
        }
    }
}

/// What a case shows under a variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantCase {
    /// The part of the node ID after the file.
    pub case: String,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    /// What the edit itself says, where pytest's explanation of the case has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Variant {
    /// What is expected, as results of cases.
    pub fn golden(&self) -> Vec<CaseResult> {
        if let Some(variation) = &self.variation {
            return vec![variation.shows.clone()];
        }
        let case = |case: &VariantCase| CaseResult {
            case_id: format!("::{}", case.case),
            outcome: case.outcome,
            exception: case.exception.clone(),
            stdout: String::new(),
            stderr: String::new(),
            message: case.message.clone().unwrap_or_default(),
            replaced: std::collections::BTreeMap::new(),
            duration_ms: 0.0,
            command: None,
        };
        self.cases.iter().map(case).collect()
    }
}
