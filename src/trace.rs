//! Traced attempts: what each passing group calls in the tree, measured twice for what is to be published.
//!
//! The first traced attempt observes the tree only; the second observes all code, gives the total and must agree with
//! the first, call for call. Calls are kept in one compressed file a group, their totals in a journal, so that a
//! repository with thousands of groups never has all calls in memory.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::attempt::pool::{Event, Pool, Task};
use crate::attempt::{attempt_of, node_id, tasks};
use crate::error::{Error, Result};
use crate::python_source::definitions::Definitions;
use crate::record::collected::Group;
use crate::record::id::hash_parts;
use crate::record::outcome::Exit;
use crate::record::trace::{ExecutedBody, FunctionCalls, OTHER_OUTCOME, SecondTrace, Totals, Traced};
use crate::record::world::World;
use crate::runner::protocol::TraceMode;
use crate::runner::report::{GroupTrace, ImportTrace};
use crate::store;
use crate::store::journal::{self, Journal};

/// Which of the two traced attempts, each in interpreters of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Sees the tree.
    First,
    /// Sees all code, and is compared with the first.
    Second,
}

impl Which {
    fn round(self) -> (u32, TraceMode) {
        match self {
            Which::First => (100, TraceMode::Tree),
            Which::Second => (101, TraceMode::All),
        }
    }
}

/// What is to be traced.
#[derive(Debug)]
pub struct ToTrace {
    pub which: Which,
    /// Groups by index, each with the hash of the outcomes of an untraced attempt; none where it has none.
    pub groups: BTreeMap<usize, Option<String>>,
    /// Milliseconds of earlier attempts, by group; none for those that are missing.
    pub durations: BTreeMap<usize, f64>,
}

/// The journal of totals.
const TOTALS: &str = "totals";

/// One traced attempt as it is on the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TracedAttempt {
    functions: Vec<FunctionCalls>,
    total_calls: Option<u64>,
    child_calls: u64,
    starts_threads: bool,
    import_calls: u64,
    import_files: Vec<String>,
    import_functions: Vec<FunctionCalls>,
    bodies: Vec<ExecutedBody>,
    /// Whether the attempt showed the outcomes of the untraced ones.
    same_outcome: bool,
    /// Whether it came to its end, with nothing lost.
    complete: bool,
    /// Why what was reported cannot be what the tracer wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl TracedAttempt {
    fn troubles(&self) -> Vec<String> {
        let changed = (!self.same_outcome).then(|| OTHER_OUTCOME.to_owned());
        let refused = self.refused.as_ref().map(|refused| format!("(the trace was refused: {refused})"));
        changed.into_iter().chain(refused).collect()
    }
}

/// Traces of one repository.
#[derive(Debug)]
pub struct Traces {
    folder: PathBuf,
    journal: Journal,
    known: BTreeMap<String, Traced>,
}

