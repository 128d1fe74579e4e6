//! Columns of the instances that follow from something else, derived again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::groups::{Groups, parts, text};
use super::summary::rate_again;
use super::{Compared, is_older, read, row_of};
use crate::beneath::Folder;
use crate::dataset::assemble::version;
use crate::dataset::manifest::{EnvironmentSummary, Manifest};
use crate::dataset::rated::all_of;
use crate::dataset::{Dataset, trees, witnesses};
use crate::error::Result;
use crate::family::gistify::prompt::Template;
use crate::family::tier::flake_bound;
use crate::interrupt;
use crate::python_source::SourceFile;
use crate::record::collected::Group;
use crate::record::entry::{EntryCommand, GroupKey, PYTEST};
use crate::record::id::{CommitSha, InstanceId, sha256_hex};
use crate::record::instance::{Head, Instance};
use crate::record::outcome::Outcome;
use crate::record::strength::Strength;
use crate::record::witness::MADE;

const FILE: &str = "instances";
/// Largest witness, in bytes.
const LARGEST: u64 = 64 << 20;

/// Holds each instance against what it should be.
pub(super) fn compare(
    found: &mut Compared,
    (dataset, groups): (&Dataset, &Groups),
    instances: &[Instance],
) -> Result<()> {
    let manifest = &dataset.manifest;
    let mut rated = all_of(instances);
    rate_again(&mut rated, manifest);
    let template = Template::built_in()?;
    let is_own = manifest.prompt.as_ref().is_some_and(|prompt| prompt.template == template.text());
    if !is_own {
        found.is_not_verified("prompts: their template is not that of this gistmill".to_owned());
    }
    let mut tests = Tests::new(found, dataset, instances)?;
    let folder = dataset.folder()?;
    for (said, rated) in instances.iter().zip(rated) {
        interrupt::check()?;
        let mut expected = Instance { tier: rated.tier, hard_axes: rated.hard_axes, ..said.clone() };
        from_the_manifest(found, manifest, &mut expected);
        from_the_groups(found, groups, &mut expected);
        expected.flake_bound = flake_bound(expected.attempts);
        expected.duration_ms = None;
        expected.pass_to_pass = Vec::new();
        tests.find(found, &mut expected);
        witness(found, &folder, &mut expected)?;
        strength(&mut expected);
        if is_own && let Some(prompt) = &manifest.prompt {
            expected.prompt =
                expected.family.prompt(&template, &prompt.settings, &BTreeSet::new(), &expected)?;
        }
        let (said_row, mut row) = (row_of(said)?, row_of(&expected)?);
        if !said.trace_stable {
            found.is_not_verified(
                "traces of instances with trace_stable = false, and what their columns say of them: the dataset says that \
                 they vary, so no run is held against them"
                    .to_owned(),
            );
        }
        if is_older(dataset) {
            // What it does not have is empty.
            for (column, _) in row.iter().filter(|(column, value)| is_left_out(&said_row[*column], value)) {
                let version = &manifest.tool.version;
                found.is_not_verified(format!(
                    "instances: {column}, where it is empty, as it says of gistmill {version}"
                ));
            }
            row.retain(|column, _| !is_empty(&said_row[column]));
        }
        found.rows_differ(FILE, said.instance_id.as_str(), &keys_of(&said_row, &row), &row);
    }
    Ok(())
}

