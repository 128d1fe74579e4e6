//! `gistmill export --receipt`: what the export's own judge pays in its images.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::super::several::several;
use super::super::{Arguments, session};
use crate::backend::docker::{ContainerLimits, Engine, one_shot, push};
use crate::error::{Error, Result};
use crate::export::receipt::{self, Handed, Hearing, RECEIPT};
use crate::export::{Collection, Harness, settings};
use crate::progress::Progress;
use crate::record::id::InstanceId;
use crate::store::write_json;
use crate::terminal;
use crate::text::{count, shell_quote};

/// Of a judge: more would be cut off by Harbor as well.
const PROCESSES: u64 = 4096;

/// What one thing that was handed in was paid.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Paid {
    /// None where the judge did not judge.
    reward: Option<f64>,
    is_right: bool,
    /// Why it did not judge, or what it objected to.
    why: String,
}

/// What the judge of a task paid, by kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct TaskReceipt {
    image: String,
    /// The engine's ID of the image that judged.
    image_id: String,
    /// Hash of the task's files, as `content_sha256` of its metadata is.
    content_sha256: String,
    paid: BTreeMap<&'static str, Paid>,
}

/// What the judge of an export paid.
#[derive(Debug, Serialize)]
pub(super) struct Receipt {
    dataset: String,
    version: String,
    gistmill: &'static str,
    engine: String,
    /// Whether all was paid as it must be.
    pub(super) is_right: bool,
    tasks: BTreeMap<InstanceId, TaskReceipt>,
}

/// # Errors
/// Usage errors: none of the harnesses has the files of a judge, or images are files.
pub(super) fn check(harnesses: &BTreeSet<Harness>, settings: &settings::Settings) -> Result<()> {
    let has_judge = [Harness::Harbor, Harness::Inspect, Harness::Verifiers];
    if !has_judge.iter().any(|one| harnesses.contains(one)) {
        return Err(Error::usage(
            "--receipt runs the judge of Harbor's tasks, which these harnesses do not have",
        )
        .with_hint("add harbor: `--to harbor,swe-bench`"));
    }
    if settings.sif.is_some() {
        return Err(Error::usage("--receipt runs images of an engine, and --images names files"));
    }
    Ok(())
}

