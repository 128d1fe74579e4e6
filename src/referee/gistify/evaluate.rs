//! Submissions → judgements: read, put the original test in, run, compare; what agrees is run once more traced and once
//! more with a failure in the test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::given::{group_with, named};
use super::ground::{Code, Ground};
use super::on_variants::OnVariants;
use crate::attempt::lab::Lab;
use crate::attempt::normalize::Normalizer;
use crate::attempt::pool::Terms;
use crate::attempt::world::WorldSetting;
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::family::gistify::{
    Against, Cases, Effect, ErrorClass, Evaluated, ExecutedLine, Execution, Facts, Finding, FindingKind,
    Injection, Line, LineExistence, NotInjected, Overlap, Replacement, Row, Run, Sabotage, Scenery,
    Submitted, TestName, TracedFunction, Verdict, Violation, findings, first_line, in_file, inject_inherited,
    judge, judge_command, line_execution, sabotage, strict_findings, test_overlap, trace_recall,
};
use crate::python_source::decoded;
use crate::record::collected::Group;
use crate::record::entry::Entry;
use crate::record::flag::PROBE_INSENSITIVE;
use crate::record::id::{InstanceId, hash_parts, sha256_hex};
use crate::record::instance::Instance;
use crate::record::outcome::{Attempt, CaseResult, Compare, Exit, Outcome};
use crate::record::variant::Variant;
use crate::referee::run::{Import, Lost, PLAIN, Place, Seen, WATCHED, failing};
use crate::referee::submissions::Submission;
use crate::runner::protocol::{ImportAttempt, Manner, TraceMode};
use crate::score::{ComparedCase, Comparison, File, Masks, Ratio, Unreadable, compare, text_of};
use crate::text::tail;

/// Raised when the same submission may be judged otherwise.
const SCORER: &str = "score-9";
/// Largest test file that is read, in bytes.
pub(crate) const LARGEST_TEST: u64 = 8 << 20;
/// Lines of output that are kept as evidence.
const OUTPUT_LINES: usize = 60;
/// Cases whose messages are kept, and lines of each.
const MOST_CASES: usize = 3;
const MESSAGE_LINES: usize = 20;
/// Findings that say nothing of a file that is not run by pytest, or that a command has to have.
const OF_TESTS: [FindingKind; 4] = [
    FindingKind::LeftoverTest,
    FindingKind::MainGuard,
    FindingKind::NeutralizedTest,
    FindingKind::RegistersPlugin,
];
/// Characters of what a case was to show, and showed, that are kept.
const LONGEST_TEXT: usize = 4000;

/// An original test and what it showed.
#[derive(Debug, Clone)]
pub(crate) struct Original<'a> {
    pub(crate) id: &'a InstanceId,
    /// Its file, from the root of the tree.
    pub(crate) file: &'a str,
    pub(crate) test: TestName,
    /// Where it is defined, when that is another file.
    pub(crate) defined_in: Option<(&'a str, TestName)>,
    pub(crate) golden: &'a [CaseResult],
    /// Whether it fails when it is made to.
    pub(crate) can_be_sabotaged: bool,
    /// Functions of the repository that its cases call. None where there is no trace.
    pub(crate) traced: Option<&'a [TracedFunction]>,
    /// Edited texts of the test, or other input of the command; where there are none, a planted failure has to do for a test.
    pub(crate) variants: &'a [Variant],
    /// The command that it is, where it is not a test.
    pub(crate) entry: Option<Entry>,
}

impl<'a> Original<'a> {
    /// That of an instance.
    pub(crate) fn of(instance: &'a Instance, golden: &'a [CaseResult]) -> Self {
        let classes = instance.test_class.iter().flat_map(|chain| chain.split("::"));
        let defined_in = instance.test_defined_in.as_deref().and_then(|place| place.split_once("::"));
        let test = TestName {
            classes: classes.map(str::to_owned).collect(),
            function: instance.test_function.clone(),
        };
        Original {
            defined_in: defined_in.and_then(|(file, name)| Some((file, name.parse().ok()?))),
            can_be_sabotaged: instance.is_test()
                && !instance.flags.iter().any(|flag| flag == PROBE_INSENSITIVE),
            entry: instance.entry(),
            ..Original::new(&instance.instance_id, &instance.test_file, test, golden)
        }
    }

    /// One of which no more is known.
    pub(crate) fn new(id: &'a InstanceId, file: &'a str, test: TestName, golden: &'a [CaseResult]) -> Self {
        Original {
            id,
            file,
            test,
            defined_in: None,
            golden,
            can_be_sabotaged: true,
            traced: None,
            variants: &[],
            entry: None,
        }
    }

    /// That of a group.
    pub(crate) fn of_group(id: &'a InstanceId, group: &'a Group, golden: &'a [CaseResult]) -> Self {
        let test = TestName { classes: group.classes.clone(), function: group.function.clone() };
        let can_be_sabotaged = group.entry.is_none();
        Original {
            entry: group.entry.clone(),
            can_be_sabotaged,
            ..Original::new(id, &group.file, test, golden)
        }
    }

