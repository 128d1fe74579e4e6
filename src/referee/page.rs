//! The page of scores: the tables, every submission, and its file line by line. One HTML file that loads nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::gistify::judged::Judged;
use super::gistify::tables::{self, Run, Table};
use super::scored::{Scored, spelled};
use super::submissions;
use crate::error::Result;
use crate::family::gistify;
use crate::family::gistify::{Existence, LineRun};
use crate::page::{self, Dictionary};
use crate::score::Ratio;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Longest file that is shown, in bytes.
const LONGEST_SHOWN: usize = 200_000;
/// Cases that differ, and findings, that are shown of one submission.
const MOST_SHOWN: usize = 20;

/// What the page is of.
pub(crate) struct Scores<'a> {
    pub(crate) dataset: &'a str,
    pub(crate) version: &'a str,
    pub(crate) runs: Vec<Run<'a>>,
    /// The submitted text, by index of the run and instance id.
    pub(crate) text: &'a dyn Fn(usize, &str) -> Option<&'a [u8]>,
}

/// A line of the table of submissions.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    instance: &'a str,
    group: &'a str,
    slug: &'a str,
    tier: &'a str,
    hard: bool,
    fidelity: Option<bool>,
    class: Option<String>,
    detail: Option<String>,
    execution: Option<f64>,
    existence: Option<f64>,
    f1: Option<f64>,
    passed: Option<(u32, u32)>,
    lines: usize,
}

/// Renders the page, and the tables that are on it.
///
/// # Errors
/// Never for what the referee made: it is a text.
pub(crate) fn render(scores: &Scores<'_>) -> Result<(String, Vec<Table>)> {
    let tables = tables::tables(&scores.runs);
    let mut lines = Vec::new();
    let mut details = String::new();
    for (at, run) in scores.runs.iter().enumerate() {
        for one in run.scored {
            let text = (scores.text)(at, one.instance.instance_id.as_str());
            let detail = page::embedded(&detail(one, text))?;
            let id = lines.len();
            let _ = writeln!(details, "<script type=\"application/json\" id=\"d{id}\">{detail}</script>");
            lines.push(line(one));
        }
    }
    let data = json!({
        "dataset": scores.dataset,
        "version": scores.version,
        "runs": scores.runs.iter().map(|run| json!({ "name": run.name, "meta": run.meta })).collect::<Vec<_>>(),
        "tables": tables,
        "submissions": lines,
    });
    let title = format!("{} {}", scores.dataset, scores.version);
    let title: String = title.chars().filter(|one| !matches!(one, '<' | '>' | '&')).collect();
    let text = crate::text::filled(
        PAGE,
        &[
            ("title", &title),
            ("icon", page::ICON),
            ("dialog", page::DIALOG),
            ("style", &[page::STYLE, STYLE].concat()),
            ("data", &page::embedded(&data)?),
            ("script", &[page::SCRIPT, SCRIPT].concat()),
            ("details", &details),
        ],
    );
    Ok((text, tables))
}

fn line<'a>(one: &'a Scored<'_>) -> Line<'a> {
    let (instance, judged) = (one.instance, &one.judged);
    Line {
        run: one.run,
        instance: instance.instance_id.as_str(),
        group: &instance.group_id,
        slug: instance.slug.as_str(),
        tier: instance.tier.as_str(),
        hard: !instance.hard_axes.is_empty(),
        fidelity: judged.verdict.fidelity,
        class: judged.verdict.class.as_ref().and_then(spelled),
        detail: judged.verdict.detail.as_ref().and_then(spelled),
        execution: judged.row.execution.and_then(Ratio::rate),
        existence: judged.row.existence.and_then(Ratio::rate),
        f1: judged.row.test_f1,
        passed: judged.row.cases.map(|cases| (cases.passed, cases.total)),
        lines: judged.lines,
    }
}

