//! `gistmill verify`: is a dataset on this machine what it says?

use std::path::PathBuf;

use serde_json::json;

use super::restored::{RestoreArguments, Restored};
use super::{Arguments, Format};
use crate::config::Repo;
use crate::dataset::Dataset;
use crate::dataset::manifest::FILE;
use crate::error::{Error, Result};
use crate::machine;
use crate::store::write_json;
use crate::terminal;
use crate::verify::instances::{self, Times, Verified};
use crate::verify::{Repository, Verification, files};

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    restore: RestoreArguments,
    /// Only so many instances, drawn by the seed of the dataset
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// Attempts of each instance in the fork tree
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    attempts: u32,
    /// Cold runs of each literal entry command
    #[arg(long, value_name = "N", default_value_t = 1)]
    cold_runs: u32,
    /// Where the findings are written
    #[arg(long, default_value = "verification.json", value_name = "FILE")]
    output: PathBuf,
}

/// Verifies a dataset. Exit code 1 when something is not as it says.
///
/// # Errors
/// Usage errors: not a dataset; the machine's; an interruption.
pub(crate) fn run(arguments: &Arguments, asked: &VerifyArguments) -> Result<u8> {
    let dataset = Dataset::open(&asked.restore.dataset)?;
    let manifest = &dataset.manifest;
    let mut found = Verification {
        dataset: manifest.name.clone(),
        version: manifest.version.clone(),
        files: files::check(&dataset.directory, &manifest.files, FILE)?,
        ..Verification::default()
    };
    let inside = files::inside_trees(&dataset.directory, &manifest.trees, &found.files)?;
    found.files.extend(inside);
    match asked.restore.open(arguments) {
        Ok(mut restored) => {
            if let Some(size) = asked.sample {
                restored.sample(size as usize);
            }
            for repo in restored.repositories() {
                found.repositories.push(repository(&restored, repo, asked, &mut found.machine)?);
            }
        }
        // What was changed is told before that it cannot be run.
        Err(error) if !found.files.is_empty() => found.refused = Some(told(&error)),
        Err(error) => return Err(error),
    }
    write_json(&asked.output, &found)?;
    match arguments.format {
        Format::Json => terminal::json(&json!(found)),
        Format::Human | Format::Csv => print(&found),
    }
    Ok(u8::from(!found.agrees()))
}

fn repository(
    restored: &Restored,
    repo: &Repo,
    asked: &VerifyArguments,
    machine: &mut Vec<String>,
) -> Result<Repository> {
    let mut found = Repository { slug: repo.slug.to_string(), environment: None, instances: Vec::new() };
    let prepared = match restored.prepare(repo, None) {
        Ok(prepared) => prepared,
        Err(error) => {
            crate::interrupt::check()?;
            found.environment = Some(told(&error));
            return Ok(found);
        }
    };
    let here = machine::facts(&prepared.lab, &repo.slug);
    machine.extend(restored.dataset.manifest.machine.differences(&here));
    machine.sort();
    machine.dedup();
    let times = Times { attempts: asked.attempts, cold_runs: asked.cold_runs };
    let instances = restored.golden_of(&repo.slug)?;
    let runs = instances.len() as u64 * u64::from(times.attempts + times.cold_runs + 2);
    let stage = restored.job.progress.stage(&format!("{} verify", repo.slug), runs);
    found.instances = instances::verify(&prepared, &instances, times, &|| stage.step())?;
    Ok(found)
}

fn told(error: &Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{error}{detail}")
}

fn print(found: &Verification) {
    for difference in &found.machine {
        terminal::say(&terminal::one_line(difference));
    }
    for problem in &found.files {
        terminal::say(&terminal::one_line(&format!("{} {}", problem.file, problem.trouble.as_str())));
    }
    for text in
        found.refused.iter().chain(found.repositories.iter().filter_map(|one| one.environment.as_ref()))
    {
        terminal::say(&terminal::one_line(text));
    }
    for instance in found.repositories.iter().flat_map(|one| &one.instances).filter(|one| !one.agrees()) {
        let head = format!("{} {}: {}", instance.instance_id, instance.group_id, found.cause(instance));
        terminal::say(&terminal::one_line(&head));
        for text in instance.tables.iter().chain(&instance.differences).chain(&instance.trace) {
            terminal::say(&format!("  {}", terminal::one_line(text)));
        }
    }
    for repository in &found.repositories {
        let all = &repository.instances;
        let of = |agrees: &dyn Fn(&Verified) -> bool| {
            format!("{} of {}", all.iter().filter(|one| agrees(one)).count(), all.len())
        };
        let line = if repository.environment.is_some() {
            format!("{}: the environment cannot be restored", repository.slug)
        } else {
            format!(
                "{}: environment restored; as recorded: in the fork tree {}, cold {}, trace {}",
                repository.slug,
                of(&|one| one.attempts == one.agreeing && one.attempts > 0),
                of(&|one| one.cold_runs == one.cold_agreeing),
                of(&|one| one.trace.is_empty()),
            )
        };
        terminal::say(&terminal::one_line(&line));
    }
    let files = if found.files.is_empty() { "all files are as the manifest says" } else { "files differ" };
    let verdict = if found.agrees() { "verified" } else { "NOT verified" };
    terminal::say(&format!("{files}; {verdict}"));
}
