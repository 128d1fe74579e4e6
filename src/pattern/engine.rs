//! The engine: ast-grep's library with the grammar of Python. Comments that suppress matches are not obeyed.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use ast_grep_config::{GlobalRules, RuleCollection, RuleConfig, SerializableRuleConfig, Severity};
use ast_grep_core::language::Language;
use ast_grep_core::matcher::{Matcher, MatcherExt, PatternBuilder};
use ast_grep_core::tree_sitter::{LanguageExt, StrDoc, TSLanguage};
use ast_grep_core::{AstGrep, Node, Pattern, PatternError};
use serde::{Deserialize, Deserializer};

use super::found::{Keys, LONGEST_ERROR, Matches};
use super::outside::{self, Outside, Sandbox};
use super::pair::{Reach, Tree};
use crate::error::{Error, Result};
use crate::family::codetaste::matches::rows;
use crate::family::codetaste::score::Side;
use crate::interrupt;
use crate::redact::quote;

pub(super) type Document = StrDoc<Python>;

/// The language of what is looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Python;

/// In patterns it takes the place of `$`, which begins no name in Python.
const STAND_IN: char = 'µ';

impl Language for Python {
    fn pre_process_pattern<'q>(&self, query: &'q str) -> Cow<'q, str> {
        let mut text = String::with_capacity(query.len());
        let mut rest = query;
        while let Some(at) = rest.find('$') {
            text.push_str(&rest[..at]);
            let after = rest[at..].trim_start_matches('$');
            let signs = rest.len() - at - after.len();
            let is_variable = signs == 3 || after.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
            text.extend(std::iter::repeat_n(if is_variable { STAND_IN } else { '$' }, signs));
            rest = after;
        }
        text.push_str(rest);
        text.into()
    }

    fn expando_char(&self) -> char {
        STAND_IN
    }

    fn from_path<P: AsRef<Path>>(path: P) -> Option<Self> {
        let ending = path.as_ref().extension()?;
        (ending == "py" || ending == "pyi").then_some(Python)
    }

    fn kind_to_id(&self, kind: &str) -> u16 {
        self.get_ts_language().id_for_node_kind(kind, true)
    }

    fn field_to_id(&self, field: &str) -> Option<u16> {
        self.get_ts_language().field_id_for_name(field).map(std::num::NonZero::get)
    }

    fn build_pattern(&self, builder: &PatternBuilder) -> Result<Pattern, PatternError> {
        builder.build(|text| StrDoc::try_new(text, *self))
    }
}

impl LanguageExt for Python {
    fn get_ts_language(&self) -> TSLanguage {
        tree_sitter_python::LANGUAGE.into()
    }
}

impl<'de> Deserialize<'de> for Python {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        match name.to_ascii_lowercase().as_str() {
            "python" | "py" => Ok(Python),
            _ => Err(serde::de::Error::custom(format!(
                "the language {} is not built in; patterns are of `python`",
                quote(&name)
            ))),
        }
    }
}

/// A file as syntax.
pub(super) fn parsed(path: &str, text: &str) -> Result<AstGrep<Document>> {
    let document = StrDoc::try_new(text, Python);
    let document =
        document.map_err(|error| Error::repository(format!("{path} cannot be parsed")).with_detail(error))?;
    Ok(AstGrep::doc(document))
}

/// Patterns that can be run.
pub(crate) struct Patterns {
    rules: RuleCollection<Python>,
    /// Those that another engine runs.
    outside: Option<Outside>,
    /// In the order of their files, with the side that they say they are for.
    ids: Vec<(String, Option<Side>)>,
    /// As they are written, in the same order.
    documents: Vec<Keys>,
}

#[derive(Deserialize)]
struct Metadata {
    metadata: Option<SideOnly>,
}

#[derive(Deserialize)]
struct SideOnly {
    side: Option<Side>,
}

/// A pattern, the side that it says it is for, and its document.
type Sided = (SerializableRuleConfig<Python>, Option<Side>, Keys);

/// The patterns of a file.
enum Read {
    Own(Vec<Sided>),
    Outside(Vec<Keys>),
}

