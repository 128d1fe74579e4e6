//! Variants of the originals of one repository: edited tests, each run in the original tree until it is known what it
//! shows there.
//!
//! A variant is of use where every run of it shows the same, and where nothing of the repository runs that does not run
//! for the original: then a file that has what the original needs shows the same, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::commands::Inputs;
use super::ground::Code;
use super::original::{LARGEST_TEST, Original};
use crate::attempt::lab::Lab;
use crate::attempt::pool::Terms;
use crate::attempt::world::WorldSetting;
use crate::beneath::Folder;
use crate::error::Result;
use crate::family::gistify::{
    Answer, Proposal, Refutes, Twin, alone, failing, in_file, inject, twins, variants,
};
use crate::python_source::decoded;
use crate::record::collected::Group;
use crate::record::entry::Entry;
use crate::record::id::{InstanceId, hash_parts};
use crate::record::outcome::{Attempt, CaseResult, Exit, Outcome};
use crate::record::variant::{Variant, VariantCase, VariantKind};
use crate::referee::run::{Import, PLAIN, Seen, TextLab, WATCHED};
use crate::runner::protocol::{Manner, TraceMode};
use crate::score::{File, Modules};
use crate::store::memo::Memo;

/// Raised when the same original may get other variants.
const SEARCH: &str = "search-5";
/// Variants of an instance.
const MOST: usize = 8;
/// Of each kind how many are kept where there are enough of every other one, and how many are tried at first.
const SHARES: [(VariantKind, usize, usize); 6] = [
    (VariantKind::OtherExpected, 2, 3),
    (VariantKind::OtherInput, 2, 4),
    (VariantKind::RaiseAt, 1, 3),
    (VariantKind::NegatedAssert, 1, 2),
    (VariantKind::OtherRaises, 1, 1),
    (VariantKind::Rephrased, 1, 1),
];
/// Other inputs that are tried where none of the first shows that an answer is a constant.
const MORE_INPUTS: usize = 8;
/// Values of an original that are looked for, and how many of them are tried and kept, as a pair of twins each.
const MOST_VALUES: usize = 6;
const TRIED_PAIRS: usize = 3;
const KEPT_PAIRS: usize = 2;
/// Different values of the cases of one test, of which each is asked for.
const MOST_OF_CASES: usize = 16;
/// What may come out of a test whose values are others, so that it is the test that notices.
const NOTICED: [&str; 2] = ["AssertionError", "Failed"];

/// What is known about the variants of one repository's originals, kept in a journal.
pub(crate) struct Variants {
    known: Memo<Vec<Variant>>,
    seed: u64,
}

/// A step of the search for variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// So many runs more turn out to be needed.
    More(u64),
    /// One more of them, or one original, is done.
    Done,
}

impl Variants {
    /// Opens the journal.
    ///
    /// # Errors
    /// IO errors.
    pub(crate) fn open(path: &Path, seed: u64) -> Result<Self> {
        Ok(Variants { known: Memo::open(path)?, seed })
    }

    /// Those of an original; none where they were not looked for.
    pub(crate) fn of(&self, id: &InstanceId) -> Option<&[Variant]> {
        self.known.get(&self.key(id)).map(Vec::as_slice)
    }

