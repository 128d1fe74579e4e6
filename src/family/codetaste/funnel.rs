//! The search for refactorings among commits: numbers of a commit in, the first cause that drops it out.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::message::{Unlikely, WordCounts};

/// Endings of files that are code, in lower case.
const CODE_ENDINGS: [&str; 52] = [
    "py", "pyi", "pyx", "pxd", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "cs", "java", "kt", "kts",
    "scala", "groovy", "go", "rs", "swift", "m", "mm", "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts",
    "vue", "svelte", "rb", "php", "pl", "pm", "lua", "r", "jl", "dart", "ex", "exs", "erl", "hs", "ml",
    "mli", "clj", "fs", "sh", "sol", "zig",
];

/// The ending of a file's name in lower case; none of a name without a point, or with its only one at the begin.
fn ending(path: &str) -> Option<String> {
    let (stem, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    (!stem.is_empty()).then(|| ending.to_ascii_lowercase())
}

pub fn is_code(path: &str) -> bool {
    ending(path).is_some_and(|ending| CODE_ENDINGS.contains(&ending.as_str()))
}

pub fn is_python(path: &str) -> bool {
    ending(path).is_some_and(|ending| ending == "py" || ending == "pyi")
}

/// Whether a file is a test's by its name or by a folder's.
pub fn is_test(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or_default();
    let of_test =
        |name: &str| name == "conftest.py" || name.starts_with("test_") || name.ends_with("_test.py");
    of_test(name) || parts.any(|part| part == "test" || part == "tests" || part == "testing")
}

/// What a candidate has to reach.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    pub min_files: u32,
    pub min_code_files: u32,
    /// Whether half of the code files have to be Python.
    pub python: bool,
    pub most: usize,
    /// The share that stays when repetitive diffs go.
    pub keep: f64,
    /// How many of the best scored ones stay.
    pub top: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { min_files: 45, min_code_files: 25, python: true, most: 5000, keep: 1.0, top: 160 }
    }
}

/// How many lines and files a commit changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    pub lines_added: u64,
    pub lines_removed: u64,
    pub created: u64,
    pub deleted: u64,
    pub modified: u64,
    pub moved: u64,
}

impl Changes {
    /// By name, in the order in which an outlier is named.
    pub fn named(self) -> [(&'static str, u64); 6] {
        [
            ("lines_added", self.lines_added),
            ("lines_removed", self.lines_removed),
            ("created", self.created),
            ("deleted", self.deleted),
            ("modified", self.modified),
            ("moved", self.moved),
        ]
    }
}

/// The numbers of a commit that are read before any of its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Whether a merge on the first-parent line has it in what it merges.
    pub inside_merge: bool,
    /// The first commit of a history has no tree to start from.
    pub has_parent: bool,
    /// A renamed file is one.
    pub files: u32,
    pub code_files: u32,
    pub python_files: u32,
    pub test_files: u32,
    pub words: WordCounts,
}

/// The numbers of a commit that came so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    pub commit: String,
    pub shape: Shape,
    pub stars: u64,
    pub changes: Changes,
    /// None of an empty diff.
    pub gzip_ratio: Option<f64>,
}

/// The first thing that drops a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    NoParent,
    InsideMerge,
    FewFiles,
    StrongNegative,
    NoKeyword,
    WeakNegative,
    FewCode,
    OtherLanguage,
    BeyondMost,
    /// With the name of the count.
    Outlier(&'static str),
    Repetitive,
    LowScore,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Cause::NoParent => "no-parent",
            Cause::InsideMerge => "inside-merge",
            Cause::FewFiles => "few-files",
            Cause::StrongNegative => "strong-negative",
            Cause::NoKeyword => "no-keyword",
            Cause::WeakNegative => "weak-negative",
            Cause::FewCode => "few-code",
            Cause::OtherLanguage => "other-language",
            Cause::BeyondMost => "beyond-most",
            Cause::Outlier(count) => return write!(f, "outlier:{count}"),
            Cause::Repetitive => "repetitive",
            Cause::LowScore => "low-score",
        };
        f.write_str(text)
    }
}

/// Why a commit is dropped before its lines are counted; none where it goes on.
pub fn first_cause(shape: &Shape, limits: &Limits) -> Option<Cause> {
    if !shape.has_parent {
        Some(Cause::NoParent)
    } else if shape.inside_merge {
        Some(Cause::InsideMerge)
    } else if shape.files < limits.min_files {
        Some(Cause::FewFiles)
    } else if let Some(unlikely) = shape.words.unlikely() {
        Some(match unlikely {
            Unlikely::StrongNegative => Cause::StrongNegative,
            Unlikely::NoKeyword => Cause::NoKeyword,
            Unlikely::WeakNegative => Cause::WeakNegative,
        })
    } else if shape.code_files < limits.min_code_files {
        Some(Cause::FewCode)
    } else if limits.python && 2 * shape.python_files < shape.code_files {
        Some(Cause::OtherLanguage)
    } else {
        None
    }
}

