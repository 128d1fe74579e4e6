//! Whole runs of the suite on a tree with a patch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::script::{self, Shown};
use crate::attempt::lab::{Lab, Made, Wanted};
use crate::attempt::overlay::History;
use crate::beneath::Folder;
use crate::collect;
use crate::error::{Error, Fault, Result};
use crate::family::codetaste::suite::Counts;
use crate::record::codetaste::{Scripts, sha256_of};
use crate::record::collected::{Collected, Group};
use crate::record::id::hash_parts;
use crate::record::outcome::{Attempt, Exit, Outcome};
use crate::record::patch::Patch;
use crate::record::verdict::Cause;
use crate::referee::texts::byte_code_of;
use crate::store::memo::Memo;
use crate::store::{Cache, discard};

/// Raised when the same patch may show something else.
const VERSION: &str = "codetaste-2";
/// How often a run is made that the harness loses.
const TRIES: u32 = 3;
/// How often scripts run the suite of a submission until they give counts.
const JUDGED: u32 = 4;
/// Runs of scripts that are made beside those that are to set the bounds, where some of them give no counts.
const MORE: u32 = 2;
/// Of a file whose groups are so often over their limit the others are not run.
const PATIENCE: u32 = 3;

/// What a whole run is for: the same patch is run again for another purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It sets the bounds.
    Bounds,
    /// It is judged by them.
    Judged,
    /// It shows whether anything can be run here.
    Probe,
}

/// A whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WholeRun {
    /// None of a run in which nothing could be collected.
    pub(crate) counts: Option<Counts>,
    /// By case; what did not run is missing.
    pub(crate) outcomes: BTreeMap<String, Outcome>,
    /// Cases that were collected and did not run: their group crashed, or was over its limit.
    #[serde(default)]
    pub(crate) crashed: BTreeSet<String>,
    /// Of all groups together.
    pub(crate) duration_ms: f64,
    /// Why there are no counts.
    pub(crate) why: Option<String>,
    /// Whether the harness could not make it.
    #[serde(skip)]
    pub(crate) is_lost: bool,
    /// Whether it was stopped because it took too long.
    #[serde(default)]
    pub(crate) is_late: bool,
}

impl WholeRun {
    pub(crate) fn passes(&self, case: &str) -> bool {
        self.outcomes.get(case) == Some(&Outcome::Passed)
    }

    /// Adds what a group showed; cases that did not run in it failed.
    fn add(&mut self, group: &Group, attempt: &Attempt) {
        let counts = self.counts.get_or_insert(NOTHING);
        let is_whole = attempt.exit == Exit::Finished;
        for case in attempt.cases.iter().filter(|_| is_whole) {
            match case.outcome {
                Outcome::Passed | Outcome::XPassed => counts.passed += 1,
                Outcome::Failed | Outcome::Error => counts.failed += 1,
                Outcome::Skipped | Outcome::XFailed => counts.skipped += 1,
            }
            self.outcomes.insert(case.case_id.clone(), case.outcome);
        }
        let collected = group.cases.iter().map(|case| &case.case_id);
        self.crashed.extend(collected.filter(|case| !self.outcomes.contains_key(*case)).cloned());
        let ran = if is_whole { attempt.cases.len() } else { 0 };
        let lacking = group.cases.len().saturating_sub(ran);
        counts.failed += signed(lacking);
        counts.total += signed(ran + lacking);
        self.duration_ms += attempt.duration_ms;
    }

    /// Adds files that are collected as a whole or not at all.
    fn add_uncollected(&mut self, collected: &Collected) {
        for row in &collected.uncollected {
            let counts = self.counts.get_or_insert(NOTHING);
            counts.total += 1;
            if row.cause == Cause::Skipped { counts.skipped += 1 } else { counts.failed += 1 }
        }
    }

