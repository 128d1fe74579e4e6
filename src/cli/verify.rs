//! `gistmill verify`: is a dataset on this machine what it says?

mod masked;
mod pairs;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;

use super::restored::{RestoreArguments, Restored};
use super::{Arguments, Format};
use crate::config::Repo;
use crate::dataset::Dataset;
use crate::dataset::images;
use crate::dataset::manifest::FILE;
use crate::dataset::schema::InstanceRow;
use crate::error::{Error, Result};
use crate::machine;
use crate::pipeline::prepare::Prepared;
use crate::publish;
use crate::record::family::Unit;
use crate::record::id::RepoSlug;
use crate::store::write_json;
use crate::terminal;
use crate::text::count;
use crate::verify::instances::{self, Times, Verified};
use crate::verify::{Repository, Verification, files, tables};

/// Differences that are said; all are in the file of findings.
const MOST_SAID: usize = 100;

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
    let dataset = Dataset::open_any(&asked.restore.dataset)?;
    let manifest = &dataset.manifest;
    let mut found = Verification {
        dataset: manifest.name.to_string(),
        family: manifest.family,
        version: manifest.version.to_string(),
        files: files::check(
            &dataset.folder()?,
            &dataset.hashes()?,
            &[&[FILE, images::FILE][..], &publish::WRITTEN].concat(),
        )?,
        tables: tables::compare(&dataset)?,
        ..Verification::default()
    };
    let inside = files::inside_trees(&dataset.folder()?, &manifest.trees, &found.files)?;
    found.files.extend(inside);
    let run = match manifest.family.unit() {
        Unit::Group => run_tests(arguments, asked, &mut found),
        Unit::File => masked::run(arguments, asked, &mut found),
        Unit::Pair => pairs::run(arguments, asked, &mut found),
    };
    match run {
        Ok(()) => {}
        // What was changed is reported before it is reported that it cannot be run.
        Err(error) if !found.files.is_empty() || !found.tables.differences.is_empty() => {
            crate::interrupt::check()?;
            found.refused = Some(told(&error));
        }
        Err(error) => return Err(error),
    }
    write_json(&asked.output, &found)?;
    match arguments.format {
        Format::Json => terminal::json(&json!(found)),
        Format::Human | Format::Csv => {
            print(&found);
            terminal::say(&format!("findings: {}", asked.output.display()));
        }
    }
    Ok(u8::from(!found.agrees()))
}

/// Runs the instances of a dataset whose instances are tests.
fn run_tests(arguments: &Arguments, asked: &VerifyArguments, found: &mut Verification) -> Result<()> {
    let (mut restored, others) = asked.restore.open_what_can_be_run(arguments)?;
    let all = restored.instances.len();
    if let Some(size) = asked.sample {
        restored.sample(size as usize);
    }
    not_run(&mut found.tables.unverified, asked, (restored.instances.len(), all));
    if asked.cold_runs == 0 {
        found.tables.unverified.push("cold runs of the entry commands: --cold-runs 0".to_owned());
    }
    found.repositories.extend(not_restored(&restored, &others));
    for repo in restored.repositories() {
        found.repositories.push(repository(&restored, repo, asked, &mut found.machine)?);
    }
    Ok(())
}

/// The rows that are run, drawn where a sample is asked for; what is left out, and what cannot be run, is found.
fn sampled<R: InstanceRow>(
    asked: &VerifyArguments,
    (restored, others): (&mut Restored, &[(RepoSlug, Error)]),
    mut rows: Vec<R>,
    (found, left_out): (&mut Verification, &str),
) -> Vec<R> {
    let all = rows.len();
    if let Some(size) = asked.sample {
        let seed = restored.job.config.dataset.seed;
        rows.sort_by_cached_key(|one| one.head().instance_id.sample_order(&one.head().slug, seed));
        rows.truncate(size as usize);
    }
    let slugs: BTreeSet<&RepoSlug> = rows.iter().map(|one| &one.head().slug).collect();
    restored.job.config.repos.retain(|repo| slugs.contains(&repo.slug));
    not_run(&mut found.tables.unverified, asked, (rows.len(), all));
    found.tables.unverified.push(left_out.to_owned());
    found.repositories.extend(unknown_of(restored, slugs, others));
    rows
}

