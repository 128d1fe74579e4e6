//! Sets of instances by what they measure: distributions tier by tier, and quantiles of the tiers and the named subsets.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Tables;
use super::plot;
use super::words::share;
use crate::dataset::manifest::Manifest;
use crate::dataset::table::Table;
use crate::error::Result;
use crate::family::tier::percentile_ranks;

const TIERS: [&str; 3] = ["easy", "medium", "hard"];

/// A distribution over bins, tier by tier.
#[derive(Debug, Serialize)]
pub(super) struct Histogram {
    name: &'static str,
    /// Whether each bin is one number.
    single: bool,
    rows: Vec<BinRow>,
}

#[derive(Debug, Serialize)]
struct BinRow {
    label: String,
    /// The address of its instances.
    href: String,
    total: usize,
    /// Tier, number, and width in percent of the largest bin.
    parts: Vec<(&'static str, usize, f64)>,
}

/// Quantiles of a set of instances.
#[derive(Debug, Serialize)]
pub(super) struct SetRow {
    name: String,
    /// The tier that it is.
    tier: Option<&'static str>,
    /// What it is, or where its rows are.
    note: String,
    size: usize,
    tiers: [usize; 3],
    repositories: usize,
    length: Option<[i64; 3]>,
    files: Option<[i64; 3]>,
}

/// The place of each instance among all, from the easiest: by tier, then by the higher of its two ranks, then by the other one.
pub(super) fn difficulty(instances: &Table) -> Result<Vec<usize>> {
    let tiers = instances.whole_texts("tier")?;
    let ranks = |column: &str| -> Result<Vec<f64>> {
        let values = instances.whole_numbers(column)?.into_iter();
        Ok(percentile_ranks(&values.map(|value| value.max(0).unsigned_abs()).collect::<Vec<_>>()))
    };
    let (length, files) = (ranks("trace_length")?, ranks("unique_files")?);
    let tier = |at: usize| TIERS.iter().position(|tier| *tier == tiers[at]);
    let higher = |at: usize| length[at].max(files[at]);
    let mut order: Vec<usize> = (0..tiers.len()).collect();
    order.sort_by(|a, b| {
        let by_tier = tier(*a).cmp(&tier(*b)).then_with(|| higher(*a).total_cmp(&higher(*b)));
        by_tier.then_with(|| (length[*a] + files[*a]).total_cmp(&(length[*b] + files[*b])))
    });
    let mut places = vec![0; order.len()];
    for (place, at) in order.into_iter().enumerate() {
        places[at] = place;
    }
    Ok(places)
}

/// The distributions of trace length and unique files; none without instances.
pub(super) fn histograms(instances: &Table) -> Result<Vec<Histogram>> {
    let tiers = instances.whole_texts("tier")?;
    if tiers.is_empty() {
        return Ok(Vec::new());
    }
    let axes = [("trace_length", "trace length", "length"), ("unique_files", "unique files", "files")];
    let of = |(column, name, field)| Ok(histogram(&instances.whole_numbers(column)?, &tiers, name, field));
    axes.into_iter().map(of).collect()
}

fn histogram(values: &[i64], tiers: &[&str], name: &'static str, field: &str) -> Histogram {
    let bins = plot::bins(values);
    let count = |bin: &plot::Bin, tier: &str| {
        values.iter().zip(tiers).filter(|(value, one)| **one == tier && bin.holds(**value)).count()
    };
    let numbers: Vec<[usize; 3]> = bins.iter().map(|bin| TIERS.map(|tier| count(bin, tier))).collect();
    let most = numbers.iter().map(|bin| bin.iter().sum()).max().unwrap_or(0);
    let row = |(bin, numbers): (&plot::Bin, &[usize; 3])| BinRow {
        label: bin.label(),
        href: format!("#instances?q={field}%3A{}..{}", bin.from.max(0), bin.to),
        total: numbers.iter().sum(),
        parts: TIERS
            .into_iter()
            .zip(*numbers)
            .filter(|one| one.1 > 0)
            .map(|(tier, count)| (tier, count, share(count, most)))
            .collect(),
    };
    Histogram {
        name,
        single: bins.iter().all(|bin| bin.from == bin.to),
        rows: bins.iter().zip(&numbers).map(row).collect(),
    }
}

/// All instances, the tiers, and the named subsets.
pub(super) fn sets(manifest: &Manifest, tables: &Tables) -> Result<Vec<SetRow>> {
    let table = &tables.instances;
    let (ids, slugs, tiers) =
        (table.whole_texts("instance_id")?, table.whole_texts("slug")?, table.whole_texts("tier")?);
    let (lengths, files) = (table.whole_numbers("trace_length")?, table.whole_numbers("unique_files")?);
    let row = |name: &str, tier: Option<&'static str>, note: String, is_member: &dyn Fn(usize) -> bool| {
        let members: Vec<usize> = (0..ids.len()).filter(|at| is_member(*at)).collect();
        let of = |values: &[i64]| quantiles(members.iter().map(|at| values[*at]).collect());
        SetRow {
            name: name.to_owned(),
            tier,
            note,
            size: members.len(),
            tiers: TIERS.map(|tier| members.iter().filter(|at| tiers[**at] == tier).count()),
            repositories: members.iter().map(|at| slugs[*at]).collect::<BTreeSet<_>>().len(),
            length: of(&lengths),
            files: of(&files),
        }
    };
    let from = |tier| match tier {
        "hard" => format!("from rank {}", manifest.tiers.hard_from),
        "medium" => format!("from rank {}", manifest.tiers.medium_from),
        _ => String::new(),
    };
    let mut rows = vec![row("all instances", None, String::new(), &|_| true)];
    rows.extend(TIERS.map(|tier| row(tier, Some(tier), from(tier), &|at| tiers[at] == tier)));
    for (name, members) in &tables.subsets {
        rows.push(row(name, None, format!("subsets/{name}.parquet"), &|at| members.contains(ids[at])));
    }
    Ok(rows)
}

/// Smallest, (lower) median and largest value.
fn quantiles(mut values: Vec<i64>) -> Option<[i64; 3]> {
    values.sort_unstable();
    Some([*values.first()?, values[(values.len() - 1) / 2], *values.last()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_smallest_median_largest() {
        assert_eq!(quantiles(vec![9, 1, 5]), Some([1, 5, 9]));
        assert_eq!(quantiles(vec![]), None);
    }

    #[test]
    fn every_instance_is_in_one_bin_of_its_tier() {
        let histogram = histogram(
            &[1, 1, 2, 9, 10, 1000],
            &["easy", "hard", "easy", "medium", "medium", "hard"],
            "x",
            "x",
        );
        let row = |label: &str| &histogram.rows.iter().find(|row| row.label == label).unwrap().parts;
        assert_eq!(row("1"), &[("easy", 1, 50.0), ("hard", 1, 50.0)]);
        assert_eq!(row("10–19"), &[("medium", 1, 50.0)]);
        assert_eq!(histogram.rows.iter().map(|row| row.total).sum::<usize>(), 6);
        assert!(!histogram.single);
        assert_eq!(histogram.rows[0].href, "#instances?q=x%3A1..1");
    }
}