    /// The group of its test function, with whatever cases that has.
    pub(crate) fn group(&self) -> Group {
        if let Some(entry) = &self.entry {
            return Group::of_entry(entry.clone());
        }
        Group {
            group_id: self.id.to_string(),
            file: self.file.to_owned(),
            classes: self.test.classes.clone(),
            function: self.test.function.clone(),
            cases: Vec::new(),
            markers: Vec::new(),
            fixtures: Vec::new(),
            flags: Vec::new(),
            entry: None,
        }
    }

    /// The group that a submission has, which is this file.
    pub(crate) fn submitted(&self, file: &str) -> Group {
        match &self.entry {
            Some(entry) => Group::of_entry(Entry { command: entry.submitted(file), ..entry.clone() }),
            None => Group { file: file.to_owned(), ..self.group() },
        }
    }

    /// Where the test is defined.
    pub(crate) fn definition(&self) -> (&'a str, &TestName) {
        self.defined_in.as_ref().map_or((self.file, &self.test), |(file, name)| (file, name))
    }
}

/// Everything that is known about one submission.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) row: Row,
    /// The file does not define the test in its place.
    pub(crate) missing: bool,
    /// How the original test came in.
    pub(crate) injection: Option<Injection>,
    /// What took the place of the submitted test, and where.
    pub(crate) replacement: Option<(Replacement, String)>,
    /// Why the file cannot be read.
    pub(crate) unreadable: Option<Unreadable>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) import_attempts: Vec<ImportAttempt>,
    /// None where nothing was run.
    pub(crate) comparison: Option<Comparison>,
    /// Runs, and how many of them agreed.
    pub(crate) attempts: (u32, u32),
    pub(crate) sabotage: Sabotage,
    /// None where there are no variants, or where the test as it is did not agree.
    #[serde(default)]
    pub(crate) variants: Option<OnVariants>,
    pub(crate) existence: Option<LineExistence>,
    pub(crate) executed: Vec<ExecutedLine>,
    /// Why executed lines are not known.
    pub(crate) untraced: Option<String>,
    /// Physical lines of the submitted file.
    pub(crate) lines: usize,
    /// SHA-256 of the submitted file.
    pub(crate) sha256: Option<String>,
    /// SHA-256 of the text that was run.
    pub(crate) evaluated_sha256: Option<String>,
    /// The end of what the run printed beside its cases.
    pub(crate) output: String,
    /// Why the machine lost it: nothing can be said, and it is judged again the next time.
    #[serde(default)]
    pub(crate) lost: Option<String>,
    /// Whether it is for a command.
    #[serde(default)]
    pub(crate) is_command: bool,
}

impl Judged {
    /// Which lines of the submitted file ran, by the first of each.
    pub(crate) fn executed_by_line(&self) -> BTreeMap<u32, Execution> {
        let submitted = |line: u32| match &self.replacement {
            Some((replacement, _)) => replacement.submitted_line(line),
            None => Some(line),
        };
        self.executed.iter().filter_map(|one| Some((submitted(one.first)?, one.execution))).collect()
    }

    /// Variants that do not show what they show in the repository, by their place.
    pub(crate) fn differing_variants(&self) -> Vec<usize> {
        self.variants.iter().flat_map(|all| all.differing.iter().map(|one| one.variant)).collect()
    }

    /// Lines of the submitted file with their types.
    pub(crate) fn submitted_lines(&self) -> &[Line] {
        self.existence.as_ref().map_or(&[], |existence| &existence.lines)
    }
}

/// By which rules submissions are judged.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// The file that is handed in.
    pub(crate) file: &'static str,
    /// Noted without counting as failures.
    pub(crate) allowed: BTreeSet<Violation>,
    /// Runs of each submission; all of them have to agree.
    pub(crate) attempts: u32,
}

/// Judges submissions for instances of one repository.
pub(crate) struct Referee<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) ground: &'a Ground,
    pub(crate) policy: &'a Policy,
    pub(crate) terms: &'a Terms<'a>,
}

/// A submission on its way.
struct Case<'a> {
    original: &'a Original<'a>,
    test_module: String,
    judged: Judged,
    /// The text to run. None where there is none, or where findings alone decide.
    evaluated: Option<Evaluated>,
    /// None where nothing was run.
    seen: Option<Compared>,
    watched: Option<Watched>,
    lost: Option<Error>,
}

/// The runs of a submission: the first that does not agree, or the first.
struct Compared {
    attempt: Attempt,
    comparison: Comparison,
    imports: Vec<ImportAttempt>,
    made: u32,
    agreed: u32,
}

/// The place of a submission, and that of a variant; none is the test as it is.
type VariantRun = (usize, Option<usize>);

/// A run whose lines were noted.
struct Watched {
    lines: Option<BTreeSet<u32>>,
    outcome_hash: String,
}

/// The first Python in which an import can be watched without anything that it imports noticing.
const WATCHES_UNSEEN: (u32, u32) = (3, 12);

