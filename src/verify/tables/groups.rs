//! Groups with their cases, attempts and traces, each table against the others.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Compared, Row, read as readable};
use crate::dataset::Dataset;
use crate::dataset::counts::Counts;
use crate::dataset::manifest::Manifest;
use crate::dataset::table::Table;
use crate::error::Result;
use crate::interrupt;
use crate::record::duration::median;
use crate::record::family::Unit;
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::{Expected, Instance};
use crate::record::trace::{FunctionCalls, Totals, is_test_path, test_roots};

const GROUPS: &str = "groups.parquet";
const CASES: &str = "cases.parquet";
const ATTEMPTS: &str = "attempts.parquet";
const TRACES: &str = "traces.parquet";
/// Rows that are read at once.
const PART: usize = 65_536;
/// The names of worlds that every group is in, and of an attempt that ended.
const BASE: &str = "base";
const FINISHED: &str = "finished";

/// Slug and group id.
pub(super) type Key = (String, String);

/// What the tables say.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// In the order of the table.
    pub(super) rows: Vec<(Key, Row)>,
    /// Their places there.
    places: BTreeMap<Key, usize>,
    cases: BTreeMap<Key, Cases>,
    attempts: BTreeMap<Key, Attempts>,
    /// By instance.
    pub(super) traces: BTreeMap<String, Totals>,
}

/// Cases of a group, in their order.
#[derive(Debug, Default)]
pub(super) struct Cases {
    pub(super) expected: Vec<Expected>,
    instances: BTreeSet<Option<String>>,
    parameters: Vec<Option<String>>,
}

/// What the attempts of a group come to.
#[derive(Debug, Default)]
struct Attempts {
    number: usize,
    worlds: BTreeSet<String>,
    forked: Vec<f64>,
    cold: Vec<f64>,
}

/// Reads the tables; what cannot be read is among what is found.
pub(super) fn read(found: &mut Compared, dataset: &Dataset) -> Result<Groups> {
    let mut groups = Groups::default();
    if let Some(table) = readable(found, GROUPS, dataset.table("groups", &[]))? {
        let names: Vec<String> = table.kinds().into_iter().map(|one| one.0.to_owned()).collect();
        for at in 0..table.rows() {
            let row: Row = names.iter().map(|name| (name.clone(), table.value(name, at))).collect();
            let key = (text(&row, "slug"), text(&row, "group_id"));
            groups.places.insert(key.clone(), at);
            groups.rows.push((key, row));
        }
    }
    let roots = groups.roots();
    let read = groups.read_cases(dataset);
    readable(found, CASES, read)?;
    let read = groups.read_attempts(dataset);
    readable(found, ATTEMPTS, read)?;
    match dataset.manifest.family.unit() {
        Unit::Group => {
            let read = groups.read_traces(found, dataset, &roots);
            readable(found, TRACES, read)?;
        }
        // They are of targets, and held against those.
        Unit::File | Unit::Pair => {}
    }
    Ok(groups)
}

