use super::*;

const FRESH: Idle<'static> = Idle { number: 0, pass: None, runner: None, place: None, file: None };

/// A worker whose runner serves this place.
fn at(place: &DirectoryKey) -> Idle<'_> {
    Idle { pass: Some(place.0), place: Some(place), ..FRESH }
}

fn task(file: &str, pass: usize, cost_ms: f64) -> Task {
    Task { cost_ms, opening_ms: 0.0, ..Task::new(file, pass, TraceMode::Off) }
}

fn place(pass: usize) -> DirectoryKey {
    (pass, TraceMode::Off, "a".to_owned())
}

#[test]
fn a_worker_stays_in_its_directory_and_takes_the_longest_task_first() {
    let mut queue = Queue::default();
    for (file, cost_ms) in [("a/x.py", 5.0), ("a/y.py", 9.0), ("b/z.py", 100.0)] {
        queue.push(task(file, 0, cost_ms));
    }
    queue.push(Task { is_new: true, ..task("a/n.py", 0, 1.0) });
    let here = place(0);
    let order: Vec<String> =
        std::iter::from_fn(|| queue.pop(at(&here), |_, _| true).map(|task| task.file)).collect();
    assert_eq!(order, ["a/n.py", "a/y.py", "a/x.py", "b/z.py"]);
    assert!(queue.is_empty());
}

#[test]
fn a_file_that_is_open_comes_before_what_takes_longer() {
    let mut queue = Queue::default();
    for (file, cost_ms) in [("a/x.py", 5.0), ("a/y.py", 9.0), ("a/x.py", 1.0)] {
        queue.push(task(file, 0, cost_ms));
    }
    let here = place(0);
    let worker = Idle { file: Some("a/x.py"), ..at(&here) };
    let order: Vec<f64> =
        std::iter::from_fn(|| queue.pop(worker, |_, _| true).map(|task| task.cost_ms)).collect();
    assert_eq!(order, [5.0, 1.0, 9.0]);
    queue.push(task("a/x.py", 0, 5.0));
    queue.push(Task { is_new: true, ..task("a/n.py", 0, 1.0) });
    assert_eq!(queue.pop(worker, |_, _| true).unwrap().file, "a/n.py", "what may take long begins first");
}

#[test]
fn without_a_directory_the_place_with_most_work_comes_first_and_opening_files_is_work() {
    let mut queue = Queue::default();
    for (file, cost_ms) in [("a/x.py", 5.0), ("a/y.py", 6.0), ("b/z.py", 10.0)] {
        queue.push(task(file, 0, cost_ms));
    }
    queue.push(Task { opening_ms: 2.0, ..task("c/z.py", 0, 10.0) });
    let order: Vec<String> =
        std::iter::from_fn(|| queue.pop(FRESH, |_, _| true).map(|task| task.file)).collect();
    assert_eq!(order, ["c/z.py", "a/y.py", "b/z.py", "a/x.py"]);
}

#[test]
fn half_of_a_task_is_half_of_its_groups_or_of_the_attempts_of_its_only_one() {
    let repeats = |task: &Task| task.runs.iter().map(|run| (run.group, run.repeat)).collect::<Vec<_>>();
    let mut task = task("x.py", 0, 8.0);
    task.runs.extend([Run::new(0, 5), Run::new(1, 2)]);
    let other = task.halve();
    assert_eq!((repeats(&other), repeats(&task), task.cost_ms), (vec![(1, 2)], vec![(0, 5)], 4.0));
    let other = task.halve();
    assert_eq!((repeats(&other), repeats(&task), task.attempts()), (vec![(0, 2)], vec![(0, 3)], 3));
}

const ONE: Processors = Processors { number: 1.0, runners: 1 };

#[test]
fn another_runner_is_started_only_where_that_is_worth_it() {
    let work = Work::default();
    let [zero, one] = [place(0), place(1)];
    let take = |worker| work.take(worker, None, || true, || ONE);
    let took = |worker| take(worker).map(|(task, _)| (task.pass, task.cost_ms));
    work.push(task("a/x.py", 1, 5.0));
    assert_eq!(took(at(&zero)), Some((1, 5.0)), "nobody works there");
    work.push(task("a/x.py", 1, 900.0));
    let _one = take(at(&one)).unwrap();
    work.push(task("a/x.py", 1, 500.0));
    assert!(!another_is_worth(1, 500.0, ONE));
    assert!(another_is_worth(1, 500.0, Processors { number: 4.0, ..ONE }));
    assert!(another_is_worth(1, 500.0, Processors { runners: 2, ..ONE }));
    let pop = |worker| work.desk().queue.pop(worker, |_, ms| another_is_worth(1, ms, ONE));
    assert_eq!(pop(at(&zero)), None);
    assert_eq!(pop(FRESH), None);
    work.push(Task { opening_ms: 400.0, ..task("b/x.py", 1, 800.0) });
    assert_eq!(took(at(&zero)), Some((1, 800.0)), "those who work there would take too long");
    work.push(Task { is_new: true, ..task("a/x.py", 1, 1.0) });
    assert_eq!(pop(at(&zero)), None);
    assert_eq!(took(FRESH), Some((1, 1.0)), "it may take longer");
    work.push(task("a/x.py", 0, 1.0));
    assert_eq!(took(at(&zero)), Some((0, 1.0)), "its own runner serves");
    let no_directory = Idle { place: None, ..at(&one) };
    assert_eq!(took(no_directory), Some((1, 500.0)));
}

