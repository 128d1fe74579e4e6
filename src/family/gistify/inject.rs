//! The original test takes the place of the submitted one, unless they are the same.
//!
//! Nothing but the function is replaced: what it needs in its file (imports, fixtures, constants) is the submission's
//! to provide. The text of the original is kept, except where it reaches into the repository, which is not there.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, BytesLiteral, Expr, FString, Stmt, StmtFunctionDef, StringLiteral, TString};
use ruff_text_size::{Ranged, TextRange, TextSize};
use serde::{Deserialize, Serialize};

use super::keys::{self, Reading};
use super::locate::{self, Found, TestName};
use super::test_lines::{Purpose, TestLine, lines_of};
use crate::record::task::{Choices, NamesOfFile, Part, chosen};
use crate::score::modules::{Bindings, Modules};
use crate::score::text::{self, Parsed, Unreadable};
use crate::score::{File, tree};

/// What was done to the test of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Injection {
    /// It is the original, import adjustments and docstrings aside: nothing.
    Equal,
    /// The original took its place.
    Replaced,
    /// The original file does not define it (it is generated, or inherited from elsewhere): nothing.
    None,
}

/// Why there is nothing to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum NotInjected {
    /// The submission does not define the test in its place.
    Missing,
    /// The submission is no Python.
    Unparsable { reason: Unreadable },
    /// The file of the original is no Python: the dataset's trouble, not the submission's.
    Original { reason: Unreadable },
}

/// Lines of the submitted file, and how many stand in their place in the evaluated one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// 1-based.
    pub first: u32,
    pub last: u32,
    pub lines: u32,
}

impl Replacement {
    /// The line of the submitted file that a line of the evaluated one is. None in what took its place.
    pub fn submitted_line(&self, line: u32) -> Option<u32> {
        if line >= self.first + self.lines {
            Some(line - self.lines - self.first + self.last + 1)
        } else if line >= self.first {
            None
        } else {
            Some(line)
        }
    }
}

/// The exact text to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluated {
    pub text: String,
    pub injection: Injection,
    /// Where the definition stands: the test, or what it inherits from. None where nothing was injected.
    pub defined_as: Option<TestName>,
    pub replacement: Option<Replacement>,
}

impl Evaluated {
    /// A text in which nothing takes the place of anything.
    pub fn as_it_is(text: &str) -> Self {
        Evaluated { text: text.to_owned(), injection: Injection::None, defined_as: None, replacement: None }
    }

    /// The line of the submitted file that a line of this one is. None in a test that was replaced.
    pub fn submitted_line(&self, line: u32) -> Option<u32> {
        self.replacement.map_or(Some(line), |it| it.submitted_line(line))
    }
}

/// The original test, as far as the submission does not change it.
struct Original {
    name: TestName,
    lines: Vec<TestLine>,
    /// Names that may stand for another one, by imports of the module or of the test.
    renamed: BTreeMap<String, String>,
    /// Those by imports of the module alone; those of the test become assignments.
    of_module: BTreeMap<String, String>,
    /// Names that stand for no module, whatever modules are called.
    others: BTreeSet<String>,
}

/// Puts the original test into a submission.
pub fn inject(
    submission: &str,
    original: File<'_>,
    test: &TestName,
    modules: &Modules,
) -> Result<Evaluated, NotInjected> {
    inject_inherited(submission, original, test, test, modules)
}

/// Puts a test into a submission that is `defined` in the original file under another name: in a class that the test's inherits
/// from.
pub fn inject_inherited(
    submission: &str,
    original: File<'_>,
    defined: &TestName,
    test: &TestName,
    modules: &Modules,
) -> Result<Evaluated, NotInjected> {
    let read = text::parse(original.text, |source| read_original(source, original.path, defined, modules));
    let read = read.map_err(|reason| NotInjected::Original { reason })?;
    let unparsable = |reason| NotInjected::Unparsable { reason };
    let as_submitted = |injection, defined_as| {
        Ok(Evaluated { text: submission.to_owned(), injection, defined_as, replacement: None })
    };
    let Some(read) = read else {
        text::parse(submission, |_| ()).map_err(unparsable)?;
        return as_submitted(Injection::None, None);
    };
    let state =
        text::parse(submission, |parsed| examine(parsed, test, &read, modules)).map_err(unparsable)?;
    match state {
        State::Missing => Err(NotInjected::Missing),
        State::Equal => as_submitted(Injection::Equal, Some(read.name)),
        State::Differs { names } => {
            let edited =
                text::parse(original.text, |source| adjusted(source, original.path, &read, modules, &names));
            let definition = edited.map_err(|reason| NotInjected::Original { reason })?;
            text::parse(submission, |parsed| replace(parsed, &read.name, &definition))
                .map_err(unparsable)?
                .ok_or(NotInjected::Missing)
        }
    }
}

