//! Features of code: properties of single tokens, and places of definitions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use ast_grep_core::Node;
use regex::Regex;

use super::engine::{Document, lines_of, parsed};
use super::pair::Tree;
use crate::error::Result;
use crate::interrupt;
use crate::record::spelling::spelling;

type Syntax<'r> = Node<'r, Document>;

spelling! {
    /// What a feature is a property of, in the order of preference where two cover the same lines.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub(crate) enum Kind {
        /// An imported module, and each package that it is in.
        Module "module",
        /// `module:name` that is imported.
        From "from",
        Ident "ident",
        /// `self.name`, or of an imported name.
        Dotted "dotted",
        Class "class",
        Def "def",
        Decorator "decorator",
        Base "base",
        Call "call",
        Attr "attr",
        /// `called:keyword`.
        Kwpair "kwpair",
        Kwarg "kwarg",
        Shape "shape",
        Text "text",
        /// A definition at the top of a file.
        Place "place",
    }
}

/// Numbers of paths, the same for both trees of a pair.
#[derive(Debug, Default)]
pub(super) struct Paths {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Paths {
    fn number(&mut self, path: &str) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(path.to_owned());
        self.numbers.insert(path.to_owned(), number);
        number
    }

    pub(super) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }
}

/// Where a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub file: u32,
    pub first: u32,
    pub last: u32,
    /// The function that it is a private matter of; none at the top of a file or of a class.
    pub scope: Option<u32>,
}

pub(super) type Feature = (Kind, String);
pub(super) type Occurrences = HashMap<Feature, Vec<Occurrence>>;

/// The features of a tree.
#[derive(Debug, Default)]
pub(super) struct Features {
    pub found: Occurrences,
    /// Where names are defined at the top of files.
    pub defined: BTreeMap<String, BTreeMap<u32, Occurrence>>,
    pub files: BTreeSet<u32>,
}

impl Features {
    /// # Errors
    /// A file that cannot be parsed at all, and an interrupt.
    pub(super) fn of(tree: &Tree, paths: &mut Paths) -> Result<Self> {
        let mut features = Features::default();
        let mut scopes = HashMap::new();
        for (path, text) in &tree.files {
            interrupt::check()?;
            let number = paths.number(path);
            features.files.insert(number);
            let file = parsed(path, text)?;
            let mut reader = Reader {
                file: number,
                features: &mut features,
                scopes: &mut scopes,
                dotted: Vec::new(),
                imported: BTreeSet::new(),
            };
            reader.read(file.root());
        }
        Ok(features)
    }
}

/// What is around a node.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    /// The outermost function, and the line of its `def`.
    function: Option<u32>,
    header: Option<(u32, u32)>,
    /// Whether the function was entered with its decorators.
    decorated: bool,
}

struct Reader<'a> {
    file: u32,
    features: &'a mut Features,
    /// Numbers of functions: by file, and name or line.
    scopes: &'a mut HashMap<(u32, String), u32>,
    dotted: Vec<(String, String, Occurrence)>,
    imported: BTreeSet<String>,
}

/// Parts of a module's name that are looked at.
const DEEPEST_MODULE: usize = 20;
static TEXT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\w.:/-]{3,60}$").expect("the pattern of texts is a pattern"));

