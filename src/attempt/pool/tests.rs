//! Whole runs of the pool over a scripted repository: what comes out, and how many runners it takes.

use std::collections::BTreeMap;

use super::*;
use crate::attempt::lab::Lab;
use crate::attempt::tasks;
use crate::error::Fault;
use crate::interrupt::Waiting;
use crate::runner::protocol::{ProcessExit, TraceMode};
use crate::testing::backend::FakeBackend;
use crate::testing::lab::lab;
use crate::testing::script::{Act, FakeFile, FakeGroup, Opening, Start};

/// Exit codes of an interpreter that was killed or stopped, cannot end a level, or failed by itself.
const KILLED: i32 = 128 + 9;
const STOPPED: i32 = 128 + 19;
const LOST_LEVEL: i32 = 71;
const FAILED: i32 = 70;

/// A scripted repository, and where its attempts are made.
struct Bench {
    backend: FakeBackend,
    groups: Vec<Group>,
    lab: Lab,
    _folder: tempfile::TempDir,
}

/// What came of a run.
struct Came {
    /// A word for every event, in the order of groups.
    events: Vec<String>,
    /// What groups printed outside of their cases, or why they are not available.
    texts: Vec<String>,
    error: Option<Error>,
    runners: usize,
}

impl Bench {
    fn new(backend: FakeBackend) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (groups, lab) = (backend.groups(), lab(&backend, folder.path()));
        Bench { backend, groups, lab, _folder: folder }
    }

    fn run(&self, tasks: Vec<Task>, each: impl FnMut(Event) -> Result<()>) -> Result<()> {
        self.lab.pool(&self.groups, &self.lab.base()).run(tasks, each)
    }

    fn tasks(&self, pass: usize, repeat: u32) -> Vec<Task> {
        let wanted: Vec<(usize, u32)> = (0..self.groups.len()).map(|group| (group, repeat)).collect();
        tasks(&self.groups, &wanted, &BTreeMap::new(), pass, TraceMode::Off, 1)
    }

    fn word(&self, event: &Event) -> (usize, String, String) {
        match event {
            Event::Broken(error) => (usize::MAX, format!("broken: {error}"), String::new()),
            Event::Lost { group, error } => {
                (*group, format!("{} lost", self.groups[*group].function), error.to_string())
            }
            Event::Unavailable { group, text, .. } => {
                (*group, format!("{} unavailable", self.groups[*group].function), text.clone())
            }
            Event::Attempt { group, done, .. } => {
                let how = match (&done.exit, done.cases.first()) {
                    (ProcessExit::Finished, Some(case)) => case.outcome.as_str().to_owned() + &case.stdout,
                    (ProcessExit::Signaled { signal }, _) => format!("signal {signal}"),
                    (ProcessExit::TimedOut { .. }, _) => "late".to_owned(),
                    (other, _) => format!("{other:?}").to_lowercase(),
                };
                (*group, format!("{} {how}", self.groups[*group].function), done.raw_output.clone())
            }
        }
    }

    /// Makes so many attempts of every group.
    fn all(&self, repeat: u32) -> Came {
        self.made(self.tasks(0, repeat))
    }

    /// Makes one attempt of every group, each with a text of its own in the place of its file.
    fn judged(&self) -> Came {
        let of_group = |(at, group): (usize, &Group)| {
            let mut task = Task::new(&group.file, 0, TraceMode::Off).judging(Arc::from("a submission"));
            task.runs.push(Run::new(at, 1));
            task
        };
        self.made(self.groups.iter().enumerate().map(of_group).collect())
    }

    fn made(&self, tasks: Vec<Task>) -> Came {
        let mut told = Vec::new();
        let result = self.run(tasks, |event| {
            told.push(self.word(&event));
            Ok(())
        });
        told.sort_by_key(|(group, ..)| *group);
        let (events, texts) = told.into_iter().map(|(_, event, text)| (event, text)).unzip();
        Came { events, texts, error: result.err(), runners: self.backend.runners() }
    }
}

fn one(group: FakeGroup) -> FakeBackend {
    FakeBackend::new([FakeFile::new("test_a.py", [group])])
}

/// One file with a group before and one after the one in question; those pass.
fn among(group: FakeGroup) -> FakeBackend {
    let groups = [FakeGroup::passing("test_1"), group, FakeGroup::passing("test_3")];
    FakeBackend::new([FakeFile::new("tests/test_a.py", groups)])
}

