//! An append-only journal of JSON lines, each with a checksum over its number and its text: a kill loses at most the line
//! that was being written, and a line that comes again, or in another place, is damage.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::record::id::hash_parts;

/// Hex digits of the checksum in front of each line.
const CHECK_DIGITS: usize = 16;

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: fs_err::File,
    /// Entries in it.
    length: usize,
}

impl Journal {
    /// Opens (or makes) a journal and gives the entries up to the first that is not whole. The rest is cut off: half a
    /// line at the end is what a kill leaves; anything more is damage, and the whole file is kept aside.
    pub fn open<T: DeserializeOwned>(path: &Path) -> Result<(Self, Vec<T>)> {
        if let Some(folder) = path.parent() {
            fs_err::create_dir_all(folder)?;
        }
        let bytes = match super::read_regular(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let (entries, whole) = read_entries(&bytes);
        if bytes[whole..].contains(&b'\n') {
            crate::store::copy_aside(path, &bytes)?;
        }
        let mut options = std::fs::OpenOptions::new();
        let mut file = super::open_regular(path, options.create(true).write(true).truncate(false))?;
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        Ok((Journal { path: path.to_owned(), file, length: entries.len() }, entries))
    }

    /// Appends an entry.
    pub fn append(&mut self, entry: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(entry)
            .map_err(|error| Error::internal("cannot encode a journal entry").with_source(error))?;
        // One write a line, without a buffer: what was appended survives the death of this process.
        let line = format!("{} {text}\n", check(self.length, text.as_bytes()));
        self.file.write_all(line.as_bytes()).map_err(|error| self.trouble(error))?;
        self.length += 1;
        Ok(())
    }

    /// Hands everything to the disk.
    pub fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(Into::into)
    }

    fn trouble(&self, error: std::io::Error) -> Error {
        Error::from(error).at(format!("cannot append to {}", self.path.display()))
    }
}

