//! How `ReCUBE` judges: a text takes the place of the target in the whole tree, and the groups of the instance run there.

pub(crate) mod gates;
pub(crate) mod judge;
pub(crate) mod outputs;
pub(crate) mod tables;
pub(crate) mod trajectories;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::attempt::lab::Lab;
use crate::attempt::overlay::History;
use crate::attempt::pool::{Event, Parking, Run, Terms};
use crate::attempt::{attempt_of, node_id, not_collected, tasks};
use crate::beneath::Folder;
use crate::error::{Error, Fault, Result};
use crate::family::gistify::{TestName, line_of};
use crate::family::recube::exchanged;
use crate::family::recube::mask::{Cut, Masked, mask, text_of_target};
use crate::record::collected::Group;
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::outcome::{Attempt, Exit, Outcome};
use crate::record::patch::PathProblem;
use crate::record::trace::check_path;
use crate::record::world::World;
use crate::runner::protocol::{Manner, TraceMode};
use crate::score::LONGEST;
use crate::store::Cache;
use crate::store::journal::Journal;

/// Raised when the same text may show something else.
const VERSION: &str = "recube-2";

/// What groups showed with a text in the place of the target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// By case; what did not run is missing.
    pub(crate) outcomes: BTreeMap<String, Outcome>,
    /// Groups over a limit of time.
    pub(crate) timed_out: BTreeSet<String>,
    /// Groups whose process died.
    pub(crate) crashed: BTreeSet<String>,
    /// Why no group could be run at all.
    pub(crate) broken: Option<String>,
}

impl Shown {
    /// Whether a case passed.
    pub(crate) fn passes(&self, case_id: &str) -> bool {
        self.outcomes.get(case_id) == Some(&Outcome::Passed)
    }

    fn add(&mut self, attempt: &Attempt) {
        self.outcomes.extend(attempt.cases.iter().map(|case| (case.case_id.clone(), case.outcome)));
        match attempt.exit {
            Exit::TimedOut { .. } => drop(self.timed_out.insert(attempt.group_id.clone())),
            Exit::Exited { .. } | Exit::Signaled { .. } | Exit::Unusable => {
                self.crashed.insert(attempt.group_id.clone());
            }
            Exit::Finished | Exit::NotCollected => {}
        }
    }
}

/// The file of an instance as the tree has it.
pub(crate) struct Ground {
    pub(crate) original: String,
    pub(crate) masked: Masked,
    /// Files with its byte code.
    pub(crate) byte_code: Vec<String>,
    /// Python files of the tree.
    pub(crate) python: BTreeSet<String>,
}

impl Ground {
    /// Reads the file of an instance, which the dataset names.
    ///
    /// # Errors
    /// A usage error: the tree does not have it, or it cannot be masked.
    pub(crate) fn of(lab: &Lab, target: &str) -> Result<Self> {
        let folder = Folder::open(&lab.built.tree)?;
        let not_a_target = |why: &str| Error::usage(format!("{target} is not a target: {why}"));
        check_path(target).map_err(|why| not_a_target(&why))?;
        let bytes = folder.read_through_links(Path::new(target), LONGEST as u64 + 1)?;
        let text = text_of_target(&bytes).map_err(|why| not_a_target(why.reason()))?;
        let masked = mask(text, Cut::All).map_err(|why| not_a_target(why.reason()))?;
        let entries = folder.walk()?;
        let paths = entries.iter().filter_map(|entry| entry.path.to_str());
        let python = paths.clone().filter(|path| path.ends_with(".py")).map(str::to_owned).collect();
        Ok(Ground { original: text.to_owned(), masked, byte_code: byte_code_of(target, paths), python })
    }

    /// Whether these are the original and the mask that the dataset was made of.
    ///
    /// # Errors
    /// A usage error: one of them is another.
    pub(crate) fn check(&self, original: &str, masked: &str) -> Result<()> {
        if sha256_hex(self.original.as_bytes()) == original
            && sha256_hex(self.masked.text.as_bytes()) == masked
        {
            return Ok(());
        }
        Err(Error::usage("the mask of a target is not the one that the dataset says")
            .with_hint("use the gistmill that wrote the dataset, or build it again"))
    }
}

/// The byte code of a file, among the paths of its tree.
pub(crate) fn byte_code_of<'a>(target: &str, paths: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let (folder, name) = target.rsplit_once('/').map_or(("", target), |(folder, name)| (folder, name));
    let separator = if folder.is_empty() { "" } else { "/" };
    let start = format!("{folder}{separator}__pycache__/{}.", name.strip_suffix(".py").unwrap_or(name));
    let is_its = |path: &&str| path.starts_with(&start) && path.ends_with(".pyc");
    paths.into_iter().filter(is_its).map(str::to_owned).collect()
}