fn group(times: usize, act: Act) -> FakeGroup {
    FakeGroup::passing("test_2").first(times, act)
}

/// What comes of one attempt of each group of `among`, where the others pass.
fn others_pass(name: &str, backend: FakeBackend, events: &[&str], runners: usize) -> Came {
    let came = Bench::new(backend).all(1);
    let mut expected = vec!["test_1 passed"];
    expected.extend(events);
    expected.push("test_3 passed");
    assert_eq!(came.events, expected, "{name}");
    assert_eq!(came.runners, runners, "{name}: runners");
    assert!(came.error.is_none(), "{name}: {:?}", came.error);
    came
}

#[test]
fn one_runner_makes_all_attempts_of_a_round() {
    let files = ["tests/test_a.py", "tests/test_b.py", "other/test_c.py"];
    let file =
        |path: &str| FakeFile::new(path, [FakeGroup::new(&path[path.len() - 9..][..6], Act::PrintsCount)]);
    let bench = Bench::new(FakeBackend::new(files.map(file)));
    let came = bench.all(2);
    let expected =
        ["test_a", "test_b", "test_c"].map(|name| [0, 1].map(|count| format!("{name} passed{count}")));
    assert_eq!(came.events, expected.concat());
    assert_eq!(came.runners, 1);
    let log = bench.backend.log();
    let directories = log.iter().filter(|line| line.starts_with("directory")).count();
    assert_eq!(directories, 2, "a worker stays in its directory: {log:?}");
}

#[test]
fn every_pass_and_way_of_tracing_has_its_place() {
    let bench = Bench::new(one(FakeGroup::passing("test_2")));
    let mut all = bench.tasks(0, 1);
    all.extend(bench.tasks(1, 1));
    all.push(Task { trace: TraceMode::Tree, ..bench.tasks(1, 1).remove(0) });
    let (mut passes, mut traced) = (Vec::new(), 0);
    let base = bench.lab.base();
    let mut pool = bench.lab.pool(&bench.groups, &base);
    pool.passes.push(pool.passes[0]);
    pool.run(all, |event| {
        let Event::Attempt { pass, done, import, .. } = event else { panic!("{event:?}") };
        assert_eq!(done.trace.is_some(), import.is_some());
        traced += u32::from(done.trace.is_some());
        passes.push(pass);
        Ok(())
    })
    .unwrap();
    passes.sort_unstable();
    assert_eq!((passes, traced), (vec![0, 1, 1], 1));
    assert!(bench.backend.runners() >= 2, "passes share no runner");
}

#[test]
fn several_workers_make_every_attempt_once() {
    let groups = |at: usize| (0..5).map(move |number| FakeGroup::passing(&format!("test_{at}_{number}")));
    let files = (0..20).map(|at| FakeFile::new(&format!("d{at}/test_a.py"), groups(at)));
    let mut bench = Bench::new(FakeBackend::new(files));
    bench.lab.admission = Arc::new(Admission::shared(4));
    let came = bench.all(3);
    assert_eq!(came.events.len(), 300);
    assert!(came.events.iter().all(|event| event.ends_with("passed")), "{:?}", came.events);
    assert!(came.runners <= 4, "{}", came.runners);
}

/// So many groups that take a while, after one that does this.
fn waiting(name: &str, first: FakeGroup, count: usize) -> FakeFile {
    let wait = |number| FakeGroup::new(&format!("{name}_{number}"), Act::Waits(Duration::from_millis(40)));
    FakeFile::new(&format!("{name}.py"), std::iter::once(first).chain((0..count).map(wait)))
}

#[test]
fn what_an_attempt_asks_for_is_made_by_the_runner_that_is_there() {
    let groups = ["test_1", "test_2"].map(FakeGroup::passing);
    let bench = Bench::new(FakeBackend::new([FakeFile::new("test_a.py", groups)]));
    let base = bench.lab.base();
    let mut made = Vec::new();
    let each = |event| {
        let Event::Attempt { group, .. } = event else { panic!("an attempt was made: {event:?}") };
        made.push(group);
        let mut more = Task::new("test_a.py", 0, TraceMode::Off);
        more.runs.push(Run::new(1 - group, 1));
        Ok(if made.len() < 10 { vec![more] } else { Vec::new() })
    };
    bench.lab.pool(&bench.groups, &base).run_on(bench.tasks(0, 1), each).unwrap();
    assert_eq!(made.len(), 2 + 9);
    assert_eq!(bench.backend.runners(), 1);
    assert_eq!(bench.backend.log().iter().filter(|line| *line == "file test_a.py").count(), 1);
}

