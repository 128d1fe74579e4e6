//! The judge that goes into an export, on files that want the reward and not the task, and on honest ones: what Harbor,
//! Inspect, verifiers and SWE-bench would be told.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::Bench;

/// A judge beside the tasks of an export of the small tree.
struct Court {
    bench: Bench,
    /// Outside of every checkout: pytest would find a configuration above it.
    folder: tempfile::TempDir,
}

impl Court {
    fn new() -> Self {
        let bench = Bench::after_a_build();
        bench.run(&["export", "output/trees/1", "--to", "harbor", "--output", "exported"]).with_code(0);
        Court { bench, folder: tempfile::tempdir().expect("a folder can be made") }
    }

    fn id(&self, function: &str) -> String {
        let instances = self.bench.dataset().instances();
        let wanted = instances.iter().find(|one| one["test_function"] == function).expect("is published");
        wanted["instance_id"].as_str().expect("has an ID").to_owned()
    }

    /// The reward of a file for the instance, and why.
    fn judge(&self, name: &str, id: &str, text: &str) -> (Value, Value) {
        let folder = self.folder.path().join(name);
        let copy = |from: &Path, to: &Path| {
            let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
            assert!(copied.expect("cp starts").success());
        };
        copy(&self.bench.path().join("exported/tasks").join(id).join("tests"), &folder);
        copy(&self.bench.path().join("trees/small_and_good"), &folder.join("tree"));
        let task = std::fs::read(folder.join("task.json")).expect("is there");
        let mut task: Value = serde_json::from_slice(&task).expect("is JSON");
        assert!(
            task["tests"]
                .as_array()
                .is_some_and(|all| all.iter().all(|one| one["variants"] != Value::Array(vec![])))
        );
        // Here are neither the container's folders nor its users.
        let place = |name: &str| Value::from(folder.join(name).to_string_lossy().into_owned());
        (task["workdir"], task["scratch"], task["user"]) = (place("tree"), place(""), Value::Null);
        std::fs::write(folder.join("task.json"), task.to_string()).expect("can be written");
        std::fs::write(folder.join("handed_in.py"), text).expect("can be written");
        let python = std::env::var_os("GISTMILL_TEST_PYTHON").expect("GISTMILL_TEST_PYTHON names a Python");
        let mut judge = Command::new(python);
        judge.args(["-I", "judge.py", "task.json", "handed_in.py", "out"]).current_dir(&folder);
        let done = judge.output().expect("Python starts");
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        let json = |name: &str| -> Value {
            serde_json::from_slice(&std::fs::read(folder.join("out").join(name)).expect("is written"))
                .expect("is JSON")
        };
        let reward = json("reward.json");
        assert_eq!(reward.as_object().map(serde_json::Map::len), Some(1), "{name}: one number");
        (reward["reward"].clone(), json("reward-details.json"))
    }
}

#[test]
#[ignore = "needs in GISTMILL_TEST_PYTHON a Python with pytest"]
fn the_exported_judge_pays_honest_files_and_no_cheat() {
    let court = Court::new();
    let adds_up = court.id("test_adds_up");
    let counts = court.id("test_counts_each_name");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cheats");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("is there")
        .map(|entry| entry.expect("can be read").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let mut wrong = Vec::new();
    let (mut paid, mut refused) = (0, 0);
    for name in &names {
        let text = std::fs::read_to_string(folder.join(name).join("concise.py")).expect("can be read");
        let id = if text.contains("test_counts_each_name") { &counts } else { &adds_up };
        let wanted = u8::from(name.starts_with("honest"));
        let (reward, details) = court.judge(name, id, &text);
        if reward == wanted {
            if wanted == 1 { paid += 1 } else { refused += 1 }
        } else {
            wrong.push(format!("{name}: {reward}, {}", details["why"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(paid >= 4 && refused >= 25, "{paid} honest files and {refused} cheats");
    let (reward, details) = court.judge(
        "empty",
        &adds_up,
        "import pytest\n\n\nclass TestTwice:\n    def test_adds_up(self): pass\n",
    );
    assert_eq!(reward, 0, "an empty test: {details}");
}
