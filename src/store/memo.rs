//! What was found out once, by its key: a journal that is read back as a map.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::journal::Journal;
use crate::error::Result;

/// A row as it is written.
#[derive(Serialize)]
struct Row<'a, T> {
    key: &'a str,
    value: &'a T,
}

/// A row as it is read. Older names of a value are those of the one kind that each journal held.
#[derive(Deserialize)]
struct Kept<T> {
    key: String,
    #[serde(alias = "checked", alias = "judged", alias = "variants", alias = "witnessed")]
    value: T,
}

/// Values of type `T` by their keys. Of two with the same key the later one counts.
#[derive(Debug)]
pub struct Memo<T> {
    journal: Journal,
    known: BTreeMap<String, T>,
}

impl<T: Serialize + DeserializeOwned> Memo<T> {
    /// Opens (or makes) the journal at `path`, and reads what is in it.
    ///
    /// # Errors
    /// IO errors, with the path.
    pub fn open(path: &Path) -> Result<Self> {
        let (journal, rows) = Journal::open::<Kept<T>>(path)?;
        Ok(Memo { journal, known: rows.into_iter().map(|row| (row.key, row.value)).collect() })
    }

    pub fn get(&self, key: &str) -> Option<&T> {
        self.known.get(key)
    }

    /// All values, in the order of their keys.
    pub fn values(&self) -> std::collections::btree_map::Values<'_, String, T> {
        self.known.values()
    }

    /// Keeps values, which are on the disk when this returns: a portion of the work, so that whoever stops it loses no
    /// more than one.
    ///
    /// # Errors
    /// IO errors, with the path.
    pub fn extend(&mut self, values: impl IntoIterator<Item = (String, T)>) -> Result<()> {
        for (key, value) in values {
            self.journal.append(&Row { key: &key, value: &value })?;
            self.known.insert(key, value);
        }
        self.journal.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_there_again_and_the_later_value_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/memo");
        let mut memo = Memo::<u32>::open(&path).unwrap();
        memo.extend([("a".to_owned(), 1), ("b".to_owned(), 2)]).unwrap();
        memo.extend([("a".to_owned(), 3)]).unwrap();
        assert_eq!(memo.get("a"), Some(&3));
        let again = Memo::<u32>::open(&path).unwrap();
        assert_eq!((again.get("a"), again.get("c")), (Some(&3), None));
        assert_eq!(again.values().copied().collect::<Vec<_>>(), [3, 2]);
    }

    #[test]
    fn journals_with_the_older_names_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores");
        let (mut journal, _) = Journal::open::<serde_json::Value>(&path).unwrap();
        journal.append(&serde_json::json!({"key": "a", "judged": 7})).unwrap();
        assert_eq!(Memo::<u32>::open(&path).unwrap().get("a"), Some(&7));
    }
}
