//! A world: which dimensions of the ambient conditions differ from the base world.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::verdict::Dimension;

/// Module file in the root of the tree that the evaluation of Gistify runs.
pub const PROBE: &str = "concise.py";

/// Name of the reference conditions.
pub const BASE: &str = "base";
/// Name of the world in which every dimension that the machine covers differs.
pub const EVERYTHING: &str = "everything";

/// One fixed set of ambient conditions. Its name is what attempts, evidence and `--world` carry: `base`, `everything`,
/// or dimensions joined by `+`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum World {
    /// The reference conditions.
    Base,
    /// Everything that the machine covers differs.
    Everything,
    /// These dimensions differ; never empty.
    Only(BTreeSet<Dimension>),
    /// Only the hash seed differs, and is this further one. Two seeds can well put a small set in the same order.
    Seed(u32),
}

/// How the name of a world with a further hash seed begins.
pub const SEED: &str = "hash-seed-";
/// Further hash seeds that have a name.
const MOST_SEEDS: u32 = 999;

impl World {
    /// The world in which one dimension differs.
    pub fn one(dimension: Dimension) -> Self {
        World::Only([dimension].into())
    }

    /// The world in which these dimensions differ.
    pub fn of(dimensions: BTreeSet<Dimension>) -> Self {
        if dimensions.is_empty() { World::Base } else { World::Only(dimensions) }
    }

    /// The world of that name.
    ///
    /// # Errors
    /// Says what names there are.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            BASE => return Ok(World::Base),
            EVERYTHING => return Ok(World::Everything),
            _ => {}
        }
        let seed = name.strip_prefix(SEED).and_then(|number| number.parse().ok());
        if let Some(number) = seed.filter(|number| (1..=MOST_SEEDS).contains(number)) {
            return Ok(World::Seed(number));
        }
        let known = |part: &str| Dimension::ALL.into_iter().find(|dimension| dimension.as_str() == part);
        let dimensions: Option<BTreeSet<Dimension>> = name.split('+').map(known).collect();
        dimensions.map(World::Only).ok_or_else(|| {
            let names: Vec<&str> = Dimension::ALL.iter().map(|dimension| dimension.as_str()).collect();
            format!(
                "there is no world `{name}`: give {BASE}, {EVERYTHING}, {SEED}1 to {SEED}{MOST_SEEDS}, or dimensions joined \
                 by `+`: {}",
                names.join(", ")
            )
        })
    }

    /// Whether the dimension differs, when the machine covers `covered`.
    pub fn varies(&self, dimension: Dimension, covered: &BTreeSet<Dimension>) -> bool {
        match self {
            World::Base => false,
            World::Everything => covered.contains(&dimension),
            World::Only(dimensions) => dimensions.contains(&dimension),
            World::Seed(_) => dimension == Dimension::HashSeed,
        }
    }
}

impl From<World> for String {
    fn from(world: World) -> String {
        world.to_string()
    }
}

impl TryFrom<String> for World {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        World::parse(&name)
    }
}

impl fmt::Display for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            World::Base => formatter.write_str(BASE),
            World::Everything => formatter.write_str(EVERYTHING),
            World::Only(dimensions) => {
                let names: Vec<&str> = dimensions.iter().map(|dimension| dimension.as_str()).collect();
                formatter.write_str(&names.join("+"))
            }
            World::Seed(number) => write!(formatter, "{SEED}{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_world_is_read_back_as_it_is_written() {
        let pair = World::of([Dimension::Locale, Dimension::TimeZone].into());
        assert_eq!(pair.to_string(), "time-zone+locale");
        for world in [World::Base, World::Everything, World::one(Dimension::HashSeed), pair, World::Seed(3)] {
            assert_eq!(World::parse(&world.to_string()), Ok(world));
        }
    }

    #[test]
    fn a_world_that_is_none_is_refused_with_the_names_there_are() {
        for name in ["", "weather", "locale+", "base+locale", "hash-seed-0", "hash-seed-4294967295"] {
            let message = World::parse(name).unwrap_err();
            assert!(message.contains("test-file-location"), "{message}");
        }
    }
}