impl Reader<'_> {
    fn read(&mut self, root: Syntax<'_>) {
        for child in root.children() {
            self.place(&child);
        }
        // A stack of its own: hostile code nests deeper than a thread's is.
        let mut left = vec![(root, Around::default())];
        while let Some((node, around)) = left.pop() {
            let inner = self.node(&node, around);
            left.extend(node.children().map(|child| (child, inner)));
        }
        for (owner, name, occurrence) in std::mem::take(&mut self.dotted) {
            if owner == "self" || owner == "cls" || self.imported.contains(&owner) {
                self.features
                    .found
                    .entry((Kind::Dotted, format!("{owner}.{name}")))
                    .or_default()
                    .push(occurrence);
            }
        }
    }

    fn occurrence(&self, node: &Syntax<'_>, scope: Option<u32>) -> Occurrence {
        let (first, last) = lines_of(node);
        Occurrence { file: self.file, first: first as u32, last: last as u32, scope }
    }

    fn add(&mut self, kind: Kind, name: impl Into<String>, node: &Syntax<'_>, scope: Option<u32>) {
        let occurrence = self.occurrence(node, scope);
        self.features.found.entry((kind, name.into())).or_default().push(occurrence);
    }

    fn scope(&mut self, name: String) -> u32 {
        let next = self.scopes.len() as u32;
        *self.scopes.entry((self.file, name)).or_insert(next)
    }

    /// Takes the features of a node, and says what is around its children.
    fn node(&mut self, node: &Syntax<'_>, around: Around) -> Around {
        match &*node.kind() {
            "identifier" => self.identifier(node, around),
            "decorated_definition" => return self.decorated(node, around),
            "function_definition" => return self.function(node, around),
            "class_definition" => self.class(node, around),
            "call" => self.call(node, around),
            "attribute" => self.attribute(node, around),
            "import_statement" => self.import(node, around),
            "import_from_statement" => self.import_from(node, around),
            "binary_operator" => {
                let is_percent = node.field("operator").is_some_and(|operator| operator.text() == "%");
                if let Some(left) = node.field("left").filter(|left| is_percent && left.kind() == "string") {
                    self.add(Kind::Shape, "percent-format", &left, around.function);
                }
            }
            "string_start" if node.text().contains(['f', 'F']) => {
                self.add(Kind::Shape, "f-string", node, around.function);
            }
            "string_content" => {
                let text = node.text();
                if TEXT.is_match(&text) && text.contains(|c: char| c.is_ascii_lowercase()) {
                    self.add(Kind::Text, text, node, around.function);
                }
            }
            _ => {}
        }
        around
    }

    fn identifier(&mut self, node: &Syntax<'_>, around: Around) {
        let line = lines_of(node).0 as u32;
        let scope = around.header.filter(|(_, header)| line > *header).map(|(scope, _)| scope);
        self.add(Kind::Ident, node.text(), node, scope);
    }

    /// Features of decorators are in the function, the decorator itself and the definition are not.
    fn decorated(&mut self, node: &Syntax<'_>, around: Around) -> Around {
        for decorator in node.children().filter(|child| child.kind() == "decorator") {
            let mut target = decorator.named_children().next();
            if let Some(call) = target.clone().filter(|target| target.kind() == "call") {
                target = call.field("function");
            }
            if let Some(name) = target.and_then(last_name) {
                self.add(Kind::Decorator, name.text(), &name, around.function);
            }
        }
        match node.field("definition").filter(|definition| definition.kind() == "function_definition") {
            Some(function) => {
                if let Some(name) = function.field("name") {
                    self.add(Kind::Def, name.text(), &name, around.function);
                }
                Around { header: around.header, decorated: true, ..self.entered(&function, around) }
            }
            None => around,
        }
    }

    fn function(&mut self, node: &Syntax<'_>, around: Around) -> Around {
        if let Some(name) = node.field("name").filter(|_| !around.decorated) {
            self.add(Kind::Def, name.text(), &name, around.function);
        }
        self.entered(node, around)
    }

    fn entered(&mut self, function: &Syntax<'_>, around: Around) -> Around {
        let name = function.field("name").map(|name| name.text().into_owned()).unwrap_or_default();
        let line = lines_of(function).0 as u32;
        let (by_name, by_line) = (self.scope(format!("f {name}")), self.scope(format!("l {line}")));
        Around {
            function: around.function.or(Some(by_name)),
            header: around.header.or(Some((by_line, line))),
            decorated: false,
        }
    }

    fn class(&mut self, node: &Syntax<'_>, around: Around) {
        if let Some(name) = node.field("name") {
            self.add(Kind::Class, name.text(), &name, around.function);
        }
        for base in node.field("superclasses").iter().flat_map(|bases| bases.children().collect::<Vec<_>>()) {
            let Some(name) = last_name(base.clone()) else { continue };
            if base.kind() == "identifier" && name.text() == "object" {
                self.add(Kind::Shape, "class-with-object-base", &name, around.function);
            }
            self.add(Kind::Base, name.text(), &name, around.function);
        }
    }

    fn call(&mut self, node: &Syntax<'_>, around: Around) {
        let function = node.field("function");
        let name = function.clone().and_then(last_name);
        let arguments = node.field("arguments").filter(|arguments| arguments.kind() == "argument_list");
        if let (Some(name), Some(function)) = (&name, &function) {
            self.add(Kind::Call, name.text(), name, around.function);
            let has_arguments = arguments.as_ref().is_some_and(|one| one.named_children().next().is_some());
            if function.kind() == "identifier" && name.text() == "super" && has_arguments {
                self.add(Kind::Shape, "super-with-arguments", name, around.function);
            }
            let is_of_text = function.field("object").is_some_and(|object| object.kind() == "string");
            if name.text() == "format" && is_of_text {
                self.add(Kind::Shape, "format-call-on-text", name, around.function);
            }
        }
        for keyword in arguments.iter().flat_map(|one| one.children().collect::<Vec<_>>()) {
            let Some(key) = Some(keyword)
                .filter(|one| one.kind() == "keyword_argument")
                .and_then(|one| one.field("name"))
            else {
                continue;
            };
            self.add(Kind::Kwarg, key.text(), &key, around.function);
            if let Some(name) = &name {
                self.add(Kind::Kwpair, format!("{}:{}", name.text(), key.text()), &key, around.function);
            }
        }
    }

    fn attribute(&mut self, node: &Syntax<'_>, around: Around) {
        let Some(name) = node.field("attribute") else { return };
        self.add(Kind::Attr, name.text(), &name, around.function);
        if let Some(owner) = node.field("object").filter(|owner| owner.kind() == "identifier") {
            let occurrence = self.occurrence(&name, around.function);
            self.dotted.push((owner.text().into_owned(), name.text().into_owned(), occurrence));
        }
    }

    fn import(&mut self, node: &Syntax<'_>, around: Around) {
        for one in node.field_children("name").collect::<Vec<_>>() {
            if let Some(name) = self.imported_name(&one) {
                self.module(&name, around);
            }
        }
    }

    /// What is imported, by its own name; what the file calls it is remembered.
    fn imported_name<'r>(&mut self, one: &Syntax<'r>) -> Option<Syntax<'r>> {
        let (name, alias) = match &*one.kind() {
            "aliased_import" => (one.field("name")?, one.field("alias")?),
            "dotted_name" => (one.clone(), one.clone()),
            _ => return None,
        };
        self.imported.extend(alias.text().split('.').next().map(str::to_owned));
        Some(name)
    }

    fn module(&mut self, name: &Syntax<'_>, around: Around) {
        let text = name.text();
        // Each part is stored with all before it.
        for (at, _) in text.match_indices('.').chain([(text.len(), "")]).take(DEEPEST_MODULE) {
            self.add(Kind::Module, &text[..at], name, around.function);
        }
    }

    fn import_from(&mut self, node: &Syntax<'_>, around: Around) {
        let Some(module) = node.field("module_name") else { return };
        if module.kind() == "relative_import" {
            self.add(Kind::Module, module.text(), &module, around.function);
        } else {
            self.module(&module, around);
        }
        let of = |name: &str| format!("{}:{name}", module.text());
        for one in node.field_children("name").collect::<Vec<_>>() {
            if let Some(name) = self.imported_name(&one) {
                self.add(Kind::From, of(&name.text()), &name, around.function);
            }
        }
        for star in node.children().filter(|child| child.kind() == "wildcard_import").collect::<Vec<_>>() {
            self.add(Kind::From, of("*"), &star, around.function);
        }
    }

    fn place(&mut self, node: &Syntax<'_>) {
        let definition = match &*node.kind() {
            "decorated_definition" => node.field("definition"),
            "function_definition" | "class_definition" => Some(node.clone()),
            _ => None,
        };
        if let Some(name) = definition.and_then(|definition| definition.field("name")) {
            let occurrence = self.occurrence(node, None);
            self.features.defined.entry(name.text().into_owned()).or_default().insert(self.file, occurrence);
        }
    }
}

/// The identifier that a name or an attribute ends with.
fn last_name(node: Syntax<'_>) -> Option<Syntax<'_>> {
    match &*node.kind() {
        "identifier" => Some(node),
        "attribute" => node.field("attribute"),
        _ => None,
    }
}
