//! The text of a file that somebody else wrote, on its way to a syntax tree: checked, bounded, then parsed.
//!
//! What is refused here is refused by CPython as well, so that nothing that could run is lost: null bytes, more
//! nesting than its parser, its compiler or its indentation stack take. The depth is known before the parser runs,
//! because a tree that is too deep cannot even be dropped.

use std::borrow::Cow;

use ruff_python_ast::Stmt;
use ruff_python_ast::token::Token;
use ruff_text_size::{Ranged, TextSize};
use serde::{Deserialize, Serialize};

use crate::python_source::depth::is_too_deep;
use crate::python_source::encoding::{declared_encoding, is_utf_8, name};

/// Larger files are not read: no person wrote them.
pub const LONGEST: usize = 8 << 20;
/// Stack for what recurses over a tree; only what is used is ever touched.
const STACK: usize = 512 << 20;
/// These read ASCII as it is.
const LIKE_ASCII: [&str; 9] =
    ["ascii", "us-ascii", "latin-1", "latin1", "l1", "iso-8859-1", "iso-8859-15", "cp1252", "windows-1252"];

/// Why a text cannot be read as Python.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Unreadable {
    /// More than [`LONGEST`] bytes.
    TooLong,
    /// Bytes that are no UTF-8.
    NotUtf8,
    /// A declared encoding under which Python would read another text than this one.
    OtherEncoding { declared: String },
    /// CPython refuses null bytes wherever they stand.
    NullByte { line: u32 },
    /// Nested deeper than CPython compiles.
    TooDeep,
    /// A submission of more statements than are compared.
    TooManyStatements { most: u32 },
    /// No Python: the parser's words.
    Syntax { line: u32, message: String },
}

/// The text of a file, without a byte order mark.
pub fn text_of(bytes: &[u8]) -> Result<&str, Unreadable> {
    if bytes.len() > LONGEST {
        return Err(Unreadable::TooLong);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Unreadable::NotUtf8)?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// A text with `\n` as its only line end.
pub(crate) fn with_plain_line_ends(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return text.into();
    }
    text.replace("\r\n", "\n").replace('\r', "\n").into()
}

/// Where lines start; `\n`, `\r\n` and `\r` end one, as for Python.
#[derive(Debug, Clone)]
pub(crate) struct Lines(Vec<u32>);

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = |at: usize| bytes[at] == b'\n' || bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n');
        Lines(
            std::iter::once(0)
                .chain((0..bytes.len()).filter(|at| ends(*at)).map(|at| at as u32 + 1))
                .collect(),
        )
    }

    /// The 1-based line of an offset.
    pub(crate) fn line(&self, at: TextSize) -> u32 {
        self.0.partition_point(|start| *start <= at.to_u32()) as u32
    }

    /// The offset at which a 1-based line starts; the end of the text for a line after the last one.
    pub(crate) fn start(&self, line: u32) -> Option<usize> {
        self.0.get((line as usize).checked_sub(1)?).map(|at| *at as usize)
    }

    /// First and last line of a node.
    pub(crate) fn of_node(&self, node: impl Ranged) -> (u32, u32) {
        (self.line(node.start()), self.line(node.end()))
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

/// A parsed file, as long as it is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parsed<'a> {
    /// Without a byte order mark; offsets count from here.
    pub text: &'a str,
    pub body: &'a [Stmt],
    pub tokens: &'a [Token],
    pub lines: &'a Lines,
}

