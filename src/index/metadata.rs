//! The metadata that a source distribution carries, where it is fit to be believed without a build.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::METADATA_BYTES;

/// Bytes of an unpacked archive that are read in search of its metadata.
const MOST_UNPACKED: u64 = 1 << 30;

/// The `PKG-INFO` of a source distribution, when it promises that a wheel has the same requirements.
///
/// None as well when the archive is damaged or of a kind that is not read here: building it then says what is wrong.
pub(super) fn of_sdist(path: &Path, filename: &str) -> Option<Vec<u8>> {
    if !filename.ends_with(".tar.gz") && !filename.ends_with(".tgz") {
        return None;
    }
    let file = fs_err::File::open(path).ok()?;
    let text = pkg_info(MultiGzDecoder::new(file)).ok().flatten()?;
    is_static(&text).then_some(text)
}

/// The first `*/PKG-INFO`. Nothing but that file is held in memory: entries that lengthen the names of others, which
/// may be of any size, are passed over like all the rest.
fn pkg_info(unpacked: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut archive = Archive::new(unpacked.take(MOST_UNPACKED));
    for entry in archive.entries()?.raw(true) {
        let entry = entry?;
        let is_file = matches!(entry.header().entry_type(), EntryType::Regular | EntryType::Continuous);
        let is_wanted = {
            let path = entry.path_bytes();
            let path = path.strip_prefix(b"./".as_slice()).unwrap_or(&path);
            let mut parts = path.split(|byte| *byte == b'/');
            matches!((parts.next(), parts.next(), parts.next()), (Some(_), Some(b"PKG-INFO"), None))
        };
        if is_file && is_wanted {
            let mut text = Vec::new();
            entry.take(METADATA_BYTES + 1).read_to_end(&mut text)?;
            return Ok((text.len() as u64 <= METADATA_BYTES).then_some(text));
        }
    }
    Ok(None)
}

/// Whether the fields say that what a wheel requires is settled: version 2.2 at least, none of them dynamic.
fn is_static(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let head = text.lines().take_while(|line| !line.trim().is_empty());
    let fields: Vec<(String, &str)> = head
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
        .collect();
    let all =
        |wanted: &'static str| fields.iter().filter(move |(name, _)| name == wanted).map(|(_, value)| *value);
    let version = all("metadata-version").next().and_then(|version| {
        let (major, minor) = version.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    let is_open = |field: &str| {
        ["requires-dist", "requires-python", "provides-extra"].contains(&field.to_ascii_lowercase().as_str())
    };
    version.is_some_and(|version| version >= (2, 2)) && !all("dynamic").any(is_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, *content).expect("an entry");
        }
        builder.into_inner().expect("an archive")
    }

    fn found(entries: &[(&str, &[u8])]) -> Option<Vec<u8>> {
        pkg_info(archive(entries).as_slice()).expect("a sound archive")
    }

    #[test]
    fn the_pkg_info_below_the_top_folder_is_found_and_no_other() {
        let long = format!("foo-1.0/{}.py", "long".repeat(60));
        let entries: [(&str, &[u8]); 4] = [
            ("foo-1.0/foo.egg-info/PKG-INFO", b"inner"),
            (&long, b"x"),
            ("foo-1.0/PKG-INFO", b"outer"),
            ("x", b""),
        ];
        assert_eq!(found(&entries).as_deref(), Some(b"outer".as_slice()));
        assert_eq!(found(&[("PKG-INFO", b"no folder")]), None);
    }

    #[test]
    fn a_pkg_info_of_absurd_size_is_not_taken() {
        let large = vec![b' '; METADATA_BYTES as usize + 1];
        assert_eq!(found(&[("foo-1.0/PKG-INFO", &large)]), None);
    }

    #[test]
    fn only_settled_metadata_is_believed() {
        assert!(is_static(
            b"Metadata-Version: 2.2\nName: foo\nDynamic: License\nRequires-Dist: x\n\nDynamic: Requires-Dist"
        ));
        assert!(is_static(b"metadata-version: 2.4\r\nName: foo\r\n"));
        for text in [
            "Metadata-Version: 2.1\nName: foo",
            "Metadata-Version: 2.2\nDynamic: requires-dist",
            "Metadata-Version: 2.3\nDynamic: License\nDynamic: Requires-Python",
            "Metadata-Version: 2.2\nDynamic: Provides-Extra",
            "Metadata-Version: two\n",
            "",
        ] {
            assert!(!is_static(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn damaged_archives_and_other_kinds_have_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs_err::write(&path, b"no archive").expect("a file");
        assert_eq!(of_sdist(&path, "foo-1.0.tar.gz"), None);
        assert_eq!(of_sdist(&path, "foo-1.0.zip"), None);
    }
}