/// Everything about one submission.
fn detail(one: &Scored<'_>, text: Option<&[u8]>) -> Value {
    let (instance, judged) = (one.instance, &one.judged);
    let shown = text.filter(|text| text.len() <= LONGEST_SHOWN).map(String::from_utf8_lossy);
    let comparison = judged.comparison.as_ref();
    let different = comparison.map(|comparison| {
        let cases = comparison.cases.iter().filter(|case| case.difference.is_some());
        cases.take(MOST_SHOWN).collect::<Vec<_>>()
    });
    json!({
        "command": instance.entry_command,
        "bytes": text.map(<[u8]>::len),
        "text": shown,
        "lines": shown.as_ref().map(|_| Lines::of(judged)),
        "injection": judged.injection,
        "replacement": judged.replacement,
        "unreadable": judged.unreadable,
        "untraced": judged.untraced,
        "attempts": judged.attempts,
        "violations": judged.verdict.violations,
        "findings": judged.findings.iter().take(MOST_SHOWN).collect::<Vec<_>>(),
        "imports": judged.import_attempts.iter().take(MOST_SHOWN).collect::<Vec<_>>(),
        "cases": different,
        "output": judged.output,
    })
}

/// The lines of a file in little space: what repeats once, and numbers as distances.
#[derive(Debug, Default, Serialize)]
struct Lines {
    types: Dictionary<String>,
    files: Dictionary<String>,
    /// Five numbers a line: how far its first physical line is behind that of the line before, how many more it has, a code
    /// (9 × type + 3 × existence + execution, the latter two 0 where they are not counted, 1 for no, 2 for yes), 1 + the file
    /// it stands in, or 0, and how far its place is from the last one.
    flat: Vec<i64>,
}

impl Lines {
    fn of(judged: &Judged) -> Self {
        Self::encoded(judged.submitted_lines(), &judged.executed_by_line())
    }

    fn encoded(submitted: &[gistify::Line], executed: &BTreeMap<u32, LineRun>) -> Self {
        let mut lines = Lines::default();
        let (mut first, mut there) = (0, 0);
        for line in submitted {
            let kind = lines.types.number(spelled(&line.line_type).unwrap_or_default());
            let (existence, place) = match &line.existence {
                Existence::NotCounted => (0, None),
                Existence::Missing => (1, None),
                Existence::Found { place } => (2, Some(place)),
            };
            let execution = match executed.get(&line.first) {
                Some(LineRun::NotCounted) | None => 0,
                Some(LineRun::Missed) => 1,
                Some(LineRun::Executed) => 2,
            };
            let file = place.map_or(0, |place| 1 + lines.files.number(place.file.clone()));
            let at = place.map_or(there, |place| i64::from(place.line));
            let (from, to) = (i64::from(line.first), i64::from(line.last));
            let code = 9 * kind + 3 * existence + execution;
            lines.flat.extend([from - first, to - from, code, file, at - there]);
            (first, there) = (from, at);
        }
        lines
    }
}

