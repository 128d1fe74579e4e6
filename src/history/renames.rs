//! Which files a commit moved: as `git diff -M50%` finds them, which libgit2 does not (it counts similar lines in another way).

use std::collections::{BTreeMap, HashMap};

use git2::{Oid, Repository};

/// Similarity in parts of this.
const WHOLE: u64 = 60_000;
/// Half of the content is the same.
const LEAST: u64 = WHOLE / 2;
/// What two files with a name that nothing else has must share before others are compared.
const LEAST_OF_ONE_NAME: u64 = LEAST + (WHOLE - LEAST) / 2;
/// More pairs than the square of this are not compared.
const LIMIT: usize = 1000;
/// Candidates that are kept for each new file.
const CANDIDATES: usize = 4;
/// Files of more bytes in all are not compared.
const MOST_BYTES: usize = 256 << 20;
/// The number of values of a hash, and the longest piece that has one.
const HASHES: u32 = 107_927;
const LONGEST_PIECE: u64 = 64;

/// A file that is only on one side.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub path: Vec<u8>,
    pub id: Oid,
    pub mode: u32,
}

impl File {
    fn is_regular(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    fn name(&self) -> &[u8] {
        self.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }
}

/// The place of a file of `deleted` for each of `created` that is it at another path.
pub(super) fn renames(
    repository: &Repository,
    deleted: &[File],
    created: &[File],
) -> Result<BTreeMap<usize, usize>, git2::Error> {
    let mut found = Renames { from: vec![None; created.len()], used: vec![false; deleted.len()] };
    found.identical(deleted, created);
    let (sources, targets) = found.left();
    if !sources.is_empty() && !targets.is_empty() {
        let mut contents = Contents { repository, read: HashMap::new(), bytes: 0 };
        found.of_one_name(deleted, created, &mut contents)?;
        let (sources, targets) = found.left();
        if sources.len().saturating_mul(targets.len()) <= LIMIT * LIMIT {
            found.similar((deleted, &sources), (created, &targets), &mut contents)?;
        }
    }
    Ok(found.from.iter().enumerate().filter_map(|(to, from)| Some((to, (*from)?))).collect())
}

struct Renames {
    from: Vec<Option<usize>>,
    used: Vec<bool>,
}

impl Renames {
    fn record(&mut self, from: usize, to: usize) {
        self.from[to] = Some(from);
        self.used[from] = true;
    }

    /// What has no partner yet.
    fn left(&self) -> (Vec<usize>, Vec<usize>) {
        let sources = (0..self.used.len()).filter(|at| !self.used[*at]).collect();
        (sources, (0..self.from.len()).filter(|at| self.from[*at].is_none()).collect())
    }

    /// Files of the same content; among several the first with the same name, else the first.
    fn identical(&mut self, deleted: &[File], created: &[File]) {
        let mut by_content: HashMap<Oid, Vec<usize>> = HashMap::new();
        for (at, file) in deleted.iter().enumerate() {
            by_content.entry(file.id).or_default().push(at);
        }
        for (to, target) in created.iter().enumerate() {
            let same = by_content.get(&target.id).map(Vec::as_slice).unwrap_or_default();
            let fits = |at: &usize| {
                let source = &deleted[*at];
                !self.used[*at]
                    && (source.mode == target.mode || (source.is_regular() && target.is_regular()))
            };
            let same: Vec<usize> = same.iter().copied().filter(fits).collect();
            let named = same.iter().find(|at| deleted[**at].name() == target.name());
            if let Some(from) = named.or(same.first()) {
                self.record(*from, to);
            }
        }
    }

    /// Files whose name only one file of each side has.
    fn of_one_name(
        &mut self,
        deleted: &[File],
        created: &[File],
        contents: &mut Contents<'_>,
    ) -> Result<(), git2::Error> {
        let (sources, targets) = self.left();
        let unique = |files: &[File], places: &[usize]| {
            let mut names: HashMap<Vec<u8>, Option<usize>> = HashMap::new();
            for at in places {
                names.entry(files[*at].name().to_owned()).and_modify(|one| *one = None).or_insert(Some(*at));
            }
            names
        };
        let (names, others) = (unique(deleted, &sources), unique(created, &targets));
        for from in sources {
            let name = deleted[from].name();
            let (Some(Some(_)), Some(Some(to))) = (names.get(name), others.get(name)) else { continue };
            if contents.similarity(&deleted[from], &created[*to])? >= LEAST_OF_ONE_NAME {
                self.record(from, *to);
            }
        }
        Ok(())
    }

