//! What a Python file says of commands: whether it is one, which words its programs know, and with which arguments tests
//! call some.

mod values;

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, Decorator, Expr, ExprCall, Number, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::{LONGEST, STACK, depth};
pub use values::Argument;
use values::{Scope, Value};

/// Deepest chain of attributes that is written out.
const LONGEST_CHAIN: usize = 8;
/// How often the body of one parametrized function is read, and how often those of one file are.
const CASES: (usize, usize) = (24, 400);
/// Invocations of one file: more are not looked at.
const MOST: usize = 2_000;
/// Parts of names of functions that run a program.
const RUNNING: [&str; 8] = ["run", "invoke", "cli", "main", "cmd", "command", "exec", "call"];
/// Calls that are given texts which may look like options, and run nothing.
const OTHERS: [&str; 6] = ["float", "int", "Decimal", "complex", "Fraction", "param"];
/// Names of the status with which a program ends.
const STATUS: [&str; 6] = ["exit_code", "returncode", "return_code", "exit_status", "status", "code"];
/// Calls that declare an option, or a subcommand, of a program.
const DECLARING: [&str; 9] = [
    "add_argument",
    "add_option",
    "option",
    "Option",
    "add_parser",
    "command",
    "group",
    "Subcommand",
    "make_option",
];

/// A call that passes arguments, which are written out, to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// 1-based.
    pub line: u32,
    pub program: Program,
    pub arguments: Vec<Argument>,
    /// What is typed, where the call says it.
    pub input: Option<String>,
    /// The status that the test expects, where it says one.
    pub exit: Option<u8>,
}

/// What an invocation runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A function or an object, by the last part of its name.
    Object(String),
    /// `sys.executable` with arguments as they are.
    Interpreter,
    /// A program by its name.
    Named(String),
    /// A function whose arguments may be those of a program.
    Helper,
}

/// What the parameters of a function mean in one of its cases.
type Case = Vec<(String, Option<Value>)>;

/// What is found in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// The line of `if __name__ == "__main__":`.
    pub main_guard: Option<u32>,
    /// The line of the first call of `print` on the level of the module.
    pub prints: Option<u32>,
    pub invocations: Vec<Invocation>,
    /// Texts `name = module:object` of lists in `entry_points=…`, each with its line.
    pub scripts: Vec<(u32, String)>,
    /// Options and subcommands that the file declares.
    pub vocabulary: BTreeSet<String>,
}

/// Reads a file; nothing is found in one that is not Python, or too long or too deep.
pub fn commands(text: &str) -> Commands {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > LONGEST || depth::is_too_deep(text) {
        return Commands::default();
    }
    stacker::grow(STACK, || {
        let Ok(parsed) = ruff_python_parser::parse_module(text) else { return Commands::default() };
        let module = parsed.into_syntax();
        let mut finder = Finder {
            lines: std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect(),
            scope: Scope::new(),
            cases: CASES.1,
            latest: None,
            is_asserted: false,
            found: Commands::default(),
        };
        for statement in &module.body {
            if let Stmt::If(branch) = statement
                && is_main_guard(&branch.test)
            {
                finder.found.main_guard.get_or_insert_with(|| line_of(text, branch.start().to_usize()));
            }
            if is_print(statement) {
                finder.found.prints.get_or_insert_with(|| line_of(text, statement.start().to_usize()));
            }
            finder.visit_stmt(statement);
        }
        finder.found
    })
}

fn line_of(text: &str, at: usize) -> u32 {
    u32::try_from(text[..at].matches('\n').count() + 1).unwrap_or(u32::MAX)
}

fn is_print(statement: &Stmt) -> bool {
    let Stmt::Expr(statement) = statement else { return false };
    let Expr::Call(call) = &*statement.value else { return false };
    matches!(&*call.func, Expr::Name(name) if name.id == "print")
}

fn is_main_guard(test: &Expr) -> bool {
    let Expr::Compare(compare) = test else { return false };
    let is_name = |side: &Expr| matches!(side, Expr::Name(name) if name.id == "__name__");
    let is_main = |side: &Expr| literal(side).as_deref() == Some("__main__");
    let [right] = &compare.comparators[..] else { return false };
    compare.ops[..] == [CmpOp::Eq]
        && (is_name(&compare.left) && is_main(right) || is_main(&compare.left) && is_name(right))
}

fn literal(expression: &Expr) -> Option<String> {
    match expression {
        Expr::StringLiteral(text) => Some(text.value.to_str().to_owned()),
        _ => None,
    }
}

