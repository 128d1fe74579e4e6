//! What names mean, as far as the text says.

use std::collections::HashMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    AnyParameterRef, Comprehension, ExceptHandler, Expr, ExprContext, ExprLambda, Operator, Parameters,
    Pattern, Stmt, StmtImport, StmtImportFrom, WithItem,
};

/// How many assignments are followed from a name to what it was first.
const FOLLOWED: u8 = 8;
/// No name worth matching is longer.
const LONGEST_NAME: usize = 200;
/// Nor has it more parts.
const PARTS: u8 = 24;
/// Methods of sets that give sets.
const SET_METHODS: [&str; 5] = ["union", "intersection", "difference", "symmetric_difference", "copy"];

/// What binds a name.
#[derive(Debug, Clone)]
enum Binding<'a> {
    /// An import of this dotted name, with leading dots when it is relative.
    Import(String),
    /// One assignment of this value.
    Value(&'a Expr),
    /// A parameter that pytest fills, or `self`.
    Parameter,
    /// Anything else in this file.
    Own,
}

/// Names that one part of a file binds. Functions within functions share the scope of the outermost one.
#[derive(Debug, Default)]
pub(crate) struct Scope<'a> {
    bindings: HashMap<&'a str, Binding<'a>>,
}

/// The scopes in which an expression is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'s, 'a> {
    pub module: &'s Scope<'a>,
    pub local: &'s Scope<'a>,
}

impl<'a> Scope<'a> {
    /// What the statements of a module bind; functions and classes bind their names only.
    pub(crate) fn of_module(body: &'a [Stmt]) -> Self {
        Scope::collect(Reach::Statements, |collector| collector.visit_body(body))
    }

    /// What a statement binds for itself alone: variables of comprehensions and parameters of lambdas.
    pub(crate) fn within(statement: &'a Stmt) -> Self {
        Scope::collect(Reach::Inner, |collector| collector.visit_stmt(statement))
    }

    /// What a function binds, and what is bound anywhere in its body.
    pub(crate) fn of_function(parameters: &'a Parameters, body: &'a [Stmt], filled_by_pytest: bool) -> Self {
        Scope::collect(Reach::All, |collector| {
            let first = parameters.iter_non_variadic_params().next().map(|one| one.name().as_str());
            for name in parameters.iter().map(|parameter| parameter.name().as_str()) {
                let is_self = first == Some(name) && matches!(name, "self" | "cls");
                let named = filled_by_pytest || is_self;
                collector.bind(name, if named { Binding::Parameter } else { Binding::Own });
            }
            collector.visit_body(body);
        })
    }

    fn collect(reach: Reach, visit: impl FnOnce(&mut Collector<'a>)) -> Self {
        let mut collector = Collector { scope: Scope::default(), reach, elsewhere: Vec::new() };
        visit(&mut collector);
        let Collector { mut scope, elsewhere, .. } = collector;
        for name in elsewhere {
            scope.bindings.remove(name);
        }
        scope
    }

    /// The names that this scope binds.
    pub(crate) fn into_names(self) -> Vec<String> {
        let mut names: Vec<String> = self.bindings.into_keys().map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    /// Whether this scope binds the name.
    pub(crate) fn binds(&self, name: &str) -> bool {
        self.bindings.contains_key(name)
    }
}

impl<'a> Names<'_, 'a> {
    fn binding(&self, name: &str) -> Option<&Binding<'a>> {
        self.local.bindings.get(name).or_else(|| self.module.bindings.get(name))
    }

    /// Whether a name comes from elsewhere: imported, or known to every module.
    pub(crate) fn is_foreign(&self, name: &str) -> bool {
        matches!(self.binding(name), None | Some(Binding::Import(_)))
    }

    /// The dotted name of an expression; see the table of the module above.
    pub(crate) fn resolve(&self, expression: &'a Expr) -> String {
        let mut name = self.follow(expression, FOLLOWED, PARTS).unwrap_or_default();
        if name.len() > LONGEST_NAME {
            let end = (0..=LONGEST_NAME).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
            name.truncate(end);
        }
        name
    }

