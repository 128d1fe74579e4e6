//! A patch → what it is worth: the suite against its bounds, patterns on the tree that it makes, and flags.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use super::suite::{Purpose, SuiteLab, Suites, WholeRun};
use crate::beneath::Folder;
use crate::error::{Error, Fault, OrWhy, Result};
use crate::family::codetaste::cheats::{self, Applied};
use crate::family::codetaste::diff::{Changed, changed};
use crate::family::codetaste::lines::Lines;
use crate::family::codetaste::score::{MatchCounts, Measured, Numbers, Side, graded};
use crate::family::codetaste::weakened::weakens;
use crate::history;
use crate::pattern::{Matches, Patterns, Sandbox, Tree};
use crate::record::codetaste::{Bounds, Counts, PatternRow};
use crate::record::outcome::Outcome;
use crate::record::patch::Patch;

/// Cases of a regression that are named.
const NAMED: usize = 20;

/// How a submission ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Class {
    Passes,
    /// The suite is out of its bounds.
    Regression,
    /// Nothing could be collected.
    SuiteCrashes,
    /// The patch cannot be applied.
    PatchFailed,
    /// There is no patch: left out of all numbers.
    NoSubmission,
    /// This machine could not run it.
    Lost,
}

/// The base, and patterns that look through it.
pub(crate) struct Ground {
    /// The files of the pin.
    folder: Folder,
    /// Its Python files.
    base: Tree,
    patterns: Patterns,
    /// Lines of the base that reductive ones match.
    reductive_on_base: Lines,
}

impl Ground {
    /// Reads the tree of a pin, and files with patterns.
    ///
    /// # Errors
    /// What cannot be read; the harness's trouble where an engine fails; a usage error where patterns do not match the base as
    /// their rows say.
    pub(crate) fn of(
        tree: &Path,
        files: &[(String, String)],
        rows: &[PatternRow],
        sandbox: Sandbox<'_>,
    ) -> Result<Self> {
        let folder = Folder::open(tree)?;
        let patterns = Patterns::parse(files, sandbox)?;
        let base = Tree::of_folder(&folder, patterns.reach())?;
        // What no engine gets through is not a submission here.
        let found = patterns.scan(&base).map_err(|error| match error.fault() {
            Fault::Usage => error.blame(Fault::Harness),
            _ => error,
        })?;
        let matches = |row: &PatternRow| found.get(&row.id).map_or(0, |found| found.matches);
        let differing: Vec<&str> =
            rows.iter().filter(|row| matches(row) != row.base).map(|row| row.id.as_str()).collect();
        if !differing.is_empty() {
            return Err(Error::usage(format!(
                "patterns match other places of the base than the dataset says: {}",
                differing.join(", ")
            ))
            .with_hint(
                "use the gistmill and the engine that the dataset was written with, or build it again",
            ));
        }
        let mut reductive_on_base = Lines::default();
        for row in rows.iter().filter(|row| row.side == Side::Reductive) {
            reductive_on_base.extend(&found.get(&row.id).cloned().unwrap_or_default().lines);
        }
        Ok(Ground { folder, base, patterns, reductive_on_base })
    }

    /// The program of the user's that runs patterns, where one does.
    pub(crate) fn engine(&self) -> Option<&str> {
        self.patterns.engine()
    }
}

/// An instance, and what is needed to judge it.
pub(crate) struct Instance<'a> {
    pub(crate) place: SuiteLab<'a>,
    pub(crate) ground: &'a Ground,
    /// Patterns that judge.
    pub(crate) rows: &'a [PatternRow],
    pub(crate) bounds: Bounds,
    pub(crate) must_pass: &'a BTreeSet<String>,
    /// Cases that fail on both trees.
    pub(crate) failing: &'a BTreeSet<String>,
}

/// A judged submission.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    pub(crate) class: Class,
    /// Why, in words; none where the class says all.
    pub(crate) detail: Option<String>,
    pub(crate) flags: Vec<String>,
    pub(crate) counts: Option<Counts>,
    /// None where nothing was run.
    pub(crate) pass_set: Option<bool>,
    /// Cases that must pass and do not.
    pub(crate) missing: Vec<String>,
    /// None of an instance without a submission.
    pub(crate) numbers: Option<Numbers>,
    pub(crate) graded: Option<f64>,
    /// Matches of each pattern.
    pub(crate) matches: MatchCounts,
    pub(crate) files_changed: u64,
    pub(crate) duration_ms: f64,
}

impl Judged {
    /// What is said where this machine can run nothing.
    pub(crate) fn lost(why: String) -> Self {
        Judged { class: Class::Lost, ..Judged::absent(Some(why)) }
    }

