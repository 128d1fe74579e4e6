//! What reaches the tools that run a test, or brings code in as data: by an import, a name, an attribute or a text.

mod tables;

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Decorator, Expr, ExprCall, ExprContext, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use super::Candidates;
use super::outside::Bound;
use crate::family::gistify::findings::FindingKind;
use crate::family::gistify::keys::{self, Part};
use crate::family::gistify::locate::TestName;
use crate::python_source::names::{Names, Scope};
use crate::score::tree;
use tables::{
    Danger, HARMLESS_OF_NODE, LOOKS_UP_ATTRIBUTES, MODULES, MODULES_OF_NODE, PASSED_ON, STORES, danger_of,
    danger_of_attribute, is_code_builtin, is_harmless_process_file, is_hook, is_test_tool,
};

pub(super) fn look<'a>(found: &mut Candidates<'a>, test: &'a TestName, replaced: Option<TextRange>) {
    let body = found.parsed.body;
    let module = Scope::of_module(body);
    let none = Scope::default();
    let own = own_builtins(body);
    let itself = names_of_itself(found);
    let names = Names { module: &module, local: &none };
    let mut tools = Tools {
        names,
        own: &own,
        itself: &itself,
        test,
        replaced,
        passed: BTreeSet::new(),
        is_inner: false,
        in_class: false,
        found,
    };
    tools.visit_body(body);
}

/// Names like `compile` that the file defines for itself, for certain.
fn own_builtins(body: &[Stmt]) -> BTreeSet<String> {
    let mut own = BTreeSet::new();
    for statement in body {
        match statement {
            Stmt::FunctionDef(function) => drop(own.insert(function.name.to_string())),
            Stmt::ClassDef(class) => drop(own.insert(class.name.to_string())),
            Stmt::ImportFrom(import) => {
                let names = import.names.iter().map(|alias| alias.asname.as_ref().unwrap_or(&alias.name));
                own.extend(names.map(ToString::to_string));
            }
            Stmt::Delete(delete) => {
                for target in &delete.targets {
                    if let Expr::Name(name) = target {
                        own.remove(name.id.as_str());
                    }
                }
            }
            _ => {}
        }
    }
    own
}

/// Names that stand for the submission's own module: `module = sys.modules[__name__]`.
fn names_of_itself(found: &Candidates<'_>) -> BTreeSet<String> {
    let all = Bound::of(found.parsed.body).all.into_iter().filter(|one| match one.statement {
        Stmt::Assign(assign) => match &*assign.value {
            Expr::Subscript(it) => found.parsed.text[it.value.range()].ends_with("modules"),
            _ => false,
        },
        _ => false,
    });
    all.map(|one| one.name).collect()
}

struct Tools<'w, 'f, 'a> {
    names: Names<'w, 'a>,
    own: &'w BTreeSet<String>,
    /// Names of the submission's own module.
    itself: &'w BTreeSet<String>,
    test: &'a TestName,
    replaced: Option<TextRange>,
    /// Expressions that were looked at with what is around them.
    passed: BTreeSet<(u32, u32)>,
    /// Within a function.
    is_inner: bool,
    in_class: bool,
    found: &'f mut Candidates<'a>,
}

impl<'a> Tools<'_, '_, 'a> {
    fn pass(&mut self, expression: &Expr) {
        self.passed.insert((expression.start().to_u32(), expression.end().to_u32()));
    }

    fn is_passed(&self, expression: &Expr) -> bool {
        self.passed.contains(&(expression.start().to_u32(), expression.end().to_u32()))
    }

    /// What an expression stands for, whether or not pytest fills its root.
    fn dotted(&self, expression: &'a Expr) -> String {
        self.names.resolve(expression).trim_start_matches('.').to_owned()
    }

    /// Whether the name at the root of an expression is bound to something of the file.
    fn is_foreign(&self, expression: &'a Expr) -> bool {
        !self.names.resolve(expression).starts_with('.')
    }

    fn note(&mut self, at: &impl Ranged, dotted: &str) {
        match danger_of(dotted) {
            Some(Danger::Kind(kind)) => self.found.add(kind, at.start(), dotted),
            Some(Danger::Module(module)) => {
                self.found.add_of_module(FindingKind::ReachesTestTools, at.start(), dotted, module);
            }
            None => {}
        }
    }

