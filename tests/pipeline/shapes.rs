//! Repositories of the shapes that people have, each a small tree: all of their groups are kept, without a word of
//! configuration.

use std::collections::BTreeMap;

use crate::common::Bench;
use crate::common::dataset::text;

/// A tree, the groups of it that are kept, and those that are not, each with its cause.
type Shape = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const SEVERAL_PROJECTS: &[Shape] = &[
    // A uv workspace whose root needs its members, one of which configures pytest for itself.
    (
        "workspace",
        &[
            "packages/alpha/tests/test_alpha.py::test_one",
            "packages/beta/tests/test_alpha.py::test_g",
            "tests/test_root.py::test_f",
        ],
        &[],
    ),
    // Two projects, one of which needs the other one, and nothing at the root; their folders of tests bear one name.
    ("several_projects", &["one/tests/test_it.py::test_f", "two/tests/test_it.py::test_f"], &[]),
    // A project below another one, which nothing but its tests speaks of.
    ("needed_project", &["plugins/extra/tests/test_extra.py::test_f"], &[]),
    // What the project at the root is built with is another one below it.
    ("own_backend", &["tests/test_thing.py::test_is_installed"], &[]),
    // A project at the root that no backend builds: it says nothing of which of its two packages it is.
    ("two_packages_at_the_root", &["tests/test_web.py::test_page"], &[]),
    // An application that poetry manages and that is no package: its backend finds none of that name.
    ("poetry_application", &["tests/test_shop.py::test_price"], &[]),
    // Some tests need a project below the root with which nothing can be installed: the others are kept.
    (
        "a_part_contradicts",
        &["tests/test_pkg.py::test_double"],
        &[("tests/test_more.py", "collection-error")],
    ),
];

const DECLARATIONS: &[Shape] = &[
    // A failure and a skip that name what two extras have.
    (
        "asks_for_more",
        &[
            "tests/test_asks.py::test_plain",
            "tests/test_asks.py::test_sign",
            "tests/test_stats.py::test_stats",
        ],
        &[],
    ),
    // pytest's configuration names a module that one line of a file has, whose other lines contradict each other.
    ("filters_warnings", &["tests/test_a.py::test_f"], &[]),
    ("sets_variables", &["test_mode.py::test_mode"], &[]),
    // An application with nothing but requirements.txt.
    ("only_requirements", &["tests/test_app.py::test_f"], &[]),
    // An extension in C whose editable installation would be compiled again at each import.
    ("meson_extension", &["tests/test_spam.py::test_answer"], &[]),
];

const KINDS_OF_TESTS: &[Shape] = &[
    ("django_site", &["tests/test_stock.py::test_counts_customers"], &[]),
    // A site that knows nothing of pytest: its tests are run by its manage.py.
    ("django_by_manage_py", &["shop/tests/test_customers.py::Customers::test_are_counted"], &[]),
    // Tests in a file that unittest finds by its name, and pytest does not.
    ("tests_py", &["tests.py::Sums::test_sum"], &[]),
    // A list with an address that nobody has, a folder in addopts and no report, names that others have too, and a thread
    // that a conftest starts, tests behind a link, sources in other encodings; a test that is run again, and one after which the process ends badly.
    (
        "many_kinds",
        &[
            "behind/test_behind.py::test_behind",
            "tests/a/tests/test_a.py::test_a",
            "tests/b/tests/test_b.py::test_b",
            "tests/linked/test_behind.py::test_behind",
            "tests/loop/test_loop.py::test_in_the_loop",
            "tests/names/test_names.py::test_own_module",
            "tests/test_japanese.py::test_japanese",
            "tests/test_latin.py::test_latin",
        ],
        &[
            ("tests/again/test_again.py::test_the_second_time", "fails"),
            ("tests/ends/test_ends.py::test_ends_badly", "crashes"),
        ],
    ),
    // Plugins that distribute, shuffle, trace and report, and kinds of tests that are not functions of pytest's own.
    (
        "other_runners",
        &[
            "tests/test_runners.py::TestPlain::test_subtests",
            "tests/test_runners.py::test_any_number",
            "tests/test_runners.py::test_asyncio",
            "tests/test_runners.py::test_order",
            "tests/test_runners.py::test_parameters_out_of_a_set",
            "tests/test_runners.py::test_trio",
        ],
        &[("runners/__init__.py::runners.double", "unsupported-item")],
    ),
];

/// Builds trees of these shapes, each of whose groups has to become what is said.
fn built(shapes: &[Shape]) -> Bench {
    let bench = Bench::new();
    let trees: Vec<&str> = shapes.iter().map(|(tree, ..)| *tree).collect();
    bench.configure("[screen]\nattempts = 2", &trees);
    bench.build(&[]).with_code(0);
    let rows = bench.dataset().rows("groups");
    for (tree, kept, dropped) in shapes {
        let slug = format!("trees/{tree}");
        let found: BTreeMap<&str, &str> = rows
            .iter()
            .filter(|row| row["slug"] == slug.as_str())
            .map(|row| (text(&row["group_id"]), row["cause"].as_str().unwrap_or("kept")))
            .collect();
        let expected = kept.iter().map(|group| (*group, "kept")).chain(dropped.iter().copied()).collect();
        assert_eq!(found, expected, "{tree}: {rows:#?}");
    }
    bench
}

#[test]
fn trees_of_several_projects_are_installed_and_kept() {
    built(SEVERAL_PROJECTS);
}

#[test]
fn what_trees_declare_is_installed_and_kept() {
    built(DECLARATIONS);
}

#[test]
fn tests_of_every_kind_are_kept() {
    // The referee reads them as Python does: what differs there is not published.
    let instances = built(KINDS_OF_TESTS).dataset().rows("instances");
    for group in ["tests/test_japanese.py::test_japanese", "tests/test_latin.py::test_latin"] {
        assert!(instances.iter().any(|row| row["group_id"] == group), "{group}");
    }
}
