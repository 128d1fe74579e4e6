//! Is every verdict the right one, every time? Builds of `trees/labelled`, whose groups are labelled one by one.
//!
//! Every fifth label of a file is looked at, or each of them with `GISTMILL_TEST_LABELS=all`, which takes minutes. The
//! build is done once, or `GISTMILL_TEST_REPEATS` times, each time with no attempts to start from, and must end the
//! same each time. `GISTMILL_TEST_QUIET=1` says that the machine has nothing else to do: then the groups that want the
//! processor for themselves must be found out as well.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use crate::common::dataset::{Dataset, text};
use crate::common::labels::{self, KEPT, Labels};
use crate::common::{Bench, Running};
use gistmill::record::verdict::{Cause, Dimension};

const TREE: &str = "labelled";
/// One label of so many is looked at unless all are asked for.
const PART: usize = 5;
/// A build takes minutes, and more of them on a machine that has other things to do.
const LONGEST: Duration = Duration::from_hours(1);
/// From the day of the build to the day on the tin: see `best_before` of the tree.
const DAYS_UNTIL_BEST_BEFORE: u64 = 200;

/// Enough attempts for every group that is random by more than the labels allow to show it; limits that a busy machine
/// does not reach by accident.
const SETTINGS: &str = r#"
[screen]
attempts = 3
parity_groups = 0
case_timeout = "15s"
group_timeout = "60s"
"#;

#[test]
fn every_group_is_found_to_be_what_it_is_labelled() {
    let labels = if wants_all() { Labels::read(TREE) } else { Labels::read(TREE).part(PART) };
    let repeats = std::env::var("GISTMILL_TEST_REPEATS").map_or(1, |text| text.parse().expect("a number"));
    let mut first: Option<BTreeMap<String, String>> = None;
    for repeat in 1..=repeats {
        let bench = build(&labels);
        let found = verdicts(&bench.dataset());
        println!("build {repeat} of {repeats}:\n{}", labels.chosen_among_alternatives(&found));
        let wrong = labels.disagreements(&found, is_quiet());
        assert!(wrong.is_empty(), "build {repeat} of {repeats}: {wrong:#?}");
        assert_dropped_groups_have_evidence(&bench.dataset());
        let first = first.get_or_insert_with(|| found.clone());
        let changed: Vec<String> = labels
            .iter()
            .filter(|(group, label)| first[*group] != found[*group] && (is_quiet() || !label.is_about_load()))
            .map(|(group, _)| format!("{group}: {}, then {}", first[group], found[group]))
            .collect();
        assert!(changed.is_empty(), "build {repeat} differs from the first: {changed:#?}");
    }
}

fn is_quiet() -> bool {
    std::env::var_os("GISTMILL_TEST_QUIET").is_some_and(|value| value == "1")
}

fn wants_all() -> bool {
    std::env::var_os("GISTMILL_TEST_LABELS").is_some_and(|value| value == "all")
}

/// A bench with the whole tree.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.configure(SETTINGS, &[TREE]);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
    let best_before = now.as_secs() / (24 * 60 * 60) + DAYS_UNTIL_BEST_BEFORE;
    let file = bench.path().join("trees").join(TREE).join("inventory/data/best_before.txt");
    std::fs::write(&file, format!("{best_before}\n")).expect("the day can be written");
    crate::common::date(&file);
    bench
}

/// Builds the groups that have labels.
fn build(labels: &Labels) -> Bench {
    let bench = bench();
    if !wants_all() {
        let config = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
        let groups: toml::Value = labels.iter().map(|(group, _)| group.to_owned()).collect::<Vec<_>>().into();
        bench.write_config(&format!("{config}tests = {groups}\n"));
    }
    Running::start(bench.gistmill(&["build", "repos.toml"])).wait_at_most(LONGEST).with_code(0);
    bench
}

