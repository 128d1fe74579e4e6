//! Files against the hashes of the manifest.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::beneath::archive::each;
use crate::beneath::{Folder, Kind};
use crate::dataset::trees;
use crate::error::{Fault, Result};
use crate::record::id::RepoSlug;

/// Largest list of files that is read, in bytes.
const LARGEST_LIST: u64 = 256 << 20;

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Trouble {
    Changed,
    /// It is missing, or is not a plain file.
    Missing,
    /// The manifest does not know it.
    Unlisted,
}

impl Trouble {
    /// In words.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Trouble::Changed => "is not what the manifest says",
            Trouble::Missing => "is missing",
            Trouble::Unlisted => "is not in the manifest",
        }
    }
}

/// A file that is not as the manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FileProblem {
    pub(crate) file: String,
    pub(crate) trouble: Trouble,
}

/// Compares what is in the folder of a dataset with `hashes`; `own` are files that no hash is of: the manifest itself, and what is written later. Names that lead out of
/// the folder are missing.
///
/// # Errors
/// IO errors with the path.
pub(crate) fn check(
    folder: &Folder,
    hashes: &BTreeMap<String, String>,
    own: &[&str],
) -> Result<Vec<FileProblem>> {
    let mut problems = Vec::new();
    for (file, expected) in hashes {
        let trouble = match sha256(folder, Path::new(file)) {
            Ok(found) if found == *expected => continue,
            Ok(_) => Trouble::Changed,
            Err(error) if error.fault() == Fault::Interrupted => return Err(error),
            Err(_) => Trouble::Missing,
        };
        problems.push(FileProblem { file: file.clone(), trouble });
    }
    let there = folder.walk()?.into_iter().filter(|entry| entry.kind != Kind::Folder);
    // What git and clients of hubs keep beside a dataset.
    let is_apart = |name: &str| {
        name.starts_with(".git") || name.starts_with(".cache/") || name.ends_with(".sigstore.json")
    };
    let names = there.map(|entry| entry.path.to_string_lossy().into_owned());
    let names = names.filter(|name| !is_apart(name));
    for file in names.filter(|file| !own.contains(&file.as_str()) && !hashes.contains_key(file)) {
        problems.push(FileProblem { file, trouble: Trouble::Unlisted });
    }
    problems.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(problems)
}

/// What is in the trees and not in their lists, or otherwise, as far as the lists are as the manifest says.
///
/// # Errors
/// The folder cannot be opened, and an interruption.
pub(crate) fn inside_trees(
    folder: &Folder,
    trees: &BTreeMap<RepoSlug, String>,
    problems: &[FileProblem],
) -> Result<Vec<FileProblem>> {
    let differs = |file: &str| problems.iter().any(|problem| problem.file == file);
    let mut found = Vec::new();
    for (slug, archive) in trees {
        let list = trees::list_place(slug);
        if differs(&list) {
            continue;
        }
        // A list that is missing, and an archive that is damaged, are reported already.
        if let (Ok(list), Ok(packed)) =
            (folder.read(Path::new(&list), LARGEST_LIST), folder.open_file(Path::new(archive)))
        {
            found.extend(compared(archive, packed, &list).unwrap_or_default());
            crate::interrupt::check()?;
        }
    }
    Ok(found)
}

/// An archive against the list of its files.
fn compared(archive: &str, packed: impl Read, list: &[u8]) -> Result<Vec<FileProblem>> {
    let mut missing: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for line in list.split_inclusive(|byte| *byte == b'\n') {
        missing.insert(trees::name_in(line).to_owned(), line.to_owned());
    }
    let mut problems = Vec::new();
    let mut note = |name: &[u8], trouble| {
        problems.push(FileProblem { file: format!("{archive}: {}", String::from_utf8_lossy(name)), trouble });
    };
    each(packed, archive, |member, content| {
        if *member.kind == Kind::File {
            let line = trees::line(member.path, &hash(content)?);
            let name = trees::name_in(&line);
            match missing.remove(name) {
                Some(listed) if listed == line => {}
                Some(_) => note(name, Trouble::Changed),
                None => note(name, Trouble::Unlisted),
            }
        }
        Ok(())
    })?;
    for name in missing.keys() {
        note(name, Trouble::Missing);
    }
    Ok(problems)
}

