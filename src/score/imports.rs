//! What a file certainly imports, and in which order.

use ruff_python_ast::Stmt;

use super::modules::Modules;
use super::text::{self, Unreadable};

/// Most names that are told of one file.
const MOST: usize = 100;

/// The modules that the statements of a file itself import, in their order: not those within definitions and branches, and none
/// of `modules`.
///
/// # Errors
/// When the text cannot be read.
pub fn imports(text: &str, modules: &Modules) -> Result<Vec<String>, Unreadable> {
    text::parse(text, |parsed| {
        let mut names: Vec<String> = Vec::new();
        for statement in parsed.body {
            match statement {
                Stmt::Import(import) => names.extend(import.names.iter().map(|alias| alias.name.to_string())),
                Stmt::ImportFrom(import) if import.level == 0 => {
                    names.extend(import.module.as_ref().map(ToString::to_string));
                }
                _ => {}
            }
        }
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| name != "__future__" && !modules.owns(name) && seen.insert(name.clone()));
        names.truncate(MOST);
        names
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "'Doc'\nfrom __future__ import annotations\nimport os, json.decoder as d\nx = f()\nfrom a.b import c\n\
                        import tiny.core\nfrom . import near\nif x:\n    import sometimes\ndef f():\n    import later\n\
                        from os import path\nimport z\n";

    #[test]
    fn what_is_imported_for_certain_is_told_in_its_order_once() {
        let modules = ["tiny", "tiny.core"].into_iter().collect();
        assert_eq!(imports(TEXT, &modules).unwrap(), ["os", "json.decoder", "a.b", "z"]);
        assert!(imports("import (", &modules).is_err());
        let many: Vec<String> = (0..MOST * 2).map(|number| format!("import m{number}")).collect();
        assert_eq!(imports(&many.join("\n"), &modules).unwrap().len(), MOST);
    }
}
