//! A file cut into its logical lines: what the rates are made of.

use ruff_python_ast::{Alias, Decorator, ExceptHandler, Expr, Parameter, Stmt, StmtIf, StmtTry};
use ruff_text_size::{Ranged, TextSize};
use serde::{Deserialize, Serialize};

use super::keys::{self, Forms, Key, Part, Reading};
use super::modules::Bindings;
use super::text::Parsed;
use super::tree;

/// What a line is. Comments and blanks are no logical lines, but a page shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineType {
    /// A comment, or a text that stands alone, docstrings included.
    Comment,
    ControlFlow,
    Definition,
    Executable,
    Import,
    Blank,
}

/// What a logical line begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineKind {
    Text,
    Import,
    Class,
    Function,
    AsyncFunction,
    If,
    Elif,
    Else,
    For,
    AsyncFor,
    While,
    With,
    AsyncWith,
    Try,
    TryStar,
    Except,
    Finally,
    Match,
    Case,
    Statement,
}

impl LineKind {
    pub fn line_type(self) -> LineType {
        use LineKind::*;
        match self {
            Text => LineType::Comment,
            Import => LineType::Import,
            Class | Function | AsyncFunction => LineType::Definition,
            If | Elif | Else | For | AsyncFor | While | With | AsyncWith | Try | TryStar | Except
            | Finally | Match | Case => LineType::ControlFlow,
            Statement => LineType::Executable,
        }
    }

    /// Whether line existence counts such a line.
    pub fn is_counted(self, counts: ControlFlow) -> bool {
        use LineKind::*;
        match self {
            Text => false,
            Import | Class | Function | AsyncFunction | If | Elif | Else | Statement => true,
            For | AsyncFor | While | With | AsyncWith | Try | TryStar | Except | Finally | Match | Case => {
                counts == ControlFlow::All
            }
        }
    }

    fn tag(self) -> &'static str {
        use LineKind::*;
        match self {
            Text => "text",
            Import => "import",
            Class => "class",
            Function => "def",
            AsyncFunction => "async def",
            If | Elif => "if",
            Else => "else",
            For => "for",
            AsyncFor => "async for",
            While => "while",
            With => "with",
            AsyncWith => "async with",
            Try => "try",
            TryStar => "try*",
            Except => "except",
            Finally => "finally",
            Match => "match",
            Case => "case",
            Statement => "statement",
        }
    }
}

/// Which control flow line existence counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControlFlow {
    /// `if`, `elif` and `else`.
    Branches,
    /// Loops, `try`, `with` and `match` as well.
    All,
}

/// A logical line.
#[derive(Debug, Clone)]
pub struct Unit {
    pub kind: LineKind,
    /// The block that it belongs to; a definition belongs to the one that it opens. None at the top.
    pub block: Option<usize>,
    /// 1-based, decorators included; of a compound statement the header alone.
    pub first: u32,
    pub last: u32,
    /// Whether the interpreter may or may not report it, so that line execution leaves it out.
    pub free: bool,
    pub(super) keys: Keys,
}

/// What a line is compared by.
#[derive(Debug, Clone)]
pub(super) enum Keys {
    /// Not compared.
    None,
    /// Alternatives, each of which suffices.
    Any([Key; 2]),
    /// The lines of an `else`, of which one must be in the other.
    Body(Vec<Key>),
    Header(Box<Header>),
}

/// What a definition's own line is compared by.
#[derive(Debug, Clone)]
pub(super) struct Header {
    kind: LineKind,
    decorators: Vec<Forms>,
    /// Parameters with annotation and default.
    parameters: Vec<Forms>,
    /// Bases and keywords of a class.
    bases: Vec<Forms>,
    returns: Option<Forms>,
}

