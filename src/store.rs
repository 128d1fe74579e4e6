//! Artifacts in the cache: where they are, how they are written (aside, synced, renamed) and recognised.
//!
//! ```text
//! <cache>/
//!   sources/<key>/{tree/, pinned.json}        a pinned tree, never changed
//!   git/<hash of url>/                        bare fetches, reused between pins
//!   environments/<key>/{venv/, tree/, recipe/, built.json}
//!   screens/<key>/                            attempts and traces, appended as they come
//!   runner/<hash>/                            the embedded Python runner
//!   tools/                                    uv, when none is found on the machine; known interpreters
//!   index/                                    files of package indexes and crates, by their hash
//!   wheels/<key>/                             wheels that were built of source distributions
//!   logs/<UTC time>-<process>.log             what the latest runs did
//!   .in-use                                   a lock that whoever works with the cache shares
//! ```
//!
//! Every artifact of gistmill's own says what it must be: sealed JSON has the hash of its content, a journal one for
//! each line, a tree and an environment one over all their files. What is damaged becomes `<name>.damaged-<n>` and is
//! made again.

mod discard;
pub mod journal;
mod lock;
pub mod memo;
pub mod prune;
mod sealed;
mod trust;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::interrupt;

pub(crate) use discard::discard;
pub use lock::Lock;
pub(crate) use prune::mark_used;
pub use sealed::{
    DAMAGED, Sealed, copy_aside, find_sealed, read_sealed, seal, set_aside, unseal, write_sealed,
    write_sealed_once,
};
pub(crate) use trust::require_own;

/// The file by which programs that make backups know a cache, <https://bford.info/cachedir/>.
const TAG: &str = "CACHEDIR.TAG";
const TAG_TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# This is the cache of gistmill.\n";
/// Folders that a cache may have.
const FOLDERS: [&str; 13] = [
    "clock",
    "environments",
    "git",
    "images",
    "index",
    "locales",
    "logs",
    "overlays",
    "runner",
    "screens",
    "sources",
    "tools",
    "wheels",
];
/// The file of a cache whose lock says that somebody works with it.
const IN_USE: &str = ".in-use";

/// The cache directory of this user. While a value lives, nobody prunes it.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
    in_use: Arc<Lock>,
    /// What of it is used: the root, the file of its lock, the folders that [`Cache::dir`] gave.
    used: Arc<Mutex<BTreeMap<PathBuf, trust::Identity>>>,
}

impl Cache {
    /// Opens (and creates) a cache directory. One that it makes is closed to others: it will hold private code.
    ///
    /// # Errors
    /// When the directory cannot be made, or others may have written to it.
    pub fn open(root: &Path) -> Result<Self> {
        let above = root.parent().unwrap_or(root);
        fs_err::create_dir_all(above)
            .and_then(|()| private_folder(root))
            .map_err(|error| Error::from(error).with_hint("name another folder with --cache-dir"))?;
        let root = fs_err::canonicalize(root)?;
        require_own(&root)?;
        if root.to_str().is_none() {
            // Plans of sandboxes and records of environments are JSON, which has no other texts.
            return Err(Error::usage(format!("the cache {} has a name that is not UTF-8", root.display()))
                .with_hint("name another folder with --cache-dir"));
        }
        if fs_err::read_dir(&root)?.next().is_none() {
            fs_err::write(root.join(TAG), TAG_TEXT)?;
        }
        refuse_another_use(&root)?;
        let in_use = Lock::wait_shared(&root.join(IN_USE), || {
            crate::terminal::note("another gistmill prunes the cache; waiting for it");
        })?;
        let cache = Cache { root, in_use: Arc::new(in_use), used: Arc::default() };
        cache.uses(cache.root.clone())?;
        cache.uses(cache.root.join(IN_USE))?;
        Ok(cache)
    }

    /// Notes that something of the cache is used from now on.
    ///
    /// # Errors
    /// When it is missing, or not the one that was used before.
    pub(crate) fn uses(&self, path: PathBuf) -> Result<()> {
        let found = trust::Identity::of(&path)?;
        let mut used = self.used.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *used.entry(path.clone()).or_insert(found) == found {
            return Ok(());
        }
        Err(trust::removed(&self.root, &path))
    }

    /// The error of something of the cache that is not whole any more.
    pub(crate) fn changed(&self, path: &Path) -> Error {
        trust::removed(&self.root, path)
    }

    /// Whether all of the cache that is used is still there. What ran while it was not says nothing about a repository.
    ///
    /// # Errors
    /// The machine's, when something was removed, also where it was made again.
    pub fn require_present(&self) -> Result<()> {
        let used = self.used.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        trust::require_same(&self.root, used.iter())
    }

    /// Whether gistmill made the folder: one that held something before is not wholly its own.
    pub fn is_own(&self) -> bool {
        fs_err::read_to_string(self.root.join(TAG)).is_ok_and(|text| text == TAG_TEXT)
    }

