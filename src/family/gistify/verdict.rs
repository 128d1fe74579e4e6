//! Facts about a submission → fidelity, class, detail.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::findings::{Effect, Finding, FindingKind};
use crate::score::compare::{Comparison, RunDifference};

/// Why a submission failed. Every failure has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// It reaches for the repository instead of standing alone.
    ImportError,
    /// There is no file.
    FileCreationFailure,
    /// The file does not define the test in its place.
    MissingTestFunction,
    /// The run did not show what the original shows.
    PytestRuntimeError,
    /// The run of a command did not show what the original shows.
    RuntimeError,
    /// It behaves, but by means that are not allowed.
    Violation,
}

impl ErrorClass {
    /// All classes, in the order of reports.
    pub const ALL: [ErrorClass; 6] = [
        ErrorClass::ImportError,
        ErrorClass::FileCreationFailure,
        ErrorClass::MissingTestFunction,
        ErrorClass::PytestRuntimeError,
        ErrorClass::RuntimeError,
        ErrorClass::Violation,
    ];
}

/// What exactly was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// The file is no Python; [`crate::score::Unreadable`] says why.
    SyntaxError,
    ImportStatement,
    VendoredCopy,
    /// The run asked for a module of the repository.
    ImportAttempt,
    RegistersRepositoryModule,
    NeutralizedTest,
    RegistersPlugin,
    ReachesTestTools,
    HiddenCode,
    ShadowsName,
    NotTheOriginal,
    HardCoded,
    ImportsCopy,
    #[serde(untagged)]
    Run(RunDifference),
}

/// Means that are not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Violation {
    /// A made-up module under the repository's name.
    RegistersRepositoryModule,
    /// A test that must fail passes, or was made into something else.
    NeutralizedTest,
    /// The file makes itself a plugin of pytest.
    RegistersPlugin,
    /// It reaches what runs the test.
    ReachesTestTools,
    /// Code that is data.
    HiddenCode,
    /// A name of the test means something else.
    ShadowsName,
    /// An edited test does not show what it shows in the repository.
    NotTheOriginal,
    /// With other input it does not show what the command shows in the repository.
    HardCoded,
    /// Of masked files: it imports a module in which the original can be read.
    ImportsCopy,
}

impl Violation {
    /// All of them, in the order in which they decide.
    pub const ALL: [Violation; 9] = [
        Violation::RegistersRepositoryModule,
        Violation::NeutralizedTest,
        Violation::RegistersPlugin,
        Violation::ReachesTestTools,
        Violation::HiddenCode,
        Violation::ShadowsName,
        Violation::NotTheOriginal,
        Violation::HardCoded,
        Violation::ImportsCopy,
    ];

    /// What a finding counts as. None where it is no violation.
    pub fn of(kind: FindingKind) -> Option<Violation> {
        match kind {
            FindingKind::RegistersRepositoryModule => Some(Violation::RegistersRepositoryModule),
            FindingKind::RegistersPlugin => Some(Violation::RegistersPlugin),
            FindingKind::ReachesTestTools => Some(Violation::ReachesTestTools),
            FindingKind::HiddenCode => Some(Violation::HiddenCode),
            FindingKind::NeutralizedTest => Some(Violation::NeutralizedTest),
            FindingKind::ShadowsName => Some(Violation::ShadowsName),
            FindingKind::ImportStatement
            | FindingKind::VendoredCopy
            | FindingKind::DynamicImport
            | FindingKind::PathTrick
            | FindingKind::PatchesTestTools
            | FindingKind::ReadsTree
            | FindingKind::Spawns
            | FindingKind::MainGuard
            | FindingKind::LeftoverTest => None,
        }
    }
}

/// What became of the test once more with a failure put into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sabotage {
    /// Every case that passed fails.
    Fails,
    /// A case passes all the same.
    Survives,
    /// Not tried: the original does not fail under it, or the run did not agree in the first place.
    NotTried,
}

