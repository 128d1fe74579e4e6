//! The metadata inside a wheel, found with few reads: a wheel is a zip archive, whose list of files is at its end.

use std::io::{self, Read};

use flate2::read::DeflateDecoder;

use super::METADATA_BYTES;

/// Bytes at the end of a wheel that are read first. They mostly hold the list of files and, since builders put it last,
/// the metadata as well.
pub(super) const TAIL_BYTES: u64 = 64 << 10;

/// Bytes of a list of files that are read at most.
const LIST_BYTES: u64 = 32 << 20;
/// A local header repeats the name and has some other extra field; so much of the latter is expected.
const EXTRA_BYTES: u64 = 1 << 10;

/// A part of a file, of which parts can be had.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Where in the file it starts.
    pub start: u64,
    /// Bytes of the whole file.
    pub total: u64,
    pub bytes: Vec<u8>,
}

impl Part {
    fn slice(&self, start: u64, length: u64) -> Option<&[u8]> {
        let from = usize::try_from(start.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..from.checked_add(usize::try_from(length).ok()?)?)
    }
}

/// The file `*.dist-info/METADATA` of a wheel whose end is known; `read` reads more of it, from a byte on, so many.
///
/// # Errors
/// Those of `read`. None when the wheel is damaged or of a form that no builder makes.
pub(super) fn metadata<E>(
    tail: &Part,
    read: &mut dyn FnMut(u64, u64) -> Result<Vec<u8>, E>,
) -> Result<Option<Vec<u8>>, E> {
    let mut get = |start: u64, length: u64| match tail.slice(start, length) {
        Some(bytes) => Ok(bytes.to_vec()),
        None => read(start, length),
    };
    let Some((start, length)) = list_place(tail) else { return Ok(None) };
    let list = get(start, length)?;
    let Some(entry) = find(&list) else { return Ok(None) };
    let wanted = 30 + entry.name + EXTRA_BYTES + entry.packed;
    let length = wanted.min(start.saturating_sub(entry.offset));
    let bytes = get(entry.offset, length)?;
    Ok(unpack(&bytes, &entry))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let digits = bytes.get(at..at + N)?;
    Some(digits.iter().rev().fold(0, |number, digit| number << 8 | u64::from(*digit)))
}

/// Start and length of the list of files.
fn list_place(tail: &Part) -> Option<(u64, u64)> {
    let end = tail.bytes.windows(4).rposition(|bytes| bytes == b"PK\x05\x06")?;
    let (length, start) = (number::<4>(&tail.bytes, end + 12)?, number::<4>(&tail.bytes, end + 16)?);
    (length <= LIST_BYTES && start + length <= tail.total).then_some((start, length))
}

struct Entry {
    is_deflated: bool,
    /// Bytes of it in the archive.
    packed: u64,
    /// Bytes of its name.
    name: u64,
    offset: u64,
}

fn find(list: &[u8]) -> Option<Entry> {
    let mut rest = list;
    while rest.starts_with(b"PK\x01\x02") {
        let [name, extra, comment] =
            [number::<2>(rest, 28)?, number::<2>(rest, 30)?, number::<2>(rest, 32)?].map(|n| n as usize);
        let path = rest.get(46..46 + name)?;
        let folder = path.strip_suffix(b".dist-info/METADATA".as_slice());
        if folder.is_some_and(|folder| !folder.contains(&b'/')) {
            let packed = number::<4>(rest, 20).filter(|packed| *packed <= METADATA_BYTES)?;
            let is_deflated = match number::<2>(rest, 10)? {
                0 => false,
                8 => true,
                _ => return None,
            };
            return Some(Entry { is_deflated, packed, name: name as u64, offset: number::<4>(rest, 42)? });
        }
        rest = rest.get(46 + name + extra + comment..)?;
    }
    None
}

fn unpack(bytes: &[u8], entry: &Entry) -> Option<Vec<u8>> {
    if !bytes.starts_with(b"PK\x03\x04") {
        return None;
    }
    let start = 30 + number::<2>(bytes, 26)? as usize + number::<2>(bytes, 28)? as usize;
    let packed = bytes.get(start..start + entry.packed as usize)?;
    if !entry.is_deflated {
        return Some(packed.to_vec());
    }
    let mut text = Vec::new();
    let unpacked = DeflateDecoder::new(packed).take(METADATA_BYTES + 1).read_to_end(&mut text);
    (unpacked.is_ok() && text.len() as u64 <= METADATA_BYTES).then_some(text)
}

