//! Files that are like a target: by name, by shape and by the words of their definitions.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::Stmt;
use ruff_python_ast::visitor::{Visitor, walk_stmt};

use crate::score::text::parse;

/// Files that are less like a target are not named.
const LEAST: f64 = 0.33;
/// Most files that are named.
const MOST: usize = 5;
/// How soon a word that is repeated adds little, and how much the length of a document counts.
const SATURATION: f64 = 1.5;
const LENGTH: f64 = 0.75;

/// How many classes and functions a file has, and how deep they nest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    pub classes: u32,
    pub functions: u32,
    pub nesting: u32,
}

impl Shape {
    /// From 0 to 1.
    pub fn similarity(self, other: Self) -> f64 {
        let ratio = |one: u32, other: u32| match (one.min(other), one.max(other)) {
            (_, 0) => 1.0,
            (less, more) => f64::from(less) / f64::from(more),
        };
        0.4 * ratio(self.classes, other.classes)
            + 0.4 * ratio(self.functions, other.functions)
            + 0.2 * ratio(self.nesting, other.nesting)
    }
}

/// Words of a file's name.
pub fn file_words(path: &str) -> BTreeSet<String> {
    let name = path.rsplit('/').next().unwrap_or(path).replace(".py", "");
    words(&name).collect()
}

fn words(name: &str) -> impl Iterator<Item = String> {
    name.split('_').filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Common words by the size of the smaller set, from 0 to 1.
pub fn overlap(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let smaller = one.len().min(other.len());
    if smaller == 0 { 0.0 } else { one.intersection(other).count() as f64 / smaller as f64 }
}

/// The mean of the three signals.
pub fn similarity(name: f64, structure: f64, identifiers: f64) -> f64 {
    (name + structure + identifiers) / 3.0
}

/// Scores of documents for a query by BM25, moved up to 0 where one is negative, divided by the highest.
pub fn bm25<D: AsRef<[String]>>(query: &[String], documents: &[D]) -> Vec<f64> {
    let count = documents.len() as f64;
    let lengths = documents.iter().map(|document| document.as_ref().len() as f64);
    let average = lengths.sum::<f64>() / count;
    let mut counts: Vec<BTreeMap<&str, u32>> = vec![BTreeMap::new(); documents.len()];
    let mut within: BTreeMap<&str, u32> = BTreeMap::new();
    for (counts, document) in counts.iter_mut().zip(documents) {
        for word in document.as_ref() {
            *counts.entry(word).or_default() += 1;
        }
        for word in counts.keys() {
            *within.entry(word).or_default() += 1;
        }
    }
    let score = |(counts, document): (&BTreeMap<&str, u32>, &D)| {
        let scale = 1.0 - LENGTH + LENGTH * document.as_ref().len() as f64 / average;
        let of_word = |word: &String| {
            let (Some(often), Some(files)) = (counts.get(&**word), within.get(&**word)) else { return 0.0 };
            let (often, files) = (f64::from(*often), f64::from(*files));
            let rarity = ((count - files + 0.5) / (files + 0.5)).ln();
            rarity * often * (SATURATION + 1.0) / (often + SATURATION * scale)
        };
        query.iter().map(of_word).sum::<f64>()
    };
    let scores: Vec<f64> = counts.iter().zip(documents).map(score).collect();
    let lowest = scores.iter().copied().fold(0.0, f64::min);
    let highest = scores.iter().map(|score| score - lowest).fold(0.0, f64::max);
    scores.iter().map(|score| if highest > 0.0 { (score - lowest) / highest } else { 0.0 }).collect()
}

/// The files most like a target, whose text is its mask: path and similarity, highest first, equal ones by path.
pub fn similar<'a>(target: &str, texts: &BTreeMap<&'a str, &str>) -> Vec<(&'a str, f64)> {
    let read: BTreeMap<&str, Reading> = texts.iter().map(|(path, text)| (*path, Reading::of(text))).collect();
    let Some(own) = read.get(target) else { return Vec::new() };
    let others: Vec<(&&str, &Reading)> = read.iter().filter(|(path, _)| **path != target).collect();
    let documents: Vec<&[String]> = others.iter().map(|(_, file)| &*file.words).collect();
    let ranks = bm25(&own.words, &documents);
    let own_words = file_words(target);
    let mut found: Vec<(&str, f64)> = Vec::new();
    for ((path, file), rank) in others.iter().zip(ranks) {
        let name = overlap(&own_words, &file_words(path));
        found.push((path, similarity(name, own.shape.similarity(file.shape), rank)));
    }
    found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
    let found = found.into_iter().filter(|(_, similarity)| *similarity >= LEAST).take(MOST);
    found.filter_map(|(path, similarity)| Some((*texts.get_key_value(path)?.0, similarity))).collect()
}

/// What is compared of a file.
#[derive(Default)]
struct Reading {
    shape: Shape,
    /// Words of names of functions, classes and imported modules, with repetition.
    words: Vec<String>,
    depth: u32,
}

impl Reading {
    /// Nothing is known of a file that cannot be parsed.
    fn of(text: &str) -> Self {
        let read = parse(text, |parsed| {
            let mut reading = Reading::default();
            parsed.body.iter().for_each(|statement| reading.visit_stmt(statement));
            reading
        });
        read.unwrap_or_default()
    }

    fn name(&mut self, name: &str) {
        self.words.extend(name.split('.').flat_map(words));
    }
}

impl<'a> Visitor<'a> for Reading {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.shape.functions += 1;
                self.name(&function.name);
            }
            Stmt::ClassDef(class) => {
                self.shape.classes += 1;
                self.name(&class.name);
            }
            Stmt::Import(import) => import.names.iter().for_each(|alias| self.name(&alias.name)),
            Stmt::ImportFrom(import) => import.module.iter().for_each(|module| self.name(module)),
            _ => {}
        }
        let is_definition = matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_));
        self.depth += u32::from(is_definition);
        self.shape.nesting = self.shape.nesting.max(self.depth);
        walk_stmt(self, statement);
        self.depth -= u32::from(is_definition);
    }
}
