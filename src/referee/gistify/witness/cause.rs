//! Why an instance has no witness. Pure.

use serde::{Deserialize, Serialize};

use crate::record::execution::Execution;
use crate::runner::protocol::Generated;

/// Characters of a message that are kept.
const EVIDENCE: usize = 2000;

/// Why there is no witness. Every instance without one has exactly one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cause {
    /// The original does not show the same while its lines are traced.
    NotTraced,
    /// It opens files of the tree by their place beside the code.
    ReadsTreeFile,
    /// It starts a process that imports the repository.
    ChildImportsRepository,
    /// It asks for a module of the repository by name.
    ImportsRepository,
    /// It needs compiled code of the tree.
    NativeCode,
    /// It needs two classes of one name.
    TwinClasses,
    /// No text that was tried shows what the original shows.
    NoneAgrees,
    /// The generator cannot read the repository's code.
    GeneratorFails,
    /// The search took longer than it may.
    OverBudget,
    /// What was found does not show the same again.
    NotConfirmed,
    /// What was found is no fair submission by its text or its run.
    NotFair,
}

impl Cause {
    /// Every cause, in the order of the documents.
    pub(crate) const ALL: [Cause; 11] = [
        Cause::NotTraced,
        Cause::ReadsTreeFile,
        Cause::ChildImportsRepository,
        Cause::ImportsRepository,
        Cause::NativeCode,
        Cause::TwinClasses,
        Cause::NoneAgrees,
        Cause::GeneratorFails,
        Cause::OverBudget,
        Cause::NotConfirmed,
        Cause::NotFair,
    ];

    /// What it means, in words.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Cause::NotTraced => "the original does not show the same while its lines are traced",
            Cause::ReadsTreeFile => "it opens files of the tree that are where the code was",
            Cause::ChildImportsRepository => "it starts a process that imports the repository",
            Cause::ImportsRepository => {
                "it asks for a module by name, such as `mock.patch(\"package.module.f\")` in the test"
            }
            Cause::NativeCode => "it needs compiled code of the tree",
            Cause::TwinClasses => "it needs two classes of one name",
            Cause::NoneAgrees => {
                "no text that was tried shows what the original shows; the evidence is the failure"
            }
            Cause::GeneratorFails => "the generator cannot read the code",
            Cause::OverBudget => "the generator did not answer in time",
            Cause::NotConfirmed => "what was found does not show the same again",
            Cause::NotFair => "what was found is not a fair submission",
        }
    }

    /// The one spelling.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Cause::NotTraced => "not-traced",
            Cause::ReadsTreeFile => "reads-tree-file",
            Cause::ChildImportsRepository => "child-imports-repository",
            Cause::ImportsRepository => "imports-repository",
            Cause::NativeCode => "native-code",
            Cause::TwinClasses => "twin-classes",
            Cause::NoneAgrees => "none-agrees",
            Cause::GeneratorFails => "generator-fails",
            Cause::OverBudget => "over-budget",
            Cause::NotConfirmed => "not-confirmed",
            Cause::NotFair => "not-fair",
        }
    }
}

/// A cause with what a person can check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotMade {
    pub(crate) cause: Cause,
    pub(crate) evidence: String,
}

impl NotMade {
    /// A cause with its evidence, cut to its end.
    pub(crate) fn new(cause: Cause, evidence: &str) -> Self {
        let skipped = evidence.chars().count().saturating_sub(EVIDENCE);
        NotMade { cause, evidence: evidence.chars().skip(skipped).collect() }
    }
}

/// How a failure begins whose text asked for modules of the repository.
pub(super) const ASKS_FOR: &str = "it asks for ";

/// Why a search ended without a text that agrees.
pub(crate) fn of_search(execution: &Execution, generated: &Generated) -> NotMade {
    for (level, failure) in &generated.failures {
        tracing::debug!(level, failure, "a text of a witness");
    }
    // The first level's: further ones keep more, and fail by what they keep.
    let (level, failure) = generated.failures.first().cloned().unwrap_or_default();
    if level == "generator" {
        return NotMade::new(Cause::GeneratorFails, &failure);
    }
    let with = |cause, what: &str| {
        let failure = NotMade::new(cause, &failure).evidence;
        NotMade { cause, evidence: format!("{what}\n{failure}") }
    };
    if let Some(name) = lacked(&failure).find(|name| generated.compiled.iter().any(|one| one == name)) {
        return with(Cause::NativeCode, &format!("needs {name}, which is compiled"));
    }
    // What a child asks for is not seen here.
    if let Some(asked) = failure.strip_prefix(ASKS_FOR).and_then(|rest| rest.lines().next()) {
        return with(Cause::ImportsRepository, &format!("asks for {asked}"));
    }
    let missing = missing_module(&failure);
    if let Some(module) = missing.as_ref().filter(|_| !execution.spawned.is_empty()) {
        let started = execution.spawned.join(", ");
        return with(Cause::ChildImportsRepository, &format!("starts {started}, which lacks {module}"));
    }
    if let Some(file) = execution.opened.iter().find(|file| mentions(&failure, file)) {
        return with(Cause::ReadsTreeFile, &format!("opens {file}"));
    }
    let twins: Vec<&str> =
        generated.twins.iter().map(String::as_str).filter(|name| failure.contains(*name)).collect();
    if !twins.is_empty() {
        return with(Cause::TwinClasses, &format!("two classes: {}", twins.join(", ")));
    }
    NotMade::new(Cause::NoneAgrees, &failure)
}

