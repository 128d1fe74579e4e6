//! The mask of a target: a Python file without its imports and without the bodies of its functions.
//!
//! Text in, text out. Bytes outside the cuts stay as they are: layout, comments, line ends, a byte order mark, a missing
//! newline at the end. docs/recube.md has the rules.

use std::collections::BTreeSet;
use std::ops::Range;

use ruff_python_ast::comparable::ComparableStmt;
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{AtomicNodeIndex, ExceptHandler, Stmt, StmtFunctionDef, StmtPass, Suite};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::docstring::{DocstringKind, docstring_kind};
use crate::python_source::encoding::{declared_encoding, name};
use crate::score::text::{Parsed, Unreadable, parse, text_of};
use crate::score::tree::{self, docstring, functions, without_docstring};

/// Larger files are not read: no person wrote them.
pub use crate::score::LONGEST;

/// What takes the place of a body.
const RAISE: &str = "raise NotImplementedError()";
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What of a file is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut<'a> {
    /// Imports and bodies.
    All,
    /// Bodies alone: what needs the imports and nothing else still passes.
    Bodies,
    /// The bodies of these functions, by their places in [`Masked::functions`].
    These(&'a BTreeSet<usize>),
}

/// A masked file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    pub text: String,
    /// All functions that are not inside another one, in the order of the text.
    pub functions: Vec<Function>,
    /// Import statements that are gone.
    pub imports: u32,
    /// Blocks of imports alone, which became `pass`.
    pub filled: u32,
}

/// A function whose body is masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// `Class.method`.
    pub name: String,
    /// First line, decorators included, 1-based.
    pub line: u32,
    /// Last line.
    pub end_line: u32,
    /// Whether the body says nothing: a stub.
    pub is_trivial: bool,
    pub docstring: DocstringKind,
    /// Statements of the body at whatever depth, a docstring aside.
    pub statements: u32,
}

/// Why a file cannot be a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotMaskable {
    Unreadable(Unreadable),
    /// The mask does not have the tree that it must have: a fault of gistmill.
    Unsound(&'static str),
}

impl NotMaskable {
    /// The reason in one word, as in the table `targets`.
    pub fn reason(&self) -> &'static str {
        match self {
            NotMaskable::Unreadable(why) => match why {
                Unreadable::TooLong => "too-long",
                Unreadable::NotUtf8 => "not-utf8",
                Unreadable::OtherEncoding { .. } => "other-encoding",
                Unreadable::NullByte { .. } => "null-byte",
                Unreadable::TooDeep => "too-deep",
                Unreadable::TooManyStatements { .. } => "too-many-statements",
                Unreadable::Syntax { .. } => "syntax",
            },
            NotMaskable::Unsound(_) => "unsound",
        }
    }

    /// What else is known, in words that can quote the file.
    pub fn detail(&self) -> Option<&str> {
        match self {
            NotMaskable::Unreadable(Unreadable::Syntax { message, .. }) => Some(message),
            NotMaskable::Unreadable(Unreadable::OtherEncoding { declared }) => Some(declared),
            NotMaskable::Unreadable(_) => None,
            NotMaskable::Unsound(why) => Some(why),
        }
    }

    /// The 1-based line, where there is one.
    pub fn line(&self) -> Option<u32> {
        match self {
            NotMaskable::Unreadable(Unreadable::Syntax { line, .. } | Unreadable::NullByte { line }) => {
                Some(*line)
            }
            NotMaskable::Unreadable(_) | NotMaskable::Unsound(_) => None,
        }
    }
}

impl From<Unreadable> for NotMaskable {
    fn from(why: Unreadable) -> Self {
        NotMaskable::Unreadable(why)
    }
}

