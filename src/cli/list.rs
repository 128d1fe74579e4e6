//! `gistmill list`: the groups of a dataset, with the filters of its page.

use clap::ValueEnum;
use serde_json::json;

use super::newest::DatasetArguments;
use super::selection::Selection;
use super::{Arguments, Format, show};
use crate::dataset::Dataset;
use crate::dataset::query::{self, FoundGroup};
use crate::error::Result;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    dataset: DatasetArguments,
    /// Only groups in this state
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Only groups that were dropped for this cause; may be given several times
    #[arg(long, value_name = "CAUSE")]
    cause: Vec<String>,
    #[command(flatten)]
    selection: Selection,
    /// Only groups with this flag; may be given several times: with all of them
    #[arg(long, value_name = "FLAG")]
    flag: Vec<String>,
    /// Only groups that have this text in their ID or in their instance's, whatever its case
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

/// Where a group ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum State {
    /// It is an instance
    Published,
    /// It could be one, and is not in the sample
    Kept,
    /// It is kept, and not published: no submission can solve it by the rules, or none can be judged
    Unsolvable,
    /// It has a cause
    Dropped,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            State::Published => "published",
            State::Kept => "kept",
            State::Unsolvable => "unsolvable",
            State::Dropped => "dropped",
        }
    }
}

const COLUMNS: [&str; 11] = [
    "repository",
    "group_id",
    "state",
    "cause",
    "tier",
    "flags",
    "n_cases",
    "attempts",
    "trace_length",
    "unique_files",
    "instance_id",
];

pub(super) fn run(arguments: &Arguments, list: &ListArguments) -> Result<u8> {
    let dataset = Dataset::open(&list.dataset.directory()?)?;
    let mut found = query::all(&dataset)?;
    list.selection.keep_groups(&dataset, &mut found)?;
    found.retain(|group| list.wants(group));
    match arguments.format {
        Format::Json => terminal::json(&json!({ "groups": found })),
        Format::Csv => {
            let mut lines = vec![COLUMNS.join(",")];
            lines.extend(found.iter().map(csv));
            terminal::say(&lines.join("\n"));
        }
        Format::Human => {
            if !found.is_empty() {
                let lines: Vec<String> = found.iter().map(show::line).collect();
                terminal::say(&lines.join("\n"));
            }
            terminal::note(&crate::text::count(found.len(), "test"));
        }
    }
    Ok(0)
}

impl ListArguments {
    fn wants(&self, group: &FoundGroup) -> bool {
        let has = |text: &str| {
            let text = text.to_lowercase();
            let ids = [Some(group.group_id.as_str()), group.instance_id.as_deref()];
            ids.into_iter().flatten().any(|id| id.to_lowercase().contains(&text))
        };
        let is_cause = |cause: &str| self.cause.iter().any(|one| one == cause);
        self.state.is_none_or(|state| state.as_str() == group.state())
            && (self.cause.is_empty() || group.cause.as_deref().is_some_and(is_cause))
            && self.flag.iter().all(|flag| group.flags.contains(flag))
            && self.text.as_deref().is_none_or(has)
    }
}

/// A row of [`COLUMNS`].
fn csv(group: &FoundGroup) -> String {
    let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
    let cells: [String; COLUMNS.len()] = [
        group.slug.clone(),
        group.group_id.clone(),
        group.state().to_owned(),
        group.cause.clone().unwrap_or_default(),
        group.tier.clone().unwrap_or_default(),
        group.flags.join(" "),
        group.cases.to_string(),
        group.attempts.to_string(),
        number(group.trace_length),
        number(group.unique_files),
        group.instance_id.clone().unwrap_or_default(),
    ];
    cells.map(|cell| quoted(&cell)).join(",")
}

/// A cell as RFC 4180 writes it, on one line. What a table calculator would take for a formula gets a quotation mark.
fn quoted(cell: &str) -> String {
    let mut cell = terminal::one_line(cell);
    if cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err() {
        cell = format!("'{cell}").into();
    }
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        list: ListArguments,
    }

    fn group(id: &str, cause: Option<&str>, instance: Option<&str>) -> FoundGroup {
        FoundGroup {
            slug: "a/b".to_owned(),
            group_id: id.to_owned(),
            instance_id: instance.map(str::to_owned),
            kept: cause.is_none(),
            cause: cause.map(str::to_owned),
            flags: vec!["starts-threads".to_owned(), "reads-own-location".to_owned()],
            evidence: None,
            cases: 2,
            attempts: 3,
            worlds: Vec::new(),
            trace_length: Some(7),
            unique_files: None,
            tier: instance.map(|_| "easy".to_owned()),
            case: None,
        }
    }

    #[test]
    fn every_filter_takes_some_and_leaves_some() {
        let mut barred = group("t.py::test_barred", None, None);
        barred.flags.push("no-variants".to_owned());
        let groups = [
            group("t.py::test_One", None, Some("a__b.test_One-1")),
            group("t.py::test_two", None, None),
            barred.clone(),
            group("t.py::test_three[\"x\",\ny]", Some("fails"), None),
        ];
        let kept = |arguments: &str| -> Vec<usize> {
            let words = std::iter::once("list").chain(arguments.split_whitespace());
            let list = Only::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).list;
            (0..groups.len()).filter(|at| list.wants(&groups[*at])).collect()
        };
        for (arguments, expected) in [
            ("", &[0, 1, 2, 3][..]),
            ("--state published", &[0]),
            ("--state kept", &[1]),
            ("--state dropped", &[3]),
            ("--state unsolvable", &[2]),
            ("--cause fails --cause errors", &[3]),
            ("--flag starts-threads --flag other", &[]),
            ("--flag starts-threads", &[0, 1, 2, 3]),
            ("--text TEST_t", &[1, 3]),
            ("--text a__B", &[0]),
        ] {
            assert_eq!(kept(arguments), expected, "{arguments}");
        }
        assert_eq!(
            csv(&groups[3]),
            "a/b,\"t.py::test_three[\"\"x\"\",\\ny]\",dropped,fails,,starts-threads reads-own-location,2,3,7,,"
        );
    }
}
