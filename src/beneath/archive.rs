//! Goes through a `.tar.zst` that foreign code may have written, entry by entry. The archive is that of [`tar`]'s GNU kind;
//! the names in it are bounded as a file system bounds them.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use tar::EntryType;

use super::Kind;
use crate::error::{Error, Result};

/// Most bytes that an archive may come to.
pub(crate) const LARGEST: u64 = 16 << 30;
pub(crate) const MOST_ENTRIES: usize = 1_000_000;
/// Longest name, as Linux has it.
const LONGEST_NAME: u64 = 4096;

/// What an archive holds.
pub(crate) struct Member<'a> {
    pub(crate) path: &'a Path,
    pub(crate) kind: &'a Kind,
    pub(crate) mode: u32,
    /// In bytes.
    pub(crate) size: u64,
}

/// Shows each entry, with its content, to `visit`; `name` is what the archive is called in errors.
///
/// # Errors
/// When it is damaged, or comes to more than its bounds, and the errors of `visit`.
pub(crate) fn each(
    packed: impl Read,
    name: &str,
    mut visit: impl FnMut(&Member<'_>, &mut dyn Read) -> Result<()>,
) -> Result<()> {
    let damaged =
        |error: std::io::Error| Error::repository(format!("cannot unpack {name}")).with_source(error);
    let refused = |why: &str| Error::repository(format!("{name} {why}"));
    let unpacked = zstd::Decoder::new(packed).map_err(damaged)?.take(LARGEST);
    let mut archive = tar::Archive::new(unpacked);
    let (mut path, mut target) = (None, None);
    // Raw: otherwise long names are read whole, whatever they claim to be.
    for (number, entry) in archive.entries().map_err(damaged)?.raw(true).enumerate() {
        if number >= MOST_ENTRIES {
            return Err(refused("holds more than a million entries"));
        }
        let mut entry = entry.map_err(damaged)?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::GNULongName | EntryType::GNULongLink) {
            if entry.size() > LONGEST_NAME {
                return Err(refused("holds a name that no file can have"));
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(damaged)?;
            bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
            let long = PathBuf::from(OsString::from_vec(bytes));
            *(if kind == EntryType::GNULongName { &mut path } else { &mut target }) = Some(long);
            continue;
        }
        let header = entry.header();
        let at = match path.take() {
            Some(path) => path,
            None => header.path().map_err(damaged)?.into_owned(),
        };
        let target = target.take().or(header.link_name().map_err(damaged)?.map(std::borrow::Cow::into_owned));
        let kind = match (kind, target) {
            (EntryType::Regular, _) => Kind::File,
            (EntryType::Directory, _) => Kind::Folder,
            (EntryType::Symlink, Some(target)) => Kind::Link(target),
            _ => Kind::Other,
        };
        let mode = header.mode().map_err(damaged)?;
        let member = Member { path: &at, kind: &kind, mode, size: entry.size() };
        visit(&member, &mut entry)?;
    }
    only_padding(archive.into_inner())
        .map_err(damaged)?
        .then_some(())
        .ok_or_else(|| refused("goes on behind its end"))
}

/// Whether nothing but zeros is left.
fn only_padding(mut rest: impl Read) -> std::io::Result<bool> {
    let mut part = vec![0; 1 << 16];
    loop {
        match rest.read(&mut part)? {
            0 => return Ok(true),
            length if part[..length].iter().all(|byte| *byte == 0) => {}
            _ => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_ends_where_it_says_so() {
        let mut packed = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o644);
        packed.append_data(&mut header, "a.py", &b"ab"[..]).unwrap();
        let plain = packed.into_inner().unwrap();
        let read = |bytes: &[u8]| {
            let packed = zstd::encode_all(bytes, 1).unwrap();
            each(&packed[..], "a", |_, _| Ok(())).map_err(|error| error.to_string())
        };
        assert_eq!(read(&plain), Ok(()));
        assert_eq!(read(&[plain.as_slice(), &[0; 10_240]].concat()), Ok(()));
        for rest in [b"x".as_slice(), &plain, &[[0; 9_000].as_slice(), b"x"].concat()] {
            let words = read(&[&plain, rest].concat()).unwrap_err();
            assert!(words.contains("behind its end"), "{words}");
        }
    }

    #[test]
    fn long_names_are_read_and_endless_ones_are_not() {
        let long = format!("{}/x.py", ["folder"; 30].join("/"));
        let mut packed = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o644);
        packed.append_data(&mut header.clone(), &long, &b"ab"[..]).unwrap();
        header.set_size(0);
        header.set_entry_type(EntryType::Symlink);
        packed.append_link(&mut header, "link", &long).unwrap();
        let packed = packed.into_inner().unwrap().finish().unwrap();
        let mut seen = Vec::new();
        each(&packed[..], "a", |member, content| {
            let mut text = String::new();
            content.read_to_string(&mut text).unwrap();
            seen.push((member.path.to_owned(), member.kind.clone(), text));
            Ok(())
        })
        .unwrap();
        let at = PathBuf::from(&long);
        assert_eq!(
            seen,
            [(at.clone(), Kind::File, "ab".to_owned()), ("link".into(), Kind::Link(at), String::new())]
        );

        let mut endless = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::GNULongName);
        header.set_size(1 << 30);
        header.set_cksum();
        endless.append(&header, std::io::repeat(b'a').take(1 << 20)).unwrap();
        let endless = endless.into_inner().unwrap().finish().unwrap();
        let error = each(&endless[..], "a", |_, _| panic!("it has no entry")).unwrap_err();
        assert!(error.to_string().contains("a name that no file can have"), "{error}");
    }
}
