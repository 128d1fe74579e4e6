//! Whether two runs over the same instances differ, and by how much. Draws are seeded: the same numbers in give the same
//! numbers out.

use super::statistics::{Correlation, Mean, mcnemar};

/// The most differences whose signs are all tried; of more, so many draws are made.
const EXACT: usize = 16;
const DRAWS: u32 = 20_000;
/// Samples of a bootstrap.
const SAMPLES: usize = 2_000;
const SEED: u64 = 0x6769_7374;

/// How likely a mean at least as far from 0 is where the sign of each paired difference is chance (two-sided). Differences of
/// one size are the binomial test, few ones are tried in full, others drawn. None where nothing differs.
pub(crate) fn sign_flip(differences: &[f64]) -> Option<f64> {
    let sizes: Vec<f64> = differences.iter().copied().filter(|one| *one != 0.0).collect();
    let (first, seen) = (sizes.first()?.abs(), sizes.iter().sum::<f64>().abs());
    if sizes.iter().all(|one| (one.abs() - first).abs() < f64::EPSILON) {
        let above = sizes.iter().filter(|one| **one > 0.0).count();
        return mcnemar(u32::try_from(above).ok()?, u32::try_from(sizes.len() - above).ok()?);
    }
    // Sums that are equal but for rounding are equal.
    let least = seen - 1e-12 * sizes.iter().map(|one| one.abs()).sum::<f64>();
    let is_as_far = |flips: u32| {
        let sum: f64 =
            sizes.iter().enumerate().map(|(at, one)| if flips >> at & 1 == 1 { -one } else { *one }).sum();
        sum.abs() >= least
    };
    if sizes.len() <= EXACT {
        let all = 1_u32 << sizes.len();
        return Some(f64::from((0..all).filter(|flips| is_as_far(*flips)).count() as u32) / f64::from(all));
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut drawn = || sizes.iter().map(|one| if random.bool() { -one } else { *one }).sum::<f64>().abs();
    let as_far = (0..DRAWS).filter(|_| drawn() >= least).count() as u32;
    Some(f64::from(as_far + 1) / f64::from(DRAWS + 1))
}

/// The percentile interval at 95 % of the mean of values that are drawn again, each as often as chance has it. None of fewer
/// than two.
pub(crate) fn bootstrap(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut mean = || {
        let drawn = (0..values.len()).map(|_| values[random.usize(0..values.len())]);
        drawn.sum::<f64>() / values.len() as f64
    };
    let mut means: Vec<f64> = (0..SAMPLES).map(|_| mean()).collect();
    means.sort_by(f64::total_cmp);
    Some((means[SAMPLES / 40], means[SAMPLES - 1 - SAMPLES / 40]))
}

/// Each p as the smallest rate of false discoveries among all of them at which it would be one (Benjamini and Hochberg).
pub(crate) fn benjamini_hochberg(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|a, b| ps[*b].total_cmp(&ps[*a]));
    let (mut adjusted, mut least) = (vec![1.0; ps.len()], 1.0_f64);
    for (above, at) in order.into_iter().enumerate() {
        least = least.min(ps[at] * ps.len() as f64 / (ps.len() - above) as f64);
        adjusted[at] = least;
    }
    adjusted
}

/// Kendall's τ (b), with the p of the normal distribution, ties considered (two-sided). None of fewer than three pairs, or where
/// one side does not vary.
pub(crate) fn kendall(pairs: &[(f64, f64)]) -> Option<Correlation> {
    let n = pairs.len() as f64;
    let mut sum = 0.0;
    for (at, one) in pairs.iter().enumerate() {
        for other in &pairs[..at] {
            let side = |a: f64, b: f64| f64::from(a.total_cmp(&b) as i8);
            sum += side(one.0, other.0) * side(one.1, other.1);
        }
    }
    let (xs, ys) = (ties(pairs.iter().map(|one| one.0)), ties(pairs.iter().map(|one| one.1)));
    let of = |counts: &[f64], term: fn(f64) -> f64| counts.iter().map(|one| term(*one)).sum::<f64>();
    let (all, pair) = (n * (n - 1.0), |t: f64| t * (t - 1.0) / 2.0);
    let [tied, tied_too] = [&xs, &ys].map(|counts| of(counts, pair));
    if pairs.len() < 3 || tied >= all / 2.0 || tied_too >= all / 2.0 {
        return None;
    }
    let twos = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let threes = |t: f64| t * (t - 1.0) * (t - 2.0);
    let variance = (all * (2.0 * n + 5.0) - of(&xs, twos) - of(&ys, twos)) / 18.0
        + 2.0 * tied * tied_too / all
        + of(&xs, threes) * of(&ys, threes) / (9.0 * all * (n - 2.0));
    let p = statrs::function::erf::erfc(sum.abs() / variance.sqrt() / std::f64::consts::SQRT_2);
    let r = sum / (all / 2.0 - tied).sqrt() / (all / 2.0 - tied_too).sqrt();
    Some(Correlation { r: r.clamp(-1.0, 1.0), p, n: pairs.len() as u32 })
}

