//! `gistmill witness`: gold solutions for the instances of a dataset, made by a program and judged by the referee.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::build::{Job, cores};
use super::score::{check_environment, golden, originals};
use super::{Arguments, Format};
use crate::backend::local::Strictness;
use crate::dataset::Dataset;
use crate::dataset::witnesses;
use crate::error::Result;
use crate::family::Family;
use crate::pipeline::prepare::Preparation;
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::Instance;
use crate::record::witness::{MADE, Witness};
use crate::report;
use crate::store::Lock;
use crate::terminal;
use crate::witness::kept;

#[derive(Debug, clap::Args)]
pub(super) struct WitnessArguments {
    /// The dataset directory, `output/<name>/<version>`
    dataset: PathBuf,
    /// Where a repository is, when the dataset does not say: SLUG=<path or URL of git>
    #[arg(long, value_name = "SLUG=PLACE", value_parser = super::score::parse_place)]
    source: Vec<(RepoSlug, String)>,
    /// Give the tests the value of this variable, which the dataset names and does not publish
    #[arg(long, value_name = "NAME")]
    variable: Vec<String>,
    /// Only instances of this repository; may be given several times
    #[arg(long, value_name = "SLUG", value_parser = super::parse_slug)]
    only: Vec<RepoSlug>,
    /// What a run of a candidate may take, in seconds, up to the group's limit of the build
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Instances at the same time; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// What to do on a machine that does not allow all of the sandbox
    #[arg(long, value_enum, default_value_t)]
    isolation: Strictness,
}

/// Makes witnesses and writes them into the dataset.
///
/// # Errors
/// Usage errors: not a dataset; the machine's; an interruption, after which the same command goes on where it was.
pub(super) fn run(arguments: &Arguments, asked: &WitnessArguments) -> Result<u8> {
    let _lock = Lock::take(&asked.dataset)?;
    let dataset = Dataset::open(&asked.dataset)?;
    let mut instances = dataset.instances()?;
    instances.retain(|one| asked.only.is_empty() || asked.only.contains(&one.slug));
    let slugs: BTreeSet<RepoSlug> = instances.iter().map(|one| one.slug.clone()).collect();
    let golden = golden(&dataset)?;
    let places: BTreeMap<RepoSlug, String> = asked.source.iter().cloned().collect();
    let mut job = Job::of_dataset(arguments, &dataset, &places, &slugs, &asked.variable, asked.isolation)?;
    job.request.jobs = asked.jobs.map_or_else(cores, usize::from);
    let file = Family::Gistify.submission();
    let mut made: BTreeMap<InstanceId, Witness> = BTreeMap::new();
    for repo in &job.config.repos {
        let of_repo: Vec<&Instance> = instances.iter().filter(|one| one.slug == repo.slug).collect();
        let pipeline = job.pipeline();
        let mut prepared = Preparation { pipeline: &pipeline, repo }.run()?;
        let limit = Duration::from_secs(asked.timeout);
        let (case, group) = prepared.lab.timeouts;
        prepared.lab.timeouts = (case.min(limit), group.min(limit));
        check_environment(&dataset, &prepared)?;
        let originals = originals(&of_repo, &golden)?;
        let title = format!("{} witness", repo.slug);
        made.extend(kept::of_repository(&prepared.lab, job.cache(), file, &originals, |missing| {
            let stage = job.progress().stage(&title, missing);
            move || stage.step()
        })?);
    }
    witnesses::add(&dataset, &made)?;
    report::render(&asked.dataset)?;
    say(arguments, asked, &made);
    Ok(0)
}

fn say(arguments: &Arguments, asked: &WitnessArguments, made: &BTreeMap<InstanceId, Witness>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for witness in made.values() {
        *counts.entry(witness.columns.witness.as_deref().unwrap_or_default()).or_default() += 1;
    }
    let has = counts.get(MADE).copied().unwrap_or(0);
    match arguments.format {
        Format::Json => terminal::json(&json!({
            "directory": asked.dataset, "instances": made.len(), "made": has, "results": counts,
        })),
        Format::Human => {
            terminal::say(&format!("{has} of {} instances have a witness", made.len()));
            for (cause, count) in counts.iter().filter(|(cause, _)| **cause != MADE) {
                terminal::say(&format!("  {cause}: {count}"));
            }
            terminal::say(&format!("written to {}", asked.dataset.join(witnesses::FOLDER).display()));
        }
    }
}
