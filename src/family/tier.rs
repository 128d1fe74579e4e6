//! Difficulty: percentile ranks, tiers, the top subset and the flake bound. Pure; the order of the input never
//! matters.
//!
//! *Percentile rank.* Among `n` values, the rank of a value is the share of values strictly below it, in percent. What ties
//! ranks low: whatever most instances share is not hard, and a set in which all values are equal is easy throughout, a
//! single instance as well.
//!
//! *Tier.* An instance has a rank on each axis; the higher of the two decides.
//!
//! *Top subset.* The top K by trace length together with the top K by unique files; equal values are ordered by
//! instance id, smaller first. K is at most a fifth of the instances ([`top_size`]), so that there is always a rest. The
//! columns and keys that it comes from are called `hard_…`, after the paper's Gistify-hard.

use crate::record::id::InstanceId;
use crate::record::instance::{Axis, Tier};
use crate::record::limits::TierBounds;

/// A place on the two difficulty axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difficulty {
    pub trace_length: u64,
    pub unique_files: u64,
}

impl Difficulty {
    /// The value on one axis.
    pub fn on(self, axis: Axis) -> u64 {
        match axis {
            Axis::TraceLength => self.trace_length,
            Axis::UniqueFiles => self.unique_files,
        }
    }
}

/// The axes, in the order in which they are listed everywhere.
pub const AXES: [Axis; 2] = [Axis::TraceLength, Axis::UniqueFiles];

/// Rank of each value in percent, in the order of the input.
pub fn percentile_ranks(values: &[u64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    values.iter().map(|value| percentile_rank(&sorted, *value)).collect()
}

/// Rank of a value of a sorted list. Both operands are exact integers, so a rank that is a whole percent compares equal to
/// it.
fn percentile_rank(sorted: &[u64], value: u64) -> f64 {
    let below = sorted.partition_point(|other| *other < value);
    (100 * below) as f64 / sorted.len() as f64
}

/// The tier of each instance within the given set, in the order of the input.
pub fn tiers(set: &[Difficulty], bounds: &TierBounds) -> Vec<Tier> {
    let ranks = AXES.map(|axis| percentile_ranks(&set.iter().map(|one| one.on(axis)).collect::<Vec<_>>()));
    (0..set.len()).map(|at| tier_of_rank(ranks[0][at].max(ranks[1][at]), bounds)).collect()
}

fn tier_of_rank(rank: f64, bounds: &TierBounds) -> Tier {
    if rank >= bounds.hard {
        Tier::Hard
    } else if rank >= bounds.medium {
        Tier::Medium
    } else {
        Tier::Easy
    }
}

/// How many of `instances` the top subset takes by each axis when `asked` are asked for: at most a fifth, which is what
/// the paper's 30 of 150 are, but one where there is any.
pub fn top_size(asked: u32, instances: usize) -> usize {
    (asked as usize).min(instances.div_ceil(5))
}

/// The axes on which each instance is among the hardest `k`, in the order of the input; empty outside the top subset.
pub fn top_subset(set: &[(&InstanceId, Difficulty)], k: usize) -> Vec<Vec<Axis>> {
    let mut hard_axes = vec![Vec::new(); set.len()];
    for axis in AXES {
        for at in top(set, axis, k) {
            hard_axes[at].push(axis);
        }
    }
    hard_axes
}

/// Indices of the hardest `k` on an axis, hardest first.
pub fn top(set: &[(&InstanceId, Difficulty)], axis: Axis, k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..set.len()).collect();
    order.sort_by(|a, b| set[*b].1.on(axis).cmp(&set[*a].1.on(axis)).then_with(|| set[*a].0.cmp(set[*b].0)));
    order.truncate(k);
    order
}

