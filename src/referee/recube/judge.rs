//! Submissions → judgements: a file is read, takes the place of the target, and the cases of the instance are run.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::family::gistify::Violation;
use crate::family::recube::answer::patched;
use crate::family::recube::leaks::Copies;
use crate::family::recube::mask::{Cut, Function, NotMaskable, left_masked, mask, text_of_target};
use crate::family::recube::score::{Class, ScoredCase};
use crate::record::collected::Group;
use crate::record::outcome::Outcome;
use crate::record::recube::InstanceCase;
use crate::referee::submissions::Submission;
use crate::referee::texts::{Runs, Shown, TargetLab};

/// A judged submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) class: Class,
    /// Why, in words; none where the class says all.
    pub(crate) detail: Option<String>,
    pub(crate) flags: Vec<String>,
    /// Functions that still raise `NotImplementedError`.
    pub(crate) left_masked: Vec<String>,
    pub(crate) cases: Vec<ScoredCase>,
}

/// An instance, and what is needed to judge it.
pub(crate) struct Instance<'a> {
    pub(crate) place: TargetLab<'a>,
    pub(crate) original: &'a str,
    pub(crate) masked: &'a str,
    /// Those of the original.
    pub(crate) functions: &'a [Function],
    /// Those that judge.
    pub(crate) cases: &'a [InstanceCase],
    /// Their groups.
    pub(crate) groups: &'a [Group],
    /// Where the original can be read.
    pub(crate) copies: &'a Copies,
    /// What is noted and changes nothing.
    pub(crate) allows: &'a [Violation],
    /// Files of tests in which the groups fail as soon as they start.
    pub(crate) planted: &'a BTreeMap<String, String>,
}

