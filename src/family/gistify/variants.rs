//! An original test with an edit that changes what it shows, or how it is worded: what does not do the work of the
//! repository cannot know what such a test has to show.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Decorator, Expr, ExprCall, Stmt, StmtAssert, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::locate::{self, Found, TestName};
use crate::record::id::hash_parts;
use crate::record::variant::VariantKind;
use crate::score::text::{self, Parsed, Unreadable};
use crate::score::tree;

/// An edited test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub kind: VariantKind,
    /// Line of the file, 1-based.
    pub line: u32,
    /// Lines that take the place of those of the definition.
    pub source: String,
    /// What the edit raises says this.
    pub says: Option<String>,
}

/// Edited texts of a test, in an order that the seed decides; none where the file does not define it.
///
/// # Errors
/// The file is no Python.
pub fn variants(file: &str, test: &TestName, seed: &str) -> Result<Vec<Proposal>, Unreadable> {
    let edits = text::parse(file, |parsed| {
        let Found::Function { definition, function, .. } = locate::locate(parsed.body, test) else {
            return Vec::new();
        };
        let mut finder = Finder::new(parsed, seed);
        finder.look_through(function);
        finder.raise_within(function);
        finder.change_together();
        let (first, last) = parsed.lines.of_node(definition);
        let start = parsed.lines.start(first).unwrap_or_default();
        let end = parsed.lines.start(last + 1).unwrap_or(parsed.text.len());
        finder.edits.into_iter().map(|edit| (edit.applied(parsed.text, start, end), edit)).collect()
    })?;
    let mut found: Vec<(String, Proposal)> = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for (source, edit) in edits {
        let is_python = |whole: Option<String>| whole.is_some_and(|it| text::parse(&it, |_| ()).is_ok());
        if known.insert(source.clone()) && is_python(in_file(file, test, &source)?) {
            let order = hash_parts(&[seed, edit.kind.as_str(), &source]);
            let Edit { kind, line, says, .. } = edit;
            found.push((order, Proposal { kind, line, source, says }));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found.into_iter().map(|(_, proposal)| proposal).collect())
}

/// A file whose test has these lines. None where the file does not define it.
///
/// # Errors
/// The file is no Python.
pub fn in_file(file: &str, test: &TestName, source: &str) -> Result<Option<String>, Unreadable> {
    text::parse(file, |parsed| {
        let Found::Function { definition, .. } = locate::locate(parsed.body, test) else { return None };
        let (first, last) = parsed.lines.of_node(definition);
        let start = parsed.lines.start(first)?;
        let end = parsed.lines.start(last + 1).unwrap_or(parsed.text.len());
        Some(format!("{}{source}{}", &parsed.text[..start], &parsed.text[end..]))
    })
}

/// A file whose test fails at its beginning, and one whose test fails at its end: what runs there and not for the original
/// is what explains a failure. Those that cannot be made are left out.
///
/// # Errors
/// The file is no Python.
pub fn failing(file: &str, test: &TestName) -> Result<Vec<String>, Unreadable> {
    let texts = text::parse(file, |parsed| {
        let Found::Function { function, .. } = locate::locate(parsed.body, test) else { return Vec::new() };
        let mut finder = Finder::new(parsed, "");
        let first = function.body.iter().find(|it| !tree::is_text(it)).or(function.body.first());
        if let Some(first) = first {
            finder.before(first, VariantKind::RaiseAt, FAILURE, None);
        }
        finder.at_the_end(function);
        let all = parsed.text.len();
        finder.edits.iter().map(|edit| edit.applied(parsed.text, 0, all)).collect()
    })?;
    Ok(texts.into_iter().filter(|it| text::parse(it, |_| ()).is_ok()).collect())
}

/// Changes of a text.
struct Edit {
    kind: VariantKind,
    line: u32,
    changes: Vec<(TextRange, String)>,
    says: Option<String>,
}

impl Edit {
    /// The part of a text between two places, with the changes.
    fn applied(&self, text: &str, start: usize, end: usize) -> String {
        let mut changes: Vec<&(TextRange, String)> = self.changes.iter().collect();
        changes.sort_by_key(|(range, _)| range.start());
        let (mut result, mut at) = (String::new(), start);
        for (range, new) in changes {
            let (from, to) = (range.start().to_usize(), range.end().to_usize());
            if from < at || to > end {
                continue;
            }
            result.push_str(&text[at..from]);
            result.push_str(new);
            at = to;
        }
        result.push_str(&text[at..end]);
        result
    }
}

/// What a literal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Expected,
    Input,
}

