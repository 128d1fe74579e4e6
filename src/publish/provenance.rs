//! How a dataset was made, as an in-toto statement with SLSA's predicate. It is not signed: whoever publishes signs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::dataset::Dataset;
use crate::record::source::Origin;

/// What the parameters below mean.
const BUILD_TYPE: &str = "urn:gistmill:build:v1";

pub(super) fn statement(dataset: &Dataset, hashes: &BTreeMap<String, String>) -> Value {
    let manifest = &dataset.manifest;
    let subject: Vec<Value> =
        hashes.iter().map(|(name, hash)| json!({ "name": name, "digest": { "sha256": hash } })).collect();
    let sources = manifest.sources.iter().map(|(slug, source)| {
        let (uri, digest) = match &source.origin {
            Origin::Git { url } => (format!("git+{url}"), json!({ "gitCommit": source.commit })),
            Origin::Pypi { project, version, sha256 } => {
                (format!("pkg:pypi/{project}@{version}"), json!({ "sha256": sha256 }))
            }
            Origin::Path { name, .. } => (format!("urn:gistmill:path:{name}"), json!({ "sha256": source.tree_sha256 })),
        };
        json!({ "name": slug, "uri": uri, "digest": digest, "annotations": { "tree_sha256": source.tree_sha256 } })
    });
    let locks = manifest.environments.iter().map(|(slug, environment)| {
        json!({
            "name": format!("{}/requirements.lock", environment.directory),
            "digest": { "sha256": environment.lock_sha256 },
            "annotations": { "slug": slug, "python": environment.python },
        })
    });
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subject,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": { "name": manifest.name, "version": manifest.version, "config": manifest.config },
                "internalParameters": { "machine": manifest.machine, "isolation": manifest.isolation },
                "resolvedDependencies": sources.chain(locks).collect::<Vec<_>>(),
            },
            "runDetails": {
                "builder": {
                    "id": "urn:gistmill:builder:local",
                    "version": { "gistmill": manifest.tool.version },
                },
                "metadata": {},
            },
        },
    })
}