    /// The most similar files.
    fn similar(
        &mut self,
        (deleted, sources): (&[File], &[usize]),
        (created, targets): (&[File], &[usize]),
        contents: &mut Contents<'_>,
    ) -> Result<(), git2::Error> {
        let mut pairs = Vec::new();
        for &to in targets {
            crate::interrupt::check().map_err(|_| git2::Error::from_str("interrupted"))?;
            let mut best: Vec<Pair> = Vec::new();
            for &from in sources {
                let similarity = contents.similarity(&deleted[from], &created[to])?;
                let same_name = deleted[from].name() == created[to].name();
                best.push(Pair { similarity, same_name, from, to });
                // Stable, so that the first of equal ones stays.
                best.sort_by_key(Pair::order);
                best.truncate(CANDIDATES);
            }
            pairs.extend(best);
        }
        pairs.sort_by_key(Pair::order);
        for pair in pairs.iter().filter(|pair| pair.similarity >= LEAST) {
            if self.from[pair.to].is_none() && !self.used[pair.from] {
                self.record(pair.from, pair.to);
            }
        }
        Ok(())
    }
}

struct Pair {
    similarity: u64,
    same_name: bool,
    from: usize,
    to: usize,
}

impl Pair {
    fn order(&self) -> std::cmp::Reverse<(u64, bool)> {
        std::cmp::Reverse((self.similarity, self.same_name))
    }
}

struct Contents<'r> {
    repository: &'r Repository,
    read: HashMap<Oid, Pieces>,
    bytes: usize,
}

/// How many bytes of a file are in pieces of each hash, in the order of the hashes.
#[derive(Default)]
struct Pieces {
    size: u64,
    counts: Vec<(u32, u64)>,
}

impl Contents<'_> {
    fn read(&mut self, id: Oid) -> Result<(), git2::Error> {
        if !self.read.contains_key(&id) {
            let blob = self.repository.find_blob(id)?;
            self.bytes = self.bytes.saturating_add(blob.size());
            let is_enough = self.bytes > MOST_BYTES;
            self.read.insert(id, if is_enough { Pieces::default() } else { Pieces::of(blob.content()) });
        }
        Ok(())
    }

    /// How much of the larger file is in both, as a part of [`WHOLE`].
    fn similarity(&mut self, one: &File, other: &File) -> Result<u64, git2::Error> {
        if !one.is_regular() || !other.is_regular() {
            return Ok(0);
        }
        self.read(one.id)?;
        self.read(other.id)?;
        let (one, other) = (&self.read[&one.id], &self.read[&other.id]);
        let (less, more) = (one.size.min(other.size), one.size.max(other.size));
        if less == 0 || more * (WHOLE - LEAST) < (more - less) * WHOLE {
            return Ok(0);
        }
        Ok(one.common(other) * WHOLE / more)
    }
}

impl Pieces {
    /// Pieces end with their line, or after 64 bytes.
    fn of(content: &[u8]) -> Self {
        let is_text = !content[..content.len().min(8000)].contains(&0);
        let mut counts: HashMap<u32, u64> = HashMap::new();
        let (mut first, mut second, mut length) = (0_u32, 0_u32, 0_u64);
        for (at, &byte) in content.iter().enumerate() {
            if is_text && byte == b'\r' && content.get(at + 1) == Some(&b'\n') {
                continue;
            }
            let before = first;
            first = (first << 7) ^ (second >> 25);
            second = (second << 7) ^ (before >> 25);
            first = first.wrapping_add(u32::from(byte));
            length += 1;
            if length == LONGEST_PIECE || byte == b'\n' {
                *counts.entry(first.wrapping_add(second.wrapping_mul(0x61)) % HASHES).or_default() += length;
                (first, second, length) = (0, 0, 0);
            }
        }
        if length > 0 {
            *counts.entry(first.wrapping_add(second.wrapping_mul(0x61)) % HASHES).or_default() += length;
        }
        let mut counts: Vec<(u32, u64)> = counts.into_iter().collect();
        counts.sort_unstable();
        Pieces { size: content.len() as u64, counts }
    }

    /// Bytes in pieces that both have.
    fn common(&self, other: &Pieces) -> u64 {
        let mut others = other.counts.iter().peekable();
        let mut sum = 0;
        for (hash, count) in &self.counts {
            while others.next_if(|(other, _)| other < hash).is_some() {}
            if let Some((_, many)) = others.next_if(|(other, _)| other == hash) {
                sum += count.min(many);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarity_is_of_bytes_in_the_same_pieces() {
        let common =
            |one: &str, other: &str| Pieces::of(one.as_bytes()).common(&Pieces::of(other.as_bytes()));
        assert_eq!(common("ab\ncd\nef", "cd\nx\nef"), 5);
        assert_eq!(common("a\na\na\n", "a\na\nb\n"), 4);
        assert_eq!(common("a\r\nb", "a\nb"), 3, "an end of line is one, however it is written");
        let long = "x".repeat(64);
        assert_eq!(common(&format!("{long}y"), &format!("{long}z")), 64);
    }
}
