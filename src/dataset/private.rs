//! Host paths that must not be published, and what replaces them. Pure but for [`Private::with_home`].
//!
//! Texts that describe a build (a resolver's output, a note) may quote paths of this machine. The last line of defence:
//! every known one is replaced by a name in angle brackets, longest first.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};

use crate::record::environment::Built;
use crate::record::evidence::RepositoryEvidence;

/// Replacements of host paths by names.
#[derive(Debug, Clone, Default)]
pub struct Private {
    /// Longest path first.
    names: Vec<(String, &'static str)>,
}

/// Prefixes that every machine has and that say nothing.
const PUBLIC: [&str; 4] = ["", "/", "/usr", "/usr/local"];

impl Private {
    /// The paths of one repository's build.
    pub fn of_repository(record: &RepositoryEvidence) -> Self {
        Private::default().and(record).with_home()
    }

    /// The paths of all of them.
    pub fn of_all<'a>(records: impl Iterator<Item = &'a RepositoryEvidence>) -> Self {
        records.fold(Private::default(), Private::and).with_home()
    }

    /// The paths of one environment.
    pub fn of_environment(built: &Built) -> Self {
        Private::default().and_environment(built).with_home()
    }

    fn and(self, record: &RepositoryEvidence) -> Self {
        let mut both = self.and_environment(&record.built);
        both.add(&record.pinned.tree, "<root>");
        both
    }

    fn and_environment(mut self, built: &Built) -> Self {
        self.add(&built.recipe_dir, "<recipe>");
        self.add(&built.venv, "<venv>");
        self.add(&built.tree, "<root>");
        self.add(&built.python_prefix, "<python>");
        self
    }

    fn with_home(mut self) -> Self {
        if let Some(home) = std::env::home_dir() {
            self.add(&home, "~");
        }
        self
    }

    fn add(&mut self, path: &Path, name: &'static str) {
        let text = path.to_string_lossy().trim_end_matches('/').to_owned();
        if !PUBLIC.contains(&text.as_str()) && text.starts_with('/') {
            self.names.push((text, name));
            self.names.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
            self.names.dedup();
        }
    }

    /// The text with every known path replaced.
    pub fn hide(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (path, name)| replace_path(&text, path, name))
    }

    /// A copy in which every text has every known path replaced.
    ///
    /// # Errors
    /// When that is not such a value any more, which is a bug.
    pub fn hide_in<T: Serialize + DeserializeOwned>(&self, value: &T) -> Result<T> {
        let hidden = serde_json::to_value(value).map(|value| self.hide_all(value));
        hidden
            .and_then(serde_json::from_value)
            .map_err(|error| Error::internal("cannot hide host paths in the manifest").with_source(error))
    }

    fn hide_all(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hide(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.hide_all(item)).collect()),
            Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(key, item)| (key, self.hide_all(item))).collect())
            }
            plain => plain,
        }
    }
}

/// Replaces a path where it is a path of its own: not inside a longer one (`/srv/root/x`), not as the start of another name
/// (`/rooted`).
fn replace_path(text: &str, path: &str, name: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(path) {
        let (before, after) = (&rest[..at], &rest[at + path.len()..]);
        let inside =
            before.chars().next_back().or(out.chars().next_back()).is_some_and(|c| is_name(c) || c == '.');
        let longer = after.chars().next().is_some_and(is_name);
        out.push_str(before);
        out.push_str(if inside || longer { path } else { name });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_hidden_only_where_it_is_that_path() {
        let hide = |text| replace_path(text, "/root", "~");
        assert_eq!(hide("/root/.cache and '/root'"), "~/.cache and '~'");
        assert_eq!(hide("/rooted /srv/root /root"), "/rooted /srv/root ~");
    }

    #[test]
    fn the_longest_path_wins_and_common_prefixes_stay() {
        let mut private = Private::default();
        private.add(Path::new("/home/someone"), "~");
        private.add(Path::new("/home/someone/cache/venv"), "<venv>");
        private.add(Path::new("/usr"), "<python>");
        assert_eq!(
            private.hide("/home/someone/cache/venv/bin /home/someone/x /usr/bin"),
            "<venv>/bin ~/x /usr/bin"
        );
    }
}
