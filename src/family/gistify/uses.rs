//! What a test hands over, and what it asks for: by the places that its values and names have in it.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use crate::score::tree;

/// What a literal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Expected,
    Input,
    /// It is handed over and asked for.
    Both,
    /// Nobody knows.
    Doubtful,
}

/// Functions that make something else of what they are given: their other arguments are not an input of what made it.
const MAKE: [&str; 12] =
    ["round", "sorted", "len", "sum", "min", "max", "any", "all", "getattr", "isinstance", "format", "range"];

/// Where a test uses its names, and which places are asked for.
#[derive(Default)]
pub(super) struct Uses<'a> {
    loads: BTreeMap<&'a str, Vec<TextRange>>,
    stored: BTreeSet<&'a str>,
    asked: Vec<TextRange>,
    /// Asked for or handed over.
    doubtful: Vec<TextRange>,
    in_assert: bool,
    in_compare: bool,
    /// Functions of the file that ask for something.
    asking: BTreeSet<&'a str>,
}

impl<'a> Uses<'a> {
    /// Those of a function of a module.
    pub(super) fn of(module: &'a [Stmt], function: &'a StmtFunctionDef) -> Self {
        let asking = module.iter().filter_map(|one| match one {
            Stmt::FunctionDef(one) if one.name != function.name && asks(&one.body) => Some(one.name.as_str()),
            _ => None,
        });
        let mut uses = Uses { asking: asking.collect(), ..Uses::default() };
        uses.visit_body(&function.body);
        uses
    }

    /// Whether the test names it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.loads.contains_key(name)
    }

    /// Whether a place may be asked for.
    pub(super) fn is_asked(&self, range: TextRange) -> bool {
        self.asked.iter().chain(&self.doubtful).any(|it| it.contains_range(range))
    }

    /// What the value of a name is for.
    pub(super) fn role(&self, name: &str) -> Role {
        let Some(loads) = self.loads.get(name) else { return Role::Input };
        let is_in = |ranges: &[TextRange], load: &TextRange| ranges.iter().any(|it| it.contains_range(*load));
        let asked = loads.iter().filter(|load| is_in(&self.asked, load)).count();
        let is_doubtful = loads.iter().any(|load| is_in(&self.doubtful, load));
        match asked {
            all if all == loads.len() => Role::Expected,
            _ if is_doubtful => Role::Doubtful,
            0 => Role::Input,
            _ => Role::Both,
        }
    }

    /// Whether a place is asked for, and not only perhaps.
    pub(super) fn is_asked_surely(&self, range: TextRange) -> bool {
        self.asked.iter().any(|it| it.contains_range(range))
    }

    /// Of what is compared the sides that call nothing are asked for, if they have to be the same; where several call something,
    /// nobody knows.
    fn sides(&mut self, sides: &[&'a Expr], are_the_same: bool) {
        let (calling, plain): (Vec<&Expr>, Vec<&Expr>) = sides.iter().copied().partition(|it| calls(it));
        let plain = plain.iter().map(Ranged::range);
        if are_the_same {
            self.asked.extend(plain);
        } else {
            self.doubtful.extend(plain);
        }
        if calling.len() > 1 {
            self.doubtful.extend(calling.iter().map(Ranged::range));
        }
    }

    fn call(&mut self, call: &'a ExprCall) {
        let arguments: Vec<&Expr> =
            call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|one| &one.value)).collect();
        let is_own = matches!(&*call.func, Expr::Attribute(it) if it.value.as_name_expr().is_some_and(|it| it.id == "self"));
        let is_name = call.func.is_name_expr();
        let all = |uses: &mut Self| uses.doubtful.extend(arguments.iter().map(Ranged::range));
        match called(call) {
            Some(name) if name.starts_with("assert") => self.sides(&arguments, !name.contains("Not")),
            Some("raises" | "warns" | "deprecated_call" | "approx") => {
                self.asked.extend(arguments.iter().map(Ranged::range));
            }
            Some(name) if is_name && (self.asking.contains(name) || MAKE.contains(&name)) => all(self),
            _ if is_own => all(self),
            // `isclose(f(1), 5)`, `f(1).startswith("a")`: what is not called is compared with what is.
            _ if self.in_assert && !self.in_compare => {
                let receiver = call.func.as_attribute_expr().map(|it| &*it.value);
                let made = |one: &Expr| {
                    calls(one) || one.as_name_expr().is_some_and(|it| self.stored.contains(it.id.as_str()))
                };
                if receiver.into_iter().chain(arguments.iter().copied()).any(made) {
                    let plain: Vec<TextRange> =
                        arguments.iter().filter(|one| !calls(one)).map(Ranged::range).collect();
                    self.doubtful.extend(plain);
                }
            }
            _ => {}
        }
    }
}

