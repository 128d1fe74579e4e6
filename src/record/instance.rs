//! A published instance and the rows of the dataset.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codetaste::PublishedPair;
use super::entry::{Entry, EntryCommand, Origin, PYTEST, Source, Stdin};
use super::evidence::RepositoryEvidence;
use super::family::Family;
use super::id::{InstanceId, Name, RepoSlug};
use super::outcome::{CommandResult, Outcome};
use super::recube::RecubeRecord;
use super::spelling::spelling;
use super::strength::Strength;
use super::trace::check_path;
use super::variant::Variant;
use super::witness::{Witness, WitnessColumns};

spelling! {
    /// Difficulty tier.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Tier, ALL {
        Easy "easy",
        Medium "medium",
        Hard "hard",
    }
}

spelling! {
    /// A difficulty axis, by the name of its column.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Axis {
        TraceLength "trace_length",
        UniqueFiles "unique_files",
    }
}

/// The first columns of `instances`, in every family: which instance of which repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub instance_id: InstanceId,
    /// The kind of task; a dataset has one.
    #[serde(default)]
    pub family: Family,
    pub slug: RepoSlug,
    /// The slug, by the name that SWE-bench's readers look for.
    #[serde(default)]
    pub repo: String,
    pub commit: String,
    /// The commit where the pin is one; none for an archive.
    #[serde(default)]
    pub base_commit: Option<String>,
    /// Version of the release, or the first digits of the commit.
    #[serde(default)]
    pub version: String,
    /// RFC 3339 time of the pin, not of the build.
    #[serde(default)]
    pub created_at: String,
    /// URL, `path:name` or `pypi:name==version`.
    pub source: String,
    pub license: Option<String>,
    pub python: String,
}

/// A row of `instances` of Gistify, in the order of the columns. Units: durations in milliseconds, counts plain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    #[serde(flatten)]
    pub head: Head,
    pub group_id: String,
    pub test_file: String,
    /// Class chain joined with `::`; none for a plain function.
    pub test_class: Option<String>,
    pub test_function: String,
    /// The test's definition with its decorators; none where its file does not have it, or code is not passed on.
    #[serde(default)]
    pub test_source: Option<String>,
    /// First and last line of that in `test_file`, 1-based.
    #[serde(default)]
    pub test_line_start: Option<u32>,
    #[serde(default)]
    pub test_line_end: Option<u32>,
    pub entry_command: String,
    /// What an agent is asked to do, in Markdown.
    #[serde(default)]
    pub prompt: String,
    pub case_ids: Vec<String>,
    /// What each case showed, in the order of `case_ids`: JSON objects of [`Expected`].
    #[serde(default)]
    pub expected: Vec<String>,
    /// Cases that pass, by the names that they have in the submission.
    #[serde(default, rename = "FAIL_TO_PASS")]
    pub fail_to_pass: Vec<String>,
    /// Always empty: without a submission there is nothing that passes.
    #[serde(default, rename = "PASS_TO_PASS")]
    pub pass_to_pass: Vec<String>,
    pub n_cases: u32,
    pub trace_length: u64,
    pub trace_length_package: u64,
    pub trace_length_total: u64,
    /// Calls into the tree in child interpreters that could be followed; not part of the trace length.
    pub child_calls: u64,
    pub unique_files: u32,
    pub unique_functions: u32,
    pub executed_lines: Option<u64>,
    pub import_calls: u64,
    pub import_files: Vec<String>,
    pub files: Vec<String>,
    pub trace_stable: bool,
    pub tier: Tier,
    pub hard_axes: Vec<Axis>,
    /// Agreeing attempts (fork tree and cold).
    pub attempts: u32,
    /// 95 % upper bound of the failure rate.
    pub flake_bound: f64,
    pub worlds: Vec<String>,
    /// Always null here: durations vary between builds, see `groups.duration_ms`.
    pub duration_ms: Option<f64>,
    /// Directory of the environment inside the dataset: `environments/<slug>`.
    pub environment: String,
    pub lock_sha256: String,
    /// Tag of the container image with this environment; none where there is none.
    #[serde(default)]
    pub image: Option<String>,
    /// Its id in the engine that made it.
    #[serde(default)]
    pub image_id: Option<String>,
    /// Hash of the definitions that run, the test's own included: the same in two versions, the same code.
    #[serde(default)]
    pub code_sha256: Option<String>,
    /// What is special about it: those of its group, and what the referee found out on the original.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Files of the tree, other than code, that its cases open.
    #[serde(default)]
    pub data_files: Vec<String>,
    /// `file::Class::function` of the test's definition, where that is another file than `test_file`.
    #[serde(default)]
    pub test_defined_in: Option<String>,
    /// Edited texts of its test that show what is not the original; none in older datasets.
    #[serde(default)]
    pub variants: Option<u32>,
    /// `pytest`, or the kind of the command where it is not a test; then the next columns say which.
    #[serde(default = "pytest")]
    pub kind: String,
    /// Program and arguments, as no shell has to read them.
    #[serde(default)]
    pub argv: Option<Vec<String>>,
    /// What standard input has; none where it is empty, or a file of the tree.
    #[serde(default)]
    pub stdin: Option<String>,
    #[serde(default)]
    pub stdin_file: Option<String>,
    /// The folder of the tree that it runs in; empty for the root.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Further environment variables of a command, `NAME=value` each.
    #[serde(default)]
    pub env: Option<Vec<String>>,
    /// Globs of the files whose changes count; empty for all below the tree.
    #[serde(default)]
    pub watched_files: Option<Vec<String>>,
    /// What names it: `configured`, or a kind of file with its path and line.
    #[serde(default)]
    pub origin: Option<String>,
    #[serde(flatten)]
    pub witness: WitnessColumns,
    #[serde(flatten)]
    pub strength: Strength,
}

