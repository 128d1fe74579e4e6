//! The graph of an agent's tree, from syntax alone: what its files hold, import, call and inherit. The target is its mask in it, so
//! that edges come into it and none go out.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{
    AnyParameterRef, Expr, ExprCall, Stmt, StmtClassDef, StmtFunctionDef, StmtImport, StmtImportFrom,
};
use serde::Serialize;

use super::similar::similar;
use super::surface::{absolute, joined, module_name};
use crate::score::text::{Lines, parse};
use crate::score::tree;

/// How many steps from file to file, and from class to base, one name is followed.
const MOST_STEPS: usize = 256;

/// The steps that are left for a name. All ways share them: files that import everything of each other have endless ones.
struct Steps(Cell<usize>);

impl Steps {
    fn new() -> Self {
        Steps(Cell::new(MOST_STEPS))
    }

    fn take(&self) -> Option<()> {
        self.0.set(self.0.get().checked_sub(1)?);
        Some(())
    }
}

/// A graph, as its JSON has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Graph {
    pub target: String,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Files that are most like the target, and how much, from 0 to 1.
    pub similar: Vec<(String, f64)>,
}

/// A folder, a file, or a class or function of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// `/`, a path, or `path:Class.method`.
    pub id: String,
    pub kind: NodeKind,
    /// Of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// First line with decorators and last line, 1-based, of a class or function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u32, u32)>,
    /// Of a class, as they are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<String>,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    Folder,
    File,
    Class,
    Function,
}

/// One node has to do with another, in so many places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    pub from: String,
    pub kind: EdgeKind,
    pub to: String,
    pub count: u32,
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeKind {
    Contains,
    Imports,
    Invokes,
    Inherits,
}

/// The graph of files, by path, of which the target's text is its mask.
pub fn graph(target: &str, texts: &BTreeMap<&str, &str>) -> Graph {
    let names = Names::of(texts);
    let mut edges: BTreeMap<(String, EdgeKind, String), u32> = BTreeMap::new();
    let mut nodes = folders(texts, &mut edges);
    for (path, text) in texts {
        let file = Node { text: Some((*text).to_owned()), ..node(*path, NodeKind::File) };
        nodes.push(file);
        // Of what cannot be parsed the text alone is known.
        let _ = parse(text, |parsed| {
            let mut reading = Reading::new(path, &names, (parsed.lines, &mut nodes, &mut edges));
            parsed.body.iter().for_each(|statement| reading.visit_stmt(statement));
        });
    }
    let edges = edges.into_iter().map(|((from, kind, to), count)| Edge { from, kind, to, count });
    let similar = similar(target, texts).into_iter().map(|(path, score)| (path.to_owned(), score));
    Graph { target: target.to_owned(), nodes, edges: edges.collect(), similar: similar.collect() }
}

fn node(id: impl Into<String>, kind: NodeKind) -> Node {
    Node { id: id.into(), kind, text: None, lines: None, bases: Vec::new() }
}

type Edges = BTreeMap<(String, EdgeKind, String), u32>;

/// The root and all folders, with what they contain.
fn folders(texts: &BTreeMap<&str, &str>, edges: &mut Edges) -> Vec<Node> {
    let mut found = BTreeSet::from(["/"]);
    for path in texts.keys() {
        let mut at = *path;
        while let Some((above, _)) = at.rsplit_once('/') {
            edges.insert((above.to_owned(), EdgeKind::Contains, at.to_owned()), 1);
            found.insert(above);
            at = above;
        }
        edges.insert(("/".to_owned(), EdgeKind::Contains, at.to_owned()), 1);
    }
    found.into_iter().map(|folder| node(folder, NodeKind::Folder)).collect()
}

/// What a name of a file means.
#[derive(Debug, Clone)]
enum Bound {
    /// A module, by its whole name.
    Module(String),
    /// A name in a module.
    Member(String, String),
}

/// What is known of one file before calls are looked at.
#[derive(Debug, Default)]
struct FileNames {
    /// Classes and functions that are not inside a function, as `Class.method`; whether it is a class.
    defined: BTreeMap<String, bool>,
    bound: BTreeMap<String, Bound>,
    /// Modules of which everything is imported.
    stars: Vec<String>,
    /// Bases by class, each a root and attributes.
    bases: BTreeMap<String, Vec<Vec<String>>>,
}

/// A thing of the tree: a file, or what is defined in it.
type Item = (String, Option<String>);