impl<'a> Visitor<'a> for Uses<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let is_assert = statement.is_assert_stmt();
        self.in_assert |= is_assert;
        visitor::walk_stmt(self, statement);
        self.in_assert &= !is_assert;
    }

    fn visit_annotation(&mut self, _annotation: &'a Expr) {}

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Compare(compare) if self.in_assert => {
                let sides: Vec<&Expr> = std::iter::once(&*compare.left).chain(&compare.comparators).collect();
                let are_the_same =
                    compare.ops.iter().all(|it| matches!(it, CmpOp::Eq | CmpOp::Is | CmpOp::In));
                self.sides(&sides, are_the_same);
                let outside = std::mem::replace(&mut self.in_compare, true);
                visitor::walk_expr(self, expression);
                self.in_compare = outside;
                return;
            }
            Expr::Call(call) => {
                self.call(call);
                if called(call).is_some_and(|name| name.starts_with("assert")) {
                    let outside = std::mem::replace(&mut self.in_assert, true);
                    visitor::walk_expr(self, expression);
                    self.in_assert = outside;
                    return;
                }
            }
            Expr::Name(name) if name.ctx.is_load() => {
                self.loads.entry(&name.id).or_default().push(name.range());
            }
            Expr::Name(name) => drop(self.stored.insert(&name.id)),
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

/// Names of constants of a module, and of its fixtures that a function takes, with the values that are written there.
pub(super) fn bound<'a>(module: &'a [Stmt], function: &'a StmtFunctionDef) -> Vec<(&'a str, &'a Expr)> {
    let uses = Uses::of(&[], function);
    let parameters: BTreeSet<&str> = function.parameters.iter().map(|one| one.name().as_str()).collect();
    let mut found: Vec<(&str, &Expr)> = constants(module);
    found.retain(|(name, _)| !parameters.contains(name));
    found.extend(module.iter().filter_map(fixture).filter(|(name, _)| parameters.contains(name)));
    found.retain(|(name, value)| !uses.stored.contains(name) && is_written_out(value));
    found
}

/// What a module binds once, to the value that it binds it to.
pub(super) fn constants(module: &[Stmt]) -> Vec<(&str, &Expr)> {
    let mut found: Vec<(&str, Option<&Expr>)> = Vec::new();
    for statement in module {
        match statement {
            Stmt::Assign(assign) => {
                let value = (assign.targets.len() == 1).then_some(&*assign.value);
                let names = assign.targets.iter().filter_map(Expr::as_name_expr);
                found.extend(names.map(|name| (name.id.as_str(), value)));
            }
            Stmt::AnnAssign(assign) => {
                found
                    .extend(assign.target.as_name_expr().map(|it| (it.id.as_str(), assign.value.as_deref())));
            }
            Stmt::AugAssign(assign) => {
                found.extend(assign.target.as_name_expr().map(|it| (it.id.as_str(), None)));
            }
            _ => {}
        }
    }
    let is_once = |name: &str| found.iter().filter(|(it, _)| *it == name).count() == 1;
    found
        .iter()
        .filter(|(name, _)| is_once(name))
        .filter_map(|(name, value)| Some((*name, (*value)?)))
        .collect()
}

