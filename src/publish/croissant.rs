//! A dataset in Croissant, the format in which catalogues and conferences want it, with the responsible-AI vocabulary.

use polars::prelude::DataType;
use serde_json::{Value, json};

use super::{About, summary};
use crate::dataset::Dataset;
use crate::dataset::dictionary::TABLES;
use crate::error::{Error, Result};

/// The vocabulary.
const CONTEXT: &str = include_str!("croissant_context.json");
const PARQUET: &str = "application/x-parquet";

pub(super) fn describe(dataset: &Dataset, about: &About) -> Result<Value> {
    let manifest = &dataset.manifest;
    let context: Value = serde_json::from_str(CONTEXT)
        .map_err(|error| Error::internal("the vocabulary is not JSON").with_source(error))?;
    let (mut files, mut sets) = (Vec::new(), Vec::new());
    for (table, entries) in TABLES {
        let file = format!("{table}.parquet");
        let Some(hash) = manifest.files.get(&file) else { continue };
        files.push(json!({
            "@type": "cr:FileObject", "@id": file, "name": file, "contentUrl": file, "encodingFormat": PARQUET,
            "sha256": hash,
        }));
        let columns = dataset.table_but(table, &[])?;
        let field = |(column, kind): (&str, &DataType)| {
            let meaning =
                entries.iter().find(|(name, _)| *name == column).map_or(column, |(_, meaning)| meaning);
            field(table, &file, (column, kind), meaning)
        };
        let fields: Vec<Value> = columns.kinds().into_iter().map(field).collect();
        sets.push(json!({ "@type": "cr:RecordSet", "@id": table, "name": table, "field": fields }));
    }
    let creators: Vec<Value> =
        about.authors.iter().map(|name| json!({ "@type": "sc:Person", "name": name })).collect();
    let mut licenses: Vec<String> = manifest
        .sources
        .values()
        .map(|source| source.license.as_deref().map_or("unknown".to_owned(), license))
        .collect();
    licenses.sort();
    licenses.dedup();
    let mut described = json!({
        "@context": context,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": manifest.name,
        "version": version(manifest.version.as_str()),
        "description": summary(dataset),
        "url": about.url,
        "datePublished": about.date,
        "citeAs": format!("{} {}, {}", manifest.name, manifest.version, about.url),
        "license": licenses,
        "keywords": ["python", "pytest", "benchmark", "agent"],
        "creator": creators,
        "distribution": files,
        "recordSet": sets,
    });
    if let (Some(described), Value::Object(responsible)) = (described.as_object_mut(), responsible(dataset)) {
        described.extend(responsible);
    }
    Ok(described)
}

/// A version of three numbers, which the format asks for: `2026.11` is `2026.11.0`. Others are as they are.
fn version(text: &str) -> String {
    let parts: Vec<&str> = text.split('.').collect();
    let are_numbers = parts.iter().all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()));
    if !are_numbers || parts.len() > 3 {
        return text.to_owned();
    }
    let numbers = parts
        .iter()
        .map(|part| part.trim_start_matches('0'))
        .map(|part| if part.is_empty() { "0" } else { part });
    numbers.chain(["0", "0"]).take(3).collect::<Vec<_>>().join(".")
}

/// The page of a license, or the expression where it is more than one.
fn license(expression: &str) -> String {
    let is_one = expression.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    if is_one { format!("https://spdx.org/licenses/{expression}.html") } else { expression.to_owned() }
}

fn field(table: &str, file: &str, (column, kind): (&str, &DataType), meaning: &str) -> Value {
    let (kind, is_list) = match kind {
        DataType::List(inner) => (&**inner, true),
        other => (other, false),
    };
    let name = match kind {
        DataType::Boolean => "sc:Boolean",
        DataType::Float64 => "sc:Float",
        DataType::Int64 => "sc:Integer",
        _ => "sc:Text",
    };
    let mut field = json!({
        "@type": "cr:Field", "@id": format!("{table}/{column}"), "name": format!("{table}/{column}"),
        "description": meaning, "dataType": name,
        "source": { "fileObject": { "@id": file }, "extract": { "column": column } },
    });
    if is_list {
        field["isArray"] = true.into();
        field["arrayShape"] = "-1".into();
    }
    field
}

/// What is known of how the data came about and what it is not good for.
fn responsible(dataset: &Dataset) -> Value {
    let manifest = &dataset.manifest;
    let (all, machine) = (&manifest.counts.total, &manifest.machine);
    let dropped: usize = all.dropped.values().sum();
    json!({
        "rai:dataCollection": "Python repositories that whoever built the dataset chose, at pinned commits, with the tests that they \
                               have; each test was run many times, isolated and without a network.",
        "rai:dataCollectionType": ["Software Collection", "Experiments"],
        "rai:dataCollectionRawData": "The pinned trees; their hashes are in manifest.json.",
        "rai:dataPreprocessingProtocol": ["Output of tests is normalized: paths, times, addresses and process IDs are replaced."],
        "rai:dataImputationProtocol": "None: what was not measured is null.",
        "rai:dataAnnotationProtocol": "No people and no models: verdicts, difficulty and solutions are computed from runs.",
        "rai:machineAnnotationTools": [format!("gistmill {}", manifest.tool.version)],
        "rai:dataBiases": [
            format!(
                "Of {} groups {dropped} were dropped, by cause: tests that need a network, vary or depend on their place are missing.",
                all.groups
            ),
            "Only what can be installed from package indexes without people, and tests that pytest runs.",
        ],
        "rai:dataLimitations": [
            format!("Proved on {} with Linux {}; other systems may differ.", machine.architecture, machine.kernel),
            "Difficulty is a rank within this dataset, by calls and files of a trace, and not the success of any model.",
            "Repositories are public more often than not: models may have read them.",
        ],
        "rai:dataUseCases": ["Evaluating and training coding agents; not a measure of a model's safety."],
        "rai:personalSensitiveInformation": ["Names and addresses of authors as far as the repositories' files have them."],
        "rai:dataReleaseMaintenancePlan": "A version is never changed; a newer one has moved pins and another version number.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_three_numbers_where_they_are_numbers() {
        let versions = ["1", "2026.11", "2026.01", "1.2.3", "v1", "1.2.3.4", "0"].map(version);
        assert_eq!(versions, ["1.0.0", "2026.11.0", "2026.1.0", "1.2.3", "v1", "1.2.3.4", "0.0.0"]);
        assert_eq!(license("MIT"), "https://spdx.org/licenses/MIT.html");
        assert_eq!(license("MIT OR Apache-2.0"), "MIT OR Apache-2.0");
    }
}