fn keys_of(row: &super::Row, of: &super::Row) -> super::Row {
    row.iter()
        .filter(|(key, _)| of.contains_key(*key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Whether a value is empty that should not be.
fn is_left_out(said: &Value, expected: &Value) -> bool {
    is_empty(said) && !is_empty(expected)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        _ => false,
    }
}

fn from_the_manifest(found: &mut Compared, manifest: &Manifest, one: &mut Instance) {
    if let Some(environment) = head_of(found, manifest, &mut one.head) {
        one.lock_sha256.clone_from(&environment.lock_sha256);
        one.image = environment.image.as_ref().map(|image| image.tag.clone());
        one.image_id = environment.image.as_ref().map(|image| image.id.clone());
    }
    one.environment = format!("environments/{}", one.slug.file_name());
    one.instance_id = InstanceId::derive(&one.slug, &one.commit, &one.group_id);
    (one.test_file, one.test_class, one.test_function) = parts(&one.group_id);
    let id = one.instance_id.to_string();
    of_the_command(found, &id, one);
}

/// What every family says of where an instance comes from; its environment, where the manifest has one.
pub(super) fn head_of<'m>(
    found: &mut Compared,
    manifest: &'m Manifest,
    one: &mut Head,
) -> Option<&'m EnvironmentSummary> {
    let id = one.instance_id.to_string();
    one.repo = one.slug.to_string();
    match manifest.sources.get(&one.slug) {
        None => found.wrong("manifest.json", &id, "`sources` does not have its repository"),
        Some(source) => {
            one.commit.clone_from(&source.commit);
            one.base_commit = CommitSha::new(&source.commit).ok().map(|commit| commit.to_string());
            one.version = version(&source.origin, &source.commit);
            one.created_at.clone_from(&source.pinned_at);
            one.source = source.origin.describe();
            one.license.clone_from(&source.license);
        }
    }
    let environment = manifest.environments.get(&one.slug);
    match environment {
        None => found.wrong("manifest.json", &id, "`environments` does not have its repository"),
        Some(environment) => one.python.clone_from(&environment.python),
    }
    environment
}

/// What says which command an instance is about: nothing of a test.
fn of_the_command(found: &mut Compared, id: &str, one: &mut Instance) {
    let words = one.argv.as_deref().filter(|_| !one.is_test());
    match words.map(EntryCommand::of_words) {
        None => {
            one.entry_command = group_of(one).command().line();
            PYTEST.clone_into(&mut one.kind);
            (one.argv, one.stdin, one.stdin_file, one.cwd, one.origin) = (None, None, None, None, None);
            (one.env, one.watched_files) = (None, None);
        }
        Some(Ok(command)) => {
            one.entry_command = command.line();
            command.kind().clone_into(&mut one.kind);
        }
        Some(Err(reason)) => found.wrong("instances.parquet", id, &format!("argv: {reason}")),
    }
}

/// The group of an instance, as far as it is known.
fn group_of(one: &Instance) -> Group {
    let classes = one.test_class.iter().flat_map(|chain| chain.split("::"));
    let key = GroupKey {
        file: one.test_file.clone(),
        classes: classes.map(str::to_owned).collect(),
        function: one.test_function.clone(),
    };
    Group { group_id: one.group_id.clone(), ..Group::of(key) }
}

fn from_the_groups(found: &mut Compared, groups: &Groups, one: &mut Instance) {
    let id = one.instance_id.to_string();
    match groups.cases_of(one.slug.as_str(), &one.group_id) {
        None => found.wrong("cases.parquet", &id, "has no case of it"),
        Some(cases) => {
            one.case_ids = cases.expected.iter().map(|case| case.case_id.clone()).collect();
            let texts = cases.expected.iter().filter_map(|case| serde_json::to_string(case).ok());
            one.expected = texts.collect();
            let passed = cases.expected.iter().filter(|case| case.outcome == Some(Outcome::Passed));
            one.fail_to_pass = passed.map(|case| one.family.submitted_case(one, &case.case_id)).collect();
            one.n_cases = u32::try_from(cases.expected.len()).unwrap_or(u32::MAX);
        }
    }
    match groups.traces.get(&id) {
        None => found.wrong("traces.parquet", &id, "has no function of it"),
        Some(totals) => {
            one.trace_length = totals.trace_length;
            one.trace_length_package = totals.package_calls;
            one.unique_functions = totals.unique_functions;
            one.files.clone_from(&totals.files);
        }
    }
    one.unique_files = u32::try_from(one.files.len()).unwrap_or(u32::MAX);
    match groups.row(one.slug.as_str(), &one.group_id) {
        None => found.wrong("groups.parquet", &id, "has no group of it"),
        Some(row) => {
            let stable = row.get("trace_stable").and_then(Value::as_bool);
            one.trace_stable = stable == Some(true);
            if let Some(Value::Array(worlds)) = row.get("worlds") {
                one.worlds = worlds.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            }
            if text(row, "instance_id") != id && row.contains_key("instance_id") {
                found.wrong("groups.parquet", &id, "its group has another instance_id");
            }
        }
    }
}