fn id((path, name): &Item) -> String {
    name.as_ref().map_or_else(|| path.clone(), |name| format!("{path}:{name}"))
}

/// The names of all files.
struct Names {
    files: BTreeMap<String, FileNames>,
    /// Files by dotted names; folders above the outermost package may be part of one.
    modules: BTreeMap<String, String>,
    /// The package that relative imports of a file start from.
    packages: BTreeMap<String, Vec<String>>,
}

impl Names {
    fn of(texts: &BTreeMap<&str, &str>) -> Self {
        let paths: BTreeSet<&str> = texts.keys().copied().collect();
        let mut names = Names { files: <_>::default(), modules: <_>::default(), packages: <_>::default() };
        for path in texts.keys() {
            let module = module_name(path, &paths);
            let mut package: Vec<String> = module.split('.').map(str::to_owned).collect();
            if path.rsplit('/').next() != Some("__init__.py") {
                package.pop();
            }
            let whole = path.strip_suffix(".py").unwrap_or(path).replace('/', ".");
            let whole = whole.strip_suffix(".__init__").unwrap_or(&whole).to_owned();
            for name in [module, whole] {
                names.modules.entry(name).or_insert_with(|| (*path).to_owned());
            }
            names.packages.insert((*path).to_owned(), package);
        }
        for (path, text) in texts {
            let package = &names.packages[*path];
            let read = parse(text, |parsed| {
                let mut file = FileNames::default();
                file.read(parsed.body, "", package);
                file
            });
            names.files.insert((*path).to_owned(), read.unwrap_or_default());
        }
        names
    }

    /// What a name in a file means, where it is something of the tree.
    fn name(&self, path: &str, name: &str, steps: &Steps) -> Option<Item> {
        let file = self.files.get(path)?;
        steps.take()?;
        if file.defined.contains_key(name) {
            return Some((path.to_owned(), Some(name.to_owned())));
        }
        match file.bound.get(name) {
            Some(Bound::Module(module)) => Some((self.modules.get(module)?.clone(), None)),
            Some(Bound::Member(module, name)) => self.member(module, name, steps),
            None if name.starts_with('_') => None,
            None => file.stars.iter().find_map(|star| {
                let star = self.modules.get(star).filter(|star| *star != path)?;
                self.name(star, name, steps)
            }),
        }
    }

    /// What `from MODULE import NAME` gives: what the module names so, else a module below it, else the module's file.
    fn member(&self, module: &str, name: &str, steps: &Steps) -> Option<Item> {
        let below = self.modules.get(&joined(module, name));
        let file = self.modules.get(module);
        let own = file.and_then(|file| self.name(file, name, steps));
        own.or_else(|| Some((below.or(file)?.clone(), None)))
    }

    /// What a dotted name in a file means, as far as all of it is something of the tree.
    fn chain(&self, path: &str, root: &str, attributes: &[&str], steps: &Steps) -> Option<Item> {
        // `import a.b` binds `a`: the longest module that is written out.
        if let Some(Bound::Module(module)) = self.files.get(path)?.bound.get(root) {
            for used in (0..=attributes.len()).rev() {
                let dotted = [&[module.as_str()], &attributes[..used]].concat().join(".");
                if let Some(file) = self.modules.get(&dotted) {
                    return self.walk((file.clone(), None), &attributes[used..], steps);
                }
            }
            return None;
        }
        self.walk(self.name(path, root, steps)?, attributes, steps)
    }

    fn walk(&self, mut at: Item, attributes: &[&str], steps: &Steps) -> Option<Item> {
        for attribute in attributes {
            at = match &at.1 {
                None => self.name(&at.0, attribute, steps)?,
                Some(class) => self.of_class(&at.0, class, attribute, steps)?,
            };
        }
        Some(at)
    }

    /// A method of a class, or of the first base that has it.
    fn of_class(&self, path: &str, class: &str, name: &str, steps: &Steps) -> Option<Item> {
        let own = format!("{class}.{name}");
        if self.files.get(path)?.defined.contains_key(&own) {
            return Some((path.to_owned(), Some(own)));
        }
        self.of_bases(path, class, name, steps)
    }

    fn of_bases(&self, path: &str, class: &str, name: &str, steps: &Steps) -> Option<Item> {
        steps.take()?;
        let bases = self.bases(path, class, steps);
        bases.iter().find_map(|(file, base)| self.of_class(file, base, name, steps))
    }

