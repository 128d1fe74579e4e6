//! Parts of a build, for many machines.

use std::fmt;
use std::str::FromStr;

use super::id::{InvalidId, RepoSlug, hash_parts};

/// Most parts that a build is split into.
const MOST: u32 = 100_000;

/// One of several parts. What is in it follows from names alone, so that machines need not talk to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    /// From 1.
    number: u32,
    of: u32,
}

impl Shard {
    /// Part `number` (from 1) of so many.
    ///
    /// # Errors
    /// When there is no such part.
    pub fn new(number: u32, of: u32) -> Result<Self, InvalidId> {
        if (1..=of).contains(&number) && of <= MOST {
            Ok(Shard { number, of })
        } else {
            Err(InvalidId(format!(
                "there is no shard {number}/{of}: write K/N with K from 1 to N, N up to {MOST}"
            )))
        }
    }

    /// All parts.
    pub fn all(of: u32) -> impl Iterator<Item = Shard> {
        (1..=of).map(move |number| Shard { number, of })
    }

    /// Into how many parts the build is split.
    pub fn of(self) -> u32 {
        self.of
    }

    /// Whether a group is in this part.
    pub fn holds(self, slug: &RepoSlug, group_id: &str) -> bool {
        let hash = hash_parts(&[slug.as_str(), group_id]);
        let number = u64::from_str_radix(&hash[..15], 16).unwrap_or_default();
        number % u64::from(self.of) == u64::from(self.number - 1)
    }

    /// The name of its folder.
    pub fn folder(self) -> String {
        format!("{}-of-{}", self.number, self.of)
    }

    /// The part that a folder of this name belongs to.
    pub fn of_folder(name: &str) -> Option<Self> {
        let shard: Shard = name.replacen("-of-", "/", 1).parse().ok()?;
        (shard.folder() == name).then_some(shard)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        let (number, of) =
            parts.ok_or_else(|| InvalidId(format!("`{text}` is not a shard: write K/N, as in 2/6")))?;
        Shard::new(number, of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_in_exactly_one_part() {
        let slug = RepoSlug::new("a/b").unwrap();
        let mut sizes = [0; 6];
        for group in 0..600 {
            let id = format!("tests/test_{}.py::test_{group}", group % 7);
            let holding: Vec<usize> = Shard::all(6)
                .enumerate()
                .filter(|(_, shard)| shard.holds(&slug, &id))
                .map(|(at, _)| at)
                .collect();
            assert_eq!(holding.len(), 1, "{id}");
            sizes[holding[0]] += 1;
        }
        assert!(sizes.iter().all(|size| (60..140).contains(size)), "{sizes:?}");
    }

    #[test]
    fn names_come_back_and_others_are_refused() {
        let shard: Shard = "2/6".parse().unwrap();
        assert_eq!((shard.to_string(), shard.folder()), ("2/6".into(), "2-of-6".into()));
        assert_eq!(Shard::of_folder("2-of-6"), Some(shard));
        for bad in ["0/6", "7/6", "2", "a/b", "1/0", "-1/2", "1/200000"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
        for bad in ["2/6", "02-of-6", "2-of-6.damaged-1"] {
            assert_eq!(Shard::of_folder(bad), None, "{bad}");
        }
    }
}
