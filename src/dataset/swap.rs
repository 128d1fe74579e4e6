//! Replacing a dataset directory as a whole.
//!
//! The new dataset is written to `.<version>.writing` beside its place. Where nothing exists yet, one rename puts it
//! in place; where an older dataset is, one rename *exchanges* the two, so at any moment the place holds the whole old
//! or the whole new dataset. What gistmill did not write (a `.git`, notes) is carried over before the old one is
//! removed: only entries that a dataset consists of are ever deleted. A writer that dies leaves `.<version>.writing`
//! behind; the next one starts by emptying it, again of known entries only.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Fault, Result};

/// Everything that a dataset directory consists of.
pub const ENTRIES: [&str; 19] = [
    "instances.parquet",
    "instances.jsonl",
    "groups.parquet",
    "cases.parquet",
    "attempts.parquet",
    "traces.parquet",
    "targets.parquet",
    "instance_cases.parquet",
    "contexts.parquet",
    "pairs.parquet",
    "suite_runs.parquet",
    "manifest.json",
    "report.html",
    "README.md",
    "environments",
    "subsets",
    "witnesses",
    "hidden",
    "trees",
];

/// Where a dataset directory really is: what a symbolic link points to is replaced, and the link stays as it is.
/// Asked before a build starts, so that nothing is run for a place that cannot take the result.
///
/// # Errors
/// A usage error, with the way out, when something exists that cannot be replaced by renaming: a file, a link to
/// nothing, a mount point. The machine's, where the folder around it cannot be written to.
pub fn real_place(target: &Path) -> Result<PathBuf> {
    let shown = target.display();
    let refuse = |why: String| {
        Err(Error::usage(format!("{shown} {why}"))
            .with_hint("move it away, or choose another place with --output"))
    };
    let Ok(kind) = target.symlink_metadata().map(|metadata| metadata.file_type()) else {
        return Ok(target.to_owned());
    };
    if kind.is_symlink() && !target.exists() {
        return refuse("is a symbolic link to nothing".to_owned());
    }
    if !target.is_dir() {
        return refuse("exists and is not a directory".to_owned());
    }
    let place = if kind.is_symlink() { fs_err::canonicalize(target)? } else { target.to_owned() };
    if is_mount_point(&place)? {
        return refuse("is a mount point: a dataset is put in place as a whole, by renaming".to_owned());
    }
    match place.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !is_writable(folder) => {
            refuse(format!("cannot be replaced: {} cannot be written to", folder.display()))
                .map_err(|error| error.blame(Fault::Machine))
        }
        _ => Ok(place),
    }
}

fn is_writable(folder: &Path) -> bool {
    use nix::unistd::{AccessFlags, access};
    access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok()
}

/// Whether the kernel lists it among the mounts, which also shows a folder that is mounted onto another one.
fn is_mount_point(folder: &Path) -> Result<bool> {
    let folder = fs_err::canonicalize(folder)?;
    let mounts = fs_err::read("/proc/self/mountinfo")?;
    let place = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4).map(unescaped);
    Ok(mounts
        .split(|byte| *byte == b'\n')
        .any(|line| place(line).as_deref() == Some(folder.as_os_str().as_bytes())))
}

/// A path of `mountinfo`, where blanks and backslashes are octal numbers.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, after)) = rest.split_first() {
        let number = after.get(..3).filter(|_| first == b'\\');
        let byte = number.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    plain
}

/// A directory that is being filled beside its final place.
#[derive(Debug)]
pub struct Staging {
    staging: PathBuf,
    target: PathBuf,
}

impl Staging {
    /// An empty directory beside `target`, or beside what it links to.
    ///
    /// # Errors
    /// Those of [`real_place`], and IO errors.
    pub fn beside(target: &Path) -> Result<Self> {
        let target = real_place(target)?;
        let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(Error::usage(format!("{} cannot hold a dataset", target.display())));
        };
        fs_err::create_dir_all(folder)?;
        let mut beside = OsString::from(".");
        beside.push(name);
        beside.push(".writing");
        let staging = folder.join(beside);
        if staging.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            // Emptying it would empty what a link points to.
            return Err(Error::usage(format!("{} exists and is not a directory", staging.display()))
                .with_hint("move it away: new datasets are written to a directory of that name first"));
        }
        remove_entries(&staging)?;
        fs_err::create_dir_all(&staging)?;
        Ok(Staging { staging, target })
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// Puts the new dataset in place.
    ///
    /// # Errors
    /// IO errors with the path; the target then holds the old dataset or the new one.
    pub fn swap_in(self) -> Result<()> {
        sync(&self.staging)?;
        if !self.target.exists() {
            fs_err::rename(&self.staging, &self.target)?;
            return self.sync_folder();
        }
        exchange(&self.staging, &self.target)?;
        self.sync_folder()?;
        remove_entries(&self.staging)?;
        carry_over(&self.staging, &self.target)?;
        Ok(fs_err::remove_dir(&self.staging)?)
    }

    fn sync_folder(&self) -> Result<()> {
        self.target.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or(Ok(()), sync)
    }
}

fn sync(folder: &Path) -> Result<()> {
    Ok(fs_err::File::open(folder)?.sync_all()?)
}

