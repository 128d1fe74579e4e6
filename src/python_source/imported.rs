//! What a file imports while it is imported itself.

use std::collections::BTreeSet;

use ruff_python_ast::Stmt;

use super::{LONGEST, STACK, depth};

/// Dotted names of modules that a file imports at its top, conditions and relative imports aside; none where it cannot be
/// read. `from a import b` names `a` alone: what `b` is cannot be known.
pub fn imported(text: &str) -> BTreeSet<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > LONGEST || depth::is_too_deep(text) {
        return BTreeSet::new();
    }
    stacker::grow(STACK, || {
        let Ok(parsed) = ruff_python_parser::parse_module(text) else { return BTreeSet::new() };
        let mut names = BTreeSet::new();
        for statement in parsed.suite() {
            match statement {
                Stmt::Import(import) => {
                    names.extend(import.names.iter().map(|alias| alias.name.to_string()));
                }
                Stmt::ImportFrom(import) if import.level == 0 => {
                    names.extend(import.module.iter().map(ToString::to_string));
                }
                _ => {}
            }
        }
        names
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_at_the_top_are_named_and_all_others_are_not() {
        let text = "import a.b, c as d\nfrom e.f import g\nfrom . import h\nfrom .i import j\n\
            if True:\n    import k\ndef f():\n    import l\ntry:\n    import m\nexcept ImportError:\n    pass\n";
        assert_eq!(imported(text).into_iter().collect::<Vec<_>>(), ["a.b", "c", "e.f"]);
        assert!(imported("import a\ndef f(:\n").is_empty());
    }
}
