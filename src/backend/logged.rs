//! What the log says about jobs: when one starts, what it runs, how long it took and how it ended.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Finished, Job, Process};
use crate::error::Result;
use crate::text::shell_quote;

/// Longest command line that the log shows, in characters.
const SHOWN: usize = 1000;

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// The process, whose start and end are logged.
pub(crate) fn followed(job: &Job, process: Box<dyn Process>) -> Box<dyn Process> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    tracing::info!("job {number} started: {}", command_line(&job.argv));
    Box::new(Logged { process, entry: Entry { number, started: Instant::now(), code: None, ended: false } })
}

/// Arguments as a shell would take them. The environment of a job, which may hold secrets, is never shown.
fn command_line(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| shell_quote(word)).collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A process, and what is still to be said about it when it ends. It goes before its entry, so that the time is whole.
#[derive(Debug)]
struct Logged {
    process: Box<dyn Process>,
    entry: Entry,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    started: Instant,
    /// As far as somebody asked for it.
    code: Option<i32>,
    ended: bool,
}

impl Entry {
    fn end(&mut self, how: &str) {
        if !std::mem::replace(&mut self.ended, true) {
            let seconds = self.started.elapsed().as_secs_f64();
            tracing::info!("job {} ended after {seconds:.3} s: {how}", self.number);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        match self.code {
            Some(code) => self.end(&format!("exit code {code}")),
            None => self.end("stopped by gistmill"),
        }
    }
}

impl Process for Logged {
    fn take_answers(&mut self) -> Option<Box<dyn Read + Send>> {
        self.process.take_answers()
    }

    fn requests(&mut self) -> Option<&mut dyn Write> {
        self.process.requests()
    }

    fn log(&self) -> String {
        self.process.log()
    }

    fn out_of_memory(&self) -> Option<(u64, u64)> {
        self.process.out_of_memory()
    }

    fn host_process(&self) -> Option<u32> {
        self.process.host_process()
    }

    fn code_inside(&mut self) -> Option<i32> {
        self.entry.code = self.process.code_inside();
        self.entry.code
    }

    fn wait(self: Box<Self>, limit: Duration) -> Result<Finished> {
        let Logged { process, mut entry } = *self;
        let result = process.wait(limit);
        entry.end(&match &result {
            Ok(Finished { timed_out: true, .. }) => format!("over its time limit of {limit:?}"),
            Ok(Finished { code: Some(code), .. }) => format!("exit code {code}"),
            Ok(_) => "killed".to_owned(),
            Err(error) => error.to_string(),
        });
        result
    }

    fn end(&mut self) {
        self.process.end();
    }
}
