//! Names that the original test takes from outside its repository (builtins, libraries, fixtures of pytest), and what
//! a submission binds them to.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    Alias, Decorator, ExceptHandler, Expr, ExprContext, Parameter, Pattern, Stmt, StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange};

use super::Candidates;
use crate::family::gistify::existence::Corpus;
use crate::family::gistify::findings::FindingKind;
use crate::family::gistify::locate::{self, AROUND, Found, TestName};
use crate::score::modules::{Bindings, Modules, joined};
use crate::score::text::Parsed;
use crate::score::tree;

const BUILTINS: &str = "abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod \
    complex delattr dict dir divmod enumerate filter float format frozenset getattr globals hasattr hash help hex id input \
    int isinstance issubclass iter len list locals map max memoryview min next object oct open ord pow print property \
    range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip \
    ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError \
    BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError \
    ConnectionResetError DeprecationWarning EOFError EncodingWarning EnvironmentError Exception ExceptionGroup \
    FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning \
    IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError \
    ModuleNotFoundError NameError NotADirectoryError NotImplemented NotImplementedError OSError OverflowError \
    PendingDeprecationWarning PermissionError ProcessLookupError RecursionError ReferenceError ResourceWarning \
    RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError SystemExit \
    TabError TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError \
    UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError";
const FIXTURES: &str = "cache capfd capfdbinary caplog capsys capsysbinary capteesys doctest_namespace monkeypatch \
    pytestconfig pytester record_property record_testsuite_property record_xml_attribute recwarn request subtests testdir \
    tmp_path tmp_path_factory tmpdir tmpdir_factory";
fn is_builtin(name: &str) -> bool {
    BUILTINS.split_whitespace().any(|one| one == name)
}

fn is_fixture_of_pytest(name: &str) -> bool {
    FIXTURES.split_whitespace().any(|one| one == name)
}

/// What the original test, and what it uses of its file, take from outside.
#[derive(Debug, Default)]
pub(super) struct Outside {
    /// Whether the file defines the test.
    pub(super) is_defined: bool,
    /// Names and what they are: a dotted name, none for a builtin.
    pub(super) names: BTreeMap<String, Option<String>>,
    /// Fixtures that the file does not define.
    fixtures: BTreeSet<String>,
}

impl Outside {
    pub(super) fn of(source: Parsed<'_>, path: &str, test: &TestName, modules: &Modules) -> Self {
        let bindings = Bindings::of_file(modules, path, source.body);
        let bound = Bound::of(source.body);
        let mut outside = Outside::default();
        let mut queue: Vec<&Stmt> = Vec::new();
        if let Found::Function { definition, .. } = locate::locate(source.body, test) {
            outside.is_defined = true;
            queue.push(definition);
        }
        around(source.body, &test.classes, &mut queue);
        let has_star = bound.has_star;
        let mut done: BTreeSet<String> = BTreeSet::new();
        while let Some(statement) = queue.pop() {
            for name in used(statement) {
                if !done.insert(name.clone()) {
                    continue;
                }
                let here: Vec<&Binding<'_>> = bound.all.iter().filter(|one| one.name == name).collect();
                if here.is_empty() {
                    if is_builtin(&name) && !has_star {
                        outside.names.insert(name.clone(), None);
                    }
                    if is_fixture_of_pytest(&name) {
                        outside.fixtures.insert(name);
                    }
                    continue;
                }
                let imports: Vec<&str> = here.iter().filter_map(|one| one.import.as_deref()).collect();
                let is_outside = |dotted: &&str| !dotted.starts_with('.') && !bindings.is_own(dotted);
                match (&imports[..], imports.len() == here.len()) {
                    ([one, ..], true) if imports.iter().all(is_outside) => {
                        outside.names.insert(name, Some((*one).to_owned()));
                    }
                    _ => queue.extend(here.iter().map(|one| one.statement)),
                }
            }
        }
        outside
    }
}

/// The statements of the test's classes that run around it.
fn around<'a>(body: &'a [Stmt], classes: &[String], queue: &mut Vec<&'a Stmt>) {
    let Some((first, inner)) = classes.split_first() else { return };
    for statement in body {
        let Stmt::ClassDef(class) = statement else { continue };
        if class.name.as_str() != first {
            continue;
        }
        let runs = |one: &&Stmt| match one {
            Stmt::FunctionDef(function) => AROUND.contains(&function.name.as_str()),
            other => !other.is_class_def_stmt(),
        };
        queue.extend(class.body.iter().filter(runs));
        around(&class.body, inner, queue);
    }
}

