//! `gistmill try`: the tests of one repository once, before there is a configuration.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use console::{Alignment, Style, pad_str};
use serde_json::json;

use super::build::elapsed;
use super::place::{self, PlaceArguments};
use super::session;
use super::{Arguments, Format, IsolationArguments, table};
use crate::error::{Error, Result};
use crate::pipeline::once::{self, Once};
use crate::record::id::RepoSlug;
use crate::terminal::{self, Text};
use crate::text::count;

/// Reasons that are shown to people.
const SHOWN: usize = 10;

#[derive(Debug, clap::Args)]
pub(super) struct TryArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// Of more groups, run so many, evenly spread over the files
    #[arg(long, value_name = "N", default_value = "200", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Also run commands of the repository that a person would run, as `gistmill entries` lists them
    #[arg(long)]
    entries: bool,
    #[command(flatten)]
    isolation: IsolationArguments,
}

pub(super) fn run(arguments: &Arguments, asked: &TryArguments) -> Result<u8> {
    let started = Instant::now();
    let mut keys = asked.place.keys(|place| Ok(place.to_owned()))?;
    if keys.iter().any(|(key, _)| *key == "path") {
        // Nothing is published, so what is not committed may be looked at as well.
        keys.push(("allow_uncommitted", true.into()));
    }
    if asked.entries {
        keys.push(("entries", "discover".into()));
    }
    let config = place::parse(&place::document(&asked.place.slug(), &keys), Path::new("."))?;
    let job = session::of_config(arguments, config, asked.isolation.isolation)?;
    let repo = job.config.repos.first().ok_or_else(|| Error::internal("the configuration is empty"))?;
    let most = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    let once = once::run(&job.pipeline(), repo, most).map_err(|error| error.at(&repo.slug))?;
    let next = format!("gistmill init {}", asked.place.words());
    if arguments.format == Format::Json {
        let mut value = json!(once);
        value["verdicts"] = json!(once.verdicts.iter().cloned().collect::<BTreeMap<_, _>>());
        value["slug"] = json!(repo.slug);
        value["next"] = json!(next);
        terminal::json(&value);
    } else {
        describe(&repo.slug, &once, &next).print();
    }
    terminal::note(&format!("took {}", elapsed(started.elapsed())));
    Ok(0)
}

/// What was found, what became of the groups, why, and what comes next.
fn describe(slug: &RepoSlug, once: &Once, next: &str) -> Text {
    let bold = Style::new().bold();
    let mut text = Text::default();
    text.styled(&bold, slug.as_str());
    text.line("");
    table::found(slug, &once.found, &mut text);
    let all = once.found.groups.unwrap_or(once.tried);
    text.line("");
    text.styled(&bold, "run once in the base world");
    text.line(&if once.tried == all {
        format!(": {}", count(all, "group"))
    } else {
        format!(": {} of {all} groups, evenly spread over the files (--limit)", once.tried)
    });
    let rows: Vec<[String; 3]> = once.verdicts.iter().map(|row| verdict(row, once.tried)).collect();
    aligned(&rows, &mut text);
    if !once.reasons.is_empty() {
        text.line("");
        text.styled(&bold, "why not");
        text.line("");
        let row = |one: &once::Reason| {
            [one.cause.clone(), one.groups.to_string(), format!("{}\n{}", one.text, one.first)]
        };
        aligned(&once.reasons.iter().take(SHOWN).map(row).collect::<Vec<_>>(), &mut text);
        let more = once.reasons.len().saturating_sub(SHOWN);
        if more > 0 {
            text.line(&format!("  and {} (--format json has all)", count(more, "further reason")));
        }
    }
    let causes = if once.reasons.is_empty() { "" } else { "; gistmill explain CAUSE says what can be done" };
    text.line(&format!("next: {next}, then gistmill build{causes}"));
    text
}

fn verdict((name, groups): &(String, usize), all: usize) -> [String; 3] {
    [name.clone(), groups.to_string(), format!("{:.1} %", 100.0 * *groups as f64 / all.max(1) as f64)]
}

/// Names, numbers and what belongs to them; what comes after the first line of the third column is indented below it.
fn aligned(rows: &[[String; 3]], text: &mut Text) {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    for [name, number, rest] in rows {
        let name = pad_str(name, width(0), Alignment::Left, None);
        let number = pad_str(number, width(1), Alignment::Right, None);
        let mut lines = rest.lines();
        text.line(&format!("  {name}  {number}  {}", lines.next().unwrap_or_default()));
        for line in lines {
            text.line(&format!("  {:indent$}{line}", "", indent = width(0) + width(1) + 4));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::RepositoryFacts;

    #[test]
    fn what_became_of_the_groups_is_told_with_its_reasons() {
        let reason = |at: usize| once::Reason {
            cause: "fails".to_owned(),
            text: format!("E{at} \u{1b}[2J"),
            groups: 2,
            first: format!("tests/t.py::t{at}"),
        };
        let once = Once {
            found: RepositoryFacts { groups: Some(100), cases: Some(120), ..RepositoryFacts::default() },
            tried: 30,
            verdicts: vec![("passes".to_owned(), 8), ("fails".to_owned(), 22)],
            reasons: (0..11).map(reason).collect(),
        };
        let text = describe(&RepoSlug::new("a/b").unwrap(), &once, "gistmill init x");
        let text = console::strip_ansi_codes(text.as_str()).into_owned();
        assert!(!text.contains('\u{1b}'), "{text}");
        for line in [
            "a/b\n  collected: 120 cases in 100 groups\n",
            "run once in the base world: 30 of 100 groups, evenly spread over the files (--limit)\n",
            "\n  passes   8  26.7 %\n  fails   22  73.3 %\n",
            "\n  fails  2  E0 \\u{1b}[2J\n            tests/t.py::t0\n",
            "\n  and 1 further reason (--format json has all)\nnext: gistmill init x, then gistmill build",
        ] {
            assert!(text.contains(line), "`{line}` is not in\n{text}");
        }
    }
}
