//! Reading a table of the dataset, cell by cell.

mod bounds;

use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use polars::prelude::*;
use serde_json::Value;

use crate::beneath::Folder;
use crate::error::{Error, Fault, OrWhy, Result};
use crate::interrupt;

/// The way out when a table is not whole.
pub const AGAIN: &str = "copy the dataset again, or build it again: what is in the cache is not run again";

/// A table that [`crate::dataset`] wrote.
#[derive(Debug)]
pub struct Table {
    /// Without its ending, from the folder of the dataset.
    name: String,
    frame: DataFrame,
}

/// Which part of a table is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Columns<'a> {
    All,
    Only(&'a [&'a str]),
    But(&'a [&'a str]),
}

impl<'a> Columns<'a> {
    /// These, all when none is named.
    pub(super) fn named(names: &'a [&'a str]) -> Self {
        if names.is_empty() { Columns::All } else { Columns::Only(names) }
    }

    fn of(self, all: Vec<String>) -> Vec<String> {
        let is_named = |names: &[&str], column: &String| names.contains(&column.as_str());
        match self {
            Columns::All => all,
            Columns::Only(names) => names.iter().map(|&one| one.to_owned()).collect(),
            Columns::But(names) => all.into_iter().filter(|column| !is_named(names, column)).collect(),
        }
    }
}

impl Table {
    /// Reads columns of `<name>.parquet` in the folder of a dataset, which nobody vouches for: of all rows, or of as many
    /// from the given one. `expected` is what the manifest says of the number of rows.
    ///
    /// # Errors
    /// Usage errors: it is missing, is not a regular file, is not as gistmill writes it, or would take more memory than a
    /// table of its size does.
    pub(super) fn read(
        (folder, name): (&Folder, &str),
        columns: Columns<'_>,
        part: Option<(usize, usize)>,
        expected: Option<usize>,
    ) -> Result<Self> {
        let place = format!("{name}.parquet");
        let damaged = |why: &str| {
            Error::usage(format!("cannot read {}", folder.path().join(&place).display()))
                .with_detail(why)
                .with_hint(AGAIN)
        };
        let file = file(folder, Path::new(&place))?;
        let shape = unharmed(|| bounds::shape(&file)).and_then(|shape| shape).map_err(|why| damaged(&why))?;
        if let Some(expected) = expected.filter(|expected| *expected != shape.rows()) {
            let rows = shape.rows();
            return Err(damaged(&format!("it has {rows} rows, and manifest.json says {expected}")));
        }
        let mut read: Option<DataFrame> = None;
        for slice in slices(&shape.row_groups, part) {
            interrupt::check()?;
            let one = rows(&file, columns, slice)?.map_err(|why| damaged(&why))?;
            match &mut read {
                None => read = Some(one),
                Some(all) => drop(all.vstack_mut(&one).map_err(|error| damaged(&error.to_string()))?),
            }
        }
        let mut frame = read.ok_or_else(|| damaged("it has no columns"))?;
        if text_bytes(&frame) > shape.room {
            return Err(damaged(&format!("its texts come to more than {} bytes", shape.room)));
        }
        frame.rechunk_mut();
        Ok(Table { name: name.to_owned(), frame })
    }

    /// The columns with their types.
    pub(crate) fn kinds(&self) -> Vec<(&str, &DataType)> {
        self.frame.columns().iter().map(|column| (column.name().as_str(), column.dtype())).collect()
    }

    /// A cell of a column.
    pub(crate) fn value(&self, column: &str, row: usize) -> Value {
        let cell = self.frame.column(column).and_then(|column| column.get(row));
        cell.map_or(Value::Null, value)
    }

    pub fn rows(&self) -> usize {
        self.frame.height()
    }

    fn column<'a, T>(&'a self, column: &str, cast: impl Fn(&'a Column) -> PolarsResult<T>) -> Result<T> {
        self.frame.column(column).and_then(cast).map_err(|error| {
            Error::usage(format!("{}.parquet has no column `{column}` as gistmill writes it", self.name))
                .with_hint("the dataset was written by another version of gistmill: build it again")
                .with_source(error)
        })
    }

    /// What `read` finds in a column, and nothing in every row where the dataset is of a version without it.
    pub(crate) fn if_there<'a, T: Clone>(
        &'a self,
        column: &str,
        read: impl Fn(&'a Self, &str) -> Result<Vec<Option<T>>>,
    ) -> Result<Vec<Option<T>>> {
        if self.frame.column(column).is_ok() { read(self, column) } else { Ok(vec![None; self.rows()]) }
    }

