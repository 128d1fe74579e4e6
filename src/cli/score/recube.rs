//! `gistmill score` for datasets of the family `recube`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rayon::prelude::*;
use serde_json::{Value, json};

use super::policy::PolicyArguments;
use super::{MADE_OF, Made, ScoreArguments, has_unknown, read_runs, warn_of_troubles};
use crate::attempt::lab::Lab;
use crate::cli::restored::Restored;
use crate::cli::{Arguments, Format};
use crate::dataset::Dataset;
use crate::dataset::recube::{InstanceCases, RecubeInstance};
use crate::error::{Error, Result};
use crate::family::WORKDIR;
use crate::family::recube::leaks::Copies;
use crate::family::recube::score::{Published, Rates};
use crate::family::recube::viewed::viewed;
use crate::interrupt::Waiting;
use crate::pipeline::prepare::Prepared;
use crate::record::collected::Group;
use crate::record::recube::InstanceCase;
use crate::referee::recube::judge::{Instance, Judged};
use crate::referee::recube::outputs;
use crate::referee::recube::tables::{Report, Row, parts, write};
use crate::referee::recube::trajectories::{self, Trajectories};
use crate::referee::recube::{Ground, group_of, planted};
use crate::referee::submissions::{RunOf, Submission};
use crate::referee::texts::{Runs, TargetLab};
use crate::store::{Cache, write_json};
use crate::terminal;

/// Options that go with masked files alone.
#[derive(Debug, Default, clap::Args)]
pub(super) struct MaskedArguments {
    /// Of masked files: a folder with what agents did, to see which calling files they viewed; once for each of the submissions
    #[arg(long, value_name = "DIR")]
    trajectories: Vec<PathBuf>,
    /// Of masked files: the run by whose pass rates instances are cut into four parts
    #[arg(long, value_name = "RUN")]
    base: Option<String>,
    /// Of masked files: also print the rates as the authors' evaluator counts them
    #[arg(long)]
    paper: bool,
}

impl MaskedArguments {
    /// Refuses them where instances are tests.
    ///
    /// # Errors
    /// A usage error: one of them is given.
    pub(super) fn refuse(&self) -> Result<()> {
        if self.trajectories.is_empty() && self.base.is_none() && !self.paper {
            return Ok(());
        }
        Err(Error::usage("--trajectories, --base and --paper go with datasets of the family recube"))
    }
}

/// Judgements by instance ID and place of the run.
type AllJudged = BTreeMap<(String, usize), Judged>;

/// Judges what was handed in for a dataset.
pub(super) fn run(arguments: &Arguments, score: &ScoreArguments, dataset: &Dataset) -> Result<u8> {
    if score.self_check {
        return Err(Error::usage("the build has judged every original of a dataset of the family recube"));
    }
    let (place, runs, done) = handed_in(score, dataset)?;
    let base = base(score, &runs)?;
    warn_of_troubles(&runs);
    let cases = dataset.judging_cases()?;
    let (restored, instances, others) = score.restore.open_rows(arguments, Dataset::recube_instances)?;
    if let Some((_, error)) = others.into_iter().next() {
        return Err(error);
    }
    let mut judged = AllJudged::new();
    for repo in restored.repositories() {
        let prepared = restored.prepare(repo, Some(Duration::from_secs(score.policy.timeout)))?;
        let of_repo = instances.iter().filter(|one| one.head.slug == repo.slug).collect::<Vec<_>>();
        judge(&restored, &prepared, (&of_repo, &cases), (&runs, score), &mut judged)?;
    }
    let none = Trajectories::new();
    let mut all_rows: Vec<Vec<Row<'_>>> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let done = done.get(&at).unwrap_or(&none);
        let rows = instances.iter().filter_map(|one| row(one, (run, at), done, &mut judged));
        all_rows.push(rows.collect());
    }
    let quarters = base.map(|at| parts(&all_rows[at])).unwrap_or_default();
    let mut reports = Vec::new();
    for (run, mut rows) in runs.iter().zip(all_rows) {
        for row in &mut rows {
            row.quarter = quarters.get(row.instance.head.instance_id.as_str()).copied();
        }
        let report = Report::new(run.name.as_str(), &run.meta, &rows);
        let folder = place.join(&run.name);
        write(&folder, &report, &rows)?;
        write_json(&folder.join(MADE_OF), &Made::of(run, score))?;
        reports.push(report);
    }
    let code = said(arguments, score, &place, &reports);
    Ok(code.max(u8::from(has_unknown(&runs))))
}

