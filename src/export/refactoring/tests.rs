//! Exports of refactorings, written and read back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use polars::prelude::*;
use serde_json::Value;

use crate::dataset::Dataset;
use crate::error::Result;
use crate::export::read::Wanted;
use crate::export::read::refactorings::{Told, collection};
use crate::export::{Collection, Harness, write};
use crate::family::codetaste::prompt::{Mode, Track};
use crate::testing::made_up::MadeUp;
use crate::testing::pairs::GOLDEN;

const ALL: [Harness; 5] =
    [Harness::Harbor, Harness::SweBench, Harness::MiniSweAgent, Harness::SweAgent, Harness::Prompts];

struct Bench {
    folder: tempfile::TempDir,
    dataset: Dataset,
}

impl Bench {
    fn new(change: impl Fn(&mut MadeUp)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("dataset");
        let mut made_up = MadeUp::pairs(&[12]);
        change(&mut made_up);
        crate::testing::write(&directory, &made_up.input()).unwrap();
        Bench { dataset: Dataset::open_any(&directory).unwrap(), folder }
    }

    fn collection(&self, told: Told) -> Result<Collection> {
        let instances = self.dataset.codetaste_instances().unwrap();
        collection(&self.dataset, &instances, (&Wanted::default(), told))
    }

    fn export(&self, told: Told, harnesses: &[Harness]) -> Result<Collection> {
        let collection = self.collection(told)?;
        let harnesses: BTreeSet<Harness> = harnesses.iter().copied().collect();
        write::write(&self.out(), &self.dataset.directory, &collection, &harnesses)?;
        Ok(collection)
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn text(&self, name: &str) -> String {
        fs_err::read_to_string(self.out().join(name)).unwrap()
    }
}

fn described(made_up: &mut MadeUp, text: &str) {
    made_up.repositories[0].codetaste.as_mut().unwrap().description = Some(text.to_owned());
}

fn refused(result: Result<Collection>) -> String {
    let error = result.unwrap_err();
    format!("{error}\n{}", error.detail().unwrap_or_default())
}

/// Files below a folder that hold a text.
fn with(folder: &Path, text: &str) -> Vec<String> {
    let all = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().map(std::result::Result::unwrap);
    let files = all.filter(|entry| entry.file_type().is_file());
    let has = |path: &Path| {
        let bytes = fs_err::read(path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let names = files.filter(|entry| has(entry.path()));
    names.map(|entry| entry.path().strip_prefix(folder).unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn agents_get_a_description_and_the_judge_the_patterns_and_bounds() {
    let bench = Bench::new(|_| {});
    let collection = bench.export(Told::default(), &ALL).unwrap();
    let id = collection.tasks[0].id.to_string();
    let instruction = bench.text(&format!("tasks/{id}/instruction.md"));
    assert!(instruction.contains("Give `old_name` a better name.") && instruction.contains("/testbed"));
    let judged: Value = serde_json::from_str(&bench.text(&format!("tasks/{id}/tests/task.json"))).unwrap();
    assert_eq!((&judged["p_min"], &judged["f_max"]), (&20.into(), &1.into()));
    let pattern = &judged["patterns"][0];
    assert_eq!(
        [&pattern["id"], &pattern["side"], &pattern["kind"], &pattern["name"]],
        ["ident-the-new-name", "additive", "ident", "the_new_name_of_it"]
    );
    assert!(judged["must_pass"].as_array().is_some_and(|cases| !cases.is_empty()));
    let task: toml::Table = bench.text(&format!("tasks/{id}/task.toml")).parse().unwrap();
    assert_eq!(task["artifacts"].as_array().unwrap()[0].as_str(), Some("/output/prediction.diff"));
    let collect = task["verifier"]["collect"][0]["command"].as_str().unwrap();
    assert!(collect.contains("diff --cached --binary") && collect.ends_with("> /output/prediction.diff"));
    assert_eq!(bench.text(&format!("tasks/{id}/solution/golden.diff")), GOLDEN);
    let test = bench.text(&format!("tasks/{id}/tests/test.sh"));
    assert!(test.contains("> \"$patch\"\nfi\nexec python -I /tests/refactoring.py --container"), "{test}");

    let parquet = std::fs::File::open(bench.out().join("data/test-00000-of-00001.parquet")).unwrap();
    let frame = ParquetReader::new(parquet).finish().unwrap();
    let cell = |name: &str| frame.column(name).unwrap().str().unwrap().get(0).unwrap().to_owned();
    assert_eq!((cell("FAIL_TO_PASS").as_str(), cell("patch").as_str()), ("[]", GOLDEN));
    assert!(cell("PASS_TO_PASS").starts_with("[\"tests/"), "{}", cell("PASS_TO_PASS"));
    let script = cell("eval_script");
    assert!(script.contains("/refactoring.py --container --log") && script.contains("Start Test Output"));
    assert!(bench.text("mini-swe-agent.yaml").contains("git diff --cached --binary \"$(git rev-list"));
    assert!(bench.text(&format!("prompts/{id}/direct.md")).contains("better name"));
    assert!(bench.text("README.md").contains("PASS × IFR"));
}

#[test]
fn nothing_of_the_hidden_side_is_where_agents_look() {
    let bench = Bench::new(|_| {});
    let collection = bench.export(Told::default(), &ALL).unwrap();
    let id = collection.tasks[0].id.to_string();
    for secret in ["the_new_name_of_it", "def-old-name", "ident-the-new-name"] {
        for place in with(&bench.out(), secret) {
            let own = place.strip_prefix(&format!("tasks/{id}/")).unwrap_or(&place);
            let is_judges = ["tests/", "solution/", "data/"].iter().any(|start| own.starts_with(start));
            assert!(is_judges, "{secret} is in {place}");
        }
    }
    let tree = bench.out().join("images").join("made__up0-2ac89889").join("tree.tar.gz");
    let mut unpacked = tar::Archive::new(flate2::read::GzDecoder::new(fs_err::File::open(tree).unwrap()));
    for entry in unpacked.entries().unwrap() {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut entry.unwrap(), &mut text).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("the_new_name_of_it"));
    }
    assert!(collection.tasks[0].judging.suite.as_ref().unwrap().secrets.len() >= 3);
}

#[test]
fn a_description_that_has_a_line_of_the_golden_patch_or_a_pattern_is_refused() {
    for planted in ["return the_new_name_of_it(b)", "as the pattern ident-the-new-name says"] {
        let bench = Bench::new(|made_up| described(made_up, planted));
        let said = refused(bench.export(Told::default(), &[Harness::Harbor]));
        assert!(said.contains("its description has what agents must not know"), "{said}");
        let told = Told { allow_leak: true, ..Told::default() };
        bench.export(told, &[Harness::Harbor]).unwrap();
    }
}

#[test]
fn a_lock_may_have_what_the_patch_adds_and_an_image_not_even_where_descriptions_may() {
    let bench = Bench::new(|_| {});
    let harnesses: BTreeSet<Harness> = [Harness::Harbor].into();
    for (secret, is_found) in [("WORKDIR /testbed", true), ("--hash=sha256:", false)] {
        let mut collection = bench.collection(Told { allow_leak: true, ..Told::default() }).unwrap();
        collection.tasks[0].judging.suite.as_mut().unwrap().secrets.push(secret.to_owned());
        let out = bench.folder.path().join(secret.replace('/', ""));
        let written = write::write(&out, &bench.dataset.directory, &collection, &harnesses);
        assert_eq!(written.is_err(), is_found, "{secret}");
        let lock = fs_err::read_dir(out.join("images"));
        assert!(is_found || lock.is_ok() && !with(&out, secret).is_empty(), "{secret} is in no lock");
    }
}

#[test]
fn what_changed_is_taken_whatever_the_index_is_and_where_it_cannot_be_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, out) = (folder.path().join("tree"), folder.path().join("out.diff"));
    let run = |script: &str| {
        let done = std::process::Command::new("bash").args(["-c", script]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let place = tree.display();
    run(&format!(
        "git init -q {place} && cd {place} && echo a > a.py && git add -A && \
         git -c user.name=a -c user.email=a@b commit -q -m tree && echo b > b.py && git add b.py && \
         git -c user.name=a -c user.email=a@b commit -q -m work && echo c >> a.py && touch .git/index.lock"
    ));
    let taking = crate::export::refactoring::taking(&place.to_string(), &out.display().to_string());
    run(&taking);
    let taken = fs_err::read_to_string(&out).unwrap();
    assert!(taken.contains("+++ b/b.py") && taken.contains("\n+c\n"), "{taken}");
    fs_err::remove_file(tree.join(".git/HEAD")).unwrap();
    run(&taking);
    assert!(fs_err::read_to_string(&out).unwrap().starts_with("gistmill: git could not take"));
}

#[test]
fn an_open_description_that_tells_a_name_is_refused_and_a_missing_one_too() {
    let open = Told { track: Track::Open, ..Told::default() };
    let bench = Bench::new(|_| {});
    assert!(refused(bench.collection(open)).contains("it has no description of the track open"));
    let bench = Bench::new(|made_up| {
        let one = made_up.repositories[0].codetaste.as_mut().unwrap();
        one.open_description = Some("Say the_new_name_of_it.".to_owned());
    });
    let said = refused(bench.collection(open));
    assert!(said.contains("only the golden patch adds: the_new_name_of_it (--allow-leak"), "{said}");
    bench.collection(Told { allow_leak: true, ..open }).unwrap();
}

#[test]
fn plans_are_steps_and_the_judge_of_plans_is_for_no_agent() {
    let bench = Bench::new(|_| {});
    let told = Told { mode: Mode::Plan, ..Told::default() };
    let collection = bench.export(told, &[Harness::Harbor]).unwrap();
    let id = collection.tasks[0].id.to_string();
    let task: toml::Table = bench.text(&format!("tasks/{id}/task.toml")).parse().unwrap();
    let names: Vec<_> =
        task["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["plan", "carry-out"]);
    assert_eq!(task["multi_step_reward_strategy"].as_str(), Some("final"));
    let step = |name: &str| bench.text(&format!("tasks/{id}/steps/{name}/instruction.md"));
    assert!(step("plan").contains("better name") && !step("carry-out").contains("better name"));
    assert!(bench.text(&format!("tasks/{id}/steps/carry-out/solution/golden.diff")) == GOLDEN);

    let other = Bench::new(|_| {});
    let told = Told { mode: Mode::Multiplan, ..Told::default() };
    other.export(told, &[Harness::Prompts]).unwrap();
    assert!(other.text(&format!("prompts/{id}/judge.md")).contains("SELECTED: n"));
    assert!(other.text(&format!("prompts/{id}/plans.md")).contains("exactly 5"));
    let steps: Vec<String> = other.text("prompts.jsonl").lines().map(str::to_owned).collect();
    assert_eq!(steps.len(), 3);
}

#[test]
fn patterns_that_no_program_made_judge_in_no_container() {
    let bench = Bench::new(|made_up| {
        let one = made_up.repositories[0].codetaste.as_mut().unwrap();
        one.pattern_files = vec![("own.yml".to_owned(), "id: def-old-name\nlanguage: python\n".to_owned())];
    });
    assert!(refused(bench.collection(Told::default())).contains("no pattern of it is machine-made"));
}
