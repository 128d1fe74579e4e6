//! An export into a directory, which it may share with exports of the same instances to other harnesses.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::receipt::RECEIPT;
use super::settings::Settings;
use super::{Collection, Files, Harness, images};
use crate::beneath::Folder;
use crate::dataset::trees;
use crate::error::{Error, Result};
use crate::record::id::hash_parts;
use crate::store::{read_json, write_json};

/// What the directory is, for the next export.
const HEADER: &str = "export.json";
/// Most bytes of a tree that are unpacked.
const LARGEST_TREE: u64 = 16 << 30;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Header {
    dataset: String,
    version: String,
    tasks: usize,
    /// Hash over ids and prompts, and images with tools.
    sha256: String,
    harnesses: BTreeSet<Harness>,
    /// What decides about a reward.
    judged_by: String,
}

/// Writes what these harnesses need, beside what exists for others, and gives all that the directory now serves.
/// `dataset` is where the trees are.
///
/// # Errors
/// Usage errors: the directory holds something else, or other tasks. IO errors with the path.
pub(crate) fn write(
    directory: &Path,
    dataset: &Path,
    collection: &Collection,
    harnesses: &BTreeSet<Harness>,
) -> Result<BTreeSet<Harness>> {
    if directory.exists() && !directory.is_dir() {
        return Err(Error::usage(format!("{} is a file", directory.display()))
            .with_hint("name a directory that is empty or does not exist"));
    }
    let mut header = header(collection, harnesses);
    let place = directory.join(HEADER);
    if let Some(there) = read_json::<Header>(&place)? {
        if (&there.dataset, &there.version, &there.sha256)
            != (&header.dataset, &header.version, &header.sha256)
        {
            return Err(Error::usage(format!(
                "{} has {} tasks of {} {}, and not these",
                directory.display(),
                there.tasks,
                there.dataset,
                there.version
            ))
            .with_hint("name another directory, or remove this one"));
        }
        header.harnesses.extend(there.harnesses);
    } else if directory.exists() && fs_err::read_dir(directory)?.next().is_some() {
        return Err(Error::usage(format!("{} exists and is not an export", directory.display()))
            .with_hint("name a directory that is empty or does not exist"));
    }
    // What was paid was paid by other files.
    match fs_err::remove_file(directory.join(RECEIPT)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    for (name, file) in super::files(collection, &header.harnesses)? {
        let path = directory.join(name);
        fs_err::create_dir_all(path.parent().unwrap_or(directory))?;
        fs_err::write(&path, &file.bytes)?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    let from = Folder::open(dataset)?;
    for (slug, _) in collection.environments.iter().filter(|(_, environment)| environment.has_tree) {
        let to = directory.join(images::folder(slug)).join(images::TREE);
        repack(&from, Path::new(&trees::place(slug)), &to)?;
    }
    write_json(&place, &header)?;
    Ok(header.harnesses)
}

/// Writes files into a new or empty directory.
///
/// # Errors
/// A usage error where it holds something. IO errors with the path.
pub(crate) fn write_files(directory: &Path, files: &Files) -> Result<()> {
    if directory.exists() && fs_err::read_dir(directory)?.next().is_some() {
        return Err(Error::usage(format!("{} exists and is not empty", directory.display()))
            .with_hint("name a directory that is empty or does not exist"));
    }
    for (name, file) in files {
        // Parts of names come from datasets.
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(Error::usage(format!("{} is not a path in an export", crate::redact::quote(name)))
                .with_hint("the dataset is damaged; copy it again"));
        }
        let path = directory.join(name);
        fs_err::create_dir_all(path.parent().unwrap_or(directory))?;
        fs_err::write(&path, &file.bytes)?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn header(collection: &Collection, harnesses: &BTreeSet<Harness>) -> Header {
    let mut parts: Vec<&str> =
        collection.tasks.iter().flat_map(|task| [task.id.as_str(), &task.instruction]).collect();
    let suites = collection.tasks.iter().filter_map(|task| task.judging.suite.as_ref());
    parts.extend(suites.flat_map(|suite| suite.steps.iter().map(|step| step.text.as_str())));
    if collection.tools.is_some() {
        parts.extend(collection.tasks.iter().map(|task| collection.image(task)));
    }
    parts.extend(collection.masked.values().map(|image| image.name.as_str()));
    // What is asked for beside instances holds for all harnesses of a directory; which engine scripts call changes no task.
    let settings = format!("{:?}", Settings { engine: None, ..collection.settings.clone() });
    if settings != format!("{:?}", Settings::default()) {
        parts.push(&settings);
    }
    Header {
        dataset: collection.name.clone(),
        version: collection.version.clone(),
        tasks: collection.tasks.len(),
        sha256: hash_parts(&parts),
        harnesses: harnesses.clone(),
        judged_by: collection.judged_by(),
    }
}

/// The archive of a tree in a form that every builder of images unpacks.
fn repack(dataset: &Folder, place: &Path, to: &Path) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::from(error).at(format!("cannot unpack {} of the dataset", place.display()))
    };
    let packed = zstd::Decoder::new(dataset.open_file(place)?).map_err(failed)?;
    let mut packed = packed.take(LARGEST_TREE + 1);
    fs_err::create_dir_all(to.parent().unwrap_or(to))?;
    let file = std::io::BufWriter::new(fs_err::File::create(to)?);
    let mut out = flate2::GzBuilder::new().mtime(0).write(file, flate2::Compression::default());
    if std::io::copy(&mut packed, &mut out).map_err(failed)? > LARGEST_TREE {
        return Err(Error::usage(format!("{} of the dataset is too large", place.display())));
    }
    out.finish().and_then(|mut file| file.flush()).map_err(failed)
}