#[test]
fn who_has_nothing_to_do_gets_half_of_what_is_left_of_a_long_file() {
    let mut bench =
        Bench::new(FakeBackend::new([waiting("test_long", FakeGroup::passing("test_first"), 40)]));
    bench.lab.admission = Arc::new(Admission::shared(2));
    let came = bench.all(1);
    assert_eq!((came.events.len(), came.runners), (41, 2));
    let opened = bench.backend.log().iter().filter(|line| *line == "file test_long.py").count();
    assert!((2..10).contains(&opened), "it is opened {opened} times");
}

#[test]
fn who_has_nothing_to_do_gets_half_of_the_attempts_of_a_group_that_takes_long() {
    // Whichever comes first takes so long that somebody waits when the other one comes, even if nobody did before. On a
    // machine that is busy with other things a start takes longer than usual, and what is worth it has to as well.
    let waits = [80, 400, 2_000].map(Duration::from_millis);
    assert!(waits.into_iter().any(|each| times_that_a_long_file_is_opened(each) > 1), "it is never shared");
}

fn times_that_a_long_file_is_opened(each: Duration) -> usize {
    let long = ["test_1", "test_2"].map(|name| FakeGroup::new(name, Act::Waits(each)));
    let mut bench = Bench::new(FakeBackend::new([FakeFile::new("test_long.py", long)]));
    bench.lab.admission = Arc::new(Admission::shared(2));
    let base = bench.lab.base();
    let mut tasks = bench.tasks(0, 8);
    for task in &mut tasks {
        task.cost_ms = 60_000.0;
    }
    let mut made = 0;
    let count = |_| {
        made += 1;
        Ok(())
    };
    bench.lab.pool(&bench.groups, &base).run(tasks, count).unwrap();
    assert_eq!(made, 2 * 8);
    bench.backend.log().iter().filter(|line| *line == "file test_long.py").count()
}

#[test]
fn over_time_beside_more_attempts_than_may_compute_is_no_verdict() {
    for (crowded, expected) in [(true, "test_late passed"), (false, "test_late late")] {
        let late = FakeGroup::passing("test_late").first(1, Act::TimesOut);
        let others = ["test_a", "test_b", "test_c"]
            .map(|name| waiting(name, FakeGroup::passing(&format!("{name}_first")), 15));
        let files = others.into_iter().chain([waiting("test_d", late, 10)]);
        let bench = Bench::new(FakeBackend::new(files));
        let base = bench.lab.base();
        let admission = Admission::learned(1, 4);
        let pool = bench.lab.pool(&bench.groups, &base);
        let pool = if crowded { Pool { crowd: Crowd::Idle(&admission), ..pool } } else { pool };
        let mut events = Vec::new();
        pool.run(bench.tasks(0, 1), |event| {
            events.push(bench.word(&event).1);
            Ok(())
        })
        .unwrap();
        assert_eq!(events.len(), bench.groups.len());
        assert!(events.iter().any(|event| event == expected), "{events:?}");
    }
}

#[test]
fn a_runner_that_does_not_start_is_started_again() {
    for (times, start) in [(1, Start::Fails(Fault::Harness)), (2, Start::Ends)] {
        let backend = among(group(0, Act::Passes)).starting(times, start);
        others_pass("starts late", backend, &["test_2 passed"], times + 1);
    }
    let backend = among(group(0, Act::Passes)).starting(3, Start::Ends);
    others_pass("goes one by one", backend, &["test_2 passed"], 4);
}

#[test]
fn a_runner_that_never_starts_is_the_harness_trouble() {
    let came = Bench::new(one(group(0, Act::Passes)).starting(99, Start::Ends)).all(1);
    let error = came.error.expect("is given up");
    assert_eq!((came.events.len(), came.runners, error.fault()), (0, 3, Fault::Harness));
    assert!(error.to_string().starts_with("test_a.py::test_2: "), "{error}");
    let came = Bench::new(among(group(0, Act::Passes)).starting(99, Start::Ends)).all(1);
    assert!(came.events.is_empty() && came.error.is_some());
    assert!(came.runners >= 6, "three for the file, three for one group: {}", came.runners);
    assert_eq!(error.detail(), Some("what the scripted runner printed"));
}

