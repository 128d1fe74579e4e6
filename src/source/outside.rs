//! Tests that are kept beside a repository: what a folder has, and the tree with them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::tree::{self, Entry};
use super::{Content, Context, Request};
use crate::beneath::{Folder, Kind as FileKind};
use crate::config::{OutsideTests, Repo};
use crate::error::{Error, Result};
use crate::record::id::RepoSlug;
use crate::record::moment::Moment;
use crate::record::recube::{GivenTests, Kind};
use crate::record::source::Pinned;
use crate::record::trace::check_path;

/// Says which file has the tests of which target.
const METADATA: &str = "test_metadata.json";
/// Says of each test function whether it is external.
const CLASSIFICATION: &str = "classification.json";
/// Largest of these, in bytes.
const LARGEST: u64 = 64 << 20;

#[derive(Deserialize)]
struct Metadata {
    instances: Vec<Instance>,
}

#[derive(Deserialize)]
struct Instance {
    file: String,
    test_file: String,
}

#[derive(Deserialize)]
struct Classification {
    files: BTreeMap<String, Classified>,
}

#[derive(Deserialize)]
struct Classified {
    test_classifications: BTreeMap<String, String>,
}

/// Reads what the tests of a repository say of themselves, and makes them the only ones that are collected.
///
/// # Errors
/// A usage error with all problems of the folder: no test file, a kind that is neither, a missing test file; JSON of
/// another form.
pub(crate) fn read(repo: &mut Repo) -> Result<()> {
    let Some(outside) = &mut repo.outside else { return Ok(()) };
    let folder = Folder::named(&outside.folder)?;
    let entries = entries(&folder)?;
    let mut problems = Vec::new();
    let path = |name: &str| format!("{}/{name}", outside.at);
    let names: Vec<&str> = entries.iter().filter_map(|entry| entry.path.to_str()).collect();
    let tests = names.iter().filter(|name| name.ends_with("_test.py"));
    let mut files: BTreeMap<String, Option<String>> = tests.map(|name| (path(name), None)).collect();
    if let Some(metadata) = json::<Metadata>(&folder, METADATA)? {
        for Instance { file, test_file } in metadata.instances {
            if check_path(&test_file).is_ok() && names.contains(&test_file.as_str()) {
                files.insert(path(&test_file), Some(file));
            } else {
                problems.push(format!("{METADATA} names {test_file}, which is not in the folder"));
            }
        }
    }
    if files.is_empty() {
        problems.push("no file of it ends in `_test.py`".to_owned());
    }
    let mut kinds: BTreeMap<String, BTreeMap<String, Kind>> = BTreeMap::new();
    let classified = json::<Classification>(&folder, CLASSIFICATION)?;
    for (target, tests) in classified.into_iter().flat_map(|one| one.files) {
        for (function, kind) in tests.test_classifications {
            match kind.to_lowercase().as_str() {
                "external" => drop(kinds.entry(target.clone()).or_default().insert(function, Kind::External)),
                "internal" => drop(kinds.entry(target.clone()).or_default().insert(function, Kind::Internal)),
                _ => problems.push(format!(
                    "{CLASSIFICATION}: {function} of {target} is neither external nor internal"
                )),
            }
        }
    }
    if !problems.is_empty() {
        let place = outside.folder.display();
        return Err(Error::usage(format!("{}: tests_from {place} cannot be used", repo.slug))
            .with_detail(problems.join("\n")));
    }
    let sha256 = tree::hash_beneath(&folder, &entries)?;
    repo.tests = Some(files.keys().cloned().collect());
    outside.given = GivenTests { sha256, files, kinds };
    Ok(())
}

/// The files of such a folder, but for what Python left there.
fn entries(folder: &Folder) -> Result<Vec<Entry>> {
    let (mut entries, mut bounds) = (Vec::new(), tree::Bounds::TREE);
    for found in folder.walk()?.into_iter().filter(|found| found.kind == FileKind::File) {
        if found.path.extension().is_none_or(|suffix| suffix != "pyc") {
            entries.extend(tree::look(folder, &found.path, &mut bounds)?);
        }
    }
    tree::sort(&mut entries);
    Ok(entries)
}

fn json<T: serde::de::DeserializeOwned>(folder: &Folder, name: &str) -> Result<Option<T>> {
    let Some(bytes) = folder.read_if_there(Path::new(name), LARGEST)? else { return Ok(None) };
    let place = folder.path().join(name);
    let read = serde_json::from_slice(&bytes);
    read.map(Some).map_err(|error| {
        Error::usage(format!("{} has another form than published tests have", place.display()))
            .with_source(error)
    })
}

/// The tree of a pin with these tests in it.
///
/// # Errors
/// A usage error with all that does not fit the tree: paths that it has already, test files of no target.
pub(super) fn add(
    context: &Context<'_>,
    slug: &RepoSlug,
    pinned: Pinned,
    outside: &OutsideTests,
) -> Result<Pinned> {
    let folder = Folder::named(&outside.folder)?;
    let entries: Vec<Entry> = entries(&folder)?;
    let is_said = |entry: &Entry| [METADATA, CLASSIFICATION].iter().any(|name| entry.path == Path::new(name));
    let brought: Vec<Entry> = entries.iter().filter(|entry| !is_said(entry)).cloned().collect();
    let own = tree::entries(&pinned.tree)?;
    check(slug, outside, &own, &brought)?;
    let key = ["tests from outside", &pinned.tree_sha256, &outside.at, &outside.given.sha256];
    let request = Request { origin: pinned.origin.clone(), key: key.map(str::to_owned).into() };
    let made = context.find_or_make(slug, request, |target| {
        tree::copy(&Folder::open(&pinned.tree)?, &own, target)?;
        if tree::hash_beneath(&folder, &entries)? != outside.given.sha256 {
            return Err(Error::repository(format!("{} changed since it was read", outside.folder.display()))
                .with_hint("run the same command again"));
        }
        tree::make_directory(target, Path::new(&outside.at))?;
        tree::copy(&folder, &brought, &target.join(&outside.at))?;
        let mut notes = pinned.notes.clone();
        notes.push(format!("`{}` has tests from outside", outside.at));
        let pinned_at = Moment::parse(&pinned.pinned_at).map_or(0, Moment::seconds);
        Ok(Content { commit: pinned.commit.clone(), pinned_at, notes })
    })?;
    Ok(Pinned { tag: pinned.tag, ..made })
}

fn check(slug: &RepoSlug, outside: &OutsideTests, own: &[Entry], brought: &[Entry]) -> Result<()> {
    let taken: BTreeSet<&Path> = own.iter().map(|entry| entry.path.as_path()).collect();
    let places = brought.iter().map(|entry| PathBuf::from(&outside.at).join(&entry.path));
    let is_taken = |place: &PathBuf| place.ancestors().any(|above| taken.contains(above));
    let mut problems: Vec<String> =
        places.filter(is_taken).map(|place| format!("the tree has {} already", place.display())).collect();
    let paths = own.iter().filter_map(|entry| entry.path.to_str());
    problems.extend(outside.given.targets(paths).err().into_iter().flatten());
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::usage(format!("{slug}: tests_from {} does not fit its tree", outside.folder.display()))
        .with_detail(problems.join("\n"))
        .with_hint(
            "`tests_at` names another folder of the tree; test_metadata.json says which file is tested where",
        ))
}
