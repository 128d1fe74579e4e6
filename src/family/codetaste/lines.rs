//! Sets of lines of files. A line is a path and a number.

use std::collections::BTreeMap;

/// A set of lines, kept as ranges: a number in a file of matches costs the same whatever it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// Of each path the ranges that do not touch: their first line, and their last one.
    files: BTreeMap<String, BTreeMap<u64, u64>>,
}

impl Lines {
    /// Adds the lines from the first to the last one, both included. A range that ends before it begins has none.
    pub fn insert(&mut self, path: &str, first: u64, last: u64) {
        if last < first {
            return;
        }
        let ranges = self.files.entry(path.to_owned()).or_default();
        let (mut first, mut last) = (first, last);
        while let Some((&from, &to)) = ranges.range(..=last.saturating_add(1)).next_back() {
            if to.saturating_add(1) < first {
                break;
            }
            ranges.remove(&from);
            (first, last) = (first.min(from), last.max(to));
        }
        ranges.insert(first, last);
    }

    pub fn extend(&mut self, other: &Lines) {
        for (path, ranges) in &other.files {
            for (&first, &last) in ranges {
                self.insert(path, first, last);
            }
        }
    }

    /// Whether a line is in it.
    pub fn contains(&self, path: &str, line: u64) -> bool {
        let before = self.files.get(path).and_then(|ranges| ranges.range(..=line).next_back());
        before.is_some_and(|(_, last)| line <= *last)
    }

    /// How many lines.
    pub fn count(&self) -> u64 {
        self.files.values().flatten().fold(0, |sum, (first, last)| sum.saturating_add(last - first + 1))
    }

    /// How many lines are in both.
    pub fn common(&self, other: &Lines) -> u64 {
        let (few, many) = if self.files.len() <= other.files.len() { (self, other) } else { (other, self) };
        let pairs = few.files.iter().filter_map(|(path, ranges)| Some((ranges, many.files.get(path)?)));
        pairs.fold(0, |sum, (one, two)| sum.saturating_add(overlap(one, two)))
    }

    /// Paths in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Every range in order: its path, first and last line.
    pub fn ranges(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.files
            .iter()
            .flat_map(|(path, ranges)| ranges.iter().map(move |(&first, &last)| (path.as_str(), first, last)))
    }

    /// The overlap of two sets by Jaccard: common lines among all. None of two empty ones, which do not overlap.
    pub fn jaccard(&self, other: &Lines) -> Option<(u64, u64)> {
        let common = self.common(other);
        let all = self.count().saturating_add(other.count()) - common;
        (all > 0).then_some((common, all))
    }
}

fn overlap(one: &BTreeMap<u64, u64>, two: &BTreeMap<u64, u64>) -> u64 {
    let (mut one, mut two) = (one.iter().peekable(), two.iter().peekable());
    let mut sum = 0_u64;
    while let (Some(&(&from, &to)), Some(&(&other_from, &other_to))) = (one.peek(), two.peek()) {
        let (first, last) = (from.max(other_from), to.min(other_to));
        if first <= last {
            sum = sum.saturating_add(last - first + 1);
        }
        if to <= other_to {
            one.next();
        } else {
            two.next();
        }
    }
    sum
}

impl<'a> FromIterator<(&'a str, u64)> for Lines {
    fn from_iter<T: IntoIterator<Item = (&'a str, u64)>>(lines: T) -> Self {
        let mut set = Lines::default();
        for (path, line) in lines {
            set.insert(path, line, line);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut lines = Lines::default();
        for (first, last) in [(5, 6), (1, 2), (9, 9), (3, 4), (8, 12), (20, 19)] {
            lines.insert("a.py", first, last);
        }
        assert_eq!(lines.ranges().collect::<Vec<_>>(), [("a.py", 1, 6), ("a.py", 8, 12)]);
        assert_eq!(lines.count(), 11);
        let within: Vec<u64> = (0..14).filter(|line| lines.contains("a.py", *line)).collect();
        assert_eq!(within, [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12]);
        assert!(!lines.contains("b.py", 1));
        lines.insert("a.py", 0, u64::MAX);
        assert_eq!(lines.ranges().collect::<Vec<_>>(), [("a.py", 0, u64::MAX)]);
    }

    #[test]
    fn sets_are_those_of_single_lines() {
        use std::collections::BTreeSet;
        let mut seed = 7_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let mut sets: [(Lines, BTreeSet<(String, u64)>); 2] = Default::default();
            for (lines, single) in &mut sets {
                for _ in 0..next(12) {
                    let path = ["a", "b"][next(2) as usize];
                    let (first, length) = (next(30), next(6));
                    lines.insert(path, first, first + length);
                    single.extend((first..=first + length).map(|line| (path.to_owned(), line)));
                }
                assert_eq!(lines.count(), single.len() as u64);
            }
            let [(one, single_one), (two, single_two)] = &sets;
            let common = single_one.intersection(single_two).count() as u64;
            assert_eq!(one.common(two), common);
            assert_eq!(two.common(one), common);
            let all = single_one.union(single_two).count() as u64;
            assert_eq!(one.jaccard(two), (all > 0).then_some((common, all)));
            let mut both = one.clone();
            both.extend(two);
            assert_eq!(both.count(), all);
        }
    }
}