/// A fixture that only returns a value.
fn fixture(statement: &Stmt) -> Option<(&str, &Expr)> {
    let Stmt::FunctionDef(function) = statement else { return None };
    let is_fixture = function.decorator_list.iter().any(|one| match &one.expression {
        Expr::Call(call) => called(call) == Some("fixture") && call.arguments.is_empty(),
        Expr::Name(name) => name.id == "fixture",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "fixture",
        _ => false,
    });
    let mut body = function.body.iter().filter(|it| !tree::is_text(it));
    match (body.next(), body.next()) {
        (Some(Stmt::Return(one)), None) if is_fixture && function.parameters.is_empty() => {
            Some((&function.name, one.value.as_deref()?))
        }
        _ => None,
    }
}

/// Whether a value names nothing but `pytest.param`: then it can be written wherever it is used.
pub(super) fn is_written_out(value: &Expr) -> bool {
    match value {
        Expr::Call(call) => {
            let is_param = called(call) == Some("param") && call.func.is_attribute_expr();
            is_param && call.arguments.keywords.is_empty() && call.arguments.args.iter().all(is_written_out)
        }
        Expr::UnaryOp(operation) => is_literal(&operation.operand),
        Expr::Dict(dict) => dict
            .items
            .iter()
            .all(|item| item.key.as_ref().is_some_and(is_written_out) && is_written_out(&item.value)),
        Expr::List(_) | Expr::Tuple(_) | Expr::Set(_) => elements(value).iter().all(is_written_out),
        _ => is_literal(value),
    }
}

/// Literals of a value that is written out.
pub(super) fn literals_of<'a>(value: &'a Expr, found: &mut Vec<&'a Expr>) {
    match value {
        Expr::UnaryOp(operation) => literals_of(&operation.operand, found),
        Expr::Dict(dict) => {
            for item in &dict.items {
                item.key.iter().chain([&item.value]).for_each(|one| literals_of(one, found));
            }
        }
        Expr::List(_) | Expr::Tuple(_) | Expr::Set(_) => {
            for one in elements(value) {
                literals_of(one, found);
            }
        }
        _ if is_literal(value) => found.push(value),
        _ => {}
    }
}

/// What is in a display, or in `pytest.param`; nothing of anything else.
pub(super) fn elements(value: &Expr) -> &[Expr] {
    match value {
        Expr::List(list) => &list.elts,
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::Set(set) => &set.elts,
        Expr::Call(call) if called(call) == Some("param") => &call.arguments.args,
        _ => &[],
    }
}

/// Names of parameters, as `parametrize` is given them.
pub(super) fn names_of(value: &Expr) -> Vec<String> {
    match value {
        Expr::StringLiteral(text) => {
            let names = text.value.to_str().split(',').map(|name| name.trim().to_owned());
            names.filter(|name| !name.is_empty()).collect()
        }
        _ => elements(value).iter().flat_map(names_of).collect(),
    }
}

/// A literal, in one piece or several.
pub(super) fn is_literal(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::StringLiteral(_)
            | Expr::BytesLiteral(_)
            | Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
    )
}

/// The last name of what is called.
pub(super) fn called(call: &ExprCall) -> Option<&str> {
    match &*call.func {
        Expr::Name(name) => Some(&name.id),
        Expr::Attribute(attribute) => Some(&attribute.attr),
        _ => None,
    }
}

/// Whether an expression calls something; what a test only approximates is a value.
pub(super) fn calls(expression: &Expr) -> bool {
    struct Calls(bool);
    impl<'a> Visitor<'a> for Calls {
        fn visit_expr(&mut self, expression: &'a Expr) {
            self.0 |= expression.as_call_expr().is_some_and(|call| called(call) != Some("approx"));
            visitor::walk_expr(self, expression);
        }
    }
    let mut found = Calls(false);
    found.visit_expr(expression);
    found.0
}

/// Whether there is an assertion among statements.
fn asks(body: &[Stmt]) -> bool {
    body.iter().any(|one| one.is_assert_stmt() || tree::bodies(one).into_iter().any(asks))
}
