//! What was killed says nothing about what it did: it is run again before anything follows from it. The kernel kills
//! for want of memory, and people kill by mistake.

use std::process::{Command, Output};
use std::time::Duration;

use super::{Backend, Finished, Job};
use crate::error::{Error, Fault, Result};

/// How often something is run that does not come to its own end.
pub const TRIES: u32 = 3;

/// Runs a job to its own end or to the time limit, again when it was killed or its sandbox broke.
///
/// # Errors
/// The harness's trouble when it was killed every time, and whatever [`Backend::run`] gives.
pub fn run(backend: &dyn Backend, job: &Job, limit: Duration) -> Result<Finished> {
    let mut last = None;
    for _ in 0..TRIES {
        crate::interrupt::check()?;
        match backend.run(job, limit) {
            Ok(finished) if finished.code.is_some() || finished.timed_out => return Ok(finished),
            Ok(finished) => last = Some(killed(job, &finished)),
            Err(error) if error.fault() == Fault::Harness => last = Some(error),
            Err(error) => return Err(error),
        }
        if let Some(error) = &last {
            tracing::warn!("a job did not come to its own end: {error}");
        }
    }
    Err(last.unwrap_or_else(|| Error::internal("a job was never run")))
}

fn killed(job: &Job, finished: &Finished) -> Error {
    let program = job.argv.first().map(String::as_str).unwrap_or_default();
    Error::harness(format!("{program} was killed {TRIES} times"))
        .with_detail(crate::text::tail(&finished.stderr, 20))
        .with_hint("the machine may be out of memory: run fewer --jobs, or free some, and run the same command again")
}

/// The output of a program of the machine that came to its own end; the last one when it never does.
///
/// # Errors
/// When it cannot be started.
pub fn output(mut command: impl FnMut() -> Command) -> std::io::Result<Output> {
    let mut output = command().output()?;
    for _ in 1..TRIES {
        if output.status.code().is_some() {
            break;
        }
        output = command().output()?;
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Isolation, Places, Process};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Killed so many times before it answers.
    struct Killed {
        times: u32,
        runs: AtomicU32,
        places: Places,
        isolation: Isolation,
    }

    impl Killed {
        fn times(times: u32) -> Self {
            let isolation = Isolation { kind: "scripted".into(), missing: Vec::new() };
            Killed { times, runs: AtomicU32::new(0), places: Places::in_sandbox(), isolation }
        }
    }

    impl Backend for Killed {
        fn places(&self) -> &Places {
            &self.places
        }

        fn isolation(&self) -> &Isolation {
            &self.isolation
        }

        fn start(&self, _: &Job) -> Result<Box<dyn Process>> {
            Err(Error::internal("nothing is started"))
        }

        fn run(&self, _: &Job, _: Duration) -> Result<Finished> {
            let run = self.runs.fetch_add(1, Ordering::Relaxed);
            let code = (run >= self.times).then_some(7);
            Ok(Finished { code, timed_out: false, stdout: String::new(), stderr: "words".into() })
        }
    }

    fn job() -> Job {
        Job::small(["/bin/tool"])
    }

    #[test]
    fn a_job_that_was_killed_is_run_again_and_its_own_end_counts() {
        let backend = Killed::times(2);
        let finished = run(&backend, &job(), Duration::from_secs(1)).unwrap();
        assert_eq!((finished.code, backend.runs.into_inner()), (Some(7), 3));
    }

    #[test]
    fn a_job_that_is_killed_every_time_is_the_harness_trouble() {
        let error = run(&Killed::times(99), &job(), Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.fault(), Fault::Harness);
        assert!(error.to_string().contains("/bin/tool was killed 3 times"), "{error}");
        assert_eq!(error.detail(), Some("words"));
    }

    #[test]
    fn a_program_that_was_killed_is_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let command = |script: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).current_dir(folder.path());
            command
        };
        let script = "[ -e again ] && exit 5; : > again; kill -9 $$";
        assert_eq!(output(|| command(script)).unwrap().status.code(), Some(5));
        assert_eq!(output(|| command("kill -9 $$")).unwrap().status.code(), None);
    }
}