fn pytest() -> String {
    PYTEST.to_owned()
}

impl Instance {
    /// Whether it is about a test.
    pub fn is_test(&self) -> bool {
        self.kind == PYTEST
    }

    /// Refuses a command whose columns do not say all of it, or name what is not in the tree.
    ///
    /// # Errors
    /// Why, with the instance.
    pub(crate) fn check_command(&self) -> Result<(), String> {
        if self.is_test() {
            return Ok(());
        }
        let folder = self.cwd.as_deref().filter(|path| !path.is_empty());
        for path in self.stdin_file.as_deref().into_iter().chain(folder) {
            check_path(path).map_err(|why| format!("{}: {why}", self.instance_id))?;
        }
        if self.env.is_some() && self.entry().is_some() {
            return Ok(());
        }
        Err(format!("{}: the dataset does not say all of its command", self.instance_id))
    }

    /// The command that it is about; none for a test, and where the columns do not say a command.
    pub fn entry(&self) -> Option<Entry> {
        let command = EntryCommand::of_words(self.argv.as_deref().filter(|_| !self.is_test())?).ok()?;
        let stdin = self.stdin.clone().map(Stdin::Text);
        let variables = self.env.iter().flatten().filter_map(|one| one.split_once('='));
        let expected = self.expected.iter().find_map(|text| serde_json::from_str::<Expected>(text).ok());
        let status = expected.and_then(|one| one.command).map_or(0, |command| command.status);
        Some(Entry {
            name: Name::new(&self.test_function).ok()?,
            command,
            stdin: stdin.or_else(|| self.stdin_file.clone().map(Stdin::File)),
            env: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            cwd: self.cwd.clone().unwrap_or_default(),
            exit: u8::try_from(status).unwrap_or_default(),
            files: self.watched_files.clone().unwrap_or_default(),
            origin: Origin { source: Source::Configured, file: None, line: None },
            given: BTreeMap::new(),
            help: Vec::new(),
        })
    }
}

impl Instance {
    /// Whether it is a command of which the dataset does not say what it shows: attempts may show it differently where only
    /// outcomes are compared.
    pub fn is_unsaid_command(&self) -> bool {
        let said = |one: Expected| one.stdout.is_some() && one.stderr.is_some() && one.command.is_some();
        let expected = self.expected.first().and_then(|text| serde_json::from_str::<Expected>(text).ok());
        !self.is_test() && !expected.is_some_and(said)
    }
}

impl Deref for Instance {
    type Target = Head;

    fn deref(&self) -> &Head {
        &self.head
    }
}

impl DerefMut for Instance {
    fn deref_mut(&mut self) -> &mut Head {
        &mut self.head
    }
}

/// What a case showed in every attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    pub case_id: String,
    /// None where the attempts of a group that a rule keeps differ; so are the texts.
    pub outcome: Option<Outcome>,
    /// Type of the exception, where one was raised.
    pub exception: Option<String>,
    /// Normalized output.
    pub stdout: Option<String>,
    pub stderr: Option<String>,
    /// Of a command: its status and what it changed in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandResult>,
}

/// The definition of a test, as it is in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestSource {
    /// Decorators included, without a newline at the end.
    pub text: String,
    /// First and last line, 1-based.
    pub lines: (u32, u32),
}

/// What one repository contributes to a dataset.
#[derive(Debug, Clone)]
pub struct Contribution {
    /// The kind of task that is made of it.
    pub family: Family,
    pub evidence: RepositoryEvidence,
    /// Those of its groups that are in `instances`.
    pub published: BTreeSet<InstanceId>,
    /// Where they were asked for; also of groups that are not published for want of one.
    pub witnesses: BTreeMap<InstanceId, Witness>,
    /// Where it was measured.
    pub strengths: BTreeMap<InstanceId, Strength>,
    /// Edited texts of the tests of what is published; none of what is not published for want of one.
    pub variants: BTreeMap<InstanceId, Vec<Variant>>,
    /// The sources of their tests, where they were found.
    pub tests: BTreeMap<InstanceId, TestSource>,
    /// What `ReCUBE` makes of it; `published` then has the groups that judge.
    pub recube: Option<RecubeRecord>,
    /// The pair of commits that it is, in the family `codetaste`.
    pub codetaste: Option<PublishedPair>,
}

impl Contribution {
    /// How many instances it has.
    pub fn size(&self) -> usize {
        match (&self.recube, &self.codetaste) {
            (Some(recube), _) => recube.published.len(),
            (None, Some(_)) => 1,
            (None, None) => self.published.len(),
        }
    }

    /// The contribution without the variants that the witnesses do not pass.
    #[must_use]
    pub fn without_dropped_variants(mut self) -> Self {
        for (id, variants) in &mut self.variants {
            let dropped = self.witnesses.get(id).map(|witness| &witness.dropped_variants[..]);
            let mut at = 0..;
            variants.retain(|_| !dropped.unwrap_or_default().contains(&at.next().unwrap_or_default()));
        }
        self
    }
}

/// A repository that could not be finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedRepository {
    pub slug: RepoSlug,
    /// Stage in which it failed: `source`, `environment`, `collect` …
    pub stage: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
}
