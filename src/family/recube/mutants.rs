//! Small mutants of a target: the original with one thing in it changed, to see what the cases notice.

use std::collections::BTreeSet;
use std::ops::Range;

use ruff_python_ast::token::{Token, TokenKind};
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{BoolOp, CmpOp, Expr, Number, Operator, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::mask::{functions, without_docstring};
use crate::record::id::hash_parts;
use crate::score::text::{Lines, parse};

/// The original with one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    pub text: String,
    /// First line of the outermost function that it is in, decorators included, 1-based.
    pub line: u32,
}

/// A change that can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    operator: &'static str,
    cut: Range<usize>,
    put: String,
    line: u32,
}

/// The first `most` mutants by a hash of the seed, the target and the change, among those at lines that the cases run. Where
/// lines are not known, the first line of a function is one of `lines`.
pub fn mutants(
    original: &str,
    (seed, target): (u64, &str),
    lines: &BTreeSet<u32>,
    most: usize,
) -> Vec<Mutant> {
    let mut changes = parse(original, |parsed| {
        let mut found = Changes {
            text: parsed.text,
            tokens: parsed.tokens,
            lines: parsed.lines,
            ran: lines,
            line: 0,
            all: Vec::new(),
        };
        for (_, function) in functions(parsed.body) {
            found.function(function);
        }
        found.all
    })
    .unwrap_or_default();
    let text = original.strip_prefix('\u{feff}').unwrap_or(original);
    changes.sort_by_cached_key(|change| {
        let [start, end] = [change.cut.start, change.cut.end].map(|at| at.to_string());
        hash_parts(&[seed.to_string().as_str(), target, change.operator, &start, &end])
    });
    let made = changes.into_iter().filter_map(|change| {
        let text = [text.get(..change.cut.start)?, &change.put, text.get(change.cut.end..)?].concat();
        parse(&text, |_| ()).ok()?;
        Some(Mutant { text, line: change.line })
    });
    made.take(most).collect()
}

/// Reads what can be changed in functions, docstrings aside.
struct Changes<'a> {
    text: &'a str,
    tokens: &'a [Token],
    lines: &'a Lines,
    ran: &'a BTreeSet<u32>,
    line: u32,
    all: Vec<Change>,
}

impl Changes<'_> {
    fn function(&mut self, function: &StmtFunctionDef) {
        self.line = self.lines.of_node(function).0;
        self.visit_body(without_docstring(&function.body));
    }

    fn add(&mut self, operator: &'static str, cut: TextRange, put: impl Into<String>) {
        let line = self.lines.line(cut.start());
        if self.ran.contains(&line) || self.ran.contains(&self.line) {
            let cut = cut.start().to_usize()..cut.end().to_usize();
            self.all.push(Change { operator, cut, put: put.into(), line: self.line });
        }
    }

    /// What is between two operands, without brackets and blanks.
    fn between(&self, left: TextSize, right: TextSize, kinds: &[TokenKind]) -> Option<TextRange> {
        let from = self.tokens.partition_point(|token| token.start() < left);
        let inside = self.tokens[from..].iter().take_while(|token| token.end() <= right);
        let mut found = inside.filter(|token| kinds.contains(&token.kind())).map(Ranged::range);
        let first = found.next()?;
        Some(found.fold(first, TextRange::cover))
    }

    /// Another operator in the place of the one between two operands.
    fn operator(
        &mut self,
        name: &'static str,
        (left, right): (&Expr, &Expr),
        kinds: &[TokenKind],
        put: &'static str,
    ) {
        if let Some(cut) = self.between(left.end(), right.start(), kinds) {
            self.add(name, cut, put);
        }
    }

    fn negate(&mut self, test: &Expr) {
        let written = &self.text[test.range()];
        self.add("condition", test.range(), format!("(not ({written}))"));
    }
}

fn turned(operator: CmpOp) -> &'static str {
    match operator {
        CmpOp::Eq => "!=",
        CmpOp::NotEq => "==",
        CmpOp::Lt => ">=",
        CmpOp::LtE => ">",
        CmpOp::Gt => "<=",
        CmpOp::GtE => "<",
        CmpOp::Is => "is not",
        CmpOp::IsNot => "is",
        CmpOp::In => "not in",
        CmpOp::NotIn => "in",
    }
}

const COMPARISONS: [TokenKind; 9] = [
    TokenKind::EqEqual,
    TokenKind::NotEqual,
    TokenKind::Less,
    TokenKind::LessEqual,
    TokenKind::Greater,
    TokenKind::GreaterEqual,
    TokenKind::Is,
    TokenKind::Not,
    TokenKind::In,
];

