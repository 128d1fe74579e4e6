//! Which names of a target other files take from it.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Stmt, StmtImportFrom};

use crate::record::trace::is_test_path;
use crate::score::text::parse;
use crate::score::tree;

/// What a file defines at its top, and what it takes from others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileNames {
    /// Functions and classes at the top of the module, under conditions too.
    defined: BTreeSet<String>,
    /// `from MODULE import NAME as ALIAS`, with the module's whole name.
    from: BTreeSet<(String, String, String)>,
    /// `import MODULE as ALIAS`.
    modules: BTreeSet<(String, String)>,
    /// `BASE.NAME`, wherever it is used.
    attributes: BTreeSet<(String, String)>,
}

impl FileNames {
    /// Reads a file. `paths` are all Python files of the tree. Nothing is known of a file that cannot be parsed.
    pub fn of(path: &str, text: &str, paths: &BTreeSet<&str>) -> Self {
        let mut package: Vec<String> = module_name(path, paths).split('.').map(str::to_owned).collect();
        if path.rsplit('/').next() != Some("__init__.py") {
            package.pop();
        }
        let read = parse(text, |parsed| {
            let mut reading = Reading { package, names: FileNames::default() };
            define(parsed.body, &mut reading.names.defined);
            parsed.body.iter().for_each(|statement| reading.visit_stmt(statement));
            reading.names
        });
        read.unwrap_or_default()
    }

    /// Names of a target that this file takes from it.
    fn taken<'t>(&self, module: &str, target: &'t FileNames) -> BTreeSet<&'t str> {
        let mut taken = BTreeSet::new();
        let mut bound = BTreeSet::new();
        for (source, name, alias) in &self.from {
            if source == module && name == "*" {
                taken.extend(target.defined.iter().filter(|name| !name.starts_with('_')).map(String::as_str));
            } else if source == module {
                taken.extend(target.defined.get(name).map(String::as_str));
            } else if joined(source, name) == module {
                bound.insert(alias);
            }
        }
        bound.extend(self.modules.iter().filter(|(name, _)| name == module).map(|(_, alias)| alias));
        let used = self.attributes.iter().filter(|(base, _)| bound.contains(base));
        taken.extend(used.filter_map(|(_, name)| target.defined.get(name)).map(String::as_str));
        taken
    }
}

/// Top-level names of a target that other files import or take from its module, tests aside.
pub fn surface(target: &str, files: &BTreeMap<&str, FileNames>, test_roots: &[String]) -> BTreeSet<String> {
    let Some(own) = files.get(target) else { return BTreeSet::new() };
    let module = module_name(target, &files.keys().copied().collect());
    let others = files.iter().filter(|(path, _)| **path != target && !is_test_path(path, test_roots));
    others.flat_map(|(_, file)| file.taken(&module, own)).map(str::to_owned).collect()
}

/// The module of a `from`, by its whole name, in a file of a package.
pub(super) fn absolute(package: &[String], import: &StmtImportFrom) -> String {
    let up = (import.level as usize).saturating_sub(1);
    let depth = package.len().saturating_sub(up);
    let base = if import.level > 0 { package[..depth].join(".") } else { String::new() };
    import.module.as_ref().map_or_else(|| base.clone(), |name| joined(&base, name))
}

pub(super) fn joined(source: &str, name: &str) -> String {
    if source.is_empty() { name.to_owned() } else { format!("{source}.{name}") }
}

/// The dotted name of a file: its folders from the first of an unbroken chain with `__init__.py`.
pub(super) fn module_name(path: &str, paths: &BTreeSet<&str>) -> String {
    let mut folders: Vec<&str> = path.split('/').collect();
    let stem = folders.pop().and_then(|name| name.strip_suffix(".py")).unwrap_or_default();
    let is_package = |depth: &usize| paths.contains(&*format!("{}/__init__.py", folders[..*depth].join("/")));
    let chain = (1..=folders.len()).rev().take_while(is_package).count();
    let own = Some(stem).filter(|stem| *stem != "__init__");
    let parts: Vec<&str> = folders[folders.len() - chain..].iter().copied().chain(own).collect();
    parts.join(".")
}

fn define(body: &[Stmt], defined: &mut BTreeSet<String>) {
    for statement in body {
        match statement {
            Stmt::FunctionDef(function) => drop(defined.insert(function.name.to_string())),
            Stmt::ClassDef(class) => drop(defined.insert(class.name.to_string())),
            _ => tree::bodies(statement).into_iter().for_each(|inner| define(inner, defined)),
        }
    }
}

struct Reading {
    package: Vec<String>,
    names: FileNames,
}

impl<'a> Visitor<'a> for Reading {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::ImportFrom(import) => {
                let source = absolute(&self.package, import);
                for alias in &import.names {
                    let (name, given) =
                        (alias.name.to_string(), alias.asname.as_ref().unwrap_or(&alias.name));
                    self.names.from.insert((source.clone(), name, given.to_string()));
                }
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    let given = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.names.modules.insert((alias.name.to_string(), given.to_string()));
                }
            }
            _ => walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Attribute(attribute) = expression
            && let Some((root, mut rest)) = tree::chain(expression)
        {
            rest.pop();
            let base = std::iter::once(root).chain(rest).collect::<Vec<_>>().join(".");
            self.names.attributes.insert((base, attribute.attr.to_string()));
        }
        walk_expr(self, expression);
    }
}
