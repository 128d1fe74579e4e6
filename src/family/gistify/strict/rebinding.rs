//! The test, or its class, made into something else after its definition.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, ExprContext, Stmt, StmtClassDef, StmtIf};
use ruff_text_size::{Ranged, TextRange};

use super::Candidates;
use super::outside::Bound;
use crate::family::gistify::findings::FindingKind;
use crate::family::gistify::locate::TestName;
use crate::score::tree;

const KIND: FindingKind = FindingKind::NeutralizedTest;
/// Methods by which a class decides what becomes of its tests.
const DECIDES: [&str; 13] = [
    "__init_subclass__",
    "__getattribute__",
    "__getattr__",
    "__new__",
    "__prepare__",
    "__call__",
    "__set_name__",
    "run",
    "debug",
    "_callTestMethod",
    "fail",
    "failureException",
    "defaultTestResult",
];
/// What hands out the names of a scope.
const SCOPES: [&str; 3] = ["globals", "locals", "vars"];
/// Methods of a scope that only look.
const LOOKS: [&str; 6] = ["get", "keys", "values", "items", "copy", "__contains__"];
/// How many classes are looked through for bases.
const BASES: usize = 64;

pub(super) fn look<'a>(found: &mut Candidates<'a>, test: &'a TestName, replaced: Option<TextRange>) {
    let body = found.parsed.body;
    bindings(found, body, test);
    ancestry(found, body, test);
    let mut uses = Uses { test, replaced, passed: HashSet::new(), in_guard: false, is_inner: false, found };
    uses.visit_body(body);
}

/// Whatever else binds the name of the test, or of one of its classes, in its place.
fn bindings<'a>(found: &mut Candidates<'a>, body: &'a [Stmt], test: &TestName) {
    let mut body = body;
    let names = test.classes.iter().chain([&test.function]);
    for (depth, name) in names.enumerate() {
        let bound = Bound::of(body);
        let here: Vec<_> = bound.all.iter().filter(|one| &one.name == name).collect();
        let is_class = depth < test.classes.len();
        let is_definition = |statement: &Stmt| match statement {
            Stmt::ClassDef(_) => is_class,
            Stmt::FunctionDef(_) => !is_class,
            _ => false,
        };
        let definitions = here.iter().filter(|one| is_definition(one.statement)).count();
        for (at, one) in here.iter().enumerate() {
            let is_last = here[at + 1..].iter().all(|later| !is_definition(later.statement));
            let is_it = is_definition(one.statement) && (is_last || definitions == 1);
            // Where nothing defines it, the original may not either.
            if !is_it && definitions > 0 {
                found.add(KIND, one.at.start(), name.as_str());
            }
        }
        let class = here.iter().rev().find_map(|one| match one.statement {
            Stmt::ClassDef(class) => Some(class),
            _ => None,
        });
        match class {
            Some(class) => body = &class.body,
            None => return,
        }
    }
}

/// Classes of the test, and those that they inherit from.
fn ancestry<'a>(found: &mut Candidates<'a>, body: &'a [Stmt], test: &TestName) {
    let mut classes: Vec<&'a StmtClassDef> = Vec::new();
    let mut around = body;
    for name in &test.classes {
        let Some(class) = class_of(around, name) else { break };
        // A header with all of this is the original's.
        let has_keywords = class.arguments.as_ref().is_some_and(|it| !it.keywords.is_empty());
        if has_keywords
            || !class.decorator_list.is_empty()
            || class.bases().iter().any(|base| !base.is_name_expr() && !base.is_attribute_expr())
        {
            found.add(KIND, class.name.start(), name.as_str());
        }
        classes.push(class);
        around = &class.body;
    }
    let mut next = 0;
    while let Some(class) = classes.get(next).copied() {
        next += 1;
        let bases = class
            .arguments
            .iter()
            .flat_map(|it| it.args.iter().chain(it.keywords.iter().map(|one| &one.value)));
        for base in bases {
            if let Expr::Name(name) = base
                && let Some(base) = class_of(body, &name.id)
                && classes.len() < BASES
                && !classes.iter().any(|known| std::ptr::eq(*known, base))
            {
                classes.push(base);
            }
        }
        for one in &Bound::of(&class.body).all {
            let asserts = one.name.starts_with("assert") && one.name.chars().any(char::is_uppercase);
            if DECIDES.contains(&one.name.as_str()) || asserts {
                let at = match one.statement {
                    Stmt::FunctionDef(function) => function.name.start(),
                    _ => one.at.start(),
                };
                found.add(KIND, at, format!("{}.{}", class.name, one.name));
            }
        }
    }
}

/// The last class of a name, control flow around it ignored.
fn class_of<'a>(body: &'a [Stmt], name: &str) -> Option<&'a StmtClassDef> {
    body.iter().rev().find_map(|statement| match statement {
        Stmt::ClassDef(class) => (class.name.as_str() == name).then_some(class),
        Stmt::FunctionDef(_) => None,
        _ => tree::bodies(statement).into_iter().rev().find_map(|body| class_of(body, name)),
    })
}

