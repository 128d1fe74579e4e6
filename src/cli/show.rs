//! `gistmill show`: why a test is in or out, with its evidence.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;

use super::{Arguments, Format, newest};
use crate::dataset::query::{self, Answer, FoundGroup};
use crate::error::{Error, Result};
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArguments {
    /// An instance ID, a group ID, a case ID, a repository, or a part of an ID
    #[arg(value_name = "ID OR TEST", value_parser = NonEmptyStringValueParser::new())]
    query: String,
    /// The dataset directory; by default the newest below `output/`
    #[arg(long, value_name = "DIR")]
    dataset: Option<PathBuf>,
    /// All that is known about each of several tests, instead of one line each
    #[arg(long)]
    full: bool,
}

pub(super) fn run(arguments: &Arguments, show: &ShowArguments) -> Result<u8> {
    let directory = newest::chosen(show.dataset.as_ref())?;
    let Answer { found, nearest } = query::find(&directory, &show.query)?;
    if found.is_empty() {
        let hint = if nearest.is_empty() {
            "give a part of a test's path or name, or name another dataset with --dataset".to_owned()
        } else {
            format!("did you mean {}?", nearest.join(", or "))
        };
        return Err(Error::usage(format!(
            "{} has no test that matches `{}`",
            directory.display(),
            show.query
        ))
        .with_hint(terminal::one_line(&hint)));
    }
    match arguments.format {
        Format::Json => terminal::json(&serde_json::json!({ "groups": found })),
        _ if found.len() > 1 && !show.full => {
            let lines: Vec<String> = found.iter().map(line).collect();
            terminal::say(&lines.join("\n"));
            terminal::note(&format!("{} tests; --full shows all about each", found.len()));
        }
        _ => {
            let texts: Vec<String> = found.iter().map(FoundGroup::describe).collect();
            terminal::say(texts.join("\n").trim_end_matches('\n'));
        }
    }
    Ok(0)
}

/// Verdict, repository, group.
pub(super) fn line(group: &FoundGroup) -> String {
    let line = format!("{}  {} {}", group.verdict(), group.slug, group.group_id);
    terminal::one_line(&line).into_owned()
}
