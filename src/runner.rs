//! The embedded Python runner: starts it in a backend, and talks to it with a time limit on every answer.
//!
//! A [`Runner`] is one interpreter in one world. It mirrors the entry command as a stack of forks (interpreter →
//! directory → file → group); requests ([`Runner::ask`]) open levels, and [`Runner::close`] ends them.
//! Trouble with the runner is an [`Error`] with [`Fault::Harness`](crate::error::Fault::Harness), never a result.

mod embedded;
mod ending;
pub mod frame;
pub mod protocol;
pub mod report;
mod setting;

use std::io::BufReader;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use crate::backend::{Backend, Process};
use crate::error::{Error, Result};
use crate::interrupt::Waiting;
use crate::record::limits::Timeouts;
use crate::record::outcome::TimeScope;
pub use embedded::{generator_hash, unpack, version_hash};
use frame::Frame;
use protocol::{Answer, Manner, OutputLimits, PROTOCOL, ProcessExit, Request, RunnerIsolation};
use report::GroupDone;
pub use setting::{Setting, TREE_BYTES};

/// Exit code of a runner one of whose levels cannot be ended (`EXIT_LOST_LEVEL` in `keeper.py`).
const LOST_LEVEL: i32 = 71;
/// Time the runner gets beyond a request's own limit before it counts as hanging.
const GRACE: Duration = Duration::from_secs(30);

/// A live interpreter of the fork tree.
#[derive(Debug)]
pub struct Runner {
    process: Box<dyn Process>,
    answers: Receiver<Result<Frame, String>>,
    next_id: u64,
    /// Its channel has ended, and so it has.
    ended: bool,
    /// It said that it is in trouble itself.
    failed: bool,
    /// Processes of its job that the kernel has ended for want of memory, as far as it was asked.
    killed_for_memory: u64,
    /// Who waits for what it is asked; where that is nobody in particular, only a stop ends an answer's wait.
    waiting: Option<Waiting>,
    /// The version of pytest.
    pub pytest: String,
}

impl Runner {
    /// Starts an interpreter and waits until it is ready.
    ///
    /// # Errors
    /// Harness errors when it does not start; a repository error when pytest cannot be imported.
    pub fn start(backend: &dyn Backend, setting: &Setting) -> Result<Self> {
        let mut process = backend.start(&setting.job())?;
        let token = fresh_token()?;
        let pipe = process.take_answers().ok_or_else(|| Error::internal("the job has no channel"))?;
        let (sender, answers) = sync_channel(64);
        let expected = token.clone();
        std::thread::spawn(move || {
            let mut pipe = BufReader::with_capacity(256 * 1024, pipe);
            loop {
                let message = match frame::read_answer(&mut pipe, &expected) {
                    Ok(Some(answer)) => Ok(answer),
                    Ok(None) => return,
                    Err(trouble) => Err(trouble),
                };
                let last = message.is_err();
                if sender.send(message).is_err() || last {
                    return;
                }
            }
        });
        let mut runner = Runner {
            process,
            answers,
            next_id: 0,
            ended: false,
            failed: false,
            killed_for_memory: 0,
            waiting: None,
            pytest: String::new(),
        };
        let places = &setting.places;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let isolation = setting.overlays.then(|| RunnerIsolation {
            root: text(&places.root),
            writable: setting.writable().iter().map(|path| text(path)).collect(),
            scratch: text(&places.scratch),
        });
        let limits = OutputLimits { output_bytes: setting.output_bytes };
        let world = setting.world.clone();
        let hello = Request::Hello { token, protocol: PROTOCOL, isolation, limits, world };
        match runner.ask(&hello, Duration::from_mins(1))? {
            Answer::Hello { pytest } => {
                runner.pytest = pytest;
                Ok(runner)
            }
            Answer::Refused { reason } => {
                let hint = if reason.contains("Traceback") && !reason.contains("No module named 'pytest'") {
                    "see whether the repository, or a pin of it, replaces what pytest imports"
                } else {
                    "add pytest to the repository's `requirements` in the config"
                };
                Err(Error::repository(format!("pytest cannot run: {reason}")).with_hint(hint))
            }
            other => Err(runner.unexpected(&other)),
        }
    }

    /// From now on answers are waited for as long as they wait, if that is somebody.
    pub fn serve(&mut self, waiting: Option<Waiting>) {
        self.waiting = waiting;
    }

    /// Whether it lives, and says nothing that nobody asked for.
    pub fn is_idle(&self) -> bool {
        matches!(self.answers.try_recv(), Err(TryRecvError::Empty))
    }