/// Writes what is over all runs: the tables of the paper, and the page.
///
/// # Errors
/// IO errors with the path.
pub(crate) fn write(folder: &std::path::Path, scores: &Scores<'_>) -> Result<()> {
    let (page, tables) = render(scores)?;
    crate::store::write_json(&folder.join(submissions::FILES[0]), &tables)?;
    crate::dataset::write::text(&folder.join(submissions::FILES[1]), &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(first: u32, last: u32, existence: Existence) -> gistify::Line {
        let (line_type, kind) = (gistify::LineType::Executable, gistify::LineKind::Statement);
        gistify::Line { first, last, line_type, kind, block: Vec::new(), existence }
    }

    #[test]
    fn lines_are_distances_and_codes() {
        let place = |file: &str, line| Existence::Found {
            place: gistify::RepositoryLine { file: file.into(), line },
        };
        let lines = [
            line(1, 1, Existence::NotCounted),
            line(3, 5, place("a.py", 40)),
            line(6, 6, Existence::Missing),
            line(7, 7, place("b.py", 38)),
        ];
        let executed = [(3, LineRun::Executed), (6, LineRun::Missed), (7, LineRun::NotCounted)].into();
        let encoded = Lines::encoded(&lines, &executed);
        let rows: Vec<&[i64]> = encoded.flat.chunks(5).collect();
        assert_eq!(rows, [[1, 0, 0, 0, 0], [2, 2, 8, 1, 40], [3, 0, 4, 0, 0], [1, 0, 6, 2, -2]]);
        let value = serde_json::to_value(&encoded).unwrap();
        assert_eq!((&value["files"], &value["types"]), (&json!(["a.py", "b.py"]), &json!(["executable"])));
    }

    #[test]
    fn a_page_without_runs_is_whole() {
        let scores = Scores { dataset: "d<x>", version: "1", runs: Vec::new(), text: &|_, _| None };
        let (page, tables) = render(&scores).unwrap();
        assert!(tables.is_empty());
        for placeholder in ["{title}", "{icon}", "{style}", "{data}", "{script}", "{details}", "{dialog}"] {
            assert!(!page.contains(placeholder), "{placeholder}");
        }
        assert!(page.contains("Scores: dx 1") && page.contains("\"version\":\"1\""));
    }

    #[test]
    fn a_text_that_looks_like_a_place_of_the_page_stays_a_text() {
        let meta = json!({ "model": "{details}", "framework": "{script}{data}", "setting": "{title}" });
        let scores = Scores {
            dataset: "{style}",
            version: "{details}",
            runs: vec![Run { name: "{dialog}", meta: &meta, scored: &[] }],
            text: &|_, _| None,
        };
        let (page, _) = render(&scores).unwrap();
        let start = page.split("id=\"data\">").nth(1).unwrap_or_else(|| panic!("has data"));
        let data: Value = serde_json::from_str(start.split("</script>").next().unwrap()).unwrap();
        assert_eq!((&data["runs"][0]["meta"], &data["runs"][0]["name"]), (&meta, &json!("{dialog}")));
        assert_eq!((&data["dataset"], &data["version"]), (&json!("{style}"), &json!("{details}")));
    }

    const TEXT: &str = "import os\n\n\ndef f(x):\n    y = (x +\n         1)\n    return y\n\n\n\
        def test_a():\n    assert f(1) == 2, '</script><script>alert(1)</script>'\n";

    fn judged(at: usize) -> Judged {
        let files = [crate::score::File { path: "src/a.py", text: "def f(x):\n    y = (x +\n         1)\n" }];
        let corpus = gistify::Corpus::of(&files, crate::score::Modules::default());
        let mut judged = Judged::empty(Some(TEXT.as_bytes()));
        judged.existence = corpus.line_existence(TEXT).ok();
        let ran = [(4, LineRun::Executed), (5, LineRun::Executed), (7, LineRun::Missed)];
        judged.executed = ran
            .map(|(first, execution)| gistify::ExecutedLine {
                first,
                last: first,
                kind: gistify::LineKind::Statement,
                execution,
                ran: execution == LineRun::Executed,
            })
            .into();
        judged.verdict.fidelity = [Some(true), Some(false), None][at % 3];
        judged.verdict.class = (at % 3 == 1).then_some(gistify::ErrorClass::Violation);
        judged.row.fidelity = judged.verdict.fidelity;
        judged.row.class = judged.verdict.class;
        judged.row.existence = Some(Ratio { part: 2, whole: 5 });
        judged.attempts = (3, 3);
        judged.output = "<b>said</b>".into();
        judged
    }

    #[test]
    #[ignore = "needs Chromium, and in GISTMILL_TEST_PYTHON a Python with playwright"]
    fn a_browser_finds_nothing_wrong_with_the_page_of_scores() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("2026.11");
        let made_up = crate::testing::made_up::MadeUp::new(&[40, 9]);
        crate::testing::write(&directory, &made_up.input()).unwrap();
        let instances = crate::dataset::Dataset::open(&directory).unwrap().instances().unwrap();
        let (meta, names) = (json!({ "model": "<b>m</b>" }), ["one", "two"]);
        let scored = |run: &'static str| -> Vec<Scored<'_>> {
            let one = |(at, instance)| Scored {
                instance,
                run,
                meta: &meta,
                run_meta: &meta,
                troubles: &[],
                judged: judged(at),
            };
            instances.iter().enumerate().map(one).collect()
        };
        let scored = names.map(scored);
        let runs = names.iter().zip(&scored).map(|(name, scored)| Run { name, meta: &meta, scored });
        let text = |_: usize, _: &str| Some(TEXT.as_bytes());
        let scores = Scores { dataset: "made-up", version: "1", runs: runs.collect(), text: &text };
        let page = folder.path().join("report.html");
        fs_err::write(&page, render(&scores).unwrap().0).unwrap();
        let measured = crate::testing::browser::check("check_scores.py", &page, "scores");
        assert_eq!(measured["submissions"].as_u64().unwrap() as usize, 2 * instances.len());
    }
}
