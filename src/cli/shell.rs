//! `gistmill shell`: a command, or a shell, where a group of a dataset runs.

use std::io::{IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::NonEmptyStringValueParser;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::termios::{self, SetArg, Termios};

use super::replay::in_dataset;
use super::restored::GivenArguments;
use super::{Arguments, IsolationArguments, parse_slug};
use crate::backend::Process;
use crate::error::{Error, Result};
use crate::pipeline::replay::Replay;
use crate::record::collected::Group;
use crate::record::id::RepoSlug;
use crate::terminal;

/// Passes input and output on, inside.
const RELAY: &str = include_str!("shell.py");
/// Milliseconds between two looks at whether the command has ended.
const LOOK: u16 = 50;

#[derive(Debug, clap::Args)]
pub(super) struct ShellArguments {
    /// The dataset directory, `output/<name>/<version>`
    dataset: PathBuf,
    /// An instance, a group or a case, or a part of a group ID that no other has
    #[arg(long, short, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    instance: String,
    /// What to run instead of a shell; `python` and scripts are those of the environment
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    given: GivenArguments,
    /// The repository of the group, where the dataset has several
    #[arg(long, value_name = "SLUG", value_parser = parse_slug)]
    only: Option<RepoSlug>,
    #[command(flatten)]
    isolation: IsolationArguments,
}

pub(super) fn run(arguments: &Arguments, shell: &ShellArguments) -> Result<u8> {
    let asked = (shell.dataset.as_path(), shell.instance.as_str(), shell.only.as_ref());
    let isolation = shell.isolation.isolation;
    in_dataset(arguments, asked, (&shell.given, isolation), |replay, group| enter(shell, replay, group))
}

fn enter(shell: &ShellArguments, replay: &Replay, group: &Group) -> Result<u8> {
    let lab = &replay.prepared().lab;
    let input = std::io::stdin();
    let is_terminal = input.is_terminal() && std::io::stdout().is_terminal();
    let mut command = shell.command.clone();
    if command.is_empty() {
        let line = group.command().line();
        terminal::note(&format!("{} runs here by: {line}", group.group_id));
        terminal::note("there is no network, and what is written is gone at the end");
        command = vec!["/bin/bash".into(), "--norc".into(), "-i".into()];
        if !is_terminal {
            command = vec!["/bin/sh".into()];
        }
    }
    let raw = is_terminal.then(|| Raw::set(input.as_fd())).transpose()?;
    let size = raw.as_ref().map(|_| console::Term::stdout().size());
    let mut job = lab.setting.command(Vec::new());
    job.channel = true;
    let places = &lab.setting.places;
    let path = job.env.get("PATH").cloned().unwrap_or_default();
    job.env.insert("PATH".into(), format!("{}:{path}", places.venv.join("bin").display()));
    if is_terminal {
        job.env.insert("TERM".into(), std::env::var("TERM").unwrap_or_else(|_| "dumb".into()));
        job.env.insert("PS1".into(), "(gistmill) \\w$ ".into());
    }
    job.argv = relayed(&places.venv.join("bin/python").to_string_lossy(), size, &command);
    let code = exchange(lab.backend.start(&job)?, input.as_fd());
    drop(raw);
    code
}

/// The words that run a command behind the relay; with rows and columns in a terminal.
fn relayed(python: &str, size: Option<(u16, u16)>, command: &[String]) -> Vec<String> {
    let mut words = vec![python.to_owned(), "-I".into(), "-S".into(), "-c".into(), RELAY.into()];
    match size {
        Some((rows, columns)) => words.extend([rows.to_string(), columns.to_string()]),
        None => words.push("pipe".into()),
    }
    words.extend(command.iter().cloned());
    words
}

/// Passes input and output on until the command ends; its exit code, as a shell has it.
fn exchange(mut process: Box<dyn Process>, input: BorrowedFd<'_>) -> Result<u8> {
    let mut answers = process.take_answers().ok_or_else(|| Error::internal("the job has no answers"))?;
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut output = std::io::stdout();
            let mut piece = vec![0; 1 << 16];
            while let Ok(size @ 1..) = answers.read(&mut piece) {
                if output.write_all(&piece[..size]).and_then(|()| output.flush()).is_err() {
                    break;
                }
            }
            has_ended.store(true, Ordering::Relaxed);
        });
        let fed = feed(process.as_mut(), input, &has_ended);
        if fed.is_err() {
            process.end();
        }
        fed
    })?;
    let code = process.code_inside();
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn feed(process: &mut dyn Process, input: BorrowedFd<'_>, has_ended: &AtomicBool) -> Result<()> {
    let mut is_open = true;
    let mut piece = [0; 1 << 12];
    while !has_ended.load(Ordering::Relaxed) {
        crate::interrupt::check()?;
        let mut waited = [PollFd::new(input, PollFlags::POLLIN)];
        let waited = if is_open { &mut waited[..] } else { &mut [] };
        if nix::poll::poll(waited, PollTimeout::from(LOOK)).unwrap_or(0) == 0 {
            continue;
        }
        let size = nix::unistd::read(input, &mut piece).unwrap_or(0);
        is_open = size > 0;
        let length = u32::try_from(size).unwrap_or(0).to_be_bytes();
        let Some(requests) = process.requests() else { return Ok(()) };
        let sent = requests.write_all(&length).and_then(|()| requests.write_all(&piece[..size]));
        // Who does not read any more ends soon.
        if sent.and_then(|()| requests.flush()).is_err() {
            is_open = false;
        }
    }
    Ok(())
}

/// A terminal that passes every key on, until this is dropped.
struct Raw<'a> {
    terminal: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> Raw<'a> {
    fn set(terminal: BorrowedFd<'a>) -> Result<Self> {
        let failed = |error: nix::Error| Error::machine(format!("the terminal cannot be set: {error}"));
        let before = termios::tcgetattr(terminal).map_err(failed)?;
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        termios::tcsetattr(terminal, SetArg::TCSANOW, &raw).map_err(failed)?;
        Ok(Raw { terminal, before })
    }
}

impl Drop for Raw<'_> {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(self.terminal, SetArg::TCSANOW, &self.before);
    }
}