    /// What is said of an instance that nobody handed anything in for.
    pub(crate) fn absent(detail: Option<String>) -> Self {
        Judged {
            class: Class::NoSubmission,
            detail,
            flags: Vec::new(),
            counts: None,
            pass_set: None,
            missing: Vec::new(),
            numbers: None,
            graded: None,
            matches: MatchCounts::new(),
            files_changed: 0,
            duration_ms: 0.0,
        }
    }
}

/// What one pair does not show here; trouble that is not the pair's own stays an error.
///
/// # Errors
/// An interruption, a machine that lacks something, an input that is wrong, a bug.
pub(crate) fn own_trouble<T>(made: Result<T>) -> Result<OrWhy<T>> {
    match made {
        Ok(made) => Ok(Ok(made)),
        Err(error) if matches!(error.fault(), Fault::Repository | Fault::Harness) => {
            crate::interrupt::check()?;
            let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
            Ok(Err(format!("{error}{detail}")))
        }
        Err(error) => Err(error),
    }
}

impl Instance<'_> {
    /// Judges a patch as it was handed in.
    ///
    /// # Errors
    /// IO errors and an interruption; the harness's trouble where an engine of patterns fails each time.
    pub(crate) fn judge(&self, text: &[u8], suites: &mut Suites) -> Result<Judged> {
        match history::apply(&self.ground.folder, text)? {
            Ok(patch) => self.of_patch(&patch, &changed(text), suites),
            Err(why) => self.refused(why),
        }
    }

    /// What is said of a patch that cannot be read or applied.
    ///
    /// # Errors
    /// An interruption.
    pub(crate) fn refused(&self, why: String) -> Result<Judged> {
        let (measured, _) = self.measure(&Patch::default())?;
        let judged = self.rated(&measured, None, Some(self.bounds), None);
        Ok(Judged {
            class: Class::PatchFailed,
            detail: Some(why),
            pass_set: self.has_names().then_some(false),
            missing: self.must_pass.iter().cloned().collect(),
            ..judged
        })
    }

    fn of_patch(&self, patch: &Patch, changed: &Changed, suites: &mut Suites) -> Result<Judged> {
        let run = suites.judged(self.place, patch)?;
        let (found, tree) = match self.measure(patch) {
            // What no engine gets through is the submission's trouble.
            Err(error) if error.fault() == Fault::Usage => return self.refused(error.to_string()),
            measured => measured?,
        };
        let class = match (run.counts, run.is_lost) {
            // Where anything else can be run, it is the submission that cannot.
            (None, true) if self.nothing_runs(suites)? => Class::Lost,
            (None, _) => Class::SuiteCrashes,
            (counts, _) if self.bounds.pass(counts) => Class::Passes,
            _ => Class::Regression,
        };
        let bounds = Some(self.bounds).filter(|_| class != Class::Lost);
        let mut judged = self.rated(&found, run.counts, bounds, Some(changed));
        if class == Class::Lost {
            (judged.numbers, judged.graded) = (None, None);
        }
        let missing: Vec<String> = self.must_pass.iter().filter(|case| !run.passes(case)).cloned().collect();
        Ok(Judged {
            class,
            detail: self.detail(class, &run, &missing),
            flags: self.flags(patch, changed, &tree, (&found, &run)),
            pass_set: (class != Class::Lost && self.has_names()).then_some(missing.is_empty()),
            missing,
            files_changed: patch.files().count() as u64,
            duration_ms: run.duration_ms,
            ..judged
        })
    }

    /// Whether the suite names its cases; else none can be asked for.
    fn has_names(&self) -> bool {
        !self.place.is_scripted()
    }

    fn nothing_runs(&self, suites: &mut Suites) -> Result<bool> {
        let probe = suites.runs(self.place, &Patch::default(), (Purpose::Probe, 1))?;
        Ok(probe.iter().all(|run| run.counts.is_none()))
    }

    /// What the patterns that judge match on the tree with a patch; of reductive ones also where others do not look.
    fn measure(&self, patch: &Patch) -> Result<(BTreeMap<String, Matches>, Tree)> {
        let tree = self.ground.base.with(patch);
        let mut found = self.ground.patterns.scan(&tree)?;
        let aside = self.ground.patterns.scan(&Tree::aside(patch, self.ground.base.reach))?;
        for row in self.rows.iter().filter(|row| row.side == Side::Reductive) {
            if let Some(hidden) = aside.get(&row.id) {
                let one = found.entry(row.id.clone()).or_default();
                one.matches += hidden.matches;
                one.lines.extend(&hidden.lines);
            }
        }
        Ok((found, tree))
    }

    /// The numbers that follow from matches, counts and changed lines.
    fn rated(
        &self,
        found: &BTreeMap<String, Matches>,
        counts: Option<Counts>,
        bounds: Option<Bounds>,
        changed: Option<&Changed>,
    ) -> Judged {
        let of = |side: Side, value: &dyn Fn(&PatternRow) -> u64| -> MatchCounts {
            let rows = self.rows.iter().filter(|row| row.side == side);
            rows.map(|row| (row.id.clone(), value(row))).collect()
        };
        let matched = |row: &PatternRow| found.get(&row.id).map_or(0, |found| found.matches);
        let (additive, reductive) = (of(Side::Additive, &matched), of(Side::Reductive, &matched));
        let on_golden = of(Side::Additive, &|row| row.golden);
        let on_base = of(Side::Reductive, &|row| row.base);
        let additive_lines = self.lines(Side::Additive, found);
        let measured = Measured {
            bounds,
            counts,
            additive: &additive,
            reductive: &reductive,
            changed,
            additive_on_submission: &additive_lines,
            reductive_on_base: &self.ground.reductive_on_base,
        };
        Judged {
            counts,
            numbers: Some(measured.numbers()),
            graded: graded(&additive, &reductive, &on_golden, &on_base),
            matches: additive.iter().chain(&reductive).map(|(id, count)| (id.clone(), *count)).collect(),
            ..Judged::absent(None)
        }
    }

    fn lines(&self, side: Side, found: &BTreeMap<String, Matches>) -> Lines {
        let mut lines = Lines::default();
        for row in self.rows.iter().filter(|row| row.side == side) {
            lines.extend(&found.get(&row.id).cloned().unwrap_or_default().lines);
        }
        lines
    }

    fn detail(&self, class: Class, run: &WholeRun, missing: &[String]) -> Option<String> {
        let why = run.why.clone();
        let (Class::Regression, Some(counts)) = (class, run.counts) else { return why };
        let named = missing.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let named = if named.is_empty() { named } else { format!("; these do not pass: {named}") };
        Some(format!(
            "{} passed and {} failed, where at least {} pass and at most {} fail{named}",
            counts.passed, counts.failed, self.bounds.passed, self.bounds.failed
        ))
    }

    fn flags(
        &self,
        patch: &Patch,
        changed: &Changed,
        tree: &Tree,
        (found, run): (&BTreeMap<String, Matches>, &WholeRun),
    ) -> Vec<String> {
        let exists = |path: &str| self.ground.folder.has_file(Path::new(path));
        let put: Vec<(&str, bool)> = patch
            .files()
            .filter(|(_, bytes)| bytes.is_some())
            .map(|(path, _)| (path, exists(path)))
            .collect();
        let additive: Vec<&Lines> = self
            .rows
            .iter()
            .filter(|row| row.side == Side::Additive)
            .filter_map(|row| Some(&found.get(&row.id)?.lines))
            .collect();
        let gone: Vec<&str> =
            patch.files().filter(|(_, bytes)| bytes.is_none()).map(|(path, _)| path).collect();
        let applied = Applied { files: &tree.files, put: &put, gone: &gone, changed, additive: &additive };
        // Where nothing could be collected, files that are gone say which cases are.
        let is_deleted = |case: &str| match run.counts {
            Some(_) => !run.outcomes.contains_key(case) && !run.crashed.contains(case),
            None => case.split("::").next().is_some_and(|file| gone.contains(&file)),
        };
        let is_skipped =
            |case: &str| matches!(run.outcomes.get(case), Some(Outcome::Skipped | Outcome::XFailed));
        let of_failing = |flag: &str, holds: &dyn Fn(&str) -> bool| {
            self.failing.iter().any(|case| holds(case)).then(|| flag.to_owned())
        };
        let deletes = of_failing("deletes-failing-tests", &is_deleted);
        let skips = of_failing("skips-failing-tests", &is_skipped);
        let touched = put.iter().map(|(path, _)| *path);
        let ends = self.must_pass.iter().map(|case| run.outcomes.get(case).copied());
        let weakens = weakens(&self.ground.base.files, &tree.files, touched, ends);
        let weakens = weakens.then(|| "weakens-tests".to_owned());
        let mut flags: Vec<String> =
            cheats::flags(&applied).into_iter().chain(deletes).chain(skips).chain(weakens).collect();
        flags.sort_unstable();
        flags
    }
}
