//! Made-up repositories for tests and a benchmark: nothing in here ever ran.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::attempt::capabilities::Capabilities;
use crate::backend::Isolation;
use crate::config::{
    self, BackendKind, Config, Dataset, Docker, Limits, Repo, Screen, SourceSpec, TierBounds,
};
use crate::dataset::DatasetInput;
use crate::packed::Packed;
use crate::record::codetaste::PairRow;
use crate::record::collected::{Case, Group, Uncollected};
use crate::record::environment::{Built, PlanResult, SwitchedOff, TriedPlan};
use crate::record::evidence::{
    AttemptFacts, CollectionFacts, GroupEvidence, OnTrial, Parity, ParityDifference, RepositoryEvidence,
};
use crate::record::host::HostFacts;
use crate::record::id::{InstanceId, Name, RepoSlug};
use crate::record::instance::{Contribution, FailedRepository, TestSource};
use crate::record::outcome::{Attempt, CaseResult, Compare, Exit, Method, Outcome};
use crate::record::prompt::PromptSettings;
use crate::record::rule::RuleUse;
use crate::record::source::{Origin, Pinned, TagSearch};
use crate::record::trace::{FunctionCalls, SecondTrace, Totals, Traced};
use crate::record::variant::{Variant, VariantCase, VariantKind};
use crate::record::verdict::{Cause, Dimension, Evidence, Verdict};
use crate::record::world::World;
use crate::subset::{Measure, Range, Subset};

/// A whole input that owns its parts.
#[derive(Debug)]
pub(crate) struct MadeUp {
    pub config: Config,
    pub repositories: Vec<Contribution>,
    /// In the family `codetaste`, those that fell too.
    pub pairs: Vec<PairRow>,
    pub failed: Vec<FailedRepository>,
    pub isolation: Isolation,
    pub capabilities: Capabilities,
    pub subsets: Vec<Subset>,
    /// Holds the recipes, for as long as this lives.
    _folder: tempfile::TempDir,
}

impl MadeUp {
    /// Writes it as a dataset.
    pub(crate) fn write(&self, directory: &Path) {
        let input = DatasetInput {
            tool_version: env!("CARGO_PKG_VERSION"),
            public_config: config::to_public_json(&self.config),
            ..self.input()
        };
        super::write(directory, &input).unwrap();
    }

    /// `sizes` groups in repositories `made/up0`, `made/up1` …
    pub(crate) fn new(sizes: &[usize]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repository = |(at, size): (usize, &usize)| {
            let mut random = fastrand::Rng::with_seed(at as u64);
            repository(&format!("made/up{at}"), *size, folder.path(), &mut random)
        };
        let repositories = sizes.iter().enumerate().map(repository).collect();
        MadeUp {
            config: config(),
            repositories,
            pairs: Vec::new(),
            failed: vec![failed()],
            isolation: isolation(),
            capabilities: capabilities(),
            subsets: subsets(),
            _folder: folder,
        }
    }

    /// The input that borrows them.
    pub(crate) fn input(&self) -> DatasetInput<'_> {
        DatasetInput {
            config: &self.config,
            public_config: serde_json::json!({ "dataset": { "name": "made-up" } }),
            repositories: &self.repositories,
            pairs: &self.pairs,
            failed: &self.failed,
            isolation: &self.isolation,
            capabilities: &self.capabilities,
            tool_version: "0.0.0",
            subsets: &self.subsets,
            rules: ["drops", "never"].map(|id| (id.to_owned(), RuleUse::unused("drop"))).into(),
            passes_code_on: true,
            with_hidden: true,
            spent: Vec::new(),
        }
    }
}

fn capabilities() -> Capabilities {
    Capabilities {
        covered: [Dimension::HashSeed, Dimension::TimeZone].into(),
        not_covered: [(Dimension::Locale, "no locale".to_owned())].into(),
        time_zone: "Pacific/Chatham".into(),
        locale: None,
        clock: None,
    }
}

