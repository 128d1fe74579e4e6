//! The worked examples, one trial each.

use std::collections::BTreeSet;
use std::sync::Arc;

use gistmill::family::gistify;
use gistmill::family::gistify::{
    Corpus, Detail, ErrorClass, Facts, Injection, NotInjected, Scenery, TestName,
};
use gistmill::score::{File, Modules, Ratio, Unreadable};
use libtest_mimic::{Failed, Trial};
use serde::Deserialize;

use crate::agree;

#[derive(Deserialize)]
struct Examples {
    modules: Vec<String>,
    test_file: String,
    boxes: String,
    files: Vec<Source>,
    existence: Vec<Existence>,
    execution: Vec<Execution>,
    f1: Vec<F1>,
    injection: Vec<Injected>,
    runs: Vec<WholeRun>,
}

#[derive(Deserialize)]
struct Source {
    path: String,
    text: String,
}

#[derive(Deserialize)]
struct Existence {
    name: String,
    text: String,
    found: u32,
    counted: u32,
}

#[derive(Deserialize)]
struct Execution {
    name: String,
    text: String,
    events: BTreeSet<u32>,
    executed: u32,
    counted: u32,
    statements: Option<(u32, u32)>,
}

#[derive(Deserialize)]
struct F1 {
    name: String,
    test: String,
    text: String,
    #[serde(rename = "f1")]
    value: f64,
}

#[derive(Deserialize)]
struct Injected {
    name: String,
    test: String,
    text: String,
    result: String,
    contains: Option<String>,
}

/// A submission from its text to its verdict; the verdict of those that are not `is_static` needs a sandbox.
#[derive(Deserialize)]
struct WholeRun {
    name: String,
    test: String,
    text: Option<String>,
    #[serde(rename = "static")]
    is_static: bool,
    class: Option<ErrorClass>,
    detail: Option<Detail>,
    injection: Option<Injection>,
}

/// The repository of the examples.
struct Repository {
    examples: Examples,
    modules: Modules,
    corpus: Corpus,
}

impl Repository {
    fn read() -> Self {
        let examples: Examples =
            toml::from_str(include_str!("examples.toml")).expect("the examples are TOML");
        let modules: Modules = examples.modules.iter().cloned().collect();
        let files: Vec<_> =
            examples.files.iter().map(|file| File { path: &file.path, text: &file.text }).collect();
        let corpus = Corpus::of(&files, modules.clone());
        assert!(corpus.unread().is_empty());
        Repository { examples, modules, corpus }
    }

    fn original(&self) -> File<'_> {
        let file = self.examples.files.iter().find(|file| file.path == self.examples.test_file);
        let file = file.expect("the test file is one of the files");
        File { path: &file.path, text: &file.text }
    }

    fn text(&self, text: &str) -> String {
        text.replace("# BOXES\n", &self.examples.boxes)
    }
}

pub fn trials() -> Vec<Trial> {
    let repository = Arc::new(Repository::read());
    let mut trials = Vec::new();
    macro_rules! each {
        ($list:ident, $check:ident) => {
            for (number, example) in repository.examples.$list.iter().enumerate() {
                let (of, name) =
                    (Arc::clone(&repository), format!("{}: {}", stringify!($list), example.name));
                trials.push(Trial::test(name, move || $check(&of, &of.examples.$list[number])));
            }
        };
    }
    each!(existence, existence);
    each!(execution, execution);
    each!(f1, f1);
    each!(injection, injection);
    each!(runs, what_the_text_decides);
    trials.push(Trial::test("existence: E33 a syntax error is told with its line", move || {
        let refused = repository.corpus.line_existence("x = 1\ndef f(:\n");
        match refused {
            Err(Unreadable::Syntax { line: 2, .. }) => Ok(()),
            other => Err(format!("{other:?}").into()),
        }
    }));
    trials
}