/// The text of a file as it is, a byte order mark included.
///
/// # Errors
/// Why its bytes are not a text that Python would read in the same way.
pub fn text_of_target(bytes: &[u8]) -> Result<&str, NotMaskable> {
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        let line = String::from_utf8_lossy(&bytes[..at]).matches('\n').count() as u32 + 1;
        return Err(Unreadable::NullByte { line }.into());
    }
    let declared = declared_encoding(bytes).map(|place| name(bytes, &place));
    text_of(bytes).map_err(|why| match (why, declared) {
        (Unreadable::NotUtf8, Some(declared)) if !declared.starts_with("utf") => {
            Unreadable::OtherEncoding { declared }
        }
        (why, _) => why,
    })?;
    std::str::from_utf8(bytes).map_err(|_| Unreadable::NotUtf8.into())
}

/// Masks a file, and proves of the result that it is sound: it parses, it has the tree that the same cuts make of the
/// original's tree, and it masks to itself.
///
/// # Errors
/// Why the file cannot be masked.
pub fn mask(text: &str, cut: Cut<'_>) -> Result<Masked, NotMaskable> {
    let masked = cut_text(text, cut)?;
    let same = parse(text, |original| {
        let mut expected: Suite = original.body.iter().cloned().collect();
        reduce_all(&mut expected, cut);
        let is_same = |made: Parsed<'_>| same_trees(&expected, made.body);
        parse(&masked.text, is_same)
    })?;
    if !same? {
        return Err(NotMaskable::Unsound("it has another tree than the original without imports and bodies"));
    }
    if cut_text(&masked.text, cut)?.text != masked.text {
        return Err(NotMaskable::Unsound("masking it again changes it"));
    }
    Ok(masked)
}

/// Whether two lists of statements are equal as trees, whatever their layout.
pub(super) fn same_trees(one: &[Stmt], other: &[Stmt]) -> bool {
    one.iter().map(ComparableStmt::from).eq(other.iter().map(ComparableStmt::from))
}

fn cut_text(text: &str, cut: Cut<'_>) -> Result<Masked, NotMaskable> {
    let mark = if text.starts_with(BYTE_ORDER_MARK) { &text[..BYTE_ORDER_MARK.len_utf8()] } else { "" };
    let (functions, cuts) = parse(text, |parsed| {
        let mut cuts = Cuts::new(parsed);
        let functions = functions(parsed.body);
        for (at, (_, function)) in functions.iter().enumerate() {
            if !matches!(cut, Cut::These(only) if !only.contains(&at)) {
                cuts.body(function);
            }
        }
        if cut == Cut::All {
            cuts.imports(parsed.body, true);
        }
        let described = functions.iter().map(|(name, function)| describe(parsed, name, function));
        (described.collect(), (cuts.imports, cuts.filled, cuts.apply()))
    })?;
    let (imports, filled, text) = cuts;
    let text = text.ok_or(NotMaskable::Unsound("its cuts overlap"))?;
    Ok(Masked { text: format!("{mark}{text}"), functions, imports, filled })
}

fn describe(parsed: Parsed<'_>, name: &str, function: &StmtFunctionDef) -> Function {
    let (line, end_line) = parsed.lines.of_node(function);
    let body = without_docstring(&function.body);
    Function {
        name: name.to_owned(),
        line,
        end_line,
        is_trivial: is_trivial(body),
        docstring: docstring_kind(docstring(&function.body)),
        statements: tree::count(body, usize::MAX) as u32,
    }
}

/// Whether a body, its docstring aside, says nothing: `...`, `pass`, `raise NotImplementedError`.
pub(super) fn is_trivial(body: &[Stmt]) -> bool {
    body.iter().all(|statement| match statement {
        Stmt::Pass(_) => true,
        Stmt::Expr(alone) => alone.value.is_ellipsis_literal_expr(),
        _ => is_left(statement),
    })
}

/// Whether a statement is `raise NotImplementedError`, called or not, with whatever arguments.
fn is_left(statement: &Stmt) -> bool {
    let Stmt::Raise(raise) = statement else { return false };
    let Some(what) = raise.exc.as_deref() else { return false };
    let what = what.as_call_expr().map_or(what, |call| &call.func);
    what.as_name_expr().is_some_and(|name| name.id == "NotImplementedError")
}

