//! A dataset that was written before: the one way to read it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::manifest::{EnvironmentSummary, FILE, Manifest};
use super::table::{AGAIN, Columns, Table, file};
use super::{FORMAT_VERSION, trees};
use crate::beneath::Folder;
use crate::error::{Error, Fault, Result};
use crate::interrupt;
use crate::record::family::Unit;
use crate::record::id::{InstanceId, Name, RepoSlug};
use crate::record::instance::Instance;
use crate::record::moment::Cutoff;
use crate::record::outcome::{CaseResult, Outcome};
use crate::record::source::Pinned;
use crate::record::task::Demand;
use crate::store::sha256_of_file;

/// Largest manifest that is read, in bytes.
const LARGEST_MANIFEST: u64 = 64 << 20;
/// Largest list of instances that is read, in bytes, and the longest line of it.
const LARGEST_LINES: u64 = 8 << 30;
const LONGEST_LINE: u64 = 256 << 20;
/// The folder of a dataset with what each environment was built from.
const ENVIRONMENTS: &str = "environments";
/// Largest lock that is read, in bytes.
const LARGEST_LOCK: u64 = 64 << 20;

/// A dataset with its manifest.
#[derive(Debug, Clone)]
pub struct Dataset {
    pub directory: PathBuf,
    pub manifest: Manifest,
}

impl Dataset {
    /// Opens a directory `output/<name>/<version>` with Gistify's tables.
    ///
    /// # Errors
    /// Usage errors: it is not a dataset, is damaged, has another format, or is of another family.
    pub fn open(directory: &Path) -> Result<Self> {
        let dataset = Self::open_any(directory)?;
        match dataset.manifest.family.unit() {
            Unit::Group => Ok(dataset),
            Unit::File | Unit::Pair => Err(dataset.not_read_yet()),
        }
    }

    /// The error of a command that does not read datasets of this family.
    pub(crate) fn not_read_yet(&self) -> Error {
        Error::usage(format!(
            "{} is a dataset of the family {}, which this command does not read yet",
            self.directory.display(),
            self.manifest.family.as_str()
        ))
        .with_hint("`gistmill score` judges what agents make of it; its tables are plain Parquet")
    }

    /// Opens a directory `output/<name>/<version>`, of whatever family.
    ///
    /// # Errors
    /// Usage errors: it is not a dataset, is damaged, or has another format.
    pub fn open_any(directory: &Path) -> Result<Self> {
        if directory.exists() && !directory.is_dir() {
            return Err(not_a_dataset(directory, "it is not a directory"));
        }
        Self::find(directory)?.ok_or_else(|| not_a_dataset(directory, "it has no manifest.json"))
    }

