//! Collects a repository's tests: pytest itself, through the runner, never by reading pytest's text.

pub mod entries;
pub mod group;
mod help;
mod parts;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::attempt::normalize::Normalizer;
use crate::backend::{Backend, retry};
use crate::beneath::Folder;
use crate::error::{Error, Fault, Result};
use crate::record::collected::{Collected, Group};
use crate::runner::protocol::{Answer, AtFault, CollectErrorKind, Discovered, ProcessExit, Request, SIGKILL};
use crate::runner::{Runner, Setting, milliseconds};

/// How much later than its own watchers the runner takes a discovery for hanging.
const LATER: Duration = Duration::from_secs(10);

/// What is to be collected, and how.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Arguments; none means the repository's own testpaths.
    pub tests: &'a [String],
    pub options: &'a [String],
    /// What importing one file may take.
    pub limit: Duration,
}

/// Collects everything; files that the entry command would collect otherwise, by themselves ([`parts`]), and where pytest
/// finds nothing at all, files that bear the names of unittest's. What is `known` to end the process, or to hang, is not
/// imported again.
///
/// # Errors
/// A repository error when pytest cannot be configured (conftest, options), or what runs between the files does not come
/// to its end; harness errors otherwise.
pub fn discover(
    backend: &dyn Backend,
    setting: &Setting,
    wanted: &Wanted<'_>,
    known: &[AtFault],
) -> Result<(Discovered, String)> {
    let (mut found, pytest) = discover_part(backend, setting, wanted, known)?;
    let tree = Folder::open(&setting.tree)?;
    if wanted.tests.is_empty() && found.items.is_empty() && found.errors.is_empty() {
        let files = parts::named_for_unittest(&tree)?;
        if !files.is_empty() {
            (found, _) = discover_part(backend, setting, &Wanted { tests: &files, ..*wanted }, known)?;
        }
    }
    let parts = parts::apart(&tree, &found);
    let files: BTreeSet<&str> = found.items.iter().map(|item| item.file.as_str()).collect();
    let is_all = |part: &[String]| found.errors.is_empty() && part.len() == files.len();
    if let [part] = parts.as_slice()
        && !wanted.tests.is_empty()
        && is_all(part)
    {
        return Ok((found, pytest)); // what was asked for is this one part
    }
    for files in parts {
        crate::interrupt::check()?;
        let known: Vec<AtFault> = known.iter().chain(&found.at_fault).cloned().collect();
        let part = match discover_part(backend, setting, &Wanted { tests: &files, ..*wanted }, &known) {
            Ok((part, _)) => part,
            Err(error) if error.fault() == Fault::Repository => {
                parts::refused(&files, &format!("{error}\n{}", error.detail().unwrap_or_default()))
            }
            Err(error) => return Err(error),
        };
        parts::put(&mut found, &files, part);
    }
    Ok((found, pytest))
}

/// One collection, tried again as long as that may help.
fn discover_part(
    backend: &dyn Backend,
    setting: &Setting,
    wanted: &Wanted<'_>,
    known: &[AtFault],
) -> Result<(Discovered, String)> {
    let mut known = known.to_vec();
    let mut tries = 1..retry::TRIES;
    loop {
        // A runner that broke or was killed says nothing about the tests.
        match discover_once(backend, setting, wanted, &known) {
            Err(DiscoveryError::Harness(error)) if tries.next().is_none() => return Err(error),
            Err(DiscoveryError::Killed(fault)) if tries.next().is_none() => {
                tries = 1..retry::TRIES;
                remember(&mut known, fault)?;
            }
            Err(DiscoveryError::Harness(_) | DiscoveryError::Killed(_)) => crate::interrupt::check()?,
            Err(DiscoveryError::Of(fault)) => remember(&mut known, fault)?,
            Err(DiscoveryError::Repository(error)) => return Err(error),
            Ok(found) => return Ok(found),
        }
    }
}

/// Leaves a place out from now on.
fn remember(known: &mut Vec<AtFault>, fault: AtFault) -> Result<()> {
    if fault.place.is_empty() || known.iter().any(|one| one.place == fault.place) {
        return Err(Error::repository(format!("collecting does not come to its end: {}", fault.text))
            .with_hint("run `python -m pytest --collect-only` in the repository to see the same"));
    }
    known.push(fault);
    Ok(())
}

/// Whose trouble a collection is in.
enum DiscoveryError {
    Harness(Error),
    Repository(Error),
    /// That of the file that was being imported; of an empty place, when none was.
    Of(AtFault),
    /// That of the file, if it is killed again.
    Killed(AtFault),
}

impl From<Error> for DiscoveryError {
    fn from(error: Error) -> Self {
        if error.fault() == Fault::Harness {
            DiscoveryError::Harness(error)
        } else {
            DiscoveryError::Repository(error)
        }
    }
}

