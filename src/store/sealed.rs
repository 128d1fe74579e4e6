//! Sealed artifacts: JSON with the hash of its own content, so that one that was cut, or in which bytes changed, is
//! recognised. What is not whole is set aside under another name, never deleted, and made again by whoever owns it.
//!
//! ```text
//! {"sha256":"<of the content's text>","content":…}
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::record::id::sha256_hex;

/// What is put in the name of something that was set aside.
pub const DAMAGED: &str = "damaged";

#[derive(Deserialize)]
struct Envelope<'a> {
    sha256: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

/// The text of a value with its hash.
///
/// # Errors
/// When the value cannot be encoded, which is a bug.
pub fn seal(value: &impl Serialize) -> Result<Vec<u8>> {
    let content = serde_json::to_string(value)
        .map_err(|error| Error::internal("cannot encode an artifact").with_source(error))?;
    Ok(format!("{{\"sha256\":\"{}\",\"content\":{content}}}\n", sha256_hex(content.as_bytes())).into_bytes())
}

/// The value in a sealed text; none when a byte of it is not what was written.
pub fn unseal<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let envelope: Envelope<'_> = serde_json::from_slice(bytes).ok()?;
    let content = envelope.content.get();
    (sha256_hex(content.as_bytes()) == envelope.sha256).then(|| serde_json::from_str(content).ok()).flatten()
}

/// Writes a value with its hash: aside, synced, renamed.
pub fn write_sealed(path: &Path, value: &impl Serialize) -> Result<()> {
    super::write_atomic(path, &seal(value)?)
}

/// Writes a value with its hash where nothing is yet; what another process wrote first stays.
///
/// # Errors
/// IO errors with action and path.
pub fn write_sealed_once(path: &Path, value: &impl Serialize) -> Result<()> {
    let folder = path.parent().ok_or_else(|| Error::internal(format!("{} has no folder", path.display())))?;
    let cannot = |error: std::io::Error| Error::from(error).at(format!("cannot write {}", path.display()));
    let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(folder).map_err(cannot)?;
    file.write_all(&seal(value)?).and_then(|()| file.as_file().sync_all()).map_err(cannot)?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => Err(cannot(error.error)),
        _ => Ok(()),
    }
}

/// What is at the place of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sealed<T> {
    Missing,
    Whole(T),
    /// Something that [`write_sealed`] did not write, or not like this.
    Damaged,
}

/// Looks for an artifact.
///
/// # Errors
/// IO errors other than "not found".
pub fn find_sealed<T: DeserializeOwned>(path: &Path) -> Result<Sealed<T>> {
    match fs_err::read(path) {
        Ok(bytes) => Ok(unseal(&bytes).map_or(Sealed::Damaged, Sealed::Whole)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Sealed::Missing),
        Err(error) => Err(error.into()),
    }
}

/// Reads an artifact; one that is damaged is set aside and counts as missing.
pub fn read_sealed<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match find_sealed(path)? {
        Sealed::Whole(value) => Ok(Some(value)),
        Sealed::Missing => Ok(None),
        Sealed::Damaged => {
            set_aside(path)?;
            Ok(None)
        }
    }
}

/// Gives a file or directory another name beside its own, and says so on stderr.
pub fn set_aside(path: &Path) -> Result<PathBuf> {
    let place = free_name(path);
    fs_err::rename(path, &place)?;
    announce(path, &place);
    Ok(place)
}

/// Writes a copy of these bytes beside a file that goes on to be used, and says so on stderr.
pub fn copy_aside(path: &Path, bytes: &[u8]) -> Result<PathBuf> {
    let place = free_name(path);
    super::write_atomic(&place, bytes)?;
    announce(path, &place);
    Ok(place)
}

fn announce(path: &Path, place: &Path) {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let said = format!("{} is damaged: set aside as {name}, and made again", path.display());
    tracing::warn!("{said}");
    crate::terminal::warn(&said);
}

/// `<name>.damaged-<n>`, the first that is free.
fn free_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = |number: u32| path.with_file_name(format!("{name}.{DAMAGED}-{number}"));
    (1..u32::MAX).map(numbered).find(|place| place.symlink_metadata().is_err()).unwrap_or_else(|| numbered(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn value() -> BTreeMap<String, Vec<f64>> {
        [("é \" \\".to_owned(), vec![1.5, -0.0, 1e300]), (String::new(), Vec::new())].into()
    }

    #[test]
    fn values_come_back_and_every_changed_bit_and_every_cut_is_seen() {
        let sealed = seal(&value()).unwrap();
        assert_eq!(unseal(&sealed), Some(value()));
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut changed = sealed.clone();
                changed[at] ^= 1 << bit;
                // Blanks around the value carry nothing.
                let found: Option<BTreeMap<String, Vec<f64>>> = unseal(&changed);
                assert!(found.is_none() || found == Some(value()), "byte {at}, bit {bit}");
                assert!(found.is_none() || at == sealed.len() - 1, "byte {at}, bit {bit}");
            }
            let cut: Option<BTreeMap<String, Vec<f64>>> = unseal(&sealed[..at]);
            assert!(cut.is_none() || at == sealed.len() - 1, "cut at {at}");
        }
    }

    #[test]
    fn what_is_damaged_is_set_aside_and_counts_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        assert_eq!(read_sealed::<u32>(&path).unwrap(), None);
        for number in 1..=2 {
            write_sealed(&path, &7_u32).unwrap();
            assert_eq!(read_sealed::<u32>(&path).unwrap(), Some(7));
            fs_err::write(&path, format!("{number}")).unwrap();
            assert_eq!(read_sealed::<u32>(&path).unwrap(), None);
            let aside = folder.path().join(format!("a.json.damaged-{number}"));
            assert_eq!(fs_err::read_to_string(aside).unwrap(), number.to_string());
            assert!(!path.exists());
        }
    }
}