    fn without_counts(why: String, is_lost: bool) -> Self {
        WholeRun { why: Some(why), is_lost, ..WholeRun::default() }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

const NOTHING: Counts = Counts { passed: 0, failed: 0, skipped: 0, total: 0 };

/// A built tree, over which patches are laid.
#[derive(Clone, Copy)]
pub(crate) struct SuiteLab<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) cache: &'a Cache,
    /// What runs the suite; none where pytest does.
    pub(crate) scripts: &'a Scripts,
    /// What a run of scripts may take.
    pub(crate) limit: Duration,
}

impl SuiteLab<'_> {
    /// Whether the suite gives counts alone, and names no case.
    pub(crate) fn is_scripted(&self) -> bool {
        !self.scripts.is_empty()
    }
}

/// Whole runs, kept in a journal.
pub(crate) struct Suites {
    memo: Memo<WholeRun>,
}

impl Suites {
    /// Opens what an earlier command left.
    ///
    /// # Errors
    /// IO errors.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Suites { memo: Memo::open(path)? })
    }

    /// The runs that set the bounds: so many. Of scripts so many with counts, where a few more give them.
    ///
    /// # Errors
    /// Those of [`Suites::runs`].
    pub(crate) fn of_bounds(
        &mut self,
        place: SuiteLab<'_>,
        patch: &Patch,
        runs: u32,
    ) -> Result<Vec<WholeRun>> {
        let mut made = self.runs(place, patch, (Purpose::Bounds, runs))?;
        if !place.is_scripted() {
            return Ok(made);
        }
        let lacking = |made: &[WholeRun]| made.iter().any(|run| run.is_lost || run.is_late);
        let with_counts = |made: &[WholeRun]| made.iter().filter(|run| run.counts.is_some()).count();
        for more in 1..=MORE {
            if with_counts(&made) >= runs as usize || lacking(&made) {
                break;
            }
            made = self.runs(place, patch, (Purpose::Bounds, runs + more))?;
        }
        if with_counts(&made) >= runs as usize {
            made.retain(|run| run.counts.is_some());
        }
        Ok(made)
    }

    /// The run that judges a patch: of scripts the first with counts of four.
    ///
    /// # Errors
    /// Those of [`Suites::runs`].
    pub(crate) fn judged(&mut self, place: SuiteLab<'_>, patch: &Patch) -> Result<WholeRun> {
        let tries = if place.is_scripted() { JUDGED } else { 1 };
        let mut run = WholeRun::default();
        for number in 1..=tries {
            run = self.runs(place, patch, (Purpose::Judged, number))?.pop().unwrap_or_default();
            if run.counts.is_some() || run.is_lost || run.is_late {
                break;
            }
        }
        Ok(run)
    }

    /// What git sees that the set-up of scripts changes in a tree; none where it changes nothing.
    ///
    /// # Errors
    /// IO errors and an interruption; the harness's trouble.
    pub(crate) fn changes_tree(place: SuiteLab<'_>, patch: &Patch) -> Result<Option<String>> {
        with_overlay(place, patch, |lab| script::set_up_changes(&lab, (place.scripts, place.limit)))
    }

    /// So many whole runs with a patch, each made once for its purpose and number.
    ///
    /// # Errors
    /// IO errors and an interruption.
    pub(crate) fn runs(
        &mut self,
        place: SuiteLab<'_>,
        patch: &Patch,
        (purpose, runs): (Purpose, u32),
    ) -> Result<Vec<WholeRun>> {
        let keys: Vec<String> = (0..runs).map(|number| key(place, patch, purpose, number)).collect();
        let missing: Vec<u32> = (0..runs)
            .zip(&keys)
            .filter(|(_, key)| self.memo.get(key).is_none())
            .map(|(number, _)| number)
            .collect();
        let mut lost = BTreeMap::new();
        if !missing.is_empty() {
            let made = with_overlay(place, patch, |lab| whole_runs(&lab, place, &missing))?;
            for (number, run) in missing.iter().zip(made) {
                if run.is_lost {
                    lost.insert(*number, run);
                } else {
                    self.memo.extend([(keys[*number as usize].clone(), run)])?;
                }
            }
        }
        let found = |(number, key): (u32, &String)| {
            lost.remove(&number).or_else(|| self.memo.get(key).cloned()).unwrap_or_default()
        };
        Ok((0..runs).zip(&keys).map(found).collect())
    }
}

