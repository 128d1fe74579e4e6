//! Tables, texts and copied files into a directory. The only part of the dataset that writes.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::PoisonError;

use polars::prelude::*;

use super::assemble::Assembled;
use super::{rows, schema, witnesses};
use crate::error::{Error, Result};
use crate::record::id::InstanceId;
use crate::record::instance::Instance;
use crate::record::witness::Witness;

/// Rows of a row group: fixed, so that the bytes depend on the rows alone.
const ROW_GROUP: usize = 8_192;

/// Writes every table. One at a time, so that only one is in memory.
///
/// # Errors
/// IO errors with the path.
pub fn tables(folder: &Path, assembled: &Assembled<'_>) -> Result<()> {
    instances(folder, "instances", (0..assembled.instances.len()).map(|at| assembled.whole(at)))?;
    table(folder, "groups", &schema::groups(), rows::groups(assembled))?;
    table(folder, "cases", &schema::cases(), rows::cases(assembled))?;
    table(folder, "attempts", &schema::attempts(), rows::attempts(assembled))?;
    table(folder, "traces", &schema::traces(), rows::traces(assembled))?;
    let all = assembled.repositories.iter().flat_map(|one| one.witnesses.clone());
    let witnesses: BTreeMap<InstanceId, Witness> = all.collect();
    if witnesses.is_empty() { Ok(()) } else { witnesses::files(folder, &witnesses) }
}

/// Writes `<name>.parquet`.
///
/// The Parquet schema alone says what the columns are: every reader makes its own plain text and lists of it. The Arrow
/// schema that polars would add names its types (views, large lists), which pandas and older readers refuse.
///
/// # Errors
/// IO errors with the path.
pub fn table<R>(
    folder: &Path,
    name: &str,
    columns: &[schema::ColumnOf<R>],
    rows: impl IntoIterator<Item: Borrow<R>>,
) -> Result<()> {
    let path = folder.join(format!("{name}.parquet"));
    // The Parquet writer writes names and lengths one by one.
    let mut file = BufWriter::new(Remembering { inner: fs_err::File::create(&path)?, error: None });
    let finished = parquet(columns, rows, &mut file).and_then(|()| Ok(file.flush()?));
    if let Some(error) = file.get_mut().error.take() {
        return Err(error.into());
    }
    finished
        .map_err(|error| Error::machine(format!("cannot write {}", path.display())).with_source(error))?;
    Ok(file.get_ref().inner.sync_all()?)
}

/// The same in memory.
///
/// # Errors
/// When polars refuses the table, which is a bug.
pub fn table_bytes<R>(columns: &[schema::ColumnOf<R>], rows: &[R]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    parquet(columns, rows, &mut bytes)
        .map_err(|error| Error::internal("cannot encode a table").with_source(error))?;
    Ok(bytes)
}

/// Only the rows of one row group are in memory.
fn parquet<R>(
    columns: &[schema::ColumnOf<R>],
    rows: impl IntoIterator<Item: Borrow<R>>,
    file: impl std::io::Write,
) -> PolarsResult<()> {
    let options =
        ParquetWriteOptions { compression: ParquetCompression::Zstd(None), ..ParquetWriteOptions::default() };
    let mut writer = options.to_writer(file).batched(schema::frame::<R, &R>(columns, &[])?.schema())?;
    let mut rows = rows.into_iter();
    loop {
        let batch: Vec<_> = rows.by_ref().take(ROW_GROUP).collect();
        if batch.is_empty() {
            break;
        }
        writer.write_batch(&schema::frame(columns, &batch)?)?;
    }
    let no_metadata = Some(Vec::new());
    writer.get_writer().lock().unwrap_or_else(PoisonError::into_inner).end(no_metadata)?;
    Ok(())
}

/// A writer that keeps the operating system's first error: the Parquet writer replaces it by words of its own.
struct Remembering<W> {
    inner: W,
    error: Option<std::io::Error>,
}

impl<W> Remembering<W> {
    fn noted<T>(&mut self, result: std::io::Result<T>) -> std::io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            self.error.get_or_insert(error);
            kind.into()
        })
    }
}

impl<W: std::io::Write> std::io::Write for Remembering<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.inner.flush();
        self.noted(flushed)
    }
}

/// Writes instances to `<name>.parquet` and, one JSON object a line, to `<name>.jsonl`. Only those of one row group are in
/// memory.
///
/// # Errors
/// IO errors with the path; the first of the instances'; one that cannot be encoded, which is a bug.
pub fn instances(
    folder: &Path,
    name: &str,
    instances: impl IntoIterator<Item = Result<Instance>>,
) -> Result<()> {
    let mut lines = BufWriter::new(fs_err::File::create(folder.join(format!("{name}.jsonl")))?);
    let mut trouble = None;
    let mut written = |instance: Instance| {
        let line = serde_json::to_string(&instance)
            .map_err(|error| Error::internal("cannot encode an instance").with_source(error))?;
        writeln!(lines, "{line}")?;
        Ok(instance)
    };
    let rows = instances
        .into_iter()
        .map_while(|one| one.and_then(&mut written).map_err(|error| trouble = Some(error)).ok());
    let written = table(folder, name, &schema::instances(), rows);
    trouble.map_or(written, Err)?;
    lines.flush()?;
    Ok(lines.get_ref().sync_all()?)
}

/// Writes a text file and syncs it.
///
/// # Errors
/// IO errors with the path.
pub fn text(path: &Path, text: &str) -> Result<()> {
    let mut file = fs_err::File::create(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file.sync_all()?)
}

/// Copies what each environment was built from to `environments/<owner>__<name>/`; regular files only.
///
/// # Errors
/// IO errors with the path.
pub fn environments(folder: &Path, assembled: &Assembled<'_>) -> Result<()> {
    let all = folder.join("environments");
    fs_err::create_dir_all(&all)?;
    for repository in &assembled.repositories {
        let target = all.join(repository.record.pinned.slug.file_name());
        copy_files(&repository.record.built.recipe_dir, &target)?;
    }
    Ok(())
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs_err::create_dir_all(to)?;
    for entry in walkdir::WalkDir::new(from).min_depth(1).sort_by_file_name() {
        let entry = entry.map_err(|error| {
            Error::machine(format!("cannot read the recipe in {}", from.display())).with_source(error)
        })?;
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target)?;
        } else if entry.file_type().is_file() {
            fs_err::write(&target, fs_err::read(entry.path())?)?;
        }
    }
    Ok(())
}
