//! What the page says without a script: figures, bars, causes, sets of instances, the first instances. Pure over the tables.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::Tables;
use super::data;
use super::families::Family;
use super::sets::{Histogram, SetRow, difficulty, histograms, sets};
use super::trust::{Trust, trust};
use super::words::{address_part, number_text, share};
use crate::dataset::counts::Counts;
use crate::dataset::manifest::Manifest;
use crate::dataset::table::Table;
use crate::error::Result;
use crate::record::id::RepoSlug;
use crate::record::verdict::Cause;
use crate::score::{Correlation, spearman};

/// Instances in the plain table; the script shows them all.
const MOST_INSTANCES: usize = 100;
/// Repositories that a cause names.
const MOST_NAMED: usize = 3;

/// The parts of the page that are computed from more than one value.
#[derive(Debug, Serialize)]
pub(super) struct View {
    /// The newest pin, `2026-11-23`; none without sources.
    date: Option<String>,
    /// All repositories together first, where there are several.
    bars: Vec<Bar>,
    /// Families that occur.
    families: Vec<Legend>,
    /// Kept groups that no sample takes.
    unsolvable: usize,
    causes: Vec<CauseRow>,
    histograms: Vec<Histogram>,
    sets: Vec<SetRow>,
    instances: Vec<InstanceRow>,
    instances_total: usize,
    witnesses: Option<Witnesses>,
    strength: Option<Strengths>,
    trust: Option<Trust>,
    parity_compared: usize,
    parity_differing: usize,
}

/// A repository from groups to instances.
#[derive(Debug, Serialize)]
struct Bar {
    slug: String,
    /// The address of its groups.
    groups_at: String,
    groups: usize,
    kept: usize,
    published: usize,
    parts: Vec<Part>,
}

/// A part of a bar.
#[derive(Debug, Serialize)]
struct Part {
    class: &'static str,
    label: &'static str,
    count: usize,
    /// Of the bar, in percent.
    width: f64,
    href: String,
}

#[derive(Debug, Serialize)]
struct Legend {
    class: &'static str,
    label: &'static str,
    count: usize,
}

