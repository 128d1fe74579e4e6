//! The command line: arguments to requests, results to text. One function a subcommand. What is printed goes through
//! [`crate::terminal`].

#![deny(clippy::print_stdout, clippy::print_stderr)]

#[cfg(test)]
mod book;
mod build;
mod cache;
mod check;
mod commits;
mod diff;
mod entries;
mod explain;
mod export;
mod help;
#[cfg(test)]
mod hostile_tests;
mod image;
mod import;
mod init;
mod inputs;
mod list;
mod manual;
mod mask;
mod merge;
mod newest;
mod parity;
mod pattern;
mod place;
mod preview;
mod publish;
mod refresh;
mod replay;
mod report;
mod restored;
mod schema;
mod scopes;
mod score;
mod selection;
mod serve;
mod session;
mod several;
mod shell;
mod show;
mod slurm;
mod spent;
mod subset;
mod table;
mod try_out;
mod verify;
mod witness;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::backend::local::Strictness;
use crate::error::{Error, Fault, Result};
use crate::log;
use crate::record::engine::EngineKind;
use crate::record::id::RepoSlug;
use crate::terminal::{self, Text, Volume};

/// Turns Python repositories into benchmark datasets for coding agents.
#[derive(Debug, Parser)]
#[command(name = "gistmill", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Where sources, environments and attempts are kept between builds; else `GISTMILL_CACHE_DIR` says it
    #[arg(long, global = true, value_name = "DIR", value_parser = place(), help_heading = help::EVERYWHERE)]
    cache_dir: Option<PathBuf>,
    /// What to print on stdout; messages go to stderr. csv goes with `list`
    #[arg(long, global = true, value_enum, default_value = "human", help_heading = help::EVERYWHERE)]
    format: Format,
    /// Nothing on stderr but warnings and errors
    #[arg(long, short, global = true, conflicts_with = "verbose", help_heading = help::EVERYWHERE)]
    quiet: bool,
    /// Every line of the log on stderr as well
    #[arg(long, short, global = true, help_heading = help::EVERYWHERE)]
    verbose: bool,
    /// Whether stdout and stderr are coloured; auto: on terminals, as `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` say
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = help::EVERYWHERE)]
    color: ColorChoice,
    /// Write the log to this file, at its end; else builds have one below the cache
    #[arg(long, global = true, value_name = "FILE", help_heading = help::EVERYWHERE)]
    log: Option<PathBuf>,
    /// The engine of containers, for what uses one or writes scripts that do; else the one that answers, and docker in scripts
    #[arg(long, global = true, value_enum, value_name = "ENGINE", help_heading = help::EVERYWHERE)]
    engine: Option<EngineKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
    Csv,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Do the whole job; goes on where an earlier run stopped
    #[command(after_help = help::BUILD)]
    Build(build::BuildArguments),
    /// Go on where shards ended: say which are missing, select, confirm, write the dataset
    #[command(after_help = help::MERGE)]
    Merge(merge::MergeArguments),
    /// Write a build as jobs of a Slurm cluster, and submit them
    #[command(after_help = help::SLURM)]
    Slurm(slurm::SlurmArguments),
    /// Report what the machine and the config allow, before anything long starts
    #[command(after_help = help::CHECK)]
    Check(check::CheckArguments),
    /// Write a commented configuration for one repository, with what was found in it
    #[command(after_help = help::INIT)]
    Init(init::InitArguments),
    /// Run the tests of one repository once, without a configuration: what becomes of them, and why
    #[command(name = "try", after_help = help::TRY)]
    Try(try_out::TryArguments),
    /// List commands of a repository that a person would run, found by reading it: nothing is run
    #[command(after_help = help::ENTRIES)]
    Entries(entries::EntriesArguments),
    /// Say why a test is in or out, with its evidence
    #[command(after_help = help::SHOW)]
    Show(show::ShowArguments),
    /// List the tests of a dataset, with the filters of its page
    #[command(after_help = help::LIST)]
    List(list::ListArguments),
    /// Say what a cause or a flag means, what leads to it, and what can be done
    #[command(after_help = help::EXPLAIN)]
    Explain(explain::ExplainArguments),
    /// Run a group once more in a world, and show what differs from the base world
    #[command(after_help = help::REPLAY)]
    Replay(replay::ReplayArguments),
    /// Run a shell, or a command, where a group of a dataset runs
    #[command(after_help = help::SHELL)]
    Shell(shell::ShellArguments),
    /// Screen a repository on both backends, and explain each group whose verdict differs
    #[command(after_help = help::PARITY)]
    Parity(parity::ParityArguments),
    /// Judge submissions for the instances of a dataset
    #[command(after_help = help::SCORE)]
    Score(score::ScoreArguments),
    /// Judge submissions as they come, over HTTP or standard input: the judge in a training loop
    #[command(after_help = help::SERVE)]
    Serve(serve::ServeArguments),
    /// Tell whether a dataset is what it says, on this machine: files, environments, outcomes, traces
    #[command(after_help = help::VERIFY)]
    Verify(verify::VerifyArguments),
    /// Make a solution for each instance of a dataset, as far as a program can
    #[command(after_help = help::WITNESS)]
    Witness(witness::WitnessArguments),
    /// Write a dataset as the files of a harness: Harbor, SWE-bench, mini-swe-agent, SWE-agent, Inspect, verifiers, or as
    /// prompts
    #[command(after_help = help::EXPORT)]
    Export(export::ExportArguments),
    /// Write a dataset as a folder for a hub: card, Croissant, provenance. Uploading is yours
    #[command(after_help = help::PUBLISH)]
    Publish(publish::PublishArguments),
    /// Print a Python file without its imports and the bodies of its functions, as the family `recube` masks it
    #[command(after_help = help::MASK)]
    Mask(mask::MaskArguments),
    /// Propose parts that repositories could be cut into, for `[[repo.scope]]` of the family `recube`: nothing is run
    #[command(after_help = help::SCOPES)]
    Scopes(scopes::ScopesArguments),
    /// Make repositories and a configuration of the data that a benchmark's authors publish
    #[command(after_help = help::IMPORT)]
    Import(import::ImportArguments),
    /// List the commits of clones that read like refactorings, for the family `codetaste`
    #[command(after_help = help::COMMITS)]
    Commits(commits::CommitsArguments),
    /// Check patterns of code on a pair of commits, or find some by a program
    #[command(after_help = help::PATTERN)]
    Pattern(pattern::PatternArguments),
    /// Compare two versions of a dataset, or two of its subsets
    #[command(after_help = help::DIFF)]
    Diff(diff::DiffArguments),
    /// Move the pins of a configuration to what is newest now
    #[command(after_help = help::REFRESH)]
    Refresh(refresh::RefreshArguments),
    /// Write named subsets of an existing dataset, without running anything
    #[command(after_help = help::SUBSET)]
    Subset(subset::SubsetArguments),
    /// Render the page of a dataset again
    #[command(after_help = help::REPORT)]
    Report(report::ReportArguments),
    /// Say where the cache is and how large, or remove what of it nobody needs
    #[command(after_help = help::CACHE)]
    Cache(cache::CacheArguments),
    /// List, save, load, push and check the images of environments
    #[command(after_help = help::IMAGE)]
    Image(image::ImageArguments),
    /// Remove the containers, images and volumes that gistmill made in the Docker engine, and nothing else
    #[command(after_help = help::CLEAN)]
    Clean(image::CleanArguments),
    /// Print completions for a shell
    #[command(after_help = help::COMPLETIONS)]
    Completions(manual::CompletionsArguments),
    /// Write the manual's pages
    #[command(after_help = help::MAN)]
    Man(manual::ManArguments),
    /// Print a JSON schema, for editors
    #[command(after_help = help::SCHEMA)]
    Schema(schema::SchemaArguments),
}

