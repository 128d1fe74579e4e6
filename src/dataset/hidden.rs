//! `hidden/variants.jsonl`: what submissions are judged by and must not know. It is left out of a dataset that is
//! published, whose manifest has its hash all the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Dataset;
use super::assemble::Assembled;
use super::manifest::HIDDEN;
use super::table::AGAIN;
use super::write;
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::record::id::{InstanceId, sha256_hex};
use crate::record::trace::check_path;
use crate::record::variant::{RULES, Variant};

/// Its one file.
pub(crate) const FILE: &str = "hidden/variants.jsonl";
/// Its name in the folder.
const NAME: &str = "variants.jsonl";
/// Largest file that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// The first row.
#[derive(Serialize, Deserialize)]
struct First {
    rules: String,
    seed: u64,
}

/// Every other row.
#[derive(Serialize, Deserialize)]
struct Row {
    instance_id: InstanceId,
    #[serde(flatten)]
    variant: Variant,
}

/// Variants by instance.
pub(crate) type Variants = BTreeMap<InstanceId, Vec<Variant>>;

/// The file of a dataset.
///
/// # Errors
/// A row that cannot be encoded, which is a bug.
pub(super) fn text(seed: u64, assembled: &Assembled<'_>) -> Result<String> {
    let encoded = |row: serde_json::Result<String>| {
        row.map_err(|error| Error::internal("cannot encode a variant").with_source(error))
    };
    let first = First { rules: RULES.to_owned(), seed };
    let mut text = encoded(serde_json::to_string(&first))?;
    text.push('\n');
    let variants: BTreeMap<&InstanceId, &Vec<Variant>> =
        assembled.repositories.iter().flat_map(|one| one.variants).collect();
    for instance in &assembled.instances {
        for variant in variants.get(&instance.instance_id).into_iter().copied().flatten() {
            let row = Row { instance_id: instance.instance_id.clone(), variant: variant.clone() };
            let _ = writeln!(text, "{}", encoded(serde_json::to_string(&row))?);
        }
    }
    Ok(text)
}

/// Writes it into the folder of a dataset.
///
/// # Errors
/// IO errors with the path.
pub(super) fn write(folder: &Path, text: &str) -> Result<()> {
    Folder::open(folder)?.make_folder(Path::new(HIDDEN))?;
    write::text(&folder.join(FILE), text)
}

impl Dataset {
    /// The hashes of all files, and of those in `hidden/` where that was not left out.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub(crate) fn hashes(&self) -> Result<BTreeMap<String, String>> {
        let (folder, manifest) = (self.folder()?, &self.manifest);
        let there = manifest.hidden.iter().filter(|(file, _)| folder.has_file(Path::new(file)));
        Ok(manifest.files.iter().chain(there).map(|(file, hash)| (file.clone(), hash.clone())).collect())
    }

    /// The variants of its instances, from the dataset or from another folder. None where they are in neither.
    ///
    /// # Errors
    /// Usage errors: what exists is not what the manifest says.
    pub(crate) fn variants(&self, elsewhere: Option<&Path>) -> Result<Option<Variants>> {
        let (folder, place) = match elsewhere {
            None => (self.folder()?, FILE),
            Some(path) => (Folder::named(path)?, NAME),
        };
        let path = folder.path().join(place);
        let bytes = match folder.read_if_there(Path::new(place), LARGEST)? {
            Some(bytes) => bytes,
            None if elsewhere.is_none() => return Ok(None),
            None => {
                return Err(Error::usage(format!("{} does not exist", path.display()))
                    .with_hint("name the folder `hidden` of the build that has it"));
            }
        };
        if self.manifest.hidden.get(FILE).is_none_or(|hash| *hash != sha256_hex(&bytes)) {
            return Err(Error::usage(format!("{} is not that of this dataset", path.display()))
                .with_detail("its SHA-256 is not the one in manifest.json")
                .with_hint(AGAIN));
        }
        let damaged = |number: usize| {
            Error::usage(format!("{}:{number} is not what gistmill wrote", path.display())).with_hint(AGAIN)
        };
        let mut lines = bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
        let first = lines.next().and_then(|(_, line)| serde_json::from_slice::<First>(line).ok());
        let first = first.ok_or_else(|| damaged(1))?;
        if first.rules != RULES {
            return Err(Error::usage(format!("{} follows the rules {:?}", path.display(), first.rules))
                .with_hint(format!("this gistmill judges by {RULES}: build the dataset again")));
        }
        let mut variants = Variants::new();
        for (at, line) in lines {
            let row: Row =
                serde_json::from_slice(line).map_err(|error| damaged(at + 1).with_source(error))?;
            if row
                .variant
                .variation
                .iter()
                .flat_map(|one| one.given.files.keys())
                .any(|path| check_path(path).is_err())
            {
                return Err(damaged(at + 1).with_detail("it names a file outside of the tree"));
            }
            variants.entry(row.instance_id).or_default().push(row.variant);
        }
        Ok(Some(variants))
    }
}