impl Traces {
    /// Opens what an earlier build left.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub fn open(folder: &Path) -> Result<Self> {
        fs_err::create_dir_all(folder)?;
        let (journal, earlier) = Journal::open::<Traced>(&folder.join(TOTALS))?;
        let known = earlier.into_iter().map(|traced| (traced.group_id.clone(), traced)).collect();
        Ok(Traces { folder: folder.to_owned(), journal, known })
    }

    /// The totals of a group, where it was traced.
    pub fn totals(&self, group_id: &str) -> Option<&Traced> {
        self.known.get(group_id)
    }

    /// Takes over the traces that were written to another folder, of groups that have none here. Gives how many.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub fn take_over(&mut self, folder: &Path) -> Result<usize> {
        let mut taken = 0;
        for traced in journal::read::<Traced>(&folder.join(TOTALS))? {
            let name = file_name(&traced.group_id);
            if self.known.contains_key(&traced.group_id) || !folder.join(&name).exists() {
                continue;
            }
            let calls = fs_err::read(folder.join(&name))?;
            if decode(&calls).is_none() {
                continue;
            }
            store::write_atomic(&self.folder.join(&name), &calls)?;
            self.journal.append(&traced)?;
            self.known.insert(traced.group_id.clone(), traced);
            taken += 1;
        }
        self.journal.sync()?;
        Ok(taken)
    }

    /// Forgets the groups among these whose calls are missing or damaged, so that they are traced again. Gives whether
    /// there were any.
    ///
    /// # Errors
    /// IO errors with action and path.
    pub fn forget_damaged<'a>(&mut self, group_ids: impl Iterator<Item = &'a str>) -> Result<bool> {
        let mut any = false;
        for group_id in group_ids {
            if self.known.contains_key(group_id) && self.read(group_id)?.is_none() {
                self.known.remove(group_id);
                any = true;
            }
        }
        Ok(any)
    }

    /// The trace of a group with all its calls.
    ///
    /// # Errors
    /// IO errors, and a file that is not what was written: see [`Traces::forget_damaged`].
    pub fn whole(&self, group_id: &str) -> Result<Option<Traced>> {
        let Some(totals) = self.known.get(group_id) else { return Ok(None) };
        let attempt = self.read(group_id)?.ok_or_else(|| {
            Error::machine(format!("the calls of {group_id} are missing from {}", self.folder.display()))
                .with_hint("run the same command again")
        })?;
        Ok(Some(Traced { functions: attempt.functions, ..totals.clone() }))
    }

    /// The groups among these that still lack this traced attempt.
    pub fn lacking(&self, which: Which, groups: &[Group], among: impl Iterator<Item = usize>) -> Vec<usize> {
        let lacks = |at: &usize| match (which, self.totals(&groups[*at].group_id)) {
            (Which::First, traced) => traced.is_none(),
            (Which::Second, traced) => traced.is_some_and(|traced| traced.second.is_none()),
        };
        among.filter(lacks).collect()
    }

    /// Traces what is `wanted`, each group once. `is_test` recognises test files, `each` is called after every traced attempt.
    ///
    /// # Errors
    /// IO errors, interruption, and the harness's trouble.
    pub fn measure(
        &mut self,
        wanted: &ToTrace,
        pool: &Pool<'_>,
        is_test: impl Fn(&str) -> bool,
        mut each: impl FnMut(),
    ) -> Result<()> {
        let mut definitions = Definitions::new(&pool.passes[0].setting.tree);
        let ToTrace { which, groups, durations } = wanted;
        let (round, mode) = which.round();
        let once: Vec<(usize, u32)> = groups.keys().map(|group| (*group, 1)).collect();
        let tasks: Vec<Task> = tasks(pool.groups, &once, durations, 0, mode, pool.expected());
        pool.run(tasks, |event| {
            let (group, attempt) = match event {
                Event::Broken(error) | Event::Lost { error, .. } => return Err(error),
                Event::Unavailable { group, .. } => (group, TracedAttempt::default()),
                Event::Attempt { group, done, items, import, .. } => {
                    let name = |index: i64| node_id(&items, index);
                    let world = (&World::Base, round);
                    let attempt =
                        attempt_of(&pool.groups[group], &done, name, pool.passes[0].normalizer, world);
                    let untraced = groups.get(&group).and_then(Option::as_ref);
                    let same_outcome = untraced == Some(&attempt.outcome_hash());
                    let finished = attempt.exit == Exit::Finished;
                    (group, traced_attempt(done.trace, import.as_deref(), same_outcome, finished))
                }
            };
            let id = pool.groups[group].group_id.clone();
            each();
            let traced = match *which {
                Which::First => {
                    self.write(&id, &attempt)?;
                    first_trace(&id, &attempt, &is_test, &mut definitions)
                }
                Which::Second => {
                    let (Some(first), Some(traced)) = (self.read(&id)?, self.known.get(&id)) else {
                        return Err(Error::machine(format!("the first trace of {id} is gone"))
                            .with_hint("run the same command again"));
                    };
                    Traced { second: Some(compared(&first, &attempt)), ..traced.clone() }
                }
            };
            self.journal.append(&traced)?;
            self.known.insert(id, traced);
            Ok(())
        })?;
        self.journal.sync()
    }

    fn path(&self, group_id: &str) -> PathBuf {
        self.folder.join(file_name(group_id))
    }

    fn write(&self, group_id: &str, attempt: &TracedAttempt) -> Result<()> {
        let text = store::seal(attempt)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let bytes = encoder
            .write_all(&text)
            .and_then(|()| encoder.finish())
            .map_err(|error| Error::internal("cannot compress a trace").with_source(error))?;
        store::write_atomic(&self.path(group_id), &bytes)
    }

    /// What [`Traces::write`] wrote; none when it is missing, or damaged and therefore set aside.
    fn read(&self, group_id: &str) -> Result<Option<TracedAttempt>> {
        let path = self.path(group_id);
        let bytes = match fs_err::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let attempt = decode(&bytes);
        if attempt.is_none() {
            store::set_aside(&path)?;
        }
        Ok(attempt)
    }
}

/// What the first traced attempt says.
fn first_trace(
    id: &str,
    first: &TracedAttempt,
    is_test: impl Fn(&str) -> bool,
    definitions: &mut Definitions,
) -> Traced {
    Traced {
        group_id: id.to_owned(),
        totals: Totals::of(&first.functions, is_test),
        child_calls: first.child_calls,
        import_calls: first.import_calls,
        import_files: first.import_files.clone(),
        complete: first.complete,
        threads_seen: first.starts_threads,
        troubles: first.troubles(),
        code_sha256: definitions.hash(&first.functions),
        ..Traced::default()
    }
}

