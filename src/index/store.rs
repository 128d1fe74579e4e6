//! Downloaded files, each by who may have it and the hash of its content: `<folder>/<shelf>-<sha256>`.
//!
//! What came from an index is given to whoever asks that index, and to nobody else: a hash is no permission.
//! Files are written aside and renamed, so runs may share the folder. What lies there from an earlier run is hashed
//! before its first use; one that is not what its name says is downloaded again.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::file::Hash;
use super::settings::Source;
use crate::error::Result;
use crate::interrupt;
use crate::store::mark_used;

const PART: &str = ".part-";
/// A file that was being written this long ago is not being written any more.
const ABANDONED: Duration = Duration::from_hours(24);

/// Whose files they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Shelf(String);

impl Shelf {
    /// Of an index, as this user sees it.
    pub(super) fn of(source: &Source) -> Shelf {
        let user = source.login.as_ref().map(|login| login.user.as_str()).unwrap_or_default();
        Shelf(super::sha256(format!("{}\n{user}", source.url).as_bytes())[..16].to_owned())
    }

    /// Of addresses that repositories name.
    pub(super) fn open() -> Shelf {
        Shelf("open".to_owned())
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }
}

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
    /// Names of files that this run wrote or looked at.
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
    pub(super) fn find(&self, shelf: &Shelf, hash: &Hash) -> Option<Stored> {
        let Hash::Sha256(sha256) = hash else { return None };
        let name = format!("{}-{sha256}", shelf.0);
        let path = self.folder.join(&name);
        if !self.is_known(&name) {
            fs_err::symlink_metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
            if digest_of(&path).ok()? != *sha256 {
                let _ = fs_err::remove_file(&path);
                return None;
            }
            self.remember(&name);
            mark_used(&path);
        }
        Some(Stored { path, sha256: sha256.clone() })
    }

    /// Saves what comes: not more than `limit` bytes, and what one of the hashes says, if there are any (of one algorithm).
    pub(super) fn add(
        &self,
        shelf: &Shelf,
        body: &mut dyn Read,
        hashes: &[Hash],
        limit: u64,
    ) -> Result<Stored, Unfit> {
        let failed = |error: io::Error| Unfit::Wrong(format!("it cannot be saved: {error}"));
        let mut part = tempfile::Builder::new().prefix(PART).tempfile_in(&self.folder).map_err(failed)?;
        let (mut digests, mut buffer, mut length) = (Digests::of(hashes), vec![0; 128 << 10], 0);
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
        let sha256 = digests.finish(hashes)?;
        let name = format!("{}-{sha256}", shelf.0);
        let path = self.folder.join(&name);
        part.persist(&path).map_err(|error| failed(error.error))?;
        self.remember(&name);
        Ok(Stored { path, sha256 })
    }

    fn is_known(&self, name: &str) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    fn remember(&self, name: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }
}