fn read_original(source: Parsed<'_>, path: &str, test: &TestName, modules: &Modules) -> Option<Original> {
    let Found::Function { definition, function, name } = locate::locate(source.body, test) else {
        return None;
    };
    let locals = locate::local_names(function);
    let bindings = Bindings::of_file(modules, path, source.body).without(&locals);
    let bound = locate::bound_names(source.body);
    // A name that is also something else in this file cannot stand for the alias.
    let is_free = |name: &str| !locals.contains(name);
    let mut of_module = own_aliases(source.body, &bindings);
    of_module.retain(|local, name| is_free(local) && is_free(name) && !bound.contains(name));
    let mut renamed = own_aliases(&function.body, &bindings);
    renamed.retain(|local, name| is_free(local) && is_free(name) && !bound.contains(name));
    renamed.extend(of_module.clone());
    let lines = lines_of(definition, Reading { bindings: &bindings, renamed: &renamed }, Purpose::Equality);
    let others = locate::other_names(source.body, function, &bindings);
    Some(Original { name, lines, renamed, of_module, others })
}

/// Local name → name, of every `from repository import name as local` outside functions and classes within the body.
fn own_aliases(body: &[Stmt], bindings: &Bindings<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in body {
        match statement {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            Stmt::ImportFrom(import) => {
                for alias in
                    import.names.iter().filter(|alias| bindings.is_own_from(import, alias.name.as_str()))
                {
                    let Some(local) = &alias.asname else { continue };
                    if local.as_str() != alias.name.as_str() && bindings.module(local.as_str()).is_none() {
                        found.insert(local.to_string(), alias.name.to_string());
                    }
                }
            }
            _ => {
                for body in tree::bodies(statement) {
                    found.extend(own_aliases(body, bindings));
                }
            }
        }
    }
    found
}

enum State {
    Missing,
    Equal,
    Differs { names: NamesOfFile },
}

fn examine(parsed: Parsed<'_>, test: &TestName, original: &Original, modules: &Modules) -> State {
    // An inherited test needs its own class too, or there is no such node.
    if matches!(locate::locate(parsed.body, test), Found::Missing) {
        return State::Missing;
    }
    let Found::Function { definition, function, .. } = locate::locate(parsed.body, &original.name) else {
        return State::Missing;
    };
    let locals = locate::local_names(function);
    let bindings = Bindings::by_name(modules).without(&locals).without(&original.others);
    let mut renamed = original.renamed.clone();
    renamed.retain(|local, _| !locals.contains(local));
    let lines = lines_of(definition, Reading { bindings: &bindings, renamed: &renamed }, Purpose::Equality);
    if lines == original.lines {
        State::Equal
    } else {
        let used = names_in(definition, &locals);
        let names = NamesOfFile { bound: locate::bound_names(parsed.body), used };
        State::Differs { names }
    }
}

/// The dotted names that a statement has anywhere, with all their beginnings; those with a local root are left out.
fn names_in(statement: &Stmt, locals: &BTreeSet<String>) -> BTreeSet<String> {
    struct Names<'l>(&'l BTreeSet<String>, BTreeSet<String>);
    impl<'a> Visitor<'a> for Names<'_> {
        fn visit_expr(&mut self, expression: &'a Expr) {
            if let Some((root, names)) = tree::chain(expression)
                && !self.0.contains(root)
            {
                self.1.insert([&[root][..], &names].concat().join("."));
            }
            visitor::walk_expr(self, expression);
        }
    }
    let mut names = Names(locals, BTreeSet::new());
    names.visit_stmt(statement);
    names.1
}

/// A definition with adjusted names and imports: its text from the first decorator on, and what must be done to move it.
struct Definition {
    /// The text, cut at the starts of its lines; true where the line may be moved.
    lines: Vec<(String, bool)>,
    indentation: String,
}

