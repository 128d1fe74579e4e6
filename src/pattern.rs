//! Patterns of code: what appears and what vanishes with a refactoring. Patterns are ast-grep's, whose engine is built in, or
//! OpenGrep's, whose engine is a program of the user's.

mod choose;
mod engine;
mod features;
mod form;
mod found;
mod opengrep;
mod outside;
mod pair;

use serde_json::json;

use crate::error::{Error, Result};
use crate::family::codetaste::diff::Changed;
use crate::family::codetaste::lines::Lines;
use crate::family::codetaste::registered::{Candidate, Decision, Registered};
use crate::family::codetaste::score::{Precision, Side};

pub(crate) use engine::Patterns;
pub(crate) use form::documents;
use found::Keys;
pub(crate) use found::Matches;
pub(crate) use opengrep::document as opengrep;
pub(crate) use outside::Sandbox;
pub(crate) use pair::{Pair, Reach, Tree};

/// A pattern and what became of it.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub id: String,
    /// The side that it is for: as its `metadata.side` says, else the one where it has more matches.
    pub side: Side,
    /// Whether it is OpenGrep's, and not ast-grep's.
    pub outside: bool,
    pub base: Matches,
    pub golden: Matches,
    pub decision: Decision,
}

/// What a set of patterns is worth on a pair.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub patterns: Vec<Checked>,
    /// Of the golden patch, by the patterns that are taken.
    pub precision: Precision,
}

impl Checked {
    /// The matches on the tree that it is for.
    pub(crate) fn right(&self) -> &Matches {
        match self.side {
            Side::Additive => &self.golden,
            Side::Reductive => &self.base,
        }
    }

    /// The matches on the other tree.
    pub(crate) fn wrong(&self) -> &Matches {
        match self.side {
            Side::Additive => &self.base,
            Side::Reductive => &self.golden,
        }
    }
}

/// Runs patterns on both trees, and takes them one after the other.
///
/// # Errors
/// A file that cannot be parsed at all, and an interrupt.
pub(crate) fn check(patterns: &Patterns, base: &Tree, golden: &Tree, changed: &Changed) -> Result<Report> {
    let (mut on_base, mut on_golden) = (patterns.scan(base)?, patterns.scan(golden)?);
    let (mut additive, mut reductive) = (Registered::default(), Registered::default());
    let (mut covered_base, mut covered_golden) = (Lines::default(), Lines::default());
    let mut checked = Vec::new();
    for ((id, side), (_, document)) in patterns.ids().zip(patterns.documents()) {
        let base = on_base.remove(id).unwrap_or_default();
        let golden = on_golden.remove(id).unwrap_or_default();
        let more = if golden.matches > base.matches { Side::Additive } else { Side::Reductive };
        let side = side.unwrap_or(more);
        let (registered, covered, lines) = match side {
            Side::Additive => (&mut additive, &mut covered_golden, &golden.lines),
            Side::Reductive => (&mut reductive, &mut covered_base, &base.lines),
        };
        let candidate =
            Candidate { id: id.to_owned(), base: base.matches, golden: golden.matches, lines: lines.clone() };
        let decision = registered.decide(side, candidate);
        if decision.refusal.is_none() {
            covered.extend(lines);
        }
        let outside = !is_own(document);
        checked.push(Checked { id: id.to_owned(), side, outside, base, golden, decision });
    }
    let precision = Precision::of(changed, &covered_base, &covered_golden);
    Ok(Report { patterns: checked, precision })
}

/// What is taken of each side, as documents with what was counted in their metadata.
fn taken<'a>(patterns: &'a Patterns, report: &'a Report) -> impl Iterator<Item = (Side, Keys)> {
    let taken = |id: &str| report.patterns.iter().find(|one| one.id == id && one.decision.refusal.is_none());
    patterns.documents().filter_map(move |(id, document)| {
        let (one, mut document) = (taken(id)?, document.clone());
        let metadata = document.entry("metadata".to_owned()).or_insert_with(|| json!({}));
        if !metadata.is_object() {
            *metadata = json!({});
        }
        metadata["side"] = json!(one.side);
        metadata["nr_legacy_patterns"] = json!(one.base.matches);
        metadata["nr_refactored_patterns"] = json!(one.golden.matches);
        Some((one.side, document))
    })
}

/// ast-grep's patterns have a `rule`, OpenGrep's have not.
fn is_own(document: &Keys) -> bool {
    document.contains_key("rule")
}

/// What is taken, as the text of a file: documents of ast-grep's, or one document of OpenGrep's.
///
/// # Errors
/// A usage error where patterns have both forms: no file holds both.
pub(crate) fn registered(patterns: &Patterns, report: &Report) -> Result<String> {
    let (own, others): (Vec<Keys>, Vec<Keys>) =
        taken(patterns, report).map(|(_, document)| document).partition(is_own);
    match (own.is_empty(), others.is_empty()) {
        (true, false) => Ok(rules(&others)),
        (_, true) => {
            let each: Vec<String> = own.iter().map(|document| json!(document).to_string()).collect();
            Ok(each.join("\n---\n") + "\n")
        }
        _ => Err(Error::usage("patterns of ast-grep and of OpenGrep are not written into one file")
            .with_hint("register each form by itself")),
    }
}

/// The patterns of OpenGrep's form that are taken for one side, as the text of a file; empty where none is.
pub(crate) fn taken_outside(patterns: &Patterns, report: &Report, side: Side) -> String {
    let all = taken(patterns, report).filter(|(of, document)| *of == side && !is_own(document));
    let others: Vec<Keys> = all.map(|(_, document)| document).collect();
    if others.is_empty() { String::new() } else { rules(&others) }
}

fn rules(documents: &[Keys]) -> String {
    json!({ "rules": documents }).to_string() + "\n"
}

/// Patterns that a program finds: of names and shapes that are on one side alone, few that cover many changed lines. They are
/// ast-grep's documents, to be [checked](check) like any others.
///
/// # Errors
/// A file that cannot be parsed at all, and an interrupt.
pub(crate) fn mine(base: &Tree, golden: &Tree, changed: &Changed) -> Result<Vec<choose::Mined>> {
    let mut paths = features::Paths::default();
    let before = features::Features::of(base, &mut paths)?;
    let after = features::Features::of(golden, &mut paths)?;
    let mut mined = choose::mine(Side::Additive, &after, &before, &paths, &changed.added);
    mined.extend(choose::mine(Side::Reductive, &before, &after, &paths, &changed.removed));
    Ok(mined)
}

#[cfg(test)]
mod tests;
