//! What `ReCUBE` makes of a repository: candidates, instances, and the cases that judge them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::explanation::Explanation;
use super::id::InstanceId;
use super::spelling::spelling;
use super::trace::FunctionCalls;

/// The scope that has all files of the tree.
pub const WHOLE_TREE: &str = "*";

/// What a configuration asks of targets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bounds {
    /// Kept groups that reach a target; at least so many.
    pub min_groups: u32,
    /// Groups that judge; more only as long as each adds lines. 0: no limit.
    pub max_groups: u32,
    /// Functions with a body; at least so many.
    pub min_functions: u32,
    /// Share of the functions with a body that groups call; from 0 to 1.
    pub min_exercised: f64,
    /// Tokens of a target, at most so many.
    pub max_target_tokens: u32,
    /// Whether half of the bodies have to be noticed.
    pub require_noticed: bool,
    /// Whether each target of a scope is also an instance that is shown the whole tree.
    pub large: bool,
    /// Small changes of a target that the cases are asked to notice, at most so many.
    pub mutants: u32,
    /// Globs of files that prompts do not show.
    pub context_exclude: Vec<String>,
}

impl Default for Bounds {
    fn default() -> Self {
        let apart = ["docs/**", "doc/**", "examples/**", "benchmarks/**", ".github/**"];
        Bounds {
            min_groups: 5,
            max_groups: 30,
            min_functions: 3,
            min_exercised: 0.5,
            max_target_tokens: 16384,
            require_noticed: false,
            large: false,
            mutants: 0,
            context_exclude: apart.map(str::to_owned).into(),
        }
    }
}

/// A part of a tree that is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scope {
    pub name: String,
    /// Globs of its files; an `__init__.py` above one of them belongs to it too.
    pub paths: Vec<String>,
}

/// Tests that come with a repository, each file for one target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GivenTests {
    /// SHA-256 of the folder.
    pub sha256: String,
    /// Target of each test file, by its path in the tree; none where the file's name says it.
    pub files: BTreeMap<String, Option<String>>,
    /// By target and name of a test function.
    pub kinds: BTreeMap<String, BTreeMap<String, Kind>>,
}

impl GivenTests {
    /// The target of each test file, both by path in the tree.
    ///
    /// # Errors
    /// Test files without a target in the tree, in words.
    pub fn targets<'a>(
        &self,
        paths: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<BTreeMap<String, String>, Vec<String>> {
        let (mut targets, mut problems) = (BTreeMap::new(), Vec::new());
        for (file, named) in &self.files {
            let name = file.rsplit('/').next().unwrap_or(file);
            let is_its = |path: &&str| match named {
                Some(target) => target == path,
                None => path.ends_with(".py") && test_name(path) == name,
            };
            let mut found = paths.clone().filter(is_its);
            match (found.next(), found.next()) {
                (Some(target), None) => drop(targets.insert(file.clone(), target.to_owned())),
                (Some(one), Some(other)) => {
                    problems.push(format!("{file} could be the tests of {one} and of {other}"));
                }
                (None, _) => problems.push(match named {
                    Some(target) => format!("{file} is for {target}, which the tree does not have"),
                    None => format!("{file} has the name of no file of the tree"),
                }),
            }
        }
        if problems.is_empty() { Ok(targets) } else { Err(problems) }
    }
}

/// The name that the file with the tests of a target has.
pub fn test_name(target: &str) -> String {
    format!("{}_test.py", target.strip_suffix(".py").unwrap_or(target).replace('/', "_"))
}

spelling! {
    /// Whether a test sees the target as other files do, or knows what is inside.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind {
        External "external",
        Internal "internal",
    }
}

spelling! {
    /// Why a group is of its kind.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Reason {
        /// A test calls a function with a private name.
        TestCallsPrivate "test-calls-private",
        /// A file that is neither the target nor a test calls into it.
        OtherFileCalls "other-file-calls",
        /// Tests call what other files use as well.
        TestCallsShared "test-calls-shared",
        /// Tests call what no other file uses.
        TestCallsUnshared "test-calls-unshared",
        /// Nothing in the tree calls: pytest, a library or the body of a module does.
        NoCaller "no-caller",
        /// Whoever wrote the test says so.
        Given "given",
    }
}

