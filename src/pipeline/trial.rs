//! One run of a repository's tests in a candidate environment: which groups pass, and what the others say. In the
//! environment that is chosen, it is the first round of most groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::attempt::lab::Lab;
use crate::attempt::pool::{Admission, Crowd, Event, IMPORT_OVER_LIMIT, NOT_RUN, Pass, Pool, Terms};
use crate::attempt::world::WorldSetting;
use crate::attempt::{attempt_of, node_id, tasks};
use crate::backend::Backend;
use crate::collect::group;
use crate::environment::{Complaint, GateReport};
use crate::error::Result;
use crate::python_source::sources::Sources;
use crate::record::collected::{Case, Group};
use crate::record::id::hash_parts;
use crate::record::limits::Timeouts;
use crate::record::outcome::{Attempt, Exit, Outcome};
use crate::record::world::World;
use crate::runner::Setting;
use crate::runner::protocol::{Discovered, TraceMode};
use crate::screen::FIRST_ROUNDS;

/// Of more groups, so many are run: what is missing is missed by many.
const MOST: usize = 1000;
/// Groups of more cases are run where there are no others.
const MOST_CASES: usize = 100;
/// Words of tests that probably wait for something: they begin first.
const WAITING: [&str; 2] = ["sleep", "timeout"];
/// What such a test is taken to take, and any other one, in milliseconds.
const LONG_MS: f64 = 1000.0;
const SHORT_MS: f64 = 20.0;
/// Longest that a group may take here.
const LIMIT: Duration = Duration::from_secs(20);
/// Of a file whose groups are so often over their limit the others are not run where the answer is wanted soon.
pub(super) const PATIENCE: u32 = 2;
/// Time between two counts of what was run.
const BETWEEN_COUNTS: Duration = Duration::from_secs(5);

/// What was made, and where.
pub(super) struct Trial {
    backend: Arc<dyn Backend>,
    setting: Setting,
    options: Vec<String>,
    /// Attempts by group, each with its cases.
    attempts: BTreeMap<String, (Vec<Case>, Attempt)>,
}

impl Trial {
    /// Whether it was made there.
    pub(super) fn was_in(&self, backend: &Arc<dyn Backend>, setting: &Setting, options: &[String]) -> bool {
        Arc::ptr_eq(&self.backend, backend) && self.setting == *setting && self.options == options
    }

    /// The attempts that were made in the base world of this lab of these groups, by index: those that are what a build
    /// would make, and those that were over the limits here, or not made because others of their file were.
    pub(super) fn in_the_base_world(mut self, lab: &Lab, groups: &[Group]) -> Tried {
        if !self.was_in(&lab.backend, &lab.setting, &lab.options) {
            return Tried::default();
        }
        let attempt = |(at, group): (usize, &Group)| {
            let (cases, attempt) = self.attempts.remove(&group.group_id)?;
            (cases == group.cases).then_some((at, attempt))
        };
        let is_late = |(_, attempt): &(usize, Attempt)| matches!(attempt.exit, Exit::TimedOut { .. });
        let (late, in_time) = groups.iter().enumerate().filter_map(attempt).partition(is_late);
        Tried { in_time, late }
    }
}

/// Attempts of a trial, by index of the group.
#[derive(Debug, Default)]
pub(super) struct Tried {
    pub(super) in_time: BTreeMap<usize, Attempt>,
    pub(super) late: BTreeMap<usize, Attempt>,
}

