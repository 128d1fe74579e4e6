//! Commands for agents, in images of their own: on top of an environment's image one with the commands, on top of that one for
//! each task with what they know of it. The environment's image is as it is without them, and no solution is near.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::names::image;
use super::{Environment, File, Files, script, text};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::record::entry::EntryCommand;
use crate::record::id::{InstanceId, RepoSlug, hash_parts};
use crate::record::instance::Instance;
use crate::record::prompt::{ExecutionSetting, Tool};
use crate::record::task::Task;
use crate::record::trace::{FunctionCalls, check_path};

/// The folder of the image with the commands, and that of the tasks' images.
pub(super) const FOLDER: &str = "images/tools";
pub(super) const TASKS: &str = "images/tasks";
/// The start of the program, and its files.
const LAUNCHER: &str = include_str!("tools/gistify");
const PROGRAM: [(&str, &str); 5] = [
    ("__main__.py", include_str!("tools/__main__.py")),
    ("calls.py", include_str!("tools/calls.py")),
    ("common.py", include_str!("tools/common.py")),
    ("editing.py", include_str!("tools/editing.py")),
    ("names.py", include_str!("tools/names.py")),
];
const DOCKERFILE: &str = "\
ARG BASE
FROM $BASE
COPY gistify /usr/local/bin/
COPY *.py /opt/gistify/tools/
";
const TASK_DOCKERFILE: &str = "\
ARG BASE
FROM $BASE
COPY task.json /opt/gistify/
";

/// The images with tools of a collection.
#[derive(Debug)]
pub(crate) struct Tools {
    which: BTreeSet<Tool>,
    /// The image with the commands, by repository.
    pub(super) images: BTreeMap<RepoSlug, String>,
    pub(super) tasks: BTreeMap<InstanceId, TaskImage>,
}

/// The image of one task.
#[derive(Debug)]
pub(super) struct TaskImage {
    pub(super) name: String,
    pub(super) slug: RepoSlug,
    /// What the commands know, as JSON.
    known: Vec<u8>,
}

/// Functions that an instance's test calls, in the order of first calls, by instance.
type Calls = BTreeMap<String, Vec<FunctionCalls>>;

impl Tools {
    /// For tasks that are made of these instances, in the same order.
    ///
    /// # Errors
    /// Usage errors: the dataset's traces are missing, or not as gistmill writes them.
    pub(super) fn new(
        dataset: &Dataset,
        (tools, execution): (&BTreeSet<Tool>, ExecutionSetting),
        (instances, tasks): (&[Instance], &[Task]),
        environments: &BTreeMap<RepoSlug, Environment>,
    ) -> Result<Self> {
        let mut calls = if tools.contains(&Tool::Trace) { read_calls(dataset)? } else { Calls::new() };
        let program: Vec<&str> = program().collect();
        let images: BTreeMap<RepoSlug, String> = environments
            .iter()
            .map(|(slug, environment)| {
                let parts = [&[environment.image.as_str()], program.as_slice()].concat();
                (slug.clone(), image(slug, &parts))
            })
            .collect();
        let mut of = BTreeMap::new();
        for (instance, task) in instances.iter().zip(tasks) {
            let calls = calls.remove(instance.instance_id.as_str()).unwrap_or_default();
            if calls.is_empty() && tools.contains(&Tool::Trace) {
                return Err(Error::usage(format!("the dataset has no trace of {}", instance.instance_id))
                    .with_hint("build it again, or ask for `--tools=edit,search`"));
            }
            let known = known(task, instance, &calls, tools, execution)?;
            let parts = [images[&task.slug].as_bytes(), &known];
            let name = image_of_task(&task.slug, &parts);
            of.insert(task.id.clone(), TaskImage { name, slug: task.slug.clone(), known });
        }
        Ok(Tools { which: tools.clone(), images, tasks: of })
    }

    /// What they are called.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.which.iter().map(|tool| tool.as_str())
    }

    /// What the images are built from.
    pub(super) fn files(&self) -> Files {
        let mut files = Files::from([
            (format!("{FOLDER}/Dockerfile"), text(DOCKERFILE.to_owned())),
            (format!("{FOLDER}/gistify"), script(LAUNCHER.to_owned())),
            (format!("{TASKS}/Dockerfile"), text(TASK_DOCKERFILE.to_owned())),
        ]);
        for (name, source) in PROGRAM {
            files.insert(format!("{FOLDER}/{name}"), text(source.to_owned()));
        }
        for (id, task) in &self.tasks {
            let file = File { bytes: task.known.clone(), executable: false };
            files.insert(format!("{TASKS}/{id}/task.json"), file);
        }
        files
    }
}

/// All that decides about the image with the commands.
fn program() -> impl Iterator<Item = &'static str> {
    [DOCKERFILE, LAUNCHER].into_iter().chain(PROGRAM.into_iter().flat_map(|(name, source)| [name, source]))
}

fn image_of_task(slug: &RepoSlug, parts: &[&[u8]]) -> String {
    image(slug, &[TASK_DOCKERFILE, &hash_parts(parts)])
}

/// What the commands know of a task: nothing of how it is solved, and of its trace no executed lines.
fn known(
    task: &Task,
    instance: &Instance,
    calls: &[FunctionCalls],
    tools: &BTreeSet<Tool>,
    execution: ExecutionSetting,
) -> Result<Vec<u8>> {
    let import_files: &[String] = if calls.is_empty() { &[] } else { &instance.import_files };
    let trace: Vec<serde_json::Value> = calls
        .iter()
        .map(
            |one| json!({ "file": one.file, "function": one.function, "line": one.line, "calls": one.calls }),
        )
        .collect();
    let known = json!({
        "instance_id": task.id,
        "workdir": task.workdir,
        "submission": task.judging.submission,
        "check": task.judging.run.first().map(EntryCommand::words),
        "options": task.judging.options,
        "variables": task.judging.variables,
        "seconds": task.judging.limit.as_secs(),
        "execution": execution.as_str(),
        "tools": tools,
        "import_files": import_files,
        "trace": trace,
    });
    serde_json::to_vec_pretty(&known)
        .map_err(|error| Error::internal("cannot encode a task").with_source(error))
}

fn read_calls(dataset: &Dataset) -> Result<Calls> {
    let table = dataset.table("traces", &["instance_id", "file", "function", "line", "calls", "order"])?;
    let (ids, files) = (table.whole_texts("instance_id")?, table.whole_texts("file")?);
    let (functions, lines) = (table.whole_texts("function")?, table.whole_numbers("line")?);
    let (calls, orders) = (table.whole_numbers("calls")?, table.whole_numbers("order")?);
    let mut all = Calls::new();
    for row in 0..table.rows() {
        let refused = |words: &str| Error::usage(format!("traces.parquet, {}: {words}", ids[row]));
        check_path(files[row]).map_err(|words| refused(&words))?;
        all.entry(ids[row].to_owned()).or_default().push(FunctionCalls {
            file: files[row].to_owned(),
            function: functions[row].to_owned(),
            line: u32::try_from(lines[row]).map_err(|_| refused("a line that no file has"))?,
            calls: u64::try_from(calls[row]).map_err(|_| refused("fewer calls than none"))?,
            order: u32::try_from(orders[row]).map_err(|_| refused("an order that no trace has"))?,
            lines: None,
            callers: None,
        });
    }
    for calls in all.values_mut() {
        calls.sort_by_key(|one| one.order);
    }
    Ok(all)
}
