//! Rules that matched nothing in the last build.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::Config;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::rules::RuleSet;
use crate::text::count;

/// What the last build of a configuration says about the rules that are in force now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LastBuild {
    /// The dataset, or where it would be.
    pub directory: PathBuf,
    pub found: bool,
    /// Groups that it has; rules are applied to those that could be collected.
    pub groups: usize,
    /// Rules that matched nothing.
    pub unused: Vec<String>,
    /// Rules that it did not have.
    pub unknown: Vec<String>,
    /// Whether rules say something else now.
    pub changed: bool,
}

impl LastBuild {
    /// Looks at the dataset of this configuration below `output`.
    ///
    /// # Errors
    /// Usage errors: it exists and cannot be read.
    pub(super) fn read(output: &Path, config: &Config, rules: &RuleSet) -> Result<Self> {
        let directory = output.join(&config.dataset.name).join(&config.dataset.version);
        let dataset = Dataset::find(&directory)?;
        let mut last = LastBuild {
            directory,
            found: dataset.is_some(),
            groups: 0,
            unused: Vec::new(),
            unknown: Vec::new(),
            changed: false,
        };
        let Some(Dataset { manifest, .. }) = dataset else { return Ok(last) };
        let uses = manifest.rules.unwrap_or_default();
        for id in rules.rules().iter().map(|rule| &rule.id) {
            match uses.get(id) {
                Some(one) if one.matched == 0 => last.unused.push(id.clone()),
                Some(_) => {}
                None => last.unknown.push(id.clone()),
            }
        }
        last.groups = manifest.counts.total.groups;
        last.changed = manifest.config["rules"]["sha256"] != rules.sha256().as_str();
        Ok(last)
    }

    /// For the user, in one line.
    pub(super) fn describe(&self) -> String {
        let place = self.directory.display();
        if !self.found {
            return format!("there is no last build in {place}, so it is not known which rules match");
        }
        let unused = match self.unused.as_slice() {
            [] => "none".to_owned(),
            unused => unused.join(", "),
        };
        let mut parts = vec![format!("{unused} (last build: {place}, {})", count(self.groups, "group"))];
        if !self.unknown.is_empty() {
            parts.push(format!("that build did not have, or did not count, {}", self.unknown.join(", ")));
        }
        if self.changed {
            parts.push("rules have changed since".to_owned());
        }
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "\
[[rule]]\nid = 'a'\nreason = 'r'\naction = 'flag'\nmatch = {name = 'x'}\n
[[rule]]\nid = 'b'\nreason = 'r'\naction = 'drop'\nmatch = {name = 'x'}\n";

    fn last_build(manifest: Option<serde_json::Value>) -> Result<LastBuild> {
        let output = tempfile::tempdir().unwrap();
        let config = crate::config::parse(crate::config::DEFAULT, Path::new("."), &|_, _| None).unwrap();
        let folder = output.path().join(&config.dataset.name).join(&config.dataset.version);
        fs_err::create_dir_all(&folder).unwrap();
        if let Some(manifest) = manifest {
            crate::store::write_json(&folder.join("manifest.json"), &manifest).unwrap();
        }
        LastBuild::read(output.path(), &config, &RuleSet::parse(&[("a.toml", RULES)]).unwrap())
    }

    fn used(matched: u64) -> serde_json::Value {
        serde_json::json!({ "action": "flag", "matched": matched, "decided": 0 })
    }

    #[test]
    fn without_a_dataset_nothing_is_claimed() {
        let last = last_build(None).unwrap();
        assert!(!last.found && last.unused.is_empty());
        assert!(last.describe().starts_with("there is no last build in "), "{}", last.describe());
    }

    #[test]
    fn rules_that_matched_nothing_and_those_that_were_not_there_are_told_apart() {
        let sha256 = RuleSet::parse(&[("a.toml", RULES)]).unwrap().sha256();
        let manifest = |rules: serde_json::Value| {
            let counts = serde_json::json!({ "total": crate::dataset::counts::Counts { groups: 7, ..Default::default() }, "repositories": {} });
            serde_json::json!({
                "format_version": crate::dataset::FORMAT_VERSION,
                "name": "n",
                "version": "1",
                "sources": {},
                "files": {},
                "rules": rules,
                "config": { "rules": { "sha256": sha256 } },
                "counts": counts,
            })
        };
        let all = last_build(Some(manifest(serde_json::json!({ "a": used(3), "b": used(0) })))).unwrap();
        assert_eq!(
            (all.unused, all.unknown, all.changed, all.groups),
            (vec!["b".to_owned()], vec![], false, 7)
        );
        let some = last_build(Some(manifest(serde_json::json!({ "a": used(0) })))).unwrap();
        assert_eq!((&some.unused[..], &some.unknown[..]), (&["a".to_owned()][..], &["b".to_owned()][..]));
        assert!(
            some.describe().ends_with("; that build did not have, or did not count, b"),
            "{}",
            some.describe()
        );
    }

    #[test]
    fn a_manifest_of_other_rules_or_of_another_shape_is_told() {
        let older = serde_json::json!({
            "format_version": crate::dataset::FORMAT_VERSION,
            "name": "n",
            "version": "1",
            "sources": {},
            "files": {},
            "counts": { "total": crate::dataset::counts::Counts::default(), "repositories": {} },
        });
        let last = last_build(Some(older)).unwrap();
        assert!(last.changed && last.unknown == ["a", "b"]);
        assert!(last.describe().starts_with("none (last build: "), "{}", last.describe());
        assert!(last_build(Some(serde_json::json!({ "rules": [1] }))).is_err());
    }
}
