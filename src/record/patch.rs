//! Files of a tree that are replaced, added or hidden: what is laid over a tree for a run.

use std::collections::{BTreeMap, BTreeSet};

use super::id::hash_parts;

/// By path in the tree, with `/`: the bytes that are there, none where the file is hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    files: BTreeMap<String, Option<Vec<u8>>>,
    /// Those that can be run.
    executable: BTreeSet<String>,
}

/// Why a path cannot be part of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathProblem {
    /// Empty, absolute, or with a part that is empty, `.` or `..`.
    LeavesTheTree,
    /// With a byte that no file name may have, or a part that version control owns.
    Forbidden,
}

impl Patch {
    /// Puts these bytes at a path.
    ///
    /// # Errors
    /// A path that is not one of a tree's own files.
    pub fn put(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), PathProblem> {
        self.files.insert(checked(path)?, Some(bytes));
        self.executable.remove(path);
        Ok(())
    }

    /// Puts these bytes at a path, as a program.
    ///
    /// # Errors
    /// A path that is not one of a tree's own files.
    pub fn put_executable(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), PathProblem> {
        self.put(path, bytes)?;
        self.executable.insert(path.to_owned());
        Ok(())
    }

    /// Whether what is at a path is a program.
    pub fn is_executable(&self, path: &str) -> bool {
        self.executable.contains(path)
    }

    /// Hides the file at a path.
    ///
    /// # Errors
    /// A path that is not one of a tree's own files.
    pub fn hide(&mut self, path: &str) -> Result<(), PathProblem> {
        self.files.insert(checked(path)?, None);
        Ok(())
    }

    /// SHA-256 over paths and contents, in hex.
    pub fn sha256(&self) -> String {
        let parts = self.files.iter().flat_map(|(path, bytes)| match bytes {
            Some(bytes) if self.is_executable(path) => [path.as_bytes(), b"program", bytes],
            Some(bytes) => [path.as_bytes(), b"put", bytes],
            None => [path.as_bytes(), b"hide", b""],
        });
        hash_parts(&parts.collect::<Vec<_>>())
    }

    /// Paths with what is at them, in order.
    pub fn files(&self) -> impl Iterator<Item = (&str, Option<&[u8]>)> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_deref()))
    }
}

fn checked(path: &str) -> Result<String, PathProblem> {
    if path.is_empty() || path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(PathProblem::LeavesTheTree);
    }
    if path.contains('\0') || path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        return Err(PathProblem::Forbidden);
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_keeps_to_the_tree() {
        let mut patch = Patch::default();
        for path in ["", "/etc/passwd", "../up", "a/../../b", "a//b", "./a", "a/"] {
            assert_eq!(patch.put(path, Vec::new()), Err(PathProblem::LeavesTheTree), "{path}");
        }
        for path in [".git/config", "a/.GIT/hooks", "a\0b"] {
            assert_eq!(patch.hide(path), Err(PathProblem::Forbidden), "{path:?}");
        }
        patch.put("concise.py", b"x = 1".to_vec()).unwrap();
        patch.hide("src/a.py").unwrap();
        let files: Vec<_> = patch.files().collect();
        assert_eq!(files, [("concise.py", Some(&b"x = 1"[..])), ("src/a.py", None)]);
        let plain = patch.sha256();
        patch.put_executable("concise.py", b"x = 1".to_vec()).unwrap();
        assert!(patch.is_executable("concise.py") && patch.sha256() != plain, "a mode is part of a patch");
        patch.put("concise.py", b"x = 1".to_vec()).unwrap();
        assert_eq!(patch.sha256(), plain);
    }
}
