//! Line existence: which lines of a submission stand in the repository, in a block of the same name and place.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::keys::Key;
use super::units::{self, BlockKind, ControlFlow, Cut, Header, Keys, LineKind, LineType, Unit};
use super::words::Words;
use crate::score::modules::{Bindings, Modules};
use crate::score::text::{self, Unreadable};
use crate::score::tree;
use crate::score::{File, Ratio};

/// Statements of a submission that are compared: flask's largest witness has a tenth of it.
const MOST_STATEMENTS: usize = 50_000;

/// Where a line of the repository is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RepositoryLine {
    /// Path of the file.
    pub file: String,
    /// 1-based.
    pub line: u32,
}

/// Whether a line of a submission stands in the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Existence {
    /// The rate does not look at such lines.
    NotCounted,
    /// The repository does not have it, or not as often.
    Missing,
    Found {
        place: RepositoryLine,
    },
}

/// A logical line of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// 1-based, in the submitted file; of a compound statement the header.
    pub first: u32,
    pub last: u32,
    #[serde(rename = "type")]
    pub line_type: LineType,
    pub kind: LineKind,
    /// Names of the classes and functions around it, the outermost first; a definition is in its own block.
    pub block: Vec<String>,
    pub existence: Existence,
}

/// The lines of a submission and their rates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineExistence {
    /// In the order of the text.
    pub lines: Vec<Line>,
    /// `line_existence`.
    pub rate: Ratio,
    /// `line_existence_control`: all control flow counted.
    pub with_control_flow: Ratio,
}

/// Where a line of the corpus is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    file: u32,
    line: u32,
}

/// Lines of the top level, or of one block.
#[derive(Debug, Clone, Default)]
struct Index {
    keys: HashMap<Key, Entry>,
    others: Vec<(HashSet<Key>, At)>,
    most_others: Count,
}

/// Where a line is first, and how often the file has it that has it most often.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: At,
    count: Count,
}

/// How often something is in one file; files come one after the other.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    file: u32,
    here: u32,
    most: u32,
}

impl Count {
    fn add(&mut self, file: u32) {
        self.here = if self.file == file { self.here + 1 } else { 1 };
        (self.file, self.most) = (file, self.most.max(self.here));
    }
}

/// A line of the repository that a line of a submission is.
#[derive(Debug, Clone, Copy)]
struct Hit {
    at: At,
    /// What its copies have in common.
    group: (usize, Group),
    /// How many of them count.
    most: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Group {
    Header,
    Else,
    Line(Key),
}

/// The top level, as a scope; blocks come after it.
const TOP: usize = 0;

type Children = HashMap<(BlockKind, String), Vec<usize>>;

#[derive(Debug, Clone)]
struct OriginalBlock {
    header: Header,
    at: At,
    lines: Index,
    /// Whether it has more than its header, counted as a submission's lines are.
    has_body: bool,
    children: Children,
}

/// Everything that lines are looked for in; made once for a tree.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    modules: Modules,
    files: Vec<String>,
    /// Files that are no Python, by path.
    unread: Vec<(String, Unreadable)>,
    top: Index,
    roots: Children,
    blocks: Vec<OriginalBlock>,
    words: Words,
}

