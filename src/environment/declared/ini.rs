//! Ini files (`setup.cfg`, `tox.ini`) as Python's configparser and tox read them. Pure.
//!
//! Not by the crate `configparser`: it refuses a whole file for one line that it cannot take apart (`= x`), and forgets
//! the order of keys.

use std::collections::BTreeMap;

/// An ini file as Python's configparser and tox read it: values go on in indented lines.
#[derive(Debug, Clone, Default)]
pub struct Ini {
    sections: BTreeMap<String, Vec<(String, String)>>,
}

impl Ini {
    /// Parses; lines that are neither section, key nor continuation are left out.
    pub fn parse(text: &str) -> Self {
        let mut sections: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        let mut section = String::new();
        for line in text.lines() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            if line.starts_with([' ', '\t']) {
                if let Some((_, value)) = sections.get_mut(&section).and_then(|keys| keys.last_mut()) {
                    value.push('\n');
                    value.push_str(trimmed);
                }
            } else if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                name.trim().clone_into(&mut section);
                sections.entry(section.clone()).or_default();
            } else if let Some((key, value)) = trimmed.split_once(['=', ':']) {
                let key = key.trim().replace('-', "_");
                sections.entry(section.clone()).or_default().push((key, value.trim().to_owned()));
            }
        }
        Ini { sections }
    }

    /// Whether there is such a section.
    pub fn has(&self, section: &str) -> bool {
        self.sections.contains_key(section)
    }

    /// A value; `-` and `_` in keys are one.
    pub fn get(&self, section: &str, key: &str) -> Option<&str> {
        let keys = self.sections.get(section)?;
        keys.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The non-empty lines of a value, comments cut.
    pub fn lines(&self, section: &str, key: &str) -> Vec<String> {
        let lines = self.get(section, key).unwrap_or_default().lines();
        lines
            .map(|line| line.split(" #").next().unwrap_or(line).trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect()
    }

    /// Section names, sorted.
    pub fn sections(&self) -> impl Iterator<Item = &str> {
        self.sections.keys().map(String::as_str)
    }

    /// Keys of a section, in file order.
    pub fn keys(&self, section: &str) -> Vec<String> {
        let keys = self.sections.get(section);
        keys.map(|keys| keys.iter().map(|(key, _)| key.clone()).collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_on_in_indented_lines_and_keep_their_semicolons() {
        let ini = Ini::parse("[a]\nx-y = 1\n  b ; python_version < '3' # why\n# no\n[b:c]\nz: 2\n");
        assert_eq!(ini.lines("a", "x_y"), ["1", "b ; python_version < '3'"]);
        assert_eq!(ini.get("b:c", "z"), Some("2"));
        assert_eq!(ini.keys("a"), ["x_y"]);
        assert!(!ini.has("c"));
    }
}
