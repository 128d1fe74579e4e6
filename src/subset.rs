//! Named subsets of the published instances. Pure; the order of the input never matters.
//!
//! A subset holds the instances that pass all of its conditions, and of those the first ones in the order of
//! hash(seed, instance id), the order of the sample: at most `per_repo` of each repository, then at most `size` in all.
//! A smaller `size` or `per_repo` therefore gives a part of what a larger one gives, and with `per_repo` alone adding a
//! repository never changes what another one contributes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::entry::PYTEST;
use crate::record::family::{Family, Unit};
use crate::record::id::{InstanceId, Name, RepoSlug};
use crate::record::instance::Tier;
use crate::record::spelling::spelling;

/// The subset that every dataset has: the hardest instances on either axis.
pub(crate) const TOP: &str = "top";
/// Its former name, which is still understood.
pub(crate) const FORMER_TOP: &str = "hard";

/// Tables of datasets of any family: a reader asks for a subset as it asks for a table.
pub(crate) const TABLES: [&str; 10] = [
    "instances",
    "groups",
    "cases",
    "attempts",
    "traces",
    "targets",
    "instance_cases",
    "contexts",
    "pairs",
    "suite_runs",
];

spelling! {
    /// A measurement of an instance that a subset can be cut by; its name is that of the column.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Measure, ALL {
        NCases "n_cases",
        TraceLength "trace_length",
        TraceLengthPackage "trace_length_package",
        TraceLengthTotal "trace_length_total",
        UniqueFiles "unique_files",
        UniqueFunctions "unique_functions",
        ExecutedLines "executed_lines",
        ImportCalls "import_calls",
        ImportFiles "import_files",
        Attempts "attempts",
        FlakeBound "flake_bound",
        Mutants "mutants",
        MutationScore "mutation_score",
        NeededStatements "needed_statements",
        TargetLines "target_lines",
        TargetStatements "target_statements",
        MaskedFunctions "masked_functions",
        CalledFunctions "called_functions",
        NoticedFunctions "noticed_functions",
        ReachedBy "reached_by",
        NGroups "n_groups",
        NExternal "n_external",
        NInternal "n_internal",
        CallerFiles "caller_files",
        TraceCalls "trace_calls",
        FilesChanged "files_changed",
        FilesMoved "files_moved",
        LinesAdded "lines_added",
        LinesRemoved "lines_removed",
        NAdditive "n_additive",
        NReductive "n_reductive",
        NMustPass "n_must_pass",
        TestsBase "tests_base",
        GoldenPrec "golden_prec",
    }
}

impl Measure {
    /// Whether instances of a family have it.
    pub fn is_of(self, family: Family) -> bool {
        match self {
            Measure::NCases | Measure::Attempts | Measure::FlakeBound | Measure::MutationScore => {
                family.unit() != Unit::Pair
            }
            Measure::TraceLength
            | Measure::TraceLengthPackage
            | Measure::TraceLengthTotal
            | Measure::UniqueFiles
            | Measure::UniqueFunctions
            | Measure::ExecutedLines
            | Measure::ImportCalls
            | Measure::ImportFiles
            | Measure::Mutants
            | Measure::NeededStatements => family.unit() == Unit::Group,
            Measure::TargetLines
            | Measure::TargetStatements
            | Measure::MaskedFunctions
            | Measure::CalledFunctions
            | Measure::NoticedFunctions
            | Measure::ReachedBy
            | Measure::NGroups
            | Measure::NExternal
            | Measure::NInternal
            | Measure::CallerFiles
            | Measure::TraceCalls => family.unit() == Unit::File,
            Measure::FilesChanged
            | Measure::FilesMoved
            | Measure::LinesAdded
            | Measure::LinesRemoved
            | Measure::NAdditive
            | Measure::NReductive
            | Measure::NMustPass
            | Measure::TestsBase
            | Measure::GoldenPrec => family.unit() == Unit::Pair,
        }
    }
}

