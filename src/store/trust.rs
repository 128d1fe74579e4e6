//! Whose a folder is, and whether it is still the one that was opened.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, Result};

/// What is in a folder of the cache is read and run: nobody else may have put it there.
///
/// # Errors
/// The user's, when the file or folder belongs to somebody else, or somebody else may write to it; IO errors.
pub(crate) fn require_own(path: &Path) -> Result<()> {
    let metadata = fs_err::metadata(path)?;
    let user = nix::unistd::geteuid().as_raw();
    if metadata.uid() != user {
        let owner = metadata.uid();
        let why = format!("belongs to another user ({owner}; gistmill runs as {user})");
        return Err(refused(path, &why).with_hint(
            "name a folder of your own with --cache-dir; those who share a cache on purpose run as one user",
        ));
    }
    if metadata.mode() & 0o022 != 0 {
        let why = format!("can be written to by others (mode {:o})", metadata.mode() & 0o7777);
        return Err(refused(path, &why).with_hint(format!(
            "where nobody else put anything there, run `chmod -R go-w {}`; otherwise name another folder with \
             --cache-dir",
            crate::text::shell_quote(&path.to_string_lossy())
        )));
    }
    Ok(())
}

fn refused(path: &Path, why: &str) -> Error {
    Error::usage(format!("the cache cannot be trusted: {} {why}", path.display()))
}

/// A folder, distinguished from one of the same name that was made later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    /// Numbers of folders are given again.
    made: Option<SystemTime>,
}

impl Identity {
    /// # Errors
    /// IO errors.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let metadata = fs_err::metadata(path)?;
        Ok(Identity { device: metadata.dev(), inode: metadata.ino(), made: metadata.created().ok() })
    }
}

/// The error of a cache of which something went away while it was used.
pub(super) fn removed(root: &Path, path: &Path) -> Error {
    let place = match path.strip_prefix(root) {
        Ok(relative) if relative.as_os_str().is_empty() => String::new(),
        _ => format!(": {} is not what it was", path.display()),
    };
    Error::machine(format!(
        "the cache {} was removed or changed while gistmill worked with it{place}",
        root.display()
    ))
    .with_hint(
        "leave it alone while gistmill runs (`gistmill cache prune` waits), and run the same command again",
    )
}

/// Whether each of these is the folder that it was.
///
/// # Errors
/// See [`removed`].
pub(super) fn require_same<'a>(
    root: &Path,
    folders: impl Iterator<Item = (&'a PathBuf, &'a Identity)>,
) -> Result<()> {
    for (path, known) in folders {
        if Identity::of(path).ok().as_ref() != Some(known) {
            return Err(removed(root, path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;
    use crate::store::Cache;
    use std::os::unix::fs::PermissionsExt;

    fn mode_of(path: &Path) -> u32 {
        fs_err::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_new_cache_is_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("above/cache");
        let cache = Cache::open(&root).unwrap();
        assert_eq!(mode_of(&root), 0o700);
        assert_eq!(mode_of(&cache.dir("sources").unwrap()), 0o700);
        let sealed = root.join("sources/a.json");
        crate::store::write_sealed_once(&sealed, &1).unwrap();
        assert_eq!(mode_of(&sealed), 0o600);
    }

    #[test]
    fn a_folder_with_something_else_is_no_cache() {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join("lost+found")).unwrap();
        drop(Cache::open(folder.path()).unwrap());
        drop(Cache::open(folder.path()).expect("it is one now"));
        let repository = tempfile::tempdir().unwrap();
        fs_err::write(repository.path().join("setup.py"), "").unwrap();
        let error = Cache::open(repository.path()).unwrap_err();
        assert_eq!(error.fault(), Fault::Usage);
        assert!(error.to_string().contains("something else than gistmill's cache"), "{error}");
        assert_eq!(fs_err::read_dir(repository.path()).unwrap().count(), 1, "nothing is written");
    }

    #[test]
    fn a_cache_that_others_may_write_to_is_refused() {
        for mode in [0o777, 0o770, 0o702, 0o1777, 0o2775] {
            let folder = tempfile::tempdir().unwrap();
            set_mode(folder.path(), mode);
            let error = Cache::open(folder.path()).unwrap_err();
            assert_eq!(error.fault(), Fault::Usage, "{error}");
            assert!(error.to_string().contains("can be written to by others"), "{error}");
            assert!(error.hint().unwrap().contains("chmod -R go-w"), "{error}");
            assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 0, "nothing is written");
        }
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o755);
        Cache::open(folder.path()).unwrap();
    }

    #[test]
    fn folders_of_a_cache_that_others_may_write_to_are_refused_also_behind_links() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let cache = Cache::open(folder.path()).unwrap();
        set_mode(&cache.dir("tools").unwrap(), 0o777);
        assert!(cache.dir("tools").unwrap_err().to_string().contains("by others"));
        set_mode(elsewhere.path(), 0o775);
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("wheels")).unwrap();
        assert!(cache.dir("wheels").unwrap_err().to_string().contains("by others"));
    }

    #[test]
    fn a_cache_of_somebody_else_is_refused() {
        // A folder that is root's, or that belongs to another user.
        let folder = tempfile::tempdir().unwrap();
        let of_others = if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(12_345), None).unwrap();
            folder.path()
        } else {
            Path::new("/usr")
        };
        let error = Cache::open(of_others).unwrap_err();
        assert!(error.to_string().contains("belongs to another user"), "{error}");
    }

    #[test]
    fn a_cache_that_was_removed_is_noticed_also_where_it_was_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("cache");
        let opened = || {
            let cache = Cache::open(&root).unwrap();
            cache.dir("environments").unwrap();
            cache.require_present().unwrap();
            cache
        };
        let assert_noticed = |cache: &Cache| {
            let error = cache.require_present().unwrap_err();
            assert_eq!(error.fault(), Fault::Machine, "{error}");
            assert!(error.to_string().contains(root.to_str().unwrap()), "{error}");
        };
        let cache = opened();
        fs_err::remove_dir_all(&root).unwrap();
        assert_noticed(&cache);
        fs_err::create_dir_all(root.join("environments")).unwrap();
        assert_noticed(&cache);
        // What a shell's `*` names.
        let cache = opened();
        fs_err::rename(root.join("environments"), root.join("other")).unwrap();
        assert_noticed(&cache);
        assert!(cache.dir("environments").is_err(), "it is not made again behind its user's back");
        let cache = opened();
        fs_err::remove_file(root.join(".in-use")).unwrap();
        assert_noticed(&cache);
    }
}
