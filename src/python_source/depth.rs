//! Whether the syntax tree of a text could be so deep that walking it, or even dropping it, takes more stack than there is.
//! CPython refuses such texts as well.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

/// Levels of a tree within one logical line. CPython 3.13 compiles 10,000 of the cheapest kind, older ones 3,000.
const DEEPEST: u32 = 10_000;
/// Brackets (CPython: 200) and strings with fields (CPython: 150) that may be open at once.
const OPEN: usize = 350;
/// Levels of indentation, as in CPython.
const INDENTS: u32 = 100;

/// What is known of one open bracket: how high the tree of its current part can be, and that of the parts before.
#[derive(Default, Clone, Copy)]
struct Open {
    current: u32,
    highest: u32,
    /// Levels of the brackets around it.
    around: u32,
}

impl Open {
    fn height(self) -> u32 {
        self.current.max(self.highest)
    }

    fn next_part(&mut self) {
        self.highest = self.height();
        self.current = 0;
    }
}

/// Whether the tree could be too deep. Every operator and keyword is taken for a level, parts between commas are
/// beside each other, and a bracket is as high as its highest part.
pub(crate) fn is_too_deep(text: &str) -> bool {
    let mut lexer = lexer::lex(text, Mode::Module);
    let (mut open, mut indents) = (vec![Open::default()], 0u32);
    loop {
        let kind = lexer.next_token();
        let top = open.len() - 1;
        match kind {
            TokenKind::EndOfFile => return false,
            TokenKind::Indent => indents += 1,
            TokenKind::Dedent => indents = indents.saturating_sub(1),
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => {
                let around = open[top].around + open[top].current;
                open.push(Open { around, ..Open::default() });
            }
            TokenKind::Rpar
            | TokenKind::Rsqb
            | TokenKind::Rbrace
            | TokenKind::FStringEnd
            | TokenKind::TStringEnd => {
                if let (Some(closed), true) = (open.pop(), top > 0) {
                    open[top - 1].current += closed.height() + 1;
                } else {
                    open = vec![Open::default()];
                }
            }
            TokenKind::Comma => open[top].next_part(),
            TokenKind::Newline | TokenKind::Semi if top == 0 => open[0] = Open::default(),
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::FStringMiddle
            | TokenKind::TStringMiddle
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline => {}
            _ => open[top].current += 1,
        }
        let deepest = open.last().map_or(0, |last| last.around + last.current);
        if deepest > DEEPEST || open.len() > OPEN || indents >= INDENTS {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_too_deep;

    #[test]
    fn what_python_compiles_is_not_too_deep_and_what_overflows_is() {
        assert!(!is_too_deep("def f(a, b):\n    return [a, (b, {1: f'{a}'})]\n"));
        assert!(!is_too_deep(&"x = 1\n".repeat(20_000)));
        assert!(is_too_deep(&"1+".repeat(1 << 20)));
        assert!(is_too_deep(&"(".repeat(1 << 16)));
        assert!(is_too_deep(&(0..200).map(|depth| " ".repeat(depth) + "if 1:\n").collect::<String>()));
    }
}
