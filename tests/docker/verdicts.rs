//! The same runner, the same verdicts.

use serde_json::Value;

use crate::common::Bench;
use crate::common::dataset::text;

const SETTINGS: &str = "[screen]\nattempts = 2";

/// Group, cause and number of cases of every row.
fn verdicts(bench: &Bench) -> Vec<(String, String, String)> {
    let words = |value: &Value| value.as_str().unwrap_or("kept").to_owned();
    let row =
        |row: &Value| (text(&row["group_id"]).to_owned(), words(&row["cause"]), row["n_cases"].to_string());
    let mut rows: Vec<_> = bench.dataset().rows("groups").iter().map(row).collect();
    rows.sort();
    rows
}

pub fn both_backends_give_the_same_verdicts() {
    let (local, docker) = (Bench::new(), Bench::new());
    local.configure(SETTINGS, &["small_and_good", "every_verdict"]);
    crate::in_containers(&docker, SETTINGS, "", &["small_and_good", "every_verdict"]);
    local.build(&[]).with_code(0);
    docker.build(&[]).with_code(0);
    let (at_local, at_docker) = (verdicts(&local), verdicts(&docker));
    assert!(at_local.len() > 30, "{at_local:#?}");
    assert_eq!(at_local, at_docker);
    let manifest = docker.dataset().manifest();
    assert_eq!(manifest["isolation"]["kind"], "docker");
    for instance in docker.dataset().instances() {
        assert!(text(&instance["image"]).starts_with("gistmill/trees__"), "{instance:#}");
        assert!(text(&instance["image_id"]).starts_with("sha256:"), "{instance:#}");
    }
    for instance in local.dataset().instances() {
        assert_eq!(instance["image"], Value::Null);
    }
}

pub fn parity_finds_no_difference() {
    let bench = Bench::new();
    crate::in_containers(&bench, SETTINGS, "", &["small_and_good"]);
    let ended = bench
        .run(&["--format", "json", "parity", "trees/small_and_good", "--config", "repos.toml"])
        .with_code(0);
    let found: Value = serde_json::from_str(&ended.stdout).expect("is JSON");
    assert_eq!(found["compared"], 4, "{found:#}");
    assert_eq!(found["differing"].as_array().map(Vec::len), Some(0), "{found:#}");
    assert_eq!(found["docker"]["kept"], 3, "{found:#}");
}

pub fn hostile_tests_are_contained() {
    use crate::common::hostile::{MARK, SETTINGS, TREE, assert_contained};
    let built = assert_contained(|bench| crate::in_containers(bench, SETTINGS, "", &[TREE]));
    let instances = built.dataset().instances();
    let image = text(&instances[0]["image"]);
    let search = format!("find / -xdev -name {MARK} -not -path '/proc/*'");
    assert_eq!(crate::docker(&["run", "--rm", "--network", "none", image, "sh", "-c", &search]), "");
    assert_eq!(crate::docker(&["ps", "--all", "--quiet", "--filter", "label=gistmill"]), "");
}
