//! The machine on which a dataset was built.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What of a machine can matter to tests, beside what an environment fixes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Name and release.
    pub kernel: String,
    pub architecture: String,
    pub cpus: usize,
    /// In the base world.
    pub locale: String,
    /// Builds of the interpreters and their C library, by slug.
    pub interpreters: BTreeMap<String, String>,
    /// Programs that ran patterns of code, by slug, with version and SHA-256. Empty where none was needed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub engines: BTreeMap<String, String>,
}

impl HostFacts {
    /// Whether patterns are run by another program here than when the dataset was built, in words.
    pub fn engine_difference(&self, slug: &str, here: &str) -> Option<String> {
        let built = self.engines.get(slug).filter(|built| *built != here)?;
        Some(format!("engine of the patterns of {slug}: built with {built}, here {here}"))
    }

    /// What differs here, a line each. Nothing is said of what was not recorded.
    pub fn differences(&self, here: &HostFacts) -> Vec<String> {
        let mut pairs = vec![
            ("kernel".to_owned(), self.kernel.clone(), here.kernel.clone()),
            ("architecture".to_owned(), self.architecture.clone(), here.architecture.clone()),
            ("locale".to_owned(), self.locale.clone(), here.locale.clone()),
        ];
        if self.cpus > 0 {
            pairs.push(("processors".to_owned(), self.cpus.to_string(), here.cpus.to_string()));
        }
        for (slug, build) in &here.interpreters {
            let built = self.interpreters.get(slug).cloned().unwrap_or_default();
            pairs.push((format!("interpreter of {slug}"), built, build.clone()));
        }
        pairs.retain(|(_, built, here)| !built.is_empty() && built != here);
        pairs
            .into_iter()
            .map(|(what, built, here)| format!("{what}: built with {built}, here {here}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_and_what_was_not_recorded_is_not() {
        let built = HostFacts {
            kernel: "Linux 6.1".into(),
            cpus: 2,
            interpreters: [("a/b".to_owned(), "3.12.1 gcc".to_owned())].into(),
            ..HostFacts::default()
        };
        let here = HostFacts {
            kernel: "Linux 6.8".into(),
            architecture: "x86_64".into(),
            cpus: 2,
            interpreters: [("a/b", "3.12.1 clang"), ("a/c", "3.9")]
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
                .into(),
            ..HostFacts::default()
        };
        assert_eq!(
            built.differences(&here),
            [
                "kernel: built with Linux 6.1, here Linux 6.8",
                "interpreter of a/b: built with 3.12.1 gcc, here 3.12.1 clang"
            ]
        );
        assert_eq!(HostFacts::default().differences(&here), Vec::<String>::new());
        let built = HostFacts { engines: [("a/b".to_owned(), "semgrep 1".to_owned())].into(), ..built };
        assert_eq!(built.engine_difference("a/b", "semgrep 1"), None);
        let said = "engine of the patterns of a/b: built with semgrep 1, here opengrep 2";
        assert_eq!(built.engine_difference("a/b", "opengrep 2").as_deref(), Some(said));
    }
}