/// Names of functions that say something in the original, and in a submission still `raise NotImplementedError` alone.
/// Empty for what cannot be parsed.
pub fn left_masked(submission: &str, original: &[Function]) -> Vec<String> {
    let says_something = |name: &str| original.iter().any(|one| one.name == name && !one.is_trivial);
    let found = parse(submission, |parsed| {
        let left = functions(parsed.body).into_iter().filter(|(name, function)| {
            matches!(without_docstring(&function.body), [only] if is_left(only)) && says_something(name)
        });
        left.map(|(name, _)| name).collect()
    });
    found.unwrap_or_default()
}

fn is_import(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Import(_) | Stmt::ImportFrom(_))
}

/// A range of the text and what takes its place.
type Edit = (Range<usize>, String);

/// The cuts of one file, collected before they are made.
struct Cuts<'a> {
    parsed: Parsed<'a>,
    /// Tokens that end a logical line.
    newlines: Vec<TextRange>,
    edits: Vec<Edit>,
    imports: u32,
    filled: u32,
}

impl<'a> Cuts<'a> {
    fn new(parsed: Parsed<'a>) -> Self {
        let newlines = parsed.tokens.iter().filter(|token| token.kind() == TokenKind::Newline);
        let newlines = newlines.map(Ranged::range).collect();
        Cuts { parsed, newlines, edits: Vec::new(), imports: 0, filled: 0 }
    }

