//! The funnel in numbers: cases → groups → kept → published, and what was dropped for which cause. Pure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::evidence::GroupEvidence;
use crate::record::instance::Tier;

/// Numbers of one repository, or of several together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub cases: usize,
    pub groups: usize,
    pub kept: usize,
    pub published: usize,
    /// Dropped groups by cause.
    pub dropped: BTreeMap<String, usize>,
    /// Cases that the repository's own options deselect.
    pub deselected: usize,
    pub attempts: usize,
    /// Published instances by tier.
    pub tiers: BTreeMap<String, usize>,
}

impl Counts {
    /// Counts a group; whether it is published is counted with its instance.
    pub fn add(&mut self, group: &GroupEvidence) {
        self.cases += group.group.cases.len();
        self.groups += 1;
        self.attempts += group.attempts.len();
        match group.verdict.cause() {
            None => self.kept += 1,
            Some(cause) => *self.dropped.entry(cause.to_string()).or_default() += 1,
        }
    }

    /// Counts a published instance of this tier.
    pub fn publish(&mut self, tier: Tier) {
        self.published += 1;
        *self.tiers.entry(tier.as_str().to_owned()).or_default() += 1;
    }
}

/// The sum of several counts.
pub fn total<'a>(parts: impl Iterator<Item = &'a Counts>) -> Counts {
    let mut total = Counts::default();
    for part in parts {
        total.cases += part.cases;
        total.groups += part.groups;
        total.kept += part.kept;
        total.published += part.published;
        total.deselected += part.deselected;
        total.attempts += part.attempts;
        add(&mut total.dropped, &part.dropped);
        add(&mut total.tiers, &part.tiers);
    }
    total
}

fn add(sums: &mut BTreeMap<String, usize>, part: &BTreeMap<String, usize>) {
    for (name, number) in part {
        *sums.entry(name.clone()).or_default() += number;
    }
}
