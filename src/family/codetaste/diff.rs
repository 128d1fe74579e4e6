//! Unified diffs: which lines one removes, and which it adds.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::lines::Lines;

/// Folder names of what is installed or built. Lines of files below them do not count for the precision of a patch.
pub const IGNORED_PARTS: [&str; 22] = [
    ".venv",
    "venv",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".tox",
    ".ruff_cache",
    "node_modules",
    "dist",
    "build",
    ".next",
    ".nuxt",
    "target",
    ".gradle",
    "out",
    "bin",
    "obj",
    "vendor",
    ".cache",
    "coverage",
    ".cargo-home",
    "package-lock.json",
];

/// Whether a path has a part of what is installed or built.
pub fn is_ignored(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| IGNORED_PARTS.contains(&part))
}

/// What a diff does to lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// Lines of the tree before.
    pub removed: Lines,
    /// Lines of the tree after.
    pub added: Lines,
}

static HUNK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
        .expect("the pattern of hunks is a pattern")
});

/// The lines that a unified diff changes, but for those of files that are [ignored](is_ignored). Hunks end by their
/// counts, so that a line in one that looks like a header is text; only a line feed ends a line.
pub fn changed(diff: &[u8]) -> Changed {
    let mut reader = Reader { counts: true, ..Reader::default() };
    for line in diff.split(|byte| *byte == b'\n') {
        reader.read(line);
    }
    reader.found
}

#[derive(Default)]
struct Reader {
    found: Changed,
    old: Option<String>,
    new: Option<String>,
    at_old: u64,
    at_new: u64,
    /// Lines of the hunk that are still to come, of either side.
    left: u64,
    right: u64,
    counts: bool,
}

impl Reader {
    fn read(&mut self, line: &[u8]) {
        if self.left > 0 || self.right > 0 {
            self.in_hunk(line.first().copied());
        } else if let Some(path) = line.strip_prefix(b"--- ") {
            self.old = header_path(path, "a/");
        } else if let Some(path) = line.strip_prefix(b"+++ ") {
            self.new = header_path(path, "b/");
            self.counts = ![&self.old, &self.new].into_iter().flatten().any(|path| is_ignored(path));
        } else if let Some(hunk) = HUNK.captures(line) {
            let number = |at: usize| {
                let digits = hunk.get(at).map(|found| found.as_bytes())?;
                Some(std::str::from_utf8(digits).ok()?.parse::<u64>().unwrap_or(u64::MAX))
            };
            (self.at_old, self.at_new) = (number(1).unwrap_or_default(), number(3).unwrap_or_default());
            (self.left, self.right) = (number(2).unwrap_or(1), number(4).unwrap_or(1));
        }
    }

    fn in_hunk(&mut self, head: Option<u8>) {
        let (from_old, from_new) = match head {
            Some(b'\\') => return,
            Some(b'-') => (true, false),
            Some(b'+') => (false, true),
            _ => (true, true),
        };
        if from_old
            && !from_new
            && self.counts
            && let Some(path) = &self.old
        {
            self.found.removed.insert(path, self.at_old, self.at_old);
        }
        if from_new
            && !from_old
            && self.counts
            && let Some(path) = &self.new
        {
            self.found.added.insert(path, self.at_new, self.at_new);
        }
        if from_old {
            (self.at_old, self.left) = (self.at_old.saturating_add(1), self.left.saturating_sub(1));
        }
        if from_new {
            (self.at_new, self.right) = (self.at_new.saturating_add(1), self.right.saturating_sub(1));
        }
    }
}

/// The path after `---` or `+++`; none for a file that does not exist on that side.
fn header_path(text: &[u8], side: &str) -> Option<String> {
    let path = text.split(|byte| *byte == b'\t').next().unwrap_or_default();
    let path = unquoted(path);
    let path = String::from_utf8_lossy(&path);
    (path != "/dev/null").then(|| path.strip_prefix(side).unwrap_or(&path).to_owned())
}

/// A path as git prints it, without its quotes.
fn unquoted(path: &[u8]) -> Cow<'_, [u8]> {
    let Some(inner) = path.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        return Cow::Borrowed(path);
    };
    let mut plain = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            plain.push(byte);
        } else if let [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', after @ ..] = rest {
            plain.push((high - b'0') * 64 + (middle - b'0') * 8 + (low - b'0'));
            rest = after;
        } else if let Some((&letter, after)) = rest.split_first() {
            plain.push(escaped(letter));
            rest = after;
        }
    }
    Cow::Owned(plain)
}

fn escaped(letter: u8) -> u8 {
    match letter {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_paths_are_those_that_git_meant() {
        assert_eq!(&*unquoted(br#""a/\303\251\t\"\\.py""#), "a/é\t\"\\.py".as_bytes());
        assert_eq!(&*unquoted(br"a\303"), br"a\303");
        assert_eq!(&*unquoted(b"\""), b"\"");
    }

    #[test]
    fn numbers_beyond_all_bounds_are_no_trouble() {
        let huge = "9".repeat(40);
        let diff = format!("--- a/a\n+++ b/a\n@@ -{huge},{huge} +{huge},{huge} @@\n-x\n-y\n+z\n");
        let found = changed(diff.as_bytes());
        assert_eq!((found.removed.count(), found.added.count()), (1, 1));
        let outside = changed(b"--- /dev/null\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n");
        assert_eq!((outside.removed.count(), outside.added.count()), (0, 1), "a line of no file is no line");
    }
}
