//! Runs of groups in a tree in which texts take the places of files: masked files, submissions, mutants.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::attempt::lab::Lab;
use crate::attempt::overlay::History;
use crate::attempt::pool::{Event, Parking, Terms};
use crate::attempt::{attempt_of, node_id, not_collected, tasks};
use crate::error::{Error, Fault, Result};
use crate::family::recube::exchanged;
use crate::interrupt::{self, Waiting};
use crate::record::collected::Group;
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::outcome::{Attempt, Exit, Outcome};
use crate::record::patch::PathProblem;
use crate::record::world::World;
use crate::runner::protocol::TraceMode;
use crate::store::journal::Journal;
use crate::store::{Cache, Lock};

/// Raised when the same text may show something else.
const VERSION: &str = "recube-3";
/// Runners that wait for the next text at most.
const PARKED: usize = 8;

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
    /// Whether that is because pytest does not begin with these texts, and not because of the machine.
    #[serde(default)]
    pub(crate) refused: bool,
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
pub(crate) struct TargetLab<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) cache: &'a Cache,
    pub(crate) target: &'a str,
    /// Files with byte code of the original.
    pub(crate) byte_code: &'a [String],
    /// Who waits for what is run there, if anybody does.
    pub(crate) waiting: Option<&'a Waiting>,
}

/// Runs with texts in the place of targets. Many threads may ask at the same time.
pub(crate) struct Runs {
    /// What was shown; none where nothing is remembered.
    kept: Option<Mutex<Recorded>>,
    /// Trees without their targets, by place of the tree and target.
    bases: Mutex<BTreeMap<(String, String), Base>>,
    /// Runners that wait for the next text.
    parking: Parking,
}

/// A tree that is made by whoever asks first, and held as long as it is used here.
type Base = Arc<Mutex<Option<(Arc<Lab>, Lock)>>>;

struct Recorded {
    journal: Journal,
    known: BTreeMap<String, Shown>,
}

/// A journal row.
#[derive(Serialize, Deserialize)]
struct Row {
    key: String,
    shown: Shown,
}

impl Runs {
    /// Opens what an earlier command left.
    ///
    /// # Errors
    /// IO errors.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (journal, rows) = Journal::open::<Row>(path)?;
        let known = rows.into_iter().map(|row| (row.key, row.shown)).collect();
        Ok(Runs { kept: Some(Mutex::new(Recorded { journal, known })), ..Runs::fresh(PARKED) })
    }

    /// Runs that know of no others, nor remember any. So many runners wait for texts at most.
    pub(crate) fn fresh(parked: usize) -> Self {
        Runs { kept: None, bases: Mutex::default(), parking: Parking::new(parked) }
    }

    /// Runners that wait for a text.
    pub(crate) fn idle(&self) -> usize {
        self.parking.len()
    }

    /// What these groups show with a text in the place of the target, in a tree without history: made once for each
    /// `number`.
    ///
    /// # Errors
    /// IO errors and an interruption. Where the harness cannot run anything in that tree, [`Shown::broken`] says why.
    pub(crate) fn shown(
        &self,
        place: TargetLab<'_>,
        text: &str,
        groups: &[Group],
        number: u32,
    ) -> Result<Shown> {
        self.shown_with(place, text, &BTreeMap::new(), groups, number)
    }

    /// What groups show with a text in the place of the target, and with other texts of files of tests, by path.
    ///
    /// # Errors
    /// As for [`Runs::shown`].
    pub(crate) fn shown_with(
        &self,
        place: TargetLab<'_>,
        text: &str,
        tests: &BTreeMap<String, String>,
        groups: &[Group],
        number: u32,
    ) -> Result<Shown> {
        let mut parts = vec![VERSION.to_owned(), place.lab.built.key.clone(), place.target.to_owned()];
        parts.extend([sha256_hex(text.as_bytes()), number.to_string(), format!("{:?}", place.lab.timeouts)]);
        parts.extend(groups.iter().map(|group| group.group_id.clone()));
        parts.extend(tests.iter().flat_map(|(path, text)| [path.clone(), sha256_hex(text.as_bytes())]));
        let key = hash_parts(&parts);
        if let Some(known) = self.kept().and_then(|kept| kept.known.get(&key).cloned()) {
            return Ok(known);
        }
        let mut texts = tests.clone();
        texts.insert(place.target.to_owned(), text.to_owned());
        let shown = self.run(place, &texts, groups)?;
        // What was broken is tried again the next time.
        if let Some(mut kept) = self.kept().filter(|_| shown.broken.is_none()) {
            kept.keep(&key, &shown)?;
        }
        Ok(shown)
    }

    fn kept(&self) -> Option<MutexGuard<'_, Recorded>> {
        self.kept.as_ref().map(opened)
    }

    /// The tree of a target with nothing in its place.
    fn base(&self, place: TargetLab<'_>) -> Result<Arc<Lab>> {
        let key = (place.lab.built.key.clone(), place.target.to_owned());
        let cell = Arc::clone(opened(&self.bases).entry(key).or_default());
        let mut base = opened(&cell);
        if let Some((lab, _)) = &*base {
            return Ok(Arc::clone(lab));
        }
        let texts = BTreeMap::from([(place.target.to_owned(), String::new())]);
        Ok(Arc::clone(&base.insert(laid(place, &texts)?).0))
    }

    /// Removes what was made for texts in the place of a target: its tree, and the runners that work there.
    ///
    /// # Errors
    /// IO errors.
    pub(crate) fn leave(&self, place: TargetLab<'_>) -> Result<()> {
        let key = (place.lab.built.key.clone(), place.target.to_owned());
        let Some(cell) = opened(&self.bases).remove(&key) else { return Ok(()) };
        let base = opened(&cell).take();
        if let Some((lab, held)) = base {
            self.parking.leave(&lab.built.tree);
            drop(held);
            lab.removed()?;
        }
        Ok(())
    }

    /// Runs groups with these texts in the places of files.
    fn run(&self, place: TargetLab<'_>, texts: &BTreeMap<String, String>, groups: &[Group]) -> Result<Shown> {
        let mut made =
            self.base(place).and_then(|base| self.run_in((&base, Some(texts)), place.waiting, groups));
        if made.as_ref().is_err_and(|error| error.fault() == Fault::Repository) {
            // pytest may need the target itself to be imported: then each text has a tree and runners of its own.
            made = self.alone(place, texts, groups);
        }
        match made {
            Err(error) if matches!(error.fault(), Fault::Harness | Fault::Repository) => {
                let refused = error.fault() == Fault::Repository;
                Ok(Shown { broken: Some(error.to_string()), refused, ..Shown::default() })
            }
            other => other,
        }
    }

    fn alone(
        &self,
        place: TargetLab<'_>,
        texts: &BTreeMap<String, String>,
        groups: &[Group],
    ) -> Result<Shown> {
        let (alone, held) = laid(place, texts)?;
        let made = self.run_in((&alone, None), place.waiting, groups);
        drop(held);
        let removed = alone.removed();
        made.and_then(|made| removed.map(|()| made))
    }

    fn run_in(
        &self,
        (lab, texts): (&Lab, Option<&BTreeMap<String, String>>),
        waiting: Option<&Waiting>,
        groups: &[Group],
    ) -> Result<Shown> {
        let world = lab.base();
        let wanted: Vec<(usize, u32)> = (0..groups.len()).map(|at| (at, 1)).collect();
        let tasks = tasks(groups, &wanted, &BTreeMap::new(), 0, TraceMode::Off, 1);
        let mut pool = lab.busy_pool(groups, &world);
        pool.terms = Terms { parking: Some(&self.parking), workers: Some(1), waiting: waiting.cloned() };
        pool.passes.iter_mut().for_each(|pass| pass.texts = texts);
        let mut shown = Shown::default();
        pool.run(tasks, |event| {
            let attempt = match event {
                Event::Attempt { group, done, items, .. } => {
                    let name = |index: i64| node_id(&items, index);
                    attempt_of(&groups[group], &done, name, &world.normalizer, (&World::Base, 0))
                }
                Event::Unavailable { group, text, .. } => {
                    not_collected(&groups[group], &text, &world.normalizer, (&World::Base, 0))
                }
                Event::Broken(error) | Event::Lost { error, .. } => return Err(error),
            };
            shown.add(&attempt);
            Ok(())
        })?;
        Ok(shown)
    }
}

