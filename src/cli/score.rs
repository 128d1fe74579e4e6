//! `gistmill score`: submissions against a dataset.

mod codetaste;
pub(super) mod judged;
pub(super) mod policy;
pub(super) mod recube;
pub(super) mod rules;
mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::restored::{RestoreArguments, Restored};
use super::{Arguments, Format};
use crate::config;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::record::family::Unit;
use crate::record::instance::Instance;
use crate::referee::gistify::ground::{Code, Ground, needed_by_pytest};
use crate::referee::gistify::judged::Judged;
use crate::referee::gistify::self_check::{Checked, SelfCheck, UNSOLVABLE};
use crate::referee::gistify::tables::Run;
use crate::referee::page::{self, Scores};
use crate::referee::scored::Scored;
use crate::referee::submissions::{self, RunOf, Submission};
use crate::referee::write::{self, Report, Rules};
use crate::store::{read_json, write_json};
use crate::terminal;
use crate::text::count;
use judged::{AllJudged, Wanted, judge_repository};
use policy::PolicyArguments;

#[derive(Debug, clap::Args)]
pub(crate) struct ScoreArguments {
    #[command(flatten)]
    restore: RestoreArguments,
    /// Folders with `<instance>/concise.py`, `preds.json`, or JSON lines; each is a run
    #[arg(required_unless_present = "self_check")]
    submissions: Vec<PathBuf>,
    /// Put the referee itself on trial: the original tests are the submissions, in the whole tree
    #[arg(long, conflicts_with_all = ["submissions", "files", "attempts", "allow", "hidden"])]
    self_check: bool,
    #[command(flatten)]
    policy: PolicyArguments,
    /// Count instances without a submission as failures in what is printed, as the tables and the page do
    #[arg(long)]
    all: bool,
    /// Where scores are written: DIR/<dataset>/<version>/<run>/
    #[arg(long, default_value = "scores", value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    masked: recube::MaskedArguments,
    /// What the run is called, instead of what its run.json, its file or its folder says; once for each that is given
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// Replace the tables of a run of this name, also where other submissions or other settings made them
    #[arg(long)]
    replace: bool,
}

/// The file that says what the tables of a run were made of.
const MADE_OF: &str = "made-of.json";

/// What the tables of a run were made of.
#[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Made {
    submissions_sha256: String,
    settings: Value,
}

impl Made {
    fn of(run: &RunOf, score: &ScoreArguments) -> Self {
        let settings = json!({
            "files": score.policy.files.as_str(),
            "attempts": score.policy.attempts,
            "allow": score.policy.allow,
            "timeout": score.policy.timeout,
            "part": score.restore.part(),
        });
        Made { submissions_sha256: run.sha256(), settings }
    }

    /// Refuses to replace what was made of something else.
    fn check(&self, folder: &Path) -> Result<()> {
        let Some(before) = read_json::<Made>(&folder.join(MADE_OF))? else { return Ok(()) };
        if before == *self {
            return Ok(());
        }
        let other =
            if before.submissions_sha256 == self.submissions_sha256 { "settings" } else { "submissions" };
        Err(Error::usage(format!("{} has the scores of other {other}", folder.display()))
            .with_hint("give the run another name with --name, or replace it with --replace"))
    }
}