/// A failure that says nothing.
const FAILURE: &str = "raise AssertionError";
/// Exceptions that missing code raises, and others.
const RAISED: [&str; 5] = ["NameError", "AttributeError", "TypeError", "AssertionError", "KeyError"];
/// Exceptions that hardly any code raises, and that are derived from hardly any other one.
const RARE: [&str; 4] = ["ZeroDivisionError", "ChildProcessError", "BufferError", "EOFError"];
/// Assertions of `unittest`, and their contraries.
const CONTRARIES: [(&str, &str); 10] = [
    ("assertEqual", "assertNotEqual"),
    ("assertEquals", "assertNotEqual"),
    ("assertTrue", "assertFalse"),
    ("assertIn", "assertNotIn"),
    ("assertIs", "assertIsNot"),
    ("assertIsNone", "assertIsNotNone"),
    ("assertIsInstance", "assertNotIsInstance"),
    ("assertGreater", "assertLessEqual"),
    ("assertLess", "assertGreaterEqual"),
    ("assertAlmostEqual", "assertNotAlmostEqual"),
];

/// Looks through a test for what can be edited.
struct Finder<'a> {
    parsed: Parsed<'a>,
    seed: &'a str,
    edits: Vec<Edit>,
    in_assert: bool,
    /// Where the test has a literal, by its text, and whether one of them is handed over.
    literals: BTreeMap<&'a str, (Vec<TextRange>, bool)>,
    names: BTreeSet<&'a str>,
    attributes: BTreeSet<&'a str>,
}

impl<'a> Finder<'a> {
    fn new(parsed: Parsed<'a>, seed: &'a str) -> Self {
        Finder {
            parsed,
            seed,
            edits: Vec::new(),
            in_assert: false,
            literals: BTreeMap::new(),
            names: BTreeSet::new(),
            attributes: BTreeSet::new(),
        }
    }

    fn look_through(&mut self, function: &'a StmtFunctionDef) {
        for Decorator { expression, .. } in &function.decorator_list {
            if let Expr::Call(call) = expression
                && called(call) == Some("parametrize")
            {
                let named = |name: &str| {
                    call.arguments.keywords.iter().find(move |one| one.arg.as_deref() == Some(name))
                };
                let values = call.arguments.args.get(1).or_else(|| named("argvalues").map(|one| &one.value));
                if let Some(value) = values {
                    self.given(value, Role::Expected);
                    self.visit_expr(value);
                }
            }
        }
        self.visit_body(&function.body);
    }