    /// Gives up sharing the cache, and takes it alone; none when somebody else works with it.
    ///
    /// # Errors
    /// When the lock cannot be made.
    pub fn alone(mut self) -> Result<Option<Self>> {
        let path = self.root.join(IN_USE);
        let Some(shared) = Arc::into_inner(self.in_use) else { return Ok(None) };
        drop(shared);
        let Some(lock) = Lock::try_file(&path)? else { return Ok(None) };
        self.in_use = Arc::new(lock);
        Ok(Some(self))
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A directory below the cache, made when missing: `dir("sources")`. One that a link puts on another disk is given
    /// by its real path, because a sandbox follows no links of the host.
    ///
    /// # Errors
    /// When it cannot be made, others may have written to it, or it was removed since it was used before.
    pub fn dir(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        private_folder(&path)?;
        let path = fs_err::canonicalize(path)?;
        require_own(&path)?;
        self.uses(path.clone())?;
        Ok(path)
    }
}

/// Refuses a folder that holds something else than a cache. Older versions did not mark theirs.
fn refuse_another_use(root: &Path) -> Result<()> {
    // A part of a cache may have been brought from elsewhere; what a new file system has in its root is nobody's.
    let is_known = |name: &OsStr| name == "lost+found" || FOLDERS.iter().any(|folder| name == *folder);
    if [TAG, IN_USE].iter().any(|name| root.join(name).exists())
        || fs_err::read_dir(root)?.flatten().all(|entry| is_known(&entry.file_name()))
    {
        return Ok(());
    }
    Err(Error::usage(format!("{} holds something else than gistmill's cache", root.display()))
        .with_hint("name an empty folder, or one that does not exist, with --cache-dir"))
}

/// Makes a folder that others cannot look into; one that exists stays as it is.
fn private_folder(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| {
        std::io::Error::new(error.kind(), format!("failed to create directory `{}`: {error}", path.display()))
    })
}

/// A new folder for what is needed for a moment.
///
/// # Errors
/// The machine's, with the variable that says where such folders are made.
pub fn scratch() -> Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(no_scratch)
}

/// A new file for what is needed for a moment.
pub fn scratch_file() -> Result<tempfile::NamedTempFile> {
    tempfile::NamedTempFile::new().map_err(no_scratch)
}

fn no_scratch(error: std::io::Error) -> Error {
    let place = std::env::temp_dir();
    Error::machine(format!("cannot write to the temporary directory {}", place.display()))
        .with_source(error)
        .with_hint("name a directory that can be written to in TMPDIR")
}

/// SHA-256 of a file's content in hex, read piece by piece.
///
/// # Errors
/// IO errors with the path.
pub fn sha256_of_file(path: &Path) -> Result<String> {
    let hash = sha256_of(&mut fs_err::File::open(path)?);
    interrupt::check()?;
    Ok(hash?)
}

/// SHA-256 of what is read.
///
/// # Errors
/// IO errors, one of which says that the user asked to stop.
pub fn sha256_of(content: &mut dyn Read) -> std::io::Result<String> {
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        if interrupt::requested() {
            return Err(std::io::Error::other("interrupted"));
        }
        match content.read(&mut buffer)? {
            0 => return Ok(hex::encode(hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// Writes a file aside, syncs it and renames it into place: readers see the old or the new one, never half. Others may read
/// it where the umask and the folder say so.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().ok_or_else(|| Error::internal(format!("{} has no folder", path.display())))?;
    let mut file = tempfile::Builder::new()
        .prefix(".writing-")
        .permissions(PermissionsExt::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|error| Error::from(error).at(format!("cannot write {}", path.display())))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(|error| Error::from(error).at(format!("cannot write {}", path.display())))?;
    file.persist(path)
        .map_err(|error| Error::from(error.error).at(format!("cannot write {}", path.display())))?;
    Ok(())
}

/// Writes a value as pretty JSON, atomically.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::internal(format!("cannot encode {}", path.display())).with_source(error))?;
    bytes.push(b'\n');
    write_atomic(path, &bytes)
}

/// Opens a regular file of gistmill's own in the way that `options` say: no link is followed in its place, and nothing is
/// waited for.
///
/// # Errors
/// IO errors with the path; something else is in its place.
pub(crate) fn open_regular(path: &Path, options: &mut std::fs::OpenOptions) -> std::io::Result<fs_err::File> {
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK | nix::fcntl::OFlag::O_NOCTTY;
    let options = fs_err::OpenOptions::from_options(options.custom_flags(flags.bits()).clone());
    let refused = |what: &str| {
        let why = format!("{} is {what}: move it away", path.display());
        std::io::Error::new(std::io::ErrorKind::InvalidInput, why)
    };
    let file = options.open(path).map_err(|error| {
        if path.is_symlink() { refused("a symbolic link, and none is followed there") } else { error }
    })?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(refused("not a regular file"))
}

/// The content of a regular file of gistmill's own.
///
/// # Errors
/// Those of [`open_regular`].
pub(crate) fn read_regular(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path, std::fs::OpenOptions::new().read(true))?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a value that [`write_json`] wrote; `None` when there is no such file, an error when it is corrupt.
///
/// # Errors
/// IO errors other than "not found", and text that is not the expected JSON.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let bytes = match fs_err::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        Error::machine(format!("{} is not what gistmill wrote", path.display()))
            .with_source(error)
            .with_hint("move it away and build again")
    })
}