/// What the second traced attempt says beside the first.
fn compared(first: &TracedAttempt, second: &TracedAttempt) -> SecondTrace {
    let mut differing = differing(&first.functions, &second.functions);
    if (first.import_calls, &first.import_files) != (second.import_calls, &second.import_files) {
        differing.push("(import)".into());
    }
    if first.child_calls != second.child_calls {
        differing.push("(children)".into());
    }
    let calls = |functions: &[FunctionCalls]| {
        functions.iter().map(|function| function.calls).fold(0, u64::saturating_add)
    };
    let in_tree = calls(&second.functions);
    let outside = second.total_calls.unwrap_or(in_tree).saturating_sub(in_tree);
    SecondTrace {
        total_calls: calls(&first.functions).saturating_add(outside),
        differing,
        troubles: second.troubles(),
        starts_threads: second.starts_threads,
        complete: second.complete,
    }
}

/// The file with the calls of a group.
fn file_name(group_id: &str) -> String {
    format!("{}.json.gz", &hash_parts(&[group_id])[..24])
}

/// Largest trace of a group that is read, in bytes.
const LARGEST: u64 = 4 << 30;

fn decode(bytes: &[u8]) -> Option<TracedAttempt> {
    let mut text = Vec::new();
    GzDecoder::new(bytes).take(LARGEST).read_to_end(&mut text).ok()?;
    store::unseal(&text)
}

fn traced_attempt(
    trace: Option<std::result::Result<GroupTrace, String>>,
    import: Option<&ImportTrace>,
    same_outcome: bool,
    finished: bool,
) -> TracedAttempt {
    let import = import.map(|import| import.check().map(|()| import)).transpose();
    let (trace, import) = match (trace.transpose(), import) {
        (Ok(trace), Ok(import)) => (trace, import),
        (Err(refused), _) | (_, Err(refused)) => {
            return TracedAttempt { same_outcome, refused: Some(refused), ..TracedAttempt::default() };
        }
    };
    let complete = finished && trace.as_ref().is_some_and(|trace| trace.complete);
    let (functions, bodies, total_calls, child_calls, starts_threads) = trace
        .map(|trace| {
            (trace.functions, trace.bodies, trace.total_calls, trace.child_calls, trace.starts_threads)
        })
        .unwrap_or_default();
    let mut import_files = import.map(|import| import.files.clone()).unwrap_or_default();
    import_files.sort();
    import_files.dedup();
    let import_calls = import.map_or(0, |import| import.calls);
    let import_functions = import.map(|import| import.functions.clone()).unwrap_or_default();
    let import_bodies = import.map(|import| import.bodies.clone()).unwrap_or_default();
    TracedAttempt {
        functions,
        total_calls,
        child_calls,
        starts_threads,
        import_calls,
        import_files,
        import_functions,
        bodies: import_bodies.into_iter().chain(bodies).collect(),
        same_outcome,
        complete,
        refused: None,
    }
}

/// Functions on which two traced attempts differ (calls, order of first call, lines), `file::function`, sorted.
fn differing(first: &[FunctionCalls], second: &[FunctionCalls]) -> Vec<String> {
    type Seen<'a> = [Vec<(u32, u64, Option<&'a [u32]>)>; 2];
    let mut calls: BTreeMap<(&str, u32, &str), Seen<'_>> = BTreeMap::new();
    for (index, functions) in [first, second].into_iter().enumerate() {
        for function in functions {
            let key = (function.file.as_str(), function.line, function.function.as_str());
            let seen = (function.order, function.calls, function.lines.as_deref());
            calls.entry(key).or_default()[index].push(seen);
        }
    }
    let differing = calls.into_iter().filter(|(_, [a, b])| !same(a, b));
    differing.map(|((file, _, function), _)| format!("{file}::{function}")).collect()
}