/// What becomes of the commits whose lines are counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranked {
    /// Those that are left, best first.
    pub kept: Vec<usize>,
    /// The others, in the order of the causes.
    pub dropped: Vec<(usize, Cause)>,
}

/// Orders the commits that go on, and drops what is beyond bounds that all of them set. `scores` are S_total by commit; none
/// where no model was asked.
pub fn rank(pool: &[Measured], limits: &Limits, scores: Option<&BTreeMap<String, f64>>) -> Ranked {
    let mut kept: Vec<usize> = (0..pool.len()).collect();
    kept.sort_by_key(|at| {
        let one = &pool[*at];
        let words = one.shape.words;
        let best = (words.plus_strong, words.plus_weak, one.stars, one.shape.files);
        (Reverse(best), one.commit.clone())
    });
    let mut dropped = Vec::new();
    dropped.extend(kept.split_off(limits.most.min(kept.len())).into_iter().map(|at| (at, Cause::BeyondMost)));
    let outliers = outliers(&kept.iter().map(|at| pool[*at].changes).collect::<Vec<_>>());
    let outliers: BTreeMap<usize, &str> =
        kept.iter().zip(outliers).filter_map(|(at, outlier)| Some((*at, outlier?))).collect();
    kept.retain(|at| !outliers.contains_key(at));
    dropped.extend(outliers.into_iter().map(|(at, count)| (at, Cause::Outlier(count))));
    drop_repetitive(pool, limits.keep, &mut kept, &mut dropped);
    if let Some(scores) = scores {
        let score = |at: usize| scores.get(&pool[at].commit).copied().unwrap_or(f64::NEG_INFINITY);
        kept.sort_by(|one, other| {
            score(*other).total_cmp(&score(*one)).then_with(|| pool[*one].commit.cmp(&pool[*other].commit))
        });
        let rest = kept.split_off(limits.top.min(kept.len()));
        dropped.extend(rest.into_iter().map(|at| (at, Cause::LowScore)));
    }
    Ranked { kept, dropped }
}

/// Drops the most repetitive diffs, so that a share stays; the order of the others is as it was.
fn drop_repetitive(pool: &[Measured], keep: f64, kept: &mut Vec<usize>, dropped: &mut Vec<(usize, Cause)>) {
    // A small ratio is a repetitive diff.
    let mut by_ratio: Vec<usize> = kept.clone();
    by_ratio.sort_by(|one, other| {
        let ratio = |at: usize| pool[at].gzip_ratio.unwrap_or_default();
        ratio(*one).total_cmp(&ratio(*other)).then_with(|| pool[*one].commit.cmp(&pool[*other].commit))
    });
    let gone = by_ratio.len() - (keep.clamp(0.0, 1.0) * by_ratio.len() as f64).ceil() as usize;
    by_ratio.truncate(gone);
    kept.retain(|at| !by_ratio.contains(at));
    dropped.extend(by_ratio.into_iter().map(|at| (at, Cause::Repetitive)));
}

/// Fewer commits than this set no bounds.
const MIN_POOL: usize = 20;

/// Of each the first count that is beyond half of the tenth percentile or twice the ninetieth.
pub fn outliers(pool: &[Changes]) -> Vec<Option<&'static str>> {
    if pool.len() < MIN_POOL {
        return vec![None; pool.len()];
    }
    let bounds: Vec<(f64, f64)> = (0..6)
        .map(|at| {
            let values: Vec<f64> = pool.iter().map(|one| one.named()[at].1 as f64).collect();
            (0.5 * percentile(&values, 0.1), 2.0 * percentile(&values, 0.9))
        })
        .collect();
    let outlier = |one: &Changes| {
        let mut counts = one.named().into_iter().zip(&bounds);
        counts
            .find(|((_, count), (low, high))| !(*low..=*high).contains(&(*count as f64)))
            .map(|((name, _), _)| name)
    };
    pool.iter().map(outlier).collect()
}

/// Linear between ranks. 0 of nothing.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let low = place.floor() as usize;
    let at = |at: usize| sorted[at.min(last)];
    at(low) + (at(low + 1) - at(low)) * (place - low as f64)
}