#[test]
fn runners_stay_with_their_pass_while_there_are_others_for_what_comes() {
    let work = Work::default();
    let wait =
        |worker, pass| work.desk().waiting.insert(worker, Waits { pass, runner: None, is_called: false });
    let took = |worker| work.desk().take(worker, ONE).map(|task| task.pass);
    let zero = place(0);
    work.push(task("a/x.py", 1, 5.0));
    wait(7, Some(1));
    assert_eq!((took(FRESH), took(at(&zero))), (None, None), "one that serves waits");
    work.desk().waiting.clear();
    wait(7, None);
    assert_eq!(took(at(&zero)), None, "one without a runner waits");
    assert_eq!(took(FRESH), Some(1));
    work.push(task("a/x.py", 1, 5.0));
    wait(7, Some(2));
    assert_eq!(took(at(&zero)), Some(1), "all others have runners of something else");
}

#[test]
fn a_runner_does_not_make_what_is_to_be_made_apart_from_it() {
    let work = Work::default();
    let zero = place(0);
    let first = Idle { number: 1, runner: Some(1), ..at(&zero) };
    let second = Idle { number: 2, runner: Some(2), ..at(&zero) };
    let apart = |cost_ms| Task { apart_from: vec![1], ..task("a/x.py", 0, cost_ms) };
    let took = |worker| work.desk().take(worker, ONE).map(|task| task.cost_ms);
    let wait = |worker: Idle<'_>| {
        let waits = Waits { pass: worker.pass, runner: worker.runner, is_called: false };
        work.desk().waiting.insert(worker.number, waits);
    };
    work.push(apart(1.0));
    work.push(task("a/y.py", 0, 2.0));
    assert!(!work.desk().is_done());
    assert_eq!((took(second), took(second), took(second)), (Some(2.0), Some(1.0), None), "at the end");
    work.push(apart(3.0));
    work.push(task("a/y.py", 0, 4.0));
    let open = Idle { file: Some("a/x.py"), ..second };
    assert_eq!((took(open), took(open)), (Some(3.0), Some(4.0)), "its file is open");
    work.push(apart(5.0));
    wait(second);
    assert_eq!((took(first), took(FRESH)), (None, None), "the other one waits");
    work.desk().waiting.clear();
    work.desk().serving.insert(2, (0, Some(2)));
    assert_eq!((took(first), took(FRESH)), (None, None), "the other one will come");
    work.desk().serving.clear();
    wait(FRESH);
    assert_eq!(took(first), None, "a runner is started by one that has none");
    assert_eq!(took(FRESH), Some(5.0));
    work.desk().waiting.clear();
    work.push(apart(6.0));
    let (_, taken) = work.take(first, None, || true, || ONE).unwrap();
    assert_eq!(work.desk().serving[&1], (0, None), "nobody else is there: it starts another one");
    drop(taken);
    assert!(work.desk().serving.is_empty() && work.desk().is_done());
}

#[test]
fn nobody_goes_home_before_all_that_was_told_is_answered() {
    let work = Work::new(vec![task("a/x.py", 0, 1.0)]);
    let take = || work.take(FRESH, None, || true, || ONE);
    let taken = take().unwrap();
    work.told();
    drop(taken);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| take().map(|(task, _)| task.file));
        std::thread::sleep(2 * PATIENCE);
        assert!(!waits.is_finished());
        work.answered(vec![task("a/y.py", 0, 1.0)]);
        assert_eq!(waits.join().unwrap().as_deref(), Some("a/y.py"));
    });
    assert!(take().is_none(), "nothing was told since");
    work.told();
    work.abandon();
    assert!(take().is_none());
}

#[test]
fn half_of_a_task_is_wanted_where_somebody_who_waits_would_take_it() {
    let work = Work::default();
    let wait =
        |worker, pass| work.desk().waiting.insert(worker, Waits { pass, runner: None, is_called: false });
    work.push(task("a/x.py", 0, 100.0));
    let (_, mut taken) = work.take(FRESH, None, || true, || ONE).unwrap();
    let mut wanted = |left_ms| work.is_wanted(&mut taken, left_ms, || ONE);
    assert_eq!(wanted(9_000.0), None, "nobody waits");
    wait(1, Some(1));
    work.push(task("c/x.py", 1, 1.0));
    assert_eq!(wanted(9_000.0), None, "there is something to do for the one that waits");
    wait(1, Some(1));
    assert_eq!(wanted(1_500.0), None, "it would not be worth another runner");
    assert_eq!(wanted(9_000.0), Some(COST_OF_A_RUNNER_MS), "it takes longer than was thought");
    wait(2, Some(0));
    assert_eq!(wanted(20.0), Some(0.0), "a runner is there");
    work.push(task("a/x.py", 0, 10.0));
    let called: Vec<bool> = work.desk().waiting.values().map(|waits| waits.is_called).collect();
    assert_eq!(called, [false, true], "one whose runner serves");
    drop(taken);
    let at_it = work.desk().working[&0];
    assert_eq!((at_it.workers, at_it.cost_ms), (0, 0.0));
}
