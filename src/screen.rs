//! Screening: repeated isolated attempts of every group, kept in a journal, and the verdicts that follow from them.
//!
//! A *round* is a set of attempts made by interpreters of their own: attempts of different rounds share neither
//! imports, nor addresses, nor random state. The first two rounds give every group one attempt each; the others deepen
//! the groups that are to be published.

pub mod attribution;
pub mod cold;
pub mod conditions;
pub mod contention;
pub mod journal;
pub mod normalize;
pub mod pool;
pub mod verdict;
pub mod world;

use std::collections::BTreeMap;

use crate::error::Result;
use crate::record::collected::Group;
use crate::record::outcome::{Attempt, CaseResult, Exit, Method, TimeScope};
use crate::runner::protocol::{ProcessExit, TraceMode};
use crate::runner::report::GroupDone;
use normalize::Normalizer;
use pool::{Run, Task};

/// Rounds that every group goes through.
pub const FIRST_ROUNDS: [u32; 2] = [0, 1];
/// Rounds that deepen a group which is to be published.
const DEEP_ROUNDS: [u32; 2] = [2, 3];
/// Cost of a case whose duration is not known yet, in milliseconds.
const UNKNOWN_CASE_MS: f64 = 20.0;

/// How many attempts of a round a group needs when it is to have `attempts` in all. Pure.
pub fn attempts_of_round(round: u32, attempts: u32) -> u32 {
    let rest = attempts.saturating_sub(2);
    match round {
        0 | 1 => 1,
        2 => rest.div_ceil(2),
        3 => rest / 2,
        _ => 0,
    }
}

/// All rounds of a group with `attempts` attempts.
pub fn rounds(attempts: u32) -> impl Iterator<Item = (u32, u32)> {
    let all = FIRST_ROUNDS.into_iter().chain(DEEP_ROUNDS);
    all.map(move |round| (round, attempts_of_round(round, attempts))).filter(|(_, count)| *count > 0)
}

/// Splits the attempts that are still missing into tasks: one per file, or several for a long file. Pure.
///
/// `wanted` is (group, attempts) in the order of collection; `durations` are known milliseconds per attempt.
pub fn tasks(
    groups: &[Group],
    wanted: &[(usize, u32)],
    durations: &BTreeMap<usize, f64>,
    round: u32,
    trace: TraceMode,
    jobs: usize,
) -> Vec<Task> {
    let cost = |(group, repeat): &(usize, u32)| {
        let unknown = UNKNOWN_CASE_MS * groups[*group].cases.len() as f64;
        durations.get(group).copied().unwrap_or(unknown) * f64::from(*repeat)
    };
    let total: f64 = wanted.iter().map(cost).sum();
    let share = (total / (jobs.max(1) * 3) as f64).max(1000.0);
    let mut by_file: BTreeMap<&str, Vec<(usize, u32)>> = BTreeMap::new();
    for entry in wanted {
        by_file.entry(groups[entry.0].file.as_str()).or_default().push(*entry);
    }
    let mut tasks = Vec::new();
    for (file, entries) in by_file {
        let mut task = Task::new(file, round, trace);
        for entry in entries {
            if !task.runs.is_empty() && task.cost_ms + cost(&entry) > share {
                tasks.push(std::mem::replace(&mut task, Task::new(file, round, trace)));
            }
            task.cost_ms += cost(&entry);
            task.runs.push(Run { group: entry.0, repeat: entry.1 });
        }
        tasks.push(task);
    }
    tasks
}

/// Turns the runner's report into an attempt with normalized output.
pub fn attempt_of(
    group: &Group,
    done: &GroupDone,
    node_id: impl Fn(i64) -> String,
    normalizer: &Normalizer,
    (world, round): (&str, u32),
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
                replaced,
                duration_ms: case.duration_ms,
            }
        })
        .collect();
    let exit = match &done.exit {
        ProcessExit::Finished => Exit::Finished,
        ProcessExit::Exited { code } => Exit::Exited { code: *code },
        ProcessExit::Signaled { signal } => Exit::Signaled { signal: *signal },
        ProcessExit::TimedOut { scope, index } => Exit::TimedOut {
            scope: if scope == "case" { TimeScope::Case } else { TimeScope::Group },
            case: index.map(|index| normalizer.id(&node_id(index)).0),
        },
        ProcessExit::Unusable => Exit::Unusable,
    };
    let raw_output = match &done.pytest_error {
        Some(error) => format!("{}\n{error}", done.raw_output),
        None => done.raw_output.clone(),
    };
    Attempt {
        group_id: group.group_id.clone(),
        world: world.to_owned(),
        number: 0,
        method: Method::Fork,
        round,
        exit,
        cases,
        connections: done.connections.clone(),
        leftover: done.leftover,
        raw_output: normalizer.output(&raw_output, &[], &mut BTreeMap::new()),
        duration_ms: done.duration_ms,
    }
}

