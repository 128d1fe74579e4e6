//! The generator: a level of the runner in the whole tree that proposes texts and runs none of the tree's code.

use std::time::Duration;

use crate::attempt::lab::Lab;
use crate::error::{Error, Fault, Result};
use crate::runner::protocol::{Answer, Generated, Request};
use crate::runner::{Runner, milliseconds};

/// What the generator may take from one answer to the next.
const STEP: Duration = Duration::from_mins(2);

/// What the generator says.
pub(super) enum Step {
    /// A text to try.
    Candidate(String),
    Ended(Box<Generated>),
    /// It did not answer, or died; the next instance gets another one.
    Broke(String),
}

/// A live generator, started when it is first asked.
pub(super) struct Generator<'a> {
    lab: &'a Lab,
    runner: Option<Runner>,
}

impl<'a> Generator<'a> {
    pub(super) fn new(lab: &'a Lab) -> Self {
        Generator { lab, runner: None }
    }

    /// Asks, and starts it where it is not running.
    ///
    /// # Errors
    /// An interruption; that no runner starts.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Step> {
        let runner = match &mut self.runner {
            Some(runner) => runner,
            empty => empty.insert(started(self.lab)?),
        };
        let answer = match runner.ask(request, STEP) {
            Ok(answer) => answer,
            Err(error) if error.fault() == Fault::Harness => {
                self.runner = None;
                return Ok(Step::Broke(error.to_string()));
            }
            Err(error) => return Err(error),
        };
        Ok(match answer {
            Answer::Candidate { text } => Step::Candidate(text),
            Answer::Generated(generated) => Step::Ended(generated),
            other => {
                self.runner = None;
                Step::Broke(format!("{other:?}"))
            }
        })
    }
}

fn started(lab: &Lab) -> Result<Runner> {
    let mut runner = Runner::start(&*lab.backend, &lab.setting)?;
    match runner.ask(&Request::OpenGenerator { timeout_ms: milliseconds(STEP) }, STEP)? {
        Answer::GeneratorReady {} => Ok(runner),
        other => Err(Error::harness(format!("the generator does not start: {other:?}"))),
    }
}
