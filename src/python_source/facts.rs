//! What one unit of a file calls, reads and refers to.

use std::collections::{BTreeSet, HashMap};

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor, TraversalSignal};
use ruff_python_ast::{AnyNodeRef, Comprehension, Expr, ExprCall, ExprContext, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::names::Names;
use super::nodes;

/// Builtins that take a collection and keep its order.
const KEEP_ORDER: [&str; 14] = [
    "list",
    "tuple",
    "enumerate",
    "iter",
    "next",
    "str",
    "repr",
    "print",
    "map",
    "filter",
    "zip",
    "str.join",
    "bytes.join",
    "reversed",
];
/// Builtins to which the order of what they take is all the same.
const FORGET_ORDER: [&str; 9] = ["sorted", "set", "frozenset", "sum", "min", "max", "any", "all", "len"];
/// Stack that must be left, and what is added when it is not.
const RED_ZONE: usize = 64 << 10;
const MORE_STACK: usize = 4 << 20;

/// What a unit was seen to do.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// Without repetition.
    pub calls: BTreeSet<Box<str>>,
    pub uses: BTreeSet<Box<str>>,
    /// Kinds of syntax nodes, a bit each.
    pub nodes: u128,
    /// In the order of the text.
    pub seen: Vec<Seen>,
    pub refers: Refers,
}

/// Something that may be worth a clue.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// 1-based.
    pub line: u32,
    pub what: What,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    /// A call: its name, the text with which its first argument begins, and whether it says how bytes become text.
    Call { name: Box<str>, text: Option<Box<str>>, encoded: bool, timeout: bool },
    /// Something read.
    Use(Box<str>),
    /// `name["text"]`.
    Item { name: Box<str>, text: Box<str> },
    /// A text that has the file's own name in it.
    OwnName(Box<str>),
    /// A set whose order comes to light.
    SetOrder,
}

/// Where a closure goes on from a unit.
#[derive(Debug, Clone, Default)]
pub(super) struct Refers {
    /// Names that the unit does not bind itself.
    pub names: BTreeSet<Box<str>>,
    /// `self.name`, `cls.name`, `super().name`.
    pub members: BTreeSet<Box<str>>,
    /// `Name.attribute`.
    pub attributes: BTreeSet<(Box<str>, Box<str>)>,
    /// Fixtures that are named in texts.
    pub fixtures: BTreeSet<Box<str>>,
}

/// Where lines start.
#[derive(Debug)]
pub(super) struct Lines(Vec<u32>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let newlines =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1);
        Lines(std::iter::once(0).chain(newlines).collect())
    }

    /// The 1-based line of an offset.
    pub(super) fn line(&self, at: u32) -> u32 {
        self.0.partition_point(|start| *start <= at) as u32
    }

    /// The offset at which the line of an offset starts.
    pub(super) fn start(&self, at: u32) -> u32 {
        self.0[self.line(at) as usize - 1]
    }
}

/// Reads facts off a tree.
pub(super) struct Reader<'r, 'a> {
    pub names: Names<'r, 'a>,
    pub lines: &'r Lines,
    /// The file's name without ending.
    pub stem: &'r str,
    pub facts: Facts,
    /// Which names may be worth a clue, as far as they were met in this file.
    interesting: &'r mut Interesting,
    /// Where comprehensions are whose order does not matter.
    unordered: Vec<u32>,
    /// Whether the strings around are templates, from the outside in.
    templates: Vec<bool>,
}

/// Which names are noted, each asked for once.
pub(super) struct Interesting {
    decide: fn(&str) -> bool,
    known: HashMap<Box<str>, bool>,
}

impl Interesting {
    pub(super) fn new(decide: fn(&str) -> bool) -> Self {
        Interesting { decide, known: HashMap::new() }
    }

    fn has(&mut self, name: &str) -> bool {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let decided = (self.decide)(name);
        self.known.insert(name.into(), decided);
        decided
    }
}

impl<'r, 'a> Reader<'r, 'a> {
    pub(super) fn new(
        names: Names<'r, 'a>,
        lines: &'r Lines,
        stem: &'r str,
        interesting: &'r mut Interesting,
    ) -> Self {
        let (facts, unordered, templates) = Default::default();
        Reader { names, lines, stem, facts, interesting, unordered, templates }
    }

    fn see(&mut self, at: TextRange, what: What) {
        if let What::Call { name, .. } | What::Use(name) | What::Item { name, .. } = &what {
            let is_interesting = self.interesting.has(name);
            if !is_interesting && !matches!(what, What::Call { timeout: true, .. }) {
                return;
            }
        }
        self.facts.seen.push(Seen { line: self.lines.line(at.start().to_u32()), what });
    }

    fn call(&mut self, call: &'a ExprCall) {
        let name = self.names.resolve(&call.func).into_boxed_str();
        let arguments = &call.arguments;
        let text = arguments.args.first().and_then(|first| self.names.beginning(first));
        if name.ends_with("usefixtures") || name.ends_with("getfixturevalue") {
            self.facts.refers.fixtures.extend(arguments.args.iter().filter_map(literal).map(Into::into));
        }
        if KEEP_ORDER.contains(&&*name) && arguments.args.iter().any(|argument| self.names.is_set(argument)) {
            self.see(call.range(), What::SetOrder);
        }
        if FORGET_ORDER.contains(&&*name) {
            self.unordered.extend(arguments.args.iter().map(|argument| argument.start().to_u32()));
        }
        let keyword = |wanted: &str| {
            arguments.keywords.iter().any(|one| one.arg.as_ref().is_some_and(|arg| arg.as_str() == wanted))
        };
        let mode = arguments.args.get(1).and_then(literal);
        let mode = mode.or_else(|| literal(&arguments.find_keyword("mode")?.value));
        let encoded = keyword("encoding") || mode.is_some_and(|mode| mode.contains('b'));
        let what = What::Call {
            name: name.clone(),
            text: text.map(String::into_boxed_str),
            encoded,
            timeout: keyword("timeout"),
        };
        self.see(call.range(), what);
        self.facts.calls.insert(name);
        self.callee(&call.func);
        self.visit_arguments(arguments);
    }