impl Referee<'_> {
    /// Judges all of them; `progress` is called when one has made its first runs.
    ///
    /// # Errors
    /// IO errors, an interruption, and the harness's when it stays broken.
    pub(crate) fn judge(
        &self,
        submissions: &[(&Original<'_>, &Submission)],
        progress: &mut dyn FnMut(),
    ) -> Result<Vec<Judged>> {
        let world = WorldSetting::base(&self.ground.setting);
        let mut cases = self.read_all(submissions)?;
        let groups = self.groups(&cases);
        let place = self.place(&world, &groups);
        self.run_first(&place, &mut cases, progress)?;
        let more = (1..self.policy.attempts).flat_map(|_| imports(&cases, plain)).collect();
        let lost = place.run(more, TraceMode::Off, |at, _, seen| self.compare(&mut cases[at], seen))?;
        note(&mut cases, lost);
        self.run_variants(&place, &mut cases, submissions)?;
        Self::run_agreeing(&place, &mut cases)?;
        Ok(cases.into_par_iter().map(|case| self.finish(case)).collect())
    }

    /// How each of them differs from its original, run once in processes of its own; none where it does not.
    ///
    /// # Errors
    /// Those of [`Referee::judge`].
    pub(crate) fn agree_again(
        &self,
        submissions: &[(&Original<'_>, &Submission)],
    ) -> Result<Vec<Option<String>>> {
        let world = WorldSetting::base(&self.ground.setting);
        let mut cases = self.read_all(submissions)?;
        let groups = self.groups(&cases);
        let place = self.place(&world, &groups);
        let all = imports(&cases, plain);
        let lost = place.run(all, TraceMode::Off, |at, _, seen| self.compare(&mut cases[at], seen))?;
        lost.into_values().next().map_or(Ok(()), Err)?;
        let difference = |case: &Case<'_>| {
            let Some(seen) = &case.seen else { return Some("it was not run".to_owned()) };
            let compared = &seen.comparison;
            let differs = compared.cases.iter().find(|one| one.difference.is_some());
            let differs =
                differs.map(|one| format!("{}: expected {}, seen {}", one.case, one.expected, one.seen));
            compared.difference.map(|what| format!("{what:?}\n{}", differs.unwrap_or_default()))
        };
        Ok(cases.iter().map(difference).collect())
    }

    fn place<'b>(&'b self, world: &'b WorldSetting, groups: &'b [Group]) -> Place<'b> {
        Place { lab: self.lab, world, groups, terms: self.terms, preload: &[] }
    }

    fn read_all<'a>(&self, submissions: &[(&'a Original<'a>, &Submission)]) -> Result<Vec<Case<'a>>> {
        let tree = Folder::open(&self.lab.built.tree)?;
        let read: Vec<Result<Case<'a>>> = submissions
            .par_iter()
            .map(|(original, submission)| self.read(&tree, original, submission))
            .collect();
        read.into_iter().collect()
    }

    /// The group of each of them.
    fn groups(&self, cases: &[Case<'_>]) -> Vec<Group> {
        cases.iter().map(|case| case.original.submitted(self.policy.file)).collect()
    }

    /// Runs each of them for the first time. What has no variants is run of the same import once with a test that fails;
    /// where nothing notices, the import is watched, and a run of it.
    fn run_first(&self, place: &Place<'_>, cases: &mut [Case<'_>], progress: &mut dyn FnMut()) -> Result<()> {
        let watches = self.lab.built.python_version() >= WATCHES_UNSEEN;
        let trace = if watches { TraceMode::Lines } else { TraceMode::Off };
        let alone = imports(cases, |case| plain(case).filter(|_| case.has_variants()));
        let lost = place.run(alone, TraceMode::Off, |at, _, seen| {
            progress();
            self.compare(&mut cases[at], seen);
        })?;
        note(cases, lost);
        let first = imports(cases, |case| {
            let (text, _) = plain(case).filter(|_| !case.has_variants())?;
            let fails = case.evaluated.as_ref().filter(|_| case.original.can_be_sabotaged);
            let fails = fails.and_then(first_line).map(failing);
            let manners = [Some(PLAIN), watches.then_some(WATCHED), fails];
            Some((text, manners.into_iter().flatten().collect()))
        });
        let lost = place.run(first, trace, |at, manner, seen| match manner {
            PLAIN => {
                progress();
                self.compare(&mut cases[at], seen);
            }
            WATCHED => cases[at].watched = Some(Watched::new(seen)),
            _ => cases[at].fails(&seen),
        })?;
        note(cases, lost);
        // An interpreter that is being watched may fail where another one does not.
        let ended = |case: &Case<'_>| {
            let exit = &case.seen.as_ref()?.attempt.exit;
            (matches!(exit, Exit::Signaled { .. }) && !case.has_variants()).then(|| plain(case))?
        };
        let unwatched = if watches { imports(cases, ended) } else { Vec::new() };
        let lost = place.run(unwatched, TraceMode::Off, |at, _, seen| {
            cases[at].seen = None;
            self.compare(&mut cases[at], seen);
        })?;
        note(cases, lost);
        Ok(())
    }

    /// What agrees, where it is still to be known: whether it notices that the test fails, and which lines run. Where a
    /// run that is watched shows something else, one more is made.
    fn run_agreeing(place: &Place<'_>, cases: &mut [Case<'_>]) -> Result<()> {
        let unnoticed = imports(cases, |case| {
            let can_be_sabotaged = case.original.can_be_sabotaged && !case.has_variants();
            let asks = can_be_sabotaged && case.judged.sabotage != Sabotage::Fails;
            Some((sabotage(case.agreeing().filter(|_| asks)?)?, vec![PLAIN]))
        });
        let lost = place.run(unnoticed, TraceMode::Off, |at, _, seen| cases[at].fails(&seen))?;
        note(cases, lost);
        for _ in 0..2 {
            let unwatched = imports(cases, |case| {
                let text = case.agreeing()?.text.clone();
                (!case.is_watched()).then(|| (text, vec![WATCHED]))
            });
            let lost = place.run(unwatched, TraceMode::Lines, |at, _, seen| {
                cases[at].watched = Some(Watched::new(seen));
            })?;
            note(cases, lost);
        }
        Ok(())
    }

    /// Runs what agrees under the variants of its test, the test as it is among them: each as the first run was made, in an
    /// import of its own.
    fn run_variants(
        &self,
        place: &Place<'_>,
        cases: &mut [Case<'_>],
        submissions: &[(&Original<'_>, &Submission)],
    ) -> Result<()> {
        let tree = Folder::open(&self.lab.built.tree)?;
        let (mut runs, mut texts, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (case, (original, submission))) in cases.iter_mut().zip(submissions).enumerate() {
            let Some(agreeing) = case.agreeing().filter(|_| case.lost.is_none() && case.has_variants())
            else {
                continue;
            };
            let submitted = submission.text.as_deref().unwrap_or_default();
            let of_variants = match &original.entry {
                Some(_) => Vec::new(),
                None => self.variant_texts(&tree, original, submitted)?,
            };
            let order = OnVariants::order(original.variants, &agreeing.text);
            for which in &order {
                let text = which.and_then(|which| of_variants.get(which)).unwrap_or(&agreeing.text);
                texts.push(Arc::from(text.as_str()));
                let given = which.and_then(|which| original.variants[which].variation.as_ref());
                let group = &place.groups[at];
                let other = given.zip(group.entry.as_ref()).map(|(it, entry)| group_with(entry, &it.given));
                groups.push(other.unwrap_or_else(|| group.clone()));
                runs.push((at, *which));
            }
            case.judged.variants = Some(OnVariants::new(order));
        }
        let of_variants = Place { groups: &groups, ..*place };
        let left = self.run_ahead(&of_variants, cases, (&runs, &texts))?;
        let alone = left.iter().map(|run| Import::new(*run, Arc::clone(&texts[*run]), &[PLAIN])).collect();
        let lost = of_variants.run(alone, TraceMode::Off, |run, _, seen| {
            let (at, which) = runs[run];
            self.note_variant(&mut cases[at], which, seen);
        })?;
        note(cases, lost.into_iter().map(|(run, error)| (runs[run].0, error)).collect());
        let is_right = |run: &usize| {
            let Case { judged, original, .. } = &cases[runs[*run].0];
            original.entry.is_none() && judged.variants.as_ref().is_some_and(|seen| seen.differing.is_empty())
        };
        if left.iter().any(is_right) {
            self.ground.was_hindered();
        }
        for case in cases {
            if let Some(on_variants) = &mut case.judged.variants {
                on_variants.differing.sort_by_key(|one| one.variant);
            }
        }
        Ok(())
    }

    /// Makes the runs of variants with what the repository imports of others imported before. A submission of which all show
    /// there what they are to show is settled. Of the others, whose places this gives, all are made once more without that: else
    /// a submission that sees in which of the two runs it is could choose one for each variant.
    fn run_ahead(
        &self,
        place: &Place<'_>,
        cases: &mut [Case<'_>],
        (runs, texts): (&[VariantRun], &[Arc<str>]),
    ) -> Result<BTreeSet<usize>> {
        let mut left: BTreeSet<usize> = (0..runs.len()).collect();
        let preload = self.ground.ahead();
        // A command begins with nothing imported.
        let is_of_test = |run: &&usize| cases[runs[**run].0].original.entry.is_none();
        let of_tests: Vec<usize> = left.iter().filter(is_of_test).copied().collect();
        if preload.is_empty() || of_tests.is_empty() {
            return Ok(left);
        }
        let import = |run: usize| Import::new(run, Arc::clone(&texts[run]), &[PLAIN]);
        let all = of_tests.into_iter().map(import).collect();
        let mut made: BTreeMap<usize, BTreeMap<usize, Seen>> = BTreeMap::new();
        Place { preload, ..*place }.run(all, TraceMode::Off, |run, _, seen| {
            made.entry(runs[run].0).or_default().insert(run, seen);
        })?;
        for (at, made) in made {
            let all = runs.iter().filter(|(of, _)| *of == at).count();
            let shows = |(run, seen): (&usize, &Seen)| self.shows_the_same(&cases[at], runs[*run].1, seen);
            if made.len() == all && made.iter().all(shows) {
                for (run, seen) in made {
                    left.remove(&run);
                    self.note_variant(&mut cases[at], runs[run].1, seen);
                }
            }
        }
        Ok(left)
    }

    /// Whether a run shows what the original does: under a variant, or as the test is.
    fn shows_the_same(&self, case: &Case<'_>, which: Option<usize>, seen: &Seen) -> bool {
        let masks = self.masks(case);
        match which {
            Some(which) => {
                let variant = &case.original.variants[which];
                !OnVariants::differs(variant, &seen.attempt, &masks, Compare::Exception)
            }
            None => self.comparison(case, seen).agrees(),
        }
    }

    fn masks<'b>(&'b self, case: &'b Case<'_>) -> Masks<'b> {
        let Code { modules, sources: files } = &self.ground.code;
        Masks { modules, files, test_module: &case.test_module }
    }

    fn note_variant(&self, case: &mut Case<'_>, which: Option<usize>, seen: Seen) {
        let Some(which) = which else { return self.compare_again(case, seen) };
        let Some(mut on_variants) = case.judged.variants.take() else { return };
        let (attempt, held_to) = match &case.original.entry {
            Some(entry) => (named(seen.attempt, entry), self.lab.compare),
            None => (seen.attempt, Compare::Exception),
        };
        on_variants.note((which, &case.original.variants[which]), &attempt, &self.masks(case), held_to);
        case.judged.variants = Some(on_variants);
    }

    /// A submission with each variant of its test in it.
    fn variant_texts(&self, tree: &Folder, original: &Original<'_>, submitted: &[u8]) -> Result<Vec<String>> {
        let (path, defined) = original.definition();
        let source = decoded(&tree.read_through_links(Path::new(path), LARGEST_TEST)?);
        let modules = &self.ground.code.modules;
        let text = |variant: &Variant| {
            let edited = in_file(&source, defined, &variant.source).ok().flatten()?;
            let file = File { path, text: &edited };
            Some(
                inject_inherited(text_of(submitted).ok()?, file, defined, &original.test, modules).ok()?.text,
            )
        };
        let texts: Option<Vec<String>> = original.variants.par_iter().map(text).collect();
        texts.ok_or_else(|| {
            Error::usage(format!("a variant of {} does not fit its test in {path}", original.id))
                .with_hint("hidden/variants.jsonl and the tree have to be of one build")
        })
    }

    /// What decides about a judgement: the same key, the same judgement.
    pub(crate) fn key(&self, original: &Original<'_>, text: Option<&[u8]>) -> String {
        let lab = self.lab;
        hash_parts(&[
            SCORER,
            &crate::runner::version_hash(),
            &lab.built.key,
            &lab.backend.isolation().kind,
            &self.ground.key,
            original.id.as_str(),
            &format!("{:?} {}", original.definition(), original.can_be_sabotaged),
            &serde_json::to_string(&(original.golden, original.traced)).unwrap_or_default(),
            &serde_json::to_string(&(original.variants, &original.entry)).unwrap_or_default(),
            &format!("{:?} {:?} {}", lab.timeouts, lab.setting.limits, lab.setting.output_bytes),
            &format!("{:?} {}", self.policy, lab.compare.as_str()),
            &text.map_or_else(|| "nothing".to_owned(), sha256_hex),
        ])
    }

    /// What can be said before anything runs.
    fn read<'a>(
        &self,
        tree: &Folder,
        original: &'a Original<'a>,
        submission: &Submission,
    ) -> Result<Case<'a>> {
        let mut judged = Judged::empty(submission.text.as_deref());
        if original.entry.is_some() {
            return Ok(self.read_of_command(original, submission, judged));
        }
        let (path, defined) = original.definition();
        let source = decoded(&tree.read_through_links(Path::new(path), LARGEST_TEST)?);
        let file = File { path, text: &source };
        let mut evaluated = None;
        if let Some(bytes) = &submission.text {
            match text_of(bytes)
                .and_then(|text| self.examine(text, (file, defined), &original.test, &mut judged))
            {
                Ok(Ok(ready)) => evaluated = Some(ready),
                Ok(Err(NotInjected::Missing)) => judged.missing = true,
                Ok(Err(NotInjected::Unparsable { reason })) | Err(reason) => judged.cannot_be_read(reason),
                Ok(Err(NotInjected::Original { reason })) => {
                    return Err(Error::usage(format!(
                        "{path}: the test of {} cannot be read: {reason:?}",
                        original.id
                    )));
                }
            }
        }
        judged.take_injection(evaluated.as_ref());
        let decided = forbids(&judged.findings, &self.policy.allowed);
        Ok(Case {
            original,
            test_module: self.ground.code.modules.module_of(original.file),
            judged,
            evaluated: evaluated.filter(|_| !decided),
            seen: None,
            watched: None,
            lost: None,
        })
    }

    /// What can be said of a file for a command before it runs: there is no test in it.
    fn read_of_command<'a>(
        &self,
        original: &'a Original<'a>,
        submission: &Submission,
        mut judged: Judged,
    ) -> Case<'a> {
        judged.row.test_f1 = None;
        judged.is_command = true;
        let mut evaluated = None;
        if let Some(bytes) = &submission.text {
            match text_of(bytes).and_then(|text| self.look_through(text, &mut judged).map(|()| text)) {
                Ok(text) => evaluated = Some(Evaluated::as_it_is(text)),
                Err(reason) => {
                    judged.cannot_be_read(reason);
                    judged.row.test_f1 = None;
                }
            }
        }
        judged.evaluated_sha256 = evaluated.as_ref().map(|it| sha256_hex(it.text.as_bytes()));
        let decided = forbids(&judged.findings, &self.policy.allowed);
        Case {
            original,
            test_module: String::new(),
            judged,
            evaluated: evaluated.filter(|_| !decided),
            seen: None,
            watched: None,
            lost: None,
        }
    }

    /// Lines and findings of a file for a command.
    fn look_through(&self, text: &str, judged: &mut Judged) -> std::result::Result<(), Unreadable> {
        let Ground { code: Code { modules, sources }, corpus, .. } = self.ground;
        let root = self.lab.setting.places.root.to_string_lossy();
        let test = TestName { classes: Vec::new(), function: String::new() };
        let scenery = Scenery { modules, test: &test, root: &root, hidden: sources };
        let existence = corpus.line_existence(text)?;
        let none = Against { original: File { path: "", text: "" }, defined: &test, corpus };
        let mut found = findings(text, scenery)?;
        found.extend(strict_findings(text, scenery, none)?);
        found.retain(|finding| !OF_TESTS.contains(&finding.kind));
        judged.read_as(existence, found);
        Ok(())
    }

    /// Lines, findings and test of a text, and the text to run.
    fn examine(
        &self,
        text: &str,
        (original, defined): (File<'_>, &TestName),
        test: &TestName,
        judged: &mut Judged,
    ) -> std::result::Result<std::result::Result<Evaluated, NotInjected>, Unreadable> {
        let Ground { code: Code { modules, sources }, corpus, .. } = self.ground;
        let root = self.lab.setting.places.root.to_string_lossy();
        let scenery = Scenery { modules, test, root: &root, hidden: sources };
        let existence = corpus.line_existence(text)?;
        let mut found = findings(text, scenery)?;
        found.extend(strict_findings(text, scenery, Against { original, defined, corpus })?);
        judged.read_as(existence, found);
        let overlap = test_overlap(text, original, defined, modules);
        judged.row.test_f1 = overlap.ok().flatten().map(Overlap::f1);
        Ok(inject_inherited(text, original, defined, test, modules))
    }

    fn comparison(&self, case: &Case<'_>, seen: &Seen) -> Comparison {
        let normalizer = WorldSetting::base(&self.lab.setting).normalizer;
        let golden = normalized_again(case.original.golden, &normalizer);
        let Attempt { exit, cases, .. } = &seen.attempt;
        compare(&golden, exit, cases, &self.masks(case), self.lab.compare)
    }

    fn compare(&self, case: &mut Case<'_>, seen: Seen) {
        let comparison = self.comparison(case, &seen);
        let Seen { attempt, reached, .. } = seen;
        let agreed = u32::from(comparison.agrees());
        let first = Compared { attempt, comparison, imports: reached.imports, made: 1, agreed };
        match &mut case.seen {
            None => case.seen = Some(first),
            Some(known) => {
                let decides = known.comparison.agrees() && agreed == 0;
                let (made, all) = (known.made + 1, known.agreed + agreed);
                if decides {
                    *known = first;
                }
                (known.made, known.agreed) = (made, all);
            }
        }
    }

    /// Takes note of a run that is not one of the attempts that were asked for: it counts where it does not agree.
    fn compare_again(&self, case: &mut Case<'_>, seen: Seen) {
        let before = case.seen.as_ref().map(|seen| (seen.made, seen.agreed));
        self.compare(case, seen);
        if let Some((after, (made, agreed))) = case.seen.as_mut().zip(before)
            && after.agreed > agreed
        {
            (after.made, after.agreed) = (made, agreed);
        }
    }

    fn finish(&self, case: Case<'_>) -> Judged {
        let (agrees, is_watched) = (case.agreeing().is_some(), case.is_watched());
        let mut judged = case.judged;
        if let Some(error) = &case.lost {
            judged.is_lost(error);
            return judged;
        }
        if !agrees {
            judged.sabotage = Sabotage::NotTried;
            judged.variants = None;
        }
        if let Some(seen) = case.seen {
            let told = messages(&seen.comparison, &seen.attempt);
            judged.output = tail(&seen.attempt.raw_output, OUTPUT_LINES);
            if judged.output.is_empty() {
                judged.output = told.join("\n");
            }
            judged.attempts = (seen.made, seen.agreed);
            judged.row.cases = seen
                .comparison
                .ran
                .then_some(Cases { passed: seen.comparison.passed_cases, total: seen.comparison.n_cases });
            judged.import_attempts = seen.imports;
            judged.comparison = Some(shortened(seen.comparison));
        }
        let own_file = |attempt: &&ImportAttempt| Path::new(&attempt.file).ends_with(self.policy.file);
        let of_submission = judged.import_attempts.iter().filter(own_file);
        let of_repository = of_submission.filter(|attempt| self.ground.code.modules.owns(&attempt.module));
        let asked: Vec<String> = of_repository.map(|attempt| attempt.module.clone()).collect();
        judged.decide(asked, &self.policy.allowed);
        if agrees {
            judged.executed_lines(case.evaluated.as_ref(), case.watched, is_watched);
        }
        judged.recalls(case.original);
        judged
    }
}

