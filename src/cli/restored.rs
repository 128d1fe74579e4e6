//! The environments of a dataset on this machine, for commands that run something in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::selection::Selection;
use super::session::{self, Session, Trust, cores};
use super::{Arguments, IsolationArguments};
use crate::backend::local::Strictness;
use crate::config::{Config, Repo};
use crate::dataset::Dataset;
use crate::dataset::codetaste::CodetasteInstance;
use crate::dataset::hidden::Variants;
use crate::dataset::schema::InstanceRow;
use crate::error::{Error, Result};
use crate::family::gistify::TracedFunction;
use crate::pipeline::prepare::{Preparation, Prepared};
use crate::record::family::Family;
use crate::record::id::RepoSlug;
use crate::record::instance::Instance;
use crate::record::outcome::CaseResult;
use crate::referee::gistify::original::Original;

/// Which dataset, which part of it, and how its environments are made.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArguments {
    /// The dataset directory, `output/<name>/<version>`
    pub(crate) dataset: PathBuf,
    #[command(flatten)]
    given: GivenArguments,
    #[command(flatten)]
    selection: Selection,
    /// What runs at the same time; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    #[command(flatten)]
    isolation: IsolationArguments,
}

/// What a dataset does not say of its environments, or may not decide.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct GivenArguments {
    /// Where a repository is, when the dataset does not say: SLUG=<path or URL of git>
    #[arg(long, value_name = "SLUG=PLACE", value_parser = parse_place)]
    source: Vec<(RepoSlug, String)>,
    /// Give the tests the value of this variable, which the dataset names and does not publish
    #[arg(long, value_name = "NAME")]
    variable: Vec<String>,
    /// Use containers as the dataset says: it chooses the base image, and packages that are installed there with the network on
    #[arg(long)]
    containers: bool,
}

impl GivenArguments {
    /// Whether any of them was given.
    pub(crate) fn are_given(&self) -> bool {
        !self.source.is_empty() || !self.variable.is_empty() || self.containers
    }

    /// A session in the environments of these repositories of a dataset.
    ///
    /// # Errors
    /// See [`session::of_dataset`].
    pub(crate) fn session(
        &self,
        arguments: &Arguments,
        dataset: &Dataset,
        slugs: &BTreeSet<RepoSlug>,
        isolation: Strictness,
    ) -> Result<Session> {
        let places: BTreeMap<RepoSlug, String> = self.source.iter().cloned().collect();
        let trust = Trust { variables: &self.variable, containers: self.containers };
        session::of_dataset(arguments, dataset, (&places, slugs), &trust, isolation)
    }

    fn config(&self, dataset: &Dataset, slugs: &BTreeSet<RepoSlug>) -> Result<Config> {
        let places: BTreeMap<RepoSlug, String> = self.source.iter().cloned().collect();
        let trust = Trust { variables: &self.variable, containers: self.containers };
        session::config_of_dataset(dataset, (&places, slugs), &trust)
    }
}

fn parse_place(text: &str) -> std::result::Result<(RepoSlug, String), String> {
    let (slug, place) = text.split_once('=').ok_or("give SLUG=<path or URL of git>")?;
    // From here: the configuration of a dataset has no folder of its own.
    let path = std::path::absolute(place).ok().filter(|path| path.exists());
    let place = path.as_ref().and_then(|path| path.to_str()).unwrap_or(place);
    Ok((super::parse_slug(slug)?, place.to_owned()))
}

/// Repositories of which nothing can be run, and why.
pub(crate) type Others = Vec<(RepoSlug, Error)>;

/// A dataset whose environments can be made again.
pub(crate) struct Restored {
    pub(crate) dataset: Dataset,
    /// Those that were asked for, in the order of the dataset.
    pub(crate) instances: Vec<Instance>,
    pub(crate) job: Session,
    golden: BTreeMap<String, Vec<CaseResult>>,
    /// Functions that the cases of an instance call, where the dataset has traces.
    traced: BTreeMap<String, Vec<TracedFunction>>,
    variants: Variants,
}

impl RestoreArguments {
    /// Which part of the dataset was asked for, in words.
    pub(crate) fn part(&self) -> String {
        self.selection.part()
    }

    /// The directory of the dataset.
    pub(crate) fn dataset(&self) -> &Path {
        &self.dataset
    }

    /// Whether instances were left out.
    pub(crate) fn is_part(&self) -> bool {
        self.selection.is_part()
    }

    /// Opens the dataset.
    ///
    /// # Errors
    /// Usage errors: not a dataset, no such subset.
    pub(crate) fn open(&self, arguments: &Arguments) -> Result<Restored> {
        let dataset = Dataset::open(&self.dataset)?;
        let instances = self.selection.of(&dataset, Dataset::instances)?;
        let slugs: BTreeSet<RepoSlug> = instances.iter().map(|one| one.slug.clone()).collect();
        self.of(arguments, dataset, instances, &slugs)
    }

