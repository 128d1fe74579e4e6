//! Witnesses of a dataset: `witnesses/<instance>.py`, why others have none, and their columns.
//!
//! A dataset that exists is never changed in place: the whole directory is made anew beside it, with what stays copied,
//! and swapped in with one rename.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;

use serde::Serialize;

use super::rated::all_of;
use super::swap::{ENTRIES, Staging};
use super::write::{self, text};
use super::{Dataset, card, manifest, subsets};
use crate::beneath::{Folder, Kind};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::record::id::InstanceId;
use crate::record::instance::Instance;
use crate::record::witness::Witness;

/// The folder of a dataset that holds them.
pub const FOLDER: &str = "witnesses";
/// The file in it with the causes of those that have none.
const CAUSES: &str = "causes.jsonl";
/// Largest file of a dataset that is taken over, in bytes.
const LARGEST: u64 = 16 << 30;

/// Largest card that is looked at, in bytes.
const LARGEST_CARD: u64 = 64 << 20;

/// Largest witness that is taken over, in bytes: submissions have no more either.
pub(crate) const LARGEST_WITNESS: u64 = 8 << 20;
/// Largest list of causes that is read, in bytes.
const LARGEST_CAUSES: u64 = 256 << 20;

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
    let card = card::render(&dataset.manifest, &all_of(&instances), instances.first())?;
    for instance in &mut instances {
        if let Some(witness) = witnesses.get(&instance.instance_id) {
            instance.witness = witness.columns.clone();
        }
    }
    let staging = Staging::beside(&dataset.directory)?;
    let folder = staging.path().to_owned();
    copy(&dataset.folder()?, &folder)?;
    instance_tables(dataset, &folder, &instances)?;
    files(&folder, witnesses)?;
    let mut manifest = dataset.manifest.clone();
    manifest.files.clear();
    // One of another version, or of somebody's own, stays as it is.
    if dataset
        .folder()?
        .read_if_there(Path::new(card::FILE), LARGEST_CARD)?
        .is_some_and(|text| text == card.as_bytes())
    {
        text(&folder.join(card::FILE), &card::render(&manifest, &all_of(&instances), instances.first())?)?;
    }
    manifest.add_files(&folder)?;
    manifest.save(&folder)?;
    staging.swap_in()
}

impl Dataset {
    /// Why instances have no witness, by their IDs.
    ///
    /// # Errors
    /// IO errors with the path; a usage error where a row is not what gistmill wrote.
    pub(crate) fn why_no_witness(&self) -> Result<BTreeMap<String, String>> {
        let place = Path::new(FOLDER).join(CAUSES);
        let bytes = self.folder()?.read_if_there(&place, LARGEST_CAUSES)?.unwrap_or_default();
        let mut found = BTreeMap::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let row: serde_json::Value = serde_json::from_slice(line).map_err(|error| {
                let shown = self.directory.join(&place);
                Error::usage(format!("{} is not what gistmill wrote", shown.display())).with_source(error)
            })?;
            let of = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            found.insert(of("instance_id"), of("evidence"));
        }
        Ok(found)
    }
}

/// Takes over all regular files that a dataset consists of, but for its manifest.
fn copy(whole: &Folder, to: &Path) -> Result<()> {
    let to = Folder::open(to)?;
    for entry in whole.walk()? {
        let top = entry.path.components().next().map(|part| part.as_os_str().to_owned());
        let is_ours = top.is_some_and(|top| ENTRIES.iter().any(|name| top == *name));
        if entry.kind == Kind::File && is_ours && entry.path != Path::new(manifest::FILE) {
            let is_remade =
                ["instances.parquet", "instances.jsonl"].iter().any(|name| entry.path == Path::new(name))
                    || entry.path.starts_with(subsets::FOLDER);
            if !is_remade {
                copy_file(whole.open_file(&entry.path)?, to.create_new(&entry.path)?, &entry.path)?;
            }
        }
    }
    Ok(())
}

/// Piece by piece: it may be large, and whoever waits may ask to stop.
fn copy_file(from: impl Read, mut to: impl Write, name: &Path) -> Result<()> {
    let (mut from, mut left, mut buffer) = (from, LARGEST, vec![0; 1 << 16]);
    loop {
        interrupt::check()?;
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        left = left.checked_sub(read as u64).ok_or_else(|| {
            Error::usage(format!("{} has more than the {LARGEST} bytes that a file may have", name.display()))
        })?;
        to.write_all(&buffer[..read])?;
    }
}

/// The instances and the subsets of them.
fn instance_tables(dataset: &Dataset, folder: &Path, instances: &[Instance]) -> Result<()> {
    write::instances(&Folder::open(folder)?, "instances", instances.iter().cloned().map(Ok))?;
    let definitions: Vec<_> =
        dataset.manifest.subsets.values().map(|summary| summary.definition.clone()).collect();
    subsets::write(&folder.join(subsets::FOLDER), &definitions, instances)
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
