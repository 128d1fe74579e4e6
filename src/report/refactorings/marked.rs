//! A golden patch whose lines say which patterns match them.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::beneath::Folder;
use crate::dataset::codetaste::HiddenPair;
use crate::dataset::{Dataset, trees};
use crate::error::{Error, Result};
use crate::family::codetaste::diff::Sign;
use crate::family::codetaste::lines::Lines;
use crate::family::codetaste::view::{self, FileDiff};
use crate::history;
use crate::pattern::{Patterns, Reach, Tree};
use crate::record::codetaste::{PatternRow, Side};
use crate::store::scratch;

/// A pattern, by its number on the page.
#[derive(Debug, Serialize)]
pub(super) struct MarkedPattern {
    number: usize,
    row: PatternRow,
    /// Changed lines that it matches.
    changed: u64,
    /// The first line that has its mark, by its number on the page.
    first: Option<usize>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Diff {
    files: Vec<File>,
    /// None where the dataset came without code.
    is_there: bool,
    has_marks: bool,
    /// Lines that are not shown.
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct File {
    path: String,
    from: Option<String>,
    status: &'static str,
    is_binary: bool,
    is_ignored: bool,
    added: u64,
    removed: u64,
    marked: usize,
    left_out: usize,
    lines: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    class: &'static str,
    sign: &'static str,
    old: Option<u64>,
    new: Option<u64>,
    text: String,
    begins: bool,
    /// Its number on the page, of one that has marks.
    number: Option<usize>,
    marks: Vec<usize>,
}

/// Patterns with the lines that they match on the tree that they are for, in the order of the page.
type Matched = Vec<(PatternRow, Lines)>;

/// The golden patch of an instance with its marks; `left` lines may be shown.
pub(super) fn of(
    dataset: &Dataset,
    slug: &str,
    hidden: &HiddenPair,
    left: &mut usize,
) -> Result<(Vec<MarkedPattern>, Diff)> {
    let Some(patch) = &hidden.golden_patch else { return Ok(without_marks(hidden, left)) };
    let files = view::files(patch);
    let named: BTreeSet<&str> =
        files.iter().flat_map(|file| [&file.old, &file.new]).flatten().map(String::as_str).collect();
    let Some(base) = trees::bytes(dataset, slug, |path| named.contains(path))? else {
        return Ok(without_marks(hidden, left));
    };
    let scratch = scratch()?;
    let folder = Folder::open(scratch.path())?;
    for (path, bytes) in base {
        let path = std::path::Path::new(&path);
        if let Some(above) = path.parent() {
            folder.make_folder(above)?;
        }
        std::io::Write::write_all(&mut folder.create_new(path)?, &bytes)?;
    }
    let golden = history::apply(&folder, patch)?
        .map_err(|why| Error::usage(format!("the golden patch cannot be applied: {why}")))?;
    let base = Tree::of_folder(&folder, Reach::Python)?;
    // A page runs no program: what another engine matches has no marks.
    let Ok(patterns) = Patterns::built_in(&hidden.pattern_files) else {
        return Ok(without_marks(hidden, left));
    };
    let (mut before, mut after) = (patterns.scan(&base)?, patterns.scan(&base.with(&golden))?);
    let matched = hidden.patterns.iter().map(|row| {
        let found = match row.side {
            Side::Additive => after.remove(&row.id),
            Side::Reductive => before.remove(&row.id),
        };
        (row.clone(), found.unwrap_or_default().lines)
    });
    Ok(marked(files, &matched.collect::<Matched>(), left, true))
}

/// Patterns and diff where nothing is known of the lines that patterns match.
pub(super) fn without_marks(hidden: &HiddenPair, left: &mut usize) -> (Vec<MarkedPattern>, Diff) {
    let matched: Matched = hidden.patterns.iter().map(|row| (row.clone(), Lines::default())).collect();
    let files = hidden.golden_patch.as_deref().map(view::files);
    let is_there = files.is_some();
    let (patterns, diff) = marked(files.unwrap_or_default(), &matched, left, false);
    (patterns, Diff { is_there, ..diff })
}

fn marked(
    files: Vec<FileDiff>,
    matched: &Matched,
    left: &mut usize,
    has_marks: bool,
) -> (Vec<MarkedPattern>, Diff) {
    let mut patterns: Vec<MarkedPattern> = matched
        .iter()
        .enumerate()
        .map(|(at, (row, _))| MarkedPattern { number: at + 1, row: row.clone(), changed: 0, first: None })
        .collect();
    let (mut diff, mut number) = (Diff { is_there: true, has_marks, ..Diff::default() }, 0);
    for file in files {
        let mut lines = Vec::new();
        let mut seen = 0;
        for line in &file.lines {
            let marks = if file.is_ignored() { Vec::new() } else { marks(&file, line, matched) };
            let is_shown = *left > 0;
            if !marks.is_empty() {
                number += 1;
                seen += 1;
            }
            for mark in &marks {
                let one = &mut patterns[mark - 1];
                one.changed += 1;
                one.first = one.first.or(is_shown.then_some(number));
            }
            if is_shown {
                *left -= 1;
                lines.push(shown(line, marks, number));
            }
        }
        let left_out = file.lines.len() - lines.len();
        diff.left_out += left_out;
        diff.files.push(File {
            path: file.path().to_owned(),
            from: file.old.clone().filter(|_| file.status() == "moved"),
            status: file.status(),
            is_binary: file.is_binary,
            is_ignored: file.is_ignored(),
            added: file.added,
            removed: file.removed,
            marked: seen,
            left_out,
            lines,
        });
    }
    (patterns, diff)
}

/// Numbers of the patterns that match a changed line.
fn marks(file: &FileDiff, line: &view::Line, matched: &Matched) -> Vec<usize> {
    let (side, path, number) = match (line.sign, line.old, line.new) {
        (Sign::Removed, Some(number), _) => (Side::Reductive, &file.old, number),
        (Sign::Added, _, Some(number)) => (Side::Additive, &file.new, number),
        _ => return Vec::new(),
    };
    let Some(path) = path else { return Vec::new() };
    let of_side = matched.iter().enumerate().filter(|(_, (row, _))| row.side == side);
    of_side.filter(|(_, (_, lines))| lines.contains(path, number)).map(|(at, _)| at + 1).collect()
}

fn shown(line: &view::Line, marks: Vec<usize>, number: usize) -> Line {
    let (class, sign) = match (line.sign, marks.is_empty()) {
        (Sign::Context, _) => ("context", " "),
        (Sign::Removed, true) => ("removed", "−"),
        (Sign::Removed, false) => ("removed marked", "−"),
        (Sign::Added, true) => ("added", "+"),
        (Sign::Added, false) => ("added marked", "+"),
    };
    Line {
        class,
        sign,
        old: line.old,
        new: line.new,
        text: line.text.clone(),
        begins: line.begins,
        number: (!marks.is_empty()).then_some(number),
        marks,
    }
}
