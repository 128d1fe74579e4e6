//! What `gistmill verify` runs of a dataset of pairs of commits.

use std::collections::BTreeSet;

use super::{VerifyArguments, not_run, prepare, unknown_of};
use crate::cli::Arguments;
use crate::error::Result;
use crate::record::id::RepoSlug;
use crate::verify::instances::Verified;
use crate::verify::{Verification, pairs};

/// Judges golden and empty patches, each a whole run of the suite.
pub(super) fn run(arguments: &Arguments, asked: &VerifyArguments, found: &mut Verification) -> Result<()> {
    let (mut restored, mut instances, others) = asked.restore.open_codetaste_parts(arguments)?;
    // Said with the tables.
    let Some(hidden) = restored.dataset.hidden_pairs_if_there()? else { return Ok(()) };
    let all = instances.len();
    if let Some(size) = asked.sample {
        let seed = restored.job.config.dataset.seed;
        instances.sort_by_cached_key(|one| one.head.instance_id.sample_order(&one.head.slug, seed));
        instances.truncate(size as usize);
    }
    let slugs: BTreeSet<&RepoSlug> = instances.iter().map(|one| &one.head.slug).collect();
    restored.job.config.repos.retain(|repo| slugs.contains(&repo.slug));
    not_run(&mut found.tables.unverified, asked, (instances.len(), all));
    found.tables.unverified.push("cold runs of the entry commands: whole suites judge here".to_owned());
    found.repositories.extend(unknown_of(&restored, slugs, &others));
    for repo in restored.repositories() {
        let (mut repository, prepared) = prepare(&restored, repo, &mut found.machine)?;
        if let Some(prepared) = prepared {
            let own = || instances.iter().filter(|one| one.head.slug == repo.slug);
            let steps = own().count() as u64 * u64::from(asked.attempts);
            let stage = restored.job.progress.stage(&format!("{} verify", repo.slug), steps);
            for one in own() {
                let id = one.head.instance_id.as_str();
                let verified = match hidden.get(id) {
                    Some(hidden) => {
                        let limit = restored.job.config.codetaste.suite_timeout;
                        let place = (&prepared, &restored.job.cache, limit);
                        let sandbox = || restored.job.machine.sandbox();
                        let machine = (&restored.dataset.manifest.machine, &mut found.machine);
                        let step = || stage.step();
                        pairs::verify(place, &sandbox, (one, hidden), asked.attempts, machine, &step)?
                    }
                    None => Verified {
                        instance_id: id.to_owned(),
                        tables: vec!["hidden/ has nothing of it".to_owned()],
                        ..Verified::default()
                    },
                };
                repository.instances.push(verified);
            }
        }
        found.repositories.push(repository);
    }
    Ok(())
}