#[test]
fn trouble_that_is_not_the_harness_s_is_told_at_once() {
    for (start, fault) in [
        (Start::Refused("pytest is not installed"), Fault::Repository),
        (Start::Fails(Fault::Machine), Fault::Machine),
    ] {
        let came = Bench::new(among(group(0, Act::Passes)).starting(1, start)).all(1);
        assert_eq!((came.events.len(), came.runners), (0, 1));
        let error = came.error.expect("is given up");
        assert_eq!(error.fault(), fault);
        let all = ["test_1", "test_2", "test_3"].map(|name| format!("tests/test_a.py::{name}")).join(", ");
        assert!(error.to_string().starts_with(&all), "{error}");
    }
}

#[test]
fn what_pytest_refuses_is_unavailable_and_other_files_go_on() {
    let refused = Opening::Refused("ImportError: no module named 'gone'");
    for (stage, in_directory) in [("configure", true), ("collect", false)] {
        let groups = ["test_1", "test_2"].map(FakeGroup::passing);
        let bad = FakeFile::new("a/test_a.py", groups);
        let bad =
            if in_directory { bad.directory(9, refused.clone()) } else { bad.opening(9, refused.clone()) };
        let good = FakeFile::new("b/test_b.py", [FakeGroup::passing("test_3")]);
        let came = Bench::new(FakeBackend::new([bad, good])).all(2);
        let expected = ["test_1 unavailable", "test_2 unavailable", "test_3 passed", "test_3 passed"];
        assert_eq!((came.events, came.runners), (expected.map(str::to_owned).to_vec(), 1), "{stage}");
        assert_eq!(came.texts[0], format!("{stage}: ImportError: no module named 'gone'"));
    }
}

#[test]
fn an_import_that_ends_the_process_is_tried_three_times() {
    let rows = [
        (Opening::Dies(11), "importing ends the file process: Signaled { signal: 11 }"),
        (Opening::TimesOut, "importing goes over the time limit (file)"),
        (Opening::Unreadable, "cannot be read"),
        (Opening::Breaks, "the file process failed while it imported"),
        (Opening::EndsRunner(KILLED), "killed or stopped while it was imported, three times"),
    ];
    for (opening, text) in rows {
        for times in 1..=3 {
            let file =
                FakeFile::new("test_a.py", [FakeGroup::passing("test_1")]).opening(times, opening.clone());
            let came = Bench::new(FakeBackend::new([file])).all(1);
            let (expected, runners) =
                if times < 3 { ("test_1 passed", times + 1) } else { ("test_1 unavailable", 3) };
            assert_eq!((came.events[0].as_str(), came.runners), (expected, runners), "{opening:?} {times}");
            assert!(times < 3 || came.texts[0].contains(text), "{}", came.texts[0]);
        }
    }
    let file = FakeFile::new("a/test_a.py", [FakeGroup::passing("test_1")]).directory(3, Opening::Dies(9));
    let came = Bench::new(FakeBackend::new([file])).all(1);
    assert_eq!(came.texts, ["importing ends the directory process: Signaled { signal: 9 }"]);
}

#[test]
fn imports_that_end_are_counted_in_a_row() {
    let groups = [FakeGroup::passing("test_1").first(1, Act::EndsRunner(FAILED))];
    let file = FakeFile::new("test_a.py", groups).opening(2, Opening::Dies(9));
    let file = file.opening(1, Opening::Ready).opening(2, Opening::Dies(9));
    let came = Bench::new(FakeBackend::new([file])).all(1);
    assert_eq!((came.events, came.runners), (vec!["test_1 passed".to_owned()], 6));
}

#[test]
fn a_runner_that_fails_at_an_import_is_the_harness_trouble() {
    for opening in [Opening::FailsInternally, Opening::EndsRunner(FAILED)] {
        let file = |times| {
            let file = FakeFile::new("test_a.py", [FakeGroup::passing("test_1")]);
            Bench::new(FakeBackend::new([file.opening(times, opening.clone())])).all(1)
        };
        let came = file(2);
        assert_eq!((came.events, came.runners), (vec!["test_1 passed".to_owned()], 3), "{opening:?}");
        let came = file(3);
        assert_eq!((came.events.len(), came.runners), (0, 3), "{opening:?}");
        assert_eq!(
            came.error.map(|error| error.fault()),
            Some(Fault::Harness),
            "{opening:?}: not the group's"
        );
    }
}

