//! A dataset that was written before: the one way to read it.

use std::path::{Path, PathBuf};

use super::manifest::{EnvironmentSummary, FILE, Manifest};
use super::table::{AGAIN, Table};
use super::{FORMAT_VERSION, OLDEST_FORMAT};
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::record::id::{RepoSlug, sha256_hex};
use crate::record::instance::Instance;
use crate::store::read_json;

/// The folder of a dataset with what each environment was built from.
const ENVIRONMENTS: &str = "environments";
/// Largest lock that is read, in bytes.
const LARGEST_LOCK: u64 = 64 << 20;

/// A dataset with its manifest.
#[derive(Debug)]
pub struct Dataset {
    pub directory: PathBuf,
    pub manifest: Manifest,
}

impl Dataset {
    /// Opens a directory `output/<name>/<version>`.
    ///
    /// # Errors
    /// Usage errors: it is not a dataset, is damaged, or has another format.
    pub fn open(directory: &Path) -> Result<Self> {
        if directory.exists() && !directory.is_dir() {
            return Err(not_a_dataset(directory, "it is not a directory"));
        }
        Self::find(directory)?.ok_or_else(|| not_a_dataset(directory, "it has no manifest.json"))
    }

    /// The same; none where nothing was built yet.
    ///
    /// # Errors
    /// Usage errors: what is there is damaged, or has another format.
    pub fn find(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(FILE);
        let manifest: Option<serde_json::Value> = read_json(&path).map_err(|error| error.with_hint(AGAIN))?;
        let Some(manifest) = manifest else { return Ok(None) };
        let found = &manifest["format_version"];
        let formats = u64::from(OLDEST_FORMAT)..=u64::from(FORMAT_VERSION);
        if !found.as_u64().is_some_and(|found| formats.contains(&found)) {
            return Err(Error::usage(format!(
                "{} has format {found}; this gistmill reads formats {OLDEST_FORMAT} to {FORMAT_VERSION}",
                directory.display()
            ))
            .with_hint("build the dataset again, or use the gistmill that wrote it"));
        }
        let manifest = serde_json::from_value(manifest).map_err(|error| {
            Error::usage(format!("{} is damaged: {error}", path.display())).with_hint(AGAIN)
        })?;
        Ok(Some(Dataset { directory: directory.to_owned(), manifest }))
    }

    /// Reads the named columns of a table, all when none is named.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub fn table(&self, name: &'static str, columns: &[&str]) -> Result<Table> {
        Table::read(&self.directory, name, columns)
    }

    /// The published instances, in their order.
    ///
    /// # Errors
    /// The file is missing, or is not as gistmill writes it.
    pub fn instances(&self) -> Result<Vec<Instance>> {
        let path = self.directory.join("instances.jsonl");
        let lines = fs_err::read_to_string(&path).map_err(|error| Error::from(error).with_hint(AGAIN))?;
        let instance = |(number, line)| {
            serde_json::from_str(line).map_err(|error| {
                Error::usage(format!("{}:{} is not what gistmill wrote", path.display(), number + 1))
                    .with_source(error)
                    .with_hint(AGAIN)
            })
        };
        lines.lines().enumerate().map(instance).collect()
    }

    /// What a repository's tests run in.
    ///
    /// # Errors
    /// Usage errors: the manifest says nothing about it.
    pub(crate) fn environment(&self, slug: &RepoSlug) -> Result<&EnvironmentSummary> {
        self.manifest.environments.get(slug.as_str()).ok_or_else(|| {
            Error::usage(format!("the dataset says nothing about the environment of {slug}")).with_hint(AGAIN)
        })
    }

    /// The lock of a repository's environment.
    ///
    /// # Errors
    /// It is missing, is a link, or is too large.
    pub(crate) fn lock(&self, slug: &RepoSlug) -> Result<String> {
        let place = Path::new(ENVIRONMENTS).join(slug.file_name()).join("requirements.lock");
        let bytes = Folder::open(&self.directory)?.read(&place, LARGEST_LOCK)?;
        String::from_utf8(bytes)
            .map_err(|_| Error::usage(format!("{} is not text", self.directory.join(place).display())))
    }

    /// Writes the hash of a file that was written anew into the manifest.
    ///
    /// # Errors
    /// IO errors with the path.
    pub fn hash_again(&mut self, name: &str) -> Result<()> {
        let hash = sha256_hex(&fs_err::read(self.directory.join(name))?);
        if self.manifest.files.insert(name.to_owned(), hash.clone()) != Some(hash) {
            self.manifest.save(&self.directory)?;
        }
        Ok(())
    }
}

fn not_a_dataset(directory: &Path, why: &str) -> Error {
    Error::usage(format!("{} is not a dataset: {why}", directory.display()))
        .with_hint("name the directory output/<name>/<version>")
}
