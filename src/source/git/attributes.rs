//! What `.gitattributes` makes of a file when it is checked out: ends of lines, encodings and `$Id$`. Filters run programs,
//! and are never run. Pure.

use std::collections::BTreeMap;
use std::path::Path;

/// Larger files, and more lines, are not read: nobody wrote them.
pub(super) const LARGEST: u64 = 1 << 20;
const MOST_LINES: usize = 2_000;
/// What git looks at to know whether a file is text: it has no NUL there.
const BINARY: &str = "binary";

/// The state of one attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Set,
    Unset,
    Value(String),
    Unspecified,
}

type States = Vec<(String, State)>;

struct Line {
    pattern: Pattern,
    states: States,
}

/// The files of attributes from the root of a repository down to a folder.
#[derive(Default)]
pub(super) struct Attributes {
    /// Each with how many folders it is below the root.
    levels: Vec<(usize, Vec<Line>)>,
    macros: BTreeMap<String, States>,
}

impl Attributes {
    /// Enters a folder that is so deep below the root; `text` is that of its file of attributes. Gives what
    /// [`Attributes::leave`] takes.
    pub(super) fn enter(&mut self, depth: usize, text: Option<&[u8]>) -> usize {
        let before = self.levels.len();
        let Some(text) = text else { return before };
        let text = String::from_utf8_lossy(text);
        let mut lines = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (pattern, rest) = split_pattern(line);
            let states: States = rest.split_whitespace().map(state).collect();
            match pattern.strip_prefix("[attr]") {
                Some(name) if depth == 0 => drop(self.macros.insert(name.to_owned(), states)),
                Some(_) => {}
                None if pattern.starts_with('!') || lines.len() >= MOST_LINES => {}
                None => lines.push(Line { pattern: Pattern::new(&pattern), states }),
            }
        }
        self.levels.push((depth, lines));
        before
    }

    /// Leaves a folder.
    pub(super) fn leave(&mut self, before: usize) {
        self.levels.truncate(before);
    }

    /// What is known of a file by its path from the root.
    fn of(&self, path: &Path) -> BTreeMap<String, State> {
        let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let mut found = BTreeMap::new();
        for (depth, lines) in &self.levels {
            for line in lines.iter().filter(|line| line.pattern.matches(&parts[(*depth).min(parts.len())..]))
            {
                for (name, state) in &line.states {
                    if *state == State::Set {
                        for (name, state) in self.macro_of(name) {
                            found.insert(name, state);
                        }
                    }
                    found.insert(name.clone(), state.clone());
                }
            }
        }
        found
    }

    fn macro_of(&self, name: &str) -> States {
        match self.macros.get(name) {
            Some(states) => states.clone(),
            None if name == BINARY => vec![("text".to_owned(), State::Unset)],
            None => Vec::new(),
        }
    }

    /// The content of a file as a checkout has it, where that is another one; `id` is the name of its object.
    pub(super) fn checked_out(&self, path: &Path, id: &str, content: &[u8]) -> Option<Vec<u8>> {
        if self.levels.is_empty() {
            return None;
        }
        let known = self.of(path);
        let mut text = content.to_vec();
        if known.get("ident") == Some(&State::Set) {
            text = with_id(&text, id);
        }
        if gets_crlf(&known, &text) {
            text = with_crlf(&text);
        }
        if let Some(State::Value(encoding)) = known.get("working-tree-encoding")
            && let Some(encoded) = encoded(&text, encoding)
        {
            text = encoded;
        }
        (text != content).then_some(text)
    }
}

/// Whether the ends of lines become CRLF. Without `eol` they are those of the machine, and the machine is a Linux.
fn gets_crlf(known: &BTreeMap<String, State>, text: &[u8]) -> bool {
    let is_crlf = matches!(known.get("eol"), Some(State::Value(eol)) if eol == "crlf");
    let of_text =
        known.get("text").filter(|state| **state != State::Unspecified).or_else(|| known.get("crlf"));
    match of_text {
        Some(State::Unset) => false,
        // What looks like a text, and has only ends of lines that it is to lose.
        Some(State::Value(auto)) if auto == "auto" => is_crlf && !text.contains(&0) && !text.contains(&b'\r'),
        Some(State::Value(input)) if input == "input" => false,
        _ => is_crlf,
    }
}

fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(text.len() + text.len() / 16);
    for (at, byte) in text.iter().enumerate() {
        if *byte == b'\n' && (at == 0 || text[at - 1] != b'\r') {
            whole.push(b'\r');
        }
        whole.push(*byte);
    }
    whole
}

