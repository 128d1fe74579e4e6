//! Tables, texts and copied files into a directory. The only part of the dataset that writes.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::PoisonError;

use polars::io::parquet::write::BatchedWriter;
use polars::prelude::*;

use super::assemble::{Assembled, Repository};
use super::private::Private;
use super::rated::Rated;
use super::rows::{self, GroupRow};
use super::schema::{self, ColumnOf, InstanceRow};
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::record::evidence::GroupEvidence;
use crate::record::family::Unit;
use crate::record::instance::Instance;
use crate::subset::Subset;

/// The folder of a dataset that holds its subsets.
pub const SUBSETS: &str = "subsets";
/// Rows of a row group: fixed, so that the bytes depend on the rows alone.
const ROW_GROUP: usize = 4_096;

/// Writes every table, all in one pass over the groups; of each no more than one row group is in memory.
///
/// # Errors
/// IO errors with the path; what contradicts itself.
pub(super) fn tables(
    folder: &Path,
    assembled: &Assembled<'_>,
    subsets: &[Subset],
) -> Result<Option<Instance>> {
    let place = Folder::open(folder)?;
    let mut groups = TableFile::create(&place, "groups", schema::groups())?;
    let mut cases = TableFile::create(&place, "cases", schema::cases())?;
    let mut attempts = TableFile::create(&place, "attempts", schema::attempts())?;
    // Another family writes these itself.
    let mut of_gistify = match assembled.family.unit() {
        Unit::Group => Some((
            Published::create(&place, assembled, subsets)?,
            TableFile::create(&place, "traces", schema::traces())?,
        )),
        Unit::File | Unit::Pair => None,
    };
    for repository in &assembled.repositories {
        let private = Private::of_repository(repository.record);
        for group in repository.record.groups.iter() {
            let mut group = group?;
            // Long, and of one table alone.
            let functions = group.traced.as_mut().map(|traced| std::mem::take(&mut traced.functions));
            let group = Rc::new(group);
            let instance = match &mut of_gistify {
                Some((instances, _)) => instances.push(assembled, (repository, &group))?,
                None => None,
            };
            let used = (instance, repository.uses(&group.instance_id));
            groups.push(GroupRow::new(&group, used, repository.edited(&group.instance_id), &private))?;
            rows::cases(&group, instance).try_for_each(|row| cases.push(row))?;
            rows::attempts(&group).try_for_each(|row| attempts.push(row))?;
            if let Some((_, traces)) = &mut of_gistify {
                rows::traces(functions.unwrap_or_default(), instance).try_for_each(|row| traces.push(row))?;
            }
        }
    }
    let first = match of_gistify {
        Some((instances, traces)) => {
            traces.finish()?;
            instances.finish(assembled)?
        }
        None => None,
    };
    groups.finish()?;
    cases.finish()?;
    attempts.finish()?;
    Ok(first)
}

/// The files of instances and of their subsets, each with its members by their place among the instances.
struct Published {
    files: Vec<(InstanceFiles<Instance>, BTreeSet<usize>)>,
    /// The instances are in the order of their groups: so many are written.
    written: usize,
    first: Option<Instance>,
}

impl Published {
    fn create(place: &Folder, assembled: &Assembled<'_>, subsets: &[Subset]) -> Result<Self> {
        place.make_folder(Path::new(SUBSETS))?;
        let all = ("instances".to_owned(), (0..assembled.instances.len()).collect());
        let members = |subset: &Subset| subset.members(&assembled.instances).into_iter().collect();
        let subsets = subsets.iter().map(|one| (format!("{SUBSETS}/{}", one.name), members(one)));
        let create = |(name, members): (String, _)| Ok((InstanceFiles::create(place, &name)?, members));
        let files = std::iter::once(all).chain(subsets).map(create).collect::<Result<_>>()?;
        Ok(Published { files, written: 0, first: None })
    }

    /// Writes the instance that a group is, if it is one.
    fn push<'a>(
        &mut self,
        assembled: &'a Assembled<'_>,
        (repository, group): (&Repository<'_>, &GroupEvidence),
    ) -> Result<Option<&'a Rated>> {
        let next = assembled.instances.get(self.written);
        let Some(rated) = next.filter(|next| next.instance_id == group.instance_id) else { return Ok(None) };
        let instance = assembled.whole(repository, group, rated)?;
        for (files, _) in self.files.iter_mut().filter(|(_, members)| members.contains(&self.written)) {
            files.push(instance.clone())?;
        }
        self.first.get_or_insert(instance);
        self.written += 1;
        Ok(Some(rated))
    }

    /// The first instance.
    fn finish(self, assembled: &Assembled<'_>) -> Result<Option<Instance>> {
        if self.written < assembled.instances.len() {
            return Err(Error::internal("an instance has no group in its place"));
        }
        self.files.into_iter().try_for_each(|(files, _)| files.finish())?;
        Ok(self.first)
    }
}

