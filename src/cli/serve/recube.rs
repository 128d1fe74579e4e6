//! `gistmill serve` for masked files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{Known, SLOTS_FOR_EACH, ServeArguments, answer, opened};
use crate::attempt::pool::Admission;
use crate::cli::Arguments;
use crate::cli::restored::Restored;
use crate::cli::score::policy::PolicyArguments;
use crate::cli::score::recube::OnTrial;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::family::recube::score::Class;
use crate::pipeline::prepare::Prepared;
use crate::record::id::{hash_parts, sha256_hex};
use crate::referee::recube::tables::{Row, evidence, line};
use crate::referee::submissions::Submission;
use crate::referee::texts::Runs;
use crate::serve::{Judgement, Submitted};

/// Judges texts in the places of masked files, until a stop is asked for.
///
/// # Errors
/// Usage errors: an original or a mask is not the one that the dataset says; the machine's.
pub(super) fn run(arguments: &Arguments, asked: &ServeArguments) -> Result<u8> {
    let (restored, instances, others) = asked.restore.open_rows(arguments, Dataset::recube_instances)?;
    if let Some((_, error)) = others.into_iter().next() {
        return Err(error);
    }
    let cases = restored.dataset.judging_cases()?;
    // As in `score`: what ran out of time beside more than `jobs` others is run again before that counts.
    let jobs = restored.job.request.jobs;
    let admission = Arc::new(Admission::shared(jobs));
    let mut repositories: BTreeMap<&str, Prepared> = BTreeMap::new();
    for repo in restored.repositories() {
        let mut prepared = restored.prepare_beside_others(repo, asked.policy.limit())?;
        prepared.lab.admission = Arc::clone(&admission);
        repositories.insert(repo.slug.as_str(), prepared);
    }
    let mut on_trial: BTreeMap<String, (&Prepared, OnTrial<'_>)> = BTreeMap::new();
    for instance in &instances {
        let prepared = repositories
            .get(instance.head.slug.as_str())
            .ok_or_else(|| Error::internal(format!("{} was not prepared", instance.head.slug)))?;
        let one = OnTrial::new(&prepared.lab, instance, &cases)?;
        on_trial.insert(instance.head.instance_id.to_string(), (prepared, one));
    }
    let runs = Arc::new(Runs::fresh(SLOTS_FOR_EACH * jobs));
    let (ids, idle) = (on_trial.keys().cloned().collect(), Arc::clone(&runs));
    let policy = &asked.policy;
    let bench = Bench { restored: &restored, on_trial, policy, runs: &runs, known: Mutex::default() };
    answer((arguments, asked), (&restored, ids), &|submitted| bench.judge(submitted), move || idle.idle())
}

/// All that judges.
struct Bench<'a> {
    restored: &'a Restored,
    on_trial: BTreeMap<String, (&'a Prepared, OnTrial<'a>)>,
    policy: &'a PolicyArguments,
    runs: &'a Runs,
    known: Mutex<Known>,
}

impl Bench<'_> {
    fn judge(&self, submitted: &Submitted) -> Result<Judgement> {
        static NOTHING: Value = Value::Null;
        let (prepared, on_trial) = self
            .on_trial
            .get(&submitted.instance)
            .ok_or_else(|| Error::usage(format!("no instance {}", submitted.instance)))?;
        let key = hash_parts(&[submitted.instance.clone(), sha256_hex(submitted.text.as_bytes())]);
        if let Some(judgement) = opened(&self.known).get(&key, submitted.evidence) {
            return Ok(judgement);
        }
        let submission =
            Submission { text: Some(submitted.text.clone().into_bytes()), ..Submission::default() };
        let place = (&prepared.lab, &self.restored.job.cache);
        let asked = (self.runs, Some(&submitted.waiting));
        let judged = on_trial.judge(place, &submission, self.policy, asked)?;
        let lost = (judged.class == Class::Lost).then(|| judged.detail.clone().unwrap_or_default());
        let evidence = evidence(&judged).to_string();
        let row = Row {
            instance: on_trial.instance,
            meta: &NOTHING,
            has_folder: true,
            judged,
            quarter: None,
            viewed: None,
        };
        let row = line(&row)?;
        if lost.is_none() {
            opened(&self.known).keep(key, row.clone(), evidence.clone());
        }
        Ok(Judgement { row, evidence: submitted.evidence.then_some(evidence), lost, known: false })
    }
}
