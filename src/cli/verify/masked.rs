//! What `gistmill verify` runs of a dataset of masked files.

use std::collections::{BTreeMap, BTreeSet};

use super::{VerifyArguments, not_run, prepare, unknown_of};
use crate::cli::Arguments;
use crate::dataset::recube::RecubeInstance;
use crate::error::Result;
use crate::record::id::RepoSlug;
use crate::record::recube::InstanceCase;
use crate::verify::{Verification, masked};

/// Runs the originals, the masks, and the originals without their bodies.
pub(super) fn run(arguments: &Arguments, asked: &VerifyArguments, found: &mut Verification) -> Result<()> {
    let (mut restored, mut instances, others) = asked.restore.open_recube(arguments)?;
    let all = instances.len();
    if let Some(size) = asked.sample {
        let seed = restored.job.config.dataset.seed;
        instances.sort_by_cached_key(|one| one.head.instance_id.sample_order(&one.head.slug, seed));
        instances.truncate(size as usize);
        let slugs: BTreeSet<&RepoSlug> = instances.iter().map(|one| &one.head.slug).collect();
        restored.job.config.repos.retain(|repo| slugs.contains(&repo.slug));
    }
    not_run(&mut found.tables.unverified, asked, (instances.len(), all));
    found
        .tables
        .unverified
        .push("cold runs of the entry commands, and traces: they are of whole files here".to_owned());
    let slugs: BTreeSet<&RepoSlug> = instances.iter().map(|one| &one.head.slug).collect();
    found.repositories.extend(unknown_of(&restored, slugs, &others));
    let rows = restored.dataset.recube_cases()?;
    let mut cases: BTreeMap<&str, Vec<&InstanceCase>> = BTreeMap::new();
    for (id, case) in &rows {
        cases.entry(id).or_default().push(case);
    }
    for repo in restored.repositories() {
        let (mut repository, prepared) = prepare(&restored, repo, &mut found.machine)?;
        if let Some(prepared) = prepared {
            let own = instances.iter().filter(|one| one.head.slug == repo.slug);
            let own: Vec<(&RecubeInstance, Vec<&InstanceCase>)> = own
                .map(|one| (one, cases.get(one.head.instance_id.as_str()).cloned().unwrap_or_default()))
                .collect();
            let stage = restored.job.progress.stage(&format!("{} verify", repo.slug), own.len() as u64);
            let cache = &restored.job.cache;
            repository.instances = masked::verify(&prepared, cache, &own, asked.attempts, &|| stage.step())?;
        }
        found.repositories.push(repository);
    }
    Ok(())
}