/// Scores submissions.
///
/// # Errors
/// Usage errors: not a dataset, not submissions of it; the machine's; an interruption, after which the same command goes
/// on where it was.
pub(crate) fn run(arguments: &Arguments, score: &ScoreArguments) -> Result<u8> {
    // What was handed in is read before anything is made.
    let dataset = Dataset::open_any(&score.restore.dataset)?;
    let file = match dataset.manifest.family.unit() {
        Unit::Group => dataset.manifest.family.submission(),
        Unit::File => return recube::run(arguments, score, &dataset),
        Unit::Pair => return codetaste::run(arguments, score, &dataset),
    };
    score.masked.refuse()?;
    let known = dataset.instances()?;
    let ids: BTreeSet<String> = known.iter().map(|one| one.instance_id.to_string()).collect();
    let (place, runs) = read_runs(score, &score.submissions, &dataset, &ids, &mut |_, _| Ok(None))?;
    warn_of_troubles(&runs);
    let mut restored = score.restore.open(arguments)?;
    if score.self_check {
        rules::refuse_outdated(&restored.instances)?;
        return self_check(arguments, &restored);
    }
    restored.take_variants(score.policy.hidden.as_deref())?;
    let rules = rules::rules(&mut restored)?;
    let empty = Submission::default();
    let mut judged = AllJudged::new();
    for repo in restored.repositories() {
        let prepared = restored.prepare_beside_others(repo, score.policy.limit())?;
        let ground = Ground::new(&prepared.lab, &restored.job.cache, score.policy.files, file)?;
        let originals = restored.originals(&repo.slug)?;
        let wanted: Vec<Wanted<'_>> = runs
            .iter()
            .enumerate()
            .flat_map(|(at, run)| originals.iter().map(move |one| (at, run, one)))
            .map(|(at, run, original)| {
                let id = original.id.to_string();
                (original, run.submissions.get(&id).unwrap_or(&empty), (id, at))
            })
            .collect();
        let policy = score.policy.policy(file);
        judge_repository(&restored.job, (&prepared, &ground), &policy, &wanted, &mut judged)?;
    }
    let config = &restored.job.config.dataset;
    for run in &runs {
        let folder = place.join(&run.name);
        fs_err::create_dir_all(&folder)?;
        write_json(&folder.join(MADE_OF), &Made::of(run, score))?;
    }
    let about =
        About { config, place: &place, instances: &restored.instances, rules, counts_absent: score.all };
    let code = report(arguments, &about, &runs, judged)?;
    Ok(code.max(u8::from(has_unknown(&runs))))
}

/// Submissions by instance ID.
type Handed = BTreeMap<String, Submission>;

/// What was handed in, and where its scores go.
///
/// `other` reads what has another form, by its place among what was given.
///
/// # Errors
/// Usage errors: what is not a list of submissions of the dataset, two runs of one name, a run that was scored otherwise.
fn read_runs(
    score: &ScoreArguments,
    paths: &[PathBuf],
    dataset: &Dataset,
    known: &BTreeSet<String>,
    other: &mut dyn FnMut(usize, &Path) -> Result<Option<Handed>>,
) -> Result<(PathBuf, Vec<RunOf>)> {
    let file = dataset.manifest.family.submission();
    let mut runs = Vec::new();
    if !score.name.is_empty() && score.name.len() != paths.len() {
        return Err(Error::usage("--name is given once for each of the submissions, or not at all"));
    }
    for (at, path) in paths.iter().enumerate() {
        let name = score.name.get(at).map(String::as_str);
        runs.push(match other(at, path)? {
            Some(found) => submissions::named(path, name, found)?,
            None => submissions::read(path, name, file, known)?,
        });
    }
    refuse_twins(&runs)?;
    let manifest = &dataset.manifest;
    let place = score.output.join(&manifest.name).join(&manifest.version);
    if !score.replace {
        runs.iter().try_for_each(|run| Made::of(run, score).check(&place.join(&run.name)))?;
    }
    Ok((place, runs))
}

