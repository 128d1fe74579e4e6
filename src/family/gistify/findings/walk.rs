//! The walk over a submission's syntax tree.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef, StmtIf};
use ruff_text_size::{Ranged, TextSize};

use super::{Finding, FindingKind, Scenery};
use crate::python_source::names::{Names, Scope};
use crate::score::modules::{Bindings, joined};
use crate::score::text::Parsed;
use crate::score::tree;

/// Characters of a line that are kept.
pub(super) const EVIDENCE: usize = 200;
/// Findings of one kind that are kept.
pub(super) const KEPT: usize = 100;
/// Folders in which packages keep copies of others.
const VENDORED: [&str; 4] = ["_vendor", "vendor", "_vendored", "vendored"];
const TEST_TOOLS: [&str; 5] = ["pytest", "_pytest", "pluggy", "unittest", "builtins"];
const IMPORT_PATHS: [&str; 4] = ["sys.path", "sys.meta_path", "sys.path_hooks", "sys.path_importer_cache"];
const CHANGES: [&str; 7] = ["append", "extend", "insert", "remove", "pop", "clear", "__setitem__"];
const SPAWNS: [&str; 8] = [
    "subprocess.",
    "os.system",
    "os.popen",
    "os.exec",
    "os.spawn",
    "os.posix_spawn",
    "asyncio.create_subprocess_",
    "pty.spawn",
];

/// Where the walk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Module,
    Function,
}

pub(super) struct Walk<'w, 'a> {
    pub(super) scenery: Scenery<'a>,
    pub(super) parsed: Parsed<'a>,
    pub(super) bindings: Bindings<'a>,
    pub(super) names: Names<'w, 'a>,
    pub(super) classes: Vec<&'a str>,
    /// Whether pytest looks for tests in the class that it is in.
    pub(super) has_tests: bool,
    pub(super) place: Level,
    pub(super) found: &'w mut Vec<Finding>,
}