#[test]
fn a_runner_that_ends_while_a_group_runs_is_replaced() {
    for times in 1..=3 {
        let backend = among(group(times, Act::EndsRunner(FAILED)));
        others_pass("the same task, or one by one", backend, &["test_2 passed"], times + 1);
    }
    // Three times in the file, then twice alone.
    others_pass("alone", among(group(5, Act::EndsRunner(FAILED))), &["test_2 passed"], 6);
    let came = Bench::new(among(group(6, Act::EndsRunner(FAILED)))).all(1);
    let error = came.error.expect("is given up");
    assert_eq!(error.fault(), Fault::Harness);
    assert!(error.to_string().starts_with("tests/test_a.py::test_2: "), "{error}");
}

#[test]
fn a_group_that_kills_the_runner_is_believed_when_it_does_so_three_times_alone() {
    for (code, signal) in [(KILLED, 9), (LOST_LEVEL, 9), (STOPPED, 19)] {
        others_pass("not yet", among(group(5, Act::EndsRunner(code))), &["test_2 passed"], 6);
        let believed = format!("test_2 signal {signal}");
        let came = others_pass("believed", among(group(6, Act::EndsRunner(code))), &[&believed], 7);
        assert!(came.texts[1].contains("killed or stopped while it ran, three times"), "{}", came.texts[1]);
    }
    // One end of another kind, and it is the harness's.
    let mixed =
        FakeGroup::passing("test_2").first(1, Act::EndsRunner(FAILED)).first(2, Act::EndsRunner(KILLED));
    let came = Bench::new(one(mixed)).all(1);
    assert_eq!(came.error.map(|error| error.fault()), Some(Fault::Harness));
    assert_eq!(came.runners, 3);
}

#[test]
fn every_attempt_of_a_group_that_kills_the_runner_ends_like_that() {
    let came = Bench::new(one(group(9, Act::EndsRunner(KILLED)))).all(4);
    assert_eq!((came.events, came.runners), (vec!["test_2 signal 9".to_owned(); 4], 3));
}

#[test]
fn an_attempt_that_was_made_starts_the_count_again() {
    let breaks = |group: FakeGroup| group.first(2, Act::EndsRunner(FAILED)).first(1, Act::Passes);
    let came = Bench::new(one(breaks(breaks(FakeGroup::passing("test_2"))))).all(3);
    assert_eq!((came.events, came.runners), (vec!["test_2 passed".to_owned(); 3], 5));
}

#[test]
fn a_runner_that_breaks_when_all_is_done_takes_nothing_along() {
    let file = |path: &str| FakeFile::new(path, [FakeGroup::passing(&path[..6])]).closing(9, FAILED);
    let came = Bench::new(FakeBackend::new(["test_a.py", "test_b.py"].map(file))).all(2);
    let expected = ["test_a passed", "test_a passed", "test_b passed", "test_b passed"];
    assert_eq!((came.events, came.runners), (expected.map(str::to_owned).to_vec(), 2));
    assert!(came.error.is_none(), "{:?}", came.error);
}

#[test]
fn an_attempt_that_is_killed_is_made_again_alone_and_believed_the_third_time() {
    for times in 1..=2 {
        others_pass("made again", among(group(times, Act::Signaled(9))), &["test_2 passed"], 1);
    }
    others_pass("believed", among(group(3, Act::Signaled(9))), &["test_2 signal 9"], 1);
}

#[test]
fn only_the_attempts_that_were_killed_are_made_again() {
    let some =
        FakeGroup::new("test_2", Act::PrintsCount).first(1, Act::PrintsCount).first(2, Act::Signaled(9));
    let bench = Bench::new(one(some));
    let came = bench.all(4);
    assert_eq!(came.events, ["0", "3", "4", "5"].map(|count| format!("test_2 passed{count}")));
    let runs: Vec<String> = bench.backend.log().into_iter().filter(|line| line.starts_with("run")).collect();
    assert_eq!(runs, ["run test_2 4", "run test_2 2"]);
    let came = Bench::new(one(group(99, Act::Signaled(9)))).all(2);
    assert_eq!(came.events, ["test_2 signal 9"; 2]);
}