/// Has the judge of each task judge its solution, nothing, and cheats; writes what came of it into the export.
///
/// # Errors
/// A usage error where the engine lacks images. The engine's; an interruption.
pub(super) fn run(arguments: &Arguments, directory: &Path, collection: &Collection) -> Result<Receipt> {
    let engine = Engine::connect(arguments.engine)?;
    let hearings = receipt::hearings(collection)?;
    let images = images(&engine, &hearings, directory)?;
    let work: Vec<(&Hearing<'_>, &Handed)> = hearings
        .iter()
        .flat_map(|hearing| hearing.handed.iter().map(move |handed| (hearing, handed)))
        .collect();
    let stage = Progress::for_terminal().stage("receipt", work.len() as u64);
    let done = several(work, session::cores(), &|(hearing, handed): (&Hearing<'_>, &Handed)| {
        let paid = paid(&engine, hearing, handed)?;
        stage.step();
        Ok((hearing, handed.kind, paid))
    })?;
    drop(stage);
    let mut tasks: BTreeMap<InstanceId, TaskReceipt> = BTreeMap::new();
    for (hearing, kind, paid) in done {
        let one = tasks.entry(hearing.task.id.clone()).or_insert_with(|| TaskReceipt {
            image: hearing.image.to_owned(),
            image_id: images.get(hearing.image).cloned().unwrap_or_default(),
            content_sha256: hearing.content.clone(),
            paid: BTreeMap::new(),
        });
        one.paid.insert(kind, paid);
    }
    let receipt = Receipt {
        dataset: collection.name.clone(),
        version: collection.version.clone(),
        gistmill: env!("CARGO_PKG_VERSION"),
        engine: engine.version.clone(),
        is_right: tasks.values().flat_map(|task| task.paid.values()).all(|paid| paid.is_right),
        tasks,
    };
    write_json(&directory.join(RECEIPT), &receipt)?;
    Ok(receipt)
}

/// The IDs of the images by name, all of which the engine must have.
fn images(engine: &Engine, hearings: &[Hearing<'_>], directory: &Path) -> Result<BTreeMap<String, String>> {
    let names: BTreeSet<&str> = hearings.iter().map(|hearing| hearing.image).collect();
    let (mut images, mut missing) = (BTreeMap::new(), Vec::new());
    for name in names {
        match push::local(engine, name)? {
            Some(image) => drop(images.insert(name.to_owned(), image.id)),
            None => missing.push(name),
        }
    }
    if missing.is_empty() {
        return Ok(images);
    }
    let script = shell_quote(&directory.join("images/build.sh").to_string_lossy());
    Err(Error::usage(format!("the engine does not have {} of the export", count(missing.len(), "image")))
        .with_detail(missing.join("\n"))
        .with_hint(format!(
            "`sh {script}` gets them; then run the same command again: the export is written"
        )))
}

fn paid(engine: &Engine, hearing: &Hearing<'_>, handed: &Handed) -> Result<Paid> {
    let memory = settings::memory_mb(hearing.task.measured.demand.memory) * settings::MEBIBYTE;
    let limits = ContainerLimits { memory, processes: PROCESSES, milli_cpus: 1000 };
    let limit = Duration::from_secs(hearing.seconds);
    let (script, packed) = (receipt::script(hearing.task), packed(handed)?);
    let judge = || one_shot::script(engine, (hearing.image, script.clone()), &packed, limits, limit);
    let done = engine.patiently(judge)?;
    if done.timed_out {
        let why = format!("the judge takes longer than {} s", hearing.seconds);
        return Ok(Paid { reward: None, is_right: false, why });
    }
    let reward = if done.code == Some(0) { reward_of(&done.stdout) } else { None };
    let wanted = if handed.is_right { 1.0 } else { 0.0 };
    let said = done.stderr.lines().last().unwrap_or_default();
    let why = said.split_once("; ").map_or(said, |(_, why)| why).to_owned();
    Ok(Paid { is_right: reward == Some(wanted), reward, why })
}

/// The number that the judge wrote; none where it wrote none.
fn reward_of(text: &str) -> Option<f64> {
    let line = text.lines().last()?;
    serde_json::from_str::<serde_json::Value>(line).ok()?.get("reward")?.as_f64()
}

/// What the container unpacks.
fn packed(handed: &Handed) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, file) in &handed.files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        archive.append_data(&mut header, path, file.bytes.as_slice())?;
    }
    Ok(archive.into_inner()?)
}

/// Says what was paid wrongly, and how much was paid rightly.
pub(super) fn print(receipt: &Receipt) {
    for (id, task) in &receipt.tasks {
        for (kind, paid) in task.paid.iter().filter(|(_, paid)| !paid.is_right) {
            let reward =
                paid.reward.map_or_else(|| "no reward".to_owned(), |reward| format!("reward {reward}"));
            terminal::warn(&format!("{id}: {kind}: {reward}: {}", terminal::one_line(&paid.why)));
        }
    }
    let paid = |is_kind: &dyn Fn(&str) -> bool| {
        let all = receipt.tasks.values().flat_map(|task| &task.paid);
        let of: Vec<bool> = all.filter(|(kind, _)| is_kind(kind)).map(|(_, paid)| paid.is_right).collect();
        format!("{} of {}", of.iter().filter(|is_right| **is_right).count(), of.len())
    };
    terminal::say(&format!(
        "receipt: solutions paid 1: {}; nothing paid 0: {}; cheats paid 0: {}; in {RECEIPT}",
        paid(&|kind| kind == "gold"),
        paid(&|kind| kind == "nothing"),
        paid(&|kind| !["gold", "nothing"].contains(&kind))
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_reward() {
        assert_eq!(reward_of("noise\n{\"reward\": 0.5}"), Some(0.5));
        assert_eq!(reward_of("{\"reward\": \"1\"}"), None);
        assert_eq!(reward_of("{}"), None);
        assert_eq!(reward_of(""), None);
    }

    #[test]
    fn only_a_judge_in_an_engine_gives_a_receipt() {
        let harnesses = |harness| BTreeSet::from([harness]);
        let settings = settings::Settings::default();
        assert!(check(&harnesses(Harness::Inspect), &settings).is_ok());
        assert!(check(&harnesses(Harness::Prompts), &settings).is_err());
        let files = settings::Settings { sif: Some("/images".into()), ..settings };
        assert!(check(&harnesses(Harness::Harbor), &files).is_err());
    }
}
