//! Keys of syntax: equal for equal trees, whatever their layout, quotes, brackets, comments and spelling of numbers.
//!
//! A name that is reached through a module of the repository is written without that module in a *stripped* key:
//! `shapes.side(box)` has the stripped key of `side(box)`.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use ruff_python_ast::comparable::{
    ComparableArguments, ComparableExpr, ComparableParameters, ComparablePattern, ComparableStmt,
};
use ruff_python_ast::visitor::transformer::{self, Transformer};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Arguments, Expr, ExprContext, ExprName, Parameters, Pattern, Stmt};
use sha2::{Digest, Sha256};

use crate::score::modules::Bindings;

/// A hash that no one can make agree on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(u128);

/// The key of something as it is written and, where that is another one, without modules of the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forms {
    pub plain: Key,
    pub stripped: Key,
}

impl Forms {
    /// Whether any form of the one is a form of the other.
    pub(super) fn meets(self, other: Forms) -> bool {
        self.both().iter().any(|key| other.both().contains(key))
    }

    /// Both keys, which may be the same.
    pub(super) fn both(self) -> [Key; 2] {
        [self.plain, self.stripped]
    }
}

/// A part of what a key is made of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    Text(&'a str),
    /// An optional text or node that is not there.
    Nothing,
    Key(Key),
    Expression(&'a Expr),
    Statement(&'a Stmt),
    Pattern(&'a Pattern),
    Parameters(&'a Parameters),
    Arguments(&'a Arguments),
}

impl<'a> Part<'a> {
    pub(super) fn text(text: Option<&'a str>) -> Self {
        text.map_or(Part::Nothing, Part::Text)
    }

    pub(super) fn expression(expression: Option<&'a Expr>) -> Self {
        expression.map_or(Part::Nothing, Part::Expression)
    }
}

/// How names are read while a key is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'r> {
    pub bindings: &'r Bindings<'r>,
    /// Names that stand for another one.
    pub renamed: &'r BTreeMap<String, String>,
}

static NO_NAMES: BTreeMap<String, String> = BTreeMap::new();

impl<'r> Reading<'r> {
    pub(super) fn of(bindings: &'r Bindings<'r>) -> Self {
        Reading { bindings, renamed: &NO_NAMES }
    }

    fn concerns(self, name: &str) -> bool {
        self.bindings.module(name).is_some() || self.renamed.contains_key(name)
    }

    /// The key of parts without modules of the repository.
    pub(super) fn stripped(self, parts: &[Part<'_>]) -> Key {
        key(parts, Some(self))
    }

    /// Both keys.
    pub(super) fn forms(self, parts: &[Part<'_>]) -> Forms {
        let plain = key(parts, None);
        let is_concerned = parts.iter().any(|part| Mentions::any(self, *part));
        Forms { plain, stripped: if is_concerned { key(parts, Some(self)) } else { plain } }
    }
}

/// The key of parts as they are written.
pub(super) fn plain(parts: &[Part<'_>]) -> Key {
    key(parts, None)
}

fn key(parts: &[Part<'_>], reading: Option<Reading<'_>>) -> Key {
    let mut hash = Hash256(Sha256::new());
    for part in parts {
        std::mem::discriminant(part).hash(&mut hash);
        let reading = reading.filter(|reading| Mentions::any(*reading, *part));
        match *part {
            Part::Nothing => {}
            Part::Text(text) => text.hash(&mut hash),
            Part::Key(key) => key.hash(&mut hash),
            Part::Expression(node) => {
                ComparableExpr::from(&*changed(reading, node, |it, node| it.visit_expr(node)))
                    .hash(&mut hash);
            }
            Part::Statement(node) => {
                ComparableStmt::from(&*changed(reading, node, |it, node| it.visit_stmt(node)))
                    .hash(&mut hash);
            }
            Part::Pattern(node) => {
                ComparablePattern::from(&*changed(reading, node, |it, node| it.visit_pattern(node)))
                    .hash(&mut hash);
            }
            Part::Parameters(node) => {
                let node = changed(reading, node, |it, node| it.visit_parameters(node));
                ComparableParameters::from(&*node).hash(&mut hash);
            }
            Part::Arguments(node) => {
                let node = changed(reading, node, |it, node| it.visit_arguments(node));
                ComparableArguments::from(&*node).hash(&mut hash);
            }
        }
    }
    let digest = hash.0.finalize();
    Key(digest.iter().take(16).fold(0, |key, byte| key << 8 | u128::from(*byte)))
}

fn changed<'a, N: Clone>(
    reading: Option<Reading<'_>>,
    node: &'a N,
    visit: impl Fn(&Strip<'_>, &mut N),
) -> Cow<'a, N> {
    let Some(reading) = reading else { return Cow::Borrowed(node) };
    let mut node = node.clone();
    visit(&Strip(reading), &mut node);
    Cow::Owned(node)
}

struct Hash256(Sha256);

impl Hasher for Hash256 {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not asked for: a key is longer than this.
    fn finish(&self) -> u64 {
        0
    }
}

/// Takes modules of the repository off dotted names.
struct Strip<'r>(Reading<'r>);

impl Transformer for Strip<'_> {
    fn visit_expr(&self, expression: &mut Expr) {
        let mut at = &mut *expression;
        if let Some((used, length)) = prefix(at, self.0.bindings) {
            for _ in used + 1..length {
                let Expr::Attribute(attribute) = at else { return };
                at = &mut attribute.value;
            }
            if let Expr::Attribute(attribute) = at {
                let id = attribute.attr.id.clone();
                let (range, node_index) = (attribute.range, attribute.node_index.clone());
                *at = Expr::Name(ExprName { id, ctx: ExprContext::Load, range, node_index });
            }
        }
        while let Expr::Attribute(attribute) = at {
            at = &mut attribute.value;
        }
        match at {
            Expr::Name(name) => {
                if let Some(new) = self.0.renamed.get(name.id.as_str()) {
                    name.id = new.as_str().into();
                }
            }
            _ => transformer::walk_expr(self, at),
        }
    }
}

/// How many attributes of a dotted name are modules of the repository (not counting its root), and how many there are.
/// None where it begins with no module, or is one itself.
fn prefix(expression: &Expr, bindings: &Bindings<'_>) -> Option<(usize, usize)> {
    let mut at = expression;
    let mut length = 0;
    while let Expr::Attribute(attribute) = at {
        at = &attribute.value;
        length += 1;
    }
    let Expr::Name(root) = at else { return None };
    if length == 0 || bindings.module(&root.id).is_none() {
        return None;
    }
    let (root, attributes) = crate::score::tree::chain(expression)?;
    Some((within(bindings.module(root)?, &attributes, bindings)?, length))
}

/// How many attributes after a module lead to further modules. None if all do.
pub(super) fn within(module: &str, attributes: &[&str], bindings: &Bindings<'_>) -> Option<usize> {
    let mut module = module.to_owned();
    for (used, attribute) in attributes.iter().enumerate() {
        module = format!("{module}.{attribute}");
        if !bindings.modules.contains(&module) {
            return Some(used);
        }
    }
    None
}

/// Whether a name that the reading changes occurs at all: most trees need no copy.
struct Mentions<'r> {
    reading: Reading<'r>,
    found: Cell<bool>,
}

impl<'r> Mentions<'r> {
    fn any(reading: Reading<'r>, part: Part<'_>) -> bool {
        if reading.bindings.is_empty() && reading.renamed.is_empty() {
            return false;
        }
        let mut mentions = Mentions { reading, found: Cell::new(false) };
        match part {
            Part::Nothing | Part::Text(_) | Part::Key(_) => {}
            Part::Expression(node) => mentions.visit_expr(node),
            Part::Statement(node) => mentions.visit_stmt(node),
            Part::Pattern(node) => mentions.visit_pattern(node),
            Part::Parameters(node) => mentions.visit_parameters(node),
            Part::Arguments(node) => mentions.visit_arguments(node),
        }
        mentions.found.get()
    }
}

impl<'a> Visitor<'a> for Mentions<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if self.reading.concerns(&name.id) => self.found.set(true),
            _ if self.found.get() => {}
            _ => visitor::walk_expr(self, expression),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::modules::Modules;
    use crate::score::text::parse;

    fn forms(text: &str) -> Forms {
        let modules: Modules = ["tiny", "tiny.core"].into_iter().collect();
        parse(text, |parsed| {
            let bindings = Bindings::by_name(&modules);
            Reading::of(&bindings).forms(&[Part::Statement(&parsed.body[0])])
        })
        .unwrap()
    }

    #[test]
    fn layout_quotes_and_spelling_of_numbers_make_no_difference() {
        for (one, other) in [
            ("f( 'a', 16 )", "f(\"a\",  # why\n  0x10)"),
            ("x = ('a' 'b')", "x = 'ab'"),
            ("return_ = (yield_)", "return_ = yield_"),
            ("f'{a}' 'b'", "f'{a}b'"),
        ] {
            assert_eq!(forms(one), forms(other), "{one}");
        }
        for (one, other) in [("f(1)", "f(1.0)"), ("'a'", "b'a'"), ("f(*a)", "f(a)"), ("x[a:]", "x[:a]")] {
            assert!(!forms(one).meets(forms(other)), "{one}");
        }
    }

    #[test]
    fn modules_are_taken_off_as_far_as_they_go() {
        let same = |one: &str, other: &str| forms(one).meets(forms(other));
        assert!(same("tiny.core.join(x)", "join(x)"));
        assert!(same("a(tiny.Box.y.z[tiny.q])", "a(Box.y.z[q])"));
        assert!(same("tiny.core.a.tiny.b", "a.tiny.b"));
        assert!(same("f'{tiny.x!r:>{tiny.y}}'", "f'{x!r:>{y}}'"));
        assert!(!same("x.tiny.core(1)", "x.core(1)"));
        assert_eq!(forms("f(tiny.core)").stripped, forms("f(tiny.core)").plain, "a module as such stays");
    }

    #[test]
    fn long_chains_take_time_in_proportion() {
        let text = format!("x = tiny.core{}\n", ".y".repeat(9_000)).repeat(20);
        let start = crate::family::gistify::tests::cpu_time();
        let modules: Modules = ["tiny", "tiny.core"].into_iter().collect();
        let keys = parse(&text, |parsed| {
            let bindings = Bindings::by_name(&modules);
            let reading = Reading::of(&bindings);
            parsed.body.iter().map(|one| reading.forms(&[Part::Statement(one)]).stripped).collect::<Vec<_>>()
        });
        assert_eq!(keys.unwrap().len(), 20);
        let taken = crate::family::gistify::tests::cpu_time().saturating_sub(start);
        assert!(taken.as_secs() < 10, "{taken:?}");
    }
}
