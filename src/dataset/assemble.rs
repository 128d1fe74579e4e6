//! Repository records in the order of the dataset, and the instances that come of them. Pure.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::DatasetInput;
use super::counts::Counts;
use super::rated::{Rated, rate};
use crate::error::{Error, Result};
use crate::family::gistify::prompt::Template;
use crate::family::tier::flake_bound;
use crate::record::collected::Case;
use crate::record::entry::{Entry, Stdin};
use crate::record::evidence::{AttemptFacts, GroupEvidence, RepositoryEvidence};
use crate::record::family::{Family, Unit};
use crate::record::flag::{CONSTANT, NO_OTHER_INPUT, NO_VARIANTS, SHOWS_NOTHING};
use crate::record::id::{CommitSha, InstanceId, RepoSlug};
use crate::record::instance::{Contribution, Expected, Head, Instance, TestSource, Tier};
use crate::record::outcome::{CaseResult, Outcome};
use crate::record::prompt::PromptSettings;
use crate::record::source::Origin;
use crate::record::strength::Strength;
use crate::record::trace::{SecondTrace, Traced};
use crate::record::variant::Variant;
use crate::record::witness::{Witness, WitnessColumns};
use crate::record::world::World;

/// Digits of a pin that are taken for a version.
const VERSION_DIGITS: usize = 12;

/// One repository, and what its groups, those that could not be collected included, come to.
#[derive(Debug)]
pub struct Repository<'a> {
    pub(super) family: Family,
    pub record: &'a RepositoryEvidence,
    tests: &'a BTreeMap<InstanceId, TestSource>,
    published: &'a BTreeSet<InstanceId>,
    pub witnesses: &'a BTreeMap<InstanceId, Witness>,
    strengths: &'a BTreeMap<InstanceId, Strength>,
    pub variants: &'a BTreeMap<InstanceId, Vec<Variant>>,
    pub sums: Sums,
}

/// Sums over the groups of a repository.
#[derive(Debug, Default)]
pub struct Sums {
    pub counts: Counts,
    /// What was replaced in golden output, by kind.
    pub replaced: BTreeMap<String, u64>,
    /// Functions that published groups call: the rows of `traces`.
    pub called: usize,
}

/// Everything in the order in which it is written.
#[derive(Debug)]
pub struct Assembled<'a> {
    /// By slug.
    pub repositories: Vec<Repository<'a>>,
    /// By slug, then group id.
    pub instances: Vec<Rated>,
    template: Template,
    settings: &'a PromptSettings,
    passes_code_on: bool,
    /// The kind of its tasks.
    pub(super) family: Family,
}

impl<'a> Assembled<'a> {
    /// The counts of each repository, by slug.
    pub fn counts(&self) -> BTreeMap<RepoSlug, Counts> {
        let counts = |one: &Repository<'_>| (one.record.pinned.slug.clone(), one.sums.counts.clone());
        self.repositories.iter().map(counts).collect()
    }

    /// Orders the records and computes tiers and top subset over the published groups.
    ///
    /// # Errors
    /// When the records contradict each other or the contract.
    pub fn new(dataset: &DatasetInput<'a>) -> Result<Self> {
        let mut repositories: Vec<_> = dataset.repositories.iter().map(repository).collect();
        repositories.sort_by_key(|repository| &repository.record.pinned.slug);
        refuse_twins(&repositories)?;
        let mut instances = Vec::new();
        for repository in &mut repositories {
            let mut before: Option<String> = None;
            for group in repository.record.groups.iter() {
                let group = group?;
                check_order(before.as_deref(), &group)?;
                repository.sums.add(&group);
                if repository.publishes(&group.instance_id) {
                    instances.push(Rated::from(&repository.instance(&group)?));
                    let functions = group.traced.iter().flat_map(|traced| &traced.functions);
                    repository.sums.called += functions.filter(|one| one.is_called()).count();
                }
                before = Some(group.group.group_id);
            }
        }
        rate(&mut instances, &dataset.config.tier, dataset.config.dataset.hard_per_axis);
        for repository in &mut repositories {
            let own = instances.iter().filter(|one| one.slug == repository.record.pinned.slug);
            own.for_each(|one| repository.sums.counts.publish(one.tier));
        }
        Ok(Assembled {
            repositories,
            instances,
            template: Template::built_in()?,
            settings: &dataset.config.prompt,
            passes_code_on: dataset.passes_code_on,
            family: dataset.config.dataset.family,
        })
    }

