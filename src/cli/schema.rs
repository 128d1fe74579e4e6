//! `gistmill schema`: what editors check configurations and rule files with.

use clap::ValueEnum;

use crate::config;
use crate::error::Result;
use crate::rules;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct SchemaArguments {
    /// What it describes
    #[arg(value_enum)]
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// `repos.toml`
    Config,
    /// Rule files
    Rules,
}

/// Prints a JSON schema.
#[expect(clippy::unnecessary_wraps, reason = "every command ends in this way")]
pub(super) fn run(asked: &SchemaArguments) -> Result<u8> {
    let text = match asked.kind {
        Kind::Config => config::SCHEMA,
        Kind::Rules => rules::SCHEMA,
    };
    terminal::say(text.trim_end_matches('\n'));
    Ok(0)
}