/// Places that use the test, or its class, as a value, or reach the names of the module.
struct Uses<'f, 'a> {
    test: &'a TestName,
    replaced: Option<TextRange>,
    passed: HashSet<TextRange>,
    in_guard: bool,
    is_inner: bool,
    found: &'f mut Candidates<'a>,
}

impl Uses<'_, '_> {
    fn outermost(&self) -> &str {
        self.test.classes.first().unwrap_or(&self.test.function)
    }

    fn is_its_name(&self, text: &str) -> bool {
        text == self.test.function || text == self.outermost()
    }

    fn store(&mut self, target: &Expr) {
        let Expr::Attribute(attribute) = target else { return };
        let of_class = tree::chain(target).is_some_and(|(root, _)| root == self.outermost());
        if attribute.attr.as_str() == self.test.function || of_class {
            self.found.add(KIND, target.start(), attribute.attr.as_str());
        }
    }

    fn text(&mut self, expression: &Expr) {
        if let Expr::StringLiteral(text) = expression
            && self.is_its_name(text.value.to_str())
        {
            self.found.add(KIND, expression.start(), text.value.to_str());
        }
    }

    fn call(&mut self, call: &ExprCall) {
        let last = match &*call.func {
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            Expr::Name(name) => name.id.as_str(),
            _ => "",
        };
        if last.ends_with("attr")
            || last.ends_with("attr__")
            || last.ends_with("item__")
            || matches!(last, "setitem" | "object" | "setdefault" | "pop")
        {
            call.arguments.args.iter().for_each(|one| self.text(one));
        }
        let of_scope = |expression: &Expr| is_scope(expression, self.is_inner);
        match &*call.func {
            Expr::Attribute(method) if of_scope(&method.value) && LOOKS.contains(&method.attr.as_str()) => {
                self.passed.insert(method.value.range());
            }
            Expr::Attribute(method) if of_scope(&method.value) && method.attr.as_str() == "update" => {
                let keys = call
                    .arguments
                    .keywords
                    .iter()
                    .all(|one| one.arg.as_deref().is_some_and(|name| !self.is_its_name(name)));
                let known = call.arguments.args.iter().all(|one| match one {
                    Expr::Dict(dict) => dict.items.iter().all(|item| {
                        matches!(&item.key, Some(Expr::StringLiteral(text)) if !self.is_its_name(text.value.to_str()))
                    }),
                    _ => false,
                });
                if keys && known {
                    self.passed.insert(method.value.range());
                }
            }
            _ => {}
        }
    }
}

/// `globals()` and, where they are the same, `locals()` and `vars()`.
fn is_scope(expression: &Expr, is_inner: bool) -> bool {
    let Expr::Call(call) = expression else { return false };
    let Expr::Name(name) = &*call.func else { return false };
    let is_one = if is_inner { name.id.as_str() == "globals" } else { SCOPES.contains(&name.id.as_str()) };
    is_one && call.arguments.args.is_empty()
}

fn is_main_guard(branch: &StmtIf) -> bool {
    matches!(&*branch.test, Expr::Compare(compare)
        if matches!(&*compare.left, Expr::Name(name) if name.id.as_str() == "__name__"))
}

impl<'a> Visitor<'a> for Uses<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if self.replaced == Some(statement.range()) {
            return;
        }
        match statement {
            Stmt::If(branch) if is_main_guard(branch) => {
                self.in_guard = true;
                visitor::walk_stmt(self, statement);
                self.in_guard = false;
                return;
            }
            Stmt::FunctionDef(_) => {
                let around = std::mem::replace(&mut self.is_inner, true);
                visitor::walk_stmt(self, statement);
                self.is_inner = around;
                return;
            }
            Stmt::ClassDef(class) => {
                // Another test may inherit from it.
                self.passed.extend(class.bases().iter().map(Ranged::range));
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if tree::is_target(expression) {
            self.store(expression);
        }
        match expression {
            Expr::Call(call) => {
                self.call(call);
                if is_scope(expression, self.is_inner) && !self.passed.contains(&expression.range()) {
                    self.found.add(
                        KIND,
                        expression.start(),
                        self.found.parsed.text[expression.range()].to_owned(),
                    );
                }
            }
            Expr::Subscript(subscript) => {
                self.text(&subscript.slice);
                let constant = subscript.slice.is_string_literal_expr();
                if is_scope(&subscript.value, self.is_inner)
                    && (subscript.ctx == ExprContext::Load || constant)
                {
                    self.passed.insert(subscript.value.range());
                }
            }
            Expr::Compare(compare) => self.passed.extend(compare.comparators.iter().map(Ranged::range)),
            Expr::Name(name)
                if name.ctx == ExprContext::Load
                    && name.id.as_str() == self.outermost()
                    && !self.in_guard
                    && !self.passed.contains(&expression.range()) =>
            {
                self.found.add(KIND, expression.start(), name.id.as_str());
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}
