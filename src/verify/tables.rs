//! What a dataset says in several places, held against each other: both forms of its rows, its tables, its manifest and its
//! card. What follows from something else is derived again.

mod derived;
mod groups;
mod masked;
mod pairs;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::dataset::schema::InstanceRow;
use crate::dataset::table::Table;
use crate::dataset::{Dataset, hidden, schema, subsets};
use crate::error::{Error, Fault, Result};
use crate::interrupt;
use crate::record::family::Unit;
use crate::record::flag::NO_OTHER_INPUT;
use crate::record::instance::Instance;

/// Characters of a value that are kept.
const LONGEST: usize = 160;
/// Differences that are kept; of further ones the number.
const MOST: usize = 10_000;
/// The version of gistmill that verifies.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A row by its columns.
type Row = Map<String, Value>;

/// A place where a dataset contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Difference {
    pub(crate) file: String,
    /// What the row is of; empty where the file is meant as a whole.
    pub(crate) row: String,
    /// The column, or the key.
    pub(crate) column: String,
    /// What the file says, and what it should say; shortened.
    pub(crate) said: String,
    pub(crate) expected: String,
}

/// What was found.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Compared {
    pub(crate) differences: Vec<Difference>,
    /// Further differences.
    pub(crate) more: usize,
    /// What was not held against anything.
    pub(crate) unverified: Vec<String>,
}

impl Compared {
    fn differs(&mut self, file: &str, row: &str, column: &str, (said, expected): (&Value, &Value)) {
        let place = |text: &str| shortened(text.to_owned());
        let (said, expected) = shown(said, expected);
        self.add(Difference {
            file: file.to_owned(),
            row: place(row),
            column: place(column),
            said,
            expected,
        });
    }

    /// Something that is wrong with a file or a row as a whole.
    fn wrong(&mut self, file: &str, row: &str, why: &str) {
        let (file, said) = (file.to_owned(), shortened(why.to_owned()));
        self.add(Difference {
            file,
            row: shortened(row.to_owned()),
            column: String::new(),
            said,
            expected: String::new(),
        });
    }

    fn add(&mut self, difference: Difference) {
        if self.differences.len() < MOST {
            self.differences.push(difference);
        } else {
            self.more += 1;
        }
    }

    /// Compares the keys that should be there; what else exists is named, too.
    fn rows_differ(&mut self, file: &str, row: &str, said: &Row, expected: &Row) {
        for (column, expected) in expected {
            let said = said.get(column).unwrap_or(&Value::Null);
            if said != expected {
                self.differs(file, row, column, (said, expected));
            }
        }
        for (column, said) in said.iter().filter(|(column, _)| !expected.contains_key(*column)) {
            self.differs(file, row, column, (said, &Value::Null));
        }
    }

    fn is_not_verified(&mut self, what: String) {
        if !self.unverified.contains(&what) {
            self.unverified.push(what);
        }
    }
}

/// Two values that differ, from a little before the place where they do.
fn shown(one: &Value, other: &Value) -> (String, String) {
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"));
    let (one, other) = (words(one), words(other));
    let alike = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let from = alike.saturating_sub(LONGEST / 4);
    let cut = |text: &str| match text.char_indices().nth(from) {
        Some((at, _)) if alike > LONGEST / 2 => shortened(format!("… {}", &text[at..])),
        _ => shortened(text.to_owned()),
    };
    (cut(&one), cut(&other))
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text,
    }
}

/// What is read, if it can be: otherwise that is what is wrong with it.
fn read<T>(found: &mut Compared, file: &str, read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.fault(), Fault::Interrupted | Fault::Internal) => Err(error),
        Err(error) => {
            found.wrong(file, "", &words(&error));
            Ok(None)
        }
    }
}

fn words(error: &Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{error}{detail}")
}

fn row_of(instance: &impl Serialize) -> Result<Row> {
    match serde_json::to_value(instance) {
        Ok(Value::Object(row)) => Ok(row),
        _ => Err(Error::internal("cannot encode an instance")),
    }
}

