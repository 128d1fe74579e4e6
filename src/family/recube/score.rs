//! Rates over judged instances: the definitions, and what the published evaluator would have computed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::outcome::Outcome;
use crate::record::recube::{Kind, Way};
use crate::record::spelling::spelling;

/// How a submission ended. Each has exactly one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Nothing was handed in; nothing is run.
    NoFile,
    /// The file is not Python that can be read; nothing is run.
    NotReadable,
    /// It imports a copy of the original, or makes tests pass that fail; nothing it passes counts.
    Violation,
    /// No case ran.
    NotCollected,
    /// A group took too long; what had passed counts.
    TimedOut,
    /// The process of a group died; what had passed counts.
    Crashed,
    /// The harness's trouble: in no rate.
    Lost,
    Ran,
}

/// A case of an instance and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoredCase {
    /// Node ID.
    pub id: String,
    pub kind: Kind,
    pub way: Way,
    /// None where it did not run.
    pub outcome: Option<Outcome>,
}

/// A judged instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scored {
    pub class: Class,
    /// Whether the run has a folder for it: without one the published evaluator leaves it out.
    pub has_folder: bool,
    pub cases: Vec<ScoredCase>,
}

impl Scored {
    /// Cases that passed, of how many, among those for which a condition holds.
    pub fn passed(&self, counts: impl Fn(&ScoredCase) -> bool) -> (u32, u32) {
        let ran = !matches!(self.class, Class::NoFile | Class::NotReadable | Class::Violation);
        let counted = self.cases.iter().filter(|case| counts(case));
        counted.fold((0, 0), |(passed, all), case| {
            (passed + u32::from(ran && case.outcome == Some(Outcome::Passed)), all + 1)
        })
    }
}

/// Rates in percent over instances with at least one case. None of nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Instances.
    pub n: u32,
    /// Instances all of whose cases passed.
    pub spr: Option<f64>,
    /// The mean share of cases that passed.
    pub apr: Option<f64>,
}

impl Rates {
    /// Of (passed, all) of each instance.
    pub fn of(pairs: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let pairs: Vec<(u32, u32)> = pairs.into_iter().filter(|(_, all)| *all > 0).collect();
        let share = |(passed, all): &(u32, u32)| f64::from(*passed) / f64::from(*all);
        let solved = pairs.iter().filter(|(passed, all)| passed == all).count();
        let percent = |sum: f64| (!pairs.is_empty()).then(|| 100.0 * sum / pairs.len() as f64);
        Rates {
            n: pairs.len() as u32,
            spr: percent(solved as f64),
            apr: percent(pairs.iter().map(share).sum()),
        }
    }
}

/// Rates over all cases, and over those of each kind and way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    pub instances: u32,
    /// Left out of every rate.
    pub lost: u32,
    pub all: Rates,
    pub external: Rates,
    pub internal: Rates,
    pub direct: Rates,
    pub through: Rates,
    /// Cases that passed in percent of all cases.
    pub pass_rate_pooled: Option<f64>,
    pub published: Published,
}

/// Rates by the arithmetic of the published evaluator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    pub all: Rates,
    pub external: Rates,
    pub internal: Rates,
}

/// The rates of judged instances: the number of cases is the dataset's, and what did not pass failed.
pub fn score(instances: &[Scored]) -> Summary {
    let judged: Vec<&Scored> = instances.iter().filter(|one| one.class != Class::Lost).collect();
    let rates = |counts: &dyn Fn(&ScoredCase) -> bool| Rates::of(judged.iter().map(|one| one.passed(counts)));
    let (passed, all) =
        judged.iter().map(|one| one.passed(|_| true)).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    Summary {
        instances: instances.len() as u32,
        lost: (instances.len() - judged.len()) as u32,
        all: rates(&|_| true),
        external: rates(&|case| case.kind == Kind::External),
        internal: rates(&|case| case.kind == Kind::Internal),
        direct: rates(&|case| case.way == Way::Direct),
        through: rates(&|case| case.way == Way::Through),
        pass_rate_pooled: (all > 0).then(|| 100.0 * f64::from(passed) / f64::from(all)),
        published: published(instances),
    }
}

/// What the published evaluator would have computed of the same outcomes: overall, what it sees in pytest's last line is the
/// number of cases; by kind it knows bare names of functions.
pub fn published(instances: &[Scored]) -> Published {
    let counted: Vec<&Scored> =
        instances.iter().filter(|one| one.class != Class::Lost && one.has_folder).collect();
    let kind = |kind| Rates::of(counted.iter().map(|one| published_of_kind(one, kind)));
    Published {
        all: Rates::of(counted.iter().map(|one| published_overall(one))),
        external: kind(Kind::External),
        internal: kind(Kind::Internal),
    }
}