fn key(place: SuiteLab<'_>, patch: &Patch, purpose: Purpose, number: u32) -> String {
    let lab = place.lab;
    let (timeouts, tests) = (format!("{:?}", lab.timeouts), lab.built.tests.join("\0"));
    let purpose = format!("{purpose:?} {number}");
    let key = hash_parts(&[VERSION, &lab.built.key, &patch.sha256(), &timeouts, &tests, &purpose]);
    // Only where there are some, so that what pytest showed keeps its key.
    if place.is_scripted() {
        hash_parts(&[&key, "scripts", &sha256_of(place.scripts), &format!("{:?}", place.limit)])
    } else {
        key
    }
}

/// Does something in the tree with a patch laid over it, which is gone afterwards.
///
/// # Errors
/// Those of the work; IO errors.
pub(crate) fn with_overlay<T>(
    place: SuiteLab<'_>,
    patch: &Patch,
    work: impl FnOnce(Lab) -> Result<T>,
) -> Result<T> {
    let lab = place.lab.with(place.cache, &without_byte_code(place.lab, patch)?, History::Kept)?;
    let folder = lab.built.tree.parent().map(Path::to_owned);
    let done = work(lab);
    folder.map_or(Ok(()), |folder| discard(&folder))?;
    done
}

/// The tests of a tree.
///
/// # Errors
/// What pytest says where it finds none, and trouble of the harness.
pub(crate) fn collected(lab: &Lab) -> Result<Collected> {
    let wanted =
        collect::Wanted { tests: &lab.built.tests, options: &lab.options, limit: lab.timeouts.group };
    let (found, pytest) = collect::discover(&*lab.backend, &lab.setting, &wanted, &[])?;
    collect::collected(&found, pytest, &lab.base().normalizer, false)
}

/// A patch that also hides the byte code of what it changes.
fn without_byte_code(lab: &Lab, patch: &Patch) -> Result<Patch> {
    let entries = Folder::open(&lab.built.tree)?.walk()?;
    let compiled: Vec<&str> = entries
        .iter()
        .filter_map(|entry| entry.path.to_str())
        .filter(|path| path.ends_with(".pyc"))
        .collect();
    let mut all = patch.clone();
    for (path, _) in patch.files().filter(|(path, _)| path.ends_with(".py")) {
        for path in byte_code_of(path, compiled.iter().copied()) {
            all.hide(&path).map_err(|_| Error::internal(format!("{path} is not a file of a tree")))?;
        }
    }
    Ok(all)
}

/// Collects the tree, and runs all of it for each number.
fn whole_runs(lab: &Lab, place: SuiteLab<'_>, numbers: &[u32]) -> Result<Vec<WholeRun>> {
    if place.is_scripted() {
        return scripted_runs(lab, place, numbers);
    }
    let none = |error: Error, is_lost| {
        let why = format!("{error}\n{}", error.detail().unwrap_or_default());
        Ok(numbers.iter().map(|_| WholeRun::without_counts(why.trim_end().to_owned(), is_lost)).collect())
    };
    match collected(lab) {
        Ok(collected) => numbers.iter().map(|number| whole_run(lab, &collected, *number)).collect(),
        Err(error) if error.fault() == Fault::Repository => none(error, false),
        Err(error) if error.fault() == Fault::Harness => none(error, true),
        Err(error) => Err(error),
    }
}

