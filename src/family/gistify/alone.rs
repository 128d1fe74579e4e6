//! A file of tests without the other tests: what is left takes a tenth of the time to import.

use std::collections::HashMap;

use ruff_python_ast::Stmt;
use ruff_text_size::{Ranged, TextRange};

use super::locate::{self, Found, TestName};
use crate::score::text::{self, Unreadable};

/// The file without test functions and test classes that nothing in it names, but for one test. None where the file does not
/// define that one. Whether it shows the same there has to be tried.
///
/// # Errors
/// The file is not Python.
pub fn alone(file: &str, test: &TestName) -> Result<Option<String>, Unreadable> {
    text::parse(file, |parsed| {
        let Found::Function { definition, .. } = locate::locate(parsed.body, test) else { return None };
        let mut named: HashMap<&str, usize> = HashMap::new();
        for word in parsed.text.split(|letter: char| letter != '_' && !letter.is_alphanumeric()) {
            *named.entry(word).or_default() += 1;
        }
        let is_unnamed = |name: &str| named.get(name) == Some(&1);
        let mut others = Vec::new();
        collect(parsed.body, definition.range(), test, &is_unnamed, &mut others);
        let mut left = String::new();
        let mut at = 0;
        for range in others {
            let (first, last) = parsed.lines.of_node(range);
            let start = parsed.lines.start(first).unwrap_or_default();
            left.push_str(&parsed.text[at..start.max(at)]);
            at = parsed.lines.start(last + 1).unwrap_or(parsed.text.len());
        }
        left.push_str(&parsed.text[at..]);
        Some(left)
    })
}

/// Places of the other tests, in the order of the text.
fn collect(
    body: &[Stmt],
    definition: TextRange,
    test: &TestName,
    is_unnamed: &impl Fn(&str) -> bool,
    others: &mut Vec<TextRange>,
) {
    for statement in body {
        let has_it = statement.range().contains_range(definition);
        match statement {
            Stmt::FunctionDef(function)
                if !has_it && function.name.starts_with("test") && is_unnamed(&function.name) =>
            {
                others.push(statement.range());
            }
            Stmt::ClassDef(class) if has_it => collect(&class.body, definition, test, is_unnamed, others),
            Stmt::ClassDef(class) => {
                let is_tests =
                    class.name.starts_with("Test") && !test.classes.contains(&class.name.to_string());
                if is_tests && is_unnamed(&class.name) {
                    others.push(statement.range());
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
import pytest

def helper(): return 1

@pytest.mark.x
def test_a():
    assert helper()

def test_b(): pass

test_c = test_b

class Base:
    def test_d(self): pass

class TestOne(Base):
    @pytest.fixture
    def own(self): pass

    def test_e(self, own): pass
    @pytest.mark.x
    def test_f(self): pass

class TestTwo:
    def test_g(self): pass
";

    fn left(name: &str) -> Vec<String> {
        let text = alone(FILE, &name.parse().unwrap()).unwrap().expect("is defined");
        text::parse(&text, |_| ()).expect("is Python");
        let defined = |line: &str| {
            line.trim().strip_prefix("def ").and_then(|it| it.split('(').next().map(str::to_owned))
        };
        text.lines().filter_map(defined).collect()
    }

    #[test]
    fn what_nothing_names_goes_and_the_rest_stays() {
        assert_eq!(left("test_a"), ["helper", "test_a", "test_b", "test_d"]);
        assert_eq!(left("TestOne::test_f"), ["helper", "test_b", "test_d", "own", "test_f"]);
        assert_eq!(left("TestOne::test_d"), ["helper", "test_b", "test_d", "own", "test_e", "test_f"]);
        assert_eq!(alone(FILE, &"test_z".parse().unwrap()).unwrap(), None);
        assert!(!alone(FILE, &"test_a".parse().unwrap()).unwrap().unwrap().contains("TestTwo"));
    }
}
