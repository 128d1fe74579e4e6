//! A tree with a patch laid over it: the one way to run something else than the pinned files.
//!
//! ```text
//! <cache>/overlays/<key of tree and patch>/
//!   tree/     the files of the tree, those of the patch in their places
//!   contents  sealed, written last: the hash of every file; an overlay that is not as it says is made again
//! ```

use std::collections::BTreeMap;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::lab::Lab;
use crate::beneath::{Folder, Kind};
use crate::error::{Error, Result};
use crate::record::environment::Built;
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::patch::Patch;
use crate::runner::Setting;
use crate::store::{self, Cache, Lock, Sealed};

/// Raised when the same tree and patch may become something else.
const VERSION: &str = "overlay-2";
/// Largest file that is taken over, in bytes.
const LARGEST: u64 = 1 << 30;

/// Whether an overlay has the tree's one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    Kept,
    Hidden,
}

impl Lab {
    /// The lab whose tree has a patch laid over it; the environment is the same. Made in the cache, once for each tree and
    /// patch.
    ///
    /// # Errors
    /// A tree that cannot be read, a patch that puts a file where the tree has a folder, and IO errors.
    pub fn with(&self, cache: &Cache, patch: &Patch, history: History) -> Result<Lab> {
        let key = hash_parts(&[VERSION, &self.built.key, &patch.sha256(), &format!("{history:?}")]);
        let tree = made(cache, &key, (&self.built.tree, patch, history))?;
        Ok(Lab {
            built: Built { key, tree: tree.clone(), ..self.built.clone() },
            setting: Setting { tree, ..self.setting.clone() },
            ..self.clone()
        })
    }

    /// Keeps an overlay from being removed while the lock lives; none where it is gone already.
    ///
    /// # Errors
    /// IO errors.
    pub(crate) fn held(&self) -> Result<Option<Lock>> {
        let lock = Lock::wait_shared(&beside(&self.built.tree, "users.lock"), || {})?;
        Ok(self.built.tree.is_dir().then_some(lock))
    }

    /// Removes an overlay that nobody holds.
    ///
    /// # Errors
    /// IO errors.
    pub(crate) fn removed(&self) -> Result<()> {
        let tree = &self.built.tree;
        let _making = Lock::wait(&beside(tree, "lock"), || {})?;
        let alone = Lock::try_file(&beside(tree, "users.lock"))?;
        match (alone, tree.parent().filter(|folder| folder.is_dir())) {
            (Some(_alone), Some(folder)) => store::discard(folder),
            _ => Ok(()),
        }
    }
}

/// A file beside the folder of an overlay, by its tree.
fn beside(tree: &Path, extension: &str) -> PathBuf {
    tree.parent().unwrap_or(tree).with_extension(extension)
}

/// Gives the overlay of this key, made if it is missing or not as it was made.
fn made(cache: &Cache, key: &str, (tree, patch, history): (&Path, &Patch, History)) -> Result<PathBuf> {
    let shelf = cache.dir("overlays")?;
    let folder = shelf.join(&key[..32]);
    let (made, contents) = (folder.join("tree"), folder.join("contents"));
    let _lock = Lock::wait(&beside(&made, "lock"), || {})?;
    match store::find_sealed::<String>(&contents)? {
        Sealed::Whole(recorded) if hash(&made).is_ok_and(|found| found == recorded) => {
            store::mark_used(&folder);
            return Ok(made);
        }
        // Begun and never finished.
        Sealed::Missing if folder.symlink_metadata().is_ok() => store::discard(&folder)?,
        Sealed::Missing => {}
        Sealed::Whole(_) | Sealed::Damaged => drop(store::set_aside(&folder)?),
    }
    fs_err::create_dir_all(&made)?;
    lay(&Folder::open(tree)?, patch, history, &made)?;
    store::write_sealed(&contents, &hash(&made)?)?;
    Ok(made)
}

/// Copies what the patch leaves, and puts what it has.
fn lay(tree: &Folder, patch: &Patch, history: History, to: &Path) -> Result<()> {
    let patched: BTreeMap<&str, Option<&[u8]>> = patch.files().collect();
    let folder_of = |path: &Path| path.parent().map_or(to.to_owned(), |parent| to.join(parent));
    for entry in tree.walk()? {
        let is_patched = entry.path.to_str().is_some_and(|path| patched.contains_key(path));
        let is_hidden = history == History::Hidden && entry.path.starts_with(".git");
        if is_patched || is_hidden {
            continue;
        }
        match &entry.kind {
            Kind::File => {
                fs_err::create_dir_all(folder_of(&entry.path))?;
                let mode = if entry.mode & 0o100 == 0 { 0o644 } else { 0o755 };
                let file = write(&to.join(&entry.path), &tree.read(&entry.path, LARGEST)?, mode)?;
                // Byte code is that of a file of this time.
                file.set_modified(entry.modified)?;
            }
            Kind::Link(target) => {
                fs_err::create_dir_all(folder_of(&entry.path))?;
                fs_err::os::unix::fs::symlink(target, to.join(&entry.path))?;
            }
            Kind::Folder | Kind::Other => {}
        }
    }
    // What was copied is the driver's own by now, but for links.
    for (path, bytes) in patched.iter().filter_map(|(path, bytes)| Some((*path, (*bytes)?))) {
        let place = Path::new(path);
        for above in place.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            if to.join(above).symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
                return Err(Error::repository(format!(
                    "{path} cannot be laid over the tree: {} is not a folder",
                    above.display()
                )));
            }
        }
        fs_err::create_dir_all(folder_of(place))?;
        write(&to.join(place), bytes, if patch.is_executable(path) { 0o755 } else { 0o644 })?;
    }
    Ok(())
}