/// A configuration, by its place or as an option.
#[derive(Debug, Clone, Default, clap::Args)]
struct ConfigPlace {
    /// The configuration; without one ./repos.toml where that exists, else the built-in one (two small repositories)
    #[arg(value_name = "repos.toml")]
    place: Option<PathBuf>,
    /// The same as an option
    #[arg(long, value_name = "repos.toml", conflicts_with = "place")]
    config: Option<PathBuf>,
}

impl ConfigPlace {
    fn path(&self) -> Option<&Path> {
        self.place.as_deref().or(self.config.as_deref())
    }
}

/// How much of the sandbox must be there.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
struct IsolationArguments {
    /// `best` runs with what the machine allows of the sandbox and says what is missing, `strict` only with all of it
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    isolation: Strictness,
}

/// Which repositories a command is about.
#[derive(Debug, Default, Clone, clap::Args)]
struct ConfigArguments {
    #[command(flatten)]
    config: ConfigPlace,
    /// Directory with rule files of your own, which join the built-in ones; without it the folder `filters` beside the
    /// configuration, where that has any
    #[arg(long, alias = "filters", value_name = "DIR")]
    rules: Option<PathBuf>,
    /// Where datasets are written: DIR/<name>/<version>/
    #[arg(long, default_value = "output", value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    isolation: IsolationArguments,
    /// Only this repository; may be given several times
    #[arg(long, value_name = "SLUG", value_parser = parse_slug)]
    only: Vec<RepoSlug>,
}