impl<'a> Walk<'_, 'a> {
    fn add(&mut self, kind: FindingKind, at: TextSize, name: impl Into<String>) {
        if self.found.iter().filter(|finding| finding.kind == kind).count() >= KEPT {
            return;
        }
        let line = self.parsed.lines.line(at);
        let start = self.parsed.lines.start(line).unwrap_or_default();
        let text = self.parsed.text[start..].split(['\n', '\r']).next().unwrap_or_default();
        let evidence = text.trim().chars().take(EVIDENCE).collect();
        let name = name.into().chars().take(EVIDENCE).collect();
        self.found.push(Finding { kind, line, name, evidence });
    }

    fn imports(&mut self, statement: &Stmt) {
        let names: Vec<(bool, String)> = match statement {
            Stmt::Import(import) => {
                let names = import.names.iter().map(|alias| alias.name.to_string());
                names.map(|name| (self.bindings.is_own(&name), name)).collect()
            }
            Stmt::ImportFrom(import) => {
                let module = self.bindings.absolute(import);
                let names = import.names.iter().map(|alias| {
                    let is_own = self.bindings.is_own_from(import, alias.name.as_str());
                    (
                        is_own,
                        format!(
                            "{}{}",
                            ".".repeat(import.level as usize),
                            joined(&module, alias.name.as_str())
                        ),
                    )
                });
                names.collect()
            }
            _ => Vec::new(),
        };
        for (is_own, name) in names {
            if is_own {
                self.add(FindingKind::ImportStatement, statement.start(), name);
            } else if self.is_vendored(&name) {
                self.add(FindingKind::VendoredCopy, statement.start(), name);
            }
        }
    }

    fn is_vendored(&self, dotted: &str) -> bool {
        let parts: Vec<&str> = dotted.split('.').collect();
        let below = parts.iter().position(|part| VENDORED.contains(part));
        below.is_some_and(|at| self.scenery.modules.owns(&parts[at + 1..].join(".")))
    }

    fn is_fixture(&self, function: &StmtFunctionDef) -> bool {
        let mut made_by = function.decorator_list.iter().map(|it| self.names.resolve(&it.expression));
        made_by.any(|name| matches!(&*name, "pytest.fixture" | "pytest_asyncio.fixture"))
    }

    fn function(&mut self, function: &'a StmtFunctionDef) {
        let name = function.name.as_str();
        let asked = &self.scenery.test;
        let is_asked = name == asked.function && self.classes.iter().eq(asked.classes.iter());
        if name.starts_with("test") && self.has_tests && !is_asked && !self.is_fixture(function) {
            let all: Vec<&str> = self.classes.iter().copied().chain([name]).collect();
            self.add(FindingKind::LeftoverTest, function.name.start(), all.join("::"));
        }
        let local = Scope::of_function(&function.parameters, &function.body, false);
        let mut inner = Walk {
            scenery: self.scenery,
            parsed: self.parsed,
            bindings: self.bindings.clone(),
            names: Names { module: self.names.module, local: &local },
            classes: Vec::new(),
            has_tests: false,
            place: Level::Function,
            found: self.found,
        };
        function.decorator_list.iter().for_each(|decorator| inner.visit_decorator(decorator));
        inner.visit_parameters(&function.parameters);
        inner.visit_body(&function.body);
    }

    fn branches(&mut self, branch: &'a StmtIf) {
        if is_main_guard(&branch.test) {
            self.add(FindingKind::MainGuard, branch.start(), "__main__");
        }
        self.visit_expr(&branch.test);
        if is_type_checking(&branch.test) {
            self.without_imports(&branch.body);
        } else {
            self.visit_body(&branch.body);
        }
        branch.elif_else_clauses.iter().for_each(|clause| self.visit_elif_else_clause(clause));
    }

    /// Imports that no run reaches are no findings; the rest is.
    fn without_imports(&mut self, body: &'a [Stmt]) {
        let before = self.found.len();
        self.visit_body(body);
        let is_import = |kind| matches!(kind, FindingKind::ImportStatement | FindingKind::VendoredCopy);
        let later = self.found.split_off(before);
        self.found.extend(later.into_iter().filter(|finding| !is_import(finding.kind)));
    }

    /// Something is stored to, or deleted from, this place.
    fn store(&mut self, target: &'a Expr) {
        match target {
            Expr::Attribute(_) => {
                let name = self.names.resolve(target);
                self.attribute_store(target, &name);
            }
            Expr::Subscript(subscript) => {
                let name = self.names.resolve(&subscript.value);
                if name == "sys.modules" {
                    self.registered(target, tree::constant_text(&subscript.slice));
                } else if IMPORT_PATHS.contains(&&*name) {
                    self.add(FindingKind::PathTrick, target.start(), name);
                }
            }
            _ => {}
        }
    }

    fn attribute_store(&mut self, at: &Expr, name: &str) {
        let root = name.split('.').next().unwrap_or_default();
        if TEST_TOOLS.contains(&root) {
            self.add(FindingKind::PatchesTestTools, at.start(), name);
        }
        if IMPORT_PATHS.contains(&name) {
            self.add(FindingKind::PathTrick, at.start(), name);
        }
    }

    fn registered(&mut self, at: &Expr, name: Option<String>) {
        if let Some(name) = name.filter(|name| self.scenery.modules.owns(name)) {
            self.add(FindingKind::RegistersRepositoryModule, at.start(), name);
        }
    }

    fn call(&mut self, call: &'a ExprCall, at: &'a Expr) {
        let name = self.names.resolve(&call.func);
        let arguments = &call.arguments.args;
        let mut given = arguments.iter().chain(call.arguments.keywords.iter().map(|keyword| &keyword.value));
        let imports = matches!(&*name, "__import__" | "pytest.importorskip")
            || ["importlib.", "runpy.", "pkgutil."].iter().any(|module| name.starts_with(module));
        if imports && let Some(module) = given.find_map(|one| self.own_module(one)) {
            self.add(FindingKind::DynamicImport, at.start(), module);
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        let changes = name
            .rsplit_once('.')
            .is_some_and(|(list, method)| IMPORT_PATHS.contains(&list) && CHANGES.contains(&method));
        if changes
            || name == "site.addsitedir"
            || matches!(last, "spec_from_file_location" | "SourceFileLoader")
        {
            self.add(FindingKind::PathTrick, at.start(), name.clone());
        }
        if SPAWNS.iter().any(|spawns| name.starts_with(spawns)) {
            self.add(FindingKind::Spawns, at.start(), name.clone());
        }
        if let ("setattr" | "delattr", [target, attribute, ..]) = (&*name, &**arguments) {
            let attribute = tree::constant_text(attribute).unwrap_or_else(|| "…".to_owned());
            let stored = format!("{}.{attribute}", self.names.resolve(target));
            self.attribute_store(at, &stored);
        }
        self.registers(call, at, &name, last);
    }

    /// Calls that store into `sys.modules`.
    fn registers(&mut self, call: &'a ExprCall, at: &Expr, name: &str, last: &str) {
        let arguments = &call.arguments.args;
        let is_modules = |walk: &Self, expression: &'a Expr| {
            walk.names.resolve(expression) == "sys.modules"
                || tree::constant_text(expression).is_some_and(|text| text == "sys.modules")
        };
        match (name, last, &**arguments) {
            ("sys.modules.setdefault" | "sys.modules.__setitem__", _, [key, ..]) => {
                self.registered(at, tree::constant_text(key));
            }
            ("sys.modules.update", _, [Expr::Dict(dict), ..]) => self.registered_keys(at, dict),
            (_, "setitem", [target, key, ..]) if is_modules(self, target) => {
                self.registered(at, tree::constant_text(key));
            }
            (_, "dict", [target, Expr::Dict(dict), ..]) if is_modules(self, target) => {
                self.registered_keys(at, dict);
            }
            _ => {}
        }
    }

    fn registered_keys(&mut self, at: &Expr, dict: &ruff_python_ast::ExprDict) {
        for key in dict.items.iter().filter_map(|item| item.key.as_ref()) {
            self.registered(at, tree::constant_text(key));
        }
    }

    fn own_module(&self, expression: &Expr) -> Option<String> {
        tree::constant_text(expression).filter(|text| self.scenery.modules.owns(text.trim_start_matches('.')))
    }

    fn constant_text(&mut self, expression: &Expr, text: &str) {
        if text == "PYTHONPATH" {
            self.add(FindingKind::PathTrick, expression.start(), text);
        }
        let root = self.scenery.root.trim_end_matches('/');
        let below = text.strip_prefix(root).filter(|_| !root.is_empty());
        let is_below = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if is_below || self.scenery.hidden.contains(text.trim_start_matches("./")) {
            self.add(FindingKind::ReadsTree, expression.start(), text);
        }
    }
}

