//! The configuration as the manifest publishes it: defaults filled in, no credentials, no folders of the machine.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Config, Entries, Repo, SourceSpec};
use crate::document::units;
use crate::record::codetaste::sha256_of;
use crate::record::entry::{Entry, Stdin};
use crate::record::family::Family;
use crate::redact::{REDACTED, is_secret_name, publish, publish_git_url};

/// Everything that decides a build and may be seen by anyone. Keys are those of the file; sizes are in bytes.
pub fn to_public_json(config: &Config) -> Value {
    let mut public = json!({
        "dataset": config.dataset,
        "screen": {
            "attempts": config.screen.attempts,
            "cold_runs": config.screen.cold_runs,
            "parity_groups": config.screen.parity_groups,
            "case_timeout": units::format_duration(config.screen.case_timeout),
            "group_timeout": units::format_duration(config.screen.group_timeout),
            "partial_groups": config.screen.partial_groups,
            "compare": config.screen.compare,
        },
        "witness": config.witness,
        "mutation": config.mutation,
        "tier": config.tier,
        "prompt": config.prompt,
        "limits": config.limits,
        "docker": {
            "base": publish(&config.docker.base),
            "memory": config.docker.memory,
            "milli_cpus": config.docker.milli_cpus,
        },
        "subsets": config.subsets,
        "repos": config.repos.iter().map(repo).collect::<Vec<Value>>(),
    });
    if config.dataset.family == Family::Recube {
        public["recube"] = json!(config.recube);
    }
    if config.dataset.family == Family::Codetaste {
        public["codetaste"] = json!(config.codetaste);
    }
    public
}

fn repo(repo: &Repo) -> Value {
    let mut keys = Map::new();
    keys.insert("slug".to_owned(), json!(repo.slug));
    keys.extend(source(&repo.source));
    keys.insert("python".to_owned(), json!(repo.python));
    keys.insert("groups".to_owned(), json!(repo.groups));
    keys.insert("extras".to_owned(), json!(repo.extras));
    keys.insert("requirements".to_owned(), json!(published(repo.requirements.as_deref())));
    keys.insert("tests".to_owned(), json!(repo.tests));
    keys.insert("env".to_owned(), json!(env(&repo.env)));
    keys.insert("backend".to_owned(), json!(repo.backend));
    keys.insert("exclude_newer".to_owned(), json!(repo.exclude_newer));
    keys.insert("base".to_owned(), json!(repo.base.as_deref().map(publish)));
    keys.insert("system_packages".to_owned(), json!(repo.system_packages));
    if let Some(domain) = &repo.domain {
        keys.insert("domain".to_owned(), json!(domain));
    }
    if !repo.targets.is_empty() {
        let targets = repo.targets.iter().map(|file| json!({ "file": file }));
        keys.insert("target".to_owned(), targets.collect());
    }
    if !repo.scopes.is_empty() {
        keys.insert("scope".to_owned(), json!(repo.scopes));
    }
    if repo.large {
        keys.insert("large".to_owned(), json!(true));
    }
    if let Some(outside) = &repo.outside {
        keys.insert("tests_from".to_owned(), json!(format!("sha256:{}", outside.given.sha256)));
        keys.insert("tests_at".to_owned(), json!(outside.at));
    }
    if let Some(pair) = &repo.pair {
        keys.insert("pair".to_owned(), json!({ "repo": pair.repo, "golden": pair.golden.name() }));
        if repo.is_scripted {
            keys.insert("run_tests".to_owned(), json!(format!("sha256:{}", sha256_of(&pair.scripts))));
        }
    }
    if repo.entries != Entries::default() {
        keys.insert("entries".to_owned(), json!(repo.entries.mode));
        keys.insert("entry".to_owned(), repo.entries.configured.iter().map(entry).collect());
    }
    Value::Object(keys)
}

fn entry(entry: &Entry) -> Value {
    let (stdin, stdin_file) = match &entry.stdin {
        None => (None, None),
        Some(Stdin::Text(text)) => (Some(publish(text)), None),
        Some(Stdin::File(file)) => (None, Some(file)),
    };
    json!({
        "name": entry.name,
        "command": publish(&entry.command.line()),
        "stdin": stdin,
        "stdin_file": stdin_file,
        "env": env(&entry.env),
        "cwd": Some(&entry.cwd).filter(|folder| !folder.is_empty()),
        "exit": entry.exit,
        "files": Some(&entry.files).filter(|globs| !globs.is_empty()),
    })
}

fn source(source: &SourceSpec) -> Map<String, Value> {
    let keys = match source {
        SourceSpec::Git { url, commit, submodules, subdirectory, .. } => {
            let mut keys = json!({ "git": publish_git_url(url), "commit": commit, "submodules": submodules });
            if let Some(folder) = subdirectory {
                keys["subdirectory"] = json!(folder);
            }
            keys
        }
        SourceSpec::Path { path, commit, allow_uncommitted } => {
            json!({ "path": last_segment(path), "commit": commit, "allow_uncommitted": allow_uncommitted })
        }
        SourceSpec::Pypi { project, version, sha256 } => {
            json!({ "pypi": format!("{project}=={version}"), "sha256": sha256 })
        }
        SourceSpec::Archive { pinned, .. } => json!({ "archive": pinned.commit }),
    };
    keys.as_object().cloned().unwrap_or_default()
}

fn last_segment(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn published(list: Option<&[String]>) -> Option<Vec<String>> {
    list.map(|list| list.iter().map(|text| publish(text)).collect())
}

/// Values of variables that look like secrets stay at home.
/// Variables as they may be published: secrets by name and credentials in addresses are left out.
pub fn env(env: &BTreeMap<String, String>) -> BTreeMap<&str, String> {
    let shown =
        |name: &str, value: &str| if is_secret_name(name) { REDACTED.to_owned() } else { publish(value) };
    env.iter().map(|(name, value)| (name.as_str(), shown(name, value))).collect()
}
