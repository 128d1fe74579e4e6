//! Screening of a scripted repository, from the first rounds to cold runs.

use super::*;
use crate::collect;
use crate::record::outcome::Compare;
use crate::testing::backend::FakeBackend;
use crate::testing::lab::{COVERED, lab};
use crate::testing::script::{Act, FakeFile, FakeGroup, Opening};

/// A scripted repository that was collected.
struct Bench {
    backend: FakeBackend,
    slug: RepoSlug,
    lab: Lab,
    collected: Collected,
    progress: Progress,
    tried: BTreeMap<usize, Attempt>,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(files: impl IntoIterator<Item = FakeFile>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let backend = FakeBackend::new(files);
        let lab = lab(&backend, folder.path());
        let wanted = collect::Wanted { tests: &[], options: &[], limit: lab.timeouts.group };
        let (found, pytest) = collect::discover(&backend, &lab.setting, &wanted, &[]).unwrap();
        let collected = collect::collected(&found, pytest, &lab.base().normalizer, false).unwrap();
        assert_eq!(collected.groups, backend.groups());
        let (slug, progress) = (RepoSlug::new("made/up").unwrap(), Progress::hidden());
        Bench { backend, slug, lab, collected, progress, tried: BTreeMap::new(), folder }
    }

    /// A repository of one file.
    fn of(groups: impl IntoIterator<Item = FakeGroup>) -> Self {
        Bench::new([FakeFile::new("tests/test_a.py", groups)])
    }

    /// The screening as the last build left it; four attempts and one cold run are asked for.
    fn screening(&self) -> Screening<'_> {
        let Bench { slug, lab, collected, progress, tried, .. } = self;
        let replay_options = " --only made/up";
        let subject = Subject { slug, lab, collected, progress, tried, replay_options };
        let policy = ScreenPolicy {
            attempts: 4,
            cold_runs: 1,
            partial: false,
            compare: Compare::Output,
            covered: COVERED.into(),
        };
        Screening::open(subject, policy, &self.folder.path().join("screen")).unwrap()
    }

    /// Lines of the log that begin like this.
    fn logged(&self, start: &str) -> usize {
        self.backend.log().iter().filter(|line| line.starts_with(start)).count()
    }
}

/// `function: kept` or `function: cause`.
fn causes(screening: &Screening<'_>, depth: Depth) -> Vec<String> {
    let word = |verdict: Verdict| verdict.cause().map_or_else(|| "kept".to_owned(), ToString::to_string);
    let groups = screening.groups().iter();
    let verdicts = screening.verdicts(depth).into_iter().map(word);
    groups.zip(verdicts).map(|(group, word)| format!("{}: {word}", group.function)).collect()
}

/// World and number of attempts, in the fork tree.
fn worlds(attempts: &[Attempt]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&World, usize> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| attempt.method == Method::Fork) {
        *counts.entry(&attempt.world).or_default() += 1;
    }
    counts.into_iter().map(|(world, count)| (world.to_string(), count)).collect()
}

fn counted(worlds: &[(&str, usize)]) -> Vec<(String, usize)> {
    worlds.iter().map(|(world, count)| ((*world).to_owned(), *count)).collect()
}

#[test]
fn a_difference_is_repeated_by_other_runners_and_all_groups_share_them() {
    let zone = |name: &str| FakeGroup::passing(name).where_differs("TZ", Act::Fails);
    let bench = Bench::of([zone("test_0"), zone("test_1"), zone("test_2")]);
    let mut screening = bench.screening();
    screening.first_rounds(&[0, 1, 2]).unwrap();
    let rounds = bench.backend.runners();
    screening.other_worlds(&[0, 1, 2], Depth::First).unwrap();
    let expected = [0, 1, 2].map(|at| format!("test_{at}: depends-on-time-zone"));
    assert_eq!(causes(&screening, Depth::First), expected);
    assert_eq!(worlds(screening.history().of(0)).len(), 4);
    // Each world has one, and the two in which a difference is repeated have another, which a worker that was scheduled late
    // may start for itself; ten would be one for each group.
    let started = bench.backend.runners() - rounds;
    assert!((4 + 2..=4 + 2 * 2).contains(&started), "{started}: {:?}", bench.backend.log());
}

#[test]
fn what_was_tried_before_is_not_run_again_in_the_first_round() {
    let mut bench = Bench::of(["test_0", "test_1", "test_2"].map(FakeGroup::passing));
    let other = Bench::of(["test_0", "test_1", "test_2"].map(FakeGroup::passing));
    let mut first = other.screening();
    first.first_rounds(&[0, 1, 2]).unwrap();
    bench.tried = [1, 2].map(|at| (at, first.history().of(at)[0].clone())).into();
    let mut screening = bench.screening();
    screening.first_rounds(&[0, 1]).unwrap();
    assert_eq!(bench.logged("run"), 3, "two rounds of one group, one of the other");
    assert_eq!(screening.history().of(1)[0], bench.tried[&1]);
    assert_eq!(screening.history().of(2), [], "a group of another shard");
    // What is known already is not added once more.
    drop(screening);
    let mut screening = bench.screening();
    screening.first_rounds(&[0, 1]).unwrap();
    assert_eq!((bench.logged("run"), screening.history().of(1).len()), (3, 2));
}