/// A cause with its number of groups.
#[derive(Debug, Serialize)]
struct CauseRow {
    cause: String,
    meaning: String,
    family: &'static str,
    href: String,
    total: usize,
    /// Of the most frequent cause, in percent.
    width: f64,
    /// The repositories with most of them: slug, number, address.
    most: Vec<(String, usize, String)>,
    more: usize,
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

/// How many witnesses there are, and how their length goes with difficulty.
#[derive(Debug, Serialize)]
struct Witnesses {
    made: usize,
    tried: usize,
    length: Option<Correlation>,
    files: Option<Correlation>,
}

/// How much of what is changed in the code tests notice.
#[derive(Debug, Serialize)]
struct Strengths {
    /// Instances where that is known.
    measured: usize,
    /// Instances of which fewer than half of the mutants are noticed.
    weak: usize,
    /// Of all mutants of all instances.
    mean: f64,
}

/// Computes the view.
pub(super) fn view(manifest: &Manifest, tables: &Tables) -> Result<View> {
    let counts = &manifest.counts;
    let unsolvable = unsolvable(tables)?;
    let parity = &manifest.parity;
    let newest = manifest.sources.values().map(|source| source.pinned_at.as_str()).max();
    Ok(View {
        date: newest.map(|moment| moment.chars().take(10).collect()),
        bars: bars(&counts.total, &counts.repositories, &unsolvable),
        unsolvable: unsolvable.values().sum(),
        families: families(&counts.total),
        causes: causes(&counts.repositories),
        histograms: histograms(&tables.instances)?,
        sets: sets(manifest, tables)?,
        instances: instances(&tables.instances)?,
        instances_total: tables.instances.rows(),
        witnesses: witnesses(&tables.instances)?,
        strength: strengths(&tables.instances)?,
        trust: trust(tables)?,
        parity_compared: parity.values().map(|one| one.compared).sum(),
        parity_differing: parity.values().map(|one| one.differing.len()).sum(),
    })
}

/// Kept groups that no sample takes, by repository.
fn unsolvable(tables: &Tables) -> Result<BTreeMap<String, usize>> {
    let mut numbers = BTreeMap::new();
    let states = data::states(&tables.groups)?;
    for (slug, state) in tables.groups.whole_texts("slug")?.into_iter().zip(states) {
        if data::STATES[state] == "unsolvable" {
            *numbers.entry(slug.to_owned()).or_default() += 1;
        }
    }
    Ok(numbers)
}

fn bars(
    total: &Counts,
    repositories: &BTreeMap<RepoSlug, Counts>,
    unsolvable: &BTreeMap<String, usize>,
) -> Vec<Bar> {
    let all = (repositories.len() > 1).then(|| bar(None, total, unsolvable.values().sum()));
    let of_one = |(slug, counts): (&RepoSlug, &Counts)| {
        bar(Some(slug.as_str()), counts, unsolvable.get(slug.as_str()).copied().unwrap_or(0))
    };
    let mut each: Vec<_> = repositories.iter().collect();
    each.sort_by_key(|(slug, _)| numbers_by_size(slug.as_str()));
    all.into_iter().chain(each.into_iter().map(of_one)).collect()
}

/// What a name is sorted by: `pkg2` comes before `pkg10`. Digits and what is between them, digits with their length in front,
/// without zeros that say nothing, and as they stand.
fn numbers_by_size(name: &str) -> Vec<(usize, &str, &str)> {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let parts = name.as_bytes().chunk_by(|a, b| is_digit(a) == is_digit(b));
    let mut start = 0;
    let part = |part: &[u8]| {
        let text = &name[start..start + part.len()];
        start += part.len();
        let number = text.trim_start_matches('0');
        if is_digit(&part[0]) { (number.len() + 1, number, text) } else { (0, text, text) }
    };
    parts.map(part).collect()
}

fn bar(slug: Option<&str>, counts: &Counts, unsolvable: usize) -> Bar {
    let at = |filter: &str| {
        let own = slug.map_or_else(String::new, |slug| format!("&repository={}", address_part(slug)));
        format!("#groups?{}", format!("{filter}{own}").trim_start_matches('&'))
    };
    let states = [
        ("published", "published", counts.published),
        ("kept", "kept, not in the sample", counts.kept.saturating_sub(counts.published + unsolvable)),
        ("unsolvable", "kept, not published: cannot be solved by the rules", unsolvable),
    ];
    let kept = states.map(|(state, label, count)| (state, label, count, at(&format!("state={state}"))));
    let dropped = by_family(counts).into_iter().map(|(family, count)| {
        (family.as_str(), family.label(), count, at(&format!("family={}", family.as_str())))
    });
    let part = |(class, label, count, href): (&'static str, &'static str, usize, String)| Part {
        class,
        label,
        count,
        width: share(count, counts.groups),
        href,
    };
    Bar {
        slug: slug.map_or_else(|| "all repositories".to_owned(), str::to_owned),
        groups_at: at(""),
        groups: counts.groups,
        kept: counts.kept,
        published: counts.published,
        parts: kept.into_iter().chain(dropped).filter(|one| one.2 > 0).map(part).collect(),
    }
}

fn by_family(counts: &Counts) -> BTreeMap<Family, usize> {
    let mut numbers = BTreeMap::new();
    for (cause, number) in &counts.dropped {
        *numbers.entry(Family::of(cause)).or_default() += number;
    }
    numbers
}

fn families(total: &Counts) -> Vec<Legend> {
    let numbers = by_family(total);
    let legend = |family: Family| Legend {
        class: family.as_str(),
        label: family.label(),
        count: numbers.get(&family).copied().unwrap_or(0),
    };
    Family::ALL.into_iter().map(legend).filter(|one| one.count > 0).collect()
}

fn causes(repositories: &BTreeMap<RepoSlug, Counts>) -> Vec<CauseRow> {
    let mut rows: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (slug, counts) in repositories {
        for (cause, number) in &counts.dropped {
            rows.entry(cause).or_default().push((slug.as_str(), *number));
        }
    }
    let row = |(cause, mut numbers): (&str, Vec<(&str, usize)>)| {
        numbers.sort_by_key(|(_, number)| Reverse(*number));
        let href = format!("#groups?cause={}", address_part(cause));
        let most = numbers.iter().take(MOST_NAMED);
        let place = |slug: &str| format!("{href}&repository={}", address_part(slug));
        CauseRow {
            cause: cause.to_owned(),
            meaning: meaning(cause),
            family: Family::of(cause).as_str(),
            total: numbers.iter().map(|one| one.1).sum(),
            width: 0.0,
            most: most.map(|(slug, number)| ((*slug).to_owned(), *number, place(slug))).collect(),
            more: numbers.len().saturating_sub(MOST_NAMED),
            href,
        }
    };
    let mut rows: Vec<CauseRow> = rows.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.cause.cmp(&b.cause)));
    let most = rows.first().map_or(0, |row| row.total);
    for row in &mut rows {
        row.width = share(row.total, most);
    }
    rows
}

