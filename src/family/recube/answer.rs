//! What is handed in, and under which names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

/// The name of a target's file in a published folder of outputs.
pub fn output_name(target: &str) -> String {
    target.replace('/', "_")
}

/// Targets by the names of their files in a folder of outputs.
///
/// # Errors
/// Names that two targets share.
pub fn output_names<'a>(
    targets: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeMap<String, &'a str>, BTreeSet<String>> {
    let (mut found, mut twice) = (BTreeMap::new(), BTreeSet::new());
    for target in targets {
        if found.insert(output_name(target), target).is_some() {
            twice.insert(output_name(target));
        }
    }
    if twice.is_empty() { Ok(found) } else { Err(twice) }
}

/// The file in a model's answer, and whether the answer has the form that was asked for: the first fenced block after the last
/// `FINAL_OUTPUT:`, else the first block of Python, else all of it.
pub fn code_of_answer(answer: &str) -> (String, bool) {
    static FINAL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"FINAL_OUTPUT\s*:").expect("a constant pattern"));
    let last = FINAL.find_iter(answer).last();
    let final_block = last.and_then(|mark| blocks(&answer[mark.end()..]).into_iter().next());
    if let Some((_, code)) = final_block {
        return (code.to_owned(), true);
    }
    if let Some((_, code)) = blocks(answer).into_iter().find(|(is_python, _)| *is_python) {
        return (code.to_owned(), last.is_none());
    }
    let text = answer.trim();
    let text = text.strip_prefix("```").map_or(text, |rest| {
        let rest = rest.strip_prefix("python").or_else(|| rest.strip_prefix("py")).unwrap_or(rest);
        let rest = rest.trim_start_matches([' ', '\t']);
        rest.strip_prefix('\n').unwrap_or(rest)
    });
    let text = text.strip_suffix("```").map_or(text, |rest| rest.strip_suffix('\n').unwrap_or(rest));
    (text.to_owned(), false)
}

/// Fenced blocks: whether each is marked as Python, and its text. A block ends at a line that is its fence and nothing else,
/// so that backticks within a docstring do not end it.
fn blocks(text: &str) -> Vec<(bool, &str)> {
    let mut lines = Vec::new();
    let mut ends: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let ticks = line.len() - line.trim_start_matches('`').len();
        let rest = line[ticks..].trim_matches([' ', '\t', '\r', '\n']);
        if ticks >= 3 && rest.is_empty() {
            ends.entry(ticks).or_default().push(lines.len());
        }
        lines.push((start, line.len(), ticks, rest));
        start += line.len();
    }
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some((start, length, ticks, rest)) = lines.get(at).copied() {
        at += 1;
        if ticks < 3 || !matches!(rest, "" | "python" | "py") {
            continue;
        }
        let ends = ends.get(&ticks).map_or(&[][..], Vec::as_slice);
        if let Some(end) = ends.get(ends.partition_point(|end| *end < at)) {
            found.push((!rest.is_empty(), &text[start + length..lines[*end].0]));
            at = end + 1;
        }
    }
    found
}

/// A text after the hunks of a unified diff that are about a path. None where none is, or where one does not apply exactly.
pub fn patched(text: &str, patch: &str, path: &str) -> Option<String> {
    let old: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut made, mut at, mut any) = (String::new(), 0, false);
    let mut lines = patch.split_inclusive('\n').peekable();
    let mut is_inside = false;
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("+++ ") {
            let name = name.split(['\t', '\r', '\n']).next().unwrap_or_default();
            is_inside = name.strip_prefix("b/").unwrap_or(name) == path;
        }
        let Some((start, mut before, mut after)) = hunk(line).filter(|_| is_inside) else { continue };
        let start = if before == 0 { start } else { start.checked_sub(1)? };
        made.extend(old.get(at..start)?.iter().copied());
        at = start;
        any = true;
        while before > 0 || after > 0 {
            let line = lines.next()?;
            let (mark, body) = line.split_at_checked(1)?;
            // An empty line of context may have lost its blank.
            let (mark, body) = if matches!(mark, "\n" | "\r") { (" ", line) } else { (mark, body) };
            let is_last = lines.peek().is_some_and(|next| next.starts_with("\\ No newline"));
            let body = if is_last { body.strip_suffix('\n').unwrap_or(body) } else { body };
            if matches!(mark, " " | "-") {
                (old.get(at)? == &body).then_some(())?;
                (at, before) = (at + 1, usize::checked_sub(before, 1)?);
            }
            if matches!(mark, " " | "+") {
                made.push_str(body);
                after = usize::checked_sub(after, 1)?;
            } else if !matches!(mark, "-" | "\\") {
                return None;
            }
        }
    }
    made.extend(old.get(at..)?.iter().copied());
    any.then_some(made)
}

/// First line, lines before and lines after of a hunk, by its header.
fn hunk(line: &str) -> Option<(usize, usize, usize)> {
    let mut ranges = line.strip_prefix("@@ -")?.split(" @@").next()?.split(" +");
    let mut range = || {
        let (start, count) = ranges.next().map(|range| range.split_once(',').unwrap_or((range, "1")))?;
        Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    let ((start, before), (_, after)) = (range()?, range()?);
    Some((start, before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_applies_exactly_or_not_at_all() {
        let text = "a\nb\nc\nd\n";
        let patch = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-q\n+r\n";
        assert_eq!(patched(text, patch, "x.py").as_deref(), Some("a\nB\nc\nd\n"));
        assert_eq!(patched("a\nz\nc\n", patch, "x.py"), None);
        assert_eq!(patched(text, patch, "z.py"), None);
        let end = "--- a/x.py\n+++ b/x.py\n@@ -4,1 +4,2 @@\n d\n+e\n\\ No newline at end of file\n";
        assert_eq!(patched(text, end, "x.py").as_deref(), Some("a\nb\nc\nd\ne"));
        let new = "--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+x\n";
        assert_eq!(patched("", new, "x.py").as_deref(), Some("x\n"));
        for broken in [
            "+++ b/x.py\n@@ -1,9 +1,9 @@\n a\n",
            "+++ b/x.py\n@@ -9,1 +9,1 @@\n-a\n",
            "+++ b/x.py\n@@ -1 +1 @@\n?\n",
        ] {
            assert_eq!(patched(text, broken, "x.py"), None, "{broken}");
        }
    }
}