fn adjusted(
    source: Parsed<'_>,
    path: &str,
    original: &Original,
    modules: &Modules,
    names: &NamesOfFile,
) -> Definition {
    let Found::Function { definition, function, .. } = locate::locate(source.body, &original.name) else {
        return Definition { lines: Vec::new(), indentation: String::new() };
    };
    let locals = locate::local_names(function);
    let bindings = Bindings::of_file(modules, path, source.body).without(&locals);
    let (edits, texts) = Adjust::of(source, definition, &bindings, (&original.of_module, &locals));
    let text = |edit: &Edit| match edit {
        Edit::OneOf(choices) => chosen(choices, names).unwrap_or_default().to_owned(),
        Edit::Statements(all) => {
            let made: Vec<&str> = all.iter().filter_map(|one| chosen(one, names)).collect();
            if made.is_empty() { "pass".to_owned() } else { made.join("; ") }
        }
    };
    let changes = edits.iter().map(|(range, edit)| (*range, text(edit)));
    let changes: Vec<_> = changes
        .filter(|(range, new)| source.text[range.start().to_usize()..range.end().to_usize()] != **new)
        .collect();
    cut_lines(source, definition, &changes, &texts)
}

/// The text of a test as it is put into any file, and the name that it has there. None where its file does not define
/// it.
///
/// # Errors
/// The file cannot be read.
pub(super) fn parts(
    original: File<'_>,
    test: &TestName,
    modules: &Modules,
) -> Result<Option<(TestName, Vec<Part>)>, Unreadable> {
    text::parse(original.text, |source| {
        let read = read_original(source, original.path, test, modules)?;
        let Found::Function { definition, function, .. } = locate::locate(source.body, &read.name) else {
            return None;
        };
        let locals = locate::local_names(function);
        let bindings = Bindings::of_file(modules, original.path, source.body).without(&locals);
        let (edits, texts) = Adjust::of(source, definition, &bindings, (&read.of_module, &locals));
        let parts = cut_parts(source, definition, &edits, &texts);
        Some((read.name, parts))
    })
}

fn cut_parts(
    source: Parsed<'_>,
    definition: &Stmt,
    edits: &[(TextRange, Edit)],
    texts: &[TextRange],
) -> Vec<Part> {
    let (first, last) = source.lines.of_node(definition);
    let start = source.lines.start(first).unwrap_or_default();
    let indentation = &source.text[start..definition.start().to_usize()];
    let mut edits = edits.iter().peekable();
    let (mut parts, mut at) = (vec![Part::Line], definition.start().to_usize());
    for line in first..=last {
        let next = source.lines.start(line + 1).unwrap_or(source.text.len());
        let end = next.min(definition.end().to_usize());
        while let Some((range, edit)) = edits.next_if(|(range, _)| range.start().to_usize() < end) {
            parts.push(Part::Text(source.text[at..range.start().to_usize()].to_owned()));
            parts.push(match edit {
                Edit::OneOf(choices) => Part::OneOf(choices.clone()),
                Edit::Statements(all) => Part::Statements { statements: all.clone() },
            });
            at = range.end().to_usize();
        }
        if at > end {
            continue;
        }
        parts.push(Part::Text(source.text[at..end].to_owned()));
        at = end;
        let is_text = texts.iter().any(|text| text.start().to_usize() < end && end < text.end().to_usize());
        let rest = source.text[end..].strip_prefix(indentation).filter(|_| line < last && !is_text);
        if rest.is_some_and(|rest| !rest.split(['\n', '\r']).next().unwrap_or_default().trim().is_empty()) {
            parts.push(Part::Line);
            at += indentation.len();
        }
    }
    parts
}

/// Applies the edits and notes which lines begin within a text.
fn cut_lines(
    source: Parsed<'_>,
    definition: &Stmt,
    edits: &[(TextRange, String)],
    texts: &[TextRange],
) -> Definition {
    let (first, last) = source.lines.of_node(definition);
    let start = source.lines.start(first).unwrap_or_default();
    let indentation = source.text[start..definition.start().to_usize()].to_owned();
    let mut edits = edits.iter().peekable();
    let mut lines = Vec::new();
    let mut at = definition.start().to_usize();
    let (mut current, mut moves) = (indentation.clone(), true);
    for line in first..=last {
        let next = source.lines.start(line + 1).unwrap_or(source.text.len());
        let end = next.min(definition.end().to_usize());
        while let Some((range, new)) = edits.next_if(|(range, _)| range.start().to_usize() < end) {
            current.push_str(&source.text[at..range.start().to_usize()]);
            current.push_str(new);
            at = range.end().to_usize();
        }
        // A line whose start was cut out with the statement around it is the rest of the line before.
        if at <= end {
            current.push_str(&source.text[at..end]);
            at = end;
            lines.push((std::mem::take(&mut current), moves));
            moves = !texts.iter().any(|text| text.start().to_usize() < end && end < text.end().to_usize());
        }
    }
    Definition { lines, indentation }
}

