//! What a cache holds, what of it nobody needs any more, and its removal.
//!
//! Entries are the files and folders right below [`SHELVES`]. An entry says by its time of change when it was last used
//! ([`mark_used`]). Whoever works with a cache shares its lock, and pruning wants it alone, so nothing is taken away from
//! a build that runs.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::{Cache, DAMAGED, discard};
use crate::error::Result;
use crate::interrupt;
use crate::record::spelling::spelling;

/// Folders of a cache whose entries can be made again one by one. All others are small, and made for this machine.
const SHELVES: [&str; 7] = ["environments", "git", "index", "overlays", "screens", "sources", "wheels"];
/// What a file or folder that is being made begins with.
const UNFINISHED: [&str; 2] = [".making-", ".writing-"];

/// A folder right below the cache in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shelf {
    pub name: String,
    /// Files and folders right in it, locks aside.
    pub entries: usize,
    /// Of all files below it, as the disk counts them.
    pub bytes: u64,
}

spelling! {
    /// Why an entry can go.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Reason {
        /// It was set aside.
        Damaged "damaged",
        /// A process that ended left it half made.
        Unfinished "unfinished",
        /// Nobody used it for as long as was asked for.
        Unused "unused",
    }
}

/// An entry that can go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prunable {
    pub path: PathBuf,
    pub bytes: u64,
    pub reason: Reason,
}

/// Notes that an entry is used now. Where that cannot be noted, it is only made again sooner.
pub(crate) fn mark_used(entry: &Path) {
    let _ = fs_err::File::open(entry).and_then(|file| file.set_modified(SystemTime::now()));
}

impl Cache {
    /// What its folders hold, the largest first.
    ///
    /// # Errors
    /// IO errors with action and path; an interruption.
    pub fn shelves(&self) -> Result<Vec<Shelf>> {
        let mut shelves = Vec::new();
        for entry in fs_err::read_dir(self.root())? {
            let entry = entry?;
            // A link may put a folder on another disk.
            if !entry.path().is_dir() {
                continue;
            }
            let entries = children(&entry.path())?.iter().filter(|path| !is_lock(path)).count();
            let name = entry.file_name().to_string_lossy().into_owned();
            shelves.push(Shelf { name, entries, bytes: size(&entry.path())? });
        }
        shelves.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        Ok(shelves)
    }

    /// Entries that are damaged, unfinished, or were not used for that long. Right only for who has the cache alone.
    ///
    /// # Errors
    /// IO errors with action and path; an interruption.
    pub fn prunable(&self, unused: Duration) -> Result<Vec<Prunable>> {
        let mut found = Vec::new();
        for shelf in SHELVES {
            let folder = self.root().join(shelf);
            if !folder.is_dir() {
                continue;
            }
            for path in children(&folder)? {
                let age = fs_err::symlink_metadata(&path)?.modified()?.elapsed().unwrap_or_default();
                if let Some(reason) = reason(&path, age >= unused) {
                    found.push(Prunable { bytes: size(&path)?, path, reason });
                }
            }
        }
        Ok(found)
    }
}

/// Removes an entry, with the lock beside it.
///
/// # Errors
/// IO errors with action and path.
pub fn remove(entry: &Prunable) -> Result<()> {
    if fs_err::symlink_metadata(&entry.path)?.is_dir() {
        discard(&entry.path)?;
    } else {
        fs_err::remove_file(&entry.path)?;
    }
    if entry.reason != Reason::Unused {
        return Ok(());
    }
    match fs_err::remove_file(entry.path.with_extension("lock")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn reason(path: &Path, is_old: bool) -> Option<Reason> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    if is_lock(path) {
        None
    } else if UNFINISHED.iter().any(|start| name.starts_with(start)) {
        Some(Reason::Unfinished)
    } else if name.contains(&format!(".{DAMAGED}-")) {
        Some(Reason::Damaged)
    } else {
        is_old.then_some(Reason::Unused)
    }
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "lock")
        || path.file_name().is_some_and(|name| name == ".lock")
}

/// What is right in a folder, by name.
fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs_err::read_dir(folder)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort_unstable();
    Ok(paths)
}

/// Bytes on the disk of a file, or of all files below a folder. Links are not followed; what cannot be read (foreign code
/// closes folders) counts nothing.
fn size(path: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in walkdir::WalkDir::new(path).into_iter().flatten() {
        interrupt::check()?;
        let blocks = entry.metadata().map(|data| std::os::unix::fs::MetadataExt::blocks(&data));
        bytes += blocks.unwrap_or_default() * 512;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Lock;

    const DAY: Duration = Duration::from_hours(24);

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        (folder, cache)
    }

    fn make(cache: &Cache, place: &str, age: Duration) -> PathBuf {
        let path = cache.root().join(place);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, vec![1; 5000]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        path
    }

    #[test]
    fn what_is_old_damaged_or_unfinished_goes_and_the_rest_stays() {
        let (_folder, cache) = cache();
        let old = make(&cache, "index/old", 40 * DAY);
        let new = make(&cache, "index/new", DAY);
        let damaged = make(&cache, "sources/x.damaged-1", DAY);
        let unfinished = make(&cache, "sources/.making-x", DAY);
        let tool = make(&cache, "tools/interpreters.json", 99 * DAY);
        let lock = make(&cache, "environments/a.lock", 99 * DAY);
        let used = make(&cache, "index/used", 40 * DAY);
        mark_used(&used);
        let found = cache.prunable(30 * DAY).unwrap();
        let reasons: Vec<(&Path, Reason)> =
            found.iter().map(|one| (one.path.as_path(), one.reason)).collect();
        let expected =
            [(&old, Reason::Unused), (&unfinished, Reason::Unfinished), (&damaged, Reason::Damaged)];
        assert_eq!(reasons, expected.map(|(path, reason)| (path.as_path(), reason)));
        assert!(found.iter().all(|one| one.bytes >= 5000), "{found:?}");
        for one in &found {
            remove(one).unwrap();
        }
        assert!([&old, &damaged, &unfinished].iter().all(|path| !path.exists()));
        assert!([&new, &tool, &lock, &used].iter().all(|path| path.exists()));
    }

    #[test]
    fn a_folder_goes_with_its_lock_and_nothing_that_its_links_lead_to() {
        let (_folder, cache) = cache();
        let mine = make(&cache, "tools/mine", DAY);
        let entry = cache.root().join("environments/a");
        fs_err::create_dir_all(entry.join("venv")).unwrap();
        std::os::unix::fs::symlink(cache.root().join("tools"), entry.join("venv/link")).unwrap();
        let lock = make(&cache, "environments/a.lock", DAY);
        let found = cache.prunable(Duration::ZERO).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        remove(&found[0]).unwrap();
        assert!(!entry.exists() && !lock.exists() && mine.exists());
    }

    #[test]
    fn a_cache_that_is_worked_with_is_nobodys_alone() {
        let (_folder, cache) = cache();
        let root = cache.root().to_owned();
        let same = cache.clone();
        assert!(cache.alone().unwrap().is_none(), "another value of this process works with it");
        let other = Cache::open(&root).unwrap();
        assert!(same.alone().unwrap().is_none(), "another one works with it");
        let alone = other.alone().unwrap().expect("nobody else works with it");
        let file = root.join(super::super::IN_USE);
        assert!(Lock::try_shared(&file).unwrap().is_none(), "who comes now has to wait");
        drop(alone);
        assert!(Lock::try_shared(&file).unwrap().is_some());
    }
}
