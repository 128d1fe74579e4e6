//! gistmill's traces against another way of counting: cold runs of the literal entry command with a plugin of a few
//! lines (`count_calls.py`), by `sys.setprofile` and, where there is one, by `sys.monitoring`.
//!
//! `cargo bench --profile dev --bench all -- independent_trace CONFIG [--cache DIR] [GROUPS]` takes that many passing
//! groups (30) of each repository, in the order of sampling, and prints every difference in trace length, unique files
//! or functions. It ends with an error when there is one in a group whose two countings agree with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gistmill::attempt::pool::Event;
use gistmill::attempt::{attempt_of, node_id, tasks};
use gistmill::backend::{Job, Mount};
use gistmill::pipeline::prepare::{Preparation, Prepared};
use gistmill::record::collected::Group;
use gistmill::record::id::sha256_hex;
use gistmill::record::outcome::Outcome;
use gistmill::record::trace::Totals;
use gistmill::record::world::World;
use gistmill::runner::TREE_BYTES;
use gistmill::runner::protocol::TraceMode;
use gistmill::text::shell_quote;

use crate::common::{AnyError, Subject};

/// The plugin, and where it and its result lie inside.
const PLUGIN: &str = include_str!("count_calls.py");
const FOLDER: &str = "/run/count";
const LIMIT: std::time::Duration = std::time::Duration::from_mins(10);

/// What one way of counting saw.
#[derive(Debug, PartialEq, Eq)]
struct Count {
    calls: u64,
    files: Vec<String>,
    /// `file:line:name` to calls.
    functions: BTreeMap<String, u64>,
}

pub fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = crate::arguments();
    let at = arguments.iter().position(|one| one == "--cache");
    let cache = at
        .and_then(|at| arguments.get(at + 1))
        .map_or_else(|| crate::common::folder().join("cache"), PathBuf::from);
    let size = arguments.iter().find_map(|one| one.parse().ok()).unwrap_or(30);
    let named = arguments.iter().find(|one| one.ends_with(".toml"));
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/flask.toml");
    let subject = Subject::open(named.map_or(default.as_path(), Path::new), &cache, 1)?;
    let pipeline = subject.pipeline();
    let mut wrong = 0;
    for repo in &subject.config.repos {
        let prepared = Preparation::new(&pipeline, repo).run()?;
        wrong += compare(&prepared, size)?;
    }
    if wrong > 0 { Err(format!("{wrong} groups differ").into()) } else { Ok(()) }
}

/// Prints the comparison of one repository; gives the number of groups that differ for no known reason.
fn compare(prepared: &Prepared, size: usize) -> Result<usize, AnyError> {
    let mut order: Vec<usize> = (0..prepared.collected.groups.len()).collect();
    order.sort_by_key(|at| sha256_hex(prepared.collected.groups[*at].group_id.as_bytes()));
    let mut traced = traced(prepared, &order[..order.len().min(2 * size)])?;
    traced.truncate(size);
    let ways: &[&str] =
        if is_new(&prepared.lab.built.python) { &["profile", "monitoring"] } else { &["profile"] };
    let (mut equal, mut unsteady, mut wrong, mut calls) = (0, 0, 0, 0);
    for (group, ours) in &traced {
        calls += ours.calls;
        let counted: Vec<Count> =
            ways.iter().map(|way| count(prepared, group, way)).collect::<Result<_, _>>()?;
        if counted.iter().all(|count| count == ours) {
            equal += 1;
            continue;
        }
        // A test whose own countings differ from run to run has no one right number.
        let again = count(prepared, group, ways[0])?;
        let steady = again == counted[0];
        *(if steady { &mut wrong } else { &mut unsteady }) += 1;
        println!("{} ({}):", group.group_id, if steady { "DIFFERS" } else { "its own countings differ" });
        for (way, count) in ways.iter().zip(&counted) {
            println!(
                "  {way}: {} calls, {} files; gistmill: {} calls, {} files",
                count.calls,
                count.files.len(),
                ours.calls,
                ours.files.len()
            );
            for (name, a, b) in differences(count, ours).into_iter().take(8) {
                println!("    {name}: {a} counted, {b} by gistmill");
            }
        }
    }
    println!(
        "{} (Python {}): {} groups, {calls} calls; by {} {equal} equal, {unsteady} unsteady, {wrong} differ",
        prepared.pinned.slug,
        prepared.lab.built.python,
        traced.len(),
        ways.join(" and ")
    );
    Ok(wrong)
}

