//! What was found out once, by its key: a journal that is read back as a map.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Lock;
use super::journal::{self, Journal};
use crate::error::{Error, Result};

/// Processes that keep values beside each other.
const MOST_BESIDE: usize = 1000;

/// A row as it is written.
#[derive(Serialize)]
struct Row<'a, T> {
    key: &'a str,
    value: &'a T,
}

/// A row as it is read. Older names of a value are those of the one kind that each journal held.
#[derive(Deserialize)]
struct ReadRow<T> {
    key: String,
    #[serde(alias = "checked", alias = "judged", alias = "variants", alias = "witnessed")]
    value: T,
}

/// Values of type `T` by their keys. Of two with the same key the later one counts.
#[derive(Debug)]
pub struct Memo<T> {
    journal: Journal,
    known: BTreeMap<String, T>,
    /// That nobody else writes to the journal, where others have one beside it.
    _lock: Option<Lock>,
}

impl<T: Serialize + DeserializeOwned> Memo<T> {
    /// Opens (or makes) the journal at `path`, and reads what is in it.
    ///
    /// # Errors
    /// IO errors, with the path.
    pub fn open(path: &Path) -> Result<Self> {
        let (journal, rows) = Journal::open::<ReadRow<T>>(path)?;
        let known = rows.into_iter().map(|row| (row.key, row.value)).collect();
        Ok(Memo { journal, known, _lock: None })
    }

    /// Opens the journals of several processes that keep values at the same time: each writes to a journal of its own, `path` or
    /// `<path>-<n>`, and reads all of them as they are now.
    ///
    /// # Errors
    /// IO errors, with the path.
    pub fn open_beside(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            fs_err::create_dir_all(folder)?;
        }
        let named = |ending: String| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let (mut own, mut known) = (None, BTreeMap::new());
        for number in 0..MOST_BESIDE {
            let place = if number == 0 { path.to_owned() } else { named(format!("-{number}")) };
            let is_there = place.symlink_metadata().is_ok();
            if !is_there && own.is_some() {
                break;
            }
            let lock = if own.is_some() { None } else { Lock::try_file(&place.with_extension("lock"))? };
            let rows = if let Some(lock) = lock {
                let (journal, rows) = Journal::open::<ReadRow<T>>(&place)?;
                own = Some((journal, lock));
                rows
            } else {
                journal::read::<ReadRow<T>>(&place)?
            };
            known.extend(rows.into_iter().map(|row| (row.key, row.value)));
        }
        let (journal, lock) = own.ok_or_else(|| {
            Error::machine(format!("{MOST_BESIDE} processes write beside {}", path.display()))
        })?;
        Ok(Memo { journal, known, _lock: Some(lock) })
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
    fn processes_beside_each_other_write_to_journals_of_their_own_and_read_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/memo");
        let value = |key: &str, value: u32| [(key.to_owned(), value)];
        let mut first = Memo::<u32>::open_beside(&path).unwrap();
        first.extend(value("a", 1)).unwrap();
        let mut second = Memo::<u32>::open_beside(&path).unwrap();
        second.extend(value("b", 2)).unwrap();
        first.extend(value("c", 3)).unwrap();
        assert_eq!((second.get("a"), second.get("c")), (Some(&1), None));
        let third = Memo::<u32>::open_beside(&path).unwrap();
        assert_eq!(third.values().copied().collect::<Vec<_>>(), [1, 2, 3]);
        drop((first, second, third));
        let again = Memo::<u32>::open_beside(&path).unwrap();
        assert_eq!(again.values().copied().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(Memo::<u32>::open(&path).unwrap().values().count(), 2, "the first one is as it was");
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