impl<'a> Visitor<'a> for Changes<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::If(branch) => {
                let clauses = branch.elif_else_clauses.iter().filter_map(|clause| clause.test.as_ref());
                std::iter::once(&*branch.test).chain(clauses).for_each(|test| self.negate(test));
            }
            Stmt::While(each) => self.negate(&each.test),
            Stmt::Return(back) => {
                if let Some(value) = back.value.as_deref().filter(|value| !value.is_none_literal_expr()) {
                    self.add("return", value.range(), "None");
                }
            }
            Stmt::FunctionDef(function) => return self.visit_body(without_docstring(&function.body)),
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Compare(compare) => {
                if let ([operator], [right]) = (&*compare.ops, &*compare.comparators) {
                    self.operator("comparison", (&compare.left, right), &COMPARISONS, turned(*operator));
                }
            }
            Expr::NumberLiteral(number) => {
                if let Number::Int(value) = &number.value
                    && let Some(next) = value.as_u64().and_then(|value| value.checked_add(1))
                {
                    self.add("integer", number.range(), next.to_string());
                }
            }
            Expr::BooleanLiteral(literal) => {
                self.add("boolean", literal.range(), if literal.value { "False" } else { "True" });
            }
            Expr::If(choice) => self.negate(&choice.test),
            Expr::BoolOp(all) => {
                if let [left, right, ..] = &*all.values {
                    let other = if all.op == BoolOp::And { "or" } else { "and" };
                    self.operator("and-or", (left, right), &[TokenKind::And, TokenKind::Or], other);
                }
            }
            Expr::BinOp(sum) if matches!(sum.op, Operator::Add | Operator::Sub) => {
                let other = if sum.op == Operator::Add { "-" } else { "+" };
                self.operator("sum", (&sum.left, &sum.right), &[TokenKind::Plus, TokenKind::Minus], other);
            }
            _ => {}
        }
        walk_expr(self, expression);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, lines: &[u32], most: usize) -> Vec<Mutant> {
        mutants(text, (7, "a.py"), &lines.iter().copied().collect(), most)
    }

    #[test]
    fn each_operator_changes_one_thing() {
        for (line, expected) in [
            ("(a) == (b)", &["(a) != (b)"][..]),
            ("a not in b", &["a in b"]),
            ("a is not b", &["a is b"]),
            ("a < b", &["a >= b"]),
            ("a < b < c", &[]),
            ("0x10", &["17"]),
            ("1.5", &[]),
            ("True", &["False"]),
            ("a if b else c", &["a if (not (b)) else c"]),
            ("a and b or c", &["a or b or c", "a and b and c"]),
            ("(a) - -b", &["(a) + -b"]),
            ("a * b", &[]),
        ] {
            let text = format!("def f():\n    'x == 1'\n    v = {line}\n");
            let mut found: Vec<String> = all(&text, &[3], 99).into_iter().map(|one| one.text).collect();
            let mut expected: Vec<String> = expected.iter().map(|one| text.replace(line, one)).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{line}");
        }
        let text = "def f(a):\n    while a:\n        return a, b\n    return None\n    return\n";
        let found: BTreeSet<String> = all(text, &[2, 3, 4, 5], 99).into_iter().map(|one| one.text).collect();
        let expected = [text.replace("while a", "while (not (a))"), text.replace("a, b", "None")];
        assert_eq!(found, expected.into());
    }

    #[test]
    fn they_are_at_lines_that_ran_in_functions_and_chosen_by_the_seed() {
        let text = "X = 1\n\n\n@deco(2)\ndef f(a=3):\n    def g(b=4):\n        '5'\n        return 6\n    return 7\n\n\nclass C:\n    Y = 8\n";
        assert_eq!(all(text, &[4], 99).len(), 4, "the first line of the function is as good as all of it");
        let lines: Vec<u32> = all(text, &[8], 99).iter().map(|one| one.line).collect();
        assert_eq!(lines, [4, 4]);
        assert_eq!(all(text, &[1, 5, 6, 7, 13], 99), []);
        let many = (0..40).map(|at| format!("    a = {at}\n")).collect::<Vec<_>>().concat();
        let text = format!("\u{feff}def f():\n{many}");
        let lines: Vec<u32> = (2..42).collect();
        let first = all(&text, &lines, 5);
        assert_eq!((first.len(), &first), (5, &all(&text, &lines, 5)));
        assert_ne!(first, mutants(&text, (8, "a.py"), &lines.iter().copied().collect(), 5));
        assert_eq!(first, all(&text, &lines, 20)[..5]);
    }
}
