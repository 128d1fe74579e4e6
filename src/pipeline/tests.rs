//! A whole build of a scripted repository, from its collection to the dataset.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::prepare::Preparation;
use super::repository::Repository;
use super::session::Session;
use super::*;
use crate::attempt::lab::Lab;
use crate::config::Repo;
use crate::environment::{Candidate, Wish};
use crate::record::environment;
use crate::record::source::Pinned;
use crate::testing::backend::FakeBackend;
use crate::testing::lab::lab;
use crate::testing::made_up;
use crate::testing::script::{Act, FakeFile, FakeGroup};

/// What a build works with; source and environment are ready.
struct Bench {
    backend: FakeBackend,
    session: Session,
    repo: Repo,
    pinned: Pinned,
    built: environment::Built,
    /// Removed with it.
    _folder: tempfile::TempDir,
    /// Whether the environment is tried before a build.
    is_tried: bool,
}

impl Bench {
    fn new(files: impl IntoIterator<Item = FakeFile>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let backend = FakeBackend::new(files);
        let lab = lab(&backend, folder.path());
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let mut config = made_up::config();
        (config.screen.attempts, config.screen.parity_groups) = (4, 2);
        // A scripted test has no text that could be edited.
        config.dataset.sample_unsolvable = true;
        let slug = RepoSlug::new("made/up").unwrap();
        let session = Session {
            machine: Machine::scripted(&cache, &config, Arc::new(backend.clone()), lab.capabilities),
            tools: Tools::scripted(&cache, Vec::new()),
            // Two calls are all that a scripted group makes, which the shipped rules find too few.
            rules: RuleSet::default(),
            progress: Progress::hidden(),
            request: Request::whole(folder.path().join("output"), 2),
            public_config: serde_json::json!({}),
            config_name: None,
            config,
            cache,
        };
        Bench {
            session,
            pinned: Pinned { tree: lab.built.tree.clone(), ..made_up::pinned(&slug, &"c".repeat(40)) },
            built: lab.built,
            repo: made_up::repo(slug),
            backend,
            _folder: folder,
            is_tried: false,
        }
    }

    fn request(&self, until: Stage) -> Request {
        Request { until, ..self.session.request.clone() }
    }

    /// Goes from the built environment to what the repository contributes, and writes the dataset.
    fn build(&self, until: Stage) -> Option<Dataset> {
        self.build_as(&self.request(until))
    }

    fn shard(&self, shard: &str) {
        let shards = Shards::Make(shard.parse().unwrap());
        assert!(self.build_as(&Request { shards, ..self.request(Stage::Dataset) }).is_none());
    }

    /// What is said of missing shards.
    fn missing(&self, of: Option<u32>) -> Option<String> {
        let request = self.request(Stage::Collect);
        let pipeline = self.pipeline(&request);
        let preparation = Preparation::new(&pipeline, &self.repo);
        let prepared = preparation.collect(self.pinned.clone(), self.built.clone()).unwrap();
        let required = shards::require(&prepared.lab.folder, of, &self.repo.slug, &prepared.collected);
        required.err().map(|error| error.to_string())
    }

    fn build_as(&self, request: &Request) -> Option<Dataset> {
        let pipeline = self.pipeline(request);
        let mut repository = Repository::new(&pipeline, &self.repo);
        let preparation = Preparation::new(&pipeline, &self.repo);
        let (pinned, built) = (self.pinned.clone(), self.tried_in(&preparation));
        let made = repository.stages_of_tests(&preparation, pinned, built).unwrap()?;
        let directory = request.output.join("made-up/2026.11");
        pipeline.write(&directory, (&[made], &[]), &[]).unwrap();
        Some(Dataset::open(&directory).unwrap())
    }

    /// The environment, after its tests were collected and run as when it is chosen, if that is wanted.
    fn tried_in(&self, preparation: &Preparation<'_>) -> environment::Built {
        let built = &self.built;
        if !self.is_tried {
            return built.clone();
        }
        let host = self.session.machine.host(&self.repo, &self.session.tools, &|_| {}).unwrap();
        let candidate = Candidate {
            python_prefix: &built.python_prefix,
            venv: &built.venv,
            tree: &built.tree,
            env: &built.env,
            tests: &built.tests,
            wish: Wish::CollectAndRun,
        };
        let report = preparation.gate(&host, &RefCell::default(), &candidate, &|_| {}).unwrap();
        environment::Built { trial: report.trial, ..built.clone() }
    }

    /// Lines of the backend's log that begin like this.
    fn logged(&self, start: &str) -> usize {
        self.backend.log().iter().filter(|line| line.starts_with(start)).count()
    }

    fn pipeline<'a>(&'a self, request: &'a Request) -> Pipeline<'a> {
        self.session.pipeline_for(request)
    }
}

