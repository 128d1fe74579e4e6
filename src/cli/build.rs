//! `gistmill build`

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::inputs::Inputs;
use super::{Arguments, ConfigArguments, Format, spent, table};
use crate::backend::Isolation;
use crate::backend::local::Strictness;
use crate::config::{self, Config, SourceSpec};
use crate::dataset::Dataset;
use crate::environment::Tools;
use crate::error::{Error, Result};
use crate::log;
use crate::machine::Machine;
use crate::pipeline::shards::Shards;
use crate::pipeline::{Built, Pipeline, Request, Stage};
use crate::progress::Progress;
use crate::record::id::RepoSlug;
use crate::record::shard::Shard;
use crate::rules::RuleSet;
use crate::store::Cache;
use crate::terminal::{self, Text, Volume};

#[derive(Debug, clap::Args)]
pub(super) struct BuildArguments {
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Stop after this stage
    #[arg(long, value_enum, default_value = "dataset")]
    pub until: Stage,
    #[command(flatten)]
    pub common: Common,
    /// Screen and trace part K of N of all groups, as one of many machines that share a cache; `merge` goes on from there
    #[arg(long, value_name = "K/N", conflicts_with = "until")]
    pub shard: Option<Shard>,
}

/// What building and merging have in common.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Common {
    /// Attempts that compute at the same time; all cores by default. Where attempts wait for something else, more of
    /// them are under way
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The named subset to write beside the whole: `top` or a [subset.<name>]; may be given several times; all by
    /// default
    #[arg(long, value_name = "NAME")]
    subset: Vec<String>,
    /// Leave the repositories' code out of the dataset: no trees, and no sources of tests, for those who may not pass it
    /// on
    #[arg(long)]
    no_trees: bool,
}

/// This program, which is also the sandbox's inside.
pub(super) fn own_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Error::from(error).at("cannot find this program"))
}

/// Says once what the sandbox does not give here.
fn warn_of_missing(isolation: &Isolation) {
    if !isolation.missing.is_empty() {
        let mut text = Text::default();
        text.styled(&console::Style::new().yellow().bold().for_stderr(), "warning:");
        text.line(&format!(" missing from full isolation: {}", isolation.missing.join("; ")));
        text.eprint();
    }
}

/// Cores of this machine that this process may use.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What a subcommand that runs tests works with.
pub(super) struct Job {
    pub config: Config,
    public_config: serde_json::Value,
    rules: RuleSet,
    cache: Cache,
    machine: Machine,
    tools: Tools,
    progress: Progress,
    pub request: Request,
    config_name: Option<String>,
}

/// What the user lets a dataset have.
pub(super) struct Trust<'a> {
    /// Names of variables that the tests see.
    pub(super) variables: &'a [String],
    /// Whether it may choose images, and what is installed in them.
    pub(super) containers: bool,
}

impl Job {
    /// Reads the configuration and looks at the machine.
    ///
    /// # Errors
    /// Bad configuration or rules; a machine that lacks something.
    pub(super) fn new(arguments: &Arguments, selected: &ConfigArguments) -> Result<Self> {
        Job::with(arguments, selected, |_| {})
    }

    /// The same with a configuration that is changed first.
    ///
    /// # Errors
    /// Those of [`Job::new`].
    pub(super) fn with(
        arguments: &Arguments,
        selected: &ConfigArguments,
        change: impl FnOnce(&mut Config),
    ) -> Result<Self> {
        let inputs = Inputs::choose(selected);
        terminal::note(&format!("config: {}", inputs.describe_config()));
        terminal::note(&format!("rules: {}", inputs.describe_rules()));
        let mut config = inputs.config(&selected.only)?;
        change(&mut config);
        let rules = inputs.rules()?;
        let public = public_config(&config, &rules);
        let mut job =
            Job::assemble(arguments, (config, public, rules), &selected.only, selected.isolation.isolation)?;
        tracing::info!("config: {}; rules: {}", inputs.describe_config(), inputs.describe_rules());
        job.request.output.clone_from(&selected.output);
        job.config_name = inputs.config_name();
        Ok(job)
    }

    /// What works with a configuration that no file has.
    ///
    /// # Errors
    /// A machine that lacks something.
    pub(super) fn of_config(arguments: &Arguments, config: Config, isolation: Strictness) -> Result<Self> {
        let rules = RuleSet::shipped();
        let public = public_config(&config, &rules);
        Job::assemble(arguments, (config, public, rules), &[], isolation)
    }

    /// What works in the environments of a dataset; only those of `slugs`. The values of `variables` come from the
    /// environment of this command.
    ///
    /// # Errors
    /// A configuration that is not published whole; a machine that lacks something.
    pub(super) fn of_dataset(
        arguments: &Arguments,
        dataset: &Dataset,
        (places, slugs): (&BTreeMap<RepoSlug, String>, &BTreeSet<RepoSlug>),
        trust: &Trust<'_>,
        isolation: Strictness,
    ) -> Result<Self> {
        let known = |name: &str| {
            trust.variables.iter().any(|one| one == name).then(|| std::env::var(name).ok()).flatten()
        };
        let mut archives = BTreeMap::new();
        for slug in slugs.iter().filter(|slug| !places.contains_key(*slug)) {
            archives.extend(dataset.archive(slug)?.map(|(file, pinned)| (slug.clone(), (file, pinned))));
        }
        let archived = archives.keys().cloned().collect();
        let published = &dataset.manifest.config;
        let mut config = config::published::from_published(published, slugs, (places, &archived), &known)?;
        if !trust.containers {
            config::published::refuse_containers(&config)?;
        }
        for repo in &mut config.repos {
            if let Some((file, pinned)) = archives.remove(&repo.slug) {
                repo.source = SourceSpec::Archive { file, pinned: Box::new(pinned) };
            }
            repo.python = Some(dataset.environment(&repo.slug)?.python.clone());
            repo.locked = Some(dataset.lock(&repo.slug)?);
        }
        let public = dataset.manifest.config.clone();
        Job::assemble(arguments, (config, public, RuleSet::default()), &[], isolation)
    }

