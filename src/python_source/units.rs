//! A module cut into its units.

use std::collections::HashMap;

use ruff_python_ast::{
    Decorator, ExceptHandler, Expr, Parameters, Stmt, StmtClassDef, StmtFunctionDef, StmtIf,
};
use ruff_text_size::{Ranged, TextRange};

use super::facts::{Facts, Interesting, Lines, Reader};
use super::names::{Names, Scope};
use ruff_python_ast::visitor::source_order::SourceOrderVisitor;

/// Functions of a module that pytest or unittest calls around its tests.
const MODULE_SET_UP: [&str; 9] = [
    "setup_module",
    "teardown_module",
    "setUpModule",
    "tearDownModule",
    "setup_function",
    "teardown_function",
    "setup",
    "teardown",
    "pytest_generate_tests",
];
/// Methods that pytest or unittest calls around the tests of a class.
const CLASS_SET_UP: [&str; 13] = [
    "setup_method",
    "teardown_method",
    "setup_class",
    "teardown_class",
    "setUp",
    "tearDown",
    "setUpClass",
    "tearDownClass",
    "asyncSetUp",
    "asyncTearDown",
    "setup",
    "teardown",
    "pytest_generate_tests",
];

/// A part of a file that comes into a closure as a whole.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub kind: Kind,
    pub name: String,
    /// The class that holds it.
    pub class: Option<usize>,
    /// Whole lines, decorators included.
    pub start: usize,
    pub end: usize,
    /// First line, 1-based.
    pub line: u32,
    /// Names of the parameters.
    pub parameters: Vec<String>,
    pub facts: Facts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Fixture {
        name: String,
        autouse: bool,
    },
    SetUp,
    /// Decorators, bases and statements of a class, without its methods.
    ClassBody,
    /// A statement of the module; one with an effect binds nothing.
    Statement {
        effect: bool,
    },
}

/// A class of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Class {
    pub name: String,
    /// The class around it.
    pub parent: Option<usize>,
    /// Dotted names of bases as they are resolved.
    pub bases: Vec<String>,
    pub body: Option<usize>,
    /// Methods, in the order of the text.
    pub members: Vec<usize>,
    pub classes: Vec<usize>,
}

/// What a name of the module means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Unit(usize),
    Class(usize),
}

/// Names of the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pub names: HashMap<String, Vec<Target>>,
    /// Fixtures and set-up functions of the module.
    pub around: Vec<usize>,
    /// Statements with an effect.
    pub effects: Vec<usize>,
}

