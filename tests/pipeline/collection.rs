//! Files that cannot be imported, and tests that turn on what runs them: each costs itself, and nothing else.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use crate::common::Bench;
use crate::common::dataset::{text, texts};

const TREE: &str = "one_file_each";
const SETTINGS: &str = r#"
[screen]
attempts = 2
case_timeout = "5s"
group_timeout = "10s"
"#;
/// A test file whose name is no UTF-8 cannot lie in this repository.
const LATIN_1: &[u8] = b"test_caf\xe9.py";
/// The other groups of the tree must be kept.
const DROPPED: [(&str, &str, &str); 10] = [
    ("tests/test_leaves.py", "collection-error", "SystemExit: this machine has no shelf"),
    ("tests/test_ends_the_process.py", "collection-error", "ends the process: exit code 7"),
    ("tests/test_sleeps.py", "times-out", "longer than the limit of 10 s"),
    ("tests/broken/test_below.py", "collection-error", "LookupError: no such shelf"),
    ("tests/broken/deep/test_deep.py", "collection-error", "LookupError: no such shelf"),
    ("tests/test_stops.py::test_stops_its_parent", "crashes", "was stopped by signal 19"),
    ("tests/test_stops.py::test_stops_everything_above", "crashes", "was stopped by signal 19"),
    ("tests/test_forges.py::test_forges_cases", "crashes", "the report of the attempt is malformed"),
    ("tests/test_forges.py::test_leaves_a_report_that_is_no_text", "crashes", "it is not text"),
    (r"tests/test_caf\udce9.py::test_it", "collection-error", r"test_caf\udce9.py"),
];

#[test]
fn each_costs_itself_and_all_others_are_kept() {
    let bench = Bench::new();
    bench.configure(SETTINGS, &[TREE]);
    let file = bench.path().join("trees").join(TREE).join("tests").join(OsStr::from_bytes(LATIN_1));
    std::fs::write(&file, "def test_it():\n    pass\n").expect("the file system takes any name");
    crate::common::date(&file);
    let started = Instant::now();
    bench.build(&[]).with_code(0);
    println!("built in {:?}", started.elapsed());

    let dataset = bench.dataset();
    let rows = dataset.rows("groups");
    let found: BTreeMap<&str, String> =
        rows.iter().map(|row| (text(&row["group_id"]), row["cause"].to_string())).collect();
    for (group, cause, said) in DROPPED {
        let row = rows.iter().find(|row| row["group_id"] == group);
        let row = row.unwrap_or_else(|| panic!("no {group}: {found:#?}"));
        assert_eq!(text(&row["cause"]), cause, "{row:#}");
        assert!(row.to_string().replace(r"\\", r"\").contains(said), "{row:#}");
    }
    let dropped = |group: &str| DROPPED.iter().any(|(dropped, ..)| *dropped == group);
    let others: Vec<_> = rows.iter().filter(|row| !dropped(text(&row["group_id"]))).collect();
    assert_eq!(others.len(), 6, "{found:#?}");
    for row in others {
        assert_eq!(row["kept"], true, "{row:#}");
    }

    // What its trace says is not believed, so that it is not known how hard it is.
    let forger = "tests/test_forges.py::test_forges_numbers_and_paths_of_a_trace";
    let row = dataset.group(forger);
    assert!(texts(&row["unstable_functions"]).iter().any(|one| one.contains("refused")), "{row:#}");
    let published = dataset.instances();
    assert!(published.iter().all(|instance| instance["group_id"] != forger), "{published:#?}");
    assert_eq!(published.len(), 5);
}
