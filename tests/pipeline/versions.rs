//! From one version of a dataset to the next: pins moved by `refresh`, the difference told by `diff`.

use std::path::{Path, PathBuf};

use git2::{IndexAddOption, Repository, Signature, Time};
use serde_json::Value;

use crate::common::Bench;
use crate::common::dataset::Dataset;

const HOUR: i64 = 3600;

fn commit(tree: &Path, message: &str, hours: i64) -> String {
    let repository = Repository::open(tree).expect("opens");
    let mut index = repository.index().expect("has an index");
    index.add_all(["*"], IndexAddOption::DEFAULT, None).expect("files can be added");
    index.update_all(["*"], None).expect("removed files are taken out");
    index.write().expect("the index can be written");
    let content = repository.find_tree(index.write_tree().expect("a tree")).expect("is there");
    let time = Time::new(1_768_435_200 + hours * HOUR, 0);
    let person = Signature::new("A", "a@example.org", &time).expect("a signature");
    let head = repository.head().ok().and_then(|head| head.peel_to_commit().ok());
    let parents: Vec<&git2::Commit<'_>> = head.iter().collect();
    let id = repository.commit(Some("HEAD"), &person, &person, message, &content, &parents);
    id.expect("a commit").to_string()
}

/// A bench with a git repository of one commit, pinned by a config with a layout of its own.
fn bench() -> (Bench, PathBuf, String) {
    let bench = Bench::new();
    let tree = bench.tree("small_and_good");
    std::fs::write(tree.join("tests/test_old_place.py"), MOVING).expect("can be written");
    let repository = Repository::init(&tree).expect("a repository can be made");
    repository.set_head("refs/heads/main").expect("the branch can be named");
    let first = commit(&tree, "First", 0);
    bench.tree("without_tests");
    bench.write_config(&format!(
        "# Ours.\n[dataset]\nname    = \"trees\"   # the name\nversion = \"1\"\n\n[screen]\nattempts = 2\n\n[mutation]\nmutants = 0\n\n\
         [[repo]]  # the one\nslug = \"trees/small_and_good\"\ngit = \"file://{}\"\ncommit = \"{first}\"  # pinned\n\n\
         [[repo]]\nslug = \"trees/local\"\npath = \"trees/without_tests\"\n# the end\n",
        tree.display()
    ));
    (bench, tree, first)
}

const MOVING: &str = "from tally import Tally\n\n\ndef test_moves():\n    assert Tally().add('x') == 1\n";

