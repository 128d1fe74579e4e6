//! Code as data: texts, numbers, comments and blanks of a size that no file of the repository has.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextSize};

use super::Candidates;
use crate::family::gistify::existence::Corpus;
use crate::family::gistify::findings::FindingKind;

/// Bytes of texts in one statement, of comments in a row, of blanks in the file.
const MOST_BYTES: usize = 2_048;
/// Numbers in one statement.
const MOST_NUMBERS: usize = 400;
/// A text this long with hardly a blank in it may be a part of something packed.
const DENSE: usize = 24;
/// One blank in so many bytes: prose and code have more.
const BLANKS: usize = 25;

pub(super) fn look(found: &mut Candidates<'_>, corpus: &Corpus) {
    let body = found.parsed.body;
    let mut literals = Literals { corpus, here: 0, numbers: 0, dense: 0, found };
    literals.visit_body(body);
    comments(found, corpus);
    blanks(found);
}

struct Literals<'c, 'f, 'a> {
    corpus: &'c Corpus,
    /// Bytes and numbers of the statement.
    here: usize,
    numbers: usize,
    /// Bytes of dense texts in the file so far.
    dense: usize,
    found: &'f mut Candidates<'a>,
}

impl Literals<'_, '_, '_> {
    fn text(&mut self, at: TextSize, text: &str) {
        let lines = text.split('\n').map(str::trim).filter(|line| !line.is_empty());
        let unknown: Vec<&str> = lines.filter(|line| !self.corpus.has_text(line)).collect();
        let blank = text.len() - text.split('\n').map(|line| line.trim().len()).sum::<usize>();
        let size: usize = unknown.iter().map(|line| line.len()).sum();
        // A text of blanks can hold code as well; the indentation of a docstring is none.
        self.here += size + if size == 0 && unknown.len() + 1 < blank / 16 { blank } else { 0 };
        let blanks = unknown.iter().flat_map(|line| line.bytes()).filter(u8::is_ascii_whitespace).count();
        if size >= DENSE && blanks * BLANKS < size {
            let before = self.dense;
            self.dense += size;
            if before <= MOST_BYTES && self.dense > MOST_BYTES {
                let line = self.found.parsed.lines.line(at);
                let name = format!("{} bytes of packed texts", self.dense);
                self.found.add_always(FindingKind::HiddenCode, line, name);
            }
        }
    }
}

impl<'v> Visitor<'v> for Literals<'_, '_, '_> {
    fn visit_stmt(&mut self, statement: &'v Stmt) {
        let around = (std::mem::take(&mut self.here), std::mem::take(&mut self.numbers));
        visitor::walk_stmt(self, statement);
        let line = self.found.parsed.lines.line(statement.start());
        if self.here > MOST_BYTES {
            let name = format!("{} bytes of text", self.here);
            self.found.add_always(FindingKind::HiddenCode, line, name);
        }
        if self.numbers > MOST_NUMBERS {
            let name = format!("{} numbers", self.numbers);
            self.found.add_whole(FindingKind::HiddenCode, statement.range(), name);
        }
        (self.here, self.numbers) = around;
    }

    fn visit_expr(&mut self, expression: &'v Expr) {
        match expression {
            Expr::StringLiteral(text) => self.text(text.start(), text.value.to_str()),
            Expr::BytesLiteral(bytes) => {
                let all: Vec<u8> = bytes.value.bytes().collect();
                self.text(bytes.start(), &String::from_utf8_lossy(&all));
            }
            Expr::FString(text) => {
                let literal = text.value.elements().filter_map(|element| element.as_literal());
                let all: Vec<&str> = literal.map(|part| &*part.value).collect();
                self.text(text.start(), &all.concat());
            }
            Expr::NumberLiteral(_) => self.numbers += 1,
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

/// Comments in a row that no file of the repository has.
fn comments(found: &mut Candidates<'_>, corpus: &Corpus) {
    let text = found.parsed.text;
    let hashed: usize = text.lines().filter(|line| line.contains('#')).map(str::len).sum();
    if hashed <= MOST_BYTES {
        return;
    }
    let Ok(parsed) = ruff_python_parser::parse_module(text) else { return };
    let (mut size, mut start, mut last, mut dense) = (0, 0, 0, 0);
    for token in parsed.tokens().iter().filter(|token| token.kind().is_comment()) {
        let line = found.parsed.lines.line(token.start());
        let comment = text[token.range()].trim_start_matches('#').trim();
        if line > last + 1 {
            (size, start) = (0, line);
        }
        last = line;
        if corpus.has_text(comment) {
            continue;
        }
        let blanks = comment.bytes().filter(u8::is_ascii_whitespace).count();
        let packed =
            if comment.len() >= DENSE && blanks * BLANKS < comment.len() { comment.len() } else { 0 };
        let before = (size, dense);
        (size, dense) = (size + comment.len(), dense + packed);
        if before.0 <= MOST_BYTES && size > MOST_BYTES || before.1 <= MOST_BYTES && dense > MOST_BYTES {
            found.add_always(
                FindingKind::HiddenCode,
                start,
                format!("{} bytes of comments", size.max(dense)),
            );
        }
    }
}

/// Blanks and tabs behind a line, or between its words.
fn blanks(found: &mut Candidates<'_>) {
    let mut size = 0;
    for (number, line) in found.parsed.text.split('\n').enumerate() {
        let line = line.trim_end_matches('\r');
        let content = line.trim_end();
        let trailing = line.len() - content.len();
        let tabs = content.trim_start().bytes().filter(|byte| *byte == b'\t').count();
        let before = size;
        // An empty line may be indented as the lines around it are.
        size += if content.is_empty() { trailing.saturating_sub(40) } else { trailing } + tabs;
        size += if content.is_empty() && line.contains('\t') && line.contains(' ') { trailing } else { 0 };
        if before <= MOST_BYTES && size > MOST_BYTES {
            let line = u32::try_from(number + 1).unwrap_or(u32::MAX);
            found.add_always(FindingKind::HiddenCode, line, format!("{size} bytes of blanks and tabs"));
        }
    }
}
