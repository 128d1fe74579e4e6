//! A refactoring of a repository's own history, from two commits to the score of patches.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Bench, Running};

const CONFIG: &str = "[dataset]\nfamily = \"codetaste\"\nname = \"trees\"\nversion = \"1\"\n[screen]\nattempts = 2\n\
                      [codetaste]\nruns = 2\nmin_patterns = 3\n[[repo]]\nslug = \"made/up\"\npath = \"clone\"\n";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let made = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("GIT_AUTHOR_DATE", "2026-01-10T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-10T00:00:00Z")
        .output()
        .unwrap();
    assert!(made.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

fn write(folder: &Path, path: &str, text: &str) {
    std::fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
    std::fs::write(folder.join(path), text).unwrap();
}

/// A module whose function gets another name and another place, and tests that go with it.
fn commit(clone: &Path, module: &str, function: &str) -> String {
    for old in ["shapes.py", "areas.py", "use.py"] {
        let _ = std::fs::remove_file(clone.join("pkg").join(old));
    }
    let body = format!(
        "def {function}(width, height):\n    if width < 0 or height < 0:\n        raise ValueError(width)\n    return width * height\n"
    );
    write(clone, "pkg/__init__.py", "");
    write(clone, &format!("pkg/{module}.py"), &body);
    let mut uses = format!("from pkg.{module} import {function}\n");
    let mut tests = format!("from pkg import use\nfrom pkg.{module} import {function}\n");
    for at in 0..12 {
        let _ = write!(uses, "\n\ndef room_{at}():\n    return {function}({at}, 2)\n");
        let _ = write!(tests, "\n\ndef test_{at}():\n    assert {function}({at}, 3) == {}\n", at * 3);
    }
    tests.push_str("\n\ndef test_rooms():\n    assert use.room_3() == 6\n");
    tests.push_str(FAILS);
    write(clone, "pkg/use.py", &uses);
    write(clone, TESTS, &tests);
    git(clone, &["add", "-A"]);
    git(clone, &["commit", "-qm", function]);
    git(clone, &["rev-parse", "HEAD"])
}

const TESTS: &str = "tests/test_areas.py";
const FAILS: &str = "\n\ndef test_that_fails():\n    assert False\n";

/// A bench with a clone, its first commit and the refactoring after it.
fn refactored() -> (Bench, PathBuf, String, String) {
    let bench = Bench::new();
    let clone = bench.path().join("clone");
    std::fs::create_dir(&clone).unwrap();
    git(&clone, &["init", "-q"]);
    let base = commit(&clone, "shapes", "calc_area");
    let golden = commit(&clone, "areas", "area_of");
    (bench, clone, base, golden)
}

/// A dataset of two pairs, of which one is an instance.
struct Made {
    bench: Bench,
    clone: PathBuf,
    base: String,
    golden: String,
}

impl Made {
    fn new() -> Self {
        let (bench, clone, base, golden) = refactored();
        write(&clone, "README.md", "words\n");
        git(&clone, &["add", "-A"]);
        git(&clone, &["commit", "-qm", "words"]);
        let words = git(&clone, &["rev-parse", "HEAD"]);
        let pairs = format!(
            "[[pair]]\nrepo = \"made/up\"\ngolden = \"{golden}\"\ndescription = \"Give the area a better name.\"\n\
             [[pair]]\nrepo = \"made/up\"\ngolden = \"{words}\"\n"
        );
        bench.write_config(&format!("{CONFIG}{pairs}"));
        bench.run(&["check"]).with_code(0);
        bench.build(&[]).with_code(0);
        Made { bench, clone, base, golden }
    }

    fn instance(&self) -> Value {
        let instances = self.bench.dataset().instances();
        let [instance] = &instances[..] else { panic!("{instances:?}") };
        instance.clone()
    }

    fn id(&self) -> String {
        self.instance()["instance_id"].as_str().unwrap().to_owned()
    }

    fn golden_diff(&self) -> PathBuf {
        self.bench.path().join("output/trees/1/hidden").join(self.id()).join("golden.diff")
    }

    fn apply(&self) {
        git(&self.clone, &["apply", self.golden_diff().to_str().unwrap()]);
    }

    /// Changes a file of the clone.
    fn edit(&self, path: &str, change: impl Fn(String) -> String) {
        let text = std::fs::read_to_string(self.clone.join(path)).unwrap_or_default();
        write(&self.clone, path, &change(text));
    }

    /// Hands in the difference that a change makes to the base.
    fn hand_in(&self, run: &str, change: &dyn Fn()) {
        git(&self.clone, &["checkout", "-q", "-f", &self.base]);
        git(&self.clone, &["clean", "-qfdx"]);
        change();
        git(&self.clone, &["add", "-A"]);
        let text = git(&self.clone, &["diff", "--cached", "--binary"]) + "\n";
        git(&self.clone, &["reset", "-q", "--hard"]);
        write(&self.bench.path().join("runs"), &format!("{run}/{}/prediction.diff", self.id()), &text);
    }

    fn score(&self, runs: &[&str]) {
        let slug = self.instance()["slug"].as_str().unwrap().to_owned();
        let source = format!("--source={slug}={}", self.clone.display());
        let runs: Vec<String> = runs.iter().map(|run| format!("runs/{run}")).collect();
        let mut arguments = vec!["score", "output/trees/1", &source];
        arguments.extend(runs.iter().map(String::as_str));
        git(&self.clone, &["checkout", "-q", "-f", &self.base]);
        self.bench.run(&arguments).with_code(0);
    }

    fn scored(&self, run: &str) -> Value {
        let file = self.bench.path().join("scores/trees/1").join(run).join("scores.jsonl");
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    }

    fn is_scored(&self, run: &str, class: &str, flags: &[&str]) {
        let row = self.scored(run);
        let set = Value::from(!matches!(class, "regression" | "patch-failed" | "suite-crashes"));
        let expected = (&Value::from(class), &set, &Value::from(flags.to_vec()));
        assert_eq!((&row["class"], &row["pass_set"], &row["flags"]), expected, "{run}: {row}");
    }
}

#[test]
fn a_refactoring_becomes_an_instance_and_patches_are_judged() {
    let made = Made::new();
    let instance = made.instance();
    assert_eq!((&instance["repo"], &instance["base_commit"]), (&"made/up".into(), &made.base.clone().into()));
    assert_eq!((&instance["p_min"], &instance["f_max"]), (&13.into(), &1.into()), "{instance}");
    assert_eq!((&instance["n_must_pass"], &instance["runs"]), (&13.into(), &2.into()));
    let dataset = made.bench.dataset();
    let causes: Vec<Value> = dataset.rows("pairs").iter().map(|row| row["cause"].clone()).collect();
    assert!(causes.contains(&Value::Null) && causes.contains(&"no-code".into()), "{causes:?}");
    assert_eq!(dataset.rows("suite_runs").len(), 4);
    let whole = std::fs::read_to_string(made.golden_diff()).unwrap();
    assert!(whole.contains("rename from pkg/shapes.py"), "{whole}");

    made.hand_in("same", &|| made.apply());
    made.hand_in("half", &|| {
        made.apply();
        git(&made.clone, &["checkout", "-q", &made.base, "--", "pkg/use.py", "pkg/shapes.py"]);
    });
    made.hand_in("breaks", &|| {
        made.apply();
        made.edit("pkg/areas.py", |text| text.replace("width * height", "width * width"));
    });
    made.hand_in("fewer", &|| {
        made.apply();
        made.edit(TESTS, |text| text.replace(FAILS, ""));
    });
    made.hand_in("skipped", &|| {
        made.apply();
        let skips = "import pytest\n\n\n@pytest.mark.skip\ndef test_that_fails";
        made.edit(TESTS, |text| text.replace("def test_that_fails", skips));
    });
    made.hand_in("no-tests", &|| {
        made.apply();
        std::fs::remove_file(made.clone.join(TESTS)).unwrap();
    });
    made.hand_in("emptied", &|| {
        made.apply();
        made.edit(TESTS, |text| text.replace("    assert use.room_3() == 6\n", "    use.room_3()\n"));
    });
    made.hand_in("comments", &|| made.edit("pkg/shapes.py", |text| text + "# area_of\n"));
    made.hand_in("built", &|| made.edit("dist/old.py", |_| "def calc_area():\n    pass\n".to_owned()));
    write(&made.bench.path().join("runs"), &format!("no-patch/{}/prediction.diff", made.id()), "words\n");
    made.score(&[
        "same", "half", "breaks", "fewer", "skipped", "no-tests", "emptied", "comments", "built", "no-patch",
    ]);
    made.is_scored("same", "passes", &[]);
    made.is_scored("half", "passes", &[]);
    made.is_scored("breaks", "regression", &[]);
    made.is_scored("fewer", "passes", &["deletes-failing-tests"]);
    made.is_scored("skipped", "passes", &["skips-failing-tests"]);
    made.is_scored("no-tests", "suite-crashes", &["deletes-failing-tests"]);
    made.is_scored("emptied", "passes", &["weakens-tests"]);
    made.is_scored("comments", "passes", &["comments-only"]);
    made.is_scored("built", "passes", &["hides-code"]);
    made.is_scored("no-patch", "patch-failed", &[]);
    let rate = |run: &str, key: &str| made.scored(run)[key].as_f64().unwrap();
    for (run, ifr) in [("golden", 1.0), ("same", 1.0), ("base", 0.0), ("no-patch", 0.0), ("built", 0.0)] {
        assert_eq!(made.scored(run)["ifr"], ifr, "{run}");
    }
    assert!(rate("half", "ifr") > 0.0 && rate("half", "ifr") < 1.0, "{}", rate("half", "ifr"));
    assert_eq!(made.scored("same")["alignment"], 1.0);
    assert_eq!(made.scored("breaks")["alignment"], 0.0);
    assert_eq!(made.scored("same")["prec"], instance["golden_prec"]);
    is_exported(&made, &whole);
}

#[test]
fn a_patch_takes_the_place_of_the_golden_commit() {
    let (bench, clone, base, golden) = refactored();
    write(bench.path(), "moved.diff", &(git(&clone, &["diff", "--binary", &base, &golden]) + "\n"));
    let pair =
        |base: &str| format!("[[pair]]\nrepo = \"made/up\"\npatch = \"moved.diff\"\ncommit = \"{base}\"\n");
    bench.write_config(&format!("{CONFIG}{}{}", pair(&base), pair(&golden)));
    bench.run(&["check"]).with_code(0);
    bench.build(&[]).with_code(0);
    let [instance] = &bench.dataset().instances()[..] else { panic!("not one instance") };
    assert!(instance["golden_commit"].as_str().unwrap().starts_with("sha256:"), "{instance}");
    assert_eq!((&instance["p_min"], &instance["f_max"]), (&13.into(), &1.into()), "{instance}");
    let causes: Vec<Value> = bench.dataset().rows("pairs").iter().map(|row| row["cause"].clone()).collect();
    assert!(causes.contains(&Value::Null) && causes.contains(&"patch-differs".into()), "{causes:?}");
}

const RULES: &str = r#"{"rules": [
  {"id": "old-import", "pattern": "from pkg.shapes import calc_area", "metadata": {"side": "reductive"},
   "message": "m", "severity": "INFO", "languages": ["python"]},
  {"id": "old-call", "pattern": "calc_area(...)", "metadata": {"side": "reductive"},
   "message": "m", "severity": "INFO", "languages": ["python"]},
  {"id": "new-import", "pattern": "from pkg.areas import area_of", "metadata": {"side": "additive"},
   "message": "m", "severity": "INFO", "languages": ["python"]},
  {"id": "new-call", "pattern": "area_of(...)", "metadata": {"side": "additive"},
   "message": "m", "severity": "INFO", "languages": ["python"]}]}"#;

