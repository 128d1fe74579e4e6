//! The JSON schema of `repos.toml`, for editors and the book: what [`raw`](super::raw) declares, and what holds between keys.

use serde_json::{Map, Value, json};

use super::check::LEAST_PROCESSES;
use super::raw::{Keys, NAME, RawOwn, RawRange, SECTIONS};
use crate::subset::{FORMER_TOP, Measure, TABLES, TOP};

/// The JSON schema of the file.
pub(crate) fn schema() -> Value {
    let sections = SECTIONS.map(|(name, _, _, schema)| (name.to_owned(), schema()));
    let mut sections: Map<String, Value> = sections.into_iter().collect();
    sections["dataset"]["required"] = json!(["name", "version"]);
    sections["dataset"]["properties"]["kinds"]["minItems"] = json!(1);
    let few = json!({"exclusiveMinimum": 0, "exclusiveMaximum": LEAST_PROCESSES});
    sections["limits"]["properties"]["processes"]["not"] = few;
    repo(&mut sections["repo"]);
    pair(&mut sections["pair"]["items"]);
    subset(&mut sections["subset"]);
    let is_of_pairs = json!({"properties": {"family": {"const": "codetaste"}}, "required": ["family"]});
    let has_commit = json!({"items": {"dependencies": {"git": ["commit"]}}});
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "gistmill: repos.toml",
        "description": "Which repositories a dataset is made of, and how their tests are screened.",
        "type": "object",
        "additionalProperties": false,
        "required": ["dataset", "repo"],
        "properties": sections,
        "if": {"properties": {"dataset": is_of_pairs}, "required": ["dataset"]},
        "else": {"properties": {"repo": has_commit}},
    })
}

fn repo(list: &mut Value) {
    list["minItems"] = json!(1);
    let repo = &mut list["items"];
    repo["description"] = json!("A repository.");
    repo["required"] = json!(["slug"]);
    repo["oneOf"] = json!([{"required": ["git"]}, {"required": ["path"]}, {"required": ["pypi"]}]);
    repo["dependencies"] = json!({"pypi": ["sha256"]});
    let keys = &mut repo["properties"];
    keys["tests_from"]["minLength"] = json!(1);
    for (list, required) in
        [("target", vec!["file"]), ("scope", vec!["name", "paths"]), ("entry", vec!["command"])]
    {
        keys[list]["items"]["required"] = json!(required);
    }
}

fn pair(pair: &mut Value) {
    pair["required"] = json!(["repo"]);
    pair["oneOf"] = json!([{"required": ["golden"]}, {"required": ["patch", "commit"]}]);
    for (key, mut own) in RawOwn::properties() {
        let words = own["description"].as_str().unwrap_or_default();
        let (first, rest) = words.split_at(1);
        let words = format!("In the place of the repository's: {}{rest}", first.to_lowercase());
        own["description"] = json!(words);
        own.as_object_mut().map(|own| own.remove("default"));
        pair["properties"][key] = own;
    }
}

fn subset(subsets: &mut Value) {
    let mut one = subsets.take();
    let words = std::mem::replace(&mut one["description"], json!("A subset."));
    one["properties"]["kinds"]["minItems"] = json!(1);
    for name in Measure::ALL.map(Measure::as_str) {
        let mut range = RawRange::object();
        range["description"] = json!(format!("Range of `{name}`, both ends included."));
        one["properties"][name] = range;
    }
    let built_in: Vec<&str> = [TOP, FORMER_TOP].into_iter().chain(TABLES).collect();
    *subsets = json!({
        "type": "object",
        "description": words,
        "propertyNames": {"pattern": NAME, "not": {"enum": built_in}},
        "additionalProperties": one,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    /// Keys below a value that have no sentence of words.
    fn without_words(value: &Value, found: &mut Vec<String>) {
        for (name, inner) in value.as_object().into_iter().flatten() {
            let keys = inner.as_object().into_iter().flatten().filter(|_| name == "properties");
            let is_sentence = |words: &str| words.len() > 4 && words.ends_with('.');
            let silent = keys.filter(|(_, key)| !key["description"].as_str().is_some_and(is_sentence));
            found.extend(silent.map(|(key, _)| key.clone()));
            without_words(inner, found);
        }
    }

    #[test]
    fn every_key_has_words() {
        let mut found = Vec::new();
        without_words(&json!({"properties": schema()["properties"]}), &mut found);
        assert_eq!(found, Vec::<String>::new());
        without_words(&json!({"properties": {"b": {"description": ""}}}), &mut found);
        assert_eq!(found, ["b"]);
    }

    #[test]
    fn the_defaults_of_the_schema_are_those_that_are_used() {
        let schema = schema();
        let parse = |text: &str| {
            config::parse(text, std::path::Path::new("/"), &|_, _| None)
                .unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
        };
        let repo = "[[repo]]\nslug = 'a/b'\npath = '/tmp'\n";
        let [base, golden] = ["1", "2"].map(|digit| digit.repeat(40));
        let pair = format!("{repo}[[pair]]\nrepo = 'a/b'\ncommit = '{base}'\ngolden = '{golden}'\n");
        // Those of two sections go with a family that is not the default.
        for (family, sections, end, least) in [
            (
                "gistify",
                &["dataset", "screen", "witness", "mutation", "tier", "prompt", "limits", "docker"][..],
                repo,
                26,
            ),
            ("recube", &["recube"], repo, 12),
            ("codetaste", &["codetaste"], &pair, 10),
        ] {
            let head = format!("family = '{family}'\nname = 'd'\nversion = '1'\n");
            let mut all = format!("[dataset]\n{head}");
            for section in sections {
                all += &format!("[{section}]\n").replace("[dataset]\n", "");
                for (key, one) in schema["properties"][section]["properties"].as_object().unwrap() {
                    let default = one.get("default").filter(|_| key != "family");
                    all += &default.map(|default| format!("{key} = {default}\n")).unwrap_or_default();
                }
            }
            assert!(all.matches(" = ").count() >= least, "{all}");
            let plain = format!("[dataset]\n{head}{end}");
            assert_eq!(parse(&format!("{all}{end}")), parse(&plain));
        }
    }
}
