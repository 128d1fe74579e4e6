//! Whole exports of a made-up dataset, written and read back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use polars::prelude::*;
use serde_json::Value;

use super::read::{OtherPrompt, Wanted, collection};
use super::settings::Settings;
use super::{Collection, Harness, write};
use crate::dataset::images::PushedImage;
use crate::dataset::{Dataset, DatasetInput};
use crate::family::gistify::prompt::Template;
use crate::record::engine::EngineKind;
use crate::record::id::sha256_hex;
use crate::record::instance::{Expected, Instance};
use crate::record::outcome::{CommandResult, Outcome};
use crate::record::prompt::{ExecutionSetting, PromptSettings, Tool};
use crate::registry::ImagePlace;
use crate::testing::made_up::MadeUp;

const ALL: [Harness; 7] = [
    Harness::Harbor,
    Harness::Inspect,
    Harness::Verifiers,
    Harness::SweBench,
    Harness::MiniSweAgent,
    Harness::SweAgent,
    Harness::Prompts,
];

struct Bench {
    folder: tempfile::TempDir,
    dataset: Dataset,
}

impl Bench {
    fn new() -> Self {
        let made_up = MadeUp::new(&[12, 5]);
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("dataset");
        crate::testing::write(&directory, &made_up.input()).unwrap();
        Bench { dataset: Dataset::open(&directory).unwrap(), folder }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn export(&self, harnesses: &[Harness]) -> crate::error::Result<BTreeSet<Harness>> {
        let collection = collection(&self.dataset, self.dataset.instances()?, &Wanted::default())?;
        let harnesses = harnesses.iter().copied().collect();
        write::write(&self.out(), &self.dataset.directory, &collection, &harnesses)
    }

    fn text(&self, name: &str) -> String {
        fs_err::read_to_string(self.out().join(name)).unwrap()
    }
}

#[test]
fn repositories_whose_images_cannot_be_built_are_known() {
    let bench = Bench::new();
    let lacking = || {
        let collection =
            collection(&bench.dataset, bench.dataset.instances().unwrap(), &Wanted::default()).unwrap();
        collection.without_images().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let before = lacking();
    let slug = bench.dataset.instances().unwrap()[0].slug.clone();
    let recipe = bench.dataset.directory.join("environments").join(slug.file_name());
    fs_err::remove_file(recipe.join("Dockerfile")).unwrap();
    assert!(lacking().contains(&slug.to_string()), "{before:?}");
}

/// The instance as a command; its output is known where it is `said`.
fn as_command(one: &mut Instance, said: bool) {
    let expected = Expected {
        case_id: "entry::tables".to_owned(),
        outcome: Some(Outcome::Passed),
        exception: None,
        stdout: said.then(String::new),
        stderr: said.then(String::new),
        command: Some(CommandResult::default()),
    };
    one.kind = "console".to_owned();
    one.test_function = "tables".to_owned();
    one.argv = Some(vec!["shop".to_owned(), "tables".to_owned()]);
    (one.env, one.watched_files) = (Some(Vec::new()), Some(Vec::new()));
    one.expected = vec![serde_json::to_string(&expected).unwrap()];
}

#[test]
fn a_command_of_which_nothing_is_said_is_left_out_alone() {
    let bench = Bench::new();
    let mut instances = bench.dataset.instances().unwrap();
    as_command(&mut instances[0], false);
    as_command(&mut instances[1], true);
    let unsaid = instances[0].instance_id.to_string();
    let all = collection(&bench.dataset, instances.clone(), &Wanted::default()).unwrap();
    assert_eq!((all.unsaid, all.tasks.len()), (vec![unsaid.clone()], instances.len() - 1));
    instances.truncate(1);
    let error = collection(&bench.dataset, instances, &Wanted::default()).unwrap_err();
    assert_eq!(error.detail(), Some(unsaid.as_str()));
}

fn names(folder: &Path) -> BTreeSet<String> {
    let files = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    files
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.path().strip_prefix(folder).unwrap().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn one_directory_serves_them_all_whether_written_at_once_or_one_after_the_other() {
    let (at_once, one_by_one) = (Bench::new(), Bench::new());
    at_once.export(&ALL).unwrap();
    for harness in ALL {
        one_by_one.export(&[harness]).unwrap();
    }
    let all = names(&at_once.out());
    assert_eq!(all, names(&one_by_one.out()));
    for name in all {
        let read = |bench: &Bench| fs_err::read(bench.out().join(&name)).unwrap();
        assert!(read(&at_once) == read(&one_by_one), "{name}");
    }
}

#[test]
fn other_tasks_and_what_is_no_export_are_left_alone() {
    let bench = Bench::new();
    bench.export(&[Harness::Harbor]).unwrap();
    let other = OtherPrompt {
        template: Template::new("another prompt".to_owned()).unwrap(),
        settings: PromptSettings::default(),
        tools: BTreeSet::new(),
    };
    let other = collection(
        &bench.dataset,
        bench.dataset.instances().unwrap(),
        &Wanted { prompt: Some(&other), ..Wanted::default() },
    )
    .unwrap();
    let write = |directory: &Path| {
        write::write(directory, &bench.dataset.directory, &other, &[Harness::Harbor].into())
    };
    assert!(write(&bench.out()).unwrap_err().to_string().contains("and not these"));
    let mine = bench.folder.path().join("mine");
    fs_err::create_dir_all(&mine).unwrap();
    fs_err::write(mine.join("notes"), "mine").unwrap();
    assert!(write(&mine).unwrap_err().to_string().contains("is not an export"));
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = write(file.path()).unwrap_err();
    assert!(error.to_string().ends_with("is a file"), "{error}");
    assert_eq!(names(&mine), ["notes".to_owned()].into());
}

#[test]
fn a_harbor_task_says_what_is_given_and_how_it_is_judged() {
    let bench = Bench::new();
    let instances = bench.dataset.instances().unwrap();
    let (first, second) = (&instances[0], &instances[1]);
    let witnesses = bench.dataset.directory.join("witnesses");
    fs_err::create_dir_all(&witnesses).unwrap();
    fs_err::write(witnesses.join(format!("{}.py", first.instance_id)), "x = 1\n").unwrap();
    bench.export(&[Harness::Harbor]).unwrap();
    let of = |id: &str, name: &str| format!("tasks/{id}/{name}");
    let id = first.instance_id.as_str();
    assert_eq!(bench.text(&of(id, "instruction.md")), first.prompt);
    let settings: toml::Table = bench.text(&of(id, "task.toml")).parse().unwrap();
    assert_eq!(settings["task"]["name"].as_str().unwrap(), format!("made-up/{id}"));
    assert_eq!(settings["verifier"]["environment_mode"].as_str(), Some("separate"));
    assert_eq!(settings["artifacts"][0].as_str(), Some("/testbed/concise.py"));
    let image = settings["environment"]["docker_image"].as_str().unwrap();
    assert!(image.starts_with("gistmill-export/made-up0:"), "{image}");
    assert!(bench.text("images/build.sh").contains(&format!("-t {image} made__up0")));
    let judged: Value = serde_json::from_str(&bench.text(&of(id, "tests/task.json"))).unwrap();
    let outcomes = judged["outcomes"].as_object().unwrap();
    assert_eq!(outcomes.len(), first.case_ids.len());
    assert!(outcomes.iter().all(|(name, outcome)| name.starts_with("concise.py::") && outcome == "passed"));
    assert_eq!(bench.text(&of(id, "solution/concise.py")), "x = 1\n");
    assert!(
        bench.text(&of(id, "solution/solve.sh")).contains("cp /solution/concise.py /testbed/concise.py\n")
    );
    let unsolved = names(&bench.out().join("tasks").join(second.instance_id.as_str()));
    assert!(!unsolved.iter().any(|name| name.starts_with("solution")), "{unsolved:?}");
    let registry: Value = serde_json::from_str(&bench.text("registry.json")).unwrap();
    assert_eq!(registry[0]["tasks"].as_array().unwrap().len(), instances.len());
    assert!(bench.text("README.md").contains("**By pytest alone**"));
}

#[test]
fn what_a_dataset_names_leads_nowhere() {
    let bench = Bench::new();
    let open = |change: &dyn Fn(&mut Value)| {
        let path = bench.dataset.directory.join("manifest.json");
        let whole = fs_err::read_to_string(&path).unwrap();
        let mut manifest: Value = serde_json::from_str(&whole).unwrap();
        change(&mut manifest);
        fs_err::write(&path, manifest.to_string()).unwrap();
        let dataset = Dataset::open(&bench.dataset.directory);
        fs_err::write(&path, whole).unwrap();
        dataset
    };
    for name in ["../up", "a b", "", "$(x)"] {
        for key in ["name", "version"] {
            let error = open(&|manifest| manifest[key] = name.into()).unwrap_err();
            assert!(error.to_string().contains("is not a name"), "{name}: {error}");
        }
    }
    // A link in the place of a solution or a recipe is not followed.
    fs_err::write(bench.folder.path().join("secret"), "hush").unwrap();
    let id = bench.dataset.instances().unwrap()[0].instance_id.to_string();
    let witnesses = bench.dataset.directory.join("witnesses");
    fs_err::create_dir_all(&witnesses).unwrap();
    let link = witnesses.join(format!("{id}.py"));
    std::os::unix::fs::symlink(bench.folder.path().join("secret"), &link).unwrap();
    assert!(collection(&bench.dataset, bench.dataset.instances().unwrap(), &Wanted::default()).is_err());
    fs_err::remove_file(&link).unwrap();
    // Ids become folders, and images arguments of commands.
    let path = bench.dataset.directory.join("instances.jsonl");
    let lines = fs_err::read_to_string(&path).unwrap();
    for (from, to) in [(id.as_str(), "../../up"), ("\"image\":null", "\"image\":\"x; touch y\"")] {
        assert!(lines.contains(from), "{from}");
        fs_err::write(&path, lines.replace(from, to)).unwrap();
        let made =
            bench.dataset.instances().and_then(|all| collection(&bench.dataset, all, &Wanted::default()));
        assert!(made.is_err(), "{to}");
    }
}

#[test]
fn swe_bench_reads_its_columns_and_the_trees_lie_beside_their_dockerfile() {
    let bench = Bench::new();
    bench.export(&[Harness::SweBench]).unwrap();
    let file = std::fs::File::open(bench.out().join("data/test-00000-of-00001.parquet")).unwrap();
    let frame = ParquetReader::new(file).finish().unwrap();
    let instances = bench.dataset.instances().unwrap();
    let cell = |name: &str| frame.column(name).unwrap().str().unwrap().get(0).unwrap().to_owned();
    assert_eq!(
        (frame.height(), cell("instance_id")),
        (instances.len(), instances[0].instance_id.to_string())
    );
    let names: Vec<String> = serde_json::from_str(&cell("FAIL_TO_PASS")).unwrap();
    assert_eq!(names.len(), instances[0].n_cases as usize);
    let script = cell("eval_script");
    assert!(
        script.contains("judge.py --container --log") && script.contains("Start Test Output"),
        "{script}"
    );
    let tree = fs_err::File::open(bench.out().join("images/made__up0/tree.tar.gz")).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(tree));
    let paths: Vec<String> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    assert!(paths.contains(&"tests/test_0.py".to_owned()), "{paths:?}");
}

#[test]
fn a_dataset_without_code_says_that_its_images_cannot_be_built() {
    let made_up = MadeUp::new(&[12]);
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("dataset");
    let input = DatasetInput { passes_code_on: false, ..made_up.input() };
    crate::testing::write(&directory, &input).unwrap();
    let dataset = Dataset::open(&directory).unwrap();
    let tasks = collection(&dataset, dataset.instances().unwrap(), &Wanted::default()).unwrap();
    write::write(&folder.path().join("out"), &directory, &tasks, &[Harness::Harbor].into()).unwrap();
    let text = |name: &str| fs_err::read_to_string(folder.path().join("out").join(name)).unwrap();
    assert!(text("README.md").contains("came without the repositories' code"));
    assert!(!text("images/build.sh").contains("\"$engine\" build"));
    assert!(!folder.path().join("out/images/made__up0/tree.tar.gz").exists());
}

impl Bench {
    /// An export with tools, or without.
    fn with(
        &self,
        out: &Path,
        tools: &[Tool],
        execution: ExecutionSetting,
    ) -> crate::error::Result<Collection> {
        let other = OtherPrompt {
            template: Template::built_in().unwrap(),
            settings: PromptSettings { execution, ..PromptSettings::default() },
            tools: tools.iter().copied().collect(),
        };
        let collection = collection(
            &self.dataset,
            self.dataset.instances().unwrap(),
            &Wanted { prompt: Some(&other), ..Wanted::default() },
        )?;
        write::write(out, &self.dataset.directory, &collection, &ALL.into())?;
        Ok(collection)
    }

    /// Solutions for all, and the words in them.
    fn solve(&self) -> &'static str {
        let witnesses = self.dataset.directory.join("witnesses");
        fs_err::create_dir_all(&witnesses).unwrap();
        for instance in self.dataset.instances().unwrap() {
            fs_err::write(witnesses.join(format!("{}.py", instance.instance_id)), "solved = 'indeed'\n")
                .unwrap();
        }
        "solved = 'indeed'"
    }
}

#[test]
fn tools_are_in_images_of_their_own_with_the_trace_of_one_task_and_no_solution() {
    let bench = Bench::new();
    let solution = bench.solve();
    let out = bench.out();
    let collection = bench.with(&out, &Tool::ALL, ExecutionSetting::Bash).unwrap();
    let build = bench.text("images/build.sh");
    let mut images = BTreeSet::new();
    for (task, instance) in collection.tasks.iter().zip(bench.dataset.instances().unwrap()) {
        let image = collection.image(task);
        images.insert(image.to_owned());
        assert!(build.contains(&format!("-t {image} -f tasks/Dockerfile tasks/{}\n", task.id)), "{build}");
        let dockerfile = bench.text(&format!("tasks/{}/environment/Dockerfile", task.id));
        assert!(dockerfile.starts_with(&format!("FROM {image}\n")), "{dockerfile}");
        assert!(bench.text("swe-agent.jsonl").contains(&format!("\"image_name\":\"{image}\"")), "{image}");
        let known: Value =
            serde_json::from_str(&bench.text(&format!("images/tasks/{}/task.json", task.id))).unwrap();
        assert_eq!(known["check"], serde_json::json!(task.judging.run[0].words()));
        assert_eq!(known["tools"], serde_json::json!(["edit", "trace", "search"]));
        let calls = known["trace"].as_array().unwrap();
        assert_eq!(calls.len(), instance.unique_functions as usize);
        assert_eq!(calls[0]["function"], instance.test_function.as_str());
        let sum: u64 = calls.iter().map(|call| call["calls"].as_u64().unwrap()).sum();
        assert_eq!(sum, instance.trace_length);
        assert!(calls.iter().all(|call| call.get("lines").is_none()));
        assert!(task.instruction.contains("`gistify trace`"), "{}", task.instruction);
    }
    assert_eq!(images.len(), collection.tasks.len(), "one each");
    let seen =
        names(&out).into_iter().filter(|name| name.starts_with("images/") || name.contains("/environment/"));
    for name in seen.filter(|name| !name.ends_with(".gz")) {
        assert!(!bench.text(&name).contains(solution), "{name}");
    }
    let program = names(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/export/tools"));
    for name in program.iter().filter(|name| !name.contains('/')) {
        assert!(out.join("images/tools").join(name).is_file(), "{name}");
    }
    assert!(bench.text("README.md").contains("with the tools edit, trace, search"));
}

#[test]
fn without_tools_an_export_is_as_it_was_and_with_others_it_is_another() {
    let bench = Bench::new();
    let plain = bench.with(&bench.out(), &[], ExecutionSetting::Bash).unwrap();
    assert!(
        !names(&bench.out()).iter().any(|name| name.contains("gistify") || name.starts_with("images/tasks"))
    );
    assert!(
        !bench.text("README.md").contains("gistify --help")
            && !bench.text("images/build.sh").contains("tools")
    );
    let error = bench.with(&bench.out(), &[Tool::Search], ExecutionSetting::Bash).unwrap_err();
    assert!(error.to_string().contains("and not these"), "{error}");
    let other = bench.folder.path().join("other");
    let search = bench.with(&other, &[Tool::Search], ExecutionSetting::None).unwrap();
    assert_eq!(plain.environments, search.environments, "images of environments stay");
    assert_ne!(plain.image(&plain.tasks[0]), search.image(&search.tasks[0]));
    let place = format!("images/tasks/{}/task.json", search.tasks[0].id);
    let known: Value = serde_json::from_str(&fs_err::read_to_string(other.join(place)).unwrap()).unwrap();
    assert_eq!((&known["trace"], &known["import_files"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    assert_eq!((&known["execution"], &known["tools"]), (&"none".into(), &serde_json::json!(["search"])));
}

#[test]
fn a_dataset_without_traces_has_no_tool_for_them() {
    let bench = Bench::new();
    fs_err::remove_file(bench.dataset.directory.join("traces.parquet")).unwrap();
    let out = bench.out();
    let error = bench.with(&out, &[Tool::Trace], ExecutionSetting::Bash).unwrap_err();
    assert!(error.to_string().contains("traces.parquet"), "{error}");
    bench.with(&out, &[Tool::Edit, Tool::Search], ExecutionSetting::Bash).unwrap();
}

/// A judge beside a task, a tree and submissions.
struct Court {
    folder: tempfile::TempDir,
}

impl Court {
    /// A tree with a package, a test that passes, one that is skipped and one that is expected to fail.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs_err::create_dir_all(tree.join("src")).unwrap();
        fs_err::write(tree.join("package.py"), "def one():\n    return 1\n").unwrap();
        fs_err::write(tree.join("conftest.py"), "raise RuntimeError('is gone')\n").unwrap();
        fs_err::write(tree.join("data.txt"), "kept").unwrap();
        let outcomes = serde_json::json!({
            "concise.py::test[1]": "passed", "concise.py::test[2]": "skipped", "concise.py::test[3]": "xfailed",
        });
        let task = serde_json::json!({
            "instance_id": "a__b.test-0", "workdir": tree, "scratch": folder.path(), "submission": "concise.py",
            "commands": [["python", "-m", "pytest", "concise.py::test"]], "outcomes": outcomes, "hidden": ["py"],
            "tests": [{"name": "test", "source": RIGHT.split_once("\n\n").unwrap().1, "defined_as": "test",
                "text": null, "variants": [], "outside": {}}], "code": [], "before": {}, "reward": "all",
            "options": ["-q"], "variables": {"MODE": "x"}, "seconds": 60, "user": null,
        });
        fs_err::write(folder.path().join("task.json"), task.to_string()).unwrap();
        fs_err::write(folder.path().join("judge.py"), include_str!("judge.py")).unwrap();
        Court { folder }
    }

    /// The reward of a text, and what the judge reports.
    fn judge(text: Option<&str>) -> (Value, Value) {
        let court = Court::new();
        let path = |name: &str| court.folder.path().join(name);
        if let Some(text) = text {
            fs_err::write(path("handed_in.py"), text).unwrap();
        }
        let python = std::env::var_os("GISTMILL_TEST_PYTHON").expect("GISTMILL_TEST_PYTHON names a Python");
        let done = Command::new(python)
            .args(["judge.py", "task.json", "handed_in.py", "out"])
            .current_dir(court.folder.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let json =
            |name: &str| -> Value { serde_json::from_slice(&fs_err::read(path(name)).unwrap()).unwrap() };
        let ran = !json("out/reward-details.json")["seen"].as_object().unwrap().is_empty();
        assert!(!ran || !path("tree/package.py").exists(), "code goes before a submission runs");
        assert!(path("tree/data.txt").exists());
        let reward = json("out/reward.json");
        assert_eq!(reward.as_object().map(serde_json::Map::len), Some(1), "one number");
        (reward["reward"].clone(), json("out/reward-details.json"))
    }
}

const RIGHT: &str = "\
import os, pytest

@pytest.mark.parametrize('number', [1, 2, 3])
def test(number, request):
    assert open('data.txt').read() == 'kept' and os.environ['MODE'] == 'x'
    if number == 2:
        pytest.skip('not today')
    if number == 3:
        pytest.xfail('known')
";

#[test]
#[ignore = "needs in GISTMILL_TEST_PYTHON a Python with pytest"]
fn the_judge_takes_code_away_and_wants_every_case_to_end_as_it_must() {
    let (reward, report) = Court::judge(Some(RIGHT));
    assert_eq!(reward, 1, "{report:#}");
    let wrong = [
        RIGHT.replace("pytest.skip('not today')", "pass"),
        RIGHT.replace("pytest.xfail('known')", "assert False"),
        RIGHT.replace("[1, 2, 3]", "[1, 2]"),
        RIGHT.replace("[1, 2, 3]", "[1, 2, 3, 4]"),
        format!("from package import one\n{RIGHT}"),
        format!("{RIGHT}\n    yield\n    assert number != 1\n"),
        "def test(:\n".to_owned(),
        String::new(),
        // What pays in a judge that believes what pytest says.
        "def test(): pass\n".to_owned(),
        format!("{RIGHT}\ntest = lambda number, request: None\n"),
        format!("import os\nos._exit(0)\n{RIGHT}"),
        format!("pytest_plugins = ['concise']\ndef pytest_pyfunc_call(pyfuncitem): return True\n{RIGHT}"),
        format!(
            "import json\nfrom pathlib import Path\nPath('../out/reward.json').write_text('1000000')\n{RIGHT}\n    assert 0\n"
        ),
        format!(
            "import _pytest.runner as r\nc = r.CallInfo.from_call\nr.CallInfo.from_call = classmethod(lambda k, f, *a, **b: c(lambda: None, *a, **b))\n{RIGHT}"
        ),
    ];
    for text in &wrong {
        let (reward, report) = Court::judge(Some(text));
        assert_eq!(reward, 0, "{text}\n{report:#}");
    }
    let (reward, report) = Court::judge(None);
    assert_eq!((reward, &report["why"]), (Value::from(0), &Value::from("there is no handed_in.py")));
}

#[test]
fn pushed_images_are_named_by_digest_and_nothing_is_built() {
    let bench = Bench::new();
    let digest = format!("sha256:{}", "b".repeat(64));
    let mut images = bench.dataset.images().unwrap();
    for instance in bench.dataset.instances().unwrap() {
        let image = PushedImage {
            architecture: "amd64".to_owned(),
            place: "h.io/me/one".to_owned(),
            tag: "1-amd64".to_owned(),
            digest: digest.clone(),
            image_id: String::new(),
            of: bench.dataset.link(&instance.slug).unwrap(),
        };
        images.add(&instance.slug, image);
    }
    images.save(&bench.dataset.directory).unwrap();
    bench.export(&ALL).unwrap();
    let name = format!("h.io/me/one@{digest}");
    assert!(bench.text("images/build.sh").contains(&format!("\"$engine\" pull {name}\n")));
    assert!(!bench.text("images/build.sh").contains("build \"$@\""));
    for line in bench.text("swe-agent.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(row["image_name"], name);
    }
    assert!(names(&bench.out()).iter().all(|name| !name.contains("tree.tar") && !name.ends_with(".lock")));
    let instances = || bench.dataset.instances().unwrap();
    let mirror = ImagePlace::parse("mirror.io/x").unwrap();
    let wanted = Wanted { registry: Some(&mirror), ..Wanted::default() };
    let mirrored = collection(&bench.dataset, instances(), &wanted).unwrap();
    let all = mirrored.environments.values();
    assert!(all.clone().all(|one| one.image == format!("mirror.io/x/one@{digest}")), "{all:?}");
    fs_err::remove_file(bench.dataset.directory.join("images.json")).unwrap();
    let error = collection(&bench.dataset, instances(), &wanted).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("image push")), "{error}");
}

#[test]
fn what_the_user_wants_is_in_the_files_and_solutions_only_where_wanted() {
    let bench = Bench::new();
    let settings = Settings {
        org: Some("my-lab".to_owned()),
        authors: vec!["Ann <ann@example.org>".parse().unwrap()],
        agent_network: Some("allowlist:a.org".parse().unwrap()),
        verifier_network: Some("no-network".parse().unwrap()),
        agent_user: Some("1000".to_owned()),
        has_canary: true,
        without_solutions: true,
        sif: Some("/scratch/images".to_owned()),
        engine: Some(EngineKind::Podman),
    };
    let wanted = Wanted { settings, ..Wanted::default() };
    let tasks = collection(&bench.dataset, bench.dataset.instances().unwrap(), &wanted).unwrap();
    write::write(&bench.out(), &bench.dataset.directory, &tasks, &ALL.into()).unwrap();
    let id = tasks.tasks[0].id.as_str();
    let task: toml::Table = bench.text(&format!("tasks/{id}/task.toml")).parse().unwrap();
    assert_eq!(task["task"]["name"].as_str(), Some(format!("my-lab/{id}").as_str()));
    assert_eq!(task["task"]["authors"][0]["email"].as_str(), Some("ann@example.org"));
    assert_eq!(task["agent"]["allowed_hosts"][0].as_str(), Some("a.org"));
    assert_eq!(task["agent"]["user"].as_str(), Some("1000"));
    assert_eq!(task["verifier"]["network_mode"].as_str(), Some("no-network"));
    let image = task["environment"]["docker_image"].as_str().unwrap();
    assert!(image.starts_with("/scratch/images/") && image.ends_with(".sif"), "{image}");
    assert!(bench.text("images/sif.sh").contains(&format!("[ -e {image} ] || from_engine {image} ")));
    for script in ["images/sif.sh", "images/build.sh"] {
        assert!(bench.text(script).contains("engine=${ENGINE:-podman}\n"), "{script}");
    }
    let readme = bench.text("README.md");
    assert!(
        readme.contains("ENGINE=docker sh images/build.sh") && readme.contains("refuses such tasks"),
        "{readme}"
    );
    assert!(task["metadata"]["flake_bound"].is_float() && task["metadata"]["worlds"].is_array());
    assert!(task["metadata"]["slowest_attempt_sec"].as_float().is_some_and(|took| took > 0.0));
    assert_eq!(task["metadata"]["peak_memory_mb"].as_integer(), Some(2048));
    assert_eq!(task["environment"]["memory_mb"].as_integer(), Some(9216));
    assert!(bench.text(&format!("tasks/{id}/instruction.md")).starts_with("<!-- canary "));
    assert!(names(&bench.out()).iter().all(|name| !name.contains("/solution/")));
    assert!(!bench.text("swe-agent.jsonl").contains(".sif"), "others pull");
}

#[test]
#[ignore = "needs in GISTMILL_TEST_HARBOR the program of Harbor 0.26"]
fn harbor_finds_nothing_in_its_tasks() {
    let bench = Bench::new();
    let settings = Settings { agent_user: Some("1000".to_owned()), ..Settings::default() };
    let wanted = Wanted { settings, ..Wanted::default() };
    let tasks = collection(&bench.dataset, bench.dataset.instances().unwrap(), &wanted).unwrap();
    write::write(&bench.out(), &bench.dataset.directory, &tasks, &[Harness::Harbor].into()).unwrap();
    let harbor = std::env::var_os("GISTMILL_TEST_HARBOR").expect("GISTMILL_TEST_HARBOR names a program");
    let said = |options: &[&str]| -> Value {
        let folders = tasks.tasks.iter().map(|task| bench.out().join("tasks").join(task.id.as_str()));
        let done = Command::new(&harbor).arg("lint").args(folders).args(options).output().unwrap();
        serde_json::from_slice(&done.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&done.stderr)))
    };
    // Only images that were pushed have a digest.
    let rules = ["--select", "ALL", "--ignore", "unpinned-image", "--json"];
    assert_eq!(said(&rules), serde_json::json!([]));
}

#[test]
fn a_dataset_names_its_tasks_by_the_hashes_of_their_files() {
    let bench = Bench::new();
    bench.export(&[Harness::Harbor]).unwrap();
    let dataset: toml::Table = bench.text("dataset.toml").parse().unwrap();
    for task in dataset["tasks"].as_array().unwrap() {
        let id = task["name"].as_str().unwrap().split_once('/').unwrap().1;
        let folder = bench.out().join("tasks").join(id);
        let mut lines = String::new();
        for name in names(&folder) {
            let hash = sha256_hex(&fs_err::read(folder.join(&name)).unwrap());
            lines.extend([name.as_str(), "\0", hash.as_str(), "\n"]);
        }
        assert_eq!(
            task["digest"].as_str(),
            Some(format!("sha256:{}", sha256_hex(lines.as_bytes())).as_str())
        );
    }
}

#[test]
fn prompts_hold_the_code_that_runs() {
    let bench = Bench::new();
    bench.export(&[Harness::Prompts]).unwrap();
    let (lines, instances) = (bench.text("prompts.jsonl"), bench.dataset.instances().unwrap());
    let index = bench.text("prompts/index.jsonl");
    assert_eq!((lines.lines().count(), index.lines().count()), (instances.len(), 2 * instances.len()));
    for ((line, of_index), instance) in lines.lines().zip(index.lines()).zip(&instances) {
        let (row, of_index): (Value, Value) =
            (serde_json::from_str(line).unwrap(), serde_json::from_str(of_index).unwrap());
        assert_eq!(row["custom_id"], instance.instance_id.as_str());
        let prompt = row["body"]["messages"][0]["content"].as_str().unwrap();
        assert!(prompt.starts_with(&instance.prompt) && prompt.contains("## Without a machine"));
        assert_eq!(of_index["prompt_tokens"].as_u64(), crate::family::tokens::count(prompt));
        assert!(of_index["prompt_tokens"].as_u64() > Some(50), "{of_index}");
        assert!(prompt.contains(&format!("### `{}`", instance.test_file)), "{prompt}");
        assert!(!prompt.contains("FINAL_OUTPUT"));
    }
    let thoughts = bench.text("prompts/chain-of-thought.jsonl");
    assert_eq!(thoughts.lines().count(), instances.len());
    assert!(
        thoughts.lines().all(|line| line.contains("`FINAL_OUTPUT:`") && line.contains("whole `concise.py`"))
    );
}

/// What `fits` in the judge takes and refuses.
const FITS: &str = r#"
import hashlib, runpy, sys
j = runpy.run_path(sys.argv[1], run_name="judge")
fits = j["fits"]
P={"<root>":"/testbed","<venv>":"/venv"}
ok=[("<Box at 0x…>\n","<Box at 0x7f0123456789>\n"),("== 1 passed in …s ==","== 1 passed in 0.12s =="),("…s call x","0.50s call x"),
("<mount> <root> ro","713 700 8:1 /home/a /testbed ro"),("[<time>] \"GET","[31/Dec/2026 23:59:59] \"GET"),("[<time>] \"GET","[31/Dec/2026:23:59:59 +0000] \"GET"),
("[<time>] [<pid>] [INFO] B","[2026-12-31 23:59:59 +0000] [4711] [INFO] B"),("<time> - shop","2026-12-31 23:59:59,123 - shop"),
("I<time> <thread> shop.py:12] sold out","I1231 23:59:59.123456 4711 shop.py:12] sold out"),("I<time> <thread> shop.py:12]","I1231 23:59:59.123456    4711 shop.py:12]"),
("[I <time> web","[I 261231 23:59:59 web"),("Date: <time>","Date: Thu, 31 Dec 2026 23:59:59 GMT"),("127.0.0.1:<port> - \"G","127.0.0.1:42042 - \"G"),
("<tmp>/pytest-of-<user>/x","/tmp/gm/scratch/pytest-of-nobody/x"),("<python>/lib/python3.12/json","/usr/lib/python3.12/json"),
('  File "<file>, in <module>\nx','  File "/testbed/concise.py", line 3, in <module>\nx'),("<module>.Box: no","concise.Box: no"),("<div>a","<div>a"),("a…s","a…s"),("<pid><pid>","<pid>12")]
for e,t in ok: assert fits(e,t,P),(e,t); assert fits(e,e,P),e; assert not fits(e,t+"!",P) and not fits(e,"!"+t,P),(e,t)
no=[("<div>a","<b>a"),("<Box at 0x…>","<Box at 0xzz>"),("in …s","in a while"),("<time>","never"),("<pid>","x"),("a\nb","a b"),("<tmp>/x","/tmp/y"),("<tmp>","no path"),("a","a\n")]
for e,t in no: assert not fits(e,t,P),(e,t)
h=lambda t: hashlib.sha256(t.encode()).hexdigest()
C=j['CUT']; t="abc\ndef ghi"*10
assert fits("abc\nde"+C+h(t)+"]",t,P,h(t)) and not fits("abc\nde"+C+h(t)+"]",t+"x",P,h(t+"x"))
assert fits("at 0x…\nab"+C+"00]","at 0x12345\nabc",P,"11") and not fits("at 0x…\nab cd"+C+"00]","at 0x12345\nax cde",P,"11")
assert not fits("<tmp>a" * 8000, "/a" * 4_000_000, P)
"#;

#[test]
#[ignore = "needs in GISTMILL_TEST_PYTHON a Python with pytest"]
fn a_mark_takes_what_it_stands_for_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let judge = folder.path().join("judge.py");
    fs_err::write(&judge, include_str!("judge.py")).unwrap();
    let python = std::env::var_os("GISTMILL_TEST_PYTHON").expect("GISTMILL_TEST_PYTHON names a Python");
    let done = Command::new(python).args(["-c", FITS]).arg(&judge).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Programs that print how they are called.
fn fakes(folder: &Path, names: &[&str]) {
    for name in names {
        let path = folder.join(name);
        fs_err::write(&path, format!("#!/bin/sh\necho {name} \"$@\"\n[ \"$1 $2\" != 'image inspect' ]\n"))
            .unwrap();
        fs_err::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
}

#[test]
fn scripts_call_the_engine_that_was_asked_for() {
    let bench = Bench::new();
    let programs = tempfile::tempdir().unwrap();
    fakes(programs.path(), &["docker", "podman", "apptainer"]);
    let sif = programs.path().join("images");
    let settings = Settings {
        sif: Some(sif.to_string_lossy().into_owned()),
        engine: Some(EngineKind::Podman),
        ..Settings::default()
    };
    let wanted = Wanted { settings, ..Wanted::default() };
    let tasks = collection(&bench.dataset, bench.dataset.instances().unwrap(), &wanted).unwrap();
    write::write(&bench.out(), &bench.dataset.directory, &tasks, &[Harness::Harbor].into()).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let said = |script: &str, engine: &str| {
        let mut command = Command::new("sh");
        command.arg(bench.out().join(script)).env("PATH", format!("{}:{path}", programs.path().display()));
        let done = command.env("ENGINE", engine).output().unwrap();
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let built = said("images/build.sh", "");
    assert!(built.starts_with("podman build -t ") && !built.contains("docker"), "{built}");
    assert!(said("images/build.sh", "docker").starts_with("docker build -t "));
    let made = said("images/sif.sh", "");
    assert!(
        made.starts_with("podman save --format oci-archive -o ") && made.contains(" oci-archive:"),
        "{made}"
    );
    let made = said("images/sif.sh", "docker");
    assert!(
        made.starts_with("apptainer build ") && made.contains(" docker-daemon:gistmill-export/"),
        "{made}"
    );
}
