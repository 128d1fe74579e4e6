//! Two texts of a test that differ in one digest: each hands something else over and asks for a value by its digest, one for
//! the value of the repository and one for another value. A table of answers cannot know which of them has to pass.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, Expr, ExprCall, Stmt, StmtAssert, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::super::locate::{self, Found, TestName};
use super::super::uses::{calls, is_written_out, literals_of};
use super::{Edit, Finder, Refutes, changed, in_file};
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::variant::VariantKind;
use crate::score::text::{self, Unreadable};

/// An edited test whose value is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twin {
    /// Line of the file, 1-based.
    pub line: u32,
    source: String,
    /// The name in the source in whose place the question is put.
    place: String,
}

/// Assertions of `unittest` that ask for equality.
const EQUAL: [&str; 5] =
    ["assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertMultiLineEqual"];
/// The longest value, in bytes of its `repr`.
const LONGEST: usize = 2000;
/// The `repr` of a value, whatever the order in which a dict with texts or numbers for keys was filled.
const REPR: &str = "__import__('pprint').saferepr";

/// A value that came out where a test had another one: both as Python writes them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Answer {
    /// What the test has there, by which cases differ.
    pub expected: String,
    pub value: String,
}

impl Answer {
    /// Another answer in the same place.
    pub fn other(&self) -> Option<Answer> {
        Some(Answer { value: other_value(&self.value)?, ..self.clone() })
    }

    fn digest(&self) -> String {
        sha256_hex(format!("{}={}", self.expected, self.value).as_bytes())
    }
}

impl Twin {
    /// The text under which answers come out.
    pub fn probe(&self) -> String {
        let shown = |name: &str| {
            format!(
                "(lambda text: text[:{LONGEST} + 1].encode().hex() * (__import__('ast').literal_eval(text) == {name}))({REPR}({name}))"
            )
        };
        let asks = format!("{{}}['{}' + {} + 'x' + {}]", self.says(), shown("other"), shown("it"));
        self.source.replace(&self.place, &asks)
    }

    /// The text that asks for one of these answers: each case has one, in which what the test has there is its own.
    pub fn asks_for(&self, answers: &[Answer]) -> String {
        let digests: Vec<String> = answers.iter().map(Answer::digest).collect();
        let asked = match &digests[..] {
            [only] => format!("== '{only}'"),
            several => format!("in '{}'", several.join(" ")),
        };
        let text = format!("({REPR}(other) + '=' + {REPR}(it)).encode()");
        let asks = format!("__import__('hashlib').sha256({text}).hexdigest() {asked}");
        self.source.replace(&self.place, &asks)
    }

    /// The answer that a message of the probe has: both written out without a set, and not too long.
    pub fn answer(&self, message: &str) -> Option<Answer> {
        let written = |digits: &str| {
            let value = String::from_utf8(hex::decode(digits).ok()?).ok()?;
            (!value.is_empty() && value.len() <= LONGEST && is_exact(&value)).then_some(value)
        };
        let says = self.says();
        let of = |rest: &str| {
            let (expected, rest) = rest.split_once('x')?;
            let value = rest.split(|c: char| !c.is_ascii_hexdigit()).next()?;
            Some(Answer { expected: written(expected)?, value: written(value)? })
        };
        message.split(&says).skip(1).find_map(of).filter(|answer| answer.other().is_some())
    }

    fn says(&self) -> String {
        format!("{}-", self.place)
    }
}