/// Prints what the runs come to. Exit code 1 where something was lost.
fn said(arguments: &Arguments, score: &ScoreArguments, place: &Path, reports: &[Report]) -> u8 {
    match arguments.format {
        Format::Json => terminal::json(&json!({ "directory": place, "runs": reports })),
        Format::Human | Format::Csv => {
            for report in reports {
                terminal::say(&line(report));
                for line in further_lines(report, score.masked.paper) {
                    terminal::say(&terminal::one_line(&line));
                }
            }
            terminal::say(&format!("written to {}", place.display()));
        }
    }
    let lost: u32 = reports.iter().map(|report| report.rates.lost).sum();
    if lost > 0 {
        terminal::warn(&format!("{lost} submissions were lost: the same command judges them again"));
    }
    u8::from(lost > 0)
}

/// What was handed in, and what agents did, by place of the run.
type HandedIn = (PathBuf, Vec<RunOf>, BTreeMap<usize, Trajectories>);

/// Reads runs, folders of the authors' form among them, and trajectories.
fn handed_in(score: &ScoreArguments, dataset: &Dataset) -> Result<HandedIn> {
    let all = dataset.recube_instances()?;
    let known = outputs::ids(&all);
    if !score.masked.trajectories.is_empty() && score.masked.trajectories.len() != score.submissions.len() {
        return Err(Error::usage("--trajectories is given once for each of the submissions, or not at all"));
    }
    let mut done: BTreeMap<usize, Trajectories> = BTreeMap::new();
    for (at, folder) in score.masked.trajectories.iter().enumerate() {
        done.insert(at, trajectories::read(folder, &known)?);
    }
    let (place, runs) = read_runs(score, &score.submissions, dataset, &known, &mut |at, path| {
        let found = outputs::read(path, &all)?;
        Ok(found.map(|found| {
            if !found.trajectories.is_empty() {
                done.entry(at).or_insert(found.trajectories);
            }
            found.submissions
        }))
    })?;
    Ok((place, runs, done))
}

/// What is written of an instance in a run.
fn row<'a>(
    one: &'a RecubeInstance,
    (run, at): (&'a RunOf, usize),
    done: &Trajectories,
    judged: &mut AllJudged,
) -> Option<Row<'a>> {
    static NOTHING: Value = Value::Null;
    let id = one.head.instance_id.to_string();
    let submission = run.submissions.get(&id);
    let meta = submission.map_or(&NOTHING, |submission| &submission.meta);
    let callers: BTreeSet<&str> = one.callers.iter().map(String::as_str).collect();
    let viewed = done.get(&id).map(|commands| {
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        viewed(&commands, &callers, WORKDIR).into_iter().map(str::to_owned).collect()
    });
    let (has_folder, judged) = (submission.is_some(), judged.remove(&(id, at))?);
    Some(Row { instance: one, meta, has_folder, judged, quarter: None, viewed })
}

/// An instance with all that judging takes.
pub(crate) struct OnTrial<'a> {
    pub(crate) instance: &'a RecubeInstance,
    cases: &'a [InstanceCase],
    groups: Vec<Group>,
    ground: Ground,
    copies: Copies,
    planted: BTreeMap<String, String>,
}

impl<'a> OnTrial<'a> {
    /// Reads what of the tree it takes.
    ///
    /// # Errors
    /// A usage error: its original or its mask is not the one that the dataset says.
    pub(crate) fn new(lab: &Lab, instance: &'a RecubeInstance, cases: &'a InstanceCases) -> Result<Self> {
        let cases = cases.get(instance.head.instance_id.as_str()).map(Vec::as_slice).unwrap_or_default();
        let ids: BTreeSet<&str> = cases.iter().map(|case| case.group_id.as_str()).collect();
        let groups: Vec<Group> = ids.into_iter().map(group_of).collect();
        let ground = Ground::of(lab, &instance.target)?;
        ground.check(&instance.original_sha256, &instance.masked_sha256)?;
        let python = ground.python.iter().map(String::as_str).collect();
        let copies = Copies::of(&instance.target, &instance.leaks, &python);
        let planted = planted(lab, &groups)?;
        Ok(OnTrial { instance, cases, groups, ground, copies, planted })
    }

