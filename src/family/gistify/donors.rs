//! What other calls of a file hand over: with it, what is called does something that the file knows of.

use std::collections::BTreeMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::uses::{called, is_written_out};
use crate::score::text::Parsed;

/// Of one call, how many others lend it what they hand over.
const MOST: usize = 4;

/// How something is called: its last name, the number of positional arguments, and the names of the others.
type Form<'a> = (&'a str, usize, Vec<&'a str>);

/// The calls of a file, by their form: of each argument where it is, if that is a constant.
#[derive(Default)]
pub(super) struct Donors<'a> {
    calls: BTreeMap<Form<'a>, Vec<Vec<Option<TextRange>>>>,
    but: Option<TextRange>,
}

impl<'a> Donors<'a> {
    /// Those of a file but for one of its functions: a table of what a test itself hands over is soon written.
    pub(super) fn of(body: &'a [Stmt], but: TextRange) -> Self {
        let mut donors = Donors { but: Some(but), ..Donors::default() };
        donors.visit_body(body);
        donors
    }

    /// For each other call of this form that hands over other constants: what takes which place in this one.
    pub(super) fn lend(&self, parsed: Parsed<'a>, call: &'a ExprCall) -> Vec<Vec<(TextRange, String)>> {
        let text = |range: TextRange| &parsed.text[range.start().to_usize()..range.end().to_usize()];
        let Some((form, own)) = form_of(call) else { return Vec::new() };
        let mut found: Vec<Vec<(TextRange, String)>> = Vec::new();
        for other in self.calls.get(&form).into_iter().flatten() {
            let both = own.iter().zip(other).filter_map(|(own, other)| own.zip(*other));
            let differ = both.filter(|(own, other)| text(*own) != text(*other));
            let changes: Vec<_> = differ.map(|(own, other)| (own, text(other).to_owned())).collect();
            if !changes.is_empty() && !found.contains(&changes) && found.len() < MOST {
                found.push(changes);
            }
        }
        found
    }
}

/// The form of a call, and its arguments in the order of the form; none where some are unpacked.
fn form_of(call: &ExprCall) -> Option<(Form<'_>, Vec<Option<TextRange>>)> {
    let name = called(call)?;
    let arguments = &call.arguments;
    if arguments.args.iter().any(Expr::is_starred_expr) {
        return None;
    }
    let mut named: Vec<(&str, &Expr)> = Vec::new();
    for keyword in &arguments.keywords {
        named.push((keyword.arg.as_deref()?, &keyword.value));
    }
    named.sort_unstable_by_key(|(name, _)| *name);
    let values = arguments.args.iter().chain(named.iter().map(|(_, value)| *value));
    let places = values.map(|value| is_written_out(value).then(|| value.range())).collect();
    Some(((name, arguments.args.len(), named.iter().map(|(name, _)| *name).collect()), places))
}

impl<'a> Visitor<'a> for Donors<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.but.is_some_and(|but| but.contains_range(expression.range())) {
            return;
        }
        if let Expr::Call(call) = expression
            && let Some((form, places)) = form_of(call)
            && places.iter().any(Option::is_some)
        {
            self.calls.entry(form).or_default().push(places);
        }
        visitor::walk_expr(self, expression);
    }
}