/// Whether there is a `sys.monitoring`: Python 3.12 and newer.
fn is_new(python: &str) -> bool {
    let minor = python.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    minor.is_some_and(|minor| minor >= 12)
}

fn differences(a: &Count, b: &Count) -> Vec<(String, u64, u64)> {
    let names: BTreeSet<&String> = a.functions.keys().chain(b.functions.keys()).collect();
    let calls = |count: &Count, name: &String| count.functions.get(name).copied().unwrap_or(0);
    let pairs = names.into_iter().map(|name| (name.clone(), calls(a, name), calls(b, name)));
    pairs.filter(|(_, a, b)| a != b).collect()
}

/// What gistmill's tracer sees, for the groups of which every case passes.
fn traced<'a>(prepared: &'a Prepared, groups: &[usize]) -> Result<Vec<(&'a Group, Count)>, AnyError> {
    let base = prepared.lab.base();
    let pool = prepared.lab.pool(&prepared.collected.groups, &base);
    let wanted: Vec<(usize, u32)> = groups.iter().map(|group| (*group, 1)).collect();
    let tasks = tasks(pool.groups, &wanted, &BTreeMap::new(), 0, TraceMode::Tree, 1);
    let mut found = BTreeMap::new();
    pool.run(tasks, |event| {
        match event {
            Event::Broken(error) | Event::Lost { error, .. } => return Err(error),
            Event::Unavailable { .. } => {}
            Event::Attempt { group, done, items, .. } => {
                let name = |index: i64| node_id(&items, index);
                let attempt =
                    attempt_of(&pool.groups[group], &done, name, &base.normalizer, (&World::Base, 0));
                let passes = attempt.cases.iter().all(|case| case.outcome == Outcome::Passed);
                if let (true, Some(Ok(trace))) = (passes && !attempt.cases.is_empty(), done.trace) {
                    let totals = Totals::of(&trace.functions, |_| false);
                    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
                    for one in &trace.functions {
                        let name = one.function.rsplit('.').next().unwrap_or_default();
                        *functions.entry(format!("{}:{}:{name}", one.file, one.line)).or_default() +=
                            one.calls;
                    }
                    found.insert(group, Count { calls: totals.trace_length, files: totals.files, functions });
                }
            }
        }
        Ok(())
    })?;
    let in_order = groups.iter().filter_map(|at| Some((&prepared.collected.groups[*at], found.remove(at)?)));
    Ok(in_order.collect())
}

/// What the plugin counts in a cold run.
fn count(prepared: &Prepared, group: &Group, way: &str) -> Result<Count, AnyError> {
    let shared = tempfile::tempdir()?;
    std::fs::write(shared.path().join("count_calls.py"), PLUGIN)?;
    let places = prepared.lab.backend.places();
    let setting = &prepared.lab.setting;
    let tree = Mount::Overlay { host: setting.tree.clone(), inside: places.root.clone(), bytes: TREE_BYTES };
    let mut mounts = setting.mounts(tree);
    mounts.push(Mount::Writable { host: shared.path().to_owned(), inside: FOLDER.into() });
    let mut env = setting.env.clone();
    let options: Vec<String> = prepared.lab.options.iter().map(|option| shell_quote(option)).collect();
    env.insert("PYTEST_ADDOPTS".into(), options.join(" "));
    env.insert("PYTEST_PLUGINS".into(), "count_calls".into());
    env.insert("PYTHONPATH".into(), FOLDER.into());
    env.insert("COUNT_BY".into(), way.into());
    env.insert("COUNT_TO".into(), format!("{FOLDER}/count.json"));
    let python = places.venv.join("bin/python").to_string_lossy().into_owned();
    let job = Job {
        argv: vec![python, "-m".into(), "pytest".into(), group.group_id.clone()],
        env,
        cwd: places.root.clone(),
        mounts,
        may_mount: false,
        limits: setting.limits,
        channel: false,
        service: None,
    };
    let finished = prepared.lab.backend.run(&job, LIMIT)?;
    let text = std::fs::read_to_string(shared.path().join("count.json"))
        .map_err(|error| format!("{}: {error}\n{}{}", group.group_id, finished.stdout, finished.stderr))?;
    let value: serde_json::Value = serde_json::from_str(&text)?;
    Ok(Count {
        calls: value["calls"].as_u64().ok_or("no calls")?,
        files: serde_json::from_value(value["files"].clone())?,
        functions: serde_json::from_value(value["functions"].clone())?,
    })
}