    /// An instance with all of its columns, made of its group.
    ///
    /// # Errors
    /// When its records contradict each other, or the template does not fit it.
    pub(super) fn whole(
        &self,
        repository: &Repository<'_>,
        group: &GroupEvidence,
        rated: &Rated,
    ) -> Result<Instance> {
        let instance = repository.instance(group)?;
        let mut instance = Instance { tier: rated.tier, hard_axes: rated.hard_axes.clone(), ..instance };
        instance.prompt =
            instance.family.prompt(&self.template, self.settings, &BTreeSet::new(), &instance)?;
        if !self.passes_code_on {
            instance.test_source = None;
        }
        Ok(instance)
    }

    /// All instances with all of their columns.
    ///
    /// # Errors
    /// As for [`Assembled::whole`].
    #[cfg(test)]
    pub(crate) fn all(&self) -> Result<Vec<Instance>> {
        let groups =
            self.repositories.iter().flat_map(|one| one.record.groups.iter().map(move |group| (one, group)));
        let mut rated = self.instances.iter().peekable();
        let mut all = Vec::new();
        for (repository, group) in groups {
            let group = group?;
            if let Some(rated) = rated.next_if(|next| next.instance_id == group.instance_id) {
                all.push(self.whole(repository, &group, rated)?);
            }
        }
        Ok(all)
    }
}

impl Sums {
    fn add(&mut self, group: &GroupEvidence) {
        self.counts.add(group);
        for (kind, number) in group.golden.iter().flat_map(|case| &case.replaced) {
            *self.replaced.entry(kind.clone()).or_default() += u64::from(*number);
        }
    }
}

impl Repository<'_> {
    /// Whether a group is an instance.
    fn publishes(&self, id: &InstanceId) -> bool {
        match self.family.unit() {
            Unit::Group => self.published.contains(id),
            Unit::File | Unit::Pair => false,
        }
    }

    /// The variants of a group, as far as they are known.
    pub(super) fn edited(&self, id: &InstanceId) -> Option<&[Variant]> {
        self.variants.get(id).map(Vec::as_slice)
    }

    /// Whether a group is an instance, or judges one.
    pub(super) fn uses(&self, id: &InstanceId) -> bool {
        self.published.contains(id)
    }

    /// The instance of a published group.
    fn instance(&self, group: &GroupEvidence) -> Result<Instance> {
        let witness = self.witnesses.get(&group.instance_id).map(|witness| witness.columns.clone());
        let strength = self.strengths.get(&group.instance_id).cloned();
        Ok(Instance {
            witness: witness.unwrap_or_default(),
            strength: strength.unwrap_or_default(),
            ..instance(self, group)?
        })
    }
}

/// The instances that a repository contributes, by group id; what follows from the whole dataset is not set.
///
/// # Errors
/// When its records contradict each other.
pub fn instances_of(contribution: &Contribution) -> Result<Vec<Instance>> {
    let repository = repository(contribution);
    let mut instances = Vec::new();
    for group in contribution.evidence.groups.iter() {
        let group = group?;
        if repository.published.contains(&group.instance_id) {
            instances.push(repository.instance(&group)?);
        }
    }
    Ok(instances)
}

fn repository(contribution: &Contribution) -> Repository<'_> {
    let record = &contribution.evidence;
    let counts = Counts { deselected: record.collected.deselected, ..Counts::default() };
    Repository {
        family: contribution.family,
        record,
        tests: &contribution.tests,
        witnesses: &contribution.witnesses,
        strengths: &contribution.strengths,
        variants: &contribution.variants,
        published: &contribution.published,
        sums: Sums { counts, ..Sums::default() },
    }
}