    /// None where nothing is known.
    fn follow(&self, expression: &'a Expr, left: u8, parts: u8) -> Option<String> {
        let parts = parts.checked_sub(1)?;
        match expression {
            Expr::Name(name) => match self.binding(&name.id) {
                None | Some(Binding::Parameter) => Some(name.id.to_string()),
                Some(Binding::Import(dotted)) => Some(dotted.clone()),
                Some(Binding::Value(value)) if left > 0 => {
                    self.follow(value, left - 1, parts).or_else(|| Some(format!(".{}", name.id)))
                }
                Some(Binding::Value(_) | Binding::Own) => Some(format!(".{}", name.id)),
            },
            Expr::Attribute(attribute) => {
                let root = self.follow(&attribute.value, left, parts).unwrap_or_default();
                (root.len() <= LONGEST_NAME).then(|| format!("{root}.{}", attribute.attr))
            }
            Expr::Call(call) => self.follow(&call.func, left, parts),
            Expr::Await(inner) => self.follow(&inner.value, left, parts),
            Expr::Named(named) => self.follow(&named.value, left, parts),
            Expr::StringLiteral(_) | Expr::FString(_) => Some("str".to_owned()),
            Expr::BytesLiteral(_) => Some("bytes".to_owned()),
            Expr::List(_) | Expr::ListComp(_) => Some("list".to_owned()),
            Expr::Dict(_) | Expr::DictComp(_) => Some("dict".to_owned()),
            Expr::Tuple(_) => Some("tuple".to_owned()),
            expression if self.is_set(expression) => Some("set".to_owned()),
            _ => None,
        }
    }

    /// Whether the value is surely a set.
    pub(crate) fn is_set(&self, expression: &'a Expr) -> bool {
        self.is_set_after(expression, FOLLOWED)
    }

    fn is_set_after(&self, expression: &'a Expr, left: u8) -> bool {
        if left == 0 {
            return false;
        }
        match expression {
            Expr::Set(_) | Expr::SetComp(_) => true,
            Expr::Call(call) => match &*call.func {
                Expr::Name(name) => {
                    matches!(name.id.as_str(), "set" | "frozenset") && self.binding(&name.id).is_none()
                }
                Expr::Attribute(method) => {
                    SET_METHODS.contains(&method.attr.as_str()) && self.is_set_after(&method.value, left - 1)
                }
                _ => false,
            },
            Expr::BinOp(operation) => {
                matches!(operation.op, Operator::BitOr | Operator::BitAnd | Operator::BitXor | Operator::Sub)
                    && (self.is_set_after(&operation.left, left - 1)
                        || self.is_set_after(&operation.right, left - 1))
            }
            Expr::Name(name) => match self.binding(&name.id) {
                Some(Binding::Value(value)) => self.is_set_after(value, left - 1),
                _ => false,
            },
            _ => false,
        }
    }

    /// The text with which a path begins, as far as it is written out.
    pub(crate) fn beginning(&self, expression: &'a Expr) -> Option<String> {
        self.beginning_after(expression, FOLLOWED)
    }

    fn beginning_after(&self, expression: &'a Expr, left: u8) -> Option<String> {
        let left = left.checked_sub(1)?;
        match expression {
            Expr::StringLiteral(literal) => Some(literal.value.to_str().to_owned()),
            Expr::FString(literal) => {
                let first = literal.value.elements().next()?.as_literal()?;
                Some(first.value.to_string())
            }
            Expr::BinOp(operation)
                if matches!(operation.op, Operator::Add | Operator::Mod | Operator::Div) =>
            {
                self.beginning_after(&operation.left, left)
            }
            Expr::Call(call) => match self.resolve(&call.func).as_str() {
                "os.path.join" | "pathlib.Path" | "pathlib.PurePath" | "str.format" => {
                    let first = match &*call.func {
                        Expr::Attribute(method) if method.attr.as_str() == "format" => &method.value,
                        _ => call.arguments.args.first()?,
                    };
                    self.beginning_after(first, left)
                }
                _ => None,
            },
            Expr::Name(name) => match self.binding(&name.id)? {
                Binding::Value(value) => self.beginning_after(value, left),
                _ => None,
            },
            _ => None,
        }
    }
}

/// How far a collector looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Statements only, not into functions, classes, lambdas and comprehensions.
    Statements,
    /// Lambdas and comprehensions only.
    Inner,
    All,
}

struct Collector<'a> {
    scope: Scope<'a>,
    reach: Reach,
    /// Names that are declared to live in another scope.
    elsewhere: Vec<&'a str>,
}

impl<'a> Collector<'a> {
    /// A name that is imported stays so; one that is bound twice otherwise means nothing in particular.
    fn bind(&mut self, name: &'a str, binding: Binding<'a>) {
        match (self.scope.bindings.get(name), &binding) {
            (Some(Binding::Import(_) | Binding::Parameter), _) => {}
            (None, _) | (Some(_), Binding::Import(_)) => {
                self.scope.bindings.insert(name, binding);
            }
            (Some(_), _) => {
                self.scope.bindings.insert(name, Binding::Own);
            }
        }
    }

