//! Settings that later rooms take from the configuration.

use std::time::Duration;

use serde::Serialize;

use super::spelling::spelling;

/// `[tier]`: percentile ranks from which an instance is medium or hard.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierBounds {
    pub medium: f64,
    pub hard: f64,
}

/// How long an attempt may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub case: Duration,
    pub group: Duration,
}

impl Timeouts {
    /// None of them longer than this.
    #[must_use]
    pub fn at_most(self, limit: Duration) -> Self {
        Timeouts { case: self.case.min(limit), group: self.group.min(limit) }
    }
}

/// `[limits]` of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Address space per process in bytes; 0 = unlimited.
    pub memory: u64,
    pub processes: u64,
    /// Largest file a test may write, in bytes.
    pub file_size: u64,
    /// Captured output kept per case and stream, in bytes.
    pub output: u64,
}

/// Folders of every machine in which tests may write: each attempt has them empty.
pub const EMPTIED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

spelling! {
    /// Which backend runs a repository.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum BackendKind, ALL {
        Local "local",
        Docker "docker",
    }
}
