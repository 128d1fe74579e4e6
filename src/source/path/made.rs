//! What gistmill itself left in a work tree: datasets, scores and exports of earlier runs. They hold the answers.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::beneath::Folder;

/// Tables of a dataset that are written before its manifest.
const ENTRIES: [&str; 3] = ["instances.jsonl", "instances.parquet", "groups.parquet"];
/// Largest file that is looked into, in bytes.
const LARGEST: u64 = 16 << 20;

/// The folders and files that gistmill made, of those that these files of `folder` are in. Paths are relative to it.
pub(super) fn by_gistmill<'a>(folder: &Folder, files: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut made = Vec::new();
    for file in files {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(around) = file.parent().filter(|around| !around.as_os_str().is_empty()) else { continue };
        let is_begun = around
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with('.') && name.ends_with(".writing"));
        match name {
            // A dataset whose writing came to no end.
            _ if is_begun && ENTRIES.contains(&name) => made.push(around.to_owned()),
            "manifest.json" if reads(folder, file, |it| it["tool"]["name"] == "gistmill") => {
                if let (Some(version), Some(root)) = (around.file_name(), around.parent()) {
                    made.push(root.join(format!(".{}.lock", version.to_string_lossy())));
                }
                made.push(around.to_owned());
            }
            "export.json" if reads(folder, file, |it| has(it, &["dataset", "harnesses", "judged_by"])) => {
                made.push(around.to_owned());
            }
            "tables.json" if reads(folder, file, |it| has(&it[0], &["id", "title", "note", "columns"])) => {
                made.push(around.to_owned());
            }
            _ => {}
        }
    }
    made
}

fn reads(folder: &Folder, file: &Path, is_it: impl Fn(&Value) -> bool) -> bool {
    let text = folder.read(file, LARGEST).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).is_some_and(|value| is_it(&value))
}

fn has(value: &Value, keys: &[&str]) -> bool {
    keys.iter().all(|key| value.get(key).is_some())
}