    /// Opens a directory `output/<name>/<version>`; none where nothing was built yet.
    ///
    /// # Errors
    /// Usage errors: what exists is damaged, or has another format.
    pub fn find(directory: &Path) -> Result<Option<Self>> {
        if !directory.is_dir() {
            return Ok(None);
        }
        let path = directory.join(FILE);
        let text = Folder::named(directory)?.read_if_there(Path::new(FILE), LARGEST_MANIFEST);
        let Some(text) = text.map_err(|error| error.blame(Fault::Usage).with_hint(AGAIN))? else {
            return Ok(None);
        };
        let no_json = |error: serde_json::Error| {
            Error::machine(format!("{} is not what gistmill wrote", path.display()))
                .with_source(error)
                .with_hint(AGAIN)
        };
        let format: Format = serde_json::from_slice(&text).map_err(no_json)?;
        if format.format_version != FORMAT_VERSION {
            return Err(Error::usage(format!(
                "{} has format {}; this gistmill reads format {FORMAT_VERSION}",
                directory.display(),
                format.format_version
            ))
            .with_hint("build the dataset again, or use the gistmill that wrote it"));
        }
        let damaged = |why: &dyn std::fmt::Display| {
            Error::usage(format!("{} is damaged: {why}", path.display())).with_hint(AGAIN)
        };
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| damaged(&error))?;
        manifest.check().map_err(|why| damaged(&why))?;
        Ok(Some(Dataset { directory: directory.to_owned(), manifest }))
    }

    /// Its directory, in which nothing is followed.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn folder(&self) -> Result<Folder> {
        Folder::named(&self.directory)
    }

    /// Reads the named columns of a table, all when none is named.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub fn table(&self, name: &str, columns: &[&str]) -> Result<Table> {
        self.part(name, Columns::named(columns), None)
    }

    /// Reads the named columns of at most as many rows, from the given one; none where there are no more.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub fn table_part(&self, name: &str, columns: &[&str], part: (usize, usize)) -> Result<Option<Table>> {
        Ok(Some(self.part(name, Columns::named(columns), Some(part))?).filter(|part| part.rows() > 0))
    }

    /// Reads all columns of a table but these.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub fn table_but(&self, name: &str, columns: &[&str]) -> Result<Table> {
        self.part(name, Columns::But(columns), None)
    }

    fn part(&self, name: &str, columns: Columns<'_>, part: Option<(usize, usize)>) -> Result<Table> {
        Table::read((&self.folder()?, name), columns, part, self.rows_of(name))
    }

    /// Rows of a table, or of a subset by its place, as the manifest says.
    fn rows_of(&self, name: &str) -> Option<usize> {
        match name.strip_prefix(super::subsets::FOLDER).and_then(|name| name.strip_prefix('/')) {
            Some(subset) => self.manifest.subsets.get(subset).map(|one| one.size),
            None => self.manifest.counts.rows.get(name).copied(),
        }
    }

    /// The published instances, in their order.
    ///
    /// # Errors
    /// The file is missing, or is not as gistmill writes it.
    pub fn instances(&self) -> Result<Vec<Instance>> {
        self.lines("instances")
    }

    /// The lines of the instances, or of a subset by its place, as they are.
    ///
    /// # Errors
    /// The file is missing, or is not as gistmill writes it.
    pub(crate) fn raw_lines(&self, name: &str) -> Result<Vec<serde_json::Map<String, serde_json::Value>>> {
        self.lines(name)
    }

    pub(super) fn lines<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>> {
        read_lines(&self.folder()?, Path::new(&format!("{name}.jsonl")), self.rows_of(name))
    }

    /// What the originals showed, by instance id, in the order of the entry command.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub(crate) fn golden(&self) -> Result<BTreeMap<String, Vec<CaseResult>>> {
        let table = self.table_but("cases", &["slug", "group_id", "parameters", "line"])?;
        let (cases, instances) = (table.whole_texts("case_id")?, table.texts("instance_id")?);
        let (outcomes, exceptions) = (table.texts("outcome")?, table.texts("exception")?);
        let (stdout, stderr) = (table.whole_texts("stdout")?, table.whole_texts("stderr")?);
        let commands = table.if_there("command", Table::texts)?;
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
                command: commands[at].and_then(|text| serde_json::from_str(text).ok()),
            });
        }
        Ok(golden)
    }

    /// Files and qualified names of the functions that the cases of an instance call, by instance id, in the order of
    /// first calls.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub(crate) fn traced(&self) -> Result<BTreeMap<String, Vec<(String, String)>>> {
        let table = self.table("traces", &["instance_id", "file", "function"])?;
        let (instances, files) = (table.whole_texts("instance_id")?, table.whole_texts("file")?);
        let functions = table.whole_texts("function")?;
        let mut traced: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for at in 0..table.rows() {
            let function = (files[at].to_owned(), functions[at].to_owned());
            traced.entry(instances[at].to_owned()).or_default().push(function);
        }
        Ok(traced)
    }

    /// The most that attempts of each group took, by slug and group id.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub(crate) fn demands(&self) -> Result<BTreeMap<(String, String), Demand>> {
        let table =
            self.table_but("attempts", &["observation", "connections", "world", "outcome", "exit"])?;
        let (slugs, groups) = (table.whole_texts("slug")?, table.whole_texts("group_id")?);
        // Older datasets do not say it.
        let (durations, memory) =
            (table.reals("duration_ms")?, table.if_there("memory_bytes", Table::numbers)?);
        let mut demands: BTreeMap<(String, String), Demand> = BTreeMap::new();
        for at in 0..table.rows() {
            // A number that is not a time says nothing.
            let took = durations[at].and_then(|took| Duration::try_from_secs_f64(took / 1000.0).ok());
            let one = Demand {
                slowest: took.filter(|took| !took.is_zero()),
                memory: memory[at].and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| *bytes > 0),
            };
            let most = demands.entry((slugs[at].to_owned(), groups[at].to_owned())).or_default();
            *most = most.max(one);
        }
        Ok(demands)
    }

    /// Ids of the instances of a subset.
    ///
    /// # Errors
    /// Usage errors: there is no such subset, or its file is not as gistmill writes it.
    pub(crate) fn members(&self, subset: &str) -> Result<BTreeSet<String>> {
        let known = &self.manifest.subsets;
        let Some((name, _)) = known.get_key_value(subset) else {
            let names: Vec<&str> = known.keys().map(Name::as_str).collect();
            return Err(Error::usage(format!("the dataset has no subset `{subset}`"))
                .with_hint(format!("its subsets are: {}", names.join(", "))));
        };
        let lines: Vec<Named> = self.lines(&format!("{}/{name}", super::subsets::FOLDER))?;
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
        let bytes = self.folder()?.read(&place, LARGEST_LOCK)?;
        String::from_utf8(bytes)
            .map_err(|_| Error::usage(format!("{} is not text", self.directory.join(place).display())))
    }

    /// Until when what a repository's environment is made of was uploaded, as its recipe says; none where it does not.
    ///
    /// # Errors
    /// The recipe is missing, is a link, or is too large.
    pub(crate) fn cutoff(&self, slug: &RepoSlug) -> Result<Option<Cutoff>> {
        let place = Path::new(ENVIRONMENTS).join(slug.file_name()).join("recipe.json");
        let recipe: Value =
            serde_json::from_slice(&self.folder()?.read(&place, LARGEST_LOCK)?).unwrap_or_default();
        Ok(recipe["exclude_newer"].as_str().and_then(Cutoff::parse))
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
        if !self.folder()?.has_file(Path::new(&place)) {
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

/// The name of an instance, whatever else its family says of it.
#[derive(Deserialize)]
struct Named {
    instance_id: InstanceId,
}

/// The format alone: what else a manifest has is another format's.
#[derive(Deserialize)]
struct Format {
    #[serde(default)]
    format_version: serde_json::Value,
}

fn read_lines<T: DeserializeOwned>(folder: &Folder, place: &Path, expected: Option<usize>) -> Result<Vec<T>> {
    let path = folder.path().join(place);
    let damaged = |why: String| Error::usage(format!("{}{why}", path.display())).with_hint(AGAIN);
    let mut lines = BufReader::new(file(folder, place)?.take(LARGEST_LINES));
    let (mut instances, mut line) = (Vec::new(), Vec::new());
    loop {
        interrupt::check()?;
        line.clear();
        let read = (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        let number = instances.len() + 1;
        if read as u64 == LONGEST_LINE {
            return Err(damaged(format!(":{number} is longer than {LONGEST_LINE} bytes")));
        }
        if expected.is_some_and(|expected| number > expected) {
            return Err(damaged(format!(" has more than the {} rows of manifest.json", number - 1)));
        }
        instances.push(
            serde_json::from_slice(&line).map_err(|error| {
                damaged(format!(":{number} is not what gistmill wrote")).with_source(error)
            })?,
        );
    }
    match expected.filter(|expected| *expected != instances.len()) {
        Some(expected) => {
            let rows = instances.len();
            Err(damaged(format!(" has {rows} rows, and manifest.json says {expected}")))
        }
        None => Ok(instances),
    }
}

fn not_a_dataset(directory: &Path, why: &str) -> Error {
    Error::usage(format!("{} is not a dataset: {why}", directory.display()))
        .with_hint("name the directory output/<name>/<version>")
}