#[test]
fn what_fails_plainly_is_not_run_in_other_manners_where_that_decides() {
    for (act, plain_decides, expected) in
        [(Act::Fails, true, 1), (Act::Fails, false, 3), (Act::Passes, true, 3)]
    {
        let bench = Bench::new(one(FakeGroup::new("test_2", act.clone())));
        let failing = Manner { failing: Some(1), ..Manner::PLAIN };
        let runs = [failing, Manner::default(), Manner::PLAIN].map(|manner| Run { manner, ..Run::new(0, 1) });
        let task = Task { runs: runs.to_vec(), plain_decides, ..bench.tasks(0, 1).remove(0) };
        let mut made = 0;
        let count = |_| {
            made += 1;
            Ok(())
        };
        bench.run(vec![task], count).unwrap();
        assert_eq!(made, expected, "{act:?} {plain_decides}");
    }
}

#[test]
fn another_end_of_an_attempt_is_believed_at_once() {
    for (act, word) in [
        (Act::Signaled(11), "test_2 signal 11"),
        (Act::TimesOut, "test_2 late"),
        (Act::Fails, "test_2 failed"),
        (Act::Prints("a".to_owned()), "test_2 passeda"),
    ] {
        others_pass("believed", among(group(1, act)), &[word], 1);
    }
}

#[test]
fn a_group_that_takes_others_down_is_believed_the_third_time() {
    for (act, exit, text) in [
        (
            Act::TakesDown(9),
            "signal 9",
            "the process that started the attempt was ended, or stopped, as well",
        ),
        (Act::Unreadable, "unusable", "the report of the attempt is malformed"),
        (Act::FailsInternally, "unusable", "the file process failed:\nscripted"),
    ] {
        for times in 1..=2 {
            others_pass("tried alone", among(group(times, act.clone())), &["test_2 passed"], times + 1);
        }
        let came = others_pass("believed", among(group(3, act)), &[&format!("test_2 {exit}")], 3);
        assert!(came.texts[1].starts_with(text), "{}", came.texts[1]);
        assert!(
            came.texts[1].ends_with("\n(three times in a row, in a fresh runner each time)"),
            "{}",
            came.texts[1]
        );
    }
}

#[test]
fn a_group_that_takes_others_down_now_and_then_makes_all_its_attempts() {
    let falls = |group: FakeGroup| group.first(2, Act::TakesDown(9)).first(1, Act::Passes);
    let came = Bench::new(one(falls(falls(falls(FakeGroup::passing("test_2")))))).all(3);
    assert_eq!((came.events, came.runners), (vec!["test_2 passed".to_owned(); 3], 7));
}

#[test]
fn kinds_of_falls_are_counted_together() {
    let mixed = FakeGroup::passing("test_2").first(1, Act::Signaled(9)).first(1, Act::TakesDown(9));
    let came = Bench::new(one(mixed.first(1, Act::Unreadable))).all(1);
    assert_eq!((came.events, came.runners), (vec!["test_2 unusable".to_owned()], 2));
}

#[test]
fn a_group_with_other_cases_alone_is_unavailable() {
    for alone in [&["a"][..], &[], &["a", "c"]] {
        let other = FakeGroup::passing("test_2").cases(&["a", "b"]).cases_alone(alone);
        let came = others_pass("other cases", among(other), &["test_2 unavailable"], 1);
        assert!(
            came.texts[1].starts_with("the group is not collected, or has other cases"),
            "{}",
            came.texts[1]
        );
        assert!(came.texts[1].ends_with("\n\nE   test_2 is another"), "{}", came.texts[1]);
    }
    let more = FakeGroup::passing("test_2").cases(&["a", "b"]).cases_alone(&["c", "b", "a"]);
    others_pass("more cases", among(more), &["test_2 passed"], 1);
}

#[test]
fn an_error_of_the_owner_ends_the_run() {
    let groups = (0..600).map(|number| FakeGroup::passing(&format!("test_{number}")));
    let bench = Bench::new(FakeBackend::new([FakeFile::new("test_a.py", groups)]));
    let mut seen = 0;
    let result = bench.run(bench.tasks(0, 1), |_| {
        seen += 1;
        Err(Error::interrupted())
    });
    assert_eq!((result.unwrap_err().fault(), seen), (Fault::Interrupted, 1));
    let made = bench.backend.log().iter().filter(|line| line.starts_with("run")).count();
    assert!(made < 400, "a worker is ahead by what the channel holds, not more: {made}");
}

