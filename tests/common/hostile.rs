//! Code that nobody has read: a tree of tests that do everything to their own process and to the machine around it,
//! each between clean ones. A build from nothing (`GISTMILL_TEST_REPEATS`: so many) finds the verdicts of
//! `verdicts.toml`; no process survives it, and nothing is written but cache and output.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::dataset::{Dataset, text, texts};
use crate::common::{Bench, Running};

/// The tree in `tests/trees`.
pub const TREE: &str = "hostile";
/// The file name that the tests write to every place that they can think of.
pub const MARK: &str = "hostile-mark";
/// A variable that every process of the tests has in its environment.
const VARIABLE: &str = "HOSTILE_PROCESS=one-of-those-that-must-end";
/// One build takes about a minute and a half on two cores.
const LONGEST: Duration = Duration::from_mins(40);

/// Limits that a busy machine does not reach by accident, short enough for what never ends; room for little.
pub const SETTINGS: &str = r#"
[screen]
attempts = 2
case_timeout = "12s"
group_timeout = "60s"

[limits]
memory = "1GiB"
file_size = "64MiB"
processes = 100
"#;

/// Names that are no UTF-8 cannot lie in this repository: they are written into the copy.
const NAMES: [&[u8]; 3] = [b"\xff\xfe.txt", b"\xc3\x28", b"caf\xe9.txt"];

fn bench(configure: impl Fn(&Bench)) -> Bench {
    let bench = Bench::new();
    configure(&bench);
    let config = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
    let (name, value) = VARIABLE.split_once('=').expect("a name and a value");
    bench.write_config(&format!("{config}env = {{ {name} = \"{value}\" }}\n"));
    for name in NAMES {
        let file = bench.path().join("trees").join(TREE).join("data").join(OsStr::from_bytes(name));
        std::fs::write(&file, "x").expect("the file system takes any name");
        crate::common::date(&file);
    }
    for folder in ["home", "tmp"] {
        std::fs::create_dir(bench.path().join(folder)).expect("a folder can be made");
    }
    bench
}

fn build(bench: &Bench) {
    let mut command = bench.gistmill(&["build", "repos.toml"]);
    let home = std::env::var("HOME").expect("HOME is set");
    if std::env::var_os("PYENV_ROOT").is_none() {
        command.env("PYENV_ROOT", Path::new(&home).join(".pyenv"));
    }
    command.env("HOME", bench.path().join("home")).env("TMPDIR", bench.path().join("tmp"));
    Running::start(command).wait_at_most(LONGEST).with_code(0);
}

/// `kept`, or the cause, of each group.
fn verdicts(dataset: &Dataset) -> BTreeMap<String, String> {
    let verdict =
        |row: &serde_json::Value| if row["kept"] == true { "kept" } else { text(&row["cause"]) }.to_owned();
    dataset.rows("groups").iter().map(|row| (text(&row["group_id"]).to_owned(), verdict(row))).collect()
}

/// The verdicts that the tree allows for each group; what it does not name must be kept.
fn expected(found: &BTreeMap<String, String>) -> BTreeMap<String, Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees").join(TREE).join("verdicts.toml");
    let tables: toml::Table = std::fs::read_to_string(path).expect("is there").parse().expect("is TOML");
    let named = tables.iter().flat_map(|(file, table)| {
        let table = table.as_table().expect("verdicts stand in tables");
        table.iter().map(move |(test, causes)| (format!("{file}::{test}"), list(causes)))
    });
    let mut all: BTreeMap<String, Vec<String>> =
        found.keys().map(|group| (group.clone(), vec!["kept".to_owned()])).collect();
    for (group, causes) in named {
        assert!(all.insert(group.clone(), causes).is_some(), "{group} was not collected");
    }
    all
}

fn list(value: &toml::Value) -> Vec<String> {
    let text = |value: &toml::Value| value.as_str().expect("a verdict is text").to_owned();
    value.as_array().map_or_else(|| vec![text(value)], |values| values.iter().map(text).collect())
}

