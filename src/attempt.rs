//! Attempts: one group run once, in a world of its own, by a pool of workers, and what was seen turned into an
//! [`Attempt`] with normalized output. Judges nothing.
//!
//! A *round* is a set of attempts made by interpreters of their own: attempts of different rounds share neither
//! imports, nor addresses, nor random state.

pub mod capabilities;
pub mod cold;
pub mod contention;
pub mod lab;
pub mod normalize;
pub mod overlay;
pub mod pool;
pub mod retry;
pub mod world;

use std::collections::BTreeMap;

use crate::record::collected::Group;
use crate::record::outcome::{Attempt, CaseResult, CommandResult, Exit, FileChange, Method};
use crate::record::world::World;
use crate::runner::protocol::{Item, ProcessExit, TraceMode};
use crate::runner::report::GroupDone;
use crate::text::glob;
use normalize::Normalizer;
use pool::{Run, Task};
use regex::Regex;

/// Cost of a case whose duration is not known yet, in milliseconds.
const UNKNOWN_CASE_MS: f64 = 20.0;

/// What collecting a case costs whenever its file is opened, in milliseconds.
const OPENING_CASE_MS: f64 = 0.25;

/// Splits the attempts that are still missing into tasks: one per file, or several for a file
/// whose attempts take much longer than opening it once more. Pure.
///
/// `wanted` is (group, attempts) in the order of collection; `durations` are known milliseconds per attempt.
pub fn tasks(
    groups: &[Group],
    wanted: &[(usize, u32)],
    durations: &BTreeMap<usize, f64>,
    pass: usize,
    trace: TraceMode,
    jobs: usize,
) -> Vec<Task> {
    let known: f64 = wanted.iter().filter_map(|(group, _)| durations.get(group)).sum();
    let mean = known / wanted.iter().filter(|(group, _)| durations.contains_key(group)).count().max(1) as f64;
    let cost = |(group, repeat): &(usize, u32)| {
        let unknown = (UNKNOWN_CASE_MS * groups[*group].cases.len() as f64).max(mean);
        durations.get(group).copied().unwrap_or(unknown) * f64::from(*repeat)
    };
    let total: f64 = wanted.iter().map(cost).sum();
    let share = (total / (jobs.max(1) * 3) as f64).max(1000.0);
    let mut opening: BTreeMap<&str, f64> = BTreeMap::new();
    for group in groups {
        *opening.entry(group.file.as_str()).or_default() += OPENING_CASE_MS * group.cases.len() as f64;
    }
    let is_new = |group: usize| !durations.contains_key(&group);
    let mut by_file: BTreeMap<&str, Vec<(usize, u32)>> = BTreeMap::new();
    for entry in wanted {
        by_file.entry(groups[entry.0].file.as_str()).or_default().push(*entry);
    }
    let mut tasks = Vec::new();
    for (file, mut entries) in by_file {
        // What was never run may take long: it is in as few tasks as possible, which come first.
        entries.sort_by_key(|(group, _)| !is_new(*group));
        let opening_ms = opening.get(file).copied().unwrap_or_default();
        let empty = || {
            let mut task = Task::new(file, pass, trace);
            task.opening_ms += opening_ms;
            task
        };
        let mut task = empty();
        let share = share.max(opening_ms);
        for entry in entries.iter().flat_map(|entry| parts(*entry, cost(entry) / share)) {
            if !task.runs.is_empty() && task.cost_ms + cost(&entry) > share {
                tasks.push(std::mem::replace(&mut task, empty()));
            }
            task.is_new |= is_new(entry.0);
            task.cost_ms += cost(&entry);
            task.runs.push(Run::new(entry.0, entry.1));
        }
        tasks.push(task);
    }
    // The last run of a task is made first: what takes long is not what everybody waits for at the end.
    for task in &mut tasks {
        let order = |run: &Run| (is_new(run.group), cost(&(run.group, run.repeat)));
        task.runs.sort_by(|a, b| {
            let ((a_new, a), (b_new, b)) = (order(a), order(b));
            a_new.cmp(&b_new).then(a.total_cmp(&b))
        });
    }
    tasks
}

