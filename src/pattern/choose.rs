//! Which features become patterns: few, general, distinct, and together on as many changed lines as possible.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use super::features::{Feature, Features, Kind, Occurrence, Occurrences, Paths};
use crate::family::codetaste::lines::Lines;
use crate::family::codetaste::score::Side;

/// Most patterns of a side.
const fn limit(side: Side) -> usize {
    match side {
        Side::Additive => 90,
        Side::Reductive => 120,
    }
}

/// A pattern leaves out this many files where the other side still has it, and this many times fewer matches there.
const EXEMPT_FILES: usize = 2;
const EXEMPT_RATIO: usize = 10;
/// A name that is in one file alone, and no definition, attribute or keyword there, needs this many lines.
const LINES_OF_INNER: usize = 10;
/// Longer names, in bytes, have no pattern: its expression would be too large.
const LONGEST_NAME: usize = 200;
/// Everyday names.
const DULL: [&str; 48] = [
    "self",
    "cls",
    "args",
    "kwargs",
    "True",
    "False",
    "None",
    "object",
    "str",
    "int",
    "float",
    "bool",
    "list",
    "dict",
    "set",
    "tuple",
    "type",
    "super",
    "len",
    "range",
    "print",
    "isinstance",
    "getattr",
    "setattr",
    "hasattr",
    "open",
    "Exception",
    "ValueError",
    "TypeError",
    "KeyError",
    "os",
    "sys",
    "re",
    "pytest",
    "Any",
    "Optional",
    "Union",
    "List",
    "Dict",
    "Tuple",
    "i",
    "j",
    "k",
    "x",
    "y",
    "n",
    "e",
    "f",
];

/// Which files a pattern looks into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Where {
    Everywhere,
    /// All but its paths.
    But,
    /// Its paths alone.
    Only,
}

impl Where {
    /// What a newly covered line counts, in tenths.
    fn weight(self) -> usize {
        match self {
            Where::Everywhere => 10,
            Where::But => 9,
            Where::Only => 6,
        }
    }
}

/// A pattern that was found.
#[derive(Debug, Clone)]
pub(crate) struct Mined {
    pub id: String,
    pub side: Side,
    pub kind: Kind,
    pub name: String,
    pub place: Where,
    pub paths: Vec<String>,
    /// As the features have it; the engine counts anew.
    pub matches: usize,
    lines: Vec<u64>,
}

impl Mined {
    fn rank(&self) -> (Where, Kind, Reverse<usize>, &str, &[String]) {
        (self.place, self.kind, Reverse(self.matches), &self.name, &self.paths)
    }

    fn files(&self) -> usize {
        self.lines.iter().map(|line| line >> 32).collect::<BTreeSet<_>>().len()
    }
}

/// The patterns of one side: what `here` has, `there` has not, and is on changed lines.
pub(super) fn mine(
    side: Side,
    here: &Features,
    there: &Features,
    paths: &Paths,
    changed: &Lines,
) -> Vec<Mined> {
    let changed = keys_of(changed, here, paths);
    let search = Search { side, here, there, paths, changed: &changed };
    let mut patterns = search.candidates();
    patterns.extend(search.moved());
    let mut chosen = choose(patterns, &changed, limit(side));
    let mut given: HashSet<String> = HashSet::new();
    for one in &mut chosen {
        let plain = one.id.clone();
        let mut times = 1;
        while !given.insert(one.id.clone()) {
            times += 1;
            one.id = format!("{plain}-{times}");
        }
    }
    chosen
}

/// A line as a number: its file's, and its own.
fn key(file: u32, line: u32) -> u64 {
    u64::from(file) << 32 | u64::from(line)
}

fn keys_of(lines: &Lines, here: &Features, paths: &Paths) -> HashSet<u64> {
    let numbers: HashMap<&str, u32> = here.files.iter().map(|file| (paths.name(*file), *file)).collect();
    let ranges = lines.ranges().filter_map(|(path, first, last)| Some((*numbers.get(path)?, first, last)));
    ranges.flat_map(|(file, first, last)| (first..=last).map(move |line| key(file, line as u32))).collect()
}

