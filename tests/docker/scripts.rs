//! A pair whose suite scripts run in an image, from the build to scores and to `verify`.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::Bench;

/// What pytest could not do: it is not installed in the image.
const RUN_TESTS: &str = r#"#!/usr/bin/env python3
import json, os, sys, unittest
sys.path.insert(0, ".")
result = unittest.TestResult()
unittest.defaultTestLoader.discover("checks", pattern="check_*.py", top_level_dir=".").run(result)
failed = len(result.failures) + len(result.errors)
skipped = len(result.skipped)
assert os.environ["STARTED"] == open("/tmp/started").read() == "yes", "set-up ran before"
if os.path.exists("crash"):
    os._exit(1)
print(json.dumps({"passed": result.testsRun - failed - skipped, "failed": failed, "skipped": skipped, "total": result.testsRun}))
"#;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let made = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(made.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

fn write(path: PathBuf, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A module whose function gets another name and another place, and checks that go with it.
fn commit(clone: &Path, module: &str, function: &str) -> String {
    for old in ["shapes.py", "areas.py"] {
        let _ = std::fs::remove_file(clone.join("pkg").join(old));
    }
    write(clone.join("pkg/__init__.py"), "");
    write(clone.join("checks/__init__.py"), "");
    let body = format!(
        "def {function}(width, height):\n    if width < 0:\n        raise ValueError(width)\n    return width * height\n"
    );
    write(clone.join(format!("pkg/{module}.py")), &body);
    let mut checks = format!(
        "import unittest\nfrom pkg.{module} import {function}\n\n\nclass Areas(unittest.TestCase):\n"
    );
    for at in 0..12 {
        let _ = writeln!(
            checks,
            "    def test_{at}(self):\n        self.assertEqual({function}({at}, 3), {})\n",
            at * 3
        );
    }
    checks.push_str("    def test_that_fails(self):\n        self.fail()\n");
    write(clone.join("checks/check_areas.py"), &checks);
    git(clone, &["add", "-A"]);
    git(clone, &["commit", "-qm", function]);
    git(clone, &["rev-parse", "HEAD"])
}

pub fn scripts_run_the_suite_of_a_pair() {
    let bench = Bench::new();
    let clone = bench.path().join("clone");
    std::fs::create_dir(&clone).unwrap();
    git(&clone, &["init", "-q"]);
    let base = commit(&clone, "shapes", "calc_area");
    let golden = commit(&clone, "areas", "area_of");
    let scripts = bench.path().join("scripts");
    write(scripts.join("run_tests"), RUN_TESTS);
    write(scripts.join("setup_system.sh"), "printf yes > /tmp/started\n");
    write(scripts.join("setup_shell.sh"), "export STARTED=yes\n");
    std::fs::set_permissions(scripts.join("run_tests"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let pair = |name: &str, more: &str| {
        format!(
            "[dataset]\nfamily = \"codetaste\"\nname = \"{name}\"\nversion = \"1\"\n[codetaste]\nruns = 2\nmin_patterns = 3\n\
             [docker]\nbase = \"{}\"\n[[repo]]\nslug = \"made/up\"\npath = \"clone\"\n[[pair]]\nrepo = \"made/up\"\n\
             golden = \"{golden}\"\ndescription = \"Give it a better name.\"\nbackend = \"docker\"\n{more}",
            crate::base()
        )
    };
    bench.write_config(&pair("trees", "run_tests = \"scripts\"\n"));
    bench.run(&["check"]).with_code(0);
    bench.build(&[]).with_code(0);
    let [instance] = &bench.dataset().instances()[..] else { panic!("not one instance") };
    let of = |key: &str| instance[key].clone();
    assert_eq!((of("suite"), of("language"), of("n_must_pass")), ("run_tests".into(), Value::Null, 0.into()));
    assert_eq!(
        (of("runs"), of("p_min"), of("f_max"), of("tests_base")),
        (2.into(), 12.into(), 1.into(), 13.into())
    );
    let id = of("instance_id").as_str().unwrap().to_owned();
    let hidden = bench.path().join("output/trees/1/hidden").join(&id);
    assert_eq!(std::fs::read_to_string(hidden.join("scripts/run_tests")).unwrap(), RUN_TESTS);

    let hand_in = |run: &str, change: &dyn Fn()| {
        git(&clone, &["checkout", "-q", "-f", &base]);
        git(&clone, &["apply", hidden.join("golden.diff").to_str().unwrap()]);
        change();
        git(&clone, &["add", "-A"]);
        let text = git(&clone, &["diff", "--cached", "--binary"]) + "\n";
        git(&clone, &["reset", "-q", "--hard"]);
        write(bench.path().join(format!("runs/{run}/{id}/prediction.diff")), &text);
    };
    let areas = clone.join("pkg/areas.py");
    hand_in("same", &|| {});
    hand_in("breaks", &|| {
        write(areas.clone(), &std::fs::read_to_string(&areas).unwrap().replace("width * height", "width"));
    });
    hand_in("crashes", &|| write(clone.join("crash"), "x"));
    // The scripts that are asked for are gone: those of the dataset run.
    std::fs::remove_dir_all(&scripts).unwrap();
    let score = ["score", "output/trees/1", "runs/same", "runs/breaks", "runs/crashes", "--containers"];
    bench.run(&score).with_code(0);
    for (run, class, pass, ifr) in [
        ("golden", "passes", true, 1.0),
        ("base", "passes", true, 0.0),
        ("same", "passes", true, 1.0),
        ("breaks", "regression", false, 1.0),
        ("crashes", "suite-crashes", false, 1.0),
    ] {
        let file = bench.path().join("scores/trees/1").join(run).join("scores.jsonl");
        let row: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let seen = (row["class"].as_str(), row["pass"].as_bool(), row["ifr"].as_f64(), &row["pass_set"]);
        assert_eq!(seen, (Some(class), Some(pass), Some(ifr), &Value::Null), "{run}: {row}");
    }
    let ended = bench.run(&["verify", "output/trees/1", "--containers"]).with_code(0);
    assert!(ended.stdout.contains("as recorded: 1 of 1"), "{}", ended.stdout);
    let export =
        |harness: &str| bench.run(&["export", "output/trees/1", "--to", harness, "--output", harness]);
    let ended = export("swe-bench").with_code(2);
    assert!(ended.stderr.contains("scripts that run a suite name none"), "{}", ended.stderr);
    export("harbor").with_code(0);
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let broken = read(bench.path().join(format!("runs/breaks/{id}/prediction.diff")));
    let patches = [read(hidden.join("golden.diff")), String::new(), broken];
    judge_in_container(&bench.path().join("harbor"), of("image").as_str().unwrap(), &patches);

    for (name, file, text, cause) in [
        (
            "dirty",
            "setup_shell.sh",
            "export STARTED=yes\nprintf yes > /tmp/started\necho x > pkg/new.py\n",
            "changes-tree",
        ),
        ("broken", "setup_system.sh", "exit 3\n", "suite-crashes"),
    ] {
        write(bench.path().join(name).join("run_tests"), RUN_TESTS);
        let program = bench.path().join(name).join("run_tests");
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
        write(bench.path().join(name).join(file), text);
        bench.write_config(&pair(name, &format!("run_tests = \"{name}\"\n")));
        bench.build(&[]).with_code(0);
        let built = bench.path().join("output").join(name).join("1");
        let ended = bench.run(&["list", built.to_str().unwrap(), "--state", "dropped"]).with_code(0);
        assert!(ended.stdout.contains(cause), "{}", ended.stdout);
    }
}

/// The judge of an exported task, in a container as Harbor has it: the golden patch, the empty one, and one that breaks a check.
fn judge_in_container(exported: &Path, image: &str, [golden, null, broken]: &[String; 3]) {
    let task = std::fs::read_dir(exported.join("tasks")).unwrap().next().unwrap().unwrap().path();
    for (name, patch, reward, pass) in
        [("golden", golden, 1.0, 1), ("null", null, 0.0, 1), ("broken", broken, 0.0, 0)]
    {
        let made = exported.join(name);
        write(made.join("output/prediction.diff"), patch);
        write(made.join("logs/verifier/x"), "");
        let mount = |host: PathBuf, inside: &str| format!("{}:{inside}", host.display());
        crate::docker(&[
            "run",
            "--rm",
            "--network",
            "none",
            "--user",
            "root",
            "-v",
            &mount(task.join("tests"), "/tests"),
            "-v",
            &mount(made.join("output"), "/output"),
            "-v",
            &mount(made.join("logs"), "/logs"),
            image,
            "bash",
            "/tests/test.sh",
        ]);
        let rewards: Value =
            serde_json::from_str(&std::fs::read_to_string(made.join("logs/verifier/reward.json")).unwrap())
                .unwrap();
        assert_eq!(
            (&rewards["reward"], &rewards["pass"]),
            (&reward.into(), &pass.into()),
            "{name}: {rewards}"
        );
        assert_eq!(rewards.get("pass_set"), None);
    }
}