    /// Sends a request without waiting.
    fn send(&mut self, request: &Request) -> Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let frame = frame::encode(id, request).map_err(Error::internal)?;
        let result = match self.process.requests() {
            Some(pipe) => pipe.write_all(&frame).and_then(|()| pipe.flush()),
            None => Err(std::io::Error::other("the channel is closed")),
        };
        self.ended |= result.is_err();
        result.map_err(|error| {
            Error::harness("the runner does not take requests")
                .with_source(error)
                .with_detail(self.process.log())
        })?;
        Ok(id)
    }

    /// Waits for an answer to request `id`; none when none comes in time. One that cannot be read answers the request
    /// in flight, of which there is never more than one.
    fn receive(&mut self, id: u64, limit: Duration) -> Result<Option<Answer>> {
        let deadline = Instant::now() + limit;
        loop {
            if self.waiting.as_ref().is_some_and(Waiting::is_over) {
                return Err(Error::interrupted());
            }
            let wait = deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(200));
            match self.answers.recv_timeout(wait) {
                Ok(Ok(Frame::Answer(numbered))) if numbered.id == id => return Ok(Some(numbered.answer)),
                Ok(Ok(Frame::Answer(_))) => {}
                Ok(Ok(Frame::Unreadable(reason))) => return Ok(Some(Answer::Unreadable { reason })),
                Ok(Err(trouble)) => {
                    // Nobody knows where its next answer starts.
                    self.process.end();
                    return Err(self.trouble(&trouble));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.ended = true;
                    return Err(self.trouble("the runner ended"));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => return Ok(None),
                Err(RecvTimeoutError::Timeout) => crate::interrupt::check()?,
            }
        }
    }

    /// Sends a request and waits for its (first) answer, so long after each sign of work.
    ///
    /// # Errors
    /// Harness errors: no answer in time, a broken pipe, trouble inside the runner.
    pub fn ask(&mut self, request: &Request, limit: Duration) -> Result<Answer> {
        let id = self.send(request)?;
        loop {
            match self.receive(id, limit + GRACE)? {
                Some(Answer::Collecting { .. }) => {}
                Some(Answer::InternalError { traceback }) => return Err(self.failure(traceback)),
                Some(answer) => return Ok(answer),
                None => return Err(self.trouble(&silent(limit + GRACE))),
            }
        }
    }

    /// Runs a group `repeat` times in a `manner`; `each` sees every attempt as it ends.
    ///
    /// # Errors
    /// Harness errors, and whatever `each` gives back.
    pub fn run_group(
        &mut self,
        items: &[usize],
        (repeat, manner): (u32, Manner),
        timeouts: Timeouts,
        mut each: impl FnMut(GroupDone) -> Result<()>,
    ) -> Result<Ran> {
        let request = Request::Run {
            items: items.to_vec(),
            case_timeout_ms: milliseconds(timeouts.case),
            group_timeout_ms: milliseconds(timeouts.group),
            repeat,
            manner,
        };
        let id = self.send(&request)?;
        for done in 0..repeat {
            let limit = timeouts.group + GRACE;
            let unusable = |text: String| Ok(Ran::Broke { exit: ProcessExit::Unusable, text, done });
            match self.receive(id, limit)? {
                Some(Answer::GroupDone(attempted)) => match attempted.read() {
                    Ok(mut report) => {
                        if report.exit == (ProcessExit::Signaled { signal: protocol::SIGKILL }) {
                            report.raw_output.extend(self.out_of_memory());
                        }
                        each(report)?;
                    }
                    Err(reason) => return unusable(reason),
                },
                Some(Answer::Unreadable { reason }) => return unusable(reason),
                Some(Answer::InternalError { traceback }) => return Err(self.failure(traceback)),
                Some(Answer::Broken { level, traceback }) => {
                    return unusable(format!("the {level} process failed:\n{traceback}"));
                }
                Some(Answer::TimedOut { level, .. }) => {
                    let exit = ProcessExit::TimedOut { scope: TimeScope::Group, index: None };
                    let text = format!("the {level} process did not end the attempt in time");
                    return Ok(Ran::Broke { exit, text, done });
                }
                Some(Answer::Died { exit, .. }) => {
                    let text =
                        "the process that started the attempt was ended, or stopped, as well".to_owned();
                    return Ok(Ran::Broke { exit, text, done });
                }
                None => {
                    let exit = ProcessExit::TimedOut { scope: TimeScope::Group, index: None };
                    return Ok(Ran::Broke { exit, text: silent(limit), done });
                }
                Some(other) => return Err(self.unexpected(&other)),
            }
        }
        Ok(Ran::All)
    }

    /// Words on processes of the job that the kernel has ended for want of memory since this was last asked.
    pub fn out_of_memory(&mut self) -> Option<String> {
        let (killed, limit) = self.process.out_of_memory()?;
        let before = std::mem::replace(&mut self.killed_for_memory, killed);
        (killed > before).then(|| {
            let limit = crate::document::units::format_size(limit);
            format!("\nthe processes of the job held all the memory that they may, {limit}: the kernel ended one\n")
        })
    }

    /// The process of this machine below which it runs; none where there is none.
    pub fn host_process(&self) -> Option<u32> {
        self.process.host_process()
    }

    /// Ends the process on top of the stack.
    pub fn close(&mut self) -> Result<()> {
        match self.ask(&Request::Close {}, Duration::from_mins(1))? {
            Answer::Closed {} | Answer::Died { .. } => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Whether it said that it is in trouble itself, whatever it was asked.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    fn failure(&mut self, traceback: String) -> Error {
        self.failed = true;
        Error::harness("the runner failed").with_detail(traceback)
    }

    /// The signal by which a process of its own sandbox, or the kernel, killed or stopped the keeper or the interpreter,
    /// or kept a level from being ended; none when it ended otherwise, or with the sandbox.
    pub fn ended_by(&mut self) -> Option<i32> {
        const KILLED: i32 = 128 + nix::libc::SIGKILL;
        const STOPPED: i32 = 128 + nix::libc::SIGSTOP;
        match self.ended.then(|| self.process.code_inside())?? {
            KILLED | LOST_LEVEL => Some(nix::libc::SIGKILL),
            STOPPED => Some(nix::libc::SIGSTOP),
            _ => None,
        }
    }

    /// A harness error for an answer that does not fit the question.
    pub fn unexpected(&self, answer: &Answer) -> Error {
        self.trouble(&format!("an answer that does not fit: {answer:?}"))
    }

    fn trouble(&self, what: &str) -> Error {
        let log = self.process.log();
        let error = Error::harness(format!("the runner: {what}"));
        if log.is_empty() { error } else { error.with_detail(log) }
    }
}

/// How a series of attempts of one group ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    /// Every attempt was reported.
    All,
    /// After `done` attempts a process above the group ended, or what came of an attempt cannot be used.
    Broke { exit: ProcessExit, text: String, done: u32 },
}