    fn bind_parameters(&mut self, parameters: &'a Parameters) {
        for parameter in parameters {
            self.bind(parameter.name().as_str(), Binding::Own);
        }
    }

    fn bind_value(&mut self, target: &'a Expr, value: &'a Expr) {
        if let (Expr::Name(name), true) = (target, self.reach != Reach::Inner) {
            self.bind(&name.id, Binding::Value(value));
        } else {
            self.visit_expr(target);
        }
        self.visit_expr(value);
    }

    fn import(&mut self, import: &'a StmtImport) {
        for alias in &import.names {
            let dotted = alias.name.as_str();
            if let Some(name) = &alias.asname {
                self.bind(name.as_str(), Binding::Import(dotted.to_owned()));
            } else {
                let root = dotted.split('.').next().unwrap_or(dotted);
                self.bind(root, Binding::Import(root.to_owned()));
            }
        }
    }

    fn import_from(&mut self, import: &'a StmtImportFrom) {
        let dots = ".".repeat(import.level as usize);
        let module = import.module.as_ref().map_or("", |module| module.as_str());
        let between = if module.is_empty() { "" } else { "." };
        for alias in import.names.iter().filter(|alias| alias.name.as_str() != "*") {
            let name = alias.asname.as_ref().unwrap_or(&alias.name);
            let dotted = format!("{dots}{module}{between}{}", alias.name);
            self.bind(name.as_str(), Binding::Import(dotted));
        }
    }

    fn statement(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => self.import(import),
            Stmt::ImportFrom(import) => self.import_from(import),
            Stmt::FunctionDef(function) => {
                self.bind(function.name.as_str(), Binding::Own);
                if self.reach == Reach::All {
                    self.bind_parameters(&function.parameters);
                    visitor::walk_stmt(self, statement);
                }
            }
            Stmt::ClassDef(class) => {
                self.bind(class.name.as_str(), Binding::Own);
                if self.reach == Reach::All {
                    visitor::walk_stmt(self, statement);
                }
            }
            Stmt::Global(global) if self.reach != Reach::Statements => {
                self.elsewhere.extend(global.names.iter().map(ruff_python_ast::Identifier::as_str));
            }
            Stmt::Assign(assign) if assign.targets.len() == 1 => {
                self.bind_value(&assign.targets[0], &assign.value);
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.bind_value(&assign.target, value);
                }
            }
            Stmt::AugAssign(assign) => self.visit_expr(&assign.value),
            _ => visitor::walk_stmt(self, statement),
        }
    }
}

impl<'a> Visitor<'a> for Collector<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match (self.reach, statement) {
            (Reach::Inner, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) => {}
            (Reach::Inner, _) => visitor::walk_stmt(self, statement),
            _ => self.statement(statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if name.ctx == ExprContext::Store && self.reach != Reach::Inner => {
                self.bind(&name.id, Binding::Own);
            }
            Expr::Named(named) if self.reach != Reach::Inner => self.bind_value(&named.target, &named.value),
            Expr::Lambda(lambda) if self.reach == Reach::Statements => {
                let parameters = lambda.parameters.iter().flat_map(|all| all.iter());
                parameters.filter_map(AnyParameterRef::default).for_each(|default| self.visit_expr(default));
            }
            Expr::Lambda(ExprLambda { parameters: Some(parameters), .. }) => {
                self.bind_parameters(parameters);
                visitor::walk_expr(self, expression);
            }
            _ => visitor::walk_expr(self, expression),
        }
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        match self.reach {
            Reach::Statements => self.visit_expr(&comprehension.iter),
            Reach::Inner => {
                self.reach = Reach::All;
                self.visit_expr(&comprehension.target);
                self.reach = Reach::Inner;
                self.visit_expr(&comprehension.iter);
            }
            Reach::All => visitor::walk_comprehension(self, comprehension),
        }
    }

    fn visit_annotation(&mut self, _annotation: &'a Expr) {}

    fn visit_with_item(&mut self, item: &'a WithItem) {
        match &item.optional_vars {
            Some(target) => self.bind_value(target, &item.context_expr),
            None => self.visit_expr(&item.context_expr),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let (Some(name), true) = (&inner.name, self.reach != Reach::Inner) {
            self.bind(name.as_str(), Binding::Own);
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            _ => None,
        };
        if let (Some(name), true) = (name, self.reach != Reach::Inner) {
            self.bind(name.as_str(), Binding::Own);
        }
        visitor::walk_pattern(self, pattern);
    }
}
