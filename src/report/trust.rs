//! What speaks for the outcomes of the instances: runs that agree, worlds, cold runs. Pure over the tables.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Tables;
use crate::error::Result;
use crate::record::flag::{KEPT_BY, OUTPUT_DIFFERS};

/// How often the instances were run.
#[derive(Debug, Serialize)]
pub(super) struct Trust {
    /// Instances of which every attempt that counts shows the same.
    agree: usize,
    /// Attempts of an instance that agree, the least and the most.
    runs: [i64; 2],
    /// Worlds of an instance, the least and the most.
    worlds: [usize; 2],
    /// The worlds of all instances, by name.
    names: BTreeSet<String>,
    /// Instances that were also run cold.
    cold: usize,
}

/// None without instances.
pub(super) fn trust(tables: &Tables) -> Result<Option<Trust>> {
    let (instances, groups) = (&tables.instances, &tables.groups);
    let (agreeing, worlds) = (instances.whole_numbers("attempts")?, instances.lists("worlds")?);
    let (flags, cold) = (instances.lists("flags")?, groups.reals("cold_ms")?);
    let places = tables.group_places()?;
    let keys = instances.whole_texts("slug")?.into_iter().zip(instances.whole_texts("group_id")?);
    let places: Vec<_> = keys.map(|key| places.get(&key).copied()).collect();
    // What is published agrees in all that counts, but for what its flags say.
    let agrees =
        |flags: &&Vec<String>| !flags.iter().any(|flag| flag == OUTPUT_DIFFERS || flag.starts_with(KEPT_BY));
    let numbers = || worlds.iter().map(Vec::len);
    let (Some(fewest), Some(most)) = (agreeing.iter().min(), agreeing.iter().max()) else { return Ok(None) };
    Ok(Some(Trust {
        agree: flags.iter().filter(agrees).count(),
        runs: [*fewest, *most],
        worlds: [numbers().min().unwrap_or(0), numbers().max().unwrap_or(0)],
        names: worlds.iter().flatten().cloned().collect(),
        cold: places.iter().flatten().filter(|at| cold[**at].is_some()).count(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::testing::made_up::MadeUp;

    fn trust_in(made_up: &MadeUp) -> Option<Trust> {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("2026.11");
        crate::testing::write(&directory, &made_up.input()).unwrap();
        trust(&Tables::read(&Dataset::open(&directory).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn an_instance_agrees_where_no_flag_says_otherwise() {
        let trust = trust_in(&MadeUp::new(&[9])).unwrap();
        let published = MadeUp::new(&[9]).repositories[0].published.len();
        assert_eq!((trust.agree, trust.cold), (published, published));
        assert_eq!((trust.runs, trust.worlds), ([12, 12], [2, 2]));
        assert_eq!(trust.names.into_iter().collect::<Vec<_>>(), ["base", "everything"]);
    }

    #[test]
    fn nothing_is_said_without_instances() {
        let mut made_up = MadeUp::new(&[9]);
        made_up.repositories[0].published.clear();
        assert!(trust_in(&made_up).is_none());
    }
}
