//! Witnesses of a dataset: `witnesses/<instance>.py`, why others have none, and their columns.
//!
//! A dataset that is there is never changed in place: the whole directory is made anew beside it, with what stays copied,
//! and swapped in with one rename.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::swap::{ENTRIES, Staging};
use super::write::{self, text};
use super::{Dataset, manifest, subsets};
use crate::beneath::{Folder, Kind};
use crate::error::{Error, Result};
use crate::record::id::InstanceId;
use crate::record::instance::Instance;
use crate::record::witness::Witness;

/// The folder of a dataset that holds them.
pub const FOLDER: &str = "witnesses";
/// The file in it with the causes of those that have none.
const CAUSES: &str = "causes.jsonl";
/// Largest file of a dataset that is taken over, in bytes.
const LARGEST: u64 = 16 << 30;

/// A row of the causes.
#[derive(Serialize)]
struct Cause<'a> {
    instance_id: &'a str,
    witness: &'a str,
    evidence: &'a str,
}

/// Gives a dataset these witnesses, by instance id; what is said of other instances stays.
///
/// Two writers of one directory must not run at once: whoever calls this holds the dataset's lock.
///
/// # Errors
/// IO errors with the path; the dataset is then as it was.
pub fn add(dataset: &Dataset, witnesses: &BTreeMap<InstanceId, Witness>) -> Result<()> {
    let mut instances = dataset.instances()?;
    for instance in &mut instances {
        if let Some(witness) = witnesses.get(&instance.instance_id) {
            instance.witness = witness.columns.clone();
        }
    }
    let staging = Staging::beside(&dataset.directory)?;
    let folder = staging.path().to_owned();
    copy(&dataset.directory, &folder)?;
    instance_tables(dataset, &folder, &instances)?;
    files(&folder, witnesses)?;
    let mut manifest = dataset.manifest.clone();
    manifest.files.clear();
    manifest.add_files(&folder)?;
    manifest.save(&folder)?;
    staging.swap_in()
}

/// Takes over all regular files that a dataset consists of, but for its manifest.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let whole = Folder::open(from)?;
    for entry in whole.walk()? {
        let top = entry.path.components().next().map(|part| part.as_os_str().to_owned());
        let is_ours = top.is_some_and(|top| ENTRIES.iter().any(|name| top == *name));
        if entry.kind == Kind::File && is_ours && entry.path != Path::new(manifest::FILE) {
            let target = to.join(&entry.path);
            if let Some(parent) = target.parent() {
                fs_err::create_dir_all(parent)?;
            }
            fs_err::write(&target, whole.read(&entry.path, LARGEST)?)?;
        }
    }
    Ok(())
}

/// The instances and the subsets of them.
fn instance_tables(dataset: &Dataset, folder: &Path, instances: &[Instance]) -> Result<()> {
    let whole = |at: usize| Ok(instances[at].clone());
    write::instances(folder, "instances", (0..instances.len()).map(whole))?;
    let definitions: Vec<_> =
        dataset.manifest.subsets.values().map(|summary| summary.definition.clone()).collect();
    subsets::write(&folder.join(subsets::FOLDER), &definitions, (instances, &whole))
}

/// Writes the files of the witnesses, and the causes; nothing where there are none.
pub(super) fn files(folder: &Path, witnesses: &BTreeMap<InstanceId, Witness>) -> Result<()> {
    if witnesses.is_empty() {
        return Ok(());
    }
    let place = folder.join(FOLDER);
    fs_err::create_dir_all(&place)?;
    let causes = place.join(CAUSES);
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    if let Ok(before) = fs_err::read_to_string(&causes) {
        for line in before.lines() {
            let row: serde_json::Value = serde_json::from_str(line).map_err(|error| {
                Error::usage(format!("{} is not what gistmill wrote", causes.display())).with_source(error)
            })?;
            let id = row["instance_id"].as_str().unwrap_or_default().to_owned();
            if !witnesses.keys().any(|known| known.as_str() == id) {
                rows.insert(id, line.to_owned());
            }
        }
    }
    for (id, witness) in witnesses {
        let path = place.join(format!("{id}.py"));
        match &witness.text {
            Some(written) => text(&path, written)?,
            None if path.exists() => fs_err::remove_file(&path)?,
            None => {}
        }
        if let (Some(evidence), Some(cause)) = (&witness.evidence, &witness.columns.witness) {
            let row = serde_json::to_string(&Cause { instance_id: id.as_str(), witness: cause, evidence });
            rows.insert(
                id.to_string(),
                row.map_err(|error| Error::internal("cannot encode a cause").with_source(error))?,
            );
        }
    }
    let mut lines = String::new();
    for row in rows.values() {
        let _ = writeln!(lines, "{row}");
    }
    text(&causes, &lines)
}
