//! Where sources lie in the cache: made aside, put in place with one rename, recognised by what is written last.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::interrupt;
use crate::record::id::RepoSlug;
use crate::record::source::Pinned;
use crate::store::{self, Cache, Lock, Sealed};

/// A staging directory is unlocked for a moment after it was made; younger ones are left alone.
const YOUNG: Duration = Duration::from_mins(1);

/// What is known of a source, written last.
const RECORD: &str = "pinned.json";

/// `sources/` of a cache.
pub(super) struct SourceCache {
    folder: PathBuf,
}

/// A directory in which a source is made: removed when dropped, and locked so that others can tell it from what a
/// killed process left.
pub(super) struct Staging {
    directory: TempDir,
    _lock: Lock,
}

/// Where a source lies, or will.
pub(super) struct CacheEntry {
    directory: PathBuf,
}

impl SourceCache {
    /// # Errors
    /// When the directory cannot be made.
    pub(super) fn open(cache: &Cache) -> Result<SourceCache> {
        Ok(SourceCache { folder: cache.dir("sources")? })
    }

    /// The entry of a key.
    pub(super) fn entry(&self, key: &str) -> CacheEntry {
        CacheEntry { directory: self.folder.join(key) }
    }

    /// A new directory with an empty tree in it, in the same file system as all entries.
    pub(super) fn stage(&self) -> Result<Staging> {
        self.remove_abandoned()?;
        let failed = |error: std::io::Error| {
            Error::from(error).at(format!("cannot make a directory in {}", self.folder.display()))
        };
        let directory =
            tempfile::Builder::new().prefix(".making-").tempdir_in(&self.folder).map_err(failed)?;
        let lock = Lock::try_folder(directory.path())?
            .ok_or_else(|| Error::internal(format!("{} is locked", directory.path().display())))?;
        fs_err::create_dir(directory.path().join("tree"))?;
        Ok(Staging { directory, _lock: lock })
    }

    fn remove_abandoned(&self) -> Result<()> {
        for entry in fs_err::read_dir(&self.folder)? {
            let entry = entry?;
            let is_staging = entry.file_name().to_string_lossy().starts_with(".making-");
            let age = entry.metadata().ok().and_then(|metadata| metadata.modified().ok()?.elapsed().ok());
            if is_staging
                && age.is_some_and(|age| age > YOUNG)
                && matches!(Lock::try_folder(&entry.path()), Ok(Some(_)))
            {
                // Another process may be removing it too.
                let _ = fs_err::remove_dir_all(entry.path());
            }
        }
        Ok(())
    }
}

impl Staging {
    /// Where the files go.
    pub(super) fn tree(&self) -> PathBuf {
        self.directory.path().join("tree")
    }
}

/// Writes the record of a source that lies in its place anew: something more is known of it.
///
/// # Errors
/// When the cache cannot be written.
pub(super) fn replace(pinned: &Pinned) -> Result<()> {
    store::write_sealed(&pinned.tree.with_file_name(RECORD), pinned)
}

impl CacheEntry {
    fn record(&self) -> PathBuf {
        self.directory.join(RECORD)
    }

    fn tree(&self) -> PathBuf {
        self.directory.join("tree")
    }

    /// The source that lies here, if it is whole: the record unchanged, and every file what it was.
    pub(super) fn find(&self, slug: &RepoSlug) -> Option<Pinned> {
        let Ok(Sealed::Whole(mut pinned)) = store::find_sealed::<Pinned>(&self.record()) else { return None };
        pinned.slug = slug.clone();
        pinned.tree = self.tree();
        super::verify(&pinned).ok()?;
        store::mark_used(&self.directory);
        tracing::info!("{slug}: source {} is reused", self.directory.display());
        Some(pinned)
    }

    /// Puts a finished source here. Whoever comes second keeps what the first one made: both are made from the same
    /// pin. What lies here and is not whole is set aside.
    pub(super) fn put(&self, staging: Staging, mut pinned: Pinned) -> Result<Pinned> {
        pinned.tree = self.tree();
        store::write_sealed(&staging.directory.path().join(RECORD), &pinned)?;
        if self.directory.exists() && self.find(&pinned.slug).is_none() {
            interrupt::check()?;
            store::set_aside(&self.directory)?;
        }
        match fs_err::rename(staging.directory.path(), &self.directory) {
            Ok(()) => {
                let _: PathBuf = staging.directory.keep();
                Ok(pinned)
            }
            Err(error) => self.find(&pinned.slug).ok_or_else(|| error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn age(path: &Path) {
        let hour_ago = std::time::SystemTime::now() - Duration::from_hours(1);
        fs_err::File::open(path).unwrap().into_parts().0.set_modified(hour_ago).unwrap();
    }

    #[test]
    fn only_what_nobody_works_on_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let sources = SourceCache::open(&Cache::open(root.path()).unwrap()).unwrap();
        let (busy, abandoned) = (sources.stage().unwrap(), sources.folder.join(".making-abandoned"));
        fs_err::create_dir_all(abandoned.join("tree")).unwrap();
        fs_err::create_dir(sources.folder.join(".making-young")).unwrap();
        age(busy.directory.path());
        age(&abandoned);
        sources.remove_abandoned().unwrap();
        assert!(busy.tree().is_dir() && sources.folder.join(".making-young").is_dir());
        assert!(!abandoned.exists());
    }
}
