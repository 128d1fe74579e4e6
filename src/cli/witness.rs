//! `gistmill witness`: gold solutions for the instances of a dataset, made by a program and judged by the referee.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::restored::RestoreArguments;
use super::{Arguments, Format};
use crate::dataset::witnesses;
use crate::error::Result;
use crate::record::id::InstanceId;
use crate::record::witness::{MADE, Witness};
use crate::referee::gistify::witness::kept;
use crate::report;
use crate::store::Lock;
use crate::terminal;
use crate::text::count;

#[derive(Debug, clap::Args)]
pub(super) struct WitnessArguments {
    #[command(flatten)]
    restore: RestoreArguments,
    /// What a run of a candidate may take, in seconds, up to the group's limit of the build
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
}

/// Makes witnesses and writes them into the dataset.
///
/// # Errors
/// Usage errors: not a dataset; the machine's; an interruption, after which the same command goes on where it was.
pub(super) fn run(arguments: &Arguments, asked: &WitnessArguments) -> Result<u8> {
    let directory = &asked.restore.dataset;
    let _lock = Lock::take(directory)?;
    let mut restored = asked.restore.open(arguments)?;
    restored.take_variants(None)?;
    let job = &restored.job;
    let file = restored.family().submission();
    let mut made: BTreeMap<InstanceId, Witness> = BTreeMap::new();
    for repo in restored.repositories() {
        let prepared = restored.prepare(repo, Some(Duration::from_secs(asked.timeout)))?;
        let originals = restored.originals(&repo.slug)?;
        let title = format!("{} witness", repo.slug);
        let demand = kept::Demand { file, drops_variants: false };
        made.extend(kept::of_repository(&prepared.lab, &job.cache, demand, &originals, |missing| {
            let stage = job.progress.stage(&title, missing);
            move || stage.step()
        })?);
    }
    witnesses::add(&restored.dataset, &made)?;
    report::render(directory)?;
    say(arguments, directory, &made);
    Ok(0)
}

fn say(arguments: &Arguments, directory: &Path, made: &BTreeMap<InstanceId, Witness>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for witness in made.values() {
        *counts.entry(witness.columns.witness.as_deref().unwrap_or_default()).or_default() += 1;
    }
    let has = counts.get(MADE).copied().unwrap_or(0);
    match arguments.format {
        Format::Json => terminal::json(&json!({
            "directory": directory, "instances": made.len(), "made": has, "results": counts,
        })),
        Format::Human | Format::Csv => {
            terminal::say(&format!("{has} of {} have a witness", count(made.len(), "instance")));
            for (cause, count) in counts.iter().filter(|(cause, _)| **cause != MADE) {
                terminal::say(&format!("  {cause}: {count}"));
            }
            terminal::say(&format!("written to {}", directory.join(witnesses::FOLDER).display()));
        }
    }
}
