//! A judged submission on its way into tables and pages.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::gistify::judged::Judged;
use crate::dataset::schema::ColumnOf;
use crate::dataset::write::{table, text};
use crate::error::{Error, Result};
use crate::record::flag::NO_OTHER_INPUT;
use crate::record::instance::Instance;
use crate::score::Ratio;

/// A judged submission with what it is of.
pub(crate) struct Scored<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) run: &'a str,
    pub(crate) meta: &'a Value,
    /// What its run says of itself; what the submission says goes before.
    pub(crate) run_meta: &'a Value,
    /// Why it, or what its author says, could not be read.
    pub(crate) troubles: &'a [String],
    pub(crate) judged: Judged,
}

/// Right, and near to nothing of what the original does: on an instance where a constant is right, it may be one.
pub(crate) const ENTERS_FEW_FUNCTIONS: &str = "enters-few-functions";
/// As much of the functions that the original calls, or less, is few. Of files of constants most were seen to have at most half,
/// witnesses have nearly all.
const FEW: f64 = 0.5;

impl Scored<'_> {
    /// What is special about it.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let row = &self.judged.row;
        let is_few = row.trace_recall.and_then(Ratio::rate).is_some_and(|rate| rate <= FEW);
        let all = [(ENTERS_FEW_FUNCTIONS, self.is_right_without_other_input() && is_few)];
        all.into_iter().filter_map(|(flag, holds)| holds.then_some(flag)).collect()
    }

    /// Whether it is right where a constant would be as well: no other input of the test shows something else.
    pub(crate) fn is_right_without_other_input(&self) -> bool {
        let has_none = self.instance.flags.iter().any(|flag| flag == NO_OTHER_INPUT);
        has_none && self.judged.row.fidelity == Some(true)
    }

    /// What the submission, or else its run, says under a key.
    pub(super) fn said(&self, key: &str) -> &Value {
        let own = &self.meta[key];
        if own.is_null() { &self.run_meta[key] } else { own }
    }
}

/// The line of `scores.jsonl` of a submission, without its end.
///
/// # Errors
/// A row that cannot be encoded, which is a bug.
pub(crate) fn line_of(row: &impl Serialize) -> Result<String> {
    serde_json::to_string(row).map_err(|error| Error::internal("cannot encode a score").with_source(error))
}

/// Writes the rows of a run to `scores.jsonl` and `scores.parquet`.
///
/// # Errors
/// IO errors with the path; rows that cannot be encoded, which is a bug.
pub(super) fn write_scores<R: Serialize>(
    folder: &Path,
    columns: Vec<ColumnOf<R>>,
    rows: Vec<R>,
) -> Result<()> {
    fs_err::create_dir_all(folder)?;
    let lines = rows.iter().map(|row| Ok(line_of(row)? + "\n")).collect::<Result<String>>()?;
    text(&folder.join("scores.jsonl"), &lines)?;
    table(folder, "scores", columns, rows)
}

/// How many have each class, and each flag.
pub(super) fn counted<'a>(
    rows: impl Iterator<Item = (String, &'a [String])>,
) -> (BTreeMap<String, u32>, BTreeMap<String, u32>) {
    let (mut classes, mut flags) = (BTreeMap::new(), BTreeMap::new());
    for (class, own) in rows {
        *classes.entry(class).or_default() += 1;
        for flag in own {
            *flags.entry(flag.clone()).or_default() += 1;
        }
    }
    (classes, flags)
}

/// The one spelling of an enum's value.
pub(crate) fn spelled(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned))
}