/// A text with `$Id: …$` in the place of `$Id$`, and of what it was before.
fn with_id(text: &[u8], id: &str) -> Vec<u8> {
    let mut whole = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(3).position(|three| three == b"$Id") {
        let after = &rest[at + 3..];
        let length = match after.first() {
            Some(b'$') => Some(1),
            Some(b':') => {
                let line = after.iter().take_while(|byte| **byte != b'\n').count();
                after[..line].iter().position(|byte| *byte == b'$').map(|end| end + 1)
            }
            _ => None,
        };
        whole.extend(&rest[..at + 3]);
        match length {
            Some(length) => {
                whole.extend(format!(": {id} $").as_bytes());
                rest = &after[length..];
            }
            None => rest = after,
        }
    }
    whole.extend(rest);
    whole
}

/// A text of UTF-8 in another encoding; None where its bytes are not UTF-8, or the encoding is not known here or lacks a letter.
fn encoded(text: &[u8], encoding: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let units = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    let single = |last: u32| {
        text.chars().map(|c| u8::try_from(u32::from(c)).ok().filter(|_| u32::from(c) <= last)).collect()
    };
    match encoding.to_ascii_uppercase().as_str() {
        "UTF-16" | "UTF16" | "UTF-16LE-BOM" => Some([vec![0xff, 0xfe], units(u16::to_le_bytes)].concat()),
        "UTF-16BE-BOM" => Some([vec![0xfe, 0xff], units(u16::to_be_bytes)].concat()),
        "UTF-16LE" => Some(units(u16::to_le_bytes)),
        "UTF-16BE" => Some(units(u16::to_be_bytes)),
        "ISO-8859-1" | "ISO8859-1" | "LATIN1" | "LATIN-1" => single(0xff),
        "US-ASCII" | "ASCII" => single(0x7f),
        _ => None,
    }
}

/// `text`, `-text`, `!text`, `eol=crlf`.
fn state(word: &str) -> (String, State) {
    match (word.strip_prefix('-'), word.strip_prefix('!'), word.split_once('=')) {
        (Some(name), _, _) => (name.to_owned(), State::Unset),
        (_, Some(name), _) => (name.to_owned(), State::Unspecified),
        (_, _, Some((name, value))) => (name.to_owned(), State::Value(value.to_owned())),
        _ => (word.to_owned(), State::Set),
    }
}

/// The pattern of a line, perhaps in quotes, and what is behind it.
fn split_pattern(line: &str) -> (String, &str) {
    if let Some(quoted) = line.strip_prefix('"')
        && let Some((pattern, rest)) = quoted.split_once('"')
    {
        return (pattern.to_owned(), rest);
    }
    let (pattern, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    (pattern.to_owned(), rest)
}

/// A pattern in the way of `.gitignore`: one without a slash is for names in any folder. Folders themselves match nothing.
struct Pattern {
    parts: Vec<Vec<char>>,
    is_name: bool,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let parts = text.trim_start_matches('/').split('/').map(|part| part.chars().collect()).collect();
        Pattern { parts, is_name: !text.contains('/') }
    }

    fn matches(&self, path: &[String]) -> bool {
        let names: Vec<Vec<char>> = path.iter().map(|part| part.chars().collect()).collect();
        if self.is_name {
            return names.last().is_some_and(|name| matches_part(&self.parts[0], name));
        }
        // Which beginnings of the path the parts so far match.
        let mut reached = vec![false; names.len() + 1];
        reached[0] = true;
        for part in &self.parts {
            let mut next = vec![false; names.len() + 1];
            let is_any = part.as_slice() == ['*', '*'];
            for at in 0..=names.len() {
                next[at] = if is_any {
                    reached[at] || (at > 0 && next[at - 1])
                } else {
                    at > 0 && reached[at - 1] && matches_part(part, &names[at - 1])
                };
            }
            reached = next;
        }
        reached[names.len()]
    }
}

