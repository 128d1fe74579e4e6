//! Scopes that a repository could be cut into: files that import much from each other, by greedy merging by modularity
//! (Clauset, Newman and Moore).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::graph::{EdgeKind, graph};

/// A context of so many tokens is not cut.
pub const ONE_SCOPE: u64 = 111_000;
/// More files are not looked at: their pairs would be too many.
pub const MOST_FILES: usize = 4_000;
/// A part with fewer files joins another one.
const FEWEST_FILES: usize = 5;
/// Most parts.
const MOST: usize = 8;

/// A part of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub name: String,
    /// Globs that its files fit.
    pub paths: Vec<String>,
    /// How many files it has.
    pub files: usize,
}

/// The parts of a tree, by the first file of each. `texts` are its Python files by path, tests aside.
pub fn propose(texts: &BTreeMap<&str, &str>) -> Vec<Proposal> {
    let paths: Vec<&str> = texts.keys().copied().collect();
    let place: BTreeMap<&str, usize> = paths.iter().enumerate().map(|(at, path)| (*path, at)).collect();
    let mut imports: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for edge in graph("", texts).edges.iter().filter(|edge| edge.kind == EdgeKind::Imports) {
        let ends = [&edge.from, &edge.to].map(|id| place.get(id.split(':').next().unwrap_or(id)).copied());
        if let [Some(from), Some(to)] = ends
            && from != to
        {
            *imports.entry((from, to)).or_default() += u64::from(edge.count);
        }
    }
    let mut parts = Parts::new(&paths, &imports);
    while let Some((one, other)) = parts.best() {
        parts.join(one, other);
    }
    while let Some(small) = parts.smallest().filter(|_| parts.members.len() > 1) {
        if parts.members[&small].len() >= FEWEST_FILES && parts.members.len() <= MOST {
            break;
        }
        parts.join(small, parts.nearest(small));
    }
    let mut members: Vec<BTreeSet<usize>> = parts.members.into_values().collect();
    share(&mut members, paths.len(), &imports);
    named(&members, &paths)
}

/// Adds files that more than half of the parts import to each part that imports them.
fn share(members: &mut [BTreeSet<usize>], files: usize, imports: &BTreeMap<(usize, usize), u64>) {
    let before = members.to_vec();
    for file in 0..files {
        let users: BTreeSet<usize> =
            imports.keys().filter(|(_, to)| *to == file).map(|(from, _)| *from).collect();
        let of: Vec<usize> = (0..before.len()).filter(|part| !before[*part].is_disjoint(&users)).collect();
        if 2 * of.len() > before.len() {
            for part in of {
                members[part].insert(file);
            }
        }
    }
}

/// Disjoint parts of the files, each by the first of them.
struct Parts<'a> {
    paths: &'a [&'a str],
    members: BTreeMap<usize, BTreeSet<usize>>,
    /// Weights between parts, both ways.
    weights: BTreeMap<usize, BTreeMap<usize, u64>>,
    /// The sum of the weights of the edges of a part's files.
    degrees: BTreeMap<usize, u64>,
    /// Twice the weight of all edges.
    whole: u64,
}

impl<'a> Parts<'a> {
    /// Each file alone. An edge weighs as many names as one file imports from the other, and one more within a folder.
    fn new(paths: &'a [&'a str], imports: &BTreeMap<(usize, usize), u64>) -> Self {
        let mut weights: BTreeMap<usize, BTreeMap<usize, u64>> = BTreeMap::new();
        let mut add = |one: usize, other: usize, weight: u64| {
            *weights.entry(one).or_default().entry(other).or_default() += weight;
            *weights.entry(other).or_default().entry(one).or_default() += weight;
        };
        imports.iter().for_each(|((from, to), names)| add(*from, *to, *names));
        let folder = |at: usize| paths[at].rsplit_once('/').map(|(folder, _)| folder);
        for one in 0..paths.len() {
            (one + 1..paths.len())
                .filter(|other| folder(one) == folder(*other))
                .for_each(|other| add(one, other, 1));
        }
        let degrees: BTreeMap<usize, u64> = weights.iter().map(|(at, of)| (*at, of.values().sum())).collect();
        let members = (0..paths.len()).map(|at| (at, BTreeSet::from([at]))).collect();
        Parts { paths, members, weights, whole: degrees.values().sum(), degrees }
    }

    /// The two parts whose joining raises modularity most, the first of equal ones; none where none does.
    fn best(&self) -> Option<(usize, usize)> {
        let mut best = (0, None);
        for (one, of) in &self.weights {
            for (other, weight) in of.range(one + 1..) {
                let expected = i128::from(self.degrees[one]) * i128::from(self.degrees[other]);
                let gain = i128::from(self.whole) * i128::from(*weight) - expected;
                if gain > best.0 {
                    best = (gain, Some((*one, *other)));
                }
            }
        }
        best.1
    }

    /// Makes one part of two.
    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (one.min(other), one.max(other));
        let moved = self.members.remove(&other).unwrap_or_default();
        self.members.entry(one).or_default().extend(moved);
        let degree = self.degrees.remove(&other).unwrap_or_default();
        *self.degrees.entry(one).or_default() += degree;
        for (part, weight) in self.weights.remove(&other).unwrap_or_default() {
            let back = self.weights.entry(part).or_default();
            back.remove(&other);
            if part != one {
                *back.entry(one).or_default() += weight;
                *self.weights.entry(one).or_default().entry(part).or_default() += weight;
            }
        }
    }

    fn smallest(&self) -> Option<usize> {
        self.members.iter().min_by_key(|(at, files)| (files.len(), **at)).map(|(at, _)| *at)
    }

    /// The part that another has most to do with, else the one whose path is most like its own.
    fn nearest(&self, part: usize) -> usize {
        let weight =
            |other: usize| self.weights.get(&part).and_then(|of| of.get(&other)).copied().unwrap_or(0);
        let common = |other: usize| {
            let folders = self.paths[part].split('/').zip(self.paths[other].split('/'));
            folders.take_while(|(one, other)| one == other).count()
        };
        let others = self.members.keys().copied().filter(|other| *other != part);
        others.max_by_key(|other| (weight(*other), common(*other), Reverse(*other))).unwrap_or(part)
    }
}

