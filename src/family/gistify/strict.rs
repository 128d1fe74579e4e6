//! Strict rules: what a submission may not do on lines of its own. A statement that the repository has, in a block of
//! the same name, is the repository's; all else was written for the submission.

mod literals;
mod outside;
mod rebinding;
mod tools;

use std::collections::{BTreeMap, BTreeSet};

use ruff_text_size::{Ranged, TextRange, TextSize};

use super::existence::Corpus;
use super::findings::{Finding, FindingKind, Scenery};
use super::keys::Key;
use super::locate::{self, Found, TestName};
use crate::score::File;
use crate::score::modules::{Bindings, Modules};
use crate::score::text::{self, Parsed, Unreadable};
use outside::Outside;

/// Characters of a line that are kept.
const EVIDENCE: usize = 200;
/// Findings of one kind that are kept.
const KEPT: usize = 100;
/// Candidates that are looked at: no file that a person wrote has more.
const CANDIDATES: usize = 20_000;

/// Kinds that say nothing of a file that is not run by pytest, or that a command has to have.
const OF_TESTS: [FindingKind; 4] = [
    FindingKind::LeftoverTest,
    FindingKind::MainGuard,
    FindingKind::NeutralizedTest,
    FindingKind::RegistersPlugin,
];
/// Libraries like others where no test is run.
const RUN_TESTS: [&str; 4] = ["_pytest", "pluggy", "pytest", "unittest"];

/// What a submission is held against.
#[derive(Debug, Clone, Copy)]
pub struct Against<'a> {
    /// The file that defines the original test.
    pub original: File<'a>,
    /// The name of the test in it.
    pub defined: &'a TestName,
    pub corpus: &'a Corpus,
}

/// Something that is not allowed unless the repository has the line.
struct Candidate {
    kind: FindingKind,
    /// Lines, 1-based; all of them have to be the repository's.
    first: u32,
    last: u32,
    name: String,
    /// Whether no line of the repository excuses it.
    always: bool,
    /// A module whose import by a line of the repository excuses it.
    module: Option<&'static str>,
    /// It stands in the arguments of this decorator, which a header is not compared by.
    decorator: Option<Key>,
}

/// Collects candidates.
struct Candidates<'a> {
    parsed: Parsed<'a>,
    all: Vec<Candidate>,
    decorator: Option<Key>,
}

impl Candidates<'_> {
    fn add(&mut self, kind: FindingKind, at: TextSize, name: impl Into<String>) {
        let line = self.parsed.lines.line(at);
        self.push(kind, (line, line), name.into(), false, None);
    }

    /// One that a statement excuses if the repository has all of its lines.
    fn add_whole(&mut self, kind: FindingKind, range: TextRange, name: impl Into<String>) {
        let lines = (self.parsed.lines.line(range.start()), self.parsed.lines.line(range.end()));
        self.push(kind, lines, name.into(), false, None);
    }

    fn add_always(&mut self, kind: FindingKind, line: u32, name: impl Into<String>) {
        self.push(kind, (line, line), name.into(), true, None);
    }

    fn add_of_module(&mut self, kind: FindingKind, at: TextSize, name: &str, module: &'static str) {
        let line = self.parsed.lines.line(at);
        self.push(kind, (line, line), name.to_owned(), false, Some(module));
    }

    fn push(
        &mut self,
        kind: FindingKind,
        (first, last): (u32, u32),
        name: String,
        always: bool,
        module: Option<&'static str>,
    ) {
        let decorator = self.decorator;
        let candidate = Candidate { kind, first, last, name, always, module, decorator };
        let is_known = |one: &Candidate| (one.kind, one.first, &one.name) == (kind, first, &candidate.name);
        let recent = self.all.len().saturating_sub(8);
        if self.all.len() < CANDIDATES && !self.all[recent..].iter().any(is_known) {
            self.all.push(candidate);
        }
    }
}

/// Names that a test takes from outside its repository, and what they are: a dotted name, none for a builtin.
pub(super) fn taken_from_outside(
    original: File<'_>,
    test: &TestName,
    modules: &Modules,
) -> BTreeMap<String, Option<String>> {
    let read = |source: Parsed<'_>| Outside::of(source, original.path, test, modules);
    text::parse(original.text, read).unwrap_or_default().names
}

/// Whether a finding counts where a command is judged, which no tool of tests runs.
pub fn counts_for_commands(finding: &Finding) -> bool {
    let root = finding.name.split('.').next().unwrap_or_default();
    let is_of_tests = finding.kind == FindingKind::ReachesTestTools && RUN_TESTS.contains(&root);
    !is_of_tests && !OF_TESTS.contains(&finding.kind)
}

/// What the strict rules find in a submission, in the order of its lines.
///
/// # Errors
/// The submission cannot be read. Of an original that cannot be read only what needs it is left out.
pub fn strict_findings(
    submission: &str,
    scenery: Scenery<'_>,
    against: Against<'_>,
) -> Result<Vec<Finding>, Unreadable> {
    let Against { original, defined, corpus } = against;
    let read = |source: Parsed<'_>| Outside::of(source, original.path, defined, scenery.modules);
    let outside = text::parse(original.text, read).unwrap_or_default();
    let candidates = text::parse(submission, |parsed| {
        let mut found = Candidates { parsed, all: Vec::new(), decorator: None };
        let replaced = match locate::locate(parsed.body, scenery.test) {
            Found::Function { definition, .. } if outside.is_defined => Some(definition.range()),
            _ => None,
        };
        tools::look(&mut found, scenery.test, replaced);
        rebinding::look(&mut found, scenery.test, replaced);
        outside::look(&mut found, &outside, &Bindings::by_name(scenery.modules), corpus);
        literals::look(&mut found, corpus);
        found.all
    })?;
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let known = corpus.known_lines(submission)?;
    let excuses = |one: &Candidate| {
        let known_decorator = one.decorator.is_none_or(|key| corpus.has_decorator(key));
        !one.always && known_decorator && known.has(one.first, one.last)
    };
    // A module that a line of the repository imports may be used on other lines as well.
    let imported: BTreeSet<&str> =
        candidates.iter().filter(|one| excuses(one)).filter_map(|one| one.module).collect();
    let counts = |one: &&Candidate| !excuses(one) && !one.module.is_some_and(|it| imported.contains(it));
    let mut found: Vec<Finding> =
        candidates.iter().filter(counts).map(|one| finding(submission, one)).collect();
    found.sort_by(|one, other| (one.line, one.kind, &one.name).cmp(&(other.line, other.kind, &other.name)));
    found.dedup();
    let mut kept = BTreeMap::new();
    found.retain(|one| {
        let count = kept.entry(one.kind).or_insert(0);
        *count += 1;
        *count <= KEPT
    });
    Ok(found)
}

fn finding(text: &str, one: &Candidate) -> Finding {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text::Lines::of(text);
    let start = lines.start(one.first).unwrap_or_default();
    let line = text[start..].split(['\n', '\r']).next().unwrap_or_default();
    let cut = |text: &str| text.chars().take(EVIDENCE).collect::<String>();
    Finding { kind: one.kind, line: one.first, name: cut(&one.name), evidence: cut(line.trim()) }
}

#[cfg(test)]
mod tests;
