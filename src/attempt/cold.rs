//! Cold runs: the literal entry command in a fresh process, with nothing of gistmill in it.
//!
//! What the cases did is read from the JUnit file that pytest itself writes; `PYTEST_ADDOPTS` asks for it and carries
//! the options that keep switched-off plugins quiet.

mod command;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event as Xml};

use crate::backend::{Backend, Job, Mount, retry};
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::record::collected::Group;
use crate::record::outcome::{Attempt, CaseResult, Compare, Exit, Method, Outcome, TimeScope};
use crate::runner::Setting;

use crate::record::world::World;
use crate::text::shell_quote;

/// Where the report is written inside; a directory of its own, so that nothing else is shared with the host.
const REPORT: &str = "/run/report";
/// Time for start-up and imports, which a group's own limit does not cover.
const START_UP: Duration = Duration::from_mins(1);
/// Largest report that is read, in bytes.
const LARGEST_REPORT: u64 = 64 << 20;

/// What cold runs share.
pub struct Cold<'a> {
    pub backend: &'a dyn Backend,
    pub setting: &'a Setting,
    pub options: &'a [String],
    pub group_timeout: Duration,
    pub jobs: usize,
    /// Whether a group's attempts in the fork tree come to their end: then a cold run should as well.
    pub ends: &'a (dyn Fn(usize) -> bool + Sync),
}

