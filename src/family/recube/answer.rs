//! What is handed in, and under which names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

/// The name of a target's file in a published folder of outputs.
pub fn output_name(target: &str) -> String {
    target.replace('/', "_")
}

/// The name of a target's test file in a published folder of tests.
pub fn test_name(target: &str) -> String {
    format!("{}_test.py", output_name(target.strip_suffix(".py").unwrap_or(target)))
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