    fn imports(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    self.note(statement, &alias.name);
                    self.hook(statement, alias.asname.as_deref().unwrap_or_default());
                }
            }
            Stmt::ImportFrom(import) if import.level == 0 => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                for alias in &import.names {
                    let dotted = format!("{module}.{}", alias.name);
                    self.note(statement, &dotted);
                    self.hook(statement, alias.asname.as_deref().unwrap_or(&alias.name));
                    if alias.name.as_str() == "*" && MODULES.contains(&module) {
                        self.found.add(FindingKind::ReachesTestTools, statement.start(), dotted);
                    }
                }
            }
            _ => {}
        }
    }

    /// A name that pytest looks for in plugins.
    fn hook(&mut self, at: &impl Ranged, name: &str) {
        if is_hook(name) {
            self.found.add(FindingKind::RegistersPlugin, at.start(), name);
        }
    }

    fn function(&mut self, function: &'a StmtFunctionDef) {
        if !self.is_inner {
            self.hook(&function.name, &function.name);
        }
        function.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
        let local = Scope::of_function(&function.parameters, &function.body, true);
        let local = if self.is_inner { None } else { Some(local) };
        let names = Names { module: self.names.module, local: local.as_ref().unwrap_or(self.names.local) };
        let mut inner = Tools {
            names,
            own: self.own,
            itself: self.itself,
            test: self.test,
            replaced: self.replaced,
            passed: std::mem::take(&mut self.passed),
            is_inner: true,
            in_class: self.in_class,
            found: self.found,
        };
        inner.visit_parameters(&function.parameters);
        if let Some(returns) = &function.returns {
            inner.visit_annotation(returns);
        }
        inner.visit_body(&function.body);
    }

    /// Something is stored to, or deleted from, this place.
    fn store(&mut self, target: &'a Expr) {
        match target {
            Expr::Name(name) if !self.is_inner => {
                self.hook(target, &name.id);
                if is_code_builtin(&name.id) && name.ctx == ExprContext::Del {
                    self.found.add(FindingKind::HiddenCode, target.start(), name.id.as_str());
                }
            }
            Expr::Attribute(attribute) => {
                let dotted = self.dotted(target);
                self.hook(target, &attribute.attr);
                self.stored(target, &dotted);
            }
            Expr::Subscript(subscript) => {
                let dotted = self.dotted(&subscript.value);
                if is_test_tool(&dotted) {
                    self.found.add(FindingKind::ReachesTestTools, target.start(), dotted);
                }
            }
            _ => {}
        }
    }

    fn stored(&mut self, at: &Expr, dotted: &str) {
        if is_test_tool(dotted) {
            self.found.add(FindingKind::ReachesTestTools, at.start(), dotted);
        }
        let of_item = ["request.node.", "request.function.", "request._", "item.obj"];
        if of_item.iter().any(|one| dotted.starts_with(one)) {
            self.found.add(FindingKind::NeutralizedTest, at.start(), dotted);
        }
    }

    fn call(&mut self, call: &'a ExprCall, at: &'a Expr) {
        let name = self.names.resolve(&call.func);
        let last = match &*call.func {
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => name.rsplit('.').next().unwrap_or_default(),
        };
        let arguments = &*call.arguments.args;
        if matches!(&*name, "isinstance" | "issubclass") {
            for one in arguments {
                self.types(one);
            }
        }
        if matches!(last, "import_module" | "__import__") {
            match arguments.first().map(tree::constant_text) {
                Some(Some(module)) => self.note(at, &module),
                Some(None) => self.found.add(FindingKind::ReachesTestTools, at.start(), format!("{last}(…)")),
                None => {}
            }
        }
        if let "pickle.loads" = &*name
            && let [Expr::Call(inner)] = arguments
            && self.names.resolve(&inner.func) == "pickle.dumps"
        {
            self.pass(&call.func);
        }
        if let [target, attribute, ..] = arguments
            && (LOOKS_UP_ATTRIBUTES.contains(&last) || STORES.contains(&last))
        {
            self.attribute(call, at, (target, attribute), STORES.contains(&last));
        }
        if let (true, Some(text)) = (STORES.contains(&last), arguments.first())
            && let Some(dotted) = tree::constant_text(text)
            && (is_test_tool(&dotted) || danger_of(&dotted).is_some())
        {
            self.found.add(FindingKind::ReachesTestTools, at.start(), dotted);
        }
        self.modules(call, last);
    }

    /// `getattr(target, "attribute")` and its like.
    fn attribute(
        &mut self,
        call: &ExprCall,
        at: &'a Expr,
        (target, name): (&'a Expr, &'a Expr),
        stores: bool,
    ) {
        let dotted = self.dotted(target);
        let is_module = MODULES.contains(&&*dotted) && self.is_foreign(target)
            || dotted == "__import__"
            || dotted.ends_with("import_module")
            || is_test_tool(&dotted)
            || self.is_modules(target);
        match tree::constant_text(name) {
            Some(text) => {
                let stored = format!("{dotted}.{text}");
                if self.is_foreign(target) {
                    self.note(at, &stored);
                }
                if let Some(kind) = danger_of_attribute(&text) {
                    self.found.add(kind, at.start(), text.as_str());
                }
                if stores {
                    self.stored(at, &stored);
                }
                if is_module && text != "__dict__" {
                    self.pass(target);
                }
            }
            None if is_module && call.arguments.args.len() >= 2 => {
                self.found.add(FindingKind::ReachesTestTools, at.start(), format!("{dotted}.…"));
            }
            None if stores && (dotted.starts_with("request.") || dotted == "type") => {
                self.found.add(FindingKind::NeutralizedTest, at.start(), format!("{dotted}.…"));
            }
            None => {}
        }
    }

    /// Types that are only compared with.
    fn types(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Tuple(all) => all.elts.iter().for_each(|one| self.types(one)),
            Expr::Attribute(_) | Expr::Name(_) => self.pass(expression),
            _ => {}
        }
    }

    /// Whether this is a module out of `sys.modules`.
    fn is_modules(&self, expression: &'a Expr) -> bool {
        match expression {
            Expr::Subscript(subscript) => self.names.resolve(&subscript.value) == "sys.modules",
            Expr::Name(name) => !self.names.local.binds(&name.id) && self.itself.contains(name.id.as_str()),
            _ => false,
        }
    }

    /// Uses of `sys.modules` that name one module.
    fn modules(&mut self, call: &'a ExprCall, last: &str) {
        let arguments = &*call.arguments.args;
        let (target, key) = match (&*call.func, arguments) {
            (Expr::Attribute(method), [key, ..]) if PASSED_ON.contains(&method.attr.as_str()) => {
                (&*method.value, key)
            }
            (_, [target, key, ..]) if matches!(last, "setitem" | "delitem" | "dict") => (target, key),
            _ => return,
        };
        if self.names.resolve(target) == "sys.modules" && names_one(key) {
            self.pass(target);
        }
    }

    /// An attribute by its own name, and by what it is of.
    fn mentioned(&mut self, expression: &'a Expr) {
        let Expr::Attribute(attribute) = expression else { return };
        let resolved = self.names.resolve(expression);
        let dotted = resolved.trim_start_matches('.');
        if let Some(kind) = danger_of_attribute(&attribute.attr) {
            self.found.add(kind, attribute.attr.start(), attribute.attr.as_str());
        }
        if is_hook(&attribute.attr) {
            self.found.add(FindingKind::RegistersPlugin, attribute.attr.start(), attribute.attr.as_str());
        }
        if !resolved.starts_with('.') && !self.is_passed(expression) {
            self.note(expression, dotted);
            if dotted == "sys.modules" {
                self.found.add(FindingKind::ReachesTestTools, expression.start(), dotted);
            }
        }
        let of = dotted.rsplit_once('.').map_or("", |(of, _)| of);
        if attribute.attr.as_str() == "__dict__" && MODULES.contains(&of) && !resolved.starts_with('.') {
            self.found.add(FindingKind::ReachesTestTools, expression.start(), dotted);
        }
        if MODULES_OF_NODE.contains(&of) && HARMLESS_OF_NODE.contains(&attribute.attr.as_str()) {
            self.pass(&attribute.value);
        } else if dotted == "request.node" && !self.is_passed(expression) {
            self.found.add(FindingKind::ReachesTestTools, expression.start(), dotted);
        }
        if attribute.attr.as_str() == "__subclasses__"
            && (of == "object" || of.ends_with("__base__") || of == "type")
        {
            self.found.add(FindingKind::ReachesTestTools, expression.start(), dotted);
        }
        if attribute.value.is_name_expr() {
            self.pass(&attribute.value);
        }
    }

    fn name(&mut self, expression: &'a Expr) {
        let Expr::Name(name) = expression else { return };
        if name.ctx != ExprContext::Load {
            return;
        }
        let id = name.id.as_str();
        let is_own = self.own.contains(id) || self.is_inner && self.names.local.binds(id);
        if is_code_builtin(id) && !is_own {
            self.found.add(FindingKind::HiddenCode, expression.start(), id);
        }
        if matches!(id, "__builtins__" | "__loader__" | "__spec__") {
            self.found.add(FindingKind::ReachesTestTools, expression.start(), id);
        }
        let resolved = self.names.resolve(expression);
        if resolved != id && !resolved.starts_with('.') && !self.is_passed(expression) {
            self.note(expression, &resolved);
        }
        let is_value = !self.is_passed(expression) && !resolved.starts_with('.');
        let is_import =
            is_value && !self.names.local.binds(id) && self.names.module.binds(id) || resolved != id;
        if is_value && is_import && (MODULES.contains(&&*resolved) || resolved == "sys.modules") {
            self.found.add(FindingKind::ReachesTestTools, expression.start(), resolved.clone());
        }
        if resolved.trim_start_matches('.') == "request.node" && !self.is_passed(expression) {
            self.found.add(FindingKind::ReachesTestTools, expression.start(), "request.node");
        }
    }

    fn text(&mut self, expression: &Expr, text: &str) {
        let danger = danger_of_attribute(text).filter(|_| text.starts_with('_'));
        if let Some(kind) = danger {
            self.found.add(kind, expression.start(), text);
        }
        let is_name = |part: &str| part.chars().all(|one| one == '_' || one.is_alphanumeric());
        if is_test_tool(text)
            && !text.starts_with("unittest")
            && text != "pytest"
            && text.split('.').all(is_name)
        {
            self.found.add(FindingKind::ReachesTestTools, expression.start(), text);
        }
        self.hook(&expression.range(), text);
        let below = text.find("/proc").map(|at| &text[at..]);
        if let Some(place) = below
            && (place == "/proc" || place.starts_with("/proc/"))
            && !is_harmless_process_file(place)
        {
            self.found.add(FindingKind::ReachesTestTools, expression.start(), text);
        }
    }
}

