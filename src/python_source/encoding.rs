//! The text of a source file, decoded as Python decodes it (PEP 263): by its byte order mark, by the encoding that a comment
//! declares, else as UTF-8.

use std::ops::Range;

use encoding_rs::{Encoding, ISO_2022_JP};

const MARK: &[u8] = b"\xef\xbb\xbf";
/// Names of the encoding whose bytes are the first 256 characters; for browsers they mean another one.
const LATIN_1: [&str; 9] =
    ["latin-1", "latin1", "latin", "l1", "iso-8859-1", "iso8859-1", "8859", "cp819", "iso-latin-1"];
/// What Python calls an encoding, and what browsers do.
const OTHER_NAMES: [(&str, &str); 19] = [
    ("932", "sjis"),
    ("936", "gbk"),
    ("949", "euc-kr"),
    ("950", "big5"),
    ("cp932", "sjis"),
    ("cp936", "gbk"),
    ("cp949", "euc-kr"),
    ("cp950", "big5"),
    ("iso2022-jp", "iso-2022-jp"),
    ("mac-cyrillic", "x-mac-cyrillic"),
    ("mac-roman", "macintosh"),
    ("ms-kanji", "sjis"),
    ("ms936", "gbk"),
    ("ms949", "euc-kr"),
    ("s-jis", "sjis"),
    ("shiftjis", "sjis"),
    ("u-jis", "euc-jp"),
    ("uhc", "euc-kr"),
    ("ujis", "euc-jp"),
];

