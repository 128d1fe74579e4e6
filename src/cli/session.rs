//! What a command that runs tests works with: the configuration and the machine, looked at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::inputs::Inputs;
use super::{Arguments, ConfigArguments};
use crate::backend::Isolation;
use crate::backend::local::Strictness;
use crate::config::{self, Config, Locked, SourceSpec};
use crate::dataset::Dataset;
use crate::environment::Tools;
use crate::error::{Error, Result};
use crate::log;
use crate::machine::Machine;
use crate::pipeline::Request;
pub(super) use crate::pipeline::session::Session;
use crate::progress::Progress;
use crate::record::family::{Family, Unit};
use crate::record::id::RepoSlug;
use crate::rules::RuleSet;
use crate::source;
use crate::terminal::{self, Text};

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

/// Reads the configuration and looks at the machine.
///
/// # Errors
/// Bad configuration or rules; a machine that lacks something.
pub(super) fn open(arguments: &Arguments, selected: &ConfigArguments) -> Result<Session> {
    with(arguments, selected, |_| {})
}

/// Reads the configuration, changes it, and looks at the machine.
///
/// # Errors
/// Those of [`open`].
pub(super) fn with(
    arguments: &Arguments,
    selected: &ConfigArguments,
    change: impl FnOnce(&mut Config),
) -> Result<Session> {
    let inputs = Inputs::choose(selected);
    terminal::note(&format!("config: {}", inputs.describe_config()));
    terminal::note(&format!("rules: {}", inputs.describe_rules()));
    let mut config = inputs.config(&selected.only, &selected.output)?;
    change(&mut config);
    config.repos.iter_mut().try_for_each(source::outside::read)?;
    let rules = match config.dataset.family.unit() {
        Unit::Group => inputs.rules()?,
        // A short trace says nothing about a file that many tests reach, and nothing about a refactoring.
        Unit::File | Unit::Pair => inputs.rules()?.without("trivial-trace"),
    };
    let public = public_config(&config, &rules);
    let mut session =
        assemble(arguments, (config, public, rules), &selected.only, selected.isolation.isolation)?;
    tracing::info!("config: {}; rules: {}", inputs.describe_config(), inputs.describe_rules());
    session.request.output.clone_from(&selected.output);
    session.config_name = inputs.config_name();
    Ok(session)
}

/// A session with a configuration that no file has.
///
/// # Errors
/// A machine that lacks something.
pub(super) fn of_config(arguments: &Arguments, config: Config, isolation: Strictness) -> Result<Session> {
    let rules = RuleSet::shipped();
    let public = public_config(&config, &rules);
    assemble(arguments, (config, public, rules), &[], isolation)
}

/// What the user lets a dataset have.
pub(super) struct Trust<'a> {
    /// Names of variables that the tests see.
    pub(super) variables: &'a [String],
    /// Whether it may choose images, and what is installed in them.
    pub(super) containers: bool,
}

/// A session in the environments of a dataset; only those of `slugs`. The values of `variables` come from the
/// environment of this command.
///
/// # Errors
/// A configuration that is not published whole; a machine that lacks something.
pub(super) fn of_dataset(
    arguments: &Arguments,
    dataset: &Dataset,
    asked: (&BTreeMap<RepoSlug, String>, &BTreeSet<RepoSlug>),
    trust: &Trust<'_>,
    isolation: Strictness,
) -> Result<Session> {
    let config = config_of_dataset(dataset, asked, trust)?;
    let public = dataset.manifest.config.clone();
    assemble(arguments, (config, public, RuleSet::default()), &[], isolation)
}

/// The configuration of these repositories of a dataset, with what it locks.
///
/// # Errors
/// A configuration that is not published whole.
pub(super) fn config_of_dataset(
    dataset: &Dataset,
    (places, slugs): (&BTreeMap<RepoSlug, String>, &BTreeSet<RepoSlug>),
    trust: &Trust<'_>,
) -> Result<Config> {
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
        let python = dataset.environment(&repo.slug)?.python.clone();
        let asked_python = repo.python.replace(python);
        repo.locked = Some(Locked { text: dataset.lock(&repo.slug)?, asked_python });
        // A pair is locked at the time of its later tree, which is not that of the tree that is restored.
        if config.dataset.family == Family::Codetaste && repo.exclude_newer.is_none() {
            repo.exclude_newer = dataset.cutoff(&repo.slug)?;
        }
    }
    Ok(config)
}

/// Looks at the machine.
fn assemble(
    arguments: &Arguments,
    (config, public_config, rules): (Config, serde_json::Value, RuleSet),
    only: &[RepoSlug],
    isolation: Strictness,
) -> Result<Session> {
    let cache = arguments.cache()?;
    log::start(&cache)?;
    let machine = Machine::new(&own_program()?, &cache, &config, only, (isolation, arguments.engine))?;
    if let Some(isolation) = machine.local_isolation().filter(|_| !arguments.quiet) {
        warn_of_missing(&isolation);
    }
    Ok(Session {
        public_config,
        tools: Tools::find(&cache)?,
        progress: Progress::for_terminal(),
        request: Request { only: only.to_vec(), ..Request::whole(PathBuf::new(), cores()) },
        config_name: None,
        config,
        rules,
        cache,
        machine,
    })
}

/// The config as the manifest shows it, with the rules in force.
fn public_config(config: &Config, rules: &RuleSet) -> serde_json::Value {
    let mut public = config::to_public_json(config);
    public["rules"] = serde_json::json!({
        "sha256": rules.sha256(),
        "ids": rules.rules().iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(),
        "files": rules.files(),
    });
    public
}