/// An instance as subsets see it.
pub(crate) trait Member {
    fn instance_id(&self) -> &InstanceId;
    fn slug(&self) -> &RepoSlug;
    fn tier(&self) -> Tier;
    /// Whether it is about a test, or a command of which kind.
    fn kind(&self) -> &str {
        PYTEST
    }
    /// Whether it is among the hardest on an axis.
    fn is_top(&self) -> bool;
    /// A measurement; none where it is not known, or is another family's. List columns count their members.
    fn measured(&self, measure: Measure) -> Option<f64>;
    /// Every measurement that is known.
    fn measurements(&self) -> BTreeMap<Measure, f64> {
        Measure::ALL.into_iter().filter_map(|one| Some((one, self.measured(one)?))).collect()
    }
}

/// Least and greatest value, both included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Range {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

impl Range {
    fn holds(self, value: f64) -> bool {
        self.min.is_none_or(|min| min <= value) && self.max.is_none_or(|max| value <= max)
    }
}

/// A named selection; a condition that is left out lets everything pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subset {
    pub name: Name,
    /// Only these repositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repos: Option<Vec<RepoSlug>>,
    /// Only these tiers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiers: Option<Vec<Tier>>,
    /// Only tests, or commands of these kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// Only what is, or is not, in the top subset.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "hard")]
    pub top: Option<bool>,
    /// An instance whose value is not known is outside of every range.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ranges: BTreeMap<Measure, Range>,
    /// At most this many of each repository; 0 = all.
    #[serde(default)]
    pub per_repo: u32,
    /// At most this many in all; 0 = all.
    #[serde(default)]
    pub size: u32,
    #[serde(default)]
    pub seed: u64,
}

/// Without any condition: all instances.
impl Default for Subset {
    fn default() -> Self {
        Subset {
            name: Name::fixed("all"),
            repos: None,
            tiers: None,
            kinds: None,
            top: None,
            ranges: BTreeMap::new(),
            per_repo: 0,
            size: 0,
            seed: 0,
        }
    }
}

impl Subset {
    /// The subset that every dataset has.
    pub fn top() -> Self {
        Subset { name: Name::fixed(TOP), top: Some(true), ..Subset::default() }
    }

    /// Indices of the members, in the order of the input.
    pub(crate) fn members<M: Member>(&self, instances: &[M]) -> Vec<usize> {
        let mut members: Vec<usize> =
            (0..instances.len()).filter(|at| self.passes(&instances[*at])).collect();
        if self.per_repo > 0 || self.size > 0 {
            members.sort_by_cached_key(|at| {
                let id = instances[*at].instance_id();
                (id.sample_order(instances[*at].slug(), self.seed), id.clone())
            });
            self.cut(&mut members, instances);
            members.sort_unstable();
        }
        members
    }