fn lines(occurrences: &[Occurrence]) -> Vec<u64> {
    let each = occurrences.iter().flat_map(|one| (one.first..=one.last).map(|line| key(one.file, line)));
    let mut lines: Vec<u64> = each.collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

struct Search<'a> {
    side: Side,
    here: &'a Features,
    there: &'a Features,
    paths: &'a Paths,
    changed: &'a HashSet<u64>,
}

impl Search<'_> {
    fn candidates(&self) -> Vec<Mined> {
        let each =
            self.here.found.iter().filter_map(|(feature, occurrences)| self.candidate(feature, occurrences));
        each.filter(|one| one.lines.iter().any(|line| self.changed.contains(line))).collect()
    }

    fn candidate(&self, feature: &Feature, occurrences: &[Occurrence]) -> Option<Mined> {
        let (kind, _) = feature;
        if feature.1.len() > LONGEST_NAME
            || is_dull(feature)
            || is_private(occurrences)
            || is_inner(feature, occurrences, &self.here.found)
        {
            return None;
        }
        let (mut place, mut files, mut matches) = (Where::Everywhere, BTreeSet::new(), occurrences.to_vec());
        if let Some(other) = self.there.found.get(feature) {
            let left: BTreeSet<u32> = other.iter().map(|one| one.file).collect();
            if left.len() <= EXEMPT_FILES && matches.len() >= EXEMPT_RATIO * other.len() {
                matches.retain(|one| !left.contains(&one.file));
                (place, files) = (Where::But, left);
            } else {
                let in_both = |file: &u32| self.here.files.contains(file) && self.there.files.contains(file);
                files = matches
                    .iter()
                    .map(|one| one.file)
                    .filter(|file| in_both(file) && !left.contains(file))
                    .collect();
                matches.retain(|one| files.contains(&one.file));
                place = Where::Only;
                if matches.len() < 3 || *kind == Kind::Text {
                    return None;
                }
            }
            if matches.is_empty() || is_private(&matches) {
                return None;
            }
        }
        let is_enough =
            matches.len() >= 2 || matches!(kind, Kind::Module | Kind::Class | Kind::Def | Kind::From);
        is_enough.then(|| self.pattern(feature, place, &files, &matches, matches.len()))
    }

    /// Definitions at the top of a file that are in another file on the other side.
    fn moved(&self) -> Vec<Mined> {
        let mut patterns = Vec::new();
        for (name, by_file) in self.here.defined.iter().filter(|(name, _)| !name.starts_with("test_")) {
            let Some(others) = self.there.defined.get(name) else { continue };
            for (file, place) in by_file.iter().filter(|(file, _)| !others.contains_key(file)) {
                let feature = (Kind::Place, name.clone());
                let one = self.pattern(&feature, Where::Only, &BTreeSet::from([*file]), &[*place], 1);
                if one.lines.iter().any(|line| self.changed.contains(line)) {
                    patterns.push(one);
                }
            }
        }
        patterns
    }

    fn pattern(
        &self,
        (kind, name): &Feature,
        place: Where,
        files: &BTreeSet<u32>,
        occurrences: &[Occurrence],
        matches: usize,
    ) -> Mined {
        let mut paths: Vec<String> = files.iter().map(|file| self.paths.name(*file).to_owned()).collect();
        paths.sort();
        Mined {
            id: id(self.side, *kind, name),
            side: self.side,
            kind: *kind,
            name: name.clone(),
            place,
            paths,
            matches,
            lines: lines(occurrences),
        }
    }
}

fn id(side: Side, kind: Kind, name: &str) -> String {
    let start = if side == Side::Additive { "new" } else { "old" };
    let mut id = String::from(start);
    for c in format!(" {} {name}", kind.as_str()).to_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' => id.push(c),
            _ if id.ends_with('-') => {}
            _ => id.push('-'),
        }
    }
    id.trim_matches('-').to_owned()
}

/// Whether all of it is within one function.
fn is_private(occurrences: &[Occurrence]) -> bool {
    let scopes: BTreeSet<Option<u32>> = occurrences.iter().map(|one| one.scope).collect();
    scopes.len() == 1 && !scopes.contains(&None)
}