/// The attempt that a group makes in a world where its file cannot be collected.
pub fn not_collected(
    group: &Group,
    text: &str,
    normalizer: &Normalizer,
    (world, round): (&str, u32),
) -> Attempt {
    Attempt {
        group_id: group.group_id.clone(),
        world: world.to_owned(),
        number: 0,
        method: Method::Fork,
        round,
        exit: Exit::NotCollected,
        cases: Vec::new(),
        connections: Vec::new(),
        leftover: 0,
        raw_output: normalizer.output(&crate::collect::tail(text, 40), &[], &mut BTreeMap::new()),
        duration_ms: 0.0,
    }
}

/// Node ID of the item with this index; a made-up one has none.
pub fn node_id(items: &[crate::runner::protocol::Item], index: i64) -> String {
    let item = items.iter().find(|item| i64::try_from(item.index) == Ok(index));
    item.map_or_else(|| "(an item that a hook made up)".to_owned(), |item| item.node_id.clone())
}

/// Ends output that is cut: what is not kept is compared by its hash.
fn cut_mark(sha256: Option<&str>) -> String {
    sha256.map(|sha256| format!("\n[cut here; sha256 of all bytes: {sha256}]")).unwrap_or_default()
}

/// What screening knows of the groups of one repository: attempts by group, appended to the journal as they come.
#[derive(Debug)]
pub struct Screened {
    journal: journal::Journal,
    attempts: Vec<Vec<Attempt>>,
    places: BTreeMap<String, usize>,
}

impl Screened {
    /// Opens the journal and reads back what an earlier build left.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub fn open(path: &std::path::Path, groups: &[Group]) -> Result<Self> {
        let (journal, earlier) = journal::Journal::open::<Attempt>(path)?;
        let places =
            groups.iter().enumerate().map(|(index, group)| (group.group_id.clone(), index)).collect();
        let mut screened = Screened { journal, attempts: vec![Vec::new(); groups.len()], places };
        for attempt in earlier {
            if let Some(place) = screened.places.get(&attempt.group_id) {
                screened.attempts[*place].push(attempt);
            }
        }
        Ok(screened)
    }

    /// Appends an attempt; its number becomes the next one of its group.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub fn record(&mut self, group: usize, mut attempt: Attempt) -> Result<()> {
        attempt.number = u32::try_from(self.attempts[group].len()).unwrap_or(u32::MAX);
        self.journal.append(&attempt)?;
        self.attempts[group].push(attempt);
        Ok(())
    }

    /// All attempts of a group, in the order in which they were made.
    pub fn of(&self, group: usize) -> &[Attempt] {
        &self.attempts[group]
    }

    /// How many attempts of a round and method a group has in the base world.
    pub fn count(&self, group: usize, method: Method, round: u32) -> u32 {
        let made = self.attempts[group].iter().filter(|attempt| attempt.is_base());
        let count = made.filter(|attempt| attempt.method == method && attempt.round == round).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Mean duration of the attempts in the fork tree, in the base world, in milliseconds.
    pub fn durations(&self) -> BTreeMap<usize, f64> {
        let mean = |attempts: &Vec<Attempt>| {
            let times: Vec<f64> = attempts
                .iter()
                .filter(|attempt| attempt.method == Method::Fork && attempt.is_base())
                .map(|attempt| attempt.duration_ms)
                .collect();
            (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
        };
        self.attempts
            .iter()
            .enumerate()
            .filter_map(|(index, attempts)| Some((index, mean(attempts)?)))
            .collect()
    }

    /// Takes the attempts out, group by group.
    pub fn into_attempts(self) -> Vec<Vec<Attempt>> {
        self.attempts
    }

    /// Makes sure that everything appended so far is on the disk.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub fn sync(&mut self) -> Result<()> {
        self.journal.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_add_up_to_the_attempts_asked_for() {
        for attempts in [2, 3, 10, 11, 170] {
            assert_eq!(rounds(attempts).map(|(_, count)| count).sum::<u32>(), attempts);
        }
    }

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
        assert_eq!(seen, wanted);
    }
}
