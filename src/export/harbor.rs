//! Harbor task folders. Inspect (`inspect-harbor`) and verifiers (its Harbor taskset) run the same folders.
//!
//! The verifier is a container of its own that gets nothing of the agent's but the file that is handed in. It has no
//! Dockerfile: it is a fresh one of the environment, because verifiers builds none.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;
use toml::{Table, Value};

use super::settings::{self, Author, MEBIBYTE, Network, canary};
use super::{Collection, File, Files, NOTHING_LEFT, refactoring, script, text};
use crate::error::{Error, Result};
use crate::record::entry::EntryCommand;
use crate::record::id::sha256_hex;
use crate::record::task::{Demand, Judging, OriginalTest, Reward, Task};
use crate::text::shell_quote;

pub(super) const JUDGE: &str = include_str!("judge.py");
/// Which files of a tree a command changes: the judge reads it where commands are judged.
pub(super) const TREE_STATE: &str = include_str!("../runner/python/gistmill_runner/tree_state.py");
/// Format of `task.toml` that knows separate verifiers.
const SCHEMA: &str = "1.4";
/// What an agent may take, in seconds.
const AGENT_SECONDS: f64 = 3600.0;
/// What starting and judging takes beside the run itself, in seconds.
const VERIFIER_SLACK: u64 = 300;

pub(super) fn files(collection: &Collection) -> Result<Files> {
    let mut files = Files::new();
    let mut digests = Vec::new();
    for task in &collection.tasks {
        let of_task = of_task(collection, task)?;
        digests.push((name(collection, task), format!("sha256:{}", content(&of_task))));
        for (name, file) in of_task {
            files.insert(format!("tasks/{}/{name}", task.id), file);
        }
    }
    files.insert("registry.json".to_owned(), text(registry(collection)?));
    files.insert("dataset.toml".to_owned(), text(dataset(collection, &digests)?));
    Ok(files)
}

/// The files of one task, by their path in its folder.
pub(super) fn of_task(collection: &Collection, task: &Task) -> Result<Files> {
    let image = collection.image(task);
    if let Some(suite) = &task.judging.suite {
        let line = collection.settings.has_canary.then(|| canary(&collection.name, &collection.version));
        let mut files = refactoring::of_harbor(task, suite, image, &line.unwrap_or_default())?;
        let configuration = configuration(collection, task, &content(&files))?;
        files.insert("task.toml".to_owned(), text(configuration));
        return Ok(files);
    }
    let mut instruction = task.instruction.clone();
    if collection.settings.has_canary {
        instruction.insert_str(0, &canary(&collection.name, &collection.version));
    }
    let mut files = Files::from([
        ("instruction.md".to_owned(), text(instruction)),
        ("environment/Dockerfile".to_owned(), text(format!("FROM {image}\nWORKDIR {}\n", task.workdir))),
        ("tests/test.sh".to_owned(), script(judging(task))),
        ("tests/judge.py".to_owned(), text(JUDGE.to_owned())),
        ("tests/task.json".to_owned(), text(judged(task)?)),
    ]);
    if task.judging.is_of_command() {
        files.insert("tests/tree_state.py".to_owned(), text(TREE_STATE.to_owned()));
    }
    for (path, bytes) in task.judging.before.files() {
        let Some(bytes) = bytes else { continue };
        files.insert(format!("tests/before/{path}"), File { bytes: bytes.to_vec(), executable: false });
    }
    if let Some(gold) = &task.gold {
        let mut solve = "#!/bin/bash\nset -e\n".to_owned();
        for (path, bytes) in gold.files() {
            let Some(bytes) = bytes else { continue };
            let target = shell_quote(&format!("{}/{path}", task.workdir));
            let _ = writeln!(solve, "cp {} {target}", shell_quote(&format!("/solution/{path}")));
            files.insert(format!("solution/{path}"), File { bytes: bytes.to_vec(), executable: false });
        }
        files.insert("solution/solve.sh".to_owned(), script(solve));
    }
    let configuration = configuration(collection, task, &content(&files))?;
    files.insert("task.toml".to_owned(), text(configuration));
    Ok(files)
}

/// The hash of a task's files but for `task.toml`, which has it.
pub(super) fn content_but_for_settings(files: &Files) -> String {
    let all = files.iter().filter(|(path, _)| *path != "task.toml");
    content(&all.map(|(path, file)| (path.clone(), file.clone())).collect())
}

