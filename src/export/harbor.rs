//! Harbor task folders. Inspect (`inspect-harbor`) and verifiers (its Harbor taskset) run the same folders.
//!
//! The verifier is a container of its own that gets nothing of the agent's but the file that is handed in. It has no
//! Dockerfile: it is a fresh one of the environment, because verifiers builds none.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;
use toml::{Table, Value};

use super::{Collection, File, Files, script, text};
use crate::error::{Error, Result};
use crate::record::entry::EntryCommand;
use crate::record::task::{Judging, OriginalTest, Reward, Task};
use crate::text::shell_quote;

pub(super) const JUDGE: &str = include_str!("judge.py");
/// Format of `task.toml` that knows separate verifiers.
const SCHEMA: &str = "1.4";
/// What an agent may take, in seconds.
const AGENT_SECONDS: f64 = 3600.0;
/// What starting and judging takes beside the run itself, in seconds.
const VERIFIER_SLACK: u64 = 60;

pub(super) fn files(collection: &Collection) -> Result<Files> {
    let mut files = Files::new();
    for task in &collection.tasks {
        for (name, file) in of_task(collection, task)? {
            files.insert(format!("tasks/{}/{name}", task.id), file);
        }
    }
    files.insert("registry.json".to_owned(), text(registry(collection)?));
    Ok(files)
}

fn of_task(collection: &Collection, task: &Task) -> Result<Files> {
    let image = collection.image(task);
    let mut files = Files::from([
        ("task.toml".to_owned(), text(configuration(collection, task)?)),
        ("instruction.md".to_owned(), text(task.instruction.clone())),
        ("environment/Dockerfile".to_owned(), text(format!("FROM {image}\nWORKDIR {}\n", task.workdir))),
        ("tests/test.sh".to_owned(), script(judging(task))),
        ("tests/judge.py".to_owned(), text(JUDGE.to_owned())),
        ("tests/task.json".to_owned(), text(judged(task)?)),
    ]);
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
    Ok(files)
}

fn judging(task: &Task) -> String {
    let file = shell_quote(&format!("{}/{}", task.workdir, task.judging.submission));
    format!(
        "#!/bin/bash\nexec python -I /tests/judge.py --container /tests/task.json {file} /logs/verifier\n"
    )
}

/// How often the judge runs something: as it is, and with variants of each test or exceptions at its start.
fn runs(task: &Task) -> u64 {
    let other = |test: &OriginalTest| if test.variants.is_empty() { 3 } else { test.variants.len() };
    (task.judging.run.len() * (1 + task.judging.originals.iter().map(other).sum::<usize>())) as u64
}

/// What the judge gets to know.
pub(super) fn judged(task: &Task) -> Result<String> {
    let Judging {
        submission,
        hidden,
        before,
        run,
        originals,
        code,
        expect,
        reward,
        options,
        variables,
        limit,
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
        "code": code,
        "outcomes": outcomes,
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

fn configuration(collection: &Collection, task: &Task) -> Result<String> {
    let section = |entries: Vec<(&str, Value)>| -> Value {
        Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    };
    let words = |text: &str| Value::String(text.to_owned());
    let list = |texts: &[&str]| Value::Array(texts.iter().map(|text| words(text)).collect());
    let seconds = (task.judging.limit.as_secs() * runs(task) + VERIFIER_SLACK) as f64;
    let place = |extra: Vec<(&'static str, Value)>| {
        let common = [
            ("docker_image", words(collection.image(task))),
            ("workdir", words(&task.workdir)),
            ("cpus", Value::Integer(1)),
            ("memory_mb", Value::Integer(4096)),
        ];
        section(common.into_iter().chain(extra).collect())
    };
    let mut table = Table::new();
    table.insert("schema_version".to_owned(), words(SCHEMA));
    table.insert("artifacts".to_owned(), list(&[&format!("{}/{}", task.workdir, task.judging.submission)]));
    let name = format!("{}/{}", collection.name, task.id);
    table.insert(
        "task".to_owned(),
        section(vec![
            ("name", words(&name)),
            ("description", words(&task.title)),
            ("keywords", list(&[task.family, "python", "pytest", task.tier])),
        ]),
    );
    let metadata = [
        ("dataset", format!("{} {}", collection.name, collection.version)),
        ("instance_id", task.id.to_string()),
        ("repo", task.slug.to_string()),
        ("commit", task.commit.clone()),
        ("entry_command", task.command.clone()),
        ("license", task.license.clone().unwrap_or_else(|| "unknown".to_owned())),
        ("judged_by", "pytest".to_owned()),
    ];
    let metadata = metadata.iter().map(|(key, value)| (*key, words(value))).collect();
    table.insert("metadata".to_owned(), section(metadata));
    table.insert("agent".to_owned(), section(vec![("timeout_sec", Value::Float(AGENT_SECONDS))]));
    table.insert(
        "verifier".to_owned(),
        section(vec![("environment_mode", words("separate")), ("timeout_sec", Value::Float(seconds))]),
    );
    table.insert("environment".to_owned(), place(vec![("network_mode", words("public"))]));
    toml::to_string(&table).map_err(|error| Error::internal("cannot encode a task").with_source(error))
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
        "description": format!("{} tasks of {} {}", tasks.len(), collection.name, collection.version),
        "tasks": tasks,
    }]))
}

fn encoded(value: &serde_json::Value) -> Result<String> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| Error::internal("cannot encode a task").with_source(error))
}
