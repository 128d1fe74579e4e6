//! Words of an open description that give the golden patch away.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

static WORD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[A-Za-z_][A-Za-z0-9_]{3,}").expect("the pattern of words is a pattern"));

/// The words of four and more letters that the golden patch adds and that the base does not have, whatever their case; in
/// order, each once.
pub fn leaks<'a>(
    description: &'a str,
    base: impl IntoIterator<Item = &'a str>,
    added: impl IntoIterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let known: BTreeSet<String> = base.into_iter().map(str::to_lowercase).collect();
    let fresh: BTreeSet<String> =
        added.into_iter().map(str::to_lowercase).filter(|word| !known.contains(word)).collect();
    let words = WORD.find_iter(description).map(|found| found.as_str());
    words.filter(|word| fresh.contains(&word.to_lowercase())).collect()
}

/// The words of a text, as they are looked for.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    WORD.find_iter(text).map(|found| found.as_str())
}
