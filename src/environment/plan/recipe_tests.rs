use super::*;
use crate::record::id::RepoSlug;
use crate::testing::made_up;

fn repo() -> config::Repo {
    made_up::repo(RepoSlug::new("a/b").unwrap())
}

fn fallbacks(texts: &[(&str, &str)]) -> Fallbacks {
    let files = Files::from_texts(texts.iter().copied());
    Fallbacks::new(&files, &Project::parse(&files).unwrap(), &repo(), &[]).unwrap()
}

fn insufficient(missing: &[&str]) -> Outcome {
    let guess = |name: &&str| Guess { distribution: (*name).to_owned(), wanted: format!("import {name}") };
    collected(false, missing.iter().map(guess).collect())
}

fn collected(is_good: bool, missing: BTreeSet<Guess>) -> Outcome {
    let report = GateReport { collection_errors: usize::from(!is_good), ..GateReport::default() };
    Outcome::Collected { lock: Lock::default(), report, missing }
}

/// A plan that could not be installed, because the index does not have these.
fn failed(unknown: &[&str]) -> Outcome {
    let unknown = unknown.iter().map(|name| (*name).to_owned()).collect();
    Outcome::Failed(Failure {
        stage: "resolving".to_owned(),
        output: String::new(),
        hint: "",
        unknown,
        is_refused: false,
    })
}

/// All plans, where this answers for each.
fn all_plans(fallbacks: &Fallbacks, mut answer: impl FnMut(usize) -> Outcome) -> Vec<InstallPlan> {
    let mut tried = Vec::new();
    while let Some(plan) = fallbacks.next(&tried) {
        assert!(tried.len() < 40, "the plans do not end");
        let outcome = answer(tried.len());
        tried.push((plan, outcome));
    }
    tried.into_iter().map(|(plan, _)| plan).collect()
}

fn written(plans: &[InstallPlan]) -> Vec<Vec<String>> {
    plans.iter().map(InstallPlan::written).collect()
}

const PYPROJECT: &str = "[project]\nname = 'Pkg'\n[project.optional-dependencies]\ntest = ['x']\nsocks = ['PySocks']\n\
    [dependency-groups]\ntests = ['pytest>=7', 'pkg[socks]']\ntest-min = ['six']\ndev = ['ruff', {include-group = 'tests'}]\n\
    docs = ['sphinx']\n";

#[test]
fn plans_go_from_test_declarations_to_automation_files() {
    let fallbacks = fallbacks(&[
        ("pyproject.toml", PYPROJECT),
        ("requirements-dev.txt", "mock\n"),
        ("requirements/test.in", "trio\n-c pins.txt\n"),
        ("requirements/pins.txt", "trio<1\n"),
        ("requirements/test.txt", "trio==0.1\n"),
        ("requirements-docs.txt", "furo\n"),
        ("tox.ini", "[testenv]\ndeps = coverage\n"),
    ]);
    let plans = all_plans(&fallbacks, |_| insufficient(&[]));
    assert_eq!(
        written(&plans)[..3],
        [
            vec![".[socks,test]", "pytest>=7"],
            vec![".[socks,test]", "pytest>=7", "six"],
            vec![".[socks,test]", "pytest>=7", "ruff", "six"],
        ]
    );
    let last = plans.last().unwrap();
    assert_eq!(
        last.written(),
        [".[socks,test]", "coverage", "mock", "pytest>=7", "ruff", "six", "trio", "-c trio<1"]
    );
    assert_eq!(plans.len(), 6);
    assert!(plans[0].name.contains("group tests") && plans[0].reason.contains("[dependency-groups] tests"));
}

#[test]
fn a_good_plan_is_the_last() {
    let plans = all_plans(&fallbacks(&[("pyproject.toml", PYPROJECT)]), |_| collected(true, BTreeSet::new()));
    assert_eq!(plans.len(), 1);
}

#[test]
fn a_tree_that_declares_nothing_gets_pytest_and_then_what_is_missing() {
    let plans = all_plans(&fallbacks(&[]), |number| {
        insufficient(if number == 0 { &["PyYAML"] } else { &["PyYAML", "six"] })
    });
    assert_eq!(
        written(&plans),
        [vec![".", "pytest"], vec![".", "PyYAML", "pytest"], vec![".", "PyYAML", "pytest", "six"]]
    );
}