/// Judges the originals. Exit code 1 when one cannot be solved and the dataset does not say so.
fn self_check(arguments: &Arguments, restored: &Restored) -> Result<u8> {
    let mut checked: BTreeMap<&str, Checked> = BTreeMap::new();
    for repo in restored.repositories() {
        let prepared = restored.prepare(repo, None)?;
        let code = Code::of(&prepared.lab)?;
        let originals = restored.originals(&repo.slug)?;
        let file = restored.family().submission();
        let needed = needed_by_pytest(&prepared.lab, &restored.job.cache, file)?;
        let check = SelfCheck { lab: &prepared.lab, needed_by_pytest: needed.as_deref(), code: &code, file };
        let stage = restored.job.progress.stage(&format!("{} self-check", repo.slug), originals.len() as u64);
        let found = check.check(&originals, &mut || stage.step())?;
        checked.extend(originals.iter().map(|original| original.id.as_str()).zip(found));
    }
    let rows: Vec<(&Instance, &Checked)> = restored
        .instances
        .iter()
        .filter_map(|one| Some((one, checked.get(one.instance_id.as_str())?)))
        .collect();
    let is_told = |(instance, checked): &&(&Instance, &Checked)| {
        let mut flags = checked.flags().into_iter().filter(|flag| UNSOLVABLE.contains(flag));
        flags.all(|flag| instance.flags.iter().any(|known| known == flag))
    };
    let untold = rows.iter().filter(|row| !is_told(row)).count();
    match arguments.format {
        Format::Json => {
            let rows = rows.iter().map(|(instance, checked)| {
                json!({
                    "instance_id": instance.instance_id,
                    "group_id": instance.group_id,
                    "fidelity": checked.agrees(),
                    "flags": checked.flags(),
                    "flags_in_dataset": instance.flags,
                    "checked": checked,
                })
            });
            terminal::json(&json!({ "instances": rows.collect::<Vec<_>>(), "untold": untold }));
        }
        Format::Human | Format::Csv => {
            for (instance, checked) in &rows {
                let flags = checked.flags();
                if !flags.is_empty() {
                    let is_solvable =
                        if checked.is_solvable() { "can be solved" } else { "cannot be solved" };
                    let line = format!("{}: {is_solvable}; {}", instance.group_id, flags.join(", "));
                    terminal::say(&terminal::one_line(&line));
                    for text in checked.evidence().iter().flat_map(|text| text.lines()) {
                        terminal::say(&format!("  {}", terminal::one_line(text)));
                    }
                }
            }
            terminal::say(&summary_of_checks(&rows, untold));
        }
    }
    Ok(u8::from(untold > 0))
}

/// What judging the originals comes to.
fn summary_of_checks(rows: &[(&Instance, &Checked)], untold: usize) -> String {
    let agree = rows.iter().filter(|(_, checked)| checked.agrees()).count();
    let solvable = rows.iter().filter(|(_, checked)| checked.is_solvable()).count();
    let flagged = rows.len() - solvable - untold;
    let mut parts = vec![
        format!("{agree} of {} originals have fidelity 1", rows.len()),
        format!("{} can be solved by the rules", count(solvable, "instance")),
    ];
    if flagged > 0 {
        parts.push(format!("{flagged} cannot, as their flags in the dataset say"));
    }
    if untold > 0 {
        parts.push(format!("{untold} cannot, and the dataset does not say so: build it again"));
    }
    parts.join("; ")
}

/// Says what could not be read, which costs the submission alone.
fn warn_of_troubles(runs: &[RunOf]) {
    for run in runs {
        let of_submissions = run.submissions.values().flat_map(|one| &one.troubles);
        let troubles: Vec<&String> = run.trouble.iter().chain(of_submissions).collect();
        if let Some(unknown) = &run.unknown {
            terminal::warn(&terminal::one_line(&format!("{}: {unknown}; the others are judged", run.name)));
        }
        for trouble in troubles.iter().take(MOST_TROUBLES) {
            terminal::warn(&terminal::one_line(&format!("{}: {trouble}", run.name)));
        }
        if troubles.len() > MOST_TROUBLES {
            let more = troubles.len() - MOST_TROUBLES;
            terminal::warn(&format!("{}: {more} more could not be read: see evidence/ of the run", run.name));
        }
    }
}

/// Whether something was handed in for instances that the dataset does not have: the exit code says so, too.
fn has_unknown(runs: &[RunOf]) -> bool {
    runs.iter().any(|run| run.unknown.is_some())
}

