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

/// What a line of a hunk does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Context,
    Removed,
    Added,
}

/// A line of a hunk, with its numbers on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) sign: Sign,
    pub(super) old: u64,
    pub(super) new: u64,
}

/// Where in a hunk a reader is.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    old: u64,
    new: u64,
    /// Lines of the hunk that are still to come, of either side.
    left: u64,
    right: u64,
}

impl Cursor {
    /// Whether what comes next is a line of a hunk, whatever it looks like.
    pub(super) fn is_inside(&self) -> bool {
        self.left > 0 || self.right > 0
    }

    /// Enters a hunk, where the line is its header.
    pub(super) fn enter(&mut self, line: &[u8]) -> bool {
        let Some(hunk) = HUNK.captures(line) else { return false };
        let number = |at: usize| {
            let digits = hunk.get(at).map(|found| found.as_bytes())?;
            Some(std::str::from_utf8(digits).ok()?.parse::<u64>().unwrap_or(u64::MAX))
        };
        (self.old, self.new) = (number(1).unwrap_or_default(), number(3).unwrap_or_default());
        (self.left, self.right) = (number(2).unwrap_or(1), number(4).unwrap_or(1));
        true
    }

    /// The line that begins so; none for a remark about the one before.
    pub(super) fn step(&mut self, head: Option<u8>) -> Option<Step> {
        let sign = match head {
            Some(b'\\') => return None,
            Some(b'-') => Sign::Removed,
            Some(b'+') => Sign::Added,
            _ => Sign::Context,
        };
        let step = Step { sign, old: self.old, new: self.new };
        if sign != Sign::Added {
            (self.old, self.left) = (self.old.saturating_add(1), self.left.saturating_sub(1));
        }
        if sign != Sign::Removed {
            (self.new, self.right) = (self.new.saturating_add(1), self.right.saturating_sub(1));
        }
        Some(step)
    }
}

#[derive(Default)]
struct Reader {
    found: Changed,
    old: Option<String>,
    new: Option<String>,
    cursor: Cursor,
    counts: bool,
}

impl Reader {
    fn read(&mut self, line: &[u8]) {
        if self.cursor.is_inside() {
            self.in_hunk(line.first().copied());
        } else if let Some(path) = line.strip_prefix(b"--- ") {
            self.old = header_path(path, "a/");
        } else if let Some(path) = line.strip_prefix(b"+++ ") {
            self.new = header_path(path, "b/");
            self.counts = ![&self.old, &self.new].into_iter().flatten().any(|path| is_ignored(path));
        } else {
            self.cursor.enter(line);
        }
    }

    fn in_hunk(&mut self, head: Option<u8>) {
        let Some(Step { sign, old, new }) = self.cursor.step(head).filter(|_| self.counts) else { return };
        match (sign, &self.old, &self.new) {
            (Sign::Removed, Some(path), _) => self.found.removed.insert(path, old, old),
            (Sign::Added, _, Some(path)) => self.found.added.insert(path, new, new),
            _ => {}
        }
    }
}

/// The path after `---` or `+++`; none for a file that does not exist on that side.
pub(super) fn header_path(text: &[u8], side: &str) -> Option<String> {
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