/// Finds what must be changed in the text of a test.
struct Adjust<'a> {
    source: &'a str,
    bindings: &'a Bindings<'a>,
    renamed: &'a BTreeMap<String, String>,
    /// Names that the test binds itself: one of the file with such a name is asked for by `globals()`.
    locals: &'a BTreeSet<String>,
    edits: Vec<(TextRange, Edit)>,
    /// Where strings stand: lines that begin in one are not moved.
    texts: Vec<TextRange>,
}

/// What takes a place, by what the submission binds in its module.
enum Edit {
    OneOf(Choices),
    /// Statements on one line; `pass` where there is none.
    Statements(Vec<Choices>),
}

fn choice(name: Option<&str>, text: Option<&str>) -> (Option<String>, Option<String>) {
    (name.map(str::to_owned), text.map(str::to_owned))
}

impl<'a> Adjust<'a> {
    /// The edits of a definition in their order, and where it has strings.
    fn of(
        source: Parsed<'a>,
        definition: &'a Stmt,
        bindings: &'a Bindings<'a>,
        (renamed, locals): (&'a BTreeMap<String, String>, &'a BTreeSet<String>),
    ) -> (Vec<(TextRange, Edit)>, Vec<TextRange>) {
        let mut adjust =
            Adjust { source: source.text, bindings, renamed, locals, edits: Vec::new(), texts: Vec::new() };
        adjust.visit_stmt(definition);
        adjust.edits.sort_by_key(|(range, _)| range.start());
        (adjust.edits, adjust.texts)
    }

    /// Cuts the modules off a dotted name. False where the name is none that begins with one.
    fn dotted(&mut self, expression: &Expr) -> bool {
        let Some((root, names)) = tree::chain(expression) else { return false };
        let Some(module) = self.bindings.module(root) else { return false };
        let Some(used) = keys::within(module, &names, self.bindings) else { return true };
        let mut starts = Vec::new();
        let mut at = expression;
        while let Expr::Attribute(attribute) = at {
            starts.push(attribute.attr.range());
            at = &attribute.value;
        }
        starts.reverse();
        let Some(end) = starts.get(used).map(Ranged::end) else { return true };
        let text = |from: TextSize| &self.source[from.to_usize()..end.to_usize()];
        let cut = |at: usize| {
            if self.locals.contains(names[at]) {
                return format!("globals()['{}']{}", names[at], text(starts[at].end()));
            }
            text(starts[at].start()).to_owned()
        };
        let mut choices = vec![choice(Some(root), Some(text(expression.start())))];
        choices.extend((0..=used).rev().map(|at| choice(Some(names[at]), Some(&cut(at)))));
        choices.push(choice(None, Some(&cut(used))));
        self.edits.push((TextRange::new(expression.start(), end), Edit::OneOf(choices)));
        true
    }

    fn import(&mut self, statement: &Stmt) {
        let (module, names): (Option<String>, &[Alias]) = match statement {
            Stmt::Import(import) => (None, &import.names),
            Stmt::ImportFrom(import) => (Some(self.bindings.absolute(import)), &import.names),
            _ => return,
        };
        let is_own = |alias: &Alias| match statement {
            Stmt::ImportFrom(import) => self.bindings.is_own_from(import, alias.name.as_str()),
            _ => self.bindings.is_own(alias.name.as_str()),
        };
        if !names.iter().any(is_own) {
            return;
        }
        let made = names.iter().map(|alias| {
            let name = alias.name.as_str();
            let local = alias.asname.as_ref().map_or(name, |name| name.as_str());
            match (is_own(alias), &module) {
                (true, Some(_)) => {
                    vec![choice(Some(local), None), choice(Some(name), Some(&format!("{local} = {name}")))]
                }
                (true, None) => Vec::new(),
                (false, module) => {
                    let from = module.as_ref().map_or_else(String::new, |module| format!("from {module} "));
                    let renamed = if local == name { String::new() } else { format!(" as {local}") };
                    vec![choice(None, Some(&format!("{from}import {name}{renamed}")))]
                }
            }
        });
        let made = Edit::Statements(made.collect());
        self.edits.push((statement.range(), made));
    }
}

