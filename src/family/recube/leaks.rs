//! Copies of a target: files in which so many of its bodies are that the original can be read there.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use ruff_python_ast::comparable::ComparableStmt;

use super::mask::{functions, without_docstring};
use crate::score::text::parse;

/// Shorter bodies are alike by chance.
const LEAST_STATEMENTS: usize = 3;

/// The bodies of a file with at least three statements, docstrings aside, as trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bodies {
    hashes: BTreeSet<u64>,
    /// Names of their functions.
    names: BTreeSet<String>,
}

impl Bodies {
    /// Those of a file; none of one that cannot be parsed.
    pub fn of(text: &str) -> Self {
        let read = parse(text, |parsed| {
            let mut bodies = Bodies::default();
            for (name, function) in functions(parsed.body) {
                let body = without_docstring(&function.body);
                if body.len() >= LEAST_STATEMENTS {
                    let mut hasher = DefaultHasher::new();
                    for statement in body {
                        ComparableStmt::from(statement).hash(&mut hasher);
                    }
                    bodies.hashes.insert(hasher.finish());
                    bodies.names.insert(name.rsplit('.').next().unwrap_or(&name).to_owned());
                }
            }
            bodies
        });
        read.unwrap_or_default()
    }

    /// Whether a fifth of them is in another file, and two of them or all, in functions of the same names.
    pub fn are_in(&self, other: &str) -> bool {
        let enough =
            |common: usize, all: usize| common > 0 && 5 * common >= all && (common >= 2 || common == all);
        let defined = defined(other);
        let names = self.names.iter().filter(|name| defined.contains(name.as_str())).count();
        // For most files the names are enough, without a look at their trees.
        enough(names, self.names.len())
            && enough(self.hashes.intersection(&Bodies::of(other).hashes).count(), self.hashes.len())
    }
}

/// Names after `def`.
fn defined(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().map(str::trim_start);
    let names = lines.filter_map(|line| line.strip_prefix("async ").unwrap_or(line).strip_prefix("def "));
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    names.map(|rest| rest.split(|c| !is_of_name(c)).next().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, start: u32) -> String {
        format!("def {name}(a):\n    '''Doc.'''\n    b = a + {start}\n    c = b * 2\n    return c\n")
    }

    #[test]
    fn a_copy_is_found_whatever_its_layout_and_chance_is_not_a_copy() {
        let target =
            ["f", "g", "h"].map(|name| function(name, name.len() as u32 + u32::from(name.as_bytes()[0])));
        let bodies = Bodies::of(&target.concat());
        let copy = format!(
            "class Vendored:\n{}",
            target
                .concat()
                .lines()
                .map(|line| format!("  {line} # x\n").replace("''' # x", "'''"))
                .collect::<String>()
        );
        assert!(bodies.are_in(&target.concat()) && bodies.are_in(&copy));
        assert!(bodies.are_in(&target[..2].concat()), "two of three");
        assert!(!bodies.are_in(&target[0]), "one of three");
        assert!(Bodies::of(&target[0]).are_in(&target[0]), "all of one");
        assert!(!bodies.are_in(&["f", "g", "h"].map(|name| function(name, 1)).concat()), "other bodies");
        assert!(!Bodies::of("def f():\n    return 1\n").are_in("def f():\n    return 1\n"), "too short");
        assert!(!bodies.are_in("def ("));
    }
}
