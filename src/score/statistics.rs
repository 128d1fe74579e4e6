//! Statistics over the submissions of runs: how fidelity goes with difficulty, with the metrics, and with a setting.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use super::Ratio;

/// A mean and what it is of. Rates are from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// None of nothing.
    pub mean: Option<f64>,
    pub n: u32,
}

impl Mean {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let (sum, n) = values.into_iter().fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
        Mean { mean: (n > 0).then(|| sum / f64::from(n)), n }
    }
}

/// The mean of what each part has: repositories, or settings.
pub fn mean_of_means(means: impl IntoIterator<Item = Mean>) -> Mean {
    Mean::of(means.into_iter().filter_map(|mean| mean.mean))
}

/// The 0.975 quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's interval at 95 % of a share.
pub fn wilson(share: Ratio) -> Option<(f64, f64)> {
    let (rate, n) = (share.rate()?, f64::from(share.whole));
    let middle = rate + Z * Z / (2.0 * n);
    let half = Z * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    Some((((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0)))
}

/// A correlation and how likely one at least as strong is without any (two-sided).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Correlation {
    /// From −1 to 1.
    pub r: f64,
    pub p: f64,
    pub n: u32,
}

/// Pearson's correlation, with the p of the t distribution of `n − 2` degrees. With values of 0 and 1 on one side it is
/// the point-biserial one. None of fewer than three pairs, or where one side does not vary.
pub fn pearson(pairs: &[(f64, f64)]) -> Option<Correlation> {
    let count = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (left, right) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        pairs.iter().map(|pair| of(pair.0 - left, pair.1 - right)).sum()
    };
    let (both, xs, ys) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    if pairs.len() < 3 || xs <= 0.0 || ys <= 0.0 {
        return None;
    }
    let r = (both / (xs * ys).sqrt()).clamp(-1.0, 1.0);
    let t = r * ((count - 2.0) / (1.0 - r * r)).sqrt();
    let p = if t.is_finite() { 2.0 * StudentsT::new(0.0, 1.0, count - 2.0).ok()?.sf(t.abs()) } else { 0.0 };
    Some(Correlation { r, p: p.min(1.0), n: pairs.len() as u32 })
}

/// Spearman's rank correlation; ties have their mean rank.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<Correlation> {
    let xs = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let ys = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    pearson(&xs.into_iter().zip(ys).collect::<Vec<_>>())
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let value = values[order[start]];
        let end =
            start + order[start..].iter().take_while(|at| values[**at].total_cmp(&value).is_eq()).count();
        for at in &order[start..end] {
            ranks[*at] = (start + end + 1) as f64 / 2.0;
        }
        start = end;
    }
    ranks
}

/// McNemar's exact test of pairs that differ: `first` only where the first is right, `second` only where the second is.
/// Two-sided. None without such a pair.
pub fn mcnemar(first: u32, second: u32) -> Option<f64> {
    let n = u64::from(first) + u64::from(second);
    let tail = Binomial::new(0.5, n).ok()?.cdf(u64::from(first.min(second)));
    (n > 0).then(|| (2.0 * tail).min(1.0))
}

/// A part of an axis, and how many of its submissions are right.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bin {
    pub from: f64,
    pub to: f64,
    pub fidelity: Mean,
    /// Wilson's at 95 %.
    pub interval: Option<(f64, f64)>,
}

/// Cuts an axis at its quartiles. `points` are places on the axis with whether the submission is right; equal places are in
/// one bin.
pub fn quartiles(points: &[(f64, bool)]) -> Vec<Bin> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut bins = Vec::new();
    let mut start = 0;
    for quarter in 1..=4 {
        let mut end = (sorted.len() * quarter).div_ceil(4);
        while end > start && end < sorted.len() && sorted[end].0.total_cmp(&sorted[end - 1].0).is_eq() {
            end += 1;
        }
        if end > start {
            let part = &sorted[start..end];
            let right =
                Ratio { part: part.iter().filter(|one| one.1).count() as u32, whole: part.len() as u32 };
            bins.push(Bin {
                from: part[0].0,
                to: part[part.len() - 1].0,
                fidelity: Mean { mean: right.rate(), n: right.whole },
                interval: wilson(right),
            });
            start = end;
        }
    }
    bins
}

/// Pearson's correlation of the means of ten bins of equal size along the first value.
pub fn pearson_of_deciles(pairs: &[(f64, f64)]) -> Option<Correlation> {
    let mut sorted = pairs.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let bounds: Vec<usize> = (0..=10).map(|tenth| sorted.len() * tenth / 10).collect();
    let bins = bounds.windows(2).map(|pair| &sorted[pair[0]..pair[1]]).filter(|bin| !bin.is_empty());
    let mean = |bin: &[(f64, f64)]| {
        let n = bin.len() as f64;
        (bin.iter().map(|one| one.0).sum::<f64>() / n, bin.iter().map(|one| one.1).sum::<f64>() / n)
    };
    pearson(&bins.map(mean).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }

    // Expected values: scipy.stats 1.17 (pearsonr, spearmanr, binomtest).
    #[test]
    fn correlations_are_those_of_the_books() {
        let pairs = [(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0), (5.0, 5.0)];
        let found = pearson(&pairs).unwrap();
        close(found.r, 0.8);
        close(found.p, 0.104_088_038_661_827_82);
        let ties = [(1.0, 0.0), (1.0, 1.0), (2.0, 1.0), (7.0, 1.0), (9.0, 0.0), (12.0, 0.0)];
        let found = spearman(&ties).unwrap();
        close(found.r, -0.396_059_017_190_669_77);
        close(found.p, 0.436_974_926_542_675_3);
        assert_eq!(pearson(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        let line: Vec<(f64, f64)> = (0..40).map(|at| (f64::from(at), f64::from(at) * 2.0)).collect();
        close(pearson(&line).unwrap().p, 0.0);
        close(pearson_of_deciles(&line).unwrap().r, 1.0);
    }

    #[test]
    fn mcnemar_is_the_binomial_test_of_the_pairs_that_differ() {
        close(mcnemar(1, 9).unwrap(), 0.021_484_375);
        close(mcnemar(5, 5).unwrap(), 1.0);
        assert_eq!(mcnemar(0, 0), None);
    }

    #[test]
    fn quartiles_keep_equal_places_together() {
        let points: Vec<(f64, bool)> =
            [1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0].iter().map(|at| (*at, *at < 3.0)).collect();
        let bins = quartiles(&points);
        let told: Vec<(f64, f64, u32)> = bins.iter().map(|bin| (bin.from, bin.to, bin.fidelity.n)).collect();
        assert_eq!(told, [(1.0, 2.0, 4), (3.0, 4.0, 2), (5.0, 6.0, 2)]);
        assert_eq!(bins[0].fidelity.mean, Some(1.0));
        assert_eq!(quartiles(&[]), []);
    }
}