    /// Opens the dataset with those repositories of which all is known that running them takes, and says of the others
    /// what is not.
    ///
    /// # Errors
    /// Usage errors: not a dataset, no such subset; nothing of it can be run.
    pub(crate) fn open_what_can_be_run(&self, arguments: &Arguments) -> Result<(Restored, Others)> {
        let dataset = Dataset::open(&self.dataset)?;
        let instances = self.selection.of(&dataset, Dataset::instances)?;
        let all = instances.iter().map(|one| one.slug.clone()).collect();
        let (slugs, others) = self.which_can_be_run(&dataset, all)?;
        Ok((self.of(arguments, dataset, instances, &slugs)?, others))
    }

    /// Repositories of which all is known that running them takes, and the others with what is not.
    fn which_can_be_run(
        &self,
        dataset: &Dataset,
        all: BTreeSet<RepoSlug>,
    ) -> Result<(BTreeSet<RepoSlug>, Others)> {
        let (mut slugs, mut others) = (BTreeSet::new(), Others::new());
        for slug in all {
            match self.given.config(dataset, &BTreeSet::from([slug.clone()])) {
                Ok(_) => drop(slugs.insert(slug)),
                Err(error) => others.push((slug, error)),
            }
        }
        match others.pop() {
            Some((_, error)) if slugs.is_empty() => Err(error),
            last => {
                others.extend(last);
                Ok((slugs, others))
            }
        }
    }

    fn of(
        &self,
        arguments: &Arguments,
        dataset: Dataset,
        instances: Vec<Instance>,
        slugs: &BTreeSet<RepoSlug>,
    ) -> Result<Restored> {
        let job = self.session(arguments, &dataset, slugs)?;
        let (golden, traced) = (dataset.golden()?, dataset.traced()?);
        Ok(Restored { dataset, instances, job, golden, traced, variants: Variants::new() })
    }

    /// Opens a dataset of a family of its own rows like [`RestoreArguments::open_what_can_be_run`].
    ///
    /// # Errors
    /// Usage errors: not a dataset; no instance of a repository that was named; nothing of it can be run.
    pub(crate) fn open_rows<R: InstanceRow>(
        &self,
        arguments: &Arguments,
        read: fn(&Dataset) -> Result<Vec<R>>,
    ) -> Result<(Restored, Vec<R>, Others)> {
        let dataset = Dataset::open_any(&self.dataset)?;
        let rows = self.selection.of(&dataset, read)?;
        let all = rows.iter().map(|one| one.head().slug.clone()).collect();
        let (slugs, others) = self.which_can_be_run(&dataset, all)?;
        let job = self.session(arguments, &dataset, &slugs)?;
        Ok((Restored::without_tests(dataset, job), rows, others))
    }

    /// Opens a dataset of `CodeTaste`, all of which has to run.
    ///
    /// # Errors
    /// Usage errors: not a dataset; no instance that was asked for.
    pub(crate) fn open_codetaste(&self, arguments: &Arguments) -> Result<(Restored, Vec<CodetasteInstance>)> {
        let dataset = Dataset::open_any(&self.dataset)?;
        let rows = self.selection.of(&dataset, Dataset::codetaste_instances)?;
        let slugs: BTreeSet<RepoSlug> = rows.iter().map(|one| one.head.slug.clone()).collect();
        let job = self.session(arguments, &dataset, &slugs)?;
        Ok((Restored::without_tests(dataset, job), rows))
    }

    fn session(
        &self,
        arguments: &Arguments,
        dataset: &Dataset,
        slugs: &BTreeSet<RepoSlug>,
    ) -> Result<Session> {
        let mut job = self.given.session(arguments, dataset, slugs, self.isolation.isolation)?;
        job.request.jobs = self.jobs.map_or_else(cores, usize::from);
        Ok(job)
    }
}

impl Restored {
    /// One whose instances are not tests.
    fn without_tests(dataset: Dataset, job: Session) -> Self {
        let (instances, golden, traced) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Restored { dataset, instances, job, golden, traced, variants: Variants::new() }
    }

    /// Reads the variants of the tests, from the dataset or from a folder beside it. Without them originals have none.
    ///
    /// # Errors
    /// Usage errors: they are not those of the dataset.
    pub(crate) fn take_variants(&mut self, elsewhere: Option<&Path>) -> Result<()> {
        self.variants = self.dataset.variants(elsewhere)?.unwrap_or_default();
        Ok(())
    }

    /// Whether there are variants of an instance.
    pub(crate) fn has_variants(&self, instance: &Instance) -> bool {
        self.variants.get(&instance.instance_id).is_some_and(|variants| !variants.is_empty())
    }

    /// The kind of its tasks.
    pub(crate) fn family(&self) -> Family {
        self.dataset.manifest.family
    }

    /// The repositories of the instances.
    pub(crate) fn repositories(&self) -> &[Repo] {
        &self.job.config.repos
    }