fn json(ended: &crate::common::Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

fn config(bench: &Bench) -> String {
    std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there")
}

#[test]
fn refresh_moves_a_pin_to_the_head_and_leaves_the_rest_of_the_file() {
    let (bench, tree, first) = bench();
    let before = config(&bench);
    let current = bench.run(&["refresh", "repos.toml", "--format", "json"]).with_code(0);
    assert_eq!(json(&current)["changes"][0]["result"], "current");
    assert_eq!(config(&bench), before, "nothing moved, nothing written");

    std::fs::write(tree.join("extra.py"), "X = 1\n").expect("can be written");
    let second = commit(&tree, "Second", 1);
    let dry = bench.run(&["refresh", "repos.toml", "--dry-run"]).with_code(0);
    let told = format!("trees/small_and_good: would move from {first} to {second}\n");
    assert!(dry.stdout.starts_with(&told), "{}", dry.stdout);
    assert!(dry.stdout.contains("trees/local: left, a local path"), "{}", dry.stdout);
    assert_eq!(config(&bench), before);

    let ended =
        bench.run(&["refresh", "repos.toml", "--set-version", "2", "--output", "next.toml"]).with_code(0);
    assert!(ended.stdout.contains(&second), "{}", ended.stdout);
    assert_eq!(config(&bench), before, "the old one is kept beside the new one");
    let after = std::fs::read_to_string(bench.path().join("next.toml")).expect("is written");
    assert_eq!(after, before.replace(&first, &second).replace("\"1\"", "\"2\""));
    bench.run(&["refresh", "repos.toml"]).with_code(0);
    assert_eq!(config(&bench), before.replace(&first, &second));
}

#[test]
fn refresh_follows_the_configured_branch_and_reports_what_it_cannot_reach() {
    let (bench, tree, first) = bench();
    let repository = Repository::open(&tree).expect("opens");
    let head = repository.find_commit(first.parse().expect("a hash")).expect("is there");
    repository.branch("stable", &head, false).expect("a branch can be made");
    std::fs::write(tree.join("extra.py"), "X = 1\n").expect("can be written");
    commit(&tree, "Second", 1);
    let with_branch = config(&bench).replace("# pinned", "# pinned\nbranch = \"stable\"");
    bench.write_config(&with_branch);
    let ended = bench.run(&["refresh", "repos.toml", "--format", "json"]).with_code(0);
    assert_eq!(json(&ended)["changes"][0]["result"], "current", "{}", ended.stdout);

    bench.write_config(&with_branch.replace("stable", "nowhere"));
    let ended = bench.run(&["refresh", "repos.toml"]).with_code(1);
    assert!(
        ended.stdout.contains("could not be looked up: there is no branch `nowhere`"),
        "{}",
        ended.stdout
    );
    std::fs::rename(&tree, bench.path().join("elsewhere")).expect("can be moved");
    let ended = bench.run(&["refresh", "repos.toml"]).with_code(1);
    assert!(ended.stdout.contains("trees/small_and_good: left, could not be looked up"), "{}", ended.stdout);
    bench.run(&["refresh", "repos.toml", "--only", "trees/unknown"]).with_code(2);
}

#[test]
fn diff_tells_what_came_what_went_and_why_and_what_changed() {
    let (bench, tree, _) = bench();
    let only = ["--only", "trees/small_and_good"];
    bench.build(&only).with_code(0);
    let tests = tree.join("tests");
    std::fs::rename(tests.join("test_old_place.py"), tests.join("test_new_place.py")).expect("can be moved");
    let text = std::fs::read_to_string(tests.join("test_tally.py")).expect("is there");
    let changed = text
        .replace("total(tally) == 0", "total(tally) == 1")
        .replace("        tally.add(\"x\")\n", "        tally.add(\"y\")\n        tally.add(\"x\")\n")
        .replace("assert tally.add(\"x\") == 2\n\n\ndef test_is_wrong", "assert tally.add(\"x\") == 2\n\n\ndef test_new(tally):\n    assert total(tally) == 0\n\n\ndef test_is_wrong")
        .replace("\"ab\"", "\"abc\"");
    std::fs::write(tests.join("test_tally.py"), format!("# moved down\n{changed}")).expect("can be written");
    commit(&tree, "Second", 1);
    bench.run(&["refresh", "repos.toml", "--set-version", "2"]).with_code(0);
    bench.build(&only).with_code(0);
    let (old, new) = ("output/trees/1", "output/trees/2");

    let same = json(&bench.run(&["diff", old, old, "--format", "json"]).with_code(0));
    assert_eq!(same["total"]["unchanged"], 4, "{same:#}");
    assert_eq!(same["total"]["changed"], 0);

    let ended = bench.run(&["diff", old, new, "--format", "json"]).with_code(0);
    let diff = json(&ended);
    let repository = &diff["repositories"]["trees/small_and_good"];
    let list = |kind: &str, key: &str| -> Vec<String> {
        let rows = repository[kind].as_array().expect("a list");
        rows.iter().map(|row| row[key].as_str().expect("a text").to_owned()).collect()
    };
    assert_eq!(list("moved", "to"), ["tests/test_new_place.py::test_moves"], "{diff:#}");
    assert_eq!(list("added", "group_id"), ["tests/test_tally.py::test_new"]);
    assert_eq!(list("removed", "group_id"), ["tests/test_tally.py::test_starts_empty"]);
    assert_eq!(list("removed", "cause"), ["fails"]);
    let changed: Vec<&str> =
        vec!["tests/test_tally.py::TestTwice::test_adds_up", "tests/test_tally.py::test_counts_each_name"];
    assert_eq!(list("changed", "group_id"), changed);
    assert_eq!(repository["changed"][0]["trace"]["trace_length"][0], 5);
    assert_eq!(repository["changed"][0]["trace"]["trace_length"][1], 6);
    assert_eq!(repository["changed"][1]["golden"]["added"].as_array().map(Vec::len), Some(1));
    let text = bench.run(&["diff", old, new]).with_code(0).stdout;
    assert!(text.contains("  - tests/test_tally.py::test_starts_empty  (fails: "), "{text}");
    assert!(
        text.contains("  > tests/test_new_place.py::test_moves  (was tests/test_old_place.py::test_moves)"),
        "{text}"
    );
    bench.run(&["diff", old, "nowhere"]).with_code(2);

    let hash = |dataset: &str, test: &str| {
        let rows = Dataset::at(&bench.path().join(dataset)).instances();
        let row = rows.iter().find(|row| row["test_function"] == test).expect("is published");
        row["code_sha256"].as_str().expect("a text").to_owned()
    };
    assert_eq!(hash(old, "test_moves"), hash(new, "test_moves"));
    assert_ne!(hash(old, "test_adds_up"), hash(new, "test_adds_up"));
}

/// A dataset of format 2 as gistmill 0.1.0 wrote it, but for its page, of the commit that [`older`] makes.
const OLDER: &str = "tests/data/older";

/// A bench with that dataset in `older`, and a repository with its commit, pinned by a config.
fn older() -> (Bench, PathBuf) {
    let bench = Bench::new();
    let tree = bench.tree("small_and_good");
    let repository = Repository::init(&tree).expect("a repository can be made");
    repository.set_head("refs/heads/main").expect("the branch can be named");
    let first = commit(&tree, "First\n", 0);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(OLDER);
    crate::common::copy(&from, &bench.path().join("older"));
    bench.write_config(&format!(
        "[dataset]\nname = \"trees\"\nversion = \"1\"\n\n[mutation]\nmutants = 0\n\n[[repo]]\nslug = \"trees/small_and_good\"\n\
         git = \"file://{}\"\ncommit = \"{first}\"\n",
        tree.display()
    ));
    (bench, tree)
}

#[test]
fn an_older_dataset_is_read_scored_verified_compared_and_refreshed() {
    let (bench, tree) = older();
    let source = format!("trees/small_and_good={}", tree.display());
    let listed = json(&bench.run(&["list", "--dataset", "older", "--format", "json"]).with_code(0));
    let groups = listed["groups"].as_array().expect("a list");
    assert_eq!((groups.len(), groups.iter().filter(|row| row["kept"] == true).count()), (4, 3), "{listed:#}");
    bench.run(&["report", "--dataset", "older"]).with_code(0);
    assert!(bench.path().join("older/report.html").is_file());
    bench.run(&["subset", "older", "--subset", "top"]).with_code(0);

    let instances = Dataset::at(&bench.path().join("older")).instances();
    let wanted = instances.iter().find(|one| one["test_function"] == "test_adds_up").expect("is published");
    let id = wanted["instance_id"].as_str().expect("has an id");
    let text = |value: &str| {
        format!(
            "import pytest\n\n\nclass Tally:\n    def __init__(self):\n        self.counts = {{}}\n\n    def add(self, name):\n        \
             self.counts[name] = self.counts.get(name, 0) + {value}\n        return self.counts[name]\n\n\n@pytest.fixture\ndef tally():\n    \
             return Tally()\n\n\nclass TestTwice:\n    def test_adds_up(self, tally):\n        tally.add(\"x\")\n        assert tally.add(\"x\") == 2\n"
        )
    };
    for (run, value) in [("good", "1"), ("wrong", "2")] {
        let folder = bench.path().join("runs").join(run).join(id);
        std::fs::create_dir_all(&folder).expect("can be made");
        std::fs::write(folder.join("concise.py"), text(value)).expect("can be written");
    }
    let scored = ["score", "older", "--source", &source, "-i", id, "runs/good", "runs/wrong"];
    bench.run(&scored).with_code(0);
    for (run, fidelity) in [("good", true), ("wrong", false)] {
        let scores = bench.path().join("scores/older/1").join(run).join("scores.jsonl");
        let row: Value =
            serde_json::from_slice(&std::fs::read(scores).expect("is written")).expect("is one row");
        assert_eq!(row["fidelity"], fidelity, "{row:#}");
        assert_eq!(row["variants"], Value::Null, "it is judged by the rules of its dataset: {row:#}");
    }

    let verified = bench.run(&["verify", "older", "--source", &source]).with_code(0);
    assert!(
        verified.stdout.contains("in the fork tree 3 of 3, cold 3 of 3, trace 3 of 3"),
        "{}",
        verified.stdout
    );

    let tests = tree.join("tests/test_tally.py");
    let changed = std::fs::read_to_string(&tests).expect("is there").replace(
        "def test_is_wrong",
        "def test_new(tally):\n    tally.add(\"x\")\n    assert total(tally) == 1\n\n\ndef test_is_wrong",
    );
    std::fs::write(&tests, changed).expect("can be written");
    commit(&tree, "Second", 1);
    bench.run(&["refresh", "repos.toml", "--set-version", "2"]).with_code(0);
    bench.build(&[]).with_code(0);
    let diff = json(&bench.run(&["diff", "older", "output/trees/2", "--format", "json"]).with_code(0));
    assert_eq!(diff["total"]["unchanged"], 3, "{diff:#}");
    let added = diff["repositories"]["trees/small_and_good"]["added"].as_array().expect("a list");
    let added: Vec<&Value> = added.iter().map(|row| &row["group_id"]).collect();
    assert_eq!(added, ["tests/test_tally.py::test_new"]);
}
