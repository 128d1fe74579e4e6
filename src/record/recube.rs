//! What `ReCUBE` makes of a repository: candidates, instances, and the cases that judge them.

use serde::{Deserialize, Serialize};

use super::id::InstanceId;
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
    /// Whether half of the bodies have to be noticed.
    pub require_noticed: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { min_groups: 5, max_groups: 30, min_functions: 3, min_exercised: 0.5, require_noticed: false }
    }
}

/// Whether a test sees the target as other files do, or knows what is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    External,
    Internal,
}

impl Kind {
    /// The one spelling of this kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::External => "external",
            Kind::Internal => "internal",
        }
    }
}

/// Why a group is of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A test calls a function with a private name.
    TestCallsPrivate,
    /// A file that is neither the target nor a test calls into it.
    OtherFileCalls,
    /// Tests call what other files use as well.
    TestCallsShared,
    /// Tests call what no other file uses.
    TestCallsUnshared,
    /// Nothing in the tree calls: pytest, a library or the body of a module does.
    NoCaller,
}

impl Reason {
    /// The kind that follows.
    pub fn kind(self) -> Kind {
        match self {
            Reason::OtherFileCalls | Reason::TestCallsShared => Kind::External,
            Reason::TestCallsPrivate | Reason::TestCallsUnshared | Reason::NoCaller => Kind::Internal,
        }
    }

    /// The one spelling of this reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::TestCallsPrivate => "test-calls-private",
            Reason::OtherFileCalls => "other-file-calls",
            Reason::TestCallsShared => "test-calls-shared",
            Reason::TestCallsUnshared => "test-calls-unshared",
            Reason::NoCaller => "no-caller",
        }
    }
}

/// Who calls into the target: tests, other files, both, or nobody in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    Direct,
    Through,
    Both,
    None,
}

impl Way {
    /// The one spelling of this way.
    pub fn as_str(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Through => "through",
            Way::Both => "both",
            Way::None => "none",
        }
    }
}

/// Why a candidate is not a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetCause {
    NotMaskable,
    FewFunctions,
    FewTests,
    LittleExercised,
    MaskSurvives,
    BodiesUnnoticed,
    RefereeDiffers,
    /// Other targets were named.
    NotNamed,
}

impl TargetCause {
    /// The one spelling of this cause.
    pub fn as_str(self) -> &'static str {
        match self {
            TargetCause::NotMaskable => "not-maskable",
            TargetCause::FewFunctions => "few-functions",
            TargetCause::FewTests => "few-tests",
            TargetCause::LittleExercised => "little-exercised",
            TargetCause::MaskSurvives => "mask-survives",
            TargetCause::BodiesUnnoticed => "bodies-unnoticed",
            TargetCause::RefereeDiffers => "referee-differs",
            TargetCause::NotNamed => "not-named",
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
    pub measured: Measured,
    /// Functions without which a case does not pass.
    pub noticed_functions: u64,
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
