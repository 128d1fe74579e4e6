//! `gistmill score`: submissions against a dataset.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::build::{Job, cores};
use super::{Arguments, Format};
use crate::backend::local::Strictness;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::family::Family;
use crate::pipeline::prepare::{Preparation, Prepared};
use crate::record::id::RepoSlug;
use crate::record::instance::Instance;
use crate::record::outcome::{CaseResult, Outcome};
use crate::referee::evaluate::{Judged, Original, Referee};
use crate::referee::ground::{Files, Ground};
use crate::referee::submissions::{self, RunOf, Submission};
use crate::referee::write::{self, Report, Scored};
use crate::score::Violation;
use crate::store::journal::Journal;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(crate) struct ScoreArguments {
    /// The dataset directory, `output/<name>/<version>`
    dataset: PathBuf,
    /// Folders with `<instance>/concise.py`, `preds.json`, or JSON lines; each is a run
    #[arg(required = true)]
    submissions: Vec<PathBuf>,
    /// What of the repository a submission sees
    #[arg(long, value_enum, default_value = "data")]
    files: Files,
    /// Note this violation without counting it as a failure
    #[arg(long, value_name = "ID", value_parser = parse_violation)]
    allow: Vec<Violation>,
    /// Where a repository is, when the dataset does not say: SLUG=<path or URL of git>
    #[arg(long, value_name = "SLUG=PLACE", value_parser = parse_place)]
    source: Vec<(RepoSlug, String)>,
    /// Give the tests the value of this variable, which the dataset names and does not publish
    #[arg(long, value_name = "NAME")]
    variable: Vec<String>,
    /// Only instances of this repository; may be given several times
    #[arg(long, value_name = "SLUG", value_parser = super::parse_slug)]
    only: Vec<RepoSlug>,
    /// Where scores are written: DIR/<dataset>/<version>/<run>/
    #[arg(long, default_value = "scores", value_name = "DIR")]
    output: PathBuf,
    /// What a run of a submission may take, in seconds, up to the group's limit of the build
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Submissions at the same time; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// What to do on a machine that does not allow all of the sandbox
    #[arg(long, value_enum, default_value_t)]
    isolation: Strictness,
}

fn parse_violation(text: &str) -> std::result::Result<Violation, String> {
    serde_json::from_value(Value::String(text.to_owned()))
        .map_err(|_| "give registers-repository-module or neutralized-test".to_owned())
}

fn parse_place(text: &str) -> std::result::Result<(RepoSlug, String), String> {
    let (slug, place) = text.split_once('=').ok_or("give SLUG=<path or URL of git>")?;
    Ok((super::parse_slug(slug)?, place.to_owned()))
}

/// One journal row: a judgement by its key.
#[derive(serde::Serialize, serde::Deserialize)]
struct Kept {
    key: String,
    judged: Judged,
}