fn digest_of(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut file = fs_err::File::open(path)?;
    let mut buffer = vec![0; 128 << 10];
    loop {
        if interrupt::requested() {
            return Err(io::Error::other("interrupted"));
        }
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// The hash that names the file, and another one that is given in its place.
struct Digests {
    sha256: Sha256,
    other: Option<Other>,
}

enum Other {
    Sha224(Sha224),
    Sha384(Sha384),
    Sha512(Sha512),
    Sha1(Sha1),
    Md5(Md5),
}

impl Other {
    fn update(&mut self, bytes: &[u8]) {
        match self {
            Other::Sha224(hasher) => hasher.update(bytes),
            Other::Sha384(hasher) => hasher.update(bytes),
            Other::Sha512(hasher) => hasher.update(bytes),
            Other::Sha1(hasher) => hasher.update(bytes),
            Other::Md5(hasher) => hasher.update(bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            Other::Sha224(hasher) => hex::encode(hasher.finalize()),
            Other::Sha384(hasher) => hex::encode(hasher.finalize()),
            Other::Sha512(hasher) => hex::encode(hasher.finalize()),
            Other::Sha1(hasher) => hex::encode(hasher.finalize()),
            Other::Md5(hasher) => hex::encode(hasher.finalize()),
        }
    }
}

impl Digests {
    fn of(hashes: &[Hash]) -> Digests {
        let other = match hashes.first() {
            Some(Hash::Sha256(_)) | None => None,
            Some(Hash::Sha224(_)) => Some(Other::Sha224(Sha224::new())),
            Some(Hash::Sha384(_)) => Some(Other::Sha384(Sha384::new())),
            Some(Hash::Sha512(_)) => Some(Other::Sha512(Sha512::new())),
            Some(Hash::Sha1(_)) => Some(Other::Sha1(Sha1::new())),
            Some(Hash::Md5(_)) => Some(Other::Md5(Md5::new())),
        };
        Digests { sha256: Sha256::new(), other }
    }

    fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(other) = &mut self.other {
            other.update(bytes);
        }
    }

    /// SHA-256 of the file, when it is one that was wanted.
    fn finish(self, hashes: &[Hash]) -> Result<String, Unfit> {
        let sha256 = hex::encode(self.sha256.finalize());
        let found = self.other.map_or_else(|| sha256.clone(), Other::finish);
        if hashes.is_empty() || hashes.iter().any(|hash| hash.digits() == found) {
            return Ok(sha256);
        }
        let wanted: Vec<&str> = hashes.iter().map(Hash::digits).collect();
        Err(Unfit::Wrong(format!("its hash is {found}, but it must be {}", wanted.join(" or "))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Login;
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
        let open = Shelf::open();
        assert_eq!(store.find(&open, &hash), None);
        let stored = store.add(&open, &mut &*CONTENT, std::slice::from_ref(&hash), 100).expect("a file");
        assert_eq!(store.find(&open, &hash), Some(stored.clone()));
        assert_eq!(fs_err::read(&stored.path).expect("its content"), CONTENT);
        for other in [
            Hash::Sha512(hex::encode(Sha512::digest(CONTENT))),
            Hash::Sha384(hex::encode(Sha384::digest(CONTENT))),
            Hash::Sha224(hex::encode(Sha224::digest(CONTENT))),
            Hash::Sha1(hex::encode(Sha1::digest(CONTENT))),
            Hash::Md5(hex::encode(Md5::digest(CONTENT))),
        ] {
            assert_eq!(
                store.add(&open, &mut &*CONTENT, &[other], 100).expect("the same file").sha256,
                sha256
            );
        }
        let several = [Hash::Sha256("0".repeat(64)), hash];
        assert!(store.add(&open, &mut &*CONTENT, &several, 100).is_ok(), "one of them is enough");
    }

    #[test]
    fn a_file_is_given_to_whoever_asks_its_own_index() {
        let (_folder, store) = store();
        let source = |url: &str, user: Option<&str>| Source {
            name: None,
            variable: "UV_DEFAULT_INDEX",
            url: url.parse().expect("an address"),
            login: user.map(|user| Login { user: user.to_owned(), password: "pw".to_owned() }),
            is_default: false,
        };
        let private = Shelf::of(&source("https://corp.example/simple", Some("me")));
        let hash = Hash::Sha256(super::super::sha256(CONTENT));
        store.add(&private, &mut &*CONTENT, &[], 100).expect("a file");
        assert!(store.find(&private, &hash).is_some());
        for other in [
            Shelf::open(),
            Shelf::of(&source("https://corp.example/simple", None)),
            Shelf::of(&source("https://corp.example/simple", Some("other"))),
            Shelf::of(&source("https://corp.example/other", Some("me"))),
            Shelf::of(&source("https://pypi.example/simple", None)),
        ] {
            assert_eq!(store.find(&other, &hash), None, "{other:?}");
        }
        // Nor to what another run finds.
        let later = Store::open(store.folder.clone()).expect("a store");
        assert_eq!(later.find(&Shelf::open(), &hash), None);
    }

    #[test]
    fn other_content_and_too_much_of_it_leave_nothing_behind() {
        let (_folder, store) = store();
        let open = Shelf::open();
        for hash in [
            Hash::Sha256("0".repeat(64)),
            Hash::Sha384("0".repeat(96)),
            Hash::Sha512("0".repeat(128)),
            Hash::Sha224("0".repeat(56)),
            Hash::Sha1("0".repeat(40)),
            Hash::Md5("0".repeat(32)),
        ] {
            let found = reason(store.add(&open, &mut &*CONTENT, &[hash], 100));
            assert!(found.contains("but it must be 000"), "{found}");
        }
        assert!(reason(store.add(&open, &mut io::repeat(0), &[], 1 << 20)).contains("more than 1 MiB"));
        assert_eq!(fs_err::read_dir(&store.folder).expect("the folder").count(), 0);
    }

    #[test]
    fn what_another_run_damaged_is_not_found() {
        let (_folder, store) = store();
        let open = Shelf::open();
        let stored = store.add(&open, &mut &*CONTENT, &[], 100).expect("a file");
        fs_err::write(&stored.path, "something else").expect("written");
        let later = Store::open(store.folder.clone()).expect("a store");
        assert_eq!(later.find(&open, &Hash::Sha256(stored.sha256)), None);
        assert!(!stored.path.exists());
    }
}
