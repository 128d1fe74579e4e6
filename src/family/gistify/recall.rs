//! Trace recall: which of the functions that the original calls a submission has, in their place, and runs.

use std::collections::{BTreeMap, BTreeSet};

use super::existence::{Existence, Line};
use super::units::LineKind;
use crate::score::Ratio;

/// A function of the repository: its file and its qualified name, as a trace has them.
pub type TracedFunction = (String, String);

/// `trace_recall`: of the functions that the cases of the original call, those of tests and fixtures aside, how many
/// the submission defines in a block of the same name, and enters. `ran` has the lines of the submission that ran;
/// without it what is defined counts.
pub fn trace_recall(
    traced: &[TracedFunction],
    is_test: impl Fn(&str) -> bool,
    lines: &[Line],
    ran: Option<&BTreeSet<u32>>,
) -> Ratio {
    let called = traced.iter().filter(|(file, _)| !is_test(file));
    let called: BTreeSet<Vec<&str>> = called.filter_map(|(_, name)| block(name)).collect();
    let entered = entered(lines, ran);
    called.iter().fold(Ratio::default(), |rate, block| rate.with(entered.get(block) == Some(&true)))
}

/// The chain of names of a qualified name. None of what has no block: a lambda, a comprehension, a module.
fn block(name: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = name.split('.').filter(|part| *part != "<locals>").collect();
    let has_block = !parts.iter().any(|part| part.starts_with('<') || part.is_empty());
    has_block.then_some(parts)
}

/// The functions of a submission, and whether one of their lines ran; of those without a line that could, whether the repository
/// has them.
fn entered<'l>(lines: &'l [Line], ran: Option<&BTreeSet<u32>>) -> BTreeMap<Vec<&'l str>, bool> {
    let is_function = |kind| matches!(kind, LineKind::Function | LineKind::AsyncFunction);
    let path = |line: &'l Line| line.block.iter().map(String::as_str).collect::<Vec<_>>();
    let is_known = |line: &Line| ran.is_none() || matches!(line.existence, Existence::Found { .. });
    let mut found: BTreeMap<Vec<&str>, bool> =
        lines.iter().filter(|line| is_function(line.kind)).map(|line| (path(line), is_known(line))).collect();
    let Some(ran) = ran else { return found };
    let mut seen: BTreeMap<Vec<&str>, bool> = BTreeMap::new();
    let inside = lines.iter().filter(|line| !is_function(line.kind) && line.kind != LineKind::Text);
    for line in inside {
        *seen.entry(path(line)).or_default() |= ran.contains(&line.first);
    }
    for (path, entered) in &mut found {
        *entered = seen.get(path).copied().unwrap_or(*entered);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::gistify::Corpus;
    use crate::score::{File, Modules};

    const TEXT: &str = "\
class Box:
    def size(self):
        return 1
    def empty(self):
        'Nothing.'
def join(parts):
    def inner():
        return 2
    return inner
def helper(): return 3
";

    fn recall(ran: Option<&[u32]>) -> Ratio {
        let original = File { path: "tiny/core.py", text: TEXT };
        let corpus = Corpus::of(&[original], Modules::default());
        let lines = corpus.line_existence(TEXT).unwrap().lines;
        let ran = ran.map(|lines| lines.iter().copied().collect());
        let traced =
            ["Box.size", "Box.empty", "join", "join.<locals>.inner", "join.<locals>.<lambda>", "gone"];
        let mut traced: Vec<TracedFunction> =
            traced.iter().map(|name| ("tiny/core.py".to_owned(), (*name).to_owned())).collect();
        traced.push(("tests/test_box.py".to_owned(), "helper".to_owned()));
        trace_recall(&traced, |file| file.starts_with("tests/"), &lines, ran.as_ref())
    }

    #[test]
    fn what_is_defined_in_its_place_and_runs_counts() {
        assert_eq!(recall(None), Ratio { part: 4, whole: 5 });
        assert_eq!(recall(Some(&[1, 2, 3, 6, 7, 8, 9])), Ratio { part: 4, whole: 5 });
        assert_eq!(recall(Some(&[1, 2, 6, 7, 9])), Ratio { part: 2, whole: 5 }, "headers run on their own");
        assert_eq!(recall(Some(&[])), Ratio { part: 1, whole: 5 });
    }

    #[test]
    fn a_header_over_a_text_is_not_a_function_that_does_something() {
        let original = File { path: "tiny/core.py", text: TEXT };
        let corpus = Corpus::of(&[original], Modules::default());
        let found = corpus.line_existence("def join(): 'A text.'\ndef helper():\n    'A text.'\n").unwrap();
        assert_eq!(found.rate, Ratio { part: 0, whole: 2 });
        let traced = ["join", "helper"].map(|name| ("tiny/core.py".to_owned(), name.to_owned()));
        let ran = BTreeSet::from([1, 2, 3]);
        assert_eq!(trace_recall(&traced, |_| false, &found.lines, Some(&ran)), Ratio { part: 0, whole: 2 });
    }

    #[test]
    fn a_stub_has_nothing_of_what_the_original_calls() {
        let corpus = Corpus::of(&[], Modules::default());
        let lines = corpus.line_existence("Box = dict\ndef size(self): return 1\n").unwrap().lines;
        let traced = [("tiny/core.py".to_owned(), "Box.size".to_owned())];
        assert_eq!(trace_recall(&traced, |_| false, &lines, None), Ratio { part: 0, whole: 1 });
        assert_eq!(trace_recall(&traced, |_| true, &lines, None).rate(), None);
    }
}