/// A number that is written out, of those that a process can end with.
fn number(expression: &Expr) -> Option<u8> {
    match expression {
        Expr::NumberLiteral(number) => match &number.value {
            Number::Int(number) => number.as_u8(),
            Number::Float(_) | Number::Complex { .. } => None,
        },
        _ => None,
    }
}

/// `a.b.c` as it is written; none for what is not a chain of names.
fn chain(expression: &Expr) -> Option<String> {
    links(expression, &mut 0)
}

/// `so_far` counts the links of all calls of the chain.
fn links(expression: &Expr, so_far: &mut usize) -> Option<String> {
    let (mut parts, mut at) = (Vec::new(), expression);
    while let Expr::Attribute(attribute) = at {
        parts.push(attribute.attr.as_str());
        at = &attribute.value;
        *so_far += 1;
        if *so_far > LONGEST_CHAIN {
            return None;
        }
    }
    match at {
        Expr::Name(name) => parts.push(name.id.as_str()),
        // `CliRunner().invoke`
        Expr::Call(call) if !parts.is_empty() => {
            return links(&call.func, so_far).map(|name| {
                parts.push("()");
                let rest: Vec<&str> = parts.iter().rev().copied().collect();
                format!("{name}{}", rest.join("."))
            });
        }
        _ => return None,
    }
    parts.reverse();
    Some(parts.join("."))
}

/// What a chain of names calls, by its last part.
fn object(name: &str) -> Program {
    Program::Object(name.rsplit('.').next().unwrap_or(name).to_owned())
}

struct Finder {
    /// Where each line begins.
    lines: Vec<usize>,
    scope: Scope,
    /// How many bodies of parametrized functions may still be read.
    cases: usize,
    /// The invocation that the statements of this function are about, and the name that its result has.
    latest: Option<(usize, Option<String>)>,
    /// Whether what is read is asserted.
    is_asserted: bool,
    found: Commands,
}

impl Finder {
    fn line(&self, at: usize) -> u32 {
        u32::try_from(self.lines.partition_point(|begin| *begin <= at)).unwrap_or(u32::MAX)
    }

    fn call(&mut self, call: &ExprCall) {
        if self.found.invocations.len() >= MOST {
            return;
        }
        let name = chain(&call.func).unwrap_or_default();
        let last = name.rsplit('.').next().unwrap_or(&name);
        let positional = &call.arguments.args;
        if let ("assertEqual", [left, right, ..]) = (last, &positional[..]) {
            let before = std::mem::replace(&mut self.is_asserted, true);
            self.status(left, right);
            self.is_asserted = before;
            return;
        }
        self.latest = None;
        if name.is_empty() {
            return;
        }
        let value = |expression: &Expr| self.scope.value(expression).and_then(Value::list);
        let (program, arguments) = match last {
            "invoke" => {
                let program = positional.first().and_then(chain);
                let given = positional.get(1).or(call.arguments.find_keyword("args").map(|one| &one.value));
                match (program, given) {
                    (Some(program), Some(given)) => (object(&program), value(given)),
                    _ => (Program::Helper, self.words_of(call)),
                }
            }
            "run" | "check_output" | "check_call" | "call" | "Popen" => match self.started(call) {
                Some((program, words)) => (program, Some(words)),
                None => (Program::Helper, self.words_of(call)),
            },
            "main" | "cli" | "run_main" => {
                let named = call.arguments.keywords.iter().filter(|one| {
                    matches!(one.arg.as_ref().map(ruff_python_ast::Identifier::as_str), Some("args" | "argv"))
                });
                let all = positional.iter().chain(named.map(|one| &one.value));
                let mut lists = all.filter_map(value);
                let given = lists.next().filter(|_| lists.next().is_none());
                (object(&name), given)
            }
            _ if DECLARING.contains(&last) || OTHERS.contains(&last) => return,
            _ => {
                let words = self.words_of(call);
                let lower = last.to_lowercase();
                let runs = RUNNING.iter().any(|part| lower.contains(part));
                let is_option = |words: &Vec<Argument>| matches!(words.first(), Some(Argument::Text(word)) if word.len() > 1 && word.starts_with('-'));
                (Program::Helper, words.filter(|words| runs || is_option(words)))
            }
        };
        let Some(arguments) = arguments.filter(|words| program != Program::Helper || !words.is_empty())
        else {
            return;
        };
        let typed = ["input", "stdin"].into_iter().find_map(|name| call.arguments.find_keyword(name));
        let input = typed.and_then(|keyword| self.scope.text(&keyword.value));
        let line = self.line(call.start().to_usize());
        let status =
            STATUS.into_iter().find_map(|name| call.arguments.find_keyword(name)).map(|one| &one.value);
        let exit = status.and_then(number);
        let invocation = Invocation { line, program, arguments, input, exit };
        let all = &mut self.found.invocations;
        let is_it = |one: &Invocation| {
            (one.line, &one.program, &one.arguments, &one.input)
                == (invocation.line, &invocation.program, &invocation.arguments, &invocation.input)
        };
        let at = all.iter().position(is_it).unwrap_or(all.len());
        self.latest = Some((at, None));
        if at == all.len() {
            all.push(invocation);
        }
    }

