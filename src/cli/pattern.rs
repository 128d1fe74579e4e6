//! `gistmill pattern`: patterns of code on a pair of commits.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Arguments, Format};
use crate::document;
use crate::error::{Error, Result};
use crate::family::codetaste::registered::Refusal;
use crate::family::codetaste::score::Side;
use crate::pattern::{self, Checked, Pair, Patterns, Report};
use crate::score::Ratio;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct PatternArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Run patterns on both trees of a pair: which are taken, which are not and why. Exit code 1 where one is not taken
    Check(CheckArguments),
    /// Find patterns of a pair by a program, check them, and write those that are taken
    Mine(MineArguments),
}

#[derive(Debug, clap::Args)]
struct CheckArguments {
    /// The pair: a clone and full hashes, CLONE@GOLDEN (from its first parent) or CLONE@BASE..GOLDEN
    #[arg(value_name = "PAIR")]
    pair: String,
    /// Files with patterns, ast-grep's YAML
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct MineArguments {
    /// The pair: a clone and full hashes, CLONE@GOLDEN (from its first parent) or CLONE@BASE..GOLDEN
    #[arg(value_name = "PAIR")]
    pair: String,
    /// A new folder for `additive.ast-grep.yml` and `reductive.ast-grep.yml`
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, asked: &PatternArguments) -> Result<u8> {
    match &asked.action {
        Action::Check(asked) => check(arguments, asked),
        Action::Mine(asked) => mine(arguments, asked),
    }
}

fn check(arguments: &Arguments, asked: &CheckArguments) -> Result<u8> {
    let read = |file: &PathBuf| Ok((file.display().to_string(), document::read_text(file)?));
    let files = asked.files.iter().map(read).collect::<Result<Vec<_>>>()?;
    let patterns = Patterns::parse(&files)?;
    let pair = Pair::open(&asked.pair)?;
    let (base, golden) = pair.trees()?;
    let report = pattern::check(&patterns, &base, &golden, &pair.changed()?)?;
    tell(arguments, &pair, &report);
    Ok(u8::from(report.patterns.iter().any(|one| one.decision.refusal.is_some())))
}

fn mine(arguments: &Arguments, asked: &MineArguments) -> Result<u8> {
    let pair = Pair::open(&asked.pair)?;
    let (base, golden) = pair.trees()?;
    let changed = pair.changed()?;
    let mined = pattern::mine(&base, &golden, &changed)?;
    let patterns = Patterns::parse(&[("mined".to_owned(), pattern::documents(&mined))])
        .map_err(|error| error.blame(crate::error::Fault::Internal))?;
    let report = pattern::check(&patterns, &base, &golden, &changed)?;
    if let Some(folder) = &asked.output {
        write(folder, |side| {
            let is_taken =
                |id: &str| report.patterns.iter().any(|one| one.id == id && one.decision.refusal.is_none());
            pattern::documents(mined.iter().filter(|one| one.side == side && is_taken(&one.id)))
        })?;
    }
    tell(arguments, &pair, &report);
    Ok(0)
}

fn write(folder: &Path, text: impl Fn(Side) -> String) -> Result<()> {
    fs_err::create_dir(folder).map_err(|error| {
        Error::usage(error.to_string()).with_source(error).with_hint("name a new folder with --output")
    })?;
    for side in [Side::Additive, Side::Reductive] {
        fs_err::write(folder.join(format!("{}.ast-grep.yml", side.as_str())), text(side))?;
    }
    Ok(())
}

fn tell(arguments: &Arguments, pair: &Pair, report: &Report) {
    match arguments.format {
        Format::Json => terminal::json(&json!({
            "base": pair.base, "golden": pair.golden,
            "patterns": report.patterns.iter().map(described).collect::<Vec<_>>(),
            "prec": report.precision.all().rate(), "prec_plus": report.precision.added.rate(),
            "prec_minus": report.precision.removed.rate(),
        })),
        Format::Human | Format::Csv => {
            terminal::say(table(&report.patterns).trim_end());
            terminal::note(&closing(report));
        }
    }
}

fn described(one: &Checked) -> Value {
    json!({
        "id": one.id, "side": one.side, "m_base": one.base.matches, "m_golden": one.golden.matches,
        "lines": one.right().lines.count(), "files": one.right().lines.paths().count(),
        "refused": one.decision.refusal.as_ref().map(Refusal::to_string),
        "witness": witness(one),
    })
}

/// A place on the wrong side, where it is one of few, so that it can be exempted.
fn witness(one: &Checked) -> Option<String> {
    let (path, line, _) = one.wrong().lines.ranges().next().filter(|_| one.decision.shows_witness)?;
    Some(format!("{path}:{line}"))
}

fn table(patterns: &[Checked]) -> String {
    let widest = patterns.iter().map(|one| one.id.chars().count()).max().unwrap_or_default().max(7);
    let mut text = format!("{:widest$}  side       base  golden  lines  files\n", "pattern");
    for one in patterns {
        let lines = &one.right().lines;
        let _ = write!(
            text,
            "{:widest$}  {:9}  {:>4}  {:>6}  {:>5}  {:>5}",
            one.id,
            one.side.as_str(),
            one.base.matches,
            one.golden.matches,
            lines.count(),
            lines.paths().count()
        );
        if let Some(refusal) = &one.decision.refusal {
            let _ = write!(text, "  {refusal}");
        }
        if let Some(witness) = witness(one) {
            let _ = write!(text, ", as in {witness}");
        }
        text.push('\n');
    }
    text
}

fn closing(report: &Report) -> String {
    let taken = |side: Side| {
        report.patterns.iter().filter(|one| one.side == side && one.decision.refusal.is_none()).count()
    };
    let percent =
        |ratio: Ratio| ratio.rate().map_or_else(|| "no".to_owned(), |rate| format!("{:.1} %", 100.0 * rate));
    let precision = &report.precision;
    format!(
        "{} additive and {} reductive patterns; they match {} of the changed lines ({} of those added, {} of those removed)",
        taken(Side::Additive),
        taken(Side::Reductive),
        percent(precision.all()),
        percent(precision.added),
        percent(precision.removed)
    )
}
