//! `gistmill serve`: a judge that stays.

mod recube;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::restored::{RestoreArguments, Restored};
use super::score::judged::PARKED_FOR_EACH;
use super::score::policy::PolicyArguments;
use super::score::rules::rules;
use super::{Arguments, Format};
use crate::attempt::pool::{Admission, Parking, Terms};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::pipeline::prepare::Prepared;
use crate::record::family::Unit;
use crate::record::instance::Instance;
use crate::referee::gistify::evaluate::{Policy, Referee};
use crate::referee::gistify::ground::Ground;
use crate::referee::gistify::judged::Judged;
use crate::referee::gistify::original::Original;
use crate::referee::scored::Scored;
use crate::referee::submissions::Submission;
use crate::referee::write;
use crate::serve::{self, Door, Judgement, Settings, Submitted};
use crate::terminal;
use crate::text::count;

/// What runs are called in rows that are not of a run.
const RUN: &str = "serve";
/// Submissions that are judged at the same time, for each job: what waits for a clock leaves the processors to others.
const SLOTS_FOR_EACH: usize = 2;
/// Bytes of judgements that are kept for texts that come again.
const KNOWN_BYTES: usize = 64 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    restore: RestoreArguments,
    /// Where to answer HTTP; port 0 takes one that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8642", conflicts_with = "stdio")]
    listen: SocketAddr,
    /// Answer JSON lines on standard input and output instead
    #[arg(long)]
    stdio: bool,
    /// Listen at an address that other machines reach: there is no login
    #[arg(long, conflicts_with = "stdio")]
    public: bool,
    #[command(flatten)]
    policy: PolicyArguments,
    /// Submissions that may wait; each client has a part of it
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    queue: u32,
    /// What a request may take where it does not say, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    deadline: u64,
}

/// A repository with what its submissions are judged on.
struct Court<'a> {
    prepared: Prepared,
    ground: Ground,
    originals: BTreeMap<String, (&'a Instance, Original<'a>)>,
}

/// Judges until a stop is asked for.
///
/// # Errors
/// Usage errors: a dataset of a family whose submissions are not served, an address that others reach; the machine's.
pub(crate) fn run(arguments: &Arguments, asked: &ServeArguments) -> Result<u8> {
    if !asked.stdio && !asked.public && !asked.listen.ip().is_loopback() {
        return Err(Error::usage(format!("other machines reach {}, and there is no login", asked.listen))
            .with_hint("listen at 127.0.0.1, or say --public where the network is your own"));
    }
    let family = Dataset::open_any(asked.restore.dataset())?.manifest.family;
    match family.unit() {
        Unit::Group => of_tests(arguments, asked),
        Unit::File => recube::run(arguments, asked),
        Unit::Pair => Err(Error::usage(format!(
            "submissions for a dataset of the family {} are not served",
            family.as_str()
        ))
        .with_hint("`gistmill score` judges them")),
    }
}

/// Judges texts in the places of tests.
fn of_tests(arguments: &Arguments, asked: &ServeArguments) -> Result<u8> {
    let mut restored = asked.restore.open(arguments)?;
    restored.take_variants(asked.policy.hidden.as_deref())?;
    rules(&mut restored)?;
    let courts = courts(&restored, asked)?;
    let jobs = restored.job.request.jobs;
    let parking = Arc::new(Parking::new(PARKED_FOR_EACH * SLOTS_FOR_EACH * jobs));
    let instances = courts.iter().flat_map(|court| court.originals.keys().cloned()).collect();
    let policy = asked.policy.policy(restored.family().submission());
    let bench = Bench { courts, policy, parking: &parking, jobs, known: Mutex::default() };
    let parked = Arc::clone(&parking);
    let idle = move || parked.len();
    answer((arguments, asked), (&restored, instances), &|submitted| bench.judge(submitted), idle)
}

/// Answers requests with what judges, and how many runners wait.
fn answer(
    (arguments, asked): (&Arguments, &ServeArguments),
    (restored, instances): (&Restored, BTreeSet<String>),
    judge: &serve::Judge<'_>,
    idle: impl Fn() -> usize + Send + Sync + 'static,
) -> Result<u8> {
    let settings = Settings {
        dataset: restored.job.config.dataset.name.to_string(),
        version: restored.job.config.dataset.version.to_string(),
        instances,
        slots: SLOTS_FOR_EACH * restored.job.request.jobs,
        queue: asked.queue as usize,
        deadline: Duration::from_secs(asked.deadline),
        is_public: asked.public,
    };
    let more = move || vec![("runners_idle", "Runners that wait for a text", idle() as f64)];
    let door = if asked.stdio {
        Door::Stdio
    } else {
        let (format, instances) = (arguments.format, settings.instances.len());
        Door::Http(asked.listen, Box::new(move |address| say_ready(format, address, instances)))
    };
    serve::serve(settings, door, judge, Box::new(more))?;
    Ok(0)
}

fn say_ready(format: Format, address: SocketAddr, instances: usize) {
    match format {
        Format::Json => {
            terminal::json(&json!({ "address": format!("http://{address}"), "instances": instances }));
        }
        Format::Human | Format::Csv => {
            terminal::say(&format!("http://{address} judges {}", count(instances, "instance")));
        }
    }
}

