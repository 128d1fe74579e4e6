//! A dataset as another program reads it: JSON lines, Parquet rows as JSON, bytes.

use std::path::{Path, PathBuf};

use polars::prelude::{AnyValue, ParquetReader, SerReader, Series};
use serde_json::{Map, Value};

/// A dataset directory.
pub struct Dataset {
    pub folder: PathBuf,
}

impl Dataset {
    pub fn at(folder: &Path) -> Self {
        Dataset { folder: folder.to_owned() }
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let path = self.folder.join(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub fn manifest(&self) -> Value {
        serde_json::from_slice(&self.bytes("manifest.json")).expect("the manifest is JSON")
    }

    /// Rows of `instances.jsonl`.
    pub fn instances(&self) -> Vec<Value> {
        let text = String::from_utf8(self.bytes("instances.jsonl")).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// Rows of `<table>.parquet`.
    pub fn rows(&self, table: &str) -> Vec<Value> {
        let file =
            std::fs::File::open(self.folder.join(format!("{table}.parquet"))).expect("the table is there");
        let frame = ParquetReader::new(file).finish().expect("the table can be read");
        let row = |at: usize| {
            let cell = |column: &polars::prelude::Column| {
                let value = column.get(at).expect("the row is there");
                (column.name().to_string(), json(&value))
            };
            Value::Object(frame.columns().iter().map(cell).collect::<Map<_, _>>())
        };
        (0..frame.height()).map(row).collect()
    }

    /// The row of a group.
    #[track_caller]
    pub fn group(&self, group_id: &str) -> Value {
        let rows = self.rows("groups");
        rows.into_iter()
            .find(|row| row["group_id"] == group_id)
            .unwrap_or_else(|| panic!("no group {group_id}"))
    }
}

fn json(value: &AnyValue<'_>) -> Value {
    match value {
        AnyValue::Null => Value::Null,
        AnyValue::Boolean(flag) => (*flag).into(),
        AnyValue::String(text) => (*text).into(),
        AnyValue::StringOwned(text) => text.as_str().into(),
        AnyValue::Float64(number) => (*number).into(),
        AnyValue::List(series) => list(series),
        other => other.extract::<i64>().unwrap_or_else(|| panic!("a cell of another type: {other:?}")).into(),
    }
}

fn list(series: &Series) -> Value {
    series.iter().map(|value| json(&value)).collect()
}

/// The text of a cell.
#[track_caller]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// The whole number in a cell.
#[track_caller]
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The texts of a list.
#[track_caller]
pub fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list")).iter().map(text).collect()
}
