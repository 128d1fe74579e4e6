//! Choices of people between submissions of two runs, and how far the metrics choose the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tables::Run;
use crate::document::{self, Problem, suggest};
use crate::error::{Error, Result};
use crate::redact::quote;
use crate::score::{Agreement, Choice, ComparedChoice, Criterion, Row, agreements};

/// One person's choice between the submissions that two runs have for an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PersonChoice {
    annotator: String,
    instance: String,
    /// Names of runs.
    first: String,
    second: String,
    criterion: Criterion,
    choice: Choice,
}

/// What choices can be about.
pub(crate) struct Known<'a> {
    pub(crate) instances: &'a BTreeSet<String>,
    pub(crate) runs: &'a [&'a str],
}

/// A line as it should be, for those whose lines are not.
const EXAMPLE: &str = r#"{"annotator": "a1", "instance_id": "…", "first": "run-a", "second": "run-b", "criterion": "minimality", "choice": "first"}"#;

/// Reads choices: JSON lines.
///
/// # Errors
/// Usage errors: a file that cannot be read, and everything that is wrong in it at once.
pub(crate) fn read(path: &Path, known: &Known<'_>) -> Result<Vec<PersonChoice>> {
    let text = document::read_text(path)?;
    parse(&text, known)
        .map_err(|problems| Error::usage(document::render(&path.display().to_string(), &problems)))
}

fn parse(text: &str, known: &Known<'_>) -> std::result::Result<Vec<PersonChoice>, Vec<Problem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { known, problems: Vec::new(), seen: BTreeMap::new() };
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let choices: Vec<PersonChoice> = lines.filter_map(|(line, number)| reader.line(line, number)).collect();
    if choices.is_empty() && reader.problems.is_empty() {
        reader.problem(1, "there are no choices", Some(format!("write a line for each: {EXAMPLE}")));
    }
    if reader.problems.is_empty() { Ok(choices) } else { Err(reader.problems) }
}

/// Annotator, instance, both runs in the order of their names, criterion.
type Question = (String, String, [String; 2], Criterion);

struct Reader<'a> {
    known: &'a Known<'a>,
    problems: Vec<Problem>,
    /// The line that answers it.
    seen: BTreeMap<Question, usize>,
}

impl Reader<'_> {
    fn problem(&mut self, line: usize, message: impl Into<String>, hint: Option<String>) {
        self.problems.push(Problem { line, column: 1, message: message.into(), hint });
    }

    /// A line; None where something is wrong with it.
    fn line(&mut self, text: &str, number: usize) -> Option<PersonChoice> {
        let Ok(row @ Value::Object(_)) = serde_json::from_str(text) else {
            let hint = format!("write one a line: {EXAMPLE}");
            self.problem(number, "this is not a JSON object", Some(hint));
            return None;
        };
        let annotator = self.text(&row, "annotator", number);
        let instance = self.instance(&row, number);
        let [first, second] = ["first", "second"].map(|key| self.run(&row, key, number));
        let criterion = self.word::<Criterion>(&row, "criterion", &["minimality", "faithfulness"], number);
        let choice = self.word::<Choice>(&row, "choice", &["first", "second", "same"], number);
        let choice = PersonChoice {
            annotator: annotator?,
            instance: instance?,
            first: first?,
            second: second?,
            criterion: criterion?,
            choice: choice?,
        };
        self.is_new(&choice, number).then_some(choice)
    }

    fn text(&mut self, row: &Value, key: &str, line: usize) -> Option<String> {
        let text = row[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        if text.is_none() {
            let what = if row[key].is_null() { "is missing" } else { "has to be a text, and not empty" };
            self.problem(line, format!("`{key}` {what}"), Some(format!("a line looks like {EXAMPLE}")));
        }
        text
    }

    fn instance(&mut self, row: &Value, line: usize) -> Option<String> {
        let id = self.text(row, "instance_id", line)?;
        if !self.known.instances.contains(&id) {
            let hint =
                "choices are about instances of this dataset; their ids are in instances.jsonl".to_owned();
            self.problem(line, format!("the dataset has no instance {}", quote(&id)), Some(hint));
            return None;
        }
        Some(id)
    }

    fn run(&mut self, row: &Value, key: &str, line: usize) -> Option<String> {
        let name = self.text(row, key, line)?;
        if !self.known.runs.contains(&name.as_str()) {
            let hint = suggest::hint(&name, self.known.runs);
            self.problem(line, format!("no run that is scored is called {}", quote(&name)), Some(hint));
            return None;
        }
        Some(name)
    }

    fn word<T: DeserializeOwned>(
        &mut self,
        row: &Value,
        key: &str,
        words: &[&str],
        line: usize,
    ) -> Option<T> {
        let word = self.text(row, key, line)?;
        let value = serde_json::from_value(row[key].clone()).ok();
        if value.is_none() {
            self.problem(line, format!("unknown {key} {}", quote(&word)), Some(suggest::hint(&word, words)));
        }
        value
    }

    /// Whether a choice is between two runs, and nobody has made it on an earlier line.
    fn is_new(&mut self, choice: &PersonChoice, line: usize) -> bool {
        if choice.first == choice.second {
            let message = format!("`first` and `second` are both {}", quote(&choice.first));
            self.problem(line, message, Some("name two runs".to_owned()));
            return false;
        }
        let mut runs = [choice.first.clone(), choice.second.clone()];
        runs.sort();
        let question = (choice.annotator.clone(), choice.instance.clone(), runs, choice.criterion);
        if let Some(before) = self.seen.get(&question) {
            let message = format!(
                "{} chose between these two by {} on line {before} already",
                quote(&choice.annotator),
                choice.criterion.as_str()
            );
            self.problem(line, message, Some("keep one of both lines".to_owned()));
            return false;
        }
        self.seen.insert(question, line);
        true
    }
}

