//! `gistmill list`: the groups of a dataset, its masked files, or its pairs of commits, with the filters of its page.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use super::newest::DatasetArguments;
use super::selection::Selection;
use super::{Arguments, Format, show};
use crate::dataset::Dataset;
use crate::dataset::query::pairs::{self, FoundPair};
use crate::dataset::query::targets::{self, FoundTarget};
use crate::dataset::query::{self, Found, FoundGroup};
use crate::error::{Error, Result};
use crate::record::family::Unit;
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
    /// In a dataset of masked files, or of pairs of commits, the tests, and not the files or pairs
    #[arg(long)]
    tests: bool,
}

/// Where a group, or a file, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum State {
    /// It is an instance
    Published,
    /// It has no cause: it is an instance, or could be one
    Kept,
    /// It is kept, and not published
    Unpublished,
    /// It is kept, and not published: no submission can solve it by the rules, or none can be judged
    Unsolvable,
    /// It has a cause
    Dropped,
}

impl State {
    /// Whether what is listed in a state is meant. That of what is kept says why it is not published, or that it is.
    fn has(self, state: &str) -> bool {
        match self {
            State::Published => state == "published",
            State::Kept => matches!(state, "published" | "kept" | "unsolvable"),
            State::Unpublished => matches!(state, "kept" | "unsolvable"),
            State::Unsolvable => state == "unsolvable",
            State::Dropped => state == "dropped",
        }
    }
}

/// What a dataset has a list of.
trait Listed: Found + Serialize {
    /// Its name in the singular, and its key in JSON.
    const NAME: (&'static str, &'static str);
    const COLUMNS: &'static [&'static str];
    /// What people look for it by, beside the ID of its instance.
    fn id(&self) -> &str {
        self.name()
    }
    /// In the order of the columns.
    fn cells(&self) -> Vec<String>;
}

pub(super) fn run(arguments: &Arguments, list: &ListArguments) -> Result<u8> {
    let dataset = Dataset::open_any(&list.dataset.directory()?)?;
    match dataset.manifest.family.unit() {
        Unit::File if !list.tests => {
            let mut found = targets::all(&dataset)?;
            list.selection.keep_found(&dataset, &mut found)?;
            list.print(arguments, found);
        }
        Unit::Group if list.tests => {
            return Err(Error::usage("--tests goes with datasets of the families recube and codetaste")
                .with_hint("without it the tests are what is listed"));
        }
        Unit::Pair if !list.tests => {
            let mut found = pairs::all(&dataset)?;
            list.selection.keep_found(&dataset, &mut found)?;
            list.print(arguments, found);
        }
        Unit::Group | Unit::File | Unit::Pair => {
            let mut found = query::all(&dataset)?;
            list.selection.keep_found(&dataset, &mut found)?;
            list.print(arguments, found);
        }
    }
    Ok(0)
}

impl ListArguments {
    fn print<T: Listed>(&self, arguments: &Arguments, mut found: Vec<T>) {
        found.retain(|one| self.wants(one));
        match arguments.format {
            Format::Json => terminal::json(&json!({ T::NAME.1: found })),
            Format::Csv => {
                let mut lines = vec![T::COLUMNS.join(",")];
                lines.extend(found.iter().map(csv));
                terminal::say(&lines.join("\n"));
            }
            Format::Human => {
                if !found.is_empty() {
                    let lines: Vec<String> = found.iter().map(show::line).collect();
                    terminal::say(&lines.join("\n"));
                }
                terminal::note(&crate::text::count(found.len(), T::NAME.0));
            }
        }
    }

    fn wants(&self, one: &impl Listed) -> bool {
        let has = |text: &str| {
            let text = text.to_lowercase();
            [Some(one.id()), one.instance_id()]
                .into_iter()
                .flatten()
                .any(|id| id.to_lowercase().contains(&text))
        };
        let is_cause = |cause: &str| self.cause.iter().any(|one| one == cause);
        self.state.is_none_or(|state| state.has(one.state()))
            && (self.cause.is_empty() || one.cause().is_some_and(is_cause))
            && self.flag.iter().all(|flag| one.flags().contains(flag))
            && self.text.as_deref().is_none_or(has)
    }
}