/// A configuration without repositories.
pub(crate) fn config() -> Config {
    Config {
        dataset: Dataset {
            name: Name::fixed("made-up"),
            version: Name::fixed("2026.11"),
            seed: 0,
            per_repo: 0,
            hard_per_axis: 5,
            family: crate::record::family::Family::Gistify,
            sample_unsolvable: false,
            kinds: None,
        },
        screen: Screen {
            attempts: 10,
            cold_runs: 1,
            parity_groups: 0,
            case_timeout: Duration::from_mins(1),
            group_timeout: Duration::from_mins(5),
            partial_groups: false,
            compare: Compare::Output,
        },
        witness: config::Witness::default(),
        mutation: config::Mutation { mutants: 0, min_score: 0.0 },
        codetaste: crate::record::codetaste::Settings::default(),
        recube: crate::record::recube::Bounds::default(),
        tier: TierBounds { medium: 50.0, hard: 80.0 },
        prompt: PromptSettings::default(),
        limits: Limits { memory: 0, processes: 0, file_size: 0, output: 0 },
        docker: Docker { base: config::BASE_IMAGE.into(), memory: 0, milli_cpus: 0, disk_budget: 0 },
        repos: Vec::new(),
        subsets: Vec::new(),
        apart: Vec::new(),
    }
}

/// `top`, one that has members and one that has none.
fn subsets() -> Vec<Subset> {
    let short = Range { min: None, max: Some(40.0) };
    let few = Subset {
        name: Name::fixed("few-short"),
        ranges: [(Measure::TraceLength, short)].into(),
        size: 7,
        ..Subset::default()
    };
    let none = Subset { name: Name::fixed("none"), repos: Some(vec![]), ..Subset::default() };
    vec![Subset::top(), few, none]
}

fn isolation() -> Isolation {
    Isolation { kind: "namespaces".into(), missing: vec!["memory is limited per process, not in sum".into()] }
}

fn failed() -> FailedRepository {
    FailedRepository {
        slug: RepoSlug::new("made/broken").unwrap(),
        stage: "environment".into(),
        message: "no interpreter satisfies >=3.99".into(),
        detail: Some("found 3.11.7, 3.12.1\n<b>bold</b>".into()),
        hint: Some("install it, or set `python`".into()),
    }
}

fn variant() -> Variant {
    let case = VariantCase {
        case: "test_0".to_owned(),
        outcome: Outcome::Failed,
        exception: Some("KeyError".to_owned()),
        message: Some("not here".to_owned()),
    };
    let source = "def test_0():\n    raise KeyError(\"not here\")\n".to_owned();
    Variant {
        kind: VariantKind::RaiseAt,
        line: 2,
        source,
        cases: vec![case],
        variation: None,
        refutes_constant: false,
    }
}

