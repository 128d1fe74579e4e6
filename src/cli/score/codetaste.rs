//! `gistmill score` for datasets of the family `codetaste`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{MADE_OF, Made, ScoreArguments, has_unknown, read_runs, refuse_twins, warn_of_troubles};
use crate::cli::restored::Restored;
use crate::cli::{Arguments, Format};
use crate::dataset::Dataset;
use crate::dataset::codetaste::{CodetasteInstance, HiddenPair};
use crate::error::{Error, Fault, Result};
use crate::family::codetaste::score::Average;
use crate::pipeline::prepare::Prepared;
use crate::record::codetaste::Bounds;
use crate::record::id::Name;
use crate::referee::codetaste::judge::{Ground, Instance, Judged, own_trouble};
use crate::referee::codetaste::patches::{Known, of_authors, text_of};
use crate::referee::codetaste::suite::{SuiteLab, Suites};
use crate::referee::codetaste::tables::{Means, Report, Row, write};
use crate::referee::submissions::{RunOf, Submission};
use crate::store::write_json;
use crate::terminal;

/// Judgements by instance ID and place of the run.
type AllJudged = BTreeMap<(String, usize), Judged>;

/// Runs that are checks: what they must come to.
const GOLDEN: &str = "golden";
const BASE: &str = "base";

/// Judges what was handed in for a dataset; the golden and the empty patch with it.
pub(super) fn run(arguments: &Arguments, score: &ScoreArguments, dataset: &Dataset) -> Result<u8> {
    let known = dataset.codetaste_instances()?;
    let (place, mut runs) = all_runs(score, dataset, &known)?;
    warn_of_troubles(&runs);
    let hidden = dataset.hidden_pairs(score.policy.hidden.as_deref())?;
    let (restored, instances) = score.restore.open_codetaste(arguments)?;
    runs.extend(checks(&instances, &hidden)?);
    let mut judged = AllJudged::new();
    for repo in restored.repositories() {
        // Whose environment is another one here has trouble of its own.
        let prepared = restored.prepare(repo, None).map_err(|error| match error.fault() {
            Fault::Machine => error.blame(Fault::Repository),
            _ => error,
        });
        let prepared = own_trouble(prepared)?;
        for instance in instances.iter().filter(|one| one.head.slug == repo.slug) {
            let id = instance.head.instance_id.to_string();
            let lacks = || Error::usage(format!("hidden/ has nothing of {id}"));
            let hidden = hidden.get(&id).ok_or_else(lacks)?;
            let found = match &prepared {
                Ok(prepared) => judge((&restored, prepared), (instance, hidden), &runs)?,
                Err(why) => all_lost(&id, &runs, why),
            };
            judged.extend(found.into_iter().enumerate().map(|(at, one)| ((id.clone(), at), one)));
        }
    }
    let mut reports = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let rows: Vec<Row<'_>> =
            instances.iter().filter_map(|one| row(one, run, at, (&hidden, &mut judged))).collect();
        let report = Report::new(run.name.as_str(), &run.meta, &rows);
        let folder = place.join(&run.name);
        write(&folder, &report, &rows)?;
        write_json(&folder.join(MADE_OF), &Made::of(run, score))?;
        reports.push(report);
    }
    let defect = defect(&reports);
    match arguments.format {
        Format::Json => {
            terminal::json(&json!({ "directory": place, "runs": reports, "defect": defect }));
        }
        Format::Human | Format::Csv => {
            for report in &reports {
                terminal::say(&line(report));
            }
            terminal::say(&format!("written to {}", place.display()));
        }
    }
    if let Some(defect) = &defect {
        terminal::warn(&terminal::one_line(defect));
    }
    let lost: usize = reports.iter().map(|report| report.lost).sum();
    if lost > 0 {
        terminal::warn(&format!("{lost} patches were lost: the same command judges them again"));
    }
    Ok(u8::from(lost > 0 || defect.is_some() || has_unknown(&runs)))
}

/// What was handed in: folders of the authors' layout hold several runs.
fn all_runs(
    score: &ScoreArguments,
    dataset: &Dataset,
    instances: &[CodetasteInstance],
) -> Result<(std::path::PathBuf, Vec<RunOf>)> {
    let ids: BTreeSet<String> = instances.iter().map(|one| one.head.instance_id.to_string()).collect();
    let known: Vec<Known> = instances
        .iter()
        .map(|one| Known { id: one.head.instance_id.to_string(), authors_id: one.authors_id.clone() })
        .collect();
    let (mut of_layout, mut others) = (Vec::new(), Vec::new());
    for path in &score.submissions {
        match if path.is_dir() { of_authors(path, &known)? } else { None } {
            Some(runs) => of_layout.extend(runs),
            None => others.push(path.clone()),
        }
    }
    if !score.name.is_empty() && !of_layout.is_empty() {
        return Err(Error::usage("--name does not go with the authors' layout")
            .with_hint("its runs are called <agent>.<track>.<mode>"));
    }
    let (place, mut runs) = read_runs(score, &others, dataset, &ids, &mut |_, _| Ok(None))?;
    runs.extend(of_layout);
    refuse_twins(&runs)?;
    if let Some(run) = runs.iter().find(|run| [GOLDEN, BASE].contains(&run.name.as_str())) {
        return Err(Error::usage(format!("a run is called `{}`, as one of the checks is", run.name))
            .with_hint("give it another name with --name"));
    }
    if !score.replace {
        runs.iter().try_for_each(|run| Made::of(run, score).check(&place.join(&run.name)))?;
    }
    Ok((place, runs))
}

