//! An original test with an edit that changes what it shows, or how it is worded: what does not do the work of the
//! repository cannot know what such a test has to show.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, Decorator, Expr, ExprCall, Stmt, StmtAssert, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::donors::Donors;
use super::locate::{self, Found, TestName};
use super::uses::{
    Role, Uses, bound, called, constants, elements, is_literal, is_written_out, literals_of, names_of,
};
use super::variations;
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
    pub refutes: Refutes,
}

/// Where an edit shows that a submission answers with what was recorded: an answer that does not depend on what is handed
/// over is what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refutes {
    /// Where the repository shows something else than for the test as it is: what the test asks for has not changed.
    WhereItDiffers,
    /// Where the repository shows the same: what the test asks for has changed with what it hands over.
    WhereItAgrees,
    Never,
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
        finder.look_through(parsed.body, function);
        finder.raise_within(function);
        finder.change_together();
        finder.bind_again(parsed.body, function);
        let (first, last) = parsed.lines.of_node(definition);
        let start = parsed.lines.start(first).unwrap_or_default();
        let end = parsed.lines.start(last + 1).unwrap_or(parsed.text.len());
        let unexplained = unexplained(parsed.text, function);
        let texts = |edit: Edit| {
            let loud = edit.applied(parsed.text, start, end);
            let quiet = (edit.refutes == Refutes::WhereItDiffers).then(|| {
                let changes = [&edit.changes[..], &unexplained].concat();
                Edit { changes, says: None, ..edit }.applied(parsed.text, start, end)
            });
            (quiet.into_iter().chain([loud]).collect(), edit)
        };
        finder.edits.into_iter().map(texts).collect::<Vec<(Vec<String>, Edit)>>()
    })?;
    let mut found: Vec<((u8, String), Proposal)> = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for (sources, edit) in edits {
        let is_python = |source: &String| {
            let whole = in_file(file, test, source)?;
            Ok(whole.is_some_and(|it| text::parse(&it, |_| ()).is_ok()))
        };
        let mut source = None;
        for one in sources {
            if is_python(&one)? {
                source = Some(one);
                break;
            }
        }
        if let Some(source) = source.filter(|source| known.insert(source.clone())) {
            let order = hash_parts(&[seed, edit.kind.as_str(), &source]);
            let Edit { kind, line, says, refutes, is_lent, .. } = edit;
            // What changes both sides of a test and still passes refutes most; then what the file itself hands over.
            let rank = match refutes {
                Refutes::WhereItAgrees => LENT - 1,
                _ if is_lent => LENT,
                _ => LENT + 1,
            };
            found.push(((rank, order), Proposal { kind, line, source, says, refutes }));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut lent = 0;
    found.retain(|((rank, _), _)| {
        lent += usize::from(*rank == LENT);
        *rank != LENT || lent <= MOST_LENT
    });
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

/// What makes `if not (X): raise AssertionError` of each `assert X`: then pytest explains nothing, and asks nothing of the
/// repository for its explanation.
fn unexplained(text: &str, function: &StmtFunctionDef) -> Vec<(TextRange, String)> {
    struct Asserts<'t>(&'t str, Vec<(TextRange, String)>);
    impl<'a> Visitor<'a> for Asserts<'_> {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            if let Stmt::Assert(assert) = statement
                && ends_its_line(self.0, assert.end())
            {
                let (start, end) = (assert.test.start(), assert.test.end());
                self.1.push((TextRange::new(assert.start(), start), "if not (".to_owned()));
                self.1.push((TextRange::new(end, assert.end()), "): raise AssertionError".to_owned()));
            }
            visitor::walk_stmt(self, statement);
        }
    }
    let mut asserts = Asserts(text, Vec::new());
    asserts.visit_body(&function.body);
    asserts.1
}

/// Whether no other statement follows on the line of a statement that ends here: it would belong to an `if` in its place.
fn ends_its_line(text: &str, end: TextSize) -> bool {
    !text[end.to_usize()..].trim_start_matches([' ', '\t', '\x0c', '\\']).starts_with(';')
}

