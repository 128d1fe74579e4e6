//! The logical lines of a test function, and how many of them two files share.

use std::collections::HashMap;

use ruff_python_ast::{
    Alias, ElifElseClause, ExceptHandler, Identifier, Stmt, StmtFunctionDef, StmtIf, StmtTry,
};
use serde::{Deserialize, Serialize};

use super::keys::{Key, Part, Reading};
use super::locate::{self, Found, TestName};
use super::units;
use crate::score::modules::{Bindings, Modules};
use crate::score::text::{self, Unreadable};
use crate::score::{File, tree};

/// A line of a test, and how deep it stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TestLine {
    depth: u32,
    key: Key,
}

/// What lines are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To count lines: `elif x` is the line `if x`.
    Overlap,
    /// To compare tests: `pass` says nothing.
    Equality,
}

/// The lines of a definition: decorators, header, statements. Texts and imports of the repository are left out.
pub(super) fn lines_of(definition: &Stmt, reading: Reading<'_>, purpose: Purpose) -> Vec<TestLine> {
    let mut reader = Reader { reading, purpose, lines: Vec::new() };
    reader.definition(definition, 0);
    reader.lines
}

struct Reader<'r> {
    reading: Reading<'r>,
    purpose: Purpose,
    lines: Vec<TestLine>,
}

impl Reader<'_> {
    fn push(&mut self, depth: u32, parts: &[Part<'_>]) {
        self.lines.push(TestLine { depth, key: self.reading.stripped(parts) });
    }

    fn word(&mut self, depth: u32, word: &str) {
        self.push(depth, &[Part::Text(word)]);
    }

    fn body(&mut self, body: &[Stmt], depth: u32) {
        for statement in body.iter().filter(|statement| !tree::is_text(statement)) {
            match statement {
                Stmt::Pass(_) if self.purpose == Purpose::Equality => {}
                Stmt::Import(_) | Stmt::ImportFrom(_) => self.import(statement, depth),
                Stmt::FunctionDef(_) | Stmt::ClassDef(_) => self.definition(statement, depth),
                Stmt::If(branch) => self.branches(branch, depth),
                Stmt::Try(attempt) => self.attempt(attempt, depth),
                Stmt::For(_) | Stmt::While(_) | Stmt::With(_) | Stmt::Match(_) => {
                    self.compound(statement, depth);
                }
                _ => self.push(depth, &[Part::Text("statement"), Part::Statement(statement)]),
            }
        }
    }

    fn definition(&mut self, statement: &Stmt, depth: u32) {
        let (decorators, word, body) = match statement {
            Stmt::FunctionDef(function) => {
                let word = if function.is_async { "async def" } else { "def" };
                (&function.decorator_list, word, &function.body)
            }
            Stmt::ClassDef(class) => (&class.decorator_list, "class", &class.body),
            _ => return,
        };
        for decorator in decorators {
            self.push(depth, &[Part::Text("@"), Part::Expression(&decorator.expression)]);
        }
        let header = units::whole_header(statement).split_off(decorators.len());
        let parts: Vec<_> = std::iter::once(Part::Text(word)).chain(header).collect();
        self.push(depth, &parts);
        self.body(body, depth + 1);
    }

    fn import(&mut self, statement: &Stmt, depth: u32) {
        let bindings = self.reading.bindings;
        let foreign: Vec<(Option<&str>, &Alias)> = match statement {
            Stmt::Import(import) => {
                let names = import.names.iter().filter(|alias| !bindings.is_own(alias.name.as_str()));
                names.map(|alias| (None, alias)).collect()
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map(Identifier::as_str);
                let names =
                    import.names.iter().filter(|alias| !bindings.is_own_from(import, alias.name.as_str()));
                names.map(|alias| (module, alias)).collect()
            }
            _ => Vec::new(),
        };
        for (module, alias) in foreign {
            let local = alias.asname.as_ref().map(Identifier::as_str);
            let name = Part::Text(alias.name.as_str());
            self.push(depth, &[Part::Text("import"), Part::text(module), name, Part::text(local)]);
        }
    }

    fn branches(&mut self, branch: &StmtIf, depth: u32) {
        self.push(depth, &[Part::Text("if"), Part::Expression(&branch.test)]);
        self.body(&branch.body, depth + 1);
        self.clauses(&branch.elif_else_clauses, depth);
    }

    fn clauses(&mut self, clauses: &[ElifElseClause], depth: u32) {
        let elif = if self.purpose == Purpose::Overlap { "if" } else { "elif" };
        for clause in clauses {
            match (&clause.test, &*clause.body) {
                (Some(test), body) => {
                    self.push(depth, &[Part::Text(elif), Part::Expression(test)]);
                    self.body(body, depth + 1);
                }
                // `else` with nothing but an `if` in it is `elif`.
                (None, [Stmt::If(branch)]) => {
                    self.push(depth, &[Part::Text(elif), Part::Expression(&branch.test)]);
                    self.body(&branch.body, depth + 1);
                    self.clauses(&branch.elif_else_clauses, depth);
                }
                (None, body) => {
                    self.word(depth, "else");
                    self.body(body, depth + 1);
                }
            }
        }
    }

    fn attempt(&mut self, attempt: &StmtTry, depth: u32) {
        self.word(depth, if attempt.is_star { "try*" } else { "try" });
        self.body(&attempt.body, depth + 1);
        for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
            let name = handler.name.as_ref().map(Identifier::as_str);
            let caught = Part::expression(handler.type_.as_deref());
            self.push(depth, &[Part::Text("except"), caught, Part::text(name)]);
            self.body(&handler.body, depth + 1);
        }
        self.further("else", &attempt.orelse, depth);
        self.further("finally", &attempt.finalbody, depth);
    }

    fn further(&mut self, word: &str, body: &[Stmt], depth: u32) {
        if !body.is_empty() {
            self.word(depth, word);
            self.body(body, depth + 1);
        }
    }

    fn compound(&mut self, statement: &Stmt, depth: u32) {
        match statement {
            Stmt::For(each) => {
                let word = if each.is_async { "async for" } else { "for" };
                let (target, iter) = (Part::Expression(&each.target), Part::Expression(&each.iter));
                self.push(depth, &[Part::Text(word), target, iter]);
                self.body(&each.body, depth + 1);
                self.further("else", &each.orelse, depth);
            }
            Stmt::While(each) => {
                self.push(depth, &[Part::Text("while"), Part::Expression(&each.test)]);
                self.body(&each.body, depth + 1);
                self.further("else", &each.orelse, depth);
            }
            Stmt::With(with) => {
                let items = with.items.iter().flat_map(|item| {
                    [Part::Expression(&item.context_expr), Part::expression(item.optional_vars.as_deref())]
                });
                let word = if with.is_async { "async with" } else { "with" };
                let parts: Vec<_> = std::iter::once(Part::Text(word)).chain(items).collect();
                self.push(depth, &parts);
                self.body(&with.body, depth + 1);
            }
            Stmt::Match(choice) => {
                self.push(depth, &[Part::Text("match"), Part::Expression(&choice.subject)]);
                for case in &choice.cases {
                    let guard = Part::expression(case.guard.as_deref());
                    self.push(depth + 1, &[Part::Text("case"), Part::Pattern(&case.pattern), guard]);
                    self.body(&case.body, depth + 2);
                }
            }
            _ => {}
        }
    }
}

