//! A dataset of masked files, from the tree to the score.

use serde_json::Value;

use crate::common::Bench;

const CONFIG: &str = "[dataset]\nfamily = \"recube\"\nname = \"trees\"\nversion = \"1\"\n[screen]\nattempts = 2\n\
                      [recube]\nmin_groups = 2\n[[repo]]\nslug = \"trees/keeps_values\"\npath = \"trees/keeps_values\"\n";

#[test]
fn a_file_is_masked_and_what_is_handed_in_for_it_is_judged() {
    let bench = Bench::new();
    let tree = bench.tree("keeps_values");
    bench.write_config(CONFIG);
    bench.build(&[]).with_code(0);
    let dataset = bench.dataset();
    let instances = dataset.instances();
    let [instance] = &instances[..] else { panic!("{instances:?}") };
    assert_eq!((&instance["family"], &instance["target"]), (&"recube".into(), &"pkg/core.py".into()));
    assert_eq!((&instance["masked_functions"], &instance["imports_removed"]), (&6.into(), &3.into()));
    let targets = dataset.rows("targets");
    let cause = |file: &str| {
        targets.iter().find(|row| row["target"] == file).unwrap_or_else(|| panic!("{file}"))["cause"].clone()
    };
    assert_eq!((cause("pkg/core.py"), cause("pkg/api.py")), (Value::Null, "few-functions".into()));
    let cases = dataset.rows("instance_cases");
    let of = |name: &str, key: &str| {
        cases.iter().find(|row| row["case_id"] == format!("tests/test_all.py::{name}")).unwrap()[key].clone()
    };
    assert_eq!(of("test_total", "reason"), "other-file-calls");
    assert_eq!(of("test_private", "kind"), "internal");
    assert_eq!(of("test_swallows", "left_out"), "imports-kept", "it needs no body");

    let (id, masked) = (instance["instance_id"].as_str().unwrap(), instance["masked"].as_str().unwrap());
    let original = std::fs::read_to_string(tree.join("pkg/core.py")).unwrap();
    let submissions = [
        ("original", original.clone(), "ran", true),
        ("mask", masked.to_owned(), "not-collected", false),
        ("less", original.replace("if not key:", "if False:"), "ran", false),
        ("odd", "def (\n".to_owned(), "not-readable", false),
        ("leaves", format!("import os\nos._exit(0)\n{original}"), "not-collected", false),
    ];
    let mut arguments =
        vec!["score".to_owned(), "output/trees/1".to_owned(), "--timeout".to_owned(), "20".to_owned()];
    arguments.push(format!("--source=trees/keeps_values={}", tree.display()));
    for (name, text, ..) in &submissions {
        let folder = bench.path().join("runs").join(name).join(id);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("target.py"), text).unwrap();
        arguments.push(format!("runs/{name}"));
    }
    bench.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).with_code(0);
    for (name, _, class, is_solved) in submissions {
        let folder = bench.path().join("scores/trees/1").join(name);
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
        let row: Value = serde_json::from_str(&read("scores.jsonl")).unwrap();
        assert_eq!(
            (&row["class"], row["passed"] == row["total"]),
            (&class.into(), is_solved),
            "{name}: {row}"
        );
        let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
        assert_eq!(summary["all"]["spr"], if is_solved { 100.0 } else { 0.0 }, "{name}");
    }
    let listed = bench.run(&["list", "output/trees/1"]).with_code(0).stdout;
    assert!(listed.contains("published  trees/keeps_values pkg/core.py"), "{listed}");
    let shown = bench.run(&["show", "core.py", "--dataset", "output/trees/1"]).with_code(0).stdout;
    assert!(shown.contains("left out by imports-kept: tests/test_all.py::test_swallows"), "{shown}");
    let source = format!("--source=trees/keeps_values={}", tree.display());
    let verified = bench.run(&["verify", "output/trees/1", &source]).with_code(0).stdout;
    assert!(verified.contains("as recorded: 1 of 1"), "{verified}");
}
