//! `gistmill build`

use std::path::PathBuf;

use serde_json::json;

use super::inputs::Inputs;
use super::{Arguments, ConfigArguments, Format, table};
use crate::backend::local::LocalBackend;
use crate::config::{self, Config};
use crate::environment::Tools;
use crate::error::{Error, Result};
use crate::pipeline::{Built, Pipeline, Request, Stage};
use crate::progress::Progress;
use crate::rules::RuleSet;

#[derive(Debug, clap::Args)]
pub struct BuildArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Stop after this stage
    #[arg(long, value_enum, default_value = "dataset")]
    until: Stage,
    /// Attempts at the same time; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
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
    let inputs = Inputs::choose(&build.config);
    eprintln!("config: {}", inputs.describe_config());
    eprintln!("rules: {}", inputs.describe_rules());
    let config = inputs.config(&build.config.only)?;
    let rules = inputs.rules()?;
    let cache = arguments.cache()?;
    let backend = LocalBackend::new(&own_program()?)?;
    let tools = Tools::find(&cache)?;
    let progress = Progress::for_terminal();
    let request = Request {
        output: build.config.output.clone(),
        only: build.config.only.clone(),
        until: build.until,
        jobs: build.jobs.map_or_else(cores, usize::from),
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
        "files": rules.files(),
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
