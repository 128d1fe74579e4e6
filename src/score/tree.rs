//! Small questions to a syntax tree that several rooms ask. Statements nest at most as deep as [`super::text`] lets
//! through.

use ruff_python_ast::{ExceptHandler, Expr, ExprContext, Operator, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextSize};

/// Deepest sum of texts that is put together.
const DEEPEST_SUM: u8 = 16;

/// The bodies within a statement, in the order of the text.
pub(crate) fn bodies(statement: &Stmt) -> Vec<&[Stmt]> {
    match statement {
        Stmt::FunctionDef(function) => vec![&function.body],
        Stmt::ClassDef(class) => vec![&class.body],
        Stmt::For(each) => vec![&each.body, &each.orelse],
        Stmt::While(each) => vec![&each.body, &each.orelse],
        Stmt::With(with) => vec![&with.body],
        Stmt::If(branch) => {
            let clauses = branch.elif_else_clauses.iter().map(|clause| &*clause.body);
            std::iter::once(&*branch.body).chain(clauses).collect()
        }
        Stmt::Match(choice) => choice.cases.iter().map(|case| &*case.body).collect(),
        Stmt::Try(attempt) => {
            let handlers =
                attempt.handlers.iter().map(|ExceptHandler::ExceptHandler(handler)| &*handler.body);
            let mut found: Vec<&[Stmt]> = vec![&attempt.body];
            found.extend(handlers);
            found.extend([&*attempt.orelse, &*attempt.finalbody]);
            found
        }
        _ => Vec::new(),
    }
}

/// How many statements there are, up to a number.
pub(crate) fn count(body: &[Stmt], most: usize) -> usize {
    let mut count = 0;
    for statement in body {
        if count >= most {
            break;
        }
        count += 1;
        for inner in bodies(statement) {
            count += self::count(inner, most.saturating_sub(count));
        }
    }
    count
}

/// Functions that are not inside another one, with their names (`Class.method`), in the order of the text.
pub(crate) fn functions(body: &[Stmt]) -> Vec<(String, &StmtFunctionDef)> {
    fn walk<'a>(body: &'a [Stmt], prefix: &str, found: &mut Vec<(String, &'a StmtFunctionDef)>) {
        for statement in body {
            match statement {
                Stmt::FunctionDef(function) => found.push((format!("{prefix}{}", function.name), function)),
                Stmt::ClassDef(class) => walk(&class.body, &format!("{prefix}{}.", class.name), found),
                _ => bodies(statement).into_iter().for_each(|inner| walk(inner, prefix, found)),
            }
        }
    }
    let mut found = Vec::new();
    walk(body, "", &mut found);
    found
}

/// The docstring of a body: a text (no f-string, no bytes) as its first statement.
pub(crate) fn docstring(body: &[Stmt]) -> Option<&str> {
    let Some(Stmt::Expr(first)) = body.first() else { return None };
    first.value.as_string_literal_expr().map(|text| text.value.to_str())
}

/// A body without its docstring.
pub(crate) fn without_docstring(body: &[Stmt]) -> &[Stmt] {
    &body[usize::from(docstring(body).is_some())..]
}

/// Whether a statement is nothing but a text: a docstring, or one that stands where none is looked for.
pub(crate) fn is_text(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(alone) if alone.value.is_string_literal_expr())
}

/// Whether something is stored to it or deleted from it, by whatever statement: an assignment, a loop, a comprehension.
/// A tuple of targets is none itself: each of its parts is.
pub(crate) fn is_target(expression: &Expr) -> bool {
    let context = match expression {
        Expr::Name(name) => name.ctx,
        Expr::Attribute(attribute) => attribute.ctx,
        Expr::Subscript(subscript) => subscript.ctx,
        _ => return false,
    };
    matches!(context, ExprContext::Store | ExprContext::Del)
}

/// Whether the interpreter may or may not report a line for it: `pass`, constants, declarations.
pub(crate) fn is_free(statement: &Stmt) -> bool {
    match statement {
        Stmt::Pass(_) | Stmt::Global(_) | Stmt::Nonlocal(_) => true,
        Stmt::AnnAssign(assign) => assign.value.is_none(),
        Stmt::Expr(alone) => matches!(
            &*alone.value,
            Expr::NumberLiteral(_)
                | Expr::BooleanLiteral(_)
                | Expr::NoneLiteral(_)
                | Expr::EllipsisLiteral(_)
                | Expr::BytesLiteral(_)
        ),
        _ => false,
    }
}

/// Where the keyword of a definition stands, after its decorators.
pub(crate) fn keyword_start(statement: &Stmt) -> TextSize {
    let (decorators, inner) = match statement {
        Stmt::FunctionDef(function) => (&function.decorator_list, function.name.start()),
        Stmt::ClassDef(class) => (&class.decorator_list, class.name.start()),
        _ => return statement.start(),
    };
    // The name is on the line of its keyword unless a backslash stands between them.
    if decorators.is_empty() { statement.start() } else { inner }
}

/// Where the header of a compound statement ends: after the last thing that is evaluated in it.
pub(crate) fn header_end(statement: &Stmt) -> TextSize {
    match statement {
        Stmt::FunctionDef(function) => {
            let parameters = function.parameters.iter().map(|parameter| parameter.end());
            let all = parameters.chain(function.returns.as_ref().map(|returns| returns.end()));
            all.max().unwrap_or(function.name.end())
        }
        Stmt::ClassDef(class) => {
            let arguments = class.arguments.iter().flat_map(|arguments| {
                let keywords = arguments.keywords.iter().map(Ranged::end);
                arguments.args.iter().map(Ranged::end).chain(keywords)
            });
            arguments.max().unwrap_or(class.name.end())
        }
        Stmt::For(each) => each.iter.end(),
        Stmt::While(each) => each.test.end(),
        Stmt::With(with) => with.items.last().map_or_else(|| with.start(), Ranged::end),
        Stmt::If(branch) => branch.test.end(),
        Stmt::Match(choice) => choice.subject.end(),
        Stmt::Try(attempt) => attempt.start(),
        _ => statement.end(),
    }
}

/// The name at the root of a dotted name, and the attributes after it.
pub(crate) fn chain(expression: &Expr) -> Option<(&str, Vec<&str>)> {
    let mut attributes = Vec::new();
    let mut at = expression;
    while let Expr::Attribute(attribute) = at {
        attributes.push(attribute.attr.as_str());
        at = &attribute.value;
    }
    let Expr::Name(name) = at else { return None };
    attributes.reverse();
    Some((&name.id, attributes))
}

/// A text that is written out, in one piece or as a sum of few.
pub(crate) fn constant_text(expression: &Expr) -> Option<String> {
    fn within(expression: &Expr, depth: u8) -> Option<String> {
        match expression {
            Expr::StringLiteral(text) => Some(text.value.to_str().to_owned()),
            Expr::BinOp(sum) if sum.op == Operator::Add => {
                let depth = depth.checked_sub(1)?;
                Some(within(&sum.left, depth)? + &within(&sum.right, depth)?)
            }
            _ => None,
        }
    }
    within(expression, DEEPEST_SUM)
}
