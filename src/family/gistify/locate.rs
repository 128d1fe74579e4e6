//! Where a file defines a test: by its chain of classes and its name.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    Alias, ExceptHandler, Expr, ExprContext, Identifier, Parameter, Pattern, Stmt, StmtClassDef,
    StmtFunctionDef,
};
use serde::{Deserialize, Serialize};

use crate::python_source::names::Scope;
use crate::score::modules::Bindings;
use crate::score::tree;

/// Methods that pytest and unittest call around a test.
pub(super) const AROUND: [&str; 8] = [
    "setUp",
    "tearDown",
    "setUpClass",
    "tearDownClass",
    "setup_method",
    "teardown_method",
    "setup_class",
    "teardown_class",
];

/// The part of a node ID after the file, without a parameter: classes, the outermost first, and the function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TestName {
    pub classes: Vec<String>,
    pub function: String,
}

impl FromStr for TestName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut classes: Vec<String> = text.split("::").map(str::to_owned).collect();
        let function = classes.pop().unwrap_or_default();
        Ok(TestName { classes, function })
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.classes.iter().try_for_each(|class| write!(formatter, "{class}::"))?;
        formatter.write_str(&self.function)
    }
}

/// How many classes are looked through for an inherited test.
const BASES: usize = 64;

/// What a file has under the name of a test.
#[derive(Debug, Clone)]
pub(super) enum Found<'a> {
    /// A definition, and the name under which it stands: that of a base where the test is inherited.
    Function { definition: &'a Stmt, function: &'a StmtFunctionDef, name: TestName },
    /// No definition in this file, though the name may be bound: by an assignment, an import, a base from elsewhere.
    Undefined,
    /// Nothing that could be the test.
    Missing,
}

/// Looks for a test, in its class and then in the bases that the file defines.
pub(super) fn locate<'a>(body: &'a [Stmt], test: &TestName) -> Found<'a> {
    let Some((first, inner)) = test.classes.split_first() else { return in_module(body, test) };
    let Some(mut class) = class_in(body, first) else {
        return if is_bound(body, first) { Found::Undefined } else { Found::Missing };
    };
    for name in inner {
        match class_in(&class.body, name) {
            Some(found) => class = found,
            None => return if is_bound(&class.body, name) { Found::Undefined } else { Found::Missing },
        }
    }
    in_lineage(body, class, test)
}

fn in_module<'a>(body: &'a [Stmt], test: &TestName) -> Found<'a> {
    match last(body, &test.function) {
        Some(definition) => as_function(definition, test.clone()).unwrap_or(Found::Missing),
        None if is_bound(body, &test.function) => Found::Undefined,
        None => Found::Missing,
    }
}

fn in_lineage<'a>(module: &'a [Stmt], class: &'a StmtClassDef, test: &TestName) -> Found<'a> {
    let mut queue = vec![(class, test.classes.clone())];
    let (mut next, mut is_open) = (0, false);
    while let Some((class, classes)) = queue.get(next).cloned() {
        next += 1;
        if let Some(definition) = last(&class.body, &test.function) {
            let name = TestName { classes, function: test.function.clone() };
            return as_function(definition, name).unwrap_or(Found::Missing);
        }
        if is_bound(&class.body, &test.function) {
            return Found::Undefined;
        }
        for base in class.arguments.iter().flat_map(|arguments| &arguments.args) {
            let known = match base {
                Expr::Name(name) if name.id.as_str() == "object" => continue,
                Expr::Name(name) => {
                    class_in(module, &name.id).map(|class| (class, vec![name.id.to_string()]))
                }
                _ => None,
            };
            match known {
                Some(found) if queue.len() < BASES => {
                    if !queue.iter().any(|(class, _)| std::ptr::eq(*class, found.0)) {
                        queue.push(found);
                    }
                }
                _ => is_open = true,
            }
        }
    }
    if is_open { Found::Undefined } else { Found::Missing }
}

fn as_function(definition: &Stmt, name: TestName) -> Option<Found<'_>> {
    match definition {
        Stmt::FunctionDef(function) => Some(Found::Function { definition, function, name }),
        _ => None,
    }
}

fn class_in<'a>(body: &'a [Stmt], name: &str) -> Option<&'a StmtClassDef> {
    match last(body, name)? {
        Stmt::ClassDef(class) => Some(class),
        _ => None,
    }
}

/// The last definition of a name, control flow around it ignored.
fn last<'a>(body: &'a [Stmt], name: &str) -> Option<&'a Stmt> {
    body.iter().rev().find_map(|statement| match statement {
        Stmt::FunctionDef(function) => (function.name.as_str() == name).then_some(statement),
        Stmt::ClassDef(class) => (class.name.as_str() == name).then_some(statement),
        _ => tree::bodies(statement).into_iter().rev().find_map(|body| last(body, name)),
    })
}

fn is_bound(body: &[Stmt], name: &str) -> bool {
    Scope::of_module(body).binds(name)
}