/// The attempts of a group in so many parts, but not more than there are attempts.
fn parts((group, repeat): (usize, u32), number: f64) -> impl Iterator<Item = (usize, u32)> {
    let number = (number.ceil() as u32).clamp(1, repeat.max(1));
    (0..number).map(move |part| (group, repeat / number + u32::from(part < repeat % number)))
}

/// Turns the runner's report into an attempt with normalized output.
pub fn attempt_of(
    group: &Group,
    done: &GroupDone,
    node_id: impl Fn(i64) -> String,
    normalizer: &Normalizer,
    (world, round): (&World, u32),
) -> Attempt {
    let cases = done
        .cases
        .iter()
        .map(|case| {
            let mut replaced = BTreeMap::new();
            CaseResult {
                case_id: normalizer.id(&node_id(case.index)).0,
                outcome: case.outcome,
                exception: case.exception.clone(),
                stdout: normalizer.output(&case.stdout, &case.process_ids, &mut replaced)
                    + &cut_mark(case.stdout_sha256.as_deref()),
                stderr: normalizer.output(&case.stderr, &case.process_ids, &mut replaced)
                    + &cut_mark(case.stderr_sha256.as_deref()),
                message: normalizer.output(
                    case.message.as_deref().unwrap_or_default(),
                    &case.process_ids,
                    &mut BTreeMap::new(),
                ),
                command: case.status.map(|status| CommandResult {
                    status,
                    files: counted_files(group, &case.files, normalizer, &case.process_ids),
                    wants: case.wants,
                }),
                replaced,
                duration_ms: case.duration_ms,
            }
        })
        .collect();
    let exit = match &done.exit {
        ProcessExit::Finished => Exit::Finished,
        ProcessExit::Exited { code } => Exit::Exited { code: *code },
        ProcessExit::Signaled { signal } => Exit::Signaled { signal: *signal },
        ProcessExit::TimedOut { scope, index } => {
            Exit::TimedOut { scope: *scope, case: index.map(|index| normalizer.id(&node_id(index)).0) }
        }
        ProcessExit::Unusable => Exit::Unusable,
    };
    let raw_output = match &done.pytest_error {
        Some(error) => format!("{}\n{error}", done.raw_output),
        None => done.raw_output.clone(),
    };
    Attempt {
        group_id: group.group_id.clone(),
        world: world.clone(),
        number: 0,
        method: Method::Fork,
        round,
        exit,
        cases,
        connections: done.connections.clone(),
        leftover: done.leftover,
        raw_output: normalizer.output(&raw_output, &[], &mut BTreeMap::new()),
        duration_ms: done.duration_ms,
        processor_ms: done.processor_ms,
        memory_bytes: done.memory_bytes,
        noted_at: 0,
    }
}

/// The changes that count for an entry, texts normalized.
fn counted_files(
    group: &Group,
    changed: &[FileChange],
    normalizer: &Normalizer,
    process_ids: &[u32],
) -> Vec<FileChange> {
    let globs = group.entry.as_ref().map(|entry| entry.files.as_slice()).unwrap_or_default();
    let patterns: Vec<Regex> =
        globs.iter().filter_map(|text| Regex::new(&glob::pattern(text)).ok()).collect();
    let counts =
        |file: &&FileChange| globs.is_empty() || patterns.iter().any(|pattern| pattern.is_match(&file.path));
    let normal = |file: &FileChange| FileChange {
        text: file.text.as_ref().map(|text| normalizer.output(text, process_ids, &mut BTreeMap::new())),
        ..file.clone()
    };
    changed.iter().filter(counts).map(normal).collect()
}

