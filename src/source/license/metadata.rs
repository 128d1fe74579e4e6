//! What `pyproject.toml`, `PKG-INFO` and `setup.cfg` say about the license.

use configparser::ini::Ini;
use toml::{Table, Value};

use super::License;
use super::evidence::{Evidence, expression};
use super::text;
use crate::beneath::Folder;

/// What the metadata says.
#[derive(Default)]
pub(super) struct Metadata {
    /// An expression by the current standard: nothing else needs to be asked.
    pub declared: Option<License>,
    pub evidence: Vec<Evidence>,
}

/// Reads all metadata files of a tree; those that are missing or broken say nothing.
pub(super) fn read(root: &Folder) -> Metadata {
    let all = [pyproject(root), pkg_info(root), setup_cfg(root)];
    let mut result = Metadata::default();
    for metadata in all.into_iter().flatten() {
        result.declared = result.declared.or(metadata.declared);
        result.evidence.extend(metadata.evidence);
    }
    result
}

fn declared(text: &str, source: &str) -> Option<License> {
    Some(License { expression: expression(text.trim())?, source: source.to_owned() })
}

fn pyproject(root: &Folder) -> Option<Metadata> {
    const SOURCE: &str = "pyproject.toml";
    let table: Table = String::from_utf8(super::read(root, SOURCE)?).ok()?.parse().ok()?;
    let project = table.get("project").and_then(Value::as_table);
    let poetry = table.get("tool").and_then(|tool| tool.get("poetry")).and_then(Value::as_table);
    let mut result = Metadata::default();
    for section in [project, poetry].into_iter().flatten() {
        match section.get("license") {
            Some(Value::String(text)) => {
                result.declared = result.declared.or(declared(text, SOURCE));
                result.evidence.extend(Evidence::of_words(text, SOURCE));
            }
            Some(Value::Table(license)) => result.evidence.extend(license_table(root, license)),
            _ => {}
        }
        let classifiers = section.get("classifiers").and_then(Value::as_array);
        let classifiers = classifiers.into_iter().flatten().filter_map(Value::as_str);
        result.evidence.extend(Evidence::of_classifiers(classifiers, SOURCE));
    }
    Some(result)
}

/// The old form, `license = {text = …}` or `license = {file = …}`.
fn license_table(root: &Folder, license: &Table) -> Option<Evidence> {
    if let Some(words) = license.get("text").and_then(Value::as_str) {
        return Evidence::of_words(words, "pyproject.toml")
            .or_else(|| text::evidence(words, "pyproject.toml"));
    }
    let name = license.get("file").and_then(Value::as_str)?;
    text::evidence(&String::from_utf8_lossy(&super::read(root, name)?), name)
}

/// Headers up to the first empty line; continuation lines are left out, for only short values matter here.
fn pkg_info(root: &Folder) -> Option<Metadata> {
    const SOURCE: &str = "PKG-INFO";
    let bytes = super::read(root, SOURCE)?;
    let content = String::from_utf8_lossy(&bytes);
    let headers: Vec<(&str, &str)> = content
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(": "))
        .collect();
    let all =
        |name: &'static str| headers.iter().filter(move |(key, _)| *key == name).map(|(_, value)| *value);
    let mut evidence: Vec<Evidence> =
        all("License").filter_map(|words| Evidence::of_words(words, SOURCE)).collect();
    evidence.extend(Evidence::of_classifiers(all("Classifier"), SOURCE));
    Some(Metadata { declared: all("License-Expression").find_map(|text| declared(text, SOURCE)), evidence })
}

fn setup_cfg(root: &Folder) -> Option<Metadata> {
    const SOURCE: &str = "setup.cfg";
    let text = String::from_utf8(super::read(root, SOURCE)?).ok()?;
    let mut ini = Ini::new();
    ini.set_multiline(true);
    ini.read(text).ok()?;
    let mut evidence: Vec<Evidence> = ini
        .get("metadata", "license")
        .and_then(|words| Evidence::of_words(&words, SOURCE))
        .into_iter()
        .collect();
    let classifiers = ini.get("metadata", "classifiers").unwrap_or_default();
    evidence.extend(Evidence::of_classifiers(classifiers.lines(), SOURCE));
    Some(Metadata { declared: None, evidence })
}