    /// `assert result.exit_code == 1` is about the invocation before it, whose result is called so.
    fn status(&mut self, left: &Expr, right: &Expr) {
        let Expr::Attribute(left) = left else { return };
        let Some((at, name)) = &self.latest else { return };
        let is_of_it = match &*left.value {
            Expr::Name(asked) => name.as_deref() == Some(asked.id.as_str()),
            Expr::Call(_) => name.is_none(),
            _ => false,
        };
        if !self.is_asserted || !is_of_it || !STATUS.contains(&left.attr.as_str()) {
            return;
        }
        if let Some(one) = self.found.invocations.get_mut(*at) {
            one.exit = one.exit.or(number(right));
        }
    }

    /// The words that a call passes on: those of its first list, or all that it is given.
    fn words_of(&self, call: &ExprCall) -> Option<Vec<Argument>> {
        let positional = &call.arguments.args;
        if let Some(list) = positional.first().and_then(|first| self.scope.value(first)).and_then(Value::list)
        {
            return Some(list);
        }
        positional.iter().map(|one| self.scope.value(one).and_then(Value::one)).collect()
    }

    /// The program that a call starts as a process, and its arguments.
    fn started(&self, call: &ExprCall) -> Option<(Program, Vec<Argument>)> {
        let elements = match call.arguments.args.first()? {
            Expr::List(list) => &list.elts,
            Expr::Tuple(tuple) => &tuple.elts,
            _ => return None,
        };
        let [first, rest @ ..] = &elements[..] else { return None };
        let program = match chain(first).as_deref() {
            Some("sys.executable") => Program::Interpreter,
            // A list that begins with an option is for a helper.
            _ => Program::Named(self.scope.text(first).filter(|name| !name.starts_with('-'))?),
        };
        let mut words = Vec::new();
        for one in rest {
            match one {
                Expr::Starred(starred) => words.extend(self.scope.value(&starred.value)?.list()?),
                _ => words.push(self.scope.value(one)?.one()?),
            }
        }
        Some((program, words))
    }

    /// An option that is declared as its name and a table: `("list-msgs", {…})`.
    fn declared_by_name(&mut self, elements: &[Expr]) {
        if let [name, Expr::Dict(_)] = elements
            && let Some(name) = literal(name).filter(|name| !name.starts_with('-'))
        {
            self.found.vocabulary.insert(format!("--{name}"));
        }
    }

    /// Options and subcommands that a call declares.
    fn declared(&mut self, call: &ExprCall) {
        let Some(name) = chain(&call.func) else { return };
        if DECLARING.contains(&name.rsplit('.').next().unwrap_or(&name)) {
            let given = call.arguments.args.iter().filter_map(literal);
            let words = given.flat_map(|text| text.split('/').map(str::to_owned).collect::<Vec<_>>());
            self.found.vocabulary.extend(words.filter(|word| !word.is_empty()));
        }
    }

    /// A function that is a subcommand by its decorator.
    fn subcommand(&mut self, function: &StmtFunctionDef) {
        let is_command = |decorator: &Decorator| {
            let called = match &decorator.expression {
                Expr::Call(call) => &*call.func,
                other => other,
            };
            chain(called).is_some_and(|name| matches!(name.rsplit('.').next(), Some("command" | "group")))
        };
        if function.decorator_list.iter().any(is_command) {
            self.found.vocabulary.insert(function.name.as_str().replace('_', "-"));
        }
    }

