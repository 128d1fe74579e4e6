//! Pieces of text: excerpts of what programs print, counts in words. Pure.

pub(crate) mod command;
pub(crate) mod glob;

/// The last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The last line that says something.
pub(crate) fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// A number with its noun: `1 case`, `2 cases`, `2 repositories`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        _ if number == 1 => noun.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    };
    format!("{number} {plural}")
}

/// Quotes for a POSIX shell only where needed.
pub fn shell_quote(text: &str) -> String {
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '=' | '+' | ',' | '@' | '%')
    };
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_end_where_the_text_does() {
        assert_eq!(tail("a\nb\nc\n\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
        assert_eq!(last_line("a\n b \n\n"), "b");
        assert_eq!(last_line(" \n"), "");
    }

    #[test]
    fn a_noun_goes_with_its_number() {
        let said = [(0, "case"), (1, "case"), (2, "repository"), (1, "repository"), (3, "key")];
        let said = said.map(|(number, noun)| count(number, noun));
        assert_eq!(said, ["0 cases", "1 case", "2 repositories", "1 repository", "3 keys"]);
    }

    #[test]
    fn shell_quoting_keeps_plain_ids_plain() {
        assert_eq!(shell_quote("tests/test_a.py::TestB::test_c"), "tests/test_a.py::TestB::test_c");
        assert_eq!(shell_quote("tests/it's here.py::t"), "'tests/it'\\''s here.py::t'");
        assert_eq!(shell_quote(""), "''");
    }
}