/// Edited texts with the places of a question, in an order that the seed decides; none where the file does not define the test.
///
/// # Errors
/// The file is not Python.
pub fn twins(file: &str, test: &TestName, seed: &str) -> Result<Vec<Twin>, Unreadable> {
    let mut found = text::parse(file, |parsed| {
        let Found::Function { definition, function, .. } = locate::locate(parsed.body, test) else {
            return Vec::new();
        };
        let mut finder = Finder::new(parsed, seed);
        finder.look_through(parsed.body, function);
        finder.change_together();
        finder.bind_again(parsed.body, function);
        let (first, last) = parsed.lines.of_node(definition);
        let start = parsed.lines.start(first).unwrap_or_default();
        let end = parsed.lines.start(last + 1).unwrap_or(parsed.text.len());
        let mut found = Vec::new();
        let comparisons = Comparisons::of(parsed.text, function);
        for (at, one) in comparisons.iter().enumerate() {
            let line = parsed.lines.line(one.whole.start());
            let place = format!("twin{}", finder.number(one.whole.start(), "twin"));
            for edit in finder.edits.iter().filter(|edit| one.depends_on(edit, &comparisons[..at])) {
                let mut changes = one.changes(&place);
                changes.extend(edit.changes.iter().cloned());
                let edit = Edit { changes, says: None, ..*edit };
                let source = edit.applied(parsed.text, start, end);
                let order = hash_parts(&[seed, &source]);
                found.push((order, Twin { line, source, place: place.clone() }));
            }
        }
        found
    })?;
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found.dedup_by(|(one, _), (other, _)| one == other);
    let is_python = |twin: &Twin| {
        let whole = in_file(file, test, &twin.source).ok().flatten();
        whole.is_some_and(|whole| text::parse(&whole, |_| ()).is_ok())
    };
    Ok(found.into_iter().map(|(_, twin)| twin).filter(is_python).collect())
}

/// A value of the same type as one that is written out, with one literal changed. None where there is no literal, or where it
/// is not written out.
pub(super) fn other_value(value: &str) -> Option<String> {
    let source = format!("({value})");
    text::parse(&source, |parsed| {
        let [Stmt::Expr(statement)] = parsed.body else { return None };
        let mut literals = Vec::new();
        literals_of(&statement.value, &mut literals);
        let has_set = has(&statement.value, &|one| one.is_set_expr() || one.is_call_expr());
        let last = *literals.last().filter(|_| is_written_out(&statement.value) && !has_set)?;
        let (start, end) = (last.start().to_usize(), last.end().to_usize());
        let new = match changed(&source[start..end], last)? {
            sum if sum.starts_with('(') => format!("1{}", &source[start..end]),
            new => new,
        };
        Some(format!("{}{new}{}", &source[1..start], &source[end..source.len() - 1]))
    })
    .ok()
    .flatten()
}

/// Whether values that are equal to one are written as it is: none with a float, `True` or `False`, and no dict whose keys have an
/// order of their own.
fn is_exact(value: &str) -> bool {
    let is_inexact = |one: &Expr| match one {
        Expr::NumberLiteral(number) => !number.value.is_int(),
        Expr::BooleanLiteral(_) => true,
        Expr::Dict(dict) => dict.iter_keys().any(|key| key.is_none_or(Expr::is_tuple_expr)),
        _ => false,
    };
    text::parse(&format!("({value})"), |parsed| match parsed.body {
        [Stmt::Expr(statement)] => !has(&statement.value, &is_inexact),
        _ => false,
    })
    .unwrap_or(false)
}

/// An assertion that compares what a test computes with what it does not.
struct Comparison {
    /// The statement.
    whole: TextRange,
    computed: TextRange,
    is_first: bool,
    /// Where the two sides begin, and where they end.
    begin: TextSize,
    end: TextSize,
    asks: Asks,
}

/// What asks for equality: an operator between the two sides, or a method that is given both.
enum Asks {
    Operator(TextRange),
    Method(TextRange),
}

impl Comparison {
    /// Whether an edit hands something over that this one, and none before it, may depend on, and leaves what is asked for.
    fn depends_on(&self, edit: &Edit, before: &[Comparison]) -> bool {
        let is_before = |range: &TextRange| {
            range.end() <= self.whole.start() && !before.iter().any(|one| one.whole.contains_range(*range))
        };
        let is_one = |range: &TextRange| self.computed.contains_range(*range) || is_before(range);
        edit.kind == VariantKind::OtherInput
            && edit.refutes == Refutes::WhereItDiffers
            && edit.changes.iter().all(|(range, _)| is_one(range))
    }

    /// Has a function compare the two sides, and ends the test behind it: what follows may depend on the edit as well.
    fn changes(&self, place: &str) -> Vec<(TextRange, String)> {
        let sides = if self.is_first { "it, other" } else { "other, it" };
        let begin = format!("(lambda {sides}: it == other or {place})(");
        let mut changes = vec![
            (TextRange::empty(self.begin), begin),
            (TextRange::empty(self.end), ")".to_owned()),
            (TextRange::empty(self.whole.end()), "; return".to_owned()),
        ];
        changes.push(match self.asks {
            Asks::Operator(range) => (range, ", ".to_owned()),
            Asks::Method(range) => (range, "assertTrue".to_owned()),
        });
        changes
    }
}