/// The golden patch, where the dataset has it, and the empty one as runs.
fn checks(instances: &[CodetasteInstance], hidden: &BTreeMap<String, HiddenPair>) -> Result<Vec<RunOf>> {
    let run = |name: &str, patch: &dyn Fn(&HiddenPair) -> Option<Vec<u8>>| -> Result<RunOf> {
        let of = |one: &CodetasteInstance| {
            let id = one.head.instance_id.to_string();
            let text = Some(patch(hidden.get(&id)?)?);
            Some((id, Submission { text, ..Submission::default() }))
        };
        let submissions = instances.iter().filter_map(of).collect();
        let name = Name::new(name).map_err(|_| Error::internal("a check has no name"))?;
        Ok(RunOf { name, meta: json!({ "check": true }), trouble: None, submissions, unknown: None })
    };
    Ok(vec![run(GOLDEN, &|pair| pair.golden_patch.clone())?, run(BASE, &|_| Some(Vec::new()))?])
}

/// What is written of an instance in a run.
fn row<'a>(
    one: &'a CodetasteInstance,
    run: &'a RunOf,
    at: usize,
    (hidden, judged): (&'a BTreeMap<String, HiddenPair>, &mut AllJudged),
) -> Option<Row<'a>> {
    static NOTHING: Value = Value::Null;
    let id = one.head.instance_id.to_string();
    let meta = run.submissions.get(&id).map_or(&NOTHING, |submission| &submission.meta);
    let patterns = hidden.get(&id)?.patterns.as_slice();
    Some(Row { instance: one, patterns, meta, judged: judged.remove(&(id, at))? })
}

/// Judges what was handed in for one instance, in the order of the runs.
fn judge(
    (restored, prepared): (&Restored, &Prepared),
    (instance, hidden): (&CodetasteInstance, &HiddenPair),
    runs: &[RunOf],
) -> Result<Vec<Judged>> {
    let id = instance.head.instance_id.to_string();
    let stage = restored.job.progress.stage(&format!("{} score", prepared.pinned.slug), runs.len() as u64);
    let mut suites = Suites::open(&prepared.lab.folder.join("codetaste"))?;
    let ground = Ground::of(&prepared.pinned.tree, &hidden.pattern_files, &hidden.patterns, &|| {
        restored.job.machine.sandbox()
    });
    let ground = match own_trouble(ground.map_err(|error| error.at(id.clone())))? {
        Ok(ground) => ground,
        Err(why) => return Ok(all_lost(&id, runs, &why)),
    };
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let on_trial = Instance {
        place: SuiteLab {
            lab: &prepared.lab,
            cache: &restored.job.cache,
            scripts: &hidden.scripts,
            limit: restored.job.config.codetaste.suite_timeout,
        },
        ground: &ground,
        rows: &hidden.patterns,
        bounds: Bounds { passed: signed(instance.p_min), failed: signed(instance.f_max) },
        must_pass: &hidden.must_pass,
        failing: &hidden.failing,
    };
    let judge = |run: &RunOf| {
        let submission = run.submissions.get(&id);
        let one = match submission.and_then(text_of) {
            Some(text) => on_trial.judge(text, &mut suites),
            // Something was handed in that cannot be read.
            None => match submission.and_then(|one| one.troubles.first().cloned()) {
                Some(trouble) => on_trial.refused(trouble),
                None => Ok(Judged::absent(None)),
            },
        };
        stage.step();
        Ok(own_trouble(one)?.unwrap_or_else(Judged::lost))
    };
    runs.iter().map(judge).collect()
}

/// What is said of an instance that nothing can be judged of, in the order of the runs.
fn all_lost(id: &str, runs: &[RunOf], why: &str) -> Vec<Judged> {
    terminal::warn(&terminal::one_line(&format!("nothing of {id} is judged: {why}")));
    let of = |run: &RunOf| match run.submissions.get(id) {
        Some(one) if text_of(one).is_some() || !one.troubles.is_empty() => Judged::lost(why.to_owned()),
        _ => Judged::absent(None),
    };
    runs.iter().map(of).collect()
}

/// What the checks show of the dataset, where they are not as they must be.
fn defect(reports: &[Report]) -> Option<String> {
    let is = |average: Average, value: f64| average.mean.is_none_or(|mean| (mean - value).abs() < 1e-9);
    let wrong = |report: &&Report| {
        let Means { pass, ifr, .. } = report.all;
        match report.run.as_str() {
            GOLDEN => !is(pass, 100.0) || !is(ifr, 100.0),
            BASE => !is(pass, 100.0) || !is(ifr, 0.0),
            _ => false,
        }
    };
    let report = reports.iter().find(wrong)?;
    Some(format!(
        "the dataset is not what it says on this machine: {}; see {}/scores.jsonl of this output",
        line(report),
        report.run
    ))
}

fn line(report: &Report) -> String {
    let percent = |name: &str, of: Average| {
        let mean = of.mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"));
        let plus_minus = of.plus_minus.map(|half| format!(" ± {half:.1}")).unwrap_or_default();
        format!("{name} {mean}{plus_minus}")
    };
    let all = &report.all;
    let parts = [
        percent("PASS", all.pass),
        percent("by names", all.pass_set),
        percent("IFR", all.ifr),
        percent("A", all.alignment),
        percent("PREC", all.prec),
    ];
    let classes = report.classes.iter().filter(|(class, _)| *class != "passes");
    let classes: Vec<String> = classes.map(|(class, count)| format!("; {class} {count}")).collect();
    let flags: Vec<String> = report.flags.iter().map(|(flag, count)| format!("; {flag} {count}")).collect();
    let n = report.instances - report.absent;
    let text =
        format!("{}: {} (%, n = {n}){}{}", report.run, parts.join(", "), classes.concat(), flags.concat());
    terminal::one_line(&text).into_owned()
}
