//! Tests that a patch makes say less than they did: skipped, or without what they asserted.

use std::collections::BTreeMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};

use super::funnel::{is_python, is_test};
use crate::record::outcome::Outcome;
use crate::score::text::parse;
use crate::score::tree;

/// Beginnings of names of what asserts when it is called.
const ASSERTING: [&str; 7] = ["assert", "check", "verify", "expect", "raises", "warns", "fail"];
/// Statements of a test that are counted.
const MOST: usize = 10_000;

/// What a test function says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Said {
    assertions: usize,
    statements: usize,
}

/// Whether a patch empties tests or makes them skip: a case that must pass is skipped or is expected to fail, or a test that
/// asserted something is still there under its name and file, shorter, and asserts nothing.
pub fn weakens<'a>(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
    changed: impl Iterator<Item = &'a str>,
    ends: impl Iterator<Item = Option<Outcome>>,
) -> bool {
    let is_skipped = |end: Option<Outcome>| matches!(end, Some(Outcome::Skipped | Outcome::XFailed));
    ends.into_iter().any(is_skipped)
        || changed.filter(|path| is_python(path) && is_test(path)).any(|path| {
            before.get(path).zip(after.get(path)).is_some_and(|(before, after)| is_emptied(before, after))
        })
}

/// Whether a test of a file has lost all that it asserted, and statements with it.
fn is_emptied(before: &str, after: &str) -> bool {
    let (Some(before), Some(after)) = (tests(before), tests(after)) else { return false };
    before.iter().any(|(name, was)| {
        let is = after.get(name);
        was.assertions > 0 && is.is_some_and(|is| is.assertions == 0 && is.statements <= was.statements)
    })
}

/// The test functions of a file by their names in classes; none where it cannot be read.
fn tests(text: &str) -> Option<BTreeMap<String, Said>> {
    parse(text, |parsed| {
        let mut found = BTreeMap::new();
        add(parsed.body, "", &mut found);
        found
    })
    .ok()
}

fn add(body: &[Stmt], place: &str, found: &mut BTreeMap<String, Said>) {
    for statement in body {
        match statement {
            Stmt::ClassDef(class) => add(&class.body, &format!("{place}{}.", class.name), found),
            Stmt::FunctionDef(function) if function.name.starts_with("test") => {
                let mut assertions = Assertions(0);
                assertions.visit_body(&function.body);
                let said = Said { assertions: assertions.0, statements: tree::count(&function.body, MOST) };
                found.insert(format!("{place}{}", function.name), said);
            }
            Stmt::FunctionDef(_) => {}
            other => tree::bodies(other).into_iter().for_each(|inner| add(inner, place, found)),
        }
    }
}

struct Assertions(usize);

impl<'a> Visitor<'a> for Assertions {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::Assert(one) = statement {
            // What is always true asserts nothing.
            self.0 += usize::from(!is_true(&one.test));
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            let name = match &*call.func {
                Expr::Name(name) => name.id.as_str(),
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => "",
            };
            let name = name.trim_start_matches('_');
            self.0 += usize::from(ASSERTING.iter().any(|start| name.starts_with(start)));
        }
        visitor::walk_expr(self, expression);
    }
}

fn is_true(test: &Expr) -> bool {
    match test {
        Expr::BooleanLiteral(literal) => literal.value,
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests_of_it {
    use super::*;

    const BEFORE: &str = "class TestA:\n    def test_a(self):\n        x = f()\n        assert x == 1\n        with raises(E):\n            g()\n\
                          def test_b():\n    assert_called()\ndef test_c():\n    f()\n";

    fn of(after: &str, ends: &[Option<Outcome>]) -> bool {
        let tree = |text: &str| BTreeMap::from([("t/test_a.py".to_owned(), text.to_owned())]);
        weakens(&tree(BEFORE), &tree(after), ["t/test_a.py"].into_iter(), ends.iter().copied())
    }

    #[test]
    fn tests_that_are_emptied_or_skipped_are_found_and_others_are_not() {
        assert!(!of(BEFORE, &[Some(Outcome::Passed), Some(Outcome::Failed), None]));
        assert!(of(BEFORE, &[Some(Outcome::Passed), Some(Outcome::Skipped)]));
        assert!(of(BEFORE, &[Some(Outcome::XFailed)]));
        assert!(of(&BEFORE.replace("    assert_called()", "    pass"), &[]));
        assert!(of(&BEFORE.replace("    assert_called()", "    assert True"), &[]));
        let emptied = "        assert x == 1\n        with raises(E):\n            g()\n";
        assert!(of(&BEFORE.replace(emptied, ""), &[]));
        assert!(!of(&BEFORE.replace("x == 1", "x == 2"), &[]), "what it asserts is the suite's");
        assert!(!of(&BEFORE.replace("test_b", "test_renamed"), &[]), "names are `pass_set`'s");
        assert!(
            !of(&BEFORE.replace("    assert_called()", "    a = f()\n    b = a\n    use(b)"), &[]),
            "longer"
        );
        assert!(!of(&BEFORE.replace("    f()\n", "    pass\n"), &[]), "it asserted nothing before");
        assert!(!of("def broken(:\n", &[]), "the suite says it");
    }

    #[test]
    fn only_test_files_are_looked_at() {
        let tree = |text: &str| BTreeMap::from([("a.py".to_owned(), text.to_owned())]);
        let none = std::iter::empty;
        assert!(!weakens(&tree(BEFORE), &tree("def test_b():\n    pass\n"), ["a.py"].into_iter(), none()));
    }
}
