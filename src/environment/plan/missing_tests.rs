use super::*;
use crate::environment::declared::known_names::is_known;
use crate::environment::declared::survey::of_paths;

fn wanted(findings: &Findings) -> (Vec<String>, Vec<String>) {
    let guesses = findings.guesses.iter().map(ToString::to_string).collect();
    (guesses, findings.undeclared.iter().map(ToString::to_string).collect())
}

fn of_modules(modules: &[&str], survey: &Survey) -> (Vec<String>, Vec<String>) {
    let missing_modules = modules.iter().map(|name| (*name).to_owned()).collect();
    wanted(&find(&GateReport { missing_modules, ..GateReport::default() }, survey))
}

fn of_failure(text: &str) -> (Vec<String>, Vec<String>) {
    wanted(&find(&GateReport { failure: Some(text.to_owned()), ..GateReport::default() }, &Survey::default()))
}

#[test]
fn well_known_import_names_have_their_distribution() {
    for (module, name) in [
        ("yaml", "PyYAML"),
        ("PIL.Image", "pillow"),
        ("sklearn.svm", "scikit-learn"),
        ("six", "six"),
        ("google.protobuf.message", "protobuf"),
        ("pytest_mock", "pytest-mock"),
    ] {
        assert_eq!(distribution(module), Some(name));
    }
    for nothing in ["tests.helpers", "_private", "", "a-b", "acme_internal", "google", "yaml2"] {
        assert_eq!(distribution(nothing), None, "{nothing}");
    }
}

#[test]
fn tables_hold_requirements_and_each_import_once() {
    let known: Vec<&str> = names(Kind::Import).map(|(import, _)| import).collect();
    assert!(known.is_sorted_by(|one, next| one < next), "sorted by import name");
    for kind in [Kind::Import, Kind::Option, Kind::Plugin] {
        assert!(names(kind).count() > 20, "{kind:?}");
        assert!(names(kind).all(|(_, distribution)| parse(distribution).is_some()), "{kind:?}");
    }
    assert!(is_known("pyyaml") && is_known("setuptools") && is_known("pytest-env") && !is_known("acme"));
}

#[test]
fn what_nobody_knows_is_told_and_never_guessed() {
    let (guesses, undeclared) = of_modules(&["yaml", "acme_internal", "acme.deep"], &Survey::default());
    assert_eq!(guesses, ["PyYAML for `import yaml`"]);
    assert_eq!(undeclared, ["`import acme.deep`", "`import acme_internal`"]);
    // What is no name of a module is not shown either.
    assert_eq!(
        of_modules(&["a b", "x\n[y](z)", "", ".", &"a".repeat(200)], &Survey::default()),
        (vec![], vec![])
    );
}

#[test]
fn no_module_of_the_tree_yields_a_distribution() {
    // Wherever a module lies, and whatever it is called: not even what everybody knows.
    let folders = ["", "src", "packages/a/src", "libs/python/b", "tests/helpers"];
    for (import, _) in names(Kind::Import) {
        let top = import.split('.').next().unwrap();
        for folder in folders {
            for file in [format!("{top}.py"), format!("{top}/__init__.py"), format!("{top}/sub/part.py")] {
                let path = if folder.is_empty() { file } else { format!("{folder}/{file}") };
                let survey = of_paths([path.as_str(), "tests/__init__.py", "tests/test_a.py"]);
                let (guesses, undeclared) = of_modules(&[import], &survey);
                assert!(guesses.is_empty(), "{path}: {guesses:?}");
                let place = if folder.is_empty() { "the root" } else { folder };
                assert_eq!(undeclared, [format!("`import {import}` (in {place} of the tree)")]);
            }
        }
    }
}

#[test]
fn nothing_is_guessed_when_not_all_of_the_tree_was_looked_at() {
    let survey = Survey { is_cut: true, ..Survey::default() };
    let report = GateReport {
        missing_modules: vec!["yaml".to_owned()],
        failure: Some("unrecognized arguments: --cov\nMissing required plugins: pytest-env".to_owned()),
        ..GateReport::default()
    };
    let (guesses, undeclared) = wanted(&find(&report, &survey));
    assert!(guesses.is_empty());
    assert_eq!(undeclared, ["`--cov`", "`import yaml`", "`required plugin pytest-env`"]);
}

#[test]
fn refused_options_name_their_plugin() {
    let (guesses, undeclared) = of_failure(
        "ERROR: usage: __main__.py [options]\n__main__.py: error: unrecognized arguments: --cov=x --cov-report=xml -n4 \
         --acme-secret=hush value",
    );
    assert_eq!(guesses, ["pytest-cov for `--cov`", "pytest-cov for `--cov-report`", "pytest-xdist for `-n`"]);
    assert_eq!(undeclared, ["`--acme-secret`"]);
}

#[test]
fn required_plugins_are_guessed_only_when_they_are_known() {
    let (guesses, undeclared) = of_failure(
        "Missing required plugins: pytest-env>=1, Pytest_Mock, acme-plugin, pytest-django @ https://host/x, no name",
    );
    assert_eq!(
        guesses,
        ["pytest-env>=1 for `required plugin pytest-env`", "pytest-mock for `required plugin pytest-mock`"]
    );
    assert_eq!(undeclared, ["`required plugin acme-plugin`", "`required plugin pytest-django`"]);
}

#[test]
fn modules_in_a_failure_go_the_same_way() {
    let (guesses, undeclared) = of_failure(
        "ModuleNotFoundError: No module named 'yaml'\nError importing plugin: No module named \"acme\"",
    );
    assert_eq!((guesses.len(), undeclared), (1, vec!["`import acme`".to_owned()]));
}

#[test]
fn what_is_still_missing_is_told_whether_it_was_guessed_or_not() {
    let missing_modules = vec!["yaml".to_owned(), "acme".to_owned()];
    let told = undeclared(&GateReport { missing_modules, ..GateReport::default() }, &Survey::default());
    assert_eq!(
        told.iter().map(|one| one.wanted.as_str()).collect::<Vec<_>>(),
        ["import acme", "import yaml"]
    );
    let error = refuse(&told).unwrap_err();
    assert_eq!(error.fault(), crate::error::Fault::Repository);
    let hint = error.hint().unwrap();
    assert!(hint.contains("`import acme`, `import yaml`") && hint.contains("requirements = ["), "{hint}");
    assert!(refuse(&[]).is_ok());
}

#[test]
fn well_known_errors_imply_what_they_do_not_name() {
    for (text, expected) in [
        ("E   django.core.exceptions.AppRegistryNotReady: Apps aren't loaded yet.", Some("pytest-django")),
        (
            "django.core.exceptions.ImproperlyConfigured: Requested setting INSTALLED_APPS",
            Some("pytest-django"),
        ),
        ("E   ImportError: numpy.core.multiarray failed to import", Some("numpy")),
        ("E   acme.AppRegistryNotReady: no", None),
    ] {
        let found: Vec<String> = implied(text).map(|guess| guess.distribution).collect();
        assert_eq!(found, Vec::from_iter(expected), "{text}");
    }
    let implied = implied("django.core.exceptions.AppRegistryNotReady: no").collect();
    let report = GateReport { implied, ..GateReport::default() };
    let (guesses, _) = wanted(&find(&report, &Survey::default()));
    assert_eq!(guesses, ["pytest-django for `tests of Django that nothing sets up`"]);
    let cut = Survey { is_cut: true, ..Survey::default() };
    assert!(find(&report, &cut).guesses.is_empty());
}