    /// The text with all cuts made; none where they overlap.
    fn apply(mut self) -> Option<String> {
        self.edits.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut text, mut at) = (String::with_capacity(self.parsed.text.len()), 0);
        for (range, put) in &self.edits {
            text.push_str(self.parsed.text.get(at..range.start)?);
            text.push_str(put);
            at = range.end;
        }
        text.push_str(self.parsed.text.get(at..)?);
        Some(text)
    }

    /// The end of the logical line that a place is in.
    fn newline_after(&self, place: TextSize) -> TextRange {
        let at = self.newlines.partition_point(|newline| newline.start() < place);
        let end = TextSize::of(self.parsed.text);
        self.newlines.get(at).copied().unwrap_or(TextRange::empty(end))
    }

    /// Number of tokens that begin before a place.
    fn tokens_before(&self, place: TextSize) -> usize {
        self.parsed.tokens.partition_point(|token| token.start() < place)
    }

    /// Where the logical line of a statement begins, which is the first of it.
    fn logical_start(&self, place: TextSize) -> usize {
        let before = &self.parsed.tokens[..self.tokens_before(place)];
        let is_end = |kind| matches!(kind, TokenKind::Newline | TokenKind::NonLogicalNewline);
        before.iter().rfind(|token| is_end(token.kind())).map_or(0, |token| token.end().to_usize())
    }

    /// The columns of the indentation of the line of a place, as Python counts them.
    fn width(&self, place: TextSize) -> usize {
        let start = self.parsed.lines.start(self.parsed.lines.line(place)).unwrap_or_default();
        let mut columns = 0;
        for byte in self.parsed.text.as_bytes().iter().skip(start) {
            match byte {
                b' ' => columns += 1,
                b'\t' => columns += 8 - columns % 8,
                b'\x0c' => columns = 0,
                _ => break,
            }
        }
        columns
    }

    /// Cuts the body of a function.
    fn body(&mut self, function: &StmtFunctionDef) {
        let Some(first) = function.body.first() else { return };
        let documented = docstring(&function.body).is_some();
        let tokens = self.parsed.tokens;
        let between = tokens[..self.tokens_before(first.start())]
            .iter()
            .rev()
            .take_while(|token| token.kind() != TokenKind::Colon);
        let header = between.filter(|token| token.kind() == TokenKind::Newline).last();
        let (start, first_end) = (first.start().to_usize(), first.end().to_usize());
        let Some(header) = header else {
            let end = self.newline_after(function.end()).start().to_usize();
            let put =
                if documented { (first_end..end, format!("; {RAISE}")) } else { (start..end, RAISE.into()) };
            self.edits.push(put);
            return;
        };
        let line = &self.parsed.text[self.logical_start(first.start())..];
        let indentation = &line[..line.len() - line.trim_start_matches([' ', '\t', '\x0c']).len()];
        let end = self.end_of_body(function);
        self.edits.push(if documented {
            (first_end..end, format!("{}{indentation}{RAISE}", self.line_end(first_end)))
        } else {
            (header.end().to_usize()..end, format!("{indentation}{RAISE}"))
        });
    }

    /// The line end after a place; where the text ends before one, that of the first line.
    fn line_end(&self, place: usize) -> &'a str {
        let text = self.parsed.text;
        let of = |rest: &'a str| {
            let rest = &rest[rest.find(['\n', '\r'])?..];
            Some(if rest.starts_with("\r\n") { "\r\n" } else { &rest[..1] })
        };
        of(&text[place..]).or_else(|| of(text)).unwrap_or("\n")
    }

    /// Where the last line of a body ends: that of its last statement, or of a later comment that is indented deeper than the
    /// `def` and comes before the next statement.
    fn end_of_body(&self, function: &StmtFunctionDef) -> usize {
        let last = self.newline_after(function.end());
        let decorators_end = function.decorator_list.last().map_or(function.start(), Ranged::end);
        let tokens = self.parsed.tokens;
        let keyword = tokens[self.tokens_before(decorators_end)..]
            .iter()
            .find(|token| matches!(token.kind(), TokenKind::Def | TokenKind::Async));
        let own = self.width(keyword.map_or(function.start(), Ranged::start));
        let mut end = last.start();
        for token in &tokens[self.tokens_before(last.end())..] {
            match token.kind() {
                TokenKind::Comment if self.width(token.start()) > own => end = token.end(),
                TokenKind::Comment
                | TokenKind::Newline
                | TokenKind::NonLogicalNewline
                | TokenKind::Indent
                | TokenKind::Dedent => {}
                _ => break,
            }
        }
        end.to_usize()
    }

    /// Cuts the imports of a block, and of the blocks within it that are not bodies of functions.
    fn imports(&mut self, block: &[Stmt], may_be_empty: bool) {
        let line_of =
            |statement: &Stmt| self.newlines.partition_point(|newline| newline.start() < statement.start());
        let lines: Vec<&[Stmt]> = block.chunk_by(|one, next| line_of(one) == line_of(next)).collect();
        let mut becomes_pass = !may_be_empty && block.iter().all(is_import);
        for line in lines {
            becomes_pass &= !self.imports_of_line(line, becomes_pass);
        }
        let compound = block.iter().filter(|statement| !statement.is_function_def_stmt());
        for inner in compound.flat_map(tree::bodies) {
            self.imports(inner, false);
        }
    }

    /// Cuts the imports among the statements of one logical line; whether the line became `pass`.
    fn imports_of_line(&mut self, line: &[Stmt], becomes_pass: bool) -> bool {
        let (Some(first), Some(last)) = (line.first(), line.last()) else { return false };
        let gone = line.iter().filter(|statement| is_import(statement)).count();
        self.imports += gone as u32;
        if gone == 0 {
            return false;
        }
        let (start, newline) = (first.start().to_usize(), self.newline_after(last.end()));
        if gone < line.len() {
            let kept = line.iter().filter(|statement| !is_import(statement));
            let kept: Vec<&str> = kept.map(|statement| &self.parsed.text[statement.range()]).collect();
            self.edits.push((start..last.end().to_usize(), kept.join("; ")));
        } else if becomes_pass {
            self.filled += 1;
            self.edits.push((start..newline.start().to_usize(), "pass".to_owned()));
            return true;
        } else {
            self.edits.push((self.logical_start(first.start())..newline.end().to_usize(), String::new()));
        }
        false
    }
}