impl<'v> Visitor<'v> for Adjust<'_> {
    fn visit_stmt(&mut self, statement: &'v Stmt) {
        match statement {
            Stmt::Import(_) | Stmt::ImportFrom(_) => self.import(statement),
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'v Expr) {
        if expression.is_attribute_expr() && self.dotted(expression) {
            return;
        }
        let mut at = expression;
        while let Expr::Attribute(attribute) = at {
            at = &attribute.value;
        }
        match at {
            Expr::Name(name) => {
                if let Some(new) = self.renamed.get(name.id.as_str()) {
                    let old = Some(name.id.as_str());
                    let choices = vec![choice(old, old), choice(Some(new), Some(new)), choice(None, old)];
                    self.edits.push((name.range, Edit::OneOf(choices)));
                }
            }
            _ => visitor::walk_expr(self, at),
        }
    }

    fn visit_string_literal(&mut self, text: &'v StringLiteral) {
        self.texts.push(text.range);
    }

    fn visit_bytes_literal(&mut self, text: &'v BytesLiteral) {
        self.texts.push(text.range);
    }

    fn visit_f_string(&mut self, text: &'v FString) {
        self.texts.push(text.range);
        visitor::walk_f_string(self, text);
    }

    fn visit_t_string(&mut self, text: &'v TString) {
        self.texts.push(text.range);
        visitor::walk_t_string(self, text);
    }
}

/// Puts a definition in the place of the submission's.
fn replace(parsed: Parsed<'_>, name: &TestName, definition: &Definition) -> Option<Evaluated> {
    let Found::Function { definition: place, .. } = locate::locate(parsed.body, name) else { return None };
    let (first, last) = parsed.lines.of_node(place);
    let start = parsed.lines.start(first)?;
    let indentation = &parsed.text[start..place.start().to_usize()];
    let end = parsed.lines.start(last + 1).unwrap_or(parsed.text.len());
    let after = &parsed.text[start..end];
    let end = start + after.trim_end_matches(['\n', '\r']).len();
    let mut text = parsed.text[..start].to_owned();
    for (line, moves) in &definition.lines {
        match line.strip_prefix(&*definition.indentation) {
            Some(rest) if *moves && !rest.trim().is_empty() => {
                text.push_str(indentation);
                text.push_str(rest);
            }
            _ => text.push_str(line),
        }
    }
    let lines = text::Lines::of(&text[start..]).count();
    text.push_str(&parsed.text[end..]);
    Some(Evaluated {
        text,
        injection: Injection::Replaced,
        defined_as: Some(name.clone()),
        replacement: Some(Replacement { first, last, lines }),
    })
}

/// What a sabotaged test raises.
const SABOTAGE: &str = "raise AssertionError('gistmill')";

/// The evaluated text with a test that must fail: its body begins with a raise. None where the text does not define it.
pub fn sabotage(evaluated: &Evaluated) -> Option<String> {
    let name = evaluated.defined_as.as_ref()?;
    text::parse(&evaluated.text, |parsed| {
        let Found::Function { function, .. } = locate::locate(parsed.body, name) else { return None };
        let first = first_statement(function)?;
        let at = first.start().to_usize();
        let start = parsed.lines.start(parsed.lines.line(first.start()))?;
        // A compound statement begins its line; a simple one may stand behind a colon or a docstring.
        let is_compound = !tree::bodies(first).is_empty();
        let between = if is_compound { format!("\n{}", &parsed.text[start..at]) } else { "; ".to_owned() };
        Some(format!("{}{SABOTAGE}{between}{}", &parsed.text[..at], &parsed.text[at..]))
    })
    .ok()
    .flatten()
}

/// The line where the definition of the test begins in the evaluated text, decorators included. None where the text does
/// not define it.
pub fn first_line(evaluated: &Evaluated) -> Option<u32> {
    let name = evaluated.defined_as.as_ref()?;
    text::parse(&evaluated.text, |parsed| {
        let Found::Function { definition, .. } = locate::locate(parsed.body, name) else { return None };
        Some(parsed.lines.of_node(definition).0)
    })
    .ok()
    .flatten()
}

/// The first statement that is no docstring; the docstring if there is nothing else.
fn first_statement(function: &StmtFunctionDef) -> Option<&Stmt> {
    function.body.iter().find(|statement| !tree::is_text(statement)).or(function.body.first())
}