/// Every path below a folder but for cache and output, with size and time.
fn contents(bench: &Bench) -> BTreeSet<(PathBuf, u64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let own = [bench.cache(), bench.path().join("output")];
    let entries = walkdir::WalkDir::new(bench.path()).into_iter();
    entries
        .filter_entry(|entry| !own.iter().any(|own| entry.path() == own))
        .map(|entry| {
            let entry = entry.expect("can be listed");
            let metadata = entry.metadata().expect("can be read");
            let time = if metadata.is_dir() { 0 } else { metadata.mtime_nsec() };
            (entry.path().to_owned(), metadata.size(), time)
        })
        .collect()
}

/// Processes of this machine that carry the variable of the tests.
fn survivors() -> Vec<String> {
    let variable = VARIABLE.as_bytes();
    let numbers = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    numbers
        .filter(|entry| {
            std::fs::read(entry.path().join("environ"))
                .is_ok_and(|text| text.split(|byte| *byte == 0).any(|one| one == variable))
        })
        .map(|entry| {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            format!("{}: {}", entry.path().display(), String::from_utf8_lossy(&command))
        })
        .collect()
}

#[track_caller]
fn assert_nothing_survives() {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !survivors().is_empty() {
        assert!(Instant::now() < deadline, "processes survive: {:#?}", survivors());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[track_caller]
fn assert_nothing_was_written(bench: &Bench, before: &BTreeSet<(PathBuf, u64, i64)>) {
    let after = contents(bench);
    let changed: Vec<_> = after.symmetric_difference(before).collect();
    assert!(changed.is_empty(), "changed beside cache and output: {changed:#?}");
    for place in ["/", "/usr", "/etc", "/opt", "/home", "/tmp", "/var/tmp", "/dev/shm", "/run"] {
        assert!(!Path::new(place).join(MARK).exists(), "{place} was written to");
    }
    let trees = [bench.cache().join("sources"), bench.cache().join("environments")];
    for tree in trees.iter().filter_map(|tree| std::fs::canonicalize(tree).ok()) {
        let marked = walkdir::WalkDir::new(tree).into_iter().flatten();
        let marked: Vec<_> = marked.filter(|entry| entry.file_name() == MARK).collect();
        assert!(marked.is_empty(), "a shared tree was written to: {marked:?}");
    }
}

/// Builds the tree from nothing, as often as `GISTMILL_TEST_REPEATS` says; `configure` writes a config for [`TREE`]
/// with [`SETTINGS`]. Gives the last dataset.
#[track_caller]
pub fn assert_contained(configure: impl Fn(&Bench)) -> Bench {
    let mut first: Option<BTreeMap<String, String>> = None;
    let builds = std::env::var("GISTMILL_TEST_REPEATS").map_or(1, |text| text.parse().expect("a number"));
    let mut number = 0;
    loop {
        number += 1;
        let bench = bench(&configure);
        let before = contents(&bench);
        build(&bench);
        assert_nothing_survives();
        assert_nothing_was_written(&bench, &before);
        let found = verdicts(&bench.dataset());
        let expected = expected(&found);
        let wrong: Vec<String> = expected
            .iter()
            .filter(|(group, allowed)| found.get(*group).is_none_or(|verdict| !allowed.contains(verdict)))
            .map(|(group, allowed)| format!("{group}: {:?}, not {allowed:?}", found.get(group)))
            .collect();
        assert!(wrong.is_empty(), "build {number} of {builds}: {wrong:#?}");
        assert!(found.values().filter(|verdict| *verdict == "kept").count() >= 50, "{found:#?}");
        assert_eq!(&found, first.get_or_insert_with(|| found.clone()), "build {number} differs");
        assert_names_are_whole(&bench.dataset());
        if number >= builds {
            return bench;
        }
    }
}

/// Cases with names that are no UTF-8 are told apart.
#[track_caller]
fn assert_names_are_whole(dataset: &Dataset) {
    let instances = dataset.instances();
    let row = instances.iter().find(|row| row["group_id"] == "tests/test_names.py::test_reads");
    let ids: BTreeSet<&str> =
        row.map(|row| texts(&row["case_ids"])).unwrap_or_default().into_iter().collect();
    assert_eq!(ids.len(), NAMES.len() + 1, "{ids:?}");
}