/// Makes of a tree what the mask must have: the same cuts, made without a look at the text.
fn reduce_all(body: &mut Suite, cut: Cut<'_>) {
    let raise = ruff_python_parser::parse_module(RAISE).map(|module| module.suite().to_vec());
    reduce(body, cut, (&raise.unwrap_or_default(), &mut 0));
}

fn reduce(body: &mut Suite, cut: Cut<'_>, (raise, count): (&[Stmt], &mut usize)) {
    if cut == Cut::All {
        body.retain(|statement| !is_import(statement));
    }
    for statement in body {
        if let Stmt::FunctionDef(function) = statement {
            if !matches!(cut, Cut::These(only) if !only.contains(count)) {
                function.body.truncate(usize::from(docstring(&function.body).is_some()));
                function.body.extend(raise.iter().cloned());
            }
            *count += 1;
        }
        for inner in blocks_mut(statement) {
            let was_empty = inner.is_empty();
            reduce(inner, cut, (raise, count));
            if inner.is_empty() && !was_empty {
                inner.push(Stmt::Pass(StmtPass {
                    range: TextRange::default(),
                    node_index: AtomicNodeIndex::default(),
                }));
            }
        }
    }
}

/// The blocks within a statement, bodies of functions aside, in the order of the text.
fn blocks_mut(statement: &mut Stmt) -> Vec<&mut Suite> {
    match statement {
        Stmt::ClassDef(class) => vec![&mut class.body],
        Stmt::For(each) => vec![&mut each.body, &mut each.orelse],
        Stmt::While(each) => vec![&mut each.body, &mut each.orelse],
        Stmt::With(with) => vec![&mut with.body],
        Stmt::If(branch) => {
            let clauses = branch.elif_else_clauses.iter_mut().map(|clause| &mut clause.body);
            std::iter::once(&mut branch.body).chain(clauses).collect()
        }
        Stmt::Match(choice) => choice.cases.iter_mut().map(|case| &mut case.body).collect(),
        Stmt::Try(attempt) => {
            let handlers = attempt.handlers.iter_mut();
            let handlers = handlers.map(|ExceptHandler::ExceptHandler(handler)| &mut handler.body);
            let mut found: Vec<&mut Suite> = vec![&mut attempt.body];
            found.extend(handlers);
            found.extend([&mut attempt.orelse, &mut attempt.finalbody]);
            found
        }
        _ => Vec::new(),
    }
}

/// Why the prompt of the published full-context setting shows the bodies of this file as they were: `fence` for three
/// backticks in it, `empty-block` for a block of imports alone. None where it does not, or for what cannot be parsed.
pub fn published_leak(text: &str) -> Option<&'static str> {
    if text.contains("```") {
        return Some("fence");
    }
    parse(text, |parsed| has_emptied_block(parsed.body)).ok()?.then_some("empty-block")
}

/// Whether a block of imports alone is where the published mask leaves it empty.
fn has_emptied_block(body: &[Stmt]) -> bool {
    body.iter().any(|statement| {
        let spared: Vec<&[Stmt]> = match statement {
            Stmt::If(branch) => branch
                .elif_else_clauses
                .iter()
                .filter(|one| one.test.is_none())
                .map(|one| &*one.body)
                .collect(),
            Stmt::For(each) => vec![&each.orelse],
            Stmt::While(each) => vec![&each.orelse],
            Stmt::Try(attempt) if attempt.handlers.is_empty() => vec![&attempt.orelse],
            Stmt::Try(attempt) => vec![&attempt.orelse, &attempt.finalbody],
            _ => Vec::new(),
        };
        tree::bodies(statement).into_iter().any(|inner| {
            let is_emptied = !inner.is_empty() && inner.iter().all(is_import);
            is_emptied && !spared.iter().any(|one| std::ptr::eq(*one, inner)) || has_emptied_block(inner)
        })
    })
}
