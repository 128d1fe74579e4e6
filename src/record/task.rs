//! What an agent is given and how it is judged, without a word of any harness.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use super::codetaste::{Bounds, Scripts, Side};
use super::entry::EntryCommand;
use super::id::{InstanceId, RepoSlug};
use super::outcome::{FileChange, Outcome};
use super::patch::Patch;
use super::variant::VariantCase;

/// Endings of files that are code, or that can hold code: what a submission has to do without.
pub const CODE_ENDINGS: [&str; 22] = [
    "py", "pyi", "pyw", "pyx", "pxd", "pyc", "pyo", "so", "pyd", "ipynb", "pth", "zip", "whl", "egg", "tar",
    "tgz", "gz", "bz2", "xz", "c", "h", "cpp",
];

/// Files in which pytest looks for its settings.
pub fn pytest_settings() -> impl Iterator<Item = &'static str> {
    // The runner reads the same file.
    include_str!("../runner/python/gistmill_runner/pytest_settings.txt").lines()
}

/// One task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: InstanceId,
    /// The one spelling of its family.
    pub family: &'static str,
    pub slug: RepoSlug,
    pub commit: String,
    /// Version of the release, or the first digits of the commit.
    pub version: String,
    /// RFC 3339 time of the pin.
    pub created_at: String,
    /// What it is about, in one line.
    pub title: String,
    /// Difficulty tier.
    pub tier: &'static str,
    /// SPDX expression of the repository's license, where it is known.
    pub license: Option<String>,
    /// Image that holds the tree and its environment, where one was made.
    pub image: Option<String>,
    /// Where the tree is inside.
    pub workdir: String,
    /// What the agent is asked to do, in Markdown.
    pub instruction: String,
    /// What of the tree the agent does not see.
    pub mask: Patch,
    /// A solution that is known to be judged right, where there is one.
    pub gold: Option<Patch>,
    /// The command whose behaviour counts.
    pub command: String,
    /// Files of the tree that run, the test's own first.
    pub files: Vec<String>,
    pub measured: Measured,
    /// Requests to models that answer in one go; where there are none they are made of the instruction and the files.
    pub one_shot: Vec<OneShot>,
    pub judging: Judging,
}

impl Task {
    /// Whether it has a solution that is known to be judged right.
    pub fn has_solution(&self) -> bool {
        let golden = self.judging.suite.as_ref().and_then(|suite| suite.golden.as_ref());
        self.gold.is_some() || golden.is_some()
    }
}

/// A request to a model that answers in one go, with all that it is to know in the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneShot {
    /// A name that is part of a file's.
    pub setting: &'static str,
    pub prompt: String,
    /// Tokens that the answer may have.
    pub max_tokens: u32,
    /// Tokens of what the prompt shows of the repository, where they were counted.
    pub context_tokens: Option<u64>,
}

/// The most that attempts took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    /// The longest that one took; none where that is not known.
    pub slowest: Option<Duration>,
    /// The most memory in bytes that a process of one had at a time; none where that is not known.
    pub memory: Option<u64>,
}

impl Demand {
    /// The most of both.
    #[must_use]
    pub fn max(self, other: Demand) -> Self {
        Demand { slowest: self.slowest.max(other.slowest), memory: self.memory.max(other.memory) }
    }
}

/// What was measured when its test was proved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    pub demand: Demand,
    /// Attempts that agree.
    pub attempts: u32,
    /// Upper bound of the failure rate, with 95 % confidence.
    pub flake_bound: f64,
    /// Conditions under which it showed the same.
    pub worlds: Vec<String>,
}

/// How what an agent hands in is judged, whatever harness runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judging {
    /// The file that the agent hands in, by its path in the tree.
    pub submission: String,
    /// Endings of the files that are taken out of the tree before a submission runs in it.
    pub hidden: &'static [&'static str],
    /// Files that are laid over the tree before a submission runs in it.
    pub before: Patch,
    /// What is run, in this order.
    pub run: Vec<EntryCommand>,
    /// The tests that must be in what is handed in as they are in the repository.
    pub originals: Vec<OriginalTest>,
    /// Where a command is judged and not tests: what the file is given, and what it must show.
    pub given: Vec<JudgedRun>,
    /// SHA-256 of the repository's Python files, where they are known: what they say a submission may say as well.
    pub code: Vec<String>,
    /// The cases that are judged, of all commands.
    pub expect: Vec<JudgedCase>,
    /// Whether no other case may be there.
    pub is_exact: bool,
    pub reward: Reward,
    /// Options that pytest gets in its environment.
    pub options: Vec<String>,
    /// Variables that the commands need.
    pub variables: BTreeMap<String, String>,
    /// What a run of each command may take.
    pub limit: Duration,
    /// Where a patch to the whole tree is handed in: what judges it, in the place of commands and originals.
    pub suite: Option<JudgedSuite>,
}

impl Judging {
    /// What decides about a reward, in a word.
    pub fn by(&self) -> &'static str {
        match &self.suite {
            Some(_) => "suite",
            None if self.is_of_command() => "command",
            None => "pytest",
        }
    }

    /// Whether a command is judged, and not tests.
    pub fn is_of_command(&self) -> bool {
        !self.given.is_empty()
    }
}

