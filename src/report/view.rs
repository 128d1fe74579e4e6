//! What the page says without a script: causes by repository, tiers, the first instances. Pure over the tables.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Tables;
use crate::dataset::counts::Counts;
use crate::dataset::manifest::Manifest;
use crate::dataset::table::Table;
use crate::error::Result;
use crate::record::verdict::Cause;

/// Instances in the plain table; the script shows them all.
const MOST_INSTANCES: usize = 300;

/// The parts of the page that are computed from more than one value.
#[derive(Debug, Serialize)]
pub(super) struct View {
    slugs: Vec<String>,
    causes: Vec<CauseRow>,
    tiers: Vec<TierRow>,
    instances: Vec<InstanceRow>,
    instances_total: usize,
    parity_compared: usize,
    parity_differing: usize,
}

/// A cause with its number of groups per repository.
#[derive(Debug, Serialize)]
struct CauseRow {
    cause: String,
    meaning: String,
    total: usize,
    /// In the order of [`View::slugs`].
    numbers: Vec<usize>,
}

/// Quantiles of one tier.
#[derive(Debug, Serialize)]
struct TierRow {
    tier: &'static str,
    size: usize,
    length: Option<[i64; 3]>,
    files: Option<[i64; 3]>,
}

#[derive(Debug, Serialize)]
struct InstanceRow {
    id: String,
    slug: String,
    group: String,
    tier: String,
    hard: String,
    cases: i64,
    length: i64,
    files: i64,
}

/// Computes the view.
pub(super) fn view(manifest: &Manifest, tables: &Tables) -> Result<View> {
    let repositories = &manifest.counts.repositories;
    let parity = &manifest.parity;
    Ok(View {
        slugs: repositories.keys().cloned().collect(),
        causes: causes(repositories),
        tiers: tiers(&tables.instances)?,
        instances: instances(&tables.instances)?,
        instances_total: tables.instances.rows(),
        parity_compared: parity.values().map(|one| one.compared).sum(),
        parity_differing: parity.values().map(|one| one.differing.len()).sum(),
    })
}

fn causes(repositories: &BTreeMap<String, Counts>) -> Vec<CauseRow> {
    let mut rows: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, counts) in repositories.values().enumerate() {
        for (cause, number) in &counts.dropped {
            rows.entry(cause).or_insert_with(|| vec![0; repositories.len()])[at] = *number;
        }
    }
    let row = |(cause, numbers): (&str, Vec<usize>)| CauseRow {
        cause: cause.to_owned(),
        meaning: meaning(cause),
        total: numbers.iter().sum(),
        numbers,
    };
    let mut rows: Vec<CauseRow> = rows.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.cause.cmp(&b.cause)));
    rows
}

/// A cause in words; none for one of a later version.
fn meaning(cause: &str) -> String {
    Cause::try_from(cause.to_owned()).map(|cause| cause.meaning()).unwrap_or_default()
}

fn tiers(table: &Table) -> Result<Vec<TierRow>> {
    let tier_of = table.whole_texts("tier")?;
    let (lengths, files) = (table.whole_numbers("trace_length")?, table.whole_numbers("unique_files")?);
    let of_tier = |tier: &str, values: &[i64]| -> Vec<i64> {
        tier_of.iter().zip(values).filter(|(one, _)| **one == tier).map(|(_, value)| *value).collect()
    };
    let row = |tier: &'static str| TierRow {
        tier,
        size: tier_of.iter().filter(|one| **one == tier).count(),
        length: quantiles(of_tier(tier, &lengths)),
        files: quantiles(of_tier(tier, &files)),
    };
    Ok(["easy", "medium", "hard"].map(row).into())
}

/// Smallest, (lower) median and largest value.
fn quantiles(mut values: Vec<i64>) -> Option<[i64; 3]> {
    values.sort_unstable();
    Some([*values.first()?, values[(values.len() - 1) / 2], *values.last()?])
}

fn instances(table: &Table) -> Result<Vec<InstanceRow>> {
    let [id, slug, group, tier] =
        ["instance_id", "slug", "group_id", "tier"].map(|column| table.whole_texts(column));
    let (id, slug, group, tier) = (id?, slug?, group?, tier?);
    let [cases, length, files] =
        ["n_cases", "trace_length", "unique_files"].map(|column| table.whole_numbers(column));
    let (cases, length, files) = (cases?, length?, files?);
    let hard = table.lists("hard_axes")?;
    let row = |at: usize| InstanceRow {
        id: id[at].to_owned(),
        slug: slug[at].to_owned(),
        group: group[at].to_owned(),
        tier: tier[at].to_owned(),
        hard: hard[at].join(", "),
        cases: cases[at],
        length: length[at],
        files: files[at],
    };
    Ok((0..id.len().min(MOST_INSTANCES)).map(row).collect())
}

/// A count with thin spaces between thousands.
pub(super) fn number(value: &minijinja::Value) -> String {
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), number_text)
}

/// The same for a number that is known to be one.
pub(super) fn number_text(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// A share in percent with one digit.
pub(super) fn percent(value: &minijinja::Value) -> String {
    f64::try_from(value.clone()).map_or_else(|_| "–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            [7.0, 1234.0, 1_234_567.0].map(number_text),
            ["7", "1\u{2009}234", "1\u{2009}234\u{2009}567"]
        );
    }

    #[test]
    fn causes_are_shown_in_words_and_unknown_ones_without() {
        assert_eq!(meaning("fails"), "fails in a test body in every base attempt");
        assert_eq!(meaning("rule:slow-tests"), "dropped by the rule slow-tests");
        assert_eq!(meaning("of-a-later-version"), "");
        assert_eq!(
            meaning("depends-on-test-file-location"),
            "differs only when this does: test file location"
        );
    }

    #[test]
    fn quantiles_are_smallest_median_largest() {
        assert_eq!(quantiles(vec![9, 1, 5]), Some([1, 5, 9]));
        assert_eq!(quantiles(vec![]), None);
    }
}