/// Exchanges two directories in one step; where the file system cannot, in two steps with nothing in place between
/// them.
fn exchange(staging: &Path, target: &Path) -> Result<()> {
    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    match renameat2(AT_FDCWD, staging, AT_FDCWD, target, RenameFlags::RENAME_EXCHANGE) {
        Ok(()) => return Ok(()),
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {}
        Err(errno) => {
            let error = std::io::Error::from(errno);
            return Err(Error::from(error).at(format!("cannot put the dataset at {}", target.display())));
        }
    }
    let aside = staging.with_extension("old");
    fs_err::rename(target, &aside)?;
    if let Err(error) = fs_err::rename(staging, target) {
        fs_err::rename(&aside, target)?;
        return Err(error.into());
    }
    Ok(fs_err::rename(&aside, staging)?)
}

fn remove_entries(folder: &Path) -> Result<()> {
    for name in ENTRIES {
        let path = folder.join(name);
        let removed = if path.is_dir() { fs_err::remove_dir_all(&path) } else { fs_err::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Moves what is left in the old directory into the new one.
fn carry_over(old: &Path, new: &Path) -> Result<()> {
    for entry in fs_err::read_dir(old)? {
        let entry = entry?;
        let target = new.join(entry.file_name());
        if !target.exists() {
            fs_err::rename(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(target: &Path, text: &str) {
        let staging = Staging::beside(target).unwrap();
        fs_err::write(staging.path().join("README.md"), text).unwrap();
        fs_err::create_dir(staging.path().join("environments")).unwrap();
        staging.swap_in().unwrap();
    }

    #[test]
    fn a_second_dataset_replaces_the_first_and_what_others_put_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("name/2026.11");
        put(&target, "one");
        fs_err::write(target.join("report.html"), "old page").unwrap();
        fs_err::create_dir(target.join(".git")).unwrap();
        put(&target, "two");
        assert_eq!(fs_err::read_to_string(target.join("README.md")).unwrap(), "two");
        assert!(target.join(".git").is_dir(), "not ours, so it is carried over");
        assert!(!target.join("report.html").exists(), "ours, so it goes with the old dataset");
        let beside = fs_err::read_dir(target.parent().unwrap()).unwrap().count();
        assert_eq!(beside, 1, "nothing is left beside");
    }

    #[test]
    fn an_unfinished_write_leaves_the_old_dataset_and_the_next_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("2026.11");
        put(&target, "one");
        let staging = Staging::beside(&target).unwrap();
        fs_err::write(staging.path().join("report.html"), "half").unwrap();
        drop(staging);
        assert_eq!(fs_err::read_to_string(target.join("README.md")).unwrap(), "one");
        put(&target, "two");
        assert!(!target.join("report.html").exists());
    }

    #[test]
    fn what_a_link_points_to_is_replaced_and_nothing_of_the_users_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("elsewhere/real"), folder.path().join("d/1"));
        fs_err::create_dir_all(&real).unwrap();
        fs_err::create_dir_all(link.parent().unwrap()).unwrap();
        fs_err::write(real.join("mine.txt"), "mine").unwrap();
        std::os::unix::fs::symlink("../elsewhere/real", &link).unwrap();
        for text in ["one", "two"] {
            put(&link, text);
            assert_eq!(fs_err::read_link(&link).unwrap(), Path::new("../elsewhere/real"));
            assert_eq!(fs_err::read_to_string(real.join("README.md")).unwrap(), text);
            assert_eq!(fs_err::read_to_string(real.join("mine.txt")).unwrap(), "mine");
        }
        for place in [link.parent().unwrap(), real.parent().unwrap()] {
            assert_eq!(fs_err::read_dir(place).unwrap().count(), 1, "nothing is left in {}", place.display());
        }
    }

    #[test]
    fn a_link_to_nothing_and_a_link_in_the_place_of_writing_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (target, mine) = (folder.path().join("1"), folder.path().join("mine"));
        std::os::unix::fs::symlink("nowhere", &target).unwrap();
        let error = Staging::beside(&target).unwrap_err();
        assert!(error.to_string().ends_with("/1 is a symbolic link to nothing"), "{error}");
        assert_eq!(fs_err::read_link(&target).unwrap(), Path::new("nowhere"));
        fs_err::create_dir(&mine).unwrap();
        fs_err::write(mine.join("README.md"), "mine").unwrap();
        std::os::unix::fs::symlink("mine", folder.path().join(".2.writing")).unwrap();
        assert!(Staging::beside(&folder.path().join("2")).is_err());
        assert_eq!(fs_err::read_to_string(mine.join("README.md")).unwrap(), "mine");
    }

    #[test]
    fn mount_points_are_known_and_their_names_read() {
        assert!(is_mount_point(Path::new("/proc")).unwrap());
        assert!(!is_mount_point(tempfile::tempdir().unwrap().path()).unwrap());
        assert_eq!(unescaped(br"/a\040b\134c\9"), br"/a b\c\9");
        let error = real_place(Path::new("/proc")).unwrap_err();
        assert!(error.to_string().contains("is a mount point") && error.hint().is_some(), "{error}");
    }

    #[test]
    fn a_file_in_the_way_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("2026.11");
        fs_err::write(&target, "mine").unwrap();
        assert!(Staging::beside(&target).is_err());
        assert_eq!(fs_err::read_to_string(&target).unwrap(), "mine");
    }
}
