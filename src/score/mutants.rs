//! Mutants of a file: its text with one thing in it changed, to see what tests notice.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use ruff_python_ast::token::{Token, TokenKind};
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{BoolOp, CmpOp, Expr, Number, Operator, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::text::{Lines, parse};
use super::tree::{functions, without_docstring};
use crate::record::id::hash_parts;

/// The operator that takes a whole statement away; all others change it a little.
pub(crate) const REMOVED: &str = "statement";
const CONDITION: &str = "condition";
const RETURN: &str = "return";
/// Characters that are shown of an operator or a number.
const SHOWN: usize = 24;

/// One change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mutant {
    pub(crate) operator: &'static str,
    /// The line where it is, 1-based.
    pub(crate) at: u32,
    /// The byte of that line where it begins, 1-based.
    column: u32,
    /// First line of the outermost function that it is in, decorators included, 1-based.
    pub(crate) function: u32,
    /// Its place among all mutants of all files: a hash of the seed, the file and the change.
    pub(crate) rank: String,
    cut: Range<usize>,
    put: Put,
}

/// What is written in the place of a cut.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Put {
    Text(Cow<'static, str>),
    /// The cut itself, negated.
    Negated,
}

impl Mutant {
    /// The file with this change; none where that is not Python.
    pub(crate) fn text(&self, original: &str) -> Option<String> {
        let text = without_mark(original);
        let put = match &self.put {
            Put::Text(put) => put.clone(),
            Put::Negated => format!("(not ({}))", text.get(self.cut.clone())?).into(),
        };
        let text = [text.get(..self.cut.start)?, &put, text.get(self.cut.end..)?].concat();
        parse(&text, |_| ()).ok()?;
        Some(text)
    }

    /// The change in words, without code: `12:7 comparison == → !=`.
    pub(crate) fn words(&self, original: &str) -> String {
        let cut = without_mark(original).get(self.cut.clone()).unwrap_or_default();
        let what = match (self.operator, &self.put) {
            (REMOVED, _) => " taken away".to_owned(),
            (_, Put::Negated) => " negated".to_owned(),
            (RETURN, Put::Text(put)) => format!(" {}", put.trim_start()),
            (_, Put::Text(put)) => {
                let cut: String = cut.split_whitespace().collect::<Vec<_>>().join(" ");
                format!(" {} → {put}", cut.chars().take(SHOWN).collect::<String>())
            }
        };
        format!("{}:{} {}{what}", self.at, self.column, self.operator)
    }
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// All mutants of a file by their rank, among those at lines that ran; where lines are not known, the first line of a function
/// is one of `lines`. Those at the start of the order are a sample.
pub(crate) fn mutants(original: &str, (seed, file): (u64, &str), lines: &BTreeSet<u32>) -> Vec<Mutant> {
    let mut all = parse(original, |parsed| {
        let mut found = Changes {
            text: parsed.text,
            tokens: parsed.tokens,
            lines: parsed.lines,
            ran: lines,
            line: 0,
            last: BTreeSet::new(),
            shared: BTreeSet::new(),
            ranked: (seed.to_string(), file),
            all: Vec::new(),
        };
        for (_, function) in functions(parsed.body) {
            found.function(function);
        }
        found.all
    })
    .unwrap_or_default();
    all.sort_by(|one, other| one.rank.cmp(&other.rank));
    all
}

/// Reads what can be changed in functions, docstrings aside.
struct Changes<'a> {
    text: &'a str,
    tokens: &'a [Token],
    lines: &'a Lines,
    ran: &'a BTreeSet<u32>,
    /// First line of the function that is read.
    line: u32,
    /// Where the last statements of functions begin.
    last: BTreeSet<TextSize>,
    /// Names of the function that is read which functions inside it declare `nonlocal`: one that is bound nowhere does not compile.
    shared: BTreeSet<String>,
    /// The seed and the file.
    ranked: (String, &'a str),
    all: Vec<Mutant>,
}

impl Changes<'_> {
    fn function(&mut self, function: &StmtFunctionDef) {
        self.line = self.lines.of_node(function).0;
        let mut shared = Shared::default();
        shared.visit_body(&function.body);
        self.shared = shared.0;
        self.body(function);
    }

    fn body(&mut self, function: &StmtFunctionDef) {
        self.last.extend(function.body.last().map(Ranged::start));
        self.visit_body(without_docstring(&function.body));
    }

