//! What `gistmill verify` runs of a dataset of masked files.

use super::{VerifyArguments, prepare, sampled};
use crate::cli::Arguments;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::verify::{Verification, masked};

/// Runs the originals, the masks, and the originals without their bodies.
pub(super) fn run(arguments: &Arguments, asked: &VerifyArguments, found: &mut Verification) -> Result<()> {
    let (mut restored, rows, others) = asked.restore.open_rows(arguments, Dataset::recube_instances)?;
    let left_out = "cold runs of the entry commands, and traces: they are of whole files here";
    let instances = sampled(asked, (&mut restored, &others), rows, (found, left_out));
    let cases = restored.dataset.recube_cases()?;
    for repo in restored.repositories() {
        let (mut repository, prepared) = prepare(&restored, repo, &mut found.machine)?;
        if let Some(prepared) = prepared {
            let own = instances.iter().filter(|one| one.head.slug == repo.slug);
            let cases_of = |id: &str| cases.get(id).map(Vec::as_slice).unwrap_or_default();
            let own: Vec<_> = own.map(|one| (one, cases_of(one.head.instance_id.as_str()))).collect();
            let stage = restored.job.progress.stage(&format!("{} verify", repo.slug), own.len() as u64);
            let cache = &restored.job.cache;
            repository.instances = masked::verify(&prepared, cache, &own, asked.attempts, &|| stage.step())?;
        }
        found.repositories.push(repository);
    }
    Ok(())
}