/// Same order of first call, same number of calls, and the same lines where both attempts know them.
fn same(a: &[(u32, u64, Option<&[u32]>)], b: &[(u32, u64, Option<&[u32]>)]) -> bool {
    let pair = |((order_a, calls_a, lines_a), (order_b, calls_b, lines_b)): (
        &(_, _, Option<&[u32]>),
        &(_, _, _),
    )| {
        let lines_differ = lines_a.zip(*lines_b).is_some_and(|(a, b): (&[u32], &[u32])| a != b);
        order_a == order_b && calls_a == calls_b && !lines_differ
    };
    a.len() == b.len() && a.iter().zip(b).all(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, line: u32, calls: u64) -> FunctionCalls {
        FunctionCalls {
            file: "a.py".into(),
            function: name.into(),
            line,
            calls,
            order: 0,
            lines: None,
            callers: None,
        }
    }

    #[test]
    fn functions_of_one_name_at_two_lines_are_two() {
        let first = [function("f", 1, 2), function("f", 9, 3), function("g", 20, 1)];
        let second = [function("f", 9, 3), function("f", 1, 2), function("g", 20, 2)];
        assert!(differing(&first, &first).is_empty());
        assert_eq!(differing(&first, &second), ["a.py::g"]);
    }

    #[test]
    fn the_second_trace_counts_what_lies_outside_and_names_what_differs() {
        let attempt = |calls: u64, total: u64| TracedAttempt {
            functions: vec![function("f", 1, calls)],
            total_calls: Some(total),
            import_calls: 1,
            same_outcome: true,
            complete: true,
            ..TracedAttempt::default()
        };
        let folder = tempfile::tempdir().expect("temp dir");
        let traced = |first: &TracedAttempt, second: &TracedAttempt| {
            let once = first_trace("t.py::test", first, |_| false, &mut Definitions::new(folder.path()));
            Traced { second: Some(compared(first, second)), ..once }
        };
        let once = Traced { second: None, ..traced(&attempt(2, 9), &attempt(2, 9)) };
        assert_eq!((once.stable(), once.is_whole(), once.starts_threads()), (None, true, false));

        let alike = traced(&attempt(2, 9), &attempt(2, 9));
        assert_eq!((alike.stable(), alike.is_whole()), (Some(true), true));
        assert_eq!(alike.second.map(|second| second.total_calls), Some(9));

        // Seven calls lie outside of the tree, beside the two that the first attempt saw in it.
        let other = traced(&attempt(2, 9), &attempt(4, 11));
        assert_eq!((other.stable(), other.is_whole()), (Some(false), true));
        assert_eq!(other.unstable_functions().collect::<Vec<_>>(), ["a.py::f"]);
        assert_eq!(other.second.map(|second| second.total_calls), Some(9));

        let (children, import) = (
            TracedAttempt { child_calls: 1, starts_threads: true, ..attempt(2, 9) },
            TracedAttempt { import_calls: 2, same_outcome: false, ..attempt(2, 9) },
        );
        let both = traced(&children, &import);
        assert_eq!((both.stable(), both.starts_threads()), (Some(false), true));
        let named: Vec<_> = both.unstable_functions().collect();
        assert_eq!(named, ["(import)", "(children)", "(tracing changes the outcome)"]);

        let lost = traced(&attempt(2, 9), &TracedAttempt { complete: false, ..attempt(2, 9) });
        assert_eq!((lost.stable(), lost.complete, lost.is_whole()), (Some(false), true, false));
    }

    #[test]
    fn a_refused_trace_measures_nothing_and_says_why() {
        let refused = traced_attempt(Some(Err("no path".into())), None, true, true);
        assert_eq!((refused.complete, refused.refused.as_deref()), (false, Some("no path")));
        let import = ImportTrace {
            calls: 1,
            files: vec!["/dev/zero".into()],
            functions: Vec::new(),
            bodies: Vec::new(),
        };
        let trace: GroupTrace = serde_json::from_str(r#"{"functions":[]}"#).expect("a trace");
        let refused = traced_attempt(Some(Ok(trace)), Some(&import), true, true);
        assert!(!refused.complete && refused.refused.is_some_and(|why| why.contains("/dev/zero")));
    }

    #[test]
    fn calls_come_back_from_the_disk_and_damage_is_seen() {
        let folder = tempfile::tempdir().expect("temp dir");
        let traces = Traces::open(folder.path()).expect("opens");
        let attempt = TracedAttempt {
            functions: vec![function("f", 1, 2)],
            total_calls: Some(9),
            child_calls: 0,
            starts_threads: false,
            import_calls: 1,
            import_functions: Vec::new(),
            bodies: Vec::new(),
            import_files: vec!["a.py".into()],
            same_outcome: true,
            complete: true,
            refused: None,
        };
        traces.write("t.py::test", &attempt).expect("writes");
        assert_eq!(traces.read("t.py::test").expect("reads").as_ref(), Some(&attempt));
        let path = traces.path("t.py::test");
        let bytes = std::fs::read(&path).expect("reads");
        std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("writes");
        assert_eq!(traces.read("t.py::test").expect("reads"), None);
        assert!(!path.exists(), "it was set aside");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(decode(&changed).is_none_or(|found| found == attempt), "byte {at}");
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
        }
    }
}