fn discover_once(
    backend: &dyn Backend,
    setting: &Setting,
    wanted: &Wanted<'_>,
    known: &[AtFault],
) -> Result<(Discovered, String), DiscoveryError> {
    let mut runner = Runner::start(backend, setting)?;
    let request = Request::Discover {
        args: wanted.tests.to_vec(),
        options: wanted.options.to_vec(),
        timeout_ms: milliseconds(wanted.limit),
        known: known.to_vec(),
    };
    match runner.ask(&request, wanted.limit + LATER)? {
        Answer::Discovered(found) => Ok((*found, runner.pytest.clone())),
        Answer::Failed { stage, error } => {
            Err(Error::repository(format!("pytest cannot {stage}: {}", error.exception.unwrap_or_default()))
                .with_detail(crate::text::tail(&error.text, 30))
                .with_hint("run `python -m pytest --collect-only` in the repository to see the same")
                .into())
        }
        Answer::Died { exit, place, .. } => {
            let fault =
                at_fault(place, CollectErrorKind::Error, |what| format!("{what} ends the process: {exit:?}"));
            let killed = exit == ProcessExit::Signaled { signal: SIGKILL };
            Err(if killed { DiscoveryError::Killed(fault) } else { DiscoveryError::Of(fault) })
        }
        Answer::TimedOut { place, .. } => {
            let seconds = wanted.limit.as_secs_f64();
            let told = |what: &str| format!("{what} takes longer than the limit of {seconds} s");
            Err(DiscoveryError::Of(at_fault(place, CollectErrorKind::TimedOut, told)))
        }
        Answer::Broken { traceback, .. } => {
            Err(Error::harness("the runner failed while it collected").with_detail(traceback).into())
        }
        other => Err(runner.unexpected(&other).into()),
    }
}

fn at_fault(place: Option<String>, kind: CollectErrorKind, told: impl Fn(&str) -> String) -> AtFault {
    let place = place.unwrap_or_default();
    let what = match place.as_str() {
        "" => "what pytest loads before the first test file, or runs between files,".to_owned(),
        place => format!("importing {place}"),
    };
    AtFault { text: told(&what), kind, place }
}

/// Groups what was discovered.
///
/// # Errors
/// A repository error when there is no test at all, unless the repository `has_entries`.
pub fn collected(
    found: &Discovered,
    pytest: String,
    normalizer: &Normalizer,
    has_entries: bool,
) -> Result<Collected> {
    let (groups, mut uncollected) = group::group(&found.items, normalizer);
    uncollected.extend(group::uncollected(&found.errors, normalizer));
    if groups.is_empty() && uncollected.is_empty() && !has_entries {
        return Err(Error::repository("pytest finds no tests").with_hint(
            "name the directories or files that hold the tests in `tests = [\"…\"]` of this [[repo]]",
        ));
    }
    let node_ids = found.items.iter().map(|item| normalizer.id(&item.node_id).0).collect();
    Ok(Collected { pytest, node_ids, groups, uncollected, deselected: found.deselected, notes: Vec::new() })
}

/// Leaves out tests in files that the pinned tree does not have: a build or a conftest made them, and they are in no
/// commit.
pub fn keep_files_of(tree: &Folder, collected: &mut Collected) {
    let files: BTreeSet<String> = collected.groups.iter().map(|group| group.file.clone()).collect();
    // A name that is not text cannot be looked up as it is shown; such a file is dropped when it is to be run.
    let is_text = |file: &String| !file.contains("\\udc");
    let made: BTreeSet<String> =
        files.into_iter().filter(|file| is_text(file) && !tree.has_file(Path::new(file))).collect();
    let (kept, left_out) =
        std::mem::take(&mut collected.groups).into_iter().partition(|group| !made.contains(&group.file));
    collected.groups = kept;
    let left_out: BTreeSet<String> = Vec::<Group>::into_iter(left_out)
        .flat_map(|group| group.cases.into_iter().map(|case| case.case_id))
        .collect();
    collected.node_ids.retain(|id| !left_out.contains(id));
    if !left_out.is_empty() {
        collected.notes.push(format!(
            "{} cases are left out: their files are not part of the pinned tree: a build or a conftest made them",
            left_out.len()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::attempts::group_of;

    #[test]
    fn tests_in_files_that_the_tree_does_not_have_are_left_out() {
        let scratch = tempfile::tempdir().unwrap();
        fs_err::write(scratch.path().join("test_a.py"), "").unwrap();
        let group = |file: &str| group_of(file, "test");
        let mut collected = Collected {
            pytest: "9".to_owned(),
            node_ids: vec!["test_a.py::test".to_owned(), "test_added.py::test".to_owned()],
            groups: vec![group("test_a.py"), group("test_added.py")],
            uncollected: Vec::new(),
            deselected: 0,
            notes: Vec::new(),
        };
        keep_files_of(&Folder::open(scratch.path()).unwrap(), &mut collected);
        assert_eq!(collected.node_ids, ["test_a.py::test"]);
        assert_eq!(collected.groups, [group("test_a.py")]);
        assert!(collected.notes[0].starts_with("1 cases are left out"));
    }
}