/// 95 % upper bound of the failure rate after `n` attempts that all agreed; 1 when there was none.
pub fn flake_bound(n: u32) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / f64::from(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::id::RepoSlug;

    const BOUNDS: TierBounds = TierBounds { medium: 50.0, hard: 80.0 };

    fn id(number: u64) -> InstanceId {
        InstanceId::derive(&RepoSlug::new("a/b").unwrap(), "c", &number.to_string())
    }

    fn made_up(random: &mut fastrand::Rng) -> Vec<(InstanceId, Difficulty)> {
        let size = random.u64(0..60);
        let draw = |random: &mut fastrand::Rng| Difficulty {
            trace_length: random.u64(1..30),
            unique_files: random.u64(1..5),
        };
        (0..size).map(|number| (id(number), draw(random))).collect()
    }

    fn borrowed(set: &[(InstanceId, Difficulty)]) -> Vec<(&InstanceId, Difficulty)> {
        set.iter().map(|(id, difficulty)| (id, *difficulty)).collect()
    }

    #[test]
    fn ties_rank_low() {
        assert_eq!(percentile_ranks(&[1, 2, 2, 3]), [0.0, 25.0, 25.0, 75.0]);
        assert_eq!(percentile_ranks(&[7]), [0.0]);
        assert!(percentile_ranks(&[]).is_empty());
    }

    #[test]
    fn ranks_equal_a_count_by_hand() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            let values: Vec<u64> = (0..random.usize(1..40)).map(|_| random.u64(0..9)).collect();
            let ranks = percentile_ranks(&values);
            for (value, rank) in values.iter().zip(&ranks) {
                let share = |test: &dyn Fn(&&u64) -> bool| values.iter().filter(test).count() as f64;
                let oracle = share(&|v| *v < value) / values.len() as f64;
                assert!((rank - 100.0 * oracle).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn the_higher_rank_decides() {
        let at = |trace_length, unique_files| Difficulty { trace_length, unique_files };
        let set: Vec<_> = (0..10).map(|n| at(n, if n == 0 { 99 } else { 1 })).collect();
        let tiers = tiers(&set, &BOUNDS);
        assert_eq!(tiers[0], Tier::Hard, "last by trace length, first by files");
        assert_eq!((tiers[1], tiers[7], tiers[8]), (Tier::Easy, Tier::Medium, Tier::Hard));
    }

    #[test]
    fn small_sets_are_not_all_hard() {
        let at = |trace_length, unique_files| Difficulty { trace_length, unique_files };
        let of = |set: &[Difficulty]| tiers(set, &BOUNDS);
        assert_eq!(of(&[at(900, 9)]), [Tier::Easy]);
        assert_eq!(of(&[at(5, 2); 12]), [Tier::Easy; 12]);
        let twelve: Vec<_> = (1..=12).map(|n| at(n * n, if n > 3 { 2 } else { 1 })).collect();
        let hard = of(&twelve).iter().filter(|tier| **tier == Tier::Hard).count();
        assert_eq!(hard, 2, "three quarters share the most files, which makes none of them hard");
        assert_eq!(
            [0, 1, 2, 5, 6, 12, 50, 150, 900].map(|size| top_size(30, size)),
            [0, 1, 1, 1, 2, 3, 10, 30, 30]
        );
        assert_eq!(top_size(3, 150), 3);
    }

    #[test]
    fn a_rank_on_the_bound_belongs_to_the_upper_tier() {
        assert_eq!([49.9, 50.0, 79.9, 80.0].map(|rank| tier_of_rank(rank, &BOUNDS)), {
            [Tier::Easy, Tier::Medium, Tier::Medium, Tier::Hard]
        });
    }

    #[test]
    fn order_of_input_matters_neither_to_tiers_nor_to_the_top_subset() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..200 {
            let set = made_up(&mut random);
            let mut shuffled = set.clone();
            random.shuffle(&mut shuffled);
            let k = random.usize(0..20);
            let view = |set: &[(InstanceId, Difficulty)]| {
                let tiers = tiers(&set.iter().map(|one| one.1).collect::<Vec<_>>(), &BOUNDS);
                let hard = top_subset(&borrowed(set), k);
                let mut rows: Vec<_> =
                    set.iter().map(|one| one.0.clone()).zip(tiers.into_iter().zip(hard)).collect();
                rows.sort();
                rows
            };
            assert_eq!(view(&set), view(&shuffled));
        }
    }

    #[test]
    fn top_subset_has_k_per_axis_and_nothing_outside_is_harder() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let set = made_up(&mut random);
            let k = random.usize(0..20);
            let hard = top_subset(&borrowed(&set), k);
            for axis in AXES {
                let (inside, outside): (Vec<usize>, _) =
                    (0..set.len()).partition(|at| hard[*at].contains(&axis));
                assert_eq!(inside.len(), k.min(set.len()));
                let key = |at: &usize| (std::cmp::Reverse(set[*at].1.on(axis)), &set[*at].0);
                assert!(inside.iter().map(key).max() <= outside.iter().map(key).min() || outside.is_empty());
            }
        }
    }

    #[test]
    fn flake_bound_is_that_of_the_definition() {
        assert!((flake_bound(10) - 0.258_866).abs() < 1e-6);
        assert!((flake_bound(170) - 0.017_468).abs() < 1e-6);
        assert!((flake_bound(0) - 1.0).abs() < 1e-12);
    }
}