    fn text(&self, range: TextRange) -> &'a str {
        &self.parsed.text[range.start().to_usize()..range.end().to_usize()]
    }

    fn add(
        &mut self,
        kind: VariantKind,
        at: TextSize,
        changes: Vec<(TextRange, String)>,
        says: Option<String>,
    ) {
        self.edits.push(Edit { kind, line: self.parsed.lines.line(at), changes, says });
    }

    /// A number that only the seed knows.
    fn number(&self, place: TextSize, what: &str) -> u32 {
        let hash = hash_parts(&[self.seed, what, &place.to_u32().to_string()]);
        10_000 + u32::from_str_radix(&hash[..6], 16).unwrap_or_default() % 90_000
    }

    /// A literal, or those of a display, is for this.
    fn given(&mut self, value: &'a Expr, role: Role) {
        match value {
            Expr::List(list) => list.elts.iter().for_each(|one| self.given(one, role)),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|one| self.given(one, role)),
            Expr::Set(set) => set.elts.iter().for_each(|one| self.given(one, role)),
            Expr::Dict(dict) => dict.items.iter().for_each(|item| self.given(&item.value, role)),
            Expr::UnaryOp(operation) if is_literal(&operation.operand) => {
                self.given(&operation.operand, role);
            }
            Expr::Call(call) if called(call) == Some("param") => {
                call.arguments.args.iter().for_each(|one| self.given(one, role));
            }
            _ if is_literal(value) => {
                let Some(new) = changed(self.text(value.range()), value) else { return };
                let kind = match role {
                    Role::Expected => VariantKind::OtherExpected,
                    Role::Input => VariantKind::OtherInput,
                };
                self.add(kind, value.start(), vec![(value.range(), new)], None);
                self.literals.entry(self.text(value.range())).or_default().1 = true;
            }
            _ => {}
        }
    }

    fn assertion(&mut self, assert: &'a StmtAssert) {
        let (range, test) = (assert.test.range(), self.text(assert.test.range()));
        let at = assert.start();
        self.add(VariantKind::NegatedAssert, at, vec![(range, format!("not ({test})"))], None);
        self.add(VariantKind::Rephrased, at, vec![(range, format!("not (not ({test}))"))], None);
        // Nothing is asked for its `repr` to explain this one.
        let says = format!("not this, {}", self.number(at, "negated"));
        let raises = format!("if ({test}): raise AssertionError('{says}')");
        self.add(VariantKind::NegatedAssert, at, vec![(assert.range(), raises)], Some(says));
        let Expr::Compare(compare) = &*assert.test else { return };
        for side in std::iter::once(&*compare.left).chain(&compare.comparators).filter(|one| is_literal(one))
        {
            let Some(new) = changed(self.text(side.range()), side) else { continue };
            let edited = Edit {
                kind: VariantKind::OtherExpected,
                line: 0,
                changes: vec![(side.range(), new)],
                says: None,
            };
            let test = edited.applied(self.parsed.text, range.start().to_usize(), range.end().to_usize());
            let says = format!("not this, {}", self.number(side.start(), "other"));
            let raises = format!("if not ({test}): raise AssertionError('{says}')");
            self.add(VariantKind::OtherExpected, at, vec![(assert.range(), raises)], Some(says));
        }
    }

    fn call(&mut self, call: &'a ExprCall) {
        let name = called(call);
        let is_method = matches!(&*call.func, Expr::Attribute(it) if it.value.as_name_expr().is_some_and(|it| it.id == "self"));
        let arguments =
            || call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|one| &one.value));
        let role = match name {
            Some("raises" | "assertRaises" | "assertRaisesRegex" | "assertRaisesRegexp") => {
                if let Some(asked) = call.arguments.args.first() {
                    self.other_exception(asked);
                }
                Role::Expected
            }
            Some("warns" | "deprecated_call") => Role::Expected,
            Some(name) if is_method && name.starts_with("assert") => {
                let contrary = CONTRARIES.iter().find_map(|(one, other)| match name {
                    name if name == *one => Some(*other),
                    name if name == *other => Some(*one),
                    _ => None,
                });
                if let (Some(contrary), Expr::Attribute(attribute)) = (contrary, &*call.func) {
                    let changes = vec![(attribute.attr.range(), contrary.to_owned())];
                    self.add(VariantKind::NegatedAssert, call.start(), changes, None);
                }
                Role::Expected
            }
            _ => Role::Input,
        };
        arguments().for_each(|one| self.given(one, role));
    }

    fn other_exception(&mut self, asked: &'a Expr) {
        let others = RARE.iter().filter(|other| !self.text(asked.range()).contains(**other));
        let others: Vec<&str> = others.copied().collect();
        let Some(other) = others.get(self.number(asked.start(), "exception") as usize % others.len().max(1))
        else {
            return;
        };
        self.add(VariantKind::OtherRaises, asked.start(), vec![(asked.range(), (*other).to_owned())], None);
    }

    /// A raise before each statement of the test that is not in a function of its own.
    fn raise_within(&mut self, function: &'a StmtFunctionDef) {
        let mut statements: Vec<&Stmt> = Vec::new();
        statements_of(&function.body, &mut statements);
        for (at, statement) in statements.iter().filter(|it| !tree::is_text(it)).enumerate() {
            let place = statement.start();
            let number = self.number(place, "raise");
            let exception = RAISED[number as usize % RAISED.len()];
            let pick = |names: &BTreeSet<&'a str>| {
                names
                    .iter()
                    .nth(number as usize / RAISED.len() % names.len().max(1))
                    .map_or("value", |it| *it)
            };
            let says = match exception {
                "NameError" => format!("name '{}' is not defined", pick(&self.names)),
                "AttributeError" => {
                    format!("'NoneType' object has no attribute '{}'", pick(&self.attributes))
                }
                "TypeError" => "'NoneType' object is not callable".to_owned(),
                _ => format!("not here, {number}"),
            };
            let raises = format!("raise {exception}(\"{says}\")");
            self.before(statement, VariantKind::RaiseAt, &raises, Some(says));
            if at == 0 {
                let other = self.number(place, "same");
                self.before(
                    statement,
                    VariantKind::Rephrased,
                    &format!("assert {other} < {}", other + 1),
                    None,
                );
            }
        }
    }

    fn before(&mut self, statement: &'a Stmt, kind: VariantKind, new: &str, says: Option<String>) {
        let place = statement.start();
        let Some(start) = self.parsed.lines.start(self.parsed.lines.line(place)) else { return };
        let indentation = &self.parsed.text[start..place.to_usize()];
        let is_first = indentation.trim().is_empty();
        let between = if is_first { format!("\n{indentation}") } else { "; ".to_owned() };
        self.add(kind, place, vec![(TextRange::empty(place), format!("{new}{between}"))], says);
    }

    /// A failure after the last statement, where that has lines of its own.
    fn at_the_end(&mut self, function: &'a StmtFunctionDef) {
        let lines = self.parsed.lines;
        let Some((first, last)) = function.body.first().zip(function.body.last()) else { return };
        let Some(start) = lines.start(lines.line(first.start())) else { return };
        let indentation = &self.parsed.text[start..first.start().to_usize()];
        let end = lines.start(lines.line(last.end()) + 1).unwrap_or(self.parsed.text.len());
        if !indentation.trim().is_empty() {
            return;
        }
        let is_ended = self.parsed.text[..end].ends_with(['\n', '\r']);
        let new = format!("{}{indentation}{FAILURE}\n", if is_ended { "" } else { "\n" });
        let place = TextSize::new(end as u32);
        self.add(VariantKind::RaiseAt, last.start(), vec![(TextRange::empty(place), new)], None);
    }

    /// What is handed over is another one wherever the test has it.
    fn change_together(&mut self) {
        for (literal, (ranges, is_given)) in std::mem::take(&mut self.literals) {
            let Some(first) = ranges.first().filter(|_| is_given && ranges.len() > 1) else { continue };
            let Some(new) = other(literal) else { continue };
            let changes = ranges.iter().map(|range| (*range, new.clone())).collect();
            self.add(VariantKind::OtherInput, first.start(), changes, None);
        }
    }
}