/// What a model says of a commit, by the paper's names; each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct ModelScores {
    pub message: MessageScores,
    pub diff: DiffScores,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageScores {
    pub large: f64,
    pub refactor: f64,
    pub cohesion: f64,
    pub length: f64,
    pub trivial: f64,
    pub uncertain: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffScores {
    pub refactor: f64,
    pub complexity: f64,
    pub mixed: f64,
    pub risky: f64,
    pub uncertain: f64,
    pub trivial: f64,
    pub auto: f64,
}

impl MessageScores {
    /// S_msg.
    pub fn total(self) -> f64 {
        0.35 * self.large + 0.45 * self.refactor + 0.2 * self.cohesion
            - 0.2 * (self.length + self.trivial + self.uncertain)
    }

    pub fn values(self) -> [f64; 6] {
        [self.large, self.refactor, self.cohesion, self.length, self.trivial, self.uncertain]
    }
}

impl DiffScores {
    /// S_diff.
    pub fn total(self) -> f64 {
        let against = 0.4 * self.mixed
            + 0.2 * self.risky
            + 0.1 * self.uncertain
            + 0.15 * self.trivial
            + 0.15 * self.auto;
        0.8 * self.refactor + 0.2 * self.complexity - 1.5 * against
    }

    pub fn values(self) -> [f64; 7] {
        [self.refactor, self.complexity, self.mixed, self.risky, self.uncertain, self.trivial, self.auto]
    }
}

/// S_total, of S_msg and S_diff.
pub fn total(message: f64, diff: f64) -> f64 {
    (message + 3.0 * diff) / 4.0
}

impl ModelScores {
    pub fn total(self) -> f64 {
        total(self.message.total(), self.diff.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        let words = WordCounts { plus_strong: 1, ..WordCounts::default() };
        Shape { has_parent: true, files: 45, code_files: 25, python_files: 13, words, ..Shape::default() }
    }

    #[test]
    fn the_first_cause_in_order_drops_a_commit() {
        let limits = Limits::default();
        assert_eq!(first_cause(&shape(), &limits), None);
        let nothing = Shape { has_parent: true, ..Shape::default() };
        assert_eq!(first_cause(&nothing, &limits), Some(Cause::FewFiles));
        assert_eq!(first_cause(&Shape { inside_merge: true, ..nothing }, &limits), Some(Cause::InsideMerge));
        assert_eq!(first_cause(&Shape::default(), &limits), Some(Cause::NoParent));
        let other = Shape { python_files: 12, ..shape() };
        assert_eq!(first_cause(&other, &limits), Some(Cause::OtherLanguage));
        assert_eq!(first_cause(&other, &Limits { python: false, ..limits.clone() }), None);
        let few = Shape { code_files: 24, ..other };
        assert_eq!(first_cause(&few, &limits), Some(Cause::FewCode));
        let words = WordCounts { plus_weak: 1, minus_weak: 1, ..WordCounts::default() };
        assert_eq!(first_cause(&Shape { words, ..few.clone() }, &limits), Some(Cause::WeakNegative));
        assert_eq!(first_cause(&Shape { words, files: 44, ..few }, &limits), Some(Cause::FewFiles));
    }

    fn pool(count: usize) -> Vec<Measured> {
        let one = |at: usize| Measured {
            commit: format!("{at:02}"),
            shape: shape(),
            gzip_ratio: Some(at as f64 / 100.0),
            ..Measured::default()
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn bounds_of_the_pool_come_in_their_order() {
        let mut pool = pool(24);
        pool[3].shape.words.plus_strong = 2;
        pool[5].changes.created = 1;
        let limits = Limits { most: 22, keep: 0.9, top: 4, ..Limits::default() };
        let ranked = rank(&pool, &limits, None);
        assert_eq!(
            ranked.dropped,
            [
                (22, Cause::BeyondMost),
                (23, Cause::BeyondMost),
                (5, Cause::Outlier("created")),
                (0, Cause::Repetitive),
                (1, Cause::Repetitive)
            ]
        );
        assert_eq!(ranked.kept[..3], [3, 2, 4]);
        assert_eq!(ranked.kept.len(), 19);
        let scores = pool.iter().map(|one| (one.commit.clone(), one.gzip_ratio.unwrap())).collect();
        let ranked = rank(&pool, &limits, Some(&scores));
        assert_eq!(ranked.kept, [21, 20, 19, 18]);
        assert_eq!(ranked.dropped.iter().filter(|(_, cause)| *cause == Cause::LowScore).count(), 15);
    }

    #[test]
    fn code_and_tests_are_known_by_their_names() {
        assert!(
            is_code("a/b.PY") && is_code("x.rs") && !is_code("py") && !is_code(".py") && !is_code("a.py/b")
        );
        assert!(is_python("a.pyi") && !is_python("a.pyx"));
        assert!(is_test("tests/a.py") && is_test("a/test_b.py") && !is_test("latest/a.py"));
    }
}