    /// Makes the environment of one of them; `limit` is the longest that a run may take.
    ///
    /// # Errors
    /// The environment cannot be made, or is another than the dataset's.
    pub(crate) fn prepare(&self, repo: &Repo, limit: Option<Duration>) -> Result<Prepared> {
        self.ready(Preparation::new(&self.job.pipeline(), repo).run()?, limit)
    }

    /// Makes the environment for a command that writes nothing of the screening: others of its kind go on at the same time.
    ///
    /// # Errors
    /// Those of [`Restored::prepare`].
    pub(crate) fn prepare_beside_others(&self, repo: &Repo, limit: Duration) -> Result<Prepared> {
        self.ready(Preparation::new(&self.job.pipeline(), repo).beside_others().run()?, Some(limit))
    }

    fn ready(&self, mut prepared: Prepared, limit: Option<Duration>) -> Result<Prepared> {
        if let Some(limit) = limit {
            prepared.lab.timeouts = prepared.lab.timeouts.at_most(limit);
        }
        check(&self.dataset, &prepared)?;
        Ok(prepared)
    }

    /// Keeps so many of the instances, drawn by the seed of the dataset.
    pub(crate) fn sample(&mut self, size: usize) {
        let seed = self.job.config.dataset.seed;
        let mut order: Vec<_> =
            self.instances.iter().map(|one| (one.slug.clone(), one.instance_id.clone())).collect();
        order.sort_by_cached_key(|(slug, id)| id.sample_order(slug, seed));
        order.truncate(size);
        self.retain(|_, one| order.iter().any(|(_, id)| *id == one.instance_id));
    }

    /// Keeps some of the instances, and their repositories.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&Self, &Instance) -> bool) {
        let mut instances = std::mem::take(&mut self.instances);
        instances.retain(|one| keeps(self, one));
        self.instances = instances;
        let slugs: BTreeSet<&RepoSlug> = self.instances.iter().map(|one| &one.slug).collect();
        self.job.config.repos.retain(|repo| slugs.contains(&repo.slug));
    }

    /// The instances of one repository, with what they showed.
    ///
    /// # Errors
    /// The dataset has no case of one.
    pub(crate) fn golden_of(&self, slug: &RepoSlug) -> Result<Vec<(&Instance, &[CaseResult])>> {
        let of_repo = self.instances.iter().filter(|one| one.slug == *slug);
        of_repo
            .map(|instance| {
                let golden = self.golden.get(instance.instance_id.as_str()).ok_or_else(|| {
                    Error::usage(format!("cases.parquet has no case of {}", instance.instance_id))
                })?;
                Ok((instance, golden.as_slice()))
            })
            .collect()
    }

    /// The originals of one repository.
    ///
    /// # Errors
    /// The dataset has no case of one.
    pub(crate) fn originals(&self, slug: &RepoSlug) -> Result<Vec<Original<'_>>> {
        Ok(self
            .golden_of(slug)?
            .into_iter()
            .map(|(instance, golden)| Original {
                traced: self.traced.get(instance.instance_id.as_str()).map(Vec::as_slice),
                variants: self.variants.get(&instance.instance_id).map(Vec::as_slice).unwrap_or_default(),
                ..Original::of(instance, golden)
            })
            .collect())
    }
}

/// Tree and environment must be those that the dataset was built from.
///
/// # Errors
/// The repository's or the machine's, where they are others.
pub(crate) fn check(dataset: &Dataset, prepared: &Prepared) -> Result<()> {
    let (slug, built) = (&prepared.pinned.slug, &prepared.lab.built);
    let environment = dataset.environment(slug)?;
    let sources = &dataset.manifest.sources;
    let tree = sources.get(slug.as_str()).map(|source| source.tree_sha256.as_str());
    if tree != Some(prepared.pinned.tree_sha256.as_str()) {
        return Err(Error::repository(format!(
            "the files of {slug} are not those that the dataset was built from"
        ))
        .with_hint("name the place of the same commit with --source, without uncommitted changes"));
    }
    if environment.lock_sha256 == built.lock_sha256 && environment.python == built.python {
        return Ok(());
    }
    Err(Error::machine(format!("the environment of {slug} is not the one that the dataset was built in"))
        .with_detail(format!(
            "Python {} and lock {}, here Python {} and lock {}",
            environment.python, environment.lock_sha256, built.python, built.lock_sha256
        ))
        .with_hint("the same version of Python, and a package index that still has what was locked, make it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_a_repository_is_named_from_here() {
        let place = |text: &str| parse_place(text).map(|(_, place)| place);
        let here = std::env::current_dir().unwrap().join("src");
        assert_eq!(place("a/b=src"), Ok(here.to_string_lossy().into_owned()));
        for elsewhere in ["https://example.org/x", "git@example.org:x/y.git", "not/there"] {
            assert_eq!(place(&format!("a/b={elsewhere}")).as_deref(), Ok(elsewhere));
        }
        assert!(place("a/b").is_err());
    }
}