/// Names that a file binds in the scope of its module.
pub(super) fn bound_names(body: &[Stmt]) -> BTreeSet<String> {
    Scope::of_module(body).into_names().into_iter().collect()
}

/// Names that a function, or a function in it, binds for itself, imports left out.
pub(super) fn local_names(function: &StmtFunctionDef) -> BTreeSet<String> {
    let mut locals = Locals::default();
    locals.visit_parameters(&function.parameters);
    locals.visit_body(&function.body);
    locals.0
}

/// Names that imports in a function bind.
fn imported_names(function: &StmtFunctionDef) -> BTreeSet<String> {
    struct Imports(BTreeSet<String>);
    impl<'a> Visitor<'a> for Imports {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            match statement {
                Stmt::Import(import) => self.0.extend(import.names.iter().map(bound_by)),
                Stmt::ImportFrom(import) => self.0.extend(import.names.iter().map(bound_by)),
                _ => visitor::walk_stmt(self, statement),
            }
        }
    }
    let mut imports = Imports(BTreeSet::new());
    imports.visit_body(&function.body);
    imports.0
}

/// The name that an import binds.
fn bound_by(alias: &Alias) -> String {
    let root = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    alias.asname.as_ref().map_or_else(|| root(alias.name.as_str()), ToString::to_string)
}

/// Names that stand for no module of the repository in a function of a file, though a module may be called so.
pub(super) fn other_names(
    body: &[Stmt],
    function: &StmtFunctionDef,
    bindings: &Bindings<'_>,
) -> BTreeSet<String> {
    let mut names = bound_names(body);
    names.extend(imported_names(function));
    names.retain(|name| bindings.module(name).is_none());
    names
}

#[derive(Default)]
struct Locals(BTreeSet<String>);

impl Locals {
    fn add(&mut self, name: Option<&Identifier>) {
        self.0.extend(name.map(ToString::to_string));
    }
}

impl<'a> Visitor<'a> for Locals {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.add(Some(&function.name)),
            Stmt::ClassDef(class) => self.add(Some(&class.name)),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if name.ctx == ExprContext::Store => {
                self.0.insert(name.id.to_string());
            }
            _ => visitor::walk_expr(self, expression),
        }
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.add(Some(&parameter.name));
        visitor::walk_parameter(self, parameter);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        self.add(inner.name.as_ref());
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        match pattern {
            Pattern::MatchAs(pattern) => self.add(pattern.name.as_ref()),
            Pattern::MatchStar(pattern) => self.add(pattern.name.as_ref()),
            Pattern::MatchMapping(pattern) => self.add(pattern.rest.as_ref()),
            _ => {}
        }
        visitor::walk_pattern(self, pattern);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::text::parse;

    /// The judge of exports reads the same table.
    #[test]
    fn a_module_binds_what_python_binds() {
        let table = include_str!("../../export/tools/tests/bound_names.json");
        let table: Vec<(String, Vec<String>)> = serde_json::from_str(table).unwrap();
        assert!(table.len() > 20);
        for (text, names) in table {
            let bound = parse(&text, |parsed| bound_names(parsed.body)).unwrap();
            assert_eq!(bound.into_iter().collect::<Vec<_>>(), names, "{text}");
        }
    }

    fn found(text: &str, test: &str) -> String {
        let Ok(test) = test.parse();
        parse(text, |parsed| match locate(parsed.body, &test) {
            Found::Function { name, definition, .. } => {
                format!("{name} {}", parsed.lines.line(ruff_text_size::Ranged::start(definition)))
            }
            Found::Undefined => "undefined".to_owned(),
            Found::Missing => "missing".to_owned(),
        })
        .unwrap()
    }

    #[test]
    fn the_last_definition_counts_wherever_it_stands() {
        assert_eq!(found("def test(): pass\nif x:\n    def test(): pass\n", "test"), "test 3");
        assert_eq!(found("try:\n    import x\nexcept E:\n    def test(): pass\n", "test"), "test 4");
        assert_eq!(found("class T:\n    def test(self): pass\nclass T: pass\n", "T::test"), "missing");
        assert_eq!(
            found("class T:\n  class U:\n    async def test(self): pass\n", "T::U::test"),
            "T::U::test 3"
        );
        assert_eq!(found("def f():\n    def test(): pass\n", "test"), "missing");
        assert_eq!(found("def test(): pass\nclass test: pass\n", "test"), "missing");
    }

    #[test]
    fn inherited_tests_are_found_in_their_base() {
        let text = "class A:\n    def test(self): pass\nclass B(A, object): pass\nclass C(B): pass\n";
        assert_eq!(found(text, "C::test"), "A::test 2");
        assert_eq!(found("class C(C): pass\n", "C::test"), "missing");
        assert_eq!(found("class C(elsewhere.Base): pass\n", "C::test"), "undefined");
    }

    #[test]
    fn a_name_may_be_bound_by_no_definition() {
        assert_eq!(found("test = make()\n", "test"), "undefined");
        assert_eq!(found("from other import T\n", "T::test"), "undefined");
        assert_eq!(found("class T:\n    test = other\n", "T::test"), "undefined");
    }
}
