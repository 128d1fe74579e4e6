//! Parts of a build that many machines make, each alone, over one cache.
//!
//! ```text
//! screens/<key>/shards/K-of-N/{attempts, unavailable, traces/, done.json}
//! ```
//!
//! A shard screens and traces its own groups and keeps its journals in its own folder; `done.json` is written last. The build
//! that goes on with selecting takes over what finished shards left: a row counts where the build has none of its own,
//! so taking over again changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::record::collected::Collected;
use crate::record::id::{RepoSlug, sha256_hex};
use crate::record::shard::Shard;
use crate::screen::Screening;
use crate::store::{self, Cache, read_sealed, write_sealed};
use crate::trace::Traces;

const FOLDER: &str = "shards";
const DONE: &str = "done.json";
/// Says that the build has taken a shard over.
const TAKEN: &str = "taken.json";

/// What a build does with shards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shards {
    /// Takes over those that are finished, and makes the rest itself.
    #[default]
    TakeOver,
    /// Makes one.
    Make(Shard),
    /// Takes all over: so many, or as many as the others say. A missing one ends the build.
    Require(Option<u32>),
}

impl Shards {
    /// The shard that is made.
    pub(crate) fn made(self) -> Option<Shard> {
        match self {
            Shards::Make(shard) => Some(shard),
            Shards::TakeOver | Shards::Require(_) => None,
        }
    }
}

/// What a shard leaves when nothing of it is missing.
#[derive(Debug, Serialize, Deserialize)]
struct Done {
    /// Of what was collected: a shard of another collection is not one of these.
    collected_sha256: String,
    groups: usize,
}

/// Where a shard keeps its journals.
pub(super) fn folder(screen: &Path, shard: Shard) -> PathBuf {
    screen.join(FOLDER).join(shard.folder())
}

fn hash(collected: &Collected) -> Result<String> {
    Ok(sha256_hex(&store::seal(collected)?))
}

/// The groups of a shard, by index.
pub(super) fn groups(shard: Shard, slug: &RepoSlug, collected: &Collected) -> Vec<usize> {
    let groups = collected.groups.iter().enumerate();
    groups.filter(|(_, group)| shard.holds(slug, &group.group_id)).map(|(at, _)| at).collect()
}

/// Marks a shard as finished.
pub(super) fn finish(screen: &Path, shard: Shard, collected: &Collected, groups: usize) -> Result<()> {
    let done = Done { collected_sha256: hash(collected)?, groups };
    write_sealed(&folder(screen, shard).join(DONE), &done)
}

/// Looks for any shard at all, before environments are made for those of a repository.
///
/// # Errors
/// A usage error where the cache has none; IO errors.
pub(super) fn require_any(cache: &Cache) -> Result<()> {
    for screen in fs_err::read_dir(cache.dir("screens")?)? {
        if screen?.path().join(FOLDER).is_dir() {
            return Ok(());
        }
    }
    Err(Error::usage(format!("the cache {} has no shard of any repository", cache.root().display())).with_hint(
        "make them with `gistmill build --shard K/N` over the same cache, or name the cache that has them with --cache-dir",
    ))
}

/// The finished shards of a repository.
fn finished(screen: &Path, collected: &Collected) -> Result<BTreeSet<Shard>> {
    let entries = match fs_err::read_dir(screen.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error.into()),
    };
    let (mut finished, hash) = (BTreeSet::new(), hash(collected)?);
    for entry in entries {
        let entry = entry?;
        let Some(shard) = entry.file_name().to_str().and_then(Shard::of_folder) else { continue };
        let done = read_sealed::<Done>(&entry.path().join(DONE))?;
        if done.is_some_and(|done| done.collected_sha256 == hash) {
            finished.insert(shard);
        }
    }
    Ok(finished)
}

/// The shards that are missing: of so many, or of the split of which most exists. Pure.
fn missing(finished: &BTreeSet<Shard>, of: Option<u32>) -> Vec<Shard> {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for shard in finished {
        *counts.entry(shard.of()).or_default() += 1;
    }
    let fullest = || {
        let part = |(of, count): &(&u32, &u32)| f64::from(**count) / f64::from(**of);
        counts.iter().max_by(|a, b| part(a).total_cmp(&part(b))).map(|(of, _)| *of)
    };
    let of = of.or_else(fullest).unwrap_or(0);
    Shard::all(of).filter(|shard| !finished.contains(shard)).collect()
}

/// Tells which shards of a repository are missing.
///
/// # Errors
/// A usage error when one is; IO errors.
pub(super) fn require(screen: &Path, of: Option<u32>, slug: &RepoSlug, collected: &Collected) -> Result<()> {
    let finished = finished(screen, collected)?;
    let missing = missing(&finished, of);
    if finished.is_empty() && missing.is_empty() {
        let none = Error::usage(format!("{slug}: no shard of it is finished here"));
        return Err(none.with_detail(screen.display().to_string()).with_hint(
            "make them with `gistmill build --shard K/N` over the same cache, on machines that can vary the same as this one",
        ));
    }
    let Some(first) = missing.first() else { return Ok(()) };
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let shards = if missing.len() == 1 { "shard" } else { "shards" };
    Err(Error::usage(format!("{slug}: {shards} {} missing", names.join(", "))).with_hint(format!(
        "run `gistmill build --shard {first}` again, with this configuration and cache; without `--shard` a build makes here what is missing"
    )))
}

/// Takes over what finished shards left. Gives the shards that are missing beside them.
///
/// # Errors
/// IO errors with action and path.
pub(super) fn take_over(
    screen: &Path,
    collected: &Collected,
    (screening, traces): (&mut Screening<'_>, &mut Traces),
) -> Result<Vec<Shard>> {
    let finished = finished(screen, collected)?;
    for shard in &finished {
        let folder = folder(screen, *shard);
        if read_sealed::<bool>(&folder.join(TAKEN))?.is_some() {
            continue;
        }
        let attempts = screening.take_over(&folder)?;
        let traced = traces.take_over(&folder.join("traces"))?;
        tracing::info!("shard {shard}: {attempts} attempts and {traced} traces are taken over");
        write_sealed(&folder.join(TAKEN), &true)?;
    }
    Ok(missing(&finished, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_follows_from_what_is_there() {
        let there =
            |shards: &[&str]| shards.iter().map(|text| text.parse().unwrap()).collect::<BTreeSet<Shard>>();
        let words = |shards: Vec<Shard>| shards.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(missing(&there(&[]), None).is_empty());
        assert_eq!(words(missing(&there(&[]), Some(2))), ["1/2", "2/2"]);
        assert_eq!(words(missing(&there(&["1/3", "3/3"]), None)), ["2/3"]);
        assert!(missing(&there(&["1/3", "1/2", "2/2"]), None).is_empty(), "the whole split counts");
        assert_eq!(words(missing(&there(&["1/1"]), Some(2))), ["1/2", "2/2"]);
    }
}
