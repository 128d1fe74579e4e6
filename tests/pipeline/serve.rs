//! `gistmill serve` on a dataset that was just built.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::score::{KINDS, hand_in, submission};
use crate::common::Bench;

#[test]
fn a_server_judges_to_the_byte_as_the_command_does_and_both_at_the_same_time() {
    let bench = Bench::after_a_build();
    let tree = bench.path().join("trees/small_and_good");
    let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).filter(|kind| *kind != "binary").collect();
    let id = hand_in(&bench, &kinds);
    let source = format!("trees/small_and_good={}", tree.display());
    let common = ["output/trees/1", "--source", &source, "--timeout", "10"];
    let mut server = bench.gistmill(&[&["serve", "--stdio"], &common[..]].concat());
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let (mut asks, answers) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let mut answers = BufReader::new(answers).lines().map(|line| line.expect("is text"));
    let ready: Value = serde_json::from_str(&answers.next().expect("is ready")).unwrap();
    assert_eq!((&ready["status"], &ready["version"]), (&json!("ready"), &json!("1")));

    let mut ask = |request: &Value| asks.write_all(format!("{request}\n").as_bytes()).expect("is taken");
    for kind in &kinds {
        let text = String::from_utf8(submission(kind, &tree)).expect("is text");
        ask(&json!({ "id": kind, "instance_id": id, "submission": text }));
    }
    ask(&json!({ "id": "unknown", "instance_id": "../x", "submission": "" }));
    // The command has the same screening, the same instance and the same texts at the same time.
    let runs: Vec<String> = kinds.iter().map(|kind| format!("runs/{kind}")).collect();
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let scored = bench.run(&[&["score"], &common[..], &runs].concat()).with_code(0);
    assert!(!scored.stderr.contains("waits for"), "{}", scored.stderr);

    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for line in answers.by_ref().take(kinds.len() + 1) {
        let answer: Value = serde_json::from_str(&line).expect("is JSON");
        lines.insert(answer["id"].as_str().expect("is ours").to_owned(), line);
    }
    assert!(lines["unknown"].contains("\"status\":\"unknown-instance\""), "{}", lines["unknown"]);
    for kind in &kinds {
        let place = bench.path().join("scores/trees/1").join(kind).join("scores.jsonl");
        let rows = std::fs::read_to_string(place).expect("is written");
        let row = rows.lines().find(|row| row.contains(&id)).expect("has a row");
        let row = row.replace(&format!("\"run\":\"{kind}\""), "\"run\":\"serve\"");
        assert!(lines[*kind].ends_with(&format!(",\"score\":{row}}}")), "{kind}: {}\n{row}", lines[*kind]);
    }
    let good = String::from_utf8(submission("good", &tree)).expect("is text");
    ask(&json!({ "id": "again", "instance_id": id, "submission": good, "evidence": true }));
    let again: Value = serde_json::from_str(&answers.next().expect("an answer")).expect("is JSON");
    assert_eq!((&again["known"], &again["score"]["fidelity"]), (&json!(true), &json!(true)));
    assert!(again["evidence"]["verdict"].is_object());

    // A stop answers what waits, and ends in order.
    let slow = "import time\ntime.sleep(100)\n";
    ask(&json!({ "id": "slow", "instance_id": id, "submission": format!("{good}\n{slow}") }));
    std::thread::sleep(std::time::Duration::from_secs(1));
    nix::sys::signal::kill(Pid::from_raw(server.id().cast_signed()), Signal::SIGTERM).expect("is there");
    let last: Value = serde_json::from_str(&answers.next().expect("an answer")).expect("is JSON");
    assert_eq!((&last["id"], &last["status"]), (&json!("slow"), &json!("stopping")));
    assert_eq!(server.wait().expect("ends").code(), Some(0));
}

#[test]
fn what_cannot_be_served_is_refused_before_anything_is_made() {
    let bench = Bench::after_a_build();
    let ended = bench.run(&["serve", "output/trees/1", "--listen", "0.0.0.0:0"]).with_code(2);
    assert!(
        ended.stderr.contains("there is no login") && ended.stderr.contains("--public"),
        "{}",
        ended.stderr
    );
    let ended = bench.run(&["serve", "output", "--stdio"]).with_code(2);
    assert!(!ended.stderr.is_empty());
}