    fn scripts(&mut self, call: &ExprCall) {
        let Some(keyword) = call.arguments.find_keyword("entry_points") else { return };
        let Expr::Dict(points) = &keyword.value else { return };
        for item in points
            .items
            .iter()
            .filter(|item| item.key.as_ref().and_then(literal).as_deref() == Some("console_scripts"))
        {
            let line = self.line(item.value.start().to_usize());
            let list = self.scope.value(&item.value).and_then(Value::list);
            self.found.scripts.extend(list.into_iter().flatten().filter_map(|one| match one {
                Argument::Text(text) => Some((line, text)),
                Argument::File(_) => None,
            }));
        }
    }

    /// What the parameters of a function mean in each of its cases; one case without meanings where nothing is said.
    fn cases(&self, function: &StmtFunctionDef) -> Vec<Case> {
        let mut all = vec![Vec::new()];
        for decorator in &function.decorator_list {
            let Some(rows) = self.rows(decorator) else { continue };
            let both = all.iter().flat_map(|one| rows.iter().map(move |row| [&one[..], &row[..]].concat()));
            all = both.take(CASES.0).collect();
        }
        all
    }

    /// What `@pytest.mark.parametrize(names, values)` says, row by row.
    fn rows(&self, decorator: &Decorator) -> Option<Vec<Case>> {
        let Expr::Call(call) = &decorator.expression else { return None };
        if chain(&call.func)?.rsplit('.').next() != Some("parametrize") {
            return None;
        }
        let [names, values, ..] = &call.arguments.args[..] else { return None };
        let names: Vec<String> = match self.scope.value(names)? {
            Value::One(Argument::Text(text)) => text.split(',').map(|name| name.trim().to_owned()).collect(),
            Value::One(Argument::File(_)) => return None,
            Value::List(list) => list
                .into_iter()
                .filter_map(|one| match one {
                    Argument::Text(text) => Some(text),
                    Argument::File(_) => None,
                })
                .collect(),
        };
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let rows = elements(values)?.iter().take(CASES.0);
        let rows = rows.map(|row| {
            let of_param = match row {
                Expr::Call(call) if chain(&call.func).is_some_and(|name| name.ends_with("param")) => {
                    Some(&call.arguments.args[..])
                }
                _ => None,
            };
            let row = match (of_param, &names[..]) {
                (Some(given), _) => given.iter().collect::<Vec<_>>(),
                (None, [_]) => vec![row],
                (None, _) => elements(row).unwrap_or_default().iter().collect(),
            };
            names.iter().cloned().zip(row.into_iter().map(|one| self.scope.value(one))).collect()
        });
        Some(rows.collect())
    }
}

fn elements(expression: &Expr) -> Option<&[Expr]> {
    match expression {
        Expr::List(list) => Some(&list.elts),
        Expr::Tuple(tuple) => Some(&tuple.elts),
        _ => None,
    }
}

impl<'a> Visitor<'a> for Finder {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.subcommand(function);
                function.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
                for case in self.cases(function) {
                    let Some(left) = self.cases.checked_sub(1).filter(|_| !case.is_empty()).or(
                        // A body without cases is read in any case.
                        case.is_empty().then_some(self.cases),
                    ) else {
                        break;
                    };
                    self.cases = left;
                    self.scope.enter();
                    function.parameters.iter().for_each(|one| self.scope.bind(one.name(), None));
                    for (name, value) in case {
                        self.scope.bind(&name, value);
                    }
                    self.latest = None;
                    self.visit_body(&function.body);
                    self.latest = None;
                    self.scope.leave();
                }
            }
            Stmt::Assign(assign) => {
                visitor::walk_stmt(self, statement);
                let value = self.scope.value(&assign.value);
                for target in &assign.targets {
                    if let Expr::Name(name) = target {
                        self.scope.bind(name.id.as_str(), value.clone());
                        // The result of a call that was read a moment ago.
                        if let (Some((_, called)), Expr::Call(_)) = (&mut self.latest, &*assign.value) {
                            called.get_or_insert_with(|| name.id.to_string());
                        }
                    }
                }
            }
            Stmt::Assert(_) => {
                self.is_asserted = true;
                visitor::walk_stmt(self, statement);
                self.is_asserted = false;
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        visitor::walk_expr(self, expression);
        match expression {
            Expr::Call(call) => {
                self.call(call);
                self.declared(call);
                self.scripts(call);
            }
            Expr::Compare(compare) => {
                if let ([CmpOp::Eq], [right]) = (&compare.ops[..], &compare.comparators[..]) {
                    self.status(&compare.left, right);
                }
            }
            Expr::Tuple(tuple) => self.declared_by_name(&tuple.elts),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
