//! What expressions of a test say, as far as they are written out: texts, lists of texts, and files by the end of their path.

use std::collections::HashMap;

use ruff_python_ast::{Expr, ExprCall, ExprFString, FStringPart, InterpolatedStringElement, Operator};

/// Deepest expression that is followed.
const DEEPEST: u8 = 12;
/// Longest list, in values.
const MOST: usize = 100;
/// Longest text, and all texts of a list together, in bytes: what doubles itself line by line means nothing.
const LONGEST: usize = 16 << 10;

/// A word of an invocation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Argument {
    Text(String),
    /// A file of which only the end of the path is written out: `tmp_path / "in.csv"`, `fixture("in.csv")`.
    File(String),
}

impl Argument {
    fn bytes(&self) -> usize {
        match self {
            Argument::Text(text) | Argument::File(text) => text.len(),
        }
    }
}

/// What an expression says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    One(Argument),
    List(Vec<Argument>),
}

impl Value {
    /// None of what is too long.
    fn text(text: &str) -> Option<Self> {
        (text.len() <= LONGEST).then(|| Value::One(Argument::Text(text.to_owned())))
    }

    /// None of what is too long.
    fn of_list(list: Vec<Argument>) -> Option<Self> {
        let bytes: usize = list.iter().map(Argument::bytes).sum();
        (list.len() <= MOST && bytes <= LONGEST).then_some(Value::List(list))
    }

    pub(super) fn one(self) -> Option<Argument> {
        match self {
            Value::One(one) => Some(one),
            Value::List(_) => None,
        }
    }

    pub(super) fn list(self) -> Option<Vec<Argument>> {
        match self {
            Value::List(list) => Some(list),
            Value::One(_) => None,
        }
    }
}

/// The names that mean something where an expression is, from the outside in.
#[derive(Debug)]
pub(super) struct Scope {
    frames: Vec<HashMap<String, Option<Value>>>,
}

impl Scope {
    pub(super) fn new() -> Self {
        Scope { frames: vec![HashMap::new()] }
    }

    pub(super) fn enter(&mut self) {
        self.frames.push(HashMap::new());
    }

    pub(super) fn leave(&mut self) {
        self.frames.pop();
    }

    /// Gives a name of the innermost frame a meaning; none where it is not known.
    pub(super) fn bind(&mut self, name: &str, value: Option<Value>) {
        if let Some(frame) = self.frames.last_mut() {
            frame.insert(name.to_owned(), value);
        }
    }

    /// What an expression says.
    pub(super) fn value(&self, expression: &Expr) -> Option<Value> {
        self.follow(expression, DEEPEST)
    }

    /// The text of an expression, one in bytes too.
    pub(super) fn text(&self, expression: &Expr) -> Option<String> {
        match self.value(expression)?.one()? {
            Argument::Text(text) => Some(text),
            Argument::File(_) => None,
        }
    }

    fn follow(&self, expression: &Expr, left: u8) -> Option<Value> {
        let left = left.checked_sub(1)?;
        match expression {
            Expr::StringLiteral(text) => Value::text(text.value.to_str()),
            Expr::BytesLiteral(bytes) => {
                let bytes: Vec<u8> = bytes.value.bytes().collect();
                Value::text(std::str::from_utf8(&bytes).ok()?)
            }
            Expr::Name(name) => {
                self.frames.iter().rev().find_map(|frame| frame.get(name.id.as_str()))?.clone()
            }
            Expr::List(list) => self.list(&list.elts, left),
            Expr::Tuple(tuple) => self.list(&tuple.elts, left),
            Expr::FString(text) => self.formatted(text, left),
            Expr::BinOp(two) if two.op == Operator::Add => {
                match (self.follow(&two.left, left)?, self.follow(&two.right, left)?) {
                    (Value::One(Argument::Text(one)), Value::One(Argument::Text(other))) => {
                        Value::text(&(one + &other))
                    }
                    (Value::List(one), Value::List(other)) => Value::of_list([one, other].concat()),
                    _ => None,
                }
            }
            Expr::BinOp(two) if two.op == Operator::Div => self.file(&two.right, left),
            Expr::Attribute(attribute) => {
                let inner = self.follow(&attribute.value, left)?.one()?;
                matches!(inner, Argument::File(_)).then_some(Value::One(inner))
            }
            Expr::Call(call) => self.called(call, left),
            _ => None,
        }
    }