fn repository(slug: &str, size: usize, folder: &Path, random: &mut fastrand::Rng) -> Contribution {
    let slug = RepoSlug::new(slug).unwrap();
    let commit = "2ac89889f4cc330eabd50f295dcef02828522c69";
    let mut groups: Vec<_> = (0..size).map(|number| group_record(&slug, commit, number, random)).collect();
    let cases = groups.iter().map(|one| one.group.cases.len()).sum();
    let broken = Group {
        classes: vec![],
        function: String::new(),
        cases: vec![],
        ..group("tests/test_broken.py", 0, 0)
    };
    let uncollected = Uncollected {
        group: Group {
            group_id: "tests/test_broken.py".into(),
            file: "tests/test_broken.py".into(),
            ..broken
        },
        cause: Cause::CollectionError,
        text: "ImportError: no module named 'nothing'".into(),
    };
    let kept = |(number, one): (usize, &GroupEvidence)| {
        (one.verdict.is_kept() && !number.is_multiple_of(3)).then(|| one.instance_id.clone())
    };
    let published: BTreeSet<InstanceId> = groups.iter().enumerate().filter_map(kept).collect();
    groups.push(GroupEvidence {
        slug: slug.clone(),
        instance_id: InstanceId::derive(&slug, commit, &uncollected.group.group_id),
        group: uncollected.group.clone(),
        verdict: crate::screen::verdict::uncollected(&uncollected),
        attempts: Vec::new(),
        agreeing: 0,
        traced: None,
        trace_length_package: None,
        golden: Vec::new(),
        on_trial: OnTrial::default(),
    });
    groups.sort_by(|a, b| a.group.group_id.cmp(&b.group.group_id));
    let instances = groups.iter().filter(|one| published.contains(&one.instance_id));
    let tests = instances.map(|one| (one.instance_id.clone(), test_source(one, &groups))).collect();
    let evidence = RepositoryEvidence {
        pinned: Pinned { tree: tree(&slug, folder, &groups), ..pinned(&slug, commit) },
        built: built(&slug, folder),
        collected: CollectionFacts { pytest: "8.4.2".into(), cases, deselected: 2, notes: vec![] },
        rules: [("drops".to_owned(), RuleUse { action: "drop".into(), matched: size as u64, decided: 1 })]
            .into(),
        parity: Parity { compared: size / 2, differing: difference(size) },
        groups: Packed::of(groups.into_iter().map(Ok)).unwrap(),
        backend: "local".into(),
        image: None,
        host: HostFacts::default(),
    };
    let family = crate::record::family::Family::Gistify;
    let variants = published.iter().map(|id| (id.clone(), vec![variant()])).collect();
    Contribution {
        family,
        evidence,
        published,
        tests,
        witnesses: BTreeMap::new(),
        strengths: BTreeMap::new(),
        variants,
        recube: None,
        codetaste: None,
    }
}

/// Groups of a repository, as they are before they are packed.
#[cfg(test)]
pub(crate) fn groups(size: usize) -> Vec<GroupEvidence> {
    let (slug, mut random) = (RepoSlug::new("made/up0").unwrap(), fastrand::Rng::with_seed(0));
    (0..size).map(|number| group_record(&slug, &"c".repeat(40), number, &mut random)).collect()
}

fn difference(size: usize) -> Vec<ParityDifference> {
    let one = ParityDifference { group_id: group_id(0, 0), fork: "passed".into(), cold: "failed".into() };
    if size > 3 { vec![one] } else { vec![] }
}

/// The line of a test, below those of its file that come before it.
fn test_source(one: &GroupEvidence, groups: &[GroupEvidence]) -> TestSource {
    let mut of_file = groups.iter().filter(|other| other.group.file == one.group.file);
    let before = of_file.position(|other| other.group.group_id == one.group.group_id).unwrap_or_default();
    let line = u32::try_from(before).unwrap() + 3;
    TestSource { text: format!("    def {}(self): pass", one.group.function), lines: (line, line) }
}

/// The files that the groups are in.
fn tree(slug: &RepoSlug, folder: &Path, groups: &[GroupEvidence]) -> PathBuf {
    let tree = folder.join("trees").join(slug.file_name());
    fs_err::create_dir_all(&tree).unwrap();
    for file in groups.iter().map(|one| &one.group.file) {
        let path = tree.join(file);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        let tests = groups.iter().filter(|one| one.group.file == *file && !one.group.function.is_empty());
        let tests = tests
            .map(|one| format!("    def {}(self): pass\n", one.group.function))
            .collect::<Vec<_>>()
            .concat();
        let class = if tests.is_empty() { String::new() } else { format!("class TestMade:\n{tests}") };
        fs_err::write(path, format!("def test(): pass\n{class}")).unwrap();
    }
    tree
}

/// A repository of the config at a path, with nothing else asked for.
pub(crate) fn repo(slug: RepoSlug) -> Repo {
    Repo {
        slug,
        source: SourceSpec::Path { path: "a".into(), commit: None, allow_uncommitted: false },
        python: None,
        groups: None,
        extras: None,
        requirements: None,
        tests: None,
        env: BTreeMap::new(),
        backend: BackendKind::Local,
        exclude_newer: None,
        base: None,
        system_packages: Vec::new(),
        domain: None,
        targets: Vec::new(),
        scopes: Vec::new(),
        large: false,
        outside: None,
        pair: None,
        entries: crate::config::Entries::default(),
        is_scripted: false,
        locked: None,
    }
}