    /// Bases of a class that are classes of the tree.
    fn bases(&self, path: &str, class: &str, steps: &Steps) -> Vec<(String, String)> {
        let written = self.files.get(path).and_then(|file| file.bases.get(class));
        let resolve = |parts: &Vec<String>| {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            let (root, attributes) = parts.split_first()?;
            let (file, name) = self.chain(path, root, attributes, steps)?;
            let name = name.filter(|name| (file.as_str(), name.as_str()) != (path, class))?;
            self.files.get(&file)?.defined.get(&name)?.then_some((file, name))
        };
        written.into_iter().flatten().filter_map(resolve).collect()
    }
}

impl FileNames {
    fn read(&mut self, body: &[Stmt], prefix: &str, package: &[String]) {
        for statement in body {
            match statement {
                Stmt::FunctionDef(function) => {
                    self.defined.insert(format!("{prefix}{}", function.name), false);
                    Imports { names: self, package }.visit_body(&function.body);
                }
                Stmt::ClassDef(class) => {
                    let name = format!("{prefix}{}", class.name);
                    let bases = bases(class)
                        .filter_map(tree::chain)
                        .map(|(root, rest)| std::iter::once(root).chain(rest).map(str::to_owned).collect());
                    self.bases.insert(name.clone(), bases.collect());
                    self.read(&class.body, &format!("{name}."), package);
                    self.defined.insert(name, true);
                }
                Stmt::Import(_) | Stmt::ImportFrom(_) => {
                    Imports { names: self, package }.visit_stmt(statement);
                }
                _ => tree::bodies(statement).into_iter().for_each(|inner| self.read(inner, prefix, package)),
            }
        }
    }
}

/// Imports, wherever they are: what is imported inside a function is as good as imported above it.
struct Imports<'a> {
    names: &'a mut FileNames,
    package: &'a [String],
}

impl<'a> Visitor<'a> for Imports<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let bound = &mut self.names.bound;
        match statement {
            Stmt::Import(import) => bound.extend(import.names.iter().map(|alias| {
                let whole = alias.name.as_str();
                if let Some(given) = &alias.asname {
                    (given.to_string(), Bound::Module(whole.to_owned()))
                } else {
                    let root = whole.split('.').next().unwrap_or(whole).to_owned();
                    (root.clone(), Bound::Module(root))
                }
            })),
            Stmt::ImportFrom(import) => {
                let module = absolute(self.package, import);
                for alias in &import.names {
                    if &alias.name == "*" {
                        self.names.stars.push(module.clone());
                        continue;
                    }
                    let given = alias.asname.as_ref().unwrap_or(&alias.name).to_string();
                    self.names.bound.insert(given, Bound::Member(module.clone(), alias.name.to_string()));
                }
            }
            _ => walk_stmt(self, statement),
        }
    }
}

fn bases(class: &StmtClassDef) -> impl Iterator<Item = &Expr> {
    // `Generic[T]` is `Generic`.
    class.bases().iter().map(|base| base.as_subscript_expr().map_or(base, |one| &one.value))
}

/// Reads the nodes and edges of one file.
struct Reading<'a> {
    path: &'a str,
    names: &'a Names,
    lines: &'a Lines,
    nodes: &'a mut Vec<Node>,
    edges: &'a mut Edges,
    /// The classes around, as one name.
    class: Option<String>,
    /// The function around.
    function: Option<Inside>,
}

/// The outermost function around a place.
struct Inside {
    name: String,
    /// Its parameters, which hide what the file names so.
    parameters: BTreeSet<String>,
    /// What the first of them is called, in a class.
    own: Option<String>,
}

