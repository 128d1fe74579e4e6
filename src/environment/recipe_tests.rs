use super::*;
use crate::config::{BackendKind, SourceSpec};
use crate::record::id::RepoSlug;

fn repo() -> config::Repo {
    config::Repo {
        slug: RepoSlug::new("a/b").unwrap(),
        source: SourceSpec::Path { path: "x".into(), commit: None, allow_uncommitted: false },
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
    }
}

fn ladder(texts: &[(&str, &str)]) -> Ladder {
    let files = Files::from_texts(texts.iter().copied());
    Ladder::new(&files, &Project::parse(&files).unwrap(), &repo()).unwrap()
}

fn insufficient(missing: &[&str]) -> Outcome {
    Outcome::Collected { good: false, missing: missing.iter().map(|name| (*name).to_owned()).collect() }
}

/// Climbs with one answer for every rung; gives what each rung wrote.
fn climb(ladder: &Ladder, mut answer: impl FnMut(usize) -> Outcome) -> Vec<Plan> {
    let mut tried = Vec::new();
    while let Some(plan) = ladder.next(&tried) {
        assert!(tried.len() < 40, "the ladder does not end");
        let outcome = answer(tried.len());
        tried.push((plan, outcome));
    }
    tried.into_iter().map(|(plan, _)| plan).collect()
}

fn written(plans: &[Plan]) -> Vec<Vec<String>> {
    plans.iter().map(Plan::written).collect()
}

const PYPROJECT: &str = "[project]\nname = 'Pkg'\n[project.optional-dependencies]\ntest = ['x']\nsocks = ['PySocks']\n\
    [dependency-groups]\ntests = ['pytest>=7', 'pkg[socks]']\ntest-min = ['six']\ndev = ['ruff', {include-group = 'tests'}]\n\
    docs = ['sphinx']\n";

#[test]
fn rungs_go_from_test_declarations_to_automation_files() {
    let ladder = ladder(&[
        ("pyproject.toml", PYPROJECT),
        ("requirements-dev.txt", "mock\n"),
        ("requirements/test.in", "trio\n-c pins.txt\n"),
        ("requirements/pins.txt", "trio<1\n"),
        ("requirements/test.txt", "trio==0.1\n"),
        ("requirements-docs.txt", "furo\n"),
        ("tox.ini", "[testenv]\ndeps = coverage\n"),
    ]);
    let plans = climb(&ladder, |_| insufficient(&[]));
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
fn a_good_rung_ends_the_ladder() {
    let plans = climb(&ladder(&[("pyproject.toml", PYPROJECT)]), |_| Outcome::Collected {
        good: true,
        missing: vec![],
    });
    assert_eq!(plans.len(), 1);
}

#[test]
fn a_tree_that_declares_nothing_gets_pytest_and_then_what_is_missing() {
    let plans = climb(&ladder(&[]), |number| {
        insufficient(if number == 0 { &["PyYAML"] } else { &["PyYAML", "six"] })
    });
    assert_eq!(
        written(&plans),
        [vec![".", "pytest"], vec![".", "PyYAML", "pytest"], vec![".", "PyYAML", "pytest", "six"]]
    );
}

#[test]
fn sources_that_fail_are_left_out_of_later_rungs() {
    let ladder = ladder(&[("pyproject.toml", PYPROJECT), ("requirements-dev.txt", "mock\n")]);
    let plans =
        climb(
            &ladder,
            |number| if number == 1 { Outcome::Failed { unknown: vec![] } } else { insufficient(&[]) },
        );
    assert!(plans[1].requirements.contains("six"));
    assert!(plans[2..].iter().all(|plan| !plan.requirements.contains("six")));
    assert!(plans.last().unwrap().requirements.contains("mock"));
}

#[test]
fn guesses_that_the_index_does_not_have_are_dropped() {
    let plans = climb(&ladder(&[]), |number| match number {
        0 => insufficient(&["nope_x", "six"]),
        1 => Outcome::Failed { unknown: vec!["nope-x".to_owned()] },
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
    let ladder = Ladder::new(&files, &project, &repo).unwrap();
    let plans = climb(&ladder, |_| insufficient(&["yaml"]));
    assert_eq!(written(&plans), [vec![".", "mock>=2", "pytest", "six", "trio"]]);
    assert_eq!(climb(&ladder, |_| Outcome::Failed { unknown: vec![] }).len(), 1);

    repo.groups = Some(vec![]);
    repo.requirements = None;
    let bare = Ladder::new(&files, &project, &repo).unwrap();
    assert_eq!(written(&climb(&bare, |_| insufficient(&[]))), [vec![".", "pytest"]]);
}

#[test]
fn unknown_groups_of_the_configuration_are_named_with_the_known_ones() {
    let files = Files::from_texts([("pyproject.toml", PYPROJECT)]);
    let project = Project::parse(&files).unwrap();
    let repo = config::Repo { groups: Some(vec!["testz".to_owned()]), ..repo() };
    let error = Ladder::new(&files, &project, &repo).unwrap_err();
    assert!(error.to_string().contains("testz"));
    assert_eq!(error.hint(), Some("known: dev, docs, test-min, tests"));
}

#[test]
fn setup_cfg_extras_and_tests_require_make_the_first_rung() {
    let cfg =
        "[metadata]\nname = old\n[options]\ntests_require =\n  mock\n[options.extras_require]\ntesting = x\n";
    let plans = climb(&ladder(&[("setup.cfg", cfg)]), |_| Outcome::Collected { good: true, missing: vec![] });
    assert_eq!(written(&plans), [vec![".[testing]", "mock", "pytest"]]);
}

#[test]
fn a_pytest_with_a_marker_does_not_stand_in_for_pytest() {
    let text = "[dependency-groups]\ntest = [\"pytest>=8 ; python_version < '3'\"]\n";
    let plans = climb(&ladder(&[("pyproject.toml", text)]), |_| insufficient(&[]));
    assert!(plans[0].requirements.contains("pytest"));
}

/// Every combination of declared sources and answers: the ladder ends and proposes no set twice.
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
        let ladder = ladder(&texts);
        for answers in 0_u32..243 {
            let plans =
                climb(&ladder, |number| match answers / 3_u32.pow(u32::try_from(number % 5).unwrap()) % 3 {
                    0 => insufficient(&[]),
                    1 => insufficient(&["b", "d"]),
                    _ => Outcome::Failed {
                        unknown: if answers % 2 == 0 { vec![] } else { vec!["d".to_owned()] },
                    },
                });
            for (number, plan) in plans.iter().enumerate() {
                assert!(!plans[..number].iter().any(|other| other.same_set(plan)), "{:?}", written(&plans));
                assert!(plan.requirements.iter().any(|text| text.starts_with("pytest")));
            }
        }
    }
}
