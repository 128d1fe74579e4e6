//! What an agent is given and how it is judged, without a word of any harness.

use std::collections::BTreeMap;
use std::time::Duration;

use super::id::{InstanceId, RepoSlug};
use super::outcome::Outcome;
use super::patch::Patch;

/// Endings of files that are code, or that can hold code: what a submission has to do without.
pub const CODE_ENDINGS: [&str; 22] = [
    "py", "pyi", "pyw", "pyx", "pxd", "pyc", "pyo", "so", "pyd", "ipynb", "pth", "zip", "whl", "egg", "tar",
    "tgz", "gz", "bz2", "xz", "c", "h", "cpp",
];

/// One task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: InstanceId,
    /// The one spelling of its family.
    pub family: &'static str,
    pub slug: RepoSlug,
    pub commit: String,
    /// Version of the release, or the first digits of the commit.
    pub version: String,
    /// RFC 3339 time of the pin.
    pub created_at: String,
    /// What it is about, in one line.
    pub title: String,
    /// Difficulty tier.
    pub tier: &'static str,
    /// SPDX expression of the repository's license, where it is known.
    pub license: Option<String>,
    /// Image that holds the tree and its environment, where one was made.
    pub image: Option<String>,
    /// Where the tree is inside.
    pub workdir: String,
    /// What the agent is told, in Markdown.
    pub instruction: String,
    /// What of the tree the agent does not see.
    pub mask: Patch,
    /// The file that the agent hands in, by its path in the tree.
    pub submission: String,
    /// A solution that is known to be judged right, where there is one.
    pub gold: Option<Patch>,
    /// The command whose behaviour counts.
    pub command: String,
    /// Node ID of what is run of the submission.
    pub test: String,
    /// The cases that are judged.
    pub cases: Vec<JudgedCase>,
    /// Endings of the files that are taken out of the tree before a submission runs in it.
    pub hidden: &'static [&'static str],
    /// Options that pytest gets in its environment.
    pub options: Vec<String>,
    /// Variables that the tests need.
    pub variables: BTreeMap<String, String>,
    /// What a run of that command may take.
    pub limit: Duration,
}

/// A case and how it must end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCase {
    /// Node ID in the submission. `<root>`, `<venv>` and `<tmp>` stand for places of the machine.
    pub name: String,
    pub outcome: Outcome,
}