pub(super) fn text(row: &Row, column: &str) -> String {
    row.get(column).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// `file::Class::function`; the file alone where it could not be collected.
pub(super) fn parts(group_id: &str) -> (String, Option<String>, String) {
    let mut names: Vec<&str> = group_id.split("::").collect();
    let file = names.remove(0).to_owned();
    let function = names.pop().unwrap_or_default().to_owned();
    (file, (!names.is_empty()).then(|| names.join("::")), function)
}

impl Groups {
    /// Folders of tests of each repository, by its slug: of what could be collected.
    fn roots(&self) -> BTreeMap<String, Vec<String>> {
        let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for ((slug, _), row) in self.rows.iter().filter(|(_, row)| row.get("n_cases") != Some(&json!(0))) {
            let file = row.get("test_file").and_then(Value::as_str).unwrap_or_default();
            files.entry(slug).or_default().push(file);
        }
        files.into_iter().map(|(slug, files)| (slug.to_owned(), test_roots(files))).collect()
    }

    fn read_cases(&mut self, dataset: &Dataset) -> Result<()> {
        parts_of(dataset, "cases", |table| {
            let (slugs, groups) = (table.whole_texts("slug")?, table.whole_texts("group_id")?);
            let (ids, instances) = (table.whole_texts("case_id")?, table.texts("instance_id")?);
            let (outcomes, exceptions) = (table.texts("outcome")?, table.texts("exception")?);
            let (stdout, stderr) = (table.texts("stdout")?, table.texts("stderr")?);
            let parameters = table.texts("parameters")?;
            let commands = table.if_there("command", Table::texts)?;
            let own = |text: Option<&str>| text.map(str::to_owned);
            for at in 0..table.rows() {
                let group = self.cases.entry((slugs[at].to_owned(), groups[at].to_owned())).or_default();
                group.instances.insert(own(instances[at]));
                group.parameters.push(own(parameters[at]));
                group.expected.push(Expected {
                    case_id: ids[at].to_owned(),
                    outcome: outcomes[at].and_then(|text| serde_json::from_value(text.into()).ok()),
                    exception: own(exceptions[at]),
                    stdout: own(stdout[at]),
                    stderr: own(stderr[at]),
                    command: commands[at].and_then(|text| serde_json::from_str(text).ok()),
                });
            }
            Ok(())
        })
    }

    fn read_attempts(&mut self, dataset: &Dataset) -> Result<()> {
        parts_of(dataset, "attempts", |table| {
            let (slugs, groups) = (table.whole_texts("slug")?, table.whole_texts("group_id")?);
            let (worlds, methods) = (table.whole_texts("world")?, table.whole_texts("method")?);
            let (exits, durations) = (table.whole_texts("exit")?, table.reals("duration_ms")?);
            for at in 0..table.rows() {
                let group = self.attempts.entry((slugs[at].to_owned(), groups[at].to_owned())).or_default();
                group.number += 1;
                group.worlds.insert(worlds[at].to_owned());
                if worlds[at] == BASE && exits[at] == FINISHED {
                    let of_method = if methods[at] == "cold" { &mut group.cold } else { &mut group.forked };
                    of_method.push(durations[at].unwrap_or_default());
                }
            }
            Ok(())
        })
    }

    /// Functions of one instance at a time: they are together.
    fn read_traces(
        &mut self,
        found: &mut Compared,
        dataset: &Dataset,
        roots: &BTreeMap<String, Vec<String>>,
    ) -> Result<()> {
        let slugs: BTreeMap<String, String> =
            self.rows.iter().map(|(key, row)| (text(row, "instance_id"), key.0.clone())).collect();
        let mut current: (String, Vec<FunctionCalls>) = Default::default();
        let mut close = |found: &mut Compared, (instance, functions): (String, Vec<FunctionCalls>)| {
            let own =
                slugs.get(&instance).and_then(|slug| roots.get(slug)).map(Vec::as_slice).unwrap_or_default();
            let mut orders = functions.iter().map(|one| u64::from(one.order));
            if !functions.is_empty()
                && !orders.clone().zip(orders.by_ref().skip(1)).all(|(one, next)| one < next)
            {
                found.wrong(TRACES, &instance, "the functions are not in the order of their first calls");
            }
            let totals = Totals::of(&functions, |file| is_test_path(file, own));
            if !functions.is_empty() && self.traces.insert(instance.clone(), totals).is_some() {
                found.wrong(TRACES, &instance, "its functions are not together");
            }
        };
        parts_of(dataset, "traces", |table| {
            let (instances, files) = (table.whole_texts("instance_id")?, table.whole_texts("file")?);
            let (names, lines) = (table.whole_texts("function")?, table.whole_numbers("line")?);
            let (calls, orders) = (table.whole_numbers("calls")?, table.whole_numbers("order")?);
            let executed = table.number_lists("lines")?;
            let small = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
            for at in 0..table.rows() {
                if instances[at] != current.0 {
                    close(found, std::mem::replace(&mut current, (instances[at].to_owned(), Vec::new())));
                }
                current.1.push(FunctionCalls {
                    file: files[at].to_owned(),
                    function: names[at].to_owned(),
                    line: small(lines[at]),
                    calls: u64::try_from(calls[at]).unwrap_or_default(),
                    order: small(orders[at]),
                    lines: executed[at].as_ref().map(|lines| lines.iter().copied().map(small).collect()),
                    callers: None,
                });
            }
            Ok(())
        })?;
        close(found, current);
        Ok(())
    }

    pub(super) fn row(&self, slug: &str, group_id: &str) -> Option<&Row> {
        let place = self.places.get(&(slug.to_owned(), group_id.to_owned()));
        place.map(|at| &self.rows[*at].1)
    }

    pub(super) fn cases_of(&self, slug: &str, group_id: &str) -> Option<&Cases> {
        self.cases.get(&(slug.to_owned(), group_id.to_owned()))
    }

    /// Holds the tables of groups, cases and attempts against each other and the instances; `judging` are groups that are not
    /// instances and judge one.
    pub(super) fn compare(
        &self,
        found: &mut Compared,
        manifest: &Manifest,
        (instances, judging): (&[Instance], &BTreeSet<Key>),
    ) -> Result<()> {
        let published: BTreeMap<(&str, &str), &Instance> =
            instances.iter().map(|one| ((one.slug.as_str(), one.group_id.as_str()), one)).collect();
        if published.len() < instances.len() {
            found.wrong("instances.jsonl", "", "two instances are of one group");
        }
        let mut known: BTreeSet<&Key> = BTreeSet::new();
        let mut last: Option<&Key> = None;
        for (key, row) in &self.rows {
            interrupt::check()?;
            if !known.insert(key) || last.is_some_and(|last| last > key) {
                found.wrong(GROUPS, &key.1, "exists twice, or is not in its order");
            }
            last = Some(key);
            let instance = published.get(&(key.0.as_str(), key.1.as_str())).copied();
            let mut expected = self.expected(manifest, (key, row), instance);
            if judging.contains(key) {
                expected.insert("published".to_owned(), true.into());
            }
            let said = row.iter().filter(|(column, _)| expected.contains_key(*column));
            let said = said.map(|(column, value)| (column.clone(), value.clone())).collect();
            found.rows_differ(GROUPS, &key.1, &said, &expected);
            let made = self.attempts.get(key).map_or(0, |attempts| attempts.number);
            if let Some(one) = instance.filter(|one| one.attempts as usize > made) {
                let why = format!("has {made} attempts of it, and the instance says {}", one.attempts);
                found.wrong(ATTEMPTS, &key.1, &why);
            }
            self.compare_cases(found, key, instance);
        }
        for (file, keys) in
            [(CASES, self.cases.keys().collect::<Vec<_>>()), (ATTEMPTS, self.attempts.keys().collect())]
        {
            for key in keys.into_iter().filter(|key| !known.contains(key)) {
                found.wrong(file, &key.1, "groups.parquet has no such group");
            }
        }
        let ids: BTreeSet<&str> = instances.iter().map(|one| one.instance_id.as_str()).collect();
        for instance in self.traces.keys().filter(|id| !ids.contains(id.as_str())) {
            found.wrong(TRACES, instance, "there is no such instance");
        }
        Ok(())
    }

    /// Columns of a group as they follow from the others.
    fn expected(&self, manifest: &Manifest, (key, row): (&Key, &Row), instance: Option<&Instance>) -> Row {
        let nothing = Attempts::default();
        let attempts = self.attempts.get(key).unwrap_or(&nothing);
        let (file, class, function) = parts(&key.1);
        let is_kept = row.get("cause") == Some(&Value::Null);
        let worlds = attempts.worlds.iter().filter(|world| *world != BASE);
        let base = attempts.worlds.contains(BASE).then(|| BASE.to_owned());
        let mut expected = json!({
            "kept": is_kept,
            "published": instance.is_some(),
            "test_file": file,
            "test_class": class,
            "test_function": function,
            "n_cases": self.cases.get(key).map_or(0, |cases| cases.expected.len()),
            "attempts": attempts.number,
            "worlds": base.into_iter().chain(worlds.cloned()).collect::<Vec<_>>(),
            "tier": instance.map(|one| one.tier.as_str()),
            "hard_axes": instance.map(|one| one.hard_axes.iter().map(|axis| axis.as_str()).collect::<Vec<_>>()),
            "duration_ms": median(&attempts.forked),
            "cold_ms": median(&attempts.cold),
        });
        if let Some(source) = manifest.sources.get(key.0.as_str())
            && let Ok(slug) = RepoSlug::new(&key.0)
        {
            expected["instance_id"] = InstanceId::derive(&slug, &source.commit, &key.1).as_str().into();
        }
        if is_kept {
            expected["evidence"] = Value::Null;
        } else {
            expected["agreeing"] = json!(0);
        }
        if let Some(one) = instance {
            of_instance(&mut expected, one);
        }
        let Value::Object(mut expected) = expected else { return Row::new() };
        // Older datasets do not have all columns.
        expected.retain(|column, _| row.contains_key(column) || column == "instance_id");
        if !row.contains_key("instance_id") {
            expected.remove("instance_id");
        }
        expected
    }

    fn compare_cases(&self, found: &mut Compared, key: &Key, instance: Option<&Instance>) {
        let Some(cases) = self.cases.get(key) else { return };
        let expected = instance.map(|one| one.instance_id.to_string());
        for said in cases.instances.iter().filter(|said| **said != expected) {
            found.differs(CASES, &key.1, "instance_id", (&json!(said), &json!(expected)));
        }
        for (case, parameters) in cases.expected.iter().zip(&cases.parameters) {
            let rest = case.case_id.strip_prefix(key.1.as_str());
            let inner = rest.and_then(|rest| rest.strip_prefix('[')).and_then(|rest| rest.strip_suffix(']'));
            if rest.is_none() || (parameters.is_some() && parameters.as_deref() != inner) {
                found.differs(CASES, &case.case_id, "parameters", (&json!(parameters), &json!(inner)));
            }
        }
    }

    /// What the groups come to, by repository; what is deselected is not among them.
    pub(super) fn counts(&self, instances: &[Instance]) -> BTreeMap<String, Counts> {
        let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
        for (key, row) in &self.rows {
            let one = counts.entry(key.0.clone()).or_default();
            one.groups += 1;
            one.cases += self.cases.get(key).map_or(0, |cases| cases.expected.len());
            one.attempts += self.attempts.get(key).map_or(0, |attempts| attempts.number);
            match row.get("cause").and_then(Value::as_str) {
                None => one.kept += 1,
                Some(cause) => *one.dropped.entry(cause.to_owned()).or_default() += 1,
            }
        }
        for instance in instances {
            counts.entry(instance.slug.to_string()).or_default().publish(instance.tier);
        }
        counts
    }
}

/// What a published group shares with its instance.
fn of_instance(expected: &mut Value, one: &Instance) {
    let shared = json!({
        "agreeing": one.attempts,
        "flags": one.flags,
        "trace_length": one.trace_length,
        "trace_length_package": one.trace_length_package,
        "trace_length_total": one.trace_length_total,
        "child_calls": one.child_calls,
        "unique_files": one.unique_files,
        "unique_functions": one.unique_functions,
        "executed_lines": one.executed_lines,
        "import_calls": one.import_calls,
        "import_files": one.import_files,
        "files": one.files,
        "code_sha256": one.code_sha256,
        "kind": one.kind,
        "argv": one.argv,
        "origin": one.origin,
        "cause": Value::Null,
    });
    if let (Value::Object(expected), Value::Object(shared)) = (expected, shared) {
        expected.extend(shared);
    }
}

/// A table, some rows at a time.
fn parts_of(dataset: &Dataset, name: &str, mut take: impl FnMut(&Table) -> Result<()>) -> Result<()> {
    let mut from = 0;
    while let Some(table) = dataset.table_part(name, &[], (from, PART))? {
        from += table.rows();
        take(&table)?;
    }
    Ok(())
}
