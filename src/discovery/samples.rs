//! Files of a tree in the place of files that a command names and the tree does not have. Pure.

use std::collections::BTreeMap;

use crate::record::task::CODE_ENDINGS;

/// Size of a sample, in bytes.
const LARGEST: u64 = 64 << 10;
/// Parts of names of folders that hold what programs are tried on.
const HOLDING: [&str; 5] = ["test", "data", "example", "fixture", "sample"];

/// Data files of a tree, by their ending: those that a person would try a program on come first.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples {
    by_ending: BTreeMap<String, Vec<String>>,
}

impl Samples {
    /// Those of these files, each with its size.
    pub(super) fn new<'a>(files: impl Iterator<Item = (&'a str, u64)>) -> Self {
        let mut by_ending: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (path, size) in files {
            let is_hidden = path.split('/').any(|part| part.starts_with('.'));
            let Some(ending) = ending(path).filter(|ending| !is_code(ending)) else { continue };
            if !is_hidden && (1..=LARGEST).contains(&size) {
                by_ending.entry(ending).or_default().push(path.to_owned());
            }
        }
        for paths in by_ending.values_mut() {
            paths.sort_by_key(|path| {
                let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders).to_lowercase();
                let holds = HOLDING.iter().any(|part| folders.contains(part));
                (!holds, path.matches('/').count(), path.len(), path.clone())
            });
        }
        Samples { by_ending }
    }

    /// The one file whose path ends with this.
    pub(super) fn named(&self, path: &str) -> Option<&str> {
        let of_ending = self.by_ending.get(&ending(path)?)?.iter();
        let is_it = |whole: &&String| {
            whole.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let mut found = of_ending.filter(is_it);
        let (one, other) = (found.next(), found.next());
        one.filter(|_| other.is_none()).map(String::as_str)
    }

    /// A file with the same ending, other than these.
    pub(super) fn like(&self, path: &str, taken: &[String]) -> Option<&str> {
        let mut of_ending = self.by_ending.get(&ending(path)?)?.iter();
        of_ending.find(|path| !taken.contains(path)).map(String::as_str)
    }
}

fn ending(path: &str) -> Option<String> {
    let (stem, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    (!stem.is_empty() && !ending.is_empty()).then(|| ending.to_ascii_lowercase())
}

/// Whether a path is that of code, or of what may be code, which submissions do not see.
pub(super) fn is_hidden_code(path: &str) -> bool {
    ending(path).is_some_and(|ending| is_code(&ending))
}

fn is_code(ending: &str) -> bool {
    CODE_ENDINGS.contains(&ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_samples_comes_first_and_code_is_none() {
        let files = [
            ("notes.csv", 9),
            ("deep/er/tests/a.csv", 9),
            ("tests/data/b.csv", 9),
            ("tests/empty.csv", 0),
            ("tests/large.csv", LARGEST + 1),
            ("tests/.hidden/c.csv", 9),
            ("tests/a.py", 9),
            ("Makefile", 9),
        ];
        let samples = Samples::new(files.into_iter());
        assert_eq!(samples.like("dogs.csv", &[]), Some("tests/data/b.csv"));
        let taken = ["tests/data/b.csv", "deep/er/tests/a.csv"].map(str::to_owned);
        assert_eq!(samples.like("x/dogs.CSV", &taken), Some("notes.csv"));
        assert_eq!((samples.like("a.py", &[]), samples.like("Makefile", &[])), (None, None));
        assert_eq!(samples.named("data/b.csv"), Some("tests/data/b.csv"));
        assert_eq!((samples.named("ta/b.csv"), samples.named("missing.csv")), (None, None));
        assert!(is_hidden_code("x/a.py") && is_hidden_code("a.ZIP") && !is_hidden_code("a.csv"));
    }

    #[test]
    fn a_name_that_two_files_have_names_none() {
        let samples = Samples::new([("a/x.csv", 1), ("b/x.csv", 1)].into_iter());
        assert_eq!((samples.named("x.csv"), samples.named("a/x.csv")), (None, Some("a/x.csv")));
    }
}
