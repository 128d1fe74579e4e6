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

pub fn run(arguments: &Arguments, build: &BuildArguments) -> Result<u8> {
    let config = configuration(&build.config)?;
    let subsets = config::named_subsets(&config.subsets, &build.subset)?;
    let rules = rules(build.filters.as_ref())?;
    let cache = arguments.cache()?;
    let backend = LocalBackend::new(&own_program()?)?;
    let tools = Tools::find(&cache)?;
    let progress = Progress::for_terminal();
    let request = Request {
        output: build.output.clone(),
        only: build.config.only.clone(),
        until: build.until,
        jobs: build.jobs.map_or_else(cores, usize::from),
        subsets,
    };
    let pipeline = Pipeline {
        config: &config,
        public_config: public_config(&config, &rules),
        rules: &rules,
        cache: &cache,
        backend: &backend,
        tools: &tools,
        progress: &progress,
        request: &request,
    };
    if let Some(repo) = config.repos.iter().find(|repo| repo.backend == config::BackendKind::Docker) {
        return Err(super::check::docker_is_not_built().at(&repo.slug));
    }
    let built = pipeline.run()?;
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