    /// Whether a statement binds a name that another function takes from here.
    fn binds_shared(&self, statement: &Stmt) -> bool {
        let targets: &[Expr] = match statement {
            Stmt::Assign(one) => &one.targets,
            Stmt::AnnAssign(one) => std::slice::from_ref(&*one.target),
            Stmt::AugAssign(one) => std::slice::from_ref(&*one.target),
            _ => return false,
        };
        let mut bound = Bound::default();
        for target in targets {
            bound.visit_expr(target);
        }
        bound.0.iter().any(|name| self.shared.contains(name))
    }

    fn add(&mut self, operator: &'static str, cut: TextRange, put: impl Into<Cow<'static, str>>) {
        self.add_put(operator, cut, Put::Text(put.into()));
    }

    fn add_put(&mut self, operator: &'static str, cut: TextRange, put: Put) {
        let line = self.lines.line(cut.start());
        if self.ran.contains(&line) || self.ran.contains(&self.line) {
            let column = cut.start().to_usize() - self.lines.start(line).unwrap_or_default() + 1;
            let column = u32::try_from(column).unwrap_or(u32::MAX);
            let cut = cut.start().to_usize()..cut.end().to_usize();
            let [start, end] = [cut.start, cut.end].map(|at| at.to_string());
            let rank = hash_parts(&[&*self.ranked.0, self.ranked.1, operator, &*start, &*end]);
            self.all.push(Mutant { operator, at: line, column, function: self.line, rank, cut, put });
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
        // One comparison is negated by its operator.
        if !matches!(test, Expr::Compare(compare) if compare.ops.len() == 1) {
            self.add_put(CONDITION, test.range(), Put::Negated);
        }
    }
}

/// Names that are declared `nonlocal`.
#[derive(Default)]
struct Shared(BTreeSet<String>);

impl<'a> Visitor<'a> for Shared {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::Nonlocal(names) = statement {
            self.0.extend(names.names.iter().map(ToString::to_string));
        }
        walk_stmt(self, statement);
    }
}

/// Names in a target.
#[derive(Default)]
struct Bound(BTreeSet<String>);

impl<'a> Visitor<'a> for Bound {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(name) = expression {
            self.0.insert(name.id.to_string());
        }
        walk_expr(self, expression);
    }
}

