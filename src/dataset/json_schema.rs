//! JSON schemas of rows, made of the columns that are written and of the dictionary. Pure.

use serde_json::{Value, json};

use super::dictionary::{ATTEMPTS, CASES, GROUPS, INSTANCES, TRACES};
use super::schema::{self, properties};
use super::{codetaste, recube};
use crate::record::family::{Family, Unit};

/// The schema of a row of a table, as in `instances.jsonl` and as Parquet readers give it; none of a table that the family does
/// not have. Further columns are allowed: a new one makes no new format.
pub(crate) fn of_row(family: Family, table: &str) -> Option<Value> {
    let properties = match (table, family.unit()) {
        ("groups", _) => properties(&schema::groups(), GROUPS),
        ("cases", _) => properties(&schema::cases(), CASES),
        ("attempts", _) => properties(&schema::attempts(), ATTEMPTS),
        ("instances", Unit::Group) => properties(&schema::instances(), INSTANCES),
        ("traces", Unit::Group) => properties(&schema::traces(), TRACES),
        (_, Unit::Group) => return None,
        (_, Unit::File) => recube::properties_of(table)?,
        (_, Unit::Pair) => codetaste::properties_of(table)?,
    };
    let names: Vec<&String> = properties.keys().collect();
    Some(json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": format!("gistmill: a row of {table}, family {}", family.as_str()),
        "type": "object",
        "required": names,
        "properties": properties,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::subset::TABLES;
    use crate::testing::made_up::MadeUp;

    /// Whether a value is of one of the types that a schema names; of a list its members are asked too.
    fn fits(value: &Value, schema: &Value) -> bool {
        let is = |name: &str| match name {
            "null" => value.is_null(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.as_array().is_some_and(|all| all.iter().all(|one| fits(one, &schema["items"]))),
            _ => false,
        };
        match &schema["type"] {
            Value::String(name) => is(name),
            Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
            _ => false,
        }
    }

    #[test]
    fn rows_as_they_are_written_fit_their_schema() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("dataset");
        crate::dataset::stage(&directory, &MadeUp::new(&[30]).input()).unwrap().finish().unwrap();
        let schema = of_row(Family::Gistify, "instances").unwrap();
        let lines = fs_err::read_to_string(directory.join("instances.jsonl")).unwrap();
        assert!(lines.lines().count() > 3);
        for row in lines.lines().map(|line| serde_json::from_str::<Map<String, Value>>(line).unwrap()) {
            assert_eq!(
                row.keys().collect::<Vec<_>>(),
                schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>()
            );
            for (name, value) in &row {
                assert!(fits(value, &schema["properties"][name]), "{name}: {value}");
            }
        }
    }

    #[test]
    fn each_table_of_a_family_has_a_schema_and_no_other() {
        let of =
            |family| TABLES.into_iter().filter(|table| of_row(family, table).is_some()).collect::<Vec<_>>();
        assert_eq!(of(Family::Gistify), ["instances", "groups", "cases", "attempts", "traces"]);
        let recube =
            ["instances", "groups", "cases", "attempts", "traces", "targets", "instance_cases", "contexts"];
        assert_eq!(of(Family::Recube), recube);
        assert_eq!(
            of(Family::Codetaste),
            ["instances", "groups", "cases", "attempts", "pairs", "suite_runs"]
        );
    }
}
