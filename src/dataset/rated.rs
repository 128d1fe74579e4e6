//! Published instances as tiers, subsets, counts and the card see them: small, so that those of all repositories fit into
//! memory. Pure.

use std::collections::BTreeMap;

use crate::family::tier::{Difficulty, tiers, top_size, top_subset};
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::{Axis, Instance, Tier};
use crate::record::limits::TierBounds;
use crate::subset::{Measure, Member};

/// What an instance is measured by.
#[derive(Debug, Clone, PartialEq)]
pub struct Rated {
    pub instance_id: InstanceId,
    pub slug: RepoSlug,
    pub license: Option<String>,
    /// `pytest`, or the kind of a command.
    pub kind: String,
    pub flags: Vec<String>,
    /// Follows from all instances together, see [`rate`]; so do the axes.
    pub tier: Tier,
    pub hard_axes: Vec<Axis>,
    /// 95 % upper bound of the failure rate.
    pub flake_bound: f64,
    difficulty: Difficulty,
    measures: BTreeMap<Measure, f64>,
}

impl From<&Instance> for Rated {
    fn from(instance: &Instance) -> Self {
        Rated {
            instance_id: instance.instance_id.clone(),
            slug: instance.slug.clone(),
            license: instance.license.clone(),
            kind: instance.kind.clone(),
            flags: instance.flags.clone(),
            tier: instance.tier,
            hard_axes: instance.hard_axes.clone(),
            flake_bound: instance.flake_bound,
            difficulty: Difficulty {
                trace_length: instance.trace_length,
                unique_files: u64::from(instance.unique_files),
            },
            measures: instance.measurements(),
        }
    }
}

impl Member for Rated {
    fn instance_id(&self) -> &InstanceId {
        &self.instance_id
    }

    fn slug(&self) -> &RepoSlug {
        &self.slug
    }

    fn tier(&self) -> Tier {
        self.tier
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn is_top(&self) -> bool {
        !self.hard_axes.is_empty()
    }

    fn measured(&self, measure: Measure) -> Option<f64> {
        self.measures.get(&measure).copied()
    }
}

/// What instances that are read, or not rated yet, are measured by.
pub(crate) fn all_of(instances: &[Instance]) -> Vec<Rated> {
    instances.iter().map(Rated::from).collect()
}

/// What has a tier, and may be among the hardest on an axis.
pub(crate) trait Rate: Member {
    /// Its place on the two axes.
    fn difficulty(&self) -> Difficulty;
    fn set(&mut self, tier: Tier, hard_axes: Vec<Axis>);
}

impl Rate for Rated {
    fn difficulty(&self) -> Difficulty {
        self.difficulty
    }

    fn set(&mut self, tier: Tier, hard_axes: Vec<Axis>) {
        (self.tier, self.hard_axes) = (tier, hard_axes);
    }
}

/// Sets tiers and hard axes, which follow from all instances together.
pub(crate) fn rate(instances: &mut [impl Rate], bounds: &TierBounds, hard_per_axis: u32) {
    let set: Vec<_> = instances.iter().map(|one| (one.instance_id(), one.difficulty())).collect();
    let tiers = tiers(&set.iter().map(|one| one.1).collect::<Vec<_>>(), bounds);
    let hard_axes = top_subset(&set, top_size(hard_per_axis, set.len()));
    for ((instance, tier), axes) in instances.iter_mut().zip(tiers).zip(hard_axes) {
        instance.set(tier, axes);
    }
}