/// The tree with these texts in the places of files, without history and without byte code of the target.
fn laid(place: TargetLab<'_>, texts: &BTreeMap<String, String>) -> Result<(Arc<Lab>, Lock)> {
    let exchange = || {
        let mut patch = exchanged(place.target, b"", place.byte_code)?;
        texts.iter().try_for_each(|(path, text)| patch.put(path, text.clone().into_bytes()))?;
        Ok(patch)
    };
    let patch = exchange()
        .map_err(|_: PathProblem| Error::repository(format!("{:?} is not a file of a tree", place.target)))?;
    loop {
        let lab = place.lab.with(place.cache, &patch, History::Hidden)?;
        if let Some(held) = lab.held()? {
            return Ok((Arc::new(lab), held));
        }
        interrupt::check()?;
    }
}

fn opened<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorded {
    fn keep(&mut self, key: &str, shown: &Shown) -> Result<()> {
        self.journal.append(&Row { key: key.to_owned(), shown: shown.clone() })?;
        self.journal.sync()?;
        self.known.insert(key.to_owned(), shown.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::backend::{FakeBackend, PACKAGE};
    use crate::testing::lab::lab;
    use crate::testing::script::{FakeFile, FakeGroup, Start};

    /// How many runners three texts take where so many of the first ones do not start, and whether all cases pass.
    fn runners(refused: usize) -> (usize, bool) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let file = FakeFile::new("test_a.py", [FakeGroup::passing("test_1"), FakeGroup::passing("test_2")]);
        let backend = FakeBackend::new([file]).starting(refused, Start::Refused("no target"));
        let (groups, lab) = (backend.groups(), lab(&backend, folder.path()));
        let runs = Runs::fresh(1);
        let place = TargetLab { lab: &lab, cache: &cache, target: PACKAGE, byte_code: &[], waiting: None };
        let shown = ["1", "2", "3"].map(|text| runs.shown(place, text, &groups, 0).unwrap());
        let passes = |shown: &Shown| {
            let mut cases = groups.iter().flat_map(|group| &group.cases);
            cases.all(|case| shown.passes(&case.case_id))
        };
        (backend.runners(), shown.iter().all(passes))
    }

    #[test]
    fn one_runner_serves_all_texts_and_where_pytest_needs_the_target_each_has_its_own() {
        assert_eq!(runners(0), (1, true));
        assert_eq!(runners(1), (3, true), "the first text is tried again in a tree of its own");
    }
}
