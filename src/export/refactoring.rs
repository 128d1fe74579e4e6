//! Tasks whose submission is a patch to the whole tree: what judges them, texts for several agents, and the search for what no
//! agent may see.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;
use toml::{Table, Value};

use super::{Collection, File, Files, NOTHING_LEFT, script, text};
use crate::error::{Error, Result};
use crate::record::task::{JudgedSuite, Task};
use crate::text::shell_quote;

const JUDGE: &str = include_str!("refactoring/refactoring.py");
const FEATURES: &str = include_str!("refactoring/features.py");
/// What is written in the place of a patch that git could not take; the judge then judges nothing.
const NOT_TAKEN: &str = "gistmill: git could not take what changed";
/// Where the patch is that an agent's container hands on.
pub(super) const PATCH: &str = "/output/prediction.diff";
/// What making it may take, in seconds.
const SECONDS: f64 = 300.0;

/// Whether a task is one.
pub(super) fn is_refactoring(task: &Task) -> bool {
    task.judging.suite.is_some()
}

/// Writes what changed since the tree's first commit into a file, whatever the agent committed and left in its index.
pub(super) fn taking(workdir: &str, file: &str) -> String {
    let git = format!(
        "git -C {0} -c core.hooksPath=/dev/null -c core.fsmonitor=false -c safe.directory={0}",
        shell_quote(workdir)
    );
    let file = shell_quote(file);
    format!(
        "(GIT_INDEX_FILE=$(mktemp -d)/index && export GIT_INDEX_FILE && {git} read-tree HEAD && {git} add -A && {git} diff \
         --cached --binary --no-color --no-ext-diff --no-textconv \"$({git} rev-list --max-parents=0 HEAD | tail -n 1)\") > {file} \
         || echo '{NOT_TAKEN}' > {file}"
    )
}

/// What judges a task, by its path in a folder.
pub(super) fn judging(task: &Task, suite: &JudgedSuite) -> Result<BTreeMap<&'static str, String>> {
    let must_pass: Vec<&str> = task
        .judging
        .expect
        .iter()
        .map(|case| case.name.as_str())
        .filter(|name| !name.contains("<tmp>"))
        .collect();
    let told = json!({
        "instance_id": task.id,
        "workdir": task.workdir,
        "scratch": "/tmp",
        // Nobody, as every system knows this number.
        "user": 65_534,
        "ignored": suite.ignored,
        "tests": suite.tests,
        "scripts": suite.scripts.iter().map(|(path, bytes)| (path, hex::encode(bytes))).collect::<BTreeMap<_, _>>(),
        "run": suite.run,
        "p_min": suite.bounds.passed,
        "f_max": suite.bounds.failed,
        "must_pass": must_pass,
        "patterns": suite.patterns,
        "options": task.judging.options,
        "variables": task.judging.variables,
        "seconds": task.judging.limit.as_secs(),
    });
    let told = serde_json::to_string_pretty(&told)
        .map_err(|error| Error::internal("cannot encode a task").with_source(error))?;
    Ok([
        ("judge.py", include_str!("judge.py").to_owned()),
        ("features.py", FEATURES.to_owned()),
        ("refactoring.py", JUDGE.to_owned()),
        ("task.json", told + "\n"),
    ]
    .into())
}

/// A task of Harbor, but for its `task.toml`.
pub(super) fn of_harbor(task: &Task, suite: &JudgedSuite, image: &str, canary: &str) -> Result<Files> {
    let mut files = Files::from([
        ("environment/Dockerfile".to_owned(), text(format!("FROM {image}\nWORKDIR {}\n", task.workdir))),
        ("tests/test.sh".to_owned(), script(test(task, suite))),
    ]);
    for (name, content) in judging(task, suite)? {
        files.insert(format!("tests/{name}"), text(content));
    }
    let mut add = |folder: &str, instruction: &str, solution: Option<String>| {
        files.insert(format!("{folder}instruction.md"), text(format!("{canary}{instruction}")));
        let Some(solution) = solution else { return };
        files.insert(format!("{folder}solution/solve.sh"), script(solution));
        if let Some(golden) = suite.golden.clone().filter(|_| !folder.contains("/plan/")) {
            let file = File { bytes: golden, executable: false };
            files.insert(format!("{folder}solution/golden.diff"), file);
        }
    };
    let apply = format!(
        "#!/bin/bash\nset -e\ngit -C {} apply --binary --whitespace=nowarn /solution/golden.diff\n",
        shell_quote(&task.workdir)
    );
    let apply = suite.golden.as_ref().map(|_| apply);
    match suite.steps.as_slice() {
        [] | [_] => add("", &task.instruction, apply),
        steps => {
            for step in steps.iter().filter(|step| !step.is_judge) {
                let is_last = step.name == "carry-out";
                let plan = "#!/bin/bash\nset -e\nmkdir -p /output\necho 'Apply the patch.' > /output/refactoring_plan.md\n";
                let solution = apply.clone().map(|apply| if is_last { apply } else { plan.to_owned() });
                add(&format!("steps/{}/", step.name), &step.text, solution);
            }
        }
    }
    Ok(files)
}