impl Reason {
    /// The kind that follows; none where it was given.
    pub fn kind(self) -> Option<Kind> {
        match self {
            Reason::OtherFileCalls | Reason::TestCallsShared => Some(Kind::External),
            Reason::TestCallsPrivate | Reason::TestCallsUnshared | Reason::NoCaller => Some(Kind::Internal),
            Reason::Given => None,
        }
    }
}

spelling! {
    /// Who calls into the target: tests, other files, both, or nobody in the tree.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Way {
        Direct "direct",
        Through "through",
        Both "both",
        None "none",
    }
}

spelling! {
    /// Why a candidate is not a target.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum TargetCause {
        NotMaskable "not-maskable",
        FewFunctions "few-functions",
        TooLong "too-long",
        FewTests "few-tests",
        LittleExercised "little-exercised",
        MaskSurvives "mask-survives",
        BodiesUnnoticed "bodies-unnoticed",
        Leaks "leaks",
        RefereeDiffers "referee-differs",
        /// Other targets were named.
        NotNamed "not-named",
    }
}

impl TargetCause {
    /// All, in the order in which they are asked.
    pub const ALL: [TargetCause; 10] = [
        TargetCause::NotMaskable,
        TargetCause::FewFunctions,
        TargetCause::TooLong,
        TargetCause::FewTests,
        TargetCause::LittleExercised,
        TargetCause::NotNamed,
        TargetCause::Leaks,
        TargetCause::RefereeDiffers,
        TargetCause::MaskSurvives,
        TargetCause::BodiesUnnoticed,
    ];

    /// Meaning, what leads to it, and what can be done.
    pub fn explained(self) -> Explanation {
        let (meaning, origin, remedy) = match self {
            TargetCause::NotMaskable => (
                "the file cannot be read as Python, so it cannot be masked",
                "The evidence has the reason and the line: another encoding than UTF-8, a null byte, syntax that is not Python's.",
                "Nothing: such a file is not a target.",
            ),
            TargetCause::FewFunctions => (
                "fewer functions than asked for have a body",
                "A body is more than `...`, `pass` or `raise NotImplementedError`. There would be next to nothing to write again.",
                "`min_functions` in [recube] asks for less.",
            ),
            TargetCause::TooLong => (
                "it has more tokens than asked for",
                "An answer of the published settings, 16,384 tokens at most, could not hold it. Tokens are those of cl100k_base.",
                "`max_target_tokens` in [recube] allows more.",
            ),
            TargetCause::FewTests => (
                "fewer kept groups than asked for reach the file",
                "A group reaches a file when it calls a function of it. `gistmill list --tests` says why others were dropped.",
                "`min_groups` in [recube] asks for less.",
            ),
            TargetCause::LittleExercised => (
                "groups call too small a share of its functions",
                "Most of what an agent writes would not be seen by any test.",
                "`min_exercised` in [recube] asks for less.",
            ),
            TargetCause::NotNamed => (
                "other files are named as targets",
                "A repository with `[[repo.target]]` has these targets and no others.",
                "Name the file too, or leave all `[[repo.target]]` out.",
            ),
            TargetCause::Leaks => (
                "the original can be read in an installed package that the tests need",
                "Its copy cannot be taken out of an agent's image without breaking what imports it. That of pip can: nothing imports it.",
                "Leave the requirement out that brings it, where the tests pass without.",
            ),
            TargetCause::RefereeDiffers => (
                "the original, handed in like an answer, does not pass all of its cases",
                "The tests need something that a tree without history, or without byte code, does not have.",
                "Read the evidence, which names the first case.",
            ),
            TargetCause::MaskSurvives => (
                "after the gates too few groups have a case that needs the bodies",
                "Cases that pass with the mask, or with imports alone (the gates `masked` and `imports-kept`), do not judge.",
                "`min_groups` in [recube] asks for less.",
            ),
            TargetCause::BodiesUnnoticed => (
                "the cases notice fewer than half of the bodies",
                "Each body was masked alone, and every case still passed. `require_noticed` drops such files; without it this is a flag.",
                "Leave `require_noticed` out, or let more groups judge with `max_groups`.",
            ),
        };
        Explanation {
            name: self.as_str().to_owned(),
            kind: "target cause",
            meaning: meaning.to_owned(),
            origin: origin.to_owned(),
            remedy: remedy.to_owned(),
        }
    }
}

