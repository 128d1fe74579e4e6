//! The one owner of stage order and resume: source → environment → collect → screen → trace → select → confirm → dataset.
//! What is selected is the barrier: up to there every group goes its way alone; selecting looks at all of them.
//!
//! Every stage leaves an artifact in the cache under a key that names its inputs, so a build that was stopped goes on
//! where it was, and a build with nothing new only reads. One repository's trouble is recorded and the others go on.

mod beside;
mod carried;
pub mod once;
pub mod prepare;
mod release;
pub mod replay;
pub(crate) mod repository;
pub mod session;
pub mod shards;
#[cfg(test)]
mod tests;
mod trial;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::ScopedJoinHandle;

use serde::Serialize;

use crate::config::{Config, Repo};
use crate::dataset::{self, Dataset, DatasetInput, Summary};
use crate::environment::Tools;
use crate::error::{Error, Fault, Result};
use crate::machine::Machine;
use crate::progress::Progress;
use crate::record::codetaste::PairRow;
use crate::record::id::RepoSlug;
use crate::record::instance::{Contribution, FailedRepository};
use crate::record::spelling::spelling;
use crate::report;
use crate::rules::RuleSet;
use crate::store::{Cache, Lock};
use crate::subset::Subset;
pub(crate) use release::Former;
use shards::Shards;

spelling! {
    /// Stages of the flow, in order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
    pub enum Stage {
        Source "source",
        Environment "environment",
        Collect "collect",
        Screen "screen",
        Trace "trace",
        Select "select",
        Confirm "confirm",
        Dataset "dataset",
    }
}

/// What a build is asked to do.
#[derive(Debug, Clone)]
pub struct Request {
    /// The folder that holds `<name>/<version>/`.
    pub output: PathBuf,
    /// Only these repositories; empty = all.
    pub only: Vec<RepoSlug>,
    /// Last stage to run.
    pub until: Stage,
    /// Attempts at the same time.
    pub jobs: usize,
    /// Named subsets to write.
    pub subsets: Vec<Subset>,
    /// Whether the dataset holds code of the repositories.
    pub passes_code_on: bool,
    /// Whether the dataset holds what submissions must not know.
    pub with_hidden: bool,
    pub shards: Shards,
    /// Whether a dataset is replaced by one with less, or made of other files.
    pub replace: bool,
}

impl Request {
    /// A build of everything to its end, with `jobs` attempts at the same time.
    pub fn whole(output: PathBuf, jobs: usize) -> Self {
        Request {
            output,
            only: Vec::new(),
            until: Stage::Dataset,
            jobs,
            subsets: Vec::new(),
            passes_code_on: true,
            with_hidden: true,
            shards: Shards::default(),
            replace: false,
        }
    }
}

/// Everything a build works with.
pub struct Pipeline<'a> {
    pub config: &'a Config,
    pub public_config: serde_json::Value,
    pub rules: &'a RuleSet,
    pub cache: &'a Cache,
    /// Where repositories run, and what can be varied there.
    pub machine: &'a Machine,
    pub tools: &'a Tools,
    pub progress: &'a Progress,
    pub request: &'a Request,
    /// File name of the configuration, for the commands that evidence gives; none for the built-in one.
    pub config_name: Option<&'a str>,
}

/// What a build came to.
#[derive(Debug)]
pub struct Built {
    /// None when the build stopped before the dataset stage, or nothing was written.
    pub summary: Option<Summary>,
    /// Why nothing was written, where it was to be.
    pub kept: Option<String>,
    pub failed: Vec<FailedRepository>,
    /// Repositories that went through, as far as the build went.
    pub finished: Vec<Finished>,
}

/// A repository that went through.
#[derive(Debug)]
pub struct Finished {
    pub slug: RepoSlug,
    /// None when the build stopped before the dataset stage.
    pub record: Option<Contribution>,
    /// What the first stages found, as far as they went.
    pub found: RepositoryFacts,
}

/// What a repository came to, where others go on.
enum Outcome {
    Finished(Box<Finished>),
    Failed(FailedRepository),
}