/// A source that is nowhere.
pub(crate) fn pinned(slug: &RepoSlug, commit: &str) -> Pinned {
    Pinned {
        slug: slug.clone(),
        origin: Origin::Git { url: format!("https://example.org/{slug}") },
        commit: commit.into(),
        pinned_at: "2026-11-01T00:00:00Z".into(),
        tree: PathBuf::from("/somewhere/private/sources/tree"),
        tree_sha256: "0".repeat(64),
        license: Some("MIT".into()),
        license_source: Some("LICENSE".into()),
        tag: TagSearch::default(),
        notes: vec![],
    }
}

/// An environment with its recipe below `folder`.
pub(crate) fn built(slug: &RepoSlug, folder: &Path) -> Built {
    let recipe_dir = folder.join(slug.file_name());
    fs_err::create_dir_all(&recipe_dir).unwrap();
    let lock = "pytest==8.4.2 --hash=sha256:00\n";
    fs_err::write(recipe_dir.join("requirements.lock"), lock).unwrap();
    fs_err::write(recipe_dir.join("Dockerfile"), "FROM scratch\n").unwrap();
    Built {
        key: "k".repeat(16),
        python: "3.12.1".into(),
        python_reason: "requires-python >=3.9".into(),
        python_prefix: PathBuf::from("/somewhere/private/python"),
        venv: PathBuf::from("/somewhere/private/venv"),
        tree: PathBuf::from("/somewhere/private/tree"),
        recipe_dir,
        lock_sha256: crate::record::id::sha256_hex(lock.as_bytes()),
        plans: vec![TriedPlan {
            name: ". + group tests".into(),
            reason: "pyproject.toml: [dependency-groups]".into(),
            requirements: vec!["pytest".into()],
            result: PlanResult::Failed {
                stage: "install".into(),
                output: "error in /somewhere/private/venv/lib/python3.12: gone".into(),
            },
        }],
        switched_off: vec![SwitchedOff {
            plugin: "pytest-xdist".into(),
            version: Some("3.8.0".into()),
            options: vec!["-p no:xdist".into()],
            reason: "distributes".into(),
        }],
        env: [("TOKEN".to_owned(), "hush-hush".to_owned())].into(),
        tests: vec![],
        notes: vec![],
        guesses: Vec::new(),
        undeclared: Vec::new(),
        trial: None,
    }
}

fn group_id(file: usize, number: usize) -> String {
    format!("tests/test_{file}.py::TestMade::test_{number:05}")
}

fn group(file: &str, number: usize, cases: usize) -> Group {
    let group_id = format!("{file}::TestMade::test_{number:05}");
    let case = |at: usize| Case {
        case_id: format!("{group_id}[a b-é{at}]"),
        parameters: Some(format!("a b-é{at}")),
        line: Some(12),
    };
    Group {
        cases: (0..cases).map(case).collect(),
        group_id,
        file: file.into(),
        classes: vec!["TestMade".into()],
        function: format!("test_{number:05}"),
        markers: vec!["parametrize".into()],
        fixtures: vec!["tmp_path".into()],
        flags: if number.is_multiple_of(7) { vec!["machine-path-in-id".into()] } else { vec![] },
        entry: None,
    }
}

fn group_record(slug: &RepoSlug, commit: &str, number: usize, random: &mut fastrand::Rng) -> GroupEvidence {
    let group = group(&format!("tests/test_{}.py", number / 50), number, random.usize(1..4));
    let dropped = cause(number, random);
    let agreeing = if dropped.is_none() { 12 } else { 0 };
    let differs = matches!(dropped, Some(Cause::NondeterministicOutcome));
    let golden: Vec<CaseResult> =
        group.cases.iter().map(|case| result(&case.case_id, dropped.is_none())).collect();
    let traced = dropped.is_none().then(|| traced(&group, random));
    let attempts: Vec<Attempt> =
        (0..if dropped.is_none() { 12 } else { 2 }).map(|at| attempt(&group, at, &golden, random)).collect();
    GroupEvidence {
        slug: slug.clone(),
        instance_id: InstanceId::derive(slug, commit, &group.group_id),
        attempts: AttemptFacts::of(&attempts),
        agreeing,
        trace_length_package: traced.as_ref().map(|traced| traced.totals.package_calls),
        traced,
        golden: if differs { vec![] } else { golden },
        on_trial: OnTrial::default(),
        verdict: dropped
            .map_or(Verdict::Kept, |cause| Verdict::Dropped { cause, evidence: evidence(&group) }),
        group,
    }
}

