//! SWE-agent's instances, one JSON object a line.

use serde_json::json;

use super::{Collection, Files, text};
use crate::error::{Error, Result};

pub(super) fn files(collection: &Collection) -> Result<Files> {
    let mut lines = String::new();
    for task in &collection.tasks {
        let row = json!({
            "instance_id": task.id,
            "image_name": collection.image(task),
            "problem_statement": task.instruction,
            // The folder of the tree below the root, and its one commit.
            "repo_name": task.workdir.trim_start_matches('/'),
            "base_commit": "HEAD",
            "extra_fields": { "test": task.judging.tests().join(" "), "entry_command": task.command, "commit": task.commit },
        });
        let line = serde_json::to_string(&row)
            .map_err(|error| Error::internal("cannot encode an instance").with_source(error))?;
        lines.push_str(&line);
        lines.push('\n');
    }
    Ok(Files::from([("swe-agent.jsonl".to_owned(), text(lines))]))
}