fn existence(repository: &Repository, example: &Existence) -> Result<(), Failed> {
    let got = repository
        .corpus
        .line_existence(&repository.text(&example.text))
        .map_err(|why| format!("{why:?}"))?;
    agree("lines", got.rate, Ratio { part: example.found, whole: example.counted })?;
    let found =
        got.lines.iter().filter(|line| matches!(line.existence, gistify::Existence::Found { .. })).count();
    agree("lines that say where they are", found as u32, example.found)
}

fn execution(_: &Repository, example: &Execution) -> Result<(), Failed> {
    let got = gistify::line_execution(&example.text, &example.events).map_err(|why| format!("{why:?}"))?;
    agree("lines", got.rate, Ratio { part: example.executed, whole: example.counted })?;
    match example.statements {
        Some((part, whole)) => agree("statements", got.statements, Ratio { part, whole }),
        None => Ok(()),
    }
}

fn f1(repository: &Repository, example: &F1) -> Result<(), Failed> {
    let Ok(test) = example.test.parse::<TestName>();
    let text = repository.text(&example.text);
    let got = gistify::test_overlap(&text, repository.original(), &test, &repository.modules);
    let overlap = got.map_err(|why| format!("{why:?}"))?.ok_or("the original does not define the test")?;
    agree("F1", format!("{:.4}", overlap.f1()), format!("{:.4}", example.value))
}

fn injection(repository: &Repository, example: &Injected) -> Result<(), Failed> {
    let Ok(test) = example.test.parse::<TestName>();
    let submission = repository.text(&example.text);
    let got = gistify::inject(&submission, repository.original(), &test, &repository.modules);
    let result = match &got {
        Ok(evaluated) => match evaluated.injection {
            Injection::Equal => "equal",
            Injection::Replaced => "replaced",
            Injection::None => "none",
        },
        Err(NotInjected::Missing) => "missing",
        Err(NotInjected::Unparsable { .. }) => "unparsable",
        Err(NotInjected::Original { .. }) => "original",
    };
    agree("result", result, &example.result)?;
    let Some(part) = &example.contains else { return Ok(()) };
    let evaluated = got.map_err(|why| format!("{why:?}"))?;
    if !evaluated.text.contains(&**part) {
        return Err(format!("{part:?} is not in:\n{}", evaluated.text).into());
    }
    let sabotaged = gistify::sabotage(&evaluated).ok_or("no place for the sabotage")?;
    agree("a sabotaged test", gistify::line_execution(&sabotaged, &BTreeSet::new()).is_ok(), true)?;
    agree("raises", sabotaged.matches("raise AssertionError('gistmill')").count(), 1)
}

/// Where a text alone decides, the whole verdict; else that it does not, and what was done to the test.
fn what_the_text_decides(repository: &Repository, example: &WholeRun) -> Result<(), Failed> {
    let Ok(test) = example.test.parse::<TestName>();
    let (facts, injection) = match &example.text {
        None => (Facts::NoFile, None),
        Some(text) => {
            let text = repository.text(text);
            match gistify::inject(&text, repository.original(), &test, &repository.modules) {
                Err(NotInjected::Missing) => (Facts::NoTest, None),
                Err(_) => (Facts::Unparsable, None),
                Ok(evaluated) => {
                    let (modules, hidden) = (&repository.modules, &BTreeSet::new());
                    let scenery = Scenery { modules, test: &test, root: "/testbed", hidden };
                    let findings = gistify::findings(&text, scenery).map_err(|why| format!("{why:?}"))?;
                    (Facts::Read { findings, run: None }, Some(evaluated.injection))
                }
            }
        }
    };
    let verdict = gistify::judge(&facts, &BTreeSet::new());
    if !example.is_static {
        agree("what the text alone decides", verdict.class, None)?;
        return example.injection.map_or(Ok(()), |expected| agree("injection", injection, Some(expected)));
    }
    agree("fidelity", verdict.fidelity, Some(false))?;
    agree("class", verdict.class, example.class)?;
    agree("detail", verdict.detail, example.detail)
}
