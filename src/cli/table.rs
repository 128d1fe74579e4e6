//! The closing table. Pure: results in, text out.

use std::fmt::Write as _;

use console::{Alignment, Style, pad_str};

use crate::pipeline::Built;
use crate::record::evidence::{GroupEvidence, RepositoryEvidence};
use crate::record::instance::Contribution;
use crate::terminal::Text;

const HEADINGS: [&str; 6] = ["repository", "cases", "groups", "kept", "published", "main causes"];
/// How many causes a line names.
const CAUSES: usize = 4;

/// One line a repository, then what failed and where the dataset lies.
pub(super) fn closing(built: &Built) -> Text {
    let mut rows: Vec<[String; 6]> = vec![HEADINGS.map(str::to_owned)];
    rows.extend(built.finished.iter().filter_map(|finished| Some(row(finished.record.as_ref()?))));
    let mut text = Text::default();
    if rows.len() > 1 {
        aligned(&rows, &mut text);
    } else if built.summary.is_none() {
        for finished in &built.finished {
            let _ = writeln!(text, "{}: done as far as was asked for", finished.slug);
        }
    }
    let done = || built.finished.iter().filter_map(|finished| Some(&finished.record.as_ref()?.evidence));
    for record in done() {
        let parity = &record.parity;
        let _ = writeln!(
            text,
            "{}: {} groups run cold as well, {} differ from the fork tree",
            record.pinned.slug,
            parity.compared,
            parity.differing.len()
        );
    }
    for record in done() {
        for line in record.built.warnings() {
            text.styled(&Style::new().yellow().bold(), "warning");
            text.line(&format!(" {}: {line}", record.pinned.slug));
        }
    }
    for failed in &built.failed {
        text.styled(&Style::new().red().bold(), "failed");
        text.line(&format!(" {} ({}): {}", failed.slug, failed.stage, failed.message));
        for line in failed.detail.iter().flat_map(|detail| detail.lines()) {
            text.line(&format!("    {line}"));
        }
        if let Some(hint) = &failed.hint {
            text.line(&format!("    hint: {hint}"));
        }
    }
    if let Some(summary) = &built.summary {
        for subset in &summary.subsets {
            let _ = writeln!(text, "{}", super::subset::line(subset));
        }
        let _ = writeln!(text, "dataset: {}", summary.directory.display());
    }
    text
}

fn row(contribution: &Contribution) -> [String; 6] {
    let record = &contribution.evidence;
    let kept = |group: &&GroupEvidence| group.verdict.is_kept();
    [
        record.pinned.slug.to_string(),
        record.collected.node_ids.len().to_string(),
        record.groups.len().to_string(),
        record.groups.iter().filter(kept).count().to_string(),
        contribution.published.len().to_string(),
        causes(record),
    ]
}

fn causes(record: &RepositoryEvidence) -> String {
    let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for cause in record.groups.iter().filter_map(|group| group.verdict.cause()) {
        *counts.entry(cause.to_string()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let shown: Vec<String> =
        counts.iter().take(CAUSES).map(|(cause, count)| format!("{cause} {count}")).collect();
    let more = counts.len().saturating_sub(CAUSES);
    if more > 0 { format!("{}, {more} more", shown.join(", ")) } else { shown.join(", ") }
}

fn aligned(rows: &[[String; 6]], text: &mut Text) {
    let width =
        |column: usize| rows.iter().map(|row| console::measure_text_width(&row[column])).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let side = if matches!(column, 1..=4) { Alignment::Right } else { Alignment::Left };
            pad_str(cell, widths[column], side, None).into_owned()
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let line = line.trim_end();
        if number == 0 {
            text.styled(&Style::new().bold(), line);
            text.line("");
        } else {
            text.line(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Finished;
    use crate::record::environment::{Guess, Undeclared};
    use crate::testing::made_up::MadeUp;

    #[test]
    fn guesses_and_what_is_missing_are_warnings() {
        let mut record = MadeUp::new(&[3]).repositories.remove(0);
        record.evidence.built.guesses =
            vec![Guess { distribution: "PyYAML".into(), wanted: "import yaml".into() }];
        record.evidence.built.undeclared = vec![Undeclared { wanted: "import acme".into(), place: None }];
        let slug = record.evidence.pinned.slug.clone();
        let finished = vec![Finished { slug: slug.clone(), record: Some(record) }];
        let text = closing(&Built { summary: None, failed: Vec::new(), finished });
        let text = console::strip_ansi_codes(text.as_str());
        for words in
            ["guessed: PyYAML for `import yaml`", "the tests ask for `import acme`, which nothing declares"]
        {
            assert!(text.contains(&format!("warning {slug}: {words}")), "{text}");
        }
    }
}
