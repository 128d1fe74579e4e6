//! What engines report: matches of patterns, as SARIF or JSON.

use serde::Deserialize;
use serde_json::Value;

use super::lines::Lines;

/// A place that a pattern matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// None where the engine names none: then it covers lines, and counts for no pattern.
    pub pattern: Option<String>,
    pub path: String,
    /// Both included.
    pub first: u64,
    pub last: u64,
}

/// A pattern's own name: engines put folders before it.
pub(crate) fn own_name(id: &str) -> &str {
    id.rsplit('.').next().unwrap_or(id)
}

/// How many results a pattern has.
pub fn count(matches: &[Match], pattern: &str) -> u64 {
    matches.iter().filter(|one| one.pattern.as_deref() == Some(pattern)).count() as u64
}

/// The lines that are matched.
pub fn covered<'a>(matches: impl IntoIterator<Item = &'a Match>) -> Lines {
    let mut lines = Lines::default();
    for one in matches {
        lines.insert(&one.path, one.first, one.last);
    }
    lines
}

/// The matches of a SARIF document. Places without a path or a first line do not count.
pub fn of_sarif(document: &Value) -> Vec<Match> {
    let list = |of: &Value, key: &str| of[key].as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for result in list(document, "runs").iter().flat_map(|run| list(run, "results")) {
        let pattern = result["ruleId"].as_str().filter(|id| !id.is_empty()).map(|id| own_name(id).to_owned());
        for location in list(&result, "locations") {
            let place = &location["physicalLocation"];
            let path = place["artifactLocation"]["uri"].as_str();
            let (Some(path), Some(first)) = (path, place["region"]["startLine"].as_u64()) else { continue };
            let last = place["region"]["endLine"].as_u64().unwrap_or(first);
            found.push(Match { pattern: pattern.clone(), path: path.to_owned(), first, last });
        }
    }
    found
}

#[derive(Deserialize)]
struct Position {
    line: u64,
    #[serde(default, alias = "col")]
    column: u64,
}

#[derive(Deserialize)]
struct EngineResult {
    check_id: String,
    path: String,
    start: Position,
    end: Position,
}

#[derive(Deserialize)]
struct EngineResults {
    results: Vec<EngineResult>,
}

/// The matches that an engine of OpenGrep's family reports as `--json`.
///
/// # Errors
/// What of the document is not as it has to be.
pub fn of_engine_json(document: &Value) -> Result<Vec<Match>, serde_json::Error> {
    let read = EngineResults::deserialize(document)?;
    let each = read.results.into_iter().map(|one| Match {
        pattern: Some(own_name(&one.check_id).to_owned()),
        path: one.path.strip_prefix("./").unwrap_or(&one.path).to_owned(),
        first: one.start.line,
        last: one.end.line,
    });
    Ok(each.collect())
}

#[derive(Deserialize)]
struct Range {
    start: Position,
    end: Position,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AstGrepResult {
    rule_id: String,
    file: String,
    range: Range,
}

/// The matches that ast-grep reports as `--json=stream`.
///
/// # Errors
/// The first line that is not as it has to be.
pub fn of_ast_grep<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Vec<Match>, serde_json::Error> {
    let read = |line: &str| {
        let one: AstGrepResult = serde_json::from_str(line)?;
        let Range { start, end } = one.range;
        let (first, last) = rows((start.line, start.column), (end.line, end.column));
        let path = one.file.strip_prefix("./").unwrap_or(&one.file).to_owned();
        Ok(Match { pattern: Some(one.rule_id), path, first, last })
    };
    lines.into_iter().filter(|line| !line.is_empty()).map(read).collect()
}

/// First and last line of a node. Rows count from 0; an end in column 0 is on the line before.
pub fn rows(start: (u64, u64), end: (u64, u64)) -> (u64, u64) {
    let last = end.0 - u64::from(end.1 == 0 && end.0 > start.0);
    (start.0.saturating_add(1), last.saturating_add(1))
}