/// A target in its tree.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) cache: &'a Cache,
    pub(crate) target: &'a str,
    /// Files with byte code of the original.
    pub(crate) byte_code: &'a [String],
}

/// Runs with texts in the place of targets, kept in a journal. Many threads may ask at the same time.
pub(crate) struct Runs {
    kept: Mutex<Recorded>,
    /// Trees without their targets, by place of the tree and target.
    bases: Mutex<BTreeMap<(String, String), Arc<Lab>>>,
    /// Runners that wait for the next text.
    parking: Parking,
}

struct Recorded {
    journal: Journal,
    known: BTreeMap<String, Shown>,
}

/// A journal row.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    shown: Shown,
}

/// What is run of a text.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) text: &'a str,
    pub(crate) groups: &'a [Group],
    /// Where the tests of groups are defined, which fail then as soon as they start: by group, the 1-based line.
    pub(crate) failing: Option<&'a BTreeMap<String, u32>>,
    /// Which run of the same it is.
    pub(crate) number: u32,
}

impl Asked<'_> {
    fn key(&self, place: Place<'_>) -> String {
        let lab = place.lab;
        let mut parts = vec![VERSION.to_owned(), lab.built.key.clone(), place.target.to_owned()];
        parts.extend([sha256_hex(self.text.as_bytes()), self.number.to_string()]);
        parts.push(format!("{:?}", lab.timeouts));
        parts.extend(self.groups.iter().map(|group| group.group_id.clone()));
        parts.extend(self.failing.map(|lines| format!("failing {lines:?}")));
        hash_parts(&parts)
    }

    /// How a group runs; nothing where its test cannot be made to fail.
    fn manner(&self, group: &Group) -> Option<Manner> {
        let Some(lines) = self.failing else { return Some(Manner::PLAIN) };
        Some(Manner { failing: Some(*lines.get(&group.group_id)?), ..Manner::PLAIN })
    }
}