/// What a run leaves out.
fn not_run(unverified: &mut Vec<String>, asked: &VerifyArguments, (run, all): (usize, usize)) {
    if run < all {
        unverified.push(format!("what {} of {all} instances show: --sample left them out", all - run));
    }
    if asked.restore.is_part() {
        unverified.push("what instances show that were not asked for".to_owned());
    }
}

/// Repositories that have instances of which nothing can be run: the dataset does not say all that it takes, or has no
/// configuration of them.
fn not_restored(restored: &Restored, others: &[(RepoSlug, Error)]) -> Vec<Repository> {
    let slugs: BTreeSet<&RepoSlug> = restored.instances.iter().map(|one| &one.slug).collect();
    unknown_of(restored, slugs, others)
}

fn unknown_of(
    restored: &Restored,
    slugs: BTreeSet<&RepoSlug>,
    others: &[(RepoSlug, Error)],
) -> Vec<Repository> {
    let known = |slug: &RepoSlug| restored.repositories().iter().any(|repo| repo.slug == *slug);
    let missing = slugs.into_iter().filter(|slug| !known(slug));
    let why = |slug: &RepoSlug| match others.iter().find(|(other, _)| other == slug) {
        Some((_, error)) => {
            let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{}{hint}", told(error))
        }
        None => format!("manifest.json has no configuration of {slug}: nothing of it was run"),
    };
    let repository = |slug: &RepoSlug| Repository {
        slug: slug.to_string(),
        environment: Some(why(slug)),
        instances: Vec::new(),
    };
    missing.map(repository).collect()
}

fn repository(
    restored: &Restored,
    repo: &Repo,
    asked: &VerifyArguments,
    machine: &mut Vec<String>,
) -> Result<Repository> {
    let (mut found, prepared) = prepare(restored, repo, machine)?;
    let Some(prepared) = prepared else { return Ok(found) };
    let times = Times { attempts: asked.attempts, cold_runs: asked.cold_runs };
    let instances = restored.golden_of(&repo.slug)?;
    let runs = instances.len() as u64 * u64::from(times.attempts + times.cold_runs + 2);
    let stage = restored.job.progress.stage(&format!("{} verify", repo.slug), runs);
    found.instances = instances::verify(&prepared, &instances, times, &|| stage.step())?;
    Ok(found)
}

/// The environment of a repository; what is wrong with it is in the first.
fn prepare(
    restored: &Restored,
    repo: &Repo,
    machine: &mut Vec<String>,
) -> Result<(Repository, Option<Prepared>)> {
    let mut found = Repository { slug: repo.slug.to_string(), environment: None, instances: Vec::new() };
    let prepared = match restored.prepare(repo, None) {
        Ok(prepared) => prepared,
        Err(error) => {
            crate::interrupt::check()?;
            found.environment = Some(told(&error));
            return Ok((found, None));
        }
    };
    let here = machine::facts(&prepared.lab, &repo.slug);
    machine.extend(restored.dataset.manifest.machine.differences(&here));
    machine.sort();
    machine.dedup();
    Ok((found, Some(prepared)))
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
        } else if found.family.unit() != Unit::Group {
            format!(
                "{}: environment restored; as recorded: {}",
                repository.slug,
                of(&|one| one.attempts == one.agreeing && one.attempts > 0),
            )
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
    print_tables(found);
    let files = if found.files.is_empty() { "all files are as the manifest says" } else { "files differ" };
    let verdict = match (found.is_empty(), found.agrees()) {
        (true, _) => "NOT verified: there is no instance that could be run",
        (_, true) => "verified, but for what is not verified (see above)",
        _ => "NOT verified",
    };
    terminal::say(&format!("{files}; {verdict}"));
}

/// Where the dataset contradicts itself, and what nothing says twice.
fn print_tables(found: &Verification) {
    let tables = &found.tables;
    for one in tables.differences.iter().take(MOST_SAID) {
        let place: Vec<&str> = [&one.file, &one.row, &one.column]
            .into_iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        let expected = if one.expected.is_empty() {
            String::new()
        } else {
            format!(", and should say {}", one.expected)
        };
        terminal::say(&terminal::one_line(&format!("{}: {}{expected}", place.join(", "), one.said)));
    }
    let more = tables.differences.len().saturating_sub(MOST_SAID) + tables.more;
    if more > 0 {
        terminal::say(&format!("{} more", count(more, "difference")));
    }
    for what in &tables.unverified {
        terminal::say(&terminal::one_line(&format!("not verified: {what}")));
    }
}