/// Lines that the original test and the submitted one have in common, each as often as both have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlap {
    pub common: u32,
    pub original: u32,
    /// 0 where the submission has no such test, or cannot be read.
    pub submitted: u32,
}

impl Overlap {
    /// `test_f1`, from 0 to 1.
    pub fn f1(self) -> f64 {
        if self.common == 0 {
            return 0.0;
        }
        2.0 * f64::from(self.common) / (f64::from(self.original) + f64::from(self.submitted))
    }
}

/// Compares the tests of two files. None where the original file does not define the test.
///
/// Fails only if the original file cannot be read.
pub fn test_overlap(
    submission: &str,
    original: File<'_>,
    test: &TestName,
    modules: &Modules,
) -> Result<Option<Overlap>, Unreadable> {
    let read = text::parse(original.text, |parsed| {
        let Found::Function { definition, function, name } = locate::locate(parsed.body, test) else {
            return None;
        };
        let bindings = Bindings::of_file(modules, original.path, parsed.body);
        let others = locate::other_names(parsed.body, function, &bindings);
        Some((counts(definition, function, bindings), name, others))
    })?;
    let Some((original, name, others)) = read else { return Ok(None) };
    let submitted = text::parse(submission, |parsed| match locate::locate(parsed.body, &name) {
        Found::Function { definition, function, .. } => {
            counts(definition, function, Bindings::of_submission(modules, parsed.body).without(&others))
        }
        Found::Undefined | Found::Missing => HashMap::new(),
    });
    let submitted = submitted.unwrap_or_default();
    let common =
        original.iter().map(|(key, count)| (*count).min(submitted.get(key).copied().unwrap_or_default()));
    Ok(Some(Overlap {
        common: common.sum(),
        original: original.values().sum(),
        submitted: submitted.values().sum(),
    }))
}

fn counts(definition: &Stmt, function: &StmtFunctionDef, bindings: Bindings<'_>) -> HashMap<Key, u32> {
    let bindings = bindings.without(&locate::local_names(function));
    let mut counts = HashMap::new();
    for line in lines_of(definition, Reading::of(&bindings), Purpose::Overlap) {
        *counts.entry(line.key).or_default() += 1;
    }
    counts
}