impl<'a> Visitor<'a> for Tools<'_, '_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if self.replaced == Some(statement.range()) {
            return;
        }
        match statement {
            Stmt::Import(_) | Stmt::ImportFrom(_) => self.imports(statement),
            Stmt::FunctionDef(function) => return self.function(function),
            Stmt::Assign(assign) => {
                // A name that stands for it: its uses are seen.
                if let [target @ Expr::Name(_)] = &assign.targets[..]
                    && self.dotted(&assign.value) == "request.node"
                    && self.dotted(target) == "request.node"
                {
                    self.pass(&assign.value);
                }
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_decorator(&mut self, decorator: &'a Decorator) {
        let around = self.found.decorator;
        if let Expr::Call(_) = &decorator.expression {
            self.found.decorator = Some(keys::plain(&[Part::Expression(&decorator.expression)]));
        }
        visitor::walk_decorator(self, decorator);
        self.found.decorator = around;
    }

    fn visit_annotation(&mut self, expression: &'a Expr) {
        // The type of a fixture may be one of pytest's own.
        if let Expr::Attribute(_) | Expr::Name(_) = expression
            && self.dotted(expression).starts_with("pytest.")
        {
            return;
        }
        visitor::walk_annotation(self, expression);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if tree::is_target(expression) {
            self.store(expression);
        }
        match expression {
            Expr::Call(call) => self.call(call, expression),
            Expr::Attribute(_) => self.mentioned(expression),
            Expr::Name(_) => self.name(expression),
            Expr::Subscript(subscript)
                if self.names.resolve(&subscript.value) == "sys.modules" && names_one(&subscript.slice) =>
            {
                self.pass(&subscript.value);
            }
            Expr::Compare(compare) => {
                for side in &compare.comparators {
                    if self.names.resolve(side) == "sys.modules" {
                        self.pass(side);
                    }
                }
            }
            Expr::StringLiteral(text) => self.text(expression, text.value.to_str()),
            Expr::BinOp(_) => {
                if let Some(text) = tree::constant_text(expression) {
                    self.text(expression, &text);
                }
            }
            Expr::FString(text) => {
                let parts = text.value.elements().filter_map(|part| part.as_literal());
                let parts: Vec<&str> = parts.map(|part| &*part.value).collect();
                self.text(expression, &parts.concat());
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

/// Whether a key of `sys.modules` names one that may be named.
fn names_one(key: &Expr) -> bool {
    if let Expr::Dict(dict) = key {
        return dict.items.iter().all(|item| item.key.as_ref().is_some_and(names_one));
    }
    if let Expr::Name(name) = key {
        return name.id.as_str() == "__name__";
    }
    tree::constant_text(key).is_some_and(|text| !is_test_tool(&text) && danger_of(&text).is_none())
}
