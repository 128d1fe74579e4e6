//! What of a tree ran for one group, line by line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::trace::check_path;

/// Lines in the order of their first execution, imports included: what a witness is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// By file, relative to the root of the tree.
    pub files: BTreeMap<String, ExecutedFile>,
    /// Files of the tree by the names of the modules that they were imported as.
    pub modules: BTreeMap<String, String>,
    /// Other modules that were imported, in the order of their import.
    pub others: Vec<String>,
    /// Files of the tree, but for Python's, that were opened.
    #[serde(default)]
    pub opened: Vec<String>,
    /// Programs that were started.
    #[serde(default)]
    pub spawned: Vec<String>,
}

/// What of one file ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedFile {
    /// Lines with their place in the order of first execution over all files.
    pub lines: Vec<(u32, u64)>,
    /// Functions and bodies that started: first line and name.
    pub started: Vec<(u32, String)>,
}

impl Execution {
    /// Whether it can be what the runner wrote.
    ///
    /// # Errors
    /// What it cannot have written, in words.
    pub fn check(&self) -> Result<(), String> {
        let files = self.files.keys().chain(self.modules.values()).chain(&self.opened);
        files.into_iter().try_for_each(|file| check_path(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_the_tree_are_refused() {
        let of = |file: &str| Execution {
            modules: [("a".to_owned(), file.to_owned())].into(),
            ..Execution::default()
        };
        of("src/a.py").check().expect("is in the tree");
        for file in ["/etc/passwd", "../a.py", "a/../../b.py", ""] {
            of(file).check().expect_err(file);
        }
    }
}
