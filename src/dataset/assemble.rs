//! Repository records in the order of the dataset, and the instances that come of them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::DatasetInput;
use crate::error::{Error, Result};
use crate::family::tier::{Difficulty, flake_bound, hard_subset, tiers};
use crate::record::evidence::{GroupEvidence, RepositoryEvidence};
use crate::record::id::InstanceId;
use crate::record::instance::{Contribution, Instance, Tier};
use crate::record::outcome::Attempt;
use crate::record::trace::Traced;
use crate::record::witness::{Witness, WitnessColumns};
use crate::record::world::World;

/// One repository with its groups, those that could not be collected included, by group id.
#[derive(Debug)]
pub struct Repository<'a> {
    pub record: &'a RepositoryEvidence,
    published: &'a BTreeSet<InstanceId>,
    pub witnesses: &'a BTreeMap<InstanceId, Witness>,
    pub groups: Vec<&'a GroupEvidence>,
}

/// Everything in the order in which it is written.
#[derive(Debug)]
pub struct Assembled<'a> {
    /// By slug.
    pub repositories: Vec<Repository<'a>>,
    /// By slug, then group id.
    pub instances: Vec<Instance>,
    /// Place of each instance in `instances`.
    pub by_id: BTreeMap<InstanceId, usize>,
}

impl<'a> Assembled<'a> {
    /// Orders the records and computes tiers and hard subset over the published groups.
    ///
    /// # Errors
    /// When the records contradict each other or the contract.
    pub fn new(dataset: &DatasetInput<'a>) -> Result<Self> {
        let mut repositories: Vec<_> = dataset.repositories.iter().map(repository).collect();
        repositories.sort_by_key(|repository| &repository.record.pinned.slug);
        refuse_twins(&repositories)?;
        let mut instances = Vec::new();
        for repository in &repositories {
            for group in
                repository.groups.iter().filter(|one| repository.published.contains(&one.instance_id))
            {
                instances.push(repository.instance(group)?);
            }
        }
        rate(&mut instances, dataset);
        let by_id = instances.iter().enumerate().map(|(at, one)| (one.instance_id.clone(), at)).collect();
        Ok(Assembled { repositories, instances, by_id })
    }

    /// The instance of a group, when it is published.
    pub fn instance_of(&self, group: &GroupEvidence) -> Option<&Instance> {
        let at = self.by_id.get(&group.instance_id)?;
        Some(&self.instances[*at])
    }
}

impl Repository<'_> {
    /// The instance of a published group.
    fn instance(&self, group: &GroupEvidence) -> Result<Instance> {
        let witness = self.witnesses.get(&group.instance_id).map(|witness| witness.columns.clone());
        Ok(Instance { witness: witness.unwrap_or_default(), ..instance(self.record, group)? })
    }
}

/// The instances that a repository contributes, by group id; what follows from the whole dataset is not set.
///
/// # Errors
/// When its records contradict each other.
pub fn instances_of(contribution: &Contribution) -> Result<Vec<Instance>> {
    let repository = repository(contribution);
    let published = repository.groups.iter().filter(|one| repository.published.contains(&one.instance_id));
    published.map(|group| repository.instance(group)).collect()
}

fn repository(contribution: &Contribution) -> Repository<'_> {
    let mut groups: Vec<&GroupEvidence> = contribution.evidence.groups.iter().collect();
    groups.sort_by(|a, b| a.group.group_id.cmp(&b.group.group_id));
    let Contribution { evidence, published, witnesses } = contribution;
    Repository { record: evidence, published, witnesses, groups }
}

