//! What is proved about the tests of a repository, whatever task is made of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::collected::{Collected, Group};
use super::environment::{Built, ImageName};
use super::host::HostFacts;
use super::id::{InstanceId, RepoSlug};
use super::outcome::{Attempt, CaseResult};
use super::rule::RuleUse;
use super::source::Pinned;
use super::trace::Traced;
use super::verdict::Verdict;

/// A group with all that was found out about it: the row behind `groups`, `cases`, `attempts` and `traces`.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupEvidence {
    pub slug: RepoSlug,
    pub instance_id: InstanceId,
    pub group: Group,
    pub verdict: Verdict,
    /// Every attempt, in order. May be empty for what could not be collected.
    pub attempts: Vec<Attempt>,
    /// Attempts that agree with the golden one; 0 when dropped.
    pub agreeing: u32,
    pub traced: Option<Traced>,
    /// Calls outside the tests, where traced.
    pub trace_length_package: Option<u64>,
    /// Outcome, exception and normalized output that every base attempt showed; empty when they differ.
    pub golden: Vec<CaseResult>,
    pub on_trial: OnTrial,
}

/// What the referee found out on the original; nothing where it was not tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OnTrial {
    pub flags: Vec<String>,
    /// Files of the tree, other than code, that its cases open.
    pub data_files: Vec<String>,
    /// `file::Class::function` of the test's definition, where that is another file.
    pub defined_in: Option<String>,
}

impl GroupEvidence {
    /// What is special about it: those of the group, and what the referee found out.
    pub fn flags(&self) -> Vec<String> {
        [&self.group.flags[..], &self.on_trial.flags].concat()
    }
}

/// All that is proved about the tests of one repository.
#[derive(Debug, Clone)]
pub struct RepositoryEvidence {
    pub pinned: Pinned,
    pub built: Built,
    pub collected: Collected,
    pub groups: Vec<GroupEvidence>,
    pub parity: Parity,
    /// How often each rule matched and decided, by id.
    pub rules: BTreeMap<String, RuleUse>,
    pub backend: String,
    /// The image that its tests ran in, where they ran in one.
    pub image: Option<ImageName>,
    /// Where that was proved.
    pub host: HostFacts,
}

/// Agreement between the fork tree and cold runs of the literal entry command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parity {
    /// Groups with at least one cold run.
    pub compared: usize,
    /// Groups whose outcomes differ, with the difference in words.
    pub differing: Vec<ParityDifference>,
}

/// One group whose cold run disagrees with the fork tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParityDifference {
    pub group_id: String,
    pub fork: String,
    pub cold: String,
}
