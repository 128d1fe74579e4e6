//! `gistmill cache`: where it is, how large, and what of it can go.

use std::time::Duration;

use clap::Subcommand;
use indicatif::HumanBytes;
use serde_json::json;

use super::{Arguments, Format};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::store::prune::{self, Prunable};
use crate::terminal;
use crate::text::count;

#[derive(Debug, clap::Args)]
pub(super) struct CacheArguments {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Debug, Subcommand)]
enum CacheCommand {
    /// Print where the cache is
    Dir,
    /// Print what its folders hold
    Size,
    /// Remove what is damaged, unfinished, or was not used for long; refused while another gistmill works
    ///
    /// Sources, environments, wheels and attempts are made again when they are needed. No dataset changes.
    Prune(PruneArguments),
}

#[derive(Debug, clap::Args)]
struct PruneArguments {
    /// Remove what was not used for so many days
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=36500))]
    unused_for: u32,
    /// Remove whatever can be made again, however new
    #[arg(long, conflicts_with = "unused_for")]
    all: bool,
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(arguments: &Arguments, asked: &CacheArguments) -> Result<u8> {
    match &asked.command {
        CacheCommand::Dir => {
            let place = arguments.cache_place()?;
            match arguments.format {
                Format::Json => terminal::json(&json!({ "directory": place })),
                Format::Human | Format::Csv => terminal::say(&place.display().to_string()),
            }
        }
        CacheCommand::Size => size(arguments)?,
        CacheCommand::Prune(asked) => prune(arguments, asked)?,
    }
    Ok(0)
}

fn size(arguments: &Arguments) -> Result<()> {
    let cache = arguments.cache()?;
    let shelves = cache.shelves()?;
    let bytes: u64 = shelves.iter().map(|shelf| shelf.bytes).sum();
    if arguments.format == Format::Json {
        terminal::json(&json!({ "directory": cache.root(), "bytes": bytes, "folders": shelves }));
        return Ok(());
    }
    for shelf in &shelves {
        let size = HumanBytes(shelf.bytes).to_string();
        terminal::say(&format!("{size:>12}  {} ({})", shelf.name, shelf.entries));
    }
    terminal::say(&format!("{:>12}  in {}", HumanBytes(bytes).to_string(), cache.root().display()));
    Ok(())
}

fn prune(arguments: &Arguments, asked: &PruneArguments) -> Result<()> {
    let cache = arguments.cache()?;
    let place = cache.root().to_owned();
    if !cache.is_own() {
        return Err(Error::usage(format!("{} was not made by gistmill as a cache", place.display()))
            .with_hint(
                "it has no CACHEDIR.TAG of gistmill's (those of older versions have none): remove it yourself, or name another \
                 folder with --cache-dir",
            ));
    }
    let alone = cache.alone()?.ok_or_else(|| {
        Error::usage(format!("another gistmill works with the cache {}", place.display()))
            .with_hint("prune it when that has ended")
    })?;
    let days = if asked.all { 0 } else { u64::from(asked.unused_for) };
    let found = alone.prunable(Duration::from_secs(days * 86_400))?;
    if !asked.dry_run {
        for entry in &found {
            interrupt::check()?;
            prune::remove(entry)?;
        }
    }
    tell(arguments, asked, &found);
    Ok(())
}

fn tell(arguments: &Arguments, asked: &PruneArguments, found: &[Prunable]) {
    let bytes: u64 = found.iter().map(|entry| entry.bytes).sum();
    if arguments.format == Format::Json {
        terminal::json(&json!({ "removed": !asked.dry_run, "bytes": bytes, "entries": found }));
        return;
    }
    let verb = if asked.dry_run { "would remove" } else { "removed" };
    for entry in found {
        let size = HumanBytes(entry.bytes).to_string();
        let line = format!("{verb} {} ({}, {size})", entry.path.display(), entry.reason.as_str());
        terminal::say(&terminal::one_line(&line));
    }
    terminal::say(&format!("{verb} {}, {}", count(found.len(), "entry"), HumanBytes(bytes)));
}