fn sha256(folder: &Folder, path: &Path) -> Result<String> {
    hash(&mut folder.open_file(path)?)
}

fn hash(file: &mut (impl Read + ?Sized)) -> Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        crate::interrupt::check()?;
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hex::encode(hasher.finalize()));
        }
        hasher.update(&buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::id::sha256_hex;

    #[test]
    fn each_file_that_is_not_as_the_manifest_says_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        for name in ["manifest.json", "a.parquet", "b/lock.txt", "new.txt"] {
            write(name, name);
        }
        let hash = |text: &str| sha256_hex(text.as_bytes());
        let opened = Folder::open(folder.path()).unwrap();
        let mut hashes: BTreeMap<String, String> =
            [("a.parquet", "a.parquet"), ("b/lock.txt", "other"), ("gone", ""), ("../a", "")]
                .map(|(name, text)| (name.to_owned(), hash(text)))
                .into();
        let found = check(&opened, &hashes, &["manifest.json"]).unwrap();
        let told: Vec<(&str, Trouble)> = found.iter().map(|one| (one.file.as_str(), one.trouble)).collect();
        assert_eq!(
            told,
            [
                ("../a", Trouble::Missing),
                ("b/lock.txt", Trouble::Changed),
                ("gone", Trouble::Missing),
                ("new.txt", Trouble::Unlisted)
            ]
        );
        hashes.retain(|name, _| name == "a.parquet");
        for name in ["b/lock.txt", "new.txt"] {
            hashes.insert(name.to_owned(), hash(name));
        }
        assert_eq!(check(&opened, &hashes, &["manifest.json"]).unwrap(), []);
    }

    #[test]
    fn a_list_that_names_what_its_tree_does_not_have_is_found() {
        let scratch = tempfile::tempdir().unwrap();
        let slug = RepoSlug::new("a/b").unwrap();
        let (archive, list) =
            (scratch.path().join(trees::place(&slug)), scratch.path().join(trees::list_place(&slug)));
        fs_err::create_dir_all(archive.parent().unwrap()).unwrap();
        let empty = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
        fs_err::write(&archive, empty.into_inner().unwrap().finish().unwrap()).unwrap();
        let trees = BTreeMap::from([(slug.clone(), trees::place(&slug))]);
        let folder = Folder::open(scratch.path()).unwrap();
        for (text, found) in [(Vec::new(), 0), (trees::line(Path::new("../evil"), &sha256_hex(b"")), 1)] {
            fs_err::write(&list, text).unwrap();
            assert_eq!(inside_trees(&folder, &trees, &[]).unwrap().len(), found);
        }
    }

    #[test]
    fn what_was_changed_inside_of_an_archive_is_named() {
        let mut packed = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
        for (name, text) in [("a.py", "1"), ("src/b.py", "changed"), ("new.py", "")] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            packed.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        let packed = packed.into_inner().unwrap().finish().unwrap();
        let list: Vec<u8> = [("a.py", "1"), ("gone.py", "2"), ("src/b.py", "2")]
            .iter()
            .flat_map(|(name, text)| trees::line(Path::new(name), &sha256_hex(text.as_bytes())))
            .collect();
        let found = compared("t.tar.zst", &packed[..], &list).unwrap();
        let told: Vec<(&str, Trouble)> = found.iter().map(|one| (one.file.as_str(), one.trouble)).collect();
        assert_eq!(
            told,
            [
                ("t.tar.zst: src/b.py", Trouble::Changed),
                ("t.tar.zst: new.py", Trouble::Unlisted),
                ("t.tar.zst: gone.py", Trouble::Missing)
            ]
        );
    }
}