    fn list(&self, elements: &[Expr], left: u8) -> Option<Value> {
        let mut all = Vec::new();
        for element in elements {
            match element {
                Expr::Starred(starred) => all.extend(self.follow(&starred.value, left)?.list()?),
                _ => all.push(self.follow(element, left)?.one()?),
            }
            if all.len() > MOST {
                return None;
            }
        }
        Value::of_list(all)
    }

    /// An expression as the end of a path.
    fn file(&self, expression: &Expr, left: u8) -> Option<Value> {
        match self.follow(expression, left)?.one()? {
            Argument::Text(text) | Argument::File(text) => named_file(&text),
        }
    }

    fn formatted(&self, text: &ExprFString, left: u8) -> Option<Value> {
        let (mut so_far, mut is_whole) = (String::new(), true);
        for part in &text.value {
            let elements = match part {
                FStringPart::Literal(part) => {
                    so_far.push_str(part.as_str());
                    continue;
                }
                FStringPart::FString(part) => &part.elements,
            };
            for element in elements {
                let said = match element {
                    InterpolatedStringElement::Literal(part) => Some(part.value.to_string()),
                    InterpolatedStringElement::Interpolation(field) if field.format_spec.is_some() => None,
                    InterpolatedStringElement::Interpolation(field) => {
                        match self.follow(&field.expression, left) {
                            Some(Value::One(Argument::Text(text))) => Some(text),
                            _ => None,
                        }
                    }
                };
                // What comes after an unknown part may be the end of a path.
                is_whole &= said.is_some();
                match said {
                    Some(said) => so_far.push_str(&said),
                    None => so_far.clear(),
                }
                if so_far.len() > LONGEST {
                    return None;
                }
            }
        }
        if is_whole { Value::text(&so_far) } else { named_file(so_far.strip_prefix('/')?) }
    }

    fn called(&self, call: &ExprCall, left: u8) -> Option<Value> {
        let given = &call.arguments.args;
        let (base, last) = match &*call.func {
            Expr::Attribute(attribute) => (Some(&*attribute.value), attribute.attr.as_str()),
            Expr::Name(name) => (None, name.id.as_str()),
            _ => return None,
        };
        match (last, base, &given[..]) {
            ("split", Some(Expr::Name(name)), [text]) if name.id.as_str() == "shlex" => {
                self.words(text, left, |text| !text.contains(['\'', '"', '\\']))
            }
            ("split", Some(text), []) => self.words(text, left, |_| true),
            ("str" | "fspath" | "Path", _, [inner]) => self.follow(inner, left),
            ("as_posix" | "absolute" | "resolve" | "encode" | "decode", Some(inner), _) => {
                self.follow(inner, left)
            }
            _ => {
                let mut named = given.iter().filter_map(|one| match one {
                    Expr::StringLiteral(text) => named_file(text.value.to_str()),
                    _ => None,
                });
                let (one, other) = (named.next(), named.next());
                one.filter(|_| other.is_none())
            }
        }
    }

    fn words(&self, text: &Expr, left: u8, is_plain: impl Fn(&str) -> bool) -> Option<Value> {
        let Argument::Text(text) = self.follow(text, left)?.one()? else { return None };
        let words = text.split_whitespace().map(|word| Argument::Text(word.to_owned()));
        is_plain(&text).then(|| Value::List(words.take(MOST).collect()))
    }
}

/// A file by the end of its path; none where that has no name with an ending.
fn named_file(path: &str) -> Option<Value> {
    let path = path.trim_start_matches(['/', '.']);
    let (stem, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    let is_ending = (1..=8).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_alphanumeric());
    let is_path = path.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-'));
    (is_ending && is_path && !stem.is_empty()).then(|| Value::One(Argument::File(path.to_owned())))
}