/// What was measured of a candidate; counts are 0 where it was dropped before they were known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub target_lines: u64,
    /// Statements of the bodies that are masked, docstrings aside.
    pub target_statements: u64,
    /// Functions, stubs included.
    pub functions: u64,
    /// Functions with a body.
    pub masked_functions: u64,
    /// Those that a group which reaches the target calls.
    pub called_functions: u64,
    pub docstring_none: u64,
    pub docstring_line: u64,
    pub docstring_sections: u64,
    pub docstring_full: u64,
    /// Kept groups that reach it.
    pub reached_by: u64,
    /// Files that call into it, tests aside.
    pub callers: Vec<String>,
    /// Calls into it by all groups that reach it.
    pub trace_calls: u64,
    pub imports_removed: u64,
    /// Why the published full-context prompt would show its bodies.
    pub published_leak: Option<String>,
}

/// A candidate, kept or dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRow {
    /// From the root of the tree.
    pub file: String,
    pub cause: Option<TargetCause>,
    /// What proves the cause, in words.
    pub evidence: Option<String>,
    /// Place among what is kept, 1-based.
    pub rank: Option<u64>,
    pub published: bool,
    pub measured: Measured,
}

/// A case of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceCase {
    pub group_id: String,
    pub case_id: String,
    pub kind: Kind,
    pub reason: Reason,
    pub way: Way,
    /// The gate that it passed and should not have; none for one that judges.
    pub left_out: Option<String>,
}

/// A target that is published, without what follows from the whole dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedTarget {
    pub instance_id: InstanceId,
    pub file: String,
    /// The part of the tree that is shown.
    pub scope: String,
    /// Whether it is one of the large set, which is shown all there is.
    pub large: bool,
    pub measured: Measured,
    /// Functions without which a case does not pass.
    pub noticed_functions: u64,
    /// Functions with a body that every case passes without, by qualified name.
    pub unnoticed: Vec<String>,
    /// Small mutants after which a case does not pass, of all that were made.
    #[serde(default)]
    pub mutants: (u64, u64),
    /// The mask.
    pub masked: String,
    pub masked_sha256: String,
    pub original_sha256: String,
    pub flags: Vec<String>,
    /// Those that judge, and those that a gate took.
    pub cases: Vec<InstanceCase>,
    /// Agreeing attempts: the fewest that one of its groups has.
    pub attempts: u32,
    /// Files of the tree that an agent does not see beside the original: tests, byte code and copies of the target.
    pub hidden_files: Vec<String>,
    /// Files in which the original can be read: of the tree by path, of the environment as `venv/…`.
    pub leaks: Vec<String>,
    /// All of the repository that a prompt shows, with the mask in the place of the target.
    pub context: String,
    /// Tokens of the context, and of the original, where they could be counted.
    pub context_tokens: Option<u64>,
    pub target_tokens: Option<u64>,
    /// Calls of each chosen group into the target.
    pub traces: Vec<(String, FunctionCalls)>,
}

impl PublishedTarget {
    /// The cases that judge.
    pub fn judging(&self) -> impl Iterator<Item = &InstanceCase> {
        self.cases.iter().filter(|case| case.left_out.is_none())
    }
}

/// What a repository contributes to a dataset of `ReCUBE`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecubeRecord {
    /// By path.
    pub targets: Vec<TargetRow>,
    /// By path.
    pub published: Vec<PublishedTarget>,
    /// What the repository is about, as the configuration says.
    pub domain: Option<String>,
}
