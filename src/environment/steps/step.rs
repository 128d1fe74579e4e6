//! The folders of one job: what it is given, what it leaves, and where it may scribble. No later job sees any of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::backend::{Mount, Places};
use crate::beneath::Folder;
use crate::error::Result;
use crate::store::discard;

/// Where a job finds what it is given; read-only.
pub(in crate::environment) const IN: &str = "/opt/in";
/// Where a job leaves what comes of it.
pub(in crate::environment) const OUT: &str = "/opt/out";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Folders on the host that live as long as this value.
#[derive(Debug)]
pub struct Step {
    folder: PathBuf,
}

impl Step {
    /// Makes the folders below `parent`.
    pub fn new(parent: &Path) -> Result<Self> {
        let folder = parent.join(NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
        let step = Step { folder };
        for name in ["in", "out", "tmp", "home"] {
            fs_err::create_dir_all(step.folder.join(name))?;
        }
        Ok(step)
    }

    /// Gives the job a text. The name as the job sees it.
    pub fn give(&self, name: &str, text: &str) -> Result<String> {
        fs_err::write(self.folder.join("in").join(name), text)?;
        Ok(format!("{IN}/{name}"))
    }

    /// Gives the job a copy of a file. The name as the job sees it.
    pub fn give_file(&self, name: &str, file: &Path) -> Result<String> {
        fs_err::copy(file, self.folder.join("in").join(name))?;
        Ok(format!("{IN}/{name}"))
    }

    /// A further folder on the host, empty.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        fs_err::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// What the job left: hostile.
    pub fn out(&self) -> Result<Folder> {
        Folder::open(&self.folder.join("out"))
    }

    /// How the job sees the folders.
    pub fn mounts(&self, places: &Places) -> Vec<Mount> {
        let host = |name: &str| self.folder.join(name);
        vec![
            Mount::ReadOnly { host: host("in"), inside: IN.into() },
            Mount::Writable { host: host("out"), inside: OUT.into() },
            Mount::Scratch { host: host("tmp"), inside: places.tmp.clone() },
            Mount::Scratch { host: host("home"), inside: places.home.clone() },
        ]
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // What cannot be removed goes with the folder of the environment, or stays until the cache is removed.
        let _ = discard(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_a_job_left_is_removed_and_nothing_beside_it() {
        let scratch = tempfile::tempdir().unwrap();
        let victim = scratch.path().join("victim");
        fs_err::create_dir(&victim).unwrap();
        fs_err::write(victim.join("mine"), "mine").unwrap();
        let step = Step::new(&scratch.path().join("steps")).unwrap();
        let out = step.folder.join("out");
        symlink(&victim, out.join("link")).unwrap();
        symlink(&victim, out.join("discarded-1")).unwrap();
        let mut nested = out.clone();
        for _ in 0..40 {
            nested = nested.join("a");
            fs_err::create_dir(&nested).unwrap();
        }
        fs_err::write(nested.join("file"), "").unwrap();
        fs_err::set_permissions(out.join("a/a"), std::fs::Permissions::from_mode(0o000)).unwrap();
        let folder = step.folder.clone();
        drop(step);
        assert!(!folder.exists());
        assert_eq!(fs_err::read_to_string(victim.join("mine")).unwrap(), "mine");
    }

    #[test]
    fn no_two_steps_share_a_folder() {
        let scratch = tempfile::tempdir().unwrap();
        let (one, two) = (Step::new(scratch.path()).unwrap(), Step::new(scratch.path()).unwrap());
        assert_ne!(one.folder, two.folder);
        assert_eq!(one.give("a", "x").unwrap(), "/opt/in/a");
        assert_eq!(fs_err::read_to_string(one.folder.join("in/a")).unwrap(), "x");
    }
}
