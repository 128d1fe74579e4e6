//! Where a test needs a module of the repository itself: a patch by name, a module as an object. No name of another file
//! can stand for it.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Parameter, Stmt};
use ruff_text_size::Ranged;
use serde::{Deserialize, Serialize};

use super::keys;
use super::locate::{self, AROUND, Found, TestName};
use crate::score::modules::{Bindings, Modules};
use crate::score::text::{self, Lines, Parsed, Unreadable};
use crate::score::{File, tree};

/// How a module is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReachKind {
    /// A text that pytest, `unittest.mock` or `importlib` look up.
    Text,
    /// The module is passed on, or changed.
    Object,
}

/// A place that needs a module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Reach {
    pub file: String,
    /// 1-based.
    pub line: u32,
    pub kind: ReachKind,
    /// The dotted name.
    pub name: String,
}

/// What looks a text up as a dotted name.
const LOOK_UPS: [&str; 12] = [
    "patch",
    "multiple",
    "setattr",
    "delattr",
    "import_module",
    "__import__",
    "importorskip",
    "find_spec",
    "resolve_name",
    "run_module",
    "import_string",
    "locate",
];
/// Where a test and what it uses of `files` need a module: its own file first, then the conftests that it sees, the
/// nearest first.
///
/// # Errors
/// The test's own file cannot be read. Conftests that cannot are left out.
pub fn reaches(files: &[File<'_>], test: &TestName, modules: &Modules) -> Result<Vec<Reach>, Unreadable> {
    let mut names: BTreeSet<String> =
        AROUND.iter().chain(&["setup_module"]).map(|name| (*name).to_owned()).collect();
    let mut found = BTreeSet::new();
    for (at, file) in files.iter().enumerate() {
        let test = (at == 0).then_some(test);
        let read = text::parse(file.text, |parsed| {
            Closure::of(parsed, file.path, test, modules).follow(&mut names, &mut found);
        });
        if at == 0 {
            read?;
        }
    }
    Ok(found.into_iter().collect())
}

/// Definitions of a file, and those that a test uses.
struct Closure<'a> {
    path: &'a str,
    lines: &'a Lines,
    bindings: Bindings<'a>,
    definitions: BTreeMap<&'a str, Vec<&'a Stmt>>,
    /// What is looked through in any case.
    first: Vec<&'a Stmt>,
}

impl<'a> Closure<'a> {
    fn of(parsed: Parsed<'a>, path: &'a str, test: Option<&TestName>, modules: &'a Modules) -> Self {
        let mut closure = Closure {
            path,
            lines: parsed.lines,
            bindings: Bindings::of_file(modules, path, parsed.body),
            definitions: BTreeMap::new(),
            first: Vec::new(),
        };
        closure.define(parsed.body, test.map_or(&[], |test| &test.classes[..]));
        if let Some(test) = test
            && let Found::Function { definition, .. } = locate::locate(parsed.body, test)
        {
            closure.first.push(definition);
        }
        closure
    }

    /// Notes what the body defines; of classes only those of the test are looked into.
    fn define(&mut self, body: &'a [Stmt], classes: &[String]) {
        for statement in body {
            match statement {
                Stmt::FunctionDef(function) => {
                    if is_autouse(&function.decorator_list) {
                        self.first.push(statement);
                    }
                    self.definitions.entry(&function.name).or_default().push(statement);
                }
                Stmt::ClassDef(class) => match classes.split_first() {
                    Some((name, inner)) if *name == *class.name => self.define(&class.body, inner),
                    _ => self.definitions.entry(&class.name).or_default().push(statement),
                },
                Stmt::Assign(assign) => {
                    for target in &assign.targets {
                        if let Expr::Name(name) = target {
                            self.definitions.entry(&name.id).or_default().push(statement);
                        }
                    }
                }
                _ => tree::bodies(statement).into_iter().for_each(|body| self.define(body, classes)),
            }
        }
    }

    /// Looks through what is used by `names`, and by what these use.
    fn follow(&self, names: &mut BTreeSet<String>, found: &mut BTreeSet<Reach>) {
        let mut uses = Uses { closure: self, names: std::mem::take(names), found };
        for statement in &self.first {
            uses.visit_stmt(statement);
        }
        let mut done: BTreeSet<&str> = BTreeSet::new();
        loop {
            let next = self
                .definitions
                .iter()
                .find(|(name, _)| uses.names.contains(**name) && !done.contains(**name));
            let Some((name, statements)) = next else { break };
            done.insert(name);
            for statement in statements {
                uses.visit_stmt(statement);
            }
        }
        *names = uses.names;
    }
}

fn is_autouse(decorators: &[ruff_python_ast::Decorator]) -> bool {
    decorators.iter().any(|decorator| {
        let Expr::Call(call) = &decorator.expression else { return false };
        call.arguments.keywords.iter().any(|keyword| {
            keyword.arg.as_deref() == Some("autouse")
                && matches!(&keyword.value, Expr::BooleanLiteral(value) if value.value)
        })
    })
}