/// Runs the scripts of the suite for each number; the first run that is lost or stopped ends them.
fn scripted_runs(lab: &Lab, place: SuiteLab<'_>, numbers: &[u32]) -> Result<Vec<WholeRun>> {
    let mut made: Vec<WholeRun> = Vec::new();
    for _ in numbers {
        let run = match made.last() {
            Some(last) if last.is_lost || last.is_late => last.clone(),
            _ => scripted_run(lab, place)?,
        };
        made.push(run);
    }
    Ok(made)
}

fn scripted_run(lab: &Lab, place: SuiteLab<'_>) -> Result<WholeRun> {
    let mut tries = 1;
    loop {
        match script::run(lab, (place.scripts, place.limit)) {
            Ok(Shown { counts, why, duration_ms, is_late }) => {
                return Ok(WholeRun { counts, duration_ms, why, is_late, ..WholeRun::default() });
            }
            Err(error) if error.fault() != Fault::Harness => return Err(error),
            Err(error) if tries == TRIES => return Ok(WholeRun::without_counts(error.to_string(), true)),
            Err(_) => tries += 1,
        }
    }
}

fn whole_run(lab: &Lab, collected: &Collected, number: u32) -> Result<WholeRun> {
    let groups = &collected.groups;
    let wanted: Vec<(usize, u32)> = (0..groups.len()).map(|at| (at, 1)).collect();
    let (world, durations) = (lab.base(), BTreeMap::new());
    let mut tries = 1;
    loop {
        let wanted = Wanted {
            world: &world,
            round: number,
            groups: &wanted,
            durations: &durations,
            patience: Some(PATIENCE),
        };
        let mut run = WholeRun::default();
        run.add_uncollected(collected);
        let made = lab.make(groups, &[wanted], |_, at, made| {
            let (Made::Attempt(attempt) | Made::Unavailable { attempt, .. }) = made;
            run.add(&groups[at], &attempt);
            Ok(())
        });
        match made {
            Ok(()) => return Ok(run),
            Err(error) if matches!(error.fault(), Fault::Harness | Fault::Repository) => {
                if tries == TRIES {
                    return Ok(WholeRun::without_counts(error.to_string(), true));
                }
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::backend::{Backend, Finished, Isolation, Job, Mount, Places, Process};
    use crate::testing::backend::FakeBackend;

    const COUNTS: &str = "{\"passed\": 10, \"failed\": 1, \"total\": 11}";
    const LIMIT: Duration = Duration::from_secs(7);

    /// Prints these one after the other; `late` is a job that is over its limit.
    struct Played {
        places: Places,
        isolation: Isolation,
        outputs: Mutex<Vec<&'static str>>,
    }

    impl Backend for Played {
        fn places(&self) -> &Places {
            &self.places
        }

        fn isolation(&self) -> &Isolation {
            &self.isolation
        }

        fn start(&self, _: &Job) -> Result<Box<dyn Process>> {
            Err(Error::internal("jobs are played"))
        }

        fn run(&self, job: &Job, limit: Duration) -> Result<Finished> {
            let scripts = job.mounts.iter().find_map(|mount| match mount {
                Mount::ReadOnly { host, inside } if inside == Path::new("/scripts") => Some(host),
                _ => None,
            });
            let script = fs_err::read(scripts.unwrap().join("run_tests")).unwrap();
            assert_eq!((script.as_slice(), limit), (&b"x"[..], LIMIT));
            assert!(!job.mounts.iter().any(|mount| matches!(mount, Mount::NoPackages { .. })));
            let said = self.outputs.lock().unwrap().pop().unwrap_or_default();
            let timed_out = said == "late";
            let code = (!timed_out).then_some(3);
            Ok(Finished { code, timed_out, stdout: said.to_owned(), stderr: "traceback".to_owned() })
        }
    }

    /// What a suite that prints these shows: the counts of its runs, and why the last has none.
    fn shown(
        outputs: &[&'static str],
        work: impl FnOnce(&mut Suites, SuiteLab<'_>) -> Vec<WholeRun>,
    ) -> (Vec<bool>, Option<String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let lab = crate::testing::lab::lab(&FakeBackend::new([]), folder.path());
        let outputs = outputs.iter().rev().copied().collect();
        let played = Played {
            places: Places::in_sandbox(),
            isolation: Isolation::default(),
            outputs: Mutex::new(outputs),
        };
        let played = Arc::new(played);
        let lab = Lab { backend: Arc::<Played>::clone(&played), ..lab };
        let scripts = Scripts::from([("run_tests".to_owned(), b"x".to_vec())]);
        let place = SuiteLab { lab: &lab, cache: &cache, scripts: &scripts, limit: LIMIT };
        let mut suites = Suites::open(&folder.path().join("runs")).unwrap();
        let made = work(&mut suites, place);
        let left = played.outputs.lock().unwrap().len();
        let why = made.last().and_then(|run| run.why.clone());
        (made.iter().map(|run| run.counts.is_some()).collect(), why, left)
    }

    #[test]
    fn bounds_need_counts_of_so_many_runs_of_scripts_in_two_more() {
        let of = |outputs: &[&'static str]| {
            shown(outputs, |suites, place| suites.of_bounds(place, &Patch::default(), 3).unwrap())
        };
        assert_eq!(of(&[COUNTS, COUNTS, COUNTS, "not made"]), (vec![true; 3], None, 1));
        assert_eq!(of(&[COUNTS, "", COUNTS, "", COUNTS, "not made"]), (vec![true; 3], None, 1));
        let (counted, why, left) = of(&[COUNTS, "", COUNTS, "", "nothing", COUNTS]);
        assert_eq!((counted, left), (vec![true, false, true, false, false], 1));
        assert_eq!(why.unwrap(), "no counts; it exits with 3\nnothing\ntraceback");
        let (counted, why, left) = of(&[COUNTS, "late", COUNTS]);
        assert_eq!(
            (counted, left),
            (vec![true, false, false], 1),
            "nothing is run after one that is stopped"
        );
        assert!(why.unwrap().starts_with("no counts; it takes more than 7 s"));
    }

    #[test]
    fn the_first_run_of_scripts_with_counts_judges() {
        let of = |outputs: &[&'static str]| {
            shown(outputs, |suites, place| vec![suites.judged(place, &Patch::default()).unwrap()])
        };
        assert_eq!(of(&["", "", "", COUNTS, "not made"]), (vec![true], None, 1));
        assert_eq!(of(&["", "", "", "", COUNTS]).2, 1);
        assert_eq!(of(&["late", COUNTS]).2, 1);
        let nonsense = "{\"passed\": 10, \"failed\": -1, \"total\": 11}";
        assert_eq!(of(&[nonsense, COUNTS, "not made"]), (vec![true], None, 1));
    }

    #[test]
    fn other_scripts_are_other_runs_and_pytests_keep_their_key() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let lab = crate::testing::lab::lab(&FakeBackend::new([]), folder.path());
        let of = |files: &[(&str, &str)], seconds| {
            let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
            let (scripts, limit) = (files.collect(), Duration::from_secs(seconds));
            let place = SuiteLab { lab: &lab, cache: &cache, scripts: &scripts, limit };
            key(place, &Patch::default(), Purpose::Judged, 0)
        };
        let one = [("run_tests", "x"), ("more", "y")];
        assert_eq!(of(&one, 1), of(&one, 1));
        for (other, seconds) in [
            (&[("run_tests", "x"), ("more", "z")][..], 1),
            (&[("run_tests", "x"), ("mory", "")][..], 1),
            (&one[..1], 1),
            (&one[..], 2),
        ] {
            assert_ne!(of(&one, 1), of(other, seconds), "{other:?} {seconds}");
        }
        assert_eq!(of(&[], 1), of(&[], 2), "pytest has other limits");
    }
}