/// How a patch to a whole tree is judged: its suite within bounds, and patterns of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedSuite {
    /// What is handed to pytest; nothing: what it collects by itself.
    pub tests: Vec<String>,
    /// What runs the suite in the place of pytest, and the script of bash that runs them.
    pub scripts: Scripts,
    pub run: String,
    pub bounds: Bounds,
    pub patterns: Vec<JudgedPattern>,
    /// Folders that are looked through for what may not be left alone, and only in files that the patch puts there.
    pub ignored: &'static [&'static str],
    /// The patch that is known to be right, where solutions are passed on.
    pub golden: Option<Vec<u8>>,
    /// Texts for agents one after the other, in the place of one instruction.
    pub steps: Vec<Step>,
    /// What no agent may see: lines that the golden patch adds and the tree does not have, and names of patterns.
    pub secrets: Vec<String>,
    /// Whether descriptions may have it all the same.
    pub may_tell: bool,
}

/// A text for one of several agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// A name that is part of a file's.
    pub name: &'static str,
    pub text: String,
    /// Whether it is for whoever chooses between what agents wrote.
    pub is_judge: bool,
}

/// A pattern of code: a property of single tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JudgedPattern {
    pub id: String,
    pub side: Side,
    pub kind: String,
    pub name: String,
    /// The files that it looks into; none: all.
    pub only: Vec<String>,
    /// Files that it does not look into.
    pub but: Vec<String>,
}

impl Judging {
    /// Node IDs that are handed to pytest.
    pub fn tests(&self) -> Vec<&str> {
        self.run.iter().filter_map(EntryCommand::node).collect()
    }
}

/// A test that an agent hands in unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalTest {
    /// `Class::function`, as what is handed in has it.
    pub name: String,
    /// Its definition with decorators; none where it is not known, or code is not passed on.
    pub source: Option<String>,
    /// The name under which its file defines it.
    pub defined_as: String,
    /// How it is put into what is handed in; none where its file is not known.
    pub text: Option<Vec<Part>>,
    /// Edited texts of it; none where they are not known.
    pub variants: Vec<JudgedVariant>,
    /// Names that it takes from outside the repository, and what they are: a dotted name, none for a builtin.
    pub outside: BTreeMap<String, Option<String>>,
}

/// An edited test, and what it shows in the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JudgedVariant {
    pub kind: &'static str,
    pub text: Vec<Part>,
    pub cases: Vec<VariantCase>,
}

/// A run of what is handed in for a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JudgedRun {
    /// What is another input than the command's; none for its own.
    pub kind: Option<&'static str>,
    pub arguments: Vec<String>,
    /// What standard input has; none where it is empty, or a file of the tree.
    pub stdin: Option<String>,
    pub stdin_file: Option<String>,
    /// The folder of the tree that it runs in; empty for the root.
    pub cwd: String,
    pub env: BTreeMap<String, String>,
    /// Files of the tree that say something else.
    pub files: BTreeMap<String, String>,
    /// Regular expressions of the paths whose changes count; empty for all.
    pub watched: Vec<String>,
    pub shows: Shown,
}

/// What a run of a command must show. Texts are normalized: what replaces what may differ is in angle brackets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    pub files: Vec<FileChange>,
}

/// A part of a test's text, which is put into a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Part {
    /// A line begins that is moved to the depth of what it takes the place of.
    Line,
    Text(String),
    OneOf(Choices),
    /// Statements on one line; `pass` where there is none.
    Statements {
        statements: Vec<Choices>,
    },
}

/// Texts, each with a name. The first counts whose name the file binds and that its own test has; else the first whose name the file
/// binds and its own test has; else the first whose name the file binds, or that has none.
pub type Choices = Vec<(Option<String>, Option<String>)>;

/// Names of a file in which a test is put.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamesOfFile {
    /// What its module binds.
    pub bound: BTreeSet<String>,
    /// The dotted names of its own test, with all their beginnings, that are not the test's own. A module and a function can have
    /// the same name: `attr.s` of the repository is `s` where a file binds `attr` to something else.
    pub used: BTreeSet<String>,
}

/// The text that counts in a file with these names.
pub fn chosen<'a>(choices: &'a Choices, names: &NamesOfFile) -> Option<&'a str> {
    let is_bound = |name: &String| names.bound.contains(name);
    let is_used = |name: &Option<String>| name.as_ref().is_some_and(|name| names.used.contains(name));
    let fit: Vec<_> = choices.iter().filter(|(name, _)| name.as_ref().is_none_or(is_bound)).collect();
    let best = fit.iter().find(|(name, text)| name.is_some() && is_used(text));
    let found = best.or_else(|| fit.iter().find(|(name, _)| is_used(name))).or(fit.first());
    found.and_then(|(_, text)| text.as_deref())
}

/// What judging makes of the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reward {
    /// 1 when every case ends as it must, else 0.
    All,
    /// The share of cases that end as they must.
    Share,
}

/// A case and how it must end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCase {
    /// Node ID in the submission. `<root>`, `<venv>` and `<tmp>` replace places of the machine.
    pub name: String,
    pub outcome: Outcome,
}
