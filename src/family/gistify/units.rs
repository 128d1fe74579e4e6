//! A file cut into its logical lines: what the rates are made of.

mod cutter;

use ruff_python_ast::Stmt;
use serde::{Deserialize, Serialize};

use super::keys::{Forms, Key, Part, Reading};
use crate::score::modules::Bindings;
use crate::score::text::Parsed;
use cutter::{Cutter, Wanted};

/// What a line is. Comments and blanks are no logical lines, but a page shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineType {
    /// A comment, or a text that stands alone, docstrings included.
    Comment,
    ControlFlow,
    Definition,
    Executable,
    Import,
    Blank,
}

/// What a logical line begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineKind {
    Text,
    Import,
    Class,
    Function,
    AsyncFunction,
    If,
    Elif,
    Else,
    For,
    AsyncFor,
    While,
    With,
    AsyncWith,
    Try,
    TryStar,
    Except,
    Finally,
    Match,
    Case,
    Statement,
}

impl LineKind {
    pub fn line_type(self) -> LineType {
        match self {
            Self::Text => LineType::Comment,
            Self::Import => LineType::Import,
            Self::Class | Self::Function | Self::AsyncFunction => LineType::Definition,
            Self::If
            | Self::Elif
            | Self::Else
            | Self::For
            | Self::AsyncFor
            | Self::While
            | Self::With
            | Self::AsyncWith
            | Self::Try
            | Self::TryStar
            | Self::Except
            | Self::Finally
            | Self::Match
            | Self::Case => LineType::ControlFlow,
            Self::Statement => LineType::Executable,
        }
    }

    /// Whether line existence counts such a line.
    pub fn is_counted(self, counts: ControlFlow) -> bool {
        match self {
            Self::If | Self::Elif | Self::Else => true,
            other => match other.line_type() {
                LineType::Comment | LineType::Blank => false,
                LineType::ControlFlow => counts == ControlFlow::All,
                LineType::Import | LineType::Definition | LineType::Executable => true,
            },
        }
    }

    fn tag(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Import => "import",
            Self::Class => "class",
            Self::Function => "def",
            Self::AsyncFunction => "async def",
            Self::If | Self::Elif => "if",
            Self::Else => "else",
            Self::For => "for",
            Self::AsyncFor => "async for",
            Self::While => "while",
            Self::With => "with",
            Self::AsyncWith => "async with",
            Self::Try => "try",
            Self::TryStar => "try*",
            Self::Except => "except",
            Self::Finally => "finally",
            Self::Match => "match",
            Self::Case => "case",
            Self::Statement => "statement",
        }
    }
}

/// Which control flow line existence counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControlFlow {
    /// `if`, `elif` and `else`.
    Branches,
    /// Loops, `try`, `with` and `match` as well.
    All,
}

/// A logical line.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub kind: LineKind,
    /// The block that it belongs to; a definition belongs to the one that it opens. None at the top.
    pub block: Option<usize>,
    /// 1-based, decorators included; of a compound statement the header alone.
    pub first: u32,
    pub last: u32,
    /// Whether the interpreter may or may not report it, so that line execution leaves it out.
    pub free: bool,
    pub(super) keys: Keys,
}

/// What a line is compared by.
#[derive(Debug, Clone)]
pub(super) enum Keys {
    /// Not compared.
    None,
    /// Alternatives, each of which suffices.
    Any([Key; 2]),
    /// The lines of an `else`, of which one must be in the other.
    Body(Vec<Key>),
    Header(Box<Header>),
}

/// What a definition's own line is compared by.
#[derive(Debug, Clone)]
pub(super) struct Header {
    kind: LineKind,
    decorators: Vec<Forms>,
    /// Parameters with annotation and default.
    parameters: Vec<Forms>,
    /// Bases and keywords of a class.
    bases: Vec<Forms>,
    returns: Option<Forms>,
}

impl Header {
    /// Whether a definition could be this one after something was left out of it.
    pub(super) fn is_within(&self, original: &Header) -> bool {
        let all = |mine: &[Forms], theirs: &[Forms]| {
            mine.iter().all(|one| theirs.iter().any(|other| one.meets(*other)))
        };
        let same_return = match (self.returns, original.returns) {
            (None, _) => true,
            (Some(mine), Some(theirs)) => mine.meets(theirs),
            (Some(_), None) => false,
        };
        self.kind == original.kind
            && all(&self.decorators, &original.decorators)
            && all(&self.parameters, &original.parameters)
            && self.bases.len() == original.bases.len()
            && all(&self.bases, &original.bases)
            && same_return
    }
}

/// Whether a block is a class or a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum BlockKind {
    Class,
    Function,
}

/// A class or a function, and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub kind: BlockKind,
    pub name: String,
    /// The block around it.
    pub parent: Option<usize>,
}

/// A file cut into logical lines, in the order of the text; blocks come before what is in them.
#[derive(Debug, Clone, Default)]
pub(super) struct Cut {
    pub units: Vec<Unit>,
    pub blocks: Vec<Block>,
}

impl Cut {
    /// Names of a block and of those around it, the outermost first.
    pub(super) fn path(&self, block: Option<usize>) -> Vec<&str> {
        let around = std::iter::successors(block, |block| self.blocks[*block].parent);
        let mut path: Vec<&str> = around.map(|block| self.blocks[block].name.as_str()).collect();
        path.reverse();
        path
    }
}

/// Cuts a file.
pub(super) fn cut(parsed: Parsed<'_>, bindings: &Bindings<'_>) -> Cut {
    let mut cutter = Cutter { parsed, reading: Reading::of(bindings), cut: Cut::default() };
    cutter.body(parsed.body, None, Wanted::Lines);
    cutter.cut
}

/// Everything in the header of a definition.
pub(super) fn whole_header(statement: &Stmt) -> Vec<Part<'_>> {
    match statement {
        Stmt::FunctionDef(function) => {
            let mut parts: Vec<_> =
                function.decorator_list.iter().map(|it| Part::Expression(&it.expression)).collect();
            parts.extend([
                Part::Text(function.name.as_str()),
                Part::Parameters(&function.parameters),
                Part::expression(function.returns.as_deref()),
            ]);
            parts
        }
        Stmt::ClassDef(class) => {
            let mut parts: Vec<_> =
                class.decorator_list.iter().map(|it| Part::Expression(&it.expression)).collect();
            parts.push(Part::Text(class.name.as_str()));
            // `class A()` is `class A`.
            let arguments =
                class.arguments.as_deref().filter(|it| !it.args.is_empty() || !it.keywords.is_empty());
            parts.push(arguments.map_or(Part::Nothing, Part::Arguments));
            parts
        }
        _ => Vec::new(),
    }
}
