//! How a process of the runner ended, and what it reached for until then.

use serde::{Deserialize, Serialize};

use crate::record::outcome::TimeScope;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ProcessExit {
    Finished,
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    TimedOut {
        scope: TimeScope,
        index: Option<i64>,
    },
    /// What it reported cannot be used; never sent.
    #[serde(skip)]
    Unusable,
}

/// What code reached for, as far as that is noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// Watched modules that were asked for.
    pub imports: Vec<ImportAttempt>,
    /// Files and folders of the tree that were opened, code aside.
    pub opened: Vec<String>,
}

/// A watched module was asked for, whether or not that was caught.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ImportAttempt {
    pub module: String,
    /// File of the code that asked, outside the import system.
    pub file: String,
    /// 1-based.
    pub line: u32,
    /// The watched module whose code had the asking code run, conftests aside.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
}
