//! Mined patterns as ast-grep's documents.

use serde_json::{Map, Value, json};

use super::choose::{Mined, Where};
use super::features::Kind;

/// YAML documents, of which each is JSON.
pub(crate) fn documents<'a>(patterns: impl IntoIterator<Item = &'a Mined>) -> String {
    let each: Vec<String> = patterns.into_iter().map(|one| document(one).to_string()).collect();
    each.join("\n---\n") + "\n"
}

fn document(one: &Mined) -> Value {
    let mut document = json!({
        "id": one.id,
        "language": "python",
        "severity": "info",
        "rule": rule(one),
        "metadata": {"side": one.side, "feature": format!("{} {}", one.kind.as_str(), one.name)},
    });
    if one.place != Where::Everywhere {
        let key = if one.place == Where::But { "ignores" } else { "files" };
        document[key] = globs(&one.paths);
    }
    document
}

/// Paths as globs that match nothing else, with and without what command lines put before them.
fn globs(paths: &[String]) -> Value {
    let plain = |path: &String| {
        let mut glob = String::new();
        for c in path.chars() {
            match c {
                '*' | '?' | '[' | ']' | '{' | '}' => glob.extend(['[', c, ']']),
                c => glob.push(c),
            }
        }
        glob
    };
    let globs: Vec<String> = paths.iter().map(plain).collect();
    globs.iter().map(|glob| format!("./{glob}")).chain(globs.iter().cloned()).collect()
}

fn exact(name: &str) -> String {
    format!("^{}$", regex::escape(name))
}

fn ident(name: &str) -> Value {
    json!({"kind": "identifier", "regex": exact(name)})
}

/// A rule with further keys.
fn and(rule: Value, more: Value) -> Value {
    let keys = |value: Value| match value {
        Value::Object(keys) => keys,
        _ => Map::new(),
    };
    let mut all = keys(rule);
    all.extend(keys(more));
    all.into()
}

fn inside(kind: &str, field: Option<&str>, more: Value) -> Value {
    let mut around = and(json!({"kind": kind}), more);
    if let Some(field) = field {
        around["field"] = field.into();
    }
    json!({ "inside": around })
}

fn nothing() -> Value {
    json!({})
}

fn rule(one: &Mined) -> Value {
    let name = one.name.as_str();
    let of_two = |sign: char| name.split_once(sign).unwrap_or((name, ""));
    match one.kind {
        Kind::Ident => ident(name),
        Kind::Attr => and(ident(name), inside("attribute", Some("attribute"), nothing())),
        Kind::Call => json!({"any": [
            and(ident(name), inside("call", Some("function"), nothing())),
            and(ident(name), inside("attribute", Some("attribute"), inside("call", Some("function"), nothing()))),
        ]}),
        Kind::Kwarg => and(ident(name), keyword(inside("call", None, nothing()))),
        Kind::Kwpair => {
            let (called, key) = of_two(':');
            let function =
                json!({"field": "function", "regex": format!(r"(^|\.)\s*{}$", regex::escape(called))});
            and(ident(key), keyword(inside("call", None, json!({ "has": function }))))
        }
        Kind::Def => and(ident(name), inside("function_definition", Some("name"), nothing())),
        Kind::Class => and(ident(name), inside("class_definition", Some("name"), nothing())),
        Kind::Decorator => decorator(name),
        Kind::Base => {
            let bases =
                || inside("argument_list", None, inside("class_definition", Some("superclasses"), nothing()));
            json!({"any": [
                and(ident(name), bases()),
                and(ident(name), inside("attribute", Some("attribute"), bases())),
            ]})
        }
        Kind::Module => module(name),
        Kind::From => {
            let (module, imported) = name.rsplit_once(':').unwrap_or((name, ""));
            from(module, imported)
        }
        Kind::Dotted => {
            let (owner, key) = of_two('.');
            let object = json!({"has": {"field": "object", "kind": "identifier", "regex": exact(owner)}});
            and(ident(key), inside("attribute", Some("attribute"), object))
        }
        Kind::Text => json!({"kind": "string_content", "regex": exact(name)}),
        Kind::Place => {
            let named = json!({"has": {"field": "name", "regex": exact(name)}});
            let top = |more: Value| and(more, inside("module", None, nothing()));
            let definition = json!({"has": and(json!({"field": "definition"}), named.clone())});
            json!({"any": [
                top(and(json!({"kind": "function_definition"}), named.clone())),
                top(and(json!({"kind": "class_definition"}), named)),
                top(and(json!({"kind": "decorated_definition"}), definition)),
            ]})
        }
        Kind::Shape => shape(name),
    }
}

fn keyword(around: Value) -> Value {
    inside("keyword_argument", Some("name"), inside("argument_list", None, around))
}

fn decorator(name: &str) -> Value {
    let at = || inside("decorator", None, nothing());
    let called = || inside("call", Some("function"), at());
    json!({"any": [
        and(ident(name), at()),
        and(ident(name), inside("attribute", Some("attribute"), at())),
        and(ident(name), called()),
        and(ident(name), inside("attribute", Some("attribute"), called())),
    ]})
}

fn module(name: &str) -> Value {
    let of_from = inside("import_from_statement", Some("module_name"), nothing());
    if name.starts_with('.') {
        return and(json!({"kind": "relative_import", "regex": exact(name)}), of_from);
    }
    let statement = || inside("import_statement", None, nothing());
    json!({
        "kind": "dotted_name",
        "regex": format!(r"^{}(\.|$)", regex::escape(name)),
        "any": [of_from, statement(), inside("aliased_import", Some("name"), statement())],
    })
}

fn from(module: &str, name: &str) -> Value {
    let statement = json!({
        "kind": "import_from_statement", "has": {"field": "module_name", "regex": exact(module)},
    });
    if name == "*" {
        return json!({"kind": "wildcard_import", "inside": statement});
    }
    let aliased = inside("aliased_import", Some("name"), json!({"inside": statement.clone()}));
    let not_module = inside("import_from_statement", Some("module_name"), nothing());
    json!({
        "kind": "dotted_name",
        "regex": exact(name),
        "any": [{"inside": statement, "not": not_module}, aliased],
    })
}

fn shape(name: &str) -> Value {
    let called = |more: Value| inside("call", Some("function"), more);
    match name {
        "percent-format" => {
            let operator = json!({"has": {"field": "operator", "regex": "^%$"}});
            and(json!({"kind": "string"}), inside("binary_operator", Some("left"), operator))
        }
        "f-string" => json!({"kind": "string_start", "regex": "^[a-zA-Z]*[fF]"}),
        "super-with-arguments" => {
            let arguments = json!({"has": {"kind": "argument_list", "regex": r"^\(\s*[^\s)]"}});
            and(ident("super"), called(arguments))
        }
        "class-with-object-base" => {
            let bases =
                inside("argument_list", None, inside("class_definition", Some("superclasses"), nothing()));
            and(ident("object"), bases)
        }
        _ => {
            let of_text = and(json!({"has": {"field": "object", "kind": "string"}}), called(nothing()));
            and(ident("format"), inside("attribute", Some("attribute"), of_text))
        }
    }
}
