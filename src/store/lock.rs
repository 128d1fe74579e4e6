//! The one lock between processes: of the system, on an open file, so that it ends with the process, however that ends.

use std::fs::TryLockError;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::interrupt;

const PAUSE: Duration = Duration::from_millis(50);

/// Holding it is being the only process at work on something; given back when dropped.
#[derive(Debug)]
pub struct Lock {
    _file: std::fs::File,
}

impl Lock {
    /// Takes the lock of a dataset directory, making the folder above it when missing.
    ///
    /// # Errors
    /// A usage error when another build holds it.
    pub fn take(directory: &Path) -> Result<Self> {
        let folder = directory.parent().unwrap_or(Path::new("."));
        fs_err::create_dir_all(folder)
            .map_err(|error| Error::from(error).with_hint("choose another place with --output"))?;
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        Self::try_file(&folder.join(format!(".{name}.lock")))?.ok_or_else(|| {
            Error::usage(format!("another build is writing {}", directory.display()))
                .with_hint("wait for it, or choose another --output")
        })
    }

    /// Takes the lock of a file (made when missing) as soon as no other process holds it; `busy` is called once when one
    /// does.
    ///
    /// # Errors
    /// An interruption while waiting.
    pub fn wait(path: &Path, busy: impl FnOnce()) -> Result<Self> {
        Self::wait_while(|| Self::try_file(path), busy, interrupt::check)
    }

    /// Takes the lock of a file together with all who take it in this way, as soon as nobody holds it alone; `busy` is called
    /// once when somebody does.
    ///
    /// # Errors
    /// An interruption while waiting.
    pub fn wait_shared(path: &Path, busy: impl FnOnce()) -> Result<Self> {
        Self::wait_while(|| Self::try_shared(path), busy, interrupt::check)
    }

    fn wait_while(
        take: impl Fn() -> Result<Option<Self>>,
        busy: impl FnOnce(),
        go_on: impl Fn() -> Result<()>,
    ) -> Result<Self> {
        let mut busy = Some(busy);
        loop {
            if let Some(lock) = take()? {
                return Ok(lock);
            }
            if let Some(busy) = busy.take() {
                busy();
            }
            go_on()?;
            std::thread::sleep(PAUSE);
        }
    }

    /// The lock of a file, made when missing; none when another process holds it.
    ///
    /// # Errors
    /// When the file cannot be made or locked.
    pub fn try_file(path: &Path) -> Result<Option<Self>> {
        lock(open(path)?, std::fs::File::try_lock)
    }

    /// The lock of a file, made when missing, shared with all who take it in this way; none when a process holds it alone.
    ///
    /// # Errors
    /// When the file cannot be made or locked.
    pub fn try_shared(path: &Path) -> Result<Option<Self>> {
        lock(open(path)?, std::fs::File::try_lock_shared)
    }

    /// The lock of a folder that exists; none when another process holds it.
    ///
    /// # Errors
    /// When the folder cannot be opened or locked.
    pub fn try_folder(path: &Path) -> Result<Option<Self>> {
        lock(fs_err::File::open(path)?, std::fs::File::try_lock)
    }
}

fn open(path: &Path) -> Result<fs_err::File> {
    let mut options = std::fs::OpenOptions::new();
    Ok(super::open_regular(path, options.create(true).truncate(false).read(true).write(true))?)
}

fn lock(
    file: fs_err::File,
    take: impl Fn(&std::fs::File) -> std::result::Result<(), TryLockError>,
) -> Result<Option<Lock>> {
    let (file, path) = file.into_parts();
    match take(&file) {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => {
            Err(Error::from(error).at(format!("cannot lock {}", path.display())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_lock_has_one_holder_and_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock");
        let held = Lock::try_file(&file).unwrap().unwrap();
        assert!(Lock::try_file(&file).unwrap().is_none());
        assert!(Lock::try_folder(folder.path()).unwrap().is_some(), "a folder has a lock of its own");
        drop(held);
        let _held = Lock::wait(&file, || panic!("nobody holds it")).unwrap();
        assert!(Lock::try_file(&file).unwrap().is_none());
    }

    #[test]
    fn a_lock_is_a_regular_file_and_no_link_is_followed_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        fs_err::write(&old, "mine").unwrap();
        for (name, target) in [("to-nothing", &new), ("to-a-file", &old)] {
            let link = folder.path().join(name);
            std::os::unix::fs::symlink(target, &link).unwrap();
            let error = Lock::try_file(&link).unwrap_err();
            assert!(error.to_string().contains("is a symbolic link"), "{error}");
            assert!(Lock::wait_shared(&link, || {}).is_err());
        }
        std::os::unix::fs::symlink(&new, folder.path().join(".dataset.lock")).unwrap();
        assert!(Lock::take(&folder.path().join("dataset")).is_err());
        assert!(!new.exists(), "nothing is made behind a link");
        assert_eq!(fs_err::read_to_string(&old).unwrap(), "mine");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(Lock::try_file(&pipe).is_err());
    }

    #[test]
    fn who_waits_says_so_once_and_leaves_when_asked_to_stop() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock");
        let held = Cell::new(Lock::try_file(&file).unwrap());
        let (said, asked) = (Cell::new(0), Cell::new(0));
        let waited = |stop_at: u32| {
            Lock::wait_while(
                || Lock::try_file(&file),
                || said.set(said.get() + 1),
                || {
                    asked.set(asked.get() + 1);
                    if asked.get() == 3 {
                        held.take();
                    }
                    if asked.get() == stop_at { Err(Error::interrupted()) } else { Ok(()) }
                },
            )
        };
        let error = waited(2).unwrap_err();
        assert_eq!((error.fault(), said.get()), (crate::error::Fault::Interrupted, 1));
        waited(99).unwrap();
        assert_eq!((said.get(), asked.get()), (2, 3));
    }

    #[test]
    fn a_dataset_that_is_being_written_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = folder.path().join("made/name");
        let _held = Lock::take(&dataset).unwrap();
        let error = Lock::take(&dataset).unwrap_err();
        assert_eq!(error.fault(), crate::error::Fault::Usage);
        assert!(error.to_string().contains("made/name"), "{error}");
    }
}
