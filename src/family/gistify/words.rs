//! Texts, comments and decorators of a repository: what is no logical line of its own, and may still be the
//! repository's.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Decorator, Expr};

use super::keys::{self, Key, Part};
use crate::score::text::Parsed;

/// Shorter lines are too common to say where they come from.
const SHORTEST: usize = 3;

#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    /// Lines of texts, and comments.
    texts: HashSet<Key>,
    /// Decorators with arguments.
    decorators: HashSet<Key>,
}

impl Words {
    pub(super) fn read(&mut self, parsed: Parsed<'_>) {
        self.visit_body(parsed.body);
        // What is in a text looks like a comment at times: it is one of the repository's all the same.
        for line in parsed.text.lines() {
            if let Some((_, comment)) = line.split_once('#') {
                self.add(comment.trim_start_matches('#'));
            }
        }
    }

    pub(super) fn has_text(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() < SHORTEST || self.texts.contains(&key(line))
    }

    pub(super) fn has_decorator(&self, key: Key) -> bool {
        self.decorators.contains(&key)
    }

    fn add(&mut self, text: &str) {
        let lines = text.split('\n').map(str::trim).filter(|line| line.len() >= SHORTEST);
        self.texts.extend(lines.map(key));
    }
}

fn key(text: &str) -> Key {
    keys::plain(&[Part::Text(text)])
}

impl<'v> Visitor<'v> for Words {
    fn visit_expr(&mut self, expression: &'v Expr) {
        match expression {
            Expr::StringLiteral(text) => self.add(text.value.to_str()),
            Expr::BytesLiteral(bytes) => {
                let all: Vec<u8> = bytes.value.bytes().collect();
                self.add(&String::from_utf8_lossy(&all));
            }
            Expr::FString(text) => {
                let parts = text.value.elements().filter_map(|part| part.as_literal());
                let parts: Vec<&str> = parts.map(|part| &*part.value).collect();
                self.add(&parts.concat());
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_decorator(&mut self, decorator: &'v Decorator) {
        if let Expr::Call(_) = &decorator.expression {
            self.decorators.insert(keys::plain(&[Part::Expression(&decorator.expression)]));
        }
        visitor::walk_decorator(self, decorator);
    }
}