impl Corpus {
    /// Reads the Python files of a repository, in the order of their paths. Files that cannot be read are left out.
    pub fn of(files: &[File<'_>], modules: Modules) -> Self {
        let mut corpus = Corpus { modules, ..Corpus::default() };
        let mut sorted: Vec<&File<'_>> = files.iter().collect();
        sorted.sort_by_key(|file| file.path);
        for file in sorted {
            let words = &mut corpus.words;
            let cut = text::parse(file.text, |parsed| {
                words.read(parsed);
                units::cut(parsed, &Bindings::of_file(&corpus.modules, file.path, parsed.body))
            });
            match cut {
                Ok(cut) => corpus.add(file.path, cut),
                Err(reason) => corpus.unread.push((file.path.to_owned(), reason)),
            }
        }
        corpus
    }

    /// Files that were left out, and why.
    pub fn unread(&self) -> &[(String, Unreadable)] {
        &self.unread
    }

    fn add(&mut self, path: &str, cut: Cut) {
        let file = self.files.len() as u32;
        self.files.push(path.to_owned());
        let first = self.blocks.len();
        for unit in cut.units {
            let at = At { file, line: unit.first };
            if let Keys::Header(header) = unit.keys {
                // Definitions come in the order of their blocks.
                let block = self.blocks.len();
                let own = &cut.blocks[block - first];
                let siblings = match own.parent {
                    Some(parent) => {
                        self.blocks[first + parent].has_body = true;
                        &mut self.blocks[first + parent].children
                    }
                    None => &mut self.roots,
                };
                siblings.entry((own.kind, own.name.clone())).or_default().push(block);
                let lines = Index::default();
                let children = Children::new();
                self.blocks.push(OriginalBlock { header: *header, at, lines, has_body: false, children });
                continue;
            }
            let index = match unit.block {
                Some(block) => {
                    let block = &mut self.blocks[first + block];
                    block.has_body |= unit.kind.is_counted(ControlFlow::Branches);
                    &mut block.lines
                }
                None => &mut self.top,
            };
            index.add(unit.keys, at);
        }
    }

    fn place(&self, at: At) -> RepositoryLine {
        RepositoryLine { file: self.files[at.file as usize].clone(), line: at.line }
    }

    /// Whether a line of a text, or a comment, is in a text or a comment of the repository.
    pub(super) fn has_text(&self, line: &str) -> bool {
        self.words.has_text(line)
    }

    /// Whether the repository has a decorator with these arguments.
    pub(super) fn has_decorator(&self, key: Key) -> bool {
        self.words.has_decorator(key)
    }

    /// Whether a file of the repository defines a function of this name outside of classes.
    pub(super) fn has_function(&self, name: &str) -> bool {
        self.roots.contains_key(&(BlockKind::Function, name.to_owned()))
    }

    /// Which lines of a submission the repository has, control flow of all kinds and copies included.
    pub(super) fn known_lines(&self, submission: &str) -> Result<KnownLines, Unreadable> {
        let cut = text::parse(submission, |parsed| {
            units::cut(parsed, &Bindings::of_submission(&self.modules, parsed.body))
        })?;
        let found = self.compare(&cut, ControlFlow::All);
        let units = cut.units.iter().zip(found).filter(|(unit, _)| unit.kind != LineKind::Text);
        Ok(KnownLines(units.map(|(unit, found)| (unit.first, unit.last, found.is_some())).collect()))
    }

    /// Compares a submission with the repository.
    pub fn line_existence(&self, submission: &str) -> Result<LineExistence, Unreadable> {
        let cut = text::parse(submission, |parsed| {
            let count = tree::count(parsed.body, MOST_STATEMENTS + 1);
            let bindings = || Bindings::of_submission(&self.modules, parsed.body);
            (count <= MOST_STATEMENTS)
                .then(|| units::cut(parsed, &bindings()))
                .ok_or(Unreadable::TooManyStatements { most: MOST_STATEMENTS as u32 })
        })??;
        let found = counted(&self.compare(&cut, ControlFlow::Branches));
        let all = counted(&self.compare(&cut, ControlFlow::All));
        let lines = cut.units.iter().zip(&found).map(|(unit, found)| Line {
            first: unit.first,
            last: unit.last,
            line_type: unit.kind.line_type(),
            kind: unit.kind,
            block: cut.path(unit.block).into_iter().map(str::to_owned).collect(),
            existence: match found {
                _ if !unit.kind.is_counted(ControlFlow::Branches) => Existence::NotCounted,
                None => Existence::Missing,
                Some(at) => Existence::Found { place: self.place(*at) },
            },
        });
        Ok(LineExistence {
            lines: lines.collect(),
            rate: rate(&cut, &found, ControlFlow::Branches),
            with_control_flow: rate(&cut, &all, ControlFlow::All),
        })
    }

    /// Where each line is found.
    fn compare(&self, cut: &Cut, counts: ControlFlow) -> Vec<Option<Hit>> {
        let mut tree =
            Tree { cut, own: vec![Vec::new(); cut.blocks.len()], inner: vec![Vec::new(); cut.blocks.len()] };
        let mut found = vec![None; cut.units.len()];
        for (number, unit) in cut.units.iter().enumerate().filter(|(_, unit)| unit.kind.is_counted(counts)) {
            match unit.block {
                Some(block) => tree.own[block].push(number),
                None => found[number] = self.top.find(unit, TOP),
            }
        }
        for (number, block) in cut.blocks.iter().enumerate() {
            if let Some(parent) = block.parent {
                tree.inner[parent].push(number);
            }
        }
        for block in (0..cut.blocks.len()).filter(|block| cut.blocks[*block].parent.is_none()) {
            for (unit, at) in self.best(&tree, block, &self.roots) {
                found[unit] = Some(at);
            }
        }
        found
    }

    /// What is found of a block in that one of the candidates in which most is found; the first one of equals.
    fn best(&self, tree: &Tree<'_>, block: usize, candidates: &Children) -> Vec<(usize, Hit)> {
        let own = &tree.cut.blocks[block];
        let named = candidates.get(&(own.kind, own.name.clone())).into_iter().flatten();
        // A header, at most with a text, is not a function that does something.
        let is_stub =
            own.kind == BlockKind::Function && tree.own[block].len() < 2 && tree.inner[block].is_empty();
        let mut best = Vec::new();
        for candidate in named {
            let original = &self.blocks[*candidate];
            if is_stub && original.has_body {
                continue;
            }
            let mut found = Vec::new();
            for unit in &tree.own[block] {
                found.extend(original.find(&tree.cut.units[*unit], candidate + 1).map(|hit| (*unit, hit)));
            }
            for inner in &tree.inner[block] {
                found.extend(self.best(tree, *inner, &original.children));
            }
            if found.len() > best.len() {
                best = found;
            }
        }
        best
    }
}

/// Lines of a submission, and whether the repository has them.
#[derive(Debug, Clone)]
pub(super) struct KnownLines(Vec<(u32, u32, bool)>);

impl KnownLines {
    /// Whether all statements on these lines are the repository's, and there is one.
    pub(super) fn has(&self, first: u32, last: u32) -> bool {
        let mut here = self.0.iter().filter(|(from, to, _)| *from <= last && *to >= first).peekable();
        here.peek().is_some() && here.all(|(_, _, known)| *known)
    }
}

/// A submission's blocks with what is in them.
struct Tree<'c> {
    cut: &'c Cut,
    /// Counted lines of each block.
    own: Vec<Vec<usize>>,
    inner: Vec<Vec<usize>>,
}

