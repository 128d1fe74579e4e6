//! What a Parquet file would take in memory, added up from its footer and the heads of its pages before anything of it is
//! unpacked: a small file can claim any number of rows, and unpack to any size.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "their type is not one of a direct dependency"
)]

use std::fs::File;
use std::io::{BufReader, Cursor, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use polars::io::parquet::read::ParquetReader;
use polars::prelude::SerReader;
use polars_parquet_format::PageHeader;
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;

use crate::interrupt;

/// What every table may take, in bytes.
const FREE: u64 = 1 << 30;
/// Beyond that a table may take so many times its size.
const MOST_TIMES: u64 = 256;
/// What a cell takes, in bytes, beside its text.
const CELL: u64 = 16;
/// Largest footer, in bytes.
const LARGEST_FOOTER: u64 = 64 << 20;
/// Most rows that are unpacked together: what waits for Ctrl-C waits for them.
const MOST_ROWS: usize = 1 << 18;
/// Largest head of a page, in bytes.
const LARGEST_HEAD: usize = 1 << 20;

/// Rows of the row groups, one after the other, and what the table may take.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) row_groups: Vec<usize>,
    pub(super) room: u64,
}

impl Shape {
    pub(super) fn rows(&self) -> usize {
        self.row_groups.iter().sum()
    }
}

/// Looks at a file; the text says what is wrong with it.
///
/// # Errors
/// What is wrong with it; an interruption is found by whoever unpacks.
pub(super) fn shape(file: &File) -> Result<Shape, String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let size = file.metadata().map_err(|error| words(&error))?.len();
    let mut end = [0; 8];
    let at = size.checked_sub(8).ok_or("it is too short for a table")?;
    file.read_exact_at(&mut end, at).map_err(|error| words(&error))?;
    let footer = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    if end[4..] != *b"PAR1" || footer > LARGEST_FOOTER || footer > at {
        return Err("it does not end as a table does".to_owned());
    }
    let room = FREE.max(size.saturating_mul(MOST_TIMES));
    let mut reader = ParquetReader::new(file.try_clone().map_err(|error| words(&error))?);
    let metadata = reader.get_metadata().map_err(|error| words(&error))?;
    let row_groups: Vec<usize> = metadata.row_groups.iter().map(|group| group.num_rows()).collect();
    if let Some(rows) = row_groups.iter().find(|rows| **rows > MOST_ROWS) {
        return Err(format!("{rows} rows are packed together, and {MOST_ROWS} may be"));
    }
    let sum = row_groups.iter().try_fold(0_usize, |sum, rows| sum.checked_add(*rows));
    if sum != Some(metadata.num_rows) {
        return Err("its numbers of rows contradict each other".to_owned());
    }
    let mut taken = 0_u64;
    for column in metadata.row_groups.iter().flat_map(|group| group.parquet_columns()) {
        if interrupt::requested() {
            break;
        }
        // What it is said to start with may be without meaning.
        let start = column
            .dictionary_page_offset()
            .map_or(column.data_page_offset(), |dictionary| dictionary.min(column.data_page_offset()));
        let (start, length) = (u64::try_from(start).ok(), u64::try_from(column.compressed_size()).ok());
        let place = start
            .zip(length)
            .filter(|(start, length)| start.checked_add(*length).is_some_and(|end| end <= size));
        let Some((start, length)) = place else { return Err("a column is outside of the file".to_owned()) };
        let values = u64::try_from(column.num_values()).unwrap_or(u64::MAX);
        taken = taken.saturating_add(values.saturating_mul(CELL)).saturating_add(pages(file, start, length)?);
        if taken > room {
            return Err(format!("it unpacks to more than {room} bytes"));
        }
    }
    Ok(Shape { row_groups, room })
}

/// What the pages of a column take, unpacked.
fn pages(file: &File, start: u64, length: u64) -> Result<u64, String> {
    let mut place = BufReader::with_capacity(4096, Part { file, next: start, end: start + length });
    let (mut taken, mut left) = (0_u64, length);
    while left > 0 {
        let mut head = TCompactInputProtocol::new(&mut place, LARGEST_HEAD);
        let head = PageHeader::read_from_in_protocol(&mut head)
            .map_err(|error| format!("a page has no head that can be read: {error}"))?;
        let size = |bytes: i32| u64::try_from(bytes).map_err(|_| "a page has a size below zero".to_owned());
        let (packed, unpacked) = (size(head.compressed_page_size)?, size(head.uncompressed_page_size)?);
        let values = head.data_page_header.as_ref().map(|one| one.num_values);
        let values = values.or(head.data_page_header_v2.as_ref().map(|one| one.num_values));
        taken = taken.saturating_add(unpacked).saturating_add(CELL * size(values.unwrap_or(0))?);
        let skip = i64::try_from(packed).map_err(|_| "a page has no size".to_owned())?;
        place.seek_relative(skip).map_err(|error| error.to_string())?;
        let at = place.stream_position().map_err(|error| error.to_string())?;
        left = (start + length).checked_sub(at).ok_or("a page leads out of its column")?;
    }
    Ok(taken)
}

/// A part of a file.
struct Part<'f> {
    file: &'f File,
    next: u64,
    end: u64,
}

impl std::io::Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.next)).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        let read = self.file.read_at(&mut buffer[..wanted], self.next)?;
        self.next += read as u64;
        Ok(read)
    }
}

impl Seek for Part<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let mut place = Cursor::new([0_u8; 0]);
        place.set_position(self.next);
        self.next = match to {
            SeekFrom::Current(_) => place.seek(to)?,
            SeekFrom::Start(at) => at,
            SeekFrom::End(_) => return Err(std::io::ErrorKind::Unsupported.into()),
        };
        Ok(self.next)
    }
}