impl Case<'_> {
    fn has_variants(&self) -> bool {
        !self.original.variants.is_empty()
    }

    /// The text that ran, if all of its runs agreed.
    fn agreeing(&self) -> Option<&Evaluated> {
        let seen = self.seen.as_ref()?;
        self.evaluated.as_ref().filter(|_| seen.made == seen.agreed)
    }

    /// Whether its lines were noted in a run that showed what the first one did.
    fn is_watched(&self) -> bool {
        let watched = self.watched.as_ref().zip(self.seen.as_ref());
        watched.is_some_and(|(watched, seen)| watched.outcome_hash == seen.attempt.outcome_hash())
    }

    /// Takes note of a run whose test must fail.
    fn fails(&mut self, seen: &Seen) {
        self.judged.sabotage = sabotage_of(self.original.golden, &seen.attempt.cases);
    }
}

impl Watched {
    fn new(seen: Seen) -> Self {
        Watched { outcome_hash: seen.attempt.outcome_hash(), lines: seen.lines }
    }
}

fn note(cases: &mut [Case<'_>], lost: Lost) {
    for (at, error) in lost {
        cases[at].lost = Some(error);
    }
}

/// One import for each submission that has something to run: its text, and how it is run.
fn imports<'a, 'b>(
    cases: &'b [Case<'a>],
    wanted: impl Fn(&'b Case<'a>) -> Option<(String, Vec<Manner>)>,
) -> Vec<Import> {
    let of_case = |(at, case): (usize, &'b Case<'a>)| {
        let (text, manners) = case.lost.is_none().then(|| wanted(case))??;
        // What has to pass and does not is wrong, whatever else it does.
        let passes = |case: &CaseResult| !matches!(case.outcome, Outcome::Failed | Outcome::Error);
        let plain_decides = case.original.golden.iter().all(passes);
        Some(Import::new(at, Arc::from(text), &manners).plain_decides(plain_decides))
    };
    cases.iter().enumerate().filter_map(of_case).collect()
}

