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
        None if noun.ends_with('s') => format!("{noun}es"),
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

/// A template in which each `{name}` of these places is their text, in one pass: what a text says is not looked at again.
pub(crate) fn filled(template: &str, places: &[(&str, &str)]) -> String {
    let mut filled =
        String::with_capacity(template.len() + places.iter().map(|one| one.1.len()).sum::<usize>());
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        filled.push_str(before);
        let name = after.split_once('}').map(|one| one.0);
        if let Some((place, text)) = places.iter().find(|(place, _)| name == Some(*place)) {
            filled.push_str(text);
            rest = &after[place.len() + 1..];
        } else {
            filled.push('{');
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_in_one_pass() {
        let places = [("a", "{b}"), ("b", "{a}{c}"), ("long", "")];
        assert_eq!(filled("{a}-{b}-{c}-{{a}}-{long}{ a}{", &places), "{b}-{a}{c}-{c}-{{b}}-{ a}{");
    }

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