/// The attempt that a group makes in a world where its file cannot be collected.
pub fn not_collected(
    group: &Group,
    text: &str,
    normalizer: &Normalizer,
    (world, round): (&World, u32),
) -> Attempt {
    Attempt {
        group_id: group.group_id.clone(),
        world: world.clone(),
        number: 0,
        method: Method::Fork,
        round,
        exit: Exit::NotCollected,
        cases: Vec::new(),
        connections: Vec::new(),
        leftover: 0,
        raw_output: normalizer.output(&crate::text::tail(text, 40), &[], &mut BTreeMap::new()),
        duration_ms: 0.0,
        processor_ms: 0.0,
        memory_bytes: None,
        noted_at: 0,
    }
}

/// Node ID of the item with this index; a made-up one has none. Items stand at their index: what a group costs does not
/// grow with the other groups of its file.
pub fn node_id(items: &[Item], index: i64) -> String {
    let item = usize::try_from(index).ok().and_then(|index| item_at(items, index));
    item.map_or_else(|| "(an item that a hook made up)".to_owned(), |item| item.node_id.clone())
}

/// The item with this index.
fn item_at(items: &[Item], index: usize) -> Option<&Item> {
    items.get(index).filter(|item| item.index == index)
}

/// Ends output that is cut: what is not kept is compared by its hash.
fn cut_mark(sha256: Option<&str>) -> String {
    sha256.map(|sha256| format!("\n[cut here; sha256 of all bytes: {sha256}]")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(files: &[&str]) -> Vec<Group> {
        files
            .iter()
            .enumerate()
            .map(|(index, file)| Group {
                group_id: format!("{file}::test_{index}"),
                file: (*file).to_owned(),
                classes: Vec::new(),
                function: format!("test_{index}"),
                cases: vec![crate::record::collected::Case {
                    case_id: format!("{file}::test_{index}"),
                    parameters: None,
                    line: None,
                }],
                markers: Vec::new(),
                fixtures: Vec::new(),
                flags: Vec::new(),
                entry: None,
            })
            .collect()
    }

    #[test]
    fn tasks_cover_every_wanted_attempt_once_and_never_mix_files() {
        let groups = groups(&["a.py", "b.py", "a.py", "c.py", "a.py"]);
        let wanted = [(0, 2), (1, 1), (2, 2), (4, 1)];
        let durations = [(0, 5000.0), (2, 1.0)].into();
        let tasks = tasks(&groups, &wanted, &durations, 2, TraceMode::Off, 2);
        let mut seen: Vec<(usize, u32)> = Vec::new();
        for task in &tasks {
            assert!(task.runs.iter().all(|run| groups[run.group].file == task.file));
            seen.extend(task.runs.iter().map(|run| (run.group, run.repeat)));
        }
        seen.sort_unstable();
        assert_eq!(seen, [(0, 1), (0, 1), (1, 1), (2, 2), (4, 1)], "what takes long is made in parts");
        assert_eq!(parts((7, 5), 2.1).collect::<Vec<_>>(), [(7, 2), (7, 2), (7, 1)]);
    }

    #[test]
    fn a_file_that_takes_long_to_open_is_opened_less_often() {
        let mut groups = groups(&["a.py"; 100]);
        let wanted: Vec<(usize, u32)> = (0..100).map(|group| (group, 1)).collect();
        let durations = (0..100).map(|group| (group, 100.0)).collect();
        let count = |groups: &[Group]| tasks(groups, &wanted, &durations, 0, TraceMode::Off, 2).len();
        assert_eq!(count(&groups), 7);
        let case = groups[0].cases[0].clone();
        groups[0].cases = vec![case; 20_000];
        assert_eq!(count(&groups), 2);
    }

    #[test]
    fn an_index_that_is_no_item_s_names_no_item() {
        assert_eq!(node_id(&[], 0), "(an item that a hook made up)");
        assert_eq!(node_id(&[], -1), "(an item that a hook made up)");
    }
}