fn parse_slug(text: &str) -> Result<RepoSlug, String> {
    RepoSlug::new(text).map_err(|error| error.to_string())
}

/// The definition of the command line, with its commands in groups.
fn command() -> clap::Command {
    help::grouped(Arguments::command())
}

/// Runs the program; gives the exit code of the contract.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    terminal::set_color(color(&words));
    let arguments = match read(words) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    match start(&arguments).and_then(|()| run(&arguments)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error),
    }
}

/// What `--color` says, before anything else is read: help and errors of the command line follow it as well. A word that it
/// does not know is reported when all is read.
fn color(words: &[OsString]) -> ColorChoice {
    let words = words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let mut words = words.skip_while(|word| *word != "--color" && !word.starts_with("--color="));
    let value = match words.next().map(|word| word.split_once('=')) {
        Some(Some((_, value))) => Some(value),
        Some(None) => words.next(),
        None => None,
    };
    value.and_then(|value| ColorChoice::from_str(value, false).ok()).unwrap_or_default()
}

/// Reads the command line.
fn read(words: impl IntoIterator<Item = OsString>) -> clap::error::Result<Arguments> {
    let words: Vec<OsString> = words.into_iter().collect();
    let mut command = command().color(color(&words));
    let no_text = words.iter().skip(1).find(|word| word.to_str().is_none()).cloned();
    let matches = command.try_get_matches_from_mut(words).map_err(|error| match no_text {
        Some(word) if error.kind() == ErrorKind::InvalidUtf8 => {
            let shown = word.as_encoded_bytes().escape_ascii();
            command.error(ErrorKind::InvalidUtf8, format!("`{shown}` is not UTF-8, which is needed here"))
        }
        _ => error,
    })?;
    let arguments = Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    if arguments.format == Format::Csv && !matches!(arguments.command, Command::List(_)) {
        return Err(
            command.error(ErrorKind::ArgumentConflict, "--format csv goes with `gistmill list` alone")
        );
    }
    Ok(arguments)
}

/// Help and versions go to stdout and are not failures; neither is a reader that has seen enough of them.
fn refuse(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { Fault::Usage.exit_code() } else { 0 })
}

/// What all commands have in common.
fn start(arguments: &Arguments) -> Result<()> {
    crate::interrupt::listen()?;
    terminal::set_volume(match (arguments.quiet, arguments.verbose) {
        (true, _) => Volume::Quiet,
        (_, true) => Volume::Verbose,
        _ => Volume::Normal,
    });
    let Some(file) = &arguments.log else { return Ok(()) };
    log::start_at(file).map_err(|error| {
        Error::usage(format!("the log cannot be written: {error}")).with_hint("name another file with --log")
    })
}