/// A Parquet table that is written a row group at a time.
///
/// The Parquet schema alone says what the columns are: every reader makes its own plain text and lists of it. The Arrow
/// schema that polars would add names its types (views, large lists), which pandas and older readers refuse.
struct Parquet<R, B, W: Write> {
    columns: Vec<ColumnOf<R>>,
    rows: Vec<B>,
    writer: BatchedWriter<W>,
}

impl<R, B: Borrow<R>, W: Write> Parquet<R, B, W> {
    fn new(columns: Vec<ColumnOf<R>>, file: W) -> PolarsResult<Self> {
        let options = ParquetWriteOptions {
            compression: ParquetCompression::Zstd(None),
            ..ParquetWriteOptions::default()
        };
        let writer = options.to_writer(file).batched(schema::frame::<R, B>(&columns, &[])?.schema())?;
        Ok(Parquet { columns, rows: Vec::new(), writer })
    }

    fn push(&mut self, row: B) -> PolarsResult<()> {
        self.rows.push(row);
        if self.rows.len() < ROW_GROUP { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> PolarsResult<()> {
        let rows = std::mem::take(&mut self.rows);
        self.writer.write_batch(&schema::frame(&self.columns, &rows)?)
    }

    fn finish(mut self) -> PolarsResult<()> {
        if !self.rows.is_empty() {
            self.write()?;
        }
        let no_metadata = Some(Vec::new());
        self.writer.get_writer().lock().unwrap_or_else(PoisonError::into_inner).end(no_metadata)?;
        Ok(())
    }
}

/// `<name>.parquet`.
struct TableFile<R> {
    path: PathBuf,
    table: Parquet<R, R, Shared>,
    file: Shared,
}

impl<R> TableFile<R> {
    fn create(folder: &Folder, name: &str, columns: Vec<ColumnOf<R>>) -> Result<Self> {
        Self::of(folder.create_new(Path::new(&format!("{name}.parquet")))?, columns)
    }

    fn of(file: fs_err::File, columns: Vec<ColumnOf<R>>) -> Result<Self> {
        let (path, file) = (file.path().to_owned(), Shared::of(file));
        let table = Parquet::new(columns, file.clone()).map_err(|error| file.failed(&path, error))?;
        Ok(TableFile { path, table, file })
    }

    fn push(&mut self, row: R) -> Result<()> {
        self.table.push(row).map_err(|error| self.file.failed(&self.path, error))
    }

    fn finish(self) -> Result<()> {
        self.table.finish().map_err(|error| self.file.failed(&self.path, error))?;
        self.file.finish()
    }
}

/// Writes `<name>.parquet` in place of what an earlier run left.
///
/// # Errors
/// IO errors with the path.
pub fn table<R>(
    folder: &Path,
    name: &str,
    columns: Vec<ColumnOf<R>>,
    rows: impl IntoIterator<Item = R>,
) -> Result<()> {
    let folder = Folder::open(folder)?;
    folder.remove(Path::new(&format!("{name}.parquet")))?;
    let mut file = TableFile::create(&folder, name, columns)?;
    rows.into_iter().try_for_each(|row| file.push(row))?;
    file.finish()
}

/// A table in memory.
///
/// # Errors
/// When polars refuses the table, which is a bug.
pub fn table_bytes<R>(columns: Vec<ColumnOf<R>>, rows: &[R]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let written = Parquet::new(columns, &mut bytes).and_then(|mut table| {
        rows.iter().try_for_each(|row| table.push(row))?;
        table.finish()
    });
    written.map_err(|error| Error::internal("cannot encode a table").with_source(error))?;
    Ok(bytes)
}

/// A file that the Parquet writer, which writes names and lengths one by one, shares with its owner. It keeps the operating
/// system's first error: the writer replaces it by words of its own.
#[derive(Clone)]
struct Shared(Rc<RefCell<(BufWriter<fs_err::File>, Option<io::Error>)>>);

impl Shared {
    fn of(file: fs_err::File) -> Self {
        Shared(Rc::new(RefCell::new((BufWriter::new(file), None))))
    }

    fn noted<T>(&self, act: impl FnOnce(&mut BufWriter<fs_err::File>) -> io::Result<T>) -> io::Result<T> {
        let (file, first) = &mut *self.0.borrow_mut();
        act(file).map_err(|error| {
            let kind = error.kind();
            first.get_or_insert(error);
            kind.into()
        })
    }

    /// Why a table could not be written.
    fn failed(&self, path: &Path, error: PolarsError) -> Error {
        let first = self.0.borrow_mut().1.take();
        first.map_or_else(
            || Error::machine(format!("cannot write {}", path.display())).with_source(error),
            Error::from,
        )
    }

    fn finish(self) -> Result<()> {
        let file = &mut self.0.borrow_mut().0;
        file.flush()?;
        Ok(file.get_ref().sync_all()?)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.noted(|file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.noted(Write::flush)
    }
}

/// `<name>.parquet` and, one JSON object a line, `<name>.jsonl` with the same instances.
struct InstanceFiles<R> {
    table: TableFile<R>,
    lines: BufWriter<fs_err::File>,
}

impl<R: InstanceRow> InstanceFiles<R> {
    fn create(folder: &Folder, name: &str) -> Result<Self> {
        let table = TableFile::create(folder, name, R::columns())?;
        let lines = folder.create_new(Path::new(&format!("{name}.jsonl")))?;
        Ok(InstanceFiles { table, lines: BufWriter::new(lines) })
    }

    fn push(&mut self, instance: R) -> Result<()> {
        let line = serde_json::to_string(&instance)
            .map_err(|error| Error::internal("cannot encode an instance").with_source(error))?;
        writeln!(self.lines, "{line}")?;
        self.table.push(instance)
    }

    fn finish(mut self) -> Result<()> {
        self.table.finish()?;
        self.lines.flush()?;
        Ok(self.lines.get_ref().sync_all()?)
    }
}

/// Writes instances to `<name>.parquet` and, one JSON object a line, to `<name>.jsonl`. Only those of one row group are in
/// memory.
///
/// # Errors
/// IO errors with the path; the first of the instances'; one that cannot be encoded, which is a bug.
pub(crate) fn instances<R: InstanceRow>(
    folder: &Folder,
    name: &str,
    instances: impl IntoIterator<Item = Result<R>>,
) -> Result<()> {
    let mut files = InstanceFiles::create(folder, name)?;
    instances.into_iter().try_for_each(|instance| files.push(instance?))?;
    files.finish()
}

/// Writes a text file, in place of what an earlier run left, and syncs it.
///
/// # Errors
/// IO errors with the path.
pub fn text(path: &Path, text: &str) -> Result<()> {
    let name = Path::new(path.file_name().unwrap_or_default());
    let folder =
        Folder::open(path.parent().filter(|above| *above != Path::new("")).unwrap_or(Path::new(".")))?;
    folder.remove(name)?;
    let mut file = folder.create_new(name)?;
    file.write_all(text.as_bytes())?;
    Ok(file.sync_all()?)
}

/// Copies what each environment was built from to `environments/<owner>__<name>/`; regular files only.
///
/// # Errors
/// IO errors with the path.
pub fn environments(folder: &Path, assembled: &Assembled<'_>) -> Result<()> {
    let (folder, all) = (Folder::open(folder)?, Path::new("environments"));
    folder.make_folder(all)?;
    for repository in &assembled.repositories {
        let target = all.join(repository.record.pinned.slug.file_name());
        copy_files(&repository.record.built.recipe_dir, (&folder, &target))?;
    }
    Ok(())
}

fn copy_files(from: &Path, (folder, to): (&Folder, &Path)) -> Result<()> {
    folder.make_folder(to)?;
    for entry in walkdir::WalkDir::new(from).min_depth(1).sort_by_file_name() {
        let entry = entry.map_err(|error| {
            Error::machine(format!("cannot read the recipe in {}", from.display())).with_source(error)
        })?;
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            folder.make_folder(&target)?;
        } else if entry.file_type().is_file() {
            folder.create_new(&target)?.write_all(&fs_err::read(entry.path())?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_is_what_the_operating_system_says() {
        let columns = || vec![schema::number("number", |row: &u64| Some(*row))];
        // Few rows fail when the file is finished, many while they are written.
        for rows in [3, 200_000] {
            let full = fs_err::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let mut file = TableFile::of(full, columns()).unwrap();
            let written = (0..rows).try_for_each(|row| file.push(row));
            let error = written.and_then(|()| file.finish()).unwrap_err();
            assert!(error.hint().is_some_and(|hint| hint.contains("free some disk space")), "{error} {rows}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_replaced_and_what_it_leads_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs_err::write(&victim, "mine").unwrap();
        for name in ["numbers.parquet", "text"] {
            std::os::unix::fs::symlink(&victim, folder.path().join(name)).unwrap();
        }
        let columns = vec![schema::number("number", |row: &u64| Some(*row))];
        table(folder.path(), "numbers", columns, 0..3).unwrap();
        text(&folder.path().join("text"), "new").unwrap();
        assert_eq!(fs_err::read_to_string(victim).unwrap(), "mine");
        assert_eq!(fs_err::read_to_string(folder.path().join("text")).unwrap(), "new");
    }
}
