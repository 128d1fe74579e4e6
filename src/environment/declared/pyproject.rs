//! Pieces of `pyproject.toml` that several readers share. Pure.

use toml::{Table, Value};

use super::requirements_files::Lines;

/// One dependency group and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub place: String,
    pub lines: Lines,
}

/// The table `[tool.<name>]`.
pub(in crate::environment) fn tool<'a>(pyproject: &'a Table, name: &str) -> Option<&'a Table> {
    pyproject.get("tool")?.get(name)?.as_table()
}

/// A string value.
pub(in crate::environment) fn text(value: Option<&Value>) -> Option<String> {
    value?.as_str().map(str::to_owned)
}

/// The strings of an array; other elements are left out.
pub(in crate::environment) fn strings(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array);
    list.map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect()).unwrap_or_default()
}