fn run(arguments: &Arguments) -> Result<u8> {
    match &arguments.command {
        Command::Build(asked) => build::run(arguments, asked),
        Command::Merge(asked) => merge::run(arguments, asked),
        Command::Slurm(asked) => slurm::run(arguments, asked),
        Command::Check(asked) => Ok(check::run(arguments, asked)),
        Command::Init(asked) => init::run(arguments, asked),
        Command::Try(asked) => try_out::run(arguments, asked),
        Command::Entries(asked) => entries::run(arguments, asked),
        Command::Show(asked) => show::run(arguments, asked),
        Command::List(asked) => list::run(arguments, asked),
        Command::Explain(asked) => explain::run(arguments, asked),
        Command::Replay(asked) => replay::run(arguments, asked),
        Command::Shell(asked) => shell::run(arguments, asked),
        Command::Parity(asked) => parity::run(arguments, asked),
        Command::Score(asked) => score::run(arguments, asked),
        Command::Serve(asked) => serve::run(arguments, asked),
        Command::Verify(asked) => verify::run(arguments, asked),
        Command::Witness(asked) => witness::run(arguments, asked),
        Command::Export(asked) => export::run(arguments, asked),
        Command::Publish(asked) => publish::run(arguments, asked),
        Command::Mask(asked) => mask::run(arguments, asked),
        Command::Scopes(asked) => scopes::run(arguments, asked),
        Command::Import(asked) => import::run(arguments, asked),
        Command::Commits(asked) => commits::run(arguments, asked),
        Command::Pattern(asked) => pattern::run(arguments, asked),
        Command::Diff(asked) => diff::run(arguments, asked),
        Command::Refresh(asked) => refresh::run(arguments, asked),
        Command::Subset(asked) => subset::run(arguments, asked),
        Command::Report(asked) => report::run(arguments, asked),
        Command::Cache(asked) => cache::run(arguments, asked),
        Command::Image(asked) => image::run(arguments, asked),
        Command::Clean(asked) => image::clean(arguments, asked),
        Command::Completions(asked) => manual::completions(asked),
        Command::Man(asked) => manual::man(arguments, asked),
        Command::Schema(asked) => schema::run(asked),
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

/// A path, which may be empty.
fn place() -> impl TypedValueParser<Value = PathBuf> {
    clap::builder::OsStringValueParser::new().map(PathBuf::from)
}

impl Arguments {
    /// Where the cache is: as given, else below `$XDG_CACHE_HOME` or `~/.cache`.
    fn cache_place(&self) -> Result<PathBuf> {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        // Not clap's business: its usage lines would show the option as soon as the variable is set.
        let variable = || std::env::var_os("GISTMILL_CACHE_DIR").map(PathBuf::from);
        // A variable that is set to nothing is as one that is not set.
        let named = self.cache_dir.clone().or_else(variable).filter(|place| !place.as_os_str().is_empty());
        if let Some(directory) = named {
            return Ok(directory);
        }
        let folder = absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .ok_or_else(|| {
                Error::usage("there is no HOME to keep the cache in").with_hint("name one with --cache-dir")
            })?;
        Ok(folder.join("gistmill"))
    }

    /// Opens the cache, and starts its log where every line of that is wanted.
    fn cache(&self) -> Result<crate::store::Cache> {
        let cache = crate::store::Cache::open(&self.cache_place()?)?;
        if self.verbose {
            log::start(&cache)?;
        }
        Ok(cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_cache_that_is_named_by_nothing_is_the_usual_one() {
        let place = |line: &[&str]| read(line.iter().map(Into::into)).unwrap().cache_place();
        let usual = place(&["gistmill", "cache", "dir"]).map_err(|error| error.to_string());
        let empty =
            place(&["gistmill", "--cache-dir", "", "cache", "dir"]).map_err(|error| error.to_string());
        let named = place(&["gistmill", "--cache-dir", "here", "cache", "dir"]).unwrap();
        assert_eq!(named, Path::new("here"));
        if std::env::var_os("GISTMILL_CACHE_DIR").is_none() {
            assert_eq!(empty, usual);
        }
        assert_ne!(empty, Ok(PathBuf::new()));
    }

    #[test]
    fn an_argument_that_is_no_text_is_named() {
        use std::os::unix::ffi::OsStringExt;
        let word = OsString::from_vec(b"a\xffb".to_vec());
        let line = ["gistmill", "show"].map(OsString::from).into_iter().chain([word]);
        let error = read(line).unwrap_err();
        assert!(error.to_string().contains(r"`a\xffb` is not UTF-8"), "{error}");
        assert!(error.use_stderr());
    }

    #[test]
    fn a_configuration_is_named_in_either_way() {
        let read = |line: &str| read(line.split_whitespace().map(Into::into));
        for (line, expected) in [
            ("gistmill build a.toml", Some("a.toml")),
            ("gistmill build --config a.toml", Some("a.toml")),
            ("gistmill build", None),
        ] {
            let Command::Build(build) = read(line).unwrap().command else { panic!("{line}") };
            assert_eq!(build.config.config.path(), expected.map(Path::new), "{line}");
        }
        for line in ["replay x a.toml", "replay x --config a.toml"] {
            let Command::Replay(replay) = read(&format!("gistmill {line}")).unwrap().command else {
                panic!("{line}")
            };
            assert_eq!(replay.config.path(), Some(Path::new("a.toml")), "{line}");
        }
        assert!(read("gistmill build a.toml --config b.toml").is_err());
        let csv = read("gistmill show x --format csv").unwrap_err();
        assert!(csv.to_string().contains("goes with `gistmill list`"), "{csv}");
        assert!(read("gistmill list --format csv").is_ok());
    }

    #[test]
    fn the_choice_of_colours_is_known_before_the_rest_is_read() {
        for (line, expected) in [
            ("gistmill check", ColorChoice::Auto),
            ("gistmill --color always check", ColorChoice::Always),
            ("gistmill biuld --color=never", ColorChoice::Never),
            ("gistmill check --color sometimes", ColorChoice::Auto),
            ("gistmill check --color", ColorChoice::Auto),
            ("gistmill show -- --color=always", ColorChoice::Auto),
        ] {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            assert_eq!(color(&words), expected, "{line}");
        }
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
