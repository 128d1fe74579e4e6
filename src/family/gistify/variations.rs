//! Other input for a command: what only prints a recorded answer cannot know what such a command has to show.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::record::id::hash_parts;
use crate::record::variant::{Given, VariantKind};

/// Numbers and words.
static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[0-9]+|[A-Za-z]+").expect("the pattern is a constant"));
/// Changes of one text of each sort.
const OF_EACH_SORT: usize = 3;
/// Places of a text that are looked at.
const MOST_PLACES: usize = 2000;

/// All that a command is given.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub arguments: &'a [String],
    /// Places of arguments that name something in the tree.
    pub places: &'a BTreeSet<usize>,
    /// What standard input has, where it is a text.
    pub stdin: Option<&'a str>,
    /// Texts of the files that it reads, by path.
    pub files: &'a BTreeMap<String, String>,
}

/// Other inputs, each with one thing changed, in an order that the seed decides: files and standard input first, because a
/// command that prints its arguments shows nothing by them.
pub fn variations(input: Input<'_>, seed: &str) -> Vec<(VariantKind, Given)> {
    let plain = || Given { arguments: input.arguments.to_vec(), ..Given::default() };
    let mut found: Vec<(VariantKind, Given)> = Vec::new();
    for (path, text) in input.files {
        let changed = changes(text, &format!("{seed} {path}"));
        found.extend(changed.into_iter().map(|text| {
            (VariantKind::OtherFile, Given { files: BTreeMap::from([(path.clone(), text)]), ..plain() })
        }));
    }
    if let Some(text) = input.stdin {
        let changed = changes(text, &format!("{seed} stdin"));
        found.extend(
            changed.into_iter().map(|text| (VariantKind::OtherStdin, Given { stdin: Some(text), ..plain() })),
        );
    }
    for (at, argument) in input.arguments.iter().enumerate().filter(|(at, _)| !input.places.contains(at)) {
        let start = match argument.split_once('=') {
            Some((name, _)) if argument.starts_with('-') => name.len() + 1,
            _ if argument.starts_with('-') && argument.parse::<f64>().is_err() => continue,
            _ => 0,
        };
        if start == 0 {
            let (mut fewer, mut more) = (plain(), plain());
            fewer.arguments.remove(at);
            more.arguments.insert(at, argument.clone());
            found.extend([fewer, more].map(|given| (VariantKind::OtherArgument, given)));
        }
        let (option, value) = argument.split_at(start);
        for value in replaced(value, &format!("{seed} {at}")) {
            let mut given = plain();
            given.arguments[at] = format!("{option}{value}");
            found.push((VariantKind::OtherArgument, given));
        }
    }
    let order = |(kind, given): &(VariantKind, Given)| {
        let said = serde_json::to_string(given).unwrap_or_default();
        (*kind == VariantKind::OtherArgument, hash_parts(&[seed, &said]))
    };
    found.sort_by_cached_key(order);
    found
}

/// A text with one number or word replaced, or a line more or less.
fn changes(text: &str, seed: &str) -> Vec<String> {
    let mut found = replaced(text, seed);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if let [.., before, last] = &lines[..]
        && last.ends_with('\n')
    {
        found.push(format!("{text}{last}"));
        found.push(text[..text.len() - last.len()].to_owned());
        let (head, tail) = (&text[..text.len() - last.len() - before.len()], before);
        found.push(format!("{head}{last}{tail}"));
    }
    found.retain(|other| other != text);
    let mut known = BTreeSet::new();
    found.retain(|other| known.insert(other.clone()));
    found
}

/// A text with one number or one word replaced by another of its length.
pub(super) fn replaced(text: &str, seed: &str) -> Vec<String> {
    let all: Vec<Range<usize>> = TOKEN.find_iter(text).take(MOST_PLACES).map(|found| found.range()).collect();
    let (mut numbers, mut words): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|range| text.as_bytes()[range.start].is_ascii_digit());
    let mut found = Vec::new();
    for ranges in [&mut numbers, &mut words] {
        ranges.sort_by_cached_key(|range| hash_parts(&[seed, &range.start.to_string()]));
        for range in ranges.iter().take(OF_EACH_SORT) {
            let other = other(&text[range.clone()], &format!("{seed} {}", range.start));
            found.push(format!("{}{other}{}", &text[..range.start], &text[range.end..]));
        }
    }
    found
}