/// The names, attributes and modules that a failure says are not there; of a dotted one the last part.
fn lacked(failure: &str) -> impl Iterator<Item = &str> {
    let starts = ["name '", "attribute '", "No module named '"];
    let quoted = starts.into_iter().flat_map(|start| failure.split(start).skip(1));
    quoted.filter_map(|rest| rest.split('\'').next()?.rsplit('.').next())
}

/// The module that a failure says is not there.
fn missing_module(failure: &str) -> Option<String> {
    let rest = failure.split("No module named ").nth(1)?;
    let name: String =
        rest.chars().skip(1).take_while(|c| c.is_alphanumeric() || "_.".contains(*c)).collect();
    (!name.is_empty()).then_some(name)
}

/// Whether a failure names a file, by its path or its last part, as a word of its own: the name of a command has files in it, too.
fn mentions(failure: &str, file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let of_a_word = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    name.len() > 2
        && failure.match_indices(name).any(|(at, _)| {
            let (before, after) = (&failure[..at], &failure[at + name.len()..]);
            !before.ends_with(of_a_word) && !after.starts_with(|c: char| of_a_word(c) && c != '.')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(execution: &Execution, failure: &str) -> Cause {
        let failures = vec![("least".to_owned(), failure.to_owned())];
        of_search(execution, &Generated { failures, ..Generated::default() }).cause
    }

    #[test]
    fn the_cause_is_what_the_trace_and_the_last_failure_say_together() {
        let plain = Execution::default();
        assert_eq!(of(&plain, "KeyError: 'x'"), Cause::NoneAgrees);
        let opens = Execution { opened: vec!["tests/data/a.txt".into()], ..Execution::default() };
        assert_eq!(of(&opens, "FileNotFoundError: '/tree/data/a.txt'"), Cause::ReadsTreeFile);
        let creates = Execution { opened: vec!["test.db".into()], ..Execution::default() };
        assert_eq!(of(&creates, "ValueError\nshop-views-test.db: failed"), Cause::NoneAgrees);
        assert_eq!(of(&creates, "no such file: test.db."), Cause::ReadsTreeFile);
        let spawns = Execution { spawned: vec!["python".into()], ..Execution::default() };
        let missing = "E   ModuleNotFoundError: No module named 'tiny.core'";
        assert_eq!(of(&spawns, missing), Cause::ChildImportsRepository);
        assert_eq!(of(&spawns, "KeyError"), Cause::NoneAgrees);
        assert_eq!(of(&plain, missing), Cause::NoneAgrees);
    }

    #[test]
    fn compiled_code_is_the_cause_where_the_failure_names_what_comes_from_it() {
        let failing = |failure: &str| {
            let failures = vec![("least".to_owned(), failure.to_owned())];
            let compiled = vec!["Hinge".to_owned(), "_tree".to_owned()];
            of_search(&Execution::default(), &Generated { failures, compiled, ..Generated::default() })
        };
        for failure in [
            "E   NameError: name 'Hinge' is not defined",
            "AttributeError: module 'concise' has no attribute '_tree'",
            "No module named 'learn.tree._tree'",
        ] {
            let why = failing(failure);
            assert_eq!(why.cause, Cause::NativeCode, "{failure}");
            assert!(
                why.evidence.ends_with(failure) && why.evidence.starts_with("needs "),
                "{}",
                why.evidence
            );
        }
        for other in
            ["seen: Hinge\nTypeError: 'NoneType' object is not iterable", "name 'HingeLoss' is not defined"]
        {
            assert_eq!(failing(other).cause, Cause::NoneAgrees, "{other}");
        }
    }

    #[test]
    fn classes_of_one_name_and_asked_modules_are_causes_of_their_own() {
        let failing = |failure: &str| {
            let failures = vec![("least".to_owned(), failure.to_owned())];
            Generated { twins: vec!["Foo".into()], failures, ..Generated::default() }
        };
        let generated = failing(&format!("{} test_it[Foo]: missing", "x".repeat(9000)));
        let twins = of_search(&Execution::default(), &generated);
        assert_eq!(twins.cause, Cause::TwinClasses);
        assert!(twins.evidence.starts_with("two classes: Foo\n"), "{}", twins.evidence);
        let other = of_search(&Execution::default(), &failing("KeyError: 1"));
        assert_eq!(other.cause, Cause::NoneAgrees, "the failure is about something else");
        let asked = failing("it asks for tiny.core (from /testbed/concise.py)\ntest_it[Foo]: missing");
        let asked = of_search(&Execution::default(), &asked);
        assert_eq!(asked.cause, Cause::ImportsRepository);
        assert!(asked.evidence.starts_with("asks for tiny.core "), "{}", asked.evidence);
    }

    #[test]
    fn trouble_of_the_generator_is_named_as_such() {
        let failures = vec![("generator".to_owned(), "RecursionError".to_owned())];
        let generated = Generated { failures, ..Generated::default() };
        assert_eq!(of_search(&Execution::default(), &generated).cause, Cause::GeneratorFails);
    }

    #[test]
    fn evidence_keeps_its_end() {
        let long = format!("{}end", "é".repeat(9000));
        let evidence = NotMade::new(Cause::NoneAgrees, &long).evidence;
        assert!(evidence.chars().count() == EVIDENCE && evidence.ends_with("end"));
    }

    #[test]
    fn every_cause_is_there_once_and_the_document_has_its_meaning() {
        let document = include_str!("../../../../docs/witnesses.md");
        let mut names = Cause::ALL.map(Cause::as_str);
        for cause in Cause::ALL {
            let row = format!("| `{}` | {} |", cause.as_str(), cause.meaning());
            assert!(document.contains(&row), "{row}");
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
        }
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(document.matches("\n| `").count(), names.len() + COLUMNS, "no other row");
    }

    /// Rows of the table of columns in the same document.
    const COLUMNS: usize = 5;
}