impl<'a> Visitor<'a> for Walk<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(_) | Stmt::ImportFrom(_) => self.imports(statement),
            Stmt::FunctionDef(function) if self.place == Level::Module => return self.function(function),
            Stmt::ClassDef(class) if self.place == Level::Module => {
                let outside = self.has_tests;
                let is_test_case = |base: &Expr| self.names.resolve(base).ends_with("TestCase");
                self.has_tests &= class.name.starts_with("Test") || class.bases().iter().any(is_test_case);
                self.classes.push(class.name.as_str());
                visitor::walk_stmt(self, statement);
                self.classes.pop();
                self.has_tests = outside;
                return;
            }
            Stmt::If(branch) => return self.branches(branch),
            // Declares and stores nothing.
            Stmt::AnnAssign(assign) if assign.value.is_none() => {
                return self.visit_annotation(&assign.annotation);
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
            Expr::Call(call) => self.call(call, expression),
            Expr::StringLiteral(text) => self.constant_text(expression, text.value.to_str()),
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

fn is_main_guard(test: &Expr) -> bool {
    let Expr::Compare(compare) = test else { return false };
    let mut sides = std::iter::once(&*compare.left).chain(&compare.comparators);
    sides.any(|side| matches!(side, Expr::Name(name) if name.id.as_str() == "__name__"))
        && std::iter::once(&*compare.left)
            .chain(&compare.comparators)
            .any(|side| tree::constant_text(side).is_some_and(|text| text == "__main__"))
}

/// Only the name itself: what is computed from it may hold at run time.
fn is_type_checking(test: &Expr) -> bool {
    match test {
        Expr::Name(name) => name.id.as_str() == "TYPE_CHECKING",
        Expr::Attribute(attribute) => {
            attribute.attr.as_str() == "TYPE_CHECKING" && attribute.value.is_name_expr()
        }
        _ => false,
    }
}