/// Two instances: one with patterns of OpenGrep's form, one with mined patterns; engine and environment of the first fail.
#[test]
#[ignore = "needs in GISTMILL_TEST_SEMGREP the program of Semgrep"]
fn patterns_of_the_outside_engine_judge_and_trouble_of_one_pair_is_its_own() {
    let semgrep = PathBuf::from(std::env::var_os("GISTMILL_TEST_SEMGREP").unwrap());
    let (bench, clone, base, golden) = refactored();
    let next = commit(&clone, "shapes", "plain_area");
    write(bench.path(), "given.yml", RULES);
    let pair =
        |golden: &str, more: &str| format!("[[pair]]\nrepo = \"made/up\"\ngolden = \"{golden}\"\n{more}");
    let pairs = pair(&golden, "patterns = [\"given.yml\"]\n") + &pair(&next, "");
    bench.write_config(&format!("{CONFIG}{pairs}"));
    let run = |folder: &Path, arguments: &[&str]| {
        let mut command = bench.gistmill(arguments);
        let paths = [folder.to_owned()].into_iter();
        let others = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", std::env::join_paths(paths.chain(std::env::split_paths(&others))).unwrap());
        Running::start(command).wait()
    };
    let bin = semgrep.parent().unwrap();
    run(bin, &["build", "repos.toml"]).with_code(0);
    let slugs = [format!("made/up-{}", &base[..8]), format!("made/up-{}", &golden[..8])];
    let sources = slugs.clone().map(|slug| format!("--source={slug}={}", clone.display()));
    let score = |folder: &Path, first: &str, name: &str| {
        let name = format!("--output=scored-{name}");
        run(folder, &["score", "output/trees/1", "runs", first, &sources[1], &name])
    };
    let classes = |name: &str| -> Vec<(Value, Value)> {
        let file = bench.path().join(format!("scored-{name}/trees/1/golden/scores.jsonl"));
        let rows = std::fs::read_to_string(file).unwrap();
        let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).unwrap());
        let mut all: Vec<Value> = rows.collect();
        all.sort_by_key(|row| row["slug"] != slugs[0].as_str());
        all.into_iter().map(|row| (row["class"].clone(), row["ifr"].clone())).collect()
    };
    for instance in bench.dataset().instances() {
        write(
            bench.path(),
            &format!("runs/{}/prediction.diff", instance["instance_id"].as_str().unwrap()),
            "",
        );
    }
    score(bin, &sources[0], "whole").with_code(0);
    let passes = (Value::from("passes"), Value::from(1.0));
    assert_eq!(classes("whole"), [passes.clone(), passes.clone()]);
    let lost = [(Value::from("lost"), Value::Null), passes];

    let dead = bench.path().join("dead");
    std::fs::create_dir(&dead).unwrap();
    std::fs::copy("/bin/false", dead.join("opengrep")).unwrap();
    let ended = score(&dead, &sources[0], "dead").with_code(1);
    assert!(ended.stderr.contains("the engine of patterns failed"), "{}", ended.stderr);
    assert_eq!(classes("dead"), lost);

    let other = bench.path().join("other");
    std::fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    commit(&other, "shapes", "another");
    let ended = score(bin, &format!("--source={}={}", slugs[0], other.display()), "other").with_code(1);
    assert!(ended.stderr.contains("is judged"), "{}", ended.stderr);
    assert_eq!(classes("other"), lost);

    let manifest = bench.path().join("output/trees/1/manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    assert!(text.contains("semgrep 1."), "{text}");
    std::fs::write(&manifest, text.replace("semgrep 1.", "semgrep 0.")).unwrap();
    let ended = run(bin, &["verify", "output/trees/1", &sources[0], &sources[1]]).with_code(0);
    assert!(ended.stdout.contains("built with semgrep 0."), "{}", ended.stdout);
}

