//! Downloaded files, each by the hash of its content: `<folder>/<sha256>`.
//!
//! Files are written aside and renamed, so runs may share the folder. What lies there from an earlier run is hashed
//! before its first use; one that is not what its name says is downloaded again.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256, Sha384, Sha512};

use super::file::Hash;
use crate::error::Result;
use crate::interrupt;
use crate::store::mark_used;

const PART: &str = ".part-";
/// A file that was being written this long ago is not being written any more.
const ABANDONED: Duration = Duration::from_hours(24);

/// A file of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub path: PathBuf,
    pub sha256: String,
}

/// Why a file does not come into the store.
#[derive(Debug)]
pub(super) enum Unfit {
    /// It broke off on the way.
    Torn(io::Error),
    /// It is not what it must be, or cannot be written; in words.
    Wrong(String),
}

#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    /// Hashes of files that this run wrote or looked at.
    known: Mutex<HashSet<String>>,
}

impl Store {
    pub(super) fn open(folder: PathBuf) -> Result<Store> {
        fs_err::create_dir_all(&folder)?;
        for entry in fs_err::read_dir(&folder)? {
            let entry = entry?;
            let is_part = entry.file_name().to_string_lossy().starts_with(PART);
            let age = entry.metadata().ok().and_then(|data| data.modified().ok()?.elapsed().ok());
            if is_part && age.is_some_and(|age| age > ABANDONED) {
                // Another run may have removed it.
                let _ = fs_err::remove_file(entry.path());
            }
        }
        Ok(Store { folder, known: Mutex::default() })
    }

    /// A file that is there already.
    pub(super) fn find(&self, hash: &Hash) -> Option<Stored> {
        let Hash::Sha256(sha256) = hash else { return None };
        let path = self.folder.join(sha256);
        if !self.is_known(sha256) {
            fs_err::symlink_metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
            if digest_of(&path).ok()? != *sha256 {
                let _ = fs_err::remove_file(&path);
                return None;
            }
            self.remember(sha256);
            mark_used(&path);
        }
        Some(Stored { path, sha256: sha256.clone() })
    }

    /// Saves what comes: not more than `limit` bytes, and what the hash says.
    pub(super) fn add(&self, body: &mut dyn Read, hash: Option<&Hash>, limit: u64) -> Result<Stored, Unfit> {
        let failed = |error: io::Error| Unfit::Wrong(format!("it cannot be saved: {error}"));
        let mut part = tempfile::Builder::new().prefix(PART).tempfile_in(&self.folder).map_err(failed)?;
        let (mut digests, mut buffer, mut length) = (Digests::of(hash), vec![0; 128 << 10], 0);
        loop {
            if interrupt::requested() {
                return Err(Unfit::Wrong("interrupted".to_owned()));
            }
            let read = body.read(&mut buffer).map_err(Unfit::Torn)?;
            if read == 0 {
                break;
            }
            length += read as u64;
            if length > limit {
                return Err(Unfit::Wrong(format!("it has more than {} MiB", limit >> 20)));
            }
            digests.update(&buffer[..read]);
            part.write_all(&buffer[..read]).map_err(failed)?;
        }
        let sha256 = digests.finish(hash)?;
        let path = self.folder.join(&sha256);
        part.persist(&path).map_err(|error| failed(error.error))?;
        self.remember(&sha256);
        Ok(Stored { path, sha256 })
    }

    fn is_known(&self, sha256: &str) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(sha256)
    }

    fn remember(&self, sha256: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(sha256.to_owned());
    }
}

fn digest_of(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut file = fs_err::File::open(path)?;
    let mut buffer = vec![0; 128 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// The hash that names the file, and another one that the index gives in its place.
struct Digests {
    sha256: Sha256,
    sha384: Option<Sha384>,
    sha512: Option<Sha512>,
}

impl Digests {
    fn of(hash: Option<&Hash>) -> Digests {
        let sha384 = matches!(hash, Some(Hash::Sha384(_))).then(Sha384::new);
        let sha512 = matches!(hash, Some(Hash::Sha512(_))).then(Sha512::new);
        Digests { sha256: Sha256::new(), sha384, sha512 }
    }

    fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(sha384) = &mut self.sha384 {
            sha384.update(bytes);
        }
        if let Some(sha512) = &mut self.sha512 {
            sha512.update(bytes);
        }
    }

    /// SHA-256 of the file, when it is the one that was wanted.
    fn finish(self, hash: Option<&Hash>) -> Result<String, Unfit> {
        let sha256 = hex::encode(self.sha256.finalize());
        let found = match hash {
            Some(Hash::Sha384(_)) => self.sha384.map(|hasher| hex::encode(hasher.finalize())),
            Some(Hash::Sha512(_)) => self.sha512.map(|hasher| hex::encode(hasher.finalize())),
            Some(Hash::Sha256(_)) | None => Some(sha256.clone()),
        };
        match hash {
            Some(Hash::Sha256(wanted) | Hash::Sha384(wanted) | Hash::Sha512(wanted))
                if found.as_deref() != Some(wanted) =>
            {
                let found = found.unwrap_or_default();
                Err(Unfit::Wrong(format!("its hash is {found}, but it must be {wanted}")))
            }
            _ => Ok(sha256),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: &[u8] = b"a wheel";

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path().join("files")).expect("a store");
        (folder, store)
    }

    fn reason(unfit: Result<Stored, Unfit>) -> String {
        match unfit {
            Err(Unfit::Wrong(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_lie_at_their_hash() {
        let (_folder, store) = store();
        let sha256 = super::super::sha256(CONTENT);
        let hash = Hash::Sha256(sha256.clone());
        assert_eq!(store.find(&hash), None);
        let stored = store.add(&mut &*CONTENT, Some(&hash), 100).expect("a file");
        assert_eq!(store.find(&hash), Some(stored.clone()));
        assert_eq!(fs_err::read(&stored.path).expect("its content"), CONTENT);
        let sha512 = Hash::Sha512(hex::encode(Sha512::digest(CONTENT)));
        assert_eq!(store.add(&mut &*CONTENT, Some(&sha512), 100).expect("the same file").sha256, sha256);
    }

    #[test]
    fn other_content_and_too_much_of_it_leave_nothing_behind() {
        let (_folder, store) = store();
        for hash in
            [Hash::Sha256("0".repeat(64)), Hash::Sha384("0".repeat(96)), Hash::Sha512("0".repeat(128))]
        {
            let found = reason(store.add(&mut &*CONTENT, Some(&hash), 100));
            assert!(found.contains("but it must be 000"), "{found}");
        }
        assert!(reason(store.add(&mut io::repeat(0), None, 1 << 20)).contains("more than 1 MiB"));
        assert_eq!(fs_err::read_dir(&store.folder).expect("the folder").count(), 0);
    }

    #[test]
    fn what_another_run_damaged_is_not_found() {
        let (_folder, store) = store();
        let stored = store.add(&mut &*CONTENT, None, 100).expect("a file");
        fs_err::write(&stored.path, "something else").expect("written");
        let later = Store::open(store.folder.clone()).expect("a store");
        assert_eq!(later.find(&Hash::Sha256(stored.sha256)), None);
        assert!(!stored.path.exists());
    }
}