impl Instance<'_> {
    /// Judges a submission with so many runs: a case has to pass in all of them.
    ///
    /// # Errors
    /// IO errors and an interruption.
    pub(crate) fn judge(&self, submission: &Submission, attempts: u32, runs: &Runs) -> Result<Judged> {
        let Some(bytes) = self.text(submission) else {
            return Ok(self.ended(Class::NoFile, submission.troubles.first().cloned()));
        };
        let others = other_files(submission.patch.as_deref().unwrap_or_default(), self.place.target);
        let all = [("other-files-changed", others > 0), ("wrong-form", submission.is_wrong_form)];
        let mut flags: Vec<String> =
            all.iter().filter(|(_, holds)| *holds).map(|(flag, _)| (*flag).to_owned()).collect();
        // What cannot be parsed is not run.
        let read = text_of_target(&bytes).and_then(|text| match mask(text, Cut::All) {
            Ok(_) | Err(NotMaskable::Unsound(_)) => Ok(text),
            Err(why) => Err(why),
        });
        let text = match read {
            Ok(text) => text,
            Err(why) => {
                let line = why.line().map(|line| format!(", line {line}")).unwrap_or_default();
                let judged = self.ended(Class::NotReadable, Some(format!("{}{line}", why.reason())));
                return Ok(Judged { flags, ..judged });
            }
        };
        let left_masked = left_masked(text, self.functions);
        flags.extend((!left_masked.is_empty()).then(|| "left-masked".to_owned()));
        let copies = self.copies.imported(text, self.original);
        flags.extend((!copies.is_empty()).then(|| "imports-copy".to_owned()));
        let judged = self.run(text, attempts, runs)?;
        let survivor = self.survivor(text, &judged, runs)?;
        flags.extend(survivor.is_some().then(|| "neutralized-test".to_owned()));
        let judged = Judged { flags, left_masked, ..judged };
        let copied = (!copies.is_empty()).then(|| {
            (Violation::ImportsCopy, format!("imports {}, which has the original", copies.join(", ")))
        });
        let survived = survivor.map(|case| {
            (
                Violation::NeutralizedTest,
                format!("{case} passes although its test fails as soon as it starts"),
            )
        });
        let forbidden =
            [copied, survived].into_iter().flatten().find(|(kind, _)| !self.allows.contains(kind));
        match forbidden.filter(|_| judged.class != Class::Lost) {
            Some((_, why)) => Ok(Judged { class: Class::Violation, detail: Some(why), ..judged }),
            None => Ok(judged),
        }
    }

    /// A case that passes with this text, and still does where its test fails as soon as it starts, which the original does not.
    fn survivor(&self, text: &str, judged: &Judged, runs: &Runs) -> Result<Option<String>> {
        let passed = || judged.cases.iter().filter(|case| case.outcome == Some(Outcome::Passed));
        if text == self.original || self.planted.is_empty() || passed().next().is_none() {
            return Ok(None);
        }
        let fail = |text: &str| runs.shown_with(self.place, text, self.planted, self.groups, 0);
        let shown = fail(text)?;
        let all: Vec<&str> = passed().map(|case| case.id.as_str()).filter(|id| shown.passes(id)).collect();
        if all.is_empty() {
            return Ok(None);
        }
        let original = fail(self.original)?;
        Ok(all.into_iter().find(|id| !original.passes(id)).map(str::to_owned))
    }

    /// The file of a submission: as it is, or as its patch makes it of the masked file, or of the original.
    fn text(&self, submission: &Submission) -> Option<Vec<u8>> {
        let of_patch = || {
            let patch = submission.patch.as_deref()?;
            [self.masked, self.original].into_iter().find_map(|text| patched(text, patch, self.place.target))
        };
        submission.text.clone().or_else(|| of_patch().map(String::into_bytes))
    }

    fn run(&self, text: &str, attempts: u32, runs: &Runs) -> Result<Judged> {
        let mut all: Vec<Shown> = Vec::new();
        for number in 0..attempts.max(1) {
            let shown = runs.shown(self.place, text, self.groups, number)?;
            if let Some(broken) = shown.broken {
                // Where the original can be run, it is the submission that cannot.
                let original = runs.shown(self.place, self.original, self.groups, number)?;
                let class = if original.broken.is_some() { Class::Lost } else { Class::NotCollected };
                return Ok(self.ended(class, Some(broken)));
            }
            all.push(shown);
        }
        let cases: Vec<ScoredCase> = self.cases.iter().map(|case| scored(case, &all)).collect();
        let timed_out = all.iter().any(|shown| !shown.timed_out.is_empty());
        let crashed = all.iter().any(|shown| !shown.crashed.is_empty());
        let class = match (timed_out, crashed, cases.iter().any(|case| case.outcome.is_some())) {
            (true, ..) => Class::TimedOut,
            (false, true, _) => Class::Crashed,
            (false, false, true) => Class::Ran,
            (false, false, false) => Class::NotCollected,
        };
        Ok(Judged { class, detail: None, flags: Vec::new(), left_masked: Vec::new(), cases })
    }

    fn ended(&self, class: Class, detail: Option<String>) -> Judged {
        let cases = self.cases.iter().map(|case| scored(case, &[])).collect();
        Judged { class, detail, flags: Vec::new(), left_masked: Vec::new(), cases }
    }
}

/// How many files a patch changes beside the target.
fn other_files(patch: &str, target: &str) -> usize {
    let names = patch.lines().filter_map(|line| line.strip_prefix("+++ "));
    names.filter(|name| name.strip_prefix("b/").unwrap_or(name) != target).count()
}

/// A case over several runs: it passed if it passed in all of them.
fn scored(case: &InstanceCase, all: &[Shown]) -> ScoredCase {
    let outcomes = all.iter().map(|shown| shown.outcomes.get(&case.case_id).copied());
    let worst = outcomes.max_by_key(|outcome| *outcome != Some(Outcome::Passed)).flatten();
    ScoredCase { id: case.case_id.clone(), kind: case.kind, way: case.way, outcome: worst }
}
