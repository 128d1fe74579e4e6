//! A dataset as a folder for a hub: its files, and what hubs, catalogues and auditors read beside them. Nothing is uploaded.

mod croissant;
mod provenance;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::dataset::manifest::FILE as MANIFEST;
use crate::dataset::{Dataset, images};
use crate::error::{Error, Result};
use crate::record::id::sha256_hex;

/// What is written beside the files of the dataset.
pub(crate) const WRITTEN: [&str; 3] = ["croissant.json", "eval.yaml", "provenance.json"];
/// Largest file that is copied, in bytes, and largest manifest.
const LARGEST: u64 = 64 << 30;
const LARGEST_MANIFEST: u64 = 64 << 20;

/// What is said of a dataset, and is not in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// Who made it.
    pub(crate) authors: Vec<String>,
    /// Where it will be.
    pub(crate) url: String,
    /// `2026-11-27`
    pub(crate) date: String,
    /// Whether the texts that judge submissions go along.
    pub(crate) with_hidden: bool,
}

/// Writes a dataset and what goes with it into a folder that is empty but for git's files; gives the number of files.
///
/// # Errors
/// Usage errors: the folder holds something else; the dataset is not what its manifest says. IO errors with the path.
pub(crate) fn write(dataset: &Dataset, to: &Path, about: &About) -> Result<usize> {
    check_empty(to)?;
    let from = dataset.folder()?;
    let mut hashes = dataset.manifest.files.clone();
    if about.with_hidden {
        hashes.extend(dataset.hashes()?);
    }
    for (name, hash) in &hashes {
        crate::interrupt::check()?;
        check_name(name)?;
        let content = from.open_file(Path::new(name))?;
        copy(content, &to.join(name), hash).map_err(|error| error.at(name))?;
    }
    let manifest = from.read(Path::new(MANIFEST), LARGEST_MANIFEST)?;
    hashes.insert(MANIFEST.to_owned(), sha256_hex(&manifest));
    let mut texts = BTreeMap::from([(MANIFEST.to_owned(), manifest)]);
    if let Some(images) = from.read_if_there(Path::new(images::FILE), LARGEST_MANIFEST)? {
        // Read once, so that what is damaged is not handed on.
        dataset.images()?;
        hashes.insert(images::FILE.to_owned(), sha256_hex(&images));
        texts.insert(images::FILE.to_owned(), images);
    }
    let [croissant, eval, provenance] = WRITTEN;
    texts.insert(croissant.to_owned(), pretty(&croissant::describe(dataset, about)?)?);
    texts.insert(eval.to_owned(), eval_yaml(dataset).into_bytes());
    let described = [croissant, eval].map(|name| (name.to_owned(), sha256_hex(&texts[name])));
    hashes.extend(described);
    texts.insert(provenance.to_owned(), pretty(&provenance::statement(dataset, &hashes))?);
    for (name, text) in &texts {
        fs_err::write(to.join(name), text)?;
    }
    Ok(hashes.len() + 1)
}

fn pretty(value: &Value) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::internal("cannot encode a description").with_source(error))?;
    text.push(b'\n');
    Ok(text)
}

fn check_empty(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(fs_err::create_dir_all(folder)?);
    }
    for entry in fs_err::read_dir(folder)? {
        let name = entry?.file_name();
        if !name.to_string_lossy().starts_with(".git") {
            return Err(Error::usage(format!(
                "{} has {} in it, and is to be a folder for this version alone",
                folder.display(),
                crate::redact::quote(&name.to_string_lossy())
            ))
            .with_hint("name a folder that is empty or does not exist; in a clone, `git rm -r .` makes room for a new version"));
        }
    }
    Ok(())
}

/// A dataset has no file that git reads as its settings, and none of those that are written beside it.
fn check_name(name: &str) -> Result<()> {
    if name.split('/').any(|part| part.starts_with('.')) || WRITTEN.contains(&name) {
        return Err(Error::usage(format!(
            "the manifest names {}, which is not a file of a dataset",
            crate::redact::quote(name)
        ))
        .with_hint("get the dataset anew from who made it"));
    }
    Ok(())
}

/// Copies a file that has to have this hash.
fn copy(content: impl Read, to: &Path, hash: &str) -> Result<()> {
    fs_err::create_dir_all(to.parent().unwrap_or(to))?;
    let mut file = std::io::BufWriter::new(fs_err::File::create(to)?);
    let (mut content, mut hasher) = (content.take(LARGEST), Sha256::new());
    let mut part = vec![0; 1 << 20];
    loop {
        let length = content.read(&mut part)?;
        if length == 0 {
            break;
        }
        hasher.update(&part[..length]);
        file.write_all(&part[..length])?;
    }
    file.flush()?;
    if hex::encode(hasher.finalize()) == hash {
        return Ok(());
    }
    Err(Error::usage("the file is not what the manifest of the dataset says").with_hint(
        "`gistmill verify DATASET` names all that differ; get the dataset anew, or build it again",
    ))
}

