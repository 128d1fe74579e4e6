//! Python source text, read as a syntax tree: where a test function is, what it uses in its own file, and what in
//! there looks as if it depends on where, when or as whom it runs. Pure: texts in, words out.
//!
//! A file is parsed once ([`SourceFile::parse`]) and cut into *units*: functions, methods, classes' own statements and
//! statements of the module. The closure of a test is what can be reached from its function within the file: fixtures
//! that it names, helpers, classes and constants that it refers to, autouse fixtures, set-up functions of its classes
//! and its module; and so on from each of these.
//!
//! Names are resolved without running anything, so they are suspicions and not proof:
//!
//! | written | resolved |
//! | --- | --- |
//! | `from socket import create_connection as cc; cc()` | `socket.create_connection` |
//! | `import numpy as np; np.random.rand()` | `numpy.random.rand` |
//! | `s = socket.socket(); s.connect()`, `Path("x").resolve()` | `socket.socket.connect`, `pathlib.Path.resolve` |
//! | `open()`, `__file__` | `open`, `__file__` |
//! | a fixture or `self`: `monkeypatch.setenv()` | `monkeypatch.setenv` |
//! | what the file defines, or imports relatively: `helper()`, `local.append()` | `.helper`, `.local.append` |
//! | what cannot be known: `f(x)[0].close()` | `.close` |

mod closure;
mod clues;
pub mod commands;
pub mod definitions;
pub(crate) mod depth;
pub(crate) mod encoding;
mod facts;
mod imported;
pub(crate) mod names;
mod nodes;
pub mod sources;
mod units;

use std::collections::BTreeSet;

pub use clues::{Clue, FilePart};
pub use encoding::decoded;
pub use imported::imported;
pub use nodes::{KINDS, is_kind};

use crate::record::collected::Group;
use units::Unit;

/// Larger files are not read: no person wrote them.
const LONGEST: usize = 8 << 20;
/// Stack for what recurses over the tree; only what is used is ever touched.
const STACK: usize = 256 << 20;

/// What is known of one file; holds no syntax tree.
#[derive(Debug, Clone)]
pub struct SourceFile {
    text: String,
    units: Vec<Unit>,
    classes: Vec<units::Class>,
    index: units::Index,
}

impl SourceFile {
    /// Reads a file. `path` is only looked at for the file's name.
    ///
    /// None when it is not Python that the parser knows, or too long or too deep.
    pub fn parse(path: &str, text: &str) -> Option<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.len() > LONGEST || depth::is_too_deep(text) {
            return None;
        }
        stacker::grow(STACK, || {
            let module = ruff_python_parser::parse_module(text).ok()?.into_syntax();
            let (units, classes, index) =
                units::split(&module.body, (text, stem(path)), clues::is_interesting);
            Some(SourceFile { text: text.to_owned(), units, classes, index })
        })
    }

    /// The test function of a group. None when the file does not define it, e.g. when it is inherited from elsewhere.
    pub fn code(&self, group: &Group) -> Option<Code<'_>> {
        let class = match group.classes.as_slice() {
            [] => None,
            classes => Some(closure::class_of(self, classes)?),
        };
        let test = closure::test_of(self, class, &group.function)?;
        Some(Code { file: self, closure: closure::of(self, test, class, group) })
    }

    fn unit_text(&self, unit: &Unit) -> &str {
        &self.text[unit.start..unit.end]
    }
}

/// The test function of one group and its closure.
#[derive(Debug, Clone)]
pub struct Code<'f> {
    file: &'f SourceFile,
    /// Units; the first one is the test function.
    closure: Vec<usize>,
}

impl<'f> Code<'f> {
    /// The lines of the test function, decorators included, without a newline at the end.
    pub fn source(&self) -> &'f str {
        self.file.unit_text(self.test())
    }

    /// First and last line of the test function, decorators included, 1-based.
    pub fn lines(&self) -> (u32, u32) {
        let test = self.test();
        (test.line, test.line + self.source().matches('\n').count() as u32)
    }

    /// Dotted names of everything that is called, names of one unit without repetition.
    pub fn calls(&self) -> impl Iterator<Item = &'f str> {
        self.units().flat_map(|unit| unit.facts.calls.iter().map(AsRef::as_ref))
    }

    /// Dotted names of everything that is read but not called: attributes, imported names, builtins.
    pub fn uses(&self) -> impl Iterator<Item = &'f str> {
        self.units().flat_map(|unit| unit.facts.uses.iter().map(AsRef::as_ref))
    }

    /// Whether a node of this kind (CPython's name for it) is in the closure.
    pub fn has_node(&self, kind: &str) -> bool {
        nodes::bit(kind).is_some_and(|bit| self.units().any(|unit| unit.facts.nodes & bit != 0))
    }

    /// What the closure consists of, the test function first.
    pub fn places(&self) -> BTreeSet<FilePart> {
        self.units().map(|unit| clues::place(self, unit)).collect()
    }

    fn test(&self) -> &'f Unit {
        &self.file.units[self.closure[0]]
    }

    fn units(&self) -> impl Iterator<Item = &'f Unit> {
        self.closure.iter().map(|unit| &self.file.units[*unit])
    }
}

/// The name of a file without its folder and its ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".py").unwrap_or(name)
}

#[cfg(test)]
mod tests;