impl Cold<'_> {
    /// Runs every group of the list once, in parallel; `each` sees every attempt on the caller's thread.
    ///
    /// # Errors
    /// The first error of `each`, an interruption, or the harness's.
    pub fn run(
        &self,
        groups: &[(usize, &Group)],
        mut each: impl FnMut(usize, Attempt) -> Result<()>,
    ) -> Result<()> {
        let queue = Mutex::new(groups.iter().rev().copied().collect::<Vec<_>>());
        let (sender, results) = sync_channel(16);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.clamp(1, groups.len().max(1)) {
                let (sender, queue) = (sender.clone(), &queue);
                scope.spawn(move || {
                    while !crate::interrupt::requested() {
                        let next = queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
                        let Some((index, group)) = next else { return };
                        if sender.send((index, self.persistent(index, group))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let results = results;
            for (index, attempt) in &results {
                each(index, attempt?)?;
            }
            crate::interrupt::check()
        })
    }

    /// A cold run that came to its end, or the last of several that did not although they should have: load and memory
    /// pressure are no verdict.
    fn persistent(&self, index: usize, group: &Group) -> Result<Attempt> {
        let ends = (self.ends)(index);
        let limit = self.group_timeout + if ends { START_UP } else { Duration::ZERO };
        let is_believed = |attempt: &Attempt| !ends || attempt.exit == Exit::Finished;
        retry::until(|| self.attempt(group, limit), is_believed, retry::nothing)
    }

    /// One cold run.
    ///
    /// # Errors
    /// The harness's trouble.
    fn attempt(&self, group: &Group, limit: Duration) -> Result<Attempt> {
        if let Some(entry) = &group.entry {
            return command::attempt(self, (group, entry), limit);
        }
        let report = tempfile::tempdir().map_err(|error| Error::from(error).at("a place for the report"))?;
        let started = Instant::now();
        let finished = self.backend.run(&self.job(group, report.path()), limit)?;
        let duration_ms = started.elapsed().as_secs_f64() * 1000.0;
        let outcomes = read_report(report.path(), "report.xml");
        let exit = match (finished.code, finished.timed_out) {
            (_, true) => Exit::TimedOut { scope: TimeScope::Group, case: None },
            (Some(code), _) if outcomes.as_deref().is_some_and(|cases| is_end(code, cases)) => Exit::Finished,
            (Some(code), _) => Exit::Exited { code },
            (None, _) => Exit::Signaled { signal: 9 },
        };
        let raw_output =
            if finished.code == Some(0) { String::new() } else { crate::text::tail(&finished.stdout, 30) };
        Ok(Attempt {
            group_id: group.group_id.clone(),
            world: World::Base,
            number: 0,
            method: Method::Cold,
            round: 0,
            exit,
            cases: name_cases(group, outcomes.unwrap_or_default()),
            connections: Vec::new(),
            leftover: 0,
            raw_output,
            duration_ms,
            processor_ms: 0.0,
            memory_bytes: None,
            noted_at: 0,
        })
    }

    fn job(&self, group: &Group, report: &std::path::Path) -> Job {
        let mut job = self.setting.command(self.setting.places.in_environment(group.command().words()));
        job.mounts.push(Mount::Writable { host: report.to_owned(), inside: REPORT.into() });
        let mut options: Vec<String> = self.options.iter().map(|option| shell_quote(option)).collect();
        options.extend([format!("--junitxml={REPORT}/report.xml"), "-o".into(), "junit_logging=no".into()]);
        job.env.insert("PYTEST_ADDOPTS".into(), options.join(" "));
        job
    }
}

/// One `<testcase>` of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    name: String,
    outcome: Outcome,
}

/// Cases of the report under the group's case IDs: by name where names are unique, else in order.
fn name_cases(group: &Group, reported: Vec<Reported>) -> Vec<CaseResult> {
    let mut by_name: BTreeMap<String, &str> = BTreeMap::new();
    for case in &group.cases {
        let name = match &case.parameters {
            Some(parameters) => format!("{}[{parameters}]", group.function),
            None => group.function.clone(),
        };
        by_name.insert(name, &case.case_id);
    }
    let mut cases: Vec<CaseResult> = reported
        .into_iter()
        .enumerate()
        .map(|(index, reported)| {
            let by_order = || group.cases.get(index).map(|case| case.case_id.as_str());
            let case_id =
                by_name.get(&reported.name).copied().or_else(by_order).unwrap_or(&reported.name).to_owned();
            CaseResult {
                case_id,
                outcome: reported.outcome,
                exception: None,
                stdout: String::new(),
                stderr: String::new(),
                message: String::new(),
                replaced: BTreeMap::new(),
                duration_ms: 0.0,
                command: None,
            }
        })
        .collect();
    cases.sort_by(|a, b| a.case_id.cmp(&b.case_id));
    cases.dedup_by(|other, case| {
        let is_same = case.case_id == other.case_id;
        if is_same {
            case.outcome = of_subtests(case.outcome, other.outcome);
        }
        is_same
    });
    cases
}

/// The outcome of a case of which two subtests, or one and the case itself, show these: skipped ones decide nothing.
fn of_subtests(one: Outcome, other: Outcome) -> Outcome {
    match (one, other) {
        (Outcome::Skipped, ran) | (ran, Outcome::Skipped) => ran,
        _ => one.max(other),
    }
}

/// Whether pytest leaves with this code after these cases: 0 when all passed, 1 when some failed, 5 when nothing ran.
fn is_end(code: i32, cases: &[Reported]) -> bool {
    let fails = |case: &Reported| matches!(case.outcome, Outcome::Failed | Outcome::Error);
    match code {
        0 => !cases.iter().any(fails),
        1 => cases.iter().any(fails),
        code => code == 5,
    }
}

/// Whether a cold run shows the outcomes of an attempt in the fork tree.
///
/// The report does not tell an unexpected pass from a pass, so they count as one.
///
/// A command has to show as much as `compare` names.
pub fn agrees(fork: &Attempt, cold: &Attempt, compare: Compare) -> bool {
    if fork.cases.iter().chain(&cold.cases).any(|case| case.command.is_some()) {
        return fork.shown(compare) == cold.shown(compare);
    }
    let outcomes = |attempt: &Attempt| {
        let plain = |outcome| if outcome == Outcome::XPassed { Outcome::Passed } else { outcome };
        let mut outcomes: Vec<(String, Outcome)> =
            attempt.cases.iter().map(|case| (case.case_id.clone(), plain(case.outcome))).collect();
        outcomes.sort();
        outcomes
    };
    let ends = |attempt: &Attempt| std::mem::discriminant(&attempt.exit);
    let unfinished = fork.exit != Exit::Finished && cold.exit != Exit::Finished;
    unfinished || (ends(fork) == ends(cold) && outcomes(fork) == outcomes(cold))
}

/// Reads pytest's JUnit file; none when it was not written. A test may have left anything under that name.
fn read_report(folder: &std::path::Path, name: &str) -> Option<Vec<Reported>> {
    let text = Folder::open(folder).ok()?.read(std::path::Path::new(name), LARGEST_REPORT).ok()?;
    parse_report(&String::from_utf8_lossy(&text))
}

/// `<testcase name="…"><failure/|error/|skipped type="…"/></testcase>`; none when the XML is not whole.
pub fn parse_report(text: &str) -> Option<Vec<Reported>> {
    let mut reader = Reader::from_str(text);
    let mut cases: Vec<Reported> = Vec::new();
    let mut inside = false;
    loop {
        let event = reader.read_event().ok()?;
        let empty = matches!(event, Xml::Empty(_));
        match event {
            Xml::Start(element) | Xml::Empty(element) => match element.name().as_ref() {
                "testcase" => {
                    let name = attribute(&element, "name").unwrap_or_default();
                    cases.push(Reported { name, outcome: Outcome::Passed });
                    inside = !empty;
                }
                child if inside => {
                    let outcome = match child {
                        "failure" => Some(Outcome::Failed),
                        "error" => Some(Outcome::Error),
                        "skipped" if attribute(&element, "type").as_deref() == Some("pytest.xfail") => {
                            Some(Outcome::XFailed)
                        }
                        "skipped" => Some(Outcome::Skipped),
                        _ => None,
                    };
                    if let (Some(outcome), Some(case)) = (outcome, cases.last_mut()) {
                        case.outcome = case.outcome.max(outcome);
                    }
                }
                _ => {}
            },
            Xml::End(element) if element.name().as_ref() == "testcase" => inside = false,
            Xml::Eof => return Some(merge_teardown_errors(cases)),
            _ => {}
        }
    }
}

/// A case that fails and then errors in tear-down is reported twice in a row under one name.
fn merge_teardown_errors(cases: Vec<Reported>) -> Vec<Reported> {
    let mut merged: Vec<Reported> = Vec::new();
    for case in cases {
        match merged.last_mut() {
            Some(last) if last.name == case.name && case.outcome == Outcome::Error => {
                last.outcome = Outcome::Error;
            }
            _ => merged.push(case),
        }
    }
    merged
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok()??;
    quick_xml::escape::unescape(&attribute.value).ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_left_in_place_of_a_report_is_none() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let scratch = tempfile::tempdir().unwrap();
        let report = |make: &dyn Fn(&std::path::Path)| {
            let folder = tempfile::tempdir_in(&scratch).unwrap();
            make(&folder.path().join("report.xml"));
            read_report(folder.path(), "report.xml")
        };
        let whole =
            report(&|path| std::fs::write(path, "<testsuite><testcase name=\"a\"/></testsuite>").unwrap());
        assert_eq!(whole.map(|cases| cases.len()), Some(1));
        assert_eq!(report(&|_| ()), None);
        assert_eq!(report(&|path| symlink("/etc/hostname", path).unwrap()), None);
        assert_eq!(report(&|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())), None);
        assert_eq!(report(&|path| std::fs::create_dir(path).unwrap()), None);
        let closed = std::fs::Permissions::from_mode(0o000);
        assert_eq!(
            report(&|path| std::fs::set_permissions(path.parent().unwrap(), closed.clone()).unwrap()),
            None
        );
    }

    #[test]
    fn every_outcome_is_read_from_the_report() {
        let text = r#"<?xml version="1.0"?><testsuites><testsuite>
            <testcase classname="t" name="test_a[x &lt; y]" time="0.1" />
            <testcase name="test_b"><failure message="m">text</failure><system-out>o</system-out></testcase>
            <testcase name="test_c"><skipped type="pytest.skip">why</skipped></testcase>
            <testcase name="test_d"><skipped type="pytest.xfail" message="" /></testcase>
            <testcase name="test_e"><error message="set-up" /></testcase>
            <testcase name="test_f" /><testcase name="test_f"><error /></testcase>
            </testsuite></testsuites>"#;
        let cases = parse_report(text).expect("is whole");
        let read: Vec<_> = cases.iter().map(|case| (case.name.as_str(), case.outcome)).collect();
        use Outcome::{Error, Failed, Passed, Skipped, XFailed};
        assert_eq!(
            read,
            [
                ("test_a[x < y]", Passed),
                ("test_b", Failed),
                ("test_c", Skipped),
                ("test_d", XFailed),
                ("test_e", Error),
                ("test_f", Error)
            ]
        );
    }

    #[test]
    fn a_code_that_does_not_follow_from_the_cases_is_not_the_end_of_a_test_run() {
        let cases = |outcomes: &[Outcome]| -> Vec<Reported> {
            let case = |outcome: &Outcome| Reported { name: "test_a".to_owned(), outcome: *outcome };
            outcomes.iter().map(case).collect()
        };
        use Outcome::{Error, Failed, Passed, Skipped};
        for (code, outcomes, expected) in [
            (0, &[Passed, Skipped][..], true),
            (1, &[Passed, Failed], true),
            (1, &[Error], true),
            (5, &[], true),
            (1, &[Passed], false),
            (0, &[Failed], false),
            (3, &[Passed], false),
            (139, &[Passed], false),
        ] {
            assert_eq!(is_end(code, &cases(outcomes)), expected, "{code} {outcomes:?}");
        }
    }

    #[test]
    fn a_case_whose_subtests_are_reported_beside_it_is_one_case() {
        let group = crate::testing::attempts::group();
        let named = |outcomes: &[Outcome]| {
            let case = |outcome: &Outcome| Reported { name: group.function.clone(), outcome: *outcome };
            let cases = name_cases(&group, outcomes.iter().map(case).collect());
            cases.into_iter().map(|case| case.outcome).collect::<Vec<_>>()
        };
        use Outcome::{Failed, Passed, Skipped};
        assert_eq!(named(&[Skipped, Passed]), [Passed]);
        assert_eq!(named(&[Passed, Skipped]), [Passed]);
        assert_eq!(named(&[Skipped, Failed, Passed]), [Failed]);
        assert_eq!(named(&[Skipped, Skipped]), [Skipped]);
    }

    #[test]
    fn a_torn_report_is_no_report() {
        assert_eq!(parse_report("<testsuites><testcase name=\"a\"><fail"), None);
    }
}