/// What was seen of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub comparison: Comparison,
    /// Modules of the repository that the submission asked for, caught or not.
    pub import_attempts: Vec<String>,
    pub sabotage: Sabotage,
    /// Whether an edited test showed something else than in the repository.
    #[serde(default)]
    pub is_unmasked: bool,
}

/// How far a submission came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Facts {
    /// There is no file.
    NoFile,
    /// The file is no Python.
    Unparsable,
    /// The test is not where it should be.
    NoTest,
    /// It was read, and perhaps run.
    Read {
        findings: Vec<Finding>,
        /// None where findings alone decide, so that nothing was run.
        run: Option<Run>,
    },
    /// The harness failed: nothing can be said.
    Lost,
}

/// The judgement of one submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// None: lost.
    pub fidelity: Option<bool>,
    /// Whether the run showed what the original shows, violations aside. None where there was no run.
    pub behaves: Option<bool>,
    pub class: Option<ErrorClass>,
    pub detail: Option<Detail>,
    /// All that were seen, allowed ones too.
    pub violations: Vec<Violation>,
}

impl Verdict {
    fn failed(class: ErrorClass, detail: Option<Detail>) -> Self {
        Verdict { fidelity: Some(false), behaves: None, class: Some(class), detail, violations: Vec::new() }
    }
}

/// Judges a submission. Violations in `allowed` are noted and change nothing.
pub fn judge(facts: &Facts, allowed: &BTreeSet<Violation>) -> Verdict {
    match facts {
        Facts::NoFile => Verdict::failed(ErrorClass::FileCreationFailure, None),
        Facts::Unparsable => Verdict::failed(ErrorClass::PytestRuntimeError, Some(Detail::SyntaxError)),
        Facts::NoTest => Verdict::failed(ErrorClass::MissingTestFunction, None),
        Facts::Lost => lost(Vec::new()),
        Facts::Read { findings, run } => of_read(findings, run.as_ref(), allowed),
    }
}

/// Judges a submission for a command: the same, in words that do not speak of tests.
pub fn judge_command(facts: &Facts, allowed: &BTreeSet<Violation>) -> Verdict {
    let of_test = |one: &Violation| match one {
        Violation::HardCoded => Some(Violation::NotTheOriginal),
        Violation::NotTheOriginal => None,
        other => Some(*other),
    };
    let mut verdict = judge(facts, &allowed.iter().filter_map(of_test).collect());
    for violation in &mut verdict.violations {
        if *violation == Violation::NotTheOriginal {
            *violation = Violation::HardCoded;
        }
    }
    if verdict.class == Some(ErrorClass::PytestRuntimeError) {
        verdict.class = Some(ErrorClass::RuntimeError);
    }
    if verdict.detail == Some(Detail::NotTheOriginal) {
        verdict.detail = Some(Detail::HardCoded);
    }
    verdict
}

fn lost(violations: Vec<Violation>) -> Verdict {
    Verdict { fidelity: None, behaves: None, class: None, detail: None, violations }
}

fn of_read(findings: &[Finding], run: Option<&Run>, allowed: &BTreeSet<Violation>) -> Verdict {
    let of_text: BTreeSet<Violation> =
        findings.iter().filter_map(|finding| Violation::of(finding.kind)).collect();
    let mut violations: Vec<Violation> = of_text.iter().copied().collect();
    if run.is_some_and(|run| run.sabotage == Sabotage::Survives) {
        violations.push(Violation::NeutralizedTest);
    }
    if run.is_some_and(|run| run.is_unmasked) {
        violations.push(Violation::NotTheOriginal);
    }
    violations.sort_unstable();
    violations.dedup();
    let behaves = run.map(|run| run.comparison.agrees());
    let failure = of_imports(findings)
        .or_else(|| Violation::ALL.into_iter().find_map(|one| forbidden(&of_text, allowed, one)))
        .or_else(|| run.and_then(of_run))
        .or_else(|| forbidden(&violations.iter().copied().collect(), allowed, Violation::NeutralizedTest))
        .or_else(|| forbidden(&violations.iter().copied().collect(), allowed, Violation::NotTheOriginal));
    match (failure, behaves) {
        (Some((class, detail)), _) => {
            Verdict { fidelity: Some(false), behaves, class: Some(class), detail: Some(detail), violations }
        }
        (None, Some(true)) => {
            Verdict { fidelity: Some(true), behaves, class: None, detail: None, violations }
        }
        // Nothing speaks against it and nothing was run: nothing can be said.
        (None, _) => lost(violations),
    }
}