/// A cause in words; none for one of a later version.
fn meaning(cause: &str) -> String {
    Cause::try_from(cause.to_owned()).map(|cause| cause.meaning()).unwrap_or_default()
}

/// The hardest ones, the hardest first.
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
        hard: hard[at].join(", ").replace('_', " "),
        cases: cases[at],
        length: length[at],
        files: files[at],
    };
    let difficulty = difficulty(table)?;
    let mut order: Vec<usize> = (0..id.len()).collect();
    order.sort_by_key(|at| Reverse(difficulty[*at]));
    Ok(order.into_iter().take(MOST_INSTANCES).map(row).collect())
}

/// None where witnesses were never asked for.
fn witnesses(table: &Table) -> Result<Option<Witnesses>> {
    let tried = table.if_there("witness", Table::texts)?.into_iter().flatten().count();
    let lines = table.if_there("witness_lines", Table::numbers)?;
    let against = |column: &str| -> Result<Option<Correlation>> {
        let values = table.whole_numbers(column)?;
        let pairs =
            lines.iter().zip(values).filter_map(|(lines, value)| Some(((*lines)? as f64, value as f64)));
        Ok(spearman(&pairs.collect::<Vec<_>>()))
    };
    let of = Witnesses {
        made: lines.iter().flatten().count(),
        tried,
        length: against("trace_length")?,
        files: against("unique_files")?,
    };
    Ok((tried > 0).then_some(of))
}

/// None where mutants were never tried.
fn strengths(table: &Table) -> Result<Option<Strengths>> {
    let scores: Vec<f64> = table.if_there("mutation_score", Table::reals)?.into_iter().flatten().collect();
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    let weak = scores.iter().filter(|score| **score < 0.5).count();
    Ok((!scores.is_empty()).then_some(Strengths { measured: scores.len(), weak, mean }))
}

/// A count with thin spaces between thousands, at which no line ends.
pub(super) fn number(value: &minijinja::Value) -> String {
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), number_text)
}

/// A share in percent with one digit.
pub(super) fn percent(value: &minijinja::Value) -> String {
    f64::try_from(value.clone()).map_or_else(|_| "–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// A number as it was configured: `50`, `33.3`.
pub(super) fn plain(value: &minijinja::Value) -> String {
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), |number| number.to_string())
}

/// A correlation with two digits and a minus that is one.
pub(super) fn coefficient(value: &minijinja::Value) -> String {
    f64::try_from(value.clone()).map_or_else(|_| "–".to_owned(), |r| format!("{r:.2}").replace('-', "−"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_the_numbers_in_them() {
        let mut names = ["a/up10", "a/up2", "a/up", "b/1", "a/up011", "a/up02b", "a/7z", "é/3", "a/up2a"];
        names.sort_by_key(|name| numbers_by_size(name));
        assert_eq!(names, ["a/7z", "a/up", "a/up02b", "a/up2", "a/up2a", "a/up10", "a/up011", "b/1", "é/3"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            [7.0, 1234.0, 1_234_567.0].map(number_text),
            ["7", "1\u{202f}234", "1\u{202f}234\u{202f}567"]
        );
    }

    #[test]
    fn causes_are_shown_in_words_and_unknown_ones_without() {
        assert_eq!(meaning("fails"), "fails in a test body in every base attempt");
        assert_eq!(meaning("rule:slow-tests"), "dropped by the rule slow-tests");
        assert_eq!(meaning("of-a-later-version"), "");
        assert_eq!(meaning("depends-on-test-file-location"), "differs only when the test file location does");
    }

    #[test]
    fn a_bar_is_its_groups_and_leads_to_them() {
        let dropped = [("fails", 2), ("rule:x", 1), ("depends-on-clock", 3), ("needs-network", 1)];
        let counts = Counts {
            groups: 20,
            kept: 13,
            published: 5,
            dropped: dropped.map(|(cause, number)| (cause.to_owned(), number)).into(),
            ..Counts::default()
        };
        let bar = bar(Some("a/b"), &counts, 2);
        let parts: Vec<_> = bar.parts.iter().map(|part| (part.class, part.count)).collect();
        let expected = [
            ("published", 5),
            ("kept", 6),
            ("unsolvable", 2),
            ("environment", 4),
            ("not-runnable", 2),
            ("rule", 1),
        ];
        assert_eq!(parts, expected);
        assert!((bar.parts.iter().map(|part| part.width).sum::<f64>() - 100.0).abs() < 0.01);
        assert_eq!(bar.parts[3].href, "#groups?family=environment&repository=a%2Fb");
        assert_eq!(bar.groups_at, "#groups?repository=a%2Fb");
    }
}
