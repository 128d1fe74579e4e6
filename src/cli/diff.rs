//! `gistmill diff`: what changed from one version of a dataset to the next.

use std::path::PathBuf;

use super::{Arguments, Format};
use crate::error::Result;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct DiffArguments {
    /// The dataset directory of the older version
    #[arg(value_name = "A")]
    before: PathBuf,
    /// The dataset directory of the newer version
    #[arg(value_name = "B")]
    after: PathBuf,
}

pub(super) fn run(arguments: &Arguments, diff: &DiffArguments) -> Result<u8> {
    let diff = crate::diff::directories(&diff.before, &diff.after)?;
    match arguments.format {
        Format::Human => terminal::say(diff.to_string().trim_end_matches('\n')),
        Format::Json => terminal::json(&serde_json::json!(diff)),
    }
    Ok(0)
}
