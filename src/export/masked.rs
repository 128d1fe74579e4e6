//! Images of tasks of which the agent does not see the whole tree: on top of an environment's image one for each task, in which
//! files are replaced or gone, with their history, byte code and copies. The judge gets back what it needs.

use std::collections::BTreeMap;

use serde_json::json;

use super::names::image;
use super::{Collection, File, Files, text};
use crate::error::{Error, Result};
use crate::record::id::{InstanceId, sha256_hex};
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

/// What is put into an image where agents get a graph of what they see; its place in the image is part of the prompt.
const TOOLS: [(&str, &str); 2] =
    [("recube", include_str!("masked/recube")), ("recube_graph.py", include_str!("masked/recube_graph.py"))];
const TOOLS_DOCKERFILE: &str = "\
COPY recube/ /opt/recube/
RUN chmod 755 /opt/recube/recube && ln -s /opt/recube/recube /usr/local/bin/recube
";
/// What the prompt says of it.
const TOOLS_PROMPT: &str = "
## Tools

`/opt/recube/graph.json` is a graph of the directory: folders, files, classes and functions, and how they contain, import, call and \
inherit from each other. It was made of what the directory has, without running it, and does not follow what you change.

- `recube context`: which files import from the file and call into it, bases of its classes and who shares them, files beside it, and \
files like it.
- `recube validate FILE`: whether a file can be parsed, what of it is still masked, and words that are there twice.
- In Python, after `sys.path.insert(0, '/opt/recube')`, `from recube_graph import *`: `graph = load_repo_graph()`, \
`search_entities(graph, names)`, `quick_search(*names)`, `get_file_content(graph, file)`, `get_entity_code(graph, id)`, \
`list_files(graph)`, `list_classes(graph, file)`, `list_functions(graph, file)`, `find_usages(graph, id)`, \
`get_imports_for_file(graph, file)` and `get_dependencies(graph, file, depth)`. An ID is a path, or `path:Class.method`.
";

/// Such images, by task.
pub(super) type MaskedImages = BTreeMap<InstanceId, MaskedImage>;

/// The image of one task.
#[derive(Debug)]
pub(crate) struct MaskedImage {
    pub(super) name: String,
    /// As JSON, where agents get one.
    graph: Option<Vec<u8>>,
}

impl MaskedImage {
    /// Whether agents get a graph.
    pub(super) fn has_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// Of a task on top of another image; none where it has none of its own.
    pub(super) fn new(task: &Task, base: &str, graph: Option<Vec<u8>>) -> Option<Self> {
        let mut parts = vec![HIDE.to_owned(), DOCKERFILE.to_owned(), base.to_owned(), task.mask.sha256()];
        if let Some(graph) = &graph {
            parts.extend([TOOLS_DOCKERFILE.to_owned(), sha256_hex(graph)]);
            parts.extend(TOOLS.map(|(_, text)| text.to_owned()));
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        is_masked(task).then(|| MaskedImage { name: image(&task.slug, &parts), graph })
    }
}

/// What an agent is asked that has a graph.
pub(super) fn with_tools(prompt: &str) -> String {
    format!("{prompt}{TOOLS_PROMPT}")
}

/// Whether a task has an image of its own.
pub(super) fn is_masked(task: &Task) -> bool {
    task.mask.files().next().is_some()
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
        let mut dockerfile = DOCKERFILE.to_owned();
        if let Some(graph) = collection.masked.get(&task.id).and_then(|image| image.graph.as_ref()) {
            dockerfile.push_str(TOOLS_DOCKERFILE);
            let tools = TOOLS.map(|(name, source)| (name, source.as_bytes()));
            for (name, bytes) in tools.into_iter().chain([("graph.json", graph.as_slice())]) {
                let file = File { bytes: bytes.to_vec(), executable: name == "recube" };
                files.insert(format!("{folder}/recube/{name}"), file);
            }
        }
        files.insert(format!("{folder}/Dockerfile"), text(dockerfile));
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