impl Patterns {
    /// Reads documents of ast-grep's YAML, and mappings with `rules`, which are OpenGrep's: texts of files with their names.
    ///
    /// # Errors
    /// A usage error with the problems of all files; the machine's trouble where OpenGrep's cannot be run on it.
    pub(crate) fn parse(files: &[(String, String)], sandbox: Sandbox<'_>) -> Result<Self> {
        let (mut problems, mut rules, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        let (mut documents, mut of_others) = (Vec::new(), Vec::new());
        for (name, text) in files {
            let from = ids.len();
            match read(text) {
                Ok(Read::Own(of_file)) => {
                    for (rule, side, document) in of_file {
                        let id = rule.id.clone();
                        match RuleConfig::try_from(rule, &GlobalRules::default()) {
                            Ok(rule) => rules.push(rule),
                            Err(error) => problems.push(format!("{name}: {}: {}", quote(&id), chain(&error))),
                        }
                        ids.push((id, side));
                        documents.push(document);
                    }
                }
                Ok(Read::Outside(of_file)) => {
                    for document in of_file {
                        ids.push((outside::id(&document), outside::side(name, &document)));
                        of_others.push(documents.len());
                        documents.push(document);
                    }
                }
                Err(problem) => problems.push(format!("{name}: {problem}")),
            }
            problems.extend(not_unique(&ids, from).map(|problem| format!("{name}: {problem}")));
        }
        let rules = RuleCollection::try_new(rules).map_err(|error| {
            problems.push(chain(&error));
        });
        let Some(rules) = rules.ok().filter(|_| problems.is_empty()) else {
            return Err(Error::usage(problems.join("\n")).with_hint(
                "patterns are YAML documents of ast-grep, or a mapping with `rules` of OpenGrep; docs/codetaste.md has \
                 an example",
            ));
        };
        let of_others: Vec<&Keys> = of_others.into_iter().map(|at| &documents[at]).collect();
        let outside = (!of_others.is_empty()).then(|| Outside::new(&of_others, sandbox)).transpose()?;
        Ok(Patterns { rules, outside, ids, documents })
    }

    /// Patterns of ast-grep alone.
    ///
    /// # Errors
    /// Those of [`Patterns::parse`].
    pub(crate) fn built_in(files: &[(String, String)]) -> Result<Self> {
        Patterns::parse(files, &|| Err(Error::usage("these patterns are not ast-grep's")))
    }

    /// The program that runs those of OpenGrep's, with version and SHA-256; none where there are none.
    pub(crate) fn engine(&self) -> Option<&str> {
        self.outside.as_ref().map(Outside::engine)
    }

    /// Which files of a tree they look through.
    pub(crate) fn reach(&self) -> Reach {
        if self.outside.is_some() { Reach::All } else { Reach::Python }
    }

    /// IDs in the order of their files, with the sides that patterns say they are for.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (&str, Option<Side>)> {
        self.ids.iter().map(|(id, side)| (id.as_str(), *side))
    }

    /// IDs with the documents that they are written as.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (&str, &Keys)> {
        self.ids.iter().map(|(id, _)| id.as_str()).zip(&self.documents)
    }

    /// What each pattern matches on a tree; what matches nothing is missing.
    ///
    /// # Errors
    /// A file that cannot be looked through, the engine's trouble, and an interrupt.
    pub(crate) fn scan(&self, tree: &Tree) -> Result<BTreeMap<String, Matches>> {
        let mut found = match &self.outside {
            Some(outside) if !tree.is_empty() => outside.scan(tree)?,
            _ => BTreeMap::new(),
        };
        for (path, text) in &tree.files {
            interrupt::check()?;
            let rules = self.rules.for_path(path);
            if rules.is_empty() {
                continue;
            }
            let mut by_kind: HashMap<usize, Vec<&RuleConfig<Python>>> = HashMap::new();
            for rule in rules {
                for kind in rule.matcher.potential_kinds().iter().flatten() {
                    by_kind.entry(kind).or_default().push(rule);
                }
            }
            let file = parsed(path, text)?;
            for node in file.root().dfs() {
                for rule in by_kind.get(&usize::from(node.kind_id())).into_iter().flatten() {
                    if rule.matcher.match_node(node.clone()).is_some() {
                        let (first, last) = lines_of(&node);
                        let one = found.entry(rule.id.clone()).or_default();
                        one.matches += 1;
                        one.lines.insert(path, first, last);
                    }
                }
            }
        }
        Ok(found)
    }
}

/// First and last line of a node.
pub(super) fn lines_of(node: &Node<'_, Document>) -> (u64, u64) {
    let place = |(row, column): (usize, usize)| (row as u64, column as u64);
    rows(place(node.start_pos().byte_point()), place(node.end_pos().byte_point()))
}

/// The patterns of a file.
fn read(text: &str) -> Result<Read, String> {
    let short = |error: String| error.chars().take(LONGEST_ERROR).collect::<String>();
    let keys: Result<Vec<Keys>, _> = ast_grep_config::from_multiple(text);
    let keys = keys.map_err(|error| short(error.to_string()))?;
    if let Some(rules) = outside::rules(&keys)? {
        return Ok(Read::Outside(rules));
    }
    let rules: Vec<SerializableRuleConfig<Python>> =
        ast_grep_config::from_multiple(text).map_err(|error| short(error.to_string()))?;
    let sides: Vec<Metadata> =
        ast_grep_config::from_multiple(text).map_err(|error| short(error.to_string()))?;
    let each = rules.into_iter().zip(sides).zip(keys).map(|((mut rule, metadata), document)| {
        // A pattern is run whatever severity it has.
        rule.severity = Severity::Info;
        (rule, metadata.metadata.and_then(|metadata| metadata.side), document)
    });
    Ok(Read::Own(each.collect()))
}

/// What is wrong with the IDs of patterns from a place on.
fn not_unique(ids: &[(String, Option<Side>)], from: usize) -> impl Iterator<Item = String> {
    ids.iter().enumerate().skip(from).filter_map(move |(at, (id, _))| {
        if id.is_empty() {
            return Some("a pattern has no `id`".to_owned());
        }
        let is_twice = ids[..at].iter().any(|(known, _)| known == id);
        is_twice.then(|| format!("the id {} is given twice", quote(id)))
    })
}

/// An error with what led to it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text.chars().take(LONGEST_ERROR).collect()
}
