//! What agents did, by the files that they leave: commands of shells and of tools, whichever harness wrote them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::beneath::{Folder, Kind};
use crate::error::{Error, Result};
use crate::text::shell_quote;

/// Largest file of a trajectory, in bytes.
const LARGEST: u64 = 256 << 20;
/// Keys of what a shell was given.
const COMMANDS: [&str; 5] = ["command", "cmd", "keystrokes", "bash_command", "code"];
/// Keys of a file that a tool was given.
const PATHS: [&str; 3] = ["path", "file_path", "filename"];
/// What such a tool does to a file without that its text is seen.
const BLIND: [&str; 2] = ["create", "write"];

/// Commands by instance ID.
pub(crate) type Trajectories = BTreeMap<String, Vec<String>>;

/// Reads a folder: a file is about the instance whose ID a part of its path is, or begins with, before `.` or `__`.
///
/// # Errors
/// Usage errors: there is no such folder, or nothing in it is about an instance.
pub(crate) fn read(path: &Path, known: &BTreeSet<String>) -> Result<Trajectories> {
    let folder = Folder::named(path)?;
    let mut found = Trajectories::new();
    for entry in folder.walk()?.into_iter().filter(|entry| entry.kind == Kind::File) {
        let parts: Vec<String> =
            entry.path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        let is_json = parts.last().is_some_and(|name| name.ends_with(".json") || name.ends_with(".traj"));
        let Some(id) = known.iter().find(|id| parts.iter().any(|part| is_of(part, id))).filter(|_| is_json)
        else {
            continue;
        };
        // What cannot be read is its author's, and says nothing.
        let Ok(bytes) = folder.read(&entry.path, LARGEST) else { continue };
        let Ok(value) = serde_json::from_slice::<Value>(&bytes) else { continue };
        found.entry(id.clone()).or_default().extend(commands(&value));
    }
    if found.is_empty() {
        return Err(Error::usage(format!("{} has no trajectory of an instance", path.display())).with_hint(
            "a file is <instance id>.json, <instance id>.traj.json, or any .json in a folder that is named like the instance",
        ));
    }
    Ok(found)
}

fn is_of(part: &str, id: &str) -> bool {
    part.strip_prefix(id)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with("__"))
}

/// The commands of one trajectory, in its order.
pub(crate) fn commands(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| collect(one, found)),
        Value::Object(fields) => {
            let text = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)?.as_str());
            let (command, path) = (text(&COMMANDS), text(&PATHS));
            match (command, path) {
                (command, Some(path)) if command.is_none_or(|command| !BLIND.contains(&command)) => {
                    found.push(format!("cat {}", shell_quote(path)));
                }
                (Some(command), None) => found.push(command.to_owned()),
                _ => {}
            }
            let is_agent = ["role", "source"]
                .iter()
                .any(|key| matches!(fields.get(*key).and_then(Value::as_str), Some("assistant" | "agent")));
            if is_agent && let Some(text) = fields.get("content").and_then(Value::as_str) {
                found.extend(blocks(text));
            }
            for (key, one) in fields {
                // Calls of tools have their arguments as text.
                let parsed = one.as_str().filter(|_| key == "arguments").map(serde_json::from_str::<Value>);
                match parsed {
                    Some(Ok(arguments)) => collect(&arguments, found),
                    _ => collect(one, found),
                }
            }
        }
        _ => {}
    }
}

/// What is in fenced blocks.
fn blocks(text: &str) -> Vec<String> {
    let inside = text.split("```").skip(1).step_by(2);
    let without_name = |block: &str| block.split_once('\n').map(|(_, rest)| rest.to_owned());
    inside.filter_map(without_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_the_files_of_each_harness() {
        let value = serde_json::json!({
            "trajectory": [{ "role": "user", "content": "```bash\ncat no.py\n```" },
                           { "role": "assistant", "content": "Look:\n```bash\ncat a.py\n```\n" }],
            "messages": [{ "tool_calls": [{ "function": { "arguments": "{\"command\": \"sed -n 1p b.py\"}" } }] }],
            "steps": [{ "source": "agent", "tool_calls": [{ "arguments": { "command": "view", "path": "/testbed/c.py" } },
                                                           { "arguments": { "command": "create", "path": "/testbed/d.py" } }] }],
        });
        let mut found = commands(&value);
        found.sort();
        assert_eq!(found, ["cat /testbed/c.py", "cat a.py\n", "sed -n 1p b.py"]);
    }

    #[test]
    fn a_file_is_about_the_instance_that_its_path_names() {
        let home = tempfile::tempdir().unwrap();
        let known: BTreeSet<String> = ["a__b.c-1".to_owned(), "a__b.c-12".to_owned()].into();
        let write = |path: &str| {
            let path = home.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "{\"command\": \"cat x\"}").unwrap();
        };
        assert!(read(home.path(), &known).unwrap_err().to_string().contains("no trajectory"));
        write("a__b.c-12/a__b.c-12.traj.json");
        write("jobs/a__b.c-1__Xy/agent/trajectory.json");
        write("other/x.json");
        let found = read(home.path(), &known).unwrap();
        let counts: Vec<_> = found.iter().map(|(id, all)| (id.as_str(), all.len())).collect();
        assert_eq!(counts, [("a__b.c-1", 1), ("a__b.c-12", 1)]);
    }
}
