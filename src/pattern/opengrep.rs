//! Mined patterns as OpenGrep's: regular expressions over the text of files, for harnesses that run that engine. One is written
//! only where its expression is on one side alone as well: text has comments and constants, which syntax has not.

use regex::{Regex, escape};
use serde_json::{Value, json};

use super::choose::{Mined, Where};
use super::features::Kind;
use super::pair::Tree;
use crate::family::codetaste::score::Side;

/// The patterns of one side that hold as expressions, as a YAML document; empty where none does.
pub(crate) fn document(mined: &[Mined], side: Side, base: &Tree, golden: &Tree) -> String {
    let of_side = mined.iter().filter(|one| one.side == side);
    let rules: Vec<Value> = of_side.filter_map(|one| rule(one, base, golden)).collect();
    if rules.is_empty() { String::new() } else { format!("{}\n", json!({ "rules": rules })) }
}

fn rule(one: &Mined, base: &Tree, golden: &Tree) -> Option<Value> {
    let text = expression(one)?;
    let expression = Regex::new(&text).ok()?;
    let count = |tree: &Tree| -> usize {
        let looked_at = tree.files.iter().filter(|(path, _)| looks_at(one, path));
        looked_at.map(|(_, text)| expression.find_iter(text).count()).sum()
    };
    let (before, after) = (count(base), count(golden));
    let holds = match one.side {
        Side::Additive => before == 0 && after > 0,
        Side::Reductive => before > 0 && after == 0,
    };
    let mut rule = json!({
        "id": one.id, "languages": ["python"], "severity": "INFO",
        "message": format!("{} {}", one.kind.as_str(), one.name),
        "pattern-regex": text,
        "metadata": {
            "category": "refactoring", "feature": format!("{} {}", one.kind.as_str(), one.name),
            "nr_legacy_patterns": before, "nr_refactored_patterns": after,
        },
    });
    if one.place != Where::Everywhere {
        let key = if one.place == Where::But { "exclude" } else { "include" };
        let paths: Vec<String> = one.paths.iter().map(|path| format!("/{path}")).collect();
        rule["paths"] = json!({ key: paths });
    }
    holds.then_some(rule)
}

fn looks_at(one: &Mined, path: &str) -> bool {
    let is_named = one.paths.iter().any(|named| named == path);
    match one.place {
        Where::Everywhere => true,
        Where::But => !is_named,
        Where::Only => is_named,
    }
}

/// An expression that engines of either kind read alike; none where a text does not say it.
fn expression(one: &Mined) -> Option<String> {
    let name = escape(&one.name);
    Some(match one.kind {
        Kind::Ident | Kind::Dotted => format!(r"\b{name}\b"),
        Kind::Attr => format!(r"\.\s*{name}\b"),
        Kind::Call => format!(r"\b{name}\s*\("),
        Kind::Kwarg => format!(r"\b{name}\s*=[^=]"),
        Kind::Def => format!(r"\bdef\s+{name}\b"),
        Kind::Class => format!(r"\bclass\s+{name}\b"),
        Kind::Decorator => format!(r"@(\w+\.)*{name}\b"),
        Kind::Module => format!(r"(?m)^[ \t]*(from|import)[ \t]+{name}\b"),
        Kind::Text => format!("[\"']{name}[\"']"),
        Kind::From => {
            let (module, imported) = one.name.rsplit_once(':')?;
            format!(
                r"(?m)^[ \t]*from[ \t]+{}[ \t]+import[ \t]+[^\n]*\b{}\b",
                escape(module),
                escape(imported)
            )
        }
        Kind::Base | Kind::Kwpair | Kind::Shape | Kind::Place => return None,
    })
}