#[test]
fn the_first_rounds_tell_what_is_steady_from_what_is_not() {
    let other = Act::Prints("another".to_owned());
    let bench = Bench::of([
        FakeGroup::passing("test_steady"),
        FakeGroup::new("test_flaky", Act::PrintsCount),
        FakeGroup::passing("test_hash").where_differs("PYTHONHASHSEED", other),
        FakeGroup::passing("test_zone").where_differs("TZ", Act::Fails),
        FakeGroup::passing("test_alone").cases_alone(&[]),
        FakeGroup::new("test_fails", Act::Fails),
        FakeGroup::new("test_crashes", Act::TakesDown(6)),
        FakeGroup::passing("test_killed").first(2, Act::Signaled(9)),
    ]);
    let mut screening = bench.screening();
    screening.first_of_all().unwrap();
    let expected = [
        "test_steady: kept",
        "test_flaky: nondeterministic-output",
        "test_hash: depends-on-hash-seed",
        "test_zone: depends-on-time-zone",
        "test_alone: collection-error",
        "test_fails: fails",
        "test_crashes: crashes",
        "test_killed: kept",
    ];
    assert_eq!(causes(&screening, Depth::First), expected);
    assert!(screening.is_unavailable(4) && !screening.is_unavailable(0));
    let attempts = |group| worlds(screening.history().of(group));
    assert_eq!(attempts(0), counted(&[("base", 2), ("everything", 1)]));
    assert_eq!(attempts(1), counted(&[("base", 2)]), "what wavers goes to no other world");
    assert_eq!(attempts(2), counted(&[("base", 5), ("everything", 2), ("hash-seed", 3)]));
    let zone = counted(&[("base", 5), ("everything", 2), ("hash-seed", 1), ("time-zone", 3)]);
    let mut seen = attempts(3);
    seen.sort();
    assert_eq!(seen, zone, "the likelier dimension is tried first");
    assert_eq!((attempts(4), attempts(7)), (Vec::new(), counted(&[("base", 2), ("everything", 1)])));
}

#[test]
fn evidence_names_the_world_and_the_command() {
    let bench = Bench::of([FakeGroup::passing("test_hash").where_differs("PYTHONHASHSEED", Act::Fails)]);
    let mut screening = bench.screening();
    screening.first_of_all().unwrap();
    let Verdict::Dropped { evidence, .. } = screening.verdict(0, Depth::First) else { panic!("is dropped") };
    let command = "gistmill replay tests/test_a.py::test_hash --world hash-seed --only made/up";
    assert_eq!(evidence.command, command);
    assert_eq!(evidence.seen.len(), 2, "{:?}", evidence.seen);
}

#[test]
fn what_the_base_world_shows_is_seen_again_by_a_replay_in_it() {
    let command = |group: FakeGroup| {
        let bench = Bench::of([group]);
        let mut screening = bench.screening();
        screening.first_of_all().unwrap();
        let Verdict::Dropped { evidence, .. } = screening.verdict(0, Depth::First) else {
            panic!("is dropped")
        };
        evidence.command
    };
    let fails = command(FakeGroup::new("test_fails", Act::Fails));
    assert_eq!(fails, "gistmill replay tests/test_a.py::test_fails --world base --only made/up");
    let wavers = command(FakeGroup::new("test_wavers", Act::PrintsCount));
    assert_eq!(wavers, "gistmill replay tests/test_a.py::test_wavers --world base --times 10 --only made/up");
}

#[test]
fn a_file_that_cannot_be_imported_in_another_world_depends_on_it() {
    let file = FakeFile::new("tests/test_a.py", [FakeGroup::passing("test_1"), FakeGroup::passing("test_2")]);
    let bench = Bench::new([file.refused_where("TZ")]);
    let mut screening = bench.screening();
    screening.first_of_all().unwrap();
    let expected = ["test_1", "test_2"].map(|name| format!("{name}: depends-on-time-zone"));
    assert_eq!(causes(&screening, Depth::First), expected);
    assert!(!screening.is_unavailable(0), "it is available in the base world");
    let made = screening.history().of(0);
    let exit =
        |name: &str| made.iter().find(|attempt| attempt.world.to_string() == name).unwrap().exit.clone();
    assert_eq!((exit("base"), exit("time-zone")), (Exit::Finished, Exit::NotCollected));
}