#[test]
fn an_interruption_of_a_worker_ends_the_run() {
    let came = Bench::new(among(group(0, Act::Passes)).starting(1, Start::Fails(Fault::Interrupted))).all(1);
    assert_eq!((came.events.len(), came.runners), (0, 1));
    assert_eq!(came.error.map(|error| error.fault()), Some(Fault::Interrupted));
}

#[test]
fn nothing_to_do_takes_no_runner() {
    let bench = Bench::new(one(FakeGroup::passing("test_2")));
    bench.run(Vec::new(), |event| panic!("{event:?}")).unwrap();
    assert_eq!(bench.backend.runners(), 0);
}

/// Three files with a text each; the one in the middle is in question.
fn neighbours(middle: FakeFile) -> FakeBackend {
    let beside = |path: &str| FakeFile::new(path, [FakeGroup::passing(&path[..6])]);
    FakeBackend::new([beside("test_1.py"), middle, beside("test_3.py")])
}

fn middle() -> FakeFile {
    FakeFile::new("test_2.py", [FakeGroup::passing("test_2")])
}

/// What comes of the text in the middle; those beside it are as without it.
fn judged_beside_others(name: &str, middle: FakeFile, expected: &str) -> Came {
    let came = Bench::new(neighbours(middle)).judged();
    assert_eq!(came.events, ["test_1 passed", expected, "test_3 passed"], "{name}");
    assert!(came.error.is_none(), "{name}: {:?}", came.error);
    came
}

#[test]
fn whatever_ends_or_breaks_a_runner_that_judges_is_the_doing_of_its_text() {
    let openings = [
        Opening::Dies(11),
        Opening::TimesOut,
        Opening::Unreadable,
        Opening::Breaks,
        Opening::EndsRunner(FAILED),
        Opening::EndsRunner(KILLED),
        Opening::EndsRunner(0),
    ];
    for opening in openings {
        let name = format!("{opening:?}");
        judged_beside_others(&name, middle().opening(1, opening.clone()), "test_2 passed");
        let came = judged_beside_others(&name, middle().opening(9, opening), "test_2 unavailable");
        assert!(came.runners <= 3, "{name}: {} runners", came.runners);
    }
    for (act, ended) in [
        (Act::TakesDown(9), "test_2 signal 9"),
        (Act::FailsInternally, "test_2 unusable"),
        (Act::Unreadable, "test_2 unusable"),
        (Act::EndsRunner(FAILED), "test_2 unusable"),
        (Act::EndsRunner(KILLED), "test_2 signal 9"),
        (Act::Signaled(9), "test_2 signal 9"),
    ] {
        let file =
            |times| FakeFile::new("test_2.py", [FakeGroup::passing("test_2").first(times, act.clone())]);
        judged_beside_others("once", file(1), "test_2 passed");
        judged_beside_others("always", file(9), ended);
    }
}

#[test]
fn what_a_text_showed_counts_once_the_runner_has_let_go_of_it() {
    let came = judged_beside_others("once", middle().closing(1, FAILED), "test_2 passed");
    assert_eq!(came.runners, 2, "the attempt of a runner that broke is made again");
    let came = judged_beside_others("always", middle().closing(9, FAILED), "test_2 unavailable");
    assert!(came.texts[1].contains("the runner broke, twice"), "{}", came.texts[1]);
}

#[test]
fn what_the_machine_does_to_a_text_is_a_loss_and_no_verdict() {
    judged_beside_others("the keeper fails", middle().opening(9, Opening::FailsInternally), "test_2 lost");
    judged_beside_others("and not always", middle().opening(2, Opening::FailsInternally), "test_2 passed");
    let backend = neighbours(middle()).starting(99, Start::Fails(Fault::Harness));
    let came = Bench::new(backend).judged();
    assert_eq!(came.events, ["test_1 lost", "test_2 lost", "test_3 lost"]);
    assert!(came.error.is_none(), "{:?}", came.error);
    let backend = neighbours(middle()).starting(99, Start::Refused("no pytest"));
    let came = Bench::new(backend).judged();
    assert_eq!(came.error.map(|error| error.fault()), Some(Fault::Repository), "nothing can be judged");
}