/// How far people and metrics agree on what was scored.
pub(crate) fn agreement(choices: &[PersonChoice], runs: &[Run<'_>]) -> Vec<Agreement> {
    let rows: BTreeMap<(&str, &str), &Row> = runs
        .iter()
        .flat_map(|run| run.scored.iter().map(|one| (run.name, one)))
        .map(|(name, one)| ((name, one.instance.instance_id.as_str()), &one.judged.row))
        .collect();
    let row = |run: &str, choice: &PersonChoice| rows.get(&(run, choice.instance.as_str())).copied();
    let compared: Vec<ComparedChoice<'_>> = choices
        .iter()
        .map(|choice| {
            let pair = row(&choice.first, choice).zip(row(&choice.second, choice));
            ComparedChoice {
                annotator: &choice.annotator,
                criterion: choice.criterion,
                person: choice.choice,
                metric: pair.and_then(|(first, second)| choice.criterion.choice(first, second)),
            }
        })
        .collect();
    agreements(&compared)
}

/// `0.61 (0.52, 0.72, 0.58)`: the mean, and each annotator's.
pub(crate) fn in_short(agreement: &Agreement) -> String {
    let shown = |kappa: Option<f64>| kappa.map_or_else(|| "–".to_owned(), |kappa| format!("{kappa:.2}"));
    let each: Vec<String> = agreement.annotators.iter().map(|one| shown(one.kappa)).collect();
    format!("{} ({})", shown(agreement.kappa.mean), each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::{AnnotatorAgreement, Mean};

    const RUNS: [&str; 2] = ["run-a", "run-b"];

    fn parsed(text: &str) -> std::result::Result<Vec<PersonChoice>, String> {
        let instances = ["i1", "i2"].map(str::to_owned).into();
        let known = Known { instances: &instances, runs: &RUNS };
        parse(text, &known).map_err(|problems| document::render("c", &problems))
    }

    fn line(changes: &[(&str, Value)]) -> String {
        let mut row = serde_json::json!({ "annotator": "a1", "instance_id": "i1", "first": "run-a", "second": "run-b",
            "criterion": "minimality", "choice": "first" });
        for (key, value) in changes {
            row[key] = value.clone();
        }
        row.to_string()
    }

    #[test]
    fn lines_are_choices_and_what_else_they_say_is_not_read() {
        let lines = [
            line(&[]),
            String::new(),
            line(&[("criterion", "faithfulness".into()), ("choice", "same".into()), ("seconds", 40.into())]),
            line(&[("annotator", "a2".into()), ("first", "run-b".into()), ("second", "run-a".into())]),
            line(&[("instance_id", "i2".into())]),
        ];
        let choices = parsed(&format!("\u{feff}{}\r\n", lines.join("\r\n"))).unwrap();
        let told: Vec<(&str, &str, &str, Criterion, Choice)> = choices
            .iter()
            .map(|one| (&*one.annotator, &*one.instance, &*one.first, one.criterion, one.choice))
            .collect();
        assert_eq!(
            told,
            [
                ("a1", "i1", "run-a", Criterion::Minimality, Choice::First),
                ("a1", "i1", "run-a", Criterion::Faithfulness, Choice::Same),
                ("a2", "i1", "run-b", Criterion::Minimality, Choice::First),
                ("a1", "i2", "run-a", Criterion::Minimality, Choice::First),
            ]
        );
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once_with_its_line() {
        let lines = [
            line(&[]),
            "{\"annotator\": ".to_owned(),
            "[1]".to_owned(),
            line(&[("instance_id", "i3".into()), ("first", "run-c".into())]),
            line(&[("criterion", "minimalty".into()), ("choice", "third".into())]),
            line(&[("annotator", Value::Null), ("choice", 1.into())]),
            line(&[("second", "run-a".into())]),
            line(&[("first", "run-b".into()), ("second", "run-a".into()), ("choice", "same".into())]),
        ];
        let said = parsed(&lines.join("\n")).unwrap_err();
        for part in [
            "c:2: this is not a JSON object\n  hint: write one a line: {\"annotator\"",
            "c:3: this is not a JSON object",
            "c:4: the dataset has no instance `i3`\n  hint: choices are about instances of this dataset",
            "c:4: no run that is scored is called `run-c`\n  hint: did you mean `run-a`?",
            "c:5: unknown criterion `minimalty`\n  hint: did you mean `minimality`?",
            "c:5: unknown choice `third`\n  hint: known: `first`, `second`, `same`",
            "c:6: `annotator` is missing\n  hint: a line looks like {\"annotator\"",
            "c:6: `choice` has to be a text, and not empty",
            "c:7: `first` and `second` are both `run-a`\n  hint: name two runs",
            "c:8: `a1` chose between these two by minimality on line 1 already\n  hint: keep one of both lines",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        assert_eq!(said.matches("c:").count(), 10, "{said}");
        assert!(parsed("\n\n").unwrap_err().starts_with("c:1: there are no choices"));
    }

    #[test]
    fn agreement_is_written_as_the_paper_writes_it() {
        let annotators = [Some(0.524), Some(0.72), None].map(|kappa| AnnotatorAgreement {
            annotator: String::new(),
            kappa,
            n: 15,
            left_out: 0,
        });
        let kappa = Mean { mean: Some(0.622), n: 2 };
        let agreement = Agreement { criterion: Criterion::Minimality, kappa, annotators: annotators.into() };
        assert_eq!(in_short(&agreement), "0.62 (0.52, 0.72, –)");
    }
}