fn silent(limit: Duration) -> String {
    format!("no answer within {} s", limit.as_secs())
}

/// Whole milliseconds of a limit.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// 128 random bits in hex: repository code cannot guess the mark of a frame.
fn fresh_token() -> Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::machine("the system gives no random bytes").with_source(error))?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process whose job has lost so many processes to a limit of 3 MiB.
    #[derive(Debug)]
    struct Starved(Vec<u8>, u64);

    impl Process for Starved {
        fn take_answers(&mut self) -> Option<Box<dyn std::io::Read + Send>> {
            None
        }

        fn requests(&mut self) -> Option<&mut dyn std::io::Write> {
            Some(&mut self.0)
        }

        fn log(&self) -> String {
            String::new()
        }

        fn out_of_memory(&self) -> Option<(u64, u64)> {
            Some((self.1, 3 << 20))
        }

        fn code_inside(&mut self) -> Option<i32> {
            None
        }

        fn wait(self: Box<Self>, _: Duration) -> Result<crate::backend::Finished> {
            Err(Error::internal("is not waited for"))
        }

        fn end(&mut self) {}
    }

    /// What attempts that ended so print in a job that has lost so many processes, one attempt after the other.
    fn printed(exits: &[&serde_json::Value], lost: u64) -> Vec<String> {
        let (sender, answers) = sync_channel(exits.len());
        for exit in exits {
            let done = serde_json::json!({
                "type": "group_done", "attempt": 0, "report": "", "exit": exit, "leftover": 0,
                "raw_output": "printed", "running": null, "duration_ms": 1.0,
            });
            let answer = serde_json::from_value(done).unwrap();
            sender.send(Ok(Frame::Answer(protocol::Numbered { id: 1, answer }))).unwrap();
        }
        let mut runner = Runner {
            process: Box::new(Starved(Vec::new(), lost)),
            answers,
            next_id: 1,
            ended: false,
            failed: false,
            killed_for_memory: 0,
            waiting: None,
            pytest: String::new(),
        };
        let (mut texts, limit) = (Vec::new(), Duration::from_secs(1));
        let each = |done: GroupDone| {
            texts.push(done.raw_output);
            Ok(())
        };
        runner
            .run_group(
                &[0],
                (exits.len() as u32, Manner::default()),
                Timeouts { case: limit, group: limit },
                each,
            )
            .unwrap();
        texts
    }

    #[test]
    fn an_attempt_that_is_killed_for_want_of_memory_says_so() {
        let killed = serde_json::json!({"kind": "signaled", "signal": protocol::SIGKILL});
        let texts = printed(&[&serde_json::json!({"kind": "finished"}), &killed, &killed], 2);
        assert_eq!((texts[0].as_str(), texts[2].as_str()), ("printed", "printed"));
        assert!(texts[1].starts_with("printed\n") && texts[1].contains("they may, 3MiB:"), "{}", texts[1]);
        assert_eq!(printed(&[&killed], 0), ["printed"]);
    }
}