/// The entries of a journal that nobody writes to any more, up to the first that is not whole; none when there is none.
///
/// # Errors
/// IO errors with action and path.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    match super::read_regular(path) {
        Ok(bytes) => Ok(read_entries(&bytes).0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// What is in front of the line with this number.
fn check(number: usize, text: &[u8]) -> String {
    let mut digits = hash_parts(&[number.to_string().as_bytes(), text]);
    digits.truncate(CHECK_DIGITS);
    digits
}

/// Entries up to the first line that is not whole, or not in its place, and the length of what was read.
fn read_entries<T: DeserializeOwned>(bytes: &[u8]) -> (Vec<T>, usize) {
    let (mut entries, mut whole) = (Vec::new(), 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(entry) = read_entry(entries.len(), line) else { break };
        entries.push(entry);
        whole += line.len();
    }
    (entries, whole)
}

fn read_entry<T: DeserializeOwned>(number: usize, line: &[u8]) -> Option<T> {
    let line = line.strip_suffix(b"\n")?;
    let (digits, text) = line.split_at_checked(CHECK_DIGITS)?;
    let text = text.strip_prefix(b" ")?;
    (check(number, text).as_bytes() == digits).then(|| serde_json::from_slice(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_a_torn_tail_is_cut_off() {
        let folder = tempfile::tempdir().expect("temp dir");
        let path = folder.path().join("a/journal");
        let (mut journal, earlier) = Journal::open::<u32>(&path).expect("opens");
        assert!(earlier.is_empty());
        for number in 0..5_u32 {
            journal.append(&number).expect("appends");
        }
        journal.sync().expect("syncs");
        drop(journal);
        let whole = std::fs::read(&path).expect("reads");
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).expect("writes");
            let (mut journal, entries) = Journal::open::<u32>(&path).expect("opens");
            let expected = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(entries, (0..u32::try_from(expected).unwrap()).collect::<Vec<_>>());
            assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is set aside");
            journal.append(&99_u32).expect("appends");
            journal.sync().expect("syncs");
            let (_, again) = Journal::open::<u32>(&path).expect("opens");
            assert_eq!(again.last(), Some(&99));
        }
    }

    #[test]
    fn a_line_that_is_there_twice_or_in_another_place_ends_the_entries_before_it() {
        let folder = tempfile::tempdir().expect("temp dir");
        let path = folder.path().join("journal");
        let (mut journal, _) = Journal::open::<u32>(&path).expect("opens");
        for number in [1_u32, 2, 3] {
            journal.append(&number).expect("appends");
        }
        let text = std::fs::read_to_string(&path).expect("reads");
        let lines: Vec<&str> = text.lines().collect();
        for (order, left) in [
            (&[0, 0, 1, 2][..], 1),
            (&[0, 1, 2, 0, 1, 2], 3),
            (&[0, 1, 0, 2], 2),
            (&[1, 0, 2], 0),
            (&[0, 2], 1),
        ] {
            let left = &[1, 2, 3][..left];
            let again = order.iter().map(|at| lines[*at]).collect::<Vec<_>>().join("\n") + "\n";
            std::fs::write(&path, again).expect("writes");
            assert_eq!(read::<u32>(&path).expect("reads"), left, "{order:?}");
            let (mut journal, entries) = Journal::open::<u32>(&path).expect("opens");
            assert_eq!(entries, left);
            journal.append(&4_u32).expect("appends");
            assert_eq!(read::<u32>(&path).expect("reads"), [left, &[4]].concat(), "what comes after is kept");
        }
    }

    #[test]
    fn what_is_in_the_place_of_a_journal_and_is_not_one_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("temp dir");
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "mine").expect("writes");
        let places = ["link", "nowhere", "pipe", "folder"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&victim, &places[0]).expect("a link");
        std::os::unix::fs::symlink(folder.path().join("new"), &places[1]).expect("a link");
        nix::unistd::mkfifo(&places[2], nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        std::fs::create_dir(&places[3]).expect("a folder");
        for place in &places {
            let error = Journal::open::<u32>(place).expect_err("is refused");
            assert_eq!(error.fault(), crate::error::Fault::Machine, "{error}");
            assert!(read::<u32>(place).is_err(), "{}", place.display());
        }
        assert_eq!(std::fs::read(&victim).expect("reads"), b"mine");
        assert!(!folder.path().join("new").exists());
    }

    #[test]
    fn durations_come_back_to_the_last_bit() {
        let folder = tempfile::tempdir().expect("temp dir");
        let path = folder.path().join("journal");
        let mut random = fastrand::Rng::with_seed(1);
        let durations: Vec<f64> = (0..2000).map(|_| random.u64(1..1 << 40) as f64 * 1e-6).collect();
        let (mut journal, _) = Journal::open::<f64>(&path).expect("opens");
        for duration in &durations {
            journal.append(duration).expect("appends");
        }
        journal.sync().expect("syncs");
        let (_, read) = Journal::open::<f64>(&path).expect("opens");
        assert!(read == durations);
    }

    #[test]
    fn a_flipped_byte_ends_the_entries_before_it() {
        let folder = tempfile::tempdir().expect("temp dir");
        let path = folder.path().join("journal");
        let (mut journal, _) = Journal::open::<String>(&path).expect("opens");
        for text in ["one", "two", "three"] {
            journal.append(&text).expect("appends");
        }
        journal.sync().expect("syncs");
        let mut bytes = std::fs::read(&path).expect("reads");
        let place = bytes.windows(3).position(|window| window == b"two").expect("is there");
        bytes[place] ^= 1;
        std::fs::write(&path, bytes).expect("writes");
        let before = std::fs::read(&path).expect("reads");
        let (_, entries) = Journal::open::<String>(&path).expect("opens");
        assert_eq!(entries, ["one"]);
        let aside = std::fs::read(folder.path().join("journal.damaged-1")).expect("was set aside");
        assert!(aside == before, "with everything that was in it");
    }
}
