//! The page of scores: the tables, every submission, and its file line by line. One HTML file that loads nothing.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::tables::{self, Run, Table};
use super::write::{Scored, spelled};
use crate::error::{Error, Result};
use crate::score::{Execution, Existence, Ratio};

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
            let detail = embedded(&detail(one, text))?;
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
    let page = PAGE
        .replace("{title}", &title)
        .replace("{style}", STYLE)
        .replace("{data}", &embedded(&data)?)
        .replace("{script}", SCRIPT)
        .replace("{details}", &details);
    Ok((page, tables))
}

/// JSON that can stand in a script element.
fn embedded(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::internal("cannot encode the page's data").with_source(error))?;
    Ok(text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
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
    let executed = judged.executed_by_line();
    let lines = judged.submitted_lines().iter().filter(|_| shown.is_some()).map(|line| {
        let (exists, place) = match &line.existence {
            Existence::NotCounted => (None, None),
            Existence::Missing => (Some(false), None),
            Existence::Found { place } => (Some(true), Some(format!("{}:{}", place.file, place.line))),
        };
        let executed = match executed.get(&line.first) {
            Some(Execution::Executed) => Some(true),
            Some(Execution::Missed) => Some(false),
            Some(Execution::NotCounted) | None => None,
        };
        json!([line.first, line.last, spelled(&line.line_type), exists, place, executed])
    });
    let comparison = judged.comparison.as_ref();
    let different = comparison.map(|comparison| {
        let cases = comparison.cases.iter().filter(|case| case.difference.is_some());
        cases.take(MOST_SHOWN).collect::<Vec<_>>()
    });
    json!({
        "command": instance.entry_command,
        "bytes": text.map(<[u8]>::len),
        "text": shown,
        "lines": lines.collect::<Vec<_>>(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_no_script_and_is_read_as_it_was() {
        let text = "</script><script>alert(1)</script><!-- \u{2028}";
        let shown = embedded(&text).unwrap();
        assert!(!shown.contains('<') && !shown.contains('\u{2028}'), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }

    #[test]
    fn a_page_without_runs_is_whole() {
        let scores = Scores { dataset: "d<x>", version: "1", runs: Vec::new(), text: &|_, _| None };
        let (page, tables) = render(&scores).unwrap();
        assert!(tables.is_empty());
        for placeholder in ["{title}", "{style}", "{data}", "{script}", "{details}"] {
            assert!(!page.contains(placeholder), "{placeholder}");
        }
        assert!(page.contains("Scores: dx 1") && page.contains("\"version\":\"1\""));
    }
}
