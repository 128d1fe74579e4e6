//! `gistmill score` for datasets of the family `recube`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::{MADE_OF, Made, ScoreArguments, read_runs, warn_of_troubles};
use crate::cli::restored::Restored;
use crate::cli::{Arguments, Format};
use crate::dataset::Dataset;
use crate::dataset::recube::RecubeInstance;
use crate::error::{Error, Result};
use crate::family::recube::score::Rates;
use crate::pipeline::prepare::Prepared;
use crate::record::recube::InstanceCase;
use crate::referee::recube::judge::{Instance, Judged};
use crate::referee::recube::tables::{Report, Row, write};
use crate::referee::recube::{Ground, Place, Runs, group_of};
use crate::referee::submissions::{RunOf, Submission};
use crate::store::write_json;
use crate::terminal;

/// Judgements by instance ID and place of the run.
type AllJudged = BTreeMap<(String, usize), Judged>;

/// Judges what was handed in for a dataset.
pub(super) fn run(arguments: &Arguments, score: &ScoreArguments, dataset: &Dataset) -> Result<u8> {
    if score.self_check {
        return Err(Error::usage("the build has judged every original of a dataset of the family recube"));
    }
    let known = dataset.recube_instances()?;
    let known: BTreeSet<String> = known.iter().map(|one| one.head.instance_id.to_string()).collect();
    let (place, runs) = read_runs(score, &score.submissions, dataset, &known)?;
    warn_of_troubles(&runs);
    let mut cases: BTreeMap<String, Vec<InstanceCase>> = BTreeMap::new();
    for (id, case) in dataset.recube_cases()? {
        if case.left_out.is_none() {
            cases.entry(id).or_default().push(case);
        }
    }
    let (restored, instances) = score.restore.open_recube(arguments)?;
    let mut judged = AllJudged::new();
    for repo in restored.repositories() {
        let prepared = restored.prepare(repo, Some(Duration::from_secs(score.timeout)))?;
        let of_repo = instances.iter().filter(|one| one.head.slug == repo.slug).collect::<Vec<_>>();
        judge(&restored, &prepared, (&of_repo, &cases), (&runs, score.attempts), &mut judged)?;
    }
    let mut reports = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let rows: Vec<Row<'_>> = instances.iter().filter_map(|one| row(one, run, at, &mut judged)).collect();
        let report = Report::new(run.name.as_str(), &run.meta, &rows);
        let folder = place.join(&run.name);
        write(&folder, &report, &rows)?;
        write_json(&folder.join(MADE_OF), &Made::of(run, score))?;
        reports.push(report);
    }
    match arguments.format {
        Format::Json => terminal::json(&json!({ "directory": place, "runs": reports })),
        Format::Human | Format::Csv => {
            for report in &reports {
                terminal::say(&line(report));
            }
            terminal::say(&format!("written to {}", place.display()));
        }
    }
    let lost: u32 = reports.iter().map(|report| report.rates.lost).sum();
    if lost > 0 {
        terminal::warn(&format!("{lost} submissions were lost: the same command judges them again"));
    }
    Ok(u8::from(lost > 0))
}

/// What is written of an instance in a run.
fn row<'a>(one: &'a RecubeInstance, run: &'a RunOf, at: usize, judged: &mut AllJudged) -> Option<Row<'a>> {
    static NOTHING: Value = Value::Null;
    let id = one.head.instance_id.to_string();
    let submission = run.submissions.get(&id);
    let meta = submission.map_or(&NOTHING, |submission| &submission.meta);
    Some(Row { instance: one, meta, has_folder: submission.is_some(), judged: judged.remove(&(id, at))? })
}

/// Judges what was handed in for the instances of one repository.
fn judge(
    restored: &Restored,
    prepared: &Prepared,
    (instances, cases): (&[&RecubeInstance], &BTreeMap<String, Vec<InstanceCase>>),
    (runs, attempts): (&[RunOf], u32),
    judged: &mut AllJudged,
) -> Result<()> {
    let title = format!("{} score", prepared.pinned.slug);
    let stage = restored.job.progress.stage(&title, (instances.len() * runs.len()) as u64);
    let mut known = Runs::open(&prepared.lab.folder.join("recube-scores"))?;
    let empty = Submission::default();
    for instance in instances {
        let id = instance.head.instance_id.to_string();
        let cases = cases.get(&id).map(Vec::as_slice).unwrap_or_default();
        let ids: BTreeSet<&str> = cases.iter().map(|case| case.group_id.as_str()).collect();
        let groups: Vec<_> = ids.into_iter().map(group_of).collect();
        let ground = Ground::of(&prepared.lab, &instance.target)?;
        ground.check(&instance.original_sha256, &instance.masked_sha256)?;
        let place = Place {
            lab: &prepared.lab,
            cache: &restored.job.cache,
            target: &instance.target,
            byte_code: &ground.byte_code,
        };
        let on_trial = Instance {
            place,
            original: &ground.original,
            masked: &ground.masked.text,
            functions: &ground.masked.functions,
            cases,
            groups: &groups,
        };
        for (at, run) in runs.iter().enumerate() {
            let submission = run.submissions.get(&id).unwrap_or(&empty);
            judged.insert((id.clone(), at), on_trial.judge(submission, attempts, &mut known)?);
            stage.step();
        }
    }
    Ok(())
}

fn line(report: &Report) -> String {
    let percent = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2} %"));
    let rates = |name: &str, rates: &Rates| {
        format!("{name} SPR {}, APR {} (n = {})", percent(rates.spr), percent(rates.apr), rates.n)
    };
    let all = &report.rates;
    let classes = report.classes.iter().filter(|(class, _)| *class != "ran");
    let classes: Vec<String> = classes.map(|(class, count)| format!("; {class} {count}")).collect();
    let parts = [rates("all", &all.all), rates("external", &all.external), rates("internal", &all.internal)];
    terminal::one_line(&format!("{}: {}{}", report.run, parts.join("; "), classes.concat())).into_owned()
}