impl<'a> Visitor<'a> for Finder<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assert(assert) => {
                self.assertion(assert);
                self.in_assert = true;
                self.visit_expr(&assert.test);
                self.in_assert = false;
            }
            Stmt::Assign(assign) => {
                self.given(&assign.value, Role::Input);
                visitor::walk_stmt(self, statement);
            }
            _ if tree::is_text(statement) => {}
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_annotation(&mut self, _annotation: &'a Expr) {}

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Call(call) => self.call(call),
            Expr::Compare(compare) if self.in_assert => {
                let sides = std::iter::once(&*compare.left).chain(&compare.comparators);
                sides.for_each(|side| self.given(side, Role::Expected));
            }
            Expr::Name(name) if name.ctx.is_load() => {
                self.names.insert(&name.id);
            }
            Expr::Attribute(attribute) => {
                self.attributes.insert(&attribute.attr);
            }
            _ if is_literal(expression) => {
                let range = expression.range();
                self.literals.entry(self.text(range)).or_default().0.push(range);
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

/// The last name of what is called.
fn called(call: &ExprCall) -> Option<&str> {
    match &*call.func {
        Expr::Name(name) => Some(&name.id),
        Expr::Attribute(attribute) => Some(&attribute.attr),
        _ => None,
    }
}

/// The statements of a body and of those within it, functions and classes of its own left out.
fn statements_of<'a>(body: &'a [Stmt], found: &mut Vec<&'a Stmt>) {
    for statement in body {
        found.push(statement);
        if !matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
            for body in tree::bodies(statement) {
                statements_of(body, found);
            }
        }
    }
}