/// Scores submissions.
///
/// # Errors
/// Usage errors: not a dataset, not submissions of it; the machine's; an interruption, after which the same command goes
/// on where it was.
pub(crate) fn run(arguments: &Arguments, score: &ScoreArguments) -> Result<u8> {
    let dataset = Dataset::open(&score.dataset)?;
    let mut instances = dataset.instances()?;
    let known: BTreeSet<String> = instances.iter().map(|one| one.instance_id.to_string()).collect();
    let file = Family::Gistify.submission();
    let mut runs = Vec::new();
    for path in &score.submissions {
        runs.push(submissions::read(path, file, &known)?);
    }
    refuse_twins(&runs)?;
    instances.retain(|one| score.only.is_empty() || score.only.contains(&one.slug));
    let slugs: BTreeSet<RepoSlug> = instances.iter().map(|one| one.slug.clone()).collect();
    let golden = golden(&dataset)?;
    let places: BTreeMap<RepoSlug, String> = score.source.iter().cloned().collect();
    let mut job = Job::of_dataset(arguments, &dataset, &places, &slugs, &score.variable, score.isolation)?;
    job.request.jobs = score.jobs.map_or_else(cores, usize::from);
    let empty = Submission::default();
    let mut judged: BTreeMap<(String, usize), Judged> = BTreeMap::new();
    for repo in &job.config.repos {
        let of_repo: Vec<&Instance> = instances.iter().filter(|one| one.slug == repo.slug).collect();
        let pipeline = job.pipeline();
        let mut prepared = Preparation { pipeline: &pipeline, repo }.run()?;
        let limit = Duration::from_secs(score.timeout);
        let (case, group) = prepared.lab.timeouts;
        prepared.lab.timeouts = (case.min(limit), group.min(limit));
        check_environment(&dataset, &prepared)?;
        let ground = Ground::new(&prepared.lab, job.cache(), score.files, file)?;
        let originals = originals(&of_repo, &golden)?;
        let wanted: Vec<(&Original<'_>, &Submission, (String, usize))> = runs
            .iter()
            .enumerate()
            .flat_map(|(at, run)| originals.iter().map(move |one| (at, run, one)))
            .map(|(at, run, original)| {
                let id = original.instance.instance_id.to_string();
                (original, run.submissions.get(&id).unwrap_or(&empty), (id, at))
            })
            .collect();
        judge_repository(&job, (&prepared, &ground), score, &wanted, &mut judged)?;
    }
    let config = &job.config.dataset;
    let place = score.output.join(&config.name).join(&config.version);
    report(arguments, &place, &instances, &runs, judged)
}

/// Judges what is not judged yet.
fn judge_repository(
    job: &Job,
    (prepared, ground): (&Prepared, &Ground),
    score: &ScoreArguments,
    wanted: &[(&Original<'_>, &Submission, (String, usize))],
    judged: &mut BTreeMap<(String, usize), Judged>,
) -> Result<()> {
    let allowed: BTreeSet<Violation> = score.allow.iter().copied().collect();
    let file = Family::Gistify.submission();
    let compare = job.config.screen.compare;
    let referee = Referee { lab: &prepared.lab, ground, file, allowed: &allowed, compare };
    let (mut journal, rows) = Journal::open::<Kept>(&prepared.lab.folder.join("scores"))?;
    let known: BTreeMap<String, Judged> = rows.into_iter().map(|row| (row.key, row.judged)).collect();
    let keys: Vec<String> = wanted
        .iter()
        .map(|(original, submission, _)| referee.key(original, submission.text.as_deref()))
        .collect();
    let missing: Vec<usize> = (0..wanted.len()).filter(|at| !known.contains_key(&keys[*at])).collect();
    let stage = job.progress().stage(&format!("{} score", prepared.pinned.slug), missing.len() as u64);
    // In portions, so that an interruption costs one of them.
    for part in missing.chunks(PORTION) {
        let pairs: Vec<(&Original<'_>, &Submission)> =
            part.iter().map(|at| (wanted[*at].0, wanted[*at].1)).collect();
        let made = referee.judge(&pairs, &mut || stage.step())?;
        for (at, one) in part.iter().zip(made) {
            journal.append(&Kept { key: keys[*at].clone(), judged: one.clone() })?;
            judged.insert(wanted[*at].2.clone(), one);
        }
        journal.sync()?;
    }
    for (at, (_, _, place)) in wanted.iter().enumerate() {
        if let Some(one) = known.get(&keys[at]) {
            judged.insert(place.clone(), one.clone());
        }
    }
    Ok(())
}

/// Submissions that are judged together.
const PORTION: usize = 200;

fn refuse_twins(runs: &[RunOf]) -> Result<()> {
    let mut names = BTreeSet::new();
    match runs.iter().find(|run| !names.insert(run.name.as_str())) {
        Some(run) => Err(Error::usage(format!("two runs are called `{}`", run.name))
            .with_hint("rename one of the files, or set `name` in its run.json")),
        None => Ok(()),
    }
}

/// Tree and environment must be those that the dataset was built from.
fn check_environment(dataset: &Dataset, prepared: &Prepared) -> Result<()> {
    let (slug, built) = (&prepared.pinned.slug, &prepared.lab.built);
    let environment = dataset.environment(slug)?;
    let tree = dataset.manifest.sources.get(slug.as_str()).map(|source| source.tree_sha256.as_str());
    if tree != Some(prepared.pinned.tree_sha256.as_str()) {
        return Err(Error::repository(format!(
            "the files of {slug} are not those that the dataset was built from"
        ))
        .with_hint("name the place of the same commit with --source, without uncommitted changes"));
    }
    if environment.lock_sha256 == built.lock_sha256 && environment.python == built.python {
        return Ok(());
    }
    Err(Error::repository(format!("the environment of {slug} is not the dataset's"))
        .with_detail(format!(
            "dataset: Python {}, lock {}\nhere: Python {}, lock {}",
            environment.python, environment.lock_sha256, built.python, built.lock_sha256
        ))
        .with_hint("install that Python; its lock is in the folder `environments` of the dataset"))
}

type Golden = BTreeMap<String, Vec<CaseResult>>;

/// What the originals showed, by instance id, in the order of the entry command.
fn golden(dataset: &Dataset) -> Result<Golden> {
    let table =
        dataset.table("cases", &["case_id", "instance_id", "outcome", "exception", "stdout", "stderr"])?;
    let (cases, instances) = (table.whole_texts("case_id")?, table.texts("instance_id")?);
    let (outcomes, exceptions) = (table.texts("outcome")?, table.texts("exception")?);
    let (stdout, stderr) = (table.whole_texts("stdout")?, table.whole_texts("stderr")?);
    let mut golden = Golden::new();
    for at in 0..table.rows() {
        let Some(id) = instances[at] else { continue };
        let outcome: Outcome = serde_json::from_value(json!(outcomes[at])).map_err(|error| {
            Error::usage(format!("cases.parquet: {} has no outcome", cases[at])).with_source(error)
        })?;
        golden.entry(id.to_owned()).or_default().push(CaseResult {
            case_id: cases[at].to_owned(),
            outcome,
            exception: exceptions[at].map(str::to_owned),
            stdout: stdout[at].to_owned(),
            stderr: stderr[at].to_owned(),
            message: String::new(),
            replaced: BTreeMap::new(),
            duration_ms: 0.0,
        });
    }
    Ok(golden)
}

fn originals<'a>(instances: &[&'a Instance], golden: &'a Golden) -> Result<Vec<Original<'a>>> {
    let original = |instance: &&'a Instance| {
        let golden = golden
            .get(instance.instance_id.as_str())
            .ok_or_else(|| Error::usage(format!("cases.parquet has no case of {}", instance.instance_id)))?;
        Ok(Original { instance, golden })
    };
    instances.iter().map(original).collect()
}

fn report(
    arguments: &Arguments,
    place: &Path,
    instances: &[Instance],
    runs: &[RunOf],
    mut judged: BTreeMap<(String, usize), Judged>,
) -> Result<u8> {
    let mut reports = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let nothing = Value::Null;
        let mut scored = Vec::new();
        for instance in instances {
            let id = instance.instance_id.to_string();
            let meta = run.submissions.get(&id).map_or(&nothing, |submission| &submission.meta);
            if let Some(judged) = judged.remove(&(id, at)) {
                scored.push(Scored { instance, run: &run.name, meta, judged });
            }
        }
        let absent =
            instances.iter().filter(|one| !run.submissions.contains_key(one.instance_id.as_str())).count();
        let report = Report::new(&run.name, &run.meta, absent, &scored.iter().collect::<Vec<_>>());
        write::run(&place.join(&run.name), &report, &scored)?;
        reports.push(report);
    }
    match arguments.format {
        Format::Json => terminal::json(&json!({ "directory": place, "runs": reports })),
        Format::Human => {
            for report in &reports {
                terminal::say(&line(report));
            }
            terminal::say(&format!("written to {}", place.display()));
        }
    }
    Ok(0)
}

fn line(report: &Report) -> String {
    let percent = |mean: crate::score::Mean| {
        mean.mean.map_or_else(|| "-".to_owned(), |rate| format!("{:.1} % (n = {})", 100.0 * rate, mean.n))
    };
    let all = &report.all;
    let classes: Vec<String> = all
        .classes
        .iter()
        .filter(|class| class.n > 0)
        .filter_map(|class| {
            Some(format!("{} {}", serde_json::to_value(class.class).ok()?.as_str()?, class.n))
        })
        .collect();
    let failures =
        if classes.is_empty() { String::new() } else { format!("; failures: {}", classes.join(", ")) };
    let absent = if report.absent > 0 { format!("; absent {}", report.absent) } else { String::new() };
    terminal::one_line(&format!(
        "{}: fidelity {}, line execution {}, line existence {}, test F1 {}{failures}{absent}",
        report.run,
        percent(all.fidelity),
        percent(all.line_execution),
        percent(all.line_existence),
        percent(all.test_f1)
    ))
    .into_owned()
}