/// The metadata in a wheel of this machine.
pub(super) fn of_file(path: &std::path::Path) -> io::Result<Option<Vec<u8>>> {
    use std::os::unix::fs::FileExt;
    let file = fs_err::File::open(path)?;
    let total = file.metadata()?.len();
    let read = |start: u64, length: u64| -> io::Result<Vec<u8>> {
        let length = length.min(total.saturating_sub(start));
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.file().read_exact_at(&mut bytes, start)?;
        Ok(bytes)
    };
    let start = total.saturating_sub(TAIL_BYTES);
    let tail = Part { start, total, bytes: read(start, TAIL_BYTES)? };
    metadata(&tail, &mut |start, length| read(start, length))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use super::*;

    /// A zip archive of `(name, content)`; deflated when so wished.
    pub(in super::super) fn archive(files: &[(&str, &[u8])], deflated: bool) -> Vec<u8> {
        let (mut archive, mut list) = (Vec::new(), Vec::new());
        for (name, content) in files {
            let packed = if deflated {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(content).expect("packed");
                encoder.finish().expect("packed")
            } else {
                content.to_vec()
            };
            let method: u16 = if deflated { 8 } else { 0 };
            let offset = archive.len() as u32;
            let mut common = vec![20, 0, 0, 0];
            common.extend(method.to_le_bytes());
            common.extend([0; 8]);
            common.extend((packed.len() as u32).to_le_bytes());
            common.extend((content.len() as u32).to_le_bytes());
            common.extend((name.len() as u16).to_le_bytes());
            archive.extend(b"PK\x03\x04");
            archive.extend(&common);
            archive.extend([2, 0]);
            archive.extend(name.as_bytes());
            archive.extend([7, 7]);
            archive.extend(packed);
            list.extend(b"PK\x01\x02\x14\x00");
            list.extend(&common);
            list.extend([0; 12]);
            list.extend(offset.to_le_bytes());
            list.extend(name.as_bytes());
        }
        let start = archive.len() as u32;
        archive.extend(&list);
        archive.extend(b"PK\x05\x06\0\0\0\0\0\0\0\0");
        archive.extend((list.len() as u32).to_le_bytes());
        archive.extend(start.to_le_bytes());
        archive.extend([0, 0]);
        archive
    }

    /// What is found with so many bytes at the end, and the number of further reads.
    fn found(wheel: &[u8], tail: usize) -> (Option<Vec<u8>>, usize) {
        let start = wheel.len().saturating_sub(tail);
        let part = Part { start: start as u64, total: wheel.len() as u64, bytes: wheel[start..].to_vec() };
        let mut reads = 0;
        let text = metadata(&part, &mut |start, length| {
            reads += 1;
            let (start, length) = (start as usize, length as usize);
            wheel.get(start..start + length).map(<[u8]>::to_vec).ok_or("outside")
        });
        (text.expect("parts of the wheel"), reads)
    }

    #[test]
    fn the_metadata_is_found_wherever_it_lies() {
        let large = vec![1; 5000];
        let files: [(&str, &[u8]); 4] = [
            ("foo/vendored/bar.dist-info/METADATA", b"inner"),
            ("foo-1.dist-info/METADATA", b"Name: foo"),
            ("foo/data", &large),
            ("foo-1.dist-info/RECORD", b""),
        ];
        for deflated in [false, true] {
            let wheel = archive(&files, deflated);
            for (tail, reads) in [(wheel.len() + 9, 0), (400, 1), (60, 2)] {
                assert_eq!(found(&wheel, tail), (Some(b"Name: foo".to_vec()), reads), "{tail}");
            }
        }
    }

    #[test]
    fn damaged_and_hostile_wheels_have_none() {
        let wheel = archive(&[("foo-1.dist-info/METADATA", b"Name: foo")], false);
        assert_eq!(found(&archive(&[("foo.py", b"")], false), 4096).0, None);
        assert_eq!(found(b"no archive", 4096).0, None);
        for index in 0..wheel.len() {
            for byte in [0, 0xff] {
                let mut damaged = wheel.clone();
                damaged[index] = byte;
                // Whatever comes of it: no panic, and nothing read outside.
                let part = Part { start: 0, total: damaged.len() as u64, bytes: damaged };
                let _ = metadata(&part, &mut |_, length| {
                    if length < 1 << 26 { Err("outside") } else { panic!("{length}") }
                });
            }
        }
        let bomb = archive(&[("foo-1.dist-info/METADATA", &vec![b' '; METADATA_BYTES as usize + 1])], true);
        assert_eq!(found(&bomb, 1 << 20).0, None);
    }
}
