//! A dataset that was received against what it says of itself: its files, its environments, the outcome and the trace of
//! its instances.

pub(crate) mod files;
pub(crate) mod instances;
pub(crate) mod masked;
pub(crate) mod pairs;
pub(crate) mod tables;

use schemars::JsonSchema;
use serde::Serialize;

use crate::record::family::Family;

/// What a verification found.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Verification {
    pub(crate) dataset: String,
    pub(crate) family: Family,
    pub(crate) version: String,
    /// What this machine has otherwise than the one that built.
    pub(crate) machine: Vec<String>,
    pub(crate) files: Vec<files::FileProblem>,
    pub(crate) tables: tables::Compared,
    /// Why nothing could be run at all.
    pub(crate) refused: Option<String>,
    pub(crate) repositories: Vec<Repository>,
}

/// One repository.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Repository {
    pub(crate) slug: String,
    /// Why its environment cannot be made as it was.
    pub(crate) environment: Option<String>,
    pub(crate) instances: Vec<instances::Verified>,
}

impl Verification {
    /// Whether there is nothing that could be run.
    pub(crate) fn is_empty(&self) -> bool {
        self.repositories.iter().all(|one| one.instances.is_empty() && one.environment.is_none())
    }

    /// Whether all that was looked at is as the dataset says, and something was.
    pub(crate) fn agrees(&self) -> bool {
        let repository = |one: &Repository| {
            one.environment.is_none() && one.instances.iter().all(instances::Verified::agrees)
        };
        !self.is_empty()
            && self.files.is_empty()
            && self.tables.differences.is_empty()
            && self.refused.is_none()
            && self.repositories.iter().all(repository)
    }

    /// Whose fault a difference is, as far as is known.
    pub(crate) fn cause(&self, instance: &instances::Verified) -> &'static str {
        let is_table = |file: &str| file.starts_with("cases.") || file.starts_with("instances.");
        let contradicts = |one: &tables::Difference| one.row == instance.instance_id;
        if self.tables.differences.iter().any(contradicts) {
            "the tables of the dataset contradict each other"
        } else if !instance.tables.is_empty() || self.files.iter().any(|problem| is_table(&problem.file)) {
            "the tables of the dataset were changed"
        } else if !instance.is_steady() {
            "its attempts differ among themselves"
        } else if !self.machine.is_empty() {
            "every attempt here agrees with the others: perhaps this machine (see above)"
        } else {
            "every attempt here agrees with the others, on a machine like the one that built"
        }
    }
}