    /// A text column.
    pub fn texts(&self, column: &str) -> Result<Vec<Option<&str>>> {
        Ok(self.column(column, Column::str)?.iter().collect())
    }

    /// A text column without nulls.
    pub fn whole_texts(&self, column: &str) -> Result<Vec<&str>> {
        Ok(self.texts(column)?.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// A column of counts.
    pub fn numbers(&self, column: &str) -> Result<Vec<Option<i64>>> {
        Ok(self.column(column, Column::i64)?.iter().collect())
    }

    /// A column of counts without nulls.
    pub fn whole_numbers(&self, column: &str) -> Result<Vec<i64>> {
        Ok(self.numbers(column)?.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// A column of measurements.
    pub fn reals(&self, column: &str) -> Result<Vec<Option<f64>>> {
        Ok(self.column(column, Column::f64)?.iter().collect())
    }

    /// A column of yes and no; null counts as no.
    pub fn flags(&self, column: &str) -> Result<Vec<bool>> {
        Ok(self.column(column, Column::bool)?.iter().map(Option::unwrap_or_default).collect())
    }

    /// A column of lists of texts; null is empty.
    pub fn lists(&self, column: &str) -> Result<Vec<Vec<String>>> {
        let cells = self.column(column, Column::list)?;
        (0..self.rows()).map(|row| self.list(column, cells.get_as_series(row))).collect()
    }

    /// A column of lists of texts, empty in every row where the dataset is of a version without it.
    pub(crate) fn lists_if_there(&self, column: &str) -> Result<Vec<Vec<String>>> {
        if self.frame.column(column).is_ok() { self.lists(column) } else { Ok(vec![Vec::new(); self.rows()]) }
    }

    /// A column of lists of counts.
    pub fn number_lists(&self, column: &str) -> Result<Vec<Option<Vec<i64>>>> {
        let cells = self.column(column, Column::list)?;
        let list = |cell: Option<Series>| {
            let Some(cell) = cell else { return Ok(None) };
            let numbers = cell.i64().map_err(|error| {
                Error::usage(format!("{}.parquet: `{column}` is not a list of counts", self.name))
                    .with_source(error)
            })?;
            Ok(Some(numbers.iter().flatten().collect()))
        };
        (0..self.rows()).map(|row| list(cells.get_as_series(row))).collect()
    }

    fn list(&self, column: &str, cell: Option<Series>) -> Result<Vec<String>> {
        let Some(cell) = cell else { return Ok(Vec::new()) };
        let texts = cell.str().map_err(|error| {
            Error::usage(format!("{}.parquet: `{column}` is not a list of texts", self.name))
                .with_source(error)
        })?;
        Ok(texts.iter().flatten().map(str::to_owned).collect())
    }
}

/// A cell as JSON; a number that JSON has not is a text.
fn value(cell: AnyValue<'_>) -> Value {
    match cell {
        AnyValue::Null => Value::Null,
        AnyValue::Boolean(flag) => flag.into(),
        AnyValue::String(text) => text.into(),
        AnyValue::StringOwned(text) => text.as_str().into(),
        AnyValue::Int64(number) => number.into(),
        AnyValue::Float64(number) => real(number),
        AnyValue::List(cells) => cells.iter().map(value).collect::<Vec<_>>().into(),
        other => format!("{other:?}").into(),
    }
}

pub(super) fn real(number: f64) -> Value {
    serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
}

/// What `read` gives; an error where the library's reader panics, as it does on some footers that are not whole.
fn unharmed<T>(read: impl FnOnce() -> T) -> std::result::Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            let is_readers = panicked.location().is_some_and(|place| place.file().contains(LIBRARY));
            if is_readers && READING.load(Ordering::SeqCst) > 0 {
                tracing::warn!("a table: {panicked}");
            } else {
                others(panicked);
            }
        }));
    });
    READING.fetch_add(1, Ordering::SeqCst);
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    READING.fetch_sub(1, Ordering::SeqCst);
    read.map_err(|_| "it is not a table".to_owned())
}

/// How many tables are being read: meanwhile a panic of the reader, on whatever thread, is an error of the table.
static READING: AtomicUsize = AtomicUsize::new(0);
/// In the path of the reader's sources.
const LIBRARY: &str = "/polars-";

/// Longest time that the rows of one row group may take: on bytes that are not whole the reader may go round for ever.
const LONGEST: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 60 });
const PAUSE: Duration = Duration::from_millis(50);

