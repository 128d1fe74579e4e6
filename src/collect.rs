//! Collects a repository's tests: pytest itself, through the runner, never by reading pytest's text.

use std::time::Duration;

use crate::backend::{Backend, again};
use crate::error::{Error, Fault, Result};
use crate::group;
use crate::record::collected::Collected;
use crate::runner::protocol::{Answer, Discovered, ProcessExit, Request, SIGKILL};
use crate::runner::{Runner, Setting, milliseconds};
use crate::screen::normalize::Normalizer;

/// Time for a whole-suite collection.
const LIMIT: Duration = Duration::from_mins(10);

/// Collects everything in one process; `tests` empty = the repository's own testpaths.
///
/// # Errors
/// A repository error when pytest cannot be configured (conftest, options), harness errors otherwise.
pub fn discover(
    backend: &dyn Backend,
    setting: &Setting,
    tests: &[String],
    options: &[String],
) -> Result<(Discovered, String)> {
    let mut tries = 1..again::TRIES;
    loop {
        // A runner that broke or was killed says nothing about the tests.
        match discover_once(backend, setting, tests, options) {
            Err(Trouble::Harness(error)) if tries.next().is_none() => return Err(error),
            Err(Trouble::Harness(_)) => crate::interrupt::check()?,
            Err(Trouble::Repository(error)) => return Err(error),
            Ok(found) => return Ok(found),
        }
    }
}

/// Whose trouble a collection is in.
enum Trouble {
    Harness(Error),
    Repository(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        if error.fault() == Fault::Harness { Trouble::Harness(error) } else { Trouble::Repository(error) }
    }
}

fn discover_once(
    backend: &dyn Backend,
    setting: &Setting,
    tests: &[String],
    options: &[String],
) -> Result<(Discovered, String), Trouble> {
    let mut runner = Runner::start(backend, setting)?;
    let request = Request::Discover {
        args: tests.to_vec(),
        options: options.to_vec(),
        timeout_ms: milliseconds(LIMIT),
    };
    match runner.ask(&request, LIMIT)? {
        Answer::Discovered(found) => Ok((*found, runner.pytest.clone())),
        Answer::Failed { stage, error } => {
            Err(Error::repository(format!("pytest cannot {stage}: {}", error.exception.unwrap_or_default()))
                .with_detail(tail(&error.text, 30))
                .with_hint("run `python -m pytest --collect-only` in the repository to see the same")
                .into())
        }
        Answer::Died { exit, .. } => {
            let error = Error::repository(format!("collecting ends the process: {exit:?}"));
            let killed = exit == ProcessExit::Signaled { signal: SIGKILL };
            Err(if killed { Trouble::Harness(error) } else { Trouble::Repository(error) })
        }
        Answer::TimedOut { .. } => {
            Err(Error::repository(format!("collecting takes longer than {} s", LIMIT.as_secs())).into())
        }
        other => Err(runner.unexpected(&other).into()),
    }
}

/// Groups what was discovered.
///
/// # Errors
/// A repository error when there is no test at all.
pub fn collected(found: &Discovered, pytest: String, normalizer: &Normalizer) -> Result<Collected> {
    let (groups, mut uncollected) = group::group(&found.items, normalizer);
    uncollected.extend(group::uncollected(&found.errors, normalizer));
    if groups.is_empty() && uncollected.is_empty() {
        return Err(Error::repository("pytest finds no tests").with_hint(
            "name the directories or files that hold the tests in `tests = [\"…\"]` of this [[repo]]",
        ));
    }
    let node_ids = found.items.iter().map(|item| normalizer.id(&item.node_id).0).collect();
    Ok(Collected { pytest, node_ids, groups, uncollected, deselected: found.deselected, notes: Vec::new() })
}

/// The last lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