/// The authors' layout has it, other commands read it, and a harness needs a description.
fn is_exported(made: &Made, whole: &str) {
    let bench = &made.bench;
    bench.run(&["export", "output/trees/1", "--to", "codetaste", "--output", "authors"]).with_code(0);
    let (base, golden, digits) = (&made.base, &made.golden, &made.base[..8]);
    let exported = |path: &str| std::fs::read_to_string(bench.path().join("authors").join(path)).unwrap();
    let row = format!("made,up,{golden},{base},refactoring,python");
    assert_eq!(exported("instances.csv").lines().nth(1).unwrap(), row);
    let runs = exported(&format!("baseline_results/made/up/{digits}/null_agent.jsonl"));
    assert_eq!(runs.lines().count(), 2);
    assert!(exported(&format!("assets/rules/made/up/{digits}/rules_negative.yml")).contains("calc_area"));
    let patch = format!("outputs/pseudo_agents/direct/made/up/{digits}/golden_agent/prediction.diff");
    assert_eq!(exported(&patch), whole);
    let ended = bench.run(&["list", "output/trees/1", "--state", "published"]).with_code(0);
    assert_eq!(ended.stdout.trim(), format!("published  made/up-{digits} {golden}"));
    let ended = bench.run(&["verify", "output/trees/1"]).with_code(0);
    assert!(ended.stdout.contains("as recorded: 1 of 1"), "{}", ended.stdout);
    let page = std::fs::read_to_string(bench.path().join("output/trees/1/hidden/report.html")).unwrap();
    assert!(page.contains("added marked"), "{page}");
    let harbor = ["export", "output/trees/1", "--to", "harbor", "--output", "other"];
    let ended = bench.run(&harbor).with_code(0);
    assert!(ended.stdout.contains("1 task, 1 with a solution"), "{}", ended.stdout);
    let ended = bench.run(&[&harbor[..], &["--track", "open"]].concat()).with_code(2);
    assert!(ended.stderr.contains("no description of the track open"), "{}", ended.stderr);
}