/// What is known of a repository before its tests are screened.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RepositoryFacts {
    /// What the pin is made of, for people.
    pub source: Option<String>,
    /// Version of the interpreter, and why this one.
    pub python: Option<[String; 2]>,
    /// Name and reason of the plan that was installed.
    pub plan: Option<[String; 2]>,
    pub warnings: Vec<String>,
    pub cases: Option<usize>,
    pub groups: Option<usize>,
    /// What could not be collected: name and cause.
    pub uncollected: Vec<[String; 2]>,
    /// What became of a pair of commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairRow>,
}

impl Pipeline<'_> {
    /// Builds the dataset.
    ///
    /// # Errors
    /// Whatever concerns more than one repository: the machine, the output, an interruption. A repository's own trouble
    /// is in [`Built::failed`].
    pub fn run(&self) -> Result<Built> {
        self.run_all().map_err(|error| self.cause_of(error))
    }

    /// What an error comes from: without its cache nothing works, and what is said then misleads.
    fn cause_of(&self, error: Error) -> Error {
        match self.cache.require_present() {
            Err(removed) if error.fault() != Fault::Interrupted => removed,
            _ => error,
        }
    }

    fn run_all(&self) -> Result<Built> {
        let directory = dataset::swap::real_place(&self.config.dataset.directory(&self.request.output))?;
        let _rest = self.progress.ledger().begin("between repositories");
        // A shard writes no dataset.
        let whole = self.request.shards.made().is_none();
        let _lock = whole.then(|| Lock::take(&directory)).transpose()?;
        if whole {
            self.keep_what_is_not_selected(&directory)?;
            self.require_shards()?;
        }
        let replaces = whole && self.request.until == Stage::Dataset && !self.request.replace;
        let former = replaces.then(|| Former::find(&directory, |text| self.progress.say(text))).flatten();
        let (mut finished, failed) = self.repositories(former.as_ref())?;
        crate::interrupt::check()?;
        self.cache.require_present()?;
        if self.request.until < Stage::Dataset || !whole {
            return Ok(Built { summary: None, kept: None, failed, finished });
        }
        let mut repositories: Vec<Contribution> =
            finished.iter_mut().filter_map(|finished| finished.record.take()).collect();
        let kept = replaces.then(|| release::kept(former.as_ref(), &repositories, &failed)).flatten();
        let summary = if kept.is_some() {
            None
        } else {
            if let Some(text) = former.as_ref().and_then(|former| former.shrinks(&repositories)) {
                self.progress.say(&text);
            }
            self.keep_witnesses(&directory, &mut repositories);
            let pairs: Vec<PairRow> = finished.iter().filter_map(|one| one.found.pair.clone()).collect();
            Some(self.write(&directory, (&repositories, &pairs), &failed)?)
        };
        let mut records: BTreeMap<RepoSlug, Contribution> =
            repositories.into_iter().map(|one| (one.evidence.pinned.slug.clone(), one)).collect();
        for finished in &mut finished {
            finished.record = records.remove(&finished.slug);
        }
        Ok(Built { summary, kept, failed, finished })
    }

    /// Takes over the witnesses of the dataset that is replaced, and says which are left out.
    fn keep_witnesses(&self, directory: &Path, repositories: &mut [Contribution]) {
        let Ok(Some(former)) = Dataset::find(directory) else { return };
        match carried::carry_over(&former, repositories) {
            Ok(said) => said.iter().for_each(|text| self.progress.say(text)),
            Err(error) => {
                self.progress.say(&format!("witnesses of the dataset before are left out: {error}"));
            }
        }
    }

    /// Every repository's way. While one is screened, the source of the next is fetched: nothing that would disturb.
    fn repositories(&self, former: Option<&Former>) -> Result<(Vec<Finished>, Vec<FailedRepository>)> {
        let (mut finished, mut failed) = (Vec::new(), Vec::new());
        let selected: Vec<_> = self.config.repos.iter().filter(|repo| self.selected(&repo.slug)).collect();
        let looks_ahead = self.request.until > Stage::Environment;
        std::thread::scope(|scope| {
            let mut ahead = None;
            for (at, repo) in selected.iter().enumerate() {
                let source = ahead.take().and_then(|thread: ScopedJoinHandle<'_, _>| thread.join().ok());
                let next = selected.get(at + 1).copied().filter(|_| looks_ahead);
                self.progress.repository(at + 1, selected.len(), Stage::Dataset as usize);
                let repository = repository::Repository::new(self, repo).with_source(source, former);
                if let Some(next) = next {
                    ahead = Some(scope.spawn(move || prepare::Preparation::new(self, next).source()));
                }
                match self.outcome(repo, repository)? {
                    Outcome::Finished(one) => finished.push(*one),
                    Outcome::Failed(one) => failed.push(one),
                }
            }
            self.progress.all_done();
            Ok(())
        })
        .map(|()| (finished, failed))
    }

    /// What one repository came to.
    ///
    /// # Errors
    /// What concerns more than that repository.
    fn outcome(&self, repo: &Repo, repository: repository::Repository<'_>) -> Result<Outcome> {
        let (stage, error) = match repository.run() {
            Ok((record, found)) => {
                let slug = repo.slug.clone();
                return Ok(Outcome::Finished(Box::new(Finished { slug, record, found })));
            }
            Err((stage, error)) => (stage, self.cause_of(error)),
        };
        error.log(format!("{} ({})", repo.slug, stage.as_str()));
        if !matches!(error.fault(), Fault::Repository | Fault::Harness) {
            return Err(error.at(format!("{} ({})", repo.slug, stage.as_str())));
        }
        self.progress.say(&format!("{}: failed in stage {}: {error}", repo.slug, stage.as_str()));
        Ok(Outcome::Failed(FailedRepository {
            slug: repo.slug.clone(),
            stage: stage.as_str().to_owned(),
            message: error.to_string(),
            detail: error.detail().map(str::to_owned),
            hint: error.hint().map(str::to_owned),
        }))
    }

    /// Where shards are asked for, nothing is begun before all of them are there.
    fn require_shards(&self) -> Result<()> {
        let Shards::Require(of) = self.request.shards else { return Ok(()) };
        shards::require_any(self.cache)?;
        for repo in self.config.repos.iter().filter(|repo| self.selected(&repo.slug)) {
            match (prepare::Preparation::new(self, repo)).run() {
                Ok(prepared) => {
                    shards::require(&prepared.lab.folder, of, &repo.slug, &prepared.collected)?;
                }
                // It is reported as failed when its turn comes.
                Err(error) if matches!(error.fault(), Fault::Repository | Fault::Harness) => {}
                Err(error) => return Err(error.at(repo.slug.to_string())),
            }
        }
        Ok(())
    }

    /// Writes the dataset of what went through.
    fn write(
        &self,
        directory: &Path,
        (repositories, pairs): (&[Contribution], &[PairRow]),
        failed: &[FailedRepository],
    ) -> Result<Summary> {
        let _step = self.progress.ledger().begin("dataset");
        let (isolation, capabilities) = self.machine.describe();
        let input = DatasetInput {
            config: self.config,
            public_config: self.public_config.clone(),
            repositories,
            pairs,
            failed,
            isolation: &isolation,
            capabilities: &capabilities,
            tool_version: env!("CARGO_PKG_VERSION"),
            subsets: &self.request.subsets,
            rules: self.rules.unused(),
            passes_code_on: self.request.passes_code_on,
            with_hidden: self.request.with_hidden,
            spent: self.progress.spent(),
        };
        publish(directory, &input)
    }

    /// A build of some repositories never replaces a dataset that holds others.
    fn keep_what_is_not_selected(&self, directory: &Path) -> Result<()> {
        if self.request.only.is_empty() || self.request.until < Stage::Dataset {
            return Ok(());
        }
        let dataset = Dataset::find(directory)?;
        let counts = dataset.iter().flat_map(|dataset| dataset.manifest.counts.repositories.keys());
        let others: Vec<&str> = counts
            .filter(|slug| !self.request.only.iter().any(|only| only.as_str() == slug.as_str()))
            .map(RepoSlug::as_str)
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        Err(Error::usage(format!("{} also holds {}", directory.display(), others.join(", "))).with_hint(
            "give another --output, or build without --only: what is done already is not done again",
        ))
    }

    fn selected(&self, slug: &RepoSlug) -> bool {
        self.request.only.is_empty() || self.request.only.contains(slug)
    }
}

/// Writes a dataset with its page into `directory`, replacing an older one there.
///
/// # Errors
/// Those of [`dataset::stage`]; the directory is then as it was.
pub fn publish(directory: &Path, input: &DatasetInput<'_>) -> Result<Summary> {
    let staged = dataset::stage(directory, input)?;
    report::write(&staged.dataset)?;
    staged.finish()
}