/// Holds all of a dataset against itself.
///
/// # Errors
/// An interruption; what cannot be read is among what is found.
pub(crate) fn compare(dataset: &Dataset) -> Result<Compared> {
    match dataset.manifest.family.unit() {
        Unit::Group => of_gistify(dataset),
        Unit::File => masked::compare(dataset),
        Unit::Pair => pairs::compare(dataset),
    }
}

fn of_gistify(dataset: &Dataset) -> Result<Compared> {
    let mut found = Compared::default();
    let manifest = &dataset.manifest;
    let Some(instances) = rows(&mut found, dataset, dataset.instances())? else { return Ok(found) };
    let groups = groups::read(&mut found, dataset)?;
    groups.compare(&mut found, manifest, (&instances, &BTreeSet::new()))?;
    derived::compare(&mut found, (dataset, &groups), &instances)?;
    summary::compare(&mut found, (dataset, &groups), &instances)?;
    variants(&mut found, dataset, &instances)?;
    not_looked_at(&mut found);
    Ok(found)
}

/// Holds the column `variants` against `hidden/`, where that is.
fn variants(found: &mut Compared, dataset: &Dataset, instances: &[Instance]) -> Result<()> {
    let Some(hidden) = read(found, hidden::FILE, dataset.variants(None))? else { return Ok(()) };
    let Some(mut hidden) = hidden else {
        found.is_not_verified(if dataset.manifest.hidden.is_empty() {
            "variants of the tests: the dataset is older than they are".to_owned()
        } else {
            "hidden/: it was left out, so neither the column `variants` nor what is in it was held against anything".to_owned()
        });
        return Ok(());
    };
    // Older datasets have no variations of commands.
    for one in instances.iter().filter(|one| one.is_test() || one.variants.is_some()) {
        let all = hidden.remove(&one.instance_id).unwrap_or_default();
        let there = all.len() as u64;
        let (said, there) = (Value::from(one.variants), Value::from(there));
        if said != there {
            found.differs("instances", one.instance_id.as_str(), "variants", (&said, &there));
        }
        let has_flag = one.flags.iter().any(|flag| flag == NO_OTHER_INPUT);
        if has_flag && all.iter().any(|one| one.refutes_constant) {
            let why = format!("has the flag {NO_OTHER_INPUT}, and a variant of it has another input");
            found.wrong("instances", one.instance_id.as_str(), &why);
        }
    }
    for id in hidden.keys() {
        found.wrong(hidden::FILE, id.as_str(), "the dataset has no such instance");
    }
    found.is_not_verified(format!("{}: what the variants show in the repository", hidden::FILE));
    Ok(())
}

/// What nothing says a second time, so that it is as whoever made the dataset wrote it.
fn not_looked_at(found: &mut Compared) {
    for what in [
        "groups.parquet: why groups that are not published were dropped, and what was measured of them",
        "cases.parquet: lines, and the observations of groups that are not published",
        "attempts.parquet: outcomes, observations and durations",
        "traces.parquet: functions, lines and callers, but for what they come to",
        "instances: data_files, test_defined_in, mutants, needed_statements, surviving_mutants, and what the witness columns say beside the file of a witness",
        "instances and groups: flags, trace_length_total, child_calls, import_calls, import_files",
        "environments/: Dockerfiles, what was built with, and other files beside requirements.lock",
        "report.html: the page, which `gistmill report` makes anew",
        "manifest.json: sources, but for the hashes of the trees (that a tree is that of its commit, when it was pinned, its \
         license); environments, but for requirements.lock",
        "manifest.json: parity, rules, failed, isolation, machine, worlds, normalized, spent, varies, notes",
    ] {
        found.is_not_verified(what.to_owned());
    }
}

/// The instances that were read, held against each form that they and their subsets have.
fn rows<R: InstanceRow>(
    found: &mut Compared,
    dataset: &Dataset,
    instances: Result<Vec<R>>,
) -> Result<Option<Vec<R>>> {
    let Some(instances) = read(found, "instances.jsonl", instances)? else { return Ok(None) };
    forms(found, dataset, "instances", &instances.iter().collect::<Vec<_>>())?;
    for (name, summary) in &dataset.manifest.subsets {
        let members = summary.definition.members(&instances);
        let members: Vec<&R> = members.into_iter().map(|at| &instances[at]).collect();
        forms(found, dataset, &format!("{}/{name}", subsets::FOLDER), &members)?;
    }
    Ok(Some(instances))
}