    /// Looks for variants of these originals. `progress` is called for each original, and for each run of a test.
    ///
    /// # Errors
    /// Those of [`Calibration::make`].
    pub(crate) fn make(
        &mut self,
        lab: &Lab,
        file: &str,
        originals: &[&Original<'_>],
        progress: &mut dyn FnMut(Count),
    ) -> Result<()> {
        if originals.is_empty() {
            return Ok(());
        }
        let commands: Vec<(&Original<'_>, &Entry)> =
            originals.iter().filter_map(|one| Some((*one, one.entry.as_ref()?))).collect();
        let code = Code::of(lab)?;
        for part in commands.chunks(PORTION) {
            let found = Inputs { lab, code: &code, file, seed: self.seed }.make(part)?;
            let keys = part.iter().map(|(original, _)| self.key(original.id)).collect::<Vec<_>>();
            self.known.extend(keys.into_iter().zip(found))?;
            for _ in part {
                progress(Count::Done);
            }
        }
        let originals: Vec<&Original<'_>> =
            originals.iter().copied().filter(|one| one.entry.is_none()).collect();
        if originals.is_empty() {
            return Ok(());
        }
        for part in originals.chunks(PORTION) {
            let calibration = Calibration { lab, modules: &code.modules, file, seed: self.seed };
            let found = calibration.make(part, progress)?;
            let keys: Vec<String> = part.iter().map(|original| self.key(original.id)).collect();
            self.known.extend(keys.into_iter().zip(found))?;
            for _ in part {
                progress(Count::Done);
            }
        }
        Ok(())
    }

    /// What the folder of attempts does not say.
    fn key(&self, id: &InstanceId) -> String {
        hash_parts(&[SEARCH, id.as_str(), &self.seed.to_string()])
    }
}

/// Originals whose variants are run together, so that an interruption costs one portion.
const PORTION: usize = 25;

/// What runs of the tree, by file, the test's own left out.
type Lines = BTreeMap<String, BTreeSet<u32>>;

/// The text in which an original is tried, and what it shows there.
struct Tried {
    text: String,
    /// None before it ran.
    lines: Option<Lines>,
    shows_the_same: bool,
}

impl Tried {
    fn whole(file: &str) -> Self {
        Tried { text: file.to_owned(), lines: None, shows_the_same: false }
    }

    fn alone(file: &str, original: &Original<'_>) -> Self {
        let text = alone(file, &original.test).ok().flatten();
        Tried::whole(text.as_deref().unwrap_or(file))
    }
}

/// Runs variants in the original tree.
struct Calibration<'a> {
    lab: &'a Lab,
    modules: &'a Modules,
    /// The place of a submission.
    file: &'a str,
    seed: u64,
}

/// A variant on its way.
struct Candidate<'a> {
    original: usize,
    kind: VariantKind,
    line: u32,
    source: String,
    says: Option<String>,
    refutes: Refutes,
    /// It is tried only where those before it do not show that an answer is a constant.
    is_spare: bool,
    /// The pair of twins that it belongs to, and whether it asks for the value of the repository.
    twin: Option<(usize, bool)>,
    text: Arc<str>,
    group: &'a Group,
    /// What its runs showed; none where they differ, or one of them did not come to its end.
    cases: Option<Vec<VariantCase>>,
    runs: usize,
    /// Whether it was found fit, once that is known.
    fit: Option<bool>,
}