fn cause(number: usize, random: &mut fastrand::Rng) -> Option<Cause> {
    let causes = [
        Cause::Fails,
        Cause::Skipped,
        Cause::NondeterministicOutcome,
        Cause::DependsOn(Dimension::Clock),
        Cause::Rule("slow-tests".into()),
    ];
    (number % 4 == 3).then(|| causes[random.usize(0..causes.len())].clone())
}

fn evidence(group: &Group) -> Evidence {
    Evidence {
        summary: "one case fails </script><script>alert(1)</script>".into(),
        seen: vec!["base#0".into(), "base#1".into()],
        excerpt: "E   assert 1 == 2\n\"quoted\" & <b>not bold</b> in /somewhere/private/tree/a.py".into(),
        command: group.command().line(),
    }
}

fn result(case_id: &str, passed: bool) -> CaseResult {
    CaseResult {
        case_id: case_id.into(),
        outcome: if passed { Outcome::Passed } else { Outcome::Failed },
        exception: (!passed).then(|| "AssertionError".into()),
        stdout: "said\n".into(),
        stderr: String::new(),
        message: String::new(),
        replaced: std::collections::BTreeMap::new(),
        duration_ms: 1.5,
        command: None,
    }
}

fn attempt(group: &Group, number: u32, golden: &[CaseResult], random: &mut fastrand::Rng) -> Attempt {
    Attempt {
        group_id: group.group_id.clone(),
        world: if number == 2 { World::Everything } else { World::Base },
        number,
        method: if number == 11 { Method::Cold } else { Method::Fork },
        round: number,
        exit: if golden.is_empty() { Exit::Signaled { signal: 11 } } else { Exit::Finished },
        cases: golden.to_vec(),
        connections: vec![],
        leftover: 0,
        raw_output: String::new(),
        duration_ms: random.f64() * 40.0,
        processor_ms: 0.0,
        memory_bytes: Some(2 << 30),
        noted_at: 0,
    }
}

fn traced(group: &Group, random: &mut fastrand::Rng) -> Traced {
    let spread = 10_u64.pow(random.u32(0..4));
    let calls = |at: u32, random: &mut fastrand::Rng| FunctionCalls {
        file: if at == 0 { group.file.clone() } else { format!("src/made/part{}.py", random.u32(0..=at)) },
        function: if at == 0 { group.function.clone() } else { format!("Made.work_{at}") },
        line: 10 + at,
        calls: if at == 0 { 1 } else { random.u64(1..=9) * spread },
        order: at,
        lines: at.is_multiple_of(2).then(|| vec![10 + at, 11 + at]),
        callers: Some(at.checked_sub(1).into_iter().collect()),
    };
    let functions: Vec<_> = (0..random.u32(2..14)).map(|at| calls(at, random)).collect();
    let total_calls = functions.iter().map(|one| one.calls).sum::<u64>() + 100;
    Traced {
        group_id: group.group_id.clone(),
        totals: Totals::of(&functions, |file| file.starts_with("tests/")),
        functions,
        import_calls: 3,
        import_files: vec!["src/made/__init__.py".into()],
        threads_seen: false,
        child_calls: 0,
        troubles: vec![],
        complete: true,
        second: Some(SecondTrace { total_calls, complete: true, ..SecondTrace::default() }),
        code_sha256: crate::record::id::sha256_hex(group.group_id.as_bytes()),
    }
}