/// Holds `<name>.parquet` and `<name>.jsonl` against the instances that should be in both.
fn forms<R: InstanceRow>(
    found: &mut Compared,
    dataset: &Dataset,
    name: &str,
    instances: &[&R],
) -> Result<()> {
    lines(found, dataset, name, instances)?;
    let file = format!("{name}.parquet");
    let Some(table) = read(found, &file, dataset.table(name, &[]))? else { return Ok(()) };
    let columns = R::columns();
    let kinds =
        schema::kinds(&columns).map_err(|error| Error::internal("cannot make columns").with_source(error))?;
    let there: BTreeMap<_, _> = table.kinds().into_iter().collect();
    for (column, kind) in there.iter().filter(|one| kinds.iter().all(|known| known.0 != *one.0)) {
        if is_older(dataset) {
            let version = &dataset.manifest.tool.version;
            found.is_not_verified(format!("{file}: the column {column}, which gistmill {version} had"));
            continue;
        }
        let said = Value::from(format!("a column of {kind}"));
        found.differs(&file, "", column, (&said, &"no such column".into()));
    }
    if table.rows() != instances.len() {
        found.wrong(&file, "", &format!("has {} rows, and should have {}", table.rows(), instances.len()));
    }
    for (column, (name, kind)) in columns.iter().zip(&kinds) {
        interrupt::check()?;
        match there.get(name) {
            None if is_older(dataset) => {
                let version = &dataset.manifest.tool.version;
                found.is_not_verified(format!(
                    "{file}: has no column {name}, as it says of gistmill {version}"
                ));
                continue;
            }
            Some(found_kind) if *found_kind == kind => {}
            other => {
                let said = other.map_or("no such column".to_owned(), |kind| format!("a column of {kind}"));
                found.differs(&file, "", name, (&said.into(), &format!("a column of {kind}").into()));
                continue;
            }
        }
        for (at, instance) in instances.iter().enumerate().take(table.rows()) {
            let (said, expected) = (table.value(name, at), column.value(instance));
            if said != expected {
                found.differs(&file, instance.head().instance_id.as_str(), name, (&said, &expected));
            }
        }
    }
    Ok(())
}

/// Names each cell of a row of a table that is not as an object has it.
fn cells_differ(found: &mut Compared, (file, table, at): (&str, &Table, usize), row: &str, expected: &Value) {
    for (column, expected) in expected.as_object().into_iter().flatten() {
        let said = table.value(column, at);
        if said != *expected {
            found.differs(file, row, column, (&said, expected));
        }
    }
}

/// Whether a dataset says that another gistmill wrote it, whose columns and texts may be others.
fn is_older(dataset: &Dataset) -> bool {
    dataset.manifest.tool.version != VERSION
}

/// The lines as they are: the reader of instances passes over keys that it does not know.
fn lines<R: InstanceRow>(
    found: &mut Compared,
    dataset: &Dataset,
    name: &str,
    instances: &[&R],
) -> Result<()> {
    let file = format!("{name}.jsonl");
    let Some(lines) = read(found, &file, dataset.raw_lines(name))? else { return Ok(()) };
    if lines.len() != instances.len() {
        found.wrong(&file, "", &format!("has {} rows, and should have {}", lines.len(), instances.len()));
    }
    for (line, instance) in lines.iter().zip(instances) {
        interrupt::check()?;
        let (mut line, mut expected) = (line.clone(), row_of(*instance)?);
        if is_older(dataset) {
            // Each has keys that the other does not know.
            line.retain(|column, _| expected.contains_key(column));
            expected.retain(|column, _| line.contains_key(column));
        }
        found.rows_differ(&file, instance.head().instance_id.as_str(), &line, &expected);
    }
    Ok(())
}