/// Runs the groups that were found, each once, and adds what they showed. What is under way goes to `say`.
///
/// # Errors
/// The harness's trouble, and an interruption.
pub(super) fn run(
    backend: &Arc<dyn Backend>,
    setting: Setting,
    found: &Discovered,
    (timeouts, admission): (Timeouts, &Admission<'_>),
    report: &mut GateReport,
    say: &dyn Fn(&str),
) -> Result<Trial> {
    let world = WorldSetting::base(&setting);
    let (groups, _) = group::group(&found.items, &world.normalizer);
    let wanted =
        some(&groups.iter().map(|group| (group.group_id.as_str(), group.cases.len())).collect::<Vec<_>>());
    let options: Vec<String> = found.switched_off.iter().flat_map(|plugin| plugin.options.clone()).collect();
    let pool = Pool {
        backend: &**backend,
        passes: vec![Pass {
            setting: &world.setting,
            normalizer: &world.normalizer,
            timeouts: timeouts.at_most(LIMIT),
            preload: &[],
            texts: None,
        }],
        groups: &groups,
        options: &options,
        crowd: Crowd::Idle(admission),
        terms: Terms::default(),
    };
    let (mut passing, mut complaints, mut attempts) = (BTreeSet::new(), Vec::new(), BTreeMap::new());
    let sources = Sources::of(&setting.tree);
    let guess =
        |(at, _): &(usize, u32)| (*at, if waits(&sources, &groups[*at]) { LONG_MS } else { SHORT_MS });
    let guesses = wanted.iter().map(guess).collect();
    // Those that probably wait begin at the same time.
    let mut tasks = tasks(&groups, &wanted, &guesses, 0, TraceMode::Off, admission.most());
    // These are guesses.
    for task in &mut tasks {
        (task.is_new, task.patience) = (true, Some(PATIENCE));
    }
    let mut count = Count { of: wanted.len(), done: 0, said: Instant::now(), given_up: BTreeMap::new() };
    pool.run(tasks, |event| {
        match event {
            Event::Attempt { group, done, items, .. } => {
                let who = &groups[group].group_id;
                count.note(&groups[group], done.raw_output == NOT_RUN, say);
                let name = |index: i64| node_id(&items, index);
                let place = (&World::Base, FIRST_ROUNDS[0]);
                let mut attempt = attempt_of(&groups[group], &done, name, &world.normalizer, place);
                attempt.note(jiff::Timestamp::now().as_millisecond());
                if matches!(attempt.exit, Exit::TimedOut { .. }) || done.raw_output == NOT_RUN {
                    report.late.insert(who.clone());
                }
                attempts.insert(who.clone(), (groups[group].cases.clone(), attempt));
                let bad = |outcome| matches!(outcome, Outcome::Failed | Outcome::Error);
                let passes = done.cases.iter().any(|case| case.outcome == Outcome::Passed);
                if passes && !done.cases.iter().any(|case| bad(case.outcome)) {
                    passing.insert(who.clone());
                }
                complaints.extend(done.cases.iter().filter_map(|case| {
                    let is_skip = case.outcome == Outcome::Skipped;
                    let text = case.message.clone().filter(|_| is_skip || bad(case.outcome))?;
                    Some(Complaint { who: who.clone(), text, is_skip })
                }));
            }
            Event::Unavailable { group, text, .. } => {
                if text.starts_with(IMPORT_OVER_LIMIT) {
                    report.late.insert(groups[group].group_id.clone());
                }
                complaints.push(Complaint { who: groups[group].group_id.clone(), text, is_skip: false });
            }
            Event::Broken(error) | Event::Lost { error, .. } => return Err(error),
        }
        Ok(())
    })?;
    count.say_what_hangs(say);
    report.passing = passing;
    report.complaints.extend(complaints);
    Ok(Trial { backend: Arc::clone(backend), setting, options, attempts })
}

/// How far a trial is.
struct Count {
    of: usize,
    done: usize,
    said: Instant,
    /// Groups that were not run, by file.
    given_up: BTreeMap<String, usize>,
}

impl Count {
    fn note(&mut self, group: &Group, is_given_up: bool, say: &dyn Fn(&str)) {
        self.done += 1;
        if is_given_up {
            *self.given_up.entry(group.file.clone()).or_default() += 1;
        }
        if self.said.elapsed() >= BETWEEN_COUNTS {
            self.said = Instant::now();
            say(&format!("running the tests once: {} of {}", self.done, self.of));
        }
    }

    fn say_what_hangs(&self, say: &dyn Fn(&str)) {
        for (file, groups) in &self.given_up {
            let (limit, left) = (LIMIT.as_secs(), crate::text::count(*groups, "other test"));
            say(&format!(
                "{file}: {PATIENCE} tests take longer than {limit} s each; {left} of it not run here"
            ));
        }
    }
}

/// Whether the code of a group has a word for waiting.
fn waits(sources: &Sources, group: &Group) -> bool {
    let file = sources.get(&group.file);
    let code = file.as_ref().and_then(|file| file.code(group));
    code.is_some_and(|code| WAITING.iter().any(|word| code.source().contains(word)))
}

/// Indices of the groups to run, each once, of groups with such an ID and so many cases. Of many, those whose hashes come
/// first, so that two plans that find almost the same groups try almost the same.
fn some(groups: &[(&str, usize)]) -> Vec<(usize, u32)> {
    let small: Vec<usize> = (0..groups.len()).filter(|at| groups[*at].1 <= MOST_CASES).collect();
    let mut from = if small.is_empty() { (0..groups.len()).collect() } else { small };
    if from.len() > MOST {
        from.sort_by_cached_key(|at| hash_parts(&[groups[*at].0]));
        from.truncate(MOST);
        from.sort_unstable();
    }
    from.into_iter().map(|at| (at, 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect;
    use crate::testing::backend::FakeBackend;
    use crate::testing::lab::lab;
    use crate::testing::script::{Act, FakeFile, FakeGroup, Opening};

    #[test]
    fn what_ended_in_time_is_the_first_round_of_the_same_lab_and_of_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let groups = [
            FakeGroup::passing("test_0"),
            FakeGroup::new("test_1", Act::Fails),
            FakeGroup::new("test_2", Act::TimesOut),
            FakeGroup::passing("test_3"),
        ];
        let backend = FakeBackend::new([FakeFile::new("test_a.py", groups)]);
        let lab = || Lab { options: Vec::new(), ..lab(&backend, folder.path()) };
        let (like, lab) = (lab, lab());
        let limit = Duration::from_secs(2);
        let wanted = collect::Wanted { tests: &[], options: &[], limit };
        let (found, _) = collect::discover(&backend, &lab.setting, &wanted, &[]).unwrap();
        let mut report = GateReport::default();
        let mut made = || {
            let limits = (Timeouts { case: limit, group: limit }, &*lab.admission);
            run(&lab.backend, lab.setting.clone(), &found, limits, &mut report, &|_| {}).unwrap()
        };
        let mut groups = backend.groups();
        let given = |trial: Trial, lab: &Lab, groups: &[Group]| {
            let tried = trial.in_the_base_world(lab, groups);
            assert!(tried.late.keys().all(|at| *at == 2));
            tried
                .in_time
                .into_iter()
                .map(|(at, attempt)| (at, attempt.group_id, attempt.round))
                .collect::<Vec<_>>()
        };
        let named = |at: usize| (at, format!("test_a.py::test_{at}"), FIRST_ROUNDS[0]);
        assert_eq!(given(made(), &lab, &groups), [named(0), named(1), named(3)]);
        // Collected otherwise in the environment that was made in the end.
        groups[3].cases[0].line = Some(99);
        assert_eq!(given(made(), &lab, &groups), [named(0), named(1)]);
        let mut others = [(); 3].map(|()| like());
        for other in &mut others {
            other.backend = Arc::clone(&lab.backend);
        }
        others[0].setting.env.insert("A".to_owned(), "1".to_owned());
        others[1].options.push("-p no:cacheprovider".to_owned());
        others[2].backend = Arc::new(backend.clone());
        for other in &others {
            assert_eq!(given(made(), other, &groups), []);
        }
        assert_eq!(report.passing, ["test_a.py::test_0", "test_a.py::test_3"].map(str::to_owned).into());
        assert_eq!(report.late, ["test_a.py::test_2".to_owned()].into());
    }

    #[test]
    fn a_file_whose_tests_hang_ends_early_and_the_others_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let hang = |at: usize| FakeGroup::new(&format!("test_{at}"), Act::TimesOut);
        let backend = FakeBackend::new([
            FakeFile::new("test_a.py", (0..9).map(hang)),
            FakeFile::new("test_b.py", [FakeGroup::passing("test_b")]),
            FakeFile::new("test_c.py", [FakeGroup::passing("test_c")]).opening(9, Opening::TimesOut),
            FakeFile::new("test_d.py", [FakeGroup::passing("test_d")])
                .opening(9, Opening::Refused("no module")),
        ]);
        let lab = Lab { options: Vec::new(), ..lab(&backend, folder.path()) };
        let limit = Duration::from_secs(2);
        let wanted = collect::Wanted { tests: &[], options: &[], limit };
        let (found, _) = collect::discover(&backend, &lab.setting, &wanted, &[]).unwrap();
        let (said, mut report) = (std::cell::RefCell::new(Vec::new()), GateReport::default());
        let limits = (Timeouts { case: limit, group: limit }, &*lab.admission);
        let say = |text: &str| said.borrow_mut().push(text.to_owned());
        let trial = run(&lab.backend, lab.setting.clone(), &found, limits, &mut report, &say).unwrap();
        let Tried { in_time, late } = trial.in_the_base_world(&lab, &backend.groups());
        assert_eq!((in_time.len(), late.len()), (1, 9));
        let not_run = late.values().filter(|attempt| attempt.raw_output == NOT_RUN).count();
        assert!(not_run >= 5, "{not_run}");
        assert!(said.borrow().last().unwrap().starts_with("test_a.py: 2 tests take longer than 20 s"));
        assert_eq!(report.passing, BTreeSet::from(["test_b.py::test_b".to_owned()]));
        let is_late = |group: &str| report.late.contains(group);
        assert!(is_late("test_c.py::test_c"), "its import takes too long");
        assert!(!is_late("test_d.py::test_d") && !is_late("test_b.py::test_b"));
    }

    #[test]
    fn of_few_groups_the_small_ones_are_run() {
        assert_eq!(some(&[("a", 1), ("b", 101), ("c", 100)]), [(0, 1), (2, 1)]);
        assert_eq!(some(&[("a", 200), ("b", 300)]), [(0, 1), (1, 1)]);
        assert!(some(&[]).is_empty());
    }

    #[test]
    fn of_many_groups_the_same_are_run_when_there_is_one_more() {
        let ids: Vec<String> = (0..3 * MOST).map(|at| format!("test_a.py::test_{at}")).collect();
        let named = |first: usize| {
            let groups: Vec<(&str, usize)> = ids[first..].iter().map(|id| (id.as_str(), 1)).collect();
            some(&groups).into_iter().map(|(at, _)| ids[first + at].clone()).collect::<BTreeSet<_>>()
        };
        let (all, but_one) = (named(0), named(1));
        assert_eq!((all.len(), but_one.len()), (MOST, MOST));
        assert!(all.intersection(&but_one).count() >= MOST - 1);
    }
}
