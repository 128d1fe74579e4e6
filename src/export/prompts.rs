//! Requests for models that answer in one go, as batch interfaces take them: one JSON object a line, with the code in the prompt.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Collection, Files, masked, refactoring, text};
use crate::error::{Error, Result};
use crate::family::recube::pack::fence_of;
use crate::family::tokens;
use crate::record::id::sha256_hex;
use crate::record::task::Task;

pub(super) fn files(collection: &Collection) -> Result<Files> {
    if collection.tasks.iter().any(refactoring::is_refactoring) {
        return Ok(refactoring::prompts(collection));
    }
    if collection.tasks.iter().any(masked::is_masked) {
        return by_setting(collection);
    }
    let mut files = Files::new();
    let mut index = String::new();
    for (place, setting, answer) in SETTINGS {
        let mut lines = String::new();
        for task in &collection.tasks {
            let prompt = prompt(collection, task, answer)?;
            lines.push_str(&line(&request(task, &prompt))?);
            index.push_str(&line(&json!({
                "instance_id": task.id,
                "setting": setting,
                "prompt_tokens": tokens::count(&prompt),
                "sha256": sha256_hex(prompt.as_bytes()),
            }))?);
        }
        files.insert(place.to_owned(), text(lines));
    }
    files.insert("prompts/index.jsonl".to_owned(), text(index));
    Ok(files)
}

/// For one file at a time: where its requests are written, what the setting is called, and how it is to be answered. The line
/// before the file is what `score` looks for in an answer with thoughts.
const SETTINGS: [(&str, &str, &str); 2] = [
    (
        "prompts.jsonl",
        "plain",
        "Answer with the whole `{file}` in one block that begins with ```python, and nothing else.",
    ),
    (
        "prompts/chain-of-thought.jsonl",
        "chain-of-thought",
        "First go through what runs, step by step: which functions the command calls, in which order, and what of each it needs. Then \
         write the line `FINAL_OUTPUT:`, and after it the whole `{file}` in one block that begins with ```python.",
    ),
];

/// A request as batch interfaces take it.
fn request(task: &Task, content: &str) -> Value {
    json!({
        "custom_id": task.id,
        "method": "POST",
        "url": "/v1/chat/completions",
        // Whoever sends it names the model.
        "body": { "model": "MODEL", "messages": [{ "role": "user", "content": content }] },
    })
}

fn line(row: &Value) -> Result<String> {
    let line = serde_json::to_string(row);
    line.map(|line| line + "\n").map_err(|error| Error::internal("cannot encode a prompt").with_source(error))
}

/// A file for each setting, and one that says how long each prompt is.
fn by_setting(collection: &Collection) -> Result<Files> {
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |name: String, row: &Value| -> Result<()> {
        lines.entry(name).or_default().push_str(&line(row)?);
        Ok(())
    };
    for task in &collection.tasks {
        if task.one_shot.is_empty() {
            return Err(Error::usage(format!("the dataset has no context for prompts of {}", task.id)).with_hint(
                "the table `contexts` has it: build without `--no-trees`, and with this gistmill; what is in the cache is not run again",
            ));
        }
        for one in &task.one_shot {
            let mut row = request(task, &one.prompt);
            row["body"]["max_tokens"] = json!(one.max_tokens);
            row["body"]["temperature"] = json!(0.0);
            add(format!("prompts/{}.jsonl", one.setting), &row)?;
            let told = json!({
                "instance_id": task.id,
                "file": task.judging.submission,
                "setting": one.setting,
                "context_tokens": one.context_tokens,
                "max_tokens": one.max_tokens,
                "sha256": sha256_hex(one.prompt.as_bytes()),
            });
            add("prompts/index.jsonl".to_owned(), &told)?;
        }
    }
    Ok(lines.into_iter().map(|(name, lines)| (name, text(lines))).collect())
}

/// The instruction, what is different without a machine and how to `answer`, and the files that run.
fn prompt(collection: &Collection, task: &Task, answer: &str) -> Result<String> {
    let Some(sources) = collection.sources.get(&task.slug) else {
        return Err(Error::usage(format!("the dataset does not have the code of {}", task.slug)).with_hint(
            "prompts hold the code, so they need a dataset with its trees: build without `--no-trees`",
        ));
    };
    let mut text = task.instruction.clone();
    let _ = write!(
        text,
        "\n## Without a machine\n\nYou cannot run anything. The files of the repository that run during the command follow. {}\n",
        answer.replace("{file}", &task.judging.submission)
    );
    for file in &task.files {
        // What is compiled, or not text, cannot be shown.
        let Some(source) = sources.files.get(file) else { continue };
        let fence = fence_of(source);
        let _ = write!(text, "\n### `{file}`\n\n{fence}python\n{}\n{fence}\n", source.trim_end_matches('\n'));
    }
    Ok(text)
}
