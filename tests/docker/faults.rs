//! What breaks in the middle, and what comes out all the same.

use std::time::Duration;

use crate::common::dataset::text;
use crate::common::{Bench, Running};
use crate::docker;

const SETTINGS: &str = "[screen]\nattempts = 3";
const TREE: &str = "slow_enough_to_interrupt";

fn bench() -> Bench {
    let bench = Bench::new();
    crate::in_containers(&bench, SETTINGS, &[TREE]);
    bench
}

/// What two builds must agree in, to the last byte.
#[track_caller]
fn assert_same(one: &Bench, other: &Bench) {
    for name in ["instances.jsonl", "instances.parquet", "cases.parquet", "traces.parquet"] {
        assert!(one.dataset().bytes(name) == other.dataset().bytes(name), "{name} differs");
    }
}

fn running() -> Vec<String> {
    let ids = docker(&["ps", "--quiet", "--filter", "label=gistmill=test"]);
    ids.lines().map(str::to_owned).collect()
}

pub fn a_killed_container_changes_nothing() {
    let (undisturbed, disturbed) = (bench(), bench());
    undisturbed.build(&[]).with_code(0);
    let mut build = Running::start(disturbed.gistmill(&["build", "repos.toml"]));
    let mut killed = 0;
    for stage in ["screen 1/2", "attempts, round", "cold runs"] {
        build.wait_for(stage);
        std::thread::sleep(Duration::from_millis(1200));
        for id in running() {
            // It may have ended by itself in the meantime.
            let output =
                std::process::Command::new("docker").args(["kill", &id]).output().expect("docker is there");
            killed += usize::from(output.status.success());
        }
    }
    build.wait().with_code(0);
    assert!(killed > 0, "no container was there to be killed");
    assert_same(&undisturbed, &disturbed);
    assert_eq!(docker(&["ps", "--all", "--quiet", "--filter", "label=gistmill"]), "");
}

pub fn an_image_that_is_removed_is_made_again() {
    let (undisturbed, disturbed) = (bench(), bench());
    undisturbed.build(&[]).with_code(0);
    let tag = text(&undisturbed.dataset().instances()[0]["image"]).to_owned();
    let mut build = Running::start(disturbed.gistmill(&["build", "repos.toml"]));
    build.wait_for("screen 2/2");
    docker(&["rmi", "--force", "--no-prune", &tag]);
    build.wait().with_code(0);
    assert_same(&undisturbed, &disturbed);
    docker(&["rmi", "--force", &tag]);
    disturbed.build(&[]).with_code(0);
    assert_same(&undisturbed, &disturbed);
}

pub fn memory_that_runs_out() {
    let bench = Bench::new();
    crate::in_containers(&bench, SETTINGS, &["small_and_good"]);
    let path = bench.path().join("repos.toml");
    let config = std::fs::read_to_string(&path).expect("was written");
    bench.write_config(&config.replace("[docker]\n", "[docker]\nmemory = \"256MiB\"\n"));
    let greedy = bench.path().join("trees/small_and_good/tests/test_greedy.py");
    std::fs::write(&greedy, "def test_takes_all():\n    assert len(bytearray(b'x') * (1 << 30)) > 0\n")
        .expect("can be written");
    crate::common::date(&greedy);
    bench.build(&[]).with_code(0);
    let row = bench.dataset().group("tests/test_greedy.py::test_takes_all");
    assert_eq!(row["cause"], "crashes", "{row:#}");
    assert_eq!(bench.dataset().instances().len(), 3);
}
