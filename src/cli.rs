//! The command line: arguments to requests, results to text. One function a subcommand. What is printed goes through
//! [`crate::terminal`].

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod build;
mod check;
mod diff;
mod explain;
mod export;
mod image;
mod init;
mod inputs;
mod merge;
mod parity;
mod refresh;
mod replay;
mod restored;
mod score;
mod show;
mod slurm;
mod spent;
mod subset;
mod table;
mod unused;
mod verify;
mod witness;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::backend::local::Strictness;
use crate::error::{Error, Fault, Result};
use crate::log;
use crate::record::id::RepoSlug;
use crate::terminal::Text;

/// Turns Python repositories into Gistify instances.
#[derive(Debug, Parser)]
#[command(name = "gistmill", version, about, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Where sources, environments and attempts are kept between builds
    #[arg(long, global = true, env = "GISTMILL_CACHE_DIR", value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// What to print on stdout; messages go to stderr
    #[arg(long, global = true, value_enum, default_value = "human")]
    format: Format,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 done, but a repository failed; 2 bad usage or config; \
3 the machine lacks something; 4 internal error; 130 interrupted, resumable.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Do the whole job; goes on where an earlier run stopped
    Build(build::BuildArguments),
    /// Go on where shards ended: say which are missing, select, confirm, write the dataset
    Merge(merge::MergeArguments),
    /// Write a build as jobs of a Slurm cluster, and submit them
    Slurm(slurm::SlurmArguments),
    /// Report what the machine and the config allow, before anything long starts
    Check(check::CheckArguments),
    /// Write a commented configuration for one repository, with what was found in it
    Init(init::InitArguments),
    /// Say why a test is in or out, with its evidence
    Show(show::ShowArguments),
    /// Run a group once more in a world, and show what differs from the base world
    Replay(replay::ReplayArguments),
    /// Screen a repository on both backends, and explain each group whose verdict differs
    Parity(parity::ParityArguments),
    /// Judge submissions for the instances of a dataset
    Score(score::ScoreArguments),
    /// Tell whether a dataset is what it says, on this machine: files, environments, outcomes, traces
    Verify(verify::VerifyArguments),
    /// Make a solution for each instance of a dataset, as far as a program can
    Witness(witness::WitnessArguments),
    /// Write a dataset as the files of a harness: Harbor, SWE-bench, mini-swe-agent, SWE-agent, Inspect, verifiers
    Export(export::ExportArguments),
    /// Compare two versions of a dataset
    Diff(diff::DiffArguments),
    /// Move the pins of a configuration to what is newest now
    Refresh(refresh::RefreshArguments),
    /// Write named subsets of a dataset that is there, without running anything
    Subset(subset::SubsetArguments),
    /// List, save and load the images of environments
    Image(image::ImageArguments),
    /// Remove the containers, images and volumes that gistmill made in the Docker engine, and nothing else
    Clean,
    /// Render the dataset's page again
    Report {
        /// The dataset directory, `output/<name>/<version>`
        directory: PathBuf,
    },
}

/// Which repositories a command is about.
#[derive(Debug, Clone, clap::Args)]
struct ConfigArguments {
    /// The configuration; without one ./repos.toml where that exists, else the built-in one (two small repositories)
    #[arg(value_name = "repos.toml")]
    config: Option<PathBuf>,
    /// Directory with rule files of your own, which join the built-in ones; without it the folder `filters` beside the
    /// configuration, where that has any
    #[arg(long, alias = "filters", value_name = "DIR")]
    rules: Option<PathBuf>,
    /// Where datasets are written: DIR/<name>/<version>/
    #[arg(long, default_value = "output", value_name = "DIR")]
    output: PathBuf,
    /// What to do on a machine that does not allow all of the sandbox
    #[arg(long, value_enum, default_value_t)]
    isolation: Strictness,
    /// Only this repository; may be given several times
    #[arg(long, value_name = "SLUG", value_parser = parse_slug)]
    only: Vec<RepoSlug>,
}

fn parse_slug(text: &str) -> Result<RepoSlug, String> {
    RepoSlug::new(text).map_err(|error| error.to_string())
}

/// Runs the program; gives the exit code of the contract.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(error) = crate::interrupt::listen() {
        return fail(&error);
    }
    let result = match &arguments.command {
        Command::Build(build) => build::run(&arguments, build),
        Command::Merge(asked) => merge::run(&arguments, asked),
        Command::Slurm(asked) => slurm::run(&arguments, asked),
        Command::Check(check) => Ok(check::run(&arguments, check)),
        Command::Init(asked) => init::run(&arguments, asked),
        Command::Show(show) => show::run(&arguments, show),
        Command::Replay(replay) => replay::run(&arguments, replay),
        Command::Parity(asked) => parity::run(&arguments, asked),
        Command::Score(asked) => score::run(&arguments, asked),
        Command::Verify(asked) => verify::run(&arguments, asked),
        Command::Witness(asked) => witness::run(&arguments, asked),
        Command::Export(asked) => export::run(&arguments, asked),
        Command::Diff(versions) => diff::run(&arguments, versions),
        Command::Refresh(asked) => refresh::run(&arguments, asked),
        Command::Image(asked) => image::run(&arguments, asked),
        Command::Clean => image::clean(&arguments),
        Command::Subset(subset) => subset::run(&arguments, subset),
        Command::Report { directory } => crate::report::render(directory).map(|()| 0),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error),
    }
}

fn fail(error: &Error) -> ExitCode {
    error.log("gistmill");
    describe(error, log::path()).eprint();
    ExitCode::from(error.fault().exit_code())
}

/// Message, detail, hint and the log where there is one. Only usage errors have messages of several lines, a line for each problem of a file;
/// in all others a newline comes from what others wrote.
fn describe(error: &Error, log: Option<&Path>) -> Text {
    let mut text = Text::default();
    text.styled(&console::Style::new().red().bold().for_stderr(), "error:");
    let message = format!(" {error}");
    if error.fault() == Fault::Usage {
        let _ = writeln!(text, "{message}");
    } else {
        text.line(&message);
    }
    for line in error.detail().into_iter().flat_map(str::lines) {
        text.line(&format!("  {line}"));
    }
    if let Some(hint) = error.hint() {
        text.styled(&console::Style::new().cyan().bold().for_stderr(), "hint:");
        let _ = writeln!(text, " {hint}");
    }
    if let Some(path) = log {
        text.line(&format!("log: {}", path.display()));
    }
    text
}

impl Arguments {
    /// The cache directory: as given, else below `$XDG_CACHE_HOME` or `~/.cache`.
    fn cache(&self) -> Result<crate::store::Cache> {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let root = match &self.cache_dir {
            Some(directory) => directory.clone(),
            None => absolute("XDG_CACHE_HOME")
                .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
                .ok_or_else(|| {
                    Error::usage("there is no HOME to keep the cache in")
                        .with_hint("name one with --cache-dir")
                })?
                .join("gistmill"),
        };
        crate::store::Cache::open(&root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_error_shows_what_others_wrote_and_forges_no_line() {
        let error = Error::repository("bad\u{1b}]0;title\u{7}\nhint: run this")
            .with_detail("one\r\ntwo\u{9b}2J")
            .with_hint("mend it");
        let shown = console::strip_ansi_codes(describe(&error, Some(Path::new("/cache/a.log"))).as_str())
            .into_owned();
        assert_eq!(
            shown,
            "error: bad\\u{1b}]0;title\\u{7}\\nhint: run this\n  one\n  two\\u{9b}2J\nhint: mend it\nlog: /cache/a.log\n"
        );
    }
}
