//! Test files of one repository as syntax, each read once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::python_source::definitions::read_source;
use crate::python_source::{SourceFile, decoded};

/// What was read so far.
#[derive(Debug)]
pub struct Sources {
    tree: PathBuf,
    files: RefCell<HashMap<String, Option<Rc<SourceFile>>>>,
}

impl Sources {
    /// Files below this folder.
    pub fn of(tree: &Path) -> Self {
        Sources { tree: tree.to_owned(), files: RefCell::default() }
    }

    /// A file by its path in the tree. None when it cannot be read or is not Python.
    pub fn get(&self, path: &str) -> Option<Rc<SourceFile>> {
        let mut files = self.files.borrow_mut();
        if let Some(known) = files.get(path) {
            return known.clone();
        }
        let bytes = read_source(&self.tree, path);
        let file = bytes.and_then(|bytes| SourceFile::parse(path, &decoded(&bytes)));
        let file = file.map(Rc::new);
        files.insert(path.to_owned(), file.clone());
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_need_not_be_utf_8() {
        let tree = tempfile::tempdir().unwrap();
        let path = tree.path().join("test_a.py");
        fs_err::write(&path, b"# coding: latin-1\ndef test():\n    return '\xe9'\n").unwrap();
        let sources = Sources::of(tree.path());
        let first = sources.get("test_a.py").expect("is Python");
        fs_err::remove_file(&path).unwrap();
        assert!(Rc::ptr_eq(&first, &sources.get("test_a.py").expect("is known")));
        assert!(sources.get("nowhere.py").is_none());
        fs_err::write(tree.path().join("bad.py"), "def (").unwrap();
        assert!(sources.get("bad.py").is_none());
    }
}