fn of_imports(findings: &[Finding]) -> Option<(ErrorClass, Detail)> {
    let first = findings.iter().find(|finding| finding.kind.effect() == Effect::ImportError)?;
    let detail = match first.kind {
        FindingKind::VendoredCopy => Detail::VendoredCopy,
        _ => Detail::ImportStatement,
    };
    Some((ErrorClass::ImportError, detail))
}

fn forbidden(
    seen: &BTreeSet<Violation>,
    allowed: &BTreeSet<Violation>,
    violation: Violation,
) -> Option<(ErrorClass, Detail)> {
    let detail = match violation {
        Violation::RegistersRepositoryModule => Detail::RegistersRepositoryModule,
        Violation::NeutralizedTest => Detail::NeutralizedTest,
        Violation::RegistersPlugin => Detail::RegistersPlugin,
        Violation::ReachesTestTools => Detail::ReachesTestTools,
        Violation::HiddenCode => Detail::HiddenCode,
        Violation::ShadowsName => Detail::ShadowsName,
        Violation::NotTheOriginal => Detail::NotTheOriginal,
        Violation::HardCoded => Detail::HardCoded,
        Violation::ImportsCopy => Detail::ImportsCopy,
    };
    (seen.contains(&violation) && !allowed.contains(&violation)).then_some((ErrorClass::Violation, detail))
}