#[test]
fn sources_that_fail_are_left_out_of_later_plans() {
    let fallbacks = fallbacks(&[("pyproject.toml", PYPROJECT), ("requirements-dev.txt", "mock\n")]);
    let plans = all_plans(&fallbacks, |number| if number == 1 { failed(&[]) } else { insufficient(&[]) });
    assert!(plans[1].requirements.contains("six"));
    assert!(plans[2..].iter().all(|plan| !plan.requirements.contains("six")));
    assert!(plans.last().unwrap().requirements.contains("mock"));
}

#[test]
fn a_source_that_is_left_out_still_says_what_its_distributions_must_be() {
    let fallbacks = fallbacks(&[("requirements.txt", "six==1.17.0 --hash=sha256:aa\n")]);
    let answer = |number| if number == 0 { failed(&[]) } else { insufficient(&["six"]) };
    let plans = all_plans(&fallbacks, answer);
    let guessed: Vec<_> = plans.iter().filter(|plan| plan.requirements.contains("six")).collect();
    assert!(!guessed.is_empty(), "{:?}", written(&plans));
    assert!(guessed.iter().all(|plan| plan.hashes.contains_key("six==1.17.0")), "{guessed:?}");
}

#[test]
fn guesses_that_the_index_does_not_have_are_dropped() {
    let plans = all_plans(&fallbacks(&[]), |number| match number {
        0 => insufficient(&["nope_x", "six"]),
        1 => failed(&["nope-x"]),
        _ => insufficient(&["nope_x"]),
    });
    assert_eq!(plans.len(), 3);
    assert_eq!(plans[2].written(), [".", "pytest", "six"]);
}

#[test]
fn the_configuration_overrides_every_rung() {
    let files = Files::from_texts([("pyproject.toml", PYPROJECT), ("ci/reqs.txt", "trio\n")]);
    let project = Project::parse(&files).unwrap();
    let mut repo = repo();
    repo.groups = Some(vec!["Test_Min".to_owned()]);
    repo.requirements = Some(vec!["ci/reqs.txt".to_owned(), "mock>=2".to_owned()]);
    let fallbacks = Fallbacks::new(&files, &project, &repo, &[]).unwrap();
    let plans = all_plans(&fallbacks, |_| insufficient(&["yaml"]));
    assert_eq!(written(&plans), [vec![".", "mock>=2", "pytest", "six", "trio"]]);
    assert_eq!(all_plans(&fallbacks, |_| failed(&[])).len(), 1);

    repo.groups = Some(vec![]);
    repo.requirements = None;
    let bare = Fallbacks::new(&files, &project, &repo, &[]).unwrap();
    assert_eq!(written(&all_plans(&bare, |_| insufficient(&[]))), [vec![".", "pytest"]]);
}

#[test]
fn unknown_groups_of_the_configuration_are_named_with_the_known_ones() {
    let files = Files::from_texts([("pyproject.toml", PYPROJECT)]);
    let project = Project::parse(&files).unwrap();
    let repo = config::Repo { groups: Some(vec!["testz".to_owned()]), ..repo() };
    let error = Fallbacks::new(&files, &project, &repo, &[]).unwrap_err();
    assert!(error.to_string().contains("testz"));
    assert_eq!(error.hint(), Some("known: dev, docs, test-min, tests"));
}

#[test]
fn setup_cfg_extras_and_tests_require_make_the_first_rung() {
    let cfg =
        "[metadata]\nname = old\n[options]\ntests_require =\n  mock\n[options.extras_require]\ntesting = x\n";
    let plans = all_plans(&fallbacks(&[("setup.cfg", cfg)]), |_| collected(true, BTreeSet::new()));
    assert_eq!(written(&plans), [vec![".[testing]", "mock", "pytest"]]);
}

#[test]
fn a_pytest_with_a_marker_does_not_stand_in_for_pytest() {
    let text = "[dependency-groups]\ntest = [\"pytest>=8 ; python_version < '3'\"]\n";
    let plans = all_plans(&fallbacks(&[("pyproject.toml", text)]), |_| insufficient(&[]));
    assert!(plans[0].requirements.contains("pytest"));
}