fn refuse_twins(repositories: &[Repository<'_>]) -> Result<()> {
    for pair in repositories.windows(2) {
        if pair[0].record.pinned.slug == pair[1].record.pinned.slug {
            return Err(Error::internal(format!("{} is in the dataset twice", pair[0].record.pinned.slug)));
        }
    }
    Ok(())
}

fn check_order(before: Option<&str>, group: &GroupEvidence) -> Result<()> {
    match before.map_or(Ordering::Less, |before| before.cmp(&group.group.group_id)) {
        Ordering::Less => Ok(()),
        Ordering::Equal => Err(contradiction(group, "exists twice")),
        Ordering::Greater => Err(contradiction(group, "is out of order")),
    }
}

fn contradiction(group: &GroupEvidence, what: &str) -> Error {
    Error::internal(format!("{}: {} {what}", group.slug, group.group.group_id))
}

/// The instance of a published group; tier and hard axes are set later, over the whole dataset.
fn instance(repository: &Repository<'_>, group: &GroupEvidence) -> Result<Instance> {
    let (traced, second, package) = checked_trace(group)?;
    let record = repository.record;
    let pinned = &record.pinned;
    let files = traced.totals.files.clone();
    let test = repository.tests.get(&group.instance_id);
    let edited = repository.edited(&group.instance_id).unwrap_or_default();
    let variants = Some(count(edited.len()));
    let mut instance = Instance {
        head: head(repository.family, record, group.instance_id.clone()),
        group_id: group.group.group_id.clone(),
        test_file: group.group.file.clone(),
        test_class: test_class(group),
        test_function: group.group.function.clone(),
        test_source: test.map(|test| test.text.clone()),
        test_line_start: test.map(|test| test.lines.0),
        test_line_end: test.map(|test| test.lines.1),
        entry_command: group.group.command().line(),
        prompt: String::new(),
        case_ids: group.group.cases.iter().map(|case| case.case_id.clone()).collect(),
        expected: expected(group)?,
        fail_to_pass: Vec::new(),
        pass_to_pass: Vec::new(),
        n_cases: count(group.group.cases.len()),
        trace_length: traced.totals.trace_length,
        trace_length_package: package,
        trace_length_total: second.total_calls,
        child_calls: traced.child_calls,
        unique_files: count(files.len()),
        unique_functions: traced.totals.unique_functions,
        executed_lines: traced.totals.executed_lines,
        import_calls: traced.import_calls,
        import_files: traced.import_files.clone(),
        files,
        trace_stable: traced.stable() == Some(true),
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
        code_sha256: Some(traced.code_sha256.clone()),
        flags: flags(group, Some(edited)),
        data_files: group.on_trial.data_files.clone(),
        test_defined_in: group.on_trial.defined_in.clone(),
        variants,
        kind: group.group.command().kind().to_owned(),
        argv: None,
        stdin: None,
        stdin_file: None,
        cwd: None,
        env: None,
        watched_files: None,
        origin: None,
        witness: WitnessColumns::default(),
        strength: Strength::default(),
    };
    if let Some(entry) = &group.group.entry {
        of_entry(&mut instance, entry);
    }
    let passed = group.golden.iter().filter(|case| case.outcome == Outcome::Passed);
    instance.fail_to_pass =
        passed.map(|case| instance.family.submitted_case(&instance, &case.case_id)).collect();
    Ok(instance)
}

/// Says which command an instance is about.
fn of_entry(instance: &mut Instance, entry: &Entry) {
    instance.argv = Some(entry.command.words());
    match &entry.stdin {
        Some(Stdin::Text(text)) => instance.stdin = Some(text.clone()),
        Some(Stdin::File(file)) => instance.stdin_file = Some(file.clone()),
        None => {}
    }
    instance.cwd = Some(entry.cwd.clone());
    instance.env = Some(entry.env.iter().map(|(name, value)| format!("{name}={value}")).collect());
    instance.watched_files = Some(entry.files.clone());
    instance.origin = Some(entry.origin.to_string());
}

/// Which instance of which repository.
pub(super) fn head(family: Family, record: &RepositoryEvidence, instance_id: InstanceId) -> Head {
    let pinned = &record.pinned;
    Head {
        instance_id,
        family,
        slug: pinned.slug.clone(),
        repo: pinned.slug.to_string(),
        commit: pinned.commit.clone(),
        base_commit: CommitSha::new(&pinned.commit).ok().map(|commit| commit.to_string()),
        version: version(&pinned.origin, &pinned.commit),
        created_at: pinned.pinned_at.clone(),
        source: pinned.origin.describe(),
        license: pinned.license.clone(),
        python: record.built.python.clone(),
    }
}

/// What is special about a group with these variants, as far as they are known.
pub(super) fn flags(group: &GroupEvidence, variants: Option<&[Variant]>) -> Vec<String> {
    let shows_nothing = group.group.entry.is_some() && group.golden.iter().all(CaseResult::shows_nothing);
    let without = match (group.group.entry.is_some(), variants) {
        (true, Some([])) => Some(CONSTANT),
        (false, Some([])) => Some(NO_VARIANTS),
        (false, Some(all)) if !all.iter().any(|one| one.refutes_constant) => Some(NO_OTHER_INPUT),
        _ => None,
    };
    let beside = without.into_iter().chain(shows_nothing.then_some(SHOWS_NOTHING));
    group.flags().into_iter().chain(beside.map(str::to_owned)).collect()
}

/// What each case showed, in the order of the entry command.
fn expected(group: &GroupEvidence) -> Result<Vec<String>> {
    let shown = |case: &Case| {
        let golden = group.golden.iter().find(|result| result.case_id == case.case_id);
        let expected = Expected {
            case_id: case.case_id.clone(),
            outcome: golden.map(|golden| golden.outcome),
            exception: golden.and_then(|golden| golden.exception.clone()),
            stdout: golden.map(|golden| golden.stdout.clone()),
            stderr: golden.map(|golden| golden.stderr.clone()),
            command: golden.and_then(|golden| golden.command.clone()),
        };
        serde_json::to_string(&expected)
            .map_err(|error| Error::internal("cannot encode what a case showed").with_source(error))
    };
    group.group.cases.iter().map(shown).collect()
}

/// The release's own version; of a commit or an archive its first digits.
pub(crate) fn version(origin: &Origin, commit: &str) -> String {
    match origin {
        Origin::Pypi { version, .. } => version.clone(),
        Origin::Git { .. } | Origin::Path { .. } => {
            let digits = commit.strip_prefix("sha256:").unwrap_or(commit);
            digits.chars().take(VERSION_DIGITS).collect()
        }
    }
}

/// The trace of a published group and its calls outside the tests, once everything about the group makes sense.
fn checked_trace(group: &GroupEvidence) -> Result<(&Traced, &SecondTrace, u64)> {
    let (Some(traced), Some(package)) = (&group.traced, group.trace_length_package) else {
        return Err(contradiction(group, "is published without a trace"));
    };
    let Some(second) = &traced.second else {
        return Err(contradiction(group, "is published without a second trace"));
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
    } else if package > length || length > second.total_calls {
        "has more calls in a part than in the whole"
    } else {
        return Ok((traced, second, package));
    };
    Err(contradiction(group, problem))
}

/// Class chain joined with `::`.
pub fn test_class(group: &GroupEvidence) -> Option<String> {
    (!group.group.classes.is_empty()).then(|| group.group.classes.join("::"))
}

/// Names of the worlds, `base` first and the others by name, so that the order of attempts does not matter.
pub fn worlds(attempts: &[AttemptFacts]) -> Vec<String> {
    let worlds: BTreeSet<&World> = attempts.iter().map(|attempt| &attempt.world).collect();
    let mut names: Vec<(bool, String)> =
        worlds.into_iter().map(|world| (*world != World::Base, world.to_string())).collect();
    names.sort_unstable();
    names.into_iter().map(|(_, name)| name).collect()
}

fn count(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