/// What makes a hub take it for a benchmark.
fn eval_yaml(dataset: &Dataset) -> String {
    let manifest = &dataset.manifest;
    let quoted = |text: String| json!(text).to_string();
    format!(
        "name: {}\ndescription: {}\nevaluation_framework: harbor\ntasks:\n- id: {}\n  config: instances\n  split: test\n",
        quoted(format!("{} {}", manifest.name, manifest.version)),
        quoted(summary(dataset)),
        manifest.name,
    )
}

/// What it is, in a sentence.
fn summary(dataset: &Dataset) -> String {
    let manifest = &dataset.manifest;
    format!(
        "{} instances from {} Python repositories at pinned commits, each proved deterministic by running",
        manifest.counts.total.published,
        manifest.sources.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::made_up::MadeUp;

    fn published(test: impl FnOnce(&Dataset, &Path)) {
        let (folder, made_up) = (tempfile::tempdir().unwrap(), MadeUp::new(&[12, 5]));
        crate::testing::write(&folder.path().join("d"), &made_up.input()).unwrap();
        let dataset = Dataset::open(&folder.path().join("d")).unwrap();
        test(&dataset, &folder.path().join("out"));
    }

    fn about() -> About {
        let (authors, url) = (vec!["Ann".to_owned()], "https://hub.example/me/x".to_owned());
        About { authors, url, date: "2026-11-27".to_owned(), with_hidden: false }
    }

    fn json(out: &Path, name: &str) -> Value {
        serde_json::from_slice(&fs_err::read(out.join(name)).unwrap()).unwrap()
    }

    #[test]
    fn a_published_dataset_is_a_dataset_without_what_is_hidden() {
        published(|dataset, out| {
            let files = write(dataset, out, &about()).unwrap();
            let copy = Dataset::open(out).unwrap();
            assert_eq!(copy.instances().unwrap(), dataset.instances().unwrap());
            assert!(files > WRITTEN.len() && !out.join("hidden").exists());
            for (name, hash) in copy.hashes().unwrap() {
                assert_eq!(sha256_hex(&fs_err::read(out.join(&name)).unwrap()), hash, "{name}");
            }
            let error = write(dataset, out, &about()).unwrap_err();
            assert!(error.hint().is_some_and(|hint| hint.contains("git rm")), "{error}");
        });
    }

    #[test]
    fn every_file_is_in_the_statement_with_its_hash() {
        published(|dataset, out| {
            write(dataset, out, &about()).unwrap();
            let statement = json(out, "provenance.json");
            assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
            let subjects = statement["subject"].as_array().unwrap();
            assert_eq!(
                subjects.len(),
                dataset.manifest.files.len() + 3,
                "manifest, croissant.json, eval.yaml"
            );
            for subject in subjects {
                let bytes = fs_err::read(out.join(subject["name"].as_str().unwrap())).unwrap();
                assert_eq!(subject["digest"]["sha256"], sha256_hex(&bytes));
            }
            let sources =
                statement["predicate"]["buildDefinition"]["resolvedDependencies"].as_array().unwrap();
            assert!(sources.len() >= dataset.manifest.sources.len(), "{sources:?}");
        });
    }

    #[test]
    fn each_column_of_each_table_is_a_field_of_the_description() {
        published(|dataset, out| {
            write(dataset, out, &about()).unwrap();
            let described = json(out, "croissant.json");
            let sets = described["recordSet"].as_array().unwrap();
            assert_eq!(sets.len(), 5);
            for set in sets {
                let table = dataset.table_but(set["name"].as_str().unwrap(), &[]).unwrap();
                let fields = set["field"].as_array().unwrap();
                assert_eq!(fields.len(), table.kinds().len(), "{}", set["name"]);
                assert!(
                    fields
                        .iter()
                        .all(|field| field["description"].as_str().is_some_and(|text| !text.is_empty()))
                );
            }
            assert_eq!(described["conformsTo"][0], "http://mlcommons.org/croissant/1.1");
            assert!(described["rai:dataLimitations"].is_array() && described["version"].is_string());
        });
    }

    #[test]
    fn nothing_is_written_where_git_reads_its_settings() {
        for name in
            [".git/config", ".gitattributes", "trees/.git/config", "croissant.json", "provenance.json"]
        {
            assert!(check_name(name).is_err(), "{name}");
        }
        for name in ["instances.parquet", "trees/a__b.tar.zst", "hidden/a.json"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_file_that_was_changed_is_not_handed_on() {
        published(|dataset, out| {
            fs_err::write(dataset.directory.join("report.html"), "x").unwrap();
            let error = write(dataset, out, &about()).unwrap_err();
            assert!(error.to_string().contains("report.html"), "{error}");
        });
    }
}