#[test]
fn a_plan_knows_what_nobody_declares() {
    let texts = [("pyproject.toml", "[dependency-groups]\ntest = ['six>=1']\n")];
    let plans = all_plans(&fallbacks(&texts), |_| insufficient(&["PyYAML", "six"]));
    assert!(plans[0].guesses().is_empty());
    let guesses: Vec<String> = plans[1].guesses().iter().map(ToString::to_string).collect();
    assert_eq!(guesses, ["PyYAML for `import PyYAML`"], "six is declared");
}

/// A workspace of two members that no index has: neither is ever asked for, whatever names them.
#[test]
fn members_of_a_workspace_are_asked_of_no_index() {
    let root = "[tool.uv.workspace]\nmembers = ['packages/*']\n[dependency-groups]\n\
                test = ['pytest', 'acme-alpha[x]>=1', 'six']\n";
    let files = Files::from_texts([
        ("pyproject.toml", root),
        ("packages/alpha/pyproject.toml", "[project]\nname = 'acme_alpha'\ndependencies = ['acme-beta']\n"),
        ("packages/alpha/src/alpha/__init__.py", "import yaml"),
        ("packages/beta/pyproject.toml", "[project]\nname = 'acme_beta'\n"),
        ("packages/beta/src/yaml/__init__.py", ""),
        ("requirements-dev.txt", "acme_beta\nmock\n-c pins.txt\n"),
        ("pins.txt", "acme-alpha==1\nmock<9\n"),
    ]);
    let mut project = Project::parse(&files).unwrap();
    project.own_distributions = crate::environment::declared::own::distributions(&files, &project, &[]);
    let fallbacks = Fallbacks::new(&files, &project, &repo(), &[]).unwrap();
    let report = crate::environment::GateReport {
        missing_modules: ["alpha", "yaml", "acme_beta"].map(str::to_owned).into(),
        ..Default::default()
    };
    let found = crate::environment::plan::missing::find(&report, &files.survey);
    assert!(found.guesses.is_empty(), "{found:?}");
    assert_eq!(found.undeclared.len(), 3);
    let plans = all_plans(&fallbacks, |_| collected(false, found.guesses.clone()));
    let last = plans.last().unwrap().written();
    assert_eq!(last, [".", "mock", "pytest", "six", "-c mock<9"]);
    let left_out: Vec<&String> = fallbacks.sources.iter().flat_map(|source| &source.lines.left_out).collect();
    assert_eq!(
        left_out,
        [
            "acme-alpha, which is the tree's own (packages/alpha/pyproject.toml)",
            "acme-beta, which is the tree's own (packages/beta/pyproject.toml)"
        ]
    );
    let repo = config::Repo { requirements: Some(vec!["Acme_Beta>=2".to_owned()]), ..repo() };
    let error = Fallbacks::new(&files, &project, &repo, &[]).unwrap_err();
    assert!(error.to_string().contains("packages/beta/pyproject.toml declares it"), "{error}");
}

