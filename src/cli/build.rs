//! `gistmill build`

use std::path::PathBuf;

use serde_json::json;

use super::{Arguments, ConfigArguments, Format, table};
use crate::backend::local::LocalBackend;
use crate::config::{self, Config};
use crate::environment::Tools;
use crate::error::{Error, Result};
use crate::pipeline::{Built, Pipeline, Request, Stage};
use crate::progress::Progress;
use crate::record::id::RepoSlug;
use crate::rules::RuleSet;
use crate::screen::conditions::Conditions;
use crate::store::Cache;

#[derive(Debug, clap::Args)]
pub struct BuildArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Where datasets are written: DIR/<name>/<version>/
    #[arg(long, default_value = "output", value_name = "DIR")]
    output: PathBuf,
    /// Stop after this stage
    #[arg(long, value_enum, default_value = "dataset")]
    until: Stage,
    /// Attempts at the same time; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Directory with rule files, instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    filters: Option<PathBuf>,
    /// The named subset to write beside the whole: `hard` or a [subset.<name>]; may be given several times; all by default
    #[arg(long, value_name = "NAME")]
    subset: Vec<String>,
}

/// What a branch, a tag or a short hash stands for now, where the repository can be reached.
pub fn resolve(url: &str, reference: &str) -> Option<String> {
    crate::source::resolve_reference(url, reference).ok().flatten()
}

/// The configuration that was named, or the built-in one.
pub fn configuration(arguments: &ConfigArguments) -> Result<Config> {
    let config = match &arguments.config {
        Some(path) => config::load(path, &resolve)?,
        None => config::parse(config::DEFAULT, std::path::Path::new("."), &resolve)
            .map_err(|problems| Error::internal(format!("the built-in repos.toml: {problems:?}")))?,
    };
    let known: Vec<&str> = config.repos.iter().map(|repo| repo.slug.as_str()).collect();
    refuse_unknown(&arguments.only, &known)?;
    Ok(config)
}

/// A repository that `--only` names and the config does not have.
pub fn refuse_unknown(only: &[RepoSlug], known: &[&str]) -> Result<()> {
    match only.iter().find(|slug| !known.contains(&slug.as_str())) {
        Some(slug) => Err(Error::usage(format!("--only {slug}: the config has no such repository"))
            .with_hint(format!("it has {}", known.join(", ")))),
        None => Ok(()),
    }
}

/// The rules in force.
pub fn rules(directory: Option<&PathBuf>) -> Result<RuleSet> {
    match directory {
        Some(directory) => RuleSet::load_dir(directory),
        None => Ok(RuleSet::shipped()),
    }
}

/// This program, which is also the sandbox's inside.
pub fn own_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Error::from(error).at("cannot find this program"))
}

/// Cores of this machine that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What a subcommand that runs tests works with.
pub struct Job {
    pub config: Config,
    public_config: serde_json::Value,
    rules: RuleSet,
    cache: Cache,
    backend: LocalBackend,
    tools: Tools,
    conditions: Conditions,
    progress: Progress,
    pub request: Request,
    config_name: Option<String>,
}

impl Job {
    /// Reads the configuration and looks at the machine.
    ///
    /// # Errors
    /// Bad configuration or rules; a machine that lacks something.
    pub fn new(arguments: &Arguments, selected: &ConfigArguments, filters: Option<&PathBuf>) -> Result<Self> {
        let config = configuration(selected)?;
        let rules = rules(filters)?;
        let cache = arguments.cache()?;
        let backend = LocalBackend::new(&own_program()?)?;
        if let Some(repo) = config.repos.iter().find(|repo| repo.backend == config::BackendKind::Docker) {
            return Err(super::check::docker_is_not_built().at(&repo.slug));
        }
        let name = selected.config.as_deref().and_then(std::path::Path::file_name);
        Ok(Job {
            public_config: public_config(&config, &rules),
            tools: Tools::find(&cache)?,
            conditions: Conditions::find(&cache, &backend)?,
            progress: Progress::for_terminal(),
            request: Request {
                output: PathBuf::from("output"),
                only: selected.only.clone(),
                until: Stage::Dataset,
                jobs: cores(),
                subsets: Vec::new(),
            },
            config_name: name.map(|name| name.to_string_lossy().into_owned()),
            config,
            rules,
            cache,
            backend,
        })
    }

    /// The pipeline over it.
    pub fn pipeline(&self) -> Pipeline<'_> {
        Pipeline {
            config: &self.config,
            public_config: self.public_config.clone(),
            rules: &self.rules,
            cache: &self.cache,
            backend: &self.backend,
            tools: &self.tools,
            conditions: &self.conditions,
            progress: &self.progress,
            request: &self.request,
            config_name: self.config_name.as_deref(),
        }
    }
}

pub fn run(arguments: &Arguments, build: &BuildArguments) -> Result<u8> {
    let mut job = Job::new(arguments, &build.config, build.filters.as_ref())?;
    job.request.output.clone_from(&build.output);
    job.request.until = build.until;
    job.request.jobs = build.jobs.map_or_else(cores, usize::from);
    job.request.subsets = config::named_subsets(&job.config.subsets, &build.subset)?;
    let built = job.pipeline().run()?;
    match arguments.format {
        Format::Human => print!("{}", table::closing(&built)),
        Format::Json => println!("{}", as_json(&built)),
    }
    Ok(u8::from(!built.failed.is_empty()))
}

/// The config as the manifest shows it, with the rules in force.
fn public_config(config: &Config, rules: &RuleSet) -> serde_json::Value {
    let mut public = config::to_public_json(config);
    public["rules"] = json!({
        "sha256": rules.sha256(),
        "ids": rules.rules().iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(),
    });
    public
}

fn as_json(built: &Built) -> serde_json::Value {
    json!({
        "summary": built.summary,
        "failed": built.failed,
        "parity": built.finished.iter().filter_map(|finished| {
            let record = finished.record.as_ref()?;
            Some((finished.slug.to_string(), serde_json::to_value(&record.parity).ok()?))
        }).collect::<serde_json::Map<_, _>>(),
    })
}
