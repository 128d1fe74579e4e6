//! Submissions → judgements: read, put the original test in, run, compare; what agrees is run once more traced and once
//! more with a failure in the test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::agreement::{messages, normalized_again, sabotage_of, shortened};
use super::given::{group_with, named};
use super::ground::{Code, Ground};
use super::judged::{Judged, OUTPUT_LINES, Watched};
use super::on_variants::OnVariants;
use super::original::Original;
use crate::attempt::lab::Lab;
use crate::attempt::pool::Terms;
use crate::attempt::world::WorldSetting;
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::family::gistify::{Cases, Evaluated, Sabotage, Violation, first_line, sabotage};
use crate::record::collected::Group;
use crate::record::outcome::{Attempt, CaseResult, Compare, Exit, Outcome};
use crate::referee::run::{Import, Lost, PLAIN, Seen, TextLab, WATCHED, failing};
use crate::referee::submissions::Submission;
use crate::runner::protocol::{ImportAttempt, Manner, TraceMode};
use crate::score::{Comparison, Masks, compare};
use crate::text::tail;

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
pub(super) struct Case<'a> {
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

    fn place<'b>(&'b self, world: &'b WorldSetting, groups: &'b [Group]) -> TextLab<'b> {
        TextLab { lab: self.lab, world, groups, terms: self.terms, preload: &[] }
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
    fn run_first(
        &self,
        place: &TextLab<'_>,
        cases: &mut [Case<'_>],
        progress: &mut dyn FnMut(),
    ) -> Result<()> {
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
    fn run_agreeing(place: &TextLab<'_>, cases: &mut [Case<'_>]) -> Result<()> {
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
        place: &TextLab<'_>,
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
        let of_variants = TextLab { groups: &groups, ..*place };
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
        place: &TextLab<'_>,
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
        TextLab { preload, ..*place }.run(all, TraceMode::Off, |run, _, seen| {
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

impl<'a> Case<'a> {
    /// One that is read, and the text to run, if any.
    pub(super) fn new(
        original: &'a Original<'a>,
        test_module: String,
        judged: Judged,
        evaluated: Option<Evaluated>,
    ) -> Self {
        Case { original, test_module, judged, evaluated, seen: None, watched: None, lost: None }
    }

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