    /// What is called is not read, but what it is a part of is.
    fn callee(&mut self, callee: &'a Expr) {
        match callee {
            Expr::Attribute(attribute) => {
                self.facts.nodes |= nodes::bit_of(AnyNodeRef::from(callee));
                self.member(&attribute.value, attribute.attr.as_str());
                self.visit_expr(&attribute.value);
            }
            Expr::Name(name) => {
                self.facts.nodes |= nodes::bit_of(AnyNodeRef::from(callee));
                self.refer(&name.id);
            }
            other => self.visit_expr(other),
        }
    }

    fn refer(&mut self, name: &str) {
        if !self.names.local.binds(name) {
            self.facts.refers.names.insert(name.into());
        }
    }

    fn member(&mut self, of: &'a Expr, attribute: &str) {
        match of {
            Expr::Name(name) if matches!(name.id.as_str(), "self" | "cls") => {
                self.facts.refers.members.insert(attribute.into());
            }
            Expr::Name(name) => {
                self.facts.refers.attributes.insert((name.id.as_str().into(), attribute.into()));
            }
            Expr::Call(call) if matches!(&*call.func, Expr::Name(name) if name.id.as_str() == "super") => {
                self.facts.refers.members.insert(attribute.into());
            }
            _ => {}
        }
    }

    fn read(&mut self, at: TextRange, expression: &'a Expr) {
        let name = self.names.resolve(expression).into_boxed_str();
        self.see(at, What::Use(name.clone()));
        self.facts.uses.insert(name);
    }

    fn comprehend(&mut self, whole: &'a Expr, parts: &'a [Comprehension]) {
        let is_unordered = self.unordered.contains(&whole.start().to_u32());
        let names = self.names;
        for part in parts.iter().filter(|part| !is_unordered && names.is_set(&part.iter)) {
            self.see(part.iter.range(), What::SetOrder);
        }
    }

    fn literal_text(&mut self, at: TextRange, text: &str) {
        if !self.stem.is_empty() && text.contains(self.stem) {
            self.see(at, What::OwnName(text.into()));
        }
    }

    fn expression(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Call(call) => {
                self.facts.nodes |= nodes::bit_of(AnyNodeRef::from(expression));
                self.call(call);
                return;
            }
            Expr::Attribute(attribute) => {
                self.member(&attribute.value, attribute.attr.as_str());
                if attribute.ctx == ExprContext::Load {
                    self.read(attribute.range, expression);
                }
            }
            Expr::Name(name) if name.ctx == ExprContext::Load => {
                self.refer(&name.id);
                if self.names.is_foreign(&name.id) {
                    self.read(name.range, expression);
                }
            }
            Expr::Subscript(subscript) => {
                if let Some(text) = literal(&subscript.slice) {
                    let name = self.names.resolve(&subscript.value).into_boxed_str();
                    self.see(subscript.range, What::Item { name, text: text.into() });
                }
            }
            Expr::SetComp(_) => self.unordered.push(expression.start().to_u32()),
            Expr::ListComp(inner) => self.comprehend(expression, &inner.generators),
            Expr::DictComp(inner) => self.comprehend(expression, &inner.generators),
            Expr::Generator(inner) => self.comprehend(expression, &inner.generators),
            Expr::StringLiteral(text) => self.literal_text(text.range, text.value.to_str()),
            _ => {}
        }
        source_order::walk_expr(self, expression);
    }
}

/// The text of a literal.
fn literal(expression: &Expr) -> Option<&str> {
    expression.as_string_literal_expr().map(|literal| literal.value.to_str())
}

impl<'a> SourceOrderVisitor<'a> for Reader<'_, 'a> {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        match node {
            AnyNodeRef::TString(_) => self.templates.push(true),
            AnyNodeRef::FString(_) => self.templates.push(false),
            AnyNodeRef::InterpolatedStringLiteralElement(text) => self.literal_text(text.range, &text.value),
            _ => {}
        }
        self.facts.nodes |= match node {
            AnyNodeRef::InterpolatedElement(_) if self.templates.last() == Some(&true) => {
                nodes::bit("Interpolation").unwrap_or(0)
            }
            node => nodes::bit_of(node),
        };
        TraversalSignal::Traverse
    }

    fn leave_node(&mut self, node: AnyNodeRef<'a>) {
        if matches!(node, AnyNodeRef::TString(_) | AnyNodeRef::FString(_)) {
            self.templates.pop();
        }
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            // A text that is alone is a comment.
            Stmt::Expr(alone) if alone.value.is_string_literal_expr() => {
                self.facts.nodes |= nodes::bit_of(AnyNodeRef::from(statement));
                self.facts.nodes |= nodes::bit_of(AnyNodeRef::from(&*alone.value));
                return;
            }
            Stmt::For(each) if self.names.is_set(&each.iter) => self.see(each.iter.range(), What::SetOrder),
            _ => {}
        }
        stacker::maybe_grow(RED_ZONE, MORE_STACK, || source_order::walk_stmt(self, statement));
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        stacker::maybe_grow(RED_ZONE, MORE_STACK, || self.expression(expression));
    }

    /// Annotations do nothing when a test runs.
    fn visit_annotation(&mut self, _annotation: &'a Expr) {}
}