impl Header {
    /// Whether a definition could be this one after something was left out of it.
    pub fn is_within(&self, original: &Header) -> bool {
        let all = |mine: &[Forms], theirs: &[Forms]| {
            mine.iter().all(|one| theirs.iter().any(|other| one.meets(*other)))
        };
        let same_return = match (self.returns, original.returns) {
            (None, _) => true,
            (Some(mine), Some(theirs)) => mine.meets(theirs),
            (Some(_), None) => false,
        };
        self.kind == original.kind
            && all(&self.decorators, &original.decorators)
            && all(&self.parameters, &original.parameters)
            && self.bases.len() == original.bases.len()
            && all(&self.bases, &original.bases)
            && same_return
    }
}

/// Whether a block is a class or a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    Class,
    Function,
}

/// A class or a function, and where it stands.
#[derive(Debug, Clone)]
pub struct Block {
    pub kind: BlockKind,
    pub name: String,
    /// The block around it.
    pub parent: Option<usize>,
}

/// A file cut into logical lines, in the order of the text; blocks come before what is in them.
#[derive(Debug, Clone, Default)]
pub struct Cut {
    pub units: Vec<Unit>,
    pub blocks: Vec<Block>,
}

impl Cut {
    /// Names of a block and of those around it, the outermost first.
    pub fn path(&self, block: Option<usize>) -> Vec<&str> {
        let around = std::iter::successors(block, |block| self.blocks[*block].parent);
        let mut path: Vec<&str> = around.map(|block| self.blocks[block].name.as_str()).collect();
        path.reverse();
        path
    }
}

/// Cuts a file.
pub fn cut(parsed: Parsed<'_>, bindings: &Bindings<'_>) -> Cut {
    let mut cutter = Cutter { parsed, reading: Reading::of(bindings), cut: Cut::default() };
    cutter.body(parsed.body, None, Wanted::Lines);
    cutter.cut
}

/// What is asked of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Lines,
    /// Its lines, and the keys of its statements with all that is in them.
    LinesAndKeys,
}

struct Cutter<'a> {
    parsed: Parsed<'a>,
    reading: Reading<'a>,
    cut: Cut,
}

impl<'a> Cutter<'a> {
    /// Gives the keys of the statements where they are wanted, else nothing.
    fn body(&mut self, body: &'a [Stmt], block: Option<usize>, wanted: Wanted) -> Vec<Forms> {
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
                for arguments in class.arguments.iter() {
                    header.bases.extend(arguments.args.iter().map(|base| forms(&[Part::Expression(base)])));
                    header.bases.extend(arguments.keywords.iter().map(|keyword| {
                        let name = keyword.arg.as_ref().map(|name| name.as_str());
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
                [Part::expression(handler.type_.as_deref()), Part::text(name.map(|name| name.as_str()))];
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

/// Everything in the header of a definition.
pub(super) fn whole_header(statement: &Stmt) -> Vec<Part<'_>> {
    match statement {
        Stmt::FunctionDef(function) => {
            let mut parts: Vec<_> =
                function.decorator_list.iter().map(|it| Part::Expression(&it.expression)).collect();
            parts.extend([
                Part::Text(function.name.as_str()),
                Part::Parameters(&function.parameters),
                Part::expression(function.returns.as_deref()),
            ]);
            parts
        }
        Stmt::ClassDef(class) => {
            let mut parts: Vec<_> =
                class.decorator_list.iter().map(|it| Part::Expression(&it.expression)).collect();
            parts.push(Part::Text(class.name.as_str()));
            // `class A()` is `class A`.
            let arguments =
                class.arguments.as_deref().filter(|it| !it.args.is_empty() || !it.keywords.is_empty());
            parts.push(arguments.map_or(Part::Nothing, Part::Arguments));
            parts
        }
        _ => Vec::new(),
    }
}

fn import_key(word: &str, module: &str, alias: &Alias) -> Key {
    let local = alias.asname.as_ref().map(|name| name.as_str());
    keys::plain(&[Part::Text(word), Part::Text(module), Part::Text(alias.name.as_str()), Part::text(local)])
}
