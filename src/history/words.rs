//! The lists of words by which messages are judged, as TOML.

use std::path::Path;

use crate::document::section::Section;
use crate::document::{self, Problems};
use crate::error::{Error, Result};
use crate::family::codetaste::message::{Keywords, Lists};
use crate::redact::quote;

const SHIPPED: &str = include_str!("../../filters/commits.toml");
const KEYS: [&str; 4] = ["plus_strong", "plus_weak", "minus_strong", "minus_weak"];

/// The lists of a file; those that come with the program where none is named.
///
/// # Errors
/// A usage error with all problems of the file.
pub(crate) fn lists(file: Option<&Path>) -> Result<Lists> {
    match file {
        Some(file) => parse(&file.display().to_string(), &document::read_text(file)?),
        None => parse("the built-in commits.toml", SHIPPED),
    }
}

fn parse(place: &str, text: &str) -> Result<Lists> {
    let mut problems = Problems::new(text);
    let table = document::parse(text, &mut problems);
    let root = Section::root(table.get_ref());
    root.refuse_unknown(&KEYS, |_| None, &mut problems);
    let [plus_strong, plus_weak, minus_strong, minus_weak] = KEYS.map(|key| list(&root, key, &mut problems));
    let problems = problems.into_sorted();
    if problems.is_empty() {
        Ok(Lists { plus_strong, plus_weak, minus_strong, minus_weak })
    } else {
        Err(Error::usage(document::render(place, &problems)))
    }
}

fn list(root: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Keywords {
    let field = root.texts(key, problems);
    if !field.is_present() {
        let hint = "a list without words is `[]`";
        problems.missing_key(0, format!("`{key}` is missing"), hint);
    }
    let words = field.given().map(|given| given.value).unwrap_or_default();
    let mut good = Vec::new();
    for word in words {
        match Keywords::new(&[word.value]) {
            Ok(_) => good.push(word.value),
            Err(_) => problems.add(
                word.at,
                format!("`{key}` has {}, which does not begin with a letter or a digit", quote(word.value)),
                Some("a `*` at the end of a word is the only sign with a meaning".to_owned()),
            ),
        }
    }
    Keywords::new(&good).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_lists_are_read() {
        let counts = lists(None).unwrap().count("Refactor and rename things, add one; fix a prefix");
        assert_eq!(
            (counts.plus_strong, counts.plus_weak, counts.minus_strong, counts.minus_weak),
            (1, 1, 1, 1)
        );
    }

    #[test]
    fn every_problem_of_a_file_has_its_line() {
        let text = "plus_strong = [\"a\", \"*\"]\nplus_wek = []\nminus_strong = [1]\nminus_weak = []\n";
        let message = parse("w.toml", text).unwrap_err().to_string();
        for part in
            ["w.toml:1", "`*`", "w.toml:2", "plus_wek", "w.toml:3", "strings only", "`plus_weak` is missing"]
        {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}