/// Whether a statement without parts of its own does something when it runs.
fn says_something(statement: &Stmt) -> bool {
    match statement {
        Stmt::Expr(alone) => !alone.value.is_literal_expr(),
        Stmt::AnnAssign(one) => one.value.is_some(),
        Stmt::Assign(_)
        | Stmt::AugAssign(_)
        | Stmt::Delete(_)
        | Stmt::Raise(_)
        | Stmt::Return(_)
        | Stmt::Assert(_) => true,
        _ => false,
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
        // Without a `return` at its end a function returns None, as another mutant has it.
        let is_last_return = statement.is_return_stmt() && self.last.contains(&statement.start());
        if says_something(statement) && !is_last_return && !self.binds_shared(statement) {
            self.add(REMOVED, statement.range(), "pass");
        }
        match statement {
            Stmt::If(branch) => {
                let clauses = branch.elif_else_clauses.iter().filter_map(|clause| clause.test.as_ref());
                std::iter::once(&*branch.test).chain(clauses).for_each(|test| self.negate(test));
            }
            Stmt::While(each) => self.negate(&each.test),
            Stmt::Return(back) => {
                if let Some(value) = back.value.as_deref().filter(|value| !value.is_none_literal_expr()) {
                    let is_close = self.text[..value.start().to_usize()].ends_with("return");
                    self.add(RETURN, value.range(), if is_close { " None" } else { "None" });
                }
            }
            Stmt::FunctionDef(function) => return self.body(function),
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

    fn all(text: &str, lines: &[u32]) -> Vec<Mutant> {
        mutants(text, (7, "a.py"), &lines.iter().copied().collect())
    }

    /// Small changes alone.
    fn small(text: &str, lines: &[u32]) -> Vec<Mutant> {
        all(text, lines).into_iter().filter(|one| one.operator != REMOVED).collect()
    }

    fn texts(mutants: &[Mutant], original: &str) -> BTreeSet<String> {
        mutants.iter().map(|one| one.text(original).unwrap()).collect()
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
            let expected: BTreeSet<String> = expected.iter().map(|one| text.replace(line, one)).collect();
            assert_eq!(texts(&small(&text, &[3]), &text), expected, "{line}");
        }
        let text = "def f(a):\n    while a:\n        return a, b\n    return None\n    return\n";
        let expected = [text.replace("while a", "while (not (a))"), text.replace("a, b", "None")];
        assert_eq!(texts(&small(text, &[2, 3, 4, 5]), text), expected.into());
    }

    #[test]
    fn a_statement_that_says_something_is_taken_away() {
        for (line, is_taken) in [
            ("v: int = f(\n        1,\n    )", true),
            ("v: int", false),
            ("v += w", true),
            ("f(w)", true),
            ("'text'", false),
            ("...", false),
            ("pass", false),
            ("del v", true),
            ("raise E", true),
            ("return", true),
            ("assert v", true),
            ("import w", false),
            ("global v", false),
        ] {
            let text = format!("\u{feff}def f():\n    {line}\n    yield\n");
            let found: Vec<Mutant> =
                all(&text, &[2]).into_iter().filter(|one| one.operator == REMOVED).collect();
            let expected: Vec<String> =
                is_taken.then(|| "def f():\n    pass\n    yield\n".to_owned()).into_iter().collect();
            assert_eq!(
                found.iter().map(|one| one.text(&text).unwrap()).collect::<Vec<_>>(),
                expected,
                "{line}"
            );
        }
        let text = "def f():\n    if v is  not w:\n        return 12\n    if v:\n        return\"x\"\n";
        let words: BTreeSet<String> = all(text, &[2, 3, 4, 5]).iter().map(|one| one.words(text)).collect();
        let expected = [
            "2:10 comparison is not → is",
            "3:16 integer 12 → 13",
            "3:16 return None",
            "3:9 statement taken away",
            "4:8 condition negated",
            "5:15 return None",
            "5:9 statement taken away",
        ];
        assert_eq!(words, expected.map(str::to_owned).into());
        assert!(texts(&small(text, &[5]), text).contains(&text.replace("\"x\"", " None")));
    }

    #[test]
    fn no_two_are_the_same_program_and_none_fails_to_compile() {
        let text = "def f(a):\n    if a < 1:\n        return a\n    return 2 * a\n";
        let words: BTreeSet<String> = all(text, &[2, 4]).iter().map(|one| one.words(text)).collect();
        let expected =
            ["2:10 comparison < → >=", "2:12 integer 1 → 2", "4:12 integer 2 → 3", "4:12 return None"];
        assert_eq!(words, expected.map(str::to_owned).into(), "its last statement is not taken away as well");
        assert_eq!(all("def f():\n    g()\n    return\n", &[3]), [], "nothing would change");
        let text =
            "def f():\n    n = 0\n    m = 0\n    def g():\n        nonlocal n\n        n += 1\n    g()\n";
        let lines: Vec<u32> =
            all(text, &[2, 3, 6]).iter().filter(|one| one.operator == REMOVED).map(|one| one.at).collect();
        assert_eq!(lines, [3], "`nonlocal` needs a name that is bound");
    }

    #[test]
    fn they_are_at_lines_that_ran_in_functions_and_ranked_by_the_seed() {
        let text = "X = 1\n\n\n@deco(2)\ndef f(a=3):\n    def g(b=4):\n        '5'\n        return 6\n    return 7\n\n\nclass C:\n    Y = 8\n";
        assert_eq!(small(text, &[4]).len(), 4, "the first line of the function is as good as all of it");
        let lines: Vec<(u32, u32)> = small(text, &[8]).iter().map(|one| (one.at, one.function)).collect();
        assert_eq!(lines, [(8, 4), (8, 4)]);
        assert_eq!(all(text, &[1, 5, 6, 7, 13]), []);
        let many = (0..40).map(|at| format!("    a = {at}\n")).collect::<Vec<_>>().concat();
        let text = format!("def f():\n{many}");
        let lines: Vec<u32> = (2..42).collect();
        let found = all(&text, &lines);
        assert_eq!(found.len(), 80);
        assert!(found.is_sorted_by(|one, next| one.rank < next.rank));
        let order = |all: &[Mutant]| all.iter().map(|one| (one.at, one.operator)).collect::<Vec<_>>();
        let other = mutants(&text, (8, "a.py"), &lines.iter().copied().collect());
        assert_ne!(order(&found), order(&other));
        let fewer: Vec<Mutant> = found.iter().filter(|one| one.at < 12).cloned().collect();
        assert_eq!(all(&text, &lines[..10]), fewer, "what ran elsewhere does not change the order");
    }
}
