//! What of a tree ran for one group, line by line.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Whether nobody took the watch away while the cases ran.
    #[serde(default = "yes")]
    pub complete: bool,
}

fn yes() -> bool {
    true
}

/// What of one file ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedFile {
    /// Lines with their place in the order of first execution over all files.
    pub lines: Vec<(u32, u64)>,
    /// Functions and bodies that started: first line and name.
    pub started: Vec<(u32, String)>,
    /// Of these, what ran in some of several runs and not in all of them; see [`Execution::join`].
    #[serde(default)]
    pub varying: Varying,
}

/// Lines and functions of a file that run by chance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Varying {
    pub lines: BTreeSet<u32>,
    pub started: BTreeSet<(u32, String)>,
}

impl Execution {
    /// Adds what another run of the same group showed: what ran in it alone comes after everything else.
    pub fn join(&mut self, other: Execution) {
        let after = |files: &BTreeMap<String, ExecutedFile>| {
            let orders = files.values().flat_map(|file| file.lines.iter().map(|(_, order)| order + 1));
            orders.max().unwrap_or_default()
        };
        let first = after(&self.files);
        let mut theirs = other.files;
        for name in theirs.keys() {
            self.files.entry(name.clone()).or_default();
        }
        for (name, own) in &mut self.files {
            own.join(theirs.remove(name).unwrap_or_default(), first);
        }
        self.modules.extend(other.modules);
        for (own, theirs) in [
            (&mut self.others, other.others),
            (&mut self.opened, other.opened),
            (&mut self.spawned, other.spawned),
        ] {
            let new: Vec<String> = theirs.into_iter().filter(|one| !own.contains(one)).collect();
            own.extend(new);
        }
    }

    /// Whether some of its lines ran by chance.
    pub fn varies(&self) -> bool {
        self.files.values().any(|file| file.varying != Varying::default())
    }

    /// Whether it can be what the runner wrote.
    ///
    /// # Errors
    /// What it cannot have written, in words.
    pub fn check(&self) -> Result<(), String> {
        let files = self.files.keys().chain(self.modules.values()).chain(&self.opened);
        files.into_iter().try_for_each(|file| check_path(file))
    }
}

impl ExecutedFile {
    /// Adds another run's, whose orders count from `first` on.
    fn join(&mut self, other: ExecutedFile, first: u64) {
        let own: BTreeSet<u32> = self.lines.iter().map(|(line, _)| *line).collect();
        let theirs: BTreeSet<u32> = other.lines.iter().map(|(line, _)| *line).collect();
        self.varying.lines.extend(own.symmetric_difference(&theirs));
        let new = other.lines.into_iter().filter(|(line, _)| !own.contains(line));
        self.lines.extend(new.map(|(line, order)| (line, first + order)));
        self.lines.sort_unstable();
        let own: BTreeSet<(u32, String)> = self.started.drain(..).collect();
        let theirs: BTreeSet<(u32, String)> = other.started.into_iter().collect();
        self.varying.started.extend(own.symmetric_difference(&theirs).cloned());
        self.started.extend(own.union(&theirs).cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lines: &[(u32, u64)], started: &[&str]) -> Execution {
        let started = started.iter().map(|name| (1, (*name).to_owned())).collect();
        let file = ExecutedFile { lines: lines.to_vec(), started, varying: Varying::default() };
        Execution { files: [("a.py".to_owned(), file)].into(), ..Execution::default() }
    }

    #[test]
    fn joined_runs_have_the_lines_of_all_and_know_which_ran_by_chance() {
        let mut joined = run(&[(1, 0), (2, 1)], &["f"]);
        joined.join(run(&[(1, 0), (2, 1)], &["f"]));
        assert_eq!((joined.varies(), &joined), (false, &run(&[(1, 0), (2, 1)], &["f"])));
        joined.join(run(&[(1, 0), (3, 1)], &["g"]));
        let file = &joined.files["a.py"];
        assert_eq!(file.lines, [(1, 0), (2, 1), (3, 3)], "after what ran first");
        assert_eq!(file.varying.lines, [2, 3].into());
        assert_eq!(file.started, [(1, "f".to_owned()), (1, "g".to_owned())]);
        assert_eq!(file.varying.started.len(), 2);
        joined.join(run(&[(1, 0), (2, 1), (3, 2)], &["f", "g"]));
        assert_eq!(joined.files["a.py"].varying.lines, [2, 3].into(), "once by chance is by chance");
        assert!(joined.varies());
    }

    #[test]
    fn a_file_that_only_one_run_reads_runs_by_chance() {
        let mut joined = Execution { others: vec!["os".into()], ..run(&[(1, 0)], &[]) };
        let mut other = run(&[(1, 0)], &[]);
        other
            .files
            .insert("b.py".to_owned(), ExecutedFile { lines: vec![(7, 1)], ..ExecutedFile::default() });
        joined.join(Execution { others: vec!["os".into(), "re".into()], ..other });
        assert_eq!(joined.files["b.py"].varying.lines, [7].into());
        assert_eq!(joined.others, ["os", "re"]);
    }

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
