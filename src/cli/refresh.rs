//! `gistmill refresh`: the pins of a configuration, moved to what is newest now.

use std::path::PathBuf;

use serde_json::json;

use super::inputs;
use super::{Arguments, ConfigPlace, Format};
use crate::environment::Tools;
use crate::error::{Error, Result};
use crate::record::id::{CommitSha, RepoSlug};
use crate::refresh::{Change, Newest, Outcome, refresh};
use crate::source::{self, UvIndex};
use crate::store::Cache;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct RefreshArguments {
    #[command(flatten)]
    config: ConfigPlace,
    /// Only this repository; may be given several times
    #[arg(long, value_name = "SLUG", value_parser = super::parse_slug)]
    only: Vec<RepoSlug>,
    /// Write to this file; by default the configuration is replaced
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The new version of the dataset
    #[arg(long, value_name = "VERSION")]
    set_version: Option<String>,
    /// Say what would move, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// The real world: git servers, and the package index through uv.
struct World {
    cache: Cache,
}

impl Newest for World {
    fn head(&self, url: &str, branch: Option<&str>) -> Result<String> {
        let (reference, shown) = match branch {
            Some(branch) => (format!("refs/heads/{branch}"), format!("branch `{branch}`")),
            None => ("HEAD".to_owned(), "default branch".to_owned()),
        };
        let head = source::resolve_reference(url, &reference)?
            .ok_or_else(|| Error::repository(format!("there is no {shown}")))?;
        CommitSha::new(&head)
            .map(|head| head.to_string())
            .map_err(|error| Error::internal(format!("the head: {error}")))
    }

    fn release(&self, project: &str) -> Result<(String, String)> {
        source::newest(&UvIndex { uv: Tools::find(&self.cache)?.uv()?.executable }, project)
    }
}

pub(super) fn run(arguments: &Arguments, asked: &RefreshArguments) -> Result<u8> {
    let file = inputs::file(&asked.config)?;
    let config = crate::config::load(&file, &inputs::resolve)?;
    let known: Vec<&str> = config.repos.iter().map(|repo| repo.slug.as_str()).collect();
    inputs::refuse_unknown(&asked.only, &known)?;
    let text = crate::document::read_text(&file)?;
    let only: Vec<String> = asked.only.iter().map(ToString::to_string).collect();
    let world = World { cache: arguments.cache()? };
    let refreshed = refresh(&text, &world, &only, asked.set_version.as_deref())?;
    let target = asked.output.as_ref().unwrap_or(&file);
    if !asked.dry_run && (asked.output.is_some() || refreshed.text != text) {
        check_result(&refreshed.text, target)?;
        let target = std::path::absolute(target)?;
        crate::store::write_atomic(&target, refreshed.text.as_bytes())?;
    }
    match arguments.format {
        Format::Json => terminal::json(&json!({ "file": target, "changes": refreshed.changes })),
        Format::Human | Format::Csv => {
            refreshed.changes.iter().for_each(|change| terminal::say(&line(change, asked.dry_run)));
        }
    }
    if let (Some(version), Format::Human | Format::Csv) = (&asked.set_version, arguments.format) {
        terminal::say(&terminal::one_line(&set(config.dataset.version.as_str(), version, asked.dry_run)));
    }
    let moved = refreshed.changes.iter().any(|change| matches!(change.result, Outcome::Moved { .. }));
    if moved && asked.set_version.is_none() {
        terminal::note(&format!(
            "the dataset's version is still {}: a build replaces it; --set-version makes another",
            config.dataset.version
        ));
    }
    let failed = |change: &Change| matches!(change.result, Outcome::Unreachable { .. });
    Ok(u8::from(refreshed.changes.iter().any(failed)))
}

/// A file that gistmill would refuse is never written.
fn check_result(text: &str, target: &std::path::Path) -> Result<()> {
    let base = std::path::absolute(target)?.parent().map(std::path::Path::to_path_buf).unwrap_or_default();
    crate::config::parse(text, &base, &|_, _| None)
        .map(|_| ())
        .map_err(|problems| Error::usage(crate::document::render(&target.display().to_string(), &problems)))
}

/// What is said of the dataset's version.
fn set(before: &str, version: &str, dry_run: bool) -> String {
    match before == version {
        true => format!("the dataset's version is {version} already"),
        false if dry_run => format!("the dataset's version would be {version} instead of {before}"),
        false => format!("the dataset's version is {version} now; it was {before}"),
    }
}

fn line(change: &Change, dry_run: bool) -> String {
    let slug = &change.slug;
    let moved = if dry_run { "would move" } else { "moved" };
    let text = match &change.result {
        Outcome::Moved { from, to } => format!("{slug}: {moved} from {from} to {to}"),
        Outcome::Current { pin } => format!("{slug}: {pin} is the newest"),
        Outcome::Left { reason } => format!("{slug}: left, {reason}"),
        Outcome::Unreachable { reason } => format!("{slug}: left, could not be looked up: {reason}"),
    };
    let text = change.notes.iter().fold(text, |text, note| format!("{text} ({note})"));
    terminal::one_line(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_was_set_is_said() {
        assert_eq!(set("1", "2", false), "the dataset's version is 2 now; it was 1");
        assert_eq!(set("1", "2", true), "the dataset's version would be 2 instead of 1");
        assert_eq!(set("2", "2", false), "the dataset's version is 2 already");
    }
}