/// A row of the columns.
fn csv(one: &impl Listed) -> String {
    one.cells().iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",")
}

fn shown(number: Option<i64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

impl Listed for FoundGroup {
    const NAME: (&'static str, &'static str) = ("test", "groups");
    const COLUMNS: &'static [&'static str] = &[
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

    fn cells(&self) -> Vec<String> {
        vec![
            self.slug.clone(),
            self.group_id.clone(),
            self.state().to_owned(),
            self.cause.clone().unwrap_or_default(),
            self.tier.clone().unwrap_or_default(),
            self.flags.join(" "),
            self.cases.to_string(),
            self.attempts.to_string(),
            shown(self.trace_length),
            shown(self.unique_files),
            self.instance_id.clone().unwrap_or_default(),
        ]
    }
}

impl Listed for FoundTarget {
    const NAME: (&'static str, &'static str) = ("file", "targets");
    const COLUMNS: &'static [&'static str] = &[
        "repository",
        "target",
        "state",
        "cause",
        "tier",
        "flags",
        "rank",
        "n_cases",
        "target_statements",
        "masked_functions",
        "noticed_functions",
        "reached_by",
        "caller_files",
        "instance_id",
    ];

    fn cells(&self) -> Vec<String> {
        let published = |value: &dyn Fn(&targets::MaskedFile) -> String| {
            self.published.as_ref().map(value).unwrap_or_default()
        };
        vec![
            self.slug.clone(),
            self.target.clone(),
            self.state().to_owned(),
            self.cause.clone().unwrap_or_default(),
            published(&|one| one.tier.to_owned()),
            self.flags().join(" "),
            shown(self.rank),
            published(&|one| one.n_cases.to_string()),
            self.target_statements.to_string(),
            self.masked_functions.to_string(),
            published(&|one| one.noticed_functions.to_string()),
            self.reached_by.to_string(),
            self.caller_files.to_string(),
            self.instance_id.clone().unwrap_or_default(),
        ]
    }
}

impl Listed for FoundPair {
    const NAME: (&'static str, &'static str) = ("pair", "pairs");
    const COLUMNS: &'static [&'static str] = &[
        "repository",
        "base_commit",
        "golden_commit",
        "state",
        "cause",
        "tier",
        "flags",
        "files_changed",
        "lines_added",
        "lines_removed",
        "n_must_pass",
        "n_additive",
        "n_reductive",
        "golden_prec",
        "instance_id",
    ];

    fn id(&self) -> &str {
        &self.slug
    }

    fn cells(&self) -> Vec<String> {
        let published = |value: &dyn Fn(&pairs::Refactoring) -> String| {
            self.published.as_ref().map(value).unwrap_or_default()
        };
        vec![
            self.repo.clone(),
            self.base_commit.clone(),
            self.golden_commit.clone(),
            self.state().to_owned(),
            self.cause.clone().unwrap_or_default(),
            published(&|one| one.tier.to_owned()),
            self.flags().join(" "),
            published(&|one| one.row.files_changed.to_string()),
            published(&|one| one.lines_added.to_string()),
            published(&|one| one.lines_removed.to_string()),
            published(&|one| one.n_must_pass.to_string()),
            published(&|one| one.n_additive.to_string()),
            published(&|one| one.n_reductive.to_string()),
            published(&|one| one.golden_prec.map(|share| format!("{share:.4}")).unwrap_or_default()),
            self.instance_id.clone().unwrap_or_default(),
        ]
    }
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
            judges: false,
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
            ("--state kept", &[0, 1, 2]),
            ("--state unpublished", &[1, 2]),
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
