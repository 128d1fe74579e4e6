//! Line execution: which lines of a file ran, by two counts.

use std::collections::BTreeSet;

use ruff_python_ast::Stmt;
use ruff_text_size::{Ranged, TextSize};
use serde::{Deserialize, Serialize};

use super::units::{self, LineKind, LineType};
use crate::score::Ratio;
use crate::score::modules::{Bindings, Modules};
use crate::score::text::{self, Parsed, Unreadable};
use crate::score::tree;

/// Whether a line ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineRun {
    /// No executable line or import, or one that the interpreter may leave out.
    NotCounted,
    Missed,
    Executed,
}

/// A logical line of the file that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedLine {
    pub first: u32,
    pub last: u32,
    pub kind: LineKind,
    pub execution: LineRun,
    /// Whether it had a line event, counted or not.
    #[serde(default)]
    pub ran: bool,
}

/// The lines of a file and the rates of those that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineExecution {
    /// In the order of the text: the same lines as those of [`super::LineExistence`] for the same text.
    pub lines: Vec<ExecutedLine>,
    /// `line_execution`: executable lines and imports.
    pub rate: Ratio,
    /// `line_execution_statements`: every statement, definitions, control flow and texts included.
    pub statements: Ratio,
}

/// Rates a file by the lines that had a line event.
pub fn line_execution(evaluated: &str, events: &BTreeSet<u32>) -> Result<LineExecution, Unreadable> {
    let modules = Modules::default();
    text::parse(evaluated, |parsed| {
        let ran = |first: u32, last: u32| events.range(first..=last).next().is_some();
        let cut = units::cut(parsed, &Bindings::by_name(&modules));
        let lines = cut.units.iter().map(|unit| {
            let counts =
                matches!(unit.kind.line_type(), LineType::Executable | LineType::Import) && !unit.free;
            let ran = ran(unit.first, unit.last);
            let execution = match (counts, ran) {
                (false, _) => LineRun::NotCounted,
                (true, false) => LineRun::Missed,
                (true, true) => LineRun::Executed,
            };
            ExecutedLine { first: unit.first, last: unit.last, kind: unit.kind, execution, ran }
        });
        let lines: Vec<_> = lines.collect();
        let rate = lines.iter().fold(Ratio::default(), |rate, line| match line.execution {
            LineRun::NotCounted => rate,
            LineRun::Missed => rate.with(false),
            LineRun::Executed => rate.with(true),
        });
        let mut statements = Ratio::default();
        count(parsed, parsed.body, &ran, &mut statements);
        LineExecution { lines, rate, statements }
    })
}

fn count(parsed: Parsed<'_>, body: &[Stmt], ran: &dyn Fn(u32, u32) -> bool, rate: &mut Ratio) {
    let mut add = |start: TextSize, end: TextSize, is_text: bool| {
        *rate = rate.with(!is_text && ran(parsed.lines.line(start), parsed.lines.line(end)));
    };
    for statement in body {
        add(tree::keyword_start(statement), tree::header_end(statement), tree::is_text(statement));
        if let Stmt::If(branch) = statement {
            // An `elif` is a statement of its own, an `else` is none.
            for clause in &branch.elif_else_clauses {
                if let Some(test) = &clause.test {
                    add(clause.start(), test.end(), false);
                }
            }
        }
    }
    for statement in body {
        for body in tree::bodies(statement) {
            count(parsed, body, ran, rate);
        }
    }
}
