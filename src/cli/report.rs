//! `gistmill report`: the page of a dataset, rendered again.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::newest::DatasetArguments;
use super::{Arguments, Format};
use crate::error::{Error, Result};
use crate::report;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct ReportArguments {
    #[command(flatten)]
    dataset: DatasetArguments,
    /// Open the page in a browser: the one that $BROWSER names, else the desktop's
    #[arg(long)]
    open: bool,
}

pub(super) fn run(arguments: &Arguments, asked: &ReportArguments) -> Result<u8> {
    let directory = asked.dataset.directory()?;
    report::render(&directory)?;
    let page = directory.join(report::FILE);
    match arguments.format {
        Format::Json => terminal::json(&json!({ "page": page })),
        Format::Human | Format::Csv => terminal::say(&format!("page: {}", page.display())),
    }
    if asked.open {
        open(&page)?;
    }
    Ok(0)
}

/// Hands a file to a browser and does not wait for it.
fn open(page: &Path) -> Result<()> {
    let page = fs_err::canonicalize(page)?;
    let program = std::env::var("BROWSER").ok().filter(|name| !name.is_empty());
    let program = program.unwrap_or_else(|| "xdg-open".to_owned());
    let started = Command::new(&program)
        .arg(&page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.map(drop).map_err(|error| {
        Error::machine(format!("cannot start {program}"))
            .with_source(error)
            .with_hint(format!("open {} yourself, or name a browser in BROWSER", page.display()))
    })
}
