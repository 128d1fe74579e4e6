//! What `CodeTaste` makes of a pair of commits: runs of its suite, patterns, and why a pair is not an instance.

pub mod explanation;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::id::{InstanceId, RepoSlug, hash_parts, sha256_hex};
use super::spelling::spelling;

/// Scripts that run a suite in an image of the user's, by their path: `run_tests`, what sets it up, and what else they need.
/// None where the suite is pytest's.
pub type Scripts = BTreeMap<String, Vec<u8>>;

/// What runs a suite, as columns say it.
pub const PYTEST: &str = "pytest";
pub const RUN_TESTS: &str = "run_tests";

/// What runs a suite with these scripts.
pub fn suite_of(scripts: &Scripts) -> &'static str {
    if scripts.is_empty() { PYTEST } else { RUN_TESTS }
}

/// The hash of scripts: their paths and contents.
pub fn sha256_of(scripts: &Scripts) -> String {
    let parts = scripts.iter().flat_map(|(path, bytes)| [path.clone(), sha256_hex(bytes)]);
    hash_parts(&parts.collect::<Vec<_>>())
}

/// What a configuration asks of pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Whole runs of the suite on each tree.
    pub runs: u32,
    /// Tests that a run has; at least so many.
    pub min_tests: u32,
    /// Share of them that passes; from 0 to 1.
    pub min_pass_rate: f64,
    /// What a whole run may take, for each of the attempts that are made at the same time.
    pub suite_timeout: Duration,
    /// Patterns of a pair; at least so many.
    pub min_patterns: u32,
    /// Share of the golden patch's lines that they match; from 0 to 1.
    pub min_coverage: f64,
    /// Whether a pair without patterns of its own gets those that a program finds.
    pub mine: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            runs: 5,
            min_tests: 10,
            min_pass_rate: 0.3,
            suite_timeout: Duration::from_mins(15),
            min_patterns: 5,
            min_coverage: 0.25,
            mine: true,
        }
    }
}

/// How the tests of a whole run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub passed: i64,
    pub failed: i64,
    pub skipped: i64,
    /// All, skipped ones included, and what has no name here.
    pub total: i64,
}

/// What a run may not go below and above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The fewest tests that passed in any run of either tree.
    pub passed: i64,
    /// The most that failed.
    pub failed: i64,
}

spelling! {
    /// Which side of a refactoring a pattern is of.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Side {
        /// It matches the golden tree, and not the base.
        Additive "additive",
        /// It matches the base, and not the golden tree.
        Reductive "reductive",
    }
}

spelling! {
    /// One of the two trees of a pair.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum PairTree {
        Base "base",
        Golden "golden",
    }
}

spelling! {
    /// Whose declarations an environment is locked by.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum LockFrom {
        /// The lock of golden, and what only that of the base has.
        Both "both",
        Golden "golden",
        Base "base",
    }
}

/// A whole run of the suite of a tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuiteRun {
    pub tree: PairTree,
    pub number: u32,
    /// None of a run that gave none.
    pub counts: Option<Counts>,
    pub duration_ms: f64,
}

/// A pattern that judges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternRow {
    pub id: String,
    pub side: Side,
    /// Whether the configuration gives it; else a program found it.
    pub given: bool,
    /// Whether it is OpenGrep's, which a program of the user's runs; else ast-grep's.
    #[serde(default)]
    pub outside: bool,
    /// Matches on either tree.
    pub base: u64,
    pub golden: u64,
    /// Lines and files that it matches on the tree that it is for.
    pub lines: u64,
    pub files: u64,
}

spelling! {
    /// Why a pair is not an instance, in the order in which it is found out.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum PairCause, ALL {
        PatchDiffers "patch-differs",
        NoCode "no-code",
        FewPatterns "few-patterns",
        LowCoverage "low-coverage",
        NeedsTwoEnvironments "needs-two-environments",
        SuiteCrashes "suite-crashes",
        SuiteTooLong "suite-too-long",
        FewTests "few-tests",
        FewPassing "few-passing",
        ChangesTree "changes-tree",
        GoldenFails "golden-fails",
        NullPasses "null-passes",
    }
}

/// A pair that was dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    pub cause: PairCause,
    /// What proves it, in words.
    pub evidence: String,
}

/// A pair of the configuration, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairRow {
    pub instance_id: InstanceId,
    /// The pair's own name: its repository's with the first digits of the base.
    pub slug: RepoSlug,
    pub repo: RepoSlug,
    pub base: String,
    pub golden: String,
    /// None of an instance.
    pub dropped: Option<Dropped>,
}

/// What the golden patch does to files and lines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PatchShape {
    pub files: u64,
    pub created: u64,
    pub deleted: u64,
    pub moved: u64,
    /// Without those below folders of what is built or installed.
    pub lines_added: u64,
    pub lines_removed: u64,
    /// The compressed diff by its size; none of an empty one.
    pub gzip_ratio: Option<f64>,
}

/// A pair that is an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedPair {
    pub row: PairRow,
    pub lock_from: LockFrom,
    pub runs: Vec<SuiteRun>,
    pub bounds: Bounds,
    /// Cases that pass in every run of both trees.
    pub must_pass: BTreeSet<String>,
    /// Cases that fail in every run of both.
    pub failing: BTreeSet<String>,
    pub patterns: Vec<PatternRow>,
    /// Files with patterns: name and text.
    pub pattern_files: Vec<(String, String)>,
    /// Files with patterns of OpenGrep's form: name and text.
    pub opengrep: Vec<(String, String)>,
    pub scripts: Scripts,
    pub golden_patch: Vec<u8>,
    pub shape: PatchShape,
    /// Share of the golden patch's lines that patterns match: of all, of those added, of those removed.
    pub precision: [Option<f64>; 3],
    pub description: Option<String>,
    pub open_description: Option<String>,
    pub flags: Vec<String>,
}
