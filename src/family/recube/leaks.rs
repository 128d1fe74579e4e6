//! Copies of a target: files in which so many of its bodies are that the original can be read there.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use ruff_python_ast::comparable::ComparableStmt;
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Stmt};

use super::mask::is_trivial;
use super::surface::{absolute, joined, module_name};
use crate::score::text::parse;
use crate::score::tree::{functions, without_docstring};

/// Shorter bodies are alike by chance.
const LEAST_STATEMENTS: usize = 3;
/// Folders that say nothing of whose file it is.
const PLAIN: [&str; 7] = ["src", "lib", "python", "tests", "test", "utils", "core"];

/// The bodies of a file with at least three statements, docstrings aside, as trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bodies {
    hashes: BTreeSet<u64>,
    /// Names of their functions.
    names: BTreeSet<String>,
    /// Names of all functions with a body.
    written: BTreeSet<String>,
}

impl Bodies {
    /// Those of a file; none of one that cannot be parsed.
    pub fn of(text: &str) -> Self {
        let read = parse(text, |parsed| {
            let mut bodies = Bodies::default();
            for (name, function) in functions(parsed.body) {
                let body = without_docstring(&function.body);
                let name = name.rsplit('.').next().unwrap_or(&name);
                if !is_trivial(body) {
                    bodies.written.insert(name.to_owned());
                }
                if body.len() >= LEAST_STATEMENTS {
                    let mut hasher = DefaultHasher::new();
                    for statement in body {
                        ComparableStmt::from(statement).hash(&mut hasher);
                    }
                    bodies.hashes.insert(hasher.finish());
                    bodies.names.insert(name.to_owned());
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

impl Bodies {
    /// Whether an installed file is the target in another release, whose bodies may all be short: it has its name, in a
    /// folder of the same name, and a fifth of its functions.
    pub fn are_released_in(&self, target: &str, path: &str, text: &str) -> bool {
        let mut above = target.rsplit('/').skip(1);
        let says_whose = above.next().is_some_and(|folder| !PLAIN.contains(&folder));
        let end: Vec<&str> = target.rsplitn(3, '/').take(2).collect();
        if !says_whose || !path.ends_with(&format!("/{}/{}", end[1], end[0])) {
            return false;
        }
        let released = Bodies::of(text).written;
        let common = self.written.intersection(&released).filter(|name| !name.starts_with("__")).count();
        common > 0 && 5 * common >= self.written.len()
    }
}

/// Whether a file of an environment is one that the repository's code does not import: pip's, which carries packages whole.
pub fn is_apart(path: &str) -> bool {
    path.contains("/site-packages/pip/")
}

/// The modules in which the original of a target can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copies {
    /// What relative imports of the target start from.
    package: Vec<String>,
    /// Modules of the tree.
    own: BTreeSet<String>,
    /// Modules of the environment: whoever imports a package of one has it at hand.
    installed: BTreeSet<String>,
}

impl Copies {
    /// By the files that an instance names as `leaks`; `paths` are the Python files of the tree.
    pub fn of(target: &str, leaks: &[String], paths: &BTreeSet<&str>) -> Self {
        let module = module_name(target, paths);
        let mut package: Vec<String> = module.split('.').map(str::to_owned).collect();
        if !target.ends_with("__init__.py") {
            package.pop();
        }
        let mut copies = Copies { package, ..Copies::default() };
        for path in leaks {
            match path.split_once("/site-packages/") {
                Some((_, inside)) => {
                    let name = inside.strip_suffix(".py").unwrap_or(inside).replace('/', ".");
                    copies.installed.insert(name.strip_suffix(".__init__").unwrap_or(&name).to_owned());
                }
                None => drop(copies.own.insert(module_name(path, paths))),
            }
        }
        copies
    }

    /// Names of such modules that a submission imports, or has as texts, and the original does not.
    pub fn imported(&self, submission: &str, original: &str) -> Vec<String> {
        if self.own.is_empty() && self.installed.is_empty() {
            return Vec::new();
        }
        let known = self.named(original);
        self.named(submission).into_iter().filter(|name| !known.contains(name)).collect()
    }

    fn named(&self, text: &str) -> BTreeSet<String> {
        let read = parse(text, |parsed| {
            let mut reading = Named { copies: self, found: BTreeSet::new() };
            parsed.body.iter().for_each(|statement| reading.visit_stmt(statement));
            reading.found
        });
        read.unwrap_or_default()
    }

    fn has(&self, module: &str) -> bool {
        let is_above = |copy: &String| copy.strip_prefix(module).is_some_and(|rest| rest.starts_with('.'));
        self.own.contains(module) || self.installed.contains(module) || self.installed.iter().any(is_above)
    }
}

struct Named<'a> {
    copies: &'a Copies,
    found: BTreeSet<String>,
}

impl Named<'_> {
    fn note(&mut self, module: &str) {
        if self.copies.has(module) {
            self.found.insert(module.to_owned());
        }
    }
}

impl<'a> Visitor<'a> for Named<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => import.names.iter().for_each(|alias| self.note(&alias.name)),
            Stmt::ImportFrom(import) => {
                let module = absolute(&self.copies.package, import);
                self.note(&module);
                import.names.iter().for_each(|alias| self.note(&joined(&module, &alias.name)));
            }
            _ => walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        // `import_module` takes a text.
        if let Expr::StringLiteral(text) = expression
            && text.value.to_str().contains('.')
        {
            self.note(text.value.to_str());
        }
        walk_expr(self, expression);
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
    fn imports_of_copies_are_named_unless_the_original_has_them() {
        let leaks = ["src/shop/_old.py", "venv/lib/python3.12/site-packages/pip/_vendor/shop/core.py"];
        let leaks: Vec<String> = leaks.map(str::to_owned).into();
        let paths = BTreeSet::from(["src/shop/__init__.py", "src/shop/_old.py", "src/shop/core.py"]);
        let copies = Copies::of("src/shop/core.py", &leaks, &paths);
        for (text, expected) in [
            ("from . import _old", &["shop._old"][..]),
            ("def f():\n    from ._old import f as g\n    return g()", &["shop._old"]),
            ("import shop._old as core", &["shop._old"]),
            ("from pip._vendor import shop", &["pip._vendor", "pip._vendor.shop"]),
            ("import pip", &["pip"]),
            (
                "m = __import__('importlib').import_module('pip._vendor.shop.core')",
                &["pip._vendor.shop.core"],
            ),
            ("import shop, _old, pipes\nfrom shop import other\nx = 'pip'\n", &[]),
        ] {
            assert_eq!(copies.imported(text, "import os"), expected, "{text}");
        }
        assert_eq!(copies.imported("import pip", "def f():\n    import pip"), Vec::<String>::new());
        assert_eq!(Copies::default().imported("import pip", ""), Vec::<String>::new());
        assert!(is_apart(&leaks[1]) && !is_apart("venv/lib/python3.12/site-packages/pipx/a.py"));
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
        let release = "def f(): return 1\n\ndef g(): return 2\n";
        let is_in = |target: &str, path: &str| {
            Bodies::of(release).are_released_in(target, path, "def g(): return 3\n")
        };
        assert!(is_in("src/shop/auth.py", "venv/lib/pip/_vendor/shop/auth.py"));
        assert!(!is_in("src/shop/auth.py", "venv/lib/pip/_vendor/other/auth.py"));
        assert!(!is_in("src/auth.py", "venv/lib/src/auth.py") && !is_in("auth.py", "venv/lib/auth.py"));
        assert!(!Bodies::of(release).are_released_in(
            "shop/auth.py",
            "venv/shop/auth.py",
            "def h(): return 3\n"
        ));
    }
}