/// The text as it is to be evaluated, unwatched.
fn plain(case: &Case<'_>) -> Option<(String, Vec<Manner>)> {
    Some((case.evaluated.as_ref()?.text.clone(), vec![PLAIN]))
}

/// What the first cases that differ were to show, what they showed, and what they say.
pub(super) fn messages(comparison: &Comparison, attempt: &Attempt) -> Vec<String> {
    let different = comparison.cases.iter().filter(|case| case.difference.is_some()).take(MOST_CASES);
    let text = |case: &ComparedCase| {
        let seen = attempt.cases.iter().find(|seen| seen.case_id.ends_with(&case.case));
        let message = seen.map_or("", |seen| seen.message.as_str());
        let (expected, seen) = (cut(&case.expected), cut(&case.seen));
        format!("{}: expected {expected}, seen {seen}\n{}", case.case, tail(message, MESSAGE_LINES))
    };
    let told: Vec<String> = different.map(text).collect();
    if told.is_empty() && !comparison.agrees() {
        vec![tail(&attempt.raw_output, MESSAGE_LINES)]
    } else {
        told
    }
}

/// Texts of a comparison as they are kept.
fn shortened(mut comparison: Comparison) -> Comparison {
    for case in &mut comparison.cases {
        case.expected = cut(&case.expected);
        case.seen = cut(&case.seen);
    }
    comparison
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// What became of cases that passed when their test must fail.
pub(super) fn sabotage_of(golden: &[CaseResult], seen: &[CaseResult]) -> Sabotage {
    let passes: BTreeSet<&str> = seen.iter().filter_map(passed).collect();
    if golden.iter().filter_map(passed).any(|case| passes.contains(case)) {
        Sabotage::Survives
    } else {
        Sabotage::Fails
    }
}

/// The case's name behind its file, if it passed.
fn passed(case: &CaseResult) -> Option<&str> {
    (case.outcome == Outcome::Passed)
        .then(|| case.case_id.split_once("::").map_or(&*case.case_id, |(_, name)| name))
}

/// What the original showed, as it would be written down today: the dataset may come from a gistmill that normalized
/// less.
pub(crate) fn normalized_again(golden: &[CaseResult], normalizer: &Normalizer) -> Vec<CaseResult> {
    let again = |text: &str| normalizer.output(text, &[], &mut BTreeMap::new());
    let case = |case: &CaseResult| CaseResult {
        stdout: again(&case.stdout),
        stderr: again(&case.stderr),
        ..case.clone()
    };
    golden.iter().map(case).collect()
}

fn forbids(found: &[Finding], allowed: &BTreeSet<Violation>) -> bool {
    found.iter().any(|finding| match finding.kind.effect() {
        Effect::ImportError => true,
        Effect::Violation => Violation::of(finding.kind).is_some_and(|one| !allowed.contains(&one)),
        Effect::Flag => false,
    })
}

impl Judged {
    pub(crate) fn empty(bytes: Option<&[u8]>) -> Self {
        let submitted = if bytes.is_some() { Submitted::Readable } else { Submitted::Nothing };
        Judged {
            verdict: judge(&Facts::Lost, &BTreeSet::new()),
            row: Row {
                submitted,
                fidelity: None,
                class: None,
                execution: None,
                execution_statements: None,
                existence: None,
                existence_control: None,
                trace_recall: None,
                test_f1: Some(0.0),
                cases: None,
            },
            missing: false,
            injection: None,
            replacement: None,
            unreadable: None,
            findings: Vec::new(),
            import_attempts: Vec::new(),
            comparison: None,
            attempts: (0, 0),
            sabotage: Sabotage::NotTried,
            variants: None,
            existence: None,
            executed: Vec::new(),
            untraced: None,
            lines: bytes.map_or(0, |bytes| {
                bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count()
            }),
            sha256: bytes.map(sha256_hex),
            evaluated_sha256: None,
            output: String::new(),
            lost: None,
            is_command: false,
        }
    }

    fn is_lost(&mut self, error: &Error) {
        self.verdict = judge(&Facts::Lost, &BTreeSet::new());
        self.row.fidelity = self.verdict.fidelity;
        self.row.class = self.verdict.class;
        self.lost = Some(tail(&format!("{error}\n{}", error.detail().unwrap_or_default()), OUTPUT_LINES));
    }

    fn cannot_be_read(&mut self, reason: Unreadable) {
        self.row.submitted = Submitted::Unparsable;
        self.row.existence = Some(Ratio::default());
        self.row.test_f1 = Some(0.0);
        self.unreadable = Some(reason);
    }

    fn take_injection(&mut self, evaluated: Option<&Evaluated>) {
        let Some(evaluated) = evaluated else { return };
        self.injection = Some(evaluated.injection);
        self.evaluated_sha256 = Some(sha256_hex(evaluated.text.as_bytes()));
        self.replacement = evaluated.replacement.map(|it| {
            let lines = evaluated.text.split_inclusive('\n');
            (it, lines.skip(it.first as usize - 1).take(it.lines as usize).collect())
        });
    }

    /// `import_attempts` are the modules of the repository that the submission asked for while it ran.
    fn decide(&mut self, import_attempts: Vec<String>, allowed: &BTreeSet<Violation>) {
        let run = self.comparison.clone().map(|comparison| Run {
            comparison,
            import_attempts,
            sabotage: self.sabotage,
            is_unmasked: !self.differing_variants().is_empty(),
        });
        let facts = match (&self.sha256, &self.unreadable) {
            (None, _) => Facts::NoFile,
            (_, Some(_)) => Facts::Unparsable,
            _ if self.missing => Facts::NoTest,
            _ => Facts::Read { findings: self.findings.clone(), run },
        };
        self.verdict = if self.is_command { judge_command(&facts, allowed) } else { judge(&facts, allowed) };
        self.row.fidelity = self.verdict.fidelity;
        self.row.class = self.verdict.class;
        if self.verdict.class == Some(ErrorClass::MissingTestFunction) {
            self.row.test_f1 = self.row.test_f1.map(|_| 0.0);
        }
    }

    fn read_as(&mut self, existence: LineExistence, findings: Vec<Finding>) {
        self.row.existence = Some(existence.rate);
        self.row.existence_control = Some(existence.with_control_flow);
        self.existence = Some(existence);
        self.findings = findings;
    }

    /// Which functions of the original's trace there are, and, where that is known, ran.
    fn recalls(&mut self, original: &Original<'_>) {
        let (Some(traced), Some(existence)) = (original.traced, &self.existence) else { return };
        let (file, defined) = (original.file, original.definition().0);
        let is_test = |path: &str| path == file || path == defined || path.ends_with("conftest.py");
        let submitted = |line: u32| match &self.replacement {
            Some((replacement, _)) => replacement.submitted_line(line),
            None => Some(line),
        };
        let ran = self.executed.iter().filter(|line| line.ran).filter_map(|line| submitted(line.first));
        let ran: BTreeSet<u32> = ran.collect();
        let known = !self.executed.is_empty();
        self.row.trace_recall = Some(trace_recall(traced, is_test, &existence.lines, known.then_some(&ran)));
    }

    fn executed_lines(&mut self, evaluated: Option<&Evaluated>, watched: Option<Watched>, same: bool) {
        let (Some(evaluated), Some(watched)) = (evaluated, watched) else { return };
        let Some(lines) = watched.lines.filter(|_| same) else {
            let why = if same {
                "the test took the tracer away"
            } else {
                "a run with a tracer, made twice, shows something else"
            };
            self.untraced = Some(why.to_owned());
            return;
        };
        if let Ok(execution) = line_execution(&evaluated.text, &lines) {
            self.row.execution = Some(execution.rate);
            self.row.execution_statements = Some(execution.statements);
            self.executed = execution.lines;
        }
    }
}
