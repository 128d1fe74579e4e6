//! Images of tasks of which the agent does not see the whole tree: on top of an environment's image one for each task, in which
//! files are replaced or gone, with their history, byte code and copies. The judge gets back what it needs.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Collection, File, Files, text};
use crate::error::{Error, Result};
use crate::record::id::InstanceId;
use crate::record::task::Task;

/// The folder of what they are built from.
pub(super) const FOLDER: &str = "images/masked";
const HIDE: &str = include_str!("masked/hide.py");
const DOCKERFILE: &str = "\
ARG BASE
FROM $BASE
USER root
COPY . /tmp/mask/
RUN python -I /tmp/mask/hide.py /tmp/mask && rm -r /tmp/mask
";

/// The names of such images, by task.
pub(super) type MaskedImages = BTreeMap<InstanceId, String>;

/// Whether a task has an image of its own.
pub(super) fn is_masked(task: &Task) -> bool {
    task.mask.files().next().is_some()
}

/// All that decides about the image of a task on top of another; none where it has none of its own.
pub(super) fn identity(task: &Task, base: &str) -> Option<[String; 4]> {
    let parts = || [HIDE.to_owned(), DOCKERFILE.to_owned(), base.to_owned(), task.mask.sha256()];
    is_masked(task).then(parts)
}

/// What they are built from.
pub(super) fn files(collection: &Collection) -> Result<Files> {
    let mut files = Files::new();
    for task in collection.tasks.iter().filter(|task| is_masked(task)) {
        let folder = format!("{FOLDER}/{}", task.id);
        let (mut put, mut hide) = (Vec::new(), Vec::new());
        for (path, bytes) in task.mask.files() {
            match bytes {
                Some(bytes) => {
                    let file = File { bytes: bytes.to_vec(), executable: false };
                    files.insert(format!("{folder}/put/{path}"), file);
                    put.push(path);
                }
                None => hide.push(path),
            }
        }
        let mask = json!({ "workdir": task.workdir, "put": put, "hide": hide });
        let mask = serde_json::to_string_pretty(&mask)
            .map_err(|error| Error::internal("cannot encode a mask").with_source(error))?;
        files.insert(format!("{folder}/mask.json"), text(mask + "\n"));
        files.insert(format!("{folder}/hide.py"), text(HIDE.to_owned()));
        files.insert(format!("{folder}/Dockerfile"), text(DOCKERFILE.to_owned()));
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
