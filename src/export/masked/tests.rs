//! An export of masked files, written and read back.

use std::path::{Path, PathBuf};

use polars::prelude::*;
use serde_json::Value;

use crate::dataset::Dataset;
use crate::error::Result;
use crate::export::read::{Wanted, masked};
use crate::export::settings::Settings;
use crate::export::{Collection, Harness, write};
use crate::testing::made_up::MadeUp;
use crate::testing::masked::{ORIGINAL, TARGET};

const ALL: [Harness; 5] =
    [Harness::Harbor, Harness::SweBench, Harness::MiniSweAgent, Harness::SweAgent, Harness::Prompts];

struct Bench {
    folder: tempfile::TempDir,
    dataset: Dataset,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("dataset");
        crate::testing::write(&directory, &MadeUp::masked(&[12]).input()).unwrap();
        Bench { dataset: Dataset::open_any(&directory).unwrap(), folder }
    }

    fn collection(&self, settings: Settings) -> Result<Collection> {
        let instances = self.dataset.recube_instances().unwrap();
        masked::collection(&self.dataset, &instances, &Wanted { settings, ..Wanted::default() })
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn text(&self, name: &str) -> String {
        fs_err::read_to_string(self.out().join(name)).unwrap()
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let all = walkdir::WalkDir::new(folder).into_iter().map(std::result::Result::unwrap);
    all.filter(|entry| entry.file_type().is_file()).map(|entry| entry.path().to_owned()).collect()
}

#[test]
fn an_export_hands_agents_the_mask_and_the_judge_the_tests() {
    let bench = Bench::new();
    let collection = bench.collection(Settings::default()).unwrap();
    write::write(&bench.out(), &bench.dataset.directory, &collection, &ALL.into()).unwrap();
    let task = &collection.tasks[0];
    let (id, image) = (task.id.to_string(), collection.masked[&task.id].name.clone());

    let mask: Value = serde_json::from_str(&bench.text(&format!("images/masked/{id}/mask.json"))).unwrap();
    assert_eq!(mask["put"], serde_json::json!([TARGET]));
    assert!(mask["hide"].as_array().unwrap().contains(&"tests/test_0.py".into()), "{mask}");
    let masked = bench.text(&format!("images/masked/{id}/put/{TARGET}"));
    assert!(masked.contains("raise NotImplementedError()") && !masked.contains("return first(a)"));
    let build = bench.text("images/build.sh");
    assert!(build.contains(&format!("-t {image} masked/")), "{build}");

    let toml = bench.text(&format!("tasks/{id}/task.toml"));
    assert!(
        toml.contains(&image) && toml.contains(&format!("artifacts = [\"/testbed/{TARGET}\"]")),
        "{toml}"
    );
    let judged: Value = serde_json::from_str(&bench.text(&format!("tasks/{id}/tests/task.json"))).unwrap();
    assert_eq!(
        (&judged["exact"], &judged["reset"], &judged["hidden"]),
        (&false.into(), &true.into(), &serde_json::json!([]))
    );
    assert_eq!(judged["before"]["tests/test_0.py"], true);
    assert!(bench.text(&format!("tasks/{id}/tests/before/tests/test_0.py")).contains("def test_"));
    let instance = &bench.dataset.recube_instances().unwrap()[0];
    assert_eq!(judged["outcomes"].as_object().unwrap().len() as u64, instance.n_cases);
    assert_eq!(bench.text(&format!("tasks/{id}/solution/{TARGET}")), ORIGINAL);
    // Agents see the instruction and the image.
    for seen in files(&bench.out().join("images/masked")) {
        assert!(!fs_err::read_to_string(&seen).unwrap().contains("return first(a)"), "{}", seen.display());
    }

    let row = ParquetReader::new(
        std::fs::File::open(bench.out().join("data/test-00000-of-00001.parquet")).unwrap(),
    );
    let frame = row.finish().unwrap();
    let cell = |name: &str| frame.column(name).unwrap().str().unwrap().get(0).unwrap().to_owned();
    assert!(
        cell("patch").starts_with(&format!("diff --git a/{TARGET} b/{TARGET}\n--- a/{TARGET}\n")),
        "{}",
        cell("patch")
    );
    assert_eq!(cell("image_name"), image);
    assert!(bench.text("mini-swe-agent.yaml").contains("git diff > /tmp/submission.patch"));
    assert!(bench.text("swe-agent.jsonl").contains(&image));

    for (setting, tokens) in [("full-context", 8192), ("full-context-cot", 16384)] {
        let row: Value = serde_json::from_str(&bench.text(&format!("prompts/{setting}.jsonl"))).unwrap();
        assert_eq!((&row["custom_id"], &row["body"]["max_tokens"]), (&id.clone().into(), &tokens.into()));
        let prompt = row["body"]["messages"][0]["content"].as_str().unwrap();
        assert!(prompt.contains(TARGET) && prompt.ends_with("<readme>\n</readme>\n"), "{prompt}");
    }
    let index = bench.text("prompts/index.jsonl");
    assert!(index.lines().all(|line| line.contains("\"context_tokens\":")) && index.lines().count() == 2);
    let readme = bench.text("README.md");
    assert!(readme.contains("1 tasks with masked files") && !readme.contains("Gistify"), "{readme}");
}

#[test]
fn agents_get_a_graph_of_what_they_see_where_it_is_asked_for() {
    let bench = Bench::new();
    let plain = bench.collection(Settings::default()).unwrap();
    let instances = bench.dataset.recube_instances().unwrap();
    let wanted = Wanted { with_graph: true, ..Wanted::default() };
    let collection = masked::collection(&bench.dataset, &instances, &wanted).unwrap();
    let agents = ALL[..4].iter().copied().collect();
    write::write(&bench.out(), &bench.dataset.directory, &collection, &agents).unwrap();
    let (task, without) = (&collection.tasks[0], &plain.tasks[0]);
    assert_ne!(collection.masked[&task.id].name, plain.masked[&task.id].name);
    assert!(!without.instruction.contains("recube") && task.instruction.starts_with(&without.instruction));
    for seen in [format!("tasks/{}/instruction.md", task.id), "swe-agent.jsonl".to_owned()] {
        assert!(bench.text(&seen).contains("recube validate FILE"), "{seen}");
    }
    let folder = format!("images/masked/{}", task.id);
    assert!(bench.text(&format!("{folder}/Dockerfile")).contains("COPY recube/ /opt/recube/"));
    let text = bench.text(&format!("{folder}/recube/graph.json"));
    let graph: Value = serde_json::from_str(&text).unwrap();
    let has = |from: &str, kind: &str, to: &str| {
        let edges = graph["edges"].as_array().unwrap();
        edges.iter().any(|edge| edge["from"] == from && edge["kind"] == kind && edge["to"] == to)
    };
    assert!(has("src/made/api.py:run", "invokes", &format!("{TARGET}:second")), "{text}");
    let ids: Vec<&str> =
        graph["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&TARGET) && !ids.contains(&"tests/test_0.py"), "{ids:?}");
    for seen in files(&bench.out().join("images/masked")) {
        let text = fs_err::read_to_string(&seen).unwrap();
        for secret in ["return first(a)", "b = a + 1", "os.sep", "return 3"] {
            assert!(!text.contains(secret), "{}: {secret}", seen.display());
        }
    }
    let error = write::write(&bench.out(), &bench.dataset.directory, &plain, &agents).unwrap_err();
    assert!(error.to_string().contains("and not these"), "{error}");
}

#[test]
fn solutions_are_left_out_on_request_and_what_was_changed_is_refused() {
    let bench = Bench::new();
    let settings = Settings { without_solutions: true, ..Settings::default() };
    assert!(bench.collection(settings).unwrap().tasks[0].gold.is_none());
    let path = bench.dataset.directory.join("instances.jsonl");
    let text = fs_err::read_to_string(&path).unwrap();
    for (from, to, words) in [
        (
            "'''Doc.'''\\n    raise NotImplementedError()",
            "'''Doc.'''\\n    return 1",
            "is not the one that its hash is of",
        ),
        ("\"hidden_files\":[\"", "\"hidden_files\":[\"../", "is not a path in the tree"),
    ] {
        assert!(text.contains(from), "{from}");
        fs_err::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = bench.collection(Settings::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    fs_err::write(&path, &text).unwrap();
    fs_err::remove_dir_all(bench.dataset.directory.join("trees")).unwrap();
    let error = bench.collection(Settings::default()).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("--no-trees")), "{error}");
}