/// Troubles of a run that are said.
const MOST_TROUBLES: usize = 20;

fn refuse_twins(runs: &[RunOf]) -> Result<()> {
    let mut names = BTreeSet::new();
    match runs.iter().find(|run| !names.insert(run.name.as_str())) {
        Some(run) => Err(Error::usage(format!("two runs are called `{}`", run.name))
            .with_hint("rename one of the files, or set `name` in its run.json")),
        None => Ok(()),
    }
}

/// What a report is about.
struct About<'a> {
    config: &'a config::Dataset,
    place: &'a Path,
    instances: &'a [Instance],
    rules: Rules,
    /// Whether instances without a submission count in what is said.
    counts_absent: bool,
}

fn report(
    arguments: &Arguments,
    &About { config, place, instances, rules, counts_absent }: &About<'_>,
    runs: &[RunOf],
    mut judged: BTreeMap<(String, usize), Judged>,
) -> Result<u8> {
    let nothing = Value::Null;
    let (mut reports, mut of_runs) = (Vec::new(), Vec::new());
    for (at, run) in runs.iter().enumerate() {
        let mut scored = Vec::new();
        for instance in instances {
            let id = instance.instance_id.to_string();
            let submission = run.submissions.get(&id);
            let meta = submission.map_or(&nothing, |submission| &submission.meta);
            let troubles = submission.map_or(&[][..], |submission| &submission.troubles);
            if let Some(judged) = judged.remove(&(id, at)) {
                let run_meta = &run.meta;
                scored.push(Scored { instance, run: run.name.as_str(), meta, run_meta, troubles, judged });
            }
        }
        let absent =
            instances.iter().filter(|one| !run.submissions.contains_key(one.instance_id.as_str())).count();
        let scored_here: Vec<&Scored<'_>> = scored.iter().collect();
        let report = Report::new(run.name.as_str(), &run.meta, (absent, rules), &scored_here);
        write::run(&place.join(&run.name), &report, &scored)?;
        reports.push(report);
        of_runs.push(scored);
    }
    let with_rows = runs.iter().zip(&of_runs);
    let with_rows: Vec<Run<'_>> =
        with_rows.map(|(run, scored)| Run { name: run.name.as_str(), meta: &run.meta, scored }).collect();
    let scores = Scores {
        dataset: config.name.as_str(),
        version: config.version.as_str(),
        runs: with_rows,
        text: &|at, id| runs[at].submissions.get(id)?.text.as_deref(),
    };
    page::write(place, &scores)?;
    let lost = say_what_is_lost(&reports, &scores.runs);
    match arguments.format {
        Format::Json => {
            terminal::json(&json!({ "directory": place, "runs": reports }));
        }
        Format::Human | Format::Csv => {
            for ((report, run), of_run) in reports.iter().zip(runs).zip(&scores.runs) {
                let is_absent = |id: &str| !run.submissions.contains_key(id);
                let folder = place.join(&run.name);
                for line in said::lines((report, &folder), of_run.scored, &is_absent, counts_absent) {
                    terminal::say(&line);
                }
            }
            terminal::say(&format!(
                "written to {}; the page: {}",
                place.display(),
                place.join("report.html").display()
            ));
        }
    }
    Ok(u8::from(lost))
}

/// Whether this machine lost a submission.
fn say_what_is_lost(reports: &[Report], runs: &[Run<'_>]) -> bool {
    let lost: u32 = reports.iter().map(|report| report.all.lost).sum();
    let mut all = runs.iter().flat_map(|run| run.scored.iter());
    let first = all.find_map(|scored| scored.judged.lost.as_deref()).unwrap_or_default();
    if lost > 0 {
        terminal::warn_with_hint(
            &format!(
                "{} lost: this machine could not run them, and nothing is said about them: {first}",
                count(lost as usize, "submission")
            ),
            "the same command judges them again",
        );
    }
    lost > 0
}