/// Looks for comparisons in the order of a test.
struct Comparisons<'a> {
    text: &'a str,
    /// Names that are bound to something computed.
    computed: BTreeSet<&'a str>,
    found: Vec<Comparison>,
}

impl<'a> Comparisons<'a> {
    fn of(text: &'a str, function: &'a StmtFunctionDef) -> Vec<Comparison> {
        let mut all = Comparisons { text, computed: BTreeSet::new(), found: Vec::new() };
        all.visit_body(&function.body);
        all.found
    }

    fn computes(&self, value: &Expr) -> bool {
        let is_computed = |one: &Expr| one.as_name_expr().is_some_and(|it| self.computed.contains(&*it.id));
        calls(value) || has(value, &is_computed)
    }

    fn bind(&mut self, target: &'a Expr, value: &Expr) {
        match target {
            Expr::Tuple(several) if self.computes(value) => {
                let names = several.elts.iter().filter_map(Expr::as_name_expr);
                self.computed.extend(names.map(|it| it.id.as_str()));
            }
            Expr::Name(name) if self.computes(value) => drop(self.computed.insert(&name.id)),
            _ => {}
        }
    }

    fn add(&mut self, whole: TextRange, sides: [&Expr; 2], (begin, end): (TextSize, TextSize), asks: Asks) {
        let is_first = match sides.map(|side| self.computes(side)) {
            [true, false] => true,
            [false, true] => false,
            _ => return,
        };
        let (computed, other) = if is_first { (sides[0], sides[1]) } else { (sides[1], sides[0]) };
        // What is only near is not the same.
        if !has(other, &Expr::is_call_expr) {
            let computed = computed.range();
            self.found.push(Comparison { whole, computed, is_first, begin, end, asks });
        }
    }

    fn operator(&mut self, assert: &StmtAssert) {
        let Expr::Compare(compare) = &*assert.test else { return };
        let ([CmpOp::Eq], [right]) = (&*compare.ops, &*compare.comparators) else { return };
        let left = compare.left.end();
        let between = &self.text[left.to_usize()..right.start().to_usize()];
        let Some(at) = between.find("==") else { return };
        let asks = Asks::Operator(TextRange::at(left + TextSize::new(at as u32), TextSize::new(2)));
        let place = (assert.test.start(), assert.test.end());
        self.add(assert.range(), [&*compare.left, right], place, asks);
    }

    fn method(&mut self, whole: TextRange, call: &ExprCall) {
        let (Expr::Attribute(attribute), [one, other, ..]) = (&*call.func, &*call.arguments.args) else {
            return;
        };
        if EQUAL.contains(&attribute.attr.as_str()) && !one.is_starred_expr() && !other.is_starred_expr() {
            let place = (call.arguments.start() + TextSize::new(1), other.end());
            self.add(whole, [one, other], place, Asks::Method(attribute.attr.range()));
        }
    }
}

impl<'a> Visitor<'a> for Comparisons<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(one) => one.targets.iter().for_each(|target| self.bind(target, &one.value)),
            Stmt::AnnAssign(one) => {
                if let Some(value) = &one.value {
                    self.bind(&one.target, value);
                }
            }
            Stmt::Assert(assert) => self.operator(assert),
            Stmt::Expr(expression) => {
                if let Expr::Call(call) = &*expression.value {
                    self.method(statement.range(), call);
                }
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }
}

/// Whether a part of an expression is such a one.
fn has(expression: &Expr, is_one: &dyn Fn(&Expr) -> bool) -> bool {
    struct Has<'f>(&'f dyn Fn(&Expr) -> bool, bool);
    impl<'a> Visitor<'a> for Has<'_> {
        fn visit_expr(&mut self, expression: &'a Expr) {
            self.1 |= (self.0)(expression);
            visitor::walk_expr(self, expression);
        }
    }
    let mut found = Has(is_one, false);
    found.visit_expr(expression);
    found.1
}