fn witness(found: &mut Compared, folder: &Folder, one: &mut Instance) -> Result<()> {
    let place = format!("{}/{}.py", witnesses::FOLDER, one.instance_id);
    let text = read(found, &place, folder.read_if_there(std::path::Path::new(&place), LARGEST))?.flatten();
    if let Some(text) = &text {
        one.witness.witness = Some(MADE.to_owned());
        one.witness.witness_sha256 = Some(sha256_hex(text));
        let lines = String::from_utf8_lossy(text).lines().filter(|line| !line.trim().is_empty()).count();
        one.witness.witness_lines = Some(lines as u64);
    } else {
        one.witness.witness_sha256 = None;
        if one.witness.is_made() {
            found.wrong(&place, "", "is missing, and the instance says that it was made");
        }
    }
    Ok(())
}

/// The score follows from the mutants and those that survive.
fn strength(one: &mut Instance) {
    let Strength { mutants, surviving_mutants, mutation_score, .. } = &mut one.strength;
    *mutation_score = mutants.zip(surviving_mutants.as_ref()).and_then(|(mutants, surviving)| {
        let noticed = mutants.checked_sub(u32::try_from(surviving.len()).ok()?)?;
        (mutants > 0).then(|| f64::from(noticed) / f64::from(mutants))
    });
}

/// The test files of the trees.
struct Tests {
    /// By slug, then path. None where the dataset has no tree.
    files: BTreeMap<String, Option<BTreeMap<String, Option<SourceFile>>>>,
}

impl Tests {
    /// Reads those of the instances.
    fn new(found: &mut Compared, dataset: &Dataset, instances: &[Instance]) -> Result<Self> {
        let mut wanted: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for one in instances {
            wanted.entry(one.slug.as_str()).or_default().insert(parts(&one.group_id).0);
        }
        let mut files = BTreeMap::new();
        for (slug, wanted) in wanted {
            interrupt::check()?;
            let Some(all) = read(found, &format!("the tree of {slug}"), trees::python_files(dataset, slug))?
            else {
                continue;
            };
            if all.is_none() {
                found.is_not_verified(format!(
                    "test_line_start and test_line_end of {slug}: its tree is missing"
                ));
            }
            let parse = |(path, text): (String, String)| {
                wanted.contains(&path).then(|| (path.clone(), SourceFile::parse(&path, &text)))
            };
            files.insert(slug.to_owned(), all.map(|all| all.into_iter().filter_map(parse).collect()));
        }
        Ok(Tests { files })
    }

    /// Sets the source of a test as its tree has it.
    fn find(&mut self, found: &mut Compared, one: &mut Instance) {
        if !one.is_test() {
            (one.test_source, one.test_line_start, one.test_line_end) = (None, None, None);
            return;
        }
        let Some(files) = self.files.get(one.slug.as_str()) else { return };
        let Some(files) = files else {
            one.test_source = None;
            return;
        };
        let Some(file) = files.get(&one.test_file) else {
            found.is_not_verified(format!("test_source of {}: its file was not read", one.instance_id));
            return;
        };
        let group = group_of(one);
        let code = file.as_ref().and_then(|file| file.code(&group));
        one.test_source = code.as_ref().map(|code| code.source().to_owned());
        one.test_line_start = code.as_ref().map(|code| code.lines().0);
        one.test_line_end = code.as_ref().map(|code| code.lines().1);
    }
}
