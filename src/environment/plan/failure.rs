//! Why an environment could not be made: this plan's trouble, or everybody's.

use crate::error::{Error, Result};

/// Why a step did not work: this plan's trouble, or everybody's.
#[derive(Debug)]
pub enum StepError {
    /// Another plan may do better.
    Recoverable(Failure),
    /// No plan can do better.
    Fatal(Error),
}

/// A step that failed, and the lines that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub stage: String,
    pub output: String,
    pub hint: &'static str,
    /// Distributions that the index does not have.
    pub unknown: Vec<String>,
    /// Whether a build left what no build leaves, instead of failing.
    pub is_refused: bool,
}

impl Failure {
    /// As the error of the repository.
    pub fn into_error(self) -> Error {
        Error::repository(format!("the environment cannot be built: {} failed", self.stage))
            .with_detail(self.output)
            .with_hint(self.hint)
    }
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        StepError::Fatal(error)
    }
}

impl From<std::io::Error> for StepError {
    fn from(error: std::io::Error) -> Self {
        StepError::Fatal(error.into())
    }
}

impl From<StepError> for Error {
    fn from(trouble: StepError) -> Self {
        match trouble {
            StepError::Recoverable(failure) => failure.into_error(),
            StepError::Fatal(error) => error,
        }
    }
}

pub type StepResult<T> = Result<T, StepError>;