/// The text of a source file, without its byte order mark. Where a comment declares another encoding than UTF-8, it
/// declares UTF-8 in the text: written as that, Python reads the same program from it. What cannot be decoded is
/// replaced.
pub fn decoded(bytes: &[u8]) -> String {
    if let Some(text) = bytes.strip_prefix(MARK) {
        return lossy(text);
    }
    let other =
        declared_encoding(bytes).and_then(|place| Some((Charset::named(&name(bytes, &place))?, place)));
    let Some((charset, Range { start, end })) = other else { return lossy(bytes) };
    let bytes = [&bytes[..start], b"utf-8", &bytes[end..]].concat();
    match charset {
        Charset::Latin1 => bytes.into_iter().map(char::from).collect(),
        Charset::Other(encoding) => encoding.decode_without_bom_handling(&bytes).0.into_owned(),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where a comment in one of the first two lines names an encoding.
pub(crate) fn declared_encoding(bytes: &[u8]) -> Option<Range<usize>> {
    let mut start = 0;
    for _ in 0..2 {
        let rest = bytes.get(start..)?;
        let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let line = &rest[..length];
        let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\x0c')).count();
        match line.get(blanks) {
            Some(b'#') => {
                if let Some(place) = named_in(&line[blanks..]) {
                    return Some(start + blanks + place.start..start + blanks + place.end);
                }
            }
            Some(_) => return None,
            None => {}
        }
        start += length + if rest[length..].starts_with(b"\r\n") { 2 } else { 1 };
    }
    None
}

fn named_in(comment: &[u8]) -> Option<Range<usize>> {
    const WORD: &[u8] = b"coding";
    comment.windows(WORD.len() + 1).enumerate().find_map(|(at, window)| {
        if !window.starts_with(WORD) || !matches!(window[WORD.len()], b':' | b'=') {
            return None;
        }
        let after = at + window.len();
        let blanks = comment[after..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let is_of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let length = comment[after + blanks..].iter().take_while(is_of_name).count();
        (length > 0).then_some(after + blanks..after + blanks + length)
    })
}

/// The name at a place, as Python compares names.
pub(crate) fn name(bytes: &[u8], place: &Range<usize>) -> String {
    lossy(&bytes[place.clone()]).to_ascii_lowercase().replace('_', "-")
}

/// Whether a name means UTF-8, also with what editors write behind it (`utf-8-unix`).
pub(crate) fn is_utf_8(name: &str) -> bool {
    matches!(name, "utf-8" | "utf8" | "u8") || name.starts_with("utf-8-")
}

enum Charset {
    Latin1,
    Other(&'static Encoding),
}

impl Charset {
    /// None for UTF-8, and for what source is not written in.
    fn named(name: &str) -> Option<Self> {
        if is_utf_8(name) {
            return None;
        }
        let with_tail = ["latin-1-", "iso-8859-1-", "iso-latin-1-"];
        if LATIN_1.contains(&name) || with_tail.iter().any(|known| name.starts_with(known)) {
            return Some(Charset::Latin1);
        }
        let other =
            OTHER_NAMES.iter().find(|(python, _)| *python == name).map(|(_, label)| (*label).to_owned());
        let label = other.unwrap_or_else(|| name.replace("latin-", "latin"));
        let encoding = Encoding::for_label(label.as_bytes())?;
        (encoding.is_ascii_compatible() || encoding == ISO_2022_JP).then_some(Charset::Other(encoding))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_decoded_as_it_declares() {
        for (declared, bytes, text) in [
            ("latin-1", &b"Fr\xfcchte\x80"[..], "Früchte\u{80}"),
            ("Latin_1-unix", b"\xfc", "ü"),
            ("iso-8859-15", b"\xa4", "€"),
            ("latin-2", b"\xb1", "ą"),
            ("cp1252", b"\x80", "€"),
            ("cp1251", b"\xff", "я"),
            ("koi8_r", b"\xd1", "я"),
            ("shift_jis", b"\x83\x41", "ア"),
            ("cp932", b"\x83\x41", "ア"),
            ("euc_jp", b"\xa5\xa2", "ア"),
            ("iso2022_jp", b"\x1b$B%\"\x1b(B", "ア"),
            ("gb18030", b"\xd6\xd0", "中"),
            ("cp949", b"\xb0\xa1", "가"),
        ] {
            let source = [format!("# -*- coding: {declared} -*-\nx = ").as_bytes(), bytes].concat();
            assert_eq!(decoded(&source), format!("# -*- coding: utf-8 -*-\nx = {text}"), "{declared}");
        }
        for same in ["utf-8", "UTF-8-unix", "UTF8"] {
            let source = format!("# coding={same}\nx = 'ü'");
            assert_eq!(decoded(source.as_bytes()), source);
        }
    }

    #[test]
    fn marks_go_and_what_declares_nothing_is_utf_8() {
        assert_eq!(decoded(b"\xef\xbb\xbf# coding: latin-1\nx = '\xc3\xbc'"), "# coding: latin-1\nx = 'ü'");
        assert_eq!(decoded("x = 'ü'".as_bytes()), "x = 'ü'");
        assert_eq!(decoded(b"x = '\xfc'"), "x = '\u{fffd}'");
        assert_eq!(decoded(b"# coding: nothing\nx = '\xfc'"), "# coding: nothing\nx = '\u{fffd}'");
        assert_eq!(decoded(b"# coding: utf-16\nx"), "# coding: utf-16\nx");
        assert_eq!(decoded(b""), "");
    }

    #[test]
    fn only_a_comment_of_the_first_two_lines_declares() {
        let declared =
            |text: &str| declared_encoding(text.as_bytes()).map(|place| name(text.as_bytes(), &place));
        let latin = Some("latin-1".to_owned());
        assert_eq!(declared("#!/usr/bin/python\r\n# vim: set fileencoding=latin_1 :\r\n"), latin);
        assert_eq!(declared("\r# coding: latin-1"), latin);
        assert_eq!(declared(" \t\x0c# coding:, coding=\tlatin-1"), latin);
        assert_eq!(declared("#\n\n# coding: latin-1"), None);
        assert_eq!(declared("x = 1\n# coding: latin-1"), None);
        assert_eq!(declared("x = 1 # coding: latin-1"), None);
        assert_eq!(declared("# encoding latin-1\n#coding:\n"), None);
    }
}