    /// Judges what was handed in for it, where somebody waits as long as they wait.
    ///
    /// # Errors
    /// IO errors and an interruption.
    pub(crate) fn judge(
        &self,
        (lab, cache): (&Lab, &Cache),
        submission: &Submission,
        policy: &PolicyArguments,
        (runs, waiting): (&Runs, Option<&Waiting>),
    ) -> Result<Judged> {
        let (target, byte_code) = (&self.instance.target, &self.ground.byte_code);
        let instance = Instance {
            place: TargetLab { lab, cache, target, byte_code, waiting },
            original: &self.ground.original,
            masked: &self.ground.masked.text,
            functions: &self.ground.masked.functions,
            cases: self.cases,
            groups: &self.groups,
            copies: &self.copies,
            allows: &policy.allow,
            planted: &self.planted,
        };
        instance.judge(submission, policy.attempts, runs)
    }
}

/// Judges what was handed in for the instances of one repository.
fn judge(
    restored: &Restored,
    prepared: &Prepared,
    (instances, cases): (&[&RecubeInstance], &InstanceCases),
    (runs, score): (&[RunOf], &ScoreArguments),
    judged: &mut AllJudged,
) -> Result<()> {
    let title = format!("{} score", prepared.pinned.slug);
    let stage = restored.job.progress.stage(&title, (instances.len() * runs.len()) as u64);
    let known = Runs::open(&prepared.lab.folder.join("recube-scores"))?;
    let empty = Submission::default();
    let of_instance = |instance: &&RecubeInstance| -> Result<Vec<((String, usize), Judged)>> {
        let id = instance.head.instance_id.to_string();
        let on_trial = OnTrial::new(&prepared.lab, instance, cases)?;
        let of_run = |(at, run): (usize, &RunOf)| {
            let submission = run.submissions.get(&id).unwrap_or(&empty);
            let place = (&prepared.lab, &restored.job.cache);
            let one = on_trial.judge(place, submission, &score.policy, (&known, None))?;
            stage.step();
            Ok(((id.clone(), at), one))
        };
        runs.par_iter().enumerate().map(of_run).collect()
    };
    let all: Vec<Vec<_>> = instances.par_iter().map(of_instance).collect::<Result<_>>()?;
    judged.extend(all.into_iter().flatten());
    Ok(())
}

/// The place of the base run; none where none is asked for.
fn base(score: &ScoreArguments, runs: &[RunOf]) -> Result<Option<usize>> {
    let Some(name) = &score.masked.base else { return Ok(None) };
    let found = runs.iter().position(|run| run.name.as_str() == name);
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    found.map(Some).ok_or_else(|| {
        Error::usage(format!("--base: no run is called {name:?}"))
            .with_hint(format!("the runs are: {}", names.join(", ")))
    })
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2} %"))
}

fn rates(name: &str, rates: &Rates) -> String {
    format!("{name} SPR {}, APR {} (n = {})", percent(rates.spr), percent(rates.apr), rates.n)
}

/// What is known beside the rates.
fn further_lines(report: &Report, paper: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if paper {
        let Published { all, external, internal } = &report.rates.published;
        let parts = [rates("all", all), rates("external", external), rates("internal", internal)];
        lines.push(format!("  as the authors count: {}", parts.join("; ")));
    }
    for (quarter, part) in &report.by_quarter {
        let covered = part.coverage.map(|share| format!(", caller coverage {share:.2}"));
        lines.push(format!("  {}{}", rates(quarter.as_str(), &part.rates), covered.unwrap_or_default()));
    }
    if let Some(one) = &report.coverage {
        let coefficient =
            |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.2}"));
        lines.push(format!(
            "  caller coverage {:.2} (n = {}); with the pass rate: Kendall's τ {}, Spearman's ρ {} (n = {})",
            one.mean,
            one.n,
            coefficient(one.kendall),
            coefficient(one.spearman),
            one.correlated
        ));
    }
    lines
}

fn line(report: &Report) -> String {
    let all = &report.rates;
    let classes = report.classes.iter().filter(|(class, _)| *class != "ran");
    let classes: Vec<String> = classes.map(|(class, count)| format!("; {class} {count}")).collect();
    let parts = [rates("all", &all.all), rates("external", &all.external), rates("internal", &all.internal)];
    terminal::one_line(&format!("{}: {}{}", report.run, parts.join("; "), classes.concat())).into_owned()
}
