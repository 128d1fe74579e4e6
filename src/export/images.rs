//! What the images of the environments are built from, and a script that builds them.

use std::fmt::Write as _;

use std::collections::BTreeMap;

use super::{Collection, Environment, File, Files, Tools, masked, script};
use crate::error::Result;
use crate::record::id::RepoSlug;
use crate::record::task::Task;
use crate::text::shell_quote;

/// The archive of the tree in an image's folder: of a kind that every builder unpacks by itself.
pub(super) const TREE: &str = "tree.tar.gz";
/// How a dataset's Dockerfile takes the tree, and how that of an export does.
const COPIES_TREE: &str = "\nCOPY tree /testbed\n";
const UNPACKS_TREE: &str = "\nADD tree.tar.gz /testbed/\n";

pub(super) fn files(collection: &Collection) -> Result<Files> {
    let mut files = Files::new();
    for (slug, environment) in &collection.environments {
        for (name, bytes) in &environment.recipe {
            let bytes = if name == "Dockerfile" { dockerfile(bytes, environment) } else { bytes.clone() };
            files.insert(format!("{}/{name}", folder(slug)), File { bytes, executable: false });
        }
    }
    files.extend(collection.tools.iter().flat_map(Tools::files));
    files.extend(masked::files(collection)?);
    let mut build = build(collection);
    build.extend(collection.tools.iter().map(|tools| build_tools(collection, tools)));
    build.push_str(&build_masked(collection));
    files.insert("images/build.sh".to_owned(), script(build));
    if let Some(folder) = &collection.settings.sif {
        files.insert("images/sif.sh".to_owned(), script(make_sif(collection, folder)));
    }
    Ok(files)
}

/// The file of an image in a folder of images for clusters without an engine.
pub(super) fn sif(folder: &str, image: &str) -> String {
    let name = image.split('@').next().unwrap_or(image).replace(['/', ':'], "_");
    let hash = image.split_once("@sha256:").map(|(_, hash)| format!("-{}", hash.get(..16).unwrap_or(hash)));
    format!("{}/{name}{}.sif", folder.trim_end_matches('/'), hash.unwrap_or_default())
}

/// Takes an image of the engine of this machine: Apptainer asks Docker by itself, and reads what Podman saves.
const FROM_ENGINE: &str = "\
from_engine() {
    case $engine in
    *podman)
        saved=$(mktemp -d)
        \"$engine\" save --format oci-archive -o \"$saved/image.tar\" \"$2\"
        \"$apptainer\" build \"$1\" \"oci-archive:$saved/image.tar\"
        rm -r \"$saved\"
        ;;
    *) \"$apptainer\" build \"$1\" \"docker-daemon:$2\" ;;
    esac
}
";

/// Makes the files that [`sif`] names: out of a registry, or out of an engine of this machine.
fn make_sif(collection: &Collection, folder: &str) -> String {
    let mut text = "\
#!/bin/sh
# Makes the images for Apptainer that do not exist yet, where APPTAINER (apptainer, singularity) runs.
set -e
apptainer=${APPTAINER:-apptainer}
"
    .to_owned();
    text.push_str(&collection.settings.engine_line());
    text.push_str(FROM_ENGINE);
    let _ = writeln!(text, "mkdir -p {}", shell_quote(folder));
    let images: BTreeMap<&str, bool> = collection
        .tasks
        .iter()
        .map(|task| {
            let is_own = collection.tools.is_none() && !masked::is_masked(task);
            let is_pulled = collection.environments.get(&task.slug).is_some_and(|one| one.is_pulled);
            (collection.image(task), is_own && is_pulled)
        })
        .collect();
    for (image, is_pulled) in images {
        let file = shell_quote(&sif(folder, image));
        let make = if is_pulled {
            format!("\"$apptainer\" build {file} {}", shell_quote(&format!("docker://{image}")))
        } else {
            format!("from_engine {file} {}", shell_quote(image))
        };
        let _ = writeln!(text, "[ -e {file} ] || {make}");
    }
    text
}

/// The folder of an image's files.
pub(super) fn folder(slug: &RepoSlug) -> String {
    format!("images/{}", slug.file_name())
}

/// Whether the image of this environment can be built from the export's files alone.
pub(super) fn can_be_built(environment: &Environment) -> bool {
    environment.has_tree && environment.recipe.contains_key("Dockerfile")
}

fn dockerfile(bytes: &[u8], environment: &Environment) -> Vec<u8> {
    let mut text = String::from_utf8_lossy(bytes).replace(COPIES_TREE, UNPACKS_TREE);
    for (name, value) in &environment.variables {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$").replace('\n', " ");
        let _ = writeln!(text, "ENV {name}=\"{value}\"");
    }
    text.into_bytes()
}

/// Builds an image on top of another.
fn build_on(base: &str, image: &str, rest: &str) -> String {
    let (base, image) = (shell_quote(base), shell_quote(image));
    format!(
        "\"$engine\" image inspect {image} >/dev/null 2>&1 || \"$engine\" build \"$@\" --build-arg BASE={base} -t {image} {rest}\n"
    )
}

/// The images that do not show the whole tree.
fn build_masked(collection: &Collection) -> String {
    let tasks = collection.tasks.iter().filter_map(|task| Some((task, collection.masked.get(&task.id)?)));
    let build = |(task, image): (&Task, &masked::MaskedImage)| {
        let base = collection.environments.get(&task.slug).map_or("", |one| one.image.as_str());
        build_on(base, &image.name, &shell_quote(&format!("masked/{}", task.id)))
    };
    tasks.map(build).collect()
}

/// The images with tools, each on top of another.
fn build_tools(collection: &Collection, tools: &Tools) -> String {
    let mut text = String::new();
    let mut add = |base: &str, image: &str, rest: &str| text.push_str(&build_on(base, image, rest));
    for (slug, image) in &tools.images {
        add(&collection.environments[slug].image, image, "tools");
    }
    for (id, task) in &tools.tasks {
        let folder = shell_quote(&format!("tasks/{id}"));
        add(&tools.images[&task.slug], &task.name, &format!("-f tasks/Dockerfile {folder}"));
    }
    text
}

impl Collection {
    /// Repositories whose images cannot be built from what the export has.
    pub(crate) fn without_images(&self) -> Vec<&str> {
        let lacking = self.environments.iter().filter(|(_, it)| !it.is_pulled && !can_be_built(it));
        lacking.map(|(slug, _)| slug.as_str()).collect()
    }
}

fn build(collection: &Collection) -> String {
    let (program, other) = (collection.settings.program(), collection.settings.other_program());
    let mut text = format!(
        "\
#!/bin/sh
# Gets the images that do not exist yet. Arguments go to `{program} build`: --build-arg BASE=… takes another base image.
# ENGINE={other} takes another engine.
set -e
{}cd \"$(dirname \"$0\")\"
",
        collection.settings.engine_line()
    );
    for (slug, environment) in &collection.environments {
        let image = shell_quote(&environment.image);
        let _ = write!(text, "\"$engine\" image inspect {image} >/dev/null 2>&1 || ");
        let _ = if environment.is_pulled {
            writeln!(text, "\"$engine\" pull {image}")
        } else if can_be_built(environment) {
            let folder = shell_quote(&slug.file_name());
            writeln!(text, "\"$engine\" build \"$@\" -t {image} {folder}")
        } else {
            writeln!(text, "{{ echo {image}: the dataset has not all that it is built from >&2; exit 1; }}")
        };
    }
    text
}