/// Changes of a text.
struct Edit {
    kind: VariantKind,
    line: u32,
    changes: Vec<(TextRange, String)>,
    says: Option<String>,
    refutes: Refutes,
    /// Whether another call of the file hands it over.
    is_lent: bool,
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

/// Values of one constant of the file that are changed.
const MOST_OF_A_CONSTANT: usize = 8;
/// The rank of what other calls of the file hand over, and how many edits have it at most.
const LENT: u8 = 1;
const MOST_LENT: usize = 5;
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
    uses: Uses<'a>,
    donors: Donors<'a>,
    /// Where what is written elsewhere is written again, and where it is written.
    elsewhere: Option<(TextRange, TextRange)>,
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
            uses: Uses::default(),
            donors: Donors::default(),
            elsewhere: None,
        }
    }

    fn look_through(&mut self, module: &'a [Stmt], function: &'a StmtFunctionDef) {
        self.uses = Uses::of(module, function);
        self.donors = Donors::of(module, function.range());
        for Decorator { expression, .. } in &function.decorator_list {
            if let Expr::Call(call) = expression
                && called(call) == Some("parametrize")
            {
                self.parameters(module, call);
            }
        }
        self.visit_body(&function.body);
    }

    /// Values of parameters, each by what the test does with its name.
    fn parameters(&mut self, module: &'a [Stmt], call: &'a ExprCall) {
        let named = |name: &str| call.arguments.find_keyword(name).map(|one| &one.value);
        let Some(written) = call.arguments.args.get(1).or_else(|| named("argvalues")) else { return };
        let values = self.written_out(module, written);
        let names = call.arguments.args.first().or_else(|| named("argnames"));
        let roles: Vec<Role> =
            names.map(names_of).unwrap_or_default().iter().map(|name| self.uses.role(name)).collect();
        for row in elements(values) {
            match (&roles[..], elements(row)) {
                ([role], _) => self.given(row, *role),
                (roles, cells) if roles.len() == cells.len() => {
                    cells.iter().zip(roles).for_each(|(cell, role)| self.given(cell, *role));
                }
                _ => self.given(row, Role::Expected),
            }
        }
        self.elsewhere = None;
        self.visit_expr(written);
    }

    /// Values of parameters that are a constant of the file, as they are written there.
    fn written_out(&mut self, module: &'a [Stmt], written: &'a Expr) -> &'a Expr {
        let Expr::Name(name) = written else { return written };
        let known = constants(module).into_iter().find(|(it, _)| *it == name.id.as_str());
        let Some((_, value)) = known.filter(|(_, value)| is_written_out(value)) else { return written };
        self.elsewhere = Some((written.range(), value.range()));
        value
    }

    fn text(&self, range: TextRange) -> &'a str {
        &self.parsed.text[range.start().to_usize()..range.end().to_usize()]
    }

    /// The text of a place, with a part of it replaced.
    fn with(&self, whole: TextRange, part: TextRange, new: String) -> String {
        let (start, end) = (whole.start(), whole.end());
        format!(
            "{}{new}{}",
            self.text(TextRange::new(start, part.start())),
            self.text(TextRange::new(part.end(), end))
        )
    }

    fn add(
        &mut self,
        kind: VariantKind,
        at: TextSize,
        changes: Vec<(TextRange, String)>,
        says: Option<String>,
    ) {
        let line = self.parsed.lines.line(at);
        self.edits.push(Edit { kind, line, changes, says, refutes: Refutes::Never, is_lent: false });
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
            Expr::Dict(dict) => {
                let parts = dict.items.iter().flat_map(|item| item.key.iter().chain([&item.value]));
                parts.for_each(|one| self.given(one, role));
            }
            Expr::UnaryOp(operation) if is_literal(&operation.operand) => {
                self.given(&operation.operand, role);
            }
            Expr::Call(call) if called(call) == Some("param") => {
                call.arguments.args.iter().for_each(|one| self.given(one, role));
            }
            _ if is_literal(value) => {
                let range = value.range();
                let text = self.text(range);
                if self.elsewhere.is_none() {
                    self.literals.entry(text).or_default().1 = true;
                }
                let (kind, refutes) = match role {
                    Role::Expected => (VariantKind::OtherExpected, Refutes::Never),
                    Role::Both => (VariantKind::OtherInput, Refutes::WhereItAgrees),
                    Role::Doubtful => (VariantKind::OtherInput, Refutes::Never),
                    Role::Input if self.uses.is_asked(range) => (VariantKind::OtherInput, Refutes::Never),
                    Role::Input => (VariantKind::OtherInput, Refutes::WhereItDiffers),
                };
                let unlike = (role != Role::Expected).then(|| unlike(text, self.seed)).flatten();
                for new in changed(text, value).into_iter().chain(unlike) {
                    let change = match self.elsewhere {
                        Some((at, whole)) => (at, self.with(whole, range, new)),
                        None => (range, new),
                    };
                    self.add(kind, change.0.start(), vec![change], None);
                    self.refutes(refutes);
                }
            }
            _ => {}
        }
    }

    /// Says of the last edit where it refutes.
    fn refutes(&mut self, refutes: Refutes) {
        if let Some(last) = self.edits.last_mut() {
            last.refutes = refutes;
        }
    }

    fn assertion(&mut self, assert: &'a StmtAssert) {
        let (range, test) = (assert.test.range(), self.text(assert.test.range()));
        let at = assert.start();
        self.add(VariantKind::NegatedAssert, at, vec![(range, format!("not ({test})"))], None);
        self.add(VariantKind::Rephrased, at, vec![(range, format!("not (not ({test}))"))], None);
        if !ends_its_line(self.parsed.text, assert.end()) {
            return;
        }
        // Nothing is asked for its `repr` to explain this one.
        let says = format!("not this, {}", self.number(at, "negated"));
        let raises = format!("if ({test}): raise AssertionError('{says}')");
        self.add(VariantKind::NegatedAssert, at, vec![(assert.range(), raises)], Some(says));
        let asks = |test: String, says: &str| format!("if not ({test}): raise AssertionError('{says}')");
        let Expr::Compare(compare) = &*assert.test else {
            let number = self.number(at, "unequal");
            let says = format!("not this, {number}");
            let raises = asks(format!("({test}) == 'other {number}'"), &says);
            self.add(VariantKind::OtherExpected, at, vec![(assert.range(), raises)], Some(says));
            return;
        };
        let sides: Vec<&Expr> = std::iter::once(&*compare.left).chain(&compare.comparators).collect();
        for side in sides.iter().filter(|one| is_literal(one)) {
            let Some(new) = changed(self.text(side.range()), side) else { continue };
            let says = format!("not this, {}", self.number(side.start(), "other"));
            let raises = asks(self.with(range, side.range(), new), &says);
            self.add(VariantKind::OtherExpected, at, vec![(assert.range(), raises)], Some(says));
        }
        let several = match &*compare.ops {
            [CmpOp::Eq] => 2,
            [CmpOp::In] => 1,
            _ => 0,
        };
        for (side, new) in self.unequal(&sides, several) {
            let says = format!("not this, {}", self.number(side.start(), "unequal"));
            let raises = asks(self.with(range, side, new), &says);
            self.add(VariantKind::OtherExpected, at, vec![(assert.range(), raises)], Some(says));
        }
    }

    /// The first of the sides of a comparison that has no constant which could be another one, each as a value that is equal to
    /// nothing: only what is equal to everything is equal to that.
    fn unequal(&self, sides: &[&Expr], several: usize) -> Vec<(TextRange, String)> {
        let has_constant = |side: &&Expr| {
            let mut literals = Vec::new();
            literals_of(side, &mut literals);
            is_literal(side) || is_written_out(side) && !literals.is_empty()
        };
        if sides.iter().any(has_constant) {
            return Vec::new();
        }
        let unequal = |side: &&Expr| {
            let range = side.range();
            (range, format!("({}, {})", self.text(range), self.number(range.start(), "beside")))
        };
        sides.iter().take(several).map(unequal).collect()
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
            Some("warns" | "deprecated_call" | "approx") => Role::Expected,
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
                let sides: Vec<&Expr> = call.arguments.args.iter().take(2).collect();
                let several = match name {
                    "assertEqual" | "assertEquals" => 2,
                    "assertIn" => 1,
                    _ => 0,
                };
                for change in self.unequal(&sides, several) {
                    self.add(VariantKind::OtherExpected, call.start(), vec![change], None);
                }
                Role::Expected
            }
            _ => Role::Input,
        };
        arguments().for_each(|one| self.given(one, role));
        if role == Role::Input {
            self.lent(call);
        }
    }

    /// What other calls of the file hand over.
    fn lent(&mut self, call: &'a ExprCall) {
        for changes in self.donors.lend(self.parsed, call) {
            let is_asked = changes.iter().any(|(range, _)| self.uses.is_asked(*range));
            self.add(VariantKind::OtherInput, call.start(), changes, None);
            self.refutes(if is_asked { Refutes::Never } else { Refutes::WhereItDiffers });
            if let Some(last) = self.edits.last_mut() {
                last.is_lent = true;
            }
        }
    }

    /// A value that is bound is for what its name is for.
    fn bound(&mut self, targets: &'a [Expr], value: &'a Expr) {
        let role = match targets {
            [Expr::Name(name)] => self.uses.role(&name.id),
            _ => Role::Input,
        };
        self.given(value, role);
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
            let is_asked = |range: &&TextRange| self.uses.is_asked(**range);
            let asked = ranges.iter().filter(is_asked).count();
            let refutes = match asked {
                0 => Refutes::WhereItDiffers,
                asked if asked < ranges.len() && ranges.iter().any(|it| self.uses.is_asked_surely(*it)) => {
                    Refutes::WhereItAgrees
                }
                _ => Refutes::Never,
            };
            for new in other(literal).into_iter().chain(unlike(literal, self.seed)) {
                let changes = ranges.iter().map(|range| (*range, new.clone())).collect();
                self.add(VariantKind::OtherInput, first.start(), changes, None);
                self.refutes(refutes);
            }
        }
    }

    /// A constant of the file, or a fixture of it that returns one, is another one in the test.
    fn bind_again(&mut self, module: &'a [Stmt], function: &'a StmtFunctionDef) {
        let Some(first) = function.body.iter().find(|it| !tree::is_text(it)) else { return };
        for (name, value) in bound(module, function) {
            let (role, range) = (self.uses.role(name), value.range());
            if role == Role::Expected || !self.uses.has(name) {
                continue;
            }
            let mut literals = Vec::new();
            literals_of(value, &mut literals);
            for literal in literals.into_iter().take(MOST_OF_A_CONSTANT) {
                let text = self.text(literal.range());
                for new in changed(text, literal).into_iter().chain(unlike(text, self.seed)) {
                    let new = format!("{name} = {}", self.with(range, literal.range(), new));
                    self.before(first, VariantKind::OtherInput, &new, None);
                    self.refutes(match role {
                        Role::Both => Refutes::WhereItAgrees,
                        Role::Doubtful => Refutes::Never,
                        Role::Input | Role::Expected => Refutes::WhereItDiffers,
                    });
                }
            }
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
                self.bound(&assign.targets, &assign.value);
                visitor::walk_stmt(self, statement);
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.bound(std::slice::from_ref(&assign.target), value);
                }
                visitor::walk_stmt(self, statement);
            }
            Stmt::For(of) => {
                self.bound(std::slice::from_ref(&of.target), &of.iter);
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

/// Another literal of the kind of this one.
fn changed(text: &str, literal: &Expr) -> Option<String> {
    match literal {
        Expr::BooleanLiteral(one) => Some(if one.value { "False" } else { "True" }.to_owned()),
        Expr::NoneLiteral(_) => Some("0".to_owned()),
        _ => other(text),
    }
}

/// A text or a whole number of the same length, which only the seed knows; none where it is written otherwise.
fn unlike(text: &str, seed: &str) -> Option<String> {
    let inside = match text.strip_prefix('b').unwrap_or(text) {
        inside if inside.len() > 1 && inside.starts_with(['"', '\'']) => &inside[1..inside.len() - 1],
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => number,
        _ => return None,
    };
    if inside.contains(['\\', '"', '\'']) {
        return None;
    }
    let at = text.len() - inside.len() - usize::from(inside.len() < text.len());
    let new = variations::replaced(inside, seed).into_iter().find(|new| new != inside)?;
    Some(format!("{}{new}{}", &text[..at], &text[at + inside.len()..]))
}

/// Another text, bytes or number, by how it is written.
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

pub(super) mod twins;

#[cfg(test)]
mod tests;
