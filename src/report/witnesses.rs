//! Witnesses with the places that their lines come from, over a dictionary of lines: neighbours in a repository mostly stay
//! neighbours, so that a witness is a few runs of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::dataset::Dataset;
use crate::dataset::table::Table;
use crate::dataset::{trees, witnesses};
use crate::error::{Error, Result};
use crate::family::gistify::{Corpus, Existence};
use crate::page::Dictionary;
use crate::score::{File, Modules};

/// Largest witness that is read, in bytes.
const LARGEST: u64 = 1 << 20;
/// Characters of different lines that the page holds; further witnesses are in their folder only.
const MOST_TEXT: usize = 4_000_000;

/// What a line of a witness is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    /// Line existence does not look at it, or nothing is known.
    Unknown,
    /// It goes on what the line before began.
    Continued,
    /// It stands in no file.
    New,
    /// It stands in this file, by number, at this line.
    In(i64, u32),
}

/// The texts of the witnesses, by instance.
pub(super) type Texts = BTreeMap<String, String>;

/// Reads the witnesses that a dataset has.
pub(super) fn texts(dataset: &Dataset, instances: &Table) -> Result<Texts> {
    let lines = instances.if_there("witness_lines", Table::numbers)?;
    if lines.iter().flatten().next().is_none() {
        return Ok(Texts::new());
    }
    let folder = dataset.folder()?;
    let mut texts = Texts::new();
    for (id, _) in instances.whole_texts("instance_id")?.into_iter().zip(lines).filter(|one| one.1.is_some())
    {
        let path = Path::new(witnesses::FOLDER).join(format!("{id}.py"));
        if let Some(bytes) = folder.read_if_there(&path, LARGEST)? {
            texts.insert(id.to_owned(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(texts)
}

/// The files of each repository that has a witness, ready to look lines up in; none where the dataset has no trees.
pub(super) fn corpora(
    dataset: &Dataset,
    instances: &Table,
    texts: &Texts,
) -> Result<BTreeMap<String, Corpus>> {
    let (ids, slugs) = (instances.whole_texts("instance_id")?, instances.whole_texts("slug")?);
    let needed = ids.into_iter().zip(slugs).filter(|(id, _)| texts.contains_key(*id));
    let mut corpora = BTreeMap::new();
    for slug in needed.map(|one| one.1).collect::<BTreeSet<_>>() {
        // The page tells of witnesses without their places rather than not at all.
        let files = trees::python_files(dataset, slug).unwrap_or_else(|error| {
            error.log(format!("the tree of {slug} for the page"));
            None
        });
        let Some(files) = files else { continue };
        let modules = Modules::of_files(&files.iter().map(|one| one.0.clone()).collect(), |_| false);
        let files: Vec<File<'_>> = files.iter().map(|(path, text)| File { path, text }).collect();
        corpora.insert(slug.to_owned(), Corpus::of(&files, modules));
    }
    Ok(corpora)
}

/// The witnesses in the order of the instances: of each the runs `[first line of the dictionary, number of lines, …]`.
pub(super) fn lines(instances: &Table, texts: &Texts, corpora: &BTreeMap<String, Corpus>) -> Result<Value> {
    let (ids, slugs) = (instances.whole_texts("instance_id")?, instances.whole_texts("slug")?);
    let mut files: Dictionary<String> = Dictionary::default();
    let mut lines: Dictionary<(&str, Origin)> = Dictionary::default();
    let mut size = 0;
    let mut of = Vec::new();
    for (id, slug) in ids.into_iter().zip(slugs) {
        let Some(text) = texts.get(id).filter(|_| size < MOST_TEXT) else {
            of.push(None);
            continue;
        };
        let known = lines.values.len();
        let origins = origins(text, corpora.get(slug), &mut files)?;
        let places: Vec<usize> =
            text.lines().zip(origins).map(|(line, origin)| lines.place((line, origin))).collect();
        size += lines.values[known..].iter().map(|line| line.0.len()).sum::<usize>();
        let runs = places.chunk_by(|one, next| one + 1 == *next);
        of.push(Some(runs.flat_map(|run| [run[0], run.len()]).collect::<Vec<_>>()));
    }
    let origin = |line: &(&str, Origin)| match line.1 {
        Origin::Unknown => [-1, 0],
        Origin::Continued => [-2, 0],
        Origin::New => [-3, 0],
        Origin::In(file, line) => [file, i64::from(line)],
    };
    let origins: Vec<[i64; 2]> = lines.values.iter().map(origin).collect();
    Ok(json!({
        "files": files.values,
        "text": lines.values.iter().map(|line| line.0).collect::<Vec<_>>(),
        "file": origins.iter().map(|one| one[0]).collect::<Vec<_>>(),
        "line": origins.iter().map(|one| one[1]).collect::<Vec<_>>(),
        "of": of,
    }))
}

/// What each line of a text is.
fn origins(text: &str, corpus: Option<&Corpus>, files: &mut Dictionary<String>) -> Result<Vec<Origin>> {
    let mut origins = vec![Origin::Unknown; text.lines().count()];
    let Some(corpus) = corpus else { return Ok(origins) };
    let found = corpus.line_existence(text).map_err(|reason| {
        Error::usage("a witness of the dataset is not Python that can be read")
            .with_detail(format!("{reason:?}"))
    })?;
    for line in found.lines {
        let origin = match line.existence {
            Existence::NotCounted => Origin::Unknown,
            Existence::Missing => Origin::New,
            Existence::Found { place } => Origin::In(files.number(place.file), place.line),
        };
        for number in line.first..=line.last {
            let at = (number as usize).saturating_sub(1);
            if let Some(slot) = origins.get_mut(at) {
                *slot = if number == line.first { origin } else { Origin::Continued };
            }
        }
    }
    Ok(origins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> Corpus {
        let files = [
            File {
                path: "src/a.py",
                text: "import os\n\n\ndef f(x):\n    y = (x +\n         1)\n    return y\n",
            },
            File { path: "tests/test_a.py", text: "from a import f\n" },
        ];
        Corpus::of(
            &files,
            Modules::of_files(&["src/a.py".to_owned(), "tests/test_a.py".to_owned()].into(), |_| false),
        )
    }

    #[test]
    fn lines_have_the_places_that_they_come_from() {
        let mut files = Dictionary::default();
        let text = "def f(x):\n    y = (x +\n         1)\n    z = 3\n    return y\n\n";
        let found = origins(text, Some(&corpus()), &mut files).unwrap();
        let expected = [
            Origin::In(0, 4),
            Origin::In(0, 5),
            Origin::Continued,
            Origin::New,
            Origin::In(0, 7),
            Origin::Unknown,
        ];
        assert_eq!(found, expected);
        assert_eq!(files.values, ["src/a.py"]);
    }

    #[test]
    fn without_the_tree_nothing_is_said_and_what_is_no_python_is_refused() {
        let mut files = Dictionary::default();
        assert_eq!(origins("x = 1\n", None, &mut files).unwrap(), [Origin::Unknown]);
        assert!(origins("def (", Some(&corpus()), &mut files).is_err());
    }
}
