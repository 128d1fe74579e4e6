//! A unified diff as people read it: files, and the lines of their hunks with numbers and text.

use super::diff::{Cursor, Sign, header_path, is_ignored};

/// What a diff does to a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// Its path before; none of a file that is new.
    pub old: Option<String>,
    /// Its path after; none of a file that is gone.
    pub new: Option<String>,
    /// Whether its content is not text.
    pub is_binary: bool,
    pub added: u64,
    pub removed: u64,
    pub lines: Vec<Line>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub sign: Sign,
    /// Its numbers on either side.
    pub old: Option<u64>,
    pub new: Option<u64>,
    pub text: String,
    /// Whether a hunk begins with it.
    pub begins: bool,
}

impl FileDiff {
    /// The path by which it is known.
    pub fn path(&self) -> &str {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }

    /// What became of it, in a word.
    pub fn status(&self) -> &'static str {
        match (&self.old, &self.new) {
            (None, _) => "new",
            (_, None) => "deleted",
            (Some(old), Some(new)) if old != new => "moved",
            _ => "changed",
        }
    }

    /// Whether its lines count for nothing: it is below a folder of what is built or installed.
    pub fn is_ignored(&self) -> bool {
        [&self.old, &self.new].into_iter().flatten().any(|path| is_ignored(path))
    }
}

/// The files of a diff as git writes it, in its order. Bytes that are not text are shown as such.
pub fn files(diff: &[u8]) -> Vec<FileDiff> {
    let (mut files, mut cursor, mut begins): (Vec<FileDiff>, Cursor, bool) = Default::default();
    for line in diff.split(|byte| *byte == b'\n') {
        if cursor.is_inside() {
            let Some(step) = cursor.step(line.first().copied()) else { continue };
            let Some(file) = files.last_mut() else { continue };
            file.added += u64::from(step.sign == Sign::Added);
            file.removed += u64::from(step.sign == Sign::Removed);
            file.lines.push(Line {
                sign: step.sign,
                old: (step.sign != Sign::Added).then_some(step.old),
                new: (step.sign != Sign::Removed).then_some(step.new),
                text: String::from_utf8_lossy(line.get(1..).unwrap_or_default()).into_owned(),
                begins: std::mem::take(&mut begins),
            });
        } else if let Some(names) = line.strip_prefix(b"diff --git ") {
            files.push(named(names));
        } else if let Some(file) = files.last_mut() {
            begins |= cursor.enter(line);
            file.head(line);
        }
    }
    files
}

/// The file of a `diff --git` line whose two paths are the same; other headers say it where they are not.
fn named(names: &[u8]) -> FileDiff {
    let whole = String::from_utf8_lossy(names);
    let half = whole.len() / 2;
    let path = whole.get(..half).and_then(|first| first.strip_prefix("a/")).map(str::to_owned);
    FileDiff { old: path.clone(), new: path, ..FileDiff::default() }
}

impl FileDiff {
    fn head(&mut self, line: &[u8]) {
        let after = |prefix: &str| line.strip_prefix(prefix.as_bytes());
        if let Some(path) = after("--- ") {
            self.old = header_path(path, "a/");
        } else if let Some(path) = after("+++ ") {
            self.new = header_path(path, "b/");
        } else if let Some(path) = after("rename from ").or_else(|| after("copy from ")) {
            self.old = header_path(path, "");
        } else if let Some(path) = after("rename to ").or_else(|| after("copy to ")) {
            self.new = header_path(path, "");
        } else if after("new file mode ").is_some() {
            self.old = None;
        } else if after("deleted file mode ").is_some() {
            self.new = None;
        } else if after("GIT binary patch").is_some() || after("Binary files ").is_some() {
            self.is_binary = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_what_became_of_them_and_lines_their_numbers() {
        let diff = "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n@@ -3,2 +3,3 @@ def f():\n x\n--- a\n\
                    ++++ b\n+z\n@@ -9 +10 @@\n-q\n\\ No newline at end of file\n+r\ndiff --git a/b.py b/c.py\nsimilarity index \
                    100%\nrename from b.py\nrename to c.py\ndiff --git a/n.bin b/n.bin\nnew file mode 100644\nGIT binary patch\n\
                    literal 1\nIc\n\ndiff --git a/d e.py b/d e.py\ndeleted file mode 100644\n";
        let files = files(diff.as_bytes());
        let seen: Vec<_> = files.iter().map(|file| (file.path(), file.status())).collect();
        assert_eq!(seen, [("a.py", "changed"), ("c.py", "moved"), ("n.bin", "new"), ("d e.py", "deleted")]);
        assert_eq!((files[0].added, files[0].removed), (3, 2));
        let line = |at: usize| {
            let one = &files[0].lines[at];
            (one.sign, one.old, one.new, one.text.as_str(), one.begins)
        };
        assert_eq!(line(0), (Sign::Context, Some(3), Some(3), "x", true));
        assert_eq!(line(1), (Sign::Removed, Some(4), None, "-- a", false));
        assert_eq!(line(2), (Sign::Added, None, Some(4), "+++ b", false));
        assert_eq!(line(4), (Sign::Removed, Some(9), None, "q", true));
        assert_eq!(line(5), (Sign::Added, None, Some(10), "r", false));
        assert!(files[2].is_binary && !files[0].is_binary);
        assert!(super::files(b"no diff\n+x\n").is_empty());
    }
}
