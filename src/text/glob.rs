//! Globs over paths, as regular expressions. Pure.

/// The regular expression of a glob over a whole path: `*` and `?` stay within a segment, `**` does not.
///
/// Not by the crate `globset`, whose `?` is one byte: `test_?.py` would not fit `test_é.py`.
pub(crate) fn pattern(glob: &str) -> String {
    let mut regex = String::from("(?s)^");
    let mut rest = glob;
    while let Some(character) = rest.chars().next() {
        let (piece, length) = if rest.starts_with("**/") {
            ("(?:.*/)?".to_owned(), 3)
        } else if rest.starts_with("**") {
            (".*".to_owned(), 2)
        } else if character == '*' {
            ("[^/]*".to_owned(), 1)
        } else if character == '?' {
            ("[^/]".to_owned(), 1)
        } else {
            (regex::escape(&rest[..character.len_utf8()]), character.len_utf8())
        };
        regex.push_str(&piece);
        rest = &rest[length..];
    }
    regex.push('$');
    regex
}