/// Makes the environments, and reads what is judged in them.
fn courts<'a>(restored: &'a Restored, asked: &ServeArguments) -> Result<Vec<Court<'a>>> {
    // As in `score`: what ran out of time beside more than `jobs` others is run again before that counts.
    let admission = Arc::new(Admission::shared(restored.job.request.jobs));
    let mut courts = Vec::new();
    for repo in restored.repositories() {
        let mut prepared = restored.prepare_beside_others(repo, asked.policy.limit())?;
        prepared.lab.admission = Arc::clone(&admission);
        let file = restored.family().submission();
        let ground = Ground::new(&prepared.lab, &restored.job.cache, asked.policy.files, file)?;
        let of_repo = restored.instances.iter().filter(|one| one.slug == repo.slug);
        let instances: BTreeMap<&str, &Instance> =
            of_repo.map(|one| (one.instance_id.as_str(), one)).collect();
        let originals = restored.originals(&repo.slug)?.into_iter().filter_map(|original| {
            let instance = instances.get(original.id.as_str())?;
            Some((original.id.to_string(), (*instance, original)))
        });
        courts.push(Court { prepared, ground, originals: originals.collect() });
    }
    Ok(courts)
}

/// All that judges.
struct Bench<'a> {
    courts: Vec<Court<'a>>,
    policy: Policy,
    parking: &'a Parking,
    jobs: usize,
    known: Mutex<Known>,
}

fn opened(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bench<'_> {
    fn judge(&self, submitted: &Submitted) -> Result<Judgement> {
        let found =
            self.courts.iter().find_map(|court| Some((court, court.originals.get(&submitted.instance)?)));
        let (court, (instance, original)) =
            found.ok_or_else(|| Error::usage(format!("no instance {}", submitted.instance)))?;
        let terms = Terms {
            parking: Some(self.parking),
            // Whoever is alone has all processors.
            workers: Some(if submitted.others == 0 { self.jobs } else { 1 }),
            waiting: Some(submitted.waiting.clone()),
        };
        let referee =
            Referee { lab: &court.prepared.lab, ground: &court.ground, policy: &self.policy, terms: &terms };
        let text = submitted.text.as_bytes();
        let key = referee.key(original, Some(text));
        if let Some(judgement) = opened(&self.known).get(&key, submitted.evidence) {
            return Ok(judgement);
        }
        let submission = Submission { text: Some(text.to_vec()), ..Submission::default() };
        let mut judged = referee.judge(&[(original, &submission)], &mut || ())?;
        let judged = judged.pop().ok_or_else(|| Error::internal("nothing was judged"))?;
        let lost = judged.lost.clone();
        let (row, evidence) = said(instance, judged)?;
        if lost.is_none() {
            opened(&self.known).keep(key, row.clone(), evidence.clone());
        }
        let evidence = submitted.evidence.then_some(evidence);
        Ok(Judgement { row, evidence, lost, known: false })
    }
}

/// The row and the evidence of a judgement.
fn said(instance: &Instance, judged: Judged) -> Result<(String, String)> {
    static NOTHING: Value = Value::Null;
    let scored = Scored { instance, run: RUN, meta: &NOTHING, run_meta: &NOTHING, troubles: &[], judged };
    Ok((write::line(&scored)?, write::evidence_of(&scored).to_string()))
}

/// Judgements of texts that may come again: the oldest goes where there are too many.
#[derive(Default)]
struct Known {
    by_key: HashMap<String, (String, String)>,
    order: VecDeque<String>,
    bytes: usize,
}

impl Known {
    fn get(&self, key: &str, evidence: bool) -> Option<Judgement> {
        let (row, said) = self.by_key.get(key)?;
        let evidence = evidence.then(|| said.clone());
        Some(Judgement { row: row.clone(), evidence, lost: None, known: true })
    }

    fn keep(&mut self, key: String, row: String, evidence: String) {
        let size = |(row, evidence): &(String, String)| row.len() + evidence.len();
        let value = (row, evidence);
        self.bytes += size(&value);
        if let Some(before) = self.by_key.insert(key.clone(), value) {
            self.bytes -= size(&before);
        } else {
            self.order.push_back(key);
        }
        while self.bytes > KNOWN_BYTES {
            let Some(gone) = self.order.pop_front().and_then(|key| self.by_key.remove(&key)) else { break };
            self.bytes -= size(&gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_for_texts_that_come_again_is_bounded() {
        let mut known = Known::default();
        let large = "x".repeat(KNOWN_BYTES / 4);
        for number in 0..10 {
            known.keep(number.to_string(), large.clone(), "e".to_owned());
            known.keep(number.to_string(), large.clone(), "e".to_owned());
        }
        assert!(known.bytes <= KNOWN_BYTES && known.order.len() == known.by_key.len());
        assert_eq!(known.by_key.len(), 3);
        assert!(known.get("0", false).is_none());
        let last = known.get("9", true).unwrap();
        assert_eq!((last.known, last.evidence.as_deref()), (true, Some("e")));
    }
}