impl Index {
    fn add(&mut self, keys: Keys, at: At) {
        match keys {
            Keys::Any([plain, stripped]) => {
                let further = (stripped != plain).then_some(stripped);
                for key in [Some(plain), further].into_iter().flatten() {
                    let entry = self.keys.entry(key).or_insert(Entry { at, count: Count::default() });
                    entry.count.add(at.file);
                }
            }
            Keys::Body(keys) => {
                self.others.push((keys.into_iter().collect(), at));
                self.most_others.add(at.file);
            }
            Keys::None | Keys::Header(_) => {}
        }
    }

    fn find(&self, unit: &Unit, scope: usize) -> Option<Hit> {
        match &unit.keys {
            Keys::Any(keys) => {
                let entries = keys.iter().filter_map(|key| self.keys.get(key));
                let most = entries.clone().map(|entry| entry.count.most).max()?;
                let at = entries.map(|entry| entry.at).next()?;
                Some(Hit { at, group: (scope, Group::Line(keys[1])), most })
            }
            Keys::Body(body) => {
                let holds =
                    |other: &HashSet<Key>| body.is_empty() || body.iter().any(|key| other.contains(key));
                let found = self.others.iter().find(|(other, _)| holds(other));
                let (group, most) = ((scope, Group::Else), self.most_others.most);
                found.map(|(_, at)| Hit { at: *at, group, most })
            }
            Keys::None | Keys::Header(_) => None,
        }
    }
}

impl OriginalBlock {
    fn find(&self, unit: &Unit, scope: usize) -> Option<Hit> {
        match &unit.keys {
            Keys::Header(header) => {
                let hit = Hit { at: self.at, group: (scope, Group::Header), most: 1 };
                header.is_within(&self.header).then_some(hit)
            }
            _ => self.lines.find(unit, scope),
        }
    }
}

/// Where each line is: of copies only as many count as the file has that has it most often.
fn counted(found: &[Option<Hit>]) -> Vec<Option<At>> {
    let mut used: HashMap<(usize, Group), u32> = HashMap::new();
    let mut counted = |hit: &Option<Hit>| {
        let hit = hit.as_ref()?;
        let used = used.entry(hit.group).or_default();
        *used += 1;
        (*used <= hit.most).then_some(hit.at)
    };
    found.iter().map(&mut counted).collect()
}

fn rate(cut: &Cut, found: &[Option<At>], counts: ControlFlow) -> Ratio {
    let counted = cut.units.iter().zip(found).filter(|(unit, _)| unit.kind.is_counted(counts));
    counted.fold(Ratio::default(), |rate, (_, found)| rate.with(found.is_some()))
}
