//! What becomes known of one submission, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::on_variants::OnVariants;
use super::original::Original;
use crate::error::Error;
use crate::family::gistify::{
    ErrorClass, Evaluated, ExecutedLine, Facts, Finding, Injection, Line, LineExistence, LineRun,
    Replacement, Row, Run, Sabotage, Submitted, Verdict, Violation, judge, judge_command, line_execution,
    trace_recall,
};
use crate::record::id::sha256_hex;
use crate::referee::run::Seen;
use crate::runner::protocol::ImportAttempt;
use crate::score::{Comparison, Ratio, Unreadable};
use crate::text::tail;

/// Lines of output that are kept as evidence.
pub(super) const OUTPUT_LINES: usize = 60;

/// A run whose lines were noted.
pub(super) struct Watched {
    pub(super) lines: Option<BTreeSet<u32>>,
    pub(super) outcome_hash: String,
}

impl Watched {
    pub(super) fn new(seen: Seen) -> Self {
        Watched { outcome_hash: seen.attempt.outcome_hash(), lines: seen.lines }
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
    pub(crate) fn executed_by_line(&self) -> BTreeMap<u32, LineRun> {
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

    pub(super) fn is_lost(&mut self, error: &Error) {
        self.verdict = judge(&Facts::Lost, &BTreeSet::new());
        self.row.fidelity = self.verdict.fidelity;
        self.row.class = self.verdict.class;
        self.lost = Some(tail(&format!("{error}\n{}", error.detail().unwrap_or_default()), OUTPUT_LINES));
    }

    pub(super) fn cannot_be_read(&mut self, reason: Unreadable) {
        self.row.submitted = Submitted::Unparsable;
        self.row.existence = Some(Ratio::default());
        self.row.test_f1 = Some(0.0);
        self.unreadable = Some(reason);
    }

    pub(super) fn take_injection(&mut self, evaluated: Option<&Evaluated>) {
        let Some(evaluated) = evaluated else { return };
        self.injection = Some(evaluated.injection);
        self.evaluated_sha256 = Some(sha256_hex(evaluated.text.as_bytes()));
        self.replacement = evaluated.replacement.map(|it| {
            let lines = evaluated.text.split_inclusive('\n');
            (it, lines.skip(it.first as usize - 1).take(it.lines as usize).collect())
        });
    }

    /// `import_attempts` are the modules of the repository that the submission asked for while it ran.
    pub(super) fn decide(&mut self, import_attempts: Vec<String>, allowed: &BTreeSet<Violation>) {
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

    pub(super) fn read_as(&mut self, existence: LineExistence, findings: Vec<Finding>) {
        self.row.existence = Some(existence.rate);
        self.row.existence_control = Some(existence.with_control_flow);
        self.existence = Some(existence);
        self.findings = findings;
    }

    /// Which functions of the original's trace there are, and, where that is known, ran.
    pub(super) fn recalls(&mut self, original: &Original<'_>) {
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

    pub(super) fn executed_lines(
        &mut self,
        evaluated: Option<&Evaluated>,
        watched: Option<Watched>,
        same: bool,
    ) {
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