impl Unit {
    /// The name under which pytest knows the fixture that this is.
    pub(super) fn fixture(&self) -> Option<&str> {
        match &self.kind {
            Kind::Fixture { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Whether it runs with every test in its reach.
    pub(super) fn is_automatic(&self) -> bool {
        matches!(self.kind, Kind::Fixture { autouse: true, .. } | Kind::SetUp)
    }
}

/// Cuts a module into units, noting the names that are interesting.
pub(super) fn split(
    body: &[Stmt],
    (text, stem): (&str, &str),
    is_interesting: fn(&str) -> bool,
) -> (Vec<Unit>, Vec<Class>, Index) {
    let module = Scope::of_module(body);
    let mut splitter = Splitter {
        text,
        stem,
        lines: Lines::of(text),
        module: &module,
        interesting: Interesting::new(is_interesting),
        units: Vec::new(),
        classes: Vec::new(),
        index: Index::default(),
    };
    splitter.module_body(body);
    (splitter.units, splitter.classes, splitter.index)
}

struct Splitter<'s, 'a> {
    text: &'s str,
    stem: &'s str,
    lines: Lines,
    module: &'s Scope<'a>,
    interesting: Interesting,
    units: Vec<Unit>,
    classes: Vec<Class>,
    index: Index,
}

impl<'a> Splitter<'_, 'a> {
    fn module_body(&mut self, body: &'a [Stmt]) {
        for statement in body {
            match statement {
                Stmt::FunctionDef(function) => {
                    let unit = self.function(statement, function, None);
                    self.name(function.name.as_str(), Target::Unit(unit));
                    if self.units[unit].fixture().is_some() || self.units[unit].kind == Kind::SetUp {
                        self.index.around.push(unit);
                    }
                }
                Stmt::ClassDef(class) => {
                    let class_index = self.class(class, None);
                    self.name(class.name.as_str(), Target::Class(class_index));
                }
                Stmt::Import(_) | Stmt::ImportFrom(_) => {}
                _ => match parts(statement) {
                    Some((heads, bodies)) => {
                        let around = Scope::default();
                        for head in heads {
                            let facts = self.facts(&around, |reader| reader.visit_expr(head));
                            self.statement(head.range(), Vec::new(), facts);
                        }
                        for body in bodies {
                            self.module_body(body);
                        }
                    }
                    None => self.simple(statement),
                },
            }
        }
    }

    fn simple(&mut self, statement: &'a Stmt) {
        let local = Scope::within(statement);
        let facts = self.facts(&local, |reader| reader.visit_stmt(statement));
        let mut names = Scope::of_module(std::slice::from_ref(statement)).into_names();
        if let Stmt::AugAssign(assign) = statement
            && let Expr::Name(name) = &*assign.target
        {
            names.push(name.id.to_string());
        }
        let is_comment = matches!(statement, Stmt::Expr(alone) if alone.value.is_string_literal_expr());
        if !is_comment && !statement.is_pass_stmt() {
            self.statement(statement.range(), names, facts);
        }
    }

    fn statement(&mut self, range: TextRange, names: Vec<String>, facts: Facts) {
        let kind = Kind::Statement { effect: names.is_empty() };
        let unit = self.unit(kind, names.first().cloned().unwrap_or_default(), None, range, facts);
        if names.is_empty() {
            self.index.effects.push(unit);
        }
        for name in &names {
            self.name(name, Target::Unit(unit));
        }
    }

    fn function(
        &mut self,
        statement: &'a Stmt,
        function: &'a StmtFunctionDef,
        class: Option<usize>,
    ) -> usize {
        let name = function.name.as_str();
        let set_up: &[&str] = if class.is_some() { &CLASS_SET_UP } else { &MODULE_SET_UP };
        let kind = match self.fixture(&function.decorator_list, name) {
            Some(fixture) => fixture,
            None if set_up.contains(&name) => Kind::SetUp,
            None => Kind::Function,
        };
        let none = Scope::default();
        let outer = Names { module: self.module, local: &none };
        let is_marked =
            |decorator: &'a Decorator| outer.resolve(&decorator.expression).starts_with("pytest.");
        let filled = kind != Kind::Function
            || name.to_lowercase().starts_with("test")
            || function.decorator_list.iter().any(is_marked);
        let local = Scope::of_function(&function.parameters, &function.body, filled);
        let facts = self.facts(&local, |reader| reader.visit_stmt(statement));
        let unit = self.unit(kind, name.to_owned(), class, statement.range(), facts);
        self.units[unit].parameters = parameters(&function.parameters, class.is_some());
        unit
    }

    /// What a decorator makes of a function, if it makes it a fixture.
    fn fixture(&self, decorators: &'a [Decorator], own: &str) -> Option<Kind> {
        let none = Scope::default();
        let names = Names { module: self.module, local: &none };
        decorators.iter().find_map(|decorator| {
            let dotted = names.resolve(&decorator.expression);
            let last = dotted.rsplit('.').next().unwrap_or_default();
            if !matches!(last, "fixture" | "yield_fixture") {
                return None;
            }
            let arguments = decorator.expression.as_call_expr().map(|call| &call.arguments);
            let value = |name: &str| Some(&arguments?.find_keyword(name)?.value);
            let given = value("name").and_then(|name| name.as_string_literal_expr());
            let name = given.map_or(own, |name| name.value.to_str()).to_owned();
            let autouse = value("autouse")
                .is_some_and(|value| value.as_boolean_literal_expr().is_some_and(|it| it.value));
            Some(Kind::Fixture { name, autouse })
        })
    }

    fn class(&mut self, class: &'a StmtClassDef, parent: Option<usize>) -> usize {
        let none = Scope::default();
        let outer = Names { module: self.module, local: &none };
        let bases = class.arguments.iter().flat_map(|arguments| &arguments.args);
        let bases = bases.map(|base| outer.resolve(base)).collect();
        let index = self.classes.len();
        self.classes.push(Class { name: class.name.to_string(), parent, bases, ..Class::default() });
        let local = Scope::of_module(&class.body);
        let mut own = Vec::new();
        self.class_body(&class.body, index, &mut own);
        let facts = self.facts(&local, |reader| {
            for decorator in &class.decorator_list {
                reader.visit_decorator(decorator);
            }
            if let Some(arguments) = class.arguments.as_deref() {
                reader.visit_arguments(arguments);
            }
            for part in own {
                match part {
                    Part::Statement(statement) => reader.visit_stmt(statement),
                    Part::Head(head) => reader.visit_expr(head),
                }
            }
        });
        let body = self.unit(Kind::ClassBody, class.name.to_string(), Some(index), class.range, facts);
        self.classes[index].body = Some(body);
        index
    }

    fn class_body(&mut self, body: &'a [Stmt], class: usize, own: &mut Vec<Part<'a>>) {
        for statement in body {
            match statement {
                Stmt::FunctionDef(function) => {
                    let unit = self.function(statement, function, Some(class));
                    self.classes[class].members.push(unit);
                }
                Stmt::ClassDef(inner) => {
                    let inner = self.class(inner, Some(class));
                    self.classes[class].classes.push(inner);
                }
                _ => match parts(statement) {
                    Some((heads, bodies)) => {
                        own.extend(heads.into_iter().map(Part::Head));
                        for body in bodies {
                            self.class_body(body, class, own);
                        }
                    }
                    None => own.push(Part::Statement(statement)),
                },
            }
        }
    }

    fn facts(&mut self, local: &Scope<'a>, read: impl FnOnce(&mut Reader<'_, 'a>)) -> Facts {
        let names = Names { module: self.module, local };
        let mut reader = Reader::new(names, &self.lines, self.stem, &mut self.interesting);
        read(&mut reader);
        reader.facts
    }

    fn unit(
        &mut self,
        kind: Kind,
        name: String,
        class: Option<usize>,
        range: TextRange,
        facts: Facts,
    ) -> usize {
        let start = self.lines.start(range.start().to_u32());
        let end = range.end().to_usize().min(self.text.len());
        self.units.push(Unit {
            kind,
            name,
            class,
            start: start as usize,
            end,
            line: self.lines.line(range.start().to_u32()),
            parameters: Vec::new(),
            facts,
        });
        self.units.len() - 1
    }

    fn name(&mut self, name: &str, target: Target) {
        self.index.names.entry(name.to_owned()).or_default().push(target);
    }
}

enum Part<'a> {
    Statement(&'a Stmt),
    Head(&'a Expr),
}

fn parameters(parameters: &Parameters, is_method: bool) -> Vec<String> {
    let names = parameters.iter_non_variadic_params().map(|one| one.name().to_string());
    names.enumerate().filter(|(place, _)| !(is_method && *place == 0)).map(|(_, name)| name).collect()
}

/// The expressions at the head of a compound statement, and its bodies. None for a statement that stays whole.
fn parts(statement: &Stmt) -> Option<(Vec<&Expr>, Vec<&[Stmt]>)> {
    match statement {
        Stmt::If(branch) if is_main(branch) => Some((Vec::new(), Vec::new())),
        Stmt::If(branch) => {
            let clauses = &branch.elif_else_clauses;
            let heads =
                std::iter::once(&*branch.test).chain(clauses.iter().filter_map(|one| one.test.as_ref()));
            let bodies = std::iter::once(&*branch.body).chain(clauses.iter().map(|clause| &*clause.body));
            Some((heads.collect(), bodies.collect()))
        }
        Stmt::Try(attempt) => {
            let handlers =
                attempt.handlers.iter().map(|ExceptHandler::ExceptHandler(handler)| &*handler.body);
            let mut bodies: Vec<&[Stmt]> = vec![&attempt.body];
            bodies.extend(handlers.chain([&*attempt.orelse, &*attempt.finalbody]));
            Some((Vec::new(), bodies))
        }
        Stmt::With(with) => {
            Some((with.items.iter().map(|item| &item.context_expr).collect(), vec![&*with.body]))
        }
        _ => None,
    }
}

/// `if __name__ == "__main__":` never holds under pytest.
fn is_main(branch: &StmtIf) -> bool {
    let Expr::Compare(compare) = &*branch.test else { return false };
    matches!(&*compare.left, Expr::Name(name) if name.id.as_str() == "__name__")
        && branch.elif_else_clauses.is_empty()
}