/// Judges a text; gives how many runners were started so far, or why it was not judged.
fn judge(bench: &Bench, parking: &Parking, preload: &[String], waiting: Option<Waiting>) -> Result<usize> {
    let world = bench.lab.base();
    let mut pool = bench.lab.pool(&bench.groups, &world);
    pool.terms = Terms { parking: Some(parking), workers: Some(1), waiting };
    pool.passes[0].preload = preload;
    let mut task = Task::new("concise.py", 0, TraceMode::Off).judging("text".into());
    task.runs.push(Run::new(0, 1));
    let mut seen = 0;
    pool.run(vec![task], |_| {
        seen += 1;
        Ok(())
    })?;
    assert_eq!(seen, 1);
    Ok(bench.backend.runners())
}

#[test]
fn a_runner_that_judged_a_text_waits_for_the_next_one_of_its_kind() {
    let bench = Bench::new(FakeBackend::new([FakeFile::new("concise.py", [FakeGroup::passing("test_1")])]));
    let ahead = ["werkzeug".to_owned()];
    let nowhere = Parking::default();
    let judged = |parking: &Parking, preload: &[String]| judge(&bench, parking, preload, None).unwrap();
    assert_eq!([judged(&nowhere, &[]), judged(&nowhere, &[])], [1, 2], "no place to wait in");
    let parking = Parking::new(2);
    assert_eq!([judged(&parking, &[]), judged(&parking, &[]), judged(&parking, &[])], [3, 3, 3]);
    assert_eq!([judged(&parking, &ahead), judged(&parking, &ahead), judged(&parking, &[])], [4, 4, 4]);
    assert_eq!(parking.len(), 2);
    let small = Parking::new(1);
    assert_eq!([judged(&small, &[]), judged(&small, &ahead), judged(&small, &[])], [5, 6, 7]);
    assert_eq!(small.len(), 1, "the one that waited longest is gone");
}

#[test]
fn a_runner_that_ran_tests_with_a_replaced_file_waits_for_other_texts_and_for_nothing_else() {
    let files = ["a/test_a.py", "b/test_b.py"];
    let files =
        files.map(|file| FakeFile::new(file, [FakeGroup::passing("test_1"), FakeGroup::passing("test_2")]));
    let bench = Bench::new(FakeBackend::new(files));
    let parking = Parking::new(2);
    let ran = |text: &str| {
        let (world, texts) = (bench.lab.base(), BTreeMap::from([("a.py".to_owned(), text.to_owned())]));
        let mut pool = bench.lab.pool(&bench.groups, &world);
        pool.terms = Terms { parking: Some(&parking), workers: Some(1), waiting: None };
        pool.passes[0].texts = Some(&texts);
        let mut seen = 0;
        let each = |event| {
            seen += usize::from(matches!(event, Event::Attempt { .. }));
            Ok(())
        };
        pool.run(bench.tasks(0, 1), each).unwrap();
        (seen, bench.backend.runners(), parking.len())
    };
    assert_eq!([ran("1"), ran("2"), ran("3")], [(4, 1, 1); 3]);
    let world = bench.lab.base();
    let mut pool = bench.lab.pool(&bench.groups, &world);
    pool.terms = Terms { parking: Some(&parking), workers: Some(1), waiting: None };
    pool.run(bench.tasks(0, 1), |_| Ok(())).unwrap();
    assert_eq!(bench.backend.runners(), 2, "tests of the tree as it is have a runner of their own");
}

#[test]
fn what_nobody_waits_for_ends_and_its_runner_waits_for_nothing() {
    let bench = Bench::new(FakeBackend::new([FakeFile::new("concise.py", [FakeGroup::passing("test_1")])]));
    let parking = Parking::new(2);
    let far = std::time::Instant::now() + Duration::from_mins(1);
    let waiting = Waiting::until(far);
    assert_eq!(judge(&bench, &parking, &[], Some(waiting.clone())).unwrap(), 1);
    waiting.leave();
    let error = judge(&bench, &parking, &[], Some(waiting)).unwrap_err();
    assert_eq!((error.fault(), parking.is_empty()), (Fault::Interrupted, true));
    assert_eq!(judge(&bench, &parking, &[], Some(Waiting::until(far))).unwrap(), 2);
}