    fn passes(&self, instance: &impl Member) -> bool {
        self.repos.as_ref().is_none_or(|repos| repos.contains(instance.slug()))
            && self.tiers.as_ref().is_none_or(|tiers| tiers.contains(&instance.tier()))
            && self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind == instance.kind()))
            && self.top.is_none_or(|top| top == instance.is_top())
            && self
                .ranges
                .iter()
                .all(|(measure, range)| instance.measured(*measure).is_some_and(|value| range.holds(value)))
    }

    fn cut<M: Member>(&self, members: &mut Vec<usize>, instances: &[M]) {
        if self.per_repo > 0 {
            let mut taken: BTreeMap<&RepoSlug, u32> = BTreeMap::new();
            members.retain(|at| {
                let of_repository = taken.entry(instances[*at].slug()).or_default();
                *of_repository += 1;
                *of_repository <= self.per_repo
            });
        }
        if self.size > 0 {
            members.truncate(self.size as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dataset::assemble::Assembled;
    use crate::record::instance::Instance;
    use crate::testing::made_up::MadeUp;

    fn instances(sizes: &[usize]) -> Vec<Instance> {
        let made_up = MadeUp::new(sizes);
        Assembled::new(&made_up.input()).unwrap().all().unwrap()
    }

    fn ids(subset: &Subset, instances: &[Instance]) -> BTreeSet<String> {
        subset.members(instances).into_iter().map(|at| instances[at].instance_id.to_string()).collect()
    }

    fn random_subset(random: &mut fastrand::Rng) -> Subset {
        let measure = Measure::ALL[random.usize(0..Measure::ALL.len())];
        let range =
            Range { min: random.bool().then(|| random.f64() * 50.0), max: random.bool().then_some(500.0) };
        Subset {
            tiers: random.bool().then(|| vec![Tier::Hard, Tier::Easy]),
            ranges: if random.bool() { [(measure, range)].into() } else { BTreeMap::new() },
            per_repo: if random.bool() { random.u32(1..12) } else { 0 },
            size: if random.bool() { random.u32(1..40) } else { 0 },
            seed: random.u64(0..9),
            ..Subset::default()
        }
    }

    #[test]
    fn top_is_what_has_an_axis() {
        let instances = instances(&[60, 20]);
        let top = ids(&Subset::top(), &instances);
        let axes = instances.iter().filter(|one| !one.hard_axes.is_empty()).count();
        assert_eq!(top.len(), axes);
        assert!((5..=10).contains(&axes), "five by each axis, {axes} together");
        let rest = Subset { top: Some(false), ..Subset::default() };
        assert!(ids(&rest, &instances).is_disjoint(&top));
        assert_eq!(rest.members(&instances).len() + axes, instances.len());
    }

    #[test]
    fn conditions_hold_for_members_and_only_for_them() {
        let instances = instances(&[80]);
        let subset = Subset {
            tiers: Some(vec![Tier::Medium]),
            ranges: [(Measure::TraceLength, Range { min: Some(20.0), max: Some(90.0) })].into(),
            ..Subset::default()
        };
        let members = subset.members(&instances);
        assert!(!members.is_empty());
        for (at, one) in instances.iter().enumerate() {
            let fits = one.tier == Tier::Medium && (20..=90).contains(&one.trace_length);
            assert_eq!(members.contains(&at), fits, "{} {}", one.trace_length, one.tier.as_str());
        }
    }

    #[test]
    fn what_is_not_known_is_outside_of_every_range() {
        let mut instances = instances(&[20]);
        for one in &mut instances {
            one.executed_lines = None;
        }
        let subset =
            Subset { ranges: [(Measure::ExecutedLines, Range::default())].into(), ..Subset::default() };
        assert!(subset.members(&instances).is_empty());
    }

    #[test]
    fn order_of_input_never_matters() {
        let mut random = fastrand::Rng::with_seed(5);
        let instances = instances(&[50, 30, 9]);
        for _ in 0..100 {
            let subset = random_subset(&mut random);
            let mut shuffled = instances.clone();
            random.shuffle(&mut shuffled);
            assert_eq!(ids(&subset, &instances), ids(&subset, &shuffled));
        }
    }

    #[test]
    fn a_smaller_subset_is_part_of_the_larger_one() {
        let mut random = fastrand::Rng::with_seed(6);
        let instances = instances(&[50, 30]);
        for _ in 0..100 {
            let larger = random_subset(&mut random);
            let smaller = Subset { size: (larger.size / 2).max(1), ..larger.clone() };
            if larger.size != 1 {
                assert!(ids(&smaller, &instances).is_subset(&ids(&larger, &instances)));
            }
        }
    }

    #[test]
    fn adding_a_repository_changes_nothing_for_another() {
        let all = instances(&[50, 30, 20]);
        let without: Vec<Instance> =
            all.iter().filter(|one| one.slug.as_str() != "made/up1").cloned().collect();
        for (seed, per_repo) in [(0, 3), (1, 7), (2, 100)] {
            let subset = Subset { per_repo, seed, ..Subset::default() };
            let expected: BTreeSet<String> =
                ids(&subset, &all).into_iter().filter(|id| !id.starts_with("made__up1")).collect();
            assert_eq!(ids(&subset, &without), expected);
        }
    }

    #[test]
    fn another_seed_is_another_choice_of_the_same_size() {
        let instances = instances(&[80]);
        let of_seed = |seed| ids(&Subset { size: 10, seed, ..Subset::default() }, &instances);
        assert_eq!((of_seed(0).len(), of_seed(1).len()), (10, 10));
        assert_ne!(of_seed(0), of_seed(1));
    }
}