#[test]
fn requirements_of_the_configuration_that_cannot_be_installed_are_errors() {
    let files = Files::from_texts([("requirements/test.txt", "six\n")]);
    let project = Project::parse(&files).unwrap();
    let answer = |entry: &str| {
        let repo = config::Repo { requirements: Some(vec![entry.to_owned()]), ..repo() };
        Fallbacks::new(&files, &project, &repo, &[])
            .map(|fallbacks| fallbacks.sources[0].lines.requirements.clone())
    };
    assert_eq!(answer("./requirements/test.txt").unwrap(), ["six"]);
    for (entry, words) in [
        ("requirements.txt", "requirements.txt is neither a file of the tree"),
        ("dev.in", "dev.in is neither a file of the tree"),
        ("setup.cfg", "setup.cfg is neither a file of the tree"),
        ("requirements/dev", "requirements/dev is neither a file of the tree"),
        ("pkg @ file:///etc/passwd", "pkg from a local path"),
        ("pkg @ https://me:hush@host/pkg.whl", "pkg from a URL with credentials"),
        ("machine x login y", "an entry, which is not a requirement"),
    ] {
        let error = answer(entry).unwrap_err();
        assert_eq!(error.fault(), crate::error::Fault::Repository);
        assert!(error.to_string().contains(words) && error.hint().is_some(), "{error}");
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}

#[test]
fn members_bring_their_test_requirements_and_are_asked_for_by_extras_alone() {
    let files = Files::from_texts([
        (
            "pyproject.toml",
            "[project]\nname = 'root'\n[tool.uv.workspace]\nmembers = ['packages/*']\n\
             [dependency-groups]\ntest = ['pytest', 'pkg-a[x]>=1', 'pkg-b']\n",
        ),
        (
            "packages/a/pyproject.toml",
            "[project]\nname = 'pkg-a'\n[project.optional-dependencies]\ntest = ['t']\n\
             [dependency-groups]\ndev = ['mock']\n",
        ),
    ]);
    let mut project = Project::parse(&files).unwrap();
    project.own_distributions = crate::environment::declared::own::distributions(&files, &project, &[]);
    project.own_distributions.insert("pkg-b".to_owned(), "packages/b".to_owned());
    let members = crate::environment::declared::members::declared(&files, &project, std::iter::empty());
    let fallbacks = Fallbacks::new(&files, &project, &repo(), &members).unwrap();
    let plans = all_plans(&fallbacks, |_| insufficient(&[]));
    assert_eq!(
        written(&plans),
        [vec![".", "pkg-a[test,x]", "pytest"], vec![".", "mock", "pkg-a[test,x]", "pytest"]]
    );
    assert!(fallbacks.left_out(&plans[0])[0].contains("pkg-b, which is the tree's own"));
    assert!(plans[0].name.contains("extra test of packages/a"), "{}", plans[0].name);
}

#[test]
fn a_folder_of_the_tree_can_be_asked_for() {
    let files = Files::from_texts([("packages/a/pyproject.toml", "[project]\nname = 'pkg-a'\n")]);
    let project = Project::parse(&files).unwrap();
    let repo =
        config::Repo { requirements: Some(vec!["./packages/a[x]".to_owned(), "six".to_owned()]), ..repo() };
    let lines = crate::environment::declared::sources::all_lines(&files, &project, &repo);
    let members = crate::environment::declared::members::declared(&files, &project, lines.iter());
    let fallbacks = Fallbacks::new(&files, &project, &repo, &members).unwrap();
    let plan = fallbacks.next(&[]).unwrap();
    assert_eq!(plan.written(), [".", "pkg-a[x]", "pytest", "six"]);
    let missing = config::Repo { requirements: Some(vec!["./packages/b".to_owned()]), ..repo };
    let error = Fallbacks::new(&files, &project, &missing, &members).unwrap_err();
    assert!(error.to_string().contains("./packages/b is neither"), "{error}");
}

/// Every combination of declared sources and answers: there is an end, and no set comes twice.
#[test]
fn the_ladder_never_proposes_a_set_twice() {
    let sources: [(&str, &str); 5] = [
        ("requirements-test.txt", "a\n"),
        ("requirements-dev.txt", "a\nb\n"),
        ("tox.ini", "[testenv]\ndeps =\n  b\n  c\n"),
        ("noxfile.py", "def tests(session):\n    session.install('c', 'pytest')\n"),
        ("pyproject.toml", "[dependency-groups]\ntest = ['a', 'c']\ndev = ['a', 'c']\n"),
    ];
    for chosen in 0_u32..32 {
        let texts: Vec<(&str, &str)> =
            (0..5).filter(|bit| chosen & (1 << bit) != 0).map(|bit| sources[bit]).collect();
        let fallbacks = fallbacks(&texts);
        for answers in 0_u32..243 {
            let plans = all_plans(&fallbacks, |number| {
                match answers / 3_u32.pow(u32::try_from(number % 5).unwrap()) % 3 {
                    0 => insufficient(&[]),
                    1 => insufficient(&["b", "d"]),
                    _ => failed(if answers % 2 == 0 { &[] } else { &["d"] }),
                }
            });
            for (number, plan) in plans.iter().enumerate() {
                assert!(!plans[..number].iter().any(|other| other.same_set(plan)), "{:?}", written(&plans));
                assert!(plan.requirements.iter().any(|text| text.starts_with("pytest")));
            }
        }
    }
}

fn asking(text: &str) -> Outcome {
    let report = GateReport { failure: Some(format!("No module named '{text}'")), ..GateReport::default() };
    Outcome::Collected { lock: Lock::default(), report, missing: BTreeSet::new() }
}

#[test]
fn what_collection_misses_is_taken_from_wherever_the_tree_declares_it() {
    let fallbacks = fallbacks(&[
        ("pyproject.toml", "[project]\nname = 'pkg'\n[dependency-groups]\ntest = ['pytest']\n"),
        ("requirements.txt", "-e .\nsphinx==1\ntrio==0.1\n"),
    ]);
    let plans = all_plans(&fallbacks, |number| match number {
        0 => asking("trio"),
        1 => failed(&[]),
        _ => collected(true, BTreeSet::new()),
    });
    assert_eq!(
        written(&plans),
        [
            vec![".", "pytest"],
            vec![".", "pytest", "sphinx==1", "trio==0.1"],
            vec![".", "pytest", "trio==0.1"], // the whole file could not be installed
        ]
    );
    assert!(plans[2].name.contains("trio of requirements.txt"), "{}", plans[2].name);
}

#[test]
fn what_nothing_declares_is_not_asked_for_because_a_test_names_it() {
    let fallbacks = fallbacks(&[(
        "pyproject.toml",
        "[project]\nname = 'pkg'\n[project.optional-dependencies]\nall = ['scipy']\n",
    )]);
    let plans = all_plans(&fallbacks, |_| asking("acme_internal"));
    assert_eq!(written(&plans), [vec![".", "pytest"]]);
}

#[test]
fn tests_that_ask_for_something_lead_to_the_smallest_extra_that_has_it() {
    let fallbacks = fallbacks(&[(
        "pyproject.toml",
        "[project]\nname = 'pkg'\n[project.optional-dependencies]\nall = ['scipy', 'x', 'y']\nstats = ['SciPy>1', 'x']\n\
         own = ['pkg[stats]']\ndiagrams = ['railroad-diagrams', 'z']\n",
    )]);
    let first = fallbacks.next(&[]).unwrap();
    let tried = vec![(first.clone(), collected(true, BTreeSet::new()))];
    assert_eq!(fallbacks.next(&tried), None, "the collection is good");
    let asked = |name: &str| BTreeSet::from([name.to_owned()]);
    let plan = fallbacks.beyond(&first, &asked("scipy"), &tried).unwrap();
    assert_eq!(plan.written(), [".[stats]", "pytest"]);
    assert!(plan.reason.contains("extra stats of the project, which tests ask for"), "{}", plan.reason);
    let of_another_name = fallbacks.beyond(&first, &asked("~railroad"), &tried).unwrap();
    assert_eq!(of_another_name.written(), [".[diagrams]", "pytest"]);
    assert_eq!(fallbacks.beyond(&plan, &asked("x"), &tried), None, "it is there");
    assert_eq!(fallbacks.beyond(&first, &asked("numpy"), &tried), None);
    assert_eq!(fallbacks.beyond(&first, &asked("pkg"), &tried), None, "the tree is installed");
}

#[test]
fn a_tree_that_is_no_project_gets_what_it_runs_with() {
    let fallbacks = fallbacks(&[("requirements.txt", "django\n"), ("requirements-dev.txt", "mock\n")]);
    let plans = all_plans(&fallbacks, |_| insufficient(&[]));
    assert_eq!(written(&plans)[..2], [vec![".", "django", "pytest"], vec![".", "django", "mock", "pytest"]]);
}

#[test]
fn a_list_of_which_something_cannot_be_had_is_tried_without_that() {
    let list = "a @ git+https://h.example/a\nb==1\nc==2\npytest\n";
    let fallbacks = fallbacks(&[("requirements-test.txt", list)]);
    let plans = all_plans(&fallbacks, |number| match number {
        0 => failed(&[]),
        1 => failed(&["C"]),
        _ => insufficient(&[]),
    });
    let lists: Vec<Vec<String>> = written(&plans).into_iter().take(3).collect();
    assert_eq!(
        lists,
        [
            vec![".", "a @ git+https://h.example/a", "b==1", "c==2", "pytest"],
            vec![".", "b==1", "c==2", "pytest"],
            vec![".", "b==1", "pytest"],
        ]
    );
    let left_out = fallbacks.left_out(&plans[2]);
    assert_eq!(left_out, ["left out a, which cannot be had", "left out c, which cannot be had"]);
    let never = all_plans(&fallbacks, |_| failed(&[]));
    assert_eq!(
        written(&never),
        [lists[0].clone(), lists[1].clone(), vec![".".to_owned(), "pytest".to_owned()]]
    );
}