/// Writes a new file.
fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<fs_err::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let mut file = fs_err::OpenOptions::from_options(options).open(path)?;
    std::io::Write::write_all(&mut file, bytes)
        .map_err(|error| Error::from(error).at(format!("cannot write {}", path.display())))?;
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    Ok(file)
}

/// The hash of all files and links below a folder: path, mode and content.
fn hash(folder: &Path) -> Result<String> {
    let opened = Folder::open(folder)?;
    let mut parts = Vec::new();
    for entry in opened.walk()? {
        let content = match &entry.kind {
            Kind::File => sha256_hex(&opened.read(&entry.path, LARGEST)?),
            Kind::Link(target) => format!("link {}", target.display()),
            Kind::Folder => continue,
            Kind::Other => "other".to_owned(),
        };
        parts.push((entry.path.to_string_lossy().into_owned(), format!("{:o}", entry.mode & 0o111), content));
    }
    parts.sort_unstable();
    Ok(hash_parts(
        &parts.into_iter().flat_map(|(path, mode, content)| [path, mode, content]).collect::<Vec<_>>(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench {
        folder: tempfile::TempDir,
        cache: Cache,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let cache = Cache::open(&folder.path().join("cache")).unwrap();
            for (path, text) in [("a.py", "1"), ("p/b.py", "2"), ("p/data.txt", "3"), (".git/HEAD", "x")] {
                let place = folder.path().join("tree").join(path);
                fs_err::create_dir_all(place.parent().unwrap()).unwrap();
                fs_err::write(place, text).unwrap();
            }
            std::os::unix::fs::symlink("data.txt", folder.path().join("tree/p/link")).unwrap();
            Bench { folder, cache }
        }

        fn lay(&self, key: &str, patch: &Patch, history: History) -> Result<PathBuf> {
            made(&self.cache, &sha256_hex(key.as_bytes()), (&self.folder.path().join("tree"), patch, history))
        }
    }

    fn files(root: &Path) -> Vec<String> {
        let entries = Folder::open(root).unwrap().walk().unwrap();
        let files = entries.into_iter().filter(|entry| entry.kind != Kind::Folder);
        let mut names: Vec<String> = files.map(|entry| entry.path.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_replaced_added_and_hidden() {
        let bench = Bench::new();
        let mut patch = Patch::default();
        patch.put("a.py", b"new".to_vec()).unwrap();
        patch.put("q/c.py", b"added".to_vec()).unwrap();
        patch.hide("p/b.py").unwrap();
        let made = bench.lay("one", &patch, History::Hidden).unwrap();
        assert_eq!(files(&made), ["a.py", "p/data.txt", "p/link", "q/c.py"]);
        let changed =
            |folder: &Path| fs_err::metadata(folder.join("p/data.txt")).unwrap().modified().unwrap();
        assert_eq!(
            changed(&made),
            changed(&bench.folder.path().join("tree")),
            "its byte code is still its own"
        );
        assert_eq!(fs_err::read_to_string(made.join("a.py")).unwrap(), "new");
        assert_eq!(fs_err::read_to_string(made.join("p/link")).unwrap(), "3");
        let kept = bench.lay("two", &Patch::default(), History::Kept).unwrap();
        assert_eq!(files(&kept), [".git/HEAD", "a.py", "p/b.py", "p/data.txt", "p/link"]);
    }

    #[test]
    fn one_that_was_changed_is_set_aside_and_made_again() {
        let bench = Bench::new();
        let made = bench.lay("one", &Patch::default(), History::Hidden).unwrap();
        let marked = fs_err::metadata(made.join("a.py")).unwrap().modified().unwrap();
        let again = bench.lay("one", &Patch::default(), History::Hidden).unwrap();
        assert_eq!(fs_err::metadata(again.join("a.py")).unwrap().modified().unwrap(), marked, "used again");
        fs_err::write(made.join("a.py"), "forged").unwrap();
        fs_err::write(made.join("added.py"), "forged").unwrap();
        let mended = bench.lay("one", &Patch::default(), History::Hidden).unwrap();
        assert_eq!(files(&mended), ["a.py", "p/b.py", "p/data.txt", "p/link"]);
        assert_eq!(fs_err::read_to_string(mended.join("a.py")).unwrap(), "1");
        let names = || fs_err::read_dir(bench.folder.path().join("cache/overlays")).unwrap();
        let aside =
            names().filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("damaged"));
        assert_eq!(aside.count(), 1, "what was changed is kept aside");
        fs_err::write(mended.parent().unwrap().join("contents"), "").unwrap();
        let again = bench.lay("one", &Patch::default(), History::Hidden).unwrap();
        assert_eq!(files(&again), ["a.py", "p/b.py", "p/data.txt", "p/link"]);
    }

    #[test]
    fn nothing_is_put_through_a_link_or_below_a_file() {
        let bench = Bench::new();
        std::os::unix::fs::symlink("/tmp", bench.folder.path().join("tree/out")).unwrap();
        for path in ["out/x.py", "a.py/x.py"] {
            let mut patch = Patch::default();
            patch.put(path, b"x".to_vec()).unwrap();
            let error = bench.lay(path, &patch, History::Hidden).unwrap_err();
            assert!(error.to_string().contains("is not a folder"), "{error}");
        }
    }
}