fn of_run(run: &Run) -> Option<(ErrorClass, Detail)> {
    if !run.import_attempts.is_empty() {
        return Some((ErrorClass::ImportError, Detail::ImportAttempt));
    }
    let difference = run.comparison.difference?;
    Some((ErrorClass::PytestRuntimeError, Detail::Run(difference)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: FindingKind) -> Finding {
        Finding { kind, line: 1, name: String::new(), evidence: String::new() }
    }

    fn run(difference: Option<RunDifference>, sabotage: Sabotage) -> Run {
        let comparison = Comparison {
            difference,
            cases: Vec::new(),
            n_cases: 1,
            passed_cases: 1,
            agreeing_cases: 1,
            ran: true,
            masked: 0,
        };
        Run { comparison, import_attempts: Vec::new(), sabotage, is_unmasked: false }
    }

    fn verdict(
        kinds: &[FindingKind],
        run: Option<Run>,
    ) -> (Option<bool>, Option<ErrorClass>, Option<Detail>) {
        let facts = Facts::Read { findings: kinds.iter().map(|kind| finding(*kind)).collect(), run };
        let verdict = judge(&facts, &BTreeSet::new());
        (verdict.fidelity, verdict.class, verdict.detail)
    }

    #[test]
    fn the_order_of_classes_is_that_of_the_evaluation() {
        let good = || Some(run(None, Sabotage::Fails));
        assert_eq!(verdict(&[FindingKind::Spawns, FindingKind::MainGuard], good()), (Some(true), None, None));
        let import = (Some(false), Some(ErrorClass::ImportError), Some(Detail::ImportStatement));
        assert_eq!(
            verdict(&[FindingKind::RegistersRepositoryModule, FindingKind::ImportStatement], good()),
            import
        );
        let faked = (Some(false), Some(ErrorClass::Violation), Some(Detail::RegistersRepositoryModule));
        assert_eq!(verdict(&[FindingKind::RegistersRepositoryModule], None), faked);
        let mut asked = run(Some(RunDifference::Failed), Sabotage::NotTried);
        asked.import_attempts.push("tiny".to_owned());
        let attempt = (Some(false), Some(ErrorClass::ImportError), Some(Detail::ImportAttempt));
        assert_eq!(verdict(&[], Some(asked)), attempt);
        let failed =
            (Some(false), Some(ErrorClass::PytestRuntimeError), Some(Detail::Run(RunDifference::Failed)));
        assert_eq!(verdict(&[], Some(run(Some(RunDifference::Failed), Sabotage::NotTried))), failed);
        let survived = (Some(false), Some(ErrorClass::Violation), Some(Detail::NeutralizedTest));
        assert_eq!(verdict(&[], Some(run(None, Sabotage::Survives))), survived);
        assert_eq!(verdict(&[], None), (None, None, None));
    }

    #[test]
    fn an_edited_test_that_shows_something_else_is_a_violation_unless_it_is_allowed() {
        let unmasked = || Some(Run { is_unmasked: true, ..run(None, Sabotage::NotTried) });
        let violation = (Some(false), Some(ErrorClass::Violation), Some(Detail::NotTheOriginal));
        assert_eq!(verdict(&[], unmasked()), violation);
        let facts = Facts::Read { findings: Vec::new(), run: unmasked() };
        let allowed = judge(&facts, &BTreeSet::from([Violation::NotTheOriginal]));
        assert_eq!(
            (allowed.fidelity, &allowed.violations[..]),
            (Some(true), &[Violation::NotTheOriginal][..])
        );
    }

    #[test]
    fn of_a_command_the_same_is_said_without_a_word_of_tests() {
        let judged = |run: Option<Run>, allowed: &[Violation]| {
            let facts = Facts::Read { findings: Vec::new(), run };
            let verdict = judge_command(&facts, &allowed.iter().copied().collect());
            (verdict.fidelity, verdict.class, verdict.detail, verdict.violations)
        };
        let unmasked = || Some(Run { is_unmasked: true, ..run(None, Sabotage::NotTried) });
        let hard_coded = vec![Violation::HardCoded];
        let detail = Some(Detail::HardCoded);
        let refused = (Some(false), Some(ErrorClass::Violation), detail, hard_coded.clone());
        assert_eq!(judged(unmasked(), &[]), refused);
        assert_eq!(judged(unmasked(), &[Violation::NotTheOriginal]), refused);
        assert_eq!(judged(unmasked(), &[Violation::HardCoded]), (Some(true), None, None, hard_coded));
        let differs = judged(Some(run(Some(RunDifference::OtherFiles), Sabotage::NotTried)), &[]);
        let detail = Some(Detail::Run(RunDifference::OtherFiles));
        assert_eq!(differs, (Some(false), Some(ErrorClass::RuntimeError), detail, Vec::new()));
    }

    #[test]
    fn what_is_allowed_is_noted() {
        let facts = Facts::Read {
            findings: vec![finding(FindingKind::RegistersRepositoryModule)],
            run: Some(run(None, Sabotage::Fails)),
        };
        let verdict = judge(&facts, &BTreeSet::from([Violation::RegistersRepositoryModule]));
        assert_eq!(verdict.fidelity, Some(true));
        assert_eq!(verdict.violations, [Violation::RegistersRepositoryModule]);
    }

    #[test]
    fn a_violation_leaves_what_was_seen() {
        let facts = Facts::Read { findings: Vec::new(), run: Some(run(None, Sabotage::Survives)) };
        let verdict = judge(&facts, &BTreeSet::new());
        assert_eq!((verdict.fidelity, verdict.behaves), (Some(false), Some(true)));
        assert_eq!(judge(&Facts::Lost, &BTreeSet::new()).fidelity, None);
    }

    #[test]
    fn every_name_reads_back() {
        for detail in [Detail::SyntaxError, Detail::NotTheOriginal, Detail::Run(RunDifference::OtherOutput)] {
            let text = serde_json::to_string(&detail).unwrap();
            assert_eq!(serde_json::from_str::<Detail>(&text).unwrap(), detail, "{text}");
        }
        assert_eq!(
            serde_json::to_string(&Detail::Run(RunDifference::CollectionError)).unwrap(),
            "\"collection-error\""
        );
        assert_eq!(
            serde_json::to_string(&ErrorClass::PytestRuntimeError).unwrap(),
            "\"pytest-runtime-error\""
        );
    }
}