impl Calibration<'_> {
    /// Variants of each original.
    ///
    /// # Errors
    /// IO errors, an interruption, and what the machine lost.
    fn make(
        &self,
        originals: &[&Original<'_>],
        progress: &mut dyn FnMut(Count),
    ) -> Result<Vec<Vec<Variant>>> {
        let groups: Vec<Group> = originals.iter().map(|original| original.group()).collect();
        let files = self.files(originals)?;
        let mut tried: Vec<Tried> =
            files.iter().zip(originals).map(|(file, it)| Tried::alone(file, it)).collect();
        let is_cut = |at: &usize| tried[*at].text != files[*at];
        let cut: Vec<usize> = (0..originals.len()).filter(is_cut).collect();
        let all: Vec<usize> = (0..originals.len()).collect();
        self.look(&mut tried, (originals, &groups), &all, progress)?;
        // Where a test needs another one of its file, all of them are there.
        let differ: Vec<usize> = cut.into_iter().filter(|at| !tried[*at].shows_the_same).collect();
        for at in &differ {
            tried[*at] = Tried::whole(&files[*at]);
        }
        self.look(&mut tried, (originals, &groups), &differ, progress)?;
        let mut candidates = self.twins((originals, &groups), &files, &tried, progress)?;
        candidates.extend(self.candidates(originals, &groups, &files, &tried));
        loop {
            let chosen = (0..originals.len()).flat_map(|at| choose(at, originals[at].golden, &candidates));
            let chosen: Vec<usize> = chosen.collect();
            let open: Vec<usize> =
                chosen.iter().copied().filter(|at| candidates[*at].fit.is_none()).collect();
            if open.is_empty() {
                let mut found: Vec<Vec<Variant>> = vec![Vec::new(); originals.len()];
                for at in chosen {
                    let Candidate { original, kind, line, source, cases, .. } = &candidates[at];
                    let (source, cases) = (source.clone(), cases.clone().unwrap_or_default());
                    found[*original].push(Variant {
                        kind: *kind,
                        line: *line,
                        source,
                        cases,
                        variation: None,
                        refutes_constant: candidates[at].refutes_constant(originals[*original].golden),
                    });
                }
                return Ok(found);
            }
            self.run(&mut candidates, &open, (originals, &tried), progress)?;
        }
    }

    /// The text of each original's file.
    fn files(&self, originals: &[&Original<'_>]) -> Result<Vec<String>> {
        let tree = Folder::open(&self.lab.built.tree)?;
        let read = |original: &&Original<'_>| tree.read_through_links(Path::new(original.file), LARGEST_TEST);
        originals.iter().map(|original| Ok(decoded(&read(original)?))).collect()
    }

    /// What is tried, in an order that the seed decides.
    fn candidates<'g>(
        &self,
        originals: &[&Original<'_>],
        groups: &'g [Group],
        files: &[String],
        tried: &[Tried],
    ) -> Vec<Candidate<'g>> {
        let mut candidates = Vec::new();
        for (at, original) in originals.iter().enumerate() {
            let proposals = variants(&files[at], &original.test, &self.seed_of(original)).unwrap_or_default();
            let mut counts: BTreeMap<VariantKind, usize> = BTreeMap::new();
            for Proposal { kind, line, source, says, refutes } in proposals {
                let first = SHARES.iter().find(|one| one.0 == kind).map_or(0, |one| one.2);
                let more = if kind == VariantKind::OtherInput { MORE_INPUTS } else { 0 };
                let count = counts.entry(kind).or_default();
                if *count >= first + more || *count >= first && refutes == Refutes::Never {
                    continue;
                }
                let whole = in_file(&tried[at].text, &original.test, &source).ok().flatten();
                let Some(whole) = whole else { continue };
                *count += 1;
                candidates.push(Candidate {
                    original: at,
                    kind,
                    line,
                    source,
                    says,
                    refutes,
                    is_spare: *count > first,
                    twin: None,
                    text: Arc::from(self.placed(&whole, original)),
                    group: &groups[at],
                    cases: None,
                    runs: 0,
                    fit: None,
                });
            }
        }
        candidates
    }

    /// Two texts for each value that the repository shows for another input: they ask for it, and for another one.
    fn twins<'g>(
        &self,
        (originals, groups): (&[&Original<'_>], &'g [Group]),
        files: &[String],
        tried: &[Tried],
        progress: &mut dyn FnMut(Count),
    ) -> Result<Vec<Candidate<'g>>> {
        let mut looked_for: Vec<(usize, Twin)> = Vec::new();
        for (at, original) in originals.iter().enumerate() {
            let found = twins(&files[at], &original.test, &self.seed_of(original)).unwrap_or_default();
            looked_for.extend(found.into_iter().take(MOST_VALUES).map(|twin| (at, twin)));
        }
        let whole = |at: usize, source: &str| {
            let text = in_file(&tried[at].text, &originals[at].test, source).ok().flatten();
            Arc::<str>::from(self.placed(&text.unwrap_or_default(), originals[at]))
        };
        let values = self.values(&looked_for, groups, whole, progress)?;
        let mut candidates: Vec<Candidate<'g>> = Vec::new();
        for (pair, ((original, twin), value)) in looked_for.iter().zip(values).enumerate() {
            let Some(values) = value else { continue };
            let other: Vec<Answer> = values.iter().filter_map(Answer::other).collect();
            // Each case has to fail where another answer is asked for.
            if other.iter().any(|one| values.contains(one)) {
                continue;
            }
            if candidates.iter().filter(|one| one.original == *original).count() >= 2 * TRIED_PAIRS {
                continue;
            }
            candidates.extend([(values, true), (other, false)].map(|(asked, is_right)| {
                let source = twin.asks_for(&asked);
                Candidate {
                    original: *original,
                    kind: VariantKind::OtherInput,
                    line: twin.line,
                    says: None,
                    refutes: Refutes::WhereItDiffers,
                    is_spare: false,
                    twin: Some((pair, is_right)),
                    text: whole(*original, &source),
                    source,
                    group: &groups[*original],
                    cases: None,
                    runs: 0,
                    fit: None,
                }
            }));
        }
        Ok(candidates)
    }

    /// The answers that come out in each of two runs: of each case one, sorted, at most [`MOST_OF_CASES`] different ones.
    fn values(
        &self,
        looked_for: &[(usize, Twin)],
        groups: &[Group],
        whole: impl Fn(usize, &str) -> Arc<str>,
        progress: &mut dyn FnMut(Count),
    ) -> Result<Vec<Option<Vec<Answer>>>> {
        let manners = [PLAIN, PLAIN];
        let groups: Vec<Group> = looked_for.iter().map(|(at, _)| groups[*at].clone()).collect();
        let imports = looked_for.iter().enumerate();
        let imports = imports.map(|(to, (at, twin))| Import::new(to, whole(*at, &twin.probe()), &manners));
        progress(Count::More((looked_for.len() * manners.len()) as u64));
        let mut seen: Vec<Vec<Option<Vec<Answer>>>> = vec![Vec::new(); looked_for.len()];
        self.each(&groups, imports.collect(), |to, _, one| {
            progress(Count::Done);
            let cases = one.attempt.cases.iter();
            let values: BTreeSet<Answer> =
                cases.filter_map(|case| looked_for[to].1.answer(&case.message)).collect();
            let is_asked = (1..=MOST_OF_CASES).contains(&values.len());
            seen[to].push(is_asked.then(|| values.into_iter().collect()));
        })?;
        let is_same =
            |all: &Vec<Option<Vec<Answer>>>| all.len() == manners.len() && all.iter().all(|it| *it == all[0]);
        Ok(seen.into_iter().map(|all| is_same(&all).then(|| all[0].clone()).flatten()).collect())
    }

    fn seed_of(&self, original: &Original<'_>) -> String {
        format!("{} {}", self.seed, original.id)
    }

    /// A file of tests as it is run in the place of a submission.
    fn placed(&self, text: &str, original: &Original<'_>) -> String {
        let file = File { path: original.file, text };
        inject(text, file, &original.test, self.modules).map_or_else(|_| text.to_owned(), |it| it.text)
    }

    fn world(&self) -> WorldSetting {
        let mut setting = self.lab.setting.clone();
        setting.world.probe = Some(self.file.to_owned());
        WorldSetting::base(&setting)
    }

    /// Runs these in one import each: once with the lines that run, and twice as they are.
    fn run(
        &self,
        candidates: &mut [Candidate<'_>],
        open: &[usize],
        (originals, tried): (&[&Original<'_>], &[Tried]),
        progress: &mut dyn FnMut(Count),
    ) -> Result<()> {
        let groups: Vec<Group> = open.iter().map(|at| candidates[*at].group.clone()).collect();
        let manners = [WATCHED, PLAIN, PLAIN];
        let imports = open.iter().enumerate();
        let imports = imports.map(|(to, at)| Import::new(to, Arc::clone(&candidates[*at].text), &manners));
        let mut ran: BTreeMap<usize, Lines> = BTreeMap::new();
        progress(Count::More((open.len() * manners.len()) as u64));
        self.each(&groups, imports.collect(), |to, manner, seen| {
            progress(Count::Done);
            let one = &mut candidates[open[to]];
            one.note(&seen.attempt);
            if manner == WATCHED {
                ran.extend(self.lines(seen, originals[one.original].file).map(|lines| (open[to], lines)));
            }
        })?;
        for at in open {
            let one = &mut candidates[*at];
            let golden = originals[one.original].golden;
            let is_of_use = one.runs == manners.len()
                && one.cases.as_ref().is_some_and(|cases| is_of_use(one.kind, golden, cases));
            let is_subset = |(file, ran): (&String, &BTreeSet<u32>), all: &Lines| {
                ran.is_empty() || all.get(file).is_some_and(|all| ran.is_subset(all))
            };
            let known = ran.get(at).zip(tried[one.original].lines.as_ref());
            let does_no_more = known.is_some_and(|(ran, all)| ran.iter().all(|it| is_subset(it, all)));
            one.fit = Some(is_of_use && does_no_more && one.is_right_twin(golden));
        }
        // One without the other shows nothing.
        let unfit: BTreeSet<usize> = candidates
            .iter()
            .filter(|one| one.fit == Some(false))
            .filter_map(|one| Some(one.twin?.0))
            .collect();
        for one in candidates.iter_mut().filter(|one| one.twin.is_some_and(|(pair, _)| unfit.contains(&pair)))
        {
            one.fit = Some(false);
        }
        Ok(())
    }

    /// What of the tree runs for these originals: in either of two runs, and to explain a failure at its beginning or at its
    /// end, which no outcome depends on.
    fn look(
        &self,
        tried: &mut [Tried],
        (originals, groups): (&[&Original<'_>], &[Group]),
        chosen: &[usize],
        progress: &mut dyn FnMut(Count),
    ) -> Result<()> {
        let mut imports = Vec::new();
        let mut runs = 0;
        for at in chosen {
            let (original, text) = (originals[*at], &tried[*at].text);
            let placed = |text: &str| Arc::from(self.placed(text, original));
            imports.push(Import::new(*at, placed(text), &[WATCHED, WATCHED, PLAIN]));
            runs += 3;
            for text in failing(text, &original.test).unwrap_or_default() {
                imports.push(Import::new(*at, placed(&text), &[WATCHED]));
                runs += 1;
            }
        }
        progress(Count::More(runs));
        self.each(groups, imports, |at, manner, seen| {
            progress(Count::Done);
            let one = &mut tried[at];
            if manner == PLAIN {
                one.shows_the_same = is_plain(originals[at].golden, &seen.attempt);
            }
            if let Some(seen) = self.lines(seen, originals[at].file) {
                let lines = one.lines.get_or_insert_default();
                for (file, ran) in seen {
                    lines.entry(file).or_default().extend(ran);
                }
            }
        })
    }

    fn lines(&self, seen: Seen, test: &str) -> Option<Lines> {
        let files = seen.execution?.files.into_iter().filter(|(file, _)| file != test && file != self.file);
        Some(files.map(|(file, ran)| (file, ran.lines.into_iter().map(|(line, _)| line).collect())).collect())
    }

    fn each(
        &self,
        groups: &[Group],
        imports: Vec<Import>,
        each: impl FnMut(usize, Manner, Seen),
    ) -> Result<()> {
        let world = self.world();
        let terms = Terms::default();
        let place = TextLab { lab: self.lab, world: &world, groups, terms: &terms, preload: &[] };
        let lost = place.run(imports, TraceMode::Lines, each)?;
        // A dataset says nothing about an original that was lost.
        lost.into_values().next().map_or(Ok(()), Err)
    }
}

impl Candidate<'_> {
    /// Whether it shows that an answer does not depend on what is handed over, as far as its runs are known.
    fn refutes_constant(&self, golden: &[CaseResult]) -> bool {
        let Some(cases) = &self.cases else { return false };
        match self.refutes {
            _ if self.twin.is_some() => true,
            Refutes::Never => false,
            Refutes::WhereItAgrees => ends(cases) == ends(&all_shown(golden)),
            Refutes::WhereItDiffers => ends(cases) != ends(&all_shown(golden)),
        }
    }

    /// Whether it passes as the original does if it asks for the value of the repository, and fails if not. What has no
    /// other one beside it is right.
    fn is_right_twin(&self, golden: &[CaseResult]) -> bool {
        let passes = self.cases.as_ref().is_some_and(|cases| ends(cases) == ends(&all_shown(golden)));
        self.twin.is_none_or(|(_, is_right)| is_right == passes)
    }

    /// Takes note of a run. What differs from an earlier one is of no use.
    fn note(&mut self, attempt: &Attempt) {
        let says = self.says.as_deref();
        let shown = (attempt.exit == Exit::Finished && !attempt.cases.is_empty())
            .then(|| attempt.cases.iter().map(|case| shown(case, says)).collect::<Vec<_>>());
        let shown = shown.map(|mut cases| {
            cases.sort_by(|one, other| one.case.cmp(&other.case));
            cases
        });
        self.cases =
            if self.runs == 0 { shown } else { self.cases.take().filter(|it| Some(it) == shown.as_ref()) };
        self.runs += 1;
    }
}

fn shown(case: &CaseResult, says: Option<&str>) -> VariantCase {
    VariantCase {
        case: case.case_id.split_once("::").map_or(&*case.case_id, |(_, name)| name).to_owned(),
        outcome: case.outcome,
        exception: case.exception.clone(),
        message: says.filter(|says| case.message.contains(says)).map(str::to_owned),
    }
}

/// What cases show, by their names.
fn all_shown(cases: &[CaseResult]) -> Vec<VariantCase> {
    let mut all: Vec<VariantCase> = cases.iter().map(|case| shown(case, None)).collect();
    all.sort_by(|one, other| one.case.cmp(&other.case));
    all
}

/// How cases end, whatever their names are: those have values of parameters.
fn ends(cases: &[VariantCase]) -> BTreeSet<(Outcome, Option<&str>, usize)> {
    let mut counts: BTreeMap<(Outcome, Option<&str>), usize> = BTreeMap::new();
    for case in cases {
        *counts.entry((case.outcome, case.exception.as_deref())).or_default() += 1;
    }
    counts.into_iter().map(|((outcome, exception), number)| (outcome, exception, number)).collect()
}

/// Whether an attempt ends as the original does.
fn is_plain(golden: &[CaseResult], attempt: &Attempt) -> bool {
    attempt.exit == Exit::Finished && all_shown(golden) == all_shown(&attempt.cases)
}

/// Whether it tells anything: what is edited to fail does, and where values are others it is the test that notices.
fn is_of_use(kind: VariantKind, golden: &[CaseResult], cases: &[VariantCase]) -> bool {
    let plain: Vec<VariantCase> = golden.iter().map(|case| shown(case, None)).collect();
    let same = |one: &VariantCase, other: &VariantCase| {
        (one.outcome, &one.exception) == (other.outcome, &other.exception)
    };
    let is_plain = cases.len() == plain.len()
        && cases.iter().all(|one| plain.iter().any(|it| it.case == one.case && same(one, it)));
    let is_noticed = |case: &VariantCase| match case.outcome {
        Outcome::Failed => case
            .exception
            .as_deref()
            .is_some_and(|name| NOTICED.contains(&name.rsplit('.').next().unwrap_or(name))),
        Outcome::Error => false,
        Outcome::Passed | Outcome::Skipped | Outcome::XFailed | Outcome::XPassed => true,
    };
    match kind {
        // Other input of commands is looked for elsewhere.
        VariantKind::OtherArgument | VariantKind::OtherStdin | VariantKind::OtherFile => false,
        VariantKind::Rephrased => is_plain,
        VariantKind::OtherInput => cases.iter().all(is_noticed),
        VariantKind::OtherExpected => !is_plain && cases.iter().all(is_noticed),
        VariantKind::NegatedAssert | VariantKind::OtherRaises | VariantKind::RaiseAt => !is_plain,
    }
}

/// Those of an original that are kept as far as is known: of each kind its share, those that pass with other values first
/// and one that a constant does not pass, then what there is of any kind.
fn choose(original: usize, golden: &[CaseResult], candidates: &[Candidate<'_>]) -> Vec<usize> {
    let is_one = |at: &usize| candidates[*at].original == original && candidates[*at].fit != Some(false);
    let all: Vec<usize> = (0..candidates.len()).filter(is_one).collect();
    let is_input = |one: &Candidate<'_>| one.kind == VariantKind::OtherInput;
    let is_enough =
        all.iter().map(|at| &candidates[*at]).filter(|one| is_input(one)).any(|one| match one.fit {
            Some(_) => one.refutes_constant(golden),
            None => !one.is_spare,
        });
    // A spare one that was tried is as good as any.
    let is_open = |at: &usize| {
        let one = &candidates[*at];
        !one.is_spare || one.fit.is_some() || !is_enough
    };
    let mut left: Vec<usize> = all.iter().copied().filter(is_open).collect();
    let fails = |at: usize| {
        let cases = candidates[at].cases.iter().flatten();
        cases.into_iter().any(|case| matches!(case.outcome, Outcome::Failed | Outcome::Error))
    };
    left.sort_by_key(|at| match &candidates[*at] {
        one if !is_input(one) || one.fit.is_none() => 0,
        _ if fails(*at) => 2,
        one => u8::from(!one.refutes_constant(golden)),
    });
    let twins = left.iter().copied().filter(|at| candidates[*at].twin.is_some());
    let mut chosen: Vec<usize> = twins.collect();
    chosen.sort_unstable();
    // Those that are open are all tried.
    if chosen.iter().all(|at| candidates[*at].fit.is_some()) {
        chosen.truncate(2 * KEPT_PAIRS);
    }
    left.retain(|at| candidates[*at].twin.is_none());
    let has_twins = !chosen.is_empty();
    for (kind, share, _) in SHARES {
        let share = match kind {
            VariantKind::OtherInput if has_twins => continue,
            VariantKind::OtherExpected if has_twins => 1,
            _ => share,
        };
        let of_kind = left.iter().copied().filter(|at| candidates[*at].kind == kind);
        let mut of_kind: Vec<usize> = of_kind.collect();
        // One of them fails a constant, where there is one.
        let refutes = |at: &usize| candidates[*at].fit.is_none() || candidates[*at].refutes_constant(golden);
        if let Some(place) = of_kind.iter().position(refutes).filter(|place| *place >= share) {
            of_kind.swap(share - 1, place);
        }
        chosen.extend(of_kind.into_iter().take(share));
    }
    left.retain(|at| !chosen.contains(at));
    chosen.extend(left);
    chosen.truncate(MOST);
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, outcome: Outcome, exception: Option<&str>) -> VariantCase {
        VariantCase { case: name.to_owned(), outcome, exception: exception.map(str::to_owned), message: None }
    }

    fn golden() -> Vec<CaseResult> {
        Variant {
            kind: VariantKind::RaiseAt,
            line: 1,
            source: String::new(),
            cases: vec![case("test_a", Outcome::Passed, None)],
            variation: None,
            refutes_constant: false,
        }
        .golden()
    }

    #[test]
    fn a_variant_is_of_use_where_it_tells_something() {
        use VariantKind::{NegatedAssert, OtherExpected, OtherInput, OtherRaises, RaiseAt, Rephrased};
        let kinds = [NegatedAssert, OtherExpected, OtherRaises, RaiseAt, OtherInput, Rephrased];
        let of_use = |cases: &[VariantCase]| {
            kinds.into_iter().filter(|kind| is_of_use(*kind, &golden(), cases)).collect::<Vec<_>>()
        };
        assert_eq!(of_use(&[case("test_a", Outcome::Passed, None)]), [OtherInput, Rephrased]);
        let noticed = case("test_a", Outcome::Failed, Some("builtins.AssertionError"));
        assert_eq!(of_use(&[noticed]), [NegatedAssert, OtherExpected, OtherRaises, RaiseAt, OtherInput]);
        let complains = case("test_a", Outcome::Failed, Some("tiny.Refused"));
        assert_eq!(of_use(&[complains]), [NegatedAssert, OtherRaises, RaiseAt]);
        let others = [case("test_a", Outcome::Passed, None), case("test_a[b]", Outcome::Passed, None)];
        assert!(!of_use(&others).contains(&Rephrased));
    }

    fn candidate(group: &Group, kind: VariantKind, outcome: Outcome, fit: Option<bool>) -> Candidate<'_> {
        Candidate {
            original: 0,
            kind,
            line: 1,
            source: String::new(),
            says: None,
            refutes: Refutes::WhereItAgrees,
            is_spare: false,
            twin: None,
            text: Arc::from(""),
            group,
            cases: Some(vec![case("test_a", outcome, None)]),
            runs: 2,
            fit,
        }
    }

    #[test]
    fn every_kind_has_its_share_and_inputs_that_pass_come_first() {
        use VariantKind::{NegatedAssert, OtherInput, RaiseAt, Rephrased};
        let group = crate::testing::attempts::group();
        let of = |kind, outcome, fit| candidate(&group, kind, outcome, fit);
        let mut all: Vec<Candidate<'_>> = (0..9).map(|_| of(RaiseAt, Outcome::Failed, None)).collect();
        all.push(of(OtherInput, Outcome::Failed, None));
        all.push(of(OtherInput, Outcome::Passed, Some(true)));
        all.push(of(OtherInput, Outcome::Passed, Some(false)));
        all.push(of(NegatedAssert, Outcome::Failed, Some(true)));
        all.push(of(Rephrased, Outcome::Passed, None));
        assert_eq!(choose(0, &golden(), &all), [9, 10, 0, 12, 13, 1, 2, 3]);
        all[9].fit = Some(true);
        assert_eq!(choose(0, &golden(), &all), [10, 9, 0, 12, 13, 1, 2, 3], "it fails");
        assert_eq!(choose(1, &golden(), &all), [0; 0]);
    }

    #[test]
    fn more_inputs_are_tried_until_one_shows_that_an_answer_is_a_constant() {
        let group = crate::testing::attempts::group();
        let of = |outcome, fit, refutes, is_spare| Candidate {
            refutes,
            is_spare,
            ..candidate(&group, VariantKind::OtherInput, outcome, fit)
        };
        let (differs, agrees) = (Refutes::WhereItDiffers, Refutes::WhereItAgrees);
        let mut all = vec![of(Outcome::Passed, None, differs, false)];
        all.extend((0..3).map(|_| of(Outcome::Passed, None, differs, true)));
        let chosen = |all: &[Candidate<'_>]| choose(0, &golden(), all);
        assert_eq!(chosen(&all), [0]);
        all[0].fit = Some(true);
        assert_eq!(chosen(&all), [1, 2, 3, 0], "a constant passes the first");
        all[1].fit = Some(false);
        (all[2].fit, all[2].cases) = (Some(true), Some(vec![case("test_a", Outcome::Failed, None)]));
        assert_eq!(chosen(&all), [0, 2], "it is enough, and what was not tried stays so");
        all.insert(1, of(Outcome::Passed, Some(true), differs, false));
        all.insert(2, of(Outcome::Passed, Some(true), differs, false));
        assert_eq!(chosen(&all)[..2], [0, 4], "one that a constant fails is among them");
        all.drain(1..3);
        let asked = of(Outcome::Passed, Some(true), agrees, false);
        assert!(asked.refutes_constant(&golden()) && !all[0].refutes_constant(&golden()));
        assert!(all[2].refutes_constant(&golden()));
        let never = Candidate { refutes: Refutes::Never, ..of(Outcome::Failed, Some(true), agrees, false) };
        assert!(!never.refutes_constant(&golden()));
    }

    #[test]
    fn twins_come_first_and_take_the_place_of_other_inputs() {
        use VariantKind::{OtherExpected, OtherInput, RaiseAt};
        let group = crate::testing::attempts::group();
        let twin = |pair, is_right, fit| Candidate {
            twin: Some((pair, is_right)),
            ..candidate(&group, OtherInput, if is_right { Outcome::Passed } else { Outcome::Failed }, fit)
        };
        let mut all: Vec<Candidate<'_>> =
            (0..3).flat_map(|pair| [twin(pair, true, None), twin(pair, false, None)]).collect();
        all.push(candidate(&group, OtherInput, Outcome::Passed, None));
        all.push(candidate(&group, RaiseAt, Outcome::Failed, None));
        all.extend((0..3).map(|_| candidate(&group, OtherExpected, Outcome::Failed, None)));
        assert_eq!(choose(0, &golden(), &all), [0, 1, 2, 3, 4, 5, 8, 7], "all twins are tried");
        all[..6].iter_mut().for_each(|one| one.fit = Some(true));
        assert_eq!(choose(0, &golden(), &all), [0, 1, 2, 3, 8, 7, 6, 9]);
        all[..2].iter_mut().for_each(|one| one.fit = Some(false));
        assert_eq!(choose(0, &golden(), &all)[..4], [2, 3, 4, 5]);
        assert!(all[2].refutes_constant(&golden()) && all[3].refutes_constant(&golden()));
        all[..6].iter_mut().for_each(|one| one.fit = Some(false));
        assert_eq!(choose(0, &golden(), &all)[..3], [8, 9, 6], "without twins the others have their shares");
    }

    #[test]
    fn a_twin_passes_only_if_it_asks_for_the_value_of_the_repository() {
        let group = crate::testing::attempts::group();
        let is_right = |outcome, twin| {
            let one = Candidate { twin, ..candidate(&group, VariantKind::OtherInput, outcome, None) };
            one.is_right_twin(&golden())
        };
        for (outcome, passes) in [(Outcome::Passed, true), (Outcome::Failed, false)] {
            assert_eq!(is_right(outcome, Some((0, true))), passes);
            assert_eq!(is_right(outcome, Some((0, false))), !passes);
            assert!(is_right(outcome, None));
        }
    }

    #[test]
    fn names_of_cases_are_no_part_of_how_they_end() {
        let of = |cases: &[(&str, Outcome)]| {
            cases.iter().map(|(name, outcome)| case(name, *outcome, None)).collect::<Vec<_>>()
        };
        let one = of(&[("test_a[1]", Outcome::Passed), ("test_a[2]", Outcome::Failed)]);
        assert_eq!(ends(&one), ends(&of(&[("test_a[3]", Outcome::Failed), ("test_a[1]", Outcome::Passed)])));
        assert_ne!(ends(&one), ends(&of(&[("test_a[1]", Outcome::Passed), ("test_a[2]", Outcome::Passed)])));
    }

    #[test]
    fn runs_that_differ_make_a_variant_unfit() {
        let group = crate::testing::attempts::group();
        let mut one = candidate(&group, VariantKind::RaiseAt, Outcome::Failed, None);
        let attempt = |outcome| {
            use crate::record::outcome::Method;
            crate::testing::attempts::attempt(
                &crate::record::world::World::Base,
                Method::Fork,
                0,
                outcome,
                "",
            )
        };
        one.runs = 0;
        one.note(&attempt(Outcome::Failed));
        one.note(&attempt(Outcome::Failed));
        assert!(one.cases.is_some() && one.runs == 2);
        one.note(&attempt(Outcome::Passed));
        assert!(one.cases.is_none());
        one.note(&attempt(Outcome::Passed));
        assert!(one.cases.is_none(), "it stays so");
    }
}