/// How many values are each the same.
fn ties(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|part| part.len() as f64).collect()
}

/// The standard deviation of a sample; none of fewer than two.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let mean = Mean::of(values.iter().copied()).mean?;
    let squares: f64 = values.iter().map(|one| (one - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, by: f64) {
        assert!((found - expected).abs() < by, "{found} {expected}");
    }

    /// Differences of sixty instances.
    const MANY: [f64; 60] = [
        0.916, -0.922, 0.267, -0.127, -0.081, 0.014, -0.708, 0.007, -0.246, 1.429, 0.19, -0.041, -0.013,
        -0.167, -0.322, -0.056, 0.293, 0.005, 0.483, 0.02, 0.11, 0.718, 0.319, -0.102, 0.027, 0.316, 0.874,
        -0.008, 0.003, 0.501, -0.255, -0.017, 0.453, 0.332, 0.137, 0.368, -1.031, 0.509, -0.284, -0.567,
        0.211, 0.38, -0.078, -0.331, 0.11, 0.079, 0.662, 0.399, 0.178, 0.545, 0.018, -0.27, 0.334, 0.333,
        0.014, -0.213, 0.192, -0.898, 0.376, 0.297,
    ];

    // Expected values: scipy.stats 1.17 (permutation_test of samples, bootstrap of percentiles, false_discovery_control,
    // kendalltau with its asymptotic method).
    #[test]
    fn signs_of_few_differences_are_all_tried_and_those_of_many_drawn() {
        close(sign_flip(&[0.5, -0.2, 0.3, 0.9, -0.1, 0.4, 0.0]).unwrap(), 0.15625, 1e-12);
        close(sign_flip(&MANY).unwrap(), 0.095_17, 0.01);
        assert_eq!(sign_flip(&MANY), sign_flip(&MANY));
        let ones = [[1.0; 9].as_slice(), &[-1.0], &[0.0; 30]].concat();
        assert_eq!(sign_flip(&ones), mcnemar(1, 9));
        close(sign_flip(&[-1.0 / 3.0, -2.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0]).unwrap(), 1.0, 1e-12);
        assert_eq!((sign_flip(&[]), sign_flip(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn the_interval_of_a_mean_is_that_of_its_samples() {
        let (low, high) = bootstrap(&MANY).unwrap();
        close(low, -0.014, 0.015);
        close(high, 0.202, 0.015);
        assert_eq!(bootstrap(&[1.0]), None);
        assert_eq!(bootstrap(&[0.5, 0.5]), Some((0.5, 0.5)));
    }

    #[test]
    fn rates_of_false_discoveries_never_fall_with_p() {
        let found = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.5, 0.2]);
        for (found, expected) in found.into_iter().zip([0.05, 0.2 / 3.0, 0.2 / 3.0, 0.5, 0.25]) {
            close(found, expected, 1e-12);
        }
        assert_eq!(benjamini_hochberg(&[]), [] as [f64; 0]);
    }

    #[test]
    fn rank_correlation_considers_ties() {
        let found =
            kendall(&[(1.0, 0.0), (1.0, 1.0), (2.0, 1.0), (7.0, 1.0), (9.0, 0.0), (12.0, 0.0)]).unwrap();
        close(found.r, -0.356_348_322_549_899, 1e-9);
        close(found.p, 0.375_825_087_488_698, 1e-9);
        let found = kendall(&[(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0), (5.0, 5.0)]).unwrap();
        close(found.r, 0.6, 1e-9);
        close(found.p, 0.141_644_690_295_134, 1e-9);
        assert_eq!(kendall(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn a_deviation_needs_two_values() {
        close(deviation(&[1.0, 2.0, 4.0]).unwrap(), 1.527_525_231_651_947, 1e-12);
        assert_eq!(deviation(&[1.0]), None);
    }
}
