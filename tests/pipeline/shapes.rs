//! Repositories of the shapes that people have, each a small tree: all of their groups are kept, without a word of
//! configuration.

use std::collections::BTreeMap;

use crate::common::Bench;
use crate::common::dataset::text;

/// A tree, and the groups that it has.
const SHAPES: [(&str, &[&str]); 3] = [
    // A uv workspace whose root needs its members, one of which configures pytest for itself.
    (
        "workspace",
        &[
            "packages/alpha/tests/test_alpha.py::test_one",
            "packages/beta/tests/test_alpha.py::test_g",
            "tests/test_root.py::test_f",
        ],
    ),
    // Two projects, one of which needs the other one, and nothing at the root; their folders of tests bear one name.
    ("several_projects", &["one/tests/test_it.py::test_f", "two/tests/test_it.py::test_f"]),
    // A project below another one, which nothing but its tests speaks of.
    ("needed_project", &["plugins/extra/tests/test_extra.py::test_f"]),
];

#[test]
fn every_shape_is_installed_and_kept() {
    let bench = Bench::new();
    let trees: Vec<&str> = SHAPES.iter().map(|(tree, _)| *tree).collect();
    bench.configure("[screen]\nattempts = 2", &trees);
    bench.build(&[]).with_code(0);
    let rows = bench.dataset().rows("groups");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in &rows {
        assert_eq!(row["kept"], true, "{row:#}");
        let tree = text(&row["slug"]).replace("trees/", "");
        found.entry(tree).or_default().push(text(&row["group_id"]).to_owned());
    }
    for (tree, groups) in SHAPES {
        assert_eq!(found.remove(tree).unwrap_or_default(), groups, "{tree}");
    }
    assert!(found.is_empty(), "{found:?}");
}
