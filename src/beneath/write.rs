//! Writing below a folder: what is made is new, and no link is followed on the way to it or in its place.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::{Folder, open_beneath};
use crate::error::{Error, Result};

const FOLDER: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY);

impl Folder {
    /// Makes a file where nothing is, with the folders above it.
    ///
    /// # Errors
    /// When `relative` leads out of the folder or through a link, or something exists; IO errors with the path.
    pub fn create_new(&self, relative: &Path) -> Result<fs_err::File> {
        let (folder, name) = self.place_of(relative)?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
        let how = OpenHow::new().flags(flags).resolve(resolve).mode(Mode::from_bits_truncate(0o666));
        let made =
            openat2(&folder, name.as_os_str(), how).map_err(|errno| self.cannot_make(relative, errno))?;
        Ok(fs_err::File::from_parts(File::from(made), self.path.join(relative)))
    }

    /// Removes a file or a link, if it exists; what a link leads to stays.
    ///
    /// # Errors
    /// Those of [`Folder::create_new`], and where a folder is in its place.
    pub fn remove(&self, relative: &Path) -> Result<()> {
        let (folder, name) = self.place_of(relative)?;
        match unlinkat(&folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(self.cannot_make(relative, errno)),
        }
    }

    /// Makes a folder, and those above it, where they are missing.
    ///
    /// # Errors
    /// Those of [`Folder::create_new`].
    pub fn make_folder(&self, relative: &Path) -> Result<()> {
        self.folder_at(relative).map(drop)
    }

    /// The folder of a file that is to be made, and its name there.
    fn place_of(&self, relative: &Path) -> Result<(OwnedFd, std::ffi::OsString)> {
        match (relative.parent(), relative.components().next_back()) {
            (Some(above), Some(Component::Normal(name))) => Ok((self.folder_at(above)?, name.to_owned())),
            _ => Err(self.leads_out(relative)),
        }
    }

    fn folder_at(&self, relative: &Path) -> Result<OwnedFd> {
        let start = open_beneath(self.handle.as_fd(), Path::new("."), FOLDER);
        let mut at = start.map_err(|errno| self.cannot_make(relative, errno))?;
        for part in relative.components() {
            let Component::Normal(name) = part else { return Err(self.leads_out(relative)) };
            match mkdirat(&at, name, Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(self.cannot_make(relative, errno)),
            }
            let next = open_beneath(at.as_fd(), Path::new(name), FOLDER);
            at = next.map_err(|errno| self.cannot_make(relative, errno))?;
        }
        Ok(at)
    }

    fn leads_out(&self, relative: &Path) -> Error {
        Error::usage(format!("`{}` leads out of {}", relative.display(), self.path.display()))
    }

    fn cannot_make(&self, relative: &Path, errno: Errno) -> Error {
        let place = self.path.join(relative);
        let why = match errno {
            Errno::ELOOP => ": it is, or is below, a symbolic link, and none is followed there",
            Errno::ENOTDIR => ": something that is not a folder is on the way",
            Errno::EISDIR => ": a folder is in its place",
            _ => "",
        };
        Error::from(std::io::Error::from(errno)).at(format!("cannot write {}{why}", place.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_made_new_and_below_the_folder_alone() {
        let temp = tempfile::tempdir().unwrap();
        let (inside, outside) = (temp.path().join("inside"), temp.path().join("outside"));
        for folder in [&inside, &outside] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(outside.join("victim"), "mine").unwrap();
        symlink(&outside, inside.join("way")).unwrap();
        symlink(outside.join("victim"), inside.join("end")).unwrap();
        symlink(outside.join("planted"), inside.join("nowhere")).unwrap();
        let folder = Folder::open(&inside).unwrap();
        folder.create_new(Path::new("a/b/c")).unwrap().write_all(b"c").unwrap();
        assert_eq!(std::fs::read(inside.join("a/b/c")).unwrap(), b"c");
        for bad in [
            "a/b/c",
            "a",
            "way/planted",
            "end",
            "nowhere",
            "../outside/planted",
            "/planted",
            "a/../../planted",
            "..",
            "",
        ] {
            assert!(folder.create_new(Path::new(bad)).is_err(), "{bad}");
        }
        for bad in ["way", "way/planted", "../outside/planted", "a/b/c"] {
            assert!(folder.make_folder(Path::new(bad)).is_err(), "{bad}");
        }
        assert!(folder.remove(Path::new("way/victim")).is_err() && folder.remove(Path::new("a")).is_err());
        // A link is removed, and what it leads to stays.
        folder.remove(Path::new("end")).unwrap();
        folder.remove(Path::new("end")).unwrap();
        folder.create_new(Path::new("end")).unwrap();
        assert_eq!(std::fs::read(outside.join("victim")).unwrap(), b"mine");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    }
}
