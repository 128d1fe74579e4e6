//! A tree of commands, each with what becomes of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::common::Bench;
use crate::common::dataset::text;

const TREE: &str = "labelled_commands";
const SETTINGS: &str = "[screen]\nattempts = 2\ncase_timeout = \"3s\"\n";
/// Keys that an entry of a configuration has as the label has them.
const KEYS: [&str; 6] = ["command", "stdin", "stdin_file", "cwd", "exit", "files"];

/// Name, section of the configuration, and what becomes of it.
fn labels(bench: &Bench) -> Vec<(String, String, String)> {
    let file = bench.path().join("trees").join(TREE).join("labels.toml");
    let table: toml::Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
    let label = |(at, one): (usize, &toml::Value)| {
        let name =
            one.get("name").and_then(|name| name.as_str()).map_or(format!("label-{at}"), str::to_owned);
        let mut section = format!("[[repo.entry]]\nname = \"{name}\"\n");
        for key in KEYS.into_iter().chain(["env"]) {
            if let Some(value) = one.get(key) {
                let _ = writeln!(section, "{key} = {value}");
            }
        }
        (name, section, one["becomes"].as_str().unwrap().to_owned())
    };
    table["entry"].as_array().unwrap().iter().enumerate().map(label).collect()
}

#[test]
fn every_command_becomes_what_its_label_says() {
    let bench = Bench::new();
    bench.configure(SETTINGS, &[TREE]);
    let file = bench.path().join("repos.toml");
    let labels = labels(&bench);
    assert!(labels.len() >= 60, "{}", labels.len());
    let sections: String = labels.iter().map(|(_, section, _)| section.as_str()).collect();
    let settings =
        std::fs::read_to_string(&file).unwrap().replacen("[dataset]\n", "[dataset]\nper_repo = 0\n", 1);
    bench.write_config(&format!("{settings}tests = []\n{sections}"));
    bench.build(&[]).with_code(0);
    let dataset = bench.dataset();
    let rows: BTreeMap<String, Value> =
        dataset.rows("groups").into_iter().map(|row| (text(&row["group_id"]).to_owned(), row)).collect();
    let instances: BTreeMap<String, Value> =
        dataset.instances().into_iter().map(|one| (text(&one["group_id"]).to_owned(), one)).collect();
    let mut wrong = String::new();
    for (name, section, expected) in &labels {
        let id = format!("entry::{name}");
        let row = &rows[&id];
        let became = match (row["kept"] == true, instances.contains_key(&id)) {
            (true, true) => "instance",
            (true, false) => "kept",
            (false, _) => text(&row["cause"]),
        };
        if became != expected {
            let _ = writeln!(wrong, "{section}expected {expected}, became {became}: {}", row["evidence"]);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    for (id, one) in &instances {
        assert!(one["variants"].as_u64().is_some_and(|n| (1..=4).contains(&n)), "{id}: {}", one["variants"]);
    }
}