fn published_overall(one: &Scored) -> (u32, u32) {
    let ended = |outcome| one.cases.iter().filter(|case| case.outcome == Some(outcome)).count() as u32;
    match one.class {
        Class::NoFile | Class::NotReadable | Class::NotCollected | Class::TimedOut => {
            (0, one.cases.len() as u32)
        }
        Class::Violation | Class::Crashed | Class::Lost | Class::Ran => {
            let passed = ended(Outcome::Passed);
            (passed, passed + ended(Outcome::Failed))
        }
    }
}

fn published_of_kind(one: &Scored, kind: Kind) -> (u32, u32) {
    let is_read = !matches!(one.class, Class::NoFile | Class::NotReadable | Class::NotCollected);
    // Of cases with one name the last counts.
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    let mut seen: BTreeMap<&str, Outcome> = BTreeMap::new();
    for case in &one.cases {
        kinds.insert(bare(&case.id), case.kind);
        let outcome = case.outcome.filter(|outcome| matches!(outcome, Outcome::Passed | Outcome::Failed));
        if let Some(outcome) = outcome.filter(|_| is_read && is_seen(&case.id)) {
            seen.insert(bare(&case.id), outcome);
        }
    }
    let names = kinds.iter().filter(|(_, of)| **of == kind).map(|(name, _)| name);
    names.fold((0, 0), |(passed, all), name| {
        (passed + u32::from(seen.get(name) == Some(&Outcome::Passed)), all + 1)
    })
}

/// The name of the function alone.
fn bare(case_id: &str) -> &str {
    let test = case_id.split('[').next().unwrap_or(case_id);
    test.rsplit("::").next().unwrap_or(test)
}

/// Whether the published evaluator finds the outcome of a case: without parameters, in at most one class.
fn is_seen(case_id: &str) -> bool {
    !case_id.contains('[') && case_id.matches("::").count() <= 2
}

/// A rate for each unit of what it cost; none for nothing.
pub fn per_cost(rate: f64, cost: f64) -> Option<f64> {
    (cost != 0.0).then(|| rate / cost)
}

spelling! {
    /// A part of the instances by how often they are solved.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Quarter {
        Hardest "hardest",
        Hard "hard",
        Easy "easy",
        Easiest "easiest",
    }
}

/// Cuts instances (ID, pass rate) into four parts as equal as can be, the lowest rates first, ties by ID.
pub fn quartiles<'a>(instances: &[(&'a str, f64)]) -> BTreeMap<&'a str, Quarter> {
    let mut order = instances.to_vec();
    order.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(other.0)));
    let quarter = |at: usize| match 4 * at / order.len() {
        0 => Quarter::Hardest,
        1 => Quarter::Hard,
        2 => Quarter::Easy,
        _ => Quarter::Easiest,
    };
    order.iter().enumerate().map(|(at, (id, _))| (*id, quarter(at))).collect()
}

/// The share of the calling files that were viewed; none where nothing calls.
pub fn coverage(viewed: &[&str], callers: &[&str]) -> Option<f64> {
    let callers: std::collections::BTreeSet<&&str> = callers.iter().collect();
    let seen = callers.iter().filter(|caller| viewed.contains(caller)).count();
    (!callers.is_empty()).then(|| seen as f64 / callers.len() as f64)
}

/// Kendall's τ-b. None where one side does not vary.
pub fn kendall(pairs: &[(f64, f64)]) -> Option<f64> {
    let (mut agree, mut only_left, mut only_right) = (0.0, 0.0, 0.0);
    let mut decided = 0.0;
    for (at, one) in pairs.iter().enumerate() {
        for other in &pairs[at + 1..] {
            let (left, right) = (one.0.total_cmp(&other.0), one.1.total_cmp(&other.1));
            match (left.is_eq(), right.is_eq()) {
                (true, true) => {}
                (true, false) => only_left += 1.0,
                (false, true) => only_right += 1.0,
                (false, false) => {
                    decided += 1.0;
                    agree += if left == right { 1.0 } else { -1.0 };
                }
            }
        }
    }
    let scale = f64::sqrt((decided + only_left) * (decided + only_right));
    (scale > 0.0).then(|| agree / scale)
}