/// One literal in one piece.
fn is_literal(expression: &Expr) -> bool {
    match expression {
        Expr::StringLiteral(text) => !text.value.is_implicit_concatenated(),
        Expr::BytesLiteral(bytes) => !bytes.value.is_implicit_concatenated(),
        Expr::NumberLiteral(_) | Expr::BooleanLiteral(_) | Expr::NoneLiteral(_) => true,
        _ => false,
    }
}

/// Another literal of the kind of this one.
fn changed(text: &str, literal: &Expr) -> Option<String> {
    match literal {
        Expr::BooleanLiteral(one) => Some(if one.value { "False" } else { "True" }.to_owned()),
        Expr::NoneLiteral(_) => Some("0".to_owned()),
        _ => other(text),
    }
}

/// The same for texts, bytes and numbers, by how they are written.
fn other(text: &str) -> Option<String> {
    if text.ends_with(['"', '\'']) {
        let quotes = if text.ends_with("\"\"\"") || text.ends_with("'''") { 3 } else { 1 };
        // `""` and `''` end with one quote as well.
        let opened = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let quotes = if opened.len() < 2 * quotes { 1 } else { quotes };
        let at = text.len() - quotes;
        return Some(format!("{}q{}", &text[..at], &text[at..]));
    }
    match text.parse::<u64>() {
        Ok(number) => number.checked_add(1).map(|one| one.to_string()),
        Err(_) if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') => Some(format!("({text} + 1)")),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str, test: &str) -> Vec<Proposal> {
        variants(file, &test.parse().unwrap(), "7 owner__name.test-1").unwrap()
    }

    /// The lines that a kind of edit leads to, each without what the line is moved by.
    fn edited(file: &str, test: &str, kind: VariantKind) -> Vec<String> {
        let all = of(file, test).into_iter().filter(|one| one.kind == kind);
        let known: BTreeSet<&str> = file.lines().collect();
        let new = |one: Proposal| {
            let new: Vec<&str> =
                one.source.lines().filter(|line| !known.contains(line)).map(str::trim).collect();
            new.join(" | ")
        };
        let mut lines: Vec<String> = all.map(new).collect();
        lines.sort();
        lines
    }

    fn has(lines: &[String], line: &str) -> bool {
        lines.iter().any(|one| one == line)
    }

    const PLAIN: &str = "import pytest\n\n\ndef test_a(box):\n    \"\"\"Text.\"\"\"\n    box.put('x', 3)\n    \
                         assert box.get('x') == 3, 'why'\n    with pytest.raises(KeyError):\n        box.get('y')\n";

    #[test]
    fn an_assertion_asks_for_the_contrary() {
        let lines = edited(PLAIN, "test_a", VariantKind::NegatedAssert);
        assert!(has(&lines, "assert not (box.get('x') == 3), 'why'"), "{lines:?}");
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("if (box.get('x') == 3): raise AssertionError('not this, "))
        );
        assert_eq!(lines.len(), 2, "{lines:?}");
        let unit = "class TestA(Base):\n    def test_a(self):\n        self.assertEqual(f(1), 'a')\n        self.assertNotIn(1, x)\n";
        let lines = edited(unit, "TestA::test_a", VariantKind::NegatedAssert);
        assert_eq!(lines, ["self.assertIn(1, x)", "self.assertNotEqual(f(1), 'a')"]);
    }

    #[test]
    fn other_values_are_asked_for_and_given() {
        let lines = edited(PLAIN, "test_a", VariantKind::OtherExpected);
        assert!(has(&lines, "assert box.get('x') == 4, 'why'"), "{lines:?}");
        assert!(
            lines.iter().any(|line| line.starts_with("if not (box.get('x') == 4): raise AssertionError("))
        );
        let lines = edited(PLAIN, "test_a", VariantKind::OtherInput);
        assert!(
            has(&lines, "box.put('xq', 3) | assert box.get('xq') == 3, 'why'"),
            "wherever it is: {lines:?}"
        );
        assert!(has(&lines, "box.put('x', 4) | assert box.get('x') == 4, 'why'"), "{lines:?}");
        assert!(has(&lines, "box.put('xq', 3)") && has(&lines, "box.get('yq')"), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("whyq")), "{lines:?}");
        let unit = "def test_a():\n    self.assertEqual(f(1, b=True), [b'a', None, 1.5, -2])\n";
        let lines = edited(unit, "test_a", VariantKind::OtherExpected);
        for one in [
            "[b'aq', None, 1.5, -2]",
            "[b'a', 0, 1.5, -2]",
            "[b'a', None, (1.5 + 1), -2]",
            "[b'a', None, 1.5, -3]",
        ] {
            assert!(has(&lines, &format!("self.assertEqual(f(1, b=True), {one})")), "{one}: {lines:?}");
        }
        assert!(has(
            &edited(unit, "test_a", VariantKind::OtherInput),
            "self.assertEqual(f(1, b=False), [b'a', None, 1.5, -2])"
        ));
    }

    #[test]
    fn parameters_are_others_and_their_names_are_not() {
        let file = "@mark('a')\n@pytest.mark.parametrize('text, size', [('ab', 2), pytest.param('', 0, id='none')])\n\
                    def test_a(text, size):\n    assert len(text) == size\n";
        let lines = edited(file, "test_a", VariantKind::OtherExpected);
        for one in
            ["('abq', 2)", "('ab', 3)", "pytest.param('q', 0, id='none')", "pytest.param('', 1, id='none')"]
        {
            assert!(lines.iter().any(|line| line.contains(one)), "{one}: {lines:?}");
        }
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(of(file, "test_a").iter().all(|one| one.source.starts_with("@mark('a')\n")));
    }

    #[test]
    fn another_exception_is_asked_for() {
        let lines = edited(PLAIN, "test_a", VariantKind::OtherRaises);
        assert_eq!(lines.len(), 1);
        assert!(RARE.iter().any(|rare| has(&lines, &format!("with pytest.raises({rare}):"))), "{lines:?}");
        let file = "def test_a(self):\n    with self.assertRaises(EOFError):\n        f()\n";
        let lines = edited(file, "test_a", VariantKind::OtherRaises);
        assert!(lines.len() == 1 && !lines[0].contains("EOFError"), "{lines:?}");
    }

    #[test]
    fn a_raise_stands_before_each_statement_and_says_what_missing_code_would() {
        let all = of(PLAIN, "test_a");
        let raises: Vec<&Proposal> = all.iter().filter(|one| one.kind == VariantKind::RaiseAt).collect();
        let lines: BTreeSet<u32> = raises.iter().map(|one| one.line).collect();
        assert_eq!(lines, BTreeSet::from([6, 7, 8, 9]), "not before the docstring");
        for one in raises {
            let says = one.says.as_deref().unwrap();
            assert!(one.source.contains(&format!("(\"{says}\")\n")), "{one:?}");
        }
        let file = "class T:\n    async def test_a(self):\n        if x: await f(); assert y\n        @d\n        def g():\n            return 1\n        g()\n";
        let lines = edited(file, "T::test_a", VariantKind::RaiseAt);
        assert_eq!(lines.len(), 5, "within a line as well, and not in a function of its own: {lines:?}");
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("if x: raise ") && line.ends_with("; await f(); assert y"))
        );
    }

    #[test]
    fn a_test_that_asserts_nothing_is_edited_as_well() {
        let kinds: BTreeSet<VariantKind> =
            of("def test_a():\n    f()\n", "test_a").iter().map(|one| one.kind).collect();
        assert_eq!(kinds, BTreeSet::from([VariantKind::RaiseAt, VariantKind::Rephrased]));
    }

    #[test]
    fn every_edited_file_is_python_and_differs_in_the_test_alone() {
        let crlf = PLAIN.replace('\n', "\r\n");
        let latin = format!("# -*- coding: latin-1 -*-\n{PLAIN}");
        let file = "x = 1\nclass A:\n\tclass B:\n\t\tdef test_a(self):\n\t\t\tassert (\n\t\t\t\tf('''a\nb''')\n\t\t\t\t== 2)\n\t\t\tassert g(\"\") is None\n\n\ty = 2\n";
        for (file, test) in [(PLAIN, "test_a"), (&crlf, "test_a"), (&latin, "test_a"), (file, "A::B::test_a")]
        {
            let test: TestName = test.parse().unwrap();
            let all = variants(file, &test, "7").unwrap();
            assert!(all.len() > 8, "{all:?}");
            for one in &all {
                let whole = in_file(file, &test, &one.source).unwrap().unwrap();
                assert!(text::parse(&whole, |_| ()).is_ok() && whole != file, "{whole}");
                let (start, end) = whole.split_once(&one.source).unwrap();
                assert!(file.starts_with(start) && file.ends_with(end), "{whole}");
            }
        }
        assert!(has(&edited(file, "A::B::test_a", VariantKind::OtherInput), "assert g(\"q\") is None"));
        let with_mark = format!("\u{feff}{PLAIN}");
        assert_eq!(
            variants(&with_mark, &"test_a".parse().unwrap(), "7"),
            variants(PLAIN, &"test_a".parse().unwrap(), "7")
        );
    }

    #[test]
    fn the_seed_decides_the_order_and_what_the_edits_say() {
        let with = |seed: &str| variants(PLAIN, &"test_a".parse().unwrap(), seed).unwrap();
        assert_eq!(with("7"), with("7"));
        assert_ne!(with("7"), with("8"));
        assert_eq!(with("7").len(), with("8").len());
    }

    #[test]
    fn a_test_fails_at_its_beginning_and_at_its_end() {
        let fails = |file: &str| failing(file, &"test_a".parse().unwrap()).unwrap();
        let begins =
            PLAIN.replace("    box.put('x', 3)\n", "    raise AssertionError\n    box.put('x', 3)\n");
        assert_eq!(fails(PLAIN), [begins, format!("{PLAIN}    raise AssertionError\n")]);
        let file = "def test_a(): f(); g()\nx = 1\n";
        assert_eq!(fails(file), ["def test_a(): raise AssertionError; f(); g()\nx = 1\n"]);
        let file = "def test_a():\n  if x:\n    f()  # why";
        assert_eq!(fails(file)[1], "def test_a():\n  if x:\n    f()  # why\n  raise AssertionError\n");
        assert_eq!(fails("test_a = make()\n"), [""; 0]);
    }

    #[test]
    fn a_test_that_the_file_does_not_define_has_no_variants() {
        assert_eq!(of("test_a = make()\n", "test_a"), []);
        assert_eq!(in_file("test_a = make()\n", &"test_a".parse().unwrap(), ""), Ok(None));
        assert!(variants("def f(:\n", &"f".parse().unwrap(), "7").is_err());
    }
}