fn files() -> [FakeFile; 2] {
    let steady = ["test_1", "test_2"].map(FakeGroup::passing);
    let others = [
        FakeGroup::passing("test_3").first(1, Act::TakesDown(9)).first(1, Act::EndsRunner(70)),
        FakeGroup::new("test_flaky", Act::PrintsCount),
        FakeGroup::passing("test_hash").where_differs("PYTHONHASHSEED", Act::Prints("another".to_owned())),
        FakeGroup::passing("test_cold").cold(Act::Fails),
        FakeGroup::new("test_fails", Act::Fails),
    ];
    [FakeFile::new("tests/test_a.py", steady), FakeFile::new("tests/test_b.py", others)]
}

/// Instances by function, and how often each cause dropped a group.
fn contents(dataset: &Dataset) -> (Vec<String>, BTreeMap<String, usize>) {
    let function = |id: &str| id.rsplit_once("::").unwrap().1.to_owned();
    let mut ids: Vec<String> =
        dataset.instances().unwrap().iter().map(|instance| function(&instance.group_id)).collect();
    ids.sort();
    (ids, dataset.manifest.counts.total.dropped.clone())
}

#[test]
fn a_scripted_repository_becomes_a_dataset() {
    let bench = Bench::new(files());
    let dataset = bench.build(Stage::Dataset).unwrap();
    let (instances, dropped) = contents(&dataset);
    assert_eq!(instances, ["test_1", "test_2", "test_3"]);
    let causes = ["depends-on-hash-seed", "fails", "nondeterministic-outcome", "nondeterministic-output"];
    assert_eq!(dropped, causes.map(|cause| (cause.to_owned(), 1)).into());
    for instance in dataset.instances().unwrap() {
        assert_eq!((instance.trace_length, instance.attempts), (2, 10), "{}", instance.group_id);
    }
    assert!(dataset.directory.join("report.html").is_file());
    let spent = &dataset.manifest.spent;
    let count = |step: &str| spent.iter().find(|one| one.step == step).map(|one| one.count);
    assert_eq!((count("made/up screen"), count("made/up cold runs")), (Some(14), Some(5)), "{spent:?}");
    assert!(count("made/up select, gistmill itself").is_some());
}

#[test]
fn a_trace_that_did_not_come_to_its_end_is_no_short_one_to_a_rule() {
    let text = "[[rule]]\nid = 'short'\nreason = 'r'\naction = 'drop'\nmatch = {max_trace_length = 2}\n";
    let groups = [
        FakeGroup::new("test_endless_when_traced", Act::TimesOut).first(3, Act::Passes),
        FakeGroup::passing("test_short"),
    ];
    let mut bench = Bench::new([FakeFile::new("tests/test_a.py", groups)]);
    bench.session.rules = RuleSet::parse(&[("a.toml", text)]).unwrap();
    let dataset = bench.build(Stage::Dataset).unwrap();
    assert_eq!(contents(&dataset), (vec![], [("rule:short".to_owned(), 1)].into()));
    assert_eq!(dataset.manifest.counts.total.kept, 1, "it is kept, and not published");
}

#[test]
fn what_judges_beside_others_does_not_hold_up_a_build() {
    let bench = Bench::new(files());
    let request = bench.request(Stage::Collect);
    let pipeline = bench.pipeline(&request);
    let prepared = |preparation: Preparation<'_>| {
        preparation.collect(bench.pinned.clone(), bench.built.clone()).unwrap()
    };
    let is_free = |lab: &Lab| Lock::try_file(&lab.folder.with_extension("lock")).unwrap().is_some();
    for _ in ["it collects", "it is collected"] {
        let server = prepared(Preparation::new(&pipeline, &bench.repo).beside_others());
        assert!(is_free(&server.lab));
    }
    let build = prepared(Preparation::new(&pipeline, &bench.repo));
    assert!(!is_free(&build.lab));
}

#[test]
fn a_test_that_fails_by_chance_in_its_traced_run_is_nondeterministic() {
    let by_chance = FakeGroup::passing("test_chance").first(3, Act::Passes).first(1, Act::Fails);
    let groups = [
        by_chance.first(2, Act::Passes).first(1, Act::Fails),
        FakeGroup::passing("test_where_traced").first(3, Act::Passes).first(1, Act::Fails),
        FakeGroup::passing("test_steady"),
    ];
    let mut bench = Bench::new([FakeFile::new("tests/test_a.py", groups)]);
    // None of them is published, so that nothing else asks for more attempts.
    bench.session.config.dataset.kinds = Some(vec!["module".to_owned()]);
    let dataset = bench.build(Stage::Dataset).unwrap();
    let (_, dropped) = contents(&dataset);
    assert_eq!(dropped, [("nondeterministic-outcome".to_owned(), 1)].into());
    assert_eq!(dataset.manifest.counts.total.kept, 2, "what fails with a tracer alone is kept");
}