impl<'a> Reading<'a> {
    fn new(
        path: &'a str,
        names: &'a Names,
        (lines, nodes, edges): (&'a Lines, &'a mut Vec<Node>, &'a mut Edges),
    ) -> Self {
        Reading { path, names, lines, nodes, edges, class: None, function: None }
    }

    fn edge(&mut self, from: String, kind: EdgeKind, to: &Item) {
        *self.edges.entry((from, kind, id(to))).or_default() += 1;
    }

    /// The function around, or the file.
    fn here(&self) -> String {
        let name = self.function.as_ref().map(|inside| inside.name.clone());
        id(&(self.path.to_owned(), name))
    }

    fn import(&mut self, import: &StmtImport) {
        for alias in &import.names {
            if let Some(file) = self.names.modules.get(alias.name.as_str()) {
                self.edge(self.path.to_owned(), EdgeKind::Imports, &(file.clone(), None));
            }
        }
    }

    fn import_from(&mut self, import: &StmtImportFrom) {
        let module = absolute(&self.names.packages[self.path], import);
        for alias in &import.names {
            let found = if &alias.name == "*" {
                self.names.modules.get(&module).map(|file| (file.clone(), None))
            } else {
                self.names.member(&module, &alias.name, &Steps::new())
            };
            if let Some(found) = found {
                self.edge(self.path.to_owned(), EdgeKind::Imports, &found);
            }
        }
    }

    /// A definition that is not inside a function, with its edge from what it is in.
    fn define(&mut self, name: &str, (kind, statement): (NodeKind, &Stmt), bases: Vec<String>) -> String {
        let whole = self.class.as_ref().map_or_else(|| name.to_owned(), |class| format!("{class}.{name}"));
        let above = (self.path.to_owned(), self.class.clone());
        let place = (self.path.to_owned(), Some(whole.clone()));
        let own = id(&place);
        // An overload or the setter of a property has the name of another one.
        if !self.edges.contains_key(&(id(&above), EdgeKind::Contains, own.clone())) {
            let lines = Some(self.lines.of_node(statement));
            self.nodes.push(Node { lines, bases, ..node(own, kind) });
            self.edge(id(&above), EdgeKind::Contains, &place);
        }
        whole
    }

    fn function(&mut self, function: &'a StmtFunctionDef, statement: &'a Stmt) {
        function.decorator_list.iter().for_each(|decorator| self.visit_expr(&decorator.expression));
        let defaults = function.parameters.iter().filter_map(AnyParameterRef::default);
        defaults.for_each(|default| self.visit_expr(default));
        if self.function.is_some() {
            return self.visit_body(&function.body);
        }
        let name = self.define(&function.name, (NodeKind::Function, statement), Vec::new());
        let parameters = function.parameters.iter().map(|one| one.name().to_string());
        let own = function.parameters.iter().next().map(|one| one.name().to_string());
        let own = own.filter(|_| self.class.is_some());
        self.function = Some(Inside { name, parameters: parameters.collect(), own });
        self.visit_body(&function.body);
        self.function = None;
    }

    fn class(&mut self, class: &'a StmtClassDef, statement: &'a Stmt) {
        class.decorator_list.iter().for_each(|decorator| self.visit_expr(&decorator.expression));
        if self.function.is_some() {
            return self.visit_body(&class.body);
        }
        let written = bases(class).filter_map(tree::chain);
        let written =
            written.map(|(root, rest)| std::iter::once(root).chain(rest).collect::<Vec<_>>().join("."));
        let name = self.define(&class.name, (NodeKind::Class, statement), written.collect());
        for (file, base) in self.names.bases(self.path, &name, &Steps::new()) {
            self.edge(
                id(&(self.path.to_owned(), Some(name.clone()))),
                EdgeKind::Inherits,
                &(file, Some(base)),
            );
        }
        let around = self.class.replace(name);
        self.visit_body(&class.body);
        self.class = around;
    }

    /// What is called, where it is something of the tree.
    fn called(&self, call: &ExprCall) -> Option<Item> {
        let inside = self.function.as_ref();
        if let Expr::Attribute(attribute) = &*call.func
            && let Expr::Call(of) = &*attribute.value
            && of.func.as_name_expr().is_some_and(|name| name.id == "super")
        {
            return self.names.of_bases(self.path, self.class.as_ref()?, &attribute.attr, &Steps::new());
        }
        let (root, attributes) = tree::chain(&call.func)?;
        if let Some(own) = inside.and_then(|inside| inside.own.as_deref())
            && own == root
        {
            let [name] = attributes[..] else { return None };
            return self.names.of_class(self.path, self.class.as_ref()?, name, &Steps::new());
        }
        if inside.is_some_and(|inside| inside.parameters.contains(root)) {
            return None;
        }
        let found = self.names.chain(self.path, root, &attributes, &Steps::new())?;
        // A file is not called.
        found.1.is_some().then_some(found)
    }
}

impl<'a> Visitor<'a> for Reading<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => self.import(import),
            Stmt::ImportFrom(import) => self.import_from(import),
            Stmt::FunctionDef(function) => self.function(function, statement),
            Stmt::ClassDef(class) => self.class(class, statement),
            _ => walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && let Some(found) = self.called(call)
        {
            self.edge(self.here(), EdgeKind::Invokes, &found);
        }
        walk_expr(self, expression);
    }
}

#[cfg(test)]
mod tests;