/// `kept`, or the cause, of each group.
fn verdicts(dataset: &Dataset) -> BTreeMap<String, String> {
    let rows = dataset.rows("groups");
    let verdict =
        |row: &serde_json::Value| if row["kept"] == true { KEPT } else { text(&row["cause"]) }.to_owned();
    let found: BTreeMap<_, _> =
        rows.iter().map(|row| (text(&row["group_id"]).to_owned(), verdict(row))).collect();
    assert_eq!(found.len(), rows.len(), "a group stands twice");
    found
}

#[track_caller]
fn assert_dropped_groups_have_evidence(dataset: &Dataset) {
    let poor = |row: &serde_json::Value| {
        let evidence: serde_json::Value =
            serde_json::from_str(row["evidence"].as_str().unwrap_or_default()).unwrap_or_default();
        let says = |key: &str| evidence[key].as_str().is_some_and(|text| !text.is_empty());
        let cause = row["cause"].as_str().unwrap_or_default();
        let shows_a_difference = evidence["excerpt"].as_str().is_some_and(|text| text.contains("@@ "));
        let compares = cause.starts_with("depends-on-") || cause == "nondeterministic-output";
        !says("summary") || !says("command") || compares && !shows_a_difference
    };
    let without: Vec<String> = dataset
        .rows("groups")
        .iter()
        .filter(|row| row["kept"] != true && poor(row))
        .map(|row| row["group_id"].to_string())
        .collect();
    assert!(without.is_empty(), "no evidence: {without:#?}");
}

#[test]
fn there_are_enough_labels_of_every_kind() {
    let labels = Labels::read(TREE);
    let expected = |verdict: &str| labels.iter().filter(|(_, label)| label.expected() == verdict).count();
    let all = labels.iter().count();
    assert!(expected(KEPT) >= 70, "{} clean groups", expected(KEPT));
    assert!(all - expected(KEPT) >= 70, "{} traps", all - expected(KEPT));
    // Commands and tests from outside have labels of their own.
    let is_other = |meaning: &str| meaning.starts_with("a command") || meaning.contains("(`tests_from`)");
    let is_of_tests = |cause: &Cause| !is_other(&cause.meaning());
    for cause in Cause::named().filter(is_of_tests).chain(Dimension::ALL.map(Cause::DependsOn)) {
        let count = expected(&cause.to_string());
        assert!(count >= 4, "{cause}: {count} groups");
        let part = Labels::read(TREE).part(PART);
        assert!(
            part.iter().any(|(_, label)| label.expected() == cause.to_string()),
            "{cause}: none in the part"
        );
    }
}

#[test]
fn every_group_of_the_tree_has_a_label() {
    let bench = bench();
    bench.build(&["--until", "collect"]).with_code(0);
    let screens = walkdir::WalkDir::new(bench.cache().join("screens")).into_iter().flatten();
    let file = screens.map(walkdir::DirEntry::into_path).find(|path| path.ends_with("collected.json"));
    let json = std::fs::read_to_string(file.expect("it was collected")).expect("can be read");
    let collected: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let rows = |key: &str| collected["content"][key].as_array().expect("a list").clone();
    let uncollected = rows("uncollected").into_iter().map(|row| row["group"].clone());
    let found: BTreeSet<String> = rows("groups")
        .into_iter()
        .chain(uncollected)
        .map(|group| text(&group["group_id"]).to_owned())
        .collect();
    let labelled: BTreeSet<String> = Labels::read(TREE).iter().map(|(group, _)| group.to_owned()).collect();
    let different: Vec<&String> = found.symmetric_difference(&labelled).collect();
    assert!(different.is_empty(), "without a label, or without a group: {different:#?}");
}

#[test]
fn every_file_with_labels_is_there() {
    let labels = Labels::read(TREE);
    let files: BTreeSet<&str> =
        labels.iter().map(|(group, _)| group.split("::").next().unwrap_or(group)).collect();
    let missing: Vec<_> = files.iter().filter(|file| !labels::tree(TREE).join(file).is_file()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