fn is_dull((kind, name): &Feature) -> bool {
    use Kind::{Attr, Base, Call, Class, Decorator, Def, Ident, Kwarg};
    let is_dunder = name.len() > 4 && name.starts_with("__") && name.ends_with("__");
    matches!(kind, Ident | Attr | Call | Kwarg | Def | Class | Base | Decorator)
        && (name.chars().count() < 3
            || is_dunder
            || DULL.contains(&name.as_str())
            || name.starts_with("test_")
            || name.starts_with("Test"))
}

fn is_inner((kind, name): &Feature, occurrences: &[Occurrence], here: &Occurrences) -> bool {
    let is_outer = |kind: Kind| here.contains_key(&(kind, name.clone()));
    *kind == Kind::Ident
        && lines(occurrences).len() < LINES_OF_INNER
        && occurrences.iter().all(|one| one.file == occurrences[0].file)
        && ![Kind::Def, Kind::Class, Kind::Attr, Kind::Kwarg].into_iter().any(is_outer)
}

/// First those that cover most lines that none before covers, then what is still distinct.
fn choose(mut patterns: Vec<Mined>, changed: &HashSet<u64>, limit: usize) -> Vec<Mined> {
    patterns.sort_by(|one, other| one.rank().cmp(&other.rank()));
    let touched: Vec<Vec<u64>> = patterns
        .iter()
        .map(|one| one.lines.iter().filter(|line| changed.contains(line)).copied().collect())
        .collect();
    let (mut order, mut taken) = (Vec::new(), vec![false; patterns.len()]);
    let mut covered: HashSet<u64> = HashSet::new();
    let gain = |at: usize, covered: &HashSet<u64>| {
        patterns[at].place.weight() * touched[at].iter().filter(|line| !covered.contains(line)).count()
    };
    // Gains only shrink, so that the best by an old gain is the best where its gain of now is.
    let mut heap: BinaryHeap<(usize, Reverse<usize>)> =
        (0..patterns.len()).map(|at| (gain(at, &covered), Reverse(at))).collect();
    while order.len() < limit
        && let Some((_, Reverse(at))) = heap.pop()
    {
        let now = (gain(at, &covered), Reverse(at));
        if heap.peek().is_some_and(|next| *next > now) {
            heap.push(now);
        } else if now.0 > 0 {
            covered.extend(&patterns[at].lines);
            taken[at] = true;
            order.push(at);
        } else {
            break;
        }
    }
    let mut left: Vec<usize> = (0..patterns.len()).filter(|at| !taken[*at]).collect();
    left.sort_by_key(|at| (Reverse(patterns[*at].files()), Reverse(patterns[*at].matches), *at));
    for at in left {
        let one = &patterns[at];
        let is_wide = one.place != Where::Only && one.matches >= 3;
        if order.len() < limit && is_wide && order.iter().all(|other| !is_near(one, &patterns[*other])) {
            order.push(at);
        }
    }
    let mut patterns: Vec<Option<Mined>> = patterns.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| patterns[at].take()).collect()
}

/// Whether more than 95 of 100 lines are in both.
fn is_near(one: &Mined, other: &Mined) -> bool {
    let (less, more) = (one.lines.len().min(other.lines.len()), one.lines.len().max(other.lines.len()));
    if 100 * less <= 95 * more {
        return false;
    }
    let common = one.lines.iter().filter(|line| other.lines.binary_search(line).is_ok()).count();
    100 * common > 95 * (one.lines.len() + other.lines.len() - common)
}

/// A pattern for every feature, for tests.
#[cfg(test)]
pub(super) fn each_of(features: &Features, paths: &Paths) -> Vec<Mined> {
    let changed = HashSet::new();
    let search = Search {
        side: Side::Additive,
        here: features,
        there: &Features::default(),
        paths,
        changed: &changed,
    };
    let each = features.found.iter().enumerate().map(|(number, (feature, occurrences))| {
        let mut one =
            search.pattern(feature, Where::Everywhere, &BTreeSet::new(), occurrences, occurrences.len());
        one.id = format!("{}-{number}", one.id);
        one
    });
    each.collect()
}
