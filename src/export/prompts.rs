//! Requests for models that answer in one go, as batch interfaces take them: one JSON object a line, with the code in the prompt.

use std::fmt::Write as _;

use serde_json::json;

use super::{Collection, Files, text};
use crate::error::{Error, Result};
use crate::family::recube::pack::fence_of;
use crate::record::task::Task;

pub(super) fn files(collection: &Collection) -> Result<Files> {
    let mut lines = String::new();
    for task in &collection.tasks {
        let row = json!({
            "custom_id": task.id,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {
                // Whoever sends them names it.
                "model": "MODEL",
                "messages": [{ "role": "user", "content": prompt(collection, task)? }],
            },
        });
        let line = serde_json::to_string(&row)
            .map_err(|error| Error::internal("cannot encode a prompt").with_source(error))?;
        lines.push_str(&line);
        lines.push('\n');
    }
    Ok(Files::from([("prompts.jsonl".to_owned(), text(lines))]))
}

/// The instruction, what is different without a machine, and the files that run.
fn prompt(collection: &Collection, task: &Task) -> Result<String> {
    let Some(sources) = collection.sources.get(&task.slug) else {
        return Err(Error::usage(format!("the dataset does not have the code of {}", task.slug)).with_hint(
            "prompts hold the code, so they need a dataset with its trees: build without `--no-trees`",
        ));
    };
    let mut text = task.instruction.clone();
    let _ = write!(
        text,
        "\n## Without a machine\n\nYou cannot run anything. The files of the repository that run during the command follow. \
         Answer with the whole `{}` in one block that begins with ```python, and nothing else.\n",
        task.judging.submission
    );
    for file in &task.files {
        // What is compiled, or not text, cannot be shown.
        let Some(source) = sources.files.get(file) else { continue };
        let fence = fence_of(source);
        let _ = write!(text, "\n### `{file}`\n\n{fence}python\n{}\n{fence}\n", source.trim_end_matches('\n'));
    }
    Ok(text)
}