/// Whether a name matches `*`, `?` and `[…]` of one part of a pattern; takes as long as both are long, multiplied.
fn matches_part(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut star, mut in_name) = (0, None, 0);
    while in_name < name.len() {
        match one(&pattern[at..], name[in_name]) {
            Some(length) => (at, in_name) = (at + length, in_name + 1),
            None if pattern.get(at) == Some(&'*') => {
                star = Some((at + 1, in_name));
                at += 1;
            }
            None => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (at, in_name) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

/// How much of a pattern matches one character, if it does match this one.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern {
        ['*', ..] | [] => None,
        ['?', ..] => Some(1),
        ['\\', escaped, ..] => (*escaped == c).then_some(2),
        ['[', rest @ ..] => {
            let end = rest.iter().skip(1).position(|c| *c == ']')? + 1;
            let (is_other, set) = match &rest[..end] {
                ['!' | '^', set @ ..] => (true, set),
                set => (false, set),
            };
            let mut is_in = set.contains(&c);
            for range in set.windows(3) {
                is_in |= range[1] == '-' && (range[0]..=range[2]).contains(&c);
            }
            (is_in != is_other).then_some(end + 2)
        }
        [first, ..] => (*first == c).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(usize, &str)], path: &str, content: &[u8]) -> Vec<u8> {
        let mut attributes = Attributes::default();
        for (depth, text) in files {
            attributes.enter(*depth, Some(text.as_bytes()));
        }
        attributes.checked_out(Path::new(path), "abc", content).unwrap_or_else(|| content.to_vec())
    }

    #[test]
    fn ends_of_lines_are_those_of_a_checkout() {
        let crlf = b"a\r\nb\r\n";
        for (text, path, content, expected) in [
            ("*.csv text eol=crlf", "data/a.csv", &b"a\nb\n"[..], &crlf[..]),
            ("*.csv eol=crlf", "a.csv", b"a\r\nb\n", crlf),
            ("*.csv text eol=crlf", "a.py", b"a\n", b"a\n"),
            ("*.csv text", "a.csv", b"a\n", b"a\n"),
            ("*.csv text eol=lf", "a.csv", b"a\r\n", b"a\r\n"),
            ("* text=auto eol=crlf", "a.csv", b"a\nb\n", crlf),
            ("* text=auto eol=crlf", "a.bin", b"a\n\0", b"a\n\0"),
            ("* text=auto eol=crlf", "a.csv", b"a\r\nb\n", b"a\r\nb\n"),
            ("* text eol=crlf\n*.bin binary", "a.bin", b"a\n", b"a\n"),
            ("* text eol=crlf\n*.bin -text", "a.bin", b"a\n", b"a\n"),
            ("* eol=crlf\n*.sh !eol", "a.sh", b"a\n", b"a\n"),
            ("[attr]dos text eol=crlf\n*.bat dos", "a.bat", b"a\nb\n", crlf),
            ("/data/**/x[0-9].txt eol=crlf", "data/p/q/x1.txt", b"a\nb\n", crlf),
            ("/data/**/x[0-9].txt eol=crlf", "data/x1.txt", b"a\nb\n", crlf),
            ("data/*.txt eol=crlf", "data/p/x.txt", b"a\n", b"a\n"),
            ("\"a b.txt\" eol=crlf", "a b.txt", b"a\nb\n", crlf),
            ("*.csv filter=lfs export-subst", "a.csv", b"$Format:%H$\n", b"$Format:%H$\n"),
        ] {
            assert_eq!(of(&[(0, text)], path, content), expected, "{text} for {path}");
        }
    }

    #[test]
    fn the_file_of_the_nearest_folder_has_the_last_word() {
        let files = [(0, "*.txt eol=crlf"), (1, "a.txt -text\n/b.txt eol=lf")];
        assert_eq!(of(&files, "data/a.txt", b"x\n"), b"x\n");
        assert_eq!(of(&files, "data/b.txt", b"x\n"), b"x\n");
        assert_eq!(of(&files, "data/c/b.txt", b"x\n"), b"x\r\n");
        let mut attributes = Attributes::default();
        let before = attributes.enter(1, Some(b"* eol=crlf"));
        attributes.leave(before);
        assert_eq!(attributes.checked_out(Path::new("other/a.txt"), "abc", b"x\n"), None);
    }

    #[test]
    fn encodings_and_ids_are_those_of_a_checkout() {
        let text = "\u{fc}\n".as_bytes();
        let encoded = |encoding: &str| of(&[(0, &format!("* working-tree-encoding={encoding}"))], "a", text);
        assert_eq!(encoded("UTF-16"), [0xff, 0xfe, 0xfc, 0, 0x0a, 0]);
        assert_eq!(encoded("UTF-16BE"), [0, 0xfc, 0, 0x0a]);
        assert_eq!(encoded("latin1"), [0xfc, 0x0a]);
        assert_eq!(encoded("ASCII"), text, "what it cannot say stays");
        assert_eq!(encoded("unheard-of"), text);
        assert_eq!(
            of(&[(0, "* ident")], "a", b"# $Id$ $Id: old $ $Idx\n"),
            b"# $Id: abc $ $Id: abc $ $Idx\n"
        );
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let stars = format!("{}b eol=crlf", "a*".repeat(5_000));
        let folders = format!("{}x eol=crlf", "**/".repeat(5_000));
        let name = "a".repeat(250);
        assert_eq!(of(&[(0, &stars), (0, &folders)], &format!("{name}/{name}"), b"x\n"), b"x\n");
    }
}