fn refuse_twins(repositories: &[Repository<'_>]) -> Result<()> {
    for pair in repositories.windows(2) {
        if pair[0].record.pinned.slug == pair[1].record.pinned.slug {
            return Err(Error::internal(format!("{} is in the dataset twice", pair[0].record.pinned.slug)));
        }
    }
    for repository in repositories {
        for pair in repository.groups.windows(2) {
            if pair[0].group.group_id == pair[1].group.group_id {
                return Err(contradiction(pair[0], "is there twice"));
            }
        }
    }
    Ok(())
}

fn contradiction(group: &GroupEvidence, what: &str) -> Error {
    Error::internal(format!("{}: {} {what}", group.slug, group.group.group_id))
}

/// The instance of a published group; tier and hard axes are set later, over the whole dataset.
fn instance(record: &RepositoryEvidence, group: &GroupEvidence) -> Result<Instance> {
    let (traced, package) = checked_trace(group)?;
    let pinned = &record.pinned;
    let files = traced.totals.files.clone();
    Ok(Instance {
        instance_id: group.instance_id.clone(),
        slug: pinned.slug.clone(),
        commit: pinned.commit.clone(),
        source: pinned.origin.describe(),
        license: pinned.license.clone(),
        python: record.built.python.clone(),
        group_id: group.group.group_id.clone(),
        test_file: group.group.file.clone(),
        test_class: test_class(group),
        test_function: group.group.function.clone(),
        entry_command: group.group.entry_command(),
        case_ids: group.group.cases.iter().map(|case| case.case_id.clone()).collect(),
        n_cases: count(group.group.cases.len()),
        trace_length: traced.totals.trace_length,
        trace_length_package: package,
        trace_length_total: traced.total_calls,
        child_calls: traced.child_calls,
        unique_files: count(files.len()),
        unique_functions: traced.totals.unique_functions,
        executed_lines: traced.totals.executed_lines,
        import_calls: traced.import_calls,
        import_files: traced.import_files.clone(),
        files,
        trace_stable: traced.stable,
        tier: Tier::Easy,
        hard_axes: Vec::new(),
        attempts: group.agreeing,
        flake_bound: flake_bound(group.agreeing),
        worlds: worlds(&group.attempts),
        duration_ms: None,
        environment: format!("environments/{}", pinned.slug.file_name()),
        lock_sha256: record.built.lock_sha256.clone(),
        image: record.image.as_ref().map(|image| image.tag.clone()),
        image_id: record.image.as_ref().map(|image| image.id.clone()),
        code_sha256: traced.code_sha256.clone(),
        flags: group.flags(),
        data_files: group.on_trial.data_files.clone(),
        test_defined_in: group.on_trial.defined_in.clone(),
        witness: WitnessColumns::default(),
    })
}

/// The trace of a published group and its calls outside the tests, once everything about the group makes sense.
fn checked_trace(group: &GroupEvidence) -> Result<(&Traced, u64)> {
    let (Some(traced), Some(package)) = (&group.traced, group.trace_length_package) else {
        return Err(contradiction(group, "is published without a trace"));
    };
    let length = traced.totals.trace_length;
    let problem = if !group.verdict.is_kept() {
        "is published, but not kept"
    } else if group.group.cases.is_empty() {
        "is published without a case"
    } else if group.agreeing == 0 {
        "is published without an agreeing attempt"
    } else if length == 0 {
        "is published with an empty trace"
    } else if package > length || length > traced.total_calls {
        "has more calls in a part than in the whole"
    } else {
        return Ok((traced, package));
    };
    Err(contradiction(group, problem))
}

/// Functions with at least one call, in order of first call.
pub fn called(traced: &Traced) -> impl Iterator<Item = &crate::record::trace::FunctionCalls> {
    traced.functions.iter().filter(|function| function.calls > 0)
}

/// Class chain joined with `::`.
pub fn test_class(group: &GroupEvidence) -> Option<String> {
    (!group.group.classes.is_empty()).then(|| group.group.classes.join("::"))
}

/// Names of the worlds, `base` first and the others by name, so that the order of attempts does not matter.
pub fn worlds(attempts: &[Attempt]) -> Vec<String> {
    let worlds: BTreeSet<&World> = attempts.iter().map(|attempt| &attempt.world).collect();
    let mut names: Vec<(bool, String)> =
        worlds.into_iter().map(|world| (*world != World::Base, world.to_string())).collect();
    names.sort_unstable();
    names.into_iter().map(|(_, name)| name).collect()
}

fn count(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn rate(instances: &mut [Instance], dataset: &DatasetInput<'_>) {
    let set: Vec<_> = instances.iter().map(|one| (&one.instance_id, difficulty(one))).collect();
    let tiers = tiers(&set.iter().map(|one| one.1).collect::<Vec<_>>(), &dataset.config.tier);
    let hard_axes = hard_subset(&set, dataset.config.dataset.hard_per_axis as usize);
    for ((instance, tier), axes) in instances.iter_mut().zip(tiers).zip(hard_axes) {
        instance.tier = tier;
        instance.hard_axes = axes;
    }
}

/// The place of an instance on the difficulty axes.
pub fn difficulty(instance: &Instance) -> Difficulty {
    Difficulty { trace_length: instance.trace_length, unique_files: u64::from(instance.unique_files) }
}