    /// Looks at the machine.
    fn assemble(
        arguments: &Arguments,
        (config, public_config, rules): (Config, serde_json::Value, RuleSet),
        only: &[RepoSlug],
        isolation: Strictness,
    ) -> Result<Self> {
        let cache = arguments.cache()?;
        log::start(&cache)?;
        let machine = Machine::new(&own_program()?, &cache, &config, only, isolation)?;
        if let Some(isolation) = machine.local_isolation() {
            warn_of_missing(&isolation);
        }
        Ok(Job {
            public_config,
            tools: Tools::find(&cache)?,
            progress: Progress::for_terminal(),
            request: Request {
                output: PathBuf::new(),
                only: only.to_vec(),
                until: Stage::Dataset,
                jobs: cores(),
                subsets: Vec::new(),
                passes_code_on: true,
                shards: Shards::default(),
            },
            config_name: None,
            config,
            rules,
            cache,
            machine,
        })
    }

    /// The cache.
    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The progress.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The pipeline over it.
    pub(super) fn pipeline(&self) -> Pipeline<'_> {
        Pipeline {
            config: &self.config,
            public_config: self.public_config.clone(),
            rules: &self.rules,
            cache: &self.cache,
            machine: &self.machine,
            tools: &self.tools,
            progress: &self.progress,
            request: &self.request,
            config_name: self.config_name.as_deref(),
        }
    }
}

pub(super) fn run(arguments: &Arguments, build: &BuildArguments) -> Result<u8> {
    with(arguments, build, build.shard.map_or_else(Shards::default, Shards::Make))
}

/// A build that does this with shards.
pub(super) fn with(arguments: &Arguments, build: &BuildArguments, shards: Shards) -> Result<u8> {
    let started = Instant::now();
    let mut job = Job::new(arguments, &build.config)?;
    let Common { jobs, subset, no_trees } = &build.common;
    job.request.until = build.until;
    job.request.jobs = jobs.map_or_else(cores, usize::from);
    job.request.passes_code_on = !no_trees;
    job.request.subsets = config::named_subsets(&job.config.subsets, subset)?;
    job.request.shards = shards;
    let built = job.pipeline().run()?;
    tracing::info!("built: {} repositories, {} failed", built.finished.len(), built.failed.len());
    match arguments.format {
        Format::Human | Format::Csv => {
            table::closing(&built)?.print();
            if terminal::volume() != Volume::Quiet && !built.finished.is_empty() {
                spent::summary(&job.progress.spent(), cores()).eprint();
            }
        }
        Format::Json => {
            let mut value = as_json(&built);
            value["spent"] = json!(job.progress.spent());
            terminal::json(&value);
        }
    }
    terminal::note(&format!("took {}", elapsed(started.elapsed())));
    if let Some(path) = log::path().filter(|_| !built.failed.is_empty()) {
        terminal::note(&format!("log: {}", path.display()));
    }
    Ok(u8::from(!built.failed.is_empty()))
}

/// `1 h 2 min 3 s`, `4.5 s`.
pub(super) fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{:.1} s", time.as_secs_f64()),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, seconds) => format!("{hours} h {minutes} min {seconds} s"),
    }
}

/// The config as the manifest shows it, with the rules in force.
fn public_config(config: &Config, rules: &RuleSet) -> serde_json::Value {
    let mut public = config::to_public_json(config);
    public["rules"] = json!({
        "sha256": rules.sha256(),
        "ids": rules.rules().iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(),
        "files": rules.files(),
    });
    public
}

fn as_json(built: &Built) -> serde_json::Value {
    json!({
        "summary": built.summary,
        "log": log::path(),
        "failed": built.failed,
        "found": built.finished.iter().map(|finished| (finished.slug.to_string(), json!(finished.found)))
            .collect::<serde_json::Map<_, _>>(),
        "warnings": built.finished.iter().filter_map(|finished| {
            let warnings = finished.record.as_ref()?.evidence.built.warnings();
            (!warnings.is_empty()).then(|| (finished.slug.to_string(), json!(warnings)))
        }).collect::<serde_json::Map<_, _>>(),
        "parity": built.finished.iter().filter_map(|finished| {
            let record = finished.record.as_ref()?;
            Some((finished.slug.to_string(), serde_json::to_value(&record.evidence.parity).ok()?))
        }).collect::<serde_json::Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        let said = [4.54, 123.0, 3_723.9].map(|seconds| elapsed(Duration::from_secs_f64(seconds)));
        assert_eq!(said, ["4.5 s", "2 min 3 s", "1 h 2 min 3 s"]);
    }
}