/// Rows of one row group, unpacked on a thread of its own, which is left behind where it does not come to its end.
fn rows(file: &File, columns: Columns<'_>, slice: (usize, usize)) -> Result<OrWhy<DataFrame>> {
    let read = || -> PolarsResult<ParquetReader<File>> {
        let mut reader = ParquetReader::new(file.try_clone()?);
        let all = reader.schema()?.iter_names().map(ToString::to_string).collect();
        Ok(reader.with_columns(Some(columns.of(all))).with_slice(Some(slice)))
    };
    let words = |error: PolarsError| error.to_string();
    let reader = match unharmed(read).and_then(|reader| reader.map_err(words)) {
        // A pool of threads would be lost with the thread that goes round.
        Ok(reader) => reader.read_parallel(ParallelStrategy::None),
        Err(why) => return Ok(Err(why)),
    };
    let (sender, receiver) = channel();
    let unpack = move || drop(sender.send(unharmed(|| reader.finish()).and_then(|rows| rows.map_err(words))));
    std::thread::spawn(unpack);
    let started = Instant::now();
    loop {
        match receiver.recv_timeout(PAUSE) {
            Ok(rows) => return Ok(rows),
            Err(RecvTimeoutError::Disconnected) => return Ok(Err("it is not a table".to_owned())),
            Err(RecvTimeoutError::Timeout) if started.elapsed() > LONGEST => {
                return Ok(Err("its rows cannot be unpacked in time".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => interrupt::check()?,
        }
    }
}

/// The rows that are wanted, one row group after the other; at least one slice, for the columns.
fn slices(row_groups: &[usize], part: Option<(usize, usize)>) -> Vec<(usize, usize)> {
    let (from, to) = part.map_or((0, usize::MAX), |(from, rows)| (from, from.saturating_add(rows)));
    let (mut slices, mut start) = (Vec::new(), 0);
    for rows in row_groups {
        let (first, last) = (from.max(start), to.min(start + rows));
        if first < last {
            slices.push((first, last - first));
        }
        start += rows;
    }
    if slices.is_empty() {
        slices.push((0, 0));
    }
    slices
}

/// The length of all texts, each as often as it occurs: in memory equal ones may be one.
fn text_bytes(frame: &DataFrame) -> u64 {
    let texts = |texts: &StringChunked| texts.iter().flatten().map(|text| text.len() as u64).sum::<u64>();
    let column = |column: &Column| match column.dtype() {
        DataType::String => column.str().map_or(0, texts),
        DataType::List(inner) if **inner == DataType::String => column.list().map_or(0, |lists| {
            lists.amortized_iter().flatten().map(|list| list.as_ref().str().map_or(0, texts)).sum()
        }),
        _ => 0,
    };
    frame.columns().iter().map(column).sum()
}

/// A regular file of a dataset.
///
/// # Errors
/// Usage errors: it is missing, or is something else.
pub(super) fn file(folder: &Folder, place: &Path) -> Result<std::fs::File> {
    folder.open_file(place).map_err(|error| error.blame(Fault::Usage).with_hint(AGAIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{schema, write};

    fn of(folder: &Path, columns: &[&str], part: Option<(usize, usize)>) -> Result<Table> {
        Table::read((&Folder::open(folder)?, "instances"), Columns::Only(columns), part, None)
    }

    #[test]
    fn parts_are_the_rows_of_the_whole_across_row_groups() {
        let folder = tempfile::tempdir().unwrap();
        let columns = vec![schema::number("n", |row: &u64| Some(*row)), schema::text("t", |_| Some("text"))];
        write::table(folder.path(), "instances", columns, 0..10_000).unwrap();
        for part in [3_000, 4_096, 9_999, 10_000, 50_000] {
            let mut numbers = Vec::new();
            loop {
                let table = of(folder.path(), &["n"], Some((numbers.len(), part))).unwrap();
                if table.rows() == 0 {
                    break;
                }
                numbers.extend(table.whole_numbers("n").unwrap());
            }
            assert!(numbers.iter().copied().eq(0..10_000), "{part}");
        }
    }

    #[test]
    fn a_column_that_older_datasets_do_not_have_is_empty_in_every_row() {
        let frame = polars::df!("slug" => ["a/b", "c/d"]).expect("is a frame");
        let table = Table { name: "instances".to_owned(), frame };
        assert_eq!(table.lists_if_there("flags").unwrap(), vec![Vec::<String>::new(); 2]);
        assert_eq!(table.if_there("witness", Table::texts).unwrap(), [None, None]);
        assert!(table.lists("flags").unwrap_err().to_string().contains("no column `flags`"));
        assert_eq!(table.whole_texts("slug").unwrap(), ["a/b", "c/d"]);
    }
}
