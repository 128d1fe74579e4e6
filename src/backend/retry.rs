//! Trying again, in one place. What was killed says nothing about what it did: the kernel kills for want of memory, and
//! people kill by mistake. Nor does a sandbox or an engine that broke.
//!
//! Who asks for a result owns the number of tries ([`TRIES`]): [`run`] for jobs, the pool for attempts, the collection
//! for its own. Below them a backend does nothing twice but start, and that only after it has put its engine right
//! ([`after_recovery`]).

use std::process::{Command, Output};
use std::time::Duration;

use super::{Backend, Finished, Job};
use crate::error::{Error, Fault, Result};
use crate::text;

/// How often something is run that does not come to its own end.
pub const TRIES: u32 = 3;

/// Does something until its result is worth keeping, at most [`TRIES`] times; `recover` comes between two tries. The
/// harness's errors are tried again, too; all others are final.
///
/// # Errors
/// That of the last try; a final one; the first of `recover`; an interruption.
pub fn until<T>(
    mut act: impl FnMut() -> Result<T>,
    is_worth_keeping: impl Fn(&T) -> bool,
    recover: impl Fn() -> Result<()>,
) -> Result<T> {
    let mut number = 1;
    loop {
        crate::interrupt::check()?;
        let last = act();
        let is_final = match &last {
            Ok(result) => is_worth_keeping(result),
            Err(error) => error.fault() != Fault::Harness,
        };
        if is_final || number == TRIES {
            return last;
        }
        let reason =
            last.err().map_or_else(|| "it did not come to its own end".to_owned(), |error| error.to_string());
        tracing::warn!("tried again after try {number} of {TRIES}: {reason}");
        recover()?;
        number += 1;
    }
}

/// For [`until`] where nothing has to be put right between two tries.
pub fn nothing() -> Result<()> {
    Ok(())
}

/// Does something once more where the harness broke and could be put right.
///
/// # Errors
/// That of the second try; one that is not the harness's; that of `recover`.
pub fn after_recovery<T>(act: impl Fn() -> Result<T>, recover: impl FnOnce() -> Result<()>) -> Result<T> {
    match act() {
        Err(error) if error.fault() == Fault::Harness => {
            tracing::warn!("tried again after a recovery: {error}");
            recover()?;
            act()
        }
        done => done,
    }
}

/// Runs a job to its own end or to the time limit, again when it was killed or its sandbox broke.
///
/// # Errors
/// The harness's trouble when it was killed every time, and whatever [`Backend::run`] gives.
pub fn run(backend: &dyn Backend, job: &Job, limit: Duration) -> Result<Finished> {
    run_until(backend, job, limit, |finished| finished.timed_out)
}

/// Runs a job that should end within the limit: it is run again when it does not. The last run counts.
///
/// # Errors
/// Those of [`run`].
pub fn run_to_its_end(backend: &dyn Backend, job: &Job, limit: Duration) -> Result<Finished> {
    run_until(backend, job, limit, |_| false)
}

fn run_until(
    backend: &dyn Backend,
    job: &Job,
    limit: Duration,
    is_enough: impl Fn(&Finished) -> bool,
) -> Result<Finished> {
    let ended = |finished: &Finished| finished.code.is_some() && !finished.timed_out || is_enough(finished);
    let finished = until(|| backend.run(job, limit), ended, nothing)?;
    if finished.code.is_some() || finished.timed_out {
        return Ok(finished);
    }
    let program = job.argv.first().map(String::as_str).unwrap_or_default();
    Err(Error::harness(format!("{program} was killed {TRIES} times"))
        .with_detail(text::tail(&finished.stderr, 20))
        .with_hint("the machine may be out of memory: run fewer --jobs, or free some, and run the same command again"))
}

/// The output of a program of this machine that came to its own end; the last one when it never does.
///
/// # Errors
/// When it cannot be started.
pub fn output(mut command: impl FnMut() -> Command) -> Result<Output> {
    until(|| Ok(command().output()?), |output| output.status.code().is_some(), nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Isolation, Places, Process};
    use std::cell::Cell;
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

    /// What three tries give one after the other, how many were made and how often something was put right.
    fn tried(results: [Result<u32, Fault>; 3]) -> (Result<u32, Fault>, usize, usize) {
        let (tries, recoveries) = (Cell::new(0), Cell::new(0));
        let act = || {
            let number = tries.replace(tries.get() + 1);
            results[number].map_err(|fault| Error::new(fault, "scripted"))
        };
        let recover = || {
            recoveries.set(recoveries.get() + 1);
            Ok(())
        };
        let result = until(act, |number| *number > 0, recover).map_err(|error| error.fault());
        (result, tries.get(), recoveries.get())
    }

    #[test]
    fn what_is_worth_keeping_ends_the_tries_and_so_does_an_error_that_is_not_the_harnesss() {
        let (machine, harness) = (Err(Fault::Machine), Err(Fault::Harness));
        assert_eq!(tried([Ok(1), Ok(2), Ok(3)]), (Ok(1), 1, 0));
        assert_eq!(tried([Ok(0), Ok(2), Ok(3)]), (Ok(2), 2, 1));
        assert_eq!(tried([harness, Ok(2), Ok(3)]), (Ok(2), 2, 1));
        assert_eq!(tried([machine, Ok(2), Ok(3)]), (machine, 1, 0));
        assert_eq!(tried([Ok(0), harness, machine]), (machine, 3, 2));
    }

    #[test]
    fn the_last_try_counts_whatever_it_gives() {
        assert_eq!(tried([Err(Fault::Harness), Ok(0), Ok(0)]), (Ok(0), 3, 2));
        assert_eq!(tried([Ok(0), Ok(0), Err(Fault::Harness)]), (Err(Fault::Harness), 3, 2));
    }

    #[test]
    fn what_cannot_be_put_right_is_not_tried_again() {
        let tries = Cell::new(0);
        let act = || -> Result<()> {
            tries.set(tries.get() + 1);
            Err(Error::harness("broke"))
        };
        let gone = || Err(Error::machine("gone"));
        assert_eq!(until(act, |()| true, gone).unwrap_err().fault(), Fault::Machine);
        assert_eq!(after_recovery(act, gone).unwrap_err().fault(), Fault::Machine);
        assert_eq!(tries.get(), 2);
    }

    #[test]
    fn after_a_recovery_there_is_one_more_try() {
        let tries = Cell::new(0);
        let from = |first: u32| {
            tries.set(0);
            let act = || {
                let number = tries.replace(tries.get() + 1);
                if number < first { Err(Error::harness("broke")) } else { Ok(number) }
            };
            after_recovery(act, nothing).map_err(|error| error.fault())
        };
        assert_eq!(from(0), Ok(0));
        assert_eq!(from(1), Ok(1));
        assert_eq!(from(2), Err(Fault::Harness));
        assert_eq!(tries.get(), 2);
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