/// Parts with names and globs: whole folders where all of their files are in the part.
fn named(members: &[BTreeSet<usize>], paths: &[&str]) -> Vec<Proposal> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut proposals = Vec::new();
    for files in members {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for file in files {
            *count.entry(paths[*file].rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
        }
        let folder = count.iter().max_by_key(|(folder, count)| (**count, Reverse(**folder)));
        let folder = folder.map_or("", |(folder, _)| folder.rsplit('/').next().unwrap_or_default());
        let plain: String =
            folder.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).collect();
        let plain = if plain.is_empty() { "root".to_owned() } else { plain };
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let name = std::iter::once(plain.clone())
            .chain(numbered)
            .find(|name| !names.contains(name))
            .unwrap_or(plain);
        names.insert(name.clone());
        proposals.push(Proposal { name, paths: globs(files, paths), files: files.len() });
    }
    proposals
}

fn globs(files: &BTreeSet<usize>, paths: &[&str]) -> Vec<String> {
    let is_whole = |folder: &str| {
        let below = format!("{folder}/");
        let inside = |at: &usize| paths[*at].starts_with(&below);
        (0..paths.len()).filter(inside).all(|at| files.contains(&at))
    };
    let glob = |file: &usize| {
        let path = paths[*file];
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        above
            .clone()
            .find(|folder| is_whole(folder))
            .map_or_else(|| path.to_owned(), |folder| format!("{folder}/**"))
    };
    let globs: BTreeSet<String> = files.iter().map(glob).collect();
    globs.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a folder, each of which imports three names of the next one.
    fn ring(folder: &str, count: usize) -> Vec<(String, String)> {
        let text = |at: usize| {
            let next = (at + 1) % count;
            format!("from .m{next} import a, b, c\ndef a(): pass\ndef b(): pass\ndef c(): pass\n")
        };
        let mut files: Vec<(String, String)> =
            (0..count).map(|at| (format!("{folder}/m{at}.py"), text(at))).collect();
        files.push((format!("{folder}/__init__.py"), String::new()));
        files
    }

    fn proposed(files: &[(String, String)]) -> Vec<(String, Vec<String>, usize)> {
        let texts: BTreeMap<&str, &str> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        propose(&texts).into_iter().map(|one| (one.name, one.paths, one.files)).collect()
    }

    #[test]
    fn files_that_import_each_other_are_one_part_and_small_parts_join_others() {
        let mut files = [ring("src/p/one", 6), ring("src/p/two", 6), ring("src/p/few", 1)].concat();
        files.push(("src/p/few/m9.py".into(), "from src.p.two.m1 import a, b, c\n".into()));
        files.push(("src/p/__init__.py".into(), String::new()));
        let found = proposed(&files);
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["two", "one"], "{found:?}");
        assert!(
            found[0].1.contains(&"src/p/few/**".to_owned())
                && found[0].1.contains(&"src/p/two/**".to_owned()),
            "{found:?}"
        );
        assert_eq!(found.iter().map(|(.., files)| files).sum::<usize>(), files.len());
    }

    #[test]
    fn a_file_that_most_parts_import_is_in_each_of_them_and_there_are_at_most_eight() {
        let mut files: Vec<(String, String)> = Vec::new();
        for part in 0..10 {
            files.extend(ring(&format!("p{part}"), 6));
            files.push((format!("p{part}/user.py"), "from p0.m0 import a\n".into()));
        }
        let found = proposed(&files);
        assert_eq!(found.len(), 8, "{found:?}");
        let with = found
            .iter()
            .filter(|(_, paths, _)| paths.iter().any(|path| path == "p0/m0.py" || path == "p0/**"));
        assert_eq!(with.count(), 8, "{found:?}");
        assert_eq!(found, proposed(&files));
        assert!(proposed(&[]).is_empty());
    }
}