/// The hash of a task's files, as Harbor computes it: over path and hash of each, in the order of paths.
fn content(files: &Files) -> String {
    let mut lines = String::new();
    for (path, file) in files {
        let _ = writeln!(lines, "{path}\0{}", sha256_hex(&file.bytes));
    }
    sha256_hex(lines.as_bytes())
}

/// Whose task it is, and its id.
fn name(collection: &Collection, task: &Task) -> String {
    format!("{}/{}", org(collection), task.id)
}

fn org(collection: &Collection) -> &str {
    collection.settings.org.as_deref().unwrap_or(&collection.name)
}

fn judging(task: &Task) -> String {
    let file = shell_quote(&format!("{}/{}", task.workdir, task.judging.submission));
    format!(
        "#!/bin/bash\n{NOTHING_LEFT}exec python -I /tests/judge.py --container /tests/task.json {file} /logs/verifier\n"
    )
}

/// How often the judge runs something: as it is, and with variants of each test or exceptions at its start.
fn runs(task: &Task) -> u64 {
    if task.judging.is_of_command() {
        return task.judging.given.len() as u64;
    }
    if task.judging.suite.is_some() {
        return 1;
    }
    let other = |test: &OriginalTest| if test.variants.is_empty() { 3 } else { test.variants.len() };
    (task.judging.run.len() * (1 + task.judging.originals.iter().map(other).sum::<usize>())) as u64
}

/// Longest run of the judge, in seconds.
pub(super) fn verifier_seconds(task: &Task) -> u64 {
    task.judging.limit.as_secs().saturating_mul(runs(task)).saturating_add(VERIFIER_SLACK)
}

/// What the judge gets to know.
pub(super) fn judged(task: &Task) -> Result<String> {
    let Judging {
        submission,
        hidden,
        before,
        run,
        originals,
        given,
        code,
        expect,
        is_exact,
        reward,
        options,
        variables,
        limit,
        suite: _,
    } = &task.judging;
    let known = expect.iter().filter(|case| !case.name.contains("<tmp>"));
    let outcomes: serde_json::Map<String, serde_json::Value> =
        known.map(|case| (case.name.clone(), case.outcome.as_str().into())).collect();
    let task = json!({
        "instance_id": task.id,
        "workdir": task.workdir,
        "scratch": "/tmp",
        // Nobody, as every system knows this number.
        "user": 65_534,
        "submission": submission,
        "commands": run.iter().map(EntryCommand::words).collect::<Vec<_>>(),
        "tests": originals.iter().map(told_of).collect::<Vec<_>>(),
        // Where this has anything, `commands` and `tests` are not asked.
        "runs": given,
        "code": code,
        "outcomes": outcomes,
        "exact": is_exact,
        // What somebody else may have changed is made what the one commit has.
        "reset": task.mask.files().next().is_some(),
        "hidden": hidden,
        "before": before.files().map(|(path, bytes)| (path, bytes.is_some())).collect::<BTreeMap<_, _>>(),
        "reward": match reward {
            Reward::All => "all",
            Reward::Share => "share",
        },
        "options": options,
        "variables": variables,
        "seconds": limit.as_secs(),
    });
    encoded(&task)
}

fn told_of(test: &OriginalTest) -> serde_json::Value {
    let OriginalTest { name, source, defined_as, text, variants, outside } = test;
    json!({
        "name": name,
        "source": source,
        "defined_as": defined_as,
        "text": text,
        "variants": variants,
        "outside": outside,
    })
}

fn configuration(collection: &Collection, task: &Task, content: &str) -> Result<String> {
    let seconds = verifier_seconds(task) as f64;
    let settings = &collection.settings;
    let mut table = Table::new();
    table.insert("schema_version".to_owned(), words(SCHEMA));
    table.insert("artifacts".to_owned(), list(&[&format!("{}/{}", task.workdir, task.judging.submission)]));
    table.insert("task".to_owned(), section(package(collection, task)));
    table.insert("metadata".to_owned(), section(metadata(collection, task, content)));
    let mut agent = vec![("timeout_sec", Value::Float(AGENT_SECONDS))];
    agent.extend(settings.agent_user.iter().map(|user| ("user", words(user))));
    agent.extend(settings.agent_network.iter().flat_map(Network::entries));
    table.insert("agent".to_owned(), section(agent));
    let mut verifier = vec![("environment_mode", words("separate")), ("timeout_sec", Value::Float(seconds))];
    verifier.extend(settings.verifier_network.iter().flat_map(Network::entries));
    table.insert("verifier".to_owned(), section(verifier));
    let environment = vec![
        ("docker_image", words(&collection.harbor_image(task))),
        ("workdir", words(&task.workdir)),
        ("cpus", Value::Integer(1)),
        ("memory_mb", integer(settings::memory_mb(task.measured.demand.memory))),
        ("network_mode", words("public")),
    ];
    table.insert("environment".to_owned(), section(environment));
    if let Some(suite) = &task.judging.suite {
        refactoring::configure(task, suite, &mut table);
    }
    toml::to_string(&table).map_err(|error| Error::internal("cannot encode a task").with_source(error))
}

