//! `gistmill show`: why a test is in or out, with its evidence.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;

use super::{Arguments, Format};
use crate::dataset::query::{self, Found};
use crate::error::{Error, Result};
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArguments {
    /// An instance id, a group id, or a part of one
    #[arg(value_name = "ID OR TEST", value_parser = NonEmptyStringValueParser::new())]
    query: String,
    /// The dataset directory; by default the newest below `output/`
    #[arg(long, value_name = "DIR")]
    dataset: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, show: &ShowArguments) -> Result<u8> {
    let directory = match &show.dataset {
        Some(directory) => directory.clone(),
        None => newest_dataset()?,
    };
    let found = query::find(&directory, &show.query)?;
    if found.is_empty() {
        return Err(Error::usage(format!(
            "{} has no test that matches `{}`",
            directory.display(),
            show.query
        ))
        .with_hint("give a part of a test's path or name, or name another dataset with --dataset"));
    }
    match arguments.format {
        Format::Json => terminal::json(&serde_json::json!({ "groups": found })),
        Format::Human if found.len() > 20 => {
            for group in &found {
                let line = format!("{}  {} {}", group.verdict(), group.slug, group.group_id);
                terminal::say(&terminal::one_line(&line));
            }
        }
        Format::Human => {
            let texts: Vec<String> = found.iter().map(Found::describe).collect();
            terminal::say(&texts.join("\n"));
        }
    }
    Ok(0)
}

/// The dataset below `output/` whose manifest was written last.
fn newest_dataset() -> Result<PathBuf> {
    let none = || {
        Error::usage("there is no dataset below output/")
            .with_hint("build one with `gistmill build`, or name its directory with --dataset")
    };
    let manifests = walkdir::WalkDir::new("output").min_depth(3).max_depth(3).into_iter().flatten();
    manifests
        .filter(|entry| entry.file_name() == "manifest.json")
        .max_by_key(|entry| entry.metadata().ok().and_then(|metadata| metadata.modified().ok()))
        .and_then(|entry| entry.path().parent().map(PathBuf::from))
        .ok_or_else(none)
}
