//! The walk over a syntax tree that gives the logical lines.

use ruff_python_ast::{Alias, Decorator, ExceptHandler, Expr, Identifier, Parameter, Stmt, StmtIf, StmtTry};
use ruff_text_size::{Ranged, TextSize};

use super::{Block, BlockKind, Cut, Header, Keys, LineKind, Unit, whole_header};
use crate::family::gistify::keys::{self, Forms, Key, Part, Reading};
use crate::score::text::Parsed;
use crate::score::tree;

/// What is asked of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Lines,
    /// Its lines, and the keys of its statements with all that is in them.
    LinesAndKeys,
}

pub(super) struct Cutter<'a> {
    pub(super) parsed: Parsed<'a>,
    pub(super) reading: Reading<'a>,
    pub(super) cut: Cut,
}

impl<'a> Cutter<'a> {
    /// Gives the keys of the statements where they are wanted, else nothing.
    pub(super) fn body(&mut self, body: &'a [Stmt], block: Option<usize>, wanted: Wanted) -> Vec<Forms> {
        let keys = body.iter().map(|statement| self.statement(statement, block, wanted));
        keys.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    fn statement(&mut self, statement: &'a Stmt, block: Option<usize>, wanted: Wanted) -> Option<Forms> {
        match statement {
            Stmt::Import(_) | Stmt::ImportFrom(_) => self.import(statement, block),
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return self.definition(statement, block, wanted),
            Stmt::If(branch) => return self.branches(branch, block, wanted),
            Stmt::Try(attempt) => return self.attempt(attempt, block, wanted),
            Stmt::For(_) | Stmt::While(_) | Stmt::With(_) | Stmt::Match(_) => {
                return self.compound(statement, block, wanted);
            }
            _ => return self.simple(statement, block, wanted),
        }
        (wanted == Wanted::LinesAndKeys).then(|| self.reading.forms(&[Part::Statement(statement)]))
    }

    fn simple(&mut self, statement: &'a Stmt, block: Option<usize>, wanted: Wanted) -> Option<Forms> {
        let (first, last) = self.parsed.lines.of_node(statement);
        let is_text = tree::is_text(statement);
        let kind = if is_text { LineKind::Text } else { LineKind::Statement };
        let needed = !is_text || wanted == Wanted::LinesAndKeys;
        let forms =
            needed.then(|| self.reading.forms(&[Part::Text("statement"), Part::Statement(statement)]));
        let keys = forms.filter(|_| !is_text).map_or(Keys::None, |forms| Keys::Any(forms.both()));
        self.cut.units.push(Unit { kind, block, first, last, free: tree::is_free(statement), keys });
        forms.filter(|_| wanted == Wanted::LinesAndKeys)
    }

    fn import(&mut self, statement: &'a Stmt, block: Option<usize>) {
        let (first, last) = self.parsed.lines.of_node(statement);
        let mut push = |keys| {
            self.cut.units.push(Unit {
                kind: LineKind::Import,
                block,
                first,
                last,
                free: false,
                keys: Keys::Any(keys),
            });
        };
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let key = import_key("import", "", alias);
                    push([key, key]);
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                let written = format!("{}{module}", ".".repeat(import.level as usize));
                let absolute = self.reading.bindings.absolute(import);
                for alias in &import.names {
                    push([import_key("from", &written, alias), import_key("from", &absolute, alias)]);
                }
            }
            _ => {}
        }
    }

    fn definition(&mut self, statement: &'a Stmt, block: Option<usize>, wanted: Wanted) -> Option<Forms> {
        let (kind, block_kind, name, body) = match statement {
            Stmt::FunctionDef(function) => {
                let kind = if function.is_async { LineKind::AsyncFunction } else { LineKind::Function };
                (kind, BlockKind::Function, &function.name, &function.body)
            }
            Stmt::ClassDef(class) => (LineKind::Class, BlockKind::Class, &class.name, &class.body),
            _ => return None,
        };
        let header = self.header(statement, kind);
        self.cut.blocks.push(Block { kind: block_kind, name: name.to_string(), parent: block });
        let inner = Some(self.cut.blocks.len() - 1);
        self.push(
            kind,
            inner,
            statement.start(),
            tree::header_end(statement),
            Keys::Header(Box::new(header)),
        );
        let keys = self.body(body, inner, wanted);
        (wanted == Wanted::LinesAndKeys).then(|| self.whole(kind, &whole_header(statement), &[keys]))
    }

    fn header(&self, statement: &'a Stmt, kind: LineKind) -> Header {
        let forms = |parts: &[Part<'_>]| self.reading.forms(parts);
        let decorators = |list: &'a [Decorator]| {
            let dotted = list.iter().map(|decorator| match &decorator.expression {
                Expr::Call(call) => &*call.func,
                other => other,
            });
            dotted.map(|one| forms(&[Part::Expression(one)])).collect()
        };
        let mut header =
            Header { kind, decorators: Vec::new(), parameters: Vec::new(), bases: Vec::new(), returns: None };
        match statement {
            Stmt::FunctionDef(function) => {
                let one = |parameter: &Parameter, default: Option<&Expr>| {
                    let annotation = Part::expression(parameter.annotation());
                    forms(&[Part::Text(parameter.name.as_str()), annotation, Part::expression(default)])
                };
                let parameters = &function.parameters;
                header.decorators = decorators(&function.decorator_list);
                header.parameters = parameters
                    .iter_non_variadic_params()
                    .map(|it| one(&it.parameter, it.default()))
                    .collect();
                let variadic = [&parameters.vararg, &parameters.kwarg].into_iter().flatten();
                header.parameters.extend(variadic.map(|parameter| one(parameter, None)));
                header.returns = function.returns.as_ref().map(|it| forms(&[Part::Expression(it)]));
            }
            Stmt::ClassDef(class) => {
                header.decorators = decorators(&class.decorator_list);
                if let Some(arguments) = &class.arguments {
                    header.bases.extend(arguments.args.iter().map(|base| forms(&[Part::Expression(base)])));
                    header.bases.extend(arguments.keywords.iter().map(|keyword| {
                        let name = keyword.arg.as_ref().map(Identifier::as_str);
                        forms(&[Part::Text("keyword"), Part::text(name), Part::Expression(&keyword.value)])
                    }));
                }
            }
            _ => {}
        }
        header
    }

    fn branches(&mut self, branch: &'a StmtIf, block: Option<usize>, wanted: Wanted) -> Option<Forms> {
        let test = [Part::Text("if"), Part::Expression(&branch.test)];
        let keys = Keys::Any(self.reading.forms(&test).both());
        self.push(LineKind::If, block, branch.start(), branch.test.end(), keys);
        let mut parts = vec![(Some(&*branch.test), self.body(&branch.body, block, wanted))];
        for clause in &branch.elif_else_clauses {
            let keys = if let Some(test) = &clause.test {
                let keys = Keys::Any(self.reading.forms(&[Part::Text("if"), Part::Expression(test)]).both());
                self.push(LineKind::Elif, block, clause.start(), test.end(), keys);
                self.body(&clause.body, block, wanted)
            } else {
                self.other(clause.start(), &clause.body, block)
            };
            parts.push((clause.test.as_ref(), keys));
        }
        (wanted == Wanted::LinesAndKeys).then(|| self.nested(parts))
    }

    /// The key of an `if` with all its branches: `elif` is an `else` with an `if` in it.
    fn nested(&self, parts: Vec<(Option<&'a Expr>, Vec<Forms>)>) -> Forms {
        let mut rest = Vec::new();
        for (test, body) in parts.into_iter().rev() {
            rest = match test {
                None => body,
                Some(test) => vec![self.whole(LineKind::If, &[Part::Expression(test)], &[body, rest])],
            };
        }
        rest[0]
    }

    fn attempt(&mut self, attempt: &'a StmtTry, block: Option<usize>, wanted: Wanted) -> Option<Forms> {
        let kind = if attempt.is_star { LineKind::TryStar } else { LineKind::Try };
        self.push(kind, block, attempt.start(), attempt.start(), self.alternatives(kind, &[]));
        let mut bodies = vec![self.body(&attempt.body, block, wanted)];
        for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
            let name = handler.name.as_ref();
            let caught =
                [Part::expression(handler.type_.as_deref()), Part::text(name.map(Identifier::as_str))];
            let end = name.map(Ranged::end).or(handler.type_.as_ref().map(|one| one.end()));
            let keys = self.alternatives(LineKind::Except, &caught);
            self.push(LineKind::Except, block, handler.start(), end.unwrap_or(handler.start()), keys);
            let body = self.body(&handler.body, block, wanted);
            if wanted == Wanted::LinesAndKeys {
                bodies.push(vec![self.whole(LineKind::Except, &caught, &[body])]);
            }
        }
        bodies.push(self.other_of(&attempt.orelse, block));
        if let Some(first) = attempt.finalbody.first() {
            let at = self.keyword("finally", first.start());
            self.push(LineKind::Finally, block, at, at, self.alternatives(LineKind::Finally, &[]));
        }
        bodies.push(self.body(&attempt.finalbody, block, wanted));
        (wanted == Wanted::LinesAndKeys).then(|| self.whole(kind, &[], &bodies))
    }

    fn compound(&mut self, statement: &'a Stmt, block: Option<usize>, wanted: Wanted) -> Option<Forms> {
        let (kind, header) = match statement {
            Stmt::For(each) => {
                let kind = if each.is_async { LineKind::AsyncFor } else { LineKind::For };
                (kind, vec![Part::Expression(&each.target), Part::Expression(&each.iter)])
            }
            Stmt::While(each) => (LineKind::While, vec![Part::Expression(&each.test)]),
            Stmt::With(with) => {
                let kind = if with.is_async { LineKind::AsyncWith } else { LineKind::With };
                let items = with.items.iter().flat_map(|item| {
                    [Part::Expression(&item.context_expr), Part::expression(item.optional_vars.as_deref())]
                });
                (kind, items.collect())
            }
            Stmt::Match(choice) => (LineKind::Match, vec![Part::Expression(&choice.subject)]),
            _ => return None,
        };
        let keys = self.alternatives(kind, &header);
        self.push(kind, block, statement.start(), tree::header_end(statement), keys);
        let bodies = match statement {
            Stmt::For(each) => vec![self.body(&each.body, block, wanted), self.other_of(&each.orelse, block)],
            Stmt::While(each) => {
                vec![self.body(&each.body, block, wanted), self.other_of(&each.orelse, block)]
            }
            Stmt::With(with) => vec![self.body(&with.body, block, wanted)],
            Stmt::Match(choice) => {
                let mut bodies = Vec::new();
                for case in &choice.cases {
                    let guard = case.guard.as_deref();
                    let header = [Part::Pattern(&case.pattern), Part::expression(guard)];
                    let end = guard.map_or_else(|| case.pattern.end(), Ranged::end);
                    let keys = self.alternatives(LineKind::Case, &header);
                    self.push(LineKind::Case, block, case.start(), end, keys);
                    let body = self.body(&case.body, block, wanted);
                    if wanted == Wanted::LinesAndKeys {
                        bodies.push(vec![self.whole(LineKind::Case, &header, &[body])]);
                    }
                }
                bodies
            }
            _ => Vec::new(),
        };
        (wanted == Wanted::LinesAndKeys).then(|| self.whole(kind, &header, &bodies))
    }

    /// The `else` of a loop or a `try`, if there is one.
    fn other_of(&mut self, body: &'a [Stmt], block: Option<usize>) -> Vec<Forms> {
        let Some(first) = body.first() else { return Vec::new() };
        let at = self.keyword("else", first.start());
        self.other(at, body, block)
    }

    fn other(&mut self, at: TextSize, body: &'a [Stmt], block: Option<usize>) -> Vec<Forms> {
        let unit = self.cut.units.len();
        self.push(LineKind::Else, block, at, at, Keys::None);
        let keys = self.body(body, block, Wanted::LinesAndKeys);
        let lines = body.iter().zip(&keys).filter(|(one, _)| !tree::is_text(one) && !one.is_pass_stmt());
        self.cut.units[unit].keys = Keys::Body(lines.flat_map(|(_, forms)| forms.both()).collect());
        keys
    }

    /// The nearest place before an offset where a line begins with this keyword.
    fn keyword(&self, keyword: &str, before: TextSize) -> TextSize {
        let last = self.parsed.lines.line(before);
        let starts = (1..=last).rev().filter_map(|line| self.parsed.lines.start(line));
        let found = starts.map(|start| {
            let rest = &self.parsed.text[start..];
            (start + rest.len() - rest.trim_start_matches([' ', '\t', '\u{c}']).len(), rest)
        });
        let found = found.take(KEYWORD_WITHIN).find(|(at, _)| self.parsed.text[*at..].starts_with(keyword));
        found.map_or(before, |(at, _)| TextSize::new(at as u32))
    }

    fn alternatives(&self, kind: LineKind, header: &[Part<'_>]) -> Keys {
        let mut parts = vec![Part::Text(kind.tag())];
        parts.extend(header);
        Keys::Any(self.reading.forms(&parts).both())
    }

    fn push(&mut self, kind: LineKind, block: Option<usize>, start: TextSize, end: TextSize, keys: Keys) {
        let (first, last) = (self.parsed.lines.line(start), self.parsed.lines.line(end));
        self.cut.units.push(Unit { kind, block, first, last, free: false, keys });
    }

    /// The keys of a compound statement with all that is in it.
    fn whole(&self, kind: LineKind, header: &[Part<'_>], bodies: &[Vec<Forms>]) -> Forms {
        let mut parts = vec![Part::Text(kind.tag())];
        parts.extend(header);
        let header = self.reading.forms(&parts);
        let with = |of: fn(&Forms) -> Key| {
            let mut parts = vec![Part::Key(of(&header))];
            for body in bodies {
                parts.push(Part::Text("body"));
                parts.extend(body.iter().map(|forms| Part::Key(of(forms))));
            }
            keys::plain(&parts)
        };
        Forms { plain: with(|forms| forms.plain), stripped: with(|forms| forms.stripped) }
    }
}

/// How many lines before its body the keyword of an `else` or `finally` is looked for; comments may stand between.
const KEYWORD_WITHIN: usize = 1_000;

fn import_key(word: &str, module: &str, alias: &Alias) -> Key {
    let local = alias.asname.as_ref().map(Identifier::as_str);
    keys::plain(&[Part::Text(word), Part::Text(module), Part::Text(alias.name.as_str()), Part::text(local)])
}
