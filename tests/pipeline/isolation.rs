//! Machines that do not allow all of the sandbox, made by limits on namespaces inside a user namespace.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::determinism::assert_same;
use crate::common::dataset::text;
use crate::common::{Bench, Ended, Running};

/// Setting of the kernel, its value, and what the report then says is missing.
const LIMITS: [(&str, u32, &str); 5] = [
    ("max_net_namespaces", 0, "no test can make a socket of the Internet"),
    ("max_ipc_namespaces", 0, "System V shared memory"),
    ("max_uts_namespaces", 0, "a host name of its own"),
    ("max_user_namespaces", 1, "locked mounts"),
    ("max_cgroup_namespaces", 0, "names of control groups"),
];

/// What a machine without control groups (or a user who may write none) does not give.
const MEMORY: &str = "a bound on the memory of all processes of a job together";

/// gistmill as somebody whom the kernel gives only so much.
fn limited(bench: &Bench, limits: &[(&str, u32)], arguments: &[&str]) -> Ended {
    let set: Vec<String> =
        limits.iter().map(|(name, value)| format!("echo {value} > /proc/sys/user/{name};")).collect();
    inside(bench, &["--map-root-user"], &format!("{} exec \"$GISTMILL\" \"$@\"", set.join(" ")), arguments)
}

fn inside(bench: &Bench, identity: &[&str], script: &str, arguments: &[&str]) -> Ended {
    let gistmill = bench.gistmill(&[]);
    let mut command = Command::new("unshare");
    command.arg("--user").args(identity).args(["sh", "-euc", script, "sh"]).args(arguments);
    command.current_dir(bench.path()).env_clear();
    command.envs(gistmill.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("GISTMILL", crate::common::GISTMILL);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command).wait()
}

fn sandbox_of(ended: &Ended) -> Value {
    let json: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    let findings = json["findings"].as_array().expect("a list");
    findings.iter().find(|row| row["what"] == "sandbox").expect("is looked at").clone()
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.configure("[screen]\nattempts = 2", &["small_and_good"]);
    bench
}

#[test]
fn each_part_that_is_refused_is_named_and_done_without() {
    let bench = bench();
    for (name, value, words) in LIMITS {
        let found =
            sandbox_of(&limited(&bench, &[(name, value)], &["check", "repos.toml", "--format", "json"]));
        let said = text(&found["text"]);
        assert!(found["ok"] == true && said.starts_with("namespaces without "), "{name}: {found}");
        for (_, _, other) in LIMITS {
            assert_eq!(said.contains(other), other == words, "{name}: {said}");
        }
    }
}

#[test]
fn a_build_without_these_parts_says_so_records_it_and_comes_to_the_same_dataset() {
    let (whole, poor) = (Bench::after_a_build(), bench());
    // One user namespace in all would be one sandbox at a time.
    let refused = &LIMITS[..3];
    let limits: Vec<(&str, u32)> = refused.iter().map(|(name, value, _)| (*name, *value)).collect();
    // Dependencies come through the loopback of a network namespace.
    poor.build(&["--until", "environment"]).with_code(0);
    let ended = limited(&poor, &limits, &["build", "repos.toml"]).with_code(0);
    assert_same(&whole.dataset(), &poor.dataset());
    let isolation = poor.dataset().manifest()["isolation"].clone();
    assert_eq!(isolation["kind"], "namespaces without network, ipc, host-name", "{isolation}");
    for (_, _, words) in refused {
        assert!(isolation["missing"].to_string().contains(*words), "{isolation}");
        assert!(
            ended.stderr.contains("warning: missing from full isolation: ") && ended.stderr.contains(*words),
            "{}",
            ended.stderr
        );
    }
    assert_eq!(whole.dataset().manifest()["isolation"]["kind"], "namespaces");
}

#[test]
fn without_a_network_namespace_no_test_makes_a_socket_of_the_internet() {
    let bench = Bench::new();
    bench.configure("[screen]\nattempts = 2", &["every_verdict"]);
    let config = std::fs::read_to_string(bench.path().join("repos.toml")).expect("is there");
    bench.write_config(&format!("{config}tests = [\"tests/test_network.py\"]\n"));
    // Dependencies come through the loopback of a namespace: an environment that is there already is used, a new one cannot
    // be made.
    let refused =
        limited(&bench, &[("max_net_namespaces", 0)], &["build", "repos.toml", "--cache-dir", "other"]);
    assert!(refused.stderr.contains("gives jobs no network namespace"), "{refused:?}");
    bench.build(&["--until", "environment"]).with_code(0);
    limited(&bench, &[("max_net_namespaces", 0)], &["build", "repos.toml"]).with_code(0);
    let loopback = bench.dataset().group("tests/test_network.py::test_serves_itself_over_the_loopback");
    assert_eq!(loopback["cause"], "fails", "{loopback:#}");
    assert!(loopback["evidence"].to_string().contains("PermissionError"), "{loopback:#}");
}

#[test]
fn without_user_namespaces_nothing_is_run() {
    let bench = bench();
    let ended = limited(&bench, &[("max_user_namespaces", 0)], &["build", "repos.toml"]).with_code(3);
    assert!(ended.stderr.contains("this machine does not allow the sandbox"), "{}", ended.stderr);
    assert!(ended.stderr.contains("entering new namespaces: ENOSPC"), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: no more user namespaces are allowed here"), "{}", ended.stderr);
}

#[test]
fn who_is_strict_gets_all_of_it_or_nothing() {
    let bench = bench();
    let strict = ["build", "repos.toml", "--isolation", "strict"];
    let ended = limited(&bench, &[("max_ipc_namespaces", 0)], &strict).with_code(3);
    assert!(ended.stderr.contains("--isolation strict: this machine does not give all"), "{}", ended.stderr);
    assert!(ended.stderr.contains("missing: a namespace of its own for System V"), "{}", ended.stderr);
    assert!(ended.stderr.contains("missing: an ordinary user as the one who starts it"), "{}", ended.stderr);
    assert!(!bench.dataset().folder.exists());
    let user = ["--map-user=1000", "--map-group=1000"];
    let as_user = |arguments: &[&str]| inside(&bench, &user, "exec \"$GISTMILL\" \"$@\"", arguments);
    let found = sandbox_of(&as_user(&["check", "repos.toml", "--format", "json"]));
    let ended = as_user(&strict);
    if text(&found["text"]).contains(MEMORY) {
        let ended = ended.with_code(3);
        assert!(ended.stderr.contains(&format!("missing: {MEMORY}")), "{}", ended.stderr);
        assert_eq!(ended.stderr.matches("missing: ").count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains("systemd-run --user --scope -p Delegate=yes"), "{}", ended.stderr);
        return;
    }
    let ended = ended.with_code(0);
    assert!(!ended.stderr.contains("missing from full isolation"), "{}", ended.stderr);
    let isolation = bench.dataset().manifest()["isolation"].clone();
    assert_eq!(
        (isolation["kind"].as_str(), isolation["missing"].to_string().as_str()),
        (Some("namespaces"), "[]")
    );
    assert_eq!(bench.dataset().instances().len(), 3);
}
