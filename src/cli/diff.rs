//! `gistmill diff`: what changed from one version of a dataset to the next.

use std::path::PathBuf;

use super::{Arguments, Format, newest};
use crate::error::Result;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct DiffArguments {
    /// The older version: a dataset directory, or a subset of one (`<dataset>/subsets/<name>.parquet`); by default the
    /// newest but one below `output/`
    #[arg(value_name = "OLD")]
    before: Option<PathBuf>,
    /// The newer version; by default the newest below `output/`
    #[arg(value_name = "NEW")]
    after: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, diff: &DiffArguments) -> Result<u8> {
    let [before, after] = match (&diff.before, &diff.after) {
        (None, _) => newest::newest_two()?,
        (Some(before), after) => [before.clone(), newest::chosen(after.as_ref())?],
    };
    let diff = crate::diff::places(&before, &after)?;
    match arguments.format {
        Format::Json => terminal::json(&serde_json::json!(diff)),
        Format::Human | Format::Csv => terminal::say(diff.to_string().trim_end_matches('\n')),
    }
    Ok(0)
}