/// Names that a statement uses and does not bind for itself; parameters as well, which fixtures fill.
fn used(statement: &Stmt) -> BTreeSet<String> {
    struct Loads(BTreeSet<String>);
    impl<'v> Visitor<'v> for Loads {
        fn visit_expr(&mut self, expression: &'v Expr) {
            if let Expr::Name(name) = expression
                && name.ctx == ExprContext::Load
            {
                self.0.insert(name.id.to_string());
            }
            visitor::walk_expr(self, expression);
        }
    }
    let mut loads = Loads(BTreeSet::new());
    loads.visit_stmt(statement);
    if let Stmt::FunctionDef(function) = statement {
        let locals = locate::local_names(function);
        loads.0.retain(|name| !locals.contains(name));
        loads.0.extend(function.parameters.iter().map(|one| one.name().to_string()));
    }
    loads.0
}

/// Something that binds a name in a module.
#[derive(Debug)]
pub(super) struct Binding<'a> {
    pub(super) name: String,
    pub(super) statement: &'a Stmt,
    pub(super) at: TextRange,
    /// The dotted name that is imported.
    pub(super) import: Option<String>,
    /// `name = name`
    pub(super) is_itself: bool,
}

/// Everything that the names of a module, or of the body of a class, are bound to.
#[derive(Debug, Default)]
pub(super) struct Bound<'a> {
    pub(super) all: Vec<Binding<'a>>,
    /// Whether there is an import of everything.
    pub(super) has_star: bool,
    statements: Vec<&'a Stmt>,
}

impl<'a> Bound<'a> {
    pub(super) fn of(body: &'a [Stmt]) -> Self {
        let mut bound = Bound::default();
        bound.visit_body(body);
        bound
    }

    fn add(&mut self, name: &str, at: TextRange) {
        let Some(statement) = self.statements.last().copied() else { return };
        let is_itself = matches!(statement, Stmt::Assign(assign) if matches!(&*assign.value, Expr::Name(value) if value.id.as_str() == name));
        self.all.push(Binding { name: name.to_owned(), statement, at, import: None, is_itself });
    }

    fn import(&mut self, statement: &'a Stmt, alias: &Alias, module: Option<&str>) {
        let name = alias.name.as_str();
        if name == "*" {
            self.has_star = true;
            return;
        }
        let root = name.split('.').next().unwrap_or_default();
        let (local, dotted) = match (&alias.asname, module) {
            (Some(local), None) => (local.as_str(), name.to_owned()),
            (None, None) => (root, root.to_owned()),
            (local, Some(module)) => (local.as_ref().map_or(name, |it| it.as_str()), joined(module, name)),
        };
        let (name, at) = (local.to_owned(), statement.range());
        self.all.push(Binding { name, statement, at, import: Some(dotted), is_itself: false });
    }

    /// Names that a function binds in its module.
    fn global(&mut self, function: &'a StmtFunctionDef) {
        struct Globals(Vec<(String, TextRange)>);
        impl<'v> Visitor<'v> for Globals {
            fn visit_stmt(&mut self, statement: &'v Stmt) {
                if let Stmt::Global(global) = statement {
                    self.0.extend(global.names.iter().map(|name| (name.to_string(), global.range())));
                }
                visitor::walk_stmt(self, statement);
            }
        }
        let mut globals = Globals(Vec::new());
        globals.visit_body(&function.body);
        globals.0.into_iter().for_each(|(name, at)| self.add(&name, at));
    }
}

impl<'a> Visitor<'a> for Bound<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.statements.push(statement);
        match statement {
            Stmt::FunctionDef(function) => {
                self.add(&function.name, statement.range());
                self.global(function);
            }
            Stmt::ClassDef(class) => self.add(&class.name, statement.range()),
            Stmt::Import(import) => {
                import.names.iter().for_each(|alias| self.import(statement, alias, None));
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                let module = format!("{}{module}", ".".repeat(import.level as usize));
                import.names.iter().for_each(|alias| self.import(statement, alias, Some(&module)));
            }
            _ => visitor::walk_stmt(self, statement),
        }
        self.statements.pop();
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if name.ctx != ExprContext::Load => self.add(&name.id, name.range()),
            // What these bind is theirs, `:=` aside.
            Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => {
                let mut walrus = Walrus(Vec::new());
                visitor::walk_expr(&mut walrus, expression);
                walrus.0.into_iter().for_each(|(name, at)| self.add(&name, at));
            }
            Expr::Lambda(_) => {}
            _ => visitor::walk_expr(self, expression),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.add(name, name.range());
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.add(name, name.range());
        }
        visitor::walk_pattern(self, pattern);
    }

    fn visit_parameter(&mut self, _: &'a Parameter) {}
}

struct Walrus(Vec<(String, TextRange)>);

