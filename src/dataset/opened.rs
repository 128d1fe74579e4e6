//! A dataset that was written before: the one way to read it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::manifest::{EnvironmentSummary, FILE, Manifest};
use super::table::{AGAIN, Table};
use super::{FORMAT_VERSION, OLDEST_FORMAT, trees};
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::record::id::RepoSlug;
use crate::record::instance::Instance;
use crate::record::outcome::{CaseResult, Outcome};
use crate::record::source::Pinned;
use crate::store::{read_json, sha256_of_file};

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

    /// Reads all columns of a table but these.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub fn table_but(&self, name: &'static str, columns: &[&str]) -> Result<Table> {
        Table::read_but(&self.directory, name, columns)
    }

    /// The published instances, in their order.
    ///
    /// # Errors
    /// The file is missing, or is not as gistmill writes it.
    pub fn instances(&self) -> Result<Vec<Instance>> {
        read_instances(&self.directory.join("instances.jsonl"))
    }

    /// What the originals showed, by instance id, in the order of the entry command.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub(crate) fn golden(&self) -> Result<BTreeMap<String, Vec<CaseResult>>> {
        let table =
            self.table("cases", &["case_id", "instance_id", "outcome", "exception", "stdout", "stderr"])?;
        let (cases, instances) = (table.whole_texts("case_id")?, table.texts("instance_id")?);
        let (outcomes, exceptions) = (table.texts("outcome")?, table.texts("exception")?);
        let (stdout, stderr) = (table.whole_texts("stdout")?, table.whole_texts("stderr")?);
        let mut golden: BTreeMap<String, Vec<CaseResult>> = BTreeMap::new();
        for at in 0..table.rows() {
            let Some(id) = instances[at] else { continue };
            let outcome: Outcome = serde_json::from_value(outcomes[at].into()).map_err(|error| {
                Error::usage(format!("cases.parquet: {} has no outcome", cases[at])).with_source(error)
            })?;
            golden.entry(id.to_owned()).or_default().push(CaseResult {
                case_id: cases[at].to_owned(),
                outcome,
                exception: exceptions[at].map(str::to_owned),
                stdout: stdout[at].to_owned(),
                stderr: stderr[at].to_owned(),
                message: String::new(),
                replaced: BTreeMap::new(),
                duration_ms: 0.0,
            });
        }
        Ok(golden)
    }

    /// Ids of the instances of a subset.
    ///
    /// # Errors
    /// Usage errors: there is no such subset, or its file is not as gistmill writes it.
    pub(crate) fn members(&self, subset: &str) -> Result<BTreeSet<String>> {
        let known = &self.manifest.subsets;
        if !known.contains_key(subset) {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            return Err(Error::usage(format!("the dataset has no subset `{subset}`"))
                .with_hint(format!("its subsets are: {}", names.join(", "))));
        }
        let path = self.directory.join(super::subsets::FOLDER).join(format!("{subset}.jsonl"));
        let lines = read_instances(&path)?;
        Ok(lines.into_iter().map(|one| one.instance_id.to_string()).collect())
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

    /// The archive of a repository's tree, with what is said of the tree. None where code was not passed on.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub(crate) fn archive(&self, slug: &RepoSlug) -> Result<Option<(PathBuf, Pinned)>> {
        let (place, said) = (trees::place(slug), self.manifest.sources.get(slug.as_str()));
        let Some(said) = said.filter(|_| self.manifest.trees.contains_key(slug.as_str())) else {
            return Ok(None);
        };
        if !Folder::open(&self.directory)?.has_file(Path::new(&place)) {
            return Ok(None);
        }
        let pinned = Pinned {
            slug: slug.clone(),
            origin: said.origin.clone(),
            commit: said.commit.clone(),
            pinned_at: said.pinned_at.clone(),
            tree: PathBuf::new(),
            tree_sha256: said.tree_sha256.clone(),
            license: said.license.clone(),
            license_source: said.license_source.clone(),
            tag: said.tag.clone(),
            notes: said.notes.clone(),
        };
        Ok(Some((self.directory.join(place), pinned)))
    }

    /// Writes the hash of a file that was written anew into the manifest.
    ///
    /// # Errors
    /// IO errors with the path.
    pub fn hash_again(&mut self, name: &str) -> Result<()> {
        let hash = sha256_of_file(&self.directory.join(name))?;
        if self.manifest.files.insert(name.to_owned(), hash.clone()) != Some(hash) {
            self.manifest.save(&self.directory)?;
        }
        Ok(())
    }
}

fn read_instances(path: &Path) -> Result<Vec<Instance>> {
    let lines = fs_err::read_to_string(path).map_err(|error| Error::from(error).with_hint(AGAIN))?;
    let instance = |(number, line)| {
        serde_json::from_str(line).map_err(|error| {
            Error::usage(format!("{}:{} is not what gistmill wrote", path.display(), number + 1))
                .with_source(error)
                .with_hint(AGAIN)
        })
    };
    lines.lines().enumerate().map(instance).collect()
}

fn not_a_dataset(directory: &Path, why: &str) -> Error {
    Error::usage(format!("{} is not a dataset: {why}", directory.display()))
        .with_hint("name the directory output/<name>/<version>")
}