fn section(entries: Vec<(&str, Value)>) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn words(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn list(texts: &[&str]) -> Value {
    Value::Array(texts.iter().map(|text| words(text)).collect())
}

/// What names a task, for those who keep many.
fn package(collection: &Collection, task: &Task) -> Vec<(&'static str, Value)> {
    let mut entries = vec![
        ("name", words(&name(collection, task))),
        ("version", words(&collection.version)),
        ("description", words(&task.title)),
        ("keywords", list(&[task.family, "python", task.judging.by(), task.tier])),
    ];
    let authors: Vec<Value> = collection.settings.authors.iter().map(Author::value).collect();
    if !authors.is_empty() {
        entries.push(("authors", Value::Array(authors)));
    }
    entries
}

/// Where it comes from, and what was measured.
fn metadata(collection: &Collection, task: &Task, content: &str) -> Vec<(&'static str, Value)> {
    let measured = &task.measured;
    let worlds: Vec<&str> = measured.worlds.iter().map(String::as_str).collect();
    let mut entries = vec![
        ("dataset", words(&format!("{} {}", collection.name, collection.version))),
        ("instance_id", words(task.id.as_str())),
        ("repo", words(task.slug.as_str())),
        ("commit", words(&task.commit)),
        ("entry_command", words(&task.command)),
        ("license", words(task.license.as_deref().unwrap_or("unknown"))),
        ("judged_by", words(task.judging.by())),
        ("difficulty", words(task.tier)),
        ("attempts", Value::Integer(i64::from(measured.attempts))),
        ("flake_bound", Value::Float(measured.flake_bound)),
        ("worlds", list(&worlds)),
        ("run_limit_sec", integer(task.judging.limit.as_secs())),
        // Of all files but this one, computed as those of `dataset.toml` are.
        ("content_sha256", words(content)),
    ];
    let Demand { slowest, memory } = measured.demand;
    entries.extend(slowest.map(|took| ("slowest_attempt_sec", Value::Float(took.as_secs_f64()))));
    entries.extend(memory.map(|bytes| ("peak_memory_mb", integer(bytes.div_ceil(MEBIBYTE)))));
    entries
}

/// The tasks with their hashes, for `harbor publish` and those who read what it reads.
fn dataset(collection: &Collection, digests: &[(String, String)]) -> Result<String> {
    let mut about = vec![
        ("name", words(&format!("{}/{}", org(collection), collection.name))),
        ("version", words(&collection.version)),
        ("description", words(&described(collection))),
        ("keywords", list(&["python", "pytest"])),
    ];
    let authors: Vec<Value> = collection.settings.authors.iter().map(Author::value).collect();
    if !authors.is_empty() {
        about.push(("authors", Value::Array(authors)));
    }
    let tasks = digests
        .iter()
        .map(|(name, digest)| section(vec![("name", words(name)), ("digest", words(digest))]))
        .collect();
    let table = Table::from_iter([
        ("schema_version".to_owned(), words("1.0")),
        ("dataset".to_owned(), section(about)),
        ("tasks".to_owned(), Value::Array(tasks)),
    ]);
    toml::to_string(&table).map_err(|error| Error::internal("cannot encode a dataset").with_source(error))
}

fn described(collection: &Collection) -> String {
    format!("{} tasks of {} {}", collection.tasks.len(), collection.name, collection.version)
}

fn registry(collection: &Collection) -> Result<String> {
    let tasks: Vec<serde_json::Value> = collection
        .tasks
        .iter()
        .map(|task| json!({ "name": task.id, "path": format!("tasks/{}", task.id) }))
        .collect();
    encoded(&json!([{
        "name": collection.name,
        "version": collection.version,
        "description": described(collection),
        "tasks": tasks,
    }]))
}

fn encoded(value: &serde_json::Value) -> Result<String> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| Error::internal("cannot encode a task").with_source(error))
}
