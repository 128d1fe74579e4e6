//! What a Python file says of commands: whether it is one, and with which arguments tests call some.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use super::{LONGEST, STACK, depth};

/// Deepest chain of attributes that is written out.
const LONGEST_CHAIN: usize = 8;

/// A call that passes a literal list of arguments to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// 1-based.
    pub line: u32,
    pub program: Program,
    pub arguments: Vec<String>,
    /// What is typed, where the call says it.
    pub input: Option<String>,
}

/// What an invocation runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A function or an object, by the last part of its name.
    Object(String),
    /// `sys.executable` with arguments as they are.
    Interpreter,
}

/// What is found in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// The line of `if __name__ == "__main__":`.
    pub main_guard: Option<u32>,
    pub invocations: Vec<Invocation>,
    /// Texts `name = module:object` of lists in `entry_points=…`, each with its line.
    pub scripts: Vec<(u32, String)>,
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
        let mut found = Finder { text, line: 1, at: 0, found: Commands::default() };
        for statement in &module.body {
            if let Stmt::If(branch) = statement
                && is_main_guard(&branch.test)
            {
                found.found.main_guard.get_or_insert_with(|| line_of(text, branch.start().to_usize()));
            }
            found.visit_stmt(statement);
        }
        found.found
    })
}

fn line_of(text: &str, at: usize) -> u32 {
    u32::try_from(text[..at].matches('\n').count() + 1).unwrap_or(u32::MAX)
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

/// The texts of a list or tuple of literals.
fn literals(expression: &Expr) -> Option<Vec<String>> {
    elements(expression)?.iter().map(literal).collect()
}

fn elements(expression: &Expr) -> Option<&[Expr]> {
    match expression {
        Expr::List(list) => Some(&list.elts),
        Expr::Tuple(tuple) => Some(&tuple.elts),
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

struct Finder<'a> {
    text: &'a str,
    /// The line of a place that was looked up, so that the text is gone through once.
    line: u32,
    at: usize,
    found: Commands,
}

impl Finder<'_> {
    fn line(&mut self, at: usize) -> u32 {
        if at < self.at {
            (self.line, self.at) = (1, 0);
        }
        self.line += u32::try_from(self.text[self.at..at].matches('\n').count()).unwrap_or(0);
        self.at = at;
        self.line
    }

    fn call(&mut self, call: &ExprCall) {
        let Some(name) = chain(&call.func) else { return };
        let last = name.rsplit('.').next().unwrap_or(&name);
        let positional = &call.arguments.args;
        let input = call.arguments.find_keyword("input").and_then(|keyword| literal(&keyword.value));
        let (program, arguments) = match last {
            "invoke" => {
                let program = positional.first().and_then(chain);
                let given = positional.get(1).or(call.arguments.find_keyword("args").map(|one| &one.value));
                (program.as_deref().map(object), given.and_then(literals))
            }
            "run" | "check_output" | "check_call" | "call" | "Popen" => {
                let words = positional.first().and_then(elements);
                let Some([first, rest @ ..]) = words else { return };
                if chain(first).as_deref() != Some("sys.executable") {
                    return;
                }
                (Some(Program::Interpreter), rest.iter().map(literal).collect())
            }
            "main" | "cli" | "run_main" => {
                let given = positional.first().filter(|_| positional.len() == 1).and_then(literals);
                (Some(object(&name)), given)
            }
            _ => return,
        };
        if let (Some(program), Some(arguments)) = (program, arguments) {
            let line = self.line(call.start().to_usize());
            self.found.invocations.push(Invocation { line, program, arguments, input });
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
            let texts = literals(&item.value).into_iter().flatten();
            self.found.scripts.extend(texts.map(|text| (line, text)));
        }
    }
}

impl<'a> Visitor<'a> for Finder<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            self.call(call);
            self.scripts(call);
        }
        visitor::walk_expr(self, expression);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_lists_that_tests_pass_to_programs_are_found() {
        let text = r#"
def test_cli():
    CliRunner().invoke(cli.cli, ["tables", "a.db"], input="x")
    runner.invoke(main, args=("b",))
    main(["c", "--d"])
    subprocess.run([sys.executable, "-m", "shop", "e"], check=True)
    shop.main(["f"])
    runner.invoke(cli, ["g", path])
    main(sys.argv)
    main(["h"], 1)
    subprocess.run(["ls", "-l"])
"#;
        let found: Vec<(u32, String, String, Option<String>)> = commands(text)
            .invocations
            .into_iter()
            .map(|one| {
                let program = match one.program {
                    Program::Object(name) => name,
                    Program::Interpreter => "python".to_owned(),
                };
                (one.line, program, one.arguments.join(" "), one.input)
            })
            .collect();
        let one = |line, program: &str, words: &str| (line, program.to_owned(), words.to_owned(), None);
        assert_eq!(
            found,
            [
                (3, "cli".to_owned(), "tables a.db".to_owned(), Some("x".to_owned())),
                one(4, "main", "b"),
                one(5, "main", "c --d"),
                one(6, "python", "-m shop e"),
                one(7, "main", "f"),
            ]
        );
    }

    #[test]
    fn a_main_guard_is_one_on_the_level_of_the_module() {
        assert_eq!(commands("x = 1\nif __name__ == '__main__':\n    main()\n").main_guard, Some(2));
        assert_eq!(commands("if '__main__' == __name__: pass\n").main_guard, Some(1));
        for text in
            ["def f():\n    if __name__ == '__main__': pass\n", "if __name__ != '__main__': pass\n", "(", ""]
        {
            assert_eq!(commands(text).main_guard, None, "{text}");
        }
    }

    #[test]
    fn scripts_of_a_setup_file_are_read_where_they_are_literal() {
        let text = "setup(\n  entry_points={'console_scripts': ['a = b:c', 'd=e:f'], 'x': ['y']},\n)\nsetup(entry_points=z)\n";
        assert_eq!(commands(text).scripts, [(2, "a = b:c".to_owned()), (2, "d=e:f".to_owned())]);
    }
}