impl<'v> Visitor<'v> for Walrus {
    fn visit_expr(&mut self, expression: &'v Expr) {
        if let Expr::Named(named) = expression
            && let Expr::Name(name) = &*named.target
        {
            self.0.push((name.id.to_string(), named.range()));
        }
        visitor::walk_expr(self, expression);
    }
}

/// Finds names of the test that mean something else in a submission.
pub(super) fn look(found: &mut Candidates<'_>, outside: &Outside, own: &Bindings<'_>, corpus: &Corpus) {
    let kind = FindingKind::ShadowsName;
    for binding in &Bound::of(found.parsed.body).all {
        let Some(meant) = outside.names.get(&binding.name) else { continue };
        let is_same = match (meant, &binding.import) {
            // The same thing from another place: `collections.abc.Mapping` and `typing.Mapping`.
            (Some(meant), Some(dotted)) => {
                dotted == meant || last(dotted) == last(meant) && !own.is_own(dotted)
            }
            (None, Some(dotted)) => *dotted == format!("builtins.{}", binding.name),
            (None, None) => binding.is_itself,
            (Some(_), None) => false,
        };
        if !is_same {
            let range = if binding.import.is_some() || is_definition(binding.statement) {
                binding.statement.range()
            } else {
                binding.at
            };
            found.add_whole(kind, range, binding.name.clone());
        }
    }
    let mut fixtures = Fixtures { outside, corpus, found };
    let body = fixtures.found.parsed.body;
    fixtures.visit_body(body);
}

fn is_definition(statement: &Stmt) -> bool {
    matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_))
}

fn last(dotted: &str) -> &str {
    dotted.rsplit('.').next().unwrap_or(dotted)
}

/// Fixtures of pytest that a submission defines for itself, and builtins that it stores into.
struct Fixtures<'o, 'f, 'a> {
    outside: &'o Outside,
    corpus: &'o Corpus,
    found: &'f mut Candidates<'a>,
}

impl Fixtures<'_, '_, '_> {
    fn fixture(&mut self, function: &StmtFunctionDef) {
        let Some(name) = function.decorator_list.iter().find_map(|one| fixture_name(one, &function.name))
        else {
            return;
        };
        if self.outside.fixtures.contains(&name) && !self.corpus.has_function(&name) {
            self.found.add_whole(FindingKind::ShadowsName, function.range(), name);
        }
    }

    fn store(&mut self, target: &Expr) {
        if let Some(("builtins" | "__builtins__", attributes)) = tree::chain(target)
            && let [name] = &attributes[..]
        {
            self.found.add(FindingKind::ShadowsName, target.start(), format!("builtins.{name}"));
        }
    }

    /// A text that names something of the builtins, where something looks it up.
    fn text(&mut self, expression: &Expr) {
        let Expr::StringLiteral(text) = expression else { return };
        if let Some(name) = text.value.to_str().strip_prefix("builtins.")
            && self.outside.names.get(name) == Some(&None)
        {
            self.found.add(FindingKind::ShadowsName, expression.start(), format!("builtins.{name}"));
        }
    }
}

/// The name of the fixture that a decorator makes of a function.
fn fixture_name(decorator: &Decorator, function: &str) -> Option<String> {
    let (made_by, call) = match &decorator.expression {
        Expr::Call(call) => (&*call.func, Some(call)),
        other => (other, None),
    };
    let (root, attributes) = tree::chain(made_by)?;
    if !attributes.last().copied().unwrap_or(root).ends_with("fixture") {
        return None;
    }
    let named = call.into_iter().flat_map(|call| &call.arguments.keywords);
    let mut named = named.filter(|keyword| keyword.arg.as_deref() == Some("name"));
    match named.next().map(|keyword| &keyword.value) {
        Some(Expr::StringLiteral(text)) => Some(text.value.to_str().to_owned()),
        _ => Some(function.to_owned()),
    }
}

impl<'v> Visitor<'v> for Fixtures<'_, '_, '_> {
    fn visit_stmt(&mut self, statement: &'v Stmt) {
        if let Stmt::FunctionDef(function) = statement {
            self.fixture(function);
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'v Expr) {
        if tree::is_target(expression) {
            self.store(expression);
        }
        if let Expr::Call(call) = expression {
            match &call.arguments.args[..] {
                [Expr::Name(module), Expr::StringLiteral(name), _, ..]
                    if module.id.as_str() == "builtins" =>
                {
                    // For as long as a test runs others may be patched: they are not the test's.
                    let name = name.value.to_str();
                    if !call.func.is_attribute_expr() || self.outside.names.get(name) == Some(&None) {
                        let name = format!("builtins.{name}");
                        self.found.add(FindingKind::ShadowsName, call.start(), name);
                    }
                }
                [first, ..] => self.text(first),
                [] => {}
            }
        }
        visitor::walk_expr(self, expression);
    }
}
