//! A backend that runs nothing: it plays the runner from a script, so that whole runs take milliseconds. It speaks the
//! protocol of the Python runner, levels included, from the other side of the pipe.

mod report;
mod talk;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::script::{Act, FakeFile, Sequence, Start};
use crate::backend::{Backend, Finished, Isolation, Job, Mount, Places, Process};
use crate::error::{Error, Result};
use crate::record::collected::Group;
use talk::Talk;

pub(crate) use report::PACKAGE;

/// Processes of a job that was killed have this exit code, as far as anybody asks.
const KILLED: i32 = 137;

/// Plays the runner of a made-up repository.
#[derive(Debug, Clone)]
pub(crate) struct FakeBackend {
    state: Arc<Mutex<State>>,
    places: Places,
    isolation: Isolation,
}

#[derive(Debug)]
struct State {
    files: Vec<FakeFile>,
    starts: Sequence<Start>,
    log: Vec<String>,
}

impl State {
    fn file(&mut self, path: &str) -> &mut FakeFile {
        let file = self.files.iter_mut().find(|file| file.path == path);
        file.unwrap_or_else(|| panic!("the script has no file {path}"))
    }
}

impl FakeBackend {
    /// A repository with these files.
    pub(crate) fn new(files: impl IntoIterator<Item = FakeFile>) -> Self {
        let files = files.into_iter().collect();
        let state = State { files, starts: Sequence::always(Start::Ready), log: Vec::new() };
        FakeBackend {
            state: Arc::new(Mutex::new(state)),
            places: Places::in_sandbox(),
            isolation: Isolation { kind: "scripted".to_owned(), missing: Vec::new() },
        }
    }

    /// The next starts of runners, so many, do this.
    #[must_use]
    pub(crate) fn starting(self, times: usize, start: Start) -> Self {
        self.state().starts.push(times, start);
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The groups that a collection of everything finds.
    pub(crate) fn groups(&self) -> Vec<Group> {
        self.state().files.iter().flat_map(FakeFile::collected).collect()
    }

    /// All that was asked so far, a line each: `start`, `directory tests`, `file a.py`, `run test_a 2`, `close`, `cold
    /// a.py::test_a`.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    /// How many runners were started.
    pub(crate) fn runners(&self) -> usize {
        self.state().log.iter().filter(|line| *line == "start").count()
    }
}

impl Backend for FakeBackend {
    fn places(&self) -> &Places {
        &self.places
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn start(&self, job: &Job) -> Result<Box<dyn Process>> {
        if !job.channel {
            return Err(Error::internal("the script knows no such job").with_detail(job.argv.join(" ")));
        }
        self.state().log.push("start".to_owned());
        let start = self.state().starts.next();
        if let Start::Fails(fault) = start {
            return Err(Error::new(fault, "the script lets no runner start"));
        }
        let (sender, answers) = channel();
        let talk = Talk::new(Arc::clone(&self.state), start, job.env.clone(), sender);
        Ok(Box::new(FakeProcess { talk, answers: Some(Answers { answers, rest: Vec::new() }) }))
    }

    /// Cold runs: they leave pytest's report.
    fn run(&self, job: &Job, _: Duration) -> Result<Finished> {
        let group_id = job.argv.last().expect("has a group");
        let report = report_folder(job).join("report.xml");
        let mut state = self.state();
        state.log.push(format!("cold {group_id}"));
        let (path, function) = group_id.split_once("::").expect("names a group");
        let group = state.file(path).groups.iter().find(|group| group.function == function);
        let group = group.unwrap_or_else(|| panic!("the script has no group {group_id}"));
        let finished =
            |code, timed_out| Ok(Finished { code, timed_out, stdout: String::new(), stderr: String::new() });
        let (inside, code) = match group.in_the_cold() {
            Act::Passes | Act::Prints(_) | Act::PrintsCount => ("", 0),
            Act::Fails => ("<failure/>", 1),
            Act::TimesOut => return finished(None, true),
            _ => return finished(None, false),
        };
        let case = |(name, _)| format!("<testcase name=\"{name}\">{inside}</testcase>");
        let cases: String = group.names(false).map(case).collect();
        fs_err::write(report, format!("<testsuites><testsuite>{cases}</testsuite></testsuites>"))?;
        finished(Some(code), false)
    }
}

/// Where a job may leave its report.
fn report_folder(job: &Job) -> PathBuf {
    let place = |mount: &Mount| match mount {
        Mount::Writable { host, inside } if inside == Path::new("/run/report") => Some(host.clone()),
        _ => None,
    };
    job.mounts.iter().find_map(place).expect("has a place for the report")
}

/// A runner.
#[derive(Debug)]
struct FakeProcess {
    talk: Talk,
    answers: Option<Answers>,
}

impl Process for FakeProcess {
    fn take_answers(&mut self) -> Option<Box<dyn Read + Send>> {
        self.answers.take().map(|answers| Box::new(answers) as Box<dyn Read + Send>)
    }

    fn requests(&mut self) -> Option<&mut dyn Write> {
        Some(&mut self.talk)
    }

    fn log(&self) -> String {
        "what the scripted runner printed".to_owned()
    }

    fn code_inside(&mut self) -> Option<i32> {
        self.talk.code()
    }

    fn wait(mut self: Box<Self>, _: Duration) -> Result<Finished> {
        self.end();
        Ok(Finished { code: self.talk.code(), timed_out: false, stdout: String::new(), stderr: self.log() })
    }

    fn end(&mut self) {
        self.talk.end(KILLED);
    }
}

/// The pipe that answers come through; it ends when the runner does.
#[derive(Debug)]
struct Answers {
    answers: Receiver<Vec<u8>>,
    rest: Vec<u8>,
}

impl Read for Answers {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.rest.is_empty() {
            self.rest = self.answers.recv().unwrap_or_default();
        }
        let length = buffer.len().min(self.rest.len());
        buffer[..length].copy_from_slice(&self.rest[..length]);
        self.rest.drain(..length);
        Ok(length)
    }
}