/// Of a build whose environment was tried: its dataset, collections, and attempts of the first rounds.
fn tried(switched_off: bool) -> (Bench, Dataset, usize, Option<u64>) {
    let mut bench = Bench::new(files());
    bench.is_tried = true;
    if !switched_off {
        bench.built.switched_off.clear();
    }
    let dataset = bench.build(Stage::Dataset).unwrap();
    let screen = dataset.manifest.spent.iter().find(|one| one.step == "made/up screen");
    let made = screen.map(|one| one.count);
    let collections = bench.logged("discover");
    (bench, dataset, collections, made)
}

#[test]
fn what_tried_the_environment_is_collection_and_first_round() {
    let (_bench, dataset, collections, made) = tried(false);
    assert_eq!((collections, made), (1, Some(7)), "of seven groups in two rounds");
    let untried = Bench::new(files());
    assert_eq!(contents(&dataset), contents(&untried.build(Stage::Dataset).unwrap()));
}

#[test]
fn what_was_tried_with_other_plugins_is_collected_and_run_again() {
    let (bench, _dataset, collections, made) = tried(true);
    assert!(!bench.built.quiet_options().is_empty());
    assert_eq!((collections, made), (2, Some(14)));
}

#[test]
fn what_was_done_is_not_done_again() {
    let bench = Bench::new(files());
    let first = bench.build(Stage::Dataset).unwrap();
    let (asked, instances) = (bench.backend.log().len(), contents(&first));
    let again = bench.build(Stage::Dataset).unwrap();
    assert_eq!((bench.backend.log().len(), contents(&again)), (asked, instances));
}

#[test]
fn a_build_in_steps_makes_the_same_dataset() {
    let (whole, steps) = (Bench::new(files()), Bench::new(files()));
    let reached = [Stage::Collect, Stage::Screen, Stage::Trace, Stage::Select, Stage::Confirm].map(|until| {
        assert!(steps.build(until).is_none());
        steps.backend.log().len()
    });
    assert!(reached.is_sorted() && reached[3] > reached[0], "{reached:?}");
    let (whole, steps) = (whole.build(Stage::Dataset).unwrap(), steps.build(Stage::Dataset).unwrap());
    assert_eq!(contents(&whole), contents(&steps));
    assert!(!reproducible(&whole).is_empty());
    assert_eq!(reproducible(&whole), reproducible(&steps));
}

/// The hashes of the files whose bytes are the same in every build.
fn reproducible(dataset: &Dataset) -> BTreeMap<String, String> {
    let names = dataset.manifest.reproducible.iter();
    names.map(|name| (name.clone(), dataset.manifest.files[name].clone())).collect()
}

#[test]
fn shards_make_the_same_dataset_and_a_missing_one_has_a_name() {
    let (whole, shards) = (Bench::new(files()), Bench::new(files()));
    assert!(shards.missing(None).unwrap().contains("no shard of it is finished"));
    let cache = &shards.session.cache;
    let none = shards::require_any(cache).unwrap_err().to_string();
    assert!(none.contains("has no shard of any repository"), "{none}");
    let all = ["3/3", "1/3"];
    for shard in all {
        shards.shard(shard);
    }
    shards::require_any(cache).unwrap();
    assert_eq!(shards.missing(None).unwrap(), "made/up: shard 2/3 missing");
    assert_eq!(shards.missing(Some(2)).unwrap(), "made/up: shards 1/2, 2/2 missing");
    shards.shard("2/3");
    let asked = shards.backend.log().len();
    shards.shard("2/3");
    assert_eq!((shards.missing(Some(3)), shards.backend.log().len()), (None, asked), "it is done");
    let (whole, merged) = (whole.build(Stage::Dataset).unwrap(), shards.build(Stage::Dataset).unwrap());
    assert_eq!(contents(&whole), contents(&merged));
    assert_eq!(reproducible(&whole), reproducible(&merged));
    let spent = &merged.manifest.spent;
    let count = |step: &str| spent.iter().find(|one| one.step == step).map(|one| one.count);
    assert_eq!(count("made/up screen"), Some(14), "in the shards alone: {spent:?}");
}

#[test]
fn a_build_makes_what_its_shards_lack() {
    let (whole, shards) = (Bench::new(files()), Bench::new(files()));
    shards.shard("2/3");
    let (whole, made) = (whole.build(Stage::Dataset).unwrap(), shards.build(Stage::Dataset).unwrap());
    assert_eq!((contents(&whole), reproducible(&whole)), (contents(&made), reproducible(&made)));
}
