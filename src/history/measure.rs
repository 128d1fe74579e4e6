//! The numbers of a commit against its first parent.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use git2::{Commit, Delta, Diff, DiffFile, DiffOptions, Patch, Repository};

use super::renames::{File, renames};
use crate::family::codetaste::diff::{Changed, is_ignored};
use crate::family::codetaste::funnel::{self, Changes, Shape};

/// Larger files have no lines.
const LARGEST: i64 = 64 << 20;

/// What a commit changes.
pub(super) struct Difference<'r> {
    repository: &'r Repository,
    diff: Diff<'r>,
    /// Of the places of new files those of the old ones that they were.
    moved: BTreeMap<usize, usize>,
    context: u32,
}

/// With no context what is counted, with some what is read and applied: then binary files are part of it.
fn options(context: u32) -> DiffOptions {
    let mut options = DiffOptions::new();
    options
        .context_lines(context)
        .interhunk_lines(0)
        .show_binary(context > 0)
        .include_typechange(true)
        .max_size(LARGEST);
    options
}

impl<'r> Difference<'r> {
    pub(super) fn of(
        repository: &'r Repository,
        before: &Commit<'_>,
        after: &Commit<'_>,
    ) -> Result<Self, git2::Error> {
        Self::of_trees(repository, &before.tree()?, &after.tree()?, 0)
    }

    pub(super) fn of_trees(
        repository: &'r Repository,
        before: &git2::Tree<'_>,
        after: &git2::Tree<'_>,
        context: u32,
    ) -> Result<Self, git2::Error> {
        let diff = repository.diff_tree_to_tree(Some(before), Some(after), Some(&mut options(context)))?;
        let of = |status: Delta| -> Vec<usize> {
            diff.deltas()
                .enumerate()
                .filter(|(_, delta)| delta.status() == status)
                .map(|(at, _)| at)
                .collect()
        };
        let (deleted, created) = (of(Delta::Deleted), of(Delta::Added));
        let mut moved = BTreeMap::new();
        if !deleted.is_empty() && !created.is_empty() {
            let old = |at: &usize| diff.get_delta(*at).map(|delta| file(&delta.old_file()));
            let new = |at: &usize| diff.get_delta(*at).map(|delta| file(&delta.new_file()));
            let sources: Vec<File> = deleted.iter().filter_map(old).collect();
            let targets: Vec<File> = created.iter().filter_map(new).collect();
            let found = renames(repository, &sources, &targets)?;
            moved = found.into_iter().map(|(to, from)| (created[to], deleted[from])).collect();
        }
        Ok(Difference { repository, diff, moved, context })
    }

    /// The places of files, without what is the old path of a moved one.
    fn places(&self) -> impl Iterator<Item = usize> {
        let gone: BTreeSet<usize> = self.moved.values().copied().collect();
        (0..self.diff.deltas().len()).filter(move |at| !gone.contains(at))
    }

    /// Counts files; one that moved is one.
    pub(super) fn count_files(&self, shape: &mut Shape) {
        for delta in self.places().filter_map(|at| self.diff.get_delta(at)) {
            let file = if delta.status() == Delta::Deleted { delta.old_file() } else { delta.new_file() };
            let path = file.path_bytes().map(String::from_utf8_lossy).unwrap_or_default();
            shape.files += 1;
            shape.code_files += u32::from(funnel::is_code(&path));
            shape.python_files += u32::from(funnel::is_python(&path));
            shape.test_files += u32::from(funnel::is_test(&path));
        }
    }

    /// The lines that change, without those of files that are built or installed.
    pub(super) fn changed(&self) -> Result<Changed, git2::Error> {
        let mut changed = Changed::default();
        for at in self.places() {
            let from = self.moved.get(&at).copied();
            let (Some(before), Some(after)) =
                (self.diff.get_delta(from.unwrap_or(at)), self.diff.get_delta(at))
            else {
                continue;
            };
            let path = |file: &DiffFile<'_>| String::from_utf8_lossy(&name(file)).into_owned();
            let (old, new) = (path(&before.old_file()), path(&after.new_file()));
            if is_ignored(&old) || is_ignored(&new) {
                continue;
            }
            self.with_patch(at, |patch| {
                patch.print(&mut |_, _, line| {
                    match (line.origin(), line.old_lineno(), line.new_lineno()) {
                        ('-', Some(number), _) => changed.removed.insert(&old, number.into(), number.into()),
                        ('+', _, Some(number)) => changed.added.insert(&new, number.into(), number.into()),
                        _ => {}
                    }
                    true
                })
            })?;
        }
        Ok(changed)
    }

    /// The patch as git writes it, binary files in it.
    pub(super) fn text(&self) -> Result<Vec<u8>, git2::Error> {
        let mut text = Vec::new();
        for at in self.places() {
            if let Some(from) = self.moved.get(&at) {
                self.moved_text(*from, at, &mut text)?;
            } else {
                self.with_patch(at, |patch| {
                    text.extend_from_slice(&patch.to_buf()?);
                    Ok(())
                })?;
            }
        }
        Ok(text)
    }