impl Runs {
    /// Opens what an earlier command left.
    ///
    /// # Errors
    /// IO errors.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (journal, rows) = Journal::open::<Kept>(path)?;
        let known = rows.into_iter().map(|row| (row.key, row.shown)).collect();
        let most = 2 * std::thread::available_parallelism().map_or(1, usize::from);
        let parking = Parking::new(most);
        Ok(Runs { kept: Mutex::new(Recorded { journal, known }), bases: Mutex::default(), parking })
    }

    /// What these groups show with a text in the place of the target, in a tree without history: made once for each
    /// `number`.
    ///
    /// # Errors
    /// IO errors and an interruption. Where the harness cannot run anything in that tree, [`Shown::broken`] says why.
    pub(crate) fn shown(&self, place: Place<'_>, text: &str, groups: &[Group], number: u32) -> Result<Shown> {
        let asked = Asked { text, groups, failing: None, number };
        self.all_shown(place, &[asked]).map(|mut all| all.pop().unwrap_or_default())
    }

    /// What each of these shows, all of one text and its groups, which is imported once for what is not known of them.
    ///
    /// # Errors
    /// As for [`Runs::shown`].
    pub(crate) fn all_shown(&self, place: Place<'_>, all: &[Asked<'_>]) -> Result<Vec<Shown>> {
        let keys: Vec<String> = all.iter().map(|asked| asked.key(place)).collect();
        let mut shown: Vec<Option<Shown>> =
            keys.iter().map(|key| self.kept().known.get(key).cloned()).collect();
        let missing: Vec<usize> = (0..all.len()).filter(|at| shown[*at].is_none()).collect();
        if !missing.is_empty() {
            let asked: Vec<Asked<'_>> = missing.iter().map(|at| all[*at]).collect();
            let made = self.run(place, &asked)?;
            for (at, made) in missing.into_iter().zip(made) {
                // What was broken is tried again the next time.
                if made.broken.is_none() {
                    self.kept().keep(&keys[at], &made)?;
                }
                shown[at] = Some(made);
            }
        }
        Ok(shown.into_iter().flatten().collect())
    }

    fn kept(&self) -> MutexGuard<'_, Recorded> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tree of a target with nothing in its place.
    fn base(&self, place: Place<'_>) -> Result<Arc<Lab>> {
        let key = (place.lab.built.key.clone(), place.target.to_owned());
        let mut bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(base) = bases.get(&key) {
            return Ok(Arc::clone(base));
        }
        let patch = exchanged(place.target, b"", place.byte_code)
            .map_err(|_: PathProblem| Error::internal(format!("{} is not a file of a tree", place.target)))?;
        let base = Arc::new(place.lab.with(place.cache, &patch, History::Hidden)?);
        bases.insert(key, Arc::clone(&base));
        Ok(base)
    }

    /// Imports the text of these once and runs its groups as each asks.
    fn run(&self, place: Place<'_>, all: &[Asked<'_>]) -> Result<Vec<Shown>> {
        let (Some(Asked { text, groups, .. }), base) = (all.first(), self.base(place)?) else {
            return Ok(Vec::new());
        };
        let texts = BTreeMap::from([(place.target.to_owned(), (*text).to_owned())]);
        let world = base.base();
        let wanted: Vec<(usize, u32)> = (0..groups.len()).map(|at| (at, 1)).collect();
        let mut tasks = tasks(groups, &wanted, &BTreeMap::new(), 0, TraceMode::Off, 1);
        for task in &mut tasks {
            let of_run = |run: &Run| {
                let manners = all.iter().filter_map(|asked| asked.manner(&groups[run.group]));
                manners.map(|manner| Run { manner, ..*run }).collect::<Vec<_>>()
            };
            task.runs = task.runs.iter().flat_map(of_run).collect();
        }
        let mut pool = base.busy_pool(groups, &world);
        pool.terms = Terms { parking: Some(&self.parking), workers: Some(1), waiting: None };
        pool.passes.iter_mut().for_each(|pass| pass.texts = Some(&texts));
        let mut shown: Vec<Shown> = all.iter().map(|_| Shown::default()).collect();
        let made = pool.run(tasks, |event| {
            let (manner, attempt) = match event {
                Event::Attempt { group, manner, done, items, .. } => {
                    let name = |index: i64| node_id(&items, index);
                    let place = (&World::Base, 0);
                    (manner, attempt_of(&groups[group], &done, name, &world.normalizer, place))
                }
                Event::Unavailable { group, manner, text, .. } => {
                    (manner, not_collected(&groups[group], &text, &world.normalizer, (&World::Base, 0)))
                }
                Event::Broken(error) | Event::Lost { error, .. } => return Err(error),
            };
            for (shown, asked) in shown.iter_mut().zip(all) {
                if asked.failing.is_some() == manner.failing.is_some() {
                    shown.add(&attempt);
                }
            }
            Ok(())
        });
        match made {
            Err(error) if matches!(error.fault(), Fault::Harness | Fault::Repository) => {
                let broken = Some(error.to_string());
                Ok(all.iter().map(|_| Shown { broken: broken.clone(), ..Shown::default() }).collect())
            }
            other => other.map(|()| shown),
        }
    }
}

impl Recorded {
    fn keep(&mut self, key: &str, shown: &Shown) -> Result<()> {
        self.journal.append(&Kept { key: key.to_owned(), shown: shown.clone() })?;
        self.journal.sync()?;
        self.known.insert(key.to_owned(), shown.clone());
        Ok(())
    }
}

/// Where the tests of these groups are defined in their files: the 1-based line, decorators included. Those whose test is defined
/// elsewhere are left out.
///
/// # Errors
/// IO errors.
pub(crate) fn lines_of_tests(lab: &Lab, groups: &[Group]) -> Result<BTreeMap<String, u32>> {
    let folder = Folder::open(&lab.built.tree)?;
    let mut texts: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut lines = BTreeMap::new();
    for group in groups {
        if !texts.contains_key(group.file.as_str()) {
            let bytes = folder.read_through_links(Path::new(&group.file), LONGEST as u64 + 1)?;
            texts.insert(&group.file, String::from_utf8(bytes).ok());
        }
        let Some(text) = texts.get(group.file.as_str()).and_then(Option::as_ref) else { continue };
        let test = TestName { classes: group.classes.clone(), function: group.function.clone() };
        lines.extend(line_of(text, &test).map(|line| (group.group_id.clone(), line)));
    }
    Ok(lines)
}

/// The group of an ID, with whatever cases its test function has.
pub(crate) fn group_of(group_id: &str) -> Group {
    let mut names: Vec<String> = group_id.split("::").map(str::to_owned).collect();
    let file = names.remove(0);
    let function = names.pop().unwrap_or_default();
    Group {
        group_id: group_id.to_owned(),
        file,
        classes: names,
        function,
        cases: Vec::new(),
        markers: Vec::new(),
        fixtures: Vec::new(),
        flags: Vec::new(),
        entry: None,
    }
}
