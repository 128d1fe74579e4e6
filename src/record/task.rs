//! What an agent is given and how it is judged, without a word of any harness.

use std::time::Duration;

use super::id::{InstanceId, RepoSlug};
use super::patch::Patch;

/// One task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: InstanceId,
    /// The one spelling of its family.
    pub family: &'static str,
    pub slug: RepoSlug,
    pub commit: String,
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
    /// Node IDs of the cases that are judged.
    pub cases: Vec<String>,
    /// What a run of that command may take.
    pub limit: Duration,
}