/// Another number, or another word, of the same length; only the seed knows which.
fn other(token: &str, seed: &str) -> String {
    let hash = hash_parts(&[seed, token]);
    let digits: Vec<u8> =
        hash.bytes().map(|byte| (byte as char).to_digit(16).unwrap_or_default() as u8).collect();
    let turned = |at: usize, first: u8, count: u8, byte: u8| {
        first + (byte - first + 1 + digits[at % digits.len()] % (count - 1)) % count
    };
    let turn = |(at, byte): (usize, u8)| match byte {
        // A number keeps a first digit that is not 0.
        b'0' if at == 0 => b'1' + digits[0] % 9,
        b'1'..=b'9' if at == 0 => turned(at, b'1', 9, byte),
        b'0'..=b'9' => b'0' + (byte - b'0' + digits[at % digits.len()]) % 10,
        b'a'..=b'z' => turned(at, b'a', 26, byte),
        b'A'..=b'Z' => turned(at, b'A', 26, byte),
        other => other,
    };
    token.bytes().enumerate().map(|one| turn(one) as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(
        arguments: &[&str],
        places: &[usize],
        stdin: Option<&str>,
        file: Option<&str>,
    ) -> Vec<(VariantKind, Given)> {
        let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
        let files = file.map(|text| ("data/a.csv".to_owned(), text.to_owned())).into_iter().collect();
        let places = places.iter().copied().collect();
        variations(Input { arguments: &arguments, places: &places, stdin, files: &files }, "seed")
    }

    #[test]
    fn one_thing_is_another_in_each_and_the_seed_says_which() {
        let all = of(
            &["sum", "data/a.csv", "--top=12", "-v", "--json", "-3"],
            &[1],
            Some("b 1\na 22\n"),
            Some("x,7\n"),
        );
        assert_eq!(
            all,
            of(
                &["sum", "data/a.csv", "--top=12", "-v", "--json", "-3"],
                &[1],
                Some("b 1\na 22\n"),
                Some("x,7\n")
            )
        );
        let arguments: BTreeSet<String> = all
            .iter()
            .filter(|(kind, _)| *kind == VariantKind::OtherArgument)
            .map(|(_, given)| given.arguments.join(" "))
            .collect();
        assert_eq!(
            arguments.len(),
            7,
            "a word and a number, each gone and twice, the value of an option: {arguments:?}"
        );
        assert!(
            arguments.iter().all(|line| line.contains("data/a.csv") && line.contains("-v --json")),
            "{arguments:?}"
        );
        let stdin: Vec<&str> = all.iter().filter_map(|(_, given)| given.stdin.as_deref()).collect();
        assert!(
            stdin.contains(&"b 1\na 22\na 22\n")
                && stdin.contains(&"b 1\n")
                && stdin.contains(&"a 22\nb 1\n"),
            "{stdin:?}"
        );
        assert!(
            all.iter().all(|(_, given)| given.files.values().all(|text| text != "x,7\n" && text.len() == 4))
        );
        let last = all.iter().position(|(kind, _)| *kind == VariantKind::OtherArgument).unwrap();
        assert!(all[last..].iter().all(|(kind, _)| *kind == VariantKind::OtherArgument), "they come last");
    }

    #[test]
    fn what_replaces_a_number_or_a_word_is_as_long_and_another() {
        for token in ["0", "7", "10", "999", "Ada", "zzz", "export"] {
            for seed in 0..50 {
                let made = other(token, &seed.to_string());
                assert_ne!(made, token);
                assert_eq!(made.len(), token.len());
                assert!(!made.starts_with('0'), "{token} {made}");
            }
        }
    }

    #[test]
    fn a_command_that_is_given_nothing_has_none() {
        assert_eq!(of(&[], &[], None, None), []);
        assert_eq!(of(&["--all", "-v"], &[], Some(""), None), []);
    }
}
