//! Reading a table of the dataset, cell by cell.

use std::path::Path;

use polars::prelude::*;

use crate::error::{Error, Result};

/// The way out when a table is not whole.
pub const AGAIN: &str = "build the dataset again: what is in the cache is not run again";

/// A table that [`crate::dataset`] wrote.
#[derive(Debug)]
pub struct Table {
    name: &'static str,
    frame: DataFrame,
}

impl Table {
    /// Reads the named columns, all when none is named.
    pub fn read(directory: &Path, name: &'static str, columns: &[&str]) -> Result<Self> {
        Self::read_some(directory, name, None, |all| {
            if columns.is_empty() { all } else { columns.iter().map(|&one| one.to_owned()).collect() }
        })
    }

    /// Reads the named columns of at most as many rows, from the given one; none where there are no more.
    pub fn read_part(
        directory: &Path,
        name: &'static str,
        columns: &[&str],
        (from, rows): (usize, usize),
    ) -> Result<Option<Self>> {
        let part = Self::read_some(directory, name, Some((from, rows)), |_| {
            columns.iter().map(|&one| one.to_owned()).collect()
        })?;
        Ok(Some(part).filter(|part| part.rows() > 0))
    }

    /// Reads all columns but these.
    pub fn read_but(directory: &Path, name: &'static str, columns: &[&str]) -> Result<Self> {
        Self::read_some(directory, name, None, |mut all| {
            all.retain(|column| !columns.contains(&column.as_str()));
            all
        })
    }

    /// Reads those of all columns that `some` gives, of all rows or of as many from the given one.
    fn read_some(
        directory: &Path,
        name: &'static str,
        part: Option<(usize, usize)>,
        some: impl Fn(Vec<String>) -> Vec<String>,
    ) -> Result<Self> {
        let path = directory.join(format!("{name}.parquet"));
        let file = fs_err::File::open(&path).map_err(|error| Error::from(error).with_hint(AGAIN))?;
        let mut reader = ParquetReader::new(file.into_file());
        let frame = reader.schema().and_then(|schema| {
            let all = schema.iter_names().map(ToString::to_string).collect();
            reader.with_columns(Some(some(all))).with_slice(part).finish()
        });
        let mut frame = frame.map_err(|error| {
            Error::machine(format!("cannot read {}", path.display())).with_source(error).with_hint(AGAIN)
        })?;
        frame.rechunk_mut();
        Ok(Table { name, frame })
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

    /// A column of yes and no; null is no.
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
                Error::usage(format!("{}.parquet: `{column}` is no list of counts", self.name))
                    .with_source(error)
            })?;
            Ok(Some(numbers.iter().flatten().collect()))
        };
        (0..self.rows()).map(|row| list(cells.get_as_series(row))).collect()
    }

    fn list(&self, column: &str, cell: Option<Series>) -> Result<Vec<String>> {
        let Some(cell) = cell else { return Ok(Vec::new()) };
        let texts = cell.str().map_err(|error| {
            Error::usage(format!("{}.parquet: `{column}` is no list of texts", self.name)).with_source(error)
        })?;
        Ok(texts.iter().flatten().map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{schema, write};

    #[test]
    fn parts_are_the_rows_of_the_whole_across_row_groups() {
        let folder = tempfile::tempdir().unwrap();
        let columns = vec![schema::number("n", |row: &u64| Some(*row)), schema::text("t", |_| Some("text"))];
        write::table(folder.path(), "instances", columns, 0..10_000).unwrap();
        for part in [3_000, 4_096, 9_999, 10_000, 50_000] {
            let mut numbers = Vec::new();
            while let Some(table) =
                Table::read_part(folder.path(), "instances", &["n"], (numbers.len(), part)).unwrap()
            {
                numbers.extend(table.whole_numbers("n").unwrap());
            }
            assert!(numbers.iter().copied().eq(0..10_000), "{part}");
        }
    }

    #[test]
    fn a_column_that_older_datasets_do_not_have_is_empty_in_every_row() {
        let frame = polars::df!("slug" => ["a/b", "c/d"]).expect("is a frame");
        let table = Table { name: "instances", frame };
        assert_eq!(table.lists_if_there("flags").unwrap(), vec![Vec::<String>::new(); 2]);
        assert_eq!(table.if_there("witness", Table::texts).unwrap(), [None, None]);
        assert!(table.lists("flags").unwrap_err().to_string().contains("no column `flags`"));
        assert_eq!(table.whole_texts("slug").unwrap(), ["a/b", "c/d"]);
    }
}