    /// A file that moved: its header, and its hunks where it was edited.
    fn moved_text(&self, from: usize, to: usize, text: &mut Vec<u8>) -> Result<(), git2::Error> {
        let (Some(before), Some(after)) = (self.diff.get_delta(from), self.diff.get_delta(to)) else {
            return Ok(());
        };
        let (old, new) = (quoted(b"a/", &name(&before.old_file())), quoted(b"b/", &name(&after.new_file())));
        let modes = [&before.old_file(), &after.new_file()].map(|file| u32::from(file.mode()));
        text.extend([b"diff --git ", &*old, b" ", &new, b"\n"].concat());
        if modes[0] != modes[1] {
            text.extend(format!("old mode {:o}\nnew mode {:o}\n", modes[0], modes[1]).bytes());
        }
        let is_same = before.old_file().id() == after.new_file().id();
        let similarity = if is_same { 100 } else { 50 };
        text.extend(format!("similarity index {similarity}%\nrename from ").bytes());
        text.extend(quoted(b"", &name(&before.old_file())));
        text.extend(b"\nrename to ");
        text.extend(quoted(b"", &name(&after.new_file())));
        text.push(b'\n');
        self.with_patch(to, |patch| {
            // Its own header is that of a file which did not move.
            let whole = patch.to_buf()?;
            let index = format!("index {}..{}\n", before.old_file().id(), after.new_file().id());
            text.extend(index.bytes());
            let start = [&b"--- "[..], b"GIT binary patch"].into_iter().filter_map(|start| {
                let lines = whole.split_inclusive(|byte| *byte == b'\n');
                let offsets = lines.scan(0, |at, line| {
                    let begins = *at;
                    *at += line.len();
                    Some((begins, line))
                });
                offsets.into_iter().find(|(_, line)| line.starts_with(start)).map(|(at, _)| at)
            });
            text.extend_from_slice(&whole[start.min().unwrap_or(whole.len())..]);
            Ok(())
        })
    }

    /// Counts lines. The diff is compressed as it is written, so that a large one takes no memory.
    pub(super) fn lines(&self) -> Result<Lines, git2::Error> {
        let mut counter = Counter::default();
        for at in self.places() {
            let status = self.diff.get_delta(at).map_or(Delta::Modified, |delta| delta.status());
            let changes = &mut counter.changes;
            match status {
                _ if self.moved.contains_key(&at) => changes.moved += 1,
                Delta::Added => changes.created += 1,
                Delta::Deleted => changes.deleted += 1,
                _ => changes.modified += 1,
            }
            if let Some(from) = self.moved.get(&at) {
                counter.write(&self.header(*from, at));
            }
            self.with_patch(at, |patch| counter.count(patch))?;
        }
        Ok(counter.finish())
    }

    /// What a diff says of a file that moved.
    fn header(&self, from: usize, to: usize) -> Vec<u8> {
        let (Some(before), Some(after)) = (self.diff.get_delta(from), self.diff.get_delta(to)) else {
            return Vec::new();
        };
        let (old, new) = (name(&before.old_file()), name(&after.new_file()));
        let renamed = [b"rename from ", &*old, b"\nrename to ", &new, b"\n"].concat();
        if before.old_file().id() != after.new_file().id() {
            return renamed;
        }
        [b"diff --git a/", &*old, b" b/", &new, b"\nsimilarity index 100%\n", &renamed].concat()
    }

    /// Hands on the lines of a file that change, if any do.
    fn with_patch(
        &self,
        at: usize,
        mut on: impl FnMut(&mut Patch<'_>) -> Result<(), git2::Error>,
    ) -> Result<(), git2::Error> {
        let Some(from) = self.moved.get(&at) else {
            return Patch::from_diff(&self.diff, at)?.map_or(Ok(()), |mut patch| on(&mut patch));
        };
        let (Some(before), Some(after)) = (self.diff.get_delta(*from), self.diff.get_delta(at)) else {
            return Ok(());
        };
        let (old, new) = (before.old_file(), after.new_file());
        if old.id() == new.id() {
            return Ok(());
        }
        let (one, other) = (self.repository.find_blob(old.id())?, self.repository.find_blob(new.id())?);
        on(&mut Patch::from_blobs(&one, old.path(), &other, new.path(), Some(&mut options(self.context)))?)
    }
}

/// A path as git prints it: with quotes where it has bytes that are not plain.
fn quoted(side: &[u8], path: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| (0x20..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
    if path.iter().all(is_plain) {
        return [side, path].concat();
    }
    let mut text = [b"\"", side].concat();
    for byte in path {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            byte if is_plain(byte) => text.push(*byte),
            byte => text.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    text.push(b'"');
    text
}

fn name(file: &DiffFile<'_>) -> Vec<u8> {
    file.path_bytes().unwrap_or_default().to_owned()
}

fn file(file: &DiffFile<'_>) -> File {
    File { path: name(file), id: file.id(), mode: file.mode().into() }
}

pub(super) struct Lines {
    pub changes: Changes,
    /// The compressed diff without context by its own size; none of an empty one.
    pub gzip_ratio: Option<f64>,
}

struct Counter {
    changes: Changes,
    size: u64,
    packed: GzEncoder<Counted>,
}

impl Default for Counter {
    fn default() -> Self {
        let packed = GzEncoder::new(Counted(0), Compression::new(6));
        Counter { changes: Changes::default(), size: 0, packed }
    }
}

impl Counter {
    fn write(&mut self, bytes: &[u8]) -> bool {
        self.size += bytes.len() as u64;
        self.packed.write_all(bytes).is_ok()
    }

    fn count(&mut self, patch: &mut Patch<'_>) -> Result<(), git2::Error> {
        patch.print(&mut |_, _, line| {
            let sign = match line.origin() {
                '+' => {
                    self.changes.lines_added += 1;
                    &b"+"[..]
                }
                '-' => {
                    self.changes.lines_removed += 1;
                    b"-"
                }
                ' ' => b" ",
                _ => b"",
            };
            self.write(sign) && self.write(line.content())
        })
    }

    fn finish(self) -> Lines {
        let (size, changes) = (self.size, self.changes);
        let packed = self.packed.finish().map_or(0, |counted| counted.0);
        Lines { changes, gzip_ratio: (size > 0).then(|| packed as f64 / size as f64) }
    }
}

/// Counts what is written, and keeps none of it.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