/// Parses a text and reads its tree, on a stack that suffices for every tree that is let through.
pub(crate) fn parse<T>(text: &str, read: impl FnOnce(Parsed<'_>) -> T) -> Result<T, Unreadable> {
    let text = text_of(text.as_bytes())?;
    let lines = Lines::of(text);
    check(text, &lines)?;
    stacker::grow(STACK, || {
        let module = ruff_python_parser::parse_module(text).map_err(|error| Unreadable::Syntax {
            line: lines.line(error.location.start()),
            message: error.error.to_string(),
        })?;
        Ok(read(Parsed { text, body: module.suite(), tokens: module.tokens(), lines: &lines }))
    })
}

/// Everything that is refused before the parser sees the text.
fn check(text: &str, lines: &Lines) -> Result<(), Unreadable> {
    if let Some(at) = text.bytes().position(|byte| byte == 0) {
        return Err(Unreadable::NullByte { line: lines.line(TextSize::new(at as u32)) });
    }
    if let Some(declared) = declared_encoding(text.as_bytes()).map(|place| name(text.as_bytes(), &place))
        && !is_utf_8(&declared)
        && !(LIKE_ASCII.contains(&&*declared) && text.is_ascii())
    {
        return Err(Unreadable::OtherEncoding { declared });
    }
    if is_too_deep(text) { Err(Unreadable::TooDeep) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Option<Unreadable> {
        parse(text, |_| ()).err()
    }

    #[test]
    fn lines_end_as_they_do_for_python() {
        let lines = Lines::of("a\nb\r\nc\rd");
        assert_eq!(
            (0..8).map(|at| lines.line(TextSize::new(at))).collect::<Vec<_>>(),
            [1, 1, 2, 2, 2, 3, 3, 4]
        );
        assert_eq!((lines.start(3), lines.start(5), lines.count()), (Some(5), None, 4));
    }

    #[test]
    fn what_python_would_not_read_is_refused_with_the_reason() {
        assert_eq!(text_of(b"x = '\xff'"), Err(Unreadable::NotUtf8));
        assert_eq!(refusal("a = 1\nb = '\0'\n"), Some(Unreadable::NullByte { line: 2 }));
        assert!(matches!(refusal("a = 1\nb = (\n"), Some(Unreadable::Syntax { line: 2.., .. })));
        assert_eq!(refusal(&" ".repeat(LONGEST + 1)), Some(Unreadable::TooLong));
        assert_eq!(refusal("\u{feff}a = 1\r\n\x0cb = 2\r"), None);
    }

    #[test]
    fn a_declared_encoding_must_leave_the_text_as_it_is() {
        let other = |declared: &str| Some(Unreadable::OtherEncoding { declared: declared.to_owned() });
        assert_eq!(refusal("# -*- coding: utf-7 -*-\nx = 1\n"), other("utf-7"));
        assert_eq!(refusal("#!/usr/bin/python\n# vim: set fileencoding=UTF_7 :\n"), other("utf-7"));
        assert_eq!(refusal("# coding: latin-1\nx = 'é'\n"), other("latin-1"));
        assert_eq!(refusal("# coding: latin-1\nx = 'e'\n"), None);
        assert_eq!(refusal("# -*- coding: UTF-8 -*-\nx = 'é'\n"), None);
        assert_eq!(refusal("x = 1\n# coding: utf-7\n"), None);
        assert_eq!(refusal("'''\n'''\n# coding: utf-7\n"), None);
    }

    #[test]
    fn trees_are_as_deep_as_cpython_takes_and_no_deeper() {
        for (start, again, end) in [
            ("x = ", "a + ", "a"),
            ("x = ", "not ", "a"),
            ("x = ", "-", "a"),
            ("x = a", ".b", ""),
            ("x = ", "a ** ", "a"),
            ("x = ", "a if a else ", "a"),
            ("x = ", "lambda: ", "a"),
        ] {
            let of = |count: usize| format!("{start}{}{end}\n", again.repeat(count));
            assert_eq!(refusal(&of(4_000)), None, "{again}");
            assert_eq!(refusal(&of(20_000)), Some(Unreadable::TooDeep), "{again}");
        }
        let calls = |count: usize| format!("x = a{}\n", ".b()".repeat(count));
        assert_eq!(refusal(&calls(4_900)), None);
        assert_eq!(refusal(&calls(1_000_000)), Some(Unreadable::TooDeep));
        let brackets = |count: usize| format!("x = {}{}\n", "(".repeat(count), ")".repeat(count));
        assert_eq!(refusal(&brackets(199)), None);
        assert_eq!(refusal(&brackets(1_000_000)), Some(Unreadable::TooDeep));
        assert_eq!(refusal(&format!("x = {}(", "not ".repeat(9_000)).repeat(2)), Some(Unreadable::TooDeep));
        let blocks = |count: usize| (0..count).map(|depth| " ".repeat(depth) + "if x:\n").collect::<String>();
        assert_eq!(refusal(&format!("{}{}pass\n", blocks(99), " ".repeat(99))), None);
        assert_eq!(refusal(&format!("{}{}pass\n", blocks(100), " ".repeat(100))), Some(Unreadable::TooDeep));
    }

    #[test]
    fn breadth_is_no_depth() {
        assert_eq!(refusal(&format!("x = [{}]\n", "f(1, -2), ".repeat(50_000))), None);
        assert_eq!(refusal(&format!("x = ({})\n", "'a' ".repeat(50_000))), None);
        assert_eq!(refusal(&"x = a + b\n".repeat(50_000)), None);
        assert_eq!(refusal(&format!("if a: pass\n{}", "elif b: pass\n".repeat(50_000))), None);
    }
}