#[test]
fn what_is_to_be_published_gets_all_attempts_and_further_seeds() {
    let bench = Bench::of([
        FakeGroup::passing("test_steady"),
        FakeGroup::new("test_late", Act::Fails).first(3, Act::Passes),
        FakeGroup::passing("test_left"),
    ]);
    let mut screening = bench.screening();
    screening.first_of_all().unwrap();
    assert_eq!(causes(&screening, Depth::All), ["test_steady: kept", "test_late: kept", "test_left: kept"]);
    screening.deepen(&[0, 1]).unwrap();
    let expected = ["test_steady: kept", "test_late: nondeterministic-outcome", "test_left: kept"];
    assert_eq!(causes(&screening, Depth::All), expected);
    assert_eq!(causes(&screening, Depth::First)[1], "test_late: kept", "the sample does not depend on it");
    let attempts = |group| worlds(screening.history().of(group));
    let seeds = ["hash-seed-1", "hash-seed-2", "hash-seed-3", "hash-seed-4"].map(|seed| (seed, 1));
    let mut all = vec![("base", 4), ("everything", 1)];
    all.extend(seeds);
    assert_eq!(attempts(0), counted(&all));
    assert_eq!(attempts(1), counted(&all), "further seeds are made at the same time");
    assert_eq!(attempts(2), counted(&[("base", 2), ("everything", 1)]));
}

#[test]
fn rounds_share_no_runner() {
    let bench = Bench::of([FakeGroup::passing("test_steady")]);
    let before = bench.backend.runners();
    bench.screening().first_of_all().unwrap();
    assert_eq!(bench.backend.runners() - before, 3, "two rounds, and one other world");
}

#[test]
fn cold_runs_are_compared_with_the_fork_tree() {
    let bench = Bench::of([
        FakeGroup::passing("test_steady").cases(&["a", "b"]),
        FakeGroup::passing("test_differs").cold(Act::Fails),
        FakeGroup::passing("test_killed").cold(Act::Signaled(9)),
        FakeGroup::new("test_crashes", Act::Signaled(11)),
    ]);
    let mut screening = bench.screening();
    screening.first_of_all().unwrap();
    screening.deepen(&[0, 1, 2]).unwrap();
    screening.confirm(&[0, 1, 2, 3]).unwrap();
    let expected = [
        "test_steady: kept",
        "test_differs: nondeterministic-outcome",
        "test_killed: crashes",
        "test_crashes: crashes",
    ];
    assert_eq!(causes(&screening, Depth::All), expected);
    let parity = screening.parity();
    let differing: Vec<&str> = parity.differing.iter().map(|one| one.group_id.as_str()).collect();
    assert_eq!(parity.compared, 4);
    assert_eq!(differing, ["tests/test_a.py::test_differs", "tests/test_a.py::test_killed"]);
    assert_eq!(
        bench.logged("cold tests/test_a.py::test_killed"),
        3,
        "what should come to its end is tried again"
    );
    assert_eq!(bench.logged("cold tests/test_a.py::test_crashes"), 1);
    let cold = screening.history().of(0).last().unwrap();
    let ids: Vec<&str> = cold.cases.iter().map(|case| case.case_id.as_str()).collect();
    assert_eq!(cold.method, Method::Cold);
    assert_eq!(ids, ["tests/test_a.py::test_steady[a]", "tests/test_a.py::test_steady[b]"]);
}

#[test]
fn what_was_made_is_not_made_again() {
    let bench = Bench::of([
        FakeGroup::passing("test_steady"),
        FakeGroup::passing("test_alone").cases_alone(&[]),
        FakeGroup::passing("test_zone").where_differs("TZ", Act::Fails),
    ]);
    let build = || {
        let mut screening = bench.screening();
        screening.first_of_all().unwrap();
        screening.deepen(&[0]).unwrap();
        screening.confirm(&[0]).unwrap();
        (causes(&screening, Depth::All), screening.made())
    };
    let first = build();
    let asked = bench.backend.log().len();
    assert_eq!(build(), first);
    assert_eq!(bench.backend.log().len(), asked);
}

#[test]
fn a_build_that_was_stopped_goes_on_where_it_was() {
    let whole = Bench::of(["test_1", "test_2", "test_3"].map(FakeGroup::passing));
    whole.screening().first_of_all().unwrap();
    let runs = whole.logged("run");
    // The second file breaks runners of both rounds, those of one for the third time, and there is but one group in it.
    let broken =
        FakeFile::new("b/test_b.py", [FakeGroup::passing("test_3")]).opening(5, Opening::EndsRunner(70));
    let good = FakeFile::new("a/test_a.py", ["test_1", "test_2"].map(FakeGroup::passing));
    let bench = Bench::new([good, broken]);
    let error = bench.screening().first_of_all().unwrap_err();
    assert_eq!(error.fault(), crate::error::Fault::Harness);
    let mut screening = bench.screening();
    screening.first_of_all().unwrap();
    assert_eq!(causes(&screening, Depth::First), ["test_1: kept", "test_2: kept", "test_3: kept"]);
    assert_eq!(screening.made(), 9);
    let again = bench.logged("run") - runs;
    assert!(again <= 1, "only what was under way in the other round is made again, not {again} attempts");
}