/// Where nobody handed a patch on, the judge's own tree says what changed.
fn test(task: &Task, suite: &JudgedSuite) -> String {
    format!(
        "#!/bin/bash\n{NOTHING_LEFT}patch={PATCH}\nif [ ! -f \"$patch\" ]; then\n    patch=$(mktemp -d)/prediction.diff\n    {}\nfi\n\
         exec {} -I /tests/refactoring.py --container /tests/task.json \"$patch\" /logs/verifier\n",
        taking(&task.workdir, "$patch").replace("'$patch'", "\"$patch\""),
        // Without an environment of gistmill's an image has its own.
        if suite.scripts.is_empty() { "python" } else { "python3" }
    )
}

/// What `task.toml` says besides: what is handed on, and the steps.
pub(super) fn configure(task: &Task, suite: &JudgedSuite, table: &mut Table) {
    table.insert("artifacts".to_owned(), Value::Array(vec![Value::String(PATCH.to_owned())]));
    let collect = Table::from_iter([
        (
            "command".to_owned(),
            Value::String(format!("mkdir -p /output && {}", taking(&task.workdir, PATCH))),
        ),
        ("timeout_sec".to_owned(), Value::Float(SECONDS)),
    ]);
    if let Some(Value::Table(verifier)) = table.get_mut("verifier") {
        verifier.insert("collect".to_owned(), Value::Array(vec![Value::Table(collect)]));
    }
    if suite.steps.len() < 2 {
        return;
    }
    table.insert("multi_step_reward_strategy".to_owned(), Value::String("final".to_owned()));
    let steps = suite.steps.iter().filter(|step| !step.is_judge);
    let steps = steps.map(|step| {
        Value::Table(Table::from_iter([("name".to_owned(), Value::String(step.name.to_owned()))]))
    });
    table.insert("steps".to_owned(), Value::Array(steps.collect()));
}

/// Texts of all modes' steps: a file for each, and a line for each.
pub(super) fn prompts(collection: &Collection) -> Files {
    let (mut files, mut lines) = (Files::new(), String::new());
    for task in &collection.tasks {
        let Some(suite) = &task.judging.suite else { continue };
        for step in &suite.steps {
            let place = format!("prompts/{}/{}.md", task.id, step.name);
            let line = json!({
                "custom_id": format!("{}.{}", task.id, step.name),
                "instance_id": task.id,
                "step": step.name,
                "for": if step.is_judge { "a judge" } else { "an agent in the image" },
                "image": if step.is_judge { "" } else { collection.image(task) },
                "prompt": step.text,
            });
            let _ = writeln!(lines, "{line}");
            files.insert(place, text(step.text.clone()));
        }
    }
    files.insert("prompts.jsonl".to_owned(), text(lines));
    files
}

/// Looks through what agents see for what they must not.
///
/// # Errors
/// A usage error where a description has it; what gistmill itself wrote there is a bug.
pub(super) fn search(collection: &Collection, files: &Files) -> Result<()> {
    for task in &collection.tasks {
        let Some(suite) = &task.judging.suite else { continue };
        let told = suite.steps.iter().filter(|step| !step.is_judge).map(|step| step.text.as_str());
        let mut told = told.chain([task.instruction.as_str()]).filter(|_| !suite.may_tell);
        if let Some(secret) = told.find_map(|text| found(suite, text)) {
            return Err(Error::usage(format!(
                "{}: its description has what agents must not know: {}",
                task.id,
                crate::redact::quote(secret)
            ))
            .with_hint("say it in other words, and build again"));
        }
        for (name, file) in files.iter().filter(|(name, _)| is_seen(name, task, suite.may_tell)) {
            let content = String::from_utf8_lossy(&file.bytes);
            if let Some(secret) = found(suite, &content) {
                return Err(Error::internal(format!(
                    "{name} would show agents {}",
                    crate::redact::quote(secret)
                )));
            }
        }
    }
    Ok(())
}

fn found<'s>(suite: &'s JudgedSuite, text: &str) -> Option<&'s str> {
    suite.secrets.iter().map(String::as_str).find(|secret| text.contains(secret))
}

/// Whether agents, or images of agents, have a file that is looked through. What is installed is locked: a line of a lock says
/// nothing of the patch, even where the patch moves a pin. Descriptions are left out where they may say it.
fn is_seen(name: &str, task: &Task, may_tell: bool) -> bool {
    let is_installed = name.ends_with(".lock") || name.ends_with("constraints.txt");
    let is_image = name.starts_with("images/") || name.contains("/environment/");
    if is_installed || (may_tell && !is_image) {
        return false;
    }
    let own = format!("tasks/{}/", task.id);
    match name.strip_prefix(&own) {
        Some(inner) => {
            let parts: Vec<&str> = inner.split('/').collect();
            parts.contains(&"environment") || parts.ends_with(&["instruction.md"])
        }
        None => {
            name.starts_with("images/")
                || (name.starts_with(&format!("prompts/{}/", task.id)) && !name.ends_with("/judge.md"))
                || name == "swe-agent.jsonl"
                || name == "mini-swe-agent.yaml"
        }
    }
}

#[cfg(test)]
mod tests;