/// Walks through statements: names that they use, modules that they need.
struct Uses<'c, 'a, 'f> {
    closure: &'c Closure<'a>,
    names: BTreeSet<String>,
    found: &'f mut BTreeSet<Reach>,
}

impl Uses<'_, '_, '_> {
    fn note(&mut self, at: &impl Ranged, kind: ReachKind, name: String) {
        let line = self.closure.lines.line(at.start());
        self.found.insert(Reach { file: self.closure.path.to_owned(), line, kind, name });
    }

    /// Texts that a call looks up as dotted names.
    fn look_ups(&mut self, call: &ExprCall) {
        let Some((root, attributes)) = tree::chain(&call.func) else { return };
        if !std::iter::once(&root).chain(&attributes).any(|name| LOOK_UPS.contains(name)) {
            return;
        }
        for argument in &call.arguments.args {
            let Expr::StringLiteral(text) = argument else { continue };
            let dotted = text.value.to_str();
            let is_name =
                |part: &str| !part.is_empty() && part.chars().all(|one| one == '_' || one.is_alphanumeric());
            if dotted.split('.').all(is_name) && self.closure.bindings.modules.owns(dotted) {
                self.note(text, ReachKind::Text, dotted.to_owned());
            }
        }
    }
}

impl<'v> Visitor<'v> for Uses<'_, '_, '_> {
    fn visit_stmt(&mut self, statement: &'v Stmt) {
        if !matches!(statement, Stmt::Import(_) | Stmt::ImportFrom(_)) {
            visitor::walk_stmt(self, statement);
        }
    }

    fn visit_parameter(&mut self, parameter: &'v Parameter) {
        self.names.insert(parameter.name.to_string());
    }

    fn visit_expr(&mut self, expression: &'v Expr) {
        match expression {
            Expr::Call(call) => {
                self.look_ups(call);
                // What is called is no module, though one may have its name.
                if let Some((root, attributes)) = tree::chain(&call.func) {
                    self.names.insert(root.to_owned());
                    self.names.extend(attributes.iter().map(|name| (*name).to_owned()));
                    visitor::walk_arguments(self, &call.arguments);
                    return;
                }
            }
            Expr::StringLiteral(text) => {
                self.names.insert(text.value.to_str().to_owned());
            }
            _ => {}
        }
        let Some((root, attributes)) = tree::chain(expression) else {
            visitor::walk_expr(self, expression);
            return;
        };
        self.names.insert(root.to_owned());
        self.names.extend(attributes.iter().map(|name| (*name).to_owned()));
        let bindings = &self.closure.bindings;
        let Some(module) = bindings.module(root) else { return };
        if keys::within(module, &attributes, bindings).is_none() {
            let name = std::iter::once(module).chain(attributes).collect::<Vec<_>>().join(".");
            self.note(expression, ReachKind::Object, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "\
import tiny
from tiny import core
from unittest import mock

def helper():
    mock.patch('tiny.core.join')

def unused():
    mock.patch('tiny.core.area')

class TestIt:
    def setup_method(self):
        self.old = tiny.core.LIMIT

    def test_text(self, changed):
        helper()
        assert core.join([]) == 'tiny.core.join'

    def test_object(self, monkeypatch):
        monkeypatch.setattr(core, 'LIMIT', 4)
        monkeypatch.setattr('os.getcwd', None)

    def test_nothing(self):
        assert tiny.core.Box(tiny.Box) == core(1)
";
    const CONFTEST: &str = "\
import pytest, tiny.shapes

@pytest.fixture
def changed(monkeypatch):
    monkeypatch.setattr('tiny.shapes.side', None)

@pytest.fixture
def other(monkeypatch):
    monkeypatch.setattr(tiny.shapes, 'side', None)
";

    fn found(test: &str) -> Vec<String> {
        let modules: Modules =
            ["tiny", "tiny.core", "tiny.shapes", "tests", "tests.test_a"].into_iter().collect();
        let files = [
            File { path: "tests/test_a.py", text: TEST },
            File { path: "tests/conftest.py", text: CONFTEST },
        ];
        let test = format!("TestIt::{test}").parse().unwrap();
        let all = reaches(&files, &test, &modules).unwrap();
        all.iter().map(|one| format!("{}:{} {:?} {}", one.file, one.line, one.kind, one.name)).collect()
    }

    #[test]
    fn patches_by_name_are_found_in_what_the_test_uses() {
        assert_eq!(
            found("test_text"),
            ["tests/conftest.py:5 Text tiny.shapes.side", "tests/test_a.py:6 Text tiny.core.join"]
        );
    }

    #[test]
    fn a_module_that_is_passed_on_is_found_and_one_that_leads_to_a_name_is_not() {
        assert_eq!(found("test_object"), ["tests/test_a.py:20 Object tiny.core"]);
        assert_eq!(found("test_nothing"), Vec::<String>::new());
    }
}
