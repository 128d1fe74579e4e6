//! Files against the hashes of the manifest.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::beneath::{Folder, Kind};
use crate::error::Result;

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Trouble {
    Changed,
    /// It is not there, or is no plain file.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FileProblem {
    pub(crate) file: String,
    pub(crate) trouble: Trouble,
}

/// Compares what lies in the folder of a dataset with `hashes`; `own` is the manifest's own file. Names that lead out of
/// the folder are missing.
///
/// # Errors
/// IO errors with the path.
pub(crate) fn check(
    directory: &Path,
    hashes: &BTreeMap<String, String>,
    own: &str,
) -> Result<Vec<FileProblem>> {
    let folder = Folder::open(directory)?;
    let mut problems = Vec::new();
    for (file, expected) in hashes {
        let trouble = match sha256(&folder, Path::new(file)) {
            Ok(found) if found == *expected => continue,
            Ok(_) => Trouble::Changed,
            Err(_) => Trouble::Missing,
        };
        problems.push(FileProblem { file: file.clone(), trouble });
    }
    let there = folder.walk()?.into_iter().filter(|entry| entry.kind != Kind::Folder);
    let names = there.map(|entry| entry.path.to_string_lossy().into_owned());
    for file in names.filter(|file| file != own && !hashes.contains_key(file)) {
        problems.push(FileProblem { file, trouble: Trouble::Unlisted });
    }
    problems.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(problems)
}

fn sha256(folder: &Folder, path: &Path) -> Result<String> {
    let mut file = folder.open_file(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
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
        let mut hashes: BTreeMap<String, String> =
            [("a.parquet", "a.parquet"), ("b/lock.txt", "other"), ("gone", ""), ("../a", "")]
                .map(|(name, text)| (name.to_owned(), hash(text)))
                .into();
        let found = check(folder.path(), &hashes, "manifest.json").unwrap();
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
        assert_eq!(check(folder.path(), &hashes, "manifest.json").unwrap(), []);
    }
}
